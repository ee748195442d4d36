#include "cli/manual_priv.h"
#include "cli/run_priv.h"

#include <stdio.h>

enum { HELP_BYTES_MAX = 64 * 1024, MAN_BYTES_MAX = 256 * 1024 };

int cli_help_print(const struct cli_command *command, FILE *to)
{
    struct rv_buf buf;
    rv_buf_init(&buf, HELP_BYTES_MAX);
    cli_help_write(&buf, command);
    struct rv_str text = rv_buf_str(&buf);
    fwrite(text.at, 1, text.len, to);
    rv_buf_done(&buf);
    return to == stdout ? CLI_DONE : CLI_USAGE;
}

static int man_print(struct cli *cli)
{
    struct rv_buf buf;
    rv_buf_init(&buf, MAN_BYTES_MAX);
    cli_man_write(&buf);
    int code = CLI_DONE;
    if (buf.failed == RV_OK)
        fwrite(buf.at, 1, buf.len, stdout);
    else
        code = cli_tell(cli, CLI_UNREACHABLE, "out of memory");
    rv_buf_done(&buf);
    return code;
}

int cli_help(struct cli *cli)
{
    if (cli_has(cli, CLI_OPTION_MAN))
        return man_print(cli);
    if (cli->words.args_count == 0)
        return cli_help_print(NULL, stdout);
    const char *near = NULL;
    char *name = cli->words.args[0];
    const struct cli_command *command = cli_command_find(rv_str_of(name), &near);
    if (command == NULL)
        return cli_tell(cli, CLI_USAGE, "unknown command \"%s\"; %s%s%s", name,
                        near ? "did you mean \"" : "\"reeve help\" lists the commands",
                        near ? near : "", near ? "\"?" : "");
    if (!(command->options & CLI_RAW))
        return cli_help_print(command, stdout);
    char help[] = "--help";
    char *words[] = {name, help, NULL};
    return cli->server->serve(2, words);
}

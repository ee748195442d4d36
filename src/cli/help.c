#include "cli/manual_priv.h"
#include "cli/run_priv.h"

#include <stdio.h>
#include <string.h>

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

/* Whether it is a word in lower case of the command's arguments, or one that `reeve bulk` gives to
 * each task. */
static bool is_word_of(const struct cli_command *command, const char *word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";
    size_t len = strlen(word);
    for (const char *at = command->args; *at != '\0';) {
        size_t here = strspn(at, letters);
        if (here > 0 && here == len && memcmp(at, word, len) == 0)
            return true;
        at += here > 0 ? here : 1;
    }
    return strcmp(command->name, "bulk") == 0 && cli_bulk_takes(word);
}

/* "reeve help agent exec": the command's help has all of its words. */
static int second_check(struct cli *cli, const struct cli_command *command)
{
    if (cli->words.args_count < 2 || is_word_of(command, cli->words.args[1]))
        return CLI_DONE;
    return cli_tell(cli, CLI_USAGE, "\"reeve %s\" has no command \"%s\"; see \"reeve help %s\"",
                    command->name, cli->words.args[1], command->name);
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
    int code = second_check(cli, command);
    if (code != CLI_DONE)
        return code;
    if (!(command->options & CLI_RAW))
        return cli_help_print(command, stdout);
    char help[] = "--help";
    char *words[] = {name, help, NULL};
    return cli->server->serve(2, words);
}

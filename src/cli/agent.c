#include "agent/exec/exec.h"
#include "base/limits.h"
#include "cli/server_priv.h"
#include "workflow/definition.h"

#include <stdlib.h>
#include <string.h>

/* A whole number from 1 to `most`; 0 if it is none. */
static int count_read(const char *text, int most)
{
    char *end;
    long number = strtol(text, &end, 10);
    bool good = text[0] >= '0' && text[0] <= '9' && *end == '\0' && number >= 1 && number <= most;
    return good ? (int)number : 0;
}

int cli_agent(struct cli *cli)
{
    char **args = cli->words.args;
    const char *max = cli_value(cli, CLI_OPTION_MAX);
    if (strcmp(args[0], "exec") != 0)
        return cli_tell(cli, CLI_USAGE,
                        "\"%s\": unknown kind of agent; usage: reeve agent exec NAME -- COMMAND",
                        args[0]);
    struct rv_str name = rv_str_of(args[1]);
    if (name.len > RV_NAME_BYTES_MAX || !rv_agent_name_good(name))
        return cli_tell(cli, CLI_USAGE,
                        "\"%s\" is not the name of an agent: a name begins with a letter or digit "
                        "and consists of up to %d letters, digits, \"-\", \"_\" and \".\"",
                        args[1], RV_NAME_BYTES_MAX);
    if (!cli_address_check(cli))
        return CLI_USAGE;
    struct rv_exec_options options = {.url = cli_value(cli, CLI_OPTION_URL),
                                      .name = args[1],
                                      .instance = cli_value(cli, CLI_OPTION_INSTANCE),
                                      .max = max != NULL ? count_read(max, RV_EXEC_COMMANDS_MAX)
                                                         : 1};
    if (options.max == 0)
        return cli_tell(cli, CLI_USAGE, "--max %s: must be a whole number from 1 to %d", max,
                        RV_EXEC_COMMANDS_MAX);
    size_t count = cli->words.args_count - 2;
    char **command = RV_NEW_ARRAY(&cli->arena, char *, count + 1);
    if (command == NULL)
        return cli_tell(cli, CLI_UNREACHABLE, "out of memory");
    memcpy(command, args + 2, count * sizeof *command);
    options.command = command;
    struct rv_exec_fault fault;
    enum rv_err err = rv_exec_run(&options, &fault);
    if (fault.message[0] != '\0')
        return cli_tell(cli, rv_err_exit(err), "%s", fault.message);
    return err == RV_OK ? CLI_DONE : rv_err_exit(err);
}

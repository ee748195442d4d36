#include "cli/cli.h"

#include "base/os/clock.h"
#include "base/time.h"
#include "cli/run_priv.h"
#include "cli/text_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAULT_BYTES_MAX = 4096 };

/* What a server, a file or a user said is shown without the power to move the cursor. */
int cli_tell(const struct cli *cli, int code, const char *format, ...)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    va_list args;
    va_start(args, format);
    struct rv_str said = rv_arena_vprintf(&arena, format, args);
    va_end(args);
    struct rv_str clean = cli_text_clean(&arena, said);
    const struct cli_command *command = cli->words.command;
    fflush(stdout);
    fprintf(stderr, "reeve%s%s: %.*s\n", command ? " " : "", command ? command->name : "",
            RV_STR_FMT(clean));
    rv_arena_done(&arena);
    return code;
}

const char *cli_store(const struct cli *cli)
{
    const char *variable = getenv("REEVE_STORE");
    if (cli_has(cli, CLI_OPTION_STORE))
        return cli_value(cli, CLI_OPTION_STORE);
    return variable != NULL && variable[0] != '\0' ? variable : "./reeve.db";
}

/* https://no-color.org: set and not empty. */
static bool colours_wanted(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return (no_color == NULL || no_color[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0;
}

/* Options that take a duration: the API takes ISO 8601 alone. */
static bool durations_read(struct cli *cli)
{
    for (unsigned i = 0; i < CLI_OPTION_COUNT; i++) {
        const struct cli_option_row *row = cli_option_row((enum cli_option)i);
        const char *value = cli->words.values[i];
        char text[RV_INSTANT_TEXT_BYTES];
        int64_t ms;
        if (value == NULL || row->value == NULL || strcmp(row->value, "DURATION") != 0)
            continue;
        if (rv_duration_parse_typed(rv_str_of(value), &ms) != RV_OK || ms == 0) {
            cli_tell(cli, CLI_USAGE, "%s %s: must be a duration such as 90s, 1h30m, 7d or PT10M",
                     row->flag, value);
            return false;
        }
        struct rv_str iso = rv_arena_str(&cli->arena, rv_duration_text(ms, text));
        cli->words.values[i] = iso.at != NULL ? iso.at : value;
    }
    return true;
}

static int command_run(struct cli *cli)
{
    const struct cli_command *command = cli->words.command;
    if (cli_has(cli, CLI_OPTION_HELP))
        return cli_help_print(command, stdout);
    if (command == NULL)
        return cli_help_print(NULL, stderr);
    if (!durations_read(cli))
        return CLI_USAGE;
    return command->run(cli);
}

/* Texts that found no memory are printed as nothing, and pages end early: then what was said is not
 * all there is, and a code that says otherwise would be a lie. */
static int starved_tell(const struct cli *cli, int code)
{
    if (cli->arena.refused != RV_ERR_MEMORY)
        return code;
    fflush(stdout);
    fprintf(stderr, "reeve: out of memory: the output is incomplete\n");
    return rv_err_exit(RV_ERR_MEMORY);
}

int rv_cli_run(int argc, char **argv, const struct rv_cli_server *server)
{
    struct cli cli = {.server = server,
                      .terminal = isatty(STDOUT_FILENO),
                      .terminal_err = isatty(STDERR_FILENO),
                      .now = rv_clock_wall_ms()};
    cli.colour = cli.terminal && colours_wanted();
    rv_arena_init(&cli.arena, 0);
    struct rv_buf fault;
    rv_buf_init(&fault, FAULT_BYTES_MAX);
    int code;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        code = cli_version(&cli);
    else if (cli_words_read(&cli.words, argc, argv, &fault))
        code = command_run(&cli);
    else
        code = cli_tell(&cli, CLI_USAGE, "%.*s", RV_STR_FMT(rv_buf_str(&fault)));
    code = starved_tell(&cli, code);
    rv_buf_done(&fault);
    rv_client_close(cli.quick);
    rv_client_close(cli.patient);
    rv_arena_done(&cli.arena);
    if (fflush(stdout) != 0 && code == CLI_DONE)
        return cli_tell(&cli, CLI_UNREACHABLE, "standard output cannot be written");
    return code;
}

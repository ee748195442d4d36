#include "cli/cli.h"

#include "base/os/clock.h"
#include "base/os/log.h"
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
    struct rv_str program = RV_STR("reeve");
    if (command != NULL)
        program = rv_arena_printf(&arena, "reeve %s", command->name);
    fflush(stdout);
    rv_log_refusal(program.len > 0 ? program.at : "reeve", "%.*s", RV_STR_FMT(clean));
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
            cli_tell(cli, CLI_USAGE,
                     "%s %s: must be a duration such as 90s, 1h30m, 7d or PT10M, up "
                     "to " RV_DURATION_MAX_TEXT,
                     row->flag, value);
            return false;
        }
        struct rv_str iso = rv_arena_str(&cli->arena, rv_duration_text(ms, text));
        cli->words.values[i] = iso.at != NULL ? iso.at : value;
    }
    return true;
}

/* ---- the log ---- */

/* The last --log of the words; NULL: none. */
static const char *log_asked(int argc, char **argv)
{
    static const char flag[] = "--log";
    const char *asked = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], flag, sizeof flag - 1) != 0)
            continue;
        if (argv[i][sizeof flag - 1] == '=')
            asked = argv[i] + sizeof flag;
        else if (argv[i][sizeof flag - 1] == '\0' && i + 1 < argc)
            asked = argv[++i];
    }
    return asked;
}

/* The format of the log, for commands with --log; also when the other words are refused, so that
 * their refusal is a line of the log. False: there is no such format. */
static bool log_choose(const struct cli *cli, const char *asked)
{
    const struct cli_command *command = cli->words.command;
    const char *variable = getenv("REEVE_LOG");
    if (command == NULL || command->options & CLI_RAW || !(command->options & CLI_O(LOG)))
        return true;
    if (asked == NULL)
        asked = variable != NULL && variable[0] != '\0' ? variable
                : strcmp(command->name, "agent") == 0   ? "text" /* its commands write stderr */
                                                        : "auto";
    if (rv_log_choose(asked))
        return true;
    cli_tell(cli, CLI_USAGE, "%s %s: must be text, json or auto",
             asked == variable ? "REEVE_LOG" : "--log", asked);
    return false;
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

static int words_run(struct cli *cli, int argc, char **argv)
{
    const char *log = log_asked(argc, argv); /* before the words are moved */
    struct rv_buf fault;
    rv_buf_init(&fault, FAULT_BYTES_MAX);
    int code = CLI_USAGE;
    bool read = cli_words_read(&cli->words, argc, argv, &fault);
    if (log_choose(cli, log))
        code = read ? command_run(cli)
                    : cli_tell(cli, CLI_USAGE, "%.*s", RV_STR_FMT(rv_buf_str(&fault)));
    rv_buf_done(&fault);
    return code;
}

/* Texts that found no memory are printed as nothing, and pages end early: then what was said is not
 * all there is, and a code that says otherwise would be a lie. */
static int starved_tell(const struct cli *cli, int code)
{
    if (cli->arena.refused != RV_ERR_MEMORY)
        return code;
    fflush(stdout);
    rv_log_refusal("reeve", "out of memory: the output is incomplete");
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
    int code;
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        code = cli_version(&cli);
    else
        code = words_run(&cli, argc, argv);
    code = starved_tell(&cli, code);
    rv_client_close(cli.quick);
    rv_client_close(cli.patient);
    rv_arena_done(&cli.arena);
    if (fflush(stdout) != 0 && code == CLI_DONE)
        return cli_tell(&cli, CLI_UNREACHABLE, "standard output cannot be written");
    return code;
}

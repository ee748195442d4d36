/* command_priv.h - the tables of commands and options, and how a command line is read. */
#ifndef RV_CLI_COMMAND_PRIV_H
#define RV_CLI_COMMAND_PRIV_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cli_option {
#define RV_CLI_OPTION(name, flag, value, help) CLI_OPTION_##name,
#include "cli/tbl/option.def"
#undef RV_CLI_OPTION
    CLI_OPTION_COUNT
};

#define CLI_O(name) (UINT64_C(1) << CLI_OPTION_##name)
#define CLI_COMMON (CLI_O(URL) | CLI_O(JSON) | CLI_O(HELP))
#define CLI_RAW (UINT64_C(1) << 63)
#define CLI_LOCAL (UINT64_C(1) << 62)
#define CLI_TEXT (UINT64_C(1) << 61)
enum { CLI_ARGS_MAX = 1000, CLI_TAGS_MAX = 16 };

struct cli_option_row {
    const char *flag;
    const char *value; /* NULL: takes none */
    const char *help;
};

struct cli;
struct cli_command {
    const char *name;
    const char *args;
    size_t args_min;
    size_t args_max;
    uint64_t options;
    const char *help;
    const char *more;
    int (*run)(struct cli *cli);
};

/* The options of `command`; the common ones if it is NULL. */
uint64_t cli_command_options(const struct cli_command *command);
/* Those that its help lists: a command that is CLI_LOCAL takes --url, one that is CLI_TEXT takes
 * --json, and has no use for it. */
uint64_t cli_command_shown(const struct cli_command *command);
/* By enum cli_option. */
const struct cli_option_row *cli_option_row(enum cli_option option);
/* What the option does in a command; NULL: in all. */
const char *cli_option_help(const char *command, enum cli_option option);
/* Ended by a row whose name is NULL. */
const struct cli_command *cli_commands(void);
/* NULL: no such command; *ret_near is then the closest name, or NULL. */
const struct cli_command *cli_command_find(struct rv_str name, const char **ret_near);

/* The words of a command line. */
struct cli_words {
    const struct cli_command *command; /* NULL: none was given */
    const char
        *values[CLI_OPTION_COUNT];  /* "" for a given option without a value; NULL: not given */
    const char *tags[CLI_TAGS_MAX]; /* each --tag, where it may be repeated */
    size_t tags_count;
    char **args; /* borrowed from argv, whose words are moved together; before them: the command */
    size_t args_count;
};

/* argv[0] is the program's name. Options may stand before the command and anywhere after it; `--`
 * ends them. False when the words make no sense: `fault` then has one sentence that names the place
 * and the cure; `words->command` is set if it was found. With --help, arguments may be missing. */
bool cli_words_read(struct cli_words *words, int argc, char **argv, struct rv_buf *fault);

/* Help about one command, or about all. */
void cli_help_write(struct rv_buf *buf, const struct cli_command *command);

#endif

/* run_priv.h - what every command gets, and the functions that the table of commands names. */
#ifndef RV_CLI_RUN_PRIV_H
#define RV_CLI_RUN_PRIV_H

#include "base/arena.h"
#include "cli/cli.h"
#include "cli/command_priv.h"
#include "reeve.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes (cli.h); those of errors stand in the table of base/err.h. */
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1, /* the task failed, was undone or was cancelled */
    CLI_USAGE = 2,
    CLI_NOT_FOUND = 3,
    CLI_REFUSED = 4,
    CLI_UNREACHABLE = 5,
    CLI_OPERATOR = 6 /* the task needs an operator */
};

struct cli {
    struct cli_words words;
    const struct rv_cli_server *server; /* borrowed */
    struct rv_arena arena;
    struct rv_client *quick;   /* owned; gives up at once; NULL: not needed yet */
    struct rv_client *patient; /* owned; outlives a restart of the server */
    bool terminal;             /* stdout is one */
    bool terminal_err;         /* stderr is one */
    bool colour;               /* on stdout */
    int64_t now;               /* milliseconds since 1970 */
};

static inline const char *cli_value(const struct cli *cli, enum cli_option option)
{
    return cli->words.values[option];
}

static inline bool cli_has(const struct cli *cli, enum cli_option option)
{
    return cli->words.values[option] != NULL;
}

/* "reeve COMMAND: ..." on stderr, with a newline; gives `code`. */
int cli_tell(const struct cli *cli, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The store's file: of --store, else of the variable REEVE_STORE, else ./reeve.db. */
const char *cli_store(const struct cli *cli);

/* Help about one command, or about all if NULL; DONE on stdout, else USAGE. */
int cli_help_print(const struct cli_command *command, FILE *to);

/* Whether `reeve bulk` gives this command to each task. */
bool cli_bulk_takes(const char *word);

#define RV_CLI_COMMAND(name, args, min, max, options, help, more) int cli_##name(struct cli *cli);
#include "cli/tbl/command.def"
#undef RV_CLI_COMMAND

#endif

#include "relay/relay.h"
#include "base/os/log.h"
#include "cli/server_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum { COUNTS_BYTES_MAX = 160 };

static int relay_init(struct cli *cli, const char *database)
{
    struct rv_relay_fault fault;
    bool new_file = false;
    enum rv_err err = rv_relay_init(database, &new_file, &fault);
    if (err != RV_OK)
        return cli_tell(cli, rv_err_exit(err), "%s", fault.message);
    printf("%s%s has the table reeve_outbox\n", database, new_file ? ", a new database," : "");
    return CLI_DONE;
}

/* A relay that ran for long does not wait for a reader at its end. */
static void counts_print(struct cli *cli, const struct rv_relay_counts *counts)
{
    char text[COUNTS_BYTES_MAX];
    if (cli_has(cli, CLI_OPTION_JSON))
        snprintf(text, sizeof text,
                 "{\"accepted\":%" PRIu64 ",\"known\":%" PRIu64 ",\"refused\":%" PRIu64
                 ",\"tooOld\":%" PRIu64 "}",
                 counts->accepted, counts->known, counts->refused, counts->old);
    else
        snprintf(text, sizeof text,
                 "%" PRIu64 " accepted, %" PRIu64 " already known, %" PRIu64 " refused, %" PRIu64
                 " too old",
                 counts->accepted, counts->known, counts->refused, counts->old);
    if (cli_has(cli, CLI_OPTION_ONCE))
        puts(text);
    else
        rv_log_print("%s\n", text);
}

static int relay_run(struct cli *cli, const char *database)
{
    if (!cli_address_check(cli))
        return CLI_USAGE;
    struct rv_relay_options options = {.database = database,
                                       .url = cli_value(cli, CLI_OPTION_URL),
                                       .once = cli_has(cli, CLI_OPTION_ONCE)};
    struct rv_relay_counts counts;
    struct rv_relay_fault fault;
    enum rv_err err = rv_relay_run(&options, &counts, &fault);
    bool began = counts.accepted + counts.known + counts.refused + counts.old > 0;
    if (err == RV_OK || (options.once && began))
        counts_print(cli, &counts);
    if (err != RV_OK)
        return cli_tell(cli, rv_err_exit(err), "%s", fault.message);
    if (!options.once)
        return CLI_DONE; /* what was marked was told when it was */
    int code = counts.old + counts.marked_old > 0   ? CLI_OPERATOR
               : counts.refused + counts.marked > 0 ? CLI_REFUSED
                                                    : CLI_DONE;
    if (counts.marked > counts.refused + counts.old)
        return cli_tell(cli, code,
                        "rows that an earlier run refused: %" PRIu64
                        "; the column \"error\" of each of these rows contains the reason and the "
                        "cure; apply the cure, then set \"error\" to NULL",
                        counts.marked - counts.refused - counts.old);
    return code;
}

int cli_relay(struct cli *cli)
{
    bool init = cli_has(cli, CLI_OPTION_INIT);
    bool print = cli_has(cli, CLI_OPTION_PRINT);
    bool once = cli_has(cli, CLI_OPTION_ONCE);
    if (init + print + once > 1)
        return cli_tell(cli, CLI_USAGE, "--init, --print and --once cannot be combined; give one");
    if (print) {
        printf("%s", rv_relay_sql());
        return CLI_DONE;
    }
    if (cli->words.args_count == 0)
        return cli_tell(cli, CLI_USAGE, "sqlite:PATH is missing; usage: reeve relay sqlite:PATH");
    return init ? relay_init(cli, cli->words.args[0]) : relay_run(cli, cli->words.args[0]);
}

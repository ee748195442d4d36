/* waiting_priv.h - a person at a terminal is told that a server does not answer yet. */
#ifndef RV_CLI_WAITING_PRIV_H
#define RV_CLI_WAITING_PRIV_H

#include "base/os/mailbox.h"
#include "base/os/thread.h"
#include "cli/run_priv.h"

#include <stdatomic.h>

struct cli_waiting {
    struct rv_thread thread;
    struct rv_mailbox box; /* nothing is ever put in */
    atomic_bool over;
    const char *url; /* borrowed until the end */
    bool begun;
};

/* From now on, until cli_waiting_end. Without a terminal at stderr nothing is printed. */
void cli_waiting_begin(const struct cli *cli, struct cli_waiting *waiting, const char *url);
void cli_waiting_end(struct cli_waiting *waiting);

#endif

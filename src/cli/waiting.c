#include "cli/waiting_priv.h"

#include <stdio.h>

enum { SILENT_MS = 2000 };

static void waiting_run(void *self)
{
    struct cli_waiting *waiting = self;
    void *nothing;
    (void)rv_mailbox_take(&waiting->box, &nothing, 1, SILENT_MS);
    if (!atomic_load(&waiting->over))
        fprintf(stderr, "reeve: %s has not answered yet; waiting\n", waiting->url);
}

void cli_waiting_begin(const struct cli *cli, struct cli_waiting *waiting, const char *url)
{
    waiting->url = url;
    waiting->begun = false;
    if (!cli->terminal_err)
        return;
    atomic_init(&waiting->over, false);
    rv_mailbox_init(&waiting->box, 0);
    waiting->begun = rv_thread_start(&waiting->thread, "waiting", waiting_run, waiting) == RV_OK;
    if (!waiting->begun) /* no memory: the answer comes without a word before */
        rv_mailbox_done(&waiting->box);
}

void cli_waiting_end(struct cli_waiting *waiting)
{
    if (!waiting->begun)
        return;
    atomic_store(&waiting->over, true);
    rv_mailbox_wake(&waiting->box);
    rv_thread_join(&waiting->thread);
    rv_mailbox_done(&waiting->box);
}

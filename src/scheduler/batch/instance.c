#include "scheduler/batch/instance.h"

#include "scheduler/batch/asked.h"
#include "scheduler/batch/state.h"
#include "store/store.h"

#include <string.h>

enum rv_err instance_enlist(struct rv_scheduler *s)
{
    struct rv_enlistment enlistment = {.lease_ms = s->options.role_lease_ms};
    RV_TRY(asked_enlist(s, &enlistment));
    s->enlistment = enlistment;
    s->workflows.shared = s->agents.divides = enlistment.shared;
    rv_id_maker_init(&s->ids, enlistment.instance);
    s->batch_number = 0;
    s->lease_at = s->takeover_at = s->shares_at = 0;
    s->unlisted = false;
    s->counts.open_tasks = enlistment.open_tasks;
    memcpy(s->counts.open_by_state, enlistment.open_by_state, sizeof s->counts.open_by_state);
    return RV_OK;
}

/* Where others write, too, who does not renew its lease is taken for dead. It is renewed in its
 * second half, and by a server that stops it is ended: its tasks are others' at once. */
void instance_lease_keep(struct rv_scheduler *s)
{
    bool due = s->batch.now >= s->lease_at || s->draining;
    s->batch.renew = s->enlistment.shared && due;
    s->batch.must_commit = s->batch.must_commit || s->batch.renew;
}

void instance_lease_learn(struct rv_scheduler *s)
{
    if (s->batch.renewed)
        s->lease_at = s->batch.now + s->options.role_lease_ms / 2;
}

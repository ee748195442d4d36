/* Backups: the store begins a copy of itself between two batches, and somebody else reads it. */

#include "base/assert.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"

static struct rv_str refusal_text(const struct rv_scheduler *s, enum rv_err err)
{
    if (err == RV_ERR_REFUSED)
        return RV_STR("another backup is running: try again after it has ended. If its client has "
                      "stopped reading, it ends within 20 s");
    if (err == RV_ERR_UNSUPPORTED)
        return RV_STR("this server's store is not a file: use the backup tools of its database");
    if (err == RV_ERR_FULL)
        return RV_STR("the disk of the state store is full: free some space, then try again");
    return err == RV_ERR_DISPLACED ? place_why(s) : rv_str_of(rv_err_text(err));
}

static void backup_act(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_backup *backup = &p->call->u.backup;
    enum rv_err err = RV_ERR_UNSUPPORTED;
    if (s->options.copies.open != NULL)
        err = s->options.copies.open(s->options.copies.self, &backup->copy);
    pending_unlink(&s->batch.calls, p);
    if (err != RV_OK) {
        pending_finish(s, p, err, refusal_text(s, err));
        return;
    }
    rv_assert(backup->copy != NULL);
    log_event_number(s, RV_LOG_INFO, "backup", "bytes", backup->copy->bytes);
    pending_finish(s, p, RV_OK, RV_STR_NONE);
}

const struct call_ops backup_ops = {
    .decide = answers_later_decide, .act = backup_act, .asks = true};

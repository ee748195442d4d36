/* The scheduler's thread waits as long as its store needs for an answer: for the outcome of a
 * commit a minute (store.h, committed). Other threads are told until when calls may wait with it,
 * and refuse those that it has not taken. A call in the batch is answered when the outcome is
 * known.
 *
 * It counts as waiting too long once the time is an absence in any case (absence.c). So an attempt
 * of its own tasks that ends while its reply is refused is nobody's failure. */
#include "scheduler/batch/asked.h"

#include "scheduler/batch/absence.h"
#include "scheduler/batch/state.h"
#include "store/store.h"

/* The store's clock may go a little slower than the monotonic one (base/slew.h). */
enum { AWAY_SLACK_MS = 100 };

/* A store of this server alone waits for nobody. */
static void ask(const struct rv_scheduler *s)
{
    const struct rv_scheduler_waits *waits = &s->options.waits;
    int64_t now = state_mono_now(s, s->batch.mono_now);
    if (s->enlistment.shared && waits->tell != NULL)
        waits->tell(waits->self, now + absence_ms(s) + AWAY_SLACK_MS);
}

static enum rv_err answered(const struct rv_scheduler *s, enum rv_err err)
{
    const struct rv_scheduler_waits *waits = &s->options.waits;
    if (s->enlistment.shared && waits->tell != NULL)
        waits->tell(waits->self, INT64_MAX);
    return err;
}

enum rv_err asked_enlist(struct rv_scheduler *s, struct rv_enlistment *ret_enlistment)
{
    ask(s);
    return answered(
        s, s->store->ops->enlist(s->store, rv_str_of(s->boot), s->options.pid, ret_enlistment));
}

enum rv_err asked_begin(struct rv_scheduler *s, struct rv_wants *load, int64_t *ret_now)
{
    ask(s);
    return answered(s, s->store->ops->begin(s->store, load, ret_now));
}

enum rv_err asked_load(struct rv_scheduler *s, struct rv_wants *load)
{
    ask(s);
    return answered(s, s->store->ops->load(s->store, load));
}

enum rv_err asked_commit(struct rv_scheduler *s, struct rv_batch *batch)
{
    ask(s);
    return answered(s, s->store->ops->commit(s->store, batch));
}

enum rv_err asked_committed(struct rv_scheduler *s, int64_t number, bool *ret_committed)
{
    ask(s);
    return answered(s, s->store->ops->committed(s->store, number, ret_committed));
}

/* The files of the store may be deleted, moved or replaced under the server. What is written from
 * then on may end with the process: an operator is told, and nobody is promised a new task. Work
 * under way goes on, since what it writes is saved with the rest. */
#include "base/assert.h"
#include "base/time.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/duties/duty.h"
#include "scheduler/duties/place.h"

enum rv_err place_look(struct rv_scheduler *s)
{
    struct place *place = &s->place;
    const struct rv_scheduler_files *files = &s->options.files;
    if (files->look == NULL || s->batch.mono_now < place->look_at)
        return RV_OK;
    enum rv_err before = place->err, err = files->look(files->self, &place->why);
    place->look_at = s->batch.mono_now + s->options.scan_interval_ms;
    if (err != RV_OK && err != RV_ERR_FULL && err != RV_ERR_DISPLACED)
        return err;
    place->err = err;
    rv_assert(place->look_at >= s->batch.mono_now);
    if (err != before)
        place->untold = err == RV_ERR_DISPLACED;
    if (err != before)
        place->tell_at = 0;
    return RV_OK;
}

/* The store was the first to see it: what it says of it is asked for at once. */
enum rv_err place_learn(struct rv_scheduler *s, enum rv_err err)
{
    if (err != RV_ERR_DISPLACED || s->place.err == err)
        return err;
    s->place.look_at = 0;
    enum rv_err looked = place_look(s);
    return looked == RV_OK ? err : looked;
}

void place_refuse(struct rv_scheduler *s)
{
    struct pending *next;
    for (struct pending *p = s->batch.calls.first; p != NULL; p = next) {
        next = p->next;
        if (s->place.err != RV_ERR_DISPLACED || !p->ops->begins)
            continue;
        pending_unlink(&s->batch.calls, p);
        pending_finish(s, p, RV_ERR_DISPLACED, rv_str_of(s->place.why));
    }
}

/* What cannot be written now is tried once in a scan interval: a batch that it makes fail answers
 * nobody. */
static enum rv_err place_plan(struct rv_scheduler *s)
{
    rv_assert(!s->place.untold || s->place.err == RV_ERR_DISPLACED);
    if (!s->place.untold || s->batch.mono_now < s->place.tell_at)
        return RV_OK;
    rv_assert(!s->batch.place_told);
    s->place.tell_at = s->batch.mono_now + s->options.scan_interval_ms;
    char at[RV_INSTANT_TEXT_BYTES];
    struct rv_alert alert = {
        .id = rv_id_make(&s->ids, s->batch.now).value,
        .kind = RV_ALERT_REPORTED,
        .raised_at = s->batch.now,
        .message = rv_str_of(s->place.why),
        .source = rv_arena_printf(s->batch.arena, "reeve store %s",
                                  rv_instant_text(s->batch.now, at).at),
    };
    if (alert.source.at == NULL)
        return RV_ERR_MEMORY;
    s->batch.raises[s->batch.raises_count++] = (struct rv_raise){.alert = alert,
                                                                 .to = state_alerts_to(s)};
    s->batch.place_told = true;
    return RV_OK;
}

static void place_act(struct rv_scheduler *s)
{
    rv_assert(!s->batch.place_told || s->place.untold);
    if (s->batch.place_told && s->batch.taskless == RV_OK)
        s->place.untold = false;
}

/* Neither a full disk nor what else passes hides that the files are gone; IO ends the process. */
enum rv_err place_heed(const struct rv_scheduler *s, enum rv_err err)
{
    if (s->place.err == RV_ERR_DISPLACED && err != RV_ERR_IO)
        return s->place.err;
    if (err != RV_OK && err != RV_ERR_FULL)
        return err;
    return err == RV_ERR_FULL || s->full ? RV_ERR_FULL : s->place.err;
}

const struct duty place_duty = {.plan = place_plan, .act = place_act};

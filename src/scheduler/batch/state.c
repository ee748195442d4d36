#include "scheduler/batch/state.h"

#include "base/assert.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/own.h"

int64_t state_again_at(const struct rv_scheduler *s)
{
    return s->batch.now + s->options.scan_interval_ms / REFUSED_REST_PART;
}

void state_look_again(struct rv_scheduler *s, struct rv_task_id id, int64_t at)
{
    enum rv_err err = rv_supervisor_note(&s->supervisor, id, at);
    if (err == RV_OK)
        return;
    err = rv_supervisor_note(&s->supervisor, id, 0);
    rv_assert(err == RV_OK);
    own_doubt(s, id);
    log_event_text(s, RV_LOG_ERROR, "cache", "error", RV_STR("out of memory"));
}

int64_t state_mono_now(const struct rv_scheduler *s, int64_t otherwise)
{
    const struct rv_scheduler_mono *mono = &s->options.mono;
    return mono->now != NULL ? mono->now(mono->self) : otherwise;
}

int64_t counts_clock(const struct rv_scheduler *s)
{
    return s->options.mono.now_us ? s->options.mono.now_us(s->options.mono.self) : 0;
}

const struct rv_delivery *state_alerts_to(const struct rv_scheduler *s)
{
    return s->alerts_to.url.at != NULL ? &s->alerts_to : NULL;
}

struct rv_str place_why(const struct rv_scheduler *s)
{
    return rv_str_of(s->place.err == RV_ERR_DISPLACED ? s->place.why
                                                      : rv_err_text(RV_ERR_DISPLACED));
}

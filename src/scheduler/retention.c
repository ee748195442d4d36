/* The retention rule (decision 015): finished tasks are deleted a while after their end. The server
 * of the supervisor does it, a small piece with a batch now and then, so that no batch is held up;
 * the store decides which tasks it takes, inside the transaction, so that one that was opened again
 * stays. */
#include "scheduler/scheduler_priv.h"

#include "base/time.h"

enum {
    ROWS_MAX = 128,   /* of a piece: about half a millisecond */
    PAUSE_MS = 10,    /* between two pieces */
    ROUND_PART = 100, /* a round begins after this part of the time */
    ROUND_MS_MAX = 60 * RV_SECOND_MS,
    ROUND_MS_MIN = RV_SECOND_MS,
    GONE_MS_MIN = 3600 * RV_SECOND_MS
};

/* How long a submitter may repeat himself, at least (RULES 1). */
static const int64_t keys_ms_min = 30 * (int64_t)RV_DAY_MS;

int64_t retention_round_ms(const struct rv_scheduler *s)
{
    int64_t part = s->options.retain_ms / ROUND_PART;
    return part < ROUND_MS_MIN ? ROUND_MS_MIN : part > ROUND_MS_MAX ? ROUND_MS_MAX : part;
}

void retention_hold(struct rv_scheduler *s, int64_t gone_ms)
{
    if (gone_ms >= GONE_MS_MIN)
        s->retention.next_at = rv_time_add(s->batch.now, gone_ms < RV_DAY_MS ? gone_ms : RV_DAY_MS);
}

static bool retains(const struct rv_scheduler *s)
{
    return s->options.retain_ms != 0 && s->supervisor.epoch != 0;
}

void retention_plan(struct rv_scheduler *s)
{
    struct retention *retention = &s->retention;
    struct rv_sweep *sweep = &retention->sweep;
    int64_t now = s->batch.now, retain_ms = s->options.retain_ms;
    if (!retains(s) || now < retention->next_at)
        return;
    int64_t keys_ms = retain_ms > keys_ms_min ? retain_ms : keys_ms_min;
    sweep->ended_by = now - retain_ms;
    sweep->keys_by = now - keys_ms;
    sweep->rows_max = ROWS_MAX;
    sweep->epoch = s->supervisor.epoch;
    s->batch.sweep = sweep;
    retention->next_at = now + retention_round_ms(s); /* should the store not take it */
}

static void round_log(struct rv_scheduler *s)
{
    struct retention *retention = &s->retention;
    if (retention->tasks_gone + retention->keys_gone > 0)
        log_event(s, RV_LOG_INFO, "retention",
                  rv_arena_printf(s->batch.arena, "{\"tasks\":%zu,\"keys\":%zu}",
                                  retention->tasks_gone, retention->keys_gone));
    retention->tasks_gone = retention->keys_gone = 0;
}

void retention_act(struct rv_scheduler *s)
{
    struct retention *retention = &s->retention;
    const struct rv_sweep *sweep = s->batch.sweep;
    if (sweep == NULL)
        return;
    if (!s->batch.swept || sweep->outcome != RV_OK) { /* from the first one again */
        retention->sweep.tasks_after = retention->sweep.keys_after = (struct rv_task_id){0};
        if (s->batch.swept)
            rv_supervisor_unclaim(&s->supervisor);
        return;
    }
    retention->tasks_gone += sweep->tasks_gone;
    retention->keys_gone += sweep->keys_gone;
    if (sweep->tasks_after.value != 0 || sweep->keys_after.value != 0)
        retention->next_at = s->batch.now + PAUSE_MS;
    else
        round_log(s);
}

int64_t retention_next_at(const struct rv_scheduler *s)
{
    return retains(s) ? s->retention.next_at : INT64_MAX;
}

/* The retention rule (decision 015): finished tasks are deleted a while after their end. The
 * server of the supervisor does it, a piece with a batch now and then. A piece is measured: its
 * time is a share of that which has passed since the one before, so that the rule is as fast as
 * the server and nobody waits much longer because of it. The store decides which tasks it takes,
 * inside the transaction, so that one that was opened again stays. */
#include "scheduler/scheduler_priv.h"

#include "base/time.h"

enum {
    ROWS_MAX = 4096,     /* of a piece, however fast */
    PIECE_US_MIN = 1000, /* less is not worth its sync */
    PIECE_US_MAX = 5000,
    SHARE_MIN = 30, /* percent, see share_of */
    SHARE_MAX = 50,
    US_PER_MS = 1000,
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

/* Time for the retention rule, in percent of what everything else has. It grows with the age of the
 * round: one that is older than the time between two rounds does not keep up with what ends. */
static int64_t share_of(const struct rv_scheduler *s)
{
    int64_t age = s->batch.now - s->retention.round_at, round = retention_round_ms(s);
    return SHARE_MIN + (SHARE_MAX - SHARE_MIN) * (age < round ? age : round) / round;
}

/* What has ended by now is what the round is about: it comes to its end however much ends
 * meanwhile. */
static void round_begin(struct rv_scheduler *s)
{
    struct retention *retention = &s->retention;
    int64_t now = s->batch.now, retain_ms = s->options.retain_ms;
    int64_t keys_ms = retain_ms > keys_ms_min ? retain_ms : keys_ms_min;
    retention->walking = true;
    retention->round_at = now;
    retention->piece_us = counts_clock(s);
    retention->sweep = (struct rv_sweep){.ended_by = now - retain_ms,
                                         .keys_by = now - keys_ms,
                                         .rows_max = ROWS_MAX,
                                         .now_us = s->options.mono.now_us,
                                         .self = s->options.mono.self};
}

void retention_plan(struct rv_scheduler *s)
{
    struct retention *retention = &s->retention;
    struct rv_sweep *sweep = &retention->sweep;
    if (!retains(s) || s->batch.now < retention->next_at)
        return;
    if (!retention->walking)
        round_begin(s);
    int64_t us = (counts_clock(s) - retention->piece_us) * share_of(s) / 100;
    sweep->us_max = us < PIECE_US_MIN ? PIECE_US_MIN : us > PIECE_US_MAX ? PIECE_US_MAX : us;
    sweep->epoch = s->supervisor.epoch;
    s->batch.sweep = sweep;
    /* should the store not take it */
    retention->next_at = s->batch.now + retention_round_ms(s);
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
        retention->walking = false;
        if (s->batch.swept)
            rv_supervisor_unclaim(&s->supervisor);
        return;
    }
    retention->tasks_gone += sweep->tasks_gone;
    retention->keys_gone += sweep->keys_gone;
    retention->walking = !sweep->tasks_over || !sweep->keys_over;
    retention->piece_us = counts_clock(s);
    int64_t rest_ms = sweep->took_us * 100 / share_of(s) / US_PER_MS;
    int64_t rest_at = s->batch.now + (rest_ms > 0 ? rest_ms : 1);
    int64_t round_at = retention->round_at + retention_round_ms(s);
    retention->next_at = retention->walking || round_at < rest_at ? rest_at : round_at;
    if (!retention->walking)
        round_log(s);
}

int64_t retention_next_at(const struct rv_scheduler *s)
{
    return retains(s) ? s->retention.next_at : INT64_MAX;
}

/* The wall clock beside the store's (RULES 9). The store's goes on evenly, so a jump of the wall
 * clock changes nothing that is due; an operator is told of it, for what is shown stays off by as
 * much. */
#include "base/assert.h"
#include "base/time.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/state.h"
#include "scheduler/duties/clock.h"
#include "scheduler/duties/duty.h"

enum { JUMP_MS = 10 * RV_SECOND_MS, ALERT_EVERY_MS = 3600 * RV_SECOND_MS };

static struct rv_str clock_message(struct rv_scheduler *s, int64_t ahead)
{
    return rv_arena_printf(s->batch.arena,
                           "the wall clock has jumped: it is %lld s %s the store's clock, which "
                           "does not jump but approaches the wall clock by 0.5 ms per second. "
                           "Correct the machine's clock. If the machine's clock is correct, %s",
                           (long long)(ahead > 0 ? ahead : -ahead) / RV_SECOND_MS,
                           ahead > 0 ? "ahead of" : "behind",
                           ahead > 0 ? "restart the server, which then uses the wall clock"
                                     : "stop the server and run `reeve clock reset --store FILE`");
}

void clock_note(struct rv_scheduler *s)
{
    int64_t ahead = s->store->wall_ahead_ms;
    int64_t moved = ahead - s->wall_ahead_ms;
    if (moved < JUMP_MS && moved > -JUMP_MS)
        return;
    s->wall_ahead_ms = ahead;
    s->clock_alert = ahead >= JUMP_MS || ahead <= -JUMP_MS;
    struct log_fields line = {.count = 0};
    log_number(&line, "ms", moved);
    log_number(&line, "aheadMs", ahead);
    log_event(s, RV_LOG_WARNING, "clock-jump", &line);
}

static enum rv_err clock_plan(struct rv_scheduler *s)
{
    if (!s->clock_alert || s->batch.mono_now < s->clock_alert_at)
        return RV_OK;
    rv_assert(s->wall_ahead_ms >= JUMP_MS || s->wall_ahead_ms <= -JUMP_MS);
    rv_assert(!s->batch.clock_told);
    char at[RV_INSTANT_TEXT_BYTES];
    struct rv_alert alert = {
        .id = rv_id_make(&s->ids, s->batch.now).value,
        .kind = RV_ALERT_REPORTED,
        .raised_at = s->batch.now,
        .message = clock_message(s, s->wall_ahead_ms),
        .source = rv_arena_printf(s->batch.arena, "reeve clock %s",
                                  rv_instant_text(s->batch.now, at).at),
    };
    if (alert.message.at == NULL || alert.source.at == NULL)
        return RV_ERR_MEMORY;
    s->batch.raises[s->batch.raises_count++] = (struct rv_raise){.alert = alert,
                                                                 .to = state_alerts_to(s)};
    s->batch.clock_told = true;
    return RV_OK;
}

static void clock_act(struct rv_scheduler *s)
{
    if (!s->batch.clock_told || s->batch.taskless != RV_OK)
        return;
    rv_assert(s->clock_alert);
    s->clock_alert = false;
    s->clock_alert_at = s->batch.mono_now + ALERT_EVERY_MS;
}

const struct duty clock_duty = {.plan = clock_plan, .act = clock_act};

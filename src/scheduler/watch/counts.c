/* Numbers for whoever watches the server: learned from what a batch has changed, once it is
 * committed, and read as a snapshot by a call like any other. */
#include "scheduler/watch/counts.h"

#include "base/assert.h"
#include "base/limits.h"
#include "core/tags.h"
#include "dispatch/kind.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/watch/failures.h"
#include "scheduler/watch/log.h"

static int64_t us_between(int64_t from_ms, int64_t until_ms)
{
    return from_ms > 0 && until_ms > from_ms ? (until_ms - from_ms) * 1000 : 0;
}

static void attempt_count(struct rv_counts *counts, enum rv_attempt_state state, int64_t from,
                          int64_t until)
{
    rv_assert(state < RV_ATTEMPT_STATE_COUNT);
    counts->attempts_ended[state]++;
    rv_histogram_add(&counts->attempt, us_between(from, until));
}

static void step_count(struct rv_counts *counts, const struct work_step *step)
{
    const struct rv_step *row = step->row;
    if (!step->dirty || row->kind != RV_KIND_CALL || row->attempt == 0)
        return;
    if (row->attempt > step->was_attempt) {
        counts->attempts_begun += row->attempt - step->was_attempt;
        rv_histogram_add(&counts->hand_out_wait, us_between(row->ready_at, row->attempt_at));
    }
    if (!rv_attempt_state_live(row->attempt_state) && attempt_ended_now(step, row->attempt))
        attempt_count(counts, row->attempt_state, row->attempt_at, row->attempt_ended_at);
}

/* It has failed on its way forward, or its undo has. */
static bool has_failed(const struct work *work)
{
    rv_assert(work->task != NULL);
    enum rv_task_state before = work->state_before, now = work->task->state;
    bool forward = before == RV_TASK_PENDING || before == RV_TASK_PROCESSING;
    if (before == now)
        return false;
    return now == RV_TASK_ERROR ||
           (forward && !work->task->cancelling && work->task->error.at != NULL &&
            (now == RV_TASK_COMPENSATING || now == RV_TASK_COMPENSATED ||
             now == RV_TASK_CANCELLED));
}

/* The type of the error at which it stands. A task that is escalated because its rows are of no use
 * may have an older one: the alert tells why. */
static enum rv_err cause_read(struct rv_scheduler *s, const struct work *work,
                              struct rv_str *ret_type)
{
    for (size_t i = 0; work->task->state == RV_TASK_ERROR && i < work->alerts_count; i++) {
        enum rv_alert_kind kind = work->alerts[i].kind;
        if (kind == RV_ALERT_UNREADABLE || kind == RV_ALERT_OFFENDER) {
            *ret_type = rv_str_of(rv_alert_kind_text(kind));
            return RV_OK;
        }
    }
    return rv_error_type(s->batch.arena, rv_task_error(work->task), ret_type);
}

/* A task that fails, or that is undone, is counted and leaves a line in the log. */
static void ends_learn(struct rv_scheduler *s, const struct work *work)
{
    enum rv_task_state state = work->task->state;
    struct rv_str type = RV_STR_NONE;
    struct rv_arena_mark mark = rv_arena_mark(s->batch.arena);
    bool logged = state == RV_TASK_ERROR || state == RV_TASK_COMPENSATED ||
                  state == RV_TASK_CANCELLED;
    bool failed = has_failed(work);
    bool moved = state != work->state_before;
    if ((failed || (moved && logged)) && cause_read(s, work, &type) != RV_OK)
        type = RV_STR_NONE;
    if (failed)
        failure_note(s->failures, type, s->batch.now);
    if (moved && logged)
        log_ended(s, work, type);
    rv_arena_release(s->batch.arena, mark);
}

void counts_learn(struct rv_scheduler *s, struct work *work)
{
    struct rv_counts *counts = &s->counts;
    for (size_t i = 0; i < work->steps_count; i++)
        step_count(counts, &work->steps[i]);
    for (size_t i = 0; i < work->attempts_count; i++) {
        const struct rv_attempt *row = &work->attempts[i];
        const struct work_step *step = work_step_of(work, row->step.number);
        if (step != NULL && attempt_ended_now(step, row->number))
            attempt_count(counts, row->state, row->attempt_at, row->ended_at);
    }
    for (size_t i = 0; i < work->alerts_count; i++)
        counts->alerts[work->alerts[i].kind]++;
    counts->findings += work->found;
    rv_assert(work->changed);
    rv_assert(work->task->state < RV_TASK_STATE_COUNT);
    rv_assert(work->state_before < RV_TASK_STATE_COUNT);
    bool open = rv_task_state_open(work->task->state);
    if (!open && (work->was_open || work->revision_before == 0))
        counts->tasks_ended[work->task->state]++;
    counts->open_tasks += (int)open - (int)work->was_open;
    counts->open_by_state[work->state_before] -= work->was_open;
    counts->open_by_state[work->task->state] += open;
    ends_learn(s, work);
}

void counts_submissions(struct rv_scheduler *s, const struct rv_call_submit *submit)
{
    for (size_t i = 0; i < submit->count; i++) {
        const struct rv_submission *item = &submit->items[i];
        s->counts.submissions_refused += item->err != RV_OK;
        s->counts.submissions_known += item->err == RV_OK && item->known;
        s->counts.submissions_accepted += item->err == RV_OK && !item->known;
    }
}

void counts_replies(struct rv_scheduler *s, const struct rv_call_replies *replies)
{
    for (size_t i = 0; i < replies->count; i++) {
        const struct rv_reply_item *item = &replies->items[i];
        s->counts.replies_taken += item->status == 200;
        s->counts.replies_refused += item->status != 200;
        if (!item->counted || !item->failed ||
            (item->reply.circuit_open && item->reply.effect == RV_EFFECT_NONE))
            continue;
        s->counts.failures_transient += item->reply.transient;
        s->counts.failures_permanent += !item->reply.transient;
    }
}

const struct rv_counts *rv_scheduler_counts(const struct rv_scheduler *s)
{
    return &s->counts;
}

void counts_batch(struct rv_scheduler *s, size_t calls, int64_t begun_us, bool refused)
{
    s->counts.circuits = s->agents.circuits_count;
    s->counts.suspended = (int64_t)s->suspended.count;
    if (s->failures->since == 0)
        s->failures->since = s->batch.now;
    if (calls == 0 && !s->batch.wrote && !refused)
        return; /* it only looked at the clock */
    s->counts.batches++;
    s->counts.batches_refused += refused;
    s->counts.calls += calls;
    rv_histogram_add(&s->counts.batch, counts_clock(s) - begun_us);
}

bool rv_scheduler_queue(const struct rv_scheduler *s, size_t place, struct rv_str *ret_agent,
                        size_t *ret_waiting, int64_t *ret_since)
{
    const struct agent_kind *kind = s->agents.kinds;
    for (; kind != NULL && place > 0; place--)
        kind = kind->next;
    if (kind == NULL)
        return false;
    *ret_agent = rv_str_of(kind->name);
    kind_waiting(kind, ret_waiting, ret_since);
    return true;
}

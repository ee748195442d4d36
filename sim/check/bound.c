/* What is owed within a bound. A step waits for a server that is there: the server's own absence,
 * and batches that the store refused, are nobody's delay. So time is counted between batches that
 * followed each other well, and batches are counted too, since one takes up only so many due tasks
 * (findings_max) and so many rows of the walk after a start (scan_rows).
 *
 * Of several servers the one that holds the supervisor's role is looked at: what is silent is its
 * to end, and of the polls those that wait with it. Whether another one has heard of a step that is
 * ready is not known here: it looks once a scan. The scenarios have a bound of their own (E-05). */
#include "sim/check/check.h"

#include "base/time.h"
#include "sim/check/bound.h"
#include "sim/check/line.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { LOOK_MS = 200, SLACK_MS = 1000, BATCHES_SLACK = 4, TAKERS_MAX = 16 };
/* Where turns are smaller than a seed draws them, or expressions take long in small turns, the
 * decisions of all open tasks take more batches. */
enum { DECISION_FUEL = 10000, LARGE_FUEL = 100000, HEAVY_TURNS = 60 };

/* Kinds of agents of which a poll waits at the server: somebody is free. */
struct takers {
    uint64_t kinds[TAKERS_MAX];
    size_t count;
};

void bound_start(struct world *w)
{
    w->bounds.started = w->bounds.attended;
    w->bounds.seen_at = 0;
}

void bound_led(struct world *w)
{
    w->bounds.led = w->bounds.attended.batches;
}

static void takers_find(const struct server *s, struct takers *takers)
{
    takers->count = 0;
    for (const struct served *served = s->out; served != NULL; served = served->next) {
        const struct rv_poll *poll = call_poll(&served->call);
        bool waits = poll != NULL && served->taken && poll->max > 0 && poll->requests_count == 0;
        if (waits && served->call.kind == RV_CALL_POLL && takers->count < TAKERS_MAX)
            takers->kinds[takers->count++] = history_hash(poll->agent);
    }
}

static bool is_free(const struct takers *takers, uint64_t kind)
{
    for (size_t i = 0; i < takers->count; i++)
        if (takers->kinds[i] == kind)
            return true;
    return false;
}

uint64_t check_turns(const struct world *w)
{
    const struct knobs *k = &w->knobs;
    uint64_t open = (uint64_t)w->history->open;
    if (k->turn_fuel == 0 || k->turn_fuel >= DECISION_FUEL) /* 0: the server's own */
        return 0;
    /* A task that keeps hundreds of steps takes as much. */
    return open * (LARGE_FUEL / k->turn_fuel) + (k->heavy ? open * HEAVY_TURNS : 0);
}

/* Whether it lasts longer than the bound: a lease of the supervisor's role, two scans, the batches
 * that all open tasks may take before it and, where a batch takes few bytes, one for each call that
 * the server has and each open task: a large reply waits for its turn, and a batch hands out little
 * more than one request (decision 020). */
static bool lasts(struct world *w, bool is_so, struct reading *since)
{
    const struct bounds *b = &w->bounds;
    const struct knobs *k = &w->knobs;
    if (!is_so)
        *since = (struct reading){0};
    if (is_so && since->batches == 0)
        *since = b->attended;
    if (!is_so)
        return false;
    struct reading from = *since;
    if (from.batches < b->started.batches)
        from = b->started;
    if (from.batches < b->led) /* the lease of the role is in the time, not in the batches */
        from.batches = b->led;
    uint64_t open = (uint64_t)w->history->open;
    uint64_t batches = BATCHES_SLACK + open / k->scan_rows + 2 * open / k->findings_max + b->behind;
    batches += check_turns(w);
    int64_t ms = (int64_t)k->role_ms + 2 * (int64_t)k->scan_ms + SLACK_MS;
    return b->attended.batches - from.batches > batches && b->attended.ms - from.ms > ms;
}

/* I-21: an open attempt whose agent is silent ends when its lease does, or its complete-by, within
 * a lease of the supervisor's role and two scans; one that was revoked when its complete-by
 * passes. The bound begins when all that arrived before that end has been taken by a batch: a
 * server that is behind its callers does not know before who is silent. Where a timeout of the
 * workflow has passed too, one decision follows both, and waits for the later one (RULES 3). */
static void check_overdue(struct world *w, struct step_past *step)
{
    const struct rv_step *row = &step->row;
    int64_t at = row->attempt_state == RV_ATTEMPT_REVOKED ? row->complete_by : row->lease_until;
    if (row->deadline > at && row->deadline <= w->bounds.seen_at)
        at = row->deadline;
    bool overdue = rv_attempt_state_live(row->attempt_state) && at < w->bounds.heard_at;
    if (lasts(w, overdue, &step->overdue))
        world_violate(w, "I-21", "step %u: attempt %u should have ended %lld ms ago", row->number,
                      row->attempt, (long long)(w->bounds.seen_at - at));
}

/* I-23: a step that is ready is handed out while an agent of its kind is free and asks, within the
 * same bound, unless its task is suspended, or a limit or an open circuit may hold it back; but
 * no circuit where an operator insists. (What long decisions of others may delay is I-37.) */
static void check_offered(struct world *w, const struct task_past *task, struct step_past *step,
                          const struct takers *takers)
{
    const struct rv_step *row = &step->row;
    bool ready = row->kind == RV_KIND_CALL && row->state == RV_STEP_PENDING &&
                 task->row.suspended_at == 0 && row->ready_at < w->bounds.seen_at &&
                 is_free(takers, step->agent) && !limiter_limits(w, step->agent);
    bool held_back = !row->insist && check_circuit_holds(w, step);
    if (lasts(w, ready && !held_back, &step->waits))
        world_violate(w, "I-23", "step %u is ready since %lld ms, and an agent waits for work",
                      row->number, (long long)(w->bounds.seen_at - row->ready_at));
}

static void look(struct world *w, const struct server *s)
{
    struct takers takers;
    takers_find(s, &takers);
    for (size_t i = 0; i < w->history->count && w->violated == NULL; i++) {
        struct task_past *task = w->history->all[i];
        for (uint32_t n = 0; n < task->row.open_count && !task->unreadable; n++) {
            struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL)
                continue;
            w->concerned = task->row.id;
            check_overdue(w, step);
            if (task->row.state != RV_TASK_ERROR)
                check_offered(w, task, step, &takers);
        }
    }
    if (w->violated == NULL)
        w->concerned = (struct rv_task_id){0};
}

/* The one that is looked at; a new holder of the role begins with a walk over all open rows. While
 * the role is a dead process's, or cannot be written, nobody's attempts end (I-22 bounds that). */
static bool is_attended(struct world *w, const struct server *s)
{
    if (w->scenario != NULL || !history_supervises(w, s))
        return false;
    if (w->bounds.supervisor != w->history->held_by && w->knobs.servers > 1)
        bound_start(w);
    w->bounds.supervisor = w->history->held_by;
    return true;
}

static uint64_t calls_of(const struct server *s)
{
    uint64_t count = 0;
    for (const struct served *served = s->out; served != NULL; served = served->next)
        count++;
    return count;
}

void bound_batch(struct world *w, const struct server *s, bool good)
{
    struct bounds *b = &w->bounds;
    int64_t most = (int64_t)w->knobs.scan_ms + SLACK_MS / 2; /* longer is an absence */
    if (!is_attended(w, s))
        return;
    if (!good) {
        line_batch(w, false);
        b->seen_at = 0;
        return;
    }
    int64_t gone = b->seen_at != 0 ? s->store_now - b->seen_at : 0;
    if (gone > 0 && gone <= most)
        b->attended.ms += gone;
    b->attended.batches++;
    b->seen_at = s->store_now;
    b->heard_at = s->store_now - (s->begun_at - s->heard_until);
    line_batch(w, true);
    if (w->now - b->looked_at < LOOK_MS)
        return;
    b->looked_at = w->now;
    b->behind = check_few_bytes(w) ? calls_of(s) + (uint64_t)w->history->open : 0;
    look(w, s);
}

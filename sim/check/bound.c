/* What is owed within a bound. A step waits for a server that is there: the server's own absence,
 * and batches that the store refused, are nobody's delay. So time is counted between batches that
 * followed each other well, and batches are counted too, since one takes up only so many due tasks
 * (findings_max) and so many rows of the walk after a start (scan_rows).
 *
 * Each server attends to the tasks that it owns, and to the polls that wait at it, whoever owns the
 * steps. The scenarios have a bound of their own (E-05). */
#include "sim/check/check.h"

#include "base/time.h"
#include "sim/check/bound.h"
#include "sim/check/line.h"
#include "sim/store/database.h"
#include "sim/store/memory/memory.h"
#include "sim/store/tap.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { LOOK_MS = 200, HEARD_MS = 250, SLACK_MS = 1000, BATCHES_SLACK = 4, TAKERS_MAX = 16 };
enum { SLOW_COMMIT_MS = 5000 };
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
    for (uint32_t i = 0; i < w->knobs.servers; i++) {
        w->servers[i].attention.started = w->servers[i].attention.attended;
        w->servers[i].attention.seen_at = 0;
    }
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

/* Whether it lasts longer than the bound: a lease of a server, two scans, the batches that all open
 * tasks may take before it and, where a batch takes few bytes, one for each call that the server
 * has and each open task: a large reply waits for its turn, and a batch hands out little more than
 * one request (decision 020). */
bool bound_lasts(struct world *w, const struct server *s, bool is_so, struct reading *since,
                 int64_t more_ms)
{
    const struct attention *a = &s->attention;
    const struct knobs *k = &w->knobs;
    if (!is_so)
        *since = (struct reading){0};
    if (is_so && since->batches == 0)
        *since = a->attended;
    if (!is_so)
        return false;
    struct reading from = *since;
    if (from.batches < a->started.batches)
        from = a->started;
    uint64_t open = (uint64_t)w->history->open;
    /* If the store answers late, an end within its answer time is checked again. */
    uint64_t looks = (database_shared(w) ? 4 : 2) * open / k->findings_max;
    uint64_t batches = BATCHES_SLACK + open / k->scan_rows + looks + a->behind;
    batches += check_turns(w);
    int64_t ms = (int64_t)k->role_ms + 2 * (int64_t)k->scan_ms + SLACK_MS + more_ms;
    return a->attended.batches - from.batches > batches && a->attended.ms - from.ms > ms;
}

static bool lasts(struct world *w, const struct server *s, bool is_so, struct reading *since)
{
    return bound_lasts(w, s, is_so, since, 0);
}

static bool owns(const struct world *w, const struct server *s, const struct rv_task *task)
{
    return !database_shared(w) ||
           task->locked_by == rv_scheduler_enlistment(s->scheduler)->instance;
}

/* A server that is frozen in the middle of a transaction has claimed the task: nobody else can,
 * until its lease is over. */
static bool is_frozen(const struct world *w, const struct server *s, struct rv_task_id task)
{
    const struct rv_store_memory_data *data = w->database->data;
    uint8_t by = database_shared(w) ? rv_store_memory_claimant(data, task) : 0;
    for (uint32_t i = 0; by != 0 && i < w->knobs.servers; i++) {
        const struct server *other = &w->servers[i];
        if (other->up && other->paused_until > w->now &&
            rv_scheduler_enlistment(other->scheduler)->instance == by)
            return rv_store_memory_lives(data, by, s->attention.seen_at);
    }
    return false;
}

/* I-21: an open attempt whose agent is silent ends when its lease does, or its complete-by, within
 * a lease of the supervisor's role and two scans; one that was revoked when its complete-by
 * passes; a step that waits for an agent when its timeout does. The bound begins when all that
 * arrived before that end has been taken by a batch: a server that is behind its callers does not
 * know before who is silent. Where a timeout of the workflow has passed too, one decision follows
 * both, and waits for the later one (RULES 3). */
static void check_overdue(struct world *w, const struct server *s, const struct rv_task *task,
                          struct step_past *step)
{
    const struct attention *a = &s->attention;
    const struct rv_step *row = &step->row;
    bool live = rv_attempt_state_live(row->attempt_state);
    bool waits = row->kind == RV_KIND_CALL && row->state == RV_STEP_PENDING && row->deadline != 0 &&
                 task->suspended_at == 0;
    int64_t at = row->attempt_state == RV_ATTEMPT_REVOKED ? row->complete_by : row->lease_until;
    if (!live || (row->deadline > at && row->deadline <= a->seen_at))
        at = row->deadline;
    bool overdue = owns(w, s, task) && (live || waits) && at < a->heard_at &&
                   !is_frozen(w, s, task->id);
    if (lasts(w, s, overdue, &step->overdue[s->number]))
        world_violate(w, "I-21", "step %u: attempt %u should have ended %lld ms ago", row->number,
                      row->attempt, (long long)(a->seen_at - at));
}

/* I-45: a task whose owner has not renewed its lease is taken over, by any server that lives. Who
 * takes it over may be deposed itself before its commit, which a fault delays, comes to its end. */
static void check_adopted(struct world *w, const struct server *s, struct task_past *task)
{
    const struct rv_store_memory_data *data = w->database->data;
    bool orphan = database_shared(w) && !owns(w, s, &task->row) &&
                  !rv_store_memory_lives(data, task->row.locked_by, s->attention.seen_at);
    orphan = orphan && rv_task_state_open(task->row.state) && !is_frozen(w, s, task->row.id);
    int64_t slow_ms = w->knobs.rates[FAULT_SLOW_STORE] > 0 ? SLOW_COMMIT_MS : 0;
    if (bound_lasts(w, s, orphan, &task->orphaned[s->number], slow_ms))
        world_violate(w, "I-45", "the task of server number %u is not taken over by %s",
                      task->row.locked_by, s->name);
}

/* I-23: a step that is ready is handed out while an agent of its kind is free and asks, within the
 * same bound, unless its task is suspended, or a limit or an open circuit may hold it back; but
 * no circuit where an operator insists. (What long decisions of others may delay is I-37; a server
 * that has misread a definition hands out nothing of it.) */
static void check_offered(struct world *w, const struct server *s, const struct task_past *task,
                          struct step_past *step, const struct takers *takers)
{
    int64_t seen_at = s->attention.seen_at;
    const struct rv_step *row = &step->row;
    /* Once its timeout has passed it is handed out nowhere, and only its owner may say so. */
    bool over = row->deadline != 0 && row->deadline <= seen_at && !owns(w, s, &task->row);
    bool ready = row->kind == RV_KIND_CALL && row->state == RV_STEP_PENDING &&
                 task->row.suspended_at == 0 && row->ready_at < seen_at && !over &&
                 is_free(takers, step->agent) && !limiter_limits(w, step->agent);
    /* What a server takes from others does not stay in the line of its circuit: its own steps are
     * that circuit's probes before it (decision 036). */
    bool held_back = !row->insist && (owns(w, s, &task->row) ? check_circuit_holds(w, step)
                                                             : check_circuit_was_open(w, step));
    held_back = held_back || is_frozen(w, s, task->row.id);
    if (lasts(w, s, ready && !held_back, &step->waits[s->number]))
        world_violate(w, "I-23",
                      "step %u, of server number %u, is ready since %lld ms, and an agent waits "
                      "for work at %s",
                      row->number, task->row.locked_by, (long long)(seen_at - row->ready_at),
                      s->name);
}

/* The task that the call waits for; none: it does not wait for the end of one. */
static struct rv_task_id awaited(const struct rv_call *call)
{
    if (call->kind == RV_CALL_SUBMIT && call->u.submit.wait_ms > 0 && call->u.submit.count == 1)
        return call->u.submit.items[0].task;
    if (call->kind == RV_CALL_SHOW && call->u.show.wait_ms > 0)
        return call->u.show.task;
    return (struct rv_task_id){0};
}

/* I-47: who waits for the end of a task hears of it, whichever server has committed that: within a
 * quarter of a second and some batches. (Where calls or decisions take turns the batches may be
 * many.) */
static void check_heard(struct world *w, struct server *s)
{
    const struct attention *a = &s->attention;
    for (struct served *served = s->out; served != NULL; served = served->next) {
        struct rv_task_id id = served->taken ? awaited(&served->call) : (struct rv_task_id){0};
        const struct task_past *task = id.value != 0 ? history_task(w, id) : NULL;
        bool over = task != NULL && !rv_task_state_open(task->row.state) && !task->unreadable &&
                    !history_lacks(w, id);
        bool new = served->over.batches == 0 || served->over.batches < a->started.batches;
        if (!over || new)
            served->over = over ? a->attended : (struct reading){0};
        else if (a->attended.ms - served->over.ms > HEARD_MS + SLACK_MS &&
                 a->attended.batches - served->over.batches >
                     BATCHES_SLACK + check_turns(w) + a->behind)
            world_violate(w, "I-47", "%s keeps a call that waits for task %llx, which has ended",
                          s->name, (unsigned long long)id.value);
    }
}

static void look(struct world *w, const struct server *s)
{
    struct takers takers;
    takers_find(s, &takers);
    for (size_t i = 0; i < w->history->count && w->violated == NULL; i++) {
        struct task_past *task = w->history->all[i];
        w->concerned = task->row.id;
        check_adopted(w, s, task);
        for (uint32_t n = 0; n < task->row.open_count && !task->unreadable; n++) {
            struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL)
                continue;
            check_looked_at(w, s, step);
            if (task->forgotten != task->row.revision)
                check_overdue(w, s, &task->row, step);
            else
                step->overdue[s->number] = (struct reading){0};
            if (task->row.state != RV_TASK_ERROR && !tap_misread(s))
                check_offered(w, s, task, step, &takers);
        }
    }
    if (w->violated == NULL)
        w->concerned = (struct rv_task_id){0};
}

static uint64_t calls_of(const struct server *s)
{
    uint64_t count = 0;
    for (const struct served *served = s->out; served != NULL; served = served->next)
        count++;
    return count;
}

void bound_batch(struct world *w, struct server *s, bool good)
{
    struct attention *a = &s->attention;
    int64_t most = (int64_t)w->knobs.scan_ms + SLACK_MS / 2; /* longer is an absence */
    if (w->scenario != NULL)
        return;
    w->bounds.seen_at = good ? s->store_now : 0;
    if (!good) {
        line_batch(w, false);
        a->seen_at = 0;
        return;
    }
    int64_t gone = a->seen_at != 0 ? s->store_now - a->seen_at : 0;
    if (gone > 0 && gone <= most)
        a->attended.ms += gone;
    a->attended.batches++;
    a->seen_at = s->store_now;
    a->heard_at = s->store_now - (s->begun_at - s->heard_until);
    line_batch(w, true);
    if (w->now - a->looked_at < LOOK_MS)
        return;
    a->looked_at = w->now;
    a->behind = check_few_bytes(w) ? calls_of(s) + (uint64_t)w->history->open : 0;
    check_heard(w, s);
    look(w, s);
}

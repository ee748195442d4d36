/* I-36: steps of a kind are handed out in their order. What stands in line, ready, and was tried by
 * nobody keeps its place there, also where it was handed out in vain: nothing with a later place
 * leaves before it. Its place is its age, less ten seconds for each level of its priority: so a
 * higher priority goes first, and a lower one does not wait for ever.
 *
 * Since when a step stands in line is counted here, not read from its row. A server alone on its
 * store is looked at, batch by batch: what has stood there through some batches of which nothing
 * was refused is in the ready queue.
 *
 * A circuit holds back what waits for its target: others may pass it then, but nothing that waits
 * for the same target, since a circuit releases its steps in their order. Once its time is over and
 * no probe is out, it has released the first of them, and nothing may pass that one (circuit.c). */
#include "sim/check/line.h"

#include "sim/check/check.h"
#include "sim/store/database.h"
#include "sim/store/tap.h"
#include "sim/world/fault.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { BATCHES_SLACK = 4, TURN_FUEL_MIN = 10000, PRIORITY_MS = 10000 };

/* In so many batches whatever is ready has come into the ready queue: a batch takes up only so many
 * due tasks. */
static uint64_t batches_before(const struct world *w)
{
    return BATCHES_SLACK + 2 * (uint64_t)w->history->open / w->knobs.findings_max;
}

/* Where a turn of long decisions is small, a step may be under evaluation while it stands there;
 * and one whose definition the server has read damaged waits to be parked. */
static bool is_looked_at(const struct world *w)
{
    return w->scenario == NULL && w->knobs.servers == 1 && !fault_happened(w, FAULT_FAILOVER) &&
           w->knobs.turn_fuel >= TURN_FUEL_MIN && !tap_misread(&w->servers[0]);
}

int64_t check_line_since(const struct step_past *past, const struct rv_step *step)
{
    bool untried = step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN ||
                   step->attempt_state == RV_ATTEMPT_UNDELIVERED;
    bool handed_out = past->row.attempt != step->attempt || past->row.state == RV_STEP_PROCESSING;
    /* Resubmitted, or failed and repeated, and handed out in the same commit. */
    bool anew = past->row.attempt != step->attempt && past->row.state != RV_STEP_PENDING;
    /* A timeout of the DSL may have ended it, and a retry begun it anew. */
    bool waited = past->row.state == RV_STEP_PENDING && !handed_out &&
                  past->row.deadline == step->deadline;
    bool stays = !anew && (step->state != RV_STEP_PENDING || waited || (handed_out && untried));
    /* 0: one that waits for another's undo does not stand there yet. */
    return past->line_since != 0 && stays ? past->line_since : step->waits_since;
}

/* What leaves the line has to be seen in it anew, also where no batch is looked at meanwhile. */
static void line_leave(const struct transition *t)
{
    bool all = t->task->suspended_at != 0 || t->task->state == RV_TASK_ERROR;
    for (uint32_t n = 0; all && n < t->past->row.open_count; n++) {
        struct step_past *step = history_step(t->past, t->past->row.open[n]);
        if (step != NULL)
            step->lined = 0;
    }
    for (size_t i = 0; i < t->change->steps_count; i++) {
        const struct rv_step *step = t->change->steps[i];
        struct step_past *past = history_step(t->past, step->number);
        bool stays = past != NULL && step->state == RV_STEP_PENDING &&
                     step->token == past->row.token && step->ready_at == past->row.ready_at;
        if (past != NULL && !stays)
            past->lined = 0;
    }
}

void check_in_line(const struct transition *t)
{
    struct lineup *line = &t->w->lineup;
    line_leave(t);
    for (size_t i = 0; i < t->change->steps_count; i++) {
        const struct rv_step *step = t->change->steps[i];
        struct step_past *past = history_step(t->past, step->number);
        bool out = past != NULL && step->attempt_state == RV_ATTEMPT_OPEN &&
                   step->token != past->row.token;
        bool begins = out && past->row.state == RV_STEP_PENDING;
        if (begins && line->count < LINE_BEGUN_MAX)
            line->begun[line->count++] = (struct begun){
                .agent = past->agent,
                .target = past->target,
                .wanted = step->insist,
                .since = past->line_since,
                .priority = t->past->row.priority,
            };
        if (out)
            check_circuit_begins(t, past, step);
    }
}

/* It is this server's. On a shared store those of the process before it are not, before that one's
 * lease is over. */
static bool tends(const struct world *w, const struct task_past *task)
{
    const struct server *s = &w->servers[0];
    return !database_shared(w) ||
           (s->up && task->row.locked_by == rv_scheduler_enlistment(s->scheduler)->instance);
}

/* Its timeout has not passed, not even while the batch was under way. */
static bool stands_in_line(const struct world *w, const struct task_past *task,
                           const struct step_past *step)
{
    const struct rv_step *row = &step->row;
    int64_t now = w->servers[0].attention.seen_at;
    return !task->unreadable && task->row.state != RV_TASK_ERROR && task->row.suspended_at == 0 &&
           tends(w, task) && row->kind == RV_KIND_CALL && row->state == RV_STEP_PENDING &&
           row->ready_at < now &&
           (row->deadline == 0 || row->deadline > tap_newest(&w->servers[0]));
}

static int64_t place_of(int64_t since, uint8_t priority)
{
    return since - priority * (int64_t)PRIORITY_MS;
}

/* `free`: no circuit holds it back. */
static void check_passed_by(struct world *w, const struct task_past *task,
                            const struct step_past *step, bool free)
{
    for (size_t i = 0; i < w->lineup.count; i++) {
        const struct begun *b = &w->lineup.begun[i];
        int64_t later_ms = place_of(b->since, b->priority) -
                           place_of(step->line_since, task->row.priority);
        bool beside = free || (b->target == step->target && !b->wanted);
        if (b->agent == step->agent && beside && later_ms > 0)
            world_violate(
                w, "I-36",
                "step %u (its row: %lld) stands in line since %lld with priority %u, and one of "
                "priority %u that came %lld ms later is handed out before it",
                step->row.number, (long long)step->row.waits_since, (long long)step->line_since,
                task->row.priority, b->priority, (long long)(b->since - step->line_since));
    }
}

/* Whether no circuit has held it back since `from` and some batches: if it is the first of those
 * that wait behind one, it has been released. */
static bool is_free(const struct world *w, const struct step_past *step, uint64_t from)
{
    from = step->free_from > from ? step->free_from : from;
    return step->free_from != 0 &&
           w->servers[0].attention.attended.batches - from > batches_before(w);
}

/* Seen after each batch, also where nothing is checked. */
static void step_see(const struct world *w, const struct task_past *task, struct step_past *step)
{
    const struct attention *b = &w->servers[0].attention;
    if (!stands_in_line(w, task, step)) {
        step->lined = step->free_from = 0;
        return;
    }
    if (step->lined == 0)
        step->lined = b->attended.batches;
    if (check_circuit_holds(w, step))
        step->free_from = 0;
    else if (step->free_from == 0 || step->free_from < b->started.batches)
        step->free_from = b->attended.batches;
}

static void step_check(struct world *w, const struct task_past *task, const struct step_past *step)
{
    const struct attention *b = &w->servers[0].attention;
    uint64_t from = step->lined > b->started.batches ? step->lined : b->started.batches;
    from = from > w->lineup.bad_batches ? from : w->lineup.bad_batches;
    if (step->lined == 0 || b->attended.batches - from <= batches_before(w))
        return;
    w->concerned = task->row.id;
    check_passed_by(w, task, step, is_free(w, step, from));
}

void line_batch(struct world *w, bool good)
{
    if (!good) {
        w->lineup.bad_at = w->now;
        w->lineup.bad_batches = w->servers[0].attention.attended.batches;
    }
    /* What was due in a batch that the store refused is offered again within a scan, and then some
     * batches, since the server may have been away for as long. */
    good = good && (w->lineup.bad_at == 0 || w->now - w->lineup.bad_at > w->knobs.scan_ms);
    for (size_t i = 0; is_looked_at(w) && i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        for (uint32_t n = 0; n < task->row.open_count; n++) {
            struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL)
                continue;
            step_see(w, task, step);
            if (good)
                step_check(w, task, step);
        }
    }
    w->lineup.count = 0;
    if (w->violated == NULL)
        w->concerned = (struct rv_task_id){0};
}

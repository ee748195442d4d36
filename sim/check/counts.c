/* I-25: what a server counts is what the rows say: its open tasks by state, and for each agent the
 * steps that wait in its queue and since when the oldest of them waits, and that includes those
 * that the agent sent back with `circuit-open`. These are caches that each commit changes, so a
 * change that one of them misses stays wrong until the server starts again.
 *
 * A queue never has more steps than wait. It may lack steps for a few batches after a start or
 * after they come due, because a batch handles a limited number of steps, and for one scan interval
 * after a batch that the store refused or lost, because its steps are scheduled again then. A step
 * whose task a command is decided for joins it after that decision. Refused batches are not
 * counted: the next batch reads the same part of the open rows.
 *
 * Stores that several servers may share are left out: commits of others are learned later, and a
 * standby may lack the newest ones. So are stores that have lost transactions. */
#include "sim/check/check.h"

#include "scheduler/counts.h"
#include "scheduler/scheduler.h"
#include "sim/store/rewind.h"
#include "sim/store/tap.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

enum { EACH_BATCHES = 16, KINDS_MAX = 16, BATCHES_SLACK = 2 };

/* What the rows say of the queue of an agent. */
struct queue {
    uint64_t agent;
    size_t ready;
    size_t known;  /* of those: the server has had the time to see that they are */
    int64_t since; /* the oldest of all waits */
    bool seen;     /* the server has a queue of that agent */
};

struct queues {
    struct queue all[KINDS_MAX];
    size_t count;
};

static struct queue *queue_of(struct queues *queues, uint64_t agent)
{
    for (size_t i = 0; i < queues->count; i++)
        if (queues->all[i].agent == agent)
            return &queues->all[i];
    if (queues->count == KINDS_MAX)
        return NULL;
    struct queue *queue = &queues->all[queues->count++];
    *queue = (struct queue){.agent = agent, .since = INT64_MAX};
    return queue;
}

/* rows_max is 0: the limit of the server itself, which no world reaches. */
static uint64_t pieces(uint64_t rows, uint64_t rows_max)
{
    return rows_max != 0 && rows_max < rows ? (rows + rows_max - 1) / rows_max : 0;
}

/* The number of batches, without refused ones, in which the server has handled every due step. */
static uint64_t batches_before(const struct world *w, bool walk)
{
    uint64_t open = (uint64_t)w->history->open;
    return BATCHES_SLACK + check_turns(w) + 4 * pieces(open, w->knobs.findings_max) +
           (walk ? pieces(open, w->knobs.scan_rows) : 0);
}

static bool is_known(const struct world *w, const struct server *s, const struct step_past *step)
{
    int64_t deadline = step->row.deadline;
    bool walked = s->went_well - s->counts_from > batches_before(w, true);
    bool over = deadline != 0 && deadline <= s->store_now; /* about to end */
    return walked && !over && step->queued != 0 &&
           s->went_well - step->queued > batches_before(w, false) &&
           (s->counts_bad == 0 || w->now - s->counts_bad > w->knobs.scan_ms);
}

/* Ready, or sent back by its agent until an instant that is to come. */
static bool is_waiting(const struct rv_task *task, const struct rv_step *step, int64_t now)
{
    bool sent_back = step->attempt_state == RV_ATTEMPT_CIRCUIT_OPEN;
    return rv_step_ready(task, step, sent_back ? INT64_MAX : now);
}

static void queues_read(struct world *w, const struct server *s, struct queues *queues)
{
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *task = w->history->all[i];
        bool waits = task->row.state != RV_TASK_ERROR;
        for (uint32_t n = 0; n < task->row.open_count; n++) {
            struct step_past *step = history_step(task, task->row.open[n]);
            if (step == NULL)
                continue;
            if (!waits || !is_waiting(&task->row, &step->row, s->store_now)) {
                step->queued = 0;
                continue;
            }
            if (step->queued == 0)
                step->queued = s->went_well;
            struct queue *queue = queue_of(queues, step->agent);
            if (queue == NULL)
                continue;
            int64_t since = step->row.waits_since;
            queue->ready++;
            queue->known += is_known(w, s, step);
            queue->since = since < queue->since ? since : queue->since;
        }
    }
}

static void check_queues(struct world *w, const struct server *s)
{
    struct queues queues = {.count = 0};
    struct rv_str agent;
    size_t waiting;
    int64_t since;
    queues_read(w, s, &queues);
    for (size_t i = 0; rv_scheduler_queue(s->scheduler, i, &agent, &waiting, &since); i++) {
        struct queue *queue = queue_of(&queues, history_hash(agent));
        if (queue == NULL)
            return;
        queue->seen = true;
        if (waiting > queue->ready || waiting < queue->known)
            world_violate(w, "I-25", "%s counts %zu steps in the queue of %.*s, %zu wait%s",
                          s->name, waiting, RV_STR_FMT(agent), queue->ready,
                          queue->known < queue->ready ? " at most" : "");
        else if (waiting > 0 && waiting == queue->ready && since != queue->since)
            world_violate(w, "I-25",
                          "%s says that the oldest step in the queue of %.*s waits since %lld, it "
                          "waits since %lld",
                          s->name, RV_STR_FMT(agent), (long long)since, (long long)queue->since);
    }
    for (size_t i = 0; i < queues.count; i++)
        if (!queues.all[i].seen && queues.all[i].known > 0)
            world_violate(w, "I-25", "%s has no queue of an agent for which %zu steps wait",
                          s->name, queues.all[i].known);
}

static void check_states(struct world *w, const struct server *s)
{
    const struct rv_counts *counts = rv_scheduler_counts(s->scheduler);
    int64_t there[RV_TASK_STATE_COUNT] = {0};
    for (size_t i = 0; i < w->history->count; i++)
        there[w->history->all[i]->row.state] += w->history->all[i]->row.revision != 0;
    for (unsigned i = 0; i < RV_TASK_STATE_COUNT; i++) {
        enum rv_task_state state = (enum rv_task_state)i;
        if (!rv_task_state_open(state) || counts->open_by_state[i] == there[i])
            continue;
        world_violate(w, "I-25", "%s counts %lld tasks that are %s, there are %lld", s->name,
                      (long long)counts->open_by_state[i], rv_task_state_text(state),
                      (long long)there[i]);
        return;
    }
}

void check_counts(struct world *w, struct server *s, bool good)
{
    if (!good)
        s->counts_bad = w->now;
    if (rv_scheduler_enlistment(s->scheduler)->shared || rewind_any(w))
        return;
    check_queues(w, s);
    if (good && (w->history->open == 0 || s->went_well % EACH_BATCHES == 0))
        check_states(w, s);
}

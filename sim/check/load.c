/* I-31: what a server keeps of its callers is bounded, whatever is offered: it parks so many calls
 * as its setting says, lets as many wait for decisions that take long, refuses the others (503),
 * and carries none from batch to batch for long. So its memory is bounded too, since each call has
 * an arena with a cap.
 *
 * The worlds with few places to park are looked at. Arenas over their cap and the size of answers
 * are the torture's and test_bounds'; the mailbox is the server's room. */
#include "sim/check/check.h"

#include "scheduler/counts.h"
#include "scheduler/scheduler.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* A call that is carried is tried so often, or waits for the walk after a start, or its turn: after
 * the large ones before it, of which each batch takes one at least, or, if it changes records,
 * after those that do so before it, of which each batch takes one. */
enum { CARRIED_MAX = 12, PARKED_FEW = 100, BATCH_BYTES_FEW = 4096, SMALL_BYTES = 1024 };

/* Bytes of which a batch takes as many as it may, and then nothing more. */
struct taken {
    size_t bytes;
    size_t largest;
};

static void take(struct taken *taken, size_t bytes)
{
    taken->bytes += bytes;
    taken->largest = bytes > taken->largest ? bytes : taken->largest;
}

bool check_few_bytes(const struct world *w)
{
    return w->knobs.batch_bytes <= BATCH_BYTES_FEW;
}

/* A batch of the same instant may have handed it out before. */
static bool hands_out(struct task_past *past, const struct rv_step *step, int64_t now)
{
    const struct step_past *before = past != NULL ? history_step(past, step->number) : NULL;
    bool already = before != NULL && before->row.token == step->token;
    return step->attempt_state == RV_ATTEMPT_OPEN && step->attempt_at == now && !already;
}

/* I-34: of large calls a commit takes tasks with so many bytes of input as its setting says, and
 * hands out requests with twice as many; one more than fits still goes. The worlds with a low
 * setting are checked, in which every call with a payload of some size is large. */
void check_batch_bytes(struct world *w, const struct rv_batch *batch, int64_t now)
{
    size_t most = w->knobs.batch_bytes;
    struct taken tasks = {0}, requests = {0};
    if (w->scenario != NULL || !check_few_bytes(w))
        return;
    for (size_t i = 0; i < batch->changes_count; i++) {
        const struct rv_change *change = &batch->changes[i];
        if (change->outcome == RV_OK && change->revision_before == 0 &&
            change->task->input.len > SMALL_BYTES)
            take(&tasks, change->task->input.len);
        struct task_past *past = history_task(w, change->task->id);
        for (size_t n = 0; change->outcome == RV_OK && n < change->steps_count; n++)
            if (hands_out(past, change->steps[n], now))
                take(&requests, change->steps[n]->input.len);
    }
    if (tasks.bytes - tasks.largest >= most || requests.bytes - requests.largest >= 2 * most)
        world_violate(w, "I-34",
                      "a batch takes tasks of %zu bytes and hands out %zu bytes, %zu and %zu are "
                      "allowed",
                      tasks.bytes, requests.bytes, most, 2 * most);
}

/* Some of its decisions are not made. */
static bool is_undecided(const struct rv_call *call)
{
    for (size_t i = 0; call->kind == RV_CALL_REPLIES && i < call->u.replies.count; i++)
        if (call->u.replies.items[i].status == 0)
            return true;
    for (size_t i = 0; call->kind == RV_CALL_SUBMIT && i < call->u.submit.count; i++)
        if (call->u.submit.items[i].err == RV_OK && call->u.submit.items[i].task.value == 0)
            return true;
    return call->kind == RV_CALL_OPERATE;
}

/* I-38: of the targets that agents name as down a server knows so many of each agent, and that of
 * the whole agent. */
static void check_targets(struct world *w, const struct server *s)
{
    size_t most = (size_t)w->knobs.kinds * (w->knobs.circuits_max + 1);
    size_t known = rv_scheduler_counts(s->scheduler)->circuits;
    if (known > most)
        world_violate(w, "I-38", "%s knows %zu circuits of %u agents, %u of each are allowed",
                      s->name, known, w->knobs.kinds, w->knobs.circuits_max);
}

/* I-41: what a server counts of agents agrees with its lists. */
static void check_caches(struct world *w, const struct server *s)
{
    const char *broken = rv_scheduler_broken(s->scheduler);
    if (broken != NULL)
        world_violate(w, "I-41", "%s breaks the rule that %s", s->name, broken);
}

void check_load(struct world *w, const struct server *s)
{
    const struct knobs *k = &w->knobs;
    check_caches(w, s);
    if (w->scenario == NULL)
        check_targets(w, s);
    if (w->scenario != NULL || k->parked_max > PARKED_FEW)
        return;
    /* A poll that tells of attempts' ends comes back until all are decided, some in each batch. */
    uint64_t open = (uint64_t)w->history->open;
    uint64_t batches = CARRIED_MAX + open / k->scan_rows + open / k->findings_max;
    bool turns = check_few_bytes(w);
    uint32_t parked = 0, waiting = 0;
    for (const struct served *served = s->out; served != NULL; served = served->next)
        if (served->taken && s->went_well - served->taken_in >
                                 batches + served->turns + (turns ? served->behind : 0))
            ++*(is_undecided(&served->call) ? &waiting : &parked);
    if (parked > k->parked_max || waiting > k->parked_max)
        world_violate(w, "I-31",
                      "%s keeps %u calls, and %u whose decisions take long; it has room "
                      "for %u of each",
                      s->name, parked, waiting, k->parked_max);
}

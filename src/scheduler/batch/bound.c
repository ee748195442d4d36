/* How much one batch decides. A commit is one for all, so whoever is in the batch waits for the
 * largest of it: large calls have their share, and what is over it comes in later batches.
 *
 * The rows of a task may have megabytes. So each part of a batch (due tasks, small calls, large
 * ones, ...) loads rows and decides on them until its share of the batch's memory is used, and at
 * least one task. A batch for which the process has no memory halves all shares; every ten seconds
 * without such a batch they double again. At their least, a task for which there is no memory
 * several times in a row is the only one that can be meant: it is escalated. */
#include "scheduler/batch/bound.h"

#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"

/* Calls with more commands, or more than this part of a batch's bytes, are large, but none of so
 * few bytes; of these a batch decides no more after so long. */
enum { SMALL_COMMANDS_MAX = 16, SMALL_BYTES_PART = 64, SMALL_BYTES = 1024, LARGE_MS_MAX = 20 };
/* The inputs of the requests that it hands out are bounded by so many times those bytes; a share of
 * its memory by so many times, or these. */
enum { HANDED_PARTS = 2, SHARE_PARTS = 4, SHARE_BYTES_MIN = 64 * 1024 };
enum { HALVINGS_MAX = 5, SHORTAGE_MS = 10 * 1000, SHORTAGE_FAILURES = 3 };

void share_enter(struct rv_scheduler *s, enum share share)
{
    rv_assert(share < SHARE_COUNT);
    s->batch.shares[s->batch.share] += s->arena.bytes_taken - s->batch.share_from;
    s->batch.share_from = s->arena.bytes_taken;
    s->batch.share = share;
}

size_t share_left(const struct rv_scheduler *s)
{
    size_t bytes = s->batch.shares[s->batch.share] + s->arena.bytes_taken - s->batch.share_from;
    size_t most = SHARE_PARTS * s->options.batch_bytes_max;
    most = (most > SHARE_BYTES_MIN ? most : SHARE_BYTES_MIN) >> s->shortage.halvings;
    if (s->batch.share == SHARE_NONE)
        return most;
    return bytes < most ? most - bytes : 0;
}

bool share_used(const struct rv_scheduler *s)
{
    return s->batch.share != SHARE_NONE && share_left(s) == 0;
}

bool share_lets(struct rv_scheduler *s, const struct pending *p, struct rv_task_id task)
{
    share_enter(s, p->large ? SHARE_LARGE : SHARE_SMALL);
    return !share_used(s) || work_find(s, task) != NULL;
}

size_t share_piece(const struct rv_scheduler *s)
{
    rv_assert(s->shortage.halvings <= HALVINGS_MAX);
    size_t piece = PIECE_TASKS >> s->shortage.halvings;
    return piece > 0 ? piece : 1;
}

size_t share_load(const struct rv_scheduler *s)
{
    if (s->shortage.halvings > 0)
        return share_piece(s);
    return s->enlistment.shared ? LOAD_TASKS_SHARED : LOAD_TASKS;
}

void shortage_of(struct rv_scheduler *s, struct rv_task_id task)
{
    struct shortage *shortage = &s->shortage;
    rv_assert(task.value != 0);
    if (shortage->halvings < HALVINGS_MAX)
        return;
    shortage->failures = shortage->task.value == task.value ? shortage->failures + 1 : 1;
    shortage->task = task;
}

bool shortage_parks(const struct rv_scheduler *s, struct rv_task_id task)
{
    return s->shortage.task.value == task.value && s->shortage.failures >= SHORTAGE_FAILURES;
}

void shortage_note(struct rv_scheduler *s, enum rv_err err)
{
    struct shortage *shortage = &s->shortage;
    if (err == RV_ERR_MEMORY) {
        shortage->halvings += shortage->halvings < HALVINGS_MAX;
        shortage->at = s->batch.mono_now;
    } else if (shortage->halvings > 0 && s->batch.mono_now - shortage->at >= SHORTAGE_MS) {
        shortage->halvings--;
        shortage->at = s->batch.mono_now;
        shortage->task.value = 0;
    }
}

bool batch_has_room(const struct rv_scheduler *s, const struct pending *p)
{
    if (!p->large || !s->batch.large_begun)
        return true; /* at least one item of them goes on in each batch */
    bool late = s->batch.large_us != 0 &&
                counts_clock(s) - s->batch.large_us > LARGE_MS_MAX * INT64_C(1000);
    return !late && s->batch.large_bytes < s->options.batch_bytes_max;
}

/* The rest is handed out in the batch after this one. */
bool batch_handed_enough(struct rv_scheduler *s)
{
    bool enough = s->batch.handed_bytes >= HANDED_PARTS * s->options.batch_bytes_max ||
                  share_used(s);
    s->more_due = s->more_due || enough;
    return enough;
}

void batch_spends(struct rv_scheduler *s, const struct pending *p, size_t bytes)
{
    if (p->large && !s->batch.large_begun)
        s->batch.large_us = counts_clock(s); /* what was loaded before is not theirs alone */
    s->batch.large_begun = s->batch.large_begun || p->large;
    s->batch.large_bytes += p->large ? bytes : 0;
}

/* A call may bring a thousand commands, or some megabytes, and a batch many such calls: of these
 * large ones those beyond the bounds wait for the next batch, in their order; small ones never wait
 * for them. Attempts whose replies wait do not end meanwhile (left_replies_note). Gives the number
 * of calls that stay. */
size_t batch_bound(struct rv_scheduler *s)
{
    rv_assert(s->batch.behind.first == NULL);
    size_t bytes_max = s->options.batch_bytes_max;
    size_t part = bytes_max / SMALL_BYTES_PART, small = part > SMALL_BYTES ? part : SMALL_BYTES;
    size_t commands = 0, bytes = 0, calls = 0;
    struct pending *next;
    for (struct pending *p = s->batch.calls.first; p != NULL; p = next) {
        next = p->next;
        size_t its = p->ops->commands != NULL ? p->ops->commands(p->call) : 1;
        p->large = its > SMALL_COMMANDS_MAX || p->call->arena.bytes_taken > small;
        if (p->large && (commands >= RV_BATCH_COMMANDS_MAX || bytes >= bytes_max)) {
            p->bounded = true;
            pending_unlink(&s->batch.calls, p);
            pending_append(&s->batch.behind, p);
            continue;
        }
        commands += p->large ? its : 0;
        bytes += p->large ? p->call->arena.bytes_taken : 0;
        calls++;
    }
    return calls;
}

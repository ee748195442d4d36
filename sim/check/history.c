/* A task's history tells who commanded what, when and why.
 *
 * H-01: each command that an operator is told to be accepted has one line, with his name and his
 * reason (and at most one more for each copy that the network makes), and one that is refused has
 * none; lines are numbered without gaps, written with the
 * commit at whose time they stand, and there after a restart. (Of a task that retention may delete
 * no more is recorded: a command may be accepted in the commit that deletes it.)
 *
 * The name is op-N, N being the number of the command in its world, and the reason its verb and N:
 * a line that mixes two commands is seen. */
#include "sim/check/check.h"

#include "base/assert.h"
#include "base/limits.h"
#include "sim/cast/operator.h"
#include "sim/store/storage.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <string.h>

enum { REASON_BYTES = 64 };

/* 0: it is no operator's of this world. */
static uint32_t number_of(struct rv_str by)
{
    uint32_t number = 0;
    size_t at = sizeof OPERATOR_NAME - 1;
    if (by.len <= at || memcmp(by.at, OPERATOR_NAME, at) != 0)
        return 0;
    for (; at < by.len && by.at[at] >= '0' && by.at[at] <= '9'; at++)
        number = number * 10 + (uint32_t)(by.at[at] - '0');
    return number;
}

/* Of the request's body: its by comes first. */
static uint32_t number_in(struct rv_str body)
{
    static const char head[] = "{\"by\":\"";
    size_t len = sizeof head - 1;
    if (body.len <= len || memcmp(body.at, head, len) != 0)
        return 0;
    return number_of((struct rv_str){body.at + len, body.len - len});
}

static uint64_t count_of(struct world *w, struct rv_task_id task, uint32_t number)
{
    const uint64_t *count = rv_map_find(&w->history->commands, (uint64_t)task.value, number);
    return count != NULL ? *count : 0;
}

static void count_up(struct world *w, struct rv_task_id task, uint32_t number)
{
    enum rv_err err = rv_map_put(&w->history->commands, (uint64_t)task.value, number,
                                 count_of(w, task, number) + 1);
    rv_assert(err == RV_OK);
}

static const struct rv_task_id copies = {0};

void check_command_repeated(struct world *w, struct rv_str body)
{
    uint32_t number = number_in(body);
    if (number != 0)
        count_up(w, copies, number);
}

static void check_line(const struct transition *t, const struct rv_history_row *row)
{
    struct world *w = t->w;
    char reason[REASON_BYTES];
    uint32_t number = number_of(row->by);
    snprintf(reason, sizeof reason, "%s %u", rv_operator_verb_text(row->verb), number);
    if (number == 0 || !rv_str_is(row->reason, reason))
        world_violate(w, "H-01", "a line of a history is not as its command was given: %.*s, %.*s",
                      RV_STR_FMT(row->by), RV_STR_FMT(row->reason));
    if (row->at != t->now)
        world_violate(w, "H-01", "a line of a history stands at another time than its commit");
    count_up(w, t->task->id, number);
    uint64_t lines = count_of(w, t->task->id, number);
    if (lines > 1 + count_of(w, copies, number) && t->past->lost_commits == 0)
        world_violate(w, "H-01", "command %u has %llu lines in its task's history", number,
                      (unsigned long long)lines);
}

void check_history(const struct transition *t)
{
    for (size_t i = 0; i < t->change->history_count; i++) {
        const struct rv_history_row *row = &t->change->history[i];
        if (row->number != t->past->commands + i + 1)
            world_violate(t->w, "H-01", "line %u of a history follows line %zu", row->number,
                          t->past->commands + i);
        check_line(t, row);
    }
}

void check_commanded(struct world *w, struct rv_task_id task, struct rv_str body, bool accepted)
{
    uint32_t number = number_in(body);
    const struct task_past *past = history_task(w, task);
    if (past == NULL || history_lacks(w, task) || past->commands >= RV_HISTORY_MAX ||
        history_may_be_gone(w, &past->row))
        return;
    bool there = count_of(w, task, number) > 0;
    bool repeated = count_of(w, copies, number) > 0;
    if (accepted ? !there : there && !repeated)
        world_violate(w, "H-01", "command %u is %s and has %s line in its task's history", number,
                      accepted ? "accepted" : "refused", there ? "a" : "no");
}

void check_history_there(struct world *w, struct rv_store *store, const struct task_past *past)
{
    struct rv_history_row rows[RV_PAGE_ROWS_MAX];
    uint32_t before = 0, there = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    while (count == RV_PAGE_ROWS_MAX) {
        enum rv_err err = store->ops->list_history(store, &w->history->scratch, past->row.id,
                                                   before, RV_PAGE_ROWS_MAX, rows, &count);
        if (err != RV_OK && storage_found(w, err))
            return;
        if (err != RV_OK)
            count = 0;
        for (size_t i = 0; i < count; i++) {
            before = rows[i].number;
            if (count_of(w, past->row.id, number_of(rows[i].by)) == 0)
                world_violate(w, "H-01", "line %u of a history was never committed", before);
        }
        there += (uint32_t)count;
    }
    if (there != past->commands)
        world_violate(w, "H-01", "after a restart a history has %u of %u lines", there,
                      past->commands);
}

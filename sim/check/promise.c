#include "sim/check/check.h"

#include "base/limits.h"
#include "json/json.h"
#include "sim/store/database.h"
#include "sim/store/rewind.h"
#include "sim/store/storage.h"
#include "sim/world/world.h"

#include <stdlib.h>

/* I-26: the attempt is recorded before the request leaves, for the instance that gets it: what is
 * handed out stands in the store as the open, newest attempt of its step. Where the answer of a
 * shared store takes its time, another server may have ended it by then. */
void check_handed_out(struct world *w, const struct rv_poll *poll,
                      const struct rv_assignment *request)
{
    struct step_past *step = history_step(history_task(w, request->step.task),
                                          request->step.number);
    bool newest = step != NULL && step->row.token == request->token &&
                  step->row.attempt == request->attempt && step->row.fence == request->fence &&
                  step->holder == history_holder(poll->agent, poll->instance);
    bool open = newest && step->row.attempt_state == RV_ATTEMPT_OPEN;
    bool ended = step != NULL && step->row.attempt > request->attempt &&
                 rv_map_find(&w->history->tokens, request->token, 0) != NULL;
    if (!open && !(database_shared(w) && (newest || ended))) {
        w->concerned = request->step.task;
        world_violate(w, "I-26", "attempt %u of step %u was handed out, but is not on record",
                      request->attempt, request->step.number);
    }
}

/* I-39: a submission that is refused as a whole has left no task: nobody would know of it. */
void check_refused_submit(struct world *w, const struct rv_call *call)
{
    for (size_t i = 0; call->kind == RV_CALL_SUBMIT && i < call->u.submit.count; i++) {
        struct rv_task_id task = call->u.submit.items[i].task;
        if (task.value != 0 && history_task(w, task) != NULL && !history_lacks(w, task))
            world_violate(w, "I-39",
                          "a submission is refused as a whole, and its item %zu is a task", i);
    }
}

/* I-01: a submission that was acknowledged is in the store. */
void check_submitted(struct world *w, struct rv_str task, const char *client)
{
    struct rv_task_id id;
    if (rv_task_parse(task, &id) != RV_OK || (history_task(w, id) == NULL && !rewind_lost(w, id)))
        world_violate(w, "I-01", "%s was told of task %.*s, which was never committed", client,
                      RV_STR_FMT(task));
}

uint64_t check_token(struct rv_str text)
{
    uint64_t token = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        token = token << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return token;
}

/* I-02: a result that was acknowledged is recorded, byte by byte. */
static void check_counted(struct world *w, const struct step_past *step, uint64_t token,
                          uint64_t output_hash)
{
    if (step->row.token != token || step->row.attempt_state != RV_ATTEMPT_DONE ||
        step->row.state != RV_STEP_PROCESSED || step->output_hash != output_hash)
        world_violate(w, "I-02",
                      "a result of step %u was acknowledged and is not recorded: the step is %s, "
                      "its attempt %u %s",
                      step->row.number, rv_step_state_text(step->row.state), step->row.attempt,
                      rv_attempt_state_text(step->row.attempt_state));
}

/* Rule 3: a reply that was refused as late is kept in the ledger of late replies; one of an attempt
 * that was handed out is never taken for a stranger's. */
static void check_item(struct world *w, const struct rv_json *item, int64_t status)
{
    struct rv_step_id id;
    if (rv_step_parse(rv_json_str(rv_json_get(item, RV_STR("step"))), &id) != RV_OK)
        return;
    uint64_t token = check_token(rv_json_str(rv_json_get(item, RV_STR("token"))));
    const struct rv_json *output = rv_json_get(item, RV_STR("output"));
    struct step_past *step = history_step(history_task(w, id.task), id.number);
    if (history_lacks(w, id.task) || history_over(w, id.task))
        return;
    if (step == NULL || status == 409) {
        world_violate(w, "I-06", "a reply of an attempt that was handed out got status %lld",
                      (long long)status);
        return;
    }
    if (status == 410 && step->late == 0)
        world_violate(w, "L-03", "a late reply of step %u is not in the ledger", id.number);
    if (status != 200 || output == NULL)
        return;
    struct rv_buf text;
    rv_buf_init(&text, RV_PAYLOAD_BYTES_MAX);
    rv_json_write(&text, output);
    check_counted(w, step, token, history_hash(rv_buf_str(&text)));
    rv_buf_done(&text);
}

void check_replied(struct world *w, struct rv_str request, struct rv_str answer)
{
    struct rv_arena *arena = &w->history->scratch;
    struct rv_json asked, told;
    rv_arena_reset(arena);
    if (rv_json_parse(arena, request, RV_JSON_DEPTH_MAX, &asked, NULL) != RV_OK ||
        rv_json_parse(arena, answer, RV_JSON_NESTING_MAX, &told, NULL) != RV_OK) {
        world_violate(w, "W-02", "an answer is not JSON: %.*s", RV_STR_FMT(answer));
        return;
    }
    const struct rv_json *items = rv_json_get(&asked, RV_STR("replies"));
    const struct rv_json *results = rv_json_get(&told, RV_STR("results"));
    if (items == NULL || results == NULL || items->len != results->len) {
        world_violate(w, "W-02", "an answer to replies has not a result for each");
        return;
    }
    for (uint32_t i = 0; i < items->len && w->violated == NULL; i++) {
        int64_t status = 0;
        (void)rv_json_int(rv_json_get(&results->u.items[i], RV_STR("status")), &status);
        check_item(w, &items->u.items[i], status);
    }
}

/* I-27: what an operator was told to be done is in the task's history. */
void check_operated(struct world *w, struct rv_str verb, struct rv_task_id task)
{
    const struct task_past *past = history_task(w, task);
    if (history_lacks(w, task))
        return;
    bool undone = past != NULL && (past->row.direction == RV_UNDO || past->taken_back);
    bool ended = past != NULL && past->row.state == RV_TASK_CANCELLED;
    if (past == NULL || (rv_str_is(verb, "undo") && !undone) ||
        (rv_str_is(verb, "cancel") && !undone && !past->abandoned) ||
        (rv_str_is(verb, "abandon") && !ended))
        world_violate(w, "I-27", "%.*s was acknowledged and is not in the task's rows",
                      RV_STR_FMT(verb));
}

static bool step_as_it_was(const struct rv_step *step, const struct step_past *was)
{
    return was != NULL && step->state == was->row.state && step->attempt == was->row.attempt &&
           step->token == was->row.token && step->attempt_state == was->row.attempt_state &&
           step->effect == was->row.effect && history_hash(step->input) == was->input_hash &&
           history_hash(step->output) == was->output_hash;
}

/* I-02, I-03: with its task each step is there, and so each result. */
static void check_steps_there(struct world *w, struct rv_store *store, struct task_past *past)
{
    struct rv_step rows[RV_PAGE_ROWS_MAX];
    uint32_t after = 0, there = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    while (count == RV_PAGE_ROWS_MAX) {
        enum rv_err err = store->ops->list_steps(store, &w->history->scratch, RV_COLUMNS_ALL,
                                                 past->row.id, after, RV_PAGE_ROWS_MAX, rows,
                                                 &count);
        if (storage_found(w, err))
            return;
        if (err != RV_OK)
            count = 0;
        for (size_t i = 0; i < count; i++) {
            after = rows[i].number;
            if (!step_as_it_was(&rows[i], history_step(past, after)))
                world_violate(w, "I-02", "after a restart step %u is not there as it was", after);
        }
        there += (uint32_t)count;
    }
    if (there != past->row.last_number)
        world_violate(w, "I-02", "after a restart a task has %u of %u steps", there,
                      past->row.last_number);
}

/* I-01, I-03: after a restart every task is there, as its last commit left it, until the retention
 * rule has deleted it. */
void check_all_there(struct world *w, struct rv_store *store)
{
    struct history *h = w->history;
    for (size_t i = 0; i < h->count && w->violated == NULL; i++) {
        rv_arena_reset(&h->scratch);
        const struct rv_task *task;
        const struct rv_task *was = &h->all[i]->row;
        if (was->revision == 0)
            continue;
        enum rv_err err = store->ops->load_tasks(store, &h->scratch, RV_COLUMNS_ALL, &was->id, 1,
                                                 &task);
        if (storage_found(w, err))
            return;
        if (err == RV_OK && task == NULL && history_may_be_gone(w, was))
            continue;
        if (err != RV_OK || task == NULL || task->revision != was->revision ||
            task->state != was->state) {
            world_violate(w, "I-01", "after a restart a task is not there as it was");
            return;
        }
        check_steps_there(w, store, h->all[i]);
        check_history_there(w, store, h->all[i]);
    }
}

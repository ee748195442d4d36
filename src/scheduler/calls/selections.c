/* Selections: the ids of the tasks that fit a filter, frozen in the store, and what an operator
 * says of them. What is done with them then is bulk.c's. */
#include "scheduler/calls/selections.h"

#include "base/assert.h"
#include "base/limits.h"
#include "core/selection.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/calls/reads.h"
#include "scheduler/queries/queries.h"
#include "scheduler/queries/query.h"

enum {
    PIECE_ROWS = 25, /* of one page of a selection that is being made: payloads may be large */
    PIECE_PAGES = 8, /* with one batch */
    CHUNK_TASKS = 500
};

/* ---- records ---- */

enum rv_err selection_put(struct rv_scheduler *s, const struct rv_selection *selection,
                          int64_t epoch)
{
    char key[RV_ID_TEXT_BYTES];
    struct rv_buf value;
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_selection_write(&value, selection);
    struct rv_record_change made = {
        .row = {.kind = RV_STR(RV_RECORD_SELECTION), .key = rv_task_text(selection->id, key)},
        .epoch = epoch};
    enum rv_err err = record_put(s, made, &value);
    rv_buf_done(&value);
    return err;
}

enum rv_err selection_load(struct rv_store *store, struct rv_arena *arena, struct rv_task_id id,
                           bool *ret_found, struct rv_selection *ret_selection)
{
    char key[RV_ID_TEXT_BYTES];
    struct rv_record row;
    size_t count;
    enum rv_err err = store->ops->list_records(store, arena, RV_STR(RV_RECORD_SELECTION),
                                               rv_task_text(id, key), RV_STR_NONE, 1, &row, &count);
    *ret_found = err == RV_OK && count > 0;
    rv_assert(!*ret_found || count == 1);
    return *ret_found ? rv_selection_read(arena, &row, ret_selection) : err;
}

enum rv_err selection_outcomes(struct rv_store *store, struct rv_arena *arena,
                               struct rv_selection *selection)
{
    char key[RV_ID_TEXT_BYTES];
    struct rv_record row;
    size_t count;
    enum rv_err err = store->ops->list_records(store, arena, RV_STR(RV_RECORD_OUTCOMES),
                                               rv_task_text(selection->id, key), RV_STR_NONE, 1,
                                               &row, &count);
    return err == RV_OK && count > 0 ? rv_outcomes_read(arena, &row, selection) : err;
}

enum rv_err selection_find(struct rv_store *store, struct rv_call *call, struct rv_task_id id,
                           struct rv_selection *ret_selection)
{
    struct rv_arena *arena = &call->arena;
    char text[RV_ID_TEXT_BYTES];
    bool found;
    enum rv_err err = selection_load(store, arena, id, &found, ret_selection);
    if (err != RV_OK)
        return err;
    if (!found)
        return call_refuse(
            call, RV_ERR_NOT_FOUND,
            call_printf(call,
                        "there is no such selection: %.*s; `reeve selections` lists the selections",
                        RV_STR_FMT(rv_task_text(id, text))));
    if (ret_selection->unreadable)
        return call_refuse(
            call, RV_ERR_CORRUPT,
            RV_STR("the stored selection cannot be read: create a new one with `reeve select`"));
    return selection_outcomes(store, arena, ret_selection);
}

enum rv_err selections_count(struct rv_scheduler *s, size_t *ret_all, size_t *ret_open)
{
    struct rv_record *rows = RV_ROOM(s->batch.arena, struct rv_record, RV_PAGE_ROWS_MAX);
    struct rv_str after = RV_STR_NONE;
    size_t count = 0;
    *ret_all = *ret_open = 0;
    if (rows == NULL)
        return RV_ERR_MEMORY;
    do {
        enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena,
                                                      RV_STR(RV_RECORD_SELECTION), RV_STR_NONE,
                                                      after, RV_PAGE_ROWS_MAX, rows, &count);
        if (err != RV_OK)
            return err;
        rv_assert(count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; i < count; i++) {
            struct rv_selection selection;
            RV_TRY(rv_selection_read(s->batch.arena, &rows[i], &selection));
            *ret_open += selection.begun.at != 0 && selection.ended_at == 0 &&
                         selection.stopped.at == 0;
        }
        *ret_all += count;
        rv_assert(*ret_open <= *ret_all);
        after = count > 0 ? rows[count - 1].key : after;
    } while (count == RV_PAGE_ROWS_MAX);
    return RV_OK;
}

/* ---- a selection is made ---- */

static bool ids_room(struct rv_call *call, size_t more)
{
    struct rv_call_select *select = call->u.select;
    if (select->count + more <= select->room)
        return true;
    size_t room = 2 * select->room + more;
    struct rv_task_id *grown = RV_NEW_ARRAY(&call->arena, struct rv_task_id, room);
    if (grown == NULL)
        return false;
    if (select->count > 0)
        memcpy(grown, select->ids, select->count * sizeof *grown);
    select->ids = grown;
    select->room = room;
    return true;
}

/* A page of ids; the first few tasks are shown to who asks. */
static enum rv_err page_gather(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_select *select = p->call->u.select;
    struct rv_call_list *list = &select->list;
    struct rv_arena_mark mark = rv_arena_mark(s->batch.arena);
    int64_t workflows[RV_SELECTION_SHOWN];
    size_t shown = select->shown_count;
    rv_assert(!select->whole);
    rv_assert(shown <= RV_SELECTION_SHOWN);
    rv_assert(shown <= select->count);
    list->limit = PIECE_ROWS;
    list->count = 0;
    list->next = (struct rv_task_id){0};
    struct query query = query_of(s);
    enum rv_err err = query_tasks_find(&query, list, s->batch.arena);
    if (err == RV_OK && !ids_room(p->call, list->count))
        err = p->call->arena.refused;
    for (size_t i = 0; err == RV_OK && i < list->count; i++) {
        const struct rv_task *task = &list->tasks[i];
        rv_assert(select->count < select->room);
        select->ids[select->count++] = task->id;
        if (select->shown_count == RV_SELECTION_SHOWN)
            continue;
        workflows[select->shown_count] = task->workflow;
        select->shown[select->shown_count++] = (struct rv_selected_task){
            .task = task->id, .state = task->state, .created_at = task->created_at};
    }
    bool full = err == RV_OK && list->count == list->limit;
    list->filter.before = full ? list->tasks[list->count - 1].id : list->next;
    select->whole = err == RV_OK && !full && list->next.value == 0;
    rv_arena_release(s->batch.arena, mark);
    for (; err == RV_OK && shown < select->shown_count; shown++) {
        struct workflow_entry *entry;
        err = workflow_by_id(&s->workflows, workflows[shown], &entry);
        if (err == RV_OK && entry != NULL)
            select->shown[shown].workflow = call_printf(
                p->call, "%.*s/%.*s:%.*s", RV_STR_FMT(entry->row.space),
                RV_STR_FMT(entry->row.name), RV_STR_FMT(entry->row.version));
    }
    return err;
}

/* The tasks of a selection, so many to a record. */
static enum rv_err chunks_put(struct rv_scheduler *s, const struct rv_call_select *select)
{
    struct rv_buf value;
    enum rv_err err = RV_OK;
    rv_assert(select->count > 0);
    rv_assert(select->count <= RV_SELECTION_TASKS_MAX);
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    for (size_t from = 0; err == RV_OK && from < select->count; from += CHUNK_TASKS) {
        char text[RV_ID_TEXT_BYTES];
        rv_buf_reset(&value);
        for (size_t i = from; i < select->count && i < from + CHUNK_TASKS; i++)
            rv_buf_add_str(&value, rv_task_text(select->ids[i], text));
        struct rv_record_change made = {
            .row = {.kind = RV_STR(RV_RECORD_SELECTED),
                    .key = rv_arena_printf(s->batch.arena, "%s.%05zu",
                                           rv_task_text(select->row.id, text).at,
                                           from / CHUNK_TASKS)}};
        err = made.row.key.at != NULL ? record_put(s, made, &value) : RV_ERR_MEMORY;
    }
    rv_buf_done(&value);
    return err;
}

static enum rv_err selection_make(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_select *select = p->call->u.select;
    size_t all, open;
    rv_assert(select->whole);
    if (select->count == 0)
        return call_refuse(p->call, RV_ERR_NOT_FOUND,
                           RV_STR("no task matches the filter, so no selection was created"));
    enum rv_err err = selections_count(s, &all, &open);
    if (err != RV_OK)
        return err;
    if (all >= RV_SELECTIONS_MAX)
        return call_refuse(
            p->call, RV_ERR_LIMIT,
            RV_STR("the maximum number of selections is reached: wait until the server deletes old "
                   "selections. It deletes a selection without a running command after --retain "
                   "(after 30 days if --retain is forever)"));
    select->row.id = rv_id_make(&s->ids, s->batch.now);
    select->row.tasks = (uint32_t)select->count;
    select->row.picked.at = s->batch.now;
    err = chunks_put(s, select);
    return err == RV_OK ? selection_put(s, &select->row, 0) : err;
}

/* The filter may lead through many pages, some of them with a batch; nothing is written before the
 * last one is read. */
static enum rv_err select_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_select *select = p->call->u.select;
    struct query query = query_of(s);
    if (select->list.filter.before.value == 0)
        query_filter_age(&query, &select->list); /* once: the later pages are of the same time */
    for (int i = 0; i < PIECE_PAGES && !select->whole && select->count <= RV_SELECTION_TASKS_MAX;
         i++) {
        enum rv_err err = page_gather(s, p);
        if (err != RV_OK)
            return err;
        if (select->list.count < PIECE_ROWS)
            break; /* it has looked at many tasks that do not fit: the others' turn comes */
    }
    p->waits_turn = false;
    if (select->count > RV_SELECTION_TASKS_MAX)
        return call_refuse(p->call, RV_ERR_LIMIT,
                           call_printf(p->call,
                                       "more than %d tasks match the filter: narrow the filter, "
                                       "for example by age, and create several selections",
                                       RV_SELECTION_TASKS_MAX));
    p->waits_turn = !select->whole || s->batch.record_changes++ > 0;
    return p->waits_turn ? RV_OK : selection_make(s, p);
}

/* ---- what is asked of it ---- */

static enum rv_err selections_read(const struct query *q, struct rv_call *call)
{
    struct rv_call_selections *asked = &call->u.selections;
    struct rv_arena *arena = &call->arena;
    asked->rows = RV_NEW_ARRAY(arena, struct rv_selection, asked->limit + 1);
    if (asked->rows == NULL)
        return RV_ERR_MEMORY;
    if (asked->only.value != 0) {
        enum rv_err err = selection_find(q->store, call, asked->only, &asked->rows[0]);
        asked->count = err == RV_OK && call->err == RV_OK;
        return err;
    }
    struct rv_record *rows = RV_NEW_ARRAY(arena, struct rv_record, asked->limit);
    char key[RV_ID_TEXT_BYTES];
    if (rows == NULL)
        return RV_ERR_MEMORY;
    struct rv_str after = asked->after.value != 0 ? rv_task_text(asked->after, key) : RV_STR_NONE;
    size_t count = 0;
    enum rv_err err = q->store->ops->list_records(q->store, arena, RV_STR(RV_RECORD_SELECTION),
                                                  RV_STR_NONE, after, asked->limit, rows, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= asked->limit);
    for (size_t i = 0; i < count; i++) {
        RV_TRY(rv_selection_read(arena, &rows[i], &asked->rows[i]));
        if (!asked->rows[i].unreadable)
            RV_TRY(selection_outcomes(q->store, arena, &asked->rows[i]));
    }
    asked->count = count;
    return RV_OK;
}

/* What the command began may not have ended yet, and may still fail. */
static enum rv_err outcome_tasks(const struct query *q, struct rv_call_outcomes *asked,
                                 struct rv_arena *arena)
{
    struct rv_task_id *ids = RV_NEW_ARRAY(arena, struct rv_task_id, asked->count + 1);
    asked->tasks = RV_NEW_ARRAY(arena, const struct rv_task *, asked->count + 1);
    if (ids == NULL || asked->tasks == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < asked->count; i++)
        ids[i] = asked->rows[i].task;
    return q->store->ops->load_tasks(q->store, arena, RV_COLUMNS_PLAIN, ids, asked->count,
                                     asked->tasks);
}

static enum rv_err outcomes_read(const struct query *q, struct rv_call *call)
{
    struct rv_call_outcomes *asked = &call->u.outcomes;
    struct rv_arena *arena = &call->arena;
    struct rv_selection selection;
    char prefix[RV_SELECTION_KEY_BYTES];
    char key[RV_SELECTION_KEY_BYTES];
    enum rv_err err = selection_find(q->store, call, asked->selection, &selection);
    if (err != RV_OK || call->err != RV_OK)
        return err;
    struct rv_record *rows = RV_NEW_ARRAY(arena, struct rv_record, asked->limit);
    asked->rows = RV_NEW_ARRAY(arena, struct rv_outcome_row, asked->limit);
    if (rows == NULL || asked->rows == NULL)
        return RV_ERR_MEMORY;
    struct rv_outcome_row last = {.task = asked->after, .outcome = asked->outcome};
    struct rv_str after = RV_STR_NONE;
    if (asked->after.value != 0)
        after = rv_bulk_outcome_key(asked->selection, &last, key);
    struct rv_str with = rv_bulk_outcome_prefix(asked->selection, &asked->outcome, prefix);
    size_t count = 0;
    err = q->store->ops->list_records(q->store, arena, RV_STR(RV_RECORD_OUTCOME), with, after,
                                      asked->limit, rows, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= asked->limit);
    for (size_t i = 0; i < count; i++)
        if (rv_bulk_outcome_read(&rows[i], &asked->rows[asked->count]))
            asked->count++;
    rv_assert(asked->count <= count);
    return outcome_tasks(q, asked, arena);
}

const struct call_ops selections_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = selections_read};

const struct call_ops outcomes_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = outcomes_read};

const struct call_ops select_ops = {.decide = select_decide, .act = record_act};

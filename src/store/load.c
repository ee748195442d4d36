/* Tasks are loaded in small pieces, each with its open steps: the size of a row is known once it is
 * loaded, and the rows of a task may have megabytes. */
#include "store/load.h"

#include "base/arena.h"
#include "base/array.h"
#include "base/assert.h"
#include "store/store.h"

#include <string.h>

/* The ids of the open steps of the tasks. */
static enum rv_err steps_name(const struct rv_wants *load, size_t from, size_t to,
                              struct rv_step_id **ret_ids, size_t *ret_count)
{
    struct rv_step_id *ids = NULL;
    size_t count = 0, room = 0;
    for (size_t i = from; i < to; i++) {
        const struct rv_task *task = load->tasks[i].task;
        for (uint32_t k = 0; task != NULL && k < task->open_count; k++) {
            if (!RV_ARRAY_ROOM_ON(load->arena, ids, count, room))
                return load->arena->refused;
            ids[count++] = (struct rv_step_id){load->tasks[i].id, task->open[k]};
        }
    }
    *ret_ids = ids;
    *ret_count = count;
    return RV_OK;
}

/* Gives each task those of its steps that are there. */
static void steps_give(struct rv_wants *load, size_t from, size_t to, const struct rv_step **rows,
                       size_t count)
{
    size_t at = 0;
    for (size_t i = from; i < to; i++) {
        struct rv_loaded *loaded = &load->tasks[i];
        loaded->steps = rows + at;
        loaded->steps_count = 0;
        for (uint32_t k = 0; loaded->task != NULL && k < loaded->task->open_count; k++) {
            rv_assert(at < count);
            const struct rv_step *step = rows[at++];
            if (step != NULL)
                loaded->steps[loaded->steps_count++] = step;
        }
    }
    rv_assert(at == count);
}

static enum rv_err piece_load(struct rv_store *store, struct rv_wants *load, size_t from, size_t to)
{
    const struct rv_task *tasks[RV_LOAD_PIECE];
    struct rv_task_id named[RV_LOAD_PIECE];
    struct rv_step_id *ids = NULL;
    size_t count = 0, room = 0;
    rv_assert(from < to);
    rv_assert(to - from <= RV_LOAD_PIECE);
    for (size_t i = from; i < to; i++)
        if (load->tasks[i].how != RV_LOADED_SKIPPED)
            named[count++] = load->tasks[i].id;
    RV_TRY(store->ops->load_tasks(store, load->arena, RV_COLUMNS_ALL, named, count, tasks));
    for (size_t i = from; i < to; i++)
        if (load->tasks[i].how != RV_LOADED_SKIPPED)
            load->tasks[i].task = tasks[room++];
    rv_assert(room == count);
    count = 0;
    RV_TRY(steps_name(load, from, to, &ids, &count));
    const struct rv_step **rows = RV_NEW_ARRAY(load->arena, const struct rv_step *, count + 1);
    if (rows == NULL)
        return load->arena->refused;
    if (count > 0)
        RV_TRY(store->ops->load_steps(store, load->arena, RV_COLUMNS_ALL, ids, count, rows));
    steps_give(load, from, to, rows, count);
    return RV_OK;
}

static enum rv_err histories_load(struct rv_store *store, struct rv_wants *load, size_t from,
                                  size_t to)
{
    for (size_t i = from; i < to; i++) {
        struct rv_history_row last = {.number = 0};
        size_t count = 0;
        if (load->tasks[i].task == NULL)
            continue;
        RV_TRY(
            store->ops->list_history(store, load->arena, load->tasks[i].id, 0, 1, &last, &count));
        load->tasks[i].history_last = count > 0 ? last.number : 0;
    }
    return RV_OK;
}

static enum rv_err names_load(struct rv_store *store, struct rv_wants *load)
{
    load->name_ids = RV_NEW_ARRAY(load->arena, int64_t, load->names_count + 1);
    if (load->name_ids == NULL)
        return load->arena->refused;
    for (size_t i = 0; i < load->names_count; i++) {
        const struct rv_workflow_name *name = &load->names[i];
        const struct rv_workflow_row *row;
        RV_TRY(store->ops->find_workflow(store, load->arena, name->space, name->name, name->version,
                                         &row));
        load->name_ids[i] = row != NULL ? row->id : 0;
    }
    return RV_OK;
}

static enum rv_err list_load(struct rv_store *store, struct rv_arena *arena,
                             struct rv_record_list *list)
{
    size_t page = list->most > 0 ? list->most : RV_PAGE_ROWS_MAX, room = 0, read = 0;
    do {
        struct rv_str after = list->count > 0 ? list->rows[list->count - 1].key : list->after;
        if (room < list->count + page) {
            room = 2 * room + page;
            struct rv_record *rows = RV_ROOM(arena, struct rv_record, room);
            if (rows == NULL)
                return arena->refused;
            if (list->count > 0)
                memcpy(rows, list->rows, list->count * sizeof *rows);
            list->rows = rows;
        }
        RV_TRY(store->ops->list_records(store, arena, list->kind, RV_STR_NONE, after, page,
                                        list->rows + list->count, &read));
        list->count += read;
    } while (read == page && list->most == 0);
    return RV_OK;
}

enum rv_err rv_store_load_tasks_whole(struct rv_store *store, struct rv_wants *load, size_t count)
{
    size_t before = load->arena->bytes_taken, bytes = 0;
    load->tasks_count = 0;
    while (load->tasks_count < count && (load->tasks_count == 0 || bytes < load->bytes_max)) {
        size_t from = load->tasks_count, left = count - from;
        size_t to = from + (left < RV_LOAD_PIECE ? left : RV_LOAD_PIECE);
        RV_TRY(piece_load(store, load, from, to));
        if (load->histories)
            RV_TRY(histories_load(store, load, from, to));
        load->tasks_count = to;
        bytes = load->arena->bytes_taken - before;
    }
    load->cut = load->tasks_count < count;
    if (load->names_count > 0)
        RV_TRY(names_load(store, load));
    for (size_t i = 0; i < load->records_count; i++)
        RV_TRY(list_load(store, load->arena, &load->records[i]));
    return RV_OK;
}

void rv_store_load_met(struct rv_wants *load, size_t *count)
{
    const struct rv_scan *scan = load->scan;
    rv_assert(scan->count <= scan->rows_max);
    for (size_t i = 0; scan->whole && i < scan->count; i++)
        load->tasks[(*count)++] = (struct rv_loaded){.id = scan->rows[i].id, .how = RV_LOADED_MET};
}

enum rv_err rv_store_load_name(struct rv_wants *load, size_t beside)
{
    if (load->scan != NULL && load->scan->whole)
        beside += load->scan->rows_max;
    for (size_t i = 0; i < load->records_count; i++) {
        load->records[i].rows = NULL;
        load->records[i].count = 0;
    }
    load->tasks_count = 0;
    load->deposed_at = load->orphaned_at = 0;
    load->servers = NULL;
    load->servers_count = 0;
    for (size_t i = 0; i < RV_REGISTRY_COUNT; i++)
        load->registry[i] = 0;
    load->tasks = RV_NEW_ARRAY(load->arena, struct rv_loaded, load->count + beside + 1);
    if (load->tasks == NULL)
        return load->arena->refused;
    for (size_t i = 0; i < load->count; i++)
        load->tasks[i] = (struct rv_loaded){.id = load->ids[i]};
    return RV_OK;
}

enum rv_err rv_store_load_keys(struct rv_store *store, struct rv_arena *arena,
                               const struct rv_str *keys, size_t count, struct rv_key_row *ret_rows)
{
    struct rv_wants load = {.arena = arena, .keys = keys, .keys_count = count};
    RV_TRY(store->ops->load(store, &load));
    for (size_t i = 0; i < count; i++)
        ret_rows[i] = load.key_rows[i];
    return RV_OK;
}

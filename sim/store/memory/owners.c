/* Whose the open tasks are: claims of a transaction, steps that wait for an agent, and what
 * instances leave that are not there any more. */
#include "sim/store/memory/memory_priv.h"

#include "base/assert.h"
#include "core/decide.h"
#include "store/load.h"

#include <string.h>

/* ---- instances ---- */

static bool lease_is_over(const struct instance *row, int64_t now)
{
    return row->boot != 0 && row->lease_until + RV_LEASE_MARGIN_MS < now;
}

bool rv_store_memory_lives(const struct rv_store_memory_data *data, uint8_t instance, int64_t now)
{
    const struct instance *row = &data->registry.instances[instance];
    return row->boot != 0 && !lease_is_over(row, now);
}

static void deposed_find(struct memory *store, struct rv_wants *load)
{
    const struct registry *registry = &store->data->registry;
    store->deposes_count = 0;
    for (int number = 1; number <= INSTANCE_MAX; number++) {
        const struct instance *row = &registry->instances[number];
        if (number == store->instance || !lease_is_over(row, store->now))
            continue;
        store->deposes[store->deposes_count++] = (struct deposes){(uint8_t)number, row->boot};
        if (row->alive_at > load->deposed_at)
            load->deposed_at = row->alive_at;
    }
}

bool memory_depose(struct memory *store)
{
    struct registry *registry = &store->data->registry;
    for (size_t i = 0; i < store->deposes_count; i++) {
        struct instance *row = &registry->instances[store->deposes[i].number];
        if (row->boot == store->deposes[i].boot && !lease_is_over(row, store->now))
            return false;
    }
    for (size_t i = 0; i < store->deposes_count; i++) {
        struct instance *row = &registry->instances[store->deposes[i].number];
        if (row->boot != store->deposes[i].boot)
            continue;
        row->boot_before = row->boot;
        row->boot = 0;
    }
    return true;
}

/* In this transaction nobody lives who is deposed with it. */
static bool owner_lives(const struct memory *store, uint8_t owner)
{
    for (size_t i = 0; i < store->deposes_count; i++)
        if (store->deposes[i].number == owner)
            return false;
    return store->data->registry.instances[owner].boot != 0;
}

/* ---- claims ---- */

uint8_t rv_store_memory_claimant(const struct rv_store_memory_data *data, struct rv_task_id task)
{
    const uint64_t *by = rv_map_find(&data->claimed, (uint64_t)task.value, 0);
    return by != NULL ? (uint8_t)*by : 0;
}

/* The transaction of one that does not live is over: it has been silent for as long as a lease. */
static bool is_claimed(const struct memory *store, struct rv_task_id id)
{
    const uint64_t *by = rv_map_find(&store->data->claimed, (uint64_t)id.value, 0);
    return by != NULL && *by != store->instance && owner_lives(store, (uint8_t)*by) &&
           rv_store_memory_lives(store->data, (uint8_t)*by, store->now);
}

static enum rv_err claim(struct memory *store, struct rv_task_id id)
{
    rv_assert(!is_claimed(store, id));
    return rv_map_put(&store->data->claimed, (uint64_t)id.value, 0, store->instance);
}

void memory_unclaim(struct memory *store)
{
    struct rv_map *claimed = &store->data->claimed;
    for (size_t i = 0; claimed->count > 0 && i < claimed->room; i++)
        while (claimed->slots[i].used && claimed->slots[i].value == store->instance)
            rv_map_remove(claimed, claimed->slots[i].a, 0);
    store->deposes_count = 0;
}

static enum rv_err found_add(struct memory *store, struct rv_wants *load, struct rv_task_id id,
                             enum rv_loaded_how how, size_t *count)
{
    RV_TRY(claim(store, id));
    load->tasks[(*count)++] = (struct rv_loaded){.id = id, .how = how};
    return RV_OK;
}

static enum rv_err orphans_find(struct memory *store, struct rv_wants *load, size_t *count)
{
    const struct sorted *open = &store->data->open;
    size_t most = *count + load->orphans_max;
    if (load->orphans_max == 0 || !store->data->shared)
        return RV_OK;
    deposed_find(store, load);
    for (size_t i = 0; i < open->count && *count < most; i++) {
        const struct rv_task *task = ((const struct node *)open->at[i].row)->row;
        if (!rv_task_state_open(task->state) || owner_lives(store, task->locked_by) ||
            is_claimed(store, task->id))
            continue;
        int64_t alive_at = store->data->registry.instances[task->locked_by].alive_at;
        load->orphaned_at = alive_at > load->orphaned_at ? alive_at : load->orphaned_at;
        RV_TRY(found_add(store, load, task->id, RV_LOADED_ORPHAN, count));
    }
    return RV_OK;
}

/* ---- what is overdue ---- */

static bool has_passed(int64_t at, int64_t before)
{
    return at != 0 && at <= before;
}

static bool is_overdue(const struct node *node, int64_t before)
{
    const struct rv_task *task = node->row;
    if (!rv_task_state_open(task->state) || task->state == RV_TASK_ERROR)
        return false;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct sorted_entry *entry = sorted_find(&node->steps, task->open[i], 0);
        const struct rv_step *step = entry != NULL ? entry->row : NULL;
        if (step != NULL &&
            (has_passed(step->wake_at, before) || has_passed(step->deadline, before)))
            return true;
    }
    return task->state == RV_TASK_COMPENSATING && task->open_count == 0 && task->quiet_at <= before;
}

static enum rv_err look(struct memory *store, struct rv_wants *load, size_t *count)
{
    const struct sorted *open = &store->data->open;
    struct rv_look *look = load->look;
    if (look == NULL || !store->data->shared)
        return RV_OK;
    size_t most = *count + look->most;
    size_t i = sorted_place(open, look->after.value, INT64_MAX);
    for (size_t rows = 0; i < open->count && rows < look->rows_max && *count < most; i++, rows++) {
        const struct node *node = open->at[i].row;
        if (is_overdue(node, look->before) && !is_claimed(store, node->row->id))
            RV_TRY(found_add(store, load, node->row->id, RV_LOADED_OVERDUE, count));
        look->next = node->row->id;
    }
    if (i == open->count)
        look->next = (struct rv_task_id){0};
    return RV_OK;
}

/* ---- the walk ---- */

static void scan(const struct memory *store, struct rv_scan *scan)
{
    const struct sorted *open = &store->data->open;
    size_t i = sorted_place(open, scan->after.value, INT64_MAX);
    scan->count = 0;
    for (; i < open->count && scan->count < scan->rows_max; i++) {
        const struct rv_task *task = ((const struct node *)open->at[i].row)->row;
        bool own = !store->data->shared || task->locked_by == store->instance;
        if (rv_task_state_open(task->state) && own)
            scan->rows[scan->count++] = (struct rv_scanned){task->id, task->revision, task->state};
    }
}

/* ---- steps that wait ---- */

struct waiting {
    struct rv_task_id task;
    unsigned priority;
    int64_t since;
    int64_t rank;
};

static bool is_past(const struct rv_waiting_place *place, const struct waiting *waiting)
{
    int64_t since = place->since[waiting->priority];
    return waiting->since < since ||
           (waiting->since == since && waiting->task.value <= place->task[waiting->priority].value);
}

static bool waits_for(const struct memory *store, const struct node *node, struct rv_str agent,
                      struct waiting *ret_waiting)
{
    const struct rv_task *task = node->row;
    bool found = false;
    if (task->state == RV_TASK_ERROR || task->suspended_at != 0)
        return false;
    for (uint32_t i = 0; i < task->open_count; i++) {
        const struct sorted_entry *entry = sorted_find(&node->steps, task->open[i], 0);
        const struct rv_step *step = entry != NULL ? entry->row : NULL;
        if (step == NULL || !rv_str_eq(step->agent, agent) ||
            !rv_step_ready(task, step, store->now) ||
            (step->deadline != 0 && step->deadline <= store->now))
            continue;
        int64_t since = step->waits_since != 0 ? step->waits_since : step->ready_at;
        if (found && since >= ret_waiting->since)
            continue;
        found = true;
        *ret_waiting = (struct waiting){task->id, task->priority, since,
                                        since - task->priority * (int64_t)RV_PRIORITY_WORTH_MS};
    }
    return found;
}

static bool before(const struct waiting *a, const struct waiting *b)
{
    return a->rank < b->rank || (a->rank == b->rank && a->task.value < b->task.value);
}

/* Among the first `room`, in order. */
static size_t place_in(struct waiting *first, size_t count, size_t room, struct waiting waiting)
{
    size_t at = count < room ? count : room;
    if (at == room && (room == 0 || !before(&waiting, &first[room - 1])))
        return count;
    at -= at == room;
    for (; at > 0 && before(&waiting, &first[at - 1]); at--)
        first[at] = first[at - 1];
    first[at] = waiting;
    return count < room ? count + 1 : room;
}

static enum rv_err steal(struct memory *store, struct rv_wants *load, const struct rv_steal *what,
                         size_t *count)
{
    const struct sorted *open = &store->data->open;
    struct waiting *first = RV_NEW_ARRAY(load->arena, struct waiting, what->most + 1);
    struct waiting waiting = {.rank = 0};
    size_t found = 0;
    if (first == NULL)
        return load->arena->refused;
    for (size_t i = 0; i < open->count; i++) {
        const struct node *node = open->at[i].row;
        if (rv_task_state_open(node->row->state) && waits_for(store, node, what->agent, &waiting) &&
            !is_past(what->place, &waiting))
            found = place_in(first, found, what->most, waiting);
    }
    for (size_t i = 0; i < found; i++) {
        what->place->since[first[i].priority] = first[i].since;
        what->place->task[first[i].priority] = first[i].task;
        if (!is_claimed(store, first[i].task))
            RV_TRY(found_add(store, load, first[i].task, RV_LOADED_STOLEN, count));
    }
    return RV_OK;
}

/* ---- the load ---- */

static enum rv_err servers_list(struct memory *store, struct rv_wants *load)
{
    const struct sorted *open = &store->data->open;
    bool owns[INSTANCE_MAX + 1] = {false};
    load->servers = RV_NEW_ARRAY(load->arena, struct rv_server, INSTANCE_MAX + 1);
    if (load->servers == NULL)
        return load->arena->refused;
    for (size_t i = 0; i < open->count; i++) {
        const struct rv_task *task = ((const struct node *)open->at[i].row)->row;
        owns[task->locked_by] |= rv_task_state_open(task->state);
    }
    for (int number = 0; number <= INSTANCE_MAX; number++) {
        bool lives = owner_lives(store, (uint8_t)number);
        if (lives || owns[number])
            load->servers[load->servers_count++] = (struct rv_server){(uint8_t)number, lives};
    }
    return RV_OK;
}

static size_t found_most(const struct rv_wants *load)
{
    size_t most = load->orphans_max + (load->look != NULL ? load->look->most : 0);
    for (size_t i = 0; i < load->steals_count; i++)
        most += load->steals[i].most;
    return most;
}

enum rv_err memory_load_owned(struct memory *store, struct rv_wants *load)
{
    size_t count = load->count;
    rv_assert(load->claims <= load->count);
    RV_TRY(rv_store_load_name(load, found_most(load)));
    if (store->data->shared)
        memcpy(load->registry, store->data->registry.versions, sizeof load->registry);
    for (size_t i = load->count - load->claims; i < load->count; i++) {
        if (is_claimed(store, load->ids[i]))
            load->tasks[i].how = RV_LOADED_SKIPPED;
        else
            RV_TRY(claim(store, load->ids[i]));
    }
    for (size_t i = 0; store->data->shared && i < load->steals_count; i++)
        RV_TRY(steal(store, load, &load->steals[i], &count));
    RV_TRY(orphans_find(store, load, &count));
    RV_TRY(look(store, load, &count));
    if (load->servers_wanted)
        RV_TRY(servers_list(store, load));
    if (load->scan != NULL) {
        scan(store, load->scan);
        rv_store_load_met(load, &count);
    }
    return rv_store_load_tasks_whole(&store->store, load, count);
}

/* The data, and the store as one process has it open. */
#include "store/memory/memory_priv.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mutant.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

enum { INSTANCE_MAX = 255 };

enum rv_err rv_store_memory_data_new(struct rv_store_memory_data **ret_data)
{
    struct rv_store_memory_data *data = calloc(1, sizeof *data);
    if (data == NULL)
        return RV_ERR_MEMORY;
    rv_map_init(&data->ids);
    rv_map_init(&data->keys);
    *ret_data = data;
    return RV_OK;
}

static void keys_free(struct rv_map *keys)
{
    for (size_t i = 0; i < keys->room; i++) {
        struct key_node *key = keys->slots[i].used
                                   ? (struct key_node *)(uintptr_t)keys->slots[i].value
                                   : NULL;
        while (key != NULL) {
            struct key_node *next = key->next;
            free(key->row);
            free(key);
            key = next;
        }
    }
    rv_map_done(keys);
}

void rv_store_memory_data_free(struct rv_store_memory_data *data)
{
    if (data == NULL)
        return;
    rv_assert(!data->opened);
    for (size_t i = 0; i < data->tasks.count; i++) {
        struct node *node = data->tasks.at[i].row;
        sorted_free(&node->steps);
        sorted_free(&node->attempts);
        sorted_free(&node->late);
        free(node->row);
    }
    sorted_free(&data->tasks);
    free(data->open.at);
    sorted_free(&data->alerts);
    sorted_free(&data->workflows);
    keys_free(&data->keys);
    rv_map_done(&data->ids);
    free(data);
}

struct node *memory_node_find(const struct rv_store_memory_data *data, struct rv_task_id id)
{
    const uint64_t *found = rv_map_find(&data->ids, (uint64_t)id.value, 0);
    return found != NULL ? (struct node *)(uintptr_t)*found : NULL;
}

/* The simulator's own submitters choose the keys, so no secret is needed, and the same run makes
 * the same table. */
uint64_t memory_key_hash(struct rv_str key)
{
    return rv_hash((struct rv_hash_key){1, 2}, key);
}

const struct rv_key_row *memory_key_find(const struct rv_store_memory_data *data, struct rv_str key)
{
    const uint64_t *found = rv_map_find(&data->keys, memory_key_hash(key), 0);
    const struct key_node *node = found != NULL ? (struct key_node *)(uintptr_t)*found : NULL;
    while (node != NULL && !rv_str_eq(node->row->key, key))
        node = node->next;
    return node != NULL ? node->row : NULL;
}

/* ---- the store ---- */

static int64_t clock_read(struct memory *store)
{
    int64_t wall = store->clock.now(store->clock.self);
    if (wall > store->clock_floor || RV_MUTANT_ON(CLOCK_GOES_BACK))
        store->clock_floor = wall;
    return store->clock_floor;
}

static enum rv_err memory_begin(struct rv_store *base, int64_t *ret_now)
{
    struct memory *store = (struct memory *)base;
    rv_assert(!store->in_transaction);
    store->in_transaction = true;
    store->registry_before = store->data->registry;
    *ret_now = clock_read(store);
    return RV_OK;
}

static void memory_rollback(struct rv_store *base)
{
    struct memory *store = (struct memory *)base;
    rv_assert(store->in_transaction);
    store->in_transaction = false;
    store->data->registry = store->registry_before;
}

static enum rv_err memory_enlist(struct rv_store *base, struct rv_str boot, int64_t pid,
                                 struct rv_enlistment *ret_enlistment)
{
    (void)boot;
    (void)pid;
    struct memory *store = (struct memory *)base;
    struct registry *registry = &store->data->registry;
    rv_assert(store->instance == 0 && !store->in_transaction);
    *ret_enlistment = (struct rv_enlistment){.last_alive_at = registry->alive_at,
                                             .open_tasks = (int64_t)store->data->open_count,
                                             .created = registry->enlistments == 0};
    registry->instance = (uint8_t)(registry->instance % INSTANCE_MAX + 1);
    registry->enlistments++;
    registry->alive_at = clock_read(store);
    registry->batch = 0;
    store->instance = registry->instance;
    ret_enlistment->instance = store->instance;
    return RV_OK;
}

static enum rv_err memory_committed(struct rv_store *base, int64_t number, bool *ret_committed)
{
    struct memory *store = (struct memory *)base;
    *ret_committed = store->data->registry.batch >= number;
    return RV_OK;
}

static size_t role_place(const struct registry *registry, struct rv_str role)
{
    size_t i = 0;
    while (
        i < registry->roles_count &&
        !rv_str_eq((struct rv_str){registry->roles[i].name, registry->roles[i].name_bytes}, role))
        i++;
    return i;
}

int64_t memory_registry_epoch(const struct registry *registry, struct rv_str role)
{
    size_t place = role_place(registry, role);
    return place < registry->roles_count ? registry->roles[place].epoch : 0;
}

static enum rv_err memory_claim_role(struct rv_store *base, struct rv_str role, int64_t lease_ms,
                                     int64_t *ret_epoch, int64_t *ret_until)
{
    struct memory *store = (struct memory *)base;
    struct registry *registry = &store->data->registry;
    rv_assert(store->instance != 0 && lease_ms >= 0 && lease_ms <= RV_DAY_MS);
    int64_t now = store->in_transaction ? store->clock_floor : clock_read(store);
    size_t place = role_place(registry, role);
    if (place == registry->roles_count) {
        rv_assert(place < ROLES_MAX && role.len > 0 && role.len <= ROLE_BYTES_MAX);
        memcpy(registry->roles[place].name, role.at, role.len);
        registry->roles[place].name_bytes = role.len;
        registry->roles_count++;
    }
    bool another = registry->roles[place].instance != store->instance;
    if (registry->roles[place].epoch == 0 || (another && !RV_MUTANT_ON(EPOCH_NOT_RAISED)))
        registry->roles[place].epoch++;
    registry->roles[place].instance = store->instance;
    registry->roles[place].until = now + lease_ms;
    registry->alive_at = now;
    *ret_epoch = registry->roles[place].epoch;
    *ret_until = registry->roles[place].until;
    return RV_OK;
}

static void memory_close(struct rv_store *base)
{
    struct memory *store = (struct memory *)base;
    if (store->in_transaction)
        memory_rollback(base);
    store->data->opened = false;
    free(store);
}

static const struct rv_store_ops operations = {
    .close = memory_close,
    .enlist = memory_enlist,
    .begin = memory_begin,
    .commit = memory_commit,
    .rollback = memory_rollback,
    .committed = memory_committed,
    .load_tasks = memory_load_tasks,
    .load_steps = memory_load_steps,
    .find_keys = memory_find_keys,
    .load_workflow = memory_load_workflow,
    .find_workflow = memory_find_workflow,
    .scan_open = memory_scan_open,
    .claim_role = memory_claim_role,
    .list_tasks = memory_list_tasks,
    .list_steps = memory_list_steps,
    .list_attempts = memory_list_attempts,
    .list_late_replies = memory_list_late_replies,
    .list_alerts = memory_list_alerts,
    .list_workflows = memory_list_workflows,
};

enum rv_err rv_store_memory_open(struct rv_store_memory_data *data, struct rv_wall_clock clock,
                                 struct rv_store **ret_store)
{
    rv_assert(!data->opened);
    struct memory *store = calloc(1, sizeof *store);
    if (store == NULL)
        return RV_ERR_MEMORY;
    store->store.ops = &operations;
    store->data = data;
    store->clock = clock;
    store->clock_floor = data->registry.alive_at;
    data->opened = true;
    *ret_store = &store->store;
    return RV_OK;
}

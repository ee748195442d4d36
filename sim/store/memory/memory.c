/* The data, and the store as one process has it open. */
#include "sim/store/memory/memory_priv.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

/* A number is given again when its row has been still for so long. */
enum { NUMBER_REST_MS = 10 * RV_MINUTE_MS };

enum rv_err rv_store_memory_data_new(struct rv_store_memory_data **ret_data)
{
    struct rv_store_memory_data *data = calloc(1, sizeof *data);
    if (data == NULL)
        return RV_ERR_MEMORY;
    rv_map_init(&data->ids);
    rv_map_init(&data->keys);
    rv_map_init(&data->claimed);
    *ret_data = data;
    return RV_OK;
}

void rv_store_memory_data_share(struct rv_store_memory_data *data)
{
    rv_assert(data->opened == 0);
    data->shared = true;
}

void rv_store_memory_data_watch(struct rv_store_memory_data *data,
                                rv_store_memory_wrong_before_fn *wrong_before, void *self)
{
    data->wrong_before = wrong_before;
    data->wrong_before_self = self;
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
    rv_assert(data->opened == 0);
    memory_kept_free(data);
    for (size_t i = 0; i < data->tasks.count; i++)
        memory_node_free(data->tasks.at[i].row);
    sorted_done(&data->tasks);
    sorted_done(&data->open);
    sorted_free(&data->alerts);
    sorted_free(&data->notices);
    sorted_free(&data->workflows);
    records_free(&data->records);
    keys_free(&data->keys);
    rv_map_done(&data->ids);
    rv_assert(data->claimed.count == 0);
    rv_map_done(&data->claimed);
    free(data);
}

void *memory_row_copy(const struct rv_row_kind *kind, const void *row)
{
    char *block = malloc(kind->bytes + rv_row_text_bytes(kind, RV_COLUMNS_ALL, row));
    if (block != NULL)
        rv_row_copy_to(kind, RV_COLUMNS_ALL, row, block, block + kind->bytes);
    return block;
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

/* Shared data has a clock of its own, which goes on while processes come and go. */
int64_t memory_clock_read(struct memory *store)
{
    struct rv_slew *slew = store->data->shared ? &store->data->slew : &store->slew;
    int64_t wall = store->clock.now(store->clock.self);
    store->now = store->clock.mono != NULL
                     ? rv_slew_read(slew, wall, store->clock.mono(store->clock.self))
                     : rv_slew_follow(slew, wall);
    store->store.wall_ahead_ms = wall - store->now;
    return store->now;
}

static void clock_begin(struct memory *store)
{
    int64_t wall = store->clock.now(store->clock.self);
    int64_t mono = store->clock.mono != NULL ? store->clock.mono(store->clock.self) : 0;
    rv_slew_begin(&store->slew, wall, mono, store->data->registry.alive_at);
    if (store->data->registry.enlistments == 0)
        store->data->slew = store->slew;
    store->now = store->slew.shown;
}

bool memory_deposed(const struct memory *store)
{
    return store->data->registry.instances[store->instance].boot != store->boot;
}

bool memory_claims_end(struct memory *store)
{
    bool any = false;
    for (size_t i = 0; i < ROLES_MAX; i++) {
        any = any || store->claims[i].made;
        store->claims[i].made = false;
    }
    return any;
}

void memory_rollback(struct rv_store *base)
{
    struct memory *store = (struct memory *)base;
    rv_assert(store->in_transaction);
    store->in_transaction = false;
    memory_unclaim(store);
    (void)memory_claims_end(store);
}

enum rv_err memory_begin(struct rv_store *base, struct rv_wants *load, int64_t *ret_now)
{
    struct memory *store = (struct memory *)base;
    rv_assert(!store->in_transaction && store->instance != 0);
    if (memory_deposed(store))
        return RV_ERR_DEPOSED;
    if (store->takeovers != store->data->takeovers) {
        store->takeovers = store->data->takeovers;
        return RV_ERR_WENT_BACK;
    }
    store->in_transaction = true;
    *ret_now = memory_clock_read(store);
    enum rv_err err = load != NULL ? memory_load(base, load) : RV_OK;
    if (err != RV_OK)
        memory_rollback(base);
    return err;
}

static bool owns_any(const struct rv_store_memory_data *data, uint8_t number)
{
    for (size_t i = 0; i < data->open.count; i++) {
        const struct rv_task *task = ((const struct node *)data->open.at[i].row)->row;
        if (task->locked_by == number && rv_task_state_open(task->state))
            return true;
    }
    return false;
}

/* The next number whose row has been still for long and owns nothing, else of those whose lease is
 * over the one that has been still the longest: a process that starts again and again must not use
 * all of them up. 0: all live. */
static uint8_t number_free(const struct rv_store_memory_data *data, int64_t now)
{
    const struct registry *registry = &data->registry;
    uint8_t number = registry->newest, stillest = 0;
    for (int i = 0; i < INSTANCE_MAX; i++) {
        number = (uint8_t)(number % INSTANCE_MAX + 1);
        const struct instance *row = &registry->instances[number];
        bool rests = row->alive_at == 0 || row->alive_at + NUMBER_REST_MS <= now;
        if (!data->shared || (rests && !owns_any(data, number)))
            return number;
        bool stiller = stillest == 0 || row->alive_at < registry->instances[stillest].alive_at;
        if (stiller && !rv_store_memory_lives(data, number, now))
            stillest = number;
    }
    return stillest;
}

enum rv_err memory_enlist(struct rv_store *base, struct rv_str boot, int64_t pid,
                          struct rv_enlistment *ret_enlistment)
{
    (void)pid;
    struct memory *store = (struct memory *)base;
    struct registry *registry = &store->data->registry;
    rv_assert(!store->in_transaction);
    int64_t now = memory_clock_read(store);
    uint8_t number = number_free(store->data, now);
    if (number == 0)
        return RV_ERR_BUSY;
    memory_keep(store->data, NULL, 0, registry);
    store->lease_ms = ret_enlistment->lease_ms;
    *ret_enlistment = (struct rv_enlistment){.lease_ms = store->lease_ms,
                                             .instance = number,
                                             .last_alive_at = registry->alive_at,
                                             .open_tasks = (int64_t)store->data->open_count,
                                             .created = registry->enlistments == 0,
                                             .shared = store->data->shared};
    for (int i = 0; i < RV_TASK_STATE_COUNT; i++)
        if (rv_task_state_open((enum rv_task_state)i))
            ret_enlistment->open_by_state[i] = store->data->open_by_state[i];
    if (registry->enlistments == 0) /* else it goes on with the first commit */
        registry->alive_at = now;
    registry->newest = number;
    registry->enlistments++;
    store->takeovers = store->data->takeovers;
    /* Two processes with the same boot id are two all the same. */
    store->boot = rv_hash((struct rv_hash_key){3, (uint64_t)registry->enlistments}, boot) | 1;
    registry->instances[number] = (struct instance){
        .boot = store->boot, .alive_at = now, .lease_until = now + store->lease_ms};
    store->instance = number;
    return RV_OK;
}

enum rv_err memory_committed(struct rv_store *base, int64_t number, bool *ret_committed)
{
    struct memory *store = (struct memory *)base;
    const struct instance *row = &store->data->registry.instances[store->instance];
    if (row->boot != store->boot && row->boot_before != store->boot)
        return RV_ERR_DEPOSED; /* its row does not stand there any more */
    *ret_committed = row->batch >= number;
    return RV_OK;
}

static size_t role_place(const struct registry *registry, struct rv_str name)
{
    size_t i = 0;
    while (
        i < registry->roles_count &&
        !rv_str_eq((struct rv_str){registry->roles[i].name, registry->roles[i].name_bytes}, name))
        i++;
    return i;
}

const struct role *memory_role_find(const struct registry *registry, struct rv_str name)
{
    size_t place = role_place(registry, name);
    return place < registry->roles_count ? &registry->roles[place] : NULL;
}

/* Its place among the roles; one that nobody ever had is there with epoch 0. */
static size_t role_get(struct registry *registry, struct rv_str name)
{
    size_t place = role_place(registry, name);
    if (place == registry->roles_count) {
        rv_assert(place < ROLES_MAX && name.len > 0 && name.len <= ROLE_BYTES_MAX);
        memcpy(registry->roles[place].name, name.at, name.len);
        registry->roles[place].name_bytes = name.len;
        registry->roles_count++;
    }
    return place;
}

enum rv_err memory_claim_role(struct rv_store *base, struct rv_str name, int64_t lease_ms,
                              int64_t *ret_epoch, int64_t *ret_until)
{
    struct memory *store = (struct memory *)base;
    struct registry *registry = &store->data->registry;
    rv_assert(store->instance != 0 && lease_ms >= 0 && lease_ms <= RV_DAY_MS);
    int64_t now = store->in_transaction ? store->now : memory_clock_read(store);
    size_t place = role_get(registry, name);
    struct claim *claim = &store->claims[place];
    const struct role *role = claim->made ? &claim->after : &registry->roles[place];
    bool held = role->boot != 0 && role->boot != store->boot;
    if (store->data->shared && held && role->until > now) {
        *ret_epoch = 0;
        *ret_until = role->until;
        return RV_OK;
    }
    struct role after = *role;
    bool another = role->boot != store->boot;
    if (role->epoch == 0 || another)
        after.epoch++;
    after.boot = store->boot;
    after.until = now + lease_ms;
    *ret_epoch = after.epoch;
    *ret_until = after.until;
    if (!claim->made)
        claim->before = *role;
    claim->after = after;
    claim->made = store->in_transaction;
    if (store->in_transaction)
        return RV_OK;
    memory_keep(store->data, NULL, 0, registry);
    registry->roles[place] = after;
    registry->alive_at = now;
    registry->instances[store->instance].alive_at = now;
    return RV_OK;
}

void memory_close(struct rv_store *base)
{
    struct memory *store = (struct memory *)base;
    if (store->in_transaction)
        memory_rollback(base);
    store->data->opened--;
    free(store);
}

static const struct rv_store_ops operations = {
#define RV_STORE_OPERATION(name) .name = memory_##name,
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
};

enum rv_err rv_store_memory_open(struct rv_store_memory_data *data, struct rv_wall_clock clock,
                                 struct rv_store **ret_store)
{
    rv_assert(data->opened == 0 || data->shared);
    struct memory *store = calloc(1, sizeof *store);
    if (store == NULL)
        return RV_ERR_MEMORY;
    store->store.ops = &operations;
    store->data = data;
    store->clock = clock;
    clock_begin(store);
    data->opened++;
    *ret_store = &store->store;
    return RV_OK;
}

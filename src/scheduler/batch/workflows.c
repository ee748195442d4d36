/* Compiled workflows, kept by id. Definitions are immutable, so an entry goes stale only where a
 * standby has lost the publication and its id is given again (scheduler.c, history_forget). Which
 * id a name means is kept until the next publication, by this server or by another. */
#include "scheduler/batch/workflows.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"
#include "store/store.h"
#include "workflow/definition.h"

#include <stdlib.h>

enum { WORKFLOWS_KEPT_MAX = 256, NAMES_KEPT_MAX = 1024 };

void workflow_cache_init(struct workflow_cache *cache, struct rv_store *store,
                         struct rv_hash_key hash_key, struct rv_arena *const *scratch,
                         const int64_t *turn)
{
    cache->store = store;
    cache->hash_key = hash_key;
    cache->scratch = scratch;
    cache->turn = turn;
    rv_map_init(&cache->by_id);
    rv_map_init(&cache->by_name);
}

static void entry_free(struct workflow_entry *entry)
{
    rv_arena_done(&entry->arena);
    free(entry);
}

void workflow_cache_done(struct workflow_cache *cache)
{
    for (size_t i = 0; i < cache->by_id.room; i++)
        if (cache->by_id.slots[i].used)
            entry_free((struct workflow_entry *)(uintptr_t)cache->by_id.slots[i].value);
    rv_map_done(&cache->by_id);
    rv_map_done(&cache->by_name);
}

static enum rv_err entry_new(struct workflow_cache *cache, const struct rv_workflow_row *row,
                             struct workflow_entry **ret_entry)
{
    struct workflow_entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        return RV_ERR_MEMORY;
    rv_arena_init(&entry->arena, 0);
    struct rv_json document;
    struct rv_definition_fault fault;
    enum rv_err err = rv_row_read(&rv_row_workflow, RV_COLUMNS_ALL, &entry->arena, row,
                                  &entry->row);
    if (err != RV_OK)
        goto err_after_entry;
    err = rv_json_parse(&entry->arena, entry->row.source, RV_JSON_DEPTH_MAX, &document, NULL);
    if (err == RV_OK)
        err = rv_definition_load_published(&entry->arena, &document, &entry->definition, &fault);
    if (err == RV_ERR_MEMORY)
        goto err_after_entry;
    if (err != RV_OK)
        entry->definition = NULL; /* its tasks are escalated, the others go on */
    err = rv_map_put(&cache->by_id, (uint64_t)row->id, 0, (uint64_t)(uintptr_t)entry);
    if (err != RV_OK)
        goto err_after_entry;
    *ret_entry = entry;
    return RV_OK;

err_after_entry:
    entry_free(entry);
    return err;
}

static struct workflow_entry *entry_find(struct workflow_cache *cache, int64_t id)
{
    const uint64_t *found = rv_map_find(&cache->by_id, (uint64_t)id, 0);
    struct workflow_entry *entry = found ? (struct workflow_entry *)(uintptr_t)*found : NULL;
    if (entry != NULL)
        entry->used_in = (uint64_t)*cache->turn;
    return entry;
}

enum rv_err workflow_by_id(struct workflow_cache *cache, int64_t id,
                           struct workflow_entry **ret_entry)
{
    *ret_entry = entry_find(cache, id);
    if (*ret_entry != NULL)
        return RV_OK;
    const struct rv_workflow_row *row;
    enum rv_err err = cache->store->ops->load_workflow(cache->store, *cache->scratch, id, &row);
    if (err != RV_OK || row == NULL)
        return err;
    err = entry_new(cache, row, ret_entry);
    if (err == RV_OK)
        (*ret_entry)->used_in = (uint64_t)*cache->turn;
    return err;
}

/* Where two names have one hash the one that was asked for last has the place: whose it is shows in
 * the workflow's own name. */
static uint64_t name_hash(const struct workflow_cache *cache, struct rv_str space,
                          struct rv_str name, struct rv_str version)
{
    const struct rv_str parts[] = {space, name, version};
    uint64_t hash = version.at != NULL;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hash = rv_hash_int(hash ^ rv_hash(cache->hash_key, parts[i]));
    return hash;
}

static enum rv_err name_known(struct workflow_cache *cache, uint64_t hash, struct rv_str space,
                              struct rv_str name, struct rv_str version,
                              struct workflow_entry **ret_entry)
{
    const uint64_t *id = rv_map_find(&cache->by_name, hash, 0);
    if (id == NULL)
        return RV_OK;
    RV_TRY(workflow_by_id(cache, (int64_t)*id, ret_entry));
    const struct rv_workflow_row *row = *ret_entry != NULL ? &(*ret_entry)->row : NULL;
    bool same = row != NULL && rv_str_eq(row->space, space) && rv_str_eq(row->name, name) &&
                (version.at == NULL || rv_str_eq(row->version, version));
    if (!same)
        *ret_entry = NULL;
    return RV_OK;
}

enum rv_err workflow_by_name(struct workflow_cache *cache, struct rv_str space, struct rv_str name,
                             struct rv_str version, struct workflow_entry **ret_entry)
{
    const struct rv_workflow_row *row;
    uint64_t hash = name_hash(cache, space, name, version);
    *ret_entry = NULL;
    RV_TRY(name_known(cache, hash, space, name, version, ret_entry));
    if (*ret_entry != NULL)
        return RV_OK;
    enum rv_err err = cache->store->ops->find_workflow(cache->store, *cache->scratch, space, name,
                                                       version, &row);
    if (err != RV_OK || row == NULL)
        return err;
    if (cache->by_name.count >= NAMES_KEPT_MAX)
        workflow_names_forget(cache);
    RV_TRY(rv_map_put(&cache->by_name, hash, 0, (uint64_t)row->id));
    return workflow_by_id(cache, row->id, ret_entry);
}

bool workflow_name_known(const struct workflow_cache *cache, const struct rv_workflow_name *name)
{
    uint64_t hash = name_hash(cache, name->space, name->name, name->version);
    return rv_map_find(&cache->by_name, hash, 0) != NULL;
}

enum rv_err workflow_names_learn(struct workflow_cache *cache, const struct rv_workflow_name *names,
                                 const int64_t *ids, size_t count)
{
    if (cache->by_name.count + count > NAMES_KEPT_MAX)
        workflow_names_forget(cache);
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = name_hash(cache, names[i].space, names[i].name, names[i].version);
        if (ids[i] != 0)
            RV_TRY(rv_map_put(&cache->by_name, hash, 0, (uint64_t)ids[i]));
    }
    return RV_OK;
}

void workflow_names_forget(struct workflow_cache *cache)
{
    rv_map_clear(&cache->by_name);
}

void workflow_cache_trim(struct workflow_cache *cache)
{
    struct rv_map *map = &cache->by_id;
    while (map->count > WORKFLOWS_KEPT_MAX) {
        struct workflow_entry *oldest = NULL;
        for (size_t i = 0; i < map->room; i++) {
            if (!map->slots[i].used)
                continue;
            struct workflow_entry *entry = (struct workflow_entry *)(uintptr_t)map->slots[i].value;
            if (entry->pins == 0 && (oldest == NULL || entry->used_in < oldest->used_in))
                oldest = entry;
        }
        rv_assert(oldest != NULL); /* there are fewer places for evaluations than that */
        rv_assert(oldest->pins == 0);
        rv_map_remove(map, (uint64_t)oldest->row.id, 0);
        entry_free(oldest);
    }
}

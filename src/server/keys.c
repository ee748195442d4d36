#include "server/keys.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/limits.h"
#include "core/api_key.h"

/* A row that is no key is counted. */
static enum rv_err key_take(struct rv_arena *arena, const struct rv_record *row,
                            struct rv_keys *keys)
{
    struct rv_api_key key;
    enum rv_err err = rv_api_key_read(arena, row, &key);
    if (err == RV_ERR_INVALID) {
        keys->unreadable++;
        return RV_OK;
    }
    if (err != RV_OK)
        return err;
    return rv_keys_add(keys, &key);
}

enum rv_err rv_server_keys_load(struct rv_store *store, struct rv_keys *keys)
{
    struct rv_record rows[RV_PAGE_ROWS_MAX];
    struct rv_arena arena;
    struct rv_str after = RV_STR_NONE;
    size_t count;
    enum rv_err err;
    rv_arena_init(&arena, 0);
    do {
        err = store->ops->list_records(store, &arena, RV_STR(RV_RECORD_API_KEY), RV_STR_NONE, after,
                                       RV_PAGE_ROWS_MAX, rows, &count);
        rv_assert(err != RV_OK || count <= RV_PAGE_ROWS_MAX);
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            err = key_take(&arena, &rows[i], keys);
            after = rows[i].key;
        }
    } while (err == RV_OK && count == RV_PAGE_ROWS_MAX);
    rv_arena_done(&arena);
    return err;
}

enum rv_err rv_server_keys_renew(struct rv_api *api, const struct rv_record *rows, size_t count,
                                 uint64_t changes)
{
    struct rv_keys keys;
    struct rv_arena arena;
    enum rv_err err = RV_OK;
    rv_keys_init(&keys);
    rv_arena_init(&arena, 0);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        err = key_take(&arena, &rows[i], &keys);
    if (err == RV_OK)
        err = rv_api_renew_keys(api, &keys, changes);
    rv_arena_done(&arena);
    rv_keys_done(&keys);
    return err;
}

#include "server/keys.h"

#include "base/arena.h"
#include "base/limits.h"
#include "core/api_key.h"

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
        for (size_t i = 0; err == RV_OK && i < count; i++) {
            struct rv_api_key key;
            err = rv_api_key_read(&arena, &rows[i], &key);
            if (err == RV_OK)
                err = rv_keys_add(keys, &key);
            else if (err == RV_ERR_INVALID)
                keys->unreadable++;
            err = err == RV_ERR_INVALID ? RV_OK : err;
            after = rows[i].key;
        }
    } while (err == RV_OK && count == RV_PAGE_ROWS_MAX);
    rv_arena_done(&arena);
    return err;
}

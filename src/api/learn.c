/* How the api's thread hears of changes of the API keys: with the answer of the call that made one,
 * and as a list of all keys, which the scheduler leaves here once the store has others. */
#include "api/api_priv.h"

#include "base/assert.h"

#include <stdlib.h>

void rv_http_keys_free(struct key_news *news)
{
    if (news == NULL)
        return;
    rv_keys_done(&news->keys);
    free(news);
}

enum rv_err rv_api_renew_keys(struct rv_api *api, struct rv_keys *keys, uint64_t changes)
{
    struct key_news *news = malloc(sizeof *news);
    if (news == NULL)
        return RV_ERR_MEMORY;
    *news = (struct key_news){*keys, changes};
    rv_keys_init(keys);
    rv_http_keys_free(atomic_exchange(&api->key_news, news)); /* one that nobody has taken is old */
    rv_door_wake(api->door);
    return RV_OK;
}

void rv_http_keys_take(struct rv_api *api)
{
    struct key_news *news = atomic_exchange(&api->key_news, NULL);
    if (news == NULL)
        return;
    rv_assert(news->changes > api->key_changes);
    struct rv_keys before = api->options.access.keys;
    api->options.access.keys = news->keys;
    api->key_changes = news->changes;
    news->keys = before;
    rv_http_keys_free(news);
}

/* Whoever hears of a change of keys can rely on it. A list that the scheduler has left before it
 * finished the call comes first; one that it has left since contains the change. */
void rv_http_keys_learn(struct rv_api *api, struct rv_call *call)
{
    struct rv_keys *keys = &api->options.access.keys;
    bool changed = call->kind == RV_CALL_KEY_REVOKE || call->kind == RV_CALL_KEY_ADD;
    rv_http_keys_take(api);
    if (call->err != RV_OK || !changed || call->u.key.changes <= api->key_changes)
        return;
    api->key_changes = call->u.key.changes;
    if (call->kind == RV_CALL_KEY_REVOKE)
        rv_keys_remove(keys, call->u.key.row.id);
    if (call->kind == RV_CALL_KEY_ADD)
        call->err = rv_keys_add(keys, &call->u.key.row);
}

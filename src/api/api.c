/* The api's thread: it serves the door, and takes calls that came back from the scheduler. */
#include "api/access_log.h"
#include "api/api_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "door/tls.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    FINISHED_MAX = 256,
    CLOSING_MS = 10, /* how late the end may be seen */
    WAIT_MS = 60000,
    AWAY_LOOK_MS = 200, /* while calls are with the scheduler: whether its store answers */
    DESCRIPTION_BYTES_MAX = 4 * 1024 * 1024
};

static void finished_take(struct rv_api *api)
{
    void *calls[FINISHED_MAX];
    size_t count;
    do {
        count = rv_mailbox_take(&api->finished, calls, FINISHED_MAX, 0);
        rv_assert(count <= FINISHED_MAX);
        for (size_t i = 0; i < count; i++)
            rv_http_finished(api, calls[i]);
    } while (count == FINISHED_MAX);
}

static int64_t wait_ms(const struct rv_api *api)
{
    int64_t most = api->large != NULL ? 0 : atomic_load(&api->closing) ? CLOSING_MS : WAIT_MS;
    if (api->options.away.is != NULL && most > AWAY_LOOK_MS)
        most = AWAY_LOOK_MS; /* calls of others than this api may wait, too */
    if (api->resting == NULL)
        return most;
    int64_t rest = api->rest_until - rv_door_now(api->door);
    return rest > 0 && rest < most ? rest : most;
}

static bool is_awaited(const void *call)
{
    return !((const struct rv_call *)call)->note;
}

/* The scheduler's thread waits for the store: whoever waits for that thread hears so. What it has
 * taken is its own; what nobody waits for stays. */
static void away_refuse(struct rv_api *api)
{
    void *calls[FINISHED_MAX];
    size_t count = FINISHED_MAX;
    const struct rv_api_away *away = &api->options.away;
    if (away->is == NULL || !away->is(away->self))
        return;
    while (count == FINISHED_MAX) {
        count = rv_mailbox_withdraw(api->options.mailbox, is_awaited, calls, FINISHED_MAX);
        for (size_t i = 0; i < count; i++)
            rv_call_refuse_away(calls[i]);
        finished_take(api);
    }
}

/* Nothing is left to do, or nobody takes what is left. */
static bool thread_done(const struct rv_api *api, int64_t *last_busy)
{
    const struct rv_door_counts *counts = rv_door_counts(api->door);
    int64_t now = rv_door_now(api->door);
    if (!atomic_load(&api->closing) || !api->looked || atomic_load(&api->outstanding) > 0) {
        *last_busy = now;
        return false;
    }
    return (api->exchanges_open == 0 && counts->busy == 0 && counts->lingering == 0) ||
           now - *last_busy >= atomic_load(&api->grace_ms);
}

/* What was sent before the stop gets its answer: to close a socket with unread bytes sends a reset,
 * and its client would not know what became of its request. */
static void arrived_take(struct rv_api *api)
{
    rv_door_deafen(api->door);
    rv_door_arrived(api->door);
    api->looked = true;
}

static void thread_run(void *self)
{
    struct rv_api *api = self;
    int64_t last_busy = rv_door_now(api->door);
    while (!thread_done(api, &last_busy)) {
        rv_door_wait(api->door, wait_ms(api));
        rv_http_keys_take(api);
        away_refuse(api);
        finished_take(api);
        rv_backup_go_on(api, rv_door_now(api->door));
        rv_http_large_go_on(api, false);
        if (atomic_load(&api->draining) && !api->looked)
            arrived_take(api);
        rv_door_run(api->door);
        if (api->options.access_log != NULL)
            rv_access_log_flush(api->options.access_log);
    }
    while (api->large != NULL)
        rv_http_large_go_on(api, true);
    rv_assert(atomic_load(&api->outstanding) == 0);
    rv_door_run(api->door);
}

static void api_free(struct rv_api *api)
{
    if (api->door != NULL)
        rv_door_close(api->door);
    rv_assert(api->exchanges_open == 0);
    rv_assert(api->held_bytes == 0);
    rv_http_forget(api);
    rv_parser_done(&api->parser);
    rv_keys_done(&api->options.access.keys);
    rv_http_keys_free(atomic_load(&api->key_news));
    rv_buf_done(&api->description);
    rv_mailbox_done(&api->finished);
    free(api);
}

static enum rv_err door_open(struct rv_api *api)
{
    const struct rv_api_options *options = &api->options;
    int64_t patience = options->patience_ms;
    return rv_door_open(
        &(struct rv_door_options){.host = rv_http_host(api),
                                  .limits = {patience, patience, patience, patience, patience},
                                  .sockets = options->sockets,
                                  .sockets_count = options->sockets_count,
                                  .tls = options->tls,
                                  .connections_max = options->connections_max,
                                  .address_max = options->address_max,
                                  .body_max = RV_BODY_BYTES_MAX},
        &api->door);
}

enum rv_err rv_api_open(const struct rv_api_options *options, struct rv_api **ret_api)
{
    rv_assert(options->sockets_count <= RV_DOOR_SOCKETS_MAX);
    struct rv_api *api = calloc(1, sizeof *api);
    if (api == NULL) {
        for (size_t i = 0; i < options->sockets_count; i++)
            close(options->sockets[i]);
        rv_door_tls_free(options->tls);
        struct rv_keys keys = options->access.keys;
        rv_keys_done(&keys);
        return RV_ERR_MEMORY;
    }
    api->options = *options;
    api->key_changes = 1;
    api->loads = rv_http_loads(api);
    rv_mailbox_init(&api->finished, offsetof(struct rv_call, next));
    rv_mailbox_join(options->mailbox, &api->maker);
    rv_parser_init(&api->parser);
    rv_buf_init(&api->description, DESCRIPTION_BYTES_MAX);
    api->parser.egress = options->egress;
    api->parser.secrets = options->secrets;
    enum rv_err err = door_open(api);
    api->options.sockets = NULL;
    if (err == RV_OK && rv_thread_start(&api->thread, "api", thread_run, api) != RV_OK)
        err = RV_ERR_IO;
    if (err != RV_OK) {
        api_free(api);
        return err;
    }
    *ret_api = api;
    return RV_OK;
}

void rv_api_renew(struct rv_api *api, struct rv_door_tls *tls)
{
    rv_door_renew(api->door, tls);
}

void rv_api_drain(struct rv_api *api)
{
    atomic_store(&api->draining, true);
    rv_door_wake(api->door);
}

void rv_api_wake(struct rv_api *api)
{
    rv_door_wake(api->door);
}

unsigned rv_api_outstanding(const struct rv_api *api)
{
    return atomic_load(&api->outstanding);
}

void rv_api_close(struct rv_api *api, int64_t grace_ms)
{
    rv_assert(grace_ms >= 0);
    rv_assert(!atomic_load(&api->closing));
    atomic_store(&api->grace_ms, grace_ms);
    atomic_store(&api->draining, true);
    atomic_store(&api->closing, true);
    rv_door_wake(api->door);
    rv_thread_join(&api->thread);
    api_free(api);
}

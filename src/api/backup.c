/* A backup as an answer: when the socket has taken a block, the next is read from the copy, so that
 * other connections go on between them. After a few blocks it pauses, so that it does not keep the
 * api's thread, and a core, from submissions. Content-Length is the size of the copy: a client that
 * receives less knows that its copy is incomplete. */
#include "api/api_priv.h"

#include "base/assert.h"
#include "base/os/log.h"

#include <assert.h>

enum {
    BLOCK_BYTES = 64 * 1024,
    TURN_BYTES = 4 * BLOCK_BYTES,
    REST_MS = 1,
    STALLED_MS = 20000 /* without a block taken, it gives way to the next backup */
};

static_assert(BLOCK_BYTES % RV_COPY_BLOCK_BYTES == 0,
              "BLOCK_BYTES is a multiple of RV_COPY_BLOCK_BYTES");

static void break_off(struct exchange *exchange, struct rv_str reason)
{
    rv_log(RV_LOG_WARNING, "backup-broken", RV_LOG_STR("reason", reason),
           RV_LOG_INT("at", exchange->copy_at));
    rv_door_end(exchange->conn, false);
}

static void block_send(struct exchange *exchange)
{
    struct rv_copy *copy = exchange->copy;
    rv_assert(exchange->copies);
    rv_assert(exchange->copy_at < copy->bytes);
    struct rv_buf block;
    size_t count = 0;
    rv_buf_init(&block, BLOCK_BYTES);
    char *at = rv_buf_reserve(&block, BLOCK_BYTES);
    enum rv_err err = at != NULL ? copy->read(copy, at, BLOCK_BYTES, &count) : RV_ERR_MEMORY;
    if (err != RV_OK || count == 0) {
        rv_buf_done(&block);
        exchange->api->damaged = exchange->api->damaged || err == RV_ERR_CORRUPT;
        break_off(exchange, rv_str_of(rv_err_text(err)));
        return;
    }
    rv_assert(count <= BLOCK_BYTES);
    block.len = count;
    exchange->copy_at += (int64_t)count;
    rv_door_add(exchange->conn, &block);
}

/* One at a time: the store begins no copy while another is read. */
static void rest(struct exchange *exchange)
{
    struct rv_api *api = exchange->api;
    rv_assert(api->resting == NULL);
    rv_assert(api->copying == exchange);
    exchange->copy_rest_at = exchange->copy_at + TURN_BYTES;
    api->resting = exchange;
    api->rest_until = rv_door_now(api->door) + REST_MS;
}

void rv_backup_more(struct exchange *exchange)
{
    const struct rv_access *access = &exchange->api->options.access;
    rv_assert(exchange->copies);
    rv_assert(exchange->copy_at >= 0);
    exchange->copy_moved_at = rv_door_now(exchange->api->door);
    if (exchange->copy == NULL)
        rv_door_end(exchange->conn, false);
    else if (exchange->copy_at == exchange->copy->bytes)
        rv_door_end(exchange->conn, true);
    else if (!rv_access_stands(access, exchange->route, &exchange->caller))
        break_off(exchange, RV_STR("access-ended"));
    else if (exchange->copy_at >= exchange->copy_rest_at)
        rest(exchange);
    else
        block_send(exchange);
}

void rv_backup_go_on(struct rv_api *api, int64_t now)
{
    struct exchange *exchange = api->resting;
    if (exchange == NULL || now < api->rest_until)
        return;
    rv_assert(exchange == api->copying);
    api->resting = NULL;
    rv_backup_more(exchange);
}

void rv_backup_give_way(struct rv_api *api)
{
    struct exchange *exchange = api->copying;
    int64_t patience_ms = api->options.patience_ms;
    int64_t stalled_ms = patience_ms > 0 ? patience_ms / 3 : STALLED_MS;
    if (exchange == NULL || exchange == api->resting ||
        rv_door_now(api->door) - exchange->copy_moved_at < stalled_ms)
        return;
    rv_assert(exchange->copies);
    rv_assert(exchange->copy != NULL);
    break_off(exchange,
              RV_STR("the client stopped reading the backup, and another backup was requested"));
    exchange->copy->close(exchange->copy);
    exchange->copy = NULL;
    api->copying = NULL;
}

void rv_backup_begin(struct exchange *exchange)
{
    static const struct rv_door_field fresh = {"Cache-Control", {"no-store", 8}};
    rv_assert(exchange->copy != NULL);
    rv_assert(!exchange->streams);
    rv_assert(exchange->api->copying == NULL);
    exchange->copies = true;
    exchange->copy_moved_at = rv_door_now(exchange->api->door);
    exchange->api->copying = exchange;
    exchange->copy_rest_at = TURN_BYTES;
    rv_http_note(exchange);
    rv_door_answer(exchange->conn,
                   &(struct rv_door_answer){.status = 200,
                                            .type = exchange->answer.content_type,
                                            .fields = &fresh,
                                            .fields_count = 1,
                                            .owner = exchange,
                                            .open = true,
                                            .sized = true,
                                            .length = (uint64_t)exchange->copy->bytes});
}

/* A backup as an answer: libmicrohttpd asks for the next bytes when the socket takes some, and they
 * are read from the copy then, a block at a time, so that other connections go on between them.
 * After a few blocks it rests: whoever submits shall not find the api's thread, and a core, busy
 * with it. Its length is told in the head: a client that gets less knows that it has no whole
 * copy. */
#include "api/api_priv.h"

#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/log.h"

#include <assert.h>

enum { BLOCK_BYTES = 64 * 1024, TURN_BYTES = 4 * BLOCK_BYTES, REST_MS = 1 };

static_assert(BLOCK_BYTES % RV_COPY_BLOCK_BYTES == 0, "whole blocks, to the end");

/* One at a time: the store begins no copy while another is read. */
static void rest(struct exchange *exchange)
{
    struct rv_api *api = exchange->connection->api;
    rv_assert(api->resting == NULL);
    api->resting = exchange;
    api->rest_until = rv_clock_mono_ms() + REST_MS;
    MHD_suspend_connection(exchange->http);
}

void rv_backup_go_on(struct rv_api *api, int64_t now)
{
    if (api->resting == NULL || now < api->rest_until)
        return;
    rv_lane_resume(api->resting);
    api->resting = NULL;
}

static ssize_t bytes_give(void *self, uint64_t position, char *at, size_t max)
{
    struct exchange *exchange = self;
    struct rv_copy *copy = exchange->copy;
    size_t count = 0;
    if (position >= exchange->copy_rest_at) {
        exchange->copy_rest_at = position + TURN_BYTES;
        rest(exchange);
        return 0;
    }
    if (!rv_access_stands(&exchange->connection->api->options.access, exchange->route,
                          &exchange->caller)) {
        rv_log(RV_LOG_WARNING, "backup-broken", RV_LOG_STR("reason", RV_STR("access-ended")),
               RV_LOG_INT("at", (int64_t)position));
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    enum rv_err err = max < RV_COPY_BLOCK_BYTES ? RV_ERR_MEMORY : copy->read(copy, at, max, &count);
    if (err == RV_OK && count > 0) {
        rv_http_list(exchange->connection, rv_clock_mono_ms());
        return (ssize_t)count;
    }
    rv_log(RV_LOG_ERROR, "backup-broken", RV_LOG_STR("reason", rv_str_of(rv_err_text(err))),
           RV_LOG_INT("at", (int64_t)position));
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

enum MHD_Result rv_backup_begin(struct exchange *exchange)
{
    struct MHD_Response *response = MHD_create_response_from_callback(
        (uint64_t)exchange->copy->bytes, BLOCK_BYTES, bytes_give, exchange, NULL);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, exchange->answer.content_type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    exchange->stage = STAGE_ANSWERED;
    exchange->copy_rest_at = TURN_BYTES;
    rv_http_list(exchange->connection, rv_clock_mono_ms());
    enum MHD_Result queued = MHD_queue_response(exchange->http, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return queued;
}

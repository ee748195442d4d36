/* An event stream (https://html.spec.whatwg.org, Server-sent events). libmicrohttpd asks for the
 * next bytes when the socket takes some; when there are none, the connection is suspended and the
 * scheduler asked, who answers when the task has more to tell, or after a while, so that a dead
 * connection is found. No more than one page of messages waits in memory for a reader; one that
 * takes nothing is cut off like every slow client. */
#include "api/api_priv.h"

#include "base/limits.h"
#include "base/os/clock.h"

enum {
    BEAT_MS = 15000, /* without a message something is sent all the same */
    BLOCK_BYTES = 4096
};

/* What is sent is sent: the call asks for what comes after. */
static void ask_more(struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    rv_arena_reset(&call->arena);
    call->err = RV_OK;
    call->message = RV_STR_NONE;
    call->u.messages = (struct rv_call_messages){
        .task = exchange->stream_task,
        .after = exchange->stream_after,
        .wait_ms = BEAT_MS,
        .limit = RV_STREAM_MESSAGES_MAX,
    };
    rv_buf_reset(&exchange->answer.body);
    exchange->stream_at = 0;
    rv_http_stamp(exchange->connection->api, exchange);
    rv_http_ask(exchange->connection->api, exchange);
    rv_mailbox_settle(&exchange->connection->api->maker, INT64_MAX);
}

static ssize_t bytes_give(void *self, uint64_t position, char *at, size_t max)
{
    struct exchange *exchange = self;
    const struct rv_buf *body = &exchange->answer.body;
    size_t left = body->len - exchange->stream_at;
    (void)position;
    if (left > 0) {
        size_t count = left < max ? left : max;
        memcpy(at, body->at + exchange->stream_at, count);
        exchange->stream_at += count;
        rv_http_list(exchange->connection, rv_clock_mono_ms());
        return (ssize_t)count;
    }
    if (exchange->stream_over || exchange->connection->left ||
        atomic_load(&exchange->connection->api->draining))
        return MHD_CONTENT_READER_END_OF_STREAM;
    ask_more(exchange);
    return 0;
}

static void place_note(struct exchange *exchange)
{
    const struct rv_call_messages *messages = &exchange->call.u.messages;
    if (messages->count > 0)
        exchange->stream_after = messages->rows[messages->count - 1].number;
    exchange->stream_over = messages->over;
}

void rv_stream_finished(struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    if (call->err == RV_OK) {
        exchange->route->render(&exchange->answer, call);
        place_note(exchange);
    }
    /* What cannot be told now is told to the reader when it comes again. */
    if (call->err != RV_OK || exchange->answer.body.failed != RV_OK)
        rv_stream_end(exchange);
}

void rv_stream_end(struct exchange *exchange)
{
    rv_buf_reset(&exchange->answer.body);
    exchange->stream_over = true;
}

enum MHD_Result rv_stream_begin(struct exchange *exchange)
{
    exchange->streams = true;
    exchange->stream_task = exchange->call.u.messages.task;
    exchange->stream_after = exchange->call.u.messages.after;
    place_note(exchange);
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                                      bytes_give, exchange, NULL);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    enum MHD_Result queued = MHD_queue_response(exchange->http, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return queued;
}

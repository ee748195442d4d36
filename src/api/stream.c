/* An event stream (https://html.spec.whatwg.org, Server-sent events). When all that was there is
 * with the socket, the scheduler is asked, who answers when the task has more to tell, or after a
 * while, so that a dead connection is found. No more than one page of messages waits in memory for
 * a reader; one that takes nothing is cut off like every slow client. */
#include "api/access.h"
#include "api/api_priv.h"

#include "base/assert.h"
#include "base/limits.h"

enum { BEAT_MS = 15000 /* without a message something is sent all the same */ };

/* What is sent is sent: the call asks for what comes after. */
static void ask_more(struct exchange *exchange)
{
    struct rv_api *api = exchange->api;
    struct rv_call *call = &exchange->call;
    rv_assert(!exchange->stream_over);
    rv_assert(exchange->stage == STAGE_ANSWERED);
    rv_assert(call->kind == RV_CALL_MESSAGES);
    rv_arena_reset(&call->arena);
    call->err = RV_OK;
    call->message = RV_STR_NONE;
    call->u.messages = (struct rv_call_messages){
        .task = exchange->stream_task,
        .after = exchange->stream_after,
        .wait_ms = BEAT_MS,
        .limit = RV_STREAM_MESSAGES_MAX,
    };
    rv_http_stamp(api, exchange);
    rv_http_ask(api, exchange);
    rv_http_settle(api);
}

void rv_stream_more(struct exchange *exchange)
{
    rv_assert(exchange->streams);
    if (exchange->stream_over || rv_door_left(exchange->conn) ||
        atomic_load(&exchange->api->draining))
        rv_door_end(exchange->conn, true);
    else
        ask_more(exchange);
}

static void place_note(struct exchange *exchange)
{
    const struct rv_call_messages *messages = &exchange->call.u.messages;
    rv_assert(exchange->call.kind == RV_CALL_MESSAGES);
    rv_assert(messages->count <= messages->limit);
    if (messages->count > 0)
        exchange->stream_after = messages->rows[messages->count - 1].number;
    exchange->stream_over = messages->over;
}

static void body_send(struct exchange *exchange)
{
    struct rv_buf *body = &exchange->answer.body;
    if (body->len > 0)
        rv_door_add(exchange->conn, body);
    else
        rv_stream_more(exchange);
}

/* Why the stream ends before the task's last message. It has no id: a reader that comes again asks
 * for what is after the message before. */
static void problem_put(struct exchange *exchange, bool revoked)
{
    struct rv_api *api = exchange->api;
    struct rv_call *call = &exchange->call;
    struct rv_buf *body = &exchange->answer.body;
    struct rv_problem problem = {.status = rv_err_http(call->err), .err = call->err};
    problem.detail = call->message;
    if (revoked) {
        rv_parser_begin(&api->parser, &call->arena);
        (void)rv_access_ended(&api->parser);
        problem = api->parser.problem;
    }
    struct rv_buf document;
    rv_buf_init(&document, RV_BODY_BYTES_MAX);
    rv_problem_write(&document, &problem);
    rv_buf_reset(body);
    rv_buf_printf(body, "event: problem\ndata: %.*s\n\n", RV_STR_FMT(rv_buf_str(&document)));
    rv_buf_done(&document);
}

void rv_stream_finished(struct exchange *exchange, bool revoked)
{
    struct rv_call *call = &exchange->call;
    struct rv_buf *body = &exchange->answer.body;
    rv_assert(exchange->streams);
    rv_assert(exchange->stage == STAGE_ANSWERED);
    rv_buf_reset(body);
    if (!revoked && call->err == RV_OK) {
        exchange->route->render(&exchange->answer, call);
        place_note(exchange);
    } else {
        problem_put(exchange, revoked);
        exchange->stream_over = true;
    }
    /* What cannot be told now is told to the reader when it comes again. */
    if (body->failed != RV_OK) {
        rv_buf_reset(body);
        exchange->stream_over = true;
    }
    body_send(exchange);
}

void rv_stream_begin(struct exchange *exchange)
{
    static const struct rv_door_field fresh = {"Cache-Control", {"no-store", 8}};
    rv_assert(!exchange->streams);
    rv_assert(exchange->route->way == RV_WAY_STREAM);
    rv_assert(exchange->answer.status == 200);
    exchange->streams = true;
    exchange->stream_task = exchange->call.u.messages.task;
    exchange->stream_after = exchange->call.u.messages.after;
    place_note(exchange);
    rv_http_note(exchange);
    rv_door_answer(exchange->conn, &(struct rv_door_answer){.status = 200,
                                                            .close = false,
                                                            .type = "text/event-stream",
                                                            .fields = &fresh,
                                                            .fields_count = 1,
                                                            .owner = exchange,
                                                            .open = true});
    if (exchange->answer.body.len > 0)
        rv_door_add(exchange->conn, &exchange->answer.body);
}

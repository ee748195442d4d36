/* How a request goes through here: libmicrohttpd calls back when the request line is read
 * (exchange made), when the headers are read (checked), with each piece of the body, and when all
 * is there. Then the request becomes a call, the connection is suspended, and the call goes to the
 * scheduler. When it comes back (rv_http_finished), the answer is made, the connection resumed,
 * and libmicrohttpd calls back once more to take the answer. All of it on the api's thread. */
#include "api/api_priv.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/time.h"
#include "http/http.h"

#include <gnutls/gnutls.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    CALL_BYTES_MAX = 512 * 1024 * 1024, /* of one call's arena: all requests of the largest poll */
    CALL_BYTES_KEPT = 64 * 1024,        /* a larger arena is given back after its call */
    HELD_BYTES_MAX = 128 * 1024 * 1024, /* of all requests, from their first byte to their answer */
    BODY_BYTES_SMALL = 16 * 1024,       /* has room also when large ones have taken all of that */
    BODY_BYTES_LARGE = 256 * 1024,      /* is parsed when nothing else waits */
    EXCHANGES_KEPT = 256,
    /* Of one connection: head of the request and of the answer, and what is read at once of a body.
     * libmicrohttpd clears all of it after each request, so a parked poll holds all of it. */
    HEADS_BYTES = 5 * 1024
};

/* ---- connections ---- */

void rv_http_unlist(struct connection *connection)
{
    struct rv_api *api = connection->api;
    if (!connection->listed)
        return;
    if (connection->before != NULL)
        connection->before->after = connection->after;
    else
        api->first = connection->after;
    if (connection->after != NULL)
        connection->after->before = connection->before;
    else
        api->last = connection->before;
    connection->listed = false;
}

void rv_http_list(struct connection *connection, int64_t now)
{
    struct rv_api *api = connection->api;
    rv_http_unlist(connection);
    connection->since = now;
    connection->before = api->last;
    connection->after = NULL;
    if (api->last != NULL)
        api->last->after = connection;
    else
        api->first = connection;
    api->last = connection;
    connection->listed = true;
}

static void connection_notify(void *self, struct MHD_Connection *http, void **context,
                              enum MHD_ConnectionNotificationCode code)
{
    struct lane *lane = self;
    struct rv_api *api = lane->api;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        struct connection *connection = *context;
        if (connection != NULL) {
            rv_http_unlist(connection);
            api->counts.connections--;
        }
        rv_lanes_left(api);
        free(connection);
        *context = NULL;
        return;
    }
    struct connection *connection = calloc(1, sizeof *connection);
    *context = connection;
    if (connection == NULL)
        return;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        http, MHD_CONNECTION_INFO_CONNECTION_FD);
    api->counts.connections_taken++;
    api->counts.connections++;
    connection->api = api;
    connection->lane = lane;
    connection->fd = info->connect_fd;
    int one = 1;
    (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* Once for the connection's life, told once: closing the socket ends it. libmicrohttpd does not
     * look at a suspended connection, so this is how a waiting client's leaving is seen. */
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    (void)epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event);
    rv_http_list(connection, rv_clock_mono_ms());
}

/* ---- exchanges ---- */

static struct exchange *exchange_new(struct rv_api *api)
{
    struct exchange *exchange = api->free;
    if (exchange != NULL) {
        api->free = exchange->next_free;
        api->free_count--;
    } else {
        exchange = calloc(1, sizeof *exchange);
        if (exchange == NULL)
            return NULL;
        rv_arena_init(&exchange->call.arena, CALL_BYTES_MAX);
        rv_buf_init(&exchange->body, RV_BODY_BYTES_MAX);
    }
    api->exchanges_open++;
    return exchange;
}

static void held_set(struct rv_api *api, struct exchange *exchange, size_t bytes)
{
    bytes = bytes > BODY_BYTES_SMALL ? bytes : 0;
    api->held_bytes += bytes - exchange->held_bytes;
    exchange->held_bytes = bytes;
}

/* Has the exchange room for so many bytes? */
static bool held_room(const struct rv_api *api, const struct exchange *exchange, size_t bytes)
{
    return bytes <= BODY_BYTES_SMALL || bytes <= exchange->held_bytes ||
           api->held_bytes - exchange->held_bytes + bytes <= HELD_BYTES_MAX;
}

static void body_drop(struct rv_api *api, struct exchange *exchange)
{
    rv_buf_reset(&exchange->body);
    if (exchange->body.room > CALL_BYTES_KEPT)
        rv_buf_done(&exchange->body);
    held_set(api, exchange, exchange->call.arena.bytes_taken);
}

static void exchange_free(struct rv_api *api, struct exchange *exchange)
{
    rv_assert(api->resting != exchange);
    api->exchanges_open--;
    if (exchange->copy != NULL)
        exchange->copy->close(exchange->copy);
    body_drop(api, exchange);
    held_set(api, exchange, 0);
    rv_buf_done(&exchange->answer.body);
    struct rv_arena arena = exchange->call.arena;
    struct rv_buf body = exchange->body;
    if (arena.bytes_taken > CALL_BYTES_KEPT)
        rv_arena_done(&arena);
    else
        rv_arena_reset(&arena);
    if (api->free_count == EXCHANGES_KEPT) {
        rv_arena_done(&arena);
        rv_buf_done(&body);
        free(exchange);
        return;
    }
    *exchange = (struct exchange){.call.arena = arena, .body = body, .next_free = api->free};
    api->free = exchange;
    api->free_count++;
}

void rv_http_forget(struct rv_api *api)
{
    while (api->free != NULL) {
        struct exchange *exchange = api->free;
        api->free = exchange->next_free;
        rv_arena_done(&exchange->call.arena);
        rv_buf_done(&exchange->body);
        free(exchange);
    }
}

/* The request line is read. Whatever is given back here comes as *context to each callback. */
static void *target_read(void *self, const char *target, struct MHD_Connection *http)
{
    struct rv_api *api = self;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct exchange *exchange = info && info->socket_context ? exchange_new(api) : NULL;
    if (exchange == NULL)
        return NULL;
    exchange->connection = info->socket_context;
    exchange->connection->exchange = exchange;
    exchange->http = http;
    exchange->target_at = target;
    exchange->target = rv_arena_str(&exchange->call.arena, rv_str_of(target));
    rv_answer_init(&exchange->answer);
    return exchange;
}

/* ---- answers ---- */

static uint64_t bytes_sent(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return 0;
    return info.tcpi_bytes_sent;
}

static void headers_add(struct MHD_Response *response, const struct rv_answer *answer, bool close)
{
    const char *type = answer->problem        ? "application/problem+json"
                       : answer->content_type ? answer->content_type
                                              : "application/json";
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (answer->retry_after_s != 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", answer->retry_after_s);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    if (answer->status == 401)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                "Bearer realm=\"reeve\"");
    if (answer->location_len > 0 && answer->location_len < sizeof answer->location)
        MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, answer->location);
    if (answer->allow.at != NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, answer->allow.at);
    if (close)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static void answer_count(const struct exchange *exchange)
{
    struct rv_api_counts *counts = &exchange->connection->api->counts;
    const struct rv_call *call = &exchange->call;
    int status = exchange->answer.status;
    size_t route = exchange->route ? (size_t)(exchange->route - rv_routes()) : RV_ROUTES_MAX;
    counts->answers[route][status >= 500   ? RV_ANSWER_FAILED
                           : status >= 400 ? RV_ANSWER_REFUSED
                                           : RV_ANSWER_GOOD]++;
    counts->unauthorized += status == 401;
    if (status >= 400 || exchange->whole_us == 0)
        return;
    int64_t us = rv_clock_mono_us() - exchange->whole_us;
    if (call->kind == RV_CALL_SUBMIT && call->u.submit.wait_ms == 0)
        rv_histogram_add(&counts->submission, us);
    if (call->kind == RV_CALL_REPLIES)
        rv_histogram_add(&counts->reply, us);
}

/* Hands the finished answer to libmicrohttpd; its bytes then belong to it. */
static enum MHD_Result answer_send(struct exchange *exchange, bool close)
{
    struct rv_answer *answer = &exchange->answer;
    if (answer->body.failed != RV_OK) {
        struct rv_problem problem = {.status = 503, .err = RV_ERR_MEMORY};
        problem.detail = RV_STR("out of memory for the answer; try again");
        rv_buf_done(&answer->body);
        rv_answer_problem(answer, &problem);
    }
    answer_count(exchange);
    exchange->stage = STAGE_ANSWERED;
    rv_http_list(exchange->connection, rv_clock_mono_ms());
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->body.len, answer->body.at, MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        return MHD_NO;
    rv_buf_init(&answer->body, 0); /* given away */
    headers_add(response, answer, close);
    enum MHD_Result queued = MHD_queue_response(exchange->http, (unsigned)answer->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result refusal_send(struct rv_api *api, struct exchange *exchange, bool close)
{
    (void)rv_parser_starved(&api->parser);
    rv_answer_problem(&exchange->answer, &api->parser.problem);
    return answer_send(exchange, close);
}

static const struct rv_poll *poll_of(const struct rv_call *call)
{
    if (call->kind == RV_CALL_POLL)
        return &call->u.poll;
    if (call->kind == RV_CALL_REPLIES && call->u.replies.has_next)
        return &call->u.replies.next;
    return NULL;
}

/* Resumed: the answer is made. One that hands out requests to a client that is gone is not sent at
 * all, which is how it is known that no byte of it left. */
static enum MHD_Result answer_begin(struct exchange *exchange)
{
    if (exchange->hands_out) {
        if (exchange->connection->left)
            return MHD_NO;
        exchange->sent_before = bytes_sent(exchange->connection->fd);
        exchange->begun = true;
    }
    bool stream = exchange->route->stream && exchange->answer.status == 200 &&
                  exchange->answer.body.failed == RV_OK;
    if (stream)
        return rv_stream_begin(exchange);
    if (exchange->copy != NULL)
        return rv_backup_begin(exchange);
    return answer_send(exchange, atomic_load(&exchange->connection->api->draining));
}

/* ---- calls that the api makes of its own ---- */

static void note_finished(struct rv_call *call)
{
    rv_arena_done(&call->arena);
    free(call);
}

/* GONE and UNDELIVERED have no caller who waits. Without memory for one, lease and complete-by
 * still find what it would have told. */
static struct rv_call *note_new(struct rv_api *api, enum rv_call_kind kind)
{
    struct rv_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    rv_arena_init(&call->arena, CALL_BYTES_KEPT);
    call->kind = kind;
    call->serial = ++api->serial_last;
    call->seed = rv_random_next(&api->random);
    call->mono_at = rv_clock_mono_ms();
    call->finish = note_finished;
    return call;
}

static void note_send(struct rv_api *api, struct rv_call *call)
{
    if (!rv_mailbox_put(api->options.mailbox, call))
        note_finished(call);
}

static bool call_may_wait(const struct rv_call *call)
{
    return call->kind == RV_CALL_POLL || (call->kind == RV_CALL_SHOW && call->u.show.wait_ms > 0) ||
           (call->kind == RV_CALL_SUBMIT && call->u.submit.wait_ms > 0) ||
           (call->kind == RV_CALL_MESSAGES && call->u.messages.wait_ms > 0);
}

static void gone_tell(struct rv_api *api, const struct exchange *exchange)
{
    struct rv_call *note = note_new(api, RV_CALL_GONE);
    if (note == NULL)
        return;
    note->u.gone.serial = exchange->call.serial;
    note_send(api, note);
}

void rv_http_left(struct rv_api *api, struct connection *connection)
{
    connection->left = true;
    const struct exchange *exchange = connection->exchange;
    if (exchange != NULL && exchange->stage == STAGE_WAITING && call_may_wait(&exchange->call))
        gone_tell(api, exchange);
}

static void undelivered_tell(struct rv_api *api, const struct exchange *exchange)
{
    const struct rv_poll *poll = poll_of(&exchange->call);
    struct rv_call *note = note_new(api, RV_CALL_UNDELIVERED);
    if (note == NULL)
        return;
    struct rv_call_undelivered *u = &note->u.undelivered;
    u->attempts = RV_NEW_ARRAY(&note->arena, struct rv_handed_out, poll->requests_count);
    for (size_t i = 0; u->attempts != NULL && i < poll->requests_count; i++)
        u->attempts[u->count++] = (struct rv_handed_out){poll->requests[i].step,
                                                         poll->requests[i].token};
    note_send(api, note);
}

/* ---- the way of a request ---- */

static void call_finished(struct rv_call *call)
{
    struct exchange *exchange = call->owner;
    struct rv_api *api = exchange->connection->api;
    bool put = rv_mailbox_put(&api->finished, call);
    rv_assert(put); /* this mailbox is never closed while calls are out */
    if (!atomic_exchange(&api->event_pending, true))
        rv_api_wake(api);
}

/* Whoever hears of a change of keys can rely on it. */
static void keys_learn(struct rv_api *api, struct rv_call *call)
{
    struct rv_keys *keys = &api->options.access.keys;
    bool changed = call->kind == RV_CALL_KEY_REVOKE || call->kind == RV_CALL_KEY_ADD;
    if (call->err != RV_OK || !changed)
        return;
    api->key_changes = call->u.key.changes;
    if (call->kind == RV_CALL_KEY_REVOKE)
        rv_keys_remove(keys, call->u.key.row.id);
    if (call->kind == RV_CALL_KEY_ADD)
        call->err = rv_keys_add(keys, &call->u.key.row);
}

/* The requests in the answer of an agent whose access has ended go back to the server. */
static void requests_take_back(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    struct rv_poll *poll = call->kind == RV_CALL_REPLIES ? &call->u.replies.next : &call->u.poll;
    if (call->err != RV_OK || poll_of(call) == NULL || poll->requests_count == 0)
        return;
    undelivered_tell(api, exchange);
    poll->requests_count = 0;
}

/* The caller's access ended while the call was parked: a stream ends, and what was waited for is
 * not told. The results of replies are, since they were decided while the access stood. */
static bool revoked_meanwhile(struct rv_api *api, struct exchange *exchange)
{
    const struct rv_call *call = &exchange->call;
    if (!call->access_ended &&
        rv_access_stands(&api->options.access, exchange->route, &exchange->caller))
        return false;
    if (exchange->streams) {
        rv_stream_end(exchange);
        return true;
    }
    requests_take_back(api, exchange);
    if (!call_may_wait(call) && !call->access_ended)
        return false;
    rv_parser_begin(&api->parser, &exchange->call.arena);
    (void)rv_access_ended(&api->parser);
    rv_answer_problem(&exchange->answer, &api->parser.problem);
    return true;
}

static void counts_show(struct rv_api *api, struct rv_answer *answer)
{
    api->counts.calls = atomic_load(&api->outstanding);
    if (api->options.store_bytes != NULL)
        api->counts.store_bytes = api->options.store_bytes(api->options.self);
    if (api->options.spans != NULL)
        api->counts.has_spans = api->options.spans(api->options.self, &api->counts.spans_sent,
                                                   &api->counts.spans_dropped);
    answer->counts = &api->counts;
}

void rv_http_finished(struct rv_api *api, struct rv_call *call)
{
    struct exchange *exchange = call->owner;
    struct rv_answer *answer = &exchange->answer;
    atomic_fetch_sub(&api->outstanding, 1);
    keys_learn(api, call);
    if (exchange->route->ready && call->err == RV_OK && api->options.health != NULL)
        call->err = api->options.health(api->options.self);
    if (call->kind == RV_CALL_METRICS)
        counts_show(api, answer);
    if (call->kind == RV_CALL_BACKUP)
        exchange->copy = call->u.backup.copy;
    answer->now = call->now + (rv_clock_mono_ms() - call->mono_now);
    if (revoked_meanwhile(api, exchange))
        call->err = RV_ERR_REFUSED;
    else if (exchange->streams)
        rv_stream_finished(exchange);
    else if (!rv_answer_failed(answer, call))
        exchange->route->render(answer, call);
    const struct rv_poll *poll = poll_of(call);
    exchange->hands_out = call->err == RV_OK && poll != NULL && poll->requests_count > 0;
    if (exchange->hands_out && answer->body.failed != RV_OK) {
        exchange->hands_out = false; /* another answer is sent in its place */
        undelivered_tell(api, exchange);
    }
    exchange->stage = STAGE_ANSWERED;
    rv_http_list(exchange->connection, rv_clock_mono_ms());
    rv_lane_resume(exchange);
}

void rv_http_stamp(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    call->kind = exchange->route->kind;
    call->serial = ++api->serial_last;
    call->seed = rv_random_next(&api->random);
    call->mono_at = rv_mailbox_arrive(&api->maker);
    exchange->whole_us = rv_clock_mono_us();
    call->finish = call_finished;
    call->owner = exchange;
}

static void call_send(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    exchange->stage = STAGE_WAITING;
    if (call_may_wait(call))
        rv_buf_done(&exchange->body); /* thousands wait, each for minutes */
    atomic_fetch_add(&api->outstanding, 1);
    if (!rv_mailbox_put(api->options.mailbox, call)) {
        call->err = RV_ERR_BUSY;
        call->message = RV_STR("the server is stopping; try again in a moment");
        call_finished(call);
    } else if (exchange->connection->left && call_may_wait(call)) {
        gone_tell(api, exchange);
    }
}

void rv_http_ask(struct rv_api *api, struct exchange *exchange)
{
    rv_http_unlist(exchange->connection);
    MHD_suspend_connection(exchange->http);
    call_send(api, exchange);
}

/* The request becomes a call; false: it is refused. */
static bool request_parse(struct rv_api *api, struct exchange *exchange)
{
    struct rv_parser *parser = &api->parser;
    rv_parser_begin(parser, &exchange->call.arena);
    parser->caller = &exchange->caller;
    exchange->line.body = rv_buf_str(&exchange->body);
    bool good = (rv_access_stands(&api->options.access, exchange->route, &exchange->caller) ||
                 rv_access_ended(parser)) &&
                exchange->route->parse(parser, &exchange->line, &exchange->call) &&
                rv_access_call(parser, &exchange->caller, &exchange->call) &&
                !rv_parser_starved(parser);
    if (exchange->route->roles != RV_ANYBODY) {
        exchange->call.keys_known = api->key_changes;
        exchange->call.key_id = exchange->caller.id;
    }
    body_drop(api, exchange);
    return good;
}

/* Requests of some megabytes are parsed one at a time, and others get their turn between them. */
static void large_wait(struct rv_api *api, struct exchange *exchange)
{
    exchange->stage = STAGE_LARGE;
    exchange->large_next = NULL;
    if (api->large != NULL)
        api->large_last->large_next = exchange;
    else
        api->large = exchange;
    api->large_last = exchange;
    rv_http_unlist(exchange->connection);
    MHD_suspend_connection(exchange->http);
}

void rv_http_large_go_on(struct rv_api *api, bool stops)
{
    struct exchange *exchange = api->large;
    if (exchange == NULL)
        return;
    api->large = exchange->large_next;
    rv_parser_begin(&api->parser, &exchange->call.arena);
    bool good = !stops && request_parse(api, exchange);
    if (stops)
        rv_refuse(&api->parser, RV_ERR_BUSY, "the server is stopping; try again in a moment");
    if (good) {
        call_send(api, exchange);
    } else {
        (void)rv_parser_starved(&api->parser);
        rv_answer_problem(&exchange->answer, &api->parser.problem);
        exchange->stage = STAGE_ANSWERED;
        rv_http_list(exchange->connection, rv_clock_mono_ms());
        rv_lane_resume(exchange);
    }
    rv_mailbox_settle(&api->maker, api->large != NULL ? api->large->call.mono_at : INT64_MAX);
}

static enum MHD_Result request_ask(struct rv_api *api, struct exchange *exchange)
{
    struct rv_parser *parser = &api->parser;
    rv_parser_begin(parser, &exchange->call.arena);
    rv_http_stamp(api, exchange);
    if (exchange->discards) {
        rv_refuse(parser, RV_ERR_BUSY, "too many large requests at once; try again");
        return refusal_send(api, exchange, false);
    }
    if (atomic_load(&api->draining)) {
        rv_refuse(parser, RV_ERR_BUSY, "the server is stopping; try again in a moment");
        return refusal_send(api, exchange, true);
    }
    if (exchange->body.len > BODY_BYTES_LARGE && !exchange->route->local) {
        large_wait(api, exchange);
        return MHD_YES;
    }
    if (!request_parse(api, exchange))
        return refusal_send(api, exchange, false);
    if (!exchange->route->local) {
        rv_http_ask(api, exchange);
        return MHD_YES;
    }
    exchange->route->render(&exchange->answer, &exchange->call);
    return answer_send(exchange, false);
}

/* The whole request is here. */
static enum MHD_Result request_done(struct rv_api *api, struct exchange *exchange)
{
    enum MHD_Result result = request_ask(api, exchange);
    rv_mailbox_settle(&api->maker, api->large != NULL ? api->large->call.mono_at : INT64_MAX);
    return result;
}

/* The head is here. A refusal before the body is read closes the connection. */
static enum MHD_Result head_done(struct rv_api *api, struct exchange *exchange, const char *method,
                                 const char *version)
{
    struct rv_parser *parser = &api->parser;
    struct rv_head head = {.length = RV_STR_NONE};
    int64_t bytes = 0;
    rv_parser_begin(parser, &exchange->call.arena);
    if (!rv_framing_check(parser, exchange, version, &head) ||
        !rv_request_read(parser, exchange->target, &exchange->line))
        return refusal_send(api, exchange, true);
    struct rv_str length = head.length;
    exchange->line.file = head.file;
    exchange->line.seen = head.seen;
    exchange->line.key = head.key;
    exchange->line.traceparent = head.traceparent;
    exchange->line.tracestate = head.tracestate;
    exchange->route = rv_route_find(parser, rv_str_of(method), &exchange->line);
    if (!rv_access_check(parser, &api->options.access, exchange->route, &head.credentials,
                         &exchange->caller))
        return refusal_send(api, exchange, true);
    if (length.at != NULL && (!rv_text_int(length, &bytes) || bytes > RV_BODY_BYTES_MAX)) {
        rv_refuse(parser, RV_ERR_LIMIT, "the body is larger than %d bytes; send less at once",
                  RV_BODY_BYTES_MAX);
        return refusal_send(api, exchange, true);
    }
    if (exchange->route == NULL)
        return refusal_send(api, exchange, true);
    exchange->discards = !held_room(api, exchange, (size_t)bytes);
    exchange->stage = STAGE_BODY;
    return MHD_YES;
}

/* Straight to the peer, past libmicrohttpd; what does not go at once does not go. */
static void text_send(const struct exchange *exchange, struct rv_str text)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        exchange->http, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (info != NULL && info->tls_session != NULL)
        (void)gnutls_record_send(info->tls_session, text.at, text.len);
    else
        (void)send(exchange->connection->fd, text.at, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* In the midst of a body libmicrohttpd takes no answer: this one goes straight to the peer, and the
 * connection is closed. */
static enum MHD_Result body_refuse(struct rv_api *api, struct exchange *exchange)
{
    struct rv_buf *text = &api->parser.scratch;
    struct rv_buf *body = &exchange->answer.body;
    rv_answer_problem(&exchange->answer, &api->parser.problem);
    rv_buf_reset(text);
    char date[RV_HTTP_DATE_BYTES];
    rv_http_date(rv_clock_wall_ms() / RV_SECOND_MS, date);
    rv_http_write_head(text, &(struct rv_http_answer){.status = exchange->answer.status,
                                                      .minor = 1,
                                                      .close = true,
                                                      .length = body->len,
                                                      .type = "application/problem+json",
                                                      .date = date});
    rv_http_write_end(text);
    rv_buf_add_str(text, rv_buf_str(body));
    if (text->failed == RV_OK)
        text_send(exchange, rv_buf_str(text));
    return MHD_NO;
}

static enum MHD_Result body_add(struct rv_api *api, struct exchange *exchange, const char *bytes,
                                size_t len)
{
    struct rv_parser *parser = &api->parser;
    exchange->came_bytes += len;
    if (!exchange->discards && !held_room(api, exchange, exchange->came_bytes)) {
        body_drop(api, exchange);
        exchange->discards = true;
    }
    if (!exchange->discards)
        rv_buf_add(&exchange->body, bytes, len);
    if (!exchange->discards && exchange->came_bytes > exchange->held_bytes)
        held_set(api, exchange, exchange->came_bytes);
    if (exchange->came_bytes <= RV_BODY_BYTES_MAX && exchange->body.failed == RV_OK)
        return MHD_YES;
    rv_parser_begin(parser, &exchange->call.arena);
    if (exchange->came_bytes > RV_BODY_BYTES_MAX)
        rv_refuse(parser, RV_ERR_LIMIT, "the body is larger than %d bytes; send less at once",
                  RV_BODY_BYTES_MAX);
    else
        rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    return body_refuse(api, exchange);
}

static enum MHD_Result request_step(void *self, struct MHD_Connection *http, const char *url,
                                    const char *method, const char *version, const char *bytes,
                                    size_t *bytes_count, void **context)
{
    struct rv_api *api = self;
    struct exchange *exchange = *context;
    (void)http;
    (void)url;
    if (exchange == NULL)
        return MHD_NO; /* no memory was there for it */
    switch (exchange->stage) {
    case STAGE_HEAD:
        return head_done(api, exchange, method, version);
    case STAGE_BODY:
        if (*bytes_count == 0)
            return request_done(api, exchange);
        size_t count = *bytes_count;
        *bytes_count = 0;
        return body_add(api, exchange, bytes, count);
    case STAGE_LARGE:
    case STAGE_WAITING:
        return MHD_YES;
    case STAGE_ANSWERED:
        return answer_begin(exchange);
    }
    return MHD_NO;
}

static void request_completed(void *self, struct MHD_Connection *http, void **context,
                              enum MHD_RequestTerminationCode how)
{
    struct rv_api *api = self;
    struct exchange *exchange = *context;
    (void)http;
    *context = NULL;
    if (exchange == NULL)
        return;
    struct connection *connection = exchange->connection;
    if (exchange->hands_out && how != MHD_REQUEST_TERMINATED_COMPLETED_OK &&
        (!exchange->begun || bytes_sent(connection->fd) == exchange->sent_before))
        undelivered_tell(api, exchange);
    connection->exchange = NULL;
    rv_http_list(connection, rv_clock_mono_ms());
    exchange_free(api, exchange);
}

/* Addresses are decoded by our own reader, which sees what was sent. */
static size_t unescape_nothing(void *self, struct MHD_Connection *http, char *text)
{
    (void)self;
    (void)http;
    return strlen(text);
}

enum rv_err rv_http_start(struct lane *lane)
{
    struct rv_api *api = lane->api;
    static char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    const struct rv_api_options *options = &api->options;
    bool tls = options->tls_cert != NULL;
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->tls_cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->tls_key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, versions},
        {MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                     MHD_USE_NO_LISTEN_SOCKET;
    lane->daemon = MHD_start_daemon(
        tls ? flags | MHD_USE_TLS : flags, 0, NULL, NULL, request_step, api,
        MHD_OPTION_CONNECTION_LIMIT, options->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        options->heads_bytes ? options->heads_bytes : (size_t)HEADS_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, target_read, api, MHD_OPTION_UNESCAPE_CALLBACK,
        unescape_nothing, NULL, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, lane,
        MHD_OPTION_NOTIFY_COMPLETED, request_completed, api, MHD_OPTION_ARRAY,
        tls ? secure : &secure[3], MHD_OPTION_END);
    return lane->daemon != NULL ? RV_OK : RV_ERR_IO;
}

/* How a request goes through here: the door tells when a head has come (the exchange is made and
 * checked), with each piece of the body, and when all is there. Then the request becomes a call and
 * goes to the scheduler. When it comes back (rv_http_finished), its answer goes to the door. All of
 * it on the api's thread. */
#include "api/access_log.h"
#include "api/api_priv.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/time.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    CALL_BYTES_MAX = 512 * 1024 * 1024, /* of one call's arena: all requests of the largest poll */
    CALL_BYTES_KEPT = 64 * 1024,        /* a larger arena is given back after its call */
    ANSWER_BYTES_KEPT = 16 * 1024,
    HELD_BYTES_MAX = 128 * 1024 * 1024, /* of all requests, from their first byte to their answer */
    BODY_BYTES_SMALL = 16 * 1024,       /* has room also when large ones have taken all of that */
    BODY_BYTES_LARGE = 256 * 1024,      /* is parsed when nothing else waits */
    LOADED_BYTES_MAX = 8 * 1024 * 1024, /* of large rows, until their answers are made */
    HURRY_MS = 1, /* that an answer waits for what may come, where clients wait outside */
    EXCHANGES_KEPT = 256
};

#define BODY_LARGE "the body is larger than %d bytes; send less data per request"

/* ---- exchanges ---- */

static struct exchange *exchange_new(struct rv_api *api)
{
    struct exchange *exchange = api->free;
    if (exchange != NULL) {
        rv_assert(api->free_count > 0);
        rv_assert(exchange->held_bytes == 0);
        rv_assert(exchange->body.len == 0);
        api->free = exchange->next_free;
        api->free_count--;
    } else {
        exchange = calloc(1, sizeof *exchange);
        if (exchange == NULL)
            return NULL;
        rv_arena_init(&exchange->call.arena, CALL_BYTES_MAX);
        rv_buf_init(&exchange->body, RV_BODY_BYTES_MAX);
        rv_answer_init(&exchange->answer);
    }
    exchange->api = api;
    api->exchanges_open++;
    return exchange;
}

static void held_set(struct rv_api *api, struct exchange *exchange, size_t bytes)
{
    rv_assert(exchange->held_bytes <= api->held_bytes);
    bytes = bytes > BODY_BYTES_SMALL ? bytes : 0;
    api->held_bytes += bytes - exchange->held_bytes;
    exchange->held_bytes = bytes;
}

/* Has the exchange room for so many bytes? */
static bool held_room(const struct rv_api *api, const struct exchange *exchange, size_t bytes)
{
    rv_assert(exchange->held_bytes <= api->held_bytes);
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

/* An empty answer, with the buffer of the one before. */
static struct rv_buf answer_buffer(struct rv_answer *answer)
{
    if (answer->body.room > ANSWER_BYTES_KEPT)
        rv_buf_done(&answer->body);
    rv_buf_reset(&answer->body);
    return answer->body;
}

static bool loads_room(void *self)
{
    const struct rv_api *api = self;
    return atomic_load(&api->loaded_bytes) < LOADED_BYTES_MAX;
}

static void loads_took(void *self, size_t bytes)
{
    struct rv_api *api = self;
    atomic_fetch_add(&api->loaded_bytes, bytes);
}

struct rv_call_loads rv_http_loads(struct rv_api *api)
{
    return (struct rv_call_loads){loads_room, loads_took, api};
}

/* Large reads wait for that. */
static void loaded_forget(struct rv_api *api, const struct rv_call *call)
{
    size_t bytes = call->loaded_bytes;
    size_t before = bytes > 0 ? atomic_fetch_sub(&api->loaded_bytes, bytes) : 0;
    rv_assert(before >= bytes);
    if (before >= LOADED_BYTES_MAX && before - bytes < LOADED_BYTES_MAX)
        rv_mailbox_wake(api->options.mailbox);
}

void rv_http_free(struct exchange *exchange)
{
    struct rv_api *api = exchange->api;
    rv_assert(exchange->stage != STAGE_WAITING);
    rv_assert(api->exchanges_open > 0);
    rv_assert(api->free_count <= EXCHANGES_KEPT);
    if (api->resting == exchange)
        api->resting = NULL;
    if (api->copying == exchange)
        api->copying = NULL;
    api->exchanges_open--;
    loaded_forget(api, &exchange->call);
    if (exchange->copy != NULL)
        exchange->copy->close(exchange->copy);
    body_drop(api, exchange);
    held_set(api, exchange, 0);
    struct rv_arena arena = exchange->call.arena;
    struct rv_buf body = exchange->body, answer = answer_buffer(&exchange->answer);
    if (arena.bytes_taken > CALL_BYTES_KEPT)
        rv_arena_done(&arena);
    else
        rv_arena_reset(&arena);
    if (api->free_count == EXCHANGES_KEPT) {
        rv_arena_done(&arena);
        rv_buf_done(&body);
        rv_buf_done(&answer);
        free(exchange);
        return;
    }
    *exchange = (struct exchange){.call.arena = arena, .body = body, .next_free = api->free};
    rv_answer_init(&exchange->answer);
    exchange->answer.body = answer;
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
        rv_buf_done(&exchange->answer.body);
        free(exchange);
    }
}

/* ---- calls that the api makes of its own ---- */

static void note_finished(struct rv_call *call)
{
    rv_arena_done(&call->arena);
    free(call);
}

/* GONE, UNSENT and RAISE have no caller who waits. Without memory for one, lease and
 * complete-by still find what it would have told. */
static struct rv_call *note_new(struct rv_api *api, enum rv_call_kind kind)
{
    struct rv_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return NULL;
    rv_arena_init(&call->arena, CALL_BYTES_KEPT);
    call->kind = kind;
    call->note = true;
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

static void client_left(void *self, void *request)
{
    const struct exchange *exchange = request;
    if (exchange->stage == STAGE_WAITING && call_may_wait(&exchange->call))
        gone_tell(self, exchange);
}

static void undelivered_tell(struct rv_api *api, struct exchange *exchange)
{
    const struct rv_poll *poll = rv_call_poll(&exchange->call);
    rv_assert(poll != NULL);
    struct rv_call *note = note_new(api, RV_CALL_UNSENT);
    if (note == NULL)
        return;
    struct rv_call_unsent *u = &note->u.unsent;
    u->attempts = RV_NEW_ARRAY(&note->arena, struct rv_handed_out, poll->requests_count);
    for (size_t i = 0; u->attempts != NULL && i < poll->requests_count; i++)
        u->attempts[u->count++] = (struct rv_handed_out){poll->requests[i].step,
                                                         poll->requests[i].token};
    note_send(api, note);
}

/* ---- answers ---- */

static void answer_count(const struct exchange *exchange)
{
    struct rv_api_counts *counts = &exchange->api->counts;
    const struct rv_call *call = &exchange->call;
    int status = exchange->answer.status;
    size_t route = exchange->route ? (size_t)(exchange->route - rv_routes()) : RV_ROUTES_MAX;
    rv_assert(route <= RV_ROUTES_MAX);
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

void rv_http_note(const struct exchange *exchange)
{
    struct rv_access_log *log = exchange->api->options.access_log;
    const struct rv_route *route = exchange->route;
    const struct rv_caller *caller = &exchange->caller;
    if (log == NULL)
        return;
    rv_access_log_add(log,
                      &(struct rv_access_line){.client = exchange->client,
                                               .key = !caller->known            ? RV_STR_NONE
                                                      : caller->name.at != NULL ? caller->name
                                                                                : caller->id,
                                               .method = rv_str_of(route ? route->method : NULL),
                                               .pattern = rv_str_of(route ? route->pattern : NULL),
                                               .status = exchange->answer.status,
                                               .us = rv_clock_mono_us() - exchange->begun_us});
}

static void client_note(struct exchange *exchange, const struct rv_http_request *request)
{
    const struct rv_api_options *options = &exchange->api->options;
    char peer[RV_DOOR_PEER_BYTES];
    struct rv_str client = RV_STR_NONE;
    if (options->access_log == NULL)
        return;
    rv_door_peer(exchange->conn, peer);
    if (options->behind_proxy)
        client = rv_head_client(request);
    exchange->client = rv_arena_str(&exchange->call.arena,
                                    client.len > 0 ? client : rv_str_of(peer));
    exchange->begun_us = rv_clock_mono_us();
}

size_t rv_http_fields(const struct rv_answer *answer, struct answer_fields *fields)
{
    size_t count = 0;
    if (answer->retry_after_s != 0) {
        snprintf(fields->seconds, sizeof fields->seconds, "%d", answer->retry_after_s);
        fields->at[count++] = (struct rv_door_field){"Retry-After", rv_str_of(fields->seconds)};
    }
    if (answer->status == 401)
        fields->at[count++] = (struct rv_door_field){"WWW-Authenticate",
                                                     RV_STR("Bearer realm=\"reeve\"")};
    if (answer->location_len > 0 && answer->location_len < sizeof answer->location)
        fields->at[count++] = (struct rv_door_field){"Location",
                                                     {answer->location, answer->location_len}};
    if (answer->allow.at != NULL)
        fields->at[count++] = (struct rv_door_field){"Allow", answer->allow};
    rv_assert(count <= sizeof fields->at / sizeof fields->at[0]);
    return count;
}

static void answer_starve(struct exchange *exchange, enum rv_err err, struct rv_str detail)
{
    struct rv_answer *answer = &exchange->answer;
    struct rv_problem problem = {.status = 503, .err = err, .detail = detail};
    rv_buf_done(&answer->body);
    rv_answer_problem(answer, &problem);
    if (exchange->hands_out)
        undelivered_tell(exchange->api, exchange);
    exchange->hands_out = false; /* another answer is sent in its place */
}

/* Something was changed, and who sends the request once more would change it twice. What an agent
 * is handed out is taken back, and its replies can be sent again. */
static bool is_carried_out(const struct exchange *exchange)
{
    const struct rv_route *route = exchange->route;
    return route != NULL && route->way != RV_WAY_LOCAL && strcmp(route->method, "GET") != 0 &&
           route->kind != RV_CALL_POLL && route->kind != RV_CALL_REPLIES &&
           exchange->answer.status < 300;
}

/* Gives the finished answer to the door. The exchange ends here, or when it is sent. */
static void answer_send(struct exchange *exchange, bool close)
{
    struct rv_answer *answer = &exchange->answer;
    struct answer_fields fields;
    rv_assert(!exchange->streams);
    rv_assert(exchange->stage != STAGE_WAITING);
    bool done = is_carried_out(exchange);
    if (answer->body.failed != RV_OK)
        answer_starve(
            exchange, RV_ERR_MEMORY,
            done ? RV_STR("the request was carried out, but the server has no memory for the "
                          "response: read the result instead of sending the request again")
                 : RV_STR("out of memory for the response; try again"));
    else if (!done && !rv_door_room(exchange->api->door, answer->body.len))
        answer_starve(exchange, RV_ERR_BUSY,
                      RV_STR("too many large responses are waiting for slow clients; try again"));
    answer_count(exchange);
    rv_http_note(exchange);
    rv_door_answer(exchange->conn,
                   &(struct rv_door_answer){.status = answer->status,
                                            .close = close,
                                            .type = answer->problem ? "application/problem+json"
                                                    : answer->content_type ? answer->content_type
                                                                           : "application/json",
                                            .fields = fields.at,
                                            .fields_count = rv_http_fields(answer, &fields),
                                            .body = &answer->body,
                                            .owner = exchange->hands_out ? exchange : NULL});
    if (!exchange->hands_out)
        rv_http_free(exchange);
}

static void refusal_send(struct exchange *exchange, bool close)
{
    struct rv_api *api = exchange->api;
    (void)rv_parser_starved(&api->parser);
    rv_answer_problem(&exchange->answer, &api->parser.problem);
    answer_send(exchange, close);
}

/* One that hands out requests to a client that is gone is not sent at all, which is how it is known
 * that no byte of it left. */
static void answer_begin(struct exchange *exchange)
{
    rv_assert(exchange->stage == STAGE_ANSWERED);
    rv_assert(exchange->route != NULL);
    if (exchange->hands_out && rv_door_left(exchange->conn))
        rv_door_drop(exchange->conn, exchange);
    else if (exchange->route->way == RV_WAY_STREAM && exchange->answer.status == 200 &&
             exchange->answer.body.failed == RV_OK)
        rv_stream_begin(exchange);
    else if (exchange->copy != NULL)
        rv_backup_begin(exchange);
    else
        answer_send(exchange, atomic_load(&exchange->api->draining));
}

/* ---- the way of a request ---- */

static void call_finished(struct rv_call *call)
{
    struct exchange *exchange = call->owner;
    rv_assert(exchange->stage == STAGE_WAITING);
    struct rv_api *api = exchange->api;
    bool put = rv_mailbox_put(&api->finished, call);
    rv_assert(put); /* this mailbox is never closed while calls are out */
    if (!api->options.wakes)
        rv_door_wake(api->door);
}

/* The requests in the answer of an agent whose access has ended go back to the server. */
static void requests_take_back(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    struct rv_poll *poll = rv_call_poll(call);
    if (call->err != RV_OK || poll == NULL || poll->requests_count == 0)
        return;
    undelivered_tell(api, exchange);
    poll->requests_count = 0;
}

/* The caller's access ended while the call was parked: a stream ends, and what was waited for is
 * not told. The results of replies are, since they were decided while the access stood, and so is
 * that the tasks of a submission exist: they are carried out. */
static bool revoked_meanwhile(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    if (!call->access_ended &&
        rv_access_stands(&api->options.access, exchange->route, &exchange->caller))
        return false;
    if (exchange->streams)
        return true;
    requests_take_back(api, exchange);
    if (!call_may_wait(call) && call->loaded_bytes == 0 && !call->access_ended)
        return false;
    if (call->kind == RV_CALL_SUBMIT && !call->access_ended) {
        call->u.submit.task = NULL;
        return false;
    }
    rv_parser_begin(&api->parser, &exchange->call.arena);
    (void)rv_access_ended(&api->parser);
    rv_answer_problem(&exchange->answer, &api->parser.problem);
    return true;
}

static void counts_show(struct rv_api *api, struct rv_answer *answer)
{
    api->counts.calls = atomic_load(&api->outstanding);
    api->counts.connections = rv_door_counts(api->door)->open;
    api->counts.connections_taken = rv_door_counts(api->door)->taken;
    if (api->options.store_bytes != NULL)
        api->counts.store_bytes = api->options.store_bytes(api->options.self);
    if (api->options.spans != NULL)
        api->counts.has_spans = api->options.spans(api->options.self, &api->counts.spans_sent,
                                                   &api->counts.spans_dropped);
    api->counts.log_dropped = rv_log_dropped();
    api->counts.has_access_log = api->options.access_log != NULL;
    if (api->options.access_log != NULL)
        api->counts.access_log_dropped = rv_access_log_dropped(api->options.access_log);
    answer->counts = &api->counts;
}

static void health_ask(struct rv_api *api, struct rv_call *call)
{
    const char *why = NULL;
    call->err = api->options.health(api->options.self, &why);
    if (why != NULL)
        call->message = rv_str_of(why);
}

void rv_http_finished(struct rv_api *api, struct rv_call *call)
{
    struct exchange *exchange = call->owner;
    struct rv_answer *answer = &exchange->answer;
    unsigned outstanding = atomic_fetch_sub(&api->outstanding, 1);
    rv_assert(outstanding > 0);
    rv_assert(exchange->api == api);
    rv_assert(exchange->stage == STAGE_WAITING);
    rv_http_keys_learn(api, call);
    if (exchange->route->way == RV_WAY_READY && call->err == RV_OK && api->options.health != NULL)
        health_ask(api, call);
    if (call->kind == RV_CALL_METRICS)
        counts_show(api, answer);
    if (call->kind == RV_CALL_BACKUP)
        exchange->copy = call->u.backup.copy;
    answer->now = call->now + (rv_clock_mono_ms() - call->mono_now);
    exchange->stage = STAGE_ANSWERED;
    bool revoked = revoked_meanwhile(api, exchange);
    if (exchange->streams) {
        rv_stream_finished(exchange, revoked);
        return;
    }
    if (call->kind == RV_CALL_STATUS && call->u.status != NULL && api->damaged)
        call->u.status->problems.has[RV_STORE_IS_DAMAGED] = true;
    if (revoked)
        call->err = RV_ERR_REFUSED;
    else if (!rv_answer_failed(answer, call))
        exchange->route->render(answer, call);
    const struct rv_poll *poll = rv_call_poll(call);
    exchange->hands_out = call->err == RV_OK && poll != NULL && poll->requests_count > 0;
    answer_begin(exchange);
}

void rv_http_stamp(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    rv_assert(exchange->stage != STAGE_WAITING);
    call->kind = exchange->route->kind;
    call->serial = ++api->serial_last;
    call->seed = rv_random_next(&api->random);
    call->mono_at = rv_mailbox_arrive(&api->maker);
    exchange->whole_us = rv_clock_mono_us();
    call->finish = call_finished;
    call->owner = exchange;
    call->loads = &api->loads;
}

void rv_http_ask(struct rv_api *api, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    rv_assert(exchange->stage != STAGE_WAITING);
    rv_assert(call->owner == exchange);
    rv_assert(call->finish == call_finished);
    rv_assert(call->serial != 0);
    exchange->stage = STAGE_WAITING;
    if (call_may_wait(call))
        rv_buf_done(&exchange->body); /* thousands wait, each for minutes */
    if (call->kind == RV_CALL_BACKUP)
        rv_backup_give_way(api);
    atomic_fetch_add(&api->outstanding, 1);
    if (!rv_mailbox_put(api->options.mailbox, call)) {
        call->err = RV_ERR_BUSY;
        call->message = RV_STR("the server is stopping; try again later");
        call_finished(call);
        rv_door_wake(api->door);
    } else if (rv_door_left(exchange->conn) && call_may_wait(call)) {
        gone_tell(api, exchange);
    }
}

/* Behind a connection that hurries others wait outside. It may ask, but neither park nor stay. */
static bool call_hurry(struct rv_parser *parser, struct exchange *exchange)
{
    struct rv_call *call = &exchange->call;
    int64_t none = 0, *wait = &none;
    if (exchange->route->way == RV_WAY_LOCAL || !rv_door_hurries(exchange->conn))
        return true;
    if (exchange->route->way == RV_WAY_STREAM || call->kind == RV_CALL_BACKUP)
        return rv_refuse(parser, RV_ERR_BUSY,
                         "too many connections are open, so backups and event streams are refused; "
                         "try again later");
    if (call->kind == RV_CALL_POLL)
        wait = &call->u.poll.wait_ms;
    else if (call->kind == RV_CALL_SHOW)
        wait = &call->u.show.wait_ms;
    else if (call->kind == RV_CALL_SUBMIT)
        wait = &call->u.submit.wait_ms;
    else if (call->kind == RV_CALL_MESSAGES)
        wait = &call->u.messages.wait_ms;
    if (*wait > HURRY_MS)
        *wait = HURRY_MS;
    return true;
}

/* The request becomes a call; false: it is refused. */
static bool request_parse(struct rv_api *api, struct exchange *exchange)
{
    struct rv_parser *parser = &api->parser;
    rv_http_keys_take(api);
    rv_parser_begin(parser, &exchange->call.arena);
    parser->caller = &exchange->caller;
    exchange->line.body = rv_buf_str(&exchange->body);
    bool good = (rv_access_stands(&api->options.access, exchange->route, &exchange->caller) ||
                 rv_access_ended(parser)) &&
                exchange->route->parse(parser, &exchange->line, &exchange->call) &&
                rv_access_call(parser, &exchange->caller, &exchange->call) &&
                call_hurry(parser, exchange) && !rv_parser_starved(parser);
    if (exchange->route->roles != RV_ANYBODY) {
        exchange->call.keys_known = api->key_changes;
        exchange->call.key_id = exchange->caller.id;
    }
    body_drop(api, exchange);
    return good;
}

void rv_http_settle(struct rv_api *api)
{
    rv_mailbox_settle(&api->maker, api->large != NULL ? api->large->call.mono_at : INT64_MAX);
}

/* Requests of some megabytes are parsed one at a time, and others get their turn between them. */
static void large_wait(struct rv_api *api, struct exchange *exchange)
{
    rv_assert(exchange->stage == STAGE_BODY);
    rv_assert(api->large == NULL || api->large_last->large_next == NULL);
    exchange->stage = STAGE_LARGE;
    exchange->large_next = NULL;
    if (api->large != NULL)
        api->large_last->large_next = exchange;
    else
        api->large = exchange;
    api->large_last = exchange;
}

void rv_http_large_go_on(struct rv_api *api, bool stops)
{
    struct exchange *exchange = api->large;
    if (exchange == NULL)
        return;
    rv_assert(exchange->stage == STAGE_LARGE);
    rv_assert(exchange->large_next != NULL || api->large_last == exchange);
    api->large = exchange->large_next;
    rv_parser_begin(&api->parser, &exchange->call.arena);
    bool good = !stops && request_parse(api, exchange);
    if (stops)
        rv_refuse(&api->parser, RV_ERR_BUSY, "the server is stopping; try again later");
    if (good) {
        rv_http_ask(api, exchange);
    } else {
        refusal_send(exchange, atomic_load(&api->draining));
    }
    rv_http_settle(api);
}

static void request_ask(struct rv_api *api, struct exchange *exchange)
{
    rv_assert(exchange->stage == STAGE_BODY);
    rv_assert(exchange->route != NULL);
    struct rv_parser *parser = &api->parser;
    rv_parser_begin(parser, &exchange->call.arena);
    rv_http_stamp(api, exchange);
    if (exchange->discards) {
        rv_refuse(parser, RV_ERR_BUSY, "too many large requests are waiting; try again later");
        refusal_send(exchange, false);
    } else if (atomic_load(&api->draining)) {
        rv_refuse(parser, RV_ERR_BUSY, "the server is stopping; try again later");
        refusal_send(exchange, true);
    } else if (exchange->body.len > BODY_BYTES_LARGE && exchange->route->way != RV_WAY_LOCAL) {
        large_wait(api, exchange);
    } else if (!request_parse(api, exchange)) {
        refusal_send(exchange, false);
    } else if (exchange->route->way != RV_WAY_LOCAL) {
        rv_http_ask(api, exchange);
    } else {
        exchange->answer.description = &api->description;
        exchange->route->render(&exchange->answer, &exchange->call);
        answer_send(exchange, false);
    }
}

/* The whole request is here. */
static void request_done(void *self, void *request)
{
    struct rv_api *api = self;
    request_ask(api, request);
    rv_http_settle(api);
}

static bool head_read(struct rv_api *api, struct exchange *exchange,
                      const struct rv_http_request *request)
{
    struct rv_parser *parser = &api->parser;
    struct rv_head head;
    rv_parser_begin(parser, &exchange->call.arena);
    struct rv_str target = rv_arena_str(&exchange->call.arena, request->target);
    if (!rv_head_read(parser, request, &head) || !rv_request_read(parser, target, &exchange->line))
        return false;
    exchange->line.file = head.file;
    exchange->line.seen = head.seen;
    exchange->line.key = head.key;
    exchange->line.traceparent = head.traceparent;
    exchange->line.tracestate = head.tracestate;
    exchange->route = rv_route_match(request->method, &exchange->line);
    rv_http_keys_take(api);
    return rv_access_check(parser, &api->options.access, exchange->route, &head.credentials,
                           &exchange->caller) &&
           (exchange->route != NULL || rv_route_refuse(parser, request->method, &exchange->line));
}

/* No such route has a body. What comes all the same takes no memory, since whoever sends it may
 * have no key. */
static bool is_open_to_all(const struct exchange *exchange)
{
    return exchange->route->roles == RV_ANYBODY;
}

/* The head is here. */
static void *request_begin(void *self, struct rv_door_conn *conn,
                           const struct rv_http_request *request)
{
    struct rv_api *api = self;
    struct exchange *exchange = exchange_new(api);
    if (exchange == NULL)
        return NULL;
    exchange->conn = conn;
    client_note(exchange, request);
    if (!head_read(api, exchange, request)) {
        refusal_send(exchange, false);
        return NULL;
    }
    rv_assert(request->length >= 0);
    rv_assert(exchange->route != NULL);
    exchange->discards = !is_open_to_all(exchange) &&
                         !held_room(api, exchange, (size_t)request->length);
    exchange->stage = STAGE_BODY;
    return exchange;
}

static void body_add(void *self, void *request, struct rv_str piece)
{
    struct rv_api *api = self;
    struct exchange *exchange = request;
    rv_assert(exchange->stage == STAGE_BODY);
    if (is_open_to_all(exchange))
        return;
    exchange->came_bytes += piece.len;
    if (!exchange->discards && !held_room(api, exchange, exchange->came_bytes)) {
        body_drop(api, exchange);
        exchange->discards = true;
    }
    if (!exchange->discards)
        rv_buf_add_str(&exchange->body, piece);
    if (!exchange->discards && exchange->came_bytes > exchange->held_bytes)
        held_set(api, exchange, exchange->came_bytes);
    if (exchange->body.failed == RV_OK)
        return;
    rv_parser_begin(&api->parser, &exchange->call.arena);
    rv_refuse(&api->parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    refusal_send(exchange, true);
}

static void answer_more(void *self, void *request)
{
    struct exchange *exchange = request;
    rv_assert(exchange->copies != exchange->streams);
    (void)self;
    if (exchange->copies)
        rv_backup_more(exchange);
    else
        rv_stream_more(exchange);
}

static void request_over(void *self, void *request, bool begun)
{
    struct exchange *exchange = request;
    if (exchange->hands_out && !begun)
        undelivered_tell(self, exchange);
    rv_http_free(exchange);
}

/* What the door refuses is no request to any route. */
static void problem_write(void *self, struct rv_door_conn *conn, int status, const char *detail,
                          struct rv_buf *out)
{
    struct rv_api *api = self;
    char peer[RV_DOOR_PEER_BYTES];
    char large[sizeof BODY_LARGE + 16];
    rv_assert(status >= 400);
    snprintf(large, sizeof large, BODY_LARGE, RV_BODY_BYTES_MAX);
    struct rv_problem problem = {.status = status,
                                 .err = status == 413   ? RV_ERR_LIMIT
                                        : status == 503 ? RV_ERR_MEMORY
                                                        : RV_OK,
                                 .detail = rv_str_of(status == 413 ? large : detail)};
    rv_problem_write(out, &problem);
    rv_door_peer(conn, peer);
    if (api->options.access_log != NULL)
        rv_access_log_add(
            api->options.access_log,
            &(struct rv_access_line){.client = rv_str_of(peer), .status = status, .us = -1});
    api->counts.answers[RV_ROUTES_MAX][status >= 500 ? RV_ANSWER_FAILED : RV_ANSWER_REFUSED]++;
}

/* One alert stands for it until it is acknowledged. */
static void paused_tell(void *self, const char *why)
{
    struct rv_call *note = note_new(self, RV_CALL_RAISE);
    rv_log(RV_LOG_WARNING, "connections", RV_LOG_STR("reason", rv_str_of(why)));
    if (note == NULL)
        return;
    note->u.raise.source = RV_STR("reeve connections");
    note->u.raise.message = rv_arena_printf(
        &note->arena,
        "%s: new connections have to wait. Raise the server's file descriptor limit (ulimit -n, or "
        "LimitNOFILE= of systemd), or find the client with too many connections",
        why);
    note_send(self, note);
}

struct rv_door_host rv_http_host(struct rv_api *api)
{
    return (struct rv_door_host){.head = request_begin,
                                 .body = body_add,
                                 .end = request_done,
                                 .left = client_left,
                                 .more = answer_more,
                                 .over = request_over,
                                 .problem = problem_write,
                                 .paused = paused_tell,
                                 .self = api};
}

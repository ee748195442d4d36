#include "server/inside.h"

#include "api/answer.h"
#include "api/request.h"
#include "api/route.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/random.h"
#include "base/time.h"
#include "scheduler/call.h"

#include <stdlib.h>

enum { CALL_BYTES_MAX = 64 * 1024 * 1024 };

/* Numbers of calls of this process: the API counts from 1 up, we from here. */
#define SERIAL_FIRST (UINT64_C(1) << 63)

struct rv_inside {
    struct rv_mailbox *mailbox; /* borrowed */
    struct rv_mailbox_maker maker;
    struct rv_parser parser;
    struct rv_random random;
    uint64_t serial_last;
};

/* One request and its answer. */
struct inside_call {
    struct rv_call call;
    struct rv_http_ask *ask; /* NULL: a note, nobody waits for it */
    const struct rv_route *route;
    struct rv_answer answer;
    bool refused; /* before it became a call: the answer is made */
};

static void exchange_free(struct inside_call *exchange)
{
    rv_arena_done(&exchange->call.arena);
    rv_buf_done(&exchange->answer.body);
    free(exchange);
}

/* On the scheduler's thread, or on the api's. */
static void exchange_finished(struct rv_call *call)
{
    struct inside_call *exchange = call->owner;
    rv_assert(call == &exchange->call);
    if (exchange->ask != NULL)
        rv_http_back(exchange->ask);
    else
        exchange_free(exchange);
}

static struct inside_call *exchange_new(struct rv_inside *inside, struct rv_http_ask *ask)
{
    struct inside_call *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL)
        return NULL;
    rv_assert(inside->serial_last >= SERIAL_FIRST);
    rv_arena_init(&exchange->call.arena, CALL_BYTES_MAX);
    rv_answer_init(&exchange->answer);
    exchange->ask = ask;
    exchange->call.serial = inside->serial_last++;
    exchange->call.seed = rv_random_next(&inside->random);
    exchange->call.mono_at = ask != NULL ? rv_mailbox_arrive(&inside->maker) : rv_clock_mono_ms();
    exchange->call.finish = exchange_finished;
    exchange->call.owner = exchange;
    return exchange;
}

static bool exchange_parse(struct rv_inside *inside, struct inside_call *exchange)
{
    rv_assert(exchange->ask != NULL);
    rv_assert(exchange->route == NULL);
    struct rv_parser *parser = &inside->parser;
    struct rv_request_line line;
    rv_parser_begin(parser, &exchange->call.arena);
    if (exchange->ask->body.len > RV_BODY_BYTES_MAX)
        return rv_refuse(parser, RV_ERR_LIMIT, "the body is larger than %d bytes",
                         RV_BODY_BYTES_MAX);
    if (!rv_request_read(parser, exchange->ask->path, &line))
        return false;
    line.body = exchange->ask->body;
    exchange->route = rv_route_find(parser, RV_STR("POST"), &line);
    if (exchange->route == NULL)
        return false;
    exchange->call.kind = exchange->route->kind;
    if (!exchange->route->parse(parser, &line, &exchange->call) || rv_parser_starved(parser))
        return false;
    if (exchange->call.kind == RV_CALL_POLL)
        exchange->call.u.poll.inside = true;
    return true;
}

static enum rv_err exchange_ask(struct rv_inside *inside, struct inside_call *exchange)
{
    struct rv_http_ask *ask = exchange->ask;
    ask->handle = exchange;
    if (!exchange_parse(inside, exchange)) {
        exchange->refused = true;
        rv_answer_problem(&exchange->answer, &inside->parser.problem);
        rv_http_back(ask);
        return RV_OK;
    }
    if (rv_mailbox_put(inside->mailbox, &exchange->call))
        return RV_OK;
    exchange_free(exchange);
    return RV_ERR_BUSY;
}

static enum rv_err door_ask(void *self, struct rv_http_ask *ask)
{
    struct rv_inside *inside = self;
    struct inside_call *exchange = exchange_new(inside, ask);
    if (exchange == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = exchange_ask(inside, exchange);
    rv_mailbox_settle(&inside->maker, INT64_MAX);
    return err;
}

/* A note to the scheduler that nobody waits for. Without memory for one, lease and complete-by find
 * what it would have told. */
static void note_send(struct rv_inside *inside, struct inside_call *note)
{
    rv_assert(note->ask == NULL);
    if (!rv_mailbox_put(inside->mailbox, &note->call))
        exchange_free(note);
}

static void door_leave(void *self, struct rv_http_ask *ask)
{
    struct rv_inside *inside = self;
    const struct inside_call *exchange = ask->handle;
    rv_assert(exchange->ask == ask);
    struct inside_call *note = exchange_new(inside, NULL);
    if (note == NULL)
        return;
    note->call.kind = RV_CALL_GONE;
    note->call.note = true;
    note->call.u.gone.serial = exchange->call.serial;
    note_send(inside, note);
}

static void undelivered_tell(struct rv_inside *inside, const struct rv_poll *poll)
{
    rv_assert(poll->requests_count > 0);
    struct inside_call *note = exchange_new(inside, NULL);
    if (note == NULL)
        return;
    struct rv_call_unsent *u = &note->call.u.unsent;
    note->call.kind = RV_CALL_UNSENT;
    note->call.note = true;
    u->attempts = RV_NEW_ARRAY(&note->call.arena, struct rv_handed_out, poll->requests_count);
    for (size_t i = 0; u->attempts != NULL && i < poll->requests_count; i++)
        u->attempts[u->count++] = (struct rv_handed_out){poll->requests[i].step,
                                                         poll->requests[i].token};
    note_send(inside, note);
}

static int door_read(void *self, struct rv_http_ask *ask, int64_t *ret_retry_after_ms,
                     struct rv_str *ret_body)
{
    struct inside_call *exchange = ask->handle;
    struct rv_call *call = &exchange->call;
    struct rv_answer *answer = &exchange->answer;
    (void)self;
    rv_assert(exchange->ask == ask);
    rv_assert(exchange->refused || exchange->route != NULL);
    if (!exchange->refused) {
        answer->now = call->now + (rv_clock_mono_ms() - call->mono_now);
        if (!rv_answer_failed(answer, call))
            exchange->route->render(answer, call);
    }
    *ret_retry_after_ms = answer->retry_after_s > 0
                              ? rv_retry_after_ms(answer->retry_after_s, RV_SECOND_MS)
                              : -1;
    *ret_body = rv_buf_str(&answer->body);
    return answer->body.failed == RV_OK ? answer->status : 503;
}

static void door_forget(void *self, struct rv_http_ask *ask, bool heard)
{
    struct inside_call *exchange = ask->handle;
    rv_assert(exchange->ask == ask);
    struct rv_call *call = &exchange->call;
    const struct rv_poll *poll = exchange->refused ? NULL : rv_call_poll(call);
    bool lost = !heard || exchange->answer.body.failed != RV_OK;
    if (lost && poll != NULL && call->err == RV_OK && poll->requests_count > 0)
        undelivered_tell(self, poll);
    exchange_free(exchange);
    ask->handle = NULL;
}

struct rv_inside *rv_inside_new(struct rv_mailbox *mailbox)
{
    struct rv_inside *inside = calloc(1, sizeof *inside);
    if (inside == NULL)
        return NULL;
    inside->mailbox = mailbox;
    rv_mailbox_join(mailbox, &inside->maker);
    inside->serial_last = SERIAL_FIRST;
    rv_parser_init(&inside->parser);
    return inside;
}

void rv_inside_free(struct rv_inside *inside)
{
    if (inside == NULL)
        return;
    rv_parser_done(&inside->parser);
    free(inside);
}

struct rv_http_door rv_inside_door(struct rv_inside *inside)
{
    return (struct rv_http_door){.ask = door_ask,
                                 .leave = door_leave,
                                 .read = door_read,
                                 .forget = door_forget,
                                 .self = inside};
}

#include "agent/http/http.h"

#include "agent/http/secret.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/mailbox.h"
#include "base/os/random.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NEXT_CONVERSATION_AT = 750, /* attempts in hand of the one before */
    TRIES_MAX = 5,
    RETRY_BASE_MS = 100,
    RETRY_CAP_MS = 5000,
    CIRCUIT_FAILURES = 5,
    CIRCUIT_OPEN_MS = 1000,
    STOP_FINISH_MS = 1500, /* for calls under way when a stop is asked for */
    STOP_REPLY_MS = 500,   /* then for the last replies */
    SLEEP_MS_MAX = 60000,
    NOTES_MAX = 512, /* taken at a time */
    INSTANCE_BYTES = 100
};

/* What comes into the agent's mailbox: an ask that came back, or a call that ended. */
struct note {
    struct note *next;
    struct rv_http_lane *lane; /* NULL: a call */
    struct call *call;
};

struct rv_http_lane {
    struct rv_http_ask ask;
    struct note note;
    struct conversation *conversation;
    enum rv_lane lane;
    bool under_way;
    bool cut; /* the session has forgotten it */
};

/* What is done about one attempt in hand; beside the runtime's place of the same number. While it
 * is `sent`, its order and result are the outbound thread's, until its note is in the mailbox. */
struct call {
    struct conversation *conversation;
    rv_place place;
    bool read;
    bool sent;
    uint64_t id; /* at the outbound room */
    struct note note;
    struct rv_http_order order;
    struct rv_http_result result;
};

struct conversation {
    struct rv_http *http;
    struct rv_runtime *runtime; /* owned */
    struct rv_session *session; /* the runtime's */
    struct call *calls;         /* owned, by place */
    struct rv_http_lane lanes[RV_LANE_COUNT];
};

struct rv_http {
    struct rv_http_options options;
    char instance[INSTANCE_BYTES];
    struct rv_mailbox notes;
    struct conversation conversations[RV_HTTP_CONVERSATIONS];
    size_t count; /* of those that have begun: one at the start */
    atomic_bool stop_asked;
    bool stopping;
    int64_t finish_by; /* once it is stopping */
    bool cancelled;    /* what had not finished by then */
};

static void note_put(struct rv_http *http, struct note *note)
{
    bool open = rv_mailbox_put(&http->notes, note);
    rv_assert(open); /* this mailbox is never closed */
}

void rv_http_back(struct rv_http_ask *ask)
{
    note_put(ask->lane->conversation->http, &ask->lane->note);
}

/* ---- calls ---- */

/* On the outbound thread. */
static void call_answered(void *self, const struct rv_outbound_answer *answer)
{
    struct call *call = self;
    rv_http_order_judge(&call->order, answer, &call->result);
    note_put(call->conversation->http, &call->note);
}

static struct call *call_read(struct conversation *conversation, rv_place place)
{
    struct call *call = &conversation->calls[place];
    if (!call->read) {
        const struct rv_http_options *options = &conversation->http->options;
        const struct rv_http_secrets secrets = {.read = rv_http_secret_read,
                                                .self = (void *)(uintptr_t)options->secrets};
        call->read = true;
        rv_http_order_read(&call->order, rv_session_attempt(conversation->session, place)->input,
                           &secrets);
    }
    return call;
}

static struct rv_str target_of(void *user, rv_place place)
{
    return rv_str_of(call_read(user, place)->order.target);
}

static void call_failed(struct call *call, int64_t now, const struct rv_runtime_failure *failure)
{
    rv_runtime_failed(call->conversation->runtime, call->place, now, failure);
}

/* Nothing left this machine; it may work in a moment. */
static void call_unsent(struct call *call, int64_t now, enum rv_err err)
{
    call_failed(call, now,
                &(struct rv_runtime_failure){
                    .type = RV_STR("https://open-workflow-specification.org/spec/1.0.0/errors/"
                                   "communication"),
                    .title = rv_str_of(rv_err_text(err)),
                    .status = 503,
                    .transient = true,
                    .effect = RV_RUNTIME_NO_EFFECT});
}

static void call_start(struct call *call)
{
    struct conversation *conversation = call->conversation;
    struct rv_http_order *order = &call->order;
    const struct rv_held_attempt *attempt = rv_session_attempt(conversation->session, call->place);
    int64_t now = rv_clock_boot_ms();
    int64_t left_ms = attempt->complete_at - now;
    if (order->wrong.type.at != NULL) {
        call_failed(call, now, &order->wrong);
        return;
    }
    if (left_ms <= 0 || !rv_http_order_head(order, attempt, left_ms)) {
        call_unsent(call, now, left_ms <= 0 ? RV_ERR_LATE : RV_ERR_MEMORY);
        return;
    }
    struct rv_outbound_request request = {.method = order->method,
                                          .url = order->url,
                                          .headers = order->headers,
                                          .headers_count = order->headers_count,
                                          .body = order->body,
                                          .timeout_ms = left_ms,
                                          .answer_bytes_max = RV_PAYLOAD_BYTES_MAX,
                                          .follow = order->redirect,
                                          .done = call_answered,
                                          .user = call};
    call->sent = true;
    enum rv_err err = rv_outbound_submit(conversation->http->options.outbound, &request, &call->id);
    if (err != RV_OK) {
        call->sent = false;
        call_unsent(call, now, err);
    }
}

static void call_cancel(struct call *call)
{
    const struct rv_http_options *options = &call->conversation->http->options;
    if (call->sent && rv_outbound_cancel(options->outbound, call->id) != RV_OK)
        options->log(RV_LOG_WARNING, "out of memory: a call cannot be cancelled, and continues "
                                     "until it ends or its timeout passes");
}

static void call_ended(struct call *call)
{
    int64_t now = rv_clock_boot_ms();
    struct rv_buf *output = &call->result.output;
    call->sent = false;
    if (call->result.failure.type.at != NULL)
        call_failed(call, now, &call->result.failure);
    else
        rv_runtime_done(call->conversation->runtime, call->place, now, rv_buf_str(output));
    rv_buf_done(output);
}

static void call_over(struct call *call)
{
    if (call->read)
        rv_http_order_done(&call->order);
    call->read = false;
}

static void events_run(struct conversation *conversation)
{
    struct rv_runtime_event event;
    while (rv_runtime_next_event(conversation->runtime, rv_clock_boot_ms(), &event)) {
        struct call *call = &conversation->calls[event.place];
        switch (event.kind) {
        case RV_RUNTIME_START:
            call_start(call_read(conversation, event.place));
            break;
        case RV_RUNTIME_CANCEL:
        case RV_RUNTIME_EXPIRED:
            call_cancel(call);
            break;
        case RV_RUNTIME_RENEWED: /* its request has all the time until complete-by already */
            break;
        case RV_RUNTIME_OVER:
            call_over(call);
            break;
        }
    }
}

/* ---- the conversation ---- */

static void lane_ask(struct conversation *conversation, const struct rv_session_call *call)
{
    const struct rv_http_door *door = &conversation->http->options.door;
    struct rv_http_lane *lane = &conversation->lanes[call->lane];
    lane->ask.path = call->path;
    lane->ask.body = call->body;
    enum rv_err err = door->ask(door->self, &lane->ask);
    if (err == RV_OK)
        lane->under_way = true;
    else
        rv_session_lost(conversation->session, call->lane, rv_clock_boot_ms(), rv_err_text(err));
}

static void lane_back(struct rv_http_lane *lane)
{
    struct conversation *conversation = lane->conversation;
    const struct rv_http_door *door = &conversation->http->options.door;
    lane->under_way = false;
    if (!lane->cut) {
        int64_t retry_after_ms = -1;
        struct rv_str body = RV_STR_NONE;
        int status = door->read(door->self, &lane->ask, &retry_after_ms, &body);
        rv_session_answered(conversation->session, lane->lane, rv_clock_boot_ms(), status,
                            retry_after_ms, body);
    }
    door->forget(door->self, &lane->ask, !lane->cut);
}

static void conversation_turn(struct conversation *conversation)
{
    struct rv_session_call call;
    events_run(conversation);
    while (rv_session_next_call(conversation->session, rv_clock_boot_ms(), &call))
        lane_ask(conversation, &call);
}

static void session_said(void *user, enum rv_log_level level, const char *message)
{
    const struct rv_http *http = user;
    http->options.log(level, message);
}

static void conversation_close(struct conversation *conversation)
{
    uint32_t places = conversation->calls != NULL ? rv_session_places(conversation->session) : 0;
    for (rv_place p = 0; p < places; p++)
        call_over(&conversation->calls[p]);
    free(conversation->calls);
    rv_runtime_free(conversation->runtime);
    *conversation = (struct conversation){.http = NULL};
}

static bool conversation_open(struct rv_http *http)
{
    struct conversation *conversation = &http->conversations[http->count];
    char instance[INSTANCE_BYTES + 24];
    snprintf(instance, sizeof instance, "%s.%zu", http->instance, http->count + 1);
    struct rv_runtime_options options = {.session = {.agent = RV_STR("http"),
                                                     .instance = rv_str_of(instance),
                                                     .max = RV_CALL_ITEMS_MAX,
                                                     .wait_ms = RV_WAIT_MS_DEFAULT,
                                                     .log = session_said,
                                                     .log_user = http},
                                         .tries_max = TRIES_MAX,
                                         .leaves = true,
                                         .retry_base_ms = RETRY_BASE_MS,
                                         .retry_cap_ms = RETRY_CAP_MS,
                                         .circuit_failures = CIRCUIT_FAILURES,
                                         .circuit_open_ms = CIRCUIT_OPEN_MS,
                                         .target = target_of,
                                         .user = conversation};
    rv_random_bytes(&options.session.seed, sizeof options.session.seed);
    conversation->http = http;
    conversation->runtime = rv_runtime_new(&options);
    if (conversation->runtime == NULL)
        return false;
    conversation->session = rv_runtime_session(conversation->runtime);
    uint32_t places = rv_session_places(conversation->session);
    conversation->calls = calloc(places, sizeof *conversation->calls);
    if (conversation->calls == NULL) {
        conversation_close(conversation);
        return false;
    }
    for (rv_place p = 0; p < places; p++) {
        struct call *call = &conversation->calls[p];
        call->conversation = conversation;
        call->place = p;
        call->note.call = call;
    }
    for (int l = 0; l < RV_LANE_COUNT; l++) {
        struct rv_http_lane *lane = &conversation->lanes[l];
        *lane = (struct rv_http_lane){.conversation = conversation, .lane = (enum rv_lane)l};
        lane->note.lane = lane;
        lane->ask.lane = lane;
    }
    http->count++;
    return true;
}

/* One more, when the newest is nearly full. Without memory for it those that are there go on. */
static void conversation_add(struct rv_http *http)
{
    const struct conversation *newest = &http->conversations[http->count - 1];
    if (!http->stopping && http->count < RV_HTTP_CONVERSATIONS &&
        rv_session_open(newest->session) >= NEXT_CONVERSATION_AT)
        (void)conversation_open(http);
}

/* ---- the end ---- */

static void stop_begin(struct rv_http *http, int64_t now)
{
    http->stopping = true;
    http->finish_by = now + STOP_FINISH_MS;
    for (size_t i = 0; i < http->count; i++) {
        struct conversation *conversation = &http->conversations[i];
        struct rv_http_lane *poll = &conversation->lanes[RV_LANE_POLL];
        poll->cut = rv_runtime_stop(conversation->runtime, now);
        if (poll->cut && poll->under_way)
            http->options.door.leave(http->options.door.self, &poll->ask);
    }
}

static void calls_cancel(struct rv_http *http)
{
    http->cancelled = true;
    for (size_t i = 0; i < http->count; i++)
        for (rv_place p = 0; p < rv_session_places(http->conversations[i].session); p++)
            call_cancel(&http->conversations[i].calls[p]);
}

/* Nothing of it is with another thread. */
static bool all_back(const struct rv_http *http)
{
    for (size_t i = 0; i < http->count; i++) {
        const struct conversation *conversation = &http->conversations[i];
        for (int l = 0; l < RV_LANE_COUNT; l++)
            if (conversation->lanes[l].under_way)
                return false;
        for (rv_place p = 0; p < rv_session_places(conversation->session); p++)
            if (conversation->calls[p].sent)
                return false;
    }
    return true;
}

static bool all_ended(const struct rv_http *http)
{
    bool ended = true;
    for (size_t i = 0; i < http->count && ended; i++)
        ended = rv_runtime_ended(http->conversations[i].runtime);
    return ended;
}

/* True: the loop ends. Sets until when to wait. */
static bool stop_look(struct rv_http *http, int64_t now, int64_t *until)
{
    if (!http->stopping && atomic_load(&http->stop_asked))
        stop_begin(http, now);
    if (!http->stopping)
        return false;
    if (!http->cancelled && now >= http->finish_by)
        calls_cancel(http);
    int64_t reply_by = http->finish_by + STOP_REPLY_MS;
    *until = !http->cancelled ? http->finish_by : now < reply_by ? reply_by : INT64_MAX;
    return all_back(http) && (all_ended(http) || now >= reply_by);
}

/* ---- the loop ---- */

static void notes_take(struct rv_http *http, int64_t until)
{
    void *items[NOTES_MAX];
    int64_t wait_ms = until - rv_clock_boot_ms();
    wait_ms = wait_ms < 0 ? 0 : wait_ms > SLEEP_MS_MAX ? SLEEP_MS_MAX : wait_ms;
    size_t count = rv_mailbox_take(&http->notes, items, NOTES_MAX, wait_ms);
    for (size_t i = 0; i < count; i++) {
        struct note *note = items[i];
        if (note->lane != NULL)
            lane_back(note->lane);
        else
            call_ended(note->call);
    }
}

void rv_http_run(void *self)
{
    struct rv_http *http = self;
    for (;;) {
        int64_t until = INT64_MAX;
        int64_t stop_until = INT64_MAX;
        conversation_add(http);
        for (size_t i = 0; i < http->count; i++) {
            conversation_turn(&http->conversations[i]);
            int64_t at = rv_runtime_wake_at(http->conversations[i].runtime);
            until = at < until ? at : until;
        }
        if (stop_look(http, rv_clock_boot_ms(), &stop_until))
            break;
        notes_take(http, stop_until < until ? stop_until : until);
    }
}

void rv_http_stop(struct rv_http *http)
{
    atomic_store(&http->stop_asked, true);
    rv_mailbox_wake(&http->notes);
}

/* ---- opening and closing ---- */

enum rv_err rv_http_open(const struct rv_http_options *options, struct rv_http **ret_http)
{
    struct rv_http *http = calloc(1, sizeof *http);
    if (http == NULL)
        return RV_ERR_MEMORY;
    http->options = *options;
    snprintf(http->instance, sizeof http->instance, "%s", options->instance);
    http->options.instance = http->instance;
    rv_mailbox_init(&http->notes, offsetof(struct note, next));
    if (!conversation_open(http)) {
        rv_http_close(http);
        return RV_ERR_MEMORY;
    }
    *ret_http = http;
    return RV_OK;
}

void rv_http_close(struct rv_http *http)
{
    if (http == NULL)
        return;
    for (size_t i = 0; i < http->count; i++)
        conversation_close(&http->conversations[i]);
    rv_mailbox_done(&http->notes);
    free(http);
}

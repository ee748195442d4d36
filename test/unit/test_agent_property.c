/* Random interleavings of an agent, its handlers, a network that loses calls and answers, and a
 * server that keeps the protocol of docs/guide/agents.md, clock and all. Whatever happens:
 * - a token is replied to with one text only, and never again once the server has decided it;
 * - no reply leaves at or after the attempt's true deadline;
 * - handlers at work never exceed max;
 * - the server never takes an answer for lost that the agent has received;
 * - and when the network heals, all steps get done.
 *
 * usage: test_agent_property [SEED [RUNS]] */
#include "agent/runtime.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/prng.h"
#include "json/json.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    STEPS = 40,
    ATTEMPTS_MAX = 4000,
    CALLS_MAX = 4000,
    PLACES_MAX = 32,
    COMPLETE_MS = 900,
    LEASE_MS = 300,
    FAILED_PAUSE_US = 20000,
    STORM_US = 4 * 1000 * 1000, /* then the network heals */
    END_US = 60 * 1000 * 1000
};

static uint64_t seed_first = 20261121;
static unsigned runs = 150;

/* One hand-out, as the server keeps it. */
struct attempt {
    int step;
    int poll; /* that fetched it */
    bool open;
    bool decided;           /* the agent was told the fate of its reply */
    bool taken;             /* the agent received it */
    bool seen;              /* replied to or renewed */
    int64_t complete_by_us; /* true time */
    int64_t lease_until_us;
    uint64_t reply_hash; /* of the text the agent sent; 0: none yet */
};

/* One call on its way. */
struct flight {
    bool busy;
    bool heard; /* the server has acted on it */
    bool parked;
    bool drop_call;
    bool drop_answer;
    bool answered;
    int64_t arrive_us;
    int64_t park_until_us;
    int64_t back_us; /* the answer, or the news of its loss */
    char poll[40];
    struct rv_buf body;
    struct rv_buf answer;
};

struct world {
    uint64_t seed;
    struct rv_prng prng;
    int64_t now_us;    /* true time */
    int64_t offset_us; /* server's clock ahead of the agent's */
    struct rv_runtime *runtime;
    struct rv_session *session;
    struct rv_arena arena;
    struct flight flights[RV_LANE_COUNT];
    struct attempt attempts[ATTEMPTS_MAX];
    int attempt_count;
    char polls[CALLS_MAX][40]; /* ids of fetches heard */
    bool poll_confirmed[CALLS_MAX];
    int poll_count;
    bool step_done[STEPS];
    int64_t step_ready_us[STEPS]; /* not to be handed out before */
    int done_count;
    uint32_t max;
    struct {
        bool running;
        int64_t return_us;
        int attempt;
    } handlers[PLACES_MAX * 2];
    unsigned answers_lost;
    struct rv_session_counts counts; /* at the end */
};

static struct world w;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_msg("seed %" PRIu64 " at %" PRId64 " us: %s", w.seed, w.now_us, #condition);      \
    } while (0)

static int64_t below(int64_t bound)
{
    return (int64_t)rv_prng_below(&w.prng, (uint64_t)bound);
}

static bool chance(int64_t percent)
{
    return below(100) < percent;
}

static bool storm(void)
{
    return w.now_us < STORM_US;
}

static int64_t agent_ms(void)
{
    return w.now_us / 1000;
}

static int64_t server_ms(int64_t at_us)
{
    return (at_us + w.offset_us) / 1000;
}

/* ---- the server ---- */

/* Whether the step could be handed out. */
static bool step_waits(int step)
{
    if (w.step_done[step] || w.now_us < w.step_ready_us[step])
        return false;
    for (int i = 0; i < w.attempt_count; i++)
        if (w.attempts[i].step == step && w.attempts[i].open)
            return false;
    return true;
}

static void attempts_expire(void)
{
    for (int i = 0; i < w.attempt_count; i++) {
        struct attempt *a = &w.attempts[i];
        if (a->open && (w.now_us >= a->complete_by_us || w.now_us >= a->lease_until_us))
            a->open = false;
    }
}

static int poll_index(struct rv_str id)
{
    for (int i = 0; i < w.poll_count; i++)
        if (rv_str_is(id, w.polls[i]))
            return i;
    CHECK(w.poll_count < CALLS_MAX);
    snprintf(w.polls[w.poll_count], sizeof w.polls[0], "%.*s", RV_STR_FMT(id));
    w.poll_confirmed[w.poll_count] = false;
    return w.poll_count++;
}

/* What an earlier answer brought and nobody confirmed was lost: handed out anew. */
static void confirm_read(const struct rv_json *fetch, int poll)
{
    const struct rv_json *confirm = rv_json_get(fetch, RV_STR("confirm"));
    CHECK(confirm != NULL && confirm->type == RV_JSON_ARRAY);
    for (uint32_t i = 0; i < confirm->len; i++)
        w.poll_confirmed[poll_index(rv_json_str(&confirm->u.items[i]))] = true;
    for (int i = 0; i < w.attempt_count; i++) {
        struct attempt *a = &w.attempts[i];
        if (!a->open || a->poll == poll || w.poll_confirmed[a->poll] || a->seen)
            continue;
        CHECK(!a->taken);
        a->open = false;
    }
}

static int attempt_new(int step, int poll)
{
    CHECK(w.attempt_count < ATTEMPTS_MAX);
    w.attempts[w.attempt_count] = (struct attempt){.step = step, .poll = poll, .open = true};
    struct attempt *a = &w.attempts[w.attempt_count];
    /* Both ends lie on whole milliseconds of the server's clock, as in the store. */
    int64_t now_ms = server_ms(w.now_us);
    a->complete_by_us = (now_ms + COMPLETE_MS) * 1000 - w.offset_us;
    a->lease_until_us = (now_ms + LEASE_MS) * 1000 - w.offset_us;
    return w.attempt_count++;
}

static int64_t left_ms(int64_t until_us)
{
    return (until_us + w.offset_us) / 1000 - server_ms(w.now_us);
}

static void request_write(struct rv_buf *out, int i, const char *between)
{
    const struct attempt *a = &w.attempts[i];
    rv_buf_printf(out,
                  "%s{\"step\":\"S-%d\",\"token\":\"%d\",\"attempt\":1,\"fence\":%d,"
                  "\"remainingMs\":%" PRId64 ",\"leaseMs\":%" PRId64 ",\"input\":{\"n\":%d}}",
                  between, a->step, i, i, left_ms(a->complete_by_us), left_ms(a->lease_until_us),
                  a->step);
}

static bool fetch_has(int poll)
{
    for (int i = 0; i < w.attempt_count; i++)
        if (w.attempts[i].open && w.attempts[i].poll == poll)
            return true;
    for (int step = 0; step < STEPS; step++)
        if (step_waits(step))
            return true;
    return false;
}

/* The same poll gets the same open attempts again; a new one as many as it asks for. */
static void fetch_write(struct rv_buf *out, int poll, int64_t max)
{
    int64_t given = 0;
    rv_buf_printf(out, "\"serverTime\":%" PRId64 ",\"requests\":[", server_ms(w.now_us));
    for (int i = 0; i < w.attempt_count; i++)
        if (w.attempts[i].open && w.attempts[i].poll == poll)
            request_write(out, i, given++ ? "," : "");
    for (int step = 0; step < STEPS && given < max; step++)
        if (step_waits(step))
            request_write(out, attempt_new(step, poll), given++ ? "," : "");
    /* A server that repeats itself: the agent has these already. */
    for (int i = 0; i < w.attempt_count && storm() && chance(50); i++)
        if (w.attempts[i].taken && w.attempts[i].open && w.attempts[i].poll != poll && chance(10))
            request_write(out, i, given++ ? "," : "");
    rv_buf_lit(out, "],\"cancel\":[");
    if (w.attempt_count > 0 && chance(5))
        rv_buf_printf(out, "{\"step\":\"S-0\",\"token\":\"%d\"}", w.attempt_count - 1);
    rv_buf_lit(out, "]");
}

static int token_index(const struct rv_json *item)
{
    struct rv_str token = rv_json_str(rv_json_get(item, RV_STR("token")));
    int i = 0;
    for (size_t n = 0; n < token.len; n++)
        i = i * 10 + (token.at[n] - '0');
    CHECK(token.len > 0 && i < w.attempt_count);
    return i;
}

static void replies_hear(const struct rv_json *body, struct rv_buf *out)
{
    const struct rv_json *replies = rv_json_get(body, RV_STR("replies"));
    rv_buf_lit(out, "{\"results\":[");
    for (uint32_t i = 0; i < replies->len; i++) {
        struct attempt *a = &w.attempts[token_index(&replies->u.items[i])];
        bool failed = rv_json_get(&replies->u.items[i], RV_STR("error")) != NULL;
        int status = a->open ? 200 : 410;
        a->seen = true;
        if (a->open && !failed) {
            w.step_done[a->step] = true;
            w.done_count++;
        }
        if (failed)
            w.step_ready_us[a->step] = w.now_us + FAILED_PAUSE_US;
        a->open = false;
        rv_buf_printf(out, "%s{\"step\":\"S-%d\",\"status\":%d}", i ? "," : "", a->step, status);
    }
    rv_buf_lit(out, "]");
}

static void leases_hear(const struct rv_json *body, struct rv_buf *out)
{
    const struct rv_json *leases = rv_json_get(body, RV_STR("leases"));
    rv_buf_lit(out, "{\"results\":[");
    for (uint32_t i = 0; i < leases->len; i++) {
        struct attempt *a = &w.attempts[token_index(&leases->u.items[i])];
        if (a->open) {
            a->seen = true;
            a->lease_until_us = (server_ms(w.now_us) + LEASE_MS) * 1000 - w.offset_us;
        }
        rv_buf_printf(out,
                      "%s{\"step\":\"S-%d\",\"status\":%d,\"leaseMs\":%" PRId64
                      ",\"remainingMs\":%" PRId64 ",\"cancel\":false}",
                      i ? "," : "", a->step, a->open ? 200 : 410, left_ms(a->lease_until_us),
                      left_ms(a->complete_by_us));
    }
    rv_buf_lit(out, "]}");
}

static int64_t int_of(const struct rv_json *object, const char *name)
{
    int64_t number = 0;
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    CHECK(value != NULL && rv_json_int(value, &number));
    return number;
}

static void flight_answer(struct flight *flight)
{
    flight->parked = false;
    flight->answered = true;
    flight->back_us = w.now_us + below(storm() && chance(20) ? 100000 : 3000);
}

static void flight_hear(struct flight *flight, enum rv_lane lane)
{
    struct rv_json body;
    rv_arena_reset(&w.arena);
    CHECK(rv_json_parse(&w.arena, rv_buf_str(&flight->body), 64, &body, NULL) == RV_OK);
    flight->heard = true;
    rv_buf_reset(&flight->answer);
    if (lane == RV_LANE_LEASE) {
        leases_hear(&body, &flight->answer);
        flight_answer(flight);
        return;
    }
    const struct rv_json *fetch = &body;
    if (lane == RV_LANE_REPLY) {
        replies_hear(&body, &flight->answer);
        fetch = rv_json_get(&body, RV_STR("next"));
    } else {
        rv_buf_lit(&flight->answer, "{");
    }
    if (fetch == NULL) {
        rv_buf_lit(&flight->answer, "}");
        flight_answer(flight);
        return;
    }
    int poll = poll_index(rv_json_str(rv_json_get(fetch, RV_STR("poll"))));
    CHECK(int_of(fetch, "max") >= 1 && int_of(fetch, "max") <= w.max);
    confirm_read(fetch, poll);
    int64_t wait_ms = lane == RV_LANE_POLL ? int_of(fetch, "waitMs") : 0;
    if (wait_ms > 0 && !fetch_has(poll)) {
        flight->parked = true;
        flight->park_until_us = w.now_us + wait_ms * 1000;
        snprintf(flight->poll, sizeof flight->poll, "%s", w.polls[poll]);
        return;
    }
    if (lane == RV_LANE_REPLY)
        rv_buf_lit(&flight->answer, ",");
    fetch_write(&flight->answer, poll, int_of(fetch, "max"));
    rv_buf_lit(&flight->answer, "}");
    flight_answer(flight);
}

static void flight_unpark(struct flight *flight)
{
    int poll = poll_index(rv_str_of(flight->poll));
    if (w.now_us < flight->park_until_us && !fetch_has(poll))
        return;
    fetch_write(&flight->answer, poll, 1);
    rv_buf_lit(&flight->answer, "}");
    flight_answer(flight);
}

/* ---- the agent's side of the wire ---- */

static uint64_t text_hash(const struct rv_json *item)
{
    struct rv_buf text;
    rv_buf_init(&text, 1 << 16);
    rv_json_write(&text, item);
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.at[i]) * 1099511628211u;
    rv_buf_done(&text);
    return hash;
}

/* The promises, checked on every reply that leaves. */
static void replies_check(const struct rv_json *body)
{
    const struct rv_json *replies = rv_json_get(body, RV_STR("replies"));
    for (uint32_t i = 0; i < replies->len; i++) {
        struct attempt *a = &w.attempts[token_index(&replies->u.items[i])];
        uint64_t hash = text_hash(&replies->u.items[i]);
        CHECK(a->taken);
        CHECK(!a->decided);
        CHECK(a->reply_hash == 0 || a->reply_hash == hash);
        CHECK(w.now_us < a->complete_by_us);
        CHECK(w.now_us < a->lease_until_us);
        a->reply_hash = hash;
    }
}

static void call_send(const struct rv_session_call *call)
{
    struct flight *flight = &w.flights[call->lane];
    CHECK(!flight->busy);
    struct rv_buf body = flight->body;
    struct rv_buf answer = flight->answer;
    *flight = (struct flight){.busy = true, .body = body, .answer = answer};
    rv_buf_reset(&flight->body);
    rv_buf_add_str(&flight->body, call->body);
    flight->drop_call = storm() && chance(10);
    flight->drop_answer = storm() && chance(10);
    flight->arrive_us = w.now_us + below(storm() && chance(20) ? 100000 : 3000);
    flight->back_us = flight->arrive_us + below(150000);
    if (call->lane == RV_LANE_REPLY) {
        struct rv_json json;
        rv_arena_reset(&w.arena);
        CHECK(rv_json_parse(&w.arena, call->body, 64, &json, NULL) == RV_OK);
        replies_check(&json);
    }
}

/* Marks what this answer brings to the agent. */
static void answer_note(const struct flight *flight)
{
    struct rv_json answer;
    rv_arena_reset(&w.arena);
    CHECK(rv_json_parse(&w.arena, rv_buf_str(&flight->answer), 64, &answer, NULL) == RV_OK);
    const struct rv_json *requests = rv_json_get(&answer, RV_STR("requests"));
    for (uint32_t i = 0; requests != NULL && i < requests->len; i++)
        w.attempts[token_index(&requests->u.items[i])].taken = true;
}

static void decided_note(const struct flight *flight)
{
    struct rv_json body;
    rv_arena_reset(&w.arena);
    CHECK(rv_json_parse(&w.arena, rv_buf_str(&flight->body), 64, &body, NULL) == RV_OK);
    const struct rv_json *replies = rv_json_get(&body, RV_STR("replies"));
    for (uint32_t i = 0; replies != NULL && i < replies->len; i++)
        w.attempts[token_index(&replies->u.items[i])].decided = true;
}

static void flight_run(enum rv_lane lane)
{
    struct flight *flight = &w.flights[lane];
    if (!flight->busy)
        return;
    if (!flight->heard && !flight->drop_call && w.now_us >= flight->arrive_us)
        flight_hear(flight, lane);
    if (flight->parked && !flight->drop_answer)
        flight_unpark(flight);
    bool lost = flight->drop_call || flight->drop_answer;
    if (w.now_us < flight->back_us || (!lost && !flight->answered))
        return;
    flight->busy = false;
    if (lost) {
        w.answers_lost += flight->answered;
        rv_session_lost(w.session, lane, agent_ms(), "cut");
    } else if (storm() && chance(3)) {
        rv_session_answered(w.session, lane, agent_ms(), 503, -1, RV_STR("busy"));
    } else {
        answer_note(flight);
        decided_note(flight);
        rv_session_answered(w.session, lane, agent_ms(), 200, -1, rv_buf_str(&flight->answer));
    }
}

/* ---- handlers ---- */

static void handler_start(const struct rv_runtime_event *event)
{
    CHECK(!w.handlers[event->place].running);
    w.handlers[event->place].running = true;
    /* Most are quick, some hang past every deadline. */
    int64_t span = chance(10) ? 2000000 : chance(30) ? 500000 : 5000;
    w.handlers[event->place].return_us = w.now_us + below(storm() ? span : 5000);
    /* And some return in the very last moment. */
    int64_t stop_at = rv_held_stop_at(rv_session_attempt(w.session, event->place));
    if (storm() && chance(25))
        w.handlers[event->place].return_us = stop_at * 1000 - below(2000);
}

static void handler_return(rv_place place)
{
    w.handlers[place].running = false;
    if (chance(storm() ? 70 : 95)) {
        char output[40];
        snprintf(output, sizeof output, "{\"at\":%" PRId64 "}", w.now_us);
        rv_runtime_done(w.runtime, place, agent_ms(), rv_str_of(output));
        return;
    }
    struct rv_runtime_failure failure = {.type = RV_STR("busy"),
                                         .transient = chance(80),
                                         .retry_after_ms = chance(20) ? below(400) : 0};
    rv_runtime_failed(w.runtime, place, agent_ms(), &failure);
}

static void handlers_run(void)
{
    uint32_t running = 0;
    for (rv_place i = 0; i < w.max * 2; i++) {
        if (w.handlers[i].running && w.now_us >= w.handlers[i].return_us)
            handler_return(i);
        running += w.handlers[i].running;
    }
    CHECK(running == rv_runtime_running(w.runtime));
    struct rv_runtime_event event;
    while (rv_runtime_next_event(w.runtime, agent_ms(), &event)) {
        if (event.kind == RV_RUNTIME_START) {
            handler_start(&event);
            running++;
        }
        CHECK(running <= w.max);
    }
}

/* ---- one run ---- */

static void world_begin(uint64_t seed)
{
    struct rv_buf keep[RV_LANE_COUNT][2];
    for (int i = 0; i < RV_LANE_COUNT; i++) {
        rv_buf_init(&keep[i][0], 1 << 24);
        rv_buf_init(&keep[i][1], 1 << 24);
    }
    w = (struct world){.seed = seed, .now_us = 1000000};
    for (int i = 0; i < RV_LANE_COUNT; i++) {
        w.flights[i].body = keep[i][0];
        w.flights[i].answer = keep[i][1];
    }
    rv_prng_init(&w.prng, seed);
    rv_arena_init(&w.arena, 0);
    w.offset_us = 1000000000 + below(1000000);
    w.max = 1 + (uint32_t)below(PLACES_MAX);
    struct rv_runtime_options options = {.session = {.agent = RV_STR("a"),
                                                     .instance = RV_STR("i"),
                                                     .seed = seed,
                                                     .max = w.max,
                                                     .wait_ms = 2000},
                                         .tries_max = 3,
                                         .retry_base_ms = 50,
                                         .retry_cap_ms = 2000,
                                         .circuit_failures = 5,
                                         .circuit_open_ms = 200};
    w.runtime = rv_runtime_new(&options);
    CHECK(w.runtime != NULL);
    w.session = rv_runtime_session(w.runtime);
}

static void world_end(void)
{
    w.counts = *rv_session_counts(w.session);
    rv_runtime_free(w.runtime);
    rv_arena_done(&w.arena);
    for (int i = 0; i < RV_LANE_COUNT; i++) {
        rv_buf_done(&w.flights[i].body);
        rv_buf_done(&w.flights[i].answer);
    }
}

static void world_run(uint64_t seed)
{
    world_begin(seed);
    while (w.done_count < STEPS || storm()) {
        w.now_us += 1 + below(chance(95) ? 600 : 20000);
        CHECK(w.now_us < END_US);
        attempts_expire();
        for (enum rv_lane lane = RV_LANE_POLL; lane <= RV_LANE_LEASE; lane++)
            flight_run(lane);
        handlers_run();
        struct rv_session_call call;
        while (rv_session_next_call(w.session, agent_ms(), &call))
            call_send(&call);
        if (w.done_count == STEPS && storm()) {
            /* More of the same while the storm lasts. */
            memset(w.step_done, 0, sizeof w.step_done);
            w.done_count = 0;
        }
    }
    world_end();
}

static void promises_hold_in_every_interleaving(void **state)
{
    (void)state;
    uint64_t replied = 0;
    uint64_t late = 0;
    uint64_t lost = 0;
    for (unsigned i = 0; i < runs; i++) {
        world_run(seed_first + i);
        replied += w.counts.replied;
        late += w.counts.late_dropped;
        lost += w.answers_lost;
    }
    print_message("# %u runs: %" PRIu64 " replies, %" PRIu64 " late ones kept back, %" PRIu64
                  " answers lost\n",
                  runs, replied, late, lost);
    /* A storm that breaks nothing proves nothing. */
    assert_true(replied > 0 && late > 0 && lost > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        seed_first = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        runs = (unsigned)strtoul(argv[2], NULL, 10);
    printf("# seeds %" PRIu64 " to %" PRIu64 "\n", seed_first, seed_first + runs - 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_hold_in_every_interleaving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

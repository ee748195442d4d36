/* The agent's conversation with the server: time in, bytes out. */
#include "base/arena.h"
#include "base/time.h"
#include "client/jitter.h"
#include "client/session.h"
#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MAX = 4, WAIT_MS = 20000 };

/* A session, the call it made last, and that call's body as JSON. */
struct fixture {
    struct rv_session *session;
    struct rv_arena arena;
    struct rv_session_call call;
    struct rv_json body;
    char log[2048];
};

static void log_keep(void *user, enum rv_log_level level, const char *message)
{
    (void)level;
    struct fixture *f = user;
    snprintf(f->log, sizeof f->log, "%s", message);
}

static int fixture_open_renewing(void **state, int64_t renew_ms)
{
    static struct fixture f;
    f = (struct fixture){.session = NULL};
    rv_arena_init(&f.arena, 0);
    struct rv_session_options options = {.agent = RV_STR("inven tory"),
                                         .instance = RV_STR("a7"),
                                         .server = RV_STR("http://a:1"),
                                         .seed = 7,
                                         .max = MAX,
                                         .wait_ms = WAIT_MS,
                                         .renew_ms = renew_ms,
                                         .log = log_keep,
                                         .log_user = &f};
    f.session = rv_session_new(&options);
    *state = &f;
    return f.session == NULL;
}

static int fixture_open(void **state)
{
    return fixture_open_renewing(state, 0);
}

static int fixture_open_listening(void **state)
{
    return fixture_open_renewing(state, 1000);
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    rv_session_free(f->session);
    rv_arena_done(&f->arena);
    return 0;
}

static bool call_take(struct fixture *f, int64_t now)
{
    if (!rv_session_next_call(f->session, now, &f->call))
        return false;
    assert_int_equal(
        rv_json_parse(&f->arena, rv_arena_str(&f->arena, f->call.body), 64, &f->body, NULL), RV_OK);
    return true;
}

static void call_expect(struct fixture *f, int64_t now, enum rv_lane lane)
{
    assert_true(call_take(f, now));
    assert_int_equal(f->call.lane, lane);
}

static const char *text_at(struct fixture *f, const char *pointer)
{
    struct rv_str text = rv_json_str(rv_json_at(&f->body, rv_str_of(pointer)));
    return text.at ? rv_arena_str(&f->arena, text).at : "(absent)";
}

static int64_t number_at(struct fixture *f, const char *pointer)
{
    int64_t number = -1;
    const struct rv_json *value = rv_json_at(&f->body, rv_str_of(pointer));
    if (value != NULL && !rv_json_int(value, &number))
        fail_msg("%s is no integer", pointer);
    return number;
}

static bool has(struct fixture *f, const char *pointer)
{
    return rv_json_at(&f->body, rv_str_of(pointer)) != NULL;
}

static void answer(struct fixture *f, enum rv_lane lane, int64_t now, const char *text)
{
    rv_session_answered(f->session, lane, now, 200, -1, rv_str_of(text));
}

/* The greeting that does not park, answered with nothing at once: both clocks are equal. */
static void greet(struct fixture *f, int64_t now)
{
    call_expect(f, now, RV_LANE_POLL);
    char text[100];
    snprintf(text, sizeof text, "{\"serverTime\":%lld,\"requests\":[],\"cancel\":[]}",
             (long long)now);
    answer(f, RV_LANE_POLL, now, text);
}

#define REQUEST(step, token, remaining, lease)                                                     \
    "{\"step\":\"" step "\",\"task\":\"T\",\"reference\":\"/do/0/reserve\",\"attempt\":2,"         \
    "\"token\":\"" token "\",\"fence\":17,\"idempotencyKey\":\"K\","                               \
    "\"completeBy\":\"2026-11-21T01:30:00.000Z\",\"remainingMs\":" remaining ",\"leaseMs\":" lease \
    ",\"input\":{\"sku\":\"x\",\"n\":10000000000000000001}}"
#define ANSWER(items) "{\"results\":[],\"requests\":[" items "],\"cancel\":[]}"

static rv_place news_expect(struct fixture *f, int64_t now, unsigned expected)
{
    rv_place place;
    unsigned news;
    assert_true(rv_session_next_news(f->session, now, &place, &news));
    assert_int_equal(news, expected);
    return place;
}

static void no_news(struct fixture *f, int64_t now)
{
    rv_place place;
    unsigned news;
    assert_false(rv_session_next_news(f->session, now, &place, &news));
}

/* One request in hand at `now`, complete-by 1000 ms later. */
static rv_place take_one(struct fixture *f, int64_t now)
{
    greet(f, now);
    call_expect(f, now, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, now, ANSWER(REQUEST("S-1", "t1", "1000", "1000")));
    return news_expect(f, now, RV_NEWS_REQUEST);
}

static void first_poll_does_not_park_and_the_next_does(void **state)
{
    struct fixture *f = *state;
    call_expect(f, 0, RV_LANE_POLL);
    assert_true(rv_str_is(f->call.path, "/v1/agents/inven%20tory/requests"));
    assert_string_equal(text_at(f, "/instance"), "a7");
    assert_int_equal(number_at(f, "/max"), MAX);
    assert_int_equal(number_at(f, "/waitMs"), 0);
    assert_true(has(f, "/confirm"));
    assert_false(has(f, "/confirm/0"));
    const char *boot = text_at(f, "/boot");
    const char *poll = text_at(f, "/poll");
    assert_int_equal(strlen(boot), 16);
    assert_false(call_take(f, 0));
    answer(f, RV_LANE_POLL, 3, ANSWER(""));
    call_expect(f, 3, RV_LANE_POLL);
    assert_int_equal(number_at(f, "/waitMs"), WAIT_MS);
    assert_true(f->call.timeout_ms > WAIT_MS);
    assert_string_equal(text_at(f, "/boot"), boot);
    assert_string_equal(text_at(f, "/confirm/0"), poll);
    assert_string_not_equal(text_at(f, "/poll"), poll);
}

static void a_request_is_handed_over_whole(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    const struct rv_held_attempt *attempt = rv_session_attempt(f->session, place);
    assert_true(rv_str_is(attempt->step, "S-1"));
    assert_true(rv_str_is(attempt->token, "t1"));
    assert_true(rv_str_is(attempt->key, "K"));
    assert_true(rv_str_is(attempt->reference, "/do/0/reserve"));
    assert_true(rv_str_is(attempt->complete_by, "2026-11-21T01:30:00.000Z"));
    assert_true(rv_str_is(attempt->input, "{\"sku\":\"x\",\"n\":10000000000000000001}"));
    assert_int_equal(attempt->number, 2);
    assert_int_equal(attempt->fence, 17);
    assert_int_equal(rv_held_stop_at(attempt), 1099);
}

static void a_reply_leaves_at_once_and_fetches_on_the_way(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    const char *poll = text_at(f, "/poll");
    assert_false(call_take(f, 100)); /* lingers for the reply */
    rv_session_done(f->session, place, 101, RV_STR("{\"ok\":true}"));
    call_expect(f, 101, RV_LANE_REPLY);
    assert_true(rv_str_is(f->call.path, "/v1/replies"));
    assert_string_equal(text_at(f, "/replies/0/step"), "S-1");
    assert_string_equal(text_at(f, "/replies/0/token"), "t1");
    assert_true(has(f, "/replies/0/output/ok"));
    assert_string_equal(text_at(f, "/next/agent"), "inven tory");
    assert_string_equal(text_at(f, "/next/confirm/0"), poll);
    assert_int_equal(number_at(f, "/next/max"), MAX);
    assert_false(call_take(f, 5000)); /* one fetch at a time */
    answer(f, RV_LANE_REPLY, 5000,
           "{\"results\":[{\"step\":\"S-1\",\"status\":200}],\"requests\":[" REQUEST(
               "S-2", "t2", "9000", "9000") "]}");
    assert_int_equal(rv_session_counts(f->session)->replied, 1);
    news_expect(f, 5000, RV_NEWS_REQUEST);
    no_news(f, 5000);
}

static void a_poll_parks_while_a_slow_handler_works(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    assert_int_equal(rv_session_wake_at(f->session), 102);
    call_expect(f, 102, RV_LANE_POLL);
    assert_int_equal(number_at(f, "/max"), MAX - 1);
    rv_session_done(f->session, place, 200, RV_STR("1"));
    call_expect(f, 200, RV_LANE_REPLY);
    assert_false(has(f, "/next")); /* the poll is under way */
}

static void no_poll_without_room(void **state)
{
    struct fixture *f = *state;
    greet(f, 0);
    call_expect(f, 0, RV_LANE_POLL);
    answer(
        f, RV_LANE_POLL, 0,
        ANSWER(
            REQUEST("S-1", "a", "9000", "9000") "," REQUEST("S-2", "b", "9000", "9000") "," REQUEST(
                "S-3", "c", "9000", "9000") "," REQUEST("S-4", "d", "9000",
                                                        "9000") "," REQUEST("S-5", "e", "9000",
                                                                            "9000")));
    assert_int_equal(rv_session_open(f->session), MAX); /* the fifth was not asked for */
    assert_non_null(strstr(f->log, "5 requests; the maximum was 4"));
    assert_false(call_take(f, 5000));
    assert_int_equal(rv_session_wake_at(f->session), 8999);
}

static void a_lost_poll_is_repeated_with_its_id(void **state)
{
    struct fixture *f = *state;
    call_expect(f, 0, RV_LANE_POLL);
    const char *poll = text_at(f, "/poll");
    int64_t now = 0;
    for (int i = 0; i < 20; i++) {
        rv_session_lost(f->session, RV_LANE_POLL, now, "cut");
        int64_t at = rv_session_wake_at(f->session);
        assert_in_range(at - now, 0, 2000);
        if (at > now)
            assert_false(call_take(f, at - 1));
        now = at;
        call_expect(f, now, RV_LANE_POLL);
        assert_string_equal(text_at(f, "/poll"), poll);
    }
    assert_int_equal(rv_session_counts(f->session)->calls_failed, 20);
}

static void a_lost_reply_is_repeated_until_the_deadline_and_not_after(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_fail(f->session, place, 150,
                    &(struct rv_session_error){.type = RV_STR("busy"),
                                               .transient = true,
                                               .effect_unknown = true,
                                               .retry_after_ms = 500,
                                               .status = 503,
                                               .target = RV_STR("pay")});
    call_expect(f, 150, RV_LANE_REPLY);
    const char *poll = text_at(f, "/next/poll");
    rv_session_lost(f->session, RV_LANE_REPLY, 300, "cut");
    call_expect(f, 600, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/error/type"), "busy");
    assert_string_equal(text_at(f, "/replies/0/error/effect"), "unknown");
    assert_string_equal(text_at(f, "/replies/0/error/target"), "pay");
    assert_int_equal(number_at(f, "/replies/0/error/retryAfterMs"), 500);
    assert_int_equal(number_at(f, "/replies/0/error/status"), 503);
    assert_string_equal(text_at(f, "/next/poll"), poll);
    rv_session_lost(f->session, RV_LANE_REPLY, 1100, "cut");
    call_expect(f, 5000, RV_LANE_POLL); /* the fetch goes on alone, with its id */
    assert_string_equal(text_at(f, "/poll"), poll);
    assert_false(call_take(f, 5000));
    assert_int_equal(rv_session_counts(f->session)->late_dropped, 1);
}

static void after_the_deadline_there_is_silence(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    call_expect(f, 102, RV_LANE_POLL);
    no_news(f, 1098);
    assert_int_equal(news_expect(f, 1099, RV_NEWS_EXPIRED), place);
    rv_session_done(f->session, place, 1099, RV_STR("1"));
    assert_false(call_take(f, 1100));
    assert_int_equal(rv_session_counts(f->session)->late_dropped, 1);
    assert_int_equal(rv_session_open(f->session), 0);
}

static void an_answer_at_the_deadline_is_late_even_before_the_timer_ran(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_done(f->session, place, 1099, RV_STR("1"));
    assert_int_equal(rv_session_counts(f->session)->late_dropped, 1);
    call_expect(f, 1100, RV_LANE_POLL);
}

static void a_request_that_comes_again_is_known(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    call_expect(f, 102, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 103, ANSWER(REQUEST("S-1", "t1", "1000", "1000")));
    no_news(f, 103);
    rv_session_done(f->session, place, 104, RV_STR("1"));
    call_expect(f, 104, RV_LANE_REPLY);
    answer(f, RV_LANE_REPLY, 105,
           "{\"results\":[{\"step\":\"S-1\",\"status\":410}],\"requests\":[" REQUEST(
               "S-1", "t1", "1000", "1000") "]}");
    no_news(f, 105);
    assert_int_equal(rv_session_counts(f->session)->duplicates, 2);
    assert_int_equal(rv_session_counts(f->session)->refused, 1);
}

static void cancel_reaches_the_attempt_it_names(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    call_expect(f, 102, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 103,
           "{\"requests\":[],\"cancel\":[{\"step\":\"S-1\",\"token\":\"t1\"},"
           "{\"step\":\"S-9\",\"token\":\"t9\"}]}");
    assert_int_equal(news_expect(f, 103, RV_NEWS_CANCEL), place);
    no_news(f, 103);
}

static void a_lease_is_renewed_at_a_third(void **state)
{
    struct fixture *f = *state;
    greet(f, 0);
    call_expect(f, 0, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 0, ANSWER(REQUEST("S-1", "t1", "60000", "9000")));
    rv_place place = news_expect(f, 0, RV_NEWS_REQUEST);
    const struct rv_held_attempt *attempt = rv_session_attempt(f->session, place);
    assert_int_equal(rv_held_stop_at(attempt), 8999);
    call_expect(f, 2, RV_LANE_POLL);
    assert_int_equal(rv_session_wake_at(f->session), 2999);
    assert_false(call_take(f, 2998));
    call_expect(f, 3000, RV_LANE_LEASE);
    assert_true(rv_str_is(f->call.path, "/v1/leases"));
    assert_string_equal(text_at(f, "/leases/0/token"), "t1");
    answer(f, RV_LANE_LEASE, 3050,
           "{\"results\":[{\"step\":\"S-1\",\"leaseMs\":9000,"
           "\"remainingMs\":57000,\"cancel\":true}]}");
    assert_int_equal(news_expect(f, 3050, RV_NEWS_CANCEL | RV_NEWS_RENEWED), place);
    assert_int_equal(rv_held_stop_at(attempt), 11999); /* from when the renewal was sent */
    assert_int_equal(rv_session_wake_at(f->session), 5999);
    call_expect(f, 6000, RV_LANE_LEASE);
    rv_session_lost(f->session, RV_LANE_LEASE, 7000, "cut");
    call_expect(f, 9000, RV_LANE_LEASE);
    answer(f, RV_LANE_LEASE, 9001, "{\"results\":[{\"step\":\"S-1\",\"status\":410}]}");
    news_expect(f, 9001, RV_NEWS_EXPIRED);
    assert_non_null(strstr(f->log, "failed: the server ended the attempt before its deadline"));
    assert_non_null(strstr(f->log, "--instance"));
}

/* The answer to a renewal comes when the attempt is answered already: its reply, should it be lost,
 * may be sent again for longer. */
static void a_renewal_counts_for_a_reply_on_its_way(void **state)
{
    struct fixture *f = *state;
    greet(f, 0);
    call_expect(f, 0, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 0, ANSWER(REQUEST("S-1", "t1", "60000", "9000")));
    rv_place place = news_expect(f, 0, RV_NEWS_REQUEST);
    call_expect(f, 3000, RV_LANE_LEASE);
    rv_session_done(f->session, place, 3001, RV_STR("1"));
    call_expect(f, 3001, RV_LANE_REPLY);
    answer(f, RV_LANE_LEASE, 3050,
           "{\"results\":[{\"step\":\"S-1\",\"leaseMs\":9000,\"remainingMs\":57000}]}");
    no_news(f, 3050);
    rv_session_lost(f->session, RV_LANE_REPLY, 3100, "cut");
    call_expect(f, 9500, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/token"), "t1");
    rv_session_lost(f->session, RV_LANE_REPLY, 9600, "cut");
    call_expect(f, 13000, RV_LANE_POLL); /* but not for ever */
    assert_int_equal(rv_session_counts(f->session)->late_dropped, 1);
}

/* Long and short leases alike, and those that last until complete-by. */
static void leases_are_renewed_as_often_as_the_session_wants_to_hear(void **state)
{
    struct fixture *f = *state;
    greet(f, 0);
    call_expect(f, 0, RV_LANE_POLL);
    answer(
        f, RV_LANE_POLL, 0,
        ANSWER(REQUEST("S-1", "t1", "60000", "60000") "," REQUEST("S-2", "t2", "60000", "9000")));
    rv_place first = news_expect(f, 0, RV_NEWS_REQUEST);
    news_expect(f, 0, RV_NEWS_REQUEST);
    call_expect(f, 2, RV_LANE_POLL);
    assert_false(call_take(f, 998));
    for (int64_t now = 1000; now <= 3000; now += 1000) {
        call_expect(f, now, RV_LANE_LEASE);
        assert_true(has(f, "/leases/1"));
        answer(f, RV_LANE_LEASE, now,
               "{\"results\":[{\"step\":\"S-1\",\"leaseMs\":50000,\"remainingMs\":50000},"
               "{\"step\":\"S-2\",\"leaseMs\":9000,\"remainingMs\":50000}]}");
        news_expect(f, now, RV_NEWS_RENEWED);
        news_expect(f, now, RV_NEWS_RENEWED);
        assert_int_equal(rv_session_wake_at(f->session), now + 999);
    }
    call_expect(f, 4000, RV_LANE_LEASE);
    answer(f, RV_LANE_LEASE, 4000,
           "{\"results\":[{\"step\":\"S-1\",\"leaseMs\":40000,\"remainingMs\":40000,"
           "\"cancel\":true},{\"step\":\"S-2\",\"leaseMs\":9000,\"remainingMs\":40000}]}");
    assert_int_equal(news_expect(f, 4000, RV_NEWS_CANCEL | RV_NEWS_RENEWED), first);
}

static void the_deadline_counts_from_the_clock_offset_seen_so_far(void **state)
{
    struct fixture *f = *state;
    /* The server's clock is 1,000,000 ahead; the greeting took 4 ms in all. */
    call_expect(f, 1000, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 1004, "{\"serverTime\":1001002,\"requests\":[]}");
    call_expect(f, 1004, RV_LANE_POLL);
    /* Parked for 15 s: written at 16,004 by our clock, there 2 ms later. */
    answer(f, RV_LANE_POLL, 16006,
           "{\"serverTime\":1016004,\"requests\":[" REQUEST("S-1", "t1", "5000", "5000") "]}");
    rv_place place = news_expect(f, 16006, RV_NEWS_REQUEST);
    int64_t stop_at = rv_held_stop_at(rv_session_attempt(f->session, place));
    assert_in_range(stop_at, 16004 + 5000 - 20, 16004 + 5000);
}

static void a_clock_that_was_set_forward_is_not_believed(void **state)
{
    struct fixture *f = *state;
    greet(f, 1000);
    call_expect(f, 1000, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 2000,
           "{\"serverTime\":999000,\"requests\":[" REQUEST("S-1", "t1", "5000", "5000") "]}");
    rv_place place = news_expect(f, 2000, RV_NEWS_REQUEST);
    assert_int_equal(rv_held_stop_at(rv_session_attempt(f->session, place)), 5999);
}

/* By what is known then, each parked poll brings requests that are over: nothing would be done. */
static void a_clock_that_was_set_forward_is_asked_again(void **state)
{
    struct fixture *f = *state;
    greet(f, 0);
    call_expect(f, 0, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 9000,
           "{\"serverTime\":1009000,\"requests\":[" REQUEST("S-1", "t1", "2000", "2000") "]}");
    rv_place over = news_expect(f, 9000, RV_NEWS_REQUEST | RV_NEWS_EXPIRED);
    rv_session_drop(f->session, over);
    call_expect(f, 9005, RV_LANE_POLL);
    assert_int_equal(number_at(f, "/waitMs"), 0);
    answer(f, RV_LANE_POLL, 9007, "{\"serverTime\":1009006,\"requests\":[]}");
    call_expect(f, 9012, RV_LANE_POLL);
    assert_int_equal(number_at(f, "/waitMs"), WAIT_MS);
    answer(f, RV_LANE_POLL, 20000,
           "{\"serverTime\":1019999,\"requests\":[" REQUEST("S-2", "t2", "2000", "2000") "]}");
    rv_place place = news_expect(f, 20000, RV_NEWS_REQUEST);
    assert_in_range(rv_held_stop_at(rv_session_attempt(f->session, place)), 21900, 21999);
}

static void retry_after_is_honoured(void **state)
{
    struct fixture *f = *state;
    call_expect(f, 0, RV_LANE_POLL);
    rv_session_answered(f->session, RV_LANE_POLL, 0, 503, 3000, RV_STR(""));
    assert_in_range(rv_session_wake_at(f->session), 3000, 3100);
    assert_false(call_take(f, 2999));
    call_expect(f, 3100, RV_LANE_POLL);
}

static void an_absurd_pause_is_a_long_one(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_fail(f->session, place, 150,
                    &(struct rv_session_error){
                        .type = RV_STR("busy"), .transient = true, .retry_after_ms = INT64_MAX});
    call_expect(f, 150, RV_LANE_REPLY);
    assert_int_equal(number_at(f, "/replies/0/error/retryAfterMs"), RV_DURATION_MS_MAX);
}

static void an_absurd_retry_after_overflows_nothing(void **state)
{
    struct fixture *f = *state;
    call_expect(f, 0, RV_LANE_POLL);
    rv_session_answered(f->session, RV_LANE_POLL, 0, 503, INT64_MAX, RV_STR(""));
    assert_in_range(rv_session_wake_at(f->session), RV_DURATION_MS_MAX, RV_DURATION_MS_MAX + 100);
}

static void refusal_of_a_poll_names_the_cure(void **state)
{
    struct fixture *f = *state;
    call_expect(f, 0, RV_LANE_POLL);
    rv_session_answered(f->session, RV_LANE_POLL, 0, 401, -1,
                        RV_STR("{\"title\":\"no key\",\"detail\":\"give one\"}"));
    assert_non_null(strstr(f->log, "401 no key: give one"));
    assert_null(strstr(f->log, "give one;")); /* the server has said it */
    assert_in_range(rv_session_wake_at(f->session), 1000, 30000);
}

static void a_long_refusal_is_cut_with_a_mark(void **state)
{
    struct fixture *f = *state;
    struct rv_buf body;
    rv_buf_init(&body, 4096);
    rv_buf_lit(&body, "{\"title\":\"a\\u0000b\",\"detail\":\"");
    for (size_t i = 0; i < 700; i++)
        rv_buf_lit(&body, "\xe2\x82\xac");
    rv_buf_lit(&body, "\"}");
    call_expect(f, 0, RV_LANE_POLL);
    rv_session_answered(f->session, RV_LANE_POLL, 0, 401, -1, rv_buf_str(&body));
    rv_buf_done(&body);
    assert_non_null(strstr(f->log, "401 a b: "));
    assert_non_null(strstr(f->log, "\xe2\x82\xac..."));
}

static void another_program_at_the_address_is_named(void **state)
{
    static const struct {
        int status;
        const char *body;
        const char *wanted;
    } rows[] = {
        {200, "<html></html>", "http://a:1 answers, but it is not a Reeve server; set REEVE_URL"},
        {200, "{\"status\":\"ok\"}", "http://a:1 answers, but it is not a Reeve server"},
        {404, "<html></html>", "http://a:1 answered with status 404 and without a Reeve error"},
        {401, "", "http://a:1 answered with status 401 and without a Reeve error"},
        {301, "", "http://a:1 answered with status 301 and without a Reeve error"},
        {502, "<html></html>", "http://a:1 answered with status 502 and without a Reeve error"},
        {413, "<html></html>", "the body of the request exceeds the server's limit"},
        {503, "{\"title\":\"busy\",\"detail\":\"wait\"}", "now: 503 busy: wait (consecutive"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *opened;
        assert_int_equal(fixture_open(&opened), 0);
        struct fixture *f = opened;
        call_expect(f, 0, RV_LANE_POLL);
        rv_session_answered(f->session, RV_LANE_POLL, 0, rows[i].status, -1,
                            rv_str_of(rows[i].body));
        call_expect(f, rv_session_wake_at(f->session), RV_LANE_POLL);
        assert_int_equal(number_at(f, "/waitMs"), 0); /* the server's clock is still unknown */
        if (strstr(f->log, rows[i].wanted) == NULL)
            fail_msg("%d %s: %s", rows[i].status, rows[i].body, f->log);
        fixture_close(&opened);
    }
}

static void the_one_bad_reply_of_a_batch_is_found(void **state)
{
    struct fixture *f = *state;
    greet(f, 0);
    call_expect(f, 0, RV_LANE_POLL);
    answer(f, RV_LANE_POLL, 0,
           ANSWER(REQUEST("S-1", "a", "9000", "9000") "," REQUEST(
               "S-2", "b", "9000", "9000") "," REQUEST("S-3", "c", "9000", "9000")));
    for (int i = 0; i < 3; i++) {
        rv_place place = news_expect(f, 1, RV_NEWS_REQUEST);
        rv_session_done(f->session, place, 1, RV_STR("1"));
    }
    /* The server refuses whatever holds "b". */
    unsigned calls = 0;
    while (rv_session_counts(f->session)->replied < 2 && calls++ < 20) {
        while (call_take(f, 5) && f->call.lane == RV_LANE_POLL) {
        }
        assert_int_equal(f->call.lane, RV_LANE_REPLY);
        if (memmem(f->call.body.at, f->call.body.len, "\"b\"", 3) != NULL) {
            rv_session_answered(f->session, RV_LANE_REPLY, 5, 422, -1,
                                RV_STR("{\"title\":\"bad\"}"));
            continue;
        }
        struct rv_buf text;
        rv_buf_init(&text, 4096);
        rv_buf_lit(&text, "{\"results\":[");
        for (uint32_t i = 0; rv_json_at(&f->body, RV_STR("/replies"))->len > i; i++) {
            char pointer[40];
            snprintf(pointer, sizeof pointer, "/replies/%u/step", i);
            rv_buf_printf(&text, "%s{\"step\":\"%s\",\"status\":200}", i ? "," : "",
                          text_at(f, pointer));
        }
        rv_buf_lit(&text, "]}");
        rv_session_answered(f->session, RV_LANE_REPLY, 5, 200, -1, rv_buf_str(&text));
        rv_buf_done(&text);
    }
    assert_int_equal(rv_session_counts(f->session)->replied, 2);
    assert_int_equal(rv_session_counts(f->session)->refused, 1);
}

static void a_refused_reply_is_replaced_once_by_an_error(void **state)
{
    struct fixture *f = *state;
    const char *refusal = "{\"results\":[{\"step\":null,\"status\":422,"
                          "\"detail\":\"replies[0].error.type is bad\"}]}";
    rv_place place = take_one(f, 100);
    struct rv_session_error error = {.type = RV_STR("e\033x"), .transient = true};
    rv_session_fail(f->session, place, 101, &error);
    call_expect(f, 101, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/error/type"), "e\033x");
    answer(f, RV_LANE_REPLY, 102, refusal);
    assert_non_null(strstr(f->log, "422 replies[0].error.type is bad"));
    while (call_take(f, 103) && f->call.lane == RV_LANE_POLL) {
    }
    assert_int_equal(f->call.lane, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/token"), "t1");
    assert_string_equal(text_at(f, "/replies/0/error/type"), "reply-refused");
    assert_string_equal(text_at(f, "/replies/0/error/title"), "replies[0].error.type is bad");
    assert_string_equal(text_at(f, "/replies/0/error/effect"), "none");
    assert_false(rv_json_at(&f->body, RV_STR("/replies/0/error/transient"))->truth);
    answer(f, RV_LANE_REPLY, 104, refusal);
    assert_false(rv_session_sending(f->session));
    assert_int_equal(rv_session_counts(f->session)->refused, 2);
}

static void a_refused_output_becomes_an_error_of_unknown_effect(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_done(f->session, place, 101, RV_STR("1"));
    for (int i = 0; i < 8 && !has(f, "/replies/0/error") && call_take(f, 102 + i); i++)
        if (f->call.lane == RV_LANE_REPLY && has(f, "/replies/0/output"))
            rv_session_answered(f->session, RV_LANE_REPLY, 102 + i, 413, -1,
                                RV_STR("{\"title\":\"too large\"}"));
    assert_string_equal(text_at(f, "/replies/0/error/type"), "reply-refused");
    assert_string_equal(text_at(f, "/replies/0/error/title"), "too large");
    assert_string_equal(text_at(f, "/replies/0/error/effect"), "unknown");
}

/* A proxy shows its page while the server behind it starts again. */
static void a_page_of_another_program_takes_no_reply(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_done(f->session, place, 101, RV_STR("{\"done\":true}"));
    for (int i = 0; i < 8 && call_take(f, 102 + i); i++)
        if (f->call.lane == RV_LANE_REPLY)
            rv_session_answered(f->session, RV_LANE_REPLY, 102 + i, 404, -1,
                                RV_STR("404 page not found\n"));
    if (rv_session_counts(f->session)->refused != 0)
        fail_msg("the result is given up: %s", f->log);
    assert_true(rv_session_sending(f->session));
}

static void output_that_is_no_json_becomes_an_error(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_done(f->session, place, 101, RV_STR("{oops"));
    call_expect(f, 101, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/error/type"), "agent-output");
    assert_string_equal(text_at(f, "/replies/0/error/effect"), "unknown");
}

static void output_that_is_nested_too_deep_is_told_with_the_limit(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    char deep[2 * 65];
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    rv_session_done(f->session, place, 101, (struct rv_str){deep, sizeof deep});
    call_expect(f, 101, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/error/title"),
                        "the agent's output is nested deeper than 64 levels");
}

static void an_undecided_reply_is_sent_again(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    rv_session_done(f->session, place, 101, RV_STR("1"));
    call_expect(f, 101, RV_LANE_REPLY);
    answer(f, RV_LANE_REPLY, 102,
           "{\"results\":[{\"step\":\"S-1\",\"status\":503}],\"requests\":[]}");
    call_expect(f, 104, RV_LANE_POLL);
    assert_false(call_take(f, 150));
    call_expect(f, 400, RV_LANE_REPLY);
    assert_string_equal(text_at(f, "/replies/0/token"), "t1");
}

static void half_an_answer_is_a_lost_one(void **state)
{
    struct fixture *f = *state;
    call_expect(f, 0, RV_LANE_POLL);
    const char *poll = text_at(f, "/poll");
    answer(f, RV_LANE_POLL, 1, "{\"requests\":[" REQUEST("S-1", "t1", "1000", "1000"));
    no_news(f, 1);
    call_expect(f, 2000, RV_LANE_POLL);
    assert_string_equal(text_at(f, "/poll"), poll);
}

static void stop_lets_what_is_open_end(void **state)
{
    struct fixture *f = *state;
    rv_place place = take_one(f, 100);
    call_expect(f, 102, RV_LANE_POLL);
    assert_true(rv_session_stop(f->session));
    assert_false(call_take(f, 103));
    assert_false(rv_session_ended(f->session));
    rv_session_done(f->session, place, 200, RV_STR("1"));
    call_expect(f, 200, RV_LANE_REPLY);
    assert_false(has(f, "/next"));
    assert_true(rv_session_sending(f->session));
    answer(f, RV_LANE_REPLY, 201, "{\"results\":[{\"step\":\"S-1\",\"status\":200}]}");
    assert_true(rv_session_ended(f->session));
    assert_false(call_take(f, 9999));
}

static void jitter_is_full_and_bounded(void **state)
{
    (void)state;
    struct rv_prng prng;
    rv_prng_init(&prng, 1);
    for (unsigned n = 0; n < 80; n++) {
        int64_t top = n > 5 ? 2000 : (int64_t)50 << n;
        int64_t low = INT64_MAX;
        int64_t high = -1;
        for (int i = 0; i < 500; i++) {
            int64_t ms = rv_jitter_ms(&prng, 50, 2000, n);
            low = ms < low ? ms : low;
            high = ms > high ? ms : high;
        }
        assert_in_range(low, 0, top / 10);
        assert_in_range(high, top * 9 / 10, top);
    }
    assert_int_equal(rv_jitter_ms(&prng, 0, 0, 3), 0);
}

#define WITH_SESSION(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SESSION(first_poll_does_not_park_and_the_next_does),
        WITH_SESSION(a_request_is_handed_over_whole),
        WITH_SESSION(a_reply_leaves_at_once_and_fetches_on_the_way),
        WITH_SESSION(a_poll_parks_while_a_slow_handler_works),
        WITH_SESSION(no_poll_without_room),
        WITH_SESSION(a_lost_poll_is_repeated_with_its_id),
        WITH_SESSION(a_lost_reply_is_repeated_until_the_deadline_and_not_after),
        WITH_SESSION(after_the_deadline_there_is_silence),
        WITH_SESSION(an_answer_at_the_deadline_is_late_even_before_the_timer_ran),
        WITH_SESSION(a_request_that_comes_again_is_known),
        WITH_SESSION(cancel_reaches_the_attempt_it_names),
        WITH_SESSION(a_lease_is_renewed_at_a_third),
        WITH_SESSION(a_renewal_counts_for_a_reply_on_its_way),
        cmocka_unit_test_setup_teardown(leases_are_renewed_as_often_as_the_session_wants_to_hear,
                                        fixture_open_listening, fixture_close),
        WITH_SESSION(the_deadline_counts_from_the_clock_offset_seen_so_far),
        WITH_SESSION(a_clock_that_was_set_forward_is_not_believed),
        WITH_SESSION(a_clock_that_was_set_forward_is_asked_again),
        WITH_SESSION(retry_after_is_honoured),
        WITH_SESSION(an_absurd_pause_is_a_long_one),
        WITH_SESSION(an_absurd_retry_after_overflows_nothing),
        WITH_SESSION(refusal_of_a_poll_names_the_cure),
        WITH_SESSION(a_long_refusal_is_cut_with_a_mark),
        cmocka_unit_test(another_program_at_the_address_is_named),
        WITH_SESSION(the_one_bad_reply_of_a_batch_is_found),
        WITH_SESSION(a_refused_reply_is_replaced_once_by_an_error),
        WITH_SESSION(a_refused_output_becomes_an_error_of_unknown_effect),
        WITH_SESSION(a_page_of_another_program_takes_no_reply),
        WITH_SESSION(output_that_is_no_json_becomes_an_error),
        WITH_SESSION(output_that_is_nested_too_deep_is_told_with_the_limit),
        WITH_SESSION(an_undecided_reply_is_sent_again),
        WITH_SESSION(half_an_answer_is_a_lost_one),
        WITH_SESSION(stop_lets_what_is_open_end),
        cmocka_unit_test(jitter_is_full_and_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

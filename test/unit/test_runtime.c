/* What the agent does around its handler: tries, pauses, deadlines, circuits. */
#include "agent/circuit.h"
#include "agent/runtime.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/time.h"
#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct rv_runtime *runtime;
    struct rv_session *session;
    struct rv_arena arena;
    struct rv_json body; /* of the last call */
    enum rv_lane lane;
    const char *target;
    unsigned sent; /* requests given so far */
};

static struct rv_str target_now(void *user, rv_place place)
{
    (void)place;
    return rv_str_of(((struct fixture *)user)->target);
}

static int fixture_open(void **state)
{
    static struct fixture f;
    f = (struct fixture){.target = "pay"};
    rv_arena_init(&f.arena, 0);
    struct rv_runtime_options options = {
        .session = {.agent = RV_STR("a"), .instance = RV_STR("i"), .seed = 3, .max = 8},
        .tries_max = 4,
        .retry_base_ms = 50,
        .retry_cap_ms = 2000,
        .circuit_failures = 5,
        .circuit_open_ms = 1000,
        .target = target_now,
        .user = &f};
    f.runtime = rv_runtime_new(&options);
    f.session = rv_runtime_session(f.runtime);
    *state = &f;
    return f.runtime == NULL;
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    rv_runtime_free(f->runtime);
    rv_arena_done(&f->arena);
    return 0;
}

static bool call_take(struct fixture *f, int64_t now)
{
    struct rv_session_call call;
    if (!rv_session_next_call(f->session, now, &call))
        return false;
    f->lane = call.lane;
    assert_int_equal(
        rv_json_parse(&f->arena, rv_arena_str(&f->arena, call.body), 64, &f->body, NULL), RV_OK);
    return true;
}

/* Hands out one attempt in a poll's answer; complete-by is `remaining_ms` after `now`. */
static void give(struct fixture *f, int64_t now, int remaining_ms)
{
    bool polled = false;
    while (!polled && call_take(f, now))
        polled = f->lane == RV_LANE_POLL;
    assert_true(polled);
    struct rv_buf text;
    rv_buf_init(&text, 4096);
    rv_buf_printf(&text,
                  "{\"requests\":[{\"step\":\"S-%u\",\"token\":\"t%u\",\"remainingMs\":%d,"
                  "\"leaseMs\":%d,\"input\":{}}]}",
                  f->sent, f->sent, remaining_ms, remaining_ms);
    f->sent++;
    rv_session_answered(f->session, RV_LANE_POLL, now, 200, -1, rv_buf_str(&text));
    rv_buf_done(&text);
}

static rv_place expect(struct fixture *f, int64_t now, enum rv_runtime_kind kind)
{
    struct rv_runtime_event event;
    assert_true(rv_runtime_next_event(f->runtime, now, &event));
    assert_int_equal(event.kind, kind);
    return event.place;
}

static void expect_none(struct fixture *f, int64_t now)
{
    struct rv_runtime_event event;
    assert_false(rv_runtime_next_event(f->runtime, now, &event));
}

static const struct rv_runtime_failure busy = {.type = {"busy", 4}, .transient = true};

/* The reply that leaves now; its call is answered, so the place is free again. */
static const struct rv_json *reply(struct fixture *f, int64_t now)
{
    while (call_take(f, now) && f->lane != RV_LANE_REPLY) {
    }
    assert_int_equal(f->lane, RV_LANE_REPLY);
    const struct rv_json *item = rv_json_at(&f->body, RV_STR("/replies/0"));
    struct rv_buf text;
    rv_buf_init(&text, 4096);
    struct rv_str step = rv_json_str(rv_json_get(item, RV_STR("step")));
    rv_buf_printf(&text, "{\"results\":[{\"step\":\"%.*s\",\"status\":200}]}", RV_STR_FMT(step));
    rv_session_answered(f->session, RV_LANE_REPLY, now, 200, -1, rv_buf_str(&text));
    rv_buf_done(&text);
    return item;
}

static bool error_is(const struct rv_json *item, const char *member, const char *text)
{
    const struct rv_json *error = rv_json_get(item, RV_STR("error"));
    return rv_str_is(rv_json_str(rv_json_get(error, rv_str_of(member))), text);
}

static void a_transient_failure_is_tried_again_until_the_tries_are_used_up(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 60000);
    int64_t now = 0;
    for (int try = 1; try <= 4; try++) {
        struct rv_runtime_event event;
        assert_true(rv_runtime_next_event(f->runtime, now, &event));
        assert_int_equal(event.kind, RV_RUNTIME_START);
        assert_int_equal(event.try_number, try);
        rv_runtime_failed(f->runtime, event.place, now, &busy);
        if (try == 4)
            break;
        expect_none(f, now - 1);
        int64_t at = now + ((int64_t)50 << (try - 1));
        assert_in_range(rv_runtime_wake_at(f->runtime), 0, at);
        now = at;
    }
    expect(f, now, RV_RUNTIME_OVER);
    const struct rv_json *item = reply(f, now);
    assert_true(error_is(item, "type", "busy"));
    assert_true(error_is(item, "effect", "unknown"));
}

/* The error says why, though the attempt has time left. */
static void what_is_given_up_before_complete_by_says_why(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 3000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    const struct rv_runtime_failure slow = {
        .type = RV_STR("busy"), .detail = RV_STR("no worker"), .transient = true};
    rv_runtime_failed(f->runtime, place, 2000, &slow);
    expect(f, 2000, RV_RUNTIME_OVER);
    const struct rv_json *error = rv_json_get(reply(f, 2000), RV_STR("error"));
    struct rv_str detail = rv_json_str(rv_json_get(error, RV_STR("detail")));
    static const char why[] = "no worker; the request was not retried after 1 try in 2.0 s: "
                              "another try ";
    assert_true(detail.len > sizeof why);
    assert_memory_equal(detail.at, why, sizeof why - 1);
}

static void a_permanent_failure_is_told_at_once(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 60000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    rv_runtime_failed(f->runtime, place, 5,
                      &(struct rv_runtime_failure){.type = RV_STR("declined"),
                                                   .title = RV_STR("no money"),
                                                   .detail = RV_STR("since \"Monday\""),
                                                   .status = 402});
    const struct rv_json *item = reply(f, 5);
    assert_true(error_is(item, "type", "declined"));
    assert_true(error_is(item, "title", "no money"));
    assert_true(error_is(item, "detail", "since \"Monday\""));
    assert_true(error_is(item, "effect", "none"));
}

static void an_unknown_effect_of_an_earlier_try_is_not_forgotten(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 60000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    rv_runtime_failed(f->runtime, place, 0, &busy);
    place = expect(f, 100, RV_RUNTIME_START);
    rv_runtime_failed(
        f->runtime, place, 100,
        &(struct rv_runtime_failure){.type = RV_STR("declined"), .effect = RV_RUNTIME_NO_EFFECT});
    assert_true(error_is(reply(f, 100), "effect", "unknown"));
}

static void what_does_not_fit_before_the_deadline_is_not_tried(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 1000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    /* The try took 600 ms; another as long cannot end in time. */
    rv_runtime_failed(f->runtime, place, 600, &busy);
    expect(f, 600, RV_RUNTIME_OVER);
    assert_true(error_is(reply(f, 600), "type", "busy"));
    give(f, 2000, 1000);
    place = expect(f, 2000, RV_RUNTIME_START);
    /* The service asks for a pause that goes beyond the deadline. */
    struct rv_runtime_failure later = busy;
    later.retry_after_ms = 5000;
    rv_runtime_failed(f->runtime, place, 2010, &later);
    expect(f, 2010, RV_RUNTIME_OVER);
    const struct rv_json *item = reply(f, 2010);
    int64_t pause = 0;
    assert_true(rv_json_int(rv_json_at(item, RV_STR("/error/retryAfterMs")), &pause));
    assert_int_equal(pause, 5000);
    give(f, 4000, 1000);
    place = expect(f, 4000, RV_RUNTIME_START);
    later.retry_after_ms = INT64_MAX; /* which is held to a hundred years */
    rv_runtime_failed(f->runtime, place, 4010, &later);
    assert_true(rv_json_int(rv_json_at(reply(f, 4010), RV_STR("/error/retryAfterMs")), &pause));
    assert_int_equal(pause, RV_DURATION_MS_MAX);
}

/* A try that failed at once would fit until the last moment; its reply would not. */
static void a_tenth_of_the_time_is_kept_for_the_reply(void **state)
{
    struct fixture *f = *state;
    struct rv_runtime_failure later = busy;
    give(f, 0, 1000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    later.retry_after_ms = 899;
    rv_runtime_failed(f->runtime, place, 0, &later);
    place = expect(f, 899, RV_RUNTIME_START);
    rv_runtime_failed(f->runtime, place, 899, &busy);
    expect(f, 899, RV_RUNTIME_OVER);
    assert_true(error_is(reply(f, 899), "type", "busy"));
    give(f, 2000, 1000);
    place = expect(f, 2000, RV_RUNTIME_START);
    later.retry_after_ms = 900;
    rv_runtime_failed(f->runtime, place, 2000, &later);
    expect(f, 2000, RV_RUNTIME_OVER);
    assert_true(error_is(reply(f, 2000), "type", "busy"));
}

static void retry_after_is_the_shortest_pause(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 60000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    struct rv_runtime_failure later = busy;
    later.retry_after_ms = 3000;
    rv_runtime_failed(f->runtime, place, 10, &later);
    expect_none(f, 3009);
    expect(f, 3010, RV_RUNTIME_START);
}

static void an_expired_attempt_is_over_when_its_handler_returns(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 1000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    assert_int_equal(expect(f, 1000, RV_RUNTIME_EXPIRED), place);
    assert_int_equal(rv_runtime_running(f->runtime), 1);
    rv_runtime_done(f->runtime, place, 1500, RV_STR("1"));
    expect(f, 1500, RV_RUNTIME_OVER);
    assert_int_equal(rv_runtime_running(f->runtime), 0);
    assert_int_equal(rv_session_counts(f->session)->late_dropped, 1);
    while (call_take(f, 1500))
        assert_int_not_equal(f->lane, RV_LANE_REPLY);
}

static void a_pause_that_the_deadline_ends_is_silent(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 1000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    struct rv_runtime_failure later = busy;
    later.retry_after_ms = 900;
    rv_runtime_failed(f->runtime, place, 1, &later);
    expect(f, 5000, RV_RUNTIME_OVER); /* the loop was held up */
    expect_none(f, 5000);
    while (call_take(f, 5000))
        assert_int_not_equal(f->lane, RV_LANE_REPLY);
}

static void cancel_ends_a_pause_and_is_told_to_a_running_handler(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 60000);
    rv_place place = expect(f, 0, RV_RUNTIME_START);
    assert_true(call_take(f, 10)); /* the poll that parks */
    rv_session_answered(
        f->session, RV_LANE_POLL, 20, 200, -1,
        RV_STR("{\"requests\":[],\"cancel\":[{\"step\":\"S-0\",\"token\":\"t0\"}]}"));
    assert_int_equal(expect(f, 20, RV_RUNTIME_CANCEL), place);
    rv_runtime_failed(f->runtime, place, 30, &busy); /* no further try */
    expect(f, 30, RV_RUNTIME_OVER);
    assert_true(error_is(reply(f, 30), "type", "busy"));

    give(f, 100, 60000);
    place = expect(f, 100, RV_RUNTIME_START);
    rv_runtime_failed(f->runtime, place, 100, &busy);
    assert_true(call_take(f, 102));
    rv_session_answered(
        f->session, RV_LANE_POLL, 102, 200, -1,
        RV_STR("{\"requests\":[],\"cancel\":[{\"step\":\"S-1\",\"token\":\"t1\"}]}"));
    expect(f, 102, RV_RUNTIME_OVER);
    const struct rv_json *item = reply(f, 102);
    assert_true(error_is(item, "type", "cancelled"));
    assert_true(error_is(item, "effect", "unknown"));
}

/* A target is not to blame for what was taken back. */
static void cancelled_tries_open_no_circuit(void **state)
{
    struct fixture *f = *state;
    char answer[96];
    for (int n = 0; n < 12; n++) {
        int64_t now = n * 100;
        give(f, now, 60000);
        rv_place place = expect(f, now, RV_RUNTIME_START);
        assert_true(call_take(f, now + 10));
        snprintf(answer, sizeof answer,
                 "{\"requests\":[],\"cancel\":[{\"step\":\"S-%d\",\"token\":\"t%d\"}]}", n, n);
        rv_session_answered(f->session, RV_LANE_POLL, now + 20, 200, -1, rv_str_of(answer));
        assert_int_equal(expect(f, now + 20, RV_RUNTIME_CANCEL), place);
        rv_runtime_failed(f->runtime, place, now + 30, &busy);
        expect(f, now + 30, RV_RUNTIME_OVER);
        assert_true(error_is(reply(f, now + 30), "type", "busy"));
    }
}

static void a_withdrawn_probe_lets_the_next_one_through(void **state)
{
    (void)state;
    static struct rv_circuits circuits;
    int64_t pause = 0;
    rv_circuits_init(&circuits, 1, 1000);
    uint32_t i = rv_circuits_find(&circuits, RV_STR("x"), 0);
    assert_int_equal(rv_circuit_ask(&circuits, i, 0, &pause), RV_CIRCUIT_GO);
    rv_circuit_report(&circuits, i, 0, false, true, 0);
    assert_int_equal(rv_circuit_ask(&circuits, i, 1000, &pause), RV_CIRCUIT_PROBE);
    rv_circuit_withdraw(&circuits, i, true);
    assert_int_equal(rv_circuit_ask(&circuits, i, 1001, &pause), RV_CIRCUIT_PROBE);
    rv_circuit_report(&circuits, i, 1002, true, false, 0);
    assert_int_equal(rv_circuit_ask(&circuits, i, 1003, &pause), RV_CIRCUIT_GO);
}

static void stop_ends_pauses_and_waits_for_handlers(void **state)
{
    struct fixture *f = *state;
    give(f, 0, 60000);
    rv_place paused = expect(f, 0, RV_RUNTIME_START);
    rv_runtime_failed(f->runtime, paused, 0, &busy);
    give(f, 2, 60000);
    rv_place running = expect(f, 2, RV_RUNTIME_START);
    rv_runtime_stop(f->runtime, 3);
    assert_true(error_is(reply(f, 3), "type", "busy"));
    assert_false(rv_runtime_ended(f->runtime));
    rv_runtime_done(f->runtime, running, 10, RV_STR("1"));
    assert_false(rv_runtime_ended(f->runtime));
    reply(f, 10);
    assert_true(rv_runtime_ended(f->runtime));
}

static void an_open_circuit_answers_and_lets_one_probe_through(void **state)
{
    struct fixture *f = *state;
    struct rv_runtime_failure declared = busy;
    declared.retry_after_ms = 100000; /* no second try: each failure is one attempt */
    for (int64_t now = 0; now < 5; now++) {
        give(f, now * 10, 60000);
        rv_runtime_failed(f->runtime, expect(f, now * 10, RV_RUNTIME_START), now * 10,
                          now == 4 ? &busy : &declared);
        if (now < 4) {
            expect(f, now * 10, RV_RUNTIME_OVER);
            reply(f, now * 10);
        }
    }
    /* The fifth opened it while the attempt paused: its next try meets the open circuit. But it was
     * tried, and that is a failure. */
    expect(f, 100, RV_RUNTIME_OVER);
    const struct rv_json *item = reply(f, 100);
    assert_true(error_is(item, "type", "busy"));
    assert_true(error_is(item, "target", "pay"));
    assert_true(error_is(item, "effect", "unknown")); /* of its first try */

    give(f, 110, 60000);
    expect(f, 110, RV_RUNTIME_OVER);
    item = reply(f, 110);
    assert_true(error_is(item, "type", "circuit-open"));
    assert_true(error_is(item, "effect", "none"));
    int64_t pause = 0;
    assert_true(rv_json_int(rv_json_at(item, RV_STR("/error/retryAfterMs")), &pause));
    assert_in_range(pause, 900, 1250);

    f->target = "ship"; /* another target is not concerned */
    give(f, 120, 60000);
    rv_runtime_done(f->runtime, expect(f, 120, RV_RUNTIME_START), 120, RV_STR("1"));
    expect(f, 120, RV_RUNTIME_OVER);
    reply(f, 120);

    f->target = "pay";
    give(f, 1100, 60000);
    rv_place probe = expect(f, 1100, RV_RUNTIME_START);
    give(f, 1102, 60000);
    expect(f, 1102, RV_RUNTIME_OVER); /* only one at a time */
    assert_true(error_is(reply(f, 1102), "type", "circuit-open"));
    rv_runtime_done(f->runtime, probe, 1110, RV_STR("1"));
    expect(f, 1110, RV_RUNTIME_OVER);
    reply(f, 1110);
    give(f, 1120, 60000);
    expect(f, 1120, RV_RUNTIME_START);
    give(f, 1122, 60000);
    expect(f, 1122, RV_RUNTIME_START);
    assert_int_equal(rv_runtime_counts(f->runtime)->circuit_open, 2);
}

/* A probe that fails was tried: its failure is told, and that the circuit is open again. */
static void a_failed_probe_is_a_failure_of_its_attempt(void **state)
{
    struct fixture *f = *state;
    struct rv_runtime_failure declared = busy;
    declared.retry_after_ms = 100000; /* no second try */
    for (int64_t now = 0; now < 5; now++) {
        give(f, now, 60000);
        rv_runtime_failed(f->runtime, expect(f, now, RV_RUNTIME_START), now, &declared);
        expect(f, now, RV_RUNTIME_OVER);
        const struct rv_json *item = reply(f, now);
        assert_true(error_is(item, "type", "busy"));
        assert_int_equal(rv_json_at(item, RV_STR("/error/target")) != NULL, now == 4);
    }
    give(f, 31000, 60000);
    rv_runtime_failed(f->runtime, expect(f, 31000, RV_RUNTIME_START), 31000, &declared);
    expect(f, 31000, RV_RUNTIME_OVER);
    const struct rv_json *item = reply(f, 31000);
    assert_true(error_is(item, "type", "busy"));
    assert_true(error_is(item, "target", "pay"));
    assert_int_equal(rv_runtime_counts(f->runtime)->circuit_open, 0);
}

/* ---- the circuit alone ---- */

static bool passes(struct rv_circuits *circuits, uint32_t i, int64_t now)
{
    int64_t pause;
    return rv_circuit_ask(circuits, i, now, &pause) == RV_CIRCUIT_GO;
}

static void a_circuit_opens_at_enough_failures_that_are_half(void **state)
{
    (void)state;
    static struct rv_circuits circuits;
    rv_circuits_init(&circuits, 3, 1000);
    uint32_t i = rv_circuits_find(&circuits, RV_STR("x"), 0);
    /* Two of three succeed: three failures in nine are not half. */
    for (int n = 0; n < 9; n++) {
        assert_true(passes(&circuits, i, n));
        rv_circuit_report(&circuits, i, n, false, n % 3 == 0, 0);
    }
    int failures = 0;
    while (passes(&circuits, i, 100) && failures < 20) {
        rv_circuit_report(&circuits, i, 100, false, true, 0);
        failures++;
    }
    /* 3 + n failures of 9 + n: half at n = 3. */
    assert_int_equal(failures, 3);
}

static void a_failed_probe_doubles_the_pause_up_to_its_cap(void **state)
{
    (void)state;
    static struct rv_circuits circuits;
    rv_circuits_init(&circuits, 1, 1000);
    uint32_t i = rv_circuits_find(&circuits, RV_STR("x"), 0);
    assert_true(passes(&circuits, i, 0));
    rv_circuit_report(&circuits, i, 0, false, true, 0);
    int64_t now = 0;
    int64_t expected = 1000;
    for (int n = 0; n < 8; n++) {
        int64_t pause = 0;
        assert_int_equal(rv_circuit_ask(&circuits, i, now, &pause), RV_CIRCUIT_STOP);
        assert_int_equal(pause, expected);
        now += pause;
        assert_int_equal(rv_circuit_ask(&circuits, i, now, &pause), RV_CIRCUIT_PROBE);
        assert_int_equal(rv_circuit_ask(&circuits, i, now, &pause), RV_CIRCUIT_STOP);
        rv_circuit_report(&circuits, i, now, true, true, 0);
        expected = expected * 2 < RV_CIRCUIT_OPEN_MS_MAX ? expected * 2 : RV_CIRCUIT_OPEN_MS_MAX;
    }
}

static void a_circuit_in_use_is_never_given_to_another_target(void **state)
{
    (void)state;
    static struct rv_circuits circuits;
    rv_circuits_init(&circuits, 5, 1000);
    uint32_t held = rv_circuits_find(&circuits, RV_STR("held"), 0);
    assert_true(passes(&circuits, held, 0));
    for (int n = 0; n < 3 * RV_CIRCUITS_MAX; n++) {
        char name[32];
        snprintf(name, sizeof name, "other-%d", n);
        uint32_t i = rv_circuits_find(&circuits, rv_str_of(name), n + 1);
        assert_true(i < RV_CIRCUITS_MAX);
        assert_int_not_equal(i, held);
    }
    assert_string_equal(circuits.all[held].target, "held");
    rv_circuits_init(&circuits, 0, 1000);
    assert_int_equal(rv_circuits_find(&circuits, RV_STR("x"), 0), UINT32_MAX);
}

#define WITH_RUNTIME(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RUNTIME(a_transient_failure_is_tried_again_until_the_tries_are_used_up),
        WITH_RUNTIME(what_is_given_up_before_complete_by_says_why),
        WITH_RUNTIME(a_permanent_failure_is_told_at_once),
        WITH_RUNTIME(an_unknown_effect_of_an_earlier_try_is_not_forgotten),
        WITH_RUNTIME(what_does_not_fit_before_the_deadline_is_not_tried),
        WITH_RUNTIME(a_tenth_of_the_time_is_kept_for_the_reply),
        WITH_RUNTIME(retry_after_is_the_shortest_pause),
        WITH_RUNTIME(an_expired_attempt_is_over_when_its_handler_returns),
        WITH_RUNTIME(a_pause_that_the_deadline_ends_is_silent),
        WITH_RUNTIME(cancel_ends_a_pause_and_is_told_to_a_running_handler),
        WITH_RUNTIME(cancelled_tries_open_no_circuit),
        cmocka_unit_test(a_withdrawn_probe_lets_the_next_one_through),
        WITH_RUNTIME(stop_ends_pauses_and_waits_for_handlers),
        WITH_RUNTIME(an_open_circuit_answers_and_lets_one_probe_through),
        WITH_RUNTIME(a_failed_probe_is_a_failure_of_its_attempt),
        cmocka_unit_test(a_circuit_opens_at_enough_failures_that_are_half),
        cmocka_unit_test(a_failed_probe_doubles_the_pause_up_to_its_cap),
        cmocka_unit_test(a_circuit_in_use_is_never_given_to_another_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

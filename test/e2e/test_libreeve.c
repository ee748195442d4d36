/* libreeve over real sockets, against a small server that keeps the agent protocol and breaks
 * connections by plan: before it has heard a call, or after it has acted on it. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/prng.h"
#include "json/json.h"
#include "reeve.h"

#include "../lib/loopback.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

enum { STEPS_MAX = 1000, BOUND_S = 30 };

enum step_state { STEP_WAITING, STEP_OPEN, STEP_DONE, STEP_FAILED };

struct step {
    enum step_state state;
    char poll[40]; /* whose answer handed it out */
    char error[80];
    unsigned replies; /* that counted */
};

/* What the fake server knows. One mutex for all; `changed` is told of every call. */
struct server {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct loopback *loopback;
    char url[64];
    struct rv_prng prng;
    struct step steps[STEPS_MAX];
    int step_count;
    int remaining_ms;
    unsigned cut_before_percent;
    unsigned cut_after_percent;
    unsigned ended;
    unsigned late;
    unsigned parked;
    unsigned submissions;
    unsigned cut_submissions; /* so many are cut after they were heard */
    char keys[4][80];
    bool closing;
};

static struct server server;

static struct timespec bound(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += BOUND_S;
    return until;
}

/* ---- the protocol ---- */

static void requests_write(struct rv_buf *out, const char *poll, int64_t max)
{
    const char *between = "";
    rv_buf_lit(out, "\"requests\":[");
    for (int i = 0; i < server.step_count; i++) {
        struct step *step = &server.steps[i];
        bool again = step->state == STEP_OPEN && strcmp(step->poll, poll) == 0;
        if (!again && (step->state != STEP_WAITING || max <= 0))
            continue;
        max--;
        step->state = STEP_OPEN;
        snprintf(step->poll, sizeof step->poll, "%s", poll);
        rv_buf_printf(out,
                      "%s{\"step\":\"S-%d\",\"task\":\"S\",\"reference\":\"/do/0/x\",\"attempt\":1,"
                      "\"token\":\"token-%d\",\"fence\":%d,\"idempotencyKey\":\"key-%d\","
                      "\"remainingMs\":%d,\"leaseMs\":%d,\"input\":{\"n\":%d,\"sku\":\"a\\nb\"}}",
                      between, i, i, i, i, server.remaining_ms, server.remaining_ms, i);
        between = ",";
    }
    rv_buf_lit(out, "],\"cancel\":[]");
}

static bool anything_for(const char *poll)
{
    for (int i = 0; i < server.step_count; i++)
        if (server.steps[i].state == STEP_WAITING ||
            (server.steps[i].state == STEP_OPEN && strcmp(server.steps[i].poll, poll) == 0))
            return true;
    return false;
}

static const char *text_in(const struct rv_json *object, const char *name, char room[80])
{
    struct rv_str text = rv_json_str(rv_json_get(object, rv_str_of(name)));
    snprintf(room, 80, "%.*s", RV_STR_FMT(text));
    return room;
}

static int64_t int_in(const struct rv_json *object, const char *name)
{
    int64_t number = 0;
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    if (value == NULL || !rv_json_int(value, &number))
        return 0;
    return number;
}

static void poll_answer(const struct rv_json *body, struct rv_buf *out)
{
    char poll[80];
    text_in(body, "poll", poll);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(int_in(body, "waitMs") / 1000);
    server.parked++;
    while (!server.closing && int_in(body, "waitMs") > 0 && !anything_for(poll))
        if (pthread_cond_timedwait(&server.changed, &server.mutex, &until) != 0)
            break;
    server.parked--;
    rv_buf_lit(out, "{");
    requests_write(out, poll, int_in(body, "max"));
    rv_buf_lit(out, "}");
}

static int reply_take(const struct rv_json *reply)
{
    char token[80];
    int n = -1;
    text_in(reply, "token", token);
    if (strncmp(token, "token-", 6) == 0)
        n = (int)strtol(token + 6, NULL, 10);
    if (n < 0 || n >= server.step_count || server.steps[n].state != STEP_OPEN) {
        server.late++;
        return 410;
    }
    const struct rv_json *error = rv_json_get(reply, RV_STR("error"));
    struct step *step = &server.steps[n];
    step->state = error ? STEP_FAILED : STEP_DONE;
    step->replies++;
    if (error != NULL)
        text_in(error, "type", step->error);
    server.ended++;
    return 200;
}

static void replies_answer(const struct rv_json *body, struct rv_buf *out)
{
    const struct rv_json *replies = rv_json_get(body, RV_STR("replies"));
    rv_buf_lit(out, "{\"results\":[");
    for (uint32_t i = 0; replies != NULL && i < replies->len; i++) {
        char step[80];
        rv_buf_printf(out, "%s{\"step\":\"%s\",\"status\":%d}", i ? "," : "",
                      text_in(&replies->u.items[i], "step", step),
                      reply_take(&replies->u.items[i]));
    }
    rv_buf_lit(out, "]");
    const struct rv_json *next = rv_json_get(body, RV_STR("next"));
    if (next != NULL) {
        char poll[80];
        rv_buf_lit(out, ",");
        requests_write(out, text_in(next, "poll", poll), int_in(next, "max"));
    }
    rv_buf_lit(out, "}");
}

/* 0: cut the connection. */
static int submit_answer(const struct rv_json *body, struct rv_buf *out)
{
    const struct rv_json *tasks = rv_json_get(body, RV_STR("tasks"));
    unsigned n = server.submissions++;
    if (n < 4)
        text_in(tasks ? &tasks->u.items[0] : body, "key", server.keys[n]);
    if (n < server.cut_submissions)
        return 0;
    if (tasks == NULL) {
        rv_buf_lit(out, "{\"task\":\"06DWX3T9H2K4Q\",\"state\":\"pending\"}");
        return n > 0 ? 200 : 201;
    }
    rv_buf_lit(out, "{\"tasks\":[");
    for (uint32_t i = 0; i < tasks->len; i++)
        rv_buf_printf(out,
                      i % 2 ? "%s{\"error\":{\"title\":\"odd\"},\"status\":422}"
                            : "%s{\"task\":\"06DWX3T9H2K4Q\",\"state\":\"pending\"}",
                      i ? "," : "");
    rv_buf_lit(out, "]}");
    return 200;
}

/* The status to answer with; 0 cuts the connection. */
static int route(const char *url, const struct rv_json *body, struct rv_buf *out)
{
    if (strcmp(url, "/v1/tasks") == 0)
        return submit_answer(body, out);
    if (strncmp(url, "/v1/tasks/", 10) == 0) {
        rv_buf_lit(out, "{\"task\":\"06DWX3T9H2K4Q\",\"state\":\"compensated\",\"revision\":3}");
        return 200;
    }
    if (strcmp(url, "/v1/agents/worker/requests") == 0)
        poll_answer(body, out);
    else if (strcmp(url, "/v1/replies") == 0)
        replies_answer(body, out);
    else
        return 404;
    return 200;
}

static int act(const char *url, struct rv_str text, struct rv_buf *out)
{
    struct rv_arena arena;
    struct rv_json body = rv_json_null();
    rv_arena_init(&arena, 0);
    pthread_mutex_lock(&server.mutex);
    int status = 400;
    if (rv_prng_below(&server.prng, 100) < server.cut_before_percent)
        status = 0;
    else if (text.len == 0 || rv_json_parse(&arena, text, 64, &body, NULL) == RV_OK)
        status = route(url, &body, out);
    if (rv_prng_below(&server.prng, 100) < server.cut_after_percent)
        status = 0;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
    rv_arena_done(&arena);
    return status;
}

static bool serve(const struct loopback_request *request)
{
    struct rv_buf out;
    rv_buf_init(&out, 1 << 24);
    int status = act(request->path, (struct rv_str){request->body, request->body_bytes}, &out);
    bool kept = status != 0 &&
                loopback_say(request->fd, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\n\r\n", status,
                             out.len) &&
                loopback_send(request->fd, out.at, out.len);
    rv_buf_done(&out);
    return kept;
}

static int server_open(void **state)
{
    (void)state;
    memset(&server, 0, sizeof server);
    pthread_mutex_init(&server.mutex, NULL);
    pthread_cond_init(&server.changed, NULL);
    rv_prng_init(&server.prng, 17);
    server.remaining_ms = 20000;
    server.loopback = loopback_open(serve, NULL);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%u/", loopback_port(server.loopback));
    return 0;
}

static int server_close(void **state)
{
    (void)state;
    pthread_mutex_lock(&server.mutex);
    server.closing = true;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
    loopback_close(server.loopback);
    return 0;
}

static void steps_add(int count)
{
    pthread_mutex_lock(&server.mutex);
    server.step_count += count;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.mutex);
}

/* Waits until so many steps have their end; false after the bound. */
static bool ended_wait(unsigned count)
{
    struct timespec until = bound();
    bool in_time = true;
    pthread_mutex_lock(&server.mutex);
    while (server.ended < count && in_time)
        in_time = pthread_cond_timedwait(&server.changed, &server.mutex, &until) == 0;
    pthread_mutex_unlock(&server.mutex);
    return in_time;
}

/* ---- agents ---- */

struct run {
    struct rv_agent *agent;
    pthread_t thread;
    int result;
};

static void *run_thread(void *self)
{
    struct run *run = self;
    run->result = rv_agent_run(run->agent);
    return NULL;
}

static void log_nothing(enum rv_agent_log level, const char *message, void *user)
{
    (void)level;
    (void)message;
    (void)user;
}

static void run_begin(struct run *run, struct rv_agent_options options)
{
    options.name = "worker";
    options.log = log_nothing;
    run->agent = rv_agent_open(server.url, &options);
    assert_non_null(run->agent);
    assert_int_equal(pthread_create(&run->thread, NULL, run_thread, run), 0);
}

static int run_end(struct run *run)
{
    rv_agent_stop(run->agent);
    pthread_join(run->thread, NULL);
    return run->result;
}

static void handle_at_once(struct rv_request *request, void *user)
{
    (void)user;
    int64_t n = -1;
    char key[32];
    const char *sku = rv_request_string(request, "/sku");
    if (!rv_request_integer(request, "/n", &n) || sku == NULL || strcmp(sku, "a\nb") != 0) {
        rv_request_fail(request, &(struct rv_failure){.type = "bad-input"});
        return;
    }
    snprintf(key, sizeof key, "key-%d", (int)n);
    bool same = strcmp(key, rv_request_key(request)) == 0 && rv_request_fence(request) == n;
    rv_request_done(request, same ? "{\"ok\":true}" : "{");
}

static void every_step_has_one_reply(int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(server.steps[i].state, STEP_DONE);
        assert_int_equal(server.steps[i].replies, 1);
    }
}

static void steps_are_done_by_threads(void **state)
{
    (void)state;
    struct run run;
    run_begin(&run, (struct rv_agent_options){.handler = handle_at_once, .threads = 3, .max = 16});
    steps_add(400);
    assert_true(ended_wait(400));
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    every_step_has_one_reply(400);
    struct rv_agent_counts counts;
    rv_agent_count(run.agent, &counts);
    assert_int_equal(counts.requests, 400);
    assert_int_equal(counts.replied, 400);
    assert_int_equal(counts.tries, 400);
    assert_int_equal(counts.late_dropped, 0);
    rv_agent_close(run.agent);
}

static void cut_connections_lose_and_double_nothing(void **state)
{
    (void)state;
    server.cut_before_percent = 15;
    server.cut_after_percent = 15;
    struct run run;
    run_begin(&run, (struct rv_agent_options){
                        .handler = handle_at_once, .threads = RV_THREADS_NONE, .max = 10});
    steps_add(200);
    assert_true(ended_wait(200));
    server.cut_before_percent = server.cut_after_percent = 0;
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    every_step_has_one_reply(200);
    struct rv_agent_counts counts;
    rv_agent_count(run.agent, &counts);
    assert_int_equal(counts.tries, 200); /* answers that came twice did not run twice */
    assert_true(counts.calls_failed > 0);
    rv_agent_close(run.agent);
}

/* A gate that handlers wait at. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned arrived;
    bool open;
    struct rv_request *last;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void gate_close(void)
{
    gate.arrived = 0;
    gate.open = false;
    gate.last = NULL;
}

static void gate_wait_for(unsigned arrived)
{
    struct timespec until = bound();
    int failed = 0;
    pthread_mutex_lock(&gate.mutex);
    while (gate.arrived < arrived && failed == 0)
        failed = pthread_cond_timedwait(&gate.changed, &gate.mutex, &until);
    pthread_mutex_unlock(&gate.mutex);
    assert_int_equal(failed, 0);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate.mutex);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.mutex);
}

static void gate_arrive(struct rv_request *request, bool wait)
{
    pthread_mutex_lock(&gate.mutex);
    gate.arrived++;
    gate.last = request;
    pthread_cond_broadcast(&gate.changed);
    while (wait && !gate.open)
        pthread_cond_wait(&gate.changed, &gate.mutex);
    pthread_mutex_unlock(&gate.mutex);
}

static void handle_at_gate(struct rv_request *request, void *user)
{
    (void)user;
    gate_arrive(request, true);
    rv_request_done(request, "1");
}

static void handle_later(struct rv_request *request, void *user)
{
    (void)user;
    gate_arrive(request, false);
}

static void stop_waits_for_open_handlers_and_sends_their_replies(void **state)
{
    (void)state;
    gate_close();
    struct run run;
    run_begin(&run, (struct rv_agent_options){.handler = handle_at_gate, .threads = 2});
    steps_add(2);
    gate_wait_for(2);
    rv_agent_stop(run.agent);
    gate_open();
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    every_step_has_one_reply(2);
    rv_agent_close(run.agent);
}

static void a_request_is_answered_later_by_another_thread(void **state)
{
    (void)state;
    gate_close();
    struct run run;
    run_begin(&run, (struct rv_agent_options){.handler = handle_later, .threads = RV_THREADS_NONE});
    steps_add(1);
    gate_wait_for(1);
    assert_true(rv_request_remaining_ms(gate.last) > 0);
    assert_int_equal(rv_request_stopped(gate.last), RV_STOP_NO);
    rv_request_done(gate.last, "{\"later\":true}");
    assert_true(ended_wait(1));
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    every_step_has_one_reply(1);
    rv_agent_close(run.agent);
}

static void silence_after_the_deadline(void **state)
{
    (void)state;
    gate_close();
    server.remaining_ms = 50;
    struct run run;
    run_begin(&run, (struct rv_agent_options){.handler = handle_later, .threads = RV_THREADS_NONE});
    steps_add(1);
    gate_wait_for(1);
    struct rv_request *late = gate.last;
    while (rv_request_stopped(late) != RV_STOP_LATE)
        sched_yield();
    rv_request_done(late, "1");
    server.remaining_ms = 20000;
    steps_add(1);
    gate_wait_for(2);
    rv_request_done(gate.last, "1");
    assert_true(ended_wait(1));
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    assert_int_equal(server.late, 0);
    assert_int_equal(server.steps[0].state, STEP_OPEN);
    struct rv_agent_counts counts;
    rv_agent_count(run.agent, &counts);
    assert_int_equal(counts.late_dropped, 1);
    assert_int_equal(counts.expired, 1);
    rv_agent_close(run.agent);
}

static void handle_third_time(struct rv_request *request, void *user)
{
    (void)user;
    if (rv_request_try(request) < 3)
        rv_request_fail(request, &(struct rv_failure){.type = "busy", .transient = 1});
    else
        rv_request_done(request, NULL);
}

static void transient_failures_are_retried_here(void **state)
{
    (void)state;
    struct run run;
    run_begin(&run, (struct rv_agent_options){.handler = handle_third_time,
                                              .threads = 1,
                                              .retry_base_ms = 1,
                                              .circuit_failures = -1});
    steps_add(3);
    assert_true(ended_wait(3));
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    every_step_has_one_reply(3);
    struct rv_agent_counts counts;
    rv_agent_count(run.agent, &counts);
    assert_int_equal(counts.tries, 9);
    rv_agent_close(run.agent);
}

static void handle_never(struct rv_request *request, void *user)
{
    (void)user;
    rv_request_fail(request,
                    &(struct rv_failure){.type = "busy", .transient = 1, .retry_after_ms = 9000});
}

static void an_open_circuit_answers_without_the_handler(void **state)
{
    (void)state;
    struct run run;
    run_begin(&run,
              (struct rv_agent_options){
                  .handler = handle_never, .tries_max = 1, .threads = RV_THREADS_NONE, .max = 1});
    steps_add(8);
    assert_true(ended_wait(8));
    assert_int_equal(run_end(&run), RV_RESULT_OK);
    for (int i = 0; i < 8; i++)
        assert_string_equal(server.steps[i].error, i < 5 ? "busy" : "circuit-open");
    rv_agent_close(run.agent);
}

static void a_hung_handler_does_not_hold_the_end(void **state)
{
    (void)state;
    gate_close();
    server.remaining_ms = 50;
    struct run run;
    run_begin(&run, (struct rv_agent_options){.handler = handle_at_gate, .threads = 1});
    steps_add(1);
    gate_wait_for(1);
    assert_int_equal(run_end(&run), RV_RESULT_HUNG);
    rv_agent_close(run.agent); /* leaves it to the handler, which still waits at the gate */
}

/* ---- clients ---- */

static void a_lost_answer_is_asked_for_again_with_the_same_key(void **state)
{
    (void)state;
    server.cut_submissions = 2;
    struct rv_client *client = rv_client_open(server.url, NULL);
    struct rv_receipt receipt;
    int result = rv_client_submit(
        client, &(struct rv_submission){.workflow = "shop/order", .input = "{\"n\":1}"}, &receipt);
    assert_int_equal(result, RV_RESULT_OK);
    assert_int_equal(receipt.status, 200);
    assert_string_equal(receipt.task, "06DWX3T9H2K4Q");
    assert_string_equal(receipt.state, "pending");
    assert_int_equal(server.submissions, 3);
    assert_int_equal(strlen(server.keys[0]), 32);
    assert_string_equal(server.keys[0], server.keys[2]);
    char ended[16];
    assert_int_equal(rv_client_wait(client, receipt.task, 1000, ended, NULL), RV_RESULT_OK);
    assert_string_equal(ended, "compensated");
    rv_client_close(client);
}

static void without_a_key_nothing_is_repeated(void **state)
{
    (void)state;
    server.cut_submissions = 1;
    struct rv_client *client = rv_client_open(server.url, NULL);
    struct rv_receipt receipt;
    struct rv_submission submission = {.workflow = "shop/order", .without_key = 1};
    assert_int_equal(rv_client_submit(client, &submission, &receipt), RV_RESULT_UNREACHABLE);
    assert_int_equal(server.submissions, 1);
    assert_string_equal(server.keys[0], "");
    assert_non_null(strstr(rv_client_error(client), "may or may not"));
    rv_client_close(client);
}

static void many_are_submitted_in_few_calls(void **state)
{
    (void)state;
    enum { COUNT = 1200 };
    static struct rv_submission submissions[COUNT];
    static struct rv_receipt receipts[COUNT];
    for (int i = 0; i < COUNT; i++)
        submissions[i] = (struct rv_submission){.workflow = "shop/order", .priority = 9};
    struct rv_client *client = rv_client_open(server.url, NULL);
    assert_int_equal(rv_client_submit_many(client, submissions, COUNT, receipts),
                     RV_RESULT_REFUSED);
    assert_int_equal(server.submissions, 3);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(receipts[i].status, i % 2 ? 422 : 201);
        assert_string_equal(receipts[i].why, i % 2 ? "odd" : "");
    }
    rv_client_close(client);
}

static void a_server_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct rv_client_options options = {.patience_ms = -1};
    struct rv_client *client = rv_client_open("http://127.0.0.1:1", &options);
    struct rv_answer answer;
    assert_int_equal(rv_client_request(client, &(struct rv_call){.path = "/health/live"}, &answer),
                     RV_RESULT_UNREACHABLE);
    assert_non_null(strstr(rv_client_error(client), "http://127.0.0.1:1"));
    assert_non_null(strstr(rv_client_error(client), "reeve serve"));
    rv_answer_free(&answer);
    rv_client_close(client);
    assert_null(rv_client_open("ftp://127.0.0.1", NULL));
}

/* A line break would begin a header of its own. */
static void a_key_that_is_no_header_is_not_sent(void **state)
{
    (void)state;
    static const char *const keys[] = {"k\n", "k\r", "k\r\nX-Other: 1", "k\x7f"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct rv_client_options options = {.api_key = keys[i]};
        struct rv_client *client = rv_client_open(server.url, &options);
        struct rv_answer answer;
        assert_int_equal(
            rv_client_request(client, &(struct rv_call){.path = "/health/live"}, &answer),
            RV_RESULT_USAGE);
        assert_non_null(strstr(rv_client_error(client), "REEVE_API_KEY"));
        rv_answer_free(&answer);
        rv_client_close(client);
    }
}

static void a_refusal_says_why(void **state)
{
    (void)state;
    struct rv_client *client = rv_client_open(server.url, NULL);
    struct rv_answer answer;
    assert_int_equal(rv_client_request(client, &(struct rv_call){.path = "/v2"}, &answer),
                     RV_RESULT_REFUSED);
    assert_int_equal(answer.status, 404);
    assert_string_equal(answer.body, "");
    rv_answer_free(&answer);
    rv_client_close(client);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, server_open, server_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(steps_are_done_by_threads),
        WITH_SERVER(cut_connections_lose_and_double_nothing),
        WITH_SERVER(stop_waits_for_open_handlers_and_sends_their_replies),
        WITH_SERVER(a_request_is_answered_later_by_another_thread),
        WITH_SERVER(silence_after_the_deadline),
        WITH_SERVER(transient_failures_are_retried_here),
        WITH_SERVER(an_open_circuit_answers_without_the_handler),
        WITH_SERVER(a_lost_answer_is_asked_for_again_with_the_same_key),
        WITH_SERVER(without_a_key_nothing_is_repeated),
        WITH_SERVER(many_are_submitted_in_few_calls),
        WITH_SERVER(a_server_that_is_not_there_is_named),
        WITH_SERVER(a_key_that_is_no_header_is_not_sent),
        WITH_SERVER(a_refusal_says_why),
        WITH_SERVER(a_hung_handler_does_not_hold_the_end), /* last: its thread stays */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

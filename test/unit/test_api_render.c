/* From finished calls to answers: every field of the protocol, remaining time, merged attempts. */
#include "api/answer.h"
#include "api/put.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct rv_task_id task_id = {INT64_C(0x0123456789abcdef)};
#define TASK "028T5CY4TQKFF"
#define TRACE_ID "0af7651916cd43dd8448eb211c80319c"
#define TRACEPARENT "00-" TRACE_ID "-b7ad6b7169203331-01"
#define NOW INT64_C(1795224600000) /* 2026-11-21T01:30:00Z */

static void answer_is(void (*render)(struct rv_answer *, const struct rv_call *),
                      const struct rv_call *call, int status, const char *wanted)
{
    struct rv_answer answer;
    rv_answer_init(&answer);
    answer.now = NOW;
    render(&answer, call);
    rv_buf_add_char(&answer.body, '\0');
    assert_int_equal(answer.body.failed, RV_OK);
    assert_int_equal(answer.status, status);
    assert_string_equal(answer.body.at, wanted);
    rv_buf_done(&answer.body);
}

static void a_request_has_all_its_fields(void **state)
{
    (void)state;
    struct rv_assignment request = {.step = {task_id, 4},
                                    .attempt = 2,
                                    .fence = 17,
                                    .token = 0xabc,
                                    .complete_by = NOW + 9873,
                                    .lease_until = NOW + 5000,
                                    .reference = RV_STR("/do/0/reserveStock"),
                                    .input = RV_STR("{\"n\":1.0}"),
                                    .traceparent = RV_STR(TRACEPARENT)};
    struct rv_cancel_notice cancel = {.step = {task_id, 3}, .token = 1};
    struct rv_call call = {.kind = RV_CALL_POLL};
    call.u.poll.requests = &request;
    call.u.poll.requests_count = 1;
    call.u.poll.cancels = &cancel;
    call.u.poll.cancels_count = 1;
    answer_is(rv_render_poll, &call, 200,
              "{\"serverTime\":\"2026-11-21T01:30:00.000Z\",\"requests\":[{\"step\":\"" TASK "-4\","
              "\"task\":\"" TASK "\",\"reference\":\"/do/0/reserveStock\",\"attempt\":2,"
              "\"token\":\"0000000000000abc\",\"fence\":17,\"idempotencyKey\":\"" TASK "-4\","
              "\"completeBy\":\"2026-11-21T01:30:09.873Z\",\"remainingMs\":9873,\"leaseMs\":5000,"
              "\"input\":{\"n\":1.0},\"traceparent\":\"" TRACEPARENT
              "\"}],\"cancel\":[{\"step\":\"" TASK "-3\",\"token\":\"0000000000000001\"}]}");
    request.complete_by = NOW - 5;
    request.lease_until = NOW - 5;
    struct rv_answer answer;
    rv_answer_init(&answer);
    answer.now = NOW;
    rv_render_poll(&answer, &call);
    rv_buf_add_char(&answer.body, '\0');
    assert_non_null(strstr(answer.body.at, "\"remainingMs\":0,\"leaseMs\":0"));
    rv_buf_done(&answer.body);
}

static void replies_answer_in_order(void **state)
{
    (void)state;
    struct rv_reply_item items[] = {
        {.step = {task_id, 1}, .status = 200},
        {.refused = 413, .refusal = RV_STR("too large"), .status = 409},
        {.refused = 422, .named = {task_id, 7}, .refusal = RV_STR("wrong"), .status = 409},
        {.step = {task_id, 2}, .status = 410, .message = RV_STR("too late")},
    };
    struct rv_call call = {.kind = RV_CALL_REPLIES};
    call.u.replies.items = items;
    call.u.replies.count = 4;
    answer_is(rv_render_replies, &call, 200,
              "{\"results\":[{\"step\":\"" TASK "-1\",\"status\":200},"
              "{\"step\":null,\"status\":413,\"detail\":\"too large\"},"
              "{\"step\":\"" TASK "-7\",\"status\":422,\"detail\":\"wrong\"},"
              "{\"step\":\"" TASK "-2\",\"status\":410,\"detail\":\"too late\"}]}");
    call.u.replies.count = 1;
    call.u.replies.has_next = true;
    answer_is(rv_render_replies, &call, 200,
              "{\"results\":[{\"step\":\"" TASK "-1\",\"status\":200}],"
              "\"serverTime\":\"2026-11-21T01:30:00.000Z\",\"requests\":[],\"cancel\":[]}");
}

static void leases_tell_the_time_that_is_left(void **state)
{
    (void)state;
    struct rv_lease_item item = {.step = {task_id, 1},
                                 .status = 200,
                                 .lease_until = NOW + 15000,
                                 .complete_by = NOW + 60000};
    struct rv_call call = {.kind = RV_CALL_LEASES};
    call.u.leases.items = &item;
    call.u.leases.count = 1;
    answer_is(rv_render_leases, &call, 200,
              "{\"results\":[{\"step\":\"" TASK
              "-1\",\"status\":200,\"leaseMs\":15000,\"remainingMs\":60000,\"cancel\":false}]}");
}

static void submissions_tell_new_known_and_refused(void **state)
{
    (void)state;
    struct rv_submission items[] = {
        {.task = task_id, .state = RV_TASK_PENDING},
        {.task = task_id, .state = RV_TASK_PROCESSED, .known = true},
        {.err = RV_ERR_LIMIT, .message = RV_STR("tasks[2].input is too large")},
    };
    struct rv_call call = {.kind = RV_CALL_SUBMIT};
    call.u.submit.items = items;
    call.u.submit.count = 1;
    answer_is(rv_render_submit, &call, 201,
              "{\"task\":\"" TASK "\",\"state\":\"pending\",\"status\":201}");
    call.u.submit.items = items + 1;
    answer_is(rv_render_submit, &call, 200,
              "{\"task\":\"" TASK "\",\"state\":\"processed\",\"status\":200}");
    call.u.submit.items = items + 2;
    answer_is(rv_render_submit, &call, 413,
              "{\"type\":\"urn:reeve:error:LIMIT\",\"title\":\"over a limit\",\"status\":413,"
              "\"detail\":\"tasks[2].input is too large\"}");
    call.u.submit = (struct rv_call_submit){.items = items, .count = 3, .batch = true};
    answer_is(rv_render_submit, &call, 200,
              "{\"tasks\":[{\"task\":\"" TASK "\",\"state\":\"pending\",\"status\":201},"
              "{\"task\":\"" TASK "\",\"state\":\"processed\",\"status\":200},"
              "{\"error\":{\"type\":\"urn:reeve:error:LIMIT\",\"title\":\"over a limit\","
              "\"status\":413,\"detail\":\"tasks[2].input is too large\"},\"status\":413}]}");
}

static void a_task_shows_what_it_has(void **state)
{
    (void)state;
    struct rv_workflow_row workflow = {
        .space = RV_STR("shop"), .name = RV_STR("order"), .version = RV_STR("1.0.0")};
    struct rv_task task = {.id = task_id,
                           .revision = 3,
                           .state = RV_TASK_PROCESSED,
                           .priority = 5,
                           .locked_by = 1,
                           .fence = 2,
                           .last_number = 2,
                           .created_at = NOW,
                           .ended_at = NOW + 1,
                           .key = RV_STR("k\"1"),
                           .input = RV_STR("{}"),
                           .output = RV_STR("[1]"),
                           .trace = RV_STR(TRACEPARENT)};
    struct rv_call call = {.kind = RV_CALL_SHOW};
    call.u.show.found = &task;
    call.u.show.workflow = &workflow;
    answer_is(rv_render_show, &call, 200,
              "{\"task\":\"" TASK "\",\"workflow\":\"shop/order:1.0.0\",\"state\":\"processed\","
              "\"direction\":\"forward\",\"priority\":5,\"revision\":3,\"lockedBy\":1,\"fence\":2,"
              "\"steps\":2,\"key\":\"k\\\"1\",\"traceId\":\"" TRACE_ID "\","
              "\"createdAt\":\"2026-11-21T01:30:00.000Z\","
              "\"endedAt\":\"2026-11-21T01:30:00.001Z\",\"input\":{},\"output\":[1]}");
}

#define ROW(step, n, how, effect)                                                                  \
    "{\"step\":\"" TASK "-" step "\",\"attempt\":" n ",\"state\":\"" how "\",\"effect\":\"" effect \
    "\",\"fence\":0}"
#define EXPIRED_1_1 ROW("1", "1", "expired", "unknown")
#define DONE_1_2 ROW("1", "2", "done", "done")
#define FAILED_3_1 ROW("3", "1", "failed", "none")
#define FAILED_3_2 ROW("3", "2", "failed", "none")
#define OPEN_4_1 ROW("4", "1", "open", "none")

/* A full page says where to go on, as does one that the store cut short; the last says nothing. */
static void a_page_of_tasks_says_where_to_go_on(void **state)
{
    (void)state;
    static const struct {
        size_t limit;
        int64_t stopped_at;
        bool goes_on;
    } cases[] = {{1, 0, true}, {2, 0, false}, {2, 5, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rv_task task = {.id = task_id};
        struct rv_call call = {.kind = RV_CALL_TASKS};
        struct rv_answer answer;
        call.u.list.tasks = &task;
        call.u.list.count = 1;
        call.u.list.limit = cases[i].limit;
        call.u.list.next.value = cases[i].stopped_at;
        rv_answer_init(&answer);
        rv_render_tasks(&answer, &call);
        rv_buf_add_char(&answer.body, '\0');
        assert_int_equal(strstr(answer.body.at, "\"next\":\"") != NULL, cases[i].goes_on);
        rv_buf_done(&answer.body);
    }
}

static void attempts_of_both_tables_are_one_list(void **state)
{
    (void)state;
    struct rv_attempt attempts[] = {
        {.step = {task_id, 1},
         .number = 1,
         .state = RV_ATTEMPT_EXPIRED,
         .effect = RV_EFFECT_UNKNOWN},
        {.step = {task_id, 3}, .number = 1, .state = RV_ATTEMPT_FAILED},
        {.step = {task_id, 3}, .number = 2, .state = RV_ATTEMPT_FAILED},
    };
    struct rv_step steps[] = {
        {.number = 1,
         .attempt = 2,
         .attempt_state = RV_ATTEMPT_DONE,
         .effect = RV_EFFECT_DONE,
         .attempt_effect = RV_EFFECT_DONE},
        {.number = 2}, /* inline: no attempt */
        {.number = 3, .attempt = 2, .attempt_state = RV_ATTEMPT_FAILED},
        {.number = 4, .attempt = 1, .attempt_state = RV_ATTEMPT_OPEN},
    };
    struct rv_call call = {.kind = RV_CALL_ATTEMPTS};
    call.u.list = (struct rv_call_list){.task = task_id,
                                        .limit = 100,
                                        .attempts = attempts,
                                        .count = 3,
                                        .steps = steps,
                                        .steps_count = 4};
    answer_is(rv_render_attempts, &call, 200,
              "{\"attempts\":[" EXPIRED_1_1 "," DONE_1_2 "," FAILED_3_1 "," FAILED_3_2 "," OPEN_4_1
              "]}");
    /* A full page says where to go on and nothing about what comes after that. */
    call.u.list.limit = 2;
    call.u.list.count = 2;
    call.u.list.steps_count = 1;
    answer_is(rv_render_attempts, &call, 200,
              "{\"attempts\":[" EXPIRED_1_1 "," DONE_1_2 "," FAILED_3_1 "],\"next\":\"3.1\"}");
    /* The next page begins inside step 3. */
    call.u.list = (struct rv_call_list){.task = task_id,
                                        .limit = 100,
                                        .after_step = 3,
                                        .after = 1,
                                        .attempts = attempts + 2,
                                        .count = 1,
                                        .steps = steps + 2,
                                        .steps_count = 2};
    answer_is(rv_render_attempts, &call, 200, "{\"attempts\":[" FAILED_3_2 "," OPEN_4_1 "]}");
}

static void a_failed_call_is_a_problem(void **state)
{
    (void)state;
    struct rv_call call = {.err = RV_ERR_FULL, .message = RV_STR("the disk is full: make room")};
    struct rv_answer answer;
    rv_answer_init(&answer);
    rv_buf_lit(&answer.body, "half an answer");
    assert_true(rv_answer_failed(&answer, &call));
    assert_int_equal(answer.status, 503);
    assert_int_equal(answer.retry_after_s, 1);
    assert_true(answer.problem);
    rv_buf_add_char(&answer.body, '\0');
    assert_string_equal(answer.body.at,
                        "{\"type\":\"urn:reeve:error:FULL\",\"title\":\"the disk is full\","
                        "\"status\":503,\"detail\":\"the disk is full: make room\"}");
    rv_buf_done(&answer.body);
    call.err = RV_OK;
    assert_false(rv_answer_failed(&answer, &call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_all_its_fields),
        cmocka_unit_test(replies_answer_in_order),
        cmocka_unit_test(leases_tell_the_time_that_is_left),
        cmocka_unit_test(submissions_tell_new_known_and_refused),
        cmocka_unit_test(a_task_shows_what_it_has),
        cmocka_unit_test(a_page_of_tasks_says_where_to_go_on),
        cmocka_unit_test(attempts_of_both_tables_are_one_list),
        cmocka_unit_test(a_failed_call_is_a_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Much at once: limits are told, and what is within them comes to its end (RULES 11). */
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const waits = DOCUMENT("waits") "do:\n  - pause: {wait: PT5S}\n";

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    world_publish(&w, workflow_file("order"));
    world_publish(&w, waits);
    world_publish(&w, workflow_file("bounds/counts"));
    *state = &w;
    return 0;
}

static struct rv_call *submit_many(struct world *w, const char *workflow, size_t count)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){.space = RV_STR("shop"), .name = rv_str_of(workflow)};
    call->u.submit.items = items;
    call->u.submit.count = count;
    call->u.submit.batch = true;
    assert_true(world_run(w, call));
    assert_int_equal(call->err, RV_OK);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i].err, RV_OK);
    return call;
}

static void two_thousand_timers_of_one_instant_all_come(void **state)
{
    struct world *w = *state;
    struct rv_call *calls[2];
    for (int i = 0; i < 2; i++)
        calls[i] = submit_many(w, "waits", RV_CALL_ITEMS_MAX);
    world_pass(w, 4999);
    for (int i = 0; i < 2; i++)
        assert_state(w, calls[i]->u.submit.items[0].task, "processing");
    world_pass(w, 1);
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; n < RV_CALL_ITEMS_MAX; n += 37)
            assert_state(w, calls[i]->u.submit.items[n].task, "processed");
}

/* Each takes several batches, and a batch takes only a few of them: all are answered, and a poll
 * that comes meanwhile is as well. */
static void heavy_tasks_take_turns(void **state)
{
    struct world *w = *state;
    struct rv_call *call = submit_many(w, "counts", 20);
    struct rv_task_id order = world_submit(w, "order", "{}");
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, order.value);
    world_settle(w);
    for (size_t i = 0; i < 20; i++) {
        const struct rv_task *task = world_task(w, call->u.submit.items[i].task);
        assert_int_equal(task->state, RV_TASK_PROCESSED);
        assert_string_equal(task->output.at, "{\"n\":1000}");
    }
}

/* A call with many replies, each of which starts a heavy run, and the next poll with them: all are
 * answered once, with all that they took. */
static void heavy_replies_take_turns(void **state)
{
    enum { REPLIES = 12 };
    struct world *w = *state;
    world_publish(w, workflow_file("bounds/then-counts"));
    struct rv_call *tasks = submit_many(w, "then-counts", REPLIES);
    struct rv_call *poll = world_poll(w, "agent", "i1", REPLIES);
    assert_int_equal(poll->u.poll.requests_count, REPLIES);
    struct rv_task_id next = world_submit(w, "then-counts", "{}");
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item items[REPLIES];
    for (size_t i = 0; i < REPLIES; i++)
        items[i] = (struct rv_reply_item){.step = poll->u.poll.requests[i].step,
                                          .token = poll->u.poll.requests[i].token,
                                          .reply = {.output = RV_STR("{}")}};
    call->u.replies.items = items;
    call->u.replies.count = REPLIES;
    call->u.replies.has_next = true;
    call->u.replies.next = poll->u.poll;
    call->u.replies.next.poll = RV_STR("next");
    call->u.replies.next.requests = NULL;
    call->u.replies.next.requests_count = 0;
    assert_true(world_run(w, call));
    world_pass(w, 1000); /* their workflow owes time: what follows waits for its turn */
    for (size_t i = 0; i < REPLIES; i++) {
        assert_int_equal(items[i].status, 200);
        assert_state(w, tasks->u.submit.items[i].task, "processed");
    }
    assert_int_equal(call->u.replies.next.requests_count, 1);
    assert_int_equal(call->u.replies.next.requests[0].step.task.value, next.value);
}

/* The rest of the call waits for room in the batch, and the decisions before it for time: without
 * either the server sleeps. */
static void replies_behind_long_decisions_have_their_turn(void **state)
{
    enum { REPLIES = 20, BUSY_MS = 600, BATCHES_MAX = 100 };
    struct world *w = *state;
    world_publish(w, DOCUMENT("then-sums") "do:\n"
                                           "  - ask: {call: agent}\n"
                                           "  - sum: {set: {n: '${ [range(20000)] | add }'}}\n");
    world_publish(w, DOCUMENT("light") "do:\n  - a: {set: {n: 1}}\n");
    struct rv_call *tasks = submit_many(w, "then-sums", REPLIES);
    struct rv_task_id ids[REPLIES];
    for (size_t i = 0; i < REPLIES; i++)
        ids[i] = tasks->u.submit.items[i].task;
    struct rv_call *poll = world_poll(w, "agent", "i1", REPLIES);
    assert_int_equal(poll->u.poll.requests_count, REPLIES);
    struct rv_reply_item items[REPLIES];
    for (size_t i = 0; i < REPLIES; i++)
        items[i] = (struct rv_reply_item){
            .step = poll->u.poll.requests[i].step,
            .token = poll->u.poll.requests[i].token,
            .reply = {.output = RV_STR("{\"is\":\"as it should be\"}")}};
    w->turn_fuel = 500;
    w->batch_bytes_max = 64; /* three of the replies */
    world_restart(w, 1);
    for (int ms = 0; ms < BUSY_MS; ms++) { /* others have work, and go first */
        world_submit(w, "light", "{}");
        world_pass(w, 1);
    }
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    call->u.replies.items = items;
    call->u.replies.count = REPLIES;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, 1, w->mono), RV_OK);
    int batches = 1;
    for (; rv_scheduler_next_wake(w->scheduler, w->mono) == 0 && batches <= BATCHES_MAX; batches++)
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
    assert_in_range(batches, 1, BATCHES_MAX);
    world_pass(w, 30000);
    for (size_t i = 0; i < REPLIES; i++) {
        assert_int_equal(items[i].status, 200);
        assert_state(w, ids[i], "processed");
    }
}

/* More definitions than are kept compiled. */
static void hundreds_of_workflows_run_side_by_side(void **state)
{
    enum { WORKFLOWS = 300 };
    struct world *w = *state;
    struct rv_task_id tasks[WORKFLOWS];
    for (int i = 0; i < WORKFLOWS; i++) {
        char yaml[200], name[16];
        snprintf(yaml, sizeof yaml, DOCUMENT("w%d") "do: [{a: {call: agent, with: {n: %d}}}]\n", i,
                 i);
        snprintf(name, sizeof name, "w%d", i);
        world_publish(w, yaml);
        tasks[i] = world_submit(w, name, "{}");
    }
    for (int i = 0; i < WORKFLOWS; i++) {
        struct rv_assignment request = world_take(w, "agent", "i1");
        char expected[32];
        snprintf(expected, sizeof expected, "{\"n\":%d}", i);
        assert_int_equal(request.step.task.value, tasks[i].value);
        assert_string_equal(request.input.at, expected);
        assert_int_equal(world_done(w, request, "{}"), 200);
    }
    for (int i = 0; i < WORKFLOWS; i += 23)
        assert_state(w, tasks[i], "processed");
}

/* docs/guide/agents.md: waitMs is at most 50 s, whatever was asked for. */
static void a_poll_waits_fifty_seconds_at_most(void **state)
{
    struct world *w = *state;
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("b1"),
                                    .poll = RV_STR("p1"),
                                    .max = 1,
                                    .wait_ms = 3600 * 1000};
    assert_false(world_run(w, call));
    world_pass(w, RV_WAIT_MS_MAX - 1);
    assert_false(world_finished(call));
    world_pass(w, 1);
    assert_true(world_finished(call));
    assert_int_equal(call->err, RV_OK);
}

static void parked_finish(struct rv_call *call)
{
    call->owner = NULL;
}

/* As many polls as may be parked; each of a hundred kinds of agents has its share. */
static struct rv_call *park_all(struct world *w, char (*names)[16])
{
    struct rv_call *parked = calloc(RV_POLLS_PARKED_MAX, sizeof *parked);
    static struct rv_call *batch[RV_BATCH_COMMANDS_MAX];
    assert_non_null(parked);
    for (size_t i = 0; i < RV_POLLS_PARKED_MAX; i++) {
        struct rv_call *call = &parked[i];
        snprintf(names[i], sizeof names[i], "%zu", i);
        *call = (struct rv_call){.kind = RV_CALL_POLL,
                                 .serial = 1000000 + i,
                                 .mono_at = w->mono,
                                 .finish = parked_finish,
                                 .owner = w};
        rv_arena_init(&call->arena, 0);
        call->u.poll = (struct rv_poll){.agent = rv_str_of(names[i % 100]),
                                        .instance = rv_str_of(names[i]),
                                        .boot = RV_STR("b"),
                                        .poll = RV_STR("p"),
                                        .max = 1,
                                        .wait_ms = 20000};
        batch[i % RV_BATCH_COMMANDS_MAX] = call;
        if (i % RV_BATCH_COMMANDS_MAX == RV_BATCH_COMMANDS_MAX - 1)
            assert_int_equal(
                rv_scheduler_run_batch(w->scheduler, batch, RV_BATCH_COMMANDS_MAX, w->mono), RV_OK);
    }
    return parked;
}

static void one_parked_poll_too_many_is_told_so(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    static char names[RV_POLLS_PARKED_MAX][16];
    struct rv_call *parked = park_all(w, names);
    for (size_t i = 0; i < RV_POLLS_PARKED_MAX; i++)
        assert_ptr_equal(parked[i].owner, w);
    struct rv_call *more = world_call(w, RV_CALL_POLL);
    more->u.poll = parked[0].u.poll;
    more->u.poll.instance = RV_STR("one more");
    assert_true(world_run(w, more));
    assert_int_equal(more->err, RV_ERR_BUSY);
    assert_int_equal(strncmp(more->message.at, "too many polls are waiting", 26), 0);
    /* Who only waits to see a change is answered as it stands. */
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    show->u.show.wait_ms = 20000;
    show->u.show.after_revision = INT64_MAX;
    assert_true(world_run(w, show));
    assert_int_equal(show->err, RV_OK);
    assert_int_equal(show->u.show.found->state, RV_TASK_PENDING);
    world_pass(w, 20000);
    for (size_t i = 0; i < RV_POLLS_PARKED_MAX; i++) {
        assert_null(parked[i].owner);
        rv_arena_done(&parked[i].arena);
    }
    free(parked);
}

/* Its caller alone hears of it: everybody else in the batch is answered. */
static void an_answer_without_room_is_refused_alone(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *steps = world_call(w, RV_CALL_STEPS);
    steps->u.list.task = task;
    steps->arena.bytes_max = 100;
    assert_true(world_run(w, steps));
    assert_int_equal(steps->err, RV_ERR_LIMIT);
    assert_int_equal(w->batches_failed, 0);
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    show->u.show.wait_ms = 1000;
    show->u.show.after_revision = INT64_MAX;
    show->arena.bytes_max = 100;
    assert_true(world_run(w, show));
    assert_int_equal(show->err, RV_ERR_LIMIT);
    assert_int_equal(w->batches_failed, 0);
}

static struct rv_call *large_call(struct world *w, size_t count, size_t bytes)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    char *input = rv_arena_bytes(&call->arena, bytes);
    assert_non_null(items);
    assert_non_null(input);
    memset(input, ' ', bytes);
    memcpy(input, "{}", 2);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){
            .space = RV_STR("shop"), .name = RV_STR("order"), .input = {input, bytes}};
    call->u.submit.items = items;
    call->u.submit.count = count;
    call->u.submit.batch = true;
    return call;
}

/* Whoever submits one task does not wait for the megabytes of others; they come in their turn. */
static void large_calls_take_turns(void **state)
{
    struct world *w = *state;
    enum { LARGE = 4, ITEMS = 7 };
    struct rv_call *calls[LARGE + 1];
    for (int i = 0; i < LARGE; i++)
        calls[i] = large_call(w, ITEMS, RV_PAYLOAD_BYTES_MAX);
    calls[LARGE] = large_call(w, 1, 2);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, LARGE + 1, w->mono), RV_OK);
    assert_true(world_finished(calls[LARGE]));
    for (int i = 0; i < LARGE; i++)
        assert_false(world_finished(calls[i]));
    world_pass(w, 10000); /* it takes time to read them */
    for (int i = 0; i < LARGE; i++) {
        assert_true(world_finished(calls[i]));
        for (int n = 0; n < ITEMS; n++)
            assert_int_equal(calls[i]->u.submit.items[n].err, RV_OK);
    }
}

static struct rv_call *poll_call(struct world *w, const char *agent, const char *poll)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = rv_str_of(agent),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("boot-1"),
                                    .poll = rv_str_of(poll),
                                    .max = RV_POLL_REQUESTS_MAX};
    return call;
}

/* What the agents of one name are handed out in megabytes does not keep others from their work. */
static void kinds_of_agents_take_turns(void **state)
{
    struct world *w = *state;
    enum { TASKS = 20, TEXT_BYTES = RV_PAYLOAD_BYTES_MAX - 100 };
    static const char *const polls[] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    char *input = malloc(RV_PAYLOAD_BYTES_MAX);
    assert_non_null(input);
    snprintf(input, RV_PAYLOAD_BYTES_MAX, "{\"text\":\"%*s\"}", TEXT_BYTES, "");
    world_publish(w, DOCUMENT("modest") "do: [{a: {call: modest, with: {n: 1}}}]\n");
    world_publish(w, DOCUMENT("greedy") "do: [{a: {call: greedy, with: {text: '${ .text }'}}}]\n");
    (void)world_submit(w, "modest", "{}");
    for (int i = 0; i < TASKS; i++)
        (void)world_submit(w, "greedy", input);
    free(input);
    size_t modest = 0;
    for (size_t batch = 0; batch < 2; batch++) {
        struct rv_call *calls[] = {poll_call(w, "greedy", polls[3 * batch]),
                                   poll_call(w, "greedy", polls[3 * batch + 1]),
                                   poll_call(w, "modest", polls[3 * batch + 2])};
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 3, w->mono), RV_OK);
        assert_true(world_finished(calls[0]) && world_finished(calls[1]));
        assert_true(world_finished(calls[2]));
        modest += calls[2]->u.poll.requests_count;
    }
    assert_int_equal(modest, 1);
}

enum { TURN_CALLS = 3, TURN_ITEMS = 1000 };

/* Calls with so many replies to nothing that those after them wait for their turn; the first reply
 * of the last large one is to the request. */
static void turns_fill(struct world *w, struct rv_call **calls, struct rv_assignment request,
                       int64_t mono_at)
{
    for (int i = 0; i <= TURN_CALLS; i++) {
        calls[i] = world_call(w, RV_CALL_REPLIES);
        struct rv_call_replies *replies = &calls[i]->u.replies;
        replies->count = i < TURN_CALLS ? TURN_ITEMS : 17;
        replies->items = RV_NEW_ARRAY(&calls[i]->arena, struct rv_reply_item, replies->count);
        for (size_t n = 0; n < replies->count; n++)
            replies->items[n] = (struct rv_reply_item){.reply.output = RV_STR("{}")};
        calls[i]->mono_at = mono_at;
    }
    calls[TURN_CALLS]->u.replies.items[0].step = request.step;
    calls[TURN_CALLS]->u.replies.items[0].token = request.token;
}

/* Replies beyond the bound of a batch are decided before their attempts expire. */
static void replies_that_wait_their_turn_are_in_time(void **state)
{
    struct world *w = *state;
    struct rv_call *calls[TURN_CALLS + 1];
    (void)world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    int64_t left = request.complete_by - w->now;
    turns_fill(w, calls, request, w->mono + left - 1);
    w->now += left + 1000;
    w->mono += left + 1000;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, TURN_CALLS + 1, w->mono), RV_OK);
    assert_false(world_finished(calls[TURN_CALLS]));
    world_settle(w);
    assert_true(world_finished(calls[TURN_CALLS]));
    assert_int_equal(calls[TURN_CALLS]->u.replies.items[0].status, 200);
}

/* The same reply once more, late and in a small call, which does not wait its turn: both are
 * answered by what the first has said. */
static void a_late_copy_does_not_pass_the_reply_that_was_in_time(void **state)
{
    struct world *w = *state;
    struct rv_call *calls[TURN_CALLS + 2];
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    int64_t left = request.complete_by - w->now;
    turns_fill(w, calls, request, w->mono + left - 1);
    struct rv_reply_item copy = {
        .step = request.step, .token = request.token, .reply.output = RV_STR("{}")};
    struct rv_call *small = calls[TURN_CALLS + 1] = world_call(w, RV_CALL_REPLIES);
    small->u.replies.items = &copy;
    small->u.replies.count = 1;
    small->mono_at = w->mono + left + 1;
    w->now += left + 1000;
    w->mono += left + 1000;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, TURN_CALLS + 2, w->mono), RV_OK);
    world_settle(w);
    assert_int_equal(calls[TURN_CALLS]->u.replies.items[0].status, 200);
    assert_int_equal(copy.status, 200);
    assert_int_equal(world_count_late(w, task), 0);
}

/* A reply of the life before waits its turn: until it is decided its attempt is open, and the new
 * life gets nothing. */
static void a_new_life_waits_for_the_replies_of_the_one_before(void **state)
{
    struct world *w = *state;
    struct rv_call *calls[TURN_CALLS + 2];
    struct rv_task_id first = world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    (void)world_submit(w, "order", "{}");
    turns_fill(w, calls, request, w->mono);
    struct rv_call *poll = calls[TURN_CALLS + 1] = poll_call(w, "inventory", "p1");
    poll->u.poll.boot = RV_STR("another life");
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, TURN_CALLS + 2, w->mono), RV_OK);
    assert_false(world_finished(calls[TURN_CALLS]));
    assert_false(world_finished(poll));
    world_settle(w);
    assert_int_equal(calls[TURN_CALLS]->u.replies.items[0].status, 200);
    assert_int_equal(world_step(w, first, request.step.number)->state, RV_STEP_PROCESSED);
    assert_true(world_finished(poll));
    assert_int_equal(poll->u.poll.requests_count, 1);
}

static struct rv_call *replies_of(struct world *w, struct rv_task_id task, size_t count)
{
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    struct rv_call_replies *replies = &call->u.replies;
    replies->count = count;
    replies->items = RV_NEW_ARRAY(&call->arena, struct rv_reply_item, count);
    for (size_t n = 0; n < count; n++)
        replies->items[n] = (struct rv_reply_item){.step = {task, 2 + (uint32_t)n},
                                                   .reply.output = RV_STR("{}")};
    return call;
}

/* Calls of one batch that together name more steps than one load has room for (4,000): what is over
 * is loaded one by one, and nobody in the batch is refused for it. */
static void more_steps_than_one_load_takes_are_all_decided(void **state)
{
    struct world *w = *state;
    enum { SMALL = 130, CALLS = SMALL + 3, SMALL_ITEMS = 16 };
    struct rv_call *calls[CALLS];
    (void)world_submit(w, "order", "{}");
    struct rv_assignment request = world_take(w, "inventory", "i1");
    calls[0] = replies_of(w, request.step.task, RV_CALL_ITEMS_MAX - 1);
    calls[1] = replies_of(w, request.step.task, RV_CALL_ITEMS_MAX);
    for (int i = 2; i < SMALL + 2; i++)
        calls[i] = replies_of(w, request.step.task, SMALL_ITEMS);
    calls[CALLS - 1] = large_call(w, 1, 2);
    struct rv_reply_item *last = &calls[SMALL + 1]->u.replies.items[SMALL_ITEMS - 1];
    last->step = request.step;
    last->token = request.token;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, CALLS, w->mono), RV_OK);
    world_settle(w);
    for (int i = 0; i < CALLS; i++)
        assert_true(world_finished(calls[i]));
    assert_int_equal(last->status, 200);
    for (int i = 0; i < SMALL + 2; i++)
        assert_int_equal(calls[i]->u.replies.items[0].status, 409);
    assert_int_equal(calls[CALLS - 1]->u.submit.items[0].err, RV_OK);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(an_answer_without_room_is_refused_alone),
        SCENARIO(two_thousand_timers_of_one_instant_all_come),
        SCENARIO(large_calls_take_turns),
        SCENARIO(kinds_of_agents_take_turns),
        SCENARIO(replies_that_wait_their_turn_are_in_time),
        SCENARIO(a_late_copy_does_not_pass_the_reply_that_was_in_time),
        SCENARIO(a_new_life_waits_for_the_replies_of_the_one_before),
        SCENARIO(more_steps_than_one_load_takes_are_all_decided),
        SCENARIO(heavy_tasks_take_turns),
        SCENARIO(heavy_replies_take_turns),
        SCENARIO(replies_behind_long_decisions_have_their_turn),
        SCENARIO(hundreds_of_workflows_run_side_by_side),
        SCENARIO(a_poll_waits_fifty_seconds_at_most),
        SCENARIO(one_parked_poll_too_many_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Polls, lost answers, boots, leases: the server's side of the agent protocol. */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int open_world(void **state)
{
    return world_setup(state, NULL, WORLD_FILES("order", "polls/leased"));
}

static struct rv_call *poll_as(struct world *w, const char *instance, const char *boot,
                               const char *poll, bool confirms, const char *confirmed,
                               int64_t wait_ms)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    struct rv_str *confirm = RV_NEW(&call->arena, struct rv_str);
    *confirm = rv_str_of(confirmed);
    call->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = rv_str_of(instance),
                                    .boot = rv_str_of(boot),
                                    .poll = rv_str_of(poll),
                                    .max = 8,
                                    .wait_ms = wait_ms,
                                    .confirms = confirms,
                                    .confirm = confirm,
                                    .confirm_count = confirmed != NULL};
    world_run(w, call);
    return call;
}

static size_t requests(const struct rv_call *call)
{
    assert_true(world_finished(call));
    return call->u.poll.requests_count;
}

static void the_same_poll_gets_the_same_attempts(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    struct rv_call *again = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(first), 1);
    assert_int_equal(requests(again), 1);
    assert_int_equal(first->u.poll.requests[0].token, again->u.poll.requests[0].token);
    world_restart(w, 100);
    again = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(again), 1);
    assert_int_equal(first->u.poll.requests[0].token, again->u.poll.requests[0].token);
    assert_int_equal(world_step(w, task, 1)->attempt, 1);
}

/* Right after a restart, when nobody knows yet what the instance holds, but that it holds something
 * that it shall stop. */
static void a_repeated_poll_is_not_answered_with_cancels_alone(void **state)
{
    struct world *w = *state;
    struct rv_task_id cancelled = world_submit(w, "order", "{}");
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 0)), 1);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, cancelled), RV_OK);
    (void)world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p2", true, "p1", 0);
    assert_int_equal(requests(first), 1);
    world_restart_unlooked(w, 100);
    struct rv_call *call = world_call(w, RV_CALL_REPLIES);
    call->u.replies.has_next = true;
    call->u.replies.next = first->u.poll;
    call->u.replies.next.requests_count = call->u.replies.next.cancels_count = 0;
    assert_true(world_run(w, call));
    assert_int_equal(call->u.replies.next.cancels_count, 1);
    assert_int_equal(call->u.replies.next.requests_count, 1);
    assert_int_equal(call->u.replies.next.requests[0].token, first->u.poll.requests[0].token);
}

static void an_answer_that_is_not_confirmed_was_lost(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    struct rv_call *second = poll_as(w, "i1", "b1", "p2", true, NULL, 0);
    assert_int_equal(requests(second), 1);
    const struct rv_step *step = world_step(w, task, 1);
    assert_int_equal(step->attempt, 2);
    assert_int_equal(step->failure_count, 0);
    assert_int_equal(step->effect, RV_EFFECT_UNKNOWN);
    assert_int_equal(world_done(w, first->u.poll.requests[0], "1"), 410);
    assert_int_equal(world_done(w, second->u.poll.requests[0], "1"), 200);
}

static void a_confirmed_answer_was_not(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p2", true, "p1", 0)), 0);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p3", true, NULL, 0)), 0);
    assert_int_equal(world_step(w, task, 1)->attempt, 1);
    assert_int_equal(world_done(w, first->u.poll.requests[0], "1"), 200);
}

/* Nor was one whose confirmation came in a batch that the store refused. */
static void what_a_refused_batch_heard_is_heard(void **state)
{
    (void)state;
    static struct world w;
    struct store_faults faults = {.fail_with = RV_ERR_BUSY};
    world_open_faulty(&w, &faults);
    world_publish(&w, workflow_file("order"));
    struct rv_task_id task = world_submit(&w, "order", "{}");
    struct rv_call *first = poll_as(&w, "i1", "b1", "p1", true, NULL, 0);
    faults.fail_at = faults.calls + 1;
    struct rv_call *refused = poll_as(&w, "i1", "b1", "p2", true, "p1", 0);
    faults.fail_at = 0;
    assert_int_equal(refused->err, RV_ERR_BUSY);
    assert_int_equal(requests(poll_as(&w, "i1", "b1", "p3", true, NULL, 0)), 0);
    assert_int_equal(world_step(&w, task, 1)->attempt, 1);
    assert_int_equal(world_done(&w, first->u.poll.requests[0], "1"), 200);
    world_close(&w);
}

static void agents_without_confirm_rely_on_complete_by(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", false, NULL, 0)), 1);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p2", false, NULL, 0)), 0);
    assert_int_equal(world_step(w, task, 1)->attempt, 1);
    world_pass(w, 12000);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p3", false, NULL, 0)), 1);
}

static void a_new_boot_ends_the_old_boots_attempts_at_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(first), 1);
    assert_int_equal(requests(poll_as(w, "i1", "b2", "p1", true, NULL, 0)), 0);
    const struct rv_step *step = world_step(w, task, 1);
    assert_int_equal(step->attempt_state, RV_ATTEMPT_LOST);
    assert_int_equal(step->failure_count, 1);
    world_pass(w, 1300);
    assert_int_equal(requests(poll_as(w, "i1", "b2", "p2", true, NULL, 0)), 1);
}

static void poll_inside(struct world *w, const char *boot, size_t wanted)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("server"),
                                    .boot = rv_str_of(boot),
                                    .poll = RV_STR("p"),
                                    .inside = true,
                                    .max = 8};
    assert_true(world_run(w, call));
    assert_int_equal(call->u.poll.requests_count, wanted);
}

/* The agent inside the server ends with it. That is the server's absence and no failure, unless the
 * server ends three times during one step. */
static void what_ends_with_the_server_is_no_failure(void **state)
{
    struct world *w = *state;
    static const char *const boots[] = {"b1", "b2", "b3", "b4"};
    struct rv_task_id task = world_submit(w, "order", "{}");
    poll_inside(w, boots[0], 1);
    for (uint32_t end = 1; end <= 3; end++) {
        const char *boot = boots[end];
        world_restart(w, 100);
        poll_inside(w, boot, 0);
        const struct rv_step *step = world_step(w, task, 1);
        assert_int_equal(step->attempt_state, RV_ATTEMPT_LOST);
        assert_int_equal(step->effect, RV_EFFECT_UNKNOWN);
        assert_int_equal(step->failure_count, end < 3 ? 0 : 1);
        assert_in_range(step->ready_at, w->now, w->now + step->lease_ms);
        assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), end == 3);
        world_pass(w, step->lease_ms + 1);
        if (end < 3)
            poll_inside(w, boot, 1);
    }
}

static void three_dead_instances_raise_poison(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    for (int death = 1; death <= 3; death++) {
        assert_int_equal(world_poll(w, "slow", "i1", 1)->u.poll.requests_count, 1);
        assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), 0);
        world_pass(w, 5000);
        assert_int_equal(world_step(w, task, 1)->deaths, death);
        world_pass(w, 20000);
    }
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), 1);
}

/* Their leases last until complete-by. One that polls meanwhile is slow, and not dead. */
static void three_silent_instances_raise_poison(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"i1", "i2", "i3"};
    struct rv_task_id task = world_submit(w, "order", "{}");
    (void)world_take(w, "inventory", "slow");
    (void)world_poll(w, "inventory", "slow", 0);
    world_pass(w, 1000);
    (void)world_poll(w, "inventory", "slow", 0);
    world_pass(w, 11000);
    assert_int_equal(world_step(w, task, 1)->deaths, 0);
    for (uint32_t death = 1; death <= 3; death++) {
        world_pass(w, 60000);
        assert_int_equal(world_poll(w, "inventory", names[death - 1], 1)->u.poll.requests_count, 1);
        world_pass(w, 12000);
        assert_int_equal(world_step(w, task, 1)->deaths, death);
    }
    assert_int_equal(world_count_alerts(w, task, RV_ALERT_POISON), 1);
}

static void a_parked_poll_is_answered_in_the_transaction_that_makes_a_step_ready(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = poll_as(w, "i1", "b1", "p1", true, NULL, 20000);
    assert_false(world_finished(parked));
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(requests(parked), 1);
    assert_step(w, task, 1, "processing");
}

static void a_parked_poll_ends_empty_at_its_time(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = poll_as(w, "i1", "b1", "p1", true, NULL, 20000);
    world_pass(w, 19000);
    assert_false(world_finished(parked));
    world_pass(w, 1000);
    assert_int_equal(requests(parked), 0);
}

static void a_caller_that_left_takes_nothing(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = poll_as(w, "i1", "b1", "p1", true, NULL, 20000);
    struct rv_call *gone = world_call(w, RV_CALL_GONE);
    gone->u.gone.serial = parked->serial;
    assert_true(world_run(w, gone));
    assert_true(world_finished(parked));
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_step(w, task, 1, "pending");
}

static struct rv_call *gone_call(struct world *w, const struct rv_call *call)
{
    struct rv_call *gone = world_call(w, RV_CALL_GONE);
    gone->u.gone.serial = call->serial;
    return gone;
}

/* The poll and the word that its caller has left come in one batch. */
static void a_caller_that_left_at_once_takes_nothing(void **state)
{
    struct world *w = *state;
    for (int ready = 0; ready < 2; ready++) {
        if (ready)
            (void)world_submit(w, "order", "{}");
        struct rv_call *poll = world_call(w, RV_CALL_POLL);
        poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                        .instance = RV_STR("i1"),
                                        .boot = RV_STR("b1"),
                                        .poll = ready ? RV_STR("p2") : RV_STR("p1"),
                                        .max = 8,
                                        .wait_ms = 20000};
        struct rv_call *calls[] = {poll, gone_call(w, poll)};
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_OK);
        assert_int_equal(requests(poll), 0);
    }
    assert_int_equal(requests(poll_as(w, "i2", "b2", "p3", true, NULL, 0)), 1);
}

static void who_left_waits_for_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    show->u.show.after_revision = 1000;
    show->u.show.wait_ms = 20000;
    struct rv_call *calls[] = {show, gone_call(w, show)};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_OK);
    assert_true(world_finished(show));
}

/* After a start a poll is carried until the open rows are known. */
static void a_caller_that_left_is_not_carried_on(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    world_restart_unlooked(w, 100);
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("b1"),
                                    .poll = RV_STR("p1"),
                                    .max = 8,
                                    .wait_ms = 20000};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &poll, 1, w->mono), RV_OK);
    assert_false(world_finished(poll));
    struct rv_call *gone = gone_call(w, poll);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &gone, 1, w->mono), RV_OK);
    world_settle(w);
    assert_int_equal(requests(poll), 0);
}

static void an_answer_that_never_left_had_no_effect(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(first), 1);
    world_undelivered(w, first);
    const struct rv_step *step = world_step(w, task, 1);
    assert_string_equal(rv_step_state_text(step->state), "pending");
    assert_int_equal(step->effect, RV_EFFECT_NONE);
    assert_int_equal(step->failure_count, 0);
    assert_int_equal(requests(poll_as(w, "i2", "b1", "p1", true, NULL, 0)), 1);
}

/* The poll came twice and both answers carried the request: that one of them never left tells
 * nothing about the other. */
static void one_of_two_answers_that_never_left_ends_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(first), 1);
    struct rv_call *again = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(again), 1);
    world_undelivered(w, first);
    assert_step(w, task, 1, "processing");
    assert_int_equal(world_done(w, again->u.poll.requests[0], "1"), 200);
}

/* The note that an answer never left comes late: the poll was answered again by then, with another
 * attempt. */
static void a_note_about_an_older_answer_ends_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(first), 1);
    world_pass(w, 13000);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 0)), 1);
    assert_int_equal(world_step(w, task, 1)->attempt, 2);
    world_undelivered(w, first);
    assert_int_equal(world_step(w, task, 1)->attempt_state, RV_ATTEMPT_OPEN);
}

/* It was on its way while the process that sent it died and the next one took work. */
static void a_late_poll_of_an_earlier_boot_ends_nothing(void **state)
{
    struct world *w = *state;
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 0)), 0);
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *taken = poll_as(w, "i1", "b2", "p2", true, NULL, 0);
    assert_int_equal(requests(taken), 1);
    (void)world_submit(w, "order", "{}");
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p3", true, "p1", 0)), 0);
    assert_step(w, task, 1, "processing");
    assert_int_equal(world_done(w, taken->u.poll.requests[0], "1"), 200);
    assert_int_equal(requests(poll_as(w, "i1", "b2", "p4", true, "p2", 0)), 1);
    /* One that goes on polling is alive all the same. */
    (void)world_submit(w, "order", "{}");
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p3", true, "p1", 0)), 0);
    assert_true(requests(poll_as(w, "i1", "b1", "p5", true, "p3", 0)) > 0);
}

/* It would learn nothing from waiting; and the process behind it, should it live, is known by its
 * next poll. */
static void a_late_poll_of_an_earlier_boot_does_not_wait(void **state)
{
    struct world *w = *state;
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 0)), 0);
    assert_int_equal(requests(poll_as(w, "i1", "b2", "p2", true, NULL, 0)), 0);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p3", true, "p1", 20000)), 0);
    assert_false(world_finished(poll_as(w, "i1", "b1", "p4", true, "p3", 20000)));
}

static void a_parked_poll_that_looks_left_behind_does_not_wait(void **state)
{
    struct world *w = *state;
    struct rv_call *parked = poll_as(w, "i1", "b2", "p1", true, NULL, 20000);
    assert_false(world_finished(parked));
    (void)poll_as(w, "i1", "b1", "late", true, NULL, 20000);
    assert_int_equal(requests(parked), 0);
    /* Its process lives, and says so. */
    assert_int_equal(requests(poll_as(w, "i1", "b2", "p2", true, "p1", 20000)), 0);
    struct rv_call *next = poll_as(w, "i1", "b2", "p3", true, "p2", 20000);
    assert_false(world_finished(next));
    (void)world_submit(w, "order", "{}");
    assert_int_equal(requests(next), 1);
}

/* The answer never left, the poll is repeated, and meanwhile somebody else takes the step. */
static void a_repeated_poll_gets_nothing_of_what_another_took(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 0);
    assert_int_equal(requests(first), 1);
    struct rv_call *gone = world_undelivered_call(w, first);
    struct rv_call *polls[2];
    for (int i = 0; i < 2; i++) {
        polls[i] = world_call(w, RV_CALL_POLL);
        polls[i]->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                            .instance = i ? RV_STR("i1") : RV_STR("i2"),
                                            .boot = i ? RV_STR("b1") : RV_STR("b2"),
                                            .poll = i ? RV_STR("p1") : RV_STR("p2"),
                                            .max = 8};
    }
    struct rv_call *batch[] = {gone, polls[0], polls[1]};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, batch, 3, w->mono), RV_OK);
    assert_int_equal(requests(polls[0]), 1);
    assert_int_equal(requests(polls[1]), 0);
    assert_string_equal(world_step(w, task, 1)->instance.at, "i2");
}

/* On two connections, and both in one batch. */
static void the_same_poll_twice_takes_once(void **state)
{
    struct world *w = *state;
    struct rv_call *both[2];
    for (int i = 0; i < 12; i++)
        (void)world_submit(w, "order", "{}");
    for (int i = 0; i < 2; i++) {
        both[i] = world_call(w, RV_CALL_POLL);
        both[i]->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                           .instance = RV_STR("i1"),
                                           .boot = RV_STR("b1"),
                                           .poll = RV_STR("p1"),
                                           .max = 4,
                                           .wait_ms = 20000};
    }
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, 2, w->mono), RV_OK);
    assert_int_equal(requests(both[0]), 0);
    assert_int_equal(requests(both[1]), 4);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", false, NULL, 0)), 8);
}

/* A poll that came twice, the second time after a later one had taken work. */
static void a_repeated_poll_that_was_overtaken_ends_nothing(void **state)
{
    struct world *w = *state;
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 0)), 0);
    struct rv_task_id task = world_submit(w, "order", "{}");
    struct rv_call *taken = poll_as(w, "i1", "b1", "p2", true, "p1", 0);
    assert_int_equal(requests(taken), 1);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 0)), 0);
    assert_step(w, task, 1, "processing");
    assert_int_equal(world_done(w, taken->u.poll.requests[0], "1"), 200);
}

/* A proxy has repeated the poll on another connection. Its instance has one answer and goes on: the
 * copy must not take what it would never bring. */
static void a_copy_of_a_poll_that_was_heard_takes_nothing(void **state)
{
    struct world *w = *state;
    struct rv_call *first = poll_as(w, "i1", "b1", "p1", true, NULL, 20000);
    struct rv_call *copy = poll_as(w, "i1", "b1", "p1", true, NULL, 20000);
    assert_int_equal(requests(first), 0);
    assert_false(world_finished(copy));
    struct rv_call *next = poll_as(w, "i1", "b1", "p2", true, "p1", 20000);
    assert_int_equal(requests(copy), 0);
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(requests(next), 1);
    assert_int_equal(world_done(w, next->u.poll.requests[0], "1"), 200);
    assert_step(w, task, 1, "processed");
    /* One that comes late neither takes nor waits. */
    (void)world_submit(w, "order", "{}");
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p1", true, NULL, 20000)), 0);
    assert_int_equal(requests(poll_as(w, "i1", "b1", "p3", true, "p2", 20000)), 1);
}

/* Not what the protocol asks for, but it works. */
static void polls_that_all_have_one_name_get_work(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++) {
        struct rv_task_id task = world_submit(w, "order", "{}");
        struct rv_call *call = poll_as(w, "i1", "b1", "p", true, "p", 0);
        assert_int_equal(requests(call), 1);
        assert_int_equal(world_done(w, call->u.poll.requests[0], "1"), 200);
        assert_step(w, task, 1, "processed");
    }
}

static struct rv_lease_item *renew(struct world *w, struct rv_assignment request)
{
    struct rv_call *call = world_call(w, RV_CALL_LEASES);
    struct rv_lease_item *item = RV_NEW(&call->arena, struct rv_lease_item);
    *item = (struct rv_lease_item){.step = request.step, .token = request.token};
    call->u.leases.items = item;
    call->u.leases.count = 1;
    assert_true(world_run(w, call));
    return item;
}

static void a_lease_is_renewed_but_never_beyond_complete_by(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    struct rv_assignment request = world_poll(w, "slow", "i1", 1)->u.poll.requests[0];
    int64_t complete_by = request.complete_by;
    assert_int_equal(request.lease_until, w->now + 5000);
    for (int i = 0; i < 14; i++) {
        world_pass(w, 4000);
        struct rv_lease_item *item = renew(w, request);
        assert_int_equal(item->status, 200);
        assert_false(item->cancel);
        assert_true(item->lease_until <= complete_by);
    }
    world_pass(w, 4000);
    assert_int_equal(renew(w, request)->status, 410);
    assert_step(w, task, 1, "pending");
}

static void a_renewal_hears_that_the_attempt_is_cancelled(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    struct rv_assignment request = world_poll(w, "slow", "i1", 1)->u.poll.requests[0];
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    struct rv_lease_item *item = renew(w, request);
    assert_int_equal(item->status, 200);
    assert_true(item->cancel);
}

/* The question and the end of the task come in one batch: the answer must not wait for its time. */
static void a_wait_that_meets_the_end_is_answered_at_once(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    struct rv_assignment charge = world_take(w, "payment", "p1");
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    show->u.show.wait_ms = 20000;
    show->u.show.after_revision = INT64_MAX;
    struct rv_call *reply = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item item = {
        .step = charge.step, .token = charge.token, .reply = {.output = RV_STR("2")}};
    reply->u.replies.items = &item;
    reply->u.replies.count = 1;
    struct rv_call *both[] = {show, reply};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, 2, w->mono), RV_OK);
    assert_true(world_finished(show));
    assert_int_equal(show->u.show.found->state, RV_TASK_PROCESSED);
}

static size_t instances(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_AGENTS);
    assert_true(world_run(w, call));
    return call->u.agents.instances_count;
}

static void publish_hour(struct world *w)
{
    world_publish(w, workflow_file("polls/hour"));
}

static const struct rv_call_agents *expect_connected(struct world *w, uint32_t connected)
{
    struct rv_call *call = world_call(w, RV_CALL_AGENTS);
    assert_true(world_run(w, call));
    assert_int_equal(call->u.agents.instances_count, 1);
    assert_int_equal(call->u.agents.instances[0].connected, connected);
    assert_int_equal(call->u.agents.kinds[0].instances, connected);
    return &call->u.agents;
}

/* A process that was killed is there for as long as its attempt is open, but for a minute only it
 * counts as connected. */
static void an_instance_that_was_killed_is_shown_as_silent(void **state)
{
    struct world *w = *state;
    publish_hour(w);
    (void)world_submit(w, "hour", "{}");
    (void)world_take(w, "slow", "killed");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(expect_connected(w, i == 0)->instances[0].open_attempts, 1);
        world_pass(w, 61 * 1000);
    }
}

/* One whose places are all full does not poll. What else it sends shows that it lives; after a
 * start of the server nobody can know for a minute. */
static void an_instance_that_is_busy_is_shown_as_connected(void **state)
{
    struct world *w = *state;
    publish_hour(w);
    (void)world_submit(w, "hour", "{}");
    struct rv_assignment first = world_take(w, "slow", "busy");
    (void)world_submit(w, "hour", "{}");
    struct rv_assignment second = world_take(w, "slow", "busy");
    struct rv_task_id waits = world_submit(w, "hour", "{}");
    world_pass(w, 50 * 1000);
    assert_int_equal(renew(w, first)->status, 200);
    world_pass(w, 50 * 1000);
    (void)expect_connected(w, 1);
    assert_int_equal(world_explained(w, waits)->reason, RV_WAIT_BUSY);
    assert_int_equal(world_done(w, first, "1"), 200);
    world_pass(w, 50 * 1000);
    (void)expect_connected(w, 1);
    world_restart(w, 50 * 1000);
    (void)expect_connected(w, 1);
    assert_int_equal(world_explained(w, waits)->reason, RV_WAIT_BUSY);
    world_pass(w, 61 * 1000);
    (void)expect_connected(w, 0);
    assert_int_equal(renew(w, second)->status, 200);
    (void)expect_connected(w, 1);
}

/* Each with a name of its own, and none comes back. */
static void instances_that_never_come_back_are_forgotten(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    (void)world_poll(w, "slow", "holder", 1);
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "shot-%d", i);
        (void)world_poll(w, i % 2 ? "inventory" : name, name, 1);
        if (i % 1000 == 999)
            world_pass(w, 400);
    }
    assert_true(instances(w) < 10000);
    assert_step(w, task, 1, "processing");
    world_pass(w, 15 * 60 * 1000);
    assert_int_equal(instances(w), 0);
}

/* A task that changes again and again does not fill the memory of those who wait for its end. */
static void waiting_takes_no_memory_per_change(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "leased", "{}");
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    show->u.show.wait_ms = 50000;
    show->u.show.after_revision = INT64_MAX;
    assert_false(world_run(w, show));
    struct rv_assignment request = world_take(w, "slow", "i1");
    size_t before = show->arena.bytes_taken;
    for (int i = 0; i < 100; i++)
        assert_int_equal(renew(w, request)->status, 200);
    assert_true(show->arena.bytes_taken < before + 1000);
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_true(world_finished(show));
    assert_int_equal(show->u.show.found->state, RV_TASK_PROCESSED);
}

static void free_at_once(struct rv_call *call)
{
    call->owner = NULL;
    rv_arena_done(&call->arena);
}

/* The output lives in the call that brought it, whose maker frees it as soon as it has it back. The
 * question in the same batch still reads it. */
static void an_answer_outlives_the_call_that_brought_it(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    assert_int_equal(world_done(w, world_take(w, "inventory", "i1"), "1"), 200);
    struct rv_assignment charge = world_take(w, "payment", "p1");
    struct rv_call *reply = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item item = {.step = charge.step, .token = charge.token};
    item.reply.output = rv_arena_str(&reply->arena, RV_STR("{\"charged\":12}"));
    reply->u.replies.items = &item;
    reply->u.replies.count = 1;
    reply->finish = free_at_once;
    struct rv_call *show = world_call(w, RV_CALL_SHOW);
    show->u.show.task = task;
    struct rv_call *both[] = {reply, show};
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, 2, w->mono), RV_OK);
    assert_true(world_finished(show));
    assert_string_equal(show->u.show.found->output.at, "{\"charged\":12}");
}

static void higher_priority_goes_first(void **state)
{
    struct world *w = *state;
    struct rv_task_id low = world_submit(w, "order", "{}");
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission item = {.space = RV_STR("shop"), .name = RV_STR("order"), .priority = 9};
    call->u.submit.items = &item;
    call->u.submit.count = 1;
    assert_true(world_run(w, call));
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, item.task.value);
    assert_int_equal(world_take(w, "inventory", "i1").step.task.value, low.value);
}

/* Many large inputs do not make one huge answer. */
static void an_answer_has_a_size(void **state)
{
    struct world *w = *state;
    static char input[900 * 1024];
    memset(input, 'x', sizeof input - 1);
    memcpy(input, "{\"sku\":\"", 8);
    memcpy(input + sizeof input - 3, "\"}", 2);
    for (int i = 0; i < 8; i++)
        world_submit(w, "order", input);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 5);
    assert_int_equal(world_poll(w, "inventory", "i1", 8)->u.poll.requests_count, 3);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(the_same_poll_gets_the_same_attempts),
        SCENARIO(a_repeated_poll_is_not_answered_with_cancels_alone),
        SCENARIO(an_answer_that_is_not_confirmed_was_lost),
        SCENARIO(a_confirmed_answer_was_not),
        cmocka_unit_test(what_a_refused_batch_heard_is_heard),
        SCENARIO(agents_without_confirm_rely_on_complete_by),
        SCENARIO(a_new_boot_ends_the_old_boots_attempts_at_once),
        SCENARIO(what_ends_with_the_server_is_no_failure),
        SCENARIO(three_dead_instances_raise_poison),
        SCENARIO(three_silent_instances_raise_poison),
        SCENARIO(a_parked_poll_is_answered_in_the_transaction_that_makes_a_step_ready),
        SCENARIO(a_parked_poll_ends_empty_at_its_time),
        SCENARIO(a_caller_that_left_takes_nothing),
        SCENARIO(a_caller_that_left_at_once_takes_nothing),
        SCENARIO(who_left_waits_for_nothing),
        SCENARIO(a_caller_that_left_is_not_carried_on),
        SCENARIO(an_answer_that_never_left_had_no_effect),
        SCENARIO(one_of_two_answers_that_never_left_ends_nothing),
        SCENARIO(a_note_about_an_older_answer_ends_nothing),
        SCENARIO(a_late_poll_of_an_earlier_boot_ends_nothing),
        SCENARIO(a_late_poll_of_an_earlier_boot_does_not_wait),
        SCENARIO(the_same_poll_twice_takes_once),
        SCENARIO(a_parked_poll_that_looks_left_behind_does_not_wait),
        SCENARIO(a_repeated_poll_gets_nothing_of_what_another_took),
        SCENARIO(a_repeated_poll_that_was_overtaken_ends_nothing),
        SCENARIO(a_copy_of_a_poll_that_was_heard_takes_nothing),
        SCENARIO(polls_that_all_have_one_name_get_work),
        SCENARIO(a_lease_is_renewed_but_never_beyond_complete_by),
        SCENARIO(a_renewal_hears_that_the_attempt_is_cancelled),
        SCENARIO(a_wait_that_meets_the_end_is_answered_at_once),
        SCENARIO(an_instance_that_was_killed_is_shown_as_silent),
        SCENARIO(an_instance_that_is_busy_is_shown_as_connected),
        SCENARIO(instances_that_never_come_back_are_forgotten),
        SCENARIO(waiting_takes_no_memory_per_change),
        SCENARIO(an_answer_outlives_the_call_that_brought_it),
        SCENARIO(higher_priority_goes_first),
        SCENARIO(an_answer_has_a_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ends of many attempts at once, as agents tell of them: others are served meanwhile (RULES 11). */
#include "../lib/store_faults.h"
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
#include <string.h>

#include <cmocka.h>

/* An instance holds so many attempts. A batch decides so many ends of them. */
enum {
    HELD = 2000,
    PIECE = 1000,
    ENDS_MAX = 64,
    BATCHES_MAX = HELD / ENDS_MAX + 4,
    BATCHES_ENOUGH = 1000
};

static const char *const light = DOCUMENT("light") "do:\n  - a: {set: {n: 1}}\n";
static const char *const plain = DOCUMENT("plain") "do:\n  - a: {call: one}\n";
static int open_world(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_open(w);
    world_publish(w, workflow_file("order"));
    world_publish(w, light);
    world_publish(w, workflow_file("ends/slow-end"));
    world_publish(w, workflow_file("ends/slow-failure"));
    world_publish(w, plain);
    world_publish(w, workflow_file("ends/refunds"));
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

static struct rv_call *submission(struct world *w, const char *workflow, size_t count)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    assert_non_null(items);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){.space = RV_STR("shop"), .name = rv_str_of(workflow)};
    call->u.submit.items = items;
    call->u.submit.count = count;
    return call;
}

static void submit(struct world *w, const char *workflow, size_t count,
                   struct rv_task_id *ret_tasks)
{
    for (size_t done = 0; done < count;) {
        size_t piece = count - done < PIECE ? count - done : PIECE;
        struct rv_call *call = submission(w, workflow, piece);
        assert_true(world_run(w, call));
        for (size_t i = 0; i < piece; i++)
            ret_tasks[done++] = call->u.submit.items[i].task;
    }
}

static struct rv_call *poll_of(struct world *w, const char *agent, const char *boot)
{
    struct rv_call *call = world_call(w, RV_CALL_POLL);
    call->u.poll = (struct rv_poll){
        .agent = rv_str_of(agent),
        .instance = RV_STR("i1"),
        .boot = rv_str_of(boot),
        .poll = rv_arena_printf(&call->arena, "poll-%llu", (unsigned long long)call->serial),
        .max = RV_POLL_REQUESTS_MAX};
    return call;
}

/* Gives the polls. */
static size_t take(struct world *w, const char *agent, size_t count, struct rv_call **ret_polls)
{
    size_t polls = 0;
    for (size_t taken = 0; taken < count; polls++) {
        struct rv_call *poll = poll_of(w, agent, "b1");
        assert_true(world_run(w, poll));
        assert_true(poll->u.poll.requests_count > 0);
        taken += poll->u.poll.requests_count;
        if (ret_polls != NULL)
            ret_polls[polls] = poll;
    }
    return polls;
}

static size_t count_open(struct world *w, const struct rv_task_id *tasks, size_t count)
{
    size_t open = 0;
    for (size_t i = 0; i < count; i++)
        open += world_step(w, tasks[i], 1)->attempt_state == RV_ATTEMPT_OPEN;
    return open;
}

/* The calls come in one batch, and with each batch a stranger's submission, which is decided in it.
 * Each ends a bounded number of attempts; the calls are answered when all of them have ended. */
static void expect_turns(struct world *w, struct rv_call **calls, size_t count,
                         enum rv_attempt_state how)
{
    const struct rv_counts *counts = rv_scheduler_counts(w->scheduler);
    uint64_t ended = 0;
    size_t finished = 0;
    for (int batch = 0; finished < count; batch++) {
        struct rv_call *all[64];
        size_t all_count = 0;
        uint64_t before = counts->attempts_ended[how];
        assert_in_range(batch, 0, BATCHES_MAX);
        for (size_t i = 0; batch == 0 && i < count; i++)
            all[all_count++] = calls[i];
        struct rv_call *stranger = all[all_count++] = submission(w, "light", 1);
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, all, all_count, w->mono), RV_OK);
        assert_true(world_finished(stranger));
        assert_int_equal(stranger->u.submit.items[0].state, RV_TASK_PROCESSED);
        assert_in_range(counts->attempts_ended[how] - before, 0, ENDS_MAX);
        ended += counts->attempts_ended[how] - before;
        finished = 0;
        for (size_t i = 0; i < count; i++)
            finished += world_finished(calls[i]);
    }
    assert_int_equal(ended, HELD);
}

static void an_agent_that_starts_again_holds_up_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id tasks[HELD];
    submit(w, "order", HELD, tasks);
    (void)take(w, "inventory", HELD, NULL);
    struct rv_call *poll = poll_of(w, "inventory", "b2");
    expect_turns(w, &poll, 1, RV_ATTEMPT_LOST);
    assert_int_equal(poll->err, RV_OK);
    assert_int_equal(count_open(w, tasks, HELD), 0);
}

/* It confirms none of what it was answered before. */
static void an_agent_that_has_lost_its_answers_holds_up_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id tasks[HELD];
    submit(w, "order", HELD, tasks);
    (void)take(w, "inventory", HELD, NULL);
    struct rv_call *poll = poll_of(w, "inventory", "b1");
    poll->u.poll.confirms = true;
    expect_turns(w, &poll, 1, RV_ATTEMPT_UNDELIVERED);
    assert_int_equal(poll->err, RV_OK);
}

static void answers_that_did_not_leave_hold_up_nobody(void **state)
{
    struct world *w = *state;
    struct rv_task_id tasks[HELD];
    struct rv_call *polls[HELD / RV_POLL_REQUESTS_MAX + 1];
    submit(w, "order", HELD, tasks);
    size_t count = take(w, "inventory", HELD, polls);
    for (size_t i = 0; i < count; i++)
        polls[i] = world_undelivered_call(w, polls[i]);
    expect_turns(w, polls, count, RV_ATTEMPT_UNDELIVERED);
}

/* What was not ended before the crash ends with the next poll, which gets nothing before. */
static void after_a_crash_in_between_the_rest_ends(void **state)
{
    struct world *w = *state;
    struct rv_task_id tasks[HELD];
    submit(w, "order", HELD, tasks);
    (void)take(w, "inventory", HELD, NULL);
    struct rv_call *poll = poll_of(w, "inventory", "b2");
    for (int i = 0; i < 3; i++)
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, &poll, i == 0, w->mono), RV_OK);
    assert_false(world_finished(poll));
    world_restart(w, 10);
    size_t open = count_open(w, tasks, HELD);
    assert_in_range(open, HELD - 3 * ENDS_MAX, HELD - 1);
    poll = poll_of(w, "inventory", "b2");
    for (int i = 0; i < BATCHES_MAX && !world_finished(poll); i++)
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, &poll, i == 0, w->mono), RV_OK);
    assert_true(world_finished(poll));
    size_t given = poll->u.poll.requests_count;
    for (size_t i = 0; i < HELD; i++)
        assert_int_not_equal(world_step(w, tasks[i], 1)->attempt, 0);
    assert_int_equal(count_open(w, tasks, HELD), given);
}

/* Perhaps these were delivered: their lost answers end none of them, whatever is asked. */
static void ends_that_come_to_nothing_hold_up_no_poll(void **state)
{
    enum { REVOKED = 3 * ENDS_MAX };
    struct world *w = *state;
    struct rv_task_id tasks[REVOKED];
    submit(w, "order", REVOKED, tasks);
    (void)take(w, "inventory", REVOKED, NULL);
    for (size_t i = 0; i < REVOKED; i++)
        assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, tasks[i]), RV_OK);
    struct rv_call *poll = poll_of(w, "inventory", "b1");
    poll->u.poll.confirms = true;
    assert_true(world_run(w, poll));
    assert_int_equal(poll->err, RV_OK);
    assert_int_equal(poll->u.poll.cancels_count, REVOKED);
    assert_int_equal(world_step(w, tasks[0], 1)->attempt_state, RV_ATTEMPT_REVOKED);
}

/* The last poll of a process, which has lost its answers, and the first poll of the next one come
 * in one batch. The lost answers end nothing; that the process is gone ends all of it. */
static void a_lost_answer_stands_for_no_process_that_is_gone(void **state)
{
    enum { REVOKED = 3 };
    struct world *w = *state;
    struct rv_task_id tasks[REVOKED];
    submit(w, "order", REVOKED, tasks);
    (void)take(w, "inventory", REVOKED, NULL);
    for (size_t i = 0; i < REVOKED; i++)
        assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, tasks[i]), RV_OK);
    struct rv_call *both[2] = {poll_of(w, "inventory", "b1"), poll_of(w, "inventory", "b2")};
    both[0]->u.poll.confirms = true;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, 2, w->mono), RV_OK);
    world_settle(w);
    assert_true(world_finished(both[0]));
    assert_true(world_finished(both[1]));
    for (size_t i = 0; i < REVOKED; i++)
        assert_int_equal(world_step(w, tasks[i], 1)->attempt_state, RV_ATTEMPT_LOST);
}

/* The expressions that follow from the ends are evaluated beside the batches. The new process gets
 * nothing before that. */
static void long_decisions_about_ends_run_beside_the_batches(void **state)
{
    enum { SLOW = 300, BATCH_FUEL_MAX = ENDS_MAX * 25000, MS_MAX = 10000 };
    struct world *w = *state;
    struct rv_task_id tasks[SLOW];
    submit(w, "slow-end", SLOW, tasks);
    (void)take(w, "agent", SLOW, NULL);
    const struct rv_counts *counts = rv_scheduler_counts(w->scheduler);
    struct rv_call *poll = poll_of(w, "agent", "b2");
    uint64_t in_batches = 0;
    for (int ms = 0; !world_finished(poll); ms++) {
        struct rv_call *all[2] = {submission(w, "light", 1), poll};
        uint64_t before = counts->fuel_in_batches;
        assert_in_range(ms, 0, MS_MAX);
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, all, ms == 0 ? 2 : 1, w->mono),
                         RV_OK);
        assert_true(world_finished(all[0]));
        assert_in_range(counts->fuel_in_batches - before, 0, BATCH_FUEL_MAX);
        in_batches += counts->fuel_in_batches - before;
        w->now++;
        w->mono++;
    }
    assert_int_equal(poll->err, RV_OK);
    assert_in_range(counts->long_decisions, SLOW / 2, SLOW);
    assert_true(in_batches < counts->fuel_beside);
    for (size_t i = 0; i < SLOW; i++)
        assert_state(w, tasks[i], "processed");
}

/* The column undo_blocker names a step that has no row. */
static void damage(struct rv_task *row, int64_t unused)
{
    (void)unused;
    row->undo_blocker = ++row->last_number;
}

/* The call is answered within so many batches. */
static void expect_answer(struct world *w, struct rv_call *call, int batches_max)
{
    for (int i = 0; !world_finished(call); i++) {
        assert_in_range(i, 0, batches_max);
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, &call, i == 0, w->mono), RV_OK);
        w->now++;
        w->mono++;
    }
}

/* What follows from the end cannot be evaluated: the task is parked, its attempt stays held, and
 * the end counts as decided. */
static void a_damaged_task_holds_up_no_agent_that_starts_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id bad = world_submit(w, "slow-failure", "{}");
    struct rv_call *first = poll_of(w, "one", "b1");
    assert_true(world_run(w, first));
    assert_int_equal(first->u.poll.requests_count, 1);
    world_edit(w, bad, damage, 0);
    (void)world_submit(w, "plain", "{}");
    struct rv_call *poll = poll_of(w, "one", "b2");
    expect_answer(w, poll, BATCHES_ENOUGH);
    assert_int_equal(poll->u.poll.requests_count, 1);
    assert_state(w, bad, "error");
    assert_int_equal(world_count_alerts(w, bad, RV_ALERT_UNREADABLE), 1);
}

/* Gives the poll that took a compensation of which the end takes long. */
static struct rv_call *take_stale(struct world *w, struct rv_task_id *ret_task)
{
    *ret_task = world_submit(w, "refunds", "{}");
    struct rv_assignment charge = world_take(w, "one", "i1");
    world_pass(w, 12000);
    struct rv_call *first = poll_of(w, "one", "b1");
    assert_true(world_run(w, first));
    assert_int_equal(first->u.poll.requests_count, 1);
    assert_int_equal(world_done(w, charge, "{\"id\":7}"), 410);
    return first;
}

/* The poll that took the compensation comes once more, before or while the end of its attempt is
 * evaluated, of which `tells` tells. */
static void expect_not_given_again(struct world *w, struct rv_call *first, struct rv_call *tells,
                                   bool at_once)
{
    struct rv_call *again = poll_of(w, "one", "b1");
    again->u.poll.poll = first->u.poll.poll;
    struct rv_call *both[2] = {tells, again};
    size_t now = at_once ? 2 : 1;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, both, now, w->mono), RV_OK);
    if (!at_once)
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, both + 1, 1, w->mono), RV_OK);
    assert_false(world_finished(tells));
    assert_false(world_finished(again));
    world_pass(w, 500);
    assert_true(world_finished(tells));
    assert_true(world_finished(again));
    assert_int_equal(again->err, RV_OK);
    for (size_t i = 0; i < again->u.poll.requests_count; i++)
        assert_int_not_equal(again->u.poll.requests[i].token, first->u.poll.requests[0].token);
}

static void expect_undelivered_once(struct world *w, bool at_once)
{
    struct rv_task_id task;
    struct rv_call *first = take_stale(w, &task);
    expect_not_given_again(w, first, world_undelivered_call(w, first), at_once);
}

static void an_attempt_that_ends_undelivered_is_not_given_again(void **state)
{
    expect_undelivered_once(*state, false);
}

static void an_attempt_is_not_given_again_in_the_batch_that_ends_it(void **state)
{
    expect_undelivered_once(*state, true);
}

static void an_attempt_of_a_lost_answer_is_not_given_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_call *first = take_stale(w, &task);
    struct rv_call *tells = poll_of(w, "one", "b1");
    tells->u.poll.confirms = true;
    expect_not_given_again(w, first, tells, false);
}

static void an_attempt_of_a_process_that_is_gone_is_not_given_again(void **state)
{
    struct world *w = *state;
    struct rv_task_id task;
    struct rv_call *first = take_stale(w, &task);
    expect_not_given_again(w, first, poll_of(w, "one", "b2"), false);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        SCENARIO(an_agent_that_starts_again_holds_up_nobody),
        SCENARIO(an_agent_that_has_lost_its_answers_holds_up_nobody),
        SCENARIO(answers_that_did_not_leave_hold_up_nobody),
        SCENARIO(after_a_crash_in_between_the_rest_ends),
        SCENARIO(ends_that_come_to_nothing_hold_up_no_poll),
        SCENARIO(a_lost_answer_stands_for_no_process_that_is_gone),
        SCENARIO(long_decisions_about_ends_run_beside_the_batches),
        SCENARIO(a_damaged_task_holds_up_no_agent_that_starts_again),
        SCENARIO(an_attempt_that_ends_undelivered_is_not_given_again),
        SCENARIO(an_attempt_is_not_given_again_in_the_batch_that_ends_it),
        SCENARIO(an_attempt_of_a_lost_answer_is_not_given_again),
        SCENARIO(an_attempt_of_a_process_that_is_gone_is_not_given_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

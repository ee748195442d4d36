/* Open circuits: per agent and target, one probe, no failure counted, nothing kept for ever
 * (RULES 5). */
#include "../lib/store_faults.h"
#include "../lib/world.h"
#include "base/limits.h"
#include "dispatch/agents.h"
#include "dispatch/kind.h"
#include "scheduler/batch/state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct store_faults faults;

static int open_world(void **state)
{
    faults = (struct store_faults){.fail_with = RV_ERR_BUSY};
    return world_setup(state, &faults, WORLD_FILES("order"));
}

/* The agent's word that `target` does not answer; NULL: the whole agent does not. */
static void open_circuit(struct world *w, struct rv_assignment request, const char *target,
                         int64_t retry_after_ms)
{
    struct rv_reply open = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                            .transient = true,
                            .circuit_open = true,
                            .target = rv_str_of(target),
                            .retry_after_ms = retry_after_ms};
    assert_int_equal(world_reply(w, request, open), 200);
}

static struct rv_agent_kind_row kind_row(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_AGENTS);
    assert_true(world_run(w, call));
    for (size_t i = 0; i < call->u.agents.kinds_count; i++)
        if (rv_str_is(call->u.agents.kinds[i].agent, "inventory"))
            return call->u.agents.kinds[i];
    fail_msg("no agent \"inventory\" is known");
    return (struct rv_agent_kind_row){.instances = 0};
}

static size_t handed_out(struct world *w)
{
    return world_poll(w, "inventory", "i1", 8)->u.poll.requests_count;
}

static void a_circuit_stops_the_steps_of_its_own_target(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = world_submit(w, "order", "{}");
    struct rv_task_id b = world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_assignment second = world_take(w, "inventory", "i1");
    open_circuit(w, first, "north", 5000);
    open_circuit(w, second, "south", 5000);
    (void)world_submit(w, "order", "{}"); /* nobody knows yet where this one goes */
    assert_int_equal(handed_out(w), 1);
    world_pass(w, 5000);
    assert_int_equal(handed_out(w), 2); /* a probe for each target */
    assert_int_equal(world_step(w, a, 1)->failure_count, 0);
    assert_int_equal(world_step(w, b, 1)->failure_count, 0);
}

/* What `reeve agents` shows of a step that no agent takes. */
static void the_oldest_wait_is_shown(void **state)
{
    struct world *w = *state;
    int64_t then = w->now;
    (void)world_submit(w, "order", "{}");
    world_pass(w, 700);
    (void)world_submit(w, "order", "{}");
    assert_int_equal(kind_row(w).waiting, 2);
    assert_int_equal(kind_row(w).waiting_since, then);
    assert_int_equal(handed_out(w), 2);
    assert_int_equal(kind_row(w).waiting_since, 0);
}

static struct rv_call *submission(struct world *w, uint8_t priority)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    call->u.submit.items = RV_NEW(&call->arena, struct rv_submission);
    call->u.submit.count = 1;
    call->u.submit.items[0] = (struct rv_submission){.space = RV_STR("shop"),
                                                     .name = RV_STR("order"),
                                                     .input = RV_STR("{}"),
                                                     .priority = priority};
    return call;
}

/* The oldest step may be neither the first in line nor in the line at all. */
static void the_oldest_wait_is_that_of_all_steps(void **state)
{
    struct world *w = *state;
    struct rv_task_id first = world_submit(w, "order", "{}");
    open_circuit(w, world_take(w, "inventory", "i1"), NULL, 5000);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, first), RV_OK);
    world_pass(w, 700);
    int64_t then = w->now;
    (void)world_submit(w, "order", "{}");
    world_pass(w, 700);
    assert_true(world_run(w, submission(w, 9)));
    assert_int_equal(kind_row(w).waiting, 2);
    assert_int_equal(kind_row(w).waiting_since, then);
    assert_int_equal(handed_out(w), 0);
    assert_int_equal(kind_row(w).waiting, 2);
    assert_int_equal(kind_row(w).waiting_since, then);
}

static void a_refused_commit_changes_no_queue(void **state)
{
    struct world *w = *state;
    struct rv_task_id waits = world_submit(w, "order", "{}");
    int64_t then = w->now;
    faults.fail_commits = 1;
    struct rv_call *refused = submission(w, 5);
    assert_true(world_run(w, refused));
    assert_int_equal(refused->err, RV_ERR_BUSY);
    assert_int_equal(kind_row(w).waiting, 1);
    faults.offender = (struct rv_task_id){waits.value + 2};
    refused = submission(w, 5);
    assert_true(world_run(w, refused));
    assert_int_equal(refused->u.submit.items[0].err, RV_ERR_INVALID);
    assert_int_equal(kind_row(w).waiting, 1);
    faults.offender = (struct rv_task_id){0};
    faults.fail_commits = 1;
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, waits), RV_ERR_BUSY);
    assert_int_equal(kind_row(w).waiting, 1);
    assert_int_equal(kind_row(w).waiting_since, then);
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(kind_row(w).waiting, 0);
}

/* A step that was cancelled, or is held back, waits for no agent. */
static void only_steps_that_wait_are_counted(void **state)
{
    struct world *w = *state;
    struct rv_task_id first = world_submit(w, "order", "{}");
    world_pass(w, 700);
    int64_t then = w->now;
    struct rv_task_id second = world_submit(w, "order", "{}");
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, first), RV_OK);
    assert_int_equal(kind_row(w).waiting, 1);
    assert_int_equal(kind_row(w).waiting_since, then);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, second), RV_OK);
    assert_int_equal(kind_row(w).waiting, 0);
    assert_int_equal(kind_row(w).waiting_since, 0);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, second), RV_OK);
    assert_int_equal(kind_row(w).waiting, 1);
    assert_int_equal(kind_row(w).waiting_since, then);
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(handed_out(w), 0);
}

static void a_cancelled_step_leaves_its_circuit(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = world_submit(w, "order", "{}");
    (void)world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_assignment second = world_take(w, "inventory", "i1");
    open_circuit(w, first, "north", 5000);
    open_circuit(w, second, "north", 8000);
    world_pass(w, 6000);
    assert_int_equal(handed_out(w), 0);
    assert_int_equal(kind_row(w).circuits[0].waiting, 2); /* the second for its own instant */
    assert_int_equal(kind_row(w).waiting, 2);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, a), RV_OK);
    assert_int_equal(kind_row(w).circuits[0].waiting, 1);
    assert_int_equal(kind_row(w).waiting, 1);
}

static const struct rv_agent_count *metrics_row(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_METRICS);
    assert_true(world_run(w, call));
    assert_int_equal(call->u.metrics.agents_count, 1);
    return &call->u.metrics.agents[0];
}

/* The agent sent them back: they wait for it, as those that are ready do. */
static void steps_that_were_sent_back_are_counted(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = world_submit(w, "order", "{}");
    int64_t then = w->now;
    world_pass(w, 700);
    struct rv_task_id b = world_submit(w, "order", "{}");
    (void)world_submit(w, "order", "{}");
    open_circuit(w, world_take(w, "inventory", "i1"), "north", 20000);
    open_circuit(w, world_take(w, "inventory", "i1"), "north", 20000);
    open_circuit(w, world_take(w, "inventory", "i1"), NULL, 20000);
    struct rv_agent_kind_row row = kind_row(w);
    assert_int_equal(row.waiting, 3);
    assert_int_equal(row.waiting_since, then);
    assert_int_equal(row.circuits[0].waiting, 1); /* of the whole agent */
    assert_int_equal(row.circuits[1].waiting, 2);
    world_pass(w, 300);
    assert_int_equal(metrics_row(w)->waiting, 3);
    assert_int_equal(metrics_row(w)->oldest_ms, 1000);
    struct rv_call *explain = world_call(w, RV_CALL_EXPLAIN);
    explain->u.explain.task = a;
    assert_true(world_run(w, explain));
    assert_int_equal(explain->u.explain.steps[0].queued, 3);
    assert_int_equal(world_operate(w, RV_COMMAND_SUSPEND, a), RV_OK);
    assert_int_equal(kind_row(w).waiting, 2);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUME, a), RV_OK);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, b), RV_OK);
    row = kind_row(w);
    assert_int_equal(row.waiting, 2);
    assert_int_equal(row.waiting_since, then);
    assert_int_equal(row.circuits[1].waiting, 1);
    world_pass(w, 20000); /* one is the probe of the whole agent, the other one waits behind it */
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(kind_row(w).waiting, 1);
}

/* Both came back from the same target: the later instant counts, and only one of them asks. */
static void a_target_is_asked_by_one_probe(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    (void)world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_assignment second = world_take(w, "inventory", "i1");
    open_circuit(w, first, "north", 5000);
    open_circuit(w, second, "north", 8000);
    struct rv_agent_kind_row row = kind_row(w);
    assert_true(rv_str_is(row.circuits[0].target, "north"));
    assert_int_equal(row.circuits[0].until, w->now + 8000);
    world_pass(w, 5000);
    assert_int_equal(handed_out(w), 0);
    world_pass(w, 3000);
    struct rv_call *probe = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(probe->u.poll.requests_count, 1);
    assert_int_equal(handed_out(w), 0);
    assert_int_equal(world_done(w, probe->u.poll.requests[0], "1"), 200);
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(kind_row(w).circuits_open, 0);
}

static void a_probe_that_finds_it_open_opens_it_anew(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = world_submit(w, "order", "{}");
    (void)world_submit(w, "order", "{}");
    struct rv_assignment first = world_take(w, "inventory", "i1");
    struct rv_assignment second = world_take(w, "inventory", "i1");
    open_circuit(w, first, "north", 5000);
    open_circuit(w, second, "north", 5000);
    for (int i = 0; i < 5; i++) {
        world_pass(w, 5000);
        struct rv_call *probe = world_poll(w, "inventory", "i1", 8);
        assert_int_equal(probe->u.poll.requests_count, 1);
        open_circuit(w, probe->u.poll.requests[0], "north", 5000);
        assert_int_equal(handed_out(w), 0);
        assert_int_equal(kind_row(w).circuits[0].until, w->now + 5000);
    }
    assert_int_equal(world_step(w, a, 1)->failure_count, 0);
    assert_int_equal(world_step(w, a, 1)->round, 0);
}

static void a_circuit_is_known_again_after_a_restart(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    (void)world_submit(w, "order", "{}");
    open_circuit(w, world_take(w, "inventory", "i1"), NULL, 8000);
    world_restart(w, 1000);
    assert_int_equal(handed_out(w), 0);
    world_pass(w, 7000);
    assert_int_equal(handed_out(w), 1);
}

static void a_circuit_that_nobody_waits_for_is_forgotten(void **state)
{
    struct world *w = *state;
    struct rv_task_id task = world_submit(w, "order", "{}");
    open_circuit(w, world_take(w, "inventory", "i1"), NULL, 5000);
    assert_int_equal(world_operate(w, RV_COMMAND_CANCEL, task), RV_OK);
    assert_state(w, task, "cancelled");
    assert_int_not_equal(kind_row(w).circuits[0].until, 0);
    world_pass(w, 15 * 60 * 1000);
    struct rv_call *call = world_call(w, RV_CALL_AGENTS);
    assert_true(world_run(w, call));
    assert_int_equal(call->u.agents.kinds_count, 0);
}

static struct rv_call *poll_for_one(struct world *w)
{
    struct rv_call *poll = world_call(w, RV_CALL_POLL);
    poll->u.poll = (struct rv_poll){.agent = RV_STR("inventory"),
                                    .instance = RV_STR("i1"),
                                    .boot = RV_STR("boot-1"),
                                    .poll = RV_STR("one"),
                                    .max = 1};
    return poll;
}

/* The batch that would have sent the probe was not written: the next one sends it. */
static void a_probe_that_did_not_leave_is_sent_again(void **state)
{
    struct world *w = *state;
    (void)world_submit(w, "order", "{}");
    open_circuit(w, world_take(w, "inventory", "i1"), NULL, 5000);
    world_pass(w, 5000);
    struct rv_call *poll = poll_for_one(w);
    faults.fail_commits = 1;
    assert_true(world_run(w, poll));
    assert_int_equal(poll->err, RV_ERR_BUSY);
    assert_int_equal(poll->u.poll.requests_count, 0);
    world_pass(w, 1000);
    assert_int_equal(handed_out(w), 1);
}

/* Three steps whose circuit's time is over, one of them out as its probe. */
static struct rv_assignment probe_of_three(struct world *w, struct rv_task_id *ret_last)
{
    struct rv_assignment request[3];
    for (size_t i = 0; i < 3; i++)
        *ret_last = world_submit(w, "order", "{}");
    for (size_t i = 0; i < 3; i++)
        request[i] = world_take(w, "inventory", "i1");
    for (size_t i = 0; i < 3; i++)
        open_circuit(w, request[i], "north", 5000);
    world_pass(w, 5000);
    struct rv_call *poll = world_poll(w, "inventory", "i1", 8);
    assert_int_equal(poll->u.poll.requests_count, 1);
    return poll->u.poll.requests[0];
}

static void a_probe_that_another_replaced_closes_its_circuit(void **state)
{
    struct world *w = *state;
    struct rv_task_id last;
    struct rv_assignment probe = probe_of_three(w, &last);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, last), RV_OK);
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(handed_out(w), 0);
    assert_int_equal(world_done(w, probe, "1"), 200);
    assert_int_equal(kind_row(w).circuits_open, 0);
    assert_int_equal(handed_out(w), 1);
}

/* Nothing says that the target answers, and what was forced is out. */
static void a_replaced_probe_that_fails_closes_nothing(void **state)
{
    struct world *w = *state;
    struct rv_task_id last;
    struct rv_assignment probe = probe_of_three(w, &last);
    assert_int_equal(world_operate(w, RV_COMMAND_RETRY, last), RV_OK);
    struct rv_assignment forced = world_take(w, "inventory", "i1");
    open_circuit(w, probe, "north", 1000);
    world_pass(w, 1000);
    assert_int_equal(handed_out(w), 0);
    open_circuit(w, forced, "north", 1000);
    world_pass(w, 1000);
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(handed_out(w), 0);
}

/* It arrived in time, and is read when another probe is out. */
static void a_reply_that_is_read_late_closes_its_circuit(void **state)
{
    struct world *w = *state;
    struct rv_task_id last;
    struct rv_assignment probe = probe_of_three(w, &last);
    world_pass(w, probe.complete_by - w->now - 1);
    struct rv_call *reply = world_call(w, RV_CALL_REPLIES);
    struct rv_reply_item item = {
        .step = probe.step, .token = probe.token, .reply.output = RV_STR("1")};
    reply->u.replies.items = &item;
    reply->u.replies.count = 1;
    w->heard_until = w->mono;
    world_pass(w, 2);
    assert_int_equal(handed_out(w), 1);
    assert_int_equal(handed_out(w), 0);
    w->heard_until = 0;
    assert_true(world_run(w, reply));
    assert_int_equal(item.status, 200);
    assert_int_equal(kind_row(w).circuits_open, 0);
    assert_int_equal(handed_out(w), 1);
}

/* Two steps wait behind a circuit, a third for its own instant, which is that of the circuit too.
 * In that batch the first is cancelled: the second is the probe. */
static void a_probe_that_is_cancelled_is_replaced_by_the_next(void **state)
{
    struct world *w = *state;
    struct rv_task_id waiting[3];
    struct rv_assignment requests[3];
    struct rv_call *calls[2];
    for (size_t i = 0; i < 3; i++) {
        waiting[i] = world_submit(w, "order", "{}");
        world_pass(w, 10);
    }
    for (size_t i = 0; i < 3; i++)
        requests[i] = world_take(w, "inventory", "i1");
    for (size_t i = 0; i < 3; i++)
        open_circuit(w, requests[i], "north", i < 2 ? 1000 : 5000);
    world_pass(w, 1000);
    assert_int_equal(handed_out(w), 0);
    assert_int_equal(kind_row(w).circuits[0].waiting, 3);
    w->now += 4000;
    w->mono += 4000;
    calls[0] = world_call(w, RV_CALL_OPERATE);
    calls[0]->u.operate = (struct rv_call_operate){
        .verb = RV_COMMAND_CANCEL, .task = waiting[0], .by = RV_STR("ann"), .reason = RV_STR("x")};
    calls[1] = poll_for_one(w);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, calls, 2, w->mono), RV_OK);
    world_settle(w);
    assert_int_equal(calls[0]->err, RV_OK);
    assert_int_equal(calls[1]->u.poll.requests_count, 1);
    assert_int_equal(calls[1]->u.poll.requests[0].step.task.value, waiting[1].value);
    assert_int_equal(handed_out(w), 0);
    assert_int_equal(world_done(w, calls[1]->u.poll.requests[0], "1"), 200);
    assert_int_equal(handed_out(w), 1);
}

/* ---- many targets ---- */

enum { MANY = RV_AGENT_CIRCUITS_MAX + 200, PIECE = 200, OPEN_MS = 60000 };

static const struct agent_kind *kind_of(const struct world *w)
{
    return agents_kind_find(&w->scheduler->agents, RV_STR("inventory"));
}

static struct rv_call *submit_piece(struct world *w)
{
    struct rv_call *call = world_call(w, RV_CALL_SUBMIT);
    call->u.submit.items = RV_NEW_ARRAY(&call->arena, struct rv_submission, PIECE);
    call->u.submit.count = PIECE;
    for (size_t i = 0; i < PIECE; i++)
        call->u.submit.items[i] = (struct rv_submission){
            .space = RV_STR("shop"), .name = RV_STR("order"), .input = RV_STR("{}"), .priority = 5};
    assert_true(world_run(w, call));
    return call;
}

/* So many tasks, each sent back for a target of its own. */
static void targets_fail(struct world *w, size_t count)
{
    for (size_t done = 0; done < count; done += PIECE) {
        (void)submit_piece(w);
        struct rv_call *poll = world_poll(w, "inventory", "i1", PIECE);
        assert_int_equal(poll->u.poll.requests_count, PIECE);
        struct rv_call *call = world_call(w, RV_CALL_REPLIES);
        call->u.replies.items = RV_NEW_ARRAY(&call->arena, struct rv_reply_item, PIECE);
        call->u.replies.count = PIECE;
        for (size_t i = 0; i < PIECE; i++)
            call->u.replies.items[i] = (struct rv_reply_item){
                .step = poll->u.poll.requests[i].step,
                .token = poll->u.poll.requests[i].token,
                .reply = {.error = RV_STR("{\"type\":\"circuit-open\"}"),
                          .transient = true,
                          .circuit_open = true,
                          .target = rv_arena_printf(&call->arena, "order-%zu", done + i),
                          .retry_after_ms = OPEN_MS}};
        assert_true(world_run(w, call));
    }
}

static size_t all_handed_out(struct world *w)
{
    size_t count = 0, got;
    do {
        got = world_poll(w, "inventory", "i1", PIECE)->u.poll.requests_count;
        count += got;
    } while (got > 0);
    return count;
}

/* Circuits that a batch looks at. */
static size_t due_now(const struct world *w)
{
    const struct rv_dues *dues = &w->scheduler->agents.circuits_due;
    size_t count = 0;
    for (size_t i = 0; i < dues->count; i++)
        count += dues->entries[i]->at <= w->now;
    return count;
}

static void ever_new_targets_are_known_up_to_a_bound(void **state)
{
    struct world *w = *state;
    targets_fail(w, MANY);
    assert_int_equal(kind_row(w).circuits_open, RV_AGENT_CIRCUITS_MAX);
    assert_int_equal(kind_row(w).circuits_count, RV_AGENT_CIRCUITS_SHOWN);
    assert_int_equal(handed_out(w), 0);
    /* Its own step waits for a target without a circuit; all of them go out in time. */
    world_pass(w, OPEN_MS);
    assert_int_equal(all_handed_out(w), MANY);
}

/* The circuit of the whole agent is not one of many. */
static void the_whole_agent_always_has_a_circuit(void **state)
{
    struct world *w = *state;
    targets_fail(w, MANY);
    (void)world_submit(w, "order", "{}");
    open_circuit(w, world_take(w, "inventory", "i1"), NULL, 5000);
    assert_int_equal(kind_row(w).circuits[0].target.len, 0);
    (void)world_submit(w, "order", "{}");
    assert_int_equal(handed_out(w), 0);
    world_pass(w, 5000);
    assert_int_equal(handed_out(w), 1);
}

static void circuits_cost_a_batch_nothing(void **state)
{
    struct world *w = *state;
    targets_fail(w, MANY);
    world_pass(w, 1);
    assert_int_equal(due_now(w), 0);
    assert_false(kind_of(w)->stirs);
}

/* They make room at once when it is wanted, else they go after a while. */
static void circuits_whose_time_is_over_make_room(void **state)
{
    struct world *w = *state;
    targets_fail(w, MANY);
    struct rv_call *poll;
    world_pass(w, OPEN_MS);
    while ((poll = world_poll(w, "inventory", "i1", 64))->u.poll.requests_count > 0)
        for (size_t i = 0; i < poll->u.poll.requests_count; i++)
            assert_int_equal(world_fail(w, poll->u.poll.requests[i], true, RV_EFFECT_NONE), 200);
    world_pass(w, 1);
    assert_int_equal(kind_row(w).circuits_open, 0);
    assert_int_equal(kind_of(w)->circuits_idle.count, RV_AGENT_CIRCUITS_MAX);
    struct rv_call *next = submit_piece(w);
    assert_int_equal(next->err, RV_OK);
    open_circuit(w, world_take(w, "inventory", "i1"), "a new one", OPEN_MS);
    assert_int_equal(kind_row(w).circuits_open, 1);
    assert_int_equal(kind_of(w)->circuits_idle.count, RV_AGENT_CIRCUITS_MAX - 1);
    world_pass(w, 15 * 60 * 1000);
    assert_int_equal(kind_of(w)->circuits_idle.count, 0);
}

int main(void)
{
#define SCENARIO(name) cmocka_unit_test_setup_teardown(name, open_world, world_teardown)
    const struct CMUnitTest tests[] = {
        SCENARIO(a_circuit_stops_the_steps_of_its_own_target),
        SCENARIO(a_target_is_asked_by_one_probe),
        SCENARIO(the_oldest_wait_is_shown),
        SCENARIO(the_oldest_wait_is_that_of_all_steps),
        SCENARIO(a_refused_commit_changes_no_queue),
        SCENARIO(only_steps_that_wait_are_counted),
        SCENARIO(a_cancelled_step_leaves_its_circuit),
        SCENARIO(steps_that_were_sent_back_are_counted),
        SCENARIO(a_probe_that_finds_it_open_opens_it_anew),
        SCENARIO(a_circuit_is_known_again_after_a_restart),
        SCENARIO(a_circuit_that_nobody_waits_for_is_forgotten),
        SCENARIO(a_probe_that_did_not_leave_is_sent_again),
        SCENARIO(a_probe_that_another_replaced_closes_its_circuit),
        SCENARIO(a_replaced_probe_that_fails_closes_nothing),
        SCENARIO(a_reply_that_is_read_late_closes_its_circuit),
        SCENARIO(a_probe_that_is_cancelled_is_replaced_by_the_next),
        SCENARIO(ever_new_targets_are_known_up_to_a_bound),
        SCENARIO(the_whole_agent_always_has_a_circuit),
        SCENARIO(circuits_cost_a_batch_nothing),
        SCENARIO(circuits_whose_time_is_over_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

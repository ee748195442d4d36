/* A store that fails once, at each of its calls in turn, while tasks run, are undone and are
 * cancelled: nothing acknowledged is lost, and the world goes on by itself (RULES 1, 10). */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS = 6, LOOPS_MAX = 150, HELD_MAX = 16, RESTART_LOOP = 4 };

/* What becomes of the tasks, by number. */
enum { GOES_WELL, CHARGE_FAILS, CHARGE_STUMBLES, CANCELLED_FIRST, CANCELLED_LATE, WAITS };

static const char *const ends[] = {"processed", "compensated", "processed",
                                   "cancelled", "compensated", "processed"};

struct agent {
    const char *name;
    const char *instance;
    struct rv_call *poll; /* out, or NULL */
    char poll_id[32];
    char confirm_id[32]; /* of the answer that came last */
    int polls;
    struct rv_assignment held[HELD_MAX]; /* not answered yet */
    struct rv_call *held_in[HELD_MAX];
    size_t held_count;
};

struct play {
    struct world *w;
    struct rv_task_id tasks[TASKS];
    struct agent agents[2];
    int stumbled;
    bool cancelled[TASKS];
    struct rv_step_id acked[64]; /* replies with 200 and an output */
    size_t acked_count;
};

/* ---- application and operator: what is not answered with success is asked again ---- */

static void play_publish(struct play *p)
{
    world_publish(p->w, workflow_file("order"));
}

static void play_submit(struct play *p)
{
    for (int i = 0; i < TASKS; i++) {
        if (p->tasks[i].value != 0)
            continue;
        struct rv_call *call = world_call(p->w, RV_CALL_SUBMIT);
        struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
        *item = (struct rv_submission){.space = RV_STR("shop"),
                                       .name = RV_STR("order"),
                                       .input = RV_STR("{\"sku\":\"A\"}"),
                                       .key = rv_arena_printf(&call->arena, "order-%d", i),
                                       .body_hash = RV_STR("h"),
                                       .priority = 5};
        call->u.submit.items = item;
        call->u.submit.count = 1;
        assert_true(world_run(p->w, call));
        if (call->err == RV_OK && item->err == RV_OK)
            p->tasks[i] = item->task;
    }
}

static void play_cancel(struct play *p, int i)
{
    if (p->tasks[i].value == 0 || p->cancelled[i])
        return;
    enum rv_err err = world_operate(p->w, RV_COMMAND_CANCEL, p->tasks[i]);
    p->cancelled[i] = err == RV_OK;
}

/* ---- agents ---- */

static int task_number(const struct play *p, struct rv_task_id task)
{
    for (int i = 0; i < TASKS; i++)
        if (p->tasks[i].value == task.value)
            return i;
    return -1;
}

static void agent_take(struct agent *agent)
{
    struct rv_call *poll = agent->poll;
    if (poll == NULL || !world_finished(poll))
        return;
    agent->poll = NULL;
    if (poll->err != RV_OK)
        return;
    memcpy(agent->confirm_id, agent->poll_id, sizeof agent->confirm_id);
    for (size_t i = 0; i < poll->u.poll.requests_count; i++) {
        bool known = false;
        for (size_t j = 0; j < agent->held_count; j++)
            known = known || agent->held[j].token == poll->u.poll.requests[i].token;
        assert_true(agent->held_count < HELD_MAX);
        if (!known)
            agent->held[agent->held_count++] = poll->u.poll.requests[i];
    }
}

static bool charge_stumbles(struct play *p, int task)
{
    return task == CHARGE_STUMBLES && p->stumbled++ == 0;
}

/* True when it was answered, whatever the answer. */
static bool agent_answer(struct play *p, const struct agent *agent, struct rv_assignment request)
{
    int task = task_number(p, request.step.task);
    bool charge = strcmp(agent->name, "payment") == 0 && request.step.number == 2;
    if (task < 0)
        return false; /* its submission was not answered yet */
    struct rv_call *call = world_call(p->w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){.step = request.step, .token = request.token};
    if (charge && (task == CHARGE_FAILS || charge_stumbles(p, task)))
        item->reply = (struct rv_reply){.error = RV_STR("{\"type\":\"broken\",\"status\":500}"),
                                        .transient = task == CHARGE_STUMBLES};
    else
        item->reply = (struct rv_reply){.output = RV_STR("{}")};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    assert_true(world_run(p->w, call));
    if (call->err != RV_OK)
        return false;
    assert_int_not_equal(item->status, 0);
    if (item->status == 200 && item->reply.output.at != NULL && p->acked_count < 64)
        p->acked[p->acked_count++] = request.step;
    return true;
}

static void agent_replies(struct play *p, struct agent *agent)
{
    size_t kept = 0;
    for (size_t i = 0; i < agent->held_count; i++) {
        struct rv_assignment request = agent->held[i];
        bool late = task_number(p, request.step.task) == CANCELLED_LATE && request.step.number == 2;
        if (late)
            play_cancel(p, CANCELLED_LATE);
        if ((late && !p->cancelled[CANCELLED_LATE]) || !agent_answer(p, agent, request))
            agent->held[kept++] = request;
    }
    agent->held_count = kept;
}

static void agent_poll(struct play *p, struct agent *agent)
{
    if (agent->poll != NULL)
        return;
    struct rv_call *call = world_call(p->w, RV_CALL_POLL);
    struct rv_str *confirm = RV_NEW(&call->arena, struct rv_str);
    snprintf(agent->poll_id, sizeof agent->poll_id, "%s-%d", agent->instance, ++agent->polls);
    *confirm = rv_arena_str(&call->arena, rv_str_of(agent->confirm_id));
    call->u.poll = (struct rv_poll){.agent = rv_str_of(agent->name),
                                    .instance = rv_str_of(agent->instance),
                                    .boot = RV_STR("b"),
                                    .poll = rv_arena_str(&call->arena, rv_str_of(agent->poll_id)),
                                    .max = 4,
                                    .wait_ms = 2000,
                                    .confirms = true,
                                    .confirm = confirm,
                                    .confirm_count = agent->confirm_id[0] != '\0'};
    agent->poll = call;
    world_run(p->w, call);
}

/* ---- the play ---- */

static bool play_over(struct play *p)
{
    for (int i = 0; i < TASKS; i++) {
        if (p->tasks[i].value == 0)
            return false;
        struct rv_call *call = world_call(p->w, RV_CALL_SHOW);
        call->u.show.task = p->tasks[i];
        assert_true(world_run(p->w, call));
        if (call->err != RV_OK || rv_task_state_open(call->u.show.found->state))
            return false;
    }
    return true;
}

static int play_run(struct play *p)
{
    for (int loop = 0; loop < LOOPS_MAX; loop++) {
        play_submit(p);
        play_cancel(p, CANCELLED_FIRST);
        if (loop == RESTART_LOOP)
            world_restart(p->w, 100);
        for (size_t i = 0; i < 2; i++) {
            agent_take(&p->agents[i]);
            agent_replies(p, &p->agents[i]);
            agent_poll(p, &p->agents[i]);
            agent_take(&p->agents[i]);
        }
        world_pass(p->w, 500);
        if (play_over(p))
            return loop;
    }
    return LOOPS_MAX;
}

static void play_check(struct play *p)
{
    for (int i = 0; i < TASKS; i++) {
        const char *state = rv_task_state_text(world_task(p->w, p->tasks[i])->state);
        /* A cancel that was refused at first comes when there is something to undo already. */
        if (i != CANCELLED_FIRST || strcmp(state, "compensated") != 0)
            assert_string_equal(state, ends[i]);
        assert_int_equal(world_count_alerts(p->w, p->tasks[i], RV_ALERT_NO_AGENT), 0);
        assert_int_equal(world_count_alerts(p->w, p->tasks[i], RV_ALERT_OFFENDER), 0);
    }
    for (size_t i = 0; i < p->acked_count; i++)
        assert_string_equal(
            rv_step_state_text(world_step(p->w, p->acked[i].task, p->acked[i].number)->state),
            "processed");
}

static void play_open(struct play *p, struct world *w, struct store_faults *faults)
{
    *p = (struct play){
        .w = w,
        .agents = {{.name = "inventory", .instance = "i1"}, {.name = "payment", .instance = "p1"}}};
    world_open_faulty(w, faults);
    play_publish(p);
    faults->calls = 0;
}

/* Every call of the play fails once. */
static void fail_each(enum rv_err with, bool unknown_writes)
{
    static struct world w;
    uint64_t at = 0;
    bool failed = true;
    while (failed) {
        struct store_faults faults = {.fail_with = with, .unknown_writes = unknown_writes};
        struct play p;
        play_open(&p, &w, &faults);
        faults.fail_at = ++at;
        int loops = play_run(&p);
        failed = faults.failed > 0;
        faults.fail_at = 0;
        if (loops == LOOPS_MAX)
            print_message("# %s at call %d: not over\n", rv_err_text(with), (int)at);
        assert_true(loops < LOOPS_MAX);
        play_check(&p);
        world_close(&w);
    }
    assert_true(at > 100);
}

static void a_busy_store_loses_nothing(void **state)
{
    (void)state;
    fail_each(RV_ERR_BUSY, false);
}

static void a_full_store_loses_nothing(void **state)
{
    (void)state;
    fail_each(RV_ERR_FULL, false);
}

static void a_store_out_of_memory_loses_nothing(void **state)
{
    (void)state;
    fail_each(RV_ERR_MEMORY, false);
}

static void a_store_that_breaks_ends_the_process_and_loses_nothing(void **state)
{
    (void)state;
    fail_each(RV_ERR_IO, false);
}

static void a_commit_that_was_written_after_all_is_acted_upon(void **state)
{
    (void)state;
    fail_each(RV_ERR_COMMIT_UNKNOWN, true);
}

static void a_commit_that_was_not_written_is_not(void **state)
{
    (void)state;
    fail_each(RV_ERR_COMMIT_UNKNOWN, false);
}

/* Other instances were faster, again and again. */
static void changes_that_do_not_pass_are_decided_again(void **state)
{
    (void)state;
    static struct world w;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct store_faults faults = {.seed = seed * 1000000, .drops_per_1000 = 300};
        struct play p;
        play_open(&p, &w, &faults);
        int loops = play_run(&p);
        faults.drops_per_1000 = 0;
        if (loops == LOOPS_MAX)
            print_message("# seed %d: not over\n", (int)seed);
        assert_true(loops < LOOPS_MAX);
        assert_true(faults.drops > 0);
        play_check(&p);
        world_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_store_loses_nothing),
        cmocka_unit_test(a_full_store_loses_nothing),
        cmocka_unit_test(a_store_out_of_memory_loses_nothing),
        cmocka_unit_test(a_store_that_breaks_ends_the_process_and_loses_nothing),
        cmocka_unit_test(a_commit_that_was_written_after_all_is_acted_upon),
        cmocka_unit_test(a_commit_that_was_not_written_is_not),
        cmocka_unit_test(changes_that_do_not_pass_are_decided_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

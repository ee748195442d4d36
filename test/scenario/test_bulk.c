/* Selections of tasks, and one command for each of their tasks: so many a second, each once
 * whatever crashes, judged as the command for one task is. */
#include "../lib/store_faults.h"
#include "../lib/workflow.h"
#include "../lib/world.h"
#include "base/time.h"
#include "document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TASKS = 12, RATE = 8 };
enum { ROLE_RENEWAL_MS = 4000 }; /* after that long the next batch renews the role */

static struct rv_task_id tasks[TASKS];

/* All tasks in error. */
static void park_tasks(struct world *w)
{
    world_publish(w, workflow_file("bulk/parked"));
    for (int i = 0; i < TASKS; i++)
        tasks[i] = world_submit(w, "parked", "{}");
    struct rv_call *poll = world_poll(w, "one", "i1", TASKS);
    assert_int_equal(poll->u.poll.requests_count, TASKS);
    for (int i = 0; i < TASKS; i++)
        (void)world_fail(w, poll->u.poll.requests[i], false, RV_EFFECT_NONE);
}

static int open_world(void **state)
{
    static struct world w;
    world_open(&w);
    park_tasks(&w);
    *state = &w;
    return 0;
}

static struct rv_call *done(struct world *w, struct rv_call *call)
{
    (void)world_run(w, call);
    world_settle(w);
    assert_true(world_finished(call));
    return call;
}

static struct rv_call *select_call(struct world *w, enum rv_task_state of)
{
    struct rv_call *call = world_call(w, RV_CALL_SELECT);
    call->u.select = RV_NEW(&call->arena, struct rv_call_select);
    assert_non_null(call->u.select);
    call->u.select->list.filter.by_state = true;
    call->u.select->list.filter.state = of;
    call->u.select->row.filter = RV_STR("state=error");
    call->u.select->row.picked.by = RV_STR("ann");
    call->u.select->row.picked.role = RV_STR("local");
    return done(w, call);
}

static struct rv_task_id select_parked(struct world *w)
{
    struct rv_call *call = select_call(w, RV_TASK_ERROR);
    assert_int_equal(call->err, RV_OK);
    return call->u.select->row.id;
}

/* Not run yet. */
static struct rv_call *bulk_ask(struct world *w, struct rv_task_id selection, enum rv_bulk_ask ask,
                                uint32_t rate)
{
    struct rv_call *call = world_call(w, RV_CALL_BULK);
    call->u.bulk.selection = selection;
    call->u.bulk.ask = ask;
    call->u.bulk.verb = RV_COMMAND_RESUBMIT;
    call->u.bulk.rate = rate;
    call->u.bulk.word.by = RV_STR("ann");
    call->u.bulk.word.role = RV_STR("operator");
    call->u.bulk.word.reason = RV_STR("they are back");
    return call;
}

static struct rv_call *bulk_call(struct world *w, struct rv_task_id selection, enum rv_bulk_ask ask)
{
    return done(w, bulk_ask(w, selection, ask, RATE));
}

static void asked(struct world *w, struct rv_task_id selection, enum rv_bulk_ask ask)
{
    assert_int_equal(bulk_call(w, selection, ask)->err, RV_OK);
}

static struct rv_selection status(struct world *w, struct rv_task_id selection)
{
    struct rv_call *call = world_call(w, RV_CALL_SELECTIONS);
    call->u.selections.only = selection;
    (void)done(w, call);
    assert_int_equal(call->err, RV_OK);
    return call->u.selections.rows[0];
}

/* What the rows of the tasks say was resubmitted. */
static int resubmitted(struct world *w)
{
    int count = 0;
    for (int i = 0; i < TASKS; i++)
        count += world_task(w, tasks[i])->state != RV_TASK_ERROR;
    return count;
}

static void assert_outcomes(const struct rv_selection *row, uint32_t given, uint32_t refused)
{
    assert_int_equal(row->outcomes[RV_BULK_DONE], given);
    assert_int_equal(row->outcomes[RV_BULK_REFUSED], refused);
    assert_int_equal(row->outcomes[RV_BULK_GONE], 0);
}

/* ---- once each ---- */

static void each_task_has_its_command(void **state)
{
    struct world *w = *state;
    struct rv_call *select = select_call(w, RV_TASK_ERROR);
    assert_int_equal(select->u.select->row.tasks, TASKS);
    assert_int_equal(select->u.select->shown_count, RV_SELECTION_SHOWN);
    assert_int_equal(select->u.select->shown[0].task.value, tasks[TASKS - 1].value);
    assert_true(rv_str_is(select->u.select->shown[0].workflow, "shop/parked:1.0.0"));
    struct rv_task_id selection = select->u.select->row.id;
    asked(w, selection, RV_BULK_BEGIN);
    world_pass(w, 5000);
    struct rv_selection row = status(w, selection);
    assert_outcomes(&row, TASKS, 0);
    assert_true(row.ended_at != 0);
    assert_true(rv_str_is(row.begun.by, "ann") && rv_str_is(row.begun.role, "operator") &&
                rv_str_is(row.begun.reason, "they are back"));
    assert_int_equal(resubmitted(w), TASKS);
}

static void no_more_a_second_than_the_rate(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    asked(w, selection, RV_BULK_BEGIN);
    for (int ms = 100; ms <= 1000; ms += 100) {
        world_pass(w, 100);
        assert_true(resubmitted(w) <= RATE * (1000 + ms) / 1000);
    }
    assert_true(resubmitted(w) >= RATE / 2);
    assert_true(resubmitted(w) < TASKS);
    world_pass(w, 1000);
    assert_int_equal(resubmitted(w), TASKS);
}

/* A server that dies at any moment gives those that had none, when it is back. */
static void a_crash_repeats_and_skips_none(void **state)
{
    for (int64_t at = 0; at <= 1600; at += 50) {
        struct world *w = *state;
        struct rv_task_id selection = select_parked(w);
        asked(w, selection, RV_BULK_BEGIN);
        world_pass(w, at);
        world_restart(w, 10);
        world_pass(w, 200);
        world_restart(w, 10);
        world_pass(w, 6000);
        struct rv_selection row = status(w, selection);
        assert_outcomes(&row, TASKS, 0);
        assert_true(row.ended_at != 0);
        assert_int_equal(resubmitted(w), TASKS);
        world_teardown(state);
        open_world(state);
    }
}

/* The N-th commit of it has an outcome that nobody knows: the server starts again. What was written
 * without its outcome would be refused the second time, what has an outcome and was not written
 * would stay in error. */
static void a_lost_commit_repeats_and_skips_none(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 2 * TASKS + 6; n++) {
        for (int writes = 0; writes < 2; writes++) {
            struct store_faults faults = {.only_commits = true};
            struct world w;
            world_open_faulty(&w, &faults);
            park_tasks(&w);
            struct rv_task_id selection = select_parked(&w);
            asked(&w, selection, RV_BULK_BEGIN);
            faults.fail_with = RV_ERR_COMMIT_UNKNOWN;
            faults.unknown_writes = writes != 0;
            faults.fail_at = faults.calls + n;
            world_pass(&w, 10000);
            struct rv_selection row = status(&w, selection);
            assert_outcomes(&row, TASKS, 0);
            assert_true(row.ended_at != 0);
            assert_int_equal(resubmitted(&w), TASKS);
            world_close(&w);
        }
    }
}

static bool server_goes_on(enum rv_err err)
{
    return err == RV_OK || err == RV_ERR_BUSY;
}

/* The N-th call of the store fails, such as the claim of the role that is renewed: the server takes
 * the same role anew. Neither the numbers of an earlier batch nor its end are those of that one. */
static void a_call_that_fails_with_the_role_is_nothing(void **state)
{
    enum { CALLS = 44 };
    (void)state;
    for (uint64_t n = 1; n <= CALLS; n++) {
        struct store_faults faults = {.seed = n};
        struct world w;
        world_open_faulty(&w, &faults);
        park_tasks(&w);
        struct rv_task_id selection = select_parked(&w);
        struct rv_call *begin = bulk_ask(&w, selection, RV_BULK_BEGIN, RATE);
        faults.fail_with = RV_ERR_BUSY;
        faults.fail_at = faults.calls + n;
        assert_true(server_goes_on(rv_scheduler_run_batch(w.scheduler, &begin, 1, w.mono)));
        for (int i = 0; i < TASKS && faults.failed == 0; i++) {
            int64_t step = ((uint64_t)i + n) % 2 == 0 ? 1 : ROLE_RENEWAL_MS;
            w.now += step;
            w.mono += step;
            assert_true(server_goes_on(rv_scheduler_run_batch(w.scheduler, NULL, 0, w.mono)));
        }
        assert_int_equal(faults.failed, 1);
        if (begin->err == RV_ERR_BUSY)
            asked(&w, selection, RV_BULK_BEGIN);
        world_pass(&w, 10000);
        struct rv_selection row = status(&w, selection);
        assert_outcomes(&row, TASKS, 0);
        assert_true(row.ended_at != 0);
        assert_int_equal(resubmitted(&w), TASKS);
        assert_int_equal(w.bulks_ended, 1);
        world_close(&w);
    }
}

/* Changes that do not pass their guard (another server was faster, another is the supervisor) have
 * no outcome either, and are decided again. */
static void what_did_not_pass_is_decided_again(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= TASKS; n++) {
        struct store_faults faults = {.seed = n};
        struct world w;
        world_open_faulty(&w, &faults);
        park_tasks(&w);
        struct rv_task_id selection = select_parked(&w);
        asked(&w, selection, RV_BULK_BEGIN);
        faults.drop_at = faults.changes + n;
        world_pass(&w, 10000);
        struct rv_selection row = status(&w, selection);
        assert_outcomes(&row, TASKS, 0);
        assert_true(row.ended_at != 0);
        assert_true(faults.drops > 0);
        assert_int_equal(resubmitted(&w), TASKS);
        world_close(&w);
    }
}

/* ---- pause ---- */

static void paused_through_a_restart(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    asked(w, selection, RV_BULK_BEGIN);
    world_pass(w, 500);
    int given = resubmitted(w);
    assert_true(given > 0 && given < TASKS);
    asked(w, selection, RV_BULK_PAUSE);
    given = resubmitted(w);
    world_pass(w, 3000);
    assert_int_equal(resubmitted(w), given);
    world_restart(w, 1000);
    world_pass(w, 3000);
    assert_int_equal(resubmitted(w), given);
    struct rv_selection row = status(w, selection);
    assert_true(row.paused && row.ended_at == 0);
    assert_outcomes(&row, (uint32_t)given, 0);
    asked(w, selection, RV_BULK_RESUME);
    world_pass(w, 5000);
    row = status(w, selection);
    assert_outcomes(&row, TASKS, 0);
    assert_true(row.ended_at != 0);
}

/* A command that was begun by mistake does not wait paused for ever. */
static void stopped_for_good(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    assert_int_equal(bulk_call(w, selection, RV_BULK_STOP)->err, RV_ERR_REFUSED); /* none yet */
    asked(w, selection, RV_BULK_BEGIN);
    world_pass(w, 500);
    asked(w, selection, RV_BULK_PAUSE);
    int given = resubmitted(w);
    assert_true(given > 0 && given < TASKS);
    asked(w, selection, RV_BULK_STOP);
    asked(w, selection, RV_BULK_STOP); /* changes nothing */
    assert_int_equal(bulk_call(w, selection, RV_BULK_RESUME)->err, RV_ERR_REFUSED);
    assert_int_equal(bulk_call(w, selection, RV_BULK_BEGIN)->err, RV_ERR_REFUSED);
    world_pass(w, 5000);
    world_restart(w, 1000);
    world_pass(w, 5000);
    assert_int_equal(resubmitted(w), given);
    struct rv_selection row = status(w, selection);
    assert_outcomes(&row, (uint32_t)given, 0);
    assert_true(row.stopped.at != 0 && row.ended_at >= row.stopped.at);
    assert_true(rv_str_is(row.stopped.by, "ann") && rv_str_is(row.stopped.role, "operator"));
    assert_int_equal(w->bulks_ended, 1);
}

/* Its end is not written yet. */
static struct rv_task_id stopped_in_a_batch(struct world *w)
{
    struct rv_task_id selection = select_parked(w);
    asked(w, selection, RV_BULK_BEGIN);
    struct rv_call *stop = bulk_ask(w, selection, RV_BULK_STOP, RATE);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &stop, 1, w->mono), RV_OK);
    assert_true(world_finished(stop) && stop->err == RV_OK);
    return selection;
}

/* Neither in the batch that writes its end, though its rate would allow it. */
static void no_task_gets_a_stopped_command(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = stopped_in_a_batch(w);
    int given = resubmitted(w);
    w->now += 500;
    w->mono += 500;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
    assert_int_equal(resubmitted(w), given);
    assert_true(status(w, selection).ended_at != 0);
}

/* The server ends before the end of the stopped command is written. */
static void a_stop_is_kept_through_a_restart(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = stopped_in_a_batch(w);
    int given = resubmitted(w);
    world_restart(w, 1000);
    world_pass(w, 5000);
    assert_int_equal(resubmitted(w), given);
    struct rv_selection row = status(w, selection);
    assert_true(row.stopped.at != 0 && row.ended_at != 0);
}

/* ---- memory ---- */

static uint64_t mallocs, malloc_fails_at; /* 0: none */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    mallocs++;
    return malloc_fails_at == 0 || mallocs != malloc_fails_at ? __real_malloc(bytes) : NULL;
}

/* There are so many selections that it takes a few batches to find this one again. */
static void a_stop_that_finds_no_memory_stops(void **state)
{
    enum { OTHERS = 110 };
    bool failed = true;
    (void)state;
    for (uint64_t n = 1; failed; n++) {
        struct world w;
        world_open(&w);
        park_tasks(&w);
        struct rv_task_id selection = {0};
        for (int i = 0; i < 2 * OTHERS; i++) {
            struct rv_task_id one = select_parked(&w);
            selection = i == OTHERS ? one : selection;
            world_pass(&w, 1);
        }
        asked(&w, selection, RV_BULK_BEGIN);
        int given = resubmitted(&w);
        struct rv_call *stop = bulk_ask(&w, selection, RV_BULK_STOP, RATE);
        malloc_fails_at = n;
        mallocs = 0;
        enum rv_err err = rv_scheduler_run_batch(w.scheduler, &stop, 1, w.mono);
        failed = mallocs >= n;
        malloc_fails_at = 0;
        assert_true(err == RV_OK || err == RV_ERR_MEMORY);
        bool stopped = world_finished(stop) && stop->err == RV_OK;
        w.now += 500;
        w.mono += 500;
        assert_int_equal(rv_scheduler_run_batch(w.scheduler, NULL, 0, w.mono), RV_OK);
        if (stopped)
            assert_int_equal(resubmitted(&w), given);
        world_settle(&w);
        asked(&w, selection, RV_BULK_STOP);
        world_pass(&w, 100);
        struct rv_selection row = status(&w, selection);
        assert_true(row.ended_at != 0 && rv_str_is(row.stopped.by, "ann"));
        world_close(&w);
    }
}

/* The commands of the batch before are among its numbers, whose record is written with the next. */
static void a_pause_tells_of_all_commands_before_it(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    asked(w, selection, RV_BULK_BEGIN);
    int given = resubmitted(w);
    w->now += 500;
    w->mono += 500;
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
    struct rv_call *pause = bulk_ask(w, selection, RV_BULK_PAUSE, RATE);
    assert_int_equal(rv_scheduler_run_batch(w->scheduler, &pause, 1, w->mono), RV_OK);
    assert_true(world_finished(pause) && pause->err == RV_OK);
    assert_true(resubmitted(w) > given && resubmitted(w) < TASKS);
    assert_outcomes(&pause->u.bulk.row, (uint32_t)resubmitted(w), 0);
    struct rv_selection row = status(w, selection);
    assert_outcomes(&row, (uint32_t)resubmitted(w), 0);
}

static void assert_holds(const struct rv_selection *row, uint32_t count, uint32_t dropped)
{
    assert_int_equal(row->holds_count, count);
    assert_int_equal(row->holds_dropped, dropped);
    for (uint32_t i = 0; i < count; i++) {
        const struct rv_hold *hold = &row->holds[i];
        assert_int_equal(hold->pause, (dropped + i) % 2 == 0);
        assert_true(rv_str_is(hold->word.by, "ann") && hold->word.at > 0);
        assert_true(rv_str_is(hold->word.role, "operator"));
        assert_true(i == 0 || hold->word.at > row->holds[i - 1].word.at);
    }
}

static void each_pause_is_recorded(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    asked(w, selection, RV_BULK_BEGIN);
    for (int i = 0; i < 3; i++) {
        asked(w, selection, RV_BULK_PAUSE);
        asked(w, selection, RV_BULK_PAUSE); /* changes nothing */
        world_pass(w, 100);
        asked(w, selection, RV_BULK_RESUME);
        world_pass(w, 100);
        struct rv_selection row = status(w, selection);
        assert_holds(&row, 2 * (uint32_t)(i + 1), 0);
    }
    world_restart(w, 1000);
    world_pass(w, 10000);
    struct rv_selection row = status(w, selection);
    assert_true(row.ended_at != 0);
    assert_holds(&row, 6, 0); /* its end has written the record anew */
}

/* Whichever batch it comes in: what was answered is there, and the command ends once. */
static void a_pause_in_the_batch_of_its_end_is_kept(void **state)
{
    enum { BATCHES = 10 };
    static const enum rv_bulk_ask asks[] = {RV_BULK_PAUSE, RV_BULK_RESUME, RV_BULK_STOP};
    struct world *w = *state;
    int refused = 0;
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, tasks[i]), RV_OK);
    for (int round = 0; round < 3 * BATCHES; round++) {
        struct rv_task_id selection = select_call(w, RV_TASK_PROCESSING)->u.select->row.id;
        struct rv_call *begin = bulk_ask(w, selection, RV_BULK_BEGIN, RV_BULK_RATE_MAX);
        struct rv_call *hold = bulk_ask(w, selection, asks[round % 3], RV_BULK_RATE_MAX);
        w->bulks_ended = 0;
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, &begin, 1, w->mono), RV_OK);
        for (int i = 0; i < round / 3; i++) {
            w->now += 10;
            w->mono += 10;
            assert_int_equal(rv_scheduler_run_batch(w->scheduler, NULL, 0, w->mono), RV_OK);
        }
        assert_int_equal(rv_scheduler_run_batch(w->scheduler, &hold, 1, w->mono), RV_OK);
        world_settle(w);
        assert_true(world_finished(hold));
        bool paused = hold->err == RV_OK && round % 3 == 0;
        bool stopped = hold->err == RV_OK && round % 3 == 2;
        assert_int_equal(status(w, selection).holds_count, paused);
        assert_int_equal(status(w, selection).stopped.at != 0, stopped);
        if (paused && status(w, selection).ended_at == 0)
            asked(w, selection, RV_BULK_RESUME);
        world_pass(w, 1000);
        assert_true(status(w, selection).ended_at != 0);
        assert_int_equal(w->bulks_ended, 1);
        refused += hold->err == RV_ERR_REFUSED;
    }
    assert_true(refused > 0 && refused < 3 * BATCHES);
}

static void the_newest_pauses_are_kept(void **state)
{
    enum { PAUSES = 15 };
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    asked(w, selection, RV_BULK_BEGIN);
    for (int i = 0; i < PAUSES; i++) {
        asked(w, selection, RV_BULK_PAUSE);
        world_pass(w, 10);
        asked(w, selection, RV_BULK_RESUME);
        world_pass(w, 10);
    }
    struct rv_selection row = status(w, selection);
    assert_holds(&row, RV_HOLDS_MAX, 2 * PAUSES - RV_HOLDS_MAX);
    world_pass(w, 10000);
    row = status(w, selection);
    assert_true(row.ended_at != 0);
    assert_holds(&row, RV_HOLDS_MAX, 2 * PAUSES - RV_HOLDS_MAX);
}

/* A release before pauses were listed kept the newest alone. */
static void a_pause_of_an_earlier_release_is_read(void **state)
{
    (void)state;
    struct rv_arena arena;
    struct rv_selection row;
    char key[RV_ID_TEXT_BYTES];
    rv_arena_init(&arena, 0);
    struct rv_record record = {
        .kind = RV_STR(RV_RECORD_SELECTION),
        .key = rv_task_text((struct rv_task_id){4711}, key),
        .value = RV_STR("{\"tasks\":2,\"picked\":{\"at\":1},\"begun\":{\"at\":2},"
                        "\"held\":{\"at\":3,\"by\":\"ann\"},\"command\":\"undo\","
                        "\"abandon\":false,\"rate\":5,\"lateSeen\":0,\"paused\":true,"
                        "\"endedAt\":0}")};
    assert_int_equal(rv_selection_read(&arena, &record, &row), RV_OK);
    assert_false(row.unreadable);
    assert_int_equal(row.holds_count, 1);
    assert_true(row.paused && row.holds[0].pause && row.holds[0].word.at == 3);
    assert_true(rv_str_is(row.holds[0].word.by, "ann"));
    rv_arena_done(&arena);
}

/* ---- each task is judged when its turn comes ---- */

static void what_has_changed_is_refused_by_the_commands_rule(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    assert_int_equal(world_operate(w, RV_COMMAND_RESUBMIT, tasks[3]), RV_OK);
    struct rv_assignment request = world_take(w, "one", "i1");
    assert_int_equal(world_done(w, request, "{}"), 200);
    assert_state(w, tasks[3], "processed");
    asked(w, selection, RV_BULK_BEGIN);
    world_pass(w, 5000);
    struct rv_selection row = status(w, selection);
    assert_outcomes(&row, TASKS - 1, 1);
    struct rv_call *call = world_call(w, RV_CALL_OUTCOMES);
    call->u.outcomes.selection = selection;
    call->u.outcomes.outcome = RV_BULK_REFUSED;
    call->u.outcomes.limit = 10;
    (void)done(w, call);
    assert_int_equal(call->u.outcomes.count, 1);
    assert_int_equal(call->u.outcomes.rows[0].task.value, tasks[3].value);
    assert_true(call->u.outcomes.rows[0].message.len > 0);
    assert_state(w, tasks[3], "processed");
}

/* The effect of the first task declares no compensation, the second has passed its pivot. */
static void a_task_that_cannot_be_undone_is_refused(void **state)
{
    struct world *w = *state;
    world_publish(w, DOCUMENT("bare") "do:\n"
                                      "  - a: {call: two}\n"
                                      "  - b: {call: three}\n");
    world_publish(w, DOCUMENT("pivot") "do:\n"
                                       "  - a: {call: two, metadata: {reeve: {pivot: true}}}\n"
                                       "  - b: {call: three}\n");
    const struct rv_task_id stuck[] = {world_submit(w, "bare", "{}"),
                                       world_submit(w, "pivot", "{}")};
    for (int i = 0; i < 2; i++)
        assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    struct rv_call *call = select_call(w, RV_TASK_PROCESSING);
    assert_int_equal(call->err, RV_OK);
    struct rv_task_id selection = call->u.select->row.id;
    call = world_call(w, RV_CALL_BULK);
    call->u.bulk.selection = selection;
    call->u.bulk.ask = RV_BULK_BEGIN;
    call->u.bulk.verb = RV_COMMAND_UNDO;
    call->u.bulk.rate = RATE;
    (void)done(w, call);
    assert_int_equal(call->err, RV_OK);
    world_pass(w, 5000);
    struct rv_selection row = status(w, selection);
    assert_outcomes(&row, 0, 2);
    for (int i = 0; i < 2; i++)
        assert_state(w, stuck[i], "processing");
    /* As the refusal recommends. */
    call = select_call(w, RV_TASK_PROCESSING);
    assert_int_equal(call->err, RV_OK);
    selection = call->u.select->row.id;
    call = world_call(w, RV_CALL_BULK);
    call->u.bulk = (struct rv_call_bulk){.selection = selection,
                                         .ask = RV_BULK_BEGIN,
                                         .verb = RV_COMMAND_CANCEL,
                                         .by_hand = true,
                                         .rate = RATE};
    (void)done(w, call);
    world_restart(w, 10); /* the selection's record says it */
    world_pass(w, 5000);
    row = status(w, selection);
    assert_true(row.by_hand);
    assert_outcomes(&row, 1, 1);
    assert_state(w, stuck[0], "error");
    assert_state(w, stuck[1], "processing");
    assert_int_equal(world_settle_step(w, stuck[0], 1, RV_FINDING_UNDONE, NULL)->err, RV_OK);
    assert_state(w, stuck[0], "compensated");
}

/* Each command takes one token of the rate, also where its decision is made beside the batches. */
static void commands_that_take_long_to_decide_come_to_their_end(void **state)
{
    struct world *w = *state;
    world_publish(w, workflow_file("bulk/long"));
    struct rv_task_id all[TASKS];
    for (int i = 0; i < TASKS; i++)
        all[i] = world_submit(w, "long", "{}");
    for (int i = 0; i < TASKS; i++)
        assert_int_equal(world_done(w, world_take(w, "two", "i1"), "{}"), 200);
    struct rv_task_id selection = select_call(w, RV_TASK_PROCESSING)->u.select->row.id;
    uint64_t before = rv_scheduler_counts(w->scheduler)->long_decisions;
    struct rv_call *call = bulk_ask(w, selection, RV_BULK_BEGIN, RATE);
    call->u.bulk.verb = RV_COMMAND_UNDO;
    assert_int_equal(done(w, call)->err, RV_OK);
    world_pass(w, 10000);
    struct rv_selection row = status(w, selection);
    assert_outcomes(&row, TASKS, 0);
    assert_true(row.ended_at != 0);
    assert_int_equal(rv_scheduler_counts(w->scheduler)->long_decisions - before, TASKS);
    for (int i = 0; i < TASKS; i++)
        assert_state(w, all[i], "compensating");
}

/* What two selections have in common is each one's, one after the other. */
static void two_selections_may_have_the_same_tasks(void **state)
{
    struct world *w = *state;
    struct rv_task_id a = select_parked(w), b = select_parked(w);
    asked(w, a, RV_BULK_BEGIN);
    asked(w, b, RV_BULK_BEGIN);
    world_pass(w, 8000);
    struct rv_selection of_a = status(w, a), of_b = status(w, b);
    assert_int_equal(of_a.outcomes[RV_BULK_DONE] + of_b.outcomes[RV_BULK_DONE], TASKS);
    assert_int_equal(of_a.outcomes[RV_BULK_REFUSED] + of_b.outcomes[RV_BULK_REFUSED], TASKS);
    assert_true(of_a.ended_at != 0 && of_b.ended_at != 0);
}

/* A task whose change the store does not take holds up no other. */
static void an_offender_is_refused(void **state)
{
    (void)state;
    struct store_faults faults = {.seed = 0};
    struct world w;
    world_open_faulty(&w, &faults);
    park_tasks(&w);
    struct rv_task_id selection = select_parked(&w);
    faults.offender = tasks[4];
    asked(&w, selection, RV_BULK_BEGIN);
    world_pass(&w, 10000);
    struct rv_selection row = status(&w, selection);
    assert_outcomes(&row, TASKS - 1, 1);
    assert_true(row.ended_at != 0);
    world_close(&w);
}

/* ---- refusals ---- */

static void what_makes_no_sense_is_refused(void **state)
{
    struct world *w = *state;
    assert_int_equal(select_call(w, RV_TASK_COMPENSATED)->err, RV_ERR_NOT_FOUND);
    assert_int_equal(bulk_call(w, tasks[0], RV_BULK_BEGIN)->err, RV_ERR_NOT_FOUND);
    struct rv_task_id selection = select_parked(w);
    assert_int_equal(bulk_call(w, selection, RV_BULK_PAUSE)->err, RV_ERR_REFUSED);
    asked(w, selection, RV_BULK_BEGIN);
    assert_int_equal(bulk_call(w, selection, RV_BULK_BEGIN)->err, RV_ERR_REFUSED);
    asked(w, selection, RV_BULK_PAUSE);
    asked(w, selection, RV_BULK_PAUSE);
    assert_int_equal(bulk_call(w, selection, RV_BULK_BEGIN)->err, RV_ERR_REFUSED);
    asked(w, selection, RV_BULK_RESUME);
    world_pass(w, 5000);
    assert_int_equal(bulk_call(w, selection, RV_BULK_BEGIN)->err, RV_ERR_REFUSED);
    assert_int_equal(bulk_call(w, selection, RV_BULK_RESUME)->err, RV_ERR_REFUSED);
}

static void no_more_are_open_than_may_be(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = {0};
    for (int i = 0; i < RV_BULKS_OPEN_MAX; i++) {
        selection = select_parked(w);
        asked(w, selection, RV_BULK_BEGIN);
        asked(w, selection, RV_BULK_PAUSE);
        if (i == 0)
            world_restart(w, 10);
        park_tasks(w);
    }
    struct rv_task_id one_more = select_parked(w);
    assert_int_equal(bulk_call(w, one_more, RV_BULK_BEGIN)->err, RV_ERR_LIMIT);
    asked(w, selection, RV_BULK_STOP);
    asked(w, one_more, RV_BULK_BEGIN);
}

/* There may be only so many: without --retain, too, they go some day. */
static void a_selection_goes_after_thirty_days(void **state)
{
    struct world *w = *state;
    struct rv_task_id selection = select_parked(w);
    world_restart(w, (29 * 24 + 12) * RV_HOUR_MS);
    assert_int_equal(status(w, selection).tasks, TASKS);
    world_pass(w, 25 * RV_HOUR_MS);
    struct rv_call *call = world_call(w, RV_CALL_SELECTIONS);
    call->u.selections.only = selection;
    assert_int_equal(done(w, call)->err, RV_ERR_NOT_FOUND);
}

#define SCENARIO(function) cmocka_unit_test_setup_teardown(function, open_world, world_teardown)

int main(void)
{
    const struct CMUnitTest scenarios[] = {
        SCENARIO(each_task_has_its_command),
        SCENARIO(no_more_a_second_than_the_rate),
        SCENARIO(a_crash_repeats_and_skips_none),
        cmocka_unit_test(a_lost_commit_repeats_and_skips_none),
        cmocka_unit_test(a_call_that_fails_with_the_role_is_nothing),
        cmocka_unit_test(what_did_not_pass_is_decided_again),
        SCENARIO(paused_through_a_restart),
        SCENARIO(stopped_for_good),
        SCENARIO(no_task_gets_a_stopped_command),
        SCENARIO(a_stop_is_kept_through_a_restart),
        cmocka_unit_test(a_stop_that_finds_no_memory_stops),
        SCENARIO(a_pause_tells_of_all_commands_before_it),
        SCENARIO(each_pause_is_recorded),
        SCENARIO(a_pause_in_the_batch_of_its_end_is_kept),
        SCENARIO(the_newest_pauses_are_kept),
        cmocka_unit_test(a_pause_of_an_earlier_release_is_read),
        SCENARIO(what_has_changed_is_refused_by_the_commands_rule),
        SCENARIO(a_task_that_cannot_be_undone_is_refused),
        SCENARIO(commands_that_take_long_to_decide_come_to_their_end),
        SCENARIO(two_selections_may_have_the_same_tasks),
        cmocka_unit_test(an_offender_is_refused),
        SCENARIO(what_makes_no_sense_is_refused),
        SCENARIO(no_more_are_open_than_may_be),
        SCENARIO(a_selection_goes_after_thirty_days),
    };
    return cmocka_run_group_tests(scenarios, NULL, NULL);
}

/* The queue of messages that wait for webhooks, over rows that the test holds. */
#include "notify/delivery_queue.h"

#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { TASKS = 300, BEGIN = 1000000 };

struct rows {
    struct rv_delivery_queue queue;
    struct rv_delivery rows[TASKS]; /* of task i + 1 */
    int64_t now;
    size_t sent;
    size_t parked;
    size_t most; /* on their way at once */
    bool unsent; /* what fails, fails here */
};

static void rows_init(struct rows *r)
{
    *r = (struct rows){.now = BEGIN};
    rv_delivery_queue_init(&r->queue, 1, (struct rv_hash_key){1, 2});
    for (int i = 0; i < TASKS; i++) {
        r->rows[i] = (struct rv_delivery){.task = {i + 1},
                                          .next = 1,
                                          .last = 1,
                                          .since = BEGIN,
                                          .due_at = BEGIN,
                                          .destination = RV_STR("https://a")};
        rv_delivery_queue_note(&r->queue, &r->rows[i], r->now);
    }
}

/* As the walk does it. */
static void rows_feed(struct rows *r)
{
    struct rv_str destination;
    struct rv_task_id after;
    if (!rv_delivery_queue_hungry(&r->queue, &destination, &after))
        return;
    bool room = true;
    for (int64_t i = after.value; i < TASKS && room; i++) {
        const struct rv_delivery *row = &r->rows[i];
        if (row->given_up || row->next > row->last)
            continue;
        room = rv_delivery_queue_see(&r->queue, row, r->now);
        if (room)
            after = row->task;
    }
    rv_delivery_queue_read(&r->queue, destination, after, room);
}

static void verdict_take(struct rows *r, const struct rv_delivery_queue_verdict *verdict)
{
    struct rv_delivery *row = &r->rows[verdict->row.task.value - 1];
    assert_int_equal(verdict->next_before, row->next);
    row->next = verdict->row.next;
    row->failures = verdict->row.failures;
    row->since = verdict->row.since;
    row->due_at = verdict->row.due_at;
    row->given_up = verdict->row.given_up;
    r->parked += row->given_up;
    rv_delivery_queue_note(&r->queue, row, r->now);
    assert_null(rv_delivery_queue_broken(&r->queue));
}

/* All that is to be sent now; how many were. */
static size_t rows_turn(struct rows *r, bool taken)
{
    struct rv_delivery_queue_pick picks[64];
    size_t count, sent = 0;
    do {
        rows_feed(r);
        count = rv_delivery_queue_pick(&r->queue, r->now, picks, 64);
        r->most = r->queue.sent > r->most ? r->queue.sent : r->most;
        for (size_t i = 0; i < count; i++) {
            struct rv_delivery_queue_verdict verdict;
            struct rv_notice_result result = {.task = picks[i].task,
                                              .number = picks[i].number,
                                              .taken = taken,
                                              .alive = taken || r->unsent,
                                              .unsent = r->unsent};
            bool known = picks[i].expired
                             ? rv_delivery_queue_expire(&r->queue, picks[i].task, r->now, &verdict)
                             : rv_delivery_queue_result(&r->queue, &result, r->now, &verdict);
            assert_true(known);
            sent += !picks[i].expired;
            verdict_take(r, &verdict);
        }
    } while (count > 0);
    r->sent += sent;
    return sent;
}

/* One message at a time finds out, so most of them are never tried: they are given up all the same,
 * and not before a day. */
static void all_that_wait_for_a_dead_one_are_given_up(void **state)
{
    (void)state;
    static struct rows r;
    rows_init(&r);
    for (; r.now < BEGIN + 23 * RV_HOUR_MS; r.now += 20 * RV_SECOND_MS)
        rows_turn(&r, false);
    assert_int_equal(r.parked, 0);
    assert_true(r.queue.tasks.count <= RV_DELIVERY_QUEUE_FAILING_MAX);
    assert_true(r.most <= 8);
    assert_true(r.sent < 2 * 23 * 60);
    for (; r.now < BEGIN + 26 * RV_HOUR_MS; r.now += 20 * RV_SECOND_MS)
        rows_turn(&r, false);
    assert_int_equal(r.parked, TASKS);
    assert_int_equal(r.queue.tasks.count, 0);
    rv_delivery_queue_done(&r.queue);
}

static void what_comes_back_takes_all_at_once(void **state)
{
    (void)state;
    static struct rows r;
    rows_init(&r);
    for (; r.now < BEGIN + RV_HOUR_MS; r.now += 20 * RV_SECOND_MS)
        rows_turn(&r, false);
    size_t taken = 0;
    for (int i = 0; i < 4; i++, r.now += 20 * RV_SECOND_MS)
        taken += rows_turn(&r, true);
    assert_int_equal(taken, TASKS);
    assert_true(r.most <= RV_DELIVERY_QUEUE_WINDOW_MAX);
    rv_delivery_queue_done(&r.queue);
}

/* Trouble of this server's own neither heals a destination nor is its fault. */
static void what_never_left_says_nothing_of_its_destination(void **state)
{
    (void)state;
    static struct rows r;
    rows_init(&r);
    r.unsent = true;
    for (int i = 0; i < 10; i++, r.now += 20 * RV_SECOND_MS)
        rows_turn(&r, false);
    assert_int_equal(r.queue.tasks.count, TASKS); /* one that fails would have less in mind */
    r.unsent = false;
    for (; r.now < BEGIN + RV_HOUR_MS; r.now += 20 * RV_SECOND_MS)
        rows_turn(&r, false);
    assert_in_range(r.queue.tasks.count, 1, RV_DELIVERY_QUEUE_FAILING_MAX);
    size_t tried = 0;
    r.unsent = true;
    for (int i = 0; i < 30; i++, r.now += 20 * RV_SECOND_MS)
        tried += rows_turn(&r, false);
    assert_in_range(tried, 1, 60); /* it is not let loose on one that fails */
    r.unsent = false;
    size_t taken = 0;
    for (int i = 0; i < 40; i++, r.now += 20 * RV_SECOND_MS)
        taken += rows_turn(&r, true);
    assert_int_equal(taken, TASKS);
    rv_delivery_queue_done(&r.queue);
}

/* What is not known of, or comes twice, changes nothing. */
static void a_result_counts_once(void **state)
{
    (void)state;
    static struct rows r;
    struct rv_delivery_queue_pick picks[4];
    struct rv_delivery_queue_verdict verdict;
    rows_init(&r);
    assert_int_equal(rv_delivery_queue_pick(&r.queue, r.now, picks, 4), 4);
    struct rv_notice_result result = {.task = picks[0].task, .number = 2, .taken = true};
    assert_false(
        rv_delivery_queue_result(&r.queue, &result, r.now, &verdict)); /* another message */
    result.number = 1;
    assert_true(rv_delivery_queue_result(&r.queue, &result, r.now, &verdict));
    verdict_take(&r, &verdict);
    assert_false(rv_delivery_queue_result(&r.queue, &result, r.now, &verdict));
    result.task.value = TASKS + 1;
    assert_false(rv_delivery_queue_result(&r.queue, &result, r.now, &verdict));
    rv_delivery_queue_done(&r.queue);
}

/* Each failure halves how many messages may be under way; each success adds one. */
static void what_fails_gets_fewer_at_once(void **state)
{
    (void)state;
    static struct rows r;
    struct rv_delivery_queue_pick picks[64];
    struct rv_delivery_queue_verdict verdict;
    rows_init(&r);
    size_t first = rv_delivery_queue_pick(&r.queue, r.now, picks, 64);
    assert_true(first > 4);
    for (size_t i = 0; i < first; i++) { /* two fail, which is not failing yet */
        struct rv_notice_result result = {
            .task = picks[i].task, .number = picks[i].number, .taken = i >= 2, .alive = i >= 2};
        assert_true(rv_delivery_queue_result(&r.queue, &result, r.now, &verdict));
        verdict_take(&r, &verdict);
    }
    assert_int_equal(rv_delivery_queue_pick(&r.queue, r.now, picks, 64), first / 4 + first - 2);
    rv_delivery_queue_done(&r.queue);
}

static void a_pause_that_a_webhook_asks_for_is_kept(void **state)
{
    enum { ASKED_MS = 30000 };
    (void)state;
    static struct rows r;
    struct rv_delivery_queue_pick picks[64];
    struct rv_delivery_queue_verdict verdict;
    rows_init(&r);
    size_t first = rv_delivery_queue_pick(&r.queue, r.now, picks, 64);
    for (size_t i = 0; i < first; i++) {
        struct rv_notice_result result = {.task = picks[i].task,
                                          .number = picks[i].number,
                                          .taken = i > 0,
                                          .alive = i > 0,
                                          .retry_after_ms = i > 0 ? 0 : ASKED_MS};
        assert_true(rv_delivery_queue_result(&r.queue, &result, r.now, &verdict));
        verdict_take(&r, &verdict);
    }
    assert_int_equal(rv_delivery_queue_pick(&r.queue, r.now + ASKED_MS - 1, picks, 64), 0);
    assert_true(rv_delivery_queue_pick(&r.queue, r.now + ASKED_MS, picks, 64) > 0);
    rv_delivery_queue_done(&r.queue);
}

static void a_count_that_is_wrong_is_found(void **state)
{
    (void)state;
    static struct rows r;
    struct rv_delivery_queue_pick picks[64];
    rows_init(&r);
    assert_true(rv_delivery_queue_pick(&r.queue, r.now, picks, 64) > 0);
    assert_null(rv_delivery_queue_broken(&r.queue));
    r.queue.sent++;
    assert_string_equal(rv_delivery_queue_broken(&r.queue),
                        "the counts of messages on their way are correct");
    r.queue.sent--;
    r.queue.destinations.count++;
    assert_string_equal(rv_delivery_queue_broken(&r.queue),
                        "the counts of the destinations' tasks are correct");
    r.queue.destinations.count--;
    assert_null(rv_delivery_queue_broken(&r.queue));
    rv_delivery_queue_done(&r.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_wait_for_a_dead_one_are_given_up),
        cmocka_unit_test(what_comes_back_takes_all_at_once),
        cmocka_unit_test(what_never_left_says_nothing_of_its_destination),
        cmocka_unit_test(a_result_counts_once),
        cmocka_unit_test(what_fails_gets_fewer_at_once),
        cmocka_unit_test(a_pause_that_a_webhook_asks_for_is_kept),
        cmocka_unit_test(a_count_that_is_wrong_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

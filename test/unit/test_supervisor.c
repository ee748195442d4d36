/* The supervisor alone, over a store whose role another instance may hold (RULES 8). */
#include "supervisor/supervisor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LEASE_MS = 5000, SCAN_MS = 1000, NOW = 1000000, OPEN_TASKS = 3 };

/* The role's row, and who asks. */
struct election {
    struct rv_store store;
    int64_t now;
    bool theirs;
    int64_t until;
    int64_t epoch;
    int claims;
    enum rv_err fails_with;
    struct rv_supervisor supervisor;
};

static enum rv_err claim(struct rv_store *store, struct rv_str role, int64_t lease_ms,
                         int64_t *ret_epoch, int64_t *ret_until)
{
    struct election *e = (struct election *)store;
    assert_true(rv_str_is(role, RV_ROLE_SUPERVISOR));
    e->claims++;
    if (e->fails_with != RV_OK)
        return e->fails_with;
    bool free = e->now >= e->until;
    if (e->theirs && !free) {
        *ret_epoch = 0;
        *ret_until = e->until;
        return RV_OK;
    }
    e->epoch += e->theirs || e->epoch == 0;
    e->theirs = false;
    e->until = e->now + lease_ms;
    *ret_epoch = e->epoch;
    *ret_until = e->until;
    return RV_OK;
}

static const struct rv_store_ops operations = {.claim_role = claim};

static int open_election(void **state)
{
    static struct election e;
    e = (struct election){.store = {&operations}, .now = NOW};
    rv_supervisor_init(&e.supervisor, &e.store, SCAN_MS, LEASE_MS);
    *state = &e;
    return 0;
}

static int close_election(void **state)
{
    rv_supervisor_done(&((struct election *)*state)->supervisor);
    return 0;
}

static bool campaign(struct election *e, int64_t now)
{
    bool wrote;
    e->now = now;
    assert_int_equal(rv_supervisor_campaign(&e->supervisor, now, &wrote), RV_OK);
    return wrote;
}

static size_t due(struct election *e, int64_t now)
{
    struct rv_task_id tasks[RV_FINDINGS_MAX];
    return rv_supervisor_due(&e->supervisor, now, tasks, RV_FINDINGS_MAX);
}

static void a_role_that_is_free_is_taken_and_renewed_in_its_last_quarter(void **state)
{
    struct election *e = *state;
    assert_true(campaign(e, NOW));
    assert_int_equal(e->supervisor.epoch, 1);
    assert_false(campaign(e, NOW + LEASE_MS * 3 / 4 - 1));
    assert_int_equal(e->claims, 1);
    assert_true(campaign(e, NOW + LEASE_MS * 3 / 4));
    assert_int_equal(e->claims, 2);
    assert_int_equal(e->supervisor.epoch, 1); /* the same holder: the same epoch */
}

/* Its own tasks are each instance's to look at: the role is for what is done for all of them. */
static void what_is_due_needs_no_role(void **state)
{
    struct election *e = *state;
    e->theirs = true;
    e->epoch = 4;
    e->until = NOW + LEASE_MS;
    assert_false(campaign(e, NOW));
    struct rv_task_id task = {7};
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 10), RV_OK);
    e->supervisor.scan_next_at = NOW + 100 * LEASE_MS;
    assert_int_equal(rv_supervisor_next_at(&e->supervisor), NOW + 10);
    assert_int_equal(due(e, NOW + 20), 1);
    assert_false(rv_supervisor_knows(&e->supervisor, task));
    /* Not asked again before the other's lease ends, and awake when it does. */
    assert_false(campaign(e, NOW + LEASE_MS - 1));
    assert_int_equal(e->claims, 1);
    assert_int_equal(rv_supervisor_next_at(&e->supervisor), NOW + LEASE_MS);
    assert_true(campaign(e, NOW + LEASE_MS));
    assert_int_equal(e->supervisor.epoch, 5);
}

static void a_renewal_that_finds_another_holder_ends_the_role(void **state)
{
    struct election *e = *state;
    assert_true(campaign(e, NOW));
    e->theirs = true; /* it was away for longer than its lease */
    e->epoch = 2;
    e->until = NOW + 4 * LEASE_MS;
    assert_false(campaign(e, NOW + 2 * LEASE_MS));
    assert_int_equal(e->supervisor.epoch, 0);
}

/* While its claim is not committed, the holder before it may still write. */
static void a_role_is_held_from_the_transaction_after_its_claim_on(void **state)
{
    struct election *e = *state;
    assert_false(rv_supervisor_holds(&e->supervisor));
    assert_true(campaign(e, NOW));
    assert_false(rv_supervisor_holds(&e->supervisor));
    assert_false(campaign(e, NOW + 1));
    assert_true(rv_supervisor_holds(&e->supervisor));
    assert_true(campaign(e, NOW + LEASE_MS * 3 / 4)); /* renewed: nobody was between */
    assert_true(rv_supervisor_holds(&e->supervisor));
    rv_supervisor_unclaim(&e->supervisor);
    assert_true(campaign(e, NOW + LEASE_MS * 3 / 4));
    assert_false(rv_supervisor_holds(&e->supervisor));
}

/* Whether the claim was written is not known: the role is not held until a later claim says so. */
static void a_claim_that_fails_holds_nothing(void **state)
{
    struct election *e = *state;
    bool wrote;
    assert_true(campaign(e, NOW));
    e->fails_with = RV_ERR_BUSY;
    assert_int_equal(rv_supervisor_campaign(&e->supervisor, NOW + LEASE_MS, &wrote), RV_ERR_BUSY);
    assert_int_equal(e->supervisor.epoch, 0);
    e->fails_with = RV_ERR_IO;
    assert_int_equal(rv_supervisor_campaign(&e->supervisor, NOW + LEASE_MS, &wrote),
                     RV_ERR_COMMIT_UNKNOWN);
    e->fails_with = RV_OK;
    assert_true(campaign(e, NOW + LEASE_MS));
}

/* Only the newest instant of a task counts, and it is found once. */
static void a_task_is_found_at_its_own_instant_and_once(void **state)
{
    struct election *e = *state;
    struct rv_task_id task = {7};
    assert_true(campaign(e, NOW));
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 100), RV_OK);
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 300), RV_OK);
    assert_int_equal(due(e, NOW + 200), 0);
    assert_int_equal(due(e, NOW + 300), 1);
    assert_int_equal(due(e, NOW + 400), 0);
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 900), RV_OK);
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 500), RV_OK);
    assert_int_equal(due(e, NOW + 500), 1);
    assert_int_equal(due(e, NOW + 900), 0);
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 1000), RV_OK);
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, 0), RV_OK);
    assert_false(rv_supervisor_knows(&e->supervisor, task));
    assert_int_equal(due(e, NOW + 1000), 0);
}

/* Each earlier instant is one more entry of the heap: those that do not count any more are swept
 * out, and the ones that do stay. */
/* Where more is due than a batch takes, whoever was put off does not come before who is older. */
static void the_oldest_instant_that_counts_comes_first(void **state)
{
    struct election *e = *state;
    struct rv_task_id due;
    bool claimed = false;
    assert_int_equal(rv_supervisor_campaign(&e->supervisor, NOW, &claimed), RV_OK);
    for (int64_t id = 1; id <= 3; id++)
        assert_int_equal(rv_supervisor_note(&e->supervisor, (struct rv_task_id){id}, NOW + 10 * id),
                         RV_OK);
    assert_int_equal(rv_supervisor_note(&e->supervisor, (struct rv_task_id){1}, NOW + 40), RV_OK);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(rv_supervisor_due(&e->supervisor, NOW + 100, &due, 1), 1);
        assert_int_equal(due.value, i == 2 ? 1 : i + 2);
    }
    assert_int_equal(rv_supervisor_due(&e->supervisor, NOW + 100, &due, 1), 0);
}

/* What comes next is known although instants before it do not count any more. */
static void an_instant_that_does_not_count_hides_none(void **state)
{
    struct rv_supervisor supervisor;
    struct rv_task_id next[2];
    (void)state;
    rv_supervisor_init(&supervisor, NULL, 1000, 5000);
    assert_int_equal(rv_supervisor_note(&supervisor, (struct rv_task_id){1}, 10), RV_OK);
    assert_int_equal(rv_supervisor_note(&supervisor, (struct rv_task_id){2}, 20), RV_OK);
    assert_int_equal(rv_supervisor_note(&supervisor, (struct rv_task_id){3}, 30), RV_OK);
    assert_int_equal(rv_supervisor_note(&supervisor, (struct rv_task_id){1}, 0), RV_OK);
    assert_int_equal(rv_supervisor_note(&supervisor, (struct rv_task_id){2}, 90), RV_OK);
    assert_int_equal(rv_supervisor_next(&supervisor, 50, next, 1), 1);
    assert_int_equal(next[0].value, 3);
    assert_int_equal(rv_supervisor_due(&supervisor, 50, next, 1), 1);
    assert_int_equal(next[0].value, 3);
    assert_int_equal(rv_supervisor_next(&supervisor, 50, next, 1), 0);
    assert_int_equal(rv_supervisor_next(&supervisor, 90, next, 1), 1);
    assert_int_equal(next[0].value, 2);
    rv_supervisor_done(&supervisor);
}

static void an_instant_that_comes_before_stays(void **state)
{
    struct election *e = *state;
    struct rv_task_id task = {1};
    assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 10), RV_OK);
    assert_int_equal(rv_supervisor_note_before(&e->supervisor, task, NOW + 20), RV_OK);
    assert_int_equal(due(e, NOW + 10), 1);
    assert_int_equal(rv_supervisor_note_before(&e->supervisor, task, NOW + 20), RV_OK);
    assert_int_equal(rv_supervisor_note_before(&e->supervisor, task, NOW + 15), RV_OK);
    assert_int_equal(due(e, NOW + 14), 0);
    assert_int_equal(due(e, NOW + 15), 1);
}

static void instants_that_do_not_count_are_swept_out(void **state)
{
    enum { NOTES = 20000, ENTRIES_MAX = 5000 };
    struct election *e = *state;
    struct rv_task_id task = {7}, other = {8};
    assert_true(campaign(e, NOW));
    assert_int_equal(rv_supervisor_note(&e->supervisor, other, NOW + 50), RV_OK);
    for (int i = 0; i < NOTES; i++) {
        assert_int_equal(rv_supervisor_note(&e->supervisor, task, NOW + 100 + NOTES - i), RV_OK);
        assert_true(e->supervisor.heap.count <= ENTRIES_MAX);
    }
    assert_int_equal(due(e, NOW + 50), 1);
    assert_int_equal(due(e, NOW + 100), 0);
    assert_int_equal(due(e, NOW + 101), 1);
    assert_int_equal(due(e, NOW + 100 + NOTES), 0);
}

/* The next piece, of one task at most; 1 to OPEN_TASKS are open, and this instance's. Gives the one
 * that the walk meets; 0: none. */
static int64_t piece(struct election *e, bool *ret_last)
{
    struct rv_scanned row;
    struct rv_scan scan;
    e->supervisor.scan_rows_max = 1;
    assert_true(rv_supervisor_scan_name(&e->supervisor, NOW, &scan));
    assert_int_equal(scan.rows_max, 1);
    scan.rows = &row;
    scan.count = scan.after.value < OPEN_TASKS;
    row = (struct rv_scanned){.id = {scan.after.value + 1}};
    assert_true(rv_supervisor_scan_take(&e->supervisor, NOW, &scan, ret_last));
    return scan.count == 0 ? 0 : row.id.value;
}

/* As above, and it is written; 0: the walk has come to its end. */
static int64_t walk(struct election *e)
{
    bool last;
    int64_t met = piece(e, &last);
    assert_int_equal(last, met == 0);
    if (last)
        rv_supervisor_scan_over(&e->supervisor, NOW);
    return met;
}

static void a_walk_of_which_a_piece_is_refused_goes_on_from_there(void **state)
{
    struct election *e = *state;
    bool last;
    assert_int_equal(walk(e), 1);
    assert_int_equal(walk(e), 2);
    rv_supervisor_walk_piece_again(&e->supervisor);
    assert_int_equal(walk(e), 2);
    rv_supervisor_walk_piece_again(&e->supervisor);
    assert_int_equal(walk(e), 2);
    assert_int_equal(walk(e), 3);
    assert_int_equal(piece(e, &last), 0);
    rv_supervisor_walk_piece_again(&e->supervisor);
    assert_true(e->supervisor.scan_first);
    assert_int_equal(walk(e), 0);
    assert_false(e->supervisor.scan_first);
    rv_supervisor_walk_piece_again(&e->supervisor);
    assert_false(e->supervisor.scan_first);
    assert_int_equal(e->supervisor.rounds, 1);
    assert_int_equal(e->supervisor.scan_next_at, NOW + SCAN_MS); /* that walk is not made again */
}

/* What was made since it began is known: a server that begins tasks all the time ends its walk. */
static void a_walk_ends_before_what_was_made_since_it_began(void **state)
{
    struct election *e = *state;
    bool last;
    assert_int_equal(walk(e), 1);
    e->supervisor.scan_until = (struct rv_task_id){3};
    assert_int_equal(walk(e), 2);
    assert_int_equal(piece(e, &last), 0);
    assert_false(last);
    assert_int_equal(e->supervisor.scan_after.value, rv_id_from(NOW + 1).value - 1);
    assert_int_equal(piece(e, &last), 0);
    assert_true(last);
}

/* They were made before somebody set the store's clock back. */
static void a_walk_meets_tasks_whose_ids_are_ahead_of_the_clock(void **state)
{
    struct election *e = *state;
    struct rv_task_id ahead = rv_id_from(NOW + 1000);
    struct rv_scanned rows[3];
    struct rv_scan scan;
    bool last;
    e->supervisor.scan_rows_max = 3;
    for (size_t full = 0; full <= 1; full++) {
        rv_supervisor_walk(&e->supervisor);
        assert_true(rv_supervisor_scan_name(&e->supervisor, NOW, &scan));
        scan.rows = rows;
        scan.count = 2 + full;
        rows[0] = (struct rv_scanned){.id = {1}};
        rows[1] = rows[2] = (struct rv_scanned){.id = ahead};
        rows[2].id.value++;
        assert_true(rv_supervisor_scan_take(&e->supervisor, NOW, &scan, &last));
        assert_int_equal(scan.count, 2 + full);
        assert_int_equal(rows[1].id.value, ahead.value);
        assert_int_equal(last, !full);
    }
    /* The walk goes on behind those that have begun meanwhile. */
    rv_supervisor_walk(&e->supervisor);
    e->supervisor.scan_rows_max = 2;
    assert_true(rv_supervisor_scan_name(&e->supervisor, NOW, &scan));
    e->supervisor.scan_after = scan.after = (struct rv_task_id){2};
    e->supervisor.scan_until = (struct rv_task_id){3};
    scan.rows = rows;
    scan.count = 2;
    rows[0] = (struct rv_scanned){.id = {3}};
    rows[1] = (struct rv_scanned){.id = {4}};
    assert_true(rv_supervisor_scan_take(&e->supervisor, NOW, &scan, &last));
    assert_int_equal(scan.count, 0);
    assert_false(last);
    assert_true(e->supervisor.scan_after.value > 4 && e->supervisor.scan_after.value < ahead.value);
}

/* With fewer rows than were asked for it has come to its end: no batch asks for what is none. */
static void a_walk_ends_with_a_piece_that_is_not_full(void **state)
{
    struct election *e = *state;
    struct rv_scanned rows[OPEN_TASKS];
    struct rv_scan scan;
    bool last;
    for (size_t more = 0; more <= 1; more++) {
        e->supervisor.scan_rows_max = OPEN_TASKS + more;
        assert_true(rv_supervisor_scan_name(&e->supervisor, NOW, &scan));
        scan.rows = rows;
        for (scan.count = 0; scan.count < OPEN_TASKS; scan.count++)
            rows[scan.count] = (struct rv_scanned){.id = {(int64_t)scan.count + 1}};
        assert_true(rv_supervisor_scan_take(&e->supervisor, NOW, &scan, &last));
        assert_int_equal(scan.count, OPEN_TASKS);
        assert_int_equal(last, more);
        rv_supervisor_walk(&e->supervisor);
    }
}

/* A store that went back has the walk begin anew: a piece of the one before is none of it. */
static void a_piece_of_a_walk_that_was_given_up_is_passed_over(void **state)
{
    struct election *e = *state;
    struct rv_scanned row;
    struct rv_scan scan;
    bool last;
    assert_int_equal(walk(e), 1);
    assert_true(rv_supervisor_scan_name(&e->supervisor, NOW, &scan));
    scan.rows = &row;
    scan.count = 0;
    rv_supervisor_walk(&e->supervisor);
    assert_false(rv_supervisor_scan_take(&e->supervisor, NOW, &scan, &last));
    assert_false(last);
    rv_supervisor_walk_piece_again(&e->supervisor);
    assert_int_equal(walk(e), 1);
}

static void a_piece_is_due_once_an_interval(void **state)
{
    struct election *e = *state;
    struct rv_supervisor *supervisor = &e->supervisor;
    struct rv_scan scan;
    while (walk(e) != 0)
        assert_true(rv_supervisor_scan_name(supervisor, NOW, &scan)); /* it goes on at once */
    assert_false(rv_supervisor_scan_name(supervisor, NOW + SCAN_MS - 1, &scan));
    assert_true(rv_supervisor_scan_name(supervisor, NOW + SCAN_MS, &scan));
}

int main(void)
{
#define ELECTION(name) cmocka_unit_test_setup_teardown(name, open_election, close_election)
    const struct CMUnitTest tests[] = {
        ELECTION(a_role_that_is_free_is_taken_and_renewed_in_its_last_quarter),
        ELECTION(what_is_due_needs_no_role),
        ELECTION(a_renewal_that_finds_another_holder_ends_the_role),
        ELECTION(a_role_is_held_from_the_transaction_after_its_claim_on),
        ELECTION(a_claim_that_fails_holds_nothing),
        ELECTION(a_task_is_found_at_its_own_instant_and_once),
        ELECTION(the_oldest_instant_that_counts_comes_first),
        ELECTION(an_instant_that_does_not_count_hides_none),
        ELECTION(an_instant_that_comes_before_stays),
        ELECTION(instants_that_do_not_count_are_swept_out),
        ELECTION(a_walk_of_which_a_piece_is_refused_goes_on_from_there),
        ELECTION(a_walk_ends_before_what_was_made_since_it_began),
        ELECTION(a_walk_meets_tasks_whose_ids_are_ahead_of_the_clock),
        ELECTION(a_walk_ends_with_a_piece_that_is_not_full),
        ELECTION(a_piece_of_a_walk_that_was_given_up_is_passed_over),
        ELECTION(a_piece_is_due_once_an_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

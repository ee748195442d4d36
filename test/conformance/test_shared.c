/* Several instances on one store: what one may do while another is in the middle of something, and
 * what is found out when the newest transactions are lost. The memory store stands for all that are
 * shared. */
#include "subject.h"

#include "sim/store/memory/memory.h"

#include <stdlib.h>

static const struct rv_str role = {RV_ROLE_SUPERVISOR, sizeof RV_ROLE_SUPERVISOR - 1};
enum { TASK_BASE = 1000, LEASE_MS = 1000, KEPT = 8 };

static int64_t wall_now(void *self)
{
    return ((const struct subject *)self)->wall;
}

static void create_shared(struct subject *s)
{
    assert_int_equal(rv_store_memory_data_new(&s->memory_data), RV_OK);
    rv_store_memory_data_share(s->memory_data);
    rv_store_memory_data_keep(s->memory_data, KEPT);
}

static struct rv_store *handle_open(struct subject *s)
{
    struct rv_store *store;
    struct rv_wall_clock clock = {.now = wall_now, .self = s};
    assert_int_equal(rv_store_memory_open(s->memory_data, clock, &store), RV_OK);
    return store;
}

static void open_shared(struct subject *s)
{
    s->store = handle_open(s);
}

static void destroy_shared(struct subject *s)
{
    rv_store_memory_data_free(s->memory_data);
}

static const struct factory shared = {"shared memory", create_shared, open_shared, destroy_shared};

/* Beside the subject's own store a second one. */
static struct subject subject;
static struct rv_store *other;
static struct rv_enlistment other_enlistment = {.lease_ms = 5000};

static int setup(void **state)
{
    subject_init(&subject, &shared);
    other = handle_open(&subject);
    assert_int_equal(other->ops->enlist(other, RV_STR("other"), 2, &other_enlistment), RV_OK);
    *state = &subject;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    other->ops->close(other);
    subject_done(&subject);
    return 0;
}

static void begin(struct rv_store *store)
{
    int64_t now;
    assert_int_equal(store->ops->begin(store, NULL, &now), RV_OK);
}

static enum rv_err commit(struct rv_store *store, struct rv_change *changes, size_t count,
                          int64_t number)
{
    struct rv_batch batch = {.changes = changes, .changes_count = count, .number = number};
    return store->ops->commit(store, &batch);
}

static int64_t claim(struct rv_store *store)
{
    int64_t epoch, until;
    assert_int_equal(store->ops->claim_role(store, role, LEASE_MS, &epoch, &until), RV_OK);
    return epoch;
}

static void instances_have_numbers_of_their_own(void **state)
{
    const struct subject *s = *state;
    assert_true(s->enlistment.shared);
    assert_int_not_equal(s->enlistment.instance, other_enlistment.instance);
}

static void a_role_is_held_until_its_end(void **state)
{
    struct subject *s = *state;
    assert_int_equal(claim(s->store), 1);
    assert_int_equal(claim(other), 0);
    s->wall += LEASE_MS;
    assert_int_equal(claim(other), 2);
    assert_int_equal(claim(s->store), 0);
}

static void of_two_that_claim_a_role_at_once_one_writes_nothing(void **state)
{
    struct subject *s = *state;
    struct rv_change *mine = birth_of(s, TASK_BASE), *theirs = birth_of(s, TASK_BASE + 1);
    begin(s->store);
    begin(other);
    mine->epoch = claim(s->store);
    theirs->epoch = claim(other);
    assert_int_equal(commit(other, theirs, 1, 1), RV_OK);
    assert_int_equal(theirs->outcome, RV_OK);
    assert_int_equal(commit(s->store, mine, 1, 1), RV_ERR_BUSY);
    assert_int_equal(claim(s->store), 0);
}

/* The number of an epoch is not enough: after the loss of a claim it is given again. */
static void an_epoch_counts_only_for_who_holds_it(void **state)
{
    struct subject *s = *state;
    int64_t epoch = claim(s->store);
    struct rv_change *stranger = birth_of(s, TASK_BASE);
    stranger->epoch = epoch;
    begin(other);
    assert_int_equal(commit(other, stranger, 1, 1), RV_OK);
    assert_int_equal(stranger->outcome, RV_ERR_DEPOSED);
}

static void what_changed_since_the_begin_is_a_conflict(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    struct rv_change mine = move_of(s, TASK_BASE, 2, RV_TASK_PROCESSING);
    struct rv_change theirs = move_of(s, TASK_BASE, 2, RV_TASK_CANCELLED);
    begin(s->store);
    begin(other);
    assert_int_equal(commit(other, &theirs, 1, 1), RV_OK);
    assert_int_equal(commit(s->store, &mine, 1, ++s->number), RV_OK);
    assert_int_equal(theirs.outcome, RV_OK);
    assert_int_equal(mine.outcome, RV_ERR_CONFLICT);
}

static void the_clock_is_never_behind_what_another_has_written(void **state)
{
    struct subject *s = *state;
    int64_t now, later;
    s->wall += 5000;
    bear(s, TASK_BASE);
    s->wall -= 4000;
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_OK);
    assert_int_equal(now, s->wall + 4000);
    s->wall += 6000;
    other->ops->rollback(other);
    assert_int_equal(other->ops->begin(other, NULL, &later), RV_OK);
    assert_int_equal(later, s->wall);
    other->ops->rollback(other);
}

static void lost_transactions_are_told_once_and_never_were(void **state)
{
    struct subject *s = *state;
    int64_t now;
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    struct rv_change move = move_of(s, TASK_BASE, 2, RV_TASK_CANCELLED);
    subject_commit_all(s, &move, 1);
    rv_store_memory_data_lose(s->memory_data, 2);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_ERR_WENT_BACK);
    begin(s->store);
    struct rv_task_id ids[] = {{TASK_BASE}, {TASK_BASE + 1}};
    const struct rv_task *tasks[2];
    assert_int_equal(s->ops->load_tasks(s->store, &s->arena, RV_COLUMNS_ALL, ids, 2, tasks), RV_OK);
    assert_int_equal(tasks[0]->revision, 1);
    assert_null(tasks[1]);
    struct rv_scan scan = {.limit = 4};
    struct rv_scanned open[4];
    size_t count;
    assert_int_equal(s->ops->scan_open(s->store, &scan, open, &count), RV_OK);
    assert_int_equal(count, 1);
    s->ops->rollback(s->store);
    /* What the other has lost is nothing of its own, but it may have read what was lost. */
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_ERR_WENT_BACK);
    begin(other);
    other->ops->rollback(other);
}

static void who_is_not_enlisted_any_more_ends(void **state)
{
    struct subject *s = *state;
    int64_t now;
    begin(other);
    rv_store_memory_data_lose(s->memory_data, 1); /* the other one's enlistment */
    struct rv_change *birth = birth_of(s, TASK_BASE);
    assert_int_equal(commit(other, birth, 1, 1), RV_ERR_DEPOSED);
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_ERR_DEPOSED);
    bool committed;
    assert_int_equal(other->ops->committed(other, 1, &committed), RV_ERR_DEPOSED);
}

static void committed_knows_what_was_lost(void **state)
{
    struct subject *s = *state;
    bool committed;
    bear(s, TASK_BASE);
    assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_OK);
    assert_true(committed);
    rv_store_memory_data_lose(s->memory_data, 1);
    assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_OK);
    assert_false(committed);
}

/* Records go the way of the other rows: written over, taken away, new. */
static void records_are_lost_as_other_rows_are(void **state)
{
    struct subject *s = *state;
    struct rv_record row = {.at = 7, .kind = RV_STR("note"), .value = RV_STR("1")};
    struct rv_record_change changes[3] = {{.row = row}, {.row = row}, {.row = row}};
    changes[0].row.key = RV_STR("a");
    changes[1].row.key = RV_STR("b");
    changes[2].row.key = RV_STR("c");
    subject_record(s, changes, 2);
    struct rv_buf wanted, got;
    rv_buf_init(&wanted, 1 << 20);
    rv_buf_init(&got, 1 << 20);
    dump_store(&wanted, s);
    changes[0].row.value = RV_STR("2");
    changes[1].gone = true;
    subject_record(s, changes, 3);
    rv_store_memory_data_lose(s->memory_data, 1);
    dump_store(&got, s);
    assert_dumps_equal(&got, &wanted);
    rv_buf_done(&wanted);
    rv_buf_done(&got);
}

/* As many as there are numbers, and more, within a moment: the one that goes on living is not in
 * their way, nor they in each other's. */
static void starts_do_not_use_up_the_numbers(void **state)
{
    struct subject *s = *state;
    for (int i = 0; i < 600; i++) {
        struct rv_enlistment enlistment = {.lease_ms = 5000};
        struct rv_store *store = handle_open(s);
        s->wall++;
        bear(s, TASK_BASE + i);
        assert_int_equal(store->ops->enlist(store, RV_STR("again"), i, &enlistment), RV_OK);
        assert_int_not_equal(enlistment.instance, s->enlistment.instance);
        store->ops->close(store);
    }
}

int main(void)
{
#define SHARED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        SHARED(instances_have_numbers_of_their_own),
        SHARED(a_role_is_held_until_its_end),
        SHARED(of_two_that_claim_a_role_at_once_one_writes_nothing),
        SHARED(an_epoch_counts_only_for_who_holds_it),
        SHARED(what_changed_since_the_begin_is_a_conflict),
        SHARED(the_clock_is_never_behind_what_another_has_written),
        SHARED(lost_transactions_are_told_once_and_never_were),
        SHARED(who_is_not_enlisted_any_more_ends),
        SHARED(committed_knows_what_was_lost),
        SHARED(records_are_lost_as_other_rows_are),
        SHARED(starts_do_not_use_up_the_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

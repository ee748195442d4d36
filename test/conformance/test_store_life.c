/* The life of a store: starts, instances, the clock, roles, and which batch it has. */
#include "subject.h"

#define TASK_BASE INT64_C(1000000)

static void a_new_store_says_so_once(void **state)
{
    struct subject *s = *state;
    assert_true(s->enlistment.created);
    assert_int_equal(s->enlistment.last_alive_at, 0);
    assert_int_equal(s->enlistment.open_tasks, 0);
    assert_int_not_equal(s->enlistment.instance, 0);
    uint8_t first = s->enlistment.instance;
    s->wall += 5000;
    bear(s, TASK_BASE);
    int64_t alive_at = s->wall;
    s->wall += 60000;
    subject_restart(s);
    assert_false(s->enlistment.created);
    assert_int_equal(s->enlistment.last_alive_at, alive_at);
    assert_int_equal(s->enlistment.open_tasks, 1);
    assert_int_not_equal(s->enlistment.instance, first);
}

/* A process that ends before its first commit has not been there: the next one is told of the whole
 * absence. */
static void who_commits_nothing_was_not_there(void **state)
{
    struct subject *s = *state;
    s->wall += 5000;
    bear(s, TASK_BASE);
    int64_t alive_at = s->wall;
    for (int i = 0; i < 3; i++) {
        int64_t now;
        s->wall += 3600 * 1000;
        subject_restart(s);
        assert_int_equal(s->enlistment.last_alive_at, alive_at);
        assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
        assert_int_equal(now, s->wall);
        s->ops->rollback(s->store);
    }
    bear(s, TASK_BASE + 1);
    alive_at = s->wall;
    s->wall += 1000;
    subject_restart(s);
    assert_int_equal(s->enlistment.last_alive_at, alive_at);
}

static void instance_numbers_go_round(void **state)
{
    struct subject *s = *state;
    bool seen[256] = {false};
    for (int i = 0; i < 255; i++) {
        assert_int_not_equal(s->enlistment.instance, 0);
        assert_false(seen[s->enlistment.instance]);
        seen[s->enlistment.instance] = true;
        subject_restart(s);
    }
    assert_true(seen[s->enlistment.instance]);
}

static void the_clock_never_goes_back(void **state)
{
    struct subject *s = *state;
    int64_t first = 0;
    int64_t now = 0;
    assert_int_equal(s->ops->begin(s->store, NULL, &first), RV_OK);
    assert_int_equal(first, s->wall);
    s->ops->rollback(s->store);
    s->wall += 1000;
    bear(s, TASK_BASE);
    int64_t floor = s->wall;
    s->wall -= 3600 * 1000;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(now, floor);
    s->ops->rollback(s->store);
    subject_restart(s);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_true(now >= floor && now <= floor + 1);
    s->ops->rollback(s->store);
    s->wall = floor + 2000;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(now, s->wall);
    s->ops->rollback(s->store);
}

static void rollback_and_an_open_transaction_leave_nothing(void **state)
{
    struct subject *s = *state;
    int64_t now;
    int64_t epoch;
    int64_t until;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR("supervisor"), 1000, &epoch, &until),
                     RV_OK);
    assert_int_equal(epoch, 1);
    s->ops->rollback(s->store);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR("supervisor"), 1000, &epoch, &until),
                     RV_OK);
    assert_int_equal(epoch, 1);
    subject_restart(s); /* closes in the middle of it */
    assert_int_equal(s->ops->claim_role(s->store, RV_STR("supervisor"), 1000, &epoch, &until),
                     RV_OK);
    assert_int_equal(epoch, 1);
}

static void roles_have_epochs_and_ends(void **state)
{
    struct subject *s = *state;
    int64_t epoch;
    int64_t until;
    struct rv_str role = RV_STR("supervisor");
    assert_int_equal(s->ops->claim_role(s->store, role, 1000, &epoch, &until), RV_OK);
    assert_int_equal(epoch, 1);
    assert_int_equal(until, s->wall + 1000);
    s->wall += 500;
    assert_int_equal(s->ops->claim_role(s->store, role, 1000, &epoch, &until), RV_OK);
    assert_int_equal(epoch, 1);
    assert_int_equal(until, s->wall + 1000);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR("other"), 1000, &epoch, &until), RV_OK);
    assert_int_equal(epoch, 1);
    int64_t alive_at = s->wall;
    subject_restart(s);
    assert_int_equal(s->enlistment.last_alive_at, alive_at);
    assert_int_equal(s->ops->claim_role(s->store, role, 1000, &epoch, &until), RV_OK);
    assert_int_equal(epoch, 2); /* the dead one's lease is not waited for */
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->claim_role(s->store, role, 2000, &epoch, &until), RV_OK);
    struct rv_batch none = {.number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &none), RV_OK);
    assert_int_equal(epoch, 2);
    assert_int_equal(until, now + 2000);
}

static void committed_knows_the_newest_batch(void **state)
{
    struct subject *s = *state;
    bool committed = true;
    assert_int_equal(s->ops->committed(s->store, 1, &committed), RV_OK);
    assert_false(committed);
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_OK);
    assert_true(committed);
    assert_int_equal(s->ops->committed(s->store, s->number + 1, &committed), RV_OK);
    assert_false(committed);
    subject_restart(s); /* the number is the instance's own */
    assert_int_equal(s->ops->committed(s->store, 1, &committed), RV_OK);
    assert_false(committed);
}

/* A transaction that has claimed a role is known by its number too. */
static void committed_knows_a_claim(void **state)
{
    struct subject *s = *state;
    int64_t now, epoch, until;
    bool committed = false;
    struct rv_batch batch = {.number = ++s->number};
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &epoch, &until),
                     RV_OK);
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(s->ops->committed(s->store, batch.number, &committed), RV_OK);
    assert_true(committed);
}

/* A claim is something that is written: who has to ask for its batch is told that it is there. */
static void a_batch_that_claims_a_role_is_known_by_its_number(void **state)
{
    struct subject *s = *state;
    int64_t now, epoch, until;
    bool there = false;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    assert_int_equal(s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &epoch, &until),
                     RV_OK);
    struct rv_batch batch = {.number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(s->ops->committed(s->store, batch.number, &there), RV_OK);
    assert_true(there);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    batch.number = ++s->number;
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    assert_int_equal(s->ops->committed(s->store, batch.number, &there), RV_OK);
    assert_false(there); /* nothing was written, so it left no trace */
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(a_new_store_says_so_once),
        SUITE_CASE(who_commits_nothing_was_not_there),
        SUITE_CASE(instance_numbers_go_round),
        SUITE_CASE(the_clock_never_goes_back),
        SUITE_CASE(rollback_and_an_open_transaction_leave_nothing),
        SUITE_CASE(roles_have_epochs_and_ends),
        SUITE_CASE(committed_knows_the_newest_batch),
        SUITE_CASE(committed_knows_a_claim),
        SUITE_CASE(a_batch_that_claims_a_role_is_known_by_its_number),
    };
    return suite_run("store_life", cases, sizeof cases / sizeof cases[0]);
}

/* Several instances on one store: what one may do while another is in the middle of something, and
 * what is found out when the newest transactions are lost. The memory store stands for all that are
 * shared. */
#include "subject.h"

#include "core/agent_limit.h"
#include "core/api_key.h"
#include "sim/store/memory/memory.h"

#include <stdlib.h>
#include <string.h>

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

static enum rv_err commit_renewed(struct rv_store *store, bool resign)
{
    struct rv_batch batch = {.renew = true, .resign = resign, .number = 1};
    begin(store);
    return store->ops->commit(store, &batch);
}

static void renew(struct subject *s, bool resign)
{
    struct rv_batch batch = {.renew = true, .resign = resign, .number = ++s->number};
    begin(s->store);
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
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
    int64_t open = 0;
    for (int state_at = 0; state_at < RV_TASK_STATE_COUNT; state_at++) {
        struct rv_task_filter filter = {.by_state = true, .state = (enum rv_task_state)state_at};
        struct rv_task rows[4];
        struct rv_task_id next;
        size_t count;
        assert_int_equal(s->ops->list_tasks(s->store, &s->arena, RV_COLUMNS_ALL, &filter, 4, rows,
                                            &count, &next),
                         RV_OK);
        open += rv_task_state_open((enum rv_task_state)state_at) ? (int64_t)count : 0;
    }
    assert_int_equal(open, 1);
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

/* As many as there are numbers, and more: the one that goes on living is not in their way, nor they
 * in each other's. */
static void starts_do_not_use_up_the_numbers(void **state)
{
    struct subject *s = *state;
    for (int i = 0; i < 600; i++) {
        struct rv_enlistment enlistment = {.lease_ms = 1000};
        struct rv_store *store = handle_open(s);
        s->wall += 20;
        renew(s, false);
        assert_int_equal(store->ops->enlist(store, RV_STR("again"), i, &enlistment), RV_OK);
        assert_int_not_equal(enlistment.instance, s->enlistment.instance);
        store->ops->close(store);
    }
}

/* Nor is one that lives deposed for a new one. */
static void where_all_numbers_live_nobody_starts(void **state)
{
    struct subject *s = *state;
    enum rv_err err = RV_OK;
    int started = 0;
    for (; err == RV_OK; started += err == RV_OK) {
        struct rv_enlistment enlistment = {.lease_ms = LEASE_MS};
        struct rv_store *store = handle_open(s);
        err = store->ops->enlist(store, RV_STR("again"), started, &enlistment);
        store->ops->close(store);
    }
    assert_int_equal(err, RV_ERR_BUSY);
    assert_int_equal(started, 255 - 2);
    renew(s, false);
}

/* ---- owners ---- */

/* Loads what is asked for in a transaction of its own, which stays open. */
static struct rv_wants ask(struct subject *s, struct rv_store *store, struct rv_wants wants)
{
    int64_t now;
    wants.arena = &s->arena;
    wants.bytes_max = SIZE_MAX;
    assert_int_equal(store->ops->begin(store, &wants, &now), RV_OK);
    assert_int_equal(wants.now, now);
    return wants;
}

static struct rv_wants ask_orphans(struct subject *s, struct rv_store *store)
{
    return ask(s, store, (struct rv_wants){.orphans_max = 10});
}

static void bear_own(struct subject *s, int64_t id, uint8_t owner)
{
    struct rv_change *birth = birth_of(s, id);
    struct rv_task task = *birth->task;
    task.locked_by = owner;
    birth->task = &task;
    subject_commit_all(s, birth, 1);
}

static void a_walk_over_own_tasks_meets_no_others(void **state)
{
    struct subject *s = *state;
    struct rv_scanned rows[4];
    struct rv_scan scan = {.rows_max = 4, .rows = rows};
    bear_own(s, TASK_BASE, s->enlistment.instance);
    bear_own(s, TASK_BASE + 1, other_enlistment.instance);
    assert_int_equal(subject_scan(s, &scan), 1);
    assert_int_equal(rows[0].id.value, TASK_BASE);
    (void)ask(s, other, (struct rv_wants){.scan = &scan});
    other->ops->rollback(other);
    assert_int_equal(scan.count, 1);
    assert_int_equal(rows[0].id.value, TASK_BASE + 1);
}

static void who_does_not_renew_is_deposed_and_its_tasks_are_claimed_once(void **state)
{
    struct subject *s = *state;
    struct rv_enlistment third_enlistment = {.lease_ms = 60000};
    struct rv_store *third = handle_open(s);
    assert_int_equal(third->ops->enlist(third, RV_STR("third"), 3, &third_enlistment), RV_OK);
    renew(s, false);
    bear_own(s, TASK_BASE, s->enlistment.instance);
    bear_own(s, TASK_BASE + 1, third_enlistment.instance);
    s->wall += s->enlistment.lease_ms + RV_LEASE_MARGIN_MS;
    assert_int_equal(commit_renewed(other, false), RV_OK);
    struct rv_wants found = ask_orphans(s, other);
    assert_int_equal(found.tasks_count, 0); /* not before the margin is over */
    assert_int_equal(found.deposed_at, 0);
    other->ops->rollback(other);
    s->wall++;
    found = ask_orphans(s, other);
    assert_int_equal(found.tasks_count, 1);
    assert_int_equal(found.tasks[0].id.value, TASK_BASE);
    assert_int_equal(found.tasks[0].how, RV_LOADED_ORPHAN);
    assert_true(found.deposed_at > 0);
    assert_int_equal(found.orphaned_at, found.deposed_at);
    int64_t orphaned_at = found.orphaned_at;
    assert_int_equal(ask_orphans(s, third).tasks_count, 0); /* they are claimed */
    third->ops->rollback(third);
    assert_int_equal(commit(other, NULL, 0, 2), RV_OK);
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_ERR_DEPOSED);
    /* It was not taken over: it has no live owner, for whoever asks next. */
    found = ask_orphans(s, third);
    assert_int_equal(found.tasks_count, 1);
    assert_int_equal(found.deposed_at, 0);
    assert_int_equal(found.orphaned_at, orphaned_at);
    third->ops->rollback(third);
    third->ops->close(third);
    struct rv_enlistment again = {.lease_ms = LEASE_MS};
    assert_int_equal(s->ops->enlist(s->store, RV_STR("boot"), 1, &again), RV_OK);
    assert_int_not_equal(again.instance, s->enlistment.instance);
}

/* It has waited for the store for longer than its lease. */
static void who_was_deposed_hears_of_its_newest_batch(void **state)
{
    struct subject *s = *state;
    bool committed = false;
    int64_t now;
    bear_own(s, TASK_BASE, s->enlistment.instance);
    s->wall += s->enlistment.lease_ms + RV_LEASE_MARGIN_MS + 1;
    assert_int_equal(ask_orphans(s, other).tasks_count, 1);
    assert_int_equal(commit(other, NULL, 0, 1), RV_OK);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_ERR_DEPOSED);
    assert_int_equal(s->ops->committed(s->store, s->number, &committed), RV_OK);
    assert_true(committed);
    assert_int_equal(s->ops->committed(s->store, s->number + 1, &committed), RV_OK);
    assert_false(committed);
}

/* The other one has looked when the lease was over; that it was renewed since is found out. */
static void who_renews_meanwhile_is_not_deposed(void **state)
{
    struct subject *s = *state;
    bear_own(s, TASK_BASE, s->enlistment.instance);
    s->wall += s->enlistment.lease_ms + RV_LEASE_MARGIN_MS + 1;
    assert_int_equal(commit_renewed(other, false), RV_OK);
    struct rv_wants found = ask_orphans(s, other);
    assert_int_equal(found.tasks_count, 1);
    renew(s, false);
    struct rv_change theirs = move_of(s, TASK_BASE, 2, RV_TASK_CANCELLED);
    assert_int_equal(commit(other, &theirs, 1, 2), RV_ERR_BUSY);
    assert_int_equal(load(s, TASK_BASE)->revision, 1);
    renew(s, false);
}

static void who_resigns_is_deposed_without_its_lease(void **state)
{
    struct subject *s = *state;
    bear_own(s, TASK_BASE, s->enlistment.instance);
    renew(s, true);
    s->wall += RV_LEASE_MARGIN_MS + 1;
    struct rv_wants found = ask_orphans(s, other);
    assert_int_equal(found.tasks_count, 1);
    other->ops->rollback(other);
}

static void what_one_has_claimed_others_pass_over(void **state)
{
    struct subject *s = *state;
    struct rv_task_id ids[] = {{TASK_BASE}, {TASK_BASE + 1}};
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    struct rv_wants mine = ask(s, s->store,
                               (struct rv_wants){.ids = ids + 1, .count = 1, .claims = 1});
    assert_int_equal(mine.tasks[0].how, RV_LOADED_ASKED);
    /* The first is not claimed, only read. */
    struct rv_wants theirs = ask(s, other, (struct rv_wants){.ids = ids, .count = 2, .claims = 1});
    assert_int_equal(theirs.tasks_count, 2);
    assert_int_equal(theirs.tasks[0].how, RV_LOADED_ASKED);
    assert_non_null(theirs.tasks[0].task);
    assert_int_equal(theirs.tasks[1].how, RV_LOADED_SKIPPED);
    assert_null(theirs.tasks[1].task);
    other->ops->rollback(other);
    s->ops->rollback(s->store);
    theirs = ask(s, other, (struct rv_wants){.ids = ids, .count = 2, .claims = 1});
    assert_int_equal(theirs.tasks[1].how, RV_LOADED_ASKED);
    other->ops->rollback(other);
}

static void claims_of_who_is_silent_for_its_lease_are_void(void **state)
{
    struct subject *s = *state;
    struct rv_task_id id = {TASK_BASE};
    struct rv_wants claim_it = {.ids = &id, .count = 1, .claims = 1};
    bear_own(s, TASK_BASE, s->enlistment.instance);
    (void)ask(s, s->store, claim_it);
    s->wall += s->enlistment.lease_ms + RV_LEASE_MARGIN_MS + 1;
    assert_int_equal(commit_renewed(other, false), RV_OK);
    assert_int_equal(ask_orphans(s, other).tasks_count, 1);
    other->ops->rollback(other);
    s->ops->rollback(s->store);
}

/* ---- what all servers know ---- */

/* With a load of its own, which asks for nothing. */
static void versions_of(struct subject *s, int64_t *ret_versions)
{
    struct rv_wants seen = ask(s, other, (struct rv_wants){.count = 0});
    memcpy(ret_versions, seen.registry, sizeof seen.registry);
    other->ops->rollback(other);
}

/* Since `before`, which is then what the versions are now. */
static void assert_raised(struct subject *s, int64_t *before, bool keys, bool limits,
                          bool workflows)
{
    int64_t now[RV_REGISTRY_COUNT];
    versions_of(s, now);
    assert_int_equal(now[RV_REGISTRY_API_KEYS] > before[RV_REGISTRY_API_KEYS], keys);
    assert_int_equal(now[RV_REGISTRY_AGENT_LIMITS] > before[RV_REGISTRY_AGENT_LIMITS], limits);
    assert_int_equal(now[RV_REGISTRY_WORKFLOWS] > before[RV_REGISTRY_WORKFLOWS], workflows);
    memcpy(before, now, sizeof now);
}

static struct rv_record_change record_of(const char *kind)
{
    return (struct rv_record_change){
        .row = {.at = 7, .kind = rv_str_of(kind), .key = RV_STR("a"), .value = RV_STR("1")}};
}

static void what_is_registered_has_a_version_of_its_kind(void **state)
{
    struct subject *s = *state;
    int64_t versions[RV_REGISTRY_COUNT];
    struct rv_record_change key = record_of(RV_RECORD_API_KEY);
    struct rv_record_change limit = record_of(RV_RECORD_AGENT_LIMIT);
    struct rv_record_change note = record_of("note");
    versions_of(s, versions);
    subject_record(s, &key, 1);
    assert_raised(s, versions, true, false, false);
    subject_record(s, &limit, 1);
    assert_raised(s, versions, false, true, false);
    publish_shop(s);
    assert_raised(s, versions, false, false, true);
    subject_record(s, &note, 1);
    bear(s, TASK_BASE);
    assert_raised(s, versions, false, false, false);
    key.gone = limit.gone = true;
    subject_record(s, &key, 1);
    subject_record(s, &limit, 1);
    assert_raised(s, versions, true, true, false);
}

static void a_version_is_raised_by_what_is_committed_and_lost_with_it(void **state)
{
    struct subject *s = *state;
    int64_t versions[RV_REGISTRY_COUNT], now;
    struct rv_workflow_row twice = {
        2, 100, RV_STR("shop"), RV_STR("order"), RV_STR("1.0.0"), RV_STR("a"), RV_STR("{}")};
    struct rv_record_change key = record_of(RV_RECORD_API_KEY);
    publish_shop(s);
    versions_of(s, versions);
    publish(s, &twice, 1, RV_ERR_INVALID);
    assert_raised(s, versions, false, false, false);
    subject_record(s, &key, 1);
    rv_store_memory_data_lose(s->memory_data, 1);
    assert_int_equal(other->ops->begin(other, NULL, &now), RV_ERR_WENT_BACK);
    assert_raised(s, versions, false, false, false);
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_ERR_WENT_BACK);
}

/* Tasks whose step waits since so long, with that priority, until `deadline`; 0: for ever. */
static void bear_until(struct subject *s, int64_t id, uint8_t priority, int64_t since,
                       int64_t deadline)
{
    struct rv_change *birth = birth_of(s, id);
    struct rv_task task = *birth->task;
    struct rv_step step = *birth->steps[0];
    const struct rv_step *steps[] = {&step};
    task.state = RV_TASK_PROCESSING;
    task.priority = priority;
    task.open_count = 1;
    task.open[0] = step.number;
    step.kind = RV_KIND_CALL;
    step.state = RV_STEP_PENDING;
    step.agent = RV_STR("payment");
    step.waits_since = step.ready_at = since;
    step.deadline = deadline;
    birth->task = &task;
    birth->steps = steps;
    subject_commit_all(s, birth, 1);
}

static void bear_waiting(struct subject *s, int64_t id, uint8_t priority, int64_t since)
{
    bear_until(s, id, priority, since, 0);
}

static void steps_that_wait_are_found_in_line_and_from_a_place_on(void **state)
{
    struct subject *s = *state;
    struct rv_waiting_place place = {.since = {0}};
    struct rv_steal steal = {.agent = RV_STR("payment"), .most = 2, .place = &place};
    struct rv_wants look = {.steals = &steal, .steals_count = 1};
    int64_t at = s->wall - 100000;
    bear_waiting(s, TASK_BASE, 0, at);
    bear_waiting(s, TASK_BASE + 1, 5, at + RV_PRIORITY_WORTH_MS * 5 - 1);
    bear_waiting(s, TASK_BASE + 2, 5, at + RV_PRIORITY_WORTH_MS * 5 + 1);
    bear_waiting(s, TASK_BASE + 3, 9, s->wall + 100000); /* not ready yet */
    bear(s, TASK_BASE + 4);
    struct rv_wants found = ask(s, other, look);
    assert_int_equal(found.tasks_count, 2);
    assert_int_equal(found.tasks[0].id.value, TASK_BASE + 1);
    assert_int_equal(found.tasks[1].id.value, TASK_BASE);
    assert_int_equal(found.tasks[0].how, RV_LOADED_STOLEN);
    assert_int_equal(found.tasks[0].steps_count, 1);
    other->ops->rollback(other);
    found = ask(s, other, look);
    assert_int_equal(found.tasks_count, 1);
    assert_int_equal(found.tasks[0].id.value, TASK_BASE + 2);
    other->ops->rollback(other);
    assert_int_equal(ask(s, other, look).tasks_count, 0);
    other->ops->rollback(other);
}

/* Its owner could not claim the task to end the step. */
static void a_step_whose_timeout_has_passed_is_left_to_its_owner(void **state)
{
    struct subject *s = *state;
    struct rv_waiting_place place = {.since = {0}};
    struct rv_steal steal = {.agent = RV_STR("payment"), .most = 9, .place = &place};
    int64_t at = s->wall - 1000;
    bear_until(s, TASK_BASE, 0, at, s->wall - 1);
    bear_until(s, TASK_BASE + 1, 0, at, s->wall + 100000);
    struct rv_wants found = ask(s, other, (struct rv_wants){.steals = &steal, .steals_count = 1});
    assert_int_equal(found.tasks_count, 1);
    assert_int_equal(found.tasks[0].id.value, TASK_BASE + 1);
    other->ops->rollback(other);
}

/* A task with a step at which something is due at that instant; 0: at none. */
static void bear_due(struct subject *s, int64_t id, int64_t wake_at)
{
    struct rv_change *birth = birth_of(s, id);
    struct rv_step step = *birth->steps[0];
    const struct rv_step *steps[] = {&step};
    struct rv_task task = *birth->task;
    task.open[0] = step.number;
    task.open_count = 1;
    birth->task = &task;
    step.wake_at = wake_at;
    birth->steps = steps;
    subject_commit_all(s, birth, 1);
}

static struct rv_wants look_at(struct subject *s, struct rv_store *store, struct rv_look *look)
{
    return ask(s, store, (struct rv_wants){.look = look});
}

static void a_look_finds_what_is_overdue_from_a_place_on(void **state)
{
    struct subject *s = *state;
    enum { DUE = 100 };
    bear_due(s, TASK_BASE, DUE + 1);
    bear_due(s, TASK_BASE + 1, DUE);
    bear_due(s, TASK_BASE + 2, 0);
    bear_due(s, TASK_BASE + 3, DUE - 1);
    bear_due(s, TASK_BASE + 4, DUE - 1);
    struct rv_look look = {.rows_max = 3, .most = 2, .before = DUE};
    struct rv_wants found = look_at(s, s->store, &look);
    assert_int_equal(found.tasks_count, 1);
    assert_int_equal(found.tasks[0].id.value, TASK_BASE + 1);
    assert_int_equal(found.tasks[0].how, RV_LOADED_OVERDUE);
    assert_int_equal(found.tasks[0].steps_count, 1);
    assert_int_equal(look.next.value, TASK_BASE + 2); /* so many were looked at */
    /* What one transaction has found the others pass over. */
    struct rv_look same = {.rows_max = 9, .most = 1, .before = DUE};
    found = look_at(s, other, &same);
    assert_int_equal(found.tasks_count, 1);
    assert_int_equal(found.tasks[0].id.value, TASK_BASE + 3);
    assert_int_equal(same.next.value, TASK_BASE + 3); /* so many were found */
    other->ops->rollback(other);
    s->ops->rollback(s->store);
    look.after = look.next;
    found = look_at(s, s->store, &look);
    assert_int_equal(found.tasks_count, 2);
    assert_int_equal(found.tasks[1].id.value, TASK_BASE + 4);
    assert_int_equal(look.next.value, 0); /* there are no more */
    s->ops->rollback(s->store);
}

static void servers_are_those_that_live_and_those_that_own(void **state)
{
    struct subject *s = *state;
    bear_own(s, TASK_BASE, 77);
    struct rv_wants found = ask(s, s->store, (struct rv_wants){.servers_wanted = true});
    assert_int_equal(found.servers_count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(found.servers[i].lives, found.servers[i].number != 77);
    s->ops->rollback(s->store);
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
        SHARED(where_all_numbers_live_nobody_starts),
        SHARED(a_walk_over_own_tasks_meets_no_others),
        SHARED(who_does_not_renew_is_deposed_and_its_tasks_are_claimed_once),
        SHARED(who_was_deposed_hears_of_its_newest_batch),
        SHARED(who_renews_meanwhile_is_not_deposed),
        SHARED(who_resigns_is_deposed_without_its_lease),
        SHARED(what_one_has_claimed_others_pass_over),
        SHARED(claims_of_who_is_silent_for_its_lease_are_void),
        SHARED(what_is_registered_has_a_version_of_its_kind),
        SHARED(a_version_is_raised_by_what_is_committed_and_lost_with_it),
        SHARED(steps_that_wait_are_found_in_line_and_from_a_place_on),
        SHARED(a_step_whose_timeout_has_passed_is_left_to_its_owner),
        SHARED(a_look_finds_what_is_overdue_from_a_place_on),
        SHARED(servers_are_those_that_live_and_those_that_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

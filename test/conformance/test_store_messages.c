/* Messages to submitters and how far they have come, held against every store. */
#include "subject.h"

#include <string.h>

#define TASK_BASE INT64_C(1000000)
#define NONE ((struct rv_task_id){0})
enum { PAGE = 100 };

static struct rv_delivery delivery_of(int64_t task, uint32_t last, const char *destination)
{
    return (struct rv_delivery){.task = {task},
                                .next = 1,
                                .last = last,
                                .since = 7,
                                .due_at = 8,
                                .destination = rv_str_of(destination),
                                .url = RV_STR("https://shop.example/hook")};
}

/* Messages `first` to `last` of a task, as a change of its row to that revision. */
static struct rv_change told(struct subject *s, int64_t task, int64_t revision, uint32_t first,
                             uint32_t last)
{
    struct rv_prng prng;
    rv_prng_init(&prng, (uint64_t)task + first);
    struct rv_change change = move_of(s, task, revision, RV_TASK_PROCESSING);
    struct rv_message *messages = RV_NEW_ARRAY(&s->arena, struct rv_message, last - first + 1);
    for (uint32_t n = first; n <= last; n++)
        messages[n - first] = random_message(s, &prng, task, n);
    change.messages = messages;
    change.messages_count = last - first + 1;
    return change;
}

static struct rv_change told_with(struct subject *s, int64_t revision, uint32_t first,
                                  const struct rv_delivery *delivery)
{
    struct rv_change change = told(s, delivery->task.value, revision, first, delivery->last);
    change.delivery = delivery;
    return change;
}

static enum rv_err deliver(struct subject *s, struct rv_delivery_change *change)
{
    int64_t now;
    assert_int_equal(s->ops->begin(s->store, NULL, &now), RV_OK);
    struct rv_batch batch = {.deliveries = change, .deliveries_count = 1, .number = ++s->number};
    assert_int_equal(s->ops->commit(s->store, &batch), RV_OK);
    return change->outcome;
}

static bool find(struct subject *s, int64_t task, struct rv_delivery *ret)
{
    size_t count = 0;
    assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, (struct rv_task_id){task},
                                             RV_STR_NONE, NONE, 1, ret, &count),
                     RV_OK);
    return count == 1;
}

static size_t waiting(struct subject *s, struct rv_delivery rows[PAGE])
{
    size_t count = 0;
    assert_int_equal(
        s->ops->list_deliveries(s->store, &s->arena, NONE, RV_STR_NONE, NONE, PAGE, rows, &count),
        RV_OK);
    return count;
}

static void messages_come_in_pages_and_stay(void **state)
{
    struct subject *s = *state;
    struct rv_buf before, after;
    bear(s, TASK_BASE);
    bear(s, TASK_BASE + 1);
    struct rv_change changes[] = {told(s, TASK_BASE, 2, 1, 25), told(s, TASK_BASE + 1, 2, 1, 1)};
    subject_commit_all(s, changes, 2);
    struct rv_message rows[10];
    size_t count = 0;
    assert_int_equal(s->ops->list_messages(s->store, &s->arena, (struct rv_task_id){TASK_BASE}, 20,
                                           10, rows, &count),
                     RV_OK);
    assert_int_equal(count, 5);
    assert_int_equal(rows[0].number, 21);
    assert_int_equal(rows[4].number, 25);
    rv_buf_init(&before, 1 << 20);
    rv_buf_init(&after, 1 << 20);
    for (uint32_t i = 0; i < 25; i++)
        row_dump(&before, &rv_row_message, &changes[0].messages[i]);
    subject_restart(s);
    dump_messages(&after, s, (struct rv_task_id){TASK_BASE});
    assert_dumps_equal(&after, &before);
    rv_buf_done(&before);
    rv_buf_done(&after);
}

static void a_number_is_given_once(void **state)
{
    struct subject *s = *state;
    bear(s, TASK_BASE);
    struct rv_change first = told(s, TASK_BASE, 2, 1, 2);
    subject_commit_all(s, &first, 1);
    struct rv_change again = told(s, TASK_BASE, 3, 2, 3);
    assert_int_equal(subject_commit(s, &again, 1), RV_ERR_INVALID);
    assert_int_equal(load(s, TASK_BASE)->revision, 2);
    struct rv_message rows[10];
    size_t count = 0;
    assert_int_equal(s->ops->list_messages(s->store, &s->arena, (struct rv_task_id){TASK_BASE}, 0,
                                           10, rows, &count),
                     RV_OK);
    assert_int_equal(count, 2);
}

/* A change that does not pass leaves neither messages nor a delivery. */
static void what_does_not_pass_tells_nobody(void **state)
{
    struct subject *s = *state;
    struct rv_delivery row, delivery = delivery_of(TASK_BASE, 2, "https://a");
    bear(s, TASK_BASE);
    struct rv_change late = told_with(s, 9, 1, &delivery);
    assert_int_equal(subject_commit(s, &late, 1), RV_OK);
    assert_int_equal(late.outcome, RV_ERR_CONFLICT);
    assert_false(find(s, TASK_BASE, &row));
}

static void a_delivery_grows_with_its_messages(void **state)
{
    struct subject *s = *state;
    struct rv_delivery row, rows[PAGE], delivery = delivery_of(TASK_BASE, 2, "https://a");
    bear(s, TASK_BASE);
    struct rv_change change = told_with(s, 2, 1, &delivery);
    subject_commit_all(s, &change, 1);
    assert_true(find(s, TASK_BASE, &row));
    struct rv_buf got, wanted;
    rv_buf_init(&got, 4096);
    rv_buf_init(&wanted, 4096);
    row_dump(&got, &rv_row_delivery, &row);
    row_dump(&wanted, &rv_row_delivery, &delivery);
    assert_dumps_equal(&got, &wanted);
    rv_buf_done(&got);
    rv_buf_done(&wanted);

    /* While a message waits, its instants stay. */
    delivery.last = 3;
    delivery.since = delivery.due_at = 100;
    change = told_with(s, 3, 3, &delivery);
    subject_commit_all(s, &change, 1);
    assert_true(find(s, TASK_BASE, &row));
    assert_int_equal(row.last, 3);
    assert_int_equal(row.since, 7);
    assert_int_equal(row.due_at, 8);

    struct rv_delivery_change all = {.row = row, .next_before = 1};
    all.row.next = 4;
    assert_int_equal(deliver(s, &all), RV_OK);
    assert_int_equal(waiting(s, rows), 0);

    /* Nothing was waiting: they are those of the new message. */
    delivery.last = 4;
    change = told_with(s, 4, 4, &delivery);
    subject_commit_all(s, &change, 1);
    assert_int_equal(waiting(s, rows), 1);
    assert_int_equal(rows[0].next, 4);
    assert_int_equal(rows[0].since, 100);
    assert_int_equal(rows[0].due_at, 100);
}

static void a_delivery_is_written_under_its_guards(void **state)
{
    struct subject *s = *state;
    struct rv_delivery row, delivery = delivery_of(TASK_BASE, 3, "https://a");
    bear(s, TASK_BASE);
    struct rv_change change = told_with(s, 2, 1, &delivery);
    subject_commit_all(s, &change, 1);
    struct rv_delivery_change failed = {.row = delivery, .next_before = 1};
    failed.row.failures = 1;
    failed.row.due_at = 50;
    assert_int_equal(deliver(s, &failed), RV_OK);
    assert_int_equal(deliver(s, &failed), RV_ERR_CONFLICT); /* it has failed once since */
    failed.failures_before = 1;
    failed.next_before = 2;
    assert_int_equal(deliver(s, &failed), RV_ERR_CONFLICT); /* another message */
    failed.next_before = 1;
    failed.row.task.value++;
    assert_int_equal(deliver(s, &failed), RV_ERR_CONFLICT); /* there is none */
    failed.row.task.value--;
    failed.epoch = 77;
    assert_int_equal(deliver(s, &failed), RV_ERR_DEPOSED);
    assert_true(find(s, TASK_BASE, &row));
    assert_int_equal(row.failures, 1);
    assert_int_equal(row.due_at, 50);
    assert_int_equal(row.since, 7);
    int64_t until;
    assert_int_equal(
        s->ops->claim_role(s->store, RV_STR(RV_ROLE_SUPERVISOR), 1000, &failed.epoch, &until),
        RV_OK);
    failed.row.failures = 2;
    assert_int_equal(deliver(s, &failed), RV_OK);
}

/* A place may lie anywhere, also between destinations; parked ones and those of which nothing waits
 * are passed over. */
static void deliveries_are_listed_by_destination(void **state)
{
    struct subject *s = *state;
    enum { TASKS = 12 };
    static const char *const destinations[] = {"https://b", "https://a", "https://a:8443"};
    struct rv_delivery rows[PAGE], delivery[TASKS];
    for (int64_t i = 0; i < TASKS; i++) {
        bear(s, TASK_BASE + i);
        delivery[i] = delivery_of(TASK_BASE + i, 1, destinations[i % 3]);
        struct rv_change change = told_with(s, 2, 1, &delivery[i]);
        subject_commit_all(s, &change, 1);
    }
    struct rv_delivery_change parked = {.row = delivery[4], .next_before = 1};
    parked.row.given_up = true;
    assert_int_equal(deliver(s, &parked), RV_OK);
    struct rv_delivery_change over = {.row = delivery[3], .next_before = 1};
    over.row.next = 2;
    assert_int_equal(deliver(s, &over), RV_OK);
    static const int64_t order[] = {1, 7, 10, 2, 5, 8, 11, 0, 6, 9};
    enum { LEFT = sizeof order / sizeof order[0] };
    for (int again = 0; again < 2; again++) {
        struct rv_str destination = RV_STR_NONE;
        struct rv_task_id after = NONE;
        size_t found = 0, count = 3;
        while (count == 3) {
            assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, NONE, destination, after,
                                                     3, rows, &count),
                             RV_OK);
            for (size_t i = 0; i < count; i++, found++) {
                assert_true(found < LEFT);
                assert_int_equal(rows[i].task.value, TASK_BASE + order[found]);
                destination = rows[i].destination;
                after = rows[i].task;
            }
        }
        assert_int_equal(found, LEFT);
        subject_restart(s);
    }
    size_t count;
    assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, NONE, RV_STR("https://a"),
                                             (struct rv_task_id){INT64_MAX}, 1, rows, &count),
                     RV_OK);
    assert_int_equal(rows[0].task.value, TASK_BASE + 2);
}

static size_t open_alerts(struct subject *s, struct rv_alert rows[PAGE])
{
    size_t count = 0;
    assert_int_equal(s->ops->list_alerts(s->store, &s->arena, (struct rv_task_id){TASK_BASE}, true,
                                         0, PAGE, rows, &count),
                     RV_OK);
    return count;
}

/* It outlives its task's other alerts, and goes when the operator has it retried. */
static void the_alert_of_a_delivery_is_its_own(void **state)
{
    struct subject *s = *state;
    struct rv_alert rows[PAGE];
    struct rv_delivery delivery = delivery_of(TASK_BASE, 1, "https://a");
    bear(s, TASK_BASE);
    struct rv_alert failed = {.id = 5, .task = {TASK_BASE}, .kind = RV_ALERT_FAILED};
    struct rv_change change = told_with(s, 2, 1, &delivery);
    change.alerts = &failed;
    change.alerts_count = 1;
    subject_commit_all(s, &change, 1);
    struct rv_alert alert = {.id = 6, .task = {TASK_BASE}, .kind = RV_ALERT_UNDELIVERABLE};
    struct rv_delivery_change given_up = {.row = delivery, .next_before = 1, .alert = &alert};
    given_up.row.given_up = true;
    assert_int_equal(deliver(s, &given_up), RV_OK);
    assert_int_equal(open_alerts(s, rows), 2);
    change = move_of(s, TASK_BASE, 3, RV_TASK_PROCESSED);
    change.close_alerts = true;
    subject_commit_all(s, &change, 1);
    assert_int_equal(open_alerts(s, rows), 1);
    assert_int_equal(rows[0].kind, RV_ALERT_UNDELIVERABLE);
    struct rv_delivery_change retried = {.row = delivery, .next_before = 1, .close_alert = true};
    assert_int_equal(deliver(s, &retried), RV_OK);
    assert_int_equal(open_alerts(s, rows), 0);
}

/* It waits beside the messages of tasks, is guarded like them, and goes with its task. */
static void an_alert_waits_in_a_row_of_its_own(void **state)
{
    struct subject *s = *state;
    struct rv_delivery rows[PAGE], row,
        to = {.destination = RV_STR("https://b"), .url = RV_STR("https://b/call")};
    struct rv_delivery delivery = delivery_of(TASK_BASE, 1, "https://a");
    bear(s, TASK_BASE);
    struct rv_alert failed = {
        .id = 5, .task = {TASK_BASE}, .kind = RV_ALERT_FAILED, .raised_at = 7};
    struct rv_change change = told_with(s, 2, 1, &delivery);
    change.alerts = &failed;
    change.alerts_count = 1;
    change.alerts_to = &to;
    subject_commit_all(s, &change, 1);
    subject_restart(s);
    assert_int_equal(waiting(s, rows), 2);
    assert_false(rows[0].alert);
    assert_true(rows[1].alert);
    assert_int_equal(rows[1].task.value, 5);
    assert_int_equal(rows[1].next, 1);
    assert_int_equal(rows[1].last, 1);
    assert_int_equal(rows[1].since, 7);
    assert_true(rv_str_is(rows[1].url, "https://b/call"));

    struct rv_delivery_change parked = {.row = rows[1], .next_before = 2};
    parked.row.given_up = true;
    parked.row.failures = 3;
    assert_int_equal(deliver(s, &parked), RV_ERR_CONFLICT);
    parked.next_before = 1;
    assert_int_equal(deliver(s, &parked), RV_OK);
    assert_int_equal(waiting(s, rows), 1);
    struct rv_delivery_change again = {.row = {.since = 50, .due_at = 50}, .all_alerts = true};
    assert_int_equal(deliver(s, &again), RV_OK);
    assert_int_equal(waiting(s, rows), 2);
    assert_int_equal(rows[1].failures, 0);
    assert_int_equal(rows[1].since, 50);
    assert_true(find(s, TASK_BASE, &row));
    assert_false(row.alert);
}

int main(void)
{
    static const struct suite_case cases[] = {
        SUITE_CASE(messages_come_in_pages_and_stay),
        SUITE_CASE(a_number_is_given_once),
        SUITE_CASE(what_does_not_pass_tells_nobody),
        SUITE_CASE(a_delivery_grows_with_its_messages),
        SUITE_CASE(a_delivery_is_written_under_its_guards),
        SUITE_CASE(deliveries_are_listed_by_destination),
        SUITE_CASE(the_alert_of_a_delivery_is_its_own),
        SUITE_CASE(an_alert_waits_in_a_row_of_its_own),
    };
    return suite_run("store_messages", cases, sizeof cases / sizeof cases[0]);
}

/* A stop asks the store's thread whether the process may end, and does not wait for it for ever:
 * the disk may not answer. */
#include "server/leave.h"

#include "base/os/thread.h"
#include "server/systemd.h"
#include "store/sqlite/sqlite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* What the store says, and the alarm that runs; seconds, 0: none. */
static const char *displaced;
static enum rv_err saves;
static enum rv_err log_is;
static unsigned alarm_s;
static unsigned alarm_asked_s; /* when the store's thread was asked */

unsigned alarm(unsigned seconds)
{
    unsigned before = alarm_s;
    alarm_s = seconds;
    return before;
}

void rv_systemd_tell(const char *text)
{
    (void)text;
}

enum rv_err rv_store_sqlite_look(struct rv_store *store, const char **ret_why)
{
    (void)store;
    *ret_why = displaced;
    return displaced != NULL ? RV_ERR_DISPLACED : RV_OK;
}

enum rv_err rv_store_sqlite_save(struct rv_store *store,
                                 const struct rv_store_sqlite_progress *progress,
                                 struct rv_store_sqlite_saved *ret_saved)
{
    (void)store;
    progress->told(progress->self);
    *ret_saved = (struct rv_store_sqlite_saved){.file = "t.db.saved"};
    if (saves != RV_OK)
        *ret_saved = (struct rv_store_sqlite_saved){.why = "no space"};
    return saves;
}

enum rv_err rv_store_sqlite_log_check(struct rv_store *store)
{
    (void)store;
    return log_is;
}

struct stop {
    struct rv_leaving leaving;
    struct rv_mailbox mailbox;
    struct rv_thread thread;
};

/* The store's thread: woken once, it answers. */
static void store_answers(void *self)
{
    struct stop *stop = self;
    void *item;
    (void)rv_mailbox_take(&stop->mailbox, &item, 1, -1);
    alarm_asked_s = alarm_s;
    rv_leave_answer(&stop->leaving, NULL);
}

static bool may_end(struct stop *stop)
{
    rv_mailbox_init(&stop->mailbox, 0);
    assert_int_equal(rv_thread_start(&stop->thread, "store", store_answers, stop), RV_OK);
    bool ends = rv_leave_ask(&stop->leaving, &stop->mailbox);
    rv_thread_join(&stop->thread);
    rv_mailbox_done(&stop->mailbox);
    assert_int_equal(alarm_asked_s, RV_STOP_SECONDS_MAX);
    assert_int_equal(alarm_s, 0); /* the rest of the stop has its own time */
    return ends;
}

static void a_store_that_is_in_its_place_lets_go(void **state)
{
    struct stop stop = {0};
    (void)state;
    displaced = NULL;
    assert_true(may_end(&stop));
    assert_int_equal(rv_leave(&stop.leaving, NULL, "tasks.db", 0), 0);
}

static void a_damaged_log_lets_go_and_calls_for_a_person(void **state)
{
    struct stop stop = {0};
    (void)state;
    displaced = NULL;
    log_is = RV_ERR_CORRUPT;
    assert_true(may_end(&stop));
    assert_int_equal(rv_leave(&stop.leaving, NULL, "tasks.db", 0), rv_err_exit(RV_ERR_CORRUPT));
    log_is = RV_OK;
}

static void a_store_that_was_saved_lets_go_and_calls_for_a_person(void **state)
{
    struct stop stop = {0};
    (void)state;
    displaced = "was deleted";
    saves = RV_OK;
    assert_true(may_end(&stop));
    assert_int_equal(rv_leave(&stop.leaving, NULL, "tasks.db", 0), 1);
}

static void a_store_that_cannot_be_saved_lets_go_at_the_second_signal(void **state)
{
    struct stop stop = {0};
    (void)state;
    displaced = "was deleted";
    saves = RV_ERR_FULL;
    assert_false(may_end(&stop));
    assert_true(may_end(&stop));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_log_lets_go_and_calls_for_a_person),
        cmocka_unit_test(a_store_that_is_in_its_place_lets_go),
        cmocka_unit_test(a_store_that_was_saved_lets_go_and_calls_for_a_person),
        cmocka_unit_test(a_store_that_cannot_be_saved_lets_go_at_the_second_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

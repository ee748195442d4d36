/* The look before a thread sleeps: begun only while it pays, and never without end. */
#include "base/os/clock.h"
#include "base/os/mailbox.h"
#include "base/os/spin.h"
#include "base/os/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SHORT_US = 50, LONG_US = 5000 }; /* between them lies what counts as soon */
enum { TURN_SHORT_US = 100, TURN_LONG_US = 500 };

/* A wait of this length; true: it began with a look. */
static bool wait_begins_with_look(struct rv_spin *spin, int64_t *now_us, int64_t us)
{
    bool looks = rv_spin_begin(spin, *now_us) > *now_us;
    *now_us += us;
    rv_spin_end(spin, *now_us);
    return looks;
}

static void it_looks_while_waits_are_short(void **state)
{
    struct rv_spin spin;
    int64_t now_us = 1000;
    (void)state;
    rv_spin_init(&spin);
    spin.never = false;
    assert_false(wait_begins_with_look(&spin, &now_us, SHORT_US)); /* nothing is known yet */
    for (int i = 0; i < 5; i++)
        assert_true(wait_begins_with_look(&spin, &now_us, SHORT_US));
}

static void it_stops_when_waits_are_long(void **state)
{
    struct rv_spin spin;
    int64_t now_us = 1000;
    int looks = 0;
    (void)state;
    rv_spin_init(&spin);
    spin.never = false;
    (void)wait_begins_with_look(&spin, &now_us, SHORT_US);
    for (int i = 0; i < 1000; i++)
        looks += wait_begins_with_look(&spin, &now_us, LONG_US);
    assert_in_range(looks, 1, 5);
    (void)wait_begins_with_look(&spin, &now_us, SHORT_US);
    assert_true(wait_begins_with_look(&spin, &now_us, SHORT_US));
}

static void it_does_not_look_after_a_long_turn(void **state)
{
    struct rv_spin spin;
    int64_t now_us = 1000;
    (void)state;
    rv_spin_init(&spin);
    spin.never = false;
    (void)wait_begins_with_look(&spin, &now_us, SHORT_US);
    now_us += TURN_LONG_US;
    assert_false(wait_begins_with_look(&spin, &now_us, SHORT_US));
    now_us += TURN_SHORT_US;
    assert_true(wait_begins_with_look(&spin, &now_us, SHORT_US));
}

static void it_does_not_look_where_nobody_else_can_run(void **state)
{
    struct rv_spin spin;
    int64_t now_us = 1000;
    (void)state;
    rv_spin_init(&spin);
    spin.never = true;
    for (int i = 0; i < 5; i++)
        assert_false(wait_begins_with_look(&spin, &now_us, SHORT_US));
}

static void a_look_is_bounded(void **state)
{
    struct rv_spin spin;
    (void)state;
    rv_spin_init(&spin);
    spin.never = false;
    rv_spin_end(&spin, rv_clock_mono_us());
    spin.misses = 0;
    int64_t begun_us = rv_clock_mono_us(), until_us = rv_spin_begin(&spin, begun_us);
    assert_in_range(until_us - begun_us, 1, 1000);
    while (rv_spin_on(until_us))
        ;
    assert_true(rv_clock_mono_us() >= until_us);
}

struct ball {
    struct ball *next;
};

enum { THROWS = 2000 };

struct court {
    struct rv_mailbox here, there;
};

static void throw_back(void *self)
{
    struct court *court = self;
    void *ball;
    while (rv_mailbox_take(&court->there, &ball, 1, -1) > 0)
        assert_true(rv_mailbox_put(&court->here, ball));
}

/* Two threads that wait for each other, with looks and with sleeps between: nothing is missed. */
static void what_comes_during_a_look_is_taken(void **state)
{
    struct court court;
    struct rv_thread thread;
    struct ball ball;
    void *back;
    (void)state;
    rv_mailbox_init(&court.here, offsetof(struct ball, next));
    rv_mailbox_init(&court.there, offsetof(struct ball, next));
    court.here.spin.never = court.there.spin.never = false;
    assert_int_equal(rv_thread_start(&thread, "back", throw_back, &court), RV_OK);
    for (int i = 0; i < THROWS; i++) {
        court.here.spin.misses = i % 2 == 0 ? 0 : UINT8_MAX; /* a look, or none */
        assert_true(rv_mailbox_put(&court.there, &ball));
        assert_int_equal(rv_mailbox_take(&court.here, &back, 1, -1), 1);
        assert_ptr_equal(back, &ball);
    }
    rv_mailbox_close(&court.there);
    rv_thread_join(&thread);
    rv_mailbox_done(&court.here);
    rv_mailbox_done(&court.there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_while_waits_are_short),
        cmocka_unit_test(it_stops_when_waits_are_long),
        cmocka_unit_test(it_does_not_look_after_a_long_turn),
        cmocka_unit_test(it_does_not_look_where_nobody_else_can_run),
        cmocka_unit_test(a_look_is_bounded),
        cmocka_unit_test(what_comes_during_a_look_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

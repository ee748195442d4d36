/* The mailbox between threads: order, bounds, waking, closing; nothing lost, nothing twice. */
#include "base/os/mailbox.h"
#include "base/os/clock.h"
#include "base/os/random.h"
#include "base/os/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct letter {
    int from;
    int number;
    struct letter *next;
};

static void first_in_first_out_and_bounded(void **state)
{
    (void)state;
    struct rv_mailbox box;
    rv_mailbox_init(&box, offsetof(struct letter, next));
    struct letter letters[5] = {{0}};
    for (int i = 0; i < 5; i++) {
        letters[i].number = i;
        assert_true(rv_mailbox_put(&box, &letters[i]));
    }
    void *taken[3];
    assert_int_equal(rv_mailbox_take(&box, taken, 3, -1), 3);
    assert_ptr_equal(taken[0], &letters[0]);
    assert_ptr_equal(taken[2], &letters[2]);
    rv_mailbox_close(&box);
    assert_false(rv_mailbox_put(&box, &letters[0]));
    assert_int_equal(rv_mailbox_take(&box, taken, 3, -1), 2);
    assert_ptr_equal(taken[1], &letters[4]);
    assert_int_equal(rv_mailbox_take(&box, taken, 3, -1), 0);
    rv_mailbox_done(&box);
}

static void an_empty_box_is_waited_for_as_long_as_said(void **state)
{
    (void)state;
    struct rv_mailbox box;
    rv_mailbox_init(&box, offsetof(struct letter, next));
    void *taken[1];
    int64_t before = rv_clock_mono_us();
    assert_int_equal(rv_mailbox_take(&box, taken, 1, 20), 0);
    assert_true(rv_clock_mono_us() - before >= 19000);
    rv_mailbox_done(&box);
}

enum { WRITERS = 3, LETTERS = 20000 };

struct writer {
    struct rv_mailbox *box;
    struct letter *letters;
    struct rv_thread thread;
};

static void writer_run(void *self)
{
    struct writer *writer = self;
    for (int i = 0; i < LETTERS; i++)
        rv_mailbox_put(writer->box, &writer->letters[i]);
}

static void many_writers_lose_nothing(void **state)
{
    (void)state;
    struct rv_mailbox box;
    rv_mailbox_init(&box, offsetof(struct letter, next));
    struct writer writers[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        writers[w].box = &box;
        writers[w].letters = calloc(LETTERS, sizeof(struct letter));
        for (int i = 0; i < LETTERS; i++)
            writers[w].letters[i] = (struct letter){.from = w, .number = i};
        assert_int_equal(rv_thread_start(&writers[w].thread, "writer", writer_run, &writers[w]), 0);
    }
    int next[WRITERS] = {0};
    for (size_t got = 0; got < (size_t)WRITERS * LETTERS;) {
        void *taken[100];
        size_t n = rv_mailbox_take(&box, taken, 100, -1);
        for (size_t i = 0; i < n; i++) {
            const struct letter *letter = taken[i];
            assert_int_equal(letter->number, next[letter->from]++);
        }
        got += n;
    }
    for (int w = 0; w < WRITERS; w++) {
        rv_thread_join(&writers[w].thread);
        free(writers[w].letters);
    }
    rv_mailbox_done(&box);
}

static void waker_run(void *self)
{
    rv_mailbox_close(self);
}

static void closing_ends_an_endless_wait(void **state)
{
    (void)state;
    struct rv_mailbox box;
    rv_mailbox_init(&box, offsetof(struct letter, next));
    struct rv_thread thread;
    assert_int_equal(rv_thread_start(&thread, "waker", waker_run, &box), 0);
    void *taken[1];
    assert_int_equal(rv_mailbox_take(&box, taken, 1, -1), 0);
    rv_thread_join(&thread);
    rv_mailbox_done(&box);
}

/* A taker that is on its way to sleep must not miss it. */
static void a_wake_before_the_wait_ends_it(void **state)
{
    (void)state;
    struct rv_mailbox box;
    rv_mailbox_init(&box, offsetof(struct letter, next));
    void *taken[1];
    rv_mailbox_wake(&box);
    assert_int_equal(rv_mailbox_take(&box, taken, 1, -1), 0); /* for ever, else */
    int64_t before = rv_clock_mono_us();
    assert_int_equal(rv_mailbox_take(&box, taken, 1, 20), 0); /* it counted once */
    assert_true(rv_clock_mono_us() - before >= 19000);
    rv_mailbox_done(&box);
}

static void random_numbers_are_not_given_twice(void **state)
{
    (void)state;
    struct rv_random random = {.left = 0};
    uint64_t seen[2000];
    for (int i = 0; i < 2000; i++) {
        seen[i] = rv_random_next(&random);
        for (int j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

struct parcel {
    struct parcel *next;
    int64_t behind;
};

/* What arrived before the instant that is told has been taken, wherever its maker has it. */
static void it_is_told_until_when_all_arrivals_are_taken(void **state)
{
    (void)state;
    struct rv_mailbox box;
    struct rv_mailbox_maker slow, quick;
    rv_mailbox_init(&box, offsetof(struct parcel, next));
    rv_mailbox_keep_arrivals(&box, offsetof(struct parcel, behind));
    rv_mailbox_join(&box, &slow);
    rv_mailbox_join(&box, &quick);
    struct parcel parcels[4] = {{0}};
    void *taken[4];
    int64_t before = rv_clock_mono_ms();
    assert_int_equal(rv_mailbox_take(&box, taken, 4, 0), 0);
    assert_true(rv_mailbox_heard_until(&box) >= before);

    int64_t first = rv_mailbox_arrive(&slow);
    assert_int_equal(rv_mailbox_take(&box, taken, 4, 5), 0);
    assert_true(rv_mailbox_heard_until(&box) <= first);

    (void)rv_mailbox_arrive(&quick);
    for (int i = 0; i < 2; i++)
        assert_true(rv_mailbox_put(&box, &parcels[i]));
    rv_mailbox_settle(&quick, INT64_MAX);
    assert_true(rv_mailbox_put(&box, &parcels[2]));
    rv_mailbox_settle(&slow, INT64_MAX);
    assert_true(rv_mailbox_put(&box, &parcels[3]));
    assert_int_equal(rv_mailbox_take(&box, taken, 1, 0), 1);
    assert_true(rv_mailbox_heard_until(&box) <= first); /* the slow one's is behind */
    assert_int_equal(rv_mailbox_take(&box, taken, 2, 0), 2);
    assert_true(rv_mailbox_heard_until(&box) > first); /* it was taken */
    assert_int_equal(rv_mailbox_take(&box, taken, 2, 0), 1);
    rv_mailbox_close(&box);
    rv_mailbox_done(&box);
}

static bool is_even(const void *item)
{
    return ((const struct parcel *)item)->behind % 2 == 0;
}

/* What is withdrawn is gone, and the others keep their order. */
static void what_is_withdrawn_is_not_taken(void **state)
{
    (void)state;
    struct rv_mailbox box;
    struct parcel parcels[6] = {{0}};
    void *taken[6];
    rv_mailbox_init(&box, offsetof(struct parcel, next));
    assert_int_equal(rv_mailbox_withdraw(&box, is_even, taken, 6), 0);
    for (int i = 0; i < 6; i++) {
        parcels[i].behind = i;
        assert_true(rv_mailbox_put(&box, &parcels[i]));
    }
    assert_int_equal(rv_mailbox_withdraw(&box, is_even, taken, 2), 2);
    assert_ptr_equal(taken[0], &parcels[0]);
    assert_ptr_equal(taken[1], &parcels[2]);
    assert_int_equal(rv_mailbox_take(&box, taken, 1, 0), 1);
    assert_ptr_equal(taken[0], &parcels[1]);
    parcels[1].behind = 8;
    assert_true(rv_mailbox_put(&box, &parcels[1]));
    assert_int_equal(rv_mailbox_withdraw(&box, is_even, taken, 6), 2);
    assert_ptr_equal(taken[1], &parcels[1]); /* it was the last one */
    assert_true(rv_mailbox_put(&box, &parcels[0]));
    assert_int_equal(rv_mailbox_take(&box, taken, 6, 0), 3);
    assert_ptr_equal(taken[0], &parcels[3]);
    assert_ptr_equal(taken[1], &parcels[5]);
    assert_ptr_equal(taken[2], &parcels[0]);
    rv_mailbox_close(&box);
    rv_mailbox_done(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_in_first_out_and_bounded),
        cmocka_unit_test(an_empty_box_is_waited_for_as_long_as_said),
        cmocka_unit_test(it_is_told_until_when_all_arrivals_are_taken),
        cmocka_unit_test(what_is_withdrawn_is_not_taken),
        cmocka_unit_test(many_writers_lose_nothing),
        cmocka_unit_test(closing_ends_an_endless_wait),
        cmocka_unit_test(a_wake_before_the_wait_ends_it),
        cmocka_unit_test(random_numbers_are_not_given_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ids: order, uniqueness, texts. */
#include "base/id.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void ids_rise_whatever_the_clock_does(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1795224600000);
    struct rv_id_maker maker;
    rv_id_maker_init(&maker, 200);
    int64_t last = 0;
    for (int i = 0; i < 50000; i++) {
        int64_t at = i < 20000 ? now : i < 30000 ? now - 5000 : now + i;
        struct rv_task_id id = rv_id_make(&maker, at);
        assert_true(id.value > last);
        last = id.value;
    }
    assert_int_equal(rv_id_made_at((struct rv_task_id){last}), now + 49999);
}

static void an_id_keeps_its_millisecond_and_maker(void **state)
{
    (void)state;
    const int64_t now = INT64_C(1795224600000);
    struct rv_id_maker a, b;
    rv_id_maker_init(&a, 1);
    rv_id_maker_init(&b, 2);
    struct rv_task_id from_a = rv_id_make(&a, now);
    struct rv_task_id from_b = rv_id_make(&b, now);
    assert_int_equal(rv_id_made_at(from_a), now);
    assert_int_equal(rv_id_made_at(from_b), now);
    assert_true(from_a.value != from_b.value);
    /* A later millisecond sorts after an earlier one, whoever made it. */
    assert_true(rv_id_make(&a, now + 1).value > from_b.value);
}

static void odd_clocks_give_valid_ids(void **state)
{
    (void)state;
    const int64_t clocks[] = {INT64_MIN, -1, 0, 1, (INT64_C(1) << 42) - 1, INT64_MAX};
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        struct rv_id_maker maker;
        rv_id_maker_init(&maker, 0);
        assert_true(rv_id_make(&maker, clocks[i]).value > 0);
    }
}

static void texts_are_read_back(void **state)
{
    (void)state;
    const uint64_t seed = 7;
    struct rv_prng prng;
    rv_prng_init(&prng, seed);
    for (int i = 0; i < 20000; i++) {
        struct rv_task_id id = {(int64_t)(rv_prng_next(&prng) >> 1 >> rv_prng_below(&prng, 63))};
        char text[RV_STEP_TEXT_BYTES];
        struct rv_task_id task = {0};
        struct rv_step_id step = {{0}, 0};
        if (id.value == 0)
            continue;
        struct rv_str written = rv_task_text(id, text);
        assert_int_equal(written.len, 13);
        assert_int_equal(text[13], '\0');
        assert_int_equal(rv_task_parse(written, &task), RV_OK);
        if (task.value != id.value)
            fail_msg("seed %llu: %s", (unsigned long long)seed, text);
        uint32_t number = (uint32_t)(rv_prng_next(&prng) >> 32 >> rv_prng_below(&prng, 32)) | 1;
        written = rv_step_text((struct rv_step_id){id, number}, text);
        assert_int_equal(text[written.len], '\0');
        assert_int_equal(rv_step_parse(written, &step), RV_OK);
        assert_true(step.task.value == id.value && step.number == number);
    }
}

static void known_texts(void **state)
{
    (void)state;
    char text[RV_STEP_TEXT_BYTES];
    struct rv_task_id id = {0};
    struct rv_step_id step;
    assert_string_equal(rv_task_text((struct rv_task_id){1}, text).at, "0000000000001");
    assert_string_equal(rv_task_text((struct rv_task_id){INT64_MAX}, text).at, "7ZZZZZZZZZZZZ");
    assert_string_equal(rv_step_text((struct rv_step_id){{INT64_MAX}, UINT32_MAX}, text).at,
                        "7ZZZZZZZZZZZZ-4294967295");
    assert_int_equal(rv_step_parse(RV_STR("7ZZZZZZZZZZZZ-4294967295"), &step), RV_OK);
    assert_int_equal(rv_task_parse(RV_STR("oOoOoOoOoOiLl"), &id), RV_OK);
    assert_int_equal(id.value, (1 << 10) + (1 << 5) + 1);
    assert_int_equal(rv_task_parse(RV_STR("7zzzzzzzzzzzz"), &id), RV_OK);
    assert_int_equal(id.value, INT64_MAX);
}

static void what_is_no_id_is_refused(void **state)
{
    (void)state;
    static const char *const tasks[] = {
        "",
        "0000000000000",
        "8000000000000",
        "ZZZZZZZZZZZZZ",
        "000000000001",
        "00000000000001",
        "00000000000U1",
        "000000000000-",
        "00000000000 1",
        "00000000000\xc3\xa9",
    };
    static const char *const steps[] = {
        "",
        "0000000000001",
        "0000000000001-",
        "0000000000001-0",
        "0000000000001-01",
        "0000000000001-x",
        "0000000000001-4294967296",
        "0000000000001-99999999999",
        "0000000000001-1 ",
        "0000000000001+1",
        "0000000000000-1",
        "0000000000001-+1",
        "0000000000001-99999999999999999999999999",
    };
    struct rv_task_id id = {5};
    struct rv_step_id step = {{5}, 5};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++)
        if (rv_task_parse(rv_str_of(tasks[i]), &id) != RV_ERR_INVALID)
            fail_msg("taken: %s", tasks[i]);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (rv_step_parse(rv_str_of(steps[i]), &step) != RV_ERR_INVALID)
            fail_msg("taken: %s", steps[i]);
    assert_int_equal(id.value, 5);
    assert_int_equal(step.number, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_rise_whatever_the_clock_does),
        cmocka_unit_test(an_id_keeps_its_millisecond_and_maker),
        cmocka_unit_test(odd_clocks_give_valid_ids),
        cmocka_unit_test(texts_are_read_back),
        cmocka_unit_test(known_texts),
        cmocka_unit_test(what_is_no_id_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Arenas: alignment, caps, marks, reuse. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void takes_are_aligned_and_apart(void **state)
{
    (void)state;
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    char *last_end = NULL;
    for (size_t n = 1; n < 20000; n = n * 3 + 1) {
        char *at = rv_arena_take(&arena, n);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % 16, 0);
        memset(at, 0x5a, n);
        assert_true(at != last_end || n == 0);
        last_end = at;
    }
    rv_arena_done(&arena);
}

static void cap_holds_and_is_told(void **state)
{
    (void)state;
    struct rv_arena arena;
    rv_arena_init(&arena, 1000);
    assert_non_null(rv_arena_take(&arena, 600));
    assert_int_equal(arena.refused, RV_OK);
    assert_null(rv_arena_take(&arena, 600));
    assert_int_equal(arena.refused, RV_ERR_LIMIT);
    rv_arena_reset(&arena);
    assert_non_null(rv_arena_take(&arena, 1000));
    rv_arena_done(&arena);
}

static void a_cap_below_what_is_taken_holds(void **state)
{
    (void)state;
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    assert_non_null(rv_arena_take(&arena, 600));
    arena.bytes_max = 100;
    assert_null(rv_arena_take(&arena, 1));
    assert_int_equal(arena.refused, RV_ERR_LIMIT);
    rv_arena_done(&arena);
}

static void release_gives_back_what_came_after_the_mark(void **state)
{
    (void)state;
    struct rv_arena arena;
    rv_arena_init(&arena, 10000);
    struct rv_str kept = rv_arena_str(&arena, RV_STR("kept"));
    struct rv_arena_mark mark = rv_arena_mark(&arena);
    for (int i = 0; i < 100; i++) {
        assert_non_null(rv_arena_take(&arena, 9000));
        rv_arena_release(&arena, mark);
    }
    assert_true(rv_str_is(kept, "kept"));
    struct rv_str made = rv_arena_printf(&arena, "%0300d|%s", 7, "x");
    assert_int_equal(made.len, 302);
    assert_int_equal(made.at[301], 'x');
    rv_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_are_aligned_and_apart),
        cmocka_unit_test(cap_holds_and_is_told),
        cmocka_unit_test(a_cap_below_what_is_taken_holds),
        cmocka_unit_test(release_gives_back_what_came_after_the_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

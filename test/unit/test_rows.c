/* Copies of every kind of row, as core/tbl/row.def lists them. */
#include "../lib/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct rv_row_kind *const kinds[] = {
#define RV_ROW(name, table, keys) &rv_row_##name,
#define RV_ROW_END
#include "core/tbl/row.def"
};
enum { KINDS = sizeof kinds / sizeof kinds[0], DUMP_BYTES_MAX = 1 << 20 };

/* A row with everything on an arena of its own. */
struct made {
    struct rv_arena arena;
    void *row; /* owned */
    struct rv_buf dump;
};

static void made_init(struct made *made, const struct rv_row_kind *kind)
{
    rv_arena_init(&made->arena, 0);
    rv_buf_init(&made->dump, DUMP_BYTES_MAX);
    made->row = malloc(kind->bytes);
    assert_non_null(made->row);
    row_full(kind, 4711, &made->arena, made->row);
    row_dump(&made->dump, kind, made->row);
}

/* Nothing that it was made of is left, also where nobody looks at freed memory. */
static void made_forget(struct made *made, const struct rv_row_kind *kind)
{
    for (int i = 0; i < kind->count; i++) {
        const struct rv_str *text = (void *)((char *)made->row + kind->fields[i].offset);
        if (kind->fields[i].kind == RV_FIELD_TEXT)
            memset((void *)(uintptr_t)text->at, '?', text->len);
    }
    free(made->row);
    made->row = NULL;
    rv_arena_done(&made->arena);
}

static void assert_dump(const struct rv_row_kind *kind, const void *row,
                        const struct rv_buf *wanted)
{
    struct rv_buf dump;
    rv_buf_init(&dump, DUMP_BYTES_MAX);
    row_dump(&dump, kind, row);
    assert_int_equal(dump.len, wanted->len);
    assert_memory_equal(dump.at, wanted->at, dump.len);
    rv_buf_done(&dump);
}

static void a_copy_outlives_what_it_was_made_of(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        struct made made;
        struct rv_arena arena;
        made_init(&made, kinds[k]);
        rv_arena_init(&arena, 0);
        const void *copy = rv_row_copy(kinds[k], RV_COLUMNS_ALL, &arena, made.row);
        assert_non_null(copy);
        made_forget(&made, kinds[k]);
        assert_dump(kinds[k], copy, &made.dump);
        rv_arena_done(&arena);
        rv_buf_done(&made.dump);
    }
}

static void columns_that_are_left_out_are_absent(void **state)
{
    (void)state;
    static const enum rv_columns levels[] = {RV_COLUMNS_PLAIN, RV_COLUMNS_ERRORS};
    for (size_t k = 0; k < 2 * KINDS; k++) {
        const struct rv_row_kind *kind = kinds[k / 2];
        struct made made;
        struct rv_arena arena;
        made_init(&made, kind);
        rv_arena_init(&arena, 0);
        char *copy = rv_row_copy(kind, levels[k % 2], &arena, made.row);
        assert_non_null(copy);
        for (int i = 0; i < kind->count; i++) {
            struct rv_str *text = (void *)(copy + kind->fields[i].offset);
            if (kind->fields[i].least <= levels[k % 2])
                continue;
            assert_int_equal(kind->fields[i].kind, RV_FIELD_TEXT);
            assert_null(text->at);
            memcpy(text, (char *)made.row + kind->fields[i].offset, sizeof *text);
        }
        assert_dump(kind, copy, &made.dump);
        made_forget(&made, kind);
        rv_arena_done(&arena);
        rv_buf_done(&made.dump);
    }
}

static void a_full_arena_takes_no_copy(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        struct made made;
        struct rv_arena arena;
        made_init(&made, kinds[k]);
        rv_arena_init(&arena, kinds[k]->bytes + 1);
        assert_null(rv_row_copy(kinds[k], RV_COLUMNS_ALL, &arena, made.row));
        assert_int_equal(arena.refused, RV_ERR_LIMIT);
        made_forget(&made, kinds[k]);
        rv_arena_done(&arena);
        rv_buf_done(&made.dump);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_outlives_what_it_was_made_of),
        cmocka_unit_test(columns_that_are_left_out_are_absent),
        cmocka_unit_test(a_full_arena_takes_no_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

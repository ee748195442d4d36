/* The examples of the jq 1.7 manual (jq/manual-1.7.jsonl). Each gives what the manual prints, or is
 * refused at compilation as not supported; what differs on purpose is a row of `differing`. */
#include "base/limits.h"
#include "expr/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FILE_BYTES_MAX = 1 << 20, EXAMPLES = 242, REFUSED = 28 };

static const struct {
    const char *program;
    const char *output;
    const char *why;
} differing[] = {
    {"map([., . == 1]) | tojson", "\"[[1,true],[1.000,true],[1.0,true],[100e-2,true]]\"",
     "a number that nobody computes with keeps its text; jq writes 100e-2 as 1.00"},
};

static struct rv_str text_of(const struct rv_json *row, const char *name)
{
    struct rv_str text = rv_json_str(rv_json_get(row, rv_str_of(name)));
    assert_non_null(text.at);
    return text;
}

static struct rv_json json_of(struct rv_arena *arena, struct rv_str text)
{
    struct rv_json value;
    if (rv_json_parse(arena, text, RV_JSON_DEPTH_MAX, &value, NULL) != RV_OK)
        fail_msg("no JSON: %.*s", RV_STR_FMT(text));
    return value;
}

/* What the manual prints, or we differ on purpose: an array. */
static struct rv_json outputs_of(struct rv_arena *arena, const struct rv_json *row)
{
    const struct rv_json *texts = rv_json_get(row, RV_STR("outputs"));
    for (size_t i = 0; i < sizeof differing / sizeof differing[0]; i++)
        if (rv_str_is(text_of(row, "program"), differing[i].program))
            return json_of(arena, rv_arena_printf(arena, "[%s]", differing[i].output));
    struct rv_str all = RV_STR("[");
    for (uint32_t i = 0; i < texts->len; i++)
        all = rv_arena_printf(arena, "%.*s%s%.*s", RV_STR_FMT(all), i > 0 ? "," : "",
                              RV_STR_FMT(rv_json_str(&texts->u.items[i])));
    return json_of(arena, rv_arena_printf(arena, "%.*s]", RV_STR_FMT(all)));
}

static void check_outputs(struct rv_arena *arena, const struct rv_json *row,
                          const struct rv_json *given)
{
    struct rv_json wanted = outputs_of(arena, row);
    struct rv_buf shown;
    if (rv_json_equal(&wanted, given))
        return;
    rv_buf_init(&shown, FILE_BYTES_MAX);
    rv_json_write(&shown, given);
    fail_msg("%.*s: %.*s", RV_STR_FMT(text_of(row, "program")), RV_STR_FMT(rv_buf_str(&shown)));
}

/* Whether it ran; false: refused as not supported. */
static bool run_example(struct rv_arena *arena, const struct rv_json *row)
{
    struct rv_str program = text_of(row, "program");
    struct rv_expr *expr;
    struct rv_expr_fault fault;
    struct rv_expr_budget budget = {.fuel = RV_FUEL_PER_EXPRESSION};
    struct rv_json given;
    struct rv_str text = rv_arena_printf(arena, "[%.*s]", RV_STR_FMT(program));
    enum rv_err err = rv_expr_compile(arena, text, NULL, 0, &expr, &fault);
    if (err == RV_ERR_UNSUPPORTED)
        return false;
    struct rv_json input = json_of(arena, text_of(row, "input"));
    if (err == RV_OK)
        err = rv_expr_eval(expr, &input, NULL, &budget, arena, &given, &fault);
    if (err != RV_OK)
        fail_msg("%.*s: %.*s", RV_STR_FMT(program), RV_STR_FMT(fault.message));
    check_outputs(arena, row, &given);
    return true;
}

static FILE *open_examples(void)
{
    char path[4096];
    const char *source = getenv("REEVE_SOURCE");
    assert_non_null(source);
    snprintf(path, sizeof path, "%s/test/unit/jq/manual-1.7.jsonl", source);
    return fopen(path, "r");
}

static void every_example_of_the_manual_gives_what_it_prints(void **state)
{
    (void)state;
    static char line[1 << 16];
    struct rv_arena arena;
    int examples = 0;
    int refused = 0;
    FILE *file = open_examples();
    assert_non_null(file);
    rv_arena_init(&arena, 0);
    for (; fgets(line, sizeof line, file) != NULL; examples++) {
        struct rv_json row = json_of(&arena, rv_str_of(line));
        refused += !run_example(&arena, &row);
        rv_arena_reset(&arena);
    }
    fclose(file);
    rv_arena_done(&arena);
    assert_int_equal(examples, EXAMPLES);
    assert_int_equal(refused, REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_of_the_manual_gives_what_it_prints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

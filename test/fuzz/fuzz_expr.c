/* Expressions: whatever the bytes are, they compile or get a fault inside them, and an evaluation
 * on little fuel and memory ends with a fault or a result that can be written and read again. */
#include "base/limits.h"
#include "expr/expr.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_FUEL = 20000, FUZZ_BYTES = 256 * 1024, FUZZ_RESULT_BYTES = 1024 * 1024 };

static const char input_text[] =
    "{\"a\":{\"b\":[1,2.5,-3,\"x\",null,true]},\"name\":\"h\u00e9llo\","
    "\"n\":100000000000000000000,\"e\":[],\"items\":[{\"k\":\"a\",\"v\":1},"
    "{\"k\":\"b\",\"v\":[2]},{\"k\":\"a\",\"v\":null}]}";

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* A result is JSON that our own reader takes. An output over the cap is none of the evaluator's. */
static void check_result(struct rv_arena *arena, const struct rv_json *value)
{
    struct rv_buf text;
    struct rv_json again;
    rv_buf_init(&text, FUZZ_RESULT_BYTES);
    rv_json_write(&text, value);
    if (text.failed == RV_OK)
        check(rv_json_parse(arena, rv_buf_str(&text), RV_JSON_DEPTH_MAX, &again, NULL) == RV_OK);
    rv_buf_done(&text);
}

static void evaluate(struct rv_arena *arena, const struct rv_expr *expr, size_t size)
{
    struct rv_arena memory;
    struct rv_json input, value, values[1] = {rv_json_of_real(42)};
    struct rv_expr_fault fault;
    struct rv_expr_budget budget = {.fuel = FUZZ_FUEL};
    check(rv_json_parse(arena, rv_str_of(input_text), RV_JSON_DEPTH_MAX, &input, NULL) == RV_OK);
    rv_arena_init(&memory, FUZZ_BYTES);
    enum rv_err err = rv_expr_eval(expr, &input, values, &budget, &memory, &value, &fault);
    check(err == RV_OK || err == RV_ERR_INVALID || err == RV_ERR_LIMIT);
    check(budget.fuel >= 0 && budget.fuel <= FUZZ_FUEL);
    check(err == RV_OK || (fault.message.at != NULL && fault.offset <= size));
    if (err == RV_OK)
        check_result(arena, &value);
    rv_arena_done(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rv_str variables[] = {{"context", 7}};
    struct rv_arena arena;
    struct rv_expr *expr;
    struct rv_expr_fault fault;
    rv_arena_init(&arena, 16 * FUZZ_RESULT_BYTES);
    struct rv_str text = {(const char *)data, size};
    enum rv_err err = rv_expr_compile(&arena, text, variables, 1, &expr, &fault);
    if (err == RV_OK)
        evaluate(&arena, expr, size);
    else
        check(fault.message.at != NULL && fault.offset <= size);
    rv_arena_done(&arena);
    return 0;
}

/* Scan and parse agree on what JSON is (but for repeated keys), and what is parsed is written as a
 * text that parses to an equal tree and is written the same again. */
#include "json/json.h"

#include <string.h>
#include <stdlib.h>

enum { DEPTH_MAX = 64, ARENA_BYTES = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void check_fault(struct rv_str text, const struct rv_json_fault *fault)
{
    must(fault->offset <= text.len);
    must(fault->line >= 1 && fault->column >= 1);
    must(fault->message != NULL);
}

static void check_tree(struct rv_arena *arena, const struct rv_json *tree)
{
    struct rv_json again;
    struct rv_buf first, second;
    rv_buf_init(&first, ARENA_BYTES);
    rv_buf_init(&second, ARENA_BYTES);
    rv_json_write(&first, tree);
    must(first.failed == RV_OK);
    must(rv_json_parse(arena, rv_buf_str(&first), DEPTH_MAX, &again, NULL) == RV_OK);
    must(rv_json_equal(tree, &again));
    must(rv_json_compare(tree, &again) == 0);
    rv_json_write(&second, &again);
    must(rv_str_eq(rv_buf_str(&first), rv_buf_str(&second)));
    rv_buf_reset(&second);
    rv_json_write_canonical(&second, &again);
    must(second.len == first.len);
    must(rv_json_parse(arena, rv_buf_str(&second), DEPTH_MAX, &again, NULL) == RV_OK);
    must(rv_json_equal(tree, &again));
    rv_buf_done(&second);
    rv_buf_done(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv_str text = {(const char *)data, size};
    struct rv_json_fault scan_fault = {.message = NULL};
    struct rv_json_fault parse_fault = {.message = NULL};
    struct rv_arena arena;
    struct rv_json tree;
    rv_arena_init(&arena, ARENA_BYTES);
    enum rv_err scanned = rv_json_scan(text, DEPTH_MAX, &scan_fault);
    enum rv_err parsed = rv_json_parse(&arena, text, DEPTH_MAX, &tree, &parse_fault);
    if (parsed == RV_OK) {
        must(scanned == RV_OK);
        check_tree(&arena, &tree);
    } else {
        check_fault(text, &parse_fault);
        bool repeated = strcmp(parse_fault.message, "duplicate key in this object") == 0;
        must(repeated || (scanned == parsed && scan_fault.offset == parse_fault.offset));
    }
    if (scanned != RV_OK)
        check_fault(text, &scan_fault);
    rv_arena_done(&arena);
    return 0;
}

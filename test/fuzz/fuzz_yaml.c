/* Any text: a tree or a fault with a place; what was taken is JSON, every place can be found. */
#include "base/assert.h"
#include "base/limits.h"
#include "yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv_str text = {(const char *)data, size};
    struct rv_arena arena;
    rv_arena_init(&arena, (size_t)64 * 1024 * 1024);
    struct rv_json value;
    struct rv_yaml_fault fault;
    uint32_t line;
    uint32_t column;
    enum rv_err err = rv_yaml_parse(&arena, text, RV_DEFINITION_BYTES_MAX, &value, &fault);
    if (err == RV_OK) {
        struct rv_buf buf;
        rv_buf_init(&buf, (size_t)16 * 1024 * 1024);
        rv_json_write(&buf, &value);
        rv_assert(buf.failed == RV_OK);
        rv_assert(rv_json_scan(rv_buf_str(&buf), RV_JSON_DEPTH_MAX, NULL) == RV_OK);
        rv_buf_done(&buf);
    } else {
        rv_assert(fault.line > 0 && fault.column > 0 && fault.message.at != NULL);
    }
    (void)rv_yaml_locate(text, RV_STR("/do/0/a/call"), size % 2 == 0, size % 7, &line, &column);
    rv_assert(line > 0 && column > 0);
    rv_arena_done(&arena);
    return 0;
}

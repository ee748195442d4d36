/* The log: whatever is said, a line stays one line, and in JSON one object. */
#include "base/os/log.h"
#include "json/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

/* What one call writes to stderr. */
static struct rv_str said(char *room, size_t bytes, enum rv_log_form form, struct rv_str text)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    rv_log_set_form(form);
    rv_log(RV_LOG_WARNING, "alert", RV_LOG_STR("task", text), RV_LOG_INT("step", -3),
           RV_LOG_RAW("raw", RV_STR("[1]")));
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(ends[1]);
    ssize_t got = read(ends[0], room, bytes);
    close(ends[0]);
    assert_true(got > 0);
    return (struct rv_str){room, (size_t)got};
}

static void lines_are_json_whatever_they_say(void **state)
{
    (void)state;
    char room[16384];
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    static const char hostile[] = "a\"b\\c\nd\t\x01\x7f e";
    struct rv_str line = said(room, sizeof room, RV_LOG_JSON, rv_str_of(hostile));
    struct rv_json object;
    assert_int_equal(line.at[line.len - 1], '\n');
    assert_ptr_equal(memchr(line.at, '\n', line.len), line.at + line.len - 1);
    assert_int_equal(rv_json_parse(&arena, line, 8, &object, NULL), RV_OK);
    assert_true(rv_str_is(rv_json_str(rv_json_get(&object, RV_STR("task"))), hostile));
    assert_true(rv_str_is(rv_json_str(rv_json_get(&object, RV_STR("level"))), "warning"));
    assert_non_null(rv_json_get(&object, RV_STR("raw")));
    rv_arena_done(&arena);
}

static void a_field_without_room_is_left_out(void **state)
{
    (void)state;
    char room[16384];
    char large[5000];
    memset(large, '\n', sizeof large);
    struct rv_str line = said(room, sizeof room, RV_LOG_JSON, (struct rv_str){large, sizeof large});
    struct rv_arena arena;
    struct rv_json object;
    rv_arena_init(&arena, 0);
    assert_int_equal(rv_json_parse(&arena, line, 8, &object, NULL), RV_OK);
    assert_null(rv_json_get(&object, RV_STR("task")));
    assert_non_null(rv_json_get(&object, RV_STR("step")));
    rv_arena_done(&arena);
}

static void text_cannot_forge_a_line(void **state)
{
    (void)state;
    char room[16384];
    struct rv_str line = said(room, sizeof room, RV_LOG_TEXT,
                              RV_STR("x\n12:00:00.000 info all ok"));
    assert_ptr_equal(memchr(line.at, '\n', line.len), line.at + line.len - 1);
    static const char wanted[] =
        " warning alert task=\"x\\u000a12:00:00.000 info all ok\" step=-3 raw=[1]\n";
    assert_true(rv_str_is((struct rv_str){line.at + 12, line.len - 12}, wanted));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_json_whatever_they_say),
        cmocka_unit_test(a_field_without_room_is_left_out),
        cmocka_unit_test(text_cannot_forge_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

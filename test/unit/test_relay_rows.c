/* What a relay sends, what it refuses by itself, and what it makes of the server's answers. */
#include "base/limits.h"
#include "base/time.h"
#include "json/json.h"
#include "relay/row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { ROWS = 4 };
static const int64_t now = INT64_C(1800000000000);

struct fixture {
    struct rv_arena arena;
    struct rv_arena scratch;
    struct rv_buf body;
    struct rv_row rows[ROWS];
    size_t indexes[ROWS];
};

static struct rv_row good_row(void)
{
    return (struct rv_row){.id = 7,
                           .item = {.workflow = RV_STR("shop/order"),
                                    .input = RV_STR("{\"a\":1}"),
                                    .key = RV_STR("k-7"),
                                    .priority = -1},
                           .created_at = now};
}

static int fixture_open(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    rv_arena_init(&f.arena, 0);
    rv_arena_init(&f.scratch, 0);
    rv_buf_init(&f.body, RV_BODY_BYTES_MAX);
    for (int i = 0; i < ROWS; i++)
        f.rows[i] = good_row();
    *state = &f;
    return 0;
}

static int fixture_close(void **state)
{
    struct fixture *f = *state;
    rv_arena_done(&f->arena);
    rv_arena_done(&f->scratch);
    rv_buf_done(&f->body);
    return 0;
}

/* ---- before a row is sent ---- */

static void check(struct fixture *f, struct rv_row row, enum rv_row_verdict verdict,
                  const char *why)
{
    rv_row_check(&f->arena, &row, now);
    assert_int_equal(row.verdict, verdict);
    if (why == NULL)
        assert_null(row.why.at);
    else
        assert_non_null(memmem(row.why.at, row.why.len, why, strlen(why)));
}

static void a_good_row_waits_to_be_sent(void **state)
{
    struct fixture *f = *state;
    struct rv_row row = good_row();
    check(f, row, RV_ROW_WAITS, NULL);
    row.item.priority = 9;
    row.item.correlation_id = RV_STR("c");
    row.item.input = RV_STR(" [1e400, \"\\u00e4\"] ");
    check(f, row, RV_ROW_WAITS, NULL);
}

static struct rv_str long_text(struct fixture *f, size_t bytes)
{
    char *text = rv_arena_bytes(&f->arena, bytes);
    memset(text, 'x', bytes);
    return (struct rv_str){text, bytes};
}

static void what_no_server_takes_is_refused_here(void **state)
{
    struct fixture *f = *state;
    struct rv_row row = good_row();
    row.item.key = RV_STR("");
    check(f, row, RV_ROW_REFUSED, "key is empty");
    row.item.key = RV_STR_NONE;
    check(f, row, RV_ROW_REFUSED, "key is empty");
    row.item.key = long_text(f, RV_KEY_BYTES_MAX + 1);
    check(f, row, RV_ROW_REFUSED, "key is longer than 256 bytes");
    row.item.key = long_text(f, RV_KEY_BYTES_MAX);
    check(f, row, RV_ROW_WAITS, NULL);
    row = good_row();
    row.item.workflow = RV_STR_NONE;
    check(f, row, RV_ROW_REFUSED, "workflow is empty");
    row.item.workflow = long_text(f, 1000);
    check(f, row, RV_ROW_REFUSED, "workflow is longer");
    row = good_row();
    row.item.correlation_id = long_text(f, RV_KEY_BYTES_MAX + 1);
    check(f, row, RV_ROW_REFUSED, "correlation_id is longer");
    row = good_row();
    row.item.priority = 10;
    check(f, row, RV_ROW_REFUSED, "priority");
}

/* Two keys that differ in what is no UTF-8 would be the same key on the wire. */
static void a_key_goes_out_as_it_is_or_not_at_all(void **state)
{
    struct fixture *f = *state;
    struct rv_row row = good_row();
    row.item.key = RV_STR("order \"\xc3\xa4\"\n");
    check(f, row, RV_ROW_WAITS, NULL); /* whether it takes blanks is the server's affair */
    row.item.key = RV_STR("order-\xff");
    check(f, row, RV_ROW_REFUSED, "not valid UTF-8");
    row.item.key = RV_STR("order-\xed\xa0\x80");
    check(f, row, RV_ROW_REFUSED, "not valid UTF-8");
}

static void a_bad_input_is_told_with_its_place(void **state)
{
    struct fixture *f = *state;
    static const char *const wrong[] = {"", "{", "{} {}", "{'a':1}", "nul", "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rv_row row = good_row();
        row.item.input = rv_str_of(wrong[i]);
        check(f, row, RV_ROW_REFUSED, "input:1:");
    }
    struct rv_row row = good_row();
    row.item.input = long_text(f, RV_PAYLOAD_BYTES_MAX + 1);
    check(f, row, RV_ROW_REFUSED, "input is longer");
}

static void a_row_is_not_sent_when_its_key_may_be_forgotten(void **state)
{
    struct fixture *f = *state;
    struct rv_row row = good_row();
    row.created_at = now - RV_ROW_AGE_MS_MAX + 1;
    check(f, row, RV_ROW_WAITS, NULL);
    row.created_at = now - RV_ROW_AGE_MS_MAX;
    check(f, row, RV_ROW_OLD, "29 days old");
    assert_true(RV_ROW_AGE_MS_MAX < 30 * RV_DAY_MS);
    row.created_at = now + RV_DAY_MS; /* clocks are set back */
    check(f, row, RV_ROW_WAITS, NULL);
    row.created_at = 0;
    row.verdict = RV_ROW_KNOWN; /* decided is decided */
    check(f, row, RV_ROW_KNOWN, NULL);
}

/* ---- on the way ---- */

static size_t write_rows(struct fixture *f, size_t most)
{
    size_t count = 99;
    assert_int_equal(rv_rows_write(&f->body, f->rows, ROWS, most, f->indexes, &count), RV_OK);
    return count;
}

static void only_rows_that_wait_are_written(void **state)
{
    struct fixture *f = *state;
    f->rows[0].verdict = RV_ROW_REFUSED;
    f->rows[1].item.key = RV_STR("k\"1");
    f->rows[1].item.priority = 0;
    f->rows[2].verdict = RV_ROW_KNOWN;
    f->rows[3].item.correlation_id = RV_STR("c3");
    assert_int_equal(write_rows(f, ROWS), 2);
    assert_int_equal(f->indexes[0], 1);
    assert_int_equal(f->indexes[1], 3);
    rv_buf_add_char(&f->body, '\0');
    assert_string_equal(f->body.at,
                        "{\"tasks\":[{\"workflow\":\"shop/order\",\"input\":{\"a\":1},"
                        "\"key\":\"k\\\"1\",\"priority\":0},"
                        "{\"workflow\":\"shop/order\",\"input\":{\"a\":1},\"key\":\"k-7\","
                        "\"correlationId\":\"c3\"}]}");
    assert_int_equal(write_rows(f, 1), 1);
    assert_int_equal(f->indexes[0], 1);
}

/* ---- answers ---- */

static enum rv_rows_answer read_answer(struct fixture *f, size_t count, int status,
                                       const char *body)
{
    return rv_rows_read(&f->arena, &f->scratch, f->rows, f->indexes, count, status,
                        rv_str_of(body));
}

static void each_row_gets_its_own_verdict(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(write_rows(f, ROWS), ROWS);
    assert_int_equal(read_answer(f, ROWS, 200,
                                 "{\"tasks\":[{\"task\":\"T1\",\"status\":201},"
                                 "{\"task\":\"T2\",\"status\":200},"
                                 "{\"status\":409,\"error\":{\"title\":\"taken\"}},"
                                 "{\"status\":503,\"error\":{\"title\":\"busy\"}}]}"),
                     RV_ROWS_READ);
    assert_int_equal(f->rows[0].verdict, RV_ROW_ACCEPTED);
    assert_int_equal(f->rows[1].verdict, RV_ROW_KNOWN);
    assert_int_equal(f->rows[2].verdict, RV_ROW_REFUSED);
    assert_true(rv_str_is(f->rows[2].why, "409: taken; correct the row, then set error to NULL"));
    assert_int_equal(f->rows[3].verdict, RV_ROW_WAITS);
    static const int passing[] = {408, 425, 429, 500, 502, 503, 507};
    for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
        char body[64];
        f->rows[3].verdict = RV_ROW_WAITS;
        snprintf(body, sizeof body, "{\"tasks\":[{\"status\":%d}]}", passing[i]);
        assert_int_equal(write_rows(f, ROWS), 1);
        assert_int_equal(read_answer(f, 1, 200, body), RV_ROWS_READ);
        assert_int_equal(f->rows[3].verdict, RV_ROW_WAITS);
    }
}

/* A relay died before it could delete the row, and its task ended and was deleted meanwhile. */
static void a_row_whose_task_is_deleted_was_one(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(write_rows(f, 2), 2);
    assert_int_equal(read_answer(f, 2, 200,
                                 "{\"tasks\":[{\"status\":410,\"error\":{\"title\":\"too late\"}},"
                                 "{\"task\":\"T2\",\"status\":201}]}"),
                     RV_ROWS_READ);
    assert_int_equal(f->rows[0].verdict, RV_ROW_KNOWN);
    assert_int_equal(f->rows[1].verdict, RV_ROW_ACCEPTED);
}

static void an_answer_that_cannot_be_read_decides_nothing(void **state)
{
    struct fixture *f = *state;
    static const char *const strange[] = {
        "",
        "<html>",
        "{}",
        "{\"tasks\":[]}",
        "{\"tasks\":[{\"task\":\"T\",\"status\":201}]}",
        "{\"tasks\":[{\"status\":201},{\"status\":201},{\"status\":201},{\"status\":9999}]}"};
    assert_int_equal(write_rows(f, ROWS), ROWS);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        assert_int_equal(read_answer(f, ROWS, 200, strange[i]), RV_ROWS_STRANGE);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(f->rows[i].verdict, RV_ROW_WAITS);
}

static void a_call_that_is_refused_as_a_whole_is_halved_down_to_the_row(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int status;
        enum rv_rows_answer answer;
    } rows[] = {{400, RV_ROWS_HALVE},   {413, RV_ROWS_HALVE},   {422, RV_ROWS_HALVE},
                {401, RV_ROWS_DENIED},  {403, RV_ROWS_DENIED},  {429, RV_ROWS_LATER},
                {503, RV_ROWS_LATER},   {500, RV_ROWS_LATER},   {404, RV_ROWS_STRANGE},
                {405, RV_ROWS_STRANGE}, {302, RV_ROWS_STRANGE}, {0, RV_ROWS_STRANGE}};
    assert_int_equal(write_rows(f, ROWS), ROWS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(read_answer(f, ROWS, rows[i].status, "{}"), rows[i].answer);
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(f->rows[i].verdict, RV_ROW_WAITS);
    assert_int_equal(read_answer(f, 1, 422, "{\"title\":\"bad\",\"detail\":\"very\"}"),
                     RV_ROWS_READ);
    assert_int_equal(f->rows[0].verdict, RV_ROW_REFUSED);
    assert_true(
        rv_str_is(f->rows[0].why, "422: bad: very; correct the row, then set error to NULL"));
}

#define WITH_ROWS(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROWS(a_good_row_waits_to_be_sent),
        WITH_ROWS(what_no_server_takes_is_refused_here),
        WITH_ROWS(a_key_goes_out_as_it_is_or_not_at_all),
        WITH_ROWS(a_bad_input_is_told_with_its_place),
        WITH_ROWS(a_row_is_not_sent_when_its_key_may_be_forgotten),
        WITH_ROWS(only_rows_that_wait_are_written),
        WITH_ROWS(each_row_gets_its_own_verdict),
        WITH_ROWS(a_row_whose_task_is_deleted_was_one),
        WITH_ROWS(an_answer_that_cannot_be_read_decides_nothing),
        WITH_ROWS(a_call_that_is_refused_as_a_whole_is_halved_down_to_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

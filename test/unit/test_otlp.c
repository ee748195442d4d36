/* Spans as OTLP/JSON: whatever their texts hold, the collector reads what was meant. */
#include "base/prng.h"
#include "json/json.h"
#include "observe/otlp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUF_BYTES = 4 * 1024 * 1024 };

struct fixture {
    struct rv_buf buf;
    struct rv_arena scratch;
    struct rv_arena arena;
    struct rv_json tree;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    rv_buf_init(&f->buf, BUF_BYTES);
    rv_arena_init(&f->scratch, 0);
    rv_arena_init(&f->arena, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    rv_buf_done(&f->buf);
    rv_arena_done(&f->scratch);
    rv_arena_done(&f->arena);
    free(f);
    return 0;
}

/* Writes copies of the spans, whose own texts are gone by then, and reads them back. */
static const struct rv_json *written(struct fixture *f, const struct rv_span *spans, size_t count)
{
    struct rv_span *copies[16];
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++)
        assert_non_null(copies[i] = rv_span_copy(&spans[i]));
    rv_buf_reset(&f->buf);
    rv_arena_reset(&f->arena);
    rv_otlp_write(&f->buf, &f->scratch, RV_STR("boot"), copies, count);
    for (size_t i = 0; i < count; i++)
        free(copies[i]);
    assert_int_equal(f->buf.failed, RV_OK);
    struct rv_json_fault fault;
    if (rv_json_parse(&f->arena, rv_buf_str(&f->buf), 64, &f->tree, &fault) != RV_OK)
        fail_msg("%u:%u: %s: %.*s", fault.line, fault.column, fault.message,
                 RV_STR_FMT(rv_buf_str(&f->buf)));
    const struct rv_json *all = rv_json_at(&f->tree, RV_STR("/resourceSpans/0/scopeSpans/0/spans"));
    assert_non_null(all);
    assert_int_equal(all->len, count);
    return all->u.items;
}

static struct rv_str text_at(const struct rv_json *value, const char *name)
{
    return rv_json_str(rv_json_get(value, rv_str_of(name)));
}

/* The attribute's text; absent: there is none. */
static struct rv_str said(const struct rv_json *span, const char *name)
{
    const struct rv_json *all = rv_json_get(span, RV_STR("attributes"));
    for (uint32_t i = 0; i < all->len; i++)
        if (rv_str_is(text_at(&all->u.items[i], "key"), name))
            return text_at(rv_json_get(&all->u.items[i], RV_STR("value")), "stringValue");
    return RV_STR_NONE;
}

static struct rv_span attempt(void)
{
    return (struct rv_span){
        .kind = RV_SPAN_ATTEMPT,
        .outcome = RV_SPAN_FAILED,
        .trace = {.high = 0xab, .low = 0xcd, .sampled = true},
        .id = 0x11,
        .parent = 0x22,
        .begun_at = 1700000000123,
        .ended_at = 1700000000456,
        .step = {{4711}, 3},
        .attempt = 2,
        .state = "failed",
        .effect = "unknown",
        .reference = RV_STR("/do/0/reserve"),
        .agent = RV_STR("inventory"),
        .error = RV_STR("{\"type\":\"busy\",\"title\":\"card 4711\"}"),
    };
}

static void a_span_is_written_as_the_protocol_has_it(void **state)
{
    struct fixture *f = *state;
    struct rv_span one = attempt();
    const struct rv_json *span = written(f, &one, 1);
    assert_true(rv_str_is(text_at(span, "traceId"), "00000000000000ab00000000000000cd"));
    assert_true(rv_str_is(text_at(span, "spanId"), "0000000000000011"));
    assert_true(rv_str_is(text_at(span, "parentSpanId"), "0000000000000022"));
    assert_true(rv_str_is(text_at(span, "name"), "inventory"));
    assert_true(rv_str_is(text_at(span, "startTimeUnixNano"), "1700000000123000000"));
    assert_true(rv_str_is(text_at(span, "endTimeUnixNano"), "1700000000456000000"));
    assert_true(rv_str_is(said(span, "error.type"), "busy"));
    assert_true(rv_str_is(said(span, "reeve.effect"), "unknown"));
    assert_null(said(span, "reeve.workflow").at);
    assert_true(rv_str_is(text_at(rv_json_get(span, RV_STR("status")), "message"), "busy"));
    assert_null(memmem(f->buf.at, f->buf.len, "card", 4));
    one.parent = 0;
    one.error = RV_STR_NONE;
    span = written(f, &one, 1);
    assert_null(rv_json_get(span, RV_STR("parentSpanId")));
    assert_true(rv_str_is(text_at(rv_json_get(span, RV_STR("status")), "message"), "failed"));
}

static void a_step_is_named_by_its_own_part_of_the_reference(void **state)
{
    struct fixture *f = *state;
    static const char *const names[][2] = {
        {"/do/0/reserve", "reserve"}, {"reserve", "reserve"}, {"/", ""}, {"", "inline"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct rv_span one = attempt();
        one.kind = RV_SPAN_STEP;
        one.step_kind = "inline";
        one.reference = rv_str_of(names[i][0]);
        assert_true(rv_str_is(text_at(written(f, &one, 1), "name"), names[i][1]));
    }
}

static void many_spans_are_one_request(void **state)
{
    struct fixture *f = *state;
    struct rv_span all[16];
    for (size_t i = 0; i < 16; i++) {
        all[i] = attempt();
        all[i].id = i + 1;
    }
    const struct rv_json *spans = written(f, all, 16);
    assert_true(rv_str_is(text_at(&spans[15], "spanId"), "0000000000000010"));
    assert_int_equal(rv_json_at(&f->tree, RV_STR("/resourceSpans"))->len, 1);
}

/* Any bytes, valid UTF-8 or not, a NUL among them; the block ends where the text does. */
static struct rv_str hostile(struct rv_prng *prng, char *room, size_t bytes)
{
    static const char letters[] = "{}[]\",:\\/'\x01\x1f\x7f\x80\xc3\xa4\xff\xed\xa0\x80 aé";
    size_t len = rv_prng_below(prng, bytes);
    for (size_t i = 0; i < len; i++)
        room[i] = letters[rv_prng_below(prng, sizeof letters)];
    return rv_prng_below(prng, 8) == 0 ? RV_STR_NONE : (struct rv_str){room, len};
}

static void any_text_leaves_the_request_readable(void **state)
{
    struct fixture *f = *state;
    struct rv_prng prng;
    rv_prng_init(&prng, 20261122);
    for (int round = 0; round < 3000; round++) {
        char room[8][64];
        struct rv_span one = attempt();
        struct rv_str *const texts[] = {&one.workflow, &one.reference, &one.iteration,
                                        &one.agent,    &one.instance,  &one.correlation,
                                        &one.error,    &one.tracestate};
        one.kind = (enum rv_span_kind)rv_prng_below(&prng, 3);
        one.step_kind = rv_prng_below(&prng, 2) ? "call" : NULL;
        for (size_t i = 0; i < 8; i++)
            *texts[i] = hostile(&prng, room[i], sizeof room[i]);
        const struct rv_json *span = written(f, &one, 1);
        assert_true(rv_str_is(text_at(span, "spanId"), "0000000000000011"));
        assert_true(rv_str_is(said(span, "reeve.state"), "failed"));
        assert_non_null(text_at(rv_json_get(span, RV_STR("status")), "message").at);
    }
}

static void a_copy_owns_its_texts(void **state)
{
    (void)state;
    char text[] = "inventory";
    struct rv_span one = attempt();
    one.agent = rv_str_of(text);
    struct rv_span *copy = rv_span_copy(&one);
    assert_non_null(copy);
    memset(text, 'x', sizeof text - 1);
    assert_true(rv_str_is(copy->agent, "inventory"));
    assert_null(copy->workflow.at);
    assert_int_equal(rv_span_bytes(copy), rv_span_bytes(&one));
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_span_is_written_as_the_protocol_has_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_step_is_named_by_its_own_part_of_the_reference, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(many_spans_are_one_request, setup, teardown),
        cmocka_unit_test_setup_teardown(any_text_leaves_the_request_readable, setup, teardown),
        cmocka_unit_test(a_copy_owns_its_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

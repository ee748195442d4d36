#include "base/prng.h"
#include "core/rows.h"
#include "core/trace.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define GOOD "00-" ID "-" SPAN "-01"

/* What a parser may not look beyond: the text at the end of its own memory, which ASan watches. */
static struct rv_str alone(const char *text, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, text, len);
    return (struct rv_str){copy, len};
}

static bool reads(const char *text, struct rv_trace *ret_trace)
{
    struct rv_str given = alone(text, strlen(text));
    bool good = rv_trace_read(given, ret_trace);
    free((char *)(uintptr_t)given.at);
    return good;
}

/* ---- traceparent ---- */

static void a_traceparent_is_read_and_written(void **state)
{
    (void)state;
    struct rv_trace trace;
    char text[RV_TRACEPARENT_BYTES];
    assert_true(reads(GOOD, &trace));
    assert_true(trace.high == UINT64_C(0x4bf92f3577b34da6));
    assert_true(trace.low == UINT64_C(0xa3ce929d0e0e4736));
    assert_true(trace.parent == UINT64_C(0x00f067aa0ba902b7));
    assert_true(trace.sampled);
    assert_true(rv_str_is(rv_trace_text(&trace, trace.parent, text), GOOD));
    assert_true(reads("00-" ID "-" SPAN "-00", &trace));
    assert_false(trace.sampled);
    assert_true(rv_str_is(rv_trace_text(&trace, 1, text), "00-" ID "-0000000000000001-00"));
    assert_true(rv_str_is(rv_trace_id_text(&trace, text), ID));
}

/* Bits that version 00 does not know are not passed on. */
static void of_the_flags_only_sampled_is_known(void **state)
{
    (void)state;
    struct rv_trace trace;
    char text[RV_TRACEPARENT_BYTES];
    assert_true(reads("00-" ID "-" SPAN "-ff", &trace));
    assert_true(rv_str_is(rv_trace_text(&trace, trace.parent, text), GOOD));
    assert_true(reads("00-" ID "-" SPAN "-fe", &trace));
    assert_false(trace.sampled);
}

static void a_later_version_is_read_as_far_as_it_is_known(void **state)
{
    (void)state;
    struct rv_trace trace;
    assert_true(reads("01-" ID "-" SPAN "-01", &trace));
    assert_true(reads("cc-" ID "-" SPAN "-01-what-the-future-will-be-like", &trace));
    assert_true(trace.low == UINT64_C(0xa3ce929d0e0e4736));
    assert_false(reads("cc-" ID "-" SPAN "-01.what-the-future-will-not-be-like", &trace));
}

static void what_is_no_traceparent_is_passed_over(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "-",
        "00",
        "ff-" ID "-" SPAN "-01",
        "0f-" ID "-" SPAN "-0",
        "00-" ID "-" SPAN "-01-",
        "00-" ID "-" SPAN "-01 ",
        " 00-" ID "-" SPAN "-01",
        "00-" ID "-" SPAN "-1",
        "00-" ID "-" SPAN "-0g",
        "00_" ID "-" SPAN "-01",
        "00-" ID "_" SPAN "-01",
        "00-" ID "-" SPAN "_01",
        "0-0" ID "-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" ID "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-" ID "-00F067AA0BA902B7-01",
        "0A-" ID "-" SPAN "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b70-01",
        "00-" ID "-" SPAN "\n01",
        "\xef\xbb\xbf" GOOD,
        "00-xbf92f3577b34da6a3ce929d0e0e4736-" SPAN "-01",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rv_trace trace = {.high = 7};
        if (reads(bad[i], &trace))
            fail_msg("taken: %s", bad[i]);
        assert_true(trace.high == 7);
    }
    assert_false(rv_trace_read(RV_STR_NONE, NULL));
}

/* The grammar once more, as a table of what may stand where. */
static bool by_the_grammar(const char *text, size_t len)
{
    static const char shape[] = "xx-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    if (len < 55 || (len > 55 && (text[55] != '-' || memcmp(text, "00", 2) == 0)))
        return false;
    for (size_t i = 0; i < 55; i++) {
        bool hex = text[i] != '\0' && strchr("0123456789abcdef", text[i]) != NULL;
        if (shape[i] == 'x' ? !hex : text[i] != '-')
            return false;
    }
    return memcmp(text, "ff", 2) != 0 && strspn(text + 3, "0") < 32 && strspn(text + 36, "0") < 16;
}

static void any_bytes_are_read_as_the_grammar_has_it(void **state)
{
    (void)state;
    static const char letters[] = "0123456789abcdefABCDEFg-_ \t\n\x7f\xff";
    struct rv_prng prng;
    rv_prng_init(&prng, 4711);
    size_t good = 0;
    for (int round = 0; round < 200000; round++) {
        char text[80];
        size_t len = sizeof GOOD - 1;
        memcpy(text, GOOD, sizeof GOOD);
        for (uint64_t edits = rv_prng_below(&prng, 3); edits > 0; edits--)
            text[rv_prng_below(&prng, len)] = letters[rv_prng_below(&prng, sizeof letters)];
        if (rv_prng_below(&prng, 4) == 0)
            memset(text + (rv_prng_below(&prng, 2) ? 3 : 36), '0', 16);
        if (rv_prng_below(&prng, 4) == 0)
            len = rv_prng_below(&prng, len + 1);
        while (rv_prng_below(&prng, 4) == 0 && len < sizeof text - 1)
            text[len++] = letters[rv_prng_below(&prng, sizeof letters)];
        text[len] = '\0';
        struct rv_trace trace;
        struct rv_str given = alone(text, len);
        bool taken = rv_trace_read(given, &trace);
        free((char *)(uintptr_t)given.at);
        if (taken != by_the_grammar(text, len))
            fail_msg("%s: %.*s", taken ? "taken" : "not taken", (int)len, text);
        good += taken;
    }
    assert_true(good > 20000 && good < 180000);
}

/* ---- tracestate ---- */

static const char *state_of(const char *given)
{
    static char text[9000];
    struct rv_str copy = alone(given, strlen(given));
    struct rv_str read = rv_tracestate_read(copy, (char *)(uintptr_t)copy.at);
    if (read.at != NULL)
        snprintf(text, sizeof text, "%.*s", RV_STR_FMT(read));
    bool none = read.at == NULL;
    free((char *)(uintptr_t)copy.at);
    return none ? NULL : text;
}

static void a_tracestate_is_passed_on_in_its_order(void **state)
{
    (void)state;
    assert_string_equal(state_of("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
                        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    assert_string_equal(state_of(" a=1 ,\tb=2 ,, ,c=3\t"), "a=1,b=2,c=3");
    assert_string_equal(state_of("0tenant@system=x y!"), "0tenant@system=x y!");
    assert_string_equal(state_of("a_-*/9=1"), "a_-*/9=1");
}

static void what_is_no_tracestate_is_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           ",",     " ",        "a",       "=",         "a=",
        "=1",         "A=1",   "9=1",      "a=1,b",   "a=b=c",     "a=\x7f",
        "a=\xc3\xa4", "a=1\n", "a b=1",    "a=1,a=2", "a@=1",      "@a=1",
        "a@b@c=1",    "a@9=1", "a=1;b=2=", "\x01=1",  "a=1,,b=\t", "a@system-of-15-by=1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (state_of(bad[i]) != NULL)
            fail_msg("taken: %s", bad[i]);
}

static void a_tracestate_has_so_many_members(void **state)
{
    (void)state;
    char text[400] = "";
    for (int i = 0; i < RV_TRACESTATE_MEMBERS_MAX; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "k%d=1,", i);
    assert_non_null(state_of(text));
    snprintf(text + strlen(text), sizeof text - strlen(text), "one=more");
    assert_null(state_of(text));
}

static void put_member(char *at, char key, size_t value)
{
    at[0] = key;
    at[1] = '=';
    memset(at + 2, 'v', value);
    memcpy(at + 2 + value, ",", 2);
}

static void of_a_long_tracestate_the_long_ones_go_first(void **state)
{
    (void)state;
    char text[2000] = "";
    put_member(text, 'a', 100);
    put_member(text + strlen(text), 'b', 200);
    put_member(text + strlen(text), 'c', 100);
    put_member(text + strlen(text), 'd', 200);
    const char *kept = state_of(text);
    assert_non_null(kept);
    assert_non_null(strstr(kept, "a="));
    assert_null(strstr(kept, "b="));
    assert_non_null(strstr(kept, "c="));
    assert_null(strstr(kept, "d="));
    text[0] = '\0';
    for (char key = 'a'; key <= 'f'; key++)
        put_member(text + strlen(text), key, 100);
    kept = state_of(text);
    assert_int_equal(strlen(kept), 4 * 103 - 1);
    assert_non_null(strstr(kept, "d="));
    assert_null(strstr(kept, "e="));
}

/* Members that are valid but for, now and then, one byte of any kind. */
static size_t state_make(struct rv_prng *prng, char *text, size_t room)
{
    size_t len = 0;
    for (uint64_t members = rv_prng_below(prng, 9); members > 0; members--) {
        size_t value = rv_prng_below(prng, rv_prng_below(prng, 4) == 0 ? 200 : 12);
        if (len + value + 12 > room)
            break;
        len += (size_t)snprintf(text + len, room - len,
                                "%sk%u=", rv_prng_below(prng, 4) ? "" : " \t",
                                (unsigned)rv_prng_below(prng, 1000));
        for (size_t i = 0; i <= value; i++)
            text[len++] = (char)('a' + rv_prng_below(prng, 26));
        text[len++] = ',';
    }
    while (len > 0 && rv_prng_below(prng, 3) == 0)
        text[rv_prng_below(prng, len)] = (char)rv_prng_below(prng, 256);
    return len;
}

/* Whatever comes: what is passed on is no longer than it may be, and is read as itself again. */
static void any_bytes_become_a_tracestate_or_none(void **state)
{
    (void)state;
    enum { ROOM = 1200 };
    struct rv_prng prng;
    rv_prng_init(&prng, 4712);
    size_t taken = 0, shortened = 0, none = 0;
    for (int round = 0; round < 20000; round++) {
        char text[ROOM + 1], again[ROOM + 1];
        size_t len = state_make(&prng, text, ROOM);
        text[len] = '\0';
        const char *read = state_of(text);
        none += read == NULL;
        if (read == NULL)
            continue;
        taken++;
        shortened += strlen(text) > RV_TRACESTATE_BYTES_MAX;
        snprintf(again, sizeof again, "%s", read);
        assert_true(strlen(again) <= RV_TRACESTATE_BYTES_MAX && strlen(again) <= len);
        assert_string_equal(state_of(again), again);
        for (const char *at = again; *at != '\0'; at++)
            assert_true(isprint((unsigned char)*at));
    }
    assert_true(taken > 1000 && shortened > 100 && none > 1000);
}

/* ---- of a task ---- */

static void a_task_has_its_callers_trace_or_one_of_its_own(void **state)
{
    (void)state;
    char text[RV_TRACE_ID_BYTES];
    struct rv_task task = {.id = {4711}, .trace = RV_STR(GOOD)};
    struct rv_trace trace = rv_trace_of(&task);
    assert_true(rv_str_is(rv_trace_id_text(&trace, text), ID));
    assert_true(trace.parent != 0);
    task.trace = RV_STR(ID);
    trace = rv_trace_of(&task);
    assert_true(rv_str_is(rv_trace_id_text(&trace, text), ID));
    assert_true(trace.parent == 0 && trace.sampled);
}

/* Written by an earlier version, or edited by hand. */
static void a_row_without_a_trace_has_one_all_the_same(void **state)
{
    (void)state;
    static const struct rv_str damaged[] = {
        {NULL, 0},
        {"", 0},
        {"00000000000000000000000000000000", 32},
        {"4BF92F3577B34DA6A3CE929D0E0E4736", 32},
        {"00-" ID "-0000000000000000-01", 55},
        {"nonsense", 8},
    };
    struct rv_task task = {.id = {4711}};
    struct rv_trace first = rv_trace_of(&task);
    assert_true((first.high | first.low) != 0);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        task.trace = damaged[i];
        struct rv_trace trace = rv_trace_of(&task);
        assert_true(trace.high == first.high && trace.low == first.low && trace.parent == 0);
    }
    task.id.value++;
    assert_true(rv_trace_of(&task).low != first.low);
}

static void a_made_trace_depends_on_seed_and_task(void **state)
{
    (void)state;
    char a[RV_TRACE_ID_BYTES], b[RV_TRACE_ID_BYTES];
    struct rv_trace trace;
    struct rv_task task = {.id = {1}, .trace = rv_trace_make((struct rv_task_id){1}, 5, a)};
    trace = rv_trace_of(&task);
    assert_true(rv_str_eq(rv_trace_id_text(&trace, b), task.trace));
    assert_true(rv_str_is(rv_trace_make((struct rv_task_id){1}, 5, b), a));
    assert_false(rv_str_is(rv_trace_make((struct rv_task_id){1}, 6, b), a));
    assert_false(rv_str_is(rv_trace_make((struct rv_task_id){2}, 5, b), a));
}

static int span_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void each_span_has_an_id_of_its_own(void **state)
{
    (void)state;
    enum { TASKS = 8, STEPS = 100, ATTEMPTS = 50 };
    uint64_t *spans = calloc((size_t)TASKS * STEPS * ATTEMPTS, sizeof *spans);
    assert_non_null(spans);
    size_t count = 0;
    for (int64_t task = 1; task <= TASKS; task++)
        for (uint32_t step = 0; step < STEPS; step++)
            for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++)
                spans[count++] = rv_trace_span((struct rv_task_id){task}, step, attempt);
    assert_true(spans[7] == rv_trace_span((struct rv_task_id){1}, 0, 7));
    qsort(spans, count, sizeof *spans, span_order);
    for (size_t i = 0; i < count; i++)
        assert_true(spans[i] != 0 && (i == 0 || spans[i] != spans[i - 1]));
    free(spans);
}

static struct rv_str of_message(const char *body)
{
    return rv_trace_of_message(rv_str_of(body));
}

#define MESSAGE_HEAD                                                                               \
    "{\"task\":\"06DWX3T9H2K4Q\",\"number\":3,\"kind\":\"processed\",\"at\":\"t\",\"state\":\"s\""

static void a_message_is_sent_with_the_traceparent_in_its_head(void **state)
{
    (void)state;
    assert_true(rv_str_is(of_message(MESSAGE_HEAD ",\"traceparent\":\"00-a-b-01\"}"), "00-a-b-01"));
    assert_true(
        rv_str_is(of_message(MESSAGE_HEAD ",\"correlationId\":\"\\\",\\\"traceparent\\\":\\\"\\\\\""
                                          ",\"traceparent\":\"00-a-b-01\",\"output\":{}}"),
                  "00-a-b-01"));
    /* What a task has put out is none of its message's head. */
    assert_null(of_message(MESSAGE_HEAD ",\"output\":{\"n\":1,\"traceparent\":\"00-c-d-01\"}}").at);
    assert_null(of_message(MESSAGE_HEAD ",\"output\":[1,\"x\"],\"traceparent\":\"00-c-d-01\"}").at);
    assert_null(of_message(MESSAGE_HEAD "}").at);
    assert_null(of_message("{\"traceparent\":1}").at);
}

/* A row may be damaged: nothing behind its end is looked at. */
static void a_message_that_was_cut_has_no_traceparent(void **state)
{
    (void)state;
    static const char whole[] = MESSAGE_HEAD ",\"traceparent\":\"00-a\\\"b-01\"";
    for (size_t len = 0; len + 1 < sizeof whole; len++) {
        char *cut = malloc(len > 0 ? len : 1); /* a sanitizer sees what is read behind it */
        assert_non_null(cut);
        memcpy(cut, whole, len);
        assert_null(rv_trace_of_message((struct rv_str){cut, len}).at);
        free(cut);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_traceparent_is_read_and_written),
        cmocka_unit_test(of_the_flags_only_sampled_is_known),
        cmocka_unit_test(a_later_version_is_read_as_far_as_it_is_known),
        cmocka_unit_test(what_is_no_traceparent_is_passed_over),
        cmocka_unit_test(any_bytes_are_read_as_the_grammar_has_it),
        cmocka_unit_test(a_tracestate_is_passed_on_in_its_order),
        cmocka_unit_test(what_is_no_tracestate_is_none),
        cmocka_unit_test(a_tracestate_has_so_many_members),
        cmocka_unit_test(of_a_long_tracestate_the_long_ones_go_first),
        cmocka_unit_test(any_bytes_become_a_tracestate_or_none),
        cmocka_unit_test(a_task_has_its_callers_trace_or_one_of_its_own),
        cmocka_unit_test(a_row_without_a_trace_has_one_all_the_same),
        cmocka_unit_test(a_made_trace_depends_on_seed_and_task),
        cmocka_unit_test(each_span_has_an_id_of_its_own),
        cmocka_unit_test(a_message_is_sent_with_the_traceparent_in_its_head),
        cmocka_unit_test(a_message_that_was_cut_has_no_traceparent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

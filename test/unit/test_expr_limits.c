/* jq expressions under limits: out of fuel or memory anywhere, nested too deep, hostile on purpose.
 * The only outcomes are the right result and LIMIT; nothing crashes, and nothing takes long. */
#include "base/limits.h"
#include "expr/expr.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

static const char input_text[] =
    "{\"orders\":[{\"sku\":\"a-1\",\"n\":2,\"price\":9.5,\"tags\":[\"x\",\"y\"]},"
    "{\"sku\":\"b-2\",\"n\":1,\"price\":20,\"tags\":[]},{\"sku\":\"a-3\",\"n\":7,\"price\":1}],"
    "\"name\":\"h\\u00e9llo w\\u00f6rld\",\"deep\":{\"a\":{\"b\":[1,[2,[3]]]}},\"none\":null}";

/* Between them they pass through every part of the evaluator. */
static const char *const expressions[] = {
    ".orders[0].sku",
    "[.orders[] | .n * .price] | add",
    ".orders | map({(.sku): (.n + 1)}) | add",
    "[.orders[] | select(.n > 1) | .sku | ascii_upcase] | sort | join(\", \")",
    "\"\\(.name) has \\(.orders | length) orders: \\([.orders[].sku])\"",
    "reduce .orders[] as {sku: $s, n: $n} ({}; .[$s] += $n)",
    "[foreach range(20) as $i (0; . + $i; [$i, .])]",
    ".orders | group_by(.sku[0:1]) | map({k: .[0].sku, n: (map(.n) | add)})",
    ".orders | sort_by(.price, .n) | [.[] | .price] | [min, max, unique, reverse]",
    "to_entries | map(select(.value != null)) | from_entries | keys",
    "with_entries(.key |= \"x_\" + .) | del(.x_deep.a.b[0], .x_none)",
    "[paths] | length, [.. | numbers] | add",
    "(.. | numbers) |= . + 1",
    ".orders[].n += 1 | .orders[1:] |= map(.price) | .deep.a.c = (1, 2)",
    ".orders |= map(select(.n == 1) |= empty)",
    "def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 20 | fac",
    "def f(g; $x): [g, $x, (g | g)]; 3 | f(. + 1; 5, 6)",
    "[limit(5; repeat(\"ab\"))], first(range(10; 0; -3)), [1 | until(. > 100; . * 2)]",
    "[.orders[] | try (if .n > 1 then error({n}) else .sku end) catch .n]",
    "label $out | .orders[] | if .n == 1 then ., break $out else empty end",
    "[.name | explode | implode, @base64, (@base64 | @base64d), @uri, @html, @json, @sh]",
    "[.orders[] | [.sku, .n, .price]] | map(@csv, @tsv)",
    ".name | split(\" \") | join(\"-\") | ltrimstr(\"h\") | test(\"llo\"), indices(\"l\")",
    "tojson | fromjson | . == {a: 1}, contains({name: \"w\"}), tostring",
    "[.deep | flatten?, tostream] | walk(if type == \"number\" then -. else . end)",
    "[[1, 2], [3, 4]] | [combinations], transpose, (map({a: .[0]}) | INDEX(.a))",
    "[.orders[] as {tags: [$t]} | $t // \"none\"] | . - [\"none\"], (.[0] / \"x\")",
    "{a: {b: 1}, c: [range(12)]} * {a: {d: 2}} | [(.a, .c) | length], .c[2:-2]",
    "[range(30)] | map(tostring | {key: ., value: .}) | from_entries | keys_unsorted | any",
    "reduce range(40) as $i ([]; . + [$i]) | [.[] | sqrt | floor] | unique, max_by(-.)",
    "[path(.orders[0].sku, .deep.a.b[1][1], (.none // .name))] | map(length)",
    "try (1 | .a) catch ., (.name | tonumber? // \"no number\")",
};
enum { EXPRESSIONS = sizeof expressions / sizeof expressions[0] };

struct outcome {
    enum rv_err err;
    int64_t fuel_used;
    size_t bytes_used;
    struct rv_buf text; /* the result or the fault's message */
};

static void outcome_init(struct outcome *outcome)
{
    rv_buf_init(&outcome->text, RV_EXPRESSION_BYTES_MAX);
}

static void run_budget(const char *text, struct rv_expr_budget budget, size_t bytes_max,
                       struct outcome *ret)
{
    int64_t fuel = budget.fuel;
    struct rv_arena arena, memory;
    struct rv_expr *expr;
    struct rv_json in, value;
    struct rv_expr_fault fault;
    rv_arena_init(&arena, 0);
    rv_arena_init(&memory, bytes_max);
    rv_buf_reset(&ret->text);
    ret->err = rv_expr_compile(&arena, rv_str_of(text), NULL, 0, &expr, &fault);
    if (ret->err == RV_OK) {
        assert_int_equal(rv_json_parse(&arena, rv_str_of(input_text), 64, &in, NULL), RV_OK);
        ret->err = rv_expr_eval(expr, &in, NULL, &budget, &memory, &value, &fault);
    }
    if (ret->err == RV_OK)
        rv_json_write(&ret->text, &value);
    else
        rv_buf_add_str(&ret->text, fault.message);
    assert_true(ret->text.len > 0);
    ret->fuel_used = fuel - budget.fuel;
    ret->bytes_used = memory.bytes_taken;
    rv_arena_done(&arena);
    rv_arena_done(&memory);
}

static void run(const char *text, int64_t fuel, size_t bytes_max, struct outcome *ret)
{
    run_budget(text, (struct rv_expr_budget){.fuel = fuel}, bytes_max, ret);
}

/* The right outcome, or LIMIT with a reason. */
static void check_same_or_limit(const char *text, const struct outcome *right,
                                const struct outcome *got)
{
    if (got->err == RV_ERR_LIMIT)
        return;
    if (got->err != right->err || !rv_str_eq(rv_buf_str(&got->text), rv_buf_str(&right->text)))
        fail_msg("%s: %s %.*s", text, rv_err_text(got->err), RV_STR_FMT(rv_buf_str(&got->text)));
}

static void fuel_may_run_out_anywhere(void **state)
{
    (void)state;
    struct outcome right, got;
    outcome_init(&right);
    outcome_init(&got);
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        run(expressions[i], RV_FUEL_PER_EXPRESSION, 0, &right);
        assert_int_not_equal(right.err, RV_ERR_LIMIT);
        for (int64_t fuel = 0; fuel < right.fuel_used; fuel++) {
            run(expressions[i], fuel, 0, &got);
            check_same_or_limit(expressions[i], &right, &got);
        }
        run(expressions[i], right.fuel_used, 0, &got);
        assert_int_equal(got.err, right.err);
    }
    rv_buf_done(&right.text);
    rv_buf_done(&got.text);
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    struct outcome right, got;
    outcome_init(&right);
    outcome_init(&got);
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        run(expressions[i], RV_FUEL_PER_EXPRESSION, 0, &right);
        for (size_t bytes = 1; bytes <= right.bytes_used; bytes += 1 + bytes / 64) {
            run(expressions[i], RV_FUEL_PER_EXPRESSION, bytes, &got);
            check_same_or_limit(expressions[i], &right, &got);
        }
    }
    rv_buf_done(&right.text);
    rv_buf_done(&got.text);
}

struct pauses {
    unsigned count;
    unsigned give_up_at;
    int64_t used;     /* at the last of them */
    int64_t used_max; /* the most between two of them */
    jmp_buf *leave;
};

static bool pause_taken(void *context, int64_t used)
{
    struct pauses *pauses = context;
    assert_true(used > pauses->used);
    if (used - pauses->used > pauses->used_max)
        pauses->used_max = used - pauses->used;
    pauses->used = used;
    pauses->count++;
    if (pauses->leave != NULL && pauses->count == pauses->give_up_at)
        longjmp(*pauses->leave, 1);
    return pauses->count != pauses->give_up_at;
}

static void run_paused(const char *text, int64_t slice, struct pauses *pauses, struct outcome *got)
{
    struct rv_expr_budget budget = {
        .fuel = RV_FUEL_PER_EXPRESSION, .slice = slice, .pause = pause_taken, .context = pauses};
    run_budget(text, budget, 0, got);
}

static void a_pause_anywhere_changes_nothing(void **state)
{
    (void)state;
    struct outcome right, got;
    outcome_init(&right);
    outcome_init(&got);
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        run(expressions[i], RV_FUEL_PER_EXPRESSION, 0, &right);
        for (int64_t slice = 1; slice <= right.fuel_used + 1; slice += 1 + slice / 8) {
            struct pauses pauses = {0};
            run_paused(expressions[i], slice, &pauses, &got);
            assert_int_equal(got.err, right.err);
            assert_true(rv_str_eq(rv_buf_str(&got.text), rv_buf_str(&right.text)));
            assert_int_equal(got.fuel_used, right.fuel_used);
            assert_int_equal(got.bytes_used, right.bytes_used);
            assert_true(pauses.used <= right.fuel_used);
            assert_int_equal(pauses.count > 0, slice < got.fuel_used);
        }
    }
    rv_buf_done(&right.text);
    rv_buf_done(&got.text);
}

static void an_evaluation_may_be_given_up_at_any_pause(void **state)
{
    (void)state;
    struct outcome got;
    outcome_init(&got);
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        struct pauses pauses = {0};
        for (unsigned at = 1; pauses.count == at - 1; at++) {
            pauses = (struct pauses){.give_up_at = at};
            run_paused(expressions[i], 1, &pauses, &got);
            if (pauses.count == at)
                assert_int_equal(got.err, RV_ERR_BUSY);
        }
    }
    rv_buf_done(&got.text);
}

/* The leak sanitizer looks for what the evaluation held outside its arena. */
static void leave_from_pause(const char *text, unsigned at)
{
    struct rv_arena arena, memory;
    struct rv_expr *expr;
    struct rv_json in, value;
    struct rv_expr_fault fault;
    jmp_buf leave;
    struct pauses pauses = {.give_up_at = at, .leave = &leave};
    struct rv_expr_budget budget = {
        .fuel = RV_FUEL_PER_EXPRESSION, .slice = 1, .pause = pause_taken, .context = &pauses};
    rv_arena_init(&arena, 0);
    rv_arena_init(&memory, 0);
    assert_int_equal(rv_expr_compile(&arena, rv_str_of(text), NULL, 0, &expr, &fault), RV_OK);
    assert_int_equal(rv_json_parse(&arena, rv_str_of(input_text), 64, &in, NULL), RV_OK);
    if (setjmp(leave) == 0)
        assert_int_not_equal(rv_expr_eval(expr, &in, NULL, &budget, &memory, &value, &fault),
                             RV_ERR_BUSY);
    rv_arena_done(&arena);
    rv_arena_done(&memory);
}

static void the_stack_of_a_pause_may_be_thrown_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXPRESSIONS; i++)
        for (unsigned at = 1; at < 60; at += 7)
            leave_from_pause(expressions[i], at);
}

static void the_compiler_may_run_out_of_memory_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXPRESSIONS; i++) {
        enum rv_err err = RV_ERR_LIMIT;
        for (size_t bytes = 1; err == RV_ERR_LIMIT; bytes += 1 + bytes / 64) {
            struct rv_arena arena;
            struct rv_expr *expr;
            struct rv_expr_fault fault;
            rv_arena_init(&arena, bytes);
            err = rv_expr_compile(&arena, rv_str_of(expressions[i]), NULL, 0, &expr, &fault);
            rv_arena_done(&arena);
        }
        assert_int_equal(err, RV_OK);
    }
}

/* Each asks for far more than it may have. */
static const char *const hostile[] = {
    "def f: f; f",
    "def f: 1 + f; f",
    "def f(g): f(g | g); f(.)",
    "def f(g): g | f(g); f(.)",
    "def f($a): f($a + 1); f(1)",
    "def f: [f]; f",
    "def f: {a: f}; f",
    "def f: try error(\"x\") catch f; f",
    "def f: .[0] |= f; null | f",
    "def f: label $x | f, break $x; f",
    "def f: reduce 1 as $x (0; f); f",
    "def f: first(f); f",
    "def f: f as $x | $x; f",
    "def f: (f, f) // f; f",
    "def f: if f then f else f end; f",
    "def f: path(f); f",
    "def f: \"\\(f)\"; f",
    "def f: .[f]; f",
    "def f: .[f:f]; f",
    "def f: [range(f; f; f)]; f",
    "def f: limit(f; f); f",
    "def f: foreach f as $x (f; f; f); f",
    "def f: foreach ([1], [2]) as [$x] (1, 2; f; .); f",
    "def f: f |= f; f",
    "def f: (f, f) |= 1; f",
    "def f: (.a | f) += f; f",
    "def f: .a.b.c[0].d[1:] |= f; null | f",
    "def f: .[] |= ([.] | f); [1] | f",
    "def f: {(f): f}; f",
    "def f: .[f].a.b[f:f]; f",
    "def f: path(getpath(f)); f",
    "def f: getpath([\"a\", \"b\", \"c\"] | ., f); f",
    "def f: recurse(f); f",
    "def f: f and f or f; f",
    "def f: [f, f] | sort_by(f); f",
    "def f: f as [$a, {b: $c}] | f; f",
    "def f(a; b; c; d; e): f(a; b; c; d; e) | f(a | b; c; d; e; a); f(1; 2; 3; 4; 5)",
    "def f($a; $b; $c): f($a; $b; $c), 1; f((1, 2); (3, 4); (5, 6))",
    "def f: try (f, 1) catch f; f",
    "[range(1e9)]",
    "[range(0; 1; 1e-9)]",
    "[repeat(.)]",
    "last(repeat(.))",
    "last(range(infinite))",
    "[.. | ..|..|..|..|..|..]",
    "[limit(1e9; repeat(1))]",
    "\"x\" * 1e9",
    "\"x\" * 1e300",
    "\"x\" * infinite",
    "reduce range(1e9) as $i (\"x\"; . + .)",
    "reduce range(1e9) as $i ([1]; . + .)",
    "reduce range(60) as $i (1; [., .])",
    "reduce range(60) as $i (1; [., .]) | tojson",
    "reduce range(60) as $i (1; [., .]) | . == .",
    "reduce range(60) as $i (1; [., .]) | flatten",
    "reduce range(60) as $i (1; [., .]) | contains(.)",
    "reduce range(60) as $i (1; [., .]) | [paths]",
    "reduce range(60) as $i (1; {a: ., b: .}) | . * . | tostring",
    "reduce range(60) as $i (1; [., .]) | error",
    "reduce range(100000) as $i (null; [.])",
    "reduce range(100000) as $i (null; [.]) | tojson",
    "reduce range(100000) as $i (null; [.]) | . == .",
    "reduce range(100000) as $i (null; {a: .}) | . * .",
    "reduce range(100000) as $i (null; [.]) | flatten",
    "reduce range(100000) as $i (null; [.]) | [..] | length",
    "reduce range(100000) as $i ([]; . + [0]) as $p | null | setpath($p; 1)",
    "reduce range(100000) as $i ([]; . + [\"a\"]) as $p | null | getpath($p) = 1",
    "null | .[2147483647] = 1",
    "null | .[1e300] = 1",
    "null | .[infinite] = 1",
    "[range(3000)] | . - .[1:] | [range(3000)] | . - map(. + 0.5)",
    "[range(4000)] as $a | [$a[] | $a] | sort | unique",
    "[range(100000)] | map(tostring) | map({(.): 1}) | add | keys",
    "[range(1000)] | [combinations(100)]",
    "[\"a\" * 20000 | indices(\"a\")[] | \"a\" * 20000]",
    "\"a\" * 10000000 | explode | implode",
    "[limit(1e9; range(1e9)) | select(. < 0)]",
    "[range(1e6)] | group_by(. % 7) | map(length)",
    "def f(a; b; c): f(b; c; a); f(1; 2; 3)",
    "first(range(1e9) | select(. < 0))",
    "isempty(range(1e9) | empty)",
    "[1, [2]] | recurse(.) | empty",
    "walk([.])",
    "until(false; [.])",
    "\"\" | [while(true; . + \"x\")]",
};
enum { HOSTILE = sizeof hostile / sizeof hostile[0] };

/* What takes long spends its fuel piece by piece, so that nobody waits for all of it. */
static void no_operation_overruns_a_slice_by_much(void **state)
{
    (void)state;
    static const char *const large[] = {
        "\"a\" * 10000000 | length",
        "\"a\" * 2000000 | ascii_upcase, length",
        "[range(30000)] | sort | unique | group_by(. % 7) | add | length",
        "[range(100000)] | map(-.) | length",
        "\"a\" * 500000 | @base64, @html, @uri, explode, .[100:200]",
        "\"a\" * 3000000 | [., .] | add",
        "[range(20000)] | map({(tostring): 1}) | add | keys, tojson | length",
    };
    enum { SLICE = RV_FUEL_PER_COMMAND, OVERRUN_MAX = 200000 };
    struct outcome got;
    outcome_init(&got);
    for (size_t i = 0; i < HOSTILE + sizeof large / sizeof large[0]; i++) {
        const char *text = i < HOSTILE ? hostile[i] : large[i - HOSTILE];
        struct pauses pauses = {0};
        run_paused(text, SLICE, &pauses, &got);
        assert_int_not_equal(got.err, RV_ERR_INVALID);
        if (pauses.used_max > SLICE + OVERRUN_MAX)
            fail_msg("%s: %lld units", text, (long long)pauses.used_max);
    }
    rv_buf_done(&got.text);
}

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* What is measured here runs under sanitizers and beside other tests; bench_expr has the figure. */
enum { HOSTILE_MS_MAX = 1000 };

static void a09_hostile_expressions_end_soon(void **state)
{
    (void)state;
    struct outcome got;
    outcome_init(&got);
    for (size_t i = 0; i < HOSTILE; i++) {
        double start = milliseconds();
        run(hostile[i], RV_FUEL_PER_EXPRESSION, RV_EXPRESSION_BYTES_MAX, &got);
        double took = milliseconds() - start;
        if (took > HOSTILE_MS_MAX)
            fail_msg("%s took %.0f ms", hostile[i], took);
        if (got.err == RV_ERR_INVALID)
            fail_msg("%s: %.*s", hostile[i], RV_STR_FMT(rv_buf_str(&got.text)));
        assert_true(got.bytes_used <= RV_EXPRESSION_BYTES_MAX);
    }
    rv_buf_done(&got.text);
}

/* `count` copies of `open`, `middle`, and as many of `close`. */
static void run_nested(const char *open, const char *middle, const char *close, unsigned count,
                       struct outcome *ret)
{
    struct rv_buf text;
    rv_buf_init(&text, 1 << 20);
    for (unsigned i = 0; i < count; i++)
        rv_buf_add_str(&text, rv_str_of(open));
    rv_buf_add_str(&text, rv_str_of(middle));
    for (unsigned i = 0; i < count; i++)
        rv_buf_add_str(&text, rv_str_of(close));
    rv_buf_add_char(&text, '\0');
    run(text.at, RV_FUEL_PER_EXPRESSION, RV_EXPRESSION_BYTES_MAX, ret);
    rv_buf_done(&text);
}

static const char *const nests[][3] = {
    {"(", "1", ")"},
    {"[", "1", "]"},
    {"{a:", "1", "}"},
    {"-", "1", ""},
    {"try ", "1", ""},
    {"1 as $x | ", "1", ""},
    {"1 as [$x] | ", "1", ""},
    {"def f: ", "1", "; f"},
    {"def f(g): g; f(", "1", ")"},
    {"if 1 then ", "1", " end"},
    {"if 1 then 1 elif ", "1", " then 1 else 1 end"},
    {"reduce ", "1", " as $x (0; 1)"},
    {"reduce 1 as $x (0; ", "1", ")"},
    {"foreach (1,2) as $x (0; ", "1", ")"},
    {"label $x | ", "1", ""},
    {"\"\\(", "1", ")\""},
    {"first(", "1", ")"},
    {"path(", ".a", ")"},
    {"[.[", "0", "]]"},
    {"(1,2) | ", "1", ""},
    {"", ".", "[0]"},
    {"", ".", ".a"},
    {"", ".", "?"},
    {"", "1", " + 1"},
    {"", "1", " // 1"},
    {"", "1", ", 1"},
    {"", "1", " | 1"},
    {"map(", ".", ")"},
    {"with_entries(", ".", ")"},
    {". as [$a, ", "{a: $x}", "] | 1"},
    {". as [", "$a", "] | 1"},
    {"limit(1; ", "1", ")"},
    {".a |= (", "1", ")"},
    {"(.a | ", ".b", ") = 1"},
    {"any(", "1", "; .)"},
    {"walk(", ".", ")"},
};

/* Under AddressSanitizer frames are several times as large. */
#if defined(__SANITIZE_ADDRESS__)
enum { STACK_BYTES = 2 * 1024 * 1024 };
#else
enum { STACK_BYTES = 256 * 1024 };
#endif

static void *on_a_small_stack(void *arg)
{
    struct outcome *got = arg;
    for (size_t i = 0; i < sizeof nests / sizeof nests[0]; i++)
        for (unsigned count = 1; count <= 20000; count = count < 400 ? count + 13 : count * 2)
            run_nested(nests[i][0], nests[i][1], nests[i][2], count, got);
    for (size_t i = 0; i < HOSTILE; i++)
        run(hostile[i], RV_FUEL_PER_EXPRESSION / 10, RV_EXPRESSION_BYTES_MAX, got);
    return NULL;
}

static void the_stack_is_bounded(void **state)
{
    (void)state;
    struct outcome got;
    pthread_attr_t attr;
    pthread_t thread;
    outcome_init(&got);
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, on_a_small_stack, &got), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    rv_buf_done(&got.text);
}

enum { COMPILED_BYTES_MAX = 256 * 1024 * 1024 };

/* The least processor time of three that it takes to compile `before`, so many times `one` with
 * `between`, and `after`. */
static double compile_seconds(const char *const shape[4], unsigned count)
{
    double least = 1e9;
    struct rv_buf text;
    rv_buf_init(&text, RV_DEFINITION_BYTES_MAX);
    rv_buf_add_str(&text, rv_str_of(shape[0]));
    for (unsigned i = 0; i < count; i++)
        rv_buf_printf(&text, "%s%s", i ? shape[2] : "", shape[1]);
    rv_buf_add_str(&text, rv_str_of(shape[3]));
    assert_int_equal(text.failed, RV_OK);
    for (int round = 0; round < 3; round++) {
        struct timespec from, to;
        struct rv_arena arena;
        struct rv_expr *expr;
        struct rv_expr_fault fault;
        rv_arena_init(&arena, COMPILED_BYTES_MAX);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
        assert_int_equal(rv_expr_compile(&arena, rv_buf_str(&text), NULL, 0, &expr, &fault), RV_OK);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
        double took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
        least = took < least ? took : least;
        rv_arena_done(&arena);
    }
    rv_buf_done(&text);
    return least;
}

/* Eight times the text takes about eight times as long: work that grew with its square would take
 * 64 times as long. */
static void long_expressions_compile_in_linear_time(void **state)
{
    static const char *const shapes[][4] = {
        {"[", "1", ",", "]"},     {"[", ".a", ",", "]"},    {"{", "k:1", ",", "}"},
        {"[", "[1]", ",", "]"},   {"\"", "a\\n", "", "\""}, {". ", "#", "", ""},
        {"[", "\"a\"", ",", "]"}, {"", ".a", "", ""},
    };
    enum { FEW = 7000, TIMES = 8, TIMES_MAX = 30 };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        double few = compile_seconds(shapes[i], FEW);
        double many = compile_seconds(shapes[i], FEW * TIMES);
        if (many > few * TIMES_MAX + 0.002)
            fail_msg("%s%s...: %g s for %d, %g s for %d", shapes[i][0], shapes[i][1], few, FEW,
                     many, FEW * TIMES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fuel_may_run_out_anywhere),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(a_pause_anywhere_changes_nothing),
        cmocka_unit_test(no_operation_overruns_a_slice_by_much),
        cmocka_unit_test(an_evaluation_may_be_given_up_at_any_pause),
        cmocka_unit_test(the_stack_of_a_pause_may_be_thrown_away),
        cmocka_unit_test(the_compiler_may_run_out_of_memory_anywhere),
        cmocka_unit_test(a09_hostile_expressions_end_soon),
        cmocka_unit_test(the_stack_is_bounded),
        cmocka_unit_test(long_expressions_compile_in_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How long expressions take, as `expr.<what> <figure> ns`; hostile ones, until their limit. */
#include "base/limits.h"
#include "expr/expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* a neighbour on the machine does not count */
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static const char input_text[] = "{\"id\":17,\"a\":{\"b\":\"x\",\"c\":[1,2,3]},\"name\":\"Ada\","
                                 "\"items\":[{\"n\":2,\"price\":9.5},"
                                 "{\"n\":1,\"price\":20},{\"n\":7,\"price\":1}]}";

/* The best of some runs. */
static double measure(const struct rv_expr *expr, const struct rv_json *in, struct rv_arena *memory,
                      int64_t fuel, int rounds, int64_t *ret_fuel_used)
{
    double best = 1e18;
    for (int run = 0; run < 5; run++) {
        double start = nanoseconds();
        for (int i = 0; i < rounds; i++) {
            struct rv_json value;
            struct rv_expr_budget budget = {.fuel = fuel};
            rv_arena_reset(memory);
            enum rv_err err = rv_expr_eval(expr, in, NULL, &budget, memory, &value, NULL);
            *ret_fuel_used = fuel - budget.fuel;
            if (err != RV_OK && err != RV_ERR_LIMIT)
                exit(1);
        }
        double each = (nanoseconds() - start) / rounds;
        best = each < best ? each : best;
    }
    return best;
}

static struct rv_expr *compiled(struct rv_arena *arena, const char *text)
{
    struct rv_expr *expr;
    struct rv_expr_fault fault;
    if (rv_expr_compile(arena, rv_str_of(text), NULL, 0, &expr, &fault) == RV_OK)
        return expr;
    fprintf(stderr, "%s: %.*s\n", text, RV_STR_FMT(fault.message));
    exit(1);
}

static void bench(const char *name, const char *text, int rounds)
{
    struct rv_arena arena, memory;
    struct rv_json in;
    int64_t fuel;
    rv_arena_init(&arena, 0);
    rv_arena_init(&memory, RV_EXPRESSION_BYTES_MAX);
    if (rv_json_parse(&arena, rv_str_of(input_text), RV_JSON_DEPTH_MAX, &in, NULL) != RV_OK)
        exit(1);
    double ns = measure(compiled(&arena, text), &in, &memory, RV_FUEL_PER_EXPRESSION, rounds,
                        &fuel);
    printf("expr.%s %.0f ns (%.1f ns a unit of fuel)\n", name, ns, ns / (double)(fuel ? fuel : 1));
    rv_arena_done(&arena);
    rv_arena_done(&memory);
}

/* Each does one kind of work and little else, on the large input of cost_input. What a unit of fuel
 * costs should be about the same for all of them: 10 ns, and never more than 20. */
static const struct {
    const char *name;
    const char *text;
} costs[] = {
    {"loop", "last(range(100000))"},
    {"reduce", "reduce range(50000) as $x (0; . + $x)"},
    {"call", "def f: if . > 0 then . - 1 | f else . end; 50000 | f"},
    {"parameters", "def f($a; $b): $a + $b; [range(20000) as $i | f($i; $i)]"},
    {"fields", "[range(20000) as $i | .small.a.b.c]"},
    {"large_object", "[range(300) as $i | .object.k4999]"},
    {"object", "[range(20000) | {a: ., b: .}]"},
    {"string", "[range(20000) | \"a\\(.)b\"]"},
    {"sort_numbers", ".numbers | sort"},
    {"sort_texts", ".texts | sort"},
    {"sort_objects", ".rows | sort"},
    {"sort_by", ".rows | sort_by(.name)"},
    {"group_by", ".rows | group_by(.n)"},
    {"unique", ".digits | unique"},
    {"compare_texts", "[range(200) as $i | .long == .same]"},
    {"compare_trees", "[range(5) as $i | .rows == .rows_again]"},
    {"compare_digits", "[range(20000) as $i | .digits[0] == .digits[1]]"},
    {"compare_objects", "[range(20) as $i | .object == .object]"},
    {"min_max", ".numbers | min, max"},
    {"contains", ".texts | contains([\"zzz\"])"},
    {"indices_array", ".numbers | indices(-1)"},
    {"subtract", "(.numbers[:300]) - .texts[:300]"},
    {"add_numbers", ".numbers | add"},
    {"add_texts", ".texts | add"},
    {"add_arrays", "[.numbers[:200][] | [., .]] | add"},
    {"add_objects", "[.rows[] | {(.name): .n}] | add"},
    {"merge", "[range(20) as $i | .object * .object]"},
    {"copy_array", "[range(40) as $i | .numbers | reverse]"},
    {"append", "reduce range(20000) as $i ([]; . + [$i])"},
    {"set_member", "reduce range(300) as $i (.object; .k7 = $i)"},
    {"set_item", "reduce range(100) as $i (.numbers; .[3] = $i)"},
    {"update_all", ".rows[].n += 1"},
    {"update_paths", "(.rows[:100][] | select(.n > 50) | .n) |= 1"},
    {"delete", ".rows | del(.[] | select(.n > 50))"},
    {"delete_members", "[range(50) as $i | .object | del(.k7)]"},
    {"paths", ".rows | [paths]"},
    {"tostream", ".rows | [tostream]"},
    {"flatten", "[.numbers, [.numbers]] | flatten"},
    {"transpose", "[.numbers, .numbers] | transpose"},
    {"keys", "[range(10) as $i | .object | keys]"},
    {"entries", ".object | to_entries | from_entries"},
    {"tojson", ".rows | tojson"},
    {"tojson_numbers", ".numbers | map(. / 7) | tojson"},
    {"tojson_text", "[range(20) as $i | .long | tojson]"},
    {"tojson_escapes", ".escapes | tojson"},
    {"fromjson", ".json | fromjson"},
    {"fromjson_failing", "[range(20) as $i | .long | try fromjson catch 1]"},
    {"tonumber", ".texts_of_numbers | map(tonumber)"},
    {"read_numbers", ".reals | map(. + 0)"},
    {"tostring", ".numbers | map(. + 0.5 | tostring)"},
    {"split", ".long | split(\"a\")"},
    {"split_characters", ".long | split(\"\")"},
    {"split_rare", "[range(50) as $i | .long | split(\"#\")]"},
    {"join", ".texts | join(\", \")"},
    {"search", "[range(50) as $i | .long | contains(\"baaaaaab\")]"},
    {"search_worst", ".repeated as $r | [range(4) as $i | $r | index($r[:5000] + \"b\")]"},
    {"indices_text", ".long | indices(\"a\")"},
    {"repeat", "[range(20) as $i | .long * 10 | 1]"},
    {"repeat_short", "\"a\" * 4000000 | 1"},
    {"slice_text", "[range(50) as $i | .long[90000:90010]]"},
    {"length_text", "[range(50) as $i | .long | length]"},
    {"case", "[range(20) as $i | .long | ascii_upcase]"},
    {"explode", ".long | explode"},
    {"implode", ".long | explode | implode"},
    {"trim", "[range(50) as $i | .blank | trim]"},
    {"ltrimstr", "[range(200) as $i | .long | startswith(.)]"},
    {"reverse_text", "[range(10) as $i | .long | reverse]"},
    {"csv", "[.texts | @csv]"},
    {"html", "[range(10) as $i | .long | @html]"},
    {"uri", "[range(10) as $i | .escapes | @uri]"},
    {"sh", "[range(10) as $i | .long | @sh]"},
    {"base64", "[range(10) as $i | .long | @base64]"},
    {"base64d", ".long | @base64 | [range(10) as $i | . | @base64d]"},
    {"math", "[.numbers[] | sqrt, log, exp2]"},
    {"pow", "[.numbers[] | pow(.; 0.3)]"},
    {"modulo", "[.numbers[] | . % 7]"},
    {"errors", "[range(5000) | try error(\"x\") catch 1]"},
    {"type_errors", "[range(5000) | try (. + \"a\") catch 1]"},
    {"labels", "[range(5000) | first(1, 2)]"},
    {"limit", "[range(5000) | limit(2; 1, 2, 3)]"},
    {"recurse", "[.rows | ..]"},
    {"deep_paths", "[range(20) as $i | .deep | [paths] | length]"},
    {"walk", ".rows | walk(.)"},
    {"shared", "reduce range(14) as $i (1; [., .]) | tojson"},
    {"nth", "nth(50000; range(100000))"},
    {"combinations", "[[range(10)] | combinations(4)] | length"},
};

static const char cost_input[] =
    "{small: {a: {b: {c: 1}}}, numbers: [range(10000) | . * 7919 % 10007],"
    " texts: [range(5000) | . * 7919 % 10007 | \"text number \\(.)\"],"
    " rows: [range(2000) | {name: \"row \\(. * 7919 % 2003)\", n: (. % 100), t: [1, 2]}],"
    " rows_again: [range(2000) | {name: \"row \\(. * 7919 % 2003)\", n: (. % 100), t: [1, 2]}],"
    " object: ([range(5000) | {key: \"k\\(.)\", value: .}] | from_entries),"
    " long: (\"baaaaaaaac\" * 10000), same: (\"baaaaaaaac\" * 10000), repeated: (\"a\" * 100000),"
    " escapes: (\"\\n\\\"\" * 10000), blank: (\" \" * 100000),"
    " digits: [range(2000) | \"90071992547409\\(10 + . % 90)3\" | tonumber],"
    " reals: [range(5000) | \"0.1234567890123456789\\(.)\" | tonumber],"
    " texts_of_numbers: [range(5000) | \"\\(.).5\"],"
    " json: ([range(5000) | {a: ., b: \"x\", c: [true, null]}] | tojson),"
    " deep: reduce range(50) as $i (1; [.])}";

/* The input as JSON text and back, so that its numbers are texts as those of a task are. */
static struct rv_json cost_value(struct rv_arena *arena)
{
    struct rv_json made, read, null = rv_json_null();
    struct rv_expr_budget budget = {.fuel = INT64_C(1) << 40};
    struct rv_buf buf;
    rv_buf_init(&buf, 64 << 20);
    if (rv_expr_eval(compiled(arena, cost_input), &null, NULL, &budget, arena, &made, NULL) !=
        RV_OK)
        exit(1);
    rv_json_write(&buf, &made);
    struct rv_str text = rv_arena_str(arena, rv_buf_str(&buf));
    rv_buf_done(&buf);
    if (rv_json_parse(arena, text, RV_JSON_NESTING_MAX, &read, NULL) != RV_OK)
        exit(1);
    return read;
}

static void bench_costs(void)
{
    struct rv_arena arena, memory;
    rv_arena_init(&arena, 0);
    rv_arena_init(&memory, 0);
    struct rv_json in = cost_value(&arena);
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        int64_t fuel;
        double ns = measure(compiled(&arena, costs[i].text), &in, &memory, INT64_C(1) << 40, 1,
                            &fuel);
        printf("expr.cost.%s %.1f ns a unit of fuel (%lld units)\n", costs[i].name,
               ns / (double)fuel, (long long)fuel);
    }
    rv_arena_done(&arena);
    rv_arena_done(&memory);
}

static void bench_compile(const char *text)
{
    double best = 1e18;
    for (int run = 0; run < 5; run++) {
        double start = nanoseconds();
        for (int i = 0; i < 2000; i++) {
            struct rv_arena arena;
            rv_arena_init(&arena, 0);
            compiled(&arena, text);
            rv_arena_done(&arena);
        }
        double each = (nanoseconds() - start) / 2000;
        best = each < best ? each : best;
    }
    printf("expr.compile %.0f ns\n", best);
}

int main(void)
{
    bench("path", ".a.b", 1000000);
    bench("compare", ".a.b == \"x\" and .id > 3", 300000);
    bench("construct", "{id, name, first: .items[0].n}", 100000);
    bench("text", "\"Hello \\(.name), order \\(.id)!\"", 100000);
    bench("total", "[.items[] | .n * .price] | add", 100000);
    bench("group", ".items | group_by(.n) | map({n: .[0].n, all: map(.price)})", 20000);
    bench("update", ".items[].n += 1", 100000);
    bench_compile("[.items[] | select(.n > 1) | {n, total: (.n * .price)}] | sort_by(.total)");
    bench("hostile.recursion", "def f: f; f", 3);
    bench("hostile.range", "[range(1e9)]", 3);
    bench("hostile.repeat", "last(repeat(.))", 3);
    bench("hostile.text", "\"x\" * 1e9", 3);
    bench("hostile.doubling", "reduce range(1e9) as $i (\"x\"; . + .)", 3);
    bench("hostile.sort", "[range(4000)] as $a | [$a[] | $a] | sort | unique", 3);
    bench("hostile.objects", "[range(100000)] | map({(tostring): 1}) | add | keys", 3);
    bench("hostile.shared", "reduce range(60) as $i (1; [., .]) | tojson", 3);
    bench("hostile.subtract", "[range(3000)] | . - map(. + 0.5)", 3);
    bench("hostile.search", "\"a\" * 100000 | indices(\"a\" * 50000)", 3);
    bench_costs();
    return 0;
}

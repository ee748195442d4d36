/* Texts and trees: JSON, YAML, jq, definitions. What is read without memory must be told as such,
 * never as a fault of the text, and the next reading must see the whole of it. */
#include "../lib/workflow.h"
#include "base/limits.h"
#include "expr/expr.h"
#include "faults.h"
#include "json/json.h"
#include "torture.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 20 };

/* ---- JSON ---- */

/* Long strings with escapes, an object with many members, deep and wide arrays. */
static void json_text(struct rv_buf *text)
{
    rv_buf_init(text, TEXT_BYTES_MAX);
    rv_buf_lit(text, "{\"escaped\":\"a\\n\\u00e9\\ud83d\\ude00b\",\"many\":{");
    for (int i = 0; i < 200; i++)
        rv_buf_printf(text, "%s\"member %d\":%d", i > 0 ? "," : "", 199 - i, i);
    rv_buf_lit(text, "},\"wide\":[");
    for (int i = 0; i < 200; i++)
        rv_buf_printf(text, "%s%d.5e3", i > 0 ? "," : "", i);
    rv_buf_lit(text, "],\"deep\":");
    for (int i = 0; i < 60; i++)
        rv_buf_lit(text, "[");
    for (int i = 0; i < 60; i++)
        rv_buf_lit(text, "]");
    rv_buf_lit(text, "}");
    EXPECT(text->failed == RV_OK, "no text");
}

static enum rv_err json_write(const struct rv_json *value, bool canonical, struct rv_buf *out)
{
    rv_buf_init(out, TEXT_BYTES_MAX);
    if (canonical)
        rv_json_write_canonical(out, value);
    else
        rv_json_write(out, value);
    enum rv_err err = out->failed;
    if (err != RV_OK)
        rv_buf_done(out);
    return err;
}

static enum rv_err json_parse(struct rv_arena *arena, struct rv_str text, struct rv_json *value)
{
    struct rv_json_fault fault;
    struct rv_arena_mark mark = rv_arena_mark(arena);
    enum rv_err err = rv_json_parse(arena, text, RV_JSON_DEPTH_MAX, value, &fault);
    if (err != RV_OK)
        rv_arena_release(arena, mark);
    return err;
}

static void says_hash_of(struct torture *t, const char *what, const struct rv_buf *text)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < text->len; i++)
        hash = hash * 31 + (unsigned char)text->at[i];
    torture_says(t, "%s: %zu bytes, %llx\n", what, text->len, (unsigned long long)hash);
}

static void run_json(struct torture *t)
{
    struct rv_buf text, out;
    struct rv_arena arena;
    struct rv_json value, copy;
    json_text(&text);
    rv_arena_init(&arena, 0);
    TRY(t, json_parse(&arena, rv_buf_str(&text), &value));
    TRY(t, json_write(&value, false, &out));
    says_hash_of(t, "written", &out);
    IN_PRODUCT(rv_buf_done(&out));
    TRY(t, json_write(&value, true, &out));
    says_hash_of(t, "canonical", &out);
    IN_PRODUCT(rv_buf_done(&out));
    TRY(t, rv_json_copy(&arena, &value, &copy));
    torture_says(t, "copy: %d %d\n", rv_json_equal(&value, &copy), rv_json_compare(&value, &copy));
    IN_PRODUCT(rv_arena_done(&arena));
    rv_buf_done(&text);
}

/* What is wrong with a text is told the same way when memory is short, or not at all. */
static void run_json_faults(struct torture *t)
{
    static const char *const texts[] = {
        "{\"a\":1,\"a\":2}", "[1,2", "{\"a\":\"\\ud800\"}", "[01]", "[\"a\n\"]", "{}x", "nul"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rv_arena arena;
        struct rv_json value;
        struct rv_json_fault fault;
        enum rv_err err;
        rv_arena_init(&arena, 0);
        for (int tries = 0;; tries++) {
            IN_PRODUCT(err = rv_json_parse(&arena, rv_str_of(texts[i]), RV_JSON_DEPTH_MAX, &value,
                                           &fault));
            if (err == RV_ERR_INVALID)
                break;
            torture_again(t, err, tries, texts[i], __FILE__, __LINE__);
        }
        torture_says(t, "%u:%u %s\n", fault.line, fault.column, fault.message);
        IN_PRODUCT(rv_arena_done(&arena));
    }
}

/* ---- YAML ---- */

static const char *const yamls[] = {
    NULL, /* the file "order" */
    "# comments, all styles of scalars\n"
    "plain: some text\n"
    "quoted: \"a\\n\\u00e9\"\n"
    "single: 'it''s'\n"
    "folded: >-\n"
    "  two\n"
    "  lines\n"
    "literal: |\n"
    "  kept\n"
    "  as it is\n"
    "flow: {a: [1, 2.50, true, ~], b: {}}\n"
    "list:\n"
    "  - {k: v}\n"
    "  - - nested\n",
    "{\"json\": [1, \"\\ud83d\\ude00\", {\"a\": null}]}",
};

static enum rv_err yaml_parse(struct rv_arena *arena, struct rv_str text, struct rv_json *value,
                              struct rv_yaml_fault *fault)
{
    enum rv_err err = rv_yaml_parse(arena, text, TEXT_BYTES_MAX, value, fault);
    if (err == RV_ERR_MEMORY)
        rv_arena_reset(arena);
    return err;
}

static void run_yaml(struct torture *t)
{
    for (size_t i = 0; i < sizeof yamls / sizeof yamls[0]; i++) {
        struct rv_arena arena;
        struct rv_json value;
        struct rv_yaml_fault fault;
        struct rv_buf out;
        rv_arena_init(&arena, 0);
        const char *text = yamls[i] != NULL ? yamls[i] : workflow_file("order");
        TRY(t, yaml_parse(&arena, rv_str_of(text), &value, &fault));
        TRY(t, json_write(&value, false, &out));
        says_hash_of(t, "yaml", &out);
        IN_PRODUCT(rv_buf_done(&out));
        IN_PRODUCT(rv_arena_done(&arena));
    }
}

static void run_yaml_faults(struct torture *t)
{
    static const char *const texts[] = {"a: 1\na: 2\n", "a: &x 1\nb: *x\n", "a: !tag 1\n",
                                        "a: [1, 2\n",   "a:\n\t- b\n",      "? [complex]\n: key\n",
                                        "a: \"open\n",  "--- a\n--- b\n",   "{\"a\": 1, \"a\": 2}",
                                        "<<: {}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rv_arena arena;
        struct rv_json value;
        struct rv_yaml_fault fault;
        enum rv_err err;
        rv_arena_init(&arena, 0);
        for (int tries = 0;; tries++) {
            IN_PRODUCT(err = yaml_parse(&arena, rv_str_of(texts[i]), &value, &fault));
            if (err == RV_ERR_INVALID)
                break;
            torture_again(t, err, tries, texts[i], __FILE__, __LINE__);
        }
        torture_says(t, "%u:%u %.*s\n", fault.line, fault.column, RV_STR_FMT(fault.message));
        IN_PRODUCT(rv_arena_done(&arena));
    }
}

/* A place is a courtesy: without memory it is not found, and nothing worse. */
static void run_yaml_places(struct torture *t)
{
    static const char *const pointers[] = {"/do/1/charge/metadata/reeve/completeBy", "/nowhere",
                                           "/document/name"};
    const char *order = workflow_file("order");
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++) {
        uint32_t line, column;
        bool found = false;
        IN_PRODUCT(found = rv_yaml_locate(rv_str_of(order), rv_str_of(pointers[i]), false, 1, &line,
                                          &column));
        EXPECT(line >= 1 && column >= 1, "no place at all");
        if (t->at == 0)
            EXPECT(found == (i != 1), "%s", pointers[i]);
    }
}

/* ---- jq ---- */

static const struct {
    const char *text;
    const char *input;
} programs[] = {
    {".items | map(.price * .count) | add",
     "{\"items\":[{\"price\":2,\"count\":3},{\"price\":1.5,\"count\":4}]}"},
    {"[.[] | select(.a > 1)] | sort_by(.b) | group_by(.c) | map(length)",
     "[{\"a\":1},{\"a\":2,\"b\":2,\"c\":1},{\"a\":3,\"b\":1,\"c\":1},{\"a\":4,\"b\":0,\"c\":2}]"},
    {"reduce range(0; 50) as $i ({}; .[\"k\\($i)\"] = [$i, {n: $i}])", "null"},
    {"[paths] as $p | to_entries | map({(.key): (.value | tostring)}) | add + {p: $p}",
     "{\"a\":[1,2],\"b\":{\"c\":null}}"},
    {"def f(x): if x > 3 then [x] else [x] + f(x + 1) end; f(0)", "null"},
    {"[limit(3; .[])] | @json \"x \\(.) y\", (map(tojson) | join(\",\") | @base64)", "[1,\"b\",3]"},
    {"[.[] as [$a, $b] | {a: $a, b: $b}] | unique_by(.a) | del(.[0].b)", "[[1,2],[1,3],[2,\"x\"]]"},
    {"try error({kind: \"mine\"}) catch .kind", "null"},
    {"label $out | foreach .[] as $x (0; . + $x; if . > 3 then ., break $out else . end)",
     "[1,2,3]"},
    {"[splits(\",\")?], ascii_downcase, (split(\"b\") | reverse), (explode | implode)", "\"aBbC\""},
    {"walk(if type == \"number\" then . + 1 else . end) | tojson | fromjson | getpath([\"a\", 0])",
     "{\"a\":[1,{\"b\":2}]}"},
    {"$context.total // \"none\" | ltrimstr(\"no\") | test(\"n\")", "{}"},
};

static enum rv_err expr_run(struct rv_arena *arena, const char *text, const char *input,
                            struct rv_buf *out)
{
    static const struct rv_str names[] = {{"context", 7}};
    struct rv_json value, result, context = rv_json_null();
    struct rv_expr *expr;
    struct rv_expr_fault fault;
    struct rv_expr_budget budget = {.fuel = 1000000};
    rv_buf_init(out, TEXT_BYTES_MAX);
    rv_arena_reset(arena);
    enum rv_err err = rv_expr_compile(arena, rv_str_of(text), names, 1, &expr, &fault);
    if (err == RV_OK)
        err = rv_json_parse(arena, rv_str_of(input), RV_JSON_DEPTH_MAX, &value, NULL);
    if (err == RV_OK)
        err = rv_expr_eval(expr, &value, &context, &budget, arena, &result, &fault);
    if (err == RV_OK)
        rv_json_write(out, &result);
    else if (err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED)
        rv_buf_printf(out, "%zu: %.*s", fault.offset, RV_STR_FMT(fault.message));
    if (err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED || err == RV_OK)
        err = out->failed;
    if (err != RV_OK)
        rv_buf_done(out);
    return err;
}

static void run_expr(struct torture *t)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        struct rv_arena arena;
        struct rv_buf out;
        rv_arena_init(&arena, 0);
        TRY(t, expr_run(&arena, programs[i].text, programs[i].input, &out));
        torture_says(t, "%.*s\n", (int)(out.len < 900 ? out.len : 900), out.at);
        IN_PRODUCT(rv_buf_done(&out));
        IN_PRODUCT(rv_arena_done(&arena));
    }
}

static void run_expr_faults(struct torture *t)
{
    static const char *const texts[] = {
        ".a +", "nothing(1)",         "$unknown",    "[1] - {}", "error(\"x\")", "\"open",
        "now",  "{a: .b.c.d} | .a.b", "@what \"x\"", ".[\"a\"]", "tonumber",     "1 as $x | 2 as"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rv_arena arena;
        struct rv_buf out;
        rv_arena_init(&arena, 0);
        TRY(t, expr_run(&arena, texts[i], "[\"a\"]", &out));
        torture_says(t, "%.*s\n", RV_STR_FMT(rv_buf_str(&out)));
        IN_PRODUCT(rv_buf_done(&out));
        IN_PRODUCT(rv_arena_done(&arena));
    }
}

/* ---- definitions ---- */

static enum rv_err definition_load(struct rv_arena *arena, struct rv_str text,
                                   const struct rv_definition **definition, struct rv_buf *out)
{
    struct rv_json document;
    struct rv_yaml_fault where;
    struct rv_definition_fault fault = {.message = RV_STR_NONE};
    rv_arena_reset(arena);
    rv_buf_init(out, TEXT_BYTES_MAX);
    enum rv_err err = rv_yaml_parse(arena, text, TEXT_BYTES_MAX, &document, &where);
    if (err == RV_OK)
        err = rv_definition_load(arena, &document, definition, &fault);
    if (err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED) {
        rv_buf_printf(out, "%.*s%s %zu: %.*s", RV_STR_FMT(fault.pointer),
                      fault.at_key ? " (key)" : "", fault.offset, RV_STR_FMT(fault.message));
        *definition = NULL;
        err = out->failed;
    }
    if (err != RV_OK)
        rv_buf_done(out);
    return err;
}

static void run_definition(struct torture *t)
{
    struct rv_arena arena;
    struct rv_buf out;
    const struct rv_definition *definition = NULL;
    rv_arena_init(&arena, 0);
    TRY(t, definition_load(&arena, rv_str_of(workflow_file("torture/rich")), &definition, &out));
    EXPECT(definition != NULL, "%.*s", RV_STR_FMT(rv_buf_str(&out)));
    for (uint32_t node = 1; node <= rv_definition_nodes(definition); node++) {
        const struct rv_policy *policy = rv_definition_policy(definition, node);
        torture_says(t, "%u %.*s %d %lld %u\n", node,
                     RV_STR_FMT(rv_definition_reference(definition, node)),
                     (int)rv_definition_undo_way(definition, node),
                     (long long)policy->complete_by_ms, policy->threshold);
    }
    IN_PRODUCT(rv_buf_done(&out));
    IN_PRODUCT(rv_arena_done(&arena));
}

#define HEAD "document: {dsl: '1.0.3', namespace: shop, name: bad, version: '1.0.0'}\n"

static void run_definition_faults(struct torture *t)
{
    static const char *const texts[] = {
        HEAD "do:\n  - a: {call: x, wiht: {}}\n",
        HEAD "do:\n  - a: {call: x, with: {b: '${ .a + }'}}\n",
        HEAD "do:\n  - a: {set: {x: 1}, then: nowhere}\n",
        HEAD "do:\n  - a: {call: x, metadata: {reeve: {completeBy: soon}}}\n",
        HEAD "do:\n  - a: {try: [{b: {call: x}}], catch: {retry: none}}\n",
        HEAD "do:\n  - a: {raise: {error: unknown}}\n",
        HEAD "do:\n  - a: {fork: {branches: []}}\n",
        HEAD "do: []\n",
        "document: {dsl: '2.0.0', namespace: shop, name: bad, version: '1.0.0'}\ndo: [{a: {}}]\n",
        "do:\n  - a: {call: x}\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rv_arena arena;
        struct rv_buf out;
        const struct rv_definition *definition = NULL;
        rv_arena_init(&arena, 0);
        TRY(t, definition_load(&arena, rv_str_of(texts[i]), &definition, &out));
        EXPECT(definition == NULL, "%s", texts[i]);
        torture_says(t, "%.*s\n", RV_STR_FMT(rv_buf_str(&out)));
        IN_PRODUCT(rv_buf_done(&out));
        IN_PRODUCT(rv_arena_done(&arena));
    }
}

const struct scenario scenarios_texts[] = {
    {"json", run_json, NULL, HARMS_OF_HEAP, 0, false},
    {"json_faults", run_json_faults, NULL, HARMS_OF_HEAP, 0, false},
    {"yaml", run_yaml, NULL, HARMS_OF_HEAP, 0, false},
    {"yaml_faults", run_yaml_faults, NULL, HARMS_OF_HEAP, 0, false},
    {"yaml_places", run_yaml_places, NULL, HARMS_OF_HEAP, 0, false},
    {"expr", run_expr, NULL, HARMS_OF_HEAP, 0, false},
    {"expr_faults", run_expr_faults, NULL, HARMS_OF_HEAP, 0, false},
    {"definition", run_definition, NULL, HARMS_OF_HEAP, 0, false},
    {"definition_faults", run_definition_faults, NULL, HARMS_OF_HEAP, 0, false},
    {.name = NULL},
};

/* From requests to calls, without a socket: what is taken, and what is refused with which cure. */
#include "api/route.h"
#include "base/limits.h"
#include "base/time.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct bench {
    struct rv_parser parser;
    struct rv_call call;
};

static void bench_begin(struct bench *bench)
{
    *bench = (struct bench){.call.seed = 7};
    rv_parser_init(&bench->parser);
    rv_arena_init(&bench->call.arena, 0);
}

static void bench_end(struct bench *bench)
{
    rv_parser_done(&bench->parser);
    rv_arena_done(&bench->call.arena);
}

/* For another request. */
static void bench_renew(struct bench *bench)
{
    bench_end(bench);
    bench_begin(bench);
}

static int open_bench(void **state)
{
    static struct bench bench;
    bench_begin(&bench);
    *state = &bench;
    return 0;
}

static int close_bench(void **state)
{
    bench_end(*state);
    return 0;
}

/* The status of the refusal, or 0 and the call. */
static int parse_keyed(struct bench *bench, const char *method, struct rv_str target,
                       struct rv_str body, struct rv_str key)
{
    struct rv_request_line line;
    rv_parser_begin(&bench->parser, &bench->call.arena);
    if (!rv_request_read(&bench->parser, target, &line))
        return bench->parser.problem.status;
    line.body = body;
    line.key = key;
    const struct rv_route *route = rv_route_find(&bench->parser, rv_str_of(method), &line);
    if (route == NULL)
        return bench->parser.problem.status;
    bench->call.kind = route->kind;
    return route->parse(&bench->parser, &line, &bench->call) ? 0 : bench->parser.problem.status;
}

static int parse(struct bench *bench, const char *method, struct rv_str target, struct rv_str body)
{
    return parse_keyed(bench, method, target, body, RV_STR_NONE);
}

static int parse_text(struct bench *bench, const char *method, const char *target, const char *body)
{
    return parse(bench, method, rv_str_of(target), rv_str_of(body));
}

static void accepts(struct bench *bench, const char *method, const char *target, const char *body)
{
    int status = parse_text(bench, method, target, body);
    if (status != 0)
        fail_msg("%s %s: %d %.*s", method, target, status,
                 RV_STR_FMT(bench->parser.problem.detail));
}

struct bad {
    const char *method;
    const char *target;
    const char *body;
    int status;
    const char *says;
};

#define STEP "06DWX3T9H2K4Q-3"
#define TOKEN "00000000000000ff"
#define T30 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define T300 T30 T30 T30 T30 T30 T30 T30 T30 T30 T30
static const struct bad bads[] = {
    {"GET", "/", "", 404, "GET /openapi.json lists the paths"},
    {"GET", "/v1/task", "", 404, "did you mean \"/v1/tasks\""},
    {"GET", "/v1//tasks", "", 404, "does not exist"},
    {"GET", "/v1/../tasks", "", 404, "does not exist"},
    {"GET", "/v1/tasks/", "", 404, "does not exist"},
    {"GET", "/v1/a/b/c/d/e/f/g/h", "", 404, "does not exist"},
    {"DELETE", "/v1/tasks", "", 405, "use POST, GET, HEAD, OPTIONS"},
    {"DELETE", "/v1/replies", "", 405, "use POST"},
    {"PATCH", "/v1/replies", "", 501, "method PATCH is not implemented; supported methods: "},
    {"POS", "/v1/replies", "", 501, "method POS is not"},
    {"get", "/v1/tasks", "", 501, "method get is not"},
    {"BREW", "/nowhere", "", 501, "method BREW is not"},
    {"OPTIONS", "/nowhere", "", 404, "does not exist"},
    {"GET", "/v1/tasks%00", "", 400, "control character"},
    {"GET", "/v1/tasks%0a", "", 400, "control character"},
    {"GET", "/v1/tasks%zz", "", 400, "%25"},
    {"GET", "/v1/tasks%4", "", 400, "%25"},
    {"GET", "/v1/ta sks", "", 400, "percent-encode"},
    {"GET", "/v1/tasks%ff", "", 400, "UTF-8"},
    {"GET", "v1/tasks", "", 400, "slash"},
    {"GET", "/v1/tasks?stat=error", "", 400, "did you mean \"state\""},
    {"GET", "/v1/tasks?state=eror", "", 400, "did you mean \"error\""},
    {"GET", "/v1/tasks?state=yes", "", 400, "unknown state; use one of: pending, "},
    {"POST", "/v1/keys", "{\"role\":\"root\"}", 422, "unknown role; use one of: submitter, "},
    {"GET", "/v1/tasks?state=error&state=error", "", 400, "given twice"},
    {"GET", "/v1/tasks?workflow=x", "", 400, "namespace/name"},
    {"GET", "/v1/tasks?workflow=", "", 400, "namespace/name"},
    {"GET", "/v1/tasks?colour=red", "", 400, "unknown query parameter"},
    {"GET", "/v1/tasks?agent=a&state=processed", "", 400, "open tasks"},
    {"GET", "/v1/tasks?agent=", "", 400, "must not be empty"},
    {"GET", "/v1/tasks?errorType=&state=error", "", 400, "must not be empty"},
    {"GET", "/v1/tasks?key=", "", 400, "must not be empty"},
    {"GET", "/v1/tasks?key=a&state=error", "", 400, "selects one task"},
    {"GET", "/v1/tasks?tag=a", "", 400, "NAME=VALUE"},
    {"GET", "/v1/tasks?tag=a%20b%3Dc", "", 400, "NAME=VALUE"},
    {"GET", "/v1/tasks?olderThan=1h", "", 400, "ISO 8601"},
    {"GET", "/v1/tasks?newerThan=PT0S", "", 400, "ISO 8601"},
    {"GET", "/v1/tasks?olderThan=P292Y", "", 400, "longer than 0 and up to 100 years"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q?wait=P292Y", "", 400, "up to PT50S"},
    {"GET", "/v1/tasks?limit=0", "", 400, "from 1 to 100"},
    {"GET", "/v1/tasks?limit=101", "", 400, "from 1 to 100"},
    {"GET", "/v1/tasks?limit=-1", "", 400, "from 1 to 100"},
    {"GET", "/v1/tasks?limit=99999999999999999999", "", 400, "from 1 to 100"},
    {"GET", "/v1/tasks?after=x", "", 400, "after=x: must be \"next\""},
    {"GET", "/v1/alerts?after=x", "", 400, "after=x: must be \"next\""},
    {"GET", "/v1/alerts?task=x", "", 400, "task=x: must be a task id"},
    {"GET", "/v1/keys?after=x", "", 400, "after=x: must be \"next\""},
    {"GET", "/v1/selections?after=x", "", 400, "after=x: must be \"next\""},
    {"GET", "/v1/tasks/nothing", "", 404, "not a task id"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q?wait=20", "", 400, "PT20S"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q?wait=PT51S", "", 400, "the maximum is PT50S"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q?wait=PT1S&revision=9223372036854775808", "", 400,
     "from 0 to 9223372036854775807"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q?wait=PT1S&revision=", "", 400, "from 0 to"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q/attempts?after=3", "", 400, "next"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q/attempts?after=", "", 400, "next"},
    {"GET", "/v1/tasks/06DWX3T9H2K4Q/attempts?after=4294967296.1", "", 400, "next"},
    {"GET", "/v1/alerts?open=yes", "", 400, "true or false"},
    {"GET", "/v1/agents?x", "", 400, "unknown query parameter \"x\"; this operation accepts none"},
    {"POST", "/v1/alerts/zzz/ack", "", 404, "not an alert id"},
    {"POST", "/v1/alerts/06DWX3T9H2K4Q/retry", "{\"who\":\"ann\"}", 422,
     "unknown property \"who\" in the body; use one of: by, reason"},
    {"POST", "/v1/tasks/06DWX3T9H2K4Q/undo", "{\"why\":\"x\"}", 422, "by, reason"},
    {"POST", "/v1/tasks/06DWX3T9H2K4Q/undo", "{\"by\":5}", 422, "by must be a non-empty string"},
    {"POST", "/v1/tasks", "", 400, "no body"},
    {"POST", "/v1/tasks", "{", 400, "line 1, column"},
    {"POST", "/v1/tasks", "{\"a\":1,\"a\":2}", 400, "line 1"},
    {"POST", "/v1/tasks", "{\"a\":\"\xff\"}", 400, "line 1"},
    {"POST", "/v1/tasks", "[]", 422, "the body must be a JSON object"},
    {"POST", "/v1/tasks", "{}", 422, "workflow is missing"},
    {"POST", "/v1/tasks", "{\"workflow\":null}", 422, "workflow is missing"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a\"}", 422, "namespace/name"},
    {"POST", "/v1/tasks", "{\"workflow\":\"/a\"}", 422, "namespace/name"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/\"}", 422, "namespace/name"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\\u0000\"}", 422, "U+0000"},
    {"POST", "/v1/tasks", "{\"workflw\":\"a/b\"}", 422, "did you mean \"workflow\""},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"priority\":10}", 422, "from 0 to 9"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"priority\":1.5}", 422, "from 0 to 9"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"key\":\"\"}", 422, "non-empty"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":[]}", 422,
     "an object with string values"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":{\"a b\":\"c\"}}", 422, "letters"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":{\"a\":1}}", 422,
     "is a string of at most"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":{\"a\":\"x\\ny\"}}", 422,
     "the value of \"a\" contains the control or formatting character U+000A"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":{\"a\":\"\\u061c\"}}", 422, "U+061C"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":{\"a\":\"" T300 "\"}}", 413,
     "has a value of more than 256 bytes"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"tags\":{\"" T300 "\":\"a\"}}", 413,
     "has a name of more than 64 bytes"},
    {"POST", "/v1/tasks",
     "{\"workflow\":\"a/"
     "b\",\"tags\":{\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\",\"e\":\"\",\"f\":\"\","
     "\"g\":\"\",\"h\":\"\",\"i\":\"\",\"j\":\"\",\"k\":\"\",\"l\":\"\",\"m\":\"\",\"n\":\"\","
     "\"o\":\"\","
     "\"p\":\"\",\"q\":\"\"}}",
     413, "more than 16 members"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"key\":\"" T300 "\"}", 413, "longer than 256"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"key\":\"a\\u202eb\"}", 422,
     "key contains the control or formatting character U+202E"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"key\":\"a\\u2066\"}", 422, "U+2066"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"key\":\"\\u200f\"}", 422, "U+200F"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"key\":\"\\u0085\"}", 422, "U+0085"},
    {"POST", "/v1/tasks", "{\"workflow\":\"a/b\",\"correlationId\":\"\\u200e\"}", 422, "U+200E"},
    {"POST", "/v1/tasks", "{\"tasks\":{}}", 422, "tasks must be an array"},
    {"POST", "/v1/tasks", "{\"tasks\":[],\"key\":\"x\"}", 422, "cannot be combined"},
    {"POST", "/v1/tasks?wait=PT1S", "{\"tasks\":[]}", 422, "wait is valid only for a single task"},
    {"POST", "/v1/agents/a/requests", "{}", 422, "instance is missing"},
    {"POST", "/v1/agents/..%2f/requests", "{\"instance\":\"i\"}", 422,
     "agent \"../\": a name begins"},
    {"POST", "/v1/agents/a%20b/requests", "{\"instance\":\"i\"}", 422, "agent \"a b\""},
    {"POST", "/v1/replies", "{\"replies\":[],\"next\":{\"agent\":\"a/b\",\"instance\":\"i\"}}", 422,
     "agent \"a/b\""},
    {"POST", "/v1/keys", "{\"role\":\"agent\",\"agent\":\"a/b\"}", 422, "agent \"a/b\""},
    {"POST", "/v1/agents/a/requests", "{\"instance\":\"i\",\"waitMs\":50001}", 422, "50000"},
    {"POST", "/v1/agents/a/requests", "{\"instance\":\"i\",\"max\":-1}", 422, "from 0 to 1000"},
    {"POST", "/v1/agents/a/requests", "{\"instance\":\"i\",\"confirm\":[1]}", 422,
     "id of one of your polls"},
    {"POST", "/v1/agents/a/requests", "{\"instance\":\"i\",\"wait\":1}", 422, "\"waitMs\""},
    {"POST", "/v1/replies", "{\"replies\":[],\"next\":{\"instance\":\"i\"}}", 422, "next.agent"},
    {"POST", "/v1/leases", "{\"leases\":[{\"step\":\"" STEP "\"}]}", 422, "leases[0].token"},
    {"PUT", "/v1/workflows", "", 400, "send the definition"},
};

static void bad_requests_are_refused_with_their_cure(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        const struct bad *bad = &bads[i];
        bench_renew(bench);
        int status = parse_text(bench, bad->method, bad->target, bad->body);
        const struct rv_str detail = bench->parser.problem.detail;
        if (status != bad->status || detail.at == NULL || strstr(detail.at, bad->says) == NULL)
            fail_msg("%s %s %s: %d %.*s", bad->method, bad->target, bad->body, status,
                     RV_STR_FMT(detail));
    }
}

static void the_largest_revision_is_accepted(void **state)
{
    struct bench *bench = *state;
    const char *target = "/v1/tasks/06DWX3T9H2K4Q?wait=PT1S&revision=9223372036854775807";
    accepts(bench, "GET", target, "");
    assert_int_equal(bench->call.u.show.after_revision, INT64_MAX);
}

/* A faulty item among good ones, and what the message of its 422 contains. */
#define REPLY "{\"step\":\"" STEP "\",\"token\":\"1\""
static const struct {
    const char *body;
    const char *says;
} bad_replies[] = {
    {"5", "replies[1] must be a JSON object"},
    {"{\"token\":\"1\",\"output\":1}", "replies[1].step is missing"},
    {REPLY "}", "either output or error"},
    {REPLY ",\"output\":1,\"error\":{}}", "either"},
    {REPLY ",\"error\":\"x\"}", "must be an object"},
    {REPLY ",\"error\":{}}", "error.type is missing"},
    {REPLY ",\"error\":{\"type\":\"t\",\"transiet\":true}}", "did you mean \"transient\""},
    {REPLY ",\"error\":{\"type\":\"t\",\"effect\":\"done\"}}", "\"none\" or \"unknown\""},
    {REPLY ",\"error\":{\"type\":\"t\",\"retryAfterMs\":-1}}", "retryAfterMs"},
    {REPLY ",\"outptu\":1}", "\"output\""},
};

static void a_bad_reply_does_not_spoil_the_others(void **state)
{
    struct bench *bench = *state;
    for (size_t i = 0; i < sizeof bad_replies / sizeof bad_replies[0]; i++) {
        bench_renew(bench);
        static const char *const good = "{\"step\":\"" STEP "\",\"token\":\"" TOKEN
                                        "\",\"output\":{\"n\":1.50}}";
        struct rv_str body = rv_arena_printf(&bench->call.arena, "{\"replies\":[%s,%s,%s]}", good,
                                             bad_replies[i].body, good);
        assert_int_equal(parse(bench, "POST", RV_STR("/v1/replies"), body), 0);
        const struct rv_call_replies *replies = &bench->call.u.replies;
        assert_int_equal(replies->count, 3);
        for (size_t k = 0; k < 3; k += 2) {
            assert_int_equal(replies->items[k].refused, 0);
            assert_int_equal(replies->items[k].step.number, 3);
            assert_true(replies->items[k].token == 0xff);
            assert_true(rv_str_is(replies->items[k].reply.output, "{\"n\":1.50}"));
            assert_int_equal(replies->items[k].reply.effect, RV_EFFECT_DONE);
        }
        const struct rv_reply_item *item = &replies->items[1];
        if (item->refused != 422 || item->step.number != 0 ||
            strstr(item->refusal.at, bad_replies[i].says) == NULL)
            fail_msg("%s: %d %s", bad_replies[i].body, item->refused,
                     item->refusal.at ? item->refusal.at : "");
    }
}

/* The levels of the body around a value do not count. */
static void each_value_has_64_levels_and_no_more(void **state)
{
    struct bench *bench = *state;
    enum { LEVELS = RV_JSON_DEPTH_MAX + 20 };
    char open[LEVELS], close[LEVELS];
    memset(open, '[', sizeof open);
    memset(close, ']', sizeof close);
    static const char *const items[] = {"\"output\":", "\"error\":{\"type\":\"t\",\"own\":"};
    for (int error = 0; error < 2; error++) {
        for (int levels = RV_JSON_DEPTH_MAX - 1; levels < RV_JSON_DEPTH_MAX + 2; levels++) {
            bench_renew(bench);
            struct rv_str body = rv_arena_printf(
                &bench->call.arena, "{\"replies\":[" REPLY ",%s%.*s%.*s}%s]}", items[error], levels,
                open, levels, close, error ? "}" : "");
            assert_int_equal(parse(bench, "POST", RV_STR("/v1/replies"), body), 0);
            const struct rv_reply_item *item = &bench->call.u.replies.items[0];
            bool good = levels + error <= RV_JSON_DEPTH_MAX;
            assert_int_equal(item->refused, good ? 0 : 422);
            if (!good)
                assert_non_null(strstr(item->refusal.at, "is nested deeper than 64 levels"));
        }
    }
    bench_renew(bench);
    struct rv_str body = rv_arena_printf(&bench->call.arena, "{\"replies\":%.*s%.*s}", LEVELS, open,
                                         LEVELS, close);
    assert_int_equal(parse(bench, "POST", RV_STR("/v1/replies"), body), 400);
    assert_non_null(strstr(bench->parser.problem.detail.at, "may have 64 levels"));
}

static void errors_keep_their_bytes_and_their_defaults(void **state)
{
    struct bench *bench = *state;
    accepts(bench, "POST", "/v1/replies",
            "{\"replies\":["
            "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":{\"type\":\"t\","
            "\"transient\":true,\"retryAfterMs\":500,\"own\":12345678901234567890}},"
            "{\"step\":\"" STEP "\",\"token\":\"2\",\"error\":{\"type\":\"t\","
            "\"retryAfterMs\":9007199254740992}},"
            "{\"step\":\"" STEP "\",\"token\":\"3\",\"error\":{\"type\":\"circuit-open\","
            "\"target\":\"bank\",\"transient\":true,\"effect\":\"none\"}},"
            "{\"step\":\"no step\",\"token\":\"4\",\"output\":null},"
            "{\"step\":\"" STEP "\",\"token\":\"xyz\",\"output\":null}]}");
    const struct rv_reply_item *items = bench->call.u.replies.items;
    assert_true(items[0].failed && items[0].reply.transient);
    assert_int_equal(items[0].reply.effect, RV_EFFECT_UNKNOWN);
    assert_int_equal(items[0].reply.retry_after_ms, 500);
    assert_non_null(strstr(items[0].reply.error.at, "12345678901234567890"));
    assert_null(items[0].reply.output.at);
    assert_false(items[1].reply.transient);
    assert_int_equal(items[1].reply.retry_after_ms, RV_DURATION_MS_MAX);
    assert_int_equal(items[1].reply.effect, RV_EFFECT_NONE);
    assert_true(items[2].reply.circuit_open);
    assert_true(rv_str_is(items[2].reply.target, "bank"));
    assert_int_equal(items[2].reply.effect, RV_EFFECT_NONE);
    /* No step, or no token: an attempt that nobody knows, for the scheduler to say so. */
    assert_int_equal(items[3].refused, 0);
    assert_int_equal(items[3].step.number, 0);
    assert_int_equal(items[4].step.number, items[0].step.number);
    assert_int_equal(items[4].token, 0);
    assert_true(rv_str_is(items[4].reply.output, "null"));
}

static void a_submission_is_taken_apart(void **state)
{
    struct bench *bench = *state;
    accepts(bench, "POST", "/v1/tasks?wait=PT20S",
            "{\"workflow\":\"shop/order:1.0.0\",\"input\":{ \"n\" : 1e2, \"m\":"
            "10000000000000000000001 },\"key\":\"order-17\",\"priority\":9,"
            "\"correlationId\":\"c\"}");
    const struct rv_call_submit *submit = &bench->call.u.submit;
    assert_int_equal(submit->count, 1);
    assert_false(submit->batch);
    assert_int_equal(submit->wait_ms, 20000);
    const struct rv_submission *item = &submit->items[0];
    assert_true(rv_str_is(item->space, "shop"));
    assert_true(rv_str_is(item->name, "order"));
    assert_true(rv_str_is(item->version, "1.0.0"));
    assert_true(rv_str_is(item->input, "{\"n\":1e2,\"m\":10000000000000000000001}"));
    assert_true(rv_str_is(item->key, "order-17"));
    assert_true(rv_str_is(item->correlation, "c"));
    assert_int_equal(item->priority, 9);
    assert_int_equal(item->body_hash.len, 64);
}

static void a_trace_context_is_taken_as_it_comes(void **state)
{
    struct bench *bench = *state;
    accepts(bench, "POST", "/v1/tasks",
            "{\"tasks\":["
            "{\"workflow\":\"s/a\",\"traceparent\":\"p\",\"tracestate\":\"s\"},"
            "{\"workflow\":\"s/a\",\"traceparent\":7,\"tracestate\":[]},"
            "{\"workflow\":\"s/a\",\"traceparent\":\"\\u0000\"},"
            "{\"workflow\":\"s/a\",\"tracestate\":\"s\"}]}");
    const struct rv_submission *items = bench->call.u.submit.items;
    assert_true(rv_str_is(items[0].traceparent, "p"));
    assert_true(rv_str_is(items[0].tracestate, "s"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(items[i].err, RV_OK);
    assert_null(items[1].traceparent.at);
    assert_null(items[1].tracestate.at);
    assert_int_equal(items[2].traceparent.len, 1);
    assert_null(items[3].traceparent.at);
    assert_null(items[3].tracestate.at);
}

static struct rv_str hash_of(struct bench *bench, const char *body)
{
    accepts(bench, "POST", "/v1/tasks", body);
    return bench->call.u.submit.items[0].body_hash;
}

static void the_hash_is_that_of_the_content(void **state)
{
    struct bench *bench = *state;
    static const struct {
        const char *name;
        const char *body;
        bool same;
    } rows[] = {
        {"order and blanks", "{ \"key\":\"k\", \"input\":{\"x\":1}, \"workflow\":\"a/b\"}", true},
        {"input", "{\"workflow\":\"a/b\",\"key\":\"k\",\"input\":{\"x\":2}}", false},
        {"trace context",
         "{\"tracestate\":\"s\",\"workflow\":\"a/b\",\"key\":\"k\",\"traceparent\":\"p\","
         "\"input\":{\"x\":1}}",
         true},
    };
    struct rv_str one = hash_of(bench, "{\"workflow\":\"a/b\",\"key\":\"k\",\"input\":{\"x\":1}}");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].name);
        assert_int_equal(rv_str_eq(one, hash_of(bench, rows[i].body)), rows[i].same);
    }
    assert_null(hash_of(bench, "{\"workflow\":\"a/b\"}").at);
}

#define TASK_BARE "{\"workflow\":\"a/b\",\"input\":{\"x\":1}}"
#define TASK_KEYED "{\"workflow\":\"a/b\",\"key\":\"k 1\",\"input\":{\"x\":1}}"
#define TASK_NULL_KEY "{\"workflow\":\"a/b\",\"key\":null,\"input\":{\"x\":1}}"

static void a_key_in_the_header_is_one_in_the_body(void **state)
{
    struct bench *bench = *state;
    struct rv_str hash = hash_of(bench, TASK_KEYED);
    static const char *const ways[] = {"k 1", "\"k 1\""};
    static const char *const bodies[] = {TASK_BARE, TASK_KEYED, TASK_NULL_KEY};
    for (size_t i = 0; i < 6; i++) {
        const char *way = ways[i / 3], *body = bodies[i % 3];
        print_message("# %s %s\n", way, body);
        assert_int_equal(
            parse_keyed(bench, "POST", RV_STR("/v1/tasks"), rv_str_of(body), rv_str_of(way)), 0);
        const struct rv_submission *item = &bench->call.u.submit.items[0];
        assert_true(rv_str_is(item->key, "k 1"));
        assert_true(rv_str_eq(item->body_hash, hash));
    }
}

static void a_key_in_the_header_is_checked(void **state)
{
    struct bench *bench = *state;
    char longest[RV_KEY_BYTES_MAX + 1];
    memset(longest, 'k', sizeof longest);
    const struct {
        const char *name;
        const char *target;
        const char *body;
        struct rv_str key;
        int status; /* 0: accepted */
    } rows[] = {
        {"longest", "/v1/tasks", TASK_BARE, {longest, RV_KEY_BYTES_MAX}, 0},
        {"longer", "/v1/tasks", TASK_BARE, {longest, sizeof longest}, 400},
        {"empty", "/v1/tasks", TASK_BARE, RV_STR(""), 400},
        {"empty in quotes", "/v1/tasks", TASK_BARE, RV_STR("\"\""), 400},
        {"backslash", "/v1/tasks", TASK_BARE, RV_STR("\"a\\b\""), 400},
        {"quote inside", "/v1/tasks", TASK_BARE, RV_STR("\"a\"b\""), 400},
        {"tab", "/v1/tasks", TASK_BARE, RV_STR("a\tb"), 400},
        {"no UTF-8", "/v1/tasks", TASK_BARE, RV_STR("\xff"), 400},
        {"formatting character", "/v1/tasks", TASK_BARE, RV_STR("k\xe2\x80\xae"), 422},
        {"another in the body", "/v1/tasks", TASK_KEYED, RV_STR("k 2"), 400},
        {"batch", "/v1/tasks", "{\"tasks\":[{\"workflow\":\"a/b\"}]}", RV_STR("k"), 400},
        {"API key", "/v1/keys", "{\"role\":\"observer\"}", RV_STR("k"), 400},
        {"selection", "/v1/selections?state=error", "{}", RV_STR("k"), 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("# %s\n", rows[i].name);
        assert_int_equal(parse_keyed(bench, "POST", rv_str_of(rows[i].target),
                                     rv_str_of(rows[i].body), rows[i].key),
                         rows[i].status);
    }
}

static void a_batch_keeps_bad_items_apart(void **state)
{
    struct bench *bench = *state;
    char *large = malloc(RV_PAYLOAD_BYTES_MAX + 1);
    memset(large, 'x', RV_PAYLOAD_BYTES_MAX);
    large[RV_PAYLOAD_BYTES_MAX] = '\0';
    struct rv_str body = rv_arena_printf(&bench->call.arena,
                                         "{\"tasks\":[{\"workflow\":\"a/b\"},{\"workflow\":\"a\"},"
                                         "{\"workflow\":\"a/b\",\"input\":\"%s\"},"
                                         "{\"workflow\":\"a/c\",\"input\":[]}]}",
                                         large);
    free(large);
    assert_int_equal(parse(bench, "POST", RV_STR("/v1/tasks"), body), 0);
    const struct rv_call_submit *submit = &bench->call.u.submit;
    assert_int_equal(submit->count, 4);
    assert_true(submit->batch);
    assert_int_equal(submit->items[0].err, RV_OK);
    assert_int_equal(submit->items[1].err, RV_ERR_INVALID);
    assert_non_null(strstr(submit->items[1].message.at, "tasks[1].workflow"));
    assert_int_equal(submit->items[2].err, RV_ERR_LIMIT);
    assert_non_null(strstr(submit->items[2].message.at, "tasks[2].input"));
    assert_int_equal(submit->items[3].err, RV_OK);
    assert_true(rv_str_is(submit->items[3].input, "[]"));
}

static void polls_have_defaults(void **state)
{
    struct bench *bench = *state;
    accepts(bench, "POST", "/v1/agents/in%2dventory/requests", "{\"instance\":\"i\"}");
    const struct rv_poll *poll = &bench->call.u.poll;
    assert_true(rv_str_is(poll->agent, "in-ventory"));
    assert_int_equal(poll->max, 1);
    assert_int_equal(poll->wait_ms, RV_WAIT_MS_DEFAULT);
    assert_false(poll->confirms);
    assert_true(rv_str_is(poll->poll, "auto-0000000000000007"));
    assert_non_null(poll->boot.at);
    bench_renew(bench);
    accepts(bench, "POST", "/v1/agents/a/requests",
            "{\"instance\":\"i\",\"boot\":\"b\",\"max\":1000,\"waitMs\":0,"
            "\"poll\":\"p2\",\"confirm\":[\"p1\"]}");
    assert_int_equal(poll->max, RV_POLL_REQUESTS_MAX);
    assert_int_equal(poll->wait_ms, 0);
    assert_true(poll->confirms);
    assert_int_equal(poll->confirm_count, 1);
    assert_true(rv_str_is(poll->confirm[0], "p1"));
    bench_renew(bench);
    accepts(bench, "POST", "/v1/agents/a/requests", "{\"instance\":\"i\",\"confirm\":[]}");
    assert_true(poll->confirms);
}

static void queries_are_taken_apart(void **state)
{
    struct bench *bench = *state;
    accepts(bench, "GET", "/v1/tasks?workflow=shop%2Forder&state=error&limit=10", "");
    const struct rv_call_list *list = &bench->call.u.list;
    assert_true(list->filter.by_state);
    assert_int_equal(list->filter.state, RV_TASK_ERROR);
    assert_true(rv_str_is(list->filter.workflow, "shop/order"));
    assert_int_equal(list->limit, 10);
    bench_renew(bench);
    accepts(bench, "HEAD", "/v1/tasks/06DWX3T9H2K4Q/attempts?after=3.2", "");
    assert_int_equal(list->after_step, 3);
    assert_int_equal(list->after, 2);
    assert_int_equal(bench->call.kind, RV_CALL_ATTEMPTS);
    bench_renew(bench);
    accepts(bench, "GET", "/v1/workflows/shop/order?version=1.0.0", "");
    assert_true(rv_str_is(list->filter.workflow, "shop/order:1.0.0"));
    bench_renew(bench);
    accepts(bench, "POST", "/v1/tasks/06dwx3t9h2k4q/cancel", "");
    assert_int_equal(bench->call.u.operate.verb, RV_COMMAND_CANCEL);
}

static void the_longest_address_is_taken_and_no_longer_one(void **state)
{
    struct bench *bench = *state;
    char target[RV_TARGET_BYTES_MAX + 1];
    memset(target, 'a', sizeof target);
    memcpy(target, "/v1/", 4);
    struct rv_str text = {target, RV_TARGET_BYTES_MAX};
    assert_int_equal(parse(bench, "GET", text, RV_STR("")), 404);
    text.len++;
    assert_int_equal(parse(bench, "GET", text, RV_STR("")), 414);
}

int main(void)
{
#define PARSE(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        PARSE(bad_requests_are_refused_with_their_cure),
        PARSE(the_largest_revision_is_accepted),
        PARSE(a_bad_reply_does_not_spoil_the_others),
        PARSE(each_value_has_64_levels_and_no_more),
        PARSE(errors_keep_their_bytes_and_their_defaults),
        PARSE(a_submission_is_taken_apart),
        PARSE(a_trace_context_is_taken_as_it_comes),
        PARSE(the_hash_is_that_of_the_content),
        PARSE(a_key_in_the_header_is_one_in_the_body),
        PARSE(a_key_in_the_header_is_checked),
        PARSE(a_batch_keeps_bad_items_apart),
        PARSE(polls_have_defaults),
        PARSE(queries_are_taken_apart),
        PARSE(the_longest_address_is_taken_and_no_longer_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

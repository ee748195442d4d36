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
    {"GET", "/v1/agents?x", "", 400, "this operation accepts no query parameters"},
    {"POST", "/v1/alerts/zzz/ack", "", 404, "not an alert id"},
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
    (void)state;
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        const struct bad *bad = &bads[i];
        struct bench bench;
        bench_begin(&bench);
        int status = parse_text(&bench, bad->method, bad->target, bad->body);
        const struct rv_str detail = bench.parser.problem.detail;
        if (status != bad->status || detail.at == NULL || strstr(detail.at, bad->says) == NULL)
            fail_msg("%s %s %s: %d %.*s", bad->method, bad->target, bad->body, status,
                     RV_STR_FMT(detail));
        bench_end(&bench);
    }
}

static void the_largest_revision_is_accepted(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    const char *target = "/v1/tasks/06DWX3T9H2K4Q?wait=PT1S&revision=9223372036854775807";
    assert_int_equal(parse_text(&bench, "GET", target, ""), 0);
    assert_int_equal(bench.call.u.show.after_revision, INT64_MAX);
    bench_end(&bench);
}

/* A faulty item among good ones: its status and what its message says. */
static const struct bad bad_replies[] = {
    {"", "", "5", 422, "replies[1] must be a JSON object"},
    {"", "", "{\"token\":\"1\",\"output\":1}", 422, "replies[1].step is missing"},
    {"", "", "{\"step\":\"" STEP "\",\"token\":\"1\"}", 422, "either output or error"},
    {"", "", "{\"step\":\"" STEP "\",\"token\":\"1\",\"output\":1,\"error\":{}}", 422, "either"},
    {"", "", "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":\"x\"}", 422, "must be an object"},
    {"", "", "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":{}}", 422, "error.type is missing"},
    {"", "", "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":{\"type\":\"t\",\"transiet\":true}}",
     422, "did you mean \"transient\""},
    {"", "",
     "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":{\"type\":\"t\",\"effect\":\"done\"}}", 422,
     "\"none\" or \"unknown\""},
    {"", "",
     "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":{\"type\":\"t\",\"retryAfterMs\":-1}}", 422,
     "retryAfterMs"},
    {"", "", "{\"step\":\"" STEP "\",\"token\":\"1\",\"outptu\":1}", 422, "\"output\""},
};

static void a_bad_reply_does_not_spoil_the_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_replies / sizeof bad_replies[0]; i++) {
        struct bench bench;
        bench_begin(&bench);
        static const char *const good = "{\"step\":\"" STEP "\",\"token\":\"" TOKEN
                                        "\",\"output\":{\"n\":1.50}}";
        struct rv_str body = rv_arena_printf(&bench.call.arena, "{\"replies\":[%s,%s,%s]}", good,
                                             bad_replies[i].body, good);
        assert_int_equal(parse(&bench, "POST", RV_STR("/v1/replies"), body), 0);
        const struct rv_call_replies *replies = &bench.call.u.replies;
        assert_int_equal(replies->count, 3);
        for (size_t k = 0; k < 3; k += 2) {
            assert_int_equal(replies->items[k].refused, 0);
            assert_int_equal(replies->items[k].step.number, 3);
            assert_true(replies->items[k].token == 0xff);
            assert_true(rv_str_is(replies->items[k].reply.output, "{\"n\":1.50}"));
            assert_int_equal(replies->items[k].reply.effect, RV_EFFECT_DONE);
        }
        const struct rv_reply_item *item = &replies->items[1];
        if (item->refused != bad_replies[i].status || item->step.number != 0 ||
            strstr(item->refusal.at, bad_replies[i].says) == NULL)
            fail_msg("%s: %d %s", bad_replies[i].body, item->refused,
                     item->refusal.at ? item->refusal.at : "");
        bench_end(&bench);
    }
}

static void errors_keep_their_bytes_and_their_defaults(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    assert_int_equal(
        parse_text(&bench, "POST", "/v1/replies",
                   "{\"replies\":["
                   "{\"step\":\"" STEP "\",\"token\":\"1\",\"error\":{\"type\":\"t\","
                   "\"transient\":true,\"retryAfterMs\":500,\"own\":12345678901234567890}},"
                   "{\"step\":\"" STEP "\",\"token\":\"2\",\"error\":{\"type\":\"t\","
                   "\"retryAfterMs\":9007199254740992}},"
                   "{\"step\":\"" STEP "\",\"token\":\"3\",\"error\":{\"type\":\"circuit-open\","
                   "\"target\":\"bank\",\"transient\":true,\"effect\":\"none\"}},"
                   "{\"step\":\"no step\",\"token\":\"4\",\"output\":null},"
                   "{\"step\":\"" STEP "\",\"token\":\"xyz\",\"output\":null}]}"),
        0);
    const struct rv_reply_item *items = bench.call.u.replies.items;
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
    bench_end(&bench);
}

static void a_submission_is_taken_apart(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    assert_int_equal(parse_text(&bench, "POST", "/v1/tasks?wait=PT20S",
                                "{\"workflow\":\"shop/order:1.0.0\",\"input\":{ \"n\" : 1e2, \"m\":"
                                "10000000000000000000001 },\"key\":\"order-17\",\"priority\":9,"
                                "\"correlationId\":\"c\"}"),
                     0);
    const struct rv_call_submit *submit = &bench.call.u.submit;
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
    bench_end(&bench);
}

static void a_trace_context_is_taken_as_it_comes(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    assert_int_equal(parse_text(&bench, "POST", "/v1/tasks",
                                "{\"tasks\":["
                                "{\"workflow\":\"s/a\",\"traceparent\":\"p\",\"tracestate\":\"s\"},"
                                "{\"workflow\":\"s/a\",\"traceparent\":7,\"tracestate\":[]},"
                                "{\"workflow\":\"s/a\",\"traceparent\":\"\\u0000\"},"
                                "{\"workflow\":\"s/a\",\"tracestate\":\"s\"}]}"),
                     0);
    const struct rv_submission *items = bench.call.u.submit.items;
    assert_true(rv_str_is(items[0].traceparent, "p"));
    assert_true(rv_str_is(items[0].tracestate, "s"));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(items[i].err, RV_OK);
    assert_null(items[1].traceparent.at);
    assert_null(items[1].tracestate.at);
    assert_int_equal(items[2].traceparent.len, 1);
    assert_null(items[3].traceparent.at);
    assert_null(items[3].tracestate.at);
    bench_end(&bench);
}

static struct rv_str hash_of(struct bench *bench, const char *body)
{
    assert_int_equal(parse_text(bench, "POST", "/v1/tasks", body), 0);
    return bench->call.u.submit.items[0].body_hash;
}

static void the_hash_is_that_of_the_content(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    struct rv_str one = hash_of(&bench, "{\"workflow\":\"a/b\",\"key\":\"k\",\"input\":{\"x\":1}}");
    struct rv_str same = hash_of(&bench,
                                 "{ \"key\":\"k\", \"input\":{\"x\":1}, \"workflow\":\"a/b\"}");
    struct rv_str other = hash_of(&bench,
                                  "{\"workflow\":\"a/b\",\"key\":\"k\",\"input\":{\"x\":2}}");
    assert_true(rv_str_eq(one, same));
    assert_false(rv_str_eq(one, other));
    struct rv_str traced = hash_of(&bench,
                                   "{\"tracestate\":\"s\",\"workflow\":\"a/b\",\"key\":\"k\","
                                   "\"traceparent\":\"p\",\"input\":{\"x\":1}}");
    assert_true(rv_str_eq(one, traced));
    assert_null(hash_of(&bench, "{\"workflow\":\"a/b\"}").at);
    bench_end(&bench);
}

/* Sent with Idempotency-Key: its key and hash, or the status of the refusal. */
static int submit_keyed(struct bench *bench, const char *body, struct rv_str key)
{
    return parse_keyed(bench, "POST", RV_STR("/v1/tasks"), rv_str_of(body), key);
}

static void a_key_in_the_header_is_one_in_the_body(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    const char *bare = "{\"workflow\":\"a/b\",\"input\":{\"x\":1}}";
    const char *keyed = "{\"workflow\":\"a/b\",\"key\":\"k 1\",\"input\":{\"x\":1}}";
    struct rv_str hash = hash_of(&bench, keyed);
    struct rv_str ways[] = {RV_STR("k 1"), RV_STR("\"k 1\"")};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        for (size_t in_body = 0; in_body < 2; in_body++) {
            assert_int_equal(submit_keyed(&bench, in_body ? keyed : bare, ways[i]), 0);
            const struct rv_submission *item = &bench.call.u.submit.items[0];
            assert_true(rv_str_is(item->key, "k 1"));
            assert_true(rv_str_eq(item->body_hash, hash));
        }
    }
    char longest[RV_KEY_BYTES_MAX + 1];
    memset(longest, 'k', sizeof longest);
    assert_int_equal(submit_keyed(&bench, bare, (struct rv_str){longest, RV_KEY_BYTES_MAX}), 0);
    struct rv_str wrong[] = {
        RV_STR(""),     RV_STR("\"\""), RV_STR("\"a\\b\""),       RV_STR("\"a\"b\""),
        RV_STR("a\tb"), RV_STR("\xff"), {longest, sizeof longest}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(submit_keyed(&bench, bare, wrong[i]), 400);
    assert_int_equal(submit_keyed(&bench, bare, RV_STR("k\xe2\x80\xae")), 422);
    assert_int_equal(submit_keyed(&bench, keyed, RV_STR("k 2")), 400);
    assert_int_equal(submit_keyed(&bench, "{\"tasks\":[{\"workflow\":\"a/b\"}]}", RV_STR("k")),
                     400);
    assert_int_equal(parse_keyed(&bench, "POST", RV_STR("/v1/keys"),
                                 RV_STR("{\"role\":\"observer\"}"), RV_STR("k")),
                     400);
    assert_int_equal(parse_keyed(&bench, "POST", RV_STR("/v1/selections?state=error"), RV_STR("{}"),
                                 RV_STR("k")),
                     400);
    bench_end(&bench);
}

static void a_batch_keeps_bad_items_apart(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    char *large = malloc(RV_PAYLOAD_BYTES_MAX + 1);
    memset(large, 'x', RV_PAYLOAD_BYTES_MAX);
    large[RV_PAYLOAD_BYTES_MAX] = '\0';
    struct rv_str body = rv_arena_printf(&bench.call.arena,
                                         "{\"tasks\":[{\"workflow\":\"a/b\"},{\"workflow\":\"a\"},"
                                         "{\"workflow\":\"a/b\",\"input\":\"%s\"},"
                                         "{\"workflow\":\"a/c\",\"input\":[]}]}",
                                         large);
    free(large);
    assert_int_equal(parse(&bench, "POST", RV_STR("/v1/tasks"), body), 0);
    const struct rv_call_submit *submit = &bench.call.u.submit;
    assert_int_equal(submit->count, 4);
    assert_true(submit->batch);
    assert_int_equal(submit->items[0].err, RV_OK);
    assert_int_equal(submit->items[1].err, RV_ERR_INVALID);
    assert_non_null(strstr(submit->items[1].message.at, "tasks[1].workflow"));
    assert_int_equal(submit->items[2].err, RV_ERR_LIMIT);
    assert_non_null(strstr(submit->items[2].message.at, "tasks[2].input"));
    assert_int_equal(submit->items[3].err, RV_OK);
    assert_true(rv_str_is(submit->items[3].input, "[]"));
    bench_end(&bench);
}

static void polls_have_defaults(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    assert_int_equal(
        parse_text(&bench, "POST", "/v1/agents/in%2dventory/requests", "{\"instance\":\"i\"}"), 0);
    const struct rv_poll *poll = &bench.call.u.poll;
    assert_true(rv_str_is(poll->agent, "in-ventory"));
    assert_int_equal(poll->max, 1);
    assert_int_equal(poll->wait_ms, RV_WAIT_MS_DEFAULT);
    assert_false(poll->confirms);
    assert_true(rv_str_is(poll->poll, "auto-0000000000000007"));
    assert_non_null(poll->boot.at);
    bench_end(&bench);
    bench_begin(&bench);
    assert_int_equal(parse_text(&bench, "POST", "/v1/agents/a/requests",
                                "{\"instance\":\"i\",\"boot\":\"b\",\"max\":1000,\"waitMs\":0,"
                                "\"poll\":\"p2\",\"confirm\":[\"p1\"]}"),
                     0);
    assert_int_equal(poll->max, RV_POLL_REQUESTS_MAX);
    assert_int_equal(poll->wait_ms, 0);
    assert_true(poll->confirms);
    assert_int_equal(poll->confirm_count, 1);
    assert_true(rv_str_is(poll->confirm[0], "p1"));
    bench_end(&bench);
    bench_begin(&bench);
    assert_int_equal(
        parse_text(&bench, "POST", "/v1/agents/a/requests", "{\"instance\":\"i\",\"confirm\":[]}"),
        0);
    assert_true(poll->confirms);
    bench_end(&bench);
}

static void queries_are_taken_apart(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    assert_int_equal(
        parse_text(&bench, "GET", "/v1/tasks?workflow=shop%2Forder&state=error&limit=10", ""), 0);
    const struct rv_call_list *list = &bench.call.u.list;
    assert_true(list->filter.by_state);
    assert_int_equal(list->filter.state, RV_TASK_ERROR);
    assert_true(rv_str_is(list->filter.workflow, "shop/order"));
    assert_int_equal(list->limit, 10);
    bench_end(&bench);
    bench_begin(&bench);
    assert_int_equal(parse_text(&bench, "HEAD", "/v1/tasks/06DWX3T9H2K4Q/attempts?after=3.2", ""),
                     0);
    assert_int_equal(list->after_step, 3);
    assert_int_equal(list->after, 2);
    assert_int_equal(bench.call.kind, RV_CALL_ATTEMPTS);
    bench_end(&bench);
    bench_begin(&bench);
    assert_int_equal(parse_text(&bench, "GET", "/v1/workflows/shop/order?version=1.0.0", ""), 0);
    assert_true(rv_str_is(list->filter.workflow, "shop/order:1.0.0"));
    bench_end(&bench);
    bench_begin(&bench);
    assert_int_equal(parse_text(&bench, "POST", "/v1/tasks/06dwx3t9h2k4q/cancel", ""), 0);
    assert_int_equal(bench.call.u.operate.verb, RV_COMMAND_CANCEL);
    bench_end(&bench);
}

static void the_longest_address_is_taken_and_no_longer_one(void **state)
{
    (void)state;
    struct bench bench;
    bench_begin(&bench);
    char target[RV_TARGET_BYTES_MAX + 1];
    memset(target, 'a', sizeof target);
    memcpy(target, "/v1/", 4);
    struct rv_str text = {target, RV_TARGET_BYTES_MAX};
    assert_int_equal(parse(&bench, "GET", text, RV_STR("")), 404);
    text.len++;
    assert_int_equal(parse(&bench, "GET", text, RV_STR("")), 414);
    bench_end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_requests_are_refused_with_their_cure),
        cmocka_unit_test(the_largest_revision_is_accepted),
        cmocka_unit_test(a_bad_reply_does_not_spoil_the_others),
        cmocka_unit_test(errors_keep_their_bytes_and_their_defaults),
        cmocka_unit_test(a_submission_is_taken_apart),
        cmocka_unit_test(a_trace_context_is_taken_as_it_comes),
        cmocka_unit_test(the_hash_is_that_of_the_content),
        cmocka_unit_test(a_key_in_the_header_is_one_in_the_body),
        cmocka_unit_test(a_batch_keeps_bad_items_apart),
        cmocka_unit_test(polls_have_defaults),
        cmocka_unit_test(queries_are_taken_apart),
        cmocka_unit_test(the_longest_address_is_taken_and_no_longer_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

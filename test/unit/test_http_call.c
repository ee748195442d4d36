/* `call: http` in a definition: what is refused, and what the agent is handed. */
#include "flow_kit.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Line 1 is the document, line 2 `do:`, and `with` is line 5. */
#define HEAD "document: {dsl: '1.0.3', namespace: test, name: flow, version: '1.0.0'}\n"
#define HTTP(with) HEAD "do:\n- a:\n    call: http\n    with: " with "\n"
#define USE(use, with) HEAD "use: " use "\ndo:\n- a:\n    call: http\n    with: " with "\n"
#define URL(uri) HTTP("{method: get, endpoint: '" uri "'}")

static const struct {
    const char *place;
    const char *part;
    const char *yaml;
} bad[] = {
    {"3:5", "`call: http` needs `with`", HEAD "do:\n- a: {call: http}\n"},
    {"5:11", "call: http needs `method`", HTTP("{endpoint: 'http://a'}")},
    {"5:11", "call: http needs `endpoint`", HTTP("{method: get}")},
    {"5:25", "unknown property \"endpiont\" under call: http; did you mean \"endpoint\"?",
     HTTP("{method: get, endpiont: 'http://a'}")},
    {"5:20", "a method must be a name of 1 to 20 letters",
     HTTP("{method: 'get /', endpoint: 'http://a'}")},
    {"5:20", "method must be a string", HTTP("{method: 1, endpoint: 'http://a'}")},
    {"5:20", "a name of 1 to 20 letters", HTTP("{method: '', endpoint: 'http://a'}")},
    {"5:20", "a name of 1 to 20 letters",
     HTTP("{method: abcdefghijklmnopqrstu, endpoint: 'http://a'}")},
    {"5:20", "a name of 1 to 20 letters", HTTP("{method: \"get\\r\", endpoint: 'http://a'}")},
    {"5:20", "CONNECT and TRACE are not", HTTP("{method: trace, endpoint: 'http://a'}")},
    {"5:20", "CONNECT and TRACE are not", HTTP("{method: Connect, endpoint: 'http://a'}")},
    {"5:35", "a URI must be a string", HTTP("{method: get, endpoint: 5}")},
    {"5:35", "a URI must begin with https:// or http://", URL("ftp://a")},
    {"5:35", "a URI must begin with https:// or http://", URL("a.example/x")},
    {"5:35", "a URI must not contain spaces", URL("http://a/b c")},
    {"5:35", "a closing brace", URL("http://a/}")},
    {"5:35", "an opening brace", URL("http://a/{b")},
    {"5:35", "empty braces", URL("http://a/{}")},
    {"5:35", "nested braces", URL("http://a/{{b}}")},
    {"5:35", "only {name} of RFC 6570 is supported", URL("http://a/{?b}")},
    {"5:35", "only {name} of RFC 6570 is supported", URL("http://a/{+b}")},
    {"5:35", "an endpoint needs `uri`", HTTP("{method: get, endpoint: {}}")},
    {"5:36", "unknown property \"url\" under endpoint",
     HTTP("{method: get, endpoint: {url: 'http://a'}}")},
    {"5:56", "headers must be an object", HTTP("{method: get, endpoint: 'http://a', headers: x}")},
    {"5:60", "the value of a header must be a string; put it in quotes",
     HTTP("{method: get, endpoint: 'http://a', headers: {X: 5}}")},
    {"5:68", "the value of a header must be a string; put it in quotes",
     HTTP("{method: get, endpoint: 'http://a', headers: {X: '5', Y: [a]}}")},
    {"5:57", "Reeve sets this header in every request",
     HTTP("{method: get, endpoint: 'http://a', headers: {idempotency-KEY: a}}")},
    {"5:65", "Reeve sets this header in every request",
     HTTP("{method: get, endpoint: 'http://a', headers: {X: '5', Traceparent: '${ .t }'}}")},
    {"5:54", "query must be an object", HTTP("{method: get, endpoint: 'http://a', query: [1]}")},
    {"5:55", "output must be raw", HTTP("{method: get, endpoint: 'http://a', output: xml}")},
    {"5:57", "redirect must be true", HTTP("{method: get, endpoint: 'http://a', redirect: 1}")},
    {"5:70", "an authentication must be an object",
     HTTP("{method: get, endpoint: {uri: 'http://a', authentication: basic}}")},
    {"5:71", "digest of authentication is not supported yet",
     HTTP("{method: get, endpoint: {uri: 'http://a', authentication: {digest: {}}}}")},
    {"5:71", "oauth2 of authentication is not supported yet",
     HTTP("{method: get, endpoint: {uri: 'http://a', authentication: {oauth2: {}}}}")},
    {"5:78", "basic needs `password`",
     HTTP("{method: get, endpoint: {uri: 'http://a', authentication: {basic: {username: u}}}}")},
    {"5:85", "the secret \"s\" is not listed in use.secrets",
     HTTP("{method: get, endpoint: {uri: 'http://a', authentication: {bearer: {use: s}}}}")},
    {"6:76", "there is no \"nme\" under use.authentications; did you mean \"name\"?",
     USE("{authentications: {name: {bearer: {token: t}}}}",
         "{method: get, endpoint: {uri: 'http://a', authentication: {use: nme}}}")},
    {"2:17", "a secret's name begins with a letter or digit",
     HEAD "use: {secrets: ['../x']}\ndo: []\n"},
    {"2:35", "bearer needs `token`",
     HEAD "use: {authentications: {a: {bearer: {}}}}\ndo: [{b: {call: x}}]\n"},
    {"6:30", "noEffect is a list of statuses",
     HTTP("{method: get, endpoint: 'http://a'}") "    metadata: {reeve: {noEffect: 400}}\n"},
    {"6:30", "noEffect is a list of statuses",
     HTTP("{method: get, endpoint: 'http://a'}") "    metadata: {reeve: {noEffect: [200]}}\n"},
    {"5:24", "noEffect is valid only with call: http",
     HEAD "do:\n- a:\n    call: x\n    metadata: {reeve: {noEffect: [400]}}\n"},
};

static void what_is_wrong_is_told_with_its_place(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        static struct kit kit;
        bool taken = kit_load(&kit, bad[i].yaml);
        const char *told = taken ? "taken" : kit_text(&kit, kit.fault.message);
        size_t line = strcspn(bad[i].place, ":") + 1;
        bool right = !taken && strncmp(told, bad[i].place, line) == 0 &&
                     strstr(told, bad[i].part) != NULL;
        if (!right)
            print_error("%s\n  want %s: %s\n  got  %s\n", bad[i].yaml, bad[i].place, bad[i].part,
                        told);
        wrong += !right;
        kit_done(&kit);
    }
    assert_int_equal(wrong, 0);
}

/* What the agent is handed for this input: the whole step input as JSON. */
static void hands_out(const char *yaml, const char *input, const char *want)
{
    static struct kit kit;
    struct rv_arena arena;
    struct rv_json given, wanted;
    kit_new(&kit, yaml);
    kit.stops_max = 1;
    kit_run(&kit, input);
    if (kit.stop.kind != RV_FLOW_CALL)
        print_error("%s\n%s\n", yaml, kit.trace);
    assert_int_equal(kit.stop.kind, RV_FLOW_CALL);
    assert_true(rv_str_is(kit.stop.agent, "http"));
    rv_arena_init(&arena, 0);
    assert_int_equal(rv_json_parse(&arena, kit.stop.input, 64, &given, NULL), RV_OK);
    assert_int_equal(rv_json_parse(&arena, rv_str_of(want), 64, &wanted, NULL), RV_OK);
    if (!rv_json_equal(&given, &wanted))
        print_error("want %s\ngot  %.*s\n", want, RV_STR_FMT(kit.stop.input));
    assert_true(rv_json_equal(&given, &wanted));
    rv_arena_done(&arena);
    kit_done(&kit);
}

static void expressions_and_variables_are_filled_in_before_hand_out(void **state)
{
    (void)state;
    hands_out(URL("http://a/pet/{petId}"), "{\"petId\":7}",
              "{\"method\":\"get\",\"endpoint\":\"http://a/pet/7\"}");
    hands_out(
        HTTP("{method: POST, endpoint: '${ \"http://\" + .h + \"/{x}\" }', body: {a: '${ .b }'},"
             " headers: {X: '${ .h }'}, query: '${ .q }', output: raw, redirect: true}"),
        "{\"h\":\"c\",\"b\":[1],\"q\":{\"r\":1}}",
        "{\"method\":\"POST\",\"endpoint\":\"http://c/{x}\",\"body\":{\"a\":[1]},"
        "\"headers\":{\"X\":\"c\"},\"query\":{\"r\":1},\"output\":\"raw\",\"redirect\":true}");
    hands_out(HTTP("{method: get, endpoint: {uri: 'http://a/{b}', authentication: {basic: "
                   "{username: '${ .u }', password: '${ .p }'}}}}"),
              "{\"b\":\"x\",\"u\":\"me\",\"p\":\"pw\"}",
              "{\"method\":\"get\",\"endpoint\":{\"uri\":\"http://a/x\",\"authentication\":{"
              "\"basic\":{\"username\":\"me\",\"password\":\"pw\"}}}}");
    hands_out(USE("{secrets: [s], authentications: {n: {bearer: {use: s}}}}",
                  "{method: get, endpoint: {uri: 'http://a', authentication: {use: n}}}"),
              "{}",
              "{\"method\":\"get\",\"endpoint\":{\"uri\":\"http://a\",\"authentication\":{"
              "\"bearer\":{\"use\":\"s\"}}}}");
    hands_out(HTTP("{method: put, endpoint: 'http://a'}") "    metadata: {reeve: {noEffect: [400, "
                                                          "404]}}\n",
              "{}", "{\"method\":\"put\",\"endpoint\":\"http://a\",\"noEffect\":[400,404]}");
}

/* RFC 6570, simple expansion: all but unreserved bytes are encoded. */
static void variables_cannot_leave_their_place_in_the_uri(void **state)
{
    static const struct {
        const char *input;
        const char *uri;
    } rows[] = {
        {"{\"v\":\"a b\"}", "http://a/a%20b/x"},
        {"{\"v\":\"a/b?c#d\"}", "http://a/a%2Fb%3Fc%23d/x"},
        {"{\"v\":\"@evil.com:1\"}", "http://a/%40evil.com%3A1/x"},
        {"{\"v\":\"\\r\\nX: y\"}", "http://a/%0D%0AX%3A%20y/x"},
        {"{\"v\":\"a-b._~9\"}", "http://a/a-b._~9/x"},
        {"{\"v\":\"%2e%2e\"}", "http://a/%252e%252e/x"},
        {"{\"v\":\"\\u00e9\"}", "http://a/%C3%A9/x"},
        {"{\"v\":1.50}", "http://a/1.50/x"},
        {"{\"v\":true}", "http://a/true/x"},
        {"{\"v\":\"${ .x }\"}", "http://a/%24%7B%20.x%20%7D/x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[256];
        snprintf(want, sizeof want, "{\"method\":\"get\",\"endpoint\":\"%s\"}", rows[i].uri);
        hands_out(URL("http://a/{v}/x"), rows[i].input, want);
    }
    hands_out(URL("http://a/{b.c}"), "{\"b\":{\"c\":1},\"b.c\":2}",
              "{\"method\":\"get\",\"endpoint\":\"http://a/2\"}");
}

static void values_that_do_not_fit_raise_an_error(void **state)
{
    static const char *const inputs[] = {"{\"v\":[1]}",   "{\"v\":{}}", "{\"v\":\"..\"}",
                                         "{\"v\":\".\"}", "{}",         "{\"v\":null}",
                                         "{\"v\":\"\"}",  "[1]",        "null"};
    static const char *const uris[] = {URL("http://a/{v}/x"), URL("http://a/bookings/{v}"),
                                       URL("http://a/p-{v}?q=1"), URL("http://{v}/x")};
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs * (sizeof uris / sizeof *uris); i++) {
        static struct kit kit;
        kit_new(&kit, uris[i % (sizeof uris / sizeof *uris)]);
        kit_run(&kit, inputs[i / (sizeof uris / sizeof *uris)]);
        kit_expect_error(&kit, "{\"type\":\"https://open-workflow-specification.org/spec/1.0.0/"
                               "errors/validation\",\"status\":400}");
        kit_done(&kit);
    }
    /* In the query an empty text is a value, and nothing at all is none. */
    hands_out(URL("http://a/x?q={v}"), "{\"v\":\"\"}",
              "{\"method\":\"get\",\"endpoint\":\"http://a/x?q=\"}");
    static struct kit kit;
    kit_new(&kit, URL("http://a/x?q={v}"));
    kit_run(&kit, "{}");
    kit_expect_error(&kit, "{\"detail\":\"{v} is not in the input\"}");
    kit_done(&kit);
}

#define INSIDE "${ inside a longer string is not evaluated; write the whole value as one expression"

/* Wherever an expression may stand, one inside of a longer text is refused: it would be sent as it
 * is written. */
static void no_expression_is_taken_for_text(void **state)
{
    static const struct {
        const char *yaml;
        const char *part;
    } rows[] = {
        {HTTP("{method: delete, endpoint: 'http://h/bookings/${ $undo.idempotencyKey }'}"), INSIDE},
        {HTTP("{method: get, endpoint: {uri: 'http://h/${ .a }/x'}}"), INSIDE},
        {HTTP("{method: get, endpoint: 'http://h', query: {k: 'a-${ .a }'}}"), INSIDE},
        {HTTP("{method: get, endpoint: 'http://h', query: {'${ .n }': a}}"),
         "expressions in member names are not evaluated"},
        {HTTP("{method: get, endpoint: 'http://h', headers: {X: 'Bearer ${ .a }'}}"), INSIDE},
        {HTTP("{method: get, endpoint: 'http://h', headers: 'x ${ .a }'}"), "headers must be an"},
        {HTTP("{method: get, endpoint: 'http://h', body: 'Dear ${ .a },'}"), INSIDE},
        {HTTP("{method: get, endpoint: 'http://h', body: {l: [{t: 'a ${ .a }'}]}}"), INSIDE},
        {HTTP("{method: get, endpoint: 'http://h', body: {l: ['${ .a }', {'${ .a }': 1}]}}"),
         "expressions in member names are not evaluated"},
        {HTTP("{method: 'p${ .a }', endpoint: 'http://h'}"), "a method must be a name"},
        {HTTP("{method: get, endpoint: {uri: 'http://h', authentication: {basic: {username: 'u',"
              " password: 'x${ .p }'}}}}"),
         INSIDE},
        {HTTP("{method: get, endpoint: '${ .a }/${ .b }'}"), "as one expression"},
        {HEAD "do: [{a: {call: x, with: {n: 'a ${ .n }'}}}]\n", INSIDE},
        {HEAD "do: [{a: {call: x, with: {args: ['--id=${ .n }']}}}]\n", INSIDE},
        {HEAD "do: [{a: {set: {n: 'a ${ .n }'}}}]\n", INSIDE},
        {HEAD "do: [{a: {set: {n: 1}, input: {from: {n: 'a ${ .n }'}}}}]\n", INSIDE},
        {HEAD "do: [{a: {set: {n: 1}, output: {as: {n: 'a ${ .n }'}}}}]\n", INSIDE},
        {HEAD "do: [{a: {set: {n: 1}, export: {as: {n: 'a ${ .n }'}}}}]\n", INSIDE},
        {HEAD "output: {as: {n: 'a ${ .n }'}}\ndo: [{a: {set: {n: 1}}}]\n", INSIDE},
        {HEAD "do: [{a: {raise: {error: {type: 'urn:${ .n }', status: 1}}}}]\n", INSIDE},
        {HEAD "do: [{a: {raise: {error: {type: x, status: 1, title: 'a ${ .n }'}}}}]\n", INSIDE},
        {HEAD "use: {errors: {e: {type: x, status: 1, detail: 'a ${ .n }'}}}\n"
              "do: [{a: {raise: {error: e}}}]\n",
         INSIDE},
        {HEAD "do: [{a: {call: x, metadata: {reeve: {compensate: [{u: {call: x, with: {k: 'a ${"
              " $undo.fence }'}}}]}}}}]\n",
         INSIDE},
        {HEAD "do: [{a: {try: [{b: {call: x}}], catch: {errors: {with: {title: '${ .t }'}}}}}]\n",
         "${ is not evaluated in a filter; write the condition under `when`"},
        {HEAD "do: [{a: {if: '.a == ${ .b }', set: {n: 1}}}]\n", "as one expression"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static struct kit kit;
        bool taken = kit_load(&kit, rows[i].yaml);
        const char *told = taken ? "taken" : kit_text(&kit, kit.fault.message);
        if (taken || strstr(told, rows[i].part) == NULL)
            print_error("%s\n  want %s\n  got  %s\n", rows[i].yaml, rows[i].part, told);
        assert_true(!taken && strstr(told, rows[i].part) != NULL);
        kit_done(&kit);
    }
    /* The cure, and a text that means it. */
    hands_out(HTTP("{method: get, endpoint: '${ \"https://a/\\(.id)\" }'}"), "{\"id\":7}",
              "{\"method\":\"get\",\"endpoint\":\"https://a/7\"}");
    hands_out(HTTP("{method: put, endpoint: 'http://a', body: '${ \"costs ${5}\" }'}"), "{}",
              "{\"method\":\"put\",\"endpoint\":\"http://a\",\"body\":\"costs ${5}\"}");
}

/* What an older build took goes on as it was. */
static const char *kit_of(struct rv_arena *arena, struct rv_str text)
{
    return rv_arena_str(arena, text).at;
}

static void what_was_published_before_is_still_read(void **state)
{
    struct rv_arena arena;
    struct rv_json document;
    const struct rv_definition *definition;
    struct rv_definition_fault fault;
    struct rv_str text = RV_STR("{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"a\",\"name\":"
                                "\"b\",\"version\":\"1.0.0\"},"
                                "\"do\":[{\"a\":{\"set\":{\"n\":\"a ${ .n }\",\"${ .k }\":1}}}]}");
    (void)state;
    rv_arena_init(&arena, 0);
    assert_int_equal(rv_json_parse(&arena, text, 64, &document, NULL), RV_OK);
    assert_int_equal(rv_definition_load(&arena, &document, &definition, &fault), RV_ERR_INVALID);
    assert_int_equal(rv_definition_load_published(&arena, &document, &definition, &fault), RV_OK);
    text = RV_STR("{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"a\",\"name\":\"b\",\"version\":"
                  "\"1.0.0\"},\"do\":[{\"a\":{\"call\":\"http\",\"with\":{\"method\":\"get\","
                  "\"endpoint\":\"http://a\",\"headers\":{\"X\":1.50,\"Y\":true,\"Z\":\"z\"}}}}]}");
    assert_int_equal(rv_json_parse(&arena, text, 64, &document, NULL), RV_OK);
    assert_int_equal(rv_definition_load(&arena, &document, &definition, &fault), RV_ERR_INVALID);
    assert_int_equal(rv_definition_load_published(&arena, &document, &definition, &fault), RV_OK);
    struct rv_flow_env env = {.definition = definition,
                              .arena = &arena,
                              .now = 1000,
                              .task = RV_STR("0000000000001"),
                              .started_at = 1000,
                              .fuel = 1000,
                              .inline_steps = 16,
                              .workflow_input = RV_STR("{}")};
    struct rv_flow_stop stop;
    assert_int_equal(rv_flow_start(&env, env.workflow_input, &stop), RV_OK);
    assert_int_equal(stop.kind, RV_FLOW_CALL);
    assert_non_null(strstr(kit_of(&arena, stop.input),
                           "\"headers\":{\"X\":\"1.50\",\"Y\":\"true\",\"Z\":\"z\"}"));
    rv_arena_done(&arena);
}

static void only_what_may_do_something_needs_an_undo(void **state)
{
    static const struct {
        const char *method;
        enum rv_undo_way way;
    } rows[] = {{"get", RV_UNDO_NOTHING},     {"HEAD", RV_UNDO_NOTHING},
                {"post", RV_UNDO_UNDECLARED}, {"delete", RV_UNDO_UNDECLARED},
                {"gets", RV_UNDO_UNDECLARED}, {"${ .m }", RV_UNDO_UNDECLARED}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct kit kit;
        char yaml[512];
        snprintf(yaml, sizeof yaml, HTTP("{method: '%s', endpoint: 'http://a'}"), rows[i].method);
        kit_new(&kit, yaml);
        assert_int_equal(rv_definition_undo_way(kit.definition, 1), rows[i].way);
        kit_done(&kit);
    }
}

static enum kit_answer not_found(struct kit *kit, const struct rv_flow_stop *stop,
                                 struct rv_str *ret_text)
{
    (void)kit;
    (void)stop;
    *ret_text = RV_STR("{\"type\":\"https://open-workflow-specification.org/spec/1.0.0/errors/"
                       "communication\",\"status\":404}");
    return KIT_RAISE;
}

/* The DSL's own material spells the types of its standard errors in four ways. */
static void a_catch_knows_a_standard_error_by_any_of_its_names(void **state)
{
    static const struct {
        const char *type;
        bool caught;
    } rows[] = {
        {"https://open-workflow-specification.org/spec/1.0.0/errors/communication", true},
        {"https://open-workflow-specification.org/dsl/errors/types/communication", true},
        {"https://serverlessworkflow.io/spec/1.0.0/errors/communication", true},
        {"https://serverlessworkflow.io/dsl/errors/types/communication", true},
        {"https://serverlessworkflow.io/dsl/errors/types/timeout", false},
        {"https://serverlessworkflow.io/errors/communication", false},
        {"communication", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static struct kit kit;
        char yaml[1024];
        snprintf(yaml, sizeof yaml,
                 HEAD "do:\n- t:\n    try:\n    - a: {call: http, with: {method: get, endpoint: "
                      "'http://a'}}\n    catch: {errors: {with: {type: '%s', status: 404}}}\n",
                 rows[i].type);
        kit_new(&kit, yaml);
        kit.agent = not_found;
        kit_run(&kit, "{}");
        assert_int_equal(kit.stop.kind, rows[i].caught ? RV_FLOW_DONE : RV_FLOW_RAISED);
        kit_done(&kit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(expressions_and_variables_are_filled_in_before_hand_out),
        cmocka_unit_test(variables_cannot_leave_their_place_in_the_uri),
        cmocka_unit_test(values_that_do_not_fit_raise_an_error),
        cmocka_unit_test(no_expression_is_taken_for_text),
        cmocka_unit_test(what_was_published_before_is_still_read),
        cmocka_unit_test(only_what_may_do_something_needs_an_undo),
        cmocka_unit_test(a_catch_knows_a_standard_error_by_any_of_its_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

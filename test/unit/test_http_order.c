/* From a step's input to a request, and from an answer to what the step gets. No network. */
#include "agent/http/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- secrets ---- */

static enum rv_err secret(void *self, struct rv_arena *arena, struct rv_str name,
                          struct rv_str *ret_value)
{
    (void)self;
    (void)arena;
    if (rv_str_is(name, "pair"))
        *ret_value = RV_STR("{\"username\":\"me\",\"password\":\"canary\"}");
    else if (rv_str_is(name, "token"))
        *ret_value = RV_STR("canary\n");
    else if (rv_str_is(name, "json"))
        *ret_value = RV_STR("{\"token\":\"canary\"}");
    else
        return RV_ERR_NOT_FOUND;
    return RV_OK;
}

static const struct rv_http_secrets secrets = {.read = secret};

/* ---- requests ---- */

static const char *header(const struct rv_http_order *order, const char *name)
{
    static char text[512];
    for (size_t i = 0; i < order->headers_count; i++)
        if (rv_str_is(order->headers[i].name, name)) {
            snprintf(text, sizeof text, "%.*s", RV_STR_FMT(order->headers[i].value));
            return text;
        }
    return NULL;
}

static void read_good(struct rv_http_order *order, const char *input)
{
    rv_http_order_read(order, rv_str_of(input), &secrets);
    if (order->wrong.type.at != NULL)
        print_error("%s: %.*s\n", input, RV_STR_FMT(order->wrong.title));
    assert_null(order->wrong.type.at);
}

#define INPUT(rest) "{\"method\":\"post\",\"endpoint\":\"http://a.example:81/x\"" rest "}"

static void the_url_gets_the_query(void **state)
{
    static const struct {
        const char *input;
        const char *url;
    } rows[] = {
        {INPUT(), "http://a.example:81/x"},
        {INPUT(",\"query\":{}"), "http://a.example:81/x"},
        {INPUT(",\"query\":{\"a\":\"b c&d\",\"e\":1,\"f\":true}"),
         "http://a.example:81/x?a=b%20c%26d&e=1&f=true"},
        {INPUT(",\"query\":{\"a\":[1,2]}"), "http://a.example:81/x?a=1&a=2"},
        {"{\"method\":\"get\",\"endpoint\":{\"uri\":\"http://a/?b=1#frag\"},\"query\":{\"c\":2}}",
         "http://a/?b=1&c=2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_http_order order;
        read_good(&order, rows[i].input);
        if (!rv_str_is(order.url, rows[i].url))
            print_error("want %s, got %.*s\n", rows[i].url, RV_STR_FMT(order.url));
        assert_true(rv_str_is(order.url, rows[i].url));
        rv_http_order_done(&order);
    }
}

static void the_target_is_host_and_port_alone(void **state)
{
    static const char *const uris[] = {"http://A.example:81/x", "http://me:canary@a.example:81?x",
                                       "http://c@n@a.example:81#x"};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rv_http_order order;
        char input[256];
        snprintf(input, sizeof input, "{\"method\":\"get\",\"endpoint\":\"%s\"}", uris[i]);
        read_good(&order, input);
        assert_string_equal(order.target, "a.example:81");
        rv_http_order_done(&order);
    }
}

static void the_body_goes_as_its_type_says(void **state)
{
    static const struct {
        const char *input;
        const char *body; /* NULL: none */
        const char *type; /* of a header that is not the author's */
    } rows[] = {
        {INPUT(), NULL, NULL},
        {INPUT(",\"body\":null"), NULL, NULL},
        {INPUT(",\"body\":{\"a\":[1,\"b\"]}"), "{\"a\":[1,\"b\"]}", "application/json"},
        {INPUT(",\"body\":5"), "5", "application/json"},
        {INPUT(",\"body\":\"as it is\""), "as it is", "text/plain; charset=utf-8"},
        {INPUT(",\"body\":\"<a/>\",\"headers\":{\"content-type\":\"text/xml\"}"), "<a/>", NULL},
        {INPUT(",\"body\":{\"a\":\"b c\",\"d\":1},\"headers\":{\"Content-Type\":"
               "\"application/x-www-form-urlencoded\"}"),
         "a=b%20c&d=1", "application/x-www-form-urlencoded"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_http_order order;
        read_good(&order, rows[i].input);
        assert_true(rv_str_is(order.method, "POST"));
        assert_int_equal(order.body.at == NULL, rows[i].body == NULL);
        if (rows[i].body != NULL)
            assert_true(rv_str_is(order.body, rows[i].body));
        const char *type = header(&order, "Content-Type");
        if (rows[i].type == NULL)
            assert_null(type);
        else
            assert_string_equal(type, rows[i].type);
        rv_http_order_done(&order);
    }
}

static void headers_are_sent_as_text(void **state)
{
    static const struct {
        const char *value;
        const char *text;
    } rows[] = {{"\"a b\"", "a b"}, {"\"\"", ""},     {"5", "5"},
                {"1.50", "1.50"},   {"true", "true"}, {"false", "false"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_http_order order;
        char input[256];
        snprintf(input, sizeof input,
                 "{\"method\":\"get\",\"endpoint\":\"http://a\",\"headers\":{\"X\":%s}}",
                 rows[i].value);
        read_good(&order, input);
        assert_string_equal(header(&order, "X"), rows[i].text);
        rv_http_order_done(&order);
    }
}

#define AUTH(policy)                                                                               \
    "{\"method\":\"get\",\"headers\":{\"Authorization\":\"mine\",\"X\":\"1\"},\"endpoint\":{"      \
    "\"uri\":\"http://a/\",\"authentication\":" policy "}}"

static void credentials_are_sent_and_not_shown(void **state)
{
    static const struct {
        const char *policy;
        const char *header;
    } rows[] = {
        {AUTH("{\"basic\":{\"username\":\"me\",\"password\":\"canary\"}}"), "Basic bWU6Y2FuYXJ5"},
        {AUTH("{\"basic\":{\"use\":\"pair\"}}"), "Basic bWU6Y2FuYXJ5"},
        {AUTH("{\"bearer\":{\"token\":\"canary\"}}"), "Bearer canary"},
        {AUTH("{\"bearer\":{\"use\":\"token\"}}"), "Bearer canary"},
        {AUTH("{\"bearer\":{\"use\":\"json\"}}"), "Bearer canary"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_http_order order;
        read_good(&order, rows[i].policy);
        assert_string_equal(header(&order, "Authorization"), rows[i].header);
        assert_int_equal(order.headers_shown, 1);
        assert_true(rv_str_is(order.headers[0].name, "X"));
        rv_http_order_done(&order);
    }
}

static void what_cannot_be_sent_is_told_without_an_effect(void **state)
{
    static const struct {
        const char *input;
        const char *part;
    } rows[] = {
        {"[]", "must be an object with method"},
        {"{}", "method must be"},
        {"{\"method\":\"\"}", "method must be"},
        {"{\"method\":\"averyveryverylongmethod\"}", "method must be"},
        {"{\"method\":\"get\"}", "endpoint must be"},
        {"{\"method\":\"get\",\"endpoint\":{}}", "endpoint must be"},
        {"{\"method\":\"get\",\"endpoint\":[\"http://a\"]}", "endpoint must be"},
        {INPUT(",\"headers\":\"x\""), "headers must be an object"},
        {INPUT(",\"headers\":{\"A\":{}}"), "header \"A\" must be"},
        {INPUT(",\"query\":[1]"), "query must be an object"},
        {INPUT(",\"query\":null"), "query must be an object"},
        {INPUT(",\"headers\":null"), "headers must be an object"},
        {INPUT(",\"query\":{\"key\":null}"), "\"key\" must be a string, a number, true, false, "
                                             "or a list of these, not null"},
        {INPUT(",\"query\":{\"key\":[1,null]}"), "not a list with other values"},
        {INPUT(",\"headers\":{\"X\":null}"),
         "header \"X\" must be a string, a number, true or false, not null"},
        {INPUT(",\"headers\":{\"X\":[\"a\"]}"),
         "header \"X\" must be a string, a number, true or false, not a list"},
        {"{\"method\":\"delete\",\"endpoint\":\"http://a/{id}\"}", "the URI contains { or }"},
        {"{\"method\":\"delete\",\"endpoint\":{\"uri\":\"http://a/${ .id }\"}}",
         "the URI contains { or }"},
        {INPUT(",\"query\":{\"a\":{\"b\":1}}"), "query: \"a\" must be"},
        {INPUT(",\"headers\":{\"Idempotency-Key\":\"a\"}"),
         "header Idempotency-Key: Reeve sets this header"},
        {INPUT(",\"headers\":{\"x\":\"1\",\"idempotency-key\":\"a\"}"), "idempotency-key: Reeve"},
        {INPUT(",\"headers\":{\"REEVE-FENCE\":\"1\"}"),
         "header REEVE-FENCE: Reeve sets this header"},
        {INPUT(",\"headers\":{\"reeve-remaining-ms\":\"1\"}"), "reeve-remaining-ms: Reeve sets"},
        {INPUT(",\"headers\":{\"Traceparent\":\"mine\"}"),
         "header Traceparent: Reeve sets this header"},
        {INPUT(",\"headers\":{\"tracestate\":\"a=1\"}"),
         "header tracestate: Reeve sets this header"},
        {AUTH("{\"digest\":{}}"), "must be basic or bearer"},
        {AUTH("{\"basic\":{\"use\":\"nowhere\"}}"), "the secret \"nowhere\" cannot be read"},
        {AUTH("{\"basic\":{\"use\":\"token\"}}"),
         "the credentials must contain the string `username`"},
        {AUTH("{\"bearer\":{\"use\":\"pair\"}}"),
         "the credentials must contain the string `token`"},
        {AUTH("{\"bearer\":{\"token\":5}}"), "the credentials must contain the string `token`"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rv_http_order order;
        char title[512];
        rv_http_order_read(&order, rv_str_of(rows[i].input), &secrets);
        snprintf(title, sizeof title, "%.*s", RV_STR_FMT(order.wrong.title));
        if (order.wrong.type.at == NULL || strstr(title, rows[i].part) == NULL)
            fail_msg("%s: %s", rows[i].input, title);
        assert_false(order.wrong.transient);
        assert_int_equal(order.wrong.effect, RV_RUNTIME_NO_EFFECT);
        assert_null(strstr(title, "canary"));
        rv_http_order_done(&order);
    }
}

static void each_try_says_the_key_the_fence_and_the_time_left(void **state)
{
    struct rv_http_order order;
    const struct rv_held_attempt attempt = {.key = RV_STR("t-1"),
                                            .fence = 9,
                                            .traceparent = RV_STR("00-ab-cd-01"),
                                            .tracestate = RV_STR("v=1")};
    (void)state;
    read_good(&order, INPUT(",\"headers\":{\"idempotency-key2\":\"mine\"}"));
    assert_true(rv_http_order_head(&order, &attempt, 1500));
    assert_true(rv_http_order_head(&order, &attempt, 700));
    assert_string_equal(header(&order, "Reeve-Remaining-Ms"), "700");
    assert_string_equal(header(&order, "Reeve-Fence"), "9");
    assert_string_equal(header(&order, "traceparent"), "00-ab-cd-01");
    assert_string_equal(header(&order, "tracestate"), "v=1");
    assert_string_equal(header(&order, "idempotency-key2"), "mine");
    assert_string_equal(header(&order, "Idempotency-Key"), "t-1");
    assert_int_equal(order.headers_count, 6);
    assert_int_equal(order.headers_shown, 1);
    rv_http_order_done(&order);
}

/* ---- answers ---- */

struct judged {
    struct rv_http_order order;
    struct rv_http_result result;
    char output[4096];
    char told[4096]; /* type, title and detail of a failure */
};

static void judge(struct judged *judged, const char *input, struct rv_outbound_answer answer)
{
    rv_http_order_read(&judged->order, rv_str_of(input), &secrets);
    rv_http_order_judge(&judged->order, &answer, &judged->result);
    const struct rv_runtime_failure *failure = &judged->result.failure;
    snprintf(judged->output, sizeof judged->output, "%.*s",
             RV_STR_FMT(rv_buf_str(&judged->result.output)));
    snprintf(judged->told, sizeof judged->told, "%.*s %.*s %.*s", RV_STR_FMT(failure->type),
             RV_STR_FMT(failure->title), RV_STR_FMT(failure->detail));
}

static void judged_done(struct judged *judged)
{
    rv_buf_done(&judged->result.output);
    rv_http_order_done(&judged->order);
}

static struct rv_outbound_answer answered(int status, const char *type, const char *body)
{
    static struct rv_outbound_header headers[3];
    headers[0] = (struct rv_outbound_header){RV_STR("Content-Type"), RV_STR("application/json")};
    headers[1] = (struct rv_outbound_header){RV_STR("Set-Cookie"), RV_STR("a=1")};
    headers[2] = (struct rv_outbound_header){RV_STR("set-cookie"), RV_STR("b=2")};
    return (struct rv_outbound_answer){.outcome = RV_OUTCOME_ANSWERED,
                                       .sent = true,
                                       .status = status,
                                       .retry_after_ms = -1,
                                       .content_type = rv_str_of(type),
                                       .body = rv_str_of(body),
                                       .headers = headers,
                                       .headers_count = 3,
                                       .url = RV_STR("http://a/")};
}

#define GET(rest) "{\"method\":\"get\",\"endpoint\":\"http://a/\"" rest "}"

static void outputs_are_raw_content_or_response(void **state)
{
    static const struct {
        const char *input;
        const char *type;
        const char *body;
        const char *output;
    } rows[] = {
        {GET(), "application/json", "{ \"a\": 1.50 }", "{\"a\":1.50}"},
        {GET(), "application/problem+json; charset=utf-8", "[]", "[]"},
        {GET(), "text/plain", "a\"b", "\"a\\\"b\""},
        {GET(), NULL, "text", "\"text\""},
        {GET(), "image/png", "\x89PNG", "\"iVBORw==\""},
        {GET(), "application/json", "", "null"},
        {GET(",\"output\":\"raw\""), "application/json", "{}", "\"e30=\""},
        {GET(",\"output\":\"raw\""), NULL, "", "\"\""},
        {GET(",\"output\":\"content\""), "application/json", "5", "5"},
        {GET(",\"output\":\"response\",\"headers\":{\"X\":\"1\"}"), "application/json", "[1]",
         "{\"request\":{\"method\":\"GET\",\"uri\":\"http://a/\",\"headers\":{\"x\":\"1\"}},"
         "\"statusCode\":200,\"headers\":{\"content-type\":\"application/json\","
         "\"set-cookie\":\"a=1, b=2\"},\"content\":[1]}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct judged judged;
        judge(&judged, rows[i].input, answered(200, rows[i].type, rows[i].body));
        assert_null(judged.result.failure.type.at);
        assert_string_equal(judged.output, rows[i].output);
        judged_done(&judged);
    }
}

static void statuses_are_errors_by_the_rules(void **state)
{
    static const struct {
        const char *input;
        int status;
        bool good;
        bool transient;
        enum rv_runtime_effect effect;
    } rows[] = {
        {INPUT(), 200, true, false, 0},
        {INPUT(), 299, true, false, 0},
        {INPUT(), 302, false, false, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(",\"redirect\":true"), 304, true, false, 0},
        {INPUT(), 400, false, false, RV_RUNTIME_NO_EFFECT},
        {INPUT(), 404, false, false, RV_RUNTIME_NO_EFFECT},
        {INPUT(), 408, false, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(), 409, false, false, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(), 425, false, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(), 429, false, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(), 500, false, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(), 501, false, false, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(), 503, false, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {GET(), 503, false, true, RV_RUNTIME_NO_EFFECT},
        {INPUT(",\"noEffect\":[503]"), 503, false, true, RV_RUNTIME_NO_EFFECT},
        {INPUT(",\"noEffect\":[503]"), 404, false, false, RV_RUNTIME_UNKNOWN_EFFECT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct judged judged;
        judge(&judged, rows[i].input, answered(rows[i].status, "text/plain", "the reason"));
        const struct rv_runtime_failure *failure = &judged.result.failure;
        assert_int_equal(failure->type.at == NULL, rows[i].good);
        if (!rows[i].good) {
            assert_int_equal(failure->status, rows[i].status);
            assert_int_equal(failure->transient, rows[i].transient);
            assert_int_equal(failure->effect, rows[i].effect);
            assert_non_null(strstr(judged.told, "errors/communication "));
            assert_non_null(strstr(judged.told, " the reason"));
        }
        judged_done(&judged);
    }
}

/* The status is that of the request which the redirect led to; the first may have been carried out,
 * as a form is whose answer says where its result is shown. */
static void after_a_followed_redirect_no_status_denies_the_effect(void **state)
{
    static const struct {
        const char *input;
        int status;
        bool other_request;
        enum rv_runtime_effect effect;
    } rows[] = {
        {INPUT(",\"redirect\":true"), 404, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(",\"redirect\":true"), 404, false, RV_RUNTIME_NO_EFFECT},
        {INPUT(",\"redirect\":true,\"noEffect\":[404]"), 404, true, RV_RUNTIME_UNKNOWN_EFFECT},
        {INPUT(",\"redirect\":true,\"noEffect\":[404]"), 404, false, RV_RUNTIME_NO_EFFECT},
        {GET(",\"redirect\":true"), 404, true, RV_RUNTIME_NO_EFFECT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct judged judged;
        struct rv_outbound_answer answer = answered(rows[i].status, "text/plain", "gone");
        answer.other_request = rows[i].other_request;
        judge(&judged, rows[i].input, answer);
        assert_int_equal(judged.result.failure.effect, rows[i].effect);
        assert_int_equal(strstr(judged.told, "404 after a redirect") != NULL,
                         rows[i].other_request);
        judged_done(&judged);
    }
}

/* Redirects are followed only if the workflow says so; no other status below 400 is one. */
static void a_redirect_that_is_not_followed_is_told_with_the_cure(void **state)
{
    static const struct {
        int status;
        bool redirect;
    } rows[] = {{300, false}, {301, true}, {303, true}, {304, false}, {307, true}, {308, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct judged judged;
        judge(&judged, INPUT(""), answered(rows[i].status, "text/plain", "gone"));
        assert_int_equal(strstr(judged.told, "set `redirect: true`") != NULL, rows[i].redirect);
        judged_done(&judged);
    }
}

static void without_an_answer_the_effect_is_none_only_if_nothing_was_sent(void **state)
{
    static const struct {
        enum rv_outcome outcome;
        bool transient;
        const char *type;
        int status;
    } rows[] = {
        {RV_OUTCOME_INVALID, false, "errors/validation", 400},
        {RV_OUTCOME_REFUSED, false, "errors/authorization", 403},
        {RV_OUTCOME_RESOLVE, true, "errors/communication", 503},
        {RV_OUTCOME_CONNECT, true, "errors/communication", 503},
        {RV_OUTCOME_TLS, true, "errors/communication", 503},
        {RV_OUTCOME_TIMEOUT, true, "errors/timeout", 408},
        {RV_OUTCOME_LOST, true, "errors/communication", 502},
        {RV_OUTCOME_TOO_LARGE, false, "errors/communication", 502},
        {RV_OUTCOME_REDIRECTS, false, "errors/communication", 502},
        {RV_OUTCOME_CANCELLED, true, "cancelled", 0},
        {RV_OUTCOME_MEMORY, true, "errors/communication", 503},
    };
    (void)state;
    assert_int_equal(sizeof rows / sizeof rows[0], RV_OUTCOME_COUNT - 1);
    for (size_t i = 0; i < 3 * sizeof rows / sizeof rows[0]; i++) {
        struct judged judged;
        bool sent = i % 3 != 0;
        bool safe = i % 3 == 2;
        judge(&judged, safe ? GET() : INPUT(),
              (struct rv_outbound_answer){
                  .outcome = rows[i / 3].outcome, .sent = sent, .why = RV_STR("because")});
        const struct rv_runtime_failure *failure = &judged.result.failure;
        assert_int_equal(failure->effect,
                         sent && !safe ? RV_RUNTIME_UNKNOWN_EFFECT : RV_RUNTIME_NO_EFFECT);
        assert_int_equal(failure->transient, rows[i / 3].transient);
        assert_int_equal(failure->status, rows[i / 3].status);
        assert_non_null(strstr(judged.told, rows[i / 3].type));
        assert_non_null(strstr(judged.told, "because"));
        judged_done(&judged);
    }
}

static void answers_that_cannot_be_an_output_are_failures(void **state)
{
    struct judged judged;
    static char large[1200000];
    (void)state;
    memset(large, 'a', sizeof large - 1);
    judge(&judged, INPUT(), answered(200, "application/json", "{\"a\":1,\"a\":2}"));
    assert_non_null(strstr(judged.told, "the response is not JSON"));
    assert_false(judged.result.failure.transient);
    assert_int_equal(judged.result.failure.effect, RV_RUNTIME_UNKNOWN_EFFECT);
    judged_done(&judged);
    judge(&judged, INPUT(), answered(200, "text/plain", large));
    assert_non_null(strstr(judged.told, "larger than 1 MiB"));
    assert_false(judged.result.failure.transient);
    judged_done(&judged);
}

/* A service that repeats the credentials, in every place of its answer (attack A17). */
static void a17_credentials_that_come_back_are_hidden(void **state)
{
    static const char *const inputs[] = {
        AUTH("{\"basic\":{\"use\":\"pair\"}}"),
        AUTH("{\"bearer\":{\"use\":\"token\"}}"),
    };
    static const struct {
        const char *type;
        const char *body;
    } bodies[] = {
        {"application/json", "{\"canary\":[\"a canary b\",\"\\u0063anary\",\"bWU6Y2FuYXJ5\"]}"},
        {"text/plain", "Authorization: Basic bWU6Y2FuYXJ5, canarycanary"},
        {"image/png", "canary"},
    };
    struct rv_outbound_header echo[] = {{RV_STR("X-Echo"), RV_STR("Bearer canary bWU6Y2FuYXJ5")}};
    (void)state;
    for (size_t i = 0; i < 2 * 3 * 3; i++) {
        struct judged judged;
        char input[512];
        const char *output = i % 3 == 0 ? "raw" : i % 3 == 1 ? "content" : "response";
        snprintf(input, sizeof input, "%.*s,\"output\":\"%s\"}", (int)strlen(inputs[i / 9]) - 1,
                 inputs[i / 9], output);
        struct rv_outbound_answer answer = answered(200, bodies[i / 3 % 3].type,
                                                    bodies[i / 3 % 3].body);
        answer.headers = echo;
        answer.headers_count = 1;
        judge(&judged, input, answer);
        assert_null(judged.result.failure.type.at);
        assert_null(strstr(judged.output, "canary"));
        if (i / 9 == 0)
            assert_null(strstr(judged.output, "bWU6Y2FuYXJ5"));
        judged_done(&judged);
        answer.status = 500;
        judge(&judged, input, answer);
        assert_null(strstr(judged.told, "canary"));
        judged_done(&judged);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_url_gets_the_query),
        cmocka_unit_test(the_target_is_host_and_port_alone),
        cmocka_unit_test(the_body_goes_as_its_type_says),
        cmocka_unit_test(headers_are_sent_as_text),
        cmocka_unit_test(credentials_are_sent_and_not_shown),
        cmocka_unit_test(what_cannot_be_sent_is_told_without_an_effect),
        cmocka_unit_test(each_try_says_the_key_the_fence_and_the_time_left),
        cmocka_unit_test(outputs_are_raw_content_or_response),
        cmocka_unit_test(statuses_are_errors_by_the_rules),
        cmocka_unit_test(after_a_followed_redirect_no_status_denies_the_effect),
        cmocka_unit_test(a_redirect_that_is_not_followed_is_told_with_the_cure),
        cmocka_unit_test(without_an_answer_the_effect_is_none_only_if_nothing_was_sent),
        cmocka_unit_test(answers_that_cannot_be_an_output_are_failures),
        cmocka_unit_test(a17_credentials_that_come_back_are_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

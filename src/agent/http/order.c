/* From a step's input to a request. The input is what `with` of `call: http` came to. */
#include "agent/http/order.h"

#include "agent/http/order_priv.h"
#include "base/limits.h"
#include "base/own_header.h"

#include <stdio.h>
#include <string.h>

enum { PAIRS_MAX = 100, URL_BYTES_MAX = 64 * 1024 };

#define MEMBER(object, name) rv_json_get((object), RV_STR(name))

/* ---- what is wrong ---- */

static bool wrong_set(struct rv_http_order *order, const char *type, int status, bool transient,
                      struct rv_str title)
{
    order->wrong = (struct rv_runtime_failure){.type = rv_str_of(type),
                                               .title = title.at != NULL ? title
                                                                         : RV_STR("out of memory"),
                                               .status = status,
                                               .transient = transient || title.at == NULL,
                                               .effect = RV_RUNTIME_NO_EFFECT};
    return false;
}

#define WRONG(order, ...)                                                                          \
    wrong_set((order), ERROR_TYPE "validation", 400, false,                                        \
              rv_arena_printf(&(order)->arena, __VA_ARGS__))

static bool no_memory(struct rv_http_order *order)
{
    return wrong_set(order, ERROR_TYPE "communication", 503, true, RV_STR_NONE);
}

/* ---- pieces ---- */

/* A scalar as text: a string as it is, others as JSON has them. False for lists and objects. */
static bool scalar_text(struct rv_http_order *order, const struct rv_json *value,
                        struct rv_str *ret_text)
{
    if (value->type == RV_JSON_STRING) {
        *ret_text = rv_json_str(value);
        return true;
    }
    if (value->type == RV_JSON_ARRAY || value->type == RV_JSON_OBJECT)
        return false;
    struct rv_buf text;
    rv_buf_init(&text, 4096);
    rv_json_write(&text, value);
    *ret_text = rv_arena_str(&order->arena, rv_buf_str(&text));
    rv_buf_done(&text);
    return ret_text->at != NULL;
}

static const char *kind_of(const struct rv_json *value)
{
    return value->type == RV_JSON_NULL     ? "null"
           : value->type == RV_JSON_ARRAY  ? "a list with other values"
           : value->type == RV_JSON_NUMBER ? "a number"
           : value->type == RV_JSON_BOOL   ? "true or false"
                                           : "an object";
}

/* name=value, or one of them for each item of a list. A null is refused: without its filter a
 * request may mean everything. */
static bool pair_add(struct rv_http_order *order, struct rv_buf *to, const char *first,
                     struct rv_str name, const struct rv_json *value)
{
    struct rv_str text;
    bool list = value->type == RV_JSON_ARRAY;
    uint32_t count = list ? value->len : 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct rv_json *item = list ? &value->u.items[i] : value;
        if (item->type == RV_JSON_NULL || !scalar_text(order, item, &text))
            return false;
        rv_buf_add_str(to, rv_str_of(to->len == 0 ? first : "&"));
        rv_buf_add_percent(to, name);
        rv_buf_add_char(to, '=');
        rv_buf_add_percent(to, text);
    }
    return true;
}

static bool pairs_make(struct rv_http_order *order, const struct rv_json *pairs, const char *what,
                       const char *first, struct rv_buf *to)
{
    if (pairs->type != RV_JSON_OBJECT)
        return WRONG(order, "%s must be an object", what);
    for (uint32_t i = 0; i < pairs->len; i++) {
        struct rv_str name = rv_json_str(&pairs->u.members[i].key);
        if (!pair_add(order, to, first, name, &pairs->u.members[i].value))
            return WRONG(
                order,
                "%s: \"%.*s\" must be a string, a number, true, false, or a list of these, not %s",
                what, RV_STR_FMT(name), kind_of(&pairs->u.members[i].value));
    }
    return true;
}

/* ---- method and URL ---- */

static bool method_read(struct rv_http_order *order, const struct rv_json *input)
{
    struct rv_str method = rv_json_str(MEMBER(input, "method"));
    char *upper = rv_arena_bytes(&order->arena, RV_CALL_METHOD_BYTES_MAX);
    if (upper == NULL)
        return no_memory(order);
    if (method.len == 0 || method.len > RV_CALL_METHOD_BYTES_MAX)
        return WRONG(order, "method must be a method name such as get or post");
    for (size_t i = 0; i < method.len; i++) {
        char c = method.at[i];
        upper[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    order->method = (struct rv_str){upper, method.len};
    order->safe = rv_str_is(order->method, "GET") || rv_str_is(order->method, "HEAD");
    return true;
}

/* "host:port" as it is written, for the circuit and for people: without a user name and password,
 * with which no call is made. */
static void target_read(struct rv_http_order *order)
{
    const char *host = strstr(order->url.at, "://");
    host = host != NULL ? host + 3 : order->url.at;
    size_t len = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', len);
    if (at != NULL) {
        len -= (size_t)(at + 1 - host);
        host = at + 1;
    }
    if (len >= sizeof order->target)
        len = sizeof order->target - 1;
    for (size_t i = 0; i < len; i++)
        order->target[i] = (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] | 0x20 : host[i]);
    order->target[len] = '\0';
}

static bool url_read(struct rv_http_order *order, const struct rv_json *input)
{
    const struct rv_json *endpoint = MEMBER(input, "endpoint");
    const struct rv_json *query = MEMBER(input, "query");
    struct rv_str uri = rv_json_str(endpoint);
    if (uri.at == NULL)
        uri = rv_json_str(MEMBER(endpoint, "uri"));
    if (uri.len == 0)
        return WRONG(order, "endpoint must be a URI, or an object with `uri`");
    if (memchr(uri.at, '\0', uri.len) != NULL)
        return WRONG(order, "the URI contains a NUL byte");
    if (memchr(uri.at, '{', uri.len) != NULL || memchr(uri.at, '}', uri.len) != NULL)
        return WRONG(order, "the URI contains { or }: variables such as {name} are not expanded in "
                            "a URI from an expression");
    const char *fragment = memchr(uri.at, '#', uri.len);
    if (fragment != NULL)
        uri.len = (size_t)(fragment - uri.at);
    struct rv_buf text;
    rv_buf_init(&text, URL_BYTES_MAX);
    bool has_query = memchr(uri.at, '?', uri.len) != NULL;
    bool good = query == NULL || pairs_make(order, query, "query", has_query ? "&" : "?", &text);
    order->url = rv_arena_printf(&order->arena, "%.*s%.*s", RV_STR_FMT(uri),
                                 RV_STR_FMT(rv_buf_str(&text)));
    bool fits = text.failed != RV_ERR_LIMIT;
    bool room = text.failed == RV_OK && order->url.at != NULL;
    rv_buf_done(&text);
    if (!good)
        return false;
    if (!fits)
        return WRONG(order, "the query is longer than 64 KiB");
    if (!room)
        return no_memory(order);
    target_read(order);
    return true;
}

/* ---- headers ---- */

static bool name_is(struct rv_str name, const char *other)
{
    size_t len = strlen(other);
    bool same = name.len == len;
    for (size_t i = 0; i < len && same; i++)
        same = (name.at[i] | 0x20) == other[i];
    return same;
}

static struct rv_str header_find(const struct rv_http_order *order, const char *name)
{
    for (size_t i = 0; i < order->headers_count; i++)
        if (name_is(order->headers[i].name, name))
            return order->headers[i].value;
    return RV_STR_NONE;
}

static void header_add(struct rv_http_order *order, struct rv_str name, struct rv_str value)
{
    order->headers[order->headers_count++] = (struct rv_outbound_header){name, value};
}

/* Numbers, true and false are sent as text, as published definitions rely on. */
static bool headers_read(struct rv_http_order *order, const struct rv_json *input)
{
    const struct rv_json *given = MEMBER(input, "headers");
    uint32_t count = given != NULL ? given->len : 0;
    if (given != NULL && given->type != RV_JSON_OBJECT)
        return WRONG(order, "headers must be an object");
    if (count > PAIRS_MAX)
        return WRONG(order, "more than %d headers", PAIRS_MAX);
    order->headers = RV_NEW_ARRAY(&order->arena, struct rv_outbound_header,
                                  count + RV_HTTP_HEADERS_OWN);
    if (order->headers == NULL)
        return no_memory(order);
    for (uint32_t i = 0; i < count; i++) {
        const struct rv_json_member *member = &given->u.members[i];
        struct rv_str name = rv_json_str(&member->key), text;
        if (member->value.type == RV_JSON_NULL || !scalar_text(order, &member->value, &text))
            return WRONG(order, "header \"%.*s\" must be a string, a number, true or false, not %s",
                         RV_STR_FMT(name),
                         member->value.type == RV_JSON_ARRAY ? "a list" : kind_of(&member->value));
        if (rv_is_own_header(name))
            return WRONG(order, "header %.*s: " RV_OWN_HEADER_WHY, RV_STR_FMT(name));
        header_add(order, name, text);
    }
    return true;
}

/* ---- body ---- */

static bool body_is_form(struct rv_str type)
{
    return type.len >= 33 &&
           name_is((struct rv_str){type.at, 33}, "application/x-www-form-urlencoded");
}

/* A string goes as it is; all else as JSON, or as a form if the headers say so. */
static bool body_read(struct rv_http_order *order, const struct rv_json *input)
{
    const struct rv_json *body = MEMBER(input, "body");
    struct rv_str type = header_find(order, "content-type");
    if (body == NULL || body->type == RV_JSON_NULL)
        return true;
    if (body->type == RV_JSON_STRING) {
        order->body = rv_json_str(body);
        if (type.at == NULL)
            header_add(order, RV_STR("Content-Type"), RV_STR("text/plain; charset=utf-8"));
        return true;
    }
    struct rv_buf text;
    rv_buf_init(&text, 2 * RV_PAYLOAD_BYTES_MAX);
    bool good = true;
    if (body->type == RV_JSON_OBJECT && type.at != NULL && body_is_form(type))
        good = pairs_make(order, body, "body", "", &text);
    else
        rv_json_write(&text, body);
    order->body = rv_arena_str(&order->arena, rv_buf_str(&text));
    bool room = text.failed == RV_OK && order->body.at != NULL;
    rv_buf_done(&text);
    if (good && !room)
        return no_memory(order);
    if (type.at == NULL)
        header_add(order, RV_STR("Content-Type"), RV_STR("application/json"));
    return good;
}

/* ---- authentication ---- */

static void hide_add(struct rv_http_order *order, struct rv_str text)
{
    if (text.len > 0)
        order->hidden[order->hidden_count++] = text;
}

static bool secret_read(struct rv_http_order *order, const struct rv_http_secrets *secrets,
                        struct rv_str name, struct rv_json *ret_value, struct rv_str *ret_text)
{
    enum rv_err err = secrets->read == NULL
                          ? RV_ERR_NOT_FOUND
                          : secrets->read(secrets->self, &order->arena, name, ret_text);
    if (err == RV_ERR_MEMORY)
        return no_memory(order);
    if (err != RV_OK)
        return wrong_set(order, ERROR_TYPE "authentication", 401, false,
                         rv_arena_printf(&order->arena,
                                         "the secret \"%.*s\" cannot be read (%s); store it in a "
                                         "file with that name in the --secrets folder%s",
                                         RV_STR_FMT(name), rv_err_text(err),
                                         secrets->self == NULL
                                             ? ", and start the server with --secrets FOLDER"
                                             : ""));
    /* Its text is JSON with the properties, or for a token the token itself. */
    if (rv_json_parse(&order->arena, *ret_text, RV_JSON_DEPTH_MAX, ret_value, NULL) != RV_OK)
        *ret_value = rv_json_null();
    return true;
}

static bool property_read(struct rv_http_order *order, const struct rv_json *from, const char *name,
                          struct rv_str *ret_text)
{
    *ret_text = rv_json_str(rv_json_get(from, rv_str_of(name)));
    if (ret_text->at == NULL)
        return wrong_set(
            order, ERROR_TYPE "authentication", 401, false,
            rv_arena_printf(&order->arena, "the credentials must contain the string `%s`", name));
    return true;
}

static bool basic_read(struct rv_http_order *order, const struct rv_json *from,
                       struct rv_str *ret_header)
{
    struct rv_str username, password;
    if (!property_read(order, from, "username", &username) ||
        !property_read(order, from, "password", &password))
        return false;
    struct rv_str pair = rv_arena_printf(&order->arena, "%.*s:%.*s", RV_STR_FMT(username),
                                         RV_STR_FMT(password));
    struct rv_buf coded;
    rv_buf_init(&coded, 256 * 1024);
    rv_http_base64(&coded, pair);
    struct rv_str text = rv_arena_str(&order->arena, rv_buf_str(&coded));
    bool room = coded.failed == RV_OK && text.at != NULL && pair.at != NULL;
    rv_buf_done(&coded);
    if (!room)
        return no_memory(order);
    hide_add(order, text);
    hide_add(order, password);
    *ret_header = rv_arena_printf(&order->arena, "Basic %.*s", RV_STR_FMT(text));
    return ret_header->at != NULL || no_memory(order);
}

static struct rv_str without_newline(struct rv_str text)
{
    while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    return text;
}

static bool bearer_read(struct rv_http_order *order, const struct rv_json *from,
                        struct rv_str whole, struct rv_str *ret_header)
{
    struct rv_str token = without_newline(whole);
    if ((from->type == RV_JSON_OBJECT || whole.at == NULL) &&
        !property_read(order, from, "token", &token))
        return false;
    hide_add(order, token);
    *ret_header = rv_arena_printf(&order->arena, "Bearer %.*s", RV_STR_FMT(token));
    return ret_header->at != NULL || no_memory(order);
}

static bool authentication_read(struct rv_http_order *order, const struct rv_json *input,
                                const struct rv_http_secrets *secrets)
{
    const struct rv_json *policy = MEMBER(MEMBER(input, "endpoint"), "authentication");
    if (policy == NULL || policy->type == RV_JSON_NULL)
        return true;
    const struct rv_json *basic = MEMBER(policy, "basic");
    const struct rv_json *from = basic != NULL ? basic : MEMBER(policy, "bearer");
    if (from == NULL || from->type != RV_JSON_OBJECT)
        return WRONG(order, "authentication must be basic or bearer");
    struct rv_str secret = rv_json_str(MEMBER(from, "use"));
    struct rv_str whole = RV_STR_NONE;
    struct rv_str header;
    struct rv_json value;
    if (secret.at != NULL) {
        if (!secret_read(order, secrets, secret, &value, &whole))
            return false;
        from = &value;
    }
    if (basic != NULL ? !basic_read(order, from, &header)
                      : !bearer_read(order, from, whole, &header))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < order->headers_count; i++)
        if (!name_is(order->headers[i].name, "authorization"))
            order->headers[kept++] = order->headers[i];
    order->headers_count = order->headers_shown = kept;
    header_add(order, RV_STR("Authorization"), header);
    return true;
}

/* ---- all of it ---- */

static bool rest_read(struct rv_http_order *order, const struct rv_json *input)
{
    struct rv_str output = rv_json_str(MEMBER(input, "output"));
    const struct rv_json *redirect = MEMBER(input, "redirect");
    order->output = rv_str_is(output, "raw")        ? RV_HTTP_RAW
                    : rv_str_is(output, "response") ? RV_HTTP_RESPONSE
                                                    : RV_HTTP_CONTENT;
    order->redirect = redirect != NULL && redirect->type == RV_JSON_BOOL && redirect->truth;
    order->no_effect = MEMBER(input, "noEffect");
    return true;
}

void rv_http_order_read(struct rv_http_order *order, struct rv_str input,
                        const struct rv_http_secrets *secrets)
{
    struct rv_json tree;
    *order = (struct rv_http_order){.target = ""};
    rv_arena_init(&order->arena, 0);
    enum rv_err err = rv_json_parse(&order->arena, input, RV_JSON_DEPTH_MAX, &tree, NULL);
    if (err == RV_ERR_MEMORY) {
        no_memory(order);
        return;
    }
    if (err != RV_OK || tree.type != RV_JSON_OBJECT) {
        WRONG(order, "the input must be an object with method and endpoint");
        return;
    }
    if (!rest_read(order, &tree) || !method_read(order, &tree) || !url_read(order, &tree) ||
        !headers_read(order, &tree) || !body_read(order, &tree))
        return;
    order->headers_shown = order->headers_count;
    (void)authentication_read(order, &tree, secrets);
}

void rv_http_order_done(struct rv_http_order *order)
{
    rv_arena_done(&order->arena);
    *order = (struct rv_http_order){.target = ""};
}

bool rv_http_order_head(struct rv_http_order *order, const struct rv_held_attempt *attempt,
                        int64_t left_ms)
{
    struct rv_str left = rv_arena_printf(&order->arena, "%lld", (long long)left_ms);
    struct rv_str fence = rv_arena_printf(&order->arena, "%lld", (long long)attempt->fence);
    const struct rv_outbound_header own[] = {
        {RV_STR("Reeve-Remaining-Ms"), left},        {RV_STR("Reeve-Fence"), fence},
        {RV_STR("Idempotency-Key"), attempt->key},   {RV_STR("traceparent"), attempt->traceparent},
        {RV_STR("tracestate"), attempt->tracestate},
    };
    if (left.at == NULL || fence.at == NULL)
        return false;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        size_t at = 0;
        while (at < order->headers_count && !rv_str_eq(order->headers[at].name, own[i].name))
            at++;
        if (at < order->headers_count)
            order->headers[at] = own[i]; /* of the try before */
        else if (own[i].value.len > 0)
            header_add(order, own[i].name, own[i].value);
    }
    return true;
}

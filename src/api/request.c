#include "api/request.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "base/time.h"
#include "base/utf8.h"
#include "json/json.h"

enum { TREE_BYTES_MAX = 32 * 1024 * 1024 }; /* two million values */

void rv_parser_init(struct rv_parser *parser)
{
    *parser = (struct rv_parser){.arena = NULL};
    rv_arena_init(&parser->tree, TREE_BYTES_MAX);
    rv_buf_init(&parser->scratch, (size_t)RV_BODY_BYTES_MAX * 2);
}

void rv_parser_done(struct rv_parser *parser)
{
    rv_arena_done(&parser->tree);
    rv_buf_done(&parser->scratch);
}

void rv_parser_begin(struct rv_parser *parser, struct rv_arena *arena)
{
    rv_arena_reset(&parser->tree);
    rv_buf_reset(&parser->scratch);
    parser->arena = arena;
    parser->caller = NULL;
    parser->problem = (struct rv_problem){.status = 0};
}

__attribute__((format(printf, 4, 0))) static void
problem_set(struct rv_parser *parser, int status, enum rv_err err, const char *format, va_list args)
{
    rv_assert(parser->arena != NULL);
    rv_assert(status >= 400);
    rv_assert(status <= 599);
    parser->problem = (struct rv_problem){.status = status, .err = err};
    parser->problem.detail = rv_arena_vprintf(parser->arena, format, args);
}

bool rv_refuse(struct rv_parser *parser, enum rv_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    problem_set(parser, rv_err_http(err), err, format, args);
    va_end(args);
    return false;
}

bool rv_refuse_http(struct rv_parser *parser, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    problem_set(parser, status, RV_OK, format, args);
    va_end(args);
    return false;
}

bool rv_parser_starved(struct rv_parser *parser)
{
    rv_assert(parser->arena != NULL);
    bool starved = parser->arena->refused == RV_ERR_MEMORY ||
                   parser->tree.refused == RV_ERR_MEMORY || parser->scratch.failed == RV_ERR_MEMORY;
    if (starved)
        rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    return starved;
}

bool rv_text_plain(struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f)
            return false;
    return true;
}

/* UTF-8 is what our JSON reader takes as a string: it is asked, rather than a second table. */
static bool utf8_valid(struct rv_parser *parser, struct rv_str text)
{
    bool ascii = true;
    for (size_t i = 0; i < text.len; i++)
        ascii &= (unsigned char)text.at[i] < 0x80;
    if (ascii)
        return true;
    rv_buf_reset(&parser->scratch);
    rv_buf_add_char(&parser->scratch, '"');
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] != '"' && text.at[i] != '\\')
            rv_buf_add_char(&parser->scratch, text.at[i]);
    rv_buf_add_char(&parser->scratch, '"');
    return parser->scratch.failed == RV_OK &&
           rv_json_scan(rv_buf_str(&parser->scratch), 1, NULL) == RV_OK;
}

static bool percent_decode(struct rv_parser *parser, struct rv_str text, bool plus_is_space,
                           struct rv_str *ret)
{
    char *at = rv_arena_bytes(parser->arena, text.len + 1);
    if (at == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '%') {
            int high = i + 2 < text.len ? rv_hex_digit(text.at[i + 1]) : -1;
            int low = i + 2 < text.len ? rv_hex_digit(text.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return rv_refuse_http(parser, 400,
                                      "a percent sign in the URL is not followed by two hex "
                                      "digits; write it as %%25");
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        at[len++] = c;
    }
    *ret = (struct rv_str){at, len};
    if (!rv_text_plain(*ret))
        return rv_refuse_http(parser, 400, "the URL contains a control character; remove it");
    if (!utf8_valid(parser, *ret))
        return rv_refuse_http(parser, 400, "the URL is not valid UTF-8");
    return true;
}

bool rv_key_header(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_str *ret_key)
{
    struct rv_str key = request->key;
    bool quoted = key.len >= 2 && key.at[0] == '"' && key.at[key.len - 1] == '"';
    if (quoted)
        key = (struct rv_str){key.at + 1, key.len - 2};
    bool escaped = quoted && (memchr(key.at, '\\', key.len) || memchr(key.at, '"', key.len));
    if (key.at != NULL && (key.len == 0 || key.len > RV_KEY_BYTES_MAX || escaped ||
                           !rv_text_plain(key) || !utf8_valid(parser, key)))
        return rv_refuse_http(parser, 400,
                              "Idempotency-Key must have 1 to %d bytes, in UTF-8 and without "
                              "control characters; a quoted key must not contain \\ or \"",
                              RV_KEY_BYTES_MAX);
    uint32_t hidden = rv_utf8_hidden(key);
    if (hidden != UINT32_MAX)
        return rv_refuse(parser, RV_ERR_INVALID, "Idempotency-Key " RV_HIDDEN_TEXT,
                         (unsigned)hidden);
    *ret_key = key;
    return true;
}

bool rv_key_header_none(struct rv_parser *parser, const struct rv_request_line *request,
                        const char *what)
{
    return request->key.at == NULL ||
           rv_refuse_http(parser, 400,
                          "Idempotency-Key is not supported for this request: a repeated request "
                          "creates another %s; omit the header, and check the result of a request "
                          "before you repeat it",
                          what);
}

static struct rv_str until(struct rv_str *rest, char end)
{
    const char *found = rest->len ? memchr(rest->at, end, rest->len) : NULL;
    struct rv_str piece = *rest;
    if (found == NULL) {
        *rest = RV_STR_NONE;
    } else {
        piece.len = (size_t)(found - rest->at);
        *rest = (struct rv_str){found + 1, rest->len - piece.len - 1};
    }
    return piece;
}

static bool path_read(struct rv_parser *parser, struct rv_request_line *request)
{
    struct rv_str rest = {request->path.at + 1, request->path.len - 1};
    while (rest.at != NULL) {
        struct rv_str raw = until(&rest, '/');
        bool dots = rv_str_is(raw, ".") || rv_str_is(raw, "..");
        if (raw.len == 0 || dots || request->segments_count == RV_SEGMENTS_MAX)
            return rv_refuse_http(parser, 404,
                                  "\"%.*s\" does not exist; GET /openapi.json lists the paths",
                                  RV_STR_FMT(request->path));
        if (!percent_decode(parser, raw, false, &request->segments[request->segments_count++]))
            return false;
    }
    return true;
}

static bool query_read(struct rv_parser *parser, struct rv_str query,
                       struct rv_request_line *request)
{
    bool some = query.at != NULL && query.len > 0;
    request->args = some ? RV_NEW_ARRAY(parser->arena, struct rv_arg, RV_ARGS_MAX) : NULL;
    if (some && request->args == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    while (query.at != NULL && query.len > 0) {
        struct rv_str value = until(&query, '&');
        struct rv_str name = until(&value, '=');
        if (request->args_count == RV_ARGS_MAX)
            return rv_refuse_http(parser, 400, "more than %d query parameters", RV_ARGS_MAX);
        struct rv_arg arg = {RV_STR_NONE, RV_STR("")};
        if (!percent_decode(parser, name, true, &arg.name))
            return false;
        if (value.at != NULL && !percent_decode(parser, value, true, &arg.value))
            return false;
        for (size_t i = 0; i < request->args_count; i++)
            if (rv_str_eq(request->args[i].name, arg.name))
                return rv_refuse_http(parser, 400, "the parameter \"%.*s\" is given twice",
                                      RV_STR_FMT(arg.name));
        request->args[request->args_count++] = arg;
    }
    return true;
}

bool rv_request_read(struct rv_parser *parser, struct rv_str target, struct rv_request_line *ret)
{
    *ret = (struct rv_request_line){.segments_count = 0};
    if (target.len > RV_TARGET_BYTES_MAX)
        return rv_refuse_http(parser, 414, "the URL is longer than %d bytes", RV_TARGET_BYTES_MAX);
    for (size_t i = 0; i < target.len; i++)
        if ((unsigned char)target.at[i] <= 0x20 || target.at[i] == 0x7f)
            return rv_refuse_http(
                parser, 400, "the URL contains a space or a control character; percent-encode it");
    if (rv_str_is(target, "*")) { /* of OPTIONS: the server itself */
        ret->path = target;
        return true;
    }
    if (target.len == 0 || target.at[0] != '/')
        return rv_refuse_http(parser, 400, "the path must begin with a slash");
    struct rv_str query = target;
    ret->path = until(&query, '?');
    return path_read(parser, ret) && query_read(parser, query, ret);
}

void rv_suggest_to(struct rv_parser *parser, struct rv_str given, const char *const *names)
{
    const char *near = rv_suggest(given, names);
    rv_buf_reset(&parser->scratch);
    if (near != NULL) {
        rv_buf_printf(&parser->scratch, "did you mean \"%s\"?", near);
    } else if (names[0] == NULL) {
        rv_buf_lit(&parser->scratch, "this operation accepts none");
    } else {
        rv_buf_lit(&parser->scratch, "use one of:");
        for (size_t i = 0; names[i] != NULL; i++)
            rv_buf_printf(&parser->scratch, "%s %s", i ? "," : "", names[i]);
    }
}

bool rv_args_only(struct rv_parser *parser, const struct rv_request_line *request,
                  const char *const *names)
{
    for (size_t i = 0; i < request->args_count; i++) {
        struct rv_str name = request->args[i].name;
        size_t n = 0;
        while (names[n] != NULL && !rv_str_is(name, names[n]))
            n++;
        if (names[n] != NULL)
            continue;
        rv_suggest_to(parser, name, names);
        return rv_refuse_http(parser, 400, "unknown query parameter \"%.*s\"; %.*s",
                              RV_STR_FMT(name), RV_STR_FMT(rv_buf_str(&parser->scratch)));
    }
    return true;
}

struct rv_str rv_arg_get(const struct rv_request_line *request, const char *name)
{
    for (size_t i = 0; i < request->args_count; i++)
        if (rv_str_is(request->args[i].name, name))
            return request->args[i].value;
    return RV_STR_NONE;
}

bool rv_text_int(struct rv_str text, int64_t *ret)
{
    int64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        int digit = text.at[i] - '0';
        if (number > (INT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret = number;
    return text.len > 0;
}

bool rv_arg_int(struct rv_parser *parser, const struct rv_request_line *request, const char *name,
                int64_t min, int64_t max, int64_t *ret)
{
    rv_assert(min <= max);
    struct rv_str text = rv_arg_get(request, name);
    if (text.at == NULL)
        return true;
    int64_t number;
    if (!rv_text_int(text, &number) || number < min || number > max)
        return rv_refuse_http(parser, 400, "%s=%.*s: must be a whole number from %lld to %lld",
                              name, RV_STR_FMT(text), (long long)min, (long long)max);
    *ret = number;
    return true;
}

bool rv_arg_bool(struct rv_parser *parser, const struct rv_request_line *request, const char *name,
                 bool *ret)
{
    struct rv_str text = rv_arg_get(request, name);
    if (text.at == NULL)
        return true;
    if (!rv_str_is(text, "true") && !rv_str_is(text, "false"))
        return rv_refuse_http(parser, 400, "%s=%.*s: must be true or false", name,
                              RV_STR_FMT(text));
    *ret = text.len == 4;
    return true;
}

bool rv_arg_limit(struct rv_parser *parser, const struct rv_request_line *request,
                  size_t *ret_limit)
{
    int64_t limit = RV_PAGE_ROWS_MAX;
    bool ok = rv_arg_int(parser, request, "limit", 1, RV_PAGE_ROWS_MAX, &limit);
    *ret_limit = (size_t)limit;
    return ok;
}

bool rv_refuse_after(struct rv_parser *parser, struct rv_str after)
{
    return rv_refuse_http(parser, 400, "after=%.*s: must be \"next\" of the previous page",
                          RV_STR_FMT(after));
}

bool rv_arg_after(struct rv_parser *parser, const struct rv_request_line *request,
                  struct rv_task_id *ret_id)
{
    struct rv_str after = rv_arg_get(request, "after");
    return after.at == NULL || rv_task_parse(after, ret_id) == RV_OK ||
           rv_refuse_after(parser, after);
}

bool rv_arg_wait(struct rv_parser *parser, const struct rv_request_line *request, int64_t *ret_ms)
{
    struct rv_str text = rv_arg_get(request, "wait");
    if (text.at == NULL)
        return true;
    if (rv_duration_parse(text, ret_ms) != RV_OK)
        return rv_refuse_http(parser, 400,
                              "wait=%.*s: must be an ISO 8601 duration up to PT%dS, such as PT20S",
                              RV_STR_FMT(text), RV_WAIT_MS_MAX / 1000);
    if (*ret_ms > RV_WAIT_MS_MAX)
        return rv_refuse_http(parser, 400,
                              "wait=%.*s: the maximum is PT%dS; to wait longer, repeat the request "
                              "(repeat a submission only with its idempotency key)",
                              RV_STR_FMT(text), RV_WAIT_MS_MAX / 1000);
    return true;
}

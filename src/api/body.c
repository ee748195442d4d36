#include "api/body.h"

#include "api/access.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/utf8.h"

/* Levels of a body around a payload, such as those of {"replies": [{"output": ...}]}, and some. */
enum { BODY_DEPTH_MAX = RV_JSON_DEPTH_MAX + 8 };

bool rv_body_open(struct rv_parser *parser, const struct rv_json *value, struct rv_str where,
                  const char *const *names, struct rv_body *ret)
{
    struct rv_str called = where.len ? where : RV_STR("the body");
    if (value->type != RV_JSON_OBJECT)
        return rv_refuse(parser, RV_ERR_INVALID, "%.*s must be a JSON object", RV_STR_FMT(called));
    for (uint32_t i = 0; i < value->len; i++) {
        struct rv_str key = rv_json_str(&value->u.members[i].key);
        size_t n = 0;
        while (names[n] != NULL && !rv_str_is(key, names[n]))
            n++;
        if (names[n] != NULL)
            continue;
        rv_suggest_to(parser, key, names);
        return rv_refuse(parser, RV_ERR_INVALID, "unknown property \"%.*s\" in %.*s; %.*s",
                         RV_STR_FMT(key), RV_STR_FMT(called),
                         RV_STR_FMT(rv_buf_str(&parser->scratch)));
    }
    *ret = (struct rv_body){value, where};
    return true;
}

bool rv_body_read(struct rv_parser *parser, struct rv_str text, bool may_be_empty,
                  const char *const *names, struct rv_body *ret)
{
    if (text.len == 0 && may_be_empty)
        text = RV_STR("{}");
    if (text.len == 0)
        return rv_refuse_http(parser, 400, "the request has no body; send a JSON object");
    struct rv_json *tree = RV_NEW(&parser->tree, struct rv_json);
    struct rv_json_fault fault = {.message = ""};
    enum rv_err err = tree ? rv_json_parse(&parser->tree, text, BODY_DEPTH_MAX, tree, &fault)
                           : RV_ERR_MEMORY;
    if (parser->tree.refused != RV_OK)
        return rv_refuse(parser, parser->tree.refused,
                         "the body has too many values for the memory limit of one request; send "
                         "less data per request");
    if (err == RV_ERR_LIMIT && fault.line != 0)
        return rv_refuse_http(parser, 400,
                              "line %u, column %u: %s; a value in the body may have %d levels",
                              fault.line, fault.column, fault.message, RV_JSON_DEPTH_MAX);
    if (err == RV_ERR_INVALID)
        return rv_refuse_http(parser, 400, "the body is not JSON: line %u, column %u: %s",
                              fault.line, fault.column, fault.message);
    if (err != RV_OK)
        return rv_refuse(parser, err, "the body is too large to parse; send less data per request");
    return rv_body_open(parser, tree, RV_STR(""), names, ret);
}

struct rv_str rv_body_item_name(struct rv_parser *parser, const char *list, size_t index)
{
    return rv_arena_printf(&parser->tree, "%s[%zu]", list, index);
}

struct rv_str rv_body_member_name(struct rv_parser *parser, const struct rv_body *body,
                                  const char *name)
{
    return rv_arena_printf(&parser->tree, "%.*s%s%s", RV_STR_FMT(body->where),
                           body->where.len ? "." : "", name);
}

static bool type_refuse(struct rv_parser *parser, const struct rv_body *body, const char *name,
                        const char *wanted)
{
    struct rv_str place = rv_body_member_name(parser, body, name);
    return rv_refuse(parser, RV_ERR_INVALID, "%.*s must be %s", RV_STR_FMT(place), wanted);
}

/* NULL for an absent member and for null. */
static const struct rv_json *member(const struct rv_body *body, const char *name)
{
    const struct rv_json *value = rv_json_get(body->object, rv_str_of(name));
    return value != NULL && value->type == RV_JSON_NULL ? NULL : value;
}

bool rv_body_text(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  size_t bytes_max, struct rv_str *ret)
{
    rv_assert(bytes_max > 0);
    const struct rv_json *value = member(body, name);
    if (value == NULL)
        return true;
    struct rv_str text = rv_json_str(value);
    if (value->type != RV_JSON_STRING || text.len == 0)
        return type_refuse(parser, body, name, "a non-empty string without control characters");
    uint32_t hidden = rv_utf8_hidden(text);
    if (hidden != UINT32_MAX) {
        struct rv_str place = rv_body_member_name(parser, body, name);
        return rv_refuse(parser, RV_ERR_INVALID, "%.*s " RV_HIDDEN_TEXT, RV_STR_FMT(place),
                         (unsigned)hidden);
    }
    if (text.len > bytes_max) {
        struct rv_str place = rv_body_member_name(parser, body, name);
        return rv_refuse(parser, RV_ERR_LIMIT, "%.*s is longer than %zu bytes", RV_STR_FMT(place),
                         bytes_max);
    }
    *ret = rv_arena_str(parser->arena, text);
    if (ret->at == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    return true;
}

bool rv_body_by(struct rv_parser *parser, const struct rv_body *body, struct rv_str *ret)
{
    if (!rv_body_text(parser, body, "by", RV_NAME_BYTES_MAX, ret))
        return false;
    *ret = rv_access_by(parser, *ret);
    return true;
}

bool rv_body_int(struct rv_parser *parser, const struct rv_body *body, const char *name,
                 int64_t min, int64_t max, int64_t *ret)
{
    rv_assert(min <= max);
    const struct rv_json *value = member(body, name);
    if (value == NULL)
        return true;
    int64_t number;
    if (!rv_json_int(value, &number) || number < min || number > max) {
        struct rv_str place = rv_body_member_name(parser, body, name);
        return rv_refuse(parser, RV_ERR_INVALID, "%.*s must be a whole number from %lld to %lld",
                         RV_STR_FMT(place), (long long)min, (long long)max);
    }
    *ret = number;
    return true;
}

bool rv_body_bool(struct rv_parser *parser, const struct rv_body *body, const char *name, bool *ret)
{
    const struct rv_json *value = member(body, name);
    if (value == NULL)
        return true;
    if (value->type != RV_JSON_BOOL)
        return type_refuse(parser, body, name, "true or false");
    *ret = value->truth;
    return true;
}

/* Whether the value has more than `levels` levels of arrays and objects. */
static bool deeper(const struct rv_json *value, unsigned levels)
{
    rv_assert(levels <= RV_JSON_DEPTH_MAX);
    if (value->type != RV_JSON_ARRAY && value->type != RV_JSON_OBJECT)
        return false;
    if (levels == 0)
        return true;
    for (uint32_t i = 0; i < value->len; i++)
        if (deeper(value->type == RV_JSON_ARRAY ? &value->u.items[i] : &value->u.members[i].value,
                   levels - 1))
            return true;
    return false;
}

bool rv_body_payload(struct rv_parser *parser, const struct rv_body *body, const char *name,
                     struct rv_str *ret)
{
    const struct rv_json *value = rv_json_get(body->object, rv_str_of(name));
    if (value == NULL)
        return true;
    if (deeper(value, RV_JSON_DEPTH_MAX)) {
        struct rv_str place = rv_body_member_name(parser, body, name);
        return rv_refuse(parser, RV_ERR_INVALID, "%.*s is nested deeper than %d levels",
                         RV_STR_FMT(place), RV_JSON_DEPTH_MAX);
    }
    rv_buf_reset(&parser->scratch);
    rv_json_write(&parser->scratch, value);
    struct rv_str text = rv_buf_str(&parser->scratch);
    if (parser->scratch.failed == RV_ERR_MEMORY)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    if (parser->scratch.failed != RV_OK || text.len > RV_PAYLOAD_BYTES_MAX) {
        struct rv_str place = rv_body_member_name(parser, body, name);
        return rv_refuse(
            parser, RV_ERR_LIMIT,
            "%.*s has more than %d bytes; store the data elsewhere and send a reference",
            RV_STR_FMT(place), RV_PAYLOAD_BYTES_MAX);
    }
    *ret = rv_arena_str(parser->arena, text);
    if (ret->at == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    return true;
}

bool rv_body_list(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  size_t max, const struct rv_json **ret_items, size_t *ret_count)
{
    rv_assert(max > 0);
    const struct rv_json *value = member(body, name);
    if (value == NULL)
        return true;
    if (value->type != RV_JSON_ARRAY)
        return type_refuse(parser, body, name, "an array");
    if (value->len > max) {
        struct rv_str place = rv_body_member_name(parser, body, name);
        return rv_refuse(parser, RV_ERR_LIMIT,
                         "%.*s has more than %zu items; send several requests", RV_STR_FMT(place),
                         max);
    }
    static const struct rv_json none;
    *ret_items = value->len ? value->u.items : &none;
    *ret_count = value->len;
    return true;
}

bool rv_body_need(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  struct rv_str text)
{
    if (text.at != NULL)
        return true;
    struct rv_str place = rv_body_member_name(parser, body, name);
    return rv_refuse(parser, RV_ERR_INVALID, "%.*s is missing", RV_STR_FMT(place));
}

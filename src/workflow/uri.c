/* URI templates as the DSL has them: RFC 6570's simple expansion alone, `{name}` with the property
 * of that very name of the input (DSL reference, URI Template). */
#include "workflow/flow_priv.h"
#include "workflow/uri_priv.h"

enum { URI_BYTES_MAX = 64 * 1024 };

static bool literal_belongs(char c)
{
    unsigned char u = (unsigned char)c;
    return u > ' ' && u < 0x7f && strchr("\"<>\\^`|", c) == NULL;
}

static bool scheme_known(struct rv_str text)
{
    static const char *const known[] = {"http://", "https://"};
    for (size_t k = 0; k < 2; k++) {
        size_t i = 0;
        while (known[k][i] != '\0' && i < text.len && (text.at[i] | 0x20) == (known[k][i] | 0x20))
            i++;
        if (known[k][i] == '\0')
            return true;
    }
    return false;
}

const char *rv_uri_wrong(struct rv_str text, size_t *ret_offset, bool *ret_unsupported)
{
    bool inside = false;
    *ret_unsupported = false;
    *ret_offset = 0;
    if (!(text.len > 0 && text.at[0] == '{') && !scheme_known(text))
        return "a URI must begin with https:// or http://";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        *ret_offset = i;
        if (c == '{') {
            if (inside)
                return "nested braces; write a variable as {name}";
            inside = true;
            char next = i + 1 < text.len ? text.at[i + 1] : '\0';
            if (next == '}')
                return "empty braces; write a variable as {name}";
            if (next != '\0' && strchr("+#./;?&=,!@|", next) != NULL) {
                *ret_unsupported = true;
                return "only {name} of RFC 6570 is supported; write other parts into the URI, or "
                       "use `query`";
            }
        } else if (c == '}') {
            if (!inside)
                return "a closing brace without an opening brace";
            inside = false;
        } else if (!inside && !literal_belongs(c)) {
            return "a URI must not contain spaces, control characters, non-ASCII characters or any "
                   "of \" < > \\ ^ ` |; percent-encode them";
        }
    }
    return inside ? "an opening brace without a closing brace" : NULL;
}

/* Appends a value. NULL, or why it cannot be. RFC 6570 leaves out what is undefined: the request
 * would go to another, shorter path, and what is done there to all is not what was asked for. */
static const char *expand(struct rv_buf *to, const struct rv_json *value, bool may_be_empty)
{
    struct rv_str text;
    if (value == NULL)
        return "is not in the input";
    switch ((enum rv_json_type)value->type) {
    case RV_JSON_NULL:
        return "is null";
    case RV_JSON_BOOL:
    case RV_JSON_NUMBER:
        rv_json_write(to, value);
        return NULL;
    case RV_JSON_STRING:
        text = rv_json_str(value);
        if (rv_str_is(text, ".") || rv_str_is(text, ".."))
            return "is . or .., which would change the path";
        if (text.len == 0 && !may_be_empty)
            return "is empty, which would change the path";
        rv_buf_add_percent(to, text);
        return NULL;
    case RV_JSON_ARRAY:
        return "is a list; it must be a string, a number, true or false";
    case RV_JSON_OBJECT:
        return "is an object; it must be a string, a number, true or false";
    }
    return NULL;
}

static enum rv_err raise_uri(struct rv_flow *flow, struct rv_str name, const char *why)
{
    struct rv_str detail = rv_arena_printf(flow->arena, "{%.*s} %s",
                                           (int)(name.len < 128 ? name.len : 128), name.at, why);
    if (detail.at == NULL)
        return rv_flow_full(flow);
    return rv_flow_raise_standard(flow, RV_ERROR_VALIDATION, flow->top->node,
                                  "The URI template cannot be expanded", detail);
}

static enum rv_err fill_in(struct rv_flow *flow, struct rv_str template,
                           const struct rv_json *input, struct rv_buf *to)
{
    for (size_t i = 0; i < template.len; i++) {
        if (template.at[i] != '{') {
            rv_buf_add_char(to, template.at[i]);
            continue;
        }
        size_t end = i + 1;
        while (end < template.len && template.at[end] != '}')
            end++;
        rv_assert(end < template.len); /* rv_uri_wrong() accepts no open brace */
        struct rv_str name = {template.at + i + 1, end - i - 1};
        bool in_query = memchr(template.at, '?', i) != NULL;
        const char *wrong = expand(to, rv_json_get(input, name), in_query);
        if (wrong != NULL)
            return raise_uri(flow, name, wrong);
        i = end;
    }
    return RV_OK;
}

static enum rv_err fill_uri(struct rv_flow *flow, struct rv_str template,
                            const struct rv_json *input, struct rv_buf *to, struct rv_json *ret_uri)
{
    RV_TRY(fill_in(flow, template, input, to));
    if (to->failed == RV_ERR_LIMIT)
        return raise_uri(flow, RV_STR("..."), "makes the URI longer than 64 KiB");
    if (to->failed != RV_OK)
        return to->failed;
    struct rv_str text = rv_arena_str(flow->arena, rv_buf_str(to));
    *ret_uri = rv_json_of_str(text);
    return text.at != NULL ? RV_OK : rv_flow_full(flow);
}

enum rv_err rv_uri_fill(struct rv_flow *flow, struct rv_str template, const struct rv_json *input,
                        struct rv_json *ret_uri)
{
    struct rv_buf uri;
    rv_buf_init(&uri, URI_BYTES_MAX);
    enum rv_err err = fill_uri(flow, template, input, &uri, ret_uri);
    rv_buf_done(&uri);
    return err;
}

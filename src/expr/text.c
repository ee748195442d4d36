/* Strings: search, cut, join, code points, and the way to JSON text and back. */
#include "expr/eval_priv.h"

#include "expr/utf8_priv.h"

#include "base/limits.h"

#include <math.h>

/* The buffer stands on the arena and has all the room it will need, so it never grows. */
bool text_of_value(struct ev *ev, const struct rv_json *value, struct rv_str *ret_json)
{
    size_t bytes;
    if (!value_measure(ev, value, RV_JSON_NESTING_MAX, &bytes) || !ev_spend(ev, bytes / 8))
        return false;
    char *at = ev_take(ev, bytes + 1);
    if (at == NULL)
        return false;
    struct rv_buf buf = {.at = at, .room = bytes, .bytes_max = bytes};
    rv_json_write(&buf, value);
    if (buf.failed != RV_OK)
        return ev_limit(ev, "the expression ran out of memory");
    *ret_json = rv_buf_str(&buf);
    return true;
}

bool native_tojson(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    struct rv_str text;
    (void)args;
    if (!text_of_value(ev, in, &text))
        return false;
    *ret = rv_json_of_str(text);
    return true;
}

bool native_tostring(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    if (in->type != RV_JSON_STRING)
        return native_tojson(ev, in, args, ret);
    *ret = *in;
    return true;
}

/* JSON text, and the "nan" that jq takes as well. */
static bool parse_text(struct ev *ev, const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json_fault fault = {.message = "no JSON"};
    struct rv_str text = value_str(in);
    if (rv_str_is(text, "nan")) {
        *ret = rv_json_of_real((double)NAN);
        return true;
    }
    /* About 5 ns a byte; what is built takes at most 32 bytes for each. */
    if (!ev_spend(ev, text.len / 2 + 1))
        return false;
    enum rv_err err = rv_json_parse(ev->arena, text, RV_JSON_DEPTH_MAX, ret, &fault);
    ev->built = true;
    if (err == RV_OK)
        return true;
    if (err == RV_ERR_MEMORY || ev->arena->refused != RV_OK)
        return ev_limit(ev, "the expression ran out of memory");
    return ev_raise(ev, "%s at line %u, column %u (while parsing '%.*s')", fault.message,
                    fault.line, fault.column, (int)utf8_floor(text, text.len < 40 ? text.len : 40),
                    text.at);
}

bool native_fromjson(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    (void)args;
    if (in->type != RV_JSON_STRING)
        return ev_raise(ev, "%s (%s) only strings can be parsed", value_kind(in),
                        value_brief(in).text);
    return parse_text(ev, in, ret);
}

static bool is_digit_at(struct rv_str text, size_t at)
{
    return at < text.len && text.at[at] >= '0' && text.at[at] <= '9';
}

/* What jq takes for a number besides those of JSON is made one of these: "+1", "01", ".5" and "1."
 * are 1, 1, 0.5 and 1. Anything else is left as it is, for the reader of JSON to refuse. */
static bool number_normal(struct ev *ev, struct rv_str text, struct rv_json *ret)
{
    char *bytes = ev_spend(ev, text.len / 8) ? ev_take(ev, text.len + 1) : NULL;
    size_t len = 0, at = 0;
    if (bytes == NULL)
        return false;
    while (at < text.len && strchr(" \t\r\n", text.at[at]) != NULL && text.at[at] != '\0')
        at++;
    if (at < text.len && (text.at[at] == '-' || text.at[at] == '+'))
        if (text.at[at++] == '-')
            bytes[len++] = '-';
    bool point = at < text.len && text.at[at] == '.' && is_digit_at(text, at + 1);
    if (!point && !is_digit_at(text, at))
        return *ret = rv_json_of_str(text), true;
    if (point)
        bytes[len++] = '0';
    while (text.at[at] == '0' && is_digit_at(text, at + 1))
        at++;
    while (is_digit_at(text, at))
        bytes[len++] = text.at[at++];
    if (at < text.len && text.at[at] == '.' && !is_digit_at(text, at + 1))
        at++;
    if (at < text.len)
        memcpy(bytes + len, text.at + at, text.len - at);
    len += text.len - at;
    rv_assert(len <= text.len + 1);
    *ret = ev_string(bytes, len);
    return true;
}

bool native_tonumber(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    struct rv_json number, text;
    (void)args;
    if (in->type == RV_JSON_NUMBER)
        return *ret = *in, true;
    if (in->type == RV_JSON_STRING) {
        if (!number_normal(ev, value_str(in), &text))
            return false;
        if (!parse_text(ev, &text, &number) && ev->stop != EV_RAISED)
            return false;
        bool parsed = ev->stop == EV_RUNS && number.type == RV_JSON_NUMBER;
        ev->stop = EV_RUNS;
        if (parsed)
            return *ret = number, true;
    }
    return ev_raise(ev, "%s (%s) cannot be parsed as a number", value_kind(in),
                    value_brief(in).text);
}

bool text_find(struct ev *ev, struct rv_str text, struct rv_str wanted, size_t from, size_t *ret_at)
{
    size_t at = from;
    rv_assert(from <= text.len);
    while (at + wanted.len <= text.len) {
        const char *first = wanted.len == 0 ? text.at + at
                                            : memchr(text.at + at, wanted.at[0],
                                                     text.len - wanted.len - at + 1);
        if (first == NULL)
            break;
        at = (size_t)(first - text.at);
        if (!ev_spend(ev, wanted.len / 256 + 1))
            return false;
        if (wanted.len == 0 || memcmp(first, wanted.at, wanted.len) == 0)
            return *ret_at = at, true;
        at++;
    }
    *ret_at = text.len + 1;
    return ev_spend(ev, (text.len - from) / 64);
}

static bool is_text(const struct rv_json *value)
{
    return value->type == RV_JSON_STRING;
}

/* The end of the piece that begins at `at`: the next separator, or if that is empty the next
 * character. */
static bool piece_end(struct ev *ev, struct rv_str text, struct rv_str separator, size_t at,
                      size_t *ret_end)
{
    if (separator.len > 0)
        return text_find(ev, text, separator, at, ret_end);
    size_t len = utf8_len(text.at[at]);
    *ret_end = at + len < text.len ? at + len : text.len + 1;
    return ev_spend(ev, 1);
}

/* Counts the pieces, and writes them where `pieces` has room for them. */
static bool split_text(struct ev *ev, struct rv_str text, struct rv_str separator,
                       struct rv_json *pieces, size_t *count)
{
    *count = 0;
    for (size_t at = 0, end = 0; text.len > 0 && end <= text.len; at = end + separator.len) {
        if (!piece_end(ev, text, separator, at, &end))
            return false;
        if (pieces != NULL)
            pieces[*count] = ev_string(text.at + at, (end < text.len ? end : text.len) - at);
        ++*count;
    }
    return true;
}

bool native_split(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                  struct rv_json *ret)
{
    size_t count;
    if (!is_text(in) || !is_text(&args[0]))
        return ev_raise(ev, "split input and separator must be strings");
    if (!split_text(ev, value_str(in), value_str(&args[0]), NULL, &count))
        return false;
    struct rv_json *pieces = ev_take(ev, (count + 1) * sizeof *pieces);
    if (pieces == NULL || !split_text(ev, value_str(in), value_str(&args[0]), pieces, &count))
        return false;
    *ret = ev_array(ev, pieces, count);
    return true;
}

/* As jq: null counts as "", numbers and booleans as their texts; no items give "". */
bool native_join(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    struct rv_json joined = rv_json_of_str(RV_STR(""));
    bool array = in->type == RV_JSON_ARRAY;
    if (!array && in->type != RV_JSON_OBJECT)
        return ev_raise(ev, "Cannot iterate over %s (%s)", value_kind(in), value_brief(in).text);
    for (uint32_t i = 0; i < in->len; i++) {
        const struct rv_json *item = array ? &in->u.items[i] : &in->u.members[i].value;
        struct rv_json pair[2] = {joined, *item};
        struct rv_json text;
        if (pair[1].type == RV_JSON_NULL)
            pair[1] = rv_json_of_str(RV_STR(""));
        else if (pair[1].type != RV_JSON_ARRAY && pair[1].type != RV_JSON_OBJECT) {
            if (!native_tostring(ev, item, NULL, &text))
                return false;
            pair[1] = text;
        }
        if (i > 0) {
            struct rv_json parts[2] = {joined, args[0]};
            if (!native_add(ev, in, parts, &pair[0]))
                return false;
        }
        if (!ev_spend(ev, 1) || !native_add(ev, in, pair, &joined))
            return false;
    }
    *ret = joined;
    return true;
}

static bool starts_with(struct rv_str text, struct rv_str start)
{
    return text.len >= start.len && (start.len == 0 || memcmp(text.at, start.at, start.len) == 0);
}

static bool ends_with(struct rv_str text, struct rv_str end)
{
    return text.len >= end.len &&
           starts_with((struct rv_str){text.at + (text.len - end.len), end.len}, end);
}

bool native_startswith(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                       struct rv_json *ret)
{
    if (!is_text(in) || !is_text(&args[0]))
        return ev_raise(ev, "startswith() requires string inputs");
    *ret = rv_json_bool(starts_with(value_str(in), value_str(&args[0])));
    return ev_spend(ev, 1 + args[0].len / 512);
}

bool native_endswith(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    if (!is_text(in) || !is_text(&args[0]))
        return ev_raise(ev, "endswith() requires string inputs");
    *ret = rv_json_bool(ends_with(value_str(in), value_str(&args[0])));
    return ev_spend(ev, 1 + args[0].len / 512);
}

/* What is no string, or does not begin so, stays as it is. */
bool native_ltrimstr(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    bool cut = is_text(in) && is_text(&args[0]) && starts_with(value_str(in), value_str(&args[0]));
    *ret = cut ? ev_string(in->u.text + args[0].len, in->len - args[0].len) : *in;
    return ev_spend(ev, 1 + (cut ? args[0].len / 512 : 0));
}

bool native_rtrimstr(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    bool cut = is_text(in) && is_text(&args[0]) && ends_with(value_str(in), value_str(&args[0]));
    *ret = cut ? ev_string(in->u.text, in->len - args[0].len) : *in;
    return ev_spend(ev, 1 + (cut ? args[0].len / 512 : 0));
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool trim(struct ev *ev, const struct rv_json *in, bool left, bool right,
                 struct rv_json *ret)
{
    if (!is_text(in))
        return ev_raise(ev, "trim input must be a string");
    size_t from = 0, to = in->len;
    while (left && from < to && is_blank(in->u.text[from]))
        from++;
    while (right && to > from && is_blank(in->u.text[to - 1]))
        to--;
    *ret = ev_string(in->u.text + from, to - from);
    return ev_spend(ev, (in->len - (to - from)) / 16);
}

bool native_trim(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    (void)args;
    return trim(ev, in, true, true, ret);
}

bool native_ltrim(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                  struct rv_json *ret)
{
    (void)args;
    return trim(ev, in, true, false, ret);
}

bool native_rtrim(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                  struct rv_json *ret)
{
    (void)args;
    return trim(ev, in, false, true, ret);
}

static bool change_case(struct ev *ev, const struct rv_json *in, char first, char last,
                        struct rv_json *ret)
{
    if (!is_text(in))
        return ev_raise(ev, "%s (%s) is not a string and has no case", value_kind(in),
                        value_brief(in).text);
    char *bytes = ev_take(ev, (size_t)in->len + 1);
    if (bytes == NULL)
        return false;
    for (uint32_t i = 0; i < in->len; i++) {
        if (!ev_spend_piece(ev, i, in->len, 0.125))
            return false;
        char c = in->u.text[i];
        bytes[i] = c >= first && c <= last ? (char)(c ^ 0x20) : c;
    }
    *ret = ev_string(bytes, in->len);
    return true;
}

bool native_downcase(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    (void)args;
    return change_case(ev, in, 'A', 'Z', ret);
}

bool native_upcase(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    (void)args;
    return change_case(ev, in, 'a', 'z', ret);
}

bool native_explode(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    (void)args;
    if (!is_text(in))
        return ev_raise(ev, "explode input must be a string");
    struct rv_str text = value_str(in);
    struct rv_json *codes = ev_take(ev, (utf8_count(text) + 1) * sizeof *codes);
    size_t count = 0;
    for (size_t at = 0, len; codes != NULL && at < text.len; at += len)
        codes[count++] = rv_json_of_real(utf8_get(text, at, &len));
    if (codes == NULL)
        return false;
    rv_assert(count <= text.len);
    *ret = ev_array(ev, codes, count);
    return ev_spend(ev, text.len / 8);
}

/* A number that is no character becomes U+FFFD. */
bool native_implode(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    (void)args;
    if (in->type != RV_JSON_ARRAY)
        return ev_raise(ev, "implode input must be an array");
    char *bytes = ev_take(ev, 4 * (size_t)in->len + 1);
    size_t len = 0;
    for (uint32_t i = 0; bytes != NULL && i < in->len; i++) {
        const struct rv_json *code = &in->u.items[i];
        if (code->type != RV_JSON_NUMBER)
            return ev_raise(ev, "%s (%s) can't be imploded, unicode codepoint needs to be numeric",
                            value_kind(code), value_brief(code).text);
        double real = value_real(code);
        bool valid = real >= 0 && real <= 0x10FFFF && !(real >= 0xD800 && real < 0xE000);
        len += utf8_put(bytes + len, valid ? (uint32_t)real : 0xFFFD);
    }
    rv_assert(len <= 4 * (size_t)in->len);
    if (bytes == NULL || !ev_spend(ev, in->len / 4))
        return false;
    *ret = ev_string(bytes, len);
    return true;
}

static bool text_positions(struct ev *ev, struct rv_str text, struct rv_str wanted,
                           struct rv_json *ret)
{
    struct rv_json *found = ev_take(ev, (text.len + 1) * sizeof *found);
    size_t count = 0;
    size_t characters = 0;
    for (size_t at = 0, counted = 0; found != NULL && wanted.len > 0; at++) {
        if (!text_find(ev, text, wanted, at, &at))
            return false;
        if (at > text.len)
            break;
        characters += utf8_count((struct rv_str){text.at + counted, at - counted});
        counted = at;
        found[count++] = rv_json_of_real((double)characters);
    }
    if (found == NULL)
        return false;
    *ret = ev_array(ev, found, count);
    return true;
}

/* Of a string in a string, an array in an array, or one item in an array. */
bool native_indices(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    if (is_text(in) && is_text(&args[0]))
        return text_positions(ev, value_str(in), value_str(&args[0]), ret);
    if (in->type != RV_JSON_ARRAY)
        return value_index(ev, in, &args[0], ret);
    if (args[0].type == RV_JSON_ARRAY)
        return value_positions(ev, in, &args[0], ret);
    const struct rv_json one = {.type = RV_JSON_ARRAY, .len = 1, .u.items = args};
    return value_positions(ev, in, &one, ret);
}

char text_pattern(struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] != '\0' && strchr("\\^$.|?*+()[]{}", text.at[i]))
            return text.at[i];
    return '\0';
}

/* Plain text only: what would be a pattern is refused rather than searched for literally. */
bool native_test(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    size_t at;
    if (!is_text(in) || !is_text(&args[0])) {
        const struct rv_json *wrong = is_text(in) ? &args[0] : in;
        return ev_raise(ev, "%s (%s) cannot be matched, as it is not a string", value_kind(wrong),
                        value_brief(wrong).text);
    }
    char pattern = text_pattern(value_str(&args[0]));
    if (pattern != '\0')
        return ev_raise(ev, PATTERN_REFUSED, RV_STR_FMT(value_str(&args[0])), pattern);
    if (!text_find(ev, value_str(in), value_str(&args[0]), 0, &at))
        return false;
    *ret = rv_json_bool(at <= in->len);
    return true;
}

/* Bytes that may be no UTF-8, as a string: U+FFFD stands for each that is none. */
bool text_repaired(struct ev *ev, struct rv_str bytes, struct rv_json *ret)
{
    size_t valid = utf8_valid(bytes);
    if (!ev_spend(ev, bytes.len / 8))
        return false;
    if (valid == bytes.len)
        return *ret = rv_json_of_str(bytes), true;
    char *text = ev_take(ev, 3 * bytes.len + 1);
    if (text == NULL)
        return false;
    size_t len = 0;
    while (bytes.len > 0) {
        memcpy(text + len, bytes.at, valid);
        len += valid;
        bytes.at += valid;
        bytes.len -= valid;
        if (bytes.len == 0)
            break;
        len += utf8_put(text + len, 0xFFFD);
        bytes.at++;
        bytes.len--;
        valid = utf8_valid(bytes);
    }
    *ret = ev_string(text, len);
    return true;
}

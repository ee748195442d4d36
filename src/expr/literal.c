/* Numbers, strings with expressions inside, arrays and objects as they are written. */
#include "expr/parse_priv.h"

/* The literal as JSON would write it, so that its digits can be kept: no leading zeros, digits on
 * both sides of a point. */
static struct rv_str number_text(struct parser *p, struct rv_str literal)
{
    size_t start = 0;
    while (start + 1 < literal.len && literal.at[start] == '0' && literal.at[start + 1] >= '0' &&
           literal.at[start + 1] <= '9')
        start++;
    char *bytes = rv_arena_bytes(p->arena, literal.len + 1);
    if (bytes == NULL)
        return RV_STR_NONE;
    size_t len = 0;
    if (literal.at[start] == '.')
        bytes[len++] = '0';
    for (size_t i = start; i < literal.len; i++) {
        bool digit_follows = i + 1 < literal.len && literal.at[i + 1] >= '0' &&
                             literal.at[i + 1] <= '9';
        if (literal.at[i] != '.' || digit_follows)
            bytes[len++] = literal.at[i];
    }
    return (struct rv_str){bytes, len};
}

/* Up to 15 digits a double is exact enough to be written back the same, unless it is beyond the
 * largest or smallest; any other literal stays text. */
enum { DOUBLE_DIGITS = 15 };

static struct rv_json number_value(struct rv_str text)
{
    struct rv_json number = {.type = RV_JSON_NUMBER, .len = (uint32_t)text.len, .u.text = text.at};
    struct rv_json computed = rv_json_of_real(rv_json_real(&number));
    bool same = text.len <= DOUBLE_DIGITS && rv_json_compare_numbers(&number, &computed) == 0;
    return same ? computed : number;
}

struct node *parse_number(struct parser *p)
{
    size_t offset = p->token.offset;
    struct rv_str text = number_text(p, p->token.text);
    if (text.at == NULL)
        return parse_full(p);
    parse_advance(p);
    return node_const(p, offset, number_value(text));
}

/* What an interpolated value is turned into text by: @text, or the format before the string. */
static struct node *parse_string_value(struct parser *p, struct rv_str format, size_t offset)
{
    parse_advance(p);
    struct node *value = parse_pipe(p);
    if (value == NULL)
        return NULL;
    if (!parse_at_sign(p, ")"))
        return parse_unexpected(p, "\")\" after the expression inside \"\\(...)\"");
    struct node **none = RV_NEW_ARRAY(p->arena, struct node *, NATIVE_ARGS_MAX + 1);
    if (none == NULL)
        return parse_full(p);
    return node_pair(p, OP_PIPE, offset, value, resolve_call(p, format, offset, none, 0));
}

static struct node *string_join(struct parser *p, size_t offset, struct node *before,
                                struct node *after)
{
    if (before == NULL || after == NULL)
        return after;
    return node_native(p, offset, native_add, before, after);
}

/* The token is the opening quote. A string with expressions is the sum of its parts, as in jq. */
struct node *parse_string(struct parser *p, struct rv_str format, size_t offset)
{
    struct node *whole = NULL;
    for (;;) {
        char *bytes = rv_arena_bytes(p->arena, lex_string_room(&p->lexer) + 1);
        if (bytes == NULL)
            return parse_full(p);
        size_t len = 0;
        enum string_end end = lex_string(&p->lexer, bytes, &len);
        if (end == STRING_BAD_ESCAPE)
            return parse_fail(p, RV_ERR_INVALID, p->lexer.next,
                              "unknown escape in a string; a backslash is written \\\\");
        if (end == STRING_UNTERMINATED)
            return parse_fail(p, RV_ERR_INVALID, offset, "this string has no closing quote");
        if (len > 0 || whole == NULL) {
            struct rv_json piece = rv_json_of_str((struct rv_str){bytes, len});
            whole = string_join(p, offset, whole, node_const(p, offset, piece));
        }
        if (end == STRING_CLOSED)
            break;
        whole = string_join(p, offset, whole, parse_string_value(p, format, offset));
        if (whole == NULL)
            return NULL;
    }
    parse_advance(p);
    return whole;
}

/* A key that is known now and is no string is a mistake that need not wait for its evaluation. */
static bool is_key(struct parser *p, const struct node *key)
{
    if (key->op != OP_CONST || key->v.value.type == RV_JSON_STRING)
        return true;
    parse_fail(p, RV_ERR_INVALID, key->offset, "a key is a string: write it in quotes");
    return false;
}

/* One "key: value" of an object; the shorthands take the value from "." or from the variable. */
static bool parse_entry(struct parser *p, struct node **ret_key, struct node **ret_value)
{
    size_t offset = p->token.offset;
    struct rv_str text = p->token.text;
    enum token_kind kind = p->token.kind;
    struct node *key = NULL;
    struct node *value = NULL;
    if (kind == TOKEN_VARIABLE || kind == TOKEN_NAME) {
        parse_advance(p);
        key = node_const(p, offset, rv_json_of_str(text));
        value = kind == TOKEN_VARIABLE ? resolve_variable(p, text, offset)
                                       : node_field(p, offset, NULL, rv_json_of_str(text));
    } else if (kind == TOKEN_QUOTE || kind == TOKEN_FORMAT) {
        if (kind == TOKEN_FORMAT)
            parse_advance(p);
        if (p->token.kind != TOKEN_QUOTE)
            return parse_unexpected(p, "a string after the format"), false;
        key = parse_string(p, kind == TOKEN_FORMAT ? text : RV_STR("@text"), offset);
    } else if (parse_take_sign(p, "(")) {
        key = parse_pipe(p);
        if (key == NULL || !parse_expect_sign(p, ")", "\")\" after the key"))
            return false;
        if (!parse_at_sign(p, ":"))
            return parse_unexpected(p, "\":\" and a value after the key"), false;
    } else if (kind == TOKEN_NUMBER) {
        return parse_fail(p, RV_ERR_INVALID, offset, "a key is a string: write \"%.*s\"",
                          RV_STR_FMT(text)),
               false;
    } else {
        return parse_unexpected(p, "a key: name, \"name\", $name or (expression)"), false;
    }
    if (kind != TOKEN_VARIABLE && parse_take_sign(p, ":")) {
        value = parse_piped(p, false);
    }
    *ret_key = key;
    *ret_value = value;
    return p->err == RV_OK && key != NULL && is_key(p, key);
}

struct node *parse_object(struct parser *p, size_t offset)
{
    struct node *node = node_new(p, OP_OBJECT, offset);
    if (node == NULL || parse_take_sign(p, "}"))
        return node_finish(p, node);
    do {
        struct node *key, *value;
        if (!parse_entry(p, &key, &value) || !node_add_kid(p, node, key) ||
            !node_add_kid(p, node, value))
            return NULL;
    } while (parse_take_sign(p, ","));
    if (!parse_expect_sign(p, "}", "\",\" or \"}\" in the object"))
        return NULL;
    return node_finish(p, node);
}

struct node *parse_array(struct parser *p, size_t offset)
{
    parse_advance(p);
    struct node *items = parse_at_sign(p, "]") ? NULL : parse_pipe(p);
    if (p->err != RV_OK || !parse_expect_sign(p, "]", "\"]\" or \",\""))
        return NULL;
    return node_pair(p, OP_ARRAY, offset, items, NULL);
}

/* The grammar of jq 1.6, by recursive descent; where later jq takes more (an `if` without `else`,
 * operators in object values), so do we. Names are resolved while parsing, see resolve.c. */
#include "expr/parse_priv.h"

#include "expr/utf8_priv.h"

void parse_advance(struct parser *p)
{
    p->token = lex_next(&p->lexer);
}

bool parse_at_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && rv_str_is(p->token.text, sign);
}

bool parse_at_name(const struct parser *p, const char *name)
{
    return p->token.kind == TOKEN_NAME && rv_str_is(p->token.text, name);
}

bool parse_take_sign(struct parser *p, const char *sign)
{
    bool there = p->err == RV_OK && parse_at_sign(p, sign);
    if (there)
        parse_advance(p);
    return there;
}

bool parse_take_name(struct parser *p, const char *name)
{
    bool there = p->err == RV_OK && parse_at_name(p, name);
    if (there)
        parse_advance(p);
    return there;
}

void *parse_unexpected(struct parser *p, const char *expected)
{
    const struct token *token = &p->token;
    if (token->kind == TOKEN_END)
        return parse_fail(p, RV_ERR_INVALID, token->offset,
                          "the expression ends where %s was expected", expected);
    if (token->kind == TOKEN_QUOTE)
        return parse_fail(p, RV_ERR_INVALID, token->offset, "unexpected string; expected %s",
                          expected);
    return parse_fail(p, RV_ERR_INVALID, token->offset, "unexpected \"%.*s\"; expected %s",
                      RV_STR_FMT(token->text), expected);
}

bool parse_expect_sign(struct parser *p, const char *sign, const char *expected)
{
    if (parse_take_sign(p, sign))
        return true;
    parse_unexpected(p, expected);
    return false;
}

bool parse_expect_name(struct parser *p, const char *name, const char *expected)
{
    if (parse_take_name(p, name))
        return true;
    parse_unexpected(p, expected);
    return false;
}

/* A string whose value is known now, for keys. */
static bool is_const_string(const struct node *node)
{
    return node != NULL && node->op == OP_CONST && node->v.value.type == RV_JSON_STRING;
}

/* Those of `target` and room for one more: an array has room for the next power of two. It may be
 * shared with `target`, if no other node has been made of that since. */
static struct rv_json *keys_of(struct parser *p, const struct node *target, uint32_t count)
{
    bool full = (count & (count - 1)) == 0;
    if (count > 0 && !full && target == p->fields)
        return target->v.keys;
    size_t room = 1;
    while (room < (size_t)count + 1)
        room *= 2;
    struct rv_json *keys = RV_NEW_ARRAY(p->arena, struct rv_json, room);
    if (keys != NULL && count > 0)
        memcpy(keys, target->v.keys, count * sizeof keys[0]);
    return keys;
}

/* target.key; a run of keys is one node, but for a key that a "?" follows. */
struct node *node_field(struct parser *p, size_t offset, struct node *target, struct rv_json key)
{
    bool extend = target != NULL && target->op == OP_FIELDS && !target->optional &&
                  !parse_at_sign(p, "?");
    uint32_t count = extend ? target->count : 0;
    struct node *node = node_new(p, OP_FIELDS, offset);
    struct rv_json *keys = keys_of(p, target, count);
    if (node == NULL || keys == NULL)
        return parse_full(p);
    keys[count] = key;
    p->fields = node;
    node->a = extend ? target->a : target != NULL && target->op == OP_IDENTITY ? NULL : target;
    node->v.keys = keys;
    node->count = count + 1;
    return node_finish(p, node);
}

struct node *node_index(struct parser *p, size_t offset, struct node *target, struct node *key)
{
    if (p->err != RV_OK)
        return NULL;
    if (is_const_string(key))
        return node_field(p, offset, target, key->v.value);
    return node_pair(p, OP_INDEX, offset, target, key);
}

/* After "[" behind a term: "]", a key, or a slice. */
static struct node *parse_brackets(struct parser *p, struct node *target, size_t offset)
{
    if (parse_take_sign(p, "]"))
        return node_pair(p, OP_ITERATE, offset, target, NULL);
    struct node *from = parse_at_sign(p, ":") ? NULL : parse_pipe(p);
    if (p->err != RV_OK)
        return NULL;
    if (from != NULL && parse_take_sign(p, "]"))
        return node_index(p, offset, target, from);
    if (!parse_expect_sign(p, ":", "\"]\" or \":\""))
        return NULL;
    struct node *to = from != NULL && parse_at_sign(p, "]") ? NULL : parse_pipe(p);
    if (p->err != RV_OK || !parse_expect_sign(p, "]", "\"]\" after the slice"))
        return NULL;
    struct node *node = node_new(p, OP_SLICE, offset);
    if (node == NULL)
        return NULL;
    node->a = target;
    node->b = from;
    node->u.c = to;
    return node_finish(p, node);
}

/* After the name of a function: its arguments. */
static struct node *parse_call(struct parser *p, struct rv_str name, size_t offset)
{
    struct node *kids[FUNCTION_PARAMS_MAX];
    uint32_t count = 0;
    if (parse_take_sign(p, "(")) {
        do {
            if (count == FUNCTION_PARAMS_MAX)
                return parse_fail(p, RV_ERR_LIMIT, p->token.offset,
                                  "a function takes at most %d arguments", FUNCTION_PARAMS_MAX);
            kids[count] = parse_pipe(p);
            if (kids[count++] == NULL)
                return NULL;
        } while (parse_take_sign(p, ";"));
        if (!parse_expect_sign(p, ")", "\")\" or \";\" after an argument"))
            return NULL;
    }
    struct node **kept = RV_NEW_ARRAY(p->arena, struct node *, count + NATIVE_ARGS_MAX);
    if (kept == NULL)
        return parse_full(p);
    if (count > 0)
        memcpy(kept, kids, count * sizeof kids[0]);
    return resolve_call(p, name, offset, kept, count);
}

static struct node *parse_if(struct parser *p, size_t offset)
{
    struct node *node = node_new(p, OP_IF, offset);
    if (node == NULL)
        return NULL;
    node->a = parse_pipe(p);
    if (node->a == NULL || !parse_expect_name(p, "then", "\"then\""))
        return NULL;
    node->b = parse_pipe(p);
    if (node->b == NULL)
        return NULL;
    size_t next = p->token.offset;
    if (parse_take_name(p, "elif")) {
        if (!parse_enter(p))
            return NULL;
        node->u.c = parse_if(p, next);
        p->nest--;
        return node_finish(p, node);
    }
    node->u.c = parse_take_name(p, "else") ? parse_pipe(p)
                                           : node_finish(p, node_new(p, OP_IDENTITY, next));
    if (node->u.c == NULL || !parse_expect_name(p, "end", "\"end\" of the \"if\""))
        return NULL;
    return node_finish(p, node);
}

static struct node *parse_try(struct parser *p, size_t offset)
{
    struct node *body = parse_postfix(p, false);
    struct node *handler = body != NULL && parse_take_name(p, "catch") ? parse_postfix(p, false)
                                                                       : NULL;
    return node_pair(p, OP_TRY, offset, body, handler);
}

static struct node *parse_named(struct parser *p)
{
    size_t offset = p->token.offset;
    struct rv_str name = p->token.text;
    parse_advance(p);
    if (rv_str_is(name, "if"))
        return parse_if(p, offset);
    if (rv_str_is(name, "try"))
        return parse_try(p, offset);
    if (rv_str_is(name, "reduce"))
        return parse_fold(p, OP_REDUCE, offset);
    if (rv_str_is(name, "foreach"))
        return parse_fold(p, OP_FOREACH, offset);
    if (rv_str_is(name, "label"))
        return parse_label(p, offset);
    if (rv_str_is(name, "break"))
        return parse_break(p, offset);
    if (rv_str_is(name, "true") || rv_str_is(name, "false"))
        return node_const(p, offset, rv_json_bool(rv_str_is(name, "true")));
    if (rv_str_is(name, "null"))
        return node_const(p, offset, rv_json_null());
    if (rv_str_is(name, "import") || rv_str_is(name, "include"))
        return parse_fail(p, RV_ERR_UNSUPPORTED, offset,
                          "`%.*s` is refused: an expression cannot read files; define the function "
                          "here with \"def\"",
                          RV_STR_FMT(name));
    static const char *const reserved[] = {"then", "elif", "else",  "end", "as",
                                           "and",  "or",   "catch", "def"};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (rv_str_is(name, reserved[i]))
            return parse_fail(p, RV_ERR_INVALID, offset,
                              "unexpected \"%s\"; expected a value (a field of that name is "
                              "written .%s)",
                              reserved[i], reserved[i]);
    return parse_call(p, name, offset);
}

static struct node *parse_parens(struct parser *p)
{
    parse_advance(p);
    struct node *inner = parse_pipe(p);
    return inner != NULL && parse_expect_sign(p, ")", "\")\"") ? inner : NULL;
}

/* After "." alone: a quoted key, brackets, or the input itself. */
static struct node *parse_dot(struct parser *p, size_t offset)
{
    parse_advance(p);
    if (p->token.kind == TOKEN_QUOTE)
        return node_index(p, offset, NULL, parse_string(p, RV_STR("@text"), p->token.offset));
    if (parse_take_sign(p, "["))
        return parse_brackets(p, NULL, offset);
    return node_finish(p, node_new(p, OP_IDENTITY, offset));
}

/* "..": not a call, so that ".. (1)" is no argument. */
static struct node *parse_recurse(struct parser *p, size_t offset)
{
    struct node *items = node_new(p, OP_ITERATE, offset);
    if (items == NULL)
        return NULL;
    items->optional = true;
    return node_pair(p, OP_RECURSE, offset, node_finish(p, items), NULL);
}

static struct node *parse_sign(struct parser *p, size_t offset)
{
    if (parse_at_sign(p, "."))
        return parse_dot(p, offset);
    if (parse_at_sign(p, ".."))
        return parse_advance(p), parse_recurse(p, offset);
    if (parse_at_sign(p, "("))
        return parse_parens(p);
    if (parse_at_sign(p, "["))
        return parse_array(p, offset);
    if (parse_at_sign(p, "{"))
        return parse_advance(p), parse_object(p, offset);
    return parse_unexpected(p, "a value");
}

static struct node *parse_term(struct parser *p)
{
    size_t offset = p->token.offset;
    struct rv_str text = p->token.text;
    switch (p->token.kind) {
    case TOKEN_NAME:
        return parse_named(p);
    case TOKEN_FIELD:
        parse_advance(p);
        return node_field(p, offset, NULL, rv_json_of_str(text));
    case TOKEN_VARIABLE:
        parse_advance(p);
        return resolve_variable(p, text, offset);
    case TOKEN_FORMAT:
        parse_advance(p);
        return p->token.kind == TOKEN_QUOTE ? parse_string(p, text, offset)
                                            : parse_call(p, text, offset);
    case TOKEN_NUMBER:
        return parse_number(p);
    case TOKEN_QUOTE:
        return parse_string(p, RV_STR("@text"), offset);
    case TOKEN_SIGN:
        return parse_sign(p, offset);
    case TOKEN_END:
    case TOKEN_UNKNOWN:
        break;
    }
    return parse_unexpected(p, "a value");
}

/* ".name", ".[...]" and "[...]" behind a term; NULL without failure when there is none. */
static struct node *parse_access(struct parser *p, struct node *term, size_t offset)
{
    struct rv_str text = p->token.text;
    if (p->token.kind == TOKEN_FIELD) {
        parse_advance(p);
        return node_field(p, offset, term, rv_json_of_str(text));
    }
    if (parse_take_sign(p, "["))
        return parse_brackets(p, term, offset);
    if (!parse_take_sign(p, "."))
        return NULL;
    if (parse_take_sign(p, "["))
        return parse_brackets(p, term, offset);
    if (p->token.kind == TOKEN_QUOTE)
        return node_index(p, offset, term, parse_string(p, RV_STR("@text"), p->token.offset));
    return parse_unexpected(p, "a name after \".\"");
}

/* "?" behind an access forgives this access alone; behind anything else it is a try. */
static struct node *parse_accesses(struct parser *p)
{
    bool is_access = p->token.kind == TOKEN_FIELD || parse_at_sign(p, ".");
    struct node *term = parse_term(p);
    while (term != NULL) {
        size_t offset = p->token.offset;
        if (parse_take_sign(p, "?")) {
            if (is_access && term->op != OP_IDENTITY) {
                term->optional = true;
                term = node_finish(p, term);
            } else {
                term = node_pair(p, OP_TRY, offset, term, NULL);
            }
            is_access = false;
            continue;
        }
        struct node *access = parse_access(p, term, offset);
        if (access == NULL)
            break;
        term = access;
        is_access = true;
    }
    return p->err == RV_OK ? term : NULL;
}

struct node *parse_postfix(struct parser *p, bool may_bind)
{
    if (!parse_enter(p))
        return NULL;
    struct node *term = parse_accesses(p);
    if (term != NULL && may_bind && parse_take_name(p, "as"))
        term = parse_as(p, term);
    p->nest--;
    return term;
}

/* The operators, weakest first; "," is 1 and "|" is weaker than all. `a += b` is
 * `b as $x | a |= . + $x`, and `a = b` is `b as $x | a |= $x`, as in jq. */
struct operator_row {
    const char *text;
    unsigned strength;
    enum { LEFT, RIGHT, NONE } group; /* whether a second one of its strength may follow, and how */
    enum expr_op op;                  /* OP_NATIVE: `native`; OP_VAR: the assigned value itself */
    native_fn native;
    bool assigns;
};

static const struct operator_row operators[] = {
    {",", 1, LEFT, OP_COMMA, NULL, false},
    {"//", 2, RIGHT, OP_ALT, NULL, false},
    {"=", 3, NONE, OP_VAR, NULL, true},
    {"|=", 3, NONE, OP_UPDATE, NULL, false},
    {"+=", 3, NONE, OP_NATIVE, native_add, true},
    {"-=", 3, NONE, OP_NATIVE, native_subtract, true},
    {"*=", 3, NONE, OP_NATIVE, native_multiply, true},
    {"/=", 3, NONE, OP_NATIVE, native_divide, true},
    {"%=", 3, NONE, OP_NATIVE, native_modulo, true},
    {"//=", 3, NONE, OP_ALT, NULL, true},
    {"or", 4, LEFT, OP_OR, NULL, false},
    {"and", 5, LEFT, OP_AND, NULL, false},
    {"==", 6, NONE, OP_NATIVE, native_equal, false},
    {"!=", 6, NONE, OP_NATIVE, native_unequal, false},
    {"<", 6, NONE, OP_NATIVE, native_less, false},
    {"<=", 6, NONE, OP_NATIVE, native_less_equal, false},
    {">", 6, NONE, OP_NATIVE, native_more, false},
    {">=", 6, NONE, OP_NATIVE, native_more_equal, false},
    {"+", 7, LEFT, OP_NATIVE, native_add, false},
    {"-", 7, LEFT, OP_NATIVE, native_subtract, false},
    {"*", 8, LEFT, OP_NATIVE, native_multiply, false},
    {"/", 8, LEFT, OP_NATIVE, native_divide, false},
    {"%", 8, LEFT, OP_NATIVE, native_modulo, false},
};

enum { STRENGTH_ANY = 1, STRENGTH_NO_COMMA = 2, STRENGTH_PRODUCT = 8 };

static const struct operator_row *operator_here(const struct parser *p)
{
    if (p->token.kind != TOKEN_SIGN && p->token.kind != TOKEN_NAME)
        return NULL;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (rv_str_is(p->token.text, operators[i].text))
            return &operators[i];
    return NULL;
}

static struct node *node_assignment(struct parser *p, const struct operator_row *row, size_t offset,
                                    struct node *target, struct node *value)
{
    struct node *up = node_new(p, OP_UP, offset);
    struct node *var = node_finish(p, node_new(p, OP_VAR, offset));
    struct node *dot = node_finish(p, node_new(p, OP_IDENTITY, offset));
    if (dot == NULL)
        return NULL;
    up->level = 1;
    up->a = target;
    struct node *update = row->op == OP_VAR      ? var
                          : row->op == OP_NATIVE ? node_native(p, offset, row->native, dot, var)
                                                 : node_pair(p, row->op, offset, dot, var);
    update = node_pair(p, OP_UPDATE, offset, node_finish(p, up), update);
    return node_pair(p, OP_AS, offset, value, update);
}

/* `left` may be the comma that the next item joins. */
static struct node *node_comma(struct parser *p, size_t offset, struct node *left,
                               struct node *right, bool joins)
{
    if (joins)
        return node_join(p, left, right);
    struct node *comma = node_new(p, OP_COMMA, offset);
    if (comma == NULL || !node_add_kid(p, comma, left) || !node_add_kid(p, comma, right))
        return NULL;
    return node_finish(p, comma);
}

static struct node *parse_negative(struct parser *p)
{
    size_t offset = p->token.offset;
    parse_advance(p);
    struct node *node = parse_binary(p, STRENGTH_PRODUCT);
    if (node == NULL)
        return NULL;
    if (node->op == OP_CONST && node->v.value.type == RV_JSON_NUMBER && node->v.value.computed)
        return node_const(p, offset, rv_json_of_real(-node->v.value.u.real));
    return node_pair(p, OP_PIPE, offset, node, node_native(p, offset, native_negate, NULL, NULL));
}

static struct node *parse_operators(struct parser *p, unsigned strength_min)
{
    struct node *left = parse_at_sign(p, "-") ? parse_negative(p) : parse_postfix(p, true);
    const struct operator_row *before = NULL;
    while (left != NULL) {
        const struct operator_row *row = operator_here(p);
        if (row == NULL || row->strength < strength_min)
            break;
        size_t offset = p->token.offset;
        if (before != NULL && row->group == NONE && before->strength == row->strength)
            return parse_fail(p, RV_ERR_INVALID, offset,
                              "\"%s\" cannot follow \"%s\" directly; use parentheses%s", row->text,
                              before->text, row->assigns ? "" : ", or \"and\" between the two");
        parse_advance(p);
        struct node *right = parse_binary(p,
                                          row->group == RIGHT ? row->strength : row->strength + 1);
        if (right == NULL)
            return NULL;
        if (row->op == OP_COMMA)
            left = node_comma(p, offset, left, right, before != NULL && before->op == OP_COMMA);
        else if (row->assigns)
            left = node_assignment(p, row, offset, left, right);
        else if (row->op == OP_NATIVE)
            left = node_native(p, offset, row->native, left, right);
        else
            left = node_pair(p, row->op, offset, left, right);
        before = row;
    }
    return left;
}

bool parse_enter(struct parser *p)
{
    if (p->nest < NEST_MAX)
        return p->nest++, true;
    parse_fail(p, RV_ERR_LIMIT, p->token.offset,
               "the expression is nested too deep; split it into two steps");
    return false;
}

struct node *parse_binary(struct parser *p, unsigned strength_min)
{
    if (!parse_enter(p))
        return NULL;
    struct node *node = parse_operators(p, strength_min);
    p->nest--;
    return node;
}

struct node *parse_piped(struct parser *p, bool may_comma)
{
    size_t offset = p->token.offset;
    struct node *left = parse_binary(p, may_comma ? STRENGTH_ANY : STRENGTH_NO_COMMA);
    if (left == NULL || !parse_at_sign(p, "|"))
        return left;
    parse_advance(p);
    if (!parse_enter(p))
        return NULL;
    struct node *right = may_comma ? parse_pipe(p) : parse_piped(p, false);
    p->nest--;
    return node_pair(p, OP_PIPE, offset, left, right);
}

struct node *parse_pipe(struct parser *p)
{
    if (!parse_take_name(p, "def"))
        return parse_piped(p, true);
    if (!parse_enter(p))
        return NULL;
    struct node *rest = parse_def(p);
    p->nest--;
    return rest;
}

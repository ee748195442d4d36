/* What binds names: "as" with its patterns, reduce and foreach, label, def. */
#include "expr/parse_priv.h"

/* One step of taking a value apart: `source as $name`. The steps of a pattern form a list, newest
 * first, and become nested AS nodes around whatever uses the names. */
struct binding {
    const struct binding *before;
    struct node *source;
    size_t offset;
};

static bool bind(struct parser *p, const struct binding **list, struct rv_str name,
                 struct node *source)
{
    struct binding *binding = RV_NEW(p->arena, struct binding);
    if (source == NULL || binding == NULL || scope_push(p, SCOPE_VARIABLE, name) == NULL) {
        parse_full(p);
        return false;
    }
    *binding = (struct binding){.before = *list, .source = source, .offset = p->token.offset};
    *list = binding;
    return true;
}

static struct node *node_var(struct parser *p, uint32_t depth)
{
    struct node *node = node_new(p, OP_VAR, p->token.offset);
    if (node == NULL)
        return NULL;
    node->level = p->depth - depth;
    return node_finish(p, node);
}

static bool parse_pattern(struct parser *p, const struct binding **list, struct node *source);

/* [a, b]: `whole` is the depth of the variable that holds the array. */
static bool parse_array_pattern(struct parser *p, const struct binding **list, uint32_t whole)
{
    for (unsigned i = 0;; i++) {
        struct node *key = node_const(p, p->token.offset, rv_json_of_real(i));
        if (!parse_pattern(p, list, node_index(p, p->token.offset, node_var(p, whole), key)))
            return false;
        if (!parse_take_sign(p, ","))
            return parse_expect_sign(p, "]", "\",\" or \"]\" in the pattern");
    }
}

static struct node *parse_pattern_key(struct parser *p, struct node *whole, size_t offset)
{
    if (p->token.kind == TOKEN_NAME) {
        struct rv_json key = rv_json_of_str(p->token.text);
        parse_advance(p);
        return node_field(p, offset, whole, key);
    }
    struct node *key = NULL;
    if (p->token.kind == TOKEN_QUOTE) {
        key = parse_string(p, RV_STR("@text"), offset);
    } else if (parse_take_sign(p, "(")) {
        key = parse_pipe(p);
        if (key == NULL || !parse_expect_sign(p, ")", "\")\""))
            return NULL;
    } else {
        return parse_unexpected(p, "$name, name:, \"name\": or (expression): in the pattern");
    }
    return node_pair(p, OP_PIPE, offset, whole, node_index(p, offset, NULL, key));
}

/* {$a, b: pattern, "c": pattern, (e): pattern} */
static bool parse_object_pattern(struct parser *p, const struct binding **list, uint32_t whole)
{
    do {
        size_t offset = p->token.offset;
        struct node *source = NULL;
        if (p->token.kind == TOKEN_VARIABLE) {
            struct rv_str name = p->token.text;
            parse_advance(p);
            source = node_field(p, offset, node_var(p, whole), rv_json_of_str(name));
            if (!bind(p, list, name, source))
                return false;
            if (!parse_at_sign(p, ":"))
                continue;
            source = node_var(p, p->depth);
        } else {
            source = parse_pattern_key(p, node_var(p, whole), offset);
        }
        if (source == NULL || !parse_expect_sign(p, ":", "\":\" and a pattern") ||
            !parse_pattern(p, list, source))
            return false;
    } while (parse_take_sign(p, ","));
    return parse_expect_sign(p, "}", "\",\" or \"}\" in the pattern");
}

static bool parse_pattern(struct parser *p, const struct binding **list, struct node *source)
{
    if (p->err != RV_OK)
        return false;
    if (p->token.kind == TOKEN_VARIABLE) {
        struct rv_str name = p->token.text;
        parse_advance(p);
        return bind(p, list, name, source);
    }
    bool array = parse_at_sign(p, "[");
    if (!array && !parse_at_sign(p, "{")) {
        parse_unexpected(p, "$name, [pattern] or {pattern} after \"as\"");
        return false;
    }
    if (!parse_enter(p))
        return false;
    parse_advance(p);
    bool done = bind(p, list, RV_STR(""), source) &&
                (array ? parse_array_pattern(p, list, p->depth)
                       : parse_object_pattern(p, list, p->depth));
    p->nest--;
    return done;
}

static struct node *wrap_bindings(struct parser *p, const struct binding *list, struct node *body)
{
    for (; list != NULL && body != NULL; list = list->before)
        body = node_pair(p, OP_AS, list->offset, list->source, body);
    return body;
}

/* After "as", with the value it takes. */
struct node *parse_as(struct parser *p, struct node *source)
{
    const struct scope *scope = p->scope;
    uint32_t depth = p->depth;
    const struct binding *list = NULL;
    if (!parse_pattern(p, &list, source))
        return NULL;
    if (parse_at_sign(p, "?"))
        return parse_fail(p, RV_ERR_UNSUPPORTED, p->token.offset,
                          "alternative patterns (?//) are not supported yet; test the type with "
                          "\"if\"");
    if (!parse_expect_sign(p, "|", "\"|\" and the expression that uses the variable"))
        return NULL;
    struct node *body = parse_pipe(p);
    p->scope = scope;
    p->depth = depth;
    return wrap_bindings(p, list, body);
}

/* reduce and foreach. Their item is one link; a pattern takes it apart around each of the
 * expressions that see it. The start value sees none of this. */
struct node *parse_fold(struct parser *p, enum expr_op op, size_t offset)
{
    struct node *node = node_new(p, op, offset);
    const struct scope *scope = p->scope;
    uint32_t depth = p->depth;
    if (node == NULL || (node->a = parse_postfix(p, false)) == NULL ||
        !parse_expect_name(p, "as", "\"as $name\""))
        return NULL;
    bool plain = p->token.kind == TOKEN_VARIABLE;
    const struct binding *list = NULL;
    if (scope_push(p, SCOPE_VARIABLE, plain ? p->token.text : RV_STR("")) == NULL)
        return NULL;
    if (plain)
        parse_advance(p);
    else if (!parse_pattern(p, &list, node_var(p, p->depth)))
        return NULL;
    struct parser inner = *p;
    p->scope = scope;
    p->depth = depth;
    if (!parse_expect_sign(p, "(", "\"(\" and the start value") ||
        (node->b = parse_pipe(p)) == NULL || !parse_expect_sign(p, ";", "\";\" and the update"))
        return NULL;
    p->scope = inner.scope;
    p->depth = inner.depth;
    node->u.c = wrap_bindings(p, list, parse_pipe(p));
    if (op == OP_FOREACH && parse_take_sign(p, ";"))
        node->d = wrap_bindings(p, list, parse_pipe(p));
    p->scope = scope;
    p->depth = depth;
    if (p->err != RV_OK || !parse_expect_sign(p, ")", "\")\""))
        return NULL;
    return node_finish(p, node);
}

struct node *parse_label(struct parser *p, size_t offset)
{
    const struct scope *scope = p->scope;
    uint32_t depth = p->depth;
    if (p->token.kind != TOKEN_VARIABLE)
        return parse_unexpected(p, "$name after \"label\"");
    if (scope_push(p, SCOPE_LABEL, p->token.text) == NULL)
        return NULL;
    parse_advance(p);
    struct node *body = parse_expect_sign(p, "|", "\"|\"") ? parse_pipe(p) : NULL;
    p->scope = scope;
    p->depth = depth;
    return body == NULL ? NULL : node_pair(p, OP_LABEL, offset, body, NULL);
}

struct node *parse_break(struct parser *p, size_t offset)
{
    if (p->token.kind != TOKEN_VARIABLE)
        return parse_unexpected(p, "$name of the label after \"break\"");
    struct rv_str name = p->token.text;
    parse_advance(p);
    return resolve_label(p, name, offset);
}

static bool parse_param(struct parser *p, struct function *function)
{
    bool by_value = p->token.kind == TOKEN_VARIABLE;
    if (!by_value && p->token.kind != TOKEN_NAME) {
        parse_unexpected(p, "the name of a parameter");
        return false;
    }
    if (function->params_count == FUNCTION_PARAMS_MAX) {
        parse_fail(p, RV_ERR_LIMIT, p->token.offset, "a function takes at most %d parameters",
                   FUNCTION_PARAMS_MAX);
        return false;
    }
    if (scope_push(p, SCOPE_CLOSURE, p->token.text) == NULL ||
        (by_value && scope_push(p, SCOPE_VARIABLE, p->token.text) == NULL))
        return false;
    function->by_value[function->params_count++] = by_value;
    parse_advance(p);
    return true;
}

/* After "def": the definition, then what it is defined for. */
struct node *parse_def(struct parser *p)
{
    const struct scope *before = p->scope;
    uint32_t depth = p->depth;
    struct function *function = RV_NEW(p->arena, struct function);
    if (p->token.kind != TOKEN_NAME)
        return parse_unexpected(p, "the name of a function after \"def\"");
    struct scope *scope = function ? scope_push(p, SCOPE_FUNCTION, p->token.text) : NULL;
    if (scope == NULL)
        return parse_full(p);
    *function = (struct function){.depth = depth};
    scope->function = function;
    parse_advance(p);
    if (parse_take_sign(p, "(")) {
        do {
            if (!parse_param(p, function))
                return NULL;
        } while (parse_take_sign(p, ";"));
        if (!parse_expect_sign(p, ")", "\")\" or \";\" after a parameter"))
            return NULL;
    }
    struct node *body = parse_expect_sign(p, ":", "\":\" and the body") ? parse_pipe(p) : NULL;
    if (body == NULL || !parse_expect_sign(p, ";", "\";\" after the body of the function"))
        return NULL;
    function->body = body;
    p->scope = scope;
    p->depth = depth;
    struct node *rest = parse_pipe(p);
    p->scope = before;
    return rest;
}

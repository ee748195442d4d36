/* Names become numbers here. A variable, a parameter and a label are found at run time by walking a
 * fixed count of links up the environment, which the compiler knows because scopes nest.
 *
 * A builtin that is written in jq is expanded at its call: its source is parsed right there, and
 * its parameters stand for the nodes of the arguments. Where such a parameter is used below a
 * binding of the source itself, an UP node takes the argument back to the environment it was
 * written for. So an expanded builtin costs no call, and `single` is known as exactly as for an
 * expression that was written out. */
#include "expr/parse_priv.h"

#include "base/assert.h"
#include "base/suggest.h"

#include <stdarg.h>

void *parse_fail(struct parser *p, enum rv_err err, size_t offset, const char *format, ...)
{
    if (p->err != RV_OK)
        return NULL;
    p->err = err;
    if (p->fault == NULL)
        return NULL;
    va_list args;
    va_start(args, format);
    p->fault->offset = p->expanding ? p->expanding_at : offset;
    p->fault->message = rv_arena_vprintf(p->arena, format, args);
    va_end(args);
    if (p->fault->message.at == NULL)
        p->err = p->arena->refused;
    return NULL;
}

void *parse_full(struct parser *p)
{
    enum rv_err err = p->arena->refused == RV_ERR_MEMORY ? RV_ERR_MEMORY : RV_ERR_LIMIT;
    return parse_fail(p, err, p->token.offset,
                      "the expression needs more memory than allowed; shorten it");
}

struct node *node_new(struct parser *p, enum expr_op op, size_t offset)
{
    if (p->err != RV_OK)
        return NULL;
    struct node *node = RV_NEW(p->arena, struct node);
    if (node == NULL)
        return parse_full(p);
    node->op = (uint8_t)op;
    node->offset = p->expanding ? p->expanding_at : (uint32_t)offset;
    return node;
}

static bool is_single(const struct node *node)
{
    return node == NULL || node->single;
}

static bool kids_single(const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (!is_single(node->v.kids[i]))
            return false;
    return true;
}

static bool call_single(const struct node *node)
{
    const struct function *function = node->u.function;
    if (function->body == NULL || !function->body->single)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (function->by_value[i] && !node->v.kids[i]->single)
            return false;
    return true;
}

static bool node_single(const struct node *node)
{
    if (node->optional)
        return false;
    switch ((enum expr_op)node->op) {
    case OP_IDENTITY:
    case OP_CONST:
    case OP_VAR:
    case OP_GLOBAL:
    case OP_ARRAY:
    case OP_UPDATE:
        return true;
    case OP_ITERATE:
    case OP_COMMA:
    case OP_FOREACH:
    case OP_LABEL:
    case OP_BREAK:
    case OP_CLOSURE:
    case OP_EMPTY:
    case OP_PATH:
    case OP_RECURSE:
    case OP_RANGE:
    case OP_LIMIT:
    case OP_FIRST:
    case OP_LAST:
    case OP_COUNT:
        return false;
    case OP_FIELDS:
    case OP_UP:
    case OP_GETPATH:
        return is_single(node->a);
    case OP_INDEX:
    case OP_PIPE:
    case OP_AND:
    case OP_OR:
    case OP_ALT:
    case OP_AS:
        return is_single(node->a) && is_single(node->b);
    case OP_SLICE:
    case OP_IF:
        return is_single(node->a) && is_single(node->b) && is_single(node->u.c);
    case OP_TRY:
        return node->b != NULL && node->a->single && node->b->single;
    case OP_REDUCE:
        return is_single(node->b);
    case OP_OBJECT:
    case OP_NATIVE:
        return kids_single(node);
    case OP_CALL:
        return call_single(node);
    }
    return false;
}

static uint16_t node_height(const struct node *node)
{
    unsigned height = 0;
    if (node->op == OP_OBJECT || node->op == OP_NATIVE || node->op == OP_CALL ||
        node->op == OP_COMMA) {
        for (uint32_t i = 0; i < node->count; i++)
            if (node->v.kids[i] != NULL && node->v.kids[i]->height > height)
                height = node->v.kids[i]->height;
    } else {
        const struct node *kids[] = {node->a, node->b, node->u.c, node->d};
        for (size_t i = 0; i < 4; i++)
            if (kids[i] != NULL && kids[i]->height > height)
                height = kids[i]->height;
    }
    return (uint16_t)(height + 1);
}

static struct node *height_check(struct parser *p, struct node *node)
{
    if (node->height > HEIGHT_MAX)
        return parse_fail(p, RV_ERR_LIMIT, node->offset,
                          "the expression is nested deeper than %d levels; split it with "
                          "\"... as $x | ...\" or into two steps",
                          HEIGHT_MAX);
    return node;
}

struct node *node_finish(struct parser *p, struct node *node)
{
    if (p->err != RV_OK || node == NULL)
        return NULL;
    rv_assert(node->op != OP_NATIVE || node->count <= NATIVE_ARGS_MAX);
    node->single = node_single(node);
    node->height = node_height(node);
    return height_check(p, node);
}

struct node *node_join(struct parser *p, struct node *comma, struct node *kid)
{
    if (p->err != RV_OK || !node_add_kid(p, comma, kid))
        return NULL;
    if (kid->height >= comma->height)
        comma->height = (uint16_t)(kid->height + 1);
    return height_check(p, comma);
}

struct node *node_pair(struct parser *p, enum expr_op op, size_t offset, struct node *a,
                       struct node *b)
{
    struct node *node = node_new(p, op, offset);
    if (node == NULL)
        return NULL;
    node->a = a;
    node->b = b;
    return node_finish(p, node);
}

bool node_add_kid(struct parser *p, struct node *node, struct node *kid)
{
    uint32_t n = node->count;
    if ((n & (n - 1)) == 0) { /* 0, 1, 2, 4, 8, ...: full */
        struct node **kids = RV_NEW_ARRAY(p->arena, struct node *, n == 0 ? 1 : 2 * (size_t)n);
        if (kids == NULL)
            return parse_full(p), false;
        if (n > 0)
            memcpy(kids, node->v.kids, n * sizeof kids[0]);
        node->v.kids = kids;
    }
    node->v.kids[n] = kid;
    node->count = n + 1;
    return true;
}

struct node *node_const(struct parser *p, size_t offset, struct rv_json value)
{
    struct node *node = node_new(p, OP_CONST, offset);
    if (node == NULL)
        return NULL;
    node->v.value = value;
    return node_finish(p, node);
}

struct node *node_native(struct parser *p, size_t offset, native_fn native, struct node *first,
                         struct node *second)
{
    struct node *node = node_new(p, OP_NATIVE, offset);
    if (node == NULL)
        return NULL;
    node->u.native = native;
    node->count = (uint32_t)((first != NULL) + (second != NULL));
    node->v.kids = RV_NEW_ARRAY(p->arena, struct node *, node->count + 1);
    if (node->v.kids == NULL)
        return parse_full(p);
    node->v.kids[0] = first;
    if (second != NULL)
        node->v.kids[1] = second;
    return node_finish(p, node);
}

struct scope *scope_push(struct parser *p, enum scope_kind kind, struct rv_str name)
{
    struct scope *scope = RV_NEW(p->arena, struct scope);
    if (scope == NULL)
        return parse_full(p);
    if (kind == SCOPE_VARIABLE || kind == SCOPE_CLOSURE || kind == SCOPE_LABEL)
        p->depth++;
    *scope = (struct scope){.up = p->scope, .kind = kind, .name = name, .depth = p->depth};
    p->scope = scope;
    return scope;
}

static struct node *node_level(struct parser *p, enum expr_op op, size_t offset, uint32_t level)
{
    struct node *node = node_new(p, op, offset);
    if (node == NULL)
        return NULL;
    node->level = level;
    return node_finish(p, node);
}

/* The known names of one kind, for a suggestion. */
static const char *suggest_variable(struct parser *p, struct rv_str name)
{
    size_t count = p->variables_count;
    for (const struct scope *s = p->scope; s != NULL; s = s->up)
        count += s->kind == SCOPE_VARIABLE;
    const char **names = RV_NEW_ARRAY(p->arena, const char *, count + 1);
    if (names == NULL)
        return NULL;
    size_t n = 0;
    for (const struct scope *s = p->scope; s != NULL; s = s->up)
        if (s->kind == SCOPE_VARIABLE && s->name.len > 0)
            names[n++] = rv_arena_str(p->arena, s->name).at;
    for (size_t i = 0; i < p->variables_count; i++)
        names[n++] = rv_arena_str(p->arena, p->variables[i]).at;
    for (size_t i = 0; i < n; i++)
        if (names[i] == NULL)
            return NULL;
    return rv_suggest(name, names);
}

struct node *resolve_variable(struct parser *p, struct rv_str name, size_t offset)
{
    const struct scope *s = p->scope;
    for (; s != NULL && s->kind != SCOPE_WALL; s = s->up)
        if (s->kind == SCOPE_VARIABLE && rv_str_eq(s->name, name))
            return node_level(p, OP_VAR, offset, p->depth - s->depth);
    for (size_t i = 0; s == NULL && i < p->variables_count; i++)
        if (rv_str_eq(p->variables[i], name))
            return node_level(p, OP_GLOBAL, offset, (uint32_t)i);
    if (rv_str_is(name, "ENV"))
        return parse_fail(p, RV_ERR_UNSUPPORTED, offset,
                          "$ENV is refused: an expression may not read the environment; pass the "
                          "value in the task's input");
    if (rv_str_is(name, "__loc__"))
        return parse_fail(p, RV_ERR_UNSUPPORTED, offset, "$__loc__ is not supported");
    const char *near = suggest_variable(p, name);
    return parse_fail(p, RV_ERR_INVALID, offset, "unknown variable $%.*s%s%s%s", RV_STR_FMT(name),
                      near ? ": did you mean $" : "; bind it with \"... as $name | ...\"",
                      near ? near : "", near ? "?" : "");
}

struct node *resolve_label(struct parser *p, struct rv_str name, size_t offset)
{
    for (const struct scope *s = p->scope; s != NULL && s->kind != SCOPE_WALL; s = s->up)
        if (s->kind == SCOPE_LABEL && rv_str_eq(s->name, name))
            return node_level(p, OP_BREAK, offset, p->depth - s->depth);
    return parse_fail(
        p, RV_ERR_INVALID, offset,
        "this break is not inside a label $%.*s; write \"label $%.*s | ...\" before it",
        RV_STR_FMT(name), RV_STR_FMT(name));
}

/* The names of all functions of any arity, for a suggestion; those with "_" are our own. */
static const char *suggest_function(struct parser *p, struct rv_str name)
{
    size_t count = 0;
    while (builtin_at(count) != NULL)
        count++;
    for (const struct scope *s = p->scope; s != NULL; s = s->up)
        count++;
    const char **names = RV_NEW_ARRAY(p->arena, const char *, count + 1);
    if (names == NULL)
        return NULL;
    size_t n = 0;
    for (const struct scope *s = p->scope; s != NULL; s = s->up)
        if (s->kind == SCOPE_FUNCTION || s->kind == SCOPE_CLOSURE)
            if ((names[n] = rv_arena_str(p->arena, s->name).at) != NULL)
                n++;
    for (size_t i = 0; builtin_at(i) != NULL; i++) {
        uint8_t kind = builtin_at(i)->kind;
        if (builtin_at(i)->name[0] != '_' && kind != BUILTIN_REFUSED && kind != BUILTIN_LATER)
            names[n++] = builtin_at(i)->name;
    }
    return rv_suggest(name, names);
}

/* The counts of arguments with which `name` is known, as bits. */
static uint32_t known_arities(struct parser *p, struct rv_str name)
{
    uint32_t arities = 0;
    for (const struct scope *s = p->scope; s != NULL && s->kind != SCOPE_WALL; s = s->up)
        if (s->kind == SCOPE_FUNCTION && rv_str_eq(s->name, name))
            arities |= 1u << s->function->params_count;
    for (size_t i = 0; builtin_at(i) != NULL; i++) {
        const struct builtin *b = builtin_at(i);
        if (rv_str_is(name, b->name) && b->kind != BUILTIN_LATER && b->kind != BUILTIN_REFUSED)
            arities |= 1u << b->arity;
    }
    return arities;
}

static struct node *wrong_count(struct parser *p, struct rv_str name, size_t offset,
                                uint32_t arities, uint32_t count)
{
    struct rv_str takes = RV_STR("");
    unsigned last = 0;
    for (unsigned i = 0; i <= FUNCTION_PARAMS_MAX; i++) {
        if ((arities >> i & 1) == 0)
            continue;
        takes = rv_arena_printf(p->arena, "%.*s%s%u", RV_STR_FMT(takes), takes.len ? " or " : "",
                                i);
        last = i;
    }
    return parse_fail(p, RV_ERR_INVALID, offset, "`%.*s` takes %.*s argument%s, not %u%s",
                      RV_STR_FMT(name), RV_STR_FMT(takes), last == 1 ? "" : "s", (unsigned)count,
                      last > 1 ? "; separate the arguments with \";\"" : "");
}

static struct node *unknown_function(struct parser *p, struct rv_str name, size_t offset,
                                     uint32_t count)
{
    uint32_t arities = known_arities(p, name);
    if (arities != 0)
        return wrong_count(p, name, offset, arities, count);
    const char *near = suggest_function(p, name);
    if (name.len > 0 && name.at[0] == '@')
        return parse_fail(p, RV_ERR_INVALID, offset, "unknown format %.*s%s%s%s", RV_STR_FMT(name),
                          near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
    return parse_fail(p, RV_ERR_INVALID, offset, "unknown function `%.*s/%u`%s%s%s",
                      RV_STR_FMT(name), (unsigned)count, near ? ": did you mean `" : "",
                      near ? near : "", near ? "`?" : "");
}

/* Parses a builtin's source where it is called; see the top of this file. */
static struct node *expand_source(struct parser *p, const struct builtin *builtin, size_t offset,
                                  struct node **kids)
{
    static const char params[][2] = {"f", "g", "h"};
    struct parser outer = *p;
    p->expanding_at = p->expanding ? p->expanding_at : (uint32_t)offset;
    p->expanding = true;
    bool pushed = scope_push(p, SCOPE_WALL, RV_STR("")) != NULL;
    for (uint32_t i = 0; pushed && i < builtin->arity; i++) {
        struct scope *scope = scope_push(p, SCOPE_ARGUMENT, rv_str_of(params[i]));
        pushed = scope != NULL;
        if (pushed)
            scope->argument = kids[i];
    }
    struct node *node = NULL;
    if (pushed && parse_enter(p)) {
        p->lexer = (struct lexer){rv_str_of(builtin->source), 0};
        parse_advance(p);
        node = parse_pipe(p);
    }
    outer.err = p->err;
    *p = outer;
    return node;
}

static struct node *call_node(struct parser *p, enum expr_op op, size_t offset, struct node **kids)
{
    struct node *node = node_new(p, op, offset);
    if (node == NULL)
        return NULL;
    node->a = kids[0];
    node->b = kids[0] != NULL ? kids[1] : NULL;
    node->u.c = node->b != NULL ? kids[2] : NULL;
    return node_finish(p, node);
}

static struct node *call_builtin(struct parser *p, const struct builtin *builtin, size_t offset,
                                 struct node **kids)
{
    switch ((enum builtin_kind)builtin->kind) {
    case BUILTIN_NATIVE:
        break;
    case BUILTIN_NODE:
        return call_node(p, (enum expr_op)builtin->op, offset, kids);
    case BUILTIN_SOURCE:
        return expand_source(p, builtin, offset, kids);
    case BUILTIN_REFUSED:
        return parse_fail(p, RV_ERR_UNSUPPORTED, offset, "`%s` is refused: %s", builtin->name,
                          builtin->source);
    case BUILTIN_LATER:
        return parse_fail(p, RV_ERR_UNSUPPORTED, offset, "`%s`: %s", builtin->name,
                          builtin->source);
    }
    struct node *node = node_new(p, OP_NATIVE, offset);
    if (node == NULL)
        return NULL;
    node->u.native = builtin->native;
    node->count = builtin->arity;
    node->v.kids = kids;
    bool pattern = builtin->native == native_test && kids[0]->op == OP_CONST &&
                   kids[0]->v.value.type == RV_JSON_STRING &&
                   text_pattern(rv_json_str(&kids[0]->v.value)) != '\0';
    if (pattern && p->pattern == NULL)
        p->pattern = node;
    return node_finish(p, node);
}

static struct node *call_function(struct parser *p, const struct function *function, size_t offset,
                                  struct node **kids)
{
    struct node *node = node_new(p, OP_CALL, offset);
    if (node == NULL)
        return NULL;
    node->u.function = function;
    node->level = p->depth - function->depth;
    node->count = function->params_count;
    node->v.kids = kids;
    return node_finish(p, node);
}

/* A name without arguments that is a parameter; NULL without failure when `s` is none. */
static struct node *call_parameter(struct parser *p, const struct scope *s, size_t offset)
{
    if (s->kind == SCOPE_CLOSURE)
        return node_level(p, OP_CLOSURE, offset, p->depth - s->depth);
    if (s->kind != SCOPE_ARGUMENT)
        return NULL;
    if (p->depth == s->depth)
        return s->argument;
    struct node *up = node_new(p, OP_UP, offset);
    if (up == NULL)
        return NULL;
    up->level = p->depth - s->depth;
    up->a = s->argument;
    return node_finish(p, up);
}

struct node *resolve_call(struct parser *p, struct rv_str name, size_t offset, struct node **kids,
                          uint32_t count)
{
    for (const struct scope *s = p->scope; s != NULL && s->kind != SCOPE_WALL; s = s->up) {
        if (!rv_str_eq(s->name, name))
            continue;
        if (s->kind == SCOPE_FUNCTION && s->function->params_count == count)
            return call_function(p, s->function, offset, kids);
        struct node *parameter = count == 0 ? call_parameter(p, s, offset) : NULL;
        if (parameter != NULL || p->err != RV_OK)
            return parameter;
    }
    for (size_t i = 0; builtin_at(i) != NULL; i++) {
        const struct builtin *b = builtin_at(i);
        bool visible = b->name[0] != '_' || p->expanding;
        if (visible && b->arity == count && rv_str_is(name, b->name))
            return call_builtin(p, b, offset, kids);
    }
    return unknown_function(p, name, offset, count);
}

#include "expr/parse_priv.h"
#include "expr/utf8_priv.h"

#include "base/limits.h"

static struct node *parse_whole(struct parser *p)
{
    struct rv_str text = p->lexer.text;
    if (text.len > RV_DEFINITION_BYTES_MAX)
        return parse_fail(p, RV_ERR_LIMIT, 0, "the expression is longer than %d bytes",
                          RV_DEFINITION_BYTES_MAX);
    size_t valid = utf8_valid(text);
    if (valid < text.len)
        return parse_fail(p, RV_ERR_INVALID, valid, "the expression is not valid UTF-8 here");
    parse_advance(p);
    struct node *root = parse_pipe(p);
    if (root != NULL && p->token.kind != TOKEN_END)
        return parse_unexpected(p, "the end of the expression, or an operator");
    return root;
}

enum rv_err rv_expr_compile(struct rv_arena *arena, struct rv_str text,
                            const struct rv_str *variables, size_t variables_count,
                            struct rv_expr **ret_expr, struct rv_expr_fault *ret_fault)
{
    struct parser p = {.arena = arena,
                       .variables = variables,
                       .variables_count = variables_count,
                       .fault = ret_fault};
    /* The compiled expression points into its text, so it keeps a copy. */
    struct rv_str kept = rv_arena_str(arena, text.at ? text : RV_STR(""));
    struct rv_expr *expr = kept.at ? RV_NEW(arena, struct rv_expr) : NULL;
    if (ret_fault != NULL)
        *ret_fault = (struct rv_expr_fault){.message = RV_STR_NONE, .value = rv_json_null()};
    if (expr == NULL)
        return parse_full(&p), p.err;
    p.lexer.text = kept;
    expr->root = parse_whole(&p);
    expr->pattern = p.pattern;
    if (p.err == RV_OK)
        *ret_expr = expr;
    return p.err;
}

bool rv_expr_has_pattern(const struct rv_expr *expr, struct rv_arena *arena,
                         struct rv_expr_fault *ret_fault)
{
    if (expr->pattern == NULL)
        return false;
    struct rv_str text = rv_json_str(&expr->pattern->v.kids[0]->v.value);
    *ret_fault = (struct rv_expr_fault){
        .offset = expr->pattern->offset,
        .message = rv_arena_printf(arena, PATTERN_REFUSED, RV_STR_FMT(text), text_pattern(text)),
        .value = rv_json_null()};
    return true;
}

static bool any_several(const struct node *const *nodes, size_t count);

static bool node_several(const struct node *node)
{
    const struct node *kids[] = {node->a, node->b, node->u.c};
    switch ((enum expr_op)node->op) {
    case OP_ITERATE:
    case OP_COMMA:
    case OP_RANGE:
    case OP_RECURSE:
        return true;
    case OP_FIELDS:
    case OP_UP:
    case OP_GETPATH:
    case OP_PATH:
        return any_several(kids, 1);
    case OP_INDEX:
    case OP_PIPE:
    case OP_AND:
    case OP_OR:
    case OP_ALT:
    case OP_AS:
    case OP_TRY:
        return any_several(kids, 2);
    case OP_SLICE:
    case OP_IF:
        return any_several(kids, 3);
    case OP_FOREACH:
        return any_several(kids, 1);
    case OP_REDUCE:
        return any_several(kids + 1, 1);
    case OP_OBJECT:
    case OP_NATIVE:
        return any_several((const struct node *const *)node->v.kids, node->count);
    case OP_LIMIT:
        return any_several(kids + 1, 1) &&
               !(node->a->op == OP_CONST && rv_json_real(&node->a->v.value) <= 1);
    case OP_IDENTITY:
    case OP_CONST:
    case OP_VAR:
    case OP_GLOBAL:
    case OP_ARRAY:
    case OP_UPDATE:
    case OP_LABEL:
    case OP_BREAK:
    case OP_CALL:
    case OP_CLOSURE:
    case OP_EMPTY:
    case OP_FIRST:
    case OP_LAST:
    case OP_COUNT:
        break;
    }
    return false;
}

static bool any_several(const struct node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (nodes[i] != NULL && node_several(nodes[i]))
            return true;
    return false;
}

bool rv_expr_gives_several(const struct rv_expr *expr)
{
    return node_several(expr->root);
}

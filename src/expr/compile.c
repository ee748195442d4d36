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
        return unexpected(p, "the end of the expression, or an operator");
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
    if (p.err == RV_OK)
        *ret_expr = expr;
    return p.err;
}

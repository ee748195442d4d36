/* parse_priv.h - the compiler's state, shared by the grammar and by what resolves names. */
#ifndef RV_EXPR_PARSE_PRIV_H
#define RV_EXPR_PARSE_PRIV_H

#include "expr/lex_priv.h"
#include "expr/node_priv.h"

/* How deep the syntax may nest (a pair of parentheses is three levels) and how high a tree of nodes
 * may grow, so that what compiles can be evaluated; test_expr_limits measures the stack of both. */
enum { NEST_MAX = 300, HEIGHT_MAX = 150 };

enum scope_kind {
    SCOPE_VARIABLE, /* a link that holds a value */
    SCOPE_CLOSURE,  /* a link that holds a parameter's expression */
    SCOPE_LABEL,    /* a link that holds a label */
    SCOPE_FUNCTION, /* no link: a definition */
    SCOPE_ARGUMENT, /* no link: a parameter of an expanded builtin */
    SCOPE_WALL      /* no link: an expanded builtin sees no names beyond */
};

/* One name, newest first. Those that have a link in the environment at run time know its number. */
struct scope {
    const struct scope *up;
    enum scope_kind kind;
    struct rv_str name;
    uint32_t depth; /* links in the environment below and with this one */
    const struct function *function;
    struct node *argument;
};

struct parser {
    struct rv_arena *arena;
    struct lexer lexer;
    struct token token;
    const struct scope *scope;
    uint32_t depth; /* links of the environment at this place */
    uint32_t nest;
    const struct rv_str *variables;
    size_t variables_count;
    const struct node *fields; /* the last run of keys that was made; NULL: none */
    bool expanding;            /* inside a builtin's source: */
    uint32_t expanding_at;     /* all nodes stand where it is called */
    const struct node
        *pattern;    /* the first test() that is given a regular expression; NULL: none */
    enum rv_err err; /* the first failure, with its fault: */
    struct rv_expr_fault *fault;
};

/* Every function that gives a node gives NULL after a failure, which sticks in the parser. */

/* parse.c: tokens, operators, terms. */
void parse_advance(struct parser *p);
bool parse_at_sign(const struct parser *p, const char *sign);
bool parse_at_name(const struct parser *p, const char *name);
/* Passes the sign or name if it stands here. */
bool parse_take_sign(struct parser *p, const char *sign);
bool parse_take_name(struct parser *p, const char *name);
/* As take, and a fault that says what was `expected` if it does not. */
bool parse_expect_sign(struct parser *p, const char *sign, const char *expected);
bool parse_expect_name(struct parser *p, const char *name, const char *expected);
/* A fault at the token that stands where something else was expected; NULL. */
void *parse_unexpected(struct parser *p, const char *expected);
/* One level deeper, or false; the caller takes it back with nest--. */
bool parse_enter(struct parser *p);
struct node *parse_pipe(struct parser *p);
struct node *parse_piped(struct parser *p, bool may_comma);
struct node *parse_binary(struct parser *p, unsigned strength_min);
struct node *parse_postfix(struct parser *p, bool may_bind);
/* target.key and target[key]; a missing target is ".". */
struct node *node_field(struct parser *p, size_t offset, struct node *target, struct rv_json key);
struct node *node_index(struct parser *p, size_t offset, struct node *target, struct node *key);

/* literal.c */
struct node *parse_number(struct parser *p);
struct node *parse_string(struct parser *p, struct rv_str format, size_t offset);
struct node *parse_array(struct parser *p, size_t offset);
struct node *parse_object(struct parser *p, size_t offset);

/* bind.c: each after its keyword. */
struct node *parse_as(struct parser *p, struct node *source);
struct node *parse_fold(struct parser *p, enum expr_op op, size_t offset);
struct node *parse_label(struct parser *p, size_t offset);
struct node *parse_break(struct parser *p, size_t offset);
struct node *parse_def(struct parser *p);

/* resolve.c */
void *parse_fail(struct parser *p, enum rv_err err, size_t offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void *parse_full(struct parser *p);
struct node *node_new(struct parser *p, enum expr_op op, size_t offset);
/* Computes what follows from the children; call it when they are in place. */
struct node *node_finish(struct parser *p, struct node *node);
struct node *node_pair(struct parser *p, enum expr_op op, size_t offset, struct node *a,
                       struct node *b);
bool node_add_kid(struct parser *p, struct node *node, struct node *kid);
/* One more item of a finished comma, in time that does not grow with those that it has. */
struct node *node_join(struct parser *p, struct node *comma, struct node *kid);
struct node *node_const(struct parser *p, size_t offset, struct rv_json value);
struct node *node_native(struct parser *p, size_t offset, native_fn native, struct node *first,
                         struct node *second);
/* A name that the code to the end of its scope sees, and its link in the environment. */
struct scope *scope_push(struct parser *p, enum scope_kind kind, struct rv_str name);
struct node *resolve_variable(struct parser *p, struct rv_str name, size_t offset);
struct node *resolve_label(struct parser *p, struct rv_str name, size_t offset);
struct node *resolve_call(struct parser *p, struct rv_str name, size_t offset, struct node **kids,
                          uint32_t count);

#endif

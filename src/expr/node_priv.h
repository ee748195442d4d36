/* node_priv.h - what the compiler makes of an expression: nodes, functions, builtins. */
#ifndef RV_EXPR_NODE_PRIV_H
#define RV_EXPR_NODE_PRIV_H

#include "expr/expr.h"

/* Children are a, b, c in the order in which the syntax names them; a missing target means ".". */
enum expr_op {
    OP_IDENTITY,
    OP_CONST,   /* value */
    OP_FIELDS,  /* a.k1.k2...: keys[count]; only one key when it is optional */
    OP_INDEX,   /* a[b] */
    OP_SLICE,   /* a[b:c], b or c may be missing */
    OP_ITERATE, /* a[] */
    OP_VAR,     /* the variable `level` links up */
    OP_GLOBAL,  /* the caller's variable `level` */
    OP_PIPE,    /* a | b */
    OP_COMMA,   /* kids[count], one after the other */
    OP_AND,     /* a and b */
    OP_OR,      /* a or b */
    OP_ALT,     /* a // b */
    OP_IF,      /* if a then b else c */
    OP_TRY,     /* try a catch b; b may be missing */
    OP_AS,      /* a as $x | b */
    OP_REDUCE,  /* reduce a as $x (b; c) */
    OP_FOREACH, /* foreach a as $x (b; c; d) */
    OP_LABEL,   /* label $x | a */
    OP_BREAK,   /* break $x, `level` links up */
    OP_ARRAY,   /* [a]; a may be missing */
    OP_OBJECT,  /* {...}: kids[count], key and value in turn */
    OP_NATIVE,  /* a function of the input and of kids[count], all values */
    OP_CALL,    /* a defined function with kids[count] as its arguments */
    OP_CLOSURE, /* a call of the parameter `level` links up */
    OP_UP,      /* a, seen from `level` links up: the argument of an expanded builtin */
    OP_EMPTY,
    OP_PATH,    /* path(a) */
    OP_GETPATH, /* getpath(a) */
    OP_RECURSE, /* recurse(a) */
    OP_RANGE,   /* range(a; b; c) */
    OP_LIMIT,   /* limit(a; b) */
    OP_FIRST,   /* first(a) */
    OP_LAST,    /* last(a) */
    OP_UPDATE,  /* a |= b */
    OP_COUNT
};

struct ev;

/* A function of values: `args` are what its arguments gave. False when it raised or hit a limit. */
typedef bool (*native_fn)(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                          struct rv_json *ret);

struct node {
    uint8_t op;      /* enum expr_op */
    bool single;     /* gives exactly one output, or fails */
    bool optional;   /* an access with "?": where it fails it gives nothing */
    uint16_t height; /* of the tree below */
    uint32_t offset; /* into the text */
    uint32_t count;  /* of keys or kids */
    uint32_t level;
    struct node *a;
    struct node *b;
    union {
        struct node *c;
        native_fn native;
        const struct function *function;
    } u;
    struct node *d;
    union {
        struct node **kids; /* OBJECT: key and value by turns; no value: the input's of that key */
        struct rv_json *keys;
        struct rv_json value;
    } v;
};

enum { FUNCTION_PARAMS_MAX = 12, NATIVE_ARGS_MAX = 3 };

/* A `def`. Its body sees above the scope in which it was defined a link for each parameter's
 * expression, and behind that of a "$x" one for its value: f($x) is f(x) with `x as $x | ...`. */
struct function {
    uint32_t params_count;
    bool by_value[FUNCTION_PARAMS_MAX]; /* "$x": the call is made for each of its outputs */
    uint32_t depth;                     /* links of the scope it is defined in */
    struct node *body;
};

struct rv_expr {
    const struct node *root;
    const struct node
        *pattern; /* the first test() that is given a regular expression; NULL: none */
};

/* How a builtin is done: natively as a function of values, as a node of its own, as an expression
 * over its parameters f, g and h, or not at all (`source` says why). */
enum builtin_kind { BUILTIN_NATIVE, BUILTIN_NODE, BUILTIN_SOURCE, BUILTIN_REFUSED, BUILTIN_LATER };

struct builtin {
    const char *name;
    uint8_t kind; /* enum builtin_kind */
    uint8_t arity;
    uint8_t op; /* BUILTIN_NODE: enum expr_op */
    native_fn native;
    const char *source;
};

/* NULL at the end of the table. */
const struct builtin *builtin_at(size_t i);

/* The native functions of the table, and those of the operators. */
#define NATIVE(function, name, arity)                                                              \
    bool function(struct ev *ev, const struct rv_json *in, const struct rv_json *args,             \
                  struct rv_json *ret);
#define NODE(op, name, arity)
#define SOURCE(name, arity, source)
#define REFUSED(name, arity, why)
#define LATER(name, arity, why)
#include "expr/tbl/builtin.def"
#undef NATIVE
#undef NODE
#undef SOURCE
#undef REFUSED
#undef LATER

/* The first character that means something in a regular expression; 0: it is plain text. */
char text_pattern(struct rv_str text);
/* What is wrong with such a test(). */
#define PATTERN_REFUSED                                                                            \
    "test(\"%.*s\"): regular expressions are not supported yet; for plain text with \"%c\" use "   \
    "contains, startswith or endswith"

#endif

/* definition_priv.h - the compiled form of a definition: nodes, scopes, templates, policies. */
#ifndef RV_WORKFLOW_DEFINITION_PRIV_H
#define RV_WORKFLOW_DEFINITION_PRIV_H

#include "base/arena.h"
#include "base/str.h"
#include "expr/expr.h"
#include "json/json.h"
#include "workflow/definition.h"

#include <stdbool.h>
#include <stdint.h>

enum rv_node_kind {
    RV_NODE_WORKFLOW,
    RV_NODE_CALL,
    RV_NODE_DO,
    RV_NODE_SET,
    RV_NODE_SWITCH,
    RV_NODE_TRY,
    RV_NODE_RAISE,
    RV_NODE_WAIT
};

/* Which list of its owner a scope is: the steps of a workflow, do or try; of a catch; of a
 * compensation, which is the root of a flow of its own. */
enum rv_scope_role { RV_ROLE_BODY, RV_ROLE_CATCH, RV_ROLE_UNDO };

/* A list of steps that run one after another. */
struct rv_scope {
    uint32_t owner; /* node */
    enum rv_scope_role role;
    uint32_t count;
    uint32_t *nodes;
};

enum rv_directive_kind { RV_THEN_CONTINUE, RV_THEN_EXIT, RV_THEN_END, RV_THEN_NODE };

struct rv_directive {
    enum rv_directive_kind kind;
    uint32_t node; /* RV_THEN_NODE: in the same scope */
};

/* The variables of DSL expressions, in the order in which they are passed; $undo is Reeve's. */
enum rv_variable {
    RV_VAR_CONTEXT,
    RV_VAR_INPUT,
    RV_VAR_OUTPUT,
    RV_VAR_TASK,
    RV_VAR_WORKFLOW,
    RV_VAR_RUNTIME,
    RV_VAR_UNDO,
    RV_VAR_COUNT
};
#define RV_VAR_BIT(variable) (1u << (variable))

/* One expression, with only those variables that its text names. */
struct rv_expression {
    const struct rv_expr *expr; /* NULL: the identity `.` */
    struct rv_str text;
    uint32_t uses;         /* RV_VAR_BITs, passed first and in their order */
    uint32_t errors_count; /* then the errors of these try nodes */
    uint32_t *errors;
};

enum rv_template_kind {
    RV_TEMPLATE_CONSTANT,
    RV_TEMPLATE_EXPRESSION,
    RV_TEMPLATE_URI, /* `constant` is a string in which {name} stands for a property of the input */
    RV_TEMPLATE_ARRAY,
    RV_TEMPLATE_OBJECT
};

/* A JSON tree in which strings of the form `${ }` are computed. Whatever holds no expression is one
 * constant, whose bytes were written when the definition was loaded. */
struct rv_template {
    enum rv_template_kind kind;
    struct rv_json constant;
    struct rv_str text; /* CONSTANT */
    struct rv_expression *expression;
    uint32_t count;
    struct rv_template *items; /* ARRAY, OBJECT */
    struct rv_json *keys;      /* OBJECT */
};

struct rv_case {
    struct rv_expression *when; /* NULL: the default */
    struct rv_directive then;
};

enum rv_backoff { RV_BACKOFF_CONSTANT, RV_BACKOFF_LINEAR, RV_BACKOFF_EXPONENTIAL };

/* A constant, or computed when it begins to count. */
struct rv_duration {
    int64_t ms;
    struct rv_template *computed; /* NULL: ms */
};

/* A DSL retry (DSL reference, Retry). */
struct rv_retry {
    struct rv_expression *when;
    struct rv_expression *except_when;
    struct rv_duration delay;
    enum rv_backoff backoff;
    int64_t count_max;   /* -1: no limit */
    int64_t attempt_ms;  /* 0: no limit */
    int64_t duration_ms; /* 0: no limit */
    int64_t jitter_from_ms;
    int64_t jitter_to_ms;
};

struct rv_catch {
    struct rv_str type; /* the filter's strings; absent: any */
    struct rv_str instance;
    struct rv_str title;
    struct rv_str detail;
    bool has_status;
    bool has_then;
    bool keeps_error; /* an expression in `do` uses it */
    int64_t status;
    struct rv_str variable;
    struct rv_expression *when;
    struct rv_expression *except_when;
    struct rv_retry *retry; /* NULL: none */
    struct rv_scope *body;  /* NULL: no `do` */
    struct rv_directive then;
};

/* raise.c: the last part of a standard error's type; absent if it is none. */
struct rv_str rv_error_standard_name(struct rv_str type);
/* The last parts of all standard types (DSL reference, Error), ended by NULL. */
const char *const *rv_error_standard_names(void);

struct rv_raise_task {
    struct rv_template *type;
    struct rv_template *title;  /* NULL: none */
    struct rv_template *detail; /* NULL: none */
    int64_t status;
};

/* One task of the DSL. Fields of other kinds are zero. */
struct rv_node {
    enum rv_node_kind kind;
    uint32_t index;               /* in its scope */
    const struct rv_scope *scope; /* NULL: the workflow */
    struct rv_str name;
    struct rv_str reference;
    const struct rv_json *source; /* as written: $task.definition */
    struct rv_expression *condition;
    struct rv_template *input_from;
    struct rv_template *output_as;
    struct rv_template *export_as;
    struct rv_directive then;
    struct rv_duration timeout; /* 0: none */
    bool again;                 /* can be visited more than once */
    bool keeps_raw;             /* its later expressions look at $task */
    bool keeps_input;           /* ... at $input */
    bool keeps_from;            /* its `input.from` looks at $undo: asked anew, it begins there */
    enum rv_undo_way undo_way;
    struct rv_scope *undo; /* RV_UNDO_STEPS */
    struct rv_policy policy;
    struct rv_scope *body;     /* WORKFLOW, DO, TRY */
    struct rv_str agent;       /* CALL */
    struct rv_str endpoint;    /* CALL of http: the URI template as written; absent: computed */
    bool safe;                 /* CALL of http: GET or HEAD */
    struct rv_template *value; /* CALL: with (NULL: {}); SET */
    struct rv_case *cases;     /* SWITCH */
    uint32_t cases_count;
    struct rv_catch *caught;      /* TRY */
    struct rv_raise_task *raised; /* RAISE */
    struct rv_duration wait;      /* WAIT */
};

struct rv_definition {
    struct rv_json document; /* a copy: $workflow.definition */
    struct rv_str space;
    struct rv_str name;
    struct rv_str version;
    uint32_t count;         /* of nodes, without the workflow */
    struct rv_node **nodes; /* count + 1 */
    uint32_t several_count; /* expressions that may give more outputs than the one that counts */
    struct rv_str several[RV_DEFINITION_SEVERAL_MAX]; /* pointers to the first of them */
};

#endif

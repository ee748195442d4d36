/* flow_priv.h - a move of the interpreter under way: open records, the value in hand, what is
 * next. */
#ifndef RV_WORKFLOW_FLOW_PRIV_H
#define RV_WORKFLOW_FLOW_PRIV_H

#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/pace.h"
#include "workflow/definition_priv.h"
#include "workflow/flow.h"
#include "workflow/payload_priv.h"

/* A call node with a number: of a step of it that raised before it completed, kept by the try that
 * will retry it; or of how often it was visited. */
struct rv_pair {
    uint32_t node;
    uint32_t number;
};

struct rv_pairs {
    struct rv_pair *items;
    uint32_t count;
    size_t room;
};

/* What is remembered of the node at which control stands and of each owner of the scopes around it.
 * In the frames stands only what a later move looks at. */
struct rv_record {
    struct rv_record *outer;
    uint32_t node;
    struct rv_payload raw;   /* $task.input */
    struct rv_payload input; /* $input */
    struct rv_payload error; /* TRY, in its catch: the catch's variable */
    int64_t started_at;
    int64_t timeout_ms;         /* as it was when the node began; 0: none */
    int64_t deadline;           /* of `timeout`; 0: none */
    int64_t attempt_deadline;   /* TRY: of limit.attempt.duration; 0: none */
    int64_t first_at;           /* TRY: of the first error that was retried */
    int64_t retries;            /* TRY */
    struct rv_pairs unfinished; /* TRY */
};

/* How control stands in recorded frames. */
enum rv_stand {
    RV_STAND_CALL,  /* at a call, its reply is awaited */
    RV_STAND_WAIT,  /* at a wait */
    RV_STAND_RETRY, /* at a try, before its body begins again */
    RV_STAND_ENTER, /* before a node, out of budget */
    RV_STAND_FAILED /* at a node that raised an error which nobody took */
};

enum rv_next { RV_NEXT_ENTER, RV_NEXT_FINISH, RV_NEXT_LEAVE, RV_NEXT_RAISE, RV_NEXT_STOP };

struct rv_flow {
    struct rv_flow_env *env;
    const struct rv_definition *definition;
    struct rv_flow_stop *stop;
    struct rv_arena *arena;
    struct rv_buf text;     /* scratch, owned by the move */
    size_t bytes_begun;     /* taken of the arena before the move */
    size_t memory_max;      /* what evaluations may find taken since then */
    size_t bytes_kept;      /* taken of the arena before the template under evaluation */
    struct rv_arena copies; /* owned: values of its expressions, copied out */
    size_t copied_bytes;    /* of those, when written, at least */
    enum rv_next next;
    struct rv_record *top;        /* of the node at hand, or of the owner of the scope left */
    uint32_t node;                /* the node at hand */
    struct rv_payload value;      /* its raw input, or raw output, or what is left with */
    struct rv_directive then;     /* after FINISH */
    const struct rv_scope *scope; /* LEAVE */
    struct rv_payload context;
    bool context_changed;
    struct rv_payload workflow_input;
    struct rv_payload undo;
    struct rv_payload raw_output; /* $task.output, while output.as and export.as are computed */
    struct rv_payload output;     /* $output, while export.as is computed */
    struct rv_json workflow;      /* $workflow, once built */
    bool has_workflow;
    bool moved;        /* something ran in this move: a budget may stop it */
    uint32_t in_a_row; /* inline steps since the last call or wait */
    struct rv_pairs visits;
    struct rv_pairs abandoned; /* left for good */
    struct rv_payload error;   /* on its way up */
    uint32_t error_node;       /* where it came from */
    struct rv_record *raised;  /* what was open when it was raised */
    bool fatal;                /* no catch takes it */
    bool timed_out;            /* it is that of a scope whose time is over */
    struct rv_pairs pending;   /* uncompleted steps of what the error has left so far */
    uint32_t ran[RV_INLINE_STEPS_PER_COMMAND];
};

/* Within the room RV_ERR_INVALID means: an error of the DSL was raised, and `next` says so. */

RV_CHECK enum rv_err rv_flow_full(const struct rv_flow *flow);
static inline const struct rv_node *rv_flow_node(const struct rv_flow *flow, uint32_t node)
{
    rv_assert(node <= flow->definition->count);
    return flow->definition->nodes[node];
}
/* Work that is about to be done, about 10 ns a unit; what an expression does counts by itself. It
 * changes nothing of what the flow gives: only how long it runs until others have their turn. BUSY:
 * given up. */
RV_CHECK static inline enum rv_err rv_flow_spend(struct rv_flow *flow, size_t units)
{
    return rv_pace_spend(flow->env->pace, (int64_t)units) ? RV_OK : RV_ERR_BUSY;
}
/* What one decision may run is used up, in time, in steps or in memory: it goes on in another. */
static inline bool rv_flow_over(const struct rv_flow *flow)
{
    enum { LEFT_PART = 4 }; /* of the memory: the rest is for the next step */
    const struct rv_flow_env *env = flow->env;
    rv_assert(flow->arena->bytes_taken >= flow->bytes_begun);
    size_t left = flow->arena->bytes_taken - flow->bytes_begun;
    return env->fuel <= 0 || env->inline_steps == 0 || left > flow->memory_max / LEFT_PART;
}
/* The payload as a tree on the arena; rv_flow_parse makes it. */
RV_CHECK enum rv_err rv_flow_parse(struct rv_flow *flow, struct rv_payload *payload,
                                   struct rv_json *ret_tree);
RV_CHECK static inline enum rv_err rv_flow_tree(struct rv_flow *flow, struct rv_payload *payload,
                                                struct rv_json *ret_tree)
{
    if (!payload->has_tree)
        return rv_flow_parse(flow, payload, ret_tree);
    *ret_tree = payload->tree;
    return RV_OK;
}
/* The text in the scratch buffer, on the arena. */
RV_CHECK enum rv_err rv_flow_take_text(struct rv_flow *flow, struct rv_str *ret_text);
RV_CHECK enum rv_err rv_flow_payload_text(struct rv_flow *flow, const struct rv_payload *payload,
                                          struct rv_str *ret_text);
/* records.c: opens a record for the node, inside of the one on top. */
RV_CHECK enum rv_err rv_flow_open(struct rv_flow *flow, uint32_t node);
/* Closes the newest; its unfinished steps are abandoned. */
RV_CHECK enum rv_err rv_flow_close(struct rv_flow *flow);
/* Moves all of `from` to the end of `to`. */
RV_CHECK enum rv_err rv_flow_keep(struct rv_flow *flow, struct rv_pairs *to, struct rv_pairs *from);
RV_CHECK enum rv_err rv_flow_keep_one(struct rv_flow *flow, struct rv_pairs *to, uint32_t node,
                                      uint32_t number);

/* evaluate.c: `dot` is what the expression is evaluated on, variables come from the flow. The
 * result lives on the arena, has its bytes and keeps the limits of a payload. */
RV_CHECK enum rv_err rv_flow_evaluate(struct rv_flow *flow, const struct rv_template *template,
                                      struct rv_payload *dot, struct rv_payload *ret_value);
void rv_flow_memory_init(struct rv_flow *flow);
/* jq's truth: all but null and false. */
RV_CHECK enum rv_err rv_flow_test(struct rv_flow *flow, const struct rv_expression *expression,
                                  struct rv_payload *dot, bool *ret_truth);

/* frames.c */
RV_CHECK enum rv_err rv_frames_write(struct rv_flow *flow, enum rv_stand stand,
                                     const struct rv_payload *value, struct rv_str *ret_frames);
RV_CHECK enum rv_err rv_frames_read(struct rv_flow *flow, struct rv_str frames,
                                    enum rv_stand *ret_stand);

/* raise.c: raisers set the flow up to raise and return RV_ERR_INVALID (see above). */
enum rv_standard_error {
    RV_ERROR_EXPRESSION,
    RV_ERROR_TIMEOUT,
    RV_ERROR_RUNTIME,
    RV_ERROR_COMMUNICATION,
    RV_ERROR_VALIDATION
};
RV_CHECK enum rv_err rv_flow_raise_standard(struct rv_flow *flow, enum rv_standard_error kind,
                                            uint32_t node, const char *title, struct rv_str detail);
/* A raise task; an agent's error (absent members filled in). */
RV_CHECK enum rv_err rv_flow_raise_task(struct rv_flow *flow, uint32_t node);
RV_CHECK enum rv_err rv_flow_raise_reply(struct rv_flow *flow, struct rv_str error);
/* Carries the error from the node on top to the catch that takes it, or out. */
RV_CHECK enum rv_err rv_flow_carry(struct rv_flow *flow);

/* deadlines.c */
/* The earliest deadline of all open scopes; 0: none. */
int64_t rv_flow_deadline(const struct rv_flow *flow);
/* The duration now; a value that is none raises an error of the node on top. */
RV_CHECK enum rv_err rv_flow_duration(struct rv_flow *flow, const struct rv_duration *duration,
                                      struct rv_payload *dot, int64_t *ret_ms);

/* flow.c */
void rv_flow_init(struct rv_flow *flow, struct rv_flow_env *env, struct rv_flow_stop *stop);
void rv_flow_enter_scope(struct rv_flow *flow, const struct rv_scope *scope,
                         const struct rv_payload *input);
/* Begins the body of the try on top (again). */
void rv_flow_begin_try(struct rv_flow *flow);
RV_CHECK enum rv_err rv_flow_stop_at(struct rv_flow *flow, enum rv_flow_stop_kind kind,
                                     enum rv_stand stand, const struct rv_payload *value);

#endif

/* flow.h - the interpreter: moves one line of control of a task from one stop to the next. */
#ifndef RV_WORKFLOW_FLOW_H
#define RV_WORKFLOW_FLOW_H

#include "base/arena.h"
#include "base/err.h"
#include "base/pace.h"
#include "base/str.h"
#include "json/json.h"
#include "workflow/definition.h"

#include <stdbool.h>
#include <stdint.h>

/* A flow runs inside one decision: it starts or goes on from recorded *frames*, runs steps that
 * need no agent (set, switch, do, try, raise, if, ...) and stops where the outside is needed. The
 * frames are a short JSON text, opaque to everyone else, recorded in the row of the step at which
 * it stopped: which scopes are open (with their inputs where a later expression needs them, their
 * retry counts and deadlines), and where in them control stands. Nothing is ever replayed.
 *
 * Every payload crosses as JSON bytes; what no expression touches is never parsed. */

struct rv_flow_env {
    const struct rv_definition *definition;
    struct rv_arena *arena; /* everything in the stop lives here, or in bytes passed in */
    int64_t now;
    struct rv_str task;           /* $workflow.id */
    int64_t started_at;           /* $workflow.startedAt */
    struct rv_str workflow_input; /* the task's raw input: $workflow.input */
    struct rv_str context;        /* $context; absent: null */
    struct rv_str undo;           /* $undo while compensating; absent: the variable is null */
    int64_t fuel;                 /* for this command, counted down (limits.h) */
    uint32_t inline_steps;        /* how many steps it may run here, counted down */
    size_t memory_max;            /* for evaluations; 0: RV_DECISION_BYTES_MAX */
    struct rv_pace *pace;         /* who may interrupt it; NULL: nobody */
};

enum rv_flow_stop_kind {
    RV_FLOW_CALL,   /* an agent is needed: request `input` of `agent` */
    RV_FLOW_WAIT,   /* nothing to do until `until` (a wait, or the delay of a DSL retry) */
    RV_FLOW_BUDGET, /* fuel, memory or inline steps are used up: go on at once in the next batch */
    RV_FLOW_DONE,   /* the scope that was started has ended with `output` */
    RV_FLOW_RAISED  /* `error` was raised and no catch took it */
};

struct rv_flow_stop {
    enum rv_flow_stop_kind kind;
    uint32_t node;           /* where it stopped; RAISED: where the error came from */
    struct rv_str reference; /* of that node: "/do/0/reserveStock" */
    struct rv_str iteration; /* path of loop indexes, "" outside of loops */
    uint32_t visit;          /* CALL: from 1; a new visit is a new step */
    uint32_t reopen;         /* CALL: the uncompleted step of this call that a retry kept: the same
                              * step, if it asks for the same `input`; 0: new */
    struct rv_str frames;    /* to record and hand back; RAISED: to rv_flow_settle alone, perhaps
                               * absent */
    struct rv_str data;      /* CALL: the DSL task's transformed input; to record and hand back */
    struct rv_str agent;     /* CALL */
    struct rv_str input;     /* CALL: what the agent gets: `with`, evaluated; {} when absent */
    int64_t until;           /* WAIT */
    int64_t deadline;        /* CALL, WAIT, BUDGET: earliest DSL timeout in force; 0: none */
    struct rv_str output;    /* DONE */
    bool timed_out;          /* RAISED: since the time of a scope around it was over */
    struct rv_str raised;    /* of _expire and _ask_anew: the error raised, caught or not */
    struct rv_str error;     /* RAISED: {"type","status","title","detail","instance"} */
    struct rv_str context;   /* the new $context, absent when unchanged */
    uint32_t inline_count;   /* steps that ran here since the last stop */
    struct rv_str inline_first; /* the reference of the first of them; absent when none */
    struct rv_str inline_run;   /* their references, a JSON array of at most 256 and 1 MiB */
    uint32_t *abandoned;        /* numbers of uncompleted steps that this move left for good */
    uint32_t abandoned_count;
};

/* All but the last two: OK with *ret_stop filled. CORRUPT: the frames or the payload do not fit the
 * definition (the task is escalated). LIMIT: a cap of the arena is reached; MEMORY: there is no
 * more; nothing may be recorded. BUSY: it was given up by its pace. */

/* Starts the workflow itself on its raw input. */
RV_CHECK enum rv_err rv_flow_start(struct rv_flow_env *env, struct rv_str input,
                                   struct rv_flow_stop *ret_stop);
/* Starts the compensation steps of `node` (undo way RV_UNDO_STEPS) on `data`, the transformed input
 * that the forward step had; env->undo is its $undo. */
RV_CHECK enum rv_err rv_flow_start_undo(struct rv_flow_env *env, uint32_t node, struct rv_str data,
                                        struct rv_flow_stop *ret_stop);
/* Goes on after a WAIT or a BUDGET stop. */
RV_CHECK enum rv_err rv_flow_go_on(struct rv_flow_env *env, struct rv_str frames,
                                   struct rv_flow_stop *ret_stop);
/* The call at which it stopped has the output `output`. */
RV_CHECK enum rv_err rv_flow_complete(struct rv_flow_env *env, struct rv_str frames,
                                      struct rv_str data, struct rv_str output,
                                      struct rv_flow_stop *ret_stop);
/* The node that raised an error has this output all the same, as an operator says: neither its
 * `output.as` nor its `export.as` is computed. */
RV_CHECK enum rv_err rv_flow_settle(struct rv_flow_env *env, struct rv_str frames,
                                    struct rv_str output, struct rv_flow_stop *ret_stop);
/* The call at which it stopped raises `error` (an object; type, status, title and instance are
 * filled in where absent). `number` is the step's, so that a DSL retry can reopen it. */
RV_CHECK enum rv_err rv_flow_raise(struct rv_flow_env *env, struct rv_str frames, uint32_t number,
                                   struct rv_str error, struct rv_flow_stop *ret_stop);
/* The call at which it stopped is not the step that `reopen` names: it asks for something else.
 * *ret_stop has nothing but `frames` and `visit`. */
RV_CHECK enum rv_err rv_flow_visit_anew(struct rv_flow_env *env, struct rv_str frames,
                                        struct rv_flow_stop *ret_stop);
/* The call at which it stopped is not under way, and env->undo tells more than when it did: what it
 * asks for is evaluated once more. *ret_stop has `input` and `data`; or `raised`, and then it is a
 * stop like any other. `number` as above. */
RV_CHECK enum rv_err rv_flow_ask_anew(struct rv_flow_env *env, struct rv_str frames,
                                      struct rv_str data, uint32_t number,
                                      struct rv_flow_stop *ret_stop);
/* The stop's deadline has passed (env->now): raises the timeout error at the outermost scope whose
 * deadline has passed; a catch outside of that scope may take it. `number` as above, 0: a WAIT. */
RV_CHECK enum rv_err rv_flow_expire(struct rv_flow_env *env, struct rv_str frames, uint32_t number,
                                    struct rv_flow_stop *ret_stop);
/* It goes on where it stopped at an operator's word: scopes around it whose time is over have their
 * whole time again. *ret_stop has nothing but `frames` and `deadline`. */
RV_CHECK enum rv_err rv_flow_renew(struct rv_flow_env *env, struct rv_str frames,
                                   struct rv_flow_stop *ret_stop);
/* Nothing was watched since `from`: deadlines later than that come `by_ms` later. *ret_stop has
 * nothing but `frames` and `deadline`. */
RV_CHECK enum rv_err rv_flow_postpone(struct rv_flow_env *env, struct rv_str frames, int64_t from,
                                      int64_t by_ms, struct rv_flow_stop *ret_stop);
/* The uncompleted steps that these frames keep for a DSL retry: what an undo must look at too. */
RV_CHECK enum rv_err rv_flow_unfinished(struct rv_flow_env *env, struct rv_str frames,
                                        uint32_t **ret_numbers, uint32_t *ret_count);
/* Whether these frames keep that step for a DSL retry. Needs no definition. */
RV_CHECK enum rv_err rv_flow_keeps(struct rv_arena *arena, struct rv_str frames, uint32_t number,
                                   bool *ret_keeps);

#endif

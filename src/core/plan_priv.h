/* plan_priv.h - a plan under construction: rows copied on first touch, nothing of the view
 * changed. */
#ifndef RV_CORE_PLAN_PRIV_H
#define RV_CORE_PLAN_PRIV_H

#include "base/prng.h"
#include "core/decide.h"
#include "workflow/flow.h"

/* What one decision has undone, and used for it. */
struct undo_piece {
    uint32_t pops;
    uint32_t inline_steps;
    int64_t fuel;
};

/* The decision under way. Every function below returns RV_DECIDED to go on; any other verdict goes
 * straight back to the caller of rv_decide, who throws the plan away. */
struct draft {
    const struct rv_view *view;
    const struct rv_command *command;
    struct rv_arena *arena;
    struct rv_plan *plan;
    struct rv_prng prng;
    int64_t spread_ms;  /* drawn for the step's timeouts, and so for its next attempt; 0: not yet */
    size_t bytes_begun; /* taken of the arena before it */
    bool undoing;       /* undo_next is at work: what ends meanwhile leaves the rest to it */
    struct undo_piece undo;
    bool outgrown; /* a fixed part of the plan is full: nothing of it may be used */
    bool starved;  /* there was no memory for a message: the plan is no good without it */
};

/* The step's row to read; NEED_STEP when it is neither planned nor loaded, UNREADABLE when there is
 * none, or none that can be read. */
enum rv_verdict draft_look(struct draft *d, uint32_t number, const struct rv_step **ret_step);
/* NEED_STEP with all of them that draft_look would ask for one by one. */
enum rv_verdict draft_want(struct draft *d, const uint32_t *numbers, size_t count);
/* The step's row to change. Marks the task as changed. */
enum rv_verdict draft_step(struct draft *d, uint32_t number, struct rv_step **ret_step);
/* A new row with the next number. */
enum rv_verdict draft_step_new(struct draft *d, struct rv_step **ret_step);

/* Where control stands. Adding over RV_OPEN_STEPS_MAX is a programmer's error: the language
 * has one line of control. */
void draft_open_add(struct draft *d, uint32_t number);
void draft_open_remove(struct draft *d, uint32_t number);
bool draft_open_has(const struct draft *d, uint32_t number);

void draft_alert(struct draft *d, uint32_t step, enum rv_alert_kind kind, struct rv_str message);
/* Puts the step's newest attempt, which has ended without its result, among the ended ones. */
void draft_archive(struct draft *d, const struct rv_step *step);
/* The step's error is one that is no attempt's: its newest attempt keeps its own. */
void draft_error(struct rv_step *step, struct rv_str error);
void draft_late(struct draft *d, const struct rv_step *step, uint32_t attempt,
                enum rv_late_reason reason);

/* message.c: what the submitter is told. */
/* The only way in which a task's state moves: the submitter is told of it. */
void draft_task_move(struct draft *d, enum rv_task_state to);
void message_received(struct draft *d);
/* The task is in error, and waits for the operator whom the alert calls. */
void message_escalated(struct draft *d, const struct rv_alert *alert);
/* An agent has completed the step. */
void message_completed(struct draft *d, const struct rv_step *step);

/* Uniform in [ms, ms + ms / part]. */
int64_t draft_jitter(struct draft *d, int64_t ms, int64_t part);

/* attempt.c: one attempt's life. */
/* The live attempt of the step has ended. */
void attempt_close(struct draft *d, struct rv_step *step, enum rv_attempt_state how);
/* Nobody has heard of how the attempt went: an answer that counts as lost may have arrived, a
 * process that counts as gone may live. */
void attempt_unheard(struct draft *d, const struct rv_step *step);
/* The newest attempt may have had, or has had, this effect: the step has it then, too. */
void attempt_effect(struct rv_step *step, enum rv_effect effect);
/* The policy's lease, or the default. */
int64_t attempt_lease(const struct rv_policy *policy);
enum rv_verdict attempt_assign(struct draft *d);
enum rv_verdict attempt_reply(struct draft *d);
enum rv_verdict attempt_renew(struct draft *d);
enum rv_verdict attempt_end(struct draft *d);
/* The attempt is revoked: unless it ends soon, an operator is called. */
void attempt_revoked_watch(struct draft *d, struct rv_step *step);
/* It did not end soon. */
void attempt_revoked_call(struct draft *d, struct rv_step *step);
/* The open or revoked attempt of `step` has passed its instant (RULES 5, 6). */
enum rv_verdict attempt_expire(struct draft *d, struct rv_step *step);

/* late.c: a `done` that does not count (RULES 6). */
/* The reply of the command is one for this attempt of the step. */
enum rv_verdict late_effect(struct draft *d, struct rv_step *step, uint32_t attempt);
/* The flow has given the step up for good; it may have been done late before. */
void late_left(struct draft *d, const struct rv_step *step);
/* The step is undone: what was said of it is over. */
void late_over(struct draft *d, const struct rv_step *step);

/* ladder.c: the failure ladder (RULES 5). */
/* The step's attempt ended as transient: count it, and repeat, cool down or raise. */
enum rv_verdict ladder_fail(struct draft *d, struct rv_step *step, struct rv_str error,
                            int64_t retry_after_ms);
/* Pending again from `ready_at`, nothing counted; from then on it waits. */
void ladder_repeat(struct rv_step *step, int64_t ready_at);
/* The same for a step that was not tried: it keeps its place in line, and its alert. */
void ladder_back(struct rv_step *step, int64_t ready_at);
/* From now on, unless somebody takes the pending step in time, an operator is called. */
void ladder_watch(struct rv_step *step, int64_t now);
/* The step waits for an open circuit and was not tried. */
void ladder_circuit_open(struct draft *d, struct rv_step *step, int64_t wait_ms);
/* The step raises `error` into the workflow. */
enum rv_verdict ladder_raise(struct draft *d, struct rv_step *step, struct rv_str error);
/* Calls an operator to a step at which so many instances died. */
void ladder_poison_call(struct draft *d, const struct rv_step *step);
void ladder_count_death(struct draft *d, struct rv_step *step);

/* advance.c: from a stop of the interpreter to rows. */
enum rv_verdict advance_env(struct draft *d, enum rv_direction direction, uint32_t undoes,
                            struct rv_flow_env *ret_env);
/* `left` is the step that control has left (NULL at the start), already out of the open ones. */
enum rv_verdict advance(struct draft *d, enum rv_direction direction, uint32_t undoes,
                        struct rv_step *left, const struct rv_flow_stop *stop);
enum rv_verdict advance_error(enum rv_err err);
/* The data with which the flow of a call goes on. A step whose data are the task's input, byte for
 * byte, keeps none of its own: a large input is stored once. */
struct rv_str step_data(const struct draft *d, const struct rv_step *step);
void step_data_keep(const struct draft *d, struct rv_step *step, struct rv_str data);

/* undo.c: revocation, the chain of what may have had an effect, its undoing (RULES 6). */
void undo_chain(struct draft *d, struct rv_step *step);
/* The step at the head of the chain leaves it. */
void undo_unlink(struct draft *d, const struct rv_step *step);
enum rv_verdict undo_begin(struct draft *d);
/* The step at the head of the chain; undo_head is not 0. UNREADABLE where it does not fit there. */
enum rv_verdict undo_head_look(struct draft *d, const struct rv_step **ret_head);
/* Goes on with the undo if nothing stands in its way. */
enum rv_verdict undo_next(struct draft *d);
/* Whether all that may have had an effect can be undone. */
enum undo_hindrance { UNDO_FREE, UNDO_BY_HAND, UNDO_NEVER };
/* What stands in the way of an undo, as far as it is known before the open attempts have ended, and
 * the step; UNDO_NEVER comes before UNDO_BY_HAND. */
enum rv_verdict undo_hindered(struct draft *d, enum undo_hindrance *ret_how, uint32_t *ret_step);
/* It may turn out that the undo came when the point of no return had been passed: then the task
 * goes forward again. */
enum rv_verdict undo_may_be_taken_back(struct draft *d, bool *ret_may);
/* The compensation of `number` has ended well. */
enum rv_verdict undo_ended(struct draft *d, uint32_t number);
/* The task's way is forward again. The revoked step was under way: it is left in error. */
void undo_withdraw(struct draft *d, struct rv_step *step);
/* The revoked attempt of `step` is over: its effect is known as far as it will be. */
enum rv_verdict undo_settle(struct draft *d, struct rv_step *step, enum rv_effect effect);
/* A step that nothing will go on with goes onto the chain if it may have had an effect. */
enum rv_verdict undo_chain_left(struct draft *d, uint32_t number);
/* The steps that the stop left for good go onto the chain, but for `raiser` (may be NULL). */
enum rv_verdict undo_chain_abandoned(struct draft *d, const struct rv_flow_stop *stop,
                                     const struct rv_step *raiser);
/* The steps that a DSL retry keeps for later, in the frames of `step`, which goes on no more: they
 * have left the open ones, but not their effects, and go onto the chain. */
enum rv_verdict undo_chain_unfinished(struct draft *d, const struct rv_step *step);
struct rv_str undo_facts(struct draft *d, const struct rv_step *step);
/* More is known of the step than when its compensation, which may be under way, was told of it. */
enum rv_verdict undo_learn(struct draft *d, uint32_t number);
/* What waits, and was told less of what it undoes than is known by now, asks anew. */
enum rv_verdict undo_ask_anew(struct draft *d);

/* fail.c: an error that no catch took. `raiser` is the step that raised it, NULL for the workflow
 * itself; `run` is the row of the inline steps that ran until then, NULL: there is none. */
enum rv_verdict fail_task(struct draft *d, enum rv_direction direction, uint32_t undoes,
                          struct rv_step *raiser, struct rv_step *run,
                          const struct rv_flow_stop *stop);
void fail_escalate(struct draft *d, enum rv_direction direction, uint32_t step,
                   enum rv_alert_kind kind, struct rv_str message);

/* history.c: the command is accepted; who gave it, when and why goes into the plan. Nothing for a
 * command that is no operator's. */
void history_note(struct draft *d);

/* decide.c: everything of the task that is due runs. */
enum rv_verdict decide_wake_all(struct draft *d);

/* operate.c, resubmit.c, settle.c: the operator's commands (RULES 6, 7). */
/* The command has passed its own checks. Every operator's command calls it once, before it changes
 * anything or evaluates anything of the workflow: for a command that only asks, the decision ends
 * here. UNREADABLE: what the command would go on from cannot be read. */
enum rv_verdict operate_accept(struct draft *d);
enum rv_verdict operate_refuse(struct draft *d, struct rv_str message);
enum rv_verdict operate_refuse_state(struct draft *d, const char *verb, const char *cure);
/* Who and why stays with the row: an error of that type and title. None: there is no room. */
struct rv_str operate_error(struct draft *d, const char *type, const char *title);
/* The same type and title, whoever and why. */
bool operate_error_is(struct rv_str error, const char *type, const char *title);
/* The task was abandoned: what it did was left on purpose. */
bool task_is_abandoned(const struct rv_task *task);
/* The newest word about the step is an operator's, that it did nothing. */
bool finding_is_nothing(const struct rv_step *step);
/* ... that it was done. */
bool finding_is_done(const struct rv_step *step);
enum rv_verdict resubmit_decide(struct draft *d);
enum rv_verdict settle_decide(struct draft *d);
/* That nothing is left of a step can be known when every attempt that ended unheard is over. */
enum rv_verdict settle_refuse_unquiet(struct draft *d);
/* Scopes whose time was over while the task was escalated have it again. */
enum rv_verdict resubmit_time_again(struct draft *d, struct rv_step *step);
/* An escalated task continues, in the direction in which it was escalated. */
void task_go_on(struct draft *d);
enum rv_verdict operate_retry(struct draft *d);
enum rv_verdict operate_suspend(struct draft *d);
enum rv_verdict operate_resume(struct draft *d);
/* The step that `redo` replaces is undone: it begins, and the task goes forward again. */
enum rv_verdict resubmit_redo_begin(struct draft *d);
/* Nothing takes the place of what is undone. */
enum rv_verdict resubmit_redo_drop(struct draft *d);
enum rv_verdict operate_undo(struct draft *d);
enum rv_verdict operate_cancel(struct draft *d);

#endif

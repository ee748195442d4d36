/* decide.h - what the pattern does with one command: pure, from values to values. */
#ifndef RV_CORE_DECIDE_H
#define RV_CORE_DECIDE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/pace.h"
#include "base/str.h"
#include "core/rows.h"
#include "workflow/definition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rv_command_kind {
    RV_COMMAND_SUBMIT,   /* u.submit: the task begins */
    RV_COMMAND_ASSIGN,   /* u.assign: a pending step goes to an agent instance as a new attempt */
    RV_COMMAND_REPLY,    /* u.reply: an agent answers an attempt */
    RV_COMMAND_RENEW,    /* u.renew: an agent renews its lease */
    RV_COMMAND_END,      /* u.end: an attempt ended without a reply (undelivered, lost) */
    RV_COMMAND_WAKE,     /* u.wake: an instant has passed */
    RV_COMMAND_RESUBMIT, /* u.operate, as the next six: the operator's */
    RV_COMMAND_UNDO,
    RV_COMMAND_CANCEL,
    RV_COMMAND_SETTLE,
    RV_COMMAND_RETRY,
    RV_COMMAND_SUSPEND,
    RV_COMMAND_RESUME,
    RV_COMMAND_ESCALATE /* u.escalate: the task's rows cannot be handled: an operator must act */
};

struct rv_reply {
    struct rv_str output; /* JSON; absent for a failure */
    struct rv_str error;  /* JSON object {"type","status","title",...}; absent for a success */
    bool transient;
    enum rv_effect effect;  /* of the attempt, as the agent says */
    int64_t retry_after_ms; /* 0: not given */
    bool circuit_open;      /* type "circuit-open": the request was not made */
    struct rv_str target;   /* of the open circuit; absent: the whole agent */
};

/* What a person found out about a step, outside of Reeve. */
enum rv_finding {
    RV_FINDING_DONE,   /* its request was carried out */
    RV_FINDING_UNDONE, /* it was, and somebody has undone it by hand */
    RV_FINDING_NOTHING /* it was never carried out */
};

struct rv_command {
    enum rv_command_kind kind;
    uint64_t seed;        /* for jitter and tokens */
    int64_t now;          /* the store's clock in this batch */
    int64_t arrived_at;   /* on the store's clock, at most now */
    uint32_t step;        /* number of the step meant; 0: the task as a whole */
    uint64_t token;       /* REPLY, RENEW, END: of the attempt meant */
    bool asks;            /* an operator's: only whether it is accepted (ACCEPTED) */
    struct rv_pace *pace; /* who may interrupt the decision; NULL: nobody */
    size_t memory_max;    /* of its evaluations; 0: RV_DECISION_BYTES_MAX */
    union {
        struct {
            struct rv_task_id task;
            int64_t workflow;
            struct rv_str tags;
            struct rv_str input, key, correlation;
            uint8_t priority, instance;
            struct rv_str reply_url;
            bool reply_stream;
            struct rv_str traceparent, tracestate; /* as they came, not looked at yet */
        } submit;
        struct {
            struct rv_str instance, boot, poll;
        } assign;
        struct rv_reply reply;
        struct {
            enum rv_attempt_state how; /* UNDELIVERED or LOST */
            enum rv_effect effect;
            bool excused; /* LOST: its agent ended with the server, which is nobody's failure */
        } end;
        struct {
            uint32_t silent;   /* a step whose instance has not polled since it took the attempt */
            bool excused;      /* the server was absent when the instant passed: nobody's failure */
            int64_t spread_ms; /* excused: hand out again within this time, at random */
            struct rv_str circuit; /* target of the open circuit that holds back what is ready */
            int64_t call_at;       /* nobody is called for what is ready before; 0: at once */
            bool paused;           /* an operator has paused the agent of what is ready */
            int64_t absent_from;   /* a timeout of the DSL was over in an absence that began then,
                                    and whose time does not count; 0: none was */
        } wake;
        struct {
            enum rv_alert_kind alert;
            struct rv_str message;
        } escalate;
        struct {
            struct rv_str by, reason;
            struct rv_task_id selection; /* of the bulk command; none: for this task alone */
            bool abandon;                /* CANCEL: what was done stays done */
            struct rv_str input;  /* RESUBMIT: another one than the step had; absent: the same */
            bool assume_not_done; /* RESUBMIT: the operator knows what the ledger does not */
            bool undo_first;      /* RESUBMIT: what the old request did is undone before */
            bool by_hand;         /* UNDO, CANCEL: where a step does not declare its undo, the task
                                   * stays there until somebody has undone it by hand */
            bool close_circuit;   /* RETRY: for the sake of the circuit for which the step waits */
            enum rv_finding finding; /* SETTLE */
            struct rv_str output;    /* SETTLE: the task goes on with it; absent: of a step that is
                                      * done null, else the task does not go on behind the step */
        } operate;
    } u;
};

/* A task as loaded: its row, its open steps, and other steps that a decision asked for. */
struct rv_view {
    const struct rv_task *task; /* NULL: there is none yet (SUBMIT) */
    const struct rv_step *const *steps;
    size_t steps_count;
    const struct rv_attempt *attempt; /* the ended one with the token of the command; NULL: none */
    bool attempt_sought;              /* it was asked for */
    const struct rv_late_reply *late; /* what the ledger has of attempt `late_of` of that step */
    size_t late_count;
    uint32_t late_of;                       /* 0: not asked for */
    const struct rv_definition *definition; /* NULL: cannot be read */
};

struct rv_planned_step {
    struct rv_step *row;
    bool insert;
};

/* A decision that would need more is OVER_LIMIT; none does. The most steps change when retries give
 * up all that they keep, and an undo begins: those, and the steps that its first piece passes. The
 * piece ends when there is no room for more (undo.c). */
enum {
    RV_PLAN_STEPS_MAX = RV_UNFINISHED_STEPS_MAX + 64,
    RV_PLAN_ALERTS_MAX = RV_UNFINISHED_STEPS_MAX + 4, /* of each step that is given up one */
    RV_PLAN_LATE_OVER_MAX = 64,
    RV_PLAN_LATE_MAX = 1,
    RV_PLAN_MESSAGES_MAX = 16,
    RV_PLAN_ATTEMPTS_MAX = 4
};

/* What shall be. All rows live on the arena of the call or are borrowed from view and command.
 * rv_decide sets all that counts: a plan needs no value before. */
struct rv_plan {
    struct rv_task task;
    /* The task row (and its revision) changes; false: nothing is written but `history`. */
    bool changed;
    struct rv_planned_step *steps; /* on the arena */
    size_t steps_count;
    size_t steps_room;
    struct rv_attempt attempts[RV_PLAN_ATTEMPTS_MAX];
    size_t attempts_count;
    struct rv_late_reply late[RV_PLAN_LATE_MAX];
    size_t late_count;
    struct rv_alert *alerts; /* on the arena; ids are given by the scheduler */
    size_t alerts_count;
    size_t alerts_room;
    struct rv_message *messages; /* to the submitter, in their order; NULL: there are none */
    size_t messages_count;
    /* The line of an operator's command that is accepted, also where it finds done what it asks
     * for; its number is given by the scheduler. Written with the next revision. NULL: none. */
    const struct rv_history_row *history;
    bool close_alerts;                         /* but those of LATE_DONE, which close when */
    uint32_t late_over[RV_PLAN_LATE_OVER_MAX]; /* these steps are undone */
    size_t late_over_count;
    int status;            /* REPLY, RENEW: 200, 409 or 410 */
    enum rv_err err;       /* operator's commands: REFUSED with the message */
    struct rv_str message; /* what and the cure; absent: nothing to say */
    uint32_t wanted;       /* NEED_STEP, NEED_LATE: the number */
    const uint32_t *more;  /* NEED_STEP: further ones, which will be asked for */
    size_t more_count;
    uint32_t chain; /* NEED_STEP: so many of the undo chain after it may be asked for next */
};

enum rv_verdict {
    RV_DECIDED = 0,  /* the plan holds */
    RV_ACCEPTED,     /* command->asks: the command passed its checks and would change the task.
                      * Nothing of the workflow was evaluated, and the plan is void */
    RV_NEED_STEP,    /* load the step `plan->wanted`, and more, into the view and ask again */
    RV_NEED_ATTEMPT, /* load the ended attempt of command->step with its token and ask again */
    RV_NEED_LATE,    /* load what the ledger has of its attempt `plan->wanted` and ask again */
    RV_GIVEN_UP,     /* by command->pace: there is no decision */
    RV_NO_ROOM,      /* the process is out of memory: nothing may be written, try again */
    RV_OVER_LIMIT,   /* it needs more than a limit lets one decision have, and always will: the
                      * task is escalated, and no other is held up */
    RV_UNREADABLE    /* rows and definition do not fit together: escalate it */
};

/* Total: every state meets every command. Takes nothing but what it is given: no clock, no I/O, no
 * global.
 * `now` is what command->now says; fuel and inline limits are those of base/limits.h. What a
 * workflow can bring about ends before any limit, as an error of its step or in another decision:
 * OVER_LIMIT is for what should not be, and for an arena with a cap of its own. */
enum rv_verdict rv_decide(const struct rv_view *view, const struct rv_command *command,
                          struct rv_arena *arena, struct rv_plan *plan);

/* Every invariant that rows of one task keep among themselves, in one place. NULL when they all
 * hold, else the sentence of the one that does not. Looked at after load and before commit. */
const char *rv_view_broken(const struct rv_task *task, const struct rv_step *const *steps,
                           size_t steps_count);

/* The error with which the step's newest attempt ended; absent: with none. */
struct rv_str rv_attempt_error(const struct rv_step *step);
/* The step's newest attempt as a row. `retry_at` is that of the step as it stands. */
struct rv_attempt rv_attempt_newest(struct rv_task_id task, const struct rv_step *step);

/* Whether the command changed its task. One that did not, of a version before this was noted,
 * counts as one that did. */
bool rv_history_changed(const struct rv_history_row *row);

/* Whether the step's revoked attempt is silent beyond its lease, which is not renewed any more, or
 * for so long that an operator was called: he may say what it did. */
bool rv_attempt_is_gone(const struct rv_step *step, int64_t now);
/* It has or may have had an effect that only an operator can undo. False for a row of an older
 * version, which does not say how its step is undone. */
bool rv_step_undo_by_hand(const struct rv_step *step);

/* Whether the names in the row of a call can be names: nobody polls under one with a NUL byte, and
 * what keeps them ends them with one. */
bool rv_step_named(const struct rv_step *step);

/* Whether the step may be handed out now. */
bool rv_step_ready(const struct rv_task *task, const struct rv_step *step, int64_t now);

/* When the task must be looked at next (0: only on a named event). An instant that is not later
 * than `now` means at once. `steps` are the open ones, and the head of the undo chain where no step
 * is open. */
int64_t rv_view_wake_at(const struct rv_task *task, const struct rv_step *const *steps,
                        size_t steps_count, int64_t now);

/* The invariant of rows that WAKE at `now` has left as they are: nothing of them is due. Otherwise
 * the task would be decided again at once, and so on without end. NULL when it holds, else its
 * sentence. */
const char *rv_view_due_broken(const struct rv_task *task, const struct rv_step *const *steps,
                               size_t steps_count, int64_t now);

#endif

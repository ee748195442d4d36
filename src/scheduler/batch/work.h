/* work.h - one task in a batch: as loaded, then as decided so far. */
#ifndef RV_SCHEDULER_BATCH_WORK_H
#define RV_SCHEDULER_BATCH_WORK_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "core/state.h"
#include "dispatch/circuit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_alert;
struct rv_attempt;
struct rv_history_row;
struct rv_key_row;
struct rv_late_reply;
struct rv_message;
struct rv_record;
struct rv_scheduler;
struct rv_step;
struct rv_task;
struct workflow_entry;

/* A step's row in a batch's working set. */
struct work_step {
    const struct rv_step *row;
    const struct rv_step *stored; /* as loaded; NULL: it was not */
    enum rv_attempt_state was;    /* as loaded: its newest attempt, and that one's number */
    uint32_t was_attempt;
    bool was_over; /* control had left it */
    bool dirty;
    bool insert;
    bool assigned;            /* its attempt is handed out in this batch */
    struct circuit_word word; /* of the reply that this batch counts */
};

/* One task in a batch: as loaded, then as the batch's decisions have it so far. */
struct work {
    struct rv_task_id id;
    const struct rv_task *task;   /* NULL: there is no such task (yet) */
    const struct rv_task *stored; /* as loaded */
    int64_t revision_before;
    int64_t now; /* when it was loaded, and is decided: the batch's, or later */
    enum rv_task_state state_before;
    const char *broken; /* the rule that the rows as loaded break: then it can only be escalated or
                         * abandoned; NULL: none */
    bool changed;
    bool found;    /* ... since it was due */
    bool stolen;   /* it is another server's, and a step of it may be handed out all the same */
    bool orphan;   /* its owner is not there any more */
    bool overdue;  /* a look at all tasks has found it */
    bool torn;     /* some of its rows were loaded later than others: they may be of two instants */
    bool was_open; /* as loaded */
    bool waits_to_end;      /* an end of it has come that is not decided yet */
    bool dropped;           /* its change did not pass; its decisions are void */
    struct work *escalated; /* ... and this one was written instead; NULL: none */
    struct work_step *steps;
    size_t steps_count;
    size_t steps_room;
    struct rv_attempt *attempts;
    size_t attempts_count;
    size_t attempts_room;
    struct rv_late_reply *late;
    size_t late_count;
    size_t late_room;
    struct rv_alert *alerts;
    size_t alerts_count;
    size_t alerts_room;
    bool close_alerts;
    uint32_t *late_over; /* steps */
    size_t late_over_count;
    size_t late_over_room;
    struct rv_message *messages;
    size_t messages_count;
    size_t messages_room;
    bool history_known; /* its newest number as loaded: */
    uint32_t history_last;
    struct rv_history_row *history; /* numbered */
    size_t history_count;
    size_t history_room;
    struct rv_str destination; /* of the webhook of a task that begins */
    int64_t epoch;
    const struct rv_key_row *key;
    const struct rv_record *record;  /* the outcome of a bulk command; NULL: none */
    struct workflow_entry *workflow; /* NULL: not looked up or not there */
    const struct rv_attempt *sought; /* the ended attempt with sought_token; NULL: there is none */
    uint32_t sought_step;            /* 0: not asked for */
    uint64_t sought_token;
    const struct rv_late_reply *said; /* in the ledger, of attempt said_attempt of step said_step */
    size_t said_count;
    uint32_t said_step; /* 0: not loaded */
    uint32_t said_attempt;
    enum rv_err outcome;
    bool too_large;  /* its steps were not loaded, since there is no memory for them */
    bool waits;      /* the newest command on it has become an evaluation */
    int64_t look_at; /* it is due, and there is no room for it before that; 0: there is */
    struct work *next;
};

/* Its change did not pass since something else was faster, or the store did not take it for now:
 * its calls are decided again. */
bool work_again(const struct work *work);
/* The task's work if the batch has one. */
struct work *work_find(const struct rv_scheduler *s, struct rv_task_id id);
const struct rv_step *work_step(const struct work *work, uint32_t number);
/* NULL: the work has no such step. */
struct work_step *work_step_of(const struct work *work, uint32_t number);
/* Did the attempt end in this batch? Its step came with attempt `was_attempt` in state `was`. */
bool attempt_ended_now(const struct work_step *step, uint32_t number);
/* Whether control has left the step for good, but for an operator. */
bool step_over(const struct rv_task *task, const struct rv_step *step);

#endif

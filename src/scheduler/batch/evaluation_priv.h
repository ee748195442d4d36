/* evaluation_priv.h - one evaluation, for the two files that know it. */
#ifndef RV_SCHEDULER_BATCH_EVALUATION_PRIV_H
#define RV_SCHEDULER_BATCH_EVALUATION_PRIV_H

#include "base/arena.h"
#include "base/pace.h"
#include "core/decide.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/batch/workflows.h"

struct evaluation {
    struct rv_scheduler *s;
    struct asker asker;
    struct rv_command command;
    struct rv_task_id task;
    struct debtor *debtor;
    enum evaluation_state state;
    int64_t used;          /* fuel, in all its tries */
    struct rv_arena texts; /* of a command without a caller */
    struct rv_arena arena; /* rows, and what is made of them */
    struct work work;      /* its task as loaded; not one of a batch */
    struct workflow_entry *pinned;
    struct rv_view view;
    struct rv_plan *plan; /* on the arena */
    enum rv_verdict verdict;
    struct rv_pace pace;
    int64_t lent;            /* of fuel in this slice */
    uint64_t over_in;        /* the batch after which it was */
    bool stops;              /* it comes to an end at once, and nobody looks at what it gives */
    struct rv_fiber *fiber;  /* PAUSED */
    struct evaluation *next; /* in its queue, among those that have a place, or those taken */
    struct evaluation *prev;
    struct evaluation *same_task;
};

/* Its caller is decided again in the next batch. */
void evaluation_caller_carry(struct rv_scheduler *s, struct pending *caller);
/* At the end of a batch: who has awaited one that is over is decided in the next, after the one
 * whose it was, should that not have been committed. */
void evaluations_awaited(struct rv_scheduler *s);
/* From its queue to a place. */
void evaluation_place(struct evaluation *evaluation);
/* It has its verdict. */
void evaluation_end(struct evaluation *evaluation);
/* As if it had never been begun. */
void evaluation_restart(struct evaluation *evaluation);
/* Its stack, on which nothing runs any more, is for others. */
void evaluation_fiber_back(struct evaluation *evaluation);

#endif

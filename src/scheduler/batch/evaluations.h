/* evaluations.h - decisions that take longer than their turn. */
#ifndef RV_SCHEDULER_BATCH_EVALUATIONS_H
#define RV_SCHEDULER_BATCH_EVALUATIONS_H

#include "base/err.h"
#include "base/id.h"
#include "base/map.h"
#include "core/decide.h"
#include "scheduler/batch/pending_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evaluation;
struct pending;
struct rv_fiber;
struct rv_scheduler;
struct work;

/* `a` of what no call asks for, and no call has to take: due tasks, by the task as `b`; ends of
 * attempts that an agent has told of, by the token. */
#define ASKER_WAKE UINT64_MAX
#define ASKER_END (UINT64_MAX - 1)

/* Who asks for a decision. Until it is made it is asked for again, by the same. */
struct asker {
    struct pending *caller; /* NULL: nobody waits for it */
    uint64_t a, b;          /* unlike those of any other */
    /* Without a caller: what comes of it is taken in a later batch; NULL: by nobody. */
    bool (*wanted)(const struct rv_scheduler *s, const struct asker *asker);
};

enum evaluation_state {
    EVALUATION_QUEUED, /* waits for a place */
    EVALUATION_READY,  /* its rows are loaded */
    EVALUATION_PAUSED, /* in its middle */
    EVALUATION_NEEDS,  /* more rows, in the next batch */
    EVALUATION_OVER    /* to be taken by who asks for it, if its task is as it was */
};

/* The evaluations of one workflow that wait. */
struct debtor {
    int64_t workflow;
    struct evaluation *first; /* QUEUED, the oldest first */
    struct evaluation *last;
    size_t placed;
    size_t paused;
    struct debtor *next;
};

/* In their middle, each with a stack. */
enum { EVALUATIONS_PAUSED_MAX = 8 };

struct evaluations {
    struct rv_map by_asker; /* owned */
    struct rv_map by_task;  /* the newest of a task that exists; ->same_task: the ones before */
    struct debtor *debtors; /* owned */
    struct evaluation *placed;
    size_t placed_count;
    size_t paused_count;
    size_t ownerless;         /* that nobody waits for */
    struct evaluation *taken; /* owned: by the batch under way */
    int64_t rest_until;       /* of due tasks for which there is no room */
    size_t aside;
    struct pending_list calls; /* whose decisions are all here: not in batches until one is over */
    bool left; /* since the end of the last batch one did, and somebody may have awaited it */
    size_t over_count;
    int64_t take_at; /* monotonic instant: what is over is taken by then */
    struct rv_fiber *idle[EVALUATIONS_PAUSED_MAX]; /* owned */
    size_t idle_count;
};

void evaluations_init(struct evaluations *evaluations);
/* Gives all of them up: what they were asked for may be asked for again. Calls that wait for them
 * are carried into the next batch. */
void evaluations_forget(struct rv_scheduler *s);
void evaluations_done(struct rv_scheduler *s);
/* The tasks of those that are over and taken in this batch; gives their number. */
size_t evaluations_want(const struct rv_scheduler *s, struct rv_step_id *ids, size_t room);
/* NULL: none. */
struct evaluation *evaluation_find(const struct rv_scheduler *s, const struct asker *asker);
bool evaluation_over(const struct evaluation *evaluation);
/* There is one, and it is not over. */
bool evaluation_waits(const struct rv_scheduler *s, const struct asker *asker);
struct rv_task_id evaluation_task(const struct evaluation *evaluation);
/* The `b` of those that are over, of all with that `a` and without a caller: gives their number. */
size_t evaluations_over(const struct rv_scheduler *s, uint64_t a, uint64_t *ret_b, size_t room);
/* Whether the task has some; whether the reply of that attempt is among them. */
bool evaluations_of(const struct rv_scheduler *s, struct rv_task_id task);
bool evaluations_reply(const struct rv_scheduler *s, struct rv_step_id step, uint64_t token);
/* The command on the work's task becomes an evaluation, of which `used` units were tried. Texts of
 * a command without a caller are copied. */
RV_CHECK enum rv_err evaluation_new(struct rv_scheduler *s, const struct asker *asker,
                                    const struct work *work, const struct rv_command *command,
                                    int64_t used);
/* What came of it, for the work of its task in this batch: false when the task is not as it was,
 * and it begins again. The plan lives until the end of the batch, and is as of *ret_now. */
RV_CHECK enum rv_err evaluation_take(struct rv_scheduler *s, struct evaluation *evaluation,
                                     struct work *work, bool *ret_taken,
                                     enum rv_verdict *ret_verdict, struct rv_plan *ret_plan,
                                     int64_t *ret_now);
/* Nobody wants it any more. */
void evaluation_drop(struct rv_scheduler *s, struct evaluation *evaluation);
void evaluations_drop_of(struct rv_scheduler *s, const struct pending *caller);
/* In a batch, when everybody else is decided: what is over is taken, if the batch writes anyway or
 * it has waited long enough for one that does ... */
RV_CHECK enum rv_err evaluations_decide(struct rv_scheduler *s);
/* ... and the next ones get a place and their rows. */
RV_CHECK enum rv_err evaluations_load(struct rv_scheduler *s);
/* After the batch, when its answers have left: as many as there is credit for. */
void evaluations_run(struct rv_scheduler *s, int64_t batch_us);
/* Milliseconds until a batch is wanted. */
int64_t evaluations_wait_ms(const struct rv_scheduler *s, int64_t mono_now);
/* A call whose decisions are not all made comes back when one of them is over; without evaluations,
 * in the next batch. Where too many wait already it is refused. */
void evaluations_hold(struct rv_scheduler *s, struct pending *caller);
/* One of those is taken out, for whatever comes next. */
void evaluations_unhold(struct rv_scheduler *s, struct pending *caller);
/* So many wait that nobody asks for that no more are taken. */
bool evaluations_full(const struct rv_scheduler *s);
/* When a due task is looked at again for which there is no room: one of them in a millisecond. */
int64_t evaluations_rest(struct rv_scheduler *s);
/* What the batch before has taken. */
void evaluations_release(struct rv_scheduler *s);

#endif

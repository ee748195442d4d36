/* accounts.h - what tasks and workflows owe for their long decisions. */
#ifndef RV_SCHEDULER_BATCH_ACCOUNTS_H
#define RV_SCHEDULER_BATCH_ACCOUNTS_H

#include "base/id.h"
#include "base/map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_scheduler;

/* What tasks and workflows owe, in units of fuel (about 10 ns each). All of it counts,
 * none of it measures: the same calls at the same instants give the same numbers. */
struct accounts {
    struct rv_map debts; /* (id, kind) -> debt and the instant of that, packed */
    size_t sweep_at;     /* so many debts: those that are paid off are removed */
    int64_t credit;      /* what evaluations may use now; below 0: they have used more */
    int64_t light;       /* what all others have used lately */
    int64_t mono;        /* the instant of the two */
};

enum account_kind { ACCOUNT_WORKFLOW, ACCOUNT_TASK };
void accounts_init(struct accounts *accounts);
void accounts_done(struct accounts *accounts);
/* What is owed at the batch's instant. */
int64_t account_debt(const struct rv_scheduler *s, enum account_kind kind, int64_t id);
/* An evaluation has used so much. */
void accounts_charge(struct rv_scheduler *s, int64_t workflow, struct rv_task_id task,
                     int64_t used);
/* A decision in its batch has; a little of it is free. */
void accounts_decided(struct rv_scheduler *s, int64_t workflow, struct rv_task_id task,
                      int64_t used);
/* Evaluations have used so much, and it took so long: a machine on which a unit takes longer has
 * less credit. */
void accounts_took(struct rv_scheduler *s, int64_t used, int64_t us);
/* The workflow owes so much that its long decisions wait until those of others are made. */
bool account_in_debt(const struct rv_scheduler *s, int64_t workflow);
/* The batch has changed so many tasks of others and took so long; the credit grows with time. */
void accounts_turn(struct rv_scheduler *s, size_t light, int64_t us);
/* Nobody has had other work lately. */
bool accounts_idle(const struct rv_scheduler *s);
/* Milliseconds until there is credit for a slice; 0: there is. */
int64_t accounts_wait_ms(const struct rv_scheduler *s, int64_t mono_now);
/* Fuel of all slices after a batch; 0: there is no credit. */
int64_t accounts_turn_fuel(const struct rv_scheduler *s);
/* Fuel that a decision of the workflow may use in its batch before it becomes an evaluation. */
int64_t accounts_allowance(const struct rv_scheduler *s, int64_t workflow);

#endif

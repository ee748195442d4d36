/* duty.h - what the server does without being asked. */
#ifndef RV_SCHEDULER_DUTIES_DUTY_H
#define RV_SCHEDULER_DUTIES_DUTY_H

#include "base/err.h"

#include <stdint.h>

struct rv_scheduler;

/* One row of `duties` (scheduler.c) is one of these: the cycle runs through them in that order.
 * Where one is NULL there is nothing to do. Its state is known to its own file alone. */
struct duty {
    /* At the start; close() follows in any case. */
    enum rv_err (*open)(struct rv_scheduler *s);
    /* In a batch: before the tasks that it names are loaded; */
    enum rv_err (*plan)(struct rv_scheduler *s);
    /* ... when the calls and the due tasks are decided; */
    enum rv_err (*decide)(struct rv_scheduler *s);
    /* ... before steps are handed out; */
    enum rv_err (*hand_out)(struct rv_scheduler *s);
    /* ... when all else is decided. */
    enum rv_err (*last)(struct rv_scheduler *s);
    /* After the commit, before the calls are answered. */
    void (*act)(struct rv_scheduler *s);
    /* Nothing of the batch was written. */
    void (*fail)(struct rv_scheduler *s);
    /* When it wants a batch of its own; INT64_MAX: never. */
    int64_t (*next_at)(const struct rv_scheduler *s);
    /* The store has lost some of what it had: what is remembered may never have been. */
    void (*forget)(struct rv_scheduler *s);
    void (*close)(struct rv_scheduler *s);
};

extern const struct duty scan_duty, clock_duty, place_duty, alerts_duty, deliveries_duty,
    retention_duty, bulk_duty, limits_duty;

#endif

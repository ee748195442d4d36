/* duty.h - what the server does without being asked. */
#ifndef RV_SCHEDULER_DUTIES_DUTY_H
#define RV_SCHEDULER_DUTIES_DUTY_H

#include "base/err.h"
#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

struct rv_scheduler;

/* The cycle runs through the duties in the order of RV_DUTIES. Where a function is NULL there is
 * nothing to do. The state of a duty is known to its own file alone. */
struct duty {
    /* At the start; close() follows in any case. */
    enum rv_err (*open)(struct rv_scheduler *s);
    /* Before a batch begins: the tasks that it will most likely need; gives their number. */
    size_t (*wants)(const struct rv_scheduler *s, struct rv_step_id *ids, size_t room);
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
    /* The rule that what it remembers violates; NULL: none. Asked after each batch of a debug build
     * and in the simulator. */
    const char *(*broken)(const struct rv_scheduler *s);
    void (*close)(struct rv_scheduler *s);
};

/* Each is defined as <name>_duty in <name>.c. The scan forgets what is other servers' before steps
 * of their tasks are offered. */
#define RV_DUTIES(DUTY)                                                                            \
    DUTY(scan)                                                                                     \
    DUTY(takeover)                                                                                 \
    DUTY(overdue)                                                                                  \
    DUTY(watchers)                                                                                 \
    DUTY(steal)                                                                                    \
    DUTY(clock)                                                                                    \
    DUTY(place)                                                                                    \
    DUTY(alerts)                                                                                   \
    DUTY(deliveries)                                                                               \
    DUTY(retention)                                                                                \
    DUTY(bulk)                                                                                     \
    DUTY(limits)                                                                                   \
    DUTY(shares)

#define RV_DUTY_EXTERN(name) extern const struct duty name##_duty;
RV_DUTIES(RV_DUTY_EXTERN)
#undef RV_DUTY_EXTERN

#endif

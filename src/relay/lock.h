/* lock.h - one relay at a time works on a database. */
#ifndef RV_RELAY_LOCK_H
#define RV_RELAY_LOCK_H

#include "base/err.h"
#include "relay/relay.h"

#include <stdint.h>

/* The lock ends with the process that holds it, however that ends. Two relays at work would do no
 * harm, since rows keep their keys; they would do everything twice. */
struct rv_relay_lock {
    int fd; /* owned; -1: not held */
};

/* IN_USE: another relay has it; *ret_pid is its number, 0 if it is not known. IO. */
RV_CHECK enum rv_err rv_relay_lock_take(struct rv_relay_lock *lock, const char *path,
                                        int64_t *ret_pid, struct rv_relay_fault *fault);
void rv_relay_lock_give(struct rv_relay_lock *lock);

#endif

/* keys.h - changes of API keys, and what ends with one. */
#ifndef RV_SCHEDULER_CALLS_KEYS_H
#define RV_SCHEDULER_CALLS_KEYS_H

#include "base/err.h"

struct call_ops;
struct rv_scheduler;

extern const struct call_ops key_add_ops, key_revoke_ops;
/* Finishes the calls of this batch whose access ended after the api had allowed them. */
RV_CHECK enum rv_err keys_refuse(struct rv_scheduler *s);
extern const struct call_ops keys_ops;

#endif

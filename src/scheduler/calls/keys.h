/* keys.h - changes of API keys, and what ends with one. */
#ifndef RV_SCHEDULER_CALLS_KEYS_H
#define RV_SCHEDULER_CALLS_KEYS_H

#include "base/err.h"

struct rv_scheduler;

/* Finishes the calls of this batch whose access ended after the api had allowed them. */
RV_CHECK enum rv_err keys_refuse(struct rv_scheduler *s);
#endif

/* refuse.h - what a caller is told. */
#ifndef RV_SCHEDULER_BATCH_REFUSE_H
#define RV_SCHEDULER_BATCH_REFUSE_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct rv_call;

struct rv_str call_printf(struct rv_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The message if there is no alert with this id. */
struct rv_str refuse_no_alert(struct rv_call *call, int64_t alert);
/* For a `decide`: the call is refused, and the batch goes on. */
RV_CHECK enum rv_err call_refuse(struct rv_call *call, enum rv_err err, struct rv_str message);

#endif

/* metrics.h - the numbers as a snapshot. */
#ifndef RV_SCHEDULER_QUERIES_METRICS_H
#define RV_SCHEDULER_QUERIES_METRICS_H

#include "base/err.h"

struct query;
struct rv_call;
/* The call's answer, onto its arena. */
RV_CHECK enum rv_err metrics_read(const struct query *q, struct rv_call *call);

#endif

/* metrics.h - the numbers as a snapshot. */
#ifndef RV_SCHEDULER_QUERIES_METRICS_H
#define RV_SCHEDULER_QUERIES_METRICS_H

struct call_ops;

extern const struct call_ops metrics_ops;

#endif

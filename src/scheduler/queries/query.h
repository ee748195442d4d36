/* query.h - what a query sees: the rows as committed, and what is remembered beside them. */
#ifndef RV_SCHEDULER_QUERIES_QUERY_H
#define RV_SCHEDULER_QUERIES_QUERY_H

#include "scheduler/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agents;
struct failures;
struct rv_arena;
struct rv_counts;
struct rv_scheduler_size;
struct rv_store;
struct workflow_cache;

/* No batch: what a query finds is what is stored. */
struct query {
    struct rv_store *store;
    int64_t now;
    struct rv_arena *scratch; /* for what is looked at and goes */
    struct workflow_cache *workflows;
    struct agents *agents; /* void entries of its heaps may be swept */
    const struct rv_counts *counts;
    struct failures *failures; /* minutes that are over may be dropped */
    const struct rv_scheduler_size *size;
    size_t calls_parked;
    struct rv_store_problems problems;
};

#endif

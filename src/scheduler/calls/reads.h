/* reads.h - answers with large rows, which wait for room. */
#ifndef RV_SCHEDULER_CALLS_READS_H
#define RV_SCHEDULER_CALLS_READS_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>

struct pending;
struct query;
struct rv_scheduler;

/* What a query sees in this batch. */
struct query query_of(struct rv_scheduler *s);
/* Decides a call that only reads, or has it wait. */
RV_CHECK enum rv_err read_decide(struct rv_scheduler *s, struct pending *p);
/* Once all calls are decided: sets those aside that wait, and loads what there is room for. */
RV_CHECK enum rv_err reads_go_on(struct rv_scheduler *s);
/* A large read waits, and may be loaded. */
bool reads_have_room(const struct rv_scheduler *s);
void reads_end(struct rv_scheduler *s, enum rv_err err, struct rv_str why);

#endif

/* spans.h - spans of what a batch has ended. */
#ifndef RV_SCHEDULER_WATCH_SPANS_H
#define RV_SCHEDULER_WATCH_SPANS_H

struct rv_scheduler;
struct work;

/* After the commit, as counts_learn. */
void spans_learn(struct rv_scheduler *s, const struct work *work);

#endif

/* retention.h - the deletion of tasks that ended long ago. */
#ifndef RV_SCHEDULER_DUTIES_RETENTION_H
#define RV_SCHEDULER_DUTIES_RETENTION_H

#include <stdint.h>

struct rv_scheduler;

/* At a start, after `gone_ms`: whether so much has passed, or the wall clock was set meanwhile, an
 * operator may have to look at first. What is long enough lets the rule wait as long, a day at
 * most, also through restarts. */
void retention_hold(struct rv_scheduler *s, int64_t gone_ms);
/* How long after a round the next one begins. */
int64_t retention_round_ms(const struct rv_scheduler *s);

#endif

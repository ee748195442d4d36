/* events.h - writes the events of the scheduler to the log. */
#ifndef RV_SERVER_EVENTS_H
#define RV_SERVER_EVENTS_H

#include "base/log_level.h"
#include "base/str.h"

/* For rv_scheduler_log.write. The scheduler passes its fields as one JSON object; the log takes
 * them one by one. `self` is not used. */
void rv_server_event(void *self, enum rv_log_level level, const char *event, struct rv_str fields);

#endif

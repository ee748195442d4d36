/* bulk_call.h - the operator's word on a bulk command. */
#ifndef RV_SCHEDULER_DUTIES_BULK_CALL_H
#define RV_SCHEDULER_DUTIES_BULK_CALL_H

struct call_ops;

extern const struct call_ops bulk_ops;

#endif

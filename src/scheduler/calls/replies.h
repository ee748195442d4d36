/* replies.h - replies and renewals of leases: each item has its own status. */
#ifndef RV_SCHEDULER_CALLS_REPLIES_H
#define RV_SCHEDULER_CALLS_REPLIES_H

struct call_ops;

extern const struct call_ops replies_ops, leases_ops;

#endif

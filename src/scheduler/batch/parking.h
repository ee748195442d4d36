/* parking.h - calls that wait, and calls that are answered. */
#ifndef RV_SCHEDULER_BATCH_PARKING_H
#define RV_SCHEDULER_BATCH_PARKING_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct pending;
struct rv_call;
struct rv_scheduler;
struct rv_task;
struct work;

/* The call is decided again in the next batch, since a decision of it did not pass; false: that was
 * tried often enough. */
bool parking_carry_again(struct rv_scheduler *s, struct pending *p);
#define STOPPING RV_STR("the server is stopping: send the request again")
#define DEPOSED                                                                                    \
    RV_STR("the server was away for longer than its lease, and others do its work: send the "      \
           "request again")
#define NOT_TAKEN                                                                                  \
    RV_STR("the state store refused the change several times, and nothing was written: "           \
           "send the request again")
RV_CHECK enum rv_err pending_park(struct rv_scheduler *s, struct pending *p, int64_t wait_ms);
void pending_park_waiter(struct rv_scheduler *s, struct pending *p, struct rv_task_id task,
                         int64_t wait_ms);
void pending_unpark(struct rv_scheduler *s, struct pending *p);
/* Answers and forgets: after this the call belongs to its maker again. */
void pending_finish(struct rv_scheduler *s, struct pending *p, enum rv_err err,
                    struct rv_str message);
/* The call is given back at the end of the batch. */
void parking_finished_add(struct rv_scheduler *s, struct rv_call *call);
/* Gives the finished calls back to their makers: last of all, since rows of the batch point into
 * the arenas of the calls that brought their payloads. */
void parking_finished_flush(struct rv_scheduler *s);
void parking_expire(struct rv_scheduler *s);
/* The caller of the call with that serial has left. */
void call_left(struct rv_scheduler *s, uint64_t serial);
/* The same, if it is parked. */
bool parking_left(struct rv_scheduler *s, uint64_t serial);
/* All that are parked are answered with what there is, or refused. */
void parking_finish_all(struct rv_scheduler *s);
void parking_refuse_all(struct rv_scheduler *s, enum rv_err err, struct rv_str message);
/* The task has changed: answers those who wait for that. */
void parking_waiters_tell(struct rv_scheduler *s, struct work *work);
/* There is no such task any more: those who wait for it are answered with what there is. */
void parking_waiters_end(struct rv_scheduler *s, struct rv_task_id task);
/* For the calls' `tell`: a copy of the task becomes the answer, which leaves if it is due. */
void pending_waiter_answer(struct rv_scheduler *s, struct pending *p, const struct rv_task *task,
                           bool due, const struct rv_task **ret_task);
enum { READ_SMALL = 128 * 1024 }; /* an answer that never waits for room */
bool parking_read_is_large(const struct rv_task *task);
/* One that is parked, or was to be: a later batch answers it as one that does not wait. */
void pending_read_again(struct rv_scheduler *s, struct pending *p);

#endif

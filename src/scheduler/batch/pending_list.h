/* pending_list.h - calls in the scheduler's hands, in order of arrival. */
#ifndef RV_SCHEDULER_BATCH_PENDING_LIST_H
#define RV_SCHEDULER_BATCH_PENDING_LIST_H

struct pending;

/* Calls in the scheduler's hands, in order of arrival (parking.c). */
struct pending_list {
    struct pending *first;
    struct pending *last;
};

#endif

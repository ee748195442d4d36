/* call_ops.h - what a family of calls does with one of its calls. */
#ifndef RV_SCHEDULER_BATCH_CALL_OPS_H
#define RV_SCHEDULER_BATCH_CALL_OPS_H

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct pending;
struct query;
struct rv_call;
struct rv_scheduler;
struct rv_workflow_name;
struct work;

/* A row of scheduler/tbl/call.def names one of these. Where one is NULL there is nothing to do. */
struct call_ops {
    /* Before the commit: from what is asked to what shall be. */
    enum rv_err (*decide)(struct rv_scheduler *s, struct pending *p);
    /* After it: answers, parks or carries the call. */
    void (*act)(struct rv_scheduler *s, struct pending *p);
    /* Nothing of the batch is written: what it has decided of the call is void. */
    void (*forget)(struct rv_scheduler *s, struct pending *p);
    /* The store has lost some of what it had: what earlier batches have said of it may be void. */
    void (*doubt)(struct rv_call *call);
    /* The call cannot go on. True: who asked learns of that in the results of its items, since some
     * of it was accepted. */
    bool (*refuse)(struct rv_scheduler *s, const struct pending *p, enum rv_err err,
                   struct rv_str message);
    /* Calls that only read (calls/reads.h): loads the answer onto the call's arena. */
    enum rv_err (*read)(const struct query *query, struct rv_call *call);
    /* ... there was no room for it. True: the call is answered without it. */
    bool (*unread)(struct rv_call *call);
    /* ... the answer has to wait for room: what is needed until then. */
    enum rv_err (*read_plain)(struct rv_scheduler *s, struct pending *p);
    /* Calls that are parked for a task: which, and that it has changed. */
    struct rv_task_id (*waits_for)(const struct rv_call *call);
    void (*tell)(struct rv_scheduler *s, struct pending *p, const struct work *work);
    /* ... where there is no place to wait. */
    enum rv_err no_place;
    /* Parked elsewhere: it is not any longer. */
    void (*unpark)(struct rv_scheduler *s, struct pending *p);
    /* How many commands it brings; NULL: one. What is to be loaded for them: the number of ids. */
    size_t (*commands)(const struct rv_call *call);
    size_t (*wants)(const struct rv_scheduler *s, const struct pending *p, struct rv_step_id *ids,
                    size_t room);
    /* The keys that are to be looked up for it: their number. */
    size_t (*keys)(const struct rv_scheduler *s, const struct pending *p, struct rv_str *keys,
                   size_t room);
    /* The names of workflows that it asks for: their number. */
    size_t (*names)(const struct rv_scheduler *s, const struct pending *p,
                    struct rv_workflow_name *names, size_t room);
    /* It is not decided in this batch, and notes which attempts it is about. */
    void (*leave)(struct rv_scheduler *s, const struct rv_call *call);
    /* A call that changes something: whether some of that is still to be decided; NULL: all is. */
    bool (*is_open)(const struct rv_call *call);
    /* It is written: the line of the log that says who gave the command. */
    void (*log)(struct rv_scheduler *s, const struct rv_call *call);
    bool first;  /* it is decided before all others */
    bool asks;   /* it changes nothing, and reads after the commit */
    bool waits;  /* it may be parked without having changed anything */
    bool tells;  /* it adds to the history of the tasks that are loaded for it */
    bool begins; /* it is refused while the store's files are not where they were */
};

/* Each is defined in the file of its family, in scheduler/calls or scheduler/duties. */
#define RV_CALL(kind, member, right, ops) extern const struct call_ops ops;
#include "scheduler/tbl/call.def"
#undef RV_CALL

#endif

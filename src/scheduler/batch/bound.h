/* bound.h - how much one batch takes: of calls, of requests, of memory. */
#ifndef RV_SCHEDULER_BATCH_BOUND_H
#define RV_SCHEDULER_BATCH_BOUND_H

#include "base/err.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_scheduler;
struct pending;

/* Parts of a batch. Each one loads rows and decides on them within a share of the batch's memory of
 * its own, so that none of them waits for the others for ever (bound.c). */
enum share {
    SHARE_NONE,    /* whatever is bounded elsewhere */
    SHARE_AHEAD,   /* what is loaded as the batch begins */
    SHARE_WATCHED, /* what others have changed, and somebody waits for */
    SHARE_SCAN,
    SHARE_SMALL, /* calls */
    SHARE_LARGE,
    SHARE_DUE,
    SHARE_BULKS,
    SHARE_EVALUATIONS,
    SHARE_ENDS, /* of attempts, by what agents tell */
    SHARE_ADMIT,
    SHARE_MATCH,
    SHARE_COUNT
};

/* The process ran out of memory within batches (bound.c). */
struct shortage {
    unsigned halvings; /* of the shares */
    int64_t at;        /* monotonic: of the newest change of that number */
    /* Newest task for whose rows there was none although the shares were at their least, and how
     * often that was so in a row. */
    struct rv_task_id task;
    unsigned failures;
};

/* Carries what is too much for this batch; gives the number of calls that stay. */
size_t batch_bound(struct rv_scheduler *s);
/* A part of the batch begins, or goes on. */
void share_enter(struct rv_scheduler *s, enum share share);
/* It has used its share: the rest is for later batches. */
bool share_used(const struct rv_scheduler *s);
/* The bytes of it that are left; from the outside of a share, those of one. */
size_t share_left(const struct rv_scheduler *s);
/* So many tasks, at most, are loaded and decided before the share is looked at again. */
enum { PIECE_TASKS = 8 };
size_t share_piece(const struct rv_scheduler *s);
/* So many, at most, one load asks for: many where it is a round trip; else few, which are decided
 * while they are in the processor's cache. */
enum { LOAD_TASKS = 16, LOAD_TASKS_SHARED = 256 };
size_t share_load(const struct rv_scheduler *s);
/* May the task be loaded for the call in this batch? One that is there already takes no more. */
bool share_lets(struct rv_scheduler *s, const struct pending *p, struct rv_task_id task);
/* There was no memory for the rows of the task, or for a decision on them. */
void shortage_of(struct rv_scheduler *s, struct rv_task_id task);
/* ... and never is: it is escalated without its steps. */
bool shortage_parks(const struct rv_scheduler *s, struct rv_task_id task);
/* What came of the batch. */
void shortage_note(struct rv_scheduler *s, enum rv_err err);
/* May another item of the call be decided in this batch? Then what it takes is told. */
bool batch_has_room(const struct rv_scheduler *s, const struct pending *p);
void batch_spends(struct rv_scheduler *s, const struct pending *p, size_t bytes);
/* Has the batch handed out as many bytes as it may? */
bool batch_handed_enough(struct rv_scheduler *s);

#endif

/* absence.h - the times in which the server was not there. */
#ifndef RV_SCHEDULER_BATCH_ABSENCE_H
#define RV_SCHEDULER_BATCH_ABSENCE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_scheduler;

/* A time in which the server was not there: what should have ended in it is nobody's failure. */
struct absence {
    int64_t from;
    int64_t until;
    int64_t gone_from; /* the last look of any process before it; 0: nobody knows */
};

enum { ABSENCES_MAX = 8 };
/* The batch's instant is looked at; what came of its commit. */
int64_t absence_note(struct rv_scheduler *s);
void absence_refusal_note(struct rv_scheduler *s, enum rv_err err);
/* Another server was not there since that instant, and this one takes its tasks over. */
void absence_of_other(struct rv_scheduler *s, int64_t since);
/* The store has refused writes for so long that it counts as an absence, and still does. */
bool absence_lasts(const struct rv_scheduler *s);
/* Did this instant pass while the server was not there? Then it is nobody's failure. */
bool absence_covers(const struct rv_scheduler *s, int64_t at);
/* The instant before this one from which on no time counts; 0: all of it does. */
int64_t absence_uncounted(const struct rv_scheduler *s, int64_t at);
/* Where the wait for an agent begins anew that is `since` then and was long enough at `at`: agents
 * need time to come back, too. 0: nowhere. */
int64_t absence_since(const struct rv_scheduler *s, int64_t since, int64_t at);
/* Since when the server is there without an absence. */
int64_t absence_calm_since(const struct rv_scheduler *s);
/* So long between two looks at the store's clock is none yet. */
int64_t absence_ms(const struct rv_scheduler *s);
/* Whether so long between two looks at the store's clock is an absence. */
bool absence_between(const struct rv_scheduler *s, int64_t from, int64_t until);

#endif

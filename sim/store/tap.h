/* tap.h - what stands between scheduler and store: it makes faults, and sees each commit. */
#ifndef RV_SIM_TAP_H
#define RV_SIM_TAP_H

#include "store/store.h"

#include <stdint.h>

struct server;
struct tap;

struct tap *tap_new(struct server *s);
void tap_free(struct tap *tap);
/* The store as the scheduler gets it. */
struct rv_store *tap_open(struct server *s, struct rv_store *inner);
/* A crash: an open transaction is lost. */
void tap_close(struct server *s);
/* Since it was opened something was read damaged, and may be remembered so. */
bool tap_misread(const struct server *s);
/* Virtual time since which the process waits for an answer, if it does: of a begin, a commit, or
 * its outcome. INT64_MAX: it waits for a read in a transaction. */
int64_t tap_asked_at(const struct server *s);
/* The latest store time that the process has received. */
int64_t tap_newest(const struct server *s);
/* The disk is full for so long. */
void tap_fill(struct server *s, int64_t ms);
/* The process is dead: whatever waits for the store gets no answer any more. */
void tap_die(struct server *s);
bool tap_dead(const struct server *s);
/* The store has failed over since the newest transaction began: what stood in it may be lost. */
bool tap_outlived(const struct server *s);
/* The store has lost all after its transaction `number`. */
void tap_failed_over(struct server *s, uint64_t number);
/* The server has raised the alarm that this calls for. */
void tap_alarmed(struct server *s);
/* Draws what befalls the commits of the next batch. */
void tap_plan(struct server *s);

#endif

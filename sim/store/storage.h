/* storage.h - the store's data where that is SQLite's: on a disk that fails, and after each crash
 * looked at as SQLite sees it. */
#ifndef RV_SIM_STORAGE_H
#define RV_SIM_STORAGE_H

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct storage;

/* What a world's store is: the knob `store`. */
enum { STORE_MEMORY, STORE_SQLITE, STORE_SQLITE_SOUND, STORE_SHARED };

/* In a world whose store is in memory there is no storage; all but `open` may be called anyway. */
void storage_new(struct world *w);
void storage_free(struct world *w);

/* A process opens the store. An error: it cannot, and ends; the disk is to be blamed. */
enum rv_err storage_open(struct world *w, struct rv_wall_clock clock, struct rv_store **ret_store);
/* Draws what befalls the operations of the next batch, or of a start. */
void storage_plan(struct world *w);
/* The disk is full for so long. False: there is no disk. */
bool storage_fill(struct world *w, int64_t ms);
/* The process has died in the middle of an operation of its disk. */
bool storage_dead(const struct world *w);
/* It dies now: nothing that it still does reaches the disk. */
void storage_die(struct world *w);
/* The power will fail when it ends, and nothing stay that was not synced. */
void storage_cut(struct world *w);
/* It has ended, one way or the other, and the store is closed; perhaps the power has failed. */
void storage_ended(struct world *w);
/* A disk that refused to write or sync leaves only one way: out. */
void storage_check_batch(struct world *w, enum rv_err err);
/* So does a start. */
void storage_check_start(struct world *w, enum rv_err err);
/* Nobody knows whether this batch is in the store; the next start will tell. */
void storage_unknown(struct world *w, const struct rv_batch *batch, int64_t now);
bool storage_unsettled(const struct world *w);
/* Those who check look at the store between the two. */
void storage_look(struct world *w);
void storage_looked(struct world *w);
/* The store says CORRUPT where a byte has changed at rest: that is what it is to say, and the end
 * of the world, which has passed. */
bool storage_found(struct world *w, enum rv_err err);
void storage_forgive(struct world *w);
/* No more faults. */
void storage_heal(struct world *w);

#endif

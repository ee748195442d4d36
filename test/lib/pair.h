/* pair.h - a second server on the store of a world. The world acts at one of the two, and the other
 * is aside. A world may have several pairs. */
#ifndef RV_TEST_LIB_PAIR_H
#define RV_TEST_LIB_PAIR_H

#include "world.h"

struct pair {
    struct world *world;
    struct rv_store *store; /* of the server aside */
    struct rv_scheduler *scheduler;
};

/* For the ground of the world: its store may be opened several times. */
enum rv_err pair_share(struct world *w, struct rv_store **ret_store);
/* The store gets operations of its own, `ops`, in which the test may replace some; gives the
 * operations that it had. */
const struct rv_store_ops *pair_wrap(struct rv_store *store, struct rv_store_ops *ops);
/* Opens the store of the world once more. */
void pair_store(struct pair *pair, struct world *w);
/* Starts the server on it. The test gives a boot id, and what else is not as in each test. */
void pair_start(struct pair *pair, struct rv_scheduler_options options);
/* kill -9 of the server aside. */
void pair_close(struct pair *pair);
/* The world acts at the other server from now on. */
void pair_swap(struct pair *pair);
/* One batch of the server aside, and no more. */
enum rv_err pair_batch(struct pair *pair, struct rv_call **calls, size_t count);
/* Both servers live: the one aside has a batch in each quarter of a second. */
enum { PAIR_STEP_MS = 250 };
void pair_pass(struct pair *pair, int64_t ms);
/* Of the server aside; and of any. */
uint8_t pair_number(const struct pair *pair);
uint8_t pair_number_of(const struct rv_scheduler *scheduler);

#endif

/* fate.h - what goes wrong with which order: a deck of fates, shuffled by the seed. */
#ifndef SHOP_FATE_H
#define SHOP_FATE_H

#include <stdint.h>

enum shop_fault {
    SHOP_FAULT_NONE,
    SHOP_FAULT_DECLINE, /* says no, for good */
    SHOP_FAULT_HANG,    /* goes to sleep before the work and does it much later, if it still may */
    SHOP_FAULT_MUTE,    /* does the work and goes to sleep before it answers */
    SHOP_FAULT_DROP     /* does the work and closes the connection instead of answering */
};

enum { SHOP_DECK_CARDS = 20 };

/* Every 20 orders (numbers 1 to 20, 21 to 40, ...) get one deck of 20 fates, so that the seed
 * decides who meets which, not how many do. `nth` is how often this order has asked for this verb,
 * from 1. Seed 0, or an order without a number at its end: nothing goes wrong. */
enum shop_fault shop_fate(uint64_t seed, const char *order, const char *verb, uint32_t nth);

/* How long a hang lasts: one to four times `base_ms`, so that some late work comes before the undo
 * of its order and some after it. */
long shop_hang_ms(uint64_t seed, const char *order, uint32_t nth, long base_ms);

/* The order's fate in words. */
const char *shop_story(uint64_t seed, const char *order);

/* A number drawn from the seed for whatever else goes wrong. */
uint64_t shop_draw(uint64_t seed, uint64_t what);

#endif

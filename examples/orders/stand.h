/* stand.h - how one order stands at one service, and whether that fits the order's end. */
#ifndef SHOP_STAND_H
#define SHOP_STAND_H

/* The order's end as Reeve tells it. */
enum shop_end { SHOP_PROCESSED, SHOP_COMPENSATED, SHOP_ERROR, SHOP_OTHER, SHOP_END_COUNT };

/* What the service's own ledger says of one effect: how often it was done and undone, and how often
 * an undo found nothing and barred its key. */
struct shop_stand {
    unsigned done;
    unsigned undone;
    unsigned barred;
};

/* The promise, in one place for everybody who checks ledgers: what was processed was done exactly
 * once and stays; what was undone is undone as often as it was done; nothing happens twice. An
 * order in error waits for an operator: each of its effects happened once at most. NULL when all
 * holds, else what does not. */
const char *shop_stand_wrong(enum shop_end end, const struct shop_stand *stand);

#endif

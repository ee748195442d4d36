/* outbox.h - an application that writes orders with their rows for the relay, and its database. */
#ifndef RV_SIM_OUTBOX_H
#define RV_SIM_OUTBOX_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

/* Orders of the outbox are numbered from here on; those of clients are below. */
enum { OUTBOX_FIRST = 1000, OUTBOX_KEY_BYTES = 48 };

enum outbox_state {
    OUTBOX_OPEN,    /* its transaction is under way: nobody else can read it */
    OUTBOX_UNDONE,  /* it was rolled back: there is no such order */
    OUTBOX_WAITS,   /* committed, to be sent */
    OUTBOX_MOVED,   /* deleted: it is a task */
    OUTBOX_REFUSED, /* marked: it cannot be one */
    OUTBOX_OLD      /* marked: it is too old to be sent */
};

/* An order and its row: they are one, since one transaction writes both. */
struct outbox_row {
    int64_t id; /* a number that was rolled back is given again */
    uint32_t order;
    enum outbox_state state;
    bool own_key; /* the application's; else the table has drawn it */
    char key[OUTBOX_KEY_BYTES];
    int64_t created_at;     /* seconds since 1970 on its machine's clock */
    struct rv_task_id task; /* the newest that was seen; 0: none yet */
};

/* The machine's clock, milliseconds since 1970; the relay runs there too. */
int64_t outbox_wall(const struct world *w);

void outbox_new(struct world *w);
void outbox_free(struct world *w);
/* The application has something to do. */
void outbox_turn(struct world *w);
/* The power goes: what was written without a sync since the application's last commit may be
 * undone, the newest first. */
void outbox_power(struct world *w);
/* Every order is written, and every row is moved or marked. */
bool outbox_settled(const struct world *w);
/* Transactions of anybody in the database so far; 0 where there is none. */
uint64_t outbox_commits(const struct world *w);
/* Rows by their place, open ones and rolled back ones too; NULL: there are no more. */
struct outbox_row *outbox_row_at(struct world *w, size_t place);
/* NULL: there is no such order. */
struct outbox_row *outbox_order(struct world *w, int64_t order);

#endif

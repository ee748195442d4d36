/* relay_priv.h - a simulated relay's process: what relay.c and relay_os.c share. Without world.h:
 * libreeve's calls and batches are other ones than the store's. */
#ifndef RV_SIM_RELAY_PRIV_H
#define RV_SIM_RELAY_PRIV_H

#include "base/os/mailbox.h"
#include "relay/relay.h"
#include "sim/cast/relay.h"
#include "sim/world/fiber.h"

struct world;

/* A thread of the relay. */
struct strand {
    struct fiber *fiber; /* owned; NULL: there is none */
    void (*run)(void *self);
    void *self; /* borrowed */
    bool begun;
    bool over;
    uint64_t turn;                /* how often it has waited: what wakes an earlier wait is late */
    const struct rv_mailbox *box; /* it waits for this one; NULL: for something else */
};

enum { MAIN, SENDER, STRANDS };

struct relay_actor {
    struct world *world;
    char name[16];
    uint32_t number;
    uint32_t life;
    bool up;
    bool dead; /* it was killed, and is to be cleared away */
    bool has_lock;
    struct strand strands[STRANDS];
    struct exchange *asked; /* the call under way; NULL: none */
    bool heard;             /* its answer has come */
    int64_t timeout_ms;     /* of its calls */
    char why[128];          /* of the last call */
    struct rv_relay_options options;
    struct rv_relay_counts counts;
    struct rv_relay_fault fault;
    enum rv_err err; /* how it ended */
};

/* Whose code is running, and on which strand. */
extern struct relay_actor *relay_inside;
extern struct strand *relay_strand;

/* From within a strand: until it is woken, or `at` has come (negative: never). In a relay that is
 * dead it comes back once the other strand has had its turn. */
void relay_wait(int64_t at);
void relay_wake(struct relay_actor *relay, struct strand *strand);
/* A field of a line of its log; `text` absent: the number. */
void relay_says(const char *event, const char *name, struct rv_str text, int64_t number);
/* Whether it may have the lock; if not, *ret_other has it. Now and then the lock does not hold:
 * then two are at work, which does no harm. */
bool relay_may_lock(struct relay_actor *relay, uint32_t *ret_other);
/* Virtual time; a number from the dice of the relay. */
int64_t relay_now(void);
uint64_t relay_draw(void);

#endif

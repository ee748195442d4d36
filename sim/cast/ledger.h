/* ledger.h - what the agents' services have done, kept outside of the system under test. */
#ifndef RV_SIM_LEDGER_H
#define RV_SIM_LEDGER_H

#include "base/map.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

enum { LEDGER_KEY_BYTES = 32 };

/* What happened under one idempotency key of a forward step. A service applies a key once, and
 * nothing for a key that was undone: an undo leaves a tombstone, also where there was nothing to
 * undo (RULES 6). */
struct effect {
    char key[LEDGER_KEY_BYTES];
    bool applied;
    bool undone;
    bool denied;      /* its agent has said that it did not happen */
    uint32_t asked;   /* times the effect was asked for */
    uint32_t refused; /* of these after the undo */
    uint32_t undo_asked;
    int64_t applied_at;
    int64_t undone_at;
    uint32_t working; /* honest handlers that are at work on it right now */
};

struct ledger {
    struct rv_map by_hash;
    struct effect **all; /* owned; the effects too */
    size_t count;
    size_t room;
};

void ledger_new(struct world *w);
void ledger_free(struct world *w);
/* NULL: nothing was ever heard of the key. */
struct effect *ledger_find(struct world *w, struct rv_str key);
struct effect *ledger_get(struct world *w, struct rv_str key);
/* `attempt`: its number; 0: it is none. `zombie`: the agent does it although its deadline has
 * passed. */
void ledger_apply(struct world *w, struct rv_str key, int64_t attempt, bool zombie,
                  const char *agent);
void ledger_undo(struct world *w, struct rv_str key, int64_t attempt, const char *agent);

/* The canary's: effects that never happened. */
void ledger_forget(struct world *w);

#endif

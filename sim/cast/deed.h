/* deed.h - what a request asks for, and what becomes of it in the hands of an agent. */
#ifndef RV_SIM_DEED_H
#define RV_SIM_DEED_H

#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct world;

enum deed {
    DEED_DONE,        /* works, says so */
    DEED_FAIL_BEFORE, /* transient, nothing was done */
    DEED_FAIL_AFTER,  /* transient, it was done */
    DEED_REFUSE,      /* permanent, nothing was done */
    DEED_BREAK_AFTER, /* permanent, it was done */
    DEED_DENY,        /* permanent, says that nothing was done; it was */
    DEED_HANG,        /* neither does nor says anything */
    DEED_DIE          /* takes its agent with it */
};

/* `actor`: whose faults decide (enum fault_actor). */
struct errand;
enum deed deed_draw(struct world *w, uint32_t actor, const struct errand *errand);
/* The remote service of the kind never answers, not even once faults have stopped. */
bool deed_is_dead(const struct world *w, const char *kind);
bool deed_has_effect(enum deed deed);

struct errand {
    bool undo;
    bool breaks;                  /* the request says that it has its effect and fails */
    bool has_key;                 /* there is something to do outside */
    char key[RV_STEP_TEXT_BYTES]; /* of the attempt, or the one to be undone */
};

/* A request with a key in its input undoes that key; one with a note does nothing outside. */
void errand_read(struct world *w, struct rv_str input, struct rv_str own_key,
                 struct errand *ret_errand);

#endif

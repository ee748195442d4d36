/* line.h - the steps that began in the batch under way, and who stood before them in line. */
#ifndef RV_SIM_LINE_H
#define RV_SIM_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world;

enum { LINE_BEGUN_MAX = 256 };

/* An attempt that has begun. */
struct begun {
    uint64_t agent; /* hashes of its kind, and of the target that its step was sent back for */
    uint64_t target;
    bool wanted;   /* an operator wanted it tried now */
    int64_t since; /* from when on its step stood in line */
    uint8_t priority;
};

struct lineup {
    struct begun begun[LINE_BEGUN_MAX];
    size_t count;         /* at most LINE_BEGUN_MAX; others are ignored */
    int64_t bad_at;       /* virtual time at which the store refused a batch; 0: it has not */
    uint64_t bad_batches; /* how many there had been then */
};

/* A batch is over; `good`: the store refused nothing of it. */
void line_batch(struct world *w, bool good);

#endif

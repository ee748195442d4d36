/* spin.h - a short look for what is about to come, before a thread goes to sleep: to wake one takes
 * longer than much of what it waits for. Whether a look pays is learned from the waits before, and
 * from the turn before this one: under load turns are long, and a look would only cost time. */
#ifndef RV_BASE_OS_SPIN_H
#define RV_BASE_OS_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* One thread's waits for one thing. */
struct rv_spin {
    bool never;       /* one processor: who is waited for cannot run meanwhile */
    unsigned misses;  /* waits one after the other that took longer than a look */
    int64_t begun_us; /* the wait under way */
    int64_t ended_us; /* the last wait: where the turn under way began */
};

void rv_spin_init(struct rv_spin *spin);
/* A turn is over and a wait begins. The monotonic time in us until which to look; `now_us`: sleep
 * at once. */
int64_t rv_spin_begin(struct rv_spin *spin, int64_t now_us);
/* Between two looks: whether to look once more. Others who want the processor had it. */
bool rv_spin_on(int64_t until_us);
/* What was waited for has come, or its time is over. */
void rv_spin_end(struct rv_spin *spin, int64_t now_us);

#endif

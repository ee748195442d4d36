/* passing.h - what commands write to stderr goes on to the agent's own stderr, within bounds. */
#ifndef RV_AGENT_EXEC_PASSING_H
#define RV_AGENT_EXEC_PASSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A journal takes what the agent writes, so that is bounded: in bytes per attempt, and over all
 * attempts of the process by a rate. An attempt from which something was left out passes nothing
 * more on; how much was left out is one line at its end. */
enum {
    RV_PASSING_ATTEMPT_BYTES = 64 * 1024,
    RV_PASSING_BURST_BYTES = 256 * 1024,
    RV_PASSING_BYTES_PER_SECOND = 32 * 1024
};

/* Of one attempt; begins all zero. */
struct rv_passing {
    size_t passed;
    uint64_t left_out;
    bool mid_line; /* the last byte that was passed on ended no line */
};

/* Never blocks: what a slow reader of the agent's stderr does not take is left out. */
void rv_passing_add(struct rv_passing *passing, const char *bytes, size_t count);
/* The attempt has ended. The line counts against the rate, too; where there is no room, a later one
 * tells it with its own. */
void rv_passing_report(const struct rv_passing *passing, const char *agent, const char *step,
                       int64_t attempt);
/* The agent ends: what no line has told yet. */
void rv_passing_close(const char *agent);

#endif

/* passing.h - copies the stderr of commands to the agent's own stderr, within limits. */
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

/* If the log is JSON, a longer line of a command is split: each part is written at once (PIPE_BUF),
 * also if every byte of it is escaped. */
enum { RV_PASSING_LINE_BYTES = 512 };

/* Of one attempt; what is not named begins as zero. */
struct rv_passing {
    const char *agent; /* these four: borrowed for the attempt */
    const char *task;
    const char *step;
    int64_t attempt;
    size_t passed;
    uint64_t left_out;
    bool mid_line;   /* text: the last byte that was written did not end a line */
    size_t line_len; /* JSON: bytes of the current line */
    char line[RV_PASSING_LINE_BYTES];
};

/* Text is copied unchanged; if the log is JSON, each line becomes an event "stderr". Never blocks:
 * what a slow reader of the agent's stderr does not take is left out. */
void rv_passing_add(struct rv_passing *passing, const char *bytes, size_t count);
/* The attempt has ended. The line counts against the rate, too; where there is no room, a later one
 * tells it with its own. */
void rv_passing_report(struct rv_passing *passing);
/* The agent ends: what no line has told yet. */
void rv_passing_close(const char *agent);

#endif

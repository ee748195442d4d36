/* reaper.h - a process beside the agent that ends the agent's commands when the agent dies.
 *
 * Each command leads a process group. It tells the reaper its pid before it becomes the command, on
 * a pipe whose writing end only the agent and its children-to-be hold. So when that pipe ends,
 * however the agent came to its end, the reaper knows every group that is there, and kills it. */
#ifndef RV_AGENT_EXEC_REAPER_H
#define RV_AGENT_EXEC_REAPER_H

#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct rv_reaper {
    pid_t pid;
    int fd; /* owned: the writing end */
};

/* While the process has one thread. IO: errno tells more. */
RV_CHECK enum rv_err rv_reaper_start(struct rv_reaper *reaper);
/* The agent has no more commands: the reaper ends too. */
void rv_reaper_stop(struct rv_reaper *reaper);

/* From the child between fork and exec: only what a signal handler may call. False: there is no
 * reaper any more, errno is EPIPE; SIGPIPE must be blocked. */
bool rv_reaper_note(const struct rv_reaper *reaper, pid_t group);
/* Nothing of the group is left, but its leader has not been waited for, so that its number cannot
 * be somebody else's yet. */
void rv_reaper_forget(const struct rv_reaper *reaper, pid_t group);

#endif

/* command.h - one run of a command: started, fed, listened to, and ended with all its children. */
#ifndef RV_AGENT_EXEC_COMMAND_H
#define RV_AGENT_EXEC_COMMAND_H

#include "agent/exec/reaper.h"
#include "agent/exec/outcome.h"
#include "agent/exec/passing.h"
#include "base/buf.h"

#include <stdint.h>

/* What is to be run, and for how long. */
struct rv_exec_command {
    const char *path;
    char *const *arguments;
    char *const *environment;
    struct rv_str input;
    const struct rv_reaper *reaper;
    /* Whether to go on: NOT_STARTED if so, else why not: CANCELLED, HURRIED or LATE. *ret_left_ms:
     * when to ask again at the latest. */
    enum rv_exec_end (*asked)(void *user, int64_t *ret_left_ms);
    void *user;
    int wake_fd;                /* readable: ask now */
    struct rv_passing *passing; /* copies its stderr to ours */
};

/* Runs it to its end. Afterwards no process of its group is there any more. `output` has the limit
 * of a payload; output and tail are empty before. */
struct rv_exec_result rv_command_run(const struct rv_exec_command *command, struct rv_buf *output,
                                     struct rv_exec_tail *tail);

#endif

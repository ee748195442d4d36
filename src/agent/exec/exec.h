/* exec.h - the exec agent: a command of this machine does the steps of one name.
 *
 * The command runs once for each attempt: the input on its stdin, the output from its stdout, what
 * it has to know in its environment (docs/guide/agents.md). It leads a process group of its own,
 * and the group never outlives its deadline by more than RV_EXEC_GRACE_MS, nor the agent. */
#ifndef RV_AGENT_EXEC_EXEC_H
#define RV_AGENT_EXEC_EXEC_H

#include "base/err.h"

enum {
    RV_EXEC_COMMANDS_MAX = 64, /* at a time; each takes up to eleven file descriptors */
    RV_EXEC_GRACE_MS = 800     /* between SIGTERM and SIGKILL; less than rv_agent_run() waits at its
                                   end for handlers past their deadline */
};

struct rv_exec_options {
    const char *url;      /* NULL: as rv_agent_open() has it */
    const char *name;     /* of the agent */
    const char *instance; /* NULL: as rv_agent_open() has it */
    int max;              /* commands at a time, 1 to RV_EXEC_COMMANDS_MAX */
    char *const *command; /* ended by NULL; the first is a path, or a name to be found in PATH */
};

/* Why the agent did not run, or ended early; "" if it is in the log already. */
struct rv_exec_fault {
    char message[512];
};

/* Works until SIGTERM, SIGINT or SIGHUP, then lets the running commands end; a second signal ends
 * them. Logs with rv_log(). INVALID: the options, the command. IO: it could not go on. To be called
 * by a process that has one thread, and once. */
RV_CHECK enum rv_err rv_exec_run(const struct rv_exec_options *options,
                                 struct rv_exec_fault *ret_fault);

#endif

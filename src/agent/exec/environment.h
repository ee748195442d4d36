/* environment.h - where a command is, and what it finds in its environment. */
#ifndef RV_AGENT_EXEC_ENVIRONMENT_H
#define RV_AGENT_EXEC_ENVIRONMENT_H

#include "base/arena.h"
#include "reeve.h"

/* The path of a command as a shell would find it, on the arena: `name` itself if it has a slash,
 * else the first of that name in `path`, a list as the variable PATH is one. NULL: *ret_why tells
 * what is wrong. */
const char *rv_exec_find(struct rv_arena *arena, const char *name, const char *path,
                         const char **ret_why);

/* What a command has to know; texts borrowed. */
struct rv_exec_facts {
    const char *agent;
    const char *task;
    const char *step;
    const char *reference;
    const char *key;
    const char *complete_by;
    const char *traceparent; /* "": none */
    const char *tracestate;  /* "": none */
    int64_t attempt;
    int64_t fence;
    int64_t remaining_ms;
};

/* `inherited`, ended by NULL, without what the facts replace and without the agent's API key, and
 * the facts. NULL: no memory. */
char **rv_exec_environment(struct rv_arena *arena, char *const *inherited,
                           const struct rv_exec_facts *facts);

#endif

/* outcome.h - what a command that has ended says to the server; pure. */
#ifndef RV_AGENT_EXEC_OUTCOME_H
#define RV_AGENT_EXEC_OUTCOME_H

#include "base/arena.h"
#include "base/str.h"
#include "reeve.h"

#include <stdbool.h>
#include <stddef.h>

/* How a command came to its end. */
enum rv_exec_end {
    RV_EXEC_NOT_STARTED, /* `number` is the errno */
    RV_EXEC_EXITED,      /* `number` is the exit code */
    RV_EXEC_SIGNALLED,   /* by somebody else; `number` is the signal */
    RV_EXEC_FLOODED,     /* its output went over the limit, so it was ended */
    RV_EXEC_CANCELLED,   /* the server asked to stop, so it was ended */
    RV_EXEC_HURRIED,     /* the agent has to go, so it was ended */
    RV_EXEC_LATE         /* its deadline passed, so it was ended; nobody hears of it */
};

struct rv_exec_result {
    enum rv_exec_end end;
    int number;
    const char *why;      /* NOT_STARTED: what is wrong with the file; NULL: the errno says all */
    struct rv_str output; /* of stdout */
    struct rv_str errors; /* the end of stderr */
};

/* Exit code of a command that may succeed later: EX_TEMPFAIL of sysexits.h. */
enum { RV_EXEC_TEMPORARY = 75 };

/* Either `output` or, if that is absent, `failure`. Texts are on the arena or in the result. */
struct rv_exec_outcome {
    struct rv_str output; /* terminated */
    struct rv_failure failure;
};

/* What is said for the result. A command that was started and failed may have done anything, so
 * its effect is unknown unless it says otherwise: in an `error` object on stdout's last line. */
void rv_exec_outcome(struct rv_arena *arena, const struct rv_exec_result *result,
                     struct rv_exec_outcome *ret_outcome);

/* The end of a stream, so much that it fits into an error's detail. */
enum { RV_EXEC_TAIL_BYTES = 2000, RV_EXEC_TAIL_ROOM = 2 * RV_EXEC_TAIL_BYTES };
struct rv_exec_tail {
    size_t len;
    char bytes[RV_EXEC_TAIL_ROOM];
};
void rv_exec_tail_add(struct rv_exec_tail *tail, const char *bytes, size_t count);
/* Begins with a whole character and ends without blanks; borrowed from the tail. */
struct rv_str rv_exec_tail_text(const struct rv_exec_tail *tail);

#endif

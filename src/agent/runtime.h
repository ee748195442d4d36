/* runtime.h - what an agent does around its handler: deadlines, tries, circuit breakers; pure.
 *
 * It stands between the session (the server's side) and a driver that calls handlers. An attempt's
 * way: READY (a try is due) -> RUNNING (the handler has it) -> done, or failed for good: replied;
 * failed as transient: PAUSED until its next try, if that fits before the deadline, else replied.
 * An attempt whose deadline passes is never replied to; its place is free when the handler gives it
 * back. Time is the session's. */
#ifndef RV_AGENT_RUNTIME_H
#define RV_AGENT_RUNTIME_H

#include "base/str.h"
#include "client/session.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_runtime_options {
    struct rv_session_options session;
    uint32_t tries_max; /* of one attempt, at least 1 */
    int64_t retry_base_ms;
    int64_t retry_cap_ms;
    uint32_t circuit_failures; /* 0: no circuit breaker */
    int64_t circuit_open_ms;
    /* It ends with the server, whose absence is nobody's failure (RULES 9): what is not over at the
     * stop gets no reply, and the server finds it lost at its start. Else a failure is replied. */
    bool leaves;
    /* Names the target of an attempt; NULL: the agent's name. The text is copied. */
    struct rv_str (*target)(void *user, rv_place place);
    void *user;
};

struct rv_runtime;

struct rv_runtime *rv_runtime_new(const struct rv_runtime_options *options); /* NULL: no memory */
void rv_runtime_free(struct rv_runtime *runtime);

/* The conversation: next_call, answered, lost and attempts are used on it directly. */
struct rv_session *rv_runtime_session(struct rv_runtime *runtime);

/* What the driver is to do with an attempt. */
enum rv_runtime_kind {
    RV_RUNTIME_START,   /* call the handler: first try if `try_number` is 1 */
    RV_RUNTIME_CANCEL,  /* tell the running handler that the server asks to stop */
    RV_RUNTIME_EXPIRED, /* tell the running handler that its deadline has passed */
    RV_RUNTIME_RENEWED, /* the deadline has moved to rv_held_stop_at() */
    RV_RUNTIME_OVER     /* no handler has it, it will not be started again: forget it */
};
struct rv_runtime_event {
    enum rv_runtime_kind kind;
    rv_place place;
    uint32_t try_number;
};

/* The attempt itself is in rv_session_attempt() (not after OVER). False when there is nothing. */
bool rv_runtime_next_event(struct rv_runtime *runtime, int64_t now,
                           struct rv_runtime_event *ret_event);
/* When to ask again at the latest, the session's calls included. */
int64_t rv_runtime_wake_at(const struct rv_runtime *runtime);

enum rv_runtime_effect { RV_RUNTIME_BY_KIND, RV_RUNTIME_NO_EFFECT, RV_RUNTIME_UNKNOWN_EFFECT };
struct rv_runtime_failure {
    struct rv_str type;
    struct rv_str title;  /* may be absent */
    struct rv_str detail; /* may be absent */
    int status;
    bool transient;
    enum rv_runtime_effect effect; /* by kind: unknown if transient, else none */
    int64_t retry_after_ms;
};

/* The handler has ended a try. The place is the runtime's again; an OVER event follows at once or,
 * after a retry, later. */
void rv_runtime_done(struct rv_runtime *runtime, rv_place place, int64_t now, struct rv_str output);
void rv_runtime_failed(struct rv_runtime *runtime, rv_place place, int64_t now,
                       const struct rv_runtime_failure *failure);

/* Nothing new is taken, pauses end, open tries may finish. True: cut the poll that is under way. */
bool rv_runtime_stop(struct rv_runtime *runtime, int64_t now);
/* Stopped, and the only attempts left are expired ones whose handlers have not returned. */
bool rv_runtime_ended(const struct rv_runtime *runtime);
/* Handlers that have not returned. */
uint32_t rv_runtime_running(const struct rv_runtime *runtime);

struct rv_runtime_counts {
    uint64_t tries;
    uint64_t circuit_open;
};
const struct rv_runtime_counts *rv_runtime_counts(const struct rv_runtime *runtime);

#endif

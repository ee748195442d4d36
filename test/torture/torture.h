/* torture.h - what a scenario needs: where it is in its runs, and how it says what it saw. */
#ifndef RV_TEST_TORTURE_TORTURE_H
#define RV_TEST_TORTURE_TORTURE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store_faults;

/* What fails. Each is tried at the first call, the second, and so on until a run has no such call.
 *        name               text                                  error           sticky commits */
#define HARM_TABLE(X)                                                                              \
    X(ALLOCATION, "allocation", MEMORY, false, false)                                              \
    X(ALLOCATIONS, "allocations from", MEMORY, true, false)                                        \
    X(BUSY, "store busy", BUSY, false, false)                                                      \
    X(BUSY_LONG, "store busy from", BUSY, true, false)                                             \
    X(IO, "store input/output", IO, false, false)                                                  \
    X(IO_LONG, "store input/output from", IO, true, false)                                         \
    X(FULL, "store full", FULL, false, false)                                                      \
    X(FULL_LONG, "store full from", FULL, true, false)                                             \
    X(MEMORY, "store without memory", MEMORY, false, false)                                        \
    X(MEMORY_LONG, "store without memory from", MEMORY, true, false)                               \
    X(UNKNOWN_WRITTEN, "outcome unknown, written", COMMIT_UNKNOWN, false, true)                    \
    X(UNKNOWN_LOST, "outcome unknown, not written", COMMIT_UNKNOWN, false, true)                   \
    X(UNKNOWN_LONG, "outcome unknown, written, from", COMMIT_UNKNOWN, true, true)                  \
    X(OVERTAKEN, "change overtaken", CONFLICT, false, false)                                       \
    X(OVERTAKEN_LONG, "change overtaken from", CONFLICT, true, false)

enum harm {
#define HARM_ENUM(name, text, error, sticky, commits) HARM_##name,
    HARM_TABLE(HARM_ENUM)
#undef HARM_ENUM
        HARM_COUNT
};

#define HARMS_OF_HEAP ((1u << HARM_ALLOCATION) | (1u << HARM_ALLOCATIONS))
#define HARMS_OF_STORE (((1u << HARM_COUNT) - 1) & ~HARMS_OF_HEAP)

struct torture;

struct torture_calls {
    uint64_t of_heap;
    uint64_t of_store;
    uint64_t of_commit;
    uint64_t of_change;
};

struct scenario {
    const char *name;
    void (*run)(struct torture *t);
    const void *script; /* for `run` */
    unsigned harms;     /* 1 << HARM_... */
    uint64_t most;      /* runs of each, evenly spread over its calls; 0: a run for each call */
    bool canary;        /* must come out red */
};

/* One run of one scenario. */
struct torture {
    const struct scenario *scenario;
    enum harm harm;
    uint64_t at; /* the call that fails; 0: the clean run */
    bool hurt;   /* it has */
    struct torture_calls calls;
    struct rv_buf end; /* what the scenario says it came to: the same in every run */
};

/* Ends this run and the scenario as failed. */
_Noreturn void torture_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            torture_fail(__FILE__, __LINE__, __VA_ARGS__);                                         \
    } while (0)

/* Appends to what the run came to. */
void torture_says(struct torture *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What a call may answer while something fails: success, or try again. */
bool torture_allows(const struct torture *t, enum rv_err err);

/* Sets the store's faults up for this run; takes from them what has become of it. */
void torture_arm_store(const struct torture *t, struct store_faults *store);
void torture_disarm_store(struct torture *t, struct store_faults *store);

/* Runs `call` again until it succeeds; what is sticky heals after a few failures. The error must
 * name what failed: MEMORY when that is the heap. For scenarios that are a few calls. */
#define TRY(t, call)                                                                               \
    for (int tries_ = 0;; tries_++) {                                                              \
        enum rv_err err_;                                                                          \
        IN_PRODUCT(err_ = (call));                                                                 \
        if (err_ == RV_OK)                                                                         \
            break;                                                                                 \
        torture_again((t), err_, tries_, #call, __FILE__, __LINE__);                               \
    }

#define IN_PRODUCT(statement)                                                                      \
    do {                                                                                           \
        faults_enter();                                                                            \
        statement;                                                                                 \
        faults_leave();                                                                            \
    } while (0)

/* After a failure with `err`, the `tries`-th of its kind: heals what has failed often enough. */
void torture_again(const struct torture *t, enum rv_err err, int tries, const char *what,
                   const char *file, int line);

/* The scenario of the access log, and its script: how a line is added. */
struct rv_access_log;
struct rv_access_line;
struct access_script {
    void (*add)(struct rv_access_log *log, const struct rv_access_line *line);
};
void access_log_run(struct torture *t);

/* The families; each ends with a scenario without a name. */
extern const struct scenario scenarios_agents[];
extern const struct scenario scenarios_apis[];
extern const struct scenario scenarios_asks[];
extern const struct scenario scenarios_plays[];
extern const struct scenario scenarios_programs[];
extern const struct scenario scenarios_stores[];
extern const struct scenario scenarios_texts[];
extern const struct scenario scenarios_canaries[];

#endif

/* subject.h - a store under test, made by any backend, with a clock that the test moves. */
#ifndef RV_TEST_CONFORMANCE_SUBJECT_H
#define RV_TEST_CONFORMANCE_SUBJECT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/prng.h"
#include "store/load.h"
#include "store/store.h"
#include "../lib/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct rv_store_memory_data;

/* A backend joins with a line in `factories`. */
struct subject;
struct factory {
    const char *name;
    void (*create)(struct subject *subject);
    void (*open)(struct subject *subject); /* fills subject->store */
    void (*destroy)(struct subject *subject);
};
extern const struct factory factories[];
extern const size_t factories_count;

enum { SUBJECT_PATH_BYTES = 256 };

struct subject {
    const struct factory *factory;
    struct rv_store *store;                   /* owned */
    const struct rv_store_ops *ops;           /* of store */
    struct rv_enlistment enlistment;          /* of the newest opening */
    int64_t wall;                             /* what the wall clock says */
    int64_t number;                           /* of the newest batch */
    struct rv_arena arena;                    /* for everything a test makes or reads */
    struct rv_store_memory_data *memory_data; /* owned; of the memory store */
    char directory[SUBJECT_PATH_BYTES];       /* of the SQLite store */
    char path[SUBJECT_PATH_BYTES + 16];
    const char *vfs;      /* NULL: the system's files */
    int checkpoint_pages; /* 0: as many as a store has by itself */
};

void subject_init(struct subject *subject, const struct factory *factory);
void subject_done(struct subject *subject);
/* Closes and opens again, as a restart does. */
void subject_restart(struct subject *subject);
/* Opens a subject whose store was closed. */
void subject_open(struct subject *subject);

/* One transaction with these changes and nothing else. */
enum rv_err subject_commit(struct subject *subject, struct rv_change *changes, size_t count);
/* The same; every outcome must be OK. */
void subject_commit_all(struct subject *subject, struct rv_change *changes, size_t count);
/* One transaction with these records and nothing else. */
void subject_record(struct subject *subject, struct rv_record_change *records, size_t count);

/* A plain row, and a row in which every field is random (extremes included). */
struct rv_task plain_task(int64_t id, int64_t revision);
struct rv_step plain_step(uint32_t number);
struct rv_task random_task(struct subject *subject, struct rv_prng *prng, int64_t id);
struct rv_step random_step(struct subject *subject, struct rv_prng *prng, uint32_t number);
struct rv_attempt random_attempt(struct subject *subject, struct rv_prng *prng, int64_t task,
                                 uint32_t step, uint32_t number);
struct rv_late_reply random_late_reply(struct subject *subject, struct rv_prng *prng, int64_t task);
struct rv_alert random_alert(struct subject *subject, struct rv_prng *prng, int64_t id,
                             int64_t task);
struct rv_message random_message(struct subject *subject, struct rv_prng *prng, int64_t task,
                                 uint32_t number);
struct rv_history_row random_command(struct subject *subject, struct rv_prng *prng, int64_t task,
                                     uint32_t number);
struct rv_str random_str(struct subject *subject, struct rv_prng *prng);

/* An insert of a plain task with its first step; on the subject's arena. */
struct rv_change *birth_of(struct subject *s, int64_t id);
/* The same, committed. */
void bear(struct subject *s, int64_t id);
/* A change of a plain task's row alone, to this revision and state. */
struct rv_change move_of(struct subject *s, int64_t id, int64_t revision, enum rv_task_state state);
/* An insert of a random task with MANY random steps, attempts and late replies, and its dump. Steps
 * 1, 2 and 3 have 5, 5 and 2 attempts. */
enum { MANY = 12 };
void random_change(struct subject *s, struct rv_prng *prng, int64_t id, struct rv_change *change,
                   struct rv_buf *dump);
const struct rv_task *load(struct subject *s, int64_t id);
const struct rv_step *load_step(struct subject *s, int64_t id, uint32_t number);
void publish(struct subject *s, const struct rv_workflow_row *rows, size_t count,
             enum rv_err wanted);
/* shop/order in versions 1.0.0 (id 1), 1.0.1 (2), 2.0.0 (3); shop/return (4); lab/order (5). */
void publish_shop(struct subject *s);

void dump_history(struct rv_buf *out, struct subject *subject, struct rv_task_id task);
/* Of one task, with its delivery. */
void dump_messages(struct rv_buf *out, struct subject *subject, struct rv_task_id task);
/* All that a store holds, read through its lists. */
void dump_store(struct rv_buf *out, struct subject *subject);
void assert_dumps_equal(const struct rv_buf *got, const struct rv_buf *wanted);

/* Runs each case on a new store of each backend. */
struct suite_case {
    const char *name;
    CMUnitTestFunction run;
};
#define SUITE_CASE(function)                                                                       \
    {                                                                                              \
#function, function                                                                        \
    }
int suite_run(const char *name, const struct suite_case *cases, size_t cases_count);

/* REEVE_SEED repeats a run. */
uint64_t seed_of_run(void);
/* Reads the piece of the walk in a transaction of its own; gives the number of its rows. */
size_t subject_scan(struct subject *s, struct rv_scan *scan);

#endif

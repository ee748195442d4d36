/* store_faults.h - a store over another one whose calls fail when a test says so. */
#ifndef RV_TEST_LIB_STORE_FAULTS_H
#define RV_TEST_LIB_STORE_FAULTS_H

#include "store/store.h"

/* Every call counts, but close, enlist, rollback and committed. A begin that fails opens nothing; a
 * commit that fails writes nothing (COMMIT_UNKNOWN: what `unknown_writes` says); any other call
 * leaves the transaction open, as a store does. */
struct store_faults {
    struct rv_store store;
    struct rv_store *inner; /* owned from store_faults_wrap on */

    uint64_t calls;        /* so far; of commits alone if only they count */
    uint64_t commit_calls; /* so far */
    uint64_t fail_at;      /* the call that fails, from 1; 0: none */
    bool sticky;           /* and every later one */
    bool only_commits;     /* count and fail */
    enum rv_err fail_with;
    bool unknown_writes;
    bool tears; /* a commit that fails is a lie: it writes the tasks, and none of their steps */
    uint64_t failed;       /* so many of these have */
    uint32_t fail_commits; /* so many commits in a row fail, whatever their numbers, */
    uint32_t pass_commits; /* after so many */
    bool fail_roles;       /* each claim of a role fails */

    /* Changes that do not pass although they should: each one with this probability. The outcomes
     * CONFLICT, DUPLICATE and DEPOSED are drawn in turn. */
    uint64_t seed;
    uint32_t drops_per_1000;
    uint64_t drops;
    uint64_t changes; /* so far */
    uint64_t drop_at; /* the change that does not pass, from 1; 0: none; `sticky`: and later ones */

    /* A change of this task is INVALID: the store refuses each batch that contains it, unless the
     * change escalates the task. */
    struct rv_task_id offender;

    uint64_t commits;       /* that wrote something */
    uint64_t loads;         /* after a transaction had begun */
    uint64_t attempts_read; /* rows of ended attempts that were given, of all calls */
    uint64_t payload_bytes; /* of tasks, steps and late replies that were given */

    /* A machine with little memory: more rows of tasks and steps than fit there cannot be loaded
     * in one transaction, and give MEMORY. */
    uint64_t loaded_bytes;     /* in this transaction */
    uint64_t loaded_bytes_max; /* in any so far */
    uint64_t memory_bytes;     /* that fit; 0: any number */
};

/* Takes `inner` over. */
struct rv_store *store_faults_wrap(struct store_faults *faults, struct rv_store *inner);

#endif

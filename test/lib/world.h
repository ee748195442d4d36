/* world.h - a scheduler over the memory store in virtual time: what scenario tests act in. */
#ifndef RV_TEST_LIB_WORLD_H
#define RV_TEST_LIB_WORLD_H

#include "scheduler/call.h"
#include "scheduler/scheduler.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_store_memory_data;
struct store_faults;
struct world;

/* What a world stands on. */
struct world_ground {
    struct store_faults *faults; /* NULL: the store never fails */
    /* Opens the store; NULL: the memory store. It may fail if the world is faulty. */
    enum rv_err (*open)(struct world *w, struct rv_store **ret_store);
    /* Told when the scheduler and its store are entered and left; NULL: nobody looks. */
    void (*product)(struct world *w, bool inside);
    void *self;                        /* of the two */
    int64_t now;                       /* what the wall clock shows at first; 0: anything */
    struct rv_scheduler_outlet outlet; /* where messages leave; send NULL: nowhere */
    struct rv_str alert_url;           /* where alerts go; absent: nowhere */
    int64_t retain_ms;                 /* finished tasks are kept for so long; 0: for ever */
    bool may_break; /* the store may end the process: nothing runs any more then */
};

/* Time stands still until world_pass. A failed expectation ends the test through cmocka. */
struct world {
    struct world_ground ground;
    struct rv_store_memory_data *data; /* survives a restart */
    struct rv_store *store;
    struct rv_scheduler *scheduler;
    struct rv_wall_clock clock;
    int64_t turn_fuel;         /* of evaluations after a batch; 0: the scheduler's */
    uint32_t polls_parked_max; /* and calls that wait for evaluations; 0: the scheduler's */
    size_t batch_bytes_max;    /* of large calls in a batch; 0: the scheduler's */
    size_t decision_bytes_max; /* of memory of a decision's expressions; 0: the scheduler's */
    int64_t now;               /* what has passed, from what the wall clock showed at first */
    int64_t wall_ahead;        /* of that: somebody has set the wall clock */
    int64_t mono;
    int64_t heard_until; /* what arrived since waits in a mailbox; 0: no batch leaves anything */
    uint64_t serial;
    int restarts;
    int alerts;         /* log lines of alerts */
    int histories_lost; /* log lines that say so */
    int commands_logged;
    int bulks_ended; /* log lines that say so */
    int batches_failed;
    enum rv_err files;        /* what a look at the store's files finds */
    bool broke;               /* its store has ended the process */
    struct rv_call *out[256]; /* calls not yet freed */
    size_t out_count;
};

void world_open(struct world *w);
/* Over a store that fails when `faults` says so. A batch may then fail; after one whose outcome is
 * not known the server starts again, and the calls that were in it are lost: finished as
 * COMMIT_UNKNOWN. */
void world_open_faulty(struct world *w, struct store_faults *faults);
/* The same on any ground. With faults, a start that fails is made again 100 ms later. */
void world_open_on(struct world *w, struct world_ground ground);
/* The wall clock of the world that is `self`. */
int64_t world_now(void *self);
void world_close(struct world *w);
/* Setup for cmocka: a world over a store that fails when `faults` says so (NULL: never), in which
 * these files of test/workflows are published. */
int world_setup(void **state, struct store_faults *faults, const char *const *files);
#define WORLD_FILES(...) ((const char *const[]){__VA_ARGS__, NULL})
/* The same with the file "order" and without faults. */
int world_setup_order(void **state);
int world_teardown(void **state);
/* kill -9 and start: everything but the store's data is gone. `down_ms` pass meanwhile. */
void world_restart(struct world *w, int64_t down_ms);
/* The same, but no batch has run yet. */
void world_restart_unlooked(struct world *w, int64_t down_ms);
/* The same, but the first start dies before its first batch; the second is 10 ms later. */
void world_restart_stumbling(struct world *w, int64_t down_ms);
/* Time passes in steps, with a batch whenever the scheduler wants one. */
void world_pass(struct world *w, int64_t ms);
/* The same, but the server does not run (it was stopped, the clock jumped). */
void world_absent(struct world *w, int64_t ms);
/* Batches without passing time, until nothing is due at once. */
void world_settle(struct world *w);

/* A call that world_close frees. */
struct rv_call *world_call(struct world *w, enum rv_call_kind kind);
/* Runs it; true when it was finished, false when it is parked. */
bool world_run(struct world *w, struct rv_call *call);
/* A call is finished when its owner pointer says so. */
bool world_finished(const struct rv_call *call);

/* Publishes YAML; its name is shop/test:1.0.0 unless it says otherwise. */
void world_publish(struct world *w, const char *yaml);
struct rv_task_id world_submit(struct world *w, const char *workflow, const char *input);

/* Polls without waiting. The call has the requests. */
struct rv_call *world_poll(struct world *w, const char *agent, const char *instance, uint32_t max);
/* The note that the answer to this poll never left. */
struct rv_call *world_undelivered_call(struct world *w, const struct rv_call *poll);
void world_undelivered(struct world *w, const struct rv_call *poll);
/* Polls and expects exactly one request. */
struct rv_assignment world_take(struct world *w, const char *agent, const char *instance);
/* The status of the reply. */
int world_done(struct world *w, struct rv_assignment request, const char *output);
int world_fail(struct world *w, struct rv_assignment request, bool transient,
               enum rv_effect effect);
int world_reply(struct world *w, struct rv_assignment request, struct rv_reply reply);
/* A result, or NULL and an error after which nobody knows the effect. */
int world_say(struct world *w, struct rv_assignment request, const char *output, const char *error);

const struct rv_task *world_task(struct world *w, struct rv_task_id task);
/* The step with this number, or NULL. */
const struct rv_step *world_step(struct world *w, struct rv_task_id task, uint32_t number);
size_t world_count_alerts(struct world *w, struct rv_task_id task, enum rv_alert_kind kind);
/* Of all tasks: what an operator would see. */
size_t world_count_open_alerts(struct world *w);
size_t world_count_late(struct world *w, struct rv_task_id task);
/* OK or the error of the operator's command. */
enum rv_err world_operate(struct world *w, enum rv_command_kind verb, struct rv_task_id task);
/* An operator's command with all its options; the call, with the message of a refusal. */
struct rv_call *world_give(struct world *w, struct rv_task_id task, struct rv_command command);
struct rv_call *world_settle_step(struct world *w, struct rv_task_id task, uint32_t step,
                                  enum rv_finding finding, const char *output);
/* The same with what the operator has seen: how many late replies of that step's task. OK or the
 * error. */
enum rv_err world_settle_seen(struct world *w, struct rv_task_id task, uint32_t step,
                              enum rv_finding finding, const char *output, uint32_t late_seen);
/* The commands that `explain` recommends: "resubmit settle-done:3 undo ...". */
void world_assert_cures(struct world *w, struct rv_task_id task, const char *expected);
/* Somebody has edited the task's row by hand. */
void world_edit(struct world *w, struct rv_task_id task, void (*edit)(struct rv_task *, int64_t),
                int64_t value);
/* The same: the task's definition is now this one. */
void world_pin(struct world *w, struct rv_task_id task, int64_t workflow);
/* The operator's word about the agent "inventory"; the call that says it, not run yet. */
void world_limit(struct world *w, struct rv_call_limit limit);
struct rv_call *world_limit_call(struct world *w, struct rv_call_limit limit);

#define assert_state(w, task, expected)                                                            \
    assert_string_equal(rv_task_state_text(world_task((w), (task))->state), (expected))
#define assert_step(w, task, number, expected)                                                     \
    assert_string_equal(rv_step_state_text(world_step((w), (task), (number))->state), (expected))

/* What `explain` says of the task; it is there. */
const struct rv_call_explain *world_explained(struct world *w, struct rv_task_id task);
/* Takes the next request of the agent, as its instance i1, and replies {}. */
void world_complete(struct world *w, const char *agent);
/* Takes the next request of agent "one", whose input must be this, and replies {}. */
void world_expect_one(struct world *w, const char *input);

#endif

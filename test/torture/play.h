/* play.h - tasks on a store that fails: agents by rules, an operator by orders, an end that holds.
 */
#ifndef RV_TEST_TORTURE_PLAY_H
#define RV_TEST_TORTURE_PLAY_H

#include "../lib/store_faults.h"
#include "../lib/world.h"
#include "torture.h"

enum { PLAY_TASKS_MAX = 8, PLAY_AGENTS = 3, PLAY_HELD_MAX = 16, PLAY_RULES_MAX = 8 };
enum { PLAY_ORDERS_MAX = 6, PLAY_WORKFLOWS_MAX = 4, PLAY_ACKED_MAX = 64 };

/* What an agent does with a request. */
enum deed {
    DEED_DONE,        /* replies with an output, at once; what no rule names */
    DEED_FAIL,        /* a permanent error */
    DEED_STUMBLE,     /* a transient one */
    DEED_SILENT,      /* never replies */
    DEED_LATE,        /* replies done 12 seconds later, whatever has become of it */
    DEED_RENEW,       /* renews its lease for 6 seconds, then replies done */
    DEED_CIRCUIT,     /* replies that its circuit is open for 3 seconds */
    DEED_REBOOT,      /* the agent dies and starts again with nothing in its hands */
    DEED_UNDELIVERED, /* the server finds that its answer never left */
    DEED_UNHEARD      /* the answer is lost on its way: the next poll does not confirm it */
};

/* The first that matches counts. */
struct rule {
    const char *step; /* part of its reference; NULL: this rule and all behind it are none */
    int task;         /* number of the task, from 1; 0: any */
    int takes;        /* only the first so many attempts of a task's step; 0: all */
    enum deed deed;
    int orders; /* not before so many orders were carried out */
};

enum order_kind {
    ORDER_RESUBMIT = 1,
    ORDER_UNDO,
    ORDER_CANCEL,
    ORDER_ABANDON,
    ORDER_SUSPEND,
    ORDER_RESUME,
    ORDER_SETTLE,  /* the step at which the task stands */
    ORDER_ACK,     /* every open alert */
    ORDER_RESTART, /* kill -9 and a start 100 ms later */
    ORDER_DRAIN,   /* a clean stop and a start */
    ORDER_ABSENT   /* the server does not run for a minute */
};

/* Carried out in their sequence, each when its time has come, and again until it was answered well.
 */
struct order {
    enum order_kind kind; /* 0: this one and all behind it are none */
    int task;             /* from 1 */
    const char *when;     /* a state of the task, or with a slash: part of the reference of a step
                           * that an agent holds; NULL: at once */
};

struct play_task {
    const char *workflow; /* NULL: this one and all behind it are none */
    const char *input;    /* NULL: {} */
    const char *end;      /* the state in which it comes to rest */
};

struct disk;
struct play;
struct vfs;

struct script {
    const char *workflows[PLAY_WORKFLOWS_MAX]; /* files in test/workflows */
    struct play_task tasks[PLAY_TASKS_MAX];
    struct rule rules[PLAY_RULES_MAX];
    struct order orders[PLAY_ORDERS_MAX];
    int64_t step_ms;              /* that pass in each round; 0: 500 */
    bool tears;                   /* canary: see store_faults */
    bool (*also)(struct play *p); /* in each round; false: the play is not over yet */
};

struct play_held {
    struct rv_assignment request;
    char reference[128];
    int task;
    int taken; /* how often this step was taken, with this time */
    enum deed deed;
    int orders; /* that must have been carried out */
    int64_t from;
};

struct play_agent {
    const char *name;
    char instance[16];
    int boots;
    struct rv_call *poll; /* out, or NULL */
    char poll_id[32];
    bool poll_again;     /* it was not answered well: the same once more */
    char confirm_id[32]; /* of the answer that came last */
    int polls;
    struct play_held held[PLAY_HELD_MAX];
    size_t held_count;
};

struct play {
    struct torture *t;
    const struct script *script;
    struct world w;
    struct store_faults faults;
    int64_t heal_at; /* when what is sticky ends; 0: nothing has failed yet */
    struct rv_task_id tasks[PLAY_TASKS_MAX];
    int tasks_count;
    struct play_agent agents[PLAY_AGENTS];
    struct {
        int task;
        char reference[128];
        int count;
    } takes[64]; /* of steps */
    size_t takes_count;
    int orders_done;
    struct rv_step_id acked[PLAY_ACKED_MAX]; /* done, answered with 200 */
    size_t acked_count;
    bool sqlite;       /* the scenario's name ends so; else in memory */
    struct disk *disk; /* owned; of the SQLite store */
    struct vfs *vfs;   /* owned */
    void *self;        /* of script->also */
    int stage;         /* the same */
};

void play_run(struct torture *t);

/* Runs the call; true when it was answered with success. Any other answer must be one that
 * torture_allows. */
bool play_asks(struct play *p, struct rv_call *call);
/* The task's row, or NULL when that was not answered. */
const struct rv_task *play_task(struct play *p, int i);

#endif

/* history.h - all that was committed, as the simulator saw it: what checkers compare with. */
#ifndef RV_SIM_HISTORY_H
#define RV_SIM_HISTORY_H

#include "base/arena.h"
#include "base/map.h"
#include "core/rows.h"
#include "scheduler/call.h"
#include "sim/check/bound.h"
#include "sim/world/knobs.h"
#include "store/store.h"
#include "workflow/definition.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct server;
struct world;

/* What a step is, and what it asks for: neither may be decided again (check_record.c). */
struct record {
    uint64_t place;
    uint64_t request;
    uint64_t way; /* how control goes on from it */
};

struct record record_of(const struct rv_step *step);
/* What is known of a step to whatever undoes it. */
uint64_t record_known(const struct rv_step *undone);

/* A step as its last commit left it. The row's texts are gone; their hashes stay. */
struct step_past {
    struct rv_step row; /* number 0: there is none yet */
    uint64_t sum;       /* of the whole row (rows.h) */
    struct record record;
    uint64_t knew; /* UNDO: what was known of the step that it undoes when it asked last */
    uint64_t input_hash;
    uint64_t output_hash;
    uint32_t created_in;   /* number of the commit of its task */
    uint32_t left_in;      /* when control left it for the last time; 0: it is there */
    uint32_t ended;        /* attempts that have rows of their own */
    uint32_t late;         /* entries in the late-reply ledger */
    uint32_t late_attempt; /* of the newest of them */
    uint32_t deaths;       /* instances that were started again, or gone, while they had it */
    int64_t began_at;      /* virtual time at which the newest attempt was recorded, */
    uint32_t began_by;     /* and the server that did, from 1; 0: nobody knows */
    uint64_t holder;       /* of the newest attempt: history_holder() */
    uint32_t actors;       /* who works on it, and the server that began it (run/coverage.h) */
    uint64_t boot;         /* hashes of the newest attempt's boot and poll, of the open circuit's */
    uint64_t poll;         /* target */
    uint64_t target;       /* 0: none */
    uint64_t gate;         /* target of the circuit of which its newest attempt may be the probe, */
    bool gate_whole;       /* or it may be that of the circuit of the whole agent; */
    bool gate_sure;        /* and it is, if that circuit was there when it began */
    uint64_t agent;        /* hash of its kind */
    /* When each server first saw it to be overdue; likewise to be ready beside an agent that is
     * free (check/bound.c). */
    struct reading overdue[SIM_SERVERS_MAX];
    struct reading waits[SIM_SERVERS_MAX];
    /* When each, as the supervisor, first saw that nobody ends its attempt (check/overdue.c). */
    struct reading left[SIM_SERVERS_MAX];
    int64_t line_since; /* from when on it stands in line for an agent; in which batch it was */
    uint64_t lined;     /* first seen to, 0: it does not (check/line.c) */
    uint64_t free_from; /* batch since which no circuit has held it back; 0: one does */
    uint64_t queued;    /* the batch after which it was first seen ready; 0: it is not
                             * (check/counts.c) */
    bool poison_told;
    bool undo_begun;
    bool call_late; /* its alert `late-done` is open */
    bool assumed;   /* an operator said that it had done nothing, and may be wrong */
};

struct task_past {
    struct rv_task row;      /* revision 0: there is none yet */
    struct step_past *steps; /* owned; steps[number] */
    uint32_t room;
    uint32_t commits;
    uint32_t commands; /* lines of its history */
    int64_t quiet_at;  /* when the leases of forward attempts that ended unheard are over */
    const struct rv_definition *definition; /* the workload's */
    uint32_t submitters;                    /* as actors (run/coverage.h) */
    bool unreadable;                        /* it was parked since it could not be read */
    bool has_hook;                          /* its submitter has a webhook */
    bool abandoned;                         /* cancelled, its effects are left */
    bool taken_back;                        /* an undo of it met the point of no return */
    bool unclaimed;                         /* in its newest commit (check/conflict.c) */
    struct reading
        orphaned[SIM_SERVERS_MAX]; /* when each server first saw it without a live owner */
    uint32_t lost_commits;         /* that the store does not have any more */
    int64_t now;                   /* the store's clock in the newest */
    int64_t owned_at;              /* virtual time at which its owner became that */
    int64_t forgotten; /* the revision of which its owner has lost the instant; 0: none */
};

/* What agents have said about one attempt, whether or not it counted. */
struct told {
    int64_t done_at; /* wall clock at which the first `done` arrived; 0: none did */
    uint64_t outputs[4];
    uint32_t outputs_count;
};

struct history {
    struct rv_map by_id;
    struct task_past **all; /* owned */
    size_t count;
    size_t room;
    struct rv_map tokens;   /* token -> (task index << 32 | step) */
    struct rv_map told;     /* (token, step) -> struct told *, on the world's arena */
    struct rv_map commands; /* (task, number of the operator's command) -> its lines; (0, number)
                             * -> its copies on the network */
    struct rv_arena scratch;
    int64_t held_at;         /* virtual time of it */
    int64_t changed_at;      /* ... of the last, once healthy, that was another's; 0: none was */
    bool role_over;          /* the servers are killed */
    int64_t held_epoch;      /* of the last claim that was committed, */
    uint64_t held_by;        /* and the process that made it */
    int64_t open;            /* tasks */
    int64_t swept_by;        /* the retention rule was asked to take what had ended by then */
    struct rv_task_id moved; /* the task of the last commit; 0: there was none */
};

/* One committed change of one task, before and after. */
struct transition {
    struct world *w;
    const struct rv_change *change;
    struct task_past *past;      /* before */
    const struct rv_task *task;  /* after, as the store gives it back */
    const struct rv_step *steps; /* all of them, by number */
    size_t steps_count;
    int64_t now;       /* when it was decided, by the store's clock */
    int64_t batch_now; /* when its batch began, */
    int64_t unsure_ms; /* ... which its server knows this exactly, by its own clock */
};

void history_new(struct world *w);
void history_free(struct world *w);

/* A transaction that was committed. */
struct committed {
    int64_t now;       /* the store's clock when it was decided, */
    int64_t batch_now; /* ... when its batch began, */
    int64_t begun_at;  /* ... in virtual time */
    uint64_t number;   /* counts what the store has */
};

/* The tap's. */
void history_committed(struct world *w, struct rv_store *store, const struct rv_change *change,
                       const struct committed *by);
/* The task that was committed last never was. */
void history_forget_last(struct world *w, struct rv_task_id id);
/* Whether the operator's word ended the task where it stood (RULES 7). */
bool history_abandons(const struct rv_task *task);
/* Whether that process made the newest claim of the supervisor's role; false: nobody knows. */
bool history_supervises(const struct world *w, const struct server *s);
/* That claim of the fault actor's server is committed. */
void history_holds(struct world *w, uint32_t actor, int64_t epoch);
/* The server's. */
void history_started(struct world *w, struct rv_store *store, int64_t open_tasks);
void history_arrived(struct world *w, const struct rv_call *call);
void history_handed_out(struct world *w, const struct rv_poll *poll);

struct task_past *history_task(struct world *w, struct rv_task_id id); /* NULL: none */
/* What was committed of it was lost with the store's newest transactions: what was said to the
 * outside, and done there, need not fit any more. */
bool history_lacks(struct world *w, struct rv_task_id id);
/* The retention rule may have deleted it: only what has ended, and long enough ago. */
bool history_may_be_gone(struct world *w, const struct rv_task *task);
/* The same of what is known of that task; false: nothing is. */
bool history_over(struct world *w, struct rv_task_id id);
/* The tap's: a batch with that piece of the rule is sent to the store. */
void history_swept(struct server *s, const struct rv_sweep *sweep, int64_t now);
/* NULL: none. Checkers ask for each step at each commit. */
static inline struct step_past *history_step(struct task_past *task, uint32_t number)
{
    bool there = task != NULL && number != 0 && number < task->room &&
                 task->steps[number].row.number != 0;
    return there ? &task->steps[number] : NULL;
}
/* NULL: nothing. */
const struct told *history_told(struct world *w, struct rv_step_id step, uint64_t token);
uint64_t history_hash(struct rv_str text);
/* Stands for an instance of an agent. */
uint64_t history_holder(struct rv_str agent, struct rv_str instance);

#endif

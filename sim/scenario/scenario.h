/* scenario.h - small worlds without chance: who does what, and how it must end. */
#ifndef RV_SIM_SCENARIO_H
#define RV_SIM_SCENARIO_H

#include "agent/runtime.h"
#include "core/state.h"
#include "sim/cast/agent.h"
#include "sim/scenario/crossing.h"
#include "sim/world/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct world;

enum {
    SCENARIO_TASKS_MAX = 2,
    SCENARIO_ACTS_MAX = 4,
    SCENARIO_HABITS_MAX = 4,
    SCENARIO_BOOKS_MAX = 5
};

/* When an act's time has come; acts wait for those before them. */
enum cue {
    CUE_AT_ONCE,
    CUE_WORK,  /* somebody has begun to work on the step `at` */
    CUE_PARKED /* the task is in error */
};

enum verb {
    VERB_SUBMIT,
    VERB_SUBMIT_OTHER,
    VERB_RESUBMIT,
    VERB_SETTLE, /* the step being undone was undone by hand */
    VERB_CANCEL,
    VERB_ABANDON
};

/* What an application or an operator does, again and again until it has an answer. */
struct act {
    enum verb verb;
    uint32_t task; /* by number; its key is made of it */
    enum cue when;
    const char *at;
};

enum manner {
    MANNER_GOOD,
    MANNER_LAST_MOMENT, /* replies a millisecond before its deadline */
    MANNER_DEAF,        /* hears no cancel, keeps its deadline */
    MANNER_ZOMBIE       /* has its effect after its deadline, and says so */
};

/* What the service behind a step does when it is called. It is outside of all that may crash: it
 * counts the calls of one key. The first habit of the step that applies counts; without one it
 * works for a moment and is done. */
struct habit {
    const char *step; /* the last part of its reference */
    enum deed deed;
    uint32_t times; /* for so many calls of one key; 0: always */
    uint32_t until; /* ... that come before this act (from 1 on) was begun; 0: none */
    enum manner manner;
    int64_t lasts_ms; /* half of it before the effect; of a zombie: from its deadline on */
    int64_t pause_ms; /* its failure asks for such a pause before the next attempt; 0: none */
};

/* What the services' books say about one step of one task in the end: for the undisturbed run
 * exactly, else with at most one more request for each crash. In the order of the way forward: it
 * is undone in reverse. */
struct book {
    uint32_t task;
    const char *step;
    uint32_t stays; /* effects that are there and were not undone */
    uint32_t asked;
    uint32_t undos;
    bool open; /* once something has crashed it may as well not have happened */
};

struct scenario {
    const char *name;
    const char *shows; /* failure modes of the reliability programme */
    const char *tells;
    uint32_t kinds;   /* of agents; one of each */
    uint32_t tries;   /* of an agent inside an attempt; 0: one */
    uint32_t circuit; /* failures that open its circuit; 0: it has none */
    int64_t down_ms;  /* a crashed server is back after this time */
    int64_t spare_ms; /* beyond what is due for a crash: where attempts expire, or wait by dice */
    uint32_t spare;   /* ... attempts */
    uint32_t servers; /* of a shared store; 0: one with a store of its own */
    uint32_t hooks;   /* webhooks: task 0 replies to the first */
    const char *flows[SCENARIO_TASKS_MAX]; /* YAML; of task 0, of task 1 */
    struct act acts[SCENARIO_ACTS_MAX];
    uint32_t acts_count;
    struct habit habits[SCENARIO_HABITS_MAX];
    struct book books[SCENARIO_BOOKS_MAX];
    enum rv_task_state ends[SCENARIO_TASKS_MAX];
    uint32_t tasks;
};

size_t scenarios_count(void);
const struct scenario *scenario_at(size_t i);
/* NULL: there is none of that name. */
const struct scenario *scenario_find(const char *name);

/* How a run is to be. */
struct run {
    const struct crash *crashes;
    uint32_t crashes_count;
    int64_t until;         /* virtual time by which it has to be over */
    uint32_t attempts_max; /* in all; 0: does not matter */
    FILE *transcript;      /* NULL: nobody reads it */
    bool plain;            /* the transcript is a story (run/story.h) */
    bool forget;           /* the canary: the services forget what they did */
};

struct ran {
    int64_t over; /* when every task had ended; a quiet while followed */
    uint32_t attempts;
};

/* Runs it to its end; afterwards w->violated says how it went. */
void scenario_run(struct world *w, const struct scenario *scenario, struct crossings *crossings,
                  const struct run *run, struct ran *ret);

/* What a crash may cost at most, beside the undisturbed run. */
struct due {
    int64_t late_ms;
    uint32_t attempts;
};
struct due scenario_due(const struct scenario *scenario, enum boundary boundary, enum twist twist);

/* ---- for the actors in its world ---- */

void scenario_agent(const struct world *w, struct rv_runtime_options *options);
struct habit scenario_habit(struct world *w, struct rv_str reference, struct rv_str key, bool undo);

void script_turn(struct world *w);
void script_answered(struct world *w, struct exchange *x);
void script_lost(struct world *w, struct exchange *x);

#endif

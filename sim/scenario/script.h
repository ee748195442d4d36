/* script.h - how far the acts of a scenario are. */
#ifndef RV_SIM_SCRIPT_H
#define RV_SIM_SCRIPT_H

#include "base/id.h"
#include "sim/cast/ledger.h"
#include "sim/scenario/scenario.h"

enum { SCRIPT_KEYS_MAX = 64 };

/* How often a service was called with a key. */
struct called {
    char key[LEDGER_KEY_BYTES];
    bool undo;
    uint32_t times;
};

struct script {
    uint32_t next;                  /* act, from 0 on */
    bool busy;                      /* its call is under way */
    uint32_t sent;                  /* times that it was sent */
    uint32_t begun;                 /* acts that were sent at least once: all before this one */
    bool worked[SCENARIO_ACTS_MAX]; /* CUE_WORK: it was seen */
    struct rv_task_id tasks[SCENARIO_TASKS_MAX]; /* acknowledged */
    struct called called[SCRIPT_KEYS_MAX];
    uint32_t called_count;
};

void script_new(struct world *w);
/* Nothing is left to be done, and every task has ended or waits for somebody who does not come. */
bool script_over(struct world *w);

/* scenario_books.c: the end is the expected one. */
void scenario_check(struct world *w);

#endif

/* knobs.h - what a seed draws for its world: who is there, and which faults occur how often. */
#ifndef RV_SIM_KNOBS_H
#define RV_SIM_KNOBS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SIM_AGENTS_MAX = 8,
    SIM_CLIENTS_MAX = 4,
    SIM_KINDS_MAX = 3,
    SIM_WORKFLOWS_MAX = 4,
    SIM_TASKS_MAX = 300
};

/* Rates are per mille of the occasions. 0: this class of faults is off in this world. */
struct knobs {
    uint32_t servers;
    uint32_t kinds;
    uint32_t agents;
    uint32_t clients;
    uint32_t tasks; /* in all */
    uint32_t workflows;
    bool operator_there;
    int64_t safety_ms; /* faults stop then at the latest */

    /* messages */
    uint32_t loss;
    uint32_t duplicate;
    int64_t delay_ms; /* mean */
    uint32_t tail;    /* delays of 1 to 60 s */
    uint32_t silence; /* a connection that breaks without anybody being told */

    /* server */
    uint32_t kill_before; /* of the batches: dies before the commit, after it, between two */
    uint32_t kill_after;
    uint32_t kill_idle; /* per look, once a second */
    uint32_t unknown;   /* the commit's outcome is not known, but can be asked */
    uint32_t busy;
    uint32_t full; /* the disk is full for some seconds */
    uint32_t server_pause;
    uint32_t server_stop; /* a clean stop, with its drain */
    int64_t down_ms;      /* mean of a downtime */
    uint32_t batch_max;
    int64_t scan_ms;
    int64_t role_ms;
    uint32_t clock_jump; /* per look, once a second */

    /* agents */
    uint32_t agent_crash; /* per look, once a second */
    uint32_t agent_pause;
    int64_t work_ms; /* mean of a try that works */
    uint32_t slow;   /* longer than its complete-by, perhaps */
    uint32_t hang;
    uint32_t zombie;      /* has its effect although its deadline has passed, and says so */
    uint32_t fail_before; /* transient, nothing was done */
    uint32_t fail_after;  /* transient, it was done */
    uint32_t refuse;      /* permanent, nothing was done */
    uint32_t break_after; /* permanent, it was done: effect unknown */
    uint32_t twice;       /* contradicts itself in a second reply */
    uint32_t circuit;     /* failures that open an agent's circuit; 0: it has none */
    int32_t drift_ppm;    /* of the agents' clocks, at most */

    /* people */
    uint32_t repeat;        /* a client submits again what was acknowledged */
    uint32_t other_body;    /* ... with another body */
    uint32_t operator_acts; /* per look, once a second */
};

struct world;
void knobs_draw(struct world *w);
/* One line for the transcript. */
void knobs_say(struct world *w);

#endif

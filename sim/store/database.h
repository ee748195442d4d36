/* database.h - what all servers share and no crash of theirs takes: the store's data, its clock. */
#ifndef RV_SIM_DATABASE_H
#define RV_SIM_DATABASE_H

#include "sim/store/memory/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_batch;
struct server;
struct world;

enum { ABSENCES_KEPT = 4096 };

/* A time in which no server looked at the clock. */
struct absence_seen {
    int64_t from; /* on the wall clock */
    int64_t until;
};

struct database {
    struct rv_store_memory_data *data; /* owned */
    struct rv_store *reader;           /* owned; NULL: not shared */
    struct rv_wall_clock clock;
    int64_t wall_ahead; /* of the virtual time */
    int64_t slow_until; /* a call that was slow, or lost, before faults stopped arrives */
    int64_t looked_at;  /* what the last look of any server has shown */
    struct absence_seen *absences; /* owned */
    size_t absences_count;
    size_t lost;          /* transactions that a standby had not heard of */
    int64_t committed_at; /* the store's clock in the newest transaction */
    int64_t held_until;   /* servers that are gone had to delete nothing before (decision 019) */
    int64_t down_until;   /* virtual time: nobody answers */
    int64_t read_only_until;
    uint64_t connections; /* all that were open before this number changed are broken */
    uint64_t base;        /* transactions that no standby can lack */
};

void database_new(struct world *w);
void database_free(struct world *w);
/* A server opens the store. An error: it cannot now. */
enum rv_err database_open(struct world *w, struct rv_store **ret_store);

int64_t database_wall(const struct world *w);
/* Agents can keep deadlines that were set by it: it neither jumps nor drifts nor trembles. */
bool database_clock_good(const struct world *w);
/* A server looks at the store's clock, which shows `now`; `slack_ms`: so much later than the last
 * look is no absence yet. */
void database_look(struct world *w, int64_t now, int64_t slack_ms);
/* A server has started, has found when the store was last used, and reads its clock first. */
void database_found(struct server *s, int64_t now);
/* ... and when all that wait for their operator before they delete anything have done so. */
int64_t database_held_until(const struct world *w);
/* The end of the last absence, on the store's clock. */
int64_t database_attended_since(const struct world *w);
/* True when the instant (wall clock) passed while no server looked. */
bool database_was_alone(const struct world *w, int64_t at);
/* The store past all faults, for those who check. */
struct rv_store *database_reader(struct world *w);
/* Several servers may use it, over connections that fail. */
bool database_shared(const struct world *w);
/* How many transactions it has. */
uint64_t database_number(const struct world *w);
/* A transaction that began at `now` is there; `claims`: it takes or renews a role. */
void database_committed(struct world *w, const struct rv_batch *batch, bool claims, int64_t now);
/* Where faults have stopped: what was slow or lost before makes a server wait until then. */
void database_slow(struct world *w, int64_t until);
/* Faults begin. */
void database_begin(struct world *w);
/* Once a second: its clock may jump, it may take no writes, a standby may take over. */
void database_turn(struct world *w);
void database_heal(struct world *w);

#endif

#include "sim/world/world.h"

#include "base/assert.h"
#include "base/hash.h"
#include "sim/cast/agent.h"
#include "sim/check/check.h"
#include "sim/cast/client.h"
#include "sim/run/coverage.h"
#include "sim/scenario/crossing.h"
#include "sim/store/database.h"
#include "sim/cast/hook.h"
#include "sim/world/hints.h"
#include "sim/world/net.h"
#include "sim/cast/operator.h"
#include "sim/cast/outbox.h"
#include "sim/world/partition.h"
#include "sim/cast/relay.h"
#include "sim/store/rewind.h"
#include "sim/store/rows.h"
#include "sim/scenario/scenario.h"
#include "sim/cast/said.h"
#include "sim/world/server.h"
#include "sim/cast/shell.h"
#include "sim/store/storage.h"
#include "sim/run/story.h"
#include "sim/run/with.h"
#include "sim/cast/workload.h"
#include "sim/world/wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_MAX = 5000000,
    SETTLE_MS = 10 * 60 * 1000, /* once healed, every task is settled within this time, */
    ORDER_MS = 3000,            /* ... and this for each order that is yet to come */
    LISTS_WITHIN_MS = 1000,
    STORY_BYTES = 4096 /* of a line of a story */
};

/* ---- what actors use ---- */

void world_at(struct world *w, int64_t at, enum event_kind kind, uint32_t actor, uint64_t detail)
{
    enum rv_err err = rv_heap_push(&w->events, at, (uint64_t)actor << 8 | kind, detail);
    rv_assert(err == RV_OK);
}

uint64_t world_roll(struct world *w, unsigned stream, uint64_t bound)
{
    return bound > 1 ? rv_prng_below(&w->dice[stream], bound) : 0;
}

bool world_chance(struct world *w, unsigned stream, uint32_t permille)
{
    return permille != 0 && rv_prng_below(&w->dice[stream], 1000) < permille;
}

/* The sum of geometric steps needs no logarithm, and so no library's rounding. */
int64_t spread(struct rv_prng *dice, int64_t mean_ms)
{
    if (mean_ms <= 0)
        return 0;
    int64_t whole = 0;
    while (whole < 8 && rv_prng_below(dice, 1000) < 368)
        whole++;
    return whole * mean_ms + (int64_t)rv_prng_below(dice, (uint64_t)mean_ms);
}

int64_t world_spread(struct world *w, unsigned stream, int64_t mean_ms)
{
    return spread(&w->dice[stream], mean_ms);
}

static void line(struct world *w, const char *actor, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
static void line(struct world *w, const char *actor, const char *format, va_list args)
{
    char text[STORY_BYTES];
    if (w->story != NULL) {
        vsnprintf(text, sizeof text, format, args);
        story_line(w, actor, text);
        return;
    }
    fprintf(w->transcript, "%9lld.%03lld %-10s ", (long long)(w->now / 1000),
            (long long)(w->now % 1000), actor);
    vfprintf(w->transcript, format, args);
    fputc('\n', w->transcript);
}

void world_say(struct world *w, const char *actor, const char *format, ...)
{
    if (w->transcript == NULL)
        return;
    va_list args;
    va_start(args, format);
    line(w, actor, format, args);
    va_end(args);
}

void world_detail(struct world *w, const char *actor, const char *format, ...)
{
    if (w->transcript == NULL || w->story != NULL)
        return;
    va_list args;
    va_start(args, format);
    line(w, actor, format, args);
    va_end(args);
}

void world_trace(struct world *w, uint64_t number)
{
    w->trace = rv_hash_int(w->trace ^ number) + UINT64_C(0x9e3779b97f4a7c15);
}

void world_violate(struct world *w, const char *invariant, const char *format, ...)
{
    if (w->violated != NULL)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(w->detail, sizeof w->detail, format, args);
    va_end(args);
    w->violated = invariant;
    for (const char *at = w->detail; w->concerned.value == 0 && *at != '\0'; at++) {
        size_t word = strspn(at, "0123456789ABCDEFGHJKMNPQRSTVWXYZ");
        if (word == RV_ID_TEXT_BYTES - 1)
            (void)!rv_task_parse((struct rv_str){at, word}, &w->concerned);
        at += word > 0 ? word - 1 : 0;
    }
    world_say(w, "VIOLATED", "%s: %s", invariant, w->detail);
}

/* ---- the run ---- */

static void net_event(struct world *w, enum event_kind kind, uint64_t exchange)
{
    if (kind == EVENT_ARRIVE)
        net_arrive(w, exchange);
    else if (kind == EVENT_ANSWER)
        net_answered(w, exchange);
    else if (kind == EVENT_LOST)
        net_lost(w, exchange);
    else
        net_left(w, exchange);
}

static void shop_event(struct world *w, enum event_kind kind, uint32_t actor, uint64_t detail)
{
    if (kind == EVENT_RELAY)
        relay_turn(w, actor, detail);
    else if (kind == EVENT_RELAY_TROUBLE)
        relay_trouble(w, actor, detail);
    else
        outbox_turn(w);
}

/* What a server says to a webhook, or to another server. */
static void news_event(struct world *w, enum event_kind kind, uint32_t actor, uint64_t detail)
{
    if (kind == EVENT_HOOK)
        hook_turn(w, detail);
    else
        hint_arrives(w, actor, detail);
}

/* Of a process that is still there. */
static void server_event(enum event_kind kind, struct server *s, int64_t at)
{
    if (kind == EVENT_STORE)
        server_go_on(s);
    else if (kind == EVENT_AWAY)
        server_away(s);
    else if (at == s->run_at)
        server_turn(s);
}

static void event_run(struct world *w, const struct rv_heap_entry *entry)
{
    enum event_kind kind = entry->value & 0xff;
    uint32_t actor = (uint32_t)(entry->value >> 8);
    switch (kind) {
    case EVENT_ARRIVE:
    case EVENT_ANSWER:
    case EVENT_LOST:
    case EVENT_LEFT:
        net_event(w, kind, entry->detail);
        return;
    case EVENT_SERVER:
    case EVENT_STORE:
    case EVENT_AWAY:
        if (entry->detail == w->servers[actor].starts)
            server_event(kind, &w->servers[actor], entry->at);
        return;
    case EVENT_START:
        server_start(&w->servers[actor]);
        return;
    case EVENT_CLOCK:
        database_turn(w);
        return;
    case EVENT_AGENT:
        agent_turn(w, actor, entry->detail);
        return;
    case EVENT_REVIVE:
        agent_revive(w, actor);
        return;
    case EVENT_TROUBLE:
        agent_trouble(w, actor);
        return;
    case EVENT_CLIENT:
        client_turn(w, actor);
        return;
    case EVENT_OPERATOR:
        operator_turn(w);
        return;
    case EVENT_OUTAGE:
        server_outage(&w->servers[actor]);
        return;
    case EVENT_SCRIPT:
        script_turn(w);
        return;
    case EVENT_SHELL:
        shell_turn(w, actor, entry->detail);
        return;
    case EVENT_SHELL_TROUBLE:
        shell_trouble(w, actor);
        return;
    case EVENT_AUTHOR:
        author_turn(w);
        return;
    case EVENT_LIMITER:
        limiter_turn(w);
        return;
    case EVENT_PARTITION:
        partition_turn(w);
        return;
    case EVENT_HOOK:
    case EVENT_HINT:
        news_event(w, kind, actor, entry->detail);
        return;
    case EVENT_RELAY:
    case EVENT_RELAY_TROUBLE:
    case EVENT_OUTBOX:
        shop_event(w, kind, actor, entry->detail);
        return;
    }
}

void world_pass(struct world *w, int64_t until, bool (*stop)(struct world *w))
{
    const struct rv_heap_entry *first;
    struct rv_heap_entry entry;
    uint64_t commits = w->commits + outbox_commits(w);
    while (w->violated == NULL && (first = rv_heap_first(&w->events)) != NULL &&
           first->at <= until) {
        rv_heap_pop(&w->events, &entry);
        /* What a settled batch has set off (unsettled.c) may be due before now. */
        w->now = entry.at > w->now ? entry.at : w->now;
        world_trace(w, (uint64_t)entry.at);
        world_trace(w, entry.value ^ entry.detail << 32);
        w->concerned = (struct rv_task_id){0};
        event_run(w, &entry);
        crossing_settle(w);
        if (++w->events_done > EVENTS_MAX)
            world_violate(w, "I-32", "%d events and no end", EVENTS_MAX);
        uint64_t after = w->commits + outbox_commits(w);
        if (stop != NULL && after != commits && stop(w))
            return;
        commits = after;
    }
    if (w->now < until)
        w->now = until;
}

/* Safety: faults of every kind until all is submitted or the time is over. */
static void phase_safety(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        world_at(w, w->now + 1000, EVENT_OUTAGE, i, 0);
    database_begin(w);
    world_at(w, w->now + 1000, EVENT_PARTITION, 0, 0);
    world_pass(w, w->now + w->knobs.safety_ms, NULL);
}

static void settle(struct world *w)
{
    int64_t within_ms = SETTLE_MS + (int64_t)clients_left(w) * ORDER_MS;
    world_pass(w, w->now + within_ms, check_all_settled);
    if (w->violated == NULL && !outbox_settled(w))
        world_violate(w, "X-02", "%d s after the last fault not every row of the outbox is moved",
                      (int)(within_ms / 1000));
    if (w->violated == NULL && !check_all_settled(w))
        world_violate(w, "I-20", "%d s after the last fault not every task has ended or is parked",
                      (int)(within_ms / 1000));
}

/* Liveness: nothing fails any more, what was under way arrives, however late (an order whose task a
 * fail-over has lost is then taken anew), and every task has to come to its end. */
static void phase_liveness(struct world *w)
{
    world_say(w, "world", "faults stop");
    w->healed = true;
    w->healed_at = w->now;
    partition_heal(w);
    database_heal(w);
    servers_heal(w);
    agents_heal(w);
    shells_heal(w);
    relays_heal(w);
    world_pass(w, w->net->late_until, NULL);
    if (w->violated == NULL)
        settle(w);
}

/* Nothing happens any more, but that an operator resubmits what is parked: what that has set going
 * comes to its end, too. */
static void phase_quiet(struct world *w)
{
    struct bounds before = w->bounds;
    bool waits = check_waits_for_dead(w);
    world_pass(w, w->now + w->knobs.quiet_ms, NULL);
    if (w->violated == NULL)
        check_idle(w, &before, waits);
    check_lists(w);
    world_pass(w, w->now + LISTS_WITHIN_MS, NULL);
    if (w->violated == NULL && !check_all_settled(w))
        settle(w);
    check_role_end(w);
}

/* One line that names the world, and one that shows what it is made of. */
static void world_introduce(struct world *w, const struct with *with)
{
    struct rv_buf text;
    rv_buf_init(&text, WITH_BYTES_MAX);
    if (with != NULL)
        with_write(with, &text);
    world_say(w, "world", "seed %llu%s%.*s", (unsigned long long)w->seed,
              text.len > 0 ? " with " : "", RV_STR_FMT(rv_buf_str(&text)));
    rv_buf_reset(&text);
    knobs_say(&w->knobs, &text);
    world_say(w, "world", "%.*s", RV_STR_FMT(rv_buf_str(&text)));
    rv_buf_done(&text);
}

void world_init(struct world *w, const struct world_setup *setup)
{
    *w = (struct world){
        .seed = setup->seed, .transcript = setup->transcript, .coverage = setup->coverage};
    rv_heap_init(&w->events);
    rv_arena_init(&w->arena, 0);
    for (unsigned i = 0; i < STREAM_COUNT; i++)
        rv_prng_init(&w->dice[i], rv_hash_int(w->seed * 1000 + i + 1));
    w->net = calloc(1, sizeof *w->net);
    w->wire = wire_new();
    w->partitions = calloc(1, sizeof *w->partitions);
    rv_assert(w->net != NULL && w->partitions != NULL);
    knobs_draw(&w->knobs, w->seed);
    if (setup->with != NULL)
        with_apply(setup->with, &w->knobs);
    knobs_fit(&w->knobs);
    faults_new(w, setup->with && setup->with->chosen ? &setup->with->only : NULL, setup->record);
}

void world_open(struct world *w)
{
    ledger_new(w);
    history_new(w);
    said_new(w);
    hooks_new(w);
    hints_new(w);
    database_new(w);
    servers_new(w);
    for (uint32_t i = 0; i < w->knobs.servers; i++)
        server_start(&w->servers[i]);
    net_homes(w);
}

void world_run(struct world *w, const struct world_setup *setup)
{
    world_init(w, setup);
    if (w->transcript != NULL)
        world_introduce(w, setup->with);
    w->healed = true; /* the workflows are published undisturbed */
    world_open(w);
    workload_new(w);
    if (w->violated == NULL)
        world_pass(w, w->now + 100, NULL);
    while (w->violated == NULL && w->knobs.servers > 1 && !workload_is_there(w))
        world_pass(w, w->now + 1000, NULL);
    w->healed = false;
    if (w->violated == NULL) {
        agents_new(w);
        shells_new(w);
        author_new(w);
        clients_new(w);
        operator_new(w);
        limiter_new(w);
        relays_new(w);
        phase_safety(w);
    }
    if (w->violated == NULL)
        phase_liveness(w);
    if (w->violated == NULL)
        phase_quiet(w);
    if (w->violated == NULL) /* nobody delivers what the cut leaves */
        check_heard(w);
    if (w->violated == NULL)
        servers_cut(w);
    if (w->violated == NULL && w->knobs.canary)
        ledger_forget(w);
    if (w->violated == NULL)
        check_end(w);
    if (w->violated == NULL) {
        w->rows = rows_all(w, database_reader(w));
        world_say(w, "world", "ends with rows %016llx", (unsigned long long)w->rows);
        world_trace(w, w->rows);
    }
    storage_forgive(w);
    coverage_end(w->coverage, w);
}

void world_free(struct world *w)
{
    w->over = true;
    servers_free(w);
    hooks_free(w);
    hints_free(w);
    database_free(w);
    agents_free(w);
    shells_free(w);
    relays_free(w);
    clients_free(w);
    rewind_free(w);
    history_free(w);
    said_free(w);
    ledger_free(w);
    faults_free(w);
    story_free(w);
    free(w->partitions);
    wire_free(w->wire);
    free(w->net->all);
    free(w->net);
    rv_heap_done(&w->events);
    rv_arena_done(&w->arena);
}

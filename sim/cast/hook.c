/* A message travels, arrives and is answered. A webhook checks what it hears: the bytes that were
 * committed, and for each task the numbers in their order, however often a number comes again. */
#include "sim/cast/hook.h"

#include "base/assert.h"
#include "base/map.h"
#include "sim/check/check.h"
#include "sim/run/story.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/history.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { TRAVEL_MS = 20, DOWN_MS = 30000, TIMEOUT_MS = 15000 };

struct flight {
    struct rv_notice *notice; /* owned */
    uint32_t server;
    uint32_t starts; /* of the process that sent it */
    bool answered;
    struct rv_notice_result result;
};

struct hooks {
    struct flight *flights; /* owned; by number, never used again */
    size_t count;
    size_t room;
    struct rv_map heard;   /* task -> the newest number that came */
    struct rv_map said;    /* (task, number) -> hash of the body that was committed */
    int64_t down_until[4]; /* by webhook */
};

void hooks_new(struct world *w)
{
    w->hooks = calloc(1, sizeof *w->hooks);
    rv_assert(w->hooks != NULL);
    rv_map_init(&w->hooks->heard);
    rv_map_init(&w->hooks->said);
}

void hooks_free(struct world *w)
{
    if (w->hooks == NULL)
        return;
    for (size_t i = 0; i < w->hooks->count; i++)
        free(w->hooks->flights[i].notice);
    free(w->hooks->flights);
    rv_map_done(&w->hooks->heard);
    rv_map_done(&w->hooks->said);
    free(w->hooks);
    w->hooks = NULL;
}

struct rv_str hook_reply_to(struct world *w, uint32_t number)
{
    uint32_t of = w->knobs.hooks == 0 ? 0 : number % (w->knobs.hooks + 2);
    if (of == 0)
        return RV_STR_NONE;
    if (of > w->knobs.hooks)
        return RV_STR("{\"stream\":true}");
    return rv_arena_printf(&w->arena, "{\"url\":\"http://hook-%u/%u\",\"stream\":%s}", of, number,
                           number % 2 == 0 ? "true" : "false");
}

/* ---- on its way ---- */

static enum rv_err hook_check(void *self, struct rv_str url, char *ret_text, size_t text_bytes)
{
    (void)self;
    rv_assert(url.len > sizeof "http://hook-1");
    snprintf(ret_text, text_bytes, "%.*s", (int)sizeof "http://hook-1" - 1, url.at);
    return RV_OK;
}

static void hook_send(void *self, struct rv_notice *notice)
{
    struct server *s = self;
    struct world *w = s->world;
    struct hooks *h = w->hooks;
    if (h->count == h->room) {
        h->room = h->room != 0 ? 2 * h->room : 64;
        h->flights = realloc(h->flights, h->room * sizeof *h->flights);
        rv_assert(h->flights != NULL);
    }
    h->flights[h->count] = (struct flight){notice, s->number, s->starts, .answered = false};
    world_at(w, w->now + 1 + world_spread(w, STREAM_HOOK, TRAVEL_MS), EVENT_HOOK, 0, h->count++);
}

struct rv_scheduler_outlet hook_outlet(struct server *s)
{
    if (s->world->knobs.hooks == 0)
        return (struct rv_scheduler_outlet){.send = NULL};
    return (struct rv_scheduler_outlet){hook_check, hook_send, s};
}

/* ---- where it arrives ---- */

/* N-01: what is sent was committed, in the same bytes. N-02: the first time that a message of a
 * task comes, all before it have come. */
static void hear(struct world *w, const struct rv_notice *notice)
{
    struct hooks *h = w->hooks;
    uint64_t task = (uint64_t)notice->task.value;
    const uint64_t *said = rv_map_find(&h->said, task, notice->number);
    const uint64_t *heard = rv_map_find(&h->heard, task, 0);
    uint64_t newest = heard != NULL ? *heard : 0;
    w->concerned = notice->task;
    world_trace(w, history_hash(notice->body));
    if (history_lacks(w, notice->task))
        return;
    if (said == NULL || *said != history_hash(notice->body))
        world_violate(w, "N-01", "a webhook hears what was not committed: %.*s",
                      RV_STR_FMT(notice->body));
    if (notice->number > newest + 1)
        world_violate(w, "N-02", "message %u comes, and %llu was the last one", notice->number,
                      (unsigned long long)newest);
    if (notice->number > newest)
        rv_assert(rv_map_put(&h->heard, task, 0, notice->number) == RV_OK);
    w->concerned = (struct rv_task_id){0};
}

static size_t hook_of(const struct rv_notice *notice)
{
    return (size_t)(notice->destination.at[notice->destination.len - 1] - '0');
}

static void arrive(struct world *w, struct flight *f)
{
    size_t hook = hook_of(f->notice);
    uint32_t actor = actor_server(f->server);
    int64_t *down_until = &w->hooks->down_until[hook];
    if (w->now >= *down_until && fault_strikes(w, FAULT_HOOK_DOWN, actor))
        *down_until = w->now + 1 + (int64_t)fault_roll(w, DOWN_MS);
    bool down = !w->healed && w->now < *down_until;
    if (down)
        fault_hits(w, FAULT_HOOK_DOWN, f->notice->task);
    bool refuses = !down && fault_strikes(w, FAULT_HOOK_REFUSES, actor);
    bool mute = !down && !refuses && fault_strikes(w, FAULT_HOOK_MUTE, actor);
    if (refuses || mute)
        fault_hits(w, refuses ? FAULT_HOOK_REFUSES : FAULT_HOOK_MUTE, f->notice->task);
    world_detail(w, "hook", "%zu %s message %u", hook,
                 down      ? "is down for"
                 : refuses ? "refuses"
                 : mute    ? "hears, and is not heard: its answer to"
                           : "takes",
                 f->notice->number);
    story_delivered(w, f->server, f->notice->body);
    if (!down && !refuses)
        hear(w, f->notice);
    f->result = (struct rv_notice_result){.task = f->notice->task,
                                          .number = f->notice->number,
                                          .taken = !down && !refuses && !mute,
                                          .alive = !down && !mute,
                                          .why = RV_STR("the simulator says so")};
    f->answered = true;
    int64_t back = mute ? TIMEOUT_MS : 1 + world_spread(w, STREAM_HOOK, TRAVEL_MS);
    world_at(w, w->now + back, EVENT_HOOK, 0, (uint64_t)(f - w->hooks->flights));
}

void hook_turn(struct world *w, uint64_t flight)
{
    struct flight *f = &w->hooks->flights[flight];
    if (!f->answered) {
        arrive(w, f);
        return;
    }
    server_delivered(w, f->server, f->starts, &f->result);
    free(f->notice);
    f->notice = NULL;
}

/* ---- what is owed ---- */

void hook_committed(struct world *w, const struct rv_message *message)
{
    if (w->hooks != NULL)
        rv_assert(rv_map_put(&w->hooks->said, (uint64_t)message->task.value, message->number,
                             history_hash(message->body)) == RV_OK);
}

bool hooks_settled(struct world *w)
{
    struct rv_store *store = database_reader(w);
    struct rv_delivery row;
    size_t count = 0;
    if (w->knobs.hooks == 0)
        return true;
    if (store == NULL)
        return false; /* no server is up to ask it */
    rv_arena_reset(&w->history->scratch);
    enum rv_err err = store->ops->list_deliveries(store, &w->history->scratch,
                                                  (struct rv_task_id){0}, RV_STR_NONE,
                                                  (struct rv_task_id){0}, 1, &row, &count);
    return err != RV_OK || count == 0;
}

/* N-03: everything that a task's submitter is to be told has arrived. */
void check_heard(struct world *w)
{
    for (size_t i = 0; w->knobs.hooks != 0 && i < w->history->count; i++) {
        const struct task_past *past = w->history->all[i];
        if (!past->has_hook || history_lacks(w, past->row.id))
            continue;
        const uint64_t *heard = rv_map_find(&w->hooks->heard, (uint64_t)past->row.id.value, 0);
        uint64_t newest = heard != NULL ? *heard : 0;
        if (newest == past->row.last_message)
            continue;
        w->concerned = past->row.id;
        world_violate(w, "N-03", "%u messages were committed, and %llu have arrived",
                      past->row.last_message, (unsigned long long)newest);
        return;
    }
}

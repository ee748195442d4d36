/* A server between its crashes. Requests are read by the api's own parsers and answered by its own
 * renderers, so what travels is the real text. A crash forgets everything but the store's data;
 * whoever still waits for an answer sees the connection break, or nothing at all. */
#include "sim/world/server.h"

#include "api/parse.h"
#include "base/assert.h"
#include "base/os/fiber.h"
#include "sim/check/check.h"
#include "sim/scenario/crossing.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/fiber.h"
#include "sim/world/forget.h"
#include "sim/world/history.h"
#include "sim/cast/hook.h"
#include "sim/cast/said.h"
#include "sim/store/storage.h"
#include "sim/store/tap.h"
#include "sim/world/wire.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beside the scan interval: how long a call may wait for a store that does not answer. */
enum { AWAY_MS = 600 };

void servers_new(struct world *w)
{
    w->servers = calloc(w->knobs.servers, sizeof *w->servers);
    rv_assert(w->servers != NULL);
    for (uint32_t i = 0; i < w->knobs.servers; i++) {
        struct server *s = &w->servers[i];
        s->world = w;
        s->number = i;
        snprintf(s->name, sizeof s->name, "server-%u", i);
        s->run_at = INT64_MAX;
        s->tap = tap_new(s);
        s->fiber = database_shared(w) ? fiber_new() : NULL;
        rv_parser_init(&s->parser);
        rv_map_init(&s->reads);
        rv_map_init(&s->replied);
    }
}

/* ---- calls ---- */

static void served_free(struct server *s, struct served *served)
{
    if (served->prev != NULL)
        served->prev->next = served->next;
    else
        s->out = served->next;
    if (served->next != NULL)
        served->next->prev = served->prev;
    if (served->x != NULL)
        served->x->served = NULL;
    struct rv_arena arena = served->call.arena;
    rv_arena_reset(&arena);
    *served = (struct served){.call.arena = arena, .next = s->pool};
    s->pool = served;
}

static void undelivered(struct server *s, const struct rv_poll *poll);

const struct rv_poll *call_poll(const struct rv_call *call)
{
    if (call->kind == RV_CALL_POLL)
        return &call->u.poll;
    if (call->kind == RV_CALL_REPLIES && call->u.replies.has_next)
        return &call->u.replies.next;
    return NULL;
}

/* Whether the same poll has come once more, on a connection of its own. */
static bool poll_again(const struct server *s, const struct served *served)
{
    const struct rv_poll *poll = call_poll(&served->call);
    for (const struct served *other = s->out; other != NULL; other = other->next) {
        const struct rv_poll *its = other != served ? call_poll(&other->call) : NULL;
        if (its != NULL && rv_str_eq(its->instance, poll->instance) &&
            rv_str_eq(its->poll, poll->poll))
            return true;
    }
    return false;
}

/* Who may read what is in the answer. */
static void check_told(struct world *w, const struct served *served, bool failed,
                       struct rv_str answer)
{
    bool to_agent = call_poll(&served->call) != NULL || served->call.kind == RV_CALL_REPLIES ||
                    served->call.kind == RV_CALL_LEASES;
    if (failed) {
        check_no_secret(w, answer, "a refusal");
        check_refused_submit(w, &served->call);
    }
    if (!failed && !to_agent)
        check_no_token(w, answer, "an answer");
}

static void answer(struct server *s, struct served *served)
{
    struct world *w = s->world;
    struct rv_call *call = &served->call;
    struct rv_answer answer;
    rv_answer_init(&answer);
    answer.now = call->now + (w->now - call->mono_now);
    const struct rv_poll *poll = call_poll(call);
    bool failed = rv_answer_failed(&answer, call);
    if (!failed)
        served->route->render(&answer, call);
    check_told(w, served, failed, rv_buf_str(&answer.body));
    if (call->err == RV_OK && poll != NULL) {
        if (!tap_outlived(s))
            history_handed_out(w, poll);
        if (served->x->waits) {
            check_answered(s, poll, s->stopping || poll_again(s, served));
            said_left(w, poll);
        }
        if (poll->requests_count > 0 && served->x->left)
            undelivered(s, poll);
    }
    net_answer(w, served->x, answer.status, answer.retry_after_s * 1000, rv_buf_str(&answer.body));
    rv_buf_done(&answer.body);
}

static void look_read(struct world *w, const struct served *served)
{
    struct rv_answer answer;
    rv_answer_init(&answer);
    bool failed = rv_answer_failed(&answer, &served->call);
    if (!failed)
        served->route->render(&answer, &served->call);
    check_told(w, served, failed, rv_buf_str(&answer.body));
    rv_buf_done(&answer.body);
}

static void replied_note(struct server *s, const struct rv_call_replies *replies)
{
    for (size_t i = 0; i < replies->count; i++) {
        enum rv_err err = rv_map_put(&s->replied, replies->items[i].token,
                                     replies->items[i].step.number, 0);
        rv_assert(err == RV_OK);
    }
}

static void call_finished(struct rv_call *call)
{
    struct served *served = (struct served *)call; /* its first member */
    struct server *s = served->server;
    if (call->kind == RV_CALL_REPLIES && served->taken)
        replied_note(s, &call->u.replies);
    if (served->looks && !s->dying)
        look_read(s->world, served);
    if (served->x != NULL && !s->dying && !storage_dead(s->world))
        answer(s, served);
    else if (served->x != NULL)
        net_reset(s->world, served->x);
    served_free(s, served);
}

static struct served *served_new(struct server *s, struct exchange *x)
{
    struct served *served = s->pool;
    if (served != NULL) {
        s->pool = served->next;
    } else {
        served = calloc(1, sizeof *served);
        rv_assert(served != NULL);
        rv_arena_init(&served->call.arena, 0);
    }
    served->server = s;
    served->x = x;
    if (x != NULL)
        x->served = served;
    served->prev = NULL;
    served->next = s->out;
    if (s->out != NULL)
        s->out->prev = served;
    s->out = served;
    served->call.serial = ++s->serial;
    served->call.seed = rv_prng_next(&s->world->dice[STREAM_SERVER]);
    served->call.mono_at = s->world->now;
    served->call.finish = call_finished;
    return served;
}

static void plan_run(struct server *s, int64_t at)
{
    if (at < s->paused_until)
        at = s->paused_until;
    if (at >= s->run_at)
        return;
    s->run_at = at;
    world_at(s->world, at, EVENT_SERVER, s->number, s->starts);
}

/* While a batch waits for its store, when that waits for too long. */
static void away_plan(struct server *s)
{
    int64_t at = tap_asked_at(s), now = s->world->now;
    if (s->fiber == NULL || !fiber_paused(s->fiber))
        return;
    at = at < now ? at + s->world->knobs.scan_ms + AWAY_MS + 1 : now + AWAY_MS;
    at = at > now ? at : now + 1;
    world_at(s->world, at < s->paused_until ? s->paused_until : at, EVENT_AWAY, s->number,
             s->starts);
}

static void queue_add(struct server *s, struct rv_call *call)
{
    if (s->queue_count == s->queue_room) {
        s->queue_room = s->queue_room ? s->queue_room * 2 : 64;
        s->queue = realloc(s->queue, s->queue_room * sizeof(struct rv_call *));
        rv_assert(s->queue != NULL);
    }
    s->queue[s->queue_count++] = call;
    away_plan(s);
    int64_t soon = s->world->scenario != NULL ? 1 : (int64_t)world_roll(s->world, STREAM_SERVER, 3);
    plan_run(s, s->world->now + soon);
}

static void undelivered(struct server *s, const struct rv_poll *poll)
{
    struct served *note = served_new(s, NULL);
    struct rv_arena *arena = &note->call.arena;
    note->call.kind = RV_CALL_UNSENT;
    note->call.note = true;
    struct rv_call_unsent *u = &note->call.u.unsent;
    u->attempts = RV_NEW_ARRAY(arena, struct rv_handed_out, poll->requests_count);
    rv_assert(u->attempts != NULL);
    for (size_t i = 0; i < poll->requests_count; i++)
        u->attempts[u->count++] = (struct rv_handed_out){poll->requests[i].step,
                                                         poll->requests[i].token};
    world_say(s->world, s->name, "the answer to poll %.*s of %.*s never left",
              RV_STR_FMT(poll->poll), RV_STR_FMT(poll->instance));
    queue_add(s, &note->call);
}

static void refuse(struct server *s, struct exchange *x)
{
    struct rv_answer answer;
    rv_answer_init(&answer);
    rv_answer_problem(&answer, &s->parser.problem);
    check_no_secret(s->world, rv_buf_str(&answer.body), "a refusal");
    net_answer(s->world, x, answer.status, answer.retry_after_s * 1000, rv_buf_str(&answer.body));
    rv_buf_done(&answer.body);
}

void server_receive(struct world *w, struct exchange *x)
{
    struct server *s = &w->servers[x->server];
    if (!s->up) {
        net_reset(w, x);
        return;
    }
    struct served *served = served_new(s, x);
    struct rv_request_line *line = rv_arena_take(&served->call.arena, sizeof *line);
    rv_assert(line != NULL);
    rv_parser_begin(&s->parser, &served->call.arena);
    struct wire_request request;
    const struct rv_route *route = NULL;
    if (!wire_request(w, x, &request)) {
        served_free(s, served);
        return;
    }
    if (rv_request_read(&s->parser, request.target, line))
        route = rv_route_find(&s->parser, request.method, line);
    line->body = request.body;
    served->route = route;
    served->call.kind = route ? route->kind : RV_CALL_AGENTS;
    if (route == NULL || !route->parse(&s->parser, line, &served->call)) {
        refuse(s, x);
        served_free(s, served);
        return;
    }
    history_arrived(w, &served->call);
    said_arrived(w, &served->call);
    queue_add(s, &served->call);
}

void server_left(struct world *w, struct exchange *x)
{
    struct server *s = &w->servers[x->server];
    if (!s->up || x->served == NULL)
        return;
    struct served *note = served_new(s, NULL);
    note->call.kind = RV_CALL_GONE;
    note->call.note = true;
    note->call.u.gone.serial = x->served->call.serial;
    queue_add(s, &note->call);
}

void server_delivered(struct world *w, uint32_t server, uint32_t starts,
                      const struct rv_notice_result *result)
{
    struct server *s = &w->servers[server];
    if (!s->up || s->starts != starts)
        return; /* the process that would hear it is gone */
    struct served *note = served_new(s, NULL);
    struct rv_call_delivered *u = &note->call.u.delivered;
    note->call.kind = RV_CALL_DELIVERED;
    note->call.note = true;
    u->items = RV_NEW(&note->call.arena, struct rv_notice_result);
    rv_assert(u->items != NULL);
    u->items[0] = *result;
    u->count = 1;
    queue_add(s, &note->call);
}

void server_hinted(struct world *w, uint32_t server, uint32_t starts, const struct rv_str *agents,
                   size_t count)
{
    struct server *s = &w->servers[server];
    if (!s->up || s->starts != starts)
        return;
    struct served *note = served_new(s, NULL);
    note->call.kind = RV_CALL_HINT;
    note->call.note = true;
    note->call.u.hint.agents = agents;
    note->call.u.hint.count = count;
    queue_add(s, &note->call);
}

static bool queue_awaits(const struct server *s)
{
    for (size_t i = 0; i < s->queue_count; i++)
        if (!s->queue[i]->note)
            return true;
    return false;
}

/* As the api's thread does (src/api/api.c): those for which somebody waits leave the queue. */
static void queue_refuse(struct server *s)
{
    size_t count = s->queue_count, kept = 0;
    world_say(s->world, s->name, "refuses calls: its store does not answer");
    for (size_t i = 0; i < count; i++) {
        struct rv_call *call = s->queue[i];
        if (!call->note)
            rv_call_refuse_away(call);
        else
            s->queue[kept++] = call;
    }
    s->queue_count = kept;
}

/* I-53: who calls a server that waits for its store is told so, unless a batch has the call. */
void server_away(struct server *s)
{
    struct world *w = s->world;
    if (!s->up || !fiber_paused(s->fiber) || !queue_awaits(s))
        return;
    if (w->now >= s->paused_until && w->now > s->patient_until)
        queue_refuse(s);
    else if (w->now >= s->paused_until &&
             w->now - tap_asked_at(s) > (int64_t)w->knobs.scan_ms + AWAY_MS)
        world_violate(w, "I-53", "a call waits at %s, whose store has not answered for %lld ms",
                      s->name, (long long)(w->now - tap_asked_at(s)));
    else
        away_plan(s);
}

/* ---- batches ---- */

static void server_end(struct server *s, const char *why, bool cleanly);

bool server_goes_on(enum rv_err err)
{
    return err == RV_OK || err == RV_ERR_BUSY || err == RV_ERR_FULL || err == RV_ERR_MEMORY;
}

static bool changes_records(const struct rv_call *call)
{
    return call->kind == RV_CALL_LIMIT || call->kind == RV_CALL_KEY_ADD ||
           call->kind == RV_CALL_KEY_REVOKE || call->kind == RV_CALL_SELECT ||
           call->kind == RV_CALL_BULK;
}

static void calls_take(struct server *s, struct rv_call *const *calls, size_t count)
{
    uint64_t behind = 0, turns = 0;
    check_taken(s, count);
    for (size_t i = 0; i < count; i++)
        ((struct served *)calls[i])->taken = true;
    for (const struct served *other = s->out; other != NULL; other = other->next) {
        behind++;
        turns += other->taken && changes_records(&other->call);
    }
    for (size_t i = 0; i < count; i++) {
        struct served *served = (struct served *)calls[i];
        served->behind = behind;
        served->turns = changes_records(&served->call) ? turns : 0;
        served->taken_in = s->went_well;
        said_taken(s, served);
    }
}

/* May run on a fiber and pause there, at the store. */
static void batch_run(void *self)
{
    struct server *s = self;
    struct world *w = s->world;
    struct rv_call *calls[1000];
    size_t count = s->queue_count < w->knobs.batch_max ? s->queue_count : w->knobs.batch_max;
    rv_assert(count <= 1000);
    s->queue_count -= count;
    if (count > 0) {
        memcpy(calls, s->queue, count * sizeof(struct rv_call *));
        memmove(s->queue, s->queue + count, s->queue_count * sizeof(struct rv_call *));
    }
    calls_take(s, calls, count);
    s->at_work = true;
    rv_map_clear(&s->replied);
    s->taken_at = s->begun_at = w->now;
    s->heard_until = s->queue_count > 0 ? s->queue[0]->mono_at : w->now;
    enum rv_err err = rv_scheduler_run_batch(s->scheduler, calls, count, s->heard_until);
    s->at_work = false;
    if (tap_dead(s))
        return; /* whoever killed it sees to the rest */
    storage_check_batch(w, err);
    if (storage_dead(w) || !server_goes_on(err)) {
        server_kill(s, crossing_dead(s)  ? "dies"
                       : storage_dead(w) ? "dies at its disk"
                                         : rv_err_text(err));
        return;
    }
    if (w->violated != NULL)
        return;
    s->went_well += err == RV_OK;
    bound_batch(w, s, err == RV_OK);
    check_load(w, s);
    if (err == RV_OK)
        check_rounds(w, s);
    check_counts(w, s, err == RV_OK);
    check_fair(w, s);
    if (s->stopping) {
        server_end(s, "has stopped", true);
        return;
    }
    int64_t wait = rv_scheduler_next_wake(s->scheduler, w->now);
    plan_run(s, w->now + (s->queue_count > 0 ? 0 : wait));
    if (!crossing_dead(s) && crossing(w, BOUNDARY_BATCH) == TWIST_AFTER)
        crossing_die(s);
}

void server_turn(struct server *s)
{
    struct world *w = s->world;
    s->run_at = INT64_MAX;
    if (!s->up || (s->fiber != NULL && fiber_paused(s->fiber)))
        return; /* the batch under way plans the next one */
    if (w->now < s->paused_until) {
        plan_run(s, s->paused_until);
        return;
    }
    if (s->paused_until != 0 && !w->healed)
        fault_felt(w, FAULT_SERVER_PAUSE, actor_server(s->number));
    s->paused_until = 0;
    s->batches++;
    tap_plan(s);
    storage_plan(w);
    if (s->fiber != NULL)
        (void)fiber_run(s->fiber, batch_run, s);
    else
        batch_run(s);
}

void server_go_on_at(struct server *s, int64_t at)
{
    s->go_on_at = at;
    world_at(s->world, at, EVENT_STORE, s->number, s->starts);
}

void server_go_on(struct server *s)
{
    struct world *w = s->world;
    if (!fiber_paused(s->fiber) || s->go_on_at != w->now)
        return;
    if (w->now < s->paused_until)
        server_go_on_at(s, s->paused_until);
    else
        (void)fiber_go_on(s->fiber);
}

static int64_t mono_now(void *self)
{
    return ((struct world *)self)->now;
}

/* Work takes its time where a look at the clock shows it: pieces of it end when theirs is over. */
static int64_t mono_now_us(void *self)
{
    struct world *w = self;
    w->worked_us += w->knobs.look_us;
    return w->now * 1000 + w->worked_us;
}

static void store_wait(void *self, int64_t until)
{
    ((struct server *)self)->patient_until = until;
}

static void log_write(void *self, enum rv_log_level level, const char *event,
                      const struct rv_log_field *fields, size_t count)
{
    struct server *s = self;
    struct rv_buf text;
    rv_buf_init(&text, RV_PAYLOAD_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        rv_buf_printf(&text, "%s\"%s\":", i > 0 ? "," : "{", fields[i].name);
        if (fields[i].text.at != NULL)
            rv_json_write_string(&text, fields[i].text);
        else
            rv_buf_printf(&text, "%lld", (long long)fields[i].number);
    }
    rv_buf_lit(&text, "}");
    (void)level;
    world_detail(s->world, s->name, "%s %.*s", event, RV_STR_FMT(rv_buf_str(&text)));
    check_no_secret(s->world, rv_buf_str(&text), "the log");
    rv_buf_done(&text);
    if (strcmp(event, "history-lost") == 0)
        tap_alarmed(s);
    if (strcmp(event, "deposed") == 0)
        check_deposed(s);
}

/* Whoever looks after the server starts it again after a while. */
static void start_failed(struct server *s)
{
    struct world *w = s->world;
    world_say(w, s->name, "cannot start");
    storage_ended(w);
    world_at(w, w->now + 1 + world_spread(w, STREAM_SERVER, w->knobs.down_ms), EVENT_START,
             s->number, 0);
}

/* The calls that the dead process had taken stay, if its last batch has an unknown outcome. */
static void calls_lose(struct server *s)
{
    struct served *next;
    for (struct served *served = s->out; served != NULL; served = next) {
        struct exchange *x = served->x;
        next = served->next;
        served->x = NULL;
        if (x != NULL)
            x->served = NULL;
        if (!served->taken || !storage_unsettled(s->world))
            served_free(s, served);
        if (x != NULL)
            net_reset(s->world, x);
    }
    s->lost = s->out;
    s->out = NULL;
}

static void lost_free(struct server *s)
{
    s->out = s->lost;
    s->lost = NULL;
    while (s->out != NULL)
        served_free(s, s->out);
}

/* A batch of unknown outcome, if it is there, is looked at as when it was made: its calls are at
 * hand. */
static bool reopen(struct server *s)
{
    s->out = s->lost;
    s->at_work = true;
    enum rv_err err = database_open(s->world, &s->store);
    s->at_work = false;
    s->lost = s->out;
    s->out = NULL;
    if (err == RV_OK)
        lost_free(s);
    return err == RV_OK;
}

void server_start(struct server *s)
{
    struct world *w = s->world;
    if (s->up)
        return;
    char boot[32];
    snprintf(boot, sizeof boot, "%s-%u", s->name, ++s->starts);
    if (!reopen(s)) {
        start_failed(s);
        return;
    }
    struct rv_scheduler_options options = {
        .store = crossing_open(s, tap_open(s, s->store)),
        .boot = rv_str_of(boot),
        .pid = s->starts,
        .seed = rv_prng_next(&w->dice[STREAM_SERVER]),
        .hash_key = {w->seed, 7 + s->number},
        .scan_interval_ms = w->knobs.scan_ms,
        .role_lease_ms = w->knobs.role_ms,
        .retain_ms = w->knobs.retain_ms,
        .polls_parked_max = w->knobs.parked_max,
        .batch_bytes_max = w->knobs.batch_bytes,
        .findings_max = w->knobs.findings_max,
        .scan_rows_max = w->knobs.scan_rows,
        .circuits_max = w->knobs.circuits_max,
        .mono = {.now = mono_now, .now_us = w->knobs.look_us != 0 ? mono_now_us : NULL, .self = w},
        .log = {log_write, s},
        .waits = {store_wait, s},
        .fibers = &rv_fibers,
        .turn_fuel = w->knobs.turn_fuel,
        .decision_bytes_max = w->knobs.decision_kib * (size_t)1024,
        .outlet = hook_outlet(s),
    };
    s->fuel_beside = 0;
    s->counts_from = s->went_well;
    s->patient_until = INT64_MAX;
    enum rv_err err = rv_scheduler_open(&options, &s->scheduler);
    if (w->crossings == NULL) /* else the start itself may be crashed at */
        storage_check_start(w, err);
    if (err != RV_OK || storage_dead(w)) {
        if (err == RV_OK)
            rv_scheduler_close(s->scheduler);
        tap_close(s);
        start_failed(s);
        return;
    }
    s->up = true;
    s->started_at = w->now;
    bound_start(w);
    s->dying = s->stopping = false;
    s->paused_until = 0;
    const struct rv_enlistment *enlistment = rv_scheduler_enlistment(s->scheduler);
    s->found_alive_at = enlistment->last_alive_at;
    s->looks_first = true;
    world_say(w, s->name, "starts, %lld open tasks", (long long)enlistment->open_tasks);
    storage_look(w);
    history_started(w, s->store, enlistment->open_tasks);
    storage_looked(w);
    plan_run(s, w->now);
}

static void down(struct server *s, bool cleanly)
{
    s->up = s->stopping = false;
    s->dying = true;
    /* A batch that is at the store gets no answer any more, and so to its end. */
    tap_die(s);
    while (s->fiber != NULL && fiber_paused(s->fiber))
        (void)fiber_go_on(s->fiber);
    if (!cleanly)
        storage_die(s->world);
    rv_scheduler_close(s->scheduler);
    tap_close(s);
    storage_ended(s->world);
    calls_lose(s);
    s->queue_count = 0;
    s->run_at = INT64_MAX;
}

static void server_end(struct server *s, const char *why, bool cleanly)
{
    struct world *w = s->world;
    if (!s->up)
        return;
    world_say(w, s->name, "%s", why);
    int64_t ms = 0;
    if (w->crossings != NULL)
        ms = w->knobs.down_ms;
    else if (!w->healed)
        ms = fault_spread(w, w->knobs.down_ms);
    down(s, cleanly);
    world_at(w, w->now + ms, EVENT_START, s->number, 0);
}

void server_kill(struct server *s, const char *why)
{
    server_end(s, why, false);
}

/* SIGTERM: what is parked is answered, what came in is decided, then it ends. */
static void server_stop(struct server *s)
{
    bool busy = s->fiber != NULL && fiber_paused(s->fiber);
    if (!s->up || busy || s->world->now < s->paused_until)
        return;
    world_say(s->world, s->name, "stops cleanly");
    s->stopping = true;
    rv_scheduler_drain(s->scheduler);
    server_turn(s);
}

void server_outage(struct server *s)
{
    struct world *w = s->world;
    if (w->healed)
        return;
    uint32_t actor = actor_server(s->number);
    if (fault_strikes(w, FAULT_KILL_IDLE, actor)) {
        server_kill(s, "killed between two batches");
    } else if (w->now >= s->paused_until && fault_strikes(w, FAULT_SERVER_PAUSE, actor)) {
        int64_t ms = (int64_t)fault_roll(w, 5 * w->knobs.role_ms);
        world_say(w, s->name, "stops for %lld ms", (long long)ms);
        s->paused_until = w->now + ms;
    } else if (fault_strikes(w, FAULT_FULL, actor)) {
        tap_fill(s, (int64_t)fault_roll(w, 10000));
    } else if (fault_strikes(w, FAULT_SERVER_STOP, actor)) {
        server_stop(s);
    } else if (database_shared(w) && fault_strikes(w, FAULT_FORGET, actor)) {
        server_forget(s);
    }
    world_at(w, w->now + 1000, EVENT_OUTAGE, s->number, 0);
}

void servers_heal(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.servers; i++) {
        struct server *s = &w->servers[i];
        if (s->fiber != NULL && fiber_paused(s->fiber) && s->go_on_at == s->paused_until)
            server_go_on_at(s, w->now);
        if (s->fiber != NULL && fiber_paused(s->fiber) && s->go_on_at > w->database->slow_until)
            w->database->slow_until = s->go_on_at;
        s->paused_until = 0;
        if (s->up && tap_misread(s))
            server_kill(s, "is restarted: it remembers what it has misread");
        if (!s->up)
            server_start(s);
        else
            plan_run(s, w->now);
    }
}

void server_look(struct server *s, const char *target)
{
    if (!s->up)
        return;
    struct served *served = served_new(s, NULL);
    struct rv_request_line *line = rv_arena_take(&served->call.arena, sizeof *line);
    rv_assert(line != NULL);
    rv_parser_begin(&s->parser, &served->call.arena);
    bool read = rv_request_read(&s->parser, rv_arena_str(&served->call.arena, rv_str_of(target)),
                                line);
    served->route = read ? rv_route_find(&s->parser, RV_STR("GET"), line) : NULL;
    rv_assert(served->route != NULL);
    served->call.kind = served->route->kind;
    rv_assert(served->route->parse(&s->parser, line, &served->call));
    served->looks = true;
    queue_add(s, &served->call);
}

void server_publish(struct server *s, struct rv_str source)
{
    struct served *served = served_new(s, NULL);
    struct rv_request_line line = {.path = RV_STR("/v1/workflows"), .body = source};
    rv_parser_begin(&s->parser, &served->call.arena);
    served->call.kind = RV_CALL_PUBLISH;
    bool good = rv_parse_publish(&s->parser, &line, &served->call);
    if (!good) {
        world_violate(s->world, "W-01", "a generated workflow is refused: %.*s\n%.*s",
                      RV_STR_FMT(s->parser.problem.detail), RV_STR_FMT(source));
        return;
    }
    queue_add(s, &served->call);
}

void servers_free(struct world *w)
{
    for (uint32_t i = 0; w->servers != NULL && i < w->knobs.servers; i++) {
        struct server *s = &w->servers[i];
        if (s->up)
            down(s, false);
        lost_free(s);
        while (s->pool != NULL) {
            struct served *next = s->pool->next;
            rv_arena_done(&s->pool->call.arena);
            free(s->pool);
            s->pool = next;
        }
        tap_free(s->tap);
        fiber_free(s->fiber);
        rv_parser_done(&s->parser);
        rv_map_done(&s->reads);
        rv_map_done(&s->replied);
        free(s->queue);
    }
    free(w->servers);
}

/* The server between its crashes. Requests are read by the api's own parsers and answered by its
 * own renderers, so what travels is the real text. A crash forgets everything but the store's
 * data; whoever still waits for an answer sees the connection break, or nothing at all. */
#include "sim/server.h"

#include "api/parse.h"
#include "base/assert.h"
#include "sim/history.h"
#include "sim/tap.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WALL_START_MS = 1000000000, CLOCK_JUMP_MS = 3600 * 1000 };

int64_t server_wall(const struct world *w)
{
    return w->now + w->server->wall_ahead;
}

static int64_t wall_now(void *self)
{
    return server_wall(self);
}

void server_new(struct world *w)
{
    struct server *s = calloc(1, sizeof *s);
    rv_assert(s != NULL);
    w->server = s;
    s->wall_ahead = WALL_START_MS;
    s->clock = (struct rv_wall_clock){wall_now, w};
    s->run_at = INT64_MAX;
    s->absences = calloc(SERVER_ABSENCES_MAX, sizeof *s->absences);
    enum rv_err err = rv_store_memory_data_new(&s->data);
    rv_assert(err == RV_OK && s->absences != NULL);
    s->tap = tap_new(w);
    rv_parser_init(&s->parser);
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

static void undelivered(struct world *w, const struct rv_poll *poll);

static const struct rv_poll *poll_of(const struct rv_call *call)
{
    if (call->kind == RV_CALL_POLL)
        return &call->u.poll;
    if (call->kind == RV_CALL_REPLIES && call->u.replies.has_next)
        return &call->u.replies.next;
    return NULL;
}

static void answer(struct world *w, struct served *served)
{
    struct rv_call *call = &served->call;
    struct rv_answer answer;
    rv_answer_init(&answer);
    answer.now = call->now + (w->now - call->mono_now);
    const struct rv_poll *poll = poll_of(call);
    if (!rv_answer_failed(&answer, call))
        served->route->render(&answer, call);
    if (call->err == RV_OK && poll != NULL) {
        history_handed_out(w, poll);
        if (poll->requests_count > 0 && served->x->left)
            undelivered(w, poll);
    }
    net_answer(w, served->x, answer.status, answer.retry_after_s * 1000, rv_buf_str(&answer.body));
    rv_buf_done(&answer.body);
}

static void call_finished(struct rv_call *call)
{
    struct served *served = (struct served *)call; /* its first member */
    struct world *w = served->world;
    if (served->x != NULL && !w->server->dying)
        answer(w, served);
    else if (served->x != NULL)
        net_reset(w, served->x);
    served_free(w->server, served);
}

static struct served *served_new(struct world *w, struct exchange *x)
{
    struct server *s = w->server;
    struct served *served = s->pool;
    if (served != NULL) {
        s->pool = served->next;
    } else {
        served = calloc(1, sizeof *served);
        rv_assert(served != NULL);
        rv_arena_init(&served->call.arena, 0);
    }
    served->world = w;
    served->x = x;
    if (x != NULL)
        x->served = served;
    served->prev = NULL;
    served->next = s->out;
    if (s->out != NULL)
        s->out->prev = served;
    s->out = served;
    served->call.serial = ++s->serial;
    served->call.seed = rv_prng_next(&w->dice[STREAM_SERVER]);
    served->call.mono_at = w->now;
    served->call.finish = call_finished;
    return served;
}

static void plan_run(struct world *w, int64_t at)
{
    struct server *s = w->server;
    if (at < s->paused_until)
        at = s->paused_until;
    if (at >= s->run_at)
        return;
    s->run_at = at;
    world_at(w, at, EVENT_SERVER, s->starts, 0);
}

static void queue_add(struct world *w, struct rv_call *call)
{
    struct server *s = w->server;
    if (s->queue_count == s->queue_room) {
        s->queue_room = s->queue_room ? s->queue_room * 2 : 64;
        s->queue = realloc(s->queue, s->queue_room * sizeof(struct rv_call *));
        rv_assert(s->queue != NULL);
    }
    s->queue[s->queue_count++] = call;
    plan_run(w, w->now + (int64_t)world_roll(w, STREAM_SERVER, 3));
}

static void undelivered(struct world *w, const struct rv_poll *poll)
{
    struct served *note = served_new(w, NULL);
    struct rv_arena *arena = &note->call.arena;
    note->call.kind = RV_CALL_UNDELIVERED;
    note->call.u.undelivered.agent = rv_arena_str(arena, poll->agent);
    note->call.u.undelivered.instance = rv_arena_str(arena, poll->instance);
    note->call.u.undelivered.poll = rv_arena_str(arena, poll->poll);
    world_say(w, "server", "the answer to poll %.*s of %.*s never left", RV_STR_FMT(poll->poll),
              RV_STR_FMT(poll->instance));
    queue_add(w, &note->call);
}

static void refuse(struct world *w, struct exchange *x)
{
    struct rv_answer answer;
    rv_answer_init(&answer);
    rv_answer_problem(&answer, &w->server->parser.problem);
    net_answer(w, x, answer.status, answer.retry_after_s * 1000, rv_buf_str(&answer.body));
    rv_buf_done(&answer.body);
}

void server_receive(struct world *w, struct exchange *x)
{
    struct server *s = w->server;
    if (!s->up) {
        net_reset(w, x);
        return;
    }
    struct served *served = served_new(w, x);
    struct rv_request_line *line = RV_NEW(&served->call.arena, struct rv_request_line);
    rv_assert(line != NULL);
    rv_parser_begin(&s->parser, &served->call.arena);
    const struct rv_route *route = NULL;
    if (rv_request_read(&s->parser, x->target, line))
        route = rv_route_find(&s->parser, x->method, line);
    line->body = x->body;
    served->route = route;
    served->call.kind = route ? route->kind : RV_CALL_AGENTS;
    if (route == NULL || !route->parse(&s->parser, line, &served->call)) {
        refuse(w, x);
        served_free(s, served);
        return;
    }
    history_arrived(w, &served->call);
    queue_add(w, &served->call);
}

void server_left(struct world *w, struct exchange *x)
{
    if (!w->server->up || x->served == NULL)
        return;
    struct served *note = served_new(w, NULL);
    note->call.kind = RV_CALL_GONE;
    note->call.u.gone.serial = x->served->call.serial;
    queue_add(w, &note->call);
}

/* ---- absences ---- */

bool server_was_absent(const struct world *w, int64_t at)
{
    const struct server *s = w->server;
    for (size_t i = 0; i < s->absences_count; i++)
        if (at > s->absences[i].from && at <= s->absences[i].until)
            return true;
    return false;
}

/* Only what is an absence beyond doubt: checkers want to be sure. */
static void look(struct world *w)
{
    struct server *s = w->server;
    int64_t now = server_wall(w);
    int64_t slack = w->knobs.scan_ms + 501;
    bool late = s->looked_at != 0 && now - s->looked_at > slack;
    if (late && s->absences_count < SERVER_ABSENCES_MAX)
        s->absences[s->absences_count++] = (struct server_absence){s->looked_at, now};
    if (now > s->looked_at)
        s->looked_at = now;
}

/* ---- batches ---- */

void server_turn(struct world *w)
{
    struct server *s = w->server;
    s->run_at = INT64_MAX;
    if (!s->up)
        return;
    if (w->now < s->paused_until) {
        plan_run(w, s->paused_until);
        return;
    }
    size_t count = s->queue_count < w->knobs.batch_max ? s->queue_count : w->knobs.batch_max;
    look(w);
    s->batches++;
    tap_plan(w);
    struct rv_call *calls[1000];
    rv_assert(count <= 1000);
    memcpy(calls, s->queue, count * sizeof(struct rv_call *));
    s->queue_count -= count;
    memmove(s->queue, s->queue + count, s->queue_count * sizeof(struct rv_call *));
    enum rv_err err = rv_scheduler_run_batch(s->scheduler, calls, count, w->now);
    if (err == RV_ERR_COMMIT_UNKNOWN || err == RV_ERR_CORRUPT) {
        server_kill(w, "died in the commit");
        return;
    }
    if (w->violated != NULL)
        return;
    int64_t wait = rv_scheduler_next_wake(s->scheduler, w->now);
    plan_run(w, w->now + (s->queue_count > 0 ? 0 : wait));
}

static void log_write(void *self, enum rv_log_level level, const char *event, struct rv_str fields)
{
    (void)level;
    world_say(self, "server", "%s %.*s", event, RV_STR_FMT(fields));
}

void server_start(struct world *w)
{
    struct server *s = w->server;
    if (s->up)
        return;
    char boot[32];
    snprintf(boot, sizeof boot, "server-%u", ++s->starts);
    enum rv_err err = rv_store_memory_open(s->data, s->clock, &s->store);
    rv_assert(err == RV_OK);
    struct rv_scheduler_options options = {
        .store = tap_open(w, s->store),
        .boot = rv_str_of(boot),
        .pid = s->starts,
        .seed = rv_prng_next(&w->dice[STREAM_SERVER]),
        .hash_key = {w->seed, 7},
        .scan_interval_ms = w->knobs.scan_ms,
        .role_lease_ms = w->knobs.role_ms,
        .log = {log_write, w},
    };
    err = rv_scheduler_open(&options, &s->scheduler);
    rv_assert(err == RV_OK);
    s->up = true;
    s->dying = false;
    s->paused_until = 0;
    int64_t alive = rv_scheduler_enlistment(s->scheduler)->last_alive_at;
    int64_t now = server_wall(w);
    if (alive != 0 && now > alive && s->absences_count < SERVER_ABSENCES_MAX)
        s->absences[s->absences_count++] = (struct server_absence){alive, now};
    if (now > s->looked_at)
        s->looked_at = now;
    world_say(w, "server", "starts, %lld open tasks",
              (long long)rv_scheduler_enlistment(s->scheduler)->open_tasks);
    history_started(w, rv_scheduler_enlistment(s->scheduler)->open_tasks);
    plan_run(w, w->now);
}

static void down(struct world *w)
{
    struct server *s = w->server;
    s->up = false;
    s->dying = true;
    rv_scheduler_close(s->scheduler);
    tap_close(w);
    while (s->out != NULL) {
        struct exchange *x = s->out->x;
        served_free(s, s->out);
        if (x != NULL)
            net_reset(w, x);
    }
    s->queue_count = 0;
    s->run_at = INT64_MAX;
}

void server_kill(struct world *w, const char *why)
{
    struct server *s = w->server;
    if (!s->up)
        return;
    world_say(w, "server", "%s", why);
    down(w);
    int64_t ms = w->healed ? 0 : world_spread(w, STREAM_SERVER, w->knobs.down_ms);
    world_at(w, w->now + ms, EVENT_START, 0, 0);
}

/* SIGTERM: what is parked is answered, what came in is decided, then it ends. */
static void server_stop(struct world *w)
{
    struct server *s = w->server;
    if (!s->up || w->now < s->paused_until)
        return;
    world_say(w, "server", "stops cleanly");
    rv_scheduler_drain(s->scheduler);
    server_turn(w);
    server_kill(w, "has stopped");
}

void server_outage(struct world *w)
{
    struct server *s = w->server;
    if (w->healed)
        return;
    if (world_chance(w, STREAM_SERVER, w->knobs.kill_idle)) {
        server_kill(w, "killed between two batches");
    } else if (world_chance(w, STREAM_SERVER, w->knobs.server_pause)) {
        int64_t ms = (int64_t)world_roll(w, STREAM_SERVER, (uint64_t)(5 * w->knobs.role_ms));
        world_say(w, "server", "stops for %lld ms", (long long)ms);
        s->paused_until = w->now + ms;
    } else if (world_chance(w, STREAM_SERVER, w->knobs.full)) {
        tap_fill(w, (int64_t)world_roll(w, STREAM_SERVER, 10000));
    } else if (world_chance(w, STREAM_SERVER, w->knobs.server_stop)) {
        server_stop(w);
    }
    world_at(w, w->now + 1000, EVENT_OUTAGE, 0, 0);
}

void server_clock(struct world *w)
{
    if (w->healed)
        return;
    if (world_chance(w, STREAM_CLOCK, w->knobs.clock_jump)) {
        int64_t reach = world_chance(w, STREAM_CLOCK, 500) ? 3000 : CLOCK_JUMP_MS;
        int64_t jump = (int64_t)world_roll(w, STREAM_CLOCK, (uint64_t)(2 * reach)) - reach;
        w->server->wall_ahead += jump;
        world_say(w, "server", "its clock jumps by %lld ms", (long long)jump);
    }
    world_at(w, w->now + 1000, EVENT_CLOCK, 0, 0);
}

/* A clock that was set back makes the store's stand still until it has caught up (DESIGN 4.9): the
 * operator sets it right, else nothing is owed within any bound. */
void server_heal(struct world *w)
{
    w->server->paused_until = 0;
    if (server_wall(w) < w->server->looked_at)
        w->server->wall_ahead = w->server->looked_at - w->now;
    if (!w->server->up)
        server_start(w);
    else
        plan_run(w, w->now);
}

void server_publish(struct world *w, struct rv_str source)
{
    struct served *served = served_new(w, NULL);
    struct rv_request_line line = {.path = RV_STR("/v1/workflows"), .body = source};
    rv_parser_begin(&w->server->parser, &served->call.arena);
    served->call.kind = RV_CALL_PUBLISH;
    bool good = rv_parse_publish(&w->server->parser, &line, &served->call);
    if (!good) {
        world_violate(w, "W-01", "a generated workflow is refused: %.*s\n%.*s",
                      RV_STR_FMT(w->server->parser.problem.detail), RV_STR_FMT(source));
        return;
    }
    queue_add(w, &served->call);
}

void server_free(struct world *w)
{
    struct server *s = w->server;
    if (s == NULL)
        return;
    if (s->up)
        down(w);
    while (s->pool != NULL) {
        struct served *next = s->pool->next;
        rv_arena_done(&s->pool->call.arena);
        free(s->pool);
        s->pool = next;
    }
    tap_free(s->tap);
    rv_store_memory_data_free(s->data);
    rv_parser_done(&s->parser);
    free(s->absences);
    free(s->queue);
    free(s);
}

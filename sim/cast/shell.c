/* What somebody writes with curl in ten minutes. It polls, works off what it gets, replies, and
 * repeats a reply that nobody answers; it renews no lease, hears no cancel and looks at no clock,
 * so it has effects after its deadline like any zombie. Its boot and poll ids, if it has any, are
 * those of the shell. */
#include "sim/cast/shell.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"
#include "sim/check/check.h"
#include "sim/cast/deed.h"
#include "sim/world/fault.h"
#include "sim/cast/ledger.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASKS_MAX = 4, HELD_MAX = 3 * ASKS_MAX };
enum { TRIES_MAX = 3, REPLY_WITHIN_MS = 5000, POLL_SLACK_MS = 5000, AGAIN_MS = 500 };
enum tag { TAG_POLL, TAG_REPLY };

struct request_held {
    struct errand errand;
    char step[RV_STEP_TEXT_BYTES];
    char token[32];
    int64_t attempt;
};

struct shell {
    char name[24];
    const char *kind;
    bool up;
    bool has_boot; /* sends a boot id of its own */
    bool has_poll; /* ... and numbers its polls */
    uint32_t life;
    uint32_t polls;
    struct request_held held[HELD_MAX];
    uint32_t held_count;
    uint32_t at; /* the one in hand */
    uint32_t tries;
    enum deed deed;
    bool did;
    int64_t effect_at;
    int64_t end_at;
};

static unsigned stream_of(const struct world *w, const struct shell *s)
{
    return STREAM_SHELL + (unsigned)(s - w->shells);
}

static uint32_t actor_of(const struct world *w, const struct shell *s)
{
    return ACTOR_SHELL + (uint32_t)(s - w->shells);
}

static void look_at(struct world *w, const struct shell *s, int64_t at)
{
    world_at(w, at > w->now ? at : w->now + 1, EVENT_SHELL, (uint32_t)(s - w->shells), s->life);
}

static void ask(struct world *w, struct shell *s, enum tag tag, struct rv_str target,
                struct rv_str body, int64_t within_ms)
{
    net_ask(w, PEER_SHELL, (uint32_t)(s - w->shells), s->life, tag, "POST", target, body,
            within_ms);
}

static void shell_poll(struct world *w, struct shell *s)
{
    unsigned stream = stream_of(w, s);
    int64_t wait_ms = (int64_t)world_roll(w, stream, 20000);
    char target[64];
    struct rv_buf body;
    rv_buf_init(&body, RV_PAYLOAD_BYTES_MAX);
    snprintf(target, sizeof target, "/v1/agents/%s/requests", s->kind);
    rv_buf_printf(&body, "{\"instance\":\"%s\",\"max\":%u,\"waitMs\":%lld", s->name,
                  1 + (unsigned)world_roll(w, stream, ASKS_MAX), (long long)wait_ms);
    if (s->has_boot)
        rv_buf_printf(&body, ",\"boot\":\"%u\"", s->life);
    if (s->has_poll)
        rv_buf_printf(&body, ",\"poll\":\"%u-%u\"", s->life, s->polls);
    rv_buf_lit(&body, "}");
    s->held_count = s->at = s->tries = 0;
    ask(w, s, TAG_POLL, rv_str_of(target), rv_buf_str(&body), wait_ms + POLL_SLACK_MS);
    rv_buf_done(&body);
}

static void shell_start(struct world *w, struct shell *s)
{
    s->up = true;
    s->life++;
    s->polls = 0;
    world_say(w, s->name, "starts as agent %s, process %u", s->kind, s->life);
    shell_poll(w, s);
}

void shells_new(struct world *w)
{
    w->shells = calloc(SIM_SHELLS_MAX, sizeof *w->shells);
    rv_assert(w->shells != NULL);
    for (uint32_t i = 0; i < w->knobs.shells; i++) {
        struct shell *s = &w->shells[i];
        s->kind = workload_agent((uint32_t)world_roll(w, STREAM_SHELL + i, w->knobs.kinds));
        s->has_boot = world_chance(w, STREAM_SHELL + i, 500);
        s->has_poll = world_chance(w, STREAM_SHELL + i, 500);
        snprintf(s->name, sizeof s->name, "shell-%u", i);
        shell_start(w, s);
        world_at(w, w->now + 1000, EVENT_SHELL_TROUBLE, i, 0);
    }
}

void shells_free(struct world *w)
{
    free(w->shells);
}

/* ---- its work ---- */

static void work_begin(struct world *w, struct shell *s)
{
    unsigned stream = stream_of(w, s);
    int64_t lasts = world_spread(w, stream, w->healed ? 10 : w->knobs.work_ms);
    if (fault_strikes(w, FAULT_SLOW, actor_of(w, s)))
        lasts += (int64_t)fault_roll(w, 5000);
    s->deed = deed_draw(w, actor_of(w, s), &s->held[s->at].errand);
    if (deed_is_dead(w, s->kind))
        s->deed = DEED_FAIL_BEFORE;
    s->did = false;
    s->tries = 0;
    s->effect_at = w->now + (int64_t)world_roll(w, stream, (uint64_t)lasts + 1);
    s->end_at = w->now + lasts;
    world_say(w, s->name, "works on %s", s->held[s->at].step);
    look_at(w, s, s->effect_at);
}

/* The next request, or the next poll. */
static void work_next(struct world *w, struct shell *s)
{
    if (++s->at < s->held_count) {
        work_begin(w, s);
        return;
    }
    s->polls++;
    shell_poll(w, s);
}

static void work_effect(struct world *w, struct shell *s)
{
    const struct errand *errand = &s->held[s->at].errand;
    s->did = true;
    if (!deed_has_effect(s->deed) || !errand->has_key)
        return;
    if (errand->undo)
        ledger_undo(w, rv_str_of(errand->key), s->held[s->at].attempt, s->name);
    else
        ledger_apply(w, rv_str_of(errand->key), s->held[s->at].attempt, true, s->name);
}

static void work_reply(struct world *w, struct shell *s)
{
    const struct request_held *held = &s->held[s->at];
    struct rv_buf body;
    rv_buf_init(&body, RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&body, "{\"replies\":[{\"step\":\"%s\",\"token\":\"%s\",", held->step,
                  held->token);
    bool transient = s->deed == DEED_FAIL_BEFORE || s->deed == DEED_FAIL_AFTER;
    if (s->deed == DEED_DONE)
        rv_buf_printf(&body, "\"output\":{\"by\":\"%s\"}}]}", s->name);
    else
        rv_buf_printf(&body,
                      "\"error\":{\"type\":\"trouble\",\"status\":%d,\"transient\":%s,"
                      "\"effect\":\"%s\"}}]}",
                      transient ? 503 : 400, transient ? "true" : "false",
                      deed_has_effect(s->deed) ? "unknown" : "none");
    world_say(w, s->name, "replies to %s", held->step);
    ask(w, s, TAG_REPLY, RV_STR("/v1/replies"), rv_buf_str(&body), REPLY_WITHIN_MS);
    rv_buf_done(&body);
}

void shell_turn(struct world *w, uint32_t shell, uint64_t life)
{
    struct shell *s = &w->shells[shell];
    if (!s->up || s->life != life)
        return;
    if (s->held_count == 0) {
        shell_poll(w, s);
        return;
    }
    if (!s->did && s->effect_at <= w->now)
        work_effect(w, s);
    if (s->end_at > w->now)
        look_at(w, s, s->end_at);
    else if (s->deed == DEED_HANG)
        work_next(w, s); /* killed by its `timeout`, and nobody is told */
    else
        work_reply(w, s);
}

/* ---- what it hears ---- */

static void text_take(char *room, size_t bytes, struct rv_str text)
{
    rv_assert(text.len < bytes);
    memcpy(room, text.at, text.len);
    room[text.len] = '\0';
}

static void requests_read(struct world *w, struct shell *s, struct rv_str answer)
{
    struct rv_arena arena;
    struct rv_json told;
    rv_arena_init(&arena, 0);
    const struct rv_json *requests = NULL;
    if (rv_json_parse(&arena, answer, RV_JSON_NESTING_MAX, &told, NULL) == RV_OK)
        requests = rv_json_get(&told, RV_STR("requests"));
    /* Sent again to another server, a poll may take as much there. */
    if (requests == NULL || requests->len > (size_t)ASKS_MAX * w->knobs.servers)
        world_violate(w, "W-02", "the answer to a poll has no requests, or too many: %.*s",
                      RV_STR_FMT(answer));
    for (uint32_t i = 0; w->violated == NULL && i < requests->len; i++) {
        const struct rv_json *request = &requests->u.items[i];
        struct request_held *held = &s->held[s->held_count++];
        struct rv_buf input;
        rv_buf_init(&input, 2 * RV_PAYLOAD_BYTES_MAX);
        rv_json_write(&input, rv_json_get(request, RV_STR("input")));
        errand_read(w, rv_buf_str(&input),
                    rv_json_str(rv_json_get(request, RV_STR("idempotencyKey"))), &held->errand);
        rv_buf_done(&input);
        if (!rv_json_int(rv_json_get(request, RV_STR("attempt")), &held->attempt))
            held->attempt = 0;
        text_take(held->step, sizeof held->step, rv_json_str(rv_json_get(request, RV_STR("step"))));
        text_take(held->token, sizeof held->token,
                  rv_json_str(rv_json_get(request, RV_STR("token"))));
    }
    rv_arena_done(&arena);
}

static void again(struct world *w, struct shell *s)
{
    if (s->held_count == 0)
        look_at(w, s, w->now + 1 + world_spread(w, stream_of(w, s), AGAIN_MS));
    else if (++s->tries < TRIES_MAX)
        work_reply(w, s);
    else
        work_next(w, s);
}

void shell_answered(struct world *w, struct exchange *x)
{
    struct shell *s = &w->shells[x->actor];
    if (x->tag == TAG_REPLY && x->status == 200)
        check_replied(w, x->body, x->answer);
    if (s->life != x->life || !s->up)
        return;
    world_say(w, s->name, "gets %d %.*s", x->status, RV_STR_FMT(x->answer));
    if (x->status != 200) {
        again(w, s);
        return;
    }
    if (x->tag == TAG_REPLY) {
        work_next(w, s);
        return;
    }
    requests_read(w, s, x->answer);
    if (s->held_count > 0)
        work_begin(w, s);
    else
        again(w, s);
}

void shell_lost(struct world *w, struct exchange *x)
{
    struct shell *s = &w->shells[x->actor];
    if (s->life == x->life && s->up)
        again(w, s);
}

/* ---- troubles ---- */

void shell_trouble(struct world *w, uint32_t shell)
{
    struct shell *s = &w->shells[shell];
    if (w->healed)
        return;
    if (!s->up && world_chance(w, stream_of(w, s), 300)) {
        shell_start(w, s);
    } else if (s->up && fault_strikes(w, FAULT_AGENT_CRASH, actor_of(w, s))) {
        world_say(w, s->name, "is killed");
        s->up = false;
    }
    world_at(w, w->now + 1000, EVENT_SHELL_TROUBLE, shell, 0);
}

void shells_heal(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.shells; i++)
        if (!w->shells[i].up)
            shell_start(w, &w->shells[i]);
}

/* One process: a runtime (which holds the session), its clock, and handlers at work. A crash takes
 * all of it but the ledgers of the services behind. A pause (SIGSTOP, swap) freezes it; whatever
 * was due meanwhile happens at once afterwards, before the agent has looked at its clock: that is
 * how even a well-meant agent has an effect after its deadline. */
#include "sim/cast/agent.h"

#include "agent/runtime.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/limits.h"
#include "sim/check/check.h"
#include "sim/scenario/crossing.h"
#include "sim/cast/deed.h"
#include "sim/cast/said.h"
#include "sim/world/fault.h"
#include "sim/cast/ledger.h"
#include "sim/cast/lie.h"
#include "sim/run/story.h"
#include "sim/scenario/scenario.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_MAX = 16, TAG_RAW = 100, TAG_LIE, RAW_WITHIN_MS = 5000, TURNS_MAX = 10000 };
enum { RESTARTS_IN_MS = 100, WORDS_MAX = 8, WORD_MS_MAX = 20000 };

/* A handler's try. */
struct job {
    bool used;
    bool told_to_stop; /* expired or cancelled */
    bool zombie;       /* does not care about that */
    bool deaf;         /* does not hear a cancel, but keeps its deadline */
    bool done_effect;
    bool counted; /* in its effect's `working` */
    enum deed deed;
    struct errand errand;
    char step[RV_STEP_TEXT_BYTES];
    char token[32];
    int64_t attempt;
    int64_t effect_at; /* on the agent's clock */
    int64_t end_at;
    int64_t stop_at;
    int64_t pause_ms; /* that its failure asks for; 0: none */
};

/* What an attempt did, though nobody heard so: its service remembers it. */
struct word {
    int64_t at; /* world time at which it is said; 0: there is none */
    char step[RV_STEP_TEXT_BYTES];
    char token[32];
};

struct agent {
    char name[24];
    const char *kind;
    struct rv_runtime *runtime; /* owned; NULL: it is down */
    uint32_t life;
    uint32_t targets;
    char target[32];
    bool paused;
    bool doomed;        /* has died in the midst of something; the end of its turn buries it */
    int64_t clock_from; /* world time at which its clock showed clock_base */
    int64_t clock_base;
    int32_t drift_ppm;
    int64_t turn_at; /* world time; INT64_MAX: none planned */
    struct exchange *lanes[RV_LANE_COUNT];
    struct refused refused; /* replies that a server did not take */
    struct job jobs[PLACES_MAX * 2];
    struct word words[WORDS_MAX]; /* outlive its process */
};

static int64_t clock_of(const struct world *w, const struct agent *a)
{
    int64_t gone = w->now - a->clock_from;
    return a->clock_base + gone + gone * a->drift_ppm / 1000000;
}

static unsigned stream_of(const struct world *w, const struct agent *a)
{
    return STREAM_AGENT + (unsigned)(a - w->agents);
}

static void plan_turn(struct world *w, struct agent *a, int64_t at)
{
    if (at >= a->turn_at)
        return;
    a->turn_at = at;
    world_at(w, at, EVENT_AGENT, (uint32_t)(a - w->agents), a->life);
}

/* Steps go to one of so many services behind the agent. */
static struct rv_str target_of(void *user, rv_place place)
{
    struct agent *a = user;
    const struct rv_held_attempt *attempt = rv_session_attempt(rv_runtime_session(a->runtime),
                                                               place);
    uint64_t hash = rv_hash((struct rv_hash_key){3, 5}, attempt->step);
    snprintf(a->target, sizeof a->target, "%s-%u", a->kind, (unsigned)(hash % a->targets));
    return rv_str_of(a->target);
}

static void agent_start(struct world *w, struct agent *a)
{
    unsigned stream = stream_of(w, a);
    const struct knobs *k = &w->knobs;
    struct rv_runtime_options options = {
        .session = {.agent = rv_str_of(a->kind),
                    .instance = rv_str_of(a->name),
                    .seed = rv_prng_next(&w->dice[stream]),
                    .max = 1 + (uint32_t)world_roll(w, stream, PLACES_MAX - 1),
                    .wait_ms = (int64_t)world_roll(w, stream, 20000)},
        .tries_max = 1 + (uint32_t)world_roll(w, stream, 3),
        .retry_base_ms = 1 + (int64_t)world_roll(w, stream, 100),
        .retry_cap_ms = 500,
        .target = k->targets > 0 ? target_of : NULL,
        .user = a,
        .circuit_failures = k->circuit,
        .circuit_open_ms = 100 + (int64_t)world_roll(w, stream, 2000),
    };
    if (w->scenario != NULL)
        scenario_agent(w, &options);
    a->runtime = rv_runtime_new(&options);
    rv_assert(a->runtime != NULL);
    a->targets = k->targets;
    a->life++;
    a->paused = false;
    a->clock_from = w->now;
    a->clock_base = (int64_t)world_roll(w, stream, 1000000);
    a->drift_ppm = (int32_t)world_roll(w, stream, 2 * k->drift_ppm + 1) - (int32_t)k->drift_ppm;
    a->turn_at = INT64_MAX;
    memset(a->lanes, 0, sizeof a->lanes);
    a->refused.count = 0;
    memset(a->jobs, 0, sizeof a->jobs);
    world_say(w, a->name, "starts as agent %s, process %u", a->kind, a->life);
    plan_turn(w, a, w->now);
}

void agents_new(struct world *w)
{
    w->agents = calloc(w->knobs.agents, sizeof *w->agents);
    rv_assert(w->agents != NULL);
    for (uint32_t i = 0; i < w->knobs.agents; i++) {
        struct agent *a = &w->agents[i];
        a->kind = workload_agent(i % w->knobs.kinds);
        if (w->scenario != NULL)
            snprintf(a->name, sizeof a->name, "%s", a->kind);
        else
            snprintf(a->name, sizeof a->name, "agent-%u", i);
        agent_start(w, a);
        world_at(w, w->now + 1000 + (int64_t)i, EVENT_TROUBLE, i, 0);
    }
}

void agents_free(struct world *w)
{
    for (uint32_t i = 0; w->agents != NULL && i < w->knobs.agents; i++)
        rv_runtime_free(w->agents[i].runtime);
    free(w->agents);
}

/* ---- handlers ---- */

static void job_uncount(struct world *w, struct job *job)
{
    if (!job->counted)
        return;
    job->counted = false;
    ledger_get(w, rv_str_of(job->errand.key))->working--;
}

/* Each might happen on each try: what was drawn for one does not depend on the others. */
static void text_take(char *room, size_t bytes, struct rv_str text)
{
    rv_assert(text.len < bytes);
    memcpy(room, text.at, text.len);
    room[text.len] = '\0';
}

static void job_draw(struct world *w, struct agent *a, struct job *job, int64_t now)
{
    unsigned stream = stream_of(w, a);
    uint32_t number = ACTOR_AGENT + (uint32_t)(a - w->agents);
    job->deed = deed_draw(w, number, &job->errand);
    if (deed_is_dead(w, a->kind))
        job->deed = DEED_FAIL_BEFORE;
    if (fault_strikes(w, FAULT_DENIAL, number) && job->deed == DEED_DONE && !job->errand.undo)
        job->deed = DEED_DENY;
    job->zombie = fault_strikes(w, FAULT_ZOMBIE, number);
    int64_t lasts = world_spread(w, stream, w->healed ? 10 : w->knobs.work_ms);
    if (fault_strikes(w, FAULT_SLOW, number))
        lasts += (int64_t)fault_roll(w, 5000);
    job->effect_at = now + (int64_t)world_roll(w, stream, (uint64_t)lasts + 1);
    job->end_at = now + lasts;
}

/* As the scenario has it. */
static void job_play(struct world *w, struct job *job, const struct rv_held_attempt *attempt,
                     int64_t now)
{
    struct habit habit = scenario_habit(w, attempt->reference, rv_str_of(job->errand.key),
                                        job->errand.undo);
    int64_t from = habit.manner == MANNER_ZOMBIE ? job->stop_at : now;
    job->deed = habit.deed;
    job->zombie = habit.manner == MANNER_ZOMBIE;
    job->deaf = habit.manner == MANNER_DEAF;
    job->pause_ms = habit.pause_ms;
    job->effect_at = from + habit.lasts_ms / 2;
    job->end_at = from + habit.lasts_ms;
    if (habit.manner == MANNER_LAST_MOMENT)
        job->end_at = job->stop_at - 1;
}

static void job_start(struct world *w, struct agent *a, rv_place place)
{
    if (crossing(w, BOUNDARY_WORK) == TWIST_BEFORE) {
        a->doomed = true;
        return;
    }
    struct job *job = &a->jobs[place];
    const struct rv_held_attempt *attempt = rv_session_attempt(rv_runtime_session(a->runtime),
                                                               place);
    int64_t now = clock_of(w, a);
    rv_assert(!job->used);
    *job = (struct job){
        .used = true, .attempt = attempt->number, .stop_at = rv_held_stop_at(attempt)};
    errand_read(w, attempt->input, attempt->key, &job->errand);
    text_take(job->step, sizeof job->step, attempt->step);
    text_take(job->token, sizeof job->token, attempt->token);
    said_tried(w, attempt->token);
    if (w->scenario != NULL)
        job_play(w, job, attempt, now);
    else
        job_draw(w, a, job, now);
    if (job->deed == DEED_DIE)
        a->doomed = true;
    if (job->deed == DEED_HANG || a->doomed)
        job->effect_at = job->end_at = INT64_MAX;
    /* A zombie may have its effect whenever it likes: it is not what the rules protect. */
    if (!job->errand.undo && job->errand.has_key && !job->zombie) {
        job->counted = true;
        ledger_get(w, rv_str_of(job->errand.key))->working++;
    }
    world_say(w, a->name, "works on %s, attempt %lld, %lld ms to go", job->step,
              (long long)attempt->number, (long long)(job->stop_at - now));
}

static void job_effect(struct world *w, struct agent *a, struct job *job)
{
    bool late = clock_of(w, a) >= job->stop_at || job->told_to_stop;
    job->done_effect = true;
    if (!deed_has_effect(job->deed) || !job->errand.has_key)
        return;
    enum twist twist = crossing(w, BOUNDARY_EFFECT);
    a->doomed = twist == TWIST_BEFORE || twist == TWIST_AFTER;
    if (twist == TWIST_BEFORE)
        return;
    /* Between its last look at the clock and the effect a paused agent was frozen. */
    if (job->errand.undo)
        ledger_undo(w, rv_str_of(job->errand.key), job->attempt, a->name);
    else
        ledger_apply(w, rv_str_of(job->errand.key), job->attempt, late, a->name);
}

/* A reply past libreeve, which would keep silent. */
static void reply_raw(struct world *w, struct agent *a, const char *step, const char *token,
                      bool good)
{
    struct rv_buf body;
    rv_buf_init(&body, RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&body, "{\"replies\":[{\"step\":\"%s\",\"token\":\"%s\",", step, token);
    if (good)
        rv_buf_printf(&body, "\"output\":{\"by\":\"%s\",\"raw\":true}}]}", a->name);
    else
        rv_buf_printf(&body, "\"error\":{\"type\":\"changed-its-mind\",\"status\":500,"
                             "\"transient\":false,\"effect\":\"unknown\"}}]}");
    world_detail(w, a->name, "replies to %s by hand: %s", step, good ? "done" : "failed");
    struct exchange *x = net_ask(w, PEER_AGENT, (uint32_t)(a - w->agents), a->life, TAG_RAW, "POST",
                                 RV_STR("/v1/replies"), rv_buf_str(&body), RAW_WITHIN_MS);
    story_asked(w, a->name, x);
    rv_buf_done(&body);
}

/* It was done, and its agent has not said so. Who denied it always corrects himself. */
static void word_keep(struct world *w, struct agent *a, const struct job *job)
{
    bool did = job->done_effect && deed_has_effect(job->deed) && !job->errand.undo;
    uint32_t number = ACTOR_AGENT + (uint32_t)(a - w->agents);
    if (!did || w->healed || w->scenario != NULL)
        return;
    if (!fault_strikes(w, FAULT_LATE_WORD, number) && job->deed != DEED_DENY)
        return;
    struct word *word = &a->words[0];
    for (uint32_t i = 0; i < WORDS_MAX; i++)
        if (a->words[i].at < word->at)
            word = &a->words[i];
    word->at = w->now + (int64_t)fault_roll(w, WORD_MS_MAX);
    memcpy(word->step, job->step, sizeof word->step);
    memcpy(word->token, job->token, sizeof word->token);
}

static void words_say(struct world *w, struct agent *a)
{
    for (uint32_t i = 0; i < WORDS_MAX; i++) {
        struct word *word = &a->words[i];
        if (word->at == 0 || word->at > w->now)
            continue;
        word->at = 0;
        reply_raw(w, a, word->step, word->token, true);
    }
}

static void agent_lie(struct world *w, struct agent *a, const struct job *job)
{
    const char *other = NULL;
    struct rv_buf body;
    rv_buf_init(&body, RV_PAYLOAD_BYTES_MAX);
    for (rv_place i = 0; i < PLACES_MAX * 2; i++)
        if (a->jobs[i].used && &a->jobs[i] != job && strcmp(a->jobs[i].step, job->step) != 0)
            other = a->jobs[i].step;
    lie_write(w, &body, job->step, job->token, other);
    world_say(w, a->name, "lies: %.*s", RV_STR_FMT(rv_buf_str(&body)));
    net_ask(w, PEER_AGENT, (uint32_t)(a - w->agents), a->life, TAG_LIE, "POST",
            RV_STR("/v1/replies"), rv_buf_str(&body), RAW_WITHIN_MS);
    rv_buf_done(&body);
}

static void job_report(struct world *w, struct agent *a, rv_place place, enum deed deed,
                       int64_t pause_ms)
{
    int64_t now = clock_of(w, a);
    char output[64];
    snprintf(output, sizeof output, "{\"by\":\"%s\",\"at\":%lld}", a->name, (long long)w->now);
    struct rv_runtime_failure failure = {
        .type = RV_STR("trouble"), .status = 503, .retry_after_ms = pause_ms};
    switch (deed) {
    case DEED_DONE:
        rv_runtime_done(a->runtime, place, now, rv_str_of(output));
        return;
    case DEED_FAIL_BEFORE:
    case DEED_FAIL_AFTER:
        failure.transient = true;
        failure.effect = deed == DEED_FAIL_BEFORE ? RV_RUNTIME_NO_EFFECT
                                                  : RV_RUNTIME_UNKNOWN_EFFECT;
        break;
    case DEED_REFUSE:
    case DEED_DENY:
        failure.status = 400;
        failure.effect = RV_RUNTIME_NO_EFFECT;
        break;
    case DEED_BREAK_AFTER:
    case DEED_HANG:
    case DEED_DIE:
        failure.status = 400;
        failure.effect = RV_RUNTIME_UNKNOWN_EFFECT;
        break;
    }
    rv_runtime_failed(a->runtime, place, now, &failure);
}

static void job_end(struct world *w, struct agent *a, rv_place place)
{
    enum twist twist = crossing(w, BOUNDARY_REPORT);
    a->doomed = twist == TWIST_BEFORE || twist == TWIST_AFTER;
    if (twist == TWIST_BEFORE)
        return;
    struct job ended = a->jobs[place];
    job_uncount(w, &a->jobs[place]);
    a->jobs[place].used = false;
    uint32_t number = ACTOR_AGENT + (uint32_t)(a - w->agents);
    bool late = clock_of(w, a) >= ended.stop_at;
    if (fault_strikes(w, FAULT_LIE, number))
        agent_lie(w, a, &ended);
    if (ended.deed == DEED_DENY && w->healed)
        ended.deed = DEED_BREAK_AFTER; /* nobody lies any more */
    if (ended.deed == DEED_DENY && ended.errand.has_key)
        ledger_get(w, rv_str_of(ended.errand.key))->denied = true;
    job_report(w, a, place, ended.deed, ended.pause_ms);
    if (w->healed || a->doomed)
        return;
    if (ended.deed != DEED_DONE || late)
        word_keep(w, a, &ended);
    if (late && ended.zombie && ended.deed == DEED_DONE)
        reply_raw(w, a, ended.step, ended.token, true);
    /* Not after a failure that the runtime may try again: this one is at work no more. */
    bool over = ended.deed == DEED_DONE || ended.deed == DEED_REFUSE ||
                ended.deed == DEED_BREAK_AFTER;
    if (!late && over && fault_strikes(w, FAULT_TWICE, number))
        reply_raw(w, a, ended.step, ended.token, ended.deed == DEED_BREAK_AFTER);
}

/* An agent that cares stops at once; what it may have done, it says. */
static void job_stop(struct world *w, struct agent *a, rv_place place)
{
    struct job *job = &a->jobs[place];
    if (!job->used)
        return;
    if (job->deaf && clock_of(w, a) < job->stop_at)
        return;
    job->told_to_stop = true;
    if (job->zombie)
        return;
    bool did = job->done_effect && deed_has_effect(job->deed);
    word_keep(w, a, job);
    job_uncount(w, job);
    job->used = false;
    world_say(w, a->name, "stops working on %s", job->step);
    job_report(w, a, place, did ? DEED_BREAK_AFTER : DEED_REFUSE, 0);
}

/* ---- the driver ---- */

static bool jobs_run(struct world *w, struct agent *a)
{
    int64_t now = clock_of(w, a);
    bool ran = false;
    for (rv_place i = 0; i < PLACES_MAX * 2; i++) {
        struct job *job = &a->jobs[i];
        if (job->used && !job->done_effect && job->effect_at <= now && !a->doomed) {
            job_effect(w, a, job);
            ran = true;
        }
        if (job->used && job->end_at <= now && !a->doomed) {
            job_end(w, a, i);
            ran = true;
        }
    }
    return ran;
}

static void event_handle(struct world *w, struct agent *a, const struct rv_runtime_event *event)
{
    const struct rv_held_attempt *attempt;
    switch (event->kind) {
    case RV_RUNTIME_START:
        job_start(w, a, event->place);
        return;
    case RV_RUNTIME_CANCEL:
    case RV_RUNTIME_EXPIRED:
        job_stop(w, a, event->place);
        return;
    case RV_RUNTIME_RENEWED:
        attempt = rv_session_attempt(rv_runtime_session(a->runtime), event->place);
        if (attempt != NULL)
            a->jobs[event->place].stop_at = rv_held_stop_at(attempt);
        return;
    case RV_RUNTIME_OVER:
        return;
    }
}

static void calls_send(struct world *w, struct agent *a)
{
    struct rv_session *session = rv_runtime_session(a->runtime);
    struct rv_session_call call;
    while (!a->doomed && rv_session_next_call(session, clock_of(w, a), &call)) {
        enum twist twist = crossing(w, BOUNDARY_SEND);
        a->doomed = twist == TWIST_BEFORE || twist == TWIST_AFTER;
        if (twist == TWIST_BEFORE)
            return;
        world_detail(w, a->name, "sends %.*s %.*s", RV_STR_FMT(call.path), RV_STR_FMT(call.body));
        if (call.lane == RV_LANE_REPLY)
            check_sent_again(w, &a->refused, call.body, clock_of(w, a));
        a->lanes[call.lane] = net_ask(w, PEER_AGENT, (uint32_t)(a - w->agents), a->life, call.lane,
                                      "POST", call.path, call.body, call.timeout_ms);
        story_asked(w, a->name, a->lanes[call.lane]);
    }
}

static int64_t next_at(const struct agent *a)
{
    int64_t at = rv_runtime_wake_at(a->runtime);
    for (rv_place i = 0; i < PLACES_MAX * 2; i++) {
        const struct job *job = &a->jobs[i];
        if (!job->used)
            continue;
        if (!job->done_effect && job->effect_at < at)
            at = job->effect_at;
        if (job->end_at < at)
            at = job->end_at;
    }
    return at;
}

static void agent_crash(struct world *w, struct agent *a)
{
    world_say(w, a->name, "crashes");
    for (rv_place i = 0; i < PLACES_MAX * 2; i++)
        if (a->jobs[i].used)
            job_uncount(w, &a->jobs[i]);
    for (int i = 0; i < RV_LANE_COUNT; i++)
        if (a->lanes[i] != NULL)
            net_leave(w, a->lanes[i]);
    rv_runtime_free(a->runtime);
    a->runtime = NULL;
    if (a->doomed)
        world_at(w, w->now + RESTARTS_IN_MS, EVENT_REVIVE, (uint32_t)(a - w->agents), 0);
    a->doomed = false;
}

static void agent_drive(struct world *w, struct agent *a, bool jobs_first)
{
    struct rv_runtime_event event;
    if (jobs_first)
        (void)jobs_run(w, a);
    int turns = 0;
    do {
        while (!a->doomed && rv_runtime_next_event(a->runtime, clock_of(w, a), &event))
            event_handle(w, a, &event);
        calls_send(w, a);
        rv_assert(++turns < TURNS_MAX);
    } while (jobs_run(w, a) && !a->doomed);
    if (a->doomed) {
        agent_crash(w, a);
        return;
    }
    int64_t at = next_at(a);
    if (at == INT64_MAX)
        return;
    int64_t wait = at - clock_of(w, a);
    plan_turn(w, a, w->now + (wait > 0 ? wait : 1));
}

void agent_turn(struct world *w, uint32_t agent, uint64_t life)
{
    struct agent *a = &w->agents[agent];
    if (a->life != life || a->runtime == NULL || a->turn_at != w->now)
        return;
    a->turn_at = INT64_MAX;
    if (!a->paused)
        agent_drive(w, a, false);
}

/* Of each reply that the server did not take: how long its agent may send it. */
static void replies_refused(struct world *w, struct agent *a, struct rv_str request)
{
    check_refused(w, &a->refused, request);
    for (uint32_t i = 0; i < a->refused.count; i++) {
        a->refused.stop_at[i] = INT64_MIN;
        for (uint32_t place = 0; place < PLACES_MAX * 2; place++)
            if (check_token(rv_str_of(a->jobs[place].token)) == a->refused.tokens[i])
                a->refused.stop_at[i] = a->jobs[place].stop_at;
    }
}

void agent_answered(struct world *w, struct exchange *x)
{
    struct agent *a = &w->agents[x->actor];
    bool raw = x->tag == TAG_RAW;
    if (x->tag == TAG_LIE) {
        check_lie(w, x->status, x->answer);
        return;
    }
    if ((raw || x->tag == RV_LANE_REPLY) && x->status == 200)
        check_replied(w, x->body, x->answer);
    if (raw)
        story_answered(w, a->name, x);
    if (a->life != x->life || a->runtime == NULL || raw)
        return;
    if (x->tag == RV_LANE_REPLY && x->status == 503)
        replies_refused(w, a, x->body);
    a->lanes[x->tag] = NULL;
    enum twist twist = crossing(w, BOUNDARY_HEAR);
    if (twist == TWIST_BEFORE) {
        a->doomed = true;
        agent_crash(w, a);
        return;
    }
    world_detail(w, a->name, "gets %d %.*s", x->status, RV_STR_FMT(x->answer));
    story_answered(w, a->name, x);
    rv_session_answered(rv_runtime_session(a->runtime), x->tag, clock_of(w, a), x->status,
                        x->retry_after_ms, x->answer);
    if (twist == TWIST_AFTER) {
        a->doomed = true;
        agent_crash(w, a);
        return;
    }
    plan_turn(w, a, w->now);
}

void agent_lost(struct world *w, struct exchange *x)
{
    struct agent *a = &w->agents[x->actor];
    if (a->life != x->life || a->runtime == NULL || x->tag >= TAG_RAW)
        return;
    a->lanes[x->tag] = NULL;
    world_detail(w, a->name, "gets no answer on lane %u", x->tag);
    story_unanswered(w, a->name, x);
    rv_session_lost(rv_runtime_session(a->runtime), x->tag, clock_of(w, a), "simulated");
    plan_turn(w, a, w->now);
}

/* ---- troubles ---- */

void agent_trouble(struct world *w, uint32_t agent)
{
    struct agent *a = &w->agents[agent];
    if (w->healed)
        return;
    world_at(w, w->now + 1000, EVENT_TROUBLE, agent, 0);
    words_say(w, a);
    if (a->runtime == NULL || a->paused)
        return;
    if (fault_strikes(w, FAULT_AGENT_CRASH, ACTOR_AGENT + agent)) {
        int64_t ms = fault_spread(w, 2000);
        agent_crash(w, a);
        world_at(w, w->now + ms, EVENT_REVIVE, agent, 0);
    } else if (fault_strikes(w, FAULT_AGENT_PAUSE, ACTOR_AGENT + agent)) {
        int64_t ms = (int64_t)fault_roll(w, 10000);
        world_say(w, a->name, "stops for %lld ms", (long long)ms);
        a->paused = true;
        /* Frozen, it cannot look at its clock: what it does next nobody can answer for. */
        for (rv_place i = 0; i < PLACES_MAX * 2; i++)
            if (a->jobs[i].used)
                job_uncount(w, &a->jobs[i]);
        world_at(w, w->now + ms, EVENT_REVIVE, agent, 0);
    }
}

void agent_revive(struct world *w, uint32_t agent)
{
    struct agent *a = &w->agents[agent];
    if (a->runtime == NULL) {
        agent_start(w, a);
    } else if (a->paused) {
        world_say(w, a->name, "goes on");
        a->paused = false;
        a->turn_at = INT64_MAX;
        agent_drive(w, a, true);
    }
}

void agents_heal(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.agents; i++) {
        struct agent *a = &w->agents[i];
        agent_revive(w, i);
        for (rv_place p = 0; p < PLACES_MAX * 2; p++)
            if (a->jobs[p].used && a->jobs[p].deed == DEED_HANG)
                a->jobs[p].end_at = clock_of(w, a);
        plan_turn(w, a, w->now);
    }
}

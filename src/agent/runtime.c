#include "agent/runtime.h"

#include "agent/circuit.h"
#include "base/assert.h"
#include "base/prng.h"
#include "base/time.h"
#include "client/jitter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TYPE_BYTES = 256,
    TITLE_BYTES = 512,
    DETAIL_BYTES = 2048,
    RESERVE_PART = 10, /* of an attempt's time, kept for its reply */
    RESERVE_MAX_MS = 1000
};

enum duty_state {
    DUTY_IDLE,
    DUTY_READY,   /* a try is due */
    DUTY_RUNNING, /* the handler has it */
    DUTY_PAUSED   /* until try_at */
};

/* What is to be done about one attempt in hand; beside the session's place of the same number. */
struct runtime_duty {
    enum duty_state state;
    bool listed; /* in runtime->ready */
    bool expired;
    bool cancelled;
    bool probe;          /* the running try is its circuit's probe */
    bool effect_unknown; /* an earlier try may have had an effect */
    uint32_t tries;
    uint32_t circuit;
    int64_t taken_at; /* the attempt came */
    int64_t try_at;
    int64_t started_at;            /* of the running try */
    struct rv_session_error error; /* of the last failed try; its texts are the three below */
    char type[TYPE_BYTES];
    char title[TITLE_BYTES];
    char detail[DETAIL_BYTES];
};

struct event_list {
    struct rv_runtime_event *at; /* owned: a ring */
    uint32_t first;
    uint32_t count;
    uint32_t room;
};

struct rv_runtime {
    struct rv_session *session; /* owned */
    struct rv_runtime_options options;
    struct rv_prng prng;
    struct rv_circuits circuits;
    struct runtime_duty *duties; /* owned, by place */
    uint32_t places;
    uint32_t running;
    rv_place *ready; /* owned: READY duties in order */
    uint32_t ready_count;
    struct event_list events;
    int64_t timers_at; /* no pause ends before this */
    bool stopping;
    struct rv_runtime_counts counts;
};

struct rv_runtime *rv_runtime_new(const struct rv_runtime_options *options)
{
    struct rv_runtime *runtime = calloc(1, sizeof *runtime);
    if (runtime == NULL)
        return NULL;
    runtime->options = *options;
    runtime->timers_at = INT64_MAX;
    rv_prng_init(&runtime->prng, options->session.seed ^ UINT64_C(0x6a697474657279));
    rv_circuits_init(&runtime->circuits, options->circuit_failures, options->circuit_open_ms);
    runtime->session = rv_session_new(&options->session);
    if (runtime->session == NULL) {
        free(runtime);
        return NULL;
    }
    runtime->places = rv_session_places(runtime->session);
    runtime->duties = calloc(runtime->places, sizeof *runtime->duties);
    runtime->ready = calloc(runtime->places, sizeof *runtime->ready);
    /* Between two looks of the driver a place has at most one cancel, expiry, renewal and end. */
    runtime->events.room = runtime->places * 4;
    runtime->events.at = calloc(runtime->events.room, sizeof *runtime->events.at);
    if (runtime->duties == NULL || runtime->ready == NULL || runtime->events.at == NULL) {
        rv_runtime_free(runtime);
        return NULL;
    }
    return runtime;
}

void rv_runtime_free(struct rv_runtime *runtime)
{
    if (runtime == NULL)
        return;
    rv_session_free(runtime->session);
    free(runtime->duties);
    free(runtime->ready);
    free(runtime->events.at);
    free(runtime);
}

struct rv_session *rv_runtime_session(struct rv_runtime *runtime)
{
    return runtime->session;
}

const struct rv_runtime_counts *rv_runtime_counts(const struct rv_runtime *runtime)
{
    return &runtime->counts;
}

uint32_t rv_runtime_running(const struct rv_runtime *runtime)
{
    return runtime->running;
}

static void event_add(struct rv_runtime *runtime, enum rv_runtime_kind kind, rv_place place)
{
    struct event_list *events = &runtime->events;
    rv_assert(place < runtime->places);
    rv_assert(events->count < events->room);
    uint32_t at = (events->first + events->count++) % events->room;
    events->at[at] = (struct rv_runtime_event){kind, place, runtime->duties[place].tries};
}

static void duty_ready(struct rv_runtime *runtime, rv_place place)
{
    struct runtime_duty *duty = &runtime->duties[place];
    rv_assert(duty->state == DUTY_IDLE || duty->state == DUTY_PAUSED);
    rv_assert(duty->listed || runtime->ready_count < runtime->places);
    duty->state = DUTY_READY;
    if (!duty->listed) {
        duty->listed = true;
        runtime->ready[runtime->ready_count++] = place;
    }
}

/* The attempt is out of our hands: the session has its reply, or nobody waits for it. */
static void duty_over(struct rv_runtime *runtime, rv_place place)
{
    rv_assert(runtime->duties[place].state != DUTY_IDLE);
    runtime->duties[place].state = DUTY_IDLE;
    event_add(runtime, RV_RUNTIME_OVER, place);
}

static void duty_reply_error(struct rv_runtime *runtime, rv_place place, int64_t now,
                             const struct rv_session_error *error)
{
    struct runtime_duty *duty = &runtime->duties[place];
    struct rv_session_error said = *error;
    said.effect_unknown = said.effect_unknown || duty->effect_unknown;
    rv_session_fail(runtime->session, place, now, &said);
    duty_over(runtime, place);
}

static void reply_cancelled(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct rv_session_error error = {
        .type = RV_STR("cancelled"),
        .title = RV_STR("a stop was requested before the next try of the attempt")};
    duty_reply_error(runtime, place, now, &error);
}

static struct rv_str duty_target(struct rv_runtime *runtime, rv_place place)
{
    struct rv_str target = RV_STR_NONE;
    if (runtime->options.target != NULL)
        target = runtime->options.target(runtime->options.user, place);
    return target.len > 0 ? target : runtime->options.session.agent;
}

/* The server keeps others away from a target whose circuit is open. */
static void circuit_tell(struct rv_runtime *runtime, uint32_t circuit, int64_t pause_ms,
                         struct rv_session_error *error)
{
    rv_assert(circuit < runtime->circuits.count);
    /* Some more at random: steps behind an open circuit come back spread out. */
    pause_ms += rv_jitter_ms(&runtime->prng, pause_ms / 4 + 1, pause_ms / 4 + 1, 0);
    error->target = rv_str_of(runtime->circuits.all[circuit].target);
    if (error->retry_after_ms < pause_ms)
        error->retry_after_ms = pause_ms;
}

/* A failure of what was tried, though its circuit may be open by now: the server counts it. */
static void reply_failed(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct rv_session_error error = runtime->duties[place].error;
    uint32_t circuit = rv_circuits_find(&runtime->circuits, duty_target(runtime, place), now);
    int64_t pause_ms = rv_circuit_left_ms(&runtime->circuits, circuit, now);
    if (error.transient && pause_ms > 0)
        circuit_tell(runtime, circuit, pause_ms, &error);
    duty_reply_error(runtime, place, now, &error);
}

/* Nothing was tried: the server counts no failure. */
static void reply_circuit_open(struct rv_runtime *runtime, rv_place place, int64_t now,
                               int64_t pause_ms)
{
    runtime->counts.circuit_open++;
    struct rv_session_error error = {
        .type = RV_STR("circuit-open"),
        .title = RV_STR("the target failed repeatedly; its circuit is open"),
        .status = 503,
        .transient = true};
    circuit_tell(runtime, runtime->duties[place].circuit, pause_ms, &error);
    duty_reply_error(runtime, place, now, &error);
}

/* Starts the next try unless its circuit is open. True: a START event. */
static bool duty_start(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct runtime_duty *duty = &runtime->duties[place];
    rv_assert(duty->state == DUTY_READY);
    rv_assert(runtime->running < runtime->places);
    duty->circuit = rv_circuits_find(&runtime->circuits, duty_target(runtime, place), now);
    int64_t pause_ms = 0;
    enum rv_circuit_verdict verdict = rv_circuit_ask(&runtime->circuits, duty->circuit, now,
                                                     &pause_ms);
    const struct rv_held_attempt *attempt = rv_session_attempt(runtime->session, place);
    if (verdict == RV_CIRCUIT_STOP && attempt->insist && duty->tries == 0) {
        rv_circuit_insist(&runtime->circuits, duty->circuit);
        verdict = RV_CIRCUIT_PROBE;
    }
    if (verdict == RV_CIRCUIT_STOP) {
        if (duty->tries > 0)
            reply_failed(runtime, place, now);
        else
            reply_circuit_open(runtime, place, now, pause_ms);
        return false;
    }
    duty->probe = verdict == RV_CIRCUIT_PROBE;
    duty->state = DUTY_RUNNING;
    duty->started_at = now;
    duty->tries++;
    runtime->running++;
    runtime->counts.tries++;
    return true;
}

static void duty_new(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct runtime_duty *duty = &runtime->duties[place];
    rv_assert(duty->state == DUTY_IDLE);
    duty->expired = duty->cancelled = duty->probe = duty->effect_unknown = false;
    duty->tries = 0;
    duty->circuit = UINT32_MAX;
    duty->taken_at = now;
    duty_ready(runtime, place);
}

static void duty_expire(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct runtime_duty *duty = &runtime->duties[place];
    duty->expired = true;
    if (duty->state != DUTY_RUNNING) {
        rv_session_drop(runtime->session, place);
        duty_over(runtime, place);
        return;
    }
    /* Hanging is failing. What the handler says later counts no more. */
    rv_circuit_report(&runtime->circuits, duty->circuit, now, duty->probe, true, 0);
    duty->circuit = UINT32_MAX;
    event_add(runtime, RV_RUNTIME_EXPIRED, place);
}

static void duty_cancel(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct runtime_duty *duty = &runtime->duties[place];
    if (duty->cancelled)
        return;
    duty->cancelled = true;
    if (duty->state == DUTY_RUNNING)
        event_add(runtime, RV_RUNTIME_CANCEL, place);
    else
        reply_cancelled(runtime, place, now);
}

static void news_take(struct rv_runtime *runtime, int64_t now)
{
    rv_place place;
    unsigned news;
    while (rv_session_next_news(runtime->session, now, &place, &news)) {
        struct runtime_duty *duty = &runtime->duties[place];
        if (news & RV_NEWS_REQUEST)
            duty_new(runtime, place, now);
        if (news & RV_NEWS_EXPIRED) {
            duty_expire(runtime, place, now);
            continue;
        }
        if (news & RV_NEWS_CANCEL)
            duty_cancel(runtime, place, now);
        if ((news & RV_NEWS_RENEWED) && duty->state == DUTY_RUNNING)
            event_add(runtime, RV_RUNTIME_RENEWED, place);
    }
}

static void pauses_end(struct rv_runtime *runtime, int64_t now)
{
    if (now < runtime->timers_at)
        return;
    int64_t next = INT64_MAX;
    for (rv_place i = 0; i < runtime->places; i++) {
        struct runtime_duty *duty = &runtime->duties[i];
        if (duty->state != DUTY_PAUSED)
            continue;
        if (duty->try_at <= now)
            duty_ready(runtime, i);
        else if (duty->try_at < next)
            next = duty->try_at;
    }
    runtime->timers_at = next;
}

/* Takes the first READY duty off the list; those that ended while they were listed are skipped. */
static bool ready_take(struct rv_runtime *runtime, rv_place *ret_place)
{
    while (runtime->ready_count > 0) {
        rv_place place = runtime->ready[0];
        rv_assert(runtime->duties[place].listed);
        runtime->ready_count--;
        memmove(runtime->ready, runtime->ready + 1, runtime->ready_count * sizeof *runtime->ready);
        runtime->duties[place].listed = false;
        if (runtime->duties[place].state == DUTY_READY) {
            *ret_place = place;
            return true;
        }
    }
    return false;
}

static bool event_take(struct event_list *events, struct rv_runtime_event *ret_event)
{
    if (events->count == 0)
        return false;
    *ret_event = events->at[events->first];
    events->first = (events->first + 1) % events->room;
    events->count--;
    return true;
}

bool rv_runtime_next_event(struct rv_runtime *runtime, int64_t now,
                           struct rv_runtime_event *ret_event)
{
    if (event_take(&runtime->events, ret_event))
        return true;
    news_take(runtime, now);
    pauses_end(runtime, now);
    if (event_take(&runtime->events, ret_event))
        return true;
    rv_place place;
    while (ready_take(runtime, &place)) {
        if (duty_start(runtime, place, now)) {
            *ret_event = (struct rv_runtime_event){RV_RUNTIME_START, place,
                                                   runtime->duties[place].tries};
            return true;
        }
    }
    return event_take(&runtime->events, ret_event);
}

int64_t rv_runtime_wake_at(const struct rv_runtime *runtime)
{
    int64_t at = rv_session_wake_at(runtime->session);
    return runtime->timers_at < at ? runtime->timers_at : at;
}

/* The handler has given the place back. True: its answer still counts. */
static bool duty_returned(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct runtime_duty *duty = &runtime->duties[place];
    rv_assert(duty->state == DUTY_RUNNING);
    rv_assert(runtime->running > 0);
    runtime->running--;
    const struct rv_held_attempt *attempt = rv_session_attempt(runtime->session, place);
    if (duty->expired || now >= rv_held_stop_at(attempt)) {
        if (!duty->expired)
            rv_circuit_report(&runtime->circuits, duty->circuit, now, duty->probe, true, 0);
        return false;
    }
    return true;
}

void rv_runtime_done(struct rv_runtime *runtime, rv_place place, int64_t now, struct rv_str output)
{
    struct runtime_duty *duty = &runtime->duties[place];
    if (duty_returned(runtime, place, now))
        rv_circuit_report(&runtime->circuits, duty->circuit, now, duty->probe, false, 0);
    rv_session_done(runtime->session, place, now, output);
    duty_over(runtime, place);
}

static struct rv_str text_keep(char *room, size_t bytes, struct rv_str text)
{
    if (text.at == NULL)
        return text;
    if (text.len > bytes)
        text.len = bytes;
    memcpy(room, text.at, text.len);
    return (struct rv_str){room, text.len};
}

static void failure_keep(struct runtime_duty *duty, const struct rv_runtime_failure *failure)
{
    bool unknown = failure->effect == RV_RUNTIME_UNKNOWN_EFFECT ||
                   (failure->effect == RV_RUNTIME_BY_KIND && failure->transient);
    duty->effect_unknown = duty->effect_unknown || unknown;
    duty->error = (struct rv_session_error){
        .type = text_keep(duty->type, TYPE_BYTES, failure->type),
        .title = text_keep(duty->title, TITLE_BYTES, failure->title),
        .detail = text_keep(duty->detail, DETAIL_BYTES, failure->detail),
        .status = failure->status,
        .transient = failure->transient,
        .retry_after_ms = rv_retry_after_ms(failure->retry_after_ms, 1)};
}

/* The reply says why an attempt is given up that has time left. */
static void given_up_tell(struct runtime_duty *duty, int64_t now, int64_t pause_ms)
{
    size_t len = duty->error.detail.len;
    char took[RV_INSTANT_TEXT_BYTES], pause[RV_INSTANT_TEXT_BYTES];
    (void)rv_span_text(now - duty->taken_at, took);
    (void)rv_span_text(pause_ms, pause);
    int wrote = snprintf(duty->detail + len, DETAIL_BYTES - len,
                         "%sthe request was not retried after %u %s in %s: another try after a "
                         "pause of %s would end after complete-by",
                         len > 0 ? "; " : "", duty->tries, duty->tries == 1 ? "try" : "tries", took,
                         pause);
    if (wrote > 0 && (size_t)wrote < DETAIL_BYTES - len) /* else it stays as it was */
        duty->error.detail = (struct rv_str){duty->detail, len + (size_t)wrote};
}

/* Plans the next try; false if there is none to be had. A try is taken to last as long as the last
 * one did, and a part of the attempt's time is left over: what fails definitely just before
 * complete-by is to be told as that, and not to expire with an unknown effect. */
static bool retry_plan(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    struct runtime_duty *duty = &runtime->duties[place];
    const struct rv_held_attempt *attempt = rv_session_attempt(runtime->session, place);
    rv_assert(duty->state == DUTY_RUNNING);
    rv_assert(duty->tries > 0);
    if (!duty->error.transient || duty->cancelled || runtime->stopping ||
        duty->tries >= runtime->options.tries_max)
        return false;
    int64_t pause_ms = rv_jitter_ms(&runtime->prng, runtime->options.retry_base_ms,
                                    runtime->options.retry_cap_ms, duty->tries - 1);
    if (pause_ms < duty->error.retry_after_ms)
        pause_ms = duty->error.retry_after_ms;
    int64_t lasted_ms = now - duty->started_at;
    int64_t reserve_ms = (attempt->complete_at - duty->taken_at) / RESERVE_PART;
    if (reserve_ms > RESERVE_MAX_MS)
        reserve_ms = RESERVE_MAX_MS;
    int64_t left_ms = attempt->complete_at - reserve_ms - now;
    if (pause_ms >= left_ms || lasted_ms >= left_ms - pause_ms) {
        given_up_tell(duty, now, pause_ms);
        return false;
    }
    duty->state = DUTY_PAUSED;
    duty->try_at = now + pause_ms;
    if (duty->try_at < runtime->timers_at)
        runtime->timers_at = duty->try_at;
    return true;
}

/* Without the stop it would have been tried again. */
static void stopped(struct rv_runtime *runtime, rv_place place, int64_t now)
{
    if (!runtime->options.leaves) {
        reply_failed(runtime, place, now);
        return;
    }
    rv_session_drop(runtime->session, place);
    duty_over(runtime, place);
}

void rv_runtime_failed(struct rv_runtime *runtime, rv_place place, int64_t now,
                       const struct rv_runtime_failure *failure)
{
    struct runtime_duty *duty = &runtime->duties[place];
    bool counts = duty_returned(runtime, place, now);
    failure_keep(duty, failure);
    if (counts && duty->cancelled && failure->transient)
        rv_circuit_withdraw(&runtime->circuits, duty->circuit, duty->probe);
    else if (counts)
        rv_circuit_report(&runtime->circuits, duty->circuit, now, duty->probe, failure->transient,
                          duty->error.retry_after_ms);
    duty->probe = false;
    if (counts && retry_plan(runtime, place, now))
        return;
    if (counts && runtime->stopping && failure->transient && !duty->cancelled)
        stopped(runtime, place, now);
    else
        reply_failed(runtime, place, now);
}

bool rv_runtime_stop(struct rv_runtime *runtime, int64_t now)
{
    runtime->stopping = true;
    for (rv_place i = 0; i < runtime->places; i++)
        if (runtime->duties[i].state == DUTY_PAUSED)
            stopped(runtime, i, now);
    runtime->timers_at = INT64_MAX;
    return rv_session_stop(runtime->session);
}

bool rv_runtime_ended(const struct rv_runtime *runtime)
{
    if (rv_session_ended(runtime->session))
        return true;
    if (!runtime->stopping || rv_session_sending(runtime->session))
        return false;
    for (rv_place i = 0; i < runtime->places; i++) {
        const struct runtime_duty *duty = &runtime->duties[i];
        if (duty->state != DUTY_IDLE && !duty->expired)
            return false;
    }
    return true;
}

/* States and timers of an agent's conversation.
 *
 * A slot goes FREE, OPEN (the caller works on it), ANSWERED (its reply waits), SENT (its reply is
 * in the call under way) and back; LATE stands for an open one whose deadline has passed. A lost
 * reply call puts its slots back to ANSWERED, so the next call repeats them together with what has
 * come in meanwhile. The server decides each by its token. */
#include "client/jitter.h"
#include "base/time.h"
#include "client/session_priv.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    RETRY_BASE_MS = 50,
    RETRY_CAP_MS = 2000,
    REFUSED_BASE_MS = 2000, /* a 4xx does not heal by itself, but servers get restarted */
    REFUSED_CAP_MS = 30000,
    CALL_TIMEOUT_MS = 10000,
    LEAVE_TIMEOUT_MS = 1000,
    LINGER_MS = 2, /* how long a poll waits for the first reply to carry it */
    TEXT_KEEP_BYTES = 32 * 1024
};

void rv_session_id(struct rv_prng *prng, char ret_id[static ID_BYTES])
{
    uint64_t bits = rv_prng_next(prng);
    for (int i = 0; i < ID_BYTES - 1; i++, bits >>= 4)
        ret_id[i] = "0123456789abcdef"[bits & 15];
    ret_id[ID_BYTES - 1] = '\0';
}

/* "/v1/agents/<name>/requests" with the name escaped as a path segment (RFC 3986). */
static struct rv_str path_make(struct rv_arena *arena, struct rv_str agent)
{
    struct rv_buf path;
    rv_buf_init(&path, 4096);
    rv_buf_lit(&path, "/v1/agents/");
    rv_buf_add_percent(&path, agent);
    rv_buf_lit(&path, "/requests");
    struct rv_str made = path.failed ? RV_STR_NONE : rv_arena_str(arena, rv_buf_str(&path));
    rv_buf_done(&path);
    return made;
}

static bool places_new(struct places *places, uint32_t room)
{
    *places = (struct places){calloc(room, sizeof *places->at), 0};
    return places->at != NULL;
}

static void places_add(struct places *places, rv_place place)
{
    places->at[places->count++] = place;
}

static bool slots_new(struct rv_session *session)
{
    /* A fetch asks for max less what is in hand, but does not count the replies that travel with
     * it: at most max of those are still in their places when its requests arrive. */
    uint32_t n = session->slot_count = session->options.max * 2;
    session->slots = calloc(n, sizeof *session->slots);
    session->hashes = calloc(n, sizeof *session->hashes);
    if (session->slots == NULL || session->hashes == NULL || !places_new(&session->free, n) ||
        !places_new(&session->waiting, n) || !places_new(&session->sent, n) ||
        !places_new(&session->leased, n) || !places_new(&session->news, n))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        rv_buf_init(&session->slots[i].text, 2 * RV_PAYLOAD_BYTES_MAX);
        rv_buf_init(&session->slots[i].reply, 2 * RV_PAYLOAD_BYTES_MAX);
        places_add(&session->free, n - 1 - i);
    }
    return true;
}

struct rv_session *rv_session_new(const struct rv_session_options *options)
{
    rv_assert(options->max >= 1 && options->max <= RV_CALL_ITEMS_MAX);
    struct rv_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->options = *options;
    session->items_max = RV_CALL_ITEMS_MAX;
    session->timers_at = INT64_MAX;
    rv_prng_init(&session->prng, options->seed);
    rv_session_id(&session->prng, session->boot);
    rv_arena_init(&session->names, 0);
    rv_arena_init(&session->scratch, 0);
    for (int i = 0; i < RV_LANE_COUNT; i++)
        rv_buf_init(&session->lanes[i].body, RV_BODY_BYTES_MAX);
    session->agent = rv_arena_str(&session->names, options->agent);
    session->instance = rv_arena_str(&session->names, options->instance);
    session->server = options->server.len > 0 ? rv_arena_str(&session->names, options->server)
                                              : RV_STR("the server");
    session->path_requests = path_make(&session->names, options->agent);
    if (session->agent.at == NULL || session->instance.at == NULL || session->server.at == NULL ||
        session->path_requests.at == NULL || !slots_new(session)) {
        rv_session_free(session);
        return NULL;
    }
    return session;
}

void rv_session_free(struct rv_session *session)
{
    if (session == NULL)
        return;
    for (uint32_t i = 0; session->slots != NULL && i < session->slot_count; i++) {
        rv_buf_done(&session->slots[i].text);
        rv_buf_done(&session->slots[i].reply);
    }
    for (int i = 0; i < RV_LANE_COUNT; i++)
        rv_buf_done(&session->lanes[i].body);
    free(session->slots);
    free(session->hashes);
    free(session->free.at);
    free(session->waiting.at);
    free(session->sent.at);
    free(session->leased.at);
    free(session->news.at);
    rv_arena_done(&session->scratch);
    rv_arena_done(&session->names);
    free(session);
}

uint32_t rv_session_places(const struct rv_session *session)
{
    return session->slot_count;
}

const struct rv_session_counts *rv_session_counts(const struct rv_session *session)
{
    return &session->counts;
}

int64_t rv_held_stop_at(const struct rv_held_attempt *attempt)
{
    bool lease = attempt->lease_at < attempt->complete_at;
    return lease ? attempt->lease_at : attempt->complete_at;
}

const struct rv_held_attempt *rv_session_attempt(const struct rv_session *session, rv_place place)
{
    rv_assert(place < session->slot_count);
    const struct session_slot *slot = &session->slots[place];
    return slot->state == SLOT_FREE ? NULL : &slot->attempt;
}

/* ---- slots ---- */

static void buf_slim(struct rv_buf *buf)
{
    rv_buf_reset(buf);
    if (buf->room > TEXT_KEEP_BYTES)
        rv_buf_done(buf);
}

void rv_session_release(struct rv_session *session, rv_place place)
{
    rv_assert(place < session->slot_count);
    rv_assert(session->free.count < session->slot_count);
    rv_assert(session->hashes[place] != 0);
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state != SLOT_FREE);
    session->remembered[session->remembered_next] = session->hashes[place];
    session->remembered_next = (session->remembered_next + 1) % TOKENS_REMEMBERED;
    session->hashes[place] = 0;
    slot->state = SLOT_FREE;
    slot->news = 0;
    buf_slim(&slot->text);
    buf_slim(&slot->reply);
    places_add(&session->free, place);
}

void rv_session_news(struct rv_session *session, rv_place place, unsigned news)
{
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state != SLOT_FREE);
    rv_assert(slot->listed || session->news.count < session->slot_count);
    slot->news |= news;
    if (!slot->listed) {
        slot->listed = true;
        places_add(&session->news, place);
    }
}

static void slot_expire(struct rv_session *session, rv_place place)
{
    rv_assert(session->slots[place].state == SLOT_OPEN);
    const struct rv_held_attempt *attempt = &session->slots[place].attempt;
    rv_session_log(
        session, RV_LOG_WARNING, "task %.*s, step %.*s, attempt %lld failed: %s",
        RV_STR_FMT(attempt->task), RV_STR_FMT(attempt->step), (long long)attempt->number,
        session->slots[place].ended
            ? "the server ended the attempt before its deadline; if another process polls under "
              "the same instance name, give each process its own name (--instance)"
            : "its deadline has passed");
    session->slots[place].state = SLOT_LATE;
    session->counts.expired++;
    rv_session_news(session, place, RV_NEWS_EXPIRED);
}

/* Whether a lease asks to be renewed. */
static bool slot_due(const struct session_slot *slot, int64_t now)
{
    return slot->state == SLOT_OPEN && !slot->renewing && slot->renew_at <= now;
}

/* Replies that could not leave in time are not sent at all: silence after the deadline. */
static void waiting_prune(struct rv_session *session, int64_t now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < session->waiting.count; i++) {
        rv_place place = session->waiting.at[i];
        rv_assert(session->slots[place].state == SLOT_ANSWERED);
        if (now < rv_held_stop_at(&session->slots[place].attempt)) {
            session->waiting.at[kept++] = place;
            continue;
        }
        session->counts.late_dropped++;
        rv_session_release(session, place);
    }
    session->waiting.count = kept;
}

/* Ends what is due at `now` and finds the next instant at which something is. */
static void timers_run(struct rv_session *session, int64_t now)
{
    if (now < session->timers_at)
        return;
    waiting_prune(session, now);
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < session->slot_count; i++) {
        struct session_slot *slot = &session->slots[i];
        if (slot->state != SLOT_OPEN && slot->state != SLOT_ANSWERED)
            continue;
        int64_t stop_at = rv_held_stop_at(&slot->attempt);
        if (now >= stop_at) {
            slot_expire(session, i);
            continue;
        }
        if (stop_at < next)
            next = stop_at;
        if (slot_due(slot, now))
            session->leases_due = true;
        else if (slot->state == SLOT_OPEN && slot->renew_at > now && slot->renew_at < next)
            next = slot->renew_at;
    }
    session->timers_at = next;
}

bool rv_session_next_news(struct rv_session *session, int64_t now, rv_place *ret_place,
                          unsigned *ret_news)
{
    timers_run(session, now);
    while (session->news.count > 0) {
        rv_place place = session->news.at[0];
        rv_assert(place < session->slot_count);
        rv_assert(session->slots[place].listed);
        session->news.count--;
        memmove(session->news.at, session->news.at + 1,
                session->news.count * sizeof *session->news.at);
        struct session_slot *slot = &session->slots[place];
        unsigned news = slot->news;
        slot->listed = false;
        slot->news = 0;
        if (news == 0)
            continue; /* the place was given back meanwhile */
        *ret_place = place;
        *ret_news = news;
        return true;
    }
    return false;
}

uint32_t rv_session_open(const struct rv_session *session)
{
    rv_assert(session->free.count <= session->slot_count);
    rv_assert(session->waiting.count + session->sent.count <=
              session->slot_count - session->free.count);
    return session->slot_count - session->free.count - session->waiting.count - session->sent.count;
}

/* True if the caller's answer still counts; else the place is free. */
static bool slot_take_back(struct rv_session *session, rv_place place, int64_t now)
{
    rv_assert(place < session->slot_count);
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state == SLOT_OPEN || slot->state == SLOT_LATE);
    slot->news = 0;
    if (slot->state == SLOT_OPEN && now < rv_held_stop_at(&slot->attempt))
        return true;
    if (slot->state == SLOT_OPEN)
        session->counts.expired++;
    session->counts.late_dropped++;
    rv_session_release(session, place);
    return false;
}

/* OK if `output` may be sent; else why not. */
static enum rv_err output_check(struct rv_session *session, struct rv_str output,
                                const char **ret_why)
{
    *ret_why = "the agent's output is larger than 1 MiB; send a reference to the data instead";
    if (output.len > RV_PAYLOAD_BYTES_MAX)
        return RV_ERR_LIMIT;
    struct rv_json value;
    struct rv_json_fault fault = {.message = "out of memory"};
    rv_arena_reset(&session->scratch);
    enum rv_err err = rv_json_parse(&session->scratch, output, RV_JSON_DEPTH_MAX, &value, &fault);
    *ret_why = err == RV_ERR_LIMIT && fault.line != 0
                   ? "the agent's output is nested deeper than 64 levels"
                   : fault.message;
    return err;
}

void rv_session_done(struct rv_session *session, rv_place place, int64_t now, struct rv_str output)
{
    if (!slot_take_back(session, place, now))
        return;
    struct session_slot *slot = &session->slots[place];
    slot->replaced = false;
    slot->effect_unknown = true;
    rv_reply_begin(slot);
    const char *why;
    enum rv_err err = output_check(session, output, &why);
    if (err != RV_OK) {
        rv_session_log(session, RV_LOG_ERROR, "step %.*s: the output cannot be sent: %s",
                       RV_STR_FMT(slot->attempt.step), why);
        /* Without memory it is not known to be wrong: the step may be tried again. */
        struct rv_session_error error = {.type = RV_STR("agent-output"),
                                         .title = rv_str_of(why),
                                         .transient = err == RV_ERR_MEMORY,
                                         .effect_unknown = true};
        rv_reply_error(session, place, &error);
        return;
    }
    rv_buf_lit(&slot->reply, ",\"output\":");
    rv_buf_add_str(&slot->reply, output);
    rv_buf_lit(&slot->reply, "}");
    rv_session_answer(session, place);
}

/* Which attempt, and by which error; what its texts say may be somebody's data. The server tries a
 * transient one again. */
static void failure_log(const struct rv_session *session, const struct rv_held_attempt *attempt,
                        const struct rv_session_error *error)
{
    enum { TYPE_BYTES_MAX = 100 };
    struct rv_str type = error->type;
    if (type.len > TYPE_BYTES_MAX)
        type.len = TYPE_BYTES_MAX;
    rv_session_log(session, error->transient ? RV_LOG_INFO : RV_LOG_WARNING,
                   "task %.*s, step %.*s, attempt %lld failed: %.*s, %s", RV_STR_FMT(attempt->task),
                   RV_STR_FMT(attempt->step), (long long)attempt->number, RV_STR_FMT(type),
                   error->transient ? "transient" : "permanent");
}

void rv_session_fail(struct rv_session *session, rv_place place, int64_t now,
                     const struct rv_session_error *error)
{
    if (!slot_take_back(session, place, now))
        return;
    failure_log(session, &session->slots[place].attempt, error);
    session->slots[place].replaced = false;
    session->slots[place].effect_unknown = error->effect_unknown;
    rv_reply_begin(&session->slots[place]);
    rv_reply_error(session, place, error);
}

void rv_session_drop(struct rv_session *session, rv_place place)
{
    rv_assert(place < session->slot_count);
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state == SLOT_OPEN || slot->state == SLOT_LATE);
    rv_session_release(session, place);
}

/* ---- calls out ---- */

static bool lane_ready(const struct rv_session *session, enum rv_lane lane, int64_t now)
{
    return !session->lanes[lane].busy && now >= session->lanes[lane].not_before;
}

static bool lane_send(struct rv_session *session, enum rv_lane lane, int64_t now,
                      int64_t timeout_ms, struct rv_session_call *ret_call)
{
    static const char *const paths[RV_LANE_COUNT] = {NULL, "/v1/replies", "/v1/leases"};
    struct lane *l = &session->lanes[lane];
    rv_assert(!l->busy);
    l->busy = true;
    l->sent_at = now;
    if (l->body.failed != RV_OK) {
        rv_session_lost(session, lane, now, rv_err_text(l->body.failed));
        return false;
    }
    session->counts.calls++;
    *ret_call = (struct rv_session_call){
        lane, lane == RV_LANE_POLL ? session->path_requests : rv_str_of(paths[lane]),
        rv_buf_str(&l->body), timeout_ms};
    return true;
}

/* A fetch is due if there is room for requests; `leaving` places are free when it is answered. */
static bool fetch_wanted(struct rv_session *session, uint32_t leaving)
{
    if (session->stopping || session->fetch.state == FETCH_UNDER_WAY)
        return false;
    if (session->fetch.state == FETCH_TO_SEND)
        return true;
    uint32_t held = session->slot_count - session->free.count - leaving;
    return held < session->options.max;
}

static void fetch_begin(struct rv_session *session, enum rv_lane lane, uint32_t leaving)
{
    struct fetch *fetch = &session->fetch;
    rv_assert(fetch->state != FETCH_UNDER_WAY);
    if (fetch->state == FETCH_NONE) {
        /* A repeated fetch keeps its id and its size, so that the server gives the same again. */
        rv_session_id(&session->prng, fetch->id);
        uint32_t held = session->slot_count - session->free.count - leaving;
        rv_assert(held < session->options.max);
        fetch->max = session->options.max - held;
        if (fetch->max > RV_POLL_REQUESTS_MAX)
            fetch->max = RV_POLL_REQUESTS_MAX;
    }
    fetch->state = FETCH_UNDER_WAY;
    fetch->lane = lane;
}

/* Moves the replies that go into this call to `sent`. */
static void replies_gather(struct rv_session *session, int64_t now)
{
    uint32_t kept = 0;
    size_t bytes = 0;
    rv_assert(session->sent.count == 0);
    rv_assert(session->items_max > 0);
    for (uint32_t i = 0; i < session->waiting.count; i++) {
        rv_place place = session->waiting.at[i];
        struct session_slot *slot = &session->slots[place];
        rv_assert(slot->state == SLOT_ANSWERED);
        rv_assert(now < rv_held_stop_at(&slot->attempt)); /* timers_run has just seen to it */
        bool fits = session->sent.count == 0 || bytes + slot->reply.len < RV_BODY_BYTES_MAX / 2;
        if (session->sent.count < session->items_max && fits) {
            bytes += slot->reply.len + 1;
            slot->state = SLOT_SENT;
            places_add(&session->sent, place);
        } else {
            session->waiting.at[kept++] = place;
        }
    }
    session->waiting.count = kept;
}

static bool call_replies(struct rv_session *session, int64_t now, struct rv_session_call *ret_call)
{
    if (session->waiting.count == 0 || !lane_ready(session, RV_LANE_REPLY, now))
        return false;
    replies_gather(session, now);
    rv_assert(session->sent.count > 0);
    bool with_next = !session->alone && fetch_wanted(session, session->sent.count);
    if (with_next)
        fetch_begin(session, RV_LANE_REPLY, session->sent.count);
    rv_wire_replies(session, &session->lanes[RV_LANE_REPLY].body, with_next);
    return lane_send(session, RV_LANE_REPLY, now, CALL_TIMEOUT_MS, ret_call);
}

/* When a poll of its own may leave: at once if nothing is in hand, else after a moment in which a
 * quick handler's reply may take the fetch along and save a call. */
static int64_t poll_at(const struct rv_session *session)
{
    int64_t at = session->lanes[RV_LANE_POLL].not_before;
    bool reply_soon = rv_session_open(session) > 0 || session->waiting.count > 0;
    return reply_soon && session->fetch_not_before > at ? session->fetch_not_before : at;
}

static bool call_poll(struct rv_session *session, int64_t now, struct rv_session_call *ret_call)
{
    if (session->lanes[RV_LANE_POLL].busy || !fetch_wanted(session, 0) || now < poll_at(session))
        return false;
    fetch_begin(session, RV_LANE_POLL, 0);
    rv_wire_poll(session, &session->lanes[RV_LANE_POLL].body);
    return lane_send(session, RV_LANE_POLL, now, session->options.wait_ms + CALL_TIMEOUT_MS,
                     ret_call);
}

static bool call_leases(struct rv_session *session, int64_t now, struct rv_session_call *ret_call)
{
    if (!session->leases_due || !lane_ready(session, RV_LANE_LEASE, now))
        return false;
    session->leases_due = false;
    session->leased.count = 0;
    for (uint32_t i = 0; i < session->slot_count && session->leased.count < RV_CALL_ITEMS_MAX; i++)
        if (slot_due(&session->slots[i], now))
            places_add(&session->leased, i);
    if (session->leased.count == 0)
        return false;
    for (uint32_t i = 0; i < session->leased.count; i++)
        session->slots[session->leased.at[i]].renewing = true;
    rv_wire_leases(session, &session->lanes[RV_LANE_LEASE].body);
    return lane_send(session, RV_LANE_LEASE, now, CALL_TIMEOUT_MS, ret_call);
}

bool rv_session_next_call(struct rv_session *session, int64_t now, struct rv_session_call *ret_call)
{
    timers_run(session, now);
    return call_replies(session, now, ret_call) || call_leases(session, now, ret_call) ||
           call_poll(session, now, ret_call);
}

int64_t rv_session_wake_at(const struct rv_session *session)
{
    int64_t at = session->timers_at;
    const struct lane *reply = &session->lanes[RV_LANE_REPLY];
    if (session->waiting.count > 0 && !reply->busy && reply->not_before < at)
        at = reply->not_before;
    bool room = session->slot_count - session->free.count < session->options.max;
    bool fetch = session->fetch.state == FETCH_TO_SEND ||
                 (session->fetch.state == FETCH_NONE && room);
    if (!session->stopping && fetch && !session->lanes[RV_LANE_POLL].busy && poll_at(session) < at)
        at = poll_at(session);
    const struct lane *lease = &session->lanes[RV_LANE_LEASE];
    if (session->leases_due && !lease->busy && lease->not_before < at)
        at = lease->not_before;
    return at;
}

/* ---- answers in ---- */

/* What was under way is to be sent again. */
static void lane_undo(struct rv_session *session, enum rv_lane lane)
{
    if (session->fetch.state == FETCH_UNDER_WAY && session->fetch.lane == lane)
        session->fetch.state = FETCH_TO_SEND;
    if (lane == RV_LANE_LEASE) {
        for (uint32_t i = 0; i < session->leased.count; i++)
            session->slots[session->leased.at[i]].renewing = false;
        session->leased.count = 0;
        session->leases_due = true;
    }
    if (lane != RV_LANE_REPLY || session->sent.count == 0)
        return;
    /* The oldest go first again. */
    struct places *waiting = &session->waiting;
    rv_assert(waiting->count + session->sent.count <= session->slot_count);
    memmove(waiting->at + session->sent.count, waiting->at, waiting->count * sizeof *waiting->at);
    memcpy(waiting->at, session->sent.at, session->sent.count * sizeof *waiting->at);
    waiting->count += session->sent.count;
    for (uint32_t i = 0; i < session->sent.count; i++) {
        rv_assert(session->slots[session->sent.at[i]].state == SLOT_SENT);
        session->slots[session->sent.at[i]].state = SLOT_ANSWERED;
    }
    session->sent.count = 0;
    session->timers_at = 0; /* nobody watched their deadlines while they were under way */
}

/* Counts the failure and says whether this one is worth a line: the 1st, 2nd, 4th, 8th, ... */
static bool lane_failed(struct rv_session *session, struct lane *lane)
{
    session->counts.calls_failed++;
    lane->failures++;
    return (lane->failures & (lane->failures - 1)) == 0;
}

/* The call is made again after a pause. True if the failure is worth a line. */
static bool lane_lose(struct rv_session *session, enum rv_lane lane, int64_t now)
{
    struct lane *l = &session->lanes[lane];
    rv_assert(l->busy);
    l->busy = false;
    lane_undo(session, lane);
    l->not_before = now + rv_jitter_ms(&session->prng, RETRY_BASE_MS, RETRY_CAP_MS, l->failures);
    return lane_failed(session, l);
}

void rv_session_lost(struct rv_session *session, enum rv_lane lane, int64_t now, const char *why)
{
    if (lane_lose(session, lane, now))
        rv_session_log_lost(session, why, session->lanes[lane].failures);
}

/* A 5xx, 408 or 429, and a refusal of replies that is not of Reeve: the same call may succeed
 * later. */
static void lane_postponed(struct rv_session *session, enum rv_lane lane, int64_t now, int status,
                           struct rv_str body)
{
    struct rv_str why;
    unsigned failures = session->lanes[lane].failures + 1;
    bool problem = rv_wire_problem(session, body, &why);
    if (!lane_lose(session, lane, now))
        return;
    if (problem)
        rv_session_log_postponed(session, status, why, failures);
    else
        rv_session_log_stranger(session, status, failures);
}

/* A 4xx: the same call would be refused again. Replies are taken apart until the offender stands
 * alone, and an error goes in its place; a fetch is tried again, slowly. */
static void lane_refused(struct rv_session *session, enum rv_lane lane, int64_t now, int status,
                         struct rv_str body)
{
    struct lane *l = &session->lanes[lane];
    uint32_t items = session->sent.count;
    bool fetched = session->fetch.state == FETCH_UNDER_WAY && session->fetch.lane == lane;
    struct rv_str why;
    rv_assert(l->busy);
    bool problem = rv_wire_problem(session, body, &why);
    bool ours = problem || status == 413; /* 413: of a proxy, too */
    bool credentials = status == 401 || status == 403;
    if (lane == RV_LANE_REPLY && !ours) {
        lane_postponed(session, lane, now, status, body);
        return;
    }
    l->busy = false;
    if (lane == RV_LANE_REPLY && !credentials && items == 1 && !fetched) {
        session->sent.count = 0;
        rv_reply_refused(session, session->sent.at[0], status, why);
        return;
    }
    lane_undo(session, lane);
    if (lane == RV_LANE_REPLY && !credentials) {
        session->alone = true;
        session->items_max = items > 1 ? items / 2 : 1;
        return;
    }
    l->not_before = now + REFUSED_BASE_MS / 2 +
                    rv_jitter_ms(&session->prng, REFUSED_BASE_MS, REFUSED_CAP_MS, l->failures);
    if (!lane_failed(session, l))
        return;
    if (ours)
        rv_session_log_refused(session, status, why);
    else
        rv_session_log_stranger(session, status, l->failures);
}

static bool lane_read(struct rv_session *session, enum rv_lane lane, int64_t now,
                      struct rv_str body)
{
    int64_t sent_at = session->lanes[lane].sent_at;
    bool fetched = session->fetch.state == FETCH_UNDER_WAY && session->fetch.lane == lane;
    switch (lane) {
    case RV_LANE_POLL:
        return rv_wire_read_poll(session, sent_at, now, body);
    case RV_LANE_REPLY:
        return rv_wire_read_replies(session, sent_at, now, body, fetched);
    case RV_LANE_LEASE:
        return rv_wire_read_leases(session, sent_at, now, body);
    }
    return false;
}

/* A whole answer was read: the lane is well, its fetch is done and to be confirmed. */
static void lane_done(struct rv_session *session, enum rv_lane lane, int64_t now)
{
    struct lane *l = &session->lanes[lane];
    if (l->failures > 0)
        rv_session_log(session, RV_LOG_INFO, "the server answers again");
    l->failures = 0;
    if (session->fetch.state == FETCH_UNDER_WAY && session->fetch.lane == lane) {
        memcpy(session->confirm, session->fetch.id, ID_BYTES);
        session->fetch.state = FETCH_NONE;
        session->fetch_not_before = now + LINGER_MS;
    }
    if (lane == RV_LANE_REPLY && session->alone) {
        session->items_max *= 2;
        session->alone = session->items_max < RV_CALL_ITEMS_MAX;
        if (!session->alone)
            session->items_max = RV_CALL_ITEMS_MAX;
    }
}

void rv_session_answered(struct rv_session *session, enum rv_lane lane, int64_t now, int status,
                         int64_t retry_after_ms, struct rv_str body)
{
    struct lane *l = &session->lanes[lane];
    rv_assert(l->busy);
    if (status >= 400 && status < 500 && status != 408 && status != 429) {
        lane_refused(session, lane, now, status, body);
        return;
    }
    if (status != 200) {
        lane_postponed(session, lane, now, status, body);
        int64_t pause_ms = rv_retry_after_ms(retry_after_ms, 1);
        if (pause_ms > 0 && now + pause_ms > l->not_before)
            l->not_before = now + pause_ms +
                            rv_jitter_ms(&session->prng, RETRY_BASE_MS, RETRY_CAP_MS, 1);
        return;
    }
    l->not_before = 0;
    if (!lane_read(session, lane, now, body)) {
        if (lane_lose(session, lane, now))
            rv_session_log_stranger(session, status, l->failures);
        return;
    }
    l->busy = false;
    lane_done(session, lane, now);
}

/* ---- the end ---- */

bool rv_session_stop(struct rv_session *session)
{
    session->stopping = true;
    struct lane *poll = &session->lanes[RV_LANE_POLL];
    bool cut = poll->busy;
    poll->busy = false;
    if (cut || session->fetch.state == FETCH_TO_SEND)
        session->fetch.state = FETCH_NONE;
    return cut;
}

bool rv_session_leave(struct rv_session *session, int64_t now, struct rv_session_call *ret_call)
{
    if (!session->stopping || !session->greeted || session->lanes[RV_LANE_POLL].busy)
        return false;
    session->fetch.max = 0;
    rv_session_id(&session->prng, session->fetch.id);
    rv_wire_leave(session, &session->lanes[RV_LANE_POLL].body);
    return lane_send(session, RV_LANE_POLL, now, LEAVE_TIMEOUT_MS, ret_call);
}

bool rv_session_ended(const struct rv_session *session)
{
    return session->stopping && session->free.count == session->slot_count;
}

bool rv_session_sending(const struct rv_session *session)
{
    return session->waiting.count > 0 || session->sent.count > 0;
}

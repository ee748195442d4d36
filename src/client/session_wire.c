/* The JSON of the agent protocol (docs/guide/agents.md): what the session says and hears. */
#include "client/session_priv.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/time.h"
#include "json/json.h"

enum {
    ANSWER_DEPTH_MAX = RV_JSON_DEPTH_MAX + 8, /* payloads lie a few levels deep in an answer */
    DRIFT_DIVISOR = 2000,     /* two clocks drift apart by 0.5 ms a second at most */
    UNDECIDED_PAUSE_MS = 100, /* before a reply without a result goes out again */
    PROBLEM_BYTES_MAX = 500
};

/* ---- writing ---- */

static void fetch_write(struct rv_session *session, struct rv_buf *body)
{
    rv_buf_lit(body, "\"instance\":");
    rv_json_write_string(body, session->instance);
    rv_buf_lit(body, ",\"boot\":\"");
    rv_buf_add_str(body, rv_str_of(session->boot));
    rv_buf_lit(body, "\",\"max\":");
    rv_buf_add_int(body, session->fetch.max);
    rv_buf_lit(body, ",\"poll\":\"");
    rv_buf_add_str(body, rv_str_of(session->fetch.id));
    rv_buf_lit(body, "\",\"confirm\":[");
    if (session->confirm[0] != '\0') {
        rv_buf_lit(body, "\"");
        rv_buf_add_str(body, rv_str_of(session->confirm));
        rv_buf_lit(body, "\"");
    }
    rv_buf_lit(body, "]");
}

void rv_wire_poll(struct rv_session *session, struct rv_buf *body)
{
    rv_buf_reset(body);
    rv_buf_lit(body, "{");
    fetch_write(session, body);
    rv_buf_lit(body, ",\"waitMs\":");
    /* The very first poll does not park: a short exchange shows how far the clocks are apart. */
    rv_buf_add_int(body, session->greeted ? session->options.wait_ms : 0);
    rv_buf_lit(body, "}");
}

void rv_wire_leave(struct rv_session *session, struct rv_buf *body)
{
    rv_buf_reset(body);
    rv_buf_lit(body, "{");
    fetch_write(session, body);
    rv_buf_lit(body, ",\"waitMs\":0,\"leaving\":true}");
}

void rv_wire_replies(struct rv_session *session, struct rv_buf *body, bool with_next)
{
    rv_assert(session->sent.count > 0);
    rv_assert(!with_next || session->fetch.state == FETCH_UNDER_WAY);
    rv_buf_reset(body);
    rv_buf_lit(body, "{\"replies\":[");
    for (uint32_t i = 0; i < session->sent.count; i++) {
        if (i > 0)
            rv_buf_lit(body, ",");
        rv_buf_add_str(body, rv_buf_str(&session->slots[session->sent.at[i]].reply));
    }
    rv_buf_lit(body, "]");
    if (with_next) {
        rv_buf_lit(body, ",\"next\":{\"agent\":");
        rv_json_write_string(body, session->agent);
        rv_buf_lit(body, ",");
        fetch_write(session, body);
        rv_buf_lit(body, "}");
    }
    rv_buf_lit(body, "}");
}

void rv_wire_leases(struct rv_session *session, struct rv_buf *body)
{
    rv_assert(session->leased.count > 0);
    rv_buf_reset(body);
    rv_buf_lit(body, "{\"leases\":[");
    for (uint32_t i = 0; i < session->leased.count; i++) {
        const struct rv_held_attempt *attempt = &session->slots[session->leased.at[i]].attempt;
        if (i > 0)
            rv_buf_lit(body, ",");
        rv_buf_lit(body, "{\"step\":");
        rv_json_write_string(body, attempt->step);
        rv_buf_lit(body, ",\"token\":");
        rv_json_write_string(body, attempt->token);
        rv_buf_lit(body, "}");
    }
    rv_buf_lit(body, "]}");
}

/* ---- reading ---- */

/* A member of an object; NULL if it is not there. */
#define MEMBER(object, name) rv_json_get((object), RV_STR(name))

static bool answer_parse(struct rv_session *session, struct rv_str text, struct rv_json *ret_value)
{
    rv_arena_reset(&session->scratch);
    return rv_json_parse(&session->scratch, text, ANSWER_DEPTH_MAX, ret_value, NULL) == RV_OK &&
           ret_value->type == RV_JSON_OBJECT;
}

/* An answer to a call that the server has carried out: it has that list. */
static bool result_parse(struct rv_session *session, struct rv_str text, struct rv_str list,
                         struct rv_json *ret_value)
{
    if (!answer_parse(session, text, ret_value))
        return false;
    const struct rv_json *items = rv_json_get(ret_value, list);
    bool good = items != NULL && items->type == RV_JSON_ARRAY;
    session->greeted = session->greeted || good;
    return good;
}

static int64_t member_int(const struct rv_json *object, struct rv_str name, int64_t otherwise)
{
    int64_t number = otherwise;
    const struct rv_json *value = rv_json_get(object, name);
    if (value == NULL || !rv_json_int(value, &number))
        return otherwise;
    return number;
}

static uint32_t list_count(const struct rv_json *value)
{
    return value != NULL && value->type == RV_JSON_ARRAY ? value->len : 0;
}

static uint64_t token_hash(struct rv_str token)
{
    /* Two of a few hundred tokens at once collide never; and 0 means "no token here". */
    uint64_t hash = rv_hash((struct rv_hash_key){0, 0}, token);
    return hash == 0 ? 1 : hash;
}

/* The slot that holds this token, or slot_count. */
static rv_place token_find(const struct rv_session *session, struct rv_str token)
{
    uint64_t hash = token_hash(token);
    for (rv_place i = 0; i < session->slot_count; i++)
        if (session->hashes[i] == hash && rv_str_eq(session->slots[i].attempt.token, token))
            return i;
    return session->slot_count;
}

static bool token_known(const struct rv_session *session, struct rv_str token)
{
    uint64_t hash = token_hash(token);
    for (uint32_t i = 0; i < TOKENS_REMEMBERED; i++)
        if (session->remembered[i] == hash)
            return true;
    return token_find(session, token) != session->slot_count;
}

/* The server's clock when it wrote the answer: milliseconds, or an instant as text. */
static bool server_time(const struct rv_json *answer, int64_t *ret_at)
{
    const struct rv_json *value = MEMBER(answer, "serverTime");
    if (value == NULL)
        return false;
    if (rv_json_int(value, ret_at))
        return true;
    return rv_instant_parse(rv_json_str(value), ret_at) == RV_OK;
}

/* The instant from which the answer's remaining times count, never later than the one at which the
 * server wrote it; see the essay in session.h. Learns from the exchange. */
static int64_t written_at(struct rv_session *session, int64_t sent_at, int64_t now,
                          const struct rv_json *answer)
{
    /* Both clocks show whole milliseconds, rounded down: either may be nearly 1 ms further. */
    int64_t earliest = sent_at - 1;
    int64_t server_at;
    if (!server_time(answer, &server_at))
        return earliest;
    int64_t ahead = earliest - server_at;
    int64_t known = session->ahead_ms - (now - session->ahead_at) / DRIFT_DIVISOR - 1;
    bool stepped = session->ahead_known && server_at + known > now;
    if (!session->ahead_known || stepped || ahead >= known) {
        session->ahead_known = true;
        session->ahead_ms = ahead;
        session->ahead_at = sent_at;
        return earliest;
    }
    return server_at + known;
}

static struct rv_str text_take(struct rv_buf *text, struct rv_str bytes, size_t *ret_offset)
{
    *ret_offset = text->len;
    rv_buf_add_str(text, bytes);
    rv_buf_add_char(text, '\0');
    return (struct rv_str){NULL, bytes.len};
}

/* What the agent passes to the remote service: the same at each attempt of the step. */
static struct rv_str key_of(const struct rv_json *request)
{
    return rv_json_str(MEMBER(request, "idempotencyKey"));
}

/* Copies a request's texts into the slot. Offsets first, pointers when the buffer has its place. */
static bool slot_fill(struct session_slot *slot, const struct rv_json *request)
{
    enum { TEXTS = 8 };
    struct rv_held_attempt *attempt = &slot->attempt;
    struct rv_str *const fields[TEXTS] = {
        &attempt->step, &attempt->task,        &attempt->reference,  &attempt->token,
        &attempt->key,  &attempt->traceparent, &attempt->tracestate, &attempt->complete_by};
    const struct rv_str given[TEXTS] = {rv_json_str(MEMBER(request, "step")),
                                        rv_json_str(MEMBER(request, "task")),
                                        rv_json_str(MEMBER(request, "reference")),
                                        rv_json_str(MEMBER(request, "token")),
                                        key_of(request),
                                        rv_json_str(MEMBER(request, "traceparent")),
                                        rv_json_str(MEMBER(request, "tracestate")),
                                        rv_json_str(MEMBER(request, "completeBy"))};
    size_t offsets[TEXTS];
    rv_buf_reset(&slot->text);
    for (int i = 0; i < TEXTS; i++)
        *fields[i] = text_take(&slot->text, given[i], &offsets[i]);
    size_t input_offset = slot->text.len;
    const struct rv_json *input = MEMBER(request, "input");
    if (input != NULL)
        rv_json_write(&slot->text, input);
    else
        rv_buf_lit(&slot->text, "null");
    size_t input_bytes = slot->text.len - input_offset;
    rv_buf_add_char(&slot->text, '\0');
    if (slot->text.failed != RV_OK)
        return false;
    for (int i = 0; i < TEXTS; i++)
        fields[i]->at = slot->text.at + offsets[i];
    attempt->input = (struct rv_str){slot->text.at + input_offset, input_bytes};
    return true;
}

/* When the lease is to be renewed, counted from `from`. */
static int64_t renew_next(const struct rv_session *session, const struct session_slot *slot,
                          int64_t from)
{
    int64_t ms = INT64_MAX;
    if (slot->attempt.lease_at < slot->attempt.complete_at)
        ms = slot->lease_ms / 3;
    if (session->options.renew_ms > 0 && session->options.renew_ms < ms)
        ms = session->options.renew_ms;
    return rv_time_add(from, ms);
}

static void slot_time(struct rv_session *session, struct session_slot *slot, int64_t base,
                      int64_t remaining_ms, int64_t lease_ms)
{
    struct rv_held_attempt *attempt = &slot->attempt;
    attempt->complete_at = rv_time_add(base, remaining_ms);
    attempt->lease_at = rv_time_add(base, lease_ms);
    slot->lease_ms = lease_ms;
    slot->renew_at = renew_next(session, slot, base);
    int64_t stop_at = rv_held_stop_at(attempt);
    int64_t due = slot->renew_at < stop_at ? slot->renew_at : stop_at;
    if (due < session->timers_at)
        session->timers_at = due;
}

/* Takes one request in hand. LIMIT: there is no place for it; MEMORY: it cannot be kept now. */
static enum rv_err request_take(struct rv_session *session, int64_t base, int64_t now,
                                const struct rv_json *request)
{
    struct rv_str token = rv_json_str(MEMBER(request, "token"));
    int64_t remaining_ms = member_int(request, RV_STR("remainingMs"), -1);
    if (token.len == 0 || rv_json_str(MEMBER(request, "step")).len == 0 || remaining_ms < 0) {
        rv_session_log(session, RV_LOG_ERROR,
                       "the server sent a request without step, token or remainingMs");
        return RV_OK;
    }
    if (token_known(session, token)) {
        session->counts.duplicates++;
        return RV_OK;
    }
    if (session->free.count == 0)
        return RV_ERR_LIMIT;
    rv_place place = session->free.at[session->free.count - 1];
    rv_assert(place < session->slot_count);
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state == SLOT_FREE);
    rv_assert(session->hashes[place] == 0);
    if (!slot_fill(slot, request)) {
        rv_session_log(
            session, RV_LOG_ERROR, "the server sent an invalid request for step %.*s: %s",
            RV_STR_FMT(rv_json_str(MEMBER(request, "step"))), rv_err_text(slot->text.failed));
        return slot->text.failed == RV_ERR_MEMORY ? RV_ERR_MEMORY : RV_OK;
    }
    session->free.count--;
    session->hashes[place] = token_hash(token);
    rv_assert(session->hashes[place] != 0);
    slot->state = SLOT_OPEN;
    slot->ended = false;
    slot->renewing = false;
    slot->attempt.number = member_int(request, RV_STR("attempt"), 0);
    slot->attempt.fence = member_int(request, RV_STR("fence"), 0);
    slot->attempt.insist = rv_json_get(request, RV_STR("insist")) != NULL;
    int64_t lease_ms = member_int(request, RV_STR("leaseMs"), remaining_ms);
    slot_time(session, slot, base, remaining_ms, lease_ms);
    /* Over as it comes: perhaps only as far as is known of the server's clock. */
    if (rv_held_stop_at(&slot->attempt) <= now)
        session->greeted = false;
    session->counts.requests++;
    rv_session_news(session, place, RV_NEWS_REQUEST);
    return RV_OK;
}

/* False without memory for one of them: the answer must not be confirmed, so that the same fetch
 * brings it once more. */
static bool requests_read(struct rv_session *session, int64_t base, int64_t now,
                          const struct rv_json *answer)
{
    const struct rv_json *requests = MEMBER(answer, "requests");
    uint32_t count = list_count(requests);
    uint64_t before = session->counts.requests;
    for (uint32_t i = 0; i < count; i++) {
        bool over = session->counts.requests - before >= session->fetch.max;
        const struct rv_json *request = &requests->u.items[i];
        enum rv_err err = over ? RV_ERR_LIMIT : request_take(session, base, now, request);
        if (err == RV_ERR_MEMORY)
            return false;
        if (err != RV_OK) {
            rv_session_log(session, RV_LOG_ERROR, "the server sent %u requests; the maximum was %u",
                           count, session->fetch.max);
            return true;
        }
    }
    return true;
}

static void cancel_read(struct rv_session *session, const struct rv_json *answer)
{
    const struct rv_json *cancel = MEMBER(answer, "cancel");
    for (uint32_t i = 0; i < list_count(cancel); i++) {
        rv_place place = token_find(session, rv_json_str(MEMBER(&cancel->u.items[i], "token")));
        if (place == session->slot_count || session->slots[place].state != SLOT_OPEN)
            continue;
        session->counts.cancelled++;
        rv_session_news(session, place, RV_NEWS_CANCEL);
    }
}

bool rv_wire_read_poll(struct rv_session *session, int64_t sent_at, int64_t now, struct rv_str text)
{
    struct rv_json answer;
    if (!result_parse(session, text, RV_STR("requests"), &answer))
        return false;
    int64_t base = written_at(session, sent_at, now, &answer);
    bool all = requests_read(session, base, now, &answer);
    cancel_read(session, &answer);
    return all;
}

/* The result for a reply: at the same position as it was sent, or wherever its step is named. Of a
 * reply that the server could not read it names no step: then the position counts. */
static const struct rv_json *result_find(const struct rv_json *results, uint32_t position,
                                         struct rv_str step)
{
    uint32_t count = list_count(results);
    if (position < count &&
        rv_str_eq(rv_json_str(MEMBER(&results->u.items[position], "step")), step))
        return &results->u.items[position];
    for (uint32_t i = 0; i < count; i++)
        if (rv_str_eq(rv_json_str(MEMBER(&results->u.items[i], "step")), step))
            return &results->u.items[i];
    if (position < count) {
        const struct rv_json *named = MEMBER(&results->u.items[position], "step");
        if (named != NULL && named->type == RV_JSON_NULL)
            return &results->u.items[position];
    }
    return NULL;
}

/* 200: taken. 409, 410: somebody else's, or too late; the attempt is over. A missing or 5xx result:
 * not decided, sent again. Anything else is refused for good. */
static void result_read(struct rv_session *session, rv_place place, int64_t now,
                        const struct rv_json *result)
{
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state == SLOT_SENT);
    rv_assert(session->waiting.count < session->slot_count);
    int64_t status = member_int(result, RV_STR("status"), 503);
    if (status >= 500) {
        slot->state = SLOT_ANSWERED;
        session->waiting.at[session->waiting.count++] = place;
        session->timers_at = 0;
        session->lanes[RV_LANE_REPLY].not_before = now + UNDECIDED_PAUSE_MS;
        return;
    }
    if (status != 200 && status != 409 && status != 410) {
        rv_reply_refused(session, place, (int)status, rv_json_str(MEMBER(result, "detail")));
        return;
    }
    session->counts.replied += status == 200;
    session->counts.refused += status != 200;
    rv_session_release(session, place);
}

bool rv_wire_read_replies(struct rv_session *session, int64_t sent_at, int64_t now,
                          struct rv_str text, bool fetched)
{
    struct rv_json answer;
    if (!result_parse(session, text, RV_STR("results"), &answer))
        return false;
    const struct rv_json *results = MEMBER(&answer, "results");
    uint32_t count = session->sent.count;
    session->sent.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        rv_place place = session->sent.at[i];
        result_read(session, place, now,
                    result_find(results, i, session->slots[place].attempt.step));
    }
    int64_t base = written_at(session, sent_at, now, &answer);
    bool all = !fetched || requests_read(session, base, now, &answer);
    cancel_read(session, &answer);
    return all;
}

static void lease_read(struct rv_session *session, rv_place place, int64_t sent_at, int64_t now,
                       const struct rv_json *result)
{
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state != SLOT_FREE);
    rv_assert(slot->state != SLOT_LATE);
    const struct rv_json *cancel = MEMBER(result, "cancel");
    /* Once it is answered only its time matters: its reply may have to be sent again. */
    bool open = slot->state == SLOT_OPEN;
    int64_t status = member_int(result, RV_STR("status"), 200);
    int64_t lease_ms = member_int(result, RV_STR("leaseMs"), -1);
    int64_t remaining_ms = member_int(result, RV_STR("remainingMs"), -1);
    if (open && cancel != NULL && cancel->type == RV_JSON_BOOL && cancel->truth) {
        session->counts.cancelled++;
        rv_session_news(session, place, RV_NEWS_CANCEL);
    }
    if (open && status >= 400 && status < 500) {
        /* The server knows this attempt no more: for us its time is over now. */
        slot->ended = now < rv_held_stop_at(&slot->attempt);
        slot->attempt.lease_at = sent_at;
        session->timers_at = 0;
        return;
    }
    if (lease_ms < 0 || remaining_ms < 0)
        return;
    /* A renewal is a short exchange: counting from its start is safe and near enough. Both ends are
     * lower bounds of the truth, so the later one holds. */
    struct rv_held_attempt before = slot->attempt;
    slot_time(session, slot, sent_at - 1, remaining_ms, lease_ms);
    if (before.complete_at > slot->attempt.complete_at)
        slot->attempt.complete_at = before.complete_at;
    if (before.lease_at > slot->attempt.lease_at)
        slot->attempt.lease_at = before.lease_at;
    if (open)
        rv_session_news(session, place, RV_NEWS_RENEWED);
}

bool rv_wire_read_leases(struct rv_session *session, int64_t sent_at, int64_t now,
                         struct rv_str text)
{
    struct rv_json answer;
    if (!result_parse(session, text, RV_STR("results"), &answer))
        return false;
    const struct rv_json *results = MEMBER(&answer, "results");
    uint32_t count = session->leased.count;
    session->leased.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        rv_place place = session->leased.at[i];
        struct session_slot *slot = &session->slots[place];
        if (!slot->renewing)
            continue; /* ended meanwhile; the place may hold another attempt by now */
        slot->renewing = false;
        slot->renew_at = renew_next(session, slot, now);
        if (slot->renew_at < session->timers_at)
            session->timers_at = slot->renew_at;
        if (slot->state != SLOT_FREE && slot->state != SLOT_LATE)
            lease_read(session, place, sent_at, now, result_find(results, i, slot->attempt.step));
    }
    return true;
}

bool rv_wire_problem(struct rv_session *session, struct rv_str text, struct rv_str *ret_why)
{
    struct rv_json problem;
    struct rv_str title = RV_STR_NONE;
    if (answer_parse(session, text, &problem)) {
        title = rv_json_str(MEMBER(&problem, "title"));
        struct rv_str detail = rv_json_str(MEMBER(&problem, "detail"));
        struct rv_str said = rv_arena_printf(&session->scratch, "%.*s%s%.*s", RV_STR_FMT(title),
                                             title.len && detail.len ? ": " : "",
                                             RV_STR_FMT(detail));
        if (said.len > 0)
            text = said;
    }
    if (text.len > PROBLEM_BYTES_MAX) {
        int len = PROBLEM_BYTES_MAX;
        while (len > 0 && ((unsigned char)text.at[len] & 0xc0) == 0x80) /* within a character */
            len--;
        text = rv_arena_printf(&session->scratch, "%.*s...", len, text.at);
    }
    *ret_why = text.at == NULL ? RV_STR("") : text;
    return title.len > 0;
}

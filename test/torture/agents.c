/* The agent's side: session and runtime against a server of a few lines. Every step must be done in
 * the end, however often the agent has no memory; what it could not read or say it must ask or be
 * asked for again. */
#include "agent/runtime.h"
#include "client/submit.h"
#include "faults.h"
#include "json/json.h"
#include "torture.h"

#include <stdio.h>
#include <string.h>

enum {
    STEPS = 6,
    COMPLETE_BY_MS = 10000,
    ROUNDS_MAX = 3000,
    HEALS_AT_MS = 3000,
    ANSWER_BYTES = 65536,
    PARK_MS = 50
};

/* ---- a server ---- */

struct step {
    int attempts;
    bool done;
    bool out;
    int64_t until;
    char poll[32]; /* that took it */
};

struct server {
    struct torture *t;
    struct step steps[STEPS];
    int fails; /* the first so many attempts of each step fail as transient */
    int64_t now;
    struct rv_arena arena; /* of the call under way */
    struct rv_session_call parked;
    int64_t parked_until; /* 0: no poll is */
};

static struct rv_json parsed(struct server *server, struct rv_str body)
{
    struct rv_json value;
    rv_arena_reset(&server->arena);
    struct rv_str kept = rv_arena_str(&server->arena, body);
    enum rv_err err = rv_json_parse(&server->arena, kept, 64, &value, NULL);
    EXPECT(err == RV_OK, "the agent sent no JSON: %.*s", RV_STR_FMT(body));
    return value;
}

static int step_named(const struct rv_json *item)
{
    struct rv_str name = rv_json_str(rv_json_get(item, RV_STR("step")));
    EXPECT(name.len == 3, "no step is named");
    return name.at[2] - '0';
}

/* Attempts that were handed out and not heard of in time are handed out anew. */
static void requests_write(struct server *server, const struct rv_json *poll, struct rv_buf *out)
{
    struct rv_str id = rv_json_str(rv_json_get(poll, RV_STR("poll")));
    int64_t max = 0;
    EXPECT(rv_json_int(rv_json_get(poll, RV_STR("max")), &max), "no max");
    rv_buf_printf(out, "\"serverTime\":%lld,\"requests\":[", (long long)server->now);
    int count = 0;
    for (int i = 0; i < STEPS && count < max; i++) {
        struct step *step = &server->steps[i];
        if (step->out && step->until <= server->now)
            step->out = false;
        bool repeat = step->out && rv_str_is(id, step->poll);
        if (step->done || (step->out && !repeat))
            continue;
        if (!repeat) {
            step->attempts++;
            step->out = true;
            step->until = server->now + COMPLETE_BY_MS;
            snprintf(step->poll, sizeof step->poll, "%.*s", RV_STR_FMT(id));
        }
        rv_buf_printf(
            out,
            "%s{\"step\":\"S-%d\",\"task\":\"T\",\"reference\":\"/do/0/a\",\"attempt\":%d,"
            "\"token\":\"%d-%d\",\"fence\":1,\"idempotencyKey\":\"K\","
            "\"remainingMs\":%lld,\"leaseMs\":2000,\"input\":{\"n\":%d}}",
            count++ > 0 ? "," : "", i, step->attempts, i, step->attempts,
            (long long)(step->until - server->now), i);
    }
    rv_buf_lit(out, "],\"cancel\":[]");
}

static bool token_is_newest(const struct server *server, const struct rv_json *item, int i)
{
    char token[32];
    snprintf(token, sizeof token, "%d-%d", i, server->steps[i].attempts);
    return rv_str_is(rv_json_str(rv_json_get(item, RV_STR("token"))), token);
}

static void replies_take(struct server *server, const struct rv_json *body, struct rv_buf *out)
{
    const struct rv_json *items = rv_json_get(body, RV_STR("replies"));
    rv_buf_lit(out, "\"results\":[");
    for (uint32_t n = 0; n < items->len; n++) {
        const struct rv_json *item = &items->u.items[n];
        const struct rv_json *error = rv_json_get(item, RV_STR("error"));
        int i = step_named(item);
        struct step *step = &server->steps[i];
        bool good = token_is_newest(server, item, i) && server->now < step->until;
        EXPECT(!step->done || token_is_newest(server, item, i), "a reply of an old attempt");
        if (error != NULL)
            EXPECT(rv_json_get(error, RV_STR("transient"))->truth, "the agent gave step %d up", i);
        if (good) {
            step->out = false;
            step->done = step->done || error == NULL;
        }
        rv_buf_printf(out, "%s{\"step\":\"S-%d\",\"status\":%d}", n > 0 ? "," : "", i,
                      good ? 200 : 410);
    }
    rv_buf_lit(out, "]");
}

static void leases_take(const struct server *server, const struct rv_json *body, struct rv_buf *out)
{
    const struct rv_json *items = rv_json_get(body, RV_STR("leases"));
    rv_buf_lit(out, "\"results\":[");
    for (uint32_t n = 0; n < items->len; n++) {
        int i = step_named(&items->u.items[n]);
        rv_buf_printf(out, "%s{\"step\":\"S-%d\",\"leaseMs\":2000,\"remainingMs\":%lld}",
                      n > 0 ? "," : "", i, (long long)(server->steps[i].until - server->now));
    }
    rv_buf_lit(out, "]");
}

static void call_answer(struct server *server, struct rv_session *session,
                        const struct rv_session_call *call)
{
    struct rv_json body = parsed(server, call->body);
    const struct rv_json *next = rv_json_get(&body, RV_STR("next"));
    struct rv_buf out;
    rv_buf_init(&out, ANSWER_BYTES);
    rv_buf_lit(&out, "{");
    if (call->lane == RV_LANE_POLL)
        requests_write(server, &body, &out);
    if (call->lane == RV_LANE_REPLY)
        replies_take(server, &body, &out);
    if (call->lane == RV_LANE_LEASE)
        leases_take(server, &body, &out);
    if (next != NULL) {
        rv_buf_lit(&out, ",");
        requests_write(server, next, &out);
    }
    rv_buf_lit(&out, "}");
    EXPECT(out.failed == RV_OK, "the answer is too long");
    IN_PRODUCT(rv_session_answered(session, call->lane, server->now, 200, -1, rv_buf_str(&out)));
    rv_buf_done(&out);
}

static bool all_done(const struct server *server)
{
    for (int i = 0; i < STEPS; i++)
        if (!server->steps[i].done)
            return false;
    return true;
}

/* A poll is answered a moment later: that is when the session may do other things. */
static void calls_run(struct server *server, struct rv_session *session)
{
    struct rv_session_call call;
    bool more;
    if (server->parked_until != 0 && server->now >= server->parked_until) {
        server->parked_until = 0;
        call_answer(server, session, &server->parked);
    }
    for (;;) {
        IN_PRODUCT(more = rv_session_next_call(session, server->now, &call));
        if (!more)
            return;
        if (call.lane == RV_LANE_POLL) {
            server->parked = call;
            server->parked_until = server->now + PARK_MS;
        } else {
            call_answer(server, session, &call);
        }
    }
}

static void time_goes(struct server *server, int64_t wake_at)
{
    int64_t step = wake_at > server->now ? wake_at - server->now : 1;
    server->now += step < 100 ? step : 100;
    if (server->now >= HEALS_AT_MS)
        faults_heal();
}

static void says_end(const struct server *server)
{
    for (int i = 0; i < STEPS; i++)
        torture_says(server->t, "%d: %s\n", i, server->steps[i].done ? "done" : "not done");
}

/* ---- the session ---- */

static void log_nothing(void *user, enum rv_log_level level, const char *message)
{
    (void)user;
    (void)level;
    (void)message;
}

static const struct rv_session_options session_options = {.agent = {"inven tory", 10},
                                                          .instance = {"a7", 2},
                                                          .seed = 7,
                                                          .max = 4,
                                                          .wait_ms = 1000,
                                                          .log = log_nothing};

static void news_run(struct server *server, struct rv_session *session)
{
    rv_place place;
    unsigned news;
    bool more;
    for (;;) {
        IN_PRODUCT(more = rv_session_next_news(session, server->now, &place, &news));
        if (!more)
            return;
        if (news & RV_NEWS_EXPIRED)
            IN_PRODUCT(rv_session_drop(session, place));
        else if (news & RV_NEWS_REQUEST)
            IN_PRODUCT(rv_session_done(session, place, server->now, RV_STR("{\"ok\":[1,2,3]}")));
    }
}

static void run_session(struct torture *t)
{
    struct server server = {.t = t};
    struct rv_session *session;
    rv_arena_init(&server.arena, 0);
    TRY(t, (session = rv_session_new(&session_options)) != NULL ? RV_OK : RV_ERR_MEMORY);
    for (int round = 0; !all_done(&server); round++) {
        EXPECT(round < ROUNDS_MAX, "not all steps are done");
        calls_run(&server, session);
        news_run(&server, session);
        calls_run(&server, session);
        time_goes(&server, rv_session_wake_at(session));
    }
    says_end(&server);
    IN_PRODUCT(rv_session_free(session));
    rv_arena_done(&server.arena);
}

/* ---- the runtime: the first try of each step fails, and leases are renewed meanwhile ---- */

static void event_do(struct server *server, struct rv_runtime *runtime,
                     const struct rv_runtime_event *event)
{
    static const struct rv_runtime_failure busy = {.type = {"busy", 4}, .transient = true};
    if (event->kind != RV_RUNTIME_START)
        return;
    if (event->try_number == 1)
        IN_PRODUCT(rv_runtime_failed(runtime, event->place, server->now, &busy));
    else
        IN_PRODUCT(rv_runtime_done(runtime, event->place, server->now, RV_STR("{\"ok\":true}")));
}

static void run_runtime(struct torture *t)
{
    struct server server = {.t = t};
    struct rv_runtime *runtime;
    struct rv_runtime_event event;
    struct rv_runtime_options options = {.session = session_options,
                                         .tries_max = 4,
                                         .retry_base_ms = 1500,
                                         .retry_cap_ms = 3000,
                                         .circuit_failures = 50,
                                         .circuit_open_ms = 1000};
    rv_arena_init(&server.arena, 0);
    TRY(t, (runtime = rv_runtime_new(&options)) != NULL ? RV_OK : RV_ERR_MEMORY);
    for (int round = 0; !all_done(&server); round++) {
        EXPECT(round < ROUNDS_MAX, "not all steps are done");
        bool more = true;
        calls_run(&server, rv_runtime_session(runtime));
        while (more) {
            IN_PRODUCT(more = rv_runtime_next_event(runtime, server.now, &event));
            if (more)
                event_do(&server, runtime, &event);
        }
        calls_run(&server, rv_runtime_session(runtime));
        time_goes(&server, rv_runtime_wake_at(runtime));
    }
    says_end(&server);
    IN_PRODUCT(rv_runtime_free(runtime));
    rv_arena_done(&server.arena);
}

/* ---- the application's messages ---- */

static enum rv_err submission_write(struct rv_buf *buf, const struct rv_submit_item *item)
{
    const char *why = NULL;
    rv_buf_init(buf, ANSWER_BYTES);
    enum rv_err err = rv_submit_write(buf, item, &why);
    if (err == RV_OK)
        err = buf->failed;
    if (err != RV_OK)
        rv_buf_done(buf);
    return err;
}

/* What was refused before is forgotten. */
#define AFRESH(call) (rv_arena_reset(&arena), (call))

static void run_submit(struct torture *t)
{
    static const struct rv_submit_item item = {.workflow = {"shop/order", 10},
                                               .input = {"{\"a\":[1,2,{\"b\":null}]}", 22},
                                               .key = {"k", 1},
                                               .correlation_id = {"c", 1},
                                               .priority = 7};
    struct rv_arena arena;
    struct rv_buf buf;
    struct rv_submit_receipt receipt, receipts[2];
    struct rv_submit_progress progress;
    rv_arena_init(&arena, 0);
    TRY(t, submission_write(&buf, &item));
    torture_says(t, "%.*s\n", RV_STR_FMT(rv_buf_str(&buf)));
    IN_PRODUCT(rv_buf_done(&buf));
    struct rv_str accepted = RV_STR("{\"task\":\"06DWX3T9H2K4Q\",\"state\":\"pending\"}");
    TRY(t, AFRESH(rv_submit_read(&arena, 201, accepted, &receipt)));
    torture_says(t, "%d %.*s %.*s\n", receipt.status, RV_STR_FMT(receipt.task),
                 RV_STR_FMT(receipt.state));
    struct rv_str refused = RV_STR("{\"title\":\"taken\",\"detail\":\"use another\"}");
    TRY(t, AFRESH(rv_submit_read(&arena, 409, refused, &receipt)));
    torture_says(t, "%d %.*s\n", receipt.status, RV_STR_FMT(receipt.why));
    struct rv_str batch = RV_STR("{\"results\":[{\"status\":201,\"task\":\"A\",\"state\":\"x\"},"
                                 "{\"status\":422,\"title\":\"no\",\"detail\":\"d\"}]}");
    TRY(t, AFRESH(rv_submit_read_batch(&arena, batch, 2, receipts)));
    for (int i = 0; i < 2; i++)
        torture_says(t, "%d %.*s %.*s\n", receipts[i].status, RV_STR_FMT(receipts[i].task),
                     RV_STR_FMT(receipts[i].why));
    struct rv_str task = RV_STR("{\"state\":\"processed\",\"revision\":3}");
    TRY(t, AFRESH(rv_submit_read_task(&arena, task, &progress)));
    torture_says(t, "%.*s %lld\n", RV_STR_FMT(progress.state), (long long)progress.revision);
    IN_PRODUCT(rv_arena_done(&arena));
}

const struct scenario scenarios_agents[] = {
    {"agent_session", run_session, NULL, HARMS_OF_HEAP, 0, false},
    {"agent_runtime", run_runtime, NULL, HARMS_OF_HEAP, 0, false},
    {"submit_messages", run_submit, NULL, HARMS_OF_HEAP, 0, false},
    {.name = NULL},
};

/* The API without its sockets: requests become calls, calls become answers. A request that is read
 * without memory is refused with 503, never read by half; an answer is whole or said to be none. */
#include "api/access.h"
#include "api/route.h"
#include "base/limits.h"
#include "faults.h"
#include "torture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sent {
    const char *method;
    const char *target;
    const char *body;
};

/* ---- what a call says ---- */

static void says_str(struct torture *t, const char *name, struct rv_str text)
{
    if (text.at != NULL)
        torture_says(t, " %s=%.*s", name, RV_STR_FMT(text));
}

static void says_submit(struct torture *t, const struct rv_call_submit *submit)
{
    torture_says(t, " wait=%lld", (long long)submit->wait_ms);
    for (size_t i = 0; i < submit->count; i++) {
        const struct rv_submission *item = &submit->items[i];
        torture_says(t, " [%d p%d", (int)item->err, item->priority);
        says_str(t, "space", item->space);
        says_str(t, "name", item->name);
        says_str(t, "version", item->version);
        says_str(t, "input", item->input);
        says_str(t, "key", item->key);
        says_str(t, "hash", item->body_hash);
        says_str(t, "correlation", item->correlation);
        says_str(t, "traceparent", item->traceparent);
        says_str(t, "tracestate", item->tracestate);
        torture_says(t, "]");
    }
}

static void says_poll(struct torture *t, const struct rv_poll *poll)
{
    says_str(t, "agent", poll->agent);
    says_str(t, "instance", poll->instance);
    says_str(t, "boot", poll->boot);
    says_str(t, "poll", poll->poll);
    torture_says(t, " max=%u wait=%lld confirms=%d", poll->max, (long long)poll->wait_ms,
                 poll->confirms);
    for (size_t i = 0; i < poll->confirm_count; i++)
        says_str(t, "confirm", poll->confirm[i]);
}

static void says_replies(struct torture *t, const struct rv_call_replies *replies)
{
    for (size_t i = 0; i < replies->count; i++) {
        const struct rv_reply_item *item = &replies->items[i];
        torture_says(t, " [%lld-%u %llx refused=%d failed=%d", (long long)item->step.task.value,
                     item->step.number, (unsigned long long)item->token, item->refused,
                     item->failed);
        says_str(t, "output", item->reply.output);
        says_str(t, "error", item->reply.error);
        says_str(t, "target", item->reply.target);
        torture_says(t, " %d %d %lld]", item->reply.transient, (int)item->reply.effect,
                     (long long)item->reply.retry_after_ms);
    }
    if (replies->has_next)
        says_poll(t, &replies->next);
}

static void says_list(struct torture *t, const struct rv_call_list *list)
{
    torture_says(t, " task=%lld after=%u/%u before=%lld skip=%zu open=%d limit=%zu state=%d/%d",
                 (long long)list->task.value, list->after_step, list->after,
                 (long long)list->before, list->skip, list->open_only, list->limit,
                 list->filter.by_state, (int)list->filter.state);
    says_str(t, "workflow", list->filter.workflow);
}

static void says_limit(struct torture *t, const struct rv_agent_limit *limit)
{
    torture_says(t, " %u %u %d", limit->concurrent, limit->per_second, limit->paused);
    says_str(t, "agent", limit->agent);
    says_str(t, "by", limit->by);
}

/* An id and a key that are made are random. */
static void says_key(struct torture *t, const struct rv_call *call)
{
    const struct rv_api_key *key = &call->u.key.row;
    if (call->kind == RV_CALL_KEYS) {
        says_str(t, "after", call->u.keys.after);
        return;
    }
    if (call->kind == RV_CALL_KEY_REVOKE)
        says_str(t, "id", key->id);
    else
        says_str(t, "role", rv_str_of(rv_role_text(key->role)));
    says_str(t, "agent", key->agent);
    says_str(t, "name", key->name);
}

static void says_operate(struct torture *t, const struct rv_call_operate *operate)
{
    torture_says(t, " %d %lld %d %u %u", (int)operate->verb, (long long)operate->task.value,
                 operate->abandon, operate->step, operate->late_seen);
    says_str(t, "by", operate->by);
    says_str(t, "reason", operate->reason);
    says_str(t, "input", operate->input);
    says_str(t, "output", operate->output);
}

static void says_bulk(struct torture *t, const struct rv_call *call)
{
    if (call->kind == RV_CALL_SELECT) {
        says_list(t, &call->u.select->list);
        says_str(t, "filter", call->u.select->row.filter);
        says_str(t, "by", call->u.select->row.picked.by);
    } else if (call->kind == RV_CALL_BULK) {
        torture_says(t, " %lld %d %d rate=%u", (long long)call->u.bulk.selection.value,
                     (int)call->u.bulk.ask, (int)call->u.bulk.verb, call->u.bulk.rate);
        says_str(t, "by", call->u.bulk.word.by);
    } else if (call->kind == RV_CALL_SELECTIONS) {
        torture_says(t, " %lld after=%lld", (long long)call->u.selections.only.value,
                     (long long)call->u.selections.after.value);
    } else {
        torture_says(t, " %lld after=%lld", (long long)call->u.outcomes.selection.value,
                     (long long)call->u.outcomes.after.value);
    }
}

static void says_workflow(struct torture *t, const struct rv_workflow_row *row)
{
    says_str(t, "space", row->space);
    says_str(t, "name", row->name);
    says_str(t, "version", row->version);
    says_str(t, "hash", row->hash);
    torture_says(t, " %zu bytes", row->source.len);
}

static void says_messages(struct torture *t, const struct rv_call_messages *messages)
{
    torture_says(t, " %lld after=%u wait=%lld limit=%zu", (long long)messages->task.value,
                 messages->after, (long long)messages->wait_ms, messages->limit);
}

static void says_leases(struct torture *t, const struct rv_call_leases *leases)
{
    for (size_t i = 0; i < leases->count; i++)
        torture_says(t, " %u/%llx", leases->items[i].step.number,
                     (unsigned long long)leases->items[i].token);
}

static void says_ack(struct torture *t, const struct rv_call_ack *ack)
{
    torture_says(t, " %lld", (long long)ack->alert);
    says_str(t, "by", ack->by);
}

static void says_raise(struct torture *t, const struct rv_call_raise *raise)
{
    says_str(t, "source", raise->source);
    says_str(t, "message", raise->message);
}

static void says_show(struct torture *t, const struct rv_call_show *show)
{
    torture_says(t, " %lld wait=%lld", (long long)show->task.value, (long long)show->wait_ms);
}

static void says_call(struct torture *t, const struct rv_call *call)
{
    switch (call->kind) {
    case RV_CALL_PUBLISH:
        says_workflow(t, &call->u.publish.row);
        return;
    case RV_CALL_SUBMIT:
        says_submit(t, &call->u.submit);
        return;
    case RV_CALL_POLL:
        says_poll(t, &call->u.poll);
        return;
    case RV_CALL_REPLIES:
        says_replies(t, &call->u.replies);
        return;
    case RV_CALL_LEASES:
        says_leases(t, &call->u.leases);
        return;
    case RV_CALL_OPERATE:
        says_operate(t, &call->u.operate);
        return;
    case RV_CALL_ACK:
        says_ack(t, &call->u.ack);
        return;
    case RV_CALL_RAISE:
        says_raise(t, &call->u.raise);
        return;
    case RV_CALL_MESSAGES:
        says_messages(t, &call->u.messages);
        return;
    case RV_CALL_RETRY:
        torture_says(t, " %lld", (long long)call->u.retry.alert);
        return;
    case RV_CALL_LIMIT:
        says_limit(t, &call->u.limit.row);
        return;
    case RV_CALL_SHOW:
        says_show(t, &call->u.show);
        return;
    case RV_CALL_STEPS:
    case RV_CALL_ATTEMPTS:
    case RV_CALL_LATE:
    case RV_CALL_HISTORY:
    case RV_CALL_TASKS:
    case RV_CALL_ALERTS:
    case RV_CALL_WORKFLOWS:
        says_list(t, &call->u.list);
        return;
    case RV_CALL_KEYS:
    case RV_CALL_KEY_ADD:
    case RV_CALL_KEY_REVOKE:
        says_key(t, call);
        return;
    case RV_CALL_SELECT:
    case RV_CALL_BULK:
    case RV_CALL_SELECTIONS:
    case RV_CALL_OUTCOMES:
        says_bulk(t, call);
        return;
    case RV_CALL_EXPLAIN:
        torture_says(t, " %lld", (long long)call->u.explain.task.value);
        return;
    case RV_CALL_METRICS:
    case RV_CALL_STATUS:
    case RV_CALL_AGENTS:
    case RV_CALL_BACKUP:
    case RV_CALL_DELIVERED:
    case RV_CALL_GONE:
    case RV_CALL_HINT:
    case RV_CALL_UNSENT:
        return;
    }
}

/* ---- requests ---- */

/* 0: it became a call. */
static int request_parse(struct rv_parser *parser, const struct sent *sent, struct rv_call *call)
{
    struct rv_request_line line;
    rv_arena_reset(&call->arena);
    rv_parser_begin(parser, &call->arena);
    struct rv_arena arena = call->arena;
    *call = (struct rv_call){.seed = 7, .arena = arena};
    if (!rv_request_read(parser, rv_str_of(sent->target), &line))
        return parser->problem.status;
    line.body = sent->body ? rv_str_of(sent->body) : RV_STR("");
    const struct rv_route *route = rv_route_find(parser, rv_str_of(sent->method), &line);
    if (route == NULL)
        return parser->problem.status;
    call->kind = route->kind;
    bool good = route->parse(parser, &line, call);
    return good ? 0 : parser->problem.status;
}

/* As the server does it (api/http.c). */
static int request_read(struct rv_parser *parser, const struct sent *sent, struct rv_call *call)
{
    int status = request_parse(parser, sent, call);
    return rv_parser_starved(parser) ? parser->problem.status : status;
}

/* An item of many may be refused for want of memory while the others are taken. */
static bool wants_memory(const struct rv_call *call)
{
    for (size_t i = 0; call->kind == RV_CALL_SUBMIT && i < call->u.submit.count; i++)
        if (call->u.submit.items[i].err == RV_ERR_MEMORY)
            return true;
    for (size_t i = 0; call->kind == RV_CALL_REPLIES && i < call->u.replies.count; i++)
        if (call->u.replies.items[i].refused == 503)
            return true;
    return false;
}

static void request_run(struct torture *t, const struct sent *sent)
{
    struct rv_parser parser;
    struct rv_call call = {.seed = 7};
    int status;
    rv_parser_init(&parser);
    parser.arena = NULL;
    rv_arena_init(&call.arena, 0);
    for (int tries = 0;; tries++) {
        IN_PRODUCT(status = request_read(&parser, sent, &call));
        if (status != 503 && !(status == 0 && wants_memory(&call)))
            break;
        torture_again(t, RV_ERR_MEMORY, tries, sent->target, __FILE__, __LINE__);
    }
    torture_says(t, "%s %s: %d", sent->method, sent->target, status);
    if (status == 0)
        says_call(t, &call);
    torture_says(t, "\n");
    IN_PRODUCT(rv_parser_done(&parser));
    IN_PRODUCT(rv_arena_done(&call.arena));
}

static void requests_run(struct torture *t, const struct sent *sent, size_t count)
{
    for (size_t i = 0; i < count; i++)
        request_run(t, &sent[i]);
}

#define RUN_ALL(t, array) requests_run((t), (array), sizeof(array) / sizeof(array)[0])

#define TASK "06DWX3T9H2K4Q"
#define POLL                                                                                       \
    "\"instance\":\"a7\",\"boot\":\"b\",\"max\":8,\"poll\":\"p1\",\"confirm\":[\"p0\",\"px\"]"

static void run_questions(struct torture *t)
{
    static const struct sent sent[] = {
        {"GET", "/v1/tasks?state=error&workflow=shop/order:1.0.0&limit=10&after=" TASK, NULL},
        {"GET", "/v1/tasks/" TASK "?wait=PT20S", NULL},
        {"GET", "/v1/tasks/" TASK "/steps?after=3&limit=5", NULL},
        {"GET", "/v1/tasks/" TASK "/attempts", NULL},
        {"GET", "/v1/tasks/" TASK "/late-replies", NULL},
        {"GET", "/v1/tasks/" TASK "/history?after=3&limit=5", NULL},
        {"GET", "/v1/tasks/" TASK "/messages?after=3&limit=5&wait=PT1S", NULL},
        {"GET", "/v1/tasks/" TASK "/stream?after=3", NULL},
        {"GET", "/v1/alerts?limit=7", NULL},
        {"GET", "/v1/workflows", NULL},
        {"GET", "/v1/workflows/shop/order", NULL},
        {"GET", "/v1/agents", NULL},
        {"GET", "/v1/tasks/%30%36DWX3T9H2K4Q", NULL},
    };
    RUN_ALL(t, sent);
}

static void run_submissions(struct torture *t)
{
    static const struct sent sent[] = {
        {"POST", "/v1/tasks",
         "{\"workflow\":\"shop/order:1.0.0\",\"input\":{\"sku\":\"a\\u00e9\",\"n\":1.50},"
         "\"key\":\"order-17\",\"priority\":7,\"correlationId\":\"c\","
         "\"traceparent\":\"p\",\"tracestate\":\"s\"}"},
        {"POST", "/v1/tasks",
         "{\"workflow\":\"shop/order\",\"replyTo\":{\"url\":\"https://a/b\",\"stream\":true}}"},
        {"POST", "/v1/tasks", "{\"workflow\":\"shop/order\",\"replyTo\":{\"secret\":\"x\"}}"},
        {"POST", "/v1/tasks", "{\"workflow\":\"shop/order\",\"replyTo\":{\"ulr\":\"x\"}}"},
        {"POST", "/v1/tasks?wait=PT5S", "{\"workflow\":\"shop/order\"}"},
        {"POST", "/v1/tasks",
         "{\"tasks\":[{\"workflow\":\"shop/order\",\"key\":\"a\",\"input\":[1,2,{\"b\":null}]},"
         "{\"workflow\":\"noslash\"},{\"workflow\":\"shop/order\",\"prioriti\":1},"
         "{\"workflow\":\"shop/x\",\"input\":\"text\",\"key\":\"b\"}]}"},
    };
    RUN_ALL(t, sent);
}

static void run_agents(struct torture *t)
{
    static const struct sent sent[] = {
        {"POST", "/v1/agents/inven%20tory/requests", "{" POLL ",\"waitMs\":20000}"},
        {"POST", "/v1/replies",
         "{\"replies\":[{\"step\":\"" TASK "-1\",\"token\":\"00000000000000ff\","
         "\"output\":{\"a\":[1,2.0]}},{\"step\":\"" TASK "-2\",\"token\":\"00000000000000fe\","
         "\"error\":{\"type\":\"circuit-open\",\"status\":503,\"title\":\"T\",\"transient\":true,"
         "\"effect\":\"unknown\",\"retryAfterMs\":500,\"target\":\"north\"}},"
         "{\"step\":\"nonsense\",\"token\":\"1\",\"output\":1}],"
         "\"next\":{\"agent\":\"inventory\"," POLL "}}"},
        {"POST", "/v1/leases",
         "{\"leases\":[{\"step\":\"" TASK "-1\",\"token\":\"00000000000000ff\"}]}"},
    };
    RUN_ALL(t, sent);
}

static void run_orders(struct torture *t)
{
    static const struct sent sent[] = {
        {"POST", "/v1/tasks/" TASK "/cancel",
         "{\"by\":\"me\",\"reason\":\"because\",\"abandon\":true}"},
        {"POST", "/v1/tasks/" TASK "/undo", "{\"by\":\"me\"}"},
        {"POST", "/v1/tasks/" TASK "/resubmit", ""},
        {"POST", "/v1/alerts/" TASK "/retry", ""},
        {"POST", "/v1/tasks/" TASK "/resubmit",
         "{\"input\":{\"a\":[1]},\"step\":2,\"lateSeen\":1,\"undoFirst\":true}"},
        {"POST", "/v1/tasks/" TASK "/settle",
         "{\"step\":2,\"output\":{\"a\":[1]},\"finding\":\"done\"}"},
        {"POST", "/v1/tasks/" TASK "/suspend", "{\"by\":\"me\"}"},
        {"POST", "/v1/tasks/" TASK "/resume", "{\"by\":\"me\"}"},
        {"POST", "/v1/alerts/" TASK "/ack", "{\"by\":\"me\"}"},
        {"POST", "/v1/agents/inventory/limit", "{\"concurrent\":4,\"perSecond\":0,\"by\":\"me\"}"},
        {"POST", "/v1/agents/inventory/limit", "{}"},
        {"POST", "/v1/agents/inventory/pause", "{\"by\":\"me\"}"},
        {"POST", "/v1/agents/inventory/resume", ""},
    };
    RUN_ALL(t, sent);
}

static void run_keys(struct torture *t)
{
    static const struct sent sent[] = {
        {"POST", "/v1/keys", "{\"role\":\"agent\",\"agent\":\"inventory\",\"name\":\"seven\"}"},
        {"POST", "/v1/keys", "{\"role\":\"agent\"}"},
        {"POST", "/v1/keys", "{\"role\":\"agnet\"}"},
        {"GET", "/v1/keys?limit=7&after=abcd0123", NULL},
        {"DELETE", "/v1/keys/abcd0123", NULL},
        {"DELETE", "/v1/keys/nonsense-1", NULL},
    };
    RUN_ALL(t, sent);
}

/* Whoever asks is let in, or told why not, or told to come again: memory lets nobody in. */
static void access_run(struct torture *t, struct rv_access *access, struct rv_str authorization,
                       const struct rv_route *route)
{
    struct rv_parser parser;
    struct rv_arena arena;
    int status;
    rv_parser_init(&parser);
    rv_arena_init(&arena, 0);
    for (int tries = 0;; tries++) {
        struct rv_credentials credentials = {authorization, RV_STR("reeve.example")};
        struct rv_caller caller;
        bool good;
        rv_arena_reset(&arena);
        rv_parser_begin(&parser, &arena);
        IN_PRODUCT(good = rv_access_check(&parser, access, route, &credentials, &caller));
        status = rv_parser_starved(&parser) ? 503 : good ? 0 : parser.problem.status;
        if (status != 503)
            break;
        torture_again(t, RV_ERR_MEMORY, tries, route->pattern, __FILE__, __LINE__);
    }
    torture_says(t, "%s %s: %d\n", route->method, route->pattern, status);
    IN_PRODUCT(rv_parser_done(&parser));
    IN_PRODUCT(rv_arena_done(&arena));
}

static void key_take(struct torture *t, struct rv_access *access, struct rv_api_key key)
{
    for (int tries = 0;; tries++) {
        enum rv_err err;
        IN_PRODUCT(err = rv_keys_add(&access->keys, &key));
        if (err == RV_OK)
            return;
        torture_again(t, err, tries, "rv_keys_add", __FILE__, __LINE__);
    }
}

static void run_access(struct torture *t)
{
    struct rv_access access = {.always_keys = false};
    struct rv_arena arena;
    rv_keys_init(&access.keys);
    rv_arena_init(&arena, 0);
    struct rv_str good = RV_STR_NONE;
    for (const struct rv_route *route = rv_routes(); route->method != NULL; route++)
        access_run(t, &access, RV_STR_NONE, route);
    for (int i = 0; i < 12; i++) {
        struct rv_api_key key = {.role = (enum rv_role)(i % RV_ROLE_COUNT), .name = RV_STR("n")};
        struct rv_str text;
        key.agent = key.role == RV_ROLE_AGENT ? RV_STR("inventory") : RV_STR_NONE;
        if (rv_key_make(&arena, &key, &text) != RV_OK)
            abort();
        key_take(t, &access, key);
        if (key.role == RV_ROLE_OPERATOR)
            good = rv_arena_printf(&arena, "Bearer %.*s", RV_STR_FMT(text));
    }
    for (const struct rv_route *route = rv_routes(); route->method != NULL; route++) {
        access_run(t, &access, good, route);
        access_run(t, &access, RV_STR("Bearer nonsense"), route);
    }
    IN_PRODUCT(rv_keys_done(&access.keys));
    rv_arena_done(&arena);
}

static void run_publications(struct torture *t)
{
    static const struct sent sent[] = {
        {"PUT", "/v1/workflows?file=order.yaml",
         "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n"
         "do:\n  - a: {call: inventory, with: {sku: '${ .sku }'}, output: {as: '${ .x }'}}\n"
         "  - b: {switch: [{c: {when: '${ .y }', then: end}}]}\n"},
        {"PUT", "/v1/workflows?file=order.yaml",
         "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n"
         "do:\n  - a: {call: inventory, wiht: {}}\n"},
        {"PUT", "/v1/workflows", "a: [1, 2\n"},
        {"PUT", "/v1/workflows", "{\"document\": 1}"},
    };
    RUN_ALL(t, sent);
}

static void run_refusals(struct torture *t)
{
    static const struct sent sent[] = {
        {"GET", "/v1/task", NULL},
        {"DELETE", "/v1/tasks", NULL},
        {"GET", "/v1/tasks%zz", NULL},
        {"GET", "/v1/tasks?stat=error", NULL},
        {"GET", "/v1/tasks?state=eror", NULL},
        {"GET", "/v1/tasks/nothing", NULL},
        {"POST", "/v1/tasks", "{\"workflow\":3}"},
        {"POST", "/v1/tasks", "{\"workflow\":\"shop/order\",\"tags\":{}}"},
        {"POST", "/v1/tasks", "{\"workflow\":"},
        {"POST", "/v1/agents/a/requests", "{" POLL ",\"waitMs\":-1}"},
        {"POST", "/v1/replies", "{\"replies\":[]}"},
    };
    RUN_ALL(t, sent);
}

/* ---- answers ---- */

static const struct rv_task_id task_id = {INT64_C(0x0123456789abcdef)};
static struct rv_workflow_row workflow = {.id = 1,
                                          .published_at = 1795224600000,
                                          .space = {"shop", 4},
                                          .name = {"order", 5},
                                          .version = {"1.0.0", 5},
                                          .hash = {"abc", 3},
                                          .source = {"{\"do\":[]}", 9}};

enum { ROWS = 30 };

/* Rows enough that an answer takes its memory in several pieces. */
static void answers_fill(struct rv_arena *arena, struct rv_call *call)
{
    struct rv_call_list *list = &call->u.list;
    list->count = list->steps_count = list->limit = ROWS;
    list->tasks = RV_NEW_ARRAY(arena, struct rv_task, ROWS);
    list->task_workflows = RV_NEW_ARRAY(arena, const struct rv_workflow_row *, ROWS);
    list->steps = RV_NEW_ARRAY(arena, struct rv_step, ROWS);
    list->attempts = RV_NEW_ARRAY(arena, struct rv_attempt, ROWS);
    list->late_replies = RV_NEW_ARRAY(arena, struct rv_late_reply, ROWS);
    list->history = RV_NEW_ARRAY(arena, struct rv_history_row, ROWS);
    list->alerts = RV_NEW_ARRAY(arena, struct rv_alert, ROWS);
    list->workflows = RV_NEW_ARRAY(arena, struct rv_workflow_row, ROWS);
    for (uint32_t i = 0; i < ROWS; i++) {
        list->tasks[i] = (struct rv_task){.id = {task_id.value + i},
                                          .state = RV_TASK_PROCESSING,
                                          .created_at = 1795224600000,
                                          .key = RV_STR("key"),
                                          .input = RV_STR("{\"a\":1}")};
        list->task_workflows[i] = &workflow;
        list->steps[i] = (struct rv_step){.number = i + 1,
                                          .attempt = 1,
                                          .attempt_at = 1795224600000,
                                          .reference = RV_STR("/do/0/reserve"),
                                          .agent = RV_STR("inventory"),
                                          .input = RV_STR("{\"b\":2}")};
        list->attempts[i] = (struct rv_attempt){.step = {task_id, i + 1},
                                                .number = 1,
                                                .instance = RV_STR("i1"),
                                                .error = RV_STR("{\"type\":\"x\"}")};
        list->late_replies[i] = (struct rv_late_reply){.step = {task_id, i + 1},
                                                       .output = RV_STR("{\"c\":3}")};
        list->history[i] = (struct rv_history_row){.task = task_id,
                                                   .number = i + 1,
                                                   .step = i + 1,
                                                   .by = RV_STR("ann"),
                                                   .reason = RV_STR("the part is broken")};
        list->alerts[i] = (struct rv_alert){
            .id = i + 1, .task = task_id, .message = RV_STR("a \"message\"\n")};
        list->workflows[i] = workflow;
    }
}

static void answer_run(struct torture *t, const char *name,
                       void (*render)(struct rv_answer *, const struct rv_call *),
                       const struct rv_call *call)
{
    struct rv_answer answer;
    for (int tries = 0;; tries++) {
        rv_answer_init(&answer);
        answer.now = 1795224600000;
        IN_PRODUCT(render(&answer, call));
        if (answer.body.failed == RV_OK)
            break;
        enum rv_err err = answer.body.failed;
        IN_PRODUCT(rv_buf_done(&answer.body));
        torture_again(t, err, tries, name, __FILE__, __LINE__);
    }
    uint64_t hash = 0;
    for (size_t i = 0; i < answer.body.len; i++)
        hash = hash * 31 + (unsigned char)answer.body.at[i];
    torture_says(t, "%s: %d %zu %llx\n", name, answer.status, answer.body.len,
                 (unsigned long long)hash);
    IN_PRODUCT(rv_buf_done(&answer.body));
}

static void run_answers(struct torture *t)
{
    static const struct {
        const char *name;
        void (*render)(struct rv_answer *answer, const struct rv_call *call);
        enum rv_call_kind kind;
    } lists[] = {
        {"tasks", rv_render_tasks, RV_CALL_TASKS},
        {"steps", rv_render_steps, RV_CALL_STEPS},
        {"attempts", rv_render_attempts, RV_CALL_ATTEMPTS},
        {"late", rv_render_late, RV_CALL_LATE},
        {"history", rv_render_history, RV_CALL_HISTORY},
        {"alerts", rv_render_alerts, RV_CALL_ALERTS},
        {"workflows", rv_render_workflows, RV_CALL_WORKFLOWS},
        {"workflow", rv_render_workflow, RV_CALL_WORKFLOWS},
    };
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct rv_call call = {.kind = lists[i].kind};
        answers_fill(&arena, &call);
        answer_run(t, lists[i].name, lists[i].render, &call);
    }
    rv_arena_done(&arena);
}

static void run_answers_to_agents(struct torture *t)
{
    static struct rv_assignment requests[ROWS];
    static struct rv_reply_item replies[ROWS];
    static struct rv_lease_item leases[ROWS];
    struct rv_cancel_notice cancel = {.step = {task_id, 3}, .token = 1};
    for (uint32_t i = 0; i < ROWS; i++) {
        requests[i] = (struct rv_assignment){.step = {task_id, i + 1},
                                             .reference = RV_STR("/do/0/reserve"),
                                             .input = RV_STR("{\"n\":1.0}")};
        replies[i] = (struct rv_reply_item){.step = {task_id, i + 1}, .status = 200};
        leases[i] = (struct rv_lease_item){.step = {task_id, i + 1}, .status = 200};
    }
    struct rv_poll poll = {
        .requests = requests, .requests_count = ROWS, .cancels = &cancel, .cancels_count = 1};
    struct rv_call call = {.kind = RV_CALL_POLL};
    call.u.poll = poll;
    answer_run(t, "poll", rv_render_poll, &call);
    call = (struct rv_call){.kind = RV_CALL_REPLIES};
    call.u.replies = (struct rv_call_replies){
        .items = replies, .count = ROWS, .has_next = true, .next = poll};
    answer_run(t, "replies", rv_render_replies, &call);
    call = (struct rv_call){.kind = RV_CALL_LEASES};
    call.u.leases = (struct rv_call_leases){.items = leases, .count = ROWS};
    answer_run(t, "leases", rv_render_leases, &call);
    call = (struct rv_call){.kind = RV_CALL_PUBLISH};
    call.u.publish.row = workflow;
    answer_run(t, "publish", rv_render_publish, &call);
    static struct rv_api_key keys[ROWS];
    for (int i = 0; i < ROWS; i++)
        keys[i] = (struct rv_api_key){.id = RV_STR("abcd0123"),
                                      .role = (enum rv_role)(i % (RV_ROLE_COUNT + 1)),
                                      .name = RV_STR("seven")};
    call = (struct rv_call){.kind = RV_CALL_KEYS};
    call.u.keys = (struct rv_call_keys){.rows = keys, .count = ROWS, .limit = ROWS};
    answer_run(t, "keys", rv_render_keys, &call);
    call = (struct rv_call){.kind = RV_CALL_KEY_ADD};
    call.u.key = (struct rv_call_key){.row = keys[1], .secret = RV_STR("secret")};
    answer_run(t, "key", rv_render_key_add, &call);
    call.kind = RV_CALL_KEY_REVOKE;
    answer_run(t, "revoked", rv_render_key_revoke, &call);
    static struct rv_agent_count agents[ROWS];
    struct rv_counts counts = {.attempts_begun = 7};
    for (int i = 0; i < ROWS; i++)
        agents[i] = (struct rv_agent_count){.agent = RV_STR("a\"b"), .waiting = (uint64_t)i};
    call = (struct rv_call){.kind = RV_CALL_METRICS};
    call.u.metrics = (struct rv_call_metrics){
        .counts = &counts, .agents = agents, .agents_count = ROWS};
    answer_run(t, "metrics", rv_render_metrics, &call);
    call = (struct rv_call){.kind = RV_CALL_LIMIT};
    call.u.limit.after = (struct rv_agent_limit){.agent = RV_STR("inventory"),
                                                 .concurrent = 4,
                                                 .per_second = 10,
                                                 .paused = true,
                                                 .by = RV_STR("me"),
                                                 .at = 1700000000000};
    answer_run(t, "limit", rv_render_limit, &call);
}

const struct scenario scenarios_apis[] = {
    {"api_questions", run_questions, NULL, HARMS_OF_HEAP, 0, false},
    {"api_submissions", run_submissions, NULL, HARMS_OF_HEAP, 0, false},
    {"api_agents", run_agents, NULL, HARMS_OF_HEAP, 0, false},
    {"api_orders", run_orders, NULL, HARMS_OF_HEAP, 0, false},
    {"api_keys", run_keys, NULL, HARMS_OF_HEAP, 0, false},
    {"api_access", run_access, NULL, HARMS_OF_HEAP, 0, false},
    {"api_publications", run_publications, NULL, HARMS_OF_HEAP, 0, false},
    {"api_refusals", run_refusals, NULL, HARMS_OF_HEAP, 0, false},
    {"api_answers", run_answers, NULL, HARMS_OF_HEAP, 0, false},
    {"api_answers_to_agents", run_answers_to_agents, NULL, HARMS_OF_HEAP, 0, false},
    {.name = NULL},
};

#include "sim/cast/operator.h"

#include "base/assert.h"
#include "base/id.h"
#include "sim/check/check.h"
#include "json/json.h"
#include "sim/cast/client.h"
#include "sim/cast/ledger.h"
#include "sim/cast/workload.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_WITHIN_MS = 10000, LOOKS_EVERY_MS = 1000, BURST_MAX = 4, BULK_RATE_MAX = 8 };
enum {
    RESUBMIT,
    UNDO,
    CANCEL,
    BY_HAND,
    ABANDON,
    SUSPEND,
    RESUME,
    SETTLE,
    EDIT,
    EXPLAIN,
    RETRY,
    CLOSE,
    SELECT,
    BULK,
    VERBS
};
enum { TARGET_BYTES = 64, BODY_BYTES = 160 };
/* The tag of an exchange: the verb, and above it what it is to be compared with. */
enum { VERB_BITS = 8, VERB_MASK = (1 << VERB_BITS) - 1 };

static const struct {
    const char *name;
    const char *route;
    const char *body;
    bool sees; /* it says how many late replies were seen */
} verbs[VERBS] = {
    {"resubmit", "resubmit", "{}", true},
    {"undo", "undo", "{}", true},
    {"cancel", "cancel", "{}", false},
    {"undo", "undo", "{\"byHand\":true}", true},
    {"abandon", "cancel", "{\"abandon\":true}", false},
    {"suspend", "suspend", "{}", false},
    {"resume", "resume", "{}", false},
    {"settle", "settle", NULL, true}, /* of those below */
    {"edit", "resubmit", NULL, true},
    {"explain", "explain", NULL, false},
    {"retry", "retry", "{}", false},
    {"close-circuit", "close-circuit", "{}", false},
    {"select", "selections", "{}", false},
    {"bulk", "bulk", NULL, true},
};

static const char *const findings[] = {"done", "undone", "nothing-happened"};

/* What bulk commands are given, and for which tasks. */
static const uint32_t bulk_verbs[] = {RESUBMIT, UNDO, CANCEL, SUSPEND, RESUME};
static const char *const bulk_states[] = {"error", "processing", "pending", "compensating"};

static const char *const edits[] = {"\"input\":" OPERATOR_EDITS,
                                    "\"input\":" OPERATOR_EDITS ",\"undoFirst\":true",
                                    "\"input\":" OPERATOR_EDITS_ASSUMING ",\"assumeNotDone\":true"};

void operator_new(struct world *w)
{
    if (w->knobs.operators > 0)
        world_at(w, w->now + 1000, EVENT_OPERATOR, 0, 0);
}

struct rv_str operator_body(struct world *w, const char *verb, const char *more,
                            char body[static OPERATOR_BODY_BYTES])
{
    uint32_t number = ++w->commands;
    bool alone = strcmp(more, "{}") == 0;
    snprintf(body, OPERATOR_BODY_BYTES, "{\"by\":\"" OPERATOR_NAME "%u\",\"reason\":\"%s %u\"%s%s",
             number, verb, number, alone ? "" : ",", more + 1);
    return rv_str_of(body);
}

static uint32_t late_seen(struct world *w, struct rv_task_id task)
{
    struct task_past *past = history_task(w, task);
    uint32_t late = past != NULL ? check_late_count(past) : 0;
    return late < RV_PAGE_ROWS_MAX ? late : RV_PAGE_ROWS_MAX;
}

void operator_seeing(struct world *w, struct rv_task_id task, const char *body,
                     char seeing[static OPERATOR_SEEING_BYTES])
{
    bool alone = strcmp(body, "{}") == 0;
    snprintf(seeing, OPERATOR_SEEING_BYTES, "{\"lateSeen\":%u%s%s", late_seen(w, task),
             alone ? "" : ",", body + 1);
}

static void command_with(struct world *w, struct rv_task_id task, uint32_t verb, const char *more)
{
    char body[OPERATOR_BODY_BYTES];
    char id[RV_ID_TEXT_BYTES], target[TARGET_BYTES];
    snprintf(target, sizeof target, "/v1/tasks/%s/%s", rv_task_text(task, id).at,
             verbs[verb].route);
    world_say(w, "operator", "%s %s", verbs[verb].name, id);
    net_ask(w, PEER_OPERATOR, 0, 0, verb, "POST", rv_str_of(target),
            operator_body(w, verbs[verb].route, more, body), ANSWER_WITHIN_MS);
}

static void command(struct world *w, struct rv_task_id task, uint32_t verb)
{
    char seeing[OPERATOR_SEEING_BYTES];
    operator_seeing(w, task, verbs[verb].body, seeing);
    command_with(w, task, verb, verbs[verb].sees ? seeing : verbs[verb].body);
}

/* Settles the step at which the task stands or which is being undone, or gives it another input, as
 * far as the operator knows where that is. */
static void command_step(struct world *w, struct task_past *past, uint32_t verb)
{
    char body[BODY_BYTES];
    bool seeing = fault_roll(w, 2) == 0;
    uint64_t finding = fault_roll(w, sizeof findings / sizeof *findings);
    if (past == NULL || (past->row.open_count == 0 && past->row.undo_head == 0))
        return;
    uint32_t number = past->row.open_count > 0 ? past->row.open[fault_roll(w, past->row.open_count)]
                                               : past->row.undo_head;
    const struct step_past *step = history_step(past, number);
    if (step == NULL || (verb == EDIT && step->row.direction != RV_FORWARD))
        return;
    if (step->row.direction == RV_UNDO && fault_roll(w, 2) == 0)
        number = step->row.undoes;
    bool output = finding == 0 || fault_roll(w, 4) == 0;
    if (verb == SETTLE)
        snprintf(body, sizeof body, "{\"step\":%u,\"finding\":\"%s\",\"lateSeen\":%u%s%s}", number,
                 findings[finding], seeing ? late_seen(w, past->row.id) : 0,
                 output ? ",\"output\":" : "",
                 !output  ? ""
                 : seeing ? OPERATOR_SETTLES_SEEING
                          : OPERATOR_SETTLES_BLINDLY);
    else
        snprintf(body, sizeof body, "{\"step\":%u,\"lateSeen\":%u,%s}", number,
                 late_seen(w, past->row.id), edits[fault_roll(w, sizeof edits / sizeof *edits)]);
    command_with(w, past->row.id, verb, body);
}

/* Asks what leads a parked task on; the answer is heeded. The tag has how many late replies the
 * task had by then. */
static void command_explain(struct world *w, struct task_past *past)
{
    char id[RV_ID_TEXT_BYTES], target[TARGET_BYTES];
    snprintf(target, sizeof target, "/v1/tasks/%s/explain", rv_task_text(past->row.id, id).at);
    net_ask(w, PEER_OPERATOR, 0, 0, EXPLAIN | check_late_count(past) << VERB_BITS, "GET",
            rv_str_of(target), RV_STR(""), ANSWER_WITHIN_MS);
}

/* The command of a cure for the task as a whole. */
static uint32_t cure_verb(struct rv_str name)
{
    static const struct {
        const char *name;
        uint32_t verb;
    } rows[] = {{"resubmit", RESUBMIT}, {"undo-by-hand", BY_HAND}, {"resume", RESUME},
                {"retry", RETRY},       {"cancel", CANCEL},        {"cancel-by-hand", CANCEL},
                {"undo", UNDO},         {"settle-task", SETTLE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rv_str_is(name, rows[i].name))
            return rows[i].verb;
    return SETTLE;
}

/* Gives the command of one of the cures that are named, word for word, but for abandonment. */
static void heed(struct world *w, struct rv_task_id task, const struct exchange *x)
{
    char body[OPERATOR_BODY_BYTES], more[BODY_BYTES];
    struct rv_json told;
    struct rv_arena *arena = &w->history->scratch;
    int64_t step = 0, seen = 0;
    rv_arena_reset(arena);
    enum rv_err err = rv_json_parse(arena, x->answer, RV_JSON_DEPTH_MAX, &told, NULL);
    const struct rv_json *cures = err == RV_OK ? rv_json_get(&told, RV_STR("cures")) : NULL;
    if (cures == NULL || cures->len == 0)
        return;
    const struct rv_json *cure = &cures->u.items[fault_roll(w, cures->len)];
    struct rv_str name = rv_json_str(rv_json_get(cure, RV_STR("cure")));
    if (rv_str_is(name, "abandon"))
        return;
    (void)rv_json_int(rv_json_get(cure, RV_STR("lateSeen")), &seen);
    if (verbs[cure_verb(name)].sees)
        check_seen(w, task, x->tag >> VERB_BITS, seen);
    (void)rv_json_int(rv_json_get(cure, RV_STR("step")), &step);
    uint32_t verb = cure_verb(name);
    bool by_hand = rv_str_is(name, "undo-by-hand") || rv_str_is(name, "cancel-by-hand");
    snprintf(more, sizeof more, "%s", by_hand ? ",\"byHand\":true" : "");
    if (verb == SETTLE) {
        struct rv_str finding = {name.at + strlen("settle-"), name.len - strlen("settle-")};
        if (step == 0)
            finding = rv_str_is(name, "settle-task") ? RV_STR("done") : RV_STR("undone");
        int len = snprintf(more, sizeof more, ",\"finding\":\"%.*s\"%s", RV_STR_FMT(finding),
                           rv_str_is(finding, "done") ? ",\"output\":" OPERATOR_SETTLES_SEEING
                                                      : "");
        if (step != 0)
            snprintf(more + len, sizeof more - (size_t)len, ",\"step\":%lld", (long long)step);
    }
    if (verbs[verb].sees)
        snprintf(body, sizeof body, "{\"lateSeen\":%lld%s}", (long long)seen, more);
    else
        snprintf(body, sizeof body, "{%s}", by_hand ? more + 1 : "");
    command_with(w, task, verb, body);
}

/* Has the target of an open circuit tried; often there is none. */
static void close_circuit(struct world *w)
{
    char target[TARGET_BYTES], body[OPERATOR_BODY_BYTES];
    const char *agent = workload_agent((uint32_t)fault_roll(w, w->knobs.kinds));
    snprintf(target, sizeof target, "/v1/agents/%s/close-circuit", agent);
    world_say(w, "operator", "close-circuit %s", agent);
    net_ask(w, PEER_OPERATOR, 0, 0, CLOSE, "POST", rv_str_of(target),
            operator_body(w, verbs[RETRY].name, verbs[CLOSE].body, body), ANSWER_WITHIN_MS);
}

/* His answer names the step that is tried; the line is in its task's history. */
static void circuit_closed(struct world *w, struct exchange *x)
{
    struct rv_arena *arena = &w->history->scratch;
    struct rv_json told;
    struct rv_task_id task;
    rv_arena_reset(arena);
    world_say(w, "operator", "close-circuit: %d %.*s", x->status, RV_STR_FMT(x->answer));
    if (x->status == 409 || x->status == 503)
        return;
    if (x->status != 200 ||
        rv_json_parse(arena, x->answer, RV_JSON_DEPTH_MAX, &told, NULL) != RV_OK)
        world_violate(w, "W-02", "an operator's command got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
    struct rv_str id = rv_json_str(rv_json_get(&told, RV_STR("task")));
    if (id.at != NULL && rv_task_parse(id, &task) == RV_OK)
        check_commanded(w, task, x->body, true);
}

/* One command for all tasks in some state; which, the tag says until they are selected. */
static void select_tasks(struct world *w)
{
    char target[TARGET_BYTES], body[OPERATOR_BODY_BYTES];
    uint32_t verb = bulk_verbs[fault_roll(w, sizeof bulk_verbs / sizeof *bulk_verbs)];
    snprintf(target, sizeof target, "/v1/selections?state=%s",
             bulk_states[fault_roll(w, sizeof bulk_states / sizeof *bulk_states)]);
    world_say(w, "operator", "select %s for %s", target, verbs[verb].name);
    net_ask(w, PEER_OPERATOR, 0, 0, SELECT | verb << VERB_BITS, "POST", rv_str_of(target),
            operator_body(w, verbs[SELECT].name, verbs[SELECT].body, body), ANSWER_WITHIN_MS);
}

/* Its lines in the tasks' histories have his name and reason, each once (H-01). */
static void bulk(struct world *w, struct rv_str selection, uint32_t verb)
{
    char target[TARGET_BYTES], more[BODY_BYTES], body[OPERATOR_BODY_BYTES];
    snprintf(target, sizeof target, "/v1/selections/%.*s/bulk", RV_STR_FMT(selection));
    snprintf(more, sizeof more, "{\"command\":\"%s\",\"rate\":%llu,\"lateSeen\":1000}",
             verbs[verb].name, (unsigned long long)(1 + fault_roll(w, BULK_RATE_MAX)));
    net_ask(w, PEER_OPERATOR, 0, 0, BULK, "POST", rv_str_of(target),
            operator_body(w, verbs[verb].name, more, body), ANSWER_WITHIN_MS);
}

static void selected(struct world *w, struct exchange *x)
{
    struct rv_arena *arena = &w->history->scratch;
    struct rv_json told;
    uint32_t verb = x->tag & VERB_MASK;
    world_say(w, "operator", "%s: %d %.*s", verbs[verb].name, x->status, RV_STR_FMT(x->answer));
    bool gone = x->status == 404 &&
                (verb == SELECT || database_shared(w) || w->knobs.retain_ms != 0);
    if (x->status == 409 || x->status == 503 || gone)
        return;
    rv_arena_reset(arena);
    if ((x->status != 200 && x->status != 201) ||
        rv_json_parse(arena, x->answer, RV_JSON_DEPTH_MAX, &told, NULL) != RV_OK)
        world_violate(w, "W-02", "an operator's command got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
    if (verb == SELECT)
        bulk(w, rv_json_str(rv_json_get(&told, RV_STR("selection"))), x->tag >> VERB_BITS);
}

void operator_settled(struct world *w, struct rv_step_id step, bool done)
{
    char text[RV_STEP_TEXT_BYTES];
    struct rv_str key = rv_step_text(step, text);
    if (done)
        ledger_get(w, key)->undone = false; /* by him */
    if (done)
        ledger_apply(w, key, 0, false, "operator");
    else
        ledger_undo(w, key, 0, "operator");
}

static bool strikes(struct world *w, enum fault fault, struct rv_task_id task)
{
    bool does = fault_strikes(w, fault, ACTOR_OPERATOR);
    if (does)
        fault_hits(w, fault, task);
    return does;
}

/* What is parked may be settled or edited too, so that the commands meet what they are for. */
static void operator_steps(struct world *w, struct rv_task_id any)
{
    struct task_past *past = history_task(w, any);
    for (size_t i = 0; i < w->history->count; i++) {
        struct task_past *parked = w->history->all[i];
        if (parked->row.state != RV_TASK_ERROR)
            continue;
        if (strikes(w, FAULT_SETTLE, parked->row.id))
            command_step(w, parked, SETTLE);
        if (strikes(w, FAULT_SETTLE, parked->row.id))
            command_explain(w, parked);
        if (strikes(w, FAULT_EDIT, parked->row.id))
            command_step(w, parked, EDIT);
    }
    if (strikes(w, FAULT_SETTLE, any))
        command_step(w, past, SETTLE);
    if (past != NULL && strikes(w, FAULT_HEED, any))
        command_explain(w, past);
    if (strikes(w, FAULT_SUSPEND, any))
        command(w, any, fault_roll(w, 4) == 0 ? RESUME : SUSPEND);
}

/* Half of the time the task that has just moved, so that commands meet what is under way. */
static struct rv_task_id any_task(struct world *w)
{
    struct rv_task_id any = clients_any_task(w, STREAM_OPERATOR);
    return world_roll(w, STREAM_OPERATOR, 2) == 0 ? any : w->history->moved;
}

void operator_beside(struct world *w, struct rv_task_id task, int64_t at)
{
    if (w->knobs.operators == 0 || !strikes(w, FAULT_BURST, task))
        return;
    uint64_t count = 1 + fault_roll(w, BURST_MAX);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t verb = (uint32_t)fault_roll(w, ABANDON);
        int64_t when = at - 1 + (int64_t)fault_roll(w, 3);
        char id[RV_ID_TEXT_BYTES], target[TARGET_BYTES], body[OPERATOR_BODY_BYTES];
        char seeing[OPERATOR_SEEING_BYTES];
        operator_seeing(w, task, verbs[verb].body, seeing);
        snprintf(target, sizeof target, "/v1/tasks/%s/%s", rv_task_text(task, id).at,
                 verbs[verb].route);
        world_say(w, "operator", "%s %s, to arrive in %lld ms", verbs[verb].name, id,
                  (long long)(when - w->now));
        net_ask_at(
            w, PEER_OPERATOR, verb, "POST", rv_str_of(target),
            operator_body(w, verbs[verb].route, verbs[verb].sees ? seeing : verbs[verb].body, body),
            when);
    }
}

/* Parked tasks are resubmitted; sometimes anything befalls any task. */
void operator_turn(struct world *w)
{
    int64_t rest = w->healed ? LOOKS_EVERY_MS
                             : 100 + (int64_t)world_roll(w, STREAM_OPERATOR, LOOKS_EVERY_MS);
    world_at(w, w->now + rest, EVENT_OPERATOR, 0, 0);
    for (size_t i = 0; i < w->history->count; i++) {
        const struct rv_task *task = &w->history->all[i]->row;
        if (task->state == RV_TASK_ERROR && world_chance(w, STREAM_OPERATOR, 200))
            command(w, task->id, RESUBMIT);
        if (task->suspended_at != 0 && (w->healed || world_chance(w, STREAM_OPERATOR, 200)))
            command(w, task->id, RESUME);
    }
    struct rv_task_id any = any_task(w);
    if (any.value == 0)
        return;
    if (strikes(w, FAULT_OPERATOR_ACTS, any))
        command(w, any, (uint32_t)fault_roll(w, ABANDON));
    if (strikes(w, FAULT_ABANDON, any))
        command(w, any, ABANDON);
    operator_steps(w, any);
    if (fault_strikes(w, FAULT_BULK, ACTOR_OPERATOR))
        select_tasks(w);
    if (!strikes(w, FAULT_INSIST, any))
        return;
    if (fault_roll(w, 2) == 0)
        command(w, any, RETRY);
    else
        close_circuit(w);
}

void operator_answered(struct world *w, struct exchange *x)
{
    if ((x->tag & VERB_MASK) == CLOSE) {
        circuit_closed(w, x);
        return;
    }
    if ((x->tag & VERB_MASK) == SELECT || (x->tag & VERB_MASK) == BULK) {
        selected(w, x);
        return;
    }
    struct rv_str id = {x->target.at + sizeof "/v1/tasks/" - 1, RV_ID_TEXT_BYTES - 1};
    struct rv_task_id task;
    uint32_t verb = x->tag & VERB_MASK;
    bool misread = x->status == 500 && fault_happened(w, FAULT_UNREADABLE);
    world_say(w, "operator", "%s %.*s: %d", verbs[verb].name, RV_STR_FMT(id), x->status);
    enum rv_err err = rv_task_parse(id, &task);
    rv_assert(err == RV_OK);
    if (verb != EXPLAIN && (x->status == 200 || x->status == 409))
        check_commanded(w, task, x->body, x->status == 200);
    if (x->status == 200 && verb == EXPLAIN)
        heed(w, task, x);
    else if (x->status == 200)
        check_operated(w, rv_str_of(verbs[verb].name), task);
    else if (x->status == 404 && history_over(w, task))
        return; /* the retention rule has deleted it */
    else if (x->status == 404 && database_shared(w))
        return; /* lost since, or not there yet: this operator sees commits as they come */
    else if (x->status != 409 && x->status != 503 && !misread)
        world_violate(w, "W-02", "an operator's command got %d: %.*s", x->status,
                      RV_STR_FMT(x->answer));
}

void operator_lost(struct world *w, struct exchange *x)
{
    world_say(w, "operator", "no answer to %s", verbs[x->tag & VERB_MASK].name);
}

/* A play goes on until every task is where its script wants it and every order was carried out,
 * however often something fails meanwhile: whoever is not answered well asks again, as an
 * application, an agent or an operator does. Then nothing fails any more, and what the store holds
 * is told. */
#include "../lib/workflow.h"
#include "play.h"

#include "base/limits.h"
#include "core/decide.h"
#include "faults.h"
#include "sim/store/vfs.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 400, STEP_MS_DEFAULT = 500, OUTAGE_MS = 700, REST_MS = 3000, OFTEN = 5 };
enum { LATE_MS = 12000, RENEW_MS = 6000, CIRCUIT_MS = 3000, ABSENT_MS = 60000 };

#define DISK_NAME "torture"

/* ---- ground ---- */

static int64_t play_now(void *self)
{
    return ((struct world *)self)->now;
}

static enum rv_err open_sqlite(struct world *w, struct rv_store **ret_store)
{
    struct play *p = w->ground.self;
    struct rv_store_sqlite_fault fault;
    struct rv_store_sqlite_options options = {
        .path = "reeve.db", .clock = {play_now, w}, .vfs = DISK_NAME};
    enum rv_err err = rv_store_sqlite_open(&options, ret_store, &fault);
    EXPECT(torture_allows(p->t, err), "%s: %s", rv_err_text(err), fault.message);
    return err;
}

/* Whatever is sticky ends a while after its first failure; but a scheduler that is overtaken, or
 * does not find what it wrote, looks again at once, and no time passes. */
static void product(struct world *w, bool inside)
{
    struct play *p = w->ground.self;
    bool failed = faults.failed || p->faults.failed > 0 || p->faults.drops > 0;
    bool often = p->faults.drops >= OFTEN || (p->faults.only_commits && p->faults.failed >= OFTEN);
    if (failed && p->heal_at == 0)
        p->heal_at = w->now + OUTAGE_MS;
    if ((p->heal_at != 0 && w->now >= p->heal_at) || often) {
        faults_heal();
        p->faults.fail_at = p->faults.drop_at = 0;
    }
    if (inside)
        faults_enter();
    else
        faults_leave();
}

/* ---- asking ---- */

bool play_asks(struct play *p, struct rv_call *call)
{
    bool answered = world_run(&p->w, call);
    EXPECT(answered, "a call of kind %d was parked", (int)call->kind);
    EXPECT(torture_allows(p->t, call->err), "a call of kind %d was answered: %s %.*s",
           (int)call->kind, rv_err_text(call->err), RV_STR_FMT(call->message));
    return call->err == RV_OK;
}

const struct rv_task *play_task(struct play *p, int i)
{
    if (p->tasks[i].value == 0)
        return NULL;
    struct rv_call *call = world_call(&p->w, RV_CALL_SHOW);
    call->u.show.task = p->tasks[i];
    return play_asks(p, call) ? call->u.show.found : NULL;
}

/* ---- the application ---- */

static void play_submits(struct play *p)
{
    for (int i = 0; i < p->tasks_count; i++) {
        if (p->tasks[i].value != 0)
            continue;
        const struct play_task *task = &p->script->tasks[i];
        struct rv_call *call = world_call(&p->w, RV_CALL_SUBMIT);
        struct rv_submission *item = RV_NEW(&call->arena, struct rv_submission);
        *item = (struct rv_submission){.space = RV_STR("shop"),
                                       .name = rv_str_of(task->workflow),
                                       .input = rv_str_of(task->input ? task->input : "{}"),
                                       .key = rv_arena_printf(&call->arena, "task-%d", i),
                                       .body_hash = RV_STR("h"),
                                       .priority = 5};
        call->u.submit.items = item;
        call->u.submit.count = 1;
        if (!play_asks(p, call))
            continue;
        EXPECT(torture_allows(p->t, item->err), "task %d: %.*s", i + 1, RV_STR_FMT(item->message));
        if (item->err == RV_OK)
            p->tasks[i] = item->task;
    }
}

static int task_number(const struct play *p, struct rv_task_id task)
{
    for (int i = 0; i < p->tasks_count; i++)
        if (p->tasks[i].value == task.value)
            return i;
    return -1;
}

/* ---- agents ---- */

/* How often the task's step was taken, with this time. */
static int takes_count(struct play *p, int task, const char *reference)
{
    for (size_t i = 0; i < p->takes_count; i++)
        if (p->takes[i].task == task && strcmp(p->takes[i].reference, reference) == 0)
            return ++p->takes[i].count;
    EXPECT(p->takes_count < sizeof p->takes / sizeof p->takes[0], "too many steps");
    p->takes[p->takes_count].task = task;
    p->takes[p->takes_count].count = 1;
    snprintf(p->takes[p->takes_count++].reference, sizeof p->takes[0].reference, "%s", reference);
    return 1;
}

static void held_decide(const struct play *p, struct play_held *held)
{
    held->deed = DEED_DONE;
    held->orders = 0;
    for (int i = 0; i < PLAY_RULES_MAX && p->script->rules[i].step != NULL; i++) {
        const struct rule *rule = &p->script->rules[i];
        if (strstr(held->reference, rule->step) == NULL ||
            (rule->task != 0 && rule->task != held->task + 1) ||
            (rule->takes != 0 && held->taken > rule->takes))
            continue;
        held->deed = rule->deed;
        held->orders = rule->orders;
        return;
    }
}

static bool agent_has(const struct play_agent *agent, uint64_t token)
{
    for (size_t i = 0; i < agent->held_count; i++)
        if (agent->held[i].request.token == token)
            return true;
    return false;
}

static void agent_hold(struct play *p, struct play_agent *agent,
                       const struct rv_assignment *request)
{
    if (agent_has(agent, request->token))
        return;
    EXPECT(agent->held_count < PLAY_HELD_MAX, "%s holds too much", agent->name);
    struct play_held *held = &agent->held[agent->held_count];
    *held = (struct play_held){
        .request = *request, .task = task_number(p, request->step.task), .from = p->w.now};
    if (held->task < 0) /* its submission was not answered yet: the agent dies of it, and asks */
        return;         /* again when it is */
    snprintf(held->reference, sizeof held->reference, "%.*s", RV_STR_FMT(request->reference));
    held->taken = takes_count(p, held->task, held->reference);
    held_decide(p, held);
    agent->held_count++;
}

static bool told_undelivered(struct play *p, const struct play_agent *agent, size_t from)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_UNSENT);
    struct rv_call_unsent *u = &call->u.unsent;
    u->attempts = RV_NEW_ARRAY(&call->arena, struct rv_handed_out, agent->held_count - from);
    for (size_t i = from; i < agent->held_count; i++)
        u->attempts[u->count++] = (struct rv_handed_out){agent->held[i].request.step,
                                                         agent->held[i].request.token};
    return play_asks(p, call);
}

/* Whether the answer that has just come is lost by the will of a rule. */
static bool answer_lost(struct play *p, struct play_agent *agent, size_t before)
{
    for (size_t i = before; i < agent->held_count; i++) {
        enum deed deed = agent->held[i].deed;
        if (deed != DEED_UNDELIVERED && deed != DEED_UNHEARD)
            continue;
        if (deed == DEED_UNDELIVERED)
            (void)told_undelivered(p, agent, before); /* if not, the next poll tells */
        agent->held_count = before;
        return true;
    }
    return false;
}

static void agent_takes(struct play *p, struct play_agent *agent)
{
    struct rv_call *poll = agent->poll;
    if (poll == NULL || !world_finished(poll))
        return;
    agent->poll = NULL;
    EXPECT(torture_allows(p->t, poll->err), "a poll was answered: %s", rv_err_text(poll->err));
    agent->poll_again = poll->err != RV_OK;
    if (agent->poll_again)
        return;
    size_t before = agent->held_count;
    bool unknown = false;
    for (size_t i = 0; i < poll->u.poll.requests_count; i++) {
        unknown = unknown || task_number(p, poll->u.poll.requests[i].step.task) < 0;
        agent_hold(p, agent, &poll->u.poll.requests[i]);
    }
    agent->poll_again = unknown;
    if (!unknown && !answer_lost(p, agent, before))
        memcpy(agent->confirm_id, agent->poll_id, sizeof agent->confirm_id);
}

static struct rv_reply reply_of(enum deed deed)
{
    struct rv_reply reply = {.output = RV_STR("{\"ok\":true}")};
    if (deed == DEED_FAIL || deed == DEED_STUMBLE)
        reply = (struct rv_reply){.error = RV_STR("{\"type\":\"broken\",\"status\":500}"),
                                  .transient = deed == DEED_STUMBLE};
    if (deed == DEED_CIRCUIT)
        reply = (struct rv_reply){.error = RV_STR("{\"type\":\"circuit-open\"}"),
                                  .transient = true,
                                  .circuit_open = true,
                                  .target = RV_STR("north"),
                                  .retry_after_ms = CIRCUIT_MS};
    return reply;
}

/* True when it was answered. */
static bool held_reply(struct play *p, const struct play_held *held)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_REPLIES);
    struct rv_reply_item *item = RV_NEW(&call->arena, struct rv_reply_item);
    *item = (struct rv_reply_item){
        .step = held->request.step, .token = held->request.token, .reply = reply_of(held->deed)};
    call->u.replies.items = item;
    call->u.replies.count = 1;
    if (!play_asks(p, call))
        return false;
    bool late = held->deed == DEED_LATE || held->orders > 0;
    EXPECT(item->status == 200 || (item->status == 410 && late),
           "the reply to %s was answered with %d", held->reference, item->status);
    if (item->status == 200 && item->reply.output.at != NULL && p->acked_count < PLAY_ACKED_MAX)
        p->acked[p->acked_count++] = held->request.step;
    return true;
}

static void held_renew(struct play *p, const struct play_held *held)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_LEASES);
    struct rv_lease_item *item = RV_NEW(&call->arena, struct rv_lease_item);
    *item = (struct rv_lease_item){.step = held->request.step, .token = held->request.token};
    call->u.leases.items = item;
    call->u.leases.count = 1;
    if (play_asks(p, call))
        EXPECT(item->status == 200, "the lease of %s was answered with %d", held->reference,
               item->status);
}

/* False: it stays in the agent's hands. */
static bool held_over(struct play *p, struct play_held *held)
{
    int64_t age = p->w.now - held->from;
    if (held->orders > p->orders_done)
        return false;
    switch (held->deed) {
    case DEED_SILENT:
        return true;
    case DEED_LATE:
        return age >= LATE_MS && held_reply(p, held);
    case DEED_RENEW:
        if (age >= RENEW_MS)
            return held_reply(p, held);
        held_renew(p, held);
        return false;
    case DEED_DONE:
    case DEED_FAIL:
    case DEED_STUMBLE:
    case DEED_CIRCUIT:
    case DEED_REBOOT:
    case DEED_UNDELIVERED:
    case DEED_UNHEARD:
        break;
    }
    return held_reply(p, held);
}

static bool agent_dies(const struct play_agent *agent)
{
    for (size_t i = 0; i < agent->held_count; i++)
        if (agent->held[i].deed == DEED_REBOOT)
            return true;
    return false;
}

static void agent_acts(struct play *p, struct play_agent *agent)
{
    if (agent_dies(agent)) {
        agent->boots++;
        agent->held_count = 0;
        agent->poll = NULL; /* its connection is gone; the server sees that when it answers */
        agent->poll_again = false;
        agent->confirm_id[0] = '\0';
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < agent->held_count; i++) {
        struct play_held held = agent->held[i];
        if (!held_over(p, &held))
            agent->held[kept++] = held;
    }
    agent->held_count = kept;
}

static void agent_polls(struct play *p, struct play_agent *agent)
{
    if (agent->poll != NULL)
        return;
    struct rv_call *call = world_call(&p->w, RV_CALL_POLL);
    struct rv_arena *arena = &call->arena;
    struct rv_str *confirm = RV_NEW(arena, struct rv_str);
    if (!agent->poll_again)
        snprintf(agent->poll_id, sizeof agent->poll_id, "%s-%d", agent->instance, ++agent->polls);
    *confirm = rv_arena_str(arena, rv_str_of(agent->confirm_id));
    call->u.poll = (struct rv_poll){.agent = rv_str_of(agent->name),
                                    .instance = rv_arena_str(arena, rv_str_of(agent->instance)),
                                    .boot = rv_arena_printf(arena, "boot-%d", agent->boots),
                                    .poll = rv_arena_str(arena, rv_str_of(agent->poll_id)),
                                    .max = 4,
                                    .wait_ms = 2000,
                                    .confirms = true,
                                    .confirm = confirm,
                                    .confirm_count = agent->confirm_id[0] != '\0'};
    agent->poll = call;
    world_run(&p->w, call);
}

/* ---- the operator ---- */

static bool is_held(const struct play *p, int task, const char *part)
{
    for (size_t i = 0; i < PLAY_AGENTS; i++)
        for (size_t j = 0; j < p->agents[i].held_count; j++)
            if (p->agents[i].held[j].task == task &&
                strstr(p->agents[i].held[j].reference, part) != NULL)
                return true;
    return false;
}

static bool order_is_due(struct play *p, const struct order *order)
{
    if (order->when == NULL)
        return true;
    if (strchr(order->when, '/') != NULL)
        return is_held(p, order->task - 1, order->when);
    const struct rv_task *task = play_task(p, order->task - 1);
    return task != NULL && strcmp(rv_task_state_text(task->state), order->when) == 0;
}

static bool operates(struct play *p, const struct order *order)
{
    static const enum rv_command_kind verbs[] = {
        [ORDER_RESUBMIT] = RV_COMMAND_RESUBMIT, [ORDER_UNDO] = RV_COMMAND_UNDO,
        [ORDER_CANCEL] = RV_COMMAND_CANCEL,     [ORDER_ABANDON] = RV_COMMAND_CANCEL,
        [ORDER_SUSPEND] = RV_COMMAND_SUSPEND,   [ORDER_RESUME] = RV_COMMAND_RESUME,
        [ORDER_SETTLE] = RV_COMMAND_SETTLE,
    };
    if (p->tasks[order->task - 1].value == 0)
        return false;
    const struct rv_task *settled = NULL; /* looked at first: a call that is made is given */
    struct rv_call *ledger = world_call(&p->w, RV_CALL_LATE);
    ledger->u.list.task = p->tasks[order->task - 1];
    if (!play_asks(p, ledger))
        return false;
    size_t late = ledger->u.list.count;
    if (order->kind == ORDER_SETTLE) {
        settled = play_task(p, order->task - 1);
        if (settled == NULL)
            return false;
    }
    struct rv_call *call = world_call(&p->w, RV_CALL_OPERATE);
    call->u.operate.verb = verbs[order->kind];
    call->u.operate.task = p->tasks[order->task - 1];
    call->u.operate.by = RV_STR("operator");
    call->u.operate.reason = RV_STR("because");
    call->u.operate.abandon = order->kind == ORDER_ABANDON;
    call->u.operate.late_seen = (uint32_t)late;
    if (settled != NULL) {
        call->u.operate.step = settled->open_count > 0 ? settled->open[0] : 1;
        call->u.operate.output = RV_STR("{\"settled\":true}");
    }
    bool answered = world_run(&p->w, call);
    EXPECT(answered, "an order was parked");
    /* The one before may have been carried out although its answer was lost. */
    if (call->err == RV_ERR_REFUSED && p->w.restarts > 0)
        return true;
    EXPECT(torture_allows(p->t, call->err), "an order was answered: %s %.*s",
           rv_err_text(call->err), RV_STR_FMT(call->message));
    return call->err == RV_OK;
}

static bool acknowledges(struct play *p)
{
    struct rv_call *list = world_call(&p->w, RV_CALL_ALERTS);
    list->u.list.open_only = true;
    if (!play_asks(p, list))
        return false;
    bool all = true;
    for (size_t i = 0; i < list->u.list.count; i++) {
        struct rv_call *call = world_call(&p->w, RV_CALL_ACK);
        call->u.ack.alert = list->u.list.alerts[i].id;
        call->u.ack.by = RV_STR("operator");
        all = play_asks(p, call) && all;
    }
    return all;
}

static void stops_cleanly(struct play *p)
{
    product(&p->w, true);
    rv_scheduler_drain(p->w.scheduler);
    product(&p->w, false);
    for (int i = 0; i < 2; i++) /* what an agent still asks is answered at once */
        for (size_t j = 0; j < PLAY_AGENTS; j++) {
            agent_takes(p, &p->agents[j]);
            agent_polls(p, &p->agents[j]);
        }
    world_restart(&p->w, 100);
}

/* True when it was carried out. */
static bool order_carry_out(struct play *p, const struct order *order)
{
    switch (order->kind) {
    case ORDER_RESUBMIT:
    case ORDER_UNDO:
    case ORDER_CANCEL:
    case ORDER_ABANDON:
    case ORDER_SUSPEND:
    case ORDER_RESUME:
    case ORDER_SETTLE:
        return operates(p, order);
    case ORDER_ACK:
        return acknowledges(p);
    case ORDER_RESTART:
        world_restart(&p->w, 100);
        return true;
    case ORDER_DRAIN:
        stops_cleanly(p);
        return true;
    case ORDER_ABSENT:
        world_absent(&p->w, ABSENT_MS);
        return true;
    }
    return true;
}

static const struct order *order_next(const struct play *p)
{
    const struct order *order = &p->script->orders[p->orders_done];
    return p->orders_done < PLAY_ORDERS_MAX && order->kind != 0 ? order : NULL;
}

static void operator_acts(struct play *p)
{
    const struct order *order = order_next(p);
    if (order != NULL && order_is_due(p, order) && order_carry_out(p, order))
        p->orders_done++;
}

/* ---- the play ---- */

static bool play_over(struct play *p)
{
    for (int i = 0; i < p->tasks_count; i++) {
        const struct rv_task *task = play_task(p, i);
        if (task == NULL || strcmp(rv_task_state_text(task->state), p->script->tasks[i].end) != 0)
            return false;
    }
    return order_next(p) == NULL;
}

static void play_goes_on(struct play *p)
{
    int64_t step_ms = p->script->step_ms != 0 ? p->script->step_ms : STEP_MS_DEFAULT;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        play_submits(p);
        operator_acts(p);
        for (size_t i = 0; i < PLAY_AGENTS; i++) {
            agent_takes(p, &p->agents[i]);
            agent_acts(p, &p->agents[i]);
            agent_polls(p, &p->agents[i]);
            agent_takes(p, &p->agents[i]);
            agent_acts(p, &p->agents[i]);
        }
        bool also = p->script->also == NULL || p->script->also(p);
        world_pass(&p->w, step_ms);
        if (also && play_over(p))
            return;
    }
    for (int i = 0; i < p->tasks_count; i++) {
        const struct rv_task *task = play_task(p, i);
        fprintf(stderr, "# task %d: %s\n", i + 1,
                task != NULL ? rv_task_state_text(task->state) : "not there");
    }
    EXPECT(false, "the play does not end; %d orders were carried out", p->orders_done);
}

/* ---- what it came to ---- */

static struct rv_call *listed(struct play *p, enum rv_call_kind kind, struct rv_task_id task)
{
    struct rv_call *call = world_call(&p->w, kind);
    call->u.list.task = task;
    EXPECT(play_asks(p, call), "a list of kind %d", (int)kind);
    return call;
}

/* The detail of an error names attempts and instants, which a failure may move. */
static struct rv_str without_detail(struct rv_str error)
{
    const char *detail = error.at != NULL ? strstr(error.at, ",\"detail\"") : NULL;
    return detail != NULL ? (struct rv_str){error.at, (size_t)(detail - error.at)} : error;
}

static void task_check(struct play *p, int i)
{
    const struct rv_task *task = play_task(p, i);
    struct rv_call_list *list = &listed(p, RV_CALL_STEPS, p->tasks[i])->u.list;
    const struct rv_step *steps[RV_PAGE_ROWS_MAX];
    for (size_t s = 0; s < list->count; s++)
        steps[s] = &list->steps[s];
    const char *broken = rv_view_broken(task, steps, list->count);
    EXPECT(broken == NULL, "task %d: %s", i + 1, broken);
    torture_says(p->t, "task %d: %s %s%s, output %.*s, error %.*s\n", i + 1,
                 rv_task_state_text(task->state), rv_direction_text(task->direction),
                 task->cancelling ? " cancelling" : "", RV_STR_FMT(task->output),
                 RV_STR_FMT(without_detail(task->error)));
    for (size_t s = 0; s < list->count; s++)
        torture_says(p->t, "  %u %.*s %s %s%s, output %.*s\n", steps[s]->number,
                     RV_STR_FMT(steps[s]->reference), rv_step_state_text(steps[s]->state),
                     rv_direction_text(steps[s]->direction), steps[s]->undone ? " undone" : "",
                     RV_STR_FMT(steps[s]->output));
    struct rv_call_list *alerts = &listed(p, RV_CALL_ALERTS, p->tasks[i])->u.list;
    for (size_t a = alerts->count; a > 0; a--)
        torture_says(p->t, "  alert %s%s%s\n", rv_alert_kind_text(alerts->alerts[a - 1].kind),
                     alerts->alerts[a - 1].acked_at != 0 ? " acknowledged" : "",
                     alerts->alerts[a - 1].closed_at != 0 ? " closed" : "");
    (void)listed(p, RV_CALL_ATTEMPTS, p->tasks[i]);
    (void)listed(p, RV_CALL_LATE, p->tasks[i]);
}

static void acked_check(struct play *p)
{
    for (size_t i = 0; i < p->acked_count; i++) {
        const struct rv_step *step = world_step(&p->w, p->acked[i].task, p->acked[i].number);
        EXPECT(step != NULL && step->state == RV_STEP_PROCESSED, "an acknowledged reply is lost");
    }
}

static void play_check(struct play *p)
{
    for (int i = 0; i < p->tasks_count; i++)
        task_check(p, i);
    acked_check(p);
    struct rv_call *all = world_call(&p->w, RV_CALL_TASKS);
    EXPECT(play_asks(p, all), "the list of tasks");
    EXPECT(all->u.list.count == (size_t)p->tasks_count, "%zu tasks are there, %d were submitted",
           all->u.list.count, p->tasks_count);
}

static void play_open(struct play *p)
{
    static const char *const names[PLAY_AGENTS] = {"inventory", "payment", "one"};
    for (size_t i = 0; i < PLAY_AGENTS; i++) {
        p->agents[i].name = names[i];
        snprintf(p->agents[i].instance, sizeof p->agents[i].instance, "%.3s1", names[i]);
    }
    while (p->tasks_count < PLAY_TASKS_MAX && p->script->tasks[p->tasks_count].workflow != NULL)
        p->tasks_count++;
    if (p->sqlite) {
        p->disk = disk_new(1);
        p->vfs = vfs_new(p->disk, DISK_NAME, 1);
    }
    world_open_on(&p->w, (struct world_ground){.faults = &p->faults,
                                               .open = p->sqlite ? open_sqlite : NULL,
                                               .product = product,
                                               .self = p});
}

/* Opening and publishing have scenarios of their own: here the harm begins with the tasks. */
void play_run(struct torture *t)
{
    static struct play play;
    struct play *p = &play;
    *p = (struct play){.t = t,
                       .script = t->scenario->script,
                       .sqlite = strstr(t->scenario->name, "/sqlite") != NULL};
    uint64_t fail_at = faults.fail_at;
    faults_heal();
    play_open(p);
    for (int i = 0; i < PLAY_WORKFLOWS_MAX && p->script->workflows[i] != NULL; i++)
        world_publish(&p->w, workflow_file(p->script->workflows[i]));
    faults_arm(fail_at, faults.sticky);
    p->faults.calls = p->faults.changes = 0;
    torture_arm_store(t, &p->faults);
    p->faults.tears = p->script->tears;
    play_goes_on(p);
    torture_disarm_store(t, &p->faults);
    faults_heal();
    world_pass(&p->w, REST_MS);
    play_check(p);
    world_close(&p->w);
    if (p->sqlite) {
        vfs_free(p->vfs);
        disk_free(p->disk);
    }
}

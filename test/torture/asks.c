/* What applications and operators ask while tasks run: keys, publications, lists, waiting. Each
 * question is asked again until it is answered well, and then the answer must be the right one. */
#include "play.h"

#include <stdio.h>
#include <string.h>

/* ---- keys ---- */

static struct rv_submission *submission(struct play *p, struct rv_call **ret_call, size_t count)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_SUBMIT);
    struct rv_submission *items = RV_NEW_ARRAY(&call->arena, struct rv_submission, count);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct rv_submission){.space = RV_STR("shop"),
                                          .name = RV_STR("order"),
                                          .key = RV_STR("task-0"),
                                          .body_hash = RV_STR("h"),
                                          .priority = 5};
    call->u.submit.items = items;
    call->u.submit.count = count;
    call->u.submit.batch = count > 1;
    *ret_call = call;
    return items;
}

static bool same_key_same_task(struct play *p)
{
    struct rv_call *call;
    struct rv_submission *item = submission(p, &call, 1);
    if (!play_asks(p, call) || !torture_allows(p->t, item->err))
        return false;
    if (item->err != RV_OK)
        return false;
    EXPECT(item->known && item->task.value == p->tasks[0].value, "the key got another task");
    return true;
}

static bool other_body_is_refused(struct play *p)
{
    struct rv_call *call;
    struct rv_submission *item = submission(p, &call, 1);
    item->body_hash = RV_STR("other");
    if (!play_asks(p, call))
        return false;
    EXPECT(item->err == RV_ERR_DUPLICATE || torture_allows(p->t, item->err), "%s",
           rv_err_text(item->err));
    return item->err == RV_ERR_DUPLICATE;
}

/* Known, new and unknown workflow in one call: each has its own result. */
static bool many_have_their_own_results(struct play *p)
{
    struct rv_call *call;
    struct rv_submission *items = submission(p, &call, 3);
    items[1].key = RV_STR("task-1");
    items[2].name = RV_STR("nothing");
    items[2].key = RV_STR_NONE;
    if (!play_asks(p, call) || items[0].err != RV_OK || items[1].err != RV_OK)
        return false;
    EXPECT(items[0].task.value == p->tasks[0].value, "the first key got another task");
    EXPECT(items[1].task.value == p->tasks[1].value, "the second key got another task");
    EXPECT(items[2].err == RV_ERR_NOT_FOUND || torture_allows(p->t, items[2].err), "%s",
           rv_err_text(items[2].err));
    return items[2].err == RV_ERR_NOT_FOUND;
}

/* ---- publications ---- */

/* The row of the order in this version, on the arena of a call. */
static bool published(struct play *p, const char *version, const char *hash, enum rv_err wanted,
                      bool known)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_PUBLISH);
    struct rv_workflow_row *row = &call->u.publish.row;
    row->space = RV_STR("shop");
    row->name = RV_STR("order");
    row->version = rv_str_of(version);
    row->hash = rv_str_of(hash);
    row->source = RV_STR(
        "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"shop\",\"name\":\"order\","
        "\"version\":\"1.0.1\"},\"do\":[{\"a\":{\"set\":{\"b\":1}}}]}");
    EXPECT(world_run(&p->w, call), "a publication was parked");
    EXPECT(call->err == wanted || torture_allows(p->t, call->err), "%s", rv_err_text(call->err));
    if (call->err != wanted)
        return false;
    EXPECT(wanted != RV_OK || call->u.publish.known == known || p->t->at != 0, "it is known: %d",
           call->u.publish.known);
    return true;
}

static bool published_again(struct play *p)
{
    return published(p, "1.0.0", "0000", RV_OK, true);
}

static bool published_otherwise(struct play *p)
{
    return published(p, "1.0.0", "1111", RV_ERR_DUPLICATE, false);
}

static bool published_anew(struct play *p)
{
    return published(p, "1.0.1", "2222", RV_OK, false);
}

static bool listed_workflows(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_WORKFLOWS);
    if (!play_asks(p, call))
        return false;
    EXPECT(call->u.list.count == 2, "%zu workflows are there", call->u.list.count);
    return true;
}

/* ---- lists ---- */

static bool asked_of_task(struct play *p, enum rv_call_kind kind, size_t least)
{
    struct rv_call *call = world_call(&p->w, kind);
    call->u.list.task = p->tasks[0];
    if (!play_asks(p, call))
        return false;
    EXPECT(call->u.list.count >= least, "a list of kind %d has %zu rows", (int)kind,
           call->u.list.count);
    return true;
}

static bool listed_steps(struct play *p)
{
    return asked_of_task(p, RV_CALL_STEPS, 1);
}

static bool listed_attempts(struct play *p)
{
    return asked_of_task(p, RV_CALL_ATTEMPTS, 0);
}

static bool listed_late(struct play *p)
{
    return asked_of_task(p, RV_CALL_LATE, 0);
}

static bool listed_alerts(struct play *p)
{
    return asked_of_task(p, RV_CALL_ALERTS, 0);
}

static bool listed_tasks(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_TASKS);
    call->u.list.filter.workflow = RV_STR("shop/order");
    if (!play_asks(p, call))
        return false;
    EXPECT(call->u.list.count == 2 && call->u.list.task_workflows[0] != NULL,
           "%zu tasks are listed", call->u.list.count);
    return true;
}

static bool listed_one_workflow(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_WORKFLOWS);
    call->u.list.filter.workflow = RV_STR("shop/order:1.0.0");
    if (!play_asks(p, call))
        return false;
    EXPECT(call->u.list.count == 1, "%zu workflows of that name", call->u.list.count);
    return true;
}

static bool listed_agents(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_AGENTS);
    if (!play_asks(p, call))
        return false;
    for (size_t i = 0; i < call->u.agents.kinds_count; i++)
        EXPECT(call->u.agents.kinds[i].agent.at != NULL, "an agent without a name");
    return true;
}

static bool asked_for_nothing(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_SHOW);
    call->u.show.task.value = 1;
    EXPECT(world_run(&p->w, call), "a question for no task was parked");
    EXPECT(call->err == RV_ERR_NOT_FOUND || torture_allows(p->t, call->err), "%s",
           rv_err_text(call->err));
    return call->err == RV_ERR_NOT_FOUND;
}

/* ---- waiting ---- */

/* The call is out in p->self, and parked; true once it has come back. A server that ends in
 * between, or has no memory, answers early: then it is asked again. */
static bool waited(struct play *p, struct rv_call *(*ask)(struct play *p),
                   bool (*answered)(struct play *p, const struct rv_call *call))
{
    struct rv_call *call = p->self;
    if (call == NULL) {
        call = p->self = ask(p);
        world_run(&p->w, call);
        return false;
    }
    if (!world_finished(call))
        return false;
    p->self = NULL;
    EXPECT(torture_allows(p->t, call->err), "%s", rv_err_text(call->err));
    return call->err == RV_OK && answered(p, call);
}

static struct rv_call *show_ask(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_SHOW);
    call->u.show.task = p->tasks[0];
    call->u.show.after_revision = 3;
    call->u.show.wait_ms = 4000;
    return call;
}

static bool show_answered(struct play *p, const struct rv_call *call)
{
    (void)p;
    return call->u.show.found != NULL && call->u.show.found->revision > 3;
}

static bool waited_for_change(struct play *p)
{
    return waited(p, show_ask, show_answered);
}

static struct rv_call *submit_ask(struct play *p)
{
    struct rv_call *call;
    submission(p, &call, 1);
    call->u.submit.wait_ms = 4000;
    return call;
}

static bool submit_answered(struct play *p, const struct rv_call *call)
{
    const struct rv_task *task = call->u.submit.task;
    EXPECT(call->u.submit.items[0].task.value == p->tasks[0].value, "the key got another task");
    return task != NULL && task->state == RV_TASK_PROCESSED;
}

static bool waited_for_end(struct play *p)
{
    return waited(p, submit_ask, submit_answered);
}

/* Whoever waits may leave. */
static bool left_while_waiting(struct play *p)
{
    struct rv_call *call = world_call(&p->w, RV_CALL_SHOW);
    call->u.show.task = p->tasks[1];
    call->u.show.after_revision = 1000;
    call->u.show.wait_ms = 4000;
    if (!world_run(&p->w, call)) {
        struct rv_call *gone = world_call(&p->w, RV_CALL_GONE);
        gone->u.gone.serial = call->serial;
        if (!play_asks(p, gone))
            return false;
    }
    return world_finished(call) && call->err == RV_OK;
}

/* ---- scripts ---- */

typedef bool (*question)(struct play *p);

static bool asks_all(struct play *p, const question *questions)
{
    if (p->tasks[0].value == 0 || p->tasks[1].value == 0)
        return false;
    if (questions[p->stage] != NULL && questions[p->stage](p))
        p->stage++;
    return questions[p->stage] == NULL;
}

static bool asks_keys(struct play *p)
{
    static const question questions[] = {same_key_same_task, other_body_is_refused,
                                         many_have_their_own_results, NULL};
    return asks_all(p, questions);
}

static bool asks_publications(struct play *p)
{
    static const question questions[] = {published_again,  published_otherwise, published_anew,
                                         listed_workflows, listed_one_workflow, NULL};
    return asks_all(p, questions);
}

static bool asks_lists(struct play *p)
{
    static const question questions[] = {
        listed_steps, listed_attempts, listed_late,       listed_alerts,
        listed_tasks, listed_agents,   asked_for_nothing, NULL};
    return asks_all(p, questions);
}

static bool asks_and_waits(struct play *p)
{
    static const question questions[] = {left_while_waiting, waited_for_change, waited_for_end,
                                         NULL};
    return asks_all(p, questions);
}

#define TWO_ORDERS                                                                                 \
    {                                                                                              \
        {"order", NULL, "processed"},                                                              \
        {                                                                                          \
            "order", NULL, "processed"                                                             \
        }                                                                                          \
    }

static const struct script keys = {.workflows = {"order"}, .tasks = TWO_ORDERS, .also = asks_keys};
static const struct script publications = {
    .workflows = {"order"}, .tasks = TWO_ORDERS, .also = asks_publications};
static const struct script lists = {.workflows = {"order"},
                                    .tasks = TWO_ORDERS,
                                    .rules = {{"reserve", 0, 1, DEED_STUMBLE, 0}},
                                    .also = asks_lists};
static const struct script waits = {
    .workflows = {"order"},
    .tasks = TWO_ORDERS,
    .rules = {{"reserve", 1, 1, DEED_STUMBLE, 0}, {"charge", 1, 2, DEED_STUMBLE, 0}},
    .also = asks_and_waits};

enum { MOST_ON_SQLITE = 250 };

#define ASKS(script)                                                                               \
    {#script "/memory", play_run, &(script), HARMS_OF_HEAP | HARMS_OF_STORE, 0, false},            \
    {                                                                                              \
#script "/sqlite", play_run, &(script), HARMS_OF_HEAP, MOST_ON_SQLITE, false               \
    }

const struct scenario scenarios_asks[] = {
    ASKS(keys), ASKS(publications), ASKS(lists), ASKS(waits), {.name = NULL},
};

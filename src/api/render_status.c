#include "api/answer.h"

#include "api/put.h"
#include "base/assert.h"

enum { WAITS_SHOWN = 10, CIRCUITS_SHOWN = 20 };

void rv_put_alert_groups(struct rv_buf *buf, const struct rv_alert_groups *groups)
{
    char cure[RV_ALERT_CURE_BYTES];
    rv_put_open_in(buf, "groups", '[');
    for (size_t i = 0; i < groups->count; i++) {
        const struct rv_alert_group *group = &groups->rows[i];
        const struct rv_alert *alert = group->newest;
        rv_put_open(buf, '{');
        rv_put_text(buf, "group", rv_str_of(group->facts->group));
        rv_put_text(buf, "kind", rv_str_of(rv_alert_kind_text(alert->kind)));
        rv_put_text_if(buf, "workflow", group->facts->workflow);
        rv_put_text_if(buf, "reference", group->facts->reference);
        rv_put_text_if(buf, "errorType", group->facts->error_type);
        rv_put_text_if(buf, "source", alert->source);
        rv_put_int(buf, "count", (int64_t)group->count);
        rv_put_instant_if(buf, "firstAt", group->first_at);
        rv_put_instant_if(buf, "lastAt", alert->raised_at);
        rv_put_task(buf, "alert", (struct rv_task_id){alert->id});
        if (alert->task.value != 0)
            rv_put_task(buf, "task", alert->task);
        if (alert->step != 0)
            rv_put_step(buf, "step", (struct rv_step_id){alert->task, alert->step});
        rv_put_text_if(buf, "message", alert->message);
        rv_put_text(buf, "cure", rv_alert_cure(alert, cure));
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

static void tasks_put(struct rv_buf *buf, const struct rv_counts *counts)
{
    rv_put_open_in(buf, "tasks", '{');
    for (unsigned i = 0; i < RV_TASK_STATE_COUNT; i++) {
        enum rv_task_state state = (enum rv_task_state)i;
        int64_t count = rv_task_state_open(state) ? counts->open_by_state[i]
                                                  : (int64_t)counts->tasks_ended[i];
        rv_put_int(buf, rv_task_state_text(state), count > 0 ? count : 0);
    }
    rv_buf_add_char(buf, '}');
}

static void failures_put(struct rv_buf *buf, const struct rv_call_status *status)
{
    rv_put_open_in(buf, "failures", '[');
    for (size_t i = 0; i < status->failures_count; i++) {
        const struct rv_failure_row *row = &status->failures[i];
        rv_put_open(buf, '{');
        rv_put_text(buf, "errorType", row->type.len > 0 ? row->type : RV_STR("others"));
        rv_put_int(buf, "count", (int64_t)row->count);
        rv_put_instant_if(buf, "lastAt", row->last_at);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

/* The agents for which steps have waited for the longest. */
static void waits_put(struct rv_buf *buf, const struct rv_call_agents *agents)
{
    const struct rv_agent_kind_row *longest[WAITS_SHOWN];
    size_t count = 0, all = 0;
    for (size_t i = 0; i < agents->kinds_count; i++) {
        const struct rv_agent_kind_row *kind = &agents->kinds[i];
        size_t at = count;
        if (kind->waiting == 0 || kind->waiting_since == 0)
            continue;
        all++;
        for (; at > 0 && kind->waiting_since < longest[at - 1]->waiting_since; at--)
            if (at < WAITS_SHOWN)
                longest[at] = longest[at - 1];
        if (at < WAITS_SHOWN)
            longest[at] = kind;
        count += count < WAITS_SHOWN;
    }
    rv_put_open_in(buf, "waits", '[');
    for (size_t i = 0; i < count; i++) {
        rv_put_open(buf, '{');
        rv_put_text(buf, "agent", longest[i]->agent);
        rv_put_int(buf, "waiting", (int64_t)longest[i]->waiting);
        rv_put_instant_if(buf, "waitingSince", longest[i]->waiting_since);
        rv_put_int(buf, "instances", longest[i]->instances);
        rv_put_bool(buf, "paused", longest[i]->limit.paused);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    rv_put_int(buf, "agentsWaitedFor", (int64_t)all);
}

static void circuits_put(struct rv_buf *buf, const struct rv_call_agents *agents)
{
    size_t shown = 0, open = 0;
    rv_put_open_in(buf, "circuits", '[');
    for (size_t i = 0; i < agents->kinds_count; i++) {
        const struct rv_agent_kind_row *kind = &agents->kinds[i];
        open += kind->circuits_open;
        for (size_t c = 0; c < kind->circuits_count && shown < CIRCUITS_SHOWN; c++, shown++) {
            rv_put_open(buf, '{');
            rv_put_text(buf, "agent", kind->agent);
            rv_put_text_if(buf, "target", kind->circuits[c].target);
            rv_put_instant_if(buf, "openUntil", kind->circuits[c].until);
            rv_put_int(buf, "waiting", (int64_t)kind->circuits[c].waiting);
            rv_buf_add_char(buf, '}');
        }
    }
    rv_buf_add_char(buf, ']');
    rv_put_int(buf, "circuitsOpen", (int64_t)open);
}

void rv_put_problems(struct rv_buf *buf, const struct rv_store_problems *found)
{
    static const struct {
        const char *text, *sentence, *cure;
    } problems[] = {
#define RV_STORE_PROBLEM(name, text, sentence, cure) {text, sentence, cure},
#include "scheduler/tbl/store_problem.def"
#undef RV_STORE_PROBLEM
    };
    for (size_t i = 0; i < RV_STORE_PROBLEMS; i++) {
        if (!found->has[i])
            continue;
        rv_put_open(buf, '{');
        rv_put_text(buf, "problem", rv_str_of(problems[i].text));
        rv_put_text(buf, "message", rv_str_of(problems[i].sentence));
        rv_put_text(buf, "cure",
                    problems[i].cure != NULL ? rv_str_of(problems[i].cure) : found->displaced);
        rv_buf_add_char(buf, '}');
    }
}

static void store_put(struct rv_buf *buf, const struct rv_call_status *status)
{
    rv_put_open_in(buf, "store", '{');
    rv_put_int(buf, "bytes", status->store_bytes);
    rv_put_open_in(buf, "problems", '[');
    rv_put_problems(buf, &status->problems);
    rv_buf_add_char(buf, ']');
    rv_buf_add_char(buf, '}');
}

void rv_render_status(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_STATUS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_status *status = call->u.status;
    rv_put_open(buf, '{');
    rv_put_instant_if(buf, "startedAt", status->started_at);
    tasks_put(buf, status->counts);
    rv_put_int(buf, "suspendedTasks", status->counts->suspended);
    failures_put(buf, status);
    waits_put(buf, &status->agents);
    circuits_put(buf, &status->agents);
    rv_put_open_in(buf, "alerts", '{');
    rv_put_int(buf, "open", (int64_t)status->alerts_count);
    rv_put_bool(buf, "more", status->alerts_more);
    rv_put_alert_groups(buf, &status->alerts);
    rv_buf_add_char(buf, '}');
    store_put(buf, status);
    rv_buf_add_char(buf, '}');
}

#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"

static int64_t remaining(const struct rv_answer *answer, int64_t until)
{
    return until > answer->now ? until - answer->now : 0;
}

/* A step keeps its name over all its attempts, so its name is its key. */
static struct rv_step_id key_of(const struct rv_assignment *request)
{
    return request->step;
}

static void request_put(struct rv_answer *answer, const struct rv_assignment *request)
{
    struct rv_buf *buf = &answer->body;
    rv_put_open(buf, '{');
    rv_put_step(buf, "step", request->step);
    rv_put_task(buf, "task", request->step.task);
    rv_put_text(buf, "reference", request->reference);
    rv_put_int(buf, "attempt", request->attempt);
    rv_put_token(buf, "token", request->token);
    rv_put_int(buf, "fence", request->fence);
    if (request->insist)
        rv_put_bool(buf, "insist", true);
    rv_put_step(buf, "idempotencyKey", key_of(request));
    rv_put_instant_if(buf, "completeBy", request->complete_by);
    rv_put_int(buf, "remainingMs", remaining(answer, request->complete_by));
    rv_put_int(buf, "leaseMs", remaining(answer, request->lease_until));
    rv_put_raw_if(buf, "input", request->input);
    rv_put_text(buf, "traceparent", request->traceparent);
    rv_put_text_if(buf, "tracestate", request->tracestate);
    rv_buf_add_char(buf, '}');
}

/* The members that an answer to a poll and one to replies with `next` share. */
static void poll_put(struct rv_answer *answer, const struct rv_poll *poll)
{
    struct rv_buf *buf = &answer->body;
    rv_put_open_in(buf, "requests", '[');
    for (size_t i = 0; i < poll->requests_count; i++)
        request_put(answer, &poll->requests[i]);
    rv_buf_add_char(buf, ']');
    rv_put_open_in(buf, "cancel", '[');
    for (size_t i = 0; i < poll->cancels_count; i++) {
        rv_put_open(buf, '{');
        rv_put_step(buf, "step", poll->cancels[i].step);
        rv_put_token(buf, "token", poll->cancels[i].token);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

void rv_render_poll(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_POLL);
    rv_put_open(&answer->body, '{');
    rv_put_instant_if(&answer->body, "serverTime", answer->now);
    poll_put(answer, &call->u.poll);
    rv_buf_add_char(&answer->body, '}');
}

/* What was no step's name is given back as null: the order of the items says which it was. */
static void step_put(struct rv_buf *buf, struct rv_step_id step)
{
    if (step.number != 0) {
        rv_put_step(buf, "step", step);
    } else {
        rv_put_name(buf, "step");
        rv_buf_lit(buf, "null");
    }
}

void rv_render_replies(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_REPLIES);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_replies *replies = &call->u.replies;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "results", '[');
    for (size_t i = 0; i < replies->count; i++) {
        const struct rv_reply_item *item = &replies->items[i];
        rv_put_open(buf, '{');
        step_put(buf, item->refused ? item->named : item->step);
        rv_put_int(buf, "status", item->refused ? item->refused : item->status);
        rv_put_text_if(buf, "detail", item->refused ? item->refusal : item->message);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    if (replies->has_next) {
        rv_put_instant_if(buf, "serverTime", answer->now);
        poll_put(answer, &replies->next);
    }
    rv_buf_add_char(buf, '}');
}

void rv_render_leases(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LEASES);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_leases *leases = &call->u.leases;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "results", '[');
    for (size_t i = 0; i < leases->count; i++) {
        const struct rv_lease_item *item = &leases->items[i];
        rv_put_open(buf, '{');
        step_put(buf, item->step);
        rv_put_int(buf, "status", item->status);
        rv_put_int(buf, "leaseMs", remaining(answer, item->lease_until));
        rv_put_int(buf, "remainingMs", remaining(answer, item->complete_by));
        rv_put_bool(buf, "cancel", item->cancel);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    rv_buf_add_char(buf, '}');
}

static void instances_put(struct rv_buf *buf, const struct rv_call_agents *agents,
                          struct rv_str agent)
{
    rv_put_open_in(buf, "instances", '[');
    for (size_t i = 0; i < agents->instances_count; i++) {
        const struct rv_agent_row *row = &agents->instances[i];
        if (!rv_str_eq(row->agent, agent))
            continue;
        rv_put_open(buf, '{');
        rv_put_text(buf, "instance", row->instance);
        rv_put_instant_if(buf, "seenAt", row->seen_at);
        rv_put_int(buf, "openAttempts", row->open_attempts);
        rv_put_bool(buf, "polling", row->parked);
        rv_put_bool(buf, "connected", row->connected);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

/* What an operator allows; no member for what is not limited. */
static void limit_put(struct rv_buf *buf, const struct rv_agent_limit *limit)
{
    if (limit->concurrent != 0)
        rv_put_int(buf, "concurrent", limit->concurrent);
    if (limit->per_second != 0)
        rv_put_int(buf, "perSecond", limit->per_second);
    rv_put_bool(buf, "paused", limit->paused);
    rv_put_text_if(buf, "limitedBy", limit->by);
    rv_put_instant_if(buf, "limitedAt", limit->at);
}

void rv_render_limit(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LIMIT);
    rv_put_open(&answer->body, '{');
    rv_put_text(&answer->body, "agent", call->u.limit.after.agent);
    limit_put(&answer->body, &call->u.limit.after);
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_circuit(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_OPERATE);
    const struct rv_call_operate *operate = &call->u.operate;
    rv_put_open(&answer->body, '{');
    rv_put_text(&answer->body, "agent", operate->agent);
    if (operate->target.len > 0)
        rv_put_text(&answer->body, "target", operate->target);
    if (operate->step != 0) {
        rv_put_task(&answer->body, "task", operate->task);
        rv_put_step(&answer->body, "step", (struct rv_step_id){operate->task, operate->step});
    }
    rv_buf_add_char(&answer->body, '}');
}

/* The worst by itself, too, where it always was. */
static void circuits_put(struct rv_buf *buf, const struct rv_agent_kind_row *kind)
{
    if (kind->circuits_count == 0)
        return;
    rv_put_instant_if(buf, "circuitOpenUntil", kind->circuits[0].until);
    rv_put_text_if(buf, "circuitTarget", kind->circuits[0].target);
    rv_put_int(buf, "circuitsOpen", (int64_t)kind->circuits_open);
    rv_put_open_in(buf, "circuits", '[');
    for (size_t i = 0; i < kind->circuits_count; i++) {
        const struct rv_circuit_row *circuit = &kind->circuits[i];
        rv_put_open(buf, '{');
        rv_put_text_if(buf, "target", circuit->target);
        rv_put_instant_if(buf, "openUntil", circuit->until);
        rv_put_int(buf, "waiting", (int64_t)circuit->waiting);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
}

void rv_render_agents(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_AGENTS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_agents *agents = &call->u.agents;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "agents", '[');
    for (size_t i = 0; i < agents->kinds_count; i++) {
        const struct rv_agent_kind_row *kind = &agents->kinds[i];
        rv_put_open(buf, '{');
        rv_put_text(buf, "agent", kind->agent);
        rv_put_int(buf, "openAttempts", kind->open_attempts);
        limit_put(buf, &kind->limit);
        rv_put_int(buf, "waiting", (int64_t)kind->waiting);
        rv_put_instant_if(buf, "waitingSince", kind->waiting_since);
        circuits_put(buf, kind);
        instances_put(buf, agents, kind->agent);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    rv_buf_add_char(buf, '}');
}

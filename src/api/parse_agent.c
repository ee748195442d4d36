#include "api/body.h"
#include "api/parse.h"
#include "base/assert.h"
#include "base/bucket.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "base/time.h"
#include "workflow/definition.h"

static const char *const no_query[] = {NULL};
static const char *const poll_names[] = {"instance", "boot",    "max",     "waitMs",
                                         "poll",     "confirm", "leaving", NULL};
static const char *const next_names[] = {"agent", "instance", "boot", "max",
                                         "poll",  "confirm",  NULL};
static const char *const replies_names[] = {"replies", "next", NULL};
static const char *const reply_names[] = {"step", "token", "output", "error", NULL};
static const char *const limit_names[] = {"concurrent", "perSecond", "by", "reason", NULL};
static const char *const pause_names[] = {"by", "reason", NULL};
static const char *const circuit_names[] = {"target", "by", "reason", NULL};
static const char *const leases_names[] = {"leases", NULL};
static const char *const lease_names[] = {"step", "token", NULL};
static const char *const error_names[] = {"type",   "status", "title",        "detail", "transient",
                                          "effect", "target", "retryAfterMs", NULL};

static bool confirm_read(struct rv_parser *parser, const struct rv_body *body, struct rv_poll *poll)
{
    const struct rv_json *items = NULL;
    if (!rv_body_list(parser, body, "confirm", RV_CALL_ITEMS_MAX, &items, &poll->confirm_count))
        return false;
    poll->confirms = rv_json_get(body->object, RV_STR("confirm")) != NULL;
    if (poll->confirm_count == 0)
        return true;
    poll->confirm = RV_NEW_ARRAY(parser->arena, struct rv_str, poll->confirm_count);
    if (poll->confirm == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    for (size_t i = 0; i < poll->confirm_count; i++) {
        struct rv_str id = rv_json_str(&items[i]);
        if (id.at == NULL || id.len > RV_NAME_BYTES_MAX)
            return rv_refuse(parser, RV_ERR_INVALID,
                             "confirm[%zu] must be the id of one of your polls", i);
        poll->confirm[i] = rv_arena_str(parser->arena, id);
    }
    return true;
}

/* What a poll and the `next` of a reply have in common. An agent of a few lines may leave out boot
 * and poll: then all its boots are one, and every poll is a new one. */
static bool poll_read(struct rv_parser *parser, const struct rv_body *body, uint64_t seed,
                      struct rv_poll *poll)
{
    int64_t max = 1;
    if (!rv_body_text(parser, body, "instance", RV_NAME_BYTES_MAX, &poll->instance) ||
        !rv_body_need(parser, body, "instance", poll->instance) ||
        !rv_body_text(parser, body, "boot", RV_NAME_BYTES_MAX, &poll->boot) ||
        !rv_body_text(parser, body, "poll", RV_NAME_BYTES_MAX, &poll->poll) ||
        !rv_body_int(parser, body, "max", 0, RV_CALL_ITEMS_MAX, &max) ||
        !confirm_read(parser, body, poll))
        return false;
    if (poll->boot.at == NULL)
        poll->boot = RV_STR("");
    if (poll->poll.at == NULL)
        poll->poll = rv_arena_printf(parser->arena, "auto-%016llx", (unsigned long long)seed);
    poll->max = (uint32_t)(max < RV_POLL_REQUESTS_MAX ? max : RV_POLL_REQUESTS_MAX);
    return poll->poll.at != NULL || rv_refuse(parser, RV_ERR_MEMORY, "out of memory; try again");
}

static bool agent_name(struct rv_parser *parser, struct rv_str name)
{
    if (name.len > RV_NAME_BYTES_MAX)
        return rv_refuse(parser, RV_ERR_LIMIT, "an agent's name has at most %d bytes",
                         RV_NAME_BYTES_MAX);
    return true;
}

/* No step could ever be handed to another name. */
static bool agent_polls(struct rv_parser *parser, struct rv_str name)
{
    return agent_name(parser, name) &&
           (rv_agent_name_good(name) ||
            rv_refuse(
                parser, RV_ERR_INVALID,
                "agent \"%.*s\": a name begins with a letter or digit and contains only letters, "
                "digits, \"-\", \"_\" and \".\"",
                RV_STR_FMT(name)));
}

bool rv_parse_poll(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_POLL);
    rv_assert(request->params_count == 1);
    struct rv_poll *poll = &call->u.poll;
    struct rv_body body;
    poll->agent = request->params[0];
    poll->wait_ms = RV_WAIT_MS_DEFAULT;
    if (!rv_args_only(parser, request, no_query) || !agent_polls(parser, poll->agent) ||
        !rv_body_read(parser, request->body, false, poll_names, &body) ||
        !poll_read(parser, &body, call->seed, poll) ||
        !rv_body_int(parser, &body, "waitMs", 0, RV_WAIT_MS_MAX, &poll->wait_ms) ||
        !rv_body_bool(parser, &body, "leaving", &poll->leaving))
        return false;
    if (poll->leaving) { /* whoever stops takes nothing more */
        poll->max = 0;
        poll->wait_ms = 0;
    }
    return true;
}

/* 1 to 16 hex digits. */
static bool token_read(struct rv_str text, uint64_t *ret_token)
{
    if (text.len == 0 || text.len > 16)
        return false;
    uint64_t token = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = (unsigned)(c - 'A') + 10;
        else
            return false;
        token = token << 4 | digit;
    }
    *ret_token = token;
    return true;
}

/* A text that names no step leaves `step` and `token` at 0, one that is no token leaves `token` at
 * 0: the scheduler knows no such attempt and answers as for any other. */
static bool attempt_read(struct rv_parser *parser, const struct rv_body *body,
                         struct rv_step_id *ret_step, uint64_t *ret_token)
{
    struct rv_str step = RV_STR_NONE;
    struct rv_str token = RV_STR_NONE;
    if (!rv_body_text(parser, body, "step", RV_NAME_BYTES_MAX, &step) ||
        !rv_body_need(parser, body, "step", step) ||
        !rv_body_text(parser, body, "token", RV_NAME_BYTES_MAX, &token) ||
        !rv_body_need(parser, body, "token", token))
        return false;
    if (rv_step_parse(step, ret_step) != RV_OK)
        *ret_step = (struct rv_step_id){.number = 0};
    if (ret_step->number == 0 || !token_read(token, ret_token))
        *ret_token = 0;
    return true;
}

/* Extra members are welcome in an error, slips of the pen are not: "transiet" would turn a failure
 * that may be repeated into one for good. */
static bool error_names_check(struct rv_parser *parser, const struct rv_body *error)
{
    for (uint32_t i = 0; i < error->object->len; i++) {
        struct rv_str key = rv_json_str(&error->object->u.members[i].key);
        size_t n = 0;
        while (error_names[n] != NULL && !rv_str_is(key, error_names[n]))
            n++;
        const char *near = error_names[n] == NULL ? rv_suggest(key, error_names) : NULL;
        if (near != NULL)
            return rv_refuse(parser, RV_ERR_INVALID,
                             "unknown property \"%.*s\" in %.*s; did you mean \"%s\"?",
                             RV_STR_FMT(key), RV_STR_FMT(error->where), near);
    }
    return true;
}

static bool effect_read(struct rv_parser *parser, const struct rv_body *error,
                        struct rv_reply *reply)
{
    struct rv_str effect = RV_STR_NONE;
    if (!rv_body_text(parser, error, "effect", RV_NAME_BYTES_MAX, &effect))
        return false;
    reply->effect = reply->transient && !reply->circuit_open ? RV_EFFECT_UNKNOWN : RV_EFFECT_NONE;
    if (effect.at == NULL)
        return true;
    if (!rv_effect_parse(effect, &reply->effect) || reply->effect == RV_EFFECT_DONE)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "%.*s.effect must be \"none\" or \"unknown\"; if the request was carried "
                         "out, reply with an output",
                         RV_STR_FMT(error->where));
    return true;
}

static bool error_read(struct rv_parser *parser, const struct rv_body *body, struct rv_reply *reply)
{
    const struct rv_json *value = rv_json_get(body->object, RV_STR("error"));
    struct rv_str where = rv_body_member_name(parser, body, "error");
    struct rv_body error = {value, where};
    struct rv_str type = RV_STR_NONE;
    int64_t status = 0;
    if (value->type != RV_JSON_OBJECT)
        return rv_refuse(parser, RV_ERR_INVALID, "%.*s must be an object with a type",
                         RV_STR_FMT(where));
    if (!error_names_check(parser, &error) ||
        !rv_body_text(parser, &error, "type", RV_KEY_BYTES_MAX, &type) ||
        !rv_body_need(parser, &error, "type", type) ||
        !rv_body_int(parser, &error, "status", 0, 999, &status) ||
        !rv_body_bool(parser, &error, "transient", &reply->transient))
        return false;
    reply->circuit_open = rv_str_is(type, "circuit-open");
    reply->transient = reply->transient || reply->circuit_open;
    if (!effect_read(parser, &error, reply) ||
        !rv_body_int(parser, &error, "retryAfterMs", 0, INT64_C(1) << 53, &reply->retry_after_ms) ||
        !rv_body_text(parser, &error, "target", RV_KEY_BYTES_MAX, &reply->target))
        return false;
    reply->retry_after_ms = rv_retry_after_ms(reply->retry_after_ms, 1);
    return rv_body_payload(parser, body, "error", &reply->error);
}

static bool reply_read(struct rv_parser *parser, const struct rv_json *value, struct rv_str where,
                       struct rv_reply_item *item)
{
    struct rv_body body;
    if (!rv_body_open(parser, value, where, reply_names, &body) ||
        !attempt_read(parser, &body, &item->step, &item->token))
        return false;
    bool output = rv_json_get(body.object, RV_STR("output")) != NULL;
    item->failed = rv_json_get(body.object, RV_STR("error")) != NULL;
    if (output == item->failed)
        return rv_refuse(parser, RV_ERR_INVALID, "%.*s must have either output or error",
                         RV_STR_FMT(where));
    if (item->failed)
        return error_read(parser, &body, &item->reply);
    item->reply.effect = RV_EFFECT_DONE;
    return rv_body_payload(parser, &body, "output", &item->reply.output);
}

static bool next_read(struct rv_parser *parser, const struct rv_body *body, struct rv_call *call)
{
    struct rv_call_replies *replies = &call->u.replies;
    const struct rv_json *value = rv_json_get(body->object, RV_STR("next"));
    struct rv_body next;
    if (value == NULL || value->type == RV_JSON_NULL)
        return true;
    replies->has_next = true;
    return rv_body_open(parser, value, RV_STR("next"), next_names, &next) &&
           rv_body_text(parser, &next, "agent", RV_NAME_BYTES_MAX, &replies->next.agent) &&
           rv_body_need(parser, &next, "agent", replies->next.agent) &&
           agent_polls(parser, replies->next.agent) &&
           poll_read(parser, &next, call->seed, &replies->next);
}

bool rv_parse_replies(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_REPLIES);
    struct rv_call_replies *replies = &call->u.replies;
    struct rv_body body;
    const struct rv_json *items = NULL;
    if (!rv_args_only(parser, request, no_query) ||
        !rv_body_read(parser, request->body, false, replies_names, &body) ||
        !rv_body_list(parser, &body, "replies", RV_CALL_ITEMS_MAX, &items, &replies->count) ||
        !next_read(parser, &body, call))
        return false;
    replies->items = RV_NEW_ARRAY(parser->arena, struct rv_reply_item, replies->count);
    if (replies->items == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    for (size_t i = 0; i < replies->count; i++) {
        struct rv_reply_item *item = &replies->items[i];
        if (reply_read(parser, &items[i], rv_body_item_name(parser, "replies", i), item))
            continue;
        *item = (struct rv_reply_item){.refused = parser->problem.status,
                                       .named = item->step,
                                       .refusal = parser->problem.detail};
        parser->problem = (struct rv_problem){.status = 0};
    }
    return true;
}

bool rv_parse_leases(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LEASES);
    struct rv_call_leases *leases = &call->u.leases;
    struct rv_body body;
    const struct rv_json *items = NULL;
    if (!rv_args_only(parser, request, no_query) ||
        !rv_body_read(parser, request->body, false, leases_names, &body) ||
        !rv_body_list(parser, &body, "leases", RV_CALL_ITEMS_MAX, &items, &leases->count))
        return false;
    leases->items = RV_NEW_ARRAY(parser->arena, struct rv_lease_item, leases->count);
    if (leases->items == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    for (size_t i = 0; i < leases->count; i++) {
        struct rv_body item;
        struct rv_str where = rv_body_item_name(parser, "leases", i);
        if (!rv_body_open(parser, &items[i], where, lease_names, &item) ||
            !attempt_read(parser, &item, &leases->items[i].step, &leases->items[i].token))
            return false;
    }
    return true;
}

/* A number that is there, where 0 lifts the limit. */
static bool limit_read(struct rv_parser *parser, const struct rv_body *body, const char *name,
                       int64_t max, bool *ret_sets, uint32_t *ret_limit)
{
    int64_t number = -1;
    if (!rv_body_int(parser, body, name, 0, max, &number))
        return false;
    *ret_sets = number >= 0;
    *ret_limit = *ret_sets ? (uint32_t)number : 0;
    return true;
}

bool rv_parse_limit(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LIMIT);
    rv_assert(request->params_count == 1);
    struct rv_call_limit *limit = &call->u.limit;
    struct rv_body body;
    limit->row.agent = request->params[0];
    if (!rv_args_only(parser, request, no_query) || !agent_name(parser, limit->row.agent) ||
        !rv_body_read(parser, request->body, false, limit_names, &body) ||
        !rv_body_by(parser, &body, &limit->row.by) ||
        !rv_body_text(parser, &body, "reason", RV_REASON_BYTES_MAX, &limit->reason) ||
        !limit_read(parser, &body, "concurrent", RV_AGENT_CONCURRENT_MAX, &limit->sets_concurrent,
                    &limit->row.concurrent) ||
        !limit_read(parser, &body, "perSecond", RV_BUCKET_RATE_MAX, &limit->sets_rate,
                    &limit->row.per_second))
        return false;
    return limit->sets_concurrent || limit->sets_rate ||
           rv_refuse(parser, RV_ERR_INVALID,
                     "no limit is given; give \"concurrent\", \"perSecond\" or both (the value 0 "
                     "removes a limit)");
}

static bool pause_read(struct rv_parser *parser, const struct rv_request_line *request, bool paused,
                       struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_LIMIT);
    rv_assert(request->params_count == 1);
    struct rv_call_limit *limit = &call->u.limit;
    struct rv_body body;
    limit->row.agent = request->params[0];
    limit->sets_paused = true;
    limit->row.paused = paused;
    return rv_args_only(parser, request, no_query) && agent_name(parser, limit->row.agent) &&
           rv_body_read(parser, request->body, true, pause_names, &body) &&
           rv_body_by(parser, &body, &limit->row.by) &&
           rv_body_text(parser, &body, "reason", RV_REASON_BYTES_MAX, &limit->reason);
}

bool rv_parse_pause(struct rv_parser *parser, const struct rv_request_line *request,
                    struct rv_call *call)
{
    return pause_read(parser, request, true, call);
}

bool rv_parse_unpause(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    return pause_read(parser, request, false, call);
}

bool rv_parse_close_circuit(struct rv_parser *parser, const struct rv_request_line *request,
                            struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_OPERATE);
    rv_assert(request->params_count == 1);
    struct rv_call_operate *operate = &call->u.operate;
    struct rv_body body;
    operate->verb = RV_COMMAND_RETRY;
    operate->agent = request->params[0];
    return rv_args_only(parser, request, no_query) && agent_name(parser, operate->agent) &&
           rv_body_read(parser, request->body, true, circuit_names, &body) &&
           rv_body_text(parser, &body, "target", RV_KEY_BYTES_MAX, &operate->target) &&
           rv_body_by(parser, &body, &operate->by) &&
           rv_body_text(parser, &body, "reason", RV_REASON_BYTES_MAX, &operate->reason);
}

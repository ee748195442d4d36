/* Selections of tasks, and one command for all of them. */
#include "api/access.h"
#include "api/body.h"
#include "api/parse.h"
#include "base/assert.h"
#include "base/limits.h"

enum { RATE_DEFAULT = 10 };

static const char *const no_query[] = {NULL};
static const char *const select_names[] = {"by", "reason", NULL};
static const char *const bulk_names[] = {"command",  "rate", "abandon", "byHand",
                                         "lateSeen", "by",   "reason",  NULL};

static bool selection_read(struct rv_parser *parser, struct rv_str text, struct rv_task_id *ret)
{
    return rv_task_parse(text, ret) == RV_OK ||
           rv_refuse_http(parser, 404,
                          "\"%.*s\" is not a selection id; GET /v1/selections or `reeve "
                          "selections` lists the selections",
                          RV_STR_FMT(text));
}

/* Who says so, by which key. */
static bool word_read(struct rv_parser *parser, const struct rv_body *body, struct rv_word *word)
{
    const struct rv_caller *caller = parser->caller;
    bool known = caller != NULL && caller->known;
    word->role = known ? rv_str_of(rv_role_text(caller->role)) : RV_STR("local");
    return rv_body_by(parser, body, &word->by) &&
           rv_body_text(parser, body, "reason", RV_REASON_BYTES_MAX, &word->reason);
}

/* The query as it was given, for those who look later. */
static bool filter_keep(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_str *ret_filter)
{
    rv_buf_reset(&parser->scratch);
    for (size_t i = 0; i < request->args_count; i++)
        rv_buf_printf(&parser->scratch, "%s%.*s=%.*s", i > 0 ? " " : "",
                      RV_STR_FMT(request->args[i].name), RV_STR_FMT(request->args[i].value));
    if (parser->scratch.failed == RV_OK)
        *ret_filter = rv_arena_str(parser->arena, rv_buf_str(&parser->scratch));
    return ret_filter->at != NULL ||
           rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
}

bool rv_parse_select(struct rv_parser *parser, const struct rv_request_line *request,
                     struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SELECT);
    struct rv_call_select *select = RV_NEW(&call->arena, struct rv_call_select);
    struct rv_body body;
    if (select == NULL)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    call->u.select = select;
    if (!rv_key_header_none(parser, request, "selection") ||
        !rv_parse_task_filter(parser, request, &select->list) ||
        !rv_body_read(parser, request->body, true, select_names, &body) ||
        !word_read(parser, &body, &select->row.picked) ||
        !filter_keep(parser, request, &select->row.filter))
        return false;
    return request->args_count > 0 ||
           rv_refuse_http(parser, 400,
                          "the request has no filter; give at least one filter of GET /v1/tasks or "
                          "`reeve tasks`, such as state=error (--state error)");
}

bool rv_parse_bulk(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_BULK);
    rv_assert(request->params_count == 1);
    struct rv_call_bulk *bulk = &call->u.bulk;
    struct rv_body body;
    struct rv_str command = RV_STR_NONE;
    int64_t rate = RATE_DEFAULT, seen = 0;
    bulk->ask = RV_BULK_BEGIN;
    if (!rv_args_only(parser, request, no_query) ||
        !selection_read(parser, request->params[0], &bulk->selection) ||
        !rv_body_read(parser, request->body, false, bulk_names, &body) ||
        !word_read(parser, &body, &bulk->word) ||
        !rv_body_text(parser, &body, "command", RV_NAME_BYTES_MAX, &command) ||
        !rv_body_need(parser, &body, "command", command) ||
        !rv_body_int(parser, &body, "rate", 1, RV_BULK_RATE_MAX, &rate) ||
        !rv_body_int(parser, &body, "lateSeen", 0, UINT32_MAX, &seen) ||
        !rv_body_bool(parser, &body, "abandon", &bulk->abandon) ||
        !rv_body_bool(parser, &body, "byHand", &bulk->by_hand))
        return false;
    bulk->rate = (uint32_t)rate;
    bulk->late_seen = (uint32_t)seen;
    if (!rv_bulk_verb_parse(command, &bulk->verb)) {
        rv_buf_reset(&parser->scratch);
        rv_suggest_to(parser, command, rv_bulk_verbs);
        return rv_refuse(parser, RV_ERR_INVALID,
                         "\"command\": \"%.*s\" is not a bulk command; %.*s", RV_STR_FMT(command),
                         RV_STR_FMT(rv_buf_str(&parser->scratch)));
    }
    if (bulk->abandon && bulk->verb != RV_COMMAND_CANCEL)
        return rv_refuse(parser, RV_ERR_INVALID, "\"abandon\" is valid only with \"cancel\"");
    if (bulk->by_hand && bulk->verb != RV_COMMAND_CANCEL && bulk->verb != RV_COMMAND_UNDO)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "\"byHand\" is valid only with \"undo\" and \"cancel\"");
    return !bulk->abandon || rv_body_need(parser, &body, "reason", bulk->word.reason);
}

static bool hold_read(struct rv_parser *parser, const struct rv_request_line *request,
                      enum rv_bulk_ask ask, struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_BULK);
    rv_assert(request->params_count == 1);
    struct rv_call_bulk *bulk = &call->u.bulk;
    struct rv_body body;
    bulk->ask = ask;
    return rv_args_only(parser, request, no_query) &&
           selection_read(parser, request->params[0], &bulk->selection) &&
           rv_body_read(parser, request->body, true, select_names, &body) &&
           word_read(parser, &body, &bulk->word);
}

bool rv_parse_bulk_pause(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call)
{
    return hold_read(parser, request, RV_BULK_PAUSE, call);
}

bool rv_parse_bulk_resume(struct rv_parser *parser, const struct rv_request_line *request,
                          struct rv_call *call)
{
    return hold_read(parser, request, RV_BULK_RESUME, call);
}

bool rv_parse_bulk_stop(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_call *call)
{
    return hold_read(parser, request, RV_BULK_STOP, call);
}

bool rv_parse_selections(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SELECTIONS);
    static const char *const names[] = {"after", "limit", NULL};
    return rv_args_only(parser, request, names) &&
           rv_arg_limit(parser, request, &call->u.selections.limit) &&
           rv_arg_after(parser, request, &call->u.selections.after);
}

bool rv_parse_selection(struct rv_parser *parser, const struct rv_request_line *request,
                        struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SELECTIONS);
    rv_assert(request->params_count == 1);
    return rv_args_only(parser, request, no_query) &&
           selection_read(parser, request->params[0], &call->u.selections.only);
}

bool rv_parse_outcomes(struct rv_parser *parser, const struct rv_request_line *request,
                       struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_OUTCOMES);
    rv_assert(request->params_count == 1);
    static const char *const names[] = {"outcome", "after", "limit", NULL};
    struct rv_call_outcomes *asked = &call->u.outcomes;
    struct rv_str outcome = rv_arg_get(request, "outcome");
    asked->outcome = RV_BULK_REFUSED;
    if (!rv_args_only(parser, request, names) || !rv_arg_limit(parser, request, &asked->limit) ||
        !selection_read(parser, request->params[0], &asked->selection))
        return false;
    if (outcome.at != NULL && !rv_bulk_outcome_parse(outcome, &asked->outcome))
        return rv_refuse_http(parser, 400, "outcome=%.*s: must be done, refused or gone",
                              RV_STR_FMT(outcome));
    return rv_arg_after(parser, request, &asked->after);
}

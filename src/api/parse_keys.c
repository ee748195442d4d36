#include "api/body.h"
#include "api/keys.h"
#include "api/parse.h"
#include "base/assert.h"
#include "base/limits.h"
#include "workflow/definition.h"

static const char *const no_query[] = {NULL};
static const char *const key_names[] = {"role", "agent", "name", NULL};

static bool id_valid(struct rv_str id)
{
    for (size_t i = 0; i < id.len; i++)
        if ((id.at[i] < '0' || id.at[i] > '9') && (id.at[i] < 'a' || id.at[i] > 'z'))
            return false;
    return id.len == RV_API_KEY_ID_BYTES;
}

static bool id_read(struct rv_parser *parser, struct rv_str text, struct rv_str *ret_id)
{
    *ret_id = text;
    return id_valid(text) ||
           rv_refuse_http(parser, 404,
                          "\"%.*s\" is not a key id; GET /v1/keys or `reeve keys` lists the keys",
                          RV_STR_FMT(text));
}

bool rv_parse_keys(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_KEYS);
    static const char *const names[] = {"after", "limit", NULL};
    struct rv_str after = rv_arg_get(request, "after");
    if (!rv_args_only(parser, request, names) ||
        !rv_arg_limit(parser, request, &call->u.keys.limit))
        return false;
    call->u.keys.after = after;
    return after.at == NULL || id_valid(after) || rv_refuse_after(parser, after);
}

static bool role_read(struct rv_parser *parser, const struct rv_body *body, enum rv_role *ret_role)
{
    static const char *const roles[] = {
#define RV_ROLE(name, text, purpose) text,
#include "core/tbl/role.def"
#undef RV_ROLE
        NULL};
    struct rv_str role = RV_STR_NONE;
    if (!rv_body_text(parser, body, "role", RV_NAME_BYTES_MAX, &role) ||
        !rv_body_need(parser, body, "role", role))
        return false;
    if (rv_role_parse(role, ret_role))
        return true;
    rv_suggest_to(parser, role, roles);
    return rv_refuse(parser, RV_ERR_INVALID, "role \"%.*s\": unknown role; %.*s", RV_STR_FMT(role),
                     RV_STR_FMT(rv_buf_str(&parser->scratch)));
}

bool rv_parse_key_add(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_KEY_ADD);
    struct rv_api_key *key = &call->u.key.row;
    struct rv_body body;
    if (!rv_key_header_none(parser, request, "key") || !rv_args_only(parser, request, no_query) ||
        !rv_body_read(parser, request->body, false, key_names, &body) ||
        !role_read(parser, &body, &key->role) ||
        !rv_body_text(parser, &body, "agent", RV_NAME_BYTES_MAX, &key->agent) ||
        !rv_body_text(parser, &body, "name", RV_NAME_BYTES_MAX, &key->name))
        return false;
    if (key->agent.at == NULL && key->role == RV_ROLE_AGENT)
        return rv_refuse(
            parser, RV_ERR_INVALID,
            "\"agent\" (--agent NAME) is missing: a key with the role agent belongs to one agent");
    if (key->agent.at != NULL && key->role != RV_ROLE_AGENT)
        return rv_refuse(parser, RV_ERR_INVALID,
                         "\"agent\" is allowed only with the role agent; omit it");
    if (key->agent.at != NULL && !rv_agent_name_good(key->agent))
        return rv_refuse(parser, RV_ERR_INVALID,
                         "agent \"%.*s\": a name begins with a letter or digit and contains only "
                         "letters, digits, \"-\", \"_\" and \".\"",
                         RV_STR_FMT(key->agent));
    if (rv_key_make(parser->arena, key, &call->u.key.secret) != RV_OK)
        return rv_refuse(parser, RV_ERR_MEMORY, "out of memory for this request; try again");
    return true;
}

bool rv_parse_key_revoke(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_KEY_REVOKE);
    rv_assert(request->params_count == 1);
    return rv_args_only(parser, request, no_query) &&
           id_read(parser, request->params[0], &call->u.key.row.id);
}

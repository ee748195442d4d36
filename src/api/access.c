#include "api/access.h"

#include "base/assert.h"

#include <string.h>
#include <strings.h>

static const char unauthorized_cure[] =
    "set REEVE_API_KEY, or send the header \"Authorization: Bearer KEY\"; an admin creates a key "
    "with "
    "`reeve keys add ROLE`; if no admin key is left, stop the server and use "
    "`reeve keys add admin --store PATH`";

/* "Bearer KEY"; absent for anything else. */
static struct rv_str bearer_of(struct rv_str authorization)
{
    static const char scheme[] = "Bearer ";
    enum { SCHEME_BYTES = sizeof scheme - 1 };
    if (authorization.len <= SCHEME_BYTES ||
        strncasecmp(authorization.at, scheme, SCHEME_BYTES) != 0)
        return RV_STR_NONE;
    struct rv_str key = {authorization.at + SCHEME_BYTES, authorization.len - SCHEME_BYTES};
    while (key.len > 0 && key.at[0] == ' ')
        key = (struct rv_str){key.at + 1, key.len - 1};
    while (key.len > 0 && key.at[key.len - 1] == ' ')
        key.len--;
    return key;
}

/* Is it the name or an address of this machine, as far as a name can be no other? A page in a
 * browser can give its own server's name to this machine's address, and would then be let in. */
static bool host_is_plain(struct rv_str host)
{
    const char *colon = host.len ? memrchr(host.at, ':', host.len) : NULL;
    bool six = host.len > 0 && host.at[0] == '[';
    if (colon != NULL && (!six || colon[-1] == ']'))
        host.len = (size_t)(colon - host.at);
    if (host.len == 0 || six)
        return true;
    if (host.len == 9 && strncasecmp(host.at, "localhost", 9) == 0)
        return true;
    for (size_t i = 0; i < host.len; i++)
        if ((host.at[i] < '0' || host.at[i] > '9') && host.at[i] != '.')
            return false;
    return true;
}

static bool open_check(struct rv_parser *parser, const struct rv_credentials *credentials)
{
    if (host_is_plain(credentials->host))
        return true;
    return rv_refuse_http(parser, 403,
                          "the header Host is \"%.*s\": until the first API key exists, the server "
                          "accepts only localhost or an IP address in this header; to use another "
                          "name, create a key: reeve keys add admin",
                          RV_STR_FMT(credentials->host));
}

static bool unauthorized(struct rv_parser *parser, struct rv_str key)
{
    if (key.at == NULL)
        return rv_refuse_http(parser, 401, "this server requires an API key: %s",
                              unauthorized_cure);
    return rv_refuse_http(parser, 401,
                          "this API key is not valid on this server: it was revoked, is mistyped, "
                          "or belongs to another server; %s",
                          unauthorized_cure);
}

static bool caller_set(struct rv_parser *parser, const struct rv_key *key,
                       struct rv_caller *ret_caller)
{
    rv_assert(key->role < RV_ROLE_COUNT);
    struct rv_arena *arena = parser->arena;
    *ret_caller = (struct rv_caller){.known = true, .role = key->role};
    memcpy(ret_caller->id_text, key->id, sizeof key->id);
    ret_caller->id = (struct rv_str){ret_caller->id_text, sizeof ret_caller->id_text};
    if (key->agent[0] != '\0')
        ret_caller->agent = rv_arena_str(arena, rv_str_of(key->agent));
    if (key->name[0] != '\0')
        ret_caller->name = rv_arena_str(arena, rv_str_of(key->name));
    return !rv_parser_starved(parser);
}

/* "observer, operator or admin" */
static void roles_write(struct rv_buf *buf, unsigned roles)
{
    const char *between = "";
    rv_buf_reset(buf);
    for (unsigned i = 0; i < RV_ROLE_COUNT; i++)
        if (roles >> i & 1) {
            rv_buf_printf(buf, "%s%s", between, rv_role_text((enum rv_role)i));
            between = ", ";
        }
    rv_buf_printf(buf, "%s%s", between[0] ? " or " : "", rv_role_text(RV_ROLE_ADMIN));
}

bool rv_access_check(struct rv_parser *parser, const struct rv_access *access,
                     const struct rv_route *route, const struct rv_credentials *credentials,
                     struct rv_caller *ret_caller)
{
    const struct rv_keys *keys = &access->keys;
    *ret_caller = (struct rv_caller){.known = false};
    if (route != NULL && route->roles == RV_ANYBODY)
        return true;
    if (keys->count + keys->unreadable == 0 && !access->always_keys)
        return open_check(parser, credentials);
    struct rv_str text = bearer_of(credentials->authorization);
    const struct rv_key *key = text.at != NULL ? rv_keys_find(keys, text) : NULL;
    if (key == NULL)
        return unauthorized(parser, text);
    if (!caller_set(parser, key, ret_caller))
        return false;
    unsigned mine = RV_MAY(key->role);
    if (route == NULL || key->role == RV_ROLE_ADMIN || (route->roles & mine) != 0)
        return true;
    roles_write(&parser->scratch, route->roles & ~RV_MAY(RV_ROLE_ADMIN));
    return rv_refuse_http(parser, 403,
                          "the role %s has no permission for %s %s, which requires an API key with "
                          "the role %.*s; ask an admin for a key",
                          rv_role_text(key->role), route->method, route->pattern,
                          RV_STR_FMT(rv_buf_str(&parser->scratch)));
}

bool rv_access_stands(const struct rv_access *access, const struct rv_route *route,
                      const struct rv_caller *caller)
{
    rv_assert(route != NULL);
    rv_assert(!caller->known || caller->id.len == RV_API_KEY_ID_BYTES);
    if (route->roles == RV_ANYBODY)
        return true;
    if (caller->known)
        return rv_keys_hold(&access->keys, caller->id);
    return access->keys.count + access->keys.unreadable == 0 && !access->always_keys;
}

bool rv_access_ended(struct rv_parser *parser)
{
    return rv_refuse_http(
        parser, 401,
        "the request lost its authorization while it was waiting: its API key was revoked, or the "
        "first API key was created; this server requires an API key: %s",
        unauthorized_cure);
}

bool rv_access_call(struct rv_parser *parser, const struct rv_caller *caller, struct rv_call *call)
{
    if (!caller->known)
        return true;
    call->by = caller->name.at != NULL ? caller->name : caller->id;
    call->only_reads = caller->role != RV_ROLE_OPERATOR && caller->role != RV_ROLE_ADMIN;
    if (caller->role != RV_ROLE_AGENT)
        return true;
    call->agent_only = caller->agent;
    const struct rv_poll *poll = rv_call_poll(call);
    if (poll == NULL || rv_str_eq(poll->agent, caller->agent))
        return true;
    return rv_refuse_http(parser, 403,
                          "this key is for agent \"%.*s\" and cannot be used for agent \"%.*s\"; "
                          "ask an admin for a key: reeve keys add agent --agent %.*s",
                          RV_STR_FMT(caller->agent), RV_STR_FMT(poll->agent),
                          RV_STR_FMT(poll->agent));
}

struct rv_str rv_access_by(const struct rv_parser *parser, struct rv_str said)
{
    const struct rv_caller *caller = parser->caller;
    if (caller == NULL || !caller->known)
        return said;
    struct rv_str who = caller->name.at != NULL ? caller->name : caller->id;
    if (said.at == NULL || rv_str_eq(said, who))
        return who;
    return rv_arena_printf(parser->arena, "%.*s (key %.*s)", RV_STR_FMT(said), RV_STR_FMT(who));
}

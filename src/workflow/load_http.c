/* `call: http`: its arguments become one template whose value is all that the agent needs. */
#include "base/limits.h"
#include "base/own_header.h"
#include "workflow/load_priv.h"
#include "workflow/uri_priv.h"

static enum rv_err object_new(struct rv_load *load, uint32_t room, struct rv_template *template)
{
    template->kind = RV_TEMPLATE_OBJECT;
    template->count = 0;
    template->items = RV_NEW_ARRAY(load->arena, struct rv_template, room);
    template->keys = RV_NEW_ARRAY(load->arena, struct rv_json, room);
    return template->items != NULL && template->keys != NULL ? RV_OK : rv_load_full(load);
}

static struct rv_template *object_add(struct rv_template *object, struct rv_json key)
{
    rv_assert(object->kind == RV_TEMPLATE_OBJECT);
    object->keys[object->count] = key;
    return &object->items[object->count++];
}

/* A value of any kind, with expressions, as the next member. */
static enum rv_err add_value(struct rv_load *load, struct rv_template *object,
                             const struct rv_json_member *member)
{
    struct rv_template *value = NULL;
    size_t path = rv_load_push(load, rv_json_str(&member->key));
    RV_TRY(rv_load_template(load, &member->value, RV_PLACE_TASK, &value));
    rv_load_pop(load, path);
    *object_add(object, member->key) = *value;
    return RV_OK;
}

/* ---- authentication ---- */

static bool is_secret_name(struct rv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (i == 0 || (c != '-' && c != '_' && c != '.')))
            return false;
    }
    return name.len >= 1 && name.len <= RV_NAME_BYTES_MAX;
}

enum rv_err rv_load_secrets(struct rv_load *load, const struct rv_json *use)
{
    const struct rv_json *names;
    enum rv_err err = rv_load_member(load, use, "secrets", RV_JSON_ARRAY, &names);
    if (err != RV_OK || names == NULL)
        return err;
    size_t path = rv_load_push(load, RV_STR("secrets"));
    for (uint32_t i = 0; i < names->len; i++) {
        size_t item = rv_load_push_index(load, i);
        if (!is_secret_name(rv_json_str(&names->u.items[i])))
            return rv_load_invalid(
                load, NULL,
                "a secret's name begins with a letter or digit, contains only letters, digits, "
                "\"-\", \"_\" and \".\", and has at most %d bytes; it is the name of a file in the "
                "--secrets folder",
                RV_NAME_BYTES_MAX);
        rv_load_pop(load, item);
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static bool secret_declared(const struct rv_load *load, struct rv_str name)
{
    const struct rv_json *names = rv_json_get(load->use, RV_STR("secrets"));
    if (names == NULL || names->type != RV_JSON_ARRAY)
        return false;
    for (uint32_t i = 0; i < names->len; i++)
        if (rv_str_eq(rv_json_str(&names->u.items[i]), name))
            return true;
    return false;
}

/* `use` alone, or all of the properties (two at most). */
static enum rv_err load_scheme(struct rv_load *load, const struct rv_json *scheme, const char *kind,
                               const char *const *properties)
{
    struct rv_load_property known[4] = {{"use", false}};
    size_t count = 1;
    for (; *properties != NULL; properties++) {
        rv_assert(count < sizeof known / sizeof *known - 1);
        known[count++] = (struct rv_load_property){*properties, false};
    }
    struct rv_str secret;
    RV_TRY(rv_load_members(load, scheme, known, kind));
    RV_TRY(rv_load_string(load, scheme, "use", &secret));
    for (size_t i = 1; i < count; i++) {
        struct rv_str text;
        RV_TRY(rv_load_string(load, scheme, known[i].name, &text));
        if (secret.at != NULL && text.at != NULL)
            return rv_load_invalid_name(
                load, rv_str_of(known[i].name),
                "`use` cannot be combined with credentials; remove one of them");
        if (secret.at == NULL && text.at == NULL)
            return rv_load_invalid(load, NULL, "%s needs `%s`, or `use` with a secret's name", kind,
                                   known[i].name);
    }
    if (secret.at != NULL && !secret_declared(load, secret))
        return rv_load_invalid(load, "use", "the secret \"%.*s\" is not listed in use.secrets",
                               RV_STR_FMT(secret));
    return RV_OK;
}

/* A policy written out: one scheme. */
static enum rv_err check_policy(struct rv_load *load, const struct rv_json *policy)
{
    static const char *const basic[] = {"username", "password", NULL};
    static const char *const bearer[] = {"token", NULL};
    static const struct rv_load_property known[] = {
        {"basic", false}, {"bearer", false},     {"digest", true}, {"oauth2", true},
        {"oidc", true},   {"certificate", true}, {NULL, false}};
    if (policy->type != RV_JSON_OBJECT || policy->len != 1)
        return rv_load_invalid(load, NULL,
                               "an authentication must be an object with `basic`, `bearer` or "
                               "`use` (a name defined under use.authentications)");
    RV_TRY(rv_load_members(load, policy, known, "authentication"));
    const char *kind = rv_json_get(policy, RV_STR("basic")) != NULL ? "basic" : "bearer";
    const struct rv_json *scheme;
    RV_TRY(rv_load_member(load, policy, kind, RV_JSON_OBJECT, &scheme));
    if (scheme == NULL) /* of another kind, which rv_load_members() has noted */
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(kind));
    RV_TRY(load_scheme(load, scheme, kind, kind[1] == 'a' ? basic : bearer));
    rv_load_pop(load, path);
    return RV_OK;
}

enum rv_err rv_load_authentication(struct rv_load *load, const struct rv_json *policy,
                                   struct rv_template **ret_template)
{
    RV_TRY(check_policy(load, policy));
    return rv_load_template(load, policy, RV_PLACE_TASK, ret_template);
}

/* Written out, or by its name. */
static enum rv_err load_reference(struct rv_load *load, const struct rv_json *policy,
                                  struct rv_template **ret_template)
{
    static const struct rv_load_property known[] = {{"use", false}, {NULL, false}};
    struct rv_str name = rv_json_str(rv_json_get(policy, RV_STR("use")));
    if (name.at == NULL)
        return rv_load_authentication(load, policy, ret_template);
    RV_TRY(rv_load_members(load, policy, known, "authentication"));
    struct rv_str saved = RV_STR_NONE;
    RV_TRY(rv_load_enter_named(load, "authentications", name, &policy, &saved));
    enum rv_err err = rv_load_authentication(load, policy, ret_template);
    rv_load_leave_named(load, saved);
    return err;
}

/* ---- endpoint ---- */

static enum rv_err load_uri(struct rv_load *load, const struct rv_json *uri, struct rv_node *node,
                            struct rv_template *template)
{
    struct rv_str text = rv_json_str(uri);
    if (text.at == NULL)
        return rv_load_invalid(load, NULL, "a URI must be a string");
    if (rv_is_expression(text)) {
        struct rv_template *expression;
        RV_TRY(rv_load_template(load, uri, RV_PLACE_TASK, &expression));
        *template = *expression;
        return RV_OK;
    }
    RV_TRY(rv_load_plain(load, text, NULL));
    bool unsupported = false;
    size_t offset = 0;
    const char *wrong = rv_uri_wrong(text, &offset, &unsupported);
    if (wrong != NULL) {
        enum rv_err err = unsupported ? rv_load_unsupported(load, NULL, "%s", wrong)
                                      : rv_load_invalid(load, NULL, "%s", wrong);
        rv_assert(offset <= text.len);
        load->fault->offset = offset;
        return err;
    }
    node->endpoint = text;
    *template = (struct rv_template){.kind = RV_TEMPLATE_URI, .constant = *uri};
    return RV_OK;
}

static enum rv_err load_endpoint_member(struct rv_load *load, const struct rv_json_member *member,
                                        struct rv_node *node, struct rv_template *item)
{
    struct rv_template *policy;
    if (rv_str_is(rv_json_str(&member->key), "uri"))
        return load_uri(load, &member->value, node, item);
    RV_TRY(load_reference(load, &member->value, &policy));
    *item = *policy;
    return RV_OK;
}

static enum rv_err load_endpoint(struct rv_load *load, const struct rv_json *endpoint,
                                 struct rv_node *node, struct rv_template *template)
{
    static const struct rv_load_property known[] = {
        {"uri", false}, {"authentication", false}, {NULL, false}};
    if (endpoint->type != RV_JSON_OBJECT)
        return load_uri(load, endpoint, node, template);
    RV_TRY(rv_load_members(load, endpoint, known, "endpoint"));
    if (rv_json_get(endpoint, RV_STR("uri")) == NULL)
        return rv_load_invalid(load, NULL, "an endpoint needs `uri`");
    RV_TRY(object_new(load, endpoint->len, template));
    for (uint32_t i = 0; i < endpoint->len; i++) {
        const struct rv_json_member *member = &endpoint->u.members[i];
        struct rv_template *item = object_add(template, member->key);
        size_t path = rv_load_push(load, rv_json_str(&member->key));
        RV_TRY(load_endpoint_member(load, member, node, item));
        rv_load_pop(load, path);
    }
    return RV_OK;
}

/* ---- the rest ---- */

static bool word_is(struct rv_str text, const char *word)
{
    if (strlen(word) != text.len)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((text.at[i] | 0x20) != (word[i] | 0x20))
            return false;
    return true;
}

static enum rv_err check_method(struct rv_load *load, const struct rv_json *with,
                                struct rv_node *node)
{
    struct rv_str method;
    enum rv_err err = rv_load_string(load, with, "method", &method);
    if (err != RV_OK)
        return err;
    if (method.at == NULL)
        return rv_load_invalid(load, NULL, "call: http needs `method`");
    if (rv_is_expression(method))
        return RV_OK;
    bool valid = method.len > 0 && method.len <= RV_CALL_METHOD_BYTES_MAX;
    for (size_t i = 0; i < method.len && valid; i++) {
        char c = (char)(method.at[i] | 0x20);
        valid = (c >= 'a' && c <= 'z') || method.at[i] == '-';
    }
    if (!valid)
        return rv_load_invalid(load, "method",
                               "a method must be a name of 1 to %d letters, such as get or post",
                               RV_CALL_METHOD_BYTES_MAX);
    if (word_is(method, "CONNECT") || word_is(method, "TRACE"))
        return rv_load_invalid(load, "method", "the methods CONNECT and TRACE are not supported");
    node->safe = word_is(method, "GET") || word_is(method, "HEAD");
    return RV_OK;
}

/* `headers` and `query`: an object or an expression. */
static enum rv_err check_pairs(struct rv_load *load, const struct rv_json *with, const char *key)
{
    const struct rv_json *pairs = rv_json_get(with, rv_str_of(key));
    if (pairs == NULL || pairs->type == RV_JSON_OBJECT ||
        (pairs->type == RV_JSON_STRING && rv_is_expression(rv_json_str(pairs))))
        return RV_OK;
    return rv_load_invalid(load, key, "%s must be an object, or an expression in ${ }", key);
}

/* NULL: nothing. */
static const char *header_wrong(const struct rv_json_member *header)
{
    if (rv_is_own_header(rv_json_str(&header->key)))
        return RV_OWN_HEADER_WHY;
    return header->value.type == RV_JSON_STRING
               ? NULL
               : "the value of a header must be a string; put it in quotes";
}

/* Every value is a string; that of an expression is known only when it is computed. */
static enum rv_err check_headers(struct rv_load *load, const struct rv_json *with)
{
    const struct rv_json *headers = rv_json_get(with, RV_STR("headers"));
    RV_TRY(check_pairs(load, with, "headers"));
    if (headers == NULL || headers->type != RV_JSON_OBJECT || load->published)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("headers"));
    for (uint32_t i = 0; i < headers->len; i++) {
        const struct rv_json_member *member = &headers->u.members[i];
        const char *wrong = header_wrong(member);
        if (wrong == NULL)
            continue;
        size_t item = rv_load_push(load, rv_json_str(&member->key));
        enum rv_err err = rv_load_invalid(load, NULL, "%s", wrong);
        RV_TRY(rv_load_past(load, err, item));
    }
    rv_load_pop(load, path);
    return RV_OK;
}

/* A definition of an earlier build may hold numbers and truths: as the texts that were sent. */
static enum rv_err headers_as_text(struct rv_load *load, struct rv_json *headers)
{
    struct rv_buf text;
    rv_buf_init(&text, RV_DEFINITION_BYTES_MAX);
    struct rv_json_member *members = RV_NEW_ARRAY(load->arena, struct rv_json_member, headers->len);
    bool good = members != NULL;
    for (uint32_t i = 0; i < headers->len && good; i++) {
        members[i] = headers->u.members[i];
        enum rv_json_type type = members[i].value.type;
        if (type != RV_JSON_NUMBER && type != RV_JSON_BOOL)
            continue;
        rv_buf_reset(&text);
        rv_json_write(&text, &members[i].value);
        struct rv_str kept = rv_arena_str(load->arena, rv_buf_str(&text));
        members[i].value = rv_json_of_str(kept);
        good = text.failed == RV_OK && kept.at != NULL;
    }
    rv_buf_done(&text);
    headers->u.members = members;
    return good ? RV_OK : rv_load_full(load);
}

static enum rv_err add_argument(struct rv_load *load, struct rv_template *object,
                                const struct rv_json_member *member)
{
    struct rv_json_member argument = *member;
    if (load->published && rv_str_is(rv_json_str(&member->key), "headers") &&
        member->value.type == RV_JSON_OBJECT && member->value.len > 0)
        RV_TRY(headers_as_text(load, &argument.value));
    return add_value(load, object, &argument);
}

static enum rv_err check_output(struct rv_load *load, const struct rv_json *with)
{
    struct rv_str output;
    const struct rv_json *redirect;
    RV_TRY(rv_load_string(load, with, "output", &output));
    if (output.at != NULL && !rv_str_is(output, "raw") && !rv_str_is(output, "content") &&
        !rv_str_is(output, "response"))
        RV_TRY(rv_load_invalid(load, "output", "output must be raw, content or response"));
    return rv_load_member(load, with, "redirect", RV_JSON_BOOL, &redirect);
}

/* metadata.reeve.noEffect: the statuses after which nothing was done at the other side. */
static enum rv_err load_no_effect(struct rv_load *load, const struct rv_json *task,
                                  struct rv_template *with)
{
    const struct rv_json *reeve = rv_json_at(task, RV_STR("/metadata/reeve"));
    const struct rv_json *list = rv_json_get(reeve, RV_STR("noEffect"));
    if (list == NULL)
        return RV_OK;
    size_t path = load->path.len;
    (void)rv_load_push(load, RV_STR("metadata"));
    (void)rv_load_push(load, RV_STR("reeve"));
    (void)rv_load_push(load, RV_STR("noEffect"));
    bool good = list->type == RV_JSON_ARRAY;
    for (uint32_t i = 0; i < list->len && good; i++) {
        int64_t status;
        good = rv_json_int(&list->u.items[i], &status) && status >= 300 && status <= 599;
    }
    if (!good)
        return rv_load_invalid(
            load, NULL, "noEffect is a list of statuses from 300 to 599, such as [400, 404]");
    struct rv_template *template;
    RV_TRY(rv_load_template(load, list, 0, &template));
    *object_add(with, rv_json_of_str(RV_STR("noEffect"))) = *template;
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_endpoint_argument(struct rv_load *load, struct rv_node *node,
                                          const struct rv_json_member *member)
{
    size_t path = rv_load_push(load, RV_STR("endpoint"));
    RV_TRY(load_endpoint(load, &member->value, node, object_add(node->value, member->key)));
    rv_load_pop(load, path);
    return RV_OK;
}

/* The members of `with`, the path set to it. */
static enum rv_err load_arguments(struct rv_load *load, const struct rv_json *with,
                                  struct rv_node *node)
{
    static const struct rv_load_property known[] = {
        {"method", false}, {"endpoint", false}, {"headers", false},  {"query", false},
        {"body", false},   {"output", false},   {"redirect", false}, {NULL, false}};
    size_t at = load->path.len;
    enum rv_err err = RV_OK;
    RV_TRY(rv_load_members(load, with, known, "call: http"));
    const struct rv_json *endpoint = rv_json_get(with, RV_STR("endpoint"));
    RV_TRY(rv_load_past(load, check_method(load, with, node), at));
    if (endpoint == NULL)
        err = rv_load_invalid(load, NULL, "call: http needs `endpoint`");
    RV_TRY(rv_load_past(load, err, at));
    RV_TRY(rv_load_past(load, check_headers(load, with), at));
    RV_TRY(rv_load_past(load, check_pairs(load, with, "query"), at));
    RV_TRY(rv_load_past(load, check_output(load, with), at));
    RV_TRY(object_new(load, with->len + 1, node->value)); /* and `noEffect` */
    for (uint32_t i = 0; i < with->len; i++) {
        const struct rv_json_member *member = &with->u.members[i];
        err = &member->value == endpoint ? load_endpoint_argument(load, node, member)
                                         : add_argument(load, node->value, member);
        RV_TRY(rv_load_past(load, err, at));
        rv_assert(load->path.len == at || load->path.failed != RV_OK);
    }
    rv_assert(node->value->count <= with->len);
    return RV_OK;
}

enum rv_err rv_load_http(struct rv_load *load, const struct rv_json *task, struct rv_node *node)
{
    const struct rv_json *with;
    rv_assert(node->kind == RV_NODE_CALL);
    RV_TRY(rv_load_member(load, task, "with", RV_JSON_OBJECT, &with));
    if (with == NULL)
        return rv_load_invalid(load, NULL,
                               "`call: http` needs `with`, which must contain `method` and "
                               "`endpoint`");
    node->value = RV_NEW(load->arena, struct rv_template);
    if (node->value == NULL)
        return rv_load_full(load);
    size_t path = rv_load_push(load, RV_STR("with"));
    RV_TRY(load_arguments(load, with, node));
    rv_load_pop(load, path);
    return load_no_effect(load, task, node->value);
}

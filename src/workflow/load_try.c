/* Errors and what is done about them: catch, retry, raise, and the reusable ones under `use`. */
#include "base/time.h"
#include "workflow/load_priv.h"

static bool is_variable_name(struct rv_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return s.len > 0;
}

static enum rv_err load_variable(struct rv_load *load, const struct rv_json *caught,
                                 struct rv_str *ret_name)
{
    static const char *const taken[] = {"context",       "input",   "output", "task",
                                        "workflow",      "runtime", "undo",   "secrets",
                                        "authorization", "ENV",     "__loc__"};
    struct rv_str name;
    enum rv_err err = rv_load_string(load, caught, "as", &name);
    *ret_name = err == RV_OK && name.at != NULL ? name : RV_STR("error");
    if (err != RV_OK)
        return err;
    if (!is_variable_name(*ret_name))
        return rv_load_invalid(load, "as",
                               "`as` must be the name of a variable without the $: letters, digits "
                               "and _, not beginning with a digit");
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (rv_str_is(*ret_name, taken[i]))
            return rv_load_invalid(load, "as", "$%s is reserved; choose another name", taken[i]);
    }
    return RV_OK;
}

/* A text that errors are compared with as it is written. */
static enum rv_err load_filter_text(struct rv_load *load, const struct rv_json *with,
                                    const char *key, struct rv_str *ret_text)
{
    RV_TRY(rv_load_string(load, with, key, ret_text));
    if (ret_text->at == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(key));
    RV_TRY(rv_load_plain(load, *ret_text,
                         "is not evaluated in a filter; write the condition under `when`"));
    if (rv_str_is(rv_str_of(key), "type"))
        RV_TRY(rv_load_error_type(load, *ret_text));
    rv_load_pop(load, path);
    return RV_OK;
}

/* The DSL's schema names the member `details`, its reference and RFC 7807 `detail`. */
static enum rv_err load_filter_details(struct rv_load *load, const struct rv_json *with,
                                       struct rv_catch *into)
{
    if (rv_json_get(with, RV_STR("details")) == NULL)
        return RV_OK;
    if (rv_json_get(with, RV_STR("detail")) != NULL)
        return rv_load_invalid_name(
            load, RV_STR("details"),
            "`detail` and `details` are the same member; remove one of them");
    return load_filter_text(load, with, "details", &into->detail);
}

static enum rv_err load_filter(struct rv_load *load, const struct rv_json *caught,
                               struct rv_catch *into)
{
    static const struct rv_load_property errors_known[] = {{"with", false}, {NULL, false}};
    static const struct rv_load_property known[] = {
        {"type", false},   {"status", false},  {"instance", false}, {"title", false},
        {"detail", false}, {"details", false}, {NULL, false}};
    const struct rv_json *errors;
    const struct rv_json *with = NULL;
    RV_TRY(rv_load_member(load, caught, "errors", RV_JSON_OBJECT, &errors));
    if (errors == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("errors"));
    RV_TRY(rv_load_members(load, errors, errors_known, "errors"));
    RV_TRY(rv_load_member(load, errors, "with", RV_JSON_OBJECT, &with));
    if (with != NULL) {
        (void)rv_load_push(load, RV_STR("with"));
        size_t inner = load->path.len;
        if (with->len == 0)
            RV_TRY(rv_load_invalid(
                load, NULL,
                "`with` needs at least one of type, status, instance, title, detail; omit "
                "`with` to catch every error"));
        RV_TRY(rv_load_members(load, with, known, "errors.with"));
        RV_TRY(rv_load_past(load, load_filter_text(load, with, "type", &into->type), inner));
        RV_TRY(
            rv_load_past(load, load_filter_text(load, with, "instance", &into->instance), inner));
        RV_TRY(rv_load_past(load, load_filter_text(load, with, "title", &into->title), inner));
        RV_TRY(rv_load_past(load, load_filter_text(load, with, "detail", &into->detail), inner));
        RV_TRY(rv_load_past(load, load_filter_details(load, with, into), inner));
        RV_TRY(rv_load_past(load, rv_load_int(load, with, "status", 0, 999, &into->status), inner));
        into->has_status = rv_json_get(with, RV_STR("status")) != NULL;
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_backoff(struct rv_load *load, const struct rv_json *policy,
                                enum rv_backoff *backoff)
{
    static const struct rv_load_property known[] = {
        {"constant", false}, {"linear", false}, {"exponential", false}, {NULL, false}};
    const struct rv_json *object;
    RV_TRY(rv_load_member(load, policy, "backoff", RV_JSON_OBJECT, &object));
    if (object == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("backoff"));
    RV_TRY(rv_load_members(load, object, known, "backoff"));
    if (object->len != 1)
        RV_TRY(rv_load_invalid(load, NULL,
                               "backoff needs one of constant, linear, exponential, "
                               "such as exponential: {}"));
    for (unsigned i = 0; known[i].name != NULL; i++) {
        const struct rv_json *way;
        RV_TRY(rv_load_member(load, object, known[i].name, RV_JSON_OBJECT, &way));
        if (way != NULL && way->len > 0)
            RV_TRY(rv_load_unsupported(load, known[i].name,
                                       "parameters of %s are not supported "
                                       "yet; write {}",
                                       known[i].name));
        if (way != NULL)
            *backoff = (enum rv_backoff)i;
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_limit(struct rv_load *load, const struct rv_json *policy,
                              struct rv_retry *retry)
{
    static const struct rv_load_property known[] = {
        {"attempt", false}, {"duration", false}, {NULL, false}};
    static const struct rv_load_property attempt_known[] = {
        {"count", false}, {"duration", false}, {NULL, false}};
    const struct rv_json *limit;
    const struct rv_json *attempt = NULL;
    RV_TRY(rv_load_member(load, policy, "limit", RV_JSON_OBJECT, &limit));
    if (limit == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("limit"));
    RV_TRY(rv_load_members(load, limit, known, "limit"));
    RV_TRY(rv_load_duration(load, limit, "duration", &retry->duration_ms));
    RV_TRY(rv_load_member(load, limit, "attempt", RV_JSON_OBJECT, &attempt));
    if (attempt != NULL) {
        (void)rv_load_push(load, RV_STR("attempt"));
        RV_TRY(rv_load_members(load, attempt, attempt_known, "limit.attempt"));
        RV_TRY(rv_load_int(load, attempt, "count", 0, 1000000, &retry->count_max));
        RV_TRY(rv_load_duration(load, attempt, "duration", &retry->attempt_ms));
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_jitter(struct rv_load *load, const struct rv_json *policy,
                               struct rv_retry *retry)
{
    static const struct rv_load_property known[] = {{"from", false}, {"to", false}, {NULL, false}};
    const struct rv_json *jitter;
    RV_TRY(rv_load_member(load, policy, "jitter", RV_JSON_OBJECT, &jitter));
    if (jitter == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("jitter"));
    RV_TRY(rv_load_members(load, jitter, known, "jitter"));
    if (jitter->len != 2)
        RV_TRY(rv_load_invalid(load, NULL, "jitter needs both `from` and `to`"));
    RV_TRY(rv_load_duration(load, jitter, "from", &retry->jitter_from_ms));
    RV_TRY(rv_load_duration(load, jitter, "to", &retry->jitter_to_ms));
    if (retry->jitter_from_ms > retry->jitter_to_ms)
        RV_TRY(rv_load_invalid(load, NULL, "jitter.from is longer than jitter.to"));
    rv_load_pop(load, path);
    return RV_OK;
}

enum rv_err rv_load_retry(struct rv_load *load, const struct rv_json *policy,
                          struct rv_retry **ret_retry)
{
    static const struct rv_load_property known[] = {
        {"when", false},  {"exceptWhen", false}, {"delay", false}, {"backoff", false},
        {"limit", false}, {"jitter", false},     {NULL, false}};
    if (policy->type != RV_JSON_OBJECT)
        return rv_load_invalid(load, NULL,
                               "a retry policy must be an object, such as {delay: PT3S}, or a name "
                               "defined under use.retries");
    struct rv_retry *retry = RV_NEW(load->arena, struct rv_retry);
    if (retry == NULL)
        return rv_load_full(load);
    retry->count_max = -1;
    *ret_retry = retry;
    size_t path = load->path.len;
    RV_TRY(rv_load_members(load, policy, known, "a retry policy"));
    RV_TRY(rv_load_past(load, rv_load_expression(load, policy, "when", RV_PLACE_TASK, &retry->when),
                        path));
    RV_TRY(rv_load_past(
        load, rv_load_expression(load, policy, "exceptWhen", RV_PLACE_TASK, &retry->except_when),
        path));
    RV_TRY(rv_load_past(
        load, rv_load_computed_duration(load, policy, "delay", RV_PLACE_TASK, &retry->delay),
        path));
    RV_TRY(rv_load_past(load, load_backoff(load, policy, &retry->backoff), path));
    RV_TRY(rv_load_past(load, load_limit(load, policy, retry), path));
    return rv_load_past(load, load_jitter(load, policy, retry), path);
}

static enum rv_err load_catch_retry(struct rv_load *load, const struct rv_json *caught,
                                    struct rv_catch *into)
{
    const struct rv_json *policy = rv_json_get(caught, RV_STR("retry"));
    if (policy == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("retry"));
    struct rv_str saved = RV_STR_NONE;
    if (policy->type == RV_JSON_STRING)
        RV_TRY(rv_load_enter_named(load, "retries", rv_json_str(policy), &policy, &saved));
    enum rv_err err = rv_load_retry(load, policy, &into->retry);
    if (saved.at != NULL)
        rv_load_leave_named(load, saved);
    if (err != RV_OK)
        return err;
    rv_load_pop(load, path);
    return RV_OK;
}

static uint32_t retry_uses(const struct rv_retry *retry)
{
    uint32_t uses = retry != NULL && retry->when != NULL ? retry->when->uses : 0;
    uses |= retry != NULL ? rv_template_uses(retry->delay.computed) : 0;
    return uses | (retry != NULL && retry->except_when != NULL ? retry->except_when->uses : 0);
}

/* What reads the error: conditions, the retry policy and the steps of the catch. */
static enum rv_err load_catch_uses(struct rv_load *load, const struct rv_json *caught,
                                   uint32_t number, struct rv_node *node)
{
    struct rv_catch *into = node->caught;
    size_t at = load->path.len;
    enum rv_err err = rv_load_expression(load, caught, "when", RV_PLACE_TASK, &into->when);
    RV_TRY(rv_load_past(load, err, at));
    err = rv_load_expression(load, caught, "exceptWhen", RV_PLACE_TASK, &into->except_when);
    RV_TRY(rv_load_past(load, err, at));
    RV_TRY(rv_load_past(load, load_catch_retry(load, caught, into), at));
    if (((into->when ? into->when->uses : 0) | (into->except_when ? into->except_when->uses : 0) |
         retry_uses(into->retry)) &
        RV_VAR_BIT(RV_VAR_TASK))
        node->keeps_raw = true;
    into->keeps_error = false; /* those look at it at once; only `do` looks later */
    const struct rv_json *list = rv_json_get(caught, RV_STR("do"));
    if (list == NULL)
        return RV_OK;
    size_t body = rv_load_push(load, RV_STR("do"));
    RV_TRY(rv_load_scope(load, list, number, RV_ROLE_CATCH, &into->body));
    rv_load_pop(load, body);
    return RV_OK;
}

enum rv_err rv_load_catch(struct rv_load *load, const struct rv_json *task, struct rv_node *node)
{
    static const struct rv_load_property known[] = {
        {"errors", false}, {"as", false}, {"when", false}, {"exceptWhen", false},
        {"retry", false},  {"do", false}, {"then", false}, {NULL, false}};
    uint32_t number = node->body->owner;
    const struct rv_json *caught;
    rv_assert(load->definition->nodes[number] == node);
    RV_TRY(rv_load_member(load, task, "catch", RV_JSON_OBJECT, &caught));
    if (caught == NULL)
        return rv_load_invalid(load, NULL, "try needs `catch`");
    struct rv_catch *into = RV_NEW(load->arena, struct rv_catch);
    if (into == NULL)
        return rv_load_full(load);
    node->caught = into;
    size_t path = rv_load_push(load, RV_STR("catch"));
    size_t at = load->path.len;
    RV_TRY(rv_load_members(load, caught, known, "catch"));
    RV_TRY(rv_load_past(load, load_filter(load, caught, into), at));
    RV_TRY(rv_load_past(load, load_variable(load, caught, &into->variable), at));
    const struct rv_load_error error = {load->errors, into->variable, number};
    load->errors = &error;
    enum rv_err err = load_catch_uses(load, caught, number, node);
    load->errors = error.outer;
    if (err != RV_OK)
        return err;
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_error_text(struct rv_load *load, const struct rv_json *error,
                                   const char *key, struct rv_template **ret_template)
{
    struct rv_str text;
    RV_TRY(rv_load_string(load, error, key, &text));
    if (text.at == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(key));
    RV_TRY(rv_load_template(load, rv_json_get(error, rv_str_of(key)), RV_PLACE_TASK, ret_template));
    rv_load_pop(load, path);
    return RV_OK;
}

enum rv_err rv_load_error(struct rv_load *load, const struct rv_json *error,
                          struct rv_raise_task **ret_raise)
{
    static const struct rv_load_property known[] = {{"type", false},     {"status", false},
                                                    {"instance", false}, {"title", false},
                                                    {"detail", false},   {NULL, false}};
    if (error->type != RV_JSON_OBJECT)
        return rv_load_invalid(
            load, NULL,
            "an error must be an object with type and status, or a name defined under use.errors");
    struct rv_raise_task *raise = RV_NEW(load->arena, struct rv_raise_task);
    if (raise == NULL)
        return rv_load_full(load);
    *ret_raise = raise;
    /* The written `instance` is checked and no more: the runtime sets it when the error is raised
     * (DSL reference, Error). */
    struct rv_str instance;
    RV_TRY(rv_load_members(load, error, known, "an error"));
    if ((rv_json_get(error, RV_STR("type")) == NULL ||
         rv_json_get(error, RV_STR("status")) == NULL))
        RV_TRY(rv_load_invalid(load, NULL, "an error needs `type` and `status`"));
    RV_TRY(load_error_text(load, error, "type", &raise->type));
    RV_TRY(rv_load_int(load, error, "status", 0, 999, &raise->status));
    RV_TRY(rv_load_string(load, error, "instance", &instance));
    RV_TRY(load_error_text(load, error, "title", &raise->title));
    return load_error_text(load, error, "detail", &raise->detail);
}

enum use_kind { USE_ERRORS, USE_RETRIES, USE_TIMEOUTS, USE_AUTHENTICATIONS };

static enum rv_err load_use_entry(struct rv_load *load, enum use_kind kind,
                                  const struct rv_json *value)
{
    static const struct rv_load_property known[] = {{"after", false}, {NULL, false}};
    struct rv_raise_task *raise;
    struct rv_retry *retry;
    struct rv_template *policy;
    struct rv_duration after = {0};
    switch (kind) {
    case USE_ERRORS:
        return rv_load_error(load, value, &raise);
    case USE_RETRIES:
        return rv_load_retry(load, value, &retry);
    case USE_AUTHENTICATIONS:
        return rv_load_authentication(load, value, &policy);
    case USE_TIMEOUTS:
        if (value->type != RV_JSON_OBJECT || rv_json_get(value, RV_STR("after")) == NULL)
            return rv_load_invalid(load, NULL, "a timeout must be an object with `after`");
        break;
    }
    RV_TRY(rv_load_members(load, value, known, "a timeout"));
    return rv_load_computed_duration(load, value, "after", 0, &after);
}

static enum rv_err load_use_kind(struct rv_load *load, const struct rv_json *use, const char *key,
                                 enum use_kind kind)
{
    const struct rv_json *named;
    rv_assert(load->shape_only);
    RV_TRY(rv_load_member(load, use, key, RV_JSON_OBJECT, &named));
    if (named == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(key));
    for (uint32_t i = 0; i < named->len; i++) {
        size_t entry = rv_load_push(load, rv_json_str(&named->u.members[i].key));
        RV_TRY(rv_load_past(load, load_use_entry(load, kind, &named->u.members[i].value), entry));
        rv_load_pop(load, entry);
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_use_kinds(struct rv_load *load, const struct rv_json *use)
{
    static const struct rv_load_property known[] = {
        {"errors", false},          {"retries", false}, {"timeouts", false},
        {"authentications", false}, {"catalogs", true}, {"extensions", true},
        {"functions", true},        {"secrets", false}, {NULL, false}};
    size_t at = load->path.len;
    RV_TRY(rv_load_members(load, use, known, "use"));
    RV_TRY(rv_load_past(load, load_use_kind(load, use, "errors", USE_ERRORS), at));
    RV_TRY(rv_load_past(load, load_use_kind(load, use, "retries", USE_RETRIES), at));
    RV_TRY(rv_load_past(load, load_use_kind(load, use, "timeouts", USE_TIMEOUTS), at));
    RV_TRY(rv_load_past(load, rv_load_secrets(load, use), at));
    return rv_load_past(load, load_use_kind(load, use, "authentications", USE_AUTHENTICATIONS), at);
}

enum rv_err rv_load_use(struct rv_load *load, const struct rv_json *use)
{
    size_t path = rv_load_push(load, RV_STR("use"));
    rv_assert(!load->shape_only);
    load->shape_only = true;
    enum rv_err err = load_use_kinds(load, use);
    load->shape_only = false;
    if (err != RV_OK)
        return err;
    rv_load_pop(load, path);
    return RV_OK;
}

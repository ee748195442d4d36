/* One task: what every kind has in common, and what each kind says. */
#include "base/limits.h"
#include "base/suggest.h"
#include "workflow/load_priv.h"

/* A kind is told by the one member that only it has. */
struct kind {
    const char *key;
    enum rv_node_kind kind;
    bool unsupported;
    const char *extra[2]; /* further members */
};

static const struct kind kinds[] = {
    /* `for` first: it has a `do` as well. */
    {"for", RV_NODE_WORKFLOW, true, {"while", "do"}},
    {"fork", RV_NODE_WORKFLOW, true, {NULL, NULL}},
    {"emit", RV_NODE_WORKFLOW, true, {NULL, NULL}},
    {"listen", RV_NODE_WORKFLOW, true, {"foreach", NULL}},
    {"run", RV_NODE_WORKFLOW, true, {NULL, NULL}},
    {"call", RV_NODE_CALL, false, {"with", NULL}},
    {"do", RV_NODE_DO, false, {NULL, NULL}},
    {"set", RV_NODE_SET, false, {NULL, NULL}},
    {"switch", RV_NODE_SWITCH, false, {NULL, NULL}},
    {"try", RV_NODE_TRY, false, {"catch", NULL}},
    {"raise", RV_NODE_RAISE, false, {NULL, NULL}},
    {"wait", RV_NODE_WAIT, false, {NULL, NULL}},
};
enum { KINDS = sizeof kinds / sizeof *kinds, COMMON = 7 };

static const struct rv_load_property common[COMMON] = {
    {"if", false},      {"input", false}, {"output", false},  {"export", false},
    {"timeout", false}, {"then", false},  {"metadata", false}};

static bool is_common(struct rv_str key)
{
    for (size_t i = 0; i < COMMON; i++)
        if (rv_str_is(key, common[i].name))
            return true;
    return false;
}

bool rv_load_is_property(struct rv_str key)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];
        if (rv_str_is(key, kind->key))
            return true;
        for (size_t e = 0; e < 2 && kind->extra[e] != NULL; e++)
            if (rv_str_is(key, kind->extra[e]))
                return true;
    }
    return is_common(key);
}

enum rv_err rv_load_no_name(struct rv_load *load)
{
    return rv_load_invalid(
        load, NULL, "this step has no name; write \"- NAME:\" and indent its properties below");
}

static enum rv_err no_kind(struct rv_load *load, const struct rv_json *task)
{
    const char *names[KINDS + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < KINDS; i++)
        if (!kinds[i].unsupported)
            names[count++] = kinds[i].key;
    for (uint32_t i = 0; i < task->len; i++) {
        struct rv_str key = rv_json_str(&task->u.members[i].key);
        const char *near = rv_suggest(key, names);
        if (near != NULL && !is_common(key))
            return rv_load_invalid_name(load, key,
                                        "unknown property \"%.*s\" under a step; "
                                        "did you mean \"%s\"?",
                                        RV_STR_FMT(key), near);
    }
    if (rv_load_is_property(load->node->name)) /* as in "- set: {a: 1}" */
        return rv_load_no_name(load);
    return rv_load_invalid(
        load, NULL, "this step has no action; add one of call, do, set, switch, try, raise, wait");
}

static const struct kind *kind_of(const struct rv_json *task)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (rv_json_get(task, rv_str_of(kinds[i].key)) != NULL)
            return &kinds[i];
    }
    return NULL;
}

/* A definition is not to bring programs that the server then runs: that is an agent's. */
static enum rv_err kind_unsupported(struct rv_load *load, const struct rv_json *task,
                                    const struct kind *kind)
{
    static const char *const programs[] = {"shell", "script", "container"};
    const struct rv_json *run = rv_json_get(task, RV_STR("run"));
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (rv_json_get(run, rv_str_of(programs[i])) != NULL)
            return rv_load_unsupported_name(
                load, kind->key,
                "`run: %s` is not supported, because the server executes no programs; call an "
                "agent instead, and run `reeve agent exec NAME -- COMMAND` on the machine that has "
                "the program",
                programs[i]);
    return rv_load_unsupported_name(load, kind->key, "%s is not supported yet", kind->key);
}

/* The names of all members, and that the kind is the only one and supported. */
static enum rv_err check_kind(struct rv_load *load, const struct rv_json *task,
                              const struct kind *kind)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct rv_str other = rv_str_of(kinds[i].key);
        bool extra = kind->extra[1] != NULL && rv_str_is(other, kind->extra[1]);
        if (&kinds[i] != kind && !extra && rv_json_get(task, other) != NULL)
            return rv_load_invalid_name(
                load, other, "a step cannot have both %s and %s; split it into two steps",
                kind->key, kinds[i].key);
    }
    struct rv_load_property known[COMMON + 4];
    size_t n = 0;
    known[n++] = (struct rv_load_property){kind->key, false};
    for (size_t i = 0; i < 2 && kind->extra[i] != NULL; i++)
        known[n++] = (struct rv_load_property){kind->extra[i], false};
    rv_assert(n + COMMON < sizeof known / sizeof *known);
    memcpy(known + n, common, sizeof common);
    known[n + COMMON] = (struct rv_load_property){NULL, false};
    char under[32] = "a step (";
    size_t len = strlen(kind->key);
    rv_assert(8 + len + 2 <= sizeof under);
    memcpy(under + 8, kind->key, len);
    memcpy(under + 8 + len, ")", 2);
    RV_TRY(rv_load_members(load, task, known, under));
    if (kind->unsupported)
        RV_TRY(kind_unsupported(load, task, kind));
    return RV_OK;
}

/* `input`, `output` and `export`: an object with one transform and a schema. */
static enum rv_err load_data(struct rv_load *load, const struct rv_json *task, const char *key,
                             const char *transform, uint32_t available,
                             struct rv_template **ret_template)
{
    const struct rv_load_property known[] = {{transform, false}, {"schema", true}, {NULL, false}};
    const struct rv_json *data;
    RV_TRY(rv_load_member(load, task, key, RV_JSON_OBJECT, &data));
    if (data == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(key));
    RV_TRY(rv_load_members(load, data, known, key));
    RV_TRY(rv_load_transform(load, data, transform, available, ret_template));
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_common(struct rv_load *load, const struct rv_json *task,
                               struct rv_node *node)
{
    size_t path = load->path.len;
    enum rv_err err = rv_load_expression(load, task, "if", RV_PLACE_BEFORE, &node->condition);
    RV_TRY(rv_load_past(load, err, path));
    err = load_data(load, task, "input", "from", RV_PLACE_BEFORE, &node->input_from);
    RV_TRY(rv_load_past(load, err, path));
    err = load_data(load, task, "output", "as", RV_PLACE_TASK, &node->output_as);
    RV_TRY(rv_load_past(load, err, path));
    err = load_data(load, task, "export", "as", RV_PLACE_EXPORT, &node->export_as);
    RV_TRY(rv_load_past(load, err, path));
    err = rv_load_timeout(load, task, RV_PLACE_BEFORE, &node->timeout);
    RV_TRY(rv_load_past(load, err, path));
    uint32_t later = rv_template_uses(node->output_as) | rv_template_uses(node->export_as);
    node->keeps_input = (later & RV_VAR_BIT(RV_VAR_INPUT)) != 0;
    node->keeps_raw = (later & RV_VAR_BIT(RV_VAR_TASK)) != 0;
    node->keeps_from = (rv_template_uses(node->input_from) & RV_VAR_BIT(RV_VAR_UNDO)) != 0;
    return RV_OK;
}

bool rv_agent_name_good(struct rv_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (i == 0 || (c != '-' && c != '_' && c != '.')))
            return false;
    }
    return s.len >= 1 && s.len <= RV_NAME_BYTES_MAX;
}

/* The input of an agent. */
static enum rv_err load_with(struct rv_load *load, const struct rv_json *task,
                             const struct rv_json **ret_with)
{
    *ret_with = rv_json_get(task, RV_STR("with"));
    if (*ret_with == NULL || (*ret_with)->type == RV_JSON_OBJECT)
        return RV_OK;
    return rv_load_invalid(load, "with", "with must be an object, such as { order: '${ . }' }");
}

static enum rv_err load_agent(struct rv_load *load, struct rv_str agent)
{
    static const char *const functions[] = {"grpc", "openapi", "asyncapi", "a2a", "mcp"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (rv_str_is(agent, functions[i]))
            return rv_load_unsupported(load, "call",
                                       "call: %s is not supported yet; call an agent "
                                       "by its name",
                                       functions[i]);
    }
    if (memchr(agent.at, '/', agent.len) != NULL || memchr(agent.at, '@', agent.len) != NULL)
        return rv_load_unsupported(load, "call",
                                   "functions of a catalog or a URL are not supported "
                                   "yet; call an agent by its name");
    if (!rv_agent_name_good(agent))
        return rv_load_invalid(load, "call",
                               "an agent's name begins with a letter or digit, contains only "
                               "letters, digits, \"-\", \"_\" and \".\", and has at most %d bytes",
                               RV_NAME_BYTES_MAX);
    return RV_OK;
}

static enum rv_err load_call(struct rv_load *load, const struct rv_json *task, struct rv_node *node)
{
    size_t path = load->path.len;
    enum rv_err err = rv_load_string(load, task, "call", &node->agent);
    if (err == RV_OK && rv_str_is(node->agent, "http"))
        return rv_load_http(load, task, node);
    if (err == RV_OK)
        err = load_agent(load, node->agent);
    RV_TRY(rv_load_past(load, err, path));
    const struct rv_json *with;
    RV_TRY(load_with(load, task, &with));
    if (with == NULL)
        return RV_OK;
    RV_TRY(rv_load_with_metadata(load, with));
    (void)rv_load_push(load, RV_STR("with"));
    RV_TRY(rv_load_template(load, with, RV_PLACE_TASK, &node->value));
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_set(struct rv_load *load, const struct rv_json *task, struct rv_node *node)
{
    const struct rv_json *set = rv_json_get(task, RV_STR("set"));
    rv_assert(set != NULL);
    bool expression = set->type == RV_JSON_STRING && rv_is_expression(rv_json_str(set));
    if (!expression && (set->type != RV_JSON_OBJECT || set->len == 0))
        return rv_load_invalid(load, "set",
                               "set needs an object with at least one member, or an "
                               "expression in ${ }");
    size_t path = rv_load_push(load, RV_STR("set"));
    enum rv_err err = rv_load_template(load, set, RV_PLACE_TASK, &node->value);
    rv_load_pop(load, path);
    return err;
}

/* The one value in an item of a list of named things, entered: the path stands at it. */
static enum rv_err enter_case(struct rv_load *load, const struct rv_json *item,
                              const struct rv_json **ret_case)
{
    if (item->type != RV_JSON_OBJECT || item->len == 0)
        return rv_load_invalid(load, NULL, "a case must be a name with `when` and `then`");
    if (item->len > 1)
        return rv_load_invalid_name(load, rv_json_str(&item->u.members[1].key),
                                    "a list item has two cases; begin each case with its own dash");
    const struct rv_json_member *member = &item->u.members[0];
    (void)rv_load_push(load, rv_json_str(&member->key));
    if (member->value.type != RV_JSON_OBJECT)
        return rv_load_invalid(load, NULL, "a case must be an object with `when` and `then`");
    *ret_case = &member->value;
    return RV_OK;
}

static enum rv_err load_case(struct rv_load *load, const struct rv_json *item, struct rv_node *node,
                             bool *has_default)
{
    static const struct rv_load_property known[] = {
        {"when", false}, {"then", false}, {NULL, false}};
    const struct rv_json *body = NULL;
    struct rv_case *branch = &node->cases[node->cases_count++];
    RV_TRY(enter_case(load, item, &body));
    RV_TRY(rv_load_members(load, body, known, "a case"));
    if (rv_json_get(body, RV_STR("then")) == NULL)
        RV_TRY(rv_load_invalid(load, NULL, "a case needs `then`"));
    RV_TRY(rv_load_expression(load, body, "when", RV_PLACE_TASK, &branch->when));
    if (branch->when == NULL && *has_default)
        RV_TRY(rv_load_invalid(load, NULL,
                               "a second case has no `when`; only one default case is allowed"));
    *has_default = *has_default || branch->when == NULL;
    return RV_OK;
}

static enum rv_err load_switch(struct rv_load *load, const struct rv_json *task,
                               struct rv_node *node)
{
    const struct rv_json *cases;
    RV_TRY(rv_load_member(load, task, "switch", RV_JSON_ARRAY, &cases));
    rv_assert(cases != NULL); /* the kind of a task is found by this member */
    if (cases->len == 0)
        return rv_load_invalid(load, "switch", "switch needs at least one case");
    node->cases = RV_NEW_ARRAY(load->arena, struct rv_case, cases->len);
    if (node->cases == NULL)
        return rv_load_full(load);
    size_t path = rv_load_push(load, RV_STR("switch"));
    bool has_default = false;
    for (uint32_t i = 0; i < cases->len; i++) {
        size_t item = rv_load_push_index(load, i);
        rv_assert(node->cases_count == i);
        enum rv_err err = load_case(load, &cases->u.items[i], node, &has_default);
        RV_TRY(rv_load_past(load, err, item));
        rv_load_pop(load, item);
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_body(struct rv_load *load, const struct rv_json *task, const char *key,
                             struct rv_node *node)
{
    const struct rv_json *list;
    uint32_t number = load->definition->count;
    rv_assert(load->definition->nodes[number] == node); /* it owns no nodes yet */
    RV_TRY(rv_load_member(load, task, key, RV_JSON_ARRAY, &list));
    rv_assert(list != NULL);
    size_t path = rv_load_push(load, rv_str_of(key));
    RV_TRY(rv_load_scope(load, list, number, RV_ROLE_BODY, &node->body));
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_raise(struct rv_load *load, const struct rv_json *task,
                              struct rv_node *node)
{
    static const struct rv_load_property known[] = {{"error", false}, {NULL, false}};
    const struct rv_json *raise;
    RV_TRY(rv_load_member(load, task, "raise", RV_JSON_OBJECT, &raise));
    size_t path = rv_load_push(load, RV_STR("raise"));
    RV_TRY(rv_load_members(load, raise, known, "raise"));
    const struct rv_json *error = rv_json_get(raise, RV_STR("error"));
    if (error == NULL)
        return rv_load_invalid(load, NULL, "raise needs `error`");
    (void)rv_load_push(load, RV_STR("error"));
    struct rv_str saved = RV_STR_NONE;
    if (error->type == RV_JSON_STRING)
        RV_TRY(rv_load_enter_named(load, "errors", rv_json_str(error), &error, &saved));
    enum rv_err err = rv_load_error(load, error, &node->raised);
    if (saved.at != NULL)
        rv_load_leave_named(load, saved);
    if (err != RV_OK)
        return err;
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_kind(struct rv_load *load, const struct rv_json *task, struct rv_node *node)
{
    switch (node->kind) {
    case RV_NODE_CALL:
        return load_call(load, task, node);
    case RV_NODE_DO:
        return load_body(load, task, "do", node);
    case RV_NODE_SET:
        return load_set(load, task, node);
    case RV_NODE_SWITCH:
        return load_switch(load, task, node);
    case RV_NODE_TRY:
        RV_TRY(load_body(load, task, "try", node));
        return rv_load_catch(load, task, node);
    case RV_NODE_RAISE:
        return load_raise(load, task, node);
    case RV_NODE_WAIT:
        return rv_load_computed_duration(load, task, "wait", RV_PLACE_TASK, &node->wait);
    case RV_NODE_WORKFLOW:
        break;
    }
    return RV_ERR_INVALID;
}

enum rv_err rv_load_task(struct rv_load *load, const struct rv_json *task, struct rv_node *node)
{
    const struct kind *kind = kind_of(task);
    rv_assert(load->node == node);
    if (kind == NULL)
        return no_kind(load, task);
    RV_TRY(check_kind(load, task, kind));
    node->kind = kind->kind;
    size_t path = load->path.len;
    RV_TRY(load_common(load, task, node));
    RV_TRY(rv_load_past(load, load_kind(load, task, node), path));
    return rv_load_task_policy(load, task);
}

static enum rv_err unknown_target(struct rv_load *load, struct rv_str name,
                                  const struct rv_scope *scope)
{
    enum { SHOWN_MAX = 12 };
    const char **names = RV_NEW_ARRAY(load->arena, const char *, scope->count + 4);
    if (names == NULL)
        return rv_load_full(load);
    struct rv_str list = RV_STR("");
    for (uint32_t i = 0; i < scope->count; i++) {
        struct rv_str known = load->definition->nodes[scope->nodes[i]]->name;
        names[i] = rv_arena_str(load->arena, known).at;
        if (i < SHOWN_MAX && known.len > 0) /* a faulty item has no name */
            list = rv_arena_printf(load->arena, "%.*s%s%.*s", RV_STR_FMT(list),
                                   list.len > 0 ? ", " : "", RV_STR_FMT(known));
        if (names[i] == NULL || list.at == NULL)
            return rv_load_full(load);
    }
    names[scope->count] = "continue";
    names[scope->count + 1] = "exit";
    names[scope->count + 2] = "end";
    const char *near = rv_suggest(name, names);
    const char *more = scope->count > SHOWN_MAX ? ", ..." : "";
    return near != NULL ? rv_load_invalid(load, NULL,
                                          "no step is named \"%.*s\" here; did you mean "
                                          "\"%s\"? In this list are %.*s%s",
                                          RV_STR_FMT(name), near, RV_STR_FMT(list), more)
                        : rv_load_invalid(load, NULL,
                                          "no step is named \"%.*s\" here; in this list are "
                                          "%.*s%s (or continue, exit, end)",
                                          RV_STR_FMT(name), RV_STR_FMT(list), more);
}

/* `then` of an object; absent: left as it is. */
static enum rv_err load_directive(struct rv_load *load, const struct rv_json *object,
                                  const struct rv_scope *scope, const struct rv_load_names *names,
                                  struct rv_directive *directive)
{
    struct rv_str text;
    enum rv_err err = rv_load_string(load, object, "then", &text);
    if (err != RV_OK || text.at == NULL)
        return err;
    uint32_t slot;
    uint32_t target = rv_load_find_name(load, names, text, &slot);
    if (rv_str_is(text, "continue")) {
        directive->kind = RV_THEN_CONTINUE;
    } else if (rv_str_is(text, "exit")) {
        directive->kind = RV_THEN_EXIT;
    } else if (rv_str_is(text, "end")) {
        directive->kind = RV_THEN_END;
    } else if (target != 0) {
        *directive = (struct rv_directive){RV_THEN_NODE, target};
    } else {
        (void)rv_load_push(load, RV_STR("then"));
        return unknown_target(load, text, scope);
    }
    return RV_OK;
}

/* Every node between a jump backwards and its target can come round again. */
static void mark_jump(struct rv_load *load, const struct rv_scope *scope,
                      const struct rv_node *from, const struct rv_directive *directive)
{
    if (directive->kind != RV_THEN_NODE)
        return;
    rv_assert(load->definition->nodes[directive->node]->scope == scope);
    rv_assert(from->scope == scope);
    uint32_t first = load->definition->nodes[directive->node]->index;
    for (uint32_t i = first; i <= from->index; i++)
        load->definition->nodes[scope->nodes[i]]->again = true;
}

static enum rv_err load_cases_then(struct rv_load *load, const struct rv_json *cases,
                                   const struct rv_scope *scope, const struct rv_load_names *names,
                                   struct rv_node *node)
{
    size_t path = rv_load_push(load, RV_STR("switch"));
    for (uint32_t i = 0; i < node->cases_count; i++) {
        rv_assert(i < cases->len);
        const struct rv_json *written = &cases->u.items[i];
        if (written->type != RV_JSON_OBJECT || written->len == 0) /* a faulty one */
            continue;
        const struct rv_json_member *branch = &written->u.members[0];
        size_t item = rv_load_push_index(load, i);
        (void)rv_load_push(load, rv_json_str(&branch->key));
        enum rv_err err = load_directive(load, &branch->value, scope, names, &node->cases[i].then);
        mark_jump(load, scope, node, &node->cases[i].then);
        RV_TRY(rv_load_past(load, err, item));
        rv_load_pop(load, item);
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_task_then(struct rv_load *load, const struct rv_json *task,
                                  const struct rv_scope *scope, const struct rv_load_names *names,
                                  struct rv_node *node)
{
    size_t task_path = load->path.len;
    enum rv_err err = load_directive(load, task, scope, names, &node->then);
    mark_jump(load, scope, node, &node->then);
    RV_TRY(rv_load_past(load, err, task_path));
    if (node->kind == RV_NODE_SWITCH)
        return load_cases_then(load, rv_json_get(task, RV_STR("switch")), scope, names, node);
    if (node->kind != RV_NODE_TRY || node->caught == NULL)
        return RV_OK;
    const struct rv_json *caught = rv_json_get(task, RV_STR("catch"));
    size_t path = rv_load_push(load, RV_STR("catch"));
    RV_TRY(load_directive(load, caught, scope, names, &node->caught->then));
    node->caught->has_then = rv_json_get(caught, RV_STR("then")) != NULL;
    mark_jump(load, scope, node, &node->caught->then);
    rv_load_pop(load, path);
    return RV_OK;
}

enum rv_err rv_load_directives(struct rv_load *load, const struct rv_json *list,
                               struct rv_scope *scope, const struct rv_load_names *names)
{
    rv_assert(scope->count == list->len);
    for (uint32_t i = 0; i < scope->count; i++) {
        struct rv_node *node = load->definition->nodes[scope->nodes[i]];
        if (scope->nodes[i] == 0) /* a faulty item */
            continue;
        rv_assert(node->index == i);
        size_t path = rv_load_push_index(load, i);
        (void)rv_load_push(load, node->name);
        const struct rv_json *task = &list->u.items[i].u.members[0].value;
        RV_TRY(rv_load_past(load, load_task_then(load, task, scope, names, node), path));
        rv_load_pop(load, path);
    }
    return RV_OK;
}

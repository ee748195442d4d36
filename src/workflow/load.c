/* The document as a whole, its scopes and what can be told only of all nodes together. The order in
 * which nodes are numbered does not depend on the order of an object's members, so that it is the
 * same for every text that has the same canonical form and thus the same content hash. */
#include "base/limits.h"
#include "workflow/load_priv.h"
#include "workflow/payload_priv.h"

/* DNS label: letters, digits, inner hyphens, 63 at most (DSL schema, WorkflowName). */
static bool is_label(struct rv_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c != '-' || i == 0 || i == s.len - 1))
            return false;
    }
    return s.len >= 1 && s.len <= 63;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* One number of a version, without leading zeros; the bytes it has, 0 when there is none. */
static size_t version_number(struct rv_str s, size_t from)
{
    size_t i = from;
    while (i < s.len && is_digit(s.at[i]))
        i++;
    return i - from > 1 && s.at[from] == '0' ? 0 : i - from;
}

/* MAJOR.MINOR.PATCH with optional -pre.release and +build. */
static bool is_version(struct rv_str s)
{
    size_t i = 0;
    for (int part = 0; part < 3; part++) {
        size_t n = version_number(s, i);
        if (n == 0)
            return false;
        i += n;
        if (part < 2 && (i >= s.len || s.at[i++] != '.'))
            return false;
    }
    if (i == s.len)
        return true;
    if (s.at[i] != '-' && s.at[i] != '+')
        return false;
    bool empty = true;
    bool plus = s.at[i] == '+';
    for (i++; i < s.len; i++) {
        char c = s.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-';
        bool separator = c == '.' || (c == '+' && !plus);
        if ((!alnum && !separator) || (separator && empty))
            return false;
        plus = plus || c == '+';
        empty = separator;
    }
    return !empty;
}

static enum rv_err load_version(struct rv_load *load, const struct rv_json *document,
                                const char *key, struct rv_str *ret_version)
{
    enum rv_err err = rv_load_string(load, document, key, ret_version);
    if (err != RV_OK)
        return err;
    const char *example = strcmp(key, "dsl") == 0 ? "1.0.3" : "1.0.0";
    if (ret_version->at == NULL)
        return rv_load_invalid(load, NULL, "document needs %s, such as %s: '%s'", key, key,
                               example);
    if (!is_version(*ret_version))
        return rv_load_invalid(load, key, "%s must be a semantic version, such as '%s'", key,
                               example);
    return RV_OK;
}

/* Every version below 1.1.0, with its pre-releases (semver.org, 11): what they have in common has
 * the same meaning. */
static enum rv_err load_dsl(struct rv_load *load, const struct rv_json *document)
{
    struct rv_str dsl = RV_STR_NONE;
    enum rv_err err = load_version(load, document, "dsl", &dsl);
    if (err != RV_OK)
        return err;
    bool below = rv_str_begins(dsl, RV_STR("0.")) || rv_str_begins(dsl, RV_STR("1.0.")) ||
                 rv_str_begins(dsl, RV_STR("1.1.0-"));
    return below ? RV_OK
                 : rv_load_unsupported(load, "dsl", "DSL %.*s is not supported; use 1.0.3",
                                       RV_STR_FMT(dsl));
}

static enum rv_err load_label(struct rv_load *load, const struct rv_json *document, const char *key,
                              struct rv_str *ret_label)
{
    enum rv_err err = rv_load_string(load, document, key, ret_label);
    if (err != RV_OK)
        return err;
    if (ret_label->at == NULL)
        return rv_load_invalid(load, NULL, "document needs a %s", key);
    if (!is_label(*ret_label))
        return rv_load_invalid(
            load, key,
            "%s must consist of letters, digits and inner hyphens, at most 63 characters", key);
    return RV_OK;
}

static enum rv_err load_document(struct rv_load *load, const struct rv_json *document)
{
    static const struct rv_load_property known[] = {
        {"dsl", false},     {"namespace", false}, {"name", false},
        {"version", false}, {"title", false},     {"summary", false},
        {"tags", false},    {"metadata", false},  {NULL, false}};
    struct rv_definition *definition = load->definition;
    struct rv_str text;
    const struct rv_json *object;
    size_t outer = rv_load_push(load, RV_STR("document"));
    size_t path = load->path.len;
    RV_TRY(rv_load_members(load, document, known, "document"));
    RV_TRY(rv_load_past(load, load_dsl(load, document), path));
    RV_TRY(rv_load_past(load, load_label(load, document, "namespace", &definition->space), path));
    RV_TRY(rv_load_past(load, load_label(load, document, "name", &definition->name), path));
    RV_TRY(rv_load_past(load, load_version(load, document, "version", &definition->version), path));
    RV_TRY(rv_load_past(load, rv_load_string(load, document, "title", &text), path));
    RV_TRY(rv_load_past(load, rv_load_string(load, document, "summary", &text), path));
    RV_TRY(
        rv_load_past(load, rv_load_member(load, document, "tags", RV_JSON_OBJECT, &object), path));
    RV_TRY(rv_load_past(load, rv_load_document_policy(load, document), path));
    rv_load_pop(load, outer);
    return RV_OK;
}

static enum rv_err load_evaluate(struct rv_load *load, const struct rv_json *root)
{
    static const struct rv_load_property known[] = {
        {"language", false}, {"mode", false}, {NULL, false}};
    const struct rv_json *evaluate;
    struct rv_str language = RV_STR_NONE;
    struct rv_str mode = RV_STR_NONE;
    RV_TRY(rv_load_member(load, root, "evaluate", RV_JSON_OBJECT, &evaluate));
    if (evaluate == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("evaluate"));
    RV_TRY(rv_load_members(load, evaluate, known, "evaluate"));
    RV_TRY(rv_load_string(load, evaluate, "language", &language));
    RV_TRY(rv_load_string(load, evaluate, "mode", &mode));
    if (language.at != NULL && !rv_str_is(language, "jq"))
        RV_TRY(rv_load_unsupported(load, "language",
                                   "the language %.*s is not supported; "
                                   "write expressions in jq",
                                   RV_STR_FMT(language)));
    if (mode.at != NULL && rv_str_is(mode, "loose"))
        RV_TRY(rv_load_unsupported(load, "mode",
                                   "loose mode is not supported yet; "
                                   "put expressions in ${ }"));
    else if (mode.at != NULL && !rv_str_is(mode, "strict"))
        RV_TRY(rv_load_invalid(load, "mode", "mode must be strict or loose"));
    rv_load_pop(load, path);
    return RV_OK;
}

/* `timeout` as an object, the path set to it. */
static enum rv_err load_after(struct rv_load *load, const struct rv_json *timeout,
                              uint32_t available, struct rv_duration *ret_timeout)
{
    static const struct rv_load_property known[] = {{"after", false}, {NULL, false}};
    if (timeout->type != RV_JSON_OBJECT)
        return rv_load_invalid(
            load, NULL,
            "a timeout must be an object with `after`, or a name defined under use.timeouts");
    RV_TRY(rv_load_members(load, timeout, known, "a timeout"));
    if (rv_json_get(timeout, RV_STR("after")) == NULL)
        return rv_load_invalid(load, NULL, "a timeout needs `after`, such as after: PT30S");
    RV_TRY(rv_load_computed_duration(load, timeout, "after", available, ret_timeout));
    if (ret_timeout->computed == NULL && ret_timeout->ms == 0)
        return rv_load_invalid(load, "after", "a timeout must be longer than 0");
    return RV_OK;
}

enum rv_err rv_load_timeout(struct rv_load *load, const struct rv_json *object, uint32_t available,
                            struct rv_duration *ret_timeout)
{
    const struct rv_json *timeout = rv_json_get(object, RV_STR("timeout"));
    if (timeout == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("timeout"));
    struct rv_str saved = RV_STR_NONE;
    enum rv_err err = RV_OK;
    if (timeout->type == RV_JSON_STRING)
        err = rv_load_enter_named(load, "timeouts", rv_json_str(timeout), &timeout, &saved);
    if (err == RV_OK)
        err = load_after(load, timeout, available, ret_timeout);
    if (saved.at != NULL)
        rv_load_leave_named(load, saved);
    rv_load_pop(load, path);
    return err;
}

static struct rv_node *node_new(struct rv_load *load, const struct rv_scope *scope,
                                const struct rv_json_member *member)
{
    struct rv_node *node = RV_NEW(load->arena, struct rv_node);
    struct rv_definition *definition = load->definition;
    if (node == NULL)
        return NULL;
    node->scope = scope;
    node->name = rv_json_str(&member->key);
    node->source = &member->value;
    node->reference = rv_arena_str(load->arena, rv_buf_str(&load->path));
    rv_assert(scope->owner <= definition->count);
    definition->nodes[++definition->count] = node;
    return node->reference.at != NULL ? node : NULL;
}

/* Most who write an item with two members have indented a property of its step too little. */
static enum rv_err two_members(struct rv_load *load, const struct rv_json *item)
{
    rv_assert(item->len >= 2);
    struct rv_str name = rv_json_str(&item->u.members[0].key);
    struct rv_str second = rv_json_str(&item->u.members[1].key);
    if (!rv_load_is_property(second))
        return rv_load_invalid_name(load, second,
                                    "a list item has two steps; begin \"%.*s\" with its own dash",
                                    RV_STR_FMT(second));
    if (rv_load_is_property(name))
        return rv_load_no_name(load);
    bool bare = item->u.members[0].value.type == RV_JSON_NULL;
    return rv_load_invalid_name(
        load, second, "indent \"%.*s\" %s: it is a property of the step \"%.*s\"",
        RV_STR_FMT(second), bare ? "by two more columns" : "like the other properties of its step",
        RV_STR_FMT(name));
}

static enum rv_err check_item(struct rv_load *load, const struct rv_json *item)
{
    if (item->type != RV_JSON_OBJECT || item->len == 0)
        return rv_load_invalid(load, NULL,
                               "an item of a step list must be a name with a step, such as - "
                               "reserveStock: {call: inventory}");
    struct rv_str name = rv_json_str(&item->u.members[0].key);
    if (item->len > 1)
        return two_members(load, item);
    if (name.len == 0 || name.len > RV_NAME_BYTES_MAX)
        return rv_load_invalid_name(load, name, "a step's name has 1 to %d bytes",
                                    RV_NAME_BYTES_MAX);
    if (rv_str_is(name, "continue") || rv_str_is(name, "exit") || rv_str_is(name, "end"))
        return rv_load_invalid_name(load, name,
                                    "\"%.*s\" is a flow directive; give the step "
                                    "another name",
                                    RV_STR_FMT(name));
    return RV_OK;
}

uint32_t rv_load_find_name(const struct rv_load *load, const struct rv_load_names *names,
                           struct rv_str name, uint32_t *ret_slot)
{
    rv_assert((names->room & (names->room - 1)) == 0);
    uint32_t at = (uint32_t)rv_payload_hash(name) & (names->room - 1);
    struct rv_node **nodes = load->definition->nodes;
    while (names->nodes[at] != 0 && !rv_str_eq(nodes[names->nodes[at]]->name, name))
        at = (at + 1) & (names->room - 1);
    *ret_slot = at;
    return names->nodes[at];
}

/* A table of the scope's names; one that stands twice would make `then` ambiguous. */
static enum rv_err load_names(struct rv_load *load, const struct rv_scope *scope,
                              struct rv_load_names *names)
{
    names->room = 16;
    while (names->room < scope->count * 2)
        names->room *= 2;
    names->nodes = RV_NEW_ARRAY(load->arena, uint32_t, names->room);
    if (names->nodes == NULL)
        return rv_load_full(load);
    rv_assert(names->room > scope->count); /* the search for a name ends at a free slot */
    for (uint32_t i = 0; i < scope->count; i++) {
        rv_assert(scope->nodes[i] <= load->definition->count);
        struct rv_str name = load->definition->nodes[scope->nodes[i]]->name;
        uint32_t at;
        if (scope->nodes[i] == 0) /* a faulty item */
            continue;
        if (rv_load_find_name(load, names, name, &at) != 0) {
            size_t path = rv_load_push_index(load, i);
            enum rv_err err = rv_load_invalid_name(
                load, name, "another step of this list has the name \"%.*s\"", RV_STR_FMT(name));
            RV_TRY(rv_load_past(load, err, path));
            continue;
        }
        names->nodes[at] = scope->nodes[i];
    }
    return RV_OK;
}

static enum rv_err load_item(struct rv_load *load, const struct rv_json *item,
                             struct rv_scope *scope, uint32_t index)
{
    size_t path = rv_load_push_index(load, index);
    rv_assert(index == scope->count);
    RV_TRY(check_item(load, item));
    const struct rv_json_member *member = &item->u.members[0];
    (void)rv_load_push(load, rv_json_str(&member->key));
    if (member->value.type != RV_JSON_OBJECT) {
        struct rv_str name = rv_json_str(&member->key);
        if (rv_load_is_property(name))
            return rv_load_no_name(load);
        return rv_load_invalid(load, NULL,
                               "a step must be an object, such as {call: inventory}; write the "
                               "properties of \"%.*s\" below it, two columns further to the right",
                               RV_STR_FMT(name));
    }
    struct rv_node *node = node_new(load, scope, member);
    if (node == NULL)
        return rv_load_full(load);
    scope->nodes[index] = load->definition->count;
    node->index = index;
    struct rv_node *outer = load->node;
    load->node = node;
    enum rv_err err = rv_load_task(load, &member->value, node);
    load->node = outer;
    rv_load_pop(load, path);
    return err;
}

static enum rv_err load_items(struct rv_load *load, const struct rv_json *list,
                              struct rv_scope *scope)
{
    size_t path = load->path.len;
    struct rv_load_names names;
    for (uint32_t i = 0; i < list->len; i++) {
        RV_TRY(rv_load_past(load, load_item(load, &list->u.items[i], scope, i), path));
        scope->count++;
    }
    RV_TRY(load_names(load, scope, &names));
    return rv_load_directives(load, list, scope, &names);
}

enum rv_err rv_load_scope(struct rv_load *load, const struct rv_json *list, uint32_t owner,
                          enum rv_scope_role role, struct rv_scope **ret_scope)
{
    if (list->type != RV_JSON_ARRAY || list->len == 0)
        return rv_load_invalid(load, NULL, "this list must have at least one step");
    rv_assert(owner <= load->definition->count);
    rv_assert(load->depth <= RV_SCOPE_DEPTH_MAX);
    if (load->depth == RV_SCOPE_DEPTH_MAX)
        return rv_load_invalid(load, NULL, "steps are nested deeper than %d levels",
                               RV_SCOPE_DEPTH_MAX);
    struct rv_scope *scope = RV_NEW(load->arena, struct rv_scope);
    if (scope == NULL)
        return rv_load_full(load);
    scope->owner = owner;
    scope->role = role;
    scope->nodes = RV_NEW_ARRAY(load->arena, uint32_t, list->len);
    if (scope->nodes == NULL)
        return rv_load_full(load);
    load->depth++;
    enum rv_err err = load_items(load, list, scope);
    load->depth--;
    *ret_scope = scope;
    return err;
}

/* `input.from` or `output.as` of the workflow; absent: *ret_template stays as it is. */
static enum rv_err load_workflow_data(struct rv_load *load, const struct rv_json *root,
                                      const char *name, const char *key, uint32_t available,
                                      struct rv_template **ret_template)
{
    const struct rv_load_property known[] = {{key, false}, {"schema", true}, {NULL, false}};
    const struct rv_json *data;
    RV_TRY(rv_load_member(load, root, name, RV_JSON_OBJECT, &data));
    if (data == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(name));
    RV_TRY(rv_load_members(load, data, known, name));
    RV_TRY(rv_load_transform(load, data, key, available, ret_template));
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_root_document(struct rv_load *load, const struct rv_json *root)
{
    const struct rv_json *document = NULL;
    enum rv_err err = rv_load_member(load, root, "document", RV_JSON_OBJECT, &document);
    if (err != RV_OK)
        return err;
    return document != NULL ? load_document(load, document)
                            : rv_load_invalid(load, NULL,
                                              "the workflow needs `document` with dsl, namespace, "
                                              "name and version");
}

static enum rv_err load_root_use(struct rv_load *load, const struct rv_json *root)
{
    const struct rv_json *use = NULL;
    enum rv_err err = rv_load_member(load, root, "use", RV_JSON_OBJECT, &use);
    if (err != RV_OK || use == NULL)
        return err;
    load->use = use;
    return rv_load_use(load, use);
}

static enum rv_err load_root(struct rv_load *load, const struct rv_json *root)
{
    static const struct rv_load_property known[] = {
        {"document", false}, {"input", false},   {"use", false},
        {"do", false},       {"timeout", false}, {"output", false},
        {"evaluate", false}, {"schedule", true}, {NULL, false}};
    if (root->type != RV_JSON_OBJECT)
        return rv_load_invalid(load, NULL, "a workflow must be an object with `document` and `do`");
    const struct rv_json *list = NULL;
    struct rv_node *node = load->definition->nodes[0];
    size_t top = load->path.len;
    rv_assert(node->kind == RV_NODE_WORKFLOW);
    rv_assert(load->definition->count == 0);
    RV_TRY(rv_load_members(load, root, known, "the workflow"));
    RV_TRY(rv_load_past(load, load_root_document(load, root), top));
    RV_TRY(rv_load_past(load, load_evaluate(load, root), top));
    RV_TRY(rv_load_past(load, load_root_use(load, root), top));
    RV_TRY(rv_load_past(load, rv_load_timeout(load, root, RV_PLACE_WORKFLOW_INPUT, &node->timeout),
                        top));
    RV_TRY(rv_load_past(
        load,
        load_workflow_data(load, root, "input", "from", RV_PLACE_WORKFLOW_INPUT, &node->input_from),
        top));
    RV_TRY(rv_load_past(
        load,
        load_workflow_data(load, root, "output", "as", RV_PLACE_WORKFLOW_OUTPUT, &node->output_as),
        top));
    RV_TRY(rv_load_member(load, root, "do", RV_JSON_ARRAY, &list));
    if (list == NULL)
        return rv_load_invalid(load, NULL, "the workflow needs `do`, a list of steps");
    size_t path = rv_load_push(load, RV_STR("do"));
    RV_TRY(rv_load_scope(load, list, 0, RV_ROLE_BODY, &node->body));
    rv_load_pop(load, path);
    return RV_OK;
}

/* More than there can be tasks: every task is an object. */
static size_t count_objects(const struct rv_json *value)
{
    size_t count = value->type == RV_JSON_OBJECT;
    for (uint32_t i = 0; i < value->len; i++) {
        if (value->type == RV_JSON_OBJECT)
            count += count_objects(&value->u.members[i].value);
        else if (value->type == RV_JSON_ARRAY)
            count += count_objects(&value->u.items[i]);
        else
            break;
    }
    return count;
}

/* What goes round in an outer scope goes round in the inner ones; so does the body of a try that is
 * retried. Owners have smaller numbers than what they own. */
static void spread_again(struct rv_definition *definition)
{
    for (uint32_t n = 1; n <= definition->count; n++) {
        struct rv_node *node = definition->nodes[n];
        rv_assert(node->scope->owner < n);
        const struct rv_node *owner = definition->nodes[node->scope->owner];
        bool retried = node->scope->role == RV_ROLE_BODY && owner->kind == RV_NODE_TRY &&
                       owner->caught->retry != NULL;
        if (node->scope->role != RV_ROLE_UNDO && (owner->again || retried))
            node->again = true;
    }
}

/* NULL: the arena has no room for it. */
static struct rv_definition *definition_new(struct rv_arena *arena, const struct rv_json *document)
{
    struct rv_definition *definition = RV_NEW(arena, struct rv_definition);
    if (definition == NULL || rv_json_copy(arena, document, &definition->document) != RV_OK)
        return NULL;
    definition->nodes = RV_NEW_ARRAY(arena, struct rv_node *, count_objects(document) + 1);
    struct rv_node *root = RV_NEW(arena, struct rv_node);
    if (definition->nodes == NULL || root == NULL)
        return NULL;
    root->kind = RV_NODE_WORKFLOW;
    root->reference = RV_STR("");
    root->name = RV_STR("");
    root->undo_way = RV_UNDO_NOTHING;
    definition->nodes[0] = root;
    return definition;
}

static enum rv_err definition_load(struct rv_arena *arena, const struct rv_json *document,
                                   bool published, const struct rv_definition **ret_definition,
                                   struct rv_definition_fault *ret_fault,
                                   struct rv_definition_faults *faults)
{
    *ret_fault = (struct rv_definition_fault){.pointer = RV_STR(""),
                                              .message = RV_STR("the definition is too large")};
    struct rv_payload_size size = rv_payload_measure(document, RV_DEFINITION_BYTES_MAX);
    if (size.over || size.depth > RV_JSON_DEPTH_MAX)
        return RV_ERR_LIMIT;
    struct rv_definition *definition = definition_new(arena, document);
    if (definition == NULL)
        return arena->refused != RV_OK ? arena->refused : RV_ERR_LIMIT;
    struct rv_load load = {.arena = arena,
                           .definition = definition,
                           .fault = ret_fault,
                           .faults = faults,
                           .published = published};
    rv_buf_init(&load.path, 2 * (size_t)RV_DEFINITION_BYTES_MAX);
    enum rv_err err = rv_load_past(&load, load_root(&load, &definition->document), 0);
    if (err == RV_OK)
        err = load.path.failed;
    rv_buf_done(&load.path);
    if (err == RV_OK && faults != NULL && faults->count > 0)
        err = RV_ERR_INVALID;
    if (err != RV_OK)
        return err;
    rv_assert(load.depth == 0);
    rv_assert(load.errors == NULL);
    rv_assert(!load.undo);
    rv_assert(load.path.len == 0);
    spread_again(definition);
    *ret_definition = definition;
    return RV_OK;
}

enum rv_err rv_definition_load(struct rv_arena *arena, const struct rv_json *document,
                               const struct rv_definition **ret_definition,
                               struct rv_definition_fault *ret_fault)
{
    return definition_load(arena, document, false, ret_definition, ret_fault, NULL);
}

enum rv_err rv_definition_check(struct rv_arena *arena, const struct rv_json *document,
                                const struct rv_definition **ret_definition,
                                struct rv_definition_faults *ret_faults)
{
    struct rv_definition_fault last;
    ret_faults->count = 0;
    return definition_load(arena, document, false, ret_definition, &last, ret_faults);
}

enum rv_err rv_definition_load_published(struct rv_arena *arena, const struct rv_json *document,
                                         const struct rv_definition **ret_definition,
                                         struct rv_definition_fault *ret_fault)
{
    return definition_load(arena, document, true, ret_definition, ret_fault, NULL);
}

struct rv_str rv_definition_namespace(const struct rv_definition *definition)
{
    return definition->space;
}

struct rv_str rv_definition_name(const struct rv_definition *definition)
{
    return definition->name;
}

uint32_t rv_definition_warnings(const struct rv_definition *definition, struct rv_arena *arena,
                                struct rv_definition_warning ret[RV_DEFINITION_WARNINGS_MAX])
{
    static const char several[] =
        "the expression may have several outputs, and only the first is used; write [...] to use "
        "all of them, or first(...) to use the first";
    static const char undo[] =
        "this call declares no `compensate`, so an undo of the task stops at this step and needs "
        "an operator. If there is nothing to undo, write `compensate: none`";
    uint32_t count = 0;
    for (uint32_t i = 0; i < definition->several_count && count < RV_DEFINITION_WARNINGS_MAX; i++)
        ret[count++] = (struct rv_definition_warning){definition->several[i], rv_str_of(several)};
    for (uint32_t n = 1; n <= definition->count && count < RV_DEFINITION_WARNINGS_MAX; n++) {
        const struct rv_node *node = definition->nodes[n];
        if (node->undo_way == RV_UNDO_PIVOT)
            break; /* nothing is undone from here on */
        if (node->undo_way == RV_UNDO_UNDECLARED)
            ret[count++] = (struct rv_definition_warning){node->reference, rv_str_of(undo)};
    }
    for (uint32_t i = 0; i < count; i++) {
        ret[i].pointer = rv_arena_str(arena, ret[i].pointer);
        if (ret[i].pointer.at == NULL)
            return i;
    }
    return count;
}

struct rv_str rv_definition_agent(const struct rv_definition *definition, uint32_t node)
{
    return definition->nodes[node]->agent;
}

struct rv_str rv_definition_version(const struct rv_definition *definition)
{
    return definition->version;
}

uint32_t rv_definition_nodes(const struct rv_definition *definition)
{
    return definition->count;
}

const struct rv_policy *rv_definition_policy(const struct rv_definition *definition, uint32_t node)
{
    return &definition->nodes[node]->policy;
}

enum rv_undo_way rv_definition_undo_way(const struct rv_definition *definition, uint32_t node)
{
    return definition->nodes[node]->undo_way;
}

struct rv_str rv_definition_reference(const struct rv_definition *definition, uint32_t node)
{
    return definition->nodes[node]->reference;
}

struct rv_str rv_definition_endpoint(const struct rv_definition *definition, uint32_t node)
{
    return definition->nodes[node]->endpoint;
}

uint32_t rv_definition_find(const struct rv_definition *definition, struct rv_str reference)
{
    for (uint32_t n = 1; n <= definition->count; n++) {
        if (rv_str_eq(definition->nodes[n]->reference, reference))
            return n;
    }
    return 0;
}

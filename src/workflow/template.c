/* Expressions and the templates that hold them, compiled. An expression is given only the variables
 * that its text names, so that an evaluation builds nothing that nobody looks at. */
#include "base/limits.h"
#include "workflow/load_priv.h"
#include "workflow/payload_priv.h"

static const char *const variable_names[RV_VAR_COUNT] = {"context",  "input",   "output", "task",
                                                         "workflow", "runtime", "undo"};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The jq inside of `${ }`, with where it begins; all of `text` if it is none. */
static struct rv_str expression_of(struct rv_str text, bool *ret_wrapped)
{
    struct rv_str s = text;
    while (s.len > 0 && is_space(s.at[0]))
        s = (struct rv_str){s.at + 1, s.len - 1};
    while (s.len > 0 && is_space(s.at[s.len - 1]))
        s.len--;
    rv_assert(s.len <= text.len);
    *ret_wrapped = s.len >= 3 && s.at[0] == '$' && s.at[1] == '{' && s.at[s.len - 1] == '}';
    return *ret_wrapped ? (struct rv_str){s.at + 2, s.len - 3} : text;
}

bool rv_is_expression(struct rv_str text)
{
    bool wrapped;
    (void)expression_of(text, &wrapped);
    return wrapped;
}

/* Where the first `${` begins; the length of the text if there is none. */
static size_t find_opening(struct rv_str text)
{
    for (size_t i = 0; i + 1 < text.len; i++)
        if (text.at[i] == '$' && text.at[i + 1] == '{')
            return i;
    return text.len;
}

#define WHOLE_VALUE "write the whole value as one expression, such as ${ \"https://a/\\(.id)\" }"

enum rv_err rv_load_plain(struct rv_load *load, struct rv_str text, const char *why)
{
    size_t at = find_opening(text);
    if (at == text.len || load->published)
        return RV_OK;
    bool unclosed = at == 0 && memchr(text.at, '}', text.len) == NULL;
    enum rv_err err = rv_load_invalid(
        load, NULL, "${ %s",
        unclosed      ? "has no closing }; write an expression as ${ ... }"
        : why != NULL ? why
                      : "inside a longer string is not evaluated; " WHOLE_VALUE);
    load->fault->offset = at;
    return err;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next `$name` at or after *at; false when there is none. Strings are searched like all else:
 * they may hold interpolations, and a variable too many costs little. */
static bool next_variable(struct rv_str text, size_t *at, struct rv_str *ret_name)
{
    for (size_t i = *at; i + 1 < text.len; i++) {
        if (text.at[i] != '$' || !is_name_char(text.at[i + 1]))
            continue;
        size_t end = i + 1;
        while (end < text.len && is_name_char(text.at[end]))
            end++;
        rv_assert(end <= text.len);
        rv_assert(end > *at); /* so that the caller's search ends */
        *ret_name = (struct rv_str){text.at + i + 1, end - i - 1};
        *at = end;
        return true;
    }
    return false;
}

static enum rv_variable variable_of(struct rv_str name)
{
    unsigned v = 0;
    while (v < RV_VAR_COUNT && !rv_str_is(name, variable_names[v]))
        v++;
    return (enum rv_variable)v;
}

enum { EXPRESSION_ERRORS_MAX = 8 };

/* What an expression names, resolved. */
struct scanned {
    uint32_t uses;
    uint32_t errors_count;
    uint32_t errors[EXPRESSION_ERRORS_MAX];
    struct rv_str names[RV_VAR_COUNT + EXPRESSION_ERRORS_MAX];
    struct rv_str missing; /* a known variable that is not available here; absent: none */
};

static const struct rv_load_error *find_error(const struct rv_load *load, struct rv_str name)
{
    const struct rv_load_error *error = load->errors;
    while (error != NULL && !rv_str_eq(error->name, name))
        error = error->outer;
    return error;
}

static void scan_error(struct scanned *scanned, uint32_t node)
{
    for (uint32_t i = 0; i < scanned->errors_count; i++) {
        if (scanned->errors[i] == node)
            return;
    }
    if (scanned->errors_count < EXPRESSION_ERRORS_MAX)
        scanned->errors[scanned->errors_count++] = node;
}

static void scan(const struct rv_load *load, struct rv_str text, uint32_t available,
                 struct scanned *scanned)
{
    struct rv_str name;
    for (size_t at = 0; next_variable(text, &at, &name);) {
        const struct rv_load_error *error = find_error(load, name);
        enum rv_variable variable = variable_of(name);
        if (error != NULL)
            scan_error(scanned, error->node);
        else if (variable != RV_VAR_COUNT && (available & RV_VAR_BIT(variable)) != 0)
            scanned->uses |= RV_VAR_BIT(variable);
        else if (scanned->missing.at == NULL &&
                 (variable != RV_VAR_COUNT || rv_str_is(name, "secrets") ||
                  rv_str_is(name, "authorization") || rv_str_is(name, "error")))
            scanned->missing = name;
    }
    uint32_t n = 0;
    for (unsigned v = 0; v < RV_VAR_COUNT; v++) {
        if ((scanned->uses & RV_VAR_BIT(v)) != 0)
            scanned->names[n++] = rv_str_of(variable_names[v]);
    }
    rv_assert(n + scanned->errors_count <= sizeof scanned->names / sizeof *scanned->names);
    rv_assert((scanned->uses & ~available) == 0);
    for (uint32_t i = 0; i < scanned->errors_count; i++)
        scanned->names[n++] = load->definition->nodes[scanned->errors[i]]->caught->variable;
}

static uint32_t scanned_count(const struct scanned *scanned)
{
    uint32_t n = scanned->errors_count;
    for (unsigned v = 0; v < RV_VAR_COUNT; v++)
        n += (scanned->uses >> v) & 1;
    return n;
}

/* A variable that exists, but not here, deserves better than "unknown". */
static enum rv_err missing_variable(struct rv_load *load, struct rv_str name)
{
    if (rv_str_is(name, "secrets") || rv_str_is(name, "authorization"))
        return rv_load_unsupported(load, NULL, "$%.*s is not supported yet", RV_STR_FMT(name));
    if (rv_str_is(name, "error"))
        return rv_load_invalid(load, NULL,
                               "$error is not available here; it is available only in "
                               "catch.do, unless catch.as gives it another name");
    enum rv_variable variable = variable_of(name);
    const char *cure =
        variable == RV_VAR_UNDO ? "the variable is available only in compensate"
        : variable == RV_VAR_OUTPUT
            ? "the variable is available only in export.as; in output.as, write `.` for the output"
        : variable == RV_VAR_INPUT ? "write `.` for the input here"
                                   : "the variable has no value yet";
    return rv_load_invalid(load, NULL, "$%.*s is not available here; %s", RV_STR_FMT(name), cure);
}

static enum rv_err compile_fault(struct rv_load *load, struct rv_str whole, struct rv_str jq,
                                 const struct scanned *scanned, const struct rv_expr_fault *fault,
                                 enum rv_err err)
{
    struct rv_str missing = scanned->missing;
    size_t offset = fault->offset;
    if (missing.at != NULL) {
        rv_assert(missing.at >= jq.at);
        size_t at = (size_t)(missing.at - jq.at);
        if (offset + 1 >= at && offset <= at + missing.len)
            err = missing_variable(load, missing);
        else
            missing = RV_STR_NONE;
    }
    bool several = find_opening(jq) < jq.len;
    if (missing.at == NULL && err == RV_ERR_UNSUPPORTED)
        err = rv_load_unsupported(load, NULL, "%.*s", RV_STR_FMT(fault->message));
    else if (missing.at == NULL)
        err = rv_load_invalid(load, NULL, "the expression does not compile: %.*s%s",
                              RV_STR_FMT(fault->message), several ? "; " WHOLE_VALUE : "");
    rv_assert(jq.at >= whole.at);
    load->fault->offset = (size_t)(jq.at - whole.at) + offset;
    return err;
}

/* Again, with all that the text could have named: the fault may then suggest one of them. */
static enum rv_err fault_name(struct rv_load *load, struct rv_str jq, uint32_t available,
                              struct rv_expr_fault *fault)
{
    struct rv_str names[RV_VAR_COUNT + EXPRESSION_ERRORS_MAX];
    struct rv_expr *expr;
    uint32_t count = 0, all = available | (load->undo ? RV_VAR_BIT(RV_VAR_UNDO) : 0);
    for (unsigned v = 0; v < RV_VAR_COUNT; v++)
        if ((all & RV_VAR_BIT(v)) != 0)
            names[count++] = rv_str_of(variable_names[v]);
    for (const struct rv_load_error *error = load->errors;
         error != NULL && count < sizeof names / sizeof names[0]; error = error->outer)
        names[count++] = error->name;
    return rv_expr_compile(load->arena, jq, names, count, &expr, fault);
}

static bool is_identity(struct rv_str jq)
{
    while (jq.len > 0 && is_space(jq.at[0]))
        jq = (struct rv_str){jq.at + 1, jq.len - 1};
    while (jq.len > 0 && is_space(jq.at[jq.len - 1]))
        jq.len--;
    return rv_str_is(jq, ".");
}

static enum rv_err note_several(struct rv_load *load, const struct rv_expr *expr)
{
    struct rv_definition *definition = load->definition;
    if (definition->several_count == RV_DEFINITION_SEVERAL_MAX || !rv_expr_gives_several(expr))
        return RV_OK;
    struct rv_str pointer = rv_arena_str(load->arena, rv_buf_str(&load->path));
    if (pointer.at == NULL)
        return rv_load_full(load);
    definition->several[definition->several_count++] = pointer;
    return RV_OK;
}

static enum rv_err expression_new(struct rv_load *load, struct rv_str text, uint32_t available,
                                  struct rv_expression **ret_expression)
{
    bool wrapped;
    struct rv_str jq = expression_of(text, &wrapped);
    struct rv_expression *expression = RV_NEW(load->arena, struct rv_expression);
    if (expression == NULL)
        return rv_load_full(load);
    *ret_expression = expression;
    expression->text = jq;
    if (load->shape_only || is_identity(jq))
        return RV_OK;
    struct scanned scanned = {0};
    scan(load, jq, available | (load->undo ? RV_VAR_BIT(RV_VAR_UNDO) : 0), &scanned);
    expression->uses = scanned.uses;
    expression->errors_count = scanned.errors_count;
    expression->errors = RV_NEW_ARRAY(load->arena, uint32_t, scanned.errors_count + 1);
    if (expression->errors == NULL)
        return rv_load_full(load);
    for (uint32_t i = 0; i < scanned.errors_count; i++) {
        rv_assert(load->definition->nodes[scanned.errors[i]]->kind == RV_NODE_TRY);
        expression->errors[i] = scanned.errors[i];
        load->definition->nodes[scanned.errors[i]]->caught->keeps_error = true;
    }
    struct rv_expr_fault fault = {0};
    struct rv_expr *expr = NULL;
    enum rv_err err = rv_expr_compile(load->arena, jq, scanned.names, scanned_count(&scanned),
                                      &expr, &fault);
    expression->expr = expr;
    if (err == RV_ERR_INVALID)
        err = fault_name(load, jq, available, &fault);
    /* A definition of an earlier build keeps what raises only where it is evaluated. */
    if (err == RV_OK && !load->published && rv_expr_has_pattern(expr, load->arena, &fault))
        err = fault.message.at != NULL ? RV_ERR_UNSUPPORTED : rv_load_full(load);
    if (err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED)
        return compile_fault(load, text, jq, &scanned, &fault, err);
    if (err != RV_OK)
        return err;
    if ((scanned.uses & RV_VAR_BIT(RV_VAR_UNDO)) != 0)
        RV_TRY(rv_load_undo_members(load, jq, (size_t)(jq.at - text.at)));
    return note_several(load, expr);
}

enum rv_err rv_load_expression(struct rv_load *load, const struct rv_json *object, const char *key,
                               uint32_t available, struct rv_expression **ret_expression)
{
    struct rv_str text;
    enum rv_err err = rv_load_string(load, object, key, &text);
    if (err != RV_OK || text.at == NULL)
        return err;
    size_t path = rv_load_push(load, rv_str_of(key));
    err = expression_new(load, text, available, ret_expression);
    rv_load_pop(load, path);
    return err;
}

static bool holds_expression(const struct rv_json *value)
{
    if (value->type == RV_JSON_STRING)
        return rv_is_expression(rv_json_str(value));
    for (uint32_t i = 0; i < value->len; i++) {
        if (value->type == RV_JSON_ARRAY && holds_expression(&value->u.items[i]))
            return true;
        if (value->type == RV_JSON_OBJECT && holds_expression(&value->u.members[i].value))
            return true;
        if (value->type != RV_JSON_ARRAY && value->type != RV_JSON_OBJECT)
            return false;
    }
    return false;
}

static enum rv_err fill_template(struct rv_load *load, const struct rv_json *value,
                                 uint32_t available, struct rv_template *template);

static enum rv_err check_name(struct rv_load *load, struct rv_str key)
{
    if (find_opening(key) == key.len || load->published)
        return RV_OK;
    return rv_load_invalid_name(load, key,
                                "expressions in member names are not evaluated; write the whole "
                                "object as one expression, such as ${ {(.name): 1} }");
}

/* No `${` stands in a constant: nobody would compute it. */
static enum rv_err check_constant(struct rv_load *load, const struct rv_json *value)
{
    if (value->type == RV_JSON_STRING)
        return rv_load_plain(load, rv_json_str(value), NULL);
    bool object = value->type == RV_JSON_OBJECT;
    if (!object && value->type != RV_JSON_ARRAY)
        return RV_OK;
    for (uint32_t i = 0; i < value->len; i++) {
        struct rv_str key = object ? rv_json_str(&value->u.members[i].key) : RV_STR_NONE;
        if (object)
            RV_TRY(check_name(load, key));
        size_t path = object ? rv_load_push(load, key) : rv_load_push_index(load, i);
        const struct rv_json *inner = object ? &value->u.members[i].value : &value->u.items[i];
        RV_TRY(rv_load_past(load, check_constant(load, inner), path));
        rv_load_pop(load, path);
    }
    return RV_OK;
}

static enum rv_err fill_constant(struct rv_load *load, const struct rv_json *value,
                                 struct rv_template *template)
{
    RV_TRY(check_constant(load, value));
    struct rv_buf text;
    rv_buf_init(&text, RV_PAYLOAD_BYTES_MAX);
    rv_json_write(&text, value);
    template->kind = RV_TEMPLATE_CONSTANT;
    template->constant = *value;
    enum rv_err err = text.failed;
    if (err == RV_OK)
        template->text = rv_arena_str(load->arena, rv_buf_str(&text));
    rv_buf_done(&text);
    if (err != RV_OK)
        return err;
    return template->text.at != NULL ? RV_OK : rv_load_full(load);
}

/* An array or object with an expression somewhere inside. */
static enum rv_err fill_tree(struct rv_load *load, const struct rv_json *value, uint32_t available,
                             struct rv_template *template)
{
    bool object = value->type == RV_JSON_OBJECT;
    rv_assert(object || value->type == RV_JSON_ARRAY);
    rv_assert(value->len > 0);
    template->kind = object ? RV_TEMPLATE_OBJECT : RV_TEMPLATE_ARRAY;
    template->count = value->len;
    template->items = RV_NEW_ARRAY(load->arena, struct rv_template, value->len);
    template->keys = RV_NEW_ARRAY(load->arena, struct rv_json, object ? value->len : 0);
    if (template->items == NULL || template->keys == NULL)
        return rv_load_full(load);
    for (uint32_t i = 0; i < value->len; i++) {
        size_t path;
        enum rv_err err;
        if (object) {
            RV_TRY(check_name(load, rv_json_str(&value->u.members[i].key)));
            template->keys[i] = value->u.members[i].key;
            path = rv_load_push(load, rv_json_str(&template->keys[i]));
            err = fill_template(load, &value->u.members[i].value, available, &template->items[i]);
        } else {
            path = rv_load_push_index(load, i);
            err = fill_template(load, &value->u.items[i], available, &template->items[i]);
        }
        RV_TRY(rv_load_past(load, err, path));
        rv_load_pop(load, path);
    }
    return RV_OK;
}

static enum rv_err fill_template(struct rv_load *load, const struct rv_json *value,
                                 uint32_t available, struct rv_template *template)
{
    if (!holds_expression(value))
        return fill_constant(load, value, template);
    if (value->type != RV_JSON_STRING)
        return fill_tree(load, value, available, template);
    template->kind = RV_TEMPLATE_EXPRESSION;
    return expression_new(load, rv_json_str(value), available, &template->expression);
}

enum rv_err rv_load_template(struct rv_load *load, const struct rv_json *value, uint32_t available,
                             struct rv_template **ret_template)
{
    struct rv_template *template = RV_NEW(load->arena, struct rv_template);
    if (template == NULL)
        return rv_load_full(load);
    *ret_template = template;
    return fill_template(load, value, available, template);
}

enum rv_err rv_load_transform(struct rv_load *load, const struct rv_json *object, const char *key,
                              uint32_t available, struct rv_template **ret_template)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(key));
    if (value == NULL)
        return RV_OK;
    if (value->type != RV_JSON_STRING && value->type != RV_JSON_OBJECT)
        return rv_load_invalid(load, key, "%s must be an expression or an object", key);
    size_t path = rv_load_push(load, rv_str_of(key));
    struct rv_template *template = RV_NEW(load->arena, struct rv_template);
    if (template == NULL)
        return rv_load_full(load);
    *ret_template = template;
    enum rv_err err;
    if (value->type == RV_JSON_STRING) {
        template->kind = RV_TEMPLATE_EXPRESSION;
        err = expression_new(load, rv_json_str(value), available, &template->expression);
    } else {
        err = fill_template(load, value, available, template);
    }
    rv_load_pop(load, path);
    return err;
}

uint32_t rv_template_uses(const struct rv_template *template)
{
    if (template == NULL)
        return 0;
    uint32_t uses = template->expression != NULL ? template->expression->uses : 0;
    for (uint32_t i = 0; i < template->count; i++)
        uses |= rv_template_uses(&template->items[i]);
    return uses;
}

/* Expressions at work. An evaluation has fuel and memory of its own, whatever is left for the
 * command: what it gives must not depend on where a batch was cut. Its memory is given back when it
 * is over, and its value is copied out, so that a hundred expressions need no more than one. What a
 * move keeps (values between steps, parsed inputs) has a limit too: over it, the step fails with an
 * error that a catch may take. */
#include "base/time.h"
#include "workflow/flow_priv.h"
#include "workflow/uri_priv.h"

/* Bytes of JSON that are read or written for a unit of fuel. */
enum { BYTES_PER_FUEL = 2 };

/* Temporary values above this are given back at once; the result is kept as bytes. Once the values
 * of a template have taken KEPT_BYTES_MAX, each further one is copied out. */
enum { TEMPORARY_BYTES_MAX = 16 * 1024, KEPT_BYTES_MAX = 1024 * 1024, OBJECT_MEMBERS_MAX = 8 };

/* What becomes of the value of an expression. */
enum value_use {
    VALUE_TRUTH, /* is it true? */
    VALUE_WHOLE, /* it is all of a payload, which is written at once */
    VALUE_PART   /* others come before that */
};

enum rv_err rv_flow_parse(struct rv_flow *flow, struct rv_payload *payload,
                          struct rv_json *ret_tree)
{
    rv_assert(!payload->has_tree);
    RV_TRY(rv_flow_spend(flow, payload->text.len / BYTES_PER_FUEL));
    return rv_payload_tree(payload, flow->arena, ret_tree);
}

/* An object under construction. */
struct object {
    struct rv_json_member members[OBJECT_MEMBERS_MAX];
    uint32_t count;
};

static void object_add(struct object *object, const char *key, struct rv_json value)
{
    rv_assert(object->count < OBJECT_MEMBERS_MAX);
    object->members[object->count++] = (struct rv_json_member){rv_json_of_str(rv_str_of(key)),
                                                               value};
}

static enum rv_err object_end(struct rv_flow *flow, const struct object *object,
                              struct rv_json *ret_value)
{
    struct rv_json_member *members = RV_NEW_ARRAY(flow->arena, struct rv_json_member,
                                                  object->count);
    if (members == NULL)
        return rv_flow_full(flow);
    memcpy(members, object->members, object->count * sizeof *members);
    *ret_value = (struct rv_json){.type = RV_JSON_OBJECT, .len = object->count};
    ret_value->u.members = members;
    return RV_OK;
}

/* dateTimeDescriptor: {iso8601, epoch: {seconds, milliseconds}}. */
static enum rv_err build_instant(struct rv_flow *flow, int64_t at, struct rv_json *ret_value)
{
    char text[RV_INSTANT_TEXT_BYTES];
    struct rv_str iso = rv_arena_str(flow->arena, rv_instant_text(at, text));
    if (iso.at == NULL)
        return rv_flow_full(flow);
    struct object epoch = {.count = 0};
    object_add(&epoch, "seconds", rv_json_of_int(flow->arena, at / RV_SECOND_MS));
    object_add(&epoch, "milliseconds", rv_json_of_int(flow->arena, at));
    struct rv_json value;
    RV_TRY(object_end(flow, &epoch, &value));
    struct object instant = {.count = 0};
    object_add(&instant, "iso8601", rv_json_of_str(iso));
    object_add(&instant, "epoch", value);
    return object_end(flow, &instant, ret_value);
}

static enum rv_err build_task(struct rv_flow *flow, struct rv_json *ret_value)
{
    struct rv_record *record = flow->top;
    const struct rv_node *node = rv_flow_node(flow, record->node);
    struct rv_json input;
    struct rv_json output;
    struct rv_json started;
    RV_TRY(rv_flow_tree(flow, &record->raw, &input));
    RV_TRY(rv_flow_tree(flow, &flow->raw_output, &output));
    RV_TRY(build_instant(flow, record->started_at, &started));
    struct object task = {.count = 0};
    object_add(&task, "name", rv_json_of_str(node->name));
    object_add(&task, "reference", rv_json_of_str(node->reference));
    if (node->source != NULL)
        object_add(&task, "definition", *node->source);
    object_add(&task, "input", input);
    object_add(&task, "output", output);
    object_add(&task, "startedAt", started);
    return object_end(flow, &task, ret_value);
}

static enum rv_err build_workflow(struct rv_flow *flow, struct rv_json *ret_value)
{
    if (!flow->has_workflow) {
        struct rv_json input;
        struct rv_json started;
        RV_TRY(rv_flow_tree(flow, &flow->workflow_input, &input));
        RV_TRY(build_instant(flow, flow->env->started_at, &started));
        struct object workflow = {.count = 0};
        object_add(&workflow, "id", rv_json_of_str(flow->env->task));
        object_add(&workflow, "definition", flow->definition->document);
        object_add(&workflow, "input", input);
        object_add(&workflow, "startedAt", started);
        RV_TRY(object_end(flow, &workflow, &flow->workflow));
        flow->has_workflow = true;
    }
    *ret_value = flow->workflow;
    return RV_OK;
}

static enum rv_err build_runtime(struct rv_flow *flow, struct rv_json *ret_value)
{
    struct rv_json metadata;
    struct object none = {.count = 0};
    RV_TRY(object_end(flow, &none, &metadata));
    struct object runtime = {.count = 0};
    object_add(&runtime, "name", rv_json_of_str(RV_STR("Reeve")));
    object_add(&runtime, "version", rv_json_of_str(RV_STR(RV_VERSION)));
    object_add(&runtime, "metadata", metadata);
    return object_end(flow, &runtime, ret_value);
}

static enum rv_err build_variable(struct rv_flow *flow, enum rv_variable variable,
                                  struct rv_json *ret_value)
{
    switch (variable) {
    case RV_VAR_CONTEXT:
        return rv_flow_tree(flow, &flow->context, ret_value);
    case RV_VAR_INPUT:
        return rv_flow_tree(flow, &flow->top->input, ret_value);
    case RV_VAR_OUTPUT:
        return rv_flow_tree(flow, &flow->output, ret_value);
    case RV_VAR_TASK:
        return build_task(flow, ret_value);
    case RV_VAR_WORKFLOW:
        return build_workflow(flow, ret_value);
    case RV_VAR_RUNTIME:
        return build_runtime(flow, ret_value);
    case RV_VAR_UNDO:
        return rv_flow_tree(flow, &flow->undo, ret_value);
    case RV_VAR_COUNT:
        break;
    }
    return RV_ERR_CORRUPT;
}

static enum rv_err build_error(struct rv_flow *flow, uint32_t node, struct rv_json *ret_value)
{
    struct rv_record *record = flow->top;
    while (record != NULL && record->node != node)
        record = record->outer;
    return record != NULL ? rv_flow_tree(flow, &record->error, ret_value) : RV_ERR_CORRUPT;
}

enum { VALUES_MAX = RV_VAR_COUNT + 8 };

static enum rv_err build_values(struct rv_flow *flow, const struct rv_expression *expression,
                                struct rv_json values[static VALUES_MAX])
{
    uint32_t n = 0;
    rv_assert(expression->uses < RV_VAR_BIT(RV_VAR_COUNT));
    rv_assert(expression->errors_count <= VALUES_MAX - RV_VAR_COUNT);
    for (unsigned v = 0; v < RV_VAR_COUNT; v++) {
        if ((expression->uses & RV_VAR_BIT(v)) != 0)
            RV_TRY(build_variable(flow, (enum rv_variable)v, &values[n++]));
    }
    for (uint32_t i = 0; i < expression->errors_count; i++)
        RV_TRY(build_error(flow, expression->errors[i], &values[n++]));
    return RV_OK;
}

/* The detail names the expression, since an author may have written a hundred of them. */
static enum rv_err raise_expression(struct rv_flow *flow, const struct rv_expression *expression,
                                    struct rv_str message)
{
    int shown = (int)(expression->text.len < 120 ? expression->text.len : 120);
    struct rv_str detail = rv_arena_printf(flow->arena, "%.*s, in ${%.*s%s}", RV_STR_FMT(message),
                                           shown, expression->text.at,
                                           expression->text.len > 120 ? "..." : "");
    if (detail.at == NULL)
        return rv_flow_full(flow);
    return rv_flow_raise_standard(flow, RV_ERROR_EXPRESSION, flow->top->node,
                                  "The expression failed", detail);
}

/* The pace of a flow inside one expression. */
struct expression_pace {
    struct rv_pace *pace;
    struct rv_expr_budget *budget;
    int64_t counted; /* of the fuel used, what the pace knows of */
};

static bool expression_pause(void *context, int64_t fuel_used)
{
    struct expression_pace *own = context;
    rv_assert(fuel_used >= own->counted);
    bool go = rv_pace_spend(own->pace, fuel_used - own->counted);
    own->counted = fuel_used;
    own->budget->slice = own->pace->left > 0 ? own->pace->left : 1;
    return go;
}

/* The evaluation itself, interrupted where the pace says so. */
static enum rv_err expr_run(struct rv_flow *flow, const struct rv_expression *expression,
                            const struct rv_json *dot, const struct rv_json *values,
                            struct rv_json *ret_value, struct rv_expr_fault *ret_fault,
                            int64_t *ret_used)
{
    struct rv_pace *pace = flow->env->pace;
    struct rv_expr_budget budget = {.fuel = RV_FUEL_PER_EXPRESSION};
    struct expression_pace own = {pace, &budget, 0};
    if (pace != NULL) {
        budget.slice = pace->left > 0 ? pace->left : 1;
        budget.pause = expression_pause;
        budget.context = &own;
    }
    enum rv_err err = rv_expr_eval(expression->expr, dot, values, &budget, flow->arena, ret_value,
                                   ret_fault);
    *ret_used = RV_FUEL_PER_EXPRESSION - budget.fuel;
    rv_assert(*ret_used >= own.counted);
    if (err == RV_ERR_BUSY || !rv_pace_spend(pace, *ret_used - own.counted))
        return RV_ERR_BUSY;
    return err;
}

/* What one evaluation may take of the arena. */
struct memory {
    struct rv_arena_mark begin;
    size_t bytes_max; /* of the arena, before */
    bool own;         /* it is the flow's limit, not one of who called */
};

static void forget(struct rv_payload *payload)
{
    if (payload->text.at != NULL)
        payload->has_tree = false;
}

/* Trees that were parsed since the mark go with it: they can be parsed again. */
static void release(struct rv_flow *flow, struct rv_arena_mark mark)
{
    rv_assert(mark.bytes_taken <= flow->arena->bytes_taken);
    rv_arena_release(flow->arena, mark);
    flow->has_workflow = false;
    forget(&flow->context);
    forget(&flow->workflow_input);
    forget(&flow->undo);
    forget(&flow->value);
    forget(&flow->raw_output);
    forget(&flow->output);
    for (struct rv_record *record = flow->top; record != NULL; record = record->outer) {
        forget(&record->raw);
        forget(&record->input);
        forget(&record->error);
    }
}

void rv_flow_memory_init(struct rv_flow *flow)
{
    const struct rv_flow_env *env = flow->env;
    flow->bytes_begun = env->arena->bytes_taken;
    flow->memory_max = env->memory_max != 0 ? env->memory_max : RV_DECISION_BYTES_MAX;
    rv_arena_init(&flow->copies, 0);
}

/* From here to the end the arena takes no more than the move may. What a move does beside its
 * expressions is bounded by the sizes of its payloads, and always has room. */
static struct memory memory_begin(struct rv_flow *flow)
{
    struct rv_arena *arena = flow->arena;
    struct memory memory = {rv_arena_mark(arena), arena->bytes_max, false};
    rv_assert(flow->top != NULL);
    rv_assert(flow->bytes_begun <= arena->bytes_taken);
    rv_assert(flow->memory_max > 0);
    size_t most = flow->bytes_begun + flow->memory_max;
    most = most > arena->bytes_taken ? most : arena->bytes_taken;
    memory.own = arena->bytes_max == 0 || most < arena->bytes_max;
    if (memory.own)
        arena->bytes_max = most;
    rv_assert(arena->bytes_max >= arena->bytes_taken);
    return memory;
}

static enum rv_err memory_end(struct rv_flow *flow, const struct memory *memory,
                              struct rv_payload *dot, enum rv_err err)
{
    enum { KIB = 1024 };
    rv_assert(memory->begin.bytes_taken <= flow->arena->bytes_taken);
    flow->arena->bytes_max = memory->bytes_max;
    if (err != RV_ERR_LIMIT || !memory->own)
        return err;
    release(flow, memory->begin);
    forget(dot);
    struct rv_str detail = rv_arena_printf(
        flow->arena,
        "the expressions of the step and the values of earlier steps need more than %zu KiB of "
        "memory: pass less data, or distribute the expressions over several steps with an agent or "
        "a wait between them",
        flow->memory_max / KIB);
    return detail.at == NULL ? rv_flow_full(flow)
                             : rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, flow->top->node,
                                                      "The step needs too much memory", detail);
}

static enum rv_err raise_size(struct rv_flow *flow, struct rv_arena_mark mark, bool over)
{
    if (flow->arena->bytes_taken - mark.bytes_taken > TEMPORARY_BYTES_MAX)
        release(flow, mark);
    rv_buf_reset(&flow->text);
    rv_buf_printf(&flow->text,
                  over ? "a value has more than %d bytes"
                       : "a value is nested deeper than %d levels",
                  over ? RV_PAYLOAD_BYTES_MAX : RV_JSON_DEPTH_MAX);
    struct rv_str detail;
    RV_TRY(rv_flow_take_text(flow, &detail));
    return rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, flow->top->node,
                                  "A value exceeds a limit", detail);
}

/* The value of an expression, which began at the mark, in a template of several. All that are
 * copied are parts of one payload, which has its limit. */
static enum rv_err copy_out(struct rv_flow *flow, struct rv_arena_mark mark, struct rv_json *value)
{
    struct rv_payload_size size = rv_payload_measure(value, RV_PAYLOAD_BYTES_MAX);
    flow->copied_bytes += size.bytes;
    bool over = size.over || flow->copied_bytes > RV_PAYLOAD_BYTES_MAX;
    if (over || size.depth > RV_JSON_DEPTH_MAX)
        return raise_size(flow, mark, over);
    RV_TRY(rv_flow_spend(flow, size.bytes / BYTES_PER_FUEL));
    enum rv_err err = rv_json_copy(&flow->copies, value, value);
    rv_arena_release(flow->arena, mark);
    return err;
}

/* Gives back what it took, as far as its value does not lie in there. */
static enum rv_err expression_end(struct rv_flow *flow, struct rv_arena_mark mark,
                                  enum value_use use, struct rv_json *value)
{
    struct rv_arena *arena = flow->arena;
    if (use == VALUE_TRUTH) {
        rv_arena_release(arena, mark);
        return RV_OK;
    }
    rv_assert(flow->bytes_kept <= mark.bytes_taken);
    rv_assert(mark.bytes_taken <= arena->bytes_taken);
    bool much = arena->bytes_taken - flow->bytes_kept > KEPT_BYTES_MAX;
    if (use == VALUE_WHOLE || !much || arena->bytes_taken == mark.bytes_taken)
        return RV_OK;
    return copy_out(flow, mark, value);
}

/* Evaluates under the memory cap of one expression. INVALID with the message: it failed, and its
 * memory is given back, or an error was raised (absent message). LIMIT, MEMORY: the arena itself is
 * full. */
static enum rv_err run_expr(struct rv_flow *flow, const struct rv_expression *expression,
                            const struct rv_json *dot, const struct rv_json *values,
                            enum value_use use, struct rv_json *ret_value,
                            struct rv_str *ret_message)
{
    struct rv_arena *arena = flow->arena;
    struct rv_arena_mark mark = rv_arena_mark(arena);
    size_t bytes_max = arena->bytes_max;
    size_t own_max = arena->bytes_taken + RV_EXPRESSION_BYTES_MAX;
    bool own = bytes_max == 0 || own_max < bytes_max;
    if (own)
        arena->bytes_max = own_max;
    struct rv_expr_fault fault = {0};
    int64_t used;
    enum rv_err err = expr_run(flow, expression, dot, values, ret_value, &fault, &used);
    flow->env->fuel -= used;
    arena->bytes_max = bytes_max;
    if (err == RV_OK)
        return expression_end(flow, mark, use, ret_value);
    if (err == RV_ERR_BUSY)
        return err;
    /* Only its own cap is the expression's fault. */
    if (err == RV_ERR_MEMORY || (arena->refused == RV_ERR_LIMIT && !own))
        return rv_flow_full(flow);
    const char *otherwise = used >= RV_FUEL_PER_EXPRESSION
                                ? "the expression ran too long"
                                : "the expression needed too much memory";
    rv_buf_reset(&flow->text);
    if (arena->refused == RV_ERR_LIMIT)
        rv_buf_printf(&flow->text,
                      "the expression needs more than %d MiB of memory: pass less data, or split "
                      "the expression",
                      RV_EXPRESSION_BYTES_MAX / (1024 * 1024));
    else if (fault.message.len > RV_ERROR_DETAIL_BYTES_MAX)
        rv_buf_printf(&flow->text, "the expression failed with a message longer than %d KiB",
                      RV_ERROR_DETAIL_BYTES_MAX / 1024);
    else
        rv_buf_add_str(&flow->text,
                       fault.message.at != NULL ? fault.message : rv_str_of(otherwise));
    rv_arena_release(arena, mark);
    return rv_flow_take_text(flow, ret_message) == RV_OK ? RV_ERR_INVALID : rv_flow_full(flow);
}

static enum rv_err evaluate(struct rv_flow *flow, const struct rv_expression *expression,
                            struct rv_payload *dot, enum value_use use, struct rv_json *ret_value)
{
    struct rv_json input;
    struct rv_json values[VALUES_MAX];
    struct rv_str message = RV_STR_NONE;
    RV_TRY(rv_flow_tree(flow, dot, &input));
    if (expression->expr == NULL) {
        *ret_value = input;
        return RV_OK;
    }
    RV_TRY(build_values(flow, expression, values));
    enum rv_err err = run_expr(flow, expression, &input, values, use, ret_value, &message);
    return message.at != NULL ? raise_expression(flow, expression, message) : err;
}

static enum rv_err fill(struct rv_flow *flow, const struct rv_template *template,
                        struct rv_payload *dot, enum value_use use, struct rv_json *ret_value)
{
    switch (template->kind) {
    case RV_TEMPLATE_CONSTANT:
        *ret_value = template->constant;
        return RV_OK;
    case RV_TEMPLATE_EXPRESSION:
        return evaluate(flow, template->expression, dot, use, ret_value);
    case RV_TEMPLATE_URI: {
        struct rv_json input;
        RV_TRY(rv_flow_tree(flow, dot, &input));
        return rv_uri_fill(flow, rv_json_str(&template->constant), &input, ret_value);
    }
    case RV_TEMPLATE_ARRAY: {
        struct rv_json *items = RV_NEW_ARRAY(flow->arena, struct rv_json, template->count);
        if (items == NULL)
            return rv_flow_full(flow);
        for (uint32_t i = 0; i < template->count; i++)
            RV_TRY(fill(flow, &template->items[i], dot, VALUE_PART, &items[i]));
        *ret_value = (struct rv_json){.type = RV_JSON_ARRAY, .len = template->count};
        ret_value->u.items = items;
        return RV_OK;
    }
    case RV_TEMPLATE_OBJECT: {
        struct rv_json_member *members = RV_NEW_ARRAY(flow->arena, struct rv_json_member,
                                                      template->count);
        if (members == NULL)
            return rv_flow_full(flow);
        for (uint32_t i = 0; i < template->count; i++) {
            members[i].key = template->keys[i];
            RV_TRY(fill(flow, &template->items[i], dot, VALUE_PART, &members[i].value));
        }
        *ret_value = (struct rv_json){.type = RV_JSON_OBJECT, .len = template->count};
        ret_value->u.members = members;
        return RV_OK;
    }
    }
    return RV_ERR_CORRUPT;
}

/* A computed value within the limits of a payload, with its bytes. */
static enum rv_err settle(struct rv_flow *flow, const struct rv_json *tree,
                          struct rv_arena_mark mark, struct rv_payload *ret_value)
{
    struct rv_payload_size size = rv_payload_measure(tree, RV_PAYLOAD_BYTES_MAX);
    RV_TRY(rv_flow_spend(flow, size.bytes / BYTES_PER_FUEL));
    rv_buf_reset(&flow->text);
    if (size.depth <= RV_JSON_DEPTH_MAX && !size.over)
        rv_json_write(&flow->text, tree);
    if (flow->text.failed == RV_ERR_MEMORY)
        return RV_ERR_MEMORY;
    bool over = size.over || flow->text.failed != RV_OK || flow->text.len > RV_PAYLOAD_BYTES_MAX;
    if (over || size.depth > RV_JSON_DEPTH_MAX)
        return raise_size(flow, mark, over);
    bool large = flow->arena->bytes_taken - mark.bytes_taken > TEMPORARY_BYTES_MAX;
    if (large)
        release(flow, mark);
    *ret_value = (struct rv_payload){.tree = *tree, .has_tree = !large && flow->copied_bytes == 0};
    return rv_flow_take_text(flow, &ret_value->text);
}

static enum rv_err compute(struct rv_flow *flow, const struct rv_template *template,
                           struct rv_payload *dot, struct rv_payload *ret_value)
{
    struct rv_json tree;
    /* The caller's own value stays parsed when large temporary values are given back. */
    RV_TRY(rv_flow_tree(flow, dot, &tree));
    struct rv_arena_mark mark = rv_arena_mark(flow->arena);
    flow->bytes_kept = flow->arena->bytes_taken;
    flow->copied_bytes = 0;
    RV_TRY(fill(flow, template, dot, VALUE_WHOLE, &tree));
    return settle(flow, &tree, mark, ret_value);
}

enum rv_err rv_flow_evaluate(struct rv_flow *flow, const struct rv_template *template,
                             struct rv_payload *dot, struct rv_payload *ret_value)
{
    if (template->kind == RV_TEMPLATE_CONSTANT) {
        rv_assert(template->text.at != NULL);
        *ret_value = (struct rv_payload){template->text, template->constant, true};
        return RV_OK;
    }
    if (template->kind == RV_TEMPLATE_EXPRESSION && template->expression->expr == NULL) {
        *ret_value = *dot;
        return RV_OK;
    }
    struct memory memory = memory_begin(flow);
    rv_assert(flow->copies.bytes_taken == 0);
    enum rv_err err = compute(flow, template, dot, ret_value);
    if (flow->copies.bytes_taken != 0)
        rv_arena_reset(&flow->copies);
    return memory_end(flow, &memory, dot, err);
}

static enum rv_err compute_truth(struct rv_flow *flow, const struct rv_expression *expression,
                                 struct rv_payload *dot, bool *ret_truth)
{
    struct rv_json value;
    RV_TRY(rv_flow_tree(flow, dot, &value));
    struct rv_arena_mark mark = rv_arena_mark(flow->arena);
    RV_TRY(evaluate(flow, expression, dot, VALUE_TRUTH, &value));
    *ret_truth = value.type != RV_JSON_NULL && (value.type != RV_JSON_BOOL || value.truth);
    if (flow->arena->bytes_taken - mark.bytes_taken > TEMPORARY_BYTES_MAX)
        release(flow, mark);
    return RV_OK;
}

enum rv_err rv_flow_test(struct rv_flow *flow, const struct rv_expression *expression,
                         struct rv_payload *dot, bool *ret_truth)
{
    struct memory memory = memory_begin(flow);
    enum rv_err err = compute_truth(flow, expression, dot, ret_truth);
    return memory_end(flow, &memory, dot, err);
}

/* The moves. A move is a loop over what is next: enter a node, finish it, leave its scope, carry an
 * error. Nothing here recurses over the definition, and nothing is replayed: what the loop needs is
 * in the records of the open scopes, which the frames bring back. */
#include "base/time.h"
#include "workflow/flow_priv.h"

#include <stddef.h>

enum { FRAMES_BYTES_MAX = 4 * RV_PAYLOAD_BYTES_MAX, FRAMES_SPARE_BYTES = 64 };
/* What a step costs beside its expressions. */
enum { STEP_FUEL = 100 };

enum rv_err rv_flow_full(const struct rv_flow *flow)
{
    return flow->arena->refused == RV_ERR_LIMIT ? RV_ERR_LIMIT : RV_ERR_MEMORY;
}

enum rv_err rv_flow_take_text(struct rv_flow *flow, struct rv_str *ret_text)
{
    if (flow->text.failed != RV_OK)
        return flow->text.failed;
    *ret_text = rv_arena_str(flow->arena, rv_buf_str(&flow->text));
    return ret_text->at != NULL ? RV_OK : rv_flow_full(flow);
}

enum rv_err rv_flow_payload_text(struct rv_flow *flow, const struct rv_payload *payload,
                                 struct rv_str *ret_text)
{
    if (payload->text.at != NULL) {
        *ret_text = payload->text;
        return RV_OK;
    }
    rv_buf_reset(&flow->text);
    rv_payload_write(payload, &flow->text);
    return rv_flow_take_text(flow, ret_text);
}

enum rv_err rv_flow_stop_at(struct rv_flow *flow, enum rv_flow_stop_kind kind, enum rv_stand stand,
                            const struct rv_payload *value)
{
    struct rv_flow_stop *stop = flow->stop;
    rv_assert((kind == RV_FLOW_CALL) == (stand == RV_STAND_CALL));
    rv_assert((kind == RV_FLOW_BUDGET) == (stand == RV_STAND_ENTER));
    rv_assert(kind != RV_FLOW_WAIT || stop->until >= flow->env->now);
    enum rv_err err = rv_frames_write(flow, stand, value, &stop->frames);
    if (flow->text.failed == RV_ERR_LIMIT) {
        flow->fatal = true;
        if (stand == RV_STAND_ENTER)
            RV_TRY(rv_flow_open(flow, flow->node));
        return rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, flow->node,
                                      "The inputs and caught errors of the enclosing `do` and "
                                      "`try` blocks exceed 4 MiB",
                                      RV_STR_NONE);
    }
    if (err != RV_OK)
        return err;
    stop->kind = kind;
    stop->node = flow->node;
    stop->reference = rv_flow_node(flow, flow->node)->reference;
    stop->deadline = rv_flow_deadline(flow);
    flow->next = RV_NEXT_STOP;
    return RV_OK;
}

void rv_flow_enter_scope(struct rv_flow *flow, const struct rv_scope *scope,
                         const struct rv_payload *input)
{
    rv_assert(scope->count > 0);
    rv_assert(scope->nodes[0] > scope->owner);
    rv_assert(scope->role == RV_ROLE_UNDO || flow->top->node == scope->owner);
    flow->node = scope->nodes[0];
    flow->value = *input;
    flow->next = RV_NEXT_ENTER;
}

void rv_flow_begin_try(struct rv_flow *flow)
{
    struct rv_record *record = flow->top;
    const struct rv_node *node = rv_flow_node(flow, record->node);
    rv_assert(node->kind == RV_NODE_TRY);
    const struct rv_retry *retry = node->caught->retry;
    if (retry != NULL && retry->attempt_ms != 0)
        record->attempt_deadline = rv_time_add(flow->env->now, retry->attempt_ms);
    rv_flow_enter_scope(flow, node->body, &record->input);
}

/* The number of the uncompleted step of this call that a try around it keeps, taken from there. */
static uint32_t take_unfinished(struct rv_flow *flow, uint32_t node)
{
    for (struct rv_record *record = flow->top; record != NULL; record = record->outer) {
        struct rv_pairs *unfinished = &record->unfinished;
        for (uint32_t i = 0; i < unfinished->count; i++) {
            if (unfinished->items[i].node != node)
                continue;
            uint32_t number = unfinished->items[i].number;
            rv_assert(rv_flow_node(flow, record->node)->kind == RV_NODE_TRY);
            memmove(&unfinished->items[i], &unfinished->items[i + 1],
                    (unfinished->count - i - 1) * sizeof(struct rv_pair));
            unfinished->count--;
            return number;
        }
    }
    return 0;
}

/* A step that is reopened keeps its visit, any other is a new one. */
static enum rv_err count_visit(struct rv_flow *flow, bool reopened, uint32_t *ret_visit)
{
    rv_assert(rv_flow_node(flow, flow->node)->kind == RV_NODE_CALL);
    *ret_visit = 1;
    if (!rv_flow_node(flow, flow->node)->again)
        return RV_OK;
    for (uint32_t i = 0; i < flow->visits.count; i++) {
        struct rv_pair *visit = &flow->visits.items[i];
        if (visit->node == flow->node) {
            rv_assert(visit->number > 0);
            visit->number += !reopened && visit->number < UINT32_MAX;
            *ret_visit = visit->number;
            return RV_OK;
        }
    }
    return rv_flow_keep_one(flow, &flow->visits, flow->node, 1);
}

/* What the agent gets, from the transformed input, which is the value in hand. */
static enum rv_err fill_request(struct rv_flow *flow, const struct rv_node *node)
{
    struct rv_flow_stop *stop = flow->stop;
    struct rv_payload input = rv_payload_of(RV_STR("{}"));
    rv_assert(node->kind == RV_NODE_CALL);
    if (node->value != NULL)
        RV_TRY(rv_flow_evaluate(flow, node->value, &flow->value, &input));
    RV_TRY(rv_flow_payload_text(flow, &input, &stop->input));
    return rv_flow_payload_text(flow, &flow->value, &stop->data);
}

static enum rv_err run_call(struct rv_flow *flow, const struct rv_node *node)
{
    struct rv_flow_stop *stop = flow->stop;
    RV_TRY(fill_request(flow, node));
    rv_assert(node->agent.len > 0);
    stop->agent = node->agent;
    stop->reopen = take_unfinished(flow, flow->node);
    RV_TRY(count_visit(flow, stop->reopen != 0, &stop->visit));
    enum rv_err err = rv_flow_stop_at(flow, RV_FLOW_CALL, RV_STAND_CALL, NULL);
    if (err == RV_ERR_INVALID && stop->reopen != 0)
        RV_TRY(rv_flow_keep_one(flow, &flow->pending, flow->node, stop->reopen));
    return err;
}

static enum rv_err run_switch(struct rv_flow *flow, const struct rv_node *node)
{
    const struct rv_case *chosen = NULL;
    const struct rv_case *otherwise = NULL;
    rv_assert(node->kind == RV_NODE_SWITCH);
    rv_assert(node->cases_count > 0);
    for (uint32_t i = 0; i < node->cases_count && chosen == NULL; i++) {
        const struct rv_case *branch = &node->cases[i];
        bool truth = false;
        if (branch->when == NULL) {
            otherwise = branch;
            continue;
        }
        enum rv_err err = rv_flow_test(flow, branch->when, &flow->value, &truth);
        if (err != RV_OK)
            return err;
        if (truth)
            chosen = branch;
    }
    chosen = chosen != NULL ? chosen : otherwise;
    flow->then = chosen != NULL ? chosen->then : node->then;
    flow->next = RV_NEXT_FINISH;
    return RV_OK;
}

static void note_run(struct rv_flow *flow)
{
    rv_assert(rv_flow_node(flow, flow->node)->kind != RV_NODE_CALL);
    if (flow->stop->inline_count < RV_INLINE_STEPS_PER_COMMAND)
        flow->ran[flow->stop->inline_count] = flow->node;
    flow->stop->inline_count++;
}

/* Without a time to wait it is a step like any other that runs inside. */
static bool runs_inside(const struct rv_node *node)
{
    bool waits = node->wait.ms != 0 || node->wait.computed != NULL;
    return node->kind != RV_NODE_CALL && (node->kind != RV_NODE_WAIT || !waits);
}

static enum rv_err run_wait(struct rv_flow *flow, const struct rv_node *node)
{
    int64_t wait_ms;
    rv_assert(node->kind == RV_NODE_WAIT);
    enum rv_err err = rv_flow_duration(flow, &node->wait, &flow->value, &wait_ms);
    if (node->wait.computed != NULL && (err == RV_ERR_INVALID || (err == RV_OK && wait_ms == 0)))
        note_run(flow);
    if (err != RV_OK || wait_ms == 0)
        return err;
    flow->stop->until = rv_time_add(flow->env->now, wait_ms);
    return rv_flow_stop_at(flow, RV_FLOW_WAIT, RV_STAND_WAIT, &flow->value);
}

/* What a node does with its transformed input, which is the value in hand. */
static enum rv_err run_node(struct rv_flow *flow, const struct rv_node *node)
{
    rv_assert(flow->top->node == flow->node);
    flow->then = node->then;
    flow->next = RV_NEXT_FINISH;
    switch (node->kind) {
    case RV_NODE_CALL:
        return run_call(flow, node);
    case RV_NODE_SET: {
        struct rv_payload input = flow->value;
        return rv_flow_evaluate(flow, node->value, &input, &flow->value);
    }
    case RV_NODE_SWITCH:
        return run_switch(flow, node);
    case RV_NODE_DO:
        rv_flow_enter_scope(flow, node->body, &flow->value);
        return RV_OK;
    case RV_NODE_TRY:
        rv_flow_begin_try(flow);
        return RV_OK;
    case RV_NODE_RAISE:
        return rv_flow_raise_task(flow, flow->node);
    case RV_NODE_WAIT:
        return run_wait(flow, node);
    case RV_NODE_WORKFLOW:
        break;
    }
    return RV_ERR_CORRUPT;
}

static enum rv_err run_away(struct rv_flow *flow)
{
    flow->fatal = true;
    struct rv_str detail = rv_arena_printf(
        flow->arena, "more than %d consecutive steps ran without an agent or a wait between them",
        RV_INLINE_STEPS_MAX);
    return detail.at == NULL ? rv_flow_full(flow)
                             : rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, flow->node,
                                                      "The workflow runs too many steps", detail);
}

/* To the node that a directive names, once a node has ended with the value in hand. */
static enum rv_err follow(struct rv_flow *flow, const struct rv_directive *then)
{
    const struct rv_node *node = rv_flow_node(flow, flow->node);
    const struct rv_scope *scope = node->scope;
    rv_assert(scope != NULL);
    rv_assert(node->index < scope->count);
    rv_assert(scope->nodes[node->index] == flow->node);
    rv_assert(flow->top->node == flow->node);
    RV_TRY(rv_flow_close(flow));
    flow->scope = scope;
    flow->next = RV_NEXT_LEAVE;
    switch (then->kind) {
    case RV_THEN_CONTINUE:
        if (node->index + 1 < scope->count) {
            flow->node = scope->nodes[node->index + 1];
            flow->next = RV_NEXT_ENTER;
        }
        break;
    case RV_THEN_NODE:
        rv_assert(rv_flow_node(flow, then->node)->scope == scope);
        flow->node = then->node;
        flow->next = RV_NEXT_ENTER;
        break;
    case RV_THEN_EXIT:
        break;
    case RV_THEN_END:
        while (scope->role != RV_ROLE_UNDO && scope->owner != 0) {
            scope = rv_flow_node(flow, scope->owner)->scope;
            RV_TRY(rv_flow_close(flow));
        }
        flow->scope = scope;
        break;
    }
    return RV_OK;
}

/* Of the node on top, once it begins. */
static enum rv_err begin_timeout(struct rv_flow *flow, const struct rv_node *node,
                                 struct rv_payload *dot)
{
    struct rv_record *record = flow->top;
    rv_assert(record->node == flow->node);
    rv_assert(record->deadline == 0);
    RV_TRY(rv_flow_duration(flow, &node->timeout, dot, &record->timeout_ms));
    if (record->timeout_ms == 0 && node->timeout.computed != NULL)
        return rv_flow_raise_standard(flow, RV_ERROR_VALIDATION, record->node,
                                      "The timeout is not valid",
                                      RV_STR("a timeout must be longer than 0"));
    if (record->timeout_ms != 0)
        record->deadline = rv_time_add(flow->env->now, record->timeout_ms);
    return RV_OK;
}

/* Raw input, `if`, `input.from`, then the node itself (dsl.md, Data Flow). */
static enum rv_err enter(struct rv_flow *flow)
{
    struct rv_flow_env *env = flow->env;
    const struct rv_node *node = rv_flow_node(flow, flow->node);
    rv_assert(flow->in_a_row <= RV_INLINE_STEPS_MAX);
    if (flow->moved && rv_flow_over(flow))
        return rv_flow_stop_at(flow, RV_FLOW_BUDGET, RV_STAND_ENTER, &flow->value);
    flow->moved = true;
    env->inline_steps -= env->inline_steps > 0;
    RV_TRY(rv_flow_spend(flow, STEP_FUEL));
    RV_TRY(rv_flow_open(flow, flow->node));
    struct rv_record *record = flow->top;
    record->raw = flow->value;
    record->started_at = env->now;
    if (flow->in_a_row++ == RV_INLINE_STEPS_MAX)
        return run_away(flow);
    bool run = true;
    if (node->condition != NULL)
        RV_TRY(rv_flow_test(flow, node->condition, &record->raw, &run));
    if (!run)
        return follow(flow, &(struct rv_directive){.kind = RV_THEN_CONTINUE});
    if (runs_inside(node))
        note_run(flow);
    record->input = record->raw;
    if (node->timeout.ms != 0 || node->timeout.computed != NULL)
        RV_TRY(begin_timeout(flow, node, &record->raw));
    if (node->input_from != NULL)
        RV_TRY(rv_flow_evaluate(flow, node->input_from, &record->raw, &record->input));
    flow->value = record->input;
    return run_node(flow, node);
}

/* Raw output, `output.as`, `export.as`, then where `then` leads. */
static enum rv_err finish(struct rv_flow *flow)
{
    const struct rv_node *node = rv_flow_node(flow, flow->node);
    rv_assert(flow->top->node == flow->node);
    rv_assert(!rv_payload_given(&flow->raw_output));
    rv_assert(!rv_payload_given(&flow->output));
    flow->moved = true;
    if (node->output_as != NULL) {
        struct rv_payload output;
        flow->raw_output = flow->value;
        RV_TRY(rv_flow_evaluate(flow, node->output_as, &flow->raw_output, &output));
        flow->value = output;
    }
    if (node->export_as != NULL) {
        struct rv_payload context;
        if (!rv_payload_given(&flow->raw_output))
            flow->raw_output = flow->value;
        flow->output = flow->value;
        RV_TRY(rv_flow_evaluate(flow, node->export_as, &flow->output, &context));
        flow->context = context;
        flow->context_changed = true;
    }
    flow->raw_output = flow->output = (struct rv_payload){0};
    return follow(flow, &flow->then);
}

static enum rv_err done(struct rv_flow *flow)
{
    flow->stop->kind = RV_FLOW_DONE;
    flow->next = RV_NEXT_STOP;
    return rv_flow_payload_text(flow, &flow->value, &flow->stop->output);
}

/* The scope has ended with the value in hand, which is its owner's raw output. */
static enum rv_err leave(struct rv_flow *flow)
{
    const struct rv_scope *scope = flow->scope;
    const struct rv_node *owner = rv_flow_node(flow, scope->owner);
    if (scope->role == RV_ROLE_UNDO) {
        rv_assert(flow->top == NULL);
        return done(flow);
    }
    rv_assert(flow->top->node == scope->owner);
    flow->node = scope->owner;
    if (owner->kind == RV_NODE_WORKFLOW) {
        struct rv_payload output = flow->value;
        if (owner->output_as != NULL)
            RV_TRY(rv_flow_evaluate(flow, owner->output_as, &flow->value, &output));
        flow->value = output;
        return done(flow);
    }
    flow->then = owner->then;
    if (scope->role == RV_ROLE_CATCH) {
        rv_assert(owner->kind == RV_NODE_TRY);
        if (owner->caught->has_then)
            flow->then = owner->caught->then;
    }
    flow->next = RV_NEXT_FINISH;
    return RV_OK;
}

static enum rv_err step(struct rv_flow *flow)
{
    switch (flow->next) {
    case RV_NEXT_ENTER:
        return enter(flow);
    case RV_NEXT_FINISH:
        return finish(flow);
    case RV_NEXT_LEAVE:
        return leave(flow);
    case RV_NEXT_RAISE:
        return rv_flow_carry(flow);
    case RV_NEXT_STOP:
        break;
    }
    return RV_ERR_CORRUPT;
}

/* The references of the steps that ran: the first ones, where all of them are over the limit of a
 * payload. One always has room. */
static enum rv_err report_run(struct rv_flow *flow)
{
    enum { ESCAPED = 6 }; /* bytes of one in a JSON string, at most */
    const struct rv_flow_stop *stop = flow->stop;
    struct rv_buf *text = &flow->text;
    rv_assert(stop->inline_count > 0);
    rv_buf_reset(text);
    for (uint32_t i = 0; i < stop->inline_count && i < RV_INLINE_STEPS_PER_COMMAND; i++) {
        struct rv_str reference = rv_flow_node(flow, flow->ran[i])->reference;
        if (i > 0 && text->len + ESCAPED * reference.len > RV_PAYLOAD_BYTES_MAX)
            break;
        rv_buf_add_char(text, i == 0 ? '[' : ',');
        rv_json_write_string(text, reference);
    }
    rv_buf_add_char(text, ']');
    flow->stop->inline_first = rv_flow_node(flow, flow->ran[0])->reference;
    return rv_flow_take_text(flow, &flow->stop->inline_run);
}

/* Which steps ran, what became of the context, what was left for good. */
static enum rv_err report(struct rv_flow *flow)
{
    struct rv_flow_stop *stop = flow->stop;
    if (stop->inline_count > 0)
        RV_TRY(report_run(flow));
    if (flow->context_changed)
        RV_TRY(rv_flow_payload_text(flow, &flow->context, &stop->context));
    if (flow->abandoned.count == 0)
        return RV_OK;
    stop->abandoned = RV_NEW_ARRAY(flow->arena, uint32_t, flow->abandoned.count);
    if (stop->abandoned == NULL)
        return rv_flow_full(flow);
    for (uint32_t i = 0; i < flow->abandoned.count; i++)
        stop->abandoned[stop->abandoned_count++] = flow->abandoned.items[i].number;
    return RV_OK;
}

void rv_flow_init(struct rv_flow *flow, struct rv_flow_env *env, struct rv_flow_stop *stop)
{
    memset(flow, 0, offsetof(struct rv_flow, ran));
    *stop = (struct rv_flow_stop){.reference = RV_STR(""), .iteration = RV_STR("")};
    flow->env = env;
    flow->definition = env->definition;
    flow->arena = env->arena;
    flow->stop = stop;
    flow->context = rv_payload_of(env->context);
    flow->workflow_input = rv_payload_of(env->workflow_input);
    flow->undo = rv_payload_of(env->undo);
    rv_flow_memory_init(flow);
    rv_buf_init(&flow->text, FRAMES_BYTES_MAX);
}

/* Moves until it stops. `err` is how the beginning of the move went; INVALID there and in a step
 * says that an error of the DSL was raised, which the next step carries. */
static enum rv_err flow_run(struct rv_flow *flow, enum rv_err err)
{
    while (err == RV_ERR_INVALID || (err == RV_OK && flow->next != RV_NEXT_STOP)) {
        rv_assert(err == RV_OK || flow->next == RV_NEXT_RAISE);
        err = step(flow);
    }
    if (err == RV_OK)
        err = report(flow);
    rv_buf_done(&flow->text);
    rv_arena_done(&flow->copies);
    return err;
}

/* An input or output from outside; over the limit it is an error of the node on top. */
static enum rv_err take_payload(struct rv_flow *flow, struct rv_str text, const char *title)
{
    rv_assert(flow->top->node == flow->node);
    flow->value = rv_payload_of(text);
    if (text.at == NULL)
        return RV_ERR_CORRUPT;
    if (text.len <= RV_PAYLOAD_BYTES_MAX)
        return RV_OK;
    struct rv_str detail = rv_arena_printf(flow->arena, "%zu bytes; the maximum is %d", text.len,
                                           RV_PAYLOAD_BYTES_MAX);
    return detail.at == NULL
               ? rv_flow_full(flow)
               : rv_flow_raise_standard(flow, RV_ERROR_RUNTIME, flow->top->node, title, detail);
}

static enum rv_err begin_workflow(struct rv_flow *flow, struct rv_str input)
{
    const struct rv_node *root = rv_flow_node(flow, 0);
    RV_TRY(rv_flow_open(flow, 0));
    RV_TRY(take_payload(flow, input, "The input exceeds a limit"));
    RV_TRY(begin_timeout(flow, root, &flow->value));
    struct rv_payload transformed = flow->value;
    if (root->input_from != NULL)
        RV_TRY(rv_flow_evaluate(flow, root->input_from, &flow->value, &transformed));
    rv_flow_enter_scope(flow, root->body, &transformed);
    return RV_OK;
}

enum rv_err rv_flow_start(struct rv_flow_env *env, struct rv_str input,
                          struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    return flow_run(&flow, begin_workflow(&flow, input));
}

enum rv_err rv_flow_start_undo(struct rv_flow_env *env, uint32_t node, struct rv_str data,
                               struct rv_flow_stop *ret_stop)
{
    if (node == 0 || node > env->definition->count || data.at == NULL ||
        env->definition->nodes[node]->undo_way != RV_UNDO_STEPS)
        return RV_ERR_CORRUPT;
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    struct rv_payload input = rv_payload_of(data);
    rv_flow_enter_scope(&flow, env->definition->nodes[node]->undo, &input);
    return flow_run(&flow, RV_OK);
}

static enum rv_err go_on(struct rv_flow *flow, struct rv_str frames)
{
    enum rv_stand stand;
    RV_TRY(rv_frames_read(flow, frames, &stand));
    switch (stand) {
    case RV_STAND_CALL:
    case RV_STAND_FAILED:
        break;
    case RV_STAND_WAIT:
        rv_assert(rv_payload_given(&flow->value));
        flow->in_a_row = 0;
        flow->top->input = flow->value;
        flow->then = rv_flow_node(flow, flow->node)->then;
        flow->next = RV_NEXT_FINISH;
        return RV_OK;
    case RV_STAND_RETRY:
        rv_flow_begin_try(flow);
        return RV_OK;
    case RV_STAND_ENTER:
        flow->next = RV_NEXT_ENTER;
        return RV_OK;
    }
    return RV_ERR_CORRUPT;
}

enum rv_err rv_flow_go_on(struct rv_flow_env *env, struct rv_str frames,
                          struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    return flow_run(&flow, go_on(&flow, frames));
}

/* Reads frames that stand at a call. */
static enum rv_err read_call(struct rv_flow *flow, struct rv_str frames)
{
    enum rv_stand stand;
    RV_TRY(rv_frames_read(flow, frames, &stand));
    return stand == RV_STAND_CALL ? RV_OK : RV_ERR_CORRUPT;
}

static enum rv_err complete(struct rv_flow *flow, struct rv_str frames, struct rv_str data,
                            struct rv_str output)
{
    RV_TRY(read_call(flow, frames));
    if (data.at == NULL)
        return RV_ERR_CORRUPT;
    flow->top->input = rv_payload_of(data);
    flow->then = rv_flow_node(flow, flow->node)->then;
    flow->next = RV_NEXT_FINISH;
    return take_payload(flow, output, "The agent's output exceeds a limit");
}

enum rv_err rv_flow_complete(struct rv_flow_env *env, struct rv_str frames, struct rv_str data,
                             struct rv_str output, struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    return flow_run(&flow, complete(&flow, frames, data, output));
}

static enum rv_err settle(struct rv_flow *flow, struct rv_str frames, struct rv_str output)
{
    enum rv_stand stand;
    RV_TRY(rv_frames_read(flow, frames, &stand));
    if (stand != RV_STAND_FAILED)
        return RV_ERR_CORRUPT;
    RV_TRY(take_payload(flow, output, "The output exceeds a limit"));
    return flow->node == 0 ? done(flow) : follow(flow, &rv_flow_node(flow, flow->node)->then);
}

enum rv_err rv_flow_settle(struct rv_flow_env *env, struct rv_str frames, struct rv_str output,
                           struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    return flow_run(&flow, settle(&flow, frames, output));
}

static enum rv_err raise_reply(struct rv_flow *flow, struct rv_str frames, uint32_t number,
                               struct rv_str error)
{
    RV_TRY(read_call(flow, frames));
    if (number != 0)
        RV_TRY(rv_flow_keep_one(flow, &flow->pending, flow->node, number));
    return rv_flow_raise_reply(flow, error);
}

enum rv_err rv_flow_raise(struct rv_flow_env *env, struct rv_str frames, uint32_t number,
                          struct rv_str error, struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    return flow_run(&flow, raise_reply(&flow, frames, number, error));
}

static enum rv_err visit_anew(struct rv_flow *flow, struct rv_str frames)
{
    RV_TRY(read_call(flow, frames));
    RV_TRY(count_visit(flow, false, &flow->stop->visit));
    return rv_frames_write(flow, RV_STAND_CALL, NULL, &flow->stop->frames);
}

enum rv_err rv_flow_visit_anew(struct rv_flow_env *env, struct rv_str frames,
                               struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    flow.text.bytes_max += FRAMES_SPARE_BYTES; /* the number may have one more digit */
    enum rv_err err = visit_anew(&flow, frames);
    rv_buf_done(&flow.text);
    return err;
}

static enum rv_err ask_anew(struct rv_flow *flow, struct rv_str frames, struct rv_str data)
{
    RV_TRY(read_call(flow, frames));
    if (data.at == NULL)
        return RV_ERR_CORRUPT;
    const struct rv_node *node = rv_flow_node(flow, flow->node);
    struct rv_record *record = flow->top;
    rv_assert(record->node == flow->node);
    record->input = rv_payload_of(data);
    /* Frames of an older release do not have it. */
    if (node->keeps_from && rv_payload_given(&record->raw))
        RV_TRY(rv_flow_evaluate(flow, node->input_from, &record->raw, &record->input));
    flow->value = record->input;
    return fill_request(flow, node);
}

enum rv_err rv_flow_ask_anew(struct rv_flow_env *env, struct rv_str frames, struct rv_str data,
                             uint32_t number, struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    flow.next = RV_NEXT_STOP;
    enum rv_err err = ask_anew(&flow, frames, data);
    struct rv_str raised = RV_STR_NONE;
    if (err == RV_ERR_INVALID) {
        raised = flow.error.text;
        enum rv_err kept = rv_flow_keep_one(&flow, &flow.pending, flow.node, number);
        err = kept == RV_OK ? err : kept;
    }
    err = flow_run(&flow, err);
    ret_stop->raised = raised;
    return err;
}

/* The deadline to raise for: of those that have passed the outermost, or, should none have, the
 * earliest. */
struct expiry {
    struct rv_record *record; /* NULL: there is none */
    bool attempt;             /* of one attempt of a try, which its own catch may take */
    bool passed;
    int64_t at;
};

static void consider(struct expiry *expiry, struct rv_record *record, bool attempt, int64_t now)
{
    int64_t at = attempt ? record->attempt_deadline : record->deadline;
    bool passed = at <= now;
    if (at == 0 || (expiry->passed && !passed) ||
        (!passed && expiry->record != NULL && expiry->at <= at))
        return;
    *expiry = (struct expiry){record, attempt, passed, at};
}

static enum rv_err raise_expired(struct rv_flow *flow)
{
    struct expiry expiry = {0};
    for (struct rv_record *record = flow->top; record != NULL; record = record->outer) {
        consider(&expiry, record, true, flow->env->now);
        consider(&expiry, record, false, flow->env->now);
    }
    if (expiry.record == NULL || (expiry.attempt && expiry.record == flow->top))
        return RV_ERR_CORRUPT;
    while ((expiry.attempt ? flow->top->outer : flow->top) != expiry.record) {
        RV_TRY(rv_flow_keep(flow, &flow->pending, &flow->top->unfinished));
        flow->top = flow->top->outer;
        rv_assert(flow->top != NULL);
    }
    enum rv_err err = rv_flow_raise_standard(flow, RV_ERROR_TIMEOUT, expiry.record->node,
                                             "The timeout has passed", RV_STR_NONE);
    flow->timed_out = err == RV_ERR_INVALID;
    return err;
}

static enum rv_err expire(struct rv_flow *flow, struct rv_str frames, uint32_t number)
{
    enum rv_stand stand;
    RV_TRY(rv_frames_read(flow, frames, &stand));
    if (stand == RV_STAND_ENTER)
        RV_TRY(rv_flow_open(flow, flow->node));
    if (stand == RV_STAND_CALL && number != 0)
        RV_TRY(rv_flow_keep_one(flow, &flow->pending, flow->node, number));
    return raise_expired(flow);
}

enum rv_err rv_flow_expire(struct rv_flow_env *env, struct rv_str frames, uint32_t number,
                           struct rv_flow_stop *ret_stop)
{
    struct rv_flow flow;
    rv_flow_init(&flow, env, ret_stop);
    enum rv_err err = expire(&flow, frames, number);
    struct rv_str raised = flow.error.text;
    err = flow_run(&flow, err);
    ret_stop->raised = raised;
    return err;
}

/* Leaves all open scopes, with the uncompleted steps that they keep. */
static enum rv_err abandon_all(struct rv_flow *flow, struct rv_str frames)
{
    enum rv_stand stand;
    RV_TRY(rv_frames_read(flow, frames, &stand));
    while (flow->top != NULL)
        RV_TRY(rv_flow_close(flow));
    return RV_OK;
}

enum rv_err rv_flow_unfinished(struct rv_flow_env *env, struct rv_str frames,
                               uint32_t **ret_numbers, uint32_t *ret_count)
{
    struct rv_flow flow;
    struct rv_flow_stop stop;
    rv_flow_init(&flow, env, &stop);
    enum rv_err err = abandon_all(&flow, frames);
    rv_buf_done(&flow.text);
    if (err != RV_OK)
        return err;
    uint32_t count = flow.abandoned.count;
    uint32_t *numbers = RV_NEW_ARRAY(env->arena, uint32_t, count + 1);
    if (numbers == NULL)
        return rv_flow_full(&flow);
    for (uint32_t i = 0; i < count; i++)
        numbers[i] = flow.abandoned.items[i].number;
    *ret_numbers = numbers;
    *ret_count = count;
    return RV_OK;
}

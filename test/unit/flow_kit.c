#include "flow_kit.h"

#include "base/buf.h"
#include "base/limits.h"
#include "yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

bool kit_load(struct kit *kit, const char *yaml)
{
    memset(kit, 0, sizeof *kit);
    rv_arena_init(&kit->memory, 0);
    rv_arena_init(&kit->last, 0);
    kit->yaml = strdup(yaml);
    kit->trace = calloc(1, KIT_TEXT_BYTES);
    kit->now = 1000000;
    struct rv_json document;
    struct rv_yaml_fault fault;
    kit->err = rv_yaml_parse(&kit->memory, rv_str_of(kit->yaml), RV_DEFINITION_BYTES_MAX, &document,
                             &fault);
    if (kit->err != RV_OK) {
        kit->fault.message = rv_arena_printf(&kit->memory, "%u:%u: %.*s", fault.line, fault.column,
                                             RV_STR_FMT(fault.message));
        return false;
    }
    kit->err = rv_definition_load(&kit->memory, &document, &kit->definition, &kit->fault);
    if (kit->err == RV_OK)
        return true;
    uint32_t line;
    uint32_t column;
    bool found = rv_yaml_locate(rv_str_of(kit->yaml), kit->fault.pointer, kit->fault.at_key,
                                kit->fault.offset, &line, &column);
    kit->fault.message = rv_arena_printf(&kit->memory, "%u:%u: %s%.*s", line, column,
                                         found ? "" : "(around) ", RV_STR_FMT(kit->fault.message));
    return false;
}

void kit_new(struct kit *kit, const char *yaml)
{
    if (!kit_load(kit, yaml))
        print_error("%s\n%.*s\n", yaml, RV_STR_FMT(kit->fault.message));
    assert_int_equal(kit->err, RV_OK);
}

void kit_done(struct kit *kit)
{
    rv_arena_done(&kit->memory);
    rv_arena_done(&kit->last);
    free(kit->yaml);
    free(kit->trace);
    free(kit->context);
    free(kit->input);
    kit->yaml = kit->trace = kit->context = kit->input = NULL;
}

static char *copy_text(struct rv_str text)
{
    char *copy = malloc(text.len + 1);
    assert_non_null(copy);
    if (text.len > 0)
        memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return copy;
}

const char *kit_text(struct kit *kit, struct rv_str text)
{
    return rv_arena_str(&kit->memory, text).at;
}

__attribute__((format(printf, 2, 3))) static void trace(struct kit *kit, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = KIT_TEXT_BYTES - kit->trace_len;
    int n = vsnprintf(kit->trace + kit->trace_len, room, format, args);
    if (n > 0 && (size_t)n < room)
        kit->trace_len += (size_t)n;
    va_end(args);
}

static struct rv_flow_env env_of(struct kit *kit)
{
    rv_arena_done(&kit->last);
    rv_arena_init(&kit->last, kit->arena_bytes);
    return (struct rv_flow_env){
        .definition = kit->definition,
        .arena = &kit->last,
        .now = kit->now,
        .task = RV_STR("06DWX3T9H2K4Q"),
        .started_at = 1000000,
        .workflow_input = rv_str_of(kit->input),
        .context = rv_str_of(kit->context),
        .undo = rv_str_of(kit->undo),
        .fuel = kit->fuel ? kit->fuel : INT64_MAX / 2,
        .inline_steps = kit->inline_steps ? kit->inline_steps : UINT32_MAX,
    };
}

/* Every step that is left for good was open, and is told once. */
static void check_abandoned(struct kit *kit)
{
    for (uint32_t i = 0; i < kit->stop.abandoned_count; i++) {
        uint32_t number = kit->stop.abandoned[i];
        assert_in_range(number, 1, kit->steps_count);
        assert_int_equal(kit->steps[number].state, 'o');
        kit->steps[number].state = 'a';
        trace(kit, "abandoned %u\n", number);
    }
}

/* The uncompleted steps are those that the frames keep, and the one at which it stands. */
static void check_unfinished(struct kit *kit)
{
    struct rv_flow_env env = env_of(kit);
    uint32_t *numbers = NULL;
    uint32_t count = 0;
    struct rv_flow_stop *stop = &kit->stop;
    assert_int_equal(rv_flow_unfinished(&env, stop->frames, &numbers, &count), RV_OK);
    uint32_t open = 0;
    for (uint32_t n = 1; n <= kit->steps_count; n++)
        open += kit->steps[n].state == 'o';
    assert_int_equal(open, count + (stop->kind == RV_FLOW_CALL));
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(kit->steps[numbers[i]].state, 'o');
}

/* The number of the step at this call: an old one, or a new one with an identity of its own. */
static uint32_t number_of(struct kit *kit)
{
    const struct rv_flow_stop *stop = &kit->stop;
    if (stop->reopen != 0) {
        assert_in_range(stop->reopen, 1, kit->steps_count);
        const struct kit_step *step = &kit->steps[stop->reopen];
        assert_int_equal(step->state, 'o');
        assert_int_equal(step->node, stop->node);
        assert_int_equal(step->visit, stop->visit);
        return stop->reopen;
    }
    for (uint32_t n = 1; n <= kit->steps_count; n++)
        assert_false(kit->steps[n].node == stop->node && kit->steps[n].visit == stop->visit);
    assert_true(kit->steps_count + 1 < KIT_STEPS_MAX);
    kit->steps[++kit->steps_count] = (struct kit_step){stop->node, stop->visit, 'o'};
    return kit->steps_count;
}

static enum rv_err answer_call(struct kit *kit, struct rv_str frames, struct rv_str data,
                               enum kit_answer answer, struct rv_str text)
{
    struct rv_flow_env env = env_of(kit);
    switch (answer) {
    case KIT_COMPLETE:
        kit->steps[kit->current].state = 'c';
        return rv_flow_complete(&env, frames, data, text, &kit->stop);
    case KIT_RAISE:
        return rv_flow_raise(&env, frames, kit->current, text, &kit->stop);
    case KIT_EXPIRE:
        return rv_flow_expire(&env, frames, kit->current, &kit->stop);
    case KIT_LEAVE:
        break;
    }
    return RV_ERR_REFUSED;
}

static enum rv_err move_on(struct kit *kit, enum kit_answer answer, struct rv_str text)
{
    /* Nothing survives a stop but what would be recorded. */
    struct rv_flow_stop *stop = &kit->stop;
    char *frames = copy_text(stop->frames);
    char *data = copy_text(stop->data);
    struct rv_str frames_str = {frames, stop->frames.len};
    struct rv_str data_str = {data, stop->data.len};
    enum rv_err err;
    if (stop->kind == RV_FLOW_CALL) {
        err = answer_call(kit, frames_str, data_str, answer, text);
    } else if (stop->kind == RV_FLOW_WAIT && stop->deadline != 0 && stop->deadline < stop->until) {
        kit->now = stop->deadline > kit->now ? stop->deadline : kit->now;
        struct rv_flow_env env = env_of(kit);
        err = rv_flow_expire(&env, frames_str, 0, stop);
    } else {
        kit->now = stop->kind == RV_FLOW_WAIT && stop->until > kit->now ? stop->until : kit->now;
        struct rv_flow_env env = env_of(kit);
        err = rv_flow_go_on(&env, frames_str, stop);
    }
    /* The stop may borrow what it was given. */
    if (err == RV_OK && stop->kind == RV_FLOW_CALL)
        stop->data = rv_arena_str(&kit->memory, stop->data);
    if (err == RV_OK && stop->kind == RV_FLOW_CALL)
        stop->input = rv_arena_str(&kit->memory, stop->input);
    if (err == RV_OK && stop->kind == RV_FLOW_DONE)
        stop->output = rv_arena_str(&kit->memory, stop->output);
    free(frames);
    free(data);
    return err;
}

static void note_stop(struct kit *kit)
{
    static const char *const names[] = {"call", "wait", "budget", "done", "raised"};
    const struct rv_flow_stop *stop = &kit->stop;
    if (stop->inline_run.at != NULL)
        trace(kit, "ran %.*s\n", RV_STR_FMT(stop->inline_run));
    check_abandoned(kit);
    if (stop->context.at != NULL) {
        free(kit->context);
        kit->context = copy_text(stop->context);
    }
    trace(kit, "%s %.*s", names[stop->kind], RV_STR_FMT(stop->reference));
    if (stop->kind == RV_FLOW_CALL)
        trace(kit, " %u%s %.*s", stop->visit, stop->reopen ? " again" : "",
              RV_STR_FMT(stop->input));
    trace(kit, "\n");
    if (stop->frames.len > kit->frames_bytes_max)
        kit->frames_bytes_max = stop->frames.len;
    bool over = stop->kind == RV_FLOW_DONE || stop->kind == RV_FLOW_RAISED;
    for (uint32_t n = 1; over && n <= kit->steps_count; n++)
        assert_int_not_equal(kit->steps[n].state, 'o');
}

static void drive(struct kit *kit)
{
    size_t stops_max = kit->stops_max ? kit->stops_max : 10000;
    for (kit->stops = 1; kit->err == RV_OK; kit->stops++) {
        note_stop(kit);
        enum rv_flow_stop_kind kind = kit->stop.kind;
        if (kind == RV_FLOW_DONE || kind == RV_FLOW_RAISED || kit->stops == stops_max)
            return;
        enum kit_answer answer = KIT_LEAVE;
        struct rv_str text = RV_STR("{}");
        if (kind == RV_FLOW_CALL) {
            kit->current = number_of(kit);
            answer = kit->agent != NULL ? kit->agent(kit, &kit->stop, &text) : KIT_COMPLETE;
            if (answer == KIT_LEAVE)
                return;
        }
        /* Asking for the unfinished uses the memory in which the stop lives. */
        kit->stop.frames = rv_arena_str(&kit->memory, kit->stop.frames);
        kit->stop.data = rv_arena_str(&kit->memory, kit->stop.data);
        if (kit->arena_bytes == 0)
            check_unfinished(kit);
        kit->err = move_on(kit, answer, text);
    }
}

static void reset(struct kit *kit)
{
    kit->steps_count = 0;
    kit->current = 0;
    kit->trace_len = 0;
    kit->trace[0] = '\0';
    kit->frames_bytes_max = 0;
}

void kit_run(struct kit *kit, const char *input)
{
    reset(kit);
    free(kit->input);
    free(kit->context);
    kit->context = NULL;
    kit->input = copy_text(rv_str_of(input));
    struct rv_flow_env env = env_of(kit);
    kit->err = rv_flow_start(&env, rv_str_of(kit->input), &kit->stop);
    drive(kit);
}

void kit_run_undo(struct kit *kit, const char *reference, const char *data)
{
    reset(kit);
    uint32_t node = rv_definition_find(kit->definition, rv_str_of(reference));
    assert_int_not_equal(node, 0);
    struct rv_flow_env env = env_of(kit);
    kit->err = rv_flow_start_undo(&env, node, rv_str_of(data), &kit->stop);
    drive(kit);
}

static struct rv_json parse(struct kit *kit, struct rv_str text)
{
    struct rv_json value = rv_json_null();
    assert_int_equal(rv_json_parse(&kit->memory, text, RV_JSON_DEPTH_MAX, &value, NULL), RV_OK);
    return value;
}

void kit_expect_output(struct kit *kit, const char *json)
{
    assert_int_equal(kit->err, RV_OK);
    if (kit->stop.kind != RV_FLOW_DONE)
        print_error("%s%.*s\n", kit->trace, RV_STR_FMT(kit->stop.error));
    assert_int_equal(kit->stop.kind, RV_FLOW_DONE);
    struct rv_json want = parse(kit, rv_str_of(json));
    struct rv_json got = parse(kit, kit->stop.output);
    if (!rv_json_equal(&want, &got))
        print_error("want %s\ngot  %.*s\n%s", json, RV_STR_FMT(kit->stop.output), kit->trace);
    assert_true(rv_json_equal(&want, &got));
}

void kit_expect_error(struct kit *kit, const char *json)
{
    assert_int_equal(kit->err, RV_OK);
    if (kit->stop.kind != RV_FLOW_RAISED)
        print_error("%s%.*s\n", kit->trace, RV_STR_FMT(kit->stop.output));
    assert_int_equal(kit->stop.kind, RV_FLOW_RAISED);
    struct rv_json want = parse(kit, rv_str_of(json));
    struct rv_json got = parse(kit, kit->stop.error);
    for (uint32_t i = 0; i < want.len; i++) {
        const struct rv_json_member *member = &want.u.members[i];
        const struct rv_json *other = rv_json_get(&got, rv_json_str(&member->key));
        if (other == NULL || !rv_json_equal(&member->value, other))
            print_error("want %s\ngot  %.*s\n", json, RV_STR_FMT(kit->stop.error));
        assert_non_null(other);
        assert_true(rv_json_equal(&member->value, other));
    }
}

enum kit_answer kit_scripted(struct kit *kit, const struct rv_flow_stop *stop,
                             struct rv_str *ret_text)
{
    const char *const **script = kit->agent_context;
    const char *line = **script;
    if (line == NULL)
        return KIT_LEAVE;
    (*script)++;
    size_t name = strcspn(line, "=!~");
    const char *slash = stop->reference.at + stop->reference.len - name;
    if (stop->reference.len < name || memcmp(slash, line, name) != 0)
        print_error("%s, but it stands at %.*s\n", line, RV_STR_FMT(stop->reference));
    assert_true(stop->reference.len >= name && memcmp(slash, line, name) == 0);
    *ret_text = rv_str_of(line + name + 1);
    if (line[name] == '~')
        kit->now = stop->deadline;
    return line[name] == '=' ? KIT_COMPLETE : line[name] == '!' ? KIT_RAISE : KIT_EXPIRE;
}

void kit_play(struct kit *kit, const char *yaml, const char *input, const char *const *script)
{
    kit_new(kit, yaml);
    kit->agent = kit_scripted;
    kit->agent_context = &script;
    kit_run(kit, input);
    if (*script != NULL)
        print_error("not reached: %s\n%s", *script, kit->trace);
    assert_null(*script);
}

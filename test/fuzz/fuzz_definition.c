/* Any text as a workflow: loaded, or refused with a place; what is loaded also starts, and goes on
 * from its own frames with an agent that says yes. */
#include "base/assert.h"
#include "base/limits.h"
#include "workflow/definition.h"
#include "workflow/flow.h"
#include "yaml/yaml.h"

enum { STOPS_MAX = 20, MEMORY_MAX = 64 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small budgets: the fuzzer's time is for the shapes, not for long runs. */
static void run(const struct rv_definition *definition)
{
    struct rv_arena arena;
    rv_arena_init(&arena, MEMORY_MAX);
    struct rv_flow_env env = {.definition = definition,
                              .arena = &arena,
                              .now = 1000,
                              .task = RV_STR("0000000000001"),
                              .started_at = 1000,
                              .workflow_input = RV_STR("{\"n\":1}")};
    struct rv_flow_stop stop;
    env.fuel = 1000;
    env.inline_steps = 16;
    enum rv_err err = rv_flow_start(&env, env.workflow_input, &stop);
    for (int i = 0; i < STOPS_MAX && err == RV_OK; i++) {
        struct rv_str frames = stop.frames;
        struct rv_str input = stop.data;
        if (stop.kind == RV_FLOW_DONE || stop.kind == RV_FLOW_RAISED)
            break;
        env.now += 1000;
        env.fuel = 1000;
        env.inline_steps = 16;
        if (stop.context.at != NULL)
            env.context = stop.context;
        if (stop.kind == RV_FLOW_CALL)
            err = rv_flow_complete(&env, frames, input, RV_STR("{\"n\":2}"), &stop);
        else
            err = rv_flow_go_on(&env, frames, &stop);
    }
    rv_assert(err == RV_OK || err == RV_ERR_LIMIT);
    rv_arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv_str text = {(const char *)data, size};
    struct rv_arena arena;
    rv_arena_init(&arena, MEMORY_MAX);
    struct rv_json document;
    struct rv_yaml_fault fault;
    if (rv_yaml_parse(&arena, text, RV_DEFINITION_BYTES_MAX, &document, &fault) == RV_OK) {
        const struct rv_definition *definition;
        struct rv_definition_fault why = {.message = RV_STR_NONE};
        enum rv_err err = rv_definition_load(&arena, &document, &definition, &why);
        uint32_t line;
        uint32_t column;
        if (err == RV_OK)
            run(definition);
        else
            rv_assert(why.message.at != NULL && why.pointer.at != NULL);
        static struct rv_definition_faults faults;
        struct rv_arena again;
        rv_arena_init(&again, MEMORY_MAX);
        enum rv_err all = rv_definition_check(&again, &document, &definition, &faults);
        bool told = err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED;
        rv_assert((all == RV_OK) == (err == RV_OK));
        rv_assert(all == RV_ERR_LIMIT || (faults.count > 0) == told);
        rv_arena_done(&again);
        if (told)
            (void)rv_yaml_locate(text, why.pointer, why.at_key, why.offset, &line, &column);
    }
    rv_arena_done(&arena);
    return 0;
}

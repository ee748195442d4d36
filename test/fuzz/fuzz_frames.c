/* Any bytes as frames of a definition that has everything: CORRUPT, or a stop; never a crash. The
 * first byte chooses the move. */
#include "../lib/workflow.h"
#include "base/assert.h"
#include "base/limits.h"
#include "workflow/definition.h"
#include "workflow/flow.h"
#include "yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Loaded once; the arena stays reachable for the leak checker. */
static const struct rv_definition *load(void)
{
    static struct rv_arena arena;
    static const struct rv_definition *definition;
    if (definition == NULL) {
        struct rv_json document;
        struct rv_yaml_fault fault;
        struct rv_definition_fault why;
        struct rv_str yaml = rv_str_of(workflow_file("fuzz/frames"));
        rv_arena_init(&arena, 0);
        rv_assert(rv_yaml_parse(&arena, yaml, yaml.len + 1, &document, &fault) == RV_OK);
        rv_assert(rv_definition_load(&arena, &document, &definition, &why) == RV_OK);
    }
    return definition;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct rv_str frames = {(const char *)data + 1, size - 1};
    struct rv_arena arena;
    rv_arena_init(&arena, (size_t)16 * 1024 * 1024);
    struct rv_flow_env env = {.definition = load(),
                              .arena = &arena,
                              .now = 100000,
                              .task = RV_STR("0000000000001"),
                              .started_at = 1000,
                              .workflow_input = RV_STR("{}"),
                              .fuel = 1000,
                              .inline_steps = 64};
    struct rv_flow_stop stop;
    uint32_t *numbers;
    uint32_t count;
    enum rv_err err = RV_ERR_CORRUPT;
    switch (data[0] % 5) {
    case 0:
        err = rv_flow_complete(&env, frames, RV_STR("{}"), RV_STR("{\"again\":false}"), &stop);
        break;
    case 1:
        err = rv_flow_raise(&env, frames, 7, RV_STR("{\"status\":500}"), &stop);
        break;
    case 2:
        err = rv_flow_expire(&env, frames, 7, &stop);
        break;
    case 3:
        err = rv_flow_go_on(&env, frames, &stop);
        break;
    case 4:
        err = rv_flow_unfinished(&env, frames, &numbers, &count);
        break;
    }
    rv_assert(err == RV_OK || err == RV_ERR_CORRUPT || err == RV_ERR_LIMIT);
    rv_arena_done(&arena);
    return 0;
}

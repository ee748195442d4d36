#include "sim/workload.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"
#include "sim/server.h"
#include "sim/world.h"

#include <stdio.h>

const char *workload_agent(uint32_t kind)
{
    static const char *const names[SIM_KINDS_MAX] = {"inventory", "payment", "shipping"};
    return names[kind % SIM_KINDS_MAX];
}

static void workflow_load(struct world *w, struct workload_workflow *workflow)
{
    struct rv_json document;
    struct rv_definition_fault fault = {.message = RV_STR_NONE};
    enum rv_err err = rv_json_parse(&w->arena, workflow->source, RV_JSON_DEPTH_MAX, &document,
                                    NULL);
    if (err == RV_OK)
        err = rv_definition_load(&w->arena, &document, &workflow->definition, &fault);
    if (err != RV_OK)
        world_violate(w, "W-01", "a generated workflow is refused: %.*s: %.*s\n%.*s",
                      RV_STR_FMT(fault.pointer), RV_STR_FMT(fault.message),
                      RV_STR_FMT(workflow->source));
}

void workload_step_end(struct world *w, struct rv_buf *out, size_t from, uint32_t workflow,
                       uint32_t step)
{
    if (part_stays(w, PART_STEP, workflow, step))
        return;
    out->len = from;
    rv_buf_lit(out, "\"set\":{\"without\":true}");
}

void workload_add(struct world *w, struct rv_str name, struct rv_str source)
{
    if (w->workload == NULL)
        w->workload = RV_NEW(&w->arena, struct workload);
    rv_assert(w->workload != NULL && w->workload->count < SIM_WORKFLOWS_MAX);
    struct workload_workflow *workflow = &w->workload->workflows[w->workload->count++];
    workflow->name = name;
    workflow->source = source;
    world_say(w, "world", "workflow %.*s", RV_STR_FMT(workflow->source));
    workflow_load(w, workflow);
    if (w->violated == NULL)
        server_publish(&w->servers[0], workflow->source);
}

void workload_new(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.workflows && w->violated == NULL; i++) {
        struct rv_buf out;
        rv_buf_init(&out, RV_DEFINITION_BYTES_MAX);
        if (world_chance(w, STREAM_WORKLOAD, 300))
            workload_order(w, &out, i);
        else
            workload_random(w, &out, i);
        struct rv_str source = rv_arena_str(&w->arena, rv_buf_str(&out));
        rv_assert(out.failed == RV_OK && source.at != NULL);
        rv_buf_done(&out);
        workload_add(w, rv_arena_printf(&w->arena, "w%u", i), source);
    }
}

const struct rv_definition *workload_definition(struct world *w, struct rv_str name)
{
    for (uint32_t i = 0; i < w->workload->count; i++)
        if (rv_str_eq(w->workload->workflows[i].name, name))
            return w->workload->workflows[i].definition;
    world_violate(w, "I-18", "a task names a workflow that was never published");
    return NULL;
}

void workload_submission(struct world *w, struct rv_buf *body, uint32_t number)
{
    /* Drawn from the number, so that a repeated submission has the same body. */
    uint64_t x = w->seed * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xd1b54a32d192ed03);
    x ^= x >> 29;
    rv_buf_printf(body,
                  "{\"workflow\":\"sim/w%u\",\"priority\":%u,\"input\":{\"number\":%u,\"roll\":%u}",
                  (unsigned)(x % w->workload->count), (unsigned)(x >> 8) % 10, number,
                  (unsigned)(x >> 16) % 10);
}

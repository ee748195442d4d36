#include "sim/cast/workload.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"
#include "sim/store/database.h"
#include "sim/world/history.h"
#include "sim/cast/hook.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdio.h>

enum { DRAFT_STEPS_MAX = 100 };

const char *workload_agent(uint32_t kind)
{
    static const char *const names[SIM_KINDS_MAX] = {"inventory", "payment", "shipping"};
    return names[kind % SIM_KINDS_MAX];
}

static void version_load(struct world *w, struct workload_version *version)
{
    struct rv_definition_fault fault = {.message = RV_STR_NONE};
    enum rv_err err = rv_json_parse(&w->arena, version->source, RV_JSON_DEPTH_MAX,
                                    &version->document, NULL);
    if (err == RV_OK)
        err = rv_definition_load(&w->arena, &version->document, &version->definition, &fault);
    if (err != RV_OK)
        world_violate(w, "W-01", "a generated workflow is refused: %.*s: %.*s\n%.*s",
                      RV_STR_FMT(fault.pointer), RV_STR_FMT(fault.message),
                      RV_STR_FMT(version->source));
}

void workload_step_end(struct world *w, struct rv_buf *out, size_t from,
                       const struct workload_title *title, uint32_t step)
{
    if (part_stays(w, PART_STEP, title->workflow, title->draft * DRAFT_STEPS_MAX + step))
        return;
    out->len = from;
    rv_buf_lit(out, "\"set\":{\"without\":true}");
}

bool workload_is_heavy(const struct world *w, struct rv_str name)
{
    for (uint32_t i = 0; i < w->workload->count; i++) {
        const struct workload_workflow *workflow = &w->workload->workflows[i];
        for (uint32_t n = 0; rv_str_eq(workflow->name, name) && n < workflow->versions_count; n++) {
            struct rv_str source = workflow->versions[n].source;
            if (memmem(source.at, source.len, SIM_HEAVY, sizeof SIM_HEAVY - 1) != NULL)
                return true;
        }
    }
    return false;
}

static struct rv_str source_draw(struct world *w, struct workload_workflow *workflow,
                                 struct rv_str version)
{
    struct workload_title title = {workflow->number, workflow->drafts++, version};
    struct rv_buf out;
    rv_buf_init(&out, RV_DEFINITION_BYTES_MAX);
    if (world_chance(w, STREAM_WORKLOAD, 300))
        workload_order(w, &out, &title);
    else
        workload_random(w, &out, &title);
    struct rv_str source = rv_arena_str(&w->arena, rv_buf_str(&out));
    rv_assert(out.failed == RV_OK && source.at != NULL);
    rv_buf_done(&out);
    return source;
}

static struct workload_version *version_add(struct world *w, struct workload_workflow *workflow,
                                            struct rv_str version, struct rv_str source)
{
    struct workload_version *added = &workflow->versions[workflow->versions_count++];
    *added = (struct workload_version){.version = version, .source = source};
    world_detail(w, "world", "workflow %.*s", RV_STR_FMT(source));
    version_load(w, added);
    return added;
}

struct workload_version *workload_version_new(struct world *w, struct workload_workflow *workflow)
{
    if (workflow->versions_count == SIM_VERSIONS_MAX)
        return NULL;
    struct rv_str version = rv_arena_printf(&w->arena, "1.0.%u", workflow->versions_count);
    return version_add(w, workflow, version, source_draw(w, workflow, version));
}

struct rv_str workload_other(struct world *w, struct workload_workflow *workflow,
                             const struct workload_version *version)
{
    struct rv_str other = source_draw(w, workflow, version->version);
    return rv_str_eq(other, version->source) ? RV_STR_NONE : other;
}

static struct workload_workflow *workflow_new(struct world *w, struct rv_str name)
{
    if (w->workload == NULL)
        w->workload = RV_NEW(&w->arena, struct workload);
    rv_assert(w->workload != NULL && w->workload->count < SIM_WORKFLOWS_MAX);
    struct workload_workflow *workflow = &w->workload->workflows[w->workload->count];
    workflow->number = w->workload->count++;
    workflow->name = name;
    return workflow;
}

static void first_publish(struct world *w, struct workload_version *first)
{
    first->acked_at = w->now + 1; /* nothing else happens until it is */
    if (w->violated == NULL)
        server_publish(&w->servers[0], first->source);
}

void workload_add(struct world *w, struct rv_str name, struct rv_str source)
{
    first_publish(w, version_add(w, workflow_new(w, name), RV_STR("1.0.0"), source));
}

void workload_new(struct world *w)
{
    for (uint32_t i = 0; i < w->knobs.workflows && w->violated == NULL; i++) {
        struct workload_workflow *workflow = workflow_new(w, rv_arena_printf(&w->arena, "w%u", i));
        first_publish(w, workload_version_new(w, workflow));
    }
}

static struct workload_workflow *workflow_find(struct world *w, struct rv_str name)
{
    for (uint32_t i = 0; i < w->workload->count; i++)
        if (rv_str_eq(w->workload->workflows[i].name, name))
            return &w->workload->workflows[i];
    return NULL;
}

static struct workload_version *version_find(struct workload_workflow *workflow,
                                             struct rv_str version)
{
    for (uint32_t i = 0; workflow != NULL && i < workflow->versions_count; i++)
        if (rv_str_eq(workflow->versions[i].version, version))
            return &workflow->versions[i];
    return NULL;
}

struct workload_version *workload_version_of(struct world *w, const struct rv_workflow_row *row)
{
    struct workload_workflow *workflow = workflow_find(w, row->name);
    struct workload_version *version = version_find(workflow, row->version);
    if (version == NULL) {
        world_violate(w, "I-18", "a task names a workflow that was never published");
        return NULL;
    }
    uint64_t hash = history_hash(row->hash);
    if (version->hash != 0 && version->hash != hash)
        world_violate(w, "I-18", "version %.*s of %.*s has another content than before",
                      RV_STR_FMT(row->version), RV_STR_FMT(row->name));
    version->hash = hash;
    return version;
}

static bool is_there(struct world *w, const struct workload_workflow *workflow, uint32_t version)
{
    struct rv_store *store = database_reader(w);
    const struct rv_workflow_row *row = NULL;
    rv_arena_reset(&w->history->scratch);
    enum rv_err err = store->ops->find_workflow(store, &w->history->scratch, RV_STR("sim"),
                                                workflow->name, workflow->versions[version].version,
                                                &row);
    rv_assert(err == RV_OK);
    return row != NULL;
}

bool workload_is_there(struct world *w)
{
    bool there = true;
    for (uint32_t i = 0; i < w->workload->count; i++) {
        if (is_there(w, &w->workload->workflows[i], 0))
            continue;
        server_publish(&w->servers[0], w->workload->workflows[i].versions[0].source);
        there = false;
    }
    return there;
}

void workload_rewind(struct world *w)
{
    for (uint32_t i = 0; i < w->workload->count; i++) {
        struct workload_workflow *workflow = &w->workload->workflows[i];
        for (uint32_t v = 0; v < workflow->versions_count; v++)
            if (!is_there(w, workflow, v))
                workflow->versions[v].acked_at = workflow->versions[v].published = 0;
    }
}

void workload_published(struct world *w, struct rv_str name, struct rv_str version)
{
    struct workload_version *published = version_find(workflow_find(w, name), version);
    if (published != NULL)
        published->published = ++w->workload->publications;
}

/* A transaction of unknown outcome may have brought it: then this is how it shows. */
void workload_check_newest(struct world *w, const struct rv_workflow_row *row, int64_t begun_at)
{
    struct workload_workflow *workflow = workflow_find(w, row->name);
    struct workload_version *taken = version_find(workflow, row->version);
    if (taken->published == 0)
        workload_published(w, row->name, row->version);
    for (uint32_t i = 0; i < workflow->versions_count; i++) {
        const struct workload_version *version = &workflow->versions[i];
        if (version->published > taken->published && version->acked_at != 0 &&
            version->acked_at < begun_at)
            world_violate(w, "I-18", "a task began with version %.*s of %.*s, after %.*s",
                          RV_STR_FMT(row->version), RV_STR_FMT(row->name),
                          RV_STR_FMT(version->version));
    }
}

void workload_submission(struct world *w, struct rv_buf *body, uint32_t number)
{
    /* Drawn from the number, so that a repeated submission has the same body. */
    uint64_t x = w->seed * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xd1b54a32d192ed03);
    x ^= x >> 29;
    rv_buf_printf(body,
                  "{\"workflow\":\"sim/w%u\",\"priority\":%u,\"input\":{\"number\":%u,\"roll\":%u,"
                  "\"secret\":\"" SIM_CANARY "\"",
                  (unsigned)(x % w->workload->count), (unsigned)(x >> 8) % 10, number,
                  (unsigned)(x >> 16) % 10);
    if (w->knobs.payload > 0)
        rv_buf_printf(body, ",\"text\":\"%*s\"", (int)((x >> 24) % w->knobs.payload), "");
    rv_buf_lit(body, "}");
    struct rv_str reply_to = hook_reply_to(w, number);
    if (reply_to.at != NULL)
        rv_buf_printf(body, ",\"replyTo\":%.*s", RV_STR_FMT(reply_to));
}

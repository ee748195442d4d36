#include "cli/unseen_priv.h"

#include "base/array.h"
#include "base/limits.h"
#include "base/suggest.h"
#include "cli/server_priv.h"
#include "cli/text_priv.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <stdio.h>
#include <string.h>

enum { NOTES_MAX = 10, NEAR_BYTES_MIN = 3 /* shorter names are all near */ };

void cli_callees_name(struct cli *cli, struct cli_callees *callees, struct rv_str name)
{
    for (size_t i = 0; i < callees->count; i++) {
        if (rv_str_eq(callees->names[i], name))
            return;
    }
    if (!RV_ARRAY_ROOM_ON(&cli->arena, callees->names, callees->count, callees->room))
        return;
    struct rv_str kept = rv_arena_str(&cli->arena, name);
    if (kept.at != NULL)
        callees->names[callees->count++] = kept;
}

/* `call: http` is carried out by the server itself. */
static void definition_add(struct cli *cli, struct cli_callees *callees,
                           const struct rv_json *document, struct rv_arena *compiled)
{
    const struct rv_definition *definition = NULL;
    struct rv_definition_fault fault;
    if (rv_definition_load_published(compiled, document, &definition, &fault) != RV_OK)
        return;
    uint32_t count = rv_definition_nodes(definition);
    for (uint32_t n = 1; n <= count; n++) {
        struct rv_str agent = rv_definition_agent(definition, n);
        if (agent.len > 0 && !rv_str_is(agent, "http"))
            cli_callees_name(cli, callees, agent);
    }
}

void cli_callees_add(struct cli *cli, struct cli_callees *callees, struct rv_str definition)
{
    struct rv_arena arena;
    struct rv_json document;
    struct rv_yaml_fault fault;
    rv_arena_init(&arena, 2 * (size_t)RV_DEFINITION_COMPILED_BYTES_MAX);
    if (rv_yaml_parse(&arena, definition, RV_DEFINITION_BYTES_MAX, &document, &fault) == RV_OK)
        definition_add(cli, callees, &document, &arena);
    rv_arena_done(&arena);
}

static bool is_seen(const struct rv_json *agents, size_t count, struct rv_str name)
{
    size_t instances;
    for (size_t i = 0; i < count; i++) {
        if (!rv_str_eq(cli_str(&agents[i], "agent"), name))
            continue;
        (void)cli_items(&agents[i], "instances", &instances);
        return instances > 0;
    }
    return false;
}

/* The known agent that is nearest to one that was never seen; NULL: none is near. */
static const char *near_of(struct cli *cli, const struct rv_json *agents, size_t count,
                           struct rv_str name)
{
    size_t known = 0;
    if (name.len < NEAR_BYTES_MIN)
        return NULL;
    const char **names = RV_NEW_ARRAY(&cli->arena, const char *, count + 1);
    for (size_t i = 0; names != NULL && i < count; i++) {
        struct rv_str agent = cli_str(&agents[i], "agent");
        if (rv_str_eq(agent, name) || !is_seen(agents, count, agent))
            continue;
        names[known] = rv_arena_str(&cli->arena, agent).at;
        if (names[known] == NULL)
            return NULL;
        known++;
    }
    return names != NULL ? rv_suggest(name, names) : NULL;
}

static struct rv_str cure_of(struct cli *cli, const struct rv_json *agents, size_t count,
                             struct rv_str name)
{
    const char *near = near_of(cli, agents, count, name);
    return rv_arena_printf(&cli->arena, "reeve agent exec %.*s -- COMMAND%s%s%s", RV_STR_FMT(name),
                           near ? " (an agent \"" : "", near ? near : "",
                           near ? "\" is connected)" : "");
}

struct rv_str cli_unseen_cure(struct cli *cli, struct rv_str agent)
{
    struct rv_json json;
    size_t count = 0;
    if (agent.len == 0 || rv_str_is(agent, "http") || !cli_peek(cli, RV_STR("/v1/agents"), &json) ||
        rv_json_get(&json, RV_STR("agents")) == NULL)
        return RV_STR_NONE;
    const struct rv_json *agents = cli_items(&json, "agents", &count);
    return is_seen(agents, count, agent) ? RV_STR_NONE : cure_of(cli, agents, count, agent);
}

void cli_callees_note(struct cli *cli, const struct cli_callees *callees)
{
    struct rv_json json;
    size_t count = 0;
    size_t noted = 0;
    if (callees->count == 0 || !cli_peek(cli, RV_STR("/v1/agents"), &json) ||
        rv_json_get(&json, RV_STR("agents")) == NULL)
        return;
    const struct rv_json *agents = cli_items(&json, "agents", &count);
    fflush(stdout);
    for (size_t i = 0; i < callees->count; i++) {
        struct rv_str name = callees->names[i];
        if (is_seen(agents, count, name) || noted++ >= NOTES_MAX)
            continue;
        struct rv_str cure = cure_of(cli, agents, count, name);
        fprintf(
            stderr,
            "note: agent \"%.*s\" is not connected, and its steps wait; to start the agent: %.*s\n",
            RV_STR_FMT(name), RV_STR_FMT(cure));
    }
    if (noted > NOTES_MAX)
        fprintf(stderr, "note: number of other agents that are not connected: %zu\n",
                noted - NOTES_MAX);
}

void cli_workflow_note(struct cli *cli, struct rv_str workflow)
{
    struct rv_json json;
    struct rv_arena compiled;
    struct cli_callees callees = {.count = 0};
    if (!cli_peek(cli, cli_workflow_path(cli, workflow), &json))
        return;
    const struct rv_json *definition = rv_json_get(&json, RV_STR("definition"));
    if (definition == NULL)
        return;
    rv_arena_init(&compiled, RV_DEFINITION_COMPILED_BYTES_MAX);
    definition_add(cli, &callees, definition, &compiled);
    rv_arena_done(&compiled);
    cli_callees_note(cli, &callees);
}

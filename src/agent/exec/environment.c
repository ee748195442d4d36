#include "agent/exec/environment.h"

#include "agent/exec/program.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the command ---- */

const char *rv_exec_find(struct rv_arena *arena, const char *name, const char *path,
                         const char **ret_why)
{
    bool absent;
    *ret_why = "out of memory";
    if (strchr(name, '/') != NULL) {
        const char *wrong = rv_program_wrong(arena, name, path, &absent);
        if (wrong == NULL)
            return rv_arena_str(arena, rv_str_of(name)).at;
        *ret_why = wrong;
        return NULL;
    }
    const char *refused = NULL; /* found, but of no use */
    for (const char *at = path; at != NULL && name[0] != '\0';) {
        size_t len = strcspn(at, ":");
        struct rv_str file = rv_arena_printf(arena, "%.*s%s%s", (int)len, at, len > 0 ? "/" : "./",
                                             name);
        if (file.at == NULL)
            return NULL;
        const char *wrong = rv_program_wrong(arena, file.at, path, &absent);
        if (wrong == NULL && arena->refused == RV_OK)
            return file.at;
        if (!absent && refused == NULL)
            refused = wrong;
        at = at[len] == ':' ? at + len + 1 : NULL;
    }
    *ret_why = refused;
    if (refused == NULL && strchr(name, ' ') != NULL)
        *ret_why = rv_arena_printf(arena,
                                   "\"%s\" was not found in PATH; give the command and its "
                                   "arguments as separate words",
                                   name)
                       .at;
    else if (refused == NULL)
        *ret_why = rv_arena_printf(arena,
                                   "\"%s\" was not found in PATH; install the program, or write "
                                   "./%s for a file in this folder",
                                   name, name)
                       .at;
    return NULL;
}

/* ---- the environment ---- */

enum { FACTS_MAX = 11 };

/* Names that are not handed down: what the facts say, an outer agent's facts, and the key with
 * which the agent is let into the server, which is not the command's. */
static const char *const taken[] = {"REEVE_AGENT",
                                    "REEVE_TASK",
                                    "REEVE_STEP",
                                    "REEVE_REFERENCE",
                                    "REEVE_ATTEMPT",
                                    "REEVE_FENCE",
                                    "REEVE_IDEMPOTENCY_KEY",
                                    "REEVE_REMAINING_MS",
                                    "REEVE_COMPLETE_BY",
                                    "TRACEPARENT",
                                    "TRACESTATE",
                                    "REEVE_API_KEY",
                                    NULL};

static bool is_taken(const char *entry)
{
    size_t len = strcspn(entry, "=");
    for (size_t i = 0; taken[i] != NULL; i++)
        if (rv_str_eq((struct rv_str){entry, len}, rv_str_of(taken[i])))
            return true;
    return false;
}

/* Entries under construction; NULL entries tell that memory ran out. */
struct entries {
    struct rv_arena *arena;
    char **at;
    size_t count;
};

static void entry_add(struct entries *entries, const char *name, const char *value)
{
    size_t name_bytes = strlen(name);
    size_t value_bytes = strlen(value);
    char *entry = rv_arena_bytes(entries->arena, name_bytes + value_bytes + 2);
    if (entry != NULL) {
        memcpy(entry, name, name_bytes);
        entry[name_bytes] = '=';
        memcpy(entry + name_bytes + 1, value, value_bytes + 1);
    }
    entries->at[entries->count++] = entry;
}

static void entry_add_number(struct entries *entries, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    entry_add(entries, name, text);
}

char **rv_exec_environment(struct rv_arena *arena, char *const *inherited,
                           const struct rv_exec_facts *facts)
{
    size_t count = 0;
    while (inherited[count] != NULL)
        count++;
    struct entries entries = {.arena = arena,
                              .at = RV_NEW_ARRAY(arena, char *, count + FACTS_MAX + 1)};
    if (entries.at == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_taken(inherited[i]))
            entries.at[entries.count++] = inherited[i];
    entry_add(&entries, "REEVE_AGENT", facts->agent);
    entry_add(&entries, "REEVE_TASK", facts->task);
    entry_add(&entries, "REEVE_STEP", facts->step);
    entry_add(&entries, "REEVE_REFERENCE", facts->reference);
    entry_add_number(&entries, "REEVE_ATTEMPT", facts->attempt);
    entry_add_number(&entries, "REEVE_FENCE", facts->fence);
    entry_add(&entries, "REEVE_IDEMPOTENCY_KEY", facts->key);
    entry_add_number(&entries, "REEVE_REMAINING_MS", facts->remaining_ms);
    entry_add(&entries, "REEVE_COMPLETE_BY", facts->complete_by);
    if (facts->traceparent[0] != '\0')
        entry_add(&entries, "TRACEPARENT", facts->traceparent);
    if (facts->tracestate[0] != '\0')
        entry_add(&entries, "TRACESTATE", facts->tracestate);
    return arena->refused == RV_OK ? entries.at : NULL;
}

#include "agent/exec/environment.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the command ---- */

/* 0 if it can be executed, else why not. */
static int path_try(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return errno;
    if (!S_ISREG(about.st_mode))
        return S_ISDIR(about.st_mode) ? EISDIR : EACCES;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static const char *why_of(struct rv_arena *arena, const char *path, int number)
{
    const char *cure = number == EACCES ? "; is it executable (chmod +x)?" : "";
    return rv_arena_printf(arena, "%s: %s%s", path, strerrordesc_np(number), cure).at;
}

const char *rv_exec_find(struct rv_arena *arena, const char *name, const char *path,
                         const char **ret_why)
{
    *ret_why = "out of memory";
    if (strchr(name, '/') != NULL) {
        int number = path_try(name);
        if (number == 0)
            return rv_arena_str(arena, rv_str_of(name)).at;
        *ret_why = why_of(arena, name, number);
        return NULL;
    }
    const char *refused = NULL; /* found, but of no use */
    for (const char *at = path; at != NULL && name[0] != '\0';) {
        size_t len = strcspn(at, ":");
        struct rv_str file = rv_arena_printf(arena, "%.*s%s%s", (int)len, at, len > 0 ? "/" : "./",
                                             name);
        if (file.at == NULL)
            return NULL;
        int number = path_try(file.at);
        if (number == 0)
            return file.at;
        if (number == EACCES && refused == NULL)
            refused = why_of(arena, file.at, number);
        at = at[len] == ':' ? at + len + 1 : NULL;
    }
    *ret_why = refused;
    if (refused == NULL)
        *ret_why =
            rv_arena_printf(
                arena,
                "\"%s\" was not found in PATH; install it, or write ./%s for a file in this folder",
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

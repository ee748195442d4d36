#include "cli/task_priv.h"

#include "cli/text_priv.h"

#include <string.h>

enum { RUN_NAMES_MAX = 3 };

int cli_task_code(struct rv_str state)
{
    if (rv_str_is(state, "processed"))
        return CLI_DONE;
    if (rv_str_is(state, "compensated") || rv_str_is(state, "cancelled"))
        return CLI_FAILED;
    return rv_str_is(state, "error") ? CLI_OPERATOR : -1;
}

struct rv_str cli_task_path(struct cli *cli, struct rv_str task, const char *rest)
{
    struct cli_path path;
    cli_path_begin(&path, "/v1/tasks");
    cli_path_segment(&path, task);
    rv_buf_add_str(&path.buf, rv_str_of(rest));
    return cli_path_end(&path, &cli->arena);
}

/* A step's name from its reference. A compensation is declared inside the step that it undoes: the
 * name of that step is left out. */
static struct rv_str name_of(struct rv_arena *arena, struct rv_str reference, bool undoes)
{
    struct rv_str name = cli_text_step(arena, reference);
    const char *slash;
    while (undoes && (slash = memchr(name.at, '/', name.len)) != NULL)
        name = (struct rv_str){slash + 1, (size_t)(name.at + name.len - slash - 1)};
    return name;
}

/* The names of the inline steps that one row holds; `ran` are their references. */
static struct rv_str run_name(struct rv_arena *arena, const struct rv_json *ran, bool undoes)
{
    struct rv_str names = RV_STR("");
    for (uint32_t i = 0; i < ran->len && i < RUN_NAMES_MAX; i++) {
        const struct rv_json *item = &ran->u.items[i];
        if (item->type != RV_JSON_STRING)
            continue;
        struct rv_str name = name_of(arena, (struct rv_str){item->u.text, item->len}, undoes);
        names = rv_arena_printf(arena, "%.*s%s%.*s", RV_STR_FMT(names), names.len > 0 ? ", " : "",
                                RV_STR_FMT(name));
    }
    if (ran->len <= RUN_NAMES_MAX)
        return names;
    return rv_arena_printf(arena, "%.*s and %u more", RV_STR_FMT(names), ran->len - RUN_NAMES_MAX);
}

/* A row of inline steps names those that ran, or the one that failed. */
static struct rv_str own_name(struct rv_arena *arena, const struct rv_json *step, bool undoes)
{
    struct rv_str reference = cli_str(step, "reference");
    const struct rv_json *ran = rv_json_get(step, RV_STR("input"));
    bool run = rv_str_is(cli_str(step, "kind"), "inline");
    if (run && !rv_str_is(cli_str(step, "state"), "error") && ran != NULL &&
        ran->type == RV_JSON_ARRAY && ran->len > 0)
        return run_name(arena, ran, undoes);
    return run && reference.len == 0 ? RV_STR("(workflow)") : name_of(arena, reference, undoes);
}

struct rv_str cli_step_name(struct rv_arena *arena, const struct rv_json *step)
{
    struct rv_str iteration = cli_str(step, "iteration");
    int64_t undoes = cli_int(step, "undoes");
    int64_t visit = cli_int(step, "visit");
    struct rv_str name = own_name(arena, step, undoes > 0);
    if (undoes > 0)
        return rv_arena_printf(arena, "%.*s (undoes %lld)", RV_STR_FMT(name), (long long)undoes);
    if (iteration.len > 0)
        name = rv_arena_printf(arena, "%.*s [%.*s]", RV_STR_FMT(name), RV_STR_FMT(iteration));
    if (visit > 1)
        name = rv_arena_printf(arena, "%.*s, visit %lld", RV_STR_FMT(name), (long long)visit);
    return name;
}

/* ", after: <the newest failure>", or nothing. */
static struct rv_str failure_text(struct rv_arena *arena, const struct rv_json *step)
{
    struct rv_str error = cli_error_text(arena, rv_json_get(step, RV_STR("error")));
    if (error.len == 0)
        return RV_STR("");
    return rv_arena_printf(arena, ", after: %.*s", RV_STR_FMT(error));
}

/* No time continues a suspended task. */
static struct rv_str wait_why(struct rv_arena *arena, const struct rv_json *step, bool suspended,
                              int64_t now)
{
    int64_t due = cli_instant(step, "wakeAt");
    struct rv_str distance = cli_text_distance(arena, due, now);
    if (!suspended)
        return rv_arena_printf(arena, "waits, continues %.*s", RV_STR_FMT(distance));
    return rv_arena_printf(arena, "waits, due %.*s, %s", RV_STR_FMT(distance),
                           due <= now ? "continues when the task is resumed"
                                      : "but the task is suspended");
}

static struct rv_str pending_why(struct rv_arena *arena, const struct rv_json *step,
                                 const struct rv_json *told, int64_t now)
{
    int64_t ready = cli_instant(step, "readyAt");
    struct rv_str failure = failure_text(arena, step);
    bool suspended = rv_str_is(cli_str(told, "waitsFor"), "suspended");
    if (rv_str_is(cli_str(step, "kind"), "wait"))
        return wait_why(arena, step, suspended, now);
    bool circuit = rv_str_is(cli_str(step, "attemptState"), "circuit-open");
    if (told == NULL && circuit)
        return rv_arena_printf(arena, "circuit open%.*s", RV_STR_FMT(failure));
    if (ready > now && !circuit && !suspended)
        return rv_arena_printf(
            arena, "%s %.*s%.*s",
            cli_int(step, "failureCount") == 0 && cli_int(step, "round") > 0 ? "cool-down, again"
                                                                             : "again",
            RV_STR_FMT(cli_text_distance(arena, ready, now)), RV_STR_FMT(failure));
    int64_t attempts = cli_int(step, "attempt");
    if (told == NULL && attempts > 0)
        return rv_arena_printf(arena, "attempt %lld is not dispatched yet%.*s",
                               (long long)attempts + 1, RV_STR_FMT(failure));
    if (told == NULL)
        return rv_arena_printf(arena, "not dispatched yet%.*s", RV_STR_FMT(failure));
    int64_t until = cli_instant(told, "until");
    struct rv_str target = cli_str(told, "target");
    struct rv_str when = until > now ? cli_text_distance(arena, until, now) : RV_STR("");
    return rv_arena_printf(arena, "%.*s%s%.*s%s%.*s%.*s", RV_STR_FMT(cli_str(told, "why")),
                           target.len > 0 ? ": " : "", RV_STR_FMT(target), when.len > 0 ? ", " : "",
                           RV_STR_FMT(when), RV_STR_FMT(failure));
}

static struct rv_str processing_why(struct rv_arena *arena, const struct rv_json *step,
                                    const struct rv_json *told, int64_t now)
{
    int64_t complete_by = cli_instant(step, "completeBy");
    struct rv_str distance = cli_text_distance(arena, complete_by, now);
    struct rv_str instance = cli_str(step, "instance");
    struct rv_str at = RV_STR("");
    if (rv_str_is(cli_str(step, "kind"), "wait"))
        return pending_why(arena, step, told, now);
    if (instance.len > 0)
        at = rv_arena_printf(arena, "at %.*s, ", RV_STR_FMT(instance));
    if (rv_str_is(cli_str(step, "attemptState"), "revoked"))
        return rv_arena_printf(arena, "%.*sasked to stop, complete-by %.*s", RV_STR_FMT(at),
                               RV_STR_FMT(distance));
    if (complete_by == 0)
        return RV_STR("");
    return rv_arena_printf(arena, "%.*scomplete-by %.*s", RV_STR_FMT(at), RV_STR_FMT(distance));
}

const struct rv_json *cli_step_told(const struct rv_json *told, int64_t number)
{
    size_t count;
    const struct rv_json *steps = cli_items(told, "steps", &count);
    for (size_t i = 0; i < count; i++)
        if (cli_int(&steps[i], "number") == number)
            return &steps[i];
    return NULL;
}

struct rv_str cli_step_why(struct rv_arena *arena, const struct rv_json *step,
                           const struct rv_json *told, int64_t now)
{
    struct rv_str state = cli_str(step, "state");
    if (cli_bool(step, "unreadable"))
        return RV_STR("the row of the step is damaged");
    if (rv_str_is(state, "pending"))
        return pending_why(arena, step, told, now);
    if (rv_str_is(state, "processing"))
        return processing_why(arena, step, told, now);
    if (rv_str_is(state, "processed"))
        return !cli_bool(step, "undone")        ? RV_STR("")
               : cli_bool(step, "noUndoNeeded") ? RV_STR("nothing to undo")
                                                : RV_STR("undone");
    return cli_error_text(arena, rv_json_get(step, RV_STR("error")));
}

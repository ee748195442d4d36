/* Following a task: the server parks the question until the task's revision has risen, so each
 * answer brings news. What changed is found by comparing a mark of each step with the one before:
 * steps that have ended are not asked for again. */
#include "base/hash.h"
#include "cli/page_priv.h"
#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"
#include "cli/unseen_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    WAIT_SECONDS = 20,
    ANSWER_MS = (WAIT_SECONDS + 10) * 1000,
    STEPS_MAX = 100000,
    BAR_COLUMNS = 24,
    NOTED_MAX = 16,
    RECENT = 64 /* steps whose marks are kept; the open ones are always among the newest */
};

struct seen {
    int64_t number;
    uint64_t mark;
};

struct watch {
    struct cli *cli;
    struct rv_str task;
    bool silent;
    bool bar;         /* stdout is a terminal */
    int64_t begun_at; /* the task's own beginning */
    int64_t revision; /* -1: not asked yet */
    int64_t after;    /* steps up to this number have ended and were told */
    bool gap;         /* a step beyond `after` is still open */
    struct seen seen[RECENT];
    uint32_t top_count; /* entries of the definition's `do`; 0: not known */
    int64_t top_at;     /* the entry at which the task stands */
    char status[256];   /* of the step at which the task stands */
    bool notes;         /* agents that nobody serves are noted here, each once */
    uint64_t noted[NOTED_MAX];
    uint32_t noted_count;
    struct cli_callees callees; /* of one answer */
};

/* ---- steps ---- */

static uint64_t step_mark(struct rv_arena *arena, const struct rv_json *step)
{
    struct rv_str text = rv_arena_printf(
        arena, "%.*s %.*s %" PRId64 " %" PRId64 " %" PRId64, RV_STR_FMT(cli_str(step, "state")),
        RV_STR_FMT(cli_str(step, "attemptState")), cli_int(step, "attempt"),
        cli_int(step, "failureCount"), cli_int(step, "round"));
    return rv_hash((struct rv_hash_key){.k0 = 1}, text);
}

/* Whether this is news. */
static bool step_note(struct watch *watch, const struct rv_json *step)
{
    int64_t number = cli_int(step, "number");
    struct seen *seen = &watch->seen[(uint64_t)number % RECENT];
    uint64_t mark = step_mark(&watch->cli->arena, step);
    bool news = seen->number != number || seen->mark != mark;
    *seen = (struct seen){number, mark};
    return news;
}

/* "/do/2/..." is the third entry. */
static int64_t top_of(struct rv_str reference)
{
    static const char root[] = "/do/";
    int64_t number = 0;
    if (reference.len < sizeof root || memcmp(reference.at, root, sizeof root - 1) != 0)
        return 0;
    for (size_t i = sizeof root - 1; i < reference.len && reference.at[i] != '/'; i++)
        number = number < 100000 ? number * 10 + (reference.at[i] - '0') : number;
    return number;
}

/* What a step's line says: its state, which attempt, and why it is there. */
static struct rv_str step_text(struct watch *watch, const struct rv_json *step)
{
    struct rv_arena *arena = &watch->cli->arena;
    struct rv_str why = cli_step_why(arena, step, NULL, watch->cli->now);
    int64_t attempt = cli_int(step, "attempt");
    int64_t begun = cli_instant(step, "createdAt");
    int64_t ended = cli_instant(step, "endedAt");
    struct rv_str text = RV_STR("");
    if (attempt > 0)
        text = rv_arena_printf(arena, "attempt %" PRId64 "%s", attempt, why.len ? ", " : "");
    if (ended != 0 && why.len == 0)
        return rv_arena_printf(arena, "%.*s%sin %.*s", RV_STR_FMT(text), text.len ? ", " : "",
                               RV_STR_FMT(cli_text_duration(arena, ended - begun)));
    return rv_arena_printf(arena, "%.*s%.*s", RV_STR_FMT(text), RV_STR_FMT(why));
}

static void step_print(struct watch *watch, const struct rv_json *step)
{
    struct cli *cli = watch->cli;
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_text_clean(arena, cli_str(step, "state"));
    struct rv_str name = cli_text_clean(arena, cli_step_name(arena, step));
    struct rv_str text = cli_text_clean(arena, step_text(watch, step));
    int64_t at = cli->now - watch->begun_at;
    if (watch->bar)
        cli_line_clear(stdout);
    printf("%10.*s  %s%-10.*s%s  %.*s%s%.*s\n", RV_STR_FMT(cli_text_duration(arena, at)),
           cli_colour_begin(cli_colour_of_state(state), cli->colour), RV_STR_FMT(state),
           cli_colour_end(cli->colour), RV_STR_FMT(name), text.len ? ": " : "", RV_STR_FMT(text));
}

static void agent_note(struct watch *watch, struct rv_str agent)
{
    uint64_t mark = rv_hash((struct rv_hash_key){.k0 = 1}, agent);
    uint32_t i = 0;
    while (i < watch->noted_count && watch->noted[i] != mark)
        i++;
    if (i < watch->noted_count || i == NOTED_MAX || agent.len == 0 || rv_str_is(agent, "http"))
        return;
    watch->noted[watch->noted_count++] = mark;
    cli_callees_name(watch->cli, &watch->callees, agent);
}

static void step_each(const struct rv_json *step, void *user)
{
    struct watch *watch = user;
    struct rv_arena *arena = &watch->cli->arena;
    struct rv_str state = cli_str(step, "state");
    bool open = rv_str_is(state, "pending") || rv_str_is(state, "processing");
    if (step_note(watch, step))
        step_print(watch, step);
    if (watch->notes && rv_str_is(state, "pending"))
        agent_note(watch, cli_str(step, "agent"));
    if (open && cli_int(step, "undoes") == 0)
        watch->top_at = top_of(cli_str(step, "reference"));
    if (open)
        snprintf(watch->status, sizeof watch->status, "%.*s",
                 RV_STR_FMT(cli_step_name(arena, step)));
    /* A step in error may be resubmitted: it is asked for again, as the open ones are. */
    watch->gap = watch->gap || open || rv_str_is(state, "error");
    if (!watch->gap)
        watch->after = cli_int(step, "number");
}

static int steps_ask(struct watch *watch)
{
    struct cli *cli = watch->cli;
    struct cli_list list = {.items = "steps", .each = step_each, .user = watch, .patient = true};
    struct rv_str after = rv_arena_printf(&cli->arena, "%" PRId64, watch->after);
    struct rv_str next;
    struct rv_str path = cli_task_path(cli, watch->task, "/steps");
    watch->gap = false;
    cli_path_begin(&list.path, path.at);
    return cli_list_read(cli, &list, after.at, STEPS_MAX, &next);
}

/* ---- the task ---- */

static int task_ask(struct watch *watch, bool patient, struct cli_answer *ret_answer)
{
    struct cli *cli = watch->cli;
    struct rv_str rest = RV_STR("");
    if (watch->revision >= 0)
        rest = rv_arena_printf(&cli->arena, "?wait=PT%dS&revision=%" PRId64, WAIT_SECONDS,
                               watch->revision);
    struct cli_call call = {.path = cli_task_path(cli, watch->task, rest.len ? rest.at : ""),
                            .timeout_ms = ANSWER_MS,
                            .patient = patient};
    return cli_ask(cli, &call, ret_answer);
}

/* How many entries the definition's `do` has: what the bar is measured by. Without an answer there
 * is no bar, and nothing else is lost. */
static void top_count_ask(struct watch *watch, struct rv_str workflow)
{
    struct rv_json json;
    if (!cli_peek(watch->cli, cli_workflow_path(watch->cli, workflow), &json))
        return;
    const struct rv_json *entries = rv_json_at(&json, RV_STR("/definition/do"));
    watch->top_count = entries != NULL && entries->type == RV_JSON_ARRAY ? entries->len : 0;
}

static void bar_write(struct watch *watch, struct rv_str state)
{
    struct cli *cli = watch->cli;
    struct rv_arena *arena = &cli->arena;
    int64_t took = cli->now - watch->begun_at;
    struct rv_str bar = RV_STR("");
    if (watch->top_count > 0)
        bar = rv_arena_printf(
            arena, "%.*s %" PRId64 " of %u  ",
            RV_STR_FMT(cli_text_bar(arena, (uint64_t)watch->top_at, watch->top_count, BAR_COLUMNS)),
            watch->top_at, watch->top_count);
    cli_line_write(cli, stdout,
                   rv_arena_printf(arena, "%.*s%.*s  %s  %.*s", RV_STR_FMT(bar), RV_STR_FMT(state),
                                   watch->status, RV_STR_FMT(cli_text_duration(arena, took))),
                   cli_width(cli));
}

int cli_task_end_print(struct cli *cli, struct rv_str task, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_str(told, "state");
    int64_t ended = cli_instant(told, "endedAt");
    const struct rv_json *undo = rv_json_get(told, RV_STR("undoError"));
    const struct rv_json *stands = undo != NULL ? undo : rv_json_get(told, RV_STR("error"));
    struct rv_str error = cli_text_clean(arena, cli_task_error_text(arena, stands));
    struct rv_str took = RV_STR("");
    if (ended != 0)
        took = rv_arena_printf(
            arena, " in %.*s",
            RV_STR_FMT(cli_text_duration(arena, ended - cli_instant(told, "createdAt"))));
    printf("%.*s %s%.*s%s%.*s%s%.*s\n", RV_STR_FMT(task),
           cli_colour_begin(cli_colour_of_state(state), cli->colour),
           RV_STR_FMT(cli_text_clean(arena, state)), cli_colour_end(cli->colour), RV_STR_FMT(took),
           error.len ? ": " : "", RV_STR_FMT(error));
    int code = cli_task_code(state);
    if (code == CLI_OPERATOR) {
        fflush(stdout);
        fprintf(stderr, "The task waits for an operator. To show the cause: reeve show %.*s\n",
                RV_STR_FMT(task));
    }
    return code;
}

/* One question and what its answer brings. -1: the task goes on. */
static int watch_once(struct watch *watch)
{
    struct cli *cli = watch->cli;
    struct cli_answer answer;
    bool first = watch->revision < 0;
    bool json = cli_has(cli, CLI_OPTION_JSON);
    int code = task_ask(watch, !first, &answer);
    if (code != CLI_DONE)
        return code;
    struct rv_str state = cli_str(&answer.json, "state");
    bool news = cli_int(&answer.json, "revision") > watch->revision;
    int end = cli_task_code(state);
    watch->revision = cli_int(&answer.json, "revision");
    watch->begun_at = cli_instant(&answer.json, "createdAt");
    if (first && watch->bar)
        top_count_ask(watch, cli_str(&answer.json, "workflow"));
    if (json && (end >= 0 || (news && !watch->silent)))
        cli_json_print(answer.text);
    if (!json && !watch->silent && news)
        code = steps_ask(watch);
    if (watch->bar && watch->callees.count > 0)
        cli_line_clear(stdout);
    cli_callees_note(cli, &watch->callees);
    watch->callees = (struct cli_callees){.count = 0};
    if (code != CLI_DONE)
        return code;
    fflush(stdout);
    if (end >= 0 && watch->bar)
        cli_line_clear(stdout);
    if (end >= 0)
        return json ? end : cli_task_end_print(cli, watch->task, &answer.json);
    if (watch->bar)
        bar_write(watch, state);
    return -1;
}

int cli_task_follow(struct cli *cli, struct rv_str task, bool silent)
{
    struct watch watch = {.cli = cli, .task = task, .silent = silent, .revision = -1};
    watch.notes = !cli_has(cli, CLI_OPTION_WATCH); /* which has noted all of the workflow's */
    watch.bar = cli->terminal && !cli_has(cli, CLI_OPTION_JSON);
    int code;
    do {
        struct rv_arena_mark mark = rv_arena_mark(&cli->arena);
        code = watch_once(&watch);
        rv_arena_release(&cli->arena, mark);
    } while (code < 0);
    return code;
}

int cli_watch(struct cli *cli)
{
    struct rv_str task = rv_str_of(cli->words.args[0]);
    if (cli_has(cli, CLI_OPTION_MESSAGES))
        return cli_messages_follow(cli, task);
    if (cli_has(cli, CLI_OPTION_AFTER))
        return cli_tell(cli, CLI_USAGE, "--after is a message number and needs --messages");
    return cli_task_follow(cli, task, false);
}

/* Selections of tasks, and one command for each of their tasks. */
#include "base/assert.h"
#include "base/limits.h"
#include "cli/page_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SELECTIONS_SHOWN = 1000,
    KINDS_SHOWN = 10,      /* of outcomes; more than tasks have states */
    OUTCOMES_READ = 100000 /* of one kind: the largest selection */
};

/* ---- what is told ---- */

/* "cancel --abandon at 20/s, 12 done, 3 refused, 0 gone": the command as it was given. */
static struct rv_str progress_text(struct cli *cli, const struct rv_json *of)
{
    struct rv_str command = cli_str(of, "command");
    if (command.len == 0)
        return RV_STR("");
    if (rv_str_is(command, "resume"))
        command = RV_STR("unsuspend");
    return rv_arena_printf(&cli->arena, "%.*s%s%s at %lld/s, %lld done, %lld refused, %lld gone",
                           RV_STR_FMT(command), cli_bool(of, "abandon") ? " --abandon" : "",
                           cli_bool(of, "byHand") ? " --by-hand" : "",
                           (long long)cli_int(of, "rate"), (long long)cli_int(of, "done"),
                           (long long)cli_int(of, "refused"), (long long)cli_int(of, "gone"));
}

static void word_print(struct cli *cli, const struct rv_json *word, const char *what)
{
    if (word == NULL)
        return;
    struct rv_str by = cli_str(word, "by");
    struct rv_str reason = cli_str(word, "reason");
    printf("  %s by %.*s (%.*s), %.*s%s%.*s\n", what,
           RV_STR_FMT(by.len ? cli_text_clean(&cli->arena, by) : RV_STR("somebody")),
           RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(word, "role"))),
           RV_STR_FMT(cli_text_past(&cli->arena, cli_instant(word, "at"), cli->now)),
           reason.len ? ": " : "", RV_STR_FMT(cli_text_clean(&cli->arena, reason)));
}

static void selection_print(struct cli *cli, const struct rv_json *of)
{
    struct rv_str progress = progress_text(cli, of);
    struct rv_str filter = cli_text_clean(&cli->arena, cli_str(of, "filter"));
    printf("%.*s %.*s, %lld task%s: %.*s\n", RV_STR_FMT(cli_str(of, "selection")),
           RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(of, "state"))),
           (long long)cli_int(of, "tasks"), cli_int(of, "tasks") == 1 ? "" : "s",
           RV_STR_FMT(filter));
    if (progress.len > 0)
        printf("  %.*s\n", RV_STR_FMT(progress));
    word_print(cli, rv_json_get(of, RV_STR("picked")), "selected");
    word_print(cli, rv_json_get(of, RV_STR("begun")), "begun");
    if (cli_int(of, "holdsDropped") > 0)
        printf("  earlier pauses and resumptions that are not listed: %lld\n",
               (long long)cli_int(of, "holdsDropped"));
    size_t count;
    const struct rv_json *holds = cli_items(of, "holds", &count);
    for (size_t i = 0; i < count; i++) {
        word_print(cli, &holds[i], cli_bool(&holds[i], "pause") ? "paused" : "resumed");
    }
    word_print(cli, rv_json_get(of, RV_STR("stopped")), "stopped");
}

/* ---- select, selections ---- */

int cli_select(struct cli *cli)
{
    struct cli_path path;
    struct cli_answer answer = {.status = 0};
    static const char *const heads[] = {"TASK", "STATE", "WORKFLOW", "SUBMITTED", NULL};
    cli_path_begin(&path, "/v1/selections");
    (void)cli_path_filters(cli, &path);
    int code = cli_operate(cli, &path, NULL, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct cli_table table;
    struct rv_arena *arena = &cli->arena;
    size_t count = 0;
    int64_t tasks = cli_int(&answer.json, "tasks");
    const struct rv_json *items = cli_items(&answer.json, "preview", &count);
    cli_table_init(&table, arena, heads);
    for (size_t i = 0; i < count; i++) {
        struct rv_str state = cli_str(&items[i], "state");
        cli_table_add(&table, cli_str(&items[i], "task"), CLI_BOLD);
        cli_table_add(&table, state, cli_colour_of_state(state));
        cli_table_add(&table, cli_text_clean(arena, cli_str(&items[i], "workflow")), CLI_PLAIN);
        cli_table_add(&table, cli_text_ago(arena, cli_instant(&items[i], "createdAt"), cli->now),
                      CLI_DIM);
    }
    printf("%.*s: %lld task%s\n", RV_STR_FMT(cli_str(&answer.json, "selection")), (long long)tasks,
           tasks == 1 ? "" : "s");
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
    if ((int64_t)count < tasks)
        printf("and %lld more\n", (long long)tasks - (long long)count);
    return CLI_DONE;
}

struct selections {
    struct cli *cli;
    struct cli_table table;
};

static void selection_add(const struct rv_json *item, void *user)
{
    struct selections *selections = user;
    struct cli *cli = selections->cli;
    const struct rv_json *picked = rv_json_get(item, RV_STR("picked"));
    int64_t at = picked != NULL ? cli_instant(picked, "at") : 0;
    cli_table_add(&selections->table, cli_str(item, "selection"), CLI_BOLD);
    cli_table_add(&selections->table, cli_str(item, "state"), CLI_PLAIN);
    cli_table_add_number(&selections->table, cli_int(item, "tasks"));
    cli_table_add(&selections->table, progress_text(cli, item), CLI_PLAIN);
    cli_table_add(&selections->table, cli_text_clean(&cli->arena, cli_str(item, "filter")),
                  CLI_PLAIN);
    cli_table_add(&selections->table,
                  at != 0 ? cli_text_ago(&cli->arena, at, cli->now) : RV_STR(""), CLI_DIM);
}

int cli_selections(struct cli *cli)
{
    static const char *const heads[] = {"SELECTION", "STATE",   ">TASKS", "COMMAND",
                                        "FILTER",    "CREATED", NULL};
    struct selections selections = {.cli = cli};
    struct cli_list list = {.items = "selections", .each = selection_add, .user = &selections};
    struct rv_str next;
    uint64_t limit;
    if (!cli_limit_read(cli, SELECTIONS_SHOWN, &limit))
        return CLI_USAGE;
    cli_table_init(&selections.table, &cli->arena, heads);
    cli_path_begin(&list.path, "/v1/selections");
    int code = cli_list_read(cli, &list, cli_value(cli, CLI_OPTION_AFTER), limit, &next);
    if (code != CLI_DONE || cli_has(cli, CLI_OPTION_JSON))
        return code;
    cli_table_print(&selections.table, stdout, cli->colour, cli_width(cli));
    if (selections.table.count == 0)
        printf("No selections; create one, for example: reeve select --state error\n");
    if (next.len > 0)
        printf("To list more: reeve selections --after %.*s\n", RV_STR_FMT(next));
    return CLI_DONE;
}

/* ---- bulk ---- */

static void path_of(struct cli *cli, struct cli_path *path, const char *rest)
{
    cli_path_begin(path, "/v1/selections");
    cli_path_segment(path, rv_str_of(cli->words.args[1]));
    if (rest != NULL)
        cli_path_segment(path, rv_str_of(rest));
}

/* Outcomes that are alike: one line of a table. */
struct outcome_kind {
    struct rv_str text;
    struct rv_str task; /* a sample */
    int64_t count;
};

struct outcome_kinds {
    struct cli *cli;
    struct outcome_kind rows[KINDS_SHOWN];
    size_t count;
    int64_t others; /* outcomes that are in no row */
};

static void kind_count(struct outcome_kinds *kinds, struct rv_str text, struct rv_str task)
{
    size_t at = 0;
    rv_assert(kinds->count <= KINDS_SHOWN);
    while (at < kinds->count && !rv_str_eq(kinds->rows[at].text, text))
        at++;
    if (at == KINDS_SHOWN) {
        kinds->others++;
        return;
    }
    if (at == kinds->count)
        kinds->rows[kinds->count++] = (struct outcome_kind){.text = text, .task = task};
    kinds->rows[at].count++;
}

static struct rv_str without_task(struct rv_arena *arena, struct rv_str message, struct rv_str task)
{
    struct rv_buf text;
    rv_buf_init(&text, message.len + 1);
    for (size_t i = 0; i < message.len;) {
        struct rv_str rest = {message.at + i, message.len - i};
        bool is_id = task.len > 0 && rest.len >= task.len &&
                     memcmp(rest.at, task.at, task.len) == 0;
        if (is_id)
            rv_buf_lit(&text, "TASK");
        else
            rv_buf_add_char(&text, rest.at[0]);
        i += is_id ? task.len : 1;
    }
    struct rv_str made = rv_arena_str(arena, rv_buf_str(&text));
    rv_buf_done(&text);
    return made.at != NULL ? made : message;
}

/* Refusals that differ in nothing but the id of their task are one line. */
static void refusal_each(const struct rv_json *item, void *user)
{
    struct outcome_kinds *kinds = user;
    struct rv_str task = cli_str(item, "task");
    kind_count(kinds, without_task(&kinds->cli->arena, cli_str(item, "message"), task), task);
}

/* A task that no longer exists has no state. */
static void state_each(const struct rv_json *item, void *user)
{
    struct outcome_kinds *kinds = user;
    struct rv_str state = cli_str(item, "state");
    if (state.len == 0)
        kinds->others++;
    else
        kind_count(kinds, state, cli_str(item, "task"));
}

/* The outcomes of the selection, of one kind or (NULL) those that are listed by default. */
static int kinds_read(struct cli *cli, const char *outcome, struct outcome_kinds *kinds,
                      void (*each)(const struct rv_json *item, void *user), struct rv_str *ret_next)
{
    struct cli_list list = {.items = "outcomes", .each = each, .user = kinds};
    *kinds = (struct outcome_kinds){.cli = cli};
    path_of(cli, &list.path, "outcomes");
    cli_path_parameter(&list.path, "outcome", outcome);
    return cli_list_read(cli, &list, NULL, OUTCOMES_READ, ret_next);
}

/* One row per kind; the column of the state that tasks have now is in colour. */
static void kinds_print(struct cli *cli, const struct outcome_kinds *kinds,
                        const char *const *heads, bool states)
{
    struct cli_table table;
    cli_table_init(&table, &cli->arena, heads);
    for (size_t i = 0; i < kinds->count; i++) {
        struct rv_str text = cli_text_clean(&cli->arena, kinds->rows[i].text);
        cli_table_add_number(&table, kinds->rows[i].count);
        cli_table_add(&table, text, states ? cli_colour_of_state(text) : CLI_PLAIN);
        cli_table_add(&table, cli_text_clean(&cli->arena, kinds->rows[i].task), CLI_BOLD);
    }
    if (states && kinds->others > 0) {
        cli_table_add_number(&table, kinds->others);
        cli_table_add(&table, RV_STR("no longer exists"), CLI_DIM);
        cli_table_add(&table, RV_STR(""), CLI_PLAIN);
    }
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
}

static int refusals_print(struct cli *cli)
{
    static const char *const heads[] = {">TASKS", "REFUSED", "SAMPLE", NULL};
    struct outcome_kinds kinds;
    struct rv_str next;
    int code = kinds_read(cli, NULL, &kinds, refusal_each, &next);
    if (code != CLI_DONE)
        return code;
    kinds_print(cli, &kinds, heads, false);
    if (kinds.others > 0 || next.len > 0)
        printf("To list all outcomes: GET /v1/selections/%s/outcomes\n", cli->words.args[1]);
    return CLI_DONE;
}

/* The tasks that accepted the command, by their state now: an undo that it began may still run, or
 * may have stopped with an error. */
static int states_print(struct cli *cli)
{
    static const char *const heads[] = {">TASKS", "STATE NOW", "SAMPLE", NULL};
    struct outcome_kinds kinds;
    struct rv_str next;
    int code = kinds_read(cli, "done", &kinds, state_each, &next);
    if (code != CLI_DONE)
        return code;
    kinds_print(cli, &kinds, heads, true);
    if (next.len > 0)
        printf("Only the states of the first %d tasks are counted. To list all: GET "
               "/v1/selections/%s/outcomes?outcome=done\n",
               OUTCOMES_READ, cli->words.args[1]);
    return CLI_DONE;
}

static int answer_print(struct cli *cli, const struct cli_answer *answer)
{
    if (cli_has(cli, CLI_OPTION_JSON))
        cli_json_print(answer->text);
    else
        selection_print(cli, &answer->json);
    return CLI_DONE;
}

static int bulk_status(struct cli *cli)
{
    struct cli_path path;
    struct cli_answer answer;
    path_of(cli, &path, NULL);
    int code = cli_get(cli, cli_path_end(&path, &cli->arena), &answer);
    if (code != CLI_DONE)
        return code;
    code = answer_print(cli, &answer);
    if (cli_has(cli, CLI_OPTION_JSON))
        return code;
    if (cli_int(&answer.json, "done") > 0)
        code = states_print(cli);
    if (code == CLI_DONE && cli_int(&answer.json, "refused") > 0)
        code = refusals_print(cli);
    return code;
}

static int bulk_hold(struct cli *cli)
{
    struct cli_path path;
    struct cli_answer answer;
    path_of(cli, &path, cli->words.args[0]);
    int code = cli_operate(cli, &path, NULL, &answer);
    return code == CLI_DONE ? answer_print(cli, &answer) : code;
}

/* "20" or "20/s". */
static bool rate_read(const char *text, long *ret_rate)
{
    char *end;
    if (*text < '1' || *text > '9')
        return false;
    *ret_rate = strtol(text, &end, 10);
    return (*end == '\0' || strcmp(end, "/s") == 0) && *ret_rate <= RV_BULK_RATE_MAX;
}

bool cli_bulk_takes(const char *word)
{
    static const char *const words[] = {"undo", "cancel", "resubmit", "suspend", "unsuspend"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static int bulk_begin(struct cli *cli)
{
    const char *rate = cli_value(cli, CLI_OPTION_RATE);
    if (!cli_bulk_takes(cli->words.args[0]))
        return cli_tell(
            cli, CLI_USAGE,
            "\"%s\": unknown bulk command; commands for tasks: undo, cancel, resubmit, "
            "suspend, unsuspend; for a running bulk command: pause, resume, stop, status",
            cli->words.args[0]);
    bool unsuspend = strcmp(cli->words.args[0], "unsuspend") == 0;
    struct cli_about about = {.command = unsuspend ? "resume" : cli->words.args[0], .rate = 0};
    struct cli_path path;
    struct cli_answer answer;
    if (rate != NULL && !rate_read(rate, &about.rate))
        return cli_tell(cli, CLI_USAGE, "--rate %s: must be N/s with a whole number from 1 to %d",
                        rate, RV_BULK_RATE_MAX);
    if (cli_has(cli, CLI_OPTION_ABANDON) && strcmp(about.command, "cancel") != 0)
        return cli_tell(cli, CLI_USAGE, "--abandon is valid only with cancel; omit it");
    if (cli_has(cli, CLI_OPTION_BY_HAND) && strcmp(about.command, "cancel") != 0 &&
        strcmp(about.command, "undo") != 0)
        return cli_tell(cli, CLI_USAGE, "--by-hand is valid only with undo and cancel; omit it");
    int code = cli_abandon_check(cli);
    if (code == CLI_DONE)
        code = cli_late_seen_read(cli, &about);
    if (code != CLI_DONE)
        return code;
    path_of(cli, &path, "bulk");
    code = cli_operate(cli, &path, &about, &answer);
    return code == CLI_DONE ? answer_print(cli, &answer) : code;
}

int cli_bulk(struct cli *cli)
{
    const char *word = cli->words.args[0];
    bool status = strcmp(word, "status") == 0;
    bool hold = strcmp(word, "pause") == 0 || strcmp(word, "resume") == 0 ||
                strcmp(word, "stop") == 0;
    bool fresh = cli_has(cli, CLI_OPTION_RATE) || cli_has(cli, CLI_OPTION_ABANDON) ||
                 cli_has(cli, CLI_OPTION_BY_HAND);
    if ((status || hold) && fresh)
        return cli_tell(
            cli, CLI_USAGE,
            "--rate, --abandon and --by-hand are valid only for a new bulk command; omit them");
    if (status)
        return bulk_status(cli);
    return hold ? bulk_hold(cli) : bulk_begin(cli);
}

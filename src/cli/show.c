#include "base/limits.h"
#include "base/str.h"
#include "cli/page_priv.h"
#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <inttypes.h>
#include <stdio.h>

#define JSON_BYTES_MAX ((size_t)1 << 30)

enum {
    STEPS_SHOWN = 200, /* the newest, without --all */
    STEPS_READ = 5000, /* of a task with more, those in error are not sought */
    STANDS_MAX = 32,
    STEPS_MAX = 1000000,
    ALERTS_SHOWN = 100,
    ATTEMPTS_SHOWN = 100,
    LATE_SHOWN = 100,
    HISTORY_SHOWN = 100,
    PAYLOAD_COLUMNS = 400 /* of an input or output; --json has all of it */
};

static void line_print(const struct cli *cli, const char *name, struct rv_str text)
{
    if (text.len > 0)
        printf("  %s%-12s%s %.*s\n", cli_colour_begin(CLI_DIM, cli->colour), name,
               cli_colour_end(cli->colour), RV_STR_FMT(text));
}

static void payload_print(struct cli *cli, const struct rv_json *task, const char *name)
{
    const struct rv_json *value = rv_json_get(task, rv_str_of(name));
    struct rv_buf buf;
    if (value == NULL || value->type == RV_JSON_NULL)
        return;
    rv_buf_init(&buf, 2 * RV_PAYLOAD_BYTES_MAX);
    rv_json_write(&buf, value);
    struct rv_str text = cli_text_clean(&cli->arena, rv_buf_str(&buf));
    line_print(cli, name, cli_text_cut(&cli->arena, text, PAYLOAD_COLUMNS));
    rv_buf_done(&buf);
}

static void instant_print(struct cli *cli, const struct rv_json *task, const char *member,
                          const char *name)
{
    int64_t at = cli_instant(task, member);
    if (at != 0)
        line_print(cli, name, cli_text_past(&cli->arena, at, cli->now));
}

/* What the state alone does not say; `told` is its explanation. */
static struct rv_str state_note(struct cli *cli, const struct rv_json *task,
                                const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_str(task, "state");
    bool undo = rv_str_is(cli_str(task, "direction"), "undo");
    int64_t created = cli_instant(task, "createdAt");
    int64_t ended = cli_instant(task, "endedAt");
    if (cli_bool(task, "unreadable"))
        return RV_STR(
            "the row of the task is damaged: the information shown here may be incorrect");
    if (rv_str_is(state, "error"))
        return undo ? RV_STR("the undo has stopped; the task waits for an operator")
                    : RV_STR("the task has stopped and waits for an operator");
    int64_t quiet = cli_instant(task, "quietAt");
    if (rv_str_is(state, "compensating") && quiet > cli->now)
        return rv_arena_printf(arena,
                               "the undo waits until %.*s: until then, an attempt that ended "
                               "without a reply may still be running",
                               RV_STR_FMT(cli_text_instant(arena, quiet, cli->now)));
    if (cli_bool(task, "cancelling") && ended == 0)
        return rv_arena_printf(arena, "the task is being cancelled: %.*s",
                               RV_STR_FMT(cli_text_clean(arena, cli_str(told, "why"))));
    if (ended != 0)
        return rv_arena_printf(arena, "took %.*s",
                               RV_STR_FMT(cli_text_duration(arena, ended - created)));
    return RV_STR("");
}

static void task_print(struct cli *cli, const struct rv_json *task, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_text_clean(arena, cli_str(task, "state"));
    struct rv_str note = state_note(cli, task, told);
    bool suspended = cli_instant(task, "suspendedAt") != 0;
    printf("%s%.*s%s  %s%.*s%s%s%s%.*s\n", cli_colour_begin(CLI_BOLD, cli->colour),
           RV_STR_FMT(cli_text_clean(arena, cli_str(task, "task"))), cli_colour_end(cli->colour),
           cli_colour_begin(cli_colour_of_state(state), cli->colour), RV_STR_FMT(state),
           cli_colour_end(cli->colour), suspended ? ", suspended" : "", note.len ? "  " : "",
           RV_STR_FMT(note));
    struct rv_str error = cli_task_error_text(arena, rv_json_get(task, RV_STR("error")));
    line_print(cli, "error", cli_text_clean(arena, error));
    error = cli_task_error_text(arena, rv_json_get(task, RV_STR("undoError")));
    line_print(cli, "undo error", cli_text_clean(arena, error));
    line_print(cli, "workflow", cli_text_clean(arena, cli_str(task, "workflow")));
    line_print(cli, "key", cli_text_clean(arena, cli_str(task, "key")));
    line_print(cli, "correlation", cli_text_clean(arena, cli_str(task, "correlationId")));
    line_print(cli, "trace", cli_text_clean(arena, cli_str(task, "traceId")));
    instant_print(cli, task, "createdAt", "submitted");
    instant_print(cli, task, "startedAt", "started");
    instant_print(cli, task, "endedAt", "ended");
    int64_t priority = cli_int(task, "priority");
    if (priority != 5)
        line_print(cli, "priority", rv_arena_printf(arena, "%" PRId64, priority));
    payload_print(cli, task, "input");
    payload_print(cli, task, "output");
}

/* ---- what belongs to the task ---- */

struct shown {
    struct cli *cli;
    struct cli_table table;
    size_t count;
    bool repeated;              /* a step has more attempts than the one it shows */
    const struct rv_json *told; /* the explanation of the task; NULL: it has ended */
    int64_t newest; /* steps behind this one are shown, of the others those that matter */
    int64_t last;   /* step that was shown */
    int64_t left_out;
};

struct history_line {
    struct rv_json row;
    struct history_line *newer;
};

struct history {
    struct shown shown;
    struct history_line *oldest; /* of those that were read */
};

/* The task stands at it, or a command that leads on names it. */
static bool step_matters(const struct rv_json *told, int64_t number)
{
    size_t count;
    const struct rv_json *cures = cli_items(told, "cures", &count);
    for (size_t i = 0; i < count; i++)
        if (cli_int(&cures[i], "step") == number)
            return true;
    return cli_step_told(told, number) != NULL;
}

static void effect_add(struct cli_table *table, struct rv_str effect)
{
    cli_table_add(table, rv_str_is(effect, "none") ? RV_STR("") : effect,
                  rv_str_is(effect, "unknown") ? CLI_YELLOW : CLI_PLAIN);
}

/* A line for those between the step and the one shown before. */
static void gap_add(struct shown *shown, int64_t number)
{
    struct cli_table *table = &shown->table;
    int64_t between = number - shown->last - 1;
    shown->last = number;
    shown->left_out += between;
    for (size_t i = 0; between > 0 && i < table->columns; i++)
        cli_table_add(
            table,
            i == 1 ? rv_arena_printf(&shown->cli->arena, "... steps not shown: %" PRId64, between)
                   : RV_STR(""),
            CLI_DIM);
}

static void step_add(const struct rv_json *step, void *user)
{
    struct shown *shown = user;
    struct rv_arena *arena = &shown->cli->arena;
    struct cli_table *table = &shown->table;
    struct rv_str state = cli_str(step, "state");
    int64_t number = cli_int(step, "number");
    bool matters = number > shown->newest || rv_str_is(state, "error") ||
                   step_matters(shown->told, number);
    if (!matters || number <= shown->last)
        return;
    gap_add(shown, number);
    struct rv_str attempt_state = cli_str(step, "attemptState");
    int64_t attempt = cli_int(step, "attempt");
    int64_t failures = cli_int(step, "failureCount");
    int64_t round = cli_int(step, "round");
    int64_t begun = cli_instant(step, "createdAt");
    int64_t ended = cli_instant(step, "endedAt");
    shown->repeated = shown->repeated || attempt > 1;
    cli_table_add_number(table, cli_int(step, "number"));
    cli_table_add(table, cli_step_name(arena, step), CLI_BOLD);
    cli_table_add(table, state, cli_colour_of_state(state));
    cli_table_add(table, cli_str(step, "agent"), CLI_PLAIN);
    cli_table_add(
        table,
        attempt > 0 ? rv_arena_printf(arena, "%" PRId64 " %.*s", attempt, RV_STR_FMT(attempt_state))
                    : RV_STR(""),
        cli_colour_of_state(attempt_state));
    cli_table_add(table,
                  round > 0
                      ? rv_arena_printf(arena, "%" PRId64 ", round %" PRId64, failures, round + 1)
                  : failures > 0 ? rv_arena_printf(arena, "%" PRId64, failures)
                                 : RV_STR(""),
                  CLI_PLAIN);
    effect_add(table, cli_str(step, "effect"));
    cli_table_add(table, ended ? cli_text_duration(arena, ended - begun) : RV_STR(""), CLI_PLAIN);
    const struct rv_json *told = cli_step_told(shown->told, number);
    struct rv_str why = cli_step_why(arena, step, told, shown->cli->now);
    if (shown->told->type == RV_JSON_OBJECT && cli_bool(step, "undoByHand"))
        why = rv_arena_printf(arena, "%.*s%sundo: by hand", RV_STR_FMT(why),
                              why.len > 0 ? "; " : "");
    cli_table_add(table, why, CLI_PLAIN);
}

/* What came of an attempt that gave its step no result. */
static void attempt_add(const struct rv_json *attempt, void *user)
{
    struct shown *shown = user;
    struct rv_arena *arena = &shown->cli->arena;
    struct cli_table *table = &shown->table;
    struct rv_str state = cli_str(attempt, "state");
    if (rv_str_is(state, "done") || rv_str_is(state, "open"))
        return;
    cli_table_add(table, cli_str(attempt, "step"), CLI_PLAIN);
    cli_table_add_number(table, cli_int(attempt, "attempt"));
    cli_table_add(table, cli_text_ago(arena, cli_instant(attempt, "endedAt"), shown->cli->now),
                  CLI_PLAIN);
    cli_table_add(table, cli_text_clean(arena, cli_str(attempt, "instance")), CLI_PLAIN);
    cli_table_add(table, state, cli_colour_of_state(state));
    effect_add(table, cli_str(attempt, "effect"));
    cli_table_add(table, cli_error_text(arena, rv_json_get(attempt, RV_STR("error"))), CLI_PLAIN);
}

static void late_add(const struct rv_json *late, void *user)
{
    struct shown *shown = user;
    struct rv_arena *arena = &shown->cli->arena;
    struct cli_table *table = &shown->table;
    const struct rv_json *output = rv_json_get(late, RV_STR("output"));
    struct rv_buf buf;
    rv_buf_init(&buf, 2 * RV_PAYLOAD_BYTES_MAX);
    if (output != NULL)
        rv_json_write(&buf, output);
    cli_table_add(table, cli_str(late, "step"), CLI_PLAIN);
    cli_table_add_number(table, cli_int(late, "attempt"));
    cli_table_add(table, cli_text_ago(arena, cli_instant(late, "arrivedAt"), shown->cli->now),
                  CLI_PLAIN);
    cli_table_add(table, cli_str(late, "reason"), CLI_YELLOW);
    cli_table_add(table,
                  output ? rv_arena_printf(arena, "done: %.*s", RV_STR_FMT(rv_buf_str(&buf)))
                         : cli_error_text(arena, rv_json_get(late, RV_STR("error"))),
                  CLI_PLAIN);
    rv_buf_done(&buf);
}

static struct rv_str command_text(struct rv_arena *arena, const struct rv_json *row)
{
    struct rv_str options = cli_str(row, "options");
    struct rv_str command = cli_str(row, "command");
    return options.len == 0
               ? command
               : rv_arena_printf(arena, "%.*s, %.*s", RV_STR_FMT(command), RV_STR_FMT(options));
}

static void history_add(const struct rv_json *row, struct shown *shown)
{
    struct rv_arena *arena = &shown->cli->arena;
    struct cli_table *table = &shown->table;
    struct rv_str selection = cli_str(row, "selection");
    cli_table_add_number(table, cli_int(row, "number"));
    cli_table_add(table, cli_text_ago(arena, cli_instant(row, "at"), shown->cli->now), CLI_PLAIN);
    cli_table_add(table, cli_text_clean(arena, cli_str(row, "by")), CLI_BOLD);
    cli_table_add(table, command_text(arena, row), CLI_PLAIN);
    cli_table_add(table, cli_str(row, "step"), CLI_PLAIN);
    cli_table_add(table, selection, CLI_PLAIN);
    cli_table_add(table, cli_text_clean(arena, cli_str(row, "reason")), CLI_PLAIN);
}

static void alert_add(const struct rv_json *alert, void *user)
{
    struct shown *shown = user;
    if (cli_instant(alert, "closedAt") != 0 && !cli_has(shown->cli, CLI_OPTION_ALL))
        return;
    if (shown->count++ == 0)
        printf("\n%sAlerts%s\n", cli_colour_begin(CLI_BOLD, shown->cli->colour),
               cli_colour_end(shown->cli->colour));
    cli_alert_print(shown->cli, alert, "  ");
}

static void table_print(const struct shown *shown, const char *title)
{
    if (shown->table.count == 0)
        return;
    printf("\n%s%s%s\n", cli_colour_begin(CLI_BOLD, shown->cli->colour), title,
           cli_colour_end(shown->cli->colour));
    cli_table_print(&shown->table, stdout, shown->cli->colour, cli_width(shown->cli));
}

static int steps_read(struct shown *shown, struct rv_str task, int64_t after, uint64_t limit)
{
    struct cli *cli = shown->cli;
    struct cli_list list = {.items = "steps", .each = step_add, .user = shown};
    struct rv_str next, start = rv_arena_printf(&cli->arena, "%" PRId64, after);
    cli_path_begin(&list.path, "/v1/tasks");
    cli_path_segment(&list.path, task);
    rv_buf_lit(&list.path.buf, "/steps");
    return cli_list_read(cli, &list, start.at, limit, &next);
}

/* Those at which the task stands, among steps too many to read, in their order. */
static int steps_seek(struct shown *shown, struct rv_str task, int64_t before)
{
    int64_t numbers[STANDS_MAX];
    size_t count, found = 0;
    const char *const members[] = {"steps", "cures"};
    for (size_t m = 0; m < 2; m++) {
        const struct rv_json *items = cli_items(shown->told, members[m], &count);
        for (size_t i = 0; i < count && found < STANDS_MAX; i++)
            numbers[found++] = cli_int(&items[i], m == 0 ? "number" : "step");
    }
    int code = CLI_DONE;
    int64_t after = 0;
    while (code == CLI_DONE && after < before) {
        int64_t least = before + 1;
        for (size_t i = 0; i < found; i++)
            least = numbers[i] > after && numbers[i] < least ? numbers[i] : least;
        if (least <= before)
            code = steps_read(shown, task, least - 1, 1);
        after = least;
    }
    return code;
}

static int steps_show(struct cli *cli, struct rv_str task, int64_t last, const struct rv_json *told,
                      bool *ret_repeated)
{
    static const char *const heads[] = {">#",       "STEP",   "STATE", "AGENT", "ATTEMPT",
                                        "FAILURES", "EFFECT", "TOOK",  "WHY",   NULL};
    bool all = cli_has(cli, CLI_OPTION_ALL) || last <= STEPS_SHOWN;
    struct shown shown = {.cli = cli, .told = told, .newest = all ? 0 : last - STEPS_SHOWN};
    int64_t after = all || last <= STEPS_READ ? 0 : shown.newest;
    cli_table_init(&shown.table, &cli->arena, heads);
    int code = after > 0 ? steps_seek(&shown, task, after) : CLI_DONE;
    if (code == CLI_DONE)
        code = steps_read(&shown, task, after, STEPS_MAX);
    if (code != CLI_DONE)
        return code;
    table_print(&shown, "Steps");
    if (shown.left_out > 0)
        printf("Steps that are not shown: %" PRId64 ". To show all: reeve show %.*s --all\n",
               shown.left_out, RV_STR_FMT(task));
    *ret_repeated = shown.repeated;
    return CLI_DONE;
}

/* Of a list that is cut without --all. */
static uint64_t rows_wanted(const struct cli *cli, uint64_t without)
{
    return cli_has(cli, CLI_OPTION_ALL) ? STEPS_MAX : without;
}

static int attempts_show(struct cli *cli, struct rv_str task)
{
    static const char *const heads[] = {"STEP",  ">ATTEMPT", "ENDED", "INSTANCE",
                                        "STATE", "EFFECT",   "WHY",   NULL};
    struct shown shown = {.cli = cli};
    struct cli_list list = {.items = "attempts", .each = attempt_add, .user = &shown};
    struct rv_str next;
    cli_path_begin(&list.path, "/v1/tasks");
    cli_path_segment(&list.path, task);
    rv_buf_lit(&list.path.buf, "/attempts");
    cli_table_init(&shown.table, &cli->arena, heads);
    int code = cli_list_read(cli, &list, NULL, rows_wanted(cli, ATTEMPTS_SHOWN), &next);
    if (code != CLI_DONE)
        return code;
    table_print(&shown, "Unsuccessful attempts");
    if (next.len > 0)
        printf("Only the first %d attempts are examined. To show all: reeve show %.*s --all\n",
               ATTEMPTS_SHOWN, RV_STR_FMT(cli_text_clean(&cli->arena, task)));
    return CLI_DONE;
}

/* Those that somebody looks after still say why the task stands; closed ones only with --all. */
static int alerts_show(struct cli *cli, struct rv_str task)
{
    struct shown shown = {.cli = cli};
    struct cli_list list = {.items = "alerts", .each = alert_add, .user = &shown};
    struct rv_str next;
    struct rv_str id = rv_arena_str(&cli->arena, task);
    cli_path_begin(&list.path, "/v1/alerts");
    cli_path_parameter(&list.path, "task", id.at);
    cli_path_parameter(&list.path, "open", "false");
    int code = cli_list_read(cli, &list, NULL, rows_wanted(cli, ALERTS_SHOWN), &next);
    if (code == CLI_DONE && next.len > 0)
        printf("Only the newest %d alerts are examined. To show all: reeve show %.*s --all\n",
               ALERTS_SHOWN, RV_STR_FMT(cli_text_clean(&cli->arena, task)));
    return code;
}

static void late_heads(struct shown *shown)
{
    static const char *const heads[] = {"STEP",        ">ATTEMPT", "ARRIVED",
                                        "NOT COUNTED", "IT SAID",  NULL};
    cli_table_init(&shown->table, &shown->cli->arena, heads);
}

void cli_late_print(struct cli *cli, const struct rv_json *items, size_t count)
{
    struct shown shown = {.cli = cli};
    late_heads(&shown);
    for (size_t i = 0; i < count; i++)
        late_add(&items[i], &shown);
    table_print(&shown, "Late replies");
}

static void late_note(const struct rv_json *late, void *user)
{
    struct shown *shown = user;
    shown->count++;
    late_add(late, shown);
}

int cli_late_show(struct cli *cli, struct rv_str task, size_t *ret_count)
{
    struct shown shown = {.cli = cli};
    struct cli_list list = {.items = "lateReplies", .each = late_note, .user = &shown};
    struct rv_str next;
    cli_path_begin(&list.path, "/v1/tasks");
    cli_path_segment(&list.path, task);
    rv_buf_lit(&list.path.buf, "/late-replies");
    late_heads(&shown);
    *ret_count = 0;
    int code = cli_list_read(cli, &list, NULL, rows_wanted(cli, LATE_SHOWN), &next);
    if (code != CLI_DONE)
        return code;
    *ret_count = shown.count;
    table_print(&shown, "Late replies");
    if (next.len > 0)
        printf("Only the oldest %zu late replies are listed. To show all: reeve show %.*s --all\n",
               shown.count, RV_STR_FMT(cli_text_clean(&cli->arena, task)));
    return CLI_DONE;
}

static void history_note(const struct rv_json *row, void *user)
{
    struct history *history = user;
    struct history_line *line = RV_NEW(&history->shown.cli->arena, struct history_line);
    if (line == NULL)
        return;
    *line = (struct history_line){.row = *row, .newer = history->oldest};
    history->oldest = line;
}

/* The server tells the newest line first; here it is the last. */
static int history_show(struct cli *cli, struct rv_str task)
{
    static const char *const heads[] = {">#",   "WHEN",      "WHO", "COMMAND",
                                        "STEP", "SELECTION", "WHY", NULL};
    struct history history = {.shown = {.cli = cli}};
    struct cli_list list = {.items = "history", .each = history_note, .user = &history};
    struct rv_str next;
    cli_path_begin(&list.path, "/v1/tasks");
    cli_path_segment(&list.path, task);
    rv_buf_lit(&list.path.buf, "/history");
    int code = cli_list_read(cli, &list, NULL, rows_wanted(cli, HISTORY_SHOWN), &next);
    if (code != CLI_DONE)
        return code;
    cli_table_init(&history.shown.table, &cli->arena, heads);
    for (struct history_line *line = history.oldest; line != NULL; line = line->newer)
        history_add(&line->row, &history.shown);
    table_print(&history.shown, "History");
    if (next.len > 0)
        printf("Only the newest %d commands are listed. To show all: reeve show %.*s --all\n",
               HISTORY_SHOWN, RV_STR_FMT(cli_text_clean(&cli->arena, task)));
    return CLI_DONE;
}

/* What an operator can do about it from here. */
static void cures_print(struct cli *cli, const struct rv_json *task, const struct rv_json *told)
{
    struct rv_str state = cli_str(task, "state");
    size_t alerts;
    (void)cli_items(told, "alerts", &alerts);
    bool suspended = cli_instant(task, "suspendedAt") != 0;
    if (suspended || alerts > 0 || rv_str_is(state, "error"))
        cli_cures_print(cli, told);
    else if (cli->terminal && cli_task_code(state) < 0)
        printf("\nTo follow the task: reeve watch %s\n", cli->words.args[0]);
}

/* What is said of an open task comes from its explanation, and the commands that it accepts; what
 * was undone accepts none. */
static int told_read(struct cli *cli, const struct rv_json *task, struct rv_str id,
                     struct cli_answer *ret_told)
{
    ret_told->json = (struct rv_json){.type = RV_JSON_NULL};
    bool processed = rv_str_is(cli_str(task, "state"), "processed");
    if (cli_instant(task, "endedAt") != 0 && !processed)
        return CLI_DONE;
    return cli_get(cli, cli_task_path(cli, id, "/explain"), ret_told);
}

/* ---- --json ---- */

static int list_add(struct cli *cli, struct rv_buf *document, const char *name,
                    struct cli_list *list, const char *after, uint64_t limit)
{
    struct rv_str next;
    list->into = document;
    rv_buf_printf(document, ",\"%s\":[", name);
    int code = cli_list_read(cli, list, after, limit, &next);
    rv_buf_add_char(document, ']');
    return code;
}

static int rows_add(struct cli *cli, struct rv_buf *document, struct rv_str task, const char *name,
                    const char *rows, const char *after)
{
    struct cli_list list = {.items = rows};
    cli_path_begin(&list.path, "/v1/tasks");
    cli_path_segment(&list.path, task);
    cli_path_segment(&list.path, rv_str_of(rows));
    return list_add(cli, document, name, &list, after, STEPS_MAX);
}

static int alerts_add(struct cli *cli, struct rv_buf *document, const char *task)
{
    struct cli_list list = {.items = "alerts"};
    cli_path_begin(&list.path, "/v1/alerts");
    cli_path_parameter(&list.path, "task", task);
    cli_path_parameter(&list.path, "open", cli_has(cli, CLI_OPTION_ALL) ? "false" : "true");
    return list_add(cli, document, "alerts", &list, NULL, STEPS_MAX);
}

static int late_add_json(struct cli *cli, struct rv_buf *document, struct rv_str task)
{
    struct cli_list list = {.items = "lateReplies"};
    cli_path_begin(&list.path, "/v1/tasks");
    cli_path_segment(&list.path, task);
    rv_buf_lit(&list.path.buf, "/late-replies");
    return list_add(cli, document, "lateReplies", &list, NULL, STEPS_MAX);
}

/* One document: the task, and what belongs to it. "steps" of the task is their number. */
static int json_show(struct cli *cli, const struct cli_answer *task)
{
    const char *id = cli->words.args[0];
    int64_t last = cli_int(&task->json, "steps");
    bool all = cli_has(cli, CLI_OPTION_ALL) || last <= STEPS_SHOWN;
    struct rv_str after = rv_arena_printf(&cli->arena, "%" PRId64, all ? 0 : last - STEPS_SHOWN);
    struct rv_str text = task->text;
    struct rv_buf document;
    while (text.len > 0 && text.at[text.len - 1] != '}')
        text.len--;
    text.len -= text.len > 0;
    rv_buf_init(&document, JSON_BYTES_MAX);
    rv_buf_add_str(&document, text);
    if (!all) /* as the newest are listed alone */
        rv_buf_printf(&document, ",\"stepsNotListed\":%" PRId64, last - STEPS_SHOWN);
    int code = rows_add(cli, &document, rv_str_of(id), "stepList", "steps", after.at);
    if (code == CLI_DONE)
        code = alerts_add(cli, &document, id);
    if (code == CLI_DONE)
        code = late_add_json(cli, &document, rv_str_of(id));
    if (code == CLI_DONE)
        code = rows_add(cli, &document, rv_str_of(id), "history", "history", NULL);
    rv_buf_add_char(&document, '}');
    if (code == CLI_DONE && document.failed != RV_OK)
        code = cli_tell(cli, CLI_UNREACHABLE, "out of memory");
    if (code == CLI_DONE)
        cli_json_print(rv_buf_str(&document));
    rv_buf_done(&document);
    return code;
}

int cli_show(struct cli *cli)
{
    struct rv_str id = rv_str_of(cli->words.args[0]);
    struct cli_answer answer, told;
    size_t late;
    if (cli->words.args_count > 1)
        return cli_step_show(cli, id, cli->words.args[1]);
    int code = cli_get(cli, cli_task_path(cli, id, ""), &answer);
    if (code == CLI_DONE && cli_has(cli, CLI_OPTION_JSON))
        return json_show(cli, &answer);
    if (code == CLI_DONE)
        code = told_read(cli, &answer.json, id, &told);
    if (code != CLI_DONE)
        return code;
    task_print(cli, &answer.json, &told.json);
    bool repeated = false;
    code = steps_show(cli, id, cli_int(&answer.json, "steps"), &told.json, &repeated);
    if (code == CLI_DONE && repeated)
        code = attempts_show(cli, id);
    if (code == CLI_DONE)
        code = alerts_show(cli, id);
    if (code == CLI_DONE)
        code = cli_late_show(cli, id, &late);
    if (code == CLI_DONE)
        code = history_show(cli, id);
    if (code == CLI_DONE)
        cures_print(cli, &answer.json, &told.json);
    return code;
}

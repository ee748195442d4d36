#include "cli/page_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>

enum { TASKS_SHOWN = 20 };

static const struct {
    enum cli_option option;
    const char *name; /* of the query's parameter */
} filters[] = {
    {CLI_OPTION_WORKFLOW, "workflow"}, {CLI_OPTION_STATE, "state"},
    {CLI_OPTION_AGENT, "agent"},       {CLI_OPTION_ERROR_TYPE, "errorType"},
    {CLI_OPTION_OLDER, "olderThan"},   {CLI_OPTION_NEWER, "newerThan"},
    {CLI_OPTION_KEY, "key"},           {CLI_OPTION_TAG, "tag"},
};
enum { FILTERS = sizeof filters / sizeof filters[0] };

size_t cli_path_filters(const struct cli *cli, struct cli_path *path)
{
    size_t count = 0;
    for (size_t i = 0; i < FILTERS; i++) {
        cli_path_parameter(path, filters[i].name, cli_value(cli, filters[i].option));
        count += cli_has(cli, filters[i].option);
    }
    return count;
}

const char *cli_filter_named(const struct cli *cli, struct rv_str detail, struct rv_str *ret_rest)
{
    for (size_t i = 0; i < FILTERS; i++) {
        struct rv_str name = rv_str_of(filters[i].name);
        if (!cli_has(cli, filters[i].option) || !rv_str_begins(detail, name) ||
            detail.len == name.len || detail.at[name.len] != '=')
            continue;
        *ret_rest = (struct rv_str){detail.at + name.len + 1, detail.len - name.len - 1};
        return cli_option_row(filters[i].option)->flag;
    }
    return NULL;
}

struct tasks {
    struct cli *cli;
    struct cli_table table;
};

/* A key that libreeve made up (128 bits in hexadecimal) tells nobody anything. */
static bool key_made_up(struct rv_str key)
{
    for (size_t i = 0; i < key.len; i++)
        if (memchr("0123456789abcdef", key.at[i], 16) == NULL)
            return false;
    return key.len == 32;
}

/* The error by whose type --error-type finds the task. One that an operator undoes has none. */
static struct rv_str why_text(struct rv_arena *arena, const struct rv_json *item)
{
    struct rv_str undo = cli_error_text(arena, rv_json_get(item, RV_STR("undoError")));
    struct rv_str error = cli_error_text(arena, rv_json_get(item, RV_STR("error")));
    bool undone = rv_str_is(cli_str(item, "direction"), "undo");
    if (undo.len > 0)
        return rv_arena_printf(arena, "undo failed: %.*s", RV_STR_FMT(undo));
    return error.len == 0 && undone ? RV_STR("undone by an operator") : error;
}

static void task_add(const struct rv_json *item, void *user)
{
    struct tasks *tasks = user;
    struct cli_table *table = &tasks->table;
    struct rv_arena *arena = &tasks->cli->arena;
    struct rv_str state = cli_str(item, "state");
    int64_t created = cli_instant(item, "createdAt");
    int64_t ended = cli_instant(item, "endedAt");
    int64_t now = tasks->cli->now;
    cli_table_add(table, cli_str(item, "task"), CLI_BOLD);
    bool suspended = cli_instant(item, "suspendedAt") != 0;
    cli_table_add(table,
                  suspended ? rv_arena_printf(arena, "%.*s, suspended", RV_STR_FMT(state)) : state,
                  cli_colour_of_state(state));
    cli_table_add(table, cli_str(item, "workflow"), CLI_PLAIN);
    cli_table_add(table, created ? cli_text_ago(arena, created, now) : RV_STR_NONE, CLI_PLAIN);
    cli_table_add(table, ended ? cli_text_duration(arena, ended - created) : RV_STR_NONE,
                  CLI_PLAIN);
    struct rv_str key = cli_str(item, "key");
    cli_table_add(table, key_made_up(key) ? RV_STR("") : key, CLI_PLAIN);
    cli_table_add(table, why_text(arena, item), CLI_PLAIN);
}

/* The command that shows the next page, with the same filters. */
static void more_print(struct cli *cli, struct rv_str next)
{
    printf("To list more: reeve tasks");
    for (size_t i = 0; i < FILTERS; i++)
        if (cli_has(cli, filters[i].option))
            printf(" %s %s", cli_option_row(filters[i].option)->flag,
                   cli_value(cli, filters[i].option));
    if (cli_has(cli, CLI_OPTION_LIMIT))
        printf(" --limit %s", cli_value(cli, CLI_OPTION_LIMIT));
    printf(" --after %.*s\n", RV_STR_FMT(next));
}

int cli_tasks(struct cli *cli)
{
    static const char *const heads[] = {"TASK", "STATE", "WORKFLOW", "SUBMITTED",
                                        "TOOK", "KEY",   "ERROR",    NULL};
    struct tasks tasks = {.cli = cli};
    struct cli_list list = {.items = "tasks", .each = task_add, .user = &tasks};
    struct rv_str next;
    uint64_t limit;
    if (!cli_limit_read(cli, TASKS_SHOWN, &limit))
        return CLI_USAGE;
    cli_table_init(&tasks.table, &cli->arena, heads);
    cli_path_begin(&list.path, "/v1/tasks");
    bool filtered = cli_path_filters(cli, &list.path) > 0 || cli_has(cli, CLI_OPTION_AFTER);
    int code = cli_list_read(cli, &list, cli_value(cli, CLI_OPTION_AFTER), limit, &next);
    if (code != CLI_DONE || cli_has(cli, CLI_OPTION_JSON))
        return code;
    cli_table_print(&tasks.table, stdout, cli->colour, cli_width(cli));
    if (tasks.table.count == 0)
        printf("%s\n",
               filtered ? "No matching tasks." : "No tasks yet: reeve submit NAMESPACE/NAME");
    if (next.len > 0)
        more_print(cli, next);
    return CLI_DONE;
}

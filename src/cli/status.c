#include "cli/server_priv.h"
#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>

static void section(const struct cli *cli, const char *title)
{
    printf("\n%s%s%s\n", cli_colour_begin(CLI_BOLD, cli->colour), title,
           cli_colour_end(cli->colour));
}

static void tasks_print(struct cli *cli, const struct rv_json *status)
{
    static const char *const states[] = {"pending",   "processing",  "compensating", "error",
                                         "processed", "compensated", "cancelled"};
    static const char *const heads[] = {"STATE", ">TASKS", "", NULL};
    const struct rv_json *tasks = rv_json_get(status, RV_STR("tasks"));
    int64_t suspended = cli_int(status, "suspendedTasks");
    struct cli_table table;
    cli_table_init(&table, &cli->arena, heads);
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        int64_t count = cli_int(tasks, states[i]);
        bool ended = i > 3;
        cli_table_add(&table, rv_str_of(states[i]),
                      count > 0 ? cli_colour_of_state(rv_str_of(states[i])) : CLI_PLAIN);
        cli_table_add(&table, cli_text_number(&cli->arena, (uint64_t)count), CLI_PLAIN);
        cli_table_add(&table, ended ? RV_STR("since the server started") : RV_STR(""), CLI_DIM);
    }
    cli_table_add(&table, RV_STR("suspended"), suspended > 0 ? CLI_YELLOW : CLI_PLAIN);
    cli_table_add(&table, cli_text_number(&cli->arena, (uint64_t)suspended), CLI_PLAIN);
    cli_table_add(&table, RV_STR("also counted in their states"), CLI_DIM);
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
}

static void failures_print(struct cli *cli, const struct rv_json *status)
{
    static const char *const heads[] = {"ERROR TYPE", ">FAILURES", "LAST", NULL};
    struct cli_table table;
    size_t count;
    const struct rv_json *items = cli_items(status, "failures", &count);
    int64_t started = cli_instant(status, "startedAt");
    cli_table_init(&table, &cli->arena, heads);
    section(cli, "Failures of the last hour");
    for (size_t i = 0; i < count; i++) {
        cli_table_add(&table, cli_str(&items[i], "errorType"), CLI_RED);
        cli_table_add_number(&table, cli_int(&items[i], "count"));
        cli_table_add(&table, cli_text_ago(&cli->arena, cli_instant(&items[i], "lastAt"), cli->now),
                      CLI_PLAIN);
    }
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
    if (count == 0)
        printf("none\n");
    if (started != 0 && cli->now - started < 3600 * 1000)
        printf("Counted since the start of the server, %.*s.\n",
               RV_STR_FMT(cli_text_ago(&cli->arena, started, cli->now)));
}

static void waits_print(struct cli *cli, const struct rv_json *status)
{
    static const char *const heads[] = {"AGENT", ">WAITING", "OLDEST", ">INSTANCES", "", NULL};
    struct cli_table table;
    size_t count;
    const struct rv_json *items = cli_items(status, "waits", &count);
    if (count == 0)
        return;
    cli_table_init(&table, &cli->arena, heads);
    for (size_t i = 0; i < count; i++) {
        int64_t instances = cli_int(&items[i], "instances");
        cli_table_add(&table, cli_str(&items[i], "agent"), CLI_BOLD);
        cli_table_add_number(&table, cli_int(&items[i], "waiting"));
        cli_table_add(&table,
                      cli_text_ago(&cli->arena, cli_instant(&items[i], "waitingSince"), cli->now),
                      CLI_PLAIN);
        cli_table_add(&table, rv_arena_printf(&cli->arena, "%lld", (long long)instances),
                      instances == 0 ? CLI_RED : CLI_PLAIN);
        cli_table_add(&table, cli_bool(&items[i], "paused") ? RV_STR("paused") : RV_STR(""),
                      CLI_YELLOW);
    }
    section(cli, "Steps that wait for an agent");
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
    int64_t all = cli_int(status, "agentsWaitedFor");
    if (all > (int64_t)count)
        printf("%lld more are not listed. To list all: reeve agents\n",
               (long long)all - (long long)count);
}

static void circuits_print(struct cli *cli, const struct rv_json *status)
{
    static const char *const heads[] = {"AGENT", "TARGET", "PROBE", ">WAITING", NULL};
    struct cli_table table;
    size_t count;
    const struct rv_json *items = cli_items(status, "circuits", &count);
    int64_t open = cli_int(status, "circuitsOpen");
    if (count == 0)
        return;
    cli_table_init(&table, &cli->arena, heads);
    for (size_t i = 0; i < count; i++) {
        struct rv_str target = cli_str(&items[i], "target");
        cli_table_add(&table, cli_str(&items[i], "agent"), CLI_BOLD);
        cli_table_add(&table, target.len > 0 ? target : RV_STR("(the whole agent)"), CLI_YELLOW);
        cli_table_add(&table,
                      cli_text_distance(&cli->arena, cli_instant(&items[i], "openUntil"), cli->now),
                      CLI_PLAIN);
        cli_table_add_number(&table, cli_int(&items[i], "waiting"));
    }
    section(cli, "Open circuits");
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
    if (open > (int64_t)count)
        printf("%lld more are not listed. To list all: reeve agents\n",
               (long long)open - (long long)count);
}

static void alerts_print(struct cli *cli, const struct rv_json *status)
{
    const struct rv_json *alerts = rv_json_get(status, RV_STR("alerts"));
    size_t count;
    const struct rv_json *items = cli_items(alerts, "groups", &count);
    section(cli, "Open alerts");
    if (count == 0)
        printf("none\n");
    cli_alert_groups_print(cli, items, count, cli_bool(alerts, "more"));
    if (cli_bool(alerts, "more"))
        printf("Only the newest %lld alerts are counted; a + after a number means \"or more\". "
               "`reeve alerts` counts all alerts.\n",
               (long long)cli_int(alerts, "open"));
    else if (count > 0)
        printf("Details: reeve alerts\n");
}

/* Nothing else is of use while the store does not work. */
static int problems_print(struct cli *cli, const struct rv_json *status)
{
    const struct rv_json *store = rv_json_get(status, RV_STR("store"));
    bool json = cli_has(cli, CLI_OPTION_JSON), damaged = false;
    size_t count;
    const struct rv_json *items = cli_items(store, "problems", &count);
    for (size_t i = 0; i < count; i++) {
        damaged = damaged || rv_str_is(cli_str(&items[i], "problem"), "damaged");
        if (json)
            continue;
        printf("%s%.*s%s\n  cure: %.*s\n\n", cli_colour_begin(CLI_RED, cli->colour),
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&items[i], "message"))),
               cli_colour_end(cli->colour),
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&items[i], "cure"))));
    }
    return count == 0 ? CLI_DONE : damaged ? CLI_FAILED : CLI_UNREACHABLE;
}

static void store_print(const struct rv_json *status)
{
    int64_t bytes = cli_int(rv_json_get(status, RV_STR("store")), "bytes");
    if (bytes > 0)
        printf("\nStore: %lld.%lld MiB\n", (long long)bytes / 1048576,
               (long long)(bytes % 1048576 * 10 / 1048576));
}

int cli_status(struct cli *cli)
{
    struct cli_answer answer;
    int code = cli_get(cli, RV_STR("/v1/status"), &answer);
    if (code != CLI_DONE)
        return code;
    code = problems_print(cli, &answer.json);
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return code;
    }
    tasks_print(cli, &answer.json);
    failures_print(cli, &answer.json);
    waits_print(cli, &answer.json);
    circuits_print(cli, &answer.json);
    alerts_print(cli, &answer.json);
    store_print(&answer.json);
    return code;
}

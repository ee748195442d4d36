#include "cli/page_priv.h"
#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>
#include <string.h>

enum { ALERTS_SHOWN = 20, ALERTS_READ = 5000, GROUPS_MAX = 200, GROUP_DIGITS = 8 };

struct alerts {
    struct cli *cli;
    struct rv_str group; /* only those of this one; absent: all */
    size_t count;
};

void cli_alert_print(struct cli *cli, const struct rv_json *alert, const char *indent)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str step = cli_str(alert, "step");
    struct rv_str task = cli_str(alert, "task");
    struct rv_str where = step.len ? step : task.len ? task : cli_str(alert, "source");
    struct rv_str who = cli_text_clean(arena, cli_str(alert, "acknowledgedBy"));
    int64_t raised = cli_instant(alert, cli_int(alert, "count") > 0 ? "lastAt" : "raisedAt");
    int64_t acked = cli_instant(alert, "acknowledgedAt");
    int64_t closed = cli_instant(alert, "closedAt");
    printf("%s%s%.*s%s  %.*s  at %.*s, %.*s\n", indent,
           cli_colour_begin(closed ? CLI_DIM : CLI_RED, cli->colour),
           RV_STR_FMT(cli_text_clean(arena, cli_str(alert, "kind"))), cli_colour_end(cli->colour),
           RV_STR_FMT(cli_text_clean(arena, cli_str(alert, "alert"))),
           RV_STR_FMT(cli_text_clean(arena, where)),
           RV_STR_FMT(cli_text_ago(arena, raised, cli->now)));
    struct rv_str message = cli_text_clean(arena, cli_str(alert, "message"));
    if (message.len > 0)
        printf("%s  why:    %.*s\n", indent, RV_STR_FMT(message));
    if (closed == 0)
        printf("%s  to do:  %.*s\n", indent,
               RV_STR_FMT(cli_text_clean(arena, cli_str(alert, "cure"))));
    if (acked != 0)
        printf("%s  acknowledged: %.*s%s%.*s\n", indent,
               RV_STR_FMT(cli_text_ago(arena, acked, cli->now)), who.len ? " by " : "",
               RV_STR_FMT(who));
    if (closed != 0)
        printf("%s  closed: %.*s\n", indent, RV_STR_FMT(cli_text_ago(arena, closed, cli->now)));
}

static void alert_each(const struct rv_json *item, void *user)
{
    struct alerts *alerts = user;
    if (alerts->group.len > 0 && !rv_str_eq(cli_str(item, "group"), alerts->group))
        return;
    if (alerts->count++ > 0)
        printf("\n");
    cli_alert_print(alerts->cli, item, "");
}

/* ---- groups ---- */

/* "shop/order:1.0.0 charge: declined" */
static struct rv_str group_subject(struct rv_arena *arena, const struct rv_json *group)
{
    struct rv_str workflow = cli_str(group, "workflow");
    struct rv_str step = cli_text_step(arena, cli_str(group, "reference"));
    struct rv_str type = cli_str(group, "errorType");
    if (workflow.len == 0)
        return cli_str(group, "source");
    return rv_arena_printf(arena, "%.*s%s%.*s%s%.*s", RV_STR_FMT(workflow), step.len ? " " : "",
                           RV_STR_FMT(step), type.len ? ": " : "", RV_STR_FMT(type));
}

void cli_alert_groups_print(struct cli *cli, const struct rv_json *groups, size_t count, bool more)
{
    static const char *const heads[] = {"GROUP", "KIND", "ABOUT",  ">COUNT",
                                        "FIRST", "LAST", "SAMPLE", NULL};
    struct rv_arena *arena = &cli->arena;
    struct cli_table table;
    cli_table_init(&table, arena, heads);
    for (size_t i = 0; i < count; i++) {
        const struct rv_json *group = &groups[i];
        cli_table_add(&table, cli_str(group, "group"), CLI_PLAIN);
        cli_table_add(&table, cli_str(group, "kind"), CLI_RED);
        cli_table_add(&table, group_subject(arena, group), CLI_PLAIN);
        cli_table_add(
            &table,
            rv_arena_printf(arena, "%lld%s", (long long)cli_int(group, "count"), more ? "+" : ""),
            CLI_PLAIN);
        cli_table_add(&table, cli_text_ago(arena, cli_instant(group, "firstAt"), cli->now),
                      CLI_PLAIN);
        cli_table_add(&table, cli_text_ago(arena, cli_instant(group, "lastAt"), cli->now),
                      CLI_PLAIN);
        cli_table_add(&table, cli_str(group, "task"), CLI_PLAIN);
    }
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
}

/* The same group on several pages is one. */
struct group {
    const struct rv_json *newest;
    int64_t count;
    int64_t first_at;
};

struct alert_groups {
    struct cli *cli;
    struct group rows[GROUPS_MAX];
    size_t count;
    uint64_t left_out; /* alerts */
};

static void group_each(const struct rv_json *item, void *user)
{
    struct alert_groups *groups = user;
    size_t at = 0;
    while (at < groups->count &&
           !rv_str_eq(cli_str(groups->rows[at].newest, "group"), cli_str(item, "group")))
        at++;
    if (at == GROUPS_MAX) {
        groups->left_out += (uint64_t)cli_int(item, "count");
        return;
    }
    if (at == groups->count)
        groups->rows[groups->count++] = (struct group){.newest = item};
    groups->rows[at].count += cli_int(item, "count");
    groups->rows[at].first_at = cli_instant(item, "firstAt");
}

static void group_print(struct cli *cli, const struct group *group)
{
    struct rv_arena *arena = &cli->arena;
    const struct rv_json *newest = group->newest;
    struct rv_str name = cli_text_clean(arena, cli_str(newest, "group"));
    int64_t last = cli_instant(newest, "lastAt");
    if (group->count == 1) {
        cli_alert_print(cli, newest, "");
        return;
    }
    printf("%s%.*s%s  %lld alerts  %.*s\n", cli_colour_begin(CLI_RED, cli->colour),
           RV_STR_FMT(cli_text_clean(arena, cli_str(newest, "kind"))), cli_colour_end(cli->colour),
           (long long)group->count,
           RV_STR_FMT(cli_text_clean(arena, group_subject(arena, newest))));
    printf("  first:  %.*s\n", RV_STR_FMT(cli_text_ago(arena, group->first_at, cli->now)));
    printf("  last:   %.*s, %.*s\n", RV_STR_FMT(cli_text_ago(arena, last, cli->now)),
           RV_STR_FMT(cli_text_clean(arena, cli_str(newest, "task"))));
    printf("  why:    %.*s\n", RV_STR_FMT(cli_text_clean(arena, cli_str(newest, "message"))));
    printf("  to do:  %.*s\n", RV_STR_FMT(cli_text_clean(arena, cli_str(newest, "cure"))));
    printf("  list:   reeve alerts %.*s\n", RV_STR_FMT(name));
}

static int groups_list(struct cli *cli)
{
    struct alert_groups groups = {.cli = cli};
    struct cli_list list = {.items = "groups", .each = group_each, .user = &groups};
    struct rv_str next;
    uint64_t limit;
    bool json = cli_has(cli, CLI_OPTION_JSON);
    if (!cli_limit_read(cli, json ? ALERTS_SHOWN : ALERTS_READ, &limit))
        return CLI_USAGE;
    cli_path_begin(&list.path, "/v1/alerts");
    cli_path_parameter(&list.path, "open", "true");
    int code = cli_list_read(cli, &list, cli_value(cli, CLI_OPTION_AFTER), limit, &next);
    if (code != CLI_DONE || json)
        return code;
    for (size_t i = 0; i < groups.count; i++) {
        printf("%s", i > 0 ? "\n" : "");
        group_print(cli, &groups.rows[i]);
    }
    if (groups.count == 0)
        printf("No open alerts. To list acknowledged and closed alerts: reeve alerts --all\n");
    if (groups.left_out > 0)
        printf("\nNumber of alerts whose groups are not shown: %llu. To list them, newest "
               "first: reeve alerts --all --limit NUMBER\n",
               (unsigned long long)groups.left_out);
    if (next.len > 0)
        printf("\nTo list more: reeve alerts --after %.*s\n", RV_STR_FMT(next));
    return CLI_DONE;
}

/* ---- single ones ---- */

/* Those of one group, or with --all every one. */
static int alerts_list(struct cli *cli, const char *group)
{
    struct alerts alerts = {.cli = cli, .group = group ? rv_str_of(group) : RV_STR_NONE};
    struct cli_list list = {.items = "alerts", .each = alert_each, .user = &alerts};
    struct rv_str next;
    uint64_t limit;
    bool all = cli_has(cli, CLI_OPTION_ALL);
    if (!cli_limit_read(cli, group ? ALERTS_READ : ALERTS_SHOWN, &limit))
        return CLI_USAGE;
    cli_path_begin(&list.path, "/v1/alerts");
    cli_path_parameter(&list.path, "open", all ? "false" : "true");
    int code = cli_list_read(cli, &list, cli_value(cli, CLI_OPTION_AFTER), limit, &next);
    if (code != CLI_DONE || cli_has(cli, CLI_OPTION_JSON))
        return code;
    if (alerts.count == 0 && group != NULL)
        printf(next.len > 0 ? "None of the alerts that were read belongs to group %s.\n"
               : all        ? "Group %s has no alerts.\n"
                            : "Group %s has no open alerts.\n",
               group);
    else if (alerts.count == 0)
        printf("No alerts.\n");
    if (next.len > 0)
        printf("\nTo list more: reeve alerts%s%s%s --after %.*s\n", group ? " " : "",
               group ? group : "", all ? " --all" : "", RV_STR_FMT(next));
    return CLI_DONE;
}

static int alert_tell(struct cli *cli, const char *verb, struct rv_str alert)
{
    struct cli_path path;
    struct cli_answer answer;
    cli_path_begin(&path, "/v1/alerts");
    cli_path_segment(&path, alert);
    cli_path_segment(&path, rv_str_of(verb));
    bool retry = strcmp(verb, "retry") == 0;
    int code = cli_operate(cli, &path, NULL, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON))
        cli_json_print(answer.text);
    else if (retry)
        printf("%.*s retried: the webhook delivery has restarted\n", RV_STR_FMT(alert));
    else
        printf("%.*s acknowledged; \"reeve alerts --all\" still lists it\n", RV_STR_FMT(alert));
    return CLI_DONE;
}

int cli_alerts(struct cli *cli)
{
    char **args = cli->words.args;
    bool all = cli_has(cli, CLI_OPTION_ALL);
    if (cli->words.args_count == 0)
        return all ? alerts_list(cli, NULL) : groups_list(cli);
    bool group = strlen(args[0]) == GROUP_DIGITS &&
                 strspn(args[0], "0123456789abcdef") == GROUP_DIGITS;
    if (cli->words.args_count == 1 && group)
        return alerts_list(cli, args[0]);
    if (strcmp(args[0], "ack") != 0 && strcmp(args[0], "retry") != 0)
        return cli_tell(
            cli, CLI_USAGE,
            "\"%s\" is not a group of alerts; usage: reeve alerts [GROUP], reeve alerts ack ALERT, "
            "reeve alerts retry ALERT",
            args[0]);
    if (cli->words.args_count == 1)
        return cli_tell(cli, CLI_USAGE, "ALERT is missing; usage: reeve alerts %s ALERT", args[0]);
    return alert_tell(cli, args[0], rv_str_of(args[1]));
}

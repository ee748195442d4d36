#include "cli/page_priv.h"
#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>
#include <string.h>

enum { ALERTS_SHOWN = 20 };

struct alerts {
    struct cli *cli;
    size_t count;
};

void cli_alert_print(struct cli *cli, const struct rv_json *alert, const char *indent)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str step = cli_str(alert, "step");
    struct rv_str task = cli_str(alert, "task");
    struct rv_str where = step.len ? step : task.len ? task : cli_str(alert, "source");
    struct rv_str who = cli_text_clean(arena, cli_str(alert, "acknowledgedBy"));
    int64_t raised = cli_instant(alert, "raisedAt");
    int64_t acked = cli_instant(alert, "acknowledgedAt");
    int64_t closed = cli_instant(alert, "closedAt");
    printf("%s%s%.*s%s  %.*s  at %.*s, %.*s\n", indent,
           cli_colour_begin(closed ? CLI_DIM : CLI_RED, cli->colour),
           RV_STR_FMT(cli_text_clean(arena, cli_str(alert, "kind"))), cli_colour_end(cli->colour),
           RV_STR_FMT(cli_text_clean(arena, cli_str(alert, "alert"))),
           RV_STR_FMT(cli_text_clean(arena, where)),
           RV_STR_FMT(cli_text_distance(arena, raised, cli->now)));
    struct rv_str message = cli_text_clean(arena, cli_str(alert, "message"));
    if (message.len > 0)
        printf("%s  why:    %.*s\n", indent, RV_STR_FMT(message));
    if (closed == 0)
        printf("%s  to do:  %.*s\n", indent,
               RV_STR_FMT(cli_text_clean(arena, cli_str(alert, "cure"))));
    if (acked != 0)
        printf("%s  seen:   %.*s%s%.*s\n", indent,
               RV_STR_FMT(cli_text_distance(arena, acked, cli->now)), who.len ? " by " : "",
               RV_STR_FMT(who));
    if (closed != 0)
        printf("%s  closed: %.*s\n", indent,
               RV_STR_FMT(cli_text_distance(arena, closed, cli->now)));
}

static void alert_each(const struct rv_json *item, void *user)
{
    struct alerts *alerts = user;
    if (alerts->count++ > 0)
        printf("\n");
    cli_alert_print(alerts->cli, item, "");
}

static int alerts_list(struct cli *cli)
{
    struct alerts alerts = {.cli = cli};
    struct cli_list list = {.items = "alerts", .each = alert_each, .user = &alerts};
    struct rv_str next;
    uint64_t limit;
    bool all = cli_has(cli, CLI_OPTION_ALL);
    if (!cli_limit_read(cli, ALERTS_SHOWN, &limit))
        return CLI_USAGE;
    cli_path_begin(&list.path, "/v1/alerts");
    cli_path_parameter(&list.path, "open", all ? "false" : "true");
    int code = cli_list_read(cli, &list, cli_value(cli, CLI_OPTION_AFTER), limit, &next);
    if (code != CLI_DONE || cli_has(cli, CLI_OPTION_JSON))
        return code;
    if (alerts.count == 0)
        printf("%s\n", all ? "There was never an alert." : "No open alerts.");
    if (next.len > 0)
        printf("\nThere are more: reeve alerts%s --after %.*s\n", all ? " --all" : "",
               RV_STR_FMT(next));
    return CLI_DONE;
}

static int alert_tell(struct cli *cli, const char *verb, struct rv_str alert)
{
    struct cli_path path;
    struct cli_answer answer;
    cli_path_begin(&path, "/v1/alerts");
    cli_path_segment(&path, alert);
    cli_path_segment(&path, rv_str_of(verb));
    int code = cli_operate(cli, &path, false, NULL, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON))
        cli_json_print(answer.text);
    else if (strcmp(verb, "retry") == 0)
        printf("%.*s retried: its messages are on their way again\n", RV_STR_FMT(alert));
    else
        printf("%.*s acknowledged; \"reeve alerts --all\" still lists it\n", RV_STR_FMT(alert));
    return CLI_DONE;
}

int cli_alerts(struct cli *cli)
{
    char **args = cli->words.args;
    if (cli->words.args_count == 0)
        return alerts_list(cli);
    if (strcmp(args[0], "ack") != 0 && strcmp(args[0], "retry") != 0)
        return cli_tell(
            cli, CLI_USAGE,
            "\"%s\" is no word for alerts; there are: reeve alerts ack ID, reeve alerts "
            "retry ID",
            args[0]);
    if (cli->words.args_count == 1)
        return cli_tell(cli, CLI_USAGE, "which alert? usage: reeve alerts %s ALERT", args[0]);
    return alert_tell(cli, args[0], rv_str_of(args[1]));
}

#include "cli/page_priv.h"
#include "cli/text_priv.h"
#include "cli/terminal_priv.h"

#include <stdio.h>

enum { WORKFLOWS_MAX = 10000, HASH_SHOWN = 12 };

struct workflows {
    struct cli *cli;
    struct cli_table table;
};

static void workflow_add(const struct rv_json *item, void *user)
{
    struct workflows *workflows = user;
    struct rv_arena *arena = &workflows->cli->arena;
    struct rv_str hash = cli_str(item, "hash");
    if (hash.len > HASH_SHOWN)
        hash.len = HASH_SHOWN;
    int64_t at = cli_instant(item, "publishedAt");
    cli_table_add(&workflows->table, cli_str(item, "workflow"), CLI_BOLD);
    cli_table_add(&workflows->table,
                  at ? cli_text_instant(arena, at, workflows->cli->now) : RV_STR_NONE, CLI_PLAIN);
    cli_table_add(&workflows->table, hash, CLI_DIM);
}

int cli_workflows(struct cli *cli)
{
    static const char *const heads[] = {"WORKFLOW", "PUBLISHED", "HASH", NULL};
    struct workflows workflows = {.cli = cli};
    struct cli_list list = {.items = "workflows", .each = workflow_add, .user = &workflows};
    struct rv_str next;
    uint64_t limit;
    if (!cli_limit_read(cli, WORKFLOWS_MAX, &limit))
        return CLI_USAGE;
    cli_table_init(&workflows.table, &cli->arena, heads);
    cli_path_begin(&list.path, "/v1/workflows");
    int code = cli_list_read(cli, &list, cli_value(cli, CLI_OPTION_AFTER), limit, &next);
    if (code != CLI_DONE || cli_has(cli, CLI_OPTION_JSON))
        return code;
    cli_table_print(&workflows.table, stdout, cli->colour, cli_width(cli));
    if (workflows.table.count == 0)
        printf("Nothing is published yet: reeve publish FILE\n");
    if (next.len > 0)
        printf("There are more: reeve workflows --after %.*s\n", RV_STR_FMT(next));
    return CLI_DONE;
}

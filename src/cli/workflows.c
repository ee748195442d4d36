#include "base/err.h"
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
                  at ? cli_text_past(arena, at, workflows->cli->now) : RV_STR_NONE, CLI_PLAIN);
    cli_table_add(&workflows->table, hash, CLI_DIM);
}

/* The definition as the server keeps it, which `reeve publish` takes again; --json: with its name,
 * hash and the time of its publication. */
static int workflow_show(struct cli *cli)
{
    struct cli_answer answer;
    struct rv_str workflow = rv_str_of(cli->words.args[0]);
    struct rv_str path = cli_workflow_path(cli, workflow);
    if (cli_has(cli, CLI_OPTION_LIMIT) || cli_has(cli, CLI_OPTION_AFTER))
        return cli_tell(cli, CLI_USAGE,
                        "--limit and --after are valid only for the list; omit them");
    if (path.at == NULL)
        return cli_tell(cli, CLI_USAGE, "%.*s: must be NAMESPACE/NAME or NAMESPACE/NAME:VERSION",
                        RV_STR_FMT(workflow));
    int code = cli_get(cli, path, &answer);
    if (code != CLI_DONE)
        return code;
    const struct rv_json *definition = rv_json_get(&answer.json, RV_STR("definition"));
    if (cli_has(cli, CLI_OPTION_JSON) || definition == NULL) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct rv_buf text;
    rv_buf_init(&text, SIZE_MAX / 2);
    cli_json_indent(&text, definition, 0);
    if (text.failed == RV_OK)
        cli_json_print(rv_buf_str(&text));
    else
        code = cli_tell(cli, rv_err_exit(text.failed), "%s", rv_err_text(text.failed));
    rv_buf_done(&text);
    return code;
}

int cli_workflows(struct cli *cli)
{
    if (cli->words.args_count > 0)
        return workflow_show(cli);
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
        printf("No workflows are published; publish one: reeve publish FILE\n");
    if (next.len > 0)
        printf("To list more: reeve workflows --after %.*s\n", RV_STR_FMT(next));
    return CLI_DONE;
}

#include "cli/run_priv.h"
#include "cli/server_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>

enum { WHY_BYTES_MAX = 4096, LINE_BYTES_MAX = 64 * 1024 };

struct check_finding {
    struct cli *cli;
    size_t count;
};

static void line_print(const struct rv_buf *line)
{
    printf("%.*s\n", RV_STR_FMT(rv_buf_str(line)));
}

static void found(void *self, struct rv_str task, struct rv_str what, struct rv_str cure)
{
    struct check_finding *finding = self;
    struct cli *cli = finding->cli;
    struct rv_arena_mark mark = rv_arena_mark(&cli->arena);
    struct rv_buf line;
    rv_buf_init(&line, LINE_BYTES_MAX);
    finding->count++;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        rv_buf_lit(&line, "{\"task\":");
        if (task.at != NULL)
            rv_json_write_string(&line, task);
        else
            rv_buf_lit(&line, "null");
        rv_buf_lit(&line, ",\"finding\":");
        rv_json_write_string(&line, what);
        rv_buf_lit(&line, ",\"cure\":");
        rv_json_write_string(&line, cure);
        rv_buf_lit(&line, "}");
    } else {
        rv_buf_printf(&line, "%s%s%.*s%s %.*s\n  %.*s", cli_colour_begin(CLI_BOLD, cli->colour),
                      task.at != NULL ? "task " : "file", RV_STR_FMT(task),
                      cli_colour_end(cli->colour), RV_STR_FMT(cli_text_clean(&cli->arena, what)),
                      RV_STR_FMT(cure));
    }
    line_print(&line);
    rv_buf_done(&line);
    if (cli->arena.refused == RV_OK)
        rv_arena_release(&cli->arena, mark);
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void sum_print(struct cli *cli, const char *store, const struct rv_cli_check *check,
                      size_t findings)
{
    if (cli_has(cli, CLI_OPTION_JSON))
        printf("{\"sound\":%s,\"findings\":%zu,\"workflows\":%lld,\"tasks\":%lld,\"steps\":%lld,"
               "\"attempts\":%lld}\n",
               findings == 0 ? "true" : "false", findings, (long long)check->workflows,
               (long long)check->tasks, (long long)check->steps, (long long)check->attempts);
    else
        printf("%s: %lld workflow%s, %lld task%s, %lld step%s, %lld repeated attempt%s: %s\n",
               store, (long long)check->workflows, plural(check->workflows),
               (long long)check->tasks, plural(check->tasks), (long long)check->steps,
               plural(check->steps), (long long)check->attempts, plural(check->attempts),
               findings == 0 ? "sound" : "the store has errors, listed above");
}

int cli_check(struct cli *cli)
{
    const char *store = cli_store(cli);
    struct check_finding finding = {.cli = cli};
    struct rv_cli_check check = {
        .found = found, .self = &finding, .keep_intact = cli_has(cli, CLI_OPTION_KEEP_INTACT)};
    struct rv_buf why;
    rv_buf_init(&why, WHY_BYTES_MAX);
    enum rv_err err = cli->server->check(store, &check, &why);
    int code = finding.count > 0 ? CLI_FAILED : CLI_DONE;
    if (err != RV_OK)
        code = cli_tell(cli, rv_err_exit(err), "%.*s%s", RV_STR_FMT(rv_buf_str(&why)),
                        err == RV_ERR_IN_USE
                            ? "; while a server uses the store, check a backup of the store: "
                              "`reeve backup FILE`, then `reeve check --store FILE`"
                            : "");
    else
        sum_print(cli, store, &check, finding.count);
    rv_buf_done(&why);
    return code;
}

#include "cli/server_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>
#include <stdlib.h>

enum { BODY_BYTES_MAX = 64 * 1024 };

static void member_add(struct rv_buf *body, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    rv_buf_printf(body, "%s\"%s\":", body->len > 1 ? "," : "", name);
    rv_json_write_string(body, rv_str_of(text));
}

int cli_operate(struct cli *cli, struct cli_path *path, bool reasoned,
                struct cli_answer *ret_answer)
{
    struct rv_buf body;
    const char *by = cli_value(cli, CLI_OPTION_BY);
    rv_buf_init(&body, BODY_BYTES_MAX);
    rv_buf_lit(&body, "{");
    member_add(&body, "by", by ? by : getenv("USER"));
    if (reasoned)
        member_add(&body, "reason", cli_value(cli, CLI_OPTION_REASON));
    if (cli_has(cli, CLI_OPTION_ABANDON))
        rv_buf_printf(&body, "%s\"abandon\":true", body.len > 1 ? "," : "");
    rv_buf_lit(&body, "}");
    struct cli_call call = {.path = cli_path_end(path, &cli->arena), .body = rv_buf_str(&body)};
    int code = body.failed == RV_OK ? cli_ask(cli, &call, ret_answer)
                                    : cli_tell(cli, CLI_USAGE, "--reason is too long");
    rv_buf_done(&body);
    return code;
}

/* The task's state afterwards, and what to do to see how it goes on. */
static int task_operate(struct cli *cli, const char *verb)
{
    struct cli_path path;
    struct cli_answer answer = {.status = 0};
    struct rv_str task = rv_str_of(cli->words.args[0]);
    cli_path_begin(&path, "/v1/tasks");
    cli_path_segment(&path, task);
    cli_path_segment(&path, rv_str_of(verb));
    int code = cli_operate(cli, &path, true, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct rv_str state = cli_str(&answer.json, "state");
    printf("%.*s %s%.*s%s\n", RV_STR_FMT(task),
           cli_colour_begin(cli_colour_of_state(state), cli->colour),
           RV_STR_FMT(cli_text_clean(&cli->arena, state)), cli_colour_end(cli->colour));
    if (cli->terminal && cli_instant(&answer.json, "endedAt") == 0)
        printf("See how it goes on: reeve watch %.*s\n", RV_STR_FMT(task));
    return CLI_DONE;
}

int cli_resubmit(struct cli *cli)
{
    return task_operate(cli, "resubmit");
}

int cli_undo(struct cli *cli)
{
    return task_operate(cli, "undo");
}

int cli_cancel(struct cli *cli)
{
    return task_operate(cli, "cancel");
}

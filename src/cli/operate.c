#include "base/limits.h"
#include "cli/payload_priv.h"
#include "cli/server_priv.h"
#include "cli/task_priv.h"
#include "cli/text_priv.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BODY_BYTES_MAX = RV_PAYLOAD_BYTES_MAX + 64 * 1024 };

static void member_add(struct rv_buf *body, const char *name, const char *text)
{
    if (text == NULL || text[0] == '\0')
        return;
    rv_buf_printf(body, "%s\"%s\":", body->len > 1 ? "," : "", name);
    rv_json_write_string(body, rv_str_of(text));
}

static void flag_add(const struct cli *cli, struct rv_buf *body, enum cli_option option,
                     const char *name)
{
    if (cli_has(cli, option))
        rv_buf_printf(body, "%s\"%s\":true", body->len > 1 ? "," : "", name);
}

static void raw_add(struct rv_buf *body, const char *name, struct rv_str json)
{
    if (json.at == NULL)
        return;
    rv_buf_printf(body, "%s\"%s\":", body->len > 1 ? "," : "", name);
    rv_buf_add_str(body, json);
}

const char *cli_who(struct cli *cli)
{
    enum { UID_BYTES = 24 };
    const char *given = cli_value(cli, CLI_OPTION_BY), *user = getenv("USER");
    if (given != NULL || (user != NULL && user[0] != '\0'))
        return given != NULL ? given : user;
    uid_t uid = geteuid();
    const struct passwd *entry = getpwuid(uid);
    char number[UID_BYTES];
    snprintf(number, sizeof number, "uid %lu", (unsigned long)uid);
    const char *name = entry != NULL && entry->pw_name[0] != '\0' ? entry->pw_name : number;
    return rv_arena_str(&cli->arena, rv_str_of(name)).at;
}

int cli_operate(struct cli *cli, struct cli_path *path, const struct cli_about *about,
                struct cli_answer *ret_answer)
{
    struct rv_buf body;
    rv_buf_init(&body, BODY_BYTES_MAX);
    rv_buf_lit(&body, "{");
    member_add(&body, "by", cli_who(cli));
    member_add(&body, "reason", cli_value(cli, CLI_OPTION_REASON));
    flag_add(cli, &body, CLI_OPTION_ABANDON, "abandon");
    flag_add(cli, &body, CLI_OPTION_ASSUME_NOT_DONE, "assumeNotDone");
    flag_add(cli, &body, CLI_OPTION_UNDO_FIRST, "undoFirst");
    flag_add(cli, &body, CLI_OPTION_BY_HAND, "byHand");
    if (about != NULL) {
        member_add(&body, "command", about->command);
        member_add(&body, "finding", about->finding);
        if (about->rate != 0)
            rv_buf_printf(&body, ",\"rate\":%ld", about->rate);
        raw_add(&body, "step", about->step);
        raw_add(&body, "lateSeen", about->late_seen);
        raw_add(&body, "input", about->input);
        raw_add(&body, "output", about->output);
    }
    rv_buf_lit(&body, "}");
    struct cli_call call = {.path = cli_path_end(path, &cli->arena), .body = rv_buf_str(&body)};
    int code = body.failed == RV_OK ? cli_ask(cli, &call, ret_answer)
                                    : cli_tell(cli, CLI_USAGE, "--reason is too long");
    rv_buf_done(&body);
    return code;
}

int cli_abandon_check(struct cli *cli)
{
    if (!cli_has(cli, CLI_OPTION_ABANDON) || cli_has(cli, CLI_OPTION_REASON))
        return CLI_DONE;
    return cli_tell(cli, CLI_USAGE,
                    "--reason TEXT is missing: give the reason why the effects remain. Reeve "
                    "records the reason");
}

/* The task's state afterwards, and what to do to see how it goes on. */
static int task_operate(struct cli *cli, const char *verb, const struct cli_about *about)
{
    struct cli_path path;
    struct cli_answer answer = {.status = 0};
    struct rv_str task = rv_str_of(cli->words.args[0]);
    cli_path_begin(&path, "/v1/tasks");
    cli_path_segment(&path, task);
    cli_path_segment(&path, rv_str_of(verb));
    int code = cli_operate(cli, &path, about, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct rv_str state = cli_str(&answer.json, "state");
    bool suspended = cli_instant(&answer.json, "suspendedAt") != 0;
    printf("%.*s %s%.*s%s%s\n", RV_STR_FMT(task),
           cli_colour_begin(cli_colour_of_state(state), cli->colour),
           RV_STR_FMT(cli_text_clean(&cli->arena, state)), cli_colour_end(cli->colour),
           suspended ? ", suspended" : "");
    if (rv_str_is(state, "error"))
        printf("The task waits for an operator. To show the cause: reeve show %.*s\n",
               RV_STR_FMT(task));
    else if (cli->terminal && suspended)
        printf("To resume the task: reeve resume %.*s\n", RV_STR_FMT(task));
    else if (cli->terminal && cli_instant(&answer.json, "endedAt") == 0)
        printf("To follow the task: reeve watch %.*s\n", RV_STR_FMT(task));
    return CLI_DONE;
}

/* An operator who decides about a step sees first what its agents said too late, and with which
 * option to continue. */
static int ledger_shown(struct cli *cli)
{
    struct rv_str task = rv_str_of(cli->words.args[0]);
    size_t count = 0;
    if (cli_has(cli, CLI_OPTION_LATE_SEEN) || cli_has(cli, CLI_OPTION_JSON))
        return CLI_DONE;
    int code = cli_late_show(cli, task, &count);
    if (code != CLI_DONE || count == 0)
        return code;
    return cli_tell(cli, CLI_REFUSED,
                    "these late replies do not count, but may report effects: check the replies, "
                    "then repeat the command with --late-seen %zu",
                    count);
}

static bool is_number(const char *text)
{
    enum { DIGITS_MAX = 9 };
    size_t i = 0;
    while (text[i] >= '0' && text[i] <= '9')
        i++;
    return i > 0 && i <= DIGITS_MAX && text[i] == '\0' && (text[0] != '0' || i == 1);
}

int cli_late_seen_read(struct cli *cli, struct cli_about *about)
{
    const char *given = cli_value(cli, CLI_OPTION_LATE_SEEN);
    if (given != NULL && !is_number(given))
        return cli_tell(cli, CLI_USAGE,
                        "--late-seen %s: must be a number, as shown by `reeve show`", given);
    about->late_seen = rv_str_of(given);
    return CLI_DONE;
}

static int about_read(struct cli *cli, struct cli_about *about)
{
    if (about->step.at != NULL && !is_number(about->step.at))
        return cli_tell(cli, CLI_USAGE, "step %s: must be a number, as shown by `reeve show`",
                        about->step.at);
    int code = cli_late_seen_read(cli, about);
    if (code == CLI_DONE)
        code = cli_payload_read(cli, CLI_OPTION_INPUT, NULL, &about->input);
    return code == CLI_DONE ? cli_payload_read(cli, CLI_OPTION_OUTPUT, NULL, &about->output) : code;
}

static int operate_seeing(struct cli *cli, const char *verb, struct cli_about *about)
{
    int code = about_read(cli, about);
    if (code == CLI_DONE)
        code = ledger_shown(cli);
    return code == CLI_DONE ? task_operate(cli, verb, about) : code;
}

int cli_resubmit(struct cli *cli)
{
    struct cli_about about = {.step = rv_str_of(cli_value(cli, CLI_OPTION_STEP))};
    return operate_seeing(cli, "resubmit", &about);
}

int cli_settle(struct cli *cli)
{
    bool named = cli->words.args_count > 1;
    struct cli_about about = {.step = named ? rv_str_of(cli->words.args[1]) : RV_STR_NONE};
    bool done = cli_has(cli, CLI_OPTION_DONE);
    bool undone = cli_has(cli, CLI_OPTION_UNDONE);
    bool nothing = cli_has(cli, CLI_OPTION_NOTHING_HAPPENED);
    if (done + undone + nothing != 1)
        return cli_tell(cli, CLI_USAGE, "%s: give one of --done, --undone, --nothing-happened",
                        done || undone || nothing ? "these options cannot be combined"
                                                  : "the outcome of the step is missing");
    if (!named && nothing)
        return cli_tell(cli, CLI_USAGE, "STEP is missing; usage: reeve settle TASK STEP");
    about.finding = done ? "done" : undone ? "undone" : "nothing-happened";
    return operate_seeing(cli, "settle", &about);
}

int cli_undo(struct cli *cli)
{
    struct cli_about about = {.command = NULL};
    return operate_seeing(cli, "undo", &about);
}

int cli_cancel(struct cli *cli)
{
    int code = cli_abandon_check(cli);
    return code == CLI_DONE ? task_operate(cli, "cancel", NULL) : code;
}

int cli_retry(struct cli *cli)
{
    return task_operate(cli, "retry", NULL);
}

int cli_suspend(struct cli *cli)
{
    return task_operate(cli, "suspend", NULL);
}

int cli_resume(struct cli *cli)
{
    return task_operate(cli, "resume", NULL);
}

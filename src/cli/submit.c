#include "base/limits.h"
#include "base/os/random.h"
#include "base/suggest.h"
#include "cli/lines_priv.h"
#include "cli/payload_priv.h"
#include "cli/server_priv.h"
#include "cli/task_priv.h"
#include "cli/text_priv.h"
#include "cli/unseen_priv.h"
#include "client/submit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BODY_BYTES_MAX = 8 * 1024 * 1024, KEY_BYTES = 33 };

/* Options that make no sense together. */
static int options_check(struct cli *cli)
{
    static const enum cli_option alone[] = {
        CLI_OPTION_INPUT,  CLI_OPTION_KEY,   CLI_OPTION_CORRELATION, CLI_OPTION_REPLY_TO,
        CLI_OPTION_STREAM, CLI_OPTION_WATCH, CLI_OPTION_WAIT};
    bool lines = cli_has(cli, CLI_OPTION_LINES);
    const char *priority = cli_value(cli, CLI_OPTION_PRIORITY);
    for (size_t i = 0; lines && i < sizeof alone / sizeof alone[0]; i++)
        if (cli_has(cli, alone[i]))
            return cli_tell(
                cli, CLI_USAGE,
                "%s is for a single task and cannot be combined with --lines; leave one out",
                cli_option_row(alone[i])->flag);
    if (!lines && cli_has(cli, CLI_OPTION_KEY_FROM))
        return cli_tell(cli, CLI_USAGE, "--key-from needs --lines; for a single task use --key");
    const char *pointer = cli_value(cli, CLI_OPTION_KEY_FROM);
    if (pointer != NULL && pointer[0] != '/')
        return cli_tell(cli, CLI_USAGE, "--key-from %s: must be a JSON pointer, such as /%s",
                        pointer, pointer);
    if (priority != NULL && (priority[0] < '0' || priority[0] > '9' || priority[1] != '\0'))
        return cli_tell(cli, CLI_USAGE, "--priority %s: must be a digit, 0 to 9", priority);
    return CLI_DONE;
}

/* The member replyTo; absent: nobody is to be told. */
static struct rv_str reply_to(struct cli *cli)
{
    const char *url = cli_value(cli, CLI_OPTION_REPLY_TO);
    bool stream = cli_has(cli, CLI_OPTION_STREAM);
    struct rv_buf json;
    if (url == NULL && !stream)
        return RV_STR_NONE;
    rv_buf_init(&json, RV_BODY_BYTES_MAX);
    rv_buf_add_char(&json, '{');
    if (url != NULL) {
        rv_buf_lit(&json, "\"url\":");
        rv_json_write_string(&json, rv_str_of(url));
    }
    if (stream)
        rv_buf_printf(&json, "%s\"stream\":true", url != NULL ? "," : "");
    rv_buf_add_char(&json, '}');
    struct rv_str made = rv_arena_str(&cli->arena, rv_buf_str(&json));
    rv_buf_done(&json);
    return made;
}

/* With a key of its own the call may be repeated when its answer was lost. */
static int task_submit(struct cli *cli, struct rv_str input, struct rv_str tags,
                       struct cli_answer *ret_answer)
{
    const char *priority = cli_value(cli, CLI_OPTION_PRIORITY);
    const char *key = cli_value(cli, CLI_OPTION_KEY);
    char made_key[KEY_BYTES];
    const char *why = "the request is too large";
    const char *traceparent, *tracestate;
    struct rv_buf body;
    uint64_t random[2];
    cli_trace_read(cli, &traceparent, &tracestate);
    rv_random_bytes(random, sizeof random);
    snprintf(made_key, sizeof made_key, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    struct rv_submit_item item = {
        .workflow = rv_str_of(cli->words.args[0]),
        .input = input,
        .key = rv_str_of(key ? key : made_key),
        .correlation_id = rv_str_of(cli_value(cli, CLI_OPTION_CORRELATION)),
        .traceparent = rv_str_of(traceparent),
        .tracestate = rv_str_of(tracestate),
        .reply_to = reply_to(cli),
        .tags = tags,
        .priority = priority ? priority[0] - '0' : -1};
    rv_buf_init(&body, BODY_BYTES_MAX);
    int code;
    if (rv_submit_write(&body, &item, &why) != RV_OK || body.failed != RV_OK) {
        code = cli_tell(cli, CLI_USAGE, "the request cannot be created: %s", why);
    } else {
        struct cli_call call = {
            .path = RV_STR("/v1/tasks"), .body = rv_buf_str(&body), .repeatable = true};
        code = cli_ask(cli, &call, ret_answer);
    }
    rv_buf_done(&body);
    return code;
}

/* A script gets the id alone, so that it can go on with it; a person gets the next step. */
static void receipt_print(struct cli *cli, const struct cli_answer *answer)
{
    struct rv_str task = cli_str(&answer->json, "task");
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer->text);
    } else if (!cli->terminal) {
        printf("%.*s\n", RV_STR_FMT(task));
    } else {
        bool followed = cli_has(cli, CLI_OPTION_WATCH) || cli_has(cli, CLI_OPTION_WAIT);
        printf("%.*s %s%s%.*s\n", RV_STR_FMT(task),
               answer->status == 201 ? "accepted" : "already known",
               followed ? "" : "; to follow the task: reeve watch ",
               RV_STR_FMT(followed ? RV_STR("") : task));
    }
    fflush(stdout);
}

/* The published workflow whose name is near to one that is not there. */
static void near_note(struct cli *cli, struct rv_str given)
{
    struct rv_json json;
    size_t count = 0, known = 0;
    const char *colon = memchr(given.at, ':', given.len);
    if (!cli_peek(cli, RV_STR("/v1/workflows"), &json))
        return;
    const struct rv_json *items = cli_items(&json, "workflows", &count);
    const char **names = RV_NEW_ARRAY(&cli->arena, const char *, count + 1);
    for (size_t i = 0; names != NULL && i < count; i++) {
        struct rv_str name = cli_str(&items[i], "workflow");
        const char *version = name.len > 0 ? memchr(name.at, ':', name.len) : NULL;
        if (colon == NULL && version != NULL)
            name.len = (size_t)(version - name.at);
        names[known] = rv_arena_str(&cli->arena, cli_text_clean(&cli->arena, name)).at;
        if (names[known] == NULL)
            return;
        known++;
    }
    const char *near = names != NULL ? rv_suggest(given, names) : NULL;
    if (near != NULL)
        fprintf(stderr, "note: did you mean \"%s\"?\n", near);
}

int cli_submit(struct cli *cli)
{
    struct rv_str input, tags;
    struct cli_answer answer = {.status = 0};
    int code = options_check(cli);
    if (code != CLI_DONE)
        return code;
    code = cli_tags_read(cli, &tags);
    if (code == CLI_DONE && cli_has(cli, CLI_OPTION_LINES))
        return cli_lines_submit(cli, tags);
    if (code == CLI_DONE)
        code = cli_payload_read(cli, CLI_OPTION_INPUT, "{}", &input);
    if (code != CLI_DONE)
        return code;
    code = task_submit(cli, input, tags, &answer);
    if (code == CLI_NOT_FOUND)
        near_note(cli, rv_str_of(cli->words.args[0]));
    if (code != CLI_DONE)
        return code;
    bool watch = cli_has(cli, CLI_OPTION_WATCH);
    receipt_print(cli, &answer);
    if (watch && !cli_has(cli, CLI_OPTION_JSON))
        cli_workflow_note(cli, rv_str_of(cli->words.args[0]));
    if (!watch && !cli_has(cli, CLI_OPTION_WAIT))
        return CLI_DONE;
    return cli_task_follow(cli, cli_str(&answer.json, "task"), !watch);
}

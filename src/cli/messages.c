/* What a task tells its submitter, as its event stream has it. The stream may break at any byte and
 * the server restart: then it is asked again for what comes after the last message that was shown.
 * Each message must have the number after that, so none is shown twice and none left out unseen. */
#include "base/limits.h"
#include "base/os/clock.h"
#include "cli/events_priv.h"
#include "cli/task_priv.h"
#include "cli/text_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    /* The server sends something each 15 s. A connection over which nothing comes any more is not
     * told from one that lasts: both are made anew. */
    CONNECTION_MS = 60000,
    PATIENCE_MS = 60000, /* with a server that has no stream to give, but answers */
    PAUSE_MS = 200,      /* after a connection that brought nothing */
    REFUSAL_BYTES_MAX = 64 * 1024
};

struct follow {
    struct cli *cli;
    struct rv_str task;
    int64_t begun_at; /* the task's own beginning */
    int64_t after;    /* the number of the message that was shown last */
    bool known;       /* the server has answered: it is waited for when it is away */
    int64_t heard_ms; /* when the stream gave something the last time, monotonic */
    bool begun;       /* something came over this connection */
    bool told;        /* and there was a message in it */
    int code;         /* why no more is wanted of it; -1: there is no reason */
    struct cli_events events;
    struct rv_buf refusal; /* what came in place of events */
};

/* ---- a message ---- */

/* Which step, or why. */
static struct rv_str message_text(struct rv_arena *arena, const struct rv_json *message)
{
    const struct rv_json *step = rv_json_get(message, RV_STR("step"));
    const struct rv_json *alert = rv_json_get(message, RV_STR("alert"));
    struct rv_str iteration = cli_str(step, "iteration");
    struct rv_str error = cli_task_error_text(arena, rv_json_get(message, RV_STR("error")));
    if (alert != NULL && error.len > 0)
        return rv_arena_printf(arena, "%.*s, after %.*s", RV_STR_FMT(cli_str(alert, "kind")),
                               RV_STR_FMT(error));
    if (step == NULL)
        return error.len > 0 ? error : cli_str(alert, "message");
    struct rv_str name = cli_text_step(arena, cli_str(step, "reference"));
    if (iteration.len > 0)
        name = rv_arena_printf(arena, "%.*s [%.*s]", RV_STR_FMT(name), RV_STR_FMT(iteration));
    return rv_arena_printf(arena, "%.*s%s", RV_STR_FMT(name),
                           rv_str_is(cli_str(step, "direction"), "undo") ? " (undo)" : "");
}

static void message_print(const struct follow *follow, const struct rv_json *message)
{
    struct cli *cli = follow->cli;
    struct rv_arena *arena = &cli->arena;
    struct rv_str kind = cli_text_clean(arena, cli_str(message, "kind"));
    struct rv_str correlation = cli_text_clean(arena, cli_str(message, "correlationId"));
    struct rv_str text = cli_text_clean(arena, message_text(arena, message));
    int64_t at = cli_instant(message, "at") - follow->begun_at;
    printf("%10.*s  %3" PRId64 "  %s%-14.*s%s%s%.*s%s%.*s\n",
           RV_STR_FMT(cli_text_duration(arena, at)), cli_int(message, "number"),
           cli_colour_begin(cli_colour_of_state(cli_str(message, "state")), cli->colour),
           RV_STR_FMT(kind), cli_colour_end(cli->colour), correlation.len > 0 ? "  " : "",
           RV_STR_FMT(correlation), text.len > 0 ? "  " : "", RV_STR_FMT(text));
}

/* One line, also of data that has several: in JSON a line can end only where a blank may stand. */
static void message_print_json(struct rv_str data)
{
    for (size_t i = 0; i < data.len; i++)
        putchar(data.at[i] == '\n' ? ' ' : data.at[i]);
    putchar('\n');
}

static int message_show(struct follow *follow, struct rv_str data, bool *ret_rests)
{
    struct cli *cli = follow->cli;
    struct rv_json message;
    enum rv_err err = rv_json_parse(&cli->arena, data, RV_JSON_NESTING_MAX, &message, NULL);
    if (err == RV_ERR_MEMORY)
        return cli_tell(cli, rv_err_exit(err), "out of memory");
    if (err != RV_OK)
        return cli_tell(cli, CLI_UNREACHABLE, "the event after message %" PRId64 " is not JSON",
                        follow->after);
    /* A problem ends the stream early: the server is asked again, and then tells what to do. */
    if (rv_json_get(&message, RV_STR("number")) == NULL &&
        rv_json_get(&message, RV_STR("status")) != NULL) {
        *ret_rests = true;
        return -1;
    }
    int64_t number = cli_int(&message, "number");
    if (number != follow->after + 1)
        return cli_tell(cli, CLI_UNREACHABLE, "received message %" PRId64 " instead of %" PRId64,
                        number, follow->after + 1);
    if (cli_has(cli, CLI_OPTION_JSON))
        message_print_json(data);
    else
        message_print(follow, &message);
    if (cli->arena.refused != RV_OK)
        return cli_tell(cli, rv_err_exit(RV_ERR_MEMORY), "out of memory");
    if (fflush(stdout) != 0)
        return cli_tell(cli, CLI_UNREACHABLE, "standard output cannot be written");
    follow->after = number;
    follow->told = true;
    *ret_rests = rv_str_is(cli_str(&message, "kind"), "error");
    return -1;
}

/* Behind a message of the kind "error" the task may rest for long, or have gone on long ago: the
 * connection is given up, and the task asked. */
static bool message_take(struct rv_str data, void *user)
{
    struct follow *follow = user;
    struct rv_arena_mark mark = rv_arena_mark(&follow->cli->arena);
    bool rests = false;
    follow->code = message_show(follow, data, &rests);
    rv_arena_release(&follow->cli->arena, mark);
    return follow->code < 0 && !rests;
}

/* ---- the stream ---- */

/* Events never begin with a brace; a problem document does. */
static int bytes_take(const char *bytes, size_t count, void *user)
{
    struct follow *follow = user;
    if (follow->refusal.len > 0 || (!follow->begun && bytes[0] == '{')) {
        rv_buf_add(&follow->refusal, bytes, count);
        return 0;
    }
    follow->begun = true;
    return cli_events_take(&follow->events, bytes, count) ? 0 : 1;
}

/* What a connection came to: an exit code, or -1 if another may bring more. Status 503 is said by a
 * server that stops or has just begun, and lasts a while at most. */
static int stream_end(struct follow *follow, int result, int status)
{
    struct cli *cli = follow->cli;
    struct rv_client *client = cli_client(cli, true);
    bool patient = rv_clock_mono_ms() - follow->heard_ms < PATIENCE_MS;
    if (follow->code >= 0)
        return follow->code;
    if (follow->events.line.failed != RV_OK || follow->events.data.failed != RV_OK)
        return cli_tell(cli, CLI_UNREACHABLE, "message %" PRId64 " is too large to be shown",
                        follow->after + 1);
    if (result == RV_RESULT_REFUSED && (status != 503 || !patient)) {
        struct cli_answer said = {.status = status,
                                  .text = rv_arena_str(&cli->arena, rv_buf_str(&follow->refusal))};
        return cli_answer_read(cli, &said);
    }
    if (result == RV_RESULT_UNREACHABLE && !follow->begun)
        return cli_unreachable(cli, client);
    if (result == RV_RESULT_OK && follow->refusal.len > 0)
        return cli_tell(cli, CLI_UNREACHABLE, "the response is not an event stream");
    if (result != RV_RESULT_OK && result != RV_RESULT_REFUSED && result != RV_RESULT_UNREACHABLE)
        return cli_tell(cli, CLI_UNREACHABLE, "%s", rv_client_error(client));
    return -1;
}

/* One connection, for as long as it lasts. -1: the task is to be asked how it stands; *ret_over:
 * there are no more messages. */
static int stream_read(struct follow *follow, bool *ret_over)
{
    struct cli *cli = follow->cli;
    struct rv_client *client = cli_client(cli, true);
    struct rv_str rest = rv_arena_printf(&cli->arena, "/stream?after=%" PRId64, follow->after);
    struct rv_str path = rest.at ? cli_task_path(cli, follow->task, rest.at) : RV_STR_NONE;
    if (client == NULL || path.at == NULL)
        return CLI_USAGE;
    struct rv_call call = {.path = path.at,
                           .accept = "text/event-stream",
                           .timeout_ms = CONNECTION_MS,
                           .on_bytes = bytes_take,
                           .user = follow};
    struct rv_answer answer;
    follow->begun = follow->told = false;
    follow->code = -1;
    cli_events_restart(&follow->events);
    rv_buf_reset(&follow->refusal);
    int result = rv_client_request(client, &call, &answer);
    int status = answer.status;
    rv_answer_free(&answer);
    *ret_over = result == RV_RESULT_OK && status == 204;
    if (follow->begun || *ret_over)
        follow->heard_ms = rv_clock_mono_ms();
    int code = stream_end(follow, result, status);
    if (code < 0 && !follow->told && !*ret_over)
        cli_pause(PAUSE_MS);
    return code;
}

/* ---- the task ---- */

/* Whether there are messages behind those that were shown. */
static int more_ask(struct follow *follow, bool *ret_more)
{
    struct cli *cli = follow->cli;
    struct cli_answer answer;
    size_t count;
    struct rv_str rest = rv_arena_printf(&cli->arena, "/messages?limit=1&after=%" PRId64,
                                         follow->after);
    struct cli_call call = {.path = cli_task_path(cli, follow->task, rest.len ? rest.at : ""),
                            .patient = true};
    int code = cli_ask(cli, &call, &answer);
    (void)cli_items(&answer.json, "messages", &count);
    *ret_more = code == CLI_DONE && count > 0;
    return code;
}

/* One connection, and what must be known before it. A task that waits for an operator has told all
 * that it has to tell when no message follows: the task is asked first, since it could go on
 * between the two questions. -1: there is more to come. */
static int follow_once(struct follow *follow, bool *over)
{
    struct cli *cli = follow->cli;
    struct cli_answer answer;
    struct cli_call call = {.path = cli_task_path(cli, follow->task, ""), .patient = follow->known};
    int code = cli_ask(cli, &call, &answer);
    if (code != CLI_DONE)
        return code;
    follow->known = true;
    follow->begun_at = cli_instant(&answer.json, "createdAt");
    int end = cli_task_code(cli_str(&answer.json, "state"));
    bool more = !*over;
    if (end == CLI_OPERATOR)
        code = more_ask(follow, &more);
    if (code != CLI_DONE)
        return code;
    if (end >= 0 && !more)
        return cli_has(cli, CLI_OPTION_JSON) ? end
                                             : cli_task_end_print(cli, follow->task, &answer.json);
    return stream_read(follow, over);
}

static bool after_read(struct cli *cli, int64_t *ret_after)
{
    const char *text = cli_value(cli, CLI_OPTION_AFTER);
    size_t i = 0;
    *ret_after = 0;
    if (text == NULL)
        return true;
    for (; text[i] >= '0' && text[i] <= '9' && *ret_after <= UINT32_MAX; i++)
        *ret_after = 10 * *ret_after + (text[i] - '0');
    if (i > 0 && text[i] == '\0' && *ret_after <= UINT32_MAX)
        return true;
    cli_tell(cli, CLI_USAGE, "--after %s: must be a message number", text);
    return false;
}

int cli_messages_follow(struct cli *cli, struct rv_str task)
{
    struct follow follow = {.cli = cli, .task = task, .heard_ms = rv_clock_mono_ms()};
    bool over = false;
    int code;
    if (!after_read(cli, &follow.after))
        return CLI_USAGE;
    cli_events_init(&follow.events, RV_BODY_BYTES_MAX);
    follow.events.each = message_take;
    follow.events.user = &follow;
    rv_buf_init(&follow.refusal, REFUSAL_BYTES_MAX);
    do {
        struct rv_arena_mark mark = rv_arena_mark(&cli->arena);
        code = follow_once(&follow, &over);
        rv_arena_release(&cli->arena, mark);
    } while (code < 0);
    if (code == CLI_UNREACHABLE && follow.after > 0)
        fprintf(stderr, "To continue: reeve watch %.*s --messages --after %" PRId64 "\n",
                RV_STR_FMT(task), follow.after);
    rv_buf_done(&follow.refusal);
    cli_events_done(&follow.events);
    return code;
}

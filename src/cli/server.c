#include "cli/server_priv.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/mailbox.h"
#include "base/time.h"
#include "cli/page_priv.h"
#include "cli/text_priv.h"
#include "cli/waiting_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_MS = 60000, /* how long a server may be away that was there before */
    PROBE_MS = 2000,
    START_MS = 2000, /* for a server of this machine that was just started to listen */
    START_PAUSE_MS = 50,
    PATH_BYTES_MAX = 8192
};

/* ---- paths ---- */

void cli_path_begin(struct cli_path *path, const char *root)
{
    path->mark = '?';
    rv_buf_init(&path->buf, PATH_BYTES_MAX);
    rv_buf_add_str(&path->buf, rv_str_of(root));
}

void cli_path_segment(struct cli_path *path, struct rv_str text)
{
    rv_assert(path->mark == '?'); /* no parameter precedes it */
    rv_buf_add_char(&path->buf, '/');
    rv_buf_add_percent(&path->buf, text);
}

void cli_path_parameter(struct cli_path *path, const char *name, const char *value)
{
    if (value == NULL)
        return;
    rv_assert(path->mark == '?' || path->mark == '&');
    rv_buf_printf(&path->buf, "%c%s=", path->mark, name);
    rv_buf_add_percent(&path->buf, rv_str_of(value));
    path->mark = '&';
}

struct rv_str cli_path_end(struct cli_path *path, struct rv_arena *arena)
{
    struct rv_str text = RV_STR_NONE;
    if (path->buf.failed == RV_OK)
        text = rv_arena_str(arena, rv_buf_str(&path->buf));
    else if (path->buf.failed == RV_ERR_MEMORY)
        arena->refused = RV_ERR_MEMORY;
    rv_buf_done(&path->buf);
    return text;
}

/* ---- asking ---- */

/* "/v1" begins each path, and is no part of the address. */
static bool url_check(const struct cli *cli)
{
    const char *given = cli_value(cli, CLI_OPTION_URL), *variable = getenv("REEVE_URL");
    const char *url = given != NULL ? given : variable != NULL ? variable : "";
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/')
        len--;
    if (len < 3 || memcmp(url + len - 3, "/v1", 3) != 0 || strncmp(url, "unix:", 5) == 0)
        return true;
    cli_tell(cli, CLI_USAGE, "%s \"%s\": the address must not contain /v1; write %.*s",
             given != NULL ? "--url" : "REEVE_URL", url, (int)(len - 3), url);
    return false;
}

bool cli_address_check(const struct cli *cli)
{
    const char *key = getenv("REEVE_API_KEY");
    for (; key != NULL && *key != '\0'; key++) {
        if ((unsigned char)*key >= ' ' && *key != 0x7f)
            continue;
        cli_tell(cli, CLI_USAGE,
                 "REEVE_API_KEY contains a control character, such as a line break: set it to the "
                 "key alone");
        return false;
    }
    return url_check(cli);
}

struct rv_client *cli_client(struct cli *cli, bool patient)
{
    struct rv_client **client = patient ? &cli->patient : &cli->quick;
    struct rv_client_options options = {.patience_ms = patient ? PATIENCE_MS : -1};
    if (*client == NULL && !cli_address_check(cli))
        return NULL;
    if (*client == NULL)
        *client = rv_client_open(cli_value(cli, CLI_OPTION_URL), &options);
    if (*client == NULL) {
        const char *url = cli_value(cli, CLI_OPTION_URL);
        const char *variable = getenv("REEVE_URL");
        cli_tell(cli, CLI_USAGE,
                 "%s \"%s\" is not a valid address; write http://HOST:PORT, or "
                 "unix:PATH",
                 url ? "--url" : "REEVE_URL",
                 url        ? url
                 : variable ? variable
                            : "");
    }
    return *client;
}

/* Nothing was sent, and by libcurl's words nobody listens there. */
static bool nobody_listens(const struct rv_client *client)
{
    return strstr(rv_client_error(client), "Failed to connect to ") != NULL;
}

/* It took the request, and nothing came. */
static bool is_frozen(const struct rv_client *client)
{
    return strstr(rv_client_error(client), "Operation timed out after ") != NULL;
}

static bool is_local(const struct rv_client *client)
{
    static const char *const starts[] = {"127.", "localhost", "[::1]"};
    if (strncmp(rv_client_url(client), "unix:", 5) == 0)
        return true;
    const char *host = strstr(rv_client_url(client), "://");
    for (size_t i = 0; host != NULL && i < sizeof starts / sizeof starts[0]; i++)
        if (strncasecmp(host + 3, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

void cli_pause(int64_t ms)
{
    struct rv_mailbox pause; /* nothing is ever put in */
    void *nothing;
    rv_mailbox_init(&pause, 0);
    (void)rv_mailbox_take(&pause, &nothing, 1, ms);
    rv_mailbox_done(&pause);
}

int cli_request(struct rv_client *client, const struct rv_call *call, struct rv_answer *ret_answer)
{
    int64_t until_ms = rv_clock_mono_ms() + START_MS;
    for (;;) {
        int result = rv_client_request(client, call, ret_answer);
        if (result != RV_RESULT_UNREACHABLE || !is_local(client) || !nobody_listens(client) ||
            rv_clock_mono_ms() >= until_ms)
            return result;
        rv_answer_free(ret_answer);
        cli_pause(START_PAUSE_MS);
    }
}

int cli_unreachable(struct cli *cli, struct rv_client *client)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_str why = rv_arena_str(&arena, rv_str_of(rv_client_error(client)));
    bool silent = nobody_listens(client), frozen = is_frozen(client);
    struct rv_call probe = {.path = "/health/live", .timeout_ms = PROBE_MS};
    struct rv_answer answer;
    struct rv_client *quick = cli_client(cli, false);
    bool there = quick != NULL && rv_client_request(quick, &probe, &answer) == RV_RESULT_OK;
    if (quick != NULL)
        rv_answer_free(&answer);
    if (!there && frozen)
        cli_tell(cli, CLI_UNREACHABLE,
                 "%s accepts connections but does not answer: its process is suspended or hangs, "
                 "or its machine or disk is overloaded; check the process and its log",
                 rv_client_url(client));
    else if (there || !silent || strncasecmp(rv_client_url(client), "https:", 6) == 0)
        cli_tell(cli, CLI_UNREACHABLE, "%.*s", RV_STR_FMT(why));
    else if (strncmp(rv_client_url(client), "unix:", 5) == 0)
        fprintf(stderr,
                "reeve: no server at %s: start one with \"reeve serve --listen %s\", or set "
                "REEVE_URL to the server's address\n",
                rv_client_url(client), rv_client_url(client));
    else
        fprintf(stderr,
                "reeve: no server at %s: start one with \"reeve serve\", or set REEVE_URL to "
                "the server's address (https://... if it uses TLS)\n",
                rv_client_url(client));
    rv_arena_done(&arena);
    return CLI_UNREACHABLE;
}

static int code_of_type(struct rv_str type)
{
    static const struct {
        const char *type;
        int code;
    } rows[] = {
#define ROW(name, family, text, http, exit_code) {"urn:reeve:error:" #name, exit_code},
        RV_ERR_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rv_str_is(type, rows[i].type))
            return rows[i].code;
    return -1;
}

int cli_problem_code(int status, const struct rv_json *problem)
{
    int code = code_of_type(cli_str(problem, "type"));
    if (code >= 0)
        return code;
    switch (status) {
    case 400:
    case 413:
    case 414:
    case 422:
    case 431:
        return CLI_USAGE;
    case 404:
        return CLI_NOT_FOUND;
    default:
        return status >= 500 ? CLI_UNREACHABLE : CLI_REFUSED;
    }
}

void cli_json_print(struct rv_str text)
{
    printf("%.*s\n", RV_STR_FMT(text));
}

int cli_stranger_tell(struct cli *cli)
{
    return cli_tell(cli, CLI_UNREACHABLE,
                    "%s answers, but it is not a Reeve server; set REEVE_URL or --url to the "
                    "address that \"reeve serve\" prints",
                    cli->quick ? rv_client_url(cli->quick) : "the server");
}

/* A problem with a file and a line says so in front of its detail: that stands alone, so that
 * editors find the place. */
static int refusal_tell(struct cli *cli, const struct cli_answer *answer)
{
    struct rv_str detail = cli_str(&answer->json, "detail");
    struct rv_str title = cli_str(&answer->json, "title");
    int code = cli_problem_code(answer->status, &answer->json);
    if (cli_has(cli, CLI_OPTION_JSON) && answer->json.type != RV_JSON_NULL)
        cli_json_print(answer->text);
    if (detail.len > 0 && cli_str(&answer->json, "file").len > 0) {
        struct rv_str clean = cli_text_clean(&cli->arena, detail);
        fflush(stdout);
        fprintf(stderr, "%.*s\n", RV_STR_FMT(clean));
        return code;
    }
    struct rv_str rest;
    const char *flag = cli_filter_named(cli, detail, &rest);
    if (flag != NULL)
        return cli_tell(cli, code, "%s %.*s", flag, RV_STR_FMT(rest));
    if (detail.len > 0)
        return cli_tell(cli, code, "%.*s", RV_STR_FMT(detail));
    if (title.len > 0)
        return cli_tell(cli, code, "%.*s", RV_STR_FMT(title));
    return cli_tell(
        cli, CLI_UNREACHABLE,
        "%s answered with status %d and without a Reeve error message, so it may not be a Reeve "
        "server; set REEVE_URL or --url to the address that \"reeve serve\" prints",
        cli->quick ? rv_client_url(cli->quick) : "the server", answer->status);
}

/* Each answer that the commands read has one of these members (api/tbl/schema.def). */
static bool is_reeves(const struct rv_json *json)
{
    static const char *const members[] = {
        "task",      "tasks",      "workflow", "workflows", "agent",   "agents",
        "alert",     "alerts",     "steps",    "attempts",  "history", "messages",
        "selection", "selections", "outcomes", "keys",      "id",      "lateReplies"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (rv_json_get(json, rv_str_of(members[i])) != NULL)
            return true;
    }
    return false;
}

int cli_answer_read(struct cli *cli, struct cli_answer *answer)
{
    enum rv_err err = rv_json_parse(&cli->arena, answer->text, RV_JSON_NESTING_MAX, &answer->json,
                                    NULL);
    if (err != RV_OK)
        answer->json = rv_json_null();
    if (answer->status < 200 || answer->status >= 300)
        return refusal_tell(cli, answer);
    return err == RV_OK && is_reeves(&answer->json) ? CLI_DONE : cli_stranger_tell(cli);
}

/* Ages are told by the server's clock, as its instants are. Its Date has no fractions: clocks that
 * agree as far as that tells are one. */
static void now_learn(struct cli *cli, const struct rv_client *client)
{
    enum { AGREE_MS = 2000, HALF_MS = 500 };
    int64_t told = rv_client_server_time(client), mine = rv_clock_wall_ms();
    bool agrees = told == 0 || (mine - told > -AGREE_MS && mine - told < AGREE_MS);
    cli->now = agrees ? mine : told + HALF_MS;
}

int cli_ask(struct cli *cli, const struct cli_call *call, struct cli_answer *ret_answer)
{
    *ret_answer = (struct cli_answer){.json = rv_json_null()};
    struct rv_client *client = cli_client(cli, call->patient);
    if (client == NULL)
        return CLI_USAGE;
    if (call->path.at == NULL)
        return cli_tell(cli, CLI_USAGE, "an argument is too long");
    struct rv_call request = {.method = call->method,
                              .path = call->path.at,
                              .body = call->body.at,
                              .body_bytes = call->body.len,
                              .content_type = call->content_type,
                              .repeatable = call->repeatable,
                              .timeout_ms = call->timeout_ms};
    struct rv_answer answer;
    struct cli_waiting waiting;
    cli_waiting_begin(cli, &waiting, rv_client_url(client));
    int result = cli_request(client, &request, &answer);
    cli_waiting_end(&waiting);
    now_learn(cli, client);
    ret_answer->status = answer.status;
    if (result == RV_RESULT_OK || result == RV_RESULT_REFUSED)
        ret_answer->text = rv_arena_str(&cli->arena,
                                        (struct rv_str){answer.body, answer.body_bytes});
    rv_answer_free(&answer);
    if (result == RV_RESULT_UNREACHABLE)
        return cli_unreachable(cli, client);
    if (ret_answer->text.at == NULL)
        return cli_tell(cli, CLI_UNREACHABLE, "%s", rv_client_error(client));
    return cli_answer_read(cli, ret_answer);
}

int cli_get(struct cli *cli, struct rv_str path, struct cli_answer *ret_answer)
{
    struct cli_call call = {.path = path};
    return cli_ask(cli, &call, ret_answer);
}

bool cli_peek(struct cli *cli, struct rv_str path, struct rv_json *ret_json)
{
    struct rv_client *client = cli_client(cli, false);
    struct rv_call call = {.path = path.at, .timeout_ms = PROBE_MS};
    struct rv_answer answer;
    if (client == NULL || path.at == NULL)
        return false;
    struct rv_str text = RV_STR_NONE;
    if (rv_client_request(client, &call, &answer) == RV_RESULT_OK)
        text = rv_arena_str(&cli->arena, (struct rv_str){answer.body, answer.body_bytes});
    rv_answer_free(&answer);
    return text.at != NULL &&
           rv_json_parse(&cli->arena, text, RV_JSON_NESTING_MAX, ret_json, NULL) == RV_OK;
}

struct rv_str cli_workflow_path(struct cli *cli, struct rv_str workflow)
{
    struct rv_str name;
    struct rv_str version;
    struct cli_path path;
    cli_workflow_split(workflow, &name, &version);
    const char *slash = name.len ? memchr(name.at, '/', name.len) : NULL;
    if (slash == NULL)
        return RV_STR_NONE;
    cli_path_begin(&path, "/v1/workflows");
    cli_path_segment(&path, (struct rv_str){name.at, (size_t)(slash - name.at)});
    cli_path_segment(&path, (struct rv_str){slash + 1, (size_t)(name.at + name.len - slash - 1)});
    if (version.at != NULL)
        cli_path_parameter(&path, "version", rv_arena_str(&cli->arena, version).at);
    return cli_path_end(&path, &cli->arena);
}

/* ---- reading ---- */

struct rv_str cli_str(const struct rv_json *object, const char *name)
{
    return rv_json_str(rv_json_get(object, rv_str_of(name)));
}

int64_t cli_int(const struct rv_json *object, const char *name)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    int64_t number = 0;
    return value != NULL && rv_json_int(value, &number) ? number : 0;
}

bool cli_bool(const struct rv_json *object, const char *name)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    return value != NULL && value->type == RV_JSON_BOOL && value->truth;
}

int64_t cli_instant(const struct rv_json *object, const char *name)
{
    int64_t at = 0;
    struct rv_str text = cli_str(object, name);
    return text.len > 0 && rv_instant_parse(text, &at) == RV_OK ? at : 0;
}

const struct rv_json *cli_items(const struct rv_json *object, const char *name, size_t *ret_count)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    bool good = value != NULL && value->type == RV_JSON_ARRAY;
    *ret_count = good ? value->len : 0;
    return good ? value->u.items : NULL;
}

/* The DSL's own types are addresses: "https://.../errors/timeout" is read as "timeout". */
static struct rv_str type_shorten(struct rv_str type)
{
    static const char mark[] = "/errors/";
    const char *found = type.at ? memmem(type.at, type.len, mark, sizeof mark - 1) : NULL;
    if (found == NULL || type.len < 4 || memcmp(type.at, "http", 4) != 0)
        return type;
    const char *name = found + sizeof mark - 1;
    return (struct rv_str){name, (size_t)(type.at + type.len - name)};
}

struct rv_str cli_error_text(struct rv_arena *arena, const struct rv_json *error)
{
    static const char *const names[] = {"type", "title", "detail"};
    struct rv_str text = RV_STR("");
    if (error == NULL)
        return RV_STR_NONE;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct rv_str part = cli_str(error, names[i]);
        if (i == 0)
            part = type_shorten(part);
        if (part.len > 0)
            text = rv_arena_printf(arena, "%.*s%s%.*s", RV_STR_FMT(text), text.len ? ": " : "",
                                   RV_STR_FMT(part));
    }
    return text;
}

struct rv_str cli_task_error_text(struct rv_arena *arena, const struct rv_json *error)
{
    struct rv_str text = cli_error_text(arena, error);
    struct rv_str place = cli_str(error, "instance");
    if (text.len == 0 || place.len == 0 || place.at[0] != '/')
        return text;
    return rv_arena_printf(arena, "%.*s (at %.*s)", RV_STR_FMT(text), RV_STR_FMT(place));
}

void cli_workflow_split(struct rv_str workflow, struct rv_str *ret_name, struct rv_str *ret_version)
{
    const char *colon = workflow.len ? memchr(workflow.at, ':', workflow.len) : NULL;
    *ret_name = workflow;
    *ret_version = RV_STR_NONE;
    if (colon == NULL)
        return;
    ret_name->len = (size_t)(colon - workflow.at);
    *ret_version = (struct rv_str){colon + 1, workflow.len - ret_name->len - 1};
}

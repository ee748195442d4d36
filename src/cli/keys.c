#include "base/limits.h"
#include "cli/page_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KEYS_SHOWN = 1000, BODY_BYTES_MAX = 64 * 1024 };

#define KEY_PREFIX "reeve_"

/* ---- the list ---- */

struct keys {
    struct cli *cli;
    struct cli_table table;
};

static void key_add_row(const struct rv_json *item, void *user)
{
    struct keys *keys = user;
    struct rv_arena *arena = &keys->cli->arena;
    struct rv_str role = cli_str(item, "role");
    int64_t at = cli_instant(item, "createdAt");
    cli_table_add(&keys->table, cli_str(item, "id"), CLI_BOLD);
    cli_table_add(&keys->table, role.len ? role : RV_STR("unreadable"),
                  role.len ? CLI_PLAIN : CLI_RED);
    cli_table_add(&keys->table, cli_text_clean(arena, cli_str(item, "agent")), CLI_PLAIN);
    cli_table_add(&keys->table, cli_text_clean(arena, cli_str(item, "name")), CLI_PLAIN);
    cli_table_add(&keys->table, at ? cli_text_past(arena, at, keys->cli->now) : RV_STR_NONE,
                  CLI_DIM);
}

static void keys_print(struct keys *keys)
{
    struct cli *cli = keys->cli;
    cli_table_print(&keys->table, stdout, cli->colour, cli_width(cli));
    if (keys->table.count == 0)
        printf("No API keys: authentication is off, and only requests from this machine are "
               "accepted.\nCreate the first key, an admin key: reeve keys add admin\n");
}

static int keys_list(struct cli *cli)
{
    static const char *const heads[] = {"ID", "ROLE", "AGENT", "NAME", "CREATED", NULL};
    struct keys keys = {.cli = cli};
    struct cli_list list = {.items = "keys", .each = key_add_row, .user = &keys};
    struct rv_str next;
    cli_table_init(&keys.table, &cli->arena, heads);
    cli_path_begin(&list.path, "/v1/keys");
    int code = cli_list_read(cli, &list, NULL, KEYS_SHOWN, &next);
    if (code == CLI_DONE && !cli_has(cli, CLI_OPTION_JSON))
        keys_print(&keys);
    return code;
}

/* ---- changes, at the server or on its file ---- */

static int at_rest_ask(struct cli *cli, const char *method, struct rv_str target,
                       const struct rv_buf *body, struct cli_answer *ret_answer)
{
    const char *store = cli_value(cli, CLI_OPTION_STORE);
    struct rv_buf said;
    rv_buf_init(&said, RV_BODY_BYTES_MAX);
    struct rv_str text = rv_arena_str(&cli->arena, rv_buf_str(body));
    bool made = access(store, F_OK) != 0;
    *ret_answer = (struct cli_answer){.json = rv_json_null()};
    enum rv_err err = cli->server->at_rest(store, method, target.at, text.at, &ret_answer->status,
                                           &said);
    ret_answer->text = rv_arena_str(&cli->arena, rv_buf_str(&said));
    bool failed = said.failed != RV_OK;
    rv_buf_done(&said);
    if (failed)
        return cli_tell(cli, CLI_UNREACHABLE, "out of memory");
    if (err != RV_OK)
        return cli_tell(cli, rv_err_exit(err), "%.*s%s", RV_STR_FMT(ret_answer->text),
                        err == RV_ERR_IN_USE ? "; if this server runs, leave out --store" : "");
    if (made) /* as for a first start; or the path is mistyped */
        fprintf(stderr, "%s did not exist; a new store was created.\n", store);
    return cli_answer_read(cli, ret_answer);
}

static int change_ask(struct cli *cli, const char *method, struct cli_path *path,
                      struct rv_buf *body, struct cli_answer *ret_answer)
{
    struct cli_call call = {.method = method, .path = cli_path_end(path, &cli->arena)};
    if (body->len > 0)
        call.body = rv_buf_str(body);
    int code;
    if (body->failed != RV_OK || call.path.at == NULL)
        code = cli_tell(cli, CLI_USAGE, "an argument is too long");
    else if (cli_has(cli, CLI_OPTION_STORE))
        code = at_rest_ask(cli, method, call.path, body, ret_answer);
    else
        code = cli_ask(cli, &call, ret_answer);
    rv_buf_done(body);
    return code;
}

static void member_add(struct rv_buf *body, const char *name, const char *text)
{
    if (text == NULL)
        return;
    rv_buf_printf(body, "%c\"%s\":", body->len == 0 ? '{' : ',', name);
    rv_json_write_string(body, rv_str_of(text));
}

/* The key alone on stdout, so that a script can take it. */
static void key_print(struct cli *cli, const struct cli_answer *answer)
{
    struct rv_str key = cli_str(&answer->json, "key");
    printf("%.*s\n", RV_STR_FMT(key));
    fflush(stdout);
    fprintf(stderr,
            "Key %.*s, role %.*s. The key is shown only once. Its holder has the permissions of "
            "the role.\nClients read the key from the variable REEVE_API_KEY.%s\n",
            RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&answer->json, "id"))),
            RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&answer->json, "role"))),
            cli_bool(&answer->json, "first") ? " From now on the server refuses requests without a "
                                               "key, except /health/* and /openapi.json."
                                             : "");
}

static int keys_add(struct cli *cli)
{
    struct cli_path path;
    struct cli_answer answer;
    struct rv_buf body;
    if (cli->words.args_count < 2)
        return cli_tell(
            cli, CLI_USAGE,
            "ROLE is missing; usage: reeve keys add ROLE; roles: submitter, agent, author, "
            "observer, operator, admin");
    if (strcmp(cli->words.args[1], "agent") == 0 && !cli_has(cli, CLI_OPTION_AGENT))
        return cli_tell(cli, CLI_USAGE,
                        "--agent NAME is missing: a key with the role agent belongs to one agent");
    rv_buf_init(&body, BODY_BYTES_MAX);
    member_add(&body, "role", cli->words.args[1]);
    member_add(&body, "agent", cli_value(cli, CLI_OPTION_AGENT));
    member_add(&body, "name", cli_value(cli, CLI_OPTION_NAME));
    rv_buf_add_char(&body, '}');
    cli_path_begin(&path, "/v1/keys");
    int code = change_ask(cli, "POST", &path, &body, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON))
        cli_json_print(answer.text);
    else
        key_print(cli, &answer);
    return CLI_DONE;
}

static int keys_revoke(struct cli *cli)
{
    struct cli_path path;
    struct cli_answer answer;
    struct rv_buf body;
    if (cli->words.args_count < 2)
        return cli_tell(cli, CLI_USAGE,
                        "ID is missing; usage: reeve keys revoke ID; `reeve keys` lists the ids");
    const char *id = cli->words.args[1], *store = cli_value(cli, CLI_OPTION_STORE);
    if (store != NULL && access(store, F_OK) != 0) /* none is made */
        return cli_tell(cli, rv_err_exit(RV_ERR_NOT_FOUND),
                        "%s does not exist: give the path of a server's store with --store", store);
    if (strncmp(id, KEY_PREFIX, sizeof KEY_PREFIX - 1) == 0) { /* a key must not get into logs */
        id += sizeof KEY_PREFIX - 1;
        return cli_tell(
            cli, CLI_USAGE,
            "the argument is a secret key; give the id of the key instead: reeve keys revoke %.*s",
            (int)strcspn(id, "_"), id);
    }
    rv_buf_init(&body, BODY_BYTES_MAX);
    cli_path_begin(&path, "/v1/keys");
    cli_path_segment(&path, rv_str_of(id));
    int code = change_ask(cli, "DELETE", &path, &body, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON))
        cli_json_print(answer.text);
    else
        printf("%s revoked: further requests with this key are refused\n", cli->words.args[1]);
    return CLI_DONE;
}

int cli_keys(struct cli *cli)
{
    char **args = cli->words.args;
    if (cli->words.args_count > 0 && strcmp(args[0], "add") == 0)
        return keys_add(cli);
    if (cli->words.args_count > 0 && strcmp(args[0], "revoke") == 0)
        return keys_revoke(cli);
    if (cli->words.args_count > 0)
        return cli_tell(
            cli, CLI_USAGE,
            "\"%s\": unknown command for keys; commands: reeve keys add ROLE, reeve keys revoke ID",
            args[0]);
    if (cli_has(cli, CLI_OPTION_STORE))
        return cli_tell(cli, CLI_USAGE,
                        "--store is valid only with \"add\" and \"revoke\"; omit it");
    return keys_list(cli);
}

#include "base/suggest.h"
#include "cli/server_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_BYTES_MAX = 64 * 1024, LIMIT_MAX = 1000000, CIRCUITS_MAX = 3 };

#define LIMIT_OPTIONS " [--concurrent N] [--rate N/s]"

/* ---- the list ---- */

struct instances {
    int64_t connected;
    int64_t silent; /* they have work, and nothing was heard of them for a minute */
    int64_t polling;
    int64_t open; /* attempts, of all */
    int64_t seen_at;
};

static struct instances instances_sum(const struct rv_json *agent)
{
    size_t count;
    const struct rv_json *items = cli_items(agent, "instances", &count);
    struct instances sum = {.connected = 0};
    for (size_t i = 0; i < count; i++) {
        int64_t seen = cli_instant(&items[i], "seenAt");
        const struct rv_json *connected_put = rv_json_get(&items[i], RV_STR("connected"));
        bool connected = connected_put == NULL || connected_put->truth; /* an older server */
        sum.connected += connected;
        sum.silent += !connected;
        sum.polling += cli_bool(&items[i], "polling");
        sum.open += cli_int(&items[i], "openAttempts");
        sum.seen_at = seen > sum.seen_at ? seen : sum.seen_at;
    }
    return sum;
}

/* "paused by me; 8 at a time, 20/s" */
static struct rv_str limits_text(struct cli *cli, const struct rv_json *agent)
{
    int64_t concurrent = cli_int(agent, "concurrent");
    int64_t rate = cli_int(agent, "perSecond");
    bool paused = cli_bool(agent, "paused");
    struct rv_str by = cli_str(agent, "limitedBy");
    struct rv_buf text;
    rv_buf_init(&text, BODY_BYTES_MAX);
    if (paused)
        rv_buf_lit(&text, "paused");
    if (paused && by.len > 0)
        rv_buf_printf(&text, " by %.*s", RV_STR_FMT(by));
    if (concurrent > 0)
        rv_buf_printf(&text, "%s%lld at a time", text.len ? ", " : "", (long long)concurrent);
    if (rate > 0)
        rv_buf_printf(&text, "%s%lld/s", text.len ? ", " : "", (long long)rate);
    struct rv_str kept = text.len > 0 ? rv_arena_str(&cli->arena, rv_buf_str(&text)) : RV_STR_NONE;
    rv_buf_done(&text);
    return kept;
}

/* "a.example:80 open, probe in 5 s" of one; "40 open: a.example:80 (12 wait), b.example:80, ..." */
static struct rv_str circuits_text(struct cli *cli, const struct rv_json *agent)
{
    struct rv_arena *arena = &cli->arena;
    int64_t until = cli_instant(agent, "circuitOpenUntil");
    int64_t open = cli_int(agent, "circuitsOpen");
    size_t count;
    const struct rv_json *items = cli_items(agent, "circuits", &count);
    if (until == 0)
        return RV_STR_NONE;
    if (open <= 1)
        return rv_arena_printf(arena, "%.*s open, probe %.*s",
                               RV_STR_FMT(cli_str(agent, "circuitTarget")),
                               RV_STR_FMT(cli_text_distance(arena, until, cli->now)));
    struct rv_str text = rv_arena_printf(arena, "%lld open:", (long long)open);
    for (size_t i = 0; i < count && i < CIRCUITS_MAX; i++) {
        struct rv_str target = cli_str(&items[i], "target");
        int64_t waiting = cli_int(&items[i], "waiting");
        text = rv_arena_printf(arena, "%.*s%s %.*s", RV_STR_FMT(text), i > 0 ? "," : "",
                               RV_STR_FMT(target.len ? target : RV_STR("(the whole agent)")));
        if (waiting > 0)
            text = rv_arena_printf(arena, "%.*s (%lld wait)", RV_STR_FMT(text), (long long)waiting);
    }
    return open > CIRCUITS_MAX ? rv_arena_printf(arena, "%.*s, ...", RV_STR_FMT(text)) : text;
}

static void agent_add(struct cli *cli, struct cli_table *table, const struct rv_json *agent)
{
    struct rv_arena *arena = &cli->arena;
    struct instances all = instances_sum(agent);
    int64_t waiting = cli_int(agent, "waiting");
    int64_t since = cli_instant(agent, "waitingSince");
    cli_table_add(table, cli_str(agent, "agent"), CLI_BOLD);
    struct rv_str instances = rv_arena_printf(arena, "%lld", (long long)all.connected);
    if (all.silent > 0)
        instances = rv_arena_printf(arena, "%.*s, %lld silent", RV_STR_FMT(instances),
                                    (long long)all.silent);
    cli_table_add(table, instances,
                  all.silent > 0 || (all.connected == 0 && waiting > 0) ? CLI_RED : CLI_PLAIN);
    cli_table_add_number(table, all.polling);
    cli_table_add_number(table, all.open);
    cli_table_add(table, rv_arena_printf(arena, "%lld", (long long)waiting),
                  waiting > 0 && all.polling + all.open == 0 ? CLI_RED : CLI_PLAIN);
    cli_table_add(table, waiting > 0 && since ? cli_text_ago(arena, since, cli->now) : RV_STR_NONE,
                  CLI_PLAIN);
    cli_table_add(table,
                  all.seen_at ? cli_text_ago(arena, all.seen_at, cli->now) : RV_STR("not known"),
                  all.seen_at ? CLI_PLAIN : CLI_RED);
    cli_table_add(table, circuits_text(cli, agent), CLI_YELLOW);
    cli_table_add(table, limits_text(cli, agent), CLI_YELLOW);
}

static int agents_list(struct cli *cli)
{
    static const char *const heads[] = {"AGENT", ">INSTANCES", ">POLLING", ">ATTEMPTS", ">WAITING",
                                        "SINCE", "SEEN",       "CIRCUIT",  "LIMITS",    NULL};
    struct cli_answer answer;
    struct cli_table table;
    size_t count = 0;
    int code = cli_get(cli, RV_STR("/v1/agents"), &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    cli_table_init(&table, &cli->arena, heads);
    const struct rv_json *items = cli_items(&answer.json, "agents", &count);
    for (size_t i = 0; i < count; i++)
        agent_add(cli, &table, &items[i]);
    cli_table_print(&table, stdout, cli->colour, cli_width(cli));
    if (count == 0)
        printf("No agent is connected, and no step waits for an agent.\n");
    return CLI_DONE;
}

/* ---- what an operator allows ---- */

/* A whole number from 1, with "/s" behind it if `per_second`, or "none", which is 0. */
static bool limit_read(const char *text, bool per_second, int64_t *ret_limit)
{
    *ret_limit = 0;
    if (strcmp(text, "none") == 0)
        return true;
    char *end;
    if (*text < '1' || *text > '9')
        return false;
    *ret_limit = strtol(text, &end, 10);
    if (per_second && strcmp(end, "/s") == 0)
        end += 2;
    return *end == '\0' && *ret_limit <= LIMIT_MAX;
}

static int limits_write(struct cli *cli, struct rv_buf *body)
{
    const char *concurrent = cli_value(cli, CLI_OPTION_CONCURRENT);
    const char *rate = cli_value(cli, CLI_OPTION_RATE);
    int64_t limit;
    if (concurrent == NULL && rate == NULL)
        return cli_tell(cli, CLI_USAGE,
                        "no limit is given: usage: reeve agents limit AGENT" LIMIT_OPTIONS
                        "; give at least one; \"none\" removes a limit");
    if (concurrent != NULL) {
        if (!limit_read(concurrent, false, &limit))
            return cli_tell(cli, CLI_USAGE,
                            "--concurrent %s: must be a whole number from 1 to %d, or none",
                            concurrent, LIMIT_MAX);
        rv_buf_printf(body, ",\"concurrent\":%lld", (long long)limit);
    }
    if (rate != NULL) {
        if (!limit_read(rate, true, &limit))
            return cli_tell(cli, CLI_USAGE,
                            "--rate %s: must be N/s with a whole number from 1 to %d, or none",
                            rate, LIMIT_MAX);
        rv_buf_printf(body, ",\"perSecond\":%lld", (long long)limit);
    }
    return CLI_DONE;
}

static bool agent_is_there(const struct rv_json *agent)
{
    size_t instances = 0;
    (void)cli_items(agent, "instances", &instances);
    return instances > 0 || cli_int(agent, "waiting") > 0;
}

/* What is allowed to an agent may be said before it is there, so a wrong name is no error: it is
 * doubted aloud. */
static int name_doubt(struct cli *cli, struct rv_str name)
{
    struct cli_answer answer;
    size_t count = 0, there = 0;
    int code = cli_get(cli, RV_STR("/v1/agents"), &answer);
    if (code != CLI_DONE)
        return code;
    const struct rv_json *items = cli_items(&answer.json, "agents", &count);
    const char **names = RV_NEW_ARRAY(&cli->arena, const char *, count + 1);
    for (size_t i = 0; i < count && names != NULL; i++) {
        struct rv_str agent = cli_str(&items[i], "agent");
        if (!agent_is_there(&items[i]))
            continue;
        if (rv_str_eq(agent, name))
            return CLI_DONE;
        names[there++] = rv_arena_printf(&cli->arena, "%.*s", RV_STR_FMT(agent)).at;
    }
    const char *near = names != NULL ? rv_suggest(name, names) : NULL;
    return cli_tell(cli, CLI_DONE,
                    "agent \"%.*s\" is not connected, and no step waits for it; the setting "
                    "applies once the agent connects%s%s%s; `reeve agents` lists the agents",
                    RV_STR_FMT(name), near ? " (did you mean \"" : "", near ? near : "",
                    near ? "\"?)" : "");
}

static int agent_ask(struct cli *cli, const struct rv_buf *body, struct cli_answer *ret_answer)
{
    struct cli_path path;
    cli_path_begin(&path, "/v1/agents");
    cli_path_segment(&path, rv_str_of(cli->words.args[1]));
    cli_path_segment(&path, rv_str_of(cli->words.args[0]));
    struct cli_call call = {.path = cli_path_end(&path, &cli->arena), .body = rv_buf_str(body)};
    return body->failed == RV_OK && call.path.at != NULL
               ? cli_ask(cli, &call, ret_answer)
               : cli_tell(cli, CLI_USAGE, "an argument is too long");
}

/* Which step tries the target. */
static int circuit_say(struct cli *cli, const struct rv_buf *body)
{
    struct cli_answer answer;
    int code = agent_ask(cli, body, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct rv_str target = cli_text_clean(&cli->arena, cli_str(&answer.json, "target"));
    struct rv_str step = cli_text_clean(&cli->arena, cli_str(&answer.json, "step"));
    const char *agent = cli->words.args[1];
    printf("%s%s%.*s: ", agent, target.len > 0 ? ", " : "", RV_STR_FMT(target));
    if (step.len > 0)
        printf("step %.*s will be sent as a probe; the circuit closes unless the probe fails with "
               "a transient error\n",
               RV_STR_FMT(step));
    else
        printf("no step waits for the target; the next step for the target will be sent "
               "immediately\n");
    return CLI_DONE;
}

static int limit_say(struct cli *cli, const struct rv_buf *body)
{
    struct rv_str agent = rv_str_of(cli->words.args[1]);
    struct cli_answer answer;
    int code = agent_ask(cli, body, &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct rv_str limits = cli_text_clean(&cli->arena, limits_text(cli, &answer.json));
    if (strcmp(cli->words.args[0], "resume") == 0)
        printf("%.*s: resumed%s%.*s\n", RV_STR_FMT(agent), limits.len ? "; " : "",
               RV_STR_FMT(limits));
    else
        printf("%.*s: %.*s\n", RV_STR_FMT(agent),
               RV_STR_FMT(limits.len ? limits : RV_STR("no limits")));
    return name_doubt(cli, agent);
}

static void text_write(struct rv_buf *body, const char *name, const char *text)
{
    if (text == NULL)
        return;
    rv_buf_printf(body, ",\"%s\":", name);
    rv_json_write_string(body, rv_str_of(text));
}

/* "limit", "pause", "resume" or "close-circuit". */
static int agent_command(struct cli *cli)
{
    const char *verb = cli->words.args[0];
    const char *by = cli_who(cli);
    struct rv_buf body;
    rv_buf_init(&body, BODY_BYTES_MAX);
    rv_buf_lit(&body, "{\"by\":");
    if (by != NULL && by[0] != '\0')
        rv_json_write_string(&body, rv_str_of(by));
    else
        rv_buf_lit(&body, "null");
    text_write(&body, "reason", cli_value(cli, CLI_OPTION_REASON));
    text_write(&body, "target", cli_value(cli, CLI_OPTION_TARGET));
    int code = strcmp(verb, "limit") == 0 ? limits_write(cli, &body) : CLI_DONE;
    rv_buf_add_char(&body, '}');
    if (code == CLI_DONE)
        code = strcmp(verb, "close-circuit") == 0 ? circuit_say(cli, &body) : limit_say(cli, &body);
    rv_buf_done(&body);
    return code;
}

int cli_agents(struct cli *cli)
{
    char **args = cli->words.args;
    bool options = cli_has(cli, CLI_OPTION_CONCURRENT) || cli_has(cli, CLI_OPTION_RATE);
    bool limit = cli->words.args_count > 0 && strcmp(args[0], "limit") == 0;
    bool circuit = cli->words.args_count > 0 && strcmp(args[0], "close-circuit") == 0;
    if (options && !limit)
        return cli_tell(cli, CLI_USAGE,
                        "--concurrent and --rate are valid only with \"limit AGENT\"");
    if (cli_has(cli, CLI_OPTION_TARGET) && !circuit)
        return cli_tell(cli, CLI_USAGE, "--target is valid only with \"close-circuit AGENT\"");
    if (cli->words.args_count == 0)
        return agents_list(cli);
    if (!limit && !circuit && strcmp(args[0], "pause") != 0 && strcmp(args[0], "resume") != 0)
        return cli_tell(
            cli, CLI_USAGE,
            "\"%s\": unknown command for agents; commands: reeve agents limit AGENT, reeve "
            "agents pause AGENT, reeve agents resume AGENT, reeve agents close-circuit "
            "AGENT",
            args[0]);
    if (cli->words.args_count == 1)
        return cli_tell(cli, CLI_USAGE, "AGENT is missing; usage: reeve agents %s AGENT%s", args[0],
                        limit ? LIMIT_OPTIONS : "");
    return agent_command(cli);
}

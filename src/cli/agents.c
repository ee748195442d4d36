#include "cli/server_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <stdio.h>

/* How many instances ask for work now, what all have in hand, when one was last seen. */
static void instances_sum(const struct rv_json *agent, int64_t *ret_polling, int64_t *ret_open,
                          int64_t *ret_seen_at, size_t *ret_count)
{
    const struct rv_json *items = cli_items(agent, "instances", ret_count);
    *ret_polling = 0;
    *ret_open = 0;
    *ret_seen_at = 0;
    for (size_t i = 0; i < *ret_count; i++) {
        int64_t seen = cli_instant(&items[i], "seenAt");
        *ret_polling += cli_bool(&items[i], "polling");
        *ret_open += cli_int(&items[i], "openAttempts");
        if (seen > *ret_seen_at)
            *ret_seen_at = seen;
    }
}

static void agent_add(struct cli *cli, struct cli_table *table, const struct rv_json *agent)
{
    struct rv_arena *arena = &cli->arena;
    int64_t polling;
    int64_t open;
    int64_t seen;
    size_t count;
    int64_t waiting = cli_int(agent, "waiting");
    int64_t since = cli_instant(agent, "waitingSince");
    int64_t circuit = cli_instant(agent, "circuitOpenUntil");
    instances_sum(agent, &polling, &open, &seen, &count);
    cli_table_add(table, cli_str(agent, "agent"), CLI_BOLD);
    cli_table_add(table, rv_arena_printf(arena, "%zu", count),
                  count == 0 && waiting > 0 ? CLI_RED : CLI_PLAIN);
    cli_table_add_number(table, polling);
    cli_table_add_number(table, open);
    cli_table_add(table, rv_arena_printf(arena, "%lld", (long long)waiting),
                  waiting > 0 && polling + open == 0 ? CLI_RED : CLI_PLAIN);
    cli_table_add(table,
                  waiting > 0 && since ? cli_text_distance(arena, since, cli->now) : RV_STR_NONE,
                  CLI_PLAIN);
    cli_table_add(table, seen ? cli_text_distance(arena, seen, cli->now) : RV_STR("never"),
                  seen ? CLI_PLAIN : CLI_RED);
    struct rv_str target = cli_str(agent, "circuitTarget");
    cli_table_add(table,
                  circuit ? rv_arena_printf(arena, "%.*s open, probe %.*s", RV_STR_FMT(target),
                                            RV_STR_FMT(cli_text_distance(arena, circuit, cli->now)))
                          : RV_STR_NONE,
                  CLI_YELLOW);
}

int cli_agents(struct cli *cli)
{
    static const char *const heads[] = {"AGENT", ">INSTANCES", ">POLLING", ">IN HAND", ">WAITING",
                                        "SINCE", "SEEN",       "CIRCUIT",  NULL};
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
        printf("No agent has asked for work yet, and no step waits for one.\n");
    return CLI_DONE;
}

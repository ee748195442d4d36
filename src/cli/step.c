/* `reeve show TASK STEP`: one step whole, with what its agent was given and what it returned. */
#include "base/limits.h"
#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void line_print(const struct cli *cli, const char *name, struct rv_str text)
{
    if (text.len > 0)
        printf("  %s%-12s%s %.*s\n", cli_colour_begin(CLI_DIM, cli->colour), name,
               cli_colour_end(cli->colour), RV_STR_FMT(text));
}

static void payload_print(struct cli *cli, const struct rv_json *step, const char *name)
{
    const struct rv_json *value = rv_json_get(step, rv_str_of(name));
    struct rv_buf buf;
    if (value == NULL)
        return;
    rv_buf_init(&buf, 2 * RV_PAYLOAD_BYTES_MAX);
    rv_json_write(&buf, value);
    line_print(cli, name, cli_text_clean(&cli->arena, rv_buf_str(&buf)));
    rv_buf_done(&buf);
}

static void instant_print(struct cli *cli, const struct rv_json *step, const char *member,
                          const char *name)
{
    int64_t at = cli_instant(step, member);
    if (at != 0)
        line_print(cli, name, cli_text_past(&cli->arena, at, cli->now));
}

/* `told` is the explanation of its task, as far as that stands at it. */
static void step_print(struct cli *cli, const struct rv_json *step, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_text_clean(arena, cli_str(step, "state"));
    int64_t attempt = cli_int(step, "attempt");
    printf("%sstep %" PRId64 " %.*s%s  %s%.*s%s\n", cli_colour_begin(CLI_BOLD, cli->colour),
           cli_int(step, "number"), RV_STR_FMT(cli_text_clean(arena, cli_step_name(arena, step))),
           cli_colour_end(cli->colour), cli_colour_begin(cli_colour_of_state(state), cli->colour),
           RV_STR_FMT(state), cli_colour_end(cli->colour));
    line_print(cli, "reference", cli_text_clean(arena, cli_str(step, "reference")));
    line_print(cli, "agent", cli_text_clean(arena, cli_str(step, "agent")));
    if (attempt > 0)
        line_print(cli, "attempt",
                   rv_arena_printf(arena, "%" PRId64 " %.*s", attempt,
                                   RV_STR_FMT(cli_str(step, "attemptState"))));
    line_print(cli, "instance", cli_text_clean(arena, cli_str(step, "instance")));
    line_print(cli, "effect", cli_text_clean(arena, cli_str(step, "effect")));
    instant_print(cli, step, "createdAt", "begun");
    instant_print(cli, step, "attemptAt", "attempted");
    instant_print(cli, step, "endedAt", "ended");
    told = cli_step_told(told, cli_int(step, "number"));
    line_print(cli, "why", cli_text_clean(arena, cli_step_why(arena, step, told, cli->now)));
    payload_print(cli, step, "input");
    payload_print(cli, step, "output");
    payload_print(cli, step, "error");
}

static void step_print_json(const struct rv_json *step)
{
    struct rv_buf buf;
    rv_buf_init(&buf, 8 * RV_PAYLOAD_BYTES_MAX);
    rv_json_write(&buf, step);
    cli_json_print(rv_buf_str(&buf));
    rv_buf_done(&buf);
}

int cli_step_show(struct cli *cli, struct rv_str task, const char *text)
{
    struct cli_path path;
    struct cli_answer answer;
    char *end;
    long number = strtol(text, &end, 10);
    size_t count;
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || number < 1 || number > UINT32_MAX)
        return cli_tell(
            cli, CLI_USAGE,
            "STEP must be the number of a step as listed by `reeve show TASK`, not \"%s\"", text);
    cli_path_begin(&path, "/v1/tasks");
    cli_path_segment(&path, task);
    rv_buf_printf(&path.buf, "/steps?limit=1&after=%ld", number - 1);
    int code = cli_get(cli, cli_path_end(&path, &cli->arena), &answer);
    if (code != CLI_DONE)
        return code;
    const struct rv_json *steps = cli_items(&answer.json, "steps", &count);
    if (count == 0 || cli_int(&steps[0], "number") != number)
        return cli_tell(cli, CLI_NOT_FOUND,
                        "the task has no step %ld; `reeve show %.*s --all` lists its steps", number,
                        RV_STR_FMT(task));
    if (cli_has(cli, CLI_OPTION_JSON)) {
        step_print_json(&steps[0]);
        return CLI_DONE;
    }
    struct cli_answer told;
    code = cli_get(cli, cli_task_path(cli, task, "/explain"), &told);
    if (code == CLI_DONE)
        step_print(cli, &steps[0], &told.json);
    return code;
}

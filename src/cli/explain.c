#include "cli/task_priv.h"
#include "cli/terminal_priv.h"
#include "cli/text_priv.h"
#include "cli/unseen_priv.h"

#include <stdio.h>
#include <string.h>

static void said(const struct cli *cli, const char *indent, const char *name, struct rv_str text)
{
    if (text.len > 0)
        printf("%s%s%-10s%s %.*s\n", indent, cli_colour_begin(CLI_DIM, cli->colour), name,
               cli_colour_end(cli->colour), RV_STR_FMT(text));
}

static struct rv_str instant_of(struct cli *cli, const struct rv_json *of, const char *member)
{
    int64_t at = cli_instant(of, member);
    return at != 0 ? cli_text_instant(&cli->arena, at, cli->now) : RV_STR("");
}

/* When the wait of `of`, the task or its step, ends by itself. An attempt's lease is renewed: it is
 * the complete-by that ends it. */
static struct rv_str until_text(struct cli *cli, const struct rv_json *of,
                                const struct rv_json *step)
{
    int64_t complete_by = cli_instant(step, "completeBy");
    bool held = rv_str_is(cli_str(of, "waitsFor"), "agent-works");
    if (complete_by == 0 || (!held && cli_instant(of, "until") != complete_by))
        return instant_of(cli, of, "until");
    return rv_arena_printf(&cli->arena, "%.*s (complete-by)",
                           RV_STR_FMT(cli_text_instant(&cli->arena, complete_by, cli->now)));
}

/* Empty: it needs no renewal, or no agent has the step. */
static struct rv_str lease_text(struct cli *cli, const struct rv_json *step)
{
    int64_t lease = cli_instant(step, "until");
    if (!rv_str_is(cli_str(step, "waitsFor"), "agent-works") || lease == 0 ||
        lease == cli_instant(step, "completeBy"))
        return RV_STR("");
    return rv_arena_printf(&cli->arena, "renewed until %.*s",
                           RV_STR_FMT(cli_text_instant(&cli->arena, lease, cli->now)));
}

/* "2 connected, 1 asks for work, 4 steps ready for it, seen 3 s ago". */
static struct rv_str agent_text(struct cli *cli, const struct rv_json *step)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str instance = cli_str(step, "instance");
    int64_t seen = cli_instant(step, "seenAt");
    struct rv_str last = seen != 0
                             ? rv_arena_printf(arena, ", seen %.*s",
                                               RV_STR_FMT(cli_text_ago(arena, seen, cli->now)))
                             : RV_STR("");
    if (cli_str(step, "agent").len == 0)
        return RV_STR("");
    if (instance.len > 0)
        return rv_arena_printf(arena, "%.*s, instance %.*s%.*s", RV_STR_FMT(cli_str(step, "agent")),
                               RV_STR_FMT(instance), RV_STR_FMT(last));
    return rv_arena_printf(
        arena, "%.*s: %lld connected, %lld polling, %lld step%s in its queue%.*s",
        RV_STR_FMT(cli_str(step, "agent")), (long long)cli_int(step, "instancesConnected"),
        (long long)cli_int(step, "instancesPolling"), (long long)cli_int(step, "stepsReady"),
        cli_int(step, "stepsReady") == 1 ? "" : "s", RV_STR_FMT(last));
}

static struct rv_str ladder_text(struct cli *cli, const struct rv_json *step)
{
    int64_t failures = cli_int(step, "failureCount");
    int64_t round = cli_int(step, "round");
    if (failures + round == 0)
        return RV_STR("");
    return rv_arena_printf(&cli->arena, "%lld of %lld in round %lld of %lld", (long long)failures,
                           (long long)cli_int(step, "threshold"), (long long)round + 1,
                           (long long)cli_int(step, "rounds") + 1);
}

static void step_print(struct cli *cli, const struct rv_json *step)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_str(step, "state");
    printf("\n  step %lld %.*s  %s%.*s%s\n", (long long)cli_int(step, "number"),
           RV_STR_FMT(cli_text_clean(arena, cli_text_step(arena, cli_str(step, "reference")))),
           cli_colour_begin(cli_colour_of_state(state), cli->colour), RV_STR_FMT(state),
           cli_colour_end(cli->colour));
    bool escalated = rv_str_is(state, "error"); /* the first line says why */
    if (!escalated)
        said(cli, "    ", "why", cli_text_clean(arena, cli_str(step, "why")));
    said(cli, "    ", "until", until_text(cli, step, step));
    said(cli, "    ", "lease", lease_text(cli, step));
    said(cli, "    ", "agent", cli_text_clean(arena, agent_text(cli, step)));
    if (rv_str_is(cli_str(step, "waitsFor"), "no-agent"))
        said(cli, "    ", "start",
             cli_text_clean(arena, cli_unseen_cure(cli, cli_str(step, "agent"))));
    said(cli, "    ", "target", cli_text_clean(arena, cli_str(step, "target")));
    said(cli, "    ", "failures", ladder_text(cli, step));
    said(cli, "    ", escalated ? "error" : "after",
         cli_text_clean(arena, cli_error_text(arena, rv_json_get(step, RV_STR("error")))));
    said(cli, "    ", "timeout", instant_of(cli, step, "deadline"));
}

static void attempts_print(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    size_t count, steps; /* without an open step: of the one that failed last */
    (void)cli_items(told, "steps", &steps);
    const struct rv_json *items = cli_items(told, "attempts", &count);
    for (size_t i = 0; i < count; i++) {
        struct rv_str error = cli_error_text(arena, rv_json_get(&items[i], RV_STR("error")));
        struct rv_str step = cli_str(&items[i], "step");
        const char *number = steps == 0 ? memrchr(step.at, '-', step.len) : NULL;
        int length = number != NULL ? (int)(step.at + step.len - number - 1) : 0;
        printf("    %s%.*s%sattempt %lld %.*s at %.*s%s%.*s\n", length > 0 ? "step " : "", length,
               length > 0 ? number + 1 : "", length > 0 ? ": " : "",
               (long long)cli_int(&items[i], "attempt"),
               RV_STR_FMT(cli_text_clean(arena, cli_str(&items[i], "state"))),
               RV_STR_FMT(instant_of(cli, &items[i], "endedAt")), error.len ? ": " : "",
               RV_STR_FMT(cli_text_clean(arena, error)));
    }
}

/* Those that the commands say were seen; of a task that has ended, all. */
static void late_print(struct cli *cli, const struct rv_json *told)
{
    size_t count, late_count;
    int64_t seen = 0;
    const struct rv_json *late = cli_items(told, "lateReplies", &late_count);
    const struct rv_json *cures = cli_items(told, "cures", &count);
    for (size_t i = 0; i < count; i++)
        seen = cli_int(&cures[i], "lateSeen") > seen ? cli_int(&cures[i], "lateSeen") : seen;
    if (cli_instant(told, "endedAt") != 0)
        seen = (int64_t)late_count;
    if (seen == 0)
        return;
    cli_late_print(cli, late, late_count);
    if (seen > (int64_t)late_count)
        printf("%lld more late replies are not listed. To show all: reeve show %.*s\n",
               (long long)seen - (long long)late_count,
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(told, "task"))));
}

/* "undo-began at 12:00:01, step 2: message". */
static void events_print(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    size_t count;
    const struct rv_json *items = cli_items(told, "events", &count);
    for (size_t i = 0; i < count; i++) {
        struct rv_str until = instant_of(cli, &items[i], "until");
        struct rv_str message = cli_str(&items[i], "message");
        printf("%s  %.*s at %.*s", i == 0 ? "\n" : "",
               RV_STR_FMT(cli_text_clean(arena, cli_str(&items[i], "event"))),
               RV_STR_FMT(instant_of(cli, &items[i], "at")));
        if (cli_int(&items[i], "step") > 0)
            printf(", step %lld", (long long)cli_int(&items[i], "step"));
        if (until.len > 0)
            printf(", until %.*s", RV_STR_FMT(until));
        printf("%s%.*s\n", message.len > 0 ? ": " : "", RV_STR_FMT(cli_text_clean(arena, message)));
    }
}

/* The counts are those of the steps that were searched, which are not all. */
static const char *at_least(const struct rv_json *told)
{
    const struct rv_json *more = rv_json_get(told, RV_STR("effectsMore"));
    return more != NULL && more->truth ? "more than " : "";
}

/* What was undone and what not, so far. Those that an undo of the task stops at are printed below
 * with what to do; those that need no undo are counted. */
static void effects_print(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    size_t count;
    const struct rv_json *items = cli_items(told, "effects", &count);
    bool undone = cli_instant(told, "endedAt") != 0 &&
                  !rv_str_is(cli_str(told, "state"), "processed");
    bool ended = cli_instant(told, "endedAt") != 0;
    int64_t without = cli_int(told, "effectsWithoutUndo");
    if (count == 0 && !undone)
        return;
    printf("\n  effects: %s%lld undone, %s%lld not undone", at_least(told),
           (long long)cli_int(told, "effectsUndone"), at_least(told),
           (long long)cli_int(told, "effectsLeft"));
    if (without > 0)
        printf("; %s%lld need%s no undo", at_least(told), (long long)without,
               without == 1 ? "s" : "");
    printf("\n");
    for (size_t i = 0; i < count; i++) {
        struct rv_str outcome = cli_str(&items[i], "outcome");
        if (rv_str_is(outcome, "no-undo-needed") || (rv_str_is(outcome, "by-hand") && !ended))
            continue;
        printf("    step %lld %.*s, effect %.*s: %.*s\n", (long long)cli_int(&items[i], "step"),
               RV_STR_FMT(
                   cli_text_clean(arena, cli_text_step(arena, cli_str(&items[i], "reference")))),
               RV_STR_FMT(cli_text_clean(arena, cli_str(&items[i], "effect"))),
               RV_STR_FMT(cli_text_clean(arena, outcome)));
    }
}

/* An undo of the task stops at each of them. */
static void by_hand_print(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    size_t count;
    int64_t printed = 0, all = cli_int(told, "effectsByHand");
    const struct rv_json *items = cli_items(told, "effects", &count);
    if (cli_instant(told, "endedAt") != 0 || all == 0)
        return;
    printf("\n  an undo of the task needs an operator for %s%lld step%s:\n", at_least(told),
           (long long)all, all == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++) {
        if (!rv_str_is(cli_str(&items[i], "outcome"), "by-hand"))
            continue;
        printed++;
        printf("    step %lld %.*s, effect %.*s: undo it by hand, then settle it with --undone\n",
               (long long)cli_int(&items[i], "step"),
               RV_STR_FMT(
                   cli_text_clean(arena, cli_text_step(arena, cli_str(&items[i], "reference")))),
               RV_STR_FMT(cli_text_clean(arena, cli_str(&items[i], "effect"))));
    }
    if (printed < all)
        printf("    and %lld more, marked \"undo: by hand\" in: reeve show %.*s --all\n",
               (long long)(all - printed),
               RV_STR_FMT(cli_text_clean(arena, cli_str(told, "task"))));
}

static void end_print(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    const struct rv_json *by = rv_json_get(told, RV_STR("endedBy"));
    said(cli, "  ", "ended", instant_of(cli, told, "endedAt"));
    if (cli_instant(told, "endedAt") != 0)
        said(cli, "  ", "error",
             cli_text_clean(arena, cli_task_error_text(arena, rv_json_get(told, RV_STR("error")))));
    if (by == NULL)
        return;
    said(cli, "  ", "by", cli_text_clean(arena, cli_str(by, "by")));
    said(cli, "  ", "reason", cli_text_clean(arena, cli_str(by, "reason")));
}

/* The list is printed above, and does not report its rest itself. */
static bool is_printed(const struct rv_json *told, const struct rv_json *cut)
{
    return !rv_str_is(cli_str(cut, "list"), "lateReplies") || cli_instant(told, "endedAt") != 0;
}

static void incomplete_print(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    size_t count, printed = 0;
    const struct rv_json *items = cli_items(told, "incomplete", &count);
    for (size_t i = 0; i < count; i++)
        if (is_printed(told, &items[i])) {
            int64_t left = cli_int(&items[i], "left");
            struct rv_str more = left > 0
                                     ? rv_arena_printf(arena, "; %lld more %s not", (long long)left,
                                                       left == 1 ? "is" : "are")
                                     : RV_STR("");
            printf("%s  Only %.*s are listed%.*s. To list all: reeve %.*s\n",
                   printed++ == 0 ? "\n" : "",
                   RV_STR_FMT(cli_text_clean(arena, cli_str(&items[i], "shown"))), RV_STR_FMT(more),
                   RV_STR_FMT(cli_text_clean(arena, cli_str(&items[i], "command"))));
        }
}

/* While the store refuses writes, the commands below are refused, too. */
static void problems_print(struct cli *cli, const struct rv_json *told)
{
    size_t count;
    const struct rv_json *items = cli_items(told, "storeProblems", &count);
    for (size_t i = 0; i < count; i++)
        printf("\n%s%.*s%s\n  cure: %.*s\n", cli_colour_begin(CLI_RED, cli->colour),
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&items[i], "message"))),
               cli_colour_end(cli->colour),
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&items[i], "cure"))));
}

void cli_cures_print(struct cli *cli, const struct rv_json *told)
{
    size_t count;
    problems_print(cli, told);
    const struct rv_json *items = cli_items(told, "cures", &count);
    struct rv_str role = cli_str(told, "curesNeedRole");
    if (count > 0 && role.len > 0)
        printf("\nCommands that the task accepts, for a key with the role %.*s:\n",
               RV_STR_FMT(cli_text_clean(&cli->arena, role)));
    else if (count > 0)
        printf("\nCommands that the task accepts:\n");
    for (size_t i = 0; i < count; i++)
        printf("  %.*s\n      %.*s\n",
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&items[i], "command"))),
               RV_STR_FMT(cli_text_clean(&cli->arena, cli_str(&items[i], "effect"))));
}

/* Why the task is where it is; of one that is escalated, the step that failed and its error. */
static struct rv_str headline(struct cli *cli, const struct rv_json *told)
{
    struct rv_arena *arena = &cli->arena;
    struct rv_str why = cli_str(told, "why");
    size_t count;
    const struct rv_json *steps = cli_items(told, "steps", &count);
    if (!rv_str_is(cli_str(told, "state"), "error"))
        return why;
    for (size_t i = 0; i < count; i++) {
        struct rv_str error = cli_error_text(arena, rv_json_get(&steps[i], RV_STR("error")));
        if (rv_str_is(cli_str(&steps[i], "state"), "error") && error.len > 0)
            return rv_arena_printf(
                arena, "step %lld %.*s failed: %.*s; the task waits for an operator",
                (long long)cli_int(&steps[i], "number"),
                RV_STR_FMT(cli_text_step(arena, cli_str(&steps[i], "reference"))),
                RV_STR_FMT(error));
    }
    struct rv_str undo = cli_task_error_text(arena, rv_json_get(told, RV_STR("undoError")));
    if (undo.len > 0)
        return rv_arena_printf(arena, "the undo has stopped: %.*s; %.*s", RV_STR_FMT(undo),
                               RV_STR_FMT(why));
    struct rv_str error = cli_task_error_text(arena, rv_json_get(told, RV_STR("error")));
    return error.len > 0 ? rv_arena_printf(arena, "%.*s; %.*s", RV_STR_FMT(error), RV_STR_FMT(why))
                         : why;
}

int cli_explain(struct cli *cli)
{
    struct rv_str task = rv_str_of(cli->words.args[0]);
    struct cli_answer answer;
    int code = cli_get(cli, cli_task_path(cli, task, "/explain"), &answer);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    const struct rv_json *told = &answer.json;
    struct rv_arena *arena = &cli->arena;
    struct rv_str state = cli_text_clean(arena, cli_str(told, "state"));
    size_t count;
    bool suspended = cli_instant(told, "suspendedAt") != 0;
    printf("%.*s %s%.*s%s%s: %.*s\n", RV_STR_FMT(task),
           cli_colour_begin(cli_colour_of_state(state), cli->colour), RV_STR_FMT(state),
           cli_colour_end(cli->colour), suspended ? ", suspended" : "",
           RV_STR_FMT(cli_text_clean(arena, headline(cli, told))));
    const struct rv_json *steps = cli_items(told, "steps", &count);
    said(cli, "  ", "until", until_text(cli, told, count > 0 ? &steps[0] : NULL));
    said(cli, "  ", "next check", instant_of(cli, told, "nextLookAt"));
    end_print(cli, told);
    for (size_t i = 0; i < count; i++)
        step_print(cli, &steps[i]);
    attempts_print(cli, told);
    events_print(cli, told);
    effects_print(cli, told);
    by_hand_print(cli, told);
    const struct rv_json *alerts = cli_items(told, "alerts", &count);
    for (size_t i = 0; i < count; i++) {
        printf("\n");
        cli_alert_print(cli, &alerts[i], "  ");
    }
    late_print(cli, told);
    incomplete_print(cli, told);
    cli_cures_print(cli, told);
    return CLI_DONE;
}

/* task_priv.h - tasks, steps and alerts as operators want to read them. */
#ifndef RV_CLI_TASK_PRIV_H
#define RV_CLI_TASK_PRIV_H

#include "cli/server_priv.h"

/* DONE, FAILED or OPERATOR for a state in which a task rests; -1 for all others. */
int cli_task_code(struct rv_str state);
/* What a step is called; one that undoes says which. */
struct rv_str cli_step_name(struct rv_arena *arena, const struct rv_json *step);
/* Why the step is where it is, and until when: "no instance of the agent is connected: inventory",
 * "complete-by in 1.5 s", "again in 2.0 s, after: timeout". Why it is not handed out stands in
 * `told` alone, its part of the explanation of its task; NULL: it is not said. */
struct rv_str cli_step_why(struct rv_arena *arena, const struct rv_json *step,
                           const struct rv_json *told, int64_t now);
/* A step at which the explained task stands; NULL: it is none of them. */
const struct rv_json *cli_step_told(const struct rv_json *told, int64_t number);
/* A line for each group of alerts; `more`: there are older ones that were not counted. */
void cli_alert_groups_print(struct cli *cli, const struct rv_json *groups, size_t count, bool more);
/* Some lines: what, where and since when, why, what to do; each after `indent`. */
void cli_alert_print(struct cli *cli, const struct rv_json *alert, const char *indent);
/* The commands that lead a task on, of what `explain` told. */
void cli_cures_print(struct cli *cli, const struct rv_json *told);
/* "/v1/tasks/<task><rest>" on the arena. */
struct rv_str cli_task_path(struct cli *cli, struct rv_str task, const char *rest);
/* One step, by its number as it was given. */
int cli_step_show(struct cli *cli, struct rv_str task, const char *number);
void cli_late_print(struct cli *cli, const struct rv_json *items, size_t count);
/* The late replies of a task as a table; *ret_count: how many there are (at most a page). */
int cli_late_show(struct cli *cli, struct rv_str task, size_t *ret_count);
/* Follows the task until it rests, with a line for each change of a step and, on a terminal, a
 * progress bar; `silent` waits without the lines; with --json each change is the task's JSON. Ends
 * with one line that says how it ended, and gives its exit code. */
int cli_task_follow(struct cli *cli, struct rv_str task, bool silent);
/* Follows what the task tells its submitter until it rests, from --after on: a line for each
 * message, with --json the message itself. Ends as above, with --json without the line. */
int cli_messages_follow(struct cli *cli, struct rv_str task);
/* One line: how the task, which rests, ended and why; gives its exit code. */
int cli_task_end_print(struct cli *cli, struct rv_str task, const struct rv_json *told);

#endif

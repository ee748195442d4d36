/* lines_priv.h - bulk submission: a task for each line of a file. */
#ifndef RV_CLI_LINES_PRIV_H
#define RV_CLI_LINES_PRIV_H

#include "cli/run_priv.h"

/* `reeve submit W --lines FILE`. Each line is the JSON input of a task; --key-from is a JSON
 * pointer to its key. Empty lines are passed over. A line that is refused is told with its number
 * and does not keep the others from being submitted. */
int cli_lines_submit(struct cli *cli, struct rv_str tags);

#endif

/* terminal_priv.h - what the terminal can do, and one line of it that is written over and over. */
#ifndef RV_CLI_TERMINAL_PRIV_H
#define RV_CLI_TERMINAL_PRIV_H

#include "cli/run_priv.h"

#include <stddef.h>
#include <stdio.h>

/* Columns of stdout; 0 if it is no terminal. */
size_t cli_width(const struct cli *cli);
/* Columns of stderr; 0 if it is no terminal. */
size_t cli_width_err(const struct cli *cli);

/* Writes `text` over the line that the cursor is in, cut to `width` columns. */
void cli_line_write(struct cli *cli, FILE *to, struct rv_str text, size_t width);
/* Empties that line, so that others can be printed. */
void cli_line_clear(FILE *to);

/* When something that takes time was done: the line is written again at most ten times a second. */
struct cli_pace {
    int64_t written_ms;
};
bool cli_pace_due(struct cli_pace *pace);

#endif

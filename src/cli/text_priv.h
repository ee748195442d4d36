/* text_priv.h - texts for people: durations, instants, numbers, progress bars, aligned tables. */
#ifndef RV_CLI_TEXT_PRIV_H
#define RV_CLI_TEXT_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* All texts are made on the arena; without memory they are absent, which prints as nothing. */

/* Columns on a terminal: one for each code point. */
size_t cli_text_columns(struct rv_str text);
/* Without control characters (each becomes a blank) and broken UTF-8 (each byte becomes "?"), so
 * that what strangers wrote cannot move the cursor or change colours. */
struct rv_str cli_text_clean(struct rv_arena *arena, struct rv_str text);
/* At most so many columns; "..." at the end says that something was cut off. */
struct rv_str cli_text_cut(struct rv_arena *arena, struct rv_str text, size_t columns);

/* "0 ms", "850 ms", "12.3 s", "3 m 12 s", "2 h 5 m", "4 d 1 h"; negative as 0. */
struct rv_str cli_text_duration(struct rv_arena *arena, int64_t ms);
/* "2026-11-21 09:49:44 UTC, 3 m 12 s ago" or "..., in 1.5 s". */
struct rv_str cli_text_instant(struct rv_arena *arena, int64_t at, int64_t now);
/* "in 1.5 s" or "3 m 12 s ago". */
struct rv_str cli_text_distance(struct rv_arena *arena, int64_t at, int64_t now);
/* Of an instant that has passed: "1.2 s ago", also when the server's clock is a little ahead. */
struct rv_str cli_text_ago(struct rv_arena *arena, int64_t at, int64_t now);
/* As cli_text_instant, of one that has passed. */
struct rv_str cli_text_past(struct rv_arena *arena, int64_t at, int64_t now);
/* "1,234,567" */
struct rv_str cli_text_number(struct rv_arena *arena, uint64_t number);
/* "[####......]": `columns` wide with its brackets, at least 3; a total of 0 is an empty bar. */
struct rv_str cli_text_bar(struct rv_arena *arena, uint64_t done, uint64_t total, size_t columns);
/* What a step is called: "/do/0/outer/do/1/charge" is "outer/charge". */
struct rv_str cli_text_step(struct rv_arena *arena, struct rv_str reference);

/* The value over several lines, two blanks for each level; what is empty or holds nothing but
 * scalars and is short stands in one. Values are as deep as a definition at most. */
void cli_json_indent(struct rv_buf *buf, const struct rv_json *value, unsigned level);

enum cli_colour { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_CYAN };

/* The colour of a task's, step's or attempt's state. */
enum cli_colour cli_colour_of_state(struct rv_str state);
/* Switches it on; "" if `wanted` is false. cli_colour_end() switches back. */
const char *cli_colour_begin(enum cli_colour colour, bool wanted);
const char *cli_colour_end(bool wanted);

enum { CLI_TABLE_COLUMNS_MAX = 12 };

struct cli_cell {
    struct rv_str text; /* clean */
    enum cli_colour colour;
};

/* Rows of cells, printed aligned. A column that is empty in all rows is left out. */
struct cli_table {
    struct rv_arena *arena;   /* borrowed */
    const char *const *heads; /* borrowed, ended by NULL; ">N" aligns to the right as "N" */
    size_t columns;
    struct cli_cell *cells; /* on the arena */
    size_t count;
    size_t room;
};

void cli_table_init(struct cli_table *table, struct rv_arena *arena, const char *const *heads);
/* Cells are added row by row, from left to right. The text is cleaned. */
void cli_table_add(struct cli_table *table, struct rv_str text, enum cli_colour colour);
void cli_table_add_number(struct cli_table *table, int64_t number);
/* Nothing at all without rows. `width` cuts the lines, 0: they may be as long as they are. */
void cli_table_print(const struct cli_table *table, FILE *to, bool colour, size_t width);

#endif

#include "cli/text_priv.h"

#include "base/assert.h"
#include "base/array.h"

#include <string.h>

enum { GAP = 2 };

void cli_table_init(struct cli_table *table, struct rv_arena *arena, const char *const *heads)
{
    *table = (struct cli_table){.arena = arena, .heads = heads};
    while (heads[table->columns] != NULL && table->columns < CLI_TABLE_COLUMNS_MAX)
        table->columns++;
    rv_assert(table->columns > 0);
    rv_assert(heads[table->columns] == NULL); /* no head is left out */
}

void cli_table_add(struct cli_table *table, struct rv_str text, enum cli_colour colour)
{
    rv_assert(table->columns > 0);
    if (!RV_ARRAY_ROOM_ON(table->arena, table->cells, table->count, table->room))
        return;
    table->cells[table->count++] = (struct cli_cell){cli_text_clean(table->arena, text), colour};
}

void cli_table_add_number(struct cli_table *table, int64_t number)
{
    cli_table_add(table, rv_arena_printf(table->arena, "%lld", (long long)number), CLI_PLAIN);
}

static const char *head_text(const struct cli_table *table, size_t column)
{
    rv_assert(column < table->columns);
    const char *head = table->heads[column];
    return head[0] == '>' ? head + 1 : head;
}

/* Each column's width; 0 for one that is empty. */
static void widths_find(const struct cli_table *table, size_t *widths)
{
    for (size_t c = 0; c < table->columns; c++)
        widths[c] = 0;
    for (size_t i = 0; i < table->count; i++) {
        size_t columns = cli_text_columns(table->cells[i].text);
        if (columns > widths[i % table->columns])
            widths[i % table->columns] = columns;
    }
    for (size_t c = 0; c < table->columns; c++) {
        size_t head = strlen(head_text(table, c));
        if (widths[c] > 0 && widths[c] < head)
            widths[c] = head;
    }
}

static void blanks_print(FILE *to, size_t count)
{
    fprintf(to, "%*s", (int)count, "");
}

/* One line of cells; blanks at its end are not written, what is beyond `width` is cut off. */
static void line_print(const struct cli_table *table, const struct cli_cell *cells,
                       const size_t *widths, FILE *to, bool colour, size_t width)
{
    size_t at = 0;   /* columns used */
    size_t owed = 0; /* blanks before the next text */
    for (size_t c = 0; c < table->columns; c++) {
        if (widths[c] == 0)
            continue;
        struct rv_str text = cells[c].text;
        size_t begin = at + owed;
        if (width > 0 && begin >= width)
            break;
        if (width > 0 && begin + cli_text_columns(text) > width)
            text = cli_text_cut(table->arena, text, width - begin);
        size_t columns = cli_text_columns(text);
        size_t blanks = widths[c] > columns ? widths[c] - columns : 0;
        bool right = table->heads[c][0] == '>';
        if (columns > 0) {
            blanks_print(to, owed + (right ? blanks : 0));
            fprintf(to, "%s%.*s%s", cli_colour_begin(cells[c].colour, colour), RV_STR_FMT(text),
                    cells[c].colour == CLI_PLAIN ? "" : cli_colour_end(colour));
            at = begin + columns + (right ? blanks : 0);
            owed = GAP + (right ? 0 : blanks);
        } else {
            owed += widths[c] + GAP;
        }
    }
    fputc('\n', to);
}

void cli_table_print(const struct cli_table *table, FILE *to, bool colour, size_t width)
{
    size_t widths[CLI_TABLE_COLUMNS_MAX];
    struct cli_cell heads[CLI_TABLE_COLUMNS_MAX];
    rv_assert(table->columns <= CLI_TABLE_COLUMNS_MAX);
    if (table->count < table->columns || table->columns == 0)
        return;
    widths_find(table, widths);
    for (size_t c = 0; c < table->columns; c++)
        heads[c] = (struct cli_cell){rv_str_of(head_text(table, c)), CLI_DIM};
    line_print(table, heads, widths, to, colour, width);
    for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
        line_print(table, &table->cells[i], widths, to, colour, width);
}

/* rows.h - rows of every kind, made and shown field by field from what core says of them. */
#ifndef RV_TEST_LIB_ROWS_H
#define RV_TEST_LIB_ROWS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/prng.h"
#include "core/rows.h"

#include <stdint.h>

/* Every field has a value that is neither zero nor another field's where that can be; texts are
 * JSON. The row is of the task `owner`, as are the tasks that it names. */
void row_full(const struct rv_row_kind *kind, int64_t owner, struct rv_arena *arena, void *row);
/* Every field is random, extremes included; but a COUNT is 1. */
void row_random(const struct rv_row_kind *kind, int64_t owner, struct rv_prng *prng,
                struct rv_arena *arena, void *row);
struct rv_str row_random_text(struct rv_prng *prng, struct rv_arena *arena);
/* As a line of text: equal lines, equal rows. */
void row_dump(struct rv_buf *out, const struct rv_row_kind *kind, const void *row);

#endif

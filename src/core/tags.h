/* tags.h - what a submitter says of a task's business, by which it is found: names with texts. */
#ifndef RV_CORE_TAGS_H
#define RV_CORE_TAGS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stddef.h>

struct rv_json;

/* Tags are kept as the canonical JSON of one object whose members are strings. */

struct rv_tag {
    struct rv_str name;
    struct rv_str value;
};

/* NULL, or what is wrong with them, as the end of a sentence, and the error: INVALID or LIMIT. */
const char *rv_tags_wrong(const struct rv_json *tags, enum rv_err *ret_err);
/* A name has letters, digits, '.', '-' and '_' alone, so that no name stands inside of a text. */
bool rv_tag_name_good(struct rv_str name);
/* `"name":"value"` as it stands in kept tags; absent: no memory. */
struct rv_str rv_tag_needle(struct rv_arena *arena, struct rv_str name, struct rv_str value);
/* Whether kept tags have what the needle is of. */
bool rv_tags_have(struct rv_str tags, struct rv_str needle);
/* Kept tags one by one, on the arena. INVALID: they are none. */
RV_CHECK enum rv_err rv_tags_read(struct rv_arena *arena, struct rv_str tags,
                                  struct rv_tag ret_tags[static RV_TAGS_MAX], size_t *ret_count);
/* The error at which the task stands, by whose type it is found and counted: of an undo that has
 * stopped, that of its compensation. */
struct rv_str rv_task_error(const struct rv_task *task);
/* The type of an error (JSON, may be absent), on the arena; absent: it has none. */
RV_CHECK enum rv_err rv_error_type(struct rv_arena *arena, struct rv_str error,
                                   struct rv_str *ret_type);
/* What follows the last slash of an error's type. */
struct rv_str rv_error_type_last(struct rv_str type);
/* Whether the type of an error is `type`, or ends in a slash and `type`. */
RV_CHECK enum rv_err rv_error_is(struct rv_arena *arena, struct rv_str error, struct rv_str type,
                                 bool *ret_is);

#endif

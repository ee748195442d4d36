/* yaml.h - YAML or JSON text as a JSON tree, and the place in the text of what is wrong with it. */
#ifndef RV_YAML_YAML_H
#define RV_YAML_YAML_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where and why a text is refused. */
struct rv_yaml_fault {
    uint32_t line;         /* from 1 */
    uint32_t column;       /* from 1, in characters */
    struct rv_str message; /* on the arena or static: what is wrong and the cure */
};

/* One YAML 1.2 document that means the same to everyone: of plain scalars only true, false, null,
 * ~, nothing at all and numbers in JSON's own notation have a type (numbers keep their text), all
 * others are strings (`no`, `0x1F`, `1_000`); quoted scalars are strings. Keys are strings and
 * stand once. Aliases, anchors, tags and merge keys are refused. JSON text is taken as it is.
 * INVALID or LIMIT (`bytes_max`, RV_JSON_DEPTH_MAX, a full arena) with *ret_fault; MEMORY. The tree
 * may point into `text`, which must outlive it. */
RV_CHECK enum rv_err rv_yaml_parse(struct rv_arena *arena, struct rv_str text, size_t bytes_max,
                                   struct rv_json *ret_value, struct rv_yaml_fault *ret_fault);

/* The place in `text` (which rv_yaml_parse took) of the value at the RFC 6901 `pointer`, or of its
 * key if `at_key`; `offset` bytes into the value if that is a string. False when it is not there:
 * *ret_line and *ret_column then name the nearest value around it. A second pass, for errors. */
bool rv_yaml_locate(struct rv_str text, struct rv_str pointer, bool at_key, size_t offset,
                    uint32_t *ret_line, uint32_t *ret_column);

#endif

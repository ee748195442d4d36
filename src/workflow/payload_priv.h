/* payload_priv.h - a JSON value on its way through a flow: as bytes, as a tree, or as both. */
#ifndef RV_WORKFLOW_PAYLOAD_PRIV_H
#define RV_WORKFLOW_PAYLOAD_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes stay bytes until an expression looks inside, and a tree is written when it is recorded.
 * Absent: neither. */
struct rv_payload {
    struct rv_str text;
    struct rv_json tree;
    bool has_tree;
};

static inline bool rv_payload_given(const struct rv_payload *payload)
{
    return payload->text.at != NULL || payload->has_tree;
}

static inline struct rv_payload rv_payload_of(struct rv_str text)
{
    return (struct rv_payload){.text = text};
}

/* Absent reads as null. CORRUPT when the bytes are no JSON. */
RV_CHECK enum rv_err rv_payload_tree(struct rv_payload *payload, struct rv_arena *arena,
                                     struct rv_json *ret_tree);
/* Appends the bytes. */
void rv_payload_write(const struct rv_payload *payload, struct rv_buf *buf);

/* How large a tree is when written, at least; the walk ends when that passes bytes_max. A small
 * tree
 * can be huge in writing, because expressions share its parts. */
struct rv_payload_size {
    size_t bytes;
    unsigned depth;
    bool over;
};
struct rv_payload_size rv_payload_measure(const struct rv_json *tree, size_t bytes_max);

/* For tables that live shorter than a call. */
uint64_t rv_payload_hash(struct rv_str bytes);

#endif

#include "workflow/payload_priv.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/limits.h"

enum rv_err rv_payload_tree(struct rv_payload *payload, struct rv_arena *arena,
                            struct rv_json *ret_tree)
{
    if (!payload->has_tree && payload->text.at == NULL) {
        *ret_tree = rv_json_null();
        return RV_OK;
    }
    if (!payload->has_tree) {
        enum rv_err err = rv_json_parse(arena, payload->text, RV_JSON_DEPTH_MAX, &payload->tree,
                                        NULL);
        if (err == RV_ERR_INVALID || (err == RV_ERR_LIMIT && arena->refused == RV_OK))
            return RV_ERR_CORRUPT;
        if (err != RV_OK)
            return err;
        payload->has_tree = true;
    }
    *ret_tree = payload->tree;
    return RV_OK;
}

void rv_payload_write(const struct rv_payload *payload, struct rv_buf *buf)
{
    if (payload->text.at != NULL)
        rv_buf_add_str(buf, payload->text);
    else if (payload->has_tree)
        rv_json_write(buf, &payload->tree);
    else
        rv_buf_lit(buf, "null");
}

/* Stops going deeper past the limit, so that the recursion is bounded whatever the tree. */
static void measure(const struct rv_json *value, unsigned depth, size_t bytes_max,
                    struct rv_payload_size *size)
{
    rv_assert(depth <= RV_JSON_DEPTH_MAX);
    size->bytes += 1;
    if (value->type == RV_JSON_STRING || (value->type == RV_JSON_NUMBER && !value->computed))
        size->bytes += value->len;
    if (value->type != RV_JSON_ARRAY && value->type != RV_JSON_OBJECT)
        return;
    depth++;
    size->depth = depth > size->depth ? depth : size->depth;
    if (depth > RV_JSON_DEPTH_MAX)
        return;
    for (uint32_t i = 0; i < value->len && size->bytes <= bytes_max; i++) {
        if (value->type == RV_JSON_ARRAY) {
            measure(&value->u.items[i], depth, bytes_max, size);
        } else {
            size->bytes += value->u.members[i].key.len + 3;
            measure(&value->u.members[i].value, depth, bytes_max, size);
        }
    }
}

struct rv_payload_size rv_payload_measure(const struct rv_json *tree, size_t bytes_max)
{
    struct rv_payload_size size = {0};
    measure(tree, 0, bytes_max, &size);
    size.over = size.bytes > bytes_max;
    return size;
}

uint64_t rv_payload_hash(struct rv_str bytes)
{
    return rv_hash((struct rv_hash_key){UINT64_C(0x7265657665), UINT64_C(0x666c6f77)}, bytes);
}

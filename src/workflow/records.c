/* The records of the open scopes, and the uncompleted steps that they keep for a DSL retry. */
#include "base/array.h"
#include "workflow/flow_priv.h"

enum rv_err rv_flow_open(struct rv_flow *flow, uint32_t node)
{
    const struct rv_scope *scope = rv_flow_node(flow, node)->scope;
    bool root = scope == NULL || scope->role == RV_ROLE_UNDO;
    rv_assert(root == (flow->top == NULL));
    rv_assert(root || flow->top->node == scope->owner);
    struct rv_record *record = RV_NEW(flow->arena, struct rv_record);
    if (record == NULL)
        return rv_flow_full(flow);
    record->node = node;
    record->outer = flow->top;
    flow->top = record;
    return RV_OK;
}

enum rv_err rv_flow_keep_one(struct rv_flow *flow, struct rv_pairs *to, uint32_t node,
                             uint32_t number)
{
    rv_assert(rv_flow_node(flow, node)->kind == RV_NODE_CALL);
    rv_assert(to->count <= to->room);
    if (!RV_ARRAY_ROOM_ON(flow->arena, to->items, to->count, to->room))
        return rv_flow_full(flow);
    to->items[to->count++] = (struct rv_pair){node, number};
    return RV_OK;
}

enum rv_err rv_flow_keep(struct rv_flow *flow, struct rv_pairs *to, struct rv_pairs *from)
{
    rv_assert(to != from);
    for (uint32_t i = 0; i < from->count; i++)
        RV_TRY(rv_flow_keep_one(flow, to, from->items[i].node, from->items[i].number));
    from->count = 0;
    return RV_OK;
}

enum rv_err rv_flow_close(struct rv_flow *flow)
{
    struct rv_record *record = flow->top;
    rv_assert(record != NULL);
    flow->top = record->outer;
    return rv_flow_keep(flow, &flow->abandoned, &record->unfinished);
}

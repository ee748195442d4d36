/* Objects under construction: keys stay in the order of their first appearance. */
#include "expr/eval_priv.h"

#include "base/hash.h"

enum { INDEX_FROM = 12 }; /* members from which on a table pays */

static size_t key_slot(const struct object_builder *builder, struct rv_str key)
{
    /* The seed is no secret: a stranger who makes keys collide only pays with his own fuel. */
    return (size_t)rv_hash((struct rv_hash_key){1, 2}, key) & (builder->slots_len - 1);
}

/* The slot of the key, or the free one where it belongs. */
static bool find_slot(struct ev *ev, struct object_builder *builder, struct rv_str key,
                      size_t *ret_slot)
{
    rv_assert((builder->slots_len & (builder->slots_len - 1)) == 0);
    rv_assert(builder->slots_len > builder->len); /* the search ends at a free slot */
    size_t slot = key_slot(builder, key);
    while (builder->slots[slot] != 0) {
        if (!ev_spend(ev, 1))
            return false;
        if (rv_str_eq(value_str(&builder->members[builder->slots[slot] - 1].key), key))
            break;
        slot = (slot + 1) & (builder->slots_len - 1);
    }
    *ret_slot = slot;
    return true;
}

static bool index_members(struct ev *ev, struct object_builder *builder)
{
    size_t slots = 32;
    while (slots < builder->room * 2)
        slots *= 2;
    builder->slots = ev_take(ev, slots * sizeof *builder->slots);
    if (builder->slots == NULL)
        return false;
    memset(builder->slots, 0, slots * sizeof *builder->slots);
    builder->slots_len = slots;
    rv_assert(builder->len <= builder->room);
    for (size_t i = 0; i < builder->len; i++) {
        size_t slot;
        if (!find_slot(ev, builder, value_str(&builder->members[i].key), &slot))
            return false;
        builder->slots[slot] = (uint32_t)i + 1;
    }
    return true;
}

static bool builder_grow(struct ev *ev, struct object_builder *builder)
{
    size_t room = builder->room ? builder->room * 2 : 4;
    struct rv_json_member *members = ev_take(ev, room * sizeof *members);
    if (members == NULL)
        return false;
    if (builder->len > 0)
        memcpy(members, builder->members, builder->len * sizeof *members);
    builder->members = members;
    builder->room = room;
    return room <= INDEX_FROM || index_members(ev, builder);
}

bool object_init(struct ev *ev, struct object_builder *builder, size_t room)
{
    *builder = (struct object_builder){.room = room};
    if (room == 0)
        return true;
    builder->members = ev_take(ev, room * sizeof *builder->members);
    return builder->members != NULL && (room <= INDEX_FROM || index_members(ev, builder));
}

struct rv_json_member *object_find(struct ev *ev, struct object_builder *builder, struct rv_str key)
{
    size_t slot;
    if (builder->slots != NULL)
        return ev_spend(ev, 3) && find_slot(ev, builder, key, &slot) && builder->slots[slot] != 0
                   ? &builder->members[builder->slots[slot] - 1]
                   : NULL;
    for (size_t i = 0; i < builder->len; i++)
        if (rv_str_eq(value_str(&builder->members[i].key), key))
            return &builder->members[i];
    return NULL;
}

bool object_put(struct ev *ev, struct object_builder *builder, const struct rv_json *key,
                const struct rv_json *value)
{
    struct rv_json_member *member = object_find(ev, builder, value_str(key));
    if (member != NULL) {
        member->value = *value;
        return true;
    }
    if (!ev_spend(ev, 1) || (builder->len == builder->room && !builder_grow(ev, builder)))
        return false;
    size_t slot;
    if (builder->slots != NULL) {
        if (!find_slot(ev, builder, value_str(key), &slot))
            return false;
        builder->slots[slot] = (uint32_t)builder->len + 1;
    }
    rv_assert(builder->len < builder->room);
    builder->members[builder->len++] = (struct rv_json_member){*key, *value};
    return true;
}

bool object_put_all(struct ev *ev, struct object_builder *builder, const struct rv_json *object)
{
    for (uint32_t i = 0; i < object->len; i++)
        if (!object_put(ev, builder, &object->u.members[i].key, &object->u.members[i].value))
            return false;
    return true;
}

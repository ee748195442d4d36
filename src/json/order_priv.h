/* order_priv.h - the members of an object in the order of their keys, without moving them. */
#ifndef RV_JSON_ORDER_PRIV_H
#define RV_JSON_ORDER_PRIV_H

#include "json/json.h"

struct json_sort_entry {
    uint64_t prefix; /* the key's first eight bytes, so that most comparisons need no more */
    const struct rv_json_member *member; /* borrowed from the object */
};

/* Small objects, and all when there is no memory, are walked by looking for the next larger key
 * each time: n squared, which for 16 members is less than a sort. */
struct json_order {
    const struct rv_json *object;
    struct json_sort_entry *sorted; /* owned; NULL: look for the next larger key */
    const struct rv_json_member *last;
    uint32_t taken;
};

enum { JSON_SMALL_OBJECT = 16 };

void rv_json_order_init(struct json_order *order, const struct rv_json *object);
void rv_json_order_done(struct json_order *order);
/* The next member; NULL at the end. */
const struct rv_json_member *rv_json_order_next(struct json_order *order);

/* Sorts `count` entries made by rv_json_sort_entry_of; `spare` has room for as many more. A merge
 * sort: n log n whatever the keys are, since strangers choose them. */
void rv_json_sort(struct json_sort_entry *entries, struct json_sort_entry *spare, size_t count);
struct json_sort_entry rv_json_sort_entry_of(const struct rv_json_member *member);

static inline struct rv_str json_key(const struct rv_json_member *member)
{
    return (struct rv_str){member->key.u.text, member->key.len};
}

#endif

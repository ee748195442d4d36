#include "json/order_priv.h"

#include "base/assert.h"

#include <stdlib.h>

struct json_sort_entry rv_json_sort_entry_of(const struct rv_json_member *member)
{
    uint64_t prefix = 0;
    for (uint32_t i = 0; i < 8; i++) {
        unsigned char byte = i < member->key.len ? (unsigned char)member->key.u.text[i] : 0;
        prefix = prefix << 8 | byte;
    }
    return (struct json_sort_entry){prefix, member};
}

static int entry_cmp(const struct json_sort_entry *a, const struct json_sort_entry *b)
{
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    return rv_str_cmp(json_key(a->member), json_key(b->member));
}

static bool is_sorted(const struct json_sort_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (entry_cmp(&entries[i - 1], &entries[i]) > 0)
            return false;
    return true;
}

/* Merges the runs [from, middle) and [middle, to) of `in` into `out`. */
static void merge(const struct json_sort_entry *in, struct json_sort_entry *out, size_t from,
                  size_t middle, size_t to)
{
    size_t left = from;
    size_t right = middle;
    rv_assert(from <= middle);
    rv_assert(middle <= to);
    for (size_t i = from; i < to; i++) {
        bool take_left = left < middle && (right == to || entry_cmp(&in[left], &in[right]) <= 0);
        out[i] = take_left ? in[left++] : in[right++];
    }
}

void rv_json_sort(struct json_sort_entry *entries, struct json_sort_entry *spare, size_t count)
{
    struct json_sort_entry *in = entries;
    struct json_sort_entry *out = spare;
    if (is_sorted(entries, count))
        return;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t from = 0; from < count; from += 2 * run) {
            size_t middle = from + run < count ? from + run : count;
            size_t to = middle + run < count ? middle + run : count;
            merge(in, out, from, middle, to);
        }
        struct json_sort_entry *swap = in;
        in = out;
        out = swap;
    }
    if (in != entries)
        memcpy(entries, in, count * sizeof *entries);
}

void rv_json_order_init(struct json_order *order, const struct rv_json *object)
{
    rv_assert(object->type == RV_JSON_OBJECT);
    *order = (struct json_order){.object = object};
    if (object->len <= JSON_SMALL_OBJECT)
        return;
    order->sorted = malloc(2 * (size_t)object->len * sizeof *order->sorted);
    if (order->sorted == NULL)
        return;
    for (uint32_t i = 0; i < object->len; i++)
        order->sorted[i] = rv_json_sort_entry_of(&object->u.members[i]);
    rv_json_sort(order->sorted, order->sorted + object->len, object->len);
}

void rv_json_order_done(struct json_order *order)
{
    free(order->sorted);
}

static const struct rv_json_member *next_larger(const struct json_order *order)
{
    const struct rv_json_member *next = NULL;
    for (uint32_t i = 0; i < order->object->len; i++) {
        const struct rv_json_member *member = &order->object->u.members[i];
        if (order->last != NULL && rv_str_cmp(json_key(member), json_key(order->last)) <= 0)
            continue;
        if (next == NULL || rv_str_cmp(json_key(member), json_key(next)) < 0)
            next = member;
    }
    return next;
}

const struct rv_json_member *rv_json_order_next(struct json_order *order)
{
    rv_assert(order->taken <= order->object->len);
    if (order->taken == order->object->len)
        return NULL;
    const struct rv_json_member *next = order->sorted != NULL ? order->sorted[order->taken].member
                                                              : next_larger(order);
    order->taken++;
    order->last = next;
    return next;
}

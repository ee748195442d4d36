/* Equality and order. Both walk two trees in step, and both count what they look at: parts of a
 * tree may be shared, so a few hundred bytes on an arena can stand for 2^60 values. */
#include "json/order_priv.h"

#include "base/assert.h"

#include <math.h>

enum { TEXT_BYTES_PER_FUEL = 64 };

/* `depth` is how many levels more are looked at. */
struct json_walk {
    int64_t fuel;
    unsigned depth;
};

static bool spend(struct json_walk *walk, int64_t units)
{
    walk->fuel -= units + 1;
    return walk->fuel >= 0;
}

static uint32_t text_units(const struct rv_json *a, const struct rv_json *b)
{
    return (a->len < b->len ? a->len : b->len) / TEXT_BYTES_PER_FUEL;
}

static bool is_text(const struct rv_json *value)
{
    return value->type == RV_JSON_STRING || (value->type == RV_JSON_NUMBER && !value->computed);
}

/* Both objects in the order of their keys, member by member. */
struct json_pairs {
    struct json_order a;
    struct json_order b;
};

static bool pairs_init(struct json_pairs *pairs, struct json_walk *walk, const struct rv_json *a,
                       const struct rv_json *b)
{
    /* The order costs up to about four looks at each member. */
    if (!spend(walk, 4 * ((int64_t)a->len + b->len)))
        return false;
    rv_json_order_init(&pairs->a, a);
    rv_json_order_init(&pairs->b, b);
    return true;
}

static void pairs_done(struct json_pairs *pairs)
{
    rv_json_order_done(&pairs->a);
    rv_json_order_done(&pairs->b);
}

static bool values_equal(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b);

static bool members_equal(struct json_walk *walk, const struct rv_json_member *a,
                          const struct rv_json_member *b)
{
    return rv_str_eq(json_key(a), json_key(b)) && values_equal(walk, &a->value, &b->value);
}

/* Of the same length. */
static bool objects_equal(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b)
{
    bool same_order = true;
    rv_assert(a->len == b->len);
    for (uint32_t i = 0; i < a->len && same_order; i++)
        same_order = rv_str_eq(json_key(&a->u.members[i]), json_key(&b->u.members[i]));
    if (same_order) {
        for (uint32_t i = 0; i < a->len; i++)
            if (!values_equal(walk, &a->u.members[i].value, &b->u.members[i].value))
                return false;
        return true;
    }
    struct json_pairs pairs;
    bool equal = pairs_init(&pairs, walk, a, b);
    if (!equal)
        return false;
    for (uint32_t i = 0; i < a->len && equal; i++)
        equal = members_equal(walk, rv_json_order_next(&pairs.a), rv_json_order_next(&pairs.b));
    pairs_done(&pairs);
    return equal;
}

static bool arrays_equal(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b)
{
    for (uint32_t i = 0; i < a->len; i++)
        if (!values_equal(walk, &a->u.items[i], &b->u.items[i]))
            return false;
    return true;
}

static bool texts_equal(const struct rv_json *a, const struct rv_json *b)
{
    return rv_str_eq((struct rv_str){a->u.text, a->len}, (struct rv_str){b->u.text, b->len});
}

static bool containers_equal(struct json_walk *walk, const struct rv_json *a,
                             const struct rv_json *b)
{
    if (a->len != b->len || walk->depth == 0)
        return false;
    rv_assert(walk->depth <= RV_JSON_NESTING_MAX);
    walk->depth--;
    bool equal = a->type == RV_JSON_OBJECT ? objects_equal(walk, a, b) : arrays_equal(walk, a, b);
    walk->depth++;
    return equal;
}

static bool values_equal(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b)
{
    if (a->type != b->type || !spend(walk, is_text(a) && is_text(b) ? text_units(a, b) : 0))
        return false;
    switch ((enum rv_json_type)a->type) {
    case RV_JSON_NULL:
        return true;
    case RV_JSON_BOOL:
        return a->truth == b->truth;
    case RV_JSON_NUMBER:
        return rv_json_compare_numbers(a, b) == 0 && !(a->computed && isnan(a->u.real));
    case RV_JSON_STRING:
        return texts_equal(a, b);
    case RV_JSON_ARRAY:
    case RV_JSON_OBJECT:
        return containers_equal(walk, a, b);
    }
    return false;
}

bool rv_json_equal_within(const struct rv_json *a, const struct rv_json *b, int64_t *fuel)
{
    struct json_walk walk = {*fuel, RV_JSON_NESTING_MAX};
    bool equal = values_equal(&walk, a, b);
    *fuel = walk.fuel;
    return equal;
}

bool rv_json_equal(const struct rv_json *a, const struct rv_json *b)
{
    int64_t fuel = INT64_MAX;
    return rv_json_equal_within(a, b, &fuel);
}

static int values_compare(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b);

/* First the sorted keys as two arrays, then the values in the order of the keys (jq manual, sort).
 * One walk does both: the first pair of different keys decides, and only if there is none, the
 * first pair of different values. */
static int objects_compare(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b)
{
    struct json_pairs pairs;
    int by_key = 0;
    int by_value = 0;
    if (!pairs_init(&pairs, walk, a, b))
        return 0;
    for (;;) {
        const struct rv_json_member *x = rv_json_order_next(&pairs.a);
        const struct rv_json_member *y = rv_json_order_next(&pairs.b);
        if (x == NULL || y == NULL) {
            by_key = (x != NULL) - (y != NULL);
            break;
        }
        by_key = rv_str_cmp(json_key(x), json_key(y));
        if (by_key != 0)
            break;
        if (by_value == 0)
            by_value = values_compare(walk, &x->value, &y->value);
    }
    pairs_done(&pairs);
    return by_key != 0 ? by_key : by_value;
}

static int arrays_compare(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b)
{
    uint32_t both = a->len < b->len ? a->len : b->len;
    for (uint32_t i = 0; i < both && walk->fuel >= 0; i++) {
        int order = values_compare(walk, &a->u.items[i], &b->u.items[i]);
        if (order != 0)
            return order;
    }
    return (a->len > b->len) - (a->len < b->len);
}

static int containers_compare(struct json_walk *walk, const struct rv_json *a,
                              const struct rv_json *b)
{
    bool object = a->type == RV_JSON_OBJECT;
    bool same = a->len == b->len &&
                (object ? a->u.members == b->u.members : a->u.items == b->u.items);
    if (same || walk->depth == 0)
        return 0;
    walk->depth--;
    int order = object ? objects_compare(walk, a, b) : arrays_compare(walk, a, b);
    walk->depth++;
    return order;
}

static int values_compare(struct json_walk *walk, const struct rv_json *a, const struct rv_json *b)
{
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    if (!spend(walk, is_text(a) && is_text(b) ? text_units(a, b) : 0))
        return 0;
    switch ((enum rv_json_type)a->type) {
    case RV_JSON_NULL:
        return 0;
    case RV_JSON_BOOL:
        return a->truth - b->truth;
    case RV_JSON_NUMBER:
        return rv_json_compare_numbers(a, b);
    case RV_JSON_STRING:
        return rv_str_cmp(rv_json_str(a), rv_json_str(b));
    case RV_JSON_ARRAY:
    case RV_JSON_OBJECT:
        return containers_compare(walk, a, b);
    }
    return 0;
}

int rv_json_compare_within(const struct rv_json *a, const struct rv_json *b, int64_t *fuel)
{
    struct json_walk walk = {*fuel, RV_JSON_NESTING_MAX};
    int order = values_compare(&walk, a, b);
    *fuel = walk.fuel;
    return order;
}

int rv_json_compare(const struct rv_json *a, const struct rv_json *b)
{
    int64_t fuel = INT64_MAX;
    return rv_json_compare_within(a, b, &fuel);
}

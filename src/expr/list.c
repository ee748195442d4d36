/* Arrays and objects as wholes: length, keys, entries, sorting and grouping. */
#include "expr/eval_priv.h"

#include "expr/utf8_priv.h"

#include <math.h>

static bool is_container(const struct rv_json *value)
{
    return value->type == RV_JSON_ARRAY || value->type == RV_JSON_OBJECT;
}

bool native_not(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)ev, (void)args;
    *ret = rv_json_bool(!value_truth(in));
    return true;
}

bool native_type(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    (void)ev, (void)args;
    *ret = rv_json_of_str(rv_str_of(value_kind(in)));
    return true;
}

bool native_error(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                  struct rv_json *ret)
{
    (void)args, (void)ret;
    return ev_raise_value(ev, in);
}

bool native_error_value(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                        struct rv_json *ret)
{
    (void)in, (void)ret;
    return ev_raise_value(ev, &args[0]);
}

bool native_length(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    (void)args;
    if (in->type == RV_JSON_BOOL)
        return ev_raise(ev, "boolean (%s) has no length", value_brief(in).text);
    double length = in->type == RV_JSON_NULL ? 0 : in->len;
    if (in->type == RV_JSON_NUMBER)
        return arith_absolute(ev, in, ret);
    if (in->type == RV_JSON_STRING)
        length = (double)utf8_count(value_str(in));
    *ret = rv_json_of_real(length);
    return in->type != RV_JSON_STRING || ev_spend(ev, in->len / 64);
}

bool native_utf8_length(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                        struct rv_json *ret)
{
    (void)args;
    if (in->type != RV_JSON_STRING)
        return ev_raise(ev, "%s (%s) only strings have UTF-8 byte length", value_kind(in),
                        value_brief(in).text);
    *ret = rv_json_of_real(in->len);
    return true;
}

static bool has_no_keys(struct ev *ev, const struct rv_json *value)
{
    return ev_raise(ev, "%s (%s) has no keys", value_kind(value), value_brief(value).text);
}

static bool keys_of(struct ev *ev, const struct rv_json *in, bool sorted, struct rv_json *ret)
{
    if (!is_container(in))
        return has_no_keys(ev, in);
    struct rv_json *keys = ev_take(ev, ((size_t)in->len + 1) * sizeof *keys);
    const struct rv_json_member **members = ev_take(ev, ((size_t)in->len + 1) * sizeof *members);
    if (keys == NULL || members == NULL || !ev_spend(ev, in->len / 8))
        return false;
    bool object = in->type == RV_JSON_OBJECT;
    for (uint32_t i = 0; object && i < in->len; i++)
        members[i] = &in->u.members[i];
    if (object && sorted && !value_sort_members(ev, members, in->len))
        return false;
    for (uint32_t i = 0; i < in->len; i++)
        keys[i] = object ? members[i]->key : rv_json_of_real(i);
    *ret = ev_array(ev, keys, in->len);
    return true;
}

bool native_keys(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    (void)args;
    return keys_of(ev, in, true, ret);
}

bool native_keys_as_is(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                       struct rv_json *ret)
{
    (void)args;
    return keys_of(ev, in, false, ret);
}

bool native_has(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    bool has;
    if (in->type == RV_JSON_OBJECT && args[0].type == RV_JSON_STRING)
        has = value_get(ev, in, value_str(&args[0])) != NULL;
    else if (in->type == RV_JSON_ARRAY && args[0].type == RV_JSON_NUMBER)
        has = trunc(value_real(&args[0])) >= 0 && value_real(&args[0]) < in->len;
    else if (in->type == RV_JSON_NULL)
        has = false;
    else
        return ev_raise(ev, "Cannot check whether %s has a %s key", value_kind(in),
                        value_kind(&args[0]));
    *ret = rv_json_bool(has);
    return true;
}

static bool contains(struct ev *ev, const struct rv_json *a, const struct rv_json *b,
                     bool *ret_contains);

static bool array_contains(struct ev *ev, const struct rv_json *a, const struct rv_json *b,
                           bool *ret_contains)
{
    bool all = true;
    for (uint32_t i = 0; all && i < b->len; i++) {
        bool any = false;
        for (uint32_t j = 0; !any && j < a->len; j++)
            if (!contains(ev, &a->u.items[j], &b->u.items[i], &any))
                return false;
        all = any;
    }
    *ret_contains = all;
    return true;
}

static bool object_contains(struct ev *ev, const struct rv_json *a, const struct rv_json *b,
                            bool *ret_contains)
{
    bool all = true;
    for (uint32_t i = 0; all && i < b->len; i++) {
        const struct rv_json *mine = value_get(ev, a, value_str(&b->u.members[i].key));
        all = mine != NULL;
        if (all && !contains(ev, mine, &b->u.members[i].value, &all))
            return false;
    }
    *ret_contains = all;
    return true;
}

static bool contains(struct ev *ev, const struct rv_json *a, const struct rv_json *b,
                     bool *ret_contains)
{
    int order;
    if (!ev_spend(ev, 1))
        return false;
    if (a->type == RV_JSON_STRING && b->type == RV_JSON_STRING) {
        size_t at;
        bool go = text_find(ev, value_str(a), value_str(b), 0, &at);
        *ret_contains = go && at <= a->len;
        return go;
    }
    if (a->type == b->type && is_container(a)) {
        if (!ev_enter(ev))
            return false;
        bool go = a->type == RV_JSON_ARRAY ? array_contains(ev, a, b, ret_contains)
                                           : object_contains(ev, a, b, ret_contains);
        ev->depth--;
        return go;
    }
    bool go = value_compare(ev, a, b, &order);
    *ret_contains = go && order == 0;
    return go;
}

bool native_contains(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    bool found;
    bool truths_differ = in->type == RV_JSON_BOOL && in->truth != args[0].truth;
    if (in->type != args[0].type || truths_differ) { /* true and false are two kinds in jq */
        struct brief other = value_brief(&args[0]);
        return ev_raise(ev, "%s (%s) and %s (%s) cannot have their containment checked",
                        value_kind(in), value_brief(in).text, value_kind(&args[0]), other.text);
    }
    if (!contains(ev, in, &args[0], &found))
        return false;
    *ret = rv_json_bool(found);
    return true;
}

static bool cannot_iterate(struct ev *ev, const struct rv_json *value)
{
    return ev_raise(ev, "Cannot iterate over %s (%s)", value_kind(value), value_brief(value).text);
}

bool native_add_all(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    (void)args;
    if (!is_container(in))
        return cannot_iterate(ev, in);
    struct rv_json sum[2] = {rv_json_null(), rv_json_null()};
    for (uint32_t i = 0; i < in->len; i++) {
        struct rv_json next;
        sum[1] = in->type == RV_JSON_ARRAY ? in->u.items[i] : in->u.members[i].value;
        if (!ev_spend(ev, 1) || !native_add(ev, in, sum, &next))
            return false;
        sum[0] = next;
    }
    *ret = sum[0];
    return true;
}

bool native_to_entries(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                       struct rv_json *ret)
{
    struct rv_json keys;
    (void)args;
    if (!keys_of(ev, in, false, &keys))
        return false;
    struct rv_json *entries = ev_take(ev, ((size_t)in->len + 1) * sizeof *entries);
    struct rv_json_member *members = ev_take(ev, 2 * ((size_t)in->len + 1) * sizeof *members);
    if (entries == NULL || members == NULL)
        return false;
    for (uint32_t i = 0; i < in->len; i++) {
        const struct rv_json *value = in->type == RV_JSON_ARRAY ? &in->u.items[i]
                                                                : &in->u.members[i].value;
        members[2 * i] = (struct rv_json_member){rv_json_of_str(RV_STR("key")), keys.u.items[i]};
        members[2 * i + 1] = (struct rv_json_member){rv_json_of_str(RV_STR("value")), *value};
        entries[i] = ev_object(ev, &members[2 * i], 2);
    }
    *ret = ev_array(ev, entries, in->len);
    return true;
}

/* The first of some names that an entry has with a value that counts (is not null or false). */
static const struct rv_json *entry_get(struct ev *ev, const struct rv_json *entry,
                                       const char *const *names, bool truth_needed)
{
    const struct rv_json *found = NULL;
    for (; *names != NULL; names++) {
        found = value_get(ev, entry, rv_str_of(*names));
        if (found != NULL && (!truth_needed || value_truth(found)))
            return found;
    }
    return found;
}

/* A false key and a null key are texts too (jq 1.7, from_entries). */
static bool entry_key(struct ev *ev, const struct rv_json *entry, struct rv_json *ret)
{
    static const char *const others[] = {"k", "name", "Name", "K", "Key", NULL};
    const struct rv_json *key = value_get(ev, entry, RV_STR("key"));
    if (key == NULL || key->type == RV_JSON_NULL)
        key = entry_get(ev, entry, others, true);
    struct rv_json value = key ? *key : rv_json_null();
    if (is_container(&value))
        return ev_raise(ev, "Cannot use %s (%s) as object key", value_kind(&value),
                        value_brief(&value).text);
    return native_tostring(ev, &value, NULL, ret);
}

bool native_from_entries(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                         struct rv_json *ret)
{
    static const char *const values[] = {"value", "v", "Value", "V", NULL};
    struct object_builder builder;
    (void)args;
    if (!is_container(in))
        return cannot_iterate(ev, in);
    if (!object_init(ev, &builder, in->len))
        return false;
    for (uint32_t i = 0; i < in->len; i++) {
        const struct rv_json *entry = in->type == RV_JSON_ARRAY ? &in->u.items[i]
                                                                : &in->u.members[i].value;
        if (entry->type != RV_JSON_OBJECT)
            return ev_raise(ev, "Cannot index %s with string \"key\"", value_kind(entry));
        const struct rv_json *value = entry_get(ev, entry, values, false);
        const struct rv_json none = rv_json_null();
        struct rv_json key;
        if (!entry_key(ev, entry, &key) || !object_put(ev, &builder, &key, value ? value : &none))
            return false;
    }
    *ret = ev_object(ev, builder.members, builder.len);
    return true;
}

/* What has the length 0 gives an empty array, as in jq. */
bool native_reverse(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    (void)args;
    if (in->type == RV_JSON_NULL ||
        ((in->type == RV_JSON_OBJECT || in->type == RV_JSON_STRING) && in->len == 0) ||
        (in->type == RV_JSON_NUMBER && value_real(in) == 0))
        return *ret = ev_array(ev, NULL, 0), true;
    if (in->type != RV_JSON_ARRAY)
        return ev_raise(ev, "Cannot reverse %s (%s), as it is not an array", value_kind(in),
                        value_brief(in).text);
    struct rv_json *items = ev_take(ev, ((size_t)in->len + 1) * sizeof *items);
    if (items == NULL)
        return false;
    for (uint32_t i = 0; i < in->len; i++)
        items[i] = in->u.items[in->len - 1 - i];
    *ret = ev_array(ev, items, in->len);
    return true;
}

static bool flatten_count(struct ev *ev, const struct rv_json *value, double depth,
                          struct rv_json *items, size_t *count)
{
    if (!ev_spend(ev, 1) || !ev_enter(ev))
        return false;
    bool go = true;
    for (uint32_t i = 0; go && i < value->len; i++) {
        const struct rv_json *item = value->type == RV_JSON_ARRAY ? &value->u.items[i]
                                                                  : &value->u.members[i].value;
        if (item->type == RV_JSON_ARRAY && depth > 0) {
            go = flatten_count(ev, item, depth - 1, items, count);
        } else {
            go = ev_spend(ev, 1);
            if (items != NULL)
                items[*count] = *item;
            ++*count;
        }
    }
    ev->depth--;
    return go;
}

/* Counts first, since shared arrays can be far larger flat than they are. */
bool native_flatten(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    size_t count = 0;
    if (!is_container(in))
        return cannot_iterate(ev, in);
    double depth = args[0].type == RV_JSON_NUMBER ? value_real(&args[0]) : 0;
    if (!flatten_count(ev, in, depth, NULL, &count))
        return false;
    struct rv_json *items = ev_take(ev, (count + 1) * sizeof *items);
    size_t room = count;
    count = 0;
    if (items == NULL || !flatten_count(ev, in, depth, items, &count))
        return false;
    rv_assert(count == room);
    *ret = ev_array(ev, items, count);
    return true;
}

/* Items with the keys that they are sorted by. */
struct keyed {
    const struct rv_json *key;
    const struct rv_json *item;
};

static bool merge_keyed(struct ev *ev, struct keyed *items, struct keyed *spare, size_t len)
{
    if (len < 2)
        return true;
    size_t half = len / 2;
    if (!merge_keyed(ev, items, spare, half) || !merge_keyed(ev, items + half, spare, len - half))
        return false;
    memcpy(spare, items, half * sizeof *items);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        int order = 1;
        if (j < len && !value_compare(ev, items[j].key, spare[i].key, &order))
            return false;
        items[k] = j < len && order < 0 ? items[j++] : spare[i++];
    }
    return true;
}

/* `keys` has one for each item; NULL when the items are their own keys. Sorted, stably. */
static struct keyed *keyed_items(struct ev *ev, const struct rv_json *in,
                                 const struct rv_json *keys, bool sorted)
{
    struct keyed *items = ev_take(ev, 2 * ((size_t)in->len + 1) * sizeof *items);
    if (items == NULL)
        return NULL;
    for (uint32_t i = 0; i < in->len; i++)
        items[i] = (struct keyed){keys ? &keys->u.items[i] : &in->u.items[i], &in->u.items[i]};
    if (sorted && !merge_keyed(ev, items, items + in->len + 1, in->len))
        return NULL;
    return items;
}

/* The builtins that call the functions below computed `keys` from the same input. */
static bool keyed_input(struct ev *ev, const struct rv_json *in, const struct rv_json *keys,
                        const char *done)
{
    if (in->type == RV_JSON_ARRAY && (keys == NULL || keys->len == in->len))
        return true;
    return ev_raise(ev, "%s (%s) cannot be %s, as it is not an array", value_kind(in),
                    value_brief(in).text, done);
}

static bool sorted_by(struct ev *ev, const struct rv_json *in, const struct rv_json *keys,
                      struct rv_json *ret)
{
    if (!keyed_input(ev, in, keys, "sorted"))
        return false;
    struct keyed *sorted = keyed_items(ev, in, keys, true);
    struct rv_json *items = sorted ? ev_take(ev, ((size_t)in->len + 1) * sizeof *items) : NULL;
    if (items == NULL)
        return false;
    for (uint32_t i = 0; i < in->len; i++)
        items[i] = *sorted[i].item;
    *ret = ev_array(ev, items, in->len);
    return true;
}

bool native_sort(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                 struct rv_json *ret)
{
    (void)args;
    return sorted_by(ev, in, NULL, ret);
}

bool native_sort_by(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    return sorted_by(ev, in, &args[0], ret);
}

/* How many items from `from` on have the same key. */
static bool run_length(struct ev *ev, const struct keyed *items, uint32_t from, uint32_t len,
                       uint32_t *ret_length)
{
    uint32_t to = from + 1;
    for (; to < len; to++) {
        int order;
        if (!value_compare(ev, items[from].key, items[to].key, &order))
            return false;
        if (order != 0)
            break;
    }
    *ret_length = to - from;
    return true;
}

/* One array for each run of equal keys, or only its first item. */
static bool group_runs(struct ev *ev, const struct rv_json *in, const struct rv_json *keys,
                       bool whole, struct rv_json *ret)
{
    if (!keyed_input(ev, in, keys, "grouped"))
        return false;
    struct keyed *sorted = keyed_items(ev, in, keys, true);
    struct rv_json *groups = sorted ? ev_take(ev, ((size_t)in->len + 1) * sizeof *groups) : NULL;
    struct rv_json *items = groups ? ev_take(ev, ((size_t)in->len + 1) * sizeof *items) : NULL;
    uint32_t count = 0;
    for (uint32_t i = 0, length; items != NULL && i < in->len; i += length) {
        if (!run_length(ev, sorted, i, in->len, &length))
            return false;
        for (uint32_t j = i; j < i + length; j++)
            items[j] = *sorted[j].item;
        groups[count++] = whole ? ev_array(ev, &items[i], length) : items[i];
    }
    if (items == NULL)
        return false;
    *ret = ev_array(ev, groups, count);
    return true;
}

bool native_group_by(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    return group_runs(ev, in, &args[0], true, ret);
}

bool native_unique_by(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                      struct rv_json *ret)
{
    return group_runs(ev, in, &args[0], false, ret);
}

/* Of equal ones the first is the least and the last the greatest. */
static bool extreme(struct ev *ev, const struct rv_json *in, const struct rv_json *keys,
                    bool greatest, struct rv_json *ret)
{
    if (!keyed_input(ev, in, keys, "iterated over"))
        return false;
    uint32_t best = 0;
    for (uint32_t i = 1; i < in->len; i++) {
        int order;
        if (!value_compare(ev, &keys->u.items[i], &keys->u.items[best], &order))
            return false;
        if (greatest ? order >= 0 : order < 0)
            best = i;
    }
    *ret = in->len > 0 ? in->u.items[best] : rv_json_null();
    return true;
}

bool native_min_by(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    return extreme(ev, in, &args[0], false, ret);
}

bool native_max_by(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    return extreme(ev, in, &args[0], true, ret);
}

/* Paths: arrays of keys that say where in a value something stands; get, set and delete by them.
 * Values are immutable, so a change copies each container on the way and shares the rest. */
#include "expr/eval_priv.h"

#include <math.h>

const struct path path_root = {.up = NULL};
const struct path path_lost = {.up = NULL};

bool path_array(struct ev *ev, const struct path *path, struct rv_json *ret)
{
    size_t count = 0;
    for (const struct path *at = path; at != PATH_ROOT; at = at->up)
        count++;
    struct rv_json *keys = ev_take(ev, (count + 1) * sizeof *keys);
    if (keys == NULL || !ev_spend(ev, count / 8))
        return false;
    *ret = ev_array(ev, keys, count);
    for (const struct path *at = path; at != PATH_ROOT; at = at->up)
        keys[--count] = at->key;
    rv_assert(count == 0);
    return true;
}

bool path_keep(struct ev *ev, const struct path *path, const struct path **ret)
{
    const struct path **end = ret;
    for (; path != PATH_ROOT && path != PATH_LOST; path = path->up) {
        struct path *copy = ev_take(ev, sizeof *copy);
        if (copy == NULL || !ev_spend(ev, 1))
            return false;
        *copy = *path;
        *end = copy;
        end = &copy->up;
    }
    *end = path;
    return true;
}

bool path_get(struct ev *ev, const struct rv_json *value, const struct rv_json *path,
              struct rv_json *ret)
{
    struct rv_json at = *value;
    for (uint32_t i = 0; i < path->len && at.type != RV_JSON_NULL; i++) {
        struct rv_json next;
        if (!ev_spend(ev, 1) || !value_index(ev, &at, &path->u.items[i], &next))
            return false;
        at = next;
    }
    *ret = at;
    return true;
}

static bool put_member(struct ev *ev, const struct rv_json *object, const struct rv_json *key,
                       const struct rv_json *new, struct rv_json *ret)
{
    struct rv_json_member member = {*key, *new};
    const struct rv_json *old = value_get(ev, object, value_str(key));
    if (old == NULL) {
        const struct rv_json_member *members = ev_append(
            ev, object->u.members, object->len * sizeof *members, &member, sizeof member);
        *ret = ev_object(ev, members, (size_t)object->len + 1);
        return members != NULL;
    }
    struct rv_json_member *members = ev_take(ev, object->len * sizeof *members);
    if (members == NULL)
        return false;
    memcpy(members, object->u.members, object->len * sizeof *members);
    for (uint32_t i = 0; i < object->len; i++)
        if (&object->u.members[i].value == old)
            members[i].value = *new;
    *ret = ev_object(ev, members, object->len);
    return true;
}

static bool put_item(struct ev *ev, const struct rv_json *array, double at,
                     const struct rv_json *new, struct rv_json *ret)
{
    double index = value_whole_index(array->len, at);
    if (isnan(at))
        return ev_raise(ev, "Cannot set array element at NaN index");
    if (index < 0)
        return ev_raise(ev, "Out of bounds negative array index");
    if (index == array->len) {
        const struct rv_json *longer = ev_append(ev, array->u.items, array->len * sizeof *longer,
                                                 new, sizeof *new);
        *ret = ev_array(ev, longer, (size_t)array->len + 1);
        return longer != NULL;
    }
    double len = index < array->len ? array->len : index + 1;
    if (len > UINT32_MAX / sizeof *new)
        return ev_limit(ev, "the expression created an array that is too long");
    struct rv_json *items = ev_take(ev, (size_t)len * sizeof *items);
    if (items == NULL)
        return false;
    if (array->len > 0)
        memcpy(items, array->u.items, array->len * sizeof *items);
    for (size_t i = array->len; i < (size_t)len; i++)
        items[i] = rv_json_null();
    rv_assert(index < len);
    items[(size_t)index] = *new;
    *ret = ev_array(ev, items, (size_t)len);
    return true;
}

/* The part of an array that a slice's key names. */
static bool slice_part(struct ev *ev, const struct rv_json *array, const struct rv_json *key,
                       size_t *ret_from, size_t *ret_to)
{
    static const struct rv_json none = {.type = RV_JSON_NULL};
    const struct rv_json *from = value_get(ev, key, RV_STR("start"));
    const struct rv_json *to = value_get(ev, key, RV_STR("end"));
    return value_slice_bounds(ev, array->len, from ? from : &none, to ? to : &none, ret_from,
                              ret_to);
}

static bool put_slice(struct ev *ev, const struct rv_json *array, const struct rv_json *key,
                      const struct rv_json *new, struct rv_json *ret)
{
    size_t from, to;
    if (new->type != RV_JSON_ARRAY)
        return ev_raise(ev, "A slice of an array can only be assigned another array");
    if (!slice_part(ev, array, key, &from, &to))
        return false;
    rv_assert(from <= to);
    rv_assert(to <= array->len);
    size_t len = array->len - (to - from) + new->len;
    struct rv_json *items = ev_take(ev, (len + 1) * sizeof *items);
    if (items == NULL)
        return false;
    if (from > 0)
        memcpy(items, array->u.items, from * sizeof *items);
    if (new->len > 0)
        memcpy(items + from, new->u.items, new->len * sizeof *items);
    if (to < array->len)
        memcpy(items + from + new->len, array->u.items + to, (array->len - to) * sizeof *items);
    *ret = ev_array(ev, items, len);
    return true;
}

bool path_put(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
              const struct rv_json *new, struct rv_json *ret)
{
    bool nothing = value->type == RV_JSON_NULL;
    bool array = value->type == RV_JSON_ARRAY || nothing;
    if (key->type == RV_JSON_STRING && (value->type == RV_JSON_OBJECT || nothing))
        return put_member(ev, value, key, new, ret);
    if (key->type == RV_JSON_NUMBER && array)
        return put_item(ev, value, value_real(key), new, ret);
    if (key->type == RV_JSON_OBJECT && array)
        return put_slice(ev, value, key, new, ret);
    if (key->type == RV_JSON_OBJECT)
        return ev_raise(ev, "Cannot update field at object index of %s", value_kind(value));
    return ev_raise(ev, "Cannot index %s with %s", value_kind(value), value_kind(key));
}

bool path_set(struct ev *ev, const struct rv_json *value, const struct rv_json *keys, size_t count,
              const struct rv_json *new, struct rv_json *ret)
{
    struct rv_json child, changed;
    if (count == 0)
        return *ret = *new, true;
    if (!ev_spend(ev, 1) || !ev_enter(ev))
        return false;
    bool go = value_index(ev, value, &keys[0], &child) &&
              path_set(ev, &child, keys + 1, count - 1, new, &changed) &&
              path_put(ev, value, &keys[0], &changed, ret);
    ev->depth--;
    return go;
}

/* Which items or members go; the rest is copied. */
static bool compact(struct ev *ev, const struct rv_json *value, const bool *gone,
                    struct rv_json *ret)
{
    bool array = value->type == RV_JSON_ARRAY;
    size_t each = array ? sizeof(struct rv_json) : sizeof(struct rv_json_member);
    char *kept = ev_take(ev, ((size_t)value->len + 1) * each);
    size_t len = 0;
    const char *from = array ? (const char *)value->u.items : (const char *)value->u.members;
    for (uint32_t i = 0; kept != NULL && i < value->len; i++)
        if (!gone[i])
            memcpy(kept + each * len++, from + each * i, each);
    if (kept == NULL)
        return false;
    *ret = array ? ev_array(ev, (struct rv_json *)(void *)kept, len)
                 : ev_object(ev, (struct rv_json_member *)(void *)kept, len);
    return true;
}

/* Marks what value[key] names, if it is there. */
static bool mark_gone(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
                      bool *gone)
{
    size_t from, to;
    if (value->type == RV_JSON_OBJECT && key->type == RV_JSON_STRING) {
        const struct rv_json *found = value_get(ev, value, value_str(key));
        for (uint32_t i = 0; found != NULL && i < value->len; i++)
            gone[i] = gone[i] || &value->u.members[i].value == found;
        return ev_spend(ev, value->len / 8);
    }
    if (value->type == RV_JSON_ARRAY && key->type == RV_JSON_NUMBER) {
        double at = value_whole_index(value->len, value_real(key));
        if (at >= 0 && at < value->len)
            gone[(size_t)at] = true;
        return true;
    }
    if (value->type == RV_JSON_ARRAY && key->type == RV_JSON_OBJECT) {
        if (!slice_part(ev, value, key, &from, &to))
            return false;
        rv_assert(to <= value->len);
        for (; from < to; from++)
            gone[from] = true;
        return ev_spend(ev, value->len / 64);
    }
    if (value->type != RV_JSON_OBJECT && value->type != RV_JSON_ARRAY)
        return ev_raise(ev, "Cannot delete fields from %s", value_kind(value));
    return ev_raise(ev, "Cannot delete field at %s index of %s",
                    key->type == RV_JSON_STRING ? "object" : "array", value_kind(value));
}

bool path_drop(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
               struct rv_json *ret)
{
    if (value->type == RV_JSON_NULL)
        return *ret = *value, true;
    bool *gone = ev_take(ev, (size_t)value->len + 1);
    if (gone == NULL)
        return false;
    memset(gone, 0, (size_t)value->len + 1);
    return mark_gone(ev, value, key, gone) && compact(ev, value, gone, ret);
}

/* Some of the paths to delete: sorted, all longer than `level`, all the same before it. */
struct doomed {
    const struct rv_json *paths;
    size_t count;
    uint32_t level;
};

static bool delete_below(struct ev *ev, const struct rv_json *value, const struct doomed *doomed,
                         struct rv_json *ret);

/* How many paths from the first on share its key. */
static bool same_key(struct ev *ev, const struct doomed *doomed, size_t from, size_t *ret_count)
{
    size_t to = from + 1;
    const struct rv_json *key = &doomed->paths[from].u.items[doomed->level];
    for (; to < doomed->count; to++) {
        int order;
        if (!value_compare(ev, key, &doomed->paths[to].u.items[doomed->level], &order))
            return false;
        if (order != 0)
            break;
    }
    *ret_count = to - from;
    return true;
}

/* First what changes inside, the last key first, then all that goes at once: so no deletion moves
 * what another path names. The shortest path of a key sorts first, and takes all others with it. */
static bool delete_keys(struct ev *ev, const struct rv_json *value, const struct doomed *doomed,
                        struct rv_json *ret)
{
    struct rv_json at = *value;
    size_t kept = 0;
    const struct rv_json **whole = ev_take(ev, doomed->count * sizeof *whole);
    for (size_t i = 0, count; whole != NULL && i < doomed->count; i += count) {
        struct doomed inner = {doomed->paths + i, 0, doomed->level + 1};
        struct rv_json child, changed, next;
        const struct rv_json *key = &doomed->paths[i].u.items[doomed->level];
        rv_assert(doomed->paths[i].len > doomed->level);
        if (!same_key(ev, doomed, i, &count))
            return false;
        rv_assert(count > 0);
        rv_assert(count <= doomed->count - i);
        inner.count = count;
        if (doomed->paths[i].len == doomed->level + 1) {
            whole[kept++] = key;
            continue;
        }
        if (!value_index(ev, &at, key, &child))
            return false;
        if (child.type == RV_JSON_NULL)
            continue;
        if (!delete_below(ev, &child, &inner, &changed) || !path_put(ev, &at, key, &changed, &next))
            return false;
        at = next;
    }
    bool *gone = whole ? ev_take(ev, (size_t)at.len + 1) : NULL;
    if (gone == NULL)
        return false;
    memset(gone, 0, (size_t)at.len + 1);
    for (size_t i = 0; i < kept; i++)
        if (!mark_gone(ev, &at, whole[i], gone))
            return false;
    if (kept == 0)
        return *ret = at, true;
    return compact(ev, &at, gone, ret);
}

static bool delete_below(struct ev *ev, const struct rv_json *value, const struct doomed *doomed,
                         struct rv_json *ret)
{
    if (value->type == RV_JSON_NULL || doomed->count == 0)
        return *ret = *value, true;
    if (!ev_enter(ev))
        return false;
    bool go = delete_keys(ev, value, doomed, ret);
    ev->depth--;
    return go;
}

bool path_delete_all(struct ev *ev, const struct rv_json *value, const struct rv_json *paths,
                     struct rv_json *ret)
{
    struct rv_json sorted;
    if (paths->type != RV_JSON_ARRAY)
        return ev_raise(ev, "Paths must be specified as an array");
    for (uint32_t i = 0; i < paths->len; i++)
        if (paths->u.items[i].type != RV_JSON_ARRAY)
            return ev_raise(ev, "Path must be specified as an array");
    if (!native_sort(ev, paths, NULL, &sorted))
        return false;
    if (sorted.len > 0 && sorted.u.items[0].len == 0)
        return *ret = rv_json_null(), true;
    const struct doomed doomed = {sorted.u.items, sorted.len, 0};
    return delete_below(ev, value, &doomed, ret);
}

bool native_setpath(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                    struct rv_json *ret)
{
    if (args[0].type != RV_JSON_ARRAY)
        return ev_raise(ev, "Path must be specified as an array");
    return path_set(ev, in, args[0].u.items, args[0].len, &args[1], ret);
}

bool native_delpaths(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    return path_delete_all(ev, in, &args[0], ret);
}

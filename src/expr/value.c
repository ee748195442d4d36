/* Values: kinds, order, size, lookups. Whatever walks a value takes fuel for it and is bounded in
 * depth, since an expression can make small values that are huge when written out: [., .] applied
 * sixty times shares its items, and has 2^60 of them. */
#include "expr/eval_priv.h"

#include "expr/utf8_priv.h"

#include <math.h>

const char *value_kind(const struct rv_json *value)
{
    switch ((enum rv_json_type)value->type) {
    case RV_JSON_NULL:
        return "null";
    case RV_JSON_BOOL:
        return "boolean";
    case RV_JSON_NUMBER:
        return "number";
    case RV_JSON_STRING:
        return "string";
    case RV_JSON_ARRAY:
        return "array";
    case RV_JSON_OBJECT:
        break;
    }
    return "object";
}

bool value_truth(const struct rv_json *value)
{
    return value->type != RV_JSON_NULL && (value->type != RV_JSON_BOOL || value->truth);
}

/* jq cuts a value in a message at eleven bytes. */
enum { BRIEF_BYTES = 11 };

struct brief_writer {
    char text[64];
    size_t len;
};

static void brief_add(struct brief_writer *writer, struct rv_str text)
{
    rv_assert(writer->len <= sizeof writer->text);
    size_t room = sizeof writer->text - writer->len;
    size_t len = text.len < room ? text.len : room;
    if (len > 0)
        memcpy(writer->text + writer->len, text.at, len);
    writer->len += len;
}

/* A scalar, of which more than enough is written; the buffer on the stack bounds it. */
static void brief_scalar(struct brief_writer *writer, const struct rv_json *value)
{
    struct rv_json shown = *value;
    if (shown.type == RV_JSON_STRING && shown.len > BRIEF_BYTES + 4)
        shown.len = (uint32_t)utf8_floor(value_str(value), BRIEF_BYTES + 4);
    if (shown.type == RV_JSON_NUMBER && !shown.computed) {
        brief_add(writer, value_str(value));
        return;
    }
    char bytes[128];
    struct rv_buf buf = {.at = bytes, .room = sizeof bytes, .bytes_max = sizeof bytes};
    rv_json_write(&buf, &shown);
    brief_add(writer, rv_buf_str(&buf));
}

/* Ends once enough is written: every level writes a bracket, so it cannot go deep. */
static void brief_write(struct brief_writer *writer, const struct rv_json *value)
{
    bool object = value->type == RV_JSON_OBJECT;
    if (!object && value->type != RV_JSON_ARRAY) {
        brief_scalar(writer, value);
        return;
    }
    brief_add(writer, object ? RV_STR("{") : RV_STR("["));
    for (uint32_t i = 0; i < value->len && writer->len <= BRIEF_BYTES + 4; i++) {
        if (i > 0)
            brief_add(writer, RV_STR(","));
        if (object) {
            brief_scalar(writer, &value->u.members[i].key);
            brief_add(writer, RV_STR(":"));
        }
        brief_write(writer, object ? &value->u.members[i].value : &value->u.items[i]);
    }
    brief_add(writer, object ? RV_STR("}") : RV_STR("]"));
}

struct brief value_brief(const struct rv_json *value)
{
    struct brief_writer writer = {.len = 0};
    struct brief brief = {""};
    brief_write(&writer, value);
    struct rv_str text = {writer.text, writer.len};
    bool cut = text.len > BRIEF_BYTES + 3;
    size_t len = cut ? utf8_floor(text, BRIEF_BYTES) : text.len;
    rv_assert(len + (cut ? 3 : 0) < sizeof brief.text);
    memcpy(brief.text, text.at, len);
    if (cut)
        memcpy(brief.text + len, "...", 3);
    return brief;
}

/* Members in the order of their keys. Merge sort: n log n whatever keys a stranger chooses. */
static void merge_members(const struct rv_json_member **members,
                          const struct rv_json_member **spare, size_t len)
{
    if (len < 2)
        return;
    size_t half = len / 2;
    merge_members(members, spare, half);
    merge_members(members + half, spare, len - half);
    memcpy(spare, members, half * sizeof *members);
    for (size_t i = 0, j = half, k = 0; i < half; k++) {
        if (j < len && rv_str_cmp(value_str(&members[j]->key), value_str(&spare[i]->key)) < 0)
            members[k] = members[j++];
        else
            members[k] = spare[i++];
    }
}

bool value_sort_members(struct ev *ev, const struct rv_json_member **members, size_t len)
{
    size_t rounds = 1;
    for (size_t n = len; n > 1; n /= 2)
        rounds++;
    const struct rv_json_member **spare = ev_take(ev, (len / 2 + 1) * sizeof *spare);
    if (spare == NULL || !ev_spend(ev, len * rounds / 2))
        return false;
    merge_members(members, spare, len);
    return true;
}

static const struct rv_json_member **members_sorted(struct ev *ev, const struct rv_json *object)
{
    const struct rv_json_member **members = ev_take(ev,
                                                    ((size_t)object->len + 1) * sizeof *members);
    for (uint32_t i = 0; members != NULL && i < object->len; i++)
        members[i] = &object->u.members[i];
    return members != NULL && value_sort_members(ev, members, object->len) ? members : NULL;
}

/* First the sets of keys, as arrays of sorted keys are compared, then the values key by key. */
static bool compare_objects(struct ev *ev, const struct rv_json *a, const struct rv_json *b,
                            int *ret_order)
{
    struct rv_arena_mark mark = rv_arena_mark(ev->arena);
    const struct rv_json_member **as = members_sorted(ev, a);
    const struct rv_json_member **bs = as != NULL ? members_sorted(ev, b) : NULL;
    bool go = bs != NULL;
    int order = 0;
    for (uint32_t i = 0; go && order == 0 && (i < a->len || i < b->len); i++) {
        if (i >= a->len || i >= b->len)
            order = i >= a->len ? -1 : 1;
        else
            order = rv_str_cmp(value_str(&as[i]->key), value_str(&bs[i]->key));
    }
    for (uint32_t i = 0; go && order == 0 && i < a->len; i++)
        go = value_compare(ev, &as[i]->value, &bs[i]->value, &order);
    if (go)
        rv_arena_release(ev->arena, mark);
    *ret_order = order;
    return go;
}

static int compare_reals(double x, double y)
{
    return x < y ? -1 : x > y;
}

/* A number that is none comes before all numbers, itself included (jq manual, nan). */
static int compare_numbers(const struct rv_json *a, const struct rv_json *b)
{
    if (a->computed && isnan(a->u.real))
        return -1;
    if (a->computed && b->computed && !isnan(b->u.real))
        return compare_reals(a->u.real, b->u.real);
    return rv_json_compare_numbers(a, b);
}

static bool compare_arrays(struct ev *ev, const struct rv_json *a, const struct rv_json *b,
                           int *ret_order)
{
    *ret_order = 0;
    for (uint32_t i = 0; i < a->len && i < b->len && *ret_order == 0; i++)
        if (!value_compare(ev, &a->u.items[i], &b->u.items[i], ret_order))
            return false;
    if (*ret_order == 0)
        *ret_order = a->len < b->len ? -1 : a->len > b->len;
    return true;
}

/* null, false, true, numbers, strings, arrays, objects. */
static int value_rank(const struct rv_json *value)
{
    return value->type == RV_JSON_BOOL && value->truth ? 10 * RV_JSON_BOOL + 1 : 10 * value->type;
}

bool value_compare(struct ev *ev, const struct rv_json *a, const struct rv_json *b, int *ret_order)
{
    int rank_a = value_rank(a);
    int rank_b = value_rank(b);
    *ret_order = rank_a < rank_b ? -1 : rank_a > rank_b;
    if (*ret_order != 0 || a->type == RV_JSON_NULL || a->type == RV_JSON_BOOL)
        return ev_spend(ev, 1);
    if (a->type == RV_JSON_NUMBER) {
        *ret_order = compare_numbers(a, b);
        return ev_spend(ev, 1 + number_units(a) + number_units(b));
    }
    if (a->type == RV_JSON_STRING) {
        *ret_order = rv_str_cmp(value_str(a), value_str(b));
        return ev_spend(ev, 1 + (a->len < b->len ? a->len : b->len) / 256);
    }
    if (!ev_spend(ev, 1) || !ev_enter(ev))
        return false;
    bool go = a->type == RV_JSON_ARRAY ? compare_arrays(ev, a, b, ret_order)
                                       : compare_objects(ev, a, b, ret_order);
    ev->depth--;
    return go;
}

/* What the escapes of JSON add to the text, at most. */
static size_t escapes_max(const char *at, size_t len)
{
    size_t bytes = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c < 0x20 || c == 0x7F)
            bytes += 5;
        else if (c == '"' || c == '\\')
            bytes++;
    }
    return bytes;
}

/* About 0.8 ns a byte, so a long text is looked at in pieces. */
static bool string_bytes_max(struct ev *ev, struct rv_str text, size_t *ret_bytes)
{
    enum { PIECE = 64 * 1024 };
    size_t bytes = text.len + 2, len;
    do {
        len = text.len < PIECE ? text.len : PIECE;
        if (!ev_spend(ev, len / 12))
            return false;
        bytes += escapes_max(text.at, len);
        text = (struct rv_str){text.at + len, text.len - len};
    } while (text.len > 0);
    *ret_bytes = bytes;
    return true;
}

enum { NUMBER_BYTES_MAX = 32 };

/* What it takes to find the digits of a computed number: little for an integer or a few decimals,
 * some calls of strtod for any other. */
static size_t digits_units(const struct rv_json *number)
{
    double real = number->u.real;
    if (real == trunc(real))
        return 1;
    return fabs(real) < 1e9 && real * 1e4 == trunc(real * 1e4) ? 8 : 100;
}

static bool too_deep(struct ev *ev)
{
    return ev_limit(ev, "the expression created a value that is nested too deep");
}

static bool measure_container(struct ev *ev, const struct rv_json *value, unsigned depth_max,
                              size_t *ret_bytes)
{
    if (depth_max == 0)
        return too_deep(ev);
    size_t bytes = 2 + (size_t)value->len;
    for (uint32_t i = 0; i < value->len; i++) {
        bool object = value->type == RV_JSON_OBJECT;
        const struct rv_json *item = object ? &value->u.members[i].value : &value->u.items[i];
        size_t item_bytes;
        if (!value_measure(ev, item, depth_max - 1, &item_bytes))
            return false;
        bytes += item_bytes;
        if (!object)
            continue;
        if (!string_bytes_max(ev, value_str(&value->u.members[i].key), &item_bytes))
            return false;
        bytes += 1 + item_bytes;
    }
    *ret_bytes = bytes;
    return true;
}

bool value_measure(struct ev *ev, const struct rv_json *value, unsigned depth_max,
                   size_t *ret_bytes)
{
    if (!ev_spend(ev, 1))
        return false;
    switch ((enum rv_json_type)value->type) {
    case RV_JSON_NULL:
    case RV_JSON_BOOL:
    case RV_JSON_NUMBER:
        break;
    case RV_JSON_STRING:
        return string_bytes_max(ev, value_str(value), ret_bytes);
    case RV_JSON_ARRAY:
    case RV_JSON_OBJECT:
        return measure_container(ev, value, depth_max, ret_bytes);
    }
    *ret_bytes = NUMBER_BYTES_MAX + (value->type == RV_JSON_NUMBER ? value->len : 0);
    return value->type != RV_JSON_NUMBER || !value->computed || ev_spend(ev, digits_units(value));
}

bool value_check_depth(struct ev *ev, const struct rv_json *value, unsigned depth_max)
{
    bool object = value->type == RV_JSON_OBJECT;
    if (!object && value->type != RV_JSON_ARRAY)
        return value->type != RV_JSON_NUMBER || !value->computed ||
               ev_spend(ev, digits_units(value));
    if (depth_max == 0)
        return too_deep(ev);
    if (!ev_spend(ev, 1 + value->len))
        return false;
    for (uint32_t i = 0; i < value->len; i++)
        if (!value_check_depth(ev, object ? &value->u.members[i].value : &value->u.items[i],
                               depth_max - 1))
            return false;
    return true;
}

const struct rv_json *value_get(struct ev *ev, const struct rv_json *object, struct rv_str key)
{
    if (object->len > 8)
        ev->fuel -= object->len / 4; /* the next step of the evaluation finds it gone */
    return rv_json_get(object, key);
}

/* A part of an index is cut off; NaN is nowhere, since it is neither below nor above anything. */
double value_whole_index(double len, double at)
{
    double index = trunc(at);
    return index < 0 ? index + len : index;
}

/* The length if there is no such item. */
static uint32_t array_index(const struct rv_json *array, double at)
{
    rv_assert(array->type == RV_JSON_ARRAY);
    double index = value_whole_index(array->len, at);
    return index >= 0 && index < array->len ? (uint32_t)index : array->len;
}

static bool index_failed(struct ev *ev, const struct rv_json *value, const struct rv_json *key)
{
    if (key->type == RV_JSON_STRING)
        return ev_raise(ev, "Cannot index %s with string \"%.*s\"", value_kind(value),
                        RV_STR_FMT(value_str(key)));
    return ev_raise(ev, "Cannot index %s with %s", value_kind(value), value_kind(key));
}

/* array[array]: where the second begins in the first. */
bool value_positions(struct ev *ev, const struct rv_json *array, const struct rv_json *wanted,
                     struct rv_json *ret)
{
    struct rv_json *found = ev_take(ev, ((size_t)array->len + 1) * sizeof *found);
    uint32_t count = 0;
    for (uint32_t i = 0; found != NULL && wanted->len > 0 && i + wanted->len <= array->len; i++) {
        int order = 0;
        for (uint32_t j = 0; j < wanted->len && order == 0; j++)
            if (!value_compare(ev, &array->u.items[i + j], &wanted->u.items[j], &order))
                return false;
        if (order == 0)
            found[count++] = rv_json_of_real(i);
    }
    if (found == NULL)
        return false;
    *ret = ev_array(ev, found, count);
    return true;
}

static bool index_by_slice(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
                           struct rv_json *ret)
{
    static const struct rv_json none = {.type = RV_JSON_NULL};
    const struct rv_json *from = value_get(ev, key, RV_STR("start"));
    const struct rv_json *to = value_get(ev, key, RV_STR("end"));
    if (value->type == RV_JSON_OBJECT)
        return index_failed(ev, value, key);
    if ((from == NULL || to == NULL) && value->type != RV_JSON_NULL)
        return ev_raise(ev, "Start and end indices of an array slice must be numbers");
    return value_slice(ev, value, from ? from : &none, to ? to : &none, ret);
}

bool value_index(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
                 struct rv_json *ret)
{
    if (key->type == RV_JSON_OBJECT)
        return index_by_slice(ev, value, key, ret);
    if (value->type == RV_JSON_NULL && (key->type == RV_JSON_STRING || key->type == RV_JSON_NUMBER))
        return *ret = rv_json_null(), true;
    if (value->type == RV_JSON_OBJECT && key->type == RV_JSON_STRING) {
        const struct rv_json *found = value_get(ev, value, value_str(key));
        *ret = found ? *found : rv_json_null();
        return true;
    }
    if (value->type == RV_JSON_ARRAY && key->type == RV_JSON_NUMBER) {
        uint32_t i = array_index(value, value_real(key));
        *ret = i < value->len ? value->u.items[i] : rv_json_null();
        return true;
    }
    if (value->type == RV_JSON_ARRAY && key->type == RV_JSON_ARRAY)
        return value_positions(ev, value, key, ret);
    return index_failed(ev, value, key);
}

static bool is_bound(const struct rv_json *bound)
{
    return bound->type == RV_JSON_NULL || bound->type == RV_JSON_NUMBER;
}

bool value_slice_bounds(struct ev *ev, size_t len, const struct rv_json *from,
                        const struct rv_json *to, size_t *ret_from, size_t *ret_to)
{
    if (!is_bound(from) || !is_bound(to))
        return ev_raise(ev, "Start and end indices of an array slice must be numbers");
    double n = (double)len;
    double start = from->type == RV_JSON_NULL ? 0 : floor(value_real(from));
    double end = to->type == RV_JSON_NULL ? n : ceil(value_real(to));
    if (start < 0)
        start += n;
    if (end < 0)
        end += n;
    start = start > n ? n : start >= 0 ? start : 0; /* NaN is no bound */
    end = end > n || isnan(end) ? n : end >= start ? end : start;
    rv_assert(start <= end);
    rv_assert(end <= n);
    *ret_from = (size_t)start;
    *ret_to = (size_t)end;
    return true;
}

bool value_slice(struct ev *ev, const struct rv_json *value, const struct rv_json *from,
                 const struct rv_json *to, struct rv_json *ret)
{
    size_t start, end;
    if (value->type == RV_JSON_NULL)
        return *ret = rv_json_null(), true;
    if (value->type == RV_JSON_STRING) {
        struct rv_str text = value_str(value);
        if (!ev_spend(ev, text.len / 8) ||
            !value_slice_bounds(ev, utf8_count(text), from, to, &start, &end))
            return false;
        start = utf8_offset(text, start);
        end = utf8_offset(text, end);
        rv_assert(start <= end);
        rv_assert(end <= text.len);
        *ret = ev_string(text.at + start, end - start);
        return true;
    }
    if (value->type != RV_JSON_ARRAY)
        return ev_raise(ev, "Cannot index %s with object", value_kind(value));
    if (!value_slice_bounds(ev, value->len, from, to, &start, &end))
        return false;
    *ret = ev_array(ev, value->u.items + start, end - start);
    return true;
}

bool value_slice_key(struct ev *ev, const struct rv_json *from, const struct rv_json *to,
                     struct rv_json *ret)
{
    struct rv_json_member *members = ev_take(ev, 2 * sizeof *members);
    if (members == NULL)
        return false;
    members[0] = (struct rv_json_member){rv_json_of_str(RV_STR("start")), *from};
    members[1] = (struct rv_json_member){rv_json_of_str(RV_STR("end")), *to};
    *ret = ev_object(ev, members, 2);
    return true;
}

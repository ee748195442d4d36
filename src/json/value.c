#include "json/number_priv.h"
#include "json/order_priv.h"

#include "base/assert.h"

struct rv_json rv_json_null(void)
{
    return (struct rv_json){.type = RV_JSON_NULL};
}

struct rv_json rv_json_bool(bool truth)
{
    return (struct rv_json){.type = RV_JSON_BOOL, .truth = truth};
}

struct rv_json rv_json_of_real(double real)
{
    return (struct rv_json){.type = RV_JSON_NUMBER, .computed = true, .u = {.real = real}};
}

struct rv_json rv_json_of_int(struct rv_arena *arena, int64_t number)
{
    struct rv_str text = rv_arena_printf(arena, "%lld", (long long)number);
    if (text.at == NULL)
        return rv_json_null();
    return (struct rv_json){
        .type = RV_JSON_NUMBER, .len = (uint32_t)text.len, .u = {.text = text.at}};
}

struct rv_json rv_json_of_str(struct rv_str text)
{
    rv_assert(text.len <= UINT32_MAX);
    return (struct rv_json){
        .type = RV_JSON_STRING, .len = (uint32_t)text.len, .u = {.text = text.at ? text.at : ""}};
}

struct rv_str rv_json_str(const struct rv_json *value)
{
    if (value == NULL || value->type != RV_JSON_STRING)
        return RV_STR_NONE;
    return (struct rv_str){value->u.text, value->len};
}

double rv_json_real(const struct rv_json *value)
{
    if (value == NULL || value->type != RV_JSON_NUMBER)
        return 0;
    if (value->computed)
        return value->u.real;
    return rv_json_real_of_text((struct rv_str){value->u.text, value->len});
}

const struct rv_json *rv_json_get(const struct rv_json *object, struct rv_str key)
{
    if (object == NULL || object->type != RV_JSON_OBJECT)
        return NULL;
    for (uint32_t i = 0; i < object->len; i++)
        if (rv_str_eq(json_key(&object->u.members[i]), key))
            return &object->u.members[i].value;
    return NULL;
}

/* Whether the reference token, ~0 and ~1 read as ~ and /, is the key. Any other ~ matches none. */
static bool token_is(struct rv_str token, struct rv_str key)
{
    size_t k = 0;
    for (size_t i = 0; i < token.len; i++, k++) {
        char c = token.at[i];
        if (c == '~') {
            i++;
            if (i == token.len || (token.at[i] != '0' && token.at[i] != '1'))
                return false;
            c = token.at[i] == '0' ? '~' : '/';
        }
        if (k == key.len || key.at[k] != c)
            return false;
    }
    return k == key.len;
}

static const struct rv_json *item_at(const struct rv_json *array, struct rv_str token)
{
    uint64_t index = 0;
    rv_assert(array->type == RV_JSON_ARRAY);
    if (token.len == 0 || token.len > 10 || (token.len > 1 && token.at[0] == '0'))
        return NULL;
    for (size_t i = 0; i < token.len; i++) {
        if (token.at[i] < '0' || token.at[i] > '9')
            return NULL;
        index = index * 10 + (uint64_t)(token.at[i] - '0');
    }
    return index < array->len ? &array->u.items[index] : NULL;
}

static const struct rv_json *child_at(const struct rv_json *value, struct rv_str token)
{
    if (value->type == RV_JSON_ARRAY)
        return item_at(value, token);
    if (value->type != RV_JSON_OBJECT)
        return NULL;
    for (uint32_t i = 0; i < value->len; i++)
        if (token_is(token, json_key(&value->u.members[i])))
            return &value->u.members[i].value;
    return NULL;
}

const struct rv_json *rv_json_at(const struct rv_json *value, struct rv_str pointer)
{
    while (value != NULL && pointer.len != 0) {
        if (*pointer.at != '/')
            return NULL;
        const char *token = pointer.at + 1;
        const char *end = pointer.at + pointer.len;
        rv_assert(token <= end);
        const char *slash = memchr(token, '/', (size_t)(end - token));
        if (slash == NULL)
            slash = end;
        value = child_at(value, (struct rv_str){token, (size_t)(slash - token)});
        pointer = (struct rv_str){slash, (size_t)(end - slash)};
    }
    return value;
}

static bool copy_into(struct rv_arena *arena, struct rv_json *value, unsigned depth);

static bool text_copy(struct rv_arena *arena, struct rv_json *value)
{
    struct rv_str copy = rv_arena_str(arena, (struct rv_str){value->u.text, value->len});
    value->u.text = copy.at;
    return copy.at != NULL;
}

static bool copy_items(struct rv_arena *arena, struct rv_json *array, unsigned depth)
{
    struct rv_json *items = rv_arena_take(arena, array->len * sizeof *items);
    if (items == NULL)
        return false;
    for (uint32_t i = 0; i < array->len; i++) {
        items[i] = array->u.items[i];
        if (!copy_into(arena, &items[i], depth))
            return false;
    }
    array->u.items = items;
    return true;
}

static bool copy_members(struct rv_arena *arena, struct rv_json *object, unsigned depth)
{
    struct rv_json_member *members = rv_arena_take(arena, object->len * sizeof *members);
    if (members == NULL)
        return false;
    for (uint32_t i = 0; i < object->len; i++) {
        members[i] = object->u.members[i];
        if (!text_copy(arena, &members[i].key) || !copy_into(arena, &members[i].value, depth))
            return false;
    }
    object->u.members = members;
    return true;
}

/* Replaces what *value points to by copies. */
static bool copy_into(struct rv_arena *arena, struct rv_json *value, unsigned depth)
{
    switch ((enum rv_json_type)value->type) {
    case RV_JSON_NULL:
    case RV_JSON_BOOL:
        return true;
    case RV_JSON_NUMBER:
        return value->computed || text_copy(arena, value);
    case RV_JSON_STRING:
        return text_copy(arena, value);
    case RV_JSON_ARRAY:
        return depth != 0 && (value->len == 0 || copy_items(arena, value, depth - 1));
    case RV_JSON_OBJECT:
        return depth != 0 && (value->len == 0 || copy_members(arena, value, depth - 1));
    }
    return false;
}

enum rv_err rv_json_copy(struct rv_arena *arena, const struct rv_json *value,
                         struct rv_json *ret_value)
{
    struct rv_json copy = *value;
    if (copy_into(arena, &copy, RV_JSON_NESTING_MAX)) {
        *ret_value = copy;
        return RV_OK;
    }
    *ret_value = rv_json_null();
    return arena->refused != RV_OK ? arena->refused : RV_ERR_LIMIT;
}

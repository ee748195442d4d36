#include "core/tags.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "json/json.h"

bool rv_tag_name_good(struct rv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_')
            return false;
    }
    return name.len > 0 && name.len <= RV_TAG_NAME_BYTES_MAX;
}

const char *rv_tags_wrong(const struct rv_json *tags, enum rv_err *ret_err)
{
    *ret_err = RV_ERR_INVALID;
    if (tags->type != RV_JSON_OBJECT)
        return "must be an object with string values";
    if (tags->len > RV_TAGS_MAX)
        return *ret_err = RV_ERR_LIMIT, "has more than 16 members";
    for (uint32_t i = 0; i < tags->len; i++) {
        const struct rv_json *value = &tags->u.members[i].value;
        struct rv_str name = rv_json_str(&tags->u.members[i].key);
        if (name.len > RV_TAG_NAME_BYTES_MAX)
            return *ret_err = RV_ERR_LIMIT, "has a name of more than 64 bytes";
        if (!rv_tag_name_good(name))
            return "has an invalid name: a name is 1 to 64 letters, digits, \".\", \"-\" or \"_\"";
        if (value->type != RV_JSON_STRING)
            return "has an invalid value: a value is a string of at most 256 bytes";
        if (rv_json_str(value).len > RV_TAG_VALUE_BYTES_MAX)
            return *ret_err = RV_ERR_LIMIT, "has a value of more than 256 bytes";
    }
    return NULL;
}

struct rv_str rv_tag_needle(struct rv_arena *arena, struct rv_str name, struct rv_str value)
{
    enum { NEEDLE_BYTES_MAX = RV_TAG_NAME_BYTES_MAX + 6 * RV_TAG_VALUE_BYTES_MAX + 16 };
    struct rv_buf text;
    rv_buf_init(&text, NEEDLE_BYTES_MAX);
    rv_json_write_string(&text, name);
    rv_buf_add_char(&text, ':');
    rv_json_write_string(&text, value);
    struct rv_str needle = text.failed == RV_OK ? rv_arena_str(arena, rv_buf_str(&text))
                                                : RV_STR_NONE;
    rv_buf_done(&text);
    return needle;
}

bool rv_tags_have(struct rv_str tags, struct rv_str needle)
{
    for (size_t i = 0; needle.len > 0 && i + needle.len <= tags.len; i++)
        if (memcmp(tags.at + i, needle.at, needle.len) == 0)
            return true;
    return false;
}

enum rv_err rv_tags_read(struct rv_arena *arena, struct rv_str tags,
                         struct rv_tag ret_tags[static RV_TAGS_MAX], size_t *ret_count)
{
    struct rv_json tree;
    enum rv_err why, err = rv_json_parse(arena, tags, RV_JSON_DEPTH_MAX, &tree, NULL);
    if (err != RV_OK)
        return arena->refused != RV_OK ? arena->refused : RV_ERR_INVALID;
    if (rv_tags_wrong(&tree, &why) != NULL)
        return RV_ERR_INVALID;
    rv_assert(tree.len <= RV_TAGS_MAX);
    for (uint32_t i = 0; i < tree.len; i++)
        ret_tags[i] = (struct rv_tag){rv_json_str(&tree.u.members[i].key),
                                      rv_json_str(&tree.u.members[i].value)};
    *ret_count = tree.len;
    return RV_OK;
}

struct rv_str rv_task_error(const struct rv_task *task)
{
    return task->undo_error.at != NULL ? task->undo_error : task->error;
}

enum rv_err rv_error_type(struct rv_arena *arena, struct rv_str error, struct rv_str *ret_type)
{
    struct rv_json tree;
    *ret_type = RV_STR_NONE;
    if (error.at == NULL)
        return RV_OK;
    if (rv_json_parse(arena, error, RV_JSON_DEPTH_MAX, &tree, NULL) == RV_OK)
        *ret_type = rv_json_str(rv_json_get(&tree, RV_STR("type")));
    return arena->refused;
}

struct rv_str rv_error_type_last(struct rv_str type)
{
    size_t from = type.len;
    while (from > 0 && type.at[from - 1] != '/')
        from--;
    return (struct rv_str){type.at + from, type.len - from};
}

enum rv_err rv_error_is(struct rv_arena *arena, struct rv_str error, struct rv_str type,
                        bool *ret_is)
{
    struct rv_arena_mark mark = rv_arena_mark(arena);
    struct rv_str whole;
    enum rv_err err = rv_error_type(arena, error, &whole);
    *ret_is = whole.at != NULL && rv_str_eq(whole, type);
    if (whole.len > type.len) {
        struct rv_str last = {whole.at + whole.len - type.len, type.len};
        *ret_is = whole.at[whole.len - type.len - 1] == '/' && rv_str_eq(last, type);
    }
    if (err == RV_OK)
        rv_arena_release(arena, mark);
    return err;
}

#include "base/assert.h"
#include "base/buf.h"
#include "yaml/yaml_priv.h"

#include <stdlib.h>

/* A walk over the events along a pointer; it never goes back. */
struct locator {
    yaml_parser_t parser;
    yaml_event_t event; /* the newest, deleted when the next is read */
    yaml_mark_t at;     /* the nearest place so far */
};

static bool locator_next(struct locator *locator)
{
    yaml_event_delete(&locator->event);
    if (yaml_parser_parse(&locator->parser, &locator->event))
        return true;
    locator->event = (yaml_event_t){.type = YAML_NO_EVENT};
    return false;
}

/* Reads to the end of the value that began with the newest event. */
static bool locator_skip(struct locator *locator)
{
    for (size_t open = 0;;) {
        yaml_event_type_t type = locator->event.type;
        if (type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
            open++;
        else if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
            open--;
        if (open == 0)
            return true;
        if (!locator_next(locator))
            return false;
    }
}

/* Whether a reference token of a pointer, with ~0 and ~1, stands for this key. */
static bool token_is(struct rv_str token, struct rv_str key)
{
    size_t k = 0;
    for (size_t i = 0; i < token.len; i++, k++) {
        char c = token.at[i];
        if (c == '~' && i + 1 < token.len) {
            c = token.at[i + 1] == '1' ? '/' : '~';
            i++;
        }
        if (k >= key.len || key.at[k] != c)
            return false;
    }
    return k == key.len;
}

static struct rv_str token_take(struct rv_str *pointer)
{
    rv_assert(pointer->len > 0);
    size_t end = 1;
    while (end < pointer->len && pointer->at[end] != '/')
        end++;
    struct rv_str token = {pointer->at + 1, end - 1};
    *pointer = (struct rv_str){pointer->at + end, pointer->len - end};
    return token;
}

/* Goes to the value of the member `token` of the mapping that has begun. */
static bool enter_member(struct locator *locator, struct rv_str token, bool stay_at_key)
{
    while (locator_next(locator) && locator->event.type == YAML_SCALAR_EVENT) {
        struct rv_str key = {(const char *)locator->event.data.scalar.value,
                             locator->event.data.scalar.length};
        if (token_is(token, key)) {
            locator->at = locator->event.start_mark;
            return stay_at_key || locator_next(locator);
        }
        if (!locator_next(locator) || !locator_skip(locator))
            return false;
    }
    return false;
}

static bool enter_item(struct locator *locator, struct rv_str token)
{
    size_t index = 0;
    for (size_t i = 0; i < token.len; i++)
        index = token.at[i] >= '0' && token.at[i] <= '9' && index < 100000000
                    ? index * 10 + (size_t)(token.at[i] - '0')
                    : (size_t)-1;
    for (size_t i = 0; locator_next(locator); i++) {
        if (locator->event.type == YAML_SEQUENCE_END_EVENT)
            return false;
        if (i == index)
            return true;
        if (!locator_skip(locator))
            return false;
    }
    return false;
}

static bool walk(struct locator *locator, struct rv_str pointer, bool at_key)
{
    do {
        if (!locator_next(locator))
            return false;
    } while (locator->event.type == YAML_STREAM_START_EVENT ||
             locator->event.type == YAML_DOCUMENT_START_EVENT);
    for (;;) {
        locator->at = locator->event.start_mark;
        if (pointer.len == 0)
            return true;
        struct rv_str token = token_take(&pointer);
        bool last_key = at_key && pointer.len == 0;
        bool found = false;
        if (locator->event.type == YAML_MAPPING_START_EVENT)
            found = enter_member(locator, token, last_key);
        else if (locator->event.type == YAML_SEQUENCE_START_EVENT)
            found = enter_item(locator, token);
        if (!found || (last_key && locator->event.type == YAML_SCALAR_EVENT))
            return found;
    }
}

static size_t char_bytes(char c)
{
    unsigned char u = (unsigned char)c;
    return u < 0x80 ? 1 : u < 0xE0 ? 2 : u < 0xF0 ? 3 : 4;
}

/* The byte at which libyaml's mark stands: it counts characters, without a byte order mark. */
static size_t mark_byte(struct rv_str text, size_t index)
{
    size_t i = text.len >= 3 && memcmp(text.at, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    for (; index > 0 && i < text.len; index--)
        i += char_bytes(text.at[i]);
    return i < text.len ? i : text.len;
}

/* Indentation of the first line of a block scalar that is not empty. */
static size_t block_indent(struct rv_str text, size_t line_start)
{
    for (size_t i = line_start, indent = 0; i < text.len; i++) {
        if (text.at[i] == ' ') {
            indent++;
        } else if (text.at[i] == '\n') {
            indent = 0;
        } else {
            return indent;
        }
    }
    return 0;
}

/* Bytes in the source that stand for one byte (or one escape) of the value. */
static size_t source_bytes(const char *at, size_t left, yaml_scalar_style_t style)
{
    if (style == YAML_DOUBLE_QUOTED_SCALAR_STYLE && *at == '\\' && left > 1) {
        size_t n = at[1] == 'u' ? 6 : at[1] == 'x' ? 4 : at[1] == 'U' ? 10 : 2;
        return n < left ? n : left;
    }
    if (style == YAML_SINGLE_QUOTED_SCALAR_STYLE && *at == '\'' && left > 1 && at[1] == '\'')
        return 2;
    return 1;
}

/* Follows the value of a scalar from its start in the source for `offset` bytes. Line breaks of
 * folded scalars count as the one space they become. */
static size_t scalar_byte(struct rv_str text, const yaml_event_t *event, size_t offset)
{
    rv_assert(event->type == YAML_SCALAR_EVENT);
    yaml_scalar_style_t style = event->data.scalar.style;
    size_t i = mark_byte(text, event->start_mark.index);
    size_t end = mark_byte(text, event->end_mark.index);
    rv_assert(i <= end);
    size_t indent = SIZE_MAX; /* skip all leading white space of a further line */
    if (style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE) {
        while (i < end && text.at[i] != '\n')
            i++;
        i += i < end;
        indent = block_indent(text, i);
        i += i + indent < end ? indent : 0;
    } else if (style != YAML_PLAIN_SCALAR_STYLE) {
        i++;
    }
    while (offset > 0 && i < end) {
        bool line_end = text.at[i] == '\n';
        i += source_bytes(text.at + i, end - i, style);
        rv_assert(i <= end);
        offset--;
        for (size_t n = 0; line_end && n < indent && i < end && text.at[i] == ' '; n++)
            i++;
    }
    return i;
}

/* libyaml refuses the surrogate pairs of JSON text; in this copy other escapes of the same length
 * stand in for them, so that no place moves. */
static char *without_surrogates(struct rv_str text)
{
    char *copy = rv_str_dup(text);
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i + 6 <= text.len; i++) {
        if (copy[i] != '\\')
            continue;
        if (copy[i + 1] == 'u' && (copy[i + 2] == 'd' || copy[i + 2] == 'D') && copy[i + 3] > '7')
            memcpy(copy + i + 2, "0041", 4);
        i++;
    }
    return copy;
}

bool rv_yaml_locate(struct rv_str text, struct rv_str pointer, bool at_key, size_t offset,
                    uint32_t *ret_line, uint32_t *ret_column)
{
    *ret_line = 1;
    *ret_column = 1;
    if (text.at == NULL)
        text = RV_STR("");
    text = rv_yaml_unmarked(text);
    char *copy = rv_yaml_like_json(text) ? without_surrogates(text) : NULL;
    if (copy != NULL)
        text.at = copy;
    struct locator locator = {.event = {.type = YAML_NO_EVENT}};
    bool found = false;
    if (rv_yaml_open(&locator.parser, text)) {
        found = walk(&locator, pointer, at_key);
        *ret_line = (uint32_t)locator.at.line + 1;
        *ret_column = (uint32_t)locator.at.column + 1;
        if (found && offset > 0 && locator.event.type == YAML_SCALAR_EVENT)
            rv_yaml_place(text, scalar_byte(text, &locator.event, offset), ret_line, ret_column);
        yaml_event_delete(&locator.event);
        yaml_parser_delete(&locator.parser);
    }
    free(copy);
    return found;
}

/* The tree is built from libyaml's events. Its resolver is not used: it knows YAML 1.1, in which
 * `no` is a boolean and 1:30 is ninety. JSON text is tried with the json room first, because
 * libyaml refuses JSON's surrogate pairs. */
#include "base/assert.h"
#include "base/buf.h"
#include "base/limits.h"
#include "yaml/yaml_priv.h"

#include <stdlib.h>
#include <string.h>

/* A member, or an item without a key, that waits on the stack until its collection ends. */
struct yaml_entry {
    struct rv_json_member member;
    uint32_t line;
    uint32_t column;
};

struct yaml_reader {
    yaml_parser_t parser;
    struct rv_arena *arena;
    struct rv_str text;
    struct rv_buf stack; /* of struct yaml_entry */
    struct rv_yaml_fault *fault;
};

struct rv_str rv_yaml_unmarked(struct rv_str text)
{
    bool marked = text.len >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0;
    return marked ? (struct rv_str){text.at + 3, text.len - 3} : text;
}

bool rv_yaml_open(yaml_parser_t *parser, struct rv_str text)
{
    if (!yaml_parser_initialize(parser))
        return false;
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(parser, (const unsigned char *)text.at, text.len);
    return true;
}

bool rv_yaml_like_json(struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r')
            return c == '{' || c == '[';
    }
    return false;
}

void rv_yaml_place(struct rv_str text, size_t offset, uint32_t *ret_line, uint32_t *ret_column)
{
    uint32_t line = 1;
    uint32_t column = 1;
    for (size_t i = 0; i < offset && i < text.len; i++) {
        if (text.at[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)text.at[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

static enum rv_err reader_fault(struct yaml_reader *reader, const yaml_mark_t *mark,
                                const char *message)
{
    reader->fault->line = (uint32_t)mark->line + 1;
    reader->fault->column = (uint32_t)mark->column + 1;
    reader->fault->message = rv_str_of(message);
    return RV_ERR_INVALID;
}

static enum rv_err reader_full(struct yaml_reader *reader)
{
    reader->fault->line = (uint32_t)reader->parser.mark.line + 1;
    reader->fault->column = 1;
    reader->fault->message = RV_STR("the document needs more memory than allowed");
    return reader->arena->refused == RV_ERR_LIMIT ? RV_ERR_LIMIT : RV_ERR_MEMORY;
}

/* What to do about libyaml's most frequent complaints. */
static const char *cure_of(const char *problem)
{
    static const struct {
        const char *problem;
        const char *cure;
    } cures[] = {
        {"found character that cannot start any token",
         "indent with spaces, not tabs, and put values that begin with @, ` or % in quotes"},
        {"found a tab character that violates indentation", "indent with spaces, not tabs"},
        {"found a tab character where an indentation space is expected",
         "indent with spaces, not tabs"},
        {"mapping values are not allowed in this context",
         "put the value in quotes if it contains a colon, or check the indentation"},
        {"did not find expected key", "check the indentation and that quotes are closed"},
        {"did not find expected <document start>", "check the indentation"},
        {"could not find expected ':'", "put a colon and a space after the key"},
        {"found unexpected end of stream", "close the quotes or brackets"},
    };
    for (size_t i = 0; i < sizeof cures / sizeof *cures; i++) {
        if (strcmp(problem, cures[i].problem) == 0)
            return cures[i].cure;
    }
    return NULL;
}

#define QUOTE_EXPRESSION "an expression here needs quotes, such as '${ .x }'"

/* The place of the last `${` outside of quotes in the line of the mark and not behind it: in flow
 * style it reads as a `$` and the begin of a mapping. */
static bool find_bare_expression(const struct yaml_reader *reader, const yaml_mark_t *mark,
                                 uint32_t *ret_column)
{
    struct rv_str text = reader->text;
    size_t at = 0;
    for (size_t line = 0; line < mark->line && at < text.len; at++)
        line += text.at[at] == '\n';
    char quote = 0;
    bool found = false;
    for (uint32_t column = 1; at < text.len && text.at[at] != '\n' && column <= mark->column + 1;
         at++) {
        char c = text.at[at];
        if (quote != 0 ? c == quote : c == '"' || c == '\'')
            quote = quote != 0 ? 0 : c;
        if (quote == 0 && c == '$' && at + 1 < text.len && text.at[at + 1] == '{') {
            found = true;
            *ret_column = column;
        }
        column += ((unsigned char)c & 0xC0) != 0x80;
    }
    return found;
}

static enum rv_err parser_fault(struct yaml_reader *reader)
{
    const yaml_parser_t *parser = &reader->parser;
    /* libyaml has places where it finds no memory and does not say so. */
    if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR)
        return RV_ERR_MEMORY;
    if (parser->error == YAML_READER_ERROR) {
        rv_yaml_place(reader->text, parser->problem_offset, &reader->fault->line,
                      &reader->fault->column);
        reader->fault->message = RV_STR("invalid UTF-8 or a control character");
        return RV_ERR_INVALID;
    }
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    uint32_t column;
    if (find_bare_expression(reader, &parser->problem_mark, &column)) {
        (void)reader_fault(reader, &parser->problem_mark, QUOTE_EXPRESSION);
        reader->fault->column = column;
        return RV_ERR_INVALID;
    }
    const char *cure = cure_of(problem);
    struct rv_str message = cure ? rv_arena_printf(reader->arena, "%s; %s", problem, cure)
                                 : rv_arena_printf(reader->arena, "not valid YAML: %s", problem);
    if (message.at == NULL)
        return reader_full(reader);
    (void)reader_fault(reader, &parser->problem_mark, "");
    reader->fault->message = message;
    return RV_ERR_INVALID;
}

static enum rv_err reader_next(struct yaml_reader *reader, yaml_event_t *ret_event)
{
    return yaml_parser_parse(&reader->parser, ret_event) ? RV_OK : parser_fault(reader);
}

/* RFC 8259's grammar of a number. */
static bool is_number(struct rv_str s)
{
    size_t i = 0;
    size_t digits = 0;
    i += i < s.len && s.at[i] == '-';
    size_t whole = i;
    for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9'; i++)
        digits++;
    if (digits == 0 || (digits > 1 && s.at[whole] == '0'))
        return false;
    if (i < s.len && s.at[i] == '.') {
        size_t from = ++i;
        while (i < s.len && s.at[i] >= '0' && s.at[i] <= '9')
            i++;
        if (i == from)
            return false;
    }
    if (i < s.len && (s.at[i] == 'e' || s.at[i] == 'E')) {
        i++;
        i += i < s.len && (s.at[i] == '+' || s.at[i] == '-');
        size_t from = i;
        while (i < s.len && s.at[i] >= '0' && s.at[i] <= '9')
            i++;
        if (i == from)
            return false;
    }
    return i == s.len;
}

/* Anchors and tags, of any node. */
static enum rv_err check_plain_node(struct yaml_reader *reader, const yaml_event_t *event,
                                    const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        return reader_fault(reader, &event->start_mark,
                            "anchors (&) are not supported; repeat the value where it is used");
    if (tag != NULL)
        return reader_fault(
            reader, &event->start_mark,
            "tags (!) are not supported; put the value in quotes if it is a string");
    return RV_OK;
}

static enum rv_err read_text(struct yaml_reader *reader, const yaml_event_t *event,
                             struct rv_str *ret_text)
{
    rv_assert(event->type == YAML_SCALAR_EVENT);
    RV_TRY(check_plain_node(reader, event, event->data.scalar.anchor, event->data.scalar.tag));
    struct rv_str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    *ret_text = rv_arena_str(reader->arena, text);
    return ret_text->at != NULL ? RV_OK : reader_full(reader);
}

static enum rv_err read_scalar(struct yaml_reader *reader, const yaml_event_t *event,
                               struct rv_json *ret_value)
{
    struct rv_str text;
    RV_TRY(read_text(reader, event, &text));
    *ret_value = rv_json_of_str(text);
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return RV_OK;
    if (text.len == 0 || rv_str_is(text, "null") || rv_str_is(text, "~"))
        *ret_value = rv_json_null();
    else if (rv_str_is(text, "true") || rv_str_is(text, "false"))
        *ret_value = rv_json_bool(text.at[0] == 't');
    else if (is_number(text))
        ret_value->type = RV_JSON_NUMBER;
    return RV_OK;
}

static int entry_order(const void *a, const void *b)
{
    const struct yaml_entry *const *x = a;
    const struct yaml_entry *const *y = b;
    int c = rv_str_cmp(rv_json_str(&(*x)->member.key), rv_json_str(&(*y)->member.key));
    return c != 0 ? c : (*x < *y ? -1 : *x > *y);
}

/* Of several keys that stand twice, the one that comes first in the text is named. */
static enum rv_err check_duplicates(struct yaml_reader *reader, const struct yaml_entry *entries,
                                    size_t count)
{
    if (count < 2)
        return RV_OK;
    const struct yaml_entry **sorted = malloc(count * sizeof(*sorted));
    if (sorted == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &entries[i];
    qsort(sorted, count, sizeof(*sorted), entry_order);
    const struct yaml_entry *twice = NULL;
    for (size_t i = 1; i < count; i++) {
        if (rv_json_equal(&sorted[i - 1]->member.key, &sorted[i]->member.key) &&
            (twice == NULL || sorted[i] < twice))
            twice = sorted[i];
    }
    free(sorted);
    if (twice == NULL)
        return RV_OK;
    rv_assert(twice > entries);
    rv_assert(twice < entries + count);
    reader->fault->line = twice->line;
    reader->fault->column = twice->column;
    struct rv_str key = rv_json_str(&twice->member.key);
    reader->fault->message = rv_arena_printf(reader->arena, "duplicate key \"%.*s\"; remove one",
                                             (int)(key.len < 64 ? key.len : 64), key.at);
    return reader->fault->message.at != NULL ? RV_ERR_INVALID : reader_full(reader);
}

static enum rv_err read_value(struct yaml_reader *reader, yaml_event_t *event, unsigned depth,
                              struct rv_json *ret_value);

static enum rv_err read_key(struct yaml_reader *reader, const yaml_event_t *event,
                            struct rv_json *ret_key)
{
    struct rv_str key;
    if (event->type != YAML_SCALAR_EVENT)
        return reader_fault(reader, &event->start_mark, "a key must be a string");
    RV_TRY(read_text(reader, event, &key));
    if (rv_str_is(key, "<<") && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        return reader_fault(reader, &event->start_mark,
                            "merge keys (<<) are not supported; repeat the members");
    *ret_key = rv_json_of_str(key);
    return RV_OK;
}

/* The next event and, if it does not end the collection, the entry that begins with it. */
static enum rv_err read_entry(struct yaml_reader *reader, bool mapping, unsigned depth,
                              bool *ret_end)
{
    yaml_event_t event;
    RV_TRY(reader_next(reader, &event));
    *ret_end = event.type == (mapping ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT);
    if (*ret_end) {
        yaml_event_delete(&event);
        return RV_OK;
    }
    struct yaml_entry entry = {.line = (uint32_t)event.start_mark.line + 1,
                               .column = (uint32_t)event.start_mark.column + 1};
    if (mapping) {
        enum rv_err err = read_key(reader, &event, &entry.member.key);
        yaml_event_delete(&event);
        if (err != RV_OK)
            return err;
        RV_TRY(reader_next(reader, &event));
    }
    enum rv_err err = read_value(reader, &event, depth, &entry.member.value);
    yaml_event_delete(&event);
    if (err != RV_OK)
        return err;
    rv_buf_add(&reader->stack, &entry, sizeof entry);
    return reader->stack.failed;
}

/* Moves the entries of a collection from the stack to the arena. */
static enum rv_err take_entries(struct yaml_reader *reader, size_t bottom, bool mapping,
                                struct rv_json *ret_value)
{
    rv_assert(bottom <= reader->stack.len);
    rv_assert((reader->stack.len - bottom) % sizeof(struct yaml_entry) == 0);
    size_t count = (reader->stack.len - bottom) / sizeof(struct yaml_entry);
    /* The stack holds nothing but entries, so every one of them is aligned. */
    const struct yaml_entry *entries =
        count ? (const struct yaml_entry *)(const void *)(reader->stack.at + bottom) : NULL;
    *ret_value = (struct rv_json){.type = mapping ? RV_JSON_OBJECT : RV_JSON_ARRAY,
                                  .len = (uint32_t)count};
    reader->stack.len = bottom;
    if (mapping) {
        enum rv_err err = check_duplicates(reader, entries, count);
        if (err != RV_OK)
            return err;
        struct rv_json_member *members = RV_NEW_ARRAY(reader->arena, struct rv_json_member,
                                                      count ? count : 1);
        for (size_t i = 0; members != NULL && i < count; i++)
            members[i] = entries[i].member;
        ret_value->u.members = members;
        return members != NULL ? RV_OK : reader_full(reader);
    }
    struct rv_json *items = RV_NEW_ARRAY(reader->arena, struct rv_json, count ? count : 1);
    for (size_t i = 0; items != NULL && i < count; i++)
        items[i] = entries[i].member.value;
    ret_value->u.items = items;
    return items != NULL ? RV_OK : reader_full(reader);
}

static enum rv_err read_collection(struct yaml_reader *reader, const yaml_event_t *event,
                                   unsigned depth, struct rv_json *ret_value)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    if (depth == 0) {
        (void)reader_fault(reader, &event->start_mark, "nested deeper than 64 levels");
        return RV_ERR_LIMIT;
    }
    enum rv_err err = mapping ? check_plain_node(reader, event, event->data.mapping_start.anchor,
                                                 event->data.mapping_start.tag)
                              : check_plain_node(reader, event, event->data.sequence_start.anchor,
                                                 event->data.sequence_start.tag);
    if (err != RV_OK)
        return err;
    size_t bottom = reader->stack.len;
    rv_assert(depth <= RV_JSON_DEPTH_MAX);
    for (bool end = false; !end;)
        RV_TRY(read_entry(reader, mapping, depth - 1, &end));
    return take_entries(reader, bottom, mapping, ret_value);
}

/* The caller deletes the event. */
static enum rv_err read_value(struct yaml_reader *reader, yaml_event_t *event, unsigned depth,
                              struct rv_json *ret_value)
{
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(reader, event, ret_value);
    if (event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT)
        return read_collection(reader, event, depth, ret_value);
    return reader_fault(
        reader, &event->start_mark,
        "aliases (*) are not supported; repeat the value here, or put it in quotes");
}

/* The stream: begins, holds one document, ends. */
static enum rv_err read_stream(struct yaml_reader *reader, struct rv_json *ret_value)
{
    static const char *const too_much =
        "a second document begins here; a file must hold one document";
    bool seen = false;
    for (;;) {
        yaml_event_t event;
        enum rv_err err = reader_next(reader, &event);
        if (err != RV_OK)
            return err;
        bool end = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && seen)
            err = reader_fault(reader, &event.start_mark, too_much);
        else if (end && !seen)
            err = reader_fault(reader, &event.start_mark, "the file holds no document");
        else if (!end && event.type != YAML_STREAM_START_EVENT &&
                 event.type != YAML_DOCUMENT_START_EVENT && event.type != YAML_DOCUMENT_END_EVENT) {
            seen = true;
            err = read_value(reader, &event, RV_JSON_DEPTH_MAX, ret_value);
        }
        yaml_event_delete(&event);
        if (err != RV_OK || end)
            return err;
    }
}

static enum rv_err parse_yaml(struct rv_arena *arena, struct rv_str text, struct rv_json *ret_value,
                              struct rv_yaml_fault *fault)
{
    struct yaml_reader reader = {.arena = arena, .text = text, .fault = fault};
    if (!rv_yaml_open(&reader.parser, text))
        return RV_ERR_MEMORY;
    /* An entry for each byte of the text is more than can ever wait. */
    rv_buf_init(&reader.stack, (text.len + 1) * sizeof(struct yaml_entry));
    struct rv_json value;
    enum rv_err err = read_stream(&reader, &value);
    rv_assert(err != RV_OK || reader.stack.len == 0);
    rv_buf_done(&reader.stack);
    yaml_parser_delete(&reader.parser);
    if (err == RV_OK)
        *ret_value = value;
    return err;
}

static bool is_later(const struct rv_yaml_fault *a, const struct rv_yaml_fault *b)
{
    return a->line > b->line || (a->line == b->line && a->column >= b->column);
}

enum rv_err rv_yaml_parse(struct rv_arena *arena, struct rv_str text, size_t bytes_max,
                          struct rv_json *ret_value, struct rv_yaml_fault *ret_fault)
{
    *ret_fault = (struct rv_yaml_fault){1, 1, RV_STR("out of memory")};
    if (text.len > bytes_max) {
        struct rv_str message = rv_arena_printf(arena, "the text has %zu bytes; the maximum is %zu",
                                                text.len, bytes_max);
        ret_fault->message = message.at ? message : RV_STR("the text is too large");
        return RV_ERR_LIMIT;
    }
    if (text.at == NULL)
        text = RV_STR("");
    text = rv_yaml_unmarked(text);
    struct rv_yaml_fault as_json = {1, 0, RV_STR_NONE};
    if (rv_yaml_like_json(text)) {
        struct rv_arena_mark mark = rv_arena_mark(arena);
        struct rv_json_fault fault = {0};
        enum rv_err err = rv_json_parse(arena, text, RV_JSON_DEPTH_MAX, ret_value, &fault);
        if (err == RV_OK || err == RV_ERR_MEMORY || arena->refused != RV_OK ||
            fault.message == NULL)
            return err;
        rv_arena_release(arena, mark);
        bool bare = fault.offset + 1 < text.len && text.at[fault.offset] == '$' &&
                    text.at[fault.offset + 1] == '{';
        as_json.message = bare ? RV_STR("an expression in JSON needs quotes, such as \"${ .x }\"")
                               : rv_str_of(fault.message);
        rv_yaml_place(text, fault.offset, &as_json.line, &as_json.column);
    }
    enum rv_err err = parse_yaml(arena, text, ret_value, ret_fault);
    /* Text that is neither is judged by the reading that got further. */
    if (err == RV_ERR_INVALID && as_json.message.at != NULL && is_later(&as_json, ret_fault))
        *ret_fault = as_json;
    return err;
}

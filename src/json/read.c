/* One reader serves both scan and parse: `build` is a constant at each of its two uses, so that
 * the compiler makes two loops of the one grammar, and the two cannot disagree on what JSON is.
 *
 * It does not recurse. What is open lies in `frames`, one for each level, at most
 * RV_JSON_NESTING_MAX. Parse keeps the finished values of open containers on one stack, members as
 * key and value in turn, which is the layout of struct rv_json_member; when a container closes,
 * its part of the stack is copied to the arena and replaced by the container. So each array of the
 * tree is one piece of exactly its size. */
#include "json/order_priv.h"
#include "json/token_priv.h"

#include "base/assert.h"

#include <stdlib.h>

enum { STACK_FEW = 128 };

struct json_frame {
    uint32_t base;   /* where its values begin on the stack */
    uint32_t offset; /* of its bracket in the text */
    bool is_object;
};

struct json_reader {
    const char *start;
    const char *end;
    unsigned depth;
    unsigned depth_max;
    struct json_failure failure;
    struct json_frame frames[RV_JSON_NESTING_MAX];
    /* Of parse only. */
    struct rv_arena *arena; /* borrowed */
    struct rv_json *stack;  /* `few`, or owned */
    size_t count;
    size_t room;
    struct rv_json few[STACK_FEW];
};

_Static_assert(sizeof(struct rv_json) == 16, "struct rv_json must have 16 bytes");
_Static_assert(sizeof(struct rv_json_member) == 2 * sizeof(struct rv_json),
               "a key followed by its value on the stack has the layout of a member");

static const char *fail_as(struct json_reader *reader, enum rv_err err, const char *at,
                           const char *message)
{
    reader->failure = (struct json_failure){err, at, message};
    return NULL;
}

static const char *fail_full(struct json_reader *reader, const char *at)
{
    bool capped = reader->arena->refused == RV_ERR_LIMIT;
    return fail_as(reader, capped ? RV_ERR_LIMIT : RV_ERR_MEMORY, at,
                   capped ? "the memory limit for parsing is exceeded" : "out of memory");
}

/* All on the stack goes to the arena in the end, so what the arena cannot take need not be read:
 * the arena's cap bounds the stack too, and the time. */
static bool stack_grow(struct json_reader *reader)
{
    const struct rv_arena *arena = reader->arena;
    rv_assert(reader->count == reader->room);
    size_t room = 2 * reader->count, bytes = reader->count * sizeof *reader->stack;
    if (arena->bytes_max != 0) {
        size_t most = (arena->bytes_max - arena->bytes_taken) / sizeof *reader->stack;
        room = room < most ? room : most;
    }
    if (room <= reader->count) {
        (void)rv_arena_take(reader->arena, bytes + sizeof *reader->stack); /* which says why not */
        return false;
    }
    bool owned = reader->stack != reader->few;
    rv_assert(owned || reader->room == STACK_FEW);
    struct rv_json *stack = realloc(owned ? reader->stack : NULL, room * sizeof *stack);
    if (stack == NULL)
        return false;
    if (!owned)
        memcpy(stack, reader->few, bytes);
    reader->stack = stack;
    reader->room = room;
    return true;
}

static inline bool push(struct json_reader *reader, struct rv_json value)
{
    if (__builtin_expect(reader->count == reader->room, 0) && !stack_grow(reader))
        return false;
    reader->stack[reader->count++] = value;
    return true;
}

static inline const char *space_end(const char *at, const char *end)
{
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
        at++;
    return at;
}

/* `at` is the byte after the opening quote. */
static inline const char *read_string(struct json_reader *reader, const char *at, bool build)
{
    bool escaped;
    const char *quote = rv_json_string_end(&reader->failure, at, reader->end, &escaped);
    if (quote == NULL)
        return NULL;
    if (build) {
        struct rv_str text = {at, (size_t)(quote - at)};
        if (escaped) {
            char *to = rv_arena_bytes(reader->arena, text.len);
            if (to == NULL)
                return fail_full(reader, at);
            text = (struct rv_str){to, rv_json_unescape(at, quote, to)};
        }
        if (!push(reader, rv_json_of_str(text)))
            return fail_full(reader, at);
    }
    return quote + 1;
}

static const char *read_literal(struct json_reader *reader, const char *at, bool build)
{
    size_t room = (size_t)(reader->end - at);
    struct rv_json value = rv_json_null();
    size_t len = 0;
    if (room >= 4 && memcmp(at, "null", 4) == 0) {
        len = 4;
    } else if (room >= 4 && memcmp(at, "true", 4) == 0) {
        len = 4;
        value = rv_json_bool(true);
    } else if (room >= 5 && memcmp(at, "false", 5) == 0) {
        len = 5;
        value = rv_json_bool(false);
    }
    if (len == 0)
        return rv_json_fail(&reader->failure, at, "expected a value");
    if (build && !push(reader, value))
        return fail_full(reader, at);
    return at + len;
}

static inline const char *read_number(struct json_reader *reader, const char *at, bool build)
{
    const char *end = rv_json_number_end(&reader->failure, at, reader->end);
    if (end != NULL && build) {
        struct rv_json number = {
            .type = RV_JSON_NUMBER, .len = (uint32_t)(end - at), .u = {.text = at}};
        if (!push(reader, number))
            return fail_full(reader, at);
    }
    return end;
}

/* A key, its colon and the space around them; `at` is where the quote must be. */
static inline const char *read_key(struct json_reader *reader, const char *at, bool build)
{
    if (at == reader->end || *at != '"')
        return rv_json_fail(&reader->failure, at, "expected a key in double quotes");
    at = read_string(reader, at + 1, build);
    if (at == NULL)
        return NULL;
    at = space_end(at, reader->end);
    if (at == reader->end || *at != ':')
        return rv_json_fail(&reader->failure, at, "expected ':' after the key");
    return space_end(at + 1, reader->end);
}

/* Where the key of member `index` begins in the object whose bracket is at `at`. The text is known
 * to be well-formed. */
static const char *key_place(const char *at, const char *end, uint32_t index)
{
    rv_assert(*at == '{');
    unsigned depth = 0;
    for (at++; at < end; at++) {
        if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            depth--;
        } else if (*at == '"') {
            const char *quote = at;
            for (at++; *at != '"'; at++)
                if (*at == '\\')
                    at++;
            const char *next = space_end(at + 1, end);
            if (depth == 0 && next != end && *next == ':' && index-- == 0)
                return quote;
        }
    }
    return end;
}

static uint32_t repeated_in_small(const struct rv_json_member *members, uint32_t count)
{
    /* One bit for each key by its length and ends: only keys that share one are compared. */
    uint64_t seen = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct rv_str key = json_key(&members[i]);
        unsigned sum = (unsigned)key.len * 7;
        if (key.len != 0)
            sum += (unsigned char)key.at[0] * 3U + (unsigned char)key.at[key.len - 1];
        uint64_t bit = UINT64_C(1) << (sum & 63);
        if ((seen & bit) != 0)
            for (uint32_t j = 0; j < i; j++)
                if (rv_str_eq(json_key(&members[j]), key))
                    return i;
        seen |= bit;
    }
    return count;
}

/* Two entries that name the same key lie side by side once sorted, the later one second. */
static uint32_t repeated_in_large(struct json_sort_entry *entries,
                                  const struct rv_json_member *members, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        entries[i] = rv_json_sort_entry_of(&members[i]);
    rv_json_sort(entries, entries + count, count);
    rv_assert(entries[0].prefix <= entries[count - 1].prefix);
    for (uint32_t i = 1; i < count; i++)
        if (entries[i - 1].prefix == entries[i].prefix &&
            rv_str_eq(json_key(entries[i - 1].member), json_key(entries[i].member)))
            return (uint32_t)(entries[i].member - members);
    return count;
}

static bool keys_differ(struct json_reader *reader, const struct json_frame *frame,
                        const struct rv_json_member *members, uint32_t count)
{
    uint32_t repeated;
    rv_assert(frame->is_object);
    if (count <= JSON_SMALL_OBJECT) {
        repeated = repeated_in_small(members, count);
    } else {
        struct json_sort_entry *entries = malloc(2 * (size_t)count * sizeof *entries);
        if (entries == NULL) {
            fail_as(reader, RV_ERR_MEMORY, reader->start + frame->offset, "out of memory");
            return false;
        }
        repeated = repeated_in_large(entries, members, count);
        free(entries);
    }
    rv_assert(repeated <= count);
    if (repeated == count)
        return true;
    rv_json_fail(&reader->failure, key_place(reader->start + frame->offset, reader->end, repeated),
                 "duplicate key in this object");
    return false;
}

/* Moves the values of the innermost container to the arena, the container into their place. */
static bool build_container(struct json_reader *reader, const struct json_frame *frame)
{
    rv_assert(reader->count >= frame->base);
    size_t values = reader->count - frame->base;
    rv_assert(!frame->is_object || values % 2 == 0); /* key and value by turns */
    uint32_t len = (uint32_t)(frame->is_object ? values / 2 : values);
    struct rv_json made = {.type = frame->is_object ? RV_JSON_OBJECT : RV_JSON_ARRAY, .len = len};
    if (values != 0) {
        struct rv_json *to = rv_arena_take(reader->arena, values * sizeof *to);
        if (to == NULL) {
            fail_full(reader, reader->start + frame->offset);
            return false;
        }
        memcpy(to, reader->stack + frame->base, values * sizeof *to);
        if (frame->is_object) {
            const void *members = to;
            made.u.members = members;
            if (!keys_differ(reader, frame, made.u.members, len))
                return false;
        } else {
            made.u.items = to;
        }
    }
    reader->count = frame->base;
    if (push(reader, made))
        return true;
    fail_full(reader, reader->start + frame->offset);
    return false;
}

static inline const char *open_container(struct json_reader *reader, const char *at)
{
    if (reader->depth == reader->depth_max)
        return fail_as(reader, RV_ERR_LIMIT, at, "nested too deep");
    reader->frames[reader->depth++] = (struct json_frame){
        (uint32_t)reader->count, (uint32_t)(at - reader->start), *at == '{'};
    return space_end(at + 1, reader->end);
}

static inline const char *close_container(struct json_reader *reader, const char *at, bool build)
{
    rv_assert(reader->depth > 0);
    reader->depth--;
    if (build && !build_container(reader, &reader->frames[reader->depth]))
        return NULL;
    return space_end(at + 1, reader->end);
}

/* From after a value through all brackets that close there, to where the next value begins; or to
 * the end of the outermost one. */
static inline const char *read_after_value(struct json_reader *reader, const char *at, bool build)
{
    at = space_end(at, reader->end);
    while (reader->depth > 0) {
        bool in_object = reader->frames[reader->depth - 1].is_object;
        if (at == reader->end)
            return rv_json_fail(&reader->failure, at,
                                in_object ? "the object is not closed" : "the array is not closed");
        if (*at == ',') {
            at = space_end(at + 1, reader->end);
            return in_object ? read_key(reader, at, build) : at;
        }
        if (*at != (in_object ? '}' : ']'))
            return rv_json_fail(&reader->failure, at,
                                in_object ? "expected ',' or '}'" : "expected ',' or ']'");
        at = close_container(reader, at, build);
        if (at == NULL)
            return NULL;
    }
    return at;
}

/* One value's first token, or an opening bracket with a first key where there is one. An empty
 * container counts as a value. *ret_opened: a value must follow. */
static inline const char *read_value(struct json_reader *reader, const char *at, bool build,
                                     bool *ret_opened)
{
    *ret_opened = false;
    if (at == reader->end)
        return rv_json_fail(&reader->failure, at, "expected a value");
    char c = *at;
    if (c == '"')
        return read_string(reader, at + 1, build);
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(reader, at, build);
    if (c != '{' && c != '[')
        return read_literal(reader, at, build);
    at = open_container(reader, at);
    if (at == NULL)
        return NULL;
    if (at != reader->end && *at == (c == '{' ? '}' : ']'))
        return close_container(reader, at, build);
    *ret_opened = true;
    return c == '{' ? read_key(reader, at, build) : at;
}

static inline __attribute__((always_inline)) void read_text(struct json_reader *reader, bool build)
{
    const char *at = space_end(reader->start, reader->end);
    if (reader->end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        rv_json_fail(&reader->failure, at,
                     "unexpected byte order mark; save the text as UTF-8 without it");
        return;
    }
    do {
        bool opened;
        at = read_value(reader, at, build, &opened);
        if (at != NULL && !opened)
            at = read_after_value(reader, at, build);
    } while (at != NULL && reader->depth > 0);
    if (at != NULL && at != reader->end)
        rv_json_fail(&reader->failure, at, "unexpected text after the value");
}

static void fault_fill(const struct json_reader *reader, struct rv_json_fault *ret_fault)
{
    uint32_t line = 1;
    const char *line_start = reader->start;
    rv_assert(reader->failure.at >= reader->start);
    rv_assert(reader->failure.at <= reader->end);
    for (const char *at = reader->start; at < reader->failure.at; at++) {
        if (*at == '\n') {
            line++;
            line_start = at + 1;
        }
    }
    *ret_fault = (struct rv_json_fault){
        .offset = (size_t)(reader->failure.at - reader->start),
        .line = line,
        .column = (uint32_t)(reader->failure.at - line_start) + 1,
        .message = reader->failure.message,
    };
}

/* Sets only what needs it: the frames and the stack are filled as they are used. */
static bool reader_init(struct json_reader *reader, struct rv_str text, unsigned depth_max)
{
    reader->start = text.at != NULL ? text.at : "";
    reader->end = reader->start + text.len;
    reader->depth = 0;
    reader->depth_max = depth_max < RV_JSON_NESTING_MAX ? depth_max : RV_JSON_NESTING_MAX;
    reader->failure = (struct json_failure){RV_OK, NULL, NULL};
    reader->arena = NULL;
    reader->stack = reader->few;
    reader->count = 0;
    reader->room = STACK_FEW;
    if (text.len < UINT32_MAX)
        return true;
    fail_as(reader, RV_ERR_LIMIT, reader->start, "the string is 4 GiB or longer");
    return false;
}

static enum rv_err reader_result(const struct json_reader *reader, struct rv_json_fault *ret_fault)
{
    if (reader->failure.err != RV_OK && ret_fault != NULL)
        fault_fill(reader, ret_fault);
    return reader->failure.err;
}

enum rv_err rv_json_scan(struct rv_str text, unsigned depth_max, struct rv_json_fault *ret_fault)
{
    struct json_reader reader;
    if (reader_init(&reader, text, depth_max))
        read_text(&reader, false);
    return reader_result(&reader, ret_fault);
}

enum rv_err rv_json_parse(struct rv_arena *arena, struct rv_str text, unsigned depth_max,
                          struct rv_json *ret_value, struct rv_json_fault *ret_fault)
{
    struct json_reader reader;
    if (reader_init(&reader, text, depth_max)) {
        reader.arena = arena;
        read_text(&reader, true);
    }
    if (reader.failure.err == RV_OK) {
        rv_assert(reader.depth == 0);
        rv_assert(reader.count == 1);
        *ret_value = reader.stack[0];
    }
    if (reader.stack != reader.few)
        free(reader.stack);
    return reader_result(&reader, ret_fault);
}

#include "core/trace.h"

#include "base/assert.h"
#include "base/hash.h"
#include "core/rows.h"

#include <stddef.h>

enum {
    HEX_ID = 32,
    HEX_SPAN = 16,
    AT_ID = 3,
    AT_SPAN = 36,
    AT_FLAGS = 53,
    FIRST_BYTES = 55, /* what all versions have in common */
    FLAG_SAMPLED = 1,
    LONG_MEMBER_BYTES = 128,
    KEY_BYTES_MAX = 256,
    TENANT_BYTES_MAX = 241,
    SYSTEM_BYTES_MAX = 14,
    VALUE_BYTES_MAX = 256
};

/* ---- hexadecimal ---- */

/* Lower case alone is valid. */
static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex_read(const char *at, size_t digits, uint64_t *ret_value)
{
    uint64_t value = 0;
    rv_assert(digits <= HEX_SPAN);
    for (size_t i = 0; i < digits; i++) {
        int digit = digit_of(at[i]);
        if (digit < 0)
            return false;
        value = value << 4 | (uint64_t)digit;
    }
    *ret_value = value;
    return true;
}

static void hex_write(char *at, uint64_t value)
{
    for (size_t i = HEX_SPAN; i > 0; i--, value >>= 4)
        at[i - 1] = "0123456789abcdef"[value & 15];
}

/* ---- traceparent ---- */

static bool id_read(const char *at, struct rv_trace *trace)
{
    return hex_read(at, HEX_SPAN, &trace->high) && hex_read(at + HEX_SPAN, HEX_SPAN, &trace->low) &&
           (trace->high | trace->low) != 0;
}

bool rv_trace_read(struct rv_str traceparent, struct rv_trace *ret_trace)
{
    const char *at = traceparent.at;
    uint64_t version, flags;
    struct rv_trace trace;
    if (traceparent.len < FIRST_BYTES || !hex_read(at, 2, &version) || version == 0xff)
        return false;
    bool longer = traceparent.len > FIRST_BYTES;
    if (longer && (version == 0 || at[FIRST_BYTES] != '-'))
        return false;
    if (at[AT_ID - 1] != '-' || at[AT_SPAN - 1] != '-' || at[AT_FLAGS - 1] != '-' ||
        !id_read(at + AT_ID, &trace) || !hex_read(at + AT_SPAN, HEX_SPAN, &trace.parent) ||
        trace.parent == 0 || !hex_read(at + AT_FLAGS, 2, &flags))
        return false;
    trace.sampled = (flags & FLAG_SAMPLED) != 0; /* the others say nothing in version 00 */
    *ret_trace = trace;
    return true;
}

struct rv_str rv_trace_text(const struct rv_trace *trace, uint64_t span,
                            char text[static RV_TRACEPARENT_BYTES])
{
    rv_assert((trace->high | trace->low) != 0);
    text[0] = text[1] = text[AT_FLAGS] = '0';
    text[AT_ID - 1] = text[AT_SPAN - 1] = text[AT_FLAGS - 1] = '-';
    hex_write(text + AT_ID, trace->high);
    hex_write(text + AT_ID + HEX_SPAN, trace->low);
    hex_write(text + AT_SPAN, span);
    text[AT_FLAGS + 1] = trace->sampled ? '1' : '0';
    text[FIRST_BYTES] = '\0';
    return (struct rv_str){text, FIRST_BYTES};
}

struct rv_str rv_trace_id_text(const struct rv_trace *trace, char text[static RV_TRACE_ID_BYTES])
{
    rv_assert((trace->high | trace->low) != 0);
    hex_write(text, trace->high);
    hex_write(text + HEX_SPAN, trace->low);
    text[HEX_ID] = '\0';
    return (struct rv_str){text, HEX_ID};
}

/* ---- of a task ---- */

/* Nobody traces yet, so nobody has said that it shall not be kept. */
static struct rv_trace trace_made(struct rv_task_id task, uint64_t seed)
{
    struct rv_hash_key key = {seed, (uint64_t)task.value};
    struct rv_trace trace = {.high = rv_hash(key, RV_STR("trace high")),
                             .low = rv_hash(key, RV_STR("trace low")),
                             .sampled = true};
    if ((trace.high | trace.low) == 0)
        trace.low = 1;
    return trace;
}

struct rv_str rv_trace_make(struct rv_task_id task, uint64_t seed,
                            char text[static RV_TRACE_ID_BYTES])
{
    struct rv_trace trace = trace_made(task, seed);
    return rv_trace_id_text(&trace, text);
}

struct rv_trace rv_trace_of(const struct rv_task *task)
{
    struct rv_trace trace = {.parent = 0, .sampled = true};
    if (rv_trace_read(task->trace, &trace))
        return trace;
    if (task->trace.len == HEX_ID && id_read(task->trace.at, &trace))
        return trace;
    return trace_made(task->id, 0);
}

uint64_t rv_trace_span(struct rv_task_id task, uint32_t step, uint32_t attempt)
{
    uint64_t place = rv_hash_int((uint64_t)step << 32 | attempt);
    uint64_t span = rv_hash_int((uint64_t)task.value ^ place);
    return span != 0 ? span : 1;
}

/* ---- tracestate ---- */

static bool key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '*' ||
           c == '/';
}

static bool key_part(struct rv_str part, size_t bytes_max, bool digit_first)
{
    if (part.len == 0 || part.len > bytes_max)
        return false;
    char first = part.at[0];
    if (!(first >= 'a' && first <= 'z') && !(digit_first && first >= '0' && first <= '9'))
        return false;
    for (size_t i = 1; i < part.len; i++)
        if (!key_char(part.at[i]))
            return false;
    return true;
}

static bool key_valid(struct rv_str key)
{
    size_t at = 0;
    while (at < key.len && key.at[at] != '@')
        at++;
    if (at == key.len)
        return key_part(key, KEY_BYTES_MAX, false);
    struct rv_str tenant = {key.at, at};
    struct rv_str system = {key.at + at + 1, key.len - at - 1};
    return key_part(tenant, TENANT_BYTES_MAX, true) && key_part(system, SYSTEM_BYTES_MAX, false);
}

static bool value_valid(struct rv_str value)
{
    for (size_t i = 0; i < value.len; i++)
        if (value.at[i] < ' ' || value.at[i] > '~' || value.at[i] == '=')
            return false;
    return value.len > 0 && value.len <= VALUE_BYTES_MAX;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next member of the list without the blanks around it; empty ones are valid, and none. */
static bool member_next(struct rv_str *rest, struct rv_str *ret_member)
{
    while (rest->len > 0) {
        size_t len = 0;
        while (len < rest->len && rest->at[len] != ',')
            len++;
        struct rv_str member = {rest->at, len};
        size_t past = len < rest->len ? len + 1 : len;
        *rest = (struct rv_str){rest->at + past, rest->len - past};
        while (member.len > 0 && blank(member.at[0]))
            member = (struct rv_str){member.at + 1, member.len - 1};
        while (member.len > 0 && blank(member.at[member.len - 1]))
            member.len--;
        *ret_member = member;
        if (member.len > 0)
            return true;
    }
    return false;
}

struct members {
    struct rv_str at[RV_TRACESTATE_MEMBERS_MAX];
    struct rv_str keys[RV_TRACESTATE_MEMBERS_MAX];
    size_t count;
};

static bool member_add(struct members *members, struct rv_str member)
{
    size_t key_len = 0;
    while (key_len < member.len && member.at[key_len] != '=')
        key_len++;
    struct rv_str key = {member.at, key_len};
    if (key_len == member.len || members->count == RV_TRACESTATE_MEMBERS_MAX || !key_valid(key) ||
        !value_valid((struct rv_str){member.at + key_len + 1, member.len - key_len - 1}))
        return false;
    for (size_t i = 0; i < members->count; i++)
        if (rv_str_eq(members->keys[i], key))
            return false;
    members->keys[members->count] = key;
    members->at[members->count++] = member;
    return true;
}

static size_t members_bytes(const struct members *members)
{
    size_t bytes = 0;
    for (size_t i = 0; i < members->count; i++)
        bytes += members->at[i].len + (bytes > 0);
    return bytes;
}

static void long_leave(struct members *members)
{
    size_t kept = 0;
    for (size_t i = 0; i < members->count; i++)
        if (members->at[i].len <= LONG_MEMBER_BYTES)
            members->at[kept++] = members->at[i];
    members->count = kept;
}

struct rv_str rv_tracestate_read(struct rv_str given, char *text)
{
    struct members members = {.count = 0};
    struct rv_str member;
    size_t given_len = given.len;
    while (member_next(&given, &member))
        if (!member_add(&members, member))
            return RV_STR_NONE;
    if (members_bytes(&members) > RV_TRACESTATE_BYTES_MAX)
        long_leave(&members);
    while (members_bytes(&members) > RV_TRACESTATE_BYTES_MAX)
        members.count--;
    if (members.count == 0)
        return RV_STR_NONE;
    rv_assert(members_bytes(&members) <= given_len); /* `text` may be where `given` is */
    size_t len = 0;
    for (size_t i = 0; i < members.count; i++) {
        if (i > 0)
            text[len++] = ',';
        for (size_t k = 0; k < members.at[i].len; k++)
            text[len + k] = members.at[i].at[k];
        len += members.at[i].len;
    }
    return (struct rv_str){text, len};
}

/* ---- messages ---- */

static bool byte_take(struct rv_str *rest, char byte)
{
    if (rest->len == 0 || rest->at[0] != byte)
        return false;
    *rest = (struct rv_str){rest->at + 1, rest->len - 1};
    return true;
}

/* A string of JSON as it is written, without its quotes. */
static bool string_take(struct rv_str *rest, struct rv_str *ret_text)
{
    if (rest->len == 0 || rest->at[0] != '"')
        return false;
    size_t end = 1;
    while (end < rest->len && rest->at[end] != '"')
        end += rest->at[end] == '\\' ? 2 : 1;
    if (end >= rest->len)
        return false;
    *ret_text = (struct rv_str){rest->at + 1, end - 1};
    *rest = (struct rv_str){rest->at + end + 1, rest->len - end - 1};
    return true;
}

static void digits_skip(struct rv_str *rest)
{
    while (rest->len > 0 && rest->at[0] >= '0' && rest->at[0] <= '9')
        *rest = (struct rv_str){rest->at + 1, rest->len - 1};
}

/* It stands in the head, which has strings and numbers only; payloads come behind it and may be
 * large, so nothing looks at them. */
struct rv_str rv_trace_of_message(struct rv_str body)
{
    struct rv_str rest = body, name;
    if (!byte_take(&rest, '{'))
        return RV_STR_NONE;
    while (string_take(&rest, &name) && byte_take(&rest, ':')) {
        struct rv_str value = RV_STR_NONE;
        if (!string_take(&rest, &value))
            digits_skip(&rest);
        if (rv_str_is(name, "traceparent"))
            return value;
        if (!byte_take(&rest, ','))
            break;
    }
    return RV_STR_NONE;
}

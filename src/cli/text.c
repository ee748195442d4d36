#include "cli/text_priv.h"

#include "base/assert.h"
#include "base/time.h"
#include "base/utf8.h"

#include <string.h>

size_t cli_text_columns(struct rv_str text)
{
    size_t columns = 0;
    for (size_t i = 0; i < text.len; i++)
        columns += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return columns;
}

struct rv_str cli_text_clean(struct rv_arena *arena, struct rv_str text)
{
    char *out = rv_arena_bytes(arena, text.len + 1);
    size_t len = 0;
    if (out == NULL)
        return RV_STR_NONE;
    for (size_t i = 0; i < text.len;) {
        size_t bytes = rv_utf8_len(text.at + i, text.at + text.len);
        if (bytes == 0) {
            out[len++] = '?';
            i++;
        } else if (rv_utf8_hides(rv_utf8_point(text.at + i, bytes))) {
            out[len++] = ' ';
            i += bytes;
        } else {
            memcpy(out + len, text.at + i, bytes);
            len += bytes;
            i += bytes;
        }
    }
    rv_assert(len <= text.len); /* each character becomes as many bytes or fewer */
    out[len] = '\0';
    return (struct rv_str){out, len};
}

/* The bytes of the first `columns` columns. */
static size_t bytes_of_columns(struct rv_str text, size_t columns)
{
    size_t i = 0;
    for (; i < text.len; i++)
        if (((unsigned char)text.at[i] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return i;
}

struct rv_str cli_text_cut(struct rv_arena *arena, struct rv_str text, size_t columns)
{
    if (cli_text_columns(text) <= columns)
        return text;
    if (columns <= 3)
        return (struct rv_str){text.at, bytes_of_columns(text, columns)};
    struct rv_str kept = {text.at, bytes_of_columns(text, columns - 3)};
    rv_assert(kept.len < text.len);
    return rv_arena_printf(arena, "%.*s...", RV_STR_FMT(kept));
}

struct rv_str cli_text_duration(struct rv_arena *arena, int64_t ms)
{
    char text[RV_INSTANT_TEXT_BYTES];
    return rv_arena_str(arena, rv_span_text(ms, text));
}

struct rv_str cli_text_distance(struct rv_arena *arena, int64_t at, int64_t now)
{
    if (at > now)
        return rv_arena_printf(arena, "in %.*s", RV_STR_FMT(cli_text_duration(arena, at - now)));
    return rv_arena_printf(arena, "%.*s ago", RV_STR_FMT(cli_text_duration(arena, now - at)));
}

struct rv_str cli_text_ago(struct rv_arena *arena, int64_t at, int64_t now)
{
    return cli_text_distance(arena, at < now ? at : now, now);
}

static struct rv_str instant_text(struct rv_arena *arena, int64_t at, struct rv_str distance)
{
    char iso[RV_INSTANT_TEXT_BYTES];
    (void)rv_instant_text(at, iso); /* "2026-11-21T09:49:44.000Z" */
    return rv_arena_printf(arena, "%.10s %.8s UTC, %.*s", iso, iso + 11, RV_STR_FMT(distance));
}

struct rv_str cli_text_instant(struct rv_arena *arena, int64_t at, int64_t now)
{
    return instant_text(arena, at, cli_text_distance(arena, at, now));
}

struct rv_str cli_text_past(struct rv_arena *arena, int64_t at, int64_t now)
{
    return instant_text(arena, at, cli_text_ago(arena, at, now));
}

struct rv_str cli_text_number(struct rv_arena *arena, uint64_t number)
{
    char out[32];
    size_t at = sizeof out;
    unsigned digits = 0;
    do {
        rv_assert(at >= 2);
        if (digits > 0 && digits % 3 == 0)
            out[--at] = ',';
        out[--at] = (char)('0' + number % 10);
        number /= 10;
        digits++;
    } while (number > 0);
    return rv_arena_str(arena, (struct rv_str){out + at, sizeof out - at});
}

struct rv_str cli_text_bar(struct rv_arena *arena, uint64_t done, uint64_t total, size_t columns)
{
    size_t inside = columns > 3 ? columns - 2 : 1;
    char *out = rv_arena_bytes(arena, inside + 2);
    if (out == NULL)
        return RV_STR_NONE;
    double part = total == 0 ? 0 : done >= total ? 1 : (double)done / (double)total;
    size_t filled = (size_t)(part * (double)inside);
    rv_assert(filled <= inside);
    out[0] = '[';
    memset(out + 1, '#', filled);
    memset(out + 1 + filled, '.', inside - filled);
    out[inside + 1] = ']';
    return (struct rv_str){out, inside + 2};
}

static bool all_digits(struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.len > 0;
}

/* A reference token of a JSON pointer without its escapes (RFC 6901). */
static void token_add(struct rv_buf *buf, struct rv_str token)
{
    for (size_t i = 0; i < token.len; i++) {
        bool escape = token.at[i] == '~' && i + 1 < token.len;
        if (escape)
            i++;
        rv_buf_add_char(buf, !escape ? token.at[i] : token.at[i] == '1' ? '/' : '~');
    }
}

/* Names stand behind the numbers of lists; what lies between is the DSL's own structure. */
struct rv_str cli_text_step(struct rv_arena *arena, struct rv_str reference)
{
    struct rv_buf buf;
    rv_buf_init(&buf, reference.len + 1);
    bool named = false;
    for (size_t i = 0; i < reference.len;) {
        size_t start = ++i; /* past the slash */
        while (i < reference.len && reference.at[i] != '/')
            i++;
        struct rv_str token = {reference.at + start, i - start};
        if (named && buf.len > 0)
            rv_buf_add_char(&buf, '/');
        if (named)
            token_add(&buf, token);
        named = !named && all_digits(token);
    }
    struct rv_str name = rv_arena_str(arena, buf.len ? rv_buf_str(&buf) : reference);
    rv_buf_done(&buf);
    return name;
}

/* ---- colours ---- */

enum cli_colour cli_colour_of_state(struct rv_str state)
{
    static const struct {
        const char *state;
        enum cli_colour colour;
    } rows[] = {
        {"processed", CLI_GREEN},     {"done", CLI_GREEN},          {"error", CLI_RED},
        {"failed", CLI_RED},          {"compensated", CLI_YELLOW},  {"cancelled", CLI_YELLOW},
        {"compensating", CLI_YELLOW}, {"processing", CLI_CYAN},     {"open", CLI_CYAN},
        {"expired", CLI_RED},         {"circuit-open", CLI_YELLOW}, {"skipped", CLI_DIM}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rv_str_is(state, rows[i].state))
            return rows[i].colour;
    return CLI_PLAIN;
}

const char *cli_colour_begin(enum cli_colour colour, bool wanted)
{
    static const char *const codes[] = {
        [CLI_PLAIN] = "",         [CLI_BOLD] = "\033[1m",   [CLI_DIM] = "\033[2m",
        [CLI_RED] = "\033[1;31m", [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m",
        [CLI_CYAN] = "\033[36m"};
    rv_assert(colour < sizeof codes / sizeof codes[0]);
    rv_assert(codes[colour] != NULL); /* each colour has a code */
    return wanted ? codes[colour] : "";
}

const char *cli_colour_end(bool wanted)
{
    return wanted ? "\033[0m" : "";
}

static void line_begin(struct rv_buf *buf, unsigned level)
{
    rv_buf_add_char(buf, '\n');
    for (unsigned i = 0; i < level; i++)
        rv_buf_lit(buf, "  ");
}

static bool is_flat(const struct rv_json *value)
{
    enum { MEMBERS_MAX = 4 };
    bool object = value->type == RV_JSON_OBJECT;
    for (uint32_t i = 0; i < value->len; i++) {
        const struct rv_json *item = object ? &value->u.members[i].value : &value->u.items[i];
        if (item->type == RV_JSON_OBJECT || item->type == RV_JSON_ARRAY)
            return false;
    }
    return value->len <= MEMBERS_MAX;
}

void cli_json_indent(struct rv_buf *buf, const struct rv_json *value, unsigned level)
{
    bool object = value->type == RV_JSON_OBJECT;
    if ((!object && value->type != RV_JSON_ARRAY) || is_flat(value)) {
        rv_json_write(buf, value);
        return;
    }
    rv_buf_add_char(buf, object ? '{' : '[');
    for (uint32_t i = 0; i < value->len; i++) {
        if (i > 0)
            rv_buf_add_char(buf, ',');
        line_begin(buf, level + 1);
        if (object) {
            rv_json_write_string(buf, rv_json_str(&value->u.members[i].key));
            rv_buf_lit(buf, ": ");
        }
        cli_json_indent(buf, object ? &value->u.members[i].value : &value->u.items[i], level + 1);
    }
    line_begin(buf, level);
    rv_buf_add_char(buf, object ? '}' : ']');
}

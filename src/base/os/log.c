#include "base/os/log.h"

#include "base/arena.h"
#include "base/format.h"
#include "base/os/clock.h"
#include "base/os/sink.h"
#include "base/time.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SHARE_BYTES = 256,    /* of a line: a field that is cut leaves as much to each later field */
    VALUE_BYTES_MIN = 16, /* a field that gets less is left out */
    QUEUE_BYTES_MAX = 256 * 1024,
    REFUSAL_MS = 2000, /* for a reader of the last words */
    FLUSH_MS = 300
};

static void dropped_tell(struct rv_sink *sink);

/* Of the process: both outlive all threads that write to them. */
static struct rv_sink log_sink = RV_SINK_INIT(STDERR_FILENO, QUEUE_BYTES_MAX, dropped_tell);
static struct rv_sink out_sink = RV_SINK_INIT(STDOUT_FILENO, QUEUE_BYTES_MAX, NULL);
static pthread_once_t at_exit = PTHREAD_ONCE_INIT;

static enum rv_log_form log_form = RV_LOG_JSON;
static bool form_chosen; /* so this program runs for long, and perhaps nobody reads */
static bool json_chosen; /* by name, not because stderr is not a terminal */

/* A line under construction; what does not fit is dropped, but the end always has its place. */
struct log_line {
    char *at; /* borrowed */
    size_t len;
    size_t len_max;
};

static const char *const level_texts[] = {
    [RV_LOG_INFO] = "info", [RV_LOG_WARNING] = "warning", [RV_LOG_ERROR] = "error"};

void rv_log_set_form(enum rv_log_form form)
{
    log_form = form;
    form_chosen = true;
    json_chosen = form == RV_LOG_JSON;
    if (form == RV_LOG_AUTO)
        log_form = isatty(STDERR_FILENO) ? RV_LOG_TEXT : RV_LOG_JSON;
}

bool rv_log_choose(const char *name)
{
    static const char *const names[] = {
        [RV_LOG_AUTO] = "auto", [RV_LOG_TEXT] = "text", [RV_LOG_JSON] = "json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            rv_log_set_form((enum rv_log_form)i);
            return true;
        }
    }
    return false;
}

bool rv_log_is_json(void)
{
    return log_form == RV_LOG_JSON;
}

static void line_add(struct log_line *line, const char *text, size_t len)
{
    if (len > line->len_max - line->len)
        len = line->len_max - line->len;
    memcpy(line->at + line->len, text, len);
    line->len += len;
}

static void line_add_text(struct log_line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

static void line_add_int(struct log_line *line, int64_t number)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%lld", (long long)number);
    line_add(line, digits, (size_t)n);
}

/* One character as it stands in a line. */
struct log_char {
    char text[16];
    size_t len;
    size_t bytes; /* of the value */
};

static void char_escape(struct log_char *c, uint32_t point)
{
    unsigned above = (unsigned)(point - 0x10000);
    if (point < 0x10000)
        snprintf(c->text, sizeof c->text, "\\u%04x", (unsigned)point);
    else
        snprintf(c->text, sizeof c->text, "\\u%04x\\u%04x", 0xd800U | (above >> 10 & 0x3ffU),
                 0xdc00U | (above & 0x3ffU));
    c->len = strlen(c->text);
}

/* Control and formatting characters are escaped, in text lines too: a stranger's name must not
 * forge a line or show another text. Bytes that are not UTF-8 become U+FFFD: JSON must be UTF-8. */
static struct log_char char_read(const char *at, const char *end)
{
    static const char replacement[] = "\xef\xbf\xbd";
    struct log_char c = {.bytes = rv_utf8_len(at, end)};
    if (c.bytes == 0) {
        c.bytes = 1;
        c.len = sizeof replacement - 1;
        memcpy(c.text, replacement, c.len);
    } else if (*at == '"' || *at == '\\') {
        c.len = 2;
        memcpy(c.text, (char[]){'\\', *at}, c.len);
    } else if (rv_utf8_hides(rv_utf8_point(at, c.bytes))) {
        char_escape(&c, rv_utf8_point(at, c.bytes));
    } else {
        c.len = c.bytes;
        memcpy(c.text, at, c.len);
    }
    return c;
}

static size_t escaped_len(struct rv_str text)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len && len <= RV_LOG_LINE_BYTES;) { /* beyond: it does not fit */
        struct log_char c = char_read(text.at + i, text.at + text.len);
        len += c.len;
        i += c.bytes;
    }
    return len;
}

/* At most `room` bytes; an ellipsis shows that the text is cut. */
static void line_add_escaped(struct log_line *line, struct rv_str text, size_t room)
{
    static const char ellipsis[] = "\xe2\x80\xa6";
    bool whole = escaped_len(text) <= room;
    if (!whole)
        room -= sizeof ellipsis - 1;
    for (size_t i = 0; i < text.len;) {
        struct log_char c = char_read(text.at + i, text.at + text.len);
        if (c.len > room)
            break;
        line_add(line, c.text, c.len);
        room -= c.len;
        i += c.bytes;
    }
    line_add_text(line, whole ? "" : ellipsis);
}

/* In a line of text. */
static bool value_needs_quotes(struct rv_str text)
{
    static const char special[] = " \"\\=";
    for (size_t i = 0; i < text.len && i < RV_LOG_LINE_BYTES; i++)
        if (memchr(special, text.at[i], sizeof special - 1) != NULL)
            return true;
    return text.len == 0 || escaped_len(text) != text.len;
}

/* All but the value: the name, and at most a comma, a colon and two pairs of quotes. */
static size_t frame_len(const struct rv_log_field *field)
{
    return strlen(field->name) + 6;
}

static size_t field_len(const struct rv_log_field *field)
{
    return frame_len(field) + (field->text.at == NULL ? 20 : escaped_len(field->text));
}

/* What the later fields need, or their shares if they are long. */
static size_t later_len(const struct rv_log_field *fields, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += field_len(&fields[i]) < SHARE_BYTES ? field_len(&fields[i]) : SHARE_BYTES;
    return len;
}

/* JSON must not be cut inside, so a value is cut to its room, and a field without any is left out.
 */
static void line_add_field(struct log_line *line, const struct rv_log_field *field, size_t later)
{
    bool json = log_form == RV_LOG_JSON;
    bool number = field->text.at == NULL;
    size_t left = line->len_max - line->len;
    size_t room = left > later ? left - later : 0;
    size_t value_bytes_min = number ? 20 : VALUE_BYTES_MIN;
    if (room < field_len(field) && room < frame_len(field) + value_bytes_min)
        return;
    line_add_text(line, json ? ",\"" : " ");
    line_add_text(line, field->name);
    line_add_text(line, json ? "\":" : "=");
    if (number) {
        line_add_int(line, field->number);
        return;
    }
    bool quoted = json || value_needs_quotes(field->text);
    line_add_text(line, quoted ? "\"" : "");
    line_add_escaped(line, field->text, room - frame_len(field));
    line_add_text(line, quoted ? "\"" : "");
}

size_t rv_log_line(enum rv_log_level level, const char *event, const struct rv_log_field *fields,
                   size_t count, char *ret_line)
{
    struct log_line line = {.at = ret_line, .len_max = RV_LOG_LINE_BYTES - 4};
    char time_text[RV_INSTANT_TEXT_BYTES];
    struct rv_str now = rv_instant_text(rv_clock_wall_ms(), time_text);
    bool json = log_form == RV_LOG_JSON;
    line_add_text(&line, json ? "{\"time\":\"" : "");
    line_add(&line, json ? now.at : now.at + 11, json ? now.len : now.len - 12);
    line_add_text(&line, json ? "\",\"level\":\"" : " ");
    line_add_text(&line, level_texts[level]);
    line_add_text(&line, json ? "\",\"event\":\"" : " ");
    line_add_text(&line, event);
    line_add_text(&line, json ? "\"" : "");
    for (size_t i = 0; i < count; i++)
        line_add_field(&line, &fields[i], later_len(fields + i + 1, count - i - 1));
    line.len_max = RV_LOG_LINE_BYTES;
    line_add_text(&line, json ? "}\n" : "\n");
    return line.len;
}

void rv_log_flush(void)
{
    (void)rv_sink_flush(&log_sink, FLUSH_MS);
    (void)rv_sink_flush(&out_sink, FLUSH_MS);
}

static void flush_register(void)
{
    (void)atexit(rv_log_flush);
}

bool rv_log_put(const char *bytes, size_t len, uint64_t lines)
{
    pthread_once(&at_exit, flush_register);
    return rv_sink_put(&log_sink, bytes, len, lines);
}

void rv_log_print(const char *format, ...)
{
    struct rv_arena arena;
    va_list arguments;
    pthread_once(&at_exit, flush_register);
    rv_arena_init(&arena, 0);
    va_start(arguments, format);
    struct rv_str text = rv_arena_vprintf(&arena, format, arguments);
    va_end(arguments);
    if (text.at != NULL)
        (void)rv_sink_put(&out_sink, text.at, text.len, 0);
    rv_arena_done(&arena);
}

uint64_t rv_log_dropped(void)
{
    return rv_sink_count(&log_sink).dropped;
}

/* By the thread whose write has come through. */
static void dropped_tell(struct rv_sink *sink)
{
    char line[RV_LOG_LINE_BYTES];
    uint64_t lines = rv_sink_take_dropped(sink);
    if (lines == 0)
        return;
    struct rv_log_field field = RV_LOG_INT("lines", (int64_t)lines);
    size_t len = rv_log_line(RV_LOG_WARNING, "log-lines-dropped", &field, 1, line);
    if (!rv_sink_put(sink, line, len, 1))
        rv_sink_untell(sink, lines);
}

void rv_log_write(enum rv_log_level level, const char *event, const struct rv_log_field *fields,
                  size_t count)
{
    char line[RV_LOG_LINE_BYTES];
    size_t len = rv_log_line(level, event, fields, count, line);
    (void)rv_log_put(line, len, 1);
}

/* The words of a program that runs for long do not wait for a reader without end. */
static void refusal_put(const char *program, const char *format, va_list arguments)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_str text = rv_arena_vprintf(&arena, format, arguments);
    struct rv_str line = rv_arena_printf(&arena, "%s: %.*s\n", program, RV_STR_FMT(text));
    if (text.at != NULL && line.at != NULL)
        (void)rv_log_put(line.at, line.len, 1);
    rv_arena_done(&arena);
}

static void refusal_print(const char *program, const char *format, va_list arguments)
{
    flockfile(stderr);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void rv_log_refusal(const char *program, const char *format, ...)
{
    char text[RV_LOG_LINE_BYTES] = ""; /* longer than what a line shows of it */
    va_list arguments;
    va_start(arguments, format);
    if (json_chosen) {
        int len = rv_format(text, sizeof text, format, arguments);
        struct rv_str message = {text, len < 0 ? 0 : (size_t)len};
        if (message.len > sizeof text - 1)
            message.len = sizeof text - 1;
        rv_log(RV_LOG_ERROR, "refused", RV_LOG_STR("message", message));
    } else if (form_chosen) {
        refusal_put(program, format, arguments);
    } else {
        refusal_print(program, format, arguments);
    }
    va_end(arguments);
    if (form_chosen)
        (void)rv_sink_flush(&log_sink, REFUSAL_MS);
}

#include "base/format.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(size_t) == sizeof(long), "z is as wide as l");

enum { FORMAT_BYTES_MAX = 1024 };

struct conversion {
    const char *end;
    bool width_given; /* by an argument */
    bool precision_given;
    bool padded;
    int longs; /* 1: l or z, which are as wide as each other; 2: ll */
    char kind; /* '\0': none of ours */
};

/* `at`: past the percent sign. */
static struct conversion conversion_read(const char *at)
{
    struct conversion c = {.longs = 0};
    const char *begin = at;
    at += strspn(at, "-+ #0");
    c.width_given = *at == '*';
    at += c.width_given ? 1 : strspn(at, "0123456789");
    c.padded = at != begin;
    if (*at == '.') {
        at++;
        c.precision_given = *at == '*';
        at += c.precision_given ? 1 : strspn(at, "0123456789");
    }
    while (*at == 'l' || *at == 'z') {
        c.longs++;
        at++;
    }
    c.kind = *at != '\0' && strchr("sdiuxXcpfeg%", *at) != NULL ? *at : '\0';
    c.end = at + (c.kind != '\0');
    return c;
}

/* The place in the format, and the arguments from there on. */
struct walk {
    const char *at;
    va_list args;
    struct {
        const char *bytes;
        int len;
    } text; /* of the conversion before `at`, if zero bytes are in it; else NULL */
};

static void argument_pass(struct walk *walk, const struct conversion *c)
{
    switch (c->kind) {
    case 's':
    case 'p':
        (void)va_arg(walk->args, void *);
        break;
    case 'f':
    case 'e':
    case 'g':
        (void)va_arg(walk->args, double);
        break;
    case '%':
        break;
    default: /* of a char: the integers */
        if (c->longs == 2)
            (void)va_arg(walk->args, long long);
        else if (c->longs == 1)
            (void)va_arg(walk->args, long);
        else
            (void)va_arg(walk->args, int);
    }
}

/* Passes one conversion, or ordinary text; false: a conversion that it does not know. */
static bool walk_on(struct walk *walk)
{
    walk->text.bytes = NULL;
    if (*walk->at != '%') {
        walk->at += strcspn(walk->at, "%");
        return true;
    }
    struct conversion c = conversion_read(walk->at + 1);
    walk->at = c.end;
    if (c.kind == '\0')
        return false;
    if (c.width_given)
        (void)va_arg(walk->args, int);
    int precision = c.precision_given ? va_arg(walk->args, int) : -1;
    if (c.kind != 's' || precision < 0 || c.padded) {
        argument_pass(walk, &c);
        return true;
    }
    const char *bytes = va_arg(walk->args, const char *);
    if (precision > 0 && memchr(bytes, '\0', (size_t)precision) != NULL) {
        walk->text.bytes = bytes;
        walk->text.len = precision;
    }
    return true;
}

static bool has_zero_bytes(const char *format, va_list args)
{
    struct walk walk = {.at = format};
    bool found = false;
    va_copy(walk.args, args);
    while (*walk.at != '\0' && walk_on(&walk))
        found = found || walk.text.bytes != NULL;
    bool whole = *walk.at == '\0';
    va_end(walk.args);
    return found && whole && strlen(format) < FORMAT_BYTES_MAX;
}

struct output {
    char *to;
    size_t room;
    size_t len; /* may be more than the room */
};

static size_t left(const struct output *output)
{
    return output->len < output->room ? output->room - output->len : 0;
}

static void bytes_add(struct output *output, const char *bytes, size_t len)
{
    size_t room = left(output);
    if (room > 1)
        memcpy(output->to + output->len, bytes, len < room ? len : room - 1);
    output->len += len;
    if (output->room > 0)
        output->to[output->len < output->room ? output->len : output->room - 1] = '\0';
}

/* `len` bytes of a format that has no text with zero bytes. */
__attribute__((format(printf, 2, 0))) static bool
piece_add(struct output *output, const char *format, size_t len, va_list args)
{
    char piece[FORMAT_BYTES_MAX];
    size_t room = left(output);
    rv_assert(len < sizeof piece);
    memcpy(piece, format, len);
    piece[len] = '\0';
    int n = vsnprintf(room > 0 ? output->to + output->len : NULL, room, piece, args);
    output->len += n > 0 ? (size_t)n : 0;
    return n >= 0;
}

int rv_format(char *to, size_t room, const char *format, va_list args)
{
    if (!has_zero_bytes(format, args))
        return vsnprintf(to, room, format, args);
    struct output output = {to, room, 0};
    struct walk walk = {.at = format};
    const char *from = format;
    va_list piece;
    bool good = true;
    va_copy(walk.args, args);
    va_copy(piece, args);
    while (good && *walk.at != '\0') {
        const char *before = walk.at;
        good = walk_on(&walk);
        if (walk.text.bytes == NULL)
            continue;
        good = good && piece_add(&output, from, (size_t)(before - from), piece);
        bytes_add(&output, walk.text.bytes, (size_t)walk.text.len);
        from = walk.at;
        va_end(piece);
        va_copy(piece, walk.args);
    }
    good = good && piece_add(&output, from, strlen(from), piece);
    va_end(piece);
    va_end(walk.args);
    return good ? (int)output.len : -1;
}

#include "sim/run/with.h"

#include "base/assert.h"
#include "base/suggest.h"

void with_init(struct with *with)
{
    *with = (struct with){.chosen = false};
}

void with_done(struct with *with)
{
    parts_done(&with->only);
}

void with_copy(const struct with *from, struct with *ret)
{
    *ret = *from;
    ret->only = (struct parts){.all = NULL};
    for (size_t i = 0; i < from->only.count; i++)
        parts_add(&ret->only, from->only.all[i]);
}

void with_set(struct with *with, size_t knob, uint32_t value)
{
    rv_assert(knob < KNOBS_COUNT);
    with->given[knob] = true;
    with->values[knob] = value;
}

static bool value_read(struct rv_str text, size_t knob, uint32_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || value > UINT32_MAX)
            return false;
        value = value * 10 + (uint64_t)(text.at[i] - '0');
    }
    *ret = (uint32_t)value;
    return text.len > 0 && value >= knob_low(knob) && value <= knob_high(knob);
}

static bool only_read(struct with *with, struct rv_str value, struct rv_buf *why)
{
    struct rv_str wrong;
    with->chosen = true;
    if (parts_read(value, &with->only, &wrong))
        return true;
    rv_buf_printf(why, "\"%.*s\" in only= is no part of a world, like loss.3.17 or order.0.4",
                  RV_STR_FMT(wrong));
    return false;
}

static bool item_read(struct with *with, struct rv_str item, struct rv_buf *why)
{
    const char *sign = item.len > 0 ? memchr(item.at, '=', item.len) : NULL;
    if (sign == NULL) {
        rv_buf_printf(why, "\"%.*s\" is not NAME=NUMBER", RV_STR_FMT(item));
        return false;
    }
    struct rv_str name = {item.at, (size_t)(sign - item.at)};
    struct rv_str value = {sign + 1, item.len - name.len - 1};
    if (rv_str_is(name, "only"))
        return only_read(with, value, why);
    size_t knob = knob_find(name);
    if (knob == KNOBS_COUNT) {
        const char *near = rv_suggest(name, knob_names());
        rv_buf_printf(why, "no world has a \"%.*s\"", RV_STR_FMT(name));
        if (near != NULL)
            rv_buf_printf(why, "; did you mean \"%s\"?", near);
        return false;
    }
    uint32_t number;
    if (!value_read(value, knob, &number)) {
        rv_buf_printf(why, "\"%.*s\": %s is a whole number from %u to %u", RV_STR_FMT(item),
                      knob_name(knob), knob_low(knob), knob_high(knob));
        return false;
    }
    with_set(with, knob, number);
    return true;
}

bool with_read(struct with *with, struct rv_str text, struct rv_buf *why)
{
    for (;;) {
        const char *comma = text.len > 0 ? memchr(text.at, ',', text.len) : NULL;
        struct rv_str item = {text.at, comma ? (size_t)(comma - text.at) : text.len};
        if (!item_read(with, item, why))
            return false;
        if (comma == NULL)
            return true;
        text.len -= item.len + 1;
        text.at = comma + 1;
    }
}

void with_write(const struct with *with, struct rv_buf *out)
{
    const char *between = "";
    for (size_t i = 0; i < KNOBS_COUNT; i++) {
        if (!with->given[i])
            continue;
        rv_buf_printf(out, "%s%s=%u", between, knob_name(i), with->values[i]);
        between = ",";
    }
    if (!with->chosen)
        return;
    rv_buf_printf(out, "%sonly=", between);
    parts_write(&with->only, out);
}

void with_apply(const struct with *with, struct knobs *knobs)
{
    for (size_t i = 0; i < KNOBS_COUNT; i++)
        if (with->given[i])
            knob_set(knobs, i, with->values[i]);
    knobs_fit(knobs);
}

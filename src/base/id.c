#include "base/id.h"

#include "base/assert.h"

enum { ID_DIGITS = 13, INSTANCE_BITS = 8, COUNTER_BITS = 13 };
enum { MS_SHIFT = INSTANCE_BITS + COUNTER_BITS };
#define ID_MS_MAX ((INT64_C(1) << 42) - 1) /* in the year 2109 */

/* Crockford's alphabet: no I, L, O (read as 1 and 0) and no U. */
static const char id_digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void rv_id_maker_init(struct rv_id_maker *maker, uint8_t instance)
{
    *maker = (struct rv_id_maker){.instance = instance};
}

struct rv_task_id rv_id_make(struct rv_id_maker *maker, int64_t now)
{
    if (now > ID_MS_MAX)
        now = ID_MS_MAX;
    if (now > maker->last_ms) {
        maker->last_ms = now;
        maker->counter = 0;
    } else if (++maker->counter >> COUNTER_BITS != 0) {
        /* More than 8,192 in one millisecond: borrow from the next one. */
        maker->last_ms++;
        maker->counter = 0;
    }
    rv_assert(maker->last_ms >= 0);
    rv_assert(maker->last_ms <= ID_MS_MAX);
    rv_assert(maker->counter >> COUNTER_BITS == 0);
    struct rv_task_id id = {maker->last_ms << MS_SHIFT | (int64_t)maker->instance << COUNTER_BITS |
                            maker->counter};
    rv_assert(id.value > 0);
    return id;
}

struct rv_task_id rv_id_from(int64_t at)
{
    if (at < 0)
        at = 0;
    return (struct rv_task_id){(at < ID_MS_MAX ? at : ID_MS_MAX) << MS_SHIFT};
}

int64_t rv_id_made_at(struct rv_task_id id)
{
    return id.value >> MS_SHIFT;
}

struct rv_str rv_task_text(struct rv_task_id id, char text[static RV_ID_TEXT_BYTES])
{
    uint64_t rest = (uint64_t)id.value;
    text[ID_DIGITS] = '\0';
    for (int i = ID_DIGITS - 1; i >= 0; i--) {
        text[i] = id_digits[rest & 31];
        rest >>= 5;
    }
    return (struct rv_str){text, ID_DIGITS};
}

struct rv_str rv_step_text(struct rv_step_id id, char text[static RV_STEP_TEXT_BYTES])
{
    char digits[10];
    size_t n = 0;
    uint32_t rest = id.number;
    do {
        digits[n++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    size_t len = rv_task_text(id.task, text).len;
    text[len++] = '-';
    while (n > 0)
        text[len++] = digits[--n];
    rv_assert(len < RV_STEP_TEXT_BYTES);
    text[len] = '\0';
    return (struct rv_str){text, len};
}

/* The value of one digit, or -1. */
static int digit_value(char c)
{
    char upper = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    if (upper == 'I' || upper == 'L')
        return 1;
    if (upper == 'O')
        return 0;
    for (int i = 0; i < 32; i++)
        if (id_digits[i] == upper)
            return i;
    return -1;
}

enum rv_err rv_task_parse(struct rv_str text, struct rv_task_id *ret_id)
{
    if (text.len != ID_DIGITS)
        return RV_ERR_INVALID;
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = digit_value(text.at[i]);
        /* 13 digits hold 65 bits, an id has 63: the first digit is at most 7. */
        if (digit < 0 || (i == 0 && digit > 7))
            return RV_ERR_INVALID;
        value = value << 5 | (uint64_t)digit;
    }
    if (value == 0)
        return RV_ERR_INVALID;
    rv_assert(value <= INT64_MAX);
    ret_id->value = (int64_t)value;
    return RV_OK;
}

enum rv_err rv_step_parse(struct rv_str text, struct rv_step_id *ret_id)
{
    struct rv_task_id task;
    if (text.len < ID_DIGITS + 2 || text.len >= RV_STEP_TEXT_BYTES || text.at[ID_DIGITS] != '-')
        return RV_ERR_INVALID;
    if (rv_task_parse((struct rv_str){text.at, ID_DIGITS}, &task) != RV_OK)
        return RV_ERR_INVALID;
    uint64_t number = 0;
    for (size_t i = ID_DIGITS + 1; i < text.len; i++) {
        char c = text.at[i];
        if (c < '0' || c > '9' || (number == 0 && c == '0'))
            return RV_ERR_INVALID;
        number = number * 10 + (uint64_t)(c - '0');
    }
    if (number > UINT32_MAX)
        return RV_ERR_INVALID;
    *ret_id = (struct rv_step_id){task, (uint32_t)number};
    return RV_OK;
}

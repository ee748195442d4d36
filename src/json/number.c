/* strtod and snprintf follow the locale's decimal point; no part of the program calls setlocale,
 * so it is "." always. */
#include "base/assert.h"
#include "json/number_priv.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MANTISSA_DIGITS = 19 }; /* any 19 digits fit in 64 bits */
/* No double lies so close to the middle between two others that more digits would decide. */
enum { STRTOD_DIGITS = 800 };
/* Far beyond any double, and far from an overflow of what is computed with it. */
#define EXPONENT_BOUND INT64_C(1000000000000)

/* A number is mantissa * 10^exponent, if exact; else there are more digits than the mantissa. */
struct decimal {
    uint64_t mantissa;
    int64_t exponent;
    bool negative;
    bool exact;
};

static int64_t exponent_read(const char *at, const char *end)
{
    rv_assert(at < end);
    bool negative = *at == '-';
    int64_t exponent = 0;
    if (*at == '-' || *at == '+')
        at++;
    for (; at != end; at++)
        if (exponent < EXPONENT_BOUND)
            exponent = exponent * 10 + (*at - '0');
    return negative ? -exponent : exponent;
}

/* `digits` gets the significant digits, at most `room`; what is cut off only moves the exponent,
 * and a cut-off digit other than 0 clears `exact`. Gives how many digits there are. */
static size_t decimal_read(struct rv_str text, char *digits, size_t room,
                           struct decimal *ret_decimal)
{
    const char *at = text.at;
    const char *end = text.at + text.len;
    rv_assert(text.len > 0);
    struct decimal decimal = {.exact = true, .negative = *at == '-'};
    size_t count = 0;
    bool after_point = false;
    for (at += decimal.negative; at != end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        if (count < room) {
            if (count != 0 || *at != '0')
                digits[count++] = *at;
            decimal.exponent -= after_point;
        } else {
            decimal.exact = decimal.exact && *at == '0';
            decimal.exponent += !after_point;
        }
    }
    if (at != end)
        decimal.exponent += exponent_read(at + 1, end);
    rv_assert(count <= room);
    *ret_decimal = decimal;
    return count;
}

static struct decimal decimal_of_text(struct rv_str text)
{
    char digits[MANTISSA_DIGITS];
    struct decimal decimal;
    size_t count = decimal_read(text, digits, sizeof digits, &decimal);
    for (size_t i = 0; i < count; i++)
        decimal.mantissa = decimal.mantissa * 10 + (uint64_t)(digits[i] - '0');
    return decimal;
}

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_POWER_MAX = 22 }; /* larger powers of ten are no doubles */
#define EXACT_INTEGER_MAX (INT64_C(1) << 53)

double rv_json_real_of_text(struct rv_str text)
{
    struct decimal decimal = decimal_of_text(text);
    bool small = decimal.exact && decimal.mantissa <= EXACT_INTEGER_MAX;
    if (small && decimal.exponent >= -EXACT_POWER_MAX && decimal.exponent <= EXACT_POWER_MAX) {
        /* Both operands are exact: the one rounding of the operation gives the nearest double. */
        double real = (double)decimal.mantissa;
        if (decimal.exponent < 0)
            real /= powers_of_ten[-decimal.exponent];
        else
            real *= powers_of_ten[decimal.exponent];
        return decimal.negative ? -real : real;
    }
    /* The text has no terminator and may have a million digits: hand on what decides. */
    char digits[STRTOD_DIGITS + 32];
    size_t count = decimal_read(text, digits, STRTOD_DIGITS, &decimal);
    if (count == 0)
        digits[count++] = '0';
    if (!decimal.exact) {
        digits[count++] = '1'; /* stands for all that was cut off: more than nothing */
        decimal.exponent--;
    }
    int exponent = decimal.exponent > 99999    ? 99999
                   : decimal.exponent < -99999 ? -99999
                                               : (int)decimal.exponent;
    snprintf(digits + count, sizeof digits - count, "e%d", exponent);
    double real = strtod(digits, NULL);
    return decimal.negative ? -real : real;
}

bool rv_json_int(const struct rv_json *value, int64_t *ret_number)
{
    if (value == NULL || value->type != RV_JSON_NUMBER)
        return false;
    if (value->computed) {
        double real = value->u.real;
        if (!(real >= -0x1p63 && real < 0x1p63) || real != trunc(real))
            return false;
        *ret_number = (int64_t)real;
        return true;
    }
    struct decimal decimal = decimal_of_text((struct rv_str){value->u.text, value->len});
    if (!decimal.exact)
        return false;
    uint64_t number = decimal.mantissa;
    for (; number != 0 && decimal.exponent < 0; decimal.exponent++) {
        if (number % 10 != 0)
            return false;
        number /= 10;
    }
    for (; number != 0 && decimal.exponent > 0; decimal.exponent--)
        if (__builtin_mul_overflow(number, 10, &number))
            return false;
    if (number > (uint64_t)INT64_MAX + decimal.negative)
        return false;
    *ret_number = (int64_t)(decimal.negative ? 0 - number : number);
    return true;
}

/* What is to be written: digits d1 d2 ... with the value d1.d2... * 10^exponent. */
struct digits {
    char at[20];
    int count;
    int exponent;
};

static bool digits_read_back(const struct digits *digits, double real)
{
    char text[JSON_REAL_TEXT_BYTES];
    snprintf(text, sizeof text, "%.*se%d", digits->count, digits->at,
             digits->exponent - digits->count + 1);
    return strtod(text, NULL) == real;
}

static struct digits digits_of(double real, int count)
{
    struct digits digits;
    char text[JSON_REAL_TEXT_BYTES];
    rv_assert(count > 0);
    rv_assert((size_t)count <= sizeof digits.at);
    snprintf(text, sizeof text, "%.*e", count - 1, real);
    char *exponent = strchr(text, 'e');
    rv_assert(exponent != NULL); /* the number is finite */
    digits.exponent = (int)strtol(exponent + 1, NULL, 10);
    digits.at[0] = text[0];
    if (count > 1)
        memcpy(digits.at + 1, text + 2, (size_t)count - 1);
    digits.count = count;
    return digits;
}

static struct digits next_up(struct digits digits)
{
    rv_assert(digits.count > 0);
    int i = digits.count - 1;
    while (i > 0 && digits.at[i] == '9')
        i--;
    if (digits.at[i] == '9') {
        digits.at[0] = '1';
        digits.exponent++;
    } else {
        digits.at[i]++;
    }
    digits.count = i + 1;
    return digits;
}

static struct digits without_zeros(struct digits digits)
{
    while (digits.count > 1 && digits.at[digits.count - 1] == '0')
        digits.count--;
    return digits;
}

/* Any double comes back from 17 digits. If a text of 15 or fewer reads as this double, 15 digits of
 * it, rounded and without zeros at the end, are that text; only subnormal numbers have fewer good
 * digits. With 16, the rounded digits can miss where the 16 next above do not: doubles lie twice as
 * dense below a power of two as above it. */
static struct digits shortest_digits(double real)
{
    int first = real < DBL_MIN ? 1 : 15;
    for (int count = first; count < 17; count++) {
        struct digits digits = digits_of(real, count);
        if (digits_read_back(&digits, real))
            return without_zeros(digits);
        if (count == 16) {
            digits = next_up(digits);
            if (digits_read_back(&digits, real))
                return without_zeros(digits);
        }
    }
    return without_zeros(digits_of(real, 17));
}

/* Most numbers that people write have few decimals: the least number of them that reads back is
 * found by arithmetic alone. With at most 15 digits the product is off by less than a half and the
 * quotient is rounded once, so nothing is missed and nothing is wrong. */
static bool few_decimals(double real, struct digits *ret_digits)
{
    if (!(real >= 1e-3 && real < 1e14))
        return false;
    for (int decimals = 0; decimals <= 17; decimals++) {
        double scaled = real * powers_of_ten[decimals] + 0.5;
        if (scaled >= 1e15)
            return false;
        int64_t whole = (int64_t)scaled;
        if ((double)whole / powers_of_ten[decimals] != real)
            continue;
        char reversed[20];
        int count = 0;
        for (; whole != 0; whole /= 10)
            reversed[count++] = (char)('0' + whole % 10);
        rv_assert((size_t)count <= sizeof ret_digits->at);
        for (int i = 0; i < count; i++)
            ret_digits->at[i] = reversed[count - 1 - i];
        ret_digits->count = count;
        ret_digits->exponent = count - 1 - decimals;
        return true;
    }
    return false;
}

static size_t digits_write(const struct digits *digits, char *to)
{
    size_t len = 0;
    if (digits->exponent >= -4 && digits->exponent < 17) {
        int point = digits->exponent + 1; /* so many digits go before it */
        for (int i = point < 1 ? point - 1 : 0; i < digits->count || i < point; i++) {
            if (i == point)
                to[len++] = '.';
            to[len++] = i >= 0 && i < digits->count ? digits->at[i] : '0';
        }
        return len;
    }
    to[len++] = digits->at[0];
    if (digits->count > 1) {
        to[len++] = '.';
        memcpy(to + len, digits->at + 1, (size_t)digits->count - 1);
        len += (size_t)digits->count - 1;
    }
    return len +
           (size_t)snprintf(to + len, JSON_REAL_TEXT_BYTES - 1 - len, "e%d", digits->exponent);
}

struct rv_str rv_json_text_of_real(double real, char text[static JSON_REAL_TEXT_BYTES])
{
    struct digits digits = {.at = "0", .count = 1};
    size_t len = 0;
    if (signbit(real))
        text[len++] = '-';
    real = fabs(real);
    if (real != 0 && !few_decimals(real, &digits))
        digits = shortest_digits(real);
    len += digits_write(&digits, text + len);
    rv_assert(len < JSON_REAL_TEXT_BYTES);
    return (struct rv_str){text, len};
}

/* The significant digits of a text, from the first that is not 0. */
struct digit_run {
    const char *at;
    const char *end;  /* of the digits and their point */
    int64_t exponent; /* of the first digit */
    int sign;         /* 0 when there is no digit but 0 */
};

static struct digit_run digit_run(struct rv_str text)
{
    struct digit_run run = {.at = text.at, .sign = 1};
    const char *end = text.at + text.len;
    if (*run.at == '-') {
        run.sign = -1;
        run.at++;
    }
    run.end = run.at;
    while (run.end != end && *run.end != 'e' && *run.end != 'E')
        run.end++;
    const char *point = memchr(run.at, '.', (size_t)(run.end - run.at));
    if (point == NULL)
        point = run.end;
    while (run.at != run.end && (*run.at == '0' || *run.at == '.'))
        run.at++;
    if (run.at == run.end)
        return (struct digit_run){.at = run.end, .end = run.end};
    run.exponent = run.at < point ? point - run.at - 1 : point - run.at;
    if (run.end != end)
        run.exponent += exponent_read(run.end + 1, end);
    return run;
}

/* '0' when there is none left, as after the point of an integer. */
static char digit_next(struct digit_run *run)
{
    if (run->at != run->end && *run->at == '.')
        run->at++;
    return run->at != run->end ? *run->at++ : '0';
}

static int texts_compare(struct rv_str a, struct rv_str b)
{
    struct digit_run x = digit_run(a);
    struct digit_run y = digit_run(b);
    if (x.sign != y.sign)
        return x.sign < y.sign ? -1 : 1;
    if (x.exponent != y.exponent)
        return x.exponent < y.exponent ? -x.sign : x.sign;
    while (x.at != x.end || y.at != y.end) {
        char digit = digit_next(&x);
        char other = digit_next(&y);
        if (digit != other)
            return digit < other ? -x.sign : x.sign;
    }
    return 0;
}

/* Of so few digits that no other such text has the same double, and the double is written alike:
 * the doubles decide alone. */
static bool is_short(const struct rv_json *number, double real)
{
    return number->computed || (number->len <= DBL_DIG && fabs(real) >= DBL_MIN &&
                                fabs(real) <= (double)EXACT_INTEGER_MAX);
}

static struct rv_str number_text(const struct rv_json *number, char text[JSON_REAL_TEXT_BYTES])
{
    if (!number->computed)
        return (struct rv_str){number->u.text, number->len};
    if (!json_is_written_as_int(number->u.real))
        return rv_json_text_of_real(number->u.real, text);
    int len = snprintf(text, JSON_REAL_TEXT_BYTES, "%lld", (long long)number->u.real);
    return (struct rv_str){text, (size_t)len};
}

/* A text is never on the other side of a second one than its double is, and what a double is
 * written as has that double: so the doubles decide unless they are equal. */
int rv_json_compare_numbers(const struct rv_json *a, const struct rv_json *b)
{
    double x = rv_json_real(a);
    double y = rv_json_real(b);
    char a_text[JSON_REAL_TEXT_BYTES];
    char b_text[JSON_REAL_TEXT_BYTES];
    if (isnan(x) || isnan(y))
        return (y != y) - (x != x);
    if (x != y)
        return x < y ? -1 : 1;
    if (is_short(a, x) && is_short(b, y))
        return 0;
    if (isinf(x) && (a->computed || b->computed))
        return a->computed == (x > 0) ? 1 : -1;
    return texts_compare(number_text(a, a_text), number_text(b, b_text));
}

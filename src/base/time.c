/* Instants and durations as text. Dates follow the proleptic Gregorian calendar; days are counted
 * in years that begin on 1 March, so that the leap day is the last of its year. */
#include "base/time.h"

#include "base/assert.h"

#include <stdbool.h>
#include <stdio.h>

enum { DAYS_PER_ERA = 146097 }; /* 400 years */
/* From 0000-03-01 to 1970-01-01. */
#define DAYS_TO_EPOCH INT64_C(719468)
/* 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z */
#define INSTANT_MIN (INT64_C(-719528) * RV_DAY_MS)
#define INSTANT_MAX (INT64_C(2932897) * RV_DAY_MS - 1)

struct date {
    int year;
    int month; /* from 1 */
    int day;   /* from 1 */
};

/* `day` counts from 1970-01-01 and is not before 0000-01-01. */
static struct date date_of_day(int64_t day)
{
    int64_t z = day + DAYS_TO_EPOCH + DAYS_PER_ERA; /* one era later, so that nothing is negative */
    rv_assert(z >= 0);
    int64_t era = z / DAYS_PER_ERA;
    int64_t of_era = z % DAYS_PER_ERA;
    int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_PER_ERA - 1)) /
                          365;
    int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    rv_assert(of_year >= 0);
    rv_assert(of_year < 366);
    int64_t from_march = (5 * of_year + 2) / 153;
    int month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    int64_t year = (era - 1) * 400 + year_of_era + (month <= 2);
    return (struct date){(int)year, month, (int)(of_year - (153 * from_march + 2) / 5 + 1)};
}

static int64_t day_of_date(struct date date)
{
    int64_t year = date.year - (date.month <= 2) + 400; /* one era later, as above */
    int64_t era = year / 400;
    int64_t year_of_era = year % 400;
    int64_t from_march = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t of_year = (153 * from_march + 2) / 5 + date.day - 1;
    int64_t of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    return (era - 1) * DAYS_PER_ERA + of_era - DAYS_TO_EPOCH;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    rv_assert(month >= 1);
    rv_assert(month <= 12);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static struct rv_str text_done(char *text, int len)
{
    return (struct rv_str){text, (size_t)len};
}

/* Exactly so many digits, then the mark; gives the place after it. Every request that leaves has an
 * instant in it, and printf takes ten times as long. */
static char *put_part(char *to, int number, int digits, char mark)
{
    rv_assert(number >= 0);
    for (int i = digits - 1; i >= 0; i--) {
        to[i] = (char)('0' + number % 10);
        number /= 10;
    }
    rv_assert(number == 0);
    to[digits] = mark;
    return to + digits + 1;
}

struct rv_str rv_instant_text(int64_t at, char text[static RV_INSTANT_TEXT_BYTES])
{
    if (at < INSTANT_MIN)
        at = INSTANT_MIN;
    if (at > INSTANT_MAX)
        at = INSTANT_MAX;
    int64_t day = at / RV_DAY_MS;
    int64_t rest = at % RV_DAY_MS;
    if (rest < 0) {
        rest += RV_DAY_MS;
        day--;
    }
    struct date date = date_of_day(day);
    int ms = (int)rest;
    char *to = put_part(text, date.year, 4, '-');
    to = put_part(to, date.month, 2, '-');
    to = put_part(to, date.day, 2, 'T');
    to = put_part(to, ms / 3600000, 2, ':');
    to = put_part(to, ms / 60000 % 60, 2, ':');
    to = put_part(to, ms / 1000 % 60, 2, '.');
    to = put_part(to, ms % 1000, 3, 'Z');
    *to = '\0';
    rv_assert(to < text + RV_INSTANT_TEXT_BYTES);
    return text_done(text, (int)(to - text));
}

/* What is left to read. Every take_ either moves past what it wants or says false. */
struct cursor {
    const char *at;
    const char *end;
};

static bool take_digit(struct cursor *in, int *ret_digit)
{
    if (in->at == in->end || *in->at < '0' || *in->at > '9')
        return false;
    *ret_digit = *in->at++ - '0';
    return true;
}

static bool take_char(struct cursor *in, char wanted)
{
    if (in->at == in->end || *in->at != wanted)
        return false;
    in->at++;
    return true;
}

/* Exactly `digits` of them. */
static bool take_number(struct cursor *in, int digits, int *ret_number)
{
    int number = 0;
    for (int i = 0; i < digits; i++) {
        int digit;
        if (!take_digit(in, &digit))
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return true;
}

#define FRACTION_PARTS INT64_C(100000000)

/* The digits after a decimal point, as parts of 10^8 (eight of them, the rest only looked at). */
static bool take_fraction(struct cursor *in, int64_t *ret_parts)
{
    int digit;
    int64_t parts = 0;
    int64_t weight = 10000000;
    if (!take_digit(in, &digit))
        return false;
    do {
        parts += digit * weight;
        weight /= 10;
    } while (take_digit(in, &digit));
    rv_assert(parts < FRACTION_PARTS);
    *ret_parts = parts;
    return true;
}

static bool take_date(struct cursor *in, struct date *ret_date)
{
    struct date date;
    if (!take_number(in, 4, &date.year) || !take_char(in, '-') ||
        !take_number(in, 2, &date.month) || !take_char(in, '-') || !take_number(in, 2, &date.day))
        return false;
    if (date.month < 1 || date.month > 12 || date.day < 1 ||
        date.day > days_in_month(date.year, date.month))
        return false;
    *ret_date = date;
    return true;
}

/* "Z" or an offset, as the milliseconds that local time is ahead of UTC. */
static bool take_zone(struct cursor *in, int64_t *ret_ahead_ms)
{
    if (take_char(in, 'Z') || take_char(in, 'z')) {
        *ret_ahead_ms = 0;
        return true;
    }
    int hours, minutes;
    bool ahead = take_char(in, '+');
    if (!ahead && !take_char(in, '-'))
        return false;
    if (!take_number(in, 2, &hours) || !take_char(in, ':') || !take_number(in, 2, &minutes) ||
        hours > 23 || minutes > 59)
        return false;
    int64_t ms = hours * RV_HOUR_MS + minutes * (int64_t)RV_MINUTE_MS;
    *ret_ahead_ms = ahead ? ms : -ms;
    return true;
}

enum rv_err rv_instant_parse(struct rv_str text, int64_t *ret_at)
{
    struct cursor in = {text.at, text.at + text.len};
    struct date date;
    int hour, minute, second;
    int64_t parts = 0;
    int64_t ahead_ms;
    if (text.len == 0 || !take_date(&in, &date))
        return RV_ERR_INVALID;
    if (!take_char(&in, 'T') && !take_char(&in, 't'))
        return RV_ERR_INVALID;
    if (!take_number(&in, 2, &hour) || !take_char(&in, ':') || !take_number(&in, 2, &minute) ||
        !take_char(&in, ':') || !take_number(&in, 2, &second))
        return RV_ERR_INVALID;
    if (take_char(&in, '.') && !take_fraction(&in, &parts))
        return RV_ERR_INVALID;
    if (hour > 23 || minute > 59 || second > 60 || !take_zone(&in, &ahead_ms) || in.at != in.end)
        return RV_ERR_INVALID;
    int64_t minute_at = day_of_date(date) * RV_DAY_MS + hour * RV_HOUR_MS +
                        minute * (int64_t)RV_MINUTE_MS - ahead_ms;
    /* A leap second exists only at the end of a day of UTC, and counts as the next day's begin. */
    if (second == 60 && (minute_at + RV_MINUTE_MS) % RV_DAY_MS != 0)
        return RV_ERR_INVALID;
    if (second == 60)
        parts = 0;
    *ret_at = minute_at + second * RV_SECOND_MS + parts * RV_SECOND_MS / FRACTION_PARTS;
    return RV_OK;
}

struct duration_unit {
    char letter;
    bool of_time; /* after the T */
    int64_t ms;
};

static const struct duration_unit duration_units[] = {
    {'Y', false, 365 * RV_DAY_MS}, {'M', false, 30 * RV_DAY_MS}, {'W', false, 7 * RV_DAY_MS},
    {'D', false, RV_DAY_MS},       {'H', true, RV_HOUR_MS},      {'M', true, RV_MINUTE_MS},
    {'S', true, RV_SECOND_MS},
};
enum { DURATION_UNITS = sizeof duration_units / sizeof duration_units[0] };

/* One part such as "12H" or "1.5S"; `*unit` moves past the unit found, so that units come in
 * order and at most once. */
static bool take_part(struct cursor *in, bool of_time, int *unit, bool *ret_fraction,
                      int64_t *ret_ms)
{
    int digit;
    int64_t whole = 0;
    int64_t parts = 0;
    if (!take_digit(in, &digit))
        return false;
    do {
        whole = whole * 10 + digit;
        if (whole > RV_DURATION_MS_MAX)
            return false;
    } while (take_digit(in, &digit));
    *ret_fraction = take_char(in, '.');
    if (*ret_fraction && !take_fraction(in, &parts))
        return false;
    if (in->at == in->end)
        return false;
    char letter = *in->at++;
    while (*unit < DURATION_UNITS) {
        const struct duration_unit *u = &duration_units[(*unit)++];
        if (u->letter == letter && u->of_time == of_time) {
            if (whole > RV_DURATION_MS_MAX / u->ms)
                return false;
            /* A year has 3.2e10 ms, the parts are below 1e8: their product is below 2^63. */
            *ret_ms = whole * u->ms + u->ms * parts / FRACTION_PARTS;
            return true;
        }
    }
    return false;
}

enum rv_err rv_duration_parse(struct rv_str text, int64_t *ret_ms)
{
    struct cursor in = {text.at, text.at + text.len};
    int unit = 0;
    bool of_time = false;
    bool fraction = false;
    int64_t sum = 0;
    if (text.len == 0 || !take_char(&in, 'P') || in.at == in.end)
        return RV_ERR_INVALID;
    while (in.at != in.end) {
        int64_t ms;
        if (!of_time)
            of_time = take_char(&in, 'T');
        if (fraction || !take_part(&in, of_time, &unit, &fraction, &ms))
            return RV_ERR_INVALID;
        sum += ms;
        if (sum > RV_DURATION_MS_MAX)
            return RV_ERR_INVALID;
    }
    *ret_ms = sum;
    return RV_OK;
}

enum rv_err rv_duration_parse_typed(struct rv_str text, int64_t *ret_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"w", 7 * RV_DAY_MS}, {"d", RV_DAY_MS},    {"h", RV_HOUR_MS},
                 {"m", RV_MINUTE_MS},  {"s", RV_SECOND_MS}, {"ms", 1}};
    enum { UNITS = sizeof units / sizeof units[0] };
    struct cursor in = {text.at, text.at + text.len};
    size_t unit = 0;
    int64_t sum = 0;
    int digit;
    if (rv_duration_parse(text, ret_ms) == RV_OK)
        return RV_OK;
    if (text.len == 0)
        return RV_ERR_INVALID;
    while (in.at != in.end) {
        int64_t number = 0;
        if (!take_digit(&in, &digit))
            return RV_ERR_INVALID;
        do {
            number = number * 10 + digit;
            if (number > RV_DURATION_MS_MAX)
                return RV_ERR_INVALID;
        } while (take_digit(&in, &digit));
        const char *name = in.at;
        while (in.at != in.end && *in.at >= 'a' && *in.at <= 'z')
            in.at++;
        struct rv_str given = {name, (size_t)(in.at - name)};
        while (unit < UNITS && !rv_str_is(given, units[unit].name))
            unit++;
        if (unit == UNITS || number > (RV_DURATION_MS_MAX - sum) / units[unit].ms)
            return RV_ERR_INVALID;
        sum += number * units[unit++].ms;
        rv_assert(sum <= RV_DURATION_MS_MAX);
    }
    *ret_ms = sum;
    return RV_OK;
}

/* "1.5" of 1500 milliseconds. */
static int seconds_text(char *text, size_t room, int ms)
{
    rv_assert(ms < RV_MINUTE_MS);
    int len = snprintf(text, room, "%d.%03d", ms / RV_SECOND_MS, ms % RV_SECOND_MS);
    rv_assert((size_t)len < room);
    while (text[len - 1] == '0')
        len--;
    if (text[len - 1] == '.')
        len--;
    return len;
}

struct rv_str rv_duration_text(int64_t ms, char text[static RV_INSTANT_TEXT_BYTES])
{
    const size_t room = RV_INSTANT_TEXT_BYTES;
    if (ms < 0)
        ms = 0;
    if (ms > RV_DURATION_MS_MAX)
        ms = RV_DURATION_MS_MAX;
    int len = 0;
    int rest = (int)(ms % RV_DAY_MS);
    text[len++] = 'P';
    if (ms >= RV_DAY_MS)
        len += snprintf(text + len, room - (size_t)len, "%dD", (int)(ms / RV_DAY_MS));
    if (rest != 0 || ms == 0) {
        int hours = rest / (60 * RV_MINUTE_MS);
        int minutes = rest / RV_MINUTE_MS % 60;
        int seconds_ms = rest % RV_MINUTE_MS;
        text[len++] = 'T';
        if (hours != 0)
            len += snprintf(text + len, room - (size_t)len, "%dH", hours);
        if (minutes != 0)
            len += snprintf(text + len, room - (size_t)len, "%dM", minutes);
        if (seconds_ms != 0 || ms == 0) {
            len += seconds_text(text + len, room - (size_t)len, seconds_ms);
            text[len++] = 'S';
        }
    }
    rv_assert((size_t)len < room);
    text[len] = '\0';
    return text_done(text, len);
}

int64_t rv_time_add(int64_t at, int64_t ms)
{
    int64_t sum;
    if (__builtin_add_overflow(at, ms, &sum))
        return ms < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

struct rv_str rv_span_text(int64_t ms, char text[static RV_INSTANT_TEXT_BYTES])
{
    long long left = ms > 0 ? ms : 0, s = left / RV_SECOND_MS;
    int len;
    if (left < RV_SECOND_MS)
        len = snprintf(text, RV_INSTANT_TEXT_BYTES, "%lld ms", left);
    else if (left < RV_MINUTE_MS)
        len = snprintf(text, RV_INSTANT_TEXT_BYTES, "%lld.%lld s", s, left % RV_SECOND_MS / 100);
    else if (left < RV_HOUR_MS)
        len = snprintf(text, RV_INSTANT_TEXT_BYTES, "%lld m %lld s", s / 60, s % 60);
    else if (left < RV_DAY_MS)
        len = snprintf(text, RV_INSTANT_TEXT_BYTES, "%lld h %lld m", s / 3600, s / 60 % 60);
    else
        len = snprintf(text, RV_INSTANT_TEXT_BYTES, "%lld d %lld h", s / 86400, s / 3600 % 24);
    rv_assert(len < RV_INSTANT_TEXT_BYTES);
    return (struct rv_str){text, (size_t)len};
}

/* time.h - instants and durations: 64-bit milliseconds everywhere, and their ISO 8601 texts. */
#ifndef RV_BASE_TIME_H
#define RV_BASE_TIME_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/* An instant is milliseconds since 1970-01-01T00:00:00Z; 0 means "none". A duration is
 * milliseconds. Names end in _at or _by for instants, _ms for durations. */
enum { RV_SECOND_MS = 1000, RV_MINUTE_MS = 60 * 1000 };
#define RV_HOUR_MS INT64_C(3600000)
#define RV_DAY_MS INT64_C(86400000)
/* The longest duration that is taken: 100 years. */
#define RV_DURATION_MS_MAX (INT64_C(36500) * RV_DAY_MS)
#define RV_DURATION_MAX_TEXT "100 years"
/* No clock and no sum of durations comes so far from 1970: what is stored beyond it is damaged.
 * Within it the difference of two instants does not overflow. */
#define RV_INSTANT_FAR (INT64_C(1) << 60)

enum { RV_INSTANT_TEXT_BYTES = 32 };

/* "2026-11-21T01:30:00.000Z", terminated; years 0000 to 9999, others are clamped. */
struct rv_str rv_instant_text(int64_t at, char text[static RV_INSTANT_TEXT_BYTES]);
/* Takes RFC 3339 with Z or an offset, fraction optional. INVALID for anything else. */
RV_CHECK enum rv_err rv_instant_parse(struct rv_str text, int64_t *ret_at);

/* ISO 8601 durations: P[nY][nM][nW][nD][T[nH][nM][nS]], a fraction on the last part; a year is
 * 365 days, a month 30 (DSL reference, Duration). INVALID when it is none, is negative or exceeds
 * RV_DURATION_MS_MAX. */
RV_CHECK enum rv_err rv_duration_parse(struct rv_str text, int64_t *ret_ms);
/* What people type: ISO 8601, or numbers with the units w, d, h, m, s, ms in this order and each at
 * most once: "10m", "7d", "1h30m", "500ms". INVALID as above. */
RV_CHECK enum rv_err rv_duration_parse_typed(struct rv_str text, int64_t *ret_ms);
/* Days, hours, minutes and seconds, without those that are 0: "PT1.5S", "PT0S", "P2DT3H". Held to 0
 * and RV_DURATION_MS_MAX, so that rv_duration_parse reads it back. */
struct rv_str rv_duration_text(int64_t ms, char text[static RV_INSTANT_TEXT_BYTES]);
/* For people, rounded down: "0 ms", "850 ms", "12.3 s", "3 m 12 s", "2 h 5 m", "4 d 1 h"; negative
 * as 0. */
struct rv_str rv_span_text(int64_t ms, char text[static RV_INSTANT_TEXT_BYTES]);

/* a + b, held at the ends of the range: deadlines of absurd length do not wrap. */
int64_t rv_time_add(int64_t at, int64_t ms);
/* The pause that another program asks for, `count` of units of so many milliseconds: held to 0 and
 * RV_DURATION_MS_MAX. Whatever has a Retry-After takes it from here. */
static inline int64_t rv_retry_after_ms(int64_t count, int64_t unit_ms)
{
    if (count <= 0)
        return 0;
    return count > RV_DURATION_MS_MAX / unit_ms ? RV_DURATION_MS_MAX : count * unit_ms;
}
/* The earlier of two instants where 0 means "none". */
static inline int64_t rv_time_earlier(int64_t a, int64_t b)
{
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

#endif

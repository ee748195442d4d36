/* The writer of answers. */
#include "base/assert.h"
#include "http/grammar.h"
#include "http/http.h"

#include <stdio.h>

const char *rv_http_phrase(int status)
{
    static const struct {
        int status;
        const char *text;
    } phrases[] = {
        {100, "Continue"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status)
            return phrases[i].text;
    return "Unknown";
}

/* These have no body, whatever is asked. */
static bool bodiless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

void rv_http_write_head(struct rv_buf *out, const struct rv_http_answer *answer)
{
    rv_assert(answer->status <= 599);
    rv_assert(answer->length <= INT64_MAX);
    rv_buf_lit(out, "HTTP/1.1 ");
    rv_buf_add_int(out, answer->status);
    rv_buf_add_char(out, ' ');
    rv_buf_add_str(out, rv_str_of(rv_http_phrase(answer->status)));
    rv_buf_lit(out, "\r\nDate: ");
    rv_buf_add_str(out, rv_str_of(answer->date));
    rv_buf_lit(out, "\r\n");
    if (answer->type != NULL)
        rv_http_write_field(out, "Content-Type", rv_str_of(answer->type));
    if (bodiless(answer->status)) {
        /* the empty line ends it */
    } else if (!answer->chunked) {
        rv_buf_lit(out, "Content-Length: ");
        rv_buf_add_int(out, (int64_t)answer->length);
        rv_buf_lit(out, "\r\n");
    } else if (answer->minor > 0) {
        rv_buf_lit(out, "Transfer-Encoding: chunked\r\n");
    }
    if (answer->close || answer->minor == 0)
        rv_buf_lit(out, "Connection: close\r\n");
}

void rv_http_write_field(struct rv_buf *out, const char *name, struct rv_str value)
{
    rv_assert(name[0] != '\0');
    if (value.len > 0 && !grammar_all(value, GRAMMAR_VALUE))
        return;
    rv_buf_add_str(out, rv_str_of(name));
    rv_buf_lit(out, ": ");
    rv_buf_add_str(out, value);
    rv_buf_lit(out, "\r\n");
}

void rv_http_write_end(struct rv_buf *out)
{
    rv_buf_lit(out, "\r\n");
}

void rv_http_write_chunk(struct rv_buf *out, const void *bytes, size_t len)
{
    rv_assert(len > 0);
    rv_buf_printf(out, "%zx\r\n", len);
    rv_buf_add(out, bytes, len);
    rv_buf_lit(out, "\r\n");
}

void rv_http_write_last_chunk(struct rv_buf *out)
{
    rv_buf_lit(out, "0\r\n\r\n");
}

/* The civil calendar from a count of days: eras of 400 years that begin in March, so that the leap
 * day is the last one of a year. */
static void civil(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t shifted = days + 719468, era = shifted / 146097, of_era = shifted % 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100),
            month = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = (int)(era * 400 + year + (*ret_month <= 2));
    rv_assert(*ret_month >= 1);
    rv_assert(*ret_month <= 12);
    rv_assert(*ret_day >= 1);
    rv_assert(*ret_day <= 31);
}

void rv_http_date(int64_t seconds, char ret_date[static RV_HTTP_DATE_BYTES])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const int64_t last = INT64_C(253402300799); /* of the year 9999 */
    int year, month, day;
    if (seconds < 0 || seconds > last)
        seconds = seconds < 0 ? 0 : last;
    int64_t since = seconds / 86400, of_day = seconds % 86400;
    civil(since, &year, &month, &day);
    char text[64]; /* the compiler does not know how small the numbers are */
    snprintf(text, sizeof text, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
             days + (since + 4) % 7 * 3, day, months + (month - 1) * 3, year, (int)(of_day / 3600),
             (int)(of_day / 60 % 60), (int)(of_day % 60));
    memcpy(ret_date, text, RV_HTTP_DATE_BYTES - 1);
    ret_date[RV_HTTP_DATE_BYTES - 1] = '\0';
}

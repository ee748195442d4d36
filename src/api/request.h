/* request.h - the line and headers of an HTTP request as the parsers see them: no sockets here. */
#ifndef RV_API_REQUEST_H
#define RV_API_REQUEST_H

#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    RV_TARGET_BYTES_MAX = 3072, /* path and query as sent */
    RV_SEGMENTS_MAX = 8,
    RV_ARGS_MAX = 16
};

struct rv_arg {
    struct rv_str name;
    struct rv_str value;
};

/* Texts live on the arena that it was read with. */
struct rv_request_line {
    struct rv_str path;                      /* as sent, for messages */
    struct rv_str segments[RV_SEGMENTS_MAX]; /* decoded, without the slashes */
    size_t segments_count;
    struct rv_arg *args; /* of the query, decoded; no name twice */
    size_t args_count;
    struct rv_str params[RV_SEGMENTS_MAX]; /* the segments that a pattern's {names} stand for */
    size_t params_count;
    struct rv_str file; /* X-File-Name: what the client calls the definition; absent: not given */
    struct rv_str
        seen;          /* Last-Event-ID: the newest message that a stream's reader has; or absent */
    struct rv_str key; /* Idempotency-Key, as sent */
    struct rv_str traceparent; /* W3C trace context, each absent if it was not given, or wrongly */
    struct rv_str tracestate;
    struct rv_str body; /* whole */
};

struct rv_caller; /* access.h */

/* Why the server itself will refuse to call this URL, on the arena; absent: it will not. */
struct rv_egress_hook {
    struct rv_str (*refusal)(void *self, struct rv_arena *arena, struct rv_str url);
    void *self;
};

/* Why the server itself will not find this secret, on the arena; absent: it will. */
struct rv_secret_hook {
    struct rv_str (*refusal)(void *self, struct rv_arena *arena, struct rv_str name);
    void *self;
};

/* What one thread needs to parse requests, one after the other. */
struct rv_parser {
    struct rv_arena tree; /* of the body, until the request is parsed */
    struct rv_buf scratch;
    struct rv_arena *arena;         /* borrowed: the call's; what outlives parsing goes there */
    const struct rv_caller *caller; /* borrowed: who asks; NULL: nobody was asked for it */
    struct rv_egress_hook egress;   /* NULL inside: nobody knows */
    struct rv_secret_hook secrets;  /* the same */
    struct rv_problem problem;      /* when a parser said no */
};

void rv_parser_init(struct rv_parser *parser);
void rv_parser_done(struct rv_parser *parser);
/* Before each request. */
void rv_parser_begin(struct rv_parser *parser, struct rv_arena *arena);

/* Whether there was no memory for some of the request: then what was read is not all of it, and
 * what was found wrong with it may not be so. Sets the problem. */
bool rv_parser_starved(struct rv_parser *parser);

/* Sets the problem; false, so that a parser can return it. */
bool rv_refuse(struct rv_parser *parser, enum rv_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool rv_refuse_http(struct rv_parser *parser, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Splits and decodes path and query. Refuses what is not plain UTF-8 text: NUL and other control
 * characters, broken percent signs, empty and dot segments, a parameter given twice. */
bool rv_request_read(struct rv_parser *parser, struct rv_str target, struct rv_request_line *ret);

/* Refuses parameters that are not in `names` (ended by NULL). */
bool rv_args_only(struct rv_parser *parser, const struct rv_request_line *request,
                  const char *const *names);
/* Absent when it was not given. */
struct rv_str rv_arg_get(const struct rv_request_line *request, const char *name);
/* *ret stays as it is when the parameter was not given. */
bool rv_arg_int(struct rv_parser *parser, const struct rv_request_line *request, const char *name,
                int64_t min, int64_t max, int64_t *ret);
bool rv_arg_bool(struct rv_parser *parser, const struct rv_request_line *request, const char *name,
                 bool *ret);
/* "limit": how many rows a page may have, 1 to RV_PAGE_ROWS_MAX and that when it was not given. */
bool rv_arg_limit(struct rv_parser *parser, const struct rv_request_line *request,
                  size_t *ret_limit);
/* "after" of a list whose pages end with an id; absent: *ret_id stays as it is. */
bool rv_arg_after(struct rv_parser *parser, const struct rv_request_line *request,
                  struct rv_task_id *ret_id);
bool rv_refuse_after(struct rv_parser *parser, struct rv_str after);
/* ISO 8601 duration, at most RV_WAIT_MS_MAX. */
bool rv_arg_wait(struct rv_parser *parser, const struct rv_request_line *request, int64_t *ret_ms);

/* The caller's key in the header Idempotency-Key; absent when none was sent. Quoted, as RFC 8941
 * writes a string, it is the text between the quotes. */
bool rv_key_header(struct rv_parser *parser, const struct rv_request_line *request,
                   struct rv_str *ret_key);
/* Refuses that header where a request that is repeated makes `what` anew: the caller would take the
 * repetition for safe. */
bool rv_key_header_none(struct rv_parser *parser, const struct rv_request_line *request,
                        const char *what);

/* Digits only, at most int64. */
bool rv_text_int(struct rv_str text, int64_t *ret);
/* The scratch becomes "did you mean ...?" with the name or value that is near, or lists all. */
void rv_suggest_to(struct rv_parser *parser, struct rv_str given, const char *const *names);
/* A sentence about the code point that rv_utf8_hidden has found. */
#define RV_HIDDEN_TEXT "contains the control or formatting character U+%04X; remove it"
/* Whether the text has no ASCII control characters. */
bool rv_text_plain(struct rv_str text);

#endif

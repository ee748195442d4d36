/* http.h - HTTP/1.1 of a server as a pure machine: bytes in, events out; and the writer of answers.
 * Requests are read by the grammar of RFC 9112 and 9110 without any of its leniencies
 * (docs/decisions/028-own-http.md): what two readers could take differently is refused. */
#ifndef RV_HTTP_HTTP_H
#define RV_HTTP_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every size is bounded before it is read. */
enum {
    RV_HTTP_METHOD_BYTES_MAX = 16,
    RV_HTTP_TARGET_BYTES_MAX = 8000,
    RV_HTTP_FIELDS_MAX = 100,
    RV_HTTP_FIELDS_BYTES_MAX = 16 * 1024,  /* all header lines together, with their CR LF */
    RV_HTTP_CHUNK_LINE_BYTES_MAX = 256,    /* size and extensions, without CR LF */
    RV_HTTP_CHUNK_DIGITS_MAX = 16,         /* of a chunk's size, zeros included */
    RV_HTTP_CHUNK_EXTRA_BYTES_MAX = 16384, /* all extensions and trailers of one body */
    RV_HTTP_DATE_BYTES = 30                /* "Sun, 06 Nov 1994 08:49:37 GMT", terminated */
};

/* A header line; name and value lie in the reader, from `at` on. */
struct rv_http_field {
    uint16_t name_at;
    uint16_t name_len;
    uint16_t value_at;
    uint16_t value_len;
};

/* A request's head, valid until rv_http_reader_next. Texts are borrowed from the reader. */
struct rv_http_request {
    struct rv_str method;
    struct rv_str
        target;         /* path and query as sent; of an absolute form, from the path on; or "*" */
    struct rv_str host; /* with the port, as sent; absent: HTTP/1.0 without one */
    uint8_t minor;      /* of the version: 1, or 0 */
    bool chunked;       /* the length is not known before the body's end */
    bool close;         /* the connection ends after the answer */
    bool expects;       /* the client waits for 100 Continue before it sends the body */
    int64_t length;     /* of the body; 0 where chunked or none */
    const struct rv_http_field *fields;
    size_t fields_count;
    const char *at; /* of the fields */
};

enum rv_http_event {
    RV_HTTP_MORE,   /* all of the input was taken, and more is needed */
    RV_HTTP_HEAD,   /* `request` holds */
    RV_HTTP_BODY,   /* a piece of the body: `piece`, which lies in the input */
    RV_HTTP_END,    /* the request is complete; rv_http_reader_next begins another one */
    RV_HTTP_REFUSED /* `refusal` says why; nothing more is read */
};

/* Why a request is refused. The connection is closed after the answer, as where the next request
 * would begin is not known. */
struct rv_http_refusal {
    int status;         /* 400 413 414 417 431 501 505 */
    const char *detail; /* static: names the fault and the cure */
};

/* One connection's. Its members are for the functions of this room; a caller reads request, piece
 * and refusal. */
struct rv_http_reader {
    struct rv_http_request request;
    struct rv_str piece;
    struct rv_http_refusal refusal;
    uint8_t state;
    bool blank_seen;    /* an empty line before the request line */
    bool has_length;    /* Content-Length was there ... */
    bool has_encoding;  /* ... or Transfer-Encoding */
    bool has_authority; /* the target named the host */
    int64_t body_max;
    int64_t body_bytes;  /* so far */
    uint64_t rest;       /* of the body, or of the chunk in hand */
    size_t line_at;      /* in `head`: of the line in hand */
    size_t fields_bytes; /* read */
    size_t extra_bytes;  /* of chunk extensions and trailers */
    uint32_t target_at;
    uint16_t target_len;
    uint16_t method_len;
    struct rv_http_field host;
    struct rv_http_field authority;
    size_t fields_count;
    struct rv_buf head; /* the lines read so far; none while the connection is idle */
    struct rv_http_field fields[RV_HTTP_FIELDS_MAX];
};

/* `body_max`: bytes of a body beyond which it is refused with 413. Takes no memory. */
void rv_http_reader_init(struct rv_http_reader *reader, int64_t body_max);
void rv_http_reader_done(struct rv_http_reader *reader);
/* Reads up to the next event. *ret_taken bytes of `input` are read; the caller gives what is left,
 * and what has come since, to the next call. Where the input is cut makes no difference. REFUSED
 * with 503 where there is no memory for the head. */
enum rv_http_event rv_http_reader_feed(struct rv_http_reader *reader, struct rv_str input,
                                       size_t *ret_taken);
/* After END: the next request on the same connection. */
void rv_http_reader_next(struct rv_http_reader *reader);
/* Bytes that still come of the body, or of the chunk in hand. */
uint64_t rv_http_reader_rest(const struct rv_http_reader *reader);
/* No byte of a request has come: the connection can be closed without an answer. Gives back the
 * memory of the head. */
bool rv_http_reader_idle(struct rv_http_reader *reader);
/* The value of the header; absent when there is none. `ret_count`: how often it stands there (the
 * first one is given), or NULL. */
struct rv_str rv_http_field(const struct rv_http_request *request, const char *name,
                            size_t *ret_count);

/* The head of an answer. */
struct rv_http_answer {
    int status;
    uint8_t minor;    /* of the request: 1.0 knows no chunks, and closes */
    bool close;       /* adds `Connection: close` */
    bool head_only;   /* answers HEAD: no body follows, though its length is given */
    bool chunked;     /* the length is not known: chunks follow, or with 1.0 bytes until the end */
    uint64_t length;  /* else of the body */
    const char *type; /* Content-Type; NULL: none */
    const char *date; /* rv_http_date */
};

/* "HTTP/1.1 200 OK" up to the last header that the answer itself needs; rv_http_write_field adds
 * others, rv_http_write_end the empty line. */
void rv_http_write_head(struct rv_buf *out, const struct rv_http_answer *answer);
/* A value with a line break or another control character is left out with its header: it would
 * begin a header of its own. */
void rv_http_write_field(struct rv_buf *out, const char *name, struct rv_str value);
void rv_http_write_end(struct rv_buf *out);
/* A chunk of the body; `len` > 0. */
void rv_http_write_chunk(struct rv_buf *out, const void *bytes, size_t len);
void rv_http_write_last_chunk(struct rv_buf *out);
/* Of an instant in seconds since 1970; years 1970 to 9999. */
void rv_http_date(int64_t seconds, char ret_date[static RV_HTTP_DATE_BYTES]);
/* "Not Found"; "Unknown" for a status that Reeve does not give. */
const char *rv_http_phrase(int status);

#endif

/* reader_priv.h - what the machine (reader.c) and the grammar of heads (head.c) share. */
#ifndef RV_HTTP_READER_PRIV_H
#define RV_HTTP_READER_PRIV_H

#include "http/grammar.h"
#include "http/http.h"

#define READER_BODY_LARGE "the body is larger than the server accepts; send less data per request"

enum {
    READER_START, /* no byte of a request line */
    READER_LINE,
    READER_FIELD,
    READER_HEAD_DONE, /* all of the head is read, and not yet told */
    READER_BODY,
    READER_CHUNK_LINE,
    READER_CHUNK,
    READER_CHUNK_END,
    READER_TRAILER,
    READER_END,
    READER_REFUSED
};

/* Method, blank, target, blank, version. An absolute form has a scheme and a host besides. */
enum { READER_REQUEST_LINE_MAX = RV_HTTP_METHOD_BYTES_MAX + RV_HTTP_TARGET_BYTES_MAX + 10 };

/* False, so that a reader can return it. */
bool reader_refuse(struct rv_http_reader *r, int status, const char *detail);
/* head.c: a line of the head, which lies in r->head. False: refused. */
bool head_request_line(struct rv_http_reader *r, struct rv_str line);
/* The empty line ends the head. */
bool head_field(struct rv_http_reader *r, struct rv_str line);
bool head_field_split(struct rv_http_reader *r, struct rv_str line, struct rv_http_field *ret);
/* Fills r->request, and goes on to the body. */
void head_give(struct rv_http_reader *r);

#endif

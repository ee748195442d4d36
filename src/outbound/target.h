/* target.h - a URL taken apart, by the same parser that connects to it. */
#ifndef RV_OUTBOUND_TARGET_H
#define RV_OUTBOUND_TARGET_H

#include "base/err.h"
#include "base/str.h"
#include "outbound/address.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

/* A check that reads a URL otherwise than the one who connects is no check: so libcurl's own handle
 * is asked what it has understood, and is given on as it is. Texts are owned by the target. */
struct rv_target {
    CURLU *url;    /* owned */
    char *scheme;  /* "http" or "https" */
    char *host;    /* lower case; IPv6 in brackets; a number in any other form as dotted IPv4 */
    char *path;    /* begins with a slash; `.` and `..` are resolved */
    uint16_t port; /* the scheme's if none was written */
    bool port_written;
    bool literal; /* the host is an address */
    struct rv_address address;
};

enum { RV_TARGET_URL_BYTES_MAX = 64 * 1024, RV_TARGET_WHY_BYTES = 256 };

/* INVALID with a reason (no http(s), a user name or password inside, no host, bytes that do not
 * belong into a URL); MEMORY. A target of before is let go first; zeroed is a valid start. */
RV_CHECK enum rv_err rv_target_parse(struct rv_target *target, struct rv_str url,
                                     char ret_why[static RV_TARGET_WHY_BYTES]);
/* Moves to where a Location header points, which may be relative. As above; on failure the target
 * is the old one. */
RV_CHECK enum rv_err rv_target_move(struct rv_target *target, struct rv_str location,
                                    char ret_why[static RV_TARGET_WHY_BYTES]);
void rv_target_done(struct rv_target *target);
/* Same scheme, host and port. */
bool rv_target_same_origin(const struct rv_target *a, const struct rv_target *b);
/* "https://api.example.com" or, where a port was written, "http://127.0.0.1:8080". */
void rv_target_origin(const struct rv_target *target, char *text, size_t bytes);

#endif

/* address.h - network addresses, and where they lead. */
#ifndef RV_OUTBOUND_ADDRESS_H
#define RV_OUTBOUND_ADDRESS_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct rv_address {
    bool v6;
    uint8_t bytes[16]; /* the first four for IPv4 */
};

/* Where an address leads. An IPv6 address that stands for an IPv4 one leads where that one does. */
enum rv_address_kind {
    RV_ADDRESS_PUBLIC,
    RV_ADDRESS_PRIVATE, /* this machine, this network */
    RV_ADDRESS_SPECIAL  /* link-local, a cloud's metadata, multicast, not to be used by anybody */
};

enum rv_address_kind rv_address_kind(const struct rv_address *address);
bool rv_address_eq(const struct rv_address *a, const struct rv_address *b);

/* Dotted IPv4 with four decimal parts, or IPv6 with or without brackets; false for all else. */
bool rv_address_parse(struct rv_str text, struct rv_address *ret_address);
/* False for a family that is neither. */
bool rv_address_of(const struct sockaddr *from, struct rv_address *ret_address);

/* Whether an interface of this machine has it: a public address may be this server's own. Where the
 * interfaces cannot be listed, it counts as one. */
bool rv_address_is_here(const struct rv_address *address);

enum { RV_ADDRESS_TEXT_BYTES = 48 };
/* Without brackets. */
const char *rv_address_text(const struct rv_address *address,
                            char text[static RV_ADDRESS_TEXT_BYTES]);

#endif

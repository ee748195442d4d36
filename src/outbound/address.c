/* What the registries of special addresses say (IANA, RFC 6890 and its kin), and where the clouds
 * keep their metadata. A range that is missing here would be public: so IPv6 is public only inside
 * of 2000::/3, and IPv4's ranges are listed. */
#include "outbound/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum { V4_BYTES = 4, V6_BYTES = 16 };

struct range {
    uint8_t bytes[V6_BYTES];
    unsigned bits;
    enum rv_address_kind kind;
};

#define PRIVATE RV_ADDRESS_PRIVATE
#define SPECIAL RV_ADDRESS_SPECIAL

/* The first that holds an address counts. */
static const struct range v4_ranges[] = {
    {{100, 100, 100, 200}, 32, SPECIAL}, /* metadata inside of 100.64/10 */
    {{168, 63, 129, 16}, 32, SPECIAL},   /* metadata at an address that looks public */
    {{169, 254}, 16, SPECIAL},           /* link-local; metadata as well */
    {{0}, 8, SPECIAL},                   /* 0.0.0.0 connects to this machine */
    {{10}, 8, PRIVATE},
    {{100, 64}, 10, PRIVATE},
    {{127}, 8, PRIVATE},
    {{172, 16}, 12, PRIVATE},
    {{192, 168}, 16, PRIVATE},
    {{192, 0, 0}, 24, SPECIAL},
    {{192, 0, 2}, 24, SPECIAL},
    {{192, 88, 99}, 24, SPECIAL},
    {{198, 18}, 15, SPECIAL},
    {{198, 51, 100}, 24, SPECIAL},
    {{203, 0, 113}, 24, SPECIAL},
    {{224}, 3, SPECIAL}, /* multicast, reserved, broadcast */
};

static const struct range v6_ranges[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, SPECIAL},
    {{0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, SPECIAL},
    {{[15] = 1}, 128, PRIVATE},
    {{0xfc}, 7, PRIVATE},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, SPECIAL},
    {{0x20, 0x01, 0x00}, 23, SPECIAL}, /* protocols of their own; tunnels to any IPv4 address */
    {{0x3f, 0xff}, 20, SPECIAL},
    {{0x20}, 3, RV_ADDRESS_PUBLIC},
    {{0}, 0, SPECIAL},
};

/* IPv6 prefixes before an IPv4 address. */
static const struct {
    uint8_t bytes[V6_BYTES];
    unsigned bits;
    unsigned at; /* where the IPv4 address begins */
} v4_inside[] = {
    {{[10] = 0xff, [11] = 0xff}, 96, 12}, /* ::ffff:a.b.c.d */
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},   /* 64:ff9b::a.b.c.d */
    {{0x20, 0x02}, 16, 2},                /* 2002:aabb:ccdd:: */
};

static bool in_range(const uint8_t *bytes, const uint8_t *prefix, unsigned bits)
{
    unsigned whole = bits / 8;
    if (memcmp(bytes, prefix, whole) != 0)
        return false;
    unsigned rest = bits % 8;
    unsigned mask = 0xffu << (8 - rest) & 0xffu;
    return rest == 0 || (bytes[whole] & mask) == prefix[whole];
}

static enum rv_address_kind kind_of(const struct range *ranges, size_t count, const uint8_t *bytes)
{
    for (size_t i = 0; i < count; i++)
        if (in_range(bytes, ranges[i].bytes, ranges[i].bits))
            return ranges[i].kind;
    return RV_ADDRESS_PUBLIC;
}

#define KIND_OF(ranges, bytes) kind_of((ranges), sizeof(ranges) / sizeof(ranges)[0], (bytes))

enum rv_address_kind rv_address_kind(const struct rv_address *address)
{
    if (!address->v6)
        return KIND_OF(v4_ranges, address->bytes);
    for (size_t i = 0; i < sizeof v4_inside / sizeof v4_inside[0]; i++)
        if (in_range(address->bytes, v4_inside[i].bytes, v4_inside[i].bits))
            return KIND_OF(v4_ranges, address->bytes + v4_inside[i].at);
    return KIND_OF(v6_ranges, address->bytes);
}

bool rv_address_eq(const struct rv_address *a, const struct rv_address *b)
{
    return a->v6 == b->v6 && memcmp(a->bytes, b->bytes, a->v6 ? V6_BYTES : V4_BYTES) == 0;
}

bool rv_address_parse(struct rv_str text, struct rv_address *ret_address)
{
    char copy[RV_ADDRESS_TEXT_BYTES];
    bool brackets = text.len >= 2 && text.at[0] == '[' && text.at[text.len - 1] == ']';
    if (brackets)
        text = (struct rv_str){text.at + 1, text.len - 2};
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.at, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    struct rv_address address = {.v6 = strchr(copy, ':') != NULL};
    if ((brackets && !address.v6) ||
        inet_pton(address.v6 ? AF_INET6 : AF_INET, copy, address.bytes) != 1)
        return false;
    *ret_address = address;
    return true;
}

bool rv_address_of(const struct sockaddr *from, struct rv_address *ret_address)
{
    struct rv_address address = {.v6 = from->sa_family == AF_INET6};
    if (from->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, from, sizeof in6);
        memcpy(address.bytes, &in6.sin6_addr, V6_BYTES);
    } else if (from->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, from, sizeof in);
        memcpy(address.bytes, &in.sin_addr, V4_BYTES);
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

const char *rv_address_text(const struct rv_address *address,
                            char text[static RV_ADDRESS_TEXT_BYTES])
{
    if (inet_ntop(address->v6 ? AF_INET6 : AF_INET, address->bytes, text, RV_ADDRESS_TEXT_BYTES) ==
        NULL)
        text[0] = '\0';
    return text;
}

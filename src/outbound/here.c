#include "outbound/address.h"

#include <ifaddrs.h>
#include <string.h>

/* ::ffff:1.2.3.4 reaches 1.2.3.4. */
static struct rv_address unmapped(const struct rv_address *address)
{
    static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    struct rv_address v4 = {.v6 = false};
    if (!address->v6 || memcmp(address->bytes, prefix, sizeof prefix) != 0)
        return *address;
    memcpy(v4.bytes, address->bytes + sizeof prefix, 4);
    return v4;
}

bool rv_address_is_here(const struct rv_address *address)
{
    struct rv_address wanted = unmapped(address), one;
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0)
        return true;
    bool found = false;
    for (const struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next)
        found = i->ifa_addr != NULL && rv_address_of(i->ifa_addr, &one) &&
                rv_address_eq(&one, &wanted);
    freeifaddrs(list);
    return found;
}

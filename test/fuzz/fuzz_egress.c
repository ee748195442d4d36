/* Any list and any URL: what is let through is listed, and leads inside only where an entry names
 * host and port. The lines are entries, the last one is the URL. */
#include "base/assert.h"
#include "outbound/egress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rv_str line_take(struct rv_str *rest)
{
    const char *end = rest->len > 0 ? memchr(rest->at, '\n', rest->len) : NULL;
    struct rv_str line = *rest;
    if (end != NULL)
        line.len = (size_t)(end - rest->at);
    *rest = end != NULL ? (struct rv_str){end + 1, rest->len - line.len - 1} : RV_STR_NONE;
    return line;
}

static void let_through(const struct rv_egress *egress, struct rv_str url, size_t entries)
{
    char why[RV_EGRESS_WHY_BYTES], url_why[RV_TARGET_WHY_BYTES];
    struct rv_target target = {.url = NULL};
    enum rv_egress_reach reach = RV_REACH_PUBLIC;
    rv_assert(entries > 0);
    rv_assert(rv_target_parse(&target, url, url_why) == RV_OK);
    rv_assert(rv_egress_check(egress, &target, &reach, why) == RV_OK);
    rv_assert(strcmp(target.scheme, "http") == 0 || strcmp(target.scheme, "https") == 0);
    rv_assert(target.host[0] != '\0' && target.path[0] == '/' && target.port != 0);
    if (target.literal && rv_address_kind(&target.address) != RV_ADDRESS_PUBLIC)
        rv_assert(reach == RV_REACH_ADDRESS);
    rv_target_done(&target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv_str rest = {(const char *)data, size};
    struct rv_egress *egress = rv_egress_new();
    char why[RV_EGRESS_WHY_BYTES];
    size_t entries = 0;
    struct rv_str line = line_take(&rest);
    while (rest.at != NULL) {
        enum rv_err err = rv_egress_add(egress, line, why);
        rv_assert(err == RV_OK || err == RV_ERR_LIMIT || why[0] != '\0');
        entries += err == RV_OK;
        line = line_take(&rest);
    }
    if (rv_egress_check_url(egress, line, why) == RV_OK)
        let_through(egress, line, entries);
    else
        rv_assert(why[0] != '\0');
    rv_egress_free(egress);
    return 0;
}

#include "outbound/egress.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ORIGIN_BYTES = 320 };

struct egress_entry {
    struct rv_target target; /* owned; of a wildcard, with `any` for its star */
    bool all;                /* `*` */
    bool below;              /* `*.example.com` */
};

struct rv_egress {
    struct egress_entry *entries; /* owned */
    size_t count;
    size_t room;
};

bool rv_egress_empty(const struct rv_egress *egress)
{
    return egress->count == 0;
}

struct rv_egress *rv_egress_new(void)
{
    return calloc(1, sizeof(struct rv_egress));
}

void rv_egress_free(struct rv_egress *egress)
{
    if (egress == NULL)
        return;
    for (size_t i = 0; i < egress->count; i++)
        rv_target_done(&egress->entries[i].target);
    free(egress->entries);
    free(egress);
}

static enum rv_err entry_room(struct rv_egress *egress)
{
    if (egress->count == RV_EGRESS_ENTRIES_MAX)
        return RV_ERR_LIMIT;
    return RV_ARRAY_ROOM(egress->entries, egress->count, egress->room) ? RV_OK : RV_ERR_MEMORY;
}

static const char cure[] = "write the entry as https://api.example.com, http://172.16.0.7:8080, "
                           "https://*.example.com or https://api.example.com/v1";

static enum rv_err entry_invalid(char *why, struct rv_str text, const char *what)
{
    snprintf(why, RV_EGRESS_WHY_BYTES, "\"%.*s\": %s; %s", (int)(text.len > 200 ? 200 : text.len),
             text.at, what, cure);
    return RV_ERR_INVALID;
}

/* `scheme://` as its length; 0 if there is none. */
static size_t scheme_len(struct rv_str text)
{
    if (text.len >= 8 && strncasecmp(text.at, "https://", 8) == 0)
        return 8;
    return text.len >= 7 && strncasecmp(text.at, "http://", 7) == 0 ? 7 : 0;
}

/* Parses the entry with a host in the place of the star, which no URL can hold. */
static enum rv_err entry_parse(struct egress_entry *entry, struct rv_str text, char *why)
{
    size_t scheme = scheme_len(text);
    if (scheme == 0)
        return entry_invalid(why, text, "an entry must begin with https:// or http://");
    struct rv_str rest = {text.at + scheme, text.len - scheme};
    if (rest.len > 0 && rest.at[0] == '*') {
        entry->below = rest.len > 1 && rest.at[1] == '.';
        entry->all = !entry->below;
        rest = (struct rv_str){rest.at + 1 + entry->below, rest.len - 1 - entry->below};
    }
    size_t bytes = text.len + sizeof "any";
    char *plain = malloc(bytes);
    if (plain == NULL)
        return RV_ERR_MEMORY;
    snprintf(plain, bytes, "%.*s%s%.*s", (int)scheme, text.at, entry->all ? "any" : "",
             RV_STR_FMT(rest));
    char url_why[RV_TARGET_WHY_BYTES];
    enum rv_err err = rv_target_parse(&entry->target, rv_str_of(plain), url_why);
    free(plain);
    if (err == RV_ERR_INVALID)
        return entry_invalid(why, text, url_why);
    if (err != RV_OK)
        return err;
    const struct rv_target *target = &entry->target;
    char *query = NULL;
    CURLUcode has_query = curl_url_get(target->url, CURLUPART_QUERY, &query, 0);
    curl_free(query);
    const char *wrong = NULL;
    if (has_query == CURLUE_OK)
        wrong = "an entry must not have a query";
    else if (entry->all && strcmp(target->host, "any") != 0)
        wrong = "a wildcard (*) must be the whole host or be followed by a dot";
    else if (entry->below && target->literal)
        wrong = "a wildcard (*) cannot be combined with an IP address";
    if (wrong == NULL)
        return RV_OK;
    rv_target_done(&entry->target);
    return entry_invalid(why, text, wrong);
}

enum rv_err rv_egress_add(struct rv_egress *egress, struct rv_str text,
                          char ret_why[static RV_EGRESS_WHY_BYTES])
{
    ret_why[0] = '\0';
    enum rv_err err = entry_room(egress);
    struct egress_entry entry = {.all = false};
    if (err == RV_OK)
        err = entry_parse(&entry, text, ret_why);
    if (err == RV_OK)
        egress->entries[egress->count++] = entry;
    return err;
}

static bool host_matches(const struct egress_entry *entry, const struct rv_target *target)
{
    if (entry->all)
        return true;
    if (entry->target.literal || target->literal)
        return entry->target.literal && target->literal && !entry->below &&
               rv_address_eq(&entry->target.address, &target->address);
    if (!entry->below)
        return strcmp(entry->target.host, target->host) == 0;
    size_t len = strlen(target->host);
    size_t below = strlen(entry->target.host);
    return len > below + 1 && target->host[len - below - 1] == '.' &&
           strcmp(target->host + len - below, entry->target.host) == 0;
}

/* A dot or two, with parameters behind (RFC 3986, 3.3) or something encoded: a URL does not resolve
 * it as a step up, but some servers cut the segment there and do. */
static bool has_dots_cut(const char *segment)
{
    size_t dots = strspn(segment, ".");
    return (dots == 1 || dots == 2) && (segment[dots] == ';' || segment[dots] == '%');
}

/* An encoded slash, dot or backslash may lead out of the path at the other end. */
static bool path_is_plain(const char *path)
{
    for (const char *c = strchr(path, '/'); c != NULL; c = strchr(c + 1, '/'))
        if (has_dots_cut(c + 1))
            return false;
    for (const char *c = strchr(path, '%'); c != NULL; c = strchr(c + 1, '%'))
        if (strncasecmp(c, "%2f", 3) == 0 || strncasecmp(c, "%2e", 3) == 0 ||
            strncasecmp(c, "%5c", 3) == 0 || strncasecmp(c, "%25", 3) == 0)
            return false;
    return true;
}

static bool path_matches(const struct egress_entry *entry, const struct rv_target *target)
{
    const char *prefix = entry->target.path;
    size_t len = strlen(prefix);
    if (len == 1)
        return true;
    return strncmp(target->path, prefix, len) == 0 && path_is_plain(target->path) &&
           (prefix[len - 1] == '/' || target->path[len] == '\0' || target->path[len] == '/');
}

static bool origin_matches(const struct egress_entry *entry, const struct rv_target *target)
{
    return entry->target.port == target->port &&
           strcmp(entry->target.scheme, target->scheme) == 0 && host_matches(entry, target);
}

/* The reach is that of the origin, whatever the path: connections are shared by origin. */
static enum rv_egress_reach entry_reach(const struct egress_entry *entry)
{
    if (entry->all || entry->below)
        return RV_REACH_PUBLIC;
    if (!entry->target.port_written)
        return RV_REACH_NAMED;
    return entry->target.literal ? RV_REACH_ADDRESS : RV_REACH_HOST;
}

enum rv_err rv_egress_check(const struct rv_egress *egress, const struct rv_target *target,
                            enum rv_egress_reach *ret_reach,
                            char ret_why[static RV_EGRESS_WHY_BYTES])
{
    bool found = false;
    enum rv_egress_reach reach = RV_REACH_PUBLIC;
    for (size_t i = 0; i < egress->count; i++) {
        const struct egress_entry *entry = &egress->entries[i];
        if (!origin_matches(entry, target))
            continue;
        found = found || path_matches(entry, target);
        if (entry_reach(entry) > reach)
            reach = entry_reach(entry);
    }
    ret_why[0] = '\0';
    if (!found) {
        char origin[ORIGIN_BYTES];
        rv_target_origin(target, origin, sizeof origin);
        snprintf(ret_why, RV_EGRESS_WHY_BYTES,
                 "the egress list does not allow calls to %s; to allow them, start the server with "
                 "--egress %s",
                 origin, origin);
        return RV_ERR_REFUSED;
    }
    if (target->literal && !rv_egress_reaches(reach, &target->address)) {
        rv_egress_address_why(target, &target->address, ret_why);
        return RV_ERR_REFUSED;
    }
    *ret_reach = reach;
    return RV_OK;
}

bool rv_egress_reaches(enum rv_egress_reach reach, const struct rv_address *address)
{
    switch (rv_address_kind(address)) {
    case RV_ADDRESS_PUBLIC:
        return true;
    case RV_ADDRESS_PRIVATE:
        return reach >= RV_REACH_HOST;
    case RV_ADDRESS_SPECIAL:
        return reach == RV_REACH_ADDRESS;
    }
    return false;
}

void rv_egress_address_why(const struct rv_target *target, const struct rv_address *address,
                           char ret_why[static RV_EGRESS_WHY_BYTES])
{
    char text[RV_ADDRESS_TEXT_BYTES];
    rv_address_text(address, text);
    bool special = rv_address_kind(address) == RV_ADDRESS_SPECIAL;
    const char *host = target->host;
    char bracketed[RV_ADDRESS_TEXT_BYTES + 2];
    if (special) {
        snprintf(bracketed, sizeof bracketed, address->v6 ? "[%s]" : "%s", text);
        host = bracketed;
    }
    snprintf(
        ret_why, RV_EGRESS_WHY_BYTES,
        "%s %s%s%s%s; the egress list allows this only with an entry that names the %s and its "
        "port: --egress %s://%s:%u",
        target->host, target->literal ? "is " : "resolves to ", target->literal ? "" : text,
        target->literal ? "" : ", ",
        special ? "a link-local, metadata or reserved address"
                : "an address of this machine or network",
        special ? "address" : "host", target->scheme, host, target->port);
}

enum rv_err rv_egress_check_url(const struct rv_egress *egress, struct rv_str url,
                                char ret_why[static RV_EGRESS_WHY_BYTES])
{
    struct rv_target target = {.url = NULL};
    char why[RV_TARGET_WHY_BYTES];
    enum rv_egress_reach reach;
    enum rv_err err = rv_target_parse(&target, url, why);
    if (err == RV_OK)
        err = rv_egress_check(egress, &target, &reach, ret_why);
    else
        snprintf(ret_why, RV_EGRESS_WHY_BYTES, "%s", why);
    rv_target_done(&target);
    return err;
}

struct rv_str rv_egress_refusal(void *egress, struct rv_arena *arena, struct rv_str url)
{
    char why[RV_EGRESS_WHY_BYTES];
    return rv_egress_check_url(egress, url, why) == RV_OK ? RV_STR_NONE
                                                          : rv_arena_str(arena, rv_str_of(why));
}

#include "outbound/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char no_scheme[] = "the URL must begin with http:// or https://";

static enum rv_err invalid(char *why, const char *text)
{
    snprintf(why, RV_TARGET_WHY_BYTES, "%s", text);
    return RV_ERR_INVALID;
}

/* Takes libcurl's text over into memory of our own. False: no memory, or no such part. */
static bool part_take(CURLU *url, CURLUPart part, unsigned flags, char **ret_text)
{
    char *text = NULL;
    if (curl_url_get(url, part, &text, flags) != CURLUE_OK)
        return false;
    *ret_text = strdup(text);
    curl_free(text);
    return *ret_text != NULL;
}

static bool part_there(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(url, part, &text, 0);
    curl_free(text);
    return code == CURLUE_OK;
}

void rv_target_done(struct rv_target *target)
{
    curl_url_cleanup(target->url);
    free(target->scheme);
    free(target->host);
    free(target->path);
    *target = (struct rv_target){.url = NULL};
}

/* Letters, digits, dot, dash, underscore: names in other scripts are to be written as the resolver
 * sees them, so that what is checked is what is asked for. */
static bool host_is_plain(const char *host)
{
    for (const char *c = host; *c != '\0'; c++) {
        bool alnum = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9');
        if (!alnum && *c != '.' && *c != '-' && *c != '_')
            return false;
    }
    return host[0] != '\0';
}

static void lower(char *text)
{
    for (; *text != '\0'; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
}

/* What the handle has understood. */
static enum rv_err target_read(struct rv_target *target, char *why)
{
    CURLU *url = target->url;
    if (part_there(url, CURLUPART_USER) || part_there(url, CURLUPART_PASSWORD))
        return invalid(why, "a URL must not contain a user name or password; use `authentication`");
    if (part_there(url, CURLUPART_ZONEID))
        return invalid(why, "an address with a zone (%) is not supported");
    char *port = NULL;
    target->port_written = part_there(url, CURLUPART_PORT);
    if (!part_take(url, CURLUPART_SCHEME, 0, &target->scheme))
        return RV_ERR_MEMORY;
    lower(target->scheme);
    if (strcmp(target->scheme, "http") != 0 && strcmp(target->scheme, "https") != 0)
        return invalid(why, no_scheme);
    /* Every URL of these schemes that could be parsed has all of them. */
    if (!part_take(url, CURLUPART_HOST, 0, &target->host) ||
        !part_take(url, CURLUPART_PATH, 0, &target->path) ||
        !part_take(url, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port))
        return RV_ERR_MEMORY;
    target->port = (uint16_t)strtoul(port, NULL, 10);
    free(port);
    lower(target->host);
    target->literal = rv_address_parse(rv_str_of(target->host), &target->address);
    if (!target->literal && !host_is_plain(target->host))
        return invalid(why, "a host must be an IP address, or consist of letters, digits, dots and "
                            "hyphens; write other characters in Punycode (xn--)");
    if (target->port == 0)
        return invalid(why, "port 0 is not valid");
    return RV_OK;
}

/* libcurl would take blanks and controls in some places; no URL has them. */
static bool bytes_belong(struct rv_str url)
{
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.at[i];
        if (c <= ' ' || c >= 0x7f || c == '\\')
            return false;
    }
    return true;
}

/* libcurl's own words for a text without a scheme, such as "host:4318", name no cure. */
static const char *fault_text(CURLU *base, const char *text, CURLUcode code)
{
    bool bare = base == NULL && strstr(text, "://") == NULL;
    return bare ? no_scheme : curl_url_strerror(code);
}

/* `base` may be NULL: then `text` is to be a whole URL. */
static enum rv_err target_make(struct rv_target *target, CURLU *base, struct rv_str text, char *why)
{
    if (text.len == 0 || text.len > RV_TARGET_URL_BYTES_MAX)
        return invalid(why, text.len == 0 ? "the URL is empty" : "the URL is longer than 64 KiB");
    if (!bytes_belong(text))
        return invalid(why, "a URL must not contain spaces, control characters, backslashes or "
                            "non-ASCII characters; percent-encode them");
    char *copy = rv_str_dup(text); /* the text may have no end of its own */
    *target = (struct rv_target){.url = base != NULL ? curl_url_dup(base) : curl_url()};
    if (copy == NULL || target->url == NULL) {
        free(copy);
        rv_target_done(target);
        return RV_ERR_MEMORY;
    }
    /* Unknown schemes are parsed, to be refused by name. */
    CURLUcode code = curl_url_set(target->url, CURLUPART_URL, copy, CURLU_NON_SUPPORT_SCHEME);
    enum rv_err err = RV_OK;
    if (code == CURLUE_OUT_OF_MEMORY)
        err = RV_ERR_MEMORY;
    else if (code != CURLUE_OK)
        err = invalid(why, fault_text(base, copy, code));
    free(copy);
    if (err == RV_OK)
        err = target_read(target, why);
    if (err == RV_OK && curl_url_set(target->url, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK)
        err = RV_ERR_MEMORY;
    if (err != RV_OK)
        rv_target_done(target);
    return err;
}

enum rv_err rv_target_parse(struct rv_target *target, struct rv_str url,
                            char ret_why[static RV_TARGET_WHY_BYTES])
{
    ret_why[0] = '\0';
    rv_target_done(target);
    return target_make(target, NULL, url, ret_why);
}

enum rv_err rv_target_move(struct rv_target *target, struct rv_str location,
                           char ret_why[static RV_TARGET_WHY_BYTES])
{
    struct rv_target moved;
    ret_why[0] = '\0';
    enum rv_err err = target_make(&moved, target->url, location, ret_why);
    if (err != RV_OK)
        return err;
    rv_target_done(target);
    *target = moved;
    return RV_OK;
}

bool rv_target_same_origin(const struct rv_target *a, const struct rv_target *b)
{
    return a->port == b->port && strcmp(a->scheme, b->scheme) == 0 && strcmp(a->host, b->host) == 0;
}

void rv_target_origin(const struct rv_target *target, char *text, size_t bytes)
{
    if (target->port_written)
        snprintf(text, bytes, "%s://%s:%u", target->scheme, target->host, target->port);
    else
        snprintf(text, bytes, "%s://%s", target->scheme, target->host);
}

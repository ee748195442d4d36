#include "http/grammar.h"

/* Made from the grammar; test_http holds it against its sentences. */
const unsigned char grammar_classes[256] = {
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x22, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x22, 0x3f, 0x02, 0x23, 0x3f, 0x23, 0x3f, 0x3f, 0x3e, 0x3e, 0x3f, 0x3f, 0x3e, 0x3f, 0x3f, 0x2e,
    0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x2e, 0x3e, 0x22, 0x3e, 0x22, 0x2a,
    0x2e, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f,
    0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x2a, 0x0a, 0x2a, 0x2b, 0x3f,
    0x2b, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f,
    0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x3f, 0x2a, 0x2b, 0x2a, 0x3f, 0x00,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
};

bool grammar_all(struct rv_str text, enum grammar_class class)
{
    unsigned all = class;
    for (size_t i = 0; i < text.len; i++)
        all &= grammar_classes[(unsigned char)text.at[i]];
    return all != 0 && text.len > 0;
}

size_t grammar_token(struct rv_str text)
{
    size_t len = 0;
    while (len < text.len && grammar_is(text.at[len], GRAMMAR_TOKEN))
        len++;
    return len;
}

/* Eight bytes at a time: the subtraction borrows into the highest bit of a byte below a blank, or
 * of one that DEL turns to 0. A borrow may reach the next byte, so what is seen there is looked up
 * one by one. */
static bool value_likely(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t bytes;
    memcpy(&bytes, at, sizeof bytes);
    uint64_t deleted = bytes ^ (ones * 0x7F);
    return ((((bytes - ones * 0x20) & ~bytes) | ((deleted - ones) & ~deleted)) & high) == 0;
}

bool grammar_value(struct rv_str text)
{
    size_t i = 0;
    for (; text.len - i >= 8; i += 8)
        if (!value_likely(text.at + i) &&
            !grammar_all((struct rv_str){text.at + i, 8}, GRAMMAR_VALUE))
            return false;
    return i == text.len || grammar_all((struct rv_str){text.at + i, text.len - i}, GRAMMAR_VALUE);
}

static char lower_of(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool grammar_alike(struct rv_str a, struct rv_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower_of(a.at[i]) != lower_of(b.at[i]))
            return false;
    return true;
}

bool grammar_same(struct rv_str a, const char *lower)
{
    return grammar_alike(a, rv_str_of(lower));
}

static bool escaped(struct rv_str text, size_t at)
{
    return text.len - at > 2 && rv_hex_digit(text.at[at + 1]) >= 0 &&
           rv_hex_digit(text.at[at + 2]) >= 0;
}

/* Of characters of the classes, and of "%" with two hex digits. */
static bool percent_all(struct rv_str text, unsigned classes)
{
    for (size_t i = 0; i < text.len; i++) {
        if (grammar_is(text.at[i], classes))
            continue;
        if (text.at[i] != '%' || !escaped(text, i))
            return false;
        i += 2;
    }
    return true;
}

bool grammar_target(struct rv_str text)
{
    const char *mark = text.len ? memchr(text.at, '?', text.len) : NULL;
    size_t path = mark ? (size_t)(mark - text.at) : text.len;
    if (path == 0 || text.at[0] != '/')
        return false;
    struct rv_str query = {text.at + path, text.len - path};
    return percent_all((struct rv_str){text.at, path}, GRAMMAR_PATH) &&
           percent_all(query, GRAMMAR_QUERY);
}

/* Hex digits, colons and dots between brackets; what it means is for others to know. */
static bool literal_valid(struct rv_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (rv_hex_digit(text.at[i]) < 0 && text.at[i] != ':' && text.at[i] != '.')
            return false;
    return text.len >= 2 && memchr(text.at, ':', text.len) != NULL;
}

static bool port_valid(struct rv_str text)
{
    uint32_t port = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        port = port * 10 + (uint32_t)(text.at[i] - '0');
        if (port > 65535)
            return false;
    }
    return true;
}

bool grammar_authority(struct rv_str text)
{
    bool literal = text.len > 0 && text.at[0] == '[';
    const char *end = literal    ? memchr(text.at, ']', text.len)
                      : text.len ? memchr(text.at, ':', text.len)
                                 : NULL;
    if (literal && end == NULL)
        return false;
    size_t len = end == NULL ? text.len : (size_t)(end - text.at);
    struct rv_str host = {text.at + literal, len - literal};
    struct rv_str rest = {text.at + len + literal, text.len - len - literal};
    if (rest.len > 0 && rest.at[0] != ':')
        return false;
    if (rest.len > 0)
        rest = (struct rv_str){rest.at + 1, rest.len - 1};
    bool valid = literal ? literal_valid(host) : percent_all(host, GRAMMAR_HOST);
    return host.len > 0 && valid && port_valid(rest);
}

struct rv_str grammar_trim(struct rv_str text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = (struct rv_str){text.at + 1, text.len - 1};
    while (text.len > 0 && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
        text.len--;
    return text;
}

bool grammar_element(struct rv_str *rest, struct rv_str *ret)
{
    if (rest->at == NULL)
        return false;
    const char *comma = rest->len ? memchr(rest->at, ',', rest->len) : NULL;
    size_t len = comma ? (size_t)(comma - rest->at) : rest->len;
    *ret = grammar_trim((struct rv_str){rest->at, len});
    *rest = comma ? (struct rv_str){comma + 1, rest->len - len - 1} : RV_STR_NONE;
    return true;
}

static size_t blanks(struct rv_str text, size_t at)
{
    while (at < text.len && (text.at[at] == ' ' || text.at[at] == '\t'))
        at++;
    return at;
}

static size_t token(struct rv_str text, size_t at)
{
    return at + grammar_token((struct rv_str){text.at + at, text.len - at});
}

/* The end of the quoted text whose first quote is at `at`; `at` where it has none. */
static size_t quoted(struct rv_str text, size_t at)
{
    for (size_t i = at + 1; i < text.len; i++) {
        if (text.at[i] == '"')
            return i + 1;
        if (text.at[i] == '\\' && i + 1 < text.len && grammar_is(text.at[i + 1], GRAMMAR_VALUE))
            i++;
        else if (!grammar_is(text.at[i], GRAMMAR_QUOTED))
            return at;
    }
    return at;
}

bool grammar_extensions(struct rv_str text)
{
    size_t at = 0;
    while (at < text.len) {
        at = blanks(text, at);
        if (at == text.len || text.at[at] != ';')
            return false;
        size_t name = blanks(text, at + 1), end = token(text, name);
        if (end == name)
            return false;
        at = end;
        size_t sign = blanks(text, at);
        if (sign == text.len || text.at[sign] != '=')
            continue;
        size_t value = blanks(text, sign + 1);
        bool quote = value < text.len && text.at[value] == '"';
        at = quote ? quoted(text, value) : token(text, value);
        if (at == value)
            return false;
    }
    return true;
}

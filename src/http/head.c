/* The lines of a request's head, and how they frame its body (RFC 9112, 3, 5 and 6). */
#include "http/reader_priv.h"

#include "base/assert.h"

static struct rv_str text_at(const struct rv_http_reader *r, size_t at, size_t len)
{
    rv_assert(at <= r->head.len);
    rv_assert(len <= r->head.len - at);
    return (struct rv_str){r->head.at + at, len};
}

/* "http://host/path": the path is what counts, and the host must be the one of Host. */
static bool absolute_read(struct rv_http_reader *r, struct rv_str *target)
{
    static const char *const schemes[] = {"http://", "https://"};
    size_t skip = 0;
    for (size_t i = 0; i < 2 && skip == 0; i++) {
        size_t len = strlen(schemes[i]);
        if (target->len >= len && grammar_same((struct rv_str){target->at, len}, schemes[i]))
            skip = len;
    }
    if (skip == 0)
        return reader_refuse(r, 400, "the target is neither a path nor an http or https URL");
    struct rv_str rest = {target->at + skip, target->len - skip};
    size_t len = 0;
    while (len < rest.len && rest.at[len] != '/' && rest.at[len] != '?')
        len++;
    if (!grammar_authority((struct rv_str){rest.at, len}))
        return reader_refuse(r, 400, "the target has no valid host");
    if (len == rest.len || rest.at[len] != '/')
        return reader_refuse(r, 400, "the target has no path; write a slash after the host");
    r->has_authority = true;
    r->authority.value_at = (uint16_t)(rest.at - r->head.at);
    r->authority.value_len = (uint16_t)len;
    *target = (struct rv_str){rest.at + len, rest.len - len};
    return true;
}

static bool target_read(struct rv_http_reader *r, struct rv_str method, struct rv_str target)
{
    bool asterisk = rv_str_is(target, "*");
    if (rv_str_is(method, "CONNECT"))
        return reader_refuse(r, 501, "this server is not a proxy and does not support CONNECT");
    if (asterisk && !rv_str_is(method, "OPTIONS"))
        return reader_refuse(r, 400, "the target * is allowed only with OPTIONS");
    if (target.len > 0 && target.at[0] != '/' && !asterisk && !absolute_read(r, &target))
        return false;
    if (!asterisk && !grammar_target(target))
        return reader_refuse(r, 400,
                             "the URL contains a character that must be percent-encoded, or a "
                             "percent sign without two hex digits");
    r->target_at = (uint32_t)(target.at - r->head.at);
    r->target_len = (uint16_t)target.len;
    return true;
}

static bool version_read(struct rv_http_reader *r, struct rv_str version)
{
    bool named = version.len == 8 && memcmp(version.at, "HTTP/", 5) == 0 && version.at[6] == '.';
    char major = named ? version.at[5] : 0, minor = named ? version.at[7] : 0;
    if (major < '0' || major > '9' || minor < '0' || minor > '9')
        return reader_refuse(r, 400, "the request line does not end with an HTTP version");
    if (major != '1')
        return reader_refuse(r, 505, "this server supports only HTTP/1.0 and HTTP/1.1");
    r->request.minor = minor != '0'; /* a later 1.x can be answered as 1.1 */
    r->request.close = minor == '0';
    return true;
}

bool head_request_line(struct rv_http_reader *r, struct rv_str line)
{
    rv_assert(r->state == READER_LINE);
    rv_assert(r->line_at == 0);
    rv_assert(line.at == r->head.at);
    const char *first = memchr(line.at, ' ', line.len);
    size_t method_len = first ? (size_t)(first - line.at) : line.len;
    struct rv_str method = {line.at, method_len};
    if (!grammar_all(method, GRAMMAR_TOKEN) || first == NULL)
        return reader_refuse(r, 400,
                             "the request line does not consist of a method, a URL and a version");
    if (method_len > RV_HTTP_METHOD_BYTES_MAX)
        return reader_refuse(r, 501, "the method is unknown");
    struct rv_str rest = {first + 1, line.len - method_len - 1};
    const char *second = rest.len ? memchr(rest.at, ' ', rest.len) : NULL;
    if (second == NULL)
        return reader_refuse(r, 400, "the request line has no HTTP version");
    struct rv_str target = {rest.at, (size_t)(second - rest.at)};
    struct rv_str version = {second + 1, rest.len - target.len - 1};
    if (target.len > RV_HTTP_TARGET_BYTES_MAX)
        return reader_refuse(r, 414, "the URL is longer than 8000 bytes");
    r->method_len = (uint16_t)method_len;
    return version_read(r, version) && target_read(r, method, target);
}

bool head_field_split(struct rv_http_reader *r, struct rv_str line, struct rv_http_field *ret)
{
    rv_assert(line.len > 0);
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return reader_refuse(r, 400, "a header line is folded; send each header in one line");
    struct rv_str name = {line.at, grammar_token(line)};
    bool colon = name.len < line.len && line.at[name.len] == ':';
    if (!colon && memchr(line.at, ':', line.len) == NULL)
        return reader_refuse(r, 400, "a header line has no colon");
    if (!colon || name.len == 0)
        return reader_refuse(r, 400,
                             "a header's name is empty, or contains a space or another character "
                             "that is not allowed");
    struct rv_str value = grammar_trim(
        (struct rv_str){line.at + name.len + 1, line.len - name.len - 1});
    if (!grammar_value(value))
        return reader_refuse(r, 400, "a header's value contains a control character");
    ret->name_at = (uint16_t)(name.at - r->head.at);
    ret->name_len = (uint16_t)name.len;
    ret->value_at = (uint16_t)(value.at - r->head.at);
    ret->value_len = (uint16_t)value.len;
    return true;
}

static bool length_read(struct rv_http_reader *r, struct rv_str value)
{
    int64_t length = 0;
    if (r->has_length)
        return reader_refuse(r, 400, "Content-Length is given twice");
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return reader_refuse(r, 400, "Content-Length is not a decimal number");
        length = i < 18 ? length * 10 + (value.at[i] - '0') : INT64_MAX;
    }
    if (value.len == 0)
        return reader_refuse(r, 400, "Content-Length is empty");
    r->has_length = true;
    r->request.length = length;
    return true;
}

/* `chunked` is the only coding that is read. If it is not the last one, the end of the body is
 * unknown: 400. Another coding before it gets 501. */
static bool encoding_read(struct rv_http_reader *r, struct rv_str value)
{
    struct rv_str rest = value, one = RV_STR_NONE;
    bool chunked = false, others = false;
    if (r->has_encoding)
        return reader_refuse(r, 400, "Transfer-Encoding is given twice");
    while (grammar_element(&rest, &one)) {
        if (one.len == 0 || chunked)
            return reader_refuse(r, 400,
                                 "Transfer-Encoding is empty, or its last coding is not chunked");
        chunked = grammar_same(one, "chunked");
        others = others || !chunked;
    }
    if (others)
        return reader_refuse(r, 501, "the only supported Transfer-Encoding is chunked");
    r->has_encoding = true;
    r->request.chunked = true;
    return true;
}

static bool connection_read(struct rv_http_reader *r, struct rv_str value)
{
    struct rv_str rest = value, one;
    while (grammar_element(&rest, &one)) {
        if (one.len > 0 && !grammar_all(one, GRAMMAR_TOKEN))
            return reader_refuse(r, 400, "Connection is not a list of names");
        r->request.close = r->request.close || grammar_same(one, "close");
    }
    return true;
}

static bool host_read(struct rv_http_reader *r, const struct rv_http_field *field)
{
    if (r->host.name_len != 0)
        return reader_refuse(r, 400, "Host is given twice");
    if (!grammar_authority(text_at(r, field->value_at, field->value_len)))
        return reader_refuse(r, 400, "Host is not a host name or address, with or without a port");
    r->host = *field;
    return true;
}

static bool expect_read(struct rv_http_reader *r, struct rv_str value)
{
    if (!grammar_same(value, "100-continue"))
        return reader_refuse(r, 417, "the only supported value of Expect is 100-continue");
    r->request.expects = true;
    return true;
}

/* What frames the request is read at once, whatever comes after it. */
static bool framing_read(struct rv_http_reader *r, const struct rv_http_field *field)
{
    struct rv_str name = text_at(r, field->name_at, field->name_len);
    struct rv_str value = text_at(r, field->value_at, field->value_len);
    switch (name.len) { /* no two of them are of one length */
    case 4:
        return !grammar_same(name, "host") || host_read(r, field);
    case 6:
        return !grammar_same(name, "expect") || expect_read(r, value);
    case 10:
        return !grammar_same(name, "connection") || connection_read(r, value);
    case 14:
        return !grammar_same(name, "content-length") || length_read(r, value);
    case 17:
        return !grammar_same(name, "transfer-encoding") || encoding_read(r, value);
    }
    return true;
}

static bool head_end(struct rv_http_reader *r)
{
    struct rv_http_request *request = &r->request;
    bool hosted = r->host.name_len != 0;
    if (!hosted && request->minor > 0)
        return reader_refuse(r, 400, "Host is missing");
    if (r->has_authority && hosted &&
        !grammar_alike(text_at(r, r->host.value_at, r->host.value_len),
                       text_at(r, r->authority.value_at, r->authority.value_len)))
        return reader_refuse(r, 400, "the URL and the header Host specify different hosts");
    if (r->has_encoding && (r->has_length || request->minor == 0))
        return reader_refuse(
            r, 400,
            "Transfer-Encoding is given together with Content-Length, or in an HTTP/1.0 request");
    if (request->length > r->body_max)
        return reader_refuse(r, 413, READER_BODY_LARGE);
    request->expects = request->expects && request->minor > 0 &&
                       (request->chunked || request->length > 0);
    r->state = READER_HEAD_DONE;
    return true;
}

bool head_field(struct rv_http_reader *r, struct rv_str line)
{
    rv_assert(r->state == READER_FIELD);
    rv_assert(r->fields_count <= RV_HTTP_FIELDS_MAX);
    if (line.len == 0)
        return head_end(r);
    if (r->fields_count == RV_HTTP_FIELDS_MAX)
        return reader_refuse(r, 431, "the request has more than 100 headers");
    struct rv_http_field *field = &r->fields[r->fields_count];
    if (!head_field_split(r, line, field) || !framing_read(r, field))
        return false;
    r->fields_count++;
    return true;
}

void head_give(struct rv_http_reader *r)
{
    struct rv_http_request *request = &r->request;
    const struct rv_http_field *host = r->has_authority ? &r->authority : &r->host;
    rv_assert(request->length >= 0);
    rv_assert(request->length <= r->body_max);
    request->method = text_at(r, 0, r->method_len);
    request->target = text_at(r, r->target_at, r->target_len);
    request->host = host->value_len ? text_at(r, host->value_at, host->value_len) : RV_STR_NONE;
    request->fields = r->fields;
    request->fields_count = r->fields_count;
    request->at = r->head.at;
    r->line_at = r->head.len;
    r->rest = (uint64_t)request->length;
    r->state = request->chunked      ? READER_CHUNK_LINE
               : request->length > 0 ? READER_BODY
                                     : READER_END;
}

struct rv_str rv_http_field(const struct rv_http_request *request, const char *name,
                            size_t *ret_count)
{
    struct rv_str found = RV_STR_NONE;
    size_t count = 0, len = strlen(name);
    for (size_t i = 0; i < request->fields_count; i++) {
        const struct rv_http_field *field = &request->fields[i];
        struct rv_str at = {request->at + field->name_at, field->name_len};
        if (field->name_len != len || !grammar_same(at, name))
            continue;
        if (count++ == 0)
            found = (struct rv_str){request->at + field->value_at, field->value_len};
    }
    if (ret_count != NULL)
        *ret_count = count;
    return found;
}

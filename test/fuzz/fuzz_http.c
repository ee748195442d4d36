/* Whatever comes, and wherever it is cut: the same events, within the limits. The first byte says
 * how long the pieces are. */
#include "http/http.h"

#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 4096, HEAD_ROOM_MAX = 32 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* What was told, in few bytes; a body counts whatever its pieces are. */
struct told {
    uint64_t sum;
    uint64_t body;
    int64_t body_bytes;
    uint64_t events;
};

static void mix(uint64_t *sum, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++)
        *sum = (*sum ^ at[i]) * UINT64_C(0x100000001b3);
}

static void head_check(struct told *told, const struct rv_http_request *request)
{
    must(request->method.len > 0 && request->method.len <= RV_HTTP_METHOD_BYTES_MAX);
    must(request->target.len > 0 && request->target.len <= RV_HTTP_TARGET_BYTES_MAX);
    must(request->target.at[0] == '/' || rv_str_is(request->target, "*"));
    must(request->length >= 0 && request->length <= BODY_MAX);
    must(!request->chunked || (request->length == 0 && request->minor == 1));
    must(request->host.len > 0 || request->minor == 0);
    must(request->minor == 1 || request->close);
    must(request->fields_count <= RV_HTTP_FIELDS_MAX);
    mix(&told->sum, request->method.at, request->method.len);
    mix(&told->sum, request->target.at, request->target.len);
    mix(&told->sum, &request->length, sizeof request->length);
    for (size_t i = 0; i < request->fields_count; i++) {
        const struct rv_http_field *field = &request->fields[i];
        must(field->name_len > 0);
        mix(&told->sum, request->at + field->name_at, field->name_len);
        mix(&told->sum, request->at + field->value_at, field->value_len);
        for (size_t c = 0; c < field->value_len; c++)
            must(strchr("\r\n", request->at[field->value_at + c]) == NULL);
    }
    told->body = UINT64_C(0xcbf29ce484222325);
    told->body_bytes = 0;
}

static bool feed(struct rv_http_reader *reader, struct told *told, struct rv_str piece)
{
    for (;;) {
        size_t taken = 0;
        enum rv_http_event event = rv_http_reader_feed(reader, piece, &taken);
        must(taken <= piece.len && reader->head.room <= HEAD_ROOM_MAX);
        piece = (struct rv_str){piece.at + taken, piece.len - taken};
        if (event == RV_HTTP_MORE)
            return true;
        if (event == RV_HTTP_HEAD)
            head_check(told, &reader->request);
        if (event == RV_HTTP_BODY) {
            told->body_bytes += (int64_t)reader->piece.len;
            mix(&told->body, reader->piece.at, reader->piece.len);
            must(told->body_bytes <= BODY_MAX);
            continue;
        }
        told->events++;
        mix(&told->sum, &event, sizeof event);
        if (event == RV_HTTP_END) {
            mix(&told->sum, &told->body, sizeof told->body);
            rv_http_reader_next(reader);
        }
        if (event == RV_HTTP_REFUSED) {
            must(reader->refusal.status >= 400 && reader->refusal.detail != NULL);
            mix(&told->sum, &reader->refusal.status, sizeof reader->refusal.status);
            return false;
        }
    }
}

/* From memory of its own, so that a read beyond a piece is seen. */
static struct told read_in_pieces(struct rv_str input, size_t piece_len)
{
    struct rv_http_reader reader;
    struct told told = {.sum = 1};
    rv_http_reader_init(&reader, BODY_MAX);
    bool goes_on = true;
    for (size_t at = 0; at < input.len && goes_on; at += piece_len) {
        size_t len = input.len - at < piece_len ? input.len - at : piece_len;
        char *copy = malloc(len);
        must(copy != NULL);
        memcpy(copy, input.at + at, len);
        goes_on = feed(&reader, &told, (struct rv_str){copy, len});
        free(copy);
    }
    rv_http_reader_done(&reader);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct rv_str input = {(const char *)data + 1, size - 1};
    struct told whole = read_in_pieces(input, input.len);
    struct told cut = read_in_pieces(input, (size_t)data[0] + 1);
    must(whole.sum == cut.sum && whole.events == cut.events);
    return 0;
}

#include "observe/span.h"

#include <stdlib.h>

static const size_t texts[] = {
    offsetof(struct rv_span, workflow),   offsetof(struct rv_span, reference),
    offsetof(struct rv_span, iteration),  offsetof(struct rv_span, agent),
    offsetof(struct rv_span, instance),   offsetof(struct rv_span, correlation),
    offsetof(struct rv_span, tracestate), offsetof(struct rv_span, error),
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

size_t rv_span_bytes(const struct rv_span *span)
{
    size_t bytes = sizeof *span;
    for (size_t i = 0; i < TEXTS; i++) {
        const struct rv_str *text = (const void *)((const char *)span + texts[i]);
        bytes += text->len;
    }
    return bytes;
}

struct rv_span *rv_span_copy(const struct rv_span *span)
{
    struct rv_span *copy = malloc(rv_span_bytes(span));
    if (copy == NULL)
        return NULL;
    *copy = *span;
    char *at = (char *)(copy + 1);
    for (size_t i = 0; i < TEXTS; i++) {
        struct rv_str *text = (void *)((char *)copy + texts[i]);
        if (text->len > 0)
            memcpy(at, text->at, text->len);
        if (text->at != NULL)
            text->at = at;
        at += text->len;
    }
    return copy;
}

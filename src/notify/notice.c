#include "notify/notice.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS = 4 }; /* each with a NUL */

static struct rv_str text_put(char **at, struct rv_str text)
{
    struct rv_str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.at, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

struct rv_notice *rv_notice_copy(const struct rv_notice *notice)
{
    size_t bytes = notice->url.len + notice->destination.len + notice->body.len +
                   notice->traceparent.len + TEXTS;
    struct rv_notice *copy = malloc(sizeof *copy + bytes);
    if (copy == NULL)
        return NULL;
    char *at = (char *)(copy + 1);
    *copy = (struct rv_notice){.task = notice->task, .number = notice->number};
    copy->url = text_put(&at, notice->url);
    copy->destination = text_put(&at, notice->destination);
    copy->body = text_put(&at, notice->body);
    copy->traceparent = text_put(&at, notice->traceparent);
    rv_assert(at == (char *)(copy + 1) + bytes);
    return copy;
}

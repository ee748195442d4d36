#include "notify/notice.h"

#include <stdlib.h>
#include <string.h>

static struct rv_str text_put(char **at, struct rv_str text)
{
    struct rv_str copy = {*at, text.len};
    if (text.len > 0)
        memcpy(*at, text.at, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

struct rv_notice *rv_notice_new(struct rv_task_id task, uint32_t number, struct rv_str url,
                                struct rv_str destination, struct rv_str body)
{
    struct rv_notice *notice = malloc(sizeof *notice + url.len + destination.len + body.len + 3);
    if (notice == NULL)
        return NULL;
    char *at = (char *)(notice + 1);
    *notice = (struct rv_notice){.task = task, .number = number};
    notice->url = text_put(&at, url);
    notice->destination = text_put(&at, destination);
    notice->body = text_put(&at, body);
    return notice;
}

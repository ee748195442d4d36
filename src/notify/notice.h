/* notice.h - one message on its way to a webhook, and what came of it. */
#ifndef RV_NOTIFY_NOTICE_H
#define RV_NOTIFY_NOTICE_H

#include "base/id.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* In one block, to be freed with free. */
struct rv_notice {
    struct rv_task_id task;
    uint32_t number;
    struct rv_str url;
    struct rv_str destination; /* the URL's scheme, host and port */
    struct rv_str body;
    struct rv_str traceparent; /* of the body; absent: it has none */
    struct rv_notice *next;    /* link of whoever owns it at the time */
};

/* With its texts; NULL: no memory. */
struct rv_notice *rv_notice_copy(const struct rv_notice *notice);

/* What a sender has to tell of it. Exactly once for each, or it is taken for lost after a while. */
struct rv_notice_result {
    struct rv_task_id task;
    uint32_t number;
    bool taken;             /* the webhook answered with 2xx */
    bool gone;              /* ... with 410: it wants no more of them */
    bool alive;             /* ... with anything that says that the destination as such works */
    bool unsent;            /* it never left, which tells nothing of the destination */
    int64_t retry_after_ms; /* that the webhook asked for; 0: nothing */
    struct rv_str why;      /* not taken: for people; holds no path and no query */
};

#endif

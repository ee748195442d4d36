/* webhook.h - sends messages to webhooks through the outbound room, and tells what came of them. */
#ifndef RV_NOTIFY_WEBHOOK_WEBHOOK_H
#define RV_NOTIFY_WEBHOOK_WEBHOOK_H

#include "base/err.h"
#include "base/os/mailbox.h"
#include "notify/webhook/sign.h"
#include "outbound/outbound.h"
#include "scheduler/scheduler.h"

/* The scheduler's thread hands notices over, the outbound thread hears the answers and puts them
 * into the scheduler's mailbox as calls DELIVERED. Nothing is kept in between: what is lost is sent
 * again from the rows. */
struct rv_webhook {
    struct rv_outbound *outbound;     /* borrowed */
    const struct rv_egress *egress;   /* borrowed */
    const struct rv_secrets *secrets; /* borrowed; NULL: there are none */
    struct rv_mailbox *mailbox;       /* borrowed */
};

/* What the scheduler is given; `webhook` must stay where it is. */
struct rv_scheduler_outlet rv_webhook_outlet(struct rv_webhook *webhook);

#endif

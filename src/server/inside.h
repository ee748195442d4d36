/* inside.h - a client of the API that lives in the server: the same requests, without a socket. */
#ifndef RV_SERVER_INSIDE_H
#define RV_SERVER_INSIDE_H

#include "agent/http/http.h"
#include "base/os/mailbox.h"

#include <stdatomic.h>

struct rv_inside;

/* `mailbox` is the scheduler's. NULL: no memory. */
struct rv_inside *rv_inside_new(struct rv_mailbox *mailbox);
/* When nothing of it is under way. */
void rv_inside_free(struct rv_inside *inside);
/* Requests go through the API's own table: parsed, sent to the scheduler, rendered. For one thread.
 */
struct rv_http_door rv_inside_door(struct rv_inside *inside);

#endif

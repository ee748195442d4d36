/* events_priv.h - a reader of server-sent events, whose bytes come in pieces cut anywhere. */
#ifndef RV_CLI_EVENTS_PRIV_H
#define RV_CLI_EVENTS_PRIV_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* The format is that of https://html.spec.whatwg.org, Server-sent events. Only whole events are
 * given: one whose end does not come is none, and comes again when the stream is asked again. */
struct cli_events {
    /* Gets an event: its data, the lines of which are joined by newlines. False: it is enough. */
    bool (*each)(struct rv_str data, void *user);
    void *user;
    struct rv_buf line;
    struct rv_buf data;
    bool has_data;
    bool after_cr; /* a newline that comes now belongs to the line before */
};

/* An event of more than `bytes_max` is not read. */
void cli_events_init(struct cli_events *events, size_t bytes_max);
void cli_events_done(struct cli_events *events);
/* The stream begins anew: what was not whole is forgotten. */
void cli_events_restart(struct cli_events *events);
/* False when `each` has enough, or an event is too large: the rest of the bytes is not read. */
bool cli_events_take(struct cli_events *events, const char *bytes, size_t count);

#endif

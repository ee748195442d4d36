#include "cli/events_priv.h"

#include <string.h>

void cli_events_init(struct cli_events *events, size_t bytes_max)
{
    rv_buf_init(&events->line, bytes_max);
    rv_buf_init(&events->data, bytes_max);
    events->has_data = events->after_cr = false;
}

void cli_events_done(struct cli_events *events)
{
    rv_buf_done(&events->line);
    rv_buf_done(&events->data);
}

void cli_events_restart(struct cli_events *events)
{
    rv_buf_reset(&events->line);
    rv_buf_reset(&events->data);
    events->has_data = events->after_cr = false;
}

/* "data: text" or "data:text"; all other fields and comments say nothing that is needed here. */
static void data_add(struct cli_events *events, struct rv_str line)
{
    static const char field[] = "data:";
    size_t head = sizeof field - 1;
    if (line.len < head || memcmp(line.at, field, head) != 0)
        return;
    if (line.len > head && line.at[head] == ' ')
        head++;
    if (events->has_data)
        rv_buf_add_char(&events->data, '\n');
    rv_buf_add(&events->data, line.at + head, line.len - head);
    events->has_data = true;
}

/* An empty line ends the event. */
static bool line_end(struct cli_events *events)
{
    bool more = true;
    if (events->line.len > 0) {
        data_add(events, rv_buf_str(&events->line));
    } else if (events->has_data) {
        more = events->each(rv_buf_str(&events->data), events->user);
        rv_buf_reset(&events->data);
        events->has_data = false;
    }
    rv_buf_reset(&events->line);
    return more;
}

bool cli_events_take(struct cli_events *events, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool second = bytes[i] == '\n' && events->after_cr;
        events->after_cr = bytes[i] == '\r';
        if (second)
            continue;
        if (bytes[i] != '\n' && bytes[i] != '\r')
            rv_buf_add_char(&events->line, bytes[i]);
        else if (events->line.failed == RV_OK && !line_end(events))
            return false;
        if (events->line.failed != RV_OK || events->data.failed != RV_OK)
            return false;
    }
    return true;
}

/* otlp.h - spans as the OpenTelemetry protocol has them in JSON; pure. */
#ifndef RV_OBSERVE_OTLP_H
#define RV_OBSERVE_OTLP_H

#include "base/arena.h"
#include "base/buf.h"
#include "observe/span.h"

#include <stddef.h>

/* Appends one ExportTraceServiceRequest (opentelemetry-proto 1.3, JSON encoding). `instance` names
 * this process. The arena is for the errors, and is reset between them. */
void rv_otlp_write(struct rv_buf *buf, struct rv_arena *arena, struct rv_str instance,
                   struct rv_span *const *spans, size_t count);

#endif

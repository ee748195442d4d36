/* export.h - spans on their way to an OpenTelemetry collector: bounded, and in nobody's way. */
#ifndef RV_OBSERVE_EXPORT_EXPORT_H
#define RV_OBSERVE_EXPORT_EXPORT_H

#include "base/err.h"
#include "base/str.h"
#include "observe/span.h"

#include <stddef.h>
#include <stdint.h>

enum { RV_EXPORT_WHY_BYTES = 1024 };

/* Spans wait in memory, at most RV_EXPORT_QUEUE_BYTES_MAX; one that finds no room is dropped and
 * counted. A thread of its own writes them as OTLP/JSON and sends a batch at a time through an
 * outbound room of its own, whose list has the collector's origin and nothing else: workflows may
 * not call it, and a collector that hangs holds up no other call. A batch that the collector does
 * not take for now is sent again a few times, then dropped and counted. */
enum { RV_EXPORT_QUEUE_BYTES_MAX = 16 * 1024 * 1024 };

struct rv_export;

struct rv_export_counts {
    uint64_t sent;    /* spans that the collector took */
    uint64_t dropped; /* no room, or not taken */
    uint64_t queued_bytes;
};

/* `url`: the collector's base, "http://127.0.0.1:4318"; spans go to `url`/v1/traces. INVALID with
 * the reason in ret_why; MEMORY. `instance` is copied. */
RV_CHECK enum rv_err rv_export_open(struct rv_str url, struct rv_str instance,
                                    struct rv_export **ret_export,
                                    char ret_why[static RV_EXPORT_WHY_BYTES]);
/* From any thread; never waits. `self` is the export (scheduler.h, rv_scheduler_spans). */
void rv_export_take(void *self, const struct rv_span *span);
/* From any thread. */
struct rv_export_counts rv_export_count(struct rv_export *export);
/* After the last take: what waits gets RV_EXPORT_STOP_MS to leave. NULL is nothing. */
enum { RV_EXPORT_STOP_MS = 1000 };
void rv_export_close(struct rv_export *export);

#endif

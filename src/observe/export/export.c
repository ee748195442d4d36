#include "observe/export/export.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/mailbox.h"
#include "base/os/thread.h"
#include "base/time.h"
#include "observe/otlp.h"
#include "outbound/outbound.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RV_VERSION
#error "RV_VERSION is not defined: build with meson"
#endif

enum {
    BATCH_SPANS = 512,
    BATCH_WAIT_MS = 500, /* for more, once there is one */
    BODY_BYTES_MAX = 32 * 1024 * 1024,
    TIMEOUT_MS = 10 * RV_SECOND_MS,
    TRIES_MAX = 4,
    PAUSE_MS = RV_SECOND_MS, /* before the second try; doubles */
    PAUSE_MS_MAX = 30 * RV_SECOND_MS,
    ANSWER_BYTES_MAX = 64 * 1024,
    CONNECTIONS = 2,
    INSTANCE_BYTES = 64,
    WHY_BYTES = 256
};

/* What the thread hears while it waits: the answer to what it sent, or that it shall stop. */
struct word {
    struct word *next;
};

struct rv_export {
    char *url; /* owned: with the path */
    char instance[INSTANCE_BYTES];
    struct rv_egress *egress; /* owned */
    struct rv_outbound *outbound;
    struct rv_mailbox queue; /* of struct rv_span, owned */
    struct rv_mailbox words;
    struct rv_thread thread;
    atomic_size_t queued_bytes;
    atomic_ullong sent;
    atomic_ullong dropped;

    /* The thread's. */
    struct rv_span *batch[BATCH_SPANS];
    size_t count;
    struct rv_buf body;
    struct rv_arena arena;
    struct word stop;
    bool stopping;
    int64_t stop_at; /* when stopping: then all is over */
    bool failing;    /* was told to the log */

    /* One request is under way at a time; the answer is filled on the outbound thread. */
    struct word answer;
    bool taken;
    bool again; /* it may be taken later */
    int64_t retry_after_ms;
    char why[WHY_BYTES];
};

/* ---- from other threads ---- */

void rv_export_take(void *self, const struct rv_span *span)
{
    struct rv_export *export = self;
    size_t bytes = rv_span_bytes(span);
    struct rv_span *copy = NULL;
    if (atomic_load(&export->queued_bytes) + bytes <= RV_EXPORT_QUEUE_BYTES_MAX)
        copy = rv_span_copy(span);
    if (copy == NULL) {
        atomic_fetch_add(&export->dropped, 1);
        return;
    }
    atomic_fetch_add(&export->queued_bytes, bytes);
    if (rv_mailbox_put(&export->queue, copy))
        return;
    atomic_fetch_sub(&export->queued_bytes, bytes);
    atomic_fetch_add(&export->dropped, 1);
    free(copy);
}

struct rv_export_counts rv_export_count(struct rv_export *export)
{
    return (struct rv_export_counts){.sent = atomic_load(&export->sent),
                                     .dropped = atomic_load(&export->dropped),
                                     .queued_bytes = atomic_load(&export->queued_bytes)};
}

static bool status_passes(int status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

/* On the outbound thread. */
static void export_answered(void *user, const struct rv_outbound_answer *answer)
{
    struct rv_export *export = user;
    bool answered = answer->outcome == RV_OUTCOME_ANSWERED;
    export->taken = answered && answer->status >= 200 && answer->status < 300;
    export->again = !answered || status_passes(answer->status);
    export->retry_after_ms = answered ? answer->retry_after_ms : -1;
    if (answered)
        snprintf(export->why, sizeof export->why, "the collector responded with status %d",
                 answer->status);
    else
        snprintf(export->why, sizeof export->why, "%.*s", RV_STR_FMT(answer->why));
    bool put = rv_mailbox_put(&export->words, &export->answer);
    (void)put; /* closed only after the thread has ended, which waits for this */
}

/* ---- the thread ---- */

static int64_t stop_left(const struct rv_export *export)
{
    int64_t left = export->stop_at - rv_clock_mono_ms();
    return left > 0 ? left : 0;
}

/* False: the time is over without a word. */
static bool word_await(struct rv_export *export, int64_t wait_ms, struct word **ret_word)
{
    void *word;
    if (rv_mailbox_take(&export->words, &word, 1, wait_ms) == 0)
        return false;
    *ret_word = word;
    if (word == &export->stop) {
        export->stopping = true;
        export->stop_at = rv_clock_mono_ms() + RV_EXPORT_STOP_MS;
    }
    return true;
}

/* Until the one request that is under way is over; a stop leaves it little time. */
static void answer_await(struct rv_export *export, uint64_t id)
{
    struct word *word = NULL;
    bool cancelled = false;
    while (word != &export->answer) {
        int64_t wait_ms = export->stopping && !cancelled ? stop_left(export) : -1;
        if (word_await(export, wait_ms, &word) || cancelled)
            continue;
        cancelled = rv_outbound_cancel(export->outbound, id) == RV_OK;
        if (!cancelled)
            export->stop_at = rv_clock_mono_ms() + TIMEOUT_MS; /* its own time ends it */
    }
}

static bool batch_post(struct rv_export *export)
{
    const struct rv_outbound_header headers[] = {
        {RV_STR("Content-Type"), RV_STR("application/json")},
        {RV_STR("User-Agent"), RV_STR("reeve/" RV_VERSION)},
    };
    struct rv_outbound_request request = {
        .method = RV_STR("POST"),
        .url = rv_str_of(export->url),
        .headers = headers,
        .headers_count = sizeof headers / sizeof headers[0],
        .body = rv_buf_str(&export->body),
        .timeout_ms = TIMEOUT_MS,
        .answer_bytes_max = ANSWER_BYTES_MAX,
        .done = export_answered,
        .user = export,
    };
    uint64_t id;
    enum rv_err err = rv_outbound_submit(export->outbound, &request, &id);
    if (err == RV_OK) {
        answer_await(export, id);
        return export->taken;
    }
    snprintf(export->why, sizeof export->why, "%s", rv_err_text(err));
    export->again = true;
    export->retry_after_ms = -1;
    return false;
}

static int64_t pause_ms(const struct rv_export *export, unsigned tries)
{
    rv_assert(tries < TRIES_MAX);
    int64_t pause = (int64_t)PAUSE_MS << tries;
    if (export->retry_after_ms > pause)
        pause = export->retry_after_ms;
    return pause < PAUSE_MS_MAX ? pause : PAUSE_MS_MAX;
}

static bool batch_send(struct rv_export *export)
{
    rv_assert(export->count > 0);
    rv_assert(export->count <= BATCH_SPANS);
    rv_buf_reset(&export->body);
    rv_otlp_write(&export->body, &export->arena, rv_str_of(export->instance), export->batch,
                  export->count);
    if (export->body.failed != RV_OK) {
        snprintf(export->why, sizeof export->why, "%s", rv_err_text(export->body.failed));
        return false;
    }
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        struct word *word;
        if (export->stopping && stop_left(export) == 0)
            return false;
        if (batch_post(export))
            return true;
        if (!export->again || export->stopping)
            return false;
        (void)word_await(export, pause_ms(export, tries), &word); /* or a stop: one more try */
    }
    return false;
}

/* Told when it turns, not with each batch. */
static void turn_log(struct rv_export *export, bool failing)
{
    if (failing == export->failing)
        return;
    export->failing = failing;
    if (failing)
        rv_log(RV_LOG_WARNING, "otlp", RV_LOG_STR("state", RV_STR("failing")),
               RV_LOG_STR("why", rv_str_of(export->why)));
    else
        rv_log(RV_LOG_INFO, "otlp", RV_LOG_STR("state", RV_STR("works")));
}

static void batch_end(struct rv_export *export, bool taken)
{
    atomic_fetch_add(taken ? &export->sent : &export->dropped, export->count);
    for (size_t i = 0; i < export->count; i++) {
        size_t bytes = rv_span_bytes(export->batch[i]);
        rv_assert(atomic_load(&export->queued_bytes) >= bytes);
        atomic_fetch_sub(&export->queued_bytes, bytes);
        free(export->batch[i]);
    }
    export->count = 0;
}

/* False: the queue is closed and empty. */
static bool batch_gather(struct rv_export *export)
{
    int64_t until = 0;
    while (export->count < BATCH_SPANS) {
        int64_t wait_ms = export->count == 0 ? -1 : until - rv_clock_mono_ms();
        if (export->count > 0 && wait_ms <= 0)
            break;
        void *items[BATCH_SPANS];
        size_t taken = rv_mailbox_take(&export->queue, items, BATCH_SPANS - export->count, wait_ms);
        if (taken == 0)
            break;
        rv_assert(taken <= BATCH_SPANS - export->count);
        if (export->count == 0)
            until = rv_clock_mono_ms() + BATCH_WAIT_MS;
        for (size_t i = 0; i < taken; i++)
            export->batch[export->count++] = items[i];
    }
    return export->count > 0;
}

static void export_run(void *self)
{
    struct rv_export *export = self;
    while (batch_gather(export)) {
        bool taken = batch_send(export);
        turn_log(export, !taken);
        batch_end(export, taken);
    }
}

/* ---- open and close ---- */

/* The one origin to which it may go, with its port written: it may be inside (egress.h). */
static enum rv_err origin_allow(struct rv_export *export, struct rv_str url,
                                char ret_why[static RV_EXPORT_WHY_BYTES])
{
    struct rv_target target = {.url = NULL};
    char reason[RV_TARGET_WHY_BYTES] = "", origin[RV_EXPORT_WHY_BYTES];
    char why[RV_EGRESS_WHY_BYTES] = "";
    enum rv_err err = rv_target_parse(&target, url, reason);
    if (err == RV_OK) {
        snprintf(origin, sizeof origin, "%s://%s:%u", target.scheme, target.host, target.port);
        err = rv_egress_add(export->egress, rv_str_of(origin), why);
    }
    rv_target_done(&target);
    snprintf(ret_why, RV_EXPORT_WHY_BYTES, "%s",
             reason[0] != '\0' ? reason
             : why[0] != '\0'  ? why
                               : rv_err_text(err));
    return err;
}

static char *url_make(struct rv_str url)
{
    static const char path[] = "/v1/traces";
    while (url.len > 0 && url.at[url.len - 1] == '/')
        url.len--;
    char *made = malloc(url.len + sizeof path);
    if (made == NULL)
        return NULL;
    memcpy(made, url.at, url.len);
    memcpy(made + url.len, path, sizeof path);
    return made;
}

static void export_free(struct rv_export *export)
{
    rv_outbound_close(export->outbound);
    rv_egress_free(export->egress);
    rv_mailbox_done(&export->queue);
    rv_mailbox_done(&export->words);
    rv_buf_done(&export->body);
    rv_arena_done(&export->arena);
    free(export->url);
    free(export);
}

enum rv_err rv_export_open(struct rv_str url, struct rv_str instance, struct rv_export **ret_export,
                           char ret_why[static RV_EXPORT_WHY_BYTES])
{
    struct rv_export *export = calloc(1, sizeof *export);
    if (export == NULL)
        return RV_ERR_MEMORY;
    rv_mailbox_init(&export->queue, offsetof(struct rv_span, next));
    rv_mailbox_init(&export->words, offsetof(struct word, next));
    rv_buf_init(&export->body, BODY_BYTES_MAX);
    rv_arena_init(&export->arena, 0);
    snprintf(export->instance, sizeof export->instance, "%.*s", RV_STR_FMT(instance));
    export->egress = rv_egress_new();
    export->url = url_make(url);
    enum rv_err err = RV_ERR_MEMORY;
    if (export->egress != NULL && export->url != NULL)
        err = origin_allow(export, url, ret_why);
    struct rv_outbound_options options = {.egress = export->egress, .connections_max = CONNECTIONS};
    if (err == RV_OK)
        err = rv_outbound_open(&options, &export->outbound);
    if (err == RV_OK)
        err = rv_thread_start(&export->thread, "otlp", export_run, export);
    if (err != RV_OK) {
        export_free(export);
        return err;
    }
    *ret_export = export;
    return RV_OK;
}

void rv_export_close(struct rv_export *export)
{
    if (export == NULL)
        return;
    bool put = rv_mailbox_put(&export->words, &export->stop);
    (void)put; /* it is open until the thread has ended */
    rv_mailbox_close(&export->queue);
    rv_thread_join(&export->thread);
    void *left;
    while (rv_mailbox_take(&export->words, &left, 1, 0) > 0)
        ; /* a stop that nobody waited for */
    export_free(export);
}

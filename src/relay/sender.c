#include "relay/sender.h"

#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/random.h"
#include "client/jitter.h"

#include <stdio.h>

enum {
    CALL_TIMEOUT_MS = 10000,
    PAUSE_BASE_MS = 50,
    PAUSE_CAP_MS = 2000,
    BODY_BYTES_MAX = 8 * 1024 * 1024 /* of the server; 500 rows of 4 MiB and one more fit in */
};

/* ---- one call ---- */

static void why_set(struct rv_relay_batch *batch, const char *why)
{
    snprintf(batch->why, sizeof batch->why, "%s", why);
}

/* Sends the body that is written. What it meant, with the reason if the rows are to go again. */
static enum rv_rows_answer call_make(struct rv_sender *sender, struct rv_relay_batch *batch,
                                     size_t count)
{
    struct rv_call call = {.path = "/v1/tasks",
                           .body = sender->body.at,
                           .body_bytes = sender->body.len,
                           .repeatable = 1};
    struct rv_answer answer;
    rv_assert(count > 0);
    rv_assert(count <= batch->count);
    int result = rv_client_request(sender->client, &call, &answer);
    enum rv_rows_answer meant = RV_ROWS_LATER;
    why_set(batch, result == RV_RESULT_OK ? "the server does not accept tasks at present"
                                          : rv_client_error(sender->client));
    if (result == RV_RESULT_OK || result == RV_RESULT_REFUSED)
        meant = rv_rows_read(&batch->arena, &sender->scratch, batch->rows, sender->indexes, count,
                             answer.status, (struct rv_str){answer.body, answer.body_bytes});
    rv_arena_reset(&sender->scratch);
    if (meant == RV_ROWS_STRANGE)
        snprintf(batch->why, sizeof batch->why,
                 "%s answers, but it is not a Reeve server; set REEVE_URL to the address that "
                 "\"reeve serve\" prints",
                 rv_client_url(sender->client));
    rv_answer_free(&answer);
    return meant;
}

static size_t waiting_count(const struct rv_relay_batch *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++)
        count += batch->rows[i].verdict == RV_ROW_WAITS;
    return count;
}

/* ---- a server that is away ---- */

static void away_tell(struct rv_sender *sender, const struct rv_relay_batch *batch)
{
    if (sender->away)
        return;
    sender->away = true;
    rv_log(RV_LOG_WARNING, "relay-waits-for-server",
           RV_LOG_STR("url", rv_str_of(rv_client_url(sender->client))),
           RV_LOG_STR("why", rv_str_of(batch->why)));
}

static void back_tell(struct rv_sender *sender)
{
    if (!sender->away)
        return;
    sender->away = false;
    rv_log(RV_LOG_INFO, "relay-goes-on",
           RV_LOG_STR("url", rv_str_of(rv_client_url(sender->client))));
}

/* False: the batch is given up. */
static bool pause_make(struct rv_sender *sender, struct rv_relay_batch *batch, unsigned failures,
                       int64_t begun_at, enum rv_err err)
{
    int64_t now = rv_clock_mono_ms();
    rv_assert(err == RV_ERR_BUSY || err == RV_ERR_REFUSED);
    batch->err = err;
    if (sender->patience_ms > 0 && (err == RV_ERR_REFUSED || now - begun_at >= sender->patience_ms))
        return false;
    away_tell(sender, batch);
    void *nothing;
    int64_t pause_ms = 1 + rv_jitter_ms(&sender->prng, PAUSE_BASE_MS, PAUSE_CAP_MS, failures);
    (void)rv_mailbox_take(&sender->pause, &nothing, 1, pause_ms);
    return true;
}

/* ---- a batch ---- */

static void ages_check(struct rv_relay_batch *batch)
{
    int64_t now = rv_clock_wall_ms();
    for (size_t i = 0; i < batch->count; i++)
        rv_row_check_age(&batch->arena, &batch->rows[i], now);
}

/* Writes and makes one call with up to `*most` rows that wait. A call that is refused as a whole
 * makes the next one half as large, until the row stands alone that is to blame. */
static enum rv_rows_answer batch_try(struct rv_sender *sender, struct rv_relay_batch *batch,
                                     size_t *most)
{
    size_t count = 0;
    rv_assert(*most >= 1);
    rv_assert(*most <= RV_BATCH_ROWS);
    ages_check(batch);
    enum rv_err err = rv_rows_write(&sender->body, batch->rows, batch->count, *most,
                                    sender->indexes, &count);
    if (err != RV_OK) {
        why_set(batch, rv_err_text(err));
        return RV_ROWS_LATER;
    }
    if (count == 0)
        return RV_ROWS_READ; /* none of them is to be sent any more */
    enum rv_rows_answer meant = call_make(sender, batch, count);
    if (meant == RV_ROWS_HALVE)
        *most = count / 2;
    else if (meant == RV_ROWS_READ)
        *most = *most * 2 > RV_BATCH_ROWS ? RV_BATCH_ROWS : *most * 2;
    return meant;
}

/* Until each row has its verdict. */
static void rows_send(struct rv_sender *sender, struct rv_relay_batch *batch)
{
    int64_t begun_at = rv_clock_mono_ms();
    size_t most = RV_BATCH_ROWS;
    rv_assert(batch->count <= RV_BATCH_ROWS);
    size_t left = waiting_count(batch);
    unsigned failures = 0;
    batch->err = RV_OK;
    while (left > 0 && !atomic_load(&sender->stopped)) {
        enum rv_rows_answer meant = batch_try(sender, batch, &most);
        size_t before = left;
        left = waiting_count(batch);
        rv_assert(left <= before); /* a row gets its verdict once */
        if (left < before) {
            back_tell(sender);
            batch->err = RV_OK;
            failures = 0;
            continue;
        }
        enum rv_err err = meant == RV_ROWS_DENIED ? RV_ERR_REFUSED : RV_ERR_BUSY;
        if (meant != RV_ROWS_HALVE && !pause_make(sender, batch, failures++, begun_at, err))
            return;
    }
}

/* ---- rows that are too old ---- */

static enum rv_rows_answer alert_try(struct rv_sender *sender, struct rv_relay_batch *batch,
                                     const struct rv_row *row)
{
    struct rv_answer answer;
    enum rv_err err = rv_row_alert_write(&sender->body, row, sender->database);
    if (err != RV_OK) {
        why_set(batch, rv_err_text(err));
        return RV_ROWS_LATER;
    }
    struct rv_call call = {.path = "/v1/alerts",
                           .body = sender->body.at,
                           .body_bytes = sender->body.len,
                           .repeatable = 1};
    int result = rv_client_request(sender->client, &call, &answer);
    enum rv_rows_answer meant = RV_ROWS_LATER;
    why_set(batch, rv_client_error(sender->client));
    if (result == RV_RESULT_OK || result == RV_RESULT_REFUSED)
        meant = rv_row_alert_read(answer.status, &err);
    rv_answer_free(&answer);
    if (err != RV_OK)
        rv_log(RV_LOG_ERROR, "relay-alert-refused", RV_LOG_INT("row", row->id),
               RV_LOG_STR("why", rv_str_of(batch->why)));
    return meant;
}

/* False: the server was asked to take the alert for as long as we may. */
static bool alert_raise(struct rv_sender *sender, struct rv_relay_batch *batch,
                        const struct rv_row *row)
{
    int64_t begun_at = rv_clock_mono_ms();
    rv_assert(row->verdict == RV_ROW_OLD);
    for (unsigned failures = 0; !atomic_load(&sender->stopped); failures++) {
        enum rv_rows_answer meant = alert_try(sender, batch, row);
        if (meant == RV_ROWS_READ) {
            back_tell(sender);
            batch->err = RV_OK;
            return true;
        }
        enum rv_err err = meant == RV_ROWS_DENIED ? RV_ERR_REFUSED : RV_ERR_BUSY;
        if (!pause_make(sender, batch, failures, begun_at, err))
            return false;
    }
    return false;
}

/* An operator is called before the row is marked: whoever dies in between calls again, for the same
 * alert. A row for which nobody could be called waits. */
static void alerts_raise(struct rv_sender *sender, struct rv_relay_batch *batch)
{
    bool heard = batch->err == RV_OK;
    for (size_t i = 0; i < batch->count; i++) {
        struct rv_row *row = &batch->rows[i];
        if (row->verdict != RV_ROW_OLD)
            continue;
        heard = heard && alert_raise(sender, batch, row);
        if (!heard)
            row->verdict = RV_ROW_WAITS;
    }
}

static void batch_send(struct rv_sender *sender, struct rv_relay_batch *batch)
{
    rows_send(sender, batch);
    alerts_raise(sender, batch);
}

static void sender_run(void *self)
{
    struct rv_sender *sender = self;
    void *item;
    while (rv_mailbox_take(&sender->in, &item, 1, -1) > 0) {
        batch_send(sender, item);
        bool put = rv_mailbox_put(&sender->out, item);
        if (!put)
            return; /* nobody waits for it any more */
    }
}

/* ---- the thread ---- */

enum rv_err rv_sender_start(struct rv_sender *sender, const char *url, struct rv_str database,
                            int64_t patience_ms)
{
    struct rv_client_options options = {.timeout_ms = CALL_TIMEOUT_MS, .patience_ms = -1};
    *sender = (struct rv_sender){.database = database, .patience_ms = patience_ms};
    sender->client = rv_client_open(url, &options);
    if (sender->client == NULL)
        return RV_ERR_INVALID;
    uint64_t seed;
    rv_random_bytes(&seed, sizeof seed);
    rv_prng_init(&sender->prng, seed);
    rv_buf_init(&sender->body, BODY_BYTES_MAX);
    rv_arena_init(&sender->scratch, 0);
    rv_mailbox_init(&sender->in, offsetof(struct rv_relay_batch, next));
    rv_mailbox_init(&sender->out, offsetof(struct rv_relay_batch, next));
    rv_mailbox_init(&sender->pause, 0);
    enum rv_err err = rv_thread_start(&sender->thread, "reeve-sender", sender_run, sender);
    if (err != RV_OK)
        rv_client_close(sender->client);
    return err;
}

void rv_sender_give(struct rv_sender *sender, struct rv_relay_batch *batch)
{
    rv_assert(batch->count > 0);
    bool put = rv_mailbox_put(&sender->in, batch);
    rv_assert(put);
}

struct rv_relay_batch *rv_sender_take(struct rv_sender *sender, int64_t wait_ms)
{
    void *item;
    return rv_mailbox_take(&sender->out, &item, 1, wait_ms) > 0 ? item : NULL;
}

void rv_sender_stop(struct rv_sender *sender)
{
    atomic_store(&sender->stopped, true);
    rv_mailbox_close(&sender->pause);
}

void rv_sender_end(struct rv_sender *sender)
{
    rv_sender_stop(sender);
    rv_mailbox_close(&sender->in);
    rv_thread_join(&sender->thread);
    rv_mailbox_done(&sender->in);
    rv_mailbox_done(&sender->out);
    rv_mailbox_done(&sender->pause);
    rv_buf_done(&sender->body);
    rv_arena_done(&sender->scratch);
    rv_client_close(sender->client);
}

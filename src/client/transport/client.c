/* The application's side of libreeve: blocking calls that are repeated where that is safe. */
#include "base/os/clock.h"
#include "base/os/random.h"
#include "base/prng.h"
#include "client/jitter.h"
#include "client/submit.h"
#include "client/transport/exchange_priv.h"
#include "reeve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TIMEOUT_MS = 30000,
    PATIENCE_MS = 10000,
    REPEAT_BASE_MS = 50,
    REPEAT_CAP_MS = 2000,
    WAIT_MS = 20000, /* of one long question */
    ASK_BASE_MS = 100,
    ASK_CAP_MS = 1000,
    BATCH_ITEMS_MAX = 500,
    BATCH_BYTES_MAX = 4 * 1024 * 1024, /* a batch is closed above this; one more item still fits */
    BODY_BYTES_MAX = 8 * 1024 * 1024,
    KEY_BYTES = 33 /* 128 bits in hexadecimal, and NUL */
};

struct rv_client {
    char *url;     /* owned */
    char *api_key; /* owned; NULL: none */
    int64_t timeout_ms;
    int64_t patience_ms;
    struct client_exchange exchange;
    struct rv_prng prng;     /* of pauses */
    struct rv_random random; /* of keys */
    struct rv_arena arena;   /* of one call */
    int64_t server_time;     /* of the newest answer; 0: unknown */
    char error[512];
};

const char *rv_version(void)
{
    return "0.1.0";
}

struct rv_client *rv_client_open(const char *url, const struct rv_client_options *options)
{
    struct rv_client_options none = {.api_key = NULL};
    if (options == NULL)
        options = &none;
    struct rv_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return NULL;
    uint64_t seed;
    rv_random_bytes(&seed, sizeof seed);
    rv_prng_init(&client->prng, seed);
    rv_arena_init(&client->arena, 0);
    client->timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS;
    client->patience_ms = options->patience_ms == 0 ? PATIENCE_MS : options->patience_ms;
    client->url = rv_exchange_url(url);
    if (client->url == NULL || !rv_exchange_key(options->api_key, &client->api_key) ||
        rv_exchange_init(&client->exchange) != RV_OK) {
        free(client->api_key);
        free(client->url);
        free(client);
        return NULL;
    }
    return client;
}

void rv_client_close(struct rv_client *client)
{
    if (client == NULL)
        return;
    rv_exchange_done(&client->exchange);
    rv_arena_done(&client->arena);
    free(client->api_key);
    free(client->url);
    free(client);
}

const char *rv_client_error(const struct rv_client *client)
{
    return client->error;
}

int64_t rv_client_server_time(const struct rv_client *client)
{
    return client->server_time;
}

const char *rv_client_url(const struct rv_client *client)
{
    return client->url;
}

static void pause_for(int64_t ms)
{
    struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

/* ---- one exchange ---- */

static bool method_is(const struct exchange_ask *ask, const char *method)
{
    return strcmp(ask->method, method) == 0;
}

/* Twice is the same as once, for its method or because the caller says so. */
static bool is_repeatable(const struct rv_call *call, const struct exchange_ask *ask)
{
    return call->repeatable || method_is(ask, "GET") || method_is(ask, "HEAD") ||
           method_is(ask, "PUT") || method_is(ask, "DELETE");
}

static bool may_repeat(const struct rv_client *client, const struct rv_call *call,
                       const struct exchange_ask *ask, CURLcode code)
{
    if (client->exchange.heard || rv_exchange_distrusted(code))
        return false;
    return is_repeatable(call, ask) || rv_exchange_never_sent(code);
}

/* Milliseconds to pause before the call is made again; negative: it is over. */
static int64_t repeat_pause(struct rv_client *client, const struct rv_call *call,
                            const struct exchange_ask *ask, CURLcode code, unsigned failures,
                            int64_t give_up_at)
{
    bool unanswered = code != CURLE_OK && !client->exchange.stopped;
    bool busy = code == CURLE_OK && rv_exchange_status(&client->exchange) == 503;
    if ((!unanswered && !busy) || !may_repeat(client, call, ask, code))
        return -1;
    int64_t pause_ms = rv_jitter_ms(&client->prng, REPEAT_BASE_MS, REPEAT_CAP_MS, failures);
    if (busy && rv_exchange_retry_after_ms(&client->exchange) > pause_ms)
        pause_ms = rv_exchange_retry_after_ms(&client->exchange);
    return rv_clock_boot_ms() + pause_ms > give_up_at ? -1 : pause_ms;
}

static int answer_take(struct rv_client *client, struct rv_answer *ret_answer)
{
    struct client_exchange *exchange = &client->exchange;
    ret_answer->status = rv_exchange_status(exchange);
    ret_answer->retry_after_ms = rv_exchange_retry_after_ms(exchange);
    const char *type = NULL;
    curl_easy_getinfo(exchange->easy, CURLINFO_CONTENT_TYPE, &type);
    snprintf(ret_answer->content_type, sizeof ret_answer->content_type, "%s", type ? type : "");
    struct rv_str body = rv_buf_str(&exchange->answer);
    ret_answer->body = rv_str_dup(body);
    if (ret_answer->body == NULL) {
        snprintf(client->error, sizeof client->error, "out of memory");
        return RV_RESULT_MEMORY;
    }
    ret_answer->body_bytes = body.len;
    if (ret_answer->status >= 200 && ret_answer->status < 300)
        return RV_RESULT_OK;
    rv_arena_reset(&client->arena);
    struct rv_str why = rv_submit_problem(&client->arena, body);
    snprintf(client->error, sizeof client->error, "the server refused the request (%d): %.*s",
             ret_answer->status, RV_STR_FMT(why));
    return RV_RESULT_REFUSED;
}

static int call_failed(struct rv_client *client, CURLcode code)
{
    snprintf(client->error, sizeof client->error, "no response from %s: %s; %s", client->url,
             rv_exchange_why(&client->exchange, code), rv_exchange_cure(client->url, code));
    return RV_RESULT_UNREACHABLE;
}

/* A call that cannot be made. */
static int call_refused(struct rv_client *client, enum rv_err err)
{
    bool key = client->api_key != NULL && !rv_exchange_header_good(client->api_key);
    snprintf(client->error, sizeof client->error, "%s: %s", client->url,
             key ? "the API key (REEVE_API_KEY) contains a control character, such as a line break"
                 : rv_err_text(err));
    return err == RV_ERR_MEMORY ? RV_RESULT_MEMORY : RV_RESULT_USAGE;
}

int rv_client_request(struct rv_client *client, const struct rv_call *call,
                      struct rv_answer *ret_answer)
{
    *ret_answer = (struct rv_answer){.retry_after_ms = -1};
    client->error[0] = '\0';
    struct exchange_ask ask = {
        .url = client->url,
        .path = call->path,
        .method = call->method,
        .body = {call->body,
                 call->body && !call->body_bytes ? strlen(call->body) : call->body_bytes},
        .content_type = call->content_type ? call->content_type : "application/json",
        .accept = call->accept,
        .api_key = client->api_key,
        .timeout_ms = call->timeout_ms == 0 ? client->timeout_ms : call->timeout_ms};
    if (ask.method == NULL)
        ask.method = call->body ? "POST" : "GET";
    ask.once = !is_repeatable(call, &ask);
    int64_t give_up_at = rv_clock_boot_ms() + client->patience_ms;
    struct pipe_guard guard;
    rv_pipe_guard_enter(&guard);
    CURLcode code = CURLE_OK;
    enum rv_err err = RV_OK;
    for (unsigned failures = 0;; failures++) {
        err = rv_exchange_prepare(&client->exchange, &ask);
        if (err != RV_OK)
            break;
        client->exchange.on_bytes = call->on_bytes;
        client->exchange.user = call->user;
        code = rv_exchange_outcome(&client->exchange, curl_easy_perform(client->exchange.easy));
        int64_t pause_ms = repeat_pause(client, call, &ask, code, failures, give_up_at);
        if (pause_ms < 0)
            break;
        pause_for(pause_ms);
    }
    rv_pipe_guard_leave(&guard);
    if (err != RV_OK)
        return call_refused(client, err);
    if (code != CURLE_OK && !client->exchange.stopped)
        return call_failed(client, code);
    client->server_time = rv_exchange_date_ms(&client->exchange);
    return answer_take(client, ret_answer);
}

void rv_answer_free(struct rv_answer *answer)
{
    free(answer->body);
    *answer = (struct rv_answer){.retry_after_ms = -1};
}

/* ---- submission ---- */

static void key_make(struct rv_client *client, char ret_key[static KEY_BYTES])
{
    snprintf(ret_key, KEY_BYTES, "%016" PRIx64 "%016" PRIx64, rv_random_next(&client->random),
             rv_random_next(&client->random));
}

static int item_write(struct rv_client *client, const struct rv_submission *s, struct rv_buf *body)
{
    char made_key[KEY_BYTES];
    struct rv_submit_item item = {.workflow = rv_str_of(s->workflow),
                                  .input = rv_str_of(s->input),
                                  .correlation_id = rv_str_of(s->correlation_id),
                                  .traceparent = rv_str_of(s->traceparent),
                                  .tracestate = rv_str_of(s->tracestate),
                                  .reply_to = rv_str_of(s->reply_to),
                                  .tags = rv_str_of(s->tags)};
    item.priority = s->priority == 0 ? -1 : s->priority < 0 ? 0 : s->priority;
    if (s->key != NULL) {
        item.key = rv_str_of(s->key);
    } else if (!s->without_key) {
        key_make(client, made_key);
        item.key = rv_str_of(made_key);
    }
    const char *why = "the submission has no workflow";
    enum rv_err err = s->workflow ? rv_submit_write(body, &item, &why) : RV_ERR_INVALID;
    if (err == RV_OK)
        return RV_RESULT_OK;
    snprintf(client->error, sizeof client->error, "submission of %s: %s",
             s->workflow ? s->workflow : "nothing", why);
    return err == RV_ERR_MEMORY ? RV_RESULT_MEMORY : RV_RESULT_USAGE;
}

static void text_give(char *room, size_t bytes, struct rv_str text)
{
    snprintf(room, bytes, "%.*s", RV_STR_FMT(text));
}

static void receipt_give(const struct rv_submit_receipt *receipt, struct rv_receipt *ret_receipt)
{
    ret_receipt->status = receipt->status;
    text_give(ret_receipt->task, sizeof ret_receipt->task, receipt->task);
    text_give(ret_receipt->state, sizeof ret_receipt->state, receipt->state);
    text_give(ret_receipt->why, sizeof ret_receipt->why, receipt->why);
}

static int answer_unread(struct rv_client *client, enum rv_err err)
{
    if (err == RV_ERR_MEMORY) {
        snprintf(client->error, sizeof client->error, "out of memory");
        return RV_RESULT_MEMORY;
    }
    snprintf(client->error, sizeof client->error,
             "%s answers, but it is not a Reeve server; set REEVE_URL to the address that "
             "\"reeve serve\" prints",
             client->url);
    return RV_RESULT_UNREACHABLE;
}

static int submit_call(struct rv_client *client, const struct rv_buf *body, bool repeatable,
                       struct rv_answer *ret_answer)
{
    struct rv_call call = {
        .path = "/v1/tasks", .body = body->at, .body_bytes = body->len, .repeatable = repeatable};
    int result = rv_client_request(client, &call, ret_answer);
    rv_arena_reset(&client->arena);
    return result;
}

int rv_client_submit(struct rv_client *client, const struct rv_submission *submission,
                     struct rv_receipt *ret_receipt)
{
    *ret_receipt = (struct rv_receipt){.status = 0};
    struct rv_buf body;
    rv_buf_init(&body, BODY_BYTES_MAX);
    int result = item_write(client, submission, &body);
    if (result != RV_RESULT_OK) {
        rv_buf_done(&body);
        return result;
    }
    bool keyed = submission->key != NULL || !submission->without_key;
    struct rv_answer answer;
    result = submit_call(client, &body, keyed, &answer);
    rv_buf_done(&body);
    if (result == RV_RESULT_OK || result == RV_RESULT_REFUSED) {
        struct rv_str text = {answer.body, answer.body_bytes};
        struct rv_submit_receipt receipt;
        enum rv_err err = rv_submit_read(&client->arena, answer.status, text, &receipt);
        if (err == RV_OK)
            receipt_give(&receipt, ret_receipt);
        else
            result = answer_unread(client, err);
    }
    rv_answer_free(&answer);
    return result;
}

/* Appends as many submissions as one call takes; their number, or a negative result. */
static int batch_write(struct rv_client *client, const struct rv_submission *submissions,
                       size_t count, struct rv_buf *body, bool *ret_keyed)
{
    int n = 0;
    *ret_keyed = true;
    rv_buf_reset(body);
    rv_buf_lit(body, "{\"tasks\":[");
    while ((size_t)n < count && n < BATCH_ITEMS_MAX && body->len < BATCH_BYTES_MAX) {
        const struct rv_submission *submission = &submissions[n];
        if (n > 0)
            rv_buf_lit(body, ",");
        int result = item_write(client, submission, body);
        if (result != RV_RESULT_OK)
            return -result;
        if (submission->key == NULL && submission->without_key)
            *ret_keyed = false;
        n++;
    }
    rv_buf_lit(body, "]}");
    return body->failed == RV_OK ? n : -RV_RESULT_MEMORY;
}

static int batch_read(struct rv_client *client, const struct rv_answer *answer, size_t count,
                      struct rv_receipt *ret_receipts)
{
    struct rv_submit_receipt *receipts = RV_NEW_ARRAY(&client->arena, struct rv_submit_receipt,
                                                      count);
    if (receipts == NULL)
        return RV_RESULT_MEMORY;
    struct rv_str text = {answer->body, answer->body_bytes};
    if (answer->status >= 300) {
        /* Refused as a whole: each of them for the same reason. */
        receipts[0] = (struct rv_submit_receipt){.status = answer->status,
                                                 .why = rv_submit_problem(&client->arena, text)};
        for (size_t i = 0; i < count; i++)
            receipt_give(&receipts[0], &ret_receipts[i]);
        return RV_RESULT_REFUSED;
    }
    enum rv_err err = rv_submit_read_batch(&client->arena, text, count, receipts);
    if (err != RV_OK)
        return answer_unread(client, err);
    int result = RV_RESULT_OK;
    for (size_t i = 0; i < count; i++) {
        receipt_give(&receipts[i], &ret_receipts[i]);
        if (receipts[i].status >= 300) {
            result = RV_RESULT_REFUSED;
            snprintf(client->error, sizeof client->error, "submission %zu was refused (%d): %.*s",
                     i + 1, receipts[i].status, RV_STR_FMT(receipts[i].why));
        }
    }
    return result;
}

int rv_client_submit_many(struct rv_client *client, const struct rv_submission *submissions,
                          size_t count, struct rv_receipt *ret_receipts)
{
    if (count == 0)
        return RV_RESULT_OK;
    memset(ret_receipts, 0, count * sizeof *ret_receipts);
    struct rv_buf body;
    rv_buf_init(&body, BODY_BYTES_MAX);
    int result = RV_RESULT_OK;
    for (size_t done = 0; done < count;) {
        bool keyed;
        int n = batch_write(client, submissions + done, count - done, &body, &keyed);
        if (n < 0) {
            result = -n;
            break;
        }
        struct rv_answer answer;
        int got = submit_call(client, &body, keyed, &answer);
        if (got == RV_RESULT_OK || got == RV_RESULT_REFUSED)
            got = batch_read(client, &answer, (size_t)n, ret_receipts + done);
        rv_answer_free(&answer);
        if (got != RV_RESULT_OK)
            result = got;
        if (got != RV_RESULT_OK && got != RV_RESULT_REFUSED)
            break;
        done += (size_t)n;
    }
    rv_buf_done(&body);
    return result;
}

/* ---- waiting ---- */

/* Asks for the task; with `revision` >= 0 only when it is beyond that, or after `wait_ms`. */
static int task_ask(struct rv_client *client, const char *task, int64_t revision, int64_t wait_ms,
                    struct rv_answer *ret_answer, struct rv_submit_progress *ret_progress)
{
    char path[128];
    if (revision < 0)
        snprintf(path, sizeof path, "/v1/tasks/%.40s", task);
    else
        snprintf(path, sizeof path, "/v1/tasks/%.40s?wait=PT%d.%03dS&revision=%" PRId64, task,
                 (int)(wait_ms / 1000), (int)(wait_ms % 1000), revision);
    struct rv_call call = {.path = path, .timeout_ms = wait_ms + client->timeout_ms};
    int result = rv_client_request(client, &call, ret_answer);
    if (result != RV_RESULT_OK)
        return result;
    rv_arena_reset(&client->arena);
    struct rv_str text = {ret_answer->body, ret_answer->body_bytes};
    enum rv_err err = rv_submit_read_task(&client->arena, text, ret_progress);
    return err == RV_OK ? RV_RESULT_OK : answer_unread(client, err);
}

int rv_client_wait(struct rv_client *client, const char *task, int64_t timeout_ms,
                   char ret_state[16], struct rv_answer *ret_answer)
{
    int64_t begun_at = rv_clock_boot_ms();
    int64_t revision = -1;
    for (unsigned n = 0;; n++) {
        int64_t left_ms = timeout_ms < 0 ? WAIT_MS : begun_at + timeout_ms - rv_clock_boot_ms();
        int64_t wait_ms = left_ms < 0 ? 0 : left_ms < WAIT_MS ? left_ms : WAIT_MS;
        struct rv_answer answer;
        struct rv_submit_progress progress = {.revision = -1};
        int result = task_ask(client, task, revision, wait_ms, &answer, &progress);
        bool ended = rv_submit_ended(progress.state);
        if (result == RV_RESULT_OK)
            text_give(ret_state, 16, progress.state);
        if (result == RV_RESULT_OK && !ended && left_ms <= 0)
            result = RV_RESULT_TIMEOUT;
        if (result != RV_RESULT_OK || ended) {
            if (ret_answer != NULL)
                *ret_answer = answer;
            else
                rv_answer_free(&answer);
            return result;
        }
        rv_answer_free(&answer);
        /* A server that does not park this question is asked again, ever more slowly. */
        if (progress.revision <= revision || progress.revision < 0)
            pause_for(rv_jitter_ms(&client->prng, ASK_BASE_MS, ASK_CAP_MS, n));
        revision = progress.revision;
    }
}

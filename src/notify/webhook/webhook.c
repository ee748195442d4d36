#include "notify/webhook/webhook.h"

#include "base/assert.h"
#include "base/os/clock.h"
#include "base/time.h"
#include "scheduler/call.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef RV_VERSION
#error "RV_VERSION is not defined: build with meson"
#endif

enum {
    TIMEOUT_MS = 15 * RV_SECOND_MS,
    ANSWER_BYTES_MAX = 256 * 1024, /* nobody reads it */
    ID_BYTES = RV_ID_TEXT_BYTES + 16,
    SIGNATURES_BYTES = 64 * RV_SECRETS_SIGN_MAX,
    CALL_BYTES_MAX = 4096
};

enum header {
    CONTENT_TYPE,
    USER_AGENT,
    WEBHOOK_ID,
    WEBHOOK_TIMESTAMP,
    WEBHOOK_SIGNATURE,
    TRACEPARENT, /* only if the notice has one */
    HEADERS_MAX
};

/* One on its way. Once submitted it is the outbound thread's. */
struct sending {
    struct rv_webhook *webhook;
    struct rv_notice *notice; /* owned */
    char id[ID_BYTES];
    int64_t at_s;             /* the timestamp that is signed */
    struct rv_buf signatures; /* owned */
    enum rv_err failed;       /* why it could not be signed */
};

/* ---- where to ---- */

static enum rv_err webhook_check(void *self, struct rv_str url, char *ret_text, size_t text_bytes)
{
    const struct rv_webhook *webhook = self;
    struct rv_target target = {.url = NULL};
    enum rv_egress_reach reach;
    char why[RV_EGRESS_WHY_BYTES] = "", reason[RV_TARGET_WHY_BYTES] = "";
    enum rv_err err = rv_target_parse(&target, url, reason);
    if (err == RV_OK)
        err = rv_egress_check(webhook->egress, &target, &reach, why);
    if (err == RV_OK)
        rv_target_origin(&target, ret_text, text_bytes);
    else
        snprintf(ret_text, text_bytes, "%s",
                 why[0] != '\0'      ? why
                 : reason[0] != '\0' ? reason
                                     : rv_err_text(err));
    rv_target_done(&target);
    return err;
}

/* ---- what came of it ---- */

static void call_finished(struct rv_call *call)
{
    rv_arena_done(&call->arena);
    free(call);
}

/* Without memory for the call the scheduler takes the message for lost after a while. */
static void result_tell(struct rv_webhook *webhook, const struct rv_notice_result *result)
{
    struct rv_call *call = calloc(1, sizeof *call);
    if (call == NULL)
        return;
    rv_arena_init(&call->arena, CALL_BYTES_MAX);
    call->kind = RV_CALL_DELIVERED;
    call->note = true;
    call->mono_at = rv_clock_mono_ms();
    call->finish = call_finished;
    struct rv_notice_result *item = RV_NEW(&call->arena, struct rv_notice_result);
    call->u.delivered.items = item;
    call->u.delivered.count = item != NULL;
    if (item != NULL) {
        *item = *result;
        item->why = rv_arena_str(&call->arena, result->why);
    }
    if (item == NULL || !rv_mailbox_put(webhook->mailbox, call))
        call_finished(call);
}

static void sending_end(struct sending *sending)
{
    rv_buf_done(&sending->signatures);
    free(sending->notice);
    free(sending);
}

static struct rv_str why_of(enum rv_err err)
{
    if (err == RV_ERR_REFUSED)
        return RV_STR("there is no signing secret for this destination: add a secret to the file "
                      "given with --webhook-secret-file, and restart the server");
    return rv_str_of(rv_err_text(err));
}

/* It has not left. */
static void unsent_end(struct sending *sending, enum rv_err err)
{
    rv_assert(err != RV_OK);
    struct rv_notice_result result = {.task = sending->notice->task,
                                      .number = sending->notice->number,
                                      .unsent = err != RV_ERR_REFUSED,
                                      .why = why_of(err)};
    result_tell(sending->webhook, &result);
    sending_end(sending);
}

static bool status_says_alive(int status)
{
    return status < 500 && status != 408 && status != 425 && status != 429;
}

/* On the outbound thread. */
static void webhook_answered(void *user, const struct rv_outbound_answer *answer)
{
    struct sending *sending = user;
    if (sending->failed != RV_OK) {
        unsent_end(sending, sending->failed);
        return;
    }
    bool answered = answer->outcome == RV_OUTCOME_ANSWERED;
    int status = answer->status;
    char why[64];
    snprintf(why, sizeof why, "the webhook responded with status %d", status);
    struct rv_notice_result result = {
        .task = sending->notice->task,
        .number = sending->notice->number,
        .taken = answered && status >= 200 && status < 300,
        .gone = answered && status == 410,
        .alive = answered && status_says_alive(status),
        .retry_after_ms = answered && answer->retry_after_ms > 0 ? answer->retry_after_ms : 0,
        .why = answered ? rv_str_of(why) : answer->why,
    };
    if (answer->outcome != RV_OUTCOME_CANCELLED) /* the server stops: nothing came of it */
        result_tell(sending->webhook, &result);
    sending_end(sending);
}

/* ---- sending ---- */

/* On the outbound thread: the hash goes over the whole body. */
static enum rv_err webhook_sign(void *user, struct rv_outbound_header *headers, size_t count)
{
    struct sending *sending = user;
    const struct rv_secrets *secrets = sending->webhook->secrets;
    const struct rv_notice *notice = sending->notice;
    rv_assert(count > WEBHOOK_SIGNATURE);
    rv_assert(headers[WEBHOOK_SIGNATURE].value.at == NULL);
    rv_assert(sending->signatures.len == 0);
    bool known = secrets != NULL &&
                 rv_secrets_sign(secrets, notice->destination, rv_str_of(sending->id),
                                 sending->at_s, notice->body, &sending->signatures);
    headers[WEBHOOK_SIGNATURE].value = rv_buf_str(&sending->signatures);
    if (!known)
        sending->failed = RV_ERR_REFUSED;
    else if (sending->signatures.failed != RV_OK)
        sending->failed = RV_ERR_MEMORY;
    return sending->failed;
}

static enum rv_err request_submit(struct sending *sending)
{
    const struct rv_notice *notice = sending->notice;
    char timestamp[24];
    snprintf(timestamp, sizeof timestamp, "%lld", (long long)sending->at_s);
    const struct rv_outbound_header headers[HEADERS_MAX] = {
        [CONTENT_TYPE] = {RV_STR("Content-Type"), RV_STR("application/json")},
        [USER_AGENT] = {RV_STR("User-Agent"), RV_STR("reeve/" RV_VERSION)},
        [WEBHOOK_ID] = {RV_STR("webhook-id"), rv_str_of(sending->id)},
        [WEBHOOK_TIMESTAMP] = {RV_STR("webhook-timestamp"), rv_str_of(timestamp)},
        [WEBHOOK_SIGNATURE] = {RV_STR("webhook-signature"), RV_STR_NONE},
        [TRACEPARENT] = {RV_STR("traceparent"), notice->traceparent},
    };
    struct rv_outbound_request request = {
        .method = RV_STR("POST"),
        .url = notice->url,
        .headers = headers,
        .headers_count = notice->traceparent.len > 0 ? HEADERS_MAX : TRACEPARENT,
        .body = notice->body,
        .timeout_ms = TIMEOUT_MS,
        .answer_bytes_max = ANSWER_BYTES_MAX,
        .fill = webhook_sign,
        .done = webhook_answered,
        .user = sending,
    };
    uint64_t ignored;
    return rv_outbound_submit(sending->webhook->outbound, &request, &ignored);
}

/* On the scheduler's thread. */
static void webhook_send(void *self, struct rv_notice *notice)
{
    struct sending *sending = malloc(sizeof *sending);
    if (sending == NULL) { /* taken for lost after a while, and sent again */
        free(notice);
        return;
    }
    *sending = (struct sending){
        .webhook = self, .notice = notice, .at_s = rv_clock_wall_ms() / RV_SECOND_MS};
    char task[RV_ID_TEXT_BYTES];
    snprintf(sending->id, sizeof sending->id, "%s.%u", rv_task_text(notice->task, task).at,
             notice->number);
    rv_buf_init(&sending->signatures, SIGNATURES_BYTES);
    enum rv_err err = request_submit(sending);
    if (err != RV_OK)
        unsent_end(sending, err);
}

struct rv_scheduler_outlet rv_webhook_outlet(struct rv_webhook *webhook)
{
    return (struct rv_scheduler_outlet){webhook_check, webhook_send, webhook};
}

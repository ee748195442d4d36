/* What a handler sees of a request, and how it answers. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "client/transport/agent_priv.h"

#include <stdlib.h>
#include <string.h>

struct rv_request *rv_request_ready(struct rv_agent *agent, rv_place place)
{
    struct rv_request *request = &agent->requests[place];
    if (request->attempt != NULL)
        return request;
    request->agent = agent;
    request->place = place;
    request->attempt = rv_session_attempt(agent->session, place);
    request->parsed = false;
    atomic_store(&request->stop_at, rv_held_stop_at(request->attempt));
    atomic_store(&request->complete_at, request->attempt->complete_at);
    atomic_store(&request->stopped, RV_STOP_NO);
    atomic_store(&request->answered, true); /* until the handler is called */
    return request;
}

void rv_request_over(struct rv_request *request)
{
    request->attempt = NULL;
    rv_arena_reset(&request->arena);
}

void rv_request_free(struct rv_request *request)
{
    rv_arena_done(&request->arena);
}

const char *rv_request_input(const struct rv_request *request, size_t *ret_bytes)
{
    if (ret_bytes != NULL)
        *ret_bytes = request->attempt->input.len;
    return request->attempt->input.at;
}

static const struct rv_json *input_at(struct rv_request *request, const char *pointer)
{
    if (!request->parsed) {
        request->parsed = true;
        rv_arena_reset(&request->arena);
        if (rv_json_parse(&request->arena, request->attempt->input, RV_JSON_DEPTH_MAX + 1,
                          &request->input, NULL) != RV_OK)
            request->input = rv_json_null();
    }
    return rv_json_at(&request->input, rv_str_of(pointer));
}

const char *rv_request_string(struct rv_request *request, const char *pointer)
{
    struct rv_str text = rv_json_str(input_at(request, pointer));
    if (text.at == NULL)
        return NULL;
    return rv_arena_str(&request->arena, text).at;
}

int rv_request_integer(struct rv_request *request, const char *pointer, int64_t *ret_number)
{
    const struct rv_json *value = input_at(request, pointer);
    return value != NULL && rv_json_int(value, ret_number);
}

int rv_request_real(struct rv_request *request, const char *pointer, double *ret_number)
{
    const struct rv_json *value = input_at(request, pointer);
    if (value == NULL || value->type != RV_JSON_NUMBER)
        return 0;
    *ret_number = rv_json_real(value);
    return 1;
}

const char *rv_request_key(const struct rv_request *request)
{
    return request->attempt->key.at;
}

int64_t rv_request_fence(const struct rv_request *request)
{
    return request->attempt->fence;
}

const char *rv_request_task(const struct rv_request *request)
{
    return request->attempt->task.at;
}

const char *rv_request_step(const struct rv_request *request)
{
    return request->attempt->step.at;
}

const char *rv_request_reference(const struct rv_request *request)
{
    return request->attempt->reference.at;
}

int64_t rv_request_attempt(const struct rv_request *request)
{
    return request->attempt->number;
}

int rv_request_try(const struct rv_request *request)
{
    return (int)request->try_number;
}

const char *rv_request_tracestate(const struct rv_request *request)
{
    return request->attempt->tracestate.at;
}

const char *rv_request_traceparent(const struct rv_request *request)
{
    return request->attempt->traceparent.at;
}

const char *rv_request_complete_by(const struct rv_request *request)
{
    return request->attempt->complete_by.at;
}

static int64_t until_ms(int64_t at)
{
    int64_t left_ms = at - rv_clock_boot_ms();
    return left_ms > 0 ? left_ms : 0;
}

int64_t rv_request_remaining_ms(const struct rv_request *request)
{
    return until_ms(atomic_load(&request->stop_at));
}

int64_t rv_request_complete_in_ms(const struct rv_request *request)
{
    return until_ms(atomic_load(&request->complete_at));
}

enum rv_stop rv_request_stopped(const struct rv_request *request)
{
    if (rv_request_remaining_ms(request) == 0)
        return RV_STOP_LATE;
    return (enum rv_stop)atomic_load(&request->stopped);
}

/* Hands the answered request to the loop. From here on it is not the caller's. */
static void request_return(struct rv_request *request)
{
    struct rv_agent *agent = request->agent;
    bool put = rv_mailbox_put(&agent->results, request);
    if (!put)
        return; /* rv_agent_run() has given this handler up; nobody listens */
    rv_agent_wake(agent);
}

/* A request is answered once; a second answer is a mistake in the handler that would harm another
 * request, so it ends the program. */
static void request_answer(struct rv_request *request)
{
    bool answered_before = atomic_exchange(&request->answered, true);
    rv_assert(!answered_before);
}

void rv_request_done(struct rv_request *request, const char *output)
{
    request_answer(request);
    if (output == NULL)
        output = "null";
    size_t bytes = strlen(output);
    char *copy = malloc(bytes + 1);
    if (copy == NULL) {
        request->output = RV_STR_NONE;
        request->failure = (struct rv_runtime_failure){.type = RV_STR("out-of-memory"),
                                                       .transient = true,
                                                       .effect = RV_RUNTIME_UNKNOWN_EFFECT};
    } else {
        memcpy(copy, output, bytes + 1);
        request->output = (struct rv_str){copy, bytes};
    }
    request_return(request);
}

static struct rv_str text_copy(char *room, size_t bytes, const char *text)
{
    if (text == NULL)
        return RV_STR_NONE;
    size_t n = strlen(text);
    if (n > bytes)
        n = bytes;
    memcpy(room, text, n);
    return (struct rv_str){room, n};
}

void rv_request_fail(struct rv_request *request, const struct rv_failure *failure)
{
    static const enum rv_runtime_effect effects[] = {
        [RV_EFFECT_DEFAULT] = RV_RUNTIME_BY_KIND,
        [RV_EFFECT_NONE] = RV_RUNTIME_NO_EFFECT,
        [RV_EFFECT_UNKNOWN] = RV_RUNTIME_UNKNOWN_EFFECT};
    request_answer(request);
    request->output = RV_STR_NONE;
    request->failure = (struct rv_runtime_failure){
        .type = text_copy(request->failure_type, FAILURE_TYPE_BYTES,
                          failure->type ? failure->type : "failed"),
        .title = text_copy(request->failure_title, FAILURE_TITLE_BYTES, failure->title),
        .detail = text_copy(request->failure_detail, FAILURE_DETAIL_BYTES, failure->detail),
        .status = failure->status,
        .transient = failure->transient != 0,
        .effect = effects[failure->effect],
        .retry_after_ms = failure->retry_after_ms};
    request_return(request);
}

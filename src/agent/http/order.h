/* order.h - what a step's input asks for, as an HTTP request; what its answer means; pure. */
#ifndef RV_AGENT_HTTP_ORDER_H
#define RV_AGENT_HTTP_ORDER_H

#include "agent/runtime.h"
#include "base/arena.h"
#include "json/json.h"
#include "outbound/outbound.h"

#include <stdbool.h>
#include <stdint.h>

/* The value of a secret, as the operator has left it. NOT_FOUND, IO, INVALID, LIMIT, MEMORY; the
 * value lives on the arena. */
struct rv_http_secrets {
    enum rv_err (*read)(void *self, struct rv_arena *arena, struct rv_str name,
                        struct rv_str *ret_value);
    void *self;
};

enum rv_http_output { RV_HTTP_CONTENT, RV_HTTP_RAW, RV_HTTP_RESPONSE };

enum { RV_HTTP_HEADERS_OWN = 7, RV_HTTP_HIDDEN_MAX = 3, RV_HTTP_TARGET_BYTES = 128 };

/* All texts live on its arena. */
struct rv_http_order {
    struct rv_arena arena;
    struct rv_runtime_failure wrong; /* type absent: the request can be sent */
    struct rv_str method;
    struct rv_str url;
    char target[RV_HTTP_TARGET_BYTES];  /* host and port: whose circuit it is */
    struct rv_outbound_header *headers; /* with room for RV_HTTP_HEADERS_OWN more */
    size_t headers_count;
    size_t headers_shown; /* the first of them that a step's output may show */
    struct rv_str body;   /* absent: none */
    bool safe;            /* GET, HEAD: nothing is done at the other side */
    bool redirect;
    enum rv_http_output output;
    const struct rv_json *no_effect; /* NULL: the default */
    /* What must not show in outputs, errors or logs, wherever the other side says it. */
    struct rv_str hidden[RV_HTTP_HIDDEN_MAX];
    size_t hidden_count;
};

/* Reads the input of a step, once for all of its tries. Never fails: `wrong` says what is wrong. */
void rv_http_order_read(struct rv_http_order *order, struct rv_str input,
                        const struct rv_http_secrets *secrets);
void rv_http_order_done(struct rv_http_order *order);
/* What each try adds: the key, the fence, the trace, the time that is left. False: no memory. */
bool rv_http_order_head(struct rv_http_order *order, const struct rv_held_attempt *attempt,
                        int64_t left_ms);

/* What an answer, or none, means for the step. */
struct rv_http_result {
    struct rv_buf output;              /* owned; JSON, if the failure's type is absent */
    struct rv_runtime_failure failure; /* its texts are on the order's arena */
};
void rv_http_order_judge(struct rv_http_order *order, const struct rv_outbound_answer *answer,
                         struct rv_http_result *ret_result);

#endif

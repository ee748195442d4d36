/* wire.h - requests and answers as bytes. A peer writes its request in one of the forms that
 * clients use, the network cuts it anywhere, and the server reads it with the machine of the real
 * one (http/http.h); the answer goes back the same way. What is drawn here is each exchange's own,
 * so that the world goes as it would without it. */
#ifndef RV_SIM_WIRE_H
#define RV_SIM_WIRE_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct world;
struct exchange;
struct wire;

struct wire_request {
    struct rv_str method;
    struct rv_str target;
    struct rv_str body;
};

struct wire *wire_new(void);
void wire_free(struct wire *wire);

/* What the server reads of the exchange's request; texts are borrowed until the next one. False
 * where it reads none, which violates W-01. */
bool wire_request(struct world *w, const struct exchange *x, struct wire_request *ret_request);
/* The connection breaks before the end of the request. */
void wire_break(struct world *w, const struct exchange *x);
/* The exchange gets what its peer reads of this answer; texts are on the world's arena. */
void wire_answer(struct world *w, struct exchange *x, int status, int64_t retry_after_ms,
                 struct rv_str body);

#endif

/* Any request: "METHOD TARGET\n" and the body. Whatever is taken is answered as if the scheduler
 * had done nothing; what is refused must name a 4xx and a cure that is valid JSON. */
#include "api/route.h"
#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rv_str word(struct rv_str *rest, char end)
{
    const char *found = rest->len ? memchr(rest->at, end, rest->len) : NULL;
    size_t len = found ? (size_t)(found - rest->at) : rest->len;
    struct rv_str taken = {rest->at, len};
    size_t used = found ? len + 1 : len;
    *rest = (struct rv_str){rest->at + used, rest->len - used};
    return taken;
}

static void answer_check(struct rv_parser *parser, struct rv_call *call,
                         const struct rv_route *route)
{
    struct rv_answer answer;
    rv_answer_init(&answer);
    if (parser->problem.status != 0) {
        rv_assert(parser->problem.status >= 400 && parser->problem.status < 600);
        rv_assert(parser->problem.detail.at != NULL);
        rv_answer_problem(&answer, &parser->problem);
    } else if (call->kind == RV_CALL_SUBMIT || call->kind == RV_CALL_REPLIES ||
               call->kind == RV_CALL_LEASES || call->kind == RV_CALL_POLL) {
        route->render(&answer, call);
    } else {
        rv_buf_lit(&answer.body, "{}");
    }
    rv_assert(rv_json_scan(rv_buf_str(&answer.body), RV_JSON_DEPTH_MAX, NULL) == RV_OK);
    rv_buf_done(&answer.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv_str rest = {(const char *)data, size};
    struct rv_str method = word(&rest, ' ');
    struct rv_str target = word(&rest, '\n');
    struct rv_parser parser;
    struct rv_call call = {.seed = 1};
    struct rv_request_line line;
    const struct rv_route *route = NULL;
    rv_parser_init(&parser);
    rv_arena_init(&call.arena, 0);
    rv_parser_begin(&parser, &call.arena);
    if (rv_request_read(&parser, target, &line)) {
        line.body = rest;
        route = rv_route_find(&parser, method, &line);
        if (route != NULL) {
            call.kind = route->kind;
            if (!route->parse(&parser, &line, &call))
                rv_assert(parser.problem.status != 0);
        }
    }
    answer_check(&parser, &call, route);
    rv_arena_done(&call.arena);
    rv_parser_done(&parser);
    return 0;
}

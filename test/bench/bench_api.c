/* What the api costs for each submission, request and reply, sockets apart: parse and render. */
#include "api/route.h"
#include "base/limits.h"
#include "base/os/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { ITEMS = 100, ROUNDS = 2000 };

static struct rv_str items_of(struct rv_arena *arena, const char *list, const char *item)
{
    struct rv_buf buf;
    rv_buf_init(&buf, RV_BODY_BYTES_MAX);
    rv_buf_printf(&buf, "{\"%s\":[", list);
    for (int i = 0; i < ITEMS; i++)
        rv_buf_printf(&buf, "%s%s", i ? "," : "", item);
    rv_buf_lit(&buf, "]}");
    struct rv_str text = rv_arena_str(arena, rv_buf_str(&buf));
    rv_buf_done(&buf);
    return text;
}

/* One exchange as the api's thread does it, with what a scheduler would have filled in. */
static size_t exchange(struct rv_parser *parser, struct rv_call *call, const char *method,
                       const char *target, struct rv_str body)
{
    struct rv_request_line line;
    struct rv_answer answer;
    rv_arena_reset(&call->arena);
    memset(&call->u, 0, sizeof call->u);
    rv_parser_begin(parser, &call->arena);
    if (!rv_request_read(parser, rv_str_of(target), &line))
        exit(1);
    line.body = body;
    const struct rv_route *route = rv_route_find(parser, rv_str_of(method), &line);
    if (route == NULL)
        exit(1);
    call->kind = route->kind;
    if (!route->parse(parser, &line, call))
        exit(1);
    if (call->kind == RV_CALL_POLL) {
        call->u.poll.requests = RV_NEW_ARRAY(&call->arena, struct rv_assignment, ITEMS);
        if (call->u.poll.requests == NULL)
            exit(1);
        call->u.poll.requests_count = ITEMS;
        for (uint32_t i = 0; i < ITEMS; i++)
            call->u.poll.requests[i] = (struct rv_assignment){
                .step = {{INT64_C(0x123456789abcdef)}, i + 1},
                .complete_by = INT64_C(1795224600000),
                .reference = RV_STR("/do/0/reserveStock"),
                .input = RV_STR("{\"operation\":\"reserve\",\"sku\":\"A-1\",\"quantity\":2}")};
    }
    rv_answer_init(&answer);
    answer.now = INT64_C(1795224600000);
    route->render(&answer, call);
    size_t len = answer.body.len;
    rv_buf_done(&answer.body);
    return len;
}

static void measure(const char *name, const char *target, struct rv_str body)
{
    struct rv_parser parser;
    struct rv_call call = {.seed = 1};
    rv_parser_init(&parser);
    rv_arena_init(&call.arena, 0);
    size_t bytes = 0;
    int64_t before = rv_clock_mono_us();
    for (int i = 0; i < ROUNDS; i++)
        bytes += exchange(&parser, &call, "POST", target, body);
    double us = (double)(rv_clock_mono_us() - before);
    printf("%-12s %6.2f us each in bodies of %d (%zu bytes in, %zu out)\n", name,
           us / ROUNDS / ITEMS, ITEMS, body.len, bytes / ROUNDS);
    rv_arena_done(&call.arena);
    rv_parser_done(&parser);
}

int main(void)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    measure("submission", "/v1/tasks",
            items_of(&arena, "tasks",
                     "{\"workflow\":\"shop/process-order\",\"input\":{\"order\":17,\"lines\":[{"
                     "\"sku\":\"A-1\",\"quantity\":2}]},\"key\":\"order-17\"}"));
    measure("reply", "/v1/replies",
            items_of(&arena, "replies",
                     "{\"step\":\"06DWX3T9H2K4Q-3\",\"token\":\"00000000000000ff\",\"output\":{"
                     "\"reserved\":true,\"id\":\"r-123456\"}}"));
    measure("request", "/v1/agents/inventory/requests",
            RV_STR("{\"instance\":\"a7\",\"boot\":\"b\",\"max\":100,\"poll\":\"p2\","
                   "\"confirm\":[\"p1\"]}"));
    rv_arena_done(&arena);
    return 0;
}

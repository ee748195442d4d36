/* What a move of a task costs: nanoseconds for each rv_flow_complete of the shop's order, for a try
 * with inputs of 1 KB, and for an inline step. The best of some rounds. */
#include "../lib/workflow.h"
#include "base/limits.h"
#include "workflow/flow.h"
#include "yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, RUNS = 20000, FRAMES_BYTES = 16 * 1024 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_flow: %s\n", what);
    exit(1);
}

static const struct rv_definition *load(struct rv_arena *arena, const char *text)
{
    struct rv_json document;
    struct rv_yaml_fault fault;
    struct rv_definition_fault why;
    const struct rv_definition *definition = NULL;
    if (rv_yaml_parse(arena, rv_str_of(text), RV_DEFINITION_BYTES_MAX, &document, &fault) ||
        rv_definition_load(arena, &document, &definition, &why))
        fail("the definition is refused");
    return definition;
}

/* One task from start to end; how many moves that took. */
static size_t run(const struct rv_definition *definition, struct rv_arena *arena,
                  struct rv_str input, size_t *frames_bytes)
{
    struct rv_flow_env env = {.definition = definition,
                              .arena = arena,
                              .now = 1000000,
                              .task = RV_STR("06DWX3T9H2K4Q"),
                              .started_at = 1000000,
                              .workflow_input = input,
                              .fuel = RV_FUEL_PER_COMMAND,
                              .inline_steps = RV_INLINE_STEPS_PER_COMMAND};
    struct rv_flow_stop stop;
    size_t moves = 1;
    rv_arena_reset(arena);
    enum rv_err err = rv_flow_start(&env, input, &stop);
    for (; err == RV_OK && stop.kind == RV_FLOW_CALL; moves++) {
        struct rv_str frames = stop.frames;
        struct rv_str data = stop.data;
        if (frames.len > *frames_bytes)
            *frames_bytes = frames.len;
        err = rv_flow_complete(&env, frames, data, RV_STR("{\"id\":\"R-4711\",\"ok\":true}"),
                               &stop);
    }
    if (err != RV_OK || stop.kind != RV_FLOW_DONE)
        fail("the flow does not end");
    return moves;
}

static void measure(const char *what, const char *text, const char *input, size_t per_run)
{
    struct rv_arena memory;
    struct rv_arena arena;
    rv_arena_init(&memory, 0);
    rv_arena_init(&arena, 0);
    const struct rv_definition *definition = load(&memory, text);
    double best = 1e9;
    size_t frames_bytes = 0;
    size_t moves = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double from = seconds();
        for (int i = 0; i < RUNS; i++)
            moves = run(definition, &arena, rv_str_of(input), &frames_bytes);
        double took = (seconds() - from) / RUNS / (double)(per_run ? per_run : moves);
        best = took < best ? took : best;
    }
    printf("%-34s %8.0f ns   frames %4zu bytes\n", what, best * 1e9, frames_bytes);
    rv_arena_done(&arena);
    rv_arena_done(&memory);
}

int main(void)
{
    char large[1200];
    char pad[1000];
    memset(pad, 'x', sizeof pad - 1);
    pad[sizeof pad - 1] = '\0';
    snprintf(large, sizeof large, "{\"order\":\"o\",\"pad\":\"%s\"}", pad);
    measure("order, each move", workflow_file("bench/order"),
            "{\"order\":\"o-1\",\"sku\":\"SKU-00017\",\"quantity\":3,\"price\":12.50,"
            "\"address\":{\"name\":\"A. Customer\",\"city\":\"Berlin\",\"street\":\"x 7\"}}",
            0);
    measure("try with 1 KB of input, each move", workflow_file("bench/try"), large, 0);
    measure("inline step (set, switch)", workflow_file("bench/inline"), "{\"n\":0}", 200);
    return 0;
}

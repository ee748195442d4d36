/* Random definitions with random outcomes: every run ends or stops, takes its own frames back,
 * gives
 * the same end however it is cut, and survives any lack of memory. The kit checks at each stop that
 * every uncompleted step is either kept or left for good, and told so once. */
#include "flow_kit.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct generator {
    struct rv_prng random;
    struct rv_buf yaml;
    unsigned names;
    unsigned tasks_left;
};

static unsigned pick(struct generator *g, unsigned bound)
{
    return (unsigned)rv_prng_below(&g->random, bound);
}

static void put_list(struct generator *g, unsigned depth);

/* A directive among `count` siblings named <list>_<i>. */
static void put_then(struct generator *g, unsigned list, unsigned count)
{
    static const char *const fixed[] = {"continue", "exit", "end", "continue"};
    if (pick(g, 2) == 0)
        rv_buf_printf(&g->yaml, "\"%s\"", fixed[pick(g, 4)]);
    else
        rv_buf_printf(&g->yaml, "\"t%u_%u\"", list, pick(g, count));
}

static void put_try(struct generator *g, unsigned depth, unsigned list, unsigned count)
{
    rv_buf_lit(&g->yaml, "\"try\":");
    put_list(g, depth + 1);
    rv_buf_lit(&g->yaml, ",\"catch\":{\"as\":\"e\"");
    if (pick(g, 2) == 0)
        rv_buf_printf(&g->yaml, ",\"errors\":{\"with\":{\"status\":%u}}", 500 + pick(g, 3));
    if (pick(g, 4) == 0)
        rv_buf_printf(&g->yaml, "%s",
                      pick(g, 2) == 0 ? ",\"when\":\"$e.status != 501\""
                                      : ",\"when\":\".status != 502\"");
    if (pick(g, 4) == 0)
        rv_buf_lit(&g->yaml, ",\"exceptWhen\":\"$e.status == 408 or .status == 500\"");
    if (pick(g, 3) != 0) {
        static const char *const backoffs[] = {"constant", "linear", "exponential"};
        rv_buf_printf(&g->yaml,
                      ",\"retry\":{\"delay\":\"PT%uS\",\"backoff\":{\"%s\":{}},"
                      "\"limit\":{\"attempt\":{\"count\":%u",
                      pick(g, 3), backoffs[pick(g, 3)], pick(g, 4));
        if (pick(g, 3) == 0)
            rv_buf_printf(&g->yaml, ",\"duration\":\"PT%uS\"", 1 + pick(g, 9));
        rv_buf_printf(&g->yaml, "},\"duration\":\"PT%uS\"}}", 5 + pick(g, 60));
    }
    if (pick(g, 2) == 0) {
        rv_buf_lit(&g->yaml, ",\"do\":");
        put_list(g, depth + 1);
    }
    if (pick(g, 3) == 0) {
        rv_buf_lit(&g->yaml, ",\"then\":");
        put_then(g, list, count);
    }
    rv_buf_add_char(&g->yaml, '}');
}

static void put_kind(struct generator *g, unsigned depth, unsigned list, unsigned count)
{
    bool leaf = depth >= 4 || g->tasks_left == 0;
    switch (pick(g, leaf ? 6 : 10)) {
    case 0:
    case 1:
        rv_buf_printf(&g->yaml, "\"call\":\"agent%u\",\"with\":{\"n\":\"${ .n }\"}", pick(g, 3));
        break;
    case 2:
        rv_buf_lit(&g->yaml, "\"set\":{\"n\":\"${ (.n // 0) + 1 }\",\"w\":\"${ $context.c }\"}");
        break;
    case 3:
        rv_buf_printf(&g->yaml, "\"wait\":\"PT%uS\"", pick(g, 20));
        break;
    case 4:
        rv_buf_printf(&g->yaml,
                      "\"raise\":{\"error\":{\"type\":\"urn:x\",\"status\":%u,"
                      "\"detail\":\"${ .n | tostring }\"}}",
                      500 + pick(g, 3));
        break;
    case 5:
        rv_buf_printf(&g->yaml, "\"switch\":[{\"x\":{\"when\":\".n > %u\",\"then\":", pick(g, 6));
        put_then(g, list, count);
        rv_buf_lit(&g->yaml, "}},{\"y\":{\"then\":");
        put_then(g, list, count);
        rv_buf_lit(&g->yaml, "}}]");
        break;
    case 6:
        rv_buf_lit(&g->yaml, "\"do\":");
        put_list(g, depth + 1);
        break;
    case 7:
    case 8:
    case 9:
        put_try(g, depth, list, count);
        break;
    }
}

static void put_task(struct generator *g, unsigned depth, unsigned list, unsigned count)
{
    rv_buf_add_char(&g->yaml, '{');
    put_kind(g, depth, list, count);
    if (pick(g, 4) == 0)
        rv_buf_printf(&g->yaml, ",\"if\":\".n != %u\"", pick(g, 5));
    if (pick(g, 6) == 0)
        rv_buf_lit(&g->yaml, ",\"input\":{\"from\":{\"n\":\"${ .n }\",\"k\":[1,\"${ . }\"]}}");
    if (pick(g, 5) == 0)
        rv_buf_lit(&g->yaml, ",\"output\":{\"as\":\"{n: (.n // $input.n), s: $task.name}\"}");
    if (pick(g, 6) == 0)
        rv_buf_lit(&g->yaml,
                   ",\"export\":{\"as\":\"{c: (($context.c // 0) + 1), r: $task.input.n}\"}");
    if (pick(g, 8) == 0)
        rv_buf_printf(&g->yaml, ",\"timeout\":{\"after\":\"PT%uS\"}", 1 + pick(g, 30));
    if (pick(g, 4) == 0) {
        rv_buf_lit(&g->yaml, ",\"then\":");
        put_then(g, list, count);
    }
    rv_buf_add_char(&g->yaml, '}');
}

static void put_list(struct generator *g, unsigned depth)
{
    unsigned list = g->names++;
    unsigned count = 1 + pick(g, 4);
    rv_buf_add_char(&g->yaml, '[');
    for (unsigned i = 0; i < count; i++) {
        g->tasks_left -= g->tasks_left > 0;
        rv_buf_printf(&g->yaml, "%s{\"t%u_%u\":", i == 0 ? "" : ",", list, i);
        put_task(g, depth, list, count);
        rv_buf_add_char(&g->yaml, '}');
    }
    rv_buf_add_char(&g->yaml, ']');
}

static void generate(struct generator *g, uint64_t seed)
{
    rv_prng_init(&g->random, seed);
    rv_buf_reset(&g->yaml);
    g->names = 0;
    g->tasks_left = 25;
    rv_buf_lit(&g->yaml, "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"a\",\"name\":\"b\","
                         "\"version\":\"1.0.0\"}");
    if (pick(g, 4) == 0)
        rv_buf_printf(&g->yaml, ",\"timeout\":{\"after\":\"PT%uS\"}", 20 + pick(g, 100));
    if (pick(g, 4) == 0)
        rv_buf_lit(&g->yaml, ",\"output\":{\"as\":\"{end: ., c: $context}\"}");
    rv_buf_lit(&g->yaml, ",\"do\":");
    put_list(g, 0);
    rv_buf_lit(&g->yaml, "}");
    rv_buf_add_char(&g->yaml, '\0');
    assert_int_equal(g->yaml.failed, RV_OK);
}

struct outcomes {
    struct rv_prng random;
    char text[64];
};

static enum kit_answer answer(struct kit *kit, const struct rv_flow_stop *stop,
                              struct rv_str *ret_text)
{
    struct outcomes *outcomes = kit->agent_context;
    uint64_t luck = rv_prng_below(&outcomes->random, 10);
    kit->now += (int64_t)rv_prng_below(&outcomes->random, 3000);
    if (luck == 0 && stop->deadline != 0) {
        if (kit->now < stop->deadline)
            kit->now = stop->deadline;
        return KIT_EXPIRE;
    }
    bool fails = luck < 4;
    snprintf(outcomes->text, sizeof outcomes->text, fails ? "{\"status\":%u}" : "{\"n\":%u}",
             (fails ? 500 : 0) + (unsigned)rv_prng_below(&outcomes->random, 7));
    *ret_text = rv_str_of(outcomes->text);
    return fails ? KIT_RAISE : KIT_COMPLETE;
}

static void run_seed(struct kit *kit, uint64_t seed, uint32_t inline_steps, int64_t fuel,
                     size_t arena_bytes)
{
    struct outcomes outcomes;
    rv_prng_init(&outcomes.random, seed);
    kit->agent = answer;
    kit->agent_context = &outcomes;
    kit->inline_steps = inline_steps;
    kit->fuel = fuel;
    kit->arena_bytes = arena_bytes;
    kit->now = 1000000;
    kit->stops_max = 400 + (inline_steps || fuel ? 40000 : 0);
    kit_run(kit, "{\"n\":1}");
}

/* How the run ended, without what depends on where it was cut. */
static char *end_of(const struct kit *kit)
{
    struct rv_str text = kit->stop.kind == RV_FLOW_DONE     ? kit->stop.output
                         : kit->stop.kind == RV_FLOW_RAISED ? kit->stop.error
                                                            : RV_STR("open");
    struct rv_buf buf;
    rv_buf_init(&buf, 4 * RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&buf, "%d %u %lld %s %.*s", (int)kit->stop.kind, kit->steps_count,
                  (long long)kit->now, kit->context ? kit->context : "", RV_STR_FMT(text));
    rv_buf_add_char(&buf, '\0');
    return buf.at;
}

static struct kit kit;
static size_t ends[5];

static void check_seed(struct generator *g, uint64_t seed)
{
    generate(g, seed);
    kit_new(&kit, g->yaml.at);
    run_seed(&kit, seed, 0, 0, 0);
    if (kit.err != RV_OK)
        print_error("seed %llu: %d\n%s\n", (unsigned long long)seed, (int)kit.err, g->yaml.at);
    assert_int_equal(kit.err, RV_OK);
    ends[kit.stop.kind]++;
    bool ended = kit.stop.kind == RV_FLOW_DONE || kit.stop.kind == RV_FLOW_RAISED;
    char *whole = end_of(&kit);
    if (ended) {
        run_seed(&kit, seed, 1 + (uint32_t)(seed % 5), 0, 0);
        assert_int_equal(kit.err, RV_OK);
        char *cut = end_of(&kit);
        if (strcmp(whole, cut) != 0)
            print_error("seed %llu\n%s\n%s\n%s\n", (unsigned long long)seed, g->yaml.at, whole,
                        cut);
        assert_string_equal(whole, cut);
        free(cut);
        run_seed(&kit, seed, 0, 1, 0);
        cut = end_of(&kit);
        assert_string_equal(whole, cut);
        free(cut);
    }
    run_seed(&kit, seed, 0, 0, 500 + (size_t)(seed % 37) * 300);
    assert_true(kit.err == RV_OK || kit.err == RV_ERR_LIMIT);
    free(whole);
    kit_done(&kit);
}

static void test_random_definitions(void **state)
{
    (void)state;
    const char *given = getenv("REEVE_SEED");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    const char *count = getenv("REEVE_SEEDS");
    uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : given != NULL ? 1 : 200;
    struct generator g;
    rv_buf_init(&g.yaml, RV_DEFINITION_BYTES_MAX);
    print_message("# seeds %llu to %llu; REEVE_SEED runs one\n", (unsigned long long)first,
                  (unsigned long long)(first + seeds - 1));
    for (uint64_t seed = first; seed < first + seeds; seed++)
        check_seed(&g, seed);
    rv_buf_done(&g.yaml);
    /* Runs of every kind must have happened, or the property says little. */
    if (seeds >= 200) {
        assert_in_range(ends[RV_FLOW_DONE], seeds / 8, seeds);
        assert_in_range(ends[RV_FLOW_RAISED], seeds / 8, seeds);
    }
    print_message("# done %zu, raised %zu, open %zu\n", ends[RV_FLOW_DONE], ends[RV_FLOW_RAISED],
                  ends[RV_FLOW_CALL] + ends[RV_FLOW_WAIT] + ends[RV_FLOW_BUDGET]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_definitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

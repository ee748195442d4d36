/* Random workflows: sequences, branches, try with catch and retry, waits, compensations, pivots;
 * with policies so small that every rung of the ladder is stepped on. */
#include "sim/cast/workload.h"

#include "base/limits.h"
#include "base/time.h"
#include "sim/world/world.h"

#include <stdio.h>

enum { DEPTH_MAX = 3, CALLS_MAX = 8, KEPT_ONE_OF = 60, LARGE_ONE_OF = 2, ANEW_ONE_OF = 3 };
/* Longer than an operator is kept waiting. */
enum { LONG_ONE_OF = 3, LONG_LEASE_MS = RV_NO_AGENT_ALERT_MS + RV_MINUTE_MS };
enum { KEPT_TASKS_MAX = 60, KEPT_TASKS_SLOW = 10, TURN_FUEL_MIN = 10000, DECISION_KIB_MIN = 1024 };

/* A text that is four times as long in an error, which has no room for it twice where decisions
 * have little memory. */
#define TOO_LARGE "${ [\\\"\\\\\\\"\\\" * 4000] }"

/* One definition under construction. */
struct draft {
    struct world *w;
    struct rv_buf *out;
    const struct workload_title *title;
    uint32_t names; /* given out so far */
    uint32_t calls;
    uint32_t depth;
    uint32_t tries; /* around what is written */
};

/* Two rolls stand in two statements: a compiler may order the arguments of a call as it likes. */
static uint32_t roll(struct draft *d, uint32_t bound)
{
    return (uint32_t)world_roll(d->w, STREAM_WORKLOAD, bound);
}

/* Where expressions take long: what comes before the value, whose turns are so many. It changes
 * nothing of the value. */
static void write_heavy(struct draft *d)
{
    enum { HEAVY_PER_1000 = 300, NUMBERS_MAX = 20000, TURNS_MAX = 4 };
    uint32_t turns = TURNS_MAX * d->w->knobs.turn_fuel;
    uint32_t most = turns < NUMBERS_MAX ? turns : NUMBERS_MAX;
    if (d->w->knobs.heavy == 0 || !world_chance(d->w, STREAM_HEAVY, HEAVY_PER_1000))
        return;
    rv_buf_printf(d->out, SIM_HEAVY "%u)] as $heavy | ",
                  1 + (uint32_t)world_roll(d->w, STREAM_HEAVY, most));
}

static void write_ms(struct draft *d, const char *name, uint32_t ms)
{
    rv_buf_printf(d->out, "\"%s\":\"PT%u.%03uS\"", name, ms / 1000, ms % 1000);
}

static void write_policy(struct draft *d, bool undo)
{
    bool is_long = d->w->knobs.long_lease != 0 && !undo && roll(d, LONG_ONE_OF) == 0;
    uint32_t complete_by = 100 + roll(d, 3000) + (is_long ? LONG_LEASE_MS : 0);
    write_ms(d, "completeBy", complete_by);
    if (is_long || roll(d, 3) == 0) {
        rv_buf_lit(d->out, ",");
        write_ms(d, "lease", is_long ? complete_by : 50 + roll(d, complete_by - 50));
    }
    uint32_t threshold = 1 + roll(d, 3), rounds = roll(d, 3);
    rv_buf_printf(d->out, ",\"failures\":{\"threshold\":%u,\"rounds\":%u,", threshold, rounds);
    write_ms(d, "delay", roll(d, 500));
    rv_buf_lit(d->out, ",");
    write_ms(d, "cooldown", 50 + roll(d, 2000));
    if (!undo && roll(d, 5) == 0)
        rv_buf_lit(d->out, ",\"then\":\"error\"");
    rv_buf_lit(d->out, "}");
}

static const char *any_agent(struct draft *d)
{
    return workload_agent(roll(d, d->w->knobs.kinds));
}

static void write_undo_call(struct draft *d, const char *with)
{
    rv_buf_printf(d->out, "{\"u%u\":{\"call\":\"%s\",\"with\":{%s},\"metadata\":{\"reeve\":{",
                  d->names++, any_agent(d), with);
    write_policy(d, true);
    rv_buf_lit(d->out, "}}}}");
}

static void write_compensate(struct draft *d)
{
    uint32_t kind = roll(d, 100);
    if (kind < 8)
        return; /* nobody knows how */
    if (kind < 12) {
        rv_buf_lit(d->out, ",\"pivot\":true");
        return;
    }
    if (kind < 25) {
        rv_buf_lit(d->out, ",\"compensate\":\"none\"");
        return;
    }
    rv_buf_lit(d->out, ",\"compensate\":[");
    if (roll(d, 4) == 0)
        rv_buf_printf(d->out, "{\"u%u\":{\"wait\":{\"milliseconds\":%u}}},", d->names++,
                      1 + roll(d, 500));
    write_undo_call(d, "\"key\":\"${ $undo.idempotencyKey }\",\"outcome\":\"${ $undo.outcome }\","
                       "\"was\":\"${ $undo.output }\"");
    if (roll(d, 4) == 0) {
        rv_buf_lit(d->out, ",");
        write_undo_call(d, "\"note\":\"${ $undo.fence }\"");
    }
    rv_buf_lit(d->out, "]");
}

/* Every second one is an expression, which takes no draw of its own: seeds keep their worlds. */
static void write_duration(struct draft *d, uint32_t ms)
{
    if (ms % 2 == 0)
        rv_buf_printf(d->out, "{\"milliseconds\":%u}", ms);
    else
        rv_buf_printf(d->out, "\"${ {milliseconds: %u} }\"", ms);
}

static void write_timeout(struct draft *d, uint32_t ms)
{
    rv_buf_lit(d->out, ",\"timeout\":{\"after\":");
    write_duration(d, ms);
    rv_buf_lit(d->out, "}");
}

static void write_plain_call(struct draft *d)
{
    d->calls++;
    rv_buf_printf(d->out, "\"call\":\"%s\",\"with\":{\"roll\":\"${ ", any_agent(d));
    write_heavy(d);
    rv_buf_lit(d->out, "$workflow.input.roll }\"");
    /* No draw of its own. A retry of the try asks for something else then. */
    if (d->tries > 0 && d->names % ANEW_ONE_OF == 0)
        rv_buf_lit(d->out, ",\"at\":\"${ $task.startedAt.epoch.milliseconds }\"");
    rv_buf_lit(d->out, "},\"metadata\":{\"reeve\":{");
    write_policy(d, false);
    write_compensate(d);
    rv_buf_lit(d->out, "}}");
}

static void write_call(struct draft *d)
{
    write_plain_call(d);
    if (roll(d, 10) == 0)
        write_timeout(d, 50 + roll(d, 4000));
}

static void write_block(struct draft *d);

/* `when` and `exceptWhen`, of a catch or of a retry, in the forms that check_caught reads. */
static void write_conditions(struct draft *d)
{
    static const uint32_t statuses[] = {400, 408, 503};
    uint32_t kind = roll(d, 10);
    if (kind >= 3)
        return;
    uint32_t status = statuses[roll(d, 3)];
    rv_buf_printf(d->out, "\"%s\":\"${ %s.status == %u }\",", kind == 0 ? "when" : "exceptWhen",
                  roll(d, 2) ? "" : "$error", status);
}

static void write_try(struct draft *d)
{
    rv_buf_lit(d->out, "\"try\":");
    d->tries++;
    write_block(d);
    d->tries--;
    rv_buf_lit(d->out, ",\"catch\":{");
    if (roll(d, 2) == 0)
        rv_buf_printf(d->out, "\"errors\":{\"with\":{\"status\":%u}},", roll(d, 2) ? 503 : 408);
    write_conditions(d);
    bool retries = roll(d, 2) == 0;
    if (retries) {
        uint32_t delay = roll(d, 600), count = 1 + roll(d, 2);
        rv_buf_lit(d->out, "\"retry\":{");
        write_conditions(d);
        rv_buf_lit(d->out, "\"delay\":");
        write_duration(d, delay);
        rv_buf_printf(d->out, ",\"limit\":{\"attempt\":{\"count\":%u}}},", count);
    }
    if (!retries || roll(d, 2) == 0) {
        rv_buf_lit(d->out, "\"do\":");
        write_block(d);
        rv_buf_lit(d->out, ",");
    }
    rv_buf_lit(d->out, "\"as\":\"error\"}");
}

/* A later task of the same block may be skipped to: `then` names it. */
static void write_switch(struct draft *d, uint32_t later)
{
    static const char *const ways[] = {"continue", "exit", "end"};
    rv_buf_lit(d->out, "\"switch\":[{\"a\":{\"when\":\"");
    write_heavy(d);
    rv_buf_printf(d->out, "$workflow.input.roll < %u\",\"then\":", roll(d, 10));
    if (later != 0)
        rv_buf_printf(d->out, "\"s%u\"}}", later);
    else
        rv_buf_printf(d->out, "\"%s\"}}", ways[roll(d, 3)]);
    rv_buf_lit(d->out, ",{\"b\":{\"then\":\"continue\"}}]");
}

static void write_task(struct draft *d, uint32_t later)
{
    uint32_t kind = roll(d, 100);
    bool deeper = d->depth < DEPTH_MAX && d->calls < CALLS_MAX;
    if (kind < 55) {
        write_call(d);
    } else if (kind < 63) {
        rv_buf_lit(d->out, "\"set\":{\"seen\":\"${ ");
        write_heavy(d);
        rv_buf_lit(d->out, "$workflow.input.roll }\"}");
    } else if (kind < 71) {
        rv_buf_lit(d->out, "\"wait\":");
        write_duration(d, 1 + roll(d, 1500));
    } else if (kind < 79) {
        write_switch(d, later);
    } else if (kind < 82) {
        uint32_t status = roll(d, 2) ? 503 : 400, on = roll(d, 10);
        bool large = d->names % LARGE_ONE_OF == 0; /* no draw of its own: seeds keep their worlds */
        rv_buf_printf(d->out,
                      "\"raise\":{\"error\":{\"type\":\"%s\",\"status\":%u,"
                      "\"title\":\"%s\"}},\"if\":\"$workflow.input.roll == %u\"",
                      large ? TOO_LARGE : "https://example.com/raised", status,
                      large ? TOO_LARGE : "raised", on);
    } else if (kind < 94 && deeper) {
        write_try(d);
        if (roll(d, 6) == 0)
            write_timeout(d, 50 + roll(d, 4000));
    } else if (deeper) {
        rv_buf_lit(d->out, "\"do\":");
        write_block(d);
    } else {
        write_call(d);
    }
}

static void write_steps(struct draft *d)
{
    uint32_t count = 1 + roll(d, 3);
    uint32_t first = d->names;
    d->names += count;
    d->depth++;
    for (uint32_t i = 0; i < count; i++) {
        bool may_skip = i + 2 < count && roll(d, 2) == 0;
        rv_buf_printf(d->out, "%s{\"s%u\":{", i ? "," : "", first + i);
        size_t from = d->out->len;
        write_task(d, may_skip ? first + count - 1 : 0);
        workload_step_end(d->w, d->out, from, d->title, first + i);
        rv_buf_lit(d->out, "}}");
    }
    d->depth--;
}

static void write_block(struct draft *d)
{
    rv_buf_lit(d->out, "[");
    write_steps(d);
    rv_buf_lit(d->out, "]");
}

/* A call that nobody may take in time, and it does not matter: a task can end before it begins. */
static void write_impatient(struct draft *d)
{
    uint32_t first = d->names, ms = 1 + roll(d, 300);
    const char *then = roll(d, 2) ? "end" : "continue";
    d->names += 3;
    rv_buf_printf(d->out, "{\"s%u\":{\"try\":[{\"s%u\":{", first, first + 1);
    size_t from = d->out->len;
    write_plain_call(d);
    write_timeout(d, ms);
    workload_step_end(d->w, d->out, from, d->title, first + 1);
    rv_buf_printf(d->out,
                  "}}],\"catch\":{\"errors\":{\"with\":{\"status\":408}},\"do\":[{\"s%u\":{"
                  "\"set\":{\"late\":true}}}]},\"then\":\"%s\"}}",
                  first + 2, then);
}

/* Its decisions take many turns, or there are many of them. */
static bool is_slow(const struct world *w)
{
    return w->knobs.turn_fuel < TURN_FUEL_MIN || w->knobs.decision_kib < DECISION_KIB_MIN;
}

/* A try that is retried once for each of its calls, more of them than one decision once had room
 * for; most of their compensations call nobody and end at once. Each run makes another call; it
 * fails after it has had its effect, and is kept. Then the try gives all of them up, and what
 * follows may fail too. */
static void write_kept(struct draft *d)
{
    uint32_t first = d->names++;
    bool large = roll(d, 3) == 0, calls = roll(d, 2) == 0; /* its compensations */
    uint32_t count = !large ? 65 : calls || is_slow(d->w) ? 130 : 180;
    count += roll(d, 20);
    rv_buf_printf(d->out,
                  "{\"s%u\":{\"try\":[{\"pick\":{\"set\":{\"n\":\"${ ($context.n // 0) + 1 }\"},"
                  "\"export\":{\"as\":\"${ {n: .n} }\"}}}",
                  first);
    for (uint32_t i = 1; i <= count; i++) {
        rv_buf_printf(d->out,
                      ",{\"k%u\":{\"if\":\"$context.n == %u\",\"call\":\"%s\",\"with\":{"
                      "\"breaks\":true},\"metadata\":{\"reeve\":{",
                      i, i, any_agent(d));
        write_policy(d, true);
        rv_buf_lit(d->out, ",\"compensate\":");
        if (calls && i % 16 == 0) {
            rv_buf_lit(d->out, "[");
            write_undo_call(d, "\"key\":\"${ $undo.idempotencyKey }\"");
            rv_buf_lit(d->out, "]}}}}");
        } else if (i % 8 == 4) {
            rv_buf_lit(d->out, "\"none\"}}}}");
        } else {
            rv_buf_printf(d->out,
                          "[{\"u%u\":{\"if\":\"$undo.fence == 0\",\"call\":\"%s\"}},"
                          "{\"v%u\":{\"set\":{\"was\":\"${ $undo.outcome }\"}}}]}}}}",
                          d->names, workload_agent(0), d->names);
            d->names++;
        }
    }
    /* It ends by a run that calls nothing, by its catch, or by the error of the last call. */
    uint32_t end = roll(d, 3);
    rv_buf_printf(d->out,
                  "],\"catch\":{\"retry\":{\"delay\":{\"milliseconds\":1},\"limit\":{\"attempt\":{"
                  "\"count\":%u}}}%s}}},",
                  end == 0 ? count : count - 1,
                  end == 1 ? ",\"do\":[{\"left\":{\"set\":{\"left\":true}}}]" : "");
    if (roll(d, 2) == 0)
        rv_buf_printf(d->out,
                      "{\"s%u\":{\"call\":\"%s\",\"with\":{\"breaks\":true},\"metadata\":"
                      "{\"reeve\":{\"compensate\":\"none\"}}}},",
                      d->names++, any_agent(d));
}

void workload_random(struct world *w, struct rv_buf *out, const struct workload_title *title)
{
    struct draft d = {.w = w, .out = out, .title = title, .names = 1};
    rv_buf_printf(out,
                  "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"sim\",\"name\":\"w%u\","
                  "\"version\":\"%.*s\",\"metadata\":{\"reeve\":{",
                  title->workflow, RV_STR_FMT(title->version));
    write_policy(&d, false);
    rv_buf_lit(out, "}}},\"do\":[");
    if (roll(&d, 6) == 0) {
        write_impatient(&d);
        rv_buf_lit(out, ",");
    }
    bool kept = roll(&d, KEPT_ONE_OF) == 0;
    if (kept && w->knobs.tasks <= (is_slow(w) ? KEPT_TASKS_SLOW : KEPT_TASKS_MAX))
        write_kept(&d);
    write_steps(&d);
    rv_buf_lit(out, "]}");
}

bool workload_is_undo_end(struct rv_str reference)
{
    size_t at = reference.len;
    while (at > 0 && reference.at[at - 1] != '/')
        at--;
    return at < reference.len && reference.at[at] == 'v';
}

bool workload_undone_inside(const struct rv_definition *definition, uint32_t node)
{
    struct rv_str step = rv_definition_reference(definition, node);
    for (uint32_t n = node + 1; n <= rv_definition_nodes(definition); n++) {
        struct rv_str reference = rv_definition_reference(definition, n);
        if (!rv_str_begins(reference, step) || !workload_is_undo_end(reference))
            continue;
        struct rv_str rest = {reference.at + step.len, reference.len - step.len};
        if (rv_str_begins(rest, RV_STR("/metadata/reeve/compensate/")))
            return true;
    }
    return false;
}

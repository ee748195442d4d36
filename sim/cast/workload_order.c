/* The order of examples/orders: reserve, charge, ship; or undo all of it. */
#include "sim/cast/workload.h"

#include "sim/world/world.h"

static void step(struct world *w, struct rv_buf *out, const struct workload_title *title,
                 uint32_t number, const char *name, const char *undo)
{
    const char *agent = workload_agent((number - 1) % w->knobs.kinds);
    rv_buf_printf(out, "%s{\"%s\":{", number > 1 ? "," : "", name);
    size_t from = out->len;
    rv_buf_printf(out,
                  "\"call\":\"%s\",\"with\":{\"operation\":\"%s\",\"order\":\"${ "
                  "$workflow.input.number }\"},\"metadata\":{\"reeve\":{\"completeBy\":\"PT0.8S\","
                  "\"compensate\":[{\"%s\":{\"call\":\"%s\",\"with\":{\"key\":\"${ "
                  "$undo.idempotencyKey }\",\"outcome\":\"${ $undo.outcome }\"}}}]}}",
                  agent, name, undo, agent);
    workload_step_end(w, out, from, title, number);
    rv_buf_lit(out, "}}");
}

void workload_order(struct world *w, struct rv_buf *out, const struct workload_title *title)
{
    rv_buf_printf(out,
                  "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"sim\",\"name\":\"w%u\","
                  "\"version\":\"%.*s\",\"metadata\":{\"reeve\":{\"completeBy\":\"PT0.8S\","
                  "\"failures\":{\"threshold\":2,\"delay\":\"PT0.1S\",\"cooldown\":\"PT1S\","
                  "\"rounds\":1,\"then\":\"compensate\"}}}},\"do\":[",
                  title->workflow, RV_STR_FMT(title->version));
    step(w, out, title, 1, "reserve", "release");
    step(w, out, title, 2, "charge", "refund");
    step(w, out, title, 3, "ship", "cancel");
    rv_buf_lit(out, "]}");
}

/* The order of examples/orders: reserve, charge, ship; or undo all of it. */
#include "sim/workload.h"

#include "sim/world.h"

static void step(struct world *w, struct rv_buf *out, uint32_t kind, const char *name,
                 const char *undo)
{
    const char *agent = workload_agent(kind % w->knobs.kinds);
    rv_buf_printf(out,
                  "{\"%s\":{\"call\":\"%s\",\"with\":{\"operation\":\"%s\",\"order\":\"${ "
                  "$workflow.input.number }\"},\"metadata\":{\"reeve\":{\"completeBy\":\"PT0.8S\","
                  "\"compensate\":[{\"%s\":{\"call\":\"%s\",\"with\":{\"key\":\"${ "
                  "$undo.idempotencyKey }\",\"outcome\":\"${ $undo.outcome }\"}}}]}}}}",
                  name, agent, name, undo, agent);
}

void workload_order(struct world *w, struct rv_buf *out, const char *name)
{
    rv_buf_printf(out,
                  "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"sim\",\"name\":\"%s\","
                  "\"version\":\"1.0.0\",\"metadata\":{\"reeve\":{\"completeBy\":\"PT0.8S\","
                  "\"failures\":{\"threshold\":2,\"delay\":\"PT0.1S\",\"cooldown\":\"PT1S\","
                  "\"rounds\":1,\"then\":\"compensate\"}}}},\"do\":[",
                  name);
    step(w, out, 0, "reserve", "release");
    rv_buf_lit(out, ",");
    step(w, out, 1, "charge", "refund");
    rv_buf_lit(out, ",");
    step(w, out, 2, "ship", "cancel");
    rv_buf_lit(out, "]}");
}

#include "sim/cast/deed.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"
#include "sim/cast/workload.h"
#include "sim/check/check.h"
#include "sim/world/fault.h"
#include "sim/world/history.h"
#include "sim/world/world.h"

#include <string.h>

enum deed deed_draw(struct world *w, uint32_t agent, const struct errand *errand)
{
    static const struct {
        enum fault fault;
        enum deed deed;
    } faults[] = {
        {FAULT_HANG, DEED_HANG},
        {FAULT_FAIL_BEFORE, DEED_FAIL_BEFORE},
        {FAULT_REFUSE, DEED_REFUSE},
        {FAULT_FAIL_AFTER, DEED_FAIL_AFTER},
        {FAULT_BREAK_AFTER, DEED_BREAK_AFTER},
    };
    enum deed deed = DEED_DONE;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (fault_strikes(w, faults[i].fault, agent) && deed == DEED_DONE)
            deed = faults[i].deed;
    if (deed == DEED_DONE && errand->breaks)
        deed = DEED_BREAK_AFTER;
    return deed;
}

bool deed_is_dead(const struct world *w, const char *kind)
{
    return w->knobs.dead != 0 && strcmp(kind, workload_agent(0)) == 0;
}

bool deed_has_effect(enum deed deed)
{
    return deed == DEED_DONE || deed == DEED_FAIL_AFTER || deed == DEED_BREAK_AFTER ||
           deed == DEED_DENY;
}

void errand_read(struct world *w, struct rv_str input, struct rv_str own_key,
                 struct errand *ret_errand)
{
    struct rv_arena *arena = &w->history->scratch;
    struct rv_json parsed;
    rv_arena_reset(arena);
    *ret_errand = (struct errand){.undo = false};
    if (rv_json_parse(arena, input, RV_JSON_DEPTH_MAX, &parsed, NULL) != RV_OK) {
        world_violate(w, "I-28", "an agent got an input that is not JSON: %.*s", RV_STR_FMT(input));
        return;
    }
    struct rv_str key = rv_json_str(rv_json_get(&parsed, RV_STR("key")));
    ret_errand->undo = key.at != NULL;
    ret_errand->breaks = rv_json_get(&parsed, RV_STR("breaks")) != NULL;
    ret_errand->has_key = rv_json_get(&parsed, RV_STR("note")) == NULL;
    if (ret_errand->undo)
        check_outcome(w, key, rv_json_str(rv_json_get(&parsed, RV_STR("outcome"))));
    if (key.at == NULL)
        key = own_key;
    rv_assert(key.len < sizeof ret_errand->key);
    memcpy(ret_errand->key, key.at, key.len);
}

#include "sim/check/check.h"

#include "base/limits.h"
#include "json/json.h"
#include "sim/world/world.h"

static const struct rv_json *replies_of(struct world *w, struct rv_str request,
                                        struct rv_json *parsed)
{
    rv_arena_reset(&w->history->scratch);
    if (rv_json_parse(&w->history->scratch, request, RV_JSON_DEPTH_MAX, parsed, NULL) != RV_OK)
        return NULL;
    return rv_json_get(parsed, RV_STR("replies"));
}

static uint64_t token_at(const struct rv_json *item)
{
    return check_token(rv_json_str(rv_json_get(item, RV_STR("token"))));
}

void check_refused(struct world *w, struct refused *refused, struct rv_str request)
{
    struct rv_json parsed;
    const struct rv_json *replies = replies_of(w, request, &parsed);
    refused->count = 0;
    for (uint32_t i = 0; replies != NULL && i < replies->len; i++) {
        struct rv_str step = rv_json_str(rv_json_get(&replies->u.items[i], RV_STR("step")));
        if (refused->count == REFUSED_MAX ||
            rv_step_parse(step, &refused->steps[refused->count]) != RV_OK)
            continue;
        refused->tokens[refused->count++] = token_at(&replies->u.items[i]);
    }
}

/* Whether the attempt is still its agent's to answer, by what both know of it. */
static bool is_owed(struct world *w, const struct refused *refused, uint32_t n, int64_t agent_now)
{
    struct rv_step_id id = refused->steps[n];
    const struct step_past *step = history_step(history_task(w, id.task), id.number);
    return step != NULL && step->row.token == refused->tokens[n] &&
           step->row.attempt_state == RV_ATTEMPT_OPEN && agent_now < refused->stop_at[n];
}

/* what a server answered with 503 is sent again with the next reply, as long as it counts. */
void check_sent_again(struct world *w, struct refused *refused, struct rv_str request,
                      int64_t agent_now)
{
    struct rv_json parsed;
    if (refused->count == 0)
        return;
    const struct rv_json *replies = replies_of(w, request, &parsed);
    for (uint32_t n = 0; replies != NULL && n < refused->count; n++) {
        bool there = false;
        for (uint32_t i = 0; i < replies->len; i++)
            there |= token_at(&replies->u.items[i]) == refused->tokens[n];
        if (!there && is_owed(w, refused, n, agent_now))
            world_violate(w, "A-07", "a reply of step %u was answered 503 and is not sent again",
                          refused->steps[n].number);
    }
    refused->count = 0;
}

#include "sim/check.h"

#include "sim/server.h"
#include "sim/workload.h"
#include "sim/world.h"

/* Where the server's clock jumps, complete-by may pass early for the agents, and where they
 * outlive their deadlines on purpose nobody can help it: tombstones and fences are for that. */
static bool clocks_are_good(const struct world *w)
{
    return w->knobs.clock_jump == 0;
}

/* I-15: an agent that keeps its deadline never meets a step that is undone already. */
void check_effect_after_undo(struct world *w, const struct effect *effect, bool zombie)
{
    if (clocks_are_good(w) && !zombie)
        world_violate(w, "I-15",
                      "the effect of %s comes %lld ms after its undo, and its agent kept its "
                      "deadline",
                      effect->key, (long long)(w->now - effect->undone_at));
}

/* I-14: nothing is undone while an agent that keeps its deadline is at work on it. */
void check_undo_beside_work(struct world *w, const struct effect *effect)
{
    if (clocks_are_good(w) && effect->working > 0)
        world_violate(w, "I-14", "%s is undone while an agent is at work on it", effect->key);
}

/* P3, P4, I-16 against the services' own books: a processed step had its effect, and keeps it; a
 * step that says it had none, had none; nothing of a task that was undone is left. */
static void check_step_effect(struct world *w, const struct task_past *past,
                              const struct step_past *step)
{
    char text[RV_STEP_TEXT_BYTES];
    struct rv_str key = rv_step_text((struct rv_step_id){past->row.id, step->row.number}, text);
    const struct effect *effect = ledger_find(w, key);
    bool left = effect != NULL && effect->applied && !effect->undone;
    bool over = past->row.state == RV_TASK_COMPENSATED || past->row.state == RV_TASK_CANCELLED;
    enum rv_undo_way way = rv_definition_undo_way(past->definition, step->row.node);
    if (step->row.state == RV_STEP_PROCESSED && (effect == NULL || !effect->applied))
        world_violate(w, "P-03", "%s is processed and never had its effect", text);
    if (past->row.state == RV_TASK_PROCESSED && step->row.state == RV_STEP_PROCESSED && !left)
        world_violate(w, "P-03", "%s is processed, but was undone", text);
    if (step->row.effect == RV_EFFECT_NONE && effect != NULL && effect->applied)
        world_violate(w, "I-16", "%s had an effect, but its row says none", text);
    if (over && left && way != RV_UNDO_NOTHING)
        world_violate(w, "P-04", "the task is %s, but the effect of %s stays",
                      rv_task_state_text(past->row.state), text);
    if (step->row.undone && way == RV_UNDO_STEPS && (effect == NULL || !effect->undone))
        world_violate(w, "P-04", "%s counts as undone, but no service undid it", text);
}

void check_ledger(struct world *w)
{
    for (size_t i = 0; i < w->history->count && w->violated == NULL; i++) {
        const struct task_past *past = w->history->all[i];
        for (uint32_t n = 1; n < past->room; n++) {
            const struct step_past *step = &past->steps[n];
            if (step->row.number != 0 && step->row.kind == RV_KIND_CALL &&
                step->row.direction == RV_FORWARD)
                check_step_effect(w, past, step);
        }
    }
}

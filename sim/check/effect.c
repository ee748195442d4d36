#include "sim/check/check.h"

#include "examples/orders/stand.h"
#include "sim/store/database.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

/* Where the server's clock has jumped, or runs otherwise than the agents', complete-by may pass
 * early for them, and where they outlive their deadlines on purpose nobody can help it: tombstones
 * and fences are for that. */

static bool lacks(struct world *w, const struct effect *effect)
{
    struct rv_step_id id;
    return rv_step_parse(rv_str_of(effect->key), &id) == RV_OK && history_lacks(w, id.task);
}

/* I-15: an agent that keeps its deadline never meets a step that is undone already. */
void check_effect_after_undo(struct world *w, const struct effect *effect, bool zombie)
{
    if (database_clock_good(w) && !zombie && !lacks(w, effect))
        world_violate(w, "I-15",
                      "the effect of %s comes %lld ms after its undo, and its agent kept its "
                      "deadline",
                      effect->key, (long long)(w->now - effect->undone_at));
}

/* I-14: nothing is undone while an agent that keeps its deadline is at work on it. */
void check_undo_beside_work(struct world *w, const struct effect *effect)
{
    if (database_clock_good(w) && effect->working > 0 && !lacks(w, effect))
        world_violate(w, "I-14", "%s is undone while an agent is at work on it", effect->key);
}

/* L-06: a compensation is told "completed" only of what has happened; else it has to find out. */
void check_outcome(struct world *w, struct rv_str key, struct rv_str outcome)
{
    const struct effect *effect = ledger_find(w, key);
    bool happened = effect != NULL && (effect->applied || effect->undone);
    if (rv_str_is(outcome, "completed") && !happened)
        world_violate(w, "L-06", "a compensation is told that %.*s was completed, and it was not",
                      RV_STR_FMT(key));
}

/* The ledger's own words, as the shop's proof reads them. */
static struct shop_stand stand_of(const struct effect *effect)
{
    if (effect == NULL)
        return (struct shop_stand){0};
    return (struct shop_stand){.done = effect->applied,
                               .undone = effect->applied && effect->undone,
                               .barred = !effect->applied && effect->undone};
}

static enum shop_end end_of(const struct task_past *past, const struct step_past *step)
{
    if (past->row.state == RV_TASK_PROCESSED && step->row.state == RV_STEP_PROCESSED)
        return SHOP_PROCESSED;
    bool undone = past->row.state == RV_TASK_COMPENSATED ||
                  (past->row.state == RV_TASK_CANCELLED && !past->abandoned);
    return undone ? SHOP_COMPENSATED : SHOP_ERROR;
}

/* The row takes the agent's false word that nothing was done; its correction has not arrived, or
 * came when the task had gone past the step, and calls an operator (P-02). */
static bool is_deceived(const struct step_past *step, const struct effect *effect)
{
    return effect != NULL && effect->denied &&
           (step->row.effect == RV_EFFECT_NONE || step->call_late);
}

/* P3, P4, I-16 against the services' own books: a processed step had its effect, and keeps it; a
 * step whose last attempt has ended and that says it had none, had none; nothing of a task that was
 * undone is left. The shop's real ledgers are held against the same rule (stand.h). */
static void check_step_effect(struct world *w, const struct task_past *past,
                              const struct step_past *step)
{
    char text[RV_STEP_TEXT_BYTES];
    struct rv_str key = rv_step_text((struct rv_step_id){past->row.id, step->row.number}, text);
    const struct effect *effect = ledger_find(w, key);
    struct shop_stand stand = stand_of(effect);
    enum rv_undo_way way = rv_definition_undo_way(past->definition, step->row.node);
    if (way == RV_UNDO_STEPS && workload_undone_inside(past->definition, step->row.node))
        way = RV_UNDO_NOTHING; /* no service hears of it; I-16 sees that it was carried out */
    enum shop_end end = end_of(past, step);
    bool deceived = is_deceived(step, effect);
    const char *wrong = end == SHOP_COMPENSATED && (way == RV_UNDO_NOTHING || deceived)
                            ? NULL
                            : shop_stand_wrong(end, &stand);
    if (wrong != NULL)
        world_violate(w, end == SHOP_COMPENSATED ? "P-04" : "P-03", "%s, of a task that is %s, %s",
                      text, rv_task_state_text(past->row.state), wrong);
    if (step->row.state == RV_STEP_PROCESSED && stand.done == 0)
        world_violate(w, "P-03", "%s is processed and never had its effect", text);
    bool ended = !rv_attempt_state_live(step->row.attempt_state);
    if (step->row.effect == RV_EFFECT_NONE && ended && stand.done != 0 && !deceived)
        world_violate(w, "I-16", "%s had an effect, but its row says none", text);
    if (step->row.undone && way == RV_UNDO_STEPS && stand.undone + stand.barred == 0)
        world_violate(w, "P-04", "%s counts as undone, but no service undid it", text);
}

void check_ledger(struct world *w)
{
    for (size_t i = 0; i < w->history->count && w->violated == NULL; i++) {
        const struct task_past *past = w->history->all[i];
        if (history_lacks(w, past->row.id))
            continue;
        for (uint32_t n = 1; n < past->room; n++) {
            const struct step_past *step = &past->steps[n];
            if (step->row.number != 0 && step->row.kind == RV_KIND_CALL && !step->assumed &&
                step->row.direction == RV_FORWARD)
                check_step_effect(w, past, step);
        }
    }
}

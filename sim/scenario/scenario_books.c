/* How a scenario must end: the states of its tasks, and what the services' own books say. */
#include "sim/scenario/script.h"

#include "sim/check/check.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <string.h>

/* What was found for one book. A step may have been visited more than once. */
struct found {
    uint32_t stays;
    uint32_t asked;
    uint32_t undos;
    int64_t undone_first;
    int64_t undone_last;
};

static const char *name_of(const struct task_past *past, const struct step_past *step)
{
    struct rv_str reference = rv_definition_reference(past->definition, step->row.node);
    const char *last = reference.at;
    for (size_t i = 0; i < reference.len; i++)
        if (reference.at[i] == '/')
            last = reference.at + i + 1;
    return last;
}

static size_t book_of(const struct scenario *s, uint32_t task, const char *name)
{
    size_t i = 0;
    while (i < SCENARIO_BOOKS_MAX && s->books[i].step != NULL &&
           (s->books[i].task != task || strcmp(s->books[i].step, name) != 0))
        i++;
    return i;
}

static void add(struct found *found, const struct effect *effect)
{
    found->stays += effect->applied && !effect->undone;
    found->asked += effect->asked;
    found->undos += effect->undo_asked;
    if (!effect->undone)
        return;
    if (found->undone_first == 0 || effect->undone_at < found->undone_first)
        found->undone_first = effect->undone_at;
    if (effect->undone_at > found->undone_last)
        found->undone_last = effect->undone_at;
}

static void task_read(struct world *w, uint32_t number, struct found *found)
{
    const struct task_past *past = history_task(w, w->script->tasks[number]);
    for (uint32_t n = 1; past != NULL && n < past->room; n++) {
        const struct step_past *step = &past->steps[n];
        if (step->row.number == 0 || step->row.kind != RV_KIND_CALL ||
            step->row.direction != RV_FORWARD)
            continue;
        char text[RV_STEP_TEXT_BYTES];
        struct rv_str key = rv_step_text((struct rv_step_id){past->row.id, n}, text);
        const struct effect *effect = ledger_find(w, key);
        size_t book = book_of(w->scenario, number, name_of(past, step));
        if (book == SCENARIO_BOOKS_MAX || w->scenario->books[book].step == NULL)
            world_violate(w, "E-03", "step %s has no book", name_of(past, step));
        else if (effect != NULL)
            add(&found[book], effect);
    }
}

static void check_ends(struct world *w)
{
    for (uint32_t i = 0; i < w->scenario->tasks; i++) {
        const struct task_past *past = history_task(w, w->script->tasks[i]);
        if (past == NULL || past->row.state != w->scenario->ends[i])
            world_violate(w, "E-02", "task %u is %s, not %s", i,
                          past ? rv_task_state_text(past->row.state) : "not there",
                          rv_task_state_text(w->scenario->ends[i]));
    }
}

/* Each crash may cost one more request, and one more undo. */
static void check_book(struct world *w, const struct book *book, const struct found *found)
{
    uint32_t crashes = w->crossings->planned_count;
    bool open = book->open && crashes > 0;
    if (open ? found->stays > book->stays : found->stays != book->stays)
        world_violate(w, "E-03", "%u effects of %s are left, there should be %u", found->stays,
                      book->step, book->stays);
    bool asked = crashes > 0 ? found->asked <= book->asked + crashes : found->asked == book->asked;
    bool undos = crashes > 0 ? found->undos <= book->undos + crashes : found->undos == book->undos;
    if (!asked || !undos)
        world_violate(w, "E-03", "%s was asked for %u times and its undo %u times, not %u and %u",
                      book->step, found->asked, found->undos, book->asked, book->undos);
}

/* Compensations in the reverse order of the way forward. */
static void check_undo_order(struct world *w, const struct found *found)
{
    const struct book *books = w->scenario->books;
    for (size_t i = 0; i < SCENARIO_BOOKS_MAX && books[i].step != NULL; i++)
        for (size_t k = i + 1; k < SCENARIO_BOOKS_MAX && books[k].step != NULL; k++)
            if (books[i].task == books[k].task && found[i].undone_first != 0 &&
                found[k].undone_last > found[i].undone_first)
                world_violate(w, "E-04", "%s was undone before %s", books[i].step, books[k].step);
}

void scenario_check(struct world *w)
{
    const struct scenario *s = w->scenario;
    struct found found[SCENARIO_BOOKS_MAX] = {{0}};
    if (w->crossings->met != w->crossings->planned_count)
        world_violate(w, "E-01", "only %u of %u crashes were come to", w->crossings->met,
                      w->crossings->planned_count);
    if (w->crossings->planned_count == 0 && w->script->next != s->acts_count)
        world_violate(w, "E-02", "act %u never came", w->script->next + 1);
    check_ends(w);
    for (uint32_t i = 0; i < s->tasks; i++)
        task_read(w, i, found);
    for (size_t i = 0; i < SCENARIO_BOOKS_MAX && s->books[i].step != NULL; i++)
        check_book(w, &s->books[i], &found[i]);
    check_undo_order(w, found);
}

#include "sim/store/rewind.h"

#include "base/assert.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

struct note {
    uint64_t number;      /* of the store's transaction */
    struct rv_task_id id; /* the task */
    struct task_past was; /* its steps are owned by the note */
};

struct rewind {
    struct note *notes; /* owned, the oldest first */
    size_t count;
    size_t room;
    struct rv_map lost; /* tasks that were */
};

void rewind_new(struct world *w)
{
    w->rewind = calloc(1, sizeof *w->rewind);
    rv_assert(w->rewind != NULL);
    rv_map_init(&w->rewind->lost);
}

void rewind_free(struct world *w)
{
    struct rewind *r = w->rewind;
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->count; i++)
        free(r->notes[i].was.steps);
    free(r->notes);
    rv_map_done(&r->lost);
    free(r);
}

/* What no store can lose any more. */
static void notes_trim(struct rewind *r, uint64_t number)
{
    size_t old = 0;
    while (old < r->count && r->notes[old].number + REWIND_MAX < number)
        free(r->notes[old++].was.steps);
    if (old == 0)
        return;
    memmove(r->notes, r->notes + old, (r->count - old) * sizeof *r->notes);
    r->count -= old;
}

void rewind_note(struct world *w, const struct task_past *past, uint64_t number)
{
    struct rewind *r = w->rewind;
    if (r == NULL)
        return;
    if (r->count == r->room) {
        notes_trim(r, number);
        r->room = 2 * r->count + 64;
        r->notes = realloc(r->notes, r->room * sizeof *r->notes);
        rv_assert(r->notes != NULL);
    }
    struct note *note = &r->notes[r->count++];
    *note = (struct note){.number = number, .id = w->concerned, .was = *past};
    if (past->room == 0)
        return;
    note->was.steps = malloc(past->room * sizeof *past->steps);
    rv_assert(note->was.steps != NULL);
    memcpy(note->was.steps, past->steps, past->room * sizeof *past->steps);
}

static void note_undo(struct world *w, const struct note *note)
{
    struct task_past *past = history_task(w, note->id);
    uint32_t lost = past->lost_commits + 1;
    w->history->open -= rv_task_state_open(past->row.state);
    w->history->open += note->was.row.revision != 0 && rv_task_state_open(note->was.row.state);
    free(past->steps);
    *past = note->was;
    past->lost_commits = lost;
    if (past->row.revision != 0)
        return;
    /* It never was. Tasks stand in the order of their first commits: it is the last one. */
    rv_assert(w->history->all[w->history->count - 1] == past);
    enum rv_err err = rv_map_put(&w->rewind->lost, (uint64_t)note->id.value, 0, 1);
    rv_assert(err == RV_OK);
    history_forget_last(w, note->id);
}

void rewind_to(struct world *w, uint64_t number)
{
    struct rewind *r = w->rewind;
    while (r->count > 0 && r->notes[r->count - 1].number > number)
        note_undo(w, &r->notes[--r->count]);
    w->history->moved = (struct rv_task_id){0};
    w->history->held_by = 0;
    w->history->held_epoch = 0; /* it may be given again */
}

bool rewind_any(const struct world *w)
{
    return w->rewind != NULL && w->rewind->lost.count > 0;
}

bool rewind_lost(const struct world *w, struct rv_task_id task)
{
    return w->rewind != NULL && rv_map_find(&w->rewind->lost, (uint64_t)task.value, 0) != NULL;
}

/* The operator's word on a bulk command: it begins, pauses, goes on, or stops for good. */

#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"
#include "scheduler/calls/selections.h"
#include "scheduler/duties/bulk.h"

static enum rv_err bulk_begin(struct rv_scheduler *s, struct pending *p,
                              struct rv_selection *selection)
{
    const struct rv_call_bulk *bulk = &p->call->u.bulk;
    size_t all, open;
    rv_assert(bulk->ask == RV_BULK_BEGIN);
    if (selection->begun.at != 0)
        return call_refuse(p->call, RV_ERR_REFUSED,
                           call_printf(p->call,
                                       "this selection already has a command: %s%s; create a new "
                                       "selection for another command",
                                       rv_bulk_verb_text(selection->verb),
                                       selection->stopped.at != 0 ? ", which was stopped"
                                       : selection->ended_at != 0 ? ", which has ended"
                                       : selection->paused        ? ", which is paused"
                                                                  : ", which is running"));
    if (selection_old(s, selection))
        return call_refuse(
            p->call, RV_ERR_REFUSED,
            RV_STR("this selection is too old and will be deleted soon: create a new selection"));
    enum rv_err err = selections_count(s, &all, &open);
    if (err != RV_OK)
        return err;
    if (open >= RV_BULKS_OPEN_MAX)
        return call_refuse(
            p->call, RV_ERR_LIMIT,
            RV_STR("the maximum number of running and paused bulk commands is reached: "
                   "wait until one of them has ended, or stop one with `reeve bulk stop "
                   "SELECTION`"));
    selection->begun = bulk->word;
    selection->begun.at = s->batch.now;
    selection->verb = bulk->verb;
    selection->abandon = bulk->abandon;
    selection->by_hand = bulk->by_hand;
    selection->late_seen = bulk->late_seen;
    selection->rate = bulk->rate;
    return selection_put(s, selection, 0);
}

static enum rv_err bulk_stop(struct rv_scheduler *s, struct pending *p,
                             struct rv_selection *selection)
{
    rv_assert(selection->begun.at != 0);
    rv_assert(selection->stopped.at == 0);
    rv_assert(selection->ended_at == 0);
    selection->stopped = p->call->u.bulk.word;
    selection->stopped.at = s->batch.now;
    return selection_put(s, selection, 0);
}

static enum rv_err bulk_hold(struct rv_scheduler *s, struct pending *p,
                             struct rv_selection *selection)
{
    const struct rv_call_bulk *bulk = &p->call->u.bulk;
    bool pause = bulk->ask == RV_BULK_PAUSE;
    rv_assert(pause || bulk->ask == RV_BULK_RESUME);
    rv_assert(selection->begun.at != 0);
    rv_assert(selection->stopped.at == 0);
    rv_assert(selection->ended_at == 0);
    if (selection->paused == pause)
        return RV_OK;
    selection->paused = pause;
    struct rv_word word = bulk->word;
    word.at = s->batch.now;
    enum rv_err err = rv_selection_hold(&p->call->arena, selection, &word, pause);
    return err == RV_OK ? selection_put(s, selection, 0) : err;
}

/* A word on a command that was begun. */
static enum rv_err bulk_change(struct rv_scheduler *s, struct pending *p,
                               struct rv_selection *selection)
{
    bool stop = p->call->u.bulk.ask == RV_BULK_STOP;
    char text[RV_ID_TEXT_BYTES];
    if (selection->begun.at == 0)
        return call_refuse(p->call, RV_ERR_REFUSED,
                           RV_STR("this selection has no command yet: start one with `reeve bulk "
                                  "COMMAND SELECTION`"));
    if (stop && selection->stopped.at != 0)
        return RV_OK;
    if (selection->ended_at != 0 || selection->stopped.at != 0)
        return call_refuse(
            p->call, RV_ERR_REFUSED,
            rv_arena_printf(&p->call->arena, "the command of selection %.*s %s",
                            RV_STR_FMT(rv_task_text(selection->id, text)),
                            selection->stopped.at != 0 ? "was stopped" : "has ended"));
    s->batch.held = selection->id;
    return stop ? bulk_stop(s, p, selection) : bulk_hold(s, p, selection);
}

static enum rv_err bulk_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_call_bulk *bulk = &p->call->u.bulk;
    p->waits_turn = s->batch.record_changes++ > 0;
    if (p->waits_turn)
        return RV_OK;
    rv_assert(s->batch.record_changes == 1);
    rv_assert(s->batch.held.value == 0);
    enum rv_err err = selection_find(s->store, p->call, bulk->selection, &bulk->row);
    if (err != RV_OK || p->call->err != RV_OK)
        return err;
    return bulk->ask == RV_BULK_BEGIN ? bulk_begin(s, p, &bulk->row)
                                      : bulk_change(s, p, &bulk->row);
}

static void bulk_act(struct rv_scheduler *s, struct pending *p)
{
    if (!record_turn(s, p))
        return;
    if (p->call->err == RV_OK && s->batch.taskless == RV_OK)
        bulk_told(s, &p->call->u.bulk);
    answers_taskless_act(s, p);
}

const struct call_ops bulk_ops = {.decide = bulk_decide, .act = bulk_act};

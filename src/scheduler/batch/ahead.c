/* A load is a round trip to the store, so a batch asks for all that it will most likely need
 * before it decides anything: small calls first, of large ones the first piece, then what the
 * duties will need and what long decisions came to, what is due, and, where others write, too, what
 * its polls will be given. The last two are claimed: others leave them alone meanwhile. The bytes
 * are bounded as those of any part of a batch; what does not fit is loaded by the part that needs
 * it. */
#include "scheduler/batch/ahead.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "dispatch/agents.h"
#include "dispatch/kind.h"
#include "dispatch/routing.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/call.h"

enum { STEPS_MAX = 2 * RV_BATCH_COMMANDS_MAX, KEYS_MAX = RV_BATCH_COMMANDS_MAX, NAMES_MAX = 64 };

/* What is named so far. */
struct names {
    struct rv_step_id *ids;
    size_t count;
    size_t most;
};

static void calls_name(struct rv_scheduler *s, bool large, struct names *names)
{
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next)
        if (p->ops->wants != NULL && p->large == large)
            names->count += p->ops->wants(s, p, names->ids + names->count,
                                          names->most - names->count);
    rv_assert(names->count <= names->most);
}

/* What falls due while the store answers is due in this batch, too. */
static void dues_name(struct rv_scheduler *s, struct names *names)
{
    struct rv_task_id due[RV_HEAP_LEAST_MAX];
    size_t left = names->most - names->count;
    size_t most = left < s->options.findings_max ? left : s->options.findings_max;
    int64_t now = rv_time_add(s->batch.expected_now, s->batch.begin_ms);
    size_t count = rv_supervisor_next(&s->supervisor, now, due, most);
    for (size_t i = 0; i < count; i++)
        names->ids[names->count++] = (struct rv_step_id){due[i], 0};
}

/* The agents whose steps the call polls for; NULL: it does not poll, or no such agent is known. */
static struct agent_kind *polled_kind(const struct rv_scheduler *s, const struct pending *p)
{
    return p->poll != NULL && !p->left ? agents_kind_find(&s->agents, p->poll->agent) : NULL;
}

static void kind_name(const struct rv_scheduler *s, struct agent_kind *kind, struct names *names)
{
    names->count += routing_next(kind, s->batch.turn, s->batch.expected_now,
                                 names->ids + names->count, names->most - names->count);
}

static void ready_name(struct rv_scheduler *s, struct names *names)
{
    if (!s->enlistment.shared || s->draining || s->agents.recovering)
        return;
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next) {
        struct agent_kind *kind = polled_kind(s, p);
        if (kind != NULL)
            routing_expect(kind, p->poll->max, s->batch.turn);
    }
    for (struct agent_kind *kind = s->agents.stirring; kind != NULL; kind = kind->stirs_next) {
        if (kind->parked_count > 0) /* a limit may have held back what they ask for */
            routing_expect(kind, (uint32_t)kind->parked_count, s->batch.turn);
        kind_name(s, kind, names);
    }
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next) {
        struct agent_kind *kind = polled_kind(s, p);
        if (kind != NULL)
            kind_name(s, kind, names);
    }
}

static enum rv_err keys_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    struct rv_str *keys = rv_arena_take(s->batch.arena, KEYS_MAX * sizeof *keys);
    if (keys == NULL)
        return RV_ERR_MEMORY;
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next) {
        if (p->ops->keys == NULL)
            continue;
        p->keys_in = s->batch.turn;
        p->keys_from = wants->keys_count;
        p->keys_count = p->ops->keys(s, p, keys + wants->keys_count, KEYS_MAX - wants->keys_count);
        wants->keys_count += p->keys_count;
    }
    wants->keys = keys;
    return RV_OK;
}

static bool is_among(const struct rv_workflow_name *names, size_t count,
                     const struct rv_workflow_name *name)
{
    size_t i = 0;
    while (i < count &&
           !(rv_str_eq(names[i].space, name->space) && rv_str_eq(names[i].name, name->name) &&
             rv_str_eq(names[i].version, name->version)))
        i++;
    return i < count;
}

/* Only where others publish, too, and what a name means may be asked for in every batch. */
static enum rv_err workflows_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    struct rv_workflow_name *names = rv_arena_take(s->batch.arena, NAMES_MAX * sizeof *names);
    if (names == NULL)
        return RV_ERR_MEMORY;
    for (struct pending *p = s->batch.calls.first; p != NULL && s->workflows.shared; p = p->next) {
        size_t count = wants->names_count;
        if (p->ops->names != NULL)
            count += p->ops->names(s, p, names + count, NAMES_MAX - count);
        rv_assert(count <= NAMES_MAX);
        for (size_t i = wants->names_count; i < count; i++)
            if (!workflow_name_known(&s->workflows, &names[i]) &&
                !is_among(names, wants->names_count, &names[i]))
                names[wants->names_count++] = names[i];
    }
    wants->names = names;
    return RV_OK;
}

static bool calls_tell(const struct rv_scheduler *s)
{
    const struct pending *p = s->batch.calls.first;
    while (p != NULL && !p->ops->tells)
        p = p->next;
    return p != NULL;
}

enum rv_err ahead_name(struct rv_scheduler *s, ahead_duties_fn *duties_want,
                       struct rv_wants *ret_wants)
{
    struct names names = {.most = s->shortage.halvings > 0 ? share_piece(s) : STEPS_MAX};
    names.ids = rv_arena_take(s->batch.arena, names.most * sizeof *names.ids);
    struct rv_task_id *fresh = rv_arena_take(s->batch.arena, names.most * sizeof *fresh);
    if (names.ids == NULL || fresh == NULL)
        return RV_ERR_MEMORY;
    calls_name(s, false, &names);
    calls_name(s, true, &names);
    size_t before = names.count;
    names.count += duties_want(s, names.ids + names.count, names.most - names.count);
    s->batch.histories = names.count > before || calls_tell(s);
    names.count += evaluations_want(s, names.ids + names.count, names.most - names.count);
    *ret_wants = (struct rv_wants){
        .arena = s->batch.arena, .ids = fresh, .histories = s->batch.histories};
    work_load_begin(s);
    ret_wants->count = work_load_name(s, names.ids, names.count, fresh);
    before = names.count;
    dues_name(s, &names);
    ready_name(s, &names);
    ret_wants->claims = work_load_name(s, names.ids + before, names.count - before,
                                       fresh + ret_wants->count);
    ret_wants->count += ret_wants->claims;
    ret_wants->bytes_max = share_left(s);
    RV_TRY(keys_name(s, ret_wants));
    return workflows_name(s, ret_wants);
}

enum rv_err ahead_take(struct rv_scheduler *s, const struct rv_wants *wants)
{
    s->batch.key_rows = wants->key_rows;
    RV_TRY(workflow_names_learn(&s->workflows, wants->names, wants->name_ids, wants->names_count));
    return work_load_take(s, wants);
}

enum rv_err ahead_load_rest(struct rv_scheduler *s)
{
    struct names names = {.most = STEPS_MAX};
    names.ids = rv_arena_take(s->batch.arena, STEPS_MAX * sizeof *names.ids);
    enum rv_err err = names.ids != NULL ? RV_OK : RV_ERR_MEMORY;
    for (int large = 0; err == RV_OK && large <= 1; large++) {
        names.count = 0;
        calls_name(s, large == 1, &names);
        share_enter(s, large == 1 ? SHARE_LARGE : SHARE_SMALL);
        err = work_prefetch(s, names.ids, names.count);
    }
    share_enter(s, SHARE_NONE);
    return err;
}

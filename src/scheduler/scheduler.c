/* The cycle: everything that waits is one batch. Load what it names, decide each command
 * on values, commit all of it at once, and only then act: answer, park, remember. Whatever is kept
 * between batches is a cache over the open rows and can be rebuilt from them. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/kind.h"
#include "dispatch/valid.h"
#include "scheduler/batch/absence.h"
#include "scheduler/batch/ahead.h"
#include "scheduler/batch/accounts.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/commit.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/instance.h"
#include "scheduler/batch/left.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/own.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/pending_list.h"
#include "scheduler/batch/registered.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/wake.h"
#include "scheduler/batch/work.h"
#include "scheduler/batch/workflows.h"
#include "scheduler/calls/alerts.h"
#include "scheduler/calls/hand_out.h"
#include "scheduler/calls/keys.h"
#include "scheduler/calls/operate.h"
#include "scheduler/calls/polls.h"
#include "scheduler/calls/reads.h"
#include "scheduler/calls/selections.h"
#include "scheduler/duties/alerts.h"
#include "scheduler/duties/bulk.h"
#include "scheduler/duties/clock.h"
#include "scheduler/duties/deliveries.h"
#include "scheduler/duties/duty.h"
#include "scheduler/duties/overdue.h"
#include "scheduler/duties/place.h"
#include "scheduler/duties/retention.h"
#include "scheduler/duties/scan.h"
#include "scheduler/duties/shares.h"
#include "scheduler/duties/steal.h"
#include "scheduler/duties/takeover.h"
#include "scheduler/forget.h"
#include "scheduler/watch/counts.h"
#include "scheduler/watch/failures.h"
#include "scheduler/watch/spans.h"

#include <stdlib.h>

enum { SCAN_INTERVAL_MS_DEFAULT = 1000, ROLE_LEASE_MS_DEFAULT = 5000 };
/* The store's clock stands while the wall clock is behind it: no use in looking all the time. */
enum { CLOCK_STANDS_MS = 20 };
/* A task whose change the store refused, and perhaps its escalation too, is left alone so long. */
enum { OFFENDER_REST_MS = 60 * RV_SECOND_MS };
/* An end before which somebody may have answered is looked at again when that has been read. */
enum { END_UNKNOWN_MS = 2 };

static const struct duty *const duties[] = {
#define DUTY(name) &name##_duty,
    RV_DUTIES(DUTY)
#undef DUTY
};
enum { DUTIES = sizeof duties / sizeof duties[0] };

/* That part of each duty, in their order; the function returns with the first error. */
#define DUTIES_TRY(part)                                                                           \
    do {                                                                                           \
        for (size_t i = 0; i < DUTIES; i++) {                                                      \
            if (duties[i]->part != NULL)                                                           \
                RV_TRY(duties[i]->part(s));                                                        \
        }                                                                                          \
    } while (0)

enum rv_err rv_scheduler_open(const struct rv_scheduler_options *options,
                              struct rv_scheduler **ret_scheduler)
{
    struct rv_scheduler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return RV_ERR_MEMORY;
    s->options = *options;
    if (s->options.scan_interval_ms == 0)
        s->options.scan_interval_ms = SCAN_INTERVAL_MS_DEFAULT;
    if (s->options.role_lease_ms == 0)
        s->options.role_lease_ms = ROLE_LEASE_MS_DEFAULT;
    if (s->options.polls_parked_max == 0)
        s->options.polls_parked_max = RV_POLLS_PARKED_MAX;
    if (s->options.batch_bytes_max == 0)
        s->options.batch_bytes_max = RV_BATCH_BYTES_MAX;
    if (s->options.findings_max == 0 || s->options.findings_max > RV_FINDINGS_MAX)
        s->options.findings_max = RV_FINDINGS_MAX;
    s->store = options->store;
    rv_prng_init(&s->prng, options->seed);
    rv_arena_init(&s->arena, 0);
    workflow_cache_init(&s->workflows, s->store, s->options.hash_key, &s->batch.arena,
                        &s->batch_number);
    accounts_init(&s->accounts);
    evaluations_init(&s->evaluations);
    supervisor_init(s);
    agents_init(&s->agents, options->hash_key, options->circuits_max);
    rv_map_init(&s->waiters);
    rv_heap_init(&s->parked_until);
    rv_map_init(&s->owned);
    rv_map_init(&s->suspended);
    rv_map_init(&s->parked_by_serial);
    rv_map_init(&s->parked_polls);
    rv_map_init(&s->batch.works_by_id);
    rv_map_init(&s->batch.skipped);
    rv_map_init(&s->batch.named);
    rv_map_init(&s->batch.by_serial);
    rv_map_init(&s->batch.left);
    rv_map_init(&s->refused_at_stop);
    s->failures = calloc(1, sizeof *s->failures);
    s->boot = rv_str_dup(options->boot);
    enum rv_err err = s->failures != NULL && s->boot != NULL ? RV_OK : RV_ERR_MEMORY;
    for (size_t i = 0; err == RV_OK && i < DUTIES; i++)
        if (duties[i]->open != NULL)
            err = duties[i]->open(s);
    if (err == RV_OK)
        err = instance_enlist(s);
    if (err != RV_OK) {
        rv_scheduler_close(s);
        return err;
    }
    registered_forget(&s->registered);
    s->last_now = s->enlistment.last_alive_at;
    s->key_changes = s->key_changes_checked = 1;
    *ret_scheduler = s;
    return RV_OK;
}

void rv_scheduler_close(struct rv_scheduler *s)
{
    parking_finish_all(s);
    evaluations_forget(s);
    reads_end(s, RV_ERR_BUSY, STOPPING);
    while (s->carried.first != NULL) {
        struct pending *p = s->carried.first;
        pending_unlink(&s->carried, p);
        pending_finish(s, p, RV_ERR_BUSY, STOPPING);
    }
    parking_finished_flush(s);
    /* After a commit of unknown outcome: nobody is answered. */
    while (s->batch.calls.first != NULL) {
        struct pending *p = s->batch.calls.first;
        pending_unlink(&s->batch.calls, p);
        free(p);
    }
    rv_assert(s->parked_by_serial.count == 0);
    rv_assert(s->waiters.count == 0);
    rv_assert(s->evaluations.placed_count == 0);
    evaluations_done(s);
    accounts_done(&s->accounts);
    workflow_cache_done(&s->workflows);
    rv_supervisor_done(&s->supervisor);
    agents_done(&s->agents);
    for (size_t i = 0; i < DUTIES; i++)
        if (duties[i]->close != NULL)
            duties[i]->close(s);
    free(s->failures);
    free(s->boot);
    rv_map_done(&s->waiters);
    rv_heap_done(&s->parked_until);
    rv_map_done(&s->owned);
    rv_map_done(&s->suspended);
    rv_map_done(&s->parked_by_serial);
    rv_map_done(&s->parked_polls);
    rv_map_done(&s->batch.works_by_id);
    rv_map_done(&s->batch.skipped);
    rv_map_done(&s->batch.named);
    rv_map_done(&s->batch.by_serial);
    rv_map_done(&s->batch.left);
    rv_map_done(&s->refused_at_stop);
    rv_arena_done(&s->arena);
    free(s);
}

const char *rv_scheduler_broken(const struct rv_scheduler *s)
{
    const char *broken = dispatch_broken(&s->agents);
    for (size_t i = 0; broken == NULL && i < DUTIES; i++)
        if (duties[i]->broken != NULL)
            broken = duties[i]->broken(s);
    return broken;
}

const struct rv_enlistment *rv_scheduler_enlistment(const struct rv_scheduler *s)
{
    return &s->enlistment;
}

void rv_scheduler_drain(struct rv_scheduler *s)
{
    s->draining = true;
    parking_finish_all(s);
    evaluations_forget(s);
    parking_finished_flush(s);
}

/* ---- decide ---- */

static enum rv_err decide_due(struct rv_scheduler *s, struct rv_task_id id)
{
    struct work *work;
    enum rv_err err = work_get(s, id, &work);
    if (err != RV_OK || work->task == NULL || !work_is_own(s, work))
        return err; /* what is another's is forgotten */
    if (evaluations_of(s, id))
        return RV_OK; /* looked at again with what comes of them */
    struct rv_command command = {.kind = RV_COMMAND_WAKE, .seed = rv_prng_next(&s->prng)};
    bool known = wake_know(s, work, &command);
    if (evaluations_full(s) && work->workflow != NULL && account_in_debt(s, work->workflow->row.id))
        work->look_at = evaluations_rest(s);
    if (!known || work->look_at != 0)
        return RV_OK;
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    struct asker asker = {.a = ASKER_WAKE, .b = (uint64_t)id.value};
    err = work_decide(s, work, &command, &asker, plan);
    if (err != RV_OK || work->waits)
        return err;
    work->found = work->found || plan->changed;
    work_offer(s, work);
    return RV_OK;
}

/* What is due, the oldest first, as far as its share has room; the rest stays in the heap. */
static enum rv_err dues_decide(struct rv_scheduler *s)
{
    enum rv_err err = RV_OK;
    size_t most = s->options.findings_max, taken;
    bool used = false;
    share_enter(s, SHARE_DUE);
    do {
        struct rv_step_id ids[PIECE_TASKS];
        struct rv_task_id *due = s->batch.due + s->batch.due_count;
        size_t left = most - s->batch.due_count, piece = share_piece(s);
        taken = used ? 0
                     : rv_supervisor_due(&s->supervisor, s->batch.now, due,
                                         piece < left ? piece : left);
        s->batch.due_count += taken;
        rv_assert(s->batch.due_count <= most);
        size_t count = 0;
        for (size_t i = 0; i < taken; i++)
            if (!own_skipped(s, due[i]))
                ids[count++] = (struct rv_step_id){due[i], 0};
        err = work_claim(s, ids, count);
        for (size_t i = 0; err == RV_OK && i < count; i++)
            if (!own_skipped(s, ids[i].task))
                err = decide_due(s, ids[i].task);
        used = share_used(s);
    } while (err == RV_OK && taken > 0);
    share_enter(s, SHARE_NONE);
    s->more_due = s->more_due || used || s->batch.due_count == most;
    return err;
}

static enum rv_err calls_decide(struct rv_scheduler *s)
{
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next)
        if (p->ops->first)
            RV_TRY(call_decide(s, p));
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next)
        if (!p->ops->first)
            RV_TRY(call_decide(s, p));
    share_enter(s, SHARE_NONE);
    return reads_go_on(s);
}

/* Replies are decided before expiries: who answered in time is not expired in the same batch. Polls
 * come last, so that they see what everything else has made ready. */
static enum rv_err batch_decide(struct rv_scheduler *s)
{
    left_behind_note(s);
    enum rv_err err = calls_decide(s);
    left_ends_know(s); /* attempts that have answered are known, whatever becomes of the batch */
    if (err != RV_OK)
        return err;
    RV_TRY(dues_decide(s));
    DUTIES_TRY(decide);
    RV_TRY(evaluations_decide(s));
    share_enter(s, SHARE_ADMIT);
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next)
        if (p->poll != NULL)
            RV_TRY(poll_admit(s, p));
    share_enter(s, SHARE_MATCH);
    DUTIES_TRY(hand_out);
    RV_TRY(hand_out_match(s));
    share_enter(s, SHARE_NONE);
    return evaluations_load(s);
}

/* ---- act ---- */

static void circuit_word_learn(struct rv_scheduler *s, const struct work *work,
                               const struct work_step *step)
{
    struct agent_kind *kind = agents_kind_find(&s->agents, step->row->agent);
    if (kind != NULL)
        circuit_hear(kind, work->task, step->row, &step->word);
}

/* A step that has ended is not loaded again: what is to be forgotten of it, which takes no memory,
 * is forgotten now, whatever finds none. */
static enum rv_err caches_learn(struct rv_scheduler *s, struct work *work, int64_t *ret_wake_at)
{
    rv_assert(!work->dropped);
    const struct rv_step **steps = RV_NEW_ARRAY(s->batch.arena, const struct rv_step *,
                                                work->steps_count + 1);
    enum rv_err err = steps != NULL ? RV_OK : RV_ERR_MEMORY;
    for (size_t i = 0; i < work->steps_count; i++) {
        const struct work_step *step = &work->steps[i];
        enum rv_err seen = RV_OK;
        if (step->word.target.at != NULL || step->word.answers)
            circuit_word_learn(s, work, step);
        if (work->task->state != RV_TASK_ERROR || step->dirty)
            seen = agents_see(&s->agents, work->task, step->row, step->assigned, s->batch.now);
        else
            agents_see_parked(&s->agents, work->task, step->row);
        if (steps != NULL)
            steps[i] = step->row;
        err = err == RV_OK ? seen : err;
    }
    if (err != RV_OK)
        return err;
    *ret_wake_at = rv_view_wake_at(work->task, steps, work->steps_count, s->batch.now);
    if (work->task->suspended_at == 0)
        rv_map_remove(&s->suspended, (uint64_t)work->id.value, 0);
    else if ((err = rv_map_put(&s->suspended, (uint64_t)work->id.value, 0, 0)) != RV_OK)
        return err;
    return own_note(s, work->task);
}

/* The caches learn what was committed; what they found no memory for, a little later. */
static void remember(struct rv_scheduler *s, struct work *work)
{
    if (work->task == NULL || !task_is_own(s, work->task)) {
        own_forget(s, work);
        return;
    }
    int64_t wake_at;
    bool readable = work->workflow != NULL && work->workflow->definition != NULL;
    if (caches_learn(s, work, &wake_at) != RV_OK) {
        wake_at = state_again_at(s);
    } else if (!readable && rv_task_state_open(work->task->state) &&
               work->task->state != RV_TASK_ERROR)
        wake_at = s->batch.now; /* to be escalated */
    if (evaluations_of(s, work->id))
        wake_at = 0; /* with what comes of them it is remembered again */
    if (work->look_at != 0)
        wake_at = work->look_at;
    if (work->waits_to_end && wake_at <= s->batch.now)
        wake_at = s->batch.now + END_UNKNOWN_MS;
    state_look_again(s, work->id, wake_at);
}

/* Whoever watches hears of what was written. */
static void change_act(struct rv_scheduler *s, struct work *work)
{
    rv_assert(work->changed);
    counts_learn(s, work);
    spans_learn(s, work);
    for (size_t i = 0; i < work->alerts_count; i++)
        alert_act(s, &work->alerts[i]);
}

static void batch_act(struct rv_scheduler *s)
{
    for (struct work *w = s->batch.works; w != NULL; w = w->next) {
        if (w->dropped) {
            /* Somebody else moved the task: look again. An offender waits for its operator. */
            bool again = work_again(w);
            int64_t at = again ? s->batch.now : rv_time_add(s->batch.now, OFFENDER_REST_MS);
            s->more_due = s->more_due || again;
            work_withdraw(s, w);
            if (w->outcome == RV_ERR_DEPOSED)
                rv_supervisor_unclaim(&s->supervisor);
            state_look_again(s, w->id, at);
            if (w->escalated != NULL) {
                change_act(s, w->escalated);
                parking_waiters_tell(s, w->escalated);
            }
            continue;
        }
        remember(s, w);
        if (w->changed)
            change_act(s, w);
        if (w->changed || (w->task != NULL && s->enlistment.shared))
            parking_waiters_tell(s, w);
    }
    for (size_t i = 0; i < DUTIES; i++)
        if (duties[i]->act != NULL)
            duties[i]->act(s);
    while (s->batch.calls.first != NULL)
        s->batch.calls.first->ops->act(s, s->batch.calls.first);
    polls_act_parked(s);
}

/* What the batch has taken out of the caches (instants from the heap, hints of ready steps, a piece
 * of the walk, the role) was not written: all of it is looked at again. */
static void again_soon(struct rv_scheduler *s)
{
    int64_t soon = state_again_at(s);
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < s->batch.due_count; i++)
        err = rv_supervisor_note(&s->supervisor, s->batch.due[i], soon);
    for (struct work *w = s->batch.works; err == RV_OK && w != NULL; w = w->next)
        if (w->revision_before != 0)
            err = rv_supervisor_note_before(&s->supervisor, w->id, soon);
    if (err != RV_OK) /* no memory for the instants: all open rows are walked again */
        rv_supervisor_walk(&s->supervisor);
    else if (s->agents.recovering)
        rv_supervisor_walk_piece_again(&s->supervisor);
    if (s->batch.must_commit)
        rv_supervisor_unclaim(&s->supervisor);
}

/* The store refused for now: nothing was written. Callers hear so; parked calls stay, unless their
 * caller has left: nobody says that again. */
static void batch_fail(struct rv_scheduler *s, enum rv_err err)
{
    rv_assert(err != RV_OK);
    polls_unmatch_parked(s);
    for (size_t i = 0; i < DUTIES; i++)
        if (duties[i]->fail != NULL)
            duties[i]->fail(s);
    struct rv_str why = err == RV_ERR_FULL
                            ? RV_STR("the disk of the state store is full: free some space, then "
                                     "send the request again. The server does not need a restart")
                        : err == RV_ERR_DISPLACED ? place_why(s)
                                                  : rv_str_of(rv_err_text(err));
    while (s->batch.calls.first != NULL) {
        struct pending *p = s->batch.calls.first;
        pending_unlink(&s->batch.calls, p);
        if (p->ops->forget != NULL)
            p->ops->forget(s, p);
        if (p == s->batch.damaged)
            pending_finish(
                s, p, RV_ERR_CORRUPT,
                RV_STR("the data of this request is damaged in the state store: stop the "
                       "server, find the damage with \"reeve check\", and restore a backup"));
        else
            pending_finish(s, p, err, why);
    }
    if (err != RV_ERR_FULL && err != RV_ERR_DISPLACED) /* what is in line can still be read then */
        reads_end(s, err, why);
    for (const struct work *w = s->batch.works; w != NULL; w = w->next)
        work_withdraw(s, w);
    again_soon(s);
}

/* ---- the cycle ---- */

static const struct {
    const struct call_ops *ops;
    bool changes;
} call_kinds[] = {
#define RV_CALL(name, member, changes, ops) [RV_CALL_##name] = {&(ops), (changes)},
#include "scheduler/tbl/call.def"
#undef RV_CALL
};
#define RV_CALL(name, member, changes, ops)                                                        \
    _Static_assert(sizeof((struct rv_call *)0)->u.member > 0, "its member of rv_call.u");
#include "scheduler/tbl/call.def"
#undef RV_CALL

static struct pending *pending_new(struct rv_call *call)
{
    rv_assert(call->kind < sizeof call_kinds / sizeof call_kinds[0]);
    struct pending *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->call = call;
    p->ops = call_kinds[call->kind].ops;
    p->changes = call_kinds[call->kind].changes;
    rv_assert(p->ops->decide != NULL);
    rv_assert(p->ops->act != NULL);
    p->poll = rv_call_poll(call);
    return p;
}

/* What the store's clock will show, by what it showed last. `heard_until` may be long past: calls
 * wait in a queue. */
static int64_t expected_now(const struct rv_scheduler *s, int64_t heard_until)
{
    return s->batch.now + state_mono_now(s, heard_until) - s->batch.shown_mono;
}

static void batch_begin(struct rv_scheduler *s, struct rv_call **calls, size_t count,
                        int64_t mono_now)
{
    rv_assert(s->batch.calls.first == NULL);
    rv_assert(s->batch.behind.first == NULL);
    rv_assert(s->finished == NULL);
    evaluations_release(s);
    if (s->batch.publishes_count > 0)
        workflow_names_forget(&s->workflows);
    rv_arena_reset(&s->arena);
    s->batch.arena = &s->arena;
    s->batch.turn++;
    s->batch.expected_now = expected_now(s, mono_now);
    s->batch.mono_now = s->batch.heard_until = mono_now;
    s->batch.works = NULL;
    s->batch.damaged = NULL;
    s->batch.key_rows = NULL;
    s->batch.publishes_count = s->batch.acks_count = s->batch.due_count = 0;
    s->batch.records_count = s->batch.records_room = s->batch.record_changes = 0;
    s->batch.records = NULL;
    s->batch.raises_count = 0;
    s->batch.deliveries_count = s->batch.deliveries_room = s->batch.picks_count = 0;
    s->batch.unheard = s->batch.clock_told = s->batch.place_told = false;
    s->batch.must_commit = s->batch.wrote = s->batch.lost = s->batch.swept = false;
    s->batch.forgot = s->batch.renew = s->batch.renewed = false;
    s->batch.looks_for_orphans = false;
    s->batch.loaded = s->batch.scans = s->batch.scan_last = false;
    s->batch.deposes = false;
    s->batch.orphaned_at = 0;
    s->batch.held.value = 0;
    s->batch.sweep = NULL;
    s->batch.ready = NULL;
    s->batch.ready_count = 0;
    s->batch.refused = s->batch.taskless = RV_OK;
    s->batch.large_begun = false;
    s->batch.large_us = 0;
    s->batch.read_tries = 0;
    s->batch.large_bytes = s->batch.handed_bytes = s->batch.ends = 0;
    s->batch.share = SHARE_NONE;
    s->batch.share_from = 0;
    memset(s->batch.shares, 0, sizeof s->batch.shares);
    /* What instances hold is known once the walk of an earlier batch has been remembered. */
    s->agents.recovering = s->supervisor.scan_first;
    s->more_due = s->agents.recovering;
    if (s->batch.works_by_id.count > 0)
        rv_map_clear(&s->batch.works_by_id);
    if (s->batch.skipped.count > 0)
        rv_map_clear(&s->batch.skipped);
    if (s->batch.named.count > 0)
        rv_map_clear(&s->batch.named);
    if (s->batch.by_serial.count > 0)
        rv_map_clear(&s->batch.by_serial);
    if (s->batch.left.count > 0)
        rv_map_clear(&s->batch.left);
    s->batch.calls = s->carried;
    s->carried = (struct pending_list){NULL, NULL};
    for (struct pending *p = s->batch.calls.first; p != NULL; p = p->next)
        p->works = NULL;
    for (size_t i = 0; i < count; i++) {
        struct pending *p = pending_new(calls[i]);
        if (p != NULL) {
            pending_append(&s->batch.calls, p);
            continue;
        }
        calls[i]->err = RV_ERR_MEMORY;
        calls[i]->message = rv_str_of(rv_err_text(RV_ERR_MEMORY));
        parking_finished_add(s, calls[i]);
    }
    size_t all = batch_bound(s);
    s->batch.publishes = RV_ROOM(s->batch.arena, struct rv_workflow_row, all + 1);
    s->batch.acks = RV_ROOM(s->batch.arena, struct rv_ack, all + 1);
    s->batch.raises = RV_ROOM(s->batch.arena, struct rv_raise, all + 2); /* clock.c, place.c */
}

/* Files that are displaced may take no role: the commit says so when the queries have been read. */
static enum rv_err role_campaign(struct rv_scheduler *s)
{
    enum rv_err err = rv_supervisor_campaign(&s->supervisor, s->batch.now, &s->batch.must_commit);
    if (s->supervisor.taking)
        s->more_due = true; /* for what only its holder does */
    if (err != RV_ERR_DISPLACED)
        return err;
    s->batch.must_commit = true;
    return RV_OK;
}

/* From what is asked to what shall be; nothing of it is written yet. */
static enum rv_err batch_plan(struct rv_scheduler *s)
{
    struct rv_task_id *due = rv_arena_take(s->batch.arena, s->options.findings_max * sizeof *due);
    rv_assert(s->batch.due_count == 0);
    s->batch.due = due;
    if (due == NULL || s->batch.publishes == NULL || s->batch.acks == NULL ||
        s->batch.raises == NULL)
        return RV_ERR_MEMORY;
    enum rv_err keys = keys_refuse(s);
    place_refuse(s);
    RV_TRY(keys);
    RV_TRY(role_campaign(s));
    instance_lease_keep(s);
    DUTIES_TRY(plan);
    RV_TRY(ahead_load_rest(s));
    RV_TRY(batch_decide(s));
    DUTIES_TRY(last);
    return RV_OK;
}

/* Queries are answered even if nothing can be written: an operator needs them then. What the batch
 * would have changed is not in their answers. */
static void queries_answer(struct rv_scheduler *s, enum rv_err err)
{
    struct pending *next;
    rv_assert(err != RV_OK);
    for (struct work *w = s->batch.works; w != NULL; w = w->next) {
        if (!w->changed || w->dropped)
            continue;
        w->dropped = true;
        w->outcome = err;
    }
    for (struct pending *p = s->batch.calls.first; p != NULL; p = next) {
        next = p->next;
        if (!p->changes && (p->ops->read != NULL || p->ops->asks))
            p->ops->act(s, p);
    }
}

static enum rv_err batch_run(struct rv_scheduler *s)
{
    enum rv_err err = batch_plan(s);
    if (err != RV_OK) {
        s->store->ops->rollback(s->store);
        absence_refusal_note(s, err);
        return place_learn(s, err);
    }
    err = batch_commit(s);
    absence_refusal_note(s, err == RV_OK ? s->batch.refused : err);
    err = place_learn(s, err);
    if (err != RV_ERR_FULL && err != RV_ERR_DISPLACED)
        return err;
    bool only_asks = batch_only_asks(s);
    queries_answer(s, err);
    /* Where only the role was to be renewed, or an alert of the server's own to be written, what
     * was asked is answered. */
    if (!only_asks)
        return err;
    s->batch.taskless = err;
    rv_supervisor_unclaim(&s->supervisor);
    return RV_OK;
}

static size_t duties_want(const struct rv_scheduler *s, struct rv_step_id *ids, size_t room)
{
    size_t count = 0;
    for (size_t i = 0; i < DUTIES; i++)
        if (duties[i]->wants != NULL)
            count += duties[i]->wants(s, ids + count, room - count);
    return count;
}

/* Another publication may have given names another meaning. */
static void names_renew(struct rv_scheduler *s)
{
    if (!registered_changed(&s->registered, RV_REGISTRY_WORKFLOWS))
        return;
    workflow_names_forget(&s->workflows);
    registered_know(&s->registered, RV_REGISTRY_WORKFLOWS);
}

static enum rv_err batch_open(struct rv_scheduler *s)
{
    struct rv_wants wants;
    if (s->unlisted)
        RV_TRY(instance_enlist(s));
    share_enter(s, SHARE_AHEAD);
    RV_TRY(ahead_name(s, duties_want, &wants));
    RV_TRY(steal_name(s, &wants));
    takeover_name(s, &wants);
    overdue_name(s, &wants);
    scan_name(s, &wants);
    shares_name(s, &wants);
    bulk_name(s, &wants);
    enum rv_err err = commit_first_begin(s, &wants);
    if (err == RV_ERR_WENT_BACK)
        err = commit_first_begin(s, &wants);
    bool loaded = s->batch.loaded = err == RV_OK;
    if (err == RV_ERR_MEMORY) /* the parts of the batch load less at a time */
        err = commit_first_begin(s, NULL);
    if (s->history_lost)
        forget_history(s);
    s->batch.looks_for_orphans = s->batch.looks_for_orphans && loaded;
    s->batch.deposes = loaded && wants.deposed_at != 0;
    s->batch.orphaned_at = loaded ? wants.orphaned_at : 0;
    s->batch.cut = loaded && wants.cut;
    s->batch.servers = loaded ? wants.servers : NULL;
    s->batch.servers_count = loaded ? wants.servers_count : 0;
    registered_see(&s->registered, loaded ? &wants : NULL, s->enlistment.shared);
    names_renew(s);
    if (loaded)
        err = ahead_take(s, &wants);
    if (loaded && err != RV_OK)
        s->store->ops->rollback(s->store);
    share_enter(s, SHARE_NONE);
    return err;
}

static enum rv_err batch_cycle(struct rv_scheduler *s, size_t count)
{
    int64_t begun_us = s->batch.begun_us;
    s->query_damaged = false;
    enum rv_err err = place_look(s);
    if (err == RV_OK)
        err = place_learn(s, batch_open(s));
    if (err == RV_OK) {
        clock_note(s);
        retention_hold(s, absence_note(s));
        err = batch_run(s);
    }
    bool again = err == RV_ERR_DEPOSED && s->enlistment.shared && !s->batch.wrote;
    if (again)
        err = RV_ERR_BUSY;
    if (err == RV_ERR_CORRUPT && s->batch.damaged != NULL) {
        log_event_text(s, RV_LOG_ERROR, "damage", "cure", RV_STR("reeve check"));
        s->damaged_at = s->batch.now;
        s->query_damaged = true;
        err = RV_ERR_BUSY; /* a query alone: nothing that the cycle itself needs */
    }
    if (err == RV_ERR_COMMIT_UNKNOWN || err == RV_ERR_CORRUPT || err == RV_ERR_DEPOSED)
        return err; /* nobody is answered: the rows will tell after the restart */
    instance_lease_learn(s);
    if (err == RV_OK)
        batch_act(s);
    else
        batch_fail(s, err);
    shortage_note(s, err);
    counts_batch(s, count, begun_us, err != RV_OK);
    parking_expire(s);
    workflow_cache_trim(&s->workflows);
    agents_forget(&s->agents, s->batch.now);
    parking_finished_flush(s);
    s->refused = err != RV_OK || s->full || rv_err_family(s->batch.refused) == RV_FAMILY_RETRY ||
                 s->batch.taskless == RV_ERR_DISPLACED || (s->batch.lost && s->lost);
    s->lost = s->batch.lost;
    evaluations_run(s, counts_clock(s) - begun_us);
    if (again)
        forget_deposed(s);
#ifdef RV_DEBUG
    rv_assert(rv_scheduler_broken(s) == NULL);
#endif
    return place_heed(s, err);
}

enum rv_err rv_scheduler_run_batch(struct rv_scheduler *s, struct rv_call **calls, size_t count,
                                   int64_t mono_now)
{
    int64_t begun_us = counts_clock(s);
    batch_begin(s, calls, count, mono_now);
    s->batch.begun_us = begun_us;
    enum rv_err err = batch_cycle(s, count);
    /* What is tried again and what waits its turn go into the next batch as they came. */
    pending_merge(&s->carried, &s->batch.behind);
    return err;
}

bool rv_scheduler_query_damaged(const struct rv_scheduler *s)
{
    return s->query_damaged;
}

int64_t rv_scheduler_unsure_ms(const struct rv_scheduler *s)
{
    return s->batch.mono_last - s->batch.mono_now;
}

int64_t rv_scheduler_next_wake(const struct rv_scheduler *s, int64_t mono_now)
{
    if (!s->refused && (s->more_due || s->carried.first != NULL || reads_have_room(s)))
        return 0;
    rv_assert(s->finished == NULL);
    int64_t gone = mono_now - s->batch.mono_now;
    int64_t at = rv_supervisor_next_at(&s->supervisor);
    if (s->enlistment.shared && s->lease_at < at)
        at = s->lease_at;
    for (size_t i = 0; i < DUTIES; i++) {
        int64_t its = duties[i]->next_at != NULL ? duties[i]->next_at(s) : INT64_MAX;
        at = its < at ? its : at;
    }
    int64_t wait = at - s->batch.now - gone;
    if (wait < CLOCK_STANDS_MS && s->batch.mono_now - s->moved_mono >= CLOCK_STANDS_MS)
        wait = CLOCK_STANDS_MS;
    int64_t evaluations = evaluations_wait_ms(s, mono_now);
    wait = evaluations < wait ? evaluations : wait;
    /* What the store has just refused, or lost twice, it would refuse again: not at once, and not
     * for ever. */
    if (s->refused)
        wait = s->options.scan_interval_ms / REFUSED_REST_PART - gone;
    const struct rv_heap_entry *first = rv_heap_first(&s->parked_until);
    if (first != NULL && first->at - mono_now < wait)
        wait = first->at - mono_now;
    if (wait > s->options.scan_interval_ms)
        wait = s->options.scan_interval_ms;
    return wait > 0 ? wait : 0;
}

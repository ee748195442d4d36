#include "sim/store/rows.h"

#include "base/hash.h"
#include "base/limits.h"
#include "sim/world/history.h"
#include "sim/store/storage.h"
#include "sim/world/world.h"

static uint64_t with(uint64_t sum, uint64_t number)
{
    sum = (sum ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 32;
}

static uint64_t with_int(uint64_t sum, int64_t number)
{
    return with(sum, (uint64_t)number);
}

/* A text that is absent is another one than an empty one. */
static uint64_t with_str(uint64_t sum, struct rv_str text)
{
    return text.at == NULL ? with(sum, 1) : with(with(sum, 2 + text.len), history_hash(text));
}

uint64_t rows_task(const struct rv_task *t)
{
    uint64_t sum = with_int(1, t->id.value);
    sum = with_int(with_int(sum, t->revision), t->workflow);
    sum = with(with(sum, t->state), t->direction);
    sum = with(with(with(sum, t->cancelling), t->priority), t->locked_by);
    sum = with(with(with(sum, t->fence), t->last_number), t->undo_head);
    sum = with(with(with(with(sum, t->undo_blocker), t->by_hand), t->pivot), t->open_count);
    for (uint32_t i = 0; i < t->open_count; i++)
        sum = with(sum, t->open[i]);
    sum = with_int(with_int(with_int(sum, t->created_at), t->started_at), t->ended_at);
    sum = with_int(sum, t->quiet_at);
    if (t->tags.at != NULL)
        sum = with_str(sum, t->tags);
    if (t->suspended_at != 0 || t->redo != 0) /* the sums of worlds without an operator stay */
        sum = with(with_int(sum, t->suspended_at), t->redo);
    if (t->last_message != 0) /* the sums of worlds without messages stay */
        sum = with_str(with(with(sum, t->last_message), t->reply_stream), t->reply_url);
    sum = with_str(with_str(with_str(sum, t->key), t->correlation), t->input);
    sum = with_str(with_str(sum, t->trace), t->tracestate);
    return with_str(with_str(with_str(sum, t->context), t->output), t->error);
}

uint64_t rows_step(const struct rv_step *s)
{
    uint64_t sum = with(2, s->number);
    sum = with(with(with(sum, s->kind), s->state), s->direction);
    sum = with(with(with(sum, s->undoes), s->node), s->visit);
    if (s->replaces != 0)
        sum = with(sum, s->replaces);
    sum = with(with(with(with(sum, s->effect), s->undo_prev), s->chained), s->undone);
    sum = with(with(with(sum, s->failure_count), s->round), s->deaths);
    sum = with_int(with_int(with_int(sum, s->wake_at), s->ready_at), s->deadline);
    sum = with(with(with_int(sum, s->waits_since), s->called), s->insist);
    sum = with(with(with(with(sum, s->attempt), s->attempt_state), s->token), s->fence);
    sum = with(sum, s->attempt_effect);
    sum = with(sum, s->undo_way);
    if (s->stale) /* the sums of worlds without late replies stay */
        sum = with(sum, s->stale);
    sum = with_int(with_int(with_int(sum, s->attempt_at), s->attempt_ended_at), s->complete_by);
    sum = with_int(with_int(sum, s->lease_ms), s->lease_until);
    sum = with_int(with_int(sum, s->created_at), s->ended_at);
    sum = with_str(with_str(with_str(sum, s->reference), s->iteration), s->agent);
    sum = with_str(with_str(with_str(sum, s->target), s->instance), s->boot);
    sum = with_str(with_str(with_str(sum, s->poll), s->frames), s->data);
    sum = with_str(sum, s->attempt_error);
    return with_str(with_str(with_str(sum, s->input), s->output), s->error);
}

static uint64_t with_attempt(uint64_t sum, const struct rv_attempt *a)
{
    sum = with(with(with(sum, a->step.number), a->number), a->state);
    sum = with(with(with(sum, a->effect), a->token), a->fence);
    sum = with_int(with_int(with_int(sum, a->attempt_at), a->complete_by), a->ended_at);
    sum = with(with_int(sum, a->retry_at), a->round);
    return with_str(with_str(sum, a->instance), a->error);
}

static uint64_t with_late(uint64_t sum, const struct rv_late_reply *l)
{
    sum = with(with(with(sum, l->step.number), l->attempt), l->reason);
    return with_str(with_str(with_int(sum, l->arrived_at), l->output), l->error);
}

static uint64_t with_alert(uint64_t sum, const struct rv_alert *a)
{
    sum = with(with(with_int(sum, a->id), a->step), a->kind);
    sum = with_int(with_int(with_int(sum, a->raised_at), a->acked_at), a->closed_at);
    return with_str(with_str(with_str(sum, a->acked_by), a->message), a->source);
}

static uint64_t with_message(uint64_t sum, const struct rv_message *m)
{
    sum = with(with(with(sum, m->number), m->kind), m->step);
    return with_str(with_int(sum, m->at), m->body);
}

static uint64_t with_command(uint64_t sum, const struct rv_history_row *h)
{
    sum = with(with(with(sum, h->number), h->verb), h->step);
    sum = with_str(with_str(with_int(sum, h->at), h->options), h->by);
    return with_int(with_str(sum, h->reason), h->selection.value);
}

static uint64_t with_delivery(uint64_t sum, const struct rv_delivery *d)
{
    sum = with(with(with(with(sum, d->next), d->last), d->failures), d->parked);
    sum = with(sum, d->alert);
    sum = with_int(with_int(sum, d->since), d->due_at);
    return with_str(with_str(sum, d->destination), d->url);
}

/* ---- through the lists ---- */

static bool readable(struct world *w, enum rv_err err)
{
    if (err != RV_OK && !storage_found(w, err))
        world_violate(w, "W-03", "a list cannot be read: %s", rv_err_text(err));
    return err == RV_OK;
}

static uint64_t with_steps(uint64_t sum, struct world *w, struct rv_store *store,
                           struct rv_task_id task)
{
    struct rv_step rows[RV_PAGE_ROWS_MAX];
    size_t count = RV_PAGE_ROWS_MAX;
    uint32_t after = 0;
    while (count == RV_PAGE_ROWS_MAX) {
        enum rv_err err = store->ops->list_steps(store, &w->history->scratch, RV_COLUMNS_ALL, task,
                                                 after, RV_PAGE_ROWS_MAX, rows, &count);
        if (!readable(w, err))
            return sum;
        for (size_t i = 0; i < count; i++) {
            sum = with(sum, rows_step(&rows[i]));
            after = rows[i].number;
        }
    }
    return sum;
}

static uint64_t with_attempts(uint64_t sum, struct world *w, struct rv_store *store,
                              struct rv_task_id task)
{
    struct rv_attempt rows[RV_PAGE_ROWS_MAX];
    struct rv_step_id all = {.task = task};
    uint32_t step = 0, number = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    while (count == RV_PAGE_ROWS_MAX) {
        enum rv_err err = store->ops->list_attempts(store, &w->history->scratch, all, step, number,
                                                    RV_PAGE_ROWS_MAX, rows, &count);
        if (!readable(w, err))
            return sum;
        for (size_t i = 0; i < count; i++) {
            sum = with_attempt(sum, &rows[i]);
            step = rows[i].step.number;
            number = rows[i].number;
        }
    }
    return sum;
}

static uint64_t with_ledgers(uint64_t sum, struct world *w, struct rv_store *store,
                             struct rv_task_id task)
{
    struct rv_late_reply late[RV_PAGE_ROWS_MAX];
    struct rv_alert alerts[RV_PAGE_ROWS_MAX];
    size_t count = 0;
    struct rv_step_id all = {task, 0};
    enum rv_err err = store->ops->list_late_replies(store, &w->history->scratch, RV_COLUMNS_ALL,
                                                    all, 0, 0, RV_PAGE_ROWS_MAX, late, &count);
    if (!readable(w, err))
        return sum;
    for (size_t i = 0; i < count; i++)
        sum = with_late(sum, &late[i]);
    err = store->ops->list_alerts(store, &w->history->scratch, task, false, 0, RV_PAGE_ROWS_MAX,
                                  alerts, &count);
    if (!readable(w, err))
        return sum;
    for (size_t i = 0; i < count; i++)
        sum = with_alert(sum, &alerts[i]);
    return sum;
}

static uint64_t with_messages(uint64_t sum, struct world *w, struct rv_store *store,
                              struct rv_task_id task)
{
    struct rv_message rows[RV_PAGE_ROWS_MAX];
    struct rv_delivery delivery;
    size_t count = RV_PAGE_ROWS_MAX;
    uint32_t after = 0;
    while (count == RV_PAGE_ROWS_MAX) {
        enum rv_err err = store->ops->list_messages(store, &w->history->scratch, task, after,
                                                    RV_PAGE_ROWS_MAX, rows, &count);
        if (!readable(w, err))
            return sum;
        for (size_t i = 0; i < count; i++) {
            sum = with_message(sum, &rows[i]);
            after = rows[i].number;
        }
    }
    struct rv_task_id none = {0};
    enum rv_err err = store->ops->list_deliveries(store, &w->history->scratch, task, RV_STR_NONE,
                                                  none, 1, &delivery, &count);
    return readable(w, err) && count == 1 ? with_delivery(sum, &delivery) : sum;
}

static uint64_t with_history(uint64_t sum, struct world *w, struct rv_store *store,
                             struct rv_task_id task)
{
    struct rv_history_row rows[RV_PAGE_ROWS_MAX];
    size_t count = RV_PAGE_ROWS_MAX;
    uint32_t before = 0;
    while (count == RV_PAGE_ROWS_MAX) {
        enum rv_err err = store->ops->list_history(store, &w->history->scratch, task, before,
                                                   RV_PAGE_ROWS_MAX, rows, &count);
        if (!readable(w, err))
            return sum;
        for (size_t i = 0; i < count; i++) {
            sum = with_command(sum, &rows[i]);
            before = rows[i].number;
        }
    }
    return sum;
}

uint64_t rows_all(struct world *w, struct rv_store *store)
{
    struct rv_task rows[RV_PAGE_ROWS_MAX];
    struct rv_task_filter filter = {.by_state = false};
    struct rv_task_id next = {0};
    uint64_t sum = 3;
    size_t count = RV_PAGE_ROWS_MAX;
    while (count == RV_PAGE_ROWS_MAX || next.value != 0) {
        rv_arena_reset(&w->history->scratch);
        enum rv_err err = store->ops->list_tasks(store, &w->history->scratch, RV_COLUMNS_ALL,
                                                 &filter, RV_PAGE_ROWS_MAX, rows, &count, &next);
        if (!readable(w, err))
            return sum;
        for (size_t i = 0; i < count; i++) {
            sum = with(sum, rows_task(&rows[i]));
            sum = with_steps(sum, w, store, rows[i].id);
            sum = with_attempts(sum, w, store, rows[i].id);
            sum = with_ledgers(sum, w, store, rows[i].id);
            sum = with_messages(sum, w, store, rows[i].id);
            sum = with_history(sum, w, store, rows[i].id);
        }
        filter.before = next.value != 0 || count == 0 ? next : rows[count - 1].id;
    }
    return sum;
}

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

/* A text that is absent is another one than an empty one. */
static uint64_t with_str(uint64_t sum, struct rv_str text)
{
    return text.at == NULL ? with(sum, 1) : with(with(sum, 2 + text.len), history_hash(text));
}

/* Fields that came later are summed where a row uses them, so that the sums of worlds that do not
 * stay. */
static bool task_counts(const struct rv_task *t, const struct rv_field *field)
{
    switch (field->offset) {
    case offsetof(struct rv_task, tags):
        return t->tags.at != NULL;
    case offsetof(struct rv_task, suspended_at):
    case offsetof(struct rv_task, redo):
        return t->suspended_at != 0 || t->redo != 0;
    case offsetof(struct rv_task, last_message):
    case offsetof(struct rv_task, reply_stream):
    case offsetof(struct rv_task, reply_url):
        return t->last_message != 0;
    default:
        return true;
    }
}

static bool step_counts(const struct rv_step *s, const struct rv_field *field)
{
    switch (field->offset) {
    case offsetof(struct rv_step, replaces):
        return s->replaces != 0;
    case offsetof(struct rv_step, stale):
        return s->stale;
    default:
        return true;
    }
}

static bool counts(const struct rv_row_kind *kind, const void *row, const struct rv_field *field)
{
    if (kind == &rv_row_task)
        return task_counts(row, field);
    return kind != &rv_row_step || step_counts(row, field);
}

static uint64_t with_open(uint64_t sum, const struct rv_task *t)
{
    sum = with(sum, t->open_count);
    for (uint32_t i = 0; i < t->open_count; i++)
        sum = with(sum, t->open[i]);
    return sum;
}

static uint64_t with_field(uint64_t sum, const struct rv_field *field, const void *row)
{
    const void *at = (const char *)row + field->offset;
    switch (field->kind) {
    case RV_FIELD_GIVEN: /* whose a row is follows from where it is found */
    case RV_FIELD_OWNER:
        break;
    case RV_FIELD_INT64:
    case RV_FIELD_UINT64:
    case RV_FIELD_COUNT:
    case RV_FIELD_INSTANT:
    case RV_FIELD_TASK_ID:
        return with(sum, *(const uint64_t *)at);
    case RV_FIELD_UINT32:
        return with(sum, *(const uint32_t *)at);
    case RV_FIELD_UINT8:
        return with(sum, *(const uint8_t *)at);
    case RV_FIELD_BOOL:
        return with(sum, *(const bool *)at);
    case RV_FIELD_WORD:
        return with(sum, *(const unsigned *)at);
    case RV_FIELD_TEXT:
        return with_str(sum, *(const struct rv_str *)at);
    case RV_FIELD_OPEN:
        return with_open(sum, row);
    }
    return sum;
}

static uint64_t with_row(uint64_t sum, const struct rv_row_kind *kind, const void *row)
{
    for (int i = 0; i < kind->count; i++)
        if (counts(kind, row, &kind->fields[i]))
            sum = with_field(sum, &kind->fields[i], row);
    return sum;
}

uint64_t rows_task(const struct rv_task *task)
{
    return with_row(1, &rv_row_task, task);
}

uint64_t rows_step(const struct rv_step *step)
{
    return with_row(2, &rv_row_step, step);
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
            sum = with_row(sum, &rv_row_attempt, &rows[i]);
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
        sum = with_row(sum, &rv_row_late_reply, &late[i]);
    err = store->ops->list_alerts(store, &w->history->scratch, task, false, 0, RV_PAGE_ROWS_MAX,
                                  alerts, &count);
    if (!readable(w, err))
        return sum;
    for (size_t i = 0; i < count; i++)
        sum = with_row(sum, &rv_row_alert, &alerts[i]);
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
            sum = with_row(sum, &rv_row_message, &rows[i]);
            after = rows[i].number;
        }
    }
    struct rv_task_id none = {0};
    enum rv_err err = store->ops->list_deliveries(store, &w->history->scratch, task, RV_STR_NONE,
                                                  none, 1, &delivery, &count);
    return readable(w, err) && count == 1 ? with_row(sum, &rv_row_delivery, &delivery) : sum;
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
            sum = with_row(sum, &rv_row_history, &rows[i]);
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

/* What an outbox promises (docs/guide/outbox.md).
 *
 * an order that was committed has one task, however often either side died; one that was
 * rolled back has none.
 * a row leaves the outbox when its task is there, and no sooner; and when faults have stopped
 * every row is a task, or was given up as too old.
 * what is too old is not sent: an operator is called by one alert at a time for each such
 * row, before the row is marked, and for no other row. */
#include "sim/check/check.h"

#include "base/limits.h"
#include "base/time.h"
#include "json/json.h"
#include "relay/row.h"
#include "sim/cast/outbox.h"
#include "sim/store/database.h"
#include "sim/store/rewind.h"
#include "sim/store/storage.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <string.h>

/* On its way to the store a call may be so late. */
enum { ON_THE_WAY_MS = 10 * 60 * 1000 };

static int64_t age_ms(const struct world *w, const struct outbox_row *row)
{
    return outbox_wall(w) - row->created_at * 1000;
}

/* Whether the task that was seen last is one that there is. */
static bool task_is_there(struct world *w, const struct outbox_row *row)
{
    return row->task.value != 0 && !rewind_lost(w, row->task) && history_task(w, row->task) != NULL;
}

/* The order that a task is of, by what is in its input; 0: of none of an outbox. */
static int64_t order_of(const struct transition *t)
{
    struct rv_json input;
    int64_t number = 0;
    if (rv_json_parse(&t->w->history->scratch, t->task->input, RV_JSON_DEPTH_MAX, &input, NULL) !=
            RV_OK ||
        !rv_json_int(rv_json_get(&input, RV_STR("number")), &number))
        return 0;
    return number < OUTBOX_FIRST ? 0 : number;
}

void check_outbox(const struct transition *t)
{
    struct world *w = t->w;
    if (w->outbox == NULL || t->past->row.revision != 0)
        return;
    int64_t order = order_of(t);
    if (order == 0)
        return;
    struct outbox_row *row = outbox_order(w, order);
    if (row == NULL || row->state == OUTBOX_OPEN || row->state == OUTBOX_UNDONE) {
        world_violate(w, "X-01", "there is a task of order %lld, which was not committed",
                      (long long)order);
        return;
    }
    if (task_is_there(w, row))
        world_violate(w, "X-01", "order %lld has a second task", (long long)order);
    if (age_ms(w, row) >= RV_ROW_AGE_MS_MAX + ON_THE_WAY_MS)
        world_violate(w, "X-03", "row %lld was sent, which is too old", (long long)row->id);
    row->task = t->task->id;
}

/* As rv_row_alert_write() names it. */
static struct rv_str source_of(const struct outbox_row *row, char room[static 96])
{
    snprintf(room, 96, "outbox/%lld/%s", (long long)row->id, row->key);
    return rv_str_of(room);
}

/* Alerts whose source is that row, and of those the ones that were raised while another one was
 * open. */
struct row_alerts {
    uint32_t all;
    uint32_t needless;
};

static void alert_count(const struct rv_alert *alert, int64_t *next_at, struct row_alerts *counts)
{
    int64_t ended_at = rv_time_earlier(alert->acked_at, alert->closed_at);
    counts->needless += counts->all > 0 && (ended_at == 0 || ended_at > *next_at);
    counts->all++;
    *next_at = alert->raised_at;
}

/* False: the store cannot tell. */
static bool alerts_of(struct world *w, const struct outbox_row *row, struct row_alerts *ret_counts)
{
    struct rv_store *store = database_reader(w);
    struct rv_alert alerts[RV_PAGE_ROWS_MAX];
    struct rv_task_id none = {0};
    char source[96];
    int64_t next_at = 0;
    size_t count = RV_PAGE_ROWS_MAX;
    *ret_counts = (struct row_alerts){.all = 0};
    for (int64_t before = 0; count == RV_PAGE_ROWS_MAX; before = alerts[count - 1].id) {
        if (store == NULL)
            return false;
        rv_arena_reset(&w->history->scratch);
        enum rv_err err = store->ops->list_alerts(store, &w->history->scratch, none, false, before,
                                                  RV_PAGE_ROWS_MAX, alerts, &count);
        if (storage_found(w, err) || err != RV_OK)
            return false;
        for (size_t i = 0; i < count; i++)
            if (rv_str_eq(alerts[i].source, source_of(row, source)))
                alert_count(&alerts[i], &next_at, ret_counts);
        if (count == 0)
            break;
    }
    return true;
}

/* Its one server may be down; the end looks again. */
static void check_called(struct world *w, const struct outbox_row *row)
{
    struct row_alerts alerts;
    if (alerts_of(w, row, &alerts) && alerts.all == 0 && !fault_happened(w, FAULT_FAILOVER))
        world_violate(w, "X-03", "row %lld is given up, and nobody was called", (long long)row->id);
}

void check_row_settled(struct world *w, const struct outbox_row *row, struct rv_str why)
{
    world_say(w, "shop", "row %lld is %s%.*s", (long long)row->id,
              row->state == OUTBOX_MOVED ? "moved" : "marked: ", RV_STR_FMT(why));
    if (row->state == OUTBOX_MOVED && !task_is_there(w, row) && !rewind_lost(w, row->task))
        world_violate(w, "X-02", "row %lld of order %u was deleted, and is no task",
                      (long long)row->id, row->order);
    if (row->state == OUTBOX_REFUSED)
        world_violate(w, "X-02", "row %lld of order %u was refused: %.*s", (long long)row->id,
                      row->order, RV_STR_FMT(why));
    if (row->state != OUTBOX_OLD)
        return;
    if (age_ms(w, row) < RV_ROW_AGE_MS_MAX)
        world_violate(w, "X-03", "row %lld was given up, and is not too old", (long long)row->id);
    check_called(w, row);
}

/* ---- the end ---- */

/* Where two relays are at work one may give up what the other one has sent. */
static void check_row_alerts(struct world *w, const struct outbox_row *row)
{
    struct row_alerts alerts;
    if (!alerts_of(w, row, &alerts))
        return;
    bool lost = fault_happened(w, FAULT_FAILOVER);
    if (alerts.needless > 0 || (alerts.all == 0 && row->state == OUTBOX_OLD && !lost))
        world_violate(w, "X-03", "row %lld was given up, %u alerts say so, %u of them needlessly",
                      (long long)row->id, alerts.all, alerts.needless);
    if (alerts.all > 0 && age_ms(w, row) < RV_ROW_AGE_MS_MAX)
        world_violate(w, "X-03", "an alert is of row %lld, which is not too old",
                      (long long)row->id);
}

void check_outbox_end(struct world *w)
{
    const struct outbox_row *row;
    for (size_t i = 0; (row = outbox_row_at(w, i)) != NULL && w->violated == NULL; i++) {
        if (row->state == OUTBOX_MOVED && !task_is_there(w, row) && !rewind_lost(w, row->task))
            world_violate(w, "X-01", "order %u was committed, and has no task", row->order);
        if (row->state == OUTBOX_OPEN || row->state == OUTBOX_WAITS)
            world_violate(w, "X-02", "row %lld still waits", (long long)row->id);
        check_row_alerts(w, row);
    }
}

uint32_t check_outbox_orders(struct world *w, uint32_t *ret_lost)
{
    const struct outbox_row *row;
    uint32_t orders = 0;
    for (size_t i = 0; (row = outbox_row_at(w, i)) != NULL; i++) {
        bool committed = row->state != OUTBOX_OPEN && row->state != OUTBOX_UNDONE;
        orders += committed;
        *ret_lost += committed && !task_is_there(w, row);
    }
    return orders;
}

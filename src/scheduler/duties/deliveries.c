/* Messages to webhooks. What is to be sent is read from the rows by whoever holds the supervisor's
 * role, and leaves once the batch is written; what came of it comes back as a call and is written
 * under that role's epoch. The queue (notify/delivery_queue.h) is a cache over the rows like the
 * supervisor's heap: whatever it does not know, the walk finds. */
#include "scheduler/duties/deliveries.h"

#include "base/array.h"
#include "base/assert.h"
#include "base/limits.h"
#include "core/trace.h"
#include "notify/delivery_queue.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/duties/alerts.h"
#include "scheduler/duties/duty.h"

#include <stdlib.h>
#include <string.h>

enum { WALK_ROWS = 256, PICKS_MAX = 256 };
/* Each message costs two round trips, and calls wait for the end of the batch: on a shared store it
 * sends so few, and reads the rows of as few tasks whose messages it has written. */
enum { SHARED_PICKS = 4, SHARED_LEARNS = 4 };
/* A message that is tried for a day fails at least that often: once in an hour. */
enum { FAILURES_OF_A_DAY = 24 };

/* What is on its way to webhooks, and where the walk over the rows of the others stands. */
struct deliveries {
    struct rv_delivery_queue queue;
    int64_t epoch; /* of the supervisor's role, as the queue was begun; 0: never */
    bool first;    /* the first walk since then is under way */
    char *place;   /* owned: the destination at which the walk goes on; NULL: from the first */
    size_t place_bytes;
    struct rv_task_id after;
    int64_t walk_at;
};

static enum rv_err deliveries_open(struct rv_scheduler *s)
{
    s->deliveries = calloc(1, sizeof *s->deliveries);
    if (s->deliveries == NULL)
        return RV_ERR_MEMORY;
    rv_delivery_queue_init(&s->deliveries->queue, rv_prng_next(&s->prng), s->options.hash_key);
    return RV_OK;
}

static void deliveries_forget(struct rv_scheduler *s)
{
    s->deliveries->epoch = 0;
}

static void deliveries_close(struct rv_scheduler *s)
{
    if (s->deliveries == NULL)
        return;
    rv_delivery_queue_done(&s->deliveries->queue);
    free(s->deliveries->place);
    for (size_t i = 0; i < s->batch.picks_count; i++)
        free(s->batch.notices[i]); /* of a batch whose outcome is not known */
    free(s->deliveries);
}

static bool at_work(const struct rv_scheduler *s)
{
    return s->options.outlet.send != NULL && rv_supervisor_holds(&s->supervisor) && !s->draining;
}

/* ---- the walk over the rows in which a message waits ---- */

static enum rv_err place_set(struct deliveries *d, struct rv_str destination,
                             struct rv_task_id after)
{
    rv_assert(destination.at != NULL);
    char *copy = rv_str_dup(destination);
    if (copy == NULL)
        return RV_ERR_MEMORY;
    free(d->place);
    d->place = copy;
    d->place_bytes = destination.len;
    d->after = after;
    return RV_OK;
}

static void place_clear(struct deliveries *d)
{
    free(d->place);
    d->place = NULL;
    d->place_bytes = 0;
    d->after = (struct rv_task_id){0};
}

/* While the server was absent nobody could have taken a message: its day grows by that (RULES 9),
 * also if its row is read long after the start. Of an absence before this one, which a process that
 * soon ended did not write into the row, nothing is known: a message that has not failed often has
 * a whole day from the start. */
static void absence_excuse(const struct rv_scheduler *s, struct rv_delivery *row)
{
    int64_t gone_at = s->enlistment.last_alive_at;
    bool untouched = s->deliveries->first || row->due_at < s->first_now;
    if (!untouched || row->since == 0)
        return;
    if (row->failures < FAILURES_OF_A_DAY && row->since < s->first_now)
        row->since = s->first_now;
    else if (row->since <= gone_at && s->first_now > gone_at)
        row->since += s->first_now - gone_at;
}

/* What has room in the queue is noted; of a destination that has none the rest is passed over. */
static enum rv_err walk_note(struct rv_scheduler *s, struct rv_delivery *rows, size_t count)
{
    struct deliveries *d = s->deliveries;
    rv_assert(count > 0);
    for (size_t i = 0; i < count; i++) {
        absence_excuse(s, &rows[i]);
        if (rv_delivery_queue_see(&d->queue, &rows[i], s->batch.now))
            continue;
        struct rv_str full = rows[i].destination;
        while (i + 1 < count && rv_str_eq(rows[i + 1].destination, full))
            i++;
        if (i + 1 == count)
            return place_set(d, full, (struct rv_task_id){INT64_MAX});
    }
    return place_set(d, rows[count - 1].destination, rows[count - 1].task);
}

static enum rv_err rows_read(struct rv_scheduler *s, struct rv_str destination,
                             struct rv_task_id after, struct rv_delivery **ret_rows,
                             size_t *ret_count)
{
    struct rv_task_id all = {0};
    *ret_rows = RV_ROOM(s->batch.arena, struct rv_delivery, WALK_ROWS);
    if (*ret_rows == NULL)
        return RV_ERR_MEMORY;
    return s->store->ops->list_deliveries(s->store, s->batch.arena, all, destination, after,
                                          WALK_ROWS, *ret_rows, ret_count);
}

/* A destination whose known messages run out is read on before anything else. */
static enum rv_err hungry_feed(struct rv_scheduler *s, struct rv_str destination,
                               struct rv_task_id after)
{
    struct rv_delivery *rows;
    size_t count = 0, i = 0;
    enum rv_err err = rows_read(s, destination, after, &rows, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= WALK_ROWS);
    bool room = true;
    for (; i < count && room && rv_str_eq(rows[i].destination, destination); i++) {
        absence_excuse(s, &rows[i]);
        room = rv_delivery_queue_see(&s->deliveries->queue, &rows[i], s->batch.now);
        if (room)
            after = rows[i].task;
    }
    bool all = room && (i < count || count < WALK_ROWS);
    rv_delivery_queue_read(&s->deliveries->queue, destination, after, all);
    return RV_OK;
}

static enum rv_err walk(struct rv_scheduler *s)
{
    struct deliveries *d = s->deliveries;
    struct rv_str destination;
    struct rv_task_id after;
    if (rv_delivery_queue_hungry(&d->queue, &destination, &after))
        return hungry_feed(s, destination, after);
    if (s->batch.now < d->walk_at)
        return RV_OK;
    struct rv_delivery *rows;
    size_t count = 0;
    destination = (struct rv_str){d->place, d->place_bytes};
    enum rv_err err = rows_read(s, destination, d->after, &rows, &count);
    if (err == RV_OK && count > 0)
        err = walk_note(s, rows, count);
    if (err != RV_OK)
        return err;
    if (count < WALK_ROWS) {
        place_clear(d);
        d->first = false;
    }
    d->walk_at = d->first ? s->batch.now : s->batch.now + s->options.scan_interval_ms;
    return RV_OK;
}

/* A new holder of the role knows nothing of what the one before has sent. */
static void queue_begin(struct rv_scheduler *s)
{
    struct deliveries *d = s->deliveries;
    rv_assert(s->supervisor.epoch != 0);
    rv_delivery_queue_done(&d->queue);
    rv_delivery_queue_init(&d->queue, rv_prng_next(&s->prng), s->options.hash_key);
    place_clear(d);
    d->epoch = s->supervisor.epoch;
    d->first = true;
    d->walk_at = 0;
}

/* ---- before the commit ---- */

static enum rv_err change_add(struct rv_scheduler *s,
                              const struct rv_delivery_queue_verdict *verdict,
                              const struct rv_alert *alert, struct rv_delivery_change **ret)
{
    struct batch *b = &s->batch;
    if (!RV_ARRAY_ROOM_ON(b->arena, b->deliveries, b->deliveries_count, b->deliveries_room))
        return RV_ERR_MEMORY;
    struct rv_delivery_change *change = &b->deliveries[b->deliveries_count++];
    *change = (struct rv_delivery_change){.row = verdict->row,
                                          .next_before = verdict->next_before,
                                          .failures_before = verdict->failures_before,
                                          .epoch = s->supervisor.epoch,
                                          .alert = alert};
    if (ret != NULL)
        *ret = change;
    return RV_OK;
}

static enum rv_err alert_make(struct rv_scheduler *s,
                              const struct rv_delivery_queue_verdict *verdict, struct rv_str why,
                              const struct rv_alert **ret_alert)
{
    struct rv_alert *alert = RV_NEW(s->batch.arena, struct rv_alert);
    if (alert == NULL)
        return RV_ERR_MEMORY;
    *alert = (struct rv_alert){
        .id = rv_id_make(&s->ids, s->batch.now).value,
        .task = verdict->row.task,
        .kind = RV_ALERT_UNDELIVERABLE,
        .raised_at = s->batch.now,
        .message = rv_arena_printf(s->batch.arena, "message %u was not accepted: %.*s",
                                   verdict->row.next, RV_STR_FMT(why)),
    };
    *ret_alert = alert;
    return alert->message.at != NULL ? RV_OK : RV_ERR_MEMORY;
}

/* Given up: an operator is called, also where what nobody has taken is such a call. */
static enum rv_err given_up_write(struct rv_scheduler *s,
                                  const struct rv_delivery_queue_verdict *verdict,
                                  struct rv_str why)
{
    const struct rv_alert *alert = NULL;
    struct rv_delivery_change *change;
    struct rv_delivery row;
    size_t count = 0;
    enum rv_err err = s->store->ops->list_deliveries(s->store, s->batch.arena, verdict->row.task,
                                                     RV_STR_NONE, (struct rv_task_id){0}, 1, &row,
                                                     &count);
    bool of_alert = err == RV_OK && count > 0 && row.alert;
    if (err == RV_OK && of_alert)
        err = alert_unheard(s, verdict->row.task.value, why, &alert);
    else if (err == RV_OK)
        err = alert_make(s, verdict, why, &alert);
    if (err == RV_OK)
        err = change_add(s, verdict, alert, &change);
    if (err == RV_OK && !of_alert)
        change->alert_to = state_alerts_to(s);
    return err;
}

static enum rv_err verdict_write(struct rv_scheduler *s,
                                 const struct rv_delivery_queue_verdict *verdict, struct rv_str why)
{
    return verdict->row.given_up ? given_up_write(s, verdict, why)
                                 : change_add(s, verdict, NULL, NULL);
}

static void turn_log(struct rv_scheduler *s, const struct rv_delivery_queue_verdict *verdict)
{
    struct log_fields line = {.count = 0};
    log_text(&line, "destination", verdict->destination);
    log_text(&line, "state", rv_str_of(verdict->failing ? "failing" : "works"));
    log_event(s, verdict->failing ? RV_LOG_WARNING : RV_LOG_INFO, "webhook", &line);
}

static enum rv_err delivered_decide(struct rv_scheduler *s, struct pending *p)
{
    const struct rv_call_delivered *delivered = &p->call->u.delivered;
    struct deliveries *d = s->deliveries;
    bool holds = s->supervisor.epoch != 0 && d->epoch == s->supervisor.epoch;
    for (size_t i = 0; i < delivered->count; i++) {
        const struct rv_notice_result *result = &delivered->items[i];
        struct rv_delivery_queue_verdict verdict;
        if (!holds)
            rv_delivery_queue_unpick(&d->queue, result->task, state_again_at(s));
        if (!holds || !rv_delivery_queue_result(&d->queue, result, s->batch.now, &verdict))
            continue;
        if (verdict.turned)
            turn_log(s, &verdict);
        enum rv_err err = verdict_write(s, &verdict, result->why);
        if (err != RV_OK)
            return err;
    }
    return RV_OK;
}

/* What is sent: the task's message of that number, or the alert. NOT_FOUND: there is none. */
static enum rv_err body_read(struct rv_scheduler *s, const struct rv_delivery *row,
                             struct rv_str *ret_body)
{
    struct rv_message message;
    size_t count = 0;
    if (row->alert)
        return alert_body(s, row->task.value, ret_body);
    enum rv_err err = s->store->ops->list_messages(s->store, s->batch.arena, row->task,
                                                   row->next - 1, 1, &message, &count);
    if (err != RV_OK)
        return err;
    *ret_body = message.body;
    return count > 0 && message.number == row->next ? RV_OK : RV_ERR_NOT_FOUND;
}

static enum rv_err notice_prepare(struct rv_scheduler *s, const struct rv_delivery_queue_pick *pick,
                                  struct rv_notice **ret_notice)
{
    struct rv_str body = RV_STR_NONE;
    struct rv_delivery row;
    struct rv_task_id none = {0};
    size_t rows = 0;
    *ret_notice = NULL;
    enum rv_err err = s->store->ops->list_deliveries(s->store, s->batch.arena, pick->task,
                                                     RV_STR_NONE, none, 1, &row, &rows);
    if (err != RV_OK)
        return err;
    bool waits = rows > 0 && row.next == pick->number && !row.given_up;
    err = waits ? body_read(s, &row, &body) : RV_ERR_NOT_FOUND;
    /* Somebody else was faster, or the rows are damaged: a walk looks at it again. */
    if (err == RV_ERR_NOT_FOUND)
        rv_delivery_queue_forget(&s->deliveries->queue, pick->task);
    if (err != RV_OK)
        return err == RV_ERR_NOT_FOUND ? RV_OK : err;
    struct rv_notice notice = {.task = pick->task,
                               .number = pick->number,
                               .url = row.url,
                               .destination = row.destination,
                               .body = body,
                               .traceparent = rv_trace_of_message(body)};
    *ret_notice = rv_notice_copy(&notice);
    return *ret_notice != NULL ? RV_OK : RV_ERR_MEMORY;
}

static enum rv_err pick_take(struct rv_scheduler *s, const struct rv_delivery_queue_pick *pick,
                             struct rv_notice **ret_notice)
{
    struct rv_delivery_queue_verdict verdict;
    *ret_notice = NULL;
    if (!pick->expired)
        return notice_prepare(s, pick, ret_notice);
    if (!rv_delivery_queue_expire(&s->deliveries->queue, pick->task, s->batch.now, &verdict))
        return RV_OK;
    return verdict_write(s, &verdict,
                         RV_STR("all deliveries to the destination have failed for a day"));
}

static enum rv_err deliveries_plan(struct rv_scheduler *s)
{
    struct batch *b = &s->batch;
    rv_assert(b->picks_count == 0);
    if (!at_work(s))
        return RV_OK;
    if (s->deliveries->epoch != s->supervisor.epoch)
        queue_begin(s);
    enum rv_err err = walk(s);
    if (err != RV_OK || rv_delivery_queue_next_at(&s->deliveries->queue) > b->now)
        return err;
    b->picks = RV_ROOM(b->arena, struct rv_delivery_queue_pick, PICKS_MAX);
    b->notices = RV_NEW_ARRAY(b->arena, struct rv_notice *, PICKS_MAX);
    if (b->picks == NULL || b->notices == NULL)
        return RV_ERR_MEMORY;
    size_t most = s->enlistment.shared ? SHARED_PICKS : PICKS_MAX;
    b->picks_count = rv_delivery_queue_pick(&s->deliveries->queue, b->now, b->picks, most);
    rv_assert(b->picks_count <= most);
    for (size_t i = 0; err == RV_OK && i < b->picks_count; i++)
        err = pick_take(s, &b->picks[i], &b->notices[i]);
    return err;
}

/* ---- the operator's retry ---- */

#define ON_ITS_WAY RV_STR("the webhook delivery has already been restarted")

/* All that the alerts' webhook was not told; the walk finds them. */
static enum rv_err alerts_retry(struct rv_scheduler *s, struct pending *p,
                                const struct rv_alert *alert)
{
    struct rv_delivery_queue_verdict verdict = {
        .row = {.since = s->batch.now, .due_at = s->batch.now}};
    struct rv_delivery_change *change;
    if (alert->closed_at != 0)
        return call_refuse(p->call, RV_ERR_REFUSED, ON_ITS_WAY);
    enum rv_err err = change_add(s, &verdict, NULL, &change);
    if (err != RV_OK)
        return err;
    change->epoch = 0;
    change->all_alerts = change->close_alert = true;
    p->number = s->batch.deliveries_count;
    return RV_OK;
}

static enum rv_err retry_decide(struct rv_scheduler *s, struct pending *p)
{
    struct rv_task_id none = {0};
    struct rv_alert alert;
    struct rv_delivery row;
    int64_t id = p->call->u.retry.alert;
    char cure[RV_ALERT_CURE_BYTES];
    size_t count = 0;
    p->number = 0;
    enum rv_err err = s->store->ops->list_alerts(s->store, s->batch.arena, none, false, id + 1, 1,
                                                 &alert, &count);
    if (err != RV_OK)
        return err;
    if (count == 0 || alert.id != id)
        return call_refuse(p->call, RV_ERR_NOT_FOUND, refuse_no_alert(p->call, id));
    if (alert.kind != RV_ALERT_UNDELIVERABLE)
        return call_refuse(
            p->call, RV_ERR_REFUSED,
            call_printf(
                p->call,
                "only alerts of kind `undeliverable` can be retried; the cure for this alert: %.*s",
                RV_STR_FMT(rv_alert_cure(&alert, cure))));
    if (alert_is_unheard(&alert))
        return alerts_retry(s, p, &alert);
    err = s->store->ops->list_deliveries(s->store, s->batch.arena, alert.task, RV_STR_NONE, none, 1,
                                         &row, &count);
    if (err != RV_OK)
        return err;
    if (count == 0 || !row.given_up)
        return call_refuse(p->call, RV_ERR_REFUSED, ON_ITS_WAY);
    struct rv_delivery_queue_verdict verdict = {
        .row = row, .next_before = row.next, .failures_before = row.failures};
    verdict.row.given_up = false;
    verdict.row.failures = 0;
    verdict.row.since = verdict.row.due_at = s->batch.now;
    struct rv_delivery_change *change;
    err = change_add(s, &verdict, NULL, &change);
    if (err != RV_OK)
        return err;
    change->epoch = 0; /* an operator's word needs no role */
    change->close_alert = true;
    p->number = s->batch.deliveries_count;
    return RV_OK;
}

static void retry_log(struct rv_scheduler *s, const struct rv_call *call)
{
    char id[RV_ID_TEXT_BYTES];
    struct log_fields line;
    log_command_begin(&line, "retry-delivery");
    log_text(&line, "alert", rv_task_text((struct rv_task_id){call->u.retry.alert}, id));
    log_command_end(s, &line, call->u.retry.by, call->u.retry.reason);
}

static void retry_act(struct rv_scheduler *s, struct pending *p)
{
    pending_unlink(&s->batch.calls, p);
    bool wanted = p->number != 0;
    rv_assert(p->number <= s->batch.deliveries_count);
    enum rv_err outcome = !wanted                      ? RV_OK
                          : s->batch.taskless != RV_OK ? s->batch.taskless
                                                       : s->batch.deliveries[p->number - 1].outcome;
    if (outcome == RV_OK) {
        if (p->call->err == RV_OK)
            retry_log(s, p->call);
        pending_finish(s, p, p->call->err, p->call->message);
        return;
    }
    if (!parking_carry_again(s, p))
        pending_finish(s, p, RV_ERR_BUSY, NOT_TAKEN);
}

/* ---- after the commit ---- */

/* What is not in the queue is read, since only the row knows whether older messages wait or were
 * given up. */
static void work_learn(struct rv_scheduler *s, const struct work *work, size_t *learns)
{
    struct rv_delivery_queue *queue = &s->deliveries->queue;
    struct rv_delivery row;
    size_t count = 0;
    if (rv_delivery_queue_knows(queue, work->id)) {
        rv_delivery_queue_grow(queue, work->id, work->task->last_message);
        return;
    }
    if (s->enlistment.shared && (*learns)++ >= SHARED_LEARNS) {
        s->deliveries->walk_at = s->batch.now; /* which finds its row in its round */
        return;
    }
    enum rv_err err = s->store->ops->list_deliveries(
        s->store, s->batch.arena, work->id, RV_STR_NONE, (struct rv_task_id){0}, 1, &row, &count);
    /* One that cannot be read now, or has no room, the walk finds. */
    if (err == RV_OK && count > 0)
        (void)rv_delivery_queue_note(queue, &row, s->batch.now);
}

static void delivery_learn(struct rv_scheduler *s, const struct rv_delivery_change *change)
{
    struct rv_delivery_queue *queue = &s->deliveries->queue;
    if (change->all_alerts)
        return;
    if (s->batch.taskless != RV_OK)
        rv_delivery_queue_unpick(queue, change->row.task, state_again_at(s));
    else if (change->outcome != RV_OK)
        rv_delivery_queue_forget(queue, change->row.task);
    else
        (void)rv_delivery_queue_note(queue, &change->row, s->batch.now);
}

static void delivery_log(struct rv_scheduler *s, const struct rv_delivery_change *change)
{
    const struct rv_alert *alert = change->alert;
    if (alert != NULL && change->outcome == RV_OK && s->batch.taskless == RV_OK)
        alert_act(s, alert);
}

void deliveries_learn_alert(struct rv_scheduler *s, const struct rv_alert *alert)
{
    struct rv_delivery row = rv_delivery_of_alert(alert, &s->alerts_to);
    /* One that has no room the walk finds. */
    if (at_work(s))
        (void)rv_delivery_queue_note(&s->deliveries->queue, &row, s->batch.now);
}

static void deliveries_act(struct rv_scheduler *s)
{
    rv_assert(s->options.outlet.send != NULL || s->batch.picks_count == 0);
    if (s->options.outlet.send == NULL)
        return;
    size_t learns = 0;
    for (const struct work *w = s->batch.works; w != NULL && at_work(s); w = w->next) {
        const struct work *written = w->dropped ? w->escalated : w;
        if (written != NULL && written->changed && written->messages_count > 0 &&
            written->task->reply_url.at != NULL)
            work_learn(s, written, &learns);
    }
    for (size_t i = 0; i < s->batch.deliveries_count; i++) {
        delivery_learn(s, &s->batch.deliveries[i]);
        delivery_log(s, &s->batch.deliveries[i]);
    }
    for (size_t i = 0; i < s->batch.picks_count; i++) {
        if (s->batch.notices[i] != NULL)
            s->options.outlet.send(s->options.outlet.self, s->batch.notices[i]);
        s->batch.notices[i] = NULL;
    }
}

static void deliveries_fail(struct rv_scheduler *s)
{
    struct rv_delivery_queue *queue = &s->deliveries->queue;
    for (size_t i = 0; i < s->batch.picks_count; i++) {
        free(s->batch.notices[i]);
        s->batch.notices[i] = NULL;
        rv_delivery_queue_unpick(queue, s->batch.picks[i].task, state_again_at(s));
    }
}

static int64_t deliveries_next_at(const struct rv_scheduler *s)
{
    struct rv_str destination;
    struct rv_task_id after;
    if (!at_work(s))
        return INT64_MAX;
    if (s->deliveries->epoch != s->supervisor.epoch ||
        rv_delivery_queue_hungry(&s->deliveries->queue, &destination, &after))
        return 0;
    int64_t at = rv_delivery_queue_next_at(&s->deliveries->queue);
    return at < s->deliveries->walk_at ? at : s->deliveries->walk_at;
}

static const char *deliveries_broken(const struct rv_scheduler *s)
{
    return rv_delivery_queue_broken(&s->deliveries->queue);
}

static size_t delivered_commands(const struct rv_call *call)
{
    return call->u.delivered.count;
}

static void delivered_forget(struct rv_scheduler *s, struct pending *p)
{
    for (size_t i = 0; i < p->call->u.delivered.count; i++)
        rv_delivery_queue_unpick(&s->deliveries->queue, p->call->u.delivered.items[i].task,
                                 state_again_at(s));
}

const struct call_ops delivered_ops = {.decide = delivered_decide,
                                       .act = answers_taskless_act,
                                       .forget = delivered_forget,
                                       .commands = delivered_commands};
const struct call_ops retry_ops = {.decide = retry_decide, .act = retry_act};

const struct duty deliveries_duty = {.open = deliveries_open,
                                     .plan = deliveries_plan,
                                     .act = deliveries_act,
                                     .fail = deliveries_fail,
                                     .next_at = deliveries_next_at,
                                     .forget = deliveries_forget,
                                     .broken = deliveries_broken,
                                     .close = deliveries_close};

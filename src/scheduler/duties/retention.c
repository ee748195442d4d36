/* The retention rule (decision 015): finished tasks are deleted a while after their end. The
 * server of the supervisor does it, a piece with a batch now and then. A piece is measured: its
 * time is a share of that which has passed since the one before, so that the rule is as fast as
 * the server and nobody waits much longer because of it. The store decides which tasks it takes,
 * inside the transaction, so that one that was opened again stays. */
#include "scheduler/duties/retention.h"

#include "base/assert.h"
#include "base/time.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/state.h"
#include "scheduler/duties/duty.h"
#include "store/store.h"

#include <stdlib.h>

enum {
    ROWS_MAX = 4096,     /* of a piece, however fast */
    PIECE_US_MIN = 1000, /* less is not worth its sync */
    PIECE_US_MAX = 5000,
    SHARE_MIN = 30, /* percent, see share_of */
    SHARE_MAX = 50,
    US_PER_MS = 1000,
    ROUND_PART = 100, /* a round begins after this part of the time */
    ROUND_MS_MAX = 60 * RV_SECOND_MS,
    ROUND_MS_MIN = RV_SECOND_MS,
    GONE_MS_MIN = 3600 * RV_SECOND_MS
};

/* Where the retention rule stands. */
struct retention {
    struct rv_sweep sweep; /* of the newest batch that had one; the places where it goes on */
    bool walking;          /* a round is under way */
    int64_t round_at;      /* it began */
    int64_t piece_us;      /* when the newest piece of it had ended, by now_us */
    int64_t next_at;
    int64_t held_until; /* nothing is deleted before (decision 019), */
    bool fresh;         /* this process has found out, and the store does not know yet; */
    bool wait_told;     /* that is among the records of this batch */
    bool held_written;  /* and the store knows */
    int64_t recalled;   /* the epoch of the role in which the store was asked */
    size_t tasks_gone;  /* in the round that is under way */
    size_t keys_gone;
};

/* How long a submitter may repeat himself, at least (RULES 1). */
static const int64_t keys_ms_min = 30 * (int64_t)RV_DAY_MS;

int64_t retention_round_ms(const struct rv_scheduler *s)
{
    int64_t part = s->options.retain_ms / ROUND_PART;
    int64_t round = part < ROUND_MS_MIN ? ROUND_MS_MIN : part > ROUND_MS_MAX ? ROUND_MS_MAX : part;
    return round;
}

void retention_hold(struct rv_scheduler *s, int64_t gone_ms)
{
    if (gone_ms < GONE_MS_MIN)
        return;
    s->retention->fresh = true;
    s->retention->held_until = rv_time_add(s->batch.now, gone_ms < RV_DAY_MS ? gone_ms : RV_DAY_MS);
}

/* The record of a wait; it outlives the process. The key has no meaning. */
#define RECORD_WAIT "retention-wait"

/* A wait that another process has begun. One that a clock far ahead has written ends in a day. */
static enum rv_err wait_recall(struct rv_scheduler *s)
{
    struct retention *retention = s->retention;
    struct rv_record row;
    size_t count;
    enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena, RV_STR(RECORD_WAIT),
                                                  RV_STR_NONE, RV_STR_NONE, 1, &row, &count);
    struct rv_json value;
    if (err != RV_OK || count == 0)
        return err;
    err = rv_json_parse(s->batch.arena, row.value, RV_JSON_DEPTH_MAX, &value, NULL);
    int64_t until = 0;
    if (err != RV_OK || !rv_json_int(rv_json_get(&value, RV_STR("until")), &until))
        return err == RV_ERR_MEMORY ? err : RV_OK; /* not of this server's making */
    int64_t ends = rv_time_earlier(until, s->batch.now + RV_DAY_MS);
    if (ends > retention->held_until)
        retention->held_until = ends;
    retention->held_written = until == retention->held_until; /* else a day from each start on */
    return RV_OK;
}

static enum rv_err wait_write(struct rv_scheduler *s)
{
    struct rv_buf value;
    rv_assert(s->batch.now < s->retention->held_until);
    rv_assert(!s->retention->held_written);
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_buf_printf(&value, "{\"until\":%lld}", (long long)s->retention->held_until);
    struct rv_record_change made = {.row = {.kind = RV_STR(RECORD_WAIT), .key = RV_STR("until")}};
    enum rv_err err = record_put(s, made, &value);
    rv_buf_done(&value);
    s->retention->wait_told = err == RV_OK;
    return err;
}

static bool retains(const struct rv_scheduler *s)
{
    return s->options.retain_ms != 0 && rv_supervisor_holds(&s->supervisor);
}

/* Time for the retention rule, in percent of what everything else has. It grows with the age of the
 * round: one that is older than the time between two rounds does not keep up with what ends. */
static int64_t share_of(const struct rv_scheduler *s)
{
    int64_t age = s->batch.now - s->retention->round_at, round = retention_round_ms(s);
    return SHARE_MIN + (SHARE_MAX - SHARE_MIN) * (age < round ? age : round) / round;
}

/* What has ended by now is what the round is about: it comes to its end however much ends
 * meanwhile. */
static void round_begin(struct rv_scheduler *s)
{
    struct retention *retention = s->retention;
    int64_t now = s->batch.now, retain_ms = s->options.retain_ms;
    int64_t keys_ms = retain_ms > keys_ms_min ? retain_ms : keys_ms_min;
    rv_assert(!retention->walking);
    rv_assert(retains(s));
    rv_assert(keys_ms >= retain_ms); /* no key goes before its task */
    retention->walking = true;
    retention->round_at = now;
    retention->piece_us = counts_clock(s);
    retention->sweep = (struct rv_sweep){.ended_by = now - retain_ms,
                                         .keys_by = now - keys_ms,
                                         .rows_max = ROWS_MAX,
                                         .now_us = s->options.mono.now_us,
                                         .self = s->options.mono.self};
}

/* A new holder of the role asks whether the one before was to wait; *ret_waits: so is this one. A
 * wait that begins with this process is in its first commit, whoever holds the role and whatever
 * this process deletes: with that commit the store forgets how long nobody was there. */
static enum rv_err wait_plan(struct rv_scheduler *s, bool *ret_waits)
{
    struct retention *retention = s->retention;
    enum rv_err err = RV_OK;
    if (retention->fresh || retention->recalled != s->supervisor.epoch)
        err = wait_recall(s);
    if (err != RV_OK)
        return err;
    retention->recalled = s->supervisor.epoch;
    *ret_waits = s->batch.now < retention->held_until;
    return *ret_waits && !retention->held_written ? wait_write(s) : RV_OK;
}

static enum rv_err retention_last(struct rv_scheduler *s)
{
    struct retention *retention = s->retention;
    struct rv_sweep *sweep = &retention->sweep;
    bool waits;
    retention->wait_told = false;
    if (!retains(s) && !retention->fresh)
        return RV_OK;
    enum rv_err err = wait_plan(s, &waits);
    if (err != RV_OK || waits || !retains(s) || s->batch.now < retention->next_at)
        return err;
    if (!retention->walking)
        round_begin(s);
    int64_t us = (counts_clock(s) - retention->piece_us) * share_of(s) / 100;
    sweep->us_max = us < PIECE_US_MIN ? PIECE_US_MIN : us > PIECE_US_MAX ? PIECE_US_MAX : us;
    sweep->epoch = s->supervisor.epoch;
    rv_assert(retention->walking);
    rv_assert(sweep->epoch != 0);
    rv_assert(s->batch.sweep == NULL);
    s->batch.sweep = sweep;
    /* should the store not take it */
    retention->next_at = s->batch.now + retention_round_ms(s);
    return RV_OK;
}

static void round_log(struct rv_scheduler *s)
{
    struct retention *retention = s->retention;
    struct log_fields line = {.count = 0};
    log_number(&line, "tasks", (int64_t)retention->tasks_gone);
    log_number(&line, "keys", (int64_t)retention->keys_gone);
    if (retention->tasks_gone + retention->keys_gone > 0)
        log_event(s, RV_LOG_INFO, "retention", &line);
    retention->tasks_gone = retention->keys_gone = 0;
}

static void retention_act(struct rv_scheduler *s)
{
    struct retention *retention = s->retention;
    const struct rv_sweep *sweep = s->batch.sweep;
    retention->held_written = retention->held_written || retention->wait_told;
    retention->fresh = retention->fresh && !retention->held_written;
    if (sweep == NULL)
        return;
    rv_assert(sweep == &retention->sweep);
    rv_assert(retention->walking);
    if (!s->batch.swept || sweep->outcome != RV_OK) { /* from the first one again */
        retention->walking = false;
        if (s->batch.swept)
            rv_supervisor_unclaim(&s->supervisor);
        return;
    }
    retention->tasks_gone += sweep->tasks_gone;
    retention->keys_gone += sweep->keys_gone;
    retention->walking = !sweep->tasks_over || !sweep->keys_over;
    retention->piece_us = counts_clock(s);
    int64_t rest_ms = sweep->took_us * 100 / share_of(s) / US_PER_MS;
    int64_t rest_at = s->batch.now + (rest_ms > 0 ? rest_ms : 1);
    rv_assert(rest_at > s->batch.now);
    int64_t round_at = retention->round_at + retention_round_ms(s);
    retention->next_at = retention->walking || round_at < rest_at ? rest_at : round_at;
    if (!retention->walking)
        round_log(s);
}

static int64_t retention_next_at(const struct rv_scheduler *s)
{
    int64_t next = s->retention->next_at, held = s->retention->held_until;
    return !retains(s) ? INT64_MAX : next > held ? next : held;
}

static enum rv_err retention_open(struct rv_scheduler *s)
{
    rv_assert(s->retention == NULL);
    s->retention = calloc(1, sizeof *s->retention);
    return s->retention != NULL ? RV_OK : RV_ERR_MEMORY;
}

static void retention_close(struct rv_scheduler *s)
{
    free(s->retention);
}

const struct duty retention_duty = {.open = retention_open,
                                    .last = retention_last,
                                    .act = retention_act,
                                    .next_at = retention_next_at,
                                    .close = retention_close};

#include "notify/delivery_queue.h"

#include "base/assert.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

enum {
    WINDOW_FIRST = 8,
    FAILURES_OF_FAILING = 3, /* of a destination, in a row */
    BACKOFF_MS = 1000,
    UNSENT_PAUSE_MS = 1000,
    BACKOFF_MS_MAX = 15 * 60 * 1000,
    PROBE_MS_MAX = 60 * 1000,
    RETRY_AFTER_MS_MAX = 60 * 60 * 1000,
    LOST_MS = 5 * 60 * 1000, /* a sender that has said nothing for so long says nothing */
    EXPIRED_MAX = 64,        /* given up at one destination in one pick */
    IDLE_MS = 10 * 60 * 1000 /* a destination without tasks is forgotten after */
};
#define GIVEN_UP_MS ((int64_t)RV_DAY_MS)

struct queue_entry {
    struct rv_task_id task;
    uint32_t next;
    uint32_t last;
    uint32_t failures;
    int64_t since;
    int64_t due_at;
    int64_t queued_at; /* the key of its heap entry that counts; 0: it has none */
    int64_t sent_at;   /* on its way since; 0: it is not */
    struct rv_delivery_queue_destination *destination; /* borrowed */
};

struct rv_delivery_queue_destination {
    char *name; /* owned */
    size_t name_bytes;
    uint64_t hash;
    struct rv_heap due; /* (instant, task); stale ones stay until they come up */
    size_t tasks;
    size_t sent;
    unsigned window;
    unsigned failures; /* in a row */
    int64_t not_before;
    int64_t used_at;
    bool more;                                  /* rows of it were not noted */
    struct rv_task_id after;                    /* ... after this one */
    struct rv_delivery_queue_destination *next; /* in the ring */
    struct rv_delivery_queue_destination *prev;
};

void rv_delivery_queue_init(struct rv_delivery_queue *queue, uint64_t seed,
                            struct rv_hash_key hash_key)
{
    *queue = (struct rv_delivery_queue){.hash_key = hash_key, .next_at = INT64_MAX};
    rv_prng_init(&queue->prng, seed);
    rv_map_init(&queue->tasks);
    rv_map_init(&queue->destinations);
}

/* ---- destinations ---- */

static struct rv_str name_of(const struct rv_delivery_queue_destination *d)
{
    return (struct rv_str){d->name, d->name_bytes};
}

static bool is_failing(const struct rv_delivery_queue_destination *d)
{
    return d->failures >= FAILURES_OF_FAILING;
}

static struct rv_delivery_queue_destination *destination_find(const struct rv_delivery_queue *queue,
                                                              struct rv_str name)
{
    const uint64_t *found = rv_map_find(&queue->destinations, rv_hash(queue->hash_key, name), 0);
    struct rv_delivery_queue_destination *d =
        found ? (struct rv_delivery_queue_destination *)(uintptr_t)*found : NULL;
    return d != NULL && rv_str_eq(name_of(d), name) ? d : NULL;
}

static void destination_free(struct rv_delivery_queue *queue,
                             struct rv_delivery_queue_destination *d)
{
    rv_assert(d->next->prev == d);
    rv_assert(d->prev->next == d);
    rv_map_remove(&queue->destinations, d->hash, 0);
    d->prev->next = d->next;
    d->next->prev = d->prev;
    if (queue->first == d)
        queue->first = d->next != d ? d->next : NULL;
    if (queue->turn == d)
        queue->turn = queue->first;
    rv_heap_done(&d->due);
    free(d->name);
    free(d);
}

/* Those without tasks are kept for a while: what is known of their health is of use. */
static void destinations_trim(struct rv_delivery_queue *queue, int64_t now)
{
    struct rv_delivery_queue_destination *d = queue->first;
    for (size_t left = queue->destinations.count; left > 0; left--) {
        struct rv_delivery_queue_destination *next = d->next;
        rv_assert(d->sent <= d->tasks);
        if (d->tasks == 0 && !d->more && now - d->used_at >= IDLE_MS)
            destination_free(queue, d);
        d = next;
    }
}

static struct rv_delivery_queue_destination *destination_get(struct rv_delivery_queue *queue,
                                                             struct rv_str name, int64_t now)
{
    struct rv_delivery_queue_destination *d = destination_find(queue, name);
    uint64_t hash = rv_hash(queue->hash_key, name);
    if (d != NULL || rv_map_find(&queue->destinations, hash, 0) != NULL)
        return d; /* two names with one hash: the second has to wait for the first to go */
    if (queue->destinations.count >= RV_DELIVERY_QUEUE_DESTINATIONS_MAX)
        destinations_trim(queue, now);
    if (queue->destinations.count >= RV_DELIVERY_QUEUE_DESTINATIONS_MAX)
        return NULL;
    d = calloc(1, sizeof *d);
    char *copy = rv_str_dup(name);
    if (d == NULL || copy == NULL ||
        rv_map_put(&queue->destinations, hash, 0, (uint64_t)(uintptr_t)d) != RV_OK) {
        free(copy);
        free(d);
        return NULL;
    }
    *d = (struct rv_delivery_queue_destination){
        .name = copy, .name_bytes = name.len, .hash = hash, .window = WINDOW_FIRST, .used_at = now};
    rv_heap_init(&d->due);
    d->next = d->prev = d;
    if (queue->first != NULL) {
        d->next = queue->first;
        d->prev = queue->first->prev;
        d->prev->next = d->next->prev = d;
    }
    queue->first = d;
    rv_assert(destination_find(queue, name) == d);
    return d;
}

/* ---- entries ---- */

static struct queue_entry *entry_find(const struct rv_delivery_queue *queue, struct rv_task_id task)
{
    const uint64_t *found = rv_map_find(&queue->tasks, (uint64_t)task.value, 0);
    return found ? (struct queue_entry *)(uintptr_t)*found : NULL;
}

static void sent_end(struct rv_delivery_queue *queue, struct queue_entry *e)
{
    if (e->sent_at == 0)
        return;
    rv_assert(e->destination->sent > 0);
    rv_assert(queue->sent > 0);
    e->sent_at = 0;
    e->destination->sent--;
    queue->sent--;
    queue->next_at = 0; /* there is room in a window */
}

static void entry_free(struct rv_delivery_queue *queue, struct queue_entry *e)
{
    sent_end(queue, e);
    rv_assert(e->destination->tasks > 0);
    e->destination->tasks--;
    rv_map_remove(&queue->tasks, (uint64_t)e->task.value, 0);
    free(e);
}

void rv_delivery_queue_forget(struct rv_delivery_queue *queue, struct rv_task_id task)
{
    struct queue_entry *e = entry_find(queue, task);
    if (e != NULL)
        entry_free(queue, e);
}

void rv_delivery_queue_done(struct rv_delivery_queue *queue)
{
    for (size_t i = 0; i < queue->tasks.room; i++)
        if (queue->tasks.slots[i].used)
            free((struct queue_entry *)(uintptr_t)queue->tasks.slots[i].value);
    rv_map_done(&queue->tasks);
    while (queue->first != NULL)
        destination_free(queue, queue->first);
    rv_map_done(&queue->destinations);
}

/* Due at its instant. Without memory for that it is forgotten, and the walk over the rows brings it
 * back. */
static bool entry_queue(struct rv_delivery_queue *queue, struct queue_entry *e)
{
    rv_assert(e->sent_at == 0);
    int64_t at = e->due_at > 0 ? e->due_at : 1;
    if (e->queued_at == at)
        return true;
    if (rv_heap_push(&e->destination->due, at, (uint64_t)e->task.value, 0) != RV_OK) {
        e->destination->more = true;
        e->destination->after = (struct rv_task_id){0};
        entry_free(queue, e);
        return false;
    }
    e->queued_at = at;
    if (at < queue->next_at)
        queue->next_at = at;
    return true;
}

static size_t tasks_max(const struct rv_delivery_queue_destination *d)
{
    return is_failing(d) ? RV_DELIVERY_QUEUE_FAILING_MAX : RV_DELIVERY_QUEUE_TASKS_MAX;
}

/* A destination that fails needs few of its tasks here: the others go back to their rows, so that
 * those of the living have room. */
static void destination_shed(struct rv_delivery_queue *queue,
                             struct rv_delivery_queue_destination *d)
{
    struct rv_heap_entry taken;
    while (d->tasks > RV_DELIVERY_QUEUE_FAILING_MAX && rv_heap_pop(&d->due, &taken)) {
        struct queue_entry *e = entry_find(queue, (struct rv_task_id){(int64_t)taken.value});
        if (e == NULL || e->queued_at != taken.at || e->destination != d)
            continue;
        entry_free(queue, e);
        d->more = true;
        d->after = (struct rv_task_id){0};
    }
}

static struct queue_entry *entry_new(struct rv_delivery_queue *queue, const struct rv_delivery *row,
                                     int64_t now)
{
    rv_assert(row->destination.at != NULL);
    rv_assert(entry_find(queue, row->task) == NULL);
    struct rv_delivery_queue_destination *d = destination_get(queue, row->destination, now);
    if (d == NULL)
        return NULL;
    bool room = d->tasks < tasks_max(d) && queue->tasks.count < RV_DELIVERY_QUEUE_ALL_MAX;
    struct queue_entry *e = room ? calloc(1, sizeof *e) : NULL;
    if (e != NULL &&
        rv_map_put(&queue->tasks, (uint64_t)row->task.value, 0, (uint64_t)(uintptr_t)e) != RV_OK) {
        free(e);
        e = NULL;
    }
    if (e == NULL) {
        if (!d->more || row->task.value < d->after.value)
            d->after.value = row->task.value - 1;
        d->more = true;
        return NULL;
    }
    e->task = row->task;
    e->destination = d;
    d->tasks++;
    d->used_at = now;
    return e;
}

bool rv_delivery_queue_note(struct rv_delivery_queue *queue, const struct rv_delivery *row,
                            int64_t now)
{
    struct queue_entry *e = entry_find(queue, row->task);
    uint32_t last = e != NULL && e->last > row->last ? e->last : row->last;
    if (row->next > last || row->given_up) {
        if (e != NULL)
            entry_free(queue, e);
        return true;
    }
    if (e == NULL && row->destination.at == NULL)
        return false; /* it was forgotten meanwhile: a walk brings it back */
    if (e == NULL)
        e = entry_new(queue, row, now);
    if (e == NULL)
        return false;
    rv_assert(e->task.value == row->task.value);
    rv_assert(e->destination->tasks > 0);
    e->next = row->next;
    e->last = last;
    e->failures = row->failures;
    e->since = row->since;
    e->due_at = row->due_at;
    sent_end(queue, e);
    return entry_queue(queue, e);
}

bool rv_delivery_queue_see(struct rv_delivery_queue *queue, const struct rv_delivery *row,
                           int64_t now)
{
    struct queue_entry *e = entry_find(queue, row->task);
    if (e == NULL)
        return rv_delivery_queue_note(queue, row, now);
    if (e->sent_at == 0 || now - e->sent_at < LOST_MS)
        return true;
    sent_end(queue, e);
    return entry_queue(queue, e);
}

bool rv_delivery_queue_knows(const struct rv_delivery_queue *queue, struct rv_task_id task)
{
    return entry_find(queue, task) != NULL;
}

void rv_delivery_queue_grow(struct rv_delivery_queue *queue, struct rv_task_id task, uint32_t last)
{
    struct queue_entry *e = entry_find(queue, task);
    if (e != NULL && e->last < last)
        e->last = last;
}

/* ---- what is sent next ---- */

/* The first of the destination that is due, out of the heap; NULL: none is. */
static struct queue_entry *due_take(struct rv_delivery_queue *queue,
                                    struct rv_delivery_queue_destination *d, int64_t now)
{
    const struct rv_heap_entry *first;
    struct rv_heap_entry taken;
    while ((first = rv_heap_first(&d->due)) != NULL && first->at <= now) {
        rv_heap_pop(&d->due, &taken);
        struct queue_entry *e = entry_find(queue, (struct rv_task_id){(int64_t)taken.value});
        if (e == NULL || e->queued_at != taken.at || e->destination != d)
            continue;
        e->queued_at = 0;
        if (e->sent_at == 0)
            return e;
    }
    return NULL;
}

static void entry_send(struct rv_delivery_queue *queue, struct queue_entry *e, int64_t now)
{
    rv_assert(e->sent_at == 0);
    e->sent_at = now > 0 ? now : 1;
    e->destination->sent++;
    e->destination->used_at = now;
    queue->sent++;
}

static bool is_expired(const struct queue_entry *e, int64_t now)
{
    return is_failing(e->destination) && now - e->since >= GIVEN_UP_MS;
}

static bool has_room(const struct rv_delivery_queue *queue,
                     const struct rv_delivery_queue_destination *d)
{
    rv_assert(d->window >= 1);
    rv_assert(d->window <= RV_DELIVERY_QUEUE_WINDOW_MAX);
    unsigned window = is_failing(d) ? 1 : d->window;
    return d->sent < window && queue->sent < RV_DELIVERY_QUEUE_SENT_MAX;
}

static size_t destination_pick(struct rv_delivery_queue *queue,
                               struct rv_delivery_queue_destination *d, int64_t now,
                               struct rv_delivery_queue_pick *ret_picks, size_t max)
{
    size_t count = 0, expired = 0;
    while (count < max && expired < EXPIRED_MAX && has_room(queue, d)) {
        struct queue_entry *e = now < d->not_before ? NULL : due_take(queue, d, now);
        if (e == NULL)
            break;
        bool over = is_expired(e, now);
        if (!over)
            entry_send(queue, e, now);
        expired += over;
        rv_assert(count < max);
        ret_picks[count++] = (struct rv_delivery_queue_pick){e->task, e->next, over};
    }
    return count;
}

/* When the destination has something to send that it has room for. */
static int64_t destination_next_at(const struct rv_delivery_queue *queue,
                                   const struct rv_delivery_queue_destination *d)
{
    const struct rv_heap_entry *first = rv_heap_first(&d->due);
    if (first == NULL || !has_room(queue, d))
        return INT64_MAX;
    return first->at > d->not_before ? first->at : d->not_before;
}

size_t rv_delivery_queue_pick(struct rv_delivery_queue *queue, int64_t now,
                              struct rv_delivery_queue_pick *ret_picks, size_t max)
{
    if (now < queue->next_at || queue->first == NULL)
        return 0;
    size_t count = 0;
    struct rv_delivery_queue_destination *d = queue->turn != NULL ? queue->turn : queue->first;
    for (size_t left = queue->destinations.count; left > 0 && count < max; left--) {
        count += destination_pick(queue, d, now, ret_picks + count, max - count);
        d = d->next;
    }
    rv_assert(count <= max);
    queue->turn = d->next;
    queue->next_at = INT64_MAX;
    for (size_t left = queue->destinations.count; left > 0; left--, d = d->next) {
        int64_t at = destination_next_at(queue, d);
        if (at < queue->next_at)
            queue->next_at = at;
    }
    return count;
}

void rv_delivery_queue_unpick(struct rv_delivery_queue *queue, struct rv_task_id task, int64_t at)
{
    struct queue_entry *e = entry_find(queue, task);
    if (e == NULL)
        return;
    sent_end(queue, e);
    e->due_at = at;
    (void)entry_queue(queue, e); /* without memory it is forgotten: a walk brings it back */
}

int64_t rv_delivery_queue_next_at(const struct rv_delivery_queue *queue)
{
    return queue->next_at;
}

/* ---- what came of it ---- */

/* From half to all of it: those who failed together do not come back together. */
static int64_t backoff(struct rv_delivery_queue *queue, unsigned failures, int64_t most)
{
    rv_assert(failures > 0);
    int64_t ms = BACKOFF_MS;
    for (unsigned i = 1; i < failures && ms < most; i++)
        ms *= 2;
    ms = ms < most ? ms : most;
    return ms / 2 + (int64_t)rv_prng_below(&queue->prng, (uint64_t)(ms / 2) + 1);
}

/* It works again: whoever waited for that need not wait any longer. */
static void destination_release(struct rv_delivery_queue *queue,
                                struct rv_delivery_queue_destination *d, int64_t now)
{
    rv_assert(!is_failing(d));
    d->not_before = 0;
    d->window = WINDOW_FIRST;
    for (size_t i = 0; i < queue->tasks.room; i++) {
        struct queue_entry *e = queue->tasks.slots[i].used
                                    ? (struct queue_entry *)(uintptr_t)queue->tasks.slots[i].value
                                    : NULL;
        if (e == NULL || e->destination != d || e->sent_at != 0 || e->due_at <= now)
            continue;
        int64_t at = e->due_at;
        e->due_at = now;
        if (e->queued_at != 0 && rv_heap_push(&d->due, now, (uint64_t)e->task.value, 0) == RV_OK)
            e->queued_at = now;
        else
            e->due_at = at;
    }
    queue->next_at = 0;
}

static bool destination_heed(struct rv_delivery_queue *queue,
                             struct rv_delivery_queue_destination *d,
                             const struct rv_notice_result *result, int64_t now)
{
    bool failing = is_failing(d);
    if (result->unsent) {
        if (d->not_before < now + UNSENT_PAUSE_MS)
            d->not_before = now + UNSENT_PAUSE_MS;
        return false;
    }
    if (result->taken || result->alive) {
        d->failures = 0;
        if (d->window < RV_DELIVERY_QUEUE_WINDOW_MAX)
            d->window++;
        if (failing)
            destination_release(queue, d, now);
        return failing;
    }
    if (d->failures < UINT16_MAX)
        d->failures++;
    d->window = d->window > 1 ? d->window / 2 : 1;
    rv_assert(d->window >= 1);
    int64_t pause = 0;
    if (is_failing(d))
        pause = backoff(queue, d->failures - FAILURES_OF_FAILING + 1, PROBE_MS_MAX);
    int64_t asked = result->retry_after_ms < RETRY_AFTER_MS_MAX ? result->retry_after_ms
                                                                : RETRY_AFTER_MS_MAX;
    pause = pause > asked ? pause : asked;
    if (pause > 0)
        d->not_before = now + pause;
    if (is_failing(d) && !failing)
        destination_shed(queue, d);
    return is_failing(d) && !failing;
}

static struct rv_delivery_queue_verdict verdict_of(const struct queue_entry *e)
{
    return (struct rv_delivery_queue_verdict){
        .destination = name_of(e->destination),
        .row = {.task = e->task,
                .next = e->next,
                .last = e->last,
                .failures = e->failures,
                .since = e->since,
                .due_at = e->due_at},
        .next_before = e->next,
        .failures_before = e->failures,
    };
}

bool rv_delivery_queue_result(struct rv_delivery_queue *queue,
                              const struct rv_notice_result *result, int64_t now,
                              struct rv_delivery_queue_verdict *ret_verdict)
{
    struct queue_entry *e = entry_find(queue, result->task);
    if (e == NULL || e->sent_at == 0 || e->next != result->number)
        return false;
    rv_assert(e->destination->sent > 0);
    struct rv_delivery_queue_verdict v = verdict_of(e);
    v.turned = destination_heed(queue, e->destination, result, now);
    v.failing = is_failing(e->destination);
    if (result->taken) {
        v.row.next++;
        v.row.failures = 0;
        v.row.since = v.row.due_at = now;
    } else {
        int64_t asked = result->retry_after_ms < RETRY_AFTER_MS_MAX ? result->retry_after_ms
                                                                    : RETRY_AFTER_MS_MAX;
        int64_t pause = backoff(queue, ++v.row.failures, BACKOFF_MS_MAX);
        v.row.due_at = now + (pause > asked ? pause : asked);
        v.row.given_up = result->gone || now - e->since >= GIVEN_UP_MS;
    }
    *ret_verdict = v;
    return true;
}

bool rv_delivery_queue_expire(struct rv_delivery_queue *queue, struct rv_task_id task, int64_t now,
                              struct rv_delivery_queue_verdict *ret_verdict)
{
    struct queue_entry *e = entry_find(queue, task);
    if (e == NULL)
        return false;
    entry_send(queue, e, now); /* nobody else takes it up meanwhile */
    *ret_verdict = verdict_of(e);
    ret_verdict->row.given_up = true;
    return true;
}

/* ---- what holds at any time ---- */

static const char *entry_broken(const struct rv_delivery_queue *queue, const struct queue_entry *e)
{
    if (destination_find(queue, name_of(e->destination)) != e->destination)
        return "the destination of each known task is in the index of destinations";
    return entry_find(queue, e->task) != e ? "each known task is in the index under its own id"
                                           : NULL;
}

const char *rv_delivery_queue_broken(const struct rv_delivery_queue *queue)
{
    size_t tasks = 0, sent = 0, on_their_way = 0;
    const struct rv_delivery_queue_destination *d = queue->first;
    for (size_t left = queue->destinations.count; left > 0; left--, d = d->next) {
        tasks += d->tasks;
        sent += d->sent;
        if (d->next->prev != d)
            return "the destinations form a ring";
    }
    if (d != queue->first)
        return "the ring of destinations is as long as their index";
    for (size_t i = 0; i < queue->tasks.room; i++) {
        if (!queue->tasks.slots[i].used)
            continue;
        const struct queue_entry *e =
            (const struct queue_entry *)(uintptr_t)queue->tasks.slots[i].value;
        const char *broken = entry_broken(queue, e);
        if (broken != NULL)
            return broken;
        on_their_way += e->sent_at != 0;
    }
    if (tasks != queue->tasks.count)
        return "the counts of the destinations' tasks are correct";
    return sent != queue->sent || sent != on_their_way
               ? "the counts of messages on their way are correct"
               : NULL;
}

/* ---- what is left in the rows ---- */

bool rv_delivery_queue_hungry(const struct rv_delivery_queue *queue, struct rv_str *ret_destination,
                              struct rv_task_id *ret_after)
{
    struct rv_delivery_queue_destination *d = queue->first;
    if (queue->tasks.count >= RV_DELIVERY_QUEUE_ALL_MAX)
        return false;
    for (size_t left = queue->destinations.count; left > 0; left--, d = d->next) {
        rv_assert(d->next->prev == d);
        if (!d->more || d->tasks > tasks_max(d) / 2)
            continue;
        *ret_destination = name_of(d);
        *ret_after = d->after;
        return true;
    }
    return false;
}

void rv_delivery_queue_read(struct rv_delivery_queue *queue, struct rv_str destination,
                            struct rv_task_id after, bool all)
{
    struct rv_delivery_queue_destination *d = destination_find(queue, destination);
    if (d == NULL)
        return;
    d->more = !all;
    d->after = all ? (struct rv_task_id){0} : after;
}

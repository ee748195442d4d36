/* One heap entry a task, mostly: when a task's instant moves later, its entry stays and is pushed
 * again when it comes up; when it moves earlier, a second entry is pushed. So the heap holds about
 * as many entries as there are open tasks with a timer, however often they change; what ended tasks
 * leave behind goes at its instant, or at once when it is most of the heap. */
#include "supervisor/supervisor.h"

#include "base/assert.h"
#include "base/time.h"

enum { HEAP_WASTE_MIN = 4096 };

void rv_supervisor_init(struct rv_supervisor *supervisor, struct rv_store *store,
                        int64_t scan_interval_ms, int64_t role_lease_ms)
{
    *supervisor = (struct rv_supervisor){
        .store = store,
        .scan_interval_ms = scan_interval_ms,
        .role_lease_ms = role_lease_ms,
        .scan_rows_max = RV_SCAN_ROWS_MAX,
        .scan_first = true,
    };
    rv_heap_init(&supervisor->heap);
    rv_map_init(&supervisor->wakes);
}

void rv_supervisor_done(struct rv_supervisor *supervisor)
{
    rv_heap_done(&supervisor->heap);
    rv_map_done(&supervisor->wakes);
}

/* Renewed in the last quarter of its lease: an idle server writes about once a lease. Another's is
 * asked for when it ends. */
static int64_t campaign_at(const struct rv_supervisor *supervisor)
{
    if (supervisor->epoch == 0)
        return supervisor->role_until;
    return supervisor->role_until - supervisor->role_lease_ms / 4;
}

enum rv_err rv_supervisor_campaign(struct rv_supervisor *supervisor, int64_t now, bool *ret_wrote)
{
    int64_t before = supervisor->epoch;
    *ret_wrote = supervisor->taking = false;
    if (now < campaign_at(supervisor))
        return RV_OK;
    enum rv_err err = supervisor->store->ops->claim_role(
        supervisor->store, RV_STR("supervisor"), supervisor->role_lease_ms, &supervisor->epoch,
        &supervisor->role_until);
    if (err == RV_ERR_IO)
        err = RV_ERR_COMMIT_UNKNOWN; /* a store that failed to write (store.h, claim_role) */
    if (err != RV_OK) {
        supervisor->epoch = 0;
        supervisor->role_until = now;
        return err;
    }
    *ret_wrote = supervisor->epoch != 0;
    supervisor->taking = supervisor->epoch != 0 && supervisor->epoch != before;
    return RV_OK;
}

bool rv_supervisor_holds(const struct rv_supervisor *supervisor)
{
    return supervisor->epoch != 0 && !supervisor->taking;
}

void rv_supervisor_unclaim(struct rv_supervisor *supervisor)
{
    supervisor->epoch = 0;
    supervisor->role_until = 0;
}

void rv_supervisor_walk(struct rv_supervisor *supervisor)
{
    supervisor->scan_first = true;
    supervisor->scan_after = supervisor->piece_after = (struct rv_task_id){0};
    supervisor->scan_next_at = 0;
}

void rv_supervisor_walk_piece_again(struct rv_supervisor *supervisor)
{
    if (!supervisor->scan_first)
        return;
    supervisor->scan_after = supervisor->piece_after;
    supervisor->scan_next_at = 0;
}

bool rv_supervisor_scan_name(struct rv_supervisor *supervisor, int64_t now,
                             struct rv_scan *ret_scan)
{
    supervisor->piece_after = supervisor->scan_after;
    *ret_scan = (struct rv_scan){.after = supervisor->scan_after,
                                 .rows_max = supervisor->scan_rows_max};
    return now >= supervisor->scan_next_at;
}

/* What has begun since the walk began is left out: else it would not end while each batch begins
 * tasks. These have ids of the store's clock. Those of tasks from before somebody set it back are
 * ahead of it. Gives the id after which the walk goes on. */
static struct rv_task_id scan_filter(struct rv_scan *scan, struct rv_task_id until,
                                     struct rv_task_id ahead)
{
    struct rv_task_id after = scan->count > 0 ? scan->rows[scan->count - 1].id : scan->after;
    size_t kept = 0;
    for (size_t i = 0; i < scan->count; i++)
        if (scan->rows[i].id.value < until.value || scan->rows[i].id.value >= ahead.value)
            scan->rows[kept++] = scan->rows[i];
    scan->count = kept;
    if (after.value >= until.value && after.value < ahead.value)
        after.value = ahead.value - 1;
    return after;
}

bool rv_supervisor_scan_take(struct rv_supervisor *supervisor, int64_t now, struct rv_scan *scan,
                             bool *ret_last)
{
    rv_assert(scan->count <= scan->rows_max);
    *ret_last = false;
    if (scan->after.value != supervisor->scan_after.value)
        return false;
    *ret_last = scan->count < scan->rows_max;
    struct rv_task_id ahead = rv_id_from(rv_time_add(now, 1));
    if (supervisor->scan_after.value == 0)
        supervisor->scan_until = ahead;
    supervisor->scan_after = scan_filter(scan, supervisor->scan_until, ahead);
    /* The walk after a start goes on without a pause. */
    supervisor->scan_next_at = supervisor->scan_first
                                   ? now
                                   : rv_time_add(now, supervisor->scan_interval_ms);
    return true;
}

void rv_supervisor_scan_over(struct rv_supervisor *supervisor, int64_t now)
{
    supervisor->scan_after = (struct rv_task_id){0};
    supervisor->scan_first = false;
    supervisor->scan_next_at = rv_time_add(now, supervisor->scan_interval_ms);
    supervisor->rounds++;
}

void rv_supervisor_scan_on(struct rv_supervisor *supervisor, int64_t now, struct rv_task_id after)
{
    supervisor->scan_after = after;
    supervisor->scan_next_at = now;
}

/* Whether the head of the heap is an instant that is due. One that does not count any more is taken
 * out; where the instant came later its entry does not go before others that are older. */
static bool due_find(struct rv_supervisor *supervisor, int64_t now)
{
    const struct rv_heap_entry *first;
    while ((first = rv_heap_first(&supervisor->heap)) != NULL && first->at <= now) {
        const uint64_t *wake = rv_map_find(&supervisor->wakes, first->value, 0);
        int64_t wake_at = wake != NULL ? (int64_t)*wake : 0;
        if (wake != NULL && first->at >= wake_at)
            return true;
        struct rv_heap_entry entry;
        rv_heap_pop(&supervisor->heap, &entry);
        if (wake != NULL && rv_heap_push(&supervisor->heap, wake_at, entry.value, 0) != RV_OK)
            rv_map_remove(&supervisor->wakes, entry.value, 0); /* the repair scan finds it */
    }
    return false;
}

size_t rv_supervisor_due(struct rv_supervisor *supervisor, int64_t now,
                         struct rv_task_id *ret_tasks, size_t max)
{
    size_t count = 0;
    while (count < max && due_find(supervisor, now)) {
        struct rv_heap_entry entry;
        rv_heap_pop(&supervisor->heap, &entry);
        rv_map_remove(&supervisor->wakes, entry.value, 0);
        ret_tasks[count++] = (struct rv_task_id){(int64_t)entry.value};
    }
    return count;
}

size_t rv_supervisor_next(struct rv_supervisor *supervisor, int64_t now,
                          struct rv_task_id *ret_tasks, size_t max)
{
    struct rv_heap_entry entries[RV_HEAP_LEAST_MAX];
    if (!due_find(supervisor, now))
        return 0;
    size_t count = 0, least = rv_heap_least(&supervisor->heap, max, entries);
    for (size_t i = 0; i < least && entries[i].at <= now; i++) {
        const uint64_t *wake = rv_map_find(&supervisor->wakes, entries[i].value, 0);
        if (wake != NULL && (int64_t)*wake <= entries[i].at)
            ret_tasks[count++] = (struct rv_task_id){(int64_t)entries[i].value};
    }
    return count;
}

/* Builds the heap anew from what counts; without memory for that it stays as it is. */
static void heap_sweep(struct rv_supervisor *supervisor)
{
    struct rv_heap swept;
    rv_heap_init(&swept);
    for (size_t i = 0; i < supervisor->wakes.room; i++) {
        const struct rv_map_slot *slot = &supervisor->wakes.slots[i];
        if (!slot->used)
            continue;
        if (rv_heap_push(&swept, (int64_t)slot->value, slot->a, 0) != RV_OK) {
            rv_heap_done(&swept);
            return;
        }
    }
    rv_assert(swept.count == supervisor->wakes.count);
    rv_heap_done(&supervisor->heap);
    supervisor->heap = swept;
}

enum rv_err rv_supervisor_note(struct rv_supervisor *supervisor, struct rv_task_id task,
                               int64_t wake_at)
{
    rv_assert(task.value != 0);
    uint64_t key = (uint64_t)task.value;
    if (wake_at == 0) {
        rv_map_remove(&supervisor->wakes, key, 0);
        return RV_OK;
    }
    uint64_t *known = rv_map_find(&supervisor->wakes, key, 0);
    if (known != NULL && (int64_t)*known <= wake_at) {
        *known = (uint64_t)wake_at; /* an entry at or before it is in the heap */
        return RV_OK;
    }
    if (supervisor->heap.count > HEAP_WASTE_MIN + 2 * supervisor->wakes.count)
        heap_sweep(supervisor);
    /* An entry of the heap whose instant does not count is passed over; an instant without an entry
     * would never come, and the repair scan would take the task for known. */
    enum rv_err err = rv_heap_push(&supervisor->heap, wake_at, key, 0);
    if (err == RV_OK && known == NULL)
        err = rv_map_put(&supervisor->wakes, key, 0, (uint64_t)wake_at);
    else if (err == RV_OK)
        *known = (uint64_t)wake_at;
    return err;
}

int64_t rv_supervisor_next_at(const struct rv_supervisor *supervisor)
{
    int64_t at = supervisor->scan_next_at;
    const struct rv_heap_entry *first = rv_heap_first(&supervisor->heap);
    if (first != NULL && first->at < at)
        at = first->at;
    int64_t campaign = campaign_at(supervisor);
    return campaign < at ? campaign : at;
}

enum rv_err rv_supervisor_note_before(struct rv_supervisor *supervisor, struct rv_task_id task,
                                      int64_t wake_at)
{
    const uint64_t *known = rv_map_find(&supervisor->wakes, (uint64_t)task.value, 0);
    rv_assert(wake_at != 0);
    if (known != NULL && (int64_t)*known <= wake_at)
        return RV_OK;
    return rv_supervisor_note(supervisor, task, wake_at);
}

bool rv_supervisor_knows(const struct rv_supervisor *supervisor, struct rv_task_id task)
{
    return rv_map_find(&supervisor->wakes, (uint64_t)task.value, 0) != NULL;
}

#include "base/os/mailbox.h"

#include "base/assert.h"
#include "base/os/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void rv_mailbox_init(struct rv_mailbox *box, size_t link_offset)
{
    *box = (struct rv_mailbox){.link_offset = link_offset};
    rv_spin_init(&box->spin);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    int failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&box->filled, &attributes);
    failed |= pthread_mutex_init(&box->mutex, NULL);
    pthread_condattr_destroy(&attributes);
    rv_assert(failed == 0);
}

void rv_mailbox_done(struct rv_mailbox *box)
{
    rv_assert(box->first == NULL);
    rv_assert(box->count == 0);
    pthread_cond_destroy(&box->filled);
    pthread_mutex_destroy(&box->mutex);
}

/* The link has the item's own pointer type, which is not known here: it is copied as bytes. */
static void link_set(const struct rv_mailbox *box, void *item, void *next)
{
    memcpy((char *)item + box->link_offset, &next, sizeof next);
}

static void *link_get(const struct rv_mailbox *box, void *item)
{
    void *next;
    memcpy(&next, (char *)item + box->link_offset, sizeof next);
    return next;
}

/* ---- arrivals ---- */

void rv_mailbox_keep_arrivals(struct rv_mailbox *box, size_t behind_offset)
{
    rv_assert(behind_offset != 0);
    rv_assert(box->first == NULL);
    box->behind_offset = behind_offset;
}

void rv_mailbox_join(struct rv_mailbox *box, struct rv_mailbox_maker *maker)
{
    rv_assert(box->first == NULL);
    atomic_init(&maker->since, INT64_MAX);
    maker->next = box->makers;
    box->makers = maker;
}

/* It is said before the clock is read: an instant that the taker has read before it heard of the
 * item is not after the item's. */
int64_t rv_mailbox_arrive(struct rv_mailbox_maker *maker)
{
    if (atomic_load(&maker->since) == INT64_MAX)
        atomic_store(&maker->since, rv_clock_mono_ms());
    return rv_clock_mono_ms();
}

void rv_mailbox_settle(struct rv_mailbox_maker *maker, int64_t since)
{
    atomic_store(&maker->since, since);
}

/* Whatever is put from now on did not arrive before; with the mutex held. */
static int64_t yet_to_come(const struct rv_mailbox *box)
{
    int64_t since = rv_clock_mono_ms();
    for (struct rv_mailbox_maker *maker = box->makers; maker != NULL; maker = maker->next) {
        int64_t its = atomic_load(&maker->since);
        since = its < since ? its : since;
    }
    return since;
}

static void behind_set(const struct rv_mailbox *box, void *item)
{
    int64_t at = yet_to_come(box);
    memcpy((char *)item + box->behind_offset, &at, sizeof at);
}

static int64_t heard_until(const struct rv_mailbox *box)
{
    if (box->first == NULL)
        return yet_to_come(box);
    int64_t at;
    memcpy(&at, (char *)box->first + box->behind_offset, sizeof at);
    return at;
}

int64_t rv_mailbox_heard_until(const struct rv_mailbox *box)
{
    return box->heard_until;
}

bool rv_mailbox_put(struct rv_mailbox *box, void *item)
{
    pthread_mutex_lock(&box->mutex);
    bool open = !box->closed;
    bool wake = false;
    rv_assert((box->first == NULL) == (box->last == NULL));
    rv_assert((box->first == NULL) == (box->count == 0));
    if (open) {
        link_set(box, item, NULL);
        if (box->behind_offset != 0)
            behind_set(box, item);
        if (box->last != NULL)
            link_set(box, box->last, item);
        else
            box->first = item;
        box->last = item;
        box->count++;
        wake = box->waiting;
        box->waiting = false; /* one signal is enough for all that come before it wakes */
    }
    pthread_mutex_unlock(&box->mutex);
    if (wake)
        pthread_cond_signal(&box->filled);
    return open;
}

static struct timespec deadline_in(int64_t wait_ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(wait_ms / 1000);
    at.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static bool has_news(const struct rv_mailbox *box)
{
    return box->first != NULL || box->closed || box->woken;
}

static void mailbox_look(struct rv_mailbox *box, int64_t until_us)
{
    bool on = rv_clock_mono_us() < until_us;
    while (on && !has_news(box)) {
        pthread_mutex_unlock(&box->mutex);
        on = rv_spin_on(until_us);
        pthread_mutex_lock(&box->mutex);
    }
}

static void mailbox_sleep(struct rv_mailbox *box, int64_t wait_ms)
{
    struct timespec deadline = deadline_in(wait_ms < 0 ? 0 : wait_ms);
    box->waiting = true;
    int result = 0;
    while (box->waiting && !box->closed && result != ETIMEDOUT) {
        if (wait_ms < 0)
            result = pthread_cond_wait(&box->filled, &box->mutex);
        else
            result = pthread_cond_timedwait(&box->filled, &box->mutex, &deadline);
    }
    box->waiting = false;
}

static void mailbox_wait(struct rv_mailbox *box, int64_t wait_ms)
{
    mailbox_look(box, rv_spin_begin(&box->spin, rv_clock_mono_us()));
    if (!has_news(box))
        mailbox_sleep(box, wait_ms);
    rv_spin_end(&box->spin, rv_clock_mono_us());
}

size_t rv_mailbox_take(struct rv_mailbox *box, void **ret_items, size_t max, int64_t wait_ms)
{
    pthread_mutex_lock(&box->mutex);
    if (!has_news(box) && wait_ms != 0)
        mailbox_wait(box, wait_ms);
    box->woken = false;
    size_t taken = 0;
    while (taken < max && box->first != NULL) {
        ret_items[taken++] = box->first;
        box->first = link_get(box, box->first);
    }
    if (box->first == NULL)
        box->last = NULL;
    rv_assert(taken <= box->count);
    box->count -= taken;
    rv_assert((box->first == NULL) == (box->count == 0));
    if (box->behind_offset != 0)
        box->heard_until = heard_until(box);
    pthread_mutex_unlock(&box->mutex);
    return taken;
}

size_t rv_mailbox_withdraw(struct rv_mailbox *box, bool (*goes)(const void *item), void **ret_items,
                           size_t max)
{
    size_t taken = 0;
    void *before = NULL, *next;
    pthread_mutex_lock(&box->mutex);
    for (void *item = box->first; item != NULL && taken < max; item = next) {
        next = link_get(box, item);
        if (!goes(item)) {
            before = item;
            continue;
        }
        ret_items[taken++] = item;
        if (before != NULL)
            link_set(box, before, next);
        else
            box->first = next;
        if (next == NULL)
            box->last = before;
    }
    rv_assert(taken <= box->count);
    box->count -= taken;
    rv_assert((box->first == NULL) == (box->count == 0));
    pthread_mutex_unlock(&box->mutex);
    return taken;
}

void rv_mailbox_wake(struct rv_mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    box->waiting = false;
    box->woken = true;
    pthread_mutex_unlock(&box->mutex);
    pthread_cond_signal(&box->filled);
}

void rv_mailbox_close(struct rv_mailbox *box)
{
    pthread_mutex_lock(&box->mutex);
    box->closed = true;
    pthread_mutex_unlock(&box->mutex);
    pthread_cond_signal(&box->filled);
}

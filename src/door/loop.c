/* The door's one thread: an epoll set, edge-triggered for connections, so that a busy one costs a
 * read and a write for each turn and nothing else. What has something to do stands in a list. */
#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/random.h"
#include "base/time.h"
#include "door/door_priv.h"
#include "door/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    CONNECTIONS_MAX = 20000,
    CROWD_MS = 1000, /* without progress, where answers have no room */
    HANDSHAKE_MS = 10000,
    IDLE_MS = 60000,
    HEAD_MS = 30000,
    BODY_MS = 60000,
    WRITE_MS = 60000
};

void conn_list_add(struct conn_list *list, struct rv_door_conn *conn)
{
    rv_assert(!conn->queued);
    rv_assert(conn->state != CONN_DEAD);
    rv_assert((list->first == NULL) == (list->last == NULL));
    conn->queued = true;
    conn->run_next = NULL;
    if (list->last != NULL)
        list->last->run_next = conn;
    else
        list->first = conn;
    list->last = conn;
}

struct rv_door_conn *conn_list_take(struct conn_list *list)
{
    struct rv_door_conn *conn = list->first;
    if (conn == NULL)
        return NULL;
    rv_assert(conn->queued);
    rv_assert(conn->run_next != NULL || list->last == conn);
    list->first = conn->run_next;
    if (list->first == NULL)
        list->last = NULL;
    conn->queued = false;
    return conn;
}

void door_push(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    struct conn_list *list = &door->run;
    if (conn->queued || conn->state == CONN_DEAD)
        return;
    if (conn->state == CONN_SHAKE)
        list = &door->shakes[conn->tls != NULL ? SHAKES_BEGUN : SHAKES_NEW];
    conn_list_add(list, conn);
}

static void dead_free(struct rv_door *door)
{
    struct rv_door_conn *kept = NULL;
    while (door->dead != NULL) {
        struct rv_door_conn *conn = door->dead;
        rv_assert(conn->state == CONN_DEAD);
        door->dead = conn->after;
        if (!conn->queued) {
            conn_free(conn);
            continue;
        }
        conn->after = kept;
        kept = conn;
    }
    door->dead = kept;
}

/* Those that are in the list now; what they push is for the next turn. */
void rv_door_run(struct rv_door *door)
{
    struct conn_list list = door->run;
    struct rv_door_conn *conn;
    rv_assert(!door->closing);
    door->run = (struct conn_list){NULL, NULL};
    while ((conn = conn_list_take(&list)) != NULL)
        conn_run(conn);
    shake_run(door);
    limits_debts_collect(door);
    gate_retry(door);
    dead_free(door);
}

void rv_door_arrived(struct rv_door *door)
{
    for (struct rv_door_conn *conn = door->all; conn != NULL; conn = conn->after) {
        if (conn->state != CONN_READ)
            continue;
        conn->readable = true;
        conn->writable = true;
        door_push(conn);
    }
}

static void conn_happens(struct rv_door_conn *conn, uint32_t events)
{
    if (conn->state == CONN_DEAD)
        return;
    if (events & (EPOLLIN | EPOLLRDHUP))
        conn->readable = true;
    if (events & EPOLLOUT)
        conn->writable = true;
    if ((events & EPOLLOUT) && conn->tls != NULL)
        conn->readable = true; /* what could not be read for want of a write */
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        conn_leave(conn, (events & (EPOLLHUP | EPOLLERR)) != 0);
    door_push(conn);
}

static void clock_look(struct rv_door *door)
{
    int64_t second = rv_clock_wall_ms() / RV_SECOND_MS;
    door->now = rv_clock_mono_ms();
    if (second == door->date_second)
        return;
    door->date_second = second;
    rv_http_date(second, door->date);
}

static int64_t wait_of(const struct rv_door *door, int64_t most)
{
    if (door->run.first != NULL)
        return 0;
    most = shake_wait_ms(door, most);
    if (!door->listens && !door->deaf && most > GATE_RETRY_MS)
        most = GATE_RETRY_MS;
    return limits_debts_wait_ms(door, most);
}

/* Another thread puts something where the host finds it, then sets `woken`; the door sets `sleeps`,
 * then looks at `woken`. So either it sees the one, or the other thread sees the other. */
void rv_door_wake(struct rv_door *door)
{
    uint64_t one = 1;
    atomic_store(&door->woken, true);
    if (!atomic_exchange(&door->sleeps, false))
        return;
    ssize_t written = write(door->event_fd, &one, sizeof one);
    rv_assert(written == sizeof one || errno == EAGAIN);
}

static void certificate_renew(struct rv_door *door)
{
    struct rv_door_tls *next = atomic_exchange(&door->tls_next, NULL);
    if (next == NULL)
        return;
    rv_door_tls_free(door->tls);
    door->tls = next;
}

void rv_door_renew(struct rv_door *door, struct rv_door_tls *tls)
{
    rv_assert(tls != NULL);
    rv_door_tls_free(atomic_exchange(&door->tls_next, tls));
    rv_door_wake(door);
}

/* What comes within a moment needs nobody to wake this thread. */
static int events_look(struct rv_door *door, struct epoll_event *ret_events)
{
    int64_t now_us = rv_clock_mono_us(), until_us = rv_spin_begin(&door->spin, now_us);
    int count = 0;
    for (bool on = now_us < until_us; on && count == 0; on = on && rv_spin_on(until_us)) {
        if (atomic_load(&door->woken))
            break;
        count = epoll_wait(door->epoll_fd, ret_events, EVENTS_MAX, 0);
    }
    return count;
}

static int events_await(struct rv_door *door, struct epoll_event *ret_events, int64_t most)
{
    rv_assert(!atomic_load(&door->sleeps));
    rv_assert(most >= 0);
    atomic_store(&door->sleeps, true);
    if (atomic_load(&door->woken))
        most = 0;
    int count = epoll_wait(door->epoll_fd, ret_events, EVENTS_MAX, (int)most);
    atomic_store(&door->sleeps, false);
    return count;
}

void rv_door_wait(struct rv_door *door, int64_t wait_ms)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t most = wait_of(door, wait_ms);
    int count = most != 0 ? events_look(door, events) : 0;
    if (count == 0)
        count = events_await(door, events, most);
    if (most != 0)
        rv_spin_end(&door->spin, rv_clock_mono_us());
    rv_assert(count >= 0 || errno == EINTR);
    rv_assert(count <= EVENTS_MAX);
    atomic_store(&door->woken, false);
    clock_look(door);
    certificate_renew(door);
    for (int i = 0; i < count; i++) {
        enum door_watch *watch = events[i].data.ptr;
        switch (*watch) {
        case WATCH_EVENT:
            break; /* edge-triggered: it need not be read */
        case WATCH_LISTENER:
            gate_accept(door, events[i].data.ptr);
            break;
        case WATCH_CONN:
            conn_happens(events[i].data.ptr, events[i].events);
            break;
        }
    }
    rv_door_run(door);
}

/* ---- answers have room ---- */

static void crowd_thin(struct rv_door *door)
{
    struct rv_door_conn *next;
    if (door->now - door->crowded_at < CROWD_MS)
        return;
    door->crowded_at = door->now;
    for (struct rv_door_conn *conn = door->all; conn != NULL; conn = next) {
        next = conn->after;
        if (conn->debt == DEBT_WRITE && conn->unsent > DOOR_UNSENT_MAX &&
            door->now - conn->since >= CROWD_MS)
            conn_cut(conn);
    }
}

bool rv_door_room(struct rv_door *door, size_t bytes)
{
    if (bytes <= DOOR_SMALL_BYTES || door->answers_bytes + bytes <= DOOR_ANSWERS_MAX)
        return true;
    crowd_thin(door);
    return door->answers_bytes + bytes <= DOOR_ANSWERS_MAX;
}

const struct rv_door_counts *rv_door_counts(const struct rv_door *door)
{
    return &door->counts;
}

int64_t rv_door_now(const struct rv_door *door)
{
    return door->now;
}

/* ---- open and close ---- */

static void limits_default(struct rv_door_limits *limits)
{
    const struct {
        int64_t *limit;
        int64_t otherwise;
    } all[] = {
        {&limits->handshake_ms, HANDSHAKE_MS}, {&limits->idle_ms, IDLE_MS},
        {&limits->head_ms, HEAD_MS},           {&limits->body_ms, BODY_MS},
        {&limits->write_ms, WRITE_MS},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (*all[i].limit == 0)
            *all[i].limit = all[i].otherwise;
        rv_assert(*all[i].limit > 0);
    }
}

static enum rv_err epoll_open(struct rv_door *door)
{
    door->event_watch = WATCH_EVENT;
    rv_spin_init(&door->spin);
    door->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    door->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (door->epoll_fd < 0 || door->event_fd < 0)
        return RV_ERR_IO;
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = &door->event_watch};
    return epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, door->event_fd, &event) == 0 ? RV_OK
                                                                                 : RV_ERR_IO;
}

static enum rv_err parts_open(struct rv_door *door)
{
    RV_TRY(epoll_open(door));
    clock_look(door);
    return gate_open(door);
}

enum rv_err rv_door_open(const struct rv_door_options *options, struct rv_door **ret_door)
{
    rv_assert(options->sockets_count <= RV_DOOR_SOCKETS_MAX);
    rv_assert(options->body_max >= 0);
    struct rv_door *door = calloc(1, sizeof *door);
    if (door == NULL) {
        for (size_t i = 0; i < options->sockets_count; i++)
            close(options->sockets[i]);
        rv_door_tls_free(options->tls);
        return RV_ERR_MEMORY;
    }
    door->options = *options;
    door->options.sockets = NULL;
    door->tls = options->tls;
    if (door->options.connections_max == 0)
        door->options.connections_max = CONNECTIONS_MAX;
    limits_default(&door->options.limits);
    rv_dues_init(&door->dues);
    rv_map_init(&door->addresses);
    rv_map_init(&door->shakers);
    rv_random_bytes(&door->address_key, sizeof door->address_key);
    door->spare_fd = -1;
    for (size_t i = 0; i < options->sockets_count; i++)
        door->listeners[i] = (struct door_listener){WATCH_LISTENER, options->sockets[i], false};
    door->listeners_count = options->sockets_count;
    enum rv_err err = parts_open(door);
    if (err != RV_OK) {
        rv_door_close(door);
        return err;
    }
    *ret_door = door;
    return RV_OK;
}

void rv_door_close(struct rv_door *door)
{
    rv_assert(!door->closing);
    door->closing = true;
    gate_close(door);
    while (door->all != NULL)
        conn_cut(door->all);
    rv_assert(door->counts.open == 0);
    rv_assert(door->counts.busy == 0);
    rv_assert(door->counts.lingering == 0);
    rv_assert(door->answers_bytes == 0);
    rv_assert(door->shaking_count == 0);
    rv_assert(door->dues.count == 0);
    rv_assert(door->addresses.count == 0);
    while (conn_list_take(&door->run) != NULL)
        continue;
    for (int i = 0; i < SHAKES_QUEUES; i++)
        while (conn_list_take(&door->shakes[i]) != NULL)
            continue;
    dead_free(door);
    rv_assert(door->dead == NULL);
    queue_free(door);
    rv_door_tls_free(atomic_exchange(&door->tls_next, NULL));
    rv_door_tls_free(door->tls);
    rv_map_done(&door->addresses);
    rv_map_done(&door->shakers);
    rv_dues_done(&door->dues);
    if (door->event_fd >= 0)
        close(door->event_fd);
    if (door->epoll_fd >= 0)
        close(door->epoll_fd);
    free(door);
}

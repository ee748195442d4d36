/* Who is let in: as many connections as there may be, not all of them from one other machine. When
 * all are taken, those that rest make room, but none whose request is there. One descriptor is kept
 * in reserve: clients come in by it one at a time, for one request each, so that whoever asks
 * whether the server lives gets an answer. */
#include "base/assert.h"
#include "base/os/log.h"
#include "door/door_priv.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ACCEPTS_MAX = 64,      /* in one turn */
    OUTSIDE_MAX = 4096,    /* at one listener, when it closes */
    PAUSE_TOLD_MS = 60000, /* between two words about it */
    ADDRESS_PARTS = 4,     /* an address may take all but one of so many parts */
    EVICT_EVERY_MS = 100,
    RESTED_MS = 1000, /* so long idle, a connection makes room for another */
    BEGUN_MS = 5000   /* and so long at a handshake, a head, a body, or reading an answer */
};

static void listeners_watch(struct rv_door *door)
{
    for (size_t i = 0; i < door->listeners_count && !door->deaf && !door->listens; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &door->listeners[i]};
        (void)epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, door->listeners[i].fd, &event);
    }
    door->listens = !door->deaf;
}

static void listeners_unwatch(struct rv_door *door)
{
    for (size_t i = 0; i < door->listeners_count && door->listens; i++)
        (void)epoll_ctl(door->epoll_fd, EPOLL_CTL_DEL, door->listeners[i].fd, NULL);
    door->listens = false;
    door->deaf_since = door->now;
}

static void reserve_fill(struct rv_door *door)
{
    if (door->spare_fd < 0 && !door->spare_out && !door->deaf)
        door->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Connections inherit the option. Nobody listens in on a unix socket, so there is no TLS. */
static void listener_set(struct door_listener *listener)
{
    int one = 1, domain = 0;
    socklen_t len = sizeof domain;
    (void)setsockopt(listener->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)getsockopt(listener->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
    listener->plain = domain == AF_UNIX;
}

enum rv_err gate_open(struct rv_door *door)
{
    struct rv_door_options *options = &door->options;
    rv_assert(options->connections_max > 0);
    if (options->address_max == 0)
        options->address_max = options->connections_max - options->connections_max / ADDRESS_PARTS;
    for (size_t i = 0; i < door->listeners_count; i++)
        listener_set(&door->listeners[i]);
    reserve_fill(door);
    listeners_watch(door);
    return door->spare_fd >= 0 ? RV_OK : RV_ERR_IO;
}

void gate_close(struct rv_door *door)
{
    listeners_unwatch(door);
    for (size_t i = 0; i < door->listeners_count; i++)
        close(door->listeners[i].fd);
    door->listeners_count = 0;
    door->deaf = true;
    if (door->spare_fd >= 0)
        close(door->spare_fd);
    door->spare_fd = -1;
}

void gate_retry(struct rv_door *door)
{
    if (door->listens || door->deaf || door->now - door->deaf_since < GATE_RETRY_MS)
        return;
    reserve_fill(door);
    listeners_watch(door);
}

static void pause_tell(struct rv_door *door, const char *why)
{
    const struct rv_door_host *host = &door->options.host;
    if (door->paused_at != 0 && door->now - door->paused_at < PAUSE_TOLD_MS)
        return;
    door->paused_at = door->now;
    host->paused(host->self, why);
}

/* ---- addresses ---- */

static void peer_set(struct rv_door_conn *conn, const struct sockaddr_storage *from)
{
    conn->family = from->ss_family;
    if (from->ss_family == AF_INET)
        memcpy(conn->peer, &((const struct sockaddr_in *)from)->sin_addr, 4);
    const struct in6_addr *six = &((const struct sockaddr_in6 *)from)->sin6_addr;
    if (from->ss_family == AF_INET6)
        memcpy(conn->peer, six, 16);
    if (from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six)) {
        conn->family = AF_INET;
        memmove(conn->peer, conn->peer + 12, 4);
    }
}

/* Health checks, agents and proxies of this machine come from one address. */
bool gate_peer_counts(const struct rv_door_conn *conn)
{
    static const unsigned char own[4] = {127, 0, 0, 1}, own_six[16] = {[15] = 1};
    if (conn->family == AF_INET)
        return memcmp(conn->peer, own, sizeof own) != 0;
    if (conn->family == AF_INET6)
        return memcmp(conn->peer, own_six, sizeof own_six) != 0;
    return conn->family != AF_UNIX;
}

/* A host with IPv6 has a network of its own: 64 bits. */
uint64_t gate_peer_key(const struct rv_door_conn *conn)
{
    struct rv_str bytes = {(const char *)conn->peer, conn->family == AF_INET ? 4 : 8};
    return rv_hash(conn->door->address_key, bytes);
}

void rv_door_peer(const struct rv_door_conn *conn, char ret_text[static RV_DOOR_PEER_BYTES])
{
    static_assert(RV_DOOR_PEER_BYTES >= INET6_ADDRSTRLEN, "room for each");
    bool known = conn->family == AF_INET || conn->family == AF_INET6;
    if (!known || inet_ntop(conn->family, conn->peer, ret_text, RV_DOOR_PEER_BYTES) == NULL)
        memcpy(ret_text, "local", sizeof "local");
}

static bool address_enter(struct rv_door_conn *conn)
{
    struct rv_door *door = conn->door;
    rv_assert(!conn->counted);
    if (!gate_peer_counts(conn))
        return true;
    uint64_t key = gate_peer_key(conn);
    uint64_t *count = rv_map_find(&door->addresses, key, 0);
    if (count != NULL && *count >= door->options.address_max)
        return false;
    if (count != NULL)
        (*count)++;
    else if (rv_map_put(&door->addresses, key, 0, 1) != RV_OK)
        return false;
    conn->counted = true;
    return true;
}

static void address_leave(const struct rv_door_conn *conn)
{
    uint64_t key = conn->counted ? gate_peer_key(conn) : 0;
    uint64_t *count = conn->counted ? rv_map_find(&conn->door->addresses, key, 0) : NULL;
    rv_assert(count != NULL || !conn->counted);
    rv_assert(count == NULL || *count > 0);
    if (count != NULL && --*count == 0)
        (void)rv_map_remove(&conn->door->addresses, key, 0);
}

static void rested_forget(struct rv_door *door, const struct rv_door_conn *conn)
{
    struct rv_door_conn **all = door->rested;
    size_t at = 0;
    rv_assert(door->rested_count <= GATE_RESTED_MAX);
    while (at < door->rested_count && all[at] != conn)
        at++;
    if (at == door->rested_count)
        return;
    door->rested_count--;
    memmove(&all[at], &all[at + 1], (door->rested_count - at) * sizeof(struct rv_door_conn *));
}

void gate_left(struct rv_door *door, const struct rv_door_conn *conn)
{
    rv_assert(conn->state == CONN_DEAD);
    address_leave(conn);
    rested_forget(door, conn);
    if (conn->spare)
        door->spare_out = false;
    reserve_fill(door);
    listeners_watch(door);
}

/* ---- those who come ---- */

static void conn_enter(struct rv_door *door, const struct door_listener *listener, int fd,
                       const struct sockaddr_storage *from, bool spare)
{
    struct rv_door_conn *conn;
    if (conn_open(door, fd, listener->plain, &conn) != RV_OK) {
        close(fd);
        return;
    }
    conn->spare = spare;
    door->spare_out = door->spare_out || spare;
    peer_set(conn, from);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = conn};
    if (!address_enter(conn) || epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        conn_cut(conn);
    else
        limits_debt_settle(conn);
}

/* How much is lost when it makes room, the least first: a client that has its answer, or has asked
 * nothing yet, connects again; one that is in the middle of a request or an answer begins anew.
 * Negative: it makes no room. */
static int rest_rank(const struct rv_door_conn *conn)
{
    int64_t since = conn->door->now - conn->since;
    switch (conn->debt) {
    case DEBT_NONE:
        return -1;
    case DEBT_LINGER:
        return since >= RESTED_MS ? 0 : -1;
    case DEBT_IDLE:
        return since >= RESTED_MS ? 1 : -1;
    case DEBT_HEAD:
    case DEBT_SHAKE:
        return since >= BEGUN_MS ? 2 : -1;
    case DEBT_BODY:
    case DEBT_WRITE:
        return since >= BEGUN_MS && conn->state != CONN_WAIT ? 3 : -1;
    }
    return -1;
}

static bool rests_more(const struct rv_door_conn *conn, const struct rv_door_conn *than)
{
    int rank = rest_rank(conn), other = rest_rank(than);
    if (rank != other)
        return rank < other;
    return conn->since <= than->since; /* those who came later are looked at first */
}

/* In order, whoever rests most at the end; what is too much leaves at the front. */
static void rested_add(struct rv_door *door, struct rv_door_conn *conn)
{
    struct rv_door_conn **all = door->rested;
    size_t count = door->rested_count, at = 0, end = count;
    rv_assert(count <= GATE_RESTED_MAX);
    while (at < end) {
        size_t middle = (at + end) / 2;
        if (rests_more(conn, all[middle]))
            at = middle + 1;
        else
            end = middle;
    }
    if (count < GATE_RESTED_MAX) {
        memmove(&all[at + 1], &all[at], (count - at) * sizeof(struct rv_door_conn *));
        all[at] = conn;
        door->rested_count++;
    } else if (at > 0) {
        memmove(&all[0], &all[1], (at - 1) * sizeof(struct rv_door_conn *));
        all[at - 1] = conn;
    }
}

/* One makes room, unless what it owes has come meanwhile. False: nobody rests. */
static bool rested_evict(struct rv_door *door)
{
    if (door->now - door->evicted_at >= EVICT_EVERY_MS) {
        door->evicted_at = door->now;
        door->rested_count = 0;
        for (struct rv_door_conn *conn = door->all; conn != NULL; conn = conn->after)
            if (rest_rank(conn) >= 0)
                rested_add(door, conn);
    }
    while (door->rested_count > 0) {
        struct rv_door_conn *conn = door->rested[--door->rested_count];
        rv_assert(conn->state != CONN_DEAD);
        if (rest_rank(conn) < 0)
            continue;
        conn->readable = true; /* its event may be one of those that are yet to be looked at */
        conn_run(conn);
        if (conn->state != CONN_DEAD && rest_rank(conn) < 0)
            continue;
        conn_cut(conn);
        return true;
    }
    return false;
}

static bool none_left(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Without a descriptor or a place left, accept does not tell whether there is anybody to take. */
static bool anybody_waits(const struct door_listener *listener)
{
    struct pollfd waits = {.fd = listener->fd, .events = POLLIN};
    return poll(&waits, 1, 0) == 1;
}

/* False: nobody waits outside, or nobody can be let in. */
static bool accept_one(struct rv_door *door, const struct door_listener *listener)
{
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof from;
    const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    rv_assert(door->listens);
    rv_assert(!door->deaf);
    if (door->counts.open >= door->options.connections_max && !anybody_waits(listener))
        return false;
    while (door->counts.open >= door->options.connections_max && rested_evict(door))
        continue;
    bool full = door->counts.open >= door->options.connections_max;
    if (full && door->spare_out) {
        listeners_unwatch(door);
        return false;
    }
    int fd = accept4(listener->fd, (struct sockaddr *)&from, &len, flags);
    bool none = fd < 0 && none_left(errno);
    if (none && !anybody_waits(listener))
        return false;
    if (none && rested_evict(door)) {
        fd = accept4(listener->fd, (struct sockaddr *)&from, &len, flags);
        none = fd < 0 && none_left(errno);
    }
    if (none && door->spare_fd >= 0) {
        close(door->spare_fd);
        door->spare_fd = -1;
        fd = accept4(listener->fd, (struct sockaddr *)&from, &len, flags);
    }
    if (none || (fd >= 0 && full))
        pause_tell(door, none ? "no file descriptor is available for a connection"
                              : "the maximum number of connections is open");
    if (none)
        listeners_unwatch(door); /* before it: whoever leaves at once has them watched again */
    if (fd >= 0)
        conn_enter(door, listener, fd, &from, none || full);
    reserve_fill(door);
    return fd >= 0 && !none;
}

void gate_accept(struct rv_door *door, struct door_listener *listener)
{
    for (int i = 0; i < ACCEPTS_MAX && door->listens; i++)
        if (!accept_one(door, listener))
            return;
}

void rv_door_deafen(struct rv_door *door)
{
    for (size_t i = 0; i < door->listeners_count; i++)
        for (int n = 0; n < OUTSIDE_MAX && door->listens; n++)
            if (!accept_one(door, &door->listeners[i]))
                break;
    gate_close(door);
}

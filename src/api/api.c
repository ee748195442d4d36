/* The api's thread: one epoll set with four kinds of descriptors in it. The epoll descriptors of
 * libmicrohttpd's daemons (something to read or write somewhere), the socket that listens, the
 * event by which other threads say that calls came back, and every connection once more, only to
 * learn when its peer has closed. */
#include "api/api_priv.h"

#include "base/assert.h"
#include "base/os/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 256,
    FINISHED_MAX = 256,
    PATIENCE_MS = 60000,
    CONNECTIONS_MAX = 20000,
    SWEEP_MS = 1000, /* how late a slow client may be found */
    BACKLOG = 4096
};

void rv_api_wake(struct rv_api *api)
{
    uint64_t one = 1;
    ssize_t written = write(api->event_fd, &one, sizeof one);
    rv_assert(written == sizeof one || errno == EAGAIN);
}

static void event_take(struct rv_api *api)
{
    uint64_t count;
    ssize_t got = read(api->event_fd, &count, sizeof count);
    rv_assert(got == sizeof count || errno == EAGAIN);
    /* Cleared before the queue is read: whoever comes later sets it again. */
    atomic_store(&api->event_pending, false);
}

static void finished_take(struct rv_api *api)
{
    void *calls[FINISHED_MAX];
    size_t count;
    do {
        count = rv_mailbox_take(&api->finished, calls, FINISHED_MAX, 0);
        for (size_t i = 0; i < count; i++)
            rv_http_finished(api, calls[i]);
    } while (count == FINISHED_MAX);
}

/* Whoever has kept us waiting too long is cut off; libmicrohttpd then cleans up. */
static void slow_end(struct rv_api *api, int64_t now)
{
    while (api->first != NULL && now - api->first->since >= api->options.patience_ms) {
        struct connection *connection = api->first;
        rv_http_unlist(connection);
        (void)shutdown(connection->fd, SHUT_RDWR);
    }
}

static int wait_ms(const struct rv_api *api, int64_t now)
{
    if (rv_lanes_due(api) || api->large != NULL)
        return 0;
    int64_t most = atomic_load(&api->closing) ? 10 : SWEEP_MS;
    if (api->first != NULL && api->first->since + api->options.patience_ms - now < most)
        most = api->first->since + api->options.patience_ms - now;
    if (api->resting != NULL && api->rest_until - now < most)
        most = api->rest_until - now;
    return most > 0 ? (int)most : 0;
}

/* NULL: the event is not a lane's. */
static struct lane *lane_of(struct rv_api *api, void *about)
{
    for (size_t i = 0; i < RV_LANES; i++)
        if (about == &api->lanes[i])
            return &api->lanes[i];
    return NULL;
}

static void events_take(struct rv_api *api, int64_t now)
{
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(api->epoll_fd, events, EVENTS_MAX, wait_ms(api, now));
    rv_assert(count >= 0 || errno == EINTR);
    for (int i = 0; i < count; i++) {
        void *about = events[i].data.ptr;
        struct lane *lane = lane_of(api, about);
        if (lane != NULL)
            lane->due = true;
        else if (about == &api->event_fd)
            event_take(api);
        else if (about == &api->listen_fd)
            rv_lanes_accept(api);
        else
            rv_http_left(api, about);
    }
}

/* Nothing is left to do, or nobody takes what is left. */
static bool thread_done(const struct rv_api *api, int64_t now, int64_t *last_busy)
{
    if (!atomic_load(&api->closing) || atomic_load(&api->outstanding) > 0) {
        *last_busy = now;
        return false;
    }
    return api->exchanges_open == 0 || now - *last_busy >= atomic_load(&api->grace_ms);
}

static void thread_run(void *self)
{
    struct rv_api *api = self;
    int64_t now = rv_clock_mono_ms();
    int64_t last_busy = now;
    while (!thread_done(api, now, &last_busy)) {
        events_take(api, now);
        finished_take(api);
        rv_backup_go_on(api, rv_clock_mono_ms());
        rv_http_large_go_on(api, false);
        if (atomic_load(&api->draining))
            rv_lanes_deafen(api);
        rv_lanes_run(api);
        now = rv_clock_mono_ms();
        slow_end(api, now);
    }
    while (api->large != NULL)
        rv_http_large_go_on(api, true);
    rv_backup_go_on(api, INT64_MAX); /* libmicrohttpd stops with nobody suspended */
}

static enum rv_err epoll_open(struct rv_api *api)
{
    api->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    api->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (api->epoll_fd < 0 || api->event_fd < 0)
        return RV_ERR_IO;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &api->event_fd};
    return epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, api->event_fd, &event) == 0 ? RV_OK : RV_ERR_IO;
}

static void api_free(struct rv_api *api)
{
    if (api->event_fd >= 0)
        close(api->event_fd);
    if (api->epoll_fd >= 0)
        close(api->epoll_fd);
    rv_http_forget(api);
    rv_parser_done(&api->parser);
    rv_keys_done(&api->options.access.keys);
    rv_mailbox_done(&api->finished);
    free(api);
}

enum rv_err rv_api_open(const struct rv_api_options *options, struct rv_api **ret_api)
{
    struct rv_api *api = calloc(1, sizeof *api);
    if (api == NULL) {
        close(options->listen_fd);
        struct rv_keys keys = options->access.keys;
        rv_keys_done(&keys);
        return RV_ERR_MEMORY;
    }
    api->options = *options;
    api->key_changes = 1;
    if (api->options.patience_ms == 0)
        api->options.patience_ms = PATIENCE_MS;
    rv_mailbox_init(&api->finished, offsetof(struct rv_call, next));
    rv_mailbox_join(options->mailbox, &api->maker);
    rv_parser_init(&api->parser);
    api->parser.egress = options->egress;
    if (api->options.connections_max == 0)
        api->options.connections_max = CONNECTIONS_MAX;
    api->listen_fd = options->listen_fd;
    enum rv_err err = epoll_open(api);
    if (err == RV_OK)
        err = rv_lanes_open(api);
    if (err == RV_OK && rv_thread_start(&api->thread, "api", thread_run, api) != RV_OK)
        err = RV_ERR_IO;
    if (err != RV_OK) {
        rv_lanes_close(api);
        api_free(api);
        return err;
    }
    *ret_api = api;
    return RV_OK;
}

void rv_api_drain(struct rv_api *api)
{
    atomic_store(&api->draining, true);
    rv_api_wake(api);
}

unsigned rv_api_outstanding(const struct rv_api *api)
{
    return atomic_load(&api->outstanding);
}

void rv_api_close(struct rv_api *api, int64_t grace_ms)
{
    atomic_store(&api->grace_ms, grace_ms);
    atomic_store(&api->draining, true);
    atomic_store(&api->closing, true);
    rv_api_wake(api);
    rv_thread_join(&api->thread);
    rv_lanes_close(api);
    api_free(api);
}

/* ---- the listening socket ---- */

struct address {
    struct sockaddr_storage at;
    socklen_t len;
};

static enum rv_err address_parse(struct rv_str text, struct address *ret, bool *ret_public)
{
    char host[64];
    const char *colon = text.len ? memrchr(text.at, ':', text.len) : NULL;
    int64_t port;
    if (colon == NULL || (size_t)(colon - text.at) >= sizeof host ||
        !rv_text_int((struct rv_str){colon + 1, (size_t)(text.at + text.len - colon - 1)}, &port) ||
        port > UINT16_MAX)
        return RV_ERR_INVALID;
    size_t host_len = (size_t)(colon - text.at);
    bool six = host_len > 2 && text.at[0] == '[' && colon[-1] == ']';
    memcpy(host, text.at + six, host_len - 2 * (size_t)six);
    host[host_len - 2 * (size_t)six] = '\0';
    *ret = (struct address){.len = 0};
    if (six) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->at;
        *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        ret->len = sizeof *in6;
        if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
            return RV_ERR_INVALID;
        *ret_public = !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
        return RV_OK;
    }
    struct sockaddr_in *in = (struct sockaddr_in *)&ret->at;
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ret->len = sizeof *in;
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (inet_pton(AF_INET, number, &in->sin_addr) != 1)
        return RV_ERR_INVALID;
    *ret_public = (ntohl(in->sin_addr.s_addr) >> 24) != 127;
    return RV_OK;
}

enum rv_err rv_api_address(struct rv_str text, bool *ret_public)
{
    struct address address;
    return address_parse(text, &address, ret_public);
}

static uint16_t port_of(int fd)
{
    struct address address = {.len = sizeof address.at};
    if (getsockname(fd, (struct sockaddr *)&address.at, &address.len) != 0)
        return 0;
    return ntohs(address.at.ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)&address.at)->sin6_port
                     : ((const struct sockaddr_in *)&address.at)->sin_port);
}

enum rv_err rv_api_listen(struct rv_str text, int *ret_fd, uint16_t *ret_port)
{
    struct address address;
    bool public;
    enum rv_err err = address_parse(text, &address, &public);
    if (err != RV_OK)
        return err;
    int fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return RV_ERR_IO;
    int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (const struct sockaddr *)&address.at, address.len) != 0 ||
        listen(fd, BACKLOG) != 0) {
        err = errno == EADDRINUSE ? RV_ERR_IN_USE : RV_ERR_IO;
        close(fd);
        return err;
    }
    *ret_fd = fd;
    *ret_port = port_of(fd);
    return RV_OK;
}

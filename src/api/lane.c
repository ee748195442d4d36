/* The connections lie in several daemons of libmicrohttpd, all run by the api's thread: whenever
 * one connection is resumed, its daemon looks at all that are suspended, and thousands of parked
 * polls are. Connections are taken here and dealt out in turn. */
#include "api/api_priv.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ACCEPTS_MAX = 64 }; /* in one turn of the api's thread */

static enum rv_err lane_open(struct rv_api *api, struct lane *lane)
{
    *lane = (struct lane){.api = api};
    if (rv_http_start(lane) != RV_OK)
        return RV_ERR_IO;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(lane->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = lane};
    return info != NULL && epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) == 0
               ? RV_OK
               : RV_ERR_IO;
}

static void listen_watch(struct rv_api *api)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &api->listen_fd};
    api->listens = epoll_ctl(api->epoll_fd, EPOLL_CTL_ADD, api->listen_fd, &event) == 0;
}

static void listen_unwatch(struct rv_api *api)
{
    if (api->listens)
        (void)epoll_ctl(api->epoll_fd, EPOLL_CTL_DEL, api->listen_fd, NULL);
    api->listens = false;
}

enum rv_err rv_lanes_open(struct rv_api *api)
{
    for (size_t i = 0; i < RV_LANES; i++)
        if (lane_open(api, &api->lanes[i]) != RV_OK)
            return RV_ERR_IO;
    listen_watch(api);
    return api->listens ? RV_OK : RV_ERR_IO;
}

void rv_lanes_close(struct rv_api *api)
{
    rv_lanes_deafen(api);
    for (size_t i = 0; i < RV_LANES; i++)
        if (api->lanes[i].daemon != NULL)
            MHD_stop_daemon(api->lanes[i].daemon);
}

void rv_lanes_deafen(struct rv_api *api)
{
    listen_unwatch(api);
    if (api->listen_fd >= 0)
        close(api->listen_fd);
    api->listen_fd = -1;
}

/* What is over the bound, or finds no descriptor, waits in the backlog until one is closed. */
void rv_lanes_accept(struct rv_api *api)
{
    for (int i = 0; i < ACCEPTS_MAX && api->listens; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        if (api->counts.connections >= api->options.connections_max) {
            listen_unwatch(api);
            return;
        }
        int fd = accept4(api->listen_fd, (struct sockaddr *)&from, &len,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            bool none = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
            if (none && api->counts.connections > 0)
                listen_unwatch(api);
            return;
        }
        struct lane *lane = &api->lanes[api->lane_next++ % RV_LANES];
        /* It closes the socket where it fails. */
        if (MHD_add_connection(lane->daemon, fd, (struct sockaddr *)&from, len) == MHD_YES)
            lane->due = true;
    }
}

void rv_lanes_left(struct rv_api *api)
{
    if (!api->listens && api->listen_fd >= 0)
        listen_watch(api);
}

bool rv_lanes_due(const struct rv_api *api)
{
    for (size_t i = 0; i < RV_LANES; i++)
        if (api->lanes[i].due)
            return true;
    return false;
}

void rv_lanes_run(struct rv_api *api)
{
    for (size_t i = 0; i < RV_LANES; i++) {
        struct lane *lane = &api->lanes[i];
        unsigned long long rest_ms;
        if (!lane->due)
            continue;
        MHD_run(lane->daemon);
        lane->due = MHD_get_timeout(lane->daemon, &rest_ms) == MHD_YES && rest_ms == 0;
    }
}

void rv_lane_resume(struct exchange *exchange)
{
    MHD_resume_connection(exchange->http);
    exchange->connection->lane->due = true;
}

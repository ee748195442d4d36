/* The thread: requests come in through the inbox, libcurl moves them, epoll says when. */
#include "outbound/outbound_priv.h"

#include "base/assert.h"
#include "base/os/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    CONNECTIONS_DEFAULT = 2048,
    INBOX_MAX = 256, /* taken at a time */
    EVENTS_MAX = 256,
    WAIT_MS_MAX = 60000
};

/* ---- from other threads ---- */

static void outbound_wake(void *self)
{
    struct rv_outbound *outbound = self;
    if (atomic_exchange(&outbound->woken, true))
        return;
    uint64_t one = 1;
    ssize_t n;
    do {
        n = write(outbound->event, &one, sizeof one);
    } while (n < 0 && errno == EINTR);
}

static size_t texts_bytes(const struct rv_outbound_request *request)
{
    size_t bytes = request->headers_count * sizeof *request->headers + request->method.len + 1 +
                   request->url.len + 1 + request->body.len;
    for (size_t i = 0; i < request->headers_count; i++)
        bytes += request->headers[i].name.len + request->headers[i].value.len;
    return bytes;
}

static struct rv_str text_put(char **to, struct rv_str text)
{
    struct rv_str copy = {*to, text.len};
    if (text.at == NULL)
        return text;
    memcpy(*to, text.at, text.len);
    *to += text.len;
    return copy;
}

/* They lie behind the struct. */
static struct rv_outbound_header *headers_of(struct outgoing *outgoing)
{
    return (struct rv_outbound_header *)(outgoing + 1);
}

/* One piece of memory for the struct and all of its texts. */
static struct outgoing *outgoing_new(const struct rv_outbound_request *request)
{
    struct outgoing *outgoing = calloc(1, sizeof *outgoing + texts_bytes(request));
    if (outgoing == NULL)
        return NULL;
    outgoing->request = *request;
    struct rv_outbound_header *headers = headers_of(outgoing);
    char *to = (char *)(headers + request->headers_count);
    outgoing->method = to;
    outgoing->request.method = text_put(&to, request->method);
    *to++ = '\0';
    outgoing->request.url = text_put(&to, request->url);
    outgoing->request.body = text_put(&to, request->body);
    for (size_t i = 0; i < request->headers_count; i++) {
        headers[i].name = text_put(&to, request->headers[i].name);
        headers[i].value = text_put(&to, request->headers[i].value);
    }
    rv_assert(to <= (char *)headers + texts_bytes(request));
    outgoing->request.headers = headers;
    outgoing->deadline = rv_clock_mono_ms() + request->timeout_ms;
    rv_buf_init(&outgoing->head, RV_OUTBOUND_HEAD_BYTES_MAX);
    rv_buf_init(&outgoing->body, request->answer_bytes_max);
    return outgoing;
}

enum rv_err rv_outbound_submit(struct rv_outbound *outbound,
                               const struct rv_outbound_request *request, uint64_t *ret_id)
{
    rv_assert(request->done != NULL && request->timeout_ms > 0);
    if (atomic_fetch_add(&outbound->under_way, 1) >= RV_OUTBOUND_REQUESTS_MAX) {
        atomic_fetch_sub(&outbound->under_way, 1);
        return RV_ERR_BUSY;
    }
    struct outgoing *outgoing = outgoing_new(request);
    if (outgoing == NULL) {
        atomic_fetch_sub(&outbound->under_way, 1);
        return RV_ERR_MEMORY;
    }
    outgoing->outbound = outbound;
    outgoing->id = *ret_id = atomic_fetch_add(&outbound->next_id, 1);
    bool open = rv_mailbox_put(&outbound->inbox, outgoing);
    rv_assert(open); /* the mailbox is never closed while others may submit */
    outbound_wake(outbound);
    return RV_OK;
}

enum rv_err rv_outbound_cancel(struct rv_outbound *outbound, uint64_t id)
{
    struct outgoing *wish = calloc(1, sizeof *wish);
    if (wish == NULL)
        return RV_ERR_MEMORY;
    wish->id = id;
    wish->cancel = true;
    bool open = rv_mailbox_put(&outbound->inbox, wish);
    rv_assert(open);
    outbound_wake(outbound);
    return RV_OK;
}

/* ---- one request's way ---- */

static void transfer_leave(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    if (!outgoing->moving)
        return;
    curl_multi_remove_handle(outbound->multi, outgoing->easy);
    rv_assert(outbound->moving > 0);
    outgoing->moving = false;
    outbound->moving--;
}

static void request_end(struct rv_outbound *outbound, struct outgoing *outgoing,
                        enum rv_outcome outcome)
{
    transfer_leave(outbound, outgoing);
    rv_assert(atomic_load(&outbound->under_way) > 0);
    rv_map_remove(&outbound->open, outgoing->id, 0);
    atomic_fetch_sub(&outbound->under_way, 1);
    rv_outgoing_end(outgoing, outcome);
}

static enum rv_outcome outcome_of(enum rv_err err)
{
    return err == RV_ERR_MEMORY    ? RV_OUTCOME_MEMORY
           : err == RV_ERR_REFUSED ? RV_OUTCOME_REFUSED
                                   : RV_OUTCOME_INVALID;
}

static void request_move(struct rv_outbound *outbound, struct outgoing *outgoing,
                         const struct rv_addresses *addresses)
{
    rv_assert(!outgoing->moving);
    rv_assert(outbound->moving < outbound->connections);
    enum rv_err err = rv_outgoing_prepare(outgoing, addresses, rv_clock_mono_ms());
    if (err == RV_OK && curl_multi_add_handle(outbound->multi, outgoing->easy) != CURLM_OK)
        err = RV_ERR_MEMORY;
    if (err != RV_OK) {
        request_end(outbound, outgoing, outcome_of(err));
        return;
    }
    outgoing->moving = true;
    outbound->moving++;
}

static void queue_add(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    rv_assert(*outbound->queue_end == NULL);
    outgoing->next = NULL;
    *outbound->queue_end = outgoing;
    outbound->queue_end = &outgoing->next;
    if (outgoing->deadline < outbound->queue_until)
        outbound->queue_until = outgoing->deadline;
}

/* Moves it if its name is known and a connection is free, or lets it wait. True: for its name. */
static bool request_resolve(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    struct rv_addresses addresses = {.count = 0};
    char why[RV_RESOLVER_WHY_BYTES];
    int64_t now = rv_clock_mono_ms();
    if (now >= outgoing->deadline) {
        snprintf(outgoing->why, sizeof outgoing->why, "timeout while resolving %s",
                 outgoing->target.host);
        request_end(outbound, outgoing, RV_OUTCOME_TIMEOUT);
        return false;
    }
    enum rv_lookup lookup = RV_LOOKUP_FOUND;
    if (!outgoing->target.literal)
        lookup = rv_resolver_look(outbound->resolver, outgoing->target.host, now, &addresses, why);
    switch (lookup) {
    case RV_LOOKUP_PENDING:
        return true;
    case RV_LOOKUP_FOUND:
        if (outbound->moving < outbound->connections)
            request_move(outbound, outgoing, &addresses);
        else
            queue_add(outbound, outgoing);
        return false;
    case RV_LOOKUP_FAILED:
        snprintf(outgoing->why, sizeof outgoing->why, "%s: %s", outgoing->target.host, why);
        request_end(outbound, outgoing, RV_OUTCOME_RESOLVE);
        return false;
    }
    return false;
}

static void request_wait(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    if (!request_resolve(outbound, outgoing))
        return;
    outgoing->next = outbound->waiting;
    outbound->waiting = outgoing;
}

/* With its target known: may it be called, and where is it? */
static void request_go(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    enum rv_err err = rv_egress_check(outbound->options.egress, &outgoing->target, &outgoing->reach,
                                      outgoing->why);
    if (err != RV_OK) {
        request_end(outbound, outgoing, outcome_of(err));
        return;
    }
    request_wait(outbound, outgoing);
}

static enum rv_err target_read(struct outgoing *outgoing)
{
    char why[RV_TARGET_WHY_BYTES];
    enum rv_err err = rv_target_parse(&outgoing->target, outgoing->request.url, why);
    if (err != RV_OK)
        snprintf(outgoing->why, sizeof outgoing->why, "%s", why);
    return err;
}

/* Makes it one of those that are open; then what was submitted is completed and looked at. */
static enum rv_err request_admit(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    const struct rv_outbound_request *request = &outgoing->request;
    RV_TRY(rv_map_put(&outbound->open, outgoing->id, 0, (uint64_t)(uintptr_t)outgoing));
    if (request->fill != NULL)
        RV_TRY(request->fill(request->user, headers_of(outgoing), request->headers_count));
    RV_TRY(rv_outgoing_check(outgoing));
    return target_read(outgoing);
}

static void request_begin(struct rv_outbound *outbound, struct outgoing *outgoing)
{
    enum rv_err err = request_admit(outbound, outgoing);
    if (err != RV_OK) {
        request_end(outbound, outgoing, outcome_of(err));
        return;
    }
    request_go(outbound, outgoing);
}

static struct outgoing **link_find(struct outgoing **list, const struct outgoing *outgoing)
{
    while (*list != NULL && *list != outgoing)
        list = &(*list)->next;
    return list;
}

static void queue_leave(struct rv_outbound *outbound, struct outgoing **link)
{
    *link = (*link)->next;
    if (*link == NULL)
        outbound->queue_end = link;
}

/* Takes it out of the list in which it waits, if it does. */
static void waiting_leave(struct rv_outbound *outbound, const struct outgoing *outgoing)
{
    struct outgoing **link = link_find(&outbound->waiting, outgoing);
    if (*link != NULL) {
        *link = outgoing->next;
        return;
    }
    link = link_find(&outbound->queue, outgoing);
    if (*link != NULL)
        queue_leave(outbound, link);
}

static void request_cancel(struct rv_outbound *outbound, uint64_t id)
{
    const uint64_t *found = rv_map_find(&outbound->open, id, 0);
    if (found == NULL)
        return;
    struct outgoing *outgoing = (struct outgoing *)(uintptr_t)*found;
    if (outgoing->moving)
        (void)rv_outgoing_outcome(outgoing, CURLE_ABORTED_BY_CALLBACK); /* was anything sent? */
    else
        waiting_leave(outbound, outgoing);
    outgoing->why[0] = '\0';
    request_end(outbound, outgoing, RV_OUTCOME_CANCELLED);
}

static void request_moved(struct rv_outbound *outbound, CURL *easy, CURLcode code)
{
    char *private = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private);
    struct outgoing *outgoing = (struct outgoing *)(void *)private;
    rv_assert(outgoing != NULL);
    rv_assert(outgoing->easy == easy);
    rv_assert(outgoing->moving);
    enum rv_outcome outcome = rv_outgoing_outcome(outgoing, code);
    transfer_leave(outbound, outgoing);
    enum rv_err err = RV_ERR_NOT_FOUND;
    if (outcome == RV_OUTCOME_ANSWERED)
        err = rv_outgoing_redirect(outgoing);
    if (err == RV_OK)
        request_go(outbound, outgoing);
    else if (err == RV_ERR_NOT_FOUND)
        request_end(outbound, outgoing, outcome);
    else
        request_end(outbound, outgoing,
                    err == RV_ERR_MEMORY ? RV_OUTCOME_MEMORY : RV_OUTCOME_REDIRECTS);
}

/* ---- the loop ---- */

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *self, void *known)
{
    struct rv_outbound *outbound = self;
    struct epoll_event event = {.data.fd = socket};
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        curl_multi_assign(outbound->multi, socket, NULL);
        /* A socket that was closed has left by itself. */
        (void)epoll_ctl(outbound->epoll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        event.events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        event.events |= EPOLLOUT;
    int failed = epoll_ctl(outbound->epoll, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket,
                           &event);
    if (failed != 0 && errno == EEXIST)
        failed = epoll_ctl(outbound->epoll, EPOLL_CTL_MOD, socket, &event);
    else if (failed != 0 && errno == ENOENT)
        failed = epoll_ctl(outbound->epoll, EPOLL_CTL_ADD, socket, &event);
    if (failed != 0)
        return -1;
    curl_multi_assign(outbound->multi, socket, outbound);
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *self)
{
    struct rv_outbound *outbound = self;
    (void)multi;
    outbound->timer_at = timeout_ms < 0 ? INT64_MAX : rv_clock_mono_ms() + timeout_ms;
    return 0;
}

static void inbox_take(struct rv_outbound *outbound)
{
    void *items[INBOX_MAX];
    size_t count;
    while ((count = rv_mailbox_take(&outbound->inbox, items, INBOX_MAX, 0)) > 0) {
        for (size_t i = 0; i < count; i++) {
            struct outgoing *outgoing = items[i];
            if (!outgoing->cancel) {
                request_begin(outbound, outgoing);
                continue;
            }
            request_cancel(outbound, outgoing->id);
            free(outgoing);
        }
    }
}

/* Looks again at those that wait for names; tells when the first of them runs out of time. */
static int64_t waiting_look(struct rv_outbound *outbound)
{
    int64_t first = INT64_MAX;
    struct outgoing *list = outbound->waiting;
    outbound->waiting = NULL;
    while (list != NULL) {
        struct outgoing *outgoing = list;
        list = list->next;
        rv_assert(!outgoing->moving);
        if (!request_resolve(outbound, outgoing))
            continue;
        outgoing->next = outbound->waiting;
        outbound->waiting = outgoing;
        if (outgoing->deadline < first)
            first = outgoing->deadline;
    }
    return first;
}

/* Ends those whose time was over before their turn came. */
static void queue_expire(struct rv_outbound *outbound)
{
    int64_t now = rv_clock_mono_ms();
    if (now < outbound->queue_until)
        return;
    struct outgoing **link = &outbound->queue;
    outbound->queue_until = INT64_MAX;
    while (*link != NULL) {
        struct outgoing *outgoing = *link;
        if (now >= outgoing->deadline) {
            queue_leave(outbound, link);
            snprintf(outgoing->why, sizeof outgoing->why,
                     "timeout while waiting for one of %ld connections", outbound->connections);
            request_end(outbound, outgoing, RV_OUTCOME_TIMEOUT);
            continue;
        }
        if (outgoing->deadline < outbound->queue_until)
            outbound->queue_until = outgoing->deadline;
        link = &outgoing->next;
    }
}

/* Those at the head of the queue go as far as there are connections. */
static void queue_go(struct rv_outbound *outbound)
{
    queue_expire(outbound);
    while (outbound->queue != NULL && outbound->moving < outbound->connections) {
        struct outgoing *outgoing = outbound->queue;
        queue_leave(outbound, &outbound->queue);
        request_wait(outbound, outgoing);
    }
    if (outbound->queue == NULL)
        outbound->queue_until = INT64_MAX;
}

/* What has ended makes room for those that have waited longest, before anybody new comes. */
static void transfers_end(struct rv_outbound *outbound)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(outbound->multi, &left)) != NULL)
        if (message->msg == CURLMSG_DONE)
            request_moved(outbound, message->easy_handle, message->data.result);
    queue_go(outbound);
}

static void event_see(struct rv_outbound *outbound)
{
    uint64_t count;
    if (read(outbound->event, &count, sizeof count) < 0)
        return;
    atomic_store(&outbound->woken, false);
}

static void loop_wait(struct rv_outbound *outbound, int64_t until)
{
    struct epoll_event events[EVENTS_MAX];
    int running;
    if (outbound->timer_at < until)
        until = outbound->timer_at;
    int64_t wait_ms = until - rv_clock_mono_ms();
    wait_ms = wait_ms < 0 ? 0 : wait_ms > WAIT_MS_MAX ? WAIT_MS_MAX : wait_ms;
    int count = epoll_wait(outbound->epoll, events, EVENTS_MAX, (int)wait_ms);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == outbound->event) {
            event_see(outbound);
            continue;
        }
        int what = (events[i].events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
                   (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (events[i].events & EPOLLERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(outbound->multi, events[i].data.fd, what, &running);
    }
    if (rv_clock_mono_ms() >= outbound->timer_at) {
        outbound->timer_at = INT64_MAX;
        curl_multi_socket_action(outbound->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static void all_cancel(struct rv_outbound *outbound)
{
    inbox_take(outbound);
    while (outbound->open.count > 0) {
        uint64_t id = 0;
        for (size_t i = 0; i < outbound->open.room && id == 0; i++)
            if (outbound->open.slots[i].used)
                id = outbound->open.slots[i].a;
        rv_assert(id != 0);
        request_cancel(outbound, id);
    }
    rv_assert(outbound->waiting == NULL);
    rv_assert(outbound->queue == NULL);
    rv_assert(outbound->moving == 0);
}

static void outbound_run(void *self)
{
    struct rv_outbound *outbound = self;
    while (!atomic_load(&outbound->closing)) {
        inbox_take(outbound);
        int64_t until = waiting_look(outbound);
        transfers_end(outbound);
        loop_wait(outbound, outbound->queue_until < until ? outbound->queue_until : until);
        transfers_end(outbound);
    }
    all_cancel(outbound);
}

/* ---- opening and closing ---- */

static void curl_start(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool network_make(struct rv_outbound *outbound)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, curl_start);
    outbound->epoll = epoll_create1(EPOLL_CLOEXEC);
    outbound->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    outbound->multi = curl_multi_init();
    struct epoll_event event = {.events = EPOLLIN, .data.fd = outbound->event};
    if (outbound->epoll < 0 || outbound->event < 0 || outbound->multi == NULL ||
        epoll_ctl(outbound->epoll, EPOLL_CTL_ADD, outbound->event, &event) != 0)
        return false;
    outbound->connections = outbound->options.connections_max > 0
                                ? outbound->options.connections_max
                                : CONNECTIONS_DEFAULT;
    curl_multi_setopt(outbound->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(outbound->multi, CURLMOPT_SOCKETDATA, outbound);
    curl_multi_setopt(outbound->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(outbound->multi, CURLMOPT_TIMERDATA, outbound);
    curl_multi_setopt(outbound->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    curl_multi_setopt(outbound->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, outbound->connections);
    curl_multi_setopt(outbound->multi, CURLMOPT_MAXCONNECTS, outbound->connections);
    return true;
}

static void outbound_free(struct rv_outbound *outbound)
{
    rv_assert(outbound->open.count == 0);
    rv_resolver_close(outbound->resolver);
    curl_multi_cleanup(outbound->multi);
    if (outbound->epoll >= 0)
        close(outbound->epoll);
    if (outbound->event >= 0)
        close(outbound->event);
    rv_map_done(&outbound->open);
    rv_mailbox_done(&outbound->inbox);
    free(outbound);
}

enum rv_err rv_outbound_open(const struct rv_outbound_options *options,
                             struct rv_outbound **ret_outbound)
{
    struct rv_outbound *outbound = calloc(1, sizeof *outbound);
    if (outbound == NULL)
        return RV_ERR_MEMORY;
    outbound->options = *options;
    outbound->options.resolver.wake = outbound_wake;
    outbound->options.resolver.waker = outbound;
    outbound->epoll = outbound->event = -1;
    outbound->timer_at = outbound->queue_until = INT64_MAX;
    outbound->queue_end = &outbound->queue;
    atomic_store(&outbound->next_id, 1);
    rv_map_init(&outbound->open);
    rv_mailbox_init(&outbound->inbox, offsetof(struct outgoing, next));
    outbound->resolver = rv_resolver_new(&outbound->options.resolver);
    if (outbound->resolver == NULL || !network_make(outbound) ||
        rv_thread_start(&outbound->thread, "outbound", outbound_run, outbound) != RV_OK) {
        outbound_free(outbound);
        return RV_ERR_MEMORY;
    }
    *ret_outbound = outbound;
    return RV_OK;
}

void rv_outbound_close(struct rv_outbound *outbound)
{
    if (outbound == NULL)
        return;
    atomic_store(&outbound->closing, true);
    atomic_store(&outbound->woken, false);
    outbound_wake(outbound);
    rv_thread_join(&outbound->thread);
    outbound_free(outbound);
}

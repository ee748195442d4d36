/* How many steps a second one agent process carries, and how long one step alone takes, against a
 * server that costs next to nothing: a thread per connection that counts and copies. */
#include "base/assert.h"
#include "base/buf.h"
#include "base/os/clock.h"
#include "reeve.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BODY_BYTES_MAX = 16 * 1024 * 1024, ROUNDS_MAX = 200000 };

static struct {
    int listener;
    atomic_int left; /* steps not handed out */
    atomic_int replied;
    atomic_int next_number;
    atomic_int connections;
    int total;
    struct rv_agent *agent;
} server;

static size_t count_of(struct rv_str text, const char *word)
{
    size_t n = 0;
    const char *at = text.at;
    const char *end = text.at + text.len;
    size_t bytes = strlen(word);
    while ((at = memmem(at, (size_t)(end - at), word, bytes)) != NULL) {
        at += bytes;
        n++;
    }
    return n;
}

/* The number after `"max":`; 0 if the body asks for nothing. */
static long max_of(struct rv_str text)
{
    const char *at = memmem(text.at, text.len, "\"max\":", 6);
    return at == NULL ? 0 : strtol(at + 6, NULL, 10);
}

static void results_write(struct rv_buf *out, struct rv_str body)
{
    static const char word[] = "{\"step\":\"";
    const char *at = body.at;
    const char *end = body.at + body.len;
    const char *between = "";
    while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1)) != NULL) {
        at += sizeof word - 1;
        const char *quote = memchr(at, '"', (size_t)(end - at));
        rv_buf_printf(out, "%s{\"step\":\"%.*s\",\"status\":200}", between, (int)(quote - at), at);
        between = ",";
        at = quote;
    }
}

static void requests_write(struct rv_buf *out, long max)
{
    const char *between = "";
    while (max-- > 0 && atomic_fetch_sub(&server.left, 1) > 0) {
        int n = atomic_fetch_add(&server.next_number, 1);
        rv_buf_printf(out,
                      "%s{\"step\":\"06DWX3T9H2K4Q-%d\",\"task\":\"06DWX3T9H2K4Q\",\"reference\":"
                      "\"/do/0/reserveStock\",\"attempt\":1,\"token\":\"%016d\",\"fence\":17,"
                      "\"idempotencyKey\":\"06DWX3T9H2K4Q-%d\",\"remainingMs\":30000,\"leaseMs\":"
                      "30000,\"input\":{\"operation\":\"reserve\",\"sku\":\"x-1\",\"quantity\":2}}",
                      between, n, n, n);
        between = ",";
    }
}

static void answer_write(struct rv_buf *out, struct rv_str body, bool is_reply)
{
    rv_buf_reset(out);
    rv_buf_lit(out, "{\"results\":[");
    if (is_reply)
        results_write(out, body);
    rv_buf_lit(out, "],\"requests\":[");
    requests_write(out, max_of(body));
    rv_buf_lit(out, "],\"cancel\":[]}");
    if (!is_reply)
        return;
    int replied = (int)count_of(body, "{\"step\":\"");
    if (atomic_fetch_add(&server.replied, replied) + replied >= server.total)
        rv_agent_stop(server.agent);
}

/* Reads one request; the bytes of head and body, or 0 at the end. */
static size_t request_read(int fd, struct rv_buf *in, size_t *ret_head)
{
    for (;;) {
        const char *end = in->len ? memmem(in->at, in->len, "\r\n\r\n", 4) : NULL;
        if (end != NULL) {
            const char *field = strcasestr(in->at, "content-length:");
            size_t head = (size_t)(end - in->at) + 4;
            size_t body = field ? strtoul(field + 15, NULL, 10) : 0;
            *ret_head = head;
            if (in->len >= head + body)
                return head + body;
        }
        char *room = rv_buf_reserve(in, 65537);
        ssize_t n = room == NULL ? -1 : read(fd, room, 65536);
        if (n <= 0)
            return 0;
        in->len += (size_t)n;
        in->at[in->len] = '\0';
    }
}

static void *connection_run(void *handle)
{
    int fd = (int)(intptr_t)handle;
    struct rv_buf in;
    struct rv_buf out;
    struct rv_buf head;
    rv_buf_init(&in, BODY_BYTES_MAX);
    rv_buf_init(&out, BODY_BYTES_MAX);
    rv_buf_init(&head, 256);
    size_t head_bytes;
    size_t bytes;
    while ((bytes = request_read(fd, &in, &head_bytes)) > 0) {
        bool is_reply = memcmp(in.at, "POST /v1/replies", 16) == 0;
        answer_write(&out, (struct rv_str){in.at + head_bytes, bytes - head_bytes}, is_reply);
        rv_buf_reset(&head);
        rv_buf_printf(&head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", out.len);
        if (send(fd, head.at, head.len, MSG_NOSIGNAL | MSG_MORE) < 0 ||
            send(fd, out.at, out.len, MSG_NOSIGNAL) < 0)
            break;
        memmove(in.at, in.at + bytes, in.len - bytes);
        in.len -= bytes;
    }
    close(fd);
    atomic_fetch_sub(&server.connections, 1);
    rv_buf_done(&in);
    rv_buf_done(&out);
    rv_buf_done(&head);
    return NULL;
}

static void *accept_run(void *unused)
{
    (void)unused;
    for (;;) {
        int fd = accept(server.listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        atomic_fetch_add(&server.connections, 1);
        pthread_t thread;
        int failed = pthread_create(&thread, NULL, connection_run, (void *)(intptr_t)fd);
        rv_assert(failed == 0);
        pthread_detach(thread);
    }
}

static void server_open(char url[static 64])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    server.listener = socket(AF_INET, SOCK_STREAM, 0);
    int failed = bind(server.listener, (struct sockaddr *)&at, sizeof at) |
                 listen(server.listener, 16) |
                 getsockname(server.listener, (struct sockaddr *)&at, &bytes);
    rv_assert(failed == 0);
    snprintf(url, 64, "http://127.0.0.1:%d", ntohs(at.sin_port));
    pthread_t thread;
    failed = pthread_create(&thread, NULL, accept_run, NULL);
    rv_assert(failed == 0);
}

static void handle(struct rv_request *request, void *user)
{
    (void)user;
    int64_t quantity = 0;
    const char *sku = rv_request_string(request, "/sku");
    if (sku == NULL || !rv_request_integer(request, "/quantity", &quantity))
        rv_request_fail(request, &(struct rv_failure){.type = "bad-order"});
    else
        rv_request_done(request, "{\"reserved\":true,\"quantity\":2}");
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void measure(const char *url, const char *what, int threads, int max, int total)
{
    server.total = total;
    atomic_store(&server.left, total);
    atomic_store(&server.replied, 0);
    struct rv_agent_options options = {
        .name = "inventory", .handler = handle, .threads = threads, .max = max};
    server.agent = rv_agent_open(url, &options);
    rv_assert(server.agent != NULL);
    double cpu = cpu_seconds();
    int64_t begun = rv_clock_mono_us();
    int result = rv_agent_run(server.agent);
    double seconds = (double)(rv_clock_mono_us() - begun) / 1e6;
    struct rv_agent_counts counts;
    rv_agent_count(server.agent, &counts);
    rv_assert(result == RV_RESULT_OK && counts.replied == (uint64_t)total);
    printf("%-34s %9.0f steps/s  %7.1f us/step  %5.1f us CPU/step, server included\n", what,
           total / seconds, seconds / total * 1e6, (cpu_seconds() - cpu) / total * 1e6);
    rv_agent_close(server.agent);
    /* A poll that was cut at the end may not take steps from the next measurement. */
    while (atomic_load(&server.connections) > 0)
        sched_yield();
}

int main(void)
{
    char url[64];
    server_open(url);
    measure(url, "agent, no threads, max 256", RV_THREADS_NONE, 256, ROUNDS_MAX);
    measure(url, "agent, 8 threads, max 256", 8, 256, ROUNDS_MAX);
    measure(url, "agent, 8 threads, max 8", 8, 8, ROUNDS_MAX / 4);
    measure(url, "one step at a time, no threads", RV_THREADS_NONE, 1, ROUNDS_MAX / 100);
    measure(url, "one step at a time, a thread", 1, 1, ROUNDS_MAX / 100);
    return 0;
}

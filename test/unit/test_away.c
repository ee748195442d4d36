/* Callers of a server whose shared store has gone away in the middle of a commit: who is in the
 * batch is answered when its outcome is known, and all others at once, with 503. The real api and
 * scheduler, each on its thread, over a store in memory that answers when it is told to. */
#include "../lib/workflow.h"
#include "api/api.h"
#include "base/os/clock.h"
#include "base/os/fiber.h"
#include "base/os/thread.h"
#include "door/listen.h"
#include "scheduler/call.h"
#include "scheduler/scheduler.h"
#include "sim/store/memory/memory.h"

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_SECONDS = 10, REPLY_BYTES = 8192, BATCH_MAX = 16, SCAN_MS = 10 };

/* The store: the next commit reaches it, and its answer does not come back. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool breaks; /* the connection, with the next commit */
    bool asked;  /* what became of that one; */
    bool back;   /* ... answered then */
} away = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct rv_store_ops ops;
static const struct rv_store_ops *memory_ops;

static struct {
    struct rv_store_memory_data *data;
    struct rv_store *store;
    struct rv_scheduler *scheduler;
    struct rv_api *api;
    struct rv_mailbox mailbox;
    struct rv_thread thread;
    atomic_llong patient_until;
    uint16_t port;
    atomic_bool stops;
} place;

static enum rv_err commit(struct rv_store *store, struct rv_batch *batch)
{
    enum rv_err err = memory_ops->commit(store, batch);
    pthread_mutex_lock(&away.mutex);
    bool breaks = away.breaks && batch->changes_count > 0;
    away.breaks = away.breaks && !breaks;
    pthread_mutex_unlock(&away.mutex);
    return err == RV_OK && breaks ? RV_ERR_COMMIT_UNKNOWN : err;
}

static enum rv_err committed(struct rv_store *store, int64_t number, bool *ret_committed)
{
    (void)store, (void)number;
    pthread_mutex_lock(&away.mutex);
    away.asked = true;
    pthread_cond_broadcast(&away.changed);
    while (!away.back)
        pthread_cond_wait(&away.changed, &away.mutex);
    pthread_mutex_unlock(&away.mutex);
    *ret_committed = true;
    return RV_OK;
}

static int64_t wall_now(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

static int64_t mono_now(void *self)
{
    (void)self;
    return rv_clock_mono_ms();
}

static void patience_tell(void *self, int64_t until)
{
    (void)self;
    atomic_store(&place.patient_until, until);
}

static bool patience_over(void *self)
{
    (void)self;
    return rv_clock_mono_ms() > atomic_load(&place.patient_until);
}

static void scheduler_run(void *self)
{
    (void)self;
    while (!atomic_load(&place.stops)) {
        void *items[BATCH_MAX];
        struct rv_call *calls[BATCH_MAX];
        int64_t wait_ms = rv_scheduler_next_wake(place.scheduler, rv_clock_mono_ms());
        size_t count = rv_mailbox_take(&place.mailbox, items, BATCH_MAX, wait_ms);
        memcpy(calls, items, count * sizeof calls[0]);
        enum rv_err err = rv_scheduler_run_batch(place.scheduler, calls, count,
                                                 rv_mailbox_heard_until(&place.mailbox));
        if (err != RV_OK)
            abort();
    }
}

static void api_begin(void)
{
    int socket;
    char name[RV_DOOR_NAME_BYTES];
    bool public;
    assert_int_equal(rv_door_listen(RV_STR("127.0.0.1:0"), &socket), RV_OK);
    assert_int_equal(rv_door_look(socket, &public, name), RV_OK);
    place.port = (uint16_t)strtoul(strrchr(name, ':') + 1, NULL, 10);
    struct rv_api_options options = {.sockets = &socket,
                                     .sockets_count = 1,
                                     .mailbox = &place.mailbox,
                                     .away = {.is = patience_over}};
    rv_keys_init(&options.access.keys);
    assert_int_equal(rv_api_open(&options, &place.api), RV_OK);
}

static int begin_on(void **state, bool shared)
{
    static struct rv_wall_clock clock = {.now = wall_now};
    atomic_store(&place.stops, false);
    atomic_store(&place.patient_until, INT64_MAX);
    away.breaks = away.asked = away.back = false;
    assert_int_equal(rv_store_memory_data_new(&place.data), RV_OK);
    if (shared)
        rv_store_memory_data_share(place.data);
    assert_int_equal(rv_store_memory_open(place.data, clock, &place.store), RV_OK);
    memory_ops = place.store->ops;
    ops = *memory_ops;
    ops.commit = commit;
    ops.committed = committed;
    place.store->ops = &ops;
    struct rv_scheduler_options options = {.store = place.store,
                                           .boot = RV_STR("b1"),
                                           .pid = 1,
                                           .seed = 7,
                                           .hash_key = {1, 2},
                                           .scan_interval_ms = SCAN_MS,
                                           .mono = {.now = mono_now},
                                           .waits = {.tell = patience_tell},
                                           .fibers = &rv_fibers};
    assert_int_equal(rv_scheduler_open(&options, &place.scheduler), RV_OK);
    rv_mailbox_init(&place.mailbox, offsetof(struct rv_call, next));
    rv_mailbox_keep_arrivals(&place.mailbox, offsetof(struct rv_call, behind));
    api_begin();
    assert_int_equal(rv_thread_start(&place.thread, "scheduler", scheduler_run, NULL), RV_OK);
    *state = NULL;
    return 0;
}

static int begin_shared(void **state)
{
    return begin_on(state, true);
}

static int begin_alone(void **state)
{
    return begin_on(state, false);
}

static void store_comes_back(void)
{
    pthread_mutex_lock(&away.mutex);
    away.back = true;
    pthread_cond_broadcast(&away.changed);
    pthread_mutex_unlock(&away.mutex);
}

static int end(void **state)
{
    (void)state;
    store_comes_back(); /* where an expectation has failed */
    rv_api_drain(place.api);
    atomic_store(&place.stops, true);
    rv_mailbox_wake(&place.mailbox);
    rv_thread_join(&place.thread);
    rv_mailbox_close(&place.mailbox);
    rv_scheduler_close(place.scheduler);
    void *left;
    while (rv_mailbox_take(&place.mailbox, &left, 1, 0) > 0)
        rv_call_refuse_away(left);
    rv_api_close(place.api, 100);
    rv_mailbox_done(&place.mailbox);
    place.store->ops->close(place.store);
    rv_store_memory_data_free(place.data);
    return 0;
}

static int request_send(const char *line, const char *head, const char *body)
{
    char request[REPLY_BYTES];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(place.port)};
    struct timeval patience = {.tv_sec = TEST_SECONDS};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    int len = snprintf(request, sizeof request,
                       "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s"
                       "Content-Length: %zu\r\n\r\n%s",
                       line, head, strlen(body), body);
    assert_true(len > 0 && (size_t)len < sizeof request);
    assert_int_equal(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    return fd;
}

/* The status of the answer, which `reply` has whole; -1: none has come yet. */
static int answer_read(int fd, int flags, char *reply)
{
    size_t got = 0;
    ssize_t piece;
    while ((piece = recv(fd, reply + got, REPLY_BYTES - 1 - got, flags)) > 0)
        got += (size_t)piece;
    reply[got] = '\0';
    if (got == 0)
        return -1;
    assert_int_equal(piece, 0);
    close(fd);
    return (int)strtol(reply + 9, NULL, 10);
}

static int ask(const char *line, const char *head, const char *body, char *reply)
{
    return answer_read(request_send(line, head, body), 0, reply);
}

static int submit_send(const char *key)
{
    char head[128];
    snprintf(head, sizeof head, "Idempotency-Key: %s\r\n", key);
    return request_send("POST /v1/tasks", head, "{\"workflow\":\"shop/order\",\"input\":{}}");
}

static void assert_away(int status, const char *reply)
{
    assert_int_equal(status, 503);
    assert_non_null(strstr(reply, "Retry-After: "));
    assert_non_null(strstr(reply, "the store does not answer; send the request again"));
}

/* A submission whose commit has an outcome that the store does not tell yet. */
static int submit_into_the_dark(void)
{
    char reply[REPLY_BYTES];
    assert_int_equal(ask("PUT /v1/workflows", "", workflow_file("order"), reply), 201);
    pthread_mutex_lock(&away.mutex);
    away.breaks = true;
    pthread_mutex_unlock(&away.mutex);
    int first = submit_send("k1");
    pthread_mutex_lock(&away.mutex);
    while (!away.asked)
        pthread_cond_wait(&away.changed, &away.mutex);
    pthread_mutex_unlock(&away.mutex);
    return first;
}

static void who_is_not_in_the_batch_is_told_that_the_store_is_away(void **state)
{
    (void)state;
    char reply[REPLY_BYTES];
    int first = submit_into_the_dark();
    /* One waits in the queue when the time is over, the others come later. */
    int second = submit_send("k2");
    assert_away(answer_read(second, 0, reply), reply);
    assert_away(ask("GET /v1/agents", "", "", reply), reply);
    assert_away(answer_read(submit_send("k1"), 0, reply), reply);
    /* Whoever is in the batch hears nothing before its outcome is known. */
    assert_int_equal(answer_read(first, MSG_DONTWAIT, reply), -1);
    store_comes_back();
    assert_int_equal(answer_read(first, 0, reply), 201);
    assert_int_equal(answer_read(submit_send("k1"), 0, reply), 200);
    assert_int_equal(answer_read(submit_send("k2"), 0, reply), 201);
}

static atomic_int heard;

static void note_finished(struct rv_call *call)
{
    rv_arena_done(&call->arena);
    atomic_fetch_add(&heard, 1);
}

/* What nobody waits for is heard once the store is back. */
static void a_note_stays_in_the_queue(void **state)
{
    (void)state;
    char reply[REPLY_BYTES];
    struct rv_call note = {.kind = RV_CALL_RAISE, .note = true, .finish = note_finished};
    note.u.raise.source = RV_STR("reeve connections");
    note.u.raise.message = RV_STR("new connections have to wait");
    rv_arena_init(&note.arena, 0);
    atomic_store(&heard, 0);
    int first = submit_into_the_dark();
    assert_true(rv_mailbox_put(&place.mailbox, &note));
    assert_away(ask("GET /v1/agents", "", "", reply), reply);
    assert_int_equal(atomic_load(&heard), 0);
    store_comes_back();
    assert_int_equal(answer_read(first, 0, reply), 201);
    assert_int_equal(ask("GET /v1/agents", "", "", reply), 200);
    assert_int_equal(atomic_load(&heard), 1);
}

/* A store that is nobody else's is not waited for. */
static void a_store_of_one_server_is_never_away(void **state)
{
    (void)state;
    char reply[REPLY_BYTES];
    int first = submit_into_the_dark();
    assert_true(atomic_load(&place.patient_until) == INT64_MAX);
    store_comes_back();
    assert_int_equal(answer_read(first, 0, reply), 201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_is_not_in_the_batch_is_told_that_the_store_is_away,
                                        begin_shared, end),
        cmocka_unit_test_setup_teardown(a_note_stays_in_the_queue, begin_shared, end),
        cmocka_unit_test_setup_teardown(a_store_of_one_server_is_never_away, begin_alone, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

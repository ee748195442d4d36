/* Backups over a real loopback socket, before a scheduler and a store that this test plays. */
#include "api/api.h"
#include "base/os/clock.h"
#include "base/os/thread.h"
#include "door/listen.h"
#include "scheduler/call.h"
#include "store/copy.h"

#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 3000, BOUND_MS = 20000 };

struct stage {
    struct rv_api *api;
    struct rv_mailbox mailbox;
    struct rv_thread thread;
    uint16_t port;
    atomic_int copies; /* open ones */
};

/* A copy without an end. */
struct copy {
    struct rv_copy copy;
    struct stage *stage;
};

static enum rv_err copy_read(struct rv_copy *copy, void *at, size_t max, size_t *ret_count)
{
    (void)copy;
    memset(at, 0, max);
    *ret_count = max;
    return RV_OK;
}

static void copy_close(struct rv_copy *copy)
{
    struct copy *self = (struct copy *)copy;
    atomic_fetch_sub(&self->stage->copies, 1);
    free(self);
}

/* One at a time, as the store has it. */
static void call_play(struct stage *stage, struct rv_call *call)
{
    struct copy *copy = atomic_load(&stage->copies) == 0 ? calloc(1, sizeof *copy) : NULL;
    call->mono_now = call->mono_at;
    call->err = copy == NULL ? RV_ERR_REFUSED : RV_OK;
    if (copy != NULL) {
        atomic_fetch_add(&stage->copies, 1);
        copy->stage = stage;
        copy->copy = (struct rv_copy){
            .bytes = INT64_C(1) << 40, .read = copy_read, .close = copy_close};
        call->u.backup.copy = &copy->copy;
    }
    call->finish(call);
}

static void stage_run(void *self)
{
    struct stage *stage = self;
    void *calls[8];
    size_t count;
    while ((count = rv_mailbox_take(&stage->mailbox, calls, 8, -1)) > 0)
        for (size_t i = 0; i < count; i++)
            call_play(stage, calls[i]);
}

static int stage_begin(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    int socket;
    struct rv_api_options options = {.sockets = &socket,
                                     .sockets_count = 1,
                                     .mailbox = &stage->mailbox,
                                     .patience_ms = PATIENCE_MS,
                                     .self = stage};
    rv_mailbox_init(&stage->mailbox, offsetof(struct rv_call, next));
    if (rv_door_listen(RV_STR("127.0.0.1:0"), &socket) != RV_OK ||
        getsockname(socket, (struct sockaddr *)&at, &len) != 0 ||
        rv_thread_start(&stage->thread, "stage", stage_run, stage) != RV_OK ||
        rv_api_open(&options, &stage->api) != RV_OK)
        return -1;
    stage->port = at.sin_port;
    *state = stage;
    return 0;
}

static int stage_end(void **state)
{
    struct stage *stage = *state;
    rv_mailbox_close(&stage->mailbox);
    rv_thread_join(&stage->thread);
    rv_api_close(stage->api, 100);
    rv_mailbox_done(&stage->mailbox);
    free(stage);
    return 0;
}

static int backup_ask(const struct stage *stage)
{
    static const char text[] = "GET /v1/backup HTTP/1.1\r\nHost: 0\r\n\r\n";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = stage->port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(send(fd, text, sizeof text - 1, 0), sizeof text - 1);
    return fd;
}

/* A backup whose client reads nothing ends after a third of its patience if another is asked for,
 * and else after all of it. */
static void a_stalled_backup_gives_way_to_the_next(void **state)
{
    const struct stage *stage = *state;
    char head[13] = "HTTP/1.1 409";
    int refused = -1;
    int64_t began = rv_clock_mono_ms();
    int stalled = backup_ask(stage);
    while (atomic_load(&stage->copies) == 0 && rv_clock_mono_ms() - began < BOUND_MS)
        sched_yield();
    while (strcmp(head, "HTTP/1.1 409") == 0) {
        int next = backup_ask(stage);
        assert_int_equal(recv(next, head, 12, MSG_WAITALL), 12);
        close(next);
        refused++;
    }
    assert_string_equal(head, "HTTP/1.1 200");
    assert_true(refused > 0);
    assert_in_range(rv_clock_mono_ms() - began, PATIENCE_MS / 3, PATIENCE_MS - PATIENCE_MS / 10);
    close(stalled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_stalled_backup_gives_way_to_the_next, stage_begin,
                                        stage_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

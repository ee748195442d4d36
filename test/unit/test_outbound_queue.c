/* Requests that wait for a connection: in turn, and no longer than their time. */
#include "../lib/loopback.h"
#include "base/os/clock.h"
#include "outbound/outbound.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PATIENCE_MS = 30000, URL_BYTES = 64, CROWD = 200 };

/* What came of one request; `outcome` is read once `done`. */
struct fate {
    atomic_bool done;
    uint64_t id;
    enum rv_outcome outcome;
    bool sent;
    bool why_fits; /* it says that there was no connection */
};

struct scene {
    struct loopback *server;
    struct rv_egress *egress;
    struct rv_outbound *outbound;
    atomic_uint requests; /* that the server has read */
    atomic_uint open;     /* ... and not answered */
    atomic_uint most;     /* of them at once */
};

static bool serve(const struct loopback_request *request)
{
    struct scene *scene = request->user;
    unsigned open = atomic_fetch_add(&scene->open, 1) + 1;
    if (open > atomic_load(&scene->most))
        atomic_store(&scene->most, open);
    atomic_fetch_add(&scene->requests, 1);
    if (strcmp(request->path, "/hang") == 0)
        loopback_hang(request);
    atomic_fetch_sub(&scene->open, 1);
    return loopback_say(request->fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

static void on_done(void *user, const struct rv_outbound_answer *told)
{
    struct fate *fate = user;
    fate->outcome = told->outcome;
    fate->sent = told->sent;
    fate->why_fits = told->why.at != NULL && strstr(told->why.at, "connections") != NULL;
    atomic_store(&fate->done, true);
}

static void scene_open(struct scene *scene, long connections)
{
    char url[URL_BYTES];
    char why[RV_EGRESS_WHY_BYTES];
    *scene = (struct scene){.egress = rv_egress_new()};
    scene->server = loopback_open(serve, scene);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", loopback_port(scene->server));
    assert_int_equal(rv_egress_add(scene->egress, rv_str_of(url), why), RV_OK);
    struct rv_outbound_options options = {.egress = scene->egress, .connections_max = connections};
    assert_int_equal(rv_outbound_open(&options, &scene->outbound), RV_OK);
}

static void scene_close(struct scene *scene)
{
    rv_outbound_close(scene->outbound);
    rv_egress_free(scene->egress);
    loopback_close(scene->server);
}

static void submit(struct scene *scene, const char *path, int64_t timeout_ms, struct fate *fate)
{
    char url[URL_BYTES];
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", loopback_port(scene->server), path);
    struct rv_outbound_request request = {.method = RV_STR("GET"),
                                          .url = rv_str_of(url),
                                          .timeout_ms = timeout_ms,
                                          .answer_bytes_max = 16,
                                          .done = on_done,
                                          .user = fate};
    assert_int_equal(rv_outbound_submit(scene->outbound, &request, &fate->id), RV_OK);
}

static void wait_for(const struct fate *fate)
{
    int64_t until = rv_clock_mono_ms() + PATIENCE_MS;
    while (!atomic_load(&fate->done) && rv_clock_mono_ms() < until)
        poll(NULL, 0, 1);
    assert_true(atomic_load(&fate->done));
}

/* Its time runs while it waits, so that it is never sent when nobody reckons with it any more. */
static void who_finds_no_connection_waits_no_longer_than_its_time(void **state)
{
    struct scene scene;
    struct fate hanging = {0}, late = {0}, taken_back = {0}, next[2] = {{0}, {0}};
    (void)state;
    scene_open(&scene, 1);
    submit(&scene, "/hang", PATIENCE_MS, &hanging);
    submit(&scene, "/late", 50, &late);
    submit(&scene, "/next", PATIENCE_MS, &next[0]);
    submit(&scene, "/back", PATIENCE_MS, &taken_back);
    assert_int_equal(rv_outbound_cancel(scene.outbound, taken_back.id), RV_OK);
    submit(&scene, "/next", PATIENCE_MS, &next[1]);
    wait_for(&late);
    assert_int_equal(late.outcome, RV_OUTCOME_TIMEOUT);
    assert_true(late.why_fits);
    assert_false(late.sent);
    wait_for(&taken_back);
    assert_int_equal(taken_back.outcome, RV_OUTCOME_CANCELLED);
    assert_false(taken_back.sent);
    assert_false(atomic_load(&next[0].done) || atomic_load(&next[1].done));
    assert_int_equal(rv_outbound_cancel(scene.outbound, hanging.id), RV_OK);
    for (int i = 0; i < 2; i++) {
        wait_for(&next[i]);
        assert_int_equal(next[i].outcome, RV_OUTCOME_ANSWERED);
    }
    assert_in_range(atomic_load(&scene.requests), 2, 3); /* the first may have been cut short */
    scene_close(&scene);
}

static void a_crowd_goes_through_few_connections(void **state)
{
    struct scene scene;
    static struct fate crowd[CROWD];
    (void)state;
    scene_open(&scene, 3);
    for (int i = 0; i < CROWD; i++)
        submit(&scene, "/crowd", PATIENCE_MS, &crowd[i]);
    for (int i = 0; i < CROWD; i++) {
        wait_for(&crowd[i]);
        assert_int_equal(crowd[i].outcome, RV_OUTCOME_ANSWERED);
    }
    assert_int_equal(atomic_load(&scene.requests), CROWD);
    assert_in_range(atomic_load(&scene.most), 1, 3);
    scene_close(&scene);
}

static void closing_ends_those_that_wait(void **state)
{
    struct scene scene;
    struct fate fates[3] = {{0}};
    (void)state;
    scene_open(&scene, 1);
    for (int i = 0; i < 3; i++)
        submit(&scene, "/hang", PATIENCE_MS, &fates[i]);
    scene_close(&scene);
    for (int i = 0; i < 3; i++) {
        assert_true(atomic_load(&fates[i].done));
        assert_int_equal(fates[i].outcome, RV_OUTCOME_CANCELLED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_finds_no_connection_waits_no_longer_than_its_time),
        cmocka_unit_test(a_crowd_goes_through_few_connections),
        cmocka_unit_test(closing_ends_those_that_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

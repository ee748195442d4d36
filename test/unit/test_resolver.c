/* How long the answers of the system's resolver are kept. */
#include "outbound/resolver.h"

#include "base/os/clock.h"

#include <netdb.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FOUND_MS = 30000, FAILED_MS = 1000 };

struct scene {
    struct rv_resolver *resolver;
    struct rv_addresses addresses;
    char why[RV_RESOLVER_WHY_BYTES];
    atomic_int asked;
    atomic_int code;
    sem_t known;
};

static int scene_ask(void *user, const char *host, struct rv_addresses *ret_addresses)
{
    (void)host;
    struct scene *scene = user;
    scene->asked++;
    ret_addresses->count = scene->code == 0;
    return scene->code;
}

static void scene_wake(void *waker)
{
    struct scene *scene = waker;
    sem_post(&scene->known);
}

static int scene_open(void **state)
{
    struct scene *scene = calloc(1, sizeof *scene);
    if (scene == NULL || sem_init(&scene->known, 0, 0) != 0)
        return -1;
    struct rv_resolver_options options = {
        .ask = scene_ask, .user = scene, .wake = scene_wake, .waker = scene};
    scene->resolver = rv_resolver_new(&options);
    *state = scene;
    return scene->resolver != NULL ? 0 : -1;
}

/* Each thread that asked has woken the scene before: none speaks to it any more. */
static int scene_close(void **state)
{
    struct scene *scene = *state;
    rv_resolver_close(scene->resolver);
    sem_destroy(&scene->known);
    free(scene);
    return 0;
}

static enum rv_lookup look(struct scene *scene, int64_t now)
{
    return rv_resolver_look(scene->resolver, "shop.example", now, &scene->addresses, scene->why);
}

/* The name is asked for, with this outcome. When it was known, at the latest. */
static int64_t learn(struct scene *scene, int code)
{
    scene->code = code;
    assert_int_equal(look(scene, rv_clock_mono_ms()), RV_LOOKUP_PENDING);
    assert_int_equal(sem_wait(&scene->known), 0);
    return rv_clock_mono_ms();
}

static void a_failure_is_kept_for_a_second(void **state)
{
    struct scene *scene = *state;
    int64_t before = rv_clock_mono_ms();
    int64_t known = learn(scene, EAI_NONAME);
    assert_int_equal(look(scene, before + FAILED_MS - 1), RV_LOOKUP_FAILED);
    assert_string_equal(scene->why, gai_strerror(EAI_NONAME));
    scene->code = 0;
    assert_int_equal(look(scene, known + FAILED_MS), RV_LOOKUP_PENDING);
    assert_int_equal(sem_wait(&scene->known), 0);
    assert_int_equal(look(scene, rv_clock_mono_ms()), RV_LOOKUP_FOUND);
    assert_int_equal(scene->asked, 2);
}

static void an_address_is_kept_for_half_a_minute(void **state)
{
    struct scene *scene = *state;
    int64_t before = rv_clock_mono_ms();
    int64_t known = learn(scene, 0);
    assert_int_equal(look(scene, before + FOUND_MS - 1), RV_LOOKUP_FOUND);
    assert_int_equal(scene->addresses.count, 1);
    assert_int_equal(scene->asked, 1);
    assert_int_equal(look(scene, known + FOUND_MS), RV_LOOKUP_PENDING);
    assert_int_equal(sem_wait(&scene->known), 0);
    assert_int_equal(scene->asked, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failure_is_kept_for_a_second, scene_open, scene_close),
        cmocka_unit_test_setup_teardown(an_address_is_kept_for_half_a_minute, scene_open,
                                        scene_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

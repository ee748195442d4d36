/* A stack is made ready once, with makecontext; from then on one goes over with _longjmp, which
 * asks nothing of the system. A fiber that has returned waits in fiber_body for its next call. */

/* The C library would take a jump to another stack for a mistake. */
#undef _FORTIFY_SOURCE

#include "base/os/fiber.h"

#include "base/assert.h"

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
/* Nobody needs to know which stack it is. */
static void __sanitizer_start_switch_fiber(void **fake_stack, const void *bottom, size_t bytes)
{
    (void)fake_stack;
    (void)bottom;
    (void)bytes;
}
static void __sanitizer_finish_switch_fiber(void *fake_stack, const void **bottom, size_t *bytes)
{
    (void)fake_stack;
    (void)bottom;
    (void)bytes;
}
#endif

/* Only the pages that are used take memory. Below lies a page that nobody may touch. */
enum { STACK_BYTES = 4 * 1024 * 1024, GUARD_BYTES = 64 * 1024 };

struct rv_fiber {
    jmp_buf here;
    jmp_buf caller;
    char *stack; /* owned, above its guard */
    void (*call)(void *self);
    void *self;
    bool running;
    bool paused;
    void *fake_stack; /* the sanitizer's */
    const void *caller_stack;
    size_t caller_bytes;
};

/* Back to the caller, until somebody enters again. */
static void leave(struct rv_fiber *fiber)
{
    __sanitizer_start_switch_fiber(&fiber->fake_stack, fiber->caller_stack, fiber->caller_bytes);
    if (_setjmp(fiber->here) == 0)
        _longjmp(fiber->caller, 1);
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &fiber->caller_stack, &fiber->caller_bytes);
}

static void fiber_body(unsigned high, unsigned low)
{
    struct rv_fiber *fiber = (struct rv_fiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    __sanitizer_finish_switch_fiber(NULL, &fiber->caller_stack, &fiber->caller_bytes);
    for (;;) {
        leave(fiber);
        rv_assert(fiber->running);
        fiber->call(fiber->self);
        rv_assert(!fiber->paused);
        fiber->running = false;
    }
}

/* Comes back when the fiber leaves. */
static void enter(struct rv_fiber *fiber)
{
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, fiber->stack, STACK_BYTES);
    if (_setjmp(fiber->caller) == 0)
        _longjmp(fiber->here, 1);
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

/* The first time, up to where fiber_body waits. */
static void make_ready(struct rv_fiber *fiber)
{
    ucontext_t first;
    int failed = getcontext(&first);
    rv_assert(failed == 0);
    first.uc_stack.ss_sp = fiber->stack;
    first.uc_stack.ss_size = STACK_BYTES;
    first.uc_link = NULL;
    uintptr_t bits = (uintptr_t)fiber;
    makecontext(&first, (void (*)(void))fiber_body, 2, (unsigned)(bits >> 32), (unsigned)bits);
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, fiber->stack, STACK_BYTES);
    if (_setjmp(fiber->caller) == 0)
        setcontext(&first);
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
}

static struct rv_fiber *fiber_open(void)
{
    struct rv_fiber *fiber = calloc(1, sizeof *fiber);
    if (fiber == NULL)
        return NULL;
    char *bottom = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bottom == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    int failed = mprotect(bottom, GUARD_BYTES, PROT_NONE);
    rv_assert(failed == 0);
    fiber->stack = bottom + GUARD_BYTES;
    make_ready(fiber);
    return fiber;
}

static void fiber_close(struct rv_fiber *fiber)
{
    rv_assert(!fiber->running);
    munmap(fiber->stack - GUARD_BYTES, GUARD_BYTES + STACK_BYTES);
    free(fiber);
}

static bool fiber_run(struct rv_fiber *fiber, void (*call)(void *self), void *self)
{
    rv_assert(!fiber->running);
    fiber->call = call;
    fiber->self = self;
    fiber->running = true;
    fiber->paused = false;
    enter(fiber);
    return !fiber->running;
}

static bool fiber_go_on(struct rv_fiber *fiber)
{
    rv_assert(fiber->running);
    rv_assert(fiber->paused);
    fiber->paused = false;
    enter(fiber);
    return !fiber->running;
}

static void fiber_pause(struct rv_fiber *fiber)
{
    rv_assert(fiber->running);
    rv_assert(!fiber->paused);
    fiber->paused = true;
    leave(fiber);
}

bool rv_fiber_inside(const struct rv_fiber *fiber)
{
    return fiber != NULL && fiber->running && !fiber->paused;
}

bool rv_fiber_paused(const struct rv_fiber *fiber)
{
    return fiber->running && fiber->paused;
}

const struct rv_fiber_ops rv_fibers = {.open = fiber_open,
                                       .close = fiber_close,
                                       .run = fiber_run,
                                       .go_on = fiber_go_on,
                                       .pause = fiber_pause};

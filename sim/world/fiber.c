#include "sim/world/fiber.h"

#include "base/assert.h"

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

enum { STACK_BYTES = 4 * 1024 * 1024, POOL_MAX = 8 };

struct fiber {
    ucontext_t here;
    ucontext_t caller;
    void *stack; /* owned */
    void (*call)(void *self);
    void *self;
    bool running;
    bool paused;
    void *fake_stack; /* the sanitizer's */
    const void *caller_stack;
    size_t caller_bytes;
};

/* Stacks are touched anew by each world; asking the system for them each time would cost more. */
static void *pool[POOL_MAX];
static size_t pool_count;

static void *stack_take(void)
{
    if (pool_count > 0)
        return pool[--pool_count];
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rv_assert(stack != MAP_FAILED);
    return stack;
}

struct fiber *fiber_new(void)
{
    struct fiber *fiber = calloc(1, sizeof *fiber);
    rv_assert(fiber != NULL);
    fiber->stack = stack_take();
    return fiber;
}

void fiber_free(struct fiber *fiber)
{
    if (fiber == NULL)
        return;
    rv_assert(!fiber->running);
    if (pool_count < POOL_MAX)
        pool[pool_count++] = fiber->stack;
    else
        munmap(fiber->stack, STACK_BYTES);
    free(fiber);
}

static void fiber_body(unsigned high, unsigned low)
{
    struct fiber *fiber = (struct fiber *)((uintptr_t)high << 32 | (uintptr_t)low);
    __sanitizer_finish_switch_fiber(NULL, &fiber->caller_stack, &fiber->caller_bytes);
    fiber->call(fiber->self);
    fiber->running = false;
    __sanitizer_start_switch_fiber(NULL, fiber->caller_stack, fiber->caller_bytes);
    setcontext(&fiber->caller);
}

/* Comes back when somebody goes to `from`. (What swapcontext does; but the address sanitizer, which
 * is told of each switch, takes that one for its own and warns of it.) */
static void change_over(ucontext_t *from, const ucontext_t *to)
{
    volatile bool back = false;
    int failed = getcontext(from);
    rv_assert(failed == 0);
    if (back)
        return;
    back = true;
    setcontext(to);
    rv_assert(false);
}

static bool enter(struct fiber *fiber)
{
    void *fake_stack;
    __sanitizer_start_switch_fiber(&fake_stack, fiber->stack, STACK_BYTES);
    change_over(&fiber->caller, &fiber->here);
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
    return !fiber->running;
}

bool fiber_run(struct fiber *fiber, void (*call)(void *self), void *self)
{
    rv_assert(!fiber->running);
    fiber->call = call;
    fiber->self = self;
    fiber->running = true;
    fiber->paused = false;
    int failed = getcontext(&fiber->here);
    rv_assert(failed == 0);
    fiber->here.uc_stack.ss_sp = fiber->stack;
    fiber->here.uc_stack.ss_size = STACK_BYTES;
    fiber->here.uc_link = NULL;
    uintptr_t self_bits = (uintptr_t)fiber;
    makecontext(&fiber->here, (void (*)(void))fiber_body, 2, (unsigned)(self_bits >> 32),
                (unsigned)self_bits);
    return enter(fiber);
}

bool fiber_go_on(struct fiber *fiber)
{
    rv_assert(fiber->running && fiber->paused);
    fiber->paused = false;
    return enter(fiber);
}

void fiber_pause(struct fiber *fiber)
{
    rv_assert(fiber->running && !fiber->paused);
    fiber->paused = true;
    __sanitizer_start_switch_fiber(&fiber->fake_stack, fiber->caller_stack, fiber->caller_bytes);
    change_over(&fiber->here, &fiber->caller);
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &fiber->caller_stack, &fiber->caller_bytes);
}

bool fiber_inside(const struct fiber *fiber)
{
    return fiber != NULL && fiber->running && !fiber->paused;
}

bool fiber_paused(const struct fiber *fiber)
{
    return fiber->running && fiber->paused;
}

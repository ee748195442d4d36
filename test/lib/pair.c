#include "pair.h"

#include "base/os/fiber.h"
#include "sim/store/memory/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum rv_err pair_share(struct world *w, struct rv_store **ret_store)
{
    rv_store_memory_data_share(w->data);
    return rv_store_memory_open(w->data, w->clock, ret_store);
}

const struct rv_store_ops *pair_wrap(struct rv_store *store, struct rv_store_ops *ops)
{
    const struct rv_store_ops *before = store->ops;
    *ops = *before;
    store->ops = ops;
    return before;
}

void pair_store(struct pair *pair, struct world *w)
{
    *pair = (struct pair){.world = w};
    assert_int_equal(rv_store_memory_open(w->data, w->clock, &pair->store), RV_OK);
}

void pair_start(struct pair *pair, struct rv_scheduler_options options)
{
    options.store = pair->store;
    options.pid = 2;
    options.seed = 7;
    options.hash_key = (struct rv_hash_key){1, 2};
    options.fibers = &rv_fibers;
    assert_int_equal(rv_scheduler_open(&options, &pair->scheduler), RV_OK);
}

void pair_close(struct pair *pair)
{
    rv_scheduler_close(pair->scheduler);
    pair->store->ops->close(pair->store);
}

void pair_swap(struct pair *pair)
{
    struct world *w = pair->world;
    struct rv_store *store = w->store;
    struct rv_scheduler *scheduler = w->scheduler;
    w->store = pair->store;
    w->scheduler = pair->scheduler;
    pair->store = store;
    pair->scheduler = scheduler;
}

enum rv_err pair_batch(struct pair *pair, struct rv_call **calls, size_t count)
{
    return rv_scheduler_run_batch(pair->scheduler, calls, count, pair->world->mono);
}

void pair_pass(struct pair *pair, int64_t ms)
{
    struct world *w = pair->world;
    for (int64_t end = w->mono + ms; w->mono < end;) {
        world_pass(w, PAIR_STEP_MS);
        assert_int_equal(pair_batch(pair, NULL, 0), RV_OK);
    }
}

uint8_t pair_number(const struct pair *pair)
{
    return pair_number_of(pair->scheduler);
}

uint8_t pair_number_of(const struct rv_scheduler *scheduler)
{
    return rv_scheduler_enlistment(scheduler)->instance;
}

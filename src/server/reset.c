#include "server/reset.h"

#include "base/os/clock.h"
#include "store/sqlite/sqlite.h"

static int64_t wall_now(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

static enum rv_err clock_reset(const char *path, struct rv_store_sqlite_fault *fault,
                               int64_t *ret_back_ms)
{
    struct rv_store_sqlite_options options = {
        .path = path, .clock = {.now = wall_now}, .there = true};
    struct rv_store *store;
    RV_TRY(rv_store_sqlite_open(&options, &store, fault));
    enum rv_err err = rv_store_sqlite_reset_clock(store, ret_back_ms);
    store->ops->close(store);
    return err;
}

enum rv_err rv_reset_clock(const char *path, int64_t *ret_back_ms, struct rv_buf *ret_why)
{
    struct rv_store_sqlite_fault fault = {.pid = 0};
    enum rv_err err = clock_reset(path, &fault, ret_back_ms);
    if (err != RV_OK)
        rv_buf_printf(ret_why, "%s", fault.message[0] ? fault.message : rv_err_text(err));
    return err;
}

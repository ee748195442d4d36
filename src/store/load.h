/* load.h - around the operation rv_store_load_fn. */
#ifndef RV_STORE_LOAD_H
#define RV_STORE_LOAD_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

#include <stddef.h>

struct rv_key_row;
struct rv_wants;
struct rv_store;

/* All of the load but the keys, by load_tasks, load_steps, list_history and find_workflow. For a
 * store of which nobody sees another state between two such calls. */
RV_CHECK enum rv_err rv_store_load_tasks_whole(struct rv_store *store, struct rv_wants *load);
/* A load of keys alone; `task` 0 where one is free. */
RV_CHECK enum rv_err rv_store_load_keys(struct rv_store *store, struct rv_arena *arena,
                                        const struct rv_str *keys, size_t count,
                                        struct rv_key_row *ret_rows);

#endif

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

/* Names what was asked for in load->tasks, with room for so many beside, and for those that the
 * walk meets. */
RV_CHECK enum rv_err rv_store_load_name(struct rv_wants *load, size_t beside);
/* A piece of the walk has been read: its tasks follow the first *count of load->tasks, if they are
 * loaded as well. */
void rv_store_load_met(struct rv_wants *load, size_t *count);
/* The first `count` of load->tasks, as they are named, with all that the load asks for but the
 * keys and the walk, by load_tasks, load_steps, list_history, find_workflow and list_records. For a
 * store of which nobody sees another state between two such calls. */
RV_CHECK enum rv_err rv_store_load_tasks_whole(struct rv_store *store, struct rv_wants *load,
                                               size_t count);
/* A load of keys alone; `task` 0 where one is free. */
RV_CHECK enum rv_err rv_store_load_keys(struct rv_store *store, struct rv_arena *arena,
                                        const struct rv_str *keys, size_t count,
                                        struct rv_key_row *ret_rows);

#endif

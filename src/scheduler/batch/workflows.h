/* workflows.h - compiled workflows, kept between batches. */
#ifndef RV_SCHEDULER_BATCH_WORKFLOWS_H
#define RV_SCHEDULER_BATCH_WORKFLOWS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/str.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rv_definition;
struct rv_store;
struct rv_workflow_name;

/* A workflow as compiled, kept between batches. */
struct workflow_entry {
    struct rv_workflow_row row;             /* on arena */
    const struct rv_definition *definition; /* NULL: cannot be read any more */
    struct rv_arena arena;
    uint64_t used_in; /* batch that used it last */
    size_t pins;      /* evaluations that run on it */
};

/* Compiled workflows by id. */
struct workflow_cache {
    struct rv_map by_id; /* id -> struct workflow_entry *, owned */
    struct rv_map
        by_name; /* hash of a name -> the id that it means; as of the newest publication */
    struct rv_hash_key hash_key;
    bool shared;            /* others publish, too: names are asked for with the load of a batch */
    struct rv_store *store; /* borrowed, like all that follow */
    struct rv_arena *const *scratch;
    const int64_t *turn; /* of the batches: what was not used for longest goes first */
};

void workflow_cache_init(struct workflow_cache *cache, struct rv_store *store,
                         struct rv_hash_key hash_key, struct rv_arena *const *scratch,
                         const int64_t *turn);
void workflow_cache_done(struct workflow_cache *cache);
/* NULL when there is none; ->definition NULL when it cannot be read. */
RV_CHECK enum rv_err workflow_by_id(struct workflow_cache *cache, int64_t id,
                                    struct workflow_entry **ret_entry);
RV_CHECK enum rv_err workflow_by_name(struct workflow_cache *cache, struct rv_str space,
                                      struct rv_str name, struct rv_str version,
                                      struct workflow_entry **ret_entry);
/* Whether it needs not be asked for. */
bool workflow_name_known(const struct workflow_cache *cache, const struct rv_workflow_name *name);
/* What names mean, as loaded; id 0: nothing. */
RV_CHECK enum rv_err workflow_names_learn(struct workflow_cache *cache,
                                          const struct rv_workflow_name *names, const int64_t *ids,
                                          size_t count);
/* A workflow was published, perhaps: names may mean others. */
void workflow_names_forget(struct workflow_cache *cache);
/* Keeps the cache within its bound; between batches only. */
void workflow_cache_trim(struct workflow_cache *cache);

#endif

/* Transactions that can be taken back though they were committed: each with the log of its writes
 * and the registry as it was before. What is not kept any more is for good. */
#include "sim/store/memory/memory_priv.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    struct undo *log; /* owned */
    size_t count;
    struct registry before;
};

/* The i-th of those that are kept, the oldest first. */
static struct kept *kept_at(const struct rv_store_memory_data *data, size_t i)
{
    return &data->kept[(data->kept_first + i) % data->kept_room];
}

void rv_store_memory_data_keep(struct rv_store_memory_data *data, size_t commits)
{
    rv_assert(data->opened == 0 && data->kept == NULL && commits > 0);
    data->kept = calloc(commits, sizeof *data->kept);
    rv_assert(data->kept != NULL);
    data->kept_room = commits;
}

uint64_t rv_store_memory_data_commits(const struct rv_store_memory_data *data)
{
    return data->commits;
}

size_t rv_store_memory_data_kept(const struct rv_store_memory_data *data)
{
    return data->kept_count;
}

void memory_keep(struct rv_store_memory_data *data, struct undo *log, size_t count,
                 const struct registry *before)
{
    data->commits++;
    if (data->kept_room == 0) {
        memory_log_free(log, count);
        return;
    }
    if (data->kept_count == data->kept_room) {
        struct kept *oldest = kept_at(data, 0);
        memory_log_free(oldest->log, oldest->count);
        data->kept_first = (data->kept_first + 1) % data->kept_room;
        data->kept_count--;
    }
    struct kept *newest = kept_at(data, data->kept_count++);
    newest->log = log;
    newest->count = count;
    newest->before = *before;
}

void memory_kept_free(struct rv_store_memory_data *data)
{
    for (size_t i = 0; i < data->kept_count; i++)
        memory_log_free(kept_at(data, i)->log, kept_at(data, i)->count);
    free(data->kept);
    data->kept = NULL;
    data->kept_count = data->kept_room = data->kept_first = 0;
}

void rv_store_memory_data_lose(struct rv_store_memory_data *data, size_t commits)
{
    rv_assert(commits <= data->kept_count);
    data->commits -= commits;
    data->takeovers++;
    for (; commits > 0; commits--) {
        struct kept *newest = kept_at(data, --data->kept_count);
        memory_undo(data, newest->log, newest->count); /* which frees what was written */
        free(newest->log);
        data->registry = newest->before;
    }
}

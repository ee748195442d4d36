/* Records of the batch that is being made: rows of facts that belong to no single task (selections,
 * keys, limits, ...), committed with the batch's changes. */
#include "scheduler/batch/asked.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/state.h"

#include "base/assert.h"

struct rv_record_change *batch_record(struct rv_scheduler *s)
{
    struct batch *batch = &s->batch;
    if (batch->records_count == batch->records_room) {
        size_t room = 2 * batch->records_room + 4;
        struct rv_record_change *grown = RV_NEW_ARRAY(batch->arena, struct rv_record_change, room);
        if (grown == NULL)
            return NULL;
        if (batch->records_count > 0)
            memcpy(grown, batch->records, batch->records_count * sizeof *grown);
        batch->records = grown;
        batch->records_room = room;
    }
    rv_assert(batch->records_count < batch->records_room);
    return &batch->records[batch->records_count++];
}

enum rv_err record_put(struct rv_scheduler *s, struct rv_record_change made,
                       const struct rv_buf *value)
{
    made.row.at = s->batch.now;
    made.row.key = rv_arena_str(s->batch.arena, made.row.key);
    made.row.value = rv_arena_str(s->batch.arena, rv_buf_str(value));
    if (value->failed != RV_OK || made.row.key.at == NULL || made.row.value.at == NULL)
        return RV_ERR_MEMORY;
    struct rv_record_change *change = batch_record(s);
    if (change == NULL)
        return RV_ERR_MEMORY;
    *change = made;
    return RV_OK;
}

struct rv_record_list *records_name(struct rv_scheduler *s, struct rv_wants *wants,
                                    struct rv_record_list list)
{
    rv_assert(wants->records_count < BATCH_LISTS_MAX);
    wants->records = s->batch.lists;
    wants->records[wants->records_count] = list;
    return &wants->records[wants->records_count++];
}

enum rv_err records_read(struct rv_scheduler *s, struct rv_record_list *list)
{
    struct rv_wants alone = {.arena = s->batch.arena, .records = list, .records_count = 1};
    return s->batch.loaded ? RV_OK : asked_load(s, &alone);
}

#include "scheduler/watch/failures.h"

#include "base/assert.h"
#include "base/time.h"

#include <string.h>

static struct failure_type *failure_find(struct failures *failures, struct rv_str type,
                                         int64_t minute)
{
    struct failure_type *free_row = NULL;
    for (size_t i = 0; i < RV_STATUS_FAILURES_MAX; i++) {
        struct failure_type *row = &failures->types[i];
        if (row->last_at != 0 && rv_str_eq(type, (struct rv_str){row->type, row->type_len}))
            return row;
        bool is_over = row->last_at / RV_MINUTE_MS + FAILURE_MINUTES <= minute;
        if (free_row == NULL && is_over)
            free_row = row;
    }
    if (free_row == NULL)
        return &failures->others;
    *free_row = (struct failure_type){.last_at = 0};
    rv_assert(type.len <= sizeof free_row->type);
    memcpy(free_row->type, type.at, type.len);
    free_row->type_len = type.len;
    return free_row;
}

static void minutes_pass(struct failure_type *row, int64_t minute)
{
    int64_t last = row->last_at / RV_MINUTE_MS;
    for (int64_t m = last + 1; m <= minute && m <= last + FAILURE_MINUTES; m++)
        row->minutes[m % FAILURE_MINUTES] = 0;
}

void failure_note(struct failures *failures, struct rv_str type, int64_t now)
{
    struct rv_str known = type.len > 0 ? type : RV_STR("unknown");
    if (known.len >= FAILURE_TYPE_BYTES)
        known.len = FAILURE_TYPE_BYTES - 1;
    int64_t minute = now / RV_MINUTE_MS;
    struct failure_type *row = failure_find(failures, known, minute);
    minutes_pass(row, minute);
    row->minutes[minute % FAILURE_MINUTES]++;
    row->last_at = now;
}

uint64_t failure_count(struct failure_type *row, int64_t now)
{
    uint64_t count = 0;
    if (row->last_at == 0 || now - row->last_at >= FAILURE_MINUTES * RV_MINUTE_MS)
        return 0;
    minutes_pass(row, now / RV_MINUTE_MS);
    for (size_t i = 0; i < FAILURE_MINUTES; i++)
        count += row->minutes[i];
    return count;
}

/* The rows before that a change brings, compared with what is stored: a store that leaves out what
 * is equal in both rows believes them. */
#include "sim/store/memory/memory_priv.h"

#include "base/assert.h"

static bool text_same(struct rv_str a, struct rv_str b)
{
    return (a.at == NULL) == (b.at == NULL) && rv_str_eq(a, b);
}

static bool open_same(const struct rv_task *a, const struct rv_task *b)
{
    return a->open_count == b->open_count &&
           memcmp(a->open, b->open, a->open_count * sizeof a->open[0]) == 0;
}

static bool field_same(const struct rv_field *field, const void *row, const void *other)
{
    const void *a = (const char *)row + field->offset;
    const void *b = (const char *)other + field->offset;
    switch (field->kind) {
    case RV_FIELD_GIVEN:
        break;
    case RV_FIELD_INT64:
    case RV_FIELD_UINT64:
    case RV_FIELD_COUNT:
    case RV_FIELD_INSTANT:
    case RV_FIELD_TASK_ID:
    case RV_FIELD_OWNER:
        return *(const int64_t *)a == *(const int64_t *)b;
    case RV_FIELD_UINT32:
        return *(const uint32_t *)a == *(const uint32_t *)b;
    case RV_FIELD_UINT8:
        return *(const uint8_t *)a == *(const uint8_t *)b;
    case RV_FIELD_BOOL:
        return *(const bool *)a == *(const bool *)b;
    case RV_FIELD_TEXT:
        return text_same(*(const struct rv_str *)a, *(const struct rv_str *)b);
    case RV_FIELD_WORD:
        return *(const unsigned *)a == *(const unsigned *)b;
    case RV_FIELD_OPEN:
        return open_same(row, other);
    }
    return true;
}

static bool row_same(const struct rv_row_kind *kind, const void *row, const void *other)
{
    for (int i = 0; i < kind->count; i++)
        if (!field_same(&kind->fields[i], row, other))
            return false;
    return true;
}

/* What was read of an unreadable row is not all that is there. */
static bool task_before_true(const struct node *node, const struct rv_change *change)
{
    const struct rv_task *before = change->task_before;
    if (before == NULL || before->unreadable)
        return true;
    return node != NULL && row_same(&rv_row_task, before, node->row);
}

static bool step_before_true(const struct node *node, const struct rv_change *change, size_t i)
{
    const struct rv_step *before = change->steps_before != NULL ? change->steps_before[i] : NULL;
    if (before == NULL || before->unreadable)
        return true;
    const struct sorted_entry *entry = node != NULL ? sorted_find(&node->steps, before->number, 0)
                                                    : NULL;
    return entry != NULL && before->number == change->steps[i]->number && !change->steps_new[i] &&
           row_same(&rv_row_step, before, entry->row);
}

void memory_befores_check(const struct rv_store_memory_data *data, const struct node *node,
                          const struct rv_change *change)
{
    bool right = task_before_true(node, change);
    for (size_t i = 0; right && i < change->steps_count; i++)
        right = step_before_true(node, change, i);
    if (right)
        return;
    rv_assert(data->wrong_before != NULL);
    data->wrong_before(data->wrong_before_self, change->task->id);
}

/* Rows as single blocks: the struct first, then the bytes of its strings, a NUL behind each. */
#include "store/memory/memory_priv.h"

#include <stdlib.h>
#include <string.h>

/* The strings in the order of what they are read with: those of any row, errors, payloads. */
#define SHAPE_OF(row, texts, errors, payloads)                                                     \
    {                                                                                              \
        sizeof(struct row), texts,                                                                 \
        {                                                                                          \
            COUNT(texts) - (errors) - (payloads), COUNT(texts) - (payloads), COUNT(texts)          \
        }                                                                                          \
    }
#define SHAPE(row, texts) SHAPE_OF(row, texts, 0, 0)
#define COUNT(texts) (sizeof(texts) / sizeof(texts)[0])
#define AT(field) offsetof(struct ROW, field)

#define ROW rv_task
static const size_t task_texts[] = {AT(key),     AT(correlation), AT(tags),  AT(reply_url),
                                    AT(trace),   AT(tracestate),  AT(error), AT(input),
                                    AT(context), AT(output)};
#undef ROW
#define ROW rv_step
static const size_t step_texts[] = {
    AT(reference), AT(iteration),     AT(agent),  AT(target), AT(instance), AT(boot),  AT(poll),
    AT(error),     AT(attempt_error), AT(frames), AT(data),   AT(input),    AT(output)};
#undef ROW
#define ROW rv_attempt
static const size_t attempt_texts[] = {AT(instance), AT(error)};
#undef ROW
#define ROW rv_late_reply
static const size_t late_texts[] = {AT(error), AT(output)};
#undef ROW
#define ROW rv_alert
static const size_t alert_texts[] = {AT(acked_by), AT(message), AT(source)};
#undef ROW
#define ROW rv_message
static const size_t message_texts[] = {AT(body)};
#undef ROW
#define ROW rv_history_row
static const size_t history_texts[] = {AT(options), AT(by), AT(reason)};
#undef ROW
#define ROW rv_delivery
static const size_t delivery_texts[] = {AT(destination), AT(url)};
#undef ROW
#define ROW rv_workflow_row
static const size_t workflow_texts[] = {AT(space), AT(name), AT(version), AT(hash), AT(source)};
#undef ROW
#define ROW rv_record
static const size_t record_texts[] = {AT(kind), AT(key), AT(value)};
#undef ROW
#define ROW rv_key_row
static const size_t key_texts[] = {AT(key), AT(body_hash)};
#undef ROW

const struct shape shape_task = SHAPE_OF(rv_task, task_texts, 1, 3);
const struct shape shape_step = SHAPE_OF(rv_step, step_texts, 2, 4);
const struct shape shape_attempt = SHAPE(rv_attempt, attempt_texts);
const struct shape shape_late_reply = SHAPE_OF(rv_late_reply, late_texts, 1, 1);
const struct shape shape_alert = SHAPE(rv_alert, alert_texts);
const struct shape shape_message = SHAPE(rv_message, message_texts);
const struct shape shape_history = SHAPE(rv_history_row, history_texts);
const struct shape shape_delivery = SHAPE(rv_delivery, delivery_texts);
const struct shape shape_workflow = SHAPE(rv_workflow_row, workflow_texts);
const struct shape shape_record = SHAPE(rv_record, record_texts);
const struct shape shape_key = SHAPE(rv_key_row, key_texts);

static struct rv_str *text_in(const struct shape *shape, void *row, size_t i)
{
    return (struct rv_str *)(void *)((char *)row + shape->texts[i]);
}

static size_t texts_bytes(const struct shape *shape, enum rv_columns columns, const void *row)
{
    size_t bytes = 0;
    for (size_t i = 0; i < shape->texts_count[columns]; i++) {
        struct rv_str text;
        memcpy(&text, (const char *)row + shape->texts[i], sizeof text);
        bytes += text.at != NULL ? text.len + 1 : 0;
    }
    return bytes;
}

/* Moves the strings of `row` to `at`, where there is room for all that are read. */
static void texts_move(const struct shape *shape, enum rv_columns columns, void *row, char *at)
{
    for (size_t i = 0; i < shape->texts_count[RV_COLUMNS_ALL]; i++) {
        struct rv_str *text = text_in(shape, row, i);
        if (i >= shape->texts_count[columns])
            *text = RV_STR_NONE;
        if (text->at == NULL)
            continue;
        memcpy(at, text->at, text->len);
        at[text->len] = '\0';
        text->at = at;
        at += text->len + 1;
    }
}

void *shape_copy(const struct shape *shape, const void *row)
{
    char *block = malloc(shape->bytes + texts_bytes(shape, RV_COLUMNS_ALL, row));
    if (block == NULL)
        return NULL;
    memcpy(block, row, shape->bytes);
    texts_move(shape, RV_COLUMNS_ALL, block, block + shape->bytes);
    return block;
}

enum rv_err shape_read_of(const struct shape *shape, enum rv_columns columns,
                          struct rv_arena *arena, const void *row, void *ret_row)
{
    char *at = rv_arena_bytes(arena, texts_bytes(shape, columns, row) + 1);
    if (at == NULL)
        return arena->refused;
    memcpy(ret_row, row, shape->bytes);
    texts_move(shape, columns, ret_row, at);
    return RV_OK;
}

enum rv_err shape_read(const struct shape *shape, struct rv_arena *arena, const void *row,
                       void *ret_row)
{
    return shape_read_of(shape, RV_COLUMNS_ALL, arena, row, ret_row);
}

/* One table of columns for each kind of row is all that statements, binding and reading are made
 * from: a new field is a line here, a column in a migration, and nothing else. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"

#define COLUMNS(array) (array), (int)(sizeof(array) / sizeof(array)[0])

#define GIVEN(name)                                                                                \
    {                                                                                              \
        name, RV_COLUMN_GIVEN, 0, NULL, RV_COLUMNS_PLAIN                                           \
    }
#define INT64(field, name)                                                                         \
    {                                                                                              \
        name, RV_COLUMN_INT64, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN                 \
    }
#define UINT32(field)                                                                              \
    {                                                                                              \
#field, RV_COLUMN_UINT32, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN              \
    }
#define NUMBER(field, name)                                                                        \
    {                                                                                              \
        name, RV_COLUMN_UINT32, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN                \
    }
#define UINT8(field)                                                                               \
    {                                                                                              \
#field, RV_COLUMN_UINT8, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN               \
    }
#define BOOL(field)                                                                                \
    {                                                                                              \
#field, RV_COLUMN_BOOL, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN                \
    }
#define INSTANT(field)                                                                             \
    {                                                                                              \
#field, RV_COLUMN_INSTANT, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN             \
    }
#define STR(field, name)                                                                           \
    {                                                                                              \
        name, RV_COLUMN_STR, offsetof(struct ROW, field), NULL, RV_COLUMNS_PLAIN                   \
    }
#define ENUM(field, name, texts)                                                                   \
    {                                                                                              \
        name, RV_COLUMN_ENUM, offsetof(struct ROW, field), &rv_texts_##texts, RV_COLUMNS_PLAIN     \
    }

#define ERROR(field)                                                                               \
    {                                                                                              \
#field, RV_COLUMN_STR, offsetof(struct ROW, field), NULL, RV_COLUMNS_ERRORS                \
    }
#define PAYLOAD(field)                                                                             \
    {                                                                                              \
#field, RV_COLUMN_STR, offsetof(struct ROW, field), NULL, RV_COLUMNS_ALL                   \
    }

#define ROW rv_task
static const struct rv_column task_columns[] = {
    INT64(id.value, "id"),
    {"revision", RV_COLUMN_COUNT, offsetof(struct ROW, revision), NULL, RV_COLUMNS_PLAIN},
    INT64(workflow, "workflow"),
    ENUM(direction, "direction", direction),
    BOOL(cancelling),
    UINT8(priority),
    UINT8(locked_by),
    UINT32(fence),
    UINT32(last_number),
    UINT32(undo_head),
    UINT32(undo_blocker),
    UINT32(pivot),
    UINT32(last_message),
    BOOL(reply_stream),
    {"open_steps", RV_COLUMN_OPEN, 0, NULL, RV_COLUMNS_PLAIN},
    INSTANT(created_at),
    INSTANT(started_at),
    INSTANT(ended_at),
    INSTANT(quiet_at),
    INSTANT(suspended_at),
    UINT32(redo),
    UINT32(by_hand),
    STR(key, "submission_key"),
    STR(correlation, "correlation_id"),
    STR(tags, "tags"),
    STR(reply_url, "reply_url"),
    STR(trace, "trace"),
    STR(tracestate, "tracestate"),
    PAYLOAD(input),
    PAYLOAD(context),
    PAYLOAD(output),
    ERROR(error),
    ENUM(state, "process_state", task_state),
};
#undef ROW

#define ROW rv_step
static const struct rv_column step_columns[] = {
    GIVEN("task"),
    UINT32(number),
    ENUM(kind, "kind", step_kind),
    ENUM(direction, "direction", direction),
    UINT32(undoes),
    UINT32(replaces),
    UINT32(node),
    UINT32(visit),
    ENUM(effect, "effect", effect),
    UINT32(undo_way),
    UINT32(undo_prev),
    BOOL(chained),
    BOOL(undone),
    UINT32(failure_count),
    UINT32(round),
    UINT32(deaths),
    INSTANT(wake_at),
    INSTANT(ready_at),
    INSTANT(waits_since),
    BOOL(called),
    BOOL(insist),
    BOOL(stale),
    INSTANT(deadline),
    UINT32(attempt),
    ENUM(attempt_state, "attempt_state", attempt_state),
    ENUM(attempt_effect, "attempt_effect", effect),
    INT64(token, "token"),
    UINT32(fence),
    INSTANT(attempt_at),
    INSTANT(attempt_ended_at),
    INSTANT(complete_by),
    INT64(lease_ms, "lease_ms"),
    INSTANT(lease_until),
    INSTANT(created_at),
    STR(reference, "reference"),
    STR(iteration, "iteration"),
    STR(target, "target"),
    STR(instance, "instance"),
    STR(boot, "boot"),
    STR(poll, "poll"),
    PAYLOAD(frames),
    PAYLOAD(data),
    PAYLOAD(input),
    PAYLOAD(output),
    ERROR(error),
    ERROR(attempt_error),
    ENUM(state, "process_state", step_state),
    STR(agent, "agent"),
    INSTANT(ended_at),
};
#undef ROW

#define ROW rv_attempt
static const struct rv_column attempt_columns[] = {
    INT64(step.task.value, "task"),
    NUMBER(step.number, "step"),
    UINT32(number),
    ENUM(effect, "effect", effect),
    INT64(token, "token"),
    UINT32(fence),
    INSTANT(attempt_at),
    INSTANT(complete_by),
    INSTANT(ended_at),
    INSTANT(retry_at),
    UINT32(round),
    STR(instance, "instance"),
    STR(error, "error"),
    ENUM(state, "attempt_state", attempt_state),
};
#undef ROW

#define ROW rv_late_reply
static const struct rv_column late_columns[] = {
    INT64(step.task.value, "task"),
    NUMBER(step.number, "step"),
    UINT32(attempt),
    INSTANT(arrived_at),
    ENUM(reason, "reason", late_reason),
    PAYLOAD(output),
    ERROR(error),
};
#undef ROW

#define ROW rv_alert
static const struct rv_column alert_columns[] = {
    INT64(id, "id"),
    INT64(task.value, "task"),
    UINT32(step),
    ENUM(kind, "kind", alert_kind),
    INSTANT(raised_at),
    INSTANT(acked_at),
    INSTANT(closed_at),
    STR(acked_by, "acked_by"),
    STR(message, "message"),
    STR(source, "source"),
};
#undef ROW

#define ROW rv_message
static const struct rv_column message_columns[] = {
    INT64(task.value, "task"),
    UINT32(number),
    ENUM(kind, "kind", message_kind),
    UINT32(step),
    INSTANT(at),
    STR(body, "body"),
};
#undef ROW

#define ROW rv_history_row
static const struct rv_column history_columns[] = {
    INT64(task.value, "task"),
    UINT32(number),
    ENUM(verb, "verb", operator_verb),
    UINT32(step),
    INSTANT(at),
    STR(options, "options"),
    STR(by, "given_by"),
    STR(reason, "reason"),
    INT64(selection.value, "selection"),
};
#undef ROW

#define ROW rv_delivery
static const struct rv_column delivery_columns[] = {
    INT64(task.value, "task"),
    NUMBER(next, "next"),
    NUMBER(last, "last"),
    UINT32(failures),
    INSTANT(since),
    INSTANT(due_at),
    BOOL(parked),
    STR(destination, "destination"),
    STR(url, "url"),
    BOOL(alert),
};
#undef ROW

#define ROW rv_workflow_row
static const struct rv_column workflow_columns[] = {
    INT64(id, "id"),         INSTANT(published_at), STR(space, "namespace"), STR(name, "name"),
    STR(version, "version"), STR(hash, "hash"),     STR(source, "source"),
};
#undef ROW

#define ROW rv_record
static const struct rv_column record_columns[] = {
    STR(kind, "kind"),
    STR(key, "key"),
    {"written_at", RV_COLUMN_INSTANT, offsetof(struct ROW, at), NULL, RV_COLUMNS_PLAIN},
    STR(value, "value"),
};
#undef ROW

#define UNREADABLE(row) (offsetof(struct row, unreadable))
const struct rv_table rv_table_task = {"task", COLUMNS(task_columns), 1, 1, UNREADABLE(rv_task)};
const struct rv_table rv_table_step = {"step", COLUMNS(step_columns), 2, 2, UNREADABLE(rv_step)};
const struct rv_table rv_table_attempt = {"attempt", COLUMNS(attempt_columns), 3, 0, 0};
const struct rv_table rv_table_late_reply = {"late_reply", COLUMNS(late_columns), 0, 0, 0};
const struct rv_table rv_table_alert = {"alert", COLUMNS(alert_columns), 1, 0, 0};
const struct rv_table rv_table_message = {"message", COLUMNS(message_columns), 2, 0, 0};
const struct rv_table rv_table_history = {"history", COLUMNS(history_columns), 2, 0, 0};
const struct rv_table rv_table_delivery = {"delivery", COLUMNS(delivery_columns), 1, 0, 0};
const struct rv_table rv_table_workflow = {"workflow", COLUMNS(workflow_columns), 1, 0, 0};
const struct rv_table rv_table_record = {"record", COLUMNS(record_columns), 2, 0, 0};

void rv_sqlite_bind_str(sqlite3_stmt *statement, int parameter, struct rv_str text)
{
    if (text.at == NULL)
        sqlite3_bind_null(statement, parameter);
    else
        sqlite3_bind_text64(statement, parameter, text.at, text.len, SQLITE_STATIC, SQLITE_UTF8);
}

/* The connection belongs to one thread, so a value may be looked at without the connection's lock,
 * of which each sqlite3_column_* would ask. */
static struct rv_str value_str(sqlite3_value *value)
{
    if (sqlite3_value_type(value) == SQLITE_NULL)
        return RV_STR_NONE;
    const char *at = sqlite3_value_blob(value);
    int bytes = sqlite3_value_bytes(value);
    return bytes > 0 ? (struct rv_str){at, (size_t)bytes} : RV_STR("");
}

struct rv_str rv_sqlite_column_str(sqlite3_stmt *statement, int column)
{
    return value_str(sqlite3_column_value(statement, column));
}

/* "3 4": numbers in decimal, one space between; no text at all for none. */
static struct rv_str open_text_of(const struct rv_task *task, char text[static RV_OPEN_TEXT_BYTES])
{
    rv_assert(task->open_count <= RV_OPEN_STEPS_MAX);
    char *at = text;
    for (uint32_t i = 0; i < task->open_count; i++) {
        if (i > 0)
            *at++ = ' ';
        char digits[10];
        int n = 0;
        uint32_t rest = task->open[i];
        do {
            digits[n++] = (char)('0' + rest % 10);
            rest /= 10;
        } while (rest > 0);
        while (n > 0)
            *at++ = digits[--n];
    }
    return (struct rv_str){text, (size_t)(at - text)};
}

static bool open_text_read(struct rv_str text, struct rv_task *task)
{
    task->open_count = 0;
    size_t at = 0;
    while (at < text.len) {
        uint64_t number = 0;
        size_t digits = 0;
        for (; at < text.len && text.at[at] >= '0' && text.at[at] <= '9'; at++, digits++)
            number = number * 10 + (uint64_t)(text.at[at] - '0');
        bool last = at == text.len;
        bool spaced = !last && text.at[at] == ' ' && at + 1 < text.len;
        if (digits == 0 || digits > 10 || number > UINT32_MAX || !(last || spaced) ||
            task->open_count == RV_OPEN_STEPS_MAX) {
            task->open_count = 0;
            return false;
        }
        task->open[task->open_count++] = (uint32_t)number;
        at += 1;
    }
    return text.at != NULL;
}

/* Whether the parameter holds that already; else it does from now on. */
static bool bound_same(struct rv_bound *bound, enum rv_bound_kind kind, int64_t value)
{
    bool same = bound->kind == kind && bound->value == value;
    *bound = (struct rv_bound){kind, value};
    return same;
}

static void number_bind(sqlite3_stmt *statement, int parameter, struct rv_bound *bound,
                        int64_t value)
{
    if (!bound_same(bound, RV_BOUND_NUMBER, value))
        sqlite3_bind_int64(statement, parameter, value);
}

static void str_bind(sqlite3_stmt *statement, int parameter, struct rv_bound *bound,
                     struct rv_str text)
{
    if (text.at == NULL && bound_same(bound, RV_BOUND_NULL, 0))
        return;
    if (text.at != NULL)
        bound->kind = RV_BOUND_OTHER;
    rv_sqlite_bind_str(statement, parameter, text);
}

static void column_bind(sqlite3_stmt *statement, int parameter, const struct rv_column *column,
                        struct rv_bound *bound, const void *row,
                        char open_text[static RV_OPEN_TEXT_BYTES])
{
    const void *field = (const char *)row + column->offset;
    switch (column->kind) {
    case RV_COLUMN_GIVEN:
        break;
    case RV_COLUMN_COUNT:
    case RV_COLUMN_INT64:
        number_bind(statement, parameter, bound, *(const int64_t *)field);
        break;
    case RV_COLUMN_UINT32:
        number_bind(statement, parameter, bound, *(const uint32_t *)field);
        break;
    case RV_COLUMN_UINT8:
        number_bind(statement, parameter, bound, *(const uint8_t *)field);
        break;
    case RV_COLUMN_BOOL:
        number_bind(statement, parameter, bound, *(const bool *)field);
        break;
    case RV_COLUMN_INSTANT:
        if (*(const int64_t *)field != 0)
            number_bind(statement, parameter, bound, *(const int64_t *)field);
        else if (!bound_same(bound, RV_BOUND_NULL, 0))
            sqlite3_bind_null(statement, parameter);
        break;
    case RV_COLUMN_STR:
        str_bind(statement, parameter, bound, *(const struct rv_str *)field);
        break;
    case RV_COLUMN_ENUM: {
        unsigned value = *(const unsigned *)field;
        rv_assert(value < column->texts->count);
        if (!bound_same(bound, RV_BOUND_ENUM, value))
            rv_sqlite_bind_str(statement, parameter, column->texts->texts[value]);
        break;
    }
    case RV_COLUMN_OPEN:
        str_bind(statement, parameter, bound, open_text_of(row, open_text));
        break;
    }
}

void rv_sqlite_bind(sqlite3_stmt *statement, const struct rv_table *table, int count,
                    struct rv_bound *bound, const void *row,
                    char open_text[static RV_OPEN_TEXT_BYTES])
{
    rv_assert(count <= RV_COLUMNS_MAX);
    for (int i = 0; i < count; i++)
        column_bind(statement, i + 1, &table->columns[i], &bound[i], row, open_text);
}

/* A value that it cannot have: the first of its table in a row that says so itself. */
static bool enum_read(const struct rv_column *column, struct rv_str text, bool told, unsigned *ret)
{
    *ret = told ? 0 : (unsigned)column->texts->count;
    return rv_texts_find(column->texts, text, ret);
}

/* A whole number within the bounds; else 0. */
static bool int_read(sqlite3_value *value, int64_t min, int64_t max, int64_t *ret_value)
{
    *ret_value = sqlite3_value_int64(value);
    bool good = sqlite3_value_type(value) == SQLITE_INTEGER && *ret_value >= min &&
                *ret_value <= max;
    if (!good)
        *ret_value = 0;
    return good;
}

static enum rv_err str_read(sqlite3_value *value, struct rv_arena *arena, struct rv_str *ret_text)
{
    struct rv_str stored = value_str(value);
    *ret_text = rv_arena_str(arena, stored);
    return stored.at != NULL && ret_text->at == NULL ? arena->refused : RV_OK;
}

/* Any column but a STR; false: it holds no value that it can have. `told`: the row says so. */
static bool value_read(sqlite3_value *stored, const struct rv_column *column, bool told, void *row)
{
    void *field = (char *)row + column->offset;
    int64_t value = 0;
    bool good = true;
    switch (column->kind) {
    case RV_COLUMN_GIVEN:
    case RV_COLUMN_STR:
        break;
    case RV_COLUMN_COUNT:
        good = int_read(stored, 0, INT64_MAX - 1, &value);
        *(int64_t *)field = value;
        break;
    case RV_COLUMN_INT64:
        return int_read(stored, INT64_MIN, INT64_MAX, field);
    case RV_COLUMN_INSTANT:
        *(int64_t *)field = 0;
        return sqlite3_value_type(stored) == SQLITE_NULL ||
               int_read(stored, INT64_MIN, INT64_MAX, field);
    case RV_COLUMN_UINT32:
        good = int_read(stored, 0, UINT32_MAX, &value);
        *(uint32_t *)field = (uint32_t)value;
        break;
    case RV_COLUMN_UINT8:
        good = int_read(stored, 0, UINT8_MAX, &value);
        *(uint8_t *)field = (uint8_t)value;
        break;
    case RV_COLUMN_BOOL:
        good = int_read(stored, 0, 1, &value);
        *(bool *)field = value != 0;
        break;
    case RV_COLUMN_ENUM:
        return enum_read(column, value_str(stored), told, field);
    case RV_COLUMN_OPEN:
        return open_text_read(value_str(stored), row);
    }
    return good;
}

enum rv_err rv_sqlite_read(sqlite3_stmt *statement, const struct rv_table *table,
                           struct rv_arena *arena, void *row)
{
    bool told = table->unreadable != 0;
    for (int i = 0; i < table->count; i++) {
        const struct rv_column *column = &table->columns[i];
        sqlite3_value *value = sqlite3_column_value(statement, i);
        enum rv_err err = RV_OK;
        if (column->kind == RV_COLUMN_STR)
            err = str_read(value, arena, (void *)((char *)row + column->offset));
        else if (!value_read(value, column, told, row) && told)
            *((bool *)((char *)row + table->unreadable)) = true;
        if (err != RV_OK)
            return err;
    }
    return RV_OK;
}

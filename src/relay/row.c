#include "relay/row.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "json/json.h"

#include <stdio.h>

enum { PRIORITY_MAX = RV_PRIORITIES - 1, WORKFLOW_BYTES_MAX = 3 * RV_NAME_BYTES_MAX + 2 };

/* ---- before it is sent ---- */

static void refuse(struct rv_row *row, struct rv_str why)
{
    row->verdict = RV_ROW_REFUSED;
    row->why = why;
}

void rv_row_check_age(struct rv_arena *arena, struct rv_row *row, int64_t now)
{
    bool young = now - row->created_at < RV_ROW_AGE_MS_MAX;
    if (row->verdict != RV_ROW_WAITS || young)
        return;
    row->verdict = RV_ROW_OLD;
    row->why = rv_arena_printf(
        arena,
        RV_ROW_OLD_WHY
        " the row is more than %lld days old, and a server may delete idempotency keys after 30 "
        "days. Find out whether a task was started for the row: `reeve tasks --key KEY` shows it "
        "until it is deleted after --retain. If one was started, delete the row; otherwise set "
        "created_at to now and error to NULL",
        (long long)((now - row->created_at) / RV_DAY_MS));
}

/* A text that is longer than any server takes is not even put into a call. */
static bool text_check(struct rv_arena *arena, struct rv_row *row, const char *name,
                       struct rv_str text, size_t bytes_max)
{
    if (text.len <= bytes_max)
        return true;
    refuse(row, rv_arena_printf(arena, "%s is longer than %zu bytes", name, bytes_max));
    return false;
}

/* What is no UTF-8 is written with another character in its place; two keys must not become one. */
static bool key_check(struct rv_arena *arena, struct rv_row *row)
{
    struct rv_buf text;
    struct rv_json value;
    struct rv_arena_mark mark = rv_arena_mark(arena);
    rv_buf_init(&text, 8 * RV_KEY_BYTES_MAX);
    rv_json_write_string(&text, row->item.key);
    bool same = rv_json_parse(arena, rv_buf_str(&text), 1, &value, NULL) == RV_OK &&
                rv_str_eq(rv_json_str(&value), row->item.key);
    rv_buf_done(&text);
    rv_arena_release(arena, mark);
    if (!same)
        refuse(row, RV_STR("key is not valid UTF-8"));
    return same;
}

/* Strictly, as the server reads it: one bad input would have a whole call refused. */
static bool input_check(struct rv_arena *arena, struct rv_row *row)
{
    struct rv_json value;
    struct rv_json_fault fault = {.line = 0};
    struct rv_arena_mark mark = rv_arena_mark(arena);
    enum rv_err err = rv_json_parse(arena, row->item.input, RV_JSON_DEPTH_MAX, &value, &fault);
    rv_arena_release(arena, mark);
    if (err == RV_OK)
        return true;
    if (err == RV_ERR_MEMORY)
        return false; /* it waits, and is looked at again */
    refuse(row, rv_arena_printf(arena, "input:%u:%u: %s; correct this JSON, then set error to NULL",
                                fault.line, fault.column, fault.message));
    return false;
}

void rv_row_check(struct rv_arena *arena, struct rv_row *row, int64_t now)
{
    const struct rv_submit_item *item = &row->item;
    if (row->verdict != RV_ROW_WAITS)
        return;
    if (item->key.len == 0)
        refuse(row, RV_STR("key is empty; without a key, one row could start two tasks. Set key to "
                           "a unique value, such as the order number, then set error to NULL. If "
                           "an INSERT omits the column key, the table generates a key"));
    else if (item->workflow.len == 0)
        refuse(row,
               RV_STR("workflow is empty; it must be NAMESPACE/NAME or NAMESPACE/NAME:VERSION"));
    else if (item->priority > PRIORITY_MAX)
        refuse(row, RV_STR("priority must be a whole number from 0 to 9"));
    else if (text_check(arena, row, "key", item->key, RV_KEY_BYTES_MAX) &&
             text_check(arena, row, "workflow", item->workflow, WORKFLOW_BYTES_MAX) &&
             text_check(arena, row, "correlation_id", item->correlation_id, RV_KEY_BYTES_MAX) &&
             text_check(arena, row, "input", item->input, RV_PAYLOAD_BYTES_MAX) &&
             key_check(arena, row) && input_check(arena, row))
        rv_row_check_age(arena, row, now);
}

/* ---- on the way ---- */

enum rv_err rv_rows_write(struct rv_buf *body, struct rv_row *rows, size_t count, size_t most,
                          size_t *ret_indexes, size_t *ret_count)
{
    size_t written = 0;
    rv_buf_reset(body);
    rv_buf_lit(body, "{\"tasks\":[");
    for (size_t i = 0; i < count && written < most; i++) {
        if (rows[i].verdict != RV_ROW_WAITS)
            continue;
        const char *why = NULL;
        size_t before = body->len;
        if (written > 0)
            rv_buf_lit(body, ",");
        struct rv_submit_item item = rows[i].item;
        enum rv_err err = rv_submit_write(body, &item, &why);
        if (err == RV_ERR_INVALID) {
            refuse(&rows[i], rv_str_of(why));
            body->len = before;
            continue;
        }
        if (err != RV_OK)
            return err;
        ret_indexes[written++] = i;
    }
    rv_buf_lit(body, "]}");
    *ret_count = written;
    return body->failed;
}

/* ---- the answer ---- */

static void refused_note(struct rv_arena *arena, struct rv_row *row, int status, struct rv_str why)
{
    rv_assert(status >= 300);
    refuse(row,
           rv_arena_printf(arena, "%d: %.*s; %scorrect the row, then set error to NULL", status,
                           RV_STR_FMT(why), status == 404 ? "publish the workflow, or " : ""));
}

/* Statuses that say nothing about the row: it may be taken the next time. */
static bool status_passes(int status)
{
    return status >= 500 || status == 408 || status == 425 || status == 429;
}

/* 410: the same body under the same key was a task, which has ended and was deleted since. */
static void receipt_take(struct rv_arena *arena, struct rv_row *row,
                         const struct rv_submit_receipt *receipt)
{
    if (receipt->status == 200 || receipt->status == 410)
        row->verdict = RV_ROW_KNOWN;
    else if (receipt->status < 300)
        row->verdict = RV_ROW_ACCEPTED;
    else if (!status_passes(receipt->status))
        refused_note(arena, row, receipt->status, receipt->why);
}

enum rv_rows_answer rv_rows_read(struct rv_arena *arena, struct rv_arena *scratch,
                                 struct rv_row *rows, const size_t *indexes, size_t count,
                                 int status, struct rv_str body)
{
    if (status == 401 || status == 403)
        return RV_ROWS_DENIED;
    if (status_passes(status))
        return RV_ROWS_LATER;
    if (status < 200 || (status >= 300 && status < 400) || status == 404 || status == 405)
        return RV_ROWS_STRANGE;
    rv_assert(count > 0);
    if (status >= 400 && count > 1)
        return RV_ROWS_HALVE;
    if (status >= 400) {
        struct rv_str why = rv_submit_problem(scratch, body);
        refused_note(arena, &rows[indexes[0]], status, why);
        return RV_ROWS_READ;
    }
    struct rv_submit_receipt *receipts = RV_NEW_ARRAY(scratch, struct rv_submit_receipt, count);
    if (receipts == NULL)
        return RV_ROWS_LATER;
    enum rv_err err = rv_submit_read_batch(scratch, body, count, receipts);
    if (err != RV_OK)
        return err == RV_ERR_MEMORY ? RV_ROWS_LATER : RV_ROWS_STRANGE;
    for (size_t i = 0; i < count; i++)
        receipt_take(arena, &rows[indexes[i]], &receipts[i]);
    return RV_ROWS_READ;
}

/* ---- the alert ---- */

enum { SOURCE_BYTES = RV_ALERT_SOURCE_BYTES_MAX + 1, DATABASE_BYTES_MAX = 512 };

enum rv_err rv_row_alert_write(struct rv_buf *body, const struct rv_row *row,
                               struct rv_str database)
{
    char source[SOURCE_BYTES], message[RV_ALERT_MESSAGE_BYTES_MAX + 1];
    rv_assert(row->verdict == RV_ROW_OLD);
    if (database.len > DATABASE_BYTES_MAX)
        database.len = DATABASE_BYTES_MAX;
    snprintf(source, sizeof source, "outbox/%lld/%.*s", (long long)row->id,
             RV_STR_FMT(row->item.key));
    snprintf(message, sizeof message, "row %lld of %.*s, key %.*s: %.*s", (long long)row->id,
             RV_STR_FMT(database), RV_STR_FMT(row->item.key), RV_STR_FMT(row->why));
    rv_buf_reset(body);
    rv_buf_lit(body, "{\"source\":");
    rv_json_write_string(body, rv_str_of(source));
    rv_buf_lit(body, ",\"message\":");
    rv_json_write_string(body, rv_str_of(message));
    rv_buf_lit(body, "}");
    return body->failed;
}

enum rv_rows_answer rv_row_alert_read(int status, enum rv_err *ret_err)
{
    *ret_err = RV_OK;
    if (status == 200 || status == 201)
        return RV_ROWS_READ;
    if (status == 401 || status == 403)
        return RV_ROWS_DENIED;
    if (status_passes(status))
        return RV_ROWS_LATER;
    if (status < 400 || status == 404 || status == 405)
        return RV_ROWS_STRANGE;
    *ret_err = RV_ERR_REFUSED;
    return RV_ROWS_READ;
}

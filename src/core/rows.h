/* rows.h - the rows of the state store as values: task, step, attempt, alert and the others. */
#ifndef RV_CORE_ROWS_H
#define RV_CORE_ROWS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "core/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RV_OPEN_STEPS_MAX = 16 };

/* The structs, from core/tbl/row.def, which says what each member is: rv_task, rv_step, rv_attempt,
 * rv_late_reply, rv_alert, rv_record, rv_message, rv_history_row, rv_delivery, rv_workflow_row,
 * rv_key_row. Instants are milliseconds on the store's clock, 0 "none". Payloads are JSON bytes,
 * kept as they came. Every string is borrowed from the arena on which the row was loaded or
 * decided. */
#define RV_MEMBER_INT64(member) int64_t member;
#define RV_MEMBER_UINT64(member) uint64_t member;
#define RV_MEMBER_COUNT(member) int64_t member;
#define RV_MEMBER_UINT32(member) uint32_t member;
#define RV_MEMBER_UINT8(member) uint8_t member;
#define RV_MEMBER_BOOL(member) bool member;
#define RV_MEMBER_INSTANT(member) int64_t member;
#define RV_MEMBER_TASK_ID(member) struct rv_task_id member;
#define RV_MEMBER_OWNER(member) struct rv_task_id member;
#define RV_MEMBER_OPEN(member)                                                                     \
    uint32_t member##_count;                                                                       \
    uint32_t member[RV_OPEN_STEPS_MAX];

#define RV_ROW(name, table, keys) struct ROW {
#define RV_ROW_END                                                                                 \
    }                                                                                              \
    ;
#define RV_FIELD_AS(kind, member, column) RV_MEMBER_##kind(member)
#define RV_TEXT_AS(level, member, column) struct rv_str member;
#define RV_WORD(type, member, column) enum rv_##type member;
#define RV_STEP_ID(member) struct rv_step_id member;
#define RV_UNREADABLE(member) bool member;
#include "core/tbl/row.def"

#undef RV_MEMBER_INT64
#undef RV_MEMBER_UINT64
#undef RV_MEMBER_COUNT
#undef RV_MEMBER_UINT32
#undef RV_MEMBER_UINT8
#undef RV_MEMBER_BOOL
#undef RV_MEMBER_INSTANT
#undef RV_MEMBER_TASK_ID
#undef RV_MEMBER_OWNER
#undef RV_MEMBER_OPEN

/* ---- rows as data ---- */

/* What a call reads of the rows of tasks, steps and late replies. What it leaves out is absent in
 * the row, whatever is stored: such a row is shown, and never decided upon or written. What is left
 * out is not read from the disk either. */
enum rv_columns {
    RV_COLUMNS_PLAIN,  /* no payload, no error */
    RV_COLUMNS_ERRORS, /* the errors too; but no input, context, output, data or frames */
    RV_COLUMNS_ALL
};

enum rv_field_kind {
    RV_FIELD_GIVEN, /* not in the row's struct */
    RV_FIELD_INT64,
    RV_FIELD_UINT64,
    RV_FIELD_COUNT, /* int64_t from 0 on, which can be raised */
    RV_FIELD_UINT32,
    RV_FIELD_UINT8,
    RV_FIELD_BOOL,
    RV_FIELD_INSTANT, /* int64_t; 0: none; never beyond RV_INSTANT_FAR */
    RV_FIELD_TASK_ID, /* struct rv_task_id */
    RV_FIELD_OWNER,   /* the same: of the task under which the row is kept */
    RV_FIELD_TEXT,    /* struct rv_str; absent is not empty */
    RV_FIELD_WORD,    /* an enum */
    RV_FIELD_OPEN     /* rv_task.open with open_count */
};

struct rv_field {
    const char *column;
    const struct rv_texts *texts; /* WORD */
    enum rv_field_kind kind;
    enum rv_columns least; /* with which it is read */
    size_t offset;
};

struct rv_row_text {
    size_t offset;
    enum rv_columns least;
};

/* One kind of row. */
struct rv_row_kind {
    const char *table;
    size_t bytes; /* of the struct */
    const struct rv_field *fields;
    int count;
    int keys;                        /* so many of the fields, from the first on, are its key */
    const struct rv_row_text *texts; /* the TEXT fields alone, for copies */
    size_t texts_count;
    size_t unreadable; /* offset of the flag that a value was none; 0: the rows have no such flag */
};

extern const struct rv_row_kind rv_row_task, rv_row_step, rv_row_attempt, rv_row_late_reply,
    rv_row_alert, rv_row_record, rv_row_message, rv_row_history, rv_row_delivery, rv_row_workflow,
    rv_row_key;

/* What the texts of `from` take as a copy, each with a NUL behind it. */
size_t rv_row_text_bytes(const struct rv_row_kind *kind, enum rv_columns columns, const void *from);
/* Copies `from` with these columns; its texts to `at`, where there is room for them. */
void rv_row_copy_to(const struct rv_row_kind *kind, enum rv_columns columns, const void *from,
                    void *ret_row, char *at);
/* Copies `from` with these columns; its texts to the arena. LIMIT or MEMORY: nothing is copied. */
RV_CHECK enum rv_err rv_row_read(const struct rv_row_kind *kind, enum rv_columns columns,
                                 struct rv_arena *arena, const void *from, void *ret_row);
/* All of the copy stands on the arena. NULL: that has no room. */
void *rv_row_copy(const struct rv_row_kind *kind, enum rv_columns columns, struct rv_arena *arena,
                  const void *from);

#endif

/* row.h - a row of an outbox on its way to be a task, and what becomes of it; pure. */
#ifndef RV_RELAY_ROW_H
#define RV_RELAY_ROW_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "client/submit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How `why` of an OLD one begins: in the table it tells them from those that are REFUSED. */
#define RV_ROW_OLD_WHY "too old to be sent:"

enum rv_row_verdict {
    RV_ROW_WAITS,    /* nobody has decided yet */
    RV_ROW_ACCEPTED, /* it is a task now */
    RV_ROW_KNOWN,    /* it was one already */
    RV_ROW_REFUSED,  /* it will never be one as it is; `why` */
    RV_ROW_OLD       /* the server may have forgotten its key: it is not sent; `why` */
};

struct rv_row {
    int64_t id;
    struct rv_submit_item item; /* texts on the batch's arena */
    int64_t created_at;         /* milliseconds since 1970 */
    enum rv_row_verdict verdict;
    struct rv_str why;
};

/* A server keeps keys for 30 days at least (RULES 1). A row may have been sent by
 * another run that was killed before it could say so; as long as its key is known that does no
 * harm. An hour is left for the way and for clocks that differ. */
#define RV_ROW_AGE_MS_MAX (INT64_C(30) * 24 * 3600000 - 3600000)

/* Looks at a row that WAITS, and refuses what no server would take, or what would be taken for
 * something else. `now` is the wall's clock. */
void rv_row_check(struct rv_arena *arena, struct rv_row *row, int64_t now);
/* Its age alone, for rows that have been waiting. */
void rv_row_check_age(struct rv_arena *arena, struct rv_row *row, int64_t now);

/* Writes the body of one call with the first `most` rows that WAIT, and their indexes. MEMORY. */
RV_CHECK enum rv_err rv_rows_write(struct rv_buf *body, struct rv_row *rows, size_t count,
                                   size_t most, size_t *ret_indexes, size_t *ret_count);

/* What the answer to such a call means. */
enum rv_rows_answer {
    RV_ROWS_READ,   /* rows got their verdicts; those that got none are to be sent again */
    RV_ROWS_HALVE,  /* refused as a whole, because of one of them at least */
    RV_ROWS_LATER,  /* the server cannot take them now */
    RV_ROWS_DENIED, /* the server does not let us in */
    RV_ROWS_STRANGE /* that is no answer of a Reeve server */
};
/* Reasons are put on `arena`, all else on `scratch`. */
enum rv_rows_answer rv_rows_read(struct rv_arena *arena, struct rv_arena *scratch,
                                 struct rv_row *rows, const size_t *indexes, size_t count,
                                 int status, struct rv_str body);

/* Writes the body of a call that raises an alert about a row that is OLD: one for the row, however
 * often it is made. MEMORY. */
RV_CHECK enum rv_err rv_row_alert_write(struct rv_buf *body, const struct rv_row *row,
                                        struct rv_str database);
/* What the answer to that means: READ, the operator is called, or never will be (REFUSED in
 * *ret_err). */
enum rv_rows_answer rv_row_alert_read(int status, enum rv_err *ret_err);

#endif

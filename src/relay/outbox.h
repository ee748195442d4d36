/* outbox.h - the table reeve_outbox in the application's SQLite database.
 *
 * The application writes a row in the transaction that writes its own data; the relay reads rows
 * and, once the server has them, deletes them. The relay is a guest in that database: it reads in
 * short transactions, writes in short ones, and never moves the write-ahead log into the database
 * (two connections that do it at once can damage it). */
#ifndef RV_RELAY_OUTBOX_H
#define RV_RELAY_OUTBOX_H

#include "base/err.h"
#include "relay/relay.h"
#include "relay/row.h"

struct rv_outbox;

/* The statements that make the table; those who have migrations put it there. */
const char *rv_outbox_sql(void);

/* NOT_FOUND: no such file; CORRUPT: no database; INVALID: no table, or another one of its name;
 * BUSY: locked; IO. The reason and the cure are told. */
RV_CHECK enum rv_err rv_outbox_open(const char *path, struct rv_outbox **ret_outbox,
                                    struct rv_relay_fault *fault);
/* Makes file and table as far as they are not there. */
RV_CHECK enum rv_err rv_outbox_make(const char *path, bool *ret_new_file,
                                    struct rv_relay_fault *fault);
void rv_outbox_close(struct rv_outbox *outbox);

/* Rows that wait, with `from` <= id <= `until`, in order of id: up to `limit`, and not many more
 * bytes than `bytes`. Rows with values that make no sense are REFUSED already. */
RV_CHECK enum rv_err rv_outbox_read(struct rv_outbox *outbox, struct rv_arena *arena, int64_t from,
                                    int64_t until, size_t limit, size_t bytes,
                                    struct rv_row *ret_rows, size_t *ret_count,
                                    struct rv_relay_fault *fault);
/* The highest id there is, 0 for none. */
RV_CHECK enum rv_err rv_outbox_last(struct rv_outbox *outbox, int64_t *ret_id,
                                    struct rv_relay_fault *fault);
/* How many rows there are that were given up and not released since, and how many of them because
 * they are too old. */
RV_CHECK enum rv_err rv_outbox_marked(struct rv_outbox *outbox, uint64_t *ret_old,
                                      uint64_t *ret_all, struct rv_relay_fault *fault);
/* Deletes those that are tasks and marks those that are not to be, in one transaction. What is to
 * be deleted but has another key than when it was read is another row, and stays. */
RV_CHECK enum rv_err rv_outbox_settle(struct rv_outbox *outbox, const struct rv_row *rows,
                                      size_t count, struct rv_relay_fault *fault);
/* Whether others have changed the database since the last call. */
RV_CHECK enum rv_err rv_outbox_changed(struct rv_outbox *outbox, bool *ret_changed,
                                       struct rv_relay_fault *fault);
/* Whether the file has another name now, or none: somebody has put another in its place. */
bool rv_outbox_moved(struct rv_outbox *outbox);

#endif

/* sqlite_priv.h - what the files of the SQLite store share: store, statements, columns. */
#ifndef RV_STORE_SQLITE_SQLITE_PRIV_H
#define RV_STORE_SQLITE_SQLITE_PRIV_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slew.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#include <sqlite3.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RV_SQLITE_PAGE_BYTES 4096
/* Where the header of the first page has numbers that SQLite leaves to us (application_id and
 * user_version). */
enum { RV_HEADER_USER = 60, RV_HEADER_APPLICATION = 68 };

/* ---- seal.c: pages that tell whether they are what was written ---- */

struct rv_seal;
/* A VFS over the one of that name (NULL: SQLite's own), known to SQLite until it is freed. NULL: no
 * memory, or no such VFS. */
struct rv_seal *rv_seal_new(const char *vfs);
void rv_seal_free(struct rv_seal *seal);
const char *rv_seal_name(const struct rv_seal *seal);
/* A database that is still empty is to have sealed pages. An SQLite code. */
int rv_seal_ask_for(sqlite3 *db);
bool rv_seal_there(sqlite3 *db);
/* Tells of every page of the file that is not what was written. An SQLite code: the file could not
 * be read. */
int rv_seal_check(sqlite3 *db, void (*found)(void *self, int64_t page), void *self);
/* `overwrites` is told before a page of the database is written, the first being 0. */
void rv_seal_watch(struct rv_seal *seal, void (*overwrites)(void *self, int64_t page), void *self);
/* The transaction under way has ended without a commit: what could not be written of it is missed
 * by nobody. */
void rv_seal_undone(struct rv_seal *seal);
/* Whether the first `frames` of the log still have the pages that were written or recovered. */
bool rv_seal_log_whole(const struct rv_seal *seal, uint32_t frames);
/* Whether a page that was read past SQLite is what was written; and what makes it so. */
bool rv_seal_whole(const unsigned char *page, int64_t number);
void rv_seal_set(unsigned char *page, int64_t number);

enum rv_seal_changed { RV_SEAL_UNCHANGED, RV_SEAL_FILE_CHANGED, RV_SEAL_LOG_CHANGED };
/* Whether the open files still have, at their beginning and where they were written last, what this
 * process wrote, and their length: a few system calls. */
enum rv_seal_changed rv_seal_look(const struct rv_seal *seal);
/* The 32 bytes with which the log begins; NULL: not known. */
const unsigned char *rv_seal_log_head(const struct rv_seal *seal);

/* ---- copy.c: the file as it was, read while it changes ---- */

struct reading;

struct rv_copier {
    int fd; /* owned: of the database, for reading past SQLite; -1: there are no copies. Closing it
             * would drop SQLite's locks, so it is closed last */
    struct reading *reading; /* owned: the newest copy, perhaps closed; NULL: none */
};

void rv_copier_init(struct rv_copier *copier);
void rv_copier_done(struct rv_copier *copier);
/* For rv_seal_watch. */
void rv_copier_overwrites(void *copier, int64_t page);
/* The number of the application of a copy in which no server has worked yet. */
enum { RV_COPY_MARK = 0x52766370 };
/* Makes the first page of a store that of a copy, which needs no log. */
void rv_copy_mark(unsigned char page[static RV_SQLITE_PAGE_BYTES]);

/* ---- place.c: whether the names of the files still lead to them ---- */

enum rv_place_wrong {
    RV_PLACE_RIGHT,
    RV_PLACE_DELETED, /* the file has no name any more */
    RV_PLACE_MOVED,   /* its name leads nowhere, or to another file */
    RV_PLACE_LOG,     /* the name of its log does */
    RV_PLACE_LOCK,    /* the name of its lock file does */
    /* Somebody has written to it: nothing is added, so that what is whole stays so. */
    RV_PLACE_FILE_CHANGED,
    RV_PLACE_LOG_CHANGED,
    RV_PLACE_WRONGS = RV_PLACE_LOG_CHANGED
};

struct rv_place {
    char *given; /* owned, as all texts: the path that the next start gets; NULL: not the system's
                    files */
    char *log;
    char *lock;
    char *scratch; /* in the folder */
    char *saved;   /* in the folder */
    char *why[RV_PLACE_WRONGS];
    int folder_fd;
    dev_t log_dev;
    ino_t log_ino;
    bool roomy;                  /* the disk was not full since the start */
    enum rv_place_wrong changed; /* nothing is written any more: CHANGED, or saved elsewhere */
};

/* Once the log is there, with the true name of the file. IO, MEMORY; to be ended in every case. */
RV_CHECK enum rv_err rv_place_begin(struct rv_place *place, const char *given, const char *name);
void rv_place_done(struct rv_place *place);
/* An empty file beside the store, or where that cannot be, elsewhere; without a name, so that
 * nothing is left of it, however this process ends. -1: errno tells why. */
int rv_place_scratch(const struct rv_place *place);
/* The same, not beside the store. */
int rv_place_elsewhere(void);
struct rv_sqlite;
bool rv_place_is_right(struct rv_sqlite *store);
/* Whether the next start finds in the lock file what is noted there. */
bool rv_place_has_lock(struct rv_sqlite *store);
/* Whether somebody else has written to a file: before anything is built on it. */
bool rv_place_changed(struct rv_sqlite *store);

/* Why no more bytes fit; NULL: this errno is another error. */
const char *rv_place_full_text(int number);

/* ---- rescue.c: a copy of what is left ---- */

/* The newest copy that was left beside the store; false: there is none. */
bool rv_rescue_newest(const char *path, char ret_file[static PATH_MAX]);

/* FULL, IO, MEMORY, CORRUPT; with why. */
RV_CHECK enum rv_err rv_rescue(struct rv_sqlite *store,
                               const struct rv_store_sqlite_progress *progress,
                               struct rv_store_sqlite_saved *saved);

/* ---- log.c: what a process that died has left ---- */

/* How far a log has come. SQLite begins it anew when all of it is in the file: then `begun` and the
 * first of the salts grow by one. */
struct rv_log_state {
    uint32_t begun;
    uint32_t salts[2];
    uint32_t frames; /* up to the newest batch; 0: nothing is known, or needed */
};

/* From the 32 bytes of its header. */
void rv_log_state_read(const unsigned char *header, struct rv_log_state *ret_state);
/* Whether a log that was found has all that one had of which `least` was noted. */
bool rv_log_has(const struct rv_log_state *found, const struct rv_log_state *least);
/* Before anything is written: how far the log is whole; zeros: it has no header. An SQLite code. */
int rv_log_find(sqlite3 *db, struct rv_log_state *ret_found);
/* The page that a frame holds, the first frame being 0, and of a batch's last frame how many pages
 * the file has with it; NULL: not wanted. An SQLite code. */
int rv_log_page(sqlite3 *db, int frame, uint32_t *ret_number, uint32_t *ret_pages,
                unsigned char *ret_page);
/* Before anything is written: makes what SQLite has recovered durable. An SQLite code; IOERR_DATA:
 * acknowledged batches were lost. */
int rv_log_secure(sqlite3 *db);

/* ---- texts.c: the words of core/tbl in SQL ---- */

/* Writes SQL with {column task_state}, {column effect}, ... replaced by a term that says "the
 * column holds one of their texts"; `open`: the open states of tasks, `rare`: those with few. */
void rv_sqlite_expand(struct rv_buf *sql, const char *template);

/* ---- columns.c: rows as values and as columns ---- */

/* A UINT64 is stored as an integer of the same bits, an INSTANT of 0 and an absent TEXT as NULL, an
 * empty TEXT as '', a WORD as its text, so that an operator can read it, an OPEN as "3 4". */

/* What a parameter holds from the row before: SQLite keeps it, and most of a row is as in the one
 * before, so that alone what differs is bound. */
enum rv_bound_kind {
    RV_BOUND_OTHER, /* nothing yet, or a text, whose memory is gone */
    RV_BOUND_NULL,
    RV_BOUND_APART, /* the mark of a text that stands apart */
    RV_BOUND_NUMBER,
    RV_BOUND_ENUM
};

struct rv_bound {
    enum rv_bound_kind kind;
    int64_t value; /* of a NUMBER or an ENUM */
};

enum { RV_OPEN_TEXT_BYTES = RV_OPEN_STEPS_MAX * 11, RV_COLUMNS_MAX = 64 };
struct rv_sqlite;
/* Binds a row's columns to the parameters from 1 on, which nobody else binds, except those of GIVEN
 * columns; `bound` are theirs. The row and its strings must live until the statement has run. Texts
 * that stand apart are written by rv_apart_write. */
void rv_sqlite_bind(struct rv_sqlite *store, sqlite3_stmt *statement,
                    const struct rv_row_kind *kind, struct rv_bound *bound, const void *row);
/* Reads a row whose columns are in the order of its kind (NULL: left out), zeroed before. A value
 * that no row can have does what store.h says. */
RV_CHECK enum rv_err rv_sqlite_read(struct rv_sqlite *store, sqlite3_stmt *statement,
                                    const struct rv_row_kind *kind, struct rv_arena *arena,
                                    void *row);

/* ---- apart.c: long texts apart from their rows ---- */

/* From this length on: half a page. Measured: shorter ones cost a task more processor time apart
 * than in its rows. A later version may lower it, but not raise it. */
enum { RV_APART_BYTES = 2000 };
/* Whether the column's texts stand apart where they are long: payloads and errors of the rows that
 * can be unreadable, tasks and steps. */
static inline bool rv_apart_may(const struct rv_row_kind *kind, const struct rv_field *field)
{
    return kind->unreadable != 0 && field->kind == RV_FIELD_TEXT && field->least > RV_COLUMNS_PLAIN;
}
/* Whether this one does, from `bytes` on. */
static inline bool rv_apart_is(size_t bytes, const struct rv_row_kind *kind,
                               const struct rv_field *field, struct rv_str text)
{
    return text.len >= bytes && rv_apart_may(kind, field);
}
/* A text of the task (number 0) or of a step; absent: there is none. */
RV_CHECK enum rv_err rv_apart_read(struct rv_sqlite *store, struct rv_step_id row, const char *name,
                                   struct rv_arena *arena, struct rv_str *ret_text);
/* Of a row that is written by now: puts those of its texts that stand apart, but for those that
 * `before` has, too, and removes those that did. NULL: not known, or there was none: `insert`. */
RV_CHECK enum rv_err rv_apart_write(struct rv_sqlite *store, const struct rv_row_kind *kind,
                                    struct rv_step_id id, const void *row, const void *before,
                                    bool insert);
RV_CHECK enum rv_err rv_apart_remove(struct rv_sqlite *store, struct rv_step_id row,
                                     const char *name);
/* rv_task_error of a row of `task`. */
#define RV_SQL_TASK_ERROR_TEXT                                                                     \
    "(CASE typeof(ifnull(undo_error, error)) WHEN 'blob' THEN (SELECT text FROM payload WHERE "    \
    "payload.task = task.id AND payload.step = 0 AND payload.name = CASE WHEN undo_error IS NULL " \
    "THEN 'error' ELSE 'undo_error' END) ELSE ifnull(undo_error, error) END)"

/* ---- statements.c: every statement, prepared at first use and kept ---- */

enum rv_sqlite_sql {
    RV_SQL_BEGIN,
    RV_SQL_COMMIT,
    RV_SQL_ROLLBACK,
    RV_SQL_TASK_GUARD,
    RV_SQL_TASK_INSERT,
    /* These with the revision before as one parameter more. */
    RV_SQL_TASK_UPDATE,  /* all columns but workflow and process_state, which are so already:
                            touches no index */
    RV_SQL_TASK_MOVE,    /* all columns but workflow, which is so already */
    RV_SQL_TASK_REPLACE, /* all columns */
    RV_SQL_TASK_KEEP,    /* of an unreadable task, what may be written */
    RV_SQL_TASK_LOAD,
    RV_SQL_TASK_GATHER,
    RV_SQL_TASK_OPEN,
    RV_SQL_TASK_OPEN_COUNT,
    RV_SQL_STEP_INSERT,
    RV_SQL_STEP_UPDATE, /* all columns but agent and ended_at, which are so already */
    RV_SQL_STEP_MOVE,   /* all columns */
    RV_SQL_STEP_LOAD,
    RV_SQL_STEP_GATHER,
    RV_SQL_STEP_LIST,
    RV_SQL_PAYLOAD_LOAD,
    RV_SQL_PAYLOAD_PUT,
    RV_SQL_PAYLOAD_KEEP, /* unless it is there */
    RV_SQL_PAYLOAD_REMOVE,
    RV_SQL_ATTEMPT_INSERT,
    RV_SQL_ATTEMPT_LIST,
    RV_SQL_ATTEMPT_LIST_STEP,
    RV_SQL_ATTEMPT_OF_TOKEN,
    RV_SQL_LATE_INSERT,
    RV_SQL_LATE_LIST,
    RV_SQL_LATE_LIST_ATTEMPT,
    RV_SQL_ALERT_INSERT,
    RV_SQL_ALERT_CLOSE,
    RV_SQL_ALERT_CLOSE_LATE,
    RV_SQL_ALERT_ACK,
    RV_SQL_ALERT_THERE,
    RV_SQL_ALERT_OF_SOURCE,
    RV_SQL_ALERT_LIST,
    RV_SQL_ALERT_LIST_OPEN,
    RV_SQL_ALERT_LIST_TASK,
    RV_SQL_ALERT_CLOSE_UNDELIVERABLE,
    RV_SQL_MESSAGE_INSERT,
    RV_SQL_MESSAGE_LIST,
    RV_SQL_HISTORY_INSERT,
    RV_SQL_HISTORY_LIST,
    RV_SQL_DELIVERY_GROW,
    RV_SQL_DELIVERY_UPDATE,
    RV_SQL_DELIVERY_AGAIN,
    RV_SQL_DELIVERY_LOAD,
    RV_SQL_DELIVERY_LIST,
    RV_SQL_KEY_INSERT,
    RV_SQL_KEY_LOAD,
    RV_SQL_SWEEP_WALK, /* tasks by id, and whether the retention rule takes them */
    RV_SQL_SWEEP_STEPS,
    RV_SQL_SWEEP_PAYLOADS,
    RV_SQL_SWEEP_ATTEMPTS,
    RV_SQL_SWEEP_LATE,
    RV_SQL_SWEEP_ALERTS,
    RV_SQL_SWEEP_NOTICES,
    RV_SQL_SWEEP_TASKLESS_NOTICES,
    RV_SQL_SWEEP_TASKLESS,
    RV_SQL_SWEEP_MESSAGES,
    RV_SQL_SWEEP_HISTORY,
    RV_SQL_SWEEP_DELIVERY,
    RV_SQL_SWEEP_TAGS,
    RV_SQL_SWEEP_ERROR_TYPES,
    RV_SQL_SWEEP_TASK,
    RV_SQL_SWEEP_KEY_WALK, /* tasks of keys, and whether they are there */
    RV_SQL_SWEEP_KEY,
    RV_SQL_WORKFLOW_INSERT,
    RV_SQL_WORKFLOW_LOAD,
    RV_SQL_WORKFLOW_FIND,
    RV_SQL_WORKFLOW_FIND_NEWEST,
    RV_SQL_WORKFLOW_LIST,
    RV_SQL_WORKFLOW_IDS,
    RV_SQL_RECORD_PUT,
    RV_SQL_RECORD_REMOVE,
    RV_SQL_RECORD_LIST,
    RV_SQL_WALK_ALL, /* ids and states of tasks, newest first, below an id */
    RV_SQL_WALK_OPEN,
    RV_SQL_WALK_RARE,
    RV_SQL_WALK_WORKFLOW,
    RV_SQL_WALK_TAG,
    RV_SQL_WALK_ERROR,
    RV_SQL_WALK_AGENT,
    RV_SQL_ERROR_TYPE_INSERT, /* unless it is there */
    RV_SQL_TAG_INSERT,
    RV_SQL_TASK_AGENT,
    RV_SQL_TASK_LOOK,
    RV_SQL_INSTANCE_NEWEST,
    RV_SQL_INSTANCE_REPLACE,
    RV_SQL_INSTANCE_COMMIT,
    RV_SQL_INSTANCE_ALIVE,
    RV_SQL_INSTANCE_BATCH,
    RV_SQL_ROLE_LOAD,
    RV_SQL_ROLE_REPLACE,
    RV_SQL_COUNT
};

/* So many rows one run of a GATHER finds. */
enum { RV_GATHER_MAX = 16, RV_HOST_BYTES = 256 };

/* The second line of the lock file. */
struct rv_record_of_log {
    uint32_t id;     /* of the store that is, or was, at this place; 0: not known */
    bool log;        /* its log has what is not in the file */
    bool stopped;    /* nothing was written since the stop */
    uint32_t marked; /* with `log`: the file itself has this mark, or a newer; 0: unknown */
    struct rv_log_state state; /* with `log`: at least so much it has; after a stop, what it had */
};

struct rv_sqlite {
    struct rv_store store; /* first: what the callers hold */
    sqlite3 *db;           /* owned */
    struct rv_seal *seal;  /* owned: the VFS that db uses */
    struct rv_copier copier;
    struct rv_place place;
    struct rv_wall_clock clock;
    int checkpoint_pages; /* 0: as many as a store has by itself */
    size_t apart_bytes;
    struct rv_slew slew; /* the store's clock */
    int64_t last_alive_at;
    uint8_t instance; /* 0 before enlist */
    bool lossy;       /* a part of its log was left out */
    bool log_found;   /* by the start, and it was not empty */
    bool file_made;   /* by this process, empty */
    bool lock_made;
    bool created;
    bool copied; /* it was a copy until this process opened it */
    bool in_transaction;
    bool claimed; /* a role in it, which is something that it writes */
    bool in_checkpoint;
    bool broken;    /* a write or sync failed: nothing is known of the file until the next start */
    bool log_moved; /* all of it is in the file, by the newest checkpoint */
    int frames;     /* in the write-ahead log after the last commit */
    uint32_t id;    /* of the store, by which it and its log know each other; 0: not given yet */
    uint32_t mark_found; /* in the file, without its log; 0: none */
    struct rv_record_of_log recorded;
    int lock_fd;    /* -1: none */
    int lock_bytes; /* of its text; -1: not known */
    char host[RV_HOST_BYTES];
    sqlite3_stmt *statements[RV_COLUMNS_ALL + 1][RV_SQL_COUNT]; /* owned; by what they read */
    struct rv_bound bound[RV_SQL_COUNT][RV_COLUMNS_MAX];        /* of those that write a row */
    char open_text[RV_OPEN_TEXT_BYTES];
};

RV_CHECK enum rv_err rv_sqlite_statement(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                         sqlite3_stmt **ret_statement);
/* One that reads rows, of these columns alone. */
RV_CHECK enum rv_err rv_sqlite_statement_of(struct rv_sqlite *store, enum rv_sqlite_sql sql,
                                            enum rv_columns columns, sqlite3_stmt **ret_statement);
void rv_sqlite_statements_done(struct rv_sqlite *store);
/* Runs a statement that gives no rows, and resets it. */
RV_CHECK enum rv_err rv_sqlite_run(struct rv_sqlite *store, sqlite3_stmt *statement);
/* One row: *ret_there says whether there is one; the caller resets the statement in every case. */
RV_CHECK enum rv_err rv_sqlite_next(struct rv_sqlite *store, sqlite3_stmt *statement,
                                    bool *ret_there);
void rv_sqlite_bind_str(sqlite3_stmt *statement, int parameter, struct rv_str text);
/* Borrowed until the statement is stepped or reset. Read as a blob, so that SQLite needs no memory
 * to end it with a NUL: a text that it cannot end would look like none. */
struct rv_str rv_sqlite_column_str(sqlite3_stmt *statement, int column);
/* What SQLite's extended result code means to a caller of the store. */
enum rv_err rv_sqlite_err(struct rv_sqlite *store, int code);

/* ---- record.c: what the lock file has of the log ---- */

/* The descriptor of the lock file beside `path`, not locked; -1: errno tells why. */
int rv_sqlite_lock_open(const char *path, bool *ret_made);
/* Whether there is a log beside the file. */
bool rv_sqlite_log_there(const char *path);
/* After it was locked: whoever made it has removed it, and another process may lock a new one. */
bool rv_sqlite_lock_is_gone(const char *path, int fd);
/* The pid in the lock file, 0 when there is none or no such process lives. */
int64_t rv_sqlite_lock_pid(int fd);
/* Of a refused store: removes the lock file if this process made it and it knows no store. The lock
 * is held. */
void rv_sqlite_lock_unmake(const struct rv_sqlite *store, const char *path);
/* The file no longer names the process: a script that kills by it must not hit the next process of
 * that number. Where that cannot be written, the file is what a crash leaves. */
void rv_sqlite_lock_release(struct rv_sqlite *store);
void rv_sqlite_record_read(struct rv_sqlite *store);
/* With the pid of the server that uses the store; 0: none. False: errno tells why. */
bool rv_sqlite_record_write(struct rv_sqlite *store, int64_t pid);
/* Durably, before a start first writes, that nothing is known of the log any more if the store was
 * stopped; that one which was not stopped needs its log is kept. False: errno tells why. */
bool rv_sqlite_record_begin(struct rv_sqlite *store);
/* Durably, that the log is needed from now on, or that it is not. False: errno tells why. */
bool rv_sqlite_record(struct rv_sqlite *store, bool log);
/* Durably, after a checkpoint, that the file itself has the mark. False: errno tells why. */
bool rv_sqlite_record_mark(struct rv_sqlite *store, uint32_t mark);
/* After a commit, how far the log has come. Not synced: what the process has written outlives it,
 * and after a power loss the record may be behind the log, but not ahead of it. */
void rv_sqlite_record_log(struct rv_sqlite *store);

/* ---- schema.c ---- */

/* Templates for rv_sqlite_expand; NULL at the end. */
extern const char *const rv_sqlite_schema[];

/* ---- migrations.c ---- */

/* Reads the schema's version, 0 for an empty file. NOT_FOUND: another program's database. */
RV_CHECK enum rv_err rv_sqlite_version(struct rv_sqlite *store, int *ret_version);
/* One number from a statement of its own; *ret_value stays when there is no row. */
RV_CHECK enum rv_err rv_sqlite_number(struct rv_sqlite *store, const char *sql, int *ret_value);
/* Gives an empty file the schema of the newest version (schema.c), in one transaction. */
RV_CHECK enum rv_err rv_sqlite_create(struct rv_sqlite *store);
/* Brings the schema from `version` to the newest, a transaction for each. 0: an empty file, which
 * gets the same schema as from rv_sqlite_create. */
RV_CHECK enum rv_err rv_sqlite_migrate(struct rv_sqlite *store, int version);
int rv_sqlite_version_newest(void);

/* ---- instance.c ---- */

/* The file's mark (user_version) is the newest enlistment, and whether its server has not stopped:
 * then what the file has is not all without its log. 0: an older program's, or a copy. */
enum { RV_MARK_RUNS = 1 };
static inline uint32_t rv_mark_of(int64_t enlistment)
{
    return (uint32_t)(enlistment & INT32_MAX >> 1) << 1;
}
static inline bool rv_mark_runs(uint32_t mark)
{
    return (mark & RV_MARK_RUNS) != 0;
}
/* When an instance was last alive, and whether there was one: last_alive_at and created. */
RV_CHECK enum rv_err rv_sqlite_alive_read(struct rv_sqlite *store);
/* Marks the store as stopped, in a transaction of its own. */
RV_CHECK enum rv_err rv_sqlite_mark_stop(struct rv_sqlite *store);

/* ---- open.c, batch.c, instance.c, read.c, list.c ---- */

/* The operations of store.h. */
#define RV_STORE_OPERATION(name) rv_store_##name##_fn rv_sqlite_##name;
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION

/* Ends the open transaction so that it is durable; the two ways in which it can go wrong are told
 * apart here (sqlite.h). */
RV_CHECK enum rv_err rv_sqlite_end(struct rv_sqlite *store);
/* Moves the log into the database. */
RV_CHECK enum rv_err rv_sqlite_checkpoint(struct rv_sqlite *store);
/* Rolls back because a write ended in `err`; gives what the caller of the store is told. */
enum rv_err rv_sqlite_give_up(struct rv_sqlite *store, enum rv_err err);

/* sweep.c: inside the batch's transaction. */
RV_CHECK enum rv_err rv_sqlite_sweep(struct rv_sqlite *store, struct rv_sweep *sweep);

#endif

/* err.h - the one list of errors: code, text, HTTP status, exit code of the command line. */
#ifndef RV_BASE_ERR_H
#define RV_BASE_ERR_H

/* What the caller does with an error decides its family:
 *   RETRY   the same call may succeed later
 *   RELOAD  what was read is stale, read and decide again
 *   TELL    somebody's input is wrong, tell them
 *   STOP    the process must not go on with this state
 *
 *      NAME             family  text                                              HTTP  exit */
/* clang-format off */
#define RV_ERR_TABLE(X)                                                                            \
    X(BUSY,             RETRY,  "busy; try again",                                   503,  5)      \
    X(IO,               RETRY,  "input/output error",                                503,  5)      \
    X(FULL,             RETRY,  "the disk is full",                                  503,  5)      \
    X(DISPLACED,        RETRY,  "a file of the store was deleted, moved or changed", 503,  5)      \
    X(MEMORY,           RETRY,  "out of memory",                                     503,  5)      \
    X(CONFLICT,         RELOAD, "changed concurrently",                              409,  4)      \
    X(COMMIT_UNKNOWN,   RELOAD, "the outcome of the commit is unknown",              503,  5)      \
    X(DEPOSED,          RELOAD, "another instance has taken over this role",         503,  5)      \
    X(WENT_BACK,        RELOAD, "the store has lost a committed change",             503,  5)      \
    X(INVALID,          TELL,   "invalid input",                                     422,  2)      \
    X(UNSUPPORTED,      TELL,   "not supported yet",                                 422,  2)      \
    X(NOT_FOUND,        TELL,   "not found",                                         404,  3)      \
    X(REFUSED,          TELL,   "refused in this state",                             409,  4)      \
    X(DUPLICATE,        TELL,   "already exists with different content",             409,  4)      \
    X(LIMIT,            TELL,   "over a limit",                                      413,  2)      \
    X(LATE,             TELL,   "too late",                                          410,  4)      \
    X(CORRUPT,          STOP,   "stored data cannot be read",                        500,  5)      \
    X(VERSION,          STOP,   "the store has a different schema version",          500,  5)      \
    X(IN_USE,           STOP,   "the store is used by a server",               500,  4)

enum rv_err {
    RV_OK = 0,
#define RV_ERR_ENUM(name, family, text, http, exit_code) RV_ERR_##name,
    RV_ERR_TABLE(RV_ERR_ENUM)
#undef RV_ERR_ENUM
    RV_ERR_COUNT
};
/* clang-format on */

enum rv_err_family {
    RV_FAMILY_NONE,
    RV_FAMILY_RETRY,
    RV_FAMILY_RELOAD,
    RV_FAMILY_TELL,
    RV_FAMILY_STOP
};

/* A function that can fail says so in its type. */
#define RV_CHECK __attribute__((warn_unused_result))

/* Returns what the call returned, unless that is the 0 of its type (RV_OK, RV_DECIDED). Only where
 * nothing but an arena unwinds: a function that has to close, restore or unlock something before it
 * returns tests its error itself. */
#define RV_TRY(call)                                                                               \
    do {                                                                                           \
        __typeof__(call) result_ = (call);                                                         \
        if (result_ != 0)                                                                          \
            return result_;                                                                        \
    } while (0)

/* All four are total: an unknown code gives "unknown error", 500, 1. */
const char *rv_err_text(enum rv_err err);
enum rv_err_family rv_err_family(enum rv_err err);
int rv_err_http(enum rv_err err);
int rv_err_exit(enum rv_err err);

#endif

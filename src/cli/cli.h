/* cli.h - the command line: `reeve COMMAND`. */
#ifndef RV_CLI_CLI_H
#define RV_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

/* What is found in a store: each finding goes to `found`. */
struct rv_cli_check {
    void (*found)(void *self, struct rv_str task, struct rv_str what, struct rv_str cure);
    void *self;
    bool keep_intact;
    int64_t workflows; /* how many of each there are */
    int64_t tasks;
    int64_t steps;
    int64_t attempts; /* ended ones; the newest of a step is a part of it */
};

/* What a look of the supervisor did. */
struct rv_cli_look {
    int64_t open;    /* tasks that it looked at */
    int64_t moved;   /* of them: something of theirs was due */
    int64_t expired; /* attempts */
    int64_t ended;   /* tasks */
    int64_t alerts;  /* raised */
};

/* What is done by a room that this one does not know. */
struct rv_cli_server {
    /* `reeve serve`: argv[0] is "serve". Gives the exit code. */
    int (*serve)(int argc, char **argv);
    /* One request of the API on the file of a server that is stopped, and its status. Else the
     * file cannot be used, and *ret_body says why. IN_USE: a server has it. */
    enum rv_err (*at_rest)(const char *store, const char *method, const char *target,
                           const char *body, int *ret_status, struct rv_buf *ret_body);
    /* `reeve check`: holds the store of a server that is stopped against all rules. OK: it was
     * looked at, whatever was found; else *ret_why says why not. */
    enum rv_err (*check)(const char *store, struct rv_cli_check *check, struct rv_buf *ret_why);
    /* `reeve supervise`: one look of the supervisor over the store of a server that is stopped.
     * IN_USE: another has it. *ret_why says what stands in the way. */
    enum rv_err (*look)(const char *store, struct rv_cli_look *ret_look, struct rv_buf *ret_why);
    /* `reeve clock reset`: sets the clock of the store of a server that is stopped back to the wall
     * clock. *ret_back_ms: by how much; 0: it was not ahead. Else *ret_why says why not. */
    enum rv_err (*reset_clock)(const char *store, int64_t *ret_back_ms, struct rv_buf *ret_why);
};

/* The whole of main: finds the command, reads its options, runs it. Gives the exit code:
 * 0 done, 1 the task failed, was undone or was cancelled, 2 usage, 3 not found, 4 refused,
 * 5 unreachable, 6 needs an operator. */
int rv_cli_run(int argc, char **argv, const struct rv_cli_server *server);

#endif

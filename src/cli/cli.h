/* cli.h - the command line: `reeve COMMAND`. */
#ifndef RV_CLI_CLI_H
#define RV_CLI_CLI_H

#include "base/buf.h"

/* What is done by a room that this one does not know. */
struct rv_cli_server {
    /* `reeve serve`: argv[0] is "serve". Gives the exit code. */
    int (*serve)(int argc, char **argv);
    /* One request of the API on the file of a server that is stopped. The status; 0: the file
     * cannot be used, and *ret_body says why. */
    int (*at_rest)(const char *store, const char *method, const char *target, const char *body,
                   struct rv_buf *ret_body);
};

/* The whole of main: finds the command, reads its options, runs it. Gives the exit code (DESIGN 6):
 * 0 done, 1 the task failed or was undone, 2 usage, 3 not found, 4 refused, 5 unreachable,
 * 6 needs an operator. */
int rv_cli_run(int argc, char **argv, const struct rv_cli_server *server);

#endif

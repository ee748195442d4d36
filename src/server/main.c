#include "cli/cli.h"
#include "server/at_rest.h"
#include "server/check.h"
#include "server/leave.h"
#include "server/reset.h"
#include "server/serve.h"

#include <string.h>

/* The constructors of the shared libraries take longer than all that main() does before the server
 * waits for signals. A SIGHUP or SIGTERM in this time must not end the process without a word. */
static void signals_block(int argc, char **argv, char **variables)
{
    sigset_t blocked;
    (void)variables;
    if (argc > 1 && strcmp(argv[1], "serve") == 0)
        rv_leave_signals(&blocked);
}

/* The linker runs it before the constructors. */
__attribute__((section(".preinit_array"), used)) static void (*run_first)(int, char **,
                                                                          char **) = signals_block;

int main(int argc, char **argv)
{
    static const struct rv_cli_server server = {.serve = rv_cmd_serve,
                                                .at_rest = rv_at_rest,
                                                .check = rv_check,
                                                .look = rv_at_rest_look,
                                                .reset_clock = rv_reset_clock};
    return rv_cli_run(argc, argv, &server);
}

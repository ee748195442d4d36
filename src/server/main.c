#include "cli/cli.h"
#include "server/at_rest.h"
#include "server/check.h"
#include "server/reset.h"
#include "server/serve.h"

int main(int argc, char **argv)
{
    static const struct rv_cli_server server = {.serve = rv_cmd_serve,
                                                .at_rest = rv_at_rest,
                                                .check = rv_check,
                                                .look = rv_at_rest_look,
                                                .reset_clock = rv_reset_clock};
    return rv_cli_run(argc, argv, &server);
}

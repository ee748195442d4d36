#include "cli/cli.h"
#include "server/serve.h"

int main(int argc, char **argv)
{
    return rv_cli_run(argc, argv, rv_cmd_serve);
}

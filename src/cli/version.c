#include "cli/run_priv.h"

#include <stdio.h>

int cli_version(struct cli *cli)
{
    if (cli_has(cli, CLI_OPTION_JSON))
        printf("{\"name\":\"reeve\",\"version\":\"%s\"}\n", rv_version());
    else
        printf("reeve %s\n", rv_version());
    return CLI_DONE;
}

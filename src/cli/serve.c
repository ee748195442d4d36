#include "cli/run_priv.h"

/* The server reads its own options: it has variables and defaults for them. The command's own word
 * stands before its arguments, as a main expects it. */
int cli_serve(struct cli *cli)
{
    return cli->server->serve((int)cli->words.args_count + 1, cli->words.args - 1);
}

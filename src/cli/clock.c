#include "base/time.h"
#include "cli/run_priv.h"
#include "cli/server_priv.h"

#include <stdio.h>
#include <string.h>

enum { WHY_BYTES_MAX = 4096 };

int cli_clock(struct cli *cli)
{
    const char *store = cli_store(cli);
    if (strcmp(cli->words.args[0], "reset") != 0)
        return cli_tell(cli, CLI_USAGE, "\"%s\": unknown command; usage: reeve clock reset",
                        cli->words.args[0]);
    int64_t back_ms = 0;
    char text[RV_INSTANT_TEXT_BYTES];
    struct rv_buf why;
    rv_buf_init(&why, WHY_BYTES_MAX);
    enum rv_err err = cli->server->reset_clock(store, &back_ms, &why);
    int code = CLI_DONE;
    if (err != RV_OK)
        code = cli_tell(cli, rv_err_exit(err), "%.*s", RV_STR_FMT(rv_buf_str(&why)));
    else if (cli_has(cli, CLI_OPTION_JSON))
        printf("{\"backMs\":%lld}\n", (long long)back_ms);
    else if (back_ms > 0)
        printf("%s: the store's clock was set back by %.*s\n", store,
               RV_STR_FMT(rv_duration_text(back_ms, text)));
    else
        printf("%s: the store's clock is not ahead of the wall clock, so nothing was changed\n",
               store);
    rv_buf_done(&why);
    return code;
}

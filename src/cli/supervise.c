#include "cli/run_priv.h"

#include <inttypes.h>
#include <stdio.h>

enum { WHY_BYTES_MAX = 4096 };

static const char *s_of(int64_t count)
{
    return count == 1 ? "" : "s";
}

static void look_print(const struct cli *cli, const struct rv_cli_look *look)
{
    if (cli_has(cli, CLI_OPTION_JSON))
        printf("{\"open\":%" PRId64 ",\"moved\":%" PRId64 ",\"expired\":%" PRId64
               ",\"ended\":%" PRId64 ",\"alerts\":%" PRId64 "}\n",
               look->open, look->moved, look->expired, look->ended, look->alerts);
    else
        printf("%" PRId64 " open task%s, %" PRId64 " changed: %" PRId64 " attempt%s expired, "
               "%" PRId64 " task%s ended, %" PRId64 " alert%s raised\n",
               look->open, s_of(look->open), look->moved, look->expired, s_of(look->expired),
               look->ended, s_of(look->ended), look->alerts, s_of(look->alerts));
}

int cli_supervise(struct cli *cli)
{
    if (!cli_has(cli, CLI_OPTION_ONCE))
        return cli_tell(cli, CLI_USAGE,
                        "--once is missing: this command runs the supervisor once; `reeve serve` "
                        "runs it continuously");
    struct rv_cli_look look = {.open = 0};
    struct rv_buf why;
    rv_buf_init(&why, WHY_BYTES_MAX);
    enum rv_err err = cli->server->look(cli_store(cli), &look, &why);
    int code = CLI_DONE;
    if (err != RV_OK)
        code = cli_tell(cli, rv_err_exit(err), "%.*s", RV_STR_FMT(rv_buf_str(&why)));
    else
        look_print(cli, &look);
    rv_buf_done(&why);
    return code;
}

#include "cli/payload_priv.h"

#include "base/limits.h"
#include "base/os/file.h"
#include "json/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cli_payload_read(struct cli *cli, enum cli_option option, const char *otherwise,
                     struct rv_str *ret_text)
{
    const char *given = cli_value(cli, option);
    const char *flag = cli_option_row(option)->flag;
    const char *name = flag;
    *ret_text = rv_str_of(given ? given : otherwise);
    if (ret_text->at == NULL)
        return CLI_DONE;
    if (given != NULL && given[0] == '@') {
        struct rv_buf text;
        name = strcmp(given, "@-") == 0 ? "stdin" : given + 1;
        rv_buf_init(&text, RV_PAYLOAD_BYTES_MAX);
        errno = 0;
        enum rv_err err = rv_file_read(given + 1, &text);
        const char *why = errno ? strerror(errno) : rv_err_text(err);
        *ret_text = rv_arena_str(&cli->arena, rv_buf_str(&text));
        rv_buf_done(&text);
        if (err == RV_ERR_LIMIT)
            return cli_tell(cli, CLI_USAGE, "%s: larger than %d KiB", name,
                            RV_PAYLOAD_BYTES_MAX / 1024);
        if (err != RV_OK)
            return cli_tell(cli, err == RV_ERR_NOT_FOUND ? CLI_NOT_FOUND : CLI_USAGE, "%s: %s",
                            name, why);
    }
    struct rv_json_fault fault;
    if (rv_json_scan(*ret_text, RV_JSON_DEPTH_MAX, &fault) == RV_OK)
        return CLI_DONE;
    if (given != NULL && given[0] == '@')
        fprintf(stderr, "%s:%u:%u: %s\n", name, fault.line, fault.column, fault.message);
    else
        cli_tell(cli, CLI_USAGE, "%s is not JSON, at byte %zu: %s; for a file write %s @FILE", flag,
                 fault.offset + 1, fault.message, flag);
    return CLI_USAGE;
}

void cli_trace_read(struct cli *cli, const char **ret_traceparent, const char **ret_tracestate)
{
    const char *given = cli_value(cli, CLI_OPTION_TRACEPARENT);
    *ret_traceparent = given != NULL ? given : getenv("TRACEPARENT");
    *ret_tracestate = given != NULL ? NULL : getenv("TRACESTATE");
}

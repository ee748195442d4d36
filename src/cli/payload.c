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
    struct rv_json tree; /* built, because a scan passes over duplicate keys */
    struct rv_arena_mark mark = rv_arena_mark(&cli->arena);
    bool is_json = rv_json_scan(*ret_text, RV_JSON_DEPTH_MAX, &fault) == RV_OK &&
                   rv_json_parse(&cli->arena, *ret_text, RV_JSON_DEPTH_MAX, &tree, &fault) !=
                       RV_ERR_INVALID;
    rv_arena_release(&cli->arena, mark);
    if (is_json)
        return CLI_DONE;
    if (given != NULL && given[0] == '@')
        fprintf(stderr, "%s:%u:%u: the text is not JSON: %s\n", name, fault.line, fault.column,
                fault.message);
    else
        cli_tell(cli, CLI_USAGE,
                 "%s is not JSON, at byte %zu: %s; to read the value from a file, write %s @FILE",
                 flag, fault.offset + 1, fault.message, flag);
    return CLI_USAGE;
}

/* Whether one of the tags before begins with the same name and its "=". */
static bool tag_given(const struct cli_words *words, size_t before, size_t len)
{
    for (size_t i = 0; i < before; i++)
        if (strncmp(words->tags[i], words->tags[before], len) == 0)
            return true;
    return false;
}

int cli_tags_read(struct cli *cli, struct rv_str *ret_tags)
{
    const struct cli_words *words = &cli->words;
    const char *given = cli_value(cli, CLI_OPTION_TAGS);
    struct rv_buf json;
    *ret_tags = RV_STR_NONE;
    if (given != NULL && words->tags_count > 0)
        return cli_tell(cli, CLI_USAGE, "give the tags with --tag or with --tags, not with both");
    if (given != NULL && given[0] != '@' && given[0] != '{')
        return cli_tell(cli, CLI_USAGE,
                        "--tags %s is not a JSON object; write --tags '{\"city\":\"Bonn\"}' or "
                        "--tag city=Bonn",
                        given);
    if (words->tags_count == 0)
        return cli_payload_read(cli, CLI_OPTION_TAGS, NULL, ret_tags);
    rv_buf_init(&json, RV_PAYLOAD_BYTES_MAX);
    for (size_t i = 0; i < words->tags_count; i++) {
        const char *tag = words->tags[i], *equals = strchr(tag, '=');
        if (equals != NULL && tag_given(words, i, (size_t)(equals - tag) + 1)) {
            rv_buf_done(&json);
            return cli_tell(cli, CLI_USAGE, "--tag %.*s is given twice; leave one out",
                            (int)(equals - tag), tag);
        }
        if (equals == NULL || equals == tag) {
            rv_buf_done(&json);
            return cli_tell(cli, CLI_USAGE, "--tag %s: must be NAME=VALUE", tag);
        }
        rv_buf_add_char(&json, i == 0 ? '{' : ',');
        rv_json_write_string(&json, (struct rv_str){tag, (size_t)(equals - tag)});
        rv_buf_add_char(&json, ':');
        rv_json_write_string(&json, rv_str_of(equals + 1));
    }
    rv_buf_add_char(&json, '}');
    *ret_tags = rv_arena_str(&cli->arena, rv_buf_str(&json));
    rv_buf_done(&json);
    return ret_tags->at != NULL ? CLI_DONE : cli_tell(cli, CLI_UNREACHABLE, "out of memory");
}

void cli_trace_read(struct cli *cli, const char **ret_traceparent, const char **ret_tracestate)
{
    const char *given = cli_value(cli, CLI_OPTION_TRACEPARENT);
    *ret_traceparent = given != NULL ? given : getenv("TRACEPARENT");
    *ret_tracestate = given != NULL ? NULL : getenv("TRACESTATE");
}

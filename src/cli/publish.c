#include "base/limits.h"
#include "base/os/file.h"
#include "cli/publish_priv.h"
#include "cli/server_priv.h"
#include "cli/text_priv.h"
#include "cli/unseen_priv.h"
#include "yaml/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int cli_definition_read(struct cli *cli, const char *file, struct rv_buf *ret_text)
{
    errno = 0;
    enum rv_err err = rv_file_read(file, ret_text);
    if (err == RV_OK && ret_text->len == 0)
        return cli_tell(cli, CLI_USAGE, "%s is empty; it must contain a workflow definition", file);
    if (err == RV_OK)
        return CLI_DONE;
    if (err == RV_ERR_LIMIT)
        return cli_tell(cli, CLI_USAGE,
                        "%s: the definition is larger than %d KiB; split the workflow", file,
                        RV_DEFINITION_BYTES_MAX / 1024);
    int code = err == RV_ERR_NOT_FOUND ? CLI_NOT_FOUND : CLI_USAGE;
    return cli_tell(cli, code, "%s: %s", file, errno ? strerror(errno) : rv_err_text(err));
}

/* The server's warnings begin with the place as a JSON pointer; an editor wants line and column. */
static void warning_print(struct cli *cli, const char *file, struct rv_str text,
                          struct rv_str warning)
{
    static const char mark[] = ": ";
    const char *end = warning.len > 0 ? memmem(warning.at, warning.len, mark, sizeof mark - 1)
                                      : NULL;
    struct rv_str pointer = {warning.at, end != NULL ? (size_t)(end - warning.at) : 0};
    uint32_t line = 1, column = 1;
    if (pointer.len > 0 && rv_yaml_locate(text, pointer, false, 0, &line, &column)) {
        struct rv_str rest = {end + sizeof mark - 1, warning.len - pointer.len - (sizeof mark - 1)};
        fprintf(stderr, "%s:%u:%u: warning: %.*s\n", file, line, column,
                RV_STR_FMT(cli_text_clean(&cli->arena, rest)));
        return;
    }
    fprintf(stderr, "%s: warning: %.*s\n", file, RV_STR_FMT(cli_text_clean(&cli->arena, warning)));
}

static int file_publish(struct cli *cli, const char *file, struct rv_str text)
{
    struct cli_path path;
    struct cli_answer answer;
    cli_path_begin(&path, "/v1/workflows");
    cli_path_parameter(&path, "file", strcmp(file, "-") == 0 ? "stdin" : file);
    struct cli_call call = {.method = "PUT",
                            .path = cli_path_end(&path, &cli->arena),
                            .body = text,
                            .content_type = "application/yaml"};
    int code = cli_ask(cli, &call, &answer);
    if (code == CLI_USAGE && cli_int(&answer.json, "line") > 0 && cli_faults_many(cli, text) &&
        !cli_has(cli, CLI_OPTION_JSON))
        cli_tell(cli, code, "%s has more errors; `reeve publish --check` lists all of them", file);
    if (code != CLI_DONE)
        return code;
    if (cli_has(cli, CLI_OPTION_JSON)) {
        cli_json_print(answer.text);
        return CLI_DONE;
    }
    struct rv_str name = cli_text_clean(&cli->arena, cli_str(&answer.json, "workflow"));
    printf("%.*s %s\n", RV_STR_FMT(name), answer.status == 201 ? "published" : "already published");
    const struct rv_json *warnings = rv_json_get(&answer.json, RV_STR("warnings"));
    for (uint32_t i = 0; warnings != NULL && i < warnings->len; i++)
        warning_print(cli, file, text, rv_json_str(&warnings->u.items[i]));
    return CLI_DONE;
}

/* A file that is refused does not keep the others from being published; an absent server does. */
int cli_publish(struct cli *cli)
{
    int first = CLI_DONE;
    struct rv_buf text;
    struct cli_callees callees = {.count = 0};
    if (cli_has(cli, CLI_OPTION_CHECK))
        return cli_publish_check(cli);
    rv_buf_init(&text, RV_DEFINITION_BYTES_MAX);
    for (size_t i = 0; i < cli->words.args_count; i++) {
        const char *file = cli->words.args[i];
        rv_buf_reset(&text);
        int code = cli_definition_read(cli, file, &text);
        if (code == CLI_DONE)
            code = file_publish(cli, file, rv_buf_str(&text));
        if (code == CLI_DONE && !cli_has(cli, CLI_OPTION_JSON))
            cli_callees_add(cli, &callees, rv_buf_str(&text));
        if (first == CLI_DONE)
            first = code;
        if (code == CLI_UNREACHABLE)
            break;
    }
    rv_buf_done(&text);
    cli_callees_note(cli, &callees);
    return first;
}

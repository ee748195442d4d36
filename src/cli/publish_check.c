/* `reeve publish --check`: the server's own parser and validator, without a server. What depends on
 * the server's options, such as the destinations that --egress allows, is not checked. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "cli/publish_priv.h"
#include "cli/server_priv.h"
#include "cli/text_priv.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>

enum { FINDINGS_MAX = RV_DEFINITION_FAULTS_MAX + RV_DEFINITION_WARNINGS_MAX };

struct publish_finding {
    uint32_t line;
    uint32_t column;
    struct rv_str message;
    bool warning;
};

/* One file and what was found in it. */
struct checked {
    const char *file; /* as messages name it */
    struct rv_str text;
    struct rv_str workflow; /* absent: it could not be read */
    struct publish_finding *findings;
    uint32_t count;
    uint32_t errors;
};

static void finding_add(struct checked *checked, struct publish_finding finding)
{
    rv_assert(checked->errors <= checked->count && checked->count <= FINDINGS_MAX);
    if (checked->count == FINDINGS_MAX)
        return;
    checked->errors += !finding.warning;
    checked->findings[checked->count++] = finding;
}

static void fault_add(struct checked *checked, const struct rv_definition_fault *fault)
{
    struct publish_finding finding = {.line = 1, .column = 1, .message = fault->message};
    (void)rv_yaml_locate(checked->text, fault->pointer, fault->at_key, fault->offset, &finding.line,
                         &finding.column);
    finding_add(checked, finding);
}

static void warnings_add(struct checked *checked, const struct rv_definition *definition,
                         struct rv_arena *arena)
{
    struct rv_definition_warning warnings[RV_DEFINITION_WARNINGS_MAX];
    uint32_t count = rv_definition_warnings(definition, arena, warnings);
    rv_assert(count <= RV_DEFINITION_WARNINGS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct publish_finding finding = {1, 1, warnings[i].message, true};
        (void)rv_yaml_locate(checked->text, warnings[i].pointer, false, 0, &finding.line,
                             &finding.column);
        finding_add(checked, finding);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct publish_finding *x = a;
    const struct publish_finding *y = b;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    return x->column < y->column ? -1 : x->column > y->column;
}

/* The form in which a server keeps it. */
static bool is_too_large(const struct rv_json *document)
{
    struct rv_buf canonical;
    rv_buf_init(&canonical, RV_DEFINITION_BYTES_MAX);
    rv_json_write_canonical(&canonical, document);
    bool over = canonical.failed == RV_ERR_LIMIT;
    rv_buf_done(&canonical);
    return over;
}

/* *ret_err: MEMORY, or OK with the findings. */
static enum rv_err document_check(struct cli *cli, struct checked *checked,
                                  const struct rv_json *document, struct rv_arena *compiled)
{
    struct rv_definition_faults *faults = RV_NEW(&cli->arena, struct rv_definition_faults);
    const struct rv_definition *definition = NULL;
    if (faults == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = rv_definition_check(compiled, document, &definition, faults);
    if (err == RV_ERR_LIMIT || (err == RV_OK && is_too_large(document))) {
        finding_add(checked,
                    (struct publish_finding){1, 1,
                                             RV_STR("the definition is too large; split the "
                                                    "workflow"),
                                             false});
        return RV_OK;
    }
    rv_assert(faults->count <= RV_DEFINITION_FAULTS_MAX);
    rv_assert(err != RV_OK || definition != NULL);
    for (uint32_t i = 0; i < faults->count; i++) {
        faults->items[i].message = rv_arena_str(&cli->arena, faults->items[i].message);
        fault_add(checked, &faults->items[i]);
    }
    if (err != RV_OK)
        return err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED ? RV_OK : err;
    checked->workflow = rv_arena_printf(
        &cli->arena, "%.*s/%.*s:%.*s", RV_STR_FMT(rv_definition_namespace(definition)),
        RV_STR_FMT(rv_definition_name(definition)), RV_STR_FMT(rv_definition_version(definition)));
    warnings_add(checked, definition, &cli->arena);
    return RV_OK;
}

static enum rv_err text_check(struct cli *cli, struct checked *checked)
{
    struct rv_arena tree;
    struct rv_arena compiled;
    struct rv_json document = {.len = 0};
    struct rv_yaml_fault fault = {.line = 1, .column = 1};
    checked->findings = RV_NEW_ARRAY(&cli->arena, struct publish_finding, FINDINGS_MAX);
    if (checked->findings == NULL)
        return RV_ERR_MEMORY;
    rv_arena_init(&tree, RV_DEFINITION_COMPILED_BYTES_MAX);
    rv_arena_init(&compiled, RV_DEFINITION_COMPILED_BYTES_MAX);
    enum rv_err err = rv_yaml_parse(&tree, checked->text, RV_DEFINITION_BYTES_MAX, &document,
                                    &fault);
    if (err == RV_ERR_INVALID || err == RV_ERR_LIMIT) {
        finding_add(checked,
                    (struct publish_finding){fault.line, fault.column,
                                             rv_arena_str(&cli->arena, fault.message), false});
        err = RV_OK;
    } else if (err == RV_OK) {
        err = document_check(cli, checked, &document, &compiled);
    }
    rv_arena_done(&compiled);
    rv_arena_done(&tree);
    if (checked->count > 0)
        qsort(checked->findings, checked->count, sizeof *checked->findings, by_place);
    return err;
}

bool cli_faults_many(struct cli *cli, struct rv_str text)
{
    struct checked checked = {.file = "", .text = text};
    return text_check(cli, &checked) == RV_OK && checked.errors > 1;
}

static void checked_print(struct cli *cli, const struct checked *checked)
{
    fflush(stdout);
    for (uint32_t i = 0; i < checked->count; i++) {
        const struct publish_finding *finding = &checked->findings[i];
        fprintf(stderr, "%s:%u:%u: %s%.*s\n", checked->file, finding->line, finding->column,
                finding->warning ? "warning: " : "",
                RV_STR_FMT(cli_text_clean(&cli->arena, finding->message)));
    }
    if (checked->errors >= RV_DEFINITION_FAULTS_MAX)
        fprintf(stderr, "%s: only the first %d errors are listed\n", checked->file,
                RV_DEFINITION_FAULTS_MAX);
    if (checked->errors == 0)
        printf("%.*s valid\n", RV_STR_FMT(cli_text_clean(&cli->arena, checked->workflow)));
}

static void findings_write(struct rv_buf *buf, const struct checked *checked, bool warnings)
{
    const char *between = "";
    for (uint32_t i = 0; i < checked->count; i++) {
        const struct publish_finding *finding = &checked->findings[i];
        if (finding->warning != warnings)
            continue;
        rv_buf_printf(buf, "%s{\"line\":%u,\"column\":%u,\"message\":", between, finding->line,
                      finding->column);
        rv_json_write_string(buf, finding->message);
        rv_buf_add_char(buf, '}');
        between = ",";
    }
}

static void checked_write(struct rv_buf *buf, const struct checked *checked)
{
    rv_buf_lit(buf, "{\"file\":");
    rv_json_write_string(buf, rv_str_of(checked->file));
    rv_buf_lit(buf, ",\"workflow\":");
    if (checked->workflow.at != NULL)
        rv_json_write_string(buf, checked->workflow);
    else
        rv_buf_lit(buf, "null");
    rv_buf_lit(buf, ",\"errors\":[");
    findings_write(buf, checked, false);
    rv_buf_lit(buf, "],\"warnings\":[");
    findings_write(buf, checked, true);
    rv_buf_lit(buf, "]}");
}

/* A file that cannot be read is told and left out of the JSON. */
static int file_check(struct cli *cli, const char *file, struct rv_buf *text, struct rv_buf *json)
{
    rv_buf_reset(text);
    int code = cli_definition_read(cli, file, text);
    if (code != CLI_DONE)
        return code;
    struct checked checked = {.file = strcmp(file, "-") == 0 ? "stdin" : file,
                              .text = rv_buf_str(text)};
    enum rv_err err = text_check(cli, &checked);
    if (err != RV_OK)
        return cli_tell(cli, rv_err_exit(err), "%s: %s", checked.file, rv_err_text(err));
    if (cli_has(cli, CLI_OPTION_JSON)) {
        if (json->len > 1)
            rv_buf_add_char(json, ',');
        checked_write(json, &checked);
    } else {
        checked_print(cli, &checked);
    }
    return checked.errors > 0 ? CLI_USAGE : CLI_DONE;
}

int cli_publish_check(struct cli *cli)
{
    int first = CLI_DONE;
    struct rv_buf text;
    struct rv_buf json;
    rv_buf_init(&text, RV_DEFINITION_BYTES_MAX);
    rv_buf_init(&json, SIZE_MAX / 2);
    rv_buf_add_char(&json, '[');
    for (size_t i = 0; i < cli->words.args_count; i++) {
        int code = file_check(cli, cli->words.args[i], &text, &json);
        if (first == CLI_DONE)
            first = code;
    }
    rv_buf_add_char(&json, ']');
    if (json.failed != RV_OK)
        first = cli_tell(cli, rv_err_exit(json.failed), "%s", rv_err_text(json.failed));
    else if (cli_has(cli, CLI_OPTION_JSON))
        cli_json_print(rv_buf_str(&json));
    rv_buf_done(&json);
    rv_buf_done(&text);
    return first;
}

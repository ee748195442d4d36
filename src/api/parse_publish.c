#include "api/digest.h"
#include "api/parse.h"
#include "base/assert.h"
#include "base/limits.h"
#include "workflow/definition.h"
#include "yaml/yaml.h"

#include <string.h>

enum { WARNINGS_MAX = 2 * RV_DEFINITION_WARNINGS_MAX };

/* 422 with file, line and column, both in fields and in front of the sentence. */
static bool definition_refuse(struct rv_parser *parser, const struct rv_request_line *request,
                              enum rv_err err, uint32_t line, uint32_t column,
                              struct rv_str message)
{
    struct rv_str file = request->file.at ? request->file : RV_STR("workflow");
    rv_refuse(parser, err, "%.*s:%u:%u: %.*s", RV_STR_FMT(file), line, column, RV_STR_FMT(message));
    parser->problem.status = 422;
    parser->problem.file = file;
    parser->problem.line = line;
    parser->problem.column = column;
    return false;
}

static bool too_large(struct rv_parser *parser)
{
    return rv_refuse(parser, RV_ERR_LIMIT,
                     "the definition is larger than %d bytes; split the workflow",
                     RV_DEFINITION_BYTES_MAX);
}

static bool definition_load(struct rv_parser *parser, const struct rv_request_line *request,
                            const struct rv_json *document, struct rv_arena *compiled,
                            const struct rv_definition **ret)
{
    struct rv_definition_fault fault = {.offset = 0};
    enum rv_err err = rv_definition_load(compiled, document, ret, &fault);
    if (err == RV_ERR_INVALID || err == RV_ERR_UNSUPPORTED) {
        uint32_t line = 1;
        uint32_t column = 1;
        /* When the value is not there, this names the nearest place around it: good enough. */
        (void)rv_yaml_locate(request->body, fault.pointer, fault.at_key, fault.offset, &line,
                             &column);
        return definition_refuse(parser, request, err, line, column, fault.message);
    }
    if (err != RV_OK)
        return rv_refuse(parser, err, "the definition is too large to compile; split the workflow");
    return true;
}

static bool row_fill(struct rv_parser *parser, const struct rv_json *document,
                     const struct rv_definition *definition, struct rv_workflow_row *row)
{
    rv_buf_reset(&parser->scratch);
    rv_json_write_canonical(&parser->scratch, document);
    struct rv_str canonical = rv_buf_str(&parser->scratch);
    if (parser->scratch.failed != RV_OK || canonical.len > RV_DEFINITION_BYTES_MAX)
        return too_large(parser);
    row->source = rv_arena_str(parser->arena, canonical);
    row->hash = rv_digest_hex(parser->arena, canonical);
    row->space = rv_arena_str(parser->arena, rv_definition_namespace(definition));
    row->name = rv_arena_str(parser->arena, rv_definition_name(definition));
    row->version = rv_arena_str(parser->arena, rv_definition_version(definition));
    return !rv_parser_starved(parser);
}

/* The endpoint with something in the place of each variable. */
static struct rv_str endpoint_filled(struct rv_parser *parser, struct rv_str endpoint)
{
    rv_buf_reset(&parser->scratch);
    for (size_t i = 0; i < endpoint.len; i++) {
        if (endpoint.at[i] != '{') {
            rv_buf_add_char(&parser->scratch, endpoint.at[i]);
            continue;
        }
        rv_buf_lit(&parser->scratch, "x");
        while (endpoint.at[i] != '}')
            i++;
    }
    return rv_arena_str(parser->arena, rv_buf_str(&parser->scratch));
}

static void add_valid(struct rv_parser *parser, const struct rv_definition *definition,
                      struct rv_call_publish *publish)
{
    struct rv_definition_warning warnings[RV_DEFINITION_WARNINGS_MAX];
    uint32_t count = rv_definition_warnings(definition, parser->arena, warnings);
    for (uint32_t i = 0; i < count && publish->warnings_count < WARNINGS_MAX; i++)
        publish->warnings[publish->warnings_count++] = rv_arena_printf(
            parser->arena, "%.*s: %.*s", RV_STR_FMT(warnings[i].pointer),
            RV_STR_FMT(warnings[i].message));
}

/* Calls that will be refused are no fault of the definition: the flag may come later. */
static bool add_egress(struct rv_parser *parser, const struct rv_definition *definition,
                       struct rv_call_publish *publish)
{
    uint32_t count = rv_definition_nodes(definition);
    if (parser->egress.refusal == NULL)
        return true;
    for (uint32_t n = 1; n <= count && publish->warnings_count < WARNINGS_MAX; n++) {
        struct rv_str endpoint = rv_definition_endpoint(definition, n);
        if (endpoint.at == NULL)
            continue;
        struct rv_str why = parser->egress.refusal(parser->egress.self, parser->arena,
                                                   endpoint_filled(parser, endpoint));
        if (why.at != NULL)
            publish->warnings[publish->warnings_count++] = rv_arena_printf(
                parser->arena, "%.*s: %.*s", RV_STR_FMT(rv_definition_reference(definition, n)),
                RV_STR_FMT(why));
    }
    return !rv_parser_starved(parser);
}

/* Nor are secrets that the server does not have: they may be stored later. */
static void add_secrets(struct rv_parser *parser, const struct rv_json *document,
                        struct rv_call_publish *publish)
{
    const struct rv_json *names = rv_json_get(rv_json_get(document, RV_STR("use")),
                                              RV_STR("secrets"));
    size_t count = names != NULL && names->type == RV_JSON_ARRAY ? names->len : 0;
    for (size_t i = 0; i < count && publish->warnings_count < WARNINGS_MAX; i++) {
        struct rv_str why = parser->secrets.refusal(parser->secrets.self, parser->arena,
                                                    rv_json_str(&names->u.items[i]));
        if (why.at != NULL)
            publish->warnings[publish->warnings_count++] = rv_arena_printf(
                parser->arena, "/use/secrets/%zu: %.*s", i, RV_STR_FMT(why));
    }
}

static bool warnings_add(struct rv_parser *parser, const struct rv_json *document,
                         const struct rv_definition *definition, struct rv_call_publish *publish)
{
    publish->warnings = RV_NEW_ARRAY(parser->arena, struct rv_str, WARNINGS_MAX);
    if (publish->warnings == NULL)
        return !rv_parser_starved(parser);
    add_valid(parser, definition, publish);
    if (parser->secrets.refusal != NULL)
        add_secrets(parser, document, publish);
    return add_egress(parser, definition, publish);
}

static bool has_text(struct rv_str body, struct rv_str text)
{
    return memmem(body.at, body.len, text.at, text.len) != NULL;
}

/* A block document on one line. `curl -d @FILE` makes that of every file: it leaves out its line
 * breaks. */
static bool is_flattened(struct rv_str body)
{
    return body.at[0] != '{' && memchr(body.at, '\n', body.len) == NULL &&
           has_text(body, RV_STR("document:")) && has_text(body, RV_STR("do:"));
}

static bool publish_read(struct rv_parser *parser, const struct rv_request_line *request,
                         struct rv_arena *compiled, struct rv_call_publish *publish)
{
    struct rv_json document = {.len = 0};
    struct rv_yaml_fault fault = {.line = 1, .column = 1};
    const struct rv_definition *definition = NULL;
    enum rv_err err = rv_yaml_parse(&parser->tree, request->body, RV_DEFINITION_BYTES_MAX,
                                    &document, &fault);
    if (err == RV_ERR_INVALID && is_flattened(request->body))
        fault.message = RV_STR("the body has no line breaks: `curl -d` removes them; send the file "
                               "with --data-binary @FILE");
    if (err == RV_ERR_INVALID || err == RV_ERR_LIMIT)
        return definition_refuse(parser, request, err, fault.line, fault.column, fault.message);
    if (err != RV_OK)
        return rv_refuse(parser, err, "the definition could not be read; try again");
    return definition_load(parser, request, &document, compiled, &definition) &&
           row_fill(parser, &document, definition, &publish->row) &&
           warnings_add(parser, &document, definition, publish);
}

bool rv_parse_publish(struct rv_parser *parser, const struct rv_request_line *request,
                      struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_PUBLISH);
    static const char *const names[] = {"file", NULL};
    struct rv_request_line named = *request;
    if (!rv_args_only(parser, request, names))
        return false;
    if (rv_arg_get(request, "file").len > 0)
        named.file = rv_arg_get(request, "file");
    if (request->body.len == 0)
        return rv_refuse_http(parser, 400, "the request has no body; send the definition");
    if (request->body.len > RV_DEFINITION_BYTES_MAX)
        return too_large(parser);
    struct rv_arena compiled;
    rv_arena_init(&compiled, RV_DEFINITION_COMPILED_BYTES_MAX);
    bool good = publish_read(parser, &named, &compiled, &call->u.publish);
    rv_arena_done(&compiled);
    return good;
}

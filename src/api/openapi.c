/* /openapi.json: the API as OpenAPI 3.1 has it, written from the table of routes and the tables in
 * tbl/. A test compares real answers with it. */
#include "api/answer.h"
#include "api/openapi_words.h"
#include "api/put.h"
#include "api/route.h"
#include "base/assert.h"

#ifndef RV_VERSION
#error "RV_VERSION is not defined: build with meson"
#endif

struct parameter {
    const char *id;
    const char *name;
    const char *place;
    const char *type;
    const char *example;
    const char *description;
};

static const struct parameter parameters[] = {
#define RV_PARAMETER(id, name, place, type, example, description)                                  \
    {#id, name, place, type, example, description},
#include "api/tbl/parameter.def"
#undef RV_PARAMETER
};

struct schema {
    const char *name;
    bool closed; /* a property that is not named is refused */
    const char *description;
    const char *example; /* JSON, or "NONE" */
};

static const struct schema schemas[] = {
#define RV_PROPERTY(schema, name, type, required, description)
#define RV_SCHEMA(name, description, ...) {#name, false, description, #__VA_ARGS__},
#define RV_REQUEST(name, description, ...) {#name, true, description, #__VA_ARGS__},
#include "api/tbl/schema.def"
#undef RV_REQUEST
#undef RV_SCHEMA
#undef RV_PROPERTY
};

struct property {
    const char *schema;
    const char *name;
    const char *type;
    bool required;
    const char *description;
};

static const struct property properties[] = {
#define RV_SCHEMA(name, description, ...)
#define RV_REQUEST(name, description, ...)
#define RV_PROPERTY(schema, name, type, required, description)                                     \
    {#schema, name, type, required, description},
#include "api/tbl/schema.def"
#undef RV_PROPERTY
#undef RV_REQUEST
#undef RV_SCHEMA
};

static const struct {
    const char *name;
    const char *description;
} groups[] = {
    {"tasks", "Submit tasks, read tasks, and issue commands for tasks."},
    {"agents", "The agent protocol, and the limits and circuits of agents."},
    {"workflows", "Publish and read workflows."},
    {"selections", "Selections of tasks, and bulk commands."},
    {"alerts", "Conditions that need an operator."},
    {"keys", "API keys."},
    {"server", "Health, metrics, backup and description of the server."},
};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define INSTANT "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$"

static const char about[] =
    "Reeve runs workflows whose steps call remote services, retries failed steps, and undoes tasks "
    "that cannot complete. Guide: docs/guide/api.md. Problem types: docs/guide/problems.md. "
    "Requests with unknown properties or parameters are refused; only the `error` of a reply may "
    "have other properties. Later versions may add properties to responses; clients must ignore "
    "unknown properties. Until the first API key exists, requests from the same machine need none.";
static const char definition_example[] =
    "document: {dsl: '1.0.3', namespace: shop, name: order, version: '1.0.0'}\n"
    "do:\n"
    "  - reserve: {call: stock, with: {sku: '${ .sku }'}}\n";

static struct rv_str word_next(const char **at)
{
    while (**at == ' ')
        (*at)++;
    const char *from = *at;
    while (**at != '\0' && **at != ' ')
        (*at)++;
    return (struct rv_str){from, (size_t)(*at - from)};
}

static void plain_put(struct rv_buf *buf, const char *name, const char *text)
{
    rv_put_text(buf, name, rv_str_of(text));
}

static void reference_put(struct rv_buf *buf, struct rv_str schema)
{
    rv_put_comma(buf);
    rv_buf_printf(buf, "\"$ref\":\"#/components/schemas/%.*s\"", RV_STR_FMT(schema));
}

/* "integer(1,100)": its bounds. */
static void bounds_put(struct rv_buf *buf, struct rv_str type)
{
    const char *comma = memchr(type.at, ',', type.len);
    struct rv_str low = {type.at + sizeof "integer", 0};
    if (comma == NULL)
        return;
    low.len = (size_t)(comma - low.at);
    struct rv_str high = {comma + 1, (size_t)(type.at + type.len - comma) - 2};
    rv_put_raw_if(buf, "minimum", low);
    rv_put_raw_if(buf, "maximum", high);
}

/* The members of a schema object that is open; see tbl/schema.def for the types. */
static void type_put(struct rv_buf *buf, struct rv_str type)
{
    if (rv_str_is(type, "any"))
        return;
    if (type.at[0] == '[' || type.at[0] == '{') {
        bool list = type.at[0] == '[';
        plain_put(buf, "type", list ? "array" : "object");
        rv_put_open_in(buf, list ? "items" : "additionalProperties", '{');
        type_put(buf, (struct rv_str){type.at + 1, type.len - 2});
        rv_buf_add_char(buf, '}');
    } else if (rv_str_is(type, "instant")) {
        plain_put(buf, "type", "string");
        plain_put(buf, "format", "date-time");
        plain_put(buf, "pattern", INSTANT);
    } else if (rv_str_is(type, "text?")) {
        rv_put_raw_if(buf, "type", RV_STR("[\"string\",\"null\"]"));
    } else if (rv_str_begins(type, RV_STR("integer"))) {
        plain_put(buf, "type", "integer");
        bounds_put(buf, type);
    } else if (rv_str_is(type, "string") || rv_str_is(type, "boolean")) {
        rv_put_text(buf, "type", type);
    } else {
        reference_put(buf, type);
    }
}

static void property_put(struct rv_buf *buf, const struct property *property)
{
    rv_put_open_in(buf, property->name, '{');
    type_put(buf, rv_str_of(property->type));
    plain_put(buf, "description", property->description);
    rv_buf_add_char(buf, '}');
}

static void schema_put(struct rv_buf *buf, const struct schema *schema)
{
    bool open = false;
    rv_put_open_in(buf, schema->name, '{');
    plain_put(buf, "type", "object");
    plain_put(buf, "description", schema->description);
    rv_put_open_in(buf, "properties", '{');
    for (size_t i = 0; i < COUNT(properties); i++) {
        if (strcmp(properties[i].schema, schema->name) != 0)
            continue;
        if (strcmp(properties[i].name, "...") == 0)
            open = true;
        else
            property_put(buf, &properties[i]);
    }
    rv_buf_add_char(buf, '}');
    rv_put_open_in(buf, "required", '[');
    for (size_t i = 0; i < COUNT(properties); i++) {
        if (!properties[i].required || strcmp(properties[i].schema, schema->name) != 0)
            continue;
        rv_put_comma(buf);
        rv_buf_printf(buf, "\"%s\"", properties[i].name);
    }
    rv_buf_add_char(buf, ']');
    /* An answer may get properties in a later version, so its schema forbids none. */
    if (open || schema->closed)
        rv_put_bool(buf, "additionalProperties", open);
    rv_buf_add_char(buf, '}');
}

static void words_put(struct rv_buf *buf, const struct rv_words *set)
{
    rv_put_open_in(buf, set->name, '{');
    plain_put(buf, "type", "string");
    plain_put(buf, "description", set->description);
    rv_put_open_in(buf, "enum", '[');
    for (size_t i = 0; set->words[i] != NULL; i++) {
        rv_put_comma(buf);
        rv_buf_printf(buf, "\"%s\"", set->words[i]);
    }
    rv_buf_add_char(buf, ']');
    rv_buf_add_char(buf, '}');
}

static void parameter_put(struct rv_buf *buf, struct rv_str id)
{
    for (size_t i = 0; i < COUNT(parameters); i++) {
        const struct parameter *parameter = &parameters[i];
        if (!rv_str_is(id, parameter->id))
            continue;
        struct rv_str type = rv_str_of(parameter->type);
        rv_put_open(buf, '{');
        plain_put(buf, "name", parameter->name);
        plain_put(buf, "in", parameter->place);
        rv_put_bool(buf, "required", strcmp(parameter->place, "path") == 0);
        plain_put(buf, "description", parameter->description);
        rv_put_open_in(buf, "schema", '{');
        type_put(buf, type);
        rv_buf_add_char(buf, '}');
        if (rv_str_is(type, "boolean") || rv_str_begins(type, RV_STR("integer")))
            rv_put_raw_if(buf, "example", rv_str_of(parameter->example));
        else
            plain_put(buf, "example", parameter->example);
        rv_buf_add_char(buf, '}');
    }
}

static void parameters_put(struct rv_buf *buf, const struct rv_route *route)
{
    const char *rest = route->parameters;
    rv_put_open_in(buf, "parameters", '[');
    for (const char *at = strchr(route->pattern, '{'); at != NULL; at = strchr(at + 1, '{'))
        parameter_put(buf, (struct rv_str){at + 1, strcspn(at + 1, "}")});
    for (struct rv_str word = word_next(&rest); word.len > 0; word = word_next(&rest))
        parameter_put(buf, word);
    rv_buf_add_char(buf, ']');
}

/* `schema` NULL: no JSON. */
static void content_put(struct rv_buf *buf, const char *type, const char *schema)
{
    rv_put_open_in(buf, "content", '{');
    rv_put_open_in(buf, type, '{');
    rv_put_open_in(buf, "schema", '{');
    if (schema != NULL)
        reference_put(buf, rv_str_of(schema));
    rv_buf_add_char(buf, '}');
    for (size_t i = 0; schema != NULL && i < COUNT(schemas); i++)
        if (strcmp(schemas[i].name, schema) == 0)
            rv_put_raw_if(buf, "example", rv_str_of(schemas[i].example));
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
}

static void body_put(struct rv_buf *buf, const char *body)
{
    bool optional = body[0] == '?';
    rv_put_open_in(buf, "requestBody", '{');
    rv_put_bool(buf, "required", !optional);
    if (strcmp(body, "definition") != 0) {
        content_put(buf, "application/json", body + optional);
    } else {
        rv_put_open_in(buf, "content", '{');
        rv_put_open_in(buf, "application/yaml", '{');
        rv_put_open_in(buf, "schema", '{');
        plain_put(buf, "type", "string");
        plain_put(buf, "description",
                  "The definition in YAML or JSON, at most 256 KiB; see docs/guide/workflows.md.");
        rv_buf_add_char(buf, '}');
        plain_put(buf, "example", definition_example);
        rv_buf_add_char(buf, '}');
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, '}');
}

static void header_put(struct rv_buf *buf, const char *name, const char *type,
                       const char *description)
{
    rv_put_open_in(buf, "headers", '{');
    rv_put_open_in(buf, name, '{');
    plain_put(buf, "description", description);
    rv_put_open_in(buf, "schema", '{');
    plain_put(buf, "type", type);
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
}

static void answers_put(struct rv_buf *buf, const struct rv_route *route)
{
    const char *rest = route->statuses;
    bool json = strchr(route->answer, '/') == NULL;
    rv_put_open_in(buf, "responses", '{');
    for (struct rv_str word = word_next(&rest); word.len > 0; word = word_next(&rest)) {
        bool created = rv_str_is(word, "201");
        bool empty = rv_str_is(word, "204");
        char status[8] = "";
        memcpy(status, word.at, word.len < sizeof status ? word.len : 0);
        rv_put_open_in(buf, status, '{');
        plain_put(buf, "description", created ? "Created." : empty ? "No content." : "Success.");
        if (created && route->location != NULL)
            header_put(buf, "Location", "string", route->location);
        if (!empty)
            content_put(buf, json ? "application/json" : route->answer,
                        json ? route->answer : NULL);
        rv_buf_add_char(buf, '}');
    }
    rv_put_open_in(buf, "default", '{');
    plain_put(buf, "description", "The request was refused; `detail` gives the reason.");
    header_put(buf, "Retry-After", "integer", "With 503: seconds to wait before a retry.");
    content_put(buf, "application/problem+json", "Problem");
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
}

static void roles_put(struct rv_buf *buf, unsigned roles)
{
    rv_put_open_in(buf, "x-reeve-roles", '[');
    for (unsigned i = 0; i < RV_ROLE_COUNT && roles != RV_ANYBODY; i++) {
        if ((roles >> i & 1) == 0 && i != RV_ROLE_ADMIN)
            continue;
        rv_put_comma(buf);
        rv_buf_printf(buf, "\"%s\"", rv_role_text((enum rv_role)i));
    }
    rv_buf_add_char(buf, ']');
}

static void operation_put(struct rv_buf *buf, const struct rv_route *route)
{
    char method[8] = "";
    rv_assert(strlen(route->method) < sizeof method);
    for (size_t i = 0; route->method[i] != '\0' && i + 1 < sizeof method; i++)
        method[i] = (char)(route->method[i] - 'A' + 'a');
    rv_put_open_in(buf, method, '{');
    plain_put(buf, "operationId", route->id);
    rv_put_open_in(buf, "tags", '[');
    rv_buf_printf(buf, "\"%s\"", route->group);
    rv_buf_add_char(buf, ']');
    plain_put(buf, "summary", route->summary);
    plain_put(buf, "description", route->description);
    roles_put(buf, route->roles);
    if (route->roles == RV_ANYBODY) {
        rv_put_open_in(buf, "security", '[');
        rv_buf_add_char(buf, ']');
    }
    parameters_put(buf, route);
    if (route->body != NULL)
        body_put(buf, route->body);
    answers_put(buf, route);
    rv_buf_add_char(buf, '}');
}

/* A path once, with all its methods, where it is first. */
static void path_put(struct rv_buf *buf, const struct rv_route *first)
{
    for (const struct rv_route *route = rv_routes(); route != first; route++)
        if (strcmp(route->pattern, first->pattern) == 0)
            return;
    rv_put_open_in(buf, first->pattern, '{');
    for (const struct rv_route *route = first; route->method != NULL; route++)
        if (strcmp(route->pattern, first->pattern) == 0)
            operation_put(buf, route);
    rv_buf_add_char(buf, '}');
}

static void info_put(struct rv_buf *buf)
{
    plain_put(buf, "openapi", "3.1.0");
    rv_put_open_in(buf, "info", '{');
    plain_put(buf, "title", "Reeve");
    plain_put(buf, "version", RV_VERSION);
    plain_put(buf, "description", about);
    rv_buf_add_char(buf, '}');
    rv_put_raw_if(buf, "servers",
                  RV_STR("[{\"url\":\"/\",\"description\":\"The server that returned this "
                         "description; its default address is http://127.0.0.1:7733.\"}]"));
    rv_put_open_in(buf, "tags", '[');
    for (size_t i = 0; i < COUNT(groups); i++) {
        rv_put_open(buf, '{');
        plain_put(buf, "name", groups[i].name);
        plain_put(buf, "description", groups[i].description);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    rv_put_raw_if(buf, "security", RV_STR("[{\"key\":[]},{}]"));
}

static void components_put(struct rv_buf *buf)
{
    rv_put_open_in(buf, "components", '{');
    rv_put_open_in(buf, "securitySchemes", '{');
    rv_put_open_in(buf, "key", '{');
    plain_put(buf, "type", "http");
    plain_put(buf, "scheme", "bearer");
    plain_put(
        buf, "description",
        "An API key. `x-reeve-roles` of an operation lists the roles that the operation accepts.");
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
    rv_put_open_in(buf, "schemas", '{');
    for (size_t i = 0; i < COUNT(schemas); i++)
        schema_put(buf, &schemas[i]);
    for (const struct rv_words *set = rv_openapi_words(); set->name != NULL; set++)
        words_put(buf, set);
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
}

static void description_put(struct rv_buf *buf)
{
    rv_put_open(buf, '{');
    info_put(buf);
    rv_put_open_in(buf, "paths", '{');
    for (const struct rv_route *route = rv_routes(); route->method != NULL; route++)
        path_put(buf, route);
    rv_buf_add_char(buf, '}');
    components_put(buf);
    rv_buf_add_char(buf, '}');
}

/* It takes a thousand times as long as any other answer, and anybody may ask for it. */
void rv_render_openapi(struct rv_answer *answer, const struct rv_call *call)
{
    struct rv_buf *kept = answer->description;
    (void)call;
    if (kept == NULL) {
        description_put(&answer->body);
        return;
    }
    if (kept->failed != RV_OK || kept->len == 0) {
        rv_buf_reset(kept);
        description_put(kept);
    }
    if (kept->failed == RV_OK)
        rv_buf_add_str(&answer->body, rv_buf_str(kept));
    else
        answer->body.failed = kept->failed;
}

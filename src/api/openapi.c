/* /openapi.json: the API as OpenAPI 3.1 has it, written from the table of routes, tbl/operation.def
 * and tbl/schema.def. A test holds real answers against it. */
#include "api/answer.h"
#include "api/openapi.h"
#include "api/put.h"
#include "api/route.h"

#ifndef RV_VERSION
#error "the build says which version this is"
#endif

static const struct rv_operation operations[] = {
#define RV_OPERATION(method, pattern, summary, query, body, statuses, answer)                      \
    {method, pattern, summary, query, body, statuses, answer},
#include "api/tbl/operation.def"
#undef RV_OPERATION
};

struct member {
    const char *schema;
    const char *name;
    const char *type;
    bool required;
};

static const struct member members[] = {
#define RV_MEMBER(schema, name, type, required) {#schema, name, type, required},
#include "api/tbl/schema.def"
#undef RV_MEMBER
};

enum { MEMBERS = sizeof members / sizeof members[0] };
#define INSTANT "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\\\.[0-9]{3}Z$"

const struct rv_operation *rv_operation_of(const struct rv_route *route)
{
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        if (strcmp(operations[i].method, route->method) == 0 &&
            strcmp(operations[i].pattern, route->pattern) == 0)
            return &operations[i];
    return NULL;
}

static struct rv_str word_next(const char **at)
{
    while (**at == ' ')
        (*at)++;
    const char *from = *at;
    while (**at != '\0' && **at != ' ')
        (*at)++;
    return (struct rv_str){from, (size_t)(*at - from)};
}

static void reference_put(struct rv_buf *buf, struct rv_str schema)
{
    rv_buf_printf(buf, "{\"$ref\":\"#/components/schemas/%.*s\"}", RV_STR_FMT(schema));
}

/* Of one item; see tbl/schema.def. */
static void type_put(struct rv_buf *buf, struct rv_str type)
{
    bool many = memchr(type.at, ' ', type.len) != NULL;
    if (rv_str_is(type, "any")) {
        rv_buf_lit(buf, "{}");
    } else if (rv_str_is(type, "instant")) {
        rv_buf_lit(buf,
                   "{\"type\":\"string\",\"format\":\"date-time\",\"pattern\":\"" INSTANT "\"}");
    } else if (rv_str_is(type, "text?")) {
        rv_buf_lit(buf, "{\"type\":[\"string\",\"null\"]}");
    } else if (rv_str_is(type, "string") || rv_str_is(type, "integer") ||
               rv_str_is(type, "boolean")) {
        rv_buf_printf(buf, "{\"type\":\"%.*s\"}", RV_STR_FMT(type));
    } else if (many) {
        const char *rest = type.at;
        rv_buf_lit(buf, "{\"type\":\"string\",\"enum\":[");
        for (struct rv_str word = word_next(&rest); word.len > 0; word = word_next(&rest))
            rv_buf_printf(buf, "%s\"%.*s\"", word.at == type.at ? "" : ",", RV_STR_FMT(word));
        rv_buf_lit(buf, "]}");
    } else {
        reference_put(buf, type);
    }
}

static void member_put(struct rv_buf *buf, const struct member *member)
{
    struct rv_str type = rv_str_of(member->type);
    rv_put_name(buf, member->name);
    if (type.at[0] != '[') {
        type_put(buf, type);
        return;
    }
    rv_buf_lit(buf, "{\"type\":\"array\",\"items\":");
    type_put(buf, (struct rv_str){type.at + 1, type.len - 2});
    rv_buf_add_char(buf, '}');
}

/* The members from `first` on that belong to its schema; gives the next one's first. */
static size_t schema_put(struct rv_buf *buf, size_t first)
{
    size_t end = first;
    bool open = false;
    rv_put_open_in(buf, members[first].schema, '{');
    rv_put_text(buf, "type", RV_STR("object"));
    rv_put_open_in(buf, "properties", '{');
    for (; end < MEMBERS && strcmp(members[end].schema, members[first].schema) == 0; end++) {
        if (strcmp(members[end].name, "...") == 0)
            open = true;
        else
            member_put(buf, &members[end]);
    }
    rv_buf_add_char(buf, '}');
    rv_put_open_in(buf, "required", '[');
    for (size_t i = first; i < end; i++) {
        if (!members[i].required)
            continue;
        rv_put_comma(buf);
        rv_buf_printf(buf, "\"%s\"", members[i].name);
    }
    rv_buf_add_char(buf, ']');
    rv_put_bool(buf, "additionalProperties", open);
    rv_buf_add_char(buf, '}');
    return end;
}

static void parameter_put(struct rv_buf *buf, struct rv_str name, const char *in)
{
    rv_put_open(buf, '{');
    rv_put_text(buf, "name", name);
    rv_put_text(buf, "in", rv_str_of(in));
    rv_put_bool(buf, "required", in[0] == 'p');
    rv_put_open_in(buf, "schema", '{');
    rv_put_text(buf, "type", RV_STR("string"));
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
}

static void parameters_put(struct rv_buf *buf, const struct rv_operation *operation)
{
    const char *rest = operation->query;
    rv_put_open_in(buf, "parameters", '[');
    for (const char *at = strchr(operation->pattern, '{'); at != NULL; at = strchr(at + 1, '{'))
        parameter_put(buf, (struct rv_str){at + 1, strcspn(at + 1, "}")}, "path");
    for (struct rv_str word = word_next(&rest); word.len > 0; word = word_next(&rest))
        parameter_put(buf, word, word.at[0] >= 'A' && word.at[0] <= 'Z' ? "header" : "query");
    rv_buf_add_char(buf, ']');
}

static void content_put(struct rv_buf *buf, const char *type, struct rv_str schema)
{
    rv_put_open_in(buf, "content", '{');
    rv_put_open_in(buf, type, '{');
    rv_put_name(buf, "schema");
    if (schema.at != NULL)
        reference_put(buf, schema);
    else
        rv_buf_lit(buf, "{}");
    rv_buf_add_char(buf, '}');
    rv_buf_add_char(buf, '}');
}

static void answers_put(struct rv_buf *buf, const struct rv_operation *operation)
{
    const char *rest = operation->statuses;
    bool json = strchr(operation->answer, '/') == NULL;
    rv_put_open_in(buf, "responses", '{');
    for (struct rv_str word = word_next(&rest); word.len > 0; word = word_next(&rest)) {
        char status[8] = "";
        memcpy(status, word.at, word.len < sizeof status ? word.len : 0);
        rv_put_open_in(buf, status, '{');
        rv_put_text(buf, "description", rv_str_of(operation->summary));
        content_put(buf, json ? "application/json" : operation->answer,
                    json ? rv_str_of(operation->answer) : RV_STR_NONE);
        rv_buf_add_char(buf, '}');
    }
    rv_put_open_in(buf, "default", '{');
    rv_put_text(buf, "description", RV_STR("It is refused; detail says why, and what to do"));
    content_put(buf, "application/problem+json", RV_STR("Problem"));
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
    const struct rv_operation *operation = rv_operation_of(route);
    char method[8] = "";
    for (size_t i = 0; route->method[i] != '\0' && i + 1 < sizeof method; i++)
        method[i] = (char)(route->method[i] - 'A' + 'a');
    if (operation == NULL)
        return; /* a test finds it */
    rv_put_open_in(buf, method, '{');
    rv_put_text(buf, "summary", rv_str_of(operation->summary));
    roles_put(buf, route->roles);
    if (route->roles == RV_ANYBODY) {
        rv_put_open_in(buf, "security", '[');
        rv_buf_add_char(buf, ']');
    }
    parameters_put(buf, operation);
    if (operation->body != NULL) {
        bool definition = strcmp(operation->body, "definition") == 0;
        rv_put_open_in(buf, "requestBody", '{');
        content_put(buf, definition ? "application/yaml" : "application/json",
                    definition ? RV_STR_NONE : rv_str_of(operation->body));
        rv_buf_add_char(buf, '}');
    }
    answers_put(buf, operation);
    rv_buf_add_char(buf, '}');
}

/* A path once, with all its methods, where it stands first. */
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

void rv_render_openapi(struct rv_answer *answer, const struct rv_call *call)
{
    struct rv_buf *buf = &answer->body;
    (void)call;
    rv_buf_lit(buf, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Reeve\",\"version\":\"" RV_VERSION
                    "\"},\"security\":[{\"key\":[]},{}],\"paths\":{");
    for (const struct rv_route *route = rv_routes(); route->method != NULL; route++)
        path_put(buf, route);
    rv_buf_lit(buf, "},\"components\":{\"securitySchemes\":{\"key\":{\"type\":\"http\","
                    "\"scheme\":\"bearer\"}},\"schemas\":{");
    for (size_t i = 0; i < MEMBERS;)
        i = schema_put(buf, i);
    rv_buf_lit(buf, "}}}");
}

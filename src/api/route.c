#include "api/route.h"

#include "api/counts.h"
#include "base/assert.h"
#include "base/suggest.h"

#include <assert.h>

/* A row without roles does not compile. */
#define SUBMITTER RV_MAY(RV_ROLE_SUBMITTER)
#define AGENT RV_MAY(RV_ROLE_AGENT)
#define AUTHOR RV_MAY(RV_ROLE_AUTHOR)
#define OPERATOR RV_MAY(RV_ROLE_OPERATOR)
#define ADMIN RV_MAY(RV_ROLE_ADMIN)
/* Who reads all that there is, and who reads tasks. */
#define READER (OPERATOR | RV_MAY(RV_ROLE_OBSERVER))
#define TASKS (READER | SUBMITTER)
#define HOLDER (TASKS | AGENT | AUTHOR | ADMIN)
#define ANYBODY RV_ANYBODY

static const struct rv_route routes[] = {
#define RV_OPERATION(method, pattern, roles, way, kind, parse, render, ...)                        \
    {                                                                                              \
        #method,                                                                                   \
        pattern,                                                                                   \
        roles,                                                                                     \
        RV_WAY_##way,                                                                              \
        RV_CALL_##kind,                                                                            \
        rv_parse_##parse,                                                                          \
        rv_render_##render,                                                                        \
        __VA_ARGS__},
#include "api/tbl/operation.def"
#undef RV_OPERATION
    {.method = NULL},
};

static_assert(sizeof routes / sizeof routes[0] <= RV_ROUTES_MAX,
              "RV_ROUTES_MAX is too small: raise it in counts.h");

const struct rv_route *rv_routes(void)
{
    return routes;
}

static struct rv_str next_segment(const char **pattern)
{
    rv_assert(**pattern == '/');
    const char *at = *pattern + 1; /* past the slash */
    size_t len = 0;
    while (at[len] != '\0' && at[len] != '/')
        len++;
    *pattern = at + len;
    return (struct rv_str){at, len};
}

static bool route_matches(const struct rv_route *route, struct rv_request_line *request)
{
    const char *rest = route->pattern;
    rv_assert(request->segments_count <= RV_SEGMENTS_MAX);
    request->params_count = 0;
    for (size_t i = 0; i < request->segments_count; i++) {
        if (*rest == '\0')
            return false;
        struct rv_str wanted = next_segment(&rest);
        if (wanted.at[0] == '{')
            request->params[request->params_count++] = request->segments[i];
        else if (!rv_str_eq(wanted, request->segments[i]))
            return false;
    }
    return *rest == '\0';
}

static bool not_found(struct rv_parser *parser, struct rv_str path)
{
    const char *patterns[sizeof routes / sizeof routes[0]];
    size_t count = 0;
    for (const struct rv_route *route = routes; route->method != NULL; route++)
        patterns[count++] = route->pattern;
    rv_assert(count < sizeof patterns / sizeof patterns[0]);
    patterns[count] = NULL;
    const char *near = rv_suggest(path, patterns);
    return rv_refuse_http(parser, 404, "\"%.*s\" does not exist%s%s%s", RV_STR_FMT(path),
                          near ? "; did you mean \"" : "; GET /openapi.json lists the paths",
                          near ? near : "", near ? "\"?" : "");
}

/* Methods as the header Allow wants them, each once. */
struct methods {
    char text[64];
    size_t len;
};

static void methods_add(struct methods *methods, const char *method)
{
    size_t len = strlen(method);
    bool there = methods->len > 0 && strstr(methods->text, method) != NULL;
    if (there || methods->len + len + 3 > sizeof methods->text)
        return;
    if (methods->len > 0) {
        memcpy(methods->text + methods->len, ", ", 2);
        methods->len += 2;
    }
    memcpy(methods->text + methods->len, method, len + 1);
    methods->len += len;
}

/* Those of the routes that match the request, or of all: NULL. Every path has OPTIONS, and where
 * there is GET there is HEAD (RFC 9110, 9.3.2). */
static struct methods methods_of(struct rv_request_line *request)
{
    struct methods methods = {.len = 0};
    for (const struct rv_route *route = routes; route->method != NULL; route++) {
        if (request != NULL && !route_matches(route, request))
            continue;
        methods_add(&methods, route->method);
        if (strcmp(route->method, "GET") == 0)
            methods_add(&methods, "HEAD");
    }
    if (methods.len > 0)
        methods_add(&methods, "OPTIONS");
    return methods;
}

/* OPTIONS is answered with the methods alone: not refused, though no route. */
static bool options_tell(struct rv_parser *parser, struct rv_request_line *request)
{
    bool all = rv_str_is(request->path, "*");
    struct methods methods = methods_of(all ? NULL : request);
    if (methods.len == 0)
        return not_found(parser, request->path);
    parser->problem = (struct rv_problem){.status = 204};
    parser->problem.allow = rv_arena_str(parser->arena, (struct rv_str){methods.text, methods.len});
    return false;
}

/* 501 for a method that no path has, 405 for one that only this path has not (RFC 9110, 9.1). */
static bool method_refuse(struct rv_parser *parser, struct rv_str method,
                          struct rv_request_line *request)
{
    struct methods here = methods_of(request), all = methods_of(NULL);
    bool known = false;
    for (const struct rv_route *route = routes; route->method != NULL; route++)
        known = known || rv_str_is(method, route->method);
    if (!known)
        return rv_refuse_http(parser, 501,
                              "the method %.*s is not implemented; supported methods: %s",
                              RV_STR_FMT(method), all.text);
    if (here.len == 0)
        return not_found(parser, request->path);
    struct rv_str allow = rv_arena_str(parser->arena, (struct rv_str){here.text, here.len});
    rv_refuse_http(parser, 405, "%.*s is not allowed for \"%.*s\"; use %.*s", RV_STR_FMT(method),
                   RV_STR_FMT(request->path), RV_STR_FMT(allow));
    parser->problem.allow = allow;
    return false;
}

const struct rv_route *rv_route_match(struct rv_str method, struct rv_request_line *request)
{
    if (rv_str_is(method, "HEAD"))
        method = RV_STR("GET");
    for (const struct rv_route *route = routes; route->method != NULL; route++)
        if (rv_str_is(method, route->method) && route_matches(route, request))
            return route;
    return NULL;
}

bool rv_route_refuse(struct rv_parser *parser, struct rv_str method,
                     struct rv_request_line *request)
{
    if (rv_str_is(method, "OPTIONS"))
        return options_tell(parser, request);
    return method_refuse(parser, rv_str_is(method, "HEAD") ? RV_STR("GET") : method, request);
}

const struct rv_route *rv_route_find(struct rv_parser *parser, struct rv_str method,
                                     struct rv_request_line *request)
{
    const struct rv_route *route = rv_route_match(method, request);
    if (route == NULL)
        (void)rv_route_refuse(parser, method, request);
    return route;
}

#include "api/problem.h"

#include "api/put.h"

struct phrase {
    int status;
    const char *text;
};

static const struct phrase phrases[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {409, "Conflict"},
    {410, "Gone"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {422, "Unprocessable Content"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

const char *rv_http_phrase(int status)
{
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status)
            return phrases[i].text;
    return "Error";
}

/* A stable name for programs; problems of HTTP alone are fully told by their status. */
static const char *problem_type(enum rv_err err)
{
    static const char *const types[RV_ERR_COUNT] = {
#define TYPE(name, family, text, http, exit_code) [RV_ERR_##name] = "urn:reeve:error:" #name,
        RV_ERR_TABLE(TYPE)
#undef TYPE
    };
    return (unsigned)err < RV_ERR_COUNT && types[err] ? types[err] : "about:blank";
}

void rv_problem_write(struct rv_buf *buf, const struct rv_problem *problem)
{
    const char *title = problem->err ? rv_err_text(problem->err) : rv_http_phrase(problem->status);
    rv_put_open(buf, '{');
    rv_put_text(buf, "type", rv_str_of(problem_type(problem->err)));
    rv_put_text(buf, "title", rv_str_of(title));
    rv_put_int(buf, "status", problem->status);
    if (problem->detail.at != NULL)
        rv_put_text(buf, "detail", problem->detail);
    if (problem->file.at != NULL) {
        rv_put_text(buf, "file", problem->file);
        rv_put_int(buf, "line", problem->line);
        rv_put_int(buf, "column", problem->column);
    }
    rv_buf_add_char(buf, '}');
}

#include "api/problem.h"

#include "api/put.h"
#include "http/http.h"

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

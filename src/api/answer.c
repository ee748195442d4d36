#include "api/answer.h"

#include "api/put.h"
#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"

#ifndef RV_VERSION
#error "RV_VERSION is not defined: build with meson"
#endif

/* All requests of a poll at their largest, and what stands around each. */
#define ANSWER_BYTES_MAX ((size_t)RV_POLL_REQUESTS_MAX * (RV_PAYLOAD_BYTES_MAX + 4096))

void rv_answer_init(struct rv_answer *answer)
{
    *answer = (struct rv_answer){.status = 200};
    rv_buf_init(&answer->body, ANSWER_BYTES_MAX);
}

static void location_add(struct rv_answer *answer, char c)
{
    if (answer->location_len < RV_LOCATION_BYTES_MAX)
        answer->location[answer->location_len++] = c;
}

void rv_answer_locate(struct rv_answer *answer, const char *text)
{
    for (size_t i = 0; text[i] != '\0'; i++)
        location_add(answer, text[i]);
}

void rv_answer_locate_name(struct rv_answer *answer, struct rv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char encoded[RV_PERCENT_BYTES];
        rv_percent_encode(name.at[i], encoded);
        rv_answer_locate(answer, encoded);
    }
}

void rv_answer_locate_task(struct rv_answer *answer, const char *folder, struct rv_task_id id)
{
    char text[RV_ID_TEXT_BYTES];
    rv_answer_locate(answer, folder);
    rv_answer_locate_name(answer, rv_task_text(id, text));
}

void rv_answer_problem(struct rv_answer *answer, const struct rv_problem *problem)
{
    rv_assert(problem->status <= 599);
    rv_buf_reset(&answer->body);
    answer->status = problem->status;
    answer->problem = problem->status >= 400;
    if (answer->problem)
        rv_problem_write(&answer->body, problem);
    answer->content_type = NULL;
    answer->allow = problem->allow;
    answer->location_len = 0;
    answer->retry_after_s = problem->status == 503 ? 1 : 0;
}

bool rv_answer_failed(struct rv_answer *answer, const struct rv_call *call)
{
    if (call->err == RV_OK)
        return false;
    struct rv_problem problem = {.status = rv_err_http(call->err), .err = call->err};
    problem.detail = call->message;
    rv_answer_problem(answer, &problem);
    return true;
}

void rv_render_live(struct rv_answer *answer, const struct rv_call *call)
{
    (void)call;
    rv_buf_lit(&answer->body, "{\"live\":true}");
}

void rv_render_backup(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_BACKUP);
    answer->content_type = "application/vnd.sqlite3";
}

void rv_render_ready(struct rv_answer *answer, const struct rv_call *call)
{
    (void)call;
    rv_buf_lit(&answer->body, "{\"ready\":true}");
}

void rv_render_version(struct rv_answer *answer, const struct rv_call *call)
{
    (void)call;
    rv_buf_lit(&answer->body, "{\"name\":\"reeve\",\"version\":\"" RV_VERSION "\",\"api\":\"v1\"}");
}

void rv_render_publish(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_PUBLISH);
    const struct rv_workflow_row *row = &call->u.publish.row;
    answer->status = call->u.publish.known ? 200 : 201;
    if (answer->status == 201) {
        rv_answer_locate(answer, "/v1/workflows/");
        rv_answer_locate_name(answer, row->space);
        rv_answer_locate(answer, "/");
        rv_answer_locate_name(answer, row->name);
        rv_answer_locate(answer, "?version=");
        rv_answer_locate_name(answer, row->version);
    }
    rv_put_open(&answer->body, '{');
    rv_put_workflow(&answer->body, row);
    rv_put_text(&answer->body, "hash", row->hash);
    if (call->u.publish.warnings_count > 0) {
        rv_put_open_in(&answer->body, "warnings", '[');
        for (size_t i = 0; i < call->u.publish.warnings_count; i++) {
            if (i > 0)
                rv_buf_add_char(&answer->body, ',');
            rv_json_write_string(&answer->body, call->u.publish.warnings[i]);
        }
        rv_buf_add_char(&answer->body, ']');
    }
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_raise(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_RAISE);
    answer->status = call->u.raise.known ? 200 : 201;
    rv_put_open(&answer->body, '{');
    rv_put_task(&answer->body, "alert", (struct rv_task_id){call->u.raise.alert});
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_ack(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_ACK);
    rv_put_open(&answer->body, '{');
    rv_put_task(&answer->body, "alert", (struct rv_task_id){call->u.ack.alert});
    rv_put_bool(&answer->body, "acknowledged", true);
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_workflow(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_WORKFLOWS);
    const struct rv_call_list *list = &call->u.list;
    rv_assert(list->count > 0);
    const struct rv_workflow_row *row = &list->workflows[0];
    rv_put_open(&answer->body, '{');
    rv_put_workflow(&answer->body, row);
    rv_put_text(&answer->body, "hash", row->hash);
    rv_put_instant_if(&answer->body, "publishedAt", row->published_at);
    rv_put_raw_if(&answer->body, "definition", row->source);
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_workflows(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_WORKFLOWS);
    const struct rv_call_list *list = &call->u.list;
    struct rv_buf *buf = &answer->body;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "workflows", '[');
    for (size_t i = 0; i < list->count; i++) {
        rv_put_open(buf, '{');
        rv_put_workflow(buf, &list->workflows[i]);
        rv_put_text(buf, "hash", list->workflows[i].hash);
        rv_put_instant_if(buf, "publishedAt", list->workflows[i].published_at);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    if (list->count == list->limit)
        rv_put_int(buf, "next", (int64_t)(list->skip + list->count));
    rv_buf_add_char(buf, '}');
}

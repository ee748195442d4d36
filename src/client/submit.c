#include "client/submit.h"

#include "base/limits.h"
#include "json/json.h"

enum { WHY_BYTES_MAX = 300, ANSWER_DEPTH_MAX = RV_JSON_DEPTH_MAX + 8 };

static void member_begin(struct rv_buf *buf, const char *name)
{
    rv_buf_printf(buf, ",\"%s\":", name);
}

static void member_text(struct rv_buf *buf, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    member_begin(buf, name);
    rv_json_write_string(buf, text);
}

static void member_json(struct rv_buf *buf, const char *name, struct rv_str json)
{
    if (json.at == NULL)
        return;
    member_begin(buf, name);
    rv_buf_add_str(buf, json);
}

static bool json_wrong(struct rv_str text, const char **ret_why)
{
    struct rv_json_fault fault = {.message = "no JSON"};
    if (text.at == NULL || rv_json_scan(text, RV_JSON_DEPTH_MAX, &fault) == RV_OK)
        return false;
    *ret_why = fault.message;
    return true;
}

enum rv_err rv_submit_write(struct rv_buf *buf, const struct rv_submit_item *item,
                            const char **ret_why)
{
    if (json_wrong(item->input, ret_why) || json_wrong(item->reply_to, ret_why) ||
        json_wrong(item->tags, ret_why))
        return RV_ERR_INVALID;
    rv_buf_lit(buf, "{\"workflow\":");
    rv_json_write_string(buf, item->workflow);
    member_json(buf, "input", item->input);
    member_text(buf, "key", item->key);
    if (item->priority >= 0) {
        member_begin(buf, "priority");
        rv_buf_add_int(buf, item->priority);
    }
    member_text(buf, "correlationId", item->correlation_id);
    member_text(buf, "traceparent", item->traceparent);
    member_text(buf, "tracestate", item->tracestate);
    member_json(buf, "replyTo", item->reply_to);
    member_json(buf, "tags", item->tags);
    rv_buf_lit(buf, "}");
    if (buf->failed != RV_OK)
        *ret_why = rv_err_text(buf->failed);
    return buf->failed;
}

static struct rv_str problem_of(struct rv_arena *arena, const struct rv_json *object)
{
    struct rv_str title = rv_json_str(rv_json_get(object, RV_STR("title")));
    struct rv_str detail = rv_json_str(rv_json_get(object, RV_STR("detail")));
    const char *between = title.len > 0 && detail.len > 0 ? ": " : "";
    return rv_arena_printf(arena, "%.*s%s%.*s", RV_STR_FMT(title), between, RV_STR_FMT(detail));
}

struct rv_str rv_submit_problem(struct rv_arena *arena, struct rv_str body)
{
    struct rv_json value;
    struct rv_str why = RV_STR_NONE;
    if (rv_json_parse(arena, body, ANSWER_DEPTH_MAX, &value, NULL) == RV_OK)
        why = problem_of(arena, &value);
    if (why.len == 0)
        why = body;
    if (why.len > WHY_BYTES_MAX)
        why.len = WHY_BYTES_MAX;
    return why;
}

/* Only the server can make an answer INVALID; whoever has no memory for it may ask again. */
static enum rv_err answer_parse(struct rv_arena *arena, struct rv_str body,
                                struct rv_json *ret_value)
{
    enum rv_err err = rv_json_parse(arena, body, ANSWER_DEPTH_MAX, ret_value, NULL);
    return err == RV_OK || err == RV_ERR_MEMORY ? err : RV_ERR_INVALID;
}

/* What was made on the arena is whole. */
static enum rv_err answer_whole(const struct rv_arena *arena)
{
    return arena->refused == RV_ERR_MEMORY ? RV_ERR_MEMORY : RV_OK;
}

static void receipt_read(struct rv_arena *arena, int status, const struct rv_json *object,
                         struct rv_submit_receipt *ret_receipt)
{
    *ret_receipt = (struct rv_submit_receipt){
        .status = status,
        .task = rv_json_str(rv_json_get(object, RV_STR("task"))),
        .state = rv_json_str(rv_json_get(object, RV_STR("state"))),
        .why = problem_of(arena, object)};
}

enum rv_err rv_submit_read(struct rv_arena *arena, int status, struct rv_str body,
                           struct rv_submit_receipt *ret_receipt)
{
    bool accepted = status >= 200 && status < 300;
    struct rv_json value;
    enum rv_err err = answer_parse(arena, body, &value);
    if (err == RV_ERR_INVALID && !accepted) {
        *ret_receipt = (struct rv_submit_receipt){.status = status,
                                                  .why = rv_submit_problem(arena, body)};
        return answer_whole(arena);
    }
    if (err != RV_OK)
        return err;
    struct rv_submit_receipt receipt;
    receipt_read(arena, status, &value, &receipt);
    if (accepted && receipt.task.len == 0)
        return RV_ERR_INVALID;
    *ret_receipt = receipt;
    return answer_whole(arena);
}

enum rv_err rv_submit_read_batch(struct rv_arena *arena, struct rv_str body, size_t count,
                                 struct rv_submit_receipt *ret_receipts)
{
    struct rv_json value;
    enum rv_err err = answer_parse(arena, body, &value);
    if (err != RV_OK)
        return err;
    const struct rv_json *items = rv_json_get(&value, RV_STR("results"));
    if (items == NULL)
        items = rv_json_get(&value, RV_STR("tasks"));
    if (items == NULL || items->type != RV_JSON_ARRAY || items->len != count)
        return RV_ERR_INVALID;
    for (size_t i = 0; i < count; i++) {
        const struct rv_json *item = &items->u.items[i];
        bool accepted = rv_json_str(rv_json_get(item, RV_STR("task"))).len > 0;
        int64_t status = accepted ? 201 : 422;
        const struct rv_json *said = rv_json_get(item, RV_STR("status"));
        if (said != NULL && rv_json_int(said, &status) && (status < 100 || status > 599))
            return RV_ERR_INVALID;
        receipt_read(arena, (int)status, item, &ret_receipts[i]);
        const struct rv_json *error = rv_json_get(item, RV_STR("error"));
        if (error != NULL)
            ret_receipts[i].why = problem_of(arena, error);
    }
    return answer_whole(arena);
}

enum rv_err rv_submit_read_task(struct rv_arena *arena, struct rv_str body,
                                struct rv_submit_progress *ret_progress)
{
    struct rv_json value;
    enum rv_err err = answer_parse(arena, body, &value);
    if (err != RV_OK)
        return err;
    struct rv_str state = rv_json_str(rv_json_get(&value, RV_STR("state")));
    const struct rv_json *said = rv_json_get(&value, RV_STR("revision"));
    int64_t revision = -1;
    if (state.len == 0 || (said != NULL && !rv_json_int(said, &revision)))
        return RV_ERR_INVALID;
    *ret_progress = (struct rv_submit_progress){state, revision};
    return RV_OK;
}

bool rv_submit_ended(struct rv_str state)
{
    return rv_str_is(state, "processed") || rv_str_is(state, "compensated") ||
           rv_str_is(state, "cancelled") || rv_str_is(state, "error");
}

#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"

void rv_render_retry(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_RETRY);
    rv_put_open(&answer->body, '{');
    rv_put_task(&answer->body, "alert", (struct rv_task_id){call->u.retry.alert});
    rv_put_bool(&answer->body, "retried", true);
    rv_buf_add_char(&answer->body, '}');
}

/* The path of a webhook may be a secret: its destination says enough. */
static void delivery_put(struct rv_buf *buf, const struct rv_delivery *delivery)
{
    bool waits = delivery->next <= delivery->last;
    const char *state = delivery->given_up ? "undeliverable" : waits ? "waiting" : "delivered";
    rv_put_open_in(buf, "delivery", '{');
    rv_put_text(buf, "destination", delivery->destination);
    rv_put_text(buf, "state", rv_str_of(state));
    rv_put_int(buf, "delivered", delivery->next - 1);
    if (waits) {
        rv_put_int(buf, "failures", delivery->failures);
        rv_put_instant_if(buf, "waitingSince", delivery->since);
        if (!delivery->given_up)
            rv_put_instant_if(buf, "dueAt", delivery->due_at);
    }
    rv_buf_add_char(buf, '}');
}

void rv_render_messages(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_MESSAGES);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_messages *messages = &call->u.messages;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "messages", '[');
    for (size_t i = 0; i < messages->count; i++) {
        rv_put_comma(buf);
        rv_buf_add_str(buf, messages->rows[i].body);
    }
    rv_buf_add_char(buf, ']');
    if (messages->count == messages->limit)
        rv_put_int(buf, "next", messages->rows[messages->count - 1].number);
    rv_put_bool(buf, "over", messages->over);
    if (messages->delivery != NULL)
        delivery_put(buf, messages->delivery);
    rv_buf_add_char(buf, '}');
}

/* A payload may have line ends between its tokens, and each line is one of its own here. */
static void data_put(struct rv_buf *buf, struct rv_str text)
{
    rv_buf_lit(buf, "data: ");
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\n')
            rv_buf_lit(buf, "\ndata: ");
        else if (text.at[i] != '\r')
            rv_buf_add_char(buf, text.at[i]);
    }
    rv_buf_lit(buf, "\n\n");
}

void rv_render_stream(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_MESSAGES);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_messages *messages = &call->u.messages;
    if (messages->count == 0 && messages->over)
        answer->status = 204; /* by its standard the reader does not come again */
    else if (messages->count == 0)
        rv_buf_lit(buf, ":\n\n"); /* says that somebody is there */
    for (size_t i = 0; i < messages->count; i++) {
        const struct rv_message *message = &messages->rows[i];
        rv_buf_printf(buf, "id: %u\nevent: %s\n", message->number,
                      rv_message_kind_text(message->kind));
        data_put(buf, message->body);
    }
}

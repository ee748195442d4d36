/* session_reply.c - replies as they go out: an output, an error, or an error in the place of a
 * reply that the server refused. */
#include "base/assert.h"
#include "base/time.h"
#include "client/session_priv.h"

void rv_reply_begin(struct session_slot *slot)
{
    rv_buf_reset(&slot->reply);
    rv_buf_lit(&slot->reply, "{\"step\":");
    rv_json_write_string(&slot->reply, slot->attempt.step);
    rv_buf_lit(&slot->reply, ",\"token\":");
    rv_json_write_string(&slot->reply, slot->attempt.token);
}

void rv_session_answer(struct rv_session *session, rv_place place)
{
    struct session_slot *slot = &session->slots[place];
    if (slot->reply.failed != RV_OK) {
        rv_session_log(session, RV_LOG_ERROR, "step %.*s: the reply cannot be sent and is lost: %s",
                       RV_STR_FMT(slot->attempt.step), rv_err_text(slot->reply.failed));
        rv_session_release(session, place);
        return;
    }
    rv_assert(slot->state == SLOT_OPEN || slot->state == SLOT_SENT);
    rv_assert(session->waiting.count < session->slot_count);
    slot->state = SLOT_ANSWERED;
    session->waiting.at[session->waiting.count++] = place;
}

void rv_reply_error(struct rv_session *session, rv_place place,
                    const struct rv_session_error *error)
{
    struct rv_buf *item = &session->slots[place].reply;
    rv_buf_lit(item, ",\"error\":{\"type\":");
    rv_json_write_string(item, error->type);
    if (error->title.at != NULL) {
        rv_buf_lit(item, ",\"title\":");
        rv_json_write_string(item, error->title);
    }
    if (error->detail.at != NULL) {
        rv_buf_lit(item, ",\"detail\":");
        rv_json_write_string(item, error->detail);
    }
    if (error->target.at != NULL) {
        rv_buf_lit(item, ",\"target\":");
        rv_json_write_string(item, error->target);
    }
    if (error->status != 0) {
        rv_buf_lit(item, ",\"status\":");
        rv_buf_add_int(item, error->status);
    }
    if (error->transient)
        rv_buf_lit(item, ",\"transient\":true");
    else
        rv_buf_lit(item, ",\"transient\":false");
    if (error->effect_unknown)
        rv_buf_lit(item, ",\"effect\":\"unknown\"");
    else
        rv_buf_lit(item, ",\"effect\":\"none\"");
    if (error->retry_after_ms > 0) {
        rv_buf_lit(item, ",\"retryAfterMs\":");
        rv_buf_add_int(item, rv_retry_after_ms(error->retry_after_ms, 1));
    }
    rv_buf_lit(item, "}}");
    rv_session_answer(session, place);
}

/* The same reply would be refused again. Without any, the step would wait for its complete-by and
 * then be tried again, whatever the agent knows. */
static bool replaceable(const struct session_slot *slot, int status)
{
    return !slot->replaced && (status == 400 || status == 413 || status == 422);
}

void rv_reply_refused(struct rv_session *session, rv_place place, int status, struct rv_str why)
{
    struct session_slot *slot = &session->slots[place];
    rv_assert(slot->state == SLOT_SENT);
    bool again = replaceable(slot, status);
    session->counts.refused++;
    rv_session_log(session, again ? RV_LOG_WARNING : RV_LOG_ERROR,
                   "the server refused the reply for step %.*s: %d %.*s%s",
                   RV_STR_FMT(slot->attempt.step), status, RV_STR_FMT(why),
                   again ? "; the step fails with the error reply-refused" : "");
    if (!again) {
        rv_session_release(session, place);
        return;
    }
    slot->replaced = true;
    session->timers_at = 0;
    rv_reply_begin(slot);
    struct rv_session_error error = {
        .type = RV_STR("reply-refused"), .title = why, .effect_unknown = slot->effect_unknown};
    rv_reply_error(session, place, &error);
}

/* Selections of tasks, and what came of the command for all of them. */
#include "api/answer.h"
#include "api/put.h"
#include "base/assert.h"

static void word_members_put(struct rv_buf *buf, const struct rv_word *word)
{
    rv_put_instant_if(buf, "at", word->at);
    rv_put_text_if(buf, "by", word->by);
    rv_put_text_if(buf, "role", word->role);
    rv_put_text_if(buf, "reason", word->reason);
    rv_buf_add_char(buf, '}');
}

/* Who said it, when and why; nothing for what was not said. */
static void word_put(struct rv_buf *buf, const char *name, const struct rv_word *word)
{
    if (word->at == 0)
        return;
    rv_put_open_in(buf, name, '{');
    word_members_put(buf, word);
}

/* The newest alone, then all that are kept, the oldest first. */
static void holds_put(struct rv_buf *buf, const struct rv_selection *row)
{
    if (row->holds_count == 0)
        return;
    word_put(buf, "held", &rv_selection_held(row)->word);
    rv_put_open_in(buf, "holds", '[');
    for (uint32_t i = 0; i < row->holds_count; i++) {
        rv_put_open(buf, '{');
        rv_put_bool(buf, "pause", row->holds[i].pause);
        word_members_put(buf, &row->holds[i].word);
    }
    rv_buf_add_char(buf, ']');
    if (row->holds_dropped > 0)
        rv_put_int(buf, "holdsDropped", row->holds_dropped);
}

static const char *state_text(const struct rv_selection *row)
{
    if (row->unreadable)
        return "unreadable";
    if (row->begun.at == 0)
        return "selected";
    if (row->ended_at != 0 || row->stopped.at != 0)
        return "ended";
    return row->paused ? "paused" : "running";
}

/* Without the bracket that closes it. */
static void selection_put(struct rv_buf *buf, const struct rv_selection *row)
{
    rv_put_open(buf, '{');
    rv_put_task(buf, "selection", row->id);
    rv_put_text(buf, "state", rv_str_of(state_text(row)));
    if (row->unreadable)
        return;
    rv_put_int(buf, "tasks", row->tasks);
    rv_put_text_if(buf, "filter", row->filter);
    word_put(buf, "picked", &row->picked);
    if (row->begun.at == 0)
        return;
    rv_put_text(buf, "command", rv_str_of(rv_bulk_verb_text(row->verb)));
    if (row->abandon)
        rv_put_bool(buf, "abandon", true);
    if (row->by_hand)
        rv_put_bool(buf, "byHand", true);
    rv_put_int(buf, "rate", row->rate);
    word_put(buf, "begun", &row->begun);
    holds_put(buf, row);
    word_put(buf, "stopped", &row->stopped);
    rv_put_instant_if(buf, "endedAt", row->ended_at);
    for (unsigned i = 0; i < RV_BULK_COUNT; i++)
        rv_put_int(buf, rv_bulk_outcome_text((enum rv_bulk_outcome)i), row->outcomes[i]);
}

void rv_render_select(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SELECT);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_select *select = call->u.select;
    rv_assert(select != NULL);
    answer->status = 201;
    rv_answer_locate_task(answer, "/v1/selections/", select->row.id);
    selection_put(buf, &select->row);
    rv_put_open_in(buf, "preview", '[');
    for (size_t i = 0; i < select->shown_count; i++) {
        const struct rv_selected_task *task = &select->shown[i];
        rv_put_open(buf, '{');
        rv_put_task(buf, "task", task->task);
        rv_put_text(buf, "state", rv_str_of(rv_task_state_text(task->state)));
        rv_put_text_if(buf, "workflow", task->workflow);
        rv_put_instant_if(buf, "createdAt", task->created_at);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    rv_buf_add_char(buf, '}');
}

void rv_render_bulk(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_BULK);
    selection_put(&answer->body, &call->u.bulk.row);
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_selection(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SELECTIONS);
    selection_put(&answer->body, &call->u.selections.rows[0]);
    rv_buf_add_char(&answer->body, '}');
}

void rv_render_selections(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_SELECTIONS);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_selections *asked = &call->u.selections;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "selections", '[');
    for (size_t i = 0; i < asked->count; i++) {
        selection_put(buf, &asked->rows[i]);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    if (asked->count == asked->limit)
        rv_put_task(buf, "next", asked->rows[asked->count - 1].id);
    rv_buf_add_char(buf, '}');
}

void rv_render_outcomes(struct rv_answer *answer, const struct rv_call *call)
{
    rv_assert(call->kind == RV_CALL_OUTCOMES);
    struct rv_buf *buf = &answer->body;
    const struct rv_call_outcomes *asked = &call->u.outcomes;
    rv_put_open(buf, '{');
    rv_put_open_in(buf, "outcomes", '[');
    for (size_t i = 0; i < asked->count; i++) {
        const struct rv_outcome_row *row = &asked->rows[i];
        rv_put_open(buf, '{');
        rv_put_task(buf, "task", row->task);
        rv_put_text(buf, "outcome", rv_str_of(rv_bulk_outcome_text(row->outcome)));
        if (row->message.len > 0)
            rv_put_text(buf, "message", row->message);
        if (asked->tasks[i] != NULL)
            rv_put_text(buf, "state", rv_str_of(rv_task_state_text(asked->tasks[i]->state)));
        rv_put_instant_if(buf, "at", row->at);
        rv_buf_add_char(buf, '}');
    }
    rv_buf_add_char(buf, ']');
    if (asked->count == asked->limit)
        rv_put_task(buf, "next", asked->rows[asked->count - 1].task);
    rv_buf_add_char(buf, '}');
}

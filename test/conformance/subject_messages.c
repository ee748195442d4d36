/* Messages and deliveries of a store under test. */
#include "subject.h"

#include <inttypes.h>

struct rv_message random_message(struct subject *subject, struct rv_prng *prng, int64_t task,
                                 uint32_t number)
{
    return (struct rv_message){
        .task = {task},
        .number = number,
        .kind = (enum rv_message_kind)rv_prng_below(prng, RV_MESSAGE_KIND_COUNT),
        .step = (uint32_t)rv_prng_next(prng),
        .at = (int64_t)(rv_prng_next(prng) >> 1) + 1,
        .body = random_str(subject, prng),
    };
}

void dump_message(struct rv_buf *out, const struct rv_message *message)
{
    rv_buf_printf(out, "message %" PRId64, message->task.value);
    PUT_INT(message, number);
    PUT_INT(message, kind);
    PUT_INT(message, step);
    PUT_INT(message, at);
    PUT_STR(message, body);
    rv_buf_add_char(out, '\n');
}

void dump_delivery(struct rv_buf *out, const struct rv_delivery *delivery)
{
    rv_buf_printf(out, "delivery %" PRId64, delivery->task.value);
    PUT_INT(delivery, next);
    PUT_INT(delivery, last);
    PUT_INT(delivery, failures);
    PUT_INT(delivery, since);
    PUT_INT(delivery, due_at);
    PUT_INT(delivery, parked);
    PUT_STR(delivery, destination);
    PUT_STR(delivery, url);
    rv_buf_add_char(out, '\n');
}

struct rv_history_row random_command(struct subject *subject, struct rv_prng *prng, int64_t task,
                                     uint32_t number)
{
    return (struct rv_history_row){
        .task = {task},
        .number = number,
        .verb = (enum rv_operator_verb)rv_prng_below(prng, RV_OPERATOR_VERB_COUNT),
        .step = (uint32_t)rv_prng_next(prng),
        .at = (int64_t)(rv_prng_next(prng) >> 1) + 1,
        .options = random_str(subject, prng),
        .by = random_str(subject, prng),
        .reason = random_str(subject, prng),
        .selection = {(int64_t)(rv_prng_next(prng) >> 1)},
    };
}

void dump_command(struct rv_buf *out, const struct rv_history_row *command)
{
    rv_buf_printf(out, "command %" PRId64, command->task.value);
    PUT_INT(command, number);
    PUT_INT(command, verb);
    PUT_INT(command, step);
    PUT_INT(command, at);
    PUT_STR(command, options);
    PUT_STR(command, by);
    PUT_STR(command, reason);
    PUT_INT(command, selection.value);
    rv_buf_add_char(out, '\n');
}

/* The newest first. */
void dump_history(struct rv_buf *out, struct subject *s, struct rv_task_id task)
{
    enum { SOME = 10 };
    struct rv_history_row rows[SOME];
    uint32_t before = 0;
    size_t count;
    do {
        assert_int_equal(
            s->ops->list_history(s->store, &s->arena, task, before, SOME, rows, &count), RV_OK);
        for (size_t i = 0; i < count; i++)
            dump_command(out, &rows[i]);
        before = count > 0 ? rows[count - 1].number : 0;
    } while (count == SOME);
}

void dump_messages(struct rv_buf *out, struct subject *s, struct rv_task_id task)
{
    enum { SOME = 10 };
    struct rv_message messages[SOME];
    struct rv_delivery delivery;
    uint32_t after = 0;
    size_t count;
    do {
        assert_int_equal(
            s->ops->list_messages(s->store, &s->arena, task, after, SOME, messages, &count), RV_OK);
        for (size_t i = 0; i < count; i++)
            dump_message(out, &messages[i]);
        after = count > 0 ? messages[count - 1].number : 0;
    } while (count == SOME);
    assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, task, RV_STR_NONE,
                                             (struct rv_task_id){0}, 1, &delivery, &count),
                     RV_OK);
    if (count == 1)
        dump_delivery(out, &delivery);
}

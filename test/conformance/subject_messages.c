/* Messages and deliveries of a store under test. */
#include "subject.h"

#include <inttypes.h>

struct rv_message random_message(struct subject *subject, struct rv_prng *prng, int64_t task,
                                 uint32_t number)
{
    struct rv_message message;
    row_random(&rv_row_message, task, prng, &subject->arena, &message);
    message.number = number;
    return message;
}

struct rv_history_row random_command(struct subject *subject, struct rv_prng *prng, int64_t task,
                                     uint32_t number)
{
    struct rv_history_row command;
    row_random(&rv_row_history, task, prng, &subject->arena, &command);
    command.number = number;
    return command;
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
            row_dump(out, &rv_row_history, &rows[i]);
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
            row_dump(out, &rv_row_message, &messages[i]);
        after = count > 0 ? messages[count - 1].number : 0;
    } while (count == SOME);
    assert_int_equal(s->ops->list_deliveries(s->store, &s->arena, task, RV_STR_NONE,
                                             (struct rv_task_id){0}, 1, &delivery, &count),
                     RV_OK);
    if (count == 1)
        row_dump(out, &rv_row_delivery, &delivery);
}

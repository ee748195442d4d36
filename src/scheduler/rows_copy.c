#include "scheduler/scheduler_priv.h"

struct rv_task *task_copy(struct rv_arena *arena, const struct rv_task *task)
{
    struct rv_task *copy = RV_NEW(arena, struct rv_task);
    if (copy == NULL)
        return NULL;
    *copy = *task;
    copy->key = rv_arena_str(arena, task->key);
    copy->correlation = rv_arena_str(arena, task->correlation);
    copy->tags = rv_arena_str(arena, task->tags);
    copy->reply_url = rv_arena_str(arena, task->reply_url);
    copy->trace = rv_arena_str(arena, task->trace);
    copy->tracestate = rv_arena_str(arena, task->tracestate);
    copy->input = rv_arena_str(arena, task->input);
    copy->context = rv_arena_str(arena, task->context);
    copy->output = rv_arena_str(arena, task->output);
    copy->error = rv_arena_str(arena, task->error);
    return arena->refused == RV_OK ? copy : NULL;
}

struct rv_task *task_copy_plain(struct rv_arena *arena, const struct rv_task *task)
{
    struct rv_task plain = *task;
    plain.input = plain.context = plain.output = plain.error = RV_STR_NONE;
    return task_copy(arena, &plain);
}

/* queries.h - pages of rows as committed. */
#ifndef RV_SCHEDULER_QUERIES_QUERIES_H
#define RV_SCHEDULER_QUERIES_QUERIES_H

#include "base/err.h"
#include "base/id.h"

struct call_ops;
struct pending;
struct rv_arena;
struct rv_call;
struct rv_call_agents;
struct rv_call_list;
struct rv_scheduler;

extern const struct call_ops show_ops, steps_ops, attempts_ops, late_ops, history_ops, tasks_ops,
    alerts_ops, workflows_ops, agents_ops;

void no_task_say(struct rv_call *call, struct rv_task_id task);
enum rv_err query_no_task(struct pending *p, struct rv_task_id task);
/* The ages that are asked for become bounds of the filter. */
void filter_age(const struct rv_scheduler *s, struct rv_call_list *list);
/* A page of the tasks that fit: list->tasks, count and next. */
RV_CHECK enum rv_err tasks_find(struct rv_scheduler *s, struct rv_call_list *list,
                                struct rv_arena *arena);
/* All agents, onto the arena. */
RV_CHECK enum rv_err agents_show(struct rv_scheduler *s, struct rv_arena *arena,
                                 struct rv_call_agents *out);

#endif

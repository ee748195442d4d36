/* queries.h - pages of rows as committed. */
#ifndef RV_SCHEDULER_QUERIES_QUERIES_H
#define RV_SCHEDULER_QUERIES_QUERIES_H

#include "base/err.h"
#include "base/id.h"

struct query;
struct rv_call;
struct rv_arena;
struct rv_call_agents;
struct rv_call_list;

void no_task_say(struct rv_call *call, struct rv_task_id task);
enum rv_err query_no_task(struct rv_call *call, struct rv_task_id task);
/* The ages that are asked for become bounds of the filter. */
void filter_age(const struct query *q, struct rv_call_list *list);
/* A page of the tasks that fit: list->tasks, count and next. */
RV_CHECK enum rv_err tasks_find(const struct query *q, struct rv_call_list *list,
                                struct rv_arena *arena);
/* All agents, onto the arena. */
RV_CHECK enum rv_err agents_show(const struct query *q, struct rv_arena *arena,
                                 struct rv_call_agents *out);

/* The call's answer, onto its arena. */
RV_CHECK enum rv_err show_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err steps_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err attempts_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err late_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err history_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err tasks_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err alerts_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err workflows_read(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err agents_read(const struct query *q, struct rv_call *call);

#endif

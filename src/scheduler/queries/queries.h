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

void query_no_task_text(struct rv_call *call, struct rv_task_id task);
enum rv_err query_no_task(struct rv_call *call, struct rv_task_id task);
/* The ages that are asked for become bounds of the filter. */
void query_filter_age(const struct query *q, struct rv_call_list *list);
/* A page of the tasks that fit: list->tasks, count and next. */
RV_CHECK enum rv_err query_tasks_find(const struct query *q, struct rv_call_list *list,
                                      struct rv_arena *arena);
/* All agents, onto the arena. */
RV_CHECK enum rv_err query_agents_show(const struct query *q, struct rv_arena *arena,
                                       struct rv_call_agents *out);

/* The call's answer, onto its arena. */
RV_CHECK enum rv_err query_show(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_steps(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_attempts(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_late(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_history(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_tasks(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_alerts(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_workflows(const struct query *q, struct rv_call *call);
RV_CHECK enum rv_err query_agents(const struct query *q, struct rv_call *call);

#endif

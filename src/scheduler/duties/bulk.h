/* bulk.h - bulk commands that are under way. */
#ifndef RV_SCHEDULER_DUTIES_BULK_H
#define RV_SCHEDULER_DUTIES_BULK_H

#include "base/err.h"
#include "base/id.h"
#include "core/selection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bulk;
struct rv_call_bulk;
struct rv_scheduler;
struct rv_wants;
struct work;

/* The next page of the walk over the selections, if it will be due. */
void bulk_name(struct rv_scheduler *s, struct rv_wants *wants);

/* Over for so long that it is to be deleted. */
bool selection_old(const struct rv_scheduler *s, const struct rv_selection *row);
/* The operator's word on one is written: its answer has the numbers of the commands as of now. */
void bulk_told(struct rv_scheduler *s, struct rv_call_bulk *bulk);

#endif

/* memory.h - a state store in memory, for the simulator and for tests; keeps all of store.h. */
#ifndef RV_STORE_MEMORY_MEMORY_H
#define RV_STORE_MEMORY_MEMORY_H

#include "base/err.h"
#include "store/store.h"

/* What a store holds, apart from the store as a process has it open: closing the store without
 * more ado is a crash (an open transaction is lost, all that was committed stays), opening it again
 * on the same data a restart. One store at a time has the data open. */
struct rv_store_memory_data;

RV_CHECK enum rv_err rv_store_memory_data_new(struct rv_store_memory_data **ret_data);
/* No store may have it open. */
void rv_store_memory_data_free(struct rv_store_memory_data *data);

/* `data` is borrowed until close. Errors of all operations: MEMORY, LIMIT, and INVALID and the
 * outcomes of commit; nothing here is ever unknown. */
RV_CHECK enum rv_err rv_store_memory_open(struct rv_store_memory_data *data,
                                          struct rv_wall_clock clock, struct rv_store **ret_store);

#endif

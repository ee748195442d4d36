/* memory.h - a state store in memory, for the simulator and for tests; keeps all of store.h. */
#ifndef RV_STORE_MEMORY_MEMORY_H
#define RV_STORE_MEMORY_MEMORY_H

#include "base/err.h"
#include "store/store.h"

/* What a store holds, apart from the store as a process has it open: closing the store without
 * more ado is a crash (an open transaction is lost, all that was committed stays), opening it again
 * on the same data a restart. One store at a time has the data open, unless they are shared. */
struct rv_store_memory_data;

RV_CHECK enum rv_err rv_store_memory_data_new(struct rv_store_memory_data **ret_data);
/* No store may have it open. */
void rv_store_memory_data_free(struct rv_store_memory_data *data);

/* From now on several stores may have the data open, like instances a database server: instances
 * have numbers of their own and roles that last, and what one commits between the begin and the
 * commit of another meets the other's guards. Before the first is opened. */
void rv_store_memory_data_share(struct rv_store_memory_data *data);

/* Remembers how to take the newest `commits` transactions back, enlistments among them. Before the
 * first store is opened. */
void rv_store_memory_data_keep(struct rv_store_memory_data *data, size_t commits);
/* How many transactions there were that wrote, less those that were lost. */
uint64_t rv_store_memory_data_commits(const struct rv_store_memory_data *data);
/* How many of them can be taken back now. */
size_t rv_store_memory_data_kept(const struct rv_store_memory_data *data);
/* A standby takes over that has not heard of the newest `commits` transactions: they never were. At
 * most as many as are kept. */
void rv_store_memory_data_lose(struct rv_store_memory_data *data, size_t commits);

/* Is told of a change that passes its guards, but whose rows before (task_before, steps_before) are
 * not what is stored. Without one, such a change fails an assertion. */
typedef void rv_store_memory_wrong_before_fn(void *self, struct rv_task_id task);
void rv_store_memory_data_watch(struct rv_store_memory_data *data,
                                rv_store_memory_wrong_before_fn *wrong_before, void *self);

/* `data` is borrowed until close. Errors of all operations: MEMORY, LIMIT, and INVALID and the
 * outcomes of commit; nothing here is ever unknown. */
RV_CHECK enum rv_err rv_store_memory_open(struct rv_store_memory_data *data,
                                          struct rv_wall_clock clock, struct rv_store **ret_store);

/* For those who check: whether the instance of that number is enlisted, and its lease not over by
 * more than the margin. */
bool rv_store_memory_lives(const struct rv_store_memory_data *data, uint8_t instance, int64_t now);
/* For those who check: number of the instance that has claimed the task; 0: none has. The claims of
 * one that does not live are void. */
uint8_t rv_store_memory_claimant(const struct rv_store_memory_data *data, struct rv_task_id task);
/* For those who check: the first steps of the task, `max` at most, as they are committed; gives
 * their number. Their texts are the store's, and stay until the next commit. */
size_t rv_store_memory_steps(struct rv_store *store, struct rv_task_id task, size_t max,
                             struct rv_step *ret_steps);

#endif

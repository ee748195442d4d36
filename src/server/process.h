/* process.h - what the server asks of the system for its process. */
#ifndef RV_SERVER_PROCESS_H
#define RV_SERVER_PROCESS_H

/* Raises the limit of open files to its maximum and divides it: a third at most is for outgoing
 * calls. 0 in both: the limit is unknown. */
void rv_process_connections(unsigned *ret_api, long *ret_outbound);
/* The memory contains payloads and secrets: no core file is written, and no other process of the
 * same user can read the memory. */
void rv_process_hide_memory(void);

#endif

/* forget.h - a server that has lost an instant from its memory. */
#ifndef RV_SIM_FORGET_H
#define RV_SIM_FORGET_H

struct server;

/* FAULT_FORGET: of one of the tasks that it owns, and at which an agent works. */
void server_forget(struct server *s);

#endif

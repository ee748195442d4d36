/* systemd.h - what the service manager that has started the server is told (sd_notify(3)). */
#ifndef RV_SERVER_SYSTEMD_H
#define RV_SERVER_SYSTEMD_H

#include <stdint.h>

/* Sends "READY=1", "STOPPING=1" or "WATCHDOG=1" to the socket that the variable NOTIFY_SOCKET
 * names. Nothing happens without one, or when nobody takes it. */
void rv_systemd_tell(const char *state);
/* How many sockets this process was handed over, from descriptor 3 on (sd_listen_fds(3)). */
int rv_systemd_sockets(void);
/* How often WATCHDOG=1 must be told at least; 0: nobody asks for it. */
int64_t rv_systemd_watchdog_ms(void);

#endif

/* A library for LD_PRELOAD: its constructor sends the process the signal $SIGNAL_AT_START, before
 * main() begins. */
#include <signal.h>
#include <stdlib.h>

__attribute__((constructor)) static void signal_send(void)
{
    const char *number = getenv("SIGNAL_AT_START");
    if (number != NULL)
        raise((int)strtol(number, NULL, 10));
}

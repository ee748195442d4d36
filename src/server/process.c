#include "server/process.h"

#include "base/os/log.h"

#include <sys/prctl.h>
#include <sys/resource.h>

enum {
    FILES_SPARE = 64, /* descriptors that are not connections */
    CONNECTIONS_MAX = 20000,
    OUTBOUND_MAX = 8192
};

void rv_process_connections(unsigned *ret_api, long *ret_outbound)
{
    struct rlimit limit;
    *ret_api = 0;
    *ret_outbound = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 && getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    rlim_t all = limit.rlim_cur > 3 * FILES_SPARE ? limit.rlim_cur - FILES_SPARE
                                                  : limit.rlim_cur / 2;
    rlim_t outbound = all / 3 < OUTBOUND_MAX ? all / 3 : OUTBOUND_MAX;
    rlim_t api = all - outbound < CONNECTIONS_MAX ? all - outbound : CONNECTIONS_MAX;
    *ret_api = (unsigned)api;
    *ret_outbound = (long)outbound;
}

void rv_process_hide_memory(void)
{
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0)
        rv_log(RV_LOG_WARNING, "memory",
               RV_LOG_STR("reason", RV_STR("core dumps of the server cannot be disabled")));
}

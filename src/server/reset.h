/* reset.h - the clock of a store at rest is set back to the wall clock. */
#ifndef RV_SERVER_RESET_H
#define RV_SERVER_RESET_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/* See rv_cli_server. */
RV_CHECK enum rv_err rv_reset_clock(const char *store, int64_t *ret_back_ms,
                                    struct rv_buf *ret_why);

#endif

/* check.h - a store at rest, held against every rule that there is. */
#ifndef RV_SERVER_CHECK_H
#define RV_SERVER_CHECK_H

#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"

/* See rv_cli_server. A file that is damaged so that it cannot be opened is a finding too. */
enum rv_err rv_check(const char *store, struct rv_cli_check *check, struct rv_buf *ret_why);

#endif

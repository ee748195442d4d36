/* payload_priv.h - JSON given on the command line: as it is, in a file, or on standard input. */
#ifndef RV_CLI_PAYLOAD_PRIV_H
#define RV_CLI_PAYLOAD_PRIV_H

#include "cli/run_priv.h"

/* What the option says (NULL: it is not given), or `otherwise`, which may be NULL: then the text is
 * absent. On the arena or borrowed from the command line. DONE, or the exit code after the reason
 * was told. */
int cli_payload_read(struct cli *cli, enum cli_option option, const char *otherwise,
                     struct rv_str *ret_text);

/* The tags of a new task as JSON, of --tag or --tags; absent: none. As above. */
int cli_tags_read(struct cli *cli, struct rv_str *ret_tags);

/* The trace to which tasks of this command belong: the option's, or that of the environment. Each
 * NULL if there is none; what is no trace context, the server passes over. */
void cli_trace_read(struct cli *cli, const char **ret_traceparent, const char **ret_tracestate);

#endif

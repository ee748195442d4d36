/* publish_priv.h - definitions in files: read to be published, or only checked. */
#ifndef RV_CLI_PUBLISH_PRIV_H
#define RV_CLI_PUBLISH_PRIV_H

#include "base/buf.h"
#include "cli/run_priv.h"

/* The file's text, "-" for standard input: CLI_DONE, or the exit code after the reason was told. */
int cli_definition_read(struct cli *cli, const char *file, struct rv_buf *ret_text);

/* `reeve publish --check`: reads every file as a server does and reports all faults. */
int cli_publish_check(struct cli *cli);

/* Whether more than one error is found in the definition. */
bool cli_faults_many(struct cli *cli, struct rv_str text);

#endif

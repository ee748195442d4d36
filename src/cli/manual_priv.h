/* manual_priv.h - the manual page and the shells' completions, written from the tables. */
#ifndef RV_CLI_MANUAL_PRIV_H
#define RV_CLI_MANUAL_PRIV_H

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>

/* An option of `reeve serve`. */
struct cli_serve_row {
    const char *flag;
    const char *variable;
    const char *value;     /* NULL: it takes none */
    const char *otherwise; /* the default; NULL: none */
    const char *help;
};

/* Ended by a row without a flag. */
extern const struct cli_serve_row cli_serve_rows[];

/* roff, for man(1). */
void cli_man_write(struct rv_buf *buf);
/* False: no such shell; there are bash, zsh and fish. */
bool cli_completion_write(struct rv_buf *buf, struct rv_str shell);

#endif

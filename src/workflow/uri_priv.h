/* uri_priv.h - URI templates: `{name}` stands for a property of the input. */
#ifndef RV_WORKFLOW_URI_PRIV_H
#define RV_WORKFLOW_URI_PRIV_H

#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>

struct rv_flow;

/* What is wrong with the template, and where; NULL if nothing is. */
const char *rv_uri_wrong(struct rv_str text, size_t *ret_offset, bool *ret_unsupported);
/* The URI with all variables filled in. INVALID: an error of the DSL was raised. */
RV_CHECK enum rv_err rv_uri_fill(struct rv_flow *flow, struct rv_str template,
                                 const struct rv_json *input, struct rv_json *ret_uri);

#endif

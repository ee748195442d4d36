/* order_priv.h - what the order's files share. */
#ifndef RV_AGENT_HTTP_ORDER_PRIV_H
#define RV_AGENT_HTTP_ORDER_PRIV_H

#include "agent/http/order.h"

#define ERROR_TYPE "https://open-workflow-specification.org/spec/1.0.0/errors/"

/* Appends the text without what is hidden. */
void rv_http_hide(const struct rv_http_order *order, struct rv_buf *to, struct rv_str text);
/* The same for all texts of a tree, written as JSON. */
void rv_http_hide_tree(const struct rv_http_order *order, struct rv_buf *to,
                       const struct rv_json *value);
void rv_http_base64(struct rv_buf *to, struct rv_str bytes);

#endif

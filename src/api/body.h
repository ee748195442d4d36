/* body.h - a JSON object taken apart strictly: unknown members and wrong types are refused. */
#ifndef RV_API_BODY_H
#define RV_API_BODY_H

#include "api/request.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An object of the body and how messages call it: "tasks[3]", or "" for the body itself. */
struct rv_body {
    const struct rv_json *object; /* borrowed: the parser's tree */
    struct rv_str where;          /* borrowed: static, or on the parser's tree */
};

/* The request's body as one JSON object with only the members in `names` (ended by NULL). An empty
 * body reads as {} if `may_be_empty`. 400 for what is no JSON, 422 for the rest. */
bool rv_body_read(struct rv_parser *parser, struct rv_str text, bool may_be_empty,
                  const char *const *names, struct rv_body *ret);
/* A value inside it as such an object. */
bool rv_body_open(struct rv_parser *parser, const struct rv_json *value, struct rv_str where,
                  const char *const *names, struct rv_body *ret);

/* Each leaves *ret as it is when the member is absent, or null. Texts are copied to the call's
 * arena; they have no control characters and at least one byte. */
bool rv_body_text(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  size_t bytes_max, struct rv_str *ret);
bool rv_body_int(struct rv_parser *parser, const struct rv_body *body, const char *name,
                 int64_t min, int64_t max, int64_t *ret);
bool rv_body_bool(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  bool *ret);
/* Any JSON value, null too, as compact text; 413 over RV_PAYLOAD_BYTES_MAX. Absent: *ret stays. */
bool rv_body_payload(struct rv_parser *parser, const struct rv_body *body, const char *name,
                     struct rv_str *ret);
/* An array of at most `max` items, borrowed from the tree; not NULL for an empty one. */
bool rv_body_list(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  size_t max, const struct rv_json **ret_items, size_t *ret_count);
/* Whom a command is from: the member "by", and the key by which it came. */
bool rv_body_by(struct rv_parser *parser, const struct rv_body *body, struct rv_str *ret);
/* Refuses when the text is absent. */
bool rv_body_need(struct rv_parser *parser, const struct rv_body *body, const char *name,
                  struct rv_str text);
/* "tasks[3]" */
struct rv_str rv_body_item_name(struct rv_parser *parser, const char *list, size_t index);
/* "tasks[3].name" for messages. */
struct rv_str rv_body_member_name(struct rv_parser *parser, const struct rv_body *body,
                                  const char *name);

#endif

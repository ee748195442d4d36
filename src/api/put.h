/* put.h - JSON written member by member, straight into the answer's buffer. */
#ifndef RV_API_PUT_H
#define RV_API_PUT_H

#include "base/buf.h"
#include "base/id.h"
#include "base/str.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stdint.h>

struct rv_alert_groups;
struct rv_store_problems;

/* Each puts a comma first unless an object or array was just opened. Names are ours: they are not
 * escaped. */
void rv_put_comma(struct rv_buf *buf);
/* '{' or '[', as an item of an array or the whole. */
void rv_put_open(struct rv_buf *buf, char bracket);
/* As the member `name`. */
void rv_put_open_in(struct rv_buf *buf, const char *name, char bracket);
void rv_put_name(struct rv_buf *buf, const char *name);
void rv_put_text(struct rv_buf *buf, const char *name, struct rv_str text);
/* Nothing at all for an absent text. */
void rv_put_text_if(struct rv_buf *buf, const char *name, struct rv_str text);
void rv_put_int(struct rv_buf *buf, const char *name, int64_t number);
void rv_put_bool(struct rv_buf *buf, const char *name, bool truth);
/* Payload bytes as they are; nothing for an absent one. */
void rv_put_raw_if(struct rv_buf *buf, const char *name, struct rv_str json);
/* ISO 8601; nothing for 0. */
void rv_put_instant_if(struct rv_buf *buf, const char *name, int64_t at);
void rv_put_task(struct rv_buf *buf, const char *name, struct rv_task_id id);
void rv_put_step(struct rv_buf *buf, const char *name, struct rv_step_id id);
/* As "workflow": namespace/name:version. */
void rv_put_workflow(struct rv_buf *buf, const struct rv_workflow_row *row);
/* One attempt, one alert: as an item of an array. */
void rv_put_attempt(struct rv_buf *buf, const struct rv_attempt *attempt);
/* The member "lateReplies". */
void rv_put_late_replies(struct rv_buf *buf, const struct rv_late_reply *rows, size_t count);
void rv_put_alert_groups(struct rv_buf *buf, const struct rv_alert_groups *groups);
void rv_put_alert(struct rv_buf *buf, const struct rv_alert *alert);
/* Those of the RV_STORE_PROBLEMS that are there, as elements of the array that is open. */
void rv_put_problems(struct rv_buf *buf, const struct rv_store_problems *found);
/* 16 hex digits. */
void rv_put_token(struct rv_buf *buf, const char *name, uint64_t token);

#endif

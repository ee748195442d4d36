/* id.h - 63-bit ids ordered by time, shown as 13 characters of Crockford's base32. */
#ifndef RV_BASE_ID_H
#define RV_BASE_ID_H

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

enum { RV_ID_TEXT_BYTES = 14, RV_STEP_TEXT_BYTES = 26 };

struct rv_task_id {
    int64_t value; /* > 0; 0 means "none" */
};

/* A step's name: its task and its number in the task, from 1. Shown as "<task>-<number>". */
struct rv_step_id {
    struct rv_task_id task;
    uint32_t number;
};

/* An id is milliseconds (42 bits) | instance (8) | counter (13): made without asking anyone, never
 * twice by one maker, and sorted by the instant of receipt across makers. */
struct rv_id_maker {
    int64_t last_ms;
    uint32_t counter;
    uint8_t instance;
};

void rv_id_maker_init(struct rv_id_maker *maker, uint8_t instance);
/* `now` may stand still or go back: the maker goes on from its last millisecond. */
struct rv_task_id rv_id_make(struct rv_id_maker *maker, int64_t now);
/* The millisecond in which it was made. */
int64_t rv_id_made_at(struct rv_task_id id);
/* The least id that can be made at this instant. */
struct rv_task_id rv_id_from(int64_t at);

struct rv_str rv_task_text(struct rv_task_id id, char text[static RV_ID_TEXT_BYTES]);
struct rv_str rv_step_text(struct rv_step_id id, char text[static RV_STEP_TEXT_BYTES]);
/* Case-blind; I and L read as 1, O as 0 (Crockford). INVALID for anything but a whole id. */
RV_CHECK enum rv_err rv_task_parse(struct rv_str text, struct rv_task_id *ret_id);
RV_CHECK enum rv_err rv_step_parse(struct rv_str text, struct rv_step_id *ret_id);

#endif

/* state.h - the words of the pattern as enums from core/tbl: states, kinds, effects, reasons. */
#ifndef RV_CORE_STATE_H
#define RV_CORE_STATE_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum rv_task_state {
#define RV_TASK_STATE(name, text, open, moves) RV_TASK_##name,
#include "core/tbl/task_state.def"
#undef RV_TASK_STATE
    RV_TASK_STATE_COUNT
};

enum rv_step_state {
#define RV_STEP_STATE(name, text, open, moves) RV_STEP_##name,
#include "core/tbl/step_state.def"
#undef RV_STEP_STATE
    RV_STEP_STATE_COUNT
};

enum rv_attempt_state {
#define RV_ATTEMPT_STATE(name, text, live, moves) RV_ATTEMPT_##name,
#include "core/tbl/attempt_state.def"
#undef RV_ATTEMPT_STATE
    RV_ATTEMPT_STATE_COUNT
};

enum rv_alert_kind {
#define RV_ALERT_KIND(name, text, cure) RV_ALERT_##name,
#include "core/tbl/alert_kind.def"
#undef RV_ALERT_KIND
    RV_ALERT_KIND_COUNT
};

enum rv_step_kind {
#define RV_STEP_KIND(name, text) RV_KIND_##name,
#include "core/tbl/step_kind.def"
#undef RV_STEP_KIND
    RV_STEP_KIND_COUNT
};

enum rv_effect {
#define RV_EFFECT(name, text) RV_EFFECT_##name,
#include "core/tbl/effect.def"
#undef RV_EFFECT
    RV_EFFECT_COUNT
};

enum rv_late_reason {
#define RV_LATE_REASON(name, text) RV_LATE_##name,
#include "core/tbl/late_reason.def"
#undef RV_LATE_REASON
    RV_LATE_REASON_COUNT
};

enum rv_message_kind {
#define RV_MESSAGE_KIND(name, text) RV_MESSAGE_##name,
#include "core/tbl/message_kind.def"
#undef RV_MESSAGE_KIND
    RV_MESSAGE_KIND_COUNT
};

enum rv_operator_verb {
#define RV_OPERATOR_VERB(name, text) RV_OPERATOR_##name,
#include "core/tbl/operator_verb.def"
#undef RV_OPERATOR_VERB
    RV_OPERATOR_VERB_COUNT
};

enum rv_direction { RV_FORWARD, RV_UNDO };

/* The texts of one enum, by value. */
struct rv_texts {
    const struct rv_str *texts;
    size_t count;
};

extern const struct rv_texts rv_texts_task_state, rv_texts_step_state, rv_texts_attempt_state,
    rv_texts_alert_kind, rv_texts_step_kind, rv_texts_effect, rv_texts_late_reason,
    rv_texts_message_kind, rv_texts_operator_verb, rv_texts_direction;

/* False: it is none of them, and *ret_value stays. */
bool rv_texts_find(const struct rv_texts *texts, struct rv_str text, unsigned *ret_value);

/* The text of each, as in API, CLI, logs and docs; "?" outside the table. */
const char *rv_task_state_text(enum rv_task_state state);
const char *rv_step_state_text(enum rv_step_state state);
const char *rv_attempt_state_text(enum rv_attempt_state state);
const char *rv_alert_kind_text(enum rv_alert_kind kind);
const char *rv_alert_kind_cure(enum rv_alert_kind kind);
const char *rv_step_kind_text(enum rv_step_kind kind);
const char *rv_effect_text(enum rv_effect effect);
const char *rv_late_reason_text(enum rv_late_reason reason);
const char *rv_message_kind_text(enum rv_message_kind kind);
const char *rv_operator_verb_text(enum rv_operator_verb verb);
const char *rv_direction_text(enum rv_direction direction);

/* True when `text` is a task state's text. */
bool rv_task_state_parse(struct rv_str text, enum rv_task_state *ret_state);
bool rv_effect_parse(struct rv_str text, enum rv_effect *ret_effect);

bool rv_task_state_open(enum rv_task_state state);
/* True for states that few tasks are ever in: stores have an index for them. */
bool rv_task_state_rare(enum rv_task_state state);
bool rv_step_state_open(enum rv_step_state state);
/* True while the attempt's agent may still be at work. */
bool rv_attempt_state_live(enum rv_attempt_state state);

/* The one way in which a state changes: asserts that the table has the edge. */
void rv_task_move(enum rv_task_state *state, enum rv_task_state to);
void rv_step_move(enum rv_step_state *state, enum rv_step_state to);
void rv_attempt_move(enum rv_attempt_state *state, enum rv_attempt_state to);
/* Whether the table has the edge; staying is none. */
bool rv_task_may_move(enum rv_task_state from, enum rv_task_state to);
bool rv_step_may_move(enum rv_step_state from, enum rv_step_state to);
bool rv_attempt_may_move(enum rv_attempt_state from, enum rv_attempt_state to);

#endif

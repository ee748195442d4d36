#include "core/state.h"

#include "base/assert.h"

#define ROWS(array) (sizeof(array) / sizeof(array)[0])
#define WORD(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define WORDS(array)                                                                               \
    {                                                                                              \
        array##_texts, ROWS(array##_texts)                                                         \
    }

static const struct rv_str task_state_texts[] = {
#define RV_TASK_STATE(name, text, open, moves) WORD(text),
#include "core/tbl/task_state.def"
#undef RV_TASK_STATE
};

static const bool task_state_open[] = {
#define RV_TASK_STATE(name, text, open, moves) open,
#include "core/tbl/task_state.def"
#undef RV_TASK_STATE
};

static const unsigned task_state_moves[] = {
#define M(name) (1u << RV_TASK_##name)
#define RV_TASK_STATE(name, text, open, moves) (moves),
#include "core/tbl/task_state.def"
#undef RV_TASK_STATE
#undef M
};

static const struct rv_str step_state_texts[] = {
#define RV_STEP_STATE(name, text, open, moves) WORD(text),
#include "core/tbl/step_state.def"
#undef RV_STEP_STATE
};

static const bool step_state_open[] = {
#define RV_STEP_STATE(name, text, open, moves) open,
#include "core/tbl/step_state.def"
#undef RV_STEP_STATE
};

static const unsigned step_state_moves[] = {
#define M(name) (1u << RV_STEP_##name)
#define RV_STEP_STATE(name, text, open, moves) (moves),
#include "core/tbl/step_state.def"
#undef RV_STEP_STATE
#undef M
};

static const struct rv_str attempt_state_texts[] = {
#define RV_ATTEMPT_STATE(name, text, live, moves) WORD(text),
#include "core/tbl/attempt_state.def"
#undef RV_ATTEMPT_STATE
};

static const bool attempt_state_live[] = {
#define RV_ATTEMPT_STATE(name, text, live, moves) live,
#include "core/tbl/attempt_state.def"
#undef RV_ATTEMPT_STATE
};

static const unsigned attempt_state_moves[] = {
#define M(name) (1u << RV_ATTEMPT_##name)
#define RV_ATTEMPT_STATE(name, text, live, moves) (moves),
#include "core/tbl/attempt_state.def"
#undef RV_ATTEMPT_STATE
#undef M
};

static const struct rv_str alert_kind_texts[] = {
#define RV_ALERT_KIND(name, text, cure) WORD(text),
#include "core/tbl/alert_kind.def"
#undef RV_ALERT_KIND
};

static const char *const alert_kind_cures[] = {
#define RV_ALERT_KIND(name, text, cure) cure,
#include "core/tbl/alert_kind.def"
#undef RV_ALERT_KIND
};

static const struct rv_str step_kind_texts[] = {
#define RV_STEP_KIND(name, text) WORD(text),
#include "core/tbl/step_kind.def"
#undef RV_STEP_KIND
};

static const struct rv_str effect_texts[] = {
#define RV_EFFECT(name, text) WORD(text),
#include "core/tbl/effect.def"
#undef RV_EFFECT
};

static const struct rv_str late_reason_texts[] = {
#define RV_LATE_REASON(name, text) WORD(text),
#include "core/tbl/late_reason.def"
#undef RV_LATE_REASON
};

static const struct rv_str message_kind_texts[] = {
#define RV_MESSAGE_KIND(name, text) WORD(text),
#include "core/tbl/message_kind.def"
#undef RV_MESSAGE_KIND
};

static const struct rv_str operator_verb_texts[] = {
#define RV_OPERATOR_VERB(name, text) WORD(text),
#include "core/tbl/operator_verb.def"
#undef RV_OPERATOR_VERB
};

static const struct rv_str direction_texts[] = {WORD("forward"), WORD("undo")};

const struct rv_texts rv_texts_task_state = WORDS(task_state);
const struct rv_texts rv_texts_step_state = WORDS(step_state);
const struct rv_texts rv_texts_attempt_state = WORDS(attempt_state);
const struct rv_texts rv_texts_alert_kind = WORDS(alert_kind);
const struct rv_texts rv_texts_step_kind = WORDS(step_kind);
const struct rv_texts rv_texts_effect = WORDS(effect);
const struct rv_texts rv_texts_late_reason = WORDS(late_reason);
const struct rv_texts rv_texts_message_kind = WORDS(message_kind);
const struct rv_texts rv_texts_operator_verb = WORDS(operator_verb);
const struct rv_texts rv_texts_direction = WORDS(direction);

static const char *text_of(const struct rv_texts *texts, unsigned value)
{
    return value < texts->count ? texts->texts[value].at : "?";
}

bool rv_texts_find(const struct rv_texts *texts, struct rv_str text, unsigned *ret_value)
{
    for (unsigned i = 0; i < texts->count; i++) {
        if (rv_str_eq(texts->texts[i], text)) {
            *ret_value = i;
            return true;
        }
    }
    return false;
}

const char *rv_task_state_text(enum rv_task_state state)
{
    return text_of(&rv_texts_task_state, state);
}

const char *rv_step_state_text(enum rv_step_state state)
{
    return text_of(&rv_texts_step_state, state);
}

const char *rv_attempt_state_text(enum rv_attempt_state state)
{
    return text_of(&rv_texts_attempt_state, state);
}

const char *rv_alert_kind_text(enum rv_alert_kind kind)
{
    return text_of(&rv_texts_alert_kind, kind);
}

const char *rv_alert_kind_cure(enum rv_alert_kind kind)
{
    return (size_t)kind < ROWS(alert_kind_cures) ? alert_kind_cures[kind] : "?";
}

const char *rv_step_kind_text(enum rv_step_kind kind)
{
    return text_of(&rv_texts_step_kind, kind);
}

const char *rv_effect_text(enum rv_effect effect)
{
    return text_of(&rv_texts_effect, effect);
}

const char *rv_late_reason_text(enum rv_late_reason reason)
{
    return text_of(&rv_texts_late_reason, reason);
}

const char *rv_message_kind_text(enum rv_message_kind kind)
{
    return text_of(&rv_texts_message_kind, kind);
}

const char *rv_operator_verb_text(enum rv_operator_verb verb)
{
    return text_of(&rv_texts_operator_verb, verb);
}

const char *rv_direction_text(enum rv_direction direction)
{
    return text_of(&rv_texts_direction, direction);
}

bool rv_task_state_parse(struct rv_str text, enum rv_task_state *ret_state)
{
    unsigned value = 0;
    bool found = rv_texts_find(&rv_texts_task_state, text, &value);
    if (found)
        *ret_state = (enum rv_task_state)value;
    return found;
}

bool rv_effect_parse(struct rv_str text, enum rv_effect *ret_effect)
{
    unsigned value = 0;
    bool found = rv_texts_find(&rv_texts_effect, text, &value);
    if (found)
        *ret_effect = (enum rv_effect)value;
    return found;
}

bool rv_task_state_open(enum rv_task_state state)
{
    rv_assert(state < RV_TASK_STATE_COUNT);
    return task_state_open[state];
}

bool rv_task_state_rare(enum rv_task_state state)
{
    switch (state) {
    case RV_TASK_COMPENSATING:
    case RV_TASK_ERROR:
    case RV_TASK_COMPENSATED:
    case RV_TASK_CANCELLED:
        return true;
    case RV_TASK_PENDING:
    case RV_TASK_PROCESSING:
    case RV_TASK_PROCESSED:
    case RV_TASK_STATE_COUNT:
        break;
    }
    return false;
}

bool rv_step_state_open(enum rv_step_state state)
{
    rv_assert(state < RV_STEP_STATE_COUNT);
    return step_state_open[state];
}

bool rv_attempt_state_live(enum rv_attempt_state state)
{
    rv_assert(state < RV_ATTEMPT_STATE_COUNT);
    return attempt_state_live[state];
}

bool rv_task_may_move(enum rv_task_state from, enum rv_task_state to)
{
    rv_assert(from < RV_TASK_STATE_COUNT);
    rv_assert(to < RV_TASK_STATE_COUNT);
    return (task_state_moves[from] >> to & 1u) != 0;
}

bool rv_step_may_move(enum rv_step_state from, enum rv_step_state to)
{
    rv_assert(from < RV_STEP_STATE_COUNT);
    rv_assert(to < RV_STEP_STATE_COUNT);
    return (step_state_moves[from] >> to & 1u) != 0;
}

bool rv_attempt_may_move(enum rv_attempt_state from, enum rv_attempt_state to)
{
    rv_assert(from < RV_ATTEMPT_STATE_COUNT);
    rv_assert(to < RV_ATTEMPT_STATE_COUNT);
    return (attempt_state_moves[from] >> to & 1u) != 0;
}

void rv_task_move(enum rv_task_state *state, enum rv_task_state to)
{
    rv_assert(rv_task_may_move(*state, to));
    *state = to;
}

void rv_step_move(enum rv_step_state *state, enum rv_step_state to)
{
    rv_assert(rv_step_may_move(*state, to));
    *state = to;
}

void rv_attempt_move(enum rv_attempt_state *state, enum rv_attempt_state to)
{
    rv_assert(rv_attempt_may_move(*state, to));
    *state = to;
}

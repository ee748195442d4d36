/* The words of core/tbl as SQL sees them: texts for columns, CHECKs and partial indexes. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "core/state.h"

#define TEXTS(array) (array), sizeof(array) / sizeof(array)[0]

static const struct rv_str task_states[] = {
#define RV_TASK_STATE(name, text, open, moves) {text, sizeof(text) - 1},
#include "core/tbl/task_state.def"
#undef RV_TASK_STATE
};
static const struct rv_str step_states[] = {
#define RV_STEP_STATE(name, text, open, moves) {text, sizeof(text) - 1},
#include "core/tbl/step_state.def"
#undef RV_STEP_STATE
};
static const struct rv_str attempt_states[] = {
#define RV_ATTEMPT_STATE(name, text, live, moves) {text, sizeof(text) - 1},
#include "core/tbl/attempt_state.def"
#undef RV_ATTEMPT_STATE
};
static const struct rv_str step_kinds[] = {
#define RV_STEP_KIND(name, text) {text, sizeof(text) - 1},
#include "core/tbl/step_kind.def"
#undef RV_STEP_KIND
};
static const struct rv_str effects[] = {
#define RV_EFFECT(name, text) {text, sizeof(text) - 1},
#include "core/tbl/effect.def"
#undef RV_EFFECT
};
static const struct rv_str late_reasons[] = {
#define RV_LATE_REASON(name, text) {text, sizeof(text) - 1},
#include "core/tbl/late_reason.def"
#undef RV_LATE_REASON
};
static const struct rv_str alert_kinds[] = {
#define RV_ALERT_KIND(name, text, cure) {text, sizeof(text) - 1},
#include "core/tbl/alert_kind.def"
#undef RV_ALERT_KIND
};
static const struct rv_str message_kinds[] = {
#define RV_MESSAGE_KIND(name, text) {text, sizeof(text) - 1},
#include "core/tbl/message_kind.def"
#undef RV_MESSAGE_KIND
};
static const struct rv_str operator_verbs[] = {
#define RV_OPERATOR_VERB(name, text) {text, sizeof(text) - 1},
#include "core/tbl/operator_verb.def"
#undef RV_OPERATOR_VERB
};
static const struct rv_str directions[] = {{"forward", 7}, {"undo", 4}};

const struct rv_texts rv_texts_task_state = {"task_state", TEXTS(task_states)};
const struct rv_texts rv_texts_step_state = {"step_state", TEXTS(step_states)};
const struct rv_texts rv_texts_attempt_state = {"attempt_state", TEXTS(attempt_states)};
const struct rv_texts rv_texts_step_kind = {"step_kind", TEXTS(step_kinds)};
const struct rv_texts rv_texts_effect = {"effect", TEXTS(effects)};
const struct rv_texts rv_texts_late_reason = {"late_reason", TEXTS(late_reasons)};
const struct rv_texts rv_texts_alert_kind = {"alert_kind", TEXTS(alert_kinds)};
const struct rv_texts rv_texts_message_kind = {"message_kind", TEXTS(message_kinds)};
const struct rv_texts rv_texts_operator_verb = {"operator_verb", TEXTS(operator_verbs)};
const struct rv_texts rv_texts_direction = {"direction", TEXTS(directions)};

/* Which of the texts belong to a list by that name. */
static bool text_listed(struct rv_str name, const struct rv_texts *texts, size_t value)
{
    if (rv_str_is(name, "open"))
        return texts == &rv_texts_task_state && rv_task_state_open((enum rv_task_state)value);
    if (rv_str_is(name, "ended"))
        return texts == &rv_texts_task_state && !rv_task_state_open((enum rv_task_state)value);
    if (rv_str_is(name, "rare"))
        return texts == &rv_texts_task_state && rv_task_state_rare((enum rv_task_state)value);
    return rv_str_is(name, texts->name);
}

/* "(column = 'a' OR column = 'b' ...)". Not IN: for that SQLite builds a table of its own in every
 * statement, which halves the rate of the whole store. */
static void list_write(struct rv_buf *sql, struct rv_str column, struct rv_str name)
{
    static const struct rv_texts *const all[] = {&rv_texts_task_state,    &rv_texts_step_state,
                                                 &rv_texts_attempt_state, &rv_texts_step_kind,
                                                 &rv_texts_effect,        &rv_texts_late_reason,
                                                 &rv_texts_alert_kind,    &rv_texts_direction,
                                                 &rv_texts_message_kind,  &rv_texts_operator_verb};
    size_t written = 0;
    for (size_t t = 0; t < sizeof all / sizeof all[0]; t++) {
        for (size_t i = 0; i < all[t]->count; i++) {
            if (text_listed(name, all[t], i))
                rv_buf_printf(sql, "%s%.*s = '%.*s'", written++ > 0 ? " OR " : "(",
                              RV_STR_FMT(column), RV_STR_FMT(all[t]->texts[i]));
        }
    }
    rv_assert(written > 0);
    rv_buf_add_char(sql, ')');
}

void rv_sqlite_expand(struct rv_buf *sql, const char *template)
{
    for (const char *at = template; *at != '\0'; at++) {
        const char *space = *at == '{' ? strchr(at, ' ') : NULL;
        const char *end = space != NULL ? strchr(space, '}') : NULL;
        if (end == NULL) {
            rv_buf_add_char(sql, *at);
            continue;
        }
        list_write(sql, (struct rv_str){at + 1, (size_t)(space - at - 1)},
                   (struct rv_str){space + 1, (size_t)(end - space - 1)});
        at = end;
    }
}

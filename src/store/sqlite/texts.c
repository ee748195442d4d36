/* The words of core/tbl as SQL sees them: texts for columns, CHECKs and partial indexes. */
#include "store/sqlite/sqlite_priv.h"

#include "base/assert.h"
#include "core/state.h"

/* The lists of words that SQL names. */
static const struct list {
    const char *name;
    const struct rv_texts *texts;
} all[] = {
    {"task_state", &rv_texts_task_state},
    {"step_state", &rv_texts_step_state},
    {"attempt_state", &rv_texts_attempt_state},
    {"step_kind", &rv_texts_step_kind},
    {"effect", &rv_texts_effect},
    {"late_reason", &rv_texts_late_reason},
    {"alert_kind", &rv_texts_alert_kind},
    {"direction", &rv_texts_direction},
    {"message_kind", &rv_texts_message_kind},
    {"operator_verb", &rv_texts_operator_verb},
};

/* Which of the words belong to a list by that name. */
static bool word_listed(struct rv_str name, const struct list *list, size_t value)
{
    bool states = list->texts == &rv_texts_task_state;
    if (rv_str_is(name, "open"))
        return states && rv_task_state_open((enum rv_task_state)value);
    if (rv_str_is(name, "ended"))
        return states && !rv_task_state_open((enum rv_task_state)value);
    if (rv_str_is(name, "rare"))
        return states && rv_task_state_rare((enum rv_task_state)value);
    return rv_str_is(name, list->name);
}

/* "(column = 'a' OR column = 'b' ...)". Not IN: for that SQLite builds a table of its own in every
 * statement, which halves the rate of the whole store. */
static void list_write(struct rv_buf *sql, struct rv_str column, struct rv_str name)
{
    size_t written = 0;
    for (size_t l = 0; l < sizeof all / sizeof all[0]; l++) {
        for (size_t i = 0; i < all[l].texts->count; i++) {
            if (word_listed(name, &all[l], i))
                rv_buf_printf(sql, "%s%.*s = '%.*s'", written++ > 0 ? " OR " : "(",
                              RV_STR_FMT(column), RV_STR_FMT(all[l].texts->texts[i]));
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

#include "core/selection.h"

#include "base/assert.h"
#include "base/bucket.h"
#include "base/limits.h"
#include "base/time.h"
#include "json/json.h"

#include <stdio.h>

static const struct {
    const char *text;
    char letter;
} outcomes[RV_BULK_COUNT] = {{"done", 'd'}, {"refused", 'r'}, {"gone", 'g'}};

static const enum rv_command_kind verbs[] = {
    RV_COMMAND_UNDO, RV_COMMAND_CANCEL, RV_COMMAND_RESUBMIT, RV_COMMAND_SUSPEND, RV_COMMAND_RESUME};
enum { VERBS = sizeof verbs / sizeof verbs[0] };
const char *const rv_bulk_verbs[] = {"undo", "cancel", "resubmit", "suspend", "resume", NULL};

const char *rv_bulk_outcome_text(enum rv_bulk_outcome outcome)
{
    return (unsigned)outcome < RV_BULK_COUNT ? outcomes[outcome].text : "?";
}

bool rv_bulk_outcome_parse(struct rv_str text, enum rv_bulk_outcome *ret_outcome)
{
    for (unsigned i = 0; i < RV_BULK_COUNT; i++) {
        if (rv_str_is(text, outcomes[i].text)) {
            *ret_outcome = (enum rv_bulk_outcome)i;
            return true;
        }
    }
    return false;
}

const char *rv_bulk_verb_text(enum rv_command_kind verb)
{
    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i] == verb)
            return rv_bulk_verbs[i];
    return NULL;
}

bool rv_bulk_verb_parse(struct rv_str text, enum rv_command_kind *ret_verb)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (rv_str_is(text, rv_bulk_verbs[i])) {
            *ret_verb = verbs[i];
            return true;
        }
    }
    return false;
}

/* ---- the selection ---- */

static void text_write(struct rv_buf *buf, const char *name, struct rv_str text)
{
    if (text.at == NULL)
        return;
    rv_buf_printf(buf, ",\"%s\":", name);
    rv_json_write_string(buf, text);
}

/* Without the bracket that closes it. */
static void word_members_write(struct rv_buf *buf, const struct rv_word *word)
{
    rv_buf_printf(buf, "{\"at\":%lld", (long long)word->at);
    text_write(buf, "by", word->by);
    text_write(buf, "role", word->role);
    text_write(buf, "reason", word->reason);
}

static void word_write(struct rv_buf *buf, const char *name, const struct rv_word *word)
{
    if (word->at == 0)
        return;
    rv_buf_printf(buf, ",\"%s\":", name);
    word_members_write(buf, word);
    rv_buf_add_char(buf, '}');
}

static void holds_write(struct rv_buf *buf, const struct rv_selection *selection)
{
    if (selection->holds_count == 0)
        return;
    rv_buf_printf(buf, ",\"holdsDropped\":%u,\"holds\":", selection->holds_dropped);
    for (uint32_t i = 0; i < selection->holds_count; i++) {
        rv_buf_add_char(buf, i == 0 ? '[' : ',');
        word_members_write(buf, &selection->holds[i].word);
        rv_buf_printf(buf, ",\"pause\":%s}", selection->holds[i].pause ? "true" : "false");
    }
    rv_buf_add_char(buf, ']');
}

enum rv_err rv_selection_hold(struct rv_arena *arena, struct rv_selection *selection,
                              const struct rv_word *word, bool pause)
{
    uint32_t drop = selection->holds_count >= RV_HOLDS_MAX;
    uint32_t kept = selection->holds_count - drop;
    rv_assert(kept < RV_HOLDS_MAX);
    struct rv_hold *holds = RV_NEW_ARRAY(arena, struct rv_hold, kept + 1);
    if (holds == NULL)
        return RV_ERR_MEMORY;
    for (uint32_t i = 0; i < kept; i++)
        holds[i] = selection->holds[i + drop];
    holds[kept] = (struct rv_hold){.word = *word, .pause = pause};
    selection->holds = holds;
    selection->holds_count = kept + 1;
    selection->holds_dropped += drop;
    return RV_OK;
}

bool rv_selection_rests(const struct rv_selection *selection)
{
    return selection->paused || selection->stopped.at != 0;
}

const struct rv_hold *rv_selection_held(const struct rv_selection *selection)
{
    return selection->holds_count > 0 ? &selection->holds[selection->holds_count - 1] : NULL;
}

void rv_selection_write(struct rv_buf *buf, const struct rv_selection *selection)
{
    rv_buf_printf(buf, "{\"tasks\":%u", selection->tasks);
    text_write(buf, "filter", selection->filter);
    word_write(buf, "picked", &selection->picked);
    word_write(buf, "begun", &selection->begun);
    word_write(buf, "stopped", &selection->stopped);
    holds_write(buf, selection);
    if (selection->begun.at != 0) {
        text_write(buf, "command", rv_str_of(rv_bulk_verb_text(selection->verb)));
        if (selection->by_hand)
            rv_buf_lit(buf, ",\"byHand\":true");
        rv_buf_printf(buf,
                      ",\"abandon\":%s,\"rate\":%u,\"lateSeen\":%u,\"paused\":%s,\"endedAt\":%lld",
                      selection->abandon ? "true" : "false", selection->rate, selection->late_seen,
                      selection->paused ? "true" : "false", (long long)selection->ended_at);
    }
    rv_buf_add_char(buf, '}');
}

void rv_outcomes_write(struct rv_buf *buf, const struct rv_selection *selection)
{
    rv_buf_add_char(buf, '{');
    for (unsigned i = 0; i < RV_BULK_COUNT; i++)
        rv_buf_printf(buf, "%s\"%s\":%u", i > 0 ? "," : "", outcomes[i].text,
                      selection->outcomes[i]);
    rv_buf_add_char(buf, '}');
}

static bool number_read(const struct rv_json *object, const char *name, int64_t max,
                        int64_t *ret_number)
{
    return rv_json_int(rv_json_get(object, rv_str_of(name)), ret_number) && *ret_number >= 0 &&
           *ret_number <= max;
}

static bool truth_read(const struct rv_json *object, const char *name, bool *ret_truth)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    *ret_truth = value != NULL && value->truth;
    return value != NULL && value->type == RV_JSON_BOOL;
}

static bool word_members_read(const struct rv_json *value, struct rv_word *ret_word)
{
    ret_word->by = rv_json_str(rv_json_get(value, RV_STR("by")));
    ret_word->role = rv_json_str(rv_json_get(value, RV_STR("role")));
    ret_word->reason = rv_json_str(rv_json_get(value, RV_STR("reason")));
    return number_read(value, "at", RV_INSTANT_FAR, &ret_word->at) && ret_word->at > 0;
}

/* Absent: it was not said. */
static bool word_read(const struct rv_json *object, const char *name, struct rv_word *ret_word)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(name));
    *ret_word = (struct rv_word){.at = 0};
    return value == NULL || word_members_read(value, ret_word);
}

/* A record of an earlier release has the newest alone, as `held`. */
static enum rv_err held_read(struct rv_arena *arena, const struct rv_json *value,
                             struct rv_selection *selection, bool *ret_good)
{
    struct rv_word held;
    *ret_good = word_read(value, "held", &held);
    return *ret_good && held.at != 0 ? rv_selection_hold(arena, selection, &held, selection->paused)
                                     : RV_OK;
}

/* False in *ret_good: the record is damaged. MEMORY. */
static enum rv_err holds_read(struct rv_arena *arena, const struct rv_json *value,
                              struct rv_selection *selection, bool *ret_good)
{
    const struct rv_json *list = rv_json_get(value, RV_STR("holds"));
    int64_t dropped;
    if (list == NULL)
        return held_read(arena, value, selection, ret_good);
    *ret_good = list->type == RV_JSON_ARRAY && list->len <= RV_HOLDS_MAX &&
                number_read(value, "holdsDropped", UINT32_MAX, &dropped);
    for (uint32_t i = 0; *ret_good && i < list->len; i++) {
        struct rv_hold hold;
        *ret_good = word_members_read(&list->u.items[i], &hold.word) &&
                    truth_read(&list->u.items[i], "pause", &hold.pause);
        enum rv_err err = *ret_good ? rv_selection_hold(arena, selection, &hold.word, hold.pause)
                                    : RV_OK;
        if (err != RV_OK)
            return err;
    }
    if (*ret_good)
        selection->holds_dropped = (uint32_t)dropped;
    return RV_OK;
}

static bool bulk_read(const struct rv_json *value, struct rv_selection *selection)
{
    int64_t rate, seen = 0;
    struct rv_str verb = rv_json_str(rv_json_get(value, RV_STR("command")));
    if (selection->begun.at == 0)
        return true;
    if (!number_read(value, "rate", RV_BULK_RATE_MAX, &rate) || rate == 0 ||
        !number_read(value, "endedAt", RV_INSTANT_FAR, &selection->ended_at) ||
        !truth_read(value, "abandon", &selection->abandon) ||
        !truth_read(value, "paused", &selection->paused))
        return false;
    if (rv_json_get(value, RV_STR("byHand")) != NULL &&
        !truth_read(value, "byHand", &selection->by_hand))
        return false;
    /* Those begun before there was one have none. */
    if (rv_json_get(value, RV_STR("lateSeen")) != NULL &&
        !number_read(value, "lateSeen", UINT32_MAX, &seen))
        return false;
    selection->rate = (uint32_t)rate;
    selection->late_seen = (uint32_t)seen;
    return rv_bulk_verb_parse(verb, &selection->verb);
}

enum rv_err rv_selection_read(struct rv_arena *arena, const struct rv_record *record,
                              struct rv_selection *ret_selection)
{
    struct rv_json value;
    struct rv_selection read = {.unreadable = false};
    int64_t tasks;
    *ret_selection = (struct rv_selection){.unreadable = true};
    if (rv_task_parse(record->key, &ret_selection->id) != RV_OK)
        return RV_OK;
    read.id = ret_selection->id;
    struct rv_str text = rv_arena_str(arena, record->value);
    if (text.at == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = rv_json_parse(arena, text, RV_JSON_DEPTH_MAX, &value, NULL);
    if (err != RV_OK)
        return err == RV_ERR_MEMORY ? err : RV_OK;
    read.filter = rv_json_str(rv_json_get(&value, RV_STR("filter")));
    if (!number_read(&value, "tasks", RV_SELECTION_TASKS_MAX, &tasks) ||
        !word_read(&value, "picked", &read.picked) || !word_read(&value, "begun", &read.begun) ||
        !word_read(&value, "stopped", &read.stopped) || !bulk_read(&value, &read))
        return RV_OK;
    bool good;
    err = holds_read(arena, &value, &read, &good);
    if (err != RV_OK || !good)
        return err;
    read.tasks = (uint32_t)tasks;
    *ret_selection = read;
    return RV_OK;
}

enum rv_err rv_outcomes_read(struct rv_arena *arena, const struct rv_record *record,
                             struct rv_selection *selection)
{
    struct rv_json value;
    int64_t counts[RV_BULK_COUNT];
    enum rv_err err = rv_json_parse(arena, record->value, RV_JSON_DEPTH_MAX, &value, NULL);
    if (err != RV_OK)
        return err == RV_ERR_MEMORY ? err : RV_OK;
    for (unsigned i = 0; i < RV_BULK_COUNT; i++)
        if (!number_read(&value, outcomes[i].text, RV_SELECTION_TASKS_MAX, &counts[i]))
            return RV_OK;
    for (unsigned i = 0; i < RV_BULK_COUNT; i++)
        selection->outcomes[i] = (uint32_t)counts[i];
    return RV_OK;
}

/* ---- outcomes ---- */

struct rv_str rv_bulk_outcome_key(struct rv_task_id selection, const struct rv_outcome_row *row,
                                  char text[static RV_SELECTION_KEY_BYTES])
{
    char of[RV_ID_TEXT_BYTES];
    char task[RV_ID_TEXT_BYTES];
    rv_assert(row->outcome < RV_BULK_COUNT);
    int len = snprintf(text, RV_SELECTION_KEY_BYTES, "%s.%c.%s", rv_task_text(selection, of).at,
                       outcomes[row->outcome].letter, rv_task_text(row->task, task).at);
    rv_assert(len > 0);
    rv_assert(len < RV_SELECTION_KEY_BYTES);
    return (struct rv_str){text, (size_t)len};
}

struct rv_str rv_bulk_outcome_prefix(struct rv_task_id selection,
                                     const enum rv_bulk_outcome *outcome,
                                     char text[static RV_SELECTION_KEY_BYTES])
{
    char of[RV_ID_TEXT_BYTES];
    rv_assert(outcome == NULL || *outcome < RV_BULK_COUNT);
    int len = snprintf(text, RV_SELECTION_KEY_BYTES, "%s.%.*s%s", rv_task_text(selection, of).at,
                       outcome != NULL, outcome != NULL ? &outcomes[*outcome].letter : "",
                       outcome != NULL ? "." : "");
    rv_assert(len > 0);
    rv_assert(len < RV_SELECTION_KEY_BYTES);
    return (struct rv_str){text, (size_t)len};
}

bool rv_bulk_outcome_read(const struct rv_record *record, struct rv_outcome_row *ret_row)
{
    enum { ID = RV_ID_TEXT_BYTES - 1, WHOLE = 2 * ID + 3 };
    *ret_row = (struct rv_outcome_row){.message = record->value, .at = record->at};
    if (record->key.len != WHOLE ||
        rv_task_parse((struct rv_str){record->key.at + ID + 3, ID}, &ret_row->task) != RV_OK)
        return false;
    for (unsigned i = 0; i < RV_BULK_COUNT; i++) {
        if (outcomes[i].letter == record->key.at[ID + 1]) {
            ret_row->outcome = (enum rv_bulk_outcome)i;
            return true;
        }
    }
    return false;
}

/* A task's history: who commanded what, when and why (RULES 7). The line is part of the plan, so it
 * is written with what the command changes or not at all. */
#include "core/plan_priv.h"

#include "base/assert.h"

#define NO_CHANGE "no-change"

enum { OPTIONS_BYTES_MAX = 128 };

static bool verb_of(enum rv_command_kind kind, enum rv_operator_verb *ret_verb)
{
    static const struct {
        enum rv_command_kind kind;
        enum rv_operator_verb verb;
    } verbs[] = {
#define RV_OPERATOR_VERB(name, text) {RV_COMMAND_##name, RV_OPERATOR_##name},
#include "core/tbl/operator_verb.def"
#undef RV_OPERATOR_VERB
    };
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (verbs[i].kind == kind) {
            *ret_verb = verbs[i].verb;
            return true;
        }
    }
    return false;
}

struct words {
    char text[OPTIONS_BYTES_MAX];
    size_t len;
};

static void word_add(struct words *words, bool given, const char *word)
{
    size_t len = strlen(word);
    if (!given)
        return;
    rv_assert(words->len + len + 1 <= sizeof words->text); /* there is room for all words */
    if (words->len > 0)
        words->text[words->len++] = ' ';
    memcpy(words->text + words->len, word, len);
    words->len += len;
}

/* As the API and the command line call them, and at last whether it was in vain. Payloads are not
 * repeated: the step has them. */
static struct rv_str options_of(struct draft *d)
{
    static const char *const findings[] = {[RV_FINDING_DONE] = "done",
                                           [RV_FINDING_UNDONE] = "undone",
                                           [RV_FINDING_NOTHING] = "nothing-happened"};
    const struct rv_command *command = d->command;
    struct words words = {.len = 0};
    rv_assert(command->u.operate.finding <= RV_FINDING_NOTHING);
    if (command->kind == RV_COMMAND_SETTLE)
        word_add(&words, true, findings[command->u.operate.finding]);
    word_add(&words, command->u.operate.close_circuit, "close-circuit");
    word_add(&words, command->u.operate.abandon, "abandon");
    word_add(&words, command->u.operate.by_hand, "by-hand");
    word_add(&words, command->u.operate.input.at != NULL, "input");
    word_add(&words, command->u.operate.assume_not_done, "assume-not-done");
    word_add(&words, command->u.operate.undo_first, "undo-first");
    word_add(&words, command->u.operate.output.at != NULL, "output");
    word_add(&words, !d->plan->changed, NO_CHANGE);
    return words.len > 0 ? rv_arena_str(d->arena, (struct rv_str){words.text, words.len})
                         : RV_STR_NONE;
}

void history_note(struct draft *d)
{
    const struct rv_command *command = d->command;
    enum rv_operator_verb verb;
    if (!verb_of(command->kind, &verb))
        return;
    rv_assert(!command->asks);
    rv_assert(d->plan->history == NULL);
    struct rv_history_row *row = RV_NEW(d->arena, struct rv_history_row);
    if (row == NULL)
        return; /* the arena says so */
    *row = (struct rv_history_row){.task = d->plan->task.id,
                                   .verb = verb,
                                   .step = command->step,
                                   .at = command->now,
                                   .options = options_of(d),
                                   .by = command->u.operate.by,
                                   .reason = command->u.operate.reason,
                                   .selection = command->u.operate.selection};
    d->plan->history = row;
}

bool rv_history_changed(const struct rv_history_row *row)
{
    size_t len = strlen(NO_CHANGE);
    return row->options.len < len ||
           memcmp(row->options.at + row->options.len - len, NO_CHANGE, len) != 0;
}

/* cure.h - the commands that a task accepts now. */
#ifndef RV_CORE_CURE_H
#define RV_CORE_CURE_H

#include "core/decide.h"

/* Alerts, explanations and refusals of commands name no others: a cure is named exactly when
 * rv_decide takes its command on the same rows. */
enum rv_cure_kind {
#define RV_CURE(name, text, command, effect) RV_CURE_##name,
#include "core/tbl/cure.def"
#undef RV_CURE
    RV_CURE_KIND_COUNT
};

struct rv_cure {
    enum rv_cure_kind kind;
    uint32_t step;      /* 0: the task as a whole */
    uint32_t late_seen; /* replies in the task's ledger, which the command says were seen; set by
                         * those who have the ledger, where rv_cure_needs_ledger */
};

/* One of the task's for each kind, and those of a step for each at which it stands, and for the one
 * that is being undone. */
enum { RV_CURE_LINE_BYTES = 128, RV_ALERT_CURE_BYTES = 384 };
enum { RV_CURES_MAX = RV_CURE_KIND_COUNT + 3 * (RV_OPEN_STEPS_MAX + 1) };

const char *rv_cure_text(enum rv_cure_kind kind);
/* `undo`: the command is for a forward step of a task that is being undone, or for the one whose
 * undo is under way. */
const char *rv_cure_effect(enum rv_cure_kind kind, bool undo);
/* Whether the command is refused until the late replies of the task were seen (RULES 3). */
bool rv_cure_needs_ledger(enum rv_cure_kind kind);
/* "reeve settle 06DWX3T9H2K4Q 3 --undone --late-seen 2". */
struct rv_str rv_cure_line(struct rv_task_id task, const struct rv_cure *cure,
                           char text[static RV_CURE_LINE_BYTES]);
/* The command that a person gives, but for who, when and why. */
struct rv_command rv_cure_command(const struct rv_cure *cure);

/* The number of a step that is to be loaded, and of further ones that will be asked for; on the
 * arena. */
struct rv_cures_want {
    uint32_t number;
    const uint32_t *more;
    size_t more_count;
};

/* What to do about the alert, with its ids in place: what is named is accepted as it is written. */
struct rv_str rv_alert_cure(const struct rv_alert *alert, char text[static RV_ALERT_CURE_BYTES]);

/* What the task of the view accepts; of one that has ended, an undo if it was processed. DECIDED:
 * `ret_cures` and *ret_count are filled; NEED_STEP: load what *ret_want names and ask again;
 * NO_ROOM. */
enum rv_verdict rv_cures(const struct rv_view *view, int64_t now, struct rv_arena *arena,
                         struct rv_cure ret_cures[static RV_CURES_MAX], size_t *ret_count,
                         struct rv_cures_want *ret_want);

#endif

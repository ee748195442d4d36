/* selection.h - tasks that an operator has picked, and one command for all of them, as records. */
#ifndef RV_CORE_SELECTION_H
#define RV_CORE_SELECTION_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/str.h"
#include "core/decide.h"
#include "core/rows.h"

#include <stdbool.h>
#include <stdint.h>

/* Kinds of records, and their keys. A selection is written once; its bulk command is added when it
 * begins, and whether the command is paused or was stopped. Its tasks stand in chunks. A command
 * that was given has an outcome of its own, written in the transaction of what it changes in its
 * task: what has none was not given. How many outcomes there are is noted beside, a bit later. */
#define RV_RECORD_SELECTION "selection"    /* <id> */
#define RV_RECORD_SELECTED "selected"      /* <id>.<number of the chunk> */
#define RV_RECORD_OUTCOME "bulk-outcome"   /* <id>.<letter of the outcome>.<task> */
#define RV_RECORD_OUTCOMES "bulk-outcomes" /* <id>: how many of each */

enum { RV_SELECTION_KEY_BYTES = 2 * RV_ID_TEXT_BYTES + 4 };

enum rv_bulk_outcome {
    RV_BULK_DONE,    /* the command was taken */
    RV_BULK_REFUSED, /* by the rules of the command */
    RV_BULK_GONE,    /* the task was not there any more */
    RV_BULK_COUNT
};

/* Who said something, in which role ("local": without a key), when and why. */
struct rv_word {
    struct rv_str by; /* absent: not told */
    struct rv_str role;
    struct rv_str reason;
    int64_t at; /* 0: it was not said */
};

/* A pause of the bulk command, or its end. The newest RV_HOLDS_MAX are kept. */
enum { RV_HOLDS_MAX = 20 };
struct rv_hold {
    struct rv_word word;
    bool pause;
};

struct rv_selection {
    struct rv_task_id id; /* made as those of tasks are */
    bool unreadable;      /* only the id counts */
    struct rv_str filter; /* as it was given */
    uint32_t tasks;
    struct rv_word picked;
    struct rv_word begun; /* the bulk command */
    enum rv_command_kind verb;
    bool abandon;
    bool by_hand;
    uint32_t rate;
    uint32_t late_seen; /* of each task: one that has more late replies is refused */
    bool paused;
    struct rv_word stopped; /* for good: no further task gets it */
    struct rv_hold *holds;  /* the oldest first */
    uint32_t holds_count;
    uint32_t holds_dropped; /* older ones, which are not kept */
    int64_t ended_at;
    uint32_t outcomes[RV_BULK_COUNT];
};

/* A task's outcome. */
struct rv_outcome_row {
    struct rv_task_id task;
    enum rv_bulk_outcome outcome;
    struct rv_str message; /* REFUSED: why */
    int64_t at;
};

const char *rv_bulk_outcome_text(enum rv_bulk_outcome outcome);
/* Adds a pause or its end; the oldest goes if there are too many. MEMORY. */
RV_CHECK enum rv_err rv_selection_hold(struct rv_arena *arena, struct rv_selection *selection,
                                       const struct rv_word *word, bool pause);
/* No task gets the command now: it is paused, or was stopped. */
bool rv_selection_rests(const struct rv_selection *selection);
/* The newest; NULL: it was never paused. */
const struct rv_hold *rv_selection_held(const struct rv_selection *selection);

bool rv_bulk_outcome_parse(struct rv_str text, enum rv_bulk_outcome *ret_outcome);
/* Commands that are offered for many tasks: those that need nothing that differs from task to
 * task. NULL: it is none of them. */
const char *rv_bulk_verb_text(enum rv_command_kind verb);
bool rv_bulk_verb_parse(struct rv_str text, enum rv_command_kind *ret_verb);
/* The names of the commands, ended by NULL. */
extern const char *const rv_bulk_verbs[];

/* The record's value, JSON. */
void rv_selection_write(struct rv_buf *buf, const struct rv_selection *selection);
void rv_outcomes_write(struct rv_buf *buf, const struct rv_selection *selection);
/* What cannot be read is `unreadable`. MEMORY. Texts are on the arena. */
RV_CHECK enum rv_err rv_selection_read(struct rv_arena *arena, const struct rv_record *record,
                                       struct rv_selection *ret_selection);
/* Takes the numbers over; from a damaged record none. MEMORY. */
RV_CHECK enum rv_err rv_outcomes_read(struct rv_arena *arena, const struct rv_record *record,
                                      struct rv_selection *selection);

struct rv_str rv_bulk_outcome_key(struct rv_task_id selection, const struct rv_outcome_row *row,
                                  char text[static RV_SELECTION_KEY_BYTES]);
/* "<id>.", or "<id>.<letter>." for those of one kind. */
struct rv_str rv_bulk_outcome_prefix(struct rv_task_id selection,
                                     const enum rv_bulk_outcome *outcome,
                                     char text[static RV_SELECTION_KEY_BYTES]);
/* False: it is none. `message` points into the record. */
bool rv_bulk_outcome_read(const struct rv_record *record, struct rv_outcome_row *ret_row);

#endif

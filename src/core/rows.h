/* rows.h - the rows of the state store as values: task, step, attempt, alert and the others. */
#ifndef RV_CORE_ROWS_H
#define RV_CORE_ROWS_H

#include "base/id.h"
#include "base/str.h"
#include "core/state.h"

#include <stdbool.h>
#include <stdint.h>

/* Instants are milliseconds on the store's clock, 0 "none". Payloads are JSON bytes, kept as they
 * came. Every string is borrowed from the arena on which the row was loaded or decided.
 * If you add a field: store/memory copies rows whole, store/sqlite has a column list and a
 * migration, rv_view_valid may hold a rule about it, api renders it, and sim/store/rows.c compares
 * it. */

enum { RV_OPEN_STEPS_MAX = 16 };

/* One run of a workflow. */
struct rv_task {
    struct rv_task_id id;
    int64_t revision;            /* +1 by each committed change; 0: not stored yet */
    int64_t workflow;            /* id of the rv_workflow_row that it is pinned to */
    enum rv_task_state state;    /* process_state */
    enum rv_direction direction; /* kept in `error`, so that resubmission knows where to go on */
    bool cancelling;             /* the undo was asked for by cancel */
    uint8_t priority;            /* 0 to 9, higher first */
    uint8_t locked_by;           /* instance that tends it */
    uint32_t fence;              /* raised by every attempt */
    uint32_t last_number;        /* of the newest step; 0: none */
    uint32_t undo_head;          /* newest step that may have had an effect and is not undone */
    uint32_t undo_blocker;       /* oldest step on that chain that does not declare its undo */
    uint32_t by_hand;            /* on that chain: from this step on, those that do not declare
                                  * their undo were undone by hand; 0: none */
    uint32_t pivot;              /* step that passed the point of no return; 0: none */
    uint32_t last_message;       /* of the newest message to its submitter; 0: none */
    bool reply_stream;           /* messages are kept for whoever reads its stream */
    uint32_t open_count;
    uint32_t open[RV_OPEN_STEPS_MAX]; /* numbers of the steps at which control stands */
    int64_t created_at;
    int64_t started_at; /* first attempt recorded */
    int64_t ended_at;
    int64_t suspended_at; /* 0: it is not */
    uint32_t redo;     /* waits, not open yet, until the step that it replaces is undone; 0: none */
    int64_t quiet_at;  /* until then a forward attempt that ended unheard may be at work */
    struct rv_str key; /* the submitter's */
    struct rv_str correlation;
    struct rv_str tags;       /* of the submitter, JSON (core/tags.h); absent: none */
    struct rv_str reply_url;  /* of the webhook that its messages go to; absent: none */
    struct rv_str trace;      /* its caller's traceparent, or a trace id of its own (trace.h) */
    struct rv_str tracestate; /* its caller's; absent: none */
    struct rv_str input;      /* as submitted */
    struct rv_str context;    /* the DSL's $context; absent: null */
    struct rv_str output;     /* of the whole, once processed */
    struct rv_str error;      /* why it is undone, compensated or parked */
    bool unreadable;          /* not a column: the stored row holds what no task can (store.h) */
};

/* One step: a call of an agent, a wait, or a run of inline steps. It is the line of control too:
 * `frames` say how to go on from here (workflow/flow.h): each open step is a branch. */
struct rv_step {
    uint32_t number; /* from 1 in its task */
    enum rv_step_kind kind;
    enum rv_step_state state; /* process_state */
    enum rv_direction direction;
    uint32_t undoes;   /* UNDO: number of the forward step */
    uint32_t replaces; /* the step that was resubmitted as this one, with another input; 0: none */
    uint32_t node;     /* in the definition */
    uint32_t visit;
    enum rv_effect effect; /* of all attempts so far */
    uint32_t undo_way;     /* 1 + enum rv_undo_way, known even where the definition cannot be read;
                            * 0: not attempted yet, or last by a version that did not note it */
    uint32_t undo_prev;    /* chained: the step to undo after this one; 0: the last */
    bool chained;          /* stands on the task's undo chain (or stood there: undone) */
    bool undone;
    bool called;            /* an alert that nobody tries it is open */
    bool stale;             /* an attempt of it left with less than is known of what it undoes */
    bool insist;            /* an operator wants it tried: no open circuit stops the attempt */
    bool unreadable;        /* not a column: the stored row holds what no step can (store.h) */
    uint32_t failure_count; /* in this round */
    uint32_t round;         /* cool-downs so far */
    uint32_t deaths;        /* agent instances that died at it */
    int64_t wake_at;        /* complete-by, lease, retry-at, timer, deadline or alert */
    int64_t ready_at;       /* PENDING: not handed out before */
    int64_t waits_since;    /* PENDING: its age in the ready queue, kept by what was not tried */
    int64_t deadline;       /* DSL timeout in force; 0: none */
    uint32_t attempt;       /* number of the newest; 0: none yet */
    enum rv_attempt_state attempt_state;
    enum rv_effect attempt_effect; /* of the newest attempt alone */
    uint32_t fence;
    uint64_t token;           /* of the newest attempt */
    int64_t attempt_at;       /* recorded */
    int64_t attempt_ended_at; /* 0 while it is live */
    int64_t complete_by;      /* set when an attempt is recorded, kept to the next; 0 before */
    int64_t lease_ms;
    int64_t lease_until; /* never later than complete_by */
    int64_t created_at;
    int64_t ended_at;
    struct rv_str reference;
    struct rv_str iteration;
    struct rv_str agent;
    struct rv_str target;   /* of the open circuit that parks it; absent: none */
    struct rv_str instance; /* that holds the newest attempt, its boot id and its poll */
    struct rv_str boot;
    struct rv_str poll;
    struct rv_str frames;
    struct rv_str data;          /* CALL: the DSL task's input; absent: that is the task's */
    struct rv_str input;         /* of the request */
    struct rv_str output;        /* of the result; before that, of a late `done` */
    struct rv_str error;         /* of the newest failure */
    struct rv_str attempt_error; /* of the newest attempt, where `error` is something else's */
};

/* An attempt that has ended without the step's result; the newest attempt stands in the step. */
struct rv_attempt {
    struct rv_step_id step;
    uint32_t number;
    enum rv_attempt_state state;
    enum rv_effect effect;
    uint64_t token;
    uint32_t fence;
    uint32_t round; /* cool-downs of its step up to then */
    int64_t attempt_at;
    int64_t complete_by;
    int64_t ended_at;
    int64_t retry_at; /* from when on its step could be tried again; 0: not known (the newest one,
                       * and those of a version that did not note it) */
    struct rv_str instance;
    struct rv_str error;
};

/* A reply that was not counted: the late-reply ledger. */
struct rv_late_reply {
    struct rv_step_id step;
    uint32_t attempt;
    int64_t arrived_at;
    enum rv_late_reason reason;
    struct rv_str output; /* one of the two */
    struct rv_str error;
};

struct rv_alert {
    int64_t id;
    struct rv_task_id task; /* none: it is of no task, but has a source */
    uint32_t step;          /* number; 0: the task as a whole */
    enum rv_alert_kind kind;
    int64_t raised_at;
    int64_t acked_at;  /* 0: not yet */
    int64_t closed_at; /* 0: its cause still stands */
    struct rv_str acked_by;
    struct rv_str message;
    struct rv_str source; /* of one that is of no task: what it is about, once for each */
};

/* What the server and its operators keep beside tasks. Those who share a kind agree on its keys
 * and values; a key is never empty. */
struct rv_record {
    int64_t at; /* written */
    struct rv_str kind;
    struct rv_str key;
    struct rv_str value;
};

/* What a task's submitter is told; written with what it tells, and never changed. */
struct rv_message {
    struct rv_task_id task;
    uint32_t number; /* from 1 in its task, without gaps */
    enum rv_message_kind kind;
    uint32_t step; /* number; 0: the task as a whole */
    int64_t at;
    struct rv_str body; /* JSON, as it is sent */
};

/* A command of an operator that was accepted: a line of its task's history. It is written with what
 * the command changes, and never changed. */
struct rv_history_row {
    struct rv_task_id task;
    uint32_t number; /* from 1 in its task, without gaps; the first RV_HISTORY_MAX are kept */
    enum rv_operator_verb verb;
    uint32_t step; /* number; 0: the command names none */
    int64_t at;
    struct rv_str options; /* words with a space between; absent: none */
    struct rv_str by;      /* with the name of the API key; absent: unknown */
    struct rv_str reason;
    struct rv_task_id selection; /* of the bulk command; none: a command for this task alone */
};

/* How far a task's messages have come on their way to its webhook; or an alert on its way to the
 * operators', which is the first and last message of its own. */
struct rv_delivery {
    struct rv_task_id task;    /* or the alert's id */
    uint32_t next;             /* number of the first message that is not known to have arrived */
    uint32_t last;             /* of the newest message; below `next`: nothing waits */
    uint32_t failures;         /* in a row, of the message `next` */
    int64_t since;             /* from when on that message could be sent */
    int64_t due_at;            /* it is not tried before */
    bool parked;               /* given up: an alert calls an operator, who has it retried */
    struct rv_str destination; /* scheme, host and port of the URL: what fails together */
    struct rv_str url;
    bool alert; /* what is sent is the alert of that id */
};

/* A published definition. */
struct rv_workflow_row {
    int64_t id;
    int64_t published_at;
    struct rv_str space; /* namespace */
    struct rv_str name;
    struct rv_str version;
    struct rv_str hash;   /* hex SHA-256 of the canonical JSON */
    struct rv_str source; /* canonical JSON */
};

#endif

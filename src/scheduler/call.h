/* call.h - what the outside asks of the scheduler, and what it answers: one struct per request. */
#ifndef RV_SCHEDULER_CALL_H
#define RV_SCHEDULER_CALL_H

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/str.h"
#include "core/agent_limit.h"
#include "core/api_key.h"
#include "core/cure.h"
#include "core/decide.h"
#include "core/rows.h"
#include "core/selection.h"
#include "notify/notice.h"
#include "scheduler/counts.h"
#include "store/copy.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

/* A call is made by the api (or the simulator), put into the mailbox, and belongs to the scheduler
 * until it calls `finish`, exactly once, after the commit that decided it or when its parking ends.
 * Then it belongs to its maker again, who renders the answer and frees it. All that the request
 * or the answer points to lives on the call's own arena. */
enum rv_call_kind {
#define RV_CALL(name, member, changes, ops) RV_CALL_##name,
#include "scheduler/tbl/call.def"
#undef RV_CALL
};

struct rv_call_publish {
    struct rv_workflow_row row; /* in: space, name, version, hash, source; out: id */
    bool known;                 /* out: the same definition was published before */
    struct rv_str *warnings;    /* for its author; the scheduler does not look at them */
    size_t warnings_count;
};

struct rv_submission {
    struct rv_str space; /* in */
    struct rv_str name;
    struct rv_str version; /* absent: the newest */
    struct rv_str input;   /* JSON; absent: {} */
    struct rv_str key;
    struct rv_str body_hash; /* of the whole submission, given when key is */
    struct rv_str correlation;
    struct rv_str tags;        /* canonical JSON; absent: none */
    struct rv_str reply_url;   /* of a webhook; absent: none */
    bool reply_stream;         /* messages are kept for a stream */
    struct rv_str traceparent; /* W3C trace context as it came, perhaps none that can be read */
    struct rv_str tracestate;
    uint8_t priority;
    enum rv_err err;        /* in: an item that the api refused already (with its message); out */
    struct rv_str message;  /* names what is wrong and the cure */
    struct rv_task_id task; /* out */
    enum rv_task_state state;
    bool known; /* the key was submitted before with the same body */
};

struct rv_call_submit {
    struct rv_submission *items;
    size_t count;
    bool batch;                 /* many were sent: each gets a result of its own */
    int64_t wait_ms;            /* one item only: answer when the task has ended, or then */
    const struct rv_task *task; /* out, if wait_ms: the task as it stands */
};

/* A request handed out. */
struct rv_assignment {
    struct rv_step_id step;
    uint32_t attempt;
    uint32_t fence;
    bool insist; /* an operator wants it tried, whatever circuit is open */
    uint64_t token;
    int64_t complete_by;
    int64_t lease_until;
    struct rv_str reference;
    struct rv_str input;
    struct rv_str traceparent; /* the attempt's own span is the parent */
    struct rv_str tracestate;  /* absent: none */
};

struct rv_cancel_notice {
    struct rv_step_id step;
    uint64_t token;
};

struct rv_poll {
    struct rv_str agent; /* in */
    struct rv_str instance;
    struct rv_str boot;
    struct rv_str poll;
    uint32_t max;
    int64_t wait_ms;
    bool inside;   /* it comes from the agent inside this server, which starts and ends with it */
    bool leaving;  /* the instance stops: its last poll */
    bool confirms; /* `confirm` was given, perhaps empty */
    struct rv_str *confirm;
    size_t confirm_count;
    struct rv_assignment *requests; /* out */
    size_t requests_count;
    struct rv_cancel_notice *cancels;
    size_t cancels_count;
};

struct rv_reply_item {
    struct rv_step_id step; /* in; number 0: the text was no step id */
    uint64_t token;
    bool failed;             /* `error` was given, else `output` */
    struct rv_reply reply;   /* core/decide.h */
    bool counted;            /* out: it changed its task */
    int refused;             /* in: the status with which the api refused the item; 0: it did not.
                             * Such an item has step number 0, and the scheduler passes it over */
    struct rv_step_id named; /* in: of such an item, the step that it names, for the answer */
    struct rv_str refusal;   /* in: why */
    int status;              /* out: 200, 409 or 410 */
    struct rv_str message;
};

struct rv_call_replies {
    struct rv_reply_item *items;
    size_t count;
    bool has_next;
    struct rv_poll next; /* wait_ms 0: leaves at the commit with whatever is ready */
};

struct rv_lease_item {
    struct rv_step_id step; /* in */
    uint64_t token;
    int status; /* out: 200, 409 or 410 */
    int64_t lease_until;
    int64_t complete_by;
    bool cancel; /* stop: the attempt is revoked or over */
};

struct rv_call_leases {
    struct rv_lease_item *items;
    size_t count;
};

struct rv_call_operate {
    enum rv_command_kind verb; /* RV_COMMAND_RESUBMIT, _UNDO, _CANCEL, _SETTLE, _RETRY, _SUSPEND,
                                  * _RESUME */
    struct rv_task_id task;
    struct rv_str by;
    struct rv_str reason;
    struct rv_task_id selection; /* of the bulk command; none: for this task alone */
    bool abandon;                /* CANCEL: what was done stays done */
    bool by_hand; /* UNDO, CANCEL: what does not declare its undo is undone by hand */
    /* RETRY: present: close-circuit. The scheduler chooses task and step, one that waits for an
     * open circuit of this agent (out: step 0: none waits), and says its target ("": the whole
     * agent). Absent target: the circuit of the whole agent, else the only one. */
    struct rv_str agent;
    struct rv_str target;
    uint32_t step;           /* SETTLE; RESUBMIT with input: 0: the only one in error */
    struct rv_str input;     /* RESUBMIT: another one; absent: the same */
    bool assume_not_done;    /* RESUBMIT with input */
    bool undo_first;         /* RESUBMIT with input */
    enum rv_finding finding; /* SETTLE */
    struct rv_str output;    /* SETTLE; absent: none was given */
    uint32_t late_seen;      /* SETTLE, RESUBMIT, UNDO: so many late replies of the task's ledger
                              * were looked at; where there are more it is refused */
    const struct rv_task *after; /* out */
};

struct rv_call_show {
    struct rv_task_id task;
    int64_t after_revision; /* with wait_ms: answer when the revision is higher */
    int64_t wait_ms;
    const struct rv_task *found; /* out; NULL with RV_ERR_NOT_FOUND */
    const struct rv_workflow_row *workflow;
};

/* One page of whatever kind the call is. */
/* What an alert is about, so that equal ones are shown as one group. */
struct rv_alert_facts {
    char group[RV_ALERT_GROUP_BYTES]; /* its name: the same for equal alerts, always */
    struct rv_str workflow;           /* "namespace/name:version"; absent: it is of no task */
    struct rv_str reference;          /* of the step; absent: unknown */
    struct rv_str error_type;         /* absent: none */
};

struct rv_alert_group {
    const struct rv_alert *newest;
    const struct rv_alert_facts *facts; /* of that one */
    uint64_t count;
    int64_t first_at;
};

struct rv_alert_groups {
    struct rv_alert_group *rows; /* that with the newest alert first */
    size_t count;
};

struct rv_call_list {
    struct rv_task_id task;       /* STEPS, ATTEMPTS, LATE, HISTORY; ALERTS: none for all */
    uint32_t step;                /* ATTEMPTS: 0 for all; else of that step */
    uint32_t after_step;          /* STEPS: after this number; ATTEMPTS: after this step ... */
    uint32_t after;               /* ... and this attempt */
    int64_t before;               /* ALERTS, HISTORY */
    size_t skip;                  /* WORKFLOWS, LATE: rows before the page */
    bool open_only;               /* ALERTS */
    struct rv_str key;            /* TASKS: present: only the task of this key */
    int64_t older_ms;             /* TASKS: submitted so long ago, or longer; 0: any */
    int64_t newer_ms;             /* TASKS: submitted no longer ago; 0: any */
    struct rv_task_filter filter; /* TASKS; WORKFLOWS: `workflow` present: only that one */
    size_t limit;                 /* at most RV_PAGE_ROWS_MAX */
    size_t count;                 /* out: rows in the array of this kind */
    struct rv_task_id next;       /* TASKS: where to go on; none: the end */
    struct rv_task *tasks;
    const struct rv_workflow_row **task_workflows; /* task_workflows[i] belongs to tasks[i] */
    struct rv_step *steps;
    size_t steps_count;          /* out: ATTEMPTS: rows in `steps`; for STEPS, `count` */
    struct rv_attempt *attempts; /* ATTEMPTS: the newest of each step stands in `steps` */
    struct rv_late_reply *late_replies;
    struct rv_history_row *history;
    struct rv_alert *alerts;
    struct rv_alert_facts *alert_facts; /* ALERTS: one for each */
    struct rv_alert_groups groups;      /* ALERTS: of these */
    struct rv_workflow_row *workflows;
};

struct rv_agent_row {
    struct rv_str agent;
    struct rv_str instance;
    int64_t seen_at;
    uint32_t open_attempts;
    bool parked;    /* a poll is waiting here */
    bool connected; /* false: it has work, and has not been seen for a minute */
};

/* An open circuit. */
struct rv_circuit_row {
    struct rv_str target; /* "": the whole agent */
    int64_t until;        /* not in the future: its probe is out, or goes next */
    uint64_t waiting;     /* steps that wait for it */
};

struct rv_agent_kind_row {
    struct rv_str agent;
    size_t waiting;        /* steps that wait for it, also while a circuit is open */
    int64_t waiting_since; /* of the oldest; 0: none */
    uint32_t instances;
    uint64_t circuits_open;
    struct rv_circuit_row circuits[RV_AGENT_CIRCUITS_SHOWN]; /* the worst of them, that one first */
    size_t circuits_count;
    uint32_t open_attempts;      /* of all its instances */
    struct rv_agent_limit limit; /* at 0: nothing was ever said */
};

struct rv_call_agents {
    struct rv_agent_kind_row *kinds; /* out */
    size_t kinds_count;
    struct rv_agent_row *instances;
    size_t instances_count;
};

/* Tasks that failed in the last hour, by the type of the error. */
struct rv_failure_row {
    struct rv_str type; /* "": of all types for which there is no room */
    uint64_t count;
    int64_t last_at;
};

/* What an operator wants to know first. All of it is known without reading tasks, but for those
 * that the open alerts name. */
enum rv_store_problem {
#define RV_STORE_PROBLEM(name, text, sentence, cure) RV_STORE_IS_##name,
#include "scheduler/tbl/store_problem.def"
#undef RV_STORE_PROBLEM
    RV_STORE_PROBLEMS
};

struct rv_store_problems {
    bool has[RV_STORE_PROBLEMS];
    struct rv_str displaced; /* which file, and what to do; absent: it is not */
};

struct rv_call_status {
    int64_t started_at; /* of this server: it knows of no failure before */
    const struct rv_counts *counts;
    struct rv_failure_row *failures; /* the most frequent first */
    size_t failures_count;
    struct rv_call_agents agents;
    struct rv_alert_groups alerts;
    uint64_t alerts_count; /* the newest, of which the groups are */
    bool alerts_more;      /* there are older ones */
    int64_t store_bytes;   /* 0: unknown */
    struct rv_store_problems problems;
};

/* What a task or step waits for. */
enum rv_wait_reason {
#define RV_WAIT_REASON(name, text, sentence) RV_WAIT_##name,
#include "scheduler/tbl/wait_reason.def"
#undef RV_WAIT_REASON
    RV_WAIT_REASON_COUNT
};

/* A step at which a task stands. */
struct rv_explained {
    const struct rv_step *step;
    enum rv_wait_reason reason;
    int64_t until;        /* when that is over by itself; 0: with an event */
    struct rv_str target; /* CIRCUIT: that does not answer; "": the whole agent */
    int64_t seen_at;      /* HELD: its holder; else the newest sign of life of its agent; 0: none */
    uint32_t connected;   /* instances of its agent */
    uint32_t polling;     /* of them, those that ask for work now */
    uint64_t queued;      /* steps that are ready for its agent */
    uint32_t threshold;   /* of its policy; 0: not known */
    uint32_t rounds;
    bool pivot;
    bool agent_paused; /* SUSPENDED: its agent would not get it either */
};

/* What has happened to a task. */
enum rv_explained_kind {
#define RV_EXPLAINED_EVENT(name, text) RV_EXPLAINED_##name,
#include "scheduler/tbl/explained_event.def"
#undef RV_EXPLAINED_EVENT
};

struct rv_explained_event {
    enum rv_explained_kind kind;
    int64_t at;
    int64_t until;         /* COOL_DOWN: the step could be tried again; 0: not known */
    uint32_t step;         /* number; 0: the task as a whole. UNDO_BEGAN: that failed, or is undone
                            * first */
    struct rv_str message; /* POSTPONED: of its alert */
};

/* What became of an effect that a forward step has or may have had. */
enum rv_explained_effect {
#define RV_EXPLAINED_EFFECT(name, text, sentence) RV_EFFECT_##name,
#include "scheduler/tbl/explained_effect.def"
#undef RV_EXPLAINED_EFFECT
    RV_EXPLAINED_EFFECTS
};

struct rv_effect_told {
    uint32_t step; /* number */
    struct rv_str reference;
    enum rv_effect effect;
    enum rv_explained_effect how;
};

/* Lists that are cut when they are long. */
enum rv_explained_cut {
#define RV_EXPLAINED_CUT(name, list, before, max, after, path) RV_EXPLAINED_CUT_##name,
#include "scheduler/tbl/explained_cut.def"
#undef RV_EXPLAINED_CUT
    RV_EXPLAINED_CUTS
};
enum {
#define RV_EXPLAINED_CUT(name, list, before, max, after, path) RV_EXPLAINED_##name##_MAX = (max),
#include "scheduler/tbl/explained_cut.def"
#undef RV_EXPLAINED_CUT
};

struct rv_call_explain {
    struct rv_task_id task;
    const struct rv_task *found; /* out; NULL with RV_ERR_NOT_FOUND */
    const struct rv_workflow_row *workflow;
    enum rv_wait_reason reason;
    int64_t until;
    int64_t next_at; /* when it is looked at next; 0: on an event */
    struct rv_explained *steps;
    size_t steps_count;
    struct rv_attempt *attempts; /* ended, of one step, the newest */
    size_t attempts_count;
    uint32_t attempts_of; /* that step: the first of the open ones, or the one that failed last */
    struct rv_alert *alerts; /* open */
    size_t alerts_count;
    struct rv_late_reply *late_replies; /* of the task, the oldest */
    size_t late_replies_count;
    struct rv_cure *cures; /* of an open task */
    size_t cures_count;
    struct rv_explained_event *events; /* the oldest first */
    size_t events_count;
    struct rv_effect_told *effects; /* for operators first */
    size_t effects_count;
    uint32_t effects_total[RV_EXPLAINED_EFFECTS];
    bool cut[RV_EXPLAINED_CUTS];           /* the list has more rows, which are not here */
    uint32_t left[RV_EXPLAINED_CUTS];      /* so many; 0: not known */
    struct rv_store_problems problems;     /* the commands may be refused for them */
    const struct rv_history_row *ended_by; /* the newest command that undid or cancelled it */
};

/* What is not set stays as it is. */
struct rv_call_limit {
    bool sets_concurrent; /* in */
    bool sets_rate;
    bool sets_paused;
    struct rv_str reason;
    struct rv_agent_limit row;   /* in: but for `at` */
    struct rv_agent_limit after; /* out: all of it */
};

struct rv_call_ack {
    int64_t alert;
    struct rv_str by;
    struct rv_str reason; /* for the log alone */
};

struct rv_call_raise {
    struct rv_str source; /* in: what it is about; there is one alert for each */
    struct rv_str message;
    int64_t alert; /* out */
    bool known;    /* out: it was raised before */
};

struct rv_agent_count {
    struct rv_str agent; /* absent: all those beyond the bound together */
    uint64_t waiting;    /* steps that wait for it, also while a circuit is open */
    int64_t oldest_ms;   /* how long the first of them has waited */
    uint64_t instances;
    uint64_t attempts_open;
    uint64_t polls_parked;
    uint64_t circuits_open;
};

struct rv_call_metrics {
    const struct rv_counts *counts; /* out */
    struct rv_agent_count *agents;
    size_t agents_count; /* at most RV_METRICS_AGENTS_MAX + 1 */
    size_t calls_parked;
};

struct rv_call_keys {
    struct rv_str after; /* in: an id; absent: from the first */
    size_t limit;
    struct rv_api_key *rows; /* out */
    size_t count;
};

struct rv_call_key {
    struct rv_api_key row; /* ADD: in, but for created_at; REVOKE: in: id, out: what it was */
    struct rv_str secret;  /* ADD: the key's text, for the answer alone: it is kept nowhere */
    uint64_t changes;      /* out: of the keys since the start, this one included; from 2 */
    bool first;            /* ADD: out: there was none; from now on every request needs a key */
};

struct rv_call_messages {
    struct rv_task_id task;
    uint32_t after;           /* in: the number of the last one that is known */
    int64_t wait_ms;          /* in: none are there: answer when there are, or then */
    size_t limit;             /* in: at most RV_PAGE_ROWS_MAX */
    const struct rv_task *of; /* out: as it was when the messages were read */
    struct rv_message *rows;  /* out */
    size_t count;
    bool over;                    /* out: the task has ended, and there are none after these */
    struct rv_delivery *delivery; /* out: how far they are at the webhook; NULL: there is none */
};

struct rv_call_retry {
    int64_t alert;
    struct rv_str by; /* this and the reason: for the log alone */
    struct rv_str reason;
};

/* `why` of each lives on the call's arena. */
struct rv_call_delivered {
    struct rv_notice_result *items;
    size_t count;
};

/* One of the first tasks of a selection, for who asks. */
struct rv_selected_task {
    struct rv_task_id task;
    enum rv_task_state state;
    int64_t created_at;
    struct rv_str workflow; /* absent: it is not there */
};

struct rv_call_select {
    struct rv_call_list list; /* in: as for TASKS, the filters */
    struct rv_selection row;  /* in: filter, picked; out: all of it */
    struct rv_task_id *ids;   /* found so far, the newest first */
    size_t count;
    size_t room;
    bool whole;                                        /* they are all */
    struct rv_selected_task shown[RV_SELECTION_SHOWN]; /* out */
    size_t shown_count;
};

enum rv_bulk_ask { RV_BULK_BEGIN, RV_BULK_PAUSE, RV_BULK_RESUME, RV_BULK_STOP };

struct rv_call_bulk {
    struct rv_task_id selection; /* in */
    enum rv_bulk_ask ask;
    enum rv_command_kind verb; /* BEGIN: one of those that rv_bulk_verb_text knows */
    bool abandon;              /* ... CANCEL */
    bool by_hand;              /* ... UNDO, CANCEL */
    uint32_t rate;             /* ... tasks a second */
    uint32_t late_seen;        /* ... late replies of each task that may be passed over */
    struct rv_word word;       /* but for `at` */
    struct rv_selection row;   /* out: as it is now */
};

struct rv_call_selections {
    struct rv_task_id only;  /* in: none: a page of all */
    struct rv_task_id after; /* in: none: from the oldest */
    size_t limit;
    struct rv_selection *rows; /* out */
    size_t count;
};

struct rv_call_outcomes {
    struct rv_task_id selection; /* in */
    enum rv_bulk_outcome outcome;
    struct rv_task_id after; /* none: from the first */
    size_t limit;
    struct rv_outcome_row *rows;  /* out */
    const struct rv_task **tasks; /* as they are now; NULL: it is gone */
    size_t count;
};

struct rv_call_backup {
    struct rv_copy *copy; /* out: the caller's, to be closed before the store is; NULL: none */
};

struct rv_call_gone {
    uint64_t serial; /* of the call whose caller has left */
};

/* Agents of which steps wait at another server: rv_batch.ready of one that it has written. */
struct rv_call_hint {
    const struct rv_str *agents;
    size_t count;
};

/* What that answer carried: the poll may have been answered again since, with other attempts. */
struct rv_call_unsent {
    struct rv_handed_out {
        struct rv_step_id step;
        uint64_t token;
    } * attempts;
    size_t count;
};

/* The memory of large rows, from when a call loads them until its maker lets go of its arena. While
 * there is no room, large reads wait; the maker has a batch run when there is room again. Called on
 * the scheduler's thread. */
struct rv_call_loads {
    bool (*room)(void *self);
    void (*took)(void *self, size_t bytes);
    void *self;
};

struct rv_call {
    enum rv_call_kind kind;
    uint64_t serial; /* unique in this process, given by the maker */
    uint64_t seed;   /* random, from the operating system: tokens are drawn from it */
    int64_t mono_at; /* arrival by the monotonic clock, stamped on receipt */
    int64_t behind;  /* the mailbox's: no call behind this one arrived before */
    /* The only agent whose steps the caller may answer; absent: any. */
    struct rv_str agent_only;
    struct rv_str by; /* the name of the caller's API key; absent: there is none */
    bool only_reads;  /* the caller may give no commands for tasks */
    /* How many changes of the API keys the maker knew of when it allowed the call, as counted by
     * rv_call_key.changes and rv_scheduler_keys; 0: it does not check access. A call that changes
     * something is refused once its key is revoked, or once the first key exists and it has none;
     * one that only reads, if another server may have made that change. */
    uint64_t keys_known;
    struct rv_str key_id;              /* of the caller's API key; absent: it has none */
    const struct rv_call_loads *loads; /* the maker's; NULL: large rows always have room */
    size_t loaded_bytes;               /* out: what `took` was told of the call */
    struct rv_arena arena;
    /* Called on the scheduler's thread, or by who takes the call back (rv_call_refuse_away). */
    void (*finish)(struct rv_call *call);
    void *owner;          /* the maker's */
    struct rv_call *next; /* link of whoever owns it at the time */
    bool note; /* nobody waits for its answer: it tells of what is known to nobody else */

    enum rv_err err;       /* out: of the call as a whole */
    struct rv_str message; /* out: what is wrong and the cure */
    bool access_ended;     /* out: REFUSED since the caller's access ended meanwhile */
    int64_t now;           /* out: the store's clock at the decision ... */
    int64_t mono_now;      /* ... and the monotonic clock at the same moment: remaining time is
                            * computed from the pair when the answer is written */
    union {
        struct rv_call_publish publish;
        struct rv_call_submit submit;
        struct rv_poll poll;
        struct rv_call_replies replies;
        struct rv_call_leases leases;
        struct rv_call_operate operate;
        struct rv_call_ack ack;
        struct rv_call_raise raise;
        struct rv_call_show show;
        struct rv_call_list list;
        struct rv_call_agents agents;
        struct rv_call_metrics metrics;
        struct rv_call_status *status; /* on the call's arena; out */
        struct rv_call_limit limit;
        struct rv_call_keys keys;
        struct rv_call_key key;
        struct rv_call_messages messages;
        struct rv_call_retry retry;
        struct rv_call_delivered delivered;
        struct rv_call_explain explain;
        struct rv_call_select *select; /* on the call's arena: each parked poll has this union */
        struct rv_call_bulk bulk;
        struct rv_call_selections selections;
        struct rv_call_outcomes outcomes;
        struct rv_call_backup backup;
        struct rv_call_gone gone;
        struct rv_call_hint hint;
        struct rv_call_unsent unsent;
    } u;
};

/* What it asks as a poll; NULL: it is none. */
static inline struct rv_poll *rv_call_poll(struct rv_call *call)
{
    if (call->kind == RV_CALL_POLL)
        return &call->u.poll;
    return call->kind == RV_CALL_REPLIES && call->u.replies.has_next ? &call->u.replies.next : NULL;
}

/* For a call that no batch has taken, while the store does not answer (rv_scheduler_waits): it is
 * finished, and nothing of it has happened. */
static inline void rv_call_refuse_away(struct rv_call *call)
{
    call->err = RV_ERR_BUSY;
    call->message = RV_STR("the store does not answer; send the request again");
    call->finish(call);
}

#endif

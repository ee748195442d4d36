/* state.h - what the files of the scheduler share: the batch, its working set, its caches. */
#ifndef RV_SCHEDULER_BATCH_STATE_H
#define RV_SCHEDULER_BATCH_STATE_H

#include "base/arena.h"
#include "base/heap.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/prng.h"
#include "core/decide.h"
#include "core/selection.h"
#include "notify/book.h"
#include "dispatch/agents.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/scheduler.h"
#include "supervisor/supervisor.h"

/* A workflow as compiled, kept between batches. */
struct workflow_entry {
    struct rv_workflow_row row;             /* on arena */
    const struct rv_definition *definition; /* NULL: cannot be read any more */
    struct rv_arena arena;
    uint64_t used_in; /* batch that used it last */
    size_t pins;      /* evaluations that run on it */
};

/* Compiled workflows by id. */
struct workflow_cache {
    struct rv_map by_id; /* id -> struct workflow_entry *, owned */
};

/* A step's row in a batch's working set. */
struct work_step {
    const struct rv_step *row;
    const struct rv_step *stored; /* as loaded; NULL: it was not */
    enum rv_attempt_state was;    /* as loaded: its newest attempt, and that one's number */
    uint32_t was_attempt;
    bool was_over; /* control had left it */
    bool dirty;
    bool insert;
    bool assigned;            /* its attempt is handed out in this batch */
    struct circuit_word word; /* of the reply that this batch counts */
};

/* One task in a batch: as loaded, then as the batch's decisions have it so far. */
/* How often tasks failed in each of the last minutes, by the type of the error. */
enum { FAILURE_MINUTES = 60, FAILURE_TYPE_BYTES = 128 };
struct failure_type {
    char type[FAILURE_TYPE_BYTES];
    int64_t last_at;                   /* 0: never */
    uint32_t minutes[FAILURE_MINUTES]; /* by the number of the minute */
};

struct failures {
    int64_t since; /* the first batch */
    struct failure_type types[RV_STATUS_FAILURES_MAX];
    struct failure_type others; /* for which there was no room */
};

struct work {
    struct rv_task_id id;
    const struct rv_task *task;   /* NULL: there is no such task (yet) */
    const struct rv_task *stored; /* as loaded */
    int64_t revision_before;
    enum rv_task_state state_before;
    const char *broken; /* the rule that the rows as loaded break: then it can only be parked or
                         * abandoned; NULL: none */
    bool changed;
    bool was_open;       /* as loaded */
    bool waits_to_end;   /* an end of it has come that is not decided yet */
    bool dropped;        /* its change did not pass; its decisions are void */
    struct work *parked; /* ... and this one was written instead; NULL: none */
    struct work_step *steps;
    size_t steps_count;
    size_t steps_room;
    struct rv_attempt *attempts;
    size_t attempts_count;
    size_t attempts_room;
    struct rv_late_reply *late;
    size_t late_count;
    size_t late_room;
    struct rv_alert *alerts;
    size_t alerts_count;
    size_t alerts_room;
    bool close_alerts;
    uint32_t *late_over; /* steps */
    size_t late_over_count;
    size_t late_over_room;
    struct rv_message *messages;
    size_t messages_count;
    size_t messages_room;
    struct rv_history_row *history; /* numbered */
    size_t history_count;
    size_t history_room;
    struct rv_str destination; /* of the webhook of a task that begins */
    int64_t epoch;
    const struct rv_key_row *key;
    const struct rv_record *record;  /* the outcome of a bulk command; NULL: none */
    struct workflow_entry *workflow; /* NULL: not looked up or not there */
    const struct rv_attempt *sought; /* the ended attempt with sought_token; NULL: there is none */
    uint32_t sought_step;            /* 0: not asked for */
    uint64_t sought_token;
    const struct rv_late_reply *said; /* in the ledger, of attempt said_attempt of step said_step */
    size_t said_count;
    uint32_t said_step; /* 0: not loaded */
    uint32_t said_attempt;
    enum rv_err outcome;
    bool too_large;  /* its steps were not loaded, since there is no memory for them */
    bool waits;      /* the newest command on it has become an evaluation */
    int64_t look_at; /* it is due, and there is no room for it before that; 0: there is */
    struct work *next;
};

/* A poll in this batch (alone, behind replies, or parked since an earlier one) and what it gets. */
struct matched {
    struct work *work;
    uint32_t step;
    uint64_t token; /* of its attempt */
    bool repeat;    /* handed out before, the answer was asked for again */
};

/* Where a read stands in a batch. */
enum read_turn {
    READ_DECIDED,
    READ_LATER, /* it comes with the next batch */
    READ_LARGE  /* it waits for room */
};

/* A call while the scheduler has it. */
struct pending {
    struct rv_call *call;
    struct rv_poll *poll;    /* POLL, or REPLIES with next: what it asks */
    struct agent_kind *kind; /* of the poll */
    struct agent_instance *instance;
    uint64_t boot;           /* hash of the poll's boot id, once admitted */
    uint64_t name;           /* hash of the poll's own */
    struct matched *matched; /* on the batch's arena */
    size_t matched_count;
    size_t matched_bytes;      /* of their inputs */
    struct work **works;       /* per item, on the batch's arena */
    int64_t until;             /* parked: monotonic instant of its end */
    struct rv_arena_mark mark; /* parked for a task: before the newest answer that may leave */
    bool parked;
    bool admitted;                /* its boot, confirmations and repeats were looked at */
    bool ended;                   /* attempts ended by what it tells */
    bool heard;                   /* a copy of a poll whose answer its instance has */
    bool large;                   /* may wait for the next batch */
    bool bounded;                 /* some of it does */
    bool left;                    /* its caller has left: it takes nothing and does not wait */
    bool waits_turn;              /* another change of records comes first, or it is not whole */
    size_t delivery;              /* RETRY: its number among the batch's, from 1; 0: none */
    size_t ack;                   /* ACK: the same among the acks */
    size_t raise;                 /* RAISE: the same among the raises */
    bool unanswerable;            /* the poll: no memory for what it was given */
    size_t evaluations;           /* of its decisions */
    size_t evaluating;            /* of these, under way */
    bool counted;                 /* SUBMIT: it waits for its task, and all of it is counted */
    bool waits;                   /* OPERATE: its decision is among these */
    struct rv_task_id awaits;     /* REPLIES: an evaluation of another's; none: none */
    bool aside;                   /* among those that wait for evaluations */
    enum read_turn read;          /* a read that is larger than others wait for */
    bool plain;                   /* SHOW, SUBMIT: it waits without payloads, and is read then */
    bool waited;                  /* SHOW, SUBMIT: what it waited for has come: it is read */
    unsigned tries;               /* batches in which a decision of it did not pass */
    struct pending *asking_next;  /* the next call of this batch that asks for the kind */
    struct pending *asked_before; /* the instance's poll before this one, in the same batch */
    struct pending *its_next;     /* among the parked of its instance */
    struct pending *its_prev;
    struct pending *next; /* in the batch, or among the parked of its kind or task */
    struct pending *prev;
};

void pending_append(struct pending_list *list, struct pending *pending);
/* Before all that came later. */
void pending_insert(struct pending_list *list, struct pending *pending);
void pending_unlink(struct pending_list *list, struct pending *pending);
/* Moves all of `other` among those of the list, each before all that came later. */
void pending_merge(struct pending_list *list, struct pending_list *other);

/* What is known of the tasks that several servers move on one store (scan.c). */
struct others {
    struct rv_map known;  /* open task -> the revision that the caches know, and the round of the
                           * scan that met it last */
    struct rv_map missed; /* tasks to be loaded in the next batch: another server was faster */
};

/* Where the retention rule stands (retention.c). */
struct retention {
    struct rv_sweep sweep; /* of the newest batch that had one; the places where it goes on */
    bool walking;          /* a round is under way */
    int64_t round_at;      /* it began */
    int64_t piece_us;      /* when the newest piece of it had ended, by now_us */
    int64_t next_at;
    int64_t held_until; /* nothing is deleted before (decision 019), */
    bool held_written;  /* and the store knows */
    int64_t recalled;   /* the epoch of the role in which the store was asked */
    size_t tasks_gone;  /* in the round that is under way */
    size_t keys_gone;
};

/* A command of a bulk that this batch has decided. */
struct bulk_item {
    struct bulk *bulk;
    size_t place; /* of its task in the selection */
    enum rv_bulk_outcome outcome;
    struct work *work; /* its outcome is written with this one's change; NULL: ... */
    size_t record;     /* ... as this one of the batch's records */
};

enum { BULK_ITEMS_MAX = 64 };

/* Bulk commands that are under way or paused, of the supervisor's server (bulk.c). */
struct bulks {
    struct bulk *first;         /* owned */
    int64_t epoch;              /* of the supervisor's role as they were read; 0: it is another's */
    int64_t walk_at;            /* when the selections are walked next */
    struct rv_task_id after;    /* where that stands */
    struct rv_task_id removing; /* that is being deleted; none: none */
    int64_t remove_at;
    struct bulk_item items[BULK_ITEMS_MAX]; /* of this batch */
    size_t items_count;
};

/* One turn of the cycle. */
struct batch {
    uint64_t turn; /* counts the batches of this process */
    int64_t now;
    int64_t mono_now;
    int64_t heard_until; /* monotonic: replies and renewals that arrived before are decided ... */
    int64_t ends_until;  /* ... the same by the store's clock: what ends by then has ended */
    struct rv_arena *arena;
    struct work *works;        /* every task that the batch touches */
    struct rv_map works_by_id; /* id -> struct work * */
    struct pending_list calls;
    struct pending *damaged;    /* the query that met rows which cannot be read; NULL: none */
    struct pending_list behind; /* large calls whose turn is a later batch's */
    struct rv_map left;         /* (token, step number): when a reply or renewal came that waits */
    struct rv_map by_serial;    /* calls of the batch, once one of them may have left */
    struct rv_task_id *due;     /* taken from the supervisor's heap */
    size_t due_count;
    struct rv_workflow_row *publishes;
    size_t publishes_count;
    struct rv_ack *acks;
    size_t acks_count;
    struct rv_raise *raises;
    size_t raises_count;
    struct rv_record_change *records;
    size_t records_count;
    size_t records_room;
    unsigned record_changes; /* calls that change records */
    struct rv_task_id held;  /* the selection of which one of them writes a pause or its end */
    struct rv_delivery_change *deliveries;
    size_t deliveries_count;
    size_t deliveries_room;
    bool place_told;            /* the raises have the alert about files that are displaced */
    bool clock_told;            /* they raise the alert about a jump of the wall clock */
    bool unheard;               /* they raise the alert about alerts that are not heard */
    struct rv_book_pick *picks; /* to be sent once the batch is written */
    struct rv_notice **notices; /* ... as they leave; owned until then */
    size_t picks_count;
    bool wait_told;         /* the retention rule's wait is among the records */
    bool must_commit;       /* the role was renewed */
    struct rv_sweep *sweep; /* NULL: none in this batch */
    bool swept;             /* its transaction was committed */
    bool wrote;             /* a transaction of it was committed */
    bool lost;              /* its commit had an unknown outcome, and the store has nothing of it */
    bool forgot;            /* the store has lost what batches before it have written */
    enum rv_err refused;    /* OK, or with what the store has refused a piece of it for now */
    enum rv_err taskless;   /* OK, or why publishes, acks, raises and records were not written */
    int64_t begun_us;       /* 0: nothing is measured */
    unsigned read_tries;    /* reads that were found to be large */
    bool large_begun;       /* an item of a large call was decided, */
    int64_t large_us;       /* for the first time then */
    size_t large_bytes;     /* of such items */
    size_t handed_bytes;    /* inputs of the requests handed out */
    enum share share;       /* of the part that is under way */
    size_t share_from;      /* bytes of the arena as it began, or went on */
    size_t shares[SHARE_COUNT]; /* bytes of the arena so far, without those of that part since */
};

/* A time in which the server was not there: what should have ended in it is nobody's failure. */
struct absence {
    int64_t from;
    int64_t until;
    int64_t gone_from; /* the last look of any process before it; 0: nobody knows */
};

enum { ABSENCES_MAX = 8 };

/* What is on its way to webhooks, and where the walk over the rows of the others stands. */
struct deliveries {
    struct rv_book book;
    int64_t epoch; /* of the supervisor's role, as the book was begun; 0: never */
    bool first;    /* the first walk since then is under way */
    char *place;   /* owned: the destination at which the walk goes on; NULL: from the first */
    size_t place_bytes;
    struct rv_task_id after;
    int64_t walk_at;
};

/* The newest look at the store's files. */
struct place {
    enum rv_err err; /* FULL, DISPLACED */
    const char *why; /* DISPLACED: borrowed from the store */
    bool untold;     /* no alert was raised for it yet */
    int64_t look_at; /* monotonic, as the other */
    int64_t tell_at; /* not before it */
};

struct rv_scheduler {
    struct rv_scheduler_options options;
    struct rv_store *store; /* borrowed */
    struct rv_enlistment enlistment;
    struct rv_id_maker ids;
    struct rv_prng prng;
    struct rv_arena arena; /* of the batch */
    struct batch batch;
    int64_t batch_number;
    int64_t last_now;        /* the store's clock at the last look */
    bool looked;             /* this process has looked at it */
    int64_t first_now;       /* ... for the first time */
    int64_t moved_mono;      /* when it was seen to move, by the monotonic clock */
    int64_t wall_ahead_ms;   /* of the store's clock, when a jump of it was noted last */
    bool clock_alert;        /* nobody was called for it yet, */
    int64_t clock_alert_at;  /* nor shall be before, by the monotonic clock */
    bool full;               /* the newest write found the disk full */
    bool unwritable;         /* ... or was refused for another reason that passes, or lost */
    int64_t unwritable_from; /* the last look before that */
    int64_t damaged_at;      /* when damaged data was met last; 0: never */
    struct place place;
    struct shortage shortage;
    bool history_lost; /* the store does not have any more what was committed */
    struct absence absences[ABSENCES_MAX];
    size_t absences_count;
    struct workflow_cache workflows;
    struct rv_supervisor supervisor;
    struct accounts accounts;
    struct evaluations evaluations;
    struct others others;
    struct retention retention;
    struct bulks bulks;
    struct deliveries deliveries;
    struct rv_delivery alerts_to; /* where alerts go: texts alone; url absent: nowhere */
    char alerts_destination[RV_URL_BYTES_MAX + 1];
    struct agents agents;
    struct rv_map waiters;       /* task -> struct pending_list *, owned: parked SHOW and SUBMIT */
    struct rv_heap parked_until; /* (monotonic instant, serial) of parked calls */
    struct rv_map suspended;     /* tasks that are, as far as they were looked at */
    struct rv_map parked_by_serial; /* serial -> struct pending *, owned */
    struct rv_map parked_polls;     /* (instance, hash of the poll) -> struct pending * */
    struct rv_call *finished;       /* answered in this batch, given back at its end */
    struct rv_call *finished_last;
    struct pending_list reads;    /* large ones, that wait for room */
    struct pending_list carried;  /* to be decided again in the next batch */
    uint64_t key_changes;         /* API keys added and revoked since the start, from 1 */
    uint64_t key_changes_checked; /* those after which calls aside were checked */
    bool more_due;                /* the next batch has work already */
    bool refused;                 /* the store refused the last batch */
    bool lost;                    /* the store has nothing of the last batch, as it turned out */
    bool draining;
    struct rv_map refused_at_stop; /* (token, step): a reply whose decision takes long */
    struct rv_counts counts;
    struct failures failures;
};

/* work.c: the working set. */
/* Its change did not pass since something else was faster, or the store did not take it for now:
 * its calls are decided again. */
bool work_again(const struct work *work);
/* The task's work in this batch, loaded when it is new; ->task NULL when there is none. */
RV_CHECK enum rv_err work_get(struct rv_scheduler *s, struct rv_task_id id, struct work **ret_work);
/* The task's work if the batch has one. */
struct work *work_find(const struct rv_scheduler *s, struct rv_task_id id);
/* A work for a task that begins. */
RV_CHECK enum rv_err work_new(struct rv_scheduler *s, struct rv_task_id id,
                              struct workflow_entry *workflow, struct work **ret_work);
/* Loads the step into the work, which may turn out to be broken; NOT_FOUND when there is none. */
RV_CHECK enum rv_err work_step_load(struct rv_scheduler *s, struct work *work, uint32_t number);
const struct rv_step *work_step(const struct work *work, uint32_t number);
/* NULL: the work has no such step. */
struct work_step *work_step_of(const struct work *work, uint32_t number);
/* Notes the rule that the rows of the work break, if they do. */
RV_CHECK enum rv_err work_check(struct rv_scheduler *s, struct work *work);
/* Decides the command on the work and takes the plan over. The plan's answer fields are in
 * *ret_plan. With an asker the decision may take longer than its turn: work->waits says that
 * nothing is decided yet, and the same asker asks again in a later batch. */
RV_CHECK enum rv_err work_decide(struct rv_scheduler *s, struct work *work,
                                 struct rv_command *command, const struct asker *asker,
                                 struct rv_plan *ret_plan);
/* For evaluations: a work of no batch. Its task and open steps, if it is there; rows that a
 * decision has asked for; what it sees. */
RV_CHECK enum rv_err work_read(struct rv_scheduler *s, struct work *work);
RV_CHECK enum rv_err work_load_more(struct rv_scheduler *s, struct work *work,
                                    const struct rv_command *command, enum rv_verdict verdict,
                                    const struct rv_plan *plan);
RV_CHECK enum rv_err work_view(struct rv_scheduler *s, const struct work *work, uint32_t step,
                               uint64_t token, struct rv_view *ret_view);
/* Steps of the work that wait for an agent go into the ready queues. */
void work_offer(struct rv_scheduler *s, struct work *work);
/* The work's change was not committed: the caches learn its steps as they were loaded. */
void work_withdraw(struct rv_scheduler *s, const struct work *work);
/* Loads tasks (and steps) that the batch will ask for, a few in one go, until the share of the part
 * that is under way is used: the first one always, if `count` is not 0. */
RV_CHECK enum rv_err work_prefetch(struct rv_scheduler *s, const struct rv_step_id *ids,
                                   size_t count);

/* scan.c: what is learned from the rows that nobody asks for. */
void others_init(struct others *others);
void others_done(struct others *others);
/* The caches know the task as it is here; NULL: there is none. */
RV_CHECK enum rv_err others_note(struct rv_scheduler *s, struct rv_task_id id,
                                 const struct rv_task *task);
/* Another server has moved the task, or nobody knows whether: the next batch loads it. */
void others_miss(struct rv_scheduler *s, struct rv_task_id id);
/* A piece of the repair scan: what the caches may not know is loaded, and they learn it like
 * anything else that the batch touches. */
RV_CHECK enum rv_err batch_scan(struct rv_scheduler *s);

/* clock.c: the wall clock's jumps, which are told to an operator and change nothing. */
void clock_note(struct rv_scheduler *s);
RV_CHECK enum rv_err clock_plan(struct rv_scheduler *s);
void clock_act(struct rv_scheduler *s);

/* reads.c: decides a call that only reads, or has it wait. */
RV_CHECK enum rv_err read_decide(struct rv_scheduler *s, struct pending *p);
/* Once all calls are decided: sets those aside that wait, and loads what there is room for. */
RV_CHECK enum rv_err reads_go_on(struct rv_scheduler *s);
/* A large read waits, and may be loaded. */
bool reads_have_room(const struct rv_scheduler *s);
bool read_is_large(const struct rv_task *task);
/* A SHOW that is parked, or was to be: a later batch answers it as one that does not wait. */
void read_again(struct rv_scheduler *s, struct pending *p);
void reads_end(struct rv_scheduler *s, enum rv_err err, struct rv_str why);

/* place.c: whether the store's files are where they were. */
RV_CHECK enum rv_err place_look(struct rv_scheduler *s);
void place_refuse(struct rv_scheduler *s);
RV_CHECK enum rv_err place_plan(struct rv_scheduler *s);
void place_act(struct rv_scheduler *s);
/* After a batch that the store has refused as DISPLACED. Errors: as from a look. */
enum rv_err place_learn(struct rv_scheduler *s);
/* What a batch returns that went well or was refused by a full disk. */
enum rv_err place_heed(const struct rv_scheduler *s, enum rv_err err);

/* absence.c: the batch's instant is looked at; what came of its commit. */
void absence_note(struct rv_scheduler *s);
void refusal_note(struct rv_scheduler *s, enum rv_err err);
/* The store has refused writes for so long that it counts as an absence, and still does. */
bool absence_lasts(const struct rv_scheduler *s);
/* Did this instant pass while the server was not there? Then it is nobody's failure. */
bool absence_covers(const struct rv_scheduler *s, int64_t at);
/* The instant before this one from which on no time counts; 0: all of it does. */
int64_t absence_uncounted(const struct rv_scheduler *s, int64_t at);

/* Where the wait for an agent begins anew that is `since` then and was long enough at `at`: agents
 * need time to come back, too. 0: nowhere. */
int64_t absence_since(const struct rv_scheduler *s, int64_t since, int64_t at);

/* log.c */
void log_event(struct rv_scheduler *s, enum rv_log_level level, const char *event,
               struct rv_str fields);
void log_alert(struct rv_scheduler *s, const struct rv_alert *alert);
/* A command for which its task's history has no room. */
void log_operated(struct rv_scheduler *s, const struct rv_history_row *row);
/* A command of an operator that is no task's, written and about to be answered: who gave it, and
 * why. Other calls are passed over: those of bulk commands are logged where they are written. */
void log_command(struct rv_scheduler *s, const struct rv_call *call);

/* scheduler.c */
/* What the call asks for, before the commit. */
RV_CHECK enum rv_err call_decide(struct rv_scheduler *s, struct pending *p);
/* When what could not be done now is done again. */
int64_t again_at(const struct rv_scheduler *s);
/* The task is looked at again at `at`. Without memory to note that, nothing is noted of it at all,
 * and the repair scan finds it. */
void look_again(struct rv_scheduler *s, struct rv_task_id id, int64_t at);

/* wake.c */
/* For a WAKE of the work: what only the caches know of what is due. False: whether all of it is due
 * is not known yet, since replies may have come before. */
bool wake_know(struct rv_scheduler *s, struct work *work, struct rv_command *command);

/* retention.c */
/* Gives the batch a piece of the retention rule when one is due. */
RV_CHECK enum rv_err retention_plan(struct rv_scheduler *s);
void retention_act(struct rv_scheduler *s);
/* At a start, after `gone_ms`: whether so much has passed, or the wall clock was set meanwhile, an
 * operator may have to look at first. What is long enough lets the rule wait as long, a day at
 * most, also through restarts. */
void retention_hold(struct rv_scheduler *s, int64_t gone_ms);
/* How long after a round the next one begins. */
int64_t retention_round_ms(const struct rv_scheduler *s);
/* When the next piece is due; INT64_MAX: never. */
int64_t retention_next_at(const struct rv_scheduler *s);

/* records.c */
/* Room for one more record of the batch; NULL: no memory. It may move those before it. */
struct rv_record_change *batch_record(struct rv_scheduler *s);
/* Gives the batch a record as of now; key and value are copied. MEMORY, also when the value could
 * not be written whole. */
RV_CHECK enum rv_err record_put(struct rv_scheduler *s, struct rv_record_change made,
                                const struct rv_buf *value);

/* selections.c */
RV_CHECK enum rv_err selection_put(struct rv_scheduler *s, const struct rv_selection *selection,
                                   int64_t epoch);
/* As the store has it; *ret_found false: it has none. */
RV_CHECK enum rv_err selection_load(struct rv_scheduler *s, struct rv_arena *arena,
                                    struct rv_task_id id, bool *ret_found,
                                    struct rv_selection *ret_selection);
/* How many outcomes of each kind are known to the store. */
RV_CHECK enum rv_err selection_outcomes(struct rv_scheduler *s, struct rv_arena *arena,
                                        struct rv_selection *selection);
RV_CHECK enum rv_err select_decide(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err bulk_call_decide(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err query_selections(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err query_outcomes(struct rv_scheduler *s, struct pending *p);

/* bulk.c */
void bulks_done(struct bulks *bulks);
/* Over for so long that it is to be deleted. */
bool selection_old(const struct rv_scheduler *s, const struct rv_selection *row);
/* Before the decisions: what is new in the records; a piece of one that is to be deleted. */
RV_CHECK enum rv_err bulks_plan(struct rv_scheduler *s);
/* Gives the commands whose turn it is. */
RV_CHECK enum rv_err bulks_decide(struct rv_scheduler *s);
/* Is what comes of that evaluation taken in a later batch? */
bool bulks_want(const struct rv_scheduler *s, const struct asker *asker);
void bulks_act(struct rv_scheduler *s);
void bulk_call_act(struct rv_scheduler *s, struct pending *p);
/* When bulk commands want a batch; INT64_MAX: never. */
int64_t bulks_next_at(const struct rv_scheduler *s);

/* commit.c */
/* The store's begin; what it says of lost history is kept for the next batch. */
RV_CHECK enum rv_err transaction_begin(struct rv_scheduler *s, int64_t *ret_now);
RV_CHECK enum rv_err batch_commit(struct rv_scheduler *s);
/* Nothing has to be written; nothing but alerts of the server's own. */
bool batch_only_reads(const struct rv_scheduler *s);
bool batch_only_asks(const struct rv_scheduler *s);

/* workflows.c */
void workflow_cache_init(struct workflow_cache *cache);
void workflow_cache_done(struct workflow_cache *cache);
/* NULL when there is none; ->definition NULL when it cannot be read. */
RV_CHECK enum rv_err workflow_by_id(struct rv_scheduler *s, int64_t id,
                                    struct workflow_entry **ret_entry);
RV_CHECK enum rv_err workflow_by_name(struct rv_scheduler *s, struct rv_str space,
                                      struct rv_str name, struct rv_str version,
                                      struct workflow_entry **ret_entry);
/* Keeps the cache within its bound; between batches only. */
void workflow_cache_trim(struct rv_scheduler *s);

/* deliveries.c: messages to webhooks (decision 014). */
void deliveries_init(struct rv_scheduler *s);
void deliveries_done(struct rv_scheduler *s);
/* Before the commit: a piece of the walk if it is due, and what is to be sent now. */
RV_CHECK enum rv_err deliveries_plan(struct rv_scheduler *s);
RV_CHECK enum rv_err delivered_decide(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err retry_decide(struct rv_scheduler *s, struct pending *p);
void retry_act(struct rv_scheduler *s, struct pending *p);
/* The row that the task's new messages move on; NULL: it has none, or they go to no webhook.
 * MEMORY. */
RV_CHECK enum rv_err delivery_of(struct rv_scheduler *s, const struct work *work,
                                 const struct rv_delivery **ret_row);
/* After the commit: the book learns what was written, and the notices leave. */
void deliveries_act(struct rv_scheduler *s);
/* Nothing of the batch was written. */
void deliveries_fail(struct rv_scheduler *s);
/* The alert was written, with a row in which it waits. */
void deliveries_learn_alert(struct rv_scheduler *s, const struct rv_alert *alert);
/* When deliveries want a batch of their own. */
int64_t deliveries_next_at(const struct rv_scheduler *s);

/* messages.c: what a task's submitter has been told. */
RV_CHECK enum rv_err messages_decide(struct rv_scheduler *s, struct pending *p);
void messages_act(struct rv_scheduler *s, struct pending *p);
/* The task has changed while the call waits for more. */
void messages_tell(struct rv_scheduler *s, struct pending *p, const struct work *work);

/* submit.c, replies.c, polls.c, operate.c, queries.c: one family of calls each. Every `..._decide`
 * runs before the commit, every `..._act` after it and answers, parks or carries the call. */
RV_CHECK enum rv_err submit_decide(struct rv_scheduler *s, struct pending *p);
void submit_act(struct rv_scheduler *s, struct pending *p);
/* The batch is not written: what it has decided of the call is not, either. */
void submit_unwritten(const struct pending *p);
/* The call cannot go on. False: nothing of it was accepted. Else who asked learns of that, and what
 * is left is refused item by item. */
bool submit_in_part(struct rv_scheduler *s, const struct pending *p, enum rv_err err,
                    struct rv_str message);
/* What earlier batches have said of items of replies or renewals: perhaps the store has lost it. */
void replies_forget(struct rv_call *call);
/* Before the decisions: notes those of large calls whose turn is a later batch's. */
void replies_behind_note(struct rv_scheduler *s);
/* Whether one about that attempt waits. */
/* Until when it is known who has answered in time: batch.ends_until, and is_left. */
void ends_know(struct rv_scheduler *s);
bool is_left(const struct rv_scheduler *s, uint64_t token, uint32_t step);
/* After the decisions on calls: notes the replies and renewals that wait for the next batch. */
void replies_left_note(struct rv_scheduler *s);
/* What is to be loaded for the items from `from` on that are not decided yet: gives the number of
 * ids, of a large call those of one piece. */
size_t replies_want(const struct pending *p, size_t from, struct rv_step_id *ids, size_t room);
size_t leases_want(const struct pending *p, struct rv_step_id *ids, size_t room);
RV_CHECK enum rv_err replies_decide(struct rv_scheduler *s, struct pending *p);
void replies_act(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err leases_decide(struct rv_scheduler *s, struct pending *p);
void leases_act(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err operate_decide(struct rv_scheduler *s, struct pending *p);
/* The operator's word about the task of the work, which is there. */
RV_CHECK enum rv_err operate_work(struct rv_scheduler *s, const struct rv_call_operate *operate,
                                  uint64_t seed, struct work *work, const struct asker *asker,
                                  struct rv_plan **ret_plan);
/* probe.c: chooses task and step of a close-circuit. */
RV_CHECK enum rv_err probe_choose(struct rv_scheduler *s, struct rv_call *call);
void operate_act(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err publish_decide(struct rv_scheduler *s, struct pending *p);
/* A publication, an acknowledgement, an alert from outside or a change of a key. */
void taskless_act(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err query_answer(struct rv_scheduler *s, struct pending *p);
void show_act(struct rv_scheduler *s, struct pending *p);
/* It waits for something newer than this. */
bool show_waits(const struct rv_scheduler *s, const struct pending *p, const struct rv_task *task);
/* cures.c: what leads a task in error on, by its rows as `work` has them (NULL: as stored). */
RV_CHECK enum rv_err cures_find(struct rv_scheduler *s, const struct rv_task *task,
                                const struct workflow_entry *entry, const struct work *work,
                                struct rv_cure ret_cures[static RV_CURES_MAX], size_t *ret_count);
/* How many late replies the task has, with those that this batch adds; of the stored ones at most
 * `limit` are counted. */
RV_CHECK enum rv_err ledger_count(struct rv_scheduler *s, struct rv_task_id task,
                                  const struct work *work, size_t limit, uint32_t *ret_count);
/* Adds them to a refusal. */
RV_CHECK enum rv_err cures_add(struct rv_scheduler *s, struct rv_arena *arena,
                               const struct work *work, struct rv_str *message);
void no_task_say(struct rv_call *call, struct rv_task_id task);
enum rv_err query_no_task(struct pending *p, struct rv_task_id task);
/* The ages that are asked for become bounds of the filter. */
void filter_age(const struct rv_scheduler *s, struct rv_call_list *list);
/* A page of the tasks that fit: list->tasks, count and next. */
RV_CHECK enum rv_err tasks_find(struct rv_scheduler *s, struct rv_call_list *list,
                                struct rv_arena *arena);

/* alerts.c */
/* Looks whether the operators' webhook may be called. */
RV_CHECK enum rv_err alerts_init(struct rv_scheduler *s);
/* For the changes that raise alerts; NULL: there is no webhook for them. */
const struct rv_delivery *alerts_to(const struct rv_scheduler *s);
/* What the webhook is told. NOT_FOUND: the alert is gone. */
RV_CHECK enum rv_err alert_body(struct rv_scheduler *s, int64_t id, struct rv_str *ret_body);
/* The alert that tells of alerts that the webhook does not take; NULL: there is one already that
 * stands. */
RV_CHECK enum rv_err alert_unheard(struct rv_scheduler *s, int64_t unheard, struct rv_str why,
                                   const struct rv_alert **ret_alert);
bool alert_is_unheard(const struct rv_alert *alert);
/* It is written: logged, and on its way if there is one. */
void alert_act(struct rv_scheduler *s, const struct rv_alert *alert);
RV_CHECK enum rv_err ack_decide(struct rv_scheduler *s, struct pending *p);
void ack_act(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err raise_decide(struct rv_scheduler *s, struct pending *p);
void raise_act(struct rv_scheduler *s, struct pending *p);
/* After the commit: those of no task are counted and logged. */
void raises_act(struct rv_scheduler *s);

/* explain.c */
RV_CHECK enum rv_err explain_answer(struct rv_scheduler *s, struct pending *p);
/* The newest attempts of a step before its newest one. */
RV_CHECK enum rv_err explain_attempts(struct rv_scheduler *s, struct rv_call_explain *out,
                                      struct rv_arena *arena, uint32_t step, uint32_t newest);
/* What has happened to the task, beside what explain_answer() reports (explain_past.c). */
RV_CHECK enum rv_err explain_past(struct rv_scheduler *s, struct rv_call_explain *out,
                                  struct rv_arena *arena);

/* counts.c */
/* The task's change is committed. */
void counts_learn(struct rv_scheduler *s, struct work *work);
/* Did the attempt end in this batch? Its step came with attempt `was_attempt` in state `was`. */
bool attempt_ended_now(const struct work_step *step, uint32_t number);

/* spans.c: after the commit, as counts_learn. */
void spans_learn(struct rv_scheduler *s, const struct work *work);
/* Whether control has left the step for good, but for an operator. */
bool step_over(const struct rv_task *task, const struct rv_step *step);
/* The calls that are answered for good. */
void counts_submissions(struct rv_scheduler *s, const struct rv_call_submit *submit);
void counts_replies(struct rv_scheduler *s, const struct rv_call_replies *replies);
void counts_batch(struct rv_scheduler *s, size_t calls, int64_t begun_us, bool refused);
/* For measuring; 0 if nothing is measured. */
int64_t counts_clock(const struct rv_scheduler *s);
RV_CHECK enum rv_err query_metrics(struct rv_scheduler *s, struct pending *p);
/* queries.c: all agents, onto the arena. */
RV_CHECK enum rv_err agents_show(struct rv_scheduler *s, struct rv_arena *arena,
                                 struct rv_call_agents *out);
/* status.c */
RV_CHECK enum rv_err query_status(struct rv_scheduler *s, struct pending *p);
void store_problems(const struct rv_scheduler *s, bool has[static RV_STORE_PROBLEMS]);
/* What the alerts are about, one for each; reads their tasks and steps. */
RV_CHECK enum rv_err alerts_facts(struct rv_scheduler *s, struct rv_arena *arena,
                                  const struct rv_alert *alerts, size_t count,
                                  struct rv_alert_facts **ret_facts);
RV_CHECK enum rv_err alerts_group(struct rv_arena *arena, const struct rv_alert *alerts,
                                  const struct rv_alert_facts *facts, size_t count,
                                  struct rv_alert_groups *ret_groups);
/* log.c: the task has ended without success, or stopped in error. */
void log_ended(struct rv_scheduler *s, const struct work *work, struct rv_str error_type);
/* A task has failed, as committed. */
void failure_note(struct failures *failures, struct rv_str type, int64_t now);

/* backup.c */
void backup_act(struct rv_scheduler *s, struct pending *p);

/* keys.c; key_act for every call that changes records */
RV_CHECK enum rv_err key_decide(struct rv_scheduler *s, struct pending *p);
void key_act(struct rv_scheduler *s, struct pending *p);
/* Finishes the calls of this batch whose access ended after the api had allowed them. */
RV_CHECK enum rv_err keys_refuse(struct rv_scheduler *s);
RV_CHECK enum rv_err query_keys(struct rv_scheduler *s, struct pending *p);

/* limits.c */
/* Reads the records when that is due, within the batch's transaction. */
RV_CHECK enum rv_err limits_load(struct rv_scheduler *s);
RV_CHECK enum rv_err limit_decide(struct rv_scheduler *s, struct pending *p);
/* It is written, or was not: the caches learn it. */
void limit_act(struct rv_scheduler *s, struct pending *p);
/* Before steps are handed out in a batch. */
void limits_begin(struct rv_scheduler *s);
/* May a step of the kind be handed out to a poll that has room for it? False is remembered ... */
bool limit_lets(const struct rv_scheduler *s, struct agent_kind *kind);
/* A step was. */
void limit_take(const struct rv_scheduler *s, struct agent_kind *kind);
/* ... and after the commit the next batch begins when it need not wait any longer. */
void limits_again(struct rv_scheduler *s);

/* Looks at the poll's boot, confirmations, repeats; ends what they say has ended. */
RV_CHECK enum rv_err poll_admit(struct rv_scheduler *s, struct pending *p);
RV_CHECK enum rv_err poll_undelivered(struct rv_scheduler *s, struct pending *p);
void undelivered_act(struct rv_scheduler *s, struct pending *p);
/* The poll gets the step's newest attempt; `repeat`: once more. */
RV_CHECK enum rv_err match_add(struct rv_scheduler *s, struct pending *p, struct work *work,
                               uint32_t step, bool repeat);
/* routing.c: hands ready steps to polls, parked ones included, within this transaction. */
RV_CHECK enum rv_err polls_match(struct rv_scheduler *s);
/* After the commit: fills the poll's answer; false: nothing for it, it may be parked. True also
 * when it is unanswerable: then it must be refused, since an answer without them would be
 * confirmed; asked again, it gets what it was given. */
bool poll_fill(struct rv_scheduler *s, struct pending *p);
/* The poll is admitted anew with a later batch, and gets what it has taken as it is then. */
void poll_unadmit(struct pending *p);
/* Nothing that the batch was to hand out goes to the poll. */
void poll_unmatch(struct pending *p);
/* The batch is lost, but not what the poll confirms (p->poll may be NULL). */
void poll_heed(const struct rv_scheduler *s, struct pending *p);
void poll_act(struct rv_scheduler *s, struct pending *p);
void polls_act_parked(struct rv_scheduler *s);
/* The batch failed: the same for those that are parked. */
void polls_unmatch_parked(struct rv_scheduler *s);
/* A parked poll is one no more. */
void poll_unpark(struct rv_scheduler *s, struct pending *p);

/* parking.c */
/* The call is decided again in the next batch, since a decision of it did not pass; false: that was
 * tried often enough. */
bool carry_again(struct rv_scheduler *s, struct pending *p);
#define STOPPING RV_STR("the server is stopping: send the request again")
#define NOT_TAKEN                                                                                  \
    RV_STR("the state store refused the change several times, and nothing was written: "           \
           "send it again")
RV_CHECK enum rv_err park(struct rv_scheduler *s, struct pending *p, int64_t wait_ms);
void park_waiter(struct rv_scheduler *s, struct pending *p, struct rv_task_id task,
                 int64_t wait_ms);
void unpark(struct rv_scheduler *s, struct pending *p);
/* Answers and forgets: after this the call belongs to its maker again. */
void finish(struct rv_scheduler *s, struct pending *p, enum rv_err err, struct rv_str message);
/* The call is given back at the end of the batch. */
void finished_add(struct rv_scheduler *s, struct rv_call *call);
/* Gives the finished calls back to their makers: last of all, since rows of the batch point into
 * the arenas of the calls that brought their payloads. */
void finished_flush(struct rv_scheduler *s);
void parked_expire(struct rv_scheduler *s);
/* The caller of the call with that serial has left. */
void call_left(struct rv_scheduler *s, uint64_t serial);
/* The same, if it is parked. */
bool parked_left(struct rv_scheduler *s, uint64_t serial);
void parked_finish_all(struct rv_scheduler *s);
/* The task has changed: answers those who wait for that. */
void waiters_tell(struct rv_scheduler *s, struct work *work);
struct rv_str call_printf(struct rv_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

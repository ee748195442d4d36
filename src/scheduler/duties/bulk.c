/* Bulk commands: one command for each task of a selection, so many a second. Each is decided as if
 * an operator had given it for that task alone, and its outcome is written in the transaction of
 * what it changes: after a crash those without an outcome are still to be given, and no other. The
 * server of the supervisor does it; what it has in memory is read from the records again when it
 * becomes that. What another server of a shared store was told it hears within a scan interval. */
#include "scheduler/duties/bulk.h"

#include "base/assert.h"
#include "base/bucket.h"
#include "base/limits.h"
#include "base/time.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/bound.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/load.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/state.h"
#include "scheduler/batch/work.h"
#include "scheduler/calls/operate.h"
#include "scheduler/calls/selections.h"
#include "scheduler/duties/duty.h"
#include "scheduler/duties/retention.h"

#include <stdlib.h>

enum {
    COMMANDS_MAX = 64, /* with one batch */
    REMOVED_MAX = 100, /* records with one batch */
    REMOVE_PAUSE_MS = 10,
    SELECTION_ROUND_MS = 24 * 60 * 60 * 1000 /* without --retain */
};

enum mark { MARK_OPEN, MARK_OFFENDER, MARK_OVER };

struct bulk {
    struct rv_selection row; /* texts on arena; the pauses and their texts on holds_arena */
    struct rv_arena arena;
    struct rv_arena holds_arena; /* made anew with each pause */
    struct rv_task_id *ids;      /* owned */
    unsigned char *marks;        /* owned; enum mark of each */
    size_t ids_count;
    size_t at;   /* all before it are over */
    size_t left; /* that are not */
    enum { READ_TASKS, READ_OUTCOMES, READ_ALL } read;
    struct rv_map places;               /* task -> its number, while outcomes are read */
    char place[RV_SELECTION_KEY_BYTES]; /* the key after which they go on */
    struct rv_bucket bucket;
    uint32_t told[RV_BULK_COUNT]; /* as the store has them */
    uint64_t told_in;  /* the turn of the batch that writes its numbers; 0: none has yet */
    uint64_t ends_in;  /* the turn of the batch that writes its end */
    size_t records[2]; /* with these records of that batch */
    struct bulk *next;
};

/* A command of a bulk that this batch has decided. */
struct bulk_item {
    struct bulk *bulk;
    size_t place; /* of its task in the selection */
    enum rv_bulk_outcome outcome;
    struct work *work; /* its outcome is written with this one's change; NULL: ... */
    size_t record;     /* ... as this one of the batch's records */
};

/* Bulk commands that are under way or paused, of the supervisor's server. */
struct bulks {
    struct bulk *first;      /* owned */
    int64_t epoch;           /* of the supervisor's role as they were read; 0: it is another's */
    int64_t walk_at;         /* when the selections are walked next */
    struct rv_task_id after; /* where that stands */
    char after_text[RV_ID_TEXT_BYTES];
    struct rv_record_list *page; /* of it, which this batch reads; NULL: none */
    struct rv_task_id removing;  /* that is being deleted; none: none */
    int64_t remove_at;
    struct bulk_item items[COMMANDS_MAX]; /* of this batch */
    size_t items_count;
};

static void bulk_free(struct bulk *bulk)
{
    free(bulk->ids);
    free(bulk->marks);
    rv_map_done(&bulk->places);
    rv_arena_done(&bulk->arena);
    rv_arena_done(&bulk->holds_arena);
    free(bulk);
}

/* NULL: no command of this selection is under way or paused. */
static struct bulk *bulk_find(const struct rv_scheduler *s, uint64_t selection)
{
    struct bulk *bulk = s->bulks->first;
    while (bulk != NULL && (uint64_t)bulk->row.id.value != selection)
        bulk = bulk->next;
    return bulk;
}

static void bulks_forget(struct rv_scheduler *s)
{
    struct bulks *bulks = s->bulks;
    while (bulks->first != NULL) {
        struct bulk *next = bulks->first->next;
        bulk_free(bulks->first);
        bulks->first = next;
    }
    *bulks = (struct bulks){.first = NULL};
}

/* ---- the records are read ---- */

static bool text_keep(struct rv_arena *arena, struct rv_str *text)
{
    struct rv_str copy = rv_arena_str(arena, *text);
    bool kept = text->at == NULL || copy.at != NULL;
    *text = copy;
    return kept;
}

static bool word_keep(struct rv_arena *arena, struct rv_word *word)
{
    return text_keep(arena, &word->by) && text_keep(arena, &word->role) &&
           text_keep(arena, &word->reason);
}

/* Takes over whether it is paused or stopped, and why. MEMORY: the words are as they were, and are
 * read again (bulk_end). */
static enum rv_err holds_learn(struct bulk *bulk, const struct rv_selection *row)
{
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    struct rv_hold *holds = RV_NEW_ARRAY(&arena, struct rv_hold, row->holds_count + 1);
    bool kept = holds != NULL;
    for (uint32_t i = 0; kept && i < row->holds_count; i++) {
        holds[i] = row->holds[i];
        kept = word_keep(&arena, &holds[i].word);
    }
    struct rv_word stopped = row->stopped;
    kept = kept && word_keep(&arena, &stopped);
    bulk->row.paused = row->paused;
    bulk->row.stopped.at = row->stopped.at;
    rv_arena_done(kept ? &bulk->holds_arena : &arena);
    if (!kept)
        return RV_ERR_MEMORY;
    bulk->holds_arena = arena;
    bulk->row.holds = holds;
    bulk->row.holds_count = row->holds_count;
    bulk->row.holds_dropped = row->holds_dropped;
    bulk->row.stopped = stopped;
    return RV_OK;
}

static struct bulk *bulk_new(const struct rv_selection *row, int64_t now)
{
    struct bulk *bulk = calloc(1, sizeof *bulk);
    if (bulk == NULL)
        return NULL;
    rv_arena_init(&bulk->arena, 0);
    rv_arena_init(&bulk->holds_arena, 0);
    rv_map_init(&bulk->places);
    bulk->row = *row;
    bulk->row.holds_count = 0; /* until they are learned */
    memset(bulk->row.outcomes, 0, sizeof bulk->row.outcomes);
    bulk->ids = calloc(row->tasks + 1, sizeof *bulk->ids);
    bulk->marks = calloc(row->tasks + 1, 1);
    rv_bucket_set(&bulk->bucket, row->rate, now);
    if (bulk->ids != NULL && bulk->marks != NULL && text_keep(&bulk->arena, &bulk->row.filter) &&
        word_keep(&bulk->arena, &bulk->row.picked) && word_keep(&bulk->arena, &bulk->row.begun) &&
        holds_learn(bulk, row) == RV_OK)
        return bulk;
    bulk_free(bulk);
    return NULL;
}

/* A selection as the store has it: with what was begun of it, the server works. */
static enum rv_err bulk_learn(struct rv_scheduler *s, const struct rv_selection *row)
{
    struct bulk *bulk = bulk_find(s, (uint64_t)row->id.value);
    if (bulk == NULL) {
        bulk = bulk_new(row, s->batch.now);
        if (bulk == NULL)
            return RV_ERR_MEMORY;
        bulk->next = s->bulks->first;
        s->bulks->first = bulk;
        return RV_OK;
    }
    return holds_learn(bulk, row);
}

/* Without --retain, too, selections go some day: there may be only so many. */
#define SELECTION_KEPT_MS (INT64_C(30) * 24 * 60 * 60 * 1000)

bool selection_old(const struct rv_scheduler *s, const struct rv_selection *row)
{
    int64_t at = row->unreadable ? rv_id_made_at(row->id)
                 : row->begun.at ? row->ended_at
                                 : row->picked.at;
    int64_t kept_ms = s->options.retain_ms != 0 ? s->options.retain_ms : SELECTION_KEPT_MS;
    return at != 0 && at <= s->batch.now - kept_ms;
}

void bulk_name(struct rv_scheduler *s, struct rv_wants *wants)
{
    struct bulks *bulks = s->bulks;
    struct rv_record_list page = {.kind = RV_STR(RV_RECORD_SELECTION), .most = RV_PAGE_ROWS_MAX};
    if (bulks->after.value != 0)
        page.after = rv_task_text(bulks->after, bulks->after_text);
    bool due = rv_supervisor_holds(&s->supervisor) && s->batch.expected_now >= bulks->walk_at;
    bulks->page = due ? records_name(s, wants, page) : NULL;
}

/* A page of the walk over all selections. */
static enum rv_err walk_page(struct rv_scheduler *s)
{
    struct bulks *bulks = s->bulks;
    struct rv_record_list *page = bulks->page;
    enum rv_err err = records_read(s, page);
    for (size_t i = 0; err == RV_OK && i < page->count; i++) {
        struct rv_selection row;
        err = rv_selection_read(s->batch.arena, &page->rows[i], &row);
        if (err != RV_OK || row.id.value == 0)
            continue;
        bulks->after = row.id;
        if (selection_old(s, &row))
            bulks->removing = row.id;
        else if (!row.unreadable && row.begun.at != 0 && row.ended_at == 0)
            err = bulk_learn(s, &row);
    }
    if (err != RV_OK)
        return err;
    if (page->count == page->most) {
        s->more_due = true;
        return RV_OK;
    }
    bulks->after.value = 0;
    if (s->enlistment.shared)
        bulks->walk_at = rv_time_add(s->batch.now, s->options.scan_interval_ms);
    else
        bulks->walk_at = rv_time_add(s->batch.now, s->options.retain_ms != 0 ? retention_round_ms(s)
                                                                             : SELECTION_ROUND_MS);
    return RV_OK;
}

static enum rv_err tasks_learn(struct bulk *bulk, struct rv_str chunk)
{
    enum { ID = RV_ID_TEXT_BYTES - 1 };
    size_t known = bulk->ids_count;
    for (size_t i = 0; i + ID <= chunk.len && bulk->ids_count < bulk->row.tasks; i += ID) {
        struct rv_task_id id;
        if (rv_task_parse((struct rv_str){chunk.at + i, ID}, &id) != RV_OK)
            continue;
        enum rv_err err = rv_map_put(&bulk->places, (uint64_t)id.value, 0, bulk->ids_count);
        if (err != RV_OK) {
            bulk->ids_count = known; /* the chunk is read again */
            return err;
        }
        bulk->ids[bulk->ids_count++] = id;
    }
    return RV_OK;
}

static void outcome_learn(struct bulk *bulk, const struct rv_record *record)
{
    struct rv_outcome_row row;
    if (!rv_bulk_outcome_read(record, &row))
        return;
    const uint64_t *place = rv_map_find(&bulk->places, (uint64_t)row.task.value, 0);
    if (place == NULL || bulk->marks[*place] == MARK_OVER)
        return;
    rv_assert(*place < bulk->ids_count);
    rv_assert(bulk->left > 0);
    bulk->marks[*place] = MARK_OVER;
    bulk->row.outcomes[row.outcome]++;
    bulk->left--;
}

/* A page of its tasks, or of what came of them so far. */
static enum rv_err bulk_read(struct rv_scheduler *s, struct bulk *bulk)
{
    bool tasks = bulk->read == READ_TASKS;
    struct rv_record *rows = rv_arena_take(s->batch.arena, RV_PAGE_ROWS_MAX * sizeof *rows);
    char prefix[RV_SELECTION_KEY_BYTES];
    size_t count = 0;
    if (rows == NULL)
        return RV_ERR_MEMORY;
    struct rv_str after = bulk->place[0] != '\0' ? rv_str_of(bulk->place) : RV_STR_NONE;
    enum rv_err err = s->store->ops->list_records(
        s->store, s->batch.arena, tasks ? RV_STR(RV_RECORD_SELECTED) : RV_STR(RV_RECORD_OUTCOME),
        rv_bulk_outcome_prefix(bulk->row.id, NULL, prefix), after, RV_PAGE_ROWS_MAX, rows, &count);
    rv_assert(count <= RV_PAGE_ROWS_MAX);
    for (size_t i = 0; err == RV_OK && i < count; i++) {
        if (tasks)
            err = tasks_learn(bulk, rows[i].value);
        else
            outcome_learn(bulk, &rows[i]);
        if (err != RV_OK)
            return err;
        size_t len = rows[i].key.len < sizeof bulk->place ? rows[i].key.len
                                                          : sizeof bulk->place - 1;
        memcpy(bulk->place, rows[i].key.at, len);
        bulk->place[len] = '\0';
    }
    s->more_due = true;
    if (err != RV_OK || count == RV_PAGE_ROWS_MAX)
        return err;
    bulk->place[0] = '\0';
    bulk->read = tasks ? READ_OUTCOMES : READ_ALL;
    if (tasks)
        bulk->left = bulk->ids_count;
    else
        rv_map_clear(&bulk->places);
    return RV_OK;
}

/* Records of a selection that is long over; its own goes last. */
static enum rv_err remove_piece(struct rv_scheduler *s)
{
    static const char *const kinds[] = {RV_RECORD_OUTCOME, RV_RECORD_SELECTED, RV_RECORD_OUTCOMES,
                                        RV_RECORD_SELECTION};
    struct bulks *bulks = s->bulks;
    char key[RV_ID_TEXT_BYTES];
    struct rv_str id = rv_arena_str(s->batch.arena, rv_task_text(bulks->removing, key));
    struct rv_record *rows = rv_arena_take(s->batch.arena, REMOVED_MAX * sizeof *rows);
    size_t count = 0;
    if (id.at == NULL || rows == NULL)
        return RV_ERR_MEMORY;
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0] && count == 0; kind++) {
        enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena,
                                                      rv_str_of(kinds[kind]), id, RV_STR_NONE,
                                                      REMOVED_MAX, rows, &count);
        if (err != RV_OK)
            return err;
        rv_assert(count <= REMOVED_MAX);
        for (size_t i = 0; i < count; i++) {
            struct rv_record_change *change = batch_record(s);
            if (change == NULL)
                return RV_ERR_MEMORY;
            *change = (struct rv_record_change){
                .row = {.kind = rv_str_of(kinds[kind]), .key = rows[i].key},
                .gone = true,
                .epoch = s->supervisor.epoch};
        }
    }
    if (count == 0) {
        bulks->removing.value = 0;
        bulks->walk_at = s->batch.now; /* there may be another */
    }
    bulks->remove_at = rv_time_add(s->batch.now, REMOVE_PAUSE_MS);
    return RV_OK;
}

static enum rv_err bulks_plan(struct rv_scheduler *s)
{
    struct bulks *bulks = s->bulks;
    bulks->items_count = 0;
    if (bulks->epoch != s->supervisor.epoch) { /* whatever is in memory may be another's by now */
        bulks_forget(s);
        bulks->epoch = s->supervisor.epoch;
    }
    if (!rv_supervisor_holds(&s->supervisor))
        return RV_OK;
    enum rv_err err = bulks->page != NULL ? walk_page(s) : RV_OK;
    for (struct bulk *bulk = bulks->first; err == RV_OK && bulk != NULL; bulk = bulk->next)
        if (bulk->read != READ_ALL)
            err = bulk_read(s, bulk);
    if (err == RV_OK && bulks->removing.value != 0 && s->batch.now >= bulks->remove_at)
        err = remove_piece(s);
    return err;
}

/* ---- the commands ---- */

static enum rv_err outcome_put(struct rv_scheduler *s, const struct bulk *bulk, struct work *work,
                               struct bulk_item *item, struct rv_str message)
{
    char key[RV_SELECTION_KEY_BYTES];
    struct rv_outcome_row row = {.task = bulk->ids[item->place], .outcome = item->outcome};
    struct rv_record record = {
        .at = s->batch.now,
        .kind = RV_STR(RV_RECORD_OUTCOME),
        .key = rv_arena_str(s->batch.arena, rv_bulk_outcome_key(bulk->row.id, &row, key)),
        .value = message.at != NULL ? message : RV_STR("")};
    if (record.key.at == NULL)
        return RV_ERR_MEMORY;
    if (work->task != NULL && work->changed) { /* what it says is true if that is written */
        struct rv_record *kept = RV_NEW(s->batch.arena, struct rv_record);
        if (kept == NULL)
            return RV_ERR_MEMORY;
        *kept = record;
        work->record = kept;
        work->epoch = s->supervisor.epoch;
        item->work = work;
        return RV_OK;
    }
    struct rv_record_change *change = batch_record(s);
    if (change == NULL)
        return RV_ERR_MEMORY;
    *change = (struct rv_record_change){.row = record, .epoch = s->supervisor.epoch};
    item->record = s->batch.records_count - 1;
    return RV_OK;
}

/* Is what comes of that evaluation taken in a later batch? */
static bool bulk_takes(const struct rv_scheduler *s, const struct asker *asker)
{
    const struct bulk *bulk = bulk_find(s, asker->a);
    if (bulk == NULL || rv_selection_rests(&bulk->row))
        return false;
    return bulk->read != READ_ALL ||
           (asker->b < bulk->ids_count && bulk->marks[asker->b] != MARK_OVER);
}

/* One task of one bulk command. */
static struct asker asker_of(const struct bulk *bulk, size_t place)
{
    return (struct asker){.a = (uint64_t)bulk->row.id.value, .b = place, .wanted = bulk_takes};
}

static enum rv_err command_decide(struct rv_scheduler *s, const struct bulk *bulk, size_t place,
                                  struct work *work, struct rv_plan **ret_plan)
{
    struct rv_call_operate operate = {.verb = bulk->row.verb,
                                      .task = work->id,
                                      .by = bulk->row.begun.by,
                                      .reason = bulk->row.begun.reason,
                                      .selection = bulk->row.id,
                                      .abandon = bulk->row.abandon,
                                      .by_hand = bulk->row.by_hand,
                                      .late_seen = bulk->row.late_seen};
    struct asker asker = asker_of(bulk, place);
    return operate_work(s, &operate, rv_prng_next(&s->prng), work, &asker, ret_plan);
}

/* In this batch; its mark comes with the commit. */
static bool is_decided(const struct rv_scheduler *s, const struct bulk *bulk, size_t place)
{
    for (size_t i = 0; i < s->bulks->items_count; i++)
        if (s->bulks->items[i].bulk == bulk && s->bulks->items[i].place == place)
            return true;
    return false;
}

/* *ret_given false: another bulk command comes first to the task in this batch, or it becomes an
 * evaluation. */
static enum rv_err item_decide(struct rv_scheduler *s, struct bulk *bulk, size_t place,
                               bool *ret_given)
{
    struct work *work;
    struct bulk_item item = {.bulk = bulk, .place = place, .outcome = RV_BULK_DONE};
    struct rv_str message = RV_STR_NONE;
    rv_assert(place < bulk->ids_count);
    rv_assert(bulk->marks[place] != MARK_OVER);
    rv_assert(!is_decided(s, bulk, place));
    enum rv_err err = work_get(s, bulk->ids[place], &work);
    if (err != RV_OK)
        return err;
    *ret_given = work->record == NULL;
    if (!*ret_given)
        return RV_OK;
    if (work->task == NULL) {
        item.outcome = RV_BULK_GONE;
    } else if (bulk->marks[place] == MARK_OFFENDER) {
        item.outcome = RV_BULK_REFUSED;
        message = RV_STR(
            "the state store refused the change of the task: see the alert of the task");
    } else {
        struct rv_plan *plan;
        err = command_decide(s, bulk, place, work, &plan);
        *ret_given = !work->waits;
        if (err != RV_OK || work->waits)
            return err;
        if (plan->err != RV_OK)
            item.outcome = RV_BULK_REFUSED;
        message = plan->err != RV_OK ? plan->message : RV_STR_NONE;
    }
    err = outcome_put(s, bulk, work, &item, message);
    rv_assert(s->bulks->items_count < COMMANDS_MAX);
    s->bulks->items[s->bulks->items_count++] = item;
    return err;
}

static enum rv_err numbers_put(struct rv_scheduler *s, struct bulk *bulk)
{
    char key[RV_ID_TEXT_BYTES];
    struct rv_buf value;
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_outcomes_write(&value, &bulk->row);
    struct rv_record_change made = {
        .row = {.kind = RV_STR(RV_RECORD_OUTCOMES), .key = rv_task_text(bulk->row.id, key)},
        .epoch = s->supervisor.epoch};
    enum rv_err err = record_put(s, made, &value);
    rv_buf_done(&value);
    if (err != RV_OK)
        return err;
    rv_assert(s->batch.records_count > 0);
    bulk->told_in = s->batch.turn;
    bulk->records[0] = s->batch.records_count - 1;
    return RV_OK;
}

/* Another server may have written a pause of which this one has not heard. */
static enum rv_err holds_read(struct rv_scheduler *s, struct bulk *bulk)
{
    struct rv_selection row;
    bool found;
    enum rv_err err = selection_load(s->store, s->batch.arena, bulk->row.id, &found, &row);
    return err == RV_OK && found && !row.unreadable ? holds_learn(bulk, &row) : err;
}

/* When all commands are given, or an operator has stopped it. */
static enum rv_err bulk_end(struct rv_scheduler *s, struct bulk *bulk)
{
    enum rv_err err = holds_read(s, bulk);
    if (err != RV_OK)
        return err;
    struct rv_selection ended = bulk->row;
    ended.ended_at = s->batch.now;
    err = selection_put(s, &ended, s->supervisor.epoch);
    if (err != RV_OK)
        return err;
    rv_assert(s->batch.records_count > 0);
    bulk->ends_in = s->batch.turn;
    bulk->records[1] = s->batch.records_count - 1;
    return RV_OK;
}

/* Whether the batch has room for one more. */
static bool has_room(struct rv_scheduler *s)
{
    bool room = s->bulks->items_count < COMMANDS_MAX && !share_used(s);
    s->more_due = s->more_due || !room;
    return room;
}

/* Commands that were evaluated: they were given as that began, and take nothing of the rate. */
static enum rv_err bulk_take(struct rv_scheduler *s, struct bulk *bulk)
{
    uint64_t places[COMMANDS_MAX];
    size_t count = evaluations_over(s, asker_of(bulk, 0).a, places, COMMANDS_MAX);
    rv_assert(count <= COMMANDS_MAX);
    enum rv_err err = RV_OK;
    for (size_t i = 0; err == RV_OK && i < count && has_room(s); i++) {
        bool given;
        if (places[i] < bulk->ids_count && bulk->marks[places[i]] != MARK_OVER)
            err = item_decide(s, bulk, places[i], &given);
    }
    return err;
}

/* Those that come next at that instant, in the order in which they are given. */
static size_t bulk_next(const struct rv_scheduler *s, const struct bulk *bulk, int64_t now,
                        struct rv_step_id *ids, size_t room)
{
    uint64_t places[COMMANDS_MAX];
    struct rv_bucket bucket = bulk->bucket;
    size_t count = 0, over = evaluations_over(s, asker_of(bulk, 0).a, places, COMMANDS_MAX);
    for (size_t i = 0; i < over && count < room; i++)
        if (places[i] < bulk->ids_count && bulk->marks[places[i]] != MARK_OVER)
            ids[count++] = (struct rv_step_id){bulk->ids[places[i]], 0};
    for (size_t i = bulk->at; i < bulk->ids_count && count < room; i++) {
        struct asker asker = asker_of(bulk, i);
        if (bulk->marks[i] == MARK_OVER || evaluation_find(s, &asker) != NULL)
            continue;
        if (evaluations_full(s) || !rv_bucket_take(&bucket, now))
            break;
        ids[count++] = (struct rv_step_id){bulk->ids[i], 0};
    }
    return count;
}

static size_t bulks_want(const struct rv_scheduler *s, struct rv_step_id *ids, size_t room)
{
    const struct bulks *bulks = s->bulks;
    size_t count = 0, most = room < COMMANDS_MAX ? room : COMMANDS_MAX;
    if (bulks->epoch == 0 || bulks->epoch != s->supervisor.epoch)
        return 0;
    for (const struct bulk *bulk = bulks->first; bulk != NULL; bulk = bulk->next)
        if (bulk->read == READ_ALL && bulk->left > 0 && !rv_selection_rests(&bulk->row))
            count += bulk_next(s, bulk, s->batch.expected_now, ids + count, most - count);
    rv_assert(count <= most);
    return count;
}

/* Gives those whose turn it is, as far as they are loaded: what came into turn since they were
 * named is for the next batch. */
static enum rv_err bulk_give(struct rv_scheduler *s, struct bulk *bulk)
{
    enum rv_err err = RV_OK;
    while (bulk->at < bulk->ids_count && bulk->marks[bulk->at] == MARK_OVER)
        bulk->at++;
    for (size_t i = bulk->at; err == RV_OK && i < bulk->ids_count; i++) {
        bool given;
        struct asker asker = asker_of(bulk, i);
        if (bulk->marks[i] == MARK_OVER || evaluation_find(s, &asker) != NULL ||
            is_decided(s, bulk, i))
            continue;
        if (!has_room(s) || evaluations_full(s) || work_find(s, bulk->ids[i]) == NULL ||
            !rv_bucket_take(&bulk->bucket, s->batch.now))
            break;
        err = item_decide(s, bulk, i, &given);
        if (err == RV_OK && !given && evaluation_find(s, &asker) == NULL)
            s->more_due = true;
    }
    return err;
}

static enum rv_err bulk_decide(struct rv_scheduler *s, struct bulk *bulk)
{
    if (bulk->read != READ_ALL)
        return RV_OK;
    enum rv_err err = RV_OK;
    if (memcmp(bulk->told, bulk->row.outcomes, sizeof bulk->told) != 0)
        err = numbers_put(s, bulk);
    if (bulk->row.id.value == s->batch.held.value) {
        s->more_due = true; /* it goes on, or ends, once that is written */
        return err;
    }
    if (err == RV_OK && (bulk->left == 0 || bulk->row.stopped.at != 0))
        err = bulk_end(s, bulk);
    if (err == RV_OK && !rv_selection_rests(&bulk->row))
        err = bulk_take(s, bulk);
    if (err == RV_OK && !rv_selection_rests(&bulk->row))
        err = bulk_give(s, bulk);
    return err;
}

static enum rv_err bulks_decide(struct rv_scheduler *s)
{
    struct rv_step_id ids[COMMANDS_MAX];
    share_enter(s, SHARE_BULKS);
    size_t count = bulks_want(s, ids, COMMANDS_MAX);
    s->batch.histories = s->batch.histories || count > 0;
    enum rv_err err = work_prefetch(s, ids, count);
    for (struct bulk *bulk = s->bulks->first; err == RV_OK && bulk != NULL; bulk = bulk->next)
        err = bulk_decide(s, bulk);
    share_enter(s, SHARE_NONE);
    return err;
}

/* ---- what came of it ---- */

static void bulk_log(struct rv_scheduler *s, const char *event, const struct rv_selection *row,
                     const struct rv_word *word)
{
    char id[RV_ID_TEXT_BYTES];
    struct log_fields line = {.count = 0};
    log_text(&line, "selection", rv_task_text(row->id, id));
    log_number(&line, "tasks", row->tasks);
    log_text(&line, "command", rv_str_of(rv_bulk_verb_text(row->verb)));
    log_number(&line, "rate", row->rate);
    for (unsigned i = 0; i < RV_BULK_COUNT; i++)
        log_number(&line, rv_bulk_outcome_text((enum rv_bulk_outcome)i), row->outcomes[i]);
    log_text(&line, "by", word->by.at != NULL ? word->by : word->role);
    log_text(&line, "reason", word->reason);
    log_event(s, RV_LOG_INFO, event, &line);
}

/* The numbers that its call has read are those before the newest batch. */
static void numbers_give(const struct rv_scheduler *s, struct rv_selection *row)
{
    const struct bulk *bulk = bulk_find(s, (uint64_t)row->id.value);
    if (bulk != NULL && bulk->read == READ_ALL)
        memcpy(row->outcomes, bulk->row.outcomes, sizeof row->outcomes);
}

void bulk_told(struct rv_scheduler *s, struct rv_call_bulk *bulk)
{
    numbers_give(s, &bulk->row);
    static const char *const events[] = {"bulk-begin", "bulk-pause", "bulk-resume", "bulk-stop"};
    const struct rv_hold *held = rv_selection_held(&bulk->row);
    const struct rv_word *word = bulk->ask == RV_BULK_BEGIN  ? &bulk->row.begun
                                 : bulk->ask == RV_BULK_STOP ? &bulk->row.stopped
                                 : held != NULL              ? &held->word
                                                             : NULL;
    if (word != NULL && word->at == s->batch.now)
        bulk_log(s, events[bulk->ask], &bulk->row, word);
    if (s->bulks->epoch != 0 && bulk->row.ended_at == 0 && bulk_learn(s, &bulk->row) != RV_OK)
        s->bulks->walk_at = 0; /* a little later */
    s->more_due = true;
}

static bool record_written(struct rv_scheduler *s, size_t record)
{
    rv_assert(record < s->batch.records_count);
    bool written = s->batch.taskless == RV_OK && s->batch.records[record].outcome == RV_OK;
    if (s->batch.taskless == RV_OK && s->batch.records[record].outcome == RV_ERR_DEPOSED)
        rv_supervisor_unclaim(&s->supervisor);
    return written;
}

static void item_act(struct rv_scheduler *s, const struct bulk_item *item)
{
    struct bulk *bulk = item->bulk;
    bool written = item->work != NULL ? !item->work->dropped : record_written(s, item->record);
    s->more_due = true; /* its numbers are to be told, or it is to be decided again */
    if (written) {
        rv_assert(bulk->left > 0);
        bulk->marks[item->place] = MARK_OVER;
        bulk->row.outcomes[item->outcome]++;
        bulk->left--;
    } else if (item->work != NULL && !work_again(item->work)) {
        bulk->marks[item->place] = MARK_OFFENDER;
    }
}

static void bulks_act(struct rv_scheduler *s)
{
    for (struct bulk **place = &s->bulks->first; *place != NULL;) {
        struct bulk *bulk = *place;
        if (bulk->told_in == s->batch.turn && record_written(s, bulk->records[0]))
            memcpy(bulk->told, bulk->row.outcomes, sizeof bulk->told);
        if (bulk->ends_in != s->batch.turn || !record_written(s, bulk->records[1])) {
            place = &bulk->next;
            continue;
        }
        bulk_log(s, "bulk-end", &bulk->row, &bulk->row.begun);
        *place = bulk->next;
        bulk_free(bulk);
    }
    for (size_t i = 0; i < s->bulks->items_count; i++)
        item_act(s, &s->bulks->items[i]);
    s->bulks->items_count = 0;
}

static int64_t bulks_next_at(const struct rv_scheduler *s)
{
    const struct bulks *bulks = s->bulks;
    if (bulks->epoch == 0)
        return INT64_MAX;
    int64_t at = bulks->walk_at;
    if (bulks->removing.value != 0 && bulks->remove_at < at)
        at = bulks->remove_at;
    for (const struct bulk *bulk = bulks->first; bulk != NULL; bulk = bulk->next) {
        int64_t next = rv_bucket_next_at(&bulk->bucket, s->batch.now);
        if (bulk->read == READ_ALL && bulk->left > 0 && !rv_selection_rests(&bulk->row) &&
            next < at)
            at = next;
    }
    return at;
}

/* What came of its commands, as marks and as numbers. */
static const char *bulk_broken(const struct bulk *bulk)
{
    size_t open = 0, over = 0;
    for (size_t i = 0; i < bulk->ids_count; i++)
        open += bulk->marks[i] != MARK_OVER;
    for (unsigned i = 0; i < RV_BULK_COUNT; i++)
        over += bulk->row.outcomes[i];
    if (bulk->ids_count > bulk->row.tasks || bulk->at > bulk->ids_count)
        return "a bulk command has no more tasks than its selection";
    if (bulk->read != READ_TASKS && bulk->left != open)
        return "the count of tasks without an outcome is correct";
    return bulk->read != READ_TASKS && open + over != bulk->ids_count
               ? "each task of a bulk command has one outcome"
               : NULL;
}

static const char *bulks_broken(const struct rv_scheduler *s)
{
    const char *broken = NULL;
    for (const struct bulk *bulk = s->bulks->first; broken == NULL && bulk != NULL;
         bulk = bulk->next)
        broken = bulk_broken(bulk);
    return broken;
}

static enum rv_err bulks_open(struct rv_scheduler *s)
{
    s->bulks = calloc(1, sizeof *s->bulks);
    return s->bulks != NULL ? RV_OK : RV_ERR_MEMORY;
}

static void bulks_close(struct rv_scheduler *s)
{
    if (s->bulks != NULL)
        bulks_forget(s);
    free(s->bulks);
}

const struct duty bulk_duty = {.open = bulks_open,
                               .wants = bulks_want,
                               .plan = bulks_plan,
                               .decide = bulks_decide,
                               .act = bulks_act,
                               .next_at = bulks_next_at,
                               .forget = bulks_forget,
                               .broken = bulks_broken,
                               .close = bulks_close};

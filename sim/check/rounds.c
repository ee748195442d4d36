/* I-48: on a shared store a batch needs two round trips: it begins with one load of all that it
 * will most likely need, and it commits. More are needed for reasons that have a name (rounds.h);
 * what was not foreseen is rare, and whatever else a batch needs, it seldom asks for keys and
 * histories after it has begun. */
#include "sim/check/rounds.h"

#include "sim/check/check.h"
#include "sim/run/coverage.h"
#include "sim/store/database.h"
#include "sim/world/server.h"
#include "sim/world/world.h"
#include "store/store.h"

/* Of the batches of a world so many, and one of so many, may need what was not foreseen, and ask
 * for keys and histories late; and of those with commands of a bulk. */
enum {
    UNFORESEEN_FEW = 60,
    UNFORESEEN_PART = 25,
    LATE_FEW = 8,
    LATE_PART = 100,
    BULK_FEW = 2,
    BULK_PART = 3,
    DELIVERIES_MANY = 20 /* four messages, the tasks of four others, a walk, and some calls */
};
/* With less fuel a turn, decisions take several. */
enum { TURN_FUEL_MUCH = 100000 };

const char *rounds_reason_text(enum rounds_reason reason)
{
    static const char *const texts[] = {
#define ROUNDS_REASON(name, text) text,
        ROUNDS_REASONS(ROUNDS_REASON)
#undef ROUNDS_REASON
    };
    return texts[reason];
}

void round_sent(struct server *s, enum round_of operation)
{
    s->rounds.sent[operation]++;
    s->rounds.count++;
}

static bool was_held(const struct rounds *rounds, struct rv_task_id id)
{
    size_t i = 0;
    while (i < rounds->held_count && rounds->held[i].value != id.value)
        i++;
    return i < rounds->held_count;
}

/* What another transaction has claimed it will most likely still have a moment later. */
static void check_held(struct server *s, const struct rv_wants *wants)
{
    struct rounds *rounds = &s->rounds;
    bool begins = rounds->sent[ROUND_load] == 0;
    if (begins)
        rounds->held_count = 0;
    for (size_t i = wants->count - wants->claims; i < wants->count && !begins; i++)
        if (was_held(rounds, wants->ids[i]))
            world_violate(s->world, "I-48", "%s asks again for a task that others have claimed",
                          s->name);
    for (size_t i = 0; i < wants->tasks_count && rounds->held_count < ROUNDS_HELD; i++)
        if (wants->tasks[i].how == RV_LOADED_SKIPPED)
            rounds->held[rounds->held_count++] = wants->tasks[i].id;
}

/* Rows of a walk are in the order of their ids. */
static bool was_met(const struct rv_scan *scan, struct rv_task_id id)
{
    size_t low = 0, high = scan->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scan->rows[middle].id.value < id.value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < scan->count && scan->rows[low].id.value == id.value;
}

/* What the walk has met, and the batch loads once it knows that. */
static void note_met(struct rounds *rounds, const struct rv_wants *wants)
{
    if (rounds->sent[ROUND_load] == 0)
        rounds->scan = wants->scan;
    for (size_t i = 0; i < wants->count && rounds->scan != NULL; i++)
        rounds->met += rounds->sent[ROUND_load] > 0 && was_met(rounds->scan, wants->ids[i]);
}

void round_loaded(struct server *s, const struct rv_wants *wants)
{
    check_held(s, wants);
    note_met(&s->rounds, wants);
    for (size_t i = 0; i < wants->keys_count; i++)
        s->rounds.repeats = s->rounds.repeats || wants->key_rows[i].task.value != 0;
    bool later = s->rounds.sent[ROUND_load] > 0;
    s->rounds.keys += later && wants->count == 0 && wants->keys_count > 0;
    /* Only a long decision loads a task whatever its size. */
    s->rounds.decides += later && wants->count == 1 && wants->bytes_max == SIZE_MAX;
}

void round_commits(struct server *s, const struct rv_batch *batch)
{
    for (size_t i = 0; i < batch->changes_count; i++) {
        const struct rv_change *change = &batch->changes[i];
        for (size_t k = 0; k < change->history_count; k++)
            s->rounds.bulk = s->rounds.bulk || change->history[k].selection.value != 0;
    }
}

static bool any(const struct rounds *rounds, const enum round_of *operations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rounds->sent[operations[i]] > 0)
            return true;
    return false;
}

#define ANY(rounds, ...)                                                                           \
    any(rounds, (const enum round_of[]){__VA_ARGS__},                                              \
        sizeof((const enum round_of[]){__VA_ARGS__}) / sizeof(enum round_of))

static bool decides_long(const struct world *w)
{
    return w->knobs.heavy || w->knobs.look_us > 0 || w->knobs.turn_fuel < TURN_FUEL_MUCH;
}

static enum rounds_reason reason_of(const struct world *w, const struct rounds *rounds)
{
    if (rounds->sent[ROUND_begin] > 1 || rounds->sent[ROUND_commit] > 1 ||
        rounds->sent[ROUND_committed] > 0)
        return ROUNDS_REFUSED;
    if (rounds->met > 0)
        return ROUNDS_SCAN;
    if (rounds->sent[ROUND_list_records] > 0)
        return ROUNDS_RECORDS;
    if (ANY(rounds, ROUND_list_deliveries, ROUND_list_messages))
        return ROUNDS_DELIVERIES;
    if (ANY(rounds, ROUND_list_tasks, ROUND_list_steps, ROUND_list_attempts, ROUND_list_alerts,
            ROUND_find_alert, ROUND_list_workflows) ||
        rounds->sent[ROUND_list_history] > rounds->newest)
        return ROUNDS_QUERY;
    if (ANY(rounds, ROUND_load_tasks, ROUND_load_steps, ROUND_find_attempt,
            ROUND_list_late_replies))
        return ROUNDS_PAST;
    if (rounds->sent[ROUND_load_workflow] > 0)
        return ROUNDS_WORKFLOW;
    if (rounds->repeats)
        return ROUNDS_REPEATED;
    return decides_long(w) || rounds->decides > 0 ? ROUNDS_DECISION : ROUNDS_UNFORESEEN;
}

/* A batch that reads the messages of many tasks one by one keeps all of its calls waiting. */
static void check_deliveries(struct world *w, const struct server *s)
{
    uint32_t asked = s->rounds.sent[ROUND_list_deliveries] + s->rounds.sent[ROUND_list_messages];
    if (asked > DELIVERIES_MANY)
        world_violate(w, "I-48", "%s needs %u round trips for the messages of one batch", s->name,
                      asked);
}

void check_rounds(struct world *w, struct server *s)
{
    const struct rounds *rounds = &s->rounds;
    if (!database_shared(w) || w->scenario != NULL)
        return;
    check_deliveries(w, s);
    bool more = rounds->count > ROUNDS_FEW;
    enum rounds_reason reason = more ? reason_of(w, rounds) : ROUNDS_REASON_COUNT;
    if (w->coverage != NULL) {
        w->coverage->rounds[more && rounds->count > ROUNDS_MANY ? ROUNDS_MANY : rounds->count]++;
        for (enum rounds_reason i = 0; more && i < ROUNDS_REASON_COUNT; i++)
            w->coverage->over[i] += i == reason;
    }
    w->rounds.batches++;
    w->rounds.unforeseen += reason == ROUNDS_UNFORESEEN;
    uint64_t part = UNFORESEEN_PART / (w->knobs.servers > 2 ? w->knobs.servers - 1 : 1);
    if (w->rounds.unforeseen > UNFORESEEN_FEW + w->rounds.batches / part)
        world_violate(
            w, "I-48", "%llu of %llu batches need more than two round trips, for no known reason",
            (unsigned long long)w->rounds.unforeseen, (unsigned long long)w->rounds.batches);
    w->rounds.bulk += rounds->bulk;
    w->rounds.bulk_late += rounds->bulk && reason == ROUNDS_UNFORESEEN;
    if (w->rounds.bulk_late > BULK_FEW + w->rounds.bulk / BULK_PART)
        world_violate(w, "I-48", "%llu of %llu batches with bulk commands load their tasks late",
                      (unsigned long long)w->rounds.bulk_late, (unsigned long long)w->rounds.bulk);
    w->rounds.late += !decides_long(w) && rounds->keys + rounds->newest > 0;
    if (w->rounds.late > LATE_FEW + w->rounds.batches / LATE_PART)
        world_violate(w, "I-48", "%llu of %llu batches ask for keys or histories late",
                      (unsigned long long)w->rounds.late, (unsigned long long)w->rounds.batches);
}

/* The store as the scheduler sees it in a scenario: each call is a boundary. A dead server's calls
 * go nowhere: they say CORRUPT, which ends the batch without an answer to anybody. */
#include "base/assert.h"
#include "sim/scenario/crossing.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

static struct gate *of(struct rv_store *store)
{
    return (struct gate *)store;
}

/* May the call go through? Else *ret_err is what it gives. */
static bool enter(struct gate *gate, enum boundary boundary, enum twist *ret_twist,
                  enum rv_err *ret_err)
{
    *ret_twist = TWIST_NONE;
    *ret_err = RV_ERR_CORRUPT;
    if (gate->dead)
        return false;
    *ret_twist = crossing(gate->server->world, boundary);
    if (*ret_twist == TWIST_BEFORE) {
        crossing_die(gate->server);
        return false;
    }
    *ret_err = RV_ERR_BUSY;
    return *ret_twist != TWIST_REFUSED;
}

static enum rv_err leave(struct gate *gate, enum twist twist, enum rv_err err)
{
    if (twist != TWIST_AFTER)
        return err;
    crossing_die(gate->server);
    return RV_ERR_CORRUPT;
}

/* One call of the store below, between its two edges. */
#define ACROSS(store, boundary, operation, ...)                                                    \
    do {                                                                                           \
        struct gate *gate = of(store);                                                             \
        enum twist twist;                                                                          \
        enum rv_err err;                                                                           \
        if (!enter(gate, (boundary), &twist, &err))                                                \
            return err;                                                                            \
        return leave(gate, twist, gate->inner->ops->operation(gate->inner, __VA_ARGS__));          \
    } while (0)

static void op_close(struct rv_store *store)
{
    of(store)->inner->ops->close(of(store)->inner);
}

static enum rv_err op_enlist(struct rv_store *store, struct rv_str boot, int64_t pid,
                             struct rv_enlistment *ret_enlistment)
{
    ACROSS(store, BOUNDARY_ENLIST, enlist, boot, pid, ret_enlistment);
}

static enum rv_err op_begin(struct rv_store *store, struct rv_wants *load, int64_t *ret_now)
{
    ACROSS(store, BOUNDARY_BEGIN, begin, load, ret_now);
}

static enum rv_err op_commit(struct rv_store *store, struct rv_batch *batch)
{
    struct gate *gate = of(store);
    enum twist twist;
    enum rv_err err;
    bool through = enter(gate, BOUNDARY_COMMIT, &twist, &err);
    if (!through || twist == TWIST_UNKNOWN_NOT_DONE) {
        gate->inner->ops->rollback(gate->inner);
        return through ? RV_ERR_COMMIT_UNKNOWN : err;
    }
    err = gate->inner->ops->commit(gate->inner, batch);
    if (err == RV_OK && twist == TWIST_UNKNOWN_DONE)
        return RV_ERR_COMMIT_UNKNOWN;
    return leave(gate, twist, err);
}

/* The end of a transaction is the end of it also for a dead server: its connection is gone. */
static void op_rollback(struct rv_store *store)
{
    struct gate *gate = of(store);
    enum twist twist;
    enum rv_err err;
    bool through = enter(gate, BOUNDARY_ROLLBACK, &twist, &err);
    gate->inner->ops->rollback(gate->inner);
    if (through)
        (void)leave(gate, twist, RV_OK);
}

static enum rv_err op_committed(struct rv_store *store, int64_t number, bool *ret_committed)
{
    ACROSS(store, BOUNDARY_COMMITTED, committed, number, ret_committed);
}

static enum rv_err op_load_tasks(struct rv_store *store, struct rv_arena *arena,
                                 enum rv_columns columns, const struct rv_task_id *ids,
                                 size_t count, const struct rv_task **ret_tasks)
{
    ACROSS(store, BOUNDARY_LOAD_TASKS, load_tasks, arena, columns, ids, count, ret_tasks);
}

static enum rv_err op_load_steps(struct rv_store *store, struct rv_arena *arena,
                                 enum rv_columns columns, const struct rv_step_id *ids,
                                 size_t count, const struct rv_step **ret_steps)
{
    ACROSS(store, BOUNDARY_LOAD_STEPS, load_steps, arena, columns, ids, count, ret_steps);
}

static enum rv_err op_load(struct rv_store *store, struct rv_wants *load)
{
    ACROSS(store, BOUNDARY_LOAD, load, load);
}

static enum rv_err op_load_workflow(struct rv_store *store, struct rv_arena *arena, int64_t id,
                                    const struct rv_workflow_row **ret_row)
{
    ACROSS(store, BOUNDARY_LOAD_WORKFLOW, load_workflow, arena, id, ret_row);
}

static enum rv_err op_find_workflow(struct rv_store *store, struct rv_arena *arena,
                                    struct rv_str space, struct rv_str name, struct rv_str version,
                                    const struct rv_workflow_row **ret_row)
{
    ACROSS(store, BOUNDARY_FIND_WORKFLOW, find_workflow, arena, space, name, version, ret_row);
}

static enum rv_err op_claim_role(struct rv_store *store, struct rv_str role, int64_t lease_ms,
                                 int64_t *ret_epoch, int64_t *ret_until)
{
    ACROSS(store, BOUNDARY_CLAIM_ROLE, claim_role, role, lease_ms, ret_epoch, ret_until);
}

static enum rv_err op_list_tasks(struct rv_store *store, struct rv_arena *arena,
                                 enum rv_columns columns, const struct rv_task_filter *filter,
                                 size_t limit, struct rv_task *ret_tasks, size_t *ret_count,
                                 struct rv_task_id *ret_next)
{
    ACROSS(store, BOUNDARY_LIST, list_tasks, arena, columns, filter, limit, ret_tasks, ret_count,
           ret_next);
}

static enum rv_err op_list_steps(struct rv_store *store, struct rv_arena *arena,
                                 enum rv_columns columns, struct rv_task_id task, uint32_t after,
                                 size_t limit, struct rv_step *ret_steps, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_steps, arena, columns, task, after, limit, ret_steps,
           ret_count);
}

static enum rv_err op_list_attempts(struct rv_store *store, struct rv_arena *arena,
                                    struct rv_step_id step, uint32_t after_step, uint32_t after,
                                    size_t limit, struct rv_attempt *ret_attempts,
                                    size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_attempts, arena, step, after_step, after, limit, ret_attempts,
           ret_count);
}

static enum rv_err op_find_attempt(struct rv_store *store, struct rv_arena *arena,
                                   struct rv_step_id step, uint64_t token,
                                   struct rv_attempt *ret_attempt, bool *ret_found)
{
    ACROSS(store, BOUNDARY_LIST, find_attempt, arena, step, token, ret_attempt, ret_found);
}

static enum rv_err op_list_late_replies(struct rv_store *store, struct rv_arena *arena,
                                        enum rv_columns columns, struct rv_step_id step,
                                        uint32_t attempt, size_t skip, size_t limit,
                                        struct rv_late_reply *ret_rows, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_late_replies, arena, columns, step, attempt, skip, limit,
           ret_rows, ret_count);
}

static enum rv_err op_list_alerts(struct rv_store *store, struct rv_arena *arena,
                                  struct rv_task_id task, bool open_only, int64_t before,
                                  size_t limit, struct rv_alert *ret_alerts, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_alerts, arena, task, open_only, before, limit, ret_alerts,
           ret_count);
}

static enum rv_err op_find_alert(struct rv_store *store, struct rv_arena *arena,
                                 struct rv_str source, struct rv_alert *ret_alert, bool *ret_found)
{
    ACROSS(store, BOUNDARY_LIST, find_alert, arena, source, ret_alert, ret_found);
}

static enum rv_err op_list_history(struct rv_store *store, struct rv_arena *arena,
                                   struct rv_task_id task, uint32_t before, size_t limit,
                                   struct rv_history_row *ret_rows, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_history, arena, task, before, limit, ret_rows, ret_count);
}

static enum rv_err op_list_messages(struct rv_store *store, struct rv_arena *arena,
                                    struct rv_task_id task, uint32_t after, size_t limit,
                                    struct rv_message *ret_messages, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_messages, arena, task, after, limit, ret_messages, ret_count);
}

static enum rv_err op_list_deliveries(struct rv_store *store, struct rv_arena *arena,
                                      struct rv_task_id task, struct rv_str after_destination,
                                      struct rv_task_id after, size_t limit,
                                      struct rv_delivery *ret_rows, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_deliveries, arena, task, after_destination, after, limit,
           ret_rows, ret_count);
}

static enum rv_err op_list_workflows(struct rv_store *store, struct rv_arena *arena, size_t skip,
                                     size_t limit, struct rv_workflow_row *ret_rows,
                                     size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_workflows, arena, skip, limit, ret_rows, ret_count);
}

static enum rv_err op_list_records(struct rv_store *store, struct rv_arena *arena,
                                   struct rv_str kind, struct rv_str prefix, struct rv_str after,
                                   size_t limit, struct rv_record *ret_rows, size_t *ret_count)
{
    ACROSS(store, BOUNDARY_LIST, list_records, arena, kind, prefix, after, limit, ret_rows,
           ret_count);
}

static const struct rv_store_ops ops = {
#define RV_STORE_OPERATION(name) .name = op_##name,
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
};

struct rv_store *crossing_open(struct server *s, struct rv_store *inner)
{
    if (s->world->crossings == NULL)
        return inner;
    rv_assert(s->number < GATES_MAX);
    struct gate *gate = &s->world->crossings->gates[s->number];
    *gate = (struct gate){.store = {.ops = &ops}, .inner = inner, .server = s};
    return &gate->store;
}

/* Reads of the store below, there and back: while one is under way others go on. */
#include "sim/store/tap_priv.h"

#include "base/assert.h"
#include "sim/check/check.h"
#include "sim/check/rounds.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

/* What a transaction has not read yet when its connection breaks it does not get. */
static enum rv_err read_sent(struct tap *tap, enum round_of operation)
{
    round_sent(tap->server, operation);
    tap->asked_at = INT64_MAX;
    RV_TRY(tap_travel(tap, WAY_TO_SERVER));
    bool broken = tap->inside && tap->connection != tap->world->database->connections;
    return broken ? RV_ERR_BUSY : RV_OK;
}

/* A read of the store below, there and back: while it is under way others go on. */
#define READ(store, operation, ...)                                                                \
    do {                                                                                           \
        struct tap *tap_ = (struct tap *)(store);                                                  \
        RV_TRY(read_sent(tap_, ROUND_##operation));                                                \
        RV_TRY(tap_->inner->ops->operation(tap_->inner, __VA_ARGS__));                             \
        return tap_travel(tap_, WAY_BACK);                                                         \
    } while (0)

void tap_wants_read(struct tap *tap, const struct rv_wants *wants)
{
    tap->newest = wants->now > tap->newest ? wants->now : tap->newest;
    database_look(tap->world, wants->now, tap->world->knobs.scan_ms + 501);
    round_loaded(tap->server, wants);
    for (size_t i = 0; i < wants->tasks_count; i++)
        if (wants->tasks[i].task != NULL)
            check_read(tap->server, wants->tasks[i].task);
}

enum rv_err tap_op_load_tasks(struct rv_store *store, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_task_id *ids, size_t count,
                              const struct rv_task **ret_tasks)
{
    struct tap *tap = (struct tap *)store;
    RV_TRY(read_sent(tap, ROUND_load_tasks));
    RV_TRY(tap->inner->ops->load_tasks(tap->inner, arena, columns, ids, count, ret_tasks));
    for (size_t i = 0; i < count; i++)
        if (ret_tasks[i] != NULL)
            check_read(tap->server, ret_tasks[i]);
    return tap_travel(tap, WAY_BACK);
}

enum rv_err tap_op_load_steps(struct rv_store *store, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_step_id *ids, size_t count,
                              const struct rv_step **ret_steps)
{
    READ(store, load_steps, arena, columns, ids, count, ret_steps);
}

enum rv_err tap_op_load(struct rv_store *store, struct rv_wants *wants)
{
    struct tap *tap = (struct tap *)store;
    RV_TRY(read_sent(tap, ROUND_load));
    RV_TRY(tap->inner->ops->load(tap->inner, wants));
    tap_wants_read(tap, wants);
    return tap_travel(tap, WAY_BACK);
}

enum rv_err tap_op_load_workflow(struct rv_store *store, struct rv_arena *arena, int64_t id,
                                 const struct rv_workflow_row **ret_row)
{
    struct tap *tap = (struct tap *)store;
    RV_TRY(read_sent(tap, ROUND_load_workflow));
    RV_TRY(tap->inner->ops->load_workflow(tap->inner, arena, id, ret_row));
    enum rv_err err = tap_travel(tap, WAY_BACK);
    if (err != RV_OK || *ret_row == NULL ||
        !fault_strikes(tap->world, FAULT_UNREADABLE, tap->actor))
        return err;
    struct rv_workflow_row *damaged = RV_NEW(arena, struct rv_workflow_row);
    rv_assert(damaged != NULL);
    *damaged = **ret_row;
    damaged->source.len /= 2;
    *ret_row = damaged;
    tap->misread = true;
    return RV_OK;
}

enum rv_err tap_op_find_workflow(struct rv_store *store, struct rv_arena *arena,
                                 struct rv_str space, struct rv_str name, struct rv_str version,
                                 const struct rv_workflow_row **ret_row)
{
    READ(store, find_workflow, arena, space, name, version, ret_row);
}

enum rv_err tap_op_list_tasks(struct rv_store *store, struct rv_arena *arena,
                              enum rv_columns columns, const struct rv_task_filter *filter,
                              size_t limit, struct rv_task *ret_tasks, size_t *ret_count,
                              struct rv_task_id *ret_next)
{
    READ(store, list_tasks, arena, columns, filter, limit, ret_tasks, ret_count, ret_next);
}

enum rv_err tap_op_list_steps(struct rv_store *store, struct rv_arena *arena,
                              enum rv_columns columns, struct rv_task_id task, uint32_t after,
                              size_t limit, struct rv_step *ret_steps, size_t *ret_count)
{
    READ(store, list_steps, arena, columns, task, after, limit, ret_steps, ret_count);
}

enum rv_err tap_op_list_attempts(struct rv_store *store, struct rv_arena *arena,
                                 struct rv_step_id step, uint32_t after_step, uint32_t after,
                                 size_t limit, struct rv_attempt *ret_attempts, size_t *ret_count)
{
    READ(store, list_attempts, arena, step, after_step, after, limit, ret_attempts, ret_count);
}

enum rv_err tap_op_find_attempt(struct rv_store *store, struct rv_arena *arena,
                                struct rv_step_id step, uint64_t token,
                                struct rv_attempt *ret_attempt, bool *ret_found)
{
    READ(store, find_attempt, arena, step, token, ret_attempt, ret_found);
}

enum rv_err tap_op_list_late_replies(struct rv_store *store, struct rv_arena *arena,
                                     enum rv_columns columns, struct rv_step_id step,
                                     uint32_t attempt, size_t skip, size_t limit,
                                     struct rv_late_reply *ret_rows, size_t *ret_count)
{
    READ(store, list_late_replies, arena, columns, step, attempt, skip, limit, ret_rows, ret_count);
}

enum rv_err tap_op_list_alerts(struct rv_store *store, struct rv_arena *arena,
                               struct rv_task_id task, bool open_only, int64_t before, size_t limit,
                               struct rv_alert *ret_alerts, size_t *ret_count)
{
    READ(store, list_alerts, arena, task, open_only, before, limit, ret_alerts, ret_count);
}

enum rv_err tap_op_find_alert(struct rv_store *store, struct rv_arena *arena, struct rv_str source,
                              struct rv_alert *ret_alert, bool *ret_found)
{
    READ(store, find_alert, arena, source, ret_alert, ret_found);
}

enum rv_err tap_op_list_history(struct rv_store *store, struct rv_arena *arena,
                                struct rv_task_id task, uint32_t before, size_t limit,
                                struct rv_history_row *ret_rows, size_t *ret_count)
{
    ((struct tap *)store)->server->rounds.newest += limit == 1;
    READ(store, list_history, arena, task, before, limit, ret_rows, ret_count);
}

enum rv_err tap_op_list_messages(struct rv_store *store, struct rv_arena *arena,
                                 struct rv_task_id task, uint32_t after, size_t limit,
                                 struct rv_message *ret_messages, size_t *ret_count)
{
    READ(store, list_messages, arena, task, after, limit, ret_messages, ret_count);
}

enum rv_err tap_op_list_deliveries(struct rv_store *store, struct rv_arena *arena,
                                   struct rv_task_id task, struct rv_str after_destination,
                                   struct rv_task_id after, size_t limit,
                                   struct rv_delivery *ret_rows, size_t *ret_count)
{
    READ(store, list_deliveries, arena, task, after_destination, after, limit, ret_rows, ret_count);
}

enum rv_err tap_op_list_workflows(struct rv_store *store, struct rv_arena *arena, size_t skip,
                                  size_t limit, struct rv_workflow_row *ret_rows, size_t *ret_count)
{
    READ(store, list_workflows, arena, skip, limit, ret_rows, ret_count);
}

enum rv_err tap_op_list_records(struct rv_store *store, struct rv_arena *arena, struct rv_str kind,
                                struct rv_str prefix, struct rv_str after, size_t limit,
                                struct rv_record *ret_rows, size_t *ret_count)
{
    READ(store, list_records, arena, kind, prefix, after, limit, ret_rows, ret_count);
}

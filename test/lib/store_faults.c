#include "store_faults.h"

#include "base/arena.h"
#include "base/prng.h"

#include <stdlib.h>

static struct store_faults *of(struct rv_store *store)
{
    return (struct store_faults *)store;
}

/* Is it the turn of the one with this number, counted from 1? */
static bool its_turn(const struct store_faults *faults, uint64_t number, uint64_t at)
{
    return at != 0 && (faults->sticky ? number >= at : number == at);
}

static bool fails(struct store_faults *faults, bool commit)
{
    faults->commit_calls += commit;
    if (faults->only_commits && !commit)
        return false;
    bool fails = its_turn(faults, ++faults->calls, faults->fail_at);
    faults->failed += fails;
    return fails;
}

#define PASS(store, call, ...)                                                                     \
    do {                                                                                           \
        struct store_faults *faults_ = of(store);                                                  \
        if (fails(faults_, false))                                                                 \
            return faults_->fail_with;                                                             \
        return faults_->inner->ops->call(faults_->inner, __VA_ARGS__);                             \
    } while (0)

static void faults_close(struct rv_store *store)
{
    of(store)->inner->ops->close(of(store)->inner);
}

static enum rv_err faults_enlist(struct rv_store *store, struct rv_str boot, int64_t pid,
                                 struct rv_enlistment *ret_enlistment)
{
    return of(store)->inner->ops->enlist(of(store)->inner, boot, pid, ret_enlistment);
}

static void faults_rollback(struct rv_store *store)
{
    of(store)->inner->ops->rollback(of(store)->inner);
}

static enum rv_err faults_committed(struct rv_store *store, int64_t number, bool *ret_committed)
{
    return of(store)->inner->ops->committed(of(store)->inner, number, ret_committed);
}

static bool offends(const struct store_faults *faults, const struct rv_change *change)
{
    return faults->offender.value != 0 && change->task->id.value == faults->offender.value &&
           !(change->task->state == RV_TASK_ERROR && change->alerts_count > 0 &&
             change->steps_count == 0);
}

/* The changes that pass, in their order; the others get their outcome here. */
static size_t changes_pass(struct store_faults *faults, struct rv_batch *batch,
                           struct rv_change *passed, size_t *places)
{
    static const enum rv_err outcomes[] = {RV_ERR_CONFLICT, RV_ERR_DUPLICATE, RV_ERR_DEPOSED};
    size_t count = 0;
    for (size_t i = 0; i < batch->changes_count; i++) {
        struct rv_prng prng;
        struct rv_change *change = &batch->changes[i];
        rv_prng_init(&prng, ++faults->seed);
        bool drop = rv_prng_below(&prng, 1000) < faults->drops_per_1000 ||
                    its_turn(faults, ++faults->changes, faults->drop_at);
        enum rv_err outcome = outcomes[faults->drops % 3];
        if (drop && outcome == RV_ERR_DUPLICATE && change->key == NULL)
            outcome = RV_ERR_CONFLICT;
        if (drop && outcome == RV_ERR_DEPOSED && change->epoch == 0)
            outcome = RV_ERR_CONFLICT;
        if (drop) {
            change->outcome = outcome;
            faults->drops++;
            continue;
        }
        places[count] = i;
        passed[count++] = *change;
    }
    return count;
}

static enum rv_err commit_passed(struct store_faults *faults, struct rv_batch *batch)
{
    struct rv_change *passed = calloc(batch->changes_count + 1, sizeof *passed);
    size_t *places = calloc(batch->changes_count + 1, sizeof *places);
    if (passed == NULL || places == NULL)
        abort();
    struct rv_batch less = *batch;
    less.changes = passed;
    less.changes_count = changes_pass(faults, batch, passed, places);
    enum rv_err err = faults->inner->ops->commit(faults->inner, &less);
    for (size_t i = 0; i < less.changes_count; i++)
        batch->changes[places[i]].outcome = passed[i].outcome;
    faults->commits += err == RV_OK && less.changes_count > 0;
    free(passed);
    free(places);
    return err;
}

static enum rv_err faults_commit(struct rv_store *store, struct rv_batch *batch)
{
    struct store_faults *faults = of(store);
    bool failing = fails(faults, true);
    if (faults->fail_commits > 0 && faults->pass_commits > 0) {
        faults->pass_commits--;
    } else if (faults->fail_commits > 0) {
        faults->fail_commits--;
        failing = true;
    }
    bool unknown = failing && faults->fail_with == RV_ERR_COMMIT_UNKNOWN;
    for (size_t i = 0; i < batch->changes_count; i++) {
        if (!offends(faults, &batch->changes[i]))
            continue;
        faults_rollback(store);
        return RV_ERR_INVALID;
    }
    if (failing && faults->tears) {
        for (size_t i = 0; i < batch->changes_count; i++)
            batch->changes[i].steps_count = 0;
        return commit_passed(faults, batch) == RV_OK ? faults->fail_with : RV_ERR_IO;
    }
    if (failing && !(unknown && faults->unknown_writes)) {
        faults_rollback(store);
        return faults->fail_with;
    }
    enum rv_err err = commit_passed(faults, batch);
    return err == RV_OK && unknown ? RV_ERR_COMMIT_UNKNOWN : err;
}

static void task_count(struct store_faults *faults, const struct rv_task *task)
{
    faults->payload_bytes += task->input.len + task->context.len + task->output.len;
}

static void step_count(struct store_faults *faults, const struct rv_step *step)
{
    faults->payload_bytes += step->frames.len + step->data.len + step->input.len + step->output.len;
}

/* What the call has put onto the arena. */
static enum rv_err loaded_count(struct store_faults *faults, size_t bytes)
{
    faults->loaded_bytes += bytes;
    if (faults->memory_bytes != 0 && faults->loaded_bytes > faults->memory_bytes)
        return RV_ERR_MEMORY;
    if (faults->loaded_bytes > faults->loaded_bytes_max)
        faults->loaded_bytes_max = faults->loaded_bytes;
    return RV_OK;
}

static enum rv_err faults_load_tasks(struct rv_store *store, struct rv_arena *arena,
                                     enum rv_columns columns, const struct rv_task_id *ids,
                                     size_t count, const struct rv_task **ret_tasks)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    size_t before = arena->bytes_taken;
    enum rv_err err = faults->inner->ops->load_tasks(faults->inner, arena, columns, ids, count,
                                                     ret_tasks);
    if (err == RV_OK)
        err = loaded_count(faults, arena->bytes_taken - before);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        if (ret_tasks[i] != NULL)
            task_count(faults, ret_tasks[i]);
    return err;
}

static enum rv_err faults_load_steps(struct rv_store *store, struct rv_arena *arena,
                                     enum rv_columns columns, const struct rv_step_id *ids,
                                     size_t count, const struct rv_step **ret_steps)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    size_t before = arena->bytes_taken;
    enum rv_err err = faults->inner->ops->load_steps(faults->inner, arena, columns, ids, count,
                                                     ret_steps);
    if (err == RV_OK)
        err = loaded_count(faults, arena->bytes_taken - before);
    for (size_t i = 0; err == RV_OK && i < count; i++)
        if (ret_steps[i] != NULL)
            step_count(faults, ret_steps[i]);
    return err;
}

/* Of a load that the store has done: what it has put onto the arena since `before`. */
static enum rv_err load_count(struct store_faults *faults, const struct rv_wants *load,
                              size_t before)
{
    enum rv_err err = loaded_count(faults, load->arena->bytes_taken - before);
    for (size_t i = 0; err == RV_OK && i < load->tasks_count; i++) {
        if (load->tasks[i].task != NULL)
            task_count(faults, load->tasks[i].task);
        for (size_t k = 0; k < load->tasks[i].steps_count; k++)
            step_count(faults, load->tasks[i].steps[k]);
    }
    return err;
}

static enum rv_err faults_load(struct rv_store *store, struct rv_wants *load)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    faults->loads++;
    size_t before = load->arena->bytes_taken;
    enum rv_err err = faults->inner->ops->load(faults->inner, load);
    return err == RV_OK ? load_count(faults, load, before) : err;
}

static enum rv_err faults_begin(struct rv_store *store, struct rv_wants *load, int64_t *ret_now)
{
    struct store_faults *faults = of(store);
    faults->loaded_bytes = 0;
    if (fails(faults, false))
        return faults->fail_with;
    size_t before = load != NULL ? load->arena->bytes_taken : 0;
    enum rv_err err = faults->inner->ops->begin(faults->inner, load, ret_now);
    if (err != RV_OK || load == NULL)
        return err;
    err = load_count(faults, load, before);
    if (err != RV_OK)
        faults->inner->ops->rollback(faults->inner);
    return err;
}

static enum rv_err faults_load_workflow(struct rv_store *store, struct rv_arena *arena, int64_t id,
                                        const struct rv_workflow_row **ret_row)
{
    PASS(store, load_workflow, arena, id, ret_row);
}

static enum rv_err faults_find_workflow(struct rv_store *store, struct rv_arena *arena,
                                        struct rv_str space, struct rv_str name,
                                        struct rv_str version,
                                        const struct rv_workflow_row **ret_row)
{
    PASS(store, find_workflow, arena, space, name, version, ret_row);
}

static enum rv_err faults_claim_role(struct rv_store *store, struct rv_str role, int64_t lease_ms,
                                     int64_t *ret_epoch, int64_t *ret_until)
{
    if (of(store)->fail_roles)
        return of(store)->fail_with;
    PASS(store, claim_role, role, lease_ms, ret_epoch, ret_until);
}

static enum rv_err faults_list_tasks(struct rv_store *store, struct rv_arena *arena,
                                     enum rv_columns columns, const struct rv_task_filter *filter,
                                     size_t limit, struct rv_task *ret_tasks, size_t *ret_count,
                                     struct rv_task_id *ret_next)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    enum rv_err err = faults->inner->ops->list_tasks(faults->inner, arena, columns, filter, limit,
                                                     ret_tasks, ret_count, ret_next);
    for (size_t i = 0; err == RV_OK && i < *ret_count; i++)
        task_count(faults, &ret_tasks[i]);
    return err;
}

static enum rv_err faults_list_steps(struct rv_store *store, struct rv_arena *arena,
                                     enum rv_columns columns, struct rv_task_id task,
                                     uint32_t after, size_t limit, struct rv_step *ret_steps,
                                     size_t *ret_count)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    enum rv_err err = faults->inner->ops->list_steps(faults->inner, arena, columns, task, after,
                                                     limit, ret_steps, ret_count);
    for (size_t i = 0; err == RV_OK && i < *ret_count; i++)
        step_count(faults, &ret_steps[i]);
    return err;
}

static enum rv_err faults_list_attempts(struct rv_store *store, struct rv_arena *arena,
                                        struct rv_step_id step, uint32_t after_step, uint32_t after,
                                        size_t limit, struct rv_attempt *ret_attempts,
                                        size_t *ret_count)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    enum rv_err err = faults->inner->ops->list_attempts(faults->inner, arena, step, after_step,
                                                        after, limit, ret_attempts, ret_count);
    faults->attempts_read += err == RV_OK ? *ret_count : 0;
    return err;
}

static enum rv_err faults_find_attempt(struct rv_store *store, struct rv_arena *arena,
                                       struct rv_step_id step, uint64_t token,
                                       struct rv_attempt *ret_attempt, bool *ret_found)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    enum rv_err err = faults->inner->ops->find_attempt(faults->inner, arena, step, token,
                                                       ret_attempt, ret_found);
    faults->attempts_read += err == RV_OK && *ret_found;
    return err;
}

static enum rv_err faults_list_late_replies(struct rv_store *store, struct rv_arena *arena,
                                            enum rv_columns columns, struct rv_step_id step,
                                            uint32_t attempt, size_t skip, size_t limit,
                                            struct rv_late_reply *ret_rows, size_t *ret_count)
{
    struct store_faults *faults = of(store);
    if (fails(faults, false))
        return faults->fail_with;
    enum rv_err err = faults->inner->ops->list_late_replies(
        faults->inner, arena, columns, step, attempt, skip, limit, ret_rows, ret_count);
    for (size_t i = 0; err == RV_OK && i < *ret_count; i++)
        faults->payload_bytes += ret_rows[i].output.len;
    return err;
}

static enum rv_err faults_list_alerts(struct rv_store *store, struct rv_arena *arena,
                                      struct rv_task_id task, bool open_only, int64_t before,
                                      size_t limit, struct rv_alert *ret_alerts, size_t *ret_count)
{
    PASS(store, list_alerts, arena, task, open_only, before, limit, ret_alerts, ret_count);
}

static enum rv_err faults_find_alert(struct rv_store *store, struct rv_arena *arena,
                                     struct rv_str source, struct rv_alert *ret_alert,
                                     bool *ret_found)
{
    PASS(store, find_alert, arena, source, ret_alert, ret_found);
}

static enum rv_err faults_list_history(struct rv_store *store, struct rv_arena *arena,
                                       struct rv_task_id task, uint32_t before, size_t limit,
                                       struct rv_history_row *ret_rows, size_t *ret_count)
{
    PASS(store, list_history, arena, task, before, limit, ret_rows, ret_count);
}

static enum rv_err faults_list_messages(struct rv_store *store, struct rv_arena *arena,
                                        struct rv_task_id task, uint32_t after, size_t limit,
                                        struct rv_message *ret_messages, size_t *ret_count)
{
    PASS(store, list_messages, arena, task, after, limit, ret_messages, ret_count);
}

static enum rv_err faults_list_deliveries(struct rv_store *store, struct rv_arena *arena,
                                          struct rv_task_id task, struct rv_str after_destination,
                                          struct rv_task_id after, size_t limit,
                                          struct rv_delivery *ret_rows, size_t *ret_count)
{
    PASS(store, list_deliveries, arena, task, after_destination, after, limit, ret_rows, ret_count);
}

static enum rv_err faults_list_workflows(struct rv_store *store, struct rv_arena *arena,
                                         size_t skip, size_t limit,
                                         struct rv_workflow_row *ret_rows, size_t *ret_count)
{
    PASS(store, list_workflows, arena, skip, limit, ret_rows, ret_count);
}

static enum rv_err faults_list_records(struct rv_store *store, struct rv_arena *arena,
                                       struct rv_str kind, struct rv_str prefix,
                                       struct rv_str after, size_t limit,
                                       struct rv_record *ret_rows, size_t *ret_count)
{
    PASS(store, list_records, arena, kind, prefix, after, limit, ret_rows, ret_count);
}

static const struct rv_store_ops operations = {
#define RV_STORE_OPERATION(name) .name = faults_##name,
#include "store/tbl/operation.def"
#undef RV_STORE_OPERATION
};

struct rv_store *store_faults_wrap(struct store_faults *faults, struct rv_store *inner)
{
    faults->store.ops = &operations;
    faults->inner = inner;
    return &faults->store;
}

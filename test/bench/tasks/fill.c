/* Fills a store with tasks: fill STORE WORKFLOW_ID COUNT [open]. What a server would have left
 * behind after that many three-step tasks, written through the store's own commit. Open ones stand
 * at their first step: every second waits for an agent, the others are held by an instance for a
 * day; the ids of two of each hundred are printed. */
#include "base/id.h"
#include "base/os/clock.h"
#include "store/sqlite/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1000, STEPS = 3 };

static int64_t wall(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

struct filled {
    struct rv_task task;
    struct rv_step steps[STEPS];
    const struct rv_step *rows[STEPS];
    bool inserts[STEPS];
};

static void task_fill(struct filled *f, struct rv_task_id id, int64_t workflow, int64_t now)
{
    f->task = (struct rv_task){.id = id,
                               .revision = 1,
                               .workflow = workflow,
                               .state = RV_TASK_PROCESSED,
                               .priority = 5,
                               .fence = STEPS,
                               .last_number = STEPS,
                               .undo_head = STEPS,
                               .created_at = now,
                               .started_at = now,
                               .ended_at = now,
                               .input = RV_STR("{\"orderId\":1,\"sku\":\"A-1\",\"quantity\":2}"),
                               .output = RV_STR("{\"ok\":true,\"step\":\"06DWX3T9H2K4Q-3\"}")};
    for (uint32_t i = 0; i < STEPS; i++) {
        f->steps[i] = (struct rv_step){
            .number = i + 1,
            .kind = RV_KIND_CALL,
            .state = RV_STEP_PROCESSED,
            .node = i + 1,
            .visit = 1,
            .effect = RV_EFFECT_DONE,
            .undo_prev = i,
            .chained = true,
            .attempt = 1,
            .attempt_state = RV_ATTEMPT_DONE,
            .token = (uint64_t)id.value * 31 + i,
            .fence = i + 1,
            .attempt_at = now,
            .complete_by = now + 30000,
            .lease_ms = 30000,
            .lease_until = now + 30000,
            .created_at = now,
            .ended_at = now,
            .reference = RV_STR("/do/0/reserveStock"),
            .iteration = RV_STR(""),
            .agent = RV_STR("bench"),
            .instance = RV_STR("host-12345"),
            .boot = RV_STR("0123456789abcdef"),
            .poll = RV_STR("0123456789abcdef"),
            .frames = RV_STR("[[0,1]]"),
            .data = RV_STR("{\"orderId\":1}"),
            .input = RV_STR("{\"orderId\":1}"),
            .output = RV_STR("{\"ok\":true,\"step\":\"06DWX3T9H2K4Q-1\"}")};
        f->rows[i] = &f->steps[i];
        f->inserts[i] = true;
    }
}

/* As far as its first step. */
static void task_open(struct filled *f, bool held, int64_t now)
{
    enum { DAY_MS = 24 * 60 * 60 * 1000 };
    struct rv_step *step = &f->steps[0];
    f->task.state = held ? RV_TASK_PROCESSING : RV_TASK_PENDING;
    f->task.fence = held;
    f->task.last_number = f->task.open_count = f->task.open[0] = 1;
    f->task.undo_head = 0;
    f->task.started_at = held ? now : 0;
    f->task.ended_at = 0;
    f->task.output = RV_STR_NONE;
    step->state = held ? RV_STEP_PROCESSING : RV_STEP_PENDING;
    step->effect = RV_EFFECT_NONE;
    step->chained = false;
    step->output = RV_STR_NONE;
    step->ended_at = 0;
    step->ready_at = now;
    step->frames = RV_STR("{\"n\":1}");
    step->wake_at = step->complete_by = step->lease_until = now + DAY_MS;
    step->lease_ms = DAY_MS;
    step->attempt_state = RV_ATTEMPT_OPEN;
    if (held)
        return;
    step->attempt = step->fence = 0;
    step->attempt_state = RV_ATTEMPT_NONE;
    step->token = 0;
    step->attempt_at = step->complete_by = step->lease_ms = step->lease_until = 0;
    step->instance = step->boot = step->poll = RV_STR_NONE;
}

int main(int argc, char **argv)
{
    enum { PRINTED = 100 };
    bool open = argc == 5 && strcmp(argv[4], "open") == 0;
    if (argc != 4 && !open) {
        fprintf(stderr, "use: tasks_fill STORE WORKFLOW_ID COUNT [open]\n");
        return 2;
    }
    struct rv_store *store;
    struct rv_store_sqlite_fault fault;
    struct rv_enlistment enlistment = {.lease_ms = 5000};
    struct rv_store_sqlite_options options = {.path = argv[1], .clock = {wall, NULL}};
    if (rv_store_sqlite_open(&options, &store, &fault) != RV_OK ||
        store->ops->enlist(store, RV_STR("fill"), 1, &enlistment) != RV_OK)
        return 1;
    static struct filled filled[BATCH];
    static struct rv_change changes[BATCH];
    struct rv_id_maker ids;
    rv_id_maker_init(&ids, enlistment.instance);
    long long count = strtoll(argv[3], NULL, 10);
    for (long long done = 0; done < count; done += BATCH) {
        int64_t now;
        if (store->ops->begin(store, NULL, &now) != RV_OK)
            return 1;
        for (int i = 0; i < BATCH; i++) {
            task_fill(&filled[i], rv_id_make(&ids, now - 1000), strtoll(argv[2], NULL, 10), now);
            if (open)
                task_open(&filled[i], i % 2 == 1, now);
            char text[RV_ID_TEXT_BYTES];
            if (open && i % PRINTED < 2)
                printf("%s\n", rv_task_text(filled[i].task.id, text).at);
            changes[i] = (struct rv_change){.task = &filled[i].task,
                                            .steps = filled[i].rows,
                                            .steps_new = filled[i].inserts,
                                            .steps_count = open ? 1 : STEPS};
        }
        struct rv_batch batch = {
            .changes = changes, .changes_count = BATCH, .number = done / BATCH + 1};
        if (store->ops->commit(store, &batch) != RV_OK)
            return 1;
    }
    store->ops->close(store);
    return 0;
}

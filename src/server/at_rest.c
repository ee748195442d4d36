#include "server/at_rest.h"

#include "api/answer.h"
#include "api/route.h"
#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/random.h"
#include "scheduler/scheduler.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct visit {
    struct rv_store *store;
    struct rv_scheduler *scheduler;
    struct rv_parser parser;
    struct rv_call call;
    bool finished;
};

static int64_t wall_now(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

static void call_finished(struct rv_call *call)
{
    struct visit *visit = call->owner;
    rv_assert(call == &visit->call);
    visit->finished = true;
}

static int64_t mono_now(void *self)
{
    (void)self;
    return rv_clock_mono_ms();
}

static enum rv_err visit_open(struct visit *visit, const char *path, bool there,
                              struct rv_buf *ret_body)
{
    struct rv_store_sqlite_fault fault = {.pid = 0};
    struct rv_store_sqlite_options options = {
        .path = path, .clock = {.now = wall_now}, .there = there};
    enum rv_err err = rv_store_sqlite_open(&options, &visit->store, &fault);
    if (err != RV_OK) {
        rv_buf_printf(ret_body, "%s", fault.message[0] ? fault.message : rv_err_text(err));
        return err;
    }
    struct rv_scheduler_options scheduler = {
        .store = visit->store, .boot = RV_STR("at-rest"), .pid = getpid()};
    scheduler.mono.now = mono_now;
    rv_random_bytes(&scheduler.seed, sizeof scheduler.seed);
    rv_random_bytes(&scheduler.hash_key, sizeof scheduler.hash_key);
    err = rv_scheduler_open(&scheduler, &visit->scheduler);
    if (err != RV_OK) {
        rv_buf_printf(ret_body, "%s: %s", path, rv_err_text(err));
        visit->store->ops->close(visit->store);
    }
    return err;
}

/* Batches until the call is answered, or the store says no. */
static void call_run(struct visit *visit)
{
    rv_assert(!visit->finished);
    struct rv_call *calls[] = {&visit->call};
    size_t count = 1;
    enum rv_err err;
    do {
        err = rv_scheduler_run_batch(visit->scheduler, calls, count, rv_clock_mono_ms());
        count = 0;
    } while (!visit->finished && err == RV_OK);
    if (!visit->finished)
        visit->call.err = err;
}

/* What the scheduler advises against a running server's refusal is what was just done. */
static void refusal_word(struct rv_call *call)
{
    if (call->kind == RV_CALL_KEY_REVOKE && call->err == RV_ERR_REFUSED)
        call->message = RV_STR("no admin key would be left: create another admin key first (reeve "
                               "keys add admin --store PATH)");
}

static int request_answer(struct visit *visit, const char *method, const char *target,
                          const char *body, struct rv_buf *ret_body)
{
    struct rv_call *call = &visit->call;
    struct rv_request_line line;
    struct rv_answer answer;
    call->finish = call_finished;
    call->owner = visit;
    call->serial = 1;
    rv_random_bytes(&call->seed, sizeof call->seed);
    call->mono_at = rv_clock_mono_ms();
    rv_parser_begin(&visit->parser, &call->arena);
    rv_answer_init(&answer);
    const struct rv_route *route = NULL;
    if (rv_request_read(&visit->parser, rv_str_of(target), &line))
        route = rv_route_find(&visit->parser, rv_str_of(method), &line);
    line.body = body ? rv_str_of(body) : RV_STR("");
    if (route != NULL)
        call->kind = route->kind;
    if (route == NULL || !route->parse(&visit->parser, &line, call)) {
        rv_answer_problem(&answer, &visit->parser.problem);
    } else {
        call_run(visit);
        refusal_word(call);
        if (!rv_answer_failed(&answer, call))
            route->render(&answer, call);
    }
    rv_buf_add_str(ret_body, rv_buf_str(&answer.body));
    rv_buf_done(&answer.body);
    return answer.status;
}

enum rv_err rv_at_rest(const char *store, const char *method, const char *target, const char *body,
                       int *ret_status, struct rv_buf *ret_body)
{
    struct visit visit = {.finished = false};
    enum rv_err err = visit_open(&visit, store, false, ret_body);
    if (err != RV_OK)
        return err;
    rv_parser_init(&visit.parser);
    rv_arena_init(&visit.call.arena, 0);
    *ret_status = request_answer(&visit, method, target, body, ret_body);
    rv_scheduler_close(visit.scheduler);
    rv_arena_done(&visit.call.arena);
    rv_parser_done(&visit.parser);
    visit.store->ops->close(visit.store);
    return RV_OK;
}

/* ---- one look of the supervisor ---- */

static int64_t sum(const uint64_t *numbers, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += numbers[i];
    return (int64_t)all;
}

/* What the scheduler has counted, asked for like by anybody. */
static enum rv_err look_count(struct visit *visit, struct rv_cli_look *look)
{
    visit->call = (struct rv_call){.kind = RV_CALL_METRICS,
                                   .arena = visit->call.arena,
                                   .finish = call_finished,
                                   .owner = visit,
                                   .serial = 1};
    call_run(visit);
    if (visit->call.err != RV_OK)
        return visit->call.err;
    const struct rv_counts *counts = visit->call.u.metrics.counts;
    rv_assert(counts != NULL);
    look->moved = (int64_t)counts->findings;
    look->expired = (int64_t)counts->attempts_ended[RV_ATTEMPT_EXPIRED];
    look->ended = sum(counts->tasks_ended, RV_TASK_STATE_COUNT);
    look->alerts = sum(counts->alerts, RV_ALERT_KIND_COUNT);
    return RV_OK;
}

/* Batches until all open tasks were walked over and none of them is due; a task whose timers fall
 * due faster than they are looked at must not hold it for ever. */
static enum rv_err look_run(struct visit *visit, struct rv_cli_look *look)
{
    enum { LOOK_MS_MAX = 60000 };
    int64_t until = rv_clock_mono_ms() + LOOK_MS_MAX;
    enum rv_err err = RV_OK;
    look->open = rv_scheduler_enlistment(visit->scheduler)->open_tasks;
    do {
        err = rv_scheduler_run_batch(visit->scheduler, NULL, 0, rv_clock_mono_ms());
    } while (err == RV_OK && rv_clock_mono_ms() < until &&
             rv_scheduler_next_wake(visit->scheduler, rv_clock_mono_ms()) == 0);
    return err;
}

static enum rv_err visit_look(struct visit *visit, struct rv_cli_look *look)
{
    RV_TRY(look_run(visit, look));
    return look_count(visit, look);
}

enum rv_err rv_at_rest_look(const char *store, struct rv_cli_look *ret_look, struct rv_buf *ret_why)
{
    struct visit visit = {.finished = false};
    struct stat about;
    if (stat(store, &about) != 0) { /* none is made, nor is an empty file made one */
        rv_buf_printf(ret_why, "%s: %s: give the path of a server's store with --store", store,
                      strerror(errno));
        return errno == ENOENT ? RV_ERR_NOT_FOUND : RV_ERR_IO;
    }
    enum rv_err err = visit_open(&visit, store, about.st_size == 0, ret_why);
    if (err != RV_OK)
        return err;
    rv_arena_init(&visit.call.arena, 0);
    err = visit_look(&visit, ret_look);
    if (err != RV_OK)
        rv_buf_printf(ret_why, "%s: %s", store, rv_err_text(err));
    rv_scheduler_close(visit.scheduler);
    rv_arena_done(&visit.call.arena);
    visit.store->ops->close(visit.store);
    return err;
}

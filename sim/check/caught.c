#include "sim/check/check.h"

#include "base/assert.h"
#include "base/limits.h"
#include "json/json.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

/* A second reading of `catch`, from the document as it was written: it shares nothing with the
 * interpreter. */

enum { POINTER_BYTES_MAX = 512 };

/* A condition of the generator's forms, `... == N` on the error's status. Of any other it is not
 * known here whether it holds. */
static bool may_hold(const struct rv_json *condition, int64_t status, bool wanted)
{
    char text[64];
    struct rv_str s = condition != NULL ? rv_json_str(condition) : RV_STR_NONE;
    if (s.at == NULL || s.len >= sizeof text)
        return true;
    memcpy(text, s.at, s.len);
    text[s.len] = '\0';
    const char *equals = strstr(text, ".status == ");
    return equals == NULL || (strtoll(equals + 11, NULL, 10) == status) == wanted;
}

static bool conditions_may_hold(const struct rv_json *object, int64_t status)
{
    return may_hold(rv_json_get(object, RV_STR("when")), status, true) &&
           may_hold(rv_json_get(object, RV_STR("exceptWhen")), status, false);
}

static bool may_take(const struct rv_json *caught, int64_t status)
{
    const struct rv_json *with = rv_json_get(rv_json_get(caught, RV_STR("errors")), RV_STR("with"));
    const struct rv_json *filter = rv_json_get(with, RV_STR("status"));
    int64_t wanted;
    bool matches = filter == NULL || (rv_json_int(filter, &wanted) && wanted == status);
    return matches && conditions_may_hold(caught, status);
}

/* Whether control may stand at `place` (absent: at no step, the task has ended) after the try at
 * `pointer`, `len` bytes of it, has taken the error. */
static bool may_lead_to(const struct rv_json *caught, int64_t status, const char *pointer,
                        size_t len, struct rv_str place)
{
    const struct rv_json *retry = rv_json_get(caught, RV_STR("retry"));
    bool handles = retry == NULL || rv_json_get(caught, RV_STR("do")) != NULL ||
                   rv_json_get(caught, RV_STR("then")) != NULL;
    bool inside = place.at != NULL && place.len >= len && memcmp(place.at, pointer, len) == 0 &&
                  (place.len == len || place.at[len] == '/');
    return handles || (inside && conditions_may_hold(retry, status));
}

static const struct rv_json *document_of(const struct transition *t)
{
    for (uint32_t i = 0; i < t->w->workload->count; i++) {
        const struct workload_workflow *workflow = &t->w->workload->workflows[i];
        for (uint32_t v = 0; v < workflow->versions_count; v++)
            if (workflow->versions[v].definition == t->past->definition)
                return &workflow->versions[v].document;
    }
    return NULL;
}

/* The length of the try's reference in whose body the task at `pointer` stands; 0: none. */
static size_t try_around(const char *pointer)
{
    const char *body = NULL;
    for (const char *at = strstr(pointer, "/try/"); at != NULL; at = strstr(at + 1, "/try/"))
        body = at;
    return body != NULL ? (size_t)(body - pointer) : 0;
}

static bool may_stand_at(const struct rv_json *document, struct rv_str raiser, int64_t status,
                         struct rv_str place)
{
    char pointer[POINTER_BYTES_MAX];
    rv_assert(raiser.len < sizeof pointer);
    memcpy(pointer, raiser.at, raiser.len);
    pointer[raiser.len] = '\0';
    for (size_t len = try_around(pointer); len > 0; len = try_around(pointer)) {
        pointer[len] = '\0';
        const struct rv_json *owner = rv_json_at(document, rv_str_of(pointer));
        const struct rv_json *caught = rv_json_get(owner, RV_STR("catch"));
        rv_assert(caught != NULL);
        if (may_take(caught, status) && may_lead_to(caught, status, pointer, len, place))
            return true;
    }
    return false;
}

/* 0: it has none. */
static int64_t status_of(struct world *w, struct rv_str text)
{
    struct rv_json error;
    struct rv_arena_mark mark = rv_arena_mark(&w->history->scratch);
    int64_t status = 0;
    if (rv_json_parse(&w->history->scratch, text, RV_JSON_DEPTH_MAX, &error, NULL) == RV_OK &&
        rv_json_get(&error, RV_STR("status")) != NULL)
        (void)rv_json_int(rv_json_get(&error, RV_STR("status")), &status);
    rv_arena_release(&w->history->scratch, mark);
    return status != 0 ? status : 500;
}

/* L-14: a step that is in error says by which. */
static void check_said(const struct transition *t)
{
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        if (step->state == RV_STEP_ERROR && step->error.at == NULL && !step->unreadable)
            world_violate(t->w, "L-14", "step %u is in error, and has no error", step->number);
    }
}

/* L-14: an error that a step raised is taken by the catch of a try around it, retried by one, or
 * ends the way forward: nothing goes on as if it had not been. (What an operator gave up in the
 * same commit goes nowhere.) */
void check_caught(const struct transition *t)
{
    const struct rv_json *document = document_of(t);
    check_said(t);
    if (t->task->direction != RV_FORWARD || t->task->state == RV_TASK_ERROR ||
        t->task->state == RV_TASK_CANCELLED || document == NULL)
        return;
    struct rv_str place = RV_STR_NONE;
    if (t->task->open_count > 0)
        place = t->steps[t->task->open[0] - 1].reference;
    for (size_t i = 0; i < t->steps_count; i++) {
        const struct rv_step *step = &t->steps[i];
        const struct step_past *past = history_step(t->past, step->number);
        bool raised = step->kind == RV_KIND_CALL && step->state == RV_STEP_ERROR && past != NULL &&
                      past->row.state != RV_STEP_ERROR && step->error.at != NULL;
        /* A timeout around it may have been raised instead. */
        if (!raised || (past->row.deadline != 0 && t->now >= past->row.deadline))
            continue;
        int64_t status = status_of(t->w, step->error);
        if (!may_stand_at(document, step->reference, status, place))
            world_violate(t->w, "L-14",
                          "step %u raised %lld, which nothing there catches, and the task goes on "
                          "at %.*s",
                          step->number, (long long)status, RV_STR_FMT(place));
    }
}

#include "sim/run/story.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/time.h"
#include "json/json.h"
#include "sim/store/database.h"
#include "sim/world/history.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 4096, ACTOR_BYTES = 64, NAME_BYTES = 128 };
static const char id_letters[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

struct story {
    struct rv_map names;    /* (task, step; 0: the task itself) -> its name, on the world's arena */
    struct rv_map attempts; /* (token's hash, 0) -> number of the attempt */
    struct rv_arena scratch;
};

void story_new(struct world *w)
{
    w->story = RV_NEW(&w->arena, struct story);
    rv_assert(w->story != NULL);
    rv_map_init(&w->story->names);
    rv_map_init(&w->story->attempts);
    rv_arena_init(&w->story->scratch, 0);
}

void story_free(struct world *w)
{
    if (w->story == NULL)
        return;
    rv_map_done(&w->story->names);
    rv_map_done(&w->story->attempts);
    rv_arena_done(&w->story->scratch);
}

/* ---- names ---- */

static void name_put(struct world *w, struct rv_task_id task, uint32_t step, const char *name)
{
    struct rv_str kept = rv_arena_str(&w->arena, (struct rv_str){name, strlen(name) + 1});
    enum rv_err err = rv_map_put(&w->story->names, (uint64_t)task.value, step,
                                 (uint64_t)(uintptr_t)kept.at);
    rv_assert(err == RV_OK);
}

static const char *name_of(const struct world *w, struct rv_task_id task, uint32_t step)
{
    const uint64_t *found = rv_map_find(&w->story->names, (uint64_t)task.value, step);
    return found != NULL ? (const char *)(uintptr_t)*found : NULL;
}

static void step_name(struct world *w, const struct rv_task *task, const struct rv_step *step)
{
    char name[NAME_BYTES];
    size_t from = step->reference.len;
    while (from > 0 && step->reference.at[from - 1] != '/')
        from--;
    snprintf(name, sizeof name, "%s/%.*s", name_of(w, task->id, 0),
             (int)(step->reference.len - from), step->reference.at + from);
    name_put(w, task->id, step->number, name);
}

/* The id of a task, or of a step ("ID-N"), at the beginning of the text: its name, and how many
 * bytes it is written with. NULL: there is none. */
static const char *name_at(const struct world *w, const char *text, size_t *ret_bytes)
{
    struct rv_task_id task;
    struct rv_step_id step;
    size_t len = strspn(text, id_letters);
    size_t number = text[len] == '-' ? 1 + strspn(text + len + 1, "0123456789") : 0;
    if (len != RV_ID_TEXT_BYTES - 1)
        return NULL;
    *ret_bytes = len + number;
    if (rv_step_parse((struct rv_str){text, len + number}, &step) == RV_OK)
        return name_of(w, step.task, step.number);
    *ret_bytes = len;
    bool good = rv_task_parse((struct rv_str){text, len}, &task) == RV_OK;
    return good ? name_of(w, task, 0) : NULL;
}

void story_line(struct world *w, const char *actor, const char *text)
{
    fprintf(w->transcript, "%3lld.%03lld s  %-22s ", (long long)(w->now / 1000),
            (long long)(w->now % 1000), actor);
    while (*text != '\0') {
        size_t bytes = strspn(text, id_letters);
        const char *name = name_at(w, text, &bytes);
        if (name != NULL)
            fputs(name, w->transcript);
        else
            fwrite(text, 1, bytes = bytes > 0 ? bytes : 1, w->transcript);
        text += bytes;
    }
    fputc('\n', w->transcript);
}

/* ---- messages ---- */

static void message(struct world *w, const char *from, const char *to, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void message(struct world *w, const char *from, const char *to, const char *format, ...)
{
    char actors[ACTOR_BYTES], text[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(actors, sizeof actors, "%s -> %s", from, to);
    story_line(w, actors, text);
}

static bool starts(struct rv_str text, const char *with)
{
    return text.len >= strlen(with) && memcmp(text.at, with, strlen(with)) == 0;
}

static const char *server_of(const struct world *w, const struct exchange *x)
{
    return w->servers[x->server].name;
}

/* The members of a body as texts; absent ones are empty. */
static struct rv_str text_of(const struct rv_json *object, const char *key)
{
    struct rv_str text = rv_json_str(rv_json_get(object, rv_str_of(key)));
    return text.at != NULL ? text : RV_STR("");
}

static long long number_of(const struct rv_json *object, const char *key)
{
    int64_t number = 0;
    (void)rv_json_int(rv_json_get(object, rv_str_of(key)), &number);
    return number;
}

static const struct rv_json *body_read(struct world *w, struct rv_str body, struct rv_json *room)
{
    rv_arena_reset(&w->story->scratch);
    enum rv_err err = rv_json_parse(&w->story->scratch, body, RV_JSON_DEPTH_MAX, room, NULL);
    return err == RV_OK ? room : NULL;
}

static const struct rv_json *list_of(const struct rv_json *body, const char *key, size_t *ret_count)
{
    const struct rv_json *list = rv_json_get(body, rv_str_of(key));
    bool there = list != NULL && list->type == RV_JSON_ARRAY;
    *ret_count = there ? list->len : 0;
    return there ? list->u.items : NULL;
}

/* A time on the store's clock, in seconds of the transcript. */
static const char *instant(const struct world *w, int64_t at, char text[static 32])
{
    long long ms = at - (database_wall(w) - w->now);
    snprintf(text, 32, "%lld.%03lld s", ms / 1000, ms % 1000);
    return text;
}

static void reply_tell(struct world *w, const char *actor, const struct exchange *x,
                       const struct rv_json *reply)
{
    struct rv_str step = text_of(reply, "step");
    const uint64_t *attempt = rv_map_find(&w->story->attempts,
                                          history_hash(text_of(reply, "token")), 0);
    unsigned number = attempt != NULL ? (unsigned)*attempt : 0;
    const struct rv_json *error = rv_json_get(reply, RV_STR("error"));
    if (error == NULL) {
        message(w, actor, server_of(w, x), "reply: %.*s attempt %u is done", RV_STR_FMT(step),
                number);
        return;
    }
    const struct rv_json *transient = rv_json_get(error, RV_STR("transient"));
    long long pause = number_of(error, "retryAfterMs");
    char after[64] = "";
    if (pause > 0)
        snprintf(after, sizeof after, ", retry after %lld.%03lld s", pause / 1000, pause % 1000);
    message(w, actor, server_of(w, x), "reply: %.*s attempt %u failed (%s error, effect %.*s%s)",
            RV_STR_FMT(step), number, transient && transient->truth ? "transient" : "permanent",
            RV_STR_FMT(text_of(error, "effect")), after);
}

static void submission_tell(struct world *w, const char *actor, const struct exchange *x,
                            const struct rv_json *body)
{
    message(w, actor, server_of(w, x), "submit a task of workflow %.*s with key %.*s%s",
            RV_STR_FMT(text_of(body, "workflow")), RV_STR_FMT(text_of(body, "key")),
            text_of(body, "correlationId").len > 0 ? " and another body" : "");
}

static void command_tell(struct world *w, const char *actor, const struct exchange *x,
                         const struct rv_json *body)
{
    const char *id = x->target.at + strlen("/v1/tasks/");
    size_t id_bytes = strcspn(id, "/");
    const char *verb = id + id_bytes + 1;
    const struct rv_json *abandon = rv_json_get(body, RV_STR("abandon"));
    long long step = number_of(body, "step");
    char which[32] = "", more[64] = "";
    if (step > 0)
        snprintf(which, sizeof which, "-%lld", step);
    if (text_of(body, "finding").len > 0)
        snprintf(more, sizeof more, " as %.*s", RV_STR_FMT(text_of(body, "finding")));
    message(w, actor, server_of(w, x), "%.*s %.*s%s%s%s",
            (int)(x->target.len - (size_t)(verb - x->target.at)), verb, (int)id_bytes, id, which,
            more, abandon != NULL && abandon->truth ? " and leave its effects" : "");
}

static bool is_poll(const struct exchange *x)
{
    return starts(x->target, "/v1/agents/");
}

void story_asked(struct world *w, const char *actor, const struct exchange *x)
{
    struct rv_json room;
    size_t count = 0;
    if (w->story == NULL || is_poll(x))
        return; /* the story shows the requests that it returns */
    const struct rv_json *body = body_read(w, x->body, &room);
    const struct rv_json *replies = list_of(body, "replies", &count);
    for (size_t i = 0; i < count; i++)
        reply_tell(w, actor, x, &replies[i]);
    const struct rv_json *leases = list_of(body, "leases", &count);
    for (size_t i = 0; i < count; i++)
        message(w, actor, server_of(w, x), "renew the lease of %.*s",
                RV_STR_FMT(text_of(&leases[i], "step")));
    if (rv_str_is(x->target, "/v1/tasks"))
        submission_tell(w, actor, x, body);
    else if (starts(x->target, "/v1/tasks/"))
        command_tell(w, actor, x, body);
}

static void request_tell(struct world *w, const char *actor, const struct exchange *x,
                         const struct rv_json *request)
{
    int64_t at = 0;
    char by[32];
    long long number = number_of(request, "attempt");
    enum rv_err err = rv_map_put(&w->story->attempts, history_hash(text_of(request, "token")), 0,
                                 (uint64_t)number);
    rv_assert(err == RV_OK);
    (void)!rv_instant_parse(text_of(request, "completeBy"), &at);
    message(w, server_of(w, x), actor,
            "answer to its poll: execute %.*s attempt %lld, complete by %s",
            RV_STR_FMT(text_of(request, "step")), number, instant(w, at, by));
}

static void results_tell(struct world *w, const char *actor, const struct exchange *x,
                         const struct rv_json *body)
{
    size_t count = 0;
    const struct rv_json *results = list_of(body, "results", &count);
    for (size_t i = 0; i < count; i++) {
        long long status = number_of(&results[i], "status");
        struct rv_str title = text_of(&results[i], "detail");
        const char *lease = rv_str_is(x->target, "/v1/leases") ? "lease of " : "reply for ";
        message(w, server_of(w, x), actor, "%lld %s%.*s%s%s%.*s", status, lease,
                RV_STR_FMT(text_of(&results[i], "step")), status == 200 ? " accepted" : " refused",
                title.len > 0 ? ": " : "", RV_STR_FMT(title));
    }
}

void story_answered(struct world *w, const char *actor, const struct exchange *x)
{
    struct rv_json room;
    size_t count = 0;
    if (w->story == NULL)
        return;
    const struct rv_json *body = body_read(w, x->answer, &room);
    const struct rv_json *requests = list_of(body, "requests", &count);
    for (size_t i = 0; i < count; i++)
        request_tell(w, actor, x, &requests[i]);
    const struct rv_json *cancel = list_of(body, "cancel", &count);
    for (size_t i = 0; i < count; i++)
        message(w, server_of(w, x), actor, "answer to its poll: stop %.*s",
                RV_STR_FMT(text_of(&cancel[i], "step")));
    results_tell(w, actor, x, body);
    if (starts(x->target, "/v1/tasks")) {
        struct rv_str state = text_of(body, "state"), title = text_of(body, "title");
        if (x->status < 300)
            message(w, server_of(w, x), actor, "%d %s: %.*s is %.*s", x->status,
                    x->status == 201                    ? "created"
                    : rv_str_is(x->target, "/v1/tasks") ? "exists"
                                                        : "accepted",
                    RV_STR_FMT(text_of(body, "task")), RV_STR_FMT(state));
        else
            message(w, server_of(w, x), actor, "%d refused: %.*s", x->status, RV_STR_FMT(title));
    } else if (x->status >= 300) {
        message(w, server_of(w, x), actor, "%d: %.*s", x->status,
                RV_STR_FMT(text_of(body, "title")));
    }
}

void story_unanswered(struct world *w, const char *actor, const struct exchange *x)
{
    if (w->story != NULL)
        world_say(w, actor, "gets no answer from %s to its %s", server_of(w, x),
                  is_poll(x)                            ? "poll"
                  : rv_str_is(x->target, "/v1/replies") ? "reply"
                  : rv_str_is(x->target, "/v1/leases")  ? "lease renewal"
                                                        : "request");
}

void story_delivered(struct world *w, uint32_t server, struct rv_str body)
{
    struct rv_json room;
    if (w->story == NULL)
        return;
    const struct rv_json *message_body = body_read(w, body, &room);
    struct rv_str reference = text_of(message_body, "reference");
    message(w, w->servers[server].name, "webhook",
            "%.*s message %lld: %.*s%s%.*s, the task is %.*s",
            RV_STR_FMT(text_of(message_body, "task")), number_of(message_body, "number"),
            RV_STR_FMT(text_of(message_body, "kind")), reference.len > 0 ? " " : "",
            RV_STR_FMT(reference), RV_STR_FMT(text_of(message_body, "state")));
}

/* ---- state changes ---- */

/* What the store writes of a step that a reader need not know. */
static bool unchanged(const struct rv_step *step, const struct step_past *past)
{
    return step->state == past->row.state && step->attempt_state == past->row.attempt_state &&
           step->attempt == past->row.attempt && step->undone == past->row.undone &&
           step->ready_at == past->row.ready_at;
}

/* How the newest attempt moved. */
static void attempt_tell(const struct world *w, struct rv_buf *out, const struct rv_step *step,
                         const struct step_past *past)
{
    char by[32];
    if (step->attempt != past->row.attempt && step->attempt_state == RV_ATTEMPT_OPEN)
        rv_buf_printf(out, ", attempt %u open, complete by %s%s", step->attempt,
                      instant(w, step->complete_by, by),
                      past->target != 0 ? ", the probe of the open circuit" : "");
    else if (step->attempt != 0 && step->attempt_state != past->row.attempt_state)
        rv_buf_printf(out, ", attempt %u %s, effect %s", step->attempt,
                      rv_attempt_state_text(step->attempt_state), rv_effect_text(step->effect));
    if (step->failure_count != past->row.failure_count && step->failure_count > 0)
        rv_buf_printf(out, ", failure %u", step->failure_count);
    if (step->round > past->row.round)
        rv_buf_printf(out, ", cool-down %u", step->round);
}

static void step_tell(const struct transition *t, const struct rv_step *step)
{
    static const struct step_past none = {.row = {.number = 0}};
    struct world *w = t->w;
    const struct step_past *past = history_step(t->past, step->number);
    struct rv_buf out;
    char at[32];
    bool begins = past == NULL;
    if (!begins && unchanged(step, past))
        return;
    if (begins)
        past = &none;
    rv_buf_init(&out, TEXT_BYTES);
    if (begins || step->state != past->row.state)
        rv_buf_printf(&out, "%s%s%s", begins ? "new" : rv_step_state_text(past->row.state), " -> ",
                      rv_step_state_text(step->state));
    else
        rv_buf_printf(&out, "%s", rv_step_state_text(step->state));
    if (begins && step->undoes != 0)
        rv_buf_printf(&out, ", undoes %s", name_of(w, t->task->id, step->undoes));
    attempt_tell(w, &out, step, past);
    if (step->undone && !past->row.undone)
        rv_buf_printf(&out, ", undone");
    if (step->state == RV_STEP_PENDING && step->target.len > 0)
        rv_buf_printf(&out, ", the circuit of %.*s is open", RV_STR_FMT(step->target));
    if (step->state == RV_STEP_PENDING && step->ready_at > t->now)
        rv_buf_printf(&out, ", waits until %s", instant(w, step->ready_at, at));
    rv_buf_add_char(&out, '\0');
    world_say(w, "store", "%s: %s", name_of(w, t->task->id, step->number), out.at);
    rv_buf_done(&out);
}

static void task_tell(const struct transition *t)
{
    const struct rv_task *task = t->task;
    bool begins = t->past->row.revision == 0;
    bool cancelled = task->cancelling && !t->past->row.cancelling;
    if (begins || cancelled || task->state != t->past->row.state)
        world_say(t->w, "store", "%s: %s -> %s%s", name_of(t->w, task->id, 0),
                  begins ? "new" : rv_task_state_text(t->past->row.state),
                  rv_task_state_text(task->state), cancelled ? ", cancelled" : "");
}

void story_committed(const struct transition *t)
{
    struct world *w = t->w;
    const struct rv_change *change = t->change;
    char name[NAME_BYTES];
    if (w->story == NULL)
        return;
    snprintf(name, sizeof name, "%.*s", RV_STR_FMT(t->task->key));
    if (t->past->row.revision == 0)
        name_put(w, t->task->id, 0, name);
    for (size_t i = 0; i < t->steps_count; i++)
        step_name(w, t->task, &t->steps[i]);
    bool begins = t->past->row.revision == 0;
    if (begins)
        task_tell(t);
    for (size_t i = 0; i < change->steps_count; i++)
        step_tell(t, change->steps[i]);
    for (size_t i = 0; i < change->late_replies_count; i++) {
        const struct rv_late_reply *late = &change->late_replies[i];
        world_say(w, "store", "%s: late reply of attempt %u is kept: %s",
                  name_of(w, t->task->id, late->step.number), late->attempt,
                  rv_late_reason_text(late->reason));
    }
    if (!begins)
        task_tell(t);
    for (size_t i = 0; i < change->alerts_count; i++)
        world_say(w, "store", "%s: alert %s: %.*s", name,
                  rv_alert_kind_text(change->alerts[i].kind),
                  RV_STR_FMT(change->alerts[i].message));
}

/* A cure is found by asking rv_decide whether it accepts the command on the rows as they are: what
 * a message names is accepted, because the same function decides it. Nothing of the workflow is
 * evaluated for it: what comes after the acceptance ends as any step does. */
#include "core/cure.h"

#include "base/assert.h"

#include <stdio.h>

static const struct {
    const char *text, *command, *effect;
} cures[] = {
#define RV_CURE(name, text, command, effect) {text, command, effect},
#include "core/tbl/cure.def"
#undef RV_CURE
};

const char *rv_cure_text(enum rv_cure_kind kind)
{
    return (unsigned)kind < RV_CURE_KIND_COUNT ? cures[kind].text : "?";
}

const char *rv_cure_effect(enum rv_cure_kind kind, bool undo)
{
    if (kind == RV_CURE_PAST && undo)
        return "record that the step's request was carried out, by its agent or by hand; the undo "
               "then continues and undoes the step, too (replace null with the step's output as "
               "JSON)";
    if (kind == RV_CURE_UNDONE && undo)
        return "record that you have undone the step's effect by hand, and continue the undo";
    if (kind == RV_CURE_NOTHING && undo)
        return "record that the step's request was never carried out, and continue the undo";
    return (unsigned)kind < RV_CURE_KIND_COUNT ? cures[kind].effect : "?";
}

bool rv_cure_needs_ledger(enum rv_cure_kind kind)
{
    struct rv_cure cure = {.kind = kind};
    enum rv_command_kind verb = rv_cure_command(&cure).kind;
    return verb == RV_COMMAND_SETTLE || verb == RV_COMMAND_RESUBMIT || verb == RV_COMMAND_UNDO;
}

struct rv_str rv_cure_line(struct rv_task_id task, const struct rv_cure *cure,
                           char text[static RV_CURE_LINE_BYTES])
{
    char id[RV_ID_TEXT_BYTES], step[16] = "";
    rv_assert(cure->kind < RV_CURE_KIND_COUNT);
    const char *command = cures[cure->kind].command;
    const char *rest = strstr(command, "TASK") + strlen("TASK");
    int verb = (int)(rest - command) - (int)strlen("TASK");
    rv_task_text(task, id);
    if (cure->step != 0) {
        snprintf(step, sizeof step, " %u", cure->step);
        rv_assert(strncmp(rest, " STEP", strlen(" STEP")) == 0);
        rest += strlen(" STEP");
    }
    int len = snprintf(text, RV_CURE_LINE_BYTES, "reeve %.*s%s%s%s", verb, command, id, step, rest);
    if (cure->late_seen != 0)
        len += snprintf(text + len, RV_CURE_LINE_BYTES - (size_t)len, " --late-seen %u",
                        cure->late_seen);
    rv_assert(len > 0);
    rv_assert(len < RV_CURE_LINE_BYTES);
    return (struct rv_str){text, (size_t)len};
}

struct rv_str rv_alert_cure(const struct rv_alert *alert, char text[static RV_ALERT_CURE_BYTES])
{
    static const char *const words[] = {"TASK", "ALERT"};
    struct rv_task_id ids[] = {alert->task, {alert->id}};
    const char *from = rv_alert_kind_cure(alert->kind);
    size_t len = 0;
    while (*from != '\0') {
        char id[RV_ID_TEXT_BYTES] = {*from};
        size_t taken = 1;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            if (strncmp(from, words[i], strlen(words[i])) != 0)
                continue;
            rv_task_text(ids[i], id);
            taken = strlen(words[i]);
        }
        rv_assert(len + strlen(id) < RV_ALERT_CURE_BYTES);
        memcpy(text + len, id, strlen(id));
        len += strlen(id);
        from += taken;
    }
    return (struct rv_str){text, len};
}

struct rv_command rv_cure_command(const struct rv_cure *cure)
{
    struct rv_command command = {.kind = RV_COMMAND_SETTLE, .step = cure->step};
    switch (cure->kind) {
    case RV_CURE_RESUME:
        command.kind = RV_COMMAND_RESUME;
        break;
    case RV_CURE_RETRY:
        command.kind = RV_COMMAND_RETRY;
        break;
    case RV_CURE_RESUBMIT:
        command.kind = RV_COMMAND_RESUBMIT;
        break;
    case RV_CURE_PAST:
    case RV_CURE_END:
        command.u.operate.finding = RV_FINDING_DONE;
        command.u.operate.output = RV_STR("null");
        break;
    case RV_CURE_UNDONE:
    case RV_CURE_ALL_UNDONE:
        command.u.operate.finding = RV_FINDING_UNDONE;
        break;
    case RV_CURE_NOTHING:
        command.u.operate.finding = RV_FINDING_NOTHING;
        break;
    case RV_CURE_UNDO_BY_HAND:
        command.u.operate.by_hand = true;
        command.kind = RV_COMMAND_UNDO;
        break;
    case RV_CURE_UNDO:
        command.kind = RV_COMMAND_UNDO;
        break;
    case RV_CURE_CANCEL_BY_HAND:
        command.u.operate.by_hand = true;
        command.kind = RV_COMMAND_CANCEL;
        break;
    case RV_CURE_CANCEL:
        command.kind = RV_COMMAND_CANCEL;
        break;
    case RV_CURE_ABANDON:
        command.kind = RV_COMMAND_CANCEL;
        command.u.operate.abandon = true;
        break;
    case RV_CURE_KIND_COUNT:
        rv_assert(false);
    }
    return command;
}

static bool of_step(enum rv_cure_kind kind)
{
    return kind == RV_CURE_PAST || kind == RV_CURE_UNDONE || kind == RV_CURE_NOTHING;
}

/* One word for one way: what is escalated or has succeeded is undone, all else is cancelled. */
static bool of_state(enum rv_cure_kind kind, enum rv_task_state state)
{
    bool cancel = kind == RV_CURE_CANCEL || kind == RV_CURE_CANCEL_BY_HAND;
    bool undo = kind == RV_CURE_UNDO || kind == RV_CURE_UNDO_BY_HAND;
    if (state == RV_TASK_PROCESSED)
        return undo;
    return rv_task_state_open(state) && (state == RV_TASK_ERROR ? !cancel : !undo);
}

/* The steps that may be settled: where the task stands, and the one that is being undone. */
static size_t steps_of(const struct rv_view *view, uint32_t numbers[static RV_OPEN_STEPS_MAX + 1])
{
    const struct rv_task *task = view->task;
    size_t count = 0;
    rv_assert(task->open_count <= RV_OPEN_STEPS_MAX);
    uint32_t undone = task->direction == RV_UNDO && task->open_count == 0 ? task->undo_head : 0;
    for (uint32_t i = 0; i < task->open_count; i++)
        numbers[count++] = task->open[i];
    for (size_t i = 0; i < view->steps_count; i++)
        if (task->open_count > 0 && view->steps[i]->number == task->open[0])
            undone = view->steps[i]->undoes;
    if (undone != 0)
        numbers[count++] = undone;
    return count;
}

struct search {
    const struct rv_view *view;
    int64_t now;
    struct rv_arena *arena;
    struct rv_plan *plan;
    struct rv_cure *found;
    size_t count;
    bool undo; /* the task can be undone or cancelled without anybody's hands */
    bool ends; /* or with them */
};

static enum rv_verdict offer(struct search *search, enum rv_cure_kind kind, uint32_t step)
{
    struct rv_cure cure = {.kind = kind, .step = step};
    struct rv_command command = rv_cure_command(&cure);
    command.asks = true;
    command.now = command.arrived_at = search->now;
    struct rv_arena_mark mark = rv_arena_mark(search->arena);
    enum rv_verdict verdict = rv_decide(search->view, &command, search->arena, search->plan);
    if (verdict != RV_NEED_STEP) /* else what it wants stands there */
        rv_arena_release(search->arena, mark);
    if (verdict == RV_NEED_STEP || verdict == RV_NO_ROOM)
        return verdict;
    if (verdict != RV_ACCEPTED)
        return RV_DECIDED;
    search->undo = search->undo || kind == RV_CURE_UNDO || kind == RV_CURE_CANCEL;
    bool by_hand = kind == RV_CURE_UNDO_BY_HAND || kind == RV_CURE_CANCEL_BY_HAND;
    search->ends = search->ends || search->undo || by_hand;
    if (by_hand && search->undo)
        return RV_DECIDED;
    rv_assert(search->count < RV_CURES_MAX);
    search->found[search->count++] = cure;
    return RV_DECIDED;
}

enum rv_verdict rv_cures(const struct rv_view *view, int64_t now, struct rv_arena *arena,
                         struct rv_cure ret_cures[static RV_CURES_MAX], size_t *ret_count,
                         struct rv_cures_want *ret_want)
{
    uint32_t numbers[RV_OPEN_STEPS_MAX + 1];
    rv_assert(view->task != NULL);
    *ret_count = 0;
    size_t steps = steps_of(view, numbers);
    struct search search = {.view = view,
                            .now = now,
                            .arena = arena,
                            .plan = RV_ROOM(arena, struct rv_plan, 1),
                            .found = ret_cures};
    enum rv_verdict verdict = search.plan != NULL ? RV_DECIDED : RV_NO_ROOM;
    for (int kind = 0; verdict == RV_DECIDED && kind < RV_CURE_KIND_COUNT; kind++) {
        /* What is not escalated is abandoned only where it can neither be cancelled. */
        bool needless = kind == RV_CURE_ABANDON && view->task->state != RV_TASK_ERROR &&
                        search.ends;
        if (needless || !of_state((enum rv_cure_kind)kind, view->task->state))
            continue;
        size_t times = of_step((enum rv_cure_kind)kind) ? steps : 1;
        for (size_t i = 0; verdict == RV_DECIDED && i < times; i++)
            verdict = offer(&search, (enum rv_cure_kind)kind,
                            of_step((enum rv_cure_kind)kind) ? numbers[i] : 0);
    }
    *ret_count = search.count;
    if (verdict == RV_NEED_STEP)
        *ret_want = (struct rv_cures_want){search.plan->wanted, search.plan->more,
                                           search.plan->more_count};
    return verdict;
}

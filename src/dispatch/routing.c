/* Routing: which of the polls that ask takes which of the steps that are ready. Steps go in the
 * order of the ready queue (agents.c), as far as the limits of their kind let them (limits.c). Of
 * the polls with room those of instances come first whose attempts went well lately (health.h), of
 * these the ones that hold the least of what they could, of these the calls of this batch, then
 * whoever is parked for longest. All of that is preference: an instance that fails everything gets
 * what nobody else has room for, so that no step waits while somebody asks. */
#include "scheduler/batch/state.h"

#include "base/limits.h"

/* So many polls of instances that are well are compared, if they have room for all that waits. */
enum { COMPARED_MAX = 64 };
/* A rank: the class of health, the load in parts of LOAD_FULL, the place in line. */
enum { LOAD_FULL = 1023, PLACE_BITS = 24, LOAD_BITS = 10 };

static size_t poll_room(const struct pending *p)
{
    if (p->matched_bytes >= RV_POLL_ANSWER_BYTES_MAX)
        return 0;
    size_t max = p->poll->max < RV_POLL_REQUESTS_MAX ? p->poll->max : RV_POLL_REQUESTS_MAX;
    /* Nothing for a poll that an instance left behind when it was started again, or has heard, nor
     * for one whose caller has left. */
    bool wanted = p->boot == p->instance->boot && !p->heard && !p->left;
    return wanted && max > p->matched_count ? max - p->matched_count : 0;
}

/* The hint is believed only if the row says so. A task whose definition cannot be read is parked by
 * whatever looks at it, if it is the supervisor: what is due is its to decide. */
static enum rv_err ready_verify(struct rv_scheduler *s, const struct agent_kind *kind,
                                struct rv_step_id id, struct work **ret_work)
{
    *ret_work = NULL;
    struct work *work;
    enum rv_err err = work_get(s, id.task, &work);
    if (err != RV_OK || work->task == NULL || work->task->state == RV_TASK_ERROR)
        return err;
    const struct rv_step *step = work_step(work, id.number);
    bool ready = step != NULL && rv_step_ready(work->task, step, s->batch.now) &&
                 rv_str_is(step->agent, kind->name) &&
                 (step->deadline == 0 || step->deadline > s->batch.now);
    if (ready && work->workflow != NULL && work->workflow->definition != NULL)
        *ret_work = work;
    if (!ready || *ret_work != NULL || (s->enlistment.shared && s->supervisor.epoch == 0))
        return RV_OK;
    struct rv_command command = {.kind = RV_COMMAND_WAKE, .seed = rv_prng_next(&s->prng)};
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    err = plan ? work_decide(s, work, &command, NULL, plan) : RV_ERR_MEMORY;
    if (err == RV_OK && plan->changed)
        work->epoch = s->supervisor.epoch;
    return err;
}

/* The rows of the steps that come next are loaded in one go, as many as there is room for. */
static enum rv_err ready_load(struct rv_scheduler *s, const struct agent_kind *kind, size_t room)
{
    struct rv_heap_entry next[RV_HEAP_LEAST_MAX];
    struct rv_step_id ids[RV_HEAP_LEAST_MAX];
    const struct rv_heap_entry *first = rv_heap_first(&kind->ready);
    struct rv_task_id task = {(int64_t)first->value};
    /* How many a limit lets through is not known. */
    if (kind_is_limited(kind) || work_find(s, task) != NULL)
        return RV_OK;
    size_t count = rv_heap_least(&kind->ready, room, next);
    for (size_t i = 0; i < count; i++)
        ids[i] = (struct rv_step_id){{(int64_t)next[i].value}, (uint32_t)next[i].detail};
    return work_prefetch(s, ids, count);
}

static void given_note(const struct rv_scheduler *s, struct pending *p)
{
    struct agent_instance *instance = p->instance;
    if (instance->given_in != s->batch.turn)
        instance->given = 0;
    instance->given_in = s->batch.turn;
    instance->given++;
    limit_take(s, p->kind);
}

/* Its place in the line may be that of an earlier wait, which has ended without an attempt: then it
 * goes to where it stands now. */
static bool place_is_old(struct agent_kind *kind, struct rv_step_id id, const struct work *work,
                         struct ready_place place)
{
    struct ready_place now = ready_place(work->task, work_step(work, id.number));
    if (now.rank <= place.rank)
        return false;
    agents_ready_back(kind, id, now);
    return true;
}

static enum rv_err match_one(struct rv_scheduler *s, struct pending *p, struct rv_step_id id,
                             struct ready_place place)
{
    struct work *work;
    enum rv_err err = ready_verify(s, p->kind, id, &work);
    if (err != RV_OK || work == NULL || place_is_old(p->kind, id, work, place))
        return err;
    if (!circuit_lets(p->kind, work->task, work_step(work, id.number), s->batch.now))
        return RV_OK;
    struct rv_command command = {.kind = RV_COMMAND_ASSIGN,
                                 .seed = p->call->seed ^ rv_prng_next(&s->prng),
                                 .step = id.number};
    command.u.assign.instance = rv_arena_str(s->batch.arena, p->poll->instance);
    command.u.assign.boot = rv_arena_str(s->batch.arena, p->poll->boot);
    command.u.assign.poll = rv_arena_str(s->batch.arena, p->poll->poll);
    struct rv_plan *plan = RV_ROOM(s->batch.arena, struct rv_plan, 1);
    if (plan == NULL)
        return RV_ERR_MEMORY;
    err = work_decide(s, work, &command, NULL, plan);
    if (err == RV_OK && plan->changed) {
        work_step_of(work, id.number)->assigned = true;
        given_note(s, p);
        err = match_add(s, p, work, id.number, false);
    }
    return err;
}

static int64_t rank_of(const struct rv_scheduler *s, const struct pending *p, int64_t place)
{
    const struct agent_instance *instance = p->instance;
    int64_t given = instance->given_in == s->batch.turn ? instance->given : 0;
    int64_t holds = (int64_t)instance->held_count + given;
    int64_t load = holds * LOAD_FULL / (holds + (int64_t)poll_room(p));
    int64_t health = health_class(&instance->health, s->batch.now);
    return ((health << LOAD_BITS | load) << PLACE_BITS) + place;
}

/* The polls of a kind, from one that is compared next: calls of this batch, then the parked. */
struct line {
    struct pending *asking;
    struct pending *parked;
    int64_t place;
    size_t room; /* of those that are compared */
};

static struct pending *line_next(struct line *line)
{
    struct pending *p = line->asking;
    if (p != NULL) {
        line->asking = p->asking_next;
        return p;
    }
    p = line->parked;
    if (p != NULL)
        line->parked = p->next;
    return p;
}

/* Polls with room join those that are compared, by rank: as many as it takes. */
static enum rv_err line_join(struct rv_scheduler *s, const struct agent_kind *kind,
                             struct line *line)
{
    size_t well = 0, room = 0;
    struct pending *p;
    while ((well < COMPARED_MAX || room < kind->ready.count) && (p = line_next(line)) != NULL) {
        int64_t place = line->place++;
        if (poll_room(p) == 0)
            continue;
        line->room += poll_room(p);
        if (health_class(&p->instance->health, s->batch.now) == 0) {
            well++;
            room += poll_room(p);
        }
        enum rv_err err = rv_heap_push(&s->agents.seekers, rank_of(s, p, place),
                                       (uint64_t)(uintptr_t)p, (uint64_t)place);
        if (err != RV_OK)
            return err;
    }
    return RV_OK;
}

/* Hands steps to the poll as long as it has room and comes before all others. */
static enum rv_err match_poll(struct rv_scheduler *s, struct pending *p, int64_t place,
                              struct line *line)
{
    struct rv_step_id id;
    struct ready_place place_in_line;
    const struct rv_heap_entry *first = rv_heap_first(&s->agents.seekers);
    int64_t next = first != NULL ? first->at : INT64_MAX;
    while (poll_room(p) > 0 && p->kind->ready.count > 0 && !batch_handed_enough(s)) {
        int64_t rank = rank_of(s, p, place);
        if (rank > next)
            return rv_heap_push(&s->agents.seekers, rank, (uint64_t)(uintptr_t)p, (uint64_t)place);
        if (!limit_lets(s, p->kind))
            return RV_OK;
        enum rv_err err = ready_load(s, p->kind, line->room);
        if (err != RV_OK || !agents_ready_take(p->kind, &id, &place_in_line))
            return err;
        size_t room = poll_room(p);
        err = match_one(s, p, id, place_in_line);
        line->room -= room - poll_room(p);
        if (err != RV_OK) {
            agents_ready_back(p->kind, id, place_in_line);
            return err;
        }
    }
    return RV_OK;
}

static enum rv_err match_kind(struct rv_scheduler *s, struct agent_kind *kind)
{
    struct line line = {.asking = kind->asking, .parked = kind->parked.first};
    enum rv_err err = RV_OK;
    s->agents.seekers.count = 0;
    while (err == RV_OK && kind->ready.count > 0 && !kind->limit.holds && !batch_handed_enough(s)) {
        struct rv_heap_entry entry;
        if ((line.asking == NULL && line.parked == NULL) || !limit_lets(s, kind))
            return RV_OK;
        err = line_join(s, kind, &line);
        if (err != RV_OK || s->agents.seekers.count == 0)
            return err;
        while (err == RV_OK && kind->ready.count > 0 && !kind->limit.holds &&
               !batch_handed_enough(s) && rv_heap_pop(&s->agents.seekers, &entry))
            err = match_poll(s, (struct pending *)(uintptr_t)entry.value, (int64_t)entry.detail,
                             &line);
    }
    return err;
}

/* The calls of this batch that ask, by kind and in their order. */
static void asking_sort(struct rv_scheduler *s)
{
    for (struct pending *p = s->batch.calls.last; p != NULL; p = p->prev) {
        if (p->poll == NULL || !p->admitted)
            continue;
        p->asking_next = p->kind->asking;
        p->kind->asking = p;
        kind_stir(p->kind);
    }
}

/* The batch has handed out as much as it may: the next one begins with the kinds after that one. */
static void kinds_turn(struct agents *agents, struct agent_kind *last)
{
    if (last == NULL || last->stirs_next == NULL)
        return;
    agents->stirring_last->stirs_next = agents->stirring;
    agents->stirring = last->stirs_next;
    agents->stirring_last = last;
    last->stirs_next = NULL;
}

enum rv_err polls_match(struct rv_scheduler *s)
{
    enum rv_err err = limits_load(s);
    if (err != RV_OK)
        return err;
    limits_begin(s);
    if (s->agents.recovering || s->draining)
        return RV_OK;
    circuits_tick(&s->agents, s->batch.now);
    for (struct agent_kind *kind = s->agents.stirring; kind != NULL; kind = kind->stirs_next)
        kind->asking = NULL;
    asking_sort(s);
    struct agent_kind *last = NULL;
    for (struct agent_kind *kind = s->agents.stirring; err == RV_OK && kind != NULL && last == NULL;
         kind = kind->stirs_next) {
        err = match_kind(s, kind);
        last = batch_handed_enough(s) ? kind : NULL;
    }
    kinds_turn(&s->agents, last);
    return err;
}

/* Routing: which of the polls that ask takes which of the steps that are ready. Steps go in the
 * order of the ready queue (agents.c), as far as the limits of their kind let them (limits.c). Of
 * the polls with room those of instances come first whose attempts went well lately (health.h), of
 * these the ones that hold the least of what they could, of these the calls of this batch, then
 * whoever is parked for longest. All of that is preference: an instance that fails everything gets
 * what nobody else has room for, so that no step waits while somebody asks. */
#include "dispatch/routing.h"

#include "base/assert.h"
#include "base/limits.h"
#include "core/rows.h"
#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "dispatch/ready.h"
#include "dispatch/seeker.h"

/* So many polls of instances that are well are compared, if they have room for all that waits. */
enum { COMPARED_MAX = 64 };
/* A rank: the class of health, the load in parts of LOAD_FULL, the place in line. */
enum { LOAD_FULL = 1023, PLACE_BITS = 24, LOAD_BITS = 10 };

static size_t seeker_room(const struct seeker *seeker)
{
    if (seeker->given_bytes >= RV_POLL_ANSWER_BYTES_MAX)
        return 0;
    size_t max = seeker->max < RV_POLL_REQUESTS_MAX ? seeker->max : RV_POLL_REQUESTS_MAX;
    /* Nothing for a poll that an instance left behind when it was started again, or has heard. */
    bool wanted = seeker->boot == seeker->instance->boot && !seeker->heard;
    return wanted && max > seeker->given ? max - seeker->given : 0;
}

/* The rows of the steps that come next are loaded in one go, as many as there is room for. */
static enum rv_err ready_load(const struct desk *desk, const struct agent_kind *kind, size_t room)
{
    struct rv_heap_entry next[RV_HEAP_LEAST_MAX];
    struct rv_step_id ids[RV_HEAP_LEAST_MAX];
    const struct rv_heap_entry *first = rv_heap_first(&kind->ready);
    rv_assert(first != NULL);
    rv_assert(room > 0);
    struct rv_task_id task = {(int64_t)first->value};
    if (desk->has(desk->self, task))
        return RV_OK;
    size_t lets = limit_room(kind, desk->now), least = room < lets ? room : lets;
    size_t most = least < desk->load_max ? least : desk->load_max;
    rv_assert(most > 0); /* a step of this kind was let through (match_kind) */
    size_t count = rv_heap_least(&kind->ready, most, next);
    rv_assert(count > 0);
    rv_assert(count <= RV_HEAP_LEAST_MAX);
    for (size_t i = 0; i < count; i++)
        ids[i] = (struct rv_step_id){{(int64_t)next[i].value}, (uint32_t)next[i].detail};
    return desk->load(desk->self, ids, count);
}

static void given_note(const struct desk *desk, const struct seeker *seeker, int64_t at)
{
    struct agent_instance *instance = seeker->instance;
    if (instance->given_in != desk->turn)
        instance->given = 0;
    instance->given_in = desk->turn;
    instance->given++;
    limit_take(seeker->kind, desk->now, at);
}

/* Its place in the line may be that of an earlier wait, which has ended without an attempt: then it
 * goes to where it stands now. */
static bool place_is_old(struct agent_kind *kind, const struct rv_task *task,
                         const struct rv_step *step, struct ready_place place)
{
    struct ready_place now = ready_place(task, step);
    if (now.rank <= place.rank)
        return false;
    agents_ready_back(kind, (struct rv_step_id){task->id, step->number}, now);
    return true;
}

static enum rv_err match_one(const struct desk *desk, struct seeker *seeker, struct rv_step_id id,
                             struct ready_place place)
{
    const struct rv_task *task = NULL;
    const struct rv_step *step = NULL;
    int64_t given_at = 0;
    enum rv_err err = desk->verify(desk->self, seeker->kind, id, &task, &step);
    if (err != RV_OK || task == NULL || place_is_old(seeker->kind, task, step, place))
        return err;
    if (!circuit_lets(seeker->kind, task, step, desk->now))
        return RV_OK;
    err = desk->give(desk->self, seeker, id, &given_at);
    if (given_at != 0)
        given_note(desk, seeker, given_at);
    return err;
}

static int64_t rank_of(const struct desk *desk, const struct seeker *seeker, int64_t place)
{
    const struct agent_instance *instance = seeker->instance;
    int64_t given = instance->given_in == desk->turn ? instance->given : 0;
    int64_t holds = (int64_t)instance->held_count + given;
    rv_assert(seeker_room(seeker) > 0);
    int64_t load = holds * LOAD_FULL / (holds + (int64_t)seeker_room(seeker));
    rv_assert(load <= LOAD_FULL);
    int64_t health = health_class(&instance->health, desk->now);
    return ((health << LOAD_BITS | load) << PLACE_BITS) + place;
}

/* The polls of a kind, from one that is compared next: calls of this batch, then the parked. */
struct line {
    struct seeker *asking;
    struct seeker *parked;
    int64_t place;
    size_t room; /* of those that are compared */
};

static struct seeker *line_next(struct line *line)
{
    struct seeker *seeker = line->asking;
    if (seeker != NULL) {
        line->asking = seeker->asking_next;
        return seeker;
    }
    seeker = line->parked;
    if (seeker != NULL)
        line->parked = seeker->next;
    return seeker;
}

/* Polls with room join those that are compared, by rank: as many as it takes. */
static enum rv_err line_join(const struct desk *desk, const struct agent_kind *kind,
                             struct line *line)
{
    size_t well = 0, room = 0;
    struct seeker *seeker;
    while ((well < COMPARED_MAX || room < kind->ready.count) &&
           (seeker = line_next(line)) != NULL) {
        int64_t place = line->place++;
        if (seeker_room(seeker) == 0)
            continue;
        line->room += seeker_room(seeker);
        if (health_class(&seeker->instance->health, desk->now) == 0) {
            well++;
            room += seeker_room(seeker);
        }
        enum rv_err err = rv_heap_push(&desk->agents->seekers, rank_of(desk, seeker, place),
                                       (uint64_t)(uintptr_t)seeker, (uint64_t)place);
        if (err != RV_OK)
            return err;
    }
    return RV_OK;
}

/* Hands steps to the poll as long as it has room and comes before all others. */
static enum rv_err match_poll(const struct desk *desk, struct seeker *seeker, int64_t place,
                              struct line *line)
{
    struct rv_step_id id;
    struct ready_place place_in_line;
    const struct rv_heap_entry *first = rv_heap_first(&desk->agents->seekers);
    int64_t next = first != NULL ? first->at : INT64_MAX;
    while (seeker_room(seeker) > 0 && seeker->kind->ready.count > 0 && !desk->enough(desk->self)) {
        int64_t rank = rank_of(desk, seeker, place);
        if (rank > next)
            return rv_heap_push(&desk->agents->seekers, rank, (uint64_t)(uintptr_t)seeker,
                                (uint64_t)place);
        if (!limit_lets(seeker->kind, desk->turn, desk->now))
            return RV_OK;
        rv_assert(line->room >= seeker_room(seeker));
        enum rv_err err = ready_load(desk, seeker->kind, line->room);
        if (err != RV_OK || !agents_ready_take(seeker->kind, &id, &place_in_line))
            return err;
        size_t room = seeker_room(seeker);
        err = match_one(desk, seeker, id, place_in_line);
        rv_assert(seeker_room(seeker) <= room);
        line->room -= room - seeker_room(seeker);
        if (err != RV_OK) {
            agents_ready_back(seeker->kind, id, place_in_line);
            return err;
        }
    }
    return RV_OK;
}

static enum rv_err match_kind(const struct desk *desk, struct agent_kind *kind)
{
    rv_assert(kind->stirs);
    struct line line = {.asking = kind->asking, .parked = kind->parked.first};
    enum rv_err err = RV_OK;
    desk->agents->seekers.count = 0;
    while (err == RV_OK && kind->ready.count > 0 && !kind->limit.holds &&
           !desk->enough(desk->self)) {
        struct rv_heap_entry entry;
        if ((line.asking == NULL && line.parked == NULL) ||
            !limit_lets(kind, desk->turn, desk->now))
            return RV_OK;
        err = line_join(desk, kind, &line);
        if (err != RV_OK || desk->agents->seekers.count == 0)
            return err;
        while (err == RV_OK && kind->ready.count > 0 && !kind->limit.holds &&
               !desk->enough(desk->self) && rv_heap_pop(&desk->agents->seekers, &entry))
            err = match_poll(desk, (struct seeker *)(uintptr_t)entry.value, (int64_t)entry.detail,
                             &line);
    }
    return err;
}

/* The batch has handed out as much as it may: the next one begins with the kinds after that one. */
static void kinds_turn(struct agents *agents, struct agent_kind *last)
{
    if (last == NULL || last->stirs_next == NULL)
        return;
    rv_assert(agents->stirring_last != last);
    rv_assert(agents->stirring_last->stirs_next == NULL);
    agents->stirring_last->stirs_next = agents->stirring;
    agents->stirring = last->stirs_next;
    agents->stirring_last = last;
    last->stirs_next = NULL;
}

void routing_expect(struct agent_kind *kind, uint32_t max, uint64_t turn)
{
    if (kind->expected_in != turn)
        kind->expected = 0;
    kind->expected_in = turn;
    kind->expected += max < RV_POLL_REQUESTS_MAX ? max : RV_POLL_REQUESTS_MAX;
}

size_t routing_next(struct agent_kind *kind, uint64_t turn, int64_t now,
                    struct rv_step_id *ret_steps, size_t max)
{
    struct rv_heap_entry next[RV_HEAP_LEAST_MAX];
    bool named = kind->named_in == turn;
    kind->named_in = turn;
    if (named || kind->expected_in != turn)
        return 0;
    size_t lets = limit_room(kind, now), most = kind->expected < lets ? kind->expected : lets;
    size_t count = rv_heap_least(&kind->ready, most < max ? most : max, next);
    for (size_t i = 0; i < count; i++)
        ret_steps[i] = (struct rv_step_id){{(int64_t)next[i].value}, (uint32_t)next[i].detail};
    return count;
}

size_t routing_room(const struct agent_kind *kind, uint64_t turn)
{
    size_t room = kind->expected_in == turn ? kind->expected : 0;
    for (const struct seeker *s = kind->parked.first; s != NULL && room < RV_POLL_REQUESTS_MAX;
         s = s->next)
        room += seeker_room(s);
    return room;
}

void routing_begin(struct agents *agents)
{
    for (struct agent_kind *kind = agents->stirring; kind != NULL; kind = kind->stirs_next)
        kind->asking = NULL;
}

void routing_ask(struct seeker *seeker)
{
    rv_assert(seeker->instance->kind == seeker->kind);
    seeker->asking_next = seeker->kind->asking;
    seeker->kind->asking = seeker;
    kind_stir(seeker->kind);
}

enum rv_err routing_match(const struct desk *desk)
{
    enum rv_err err = RV_OK;
    struct agent_kind *last = NULL;
    for (struct agent_kind *kind = desk->agents->stirring;
         err == RV_OK && kind != NULL && last == NULL; kind = kind->stirs_next) {
        err = match_kind(desk, kind);
        last = desk->enough(desk->self) ? kind : NULL;
    }
    kinds_turn(desk->agents, last);
    return err;
}

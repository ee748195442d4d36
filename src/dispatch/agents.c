#include "dispatch/agents.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/time.h"
#include "core/decide.h"
#include "dispatch/circuit.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/limits.h"
#include "dispatch/ready.h"
#include "dispatch/sent_back.h"

#include <stdlib.h>

/* How long an instance that holds nothing is remembered, and how often such are looked for; the
 * shorter times count when there are many. */
enum { FORGET_MS = 10 * RV_MINUTE_MS, FORGET_INTERVAL_MS = RV_MINUTE_MS };
/* So many void entries of the heaps are left there in any case. */
enum { VOID_ENTRIES_MIN = 1024 };
enum { INSTANCES_MANY = 4096, FORGET_MANY_MS = RV_SECOND_MS };

void agents_init(struct agents *agents, struct rv_hash_key key, size_t circuits_max)
{
    *agents = (struct agents){.hash_key = key,
                              .limits_wake_at = INT64_MAX,
                              .circuits_max = circuits_max != 0 ? circuits_max
                                                                : RV_AGENT_CIRCUITS_MAX};
    rv_map_init(&agents->kinds_by_hash);
    rv_map_init(&agents->instances);
    rv_map_init(&agents->held);
    rv_map_init(&agents->deliveries);
    rv_dues_init(&agents->circuits_due);
    rv_map_init(&agents->probes);
    rv_heap_init(&agents->seekers);
}

static void delivery_free(struct delivery *delivery)
{
    free(delivery->poll);
    free(delivery);
}

static void instance_free(struct agent_instance *instance)
{
    while (instance->held != NULL) {
        struct held *held = instance->held;
        rv_assert(held->instance == instance);
        rv_assert(held->delivery->instance == instance);
        instance->held = held->next;
        RV_STACK_REMOVE(held->delivery->held, held, mate_next, mate_prev);
        if (held->delivery->held == NULL)
            delivery_free(held->delivery);
        free(held);
    }
    free(instance->name);
    free(instance);
}

static void circuits_free(struct circuit_list *list)
{
    while (list->first != NULL) {
        struct circuit *next = list->first->next;
        circuit_free(list->first);
        list->first = next;
    }
}

static void kind_free(struct agent_kind *kind)
{
    while (kind->instances != NULL) {
        struct agent_instance *next = kind->instances->next;
        instance_free(kind->instances);
        kind->instances = next;
    }
    circuits_free(&kind->circuits);
    circuits_free(&kind->circuits_idle);
    rv_map_done(&kind->circuits_by_target);
    rv_map_done(&kind->sent_back);
    rv_map_done(&kind->sent_back_ranks);
    rv_map_done(&kind->sent_back_since);
    rv_heap_done(&kind->ready);
    rv_map_done(&kind->queued);
    rv_map_done(&kind->gone);
    free(kind->limit.by);
    free(kind->hunger);
    free(kind->name);
    free(kind);
}

void agents_done(struct agents *agents)
{
    while (agents->kinds != NULL) {
        struct agent_kind *next = agents->kinds->next;
        kind_free(agents->kinds);
        agents->kinds = next;
    }
    /* Each probe belongs to a circuit, and each circuit to a kind. */
    rv_assert(agents->probes.count == 0);
    rv_map_done(&agents->kinds_by_hash);
    rv_map_done(&agents->instances);
    rv_map_done(&agents->held);
    rv_map_done(&agents->deliveries);
    rv_dues_done(&agents->circuits_due);
    rv_map_done(&agents->probes);
    rv_heap_done(&agents->seekers);
}

struct agent_kind *agents_kind_find(const struct agents *agents, struct rv_str name)
{
    const uint64_t *found = rv_map_find(&agents->kinds_by_hash, rv_hash(agents->hash_key, name), 0);
    struct agent_kind *kind = found ? (struct agent_kind *)(uintptr_t)*found : NULL;
    rv_assert(kind == NULL || kind->agents == agents);
    return kind && rv_str_is(name, kind->name) ? kind : NULL;
}

struct agent_kind *agents_kind(struct agents *agents, struct rv_str name)
{
    struct agent_kind *kind = agents_kind_find(agents, name);
    if (kind != NULL)
        return kind;
    kind = calloc(1, sizeof *kind);
    if (kind == NULL)
        return NULL;
    kind->agents = agents;
    kind->name = rv_str_dup(name);
    rv_heap_init(&kind->ready);
    rv_map_init(&kind->queued);
    rv_map_init(&kind->gone);
    rv_map_init(&kind->circuits_by_target);
    rv_map_init(&kind->sent_back);
    rv_map_init(&kind->sent_back_ranks);
    rv_map_init(&kind->sent_back_since);
    if (kind->name == NULL || rv_map_put(&agents->kinds_by_hash, rv_hash(agents->hash_key, name), 0,
                                         (uint64_t)(uintptr_t)kind) != RV_OK) {
        kind_free(kind);
        return NULL;
    }
    kind->next = agents->kinds;
    agents->kinds = kind;
    return kind;
}

void kind_stir(struct agent_kind *kind)
{
    struct agents *agents = kind->agents;
    rv_assert((agents->stirring == NULL) == (agents->stirring_last == NULL));
    if (kind->stirs) {
        rv_assert(agents->stirring != NULL);
        return;
    }
    kind->stirs = true;
    kind->stirs_next = NULL;
    rv_assert(agents->stirring_last == NULL || agents->stirring_last->stirs_next == NULL);
    if (agents->stirring_last != NULL)
        agents->stirring_last->stirs_next = kind;
    else
        agents->stirring = kind;
    agents->stirring_last = kind;
}

void kinds_settle(struct agents *agents)
{
    struct agent_kind *kind = agents->stirring, *next;
    agents->stirring = agents->stirring_last = NULL;
    for (; kind != NULL; kind = next) {
        rv_assert(kind->stirs);
        rv_assert(kind->agents == agents);
        bool waits = kind->ready.count > 0 && kind->parked.first != NULL;
        next = kind->stirs_next;
        kind->stirs = false;
        kind->asking = NULL;
        if (waits || kind->limit.holds)
            kind_stir(kind);
    }
}

struct agent_instance *agents_instance_find(const struct agents *agents,
                                            const struct agent_kind *kind, struct rv_str name)
{
    const uint64_t *found = rv_map_find(&agents->instances, (uint64_t)(uintptr_t)kind,
                                        rv_hash(agents->hash_key, name));
    struct agent_instance *instance = found ? (struct agent_instance *)(uintptr_t)*found : NULL;
    rv_assert(instance == NULL || instance->kind == kind);
    return instance && rv_str_is(name, instance->name) ? instance : NULL;
}

void agents_news(struct agents *agents, struct agent_instance *instance)
{
    if (instance->news || instance->parked_count == 0)
        return;
    instance->news = true;
    instance->news_next = agents->news;
    agents->news = instance;
}

struct agent_instance *agents_instance(struct agents *agents, struct agent_kind *kind,
                                       struct rv_str name)
{
    struct agent_instance *instance = agents_instance_find(agents, kind, name);
    if (instance != NULL)
        return instance;
    instance = calloc(1, sizeof *instance);
    if (instance == NULL)
        return NULL;
    instance->name = rv_str_dup(name);
    instance->kind = kind;
    if (instance->name == NULL ||
        rv_map_put(&agents->instances, (uint64_t)(uintptr_t)kind, rv_hash(agents->hash_key, name),
                   (uint64_t)(uintptr_t)instance) != RV_OK) {
        instance_free(instance);
        return NULL;
    }
    instance->next = kind->instances;
    kind->instances = instance;
    agents->instances_count++;
    return instance;
}

int64_t instance_heard(const struct agent_instance *instance)
{
    return instance->seen_at > instance->heard_at ? instance->seen_at : instance->heard_at;
}

bool instance_connected(const struct agent_instance *instance, int64_t now)
{
    return instance->parked_count > 0 ||
           (!instance->left && now - instance_heard(instance) < CONNECTED_MS);
}

bool instance_shown(const struct agent_instance *instance, int64_t now)
{
    return instance->held_count > 0 || instance_connected(instance, now);
}

static void instances_forget(struct agents *agents, struct agent_kind *kind, int64_t before)
{
    struct agent_instance **at = &kind->instances;
    while (*at != NULL) {
        struct agent_instance *instance = *at;
        if (instance->held_count + instance->parked_count > 0 || instance->news ||
            instance_heard(instance) > before) {
            at = &instance->next;
            continue;
        }
        rv_assert(instance->held == NULL);
        rv_assert(instance->held_before == 0);
        rv_assert(instance->cancels == 0);
        rv_assert(instance->unconfirmed == NULL);
        rv_assert(instance->parked.first == NULL);
        rv_assert(agents->instances_count > 0);
        *at = instance->next;
        rv_map_remove(&agents->instances, (uint64_t)(uintptr_t)kind,
                      rv_hash(agents->hash_key, rv_str_of(instance->name)));
        instance_free(instance);
        agents->instances_count--;
    }
}

void agents_forget(struct agents *agents, int64_t now)
{
    bool many = agents->instances_count > INSTANCES_MANY;
    int64_t keep_ms = many ? FORGET_MANY_MS : FORGET_MS;
    if (now - agents->forgot_at < (many ? FORGET_MANY_MS : FORGET_INTERVAL_MS))
        return;
    agents->forgot_at = now;
    struct agent_kind **at = &agents->kinds;
    while (*at != NULL) {
        struct agent_kind *kind = *at;
        instances_forget(agents, kind, now - keep_ms);
        circuits_forget(kind, now - keep_ms);
        if (kind->instances != NULL || kind->circuits_by_target.count > 0 ||
            kind->queued.count > 0 || kind->sent_back.count > 0 || kind_is_limited(kind) ||
            kind->stirs) {
            at = &kind->next;
            continue;
        }
        rv_assert(kind->held_count == 0);
        rv_assert(kind->parked_count == 0);
        rv_assert(kind->circuits_idle.first == NULL);
        *at = kind->next;
        rv_map_remove(&agents->kinds_by_hash, rv_hash(agents->hash_key, rv_str_of(kind->name)), 0);
        kind_free(kind);
    }
}

struct delivery *delivery_find(const struct agent_instance *instance, struct rv_str poll)
{
    const struct agents *agents = instance->kind->agents;
    const uint64_t *found = rv_map_find(&agents->deliveries, (uint64_t)(uintptr_t)instance,
                                        rv_hash(agents->hash_key, poll));
    struct delivery *delivery = found ? (struct delivery *)(uintptr_t)*found : NULL;
    rv_assert(delivery == NULL || delivery->instance == instance);
    return delivery && rv_str_is(poll, delivery->poll) ? delivery : NULL;
}

void delivery_confirm(struct delivery *delivery)
{
    if (delivery->confirmed)
        return;
    rv_assert(delivery->instance->unconfirmed != NULL);
    delivery->confirmed = true;
    RV_STACK_REMOVE(delivery->instance->unconfirmed, delivery, next, prev);
}

/* Found or made: the caller gives it what it took, or drops it. */
static struct delivery *delivery_get(struct agents *agents, struct agent_instance *instance,
                                     struct rv_str poll, int64_t now)
{
    struct delivery *delivery = delivery_find(instance, poll);
    if (delivery != NULL)
        return delivery;
    delivery = calloc(1, sizeof *delivery);
    if (delivery == NULL)
        return NULL;
    delivery->poll = rv_str_dup(poll);
    delivery->hash = rv_hash(agents->hash_key, poll);
    delivery->instance = instance;
    delivery->answered_at = now;
    if (delivery->poll == NULL ||
        rv_map_put(&agents->deliveries, (uint64_t)(uintptr_t)instance, delivery->hash,
                   (uint64_t)(uintptr_t)delivery) != RV_OK) {
        delivery_free(delivery);
        return NULL;
    }
    RV_STACK_PUSH(instance->unconfirmed, delivery, next, prev);
    return delivery;
}

static void delivery_drop(struct agents *agents, struct delivery *gone)
{
    rv_assert(gone->held == NULL);
    uint64_t key = (uint64_t)(uintptr_t)gone->instance;
    const uint64_t *found = rv_map_find(&agents->deliveries, key, gone->hash);
    if (found != NULL && *found == (uint64_t)(uintptr_t)gone)
        rv_map_remove(&agents->deliveries, key, gone->hash);
    delivery_confirm(gone);
    delivery_free(gone);
}

void instance_boots(struct agent_instance *instance, uint64_t boot)
{
    if (instance->boot == boot)
        return;
    instance->boot = boot;
    instance->held_before = 0;
    for (const struct held *h = instance->held; h != NULL; h = h->next)
        instance->held_before += h->boot != boot;
    rv_assert(instance->held_before <= instance->held_count);
}

struct held *held_find(const struct agents *agents, struct rv_step_id step)
{
    const uint64_t *found = rv_map_find(&agents->held, (uint64_t)step.task.value, step.number);
    struct held *held = found ? (struct held *)(uintptr_t)*found : NULL;
    rv_assert(held == NULL || held->step.number == step.number);
    rv_assert(held == NULL || held->step.task.value == step.task.value);
    return held;
}

enum ending_kind ending_kind(enum rv_attempt_state how, enum rv_effect effect)
{
    if (how == RV_ATTEMPT_LOST)
        return ENDING_LOST;
    return effect == RV_EFFECT_NONE ? ENDING_UNMADE : ENDING_UNHEARD;
}

void held_remove(struct agents *agents, struct held *held)
{
    struct agent_instance *instance = held->instance;
    bool indexed = rv_map_remove(&agents->held, (uint64_t)held->step.task.value, held->step.number);
    rv_assert(indexed);
    rv_assert(instance->held_count > 0);
    rv_assert(instance->kind->held_count >= instance->held_count);
    rv_assert(held->boot == instance->boot || instance->held_before > 0);
    RV_STACK_REMOVE(instance->held, held, next, prev);
    instance->held_count--;
    instance->kind->held_count--;
    instance->kind->ours_count -= held->ours;
    instance->held_before -= held->boot != instance->boot;
    if (held->revoked && !held->cancel_told) {
        rv_assert(instance->cancels > 0);
        instance->cancels--;
    }
    RV_STACK_REMOVE(held->delivery->held, held, mate_next, mate_prev);
    if (held->delivery->held == NULL)
        delivery_drop(agents, held->delivery);
    free(held);
}

static enum rv_err held_add(struct agents *agents, struct agent_kind *kind, struct rv_step_id id,
                            const struct rv_step *step, bool ours, int64_t now)
{
    struct agent_instance *instance = agents_instance(agents, kind, step->instance);
    if (instance == NULL)
        return RV_ERR_MEMORY;
    rv_assert(instance->kind == kind);
    uint64_t boot = rv_hash(agents->hash_key, step->boot);
    if (instance->boot == 0)
        instance_boots(instance, boot);
    struct held *held = calloc(1, sizeof *held);
    struct delivery *delivery = delivery_get(agents, instance, step->poll, now);
    if (held == NULL || delivery == NULL ||
        rv_map_put(&agents->held, (uint64_t)id.task.value, id.number, (uint64_t)(uintptr_t)held) !=
            RV_OK) {
        free(held);
        if (delivery != NULL && delivery->held == NULL)
            delivery_drop(agents, delivery);
        return RV_ERR_MEMORY;
    }
    rv_assert(delivery->instance == instance);
    *held = (struct held){.step = id,
                          .token = step->token,
                          .complete_by = step->complete_by,
                          .attempt_at = step->attempt_at,
                          .ours = ours,
                          .boot = boot,
                          .delivery = delivery,
                          .instance = instance};
    RV_STACK_PUSH(instance->held, held, next, prev);
    RV_STACK_PUSH(delivery->held, held, mate_next, mate_prev);
    instance->held_before += boot != instance->boot;
    instance->learned_before = instance->learned_before || boot != instance->boot;
    instance->held_count++;
    instance->heard_at = now;
    kind->held_count++;
    kind->ours_count += ours;
    agents_news(agents, instance);
    if (!ours)
        delivery_confirm(delivery);
    return RV_OK;
}

static bool entry_is_ready(const struct rv_heap_entry *entry, const void *user)
{
    const struct agent_kind *kind = user;
    const uint64_t *queued = rv_map_find(&kind->queued, entry->value, entry->detail);
    return queued != NULL && (*queued & QUEUED_BEHIND) == 0;
}

static bool entry_is_behind(const struct rv_heap_entry *entry, const void *user)
{
    const struct agent_kind *kind = user;
    const uint64_t *queued = rv_map_find(&kind->queued, entry->value, entry->detail);
    return queued != NULL && (*queued & QUEUED_BEHIND) != 0;
}

static void heaps_filter(struct agent_kind *kind)
{
    rv_heap_filter(&kind->ready, entry_is_ready, kind);
    for (struct circuit *c = kind->circuits.first; c != NULL; c = c->next)
        rv_heap_filter(&c->waiting, entry_is_behind, kind);
    for (struct circuit *c = kind->circuits_idle.first; c != NULL; c = c->next)
        rv_heap_filter(&c->waiting, entry_is_behind, kind);
    rv_map_clear(&kind->gone);
}

void kind_sweep(struct agent_kind *kind)
{
    if (kind->gone.count > 0)
        heaps_filter(kind);
}

/* An entry cannot be found in its heap: it is left there until it comes up, or until the heaps are
 * swept. */
static void entry_void(struct agent_kind *kind, uint64_t task, uint32_t number)
{
    if (rv_map_put(&kind->gone, task, number, 0) != RV_OK ||
        kind->gone.count > kind->queued.count + VOID_ENTRIES_MIN)
        heaps_filter(kind);
}

/* The step does not wait for an agent, or not any longer. */
static void kind_unready(struct agent_kind *kind, struct rv_step_id id)
{
    if (rv_map_remove(&kind->queued, (uint64_t)id.task.value, id.number))
        entry_void(kind, (uint64_t)id.task.value, id.number);
}

void agents_unready(struct agents *agents, struct rv_task_id task, const struct rv_step *step)
{
    struct agent_kind *kind = step->agent.at != NULL ? agents_kind_find(agents, step->agent) : NULL;
    if (kind != NULL)
        kind_unready(kind, (struct rv_step_id){task, step->number});
}

void agents_see_parked(struct agents *agents, const struct rv_task *task,
                       const struct rv_step *step)
{
    struct rv_step_id id = {task->id, step->number};
    struct held *held = held_find(agents, id);
    struct agent_kind *kind = step->agent.at != NULL ? agents_kind_find(agents, step->agent) : NULL;
    if (kind != NULL) {
        kind_unready(kind, id);
        sent_back_forget(kind, id);
    }
    if (held == NULL)
        return;
    circuit_unprobe(agents, id);
    if (rv_attempt_state_live(step->attempt_state) && held->token == step->token) {
        held->revision = task->revision;
        held->left = false;
        held->left_at = 0;
    } else {
        held_remove(agents, held); /* another server has heard of its end */
    }
}

/* Where a limit is divided an attempt counts until it has ended, whoever owns its task: here if
 * this process has handed it out, and else until the new owner has counted it. True: it is kept. */
static bool held_leave(struct agents *agents, struct held *held, bool live)
{
    const struct agent_kind *kind = held->instance->kind;
    held->left = true;
    if (live && kind->agents->divides && kind->limit.concurrent != 0)
        return true;
    held_remove(agents, held);
    return false;
}

static bool has_left(struct held *held, int64_t now, int64_t keep_ms)
{
    if (!held->left || held->ours)
        return false;
    if (held->left_at == 0)
        held->left_at = now;
    return now - held->left_at >= keep_ms;
}

uint32_t kind_older(struct agent_kind *kind, int64_t since, int64_t now, int64_t keep_ms)
{
    uint32_t count = 0;
    for (struct agent_instance *i = kind->instances; i != NULL; i = i->next) {
        struct held *next;
        for (struct held *held = i->held; held != NULL; held = next) {
            next = held->next;
            if (has_left(held, now, keep_ms))
                held_remove(kind->agents, held);
            else
                count += !held->ours && held->attempt_at <= since;
        }
    }
    return count;
}

void agents_leave(struct agents *agents, struct rv_task_id task, const struct rv_step *step)
{
    struct rv_step_id id = {task, step->number};
    struct held *held = held_find(agents, id);
    struct agent_kind *kind = step->agent.at != NULL ? agents_kind_find(agents, step->agent) : NULL;
    circuit_unprobe(agents, id);
    bool live = held != NULL && rv_attempt_state_live(step->attempt_state) &&
                held->token == step->token;
    if (held != NULL)
        (void)held_leave(agents, held, live);
    if (kind == NULL)
        return;
    kind_unready(kind, id);
    sent_back_forget(kind, id);
}

/* A step of the map whose task is not to be kept; number 0: there is none from that slot on. */
static struct rv_step_id map_left(const struct rv_map *map, size_t *from,
                                  bool (*keeps)(const void *self, struct rv_task_id task),
                                  const void *self)
{
    for (; *from < map->room; ++*from) {
        const struct rv_map_slot *slot = &map->slots[*from];
        struct rv_step_id id = {{(int64_t)slot->a}, (uint32_t)slot->b};
        if (slot->used && !keeps(self, id.task))
            return id;
    }
    return (struct rv_step_id){{0}, 0};
}

void agents_keep(struct agents *agents, bool (*keeps)(const void *self, struct rv_task_id task),
                 const void *self)
{
    struct rv_step_id id;
    for (size_t at = 0; (id = map_left(&agents->held, &at, keeps, self)).number != 0;) {
        struct held *held = held_find(agents, id);
        circuit_unprobe(agents, id);
        at += held_leave(agents, held, true);
    }
    for (struct agent_kind *kind = agents->kinds; kind != NULL; kind = kind->next) {
        for (size_t at = 0; (id = map_left(&kind->queued, &at, keeps, self)).number != 0;)
            kind_unready(kind, id);
        for (size_t at = 0; (id = map_left(&kind->sent_back, &at, keeps, self)).number != 0;)
            sent_back_forget(kind, id);
    }
}

/* What the end of its attempt says of an instance. That a service refuses for good says nothing,
 * nor does what was to stop, or an answer that was lost on its way. */
static void outcome_note(struct held *held, const struct rv_step *step, int64_t now)
{
    enum rv_attempt_state how = step->attempt_state;
    bool done = how == RV_ATTEMPT_DONE;
    bool failed = how == RV_ATTEMPT_EXPIRED || how == RV_ATTEMPT_LOST ||
                  (how == RV_ATTEMPT_FAILED && step->state == RV_STEP_PENDING);
    if (held->token == step->token && !held->revoked && (done || failed))
        health_note(&held->instance->health, done, now);
}

enum rv_err agents_see(struct agents *agents, const struct rv_task *task,
                       const struct rv_step *step, bool ours, int64_t now)
{
    if (step->kind != RV_KIND_CALL)
        return RV_OK;
    struct rv_step_id id = {task->id, step->number};
    struct held *held = held_find(agents, id);
    if (step->unreadable || !rv_step_named(step)) {
        if (held != NULL)
            held_remove(agents, held);
        return RV_OK;
    }
    struct agent_kind *kind = agents_kind(agents, step->agent);
    if (kind == NULL)
        return RV_ERR_MEMORY;
    bool live = rv_attempt_state_live(step->attempt_state);
    if (held != NULL && (!live || held->token != step->token)) {
        outcome_note(held, step, now);
        held_remove(agents, held);
        held = NULL;
    }
    if (live && held == NULL) {
        enum rv_err added = held_add(agents, kind, id, step, ours, now);
        if (added != RV_OK)
            return added;
        held = held_find(agents, id);
    }
    rv_assert((held != NULL) == live);
    rv_assert(held == NULL || held->token == step->token);
    if (live) {
        held->revision = task->revision;
        held->left = false;
        held->left_at = 0;
    }
    if (live && step->attempt_state == RV_ATTEMPT_REVOKED && !held->revoked) {
        held->revoked = true;
        held->instance->cancels++;
        agents_news(agents, held->instance);
    }
    circuit_see(kind, task, step, now);
    enum rv_err err = sent_back_see(kind, task, step);
    /* No failure is counted for an escalated task: its attempt may never end. */
    if (task->state == RV_TASK_ERROR)
        circuit_unprobe(agents, id);
    if (task->state == RV_TASK_ERROR || !rv_step_ready(task, step, now)) {
        kind_unready(kind, id);
        return err;
    }
    enum rv_err queued = agents_ready(agents, task, step);
    return queued != RV_OK ? queued : err;
}

struct ready_place ready_place(const struct rv_task *task, const struct rv_step *step)
{
    int64_t since = step->waits_since != 0 ? step->waits_since : step->ready_at;
    int64_t worth_ms = (int64_t)task->priority * RV_PRIORITY_WORTH_MS;
    /* A damaged row may hold any instant. */
    int64_t rank = since < INT64_MIN + worth_ms ? INT64_MIN : since - worth_ms;
    rv_assert(rank <= since);
    return (struct ready_place){rank, since};
}

static enum rv_err queue(struct agent_kind *kind, uint64_t task, uint32_t number,
                         struct ready_place place)
{
    enum rv_err err = rv_map_put(&kind->queued, task, number, queued_mark(place, false));
    if (err != RV_OK)
        return err;
    err = rv_heap_push(&kind->ready, place.rank, task, number);
    if (err != RV_OK)
        rv_map_remove(&kind->queued, task, number);
    else
        kind_stir(kind);
    return err;
}

enum rv_err agents_ready(struct agents *agents, const struct rv_task *task,
                         const struct rv_step *step)
{
    struct agent_kind *kind = agents_kind(agents, step->agent);
    uint64_t id = (uint64_t)task->id.value;
    if (kind == NULL)
        return RV_ERR_MEMORY;
    uint64_t *queued = rv_map_find(&kind->queued, id, step->number);
    bool behind = queued != NULL && (*queued & QUEUED_BEHIND) != 0;
    if (queued == NULL && rv_map_find(&kind->gone, id, step->number) != NULL)
        kind_sweep(kind); /* one entry for each step */
    /* Its target may be another one by now, or none: another server has tried it. */
    bool stays = queued != NULL && (!behind || (!step->insist && circuit_waits(kind, step)));
    if (stays) {
        /* It may wait anew since; its entry goes to its new place when it comes up (routing.c). */
        *queued = queued_mark(ready_place(task, step), behind);
        return RV_OK;
    }
    enum rv_err err = queue(kind, id, step->number, ready_place(task, step));
    if (behind)
        entry_void(kind, id, step->number);
    return err;
}

bool kind_any_ready(struct agent_kind *kind)
{
    const struct rv_heap_entry *first;
    struct rv_heap_entry entry;
    while ((first = rv_heap_first(&kind->ready)) != NULL && !entry_is_ready(first, kind)) {
        rv_heap_pop(&kind->ready, &entry);
        rv_map_remove(&kind->gone, entry.value, entry.detail);
    }
    return first != NULL;
}

bool agents_ready_take(struct agent_kind *kind, struct rv_step_id *ret_step,
                       struct ready_place *ret_place)
{
    struct rv_heap_entry entry;
    if (!kind_any_ready(kind))
        return false;
    bool popped = rv_heap_pop(&kind->ready, &entry);
    const uint64_t *queued = rv_map_find(&kind->queued, entry.value, entry.detail);
    rv_assert(popped && queued != NULL);
    rv_assert(entry.detail <= UINT32_MAX);
    *ret_step = (struct rv_step_id){{(int64_t)entry.value}, (uint32_t)entry.detail};
    *ret_place = (struct ready_place){entry.at, queued_since(*queued)};
    rv_map_remove(&kind->queued, entry.value, entry.detail);
    return true;
}

void agents_ready_back(struct agent_kind *kind, struct rv_step_id step, struct ready_place place)
{
    uint64_t id = (uint64_t)step.task.value;
    if (rv_map_find(&kind->queued, id, step.number) != NULL)
        return;
    /* Without memory the hint is gone; the repair scan finds the step again. */
    (void)queue(kind, id, step.number, place);
}

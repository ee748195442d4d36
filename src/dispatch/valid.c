/* Counts against lists: what is known of agents is changed in many places, and each of them keeps
 * several counts. */
#include "dispatch/valid.h"

#include "dispatch/agents.h"
#include "dispatch/circuit.h"
#include "dispatch/held.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"
#include "dispatch/seeker.h"

/* Of a kind, or of all. */
struct tally {
    size_t held;
    size_t ours;
    size_t parked;
    size_t instances;
    size_t circuits;
    size_t probes;
    size_t limited;
};

static const char *held_broken(const struct agent_instance *instance, struct tally *tally)
{
    uint32_t held = 0, before = 0, cancels = 0;
    for (const struct held *h = instance->held; h != NULL; h = h->next) {
        if (h->instance != instance || h->delivery == NULL || h->delivery->instance != instance)
            return "each attempt in the list of an instance refers to that instance";
        held++;
        tally->ours += h->ours;
        before += h->boot != instance->boot;
        cancels += h->revoked && !h->cancel_told;
        if (held_find(instance->kind->agents, h->step) != h)
            return "each held attempt is in the index of steps";
    }
    tally->held += held;
    if (held != instance->held_count)
        return "an instance has a correct count of its held attempts";
    if (before != instance->held_before)
        return "an instance has a correct count of the attempts of other boot ids";
    return cancels != instance->cancels ? "an instance has a correct count of the attempts to stop"
                                        : NULL;
}

static const char *instance_broken(const struct agent_instance *instance, struct tally *tally)
{
    uint32_t parked = 0;
    tally->instances++;
    for (const struct seeker *k = instance->parked.first; k != NULL; k = k->its_next) {
        if (k->instance != instance || k->kind != instance->kind)
            return "each poll parked with an instance refers to that instance";
        parked++;
    }
    tally->parked += parked;
    if (parked != instance->parked_count)
        return "an instance has a correct count of its parked polls";
    for (const struct delivery *d = instance->unconfirmed; d != NULL; d = d->next)
        if (d->instance != instance || d->confirmed || d->held == NULL)
            return "each unconfirmed response of an instance has a held attempt of that instance";
    return held_broken(instance, tally);
}

static const char *circuits_broken(const struct circuit_list *list, const struct agent_kind *kind,
                                   struct tally *tally)
{
    size_t count = 0;
    for (const struct circuit *c = list->first; c != NULL; c = c->next) {
        if (c->kind != kind)
            return "each circuit in the list of a kind refers to that kind";
        for (const struct probe *probe = c->probes; probe != NULL; probe = probe->next)
            tally->probes++;
        count++;
    }
    tally->circuits += count;
    return count != list->count ? "a kind has a correct count of its circuits" : NULL;
}

static const char *kind_broken(const struct agent_kind *kind, struct tally *tally)
{
    struct tally its = {.held = 0};
    const char *broken = circuits_broken(&kind->circuits, kind, &its);
    if (broken == NULL)
        broken = circuits_broken(&kind->circuits_idle, kind, &its);
    for (const struct agent_instance *i = kind->instances; broken == NULL && i != NULL; i = i->next)
        broken = i->kind == kind ? instance_broken(i, &its)
                                 : "each instance in the list of a kind refers to that kind";
    size_t parked = 0;
    for (const struct seeker *k = kind->parked.first; k != NULL; k = k->next)
        parked++;
    tally->held += its.held;
    tally->instances += its.instances;
    tally->circuits += its.circuits;
    tally->probes += its.probes;
    tally->limited += kind->limit.concurrent != 0;
    if (broken != NULL)
        return broken;
    if (its.held != kind->held_count)
        return "a kind has a correct count of the attempts held by its instances";
    if (its.ours != kind->ours_count)
        return "a kind has a correct count of the attempts that this process has handed out";
    if (its.circuits != kind->circuits_by_target.count)
        return "each circuit is in the index of targets";
    return its.parked != kind->parked_count || parked != kind->parked_count
               ? "a kind has a correct count of its parked polls"
               : NULL;
}

const char *dispatch_broken(const struct agents *agents)
{
    struct tally all = {.held = 0};
    const char *broken = NULL;
    for (const struct agent_kind *k = agents->kinds; broken == NULL && k != NULL; k = k->next)
        broken = kind_broken(k, &all);
    if (broken != NULL)
        return broken;
    if (all.held != agents->held.count)
        return "each attempt in the index of steps is held by an instance";
    if (all.instances != agents->instances_count || all.instances != agents->instances.count)
        return "the count of instances is correct";
    if (all.circuits != agents->circuits_count)
        return "the count of circuits is correct";
    if (all.probes != agents->probes.count)
        return "each probe is in the index of steps";
    return all.limited != agents->concurrents
               ? "the count of kinds with a limit of open attempts is correct"
               : NULL;
}

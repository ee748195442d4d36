#include "dispatch/seeker.h"

#include "base/assert.h"
#include "base/list.h"
#include "dispatch/agents.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"

void seeker_park(struct seeker *seeker)
{
    struct agent_kind *kind = seeker->kind;
    struct agent_instance *instance = seeker->instance;
    rv_assert(instance->kind == kind);
    rv_assert(kind->parked_count >= instance->parked_count);
    rv_assert(kind->parked.last != seeker); /* parked once */
    RV_LIST_APPEND(&kind->parked, seeker, next, prev);
    RV_LIST_APPEND(&instance->parked, seeker, its_next, its_prev);
    kind->parked_count++;
    instance->parked_count++;
    agents_news(kind->agents, instance);
}

void seeker_unpark(struct seeker *seeker)
{
    rv_assert(seeker->instance->parked_count > 0);
    rv_assert(seeker->kind->parked_count >= seeker->instance->parked_count);
    RV_LIST_REMOVE(&seeker->kind->parked, seeker, next, prev);
    RV_LIST_REMOVE(&seeker->instance->parked, seeker, its_next, its_prev);
    seeker->kind->parked_count--;
    seeker->instance->parked_count--;
}

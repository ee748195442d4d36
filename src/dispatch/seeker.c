#include "dispatch/seeker.h"

#include "dispatch/agents.h"
#include "dispatch/instance.h"
#include "dispatch/kind.h"

static void its_append(struct seeker_list *list, struct seeker *seeker)
{
    seeker->its_next = NULL;
    seeker->its_prev = list->last;
    if (list->last != NULL)
        list->last->its_next = seeker;
    else
        list->first = seeker;
    list->last = seeker;
}

static void its_unlink(struct seeker_list *list, struct seeker *seeker)
{
    if (seeker->its_prev != NULL)
        seeker->its_prev->its_next = seeker->its_next;
    else
        list->first = seeker->its_next;
    if (seeker->its_next != NULL)
        seeker->its_next->its_prev = seeker->its_prev;
    else
        list->last = seeker->its_prev;
    seeker->its_next = seeker->its_prev = NULL;
}

static void line_append(struct seeker_list *list, struct seeker *seeker)
{
    seeker->next = NULL;
    seeker->prev = list->last;
    if (list->last != NULL)
        list->last->next = seeker;
    else
        list->first = seeker;
    list->last = seeker;
}

static void line_unlink(struct seeker_list *list, struct seeker *seeker)
{
    if (seeker->prev != NULL)
        seeker->prev->next = seeker->next;
    else
        list->first = seeker->next;
    if (seeker->next != NULL)
        seeker->next->prev = seeker->prev;
    else
        list->last = seeker->prev;
    seeker->next = seeker->prev = NULL;
}

void seeker_park(struct seeker *seeker)
{
    struct agent_kind *kind = seeker->kind;
    struct agent_instance *instance = seeker->instance;
    line_append(&kind->parked, seeker);
    its_append(&instance->parked, seeker);
    kind->parked_count++;
    instance->parked_count++;
    agents_news(kind->agents, instance);
}

void seeker_unpark(struct seeker *seeker)
{
    line_unlink(&seeker->kind->parked, seeker);
    its_unlink(&seeker->instance->parked, seeker);
    seeker->kind->parked_count--;
    seeker->instance->parked_count--;
}

/* seeker.h - a poll as dispatch sees it: who asks, and for how much. */
#ifndef RV_DISPATCH_SEEKER_H
#define RV_DISPATCH_SEEKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_instance;
struct agent_kind;

/* Its maker fills it when the poll is admitted, and owns it. */
struct seeker {
    struct agent_kind *kind; /* borrowed, like the instance */
    struct agent_instance *instance;
    uint64_t boot;               /* hash of the poll's boot id */
    uint64_t name;               /* hash of the poll's own */
    uint32_t max;                /* so many requests at most */
    size_t given;                /* steps, in this batch */
    size_t given_bytes;          /* of their inputs */
    bool heard;                  /* a copy of a poll whose answer its instance has */
    struct seeker *asking_next;  /* the next poll of this batch that asks for the kind */
    struct seeker *asked_before; /* the instance's poll before this one, in the same batch */
    struct seeker *next;         /* among the parked of its kind */
    struct seeker *prev;
    struct seeker *its_next; /* among the parked of its instance */
    struct seeker *its_prev;
};

/* In order of arrival. */
struct seeker_list {
    struct seeker *first;
    struct seeker *last;
};

/* It waits for steps that become ready, and does not any longer. */
void seeker_park(struct seeker *seeker);
void seeker_unpark(struct seeker *seeker);

#endif

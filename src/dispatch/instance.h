/* instance.h - one instance of an agent, as its polls show it. */
#ifndef RV_DISPATCH_INSTANCE_H
#define RV_DISPATCH_INSTANCE_H

#include "dispatch/health.h"
#include "dispatch/seeker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_kind;
struct delivery;
struct held;
struct seeker;

/* A boot id of an instance that another one has followed. A poll of it that was under way for long
 * must not end what the next process has taken; but the second different one says that the process
 * lives, and that it was the other whose poll came late. */
struct boot_left {
    uint64_t boot;
    uint64_t poll; /* hash of the poll that came since; 0: none did */
};

enum { BOOTS_LEFT = 4, POLLS_SEEN = 16 };

struct agent_instance {
    char *name;                              /* owned, terminated */
    uint64_t boot;                           /* hash of the boot id that polled last; 0: none yet */
    struct boot_left boots_left[BOOTS_LEFT]; /* the newest first */
    uint64_t polls_seen[POLLS_SEEN];         /* hashes of its last polls, a ring */
    bool polls_heard[POLLS_SEEN];            /* it has confirmed the answer to that poll */
    size_t polls_next;
    struct agent_kind *kind; /* borrowed */
    int64_t seen_at;         /* its newest poll */
    int64_t heard_at;    /* its newest renewal or reply; with attempts after a start: the start */
    bool left;           /* its last poll said that it stops */
    bool overlaps;       /* has had two polls out at once */
    struct seeker *asks; /* borrowed: its newest poll of the batch `asks_in` */
    uint64_t asks_in;
    uint32_t held_count;
    struct health health;
    uint32_t given; /* in the batch `given_in`: not held before its commit */
    uint64_t given_in;
    struct seeker_list parked; /* its parked polls, by `its_next`; borrowed */
    uint32_t parked_count;
    uint32_t cancels; /* revoked attempts that it was not told of */
    bool news;        /* in the list of those whose parked polls are looked at after the commit */
    struct agent_instance *news_next;
    struct held *held;
    uint32_t held_before;         /* attempts that another boot id has taken than the last one */
    bool learned_before;          /* ... of some of them nothing was known when its poll came */
    struct delivery *unconfirmed; /* owned by what they took */
    struct agent_instance *next;
};

/* An instance that was not heard of for so long is not connected: a poll waits at most 50 s. */
enum { CONNECTED_MS = 60 * 1000 };
/* The newest contact. One whose places are all full does not poll: it renews its leases, and
 * replies. */
int64_t instance_heard(const struct agent_instance *instance);
/* Whether it polls, or would poll once it has a place. */
bool instance_connected(const struct agent_instance *instance, int64_t now);
/* Whether operators see it: it is connected, or has work. What is known of others is kept for a
 * while, in case they come back. */
bool instance_shown(const struct agent_instance *instance, int64_t now);
/* The boot id that polled last is that one. */
void instance_boots(struct agent_instance *instance, uint64_t boot);

#endif

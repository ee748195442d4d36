/* What src/relay has below it: mailboxes, threads, clocks, the lock and the connection, in virtual
 * time. Strands give way to each other only where they wait, so nothing here needs a mutex. */
#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/thread.h"
#include "client/submit.h"
#include "relay/lock.h"
#include "relay/sender.h"
#include "sim/cast/outbox.h"
#include "sim/cast/relay_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- clocks and the log ---- */

int64_t rv_clock_wall_ms(void)
{
    return outbox_wall(relay_inside->world);
}

int64_t rv_clock_mono_ms(void)
{
    return relay_now();
}

void rv_log_write(enum rv_log_level level, const char *event, const struct rv_log_field *fields,
                  size_t count)
{
    (void)level;
    for (size_t i = 0; i < count; i++)
        relay_says(event, fields[i].name, fields[i].text, fields[i].number);
}

/* ---- mailboxes ---- */

void rv_mailbox_init(struct rv_mailbox *box, size_t link_offset)
{
    *box = (struct rv_mailbox){.link_offset = link_offset};
}

void rv_mailbox_done(struct rv_mailbox *box)
{
    rv_assert(box->count == 0);
}

static void taker_wake(const struct rv_mailbox *box)
{
    for (int i = 0; i < STRANDS; i++)
        if (relay_inside->strands[i].box == box)
            relay_wake(relay_inside, &relay_inside->strands[i]);
}

static void **link_of(const struct rv_mailbox *box, void *item)
{
    return (void **)(void *)((char *)item + box->link_offset);
}

bool rv_mailbox_put(struct rv_mailbox *box, void *item)
{
    if (box->closed)
        return false;
    *link_of(box, item) = NULL;
    if (box->count++ == 0)
        box->first = item;
    else
        *link_of(box, box->last) = item;
    box->last = item;
    taker_wake(box);
    return true;
}

void rv_mailbox_close(struct rv_mailbox *box)
{
    box->closed = true;
    taker_wake(box);
}

static void box_wait(const struct rv_mailbox *box, int64_t wait_ms)
{
    struct strand *strand = relay_strand;
    int64_t until = wait_ms < 0 ? -1 : relay_now() + wait_ms;
    strand->box = box;
    relay_wait(until);
    while (wait_ms < 0 && box->count == 0 && !box->closed)
        relay_wait(until); /* a dead relay's turns go round */
    strand->box = NULL;
}

size_t rv_mailbox_take(struct rv_mailbox *box, void **ret_items, size_t max, int64_t wait_ms)
{
    size_t taken = 0;
    if (box->count == 0 && !box->closed && wait_ms != 0)
        box_wait(box, wait_ms);
    for (; taken < max && box->count > 0; box->count--) {
        ret_items[taken++] = box->first;
        box->first = *link_of(box, box->first);
    }
    return taken;
}

/* ---- the thread: there is one, the sender's ---- */

enum rv_err rv_thread_start(struct rv_thread *thread, const char *name, void (*run)(void *self),
                            void *self)
{
    struct strand *strand = &relay_inside->strands[SENDER];
    struct rv_sender *sender = self;
    (void)name;
    (void)thread;
    strand->fiber = fiber_new();
    strand->run = run;
    strand->self = self;
    /* Its pauses come from the seed, not from the system. */
    rv_prng_init(&sender->prng, relay_draw());
    relay_wake(relay_inside, strand);
    return RV_OK;
}

void rv_thread_join(struct rv_thread *thread)
{
    (void)thread;
    while (!relay_inside->strands[SENDER].over)
        relay_wait(-1);
}

/* ---- the lock ---- */

enum rv_err rv_relay_lock_take(struct rv_relay_lock *lock, const char *path, int64_t *ret_pid,
                               struct rv_relay_fault *fault)
{
    struct relay_actor *r = relay_inside;
    uint32_t other = 0;
    lock->fd = -1;
    *ret_pid = 0;
    if (r->dead) {
        snprintf(fault->message, sizeof fault->message, "%s: the relay is dead", path);
        return RV_ERR_IO;
    }
    if (!relay_may_lock(r, &other)) {
        *ret_pid = other;
        return RV_ERR_IN_USE;
    }
    r->has_lock = true;
    lock->fd = 0;
    return RV_OK;
}

void rv_relay_lock_give(struct rv_relay_lock *lock)
{
    relay_inside->has_lock = false;
    lock->fd = -1;
}

/* ---- the connection ---- */

/* A dead relay would ask for ever; so it hears that all is refused, and finds nobody to tell. */
enum { TO_THE_DEAD = 400 };

/* One for each relay, and it has no state but the relay's. */
static struct relay_actor *actor_of(const struct rv_client *client)
{
    rv_assert((const void *)client == relay_inside);
    return relay_inside;
}

struct rv_client *rv_client_open(const char *url, const struct rv_client_options *options)
{
    (void)url;
    relay_inside->timeout_ms = options->timeout_ms;
    return (struct rv_client *)(void *)relay_inside;
}

void rv_client_close(struct rv_client *client)
{
    rv_assert(actor_of(client)->asked == NULL);
}

const char *rv_client_error(const struct rv_client *client)
{
    return actor_of(client)->why;
}

const char *rv_client_url(const struct rv_client *client)
{
    return actor_of(client)->name;
}

void rv_answer_free(struct rv_answer *answer)
{
    free(answer->body);
    answer->body = NULL;
}

/* Sends, and waits for the answer or for the news that there is none; NULL: none came. */
static const struct exchange *exchange_make(struct relay_actor *r, const struct rv_call *call)
{
    struct exchange *x = net_ask(r->world, PEER_RELAY, r->number, r->life, 0, "POST",
                                 rv_str_of(call->path),
                                 (struct rv_str){call->body, call->body_bytes}, r->timeout_ms);
    r->asked = x;
    r->heard = false;
    relay_wait(-1);
    r->asked = NULL;
    return r->heard && !relay_dies() ? x : NULL;
}

int rv_client_request(struct rv_client *client, const struct rv_call *call,
                      struct rv_answer *ret_answer)
{
    struct relay_actor *r = actor_of(client);
    const struct exchange *x = relay_dies() ? NULL : exchange_make(r, call);
    struct rv_str body = x != NULL ? x->answer : RV_STR("");
    int status = x != NULL ? x->status : r->dead ? TO_THE_DEAD : 0;
    *ret_answer = (struct rv_answer){.status = status, .retry_after_ms = -1};
    ret_answer->body = calloc(1, body.len + 1);
    rv_assert(ret_answer->body != NULL);
    memcpy(ret_answer->body, body.at, body.len);
    ret_answer->body_bytes = body.len;
    if (status == 0) {
        snprintf(r->why, sizeof r->why, "no answer from %s", r->name);
        return RV_RESULT_UNREACHABLE;
    }
    if (status >= 200 && status < 300)
        return RV_RESULT_OK;
    struct rv_arena arena;
    rv_arena_init(&arena, 0);
    snprintf(r->why, sizeof r->why, "%.*s", RV_STR_FMT(rv_submit_problem(&arena, body)));
    rv_arena_done(&arena);
    return RV_RESULT_REFUSED;
}

/* A client sends its submissions one after the other. Until one is acknowledged it is repeated with
 * the same key. Later some are sent once more: the same body has to give the same task, another
 * body a refusal. */
#include "sim/cast/client.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/time.h"
#include "client/submit.h"
#include "sim/check/check.h"
#include "sim/world/fault.h"
#include "sim/store/rewind.h"
#include "sim/cast/workload.h"
#include "sim/store/database.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>

enum { ANSWER_WITHIN_MS = 10000, PACE_MS = 400, AGAIN_MS = 500 };
enum tag { TAG_FIRST, TAG_SAME, TAG_OTHER };

struct submission {
    bool wanted;
    bool acked;
    bool other; /* the store lost the first one, the other body is under its key */
    bool other_sent;
    bool over; /* nobody heard of its task before it had ended and was deleted */
    struct rv_task_id task;
};

struct client {
    char name[24];
    uint32_t from; /* its submissions are all numbers from `from` to before `until` */
    uint32_t until;
    uint32_t next;
    struct submission *submissions; /* owned, by number - from */
    uint32_t asked_for;             /* number of the call under way */
    bool busy;
};

/* On to the next submission that there is to be in this world. */
static void go_past(struct client *c)
{
    while (c->next < c->until && !c->submissions[c->next - c->from].wanted)
        c->next++;
}

void clients_new(struct world *w)
{
    w->clients = calloc(w->knobs.clients, sizeof *w->clients);
    rv_assert(w->clients != NULL);
    for (uint32_t i = 0; i < w->knobs.clients; i++) {
        struct client *c = &w->clients[i];
        snprintf(c->name, sizeof c->name, "client-%u", i);
        c->from = c->next = w->knobs.tasks * i / w->knobs.clients;
        c->until = w->knobs.tasks * (i + 1) / w->knobs.clients;
        c->submissions = calloc(c->until - c->from + 1, sizeof *c->submissions);
        rv_assert(c->submissions != NULL);
        for (uint32_t n = c->from; n < c->until; n++) {
            c->submissions[n - c->from].wanted = part_stays(w, PART_ORDER, 0, n);
            w->orders += c->submissions[n - c->from].wanted;
        }
        go_past(c);
        world_at(w, w->now + 1 + (int64_t)i, EVENT_CLIENT, i, 0);
    }
}

void clients_free(struct world *w)
{
    for (uint32_t i = 0; w->clients != NULL && i < w->knobs.clients; i++)
        free(w->clients[i].submissions);
    free(w->clients);
}

bool client_submits(const struct world *w, uint32_t client, uint32_t number)
{
    const struct client *c = &w->clients[client];
    return number >= c->from && number < c->until;
}

static void submit(struct world *w, uint32_t client, uint32_t number, enum tag tag)
{
    struct client *c = &w->clients[client];
    struct rv_buf body;
    rv_buf_init(&body, RV_BODY_BYTES_MAX);
    workload_submission(w, &body, number);
    rv_buf_printf(&body, "%s,\"key\":\"order-%u\"}",
                  tag == TAG_OTHER ? ",\"correlationId\":\"other\"" : "", number);
    bool waits = tag == TAG_FIRST && world_chance(w, STREAM_CLIENT + client, 200);
    world_say(w, c->name, "submits order-%u%s", number,
              tag == TAG_FIRST  ? ""
              : tag == TAG_SAME ? " once more"
                                : " with another body");
    c->busy = true;
    c->asked_for = number;
    c->submissions[number - c->from].other_sent |= tag == TAG_OTHER;
    /* Where several servers may commit the end that is waited for it is waited for longer. */
    struct rv_str waiting = database_shared(w) ? RV_STR("/v1/tasks?wait=PT8S")
                                               : RV_STR("/v1/tasks?wait=PT2S");
    net_ask(w, PEER_CLIENT, client, 0, tag, "POST", waits ? waiting : RV_STR("/v1/tasks"),
            rv_buf_str(&body), ANSWER_WITHIN_MS);
    rv_buf_done(&body);
}

void client_turn(struct world *w, uint32_t client)
{
    struct client *c = &w->clients[client];
    unsigned stream = STREAM_CLIENT + client;
    if (c->busy)
        return;
    if (c->next > c->from && !w->healed) {
        uint32_t number = c->from + (uint32_t)world_roll(w, stream, c->next - c->from);
        bool sent = c->submissions[number - c->from].acked;
        if (sent && fault_strikes(w, FAULT_REPEAT, ACTOR_CLIENT + client)) {
            submit(w, client, number, TAG_SAME);
            return;
        }
        if (sent && fault_strikes(w, FAULT_OTHER_BODY, ACTOR_CLIENT + client)) {
            submit(w, client, number, TAG_OTHER);
            return;
        }
    }
    if (c->next < c->until)
        submit(w, client, c->next, TAG_FIRST);
}

static void go_on(struct world *w, uint32_t client, int64_t mean_ms)
{
    w->clients[client].busy = false;
    world_at(w, w->now + 1 + world_spread(w, STREAM_CLIENT + client, mean_ms), EVENT_CLIENT, client,
             0);
}

/* The task of the key has ended and was deleted: whether this client had heard of it or not, its
 * order was taken once, and is not taken again. Where a fail-over had lost the task that it knew,
 * the order was taken anew, and that was not heard. Where it has lost the task's end, this answer
 * was on its way meanwhile. */
static void receipt_over(struct world *w, struct client *c, struct exchange *x)
{
    struct submission *s = &c->submissions[c->asked_for - c->from];
    bool knows = s->acked && !rewind_lost(w, s->task);
    bool was_over = history_over(w, s->task) || history_lacks(w, s->task);
    if (w->history->swept_by == 0 || (knows && !was_over))
        world_violate(w, "I-24", "order-%u is said to be over", c->asked_for);
    s->over = s->over || !knows;
    if (x->tag == TAG_FIRST) {
        c->next++;
        go_past(c);
    }
}

/* By the store's clock, which follows a wall clock that jumped while no server ran, the key is old
 * enough to be forgotten with its task (RULES 1). */
static bool key_forgotten(struct world *w, struct rv_task_id first, struct rv_task_id second)
{
    const int64_t kept_ms = 30 * (int64_t)RV_DAY_MS;
    bool was_over = history_over(w, first) || history_lacks(w, first);
    return w->history->swept_by != 0 && was_over &&
           rv_id_made_at(second) - rv_id_made_at(first) >= kept_ms;
}

/* I-24: a key has one task as long as it is kept, and no other body gets in under it. */
static void check_receipt(struct world *w, struct client *c, struct exchange *x,
                          const struct rv_submit_receipt *receipt)
{
    struct submission *s = &c->submissions[c->asked_for - c->from];
    struct rv_task_id task = {0};
    if (receipt->status == 410) {
        receipt_over(w, c, x);
        return;
    }
    if (receipt->status != 200 && receipt->status != 201) {
        /* Sent after the loss, the other body was taken, and the answer did not arrive. */
        if (receipt->status == 409 && s->acked && s->other_sent && rewind_lost(w, s->task))
            s->other = x->tag != TAG_OTHER;
        bool wanted = (x->tag == TAG_OTHER) != s->other && receipt->status == 409;
        if (!wanted)
            world_violate(w, "I-24", "order-%u was refused with %d: %.*s", c->asked_for,
                          receipt->status, RV_STR_FMT(receipt->why));
        return;
    }
    check_submitted(w, receipt->task, c->name);
    if (rv_task_parse(receipt->task, &task) != RV_OK)
        return; /* check_submitted has said so */
    bool anew = s->acked && s->task.value != task.value && key_forgotten(w, s->task, task);
    bool lost = s->acked && (rewind_lost(w, s->task) || anew);
    w->orders_anew += anew;
    if (lost && s->task.value != task.value)
        s->other = x->tag == TAG_OTHER;
    if ((x->tag == TAG_OTHER) != s->other)
        world_violate(w, "I-24", "order-%u was taken again with another body", c->asked_for);
    if (s->acked && s->task.value != task.value && !lost)
        world_violate(w, "I-24", "order-%u has a second task %.*s", c->asked_for,
                      RV_STR_FMT(receipt->task));
    s->acked = true;
    s->task = task;
    if (x->tag == TAG_FIRST) {
        c->next++;
        go_past(c);
    }
}

void client_answered(struct world *w, struct exchange *x)
{
    struct client *c = &w->clients[x->actor];
    struct rv_arena *arena = &w->history->scratch;
    struct rv_submit_receipt receipt;
    rv_arena_reset(arena);
    bool misread = x->status == 500 && fault_happened(w, FAULT_UNREADABLE);
    if (x->status == 503 || x->status == 429 || misread) {
        go_on(w, x->actor, AGAIN_MS);
        return;
    }
    if (rv_submit_read(arena, x->status, x->answer, &receipt) != RV_OK) {
        world_violate(w, "W-02", "an answer to a submission cannot be read: %.*s",
                      RV_STR_FMT(x->answer));
        return;
    }
    world_say(w, c->name, "order-%u: %d %.*s", c->asked_for, receipt.status,
              RV_STR_FMT(receipt.task));
    check_receipt(w, c, x, &receipt);
    go_on(w, x->actor, PACE_MS);
}

void client_lost(struct world *w, struct exchange *x)
{
    world_say(w, w->clients[x->actor].name, "no answer for order-%u",
              w->clients[x->actor].asked_for);
    go_on(w, x->actor, AGAIN_MS);
}

bool clients_done(struct world *w)
{
    return clients_left(w) == 0;
}

uint32_t clients_left(const struct world *w)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->knobs.clients; i++) {
        uint32_t left = w->clients[i].until - w->clients[i].next;
        most = left > most ? left : most;
    }
    return most;
}

uint32_t clients_lost(struct world *w)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; w->clients != NULL && i < w->knobs.clients; i++) {
        const struct client *c = &w->clients[i];
        for (uint32_t n = 0; n < c->until - c->from; n++) {
            const struct submission *s = &c->submissions[n];
            lost += s->over ? rewind_any(w) : s->acked && rewind_lost(w, s->task);
        }
    }
    return lost;
}

struct rv_task_id clients_any_task(struct world *w, unsigned stream)
{
    const struct client *c = &w->clients[world_roll(w, stream, w->knobs.clients)];
    if (c->next == c->from)
        return (struct rv_task_id){0};
    return c->submissions[world_roll(w, stream, c->next - c->from)].task;
}

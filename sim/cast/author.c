/* One thing at a time, until it is answered: a new version, an old one once more, or another
 * content under a version that is there (which must be refused: docs/guide/workflows.md). */
#include "sim/cast/author.h"

#include "sim/world/fault.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

enum { ANSWER_WITHIN_MS = 10000 };
enum tag { TAG_NEW, TAG_SAME, TAG_OTHER };

static void publish(struct world *w)
{
    struct author *a = &w->author;
    world_say(w, "author", "publishes %.*s of %.*s%s", RV_STR_FMT(a->version->version),
              RV_STR_FMT(a->workflow->name),
              a->tag == TAG_NEW    ? ""
              : a->tag == TAG_SAME ? " once more"
                                   : " with other content");
    a->busy = true;
    net_ask(w, PEER_AUTHOR, 0, 0, a->tag, "PUT", RV_STR("/v1/workflows"), a->source,
            ANSWER_WITHIN_MS);
}

static void decide(struct world *w)
{
    struct author *a = &w->author;
    a->workflow = &w->workload->workflows[fault_roll(w, w->workload->count)];
    uint32_t version = (uint32_t)fault_roll(w, a->workflow->versions_count);
    a->version = &a->workflow->versions[version];
    a->tag = (uint32_t)fault_roll(w, 4);
    a->source = a->version->source;
    if (a->tag == TAG_OTHER) {
        a->version = &a->workflow->versions[0]; /* which no store ever loses */
        a->source = workload_other(w, a->workflow, a->version);
    }
    if (a->tag != TAG_SAME && a->tag != TAG_OTHER) {
        a->tag = TAG_NEW;
        a->version = workload_version_new(w, a->workflow);
        a->source = a->version ? a->version->source : RV_STR_NONE;
    }
}

void author_new(struct world *w)
{
    w->author = (struct author){.busy = false};
    world_at(w, w->now + 1000, EVENT_AUTHOR, 0, 0);
}

void author_turn(struct world *w)
{
    struct author *a = &w->author;
    if (!w->healed || a->source.at != NULL)
        world_at(w, w->now + 1000, EVENT_AUTHOR, 0, 0);
    if (a->busy)
        return;
    if (a->source.at == NULL && fault_strikes(w, FAULT_REPUBLISH, ACTOR_AUTHOR))
        decide(w);
    if (a->source.at != NULL)
        publish(w);
}

/* I-18, I-24: what is published stays as it is: the same content is welcome again, another one
 * under the same version is refused. */
void author_answered(struct world *w, struct exchange *x)
{
    struct author *a = &w->author;
    world_say(w, "author", "gets %d %.*s", x->status, RV_STR_FMT(x->answer));
    a->busy = false;
    if (x->status == 503)
        return;
    int wanted = a->tag == TAG_OTHER ? 409 : 200;
    bool good = x->status == wanted || (wanted == 200 && x->status == 201);
    if (!good)
        world_violate(w, "I-18", "version %.*s of %.*s, %s: %d %.*s",
                      RV_STR_FMT(a->version->version), RV_STR_FMT(a->workflow->name),
                      a->tag == TAG_OTHER ? "with other content" : "as it is", x->status,
                      RV_STR_FMT(x->answer));
    if (a->tag != TAG_OTHER && a->version->published == 0) /* by a commit of unknown outcome */
        workload_published(w, a->workflow->name, a->version->version);
    if (a->tag != TAG_OTHER && a->version->acked_at == 0)
        a->version->acked_at = w->now;
    if (fault_happened(w, FAULT_FAILOVER))
        workload_rewind(w); /* the store may have lost it while the answer was on its way */
    a->source = RV_STR_NONE;
}

void author_lost(struct world *w, struct exchange *x)
{
    (void)x;
    world_say(w, "author", "gets no answer");
    w->author.busy = false; /* and asks again */
}

#include "sim/scenario/crossing.h"

#include "base/assert.h"
#include "sim/world/server.h"
#include "sim/world/world.h"

#include <stdlib.h>
#include <string.h>

#define T(twist) (1u << TWIST_##twist)
static const uint32_t twists[BOUNDARY_COUNT] = {
#define BOUNDARY(name, text, bits) [BOUNDARY_##name] = bits,
#include "sim/scenario/boundary.def"
#undef BOUNDARY
};

static const char *const texts[BOUNDARY_COUNT] = {
#define BOUNDARY(name, text, bits) [BOUNDARY_##name] = text,
#include "sim/scenario/boundary.def"
#undef BOUNDARY
};

static const char *const twist_texts[TWIST_COUNT] = {
    [TWIST_NONE] = "none",
    [TWIST_BEFORE] = "before",
    [TWIST_AFTER] = "after",
    [TWIST_UNKNOWN_DONE] = "unknown-done",
    [TWIST_UNKNOWN_NOT_DONE] = "unknown-not-done",
    [TWIST_REFUSED] = "refused",
    [TWIST_TWICE] = "twice",
};

static const char *const twist_means[TWIST_COUNT] = {
    [TWIST_BEFORE] = "the process dies before it",
    [TWIST_AFTER] = "the process dies after it",
    [TWIST_UNKNOWN_DONE] = "it is done, but the answer is lost",
    [TWIST_UNKNOWN_NOT_DONE] = "it is lost, and nothing is done",
    [TWIST_REFUSED] = "it is refused",
    [TWIST_TWICE] = "it is done twice",
};

uint32_t boundary_twists(enum boundary boundary)
{
    return twists[boundary];
}

const char *boundary_text(enum boundary boundary)
{
    return texts[boundary];
}

bool boundary_of_agent(enum boundary boundary)
{
    return strncmp(texts[boundary], "agent", strlen("agent")) == 0;
}

const char *twist_text(enum twist twist)
{
    return twist_texts[twist];
}

enum twist twist_find(const char *text)
{
    enum twist twist = TWIST_COUNT - 1;
    while (twist != TWIST_NONE && strcmp(twist_texts[twist], text) != 0)
        twist--;
    return twist;
}

void crossings_begin(struct crossings *c)
{
    *c = (struct crossings){.kinds = c->kinds, .room = c->room};
}

void crossings_done(struct crossings *c)
{
    free(c->kinds);
    c->kinds = NULL;
}

static void record(struct crossings *c, enum boundary boundary)
{
    if (c->count == c->room) {
        c->room = c->room ? c->room * 2 : 512;
        c->kinds = realloc(c->kinds, c->room);
        rv_assert(c->kinds != NULL);
    }
    c->kinds[c->count++] = (uint8_t)boundary;
}

enum twist crossing(struct world *w, enum boundary boundary)
{
    struct crossings *c = w->crossings;
    if (c == NULL || !c->counting)
        return TWIST_NONE;
    record(c, boundary);
    enum twist twist = TWIST_NONE;
    for (uint32_t i = 0; i < c->planned_count; i++)
        if (c->planned[i].number == c->count)
            twist = c->planned[i].twist;
    if (twist != TWIST_NONE && (twists[boundary] & 1u << twist) == 0)
        world_violate(w, "E-01", "boundary %u is \"%s\": no \"%s\" can be there", c->count,
                      texts[boundary], twist_texts[twist]);
    c->met += twist != TWIST_NONE;
    world_detail(w, "boundary", "%u %s%s%s", c->count, texts[boundary],
                 twist == TWIST_NONE ? "" : ": ", twist == TWIST_NONE ? "" : twist_texts[twist]);
    if (w->story != NULL && twist != TWIST_NONE)
        world_say(w, "FAULT", "at \"%s\": %s", texts[boundary], twist_means[twist]);
    return twist;
}

void crossing_die(struct server *s)
{
    s->world->crossings->gates[s->number].dead = true;
    s->dying = true;
}

bool crossing_dead(const struct server *s)
{
    return s->world->crossings != NULL && s->world->crossings->gates[s->number].dead;
}

void crossing_settle(struct world *w)
{
    for (uint32_t i = 0; w->crossings != NULL && i < w->knobs.servers; i++) {
        if (!w->crossings->gates[i].dead)
            continue;
        server_kill(&w->servers[i], "dies");
        w->crossings->gates[i].dead = false;
    }
}

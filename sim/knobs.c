#include "sim/knobs.h"

#include "sim/world.h"

static uint32_t draw(struct world *w, uint32_t low, uint32_t high)
{
    return low + (uint32_t)world_roll(w, STREAM_KNOBS, (uint64_t)(high - low) + 1);
}

/* Swarm testing: each class is off in half of the worlds, so that the others have room. */
static uint32_t swarm(struct world *w, uint32_t high)
{
    uint32_t on = draw(w, 0, 1);
    uint32_t rate = draw(w, 1, high);
    return on ? rate : 0;
}

static void draw_people(struct world *w, struct knobs *k)
{
    k->kinds = draw(w, 1, SIM_KINDS_MAX);
    k->agents = draw(w, k->kinds, SIM_AGENTS_MAX);
    k->clients = draw(w, 1, SIM_CLIENTS_MAX);
    k->tasks = draw(w, 0, 9) == 0 ? draw(w, 100, SIM_TASKS_MAX) : draw(w, 20, 60);
    k->workflows = draw(w, 1, SIM_WORKFLOWS_MAX);
    k->operator_there = draw(w, 0, 2) > 0;
    k->safety_ms = draw(w, 5, 60) * 1000;
    k->repeat = swarm(w, 300);
    k->other_body = swarm(w, 100);
    k->operator_acts = k->operator_there ? swarm(w, 600) : 0;
}

static void draw_net(struct world *w, struct knobs *k)
{
    k->loss = swarm(w, 300);
    k->duplicate = swarm(w, 300);
    k->delay_ms = draw(w, 0, 1) ? draw(w, 1, 10) : draw(w, 1, 500);
    k->tail = swarm(w, 20);
    k->silence = swarm(w, 500);
}

static void draw_server(struct world *w, struct knobs *k)
{
    k->kill_before = swarm(w, 20);
    k->kill_after = swarm(w, 20);
    k->kill_idle = swarm(w, 100);
    k->unknown = swarm(w, 100);
    k->busy = swarm(w, 100);
    k->server_pause = swarm(w, 50);
    k->down_ms = draw(w, 0, 1) ? draw(w, 1, 300) : draw(w, 300, 10000);
    k->batch_max = draw(w, 0, 1) ? 1000 : draw(w, 1, 8);
    k->scan_ms = draw(w, 0, 1) ? 1000 : draw(w, 100, 3000);
    k->role_ms = draw(w, 0, 1) ? 5000 : draw(w, 500, 10000);
    k->clock_jump = swarm(w, 50);
    k->full = swarm(w, 50);
    k->server_stop = swarm(w, 50);
}

static void draw_agents(struct world *w, struct knobs *k)
{
    k->agent_crash = swarm(w, 100);
    k->agent_pause = swarm(w, 100);
    k->work_ms = draw(w, 0, 1) ? draw(w, 1, 20) : draw(w, 20, 600);
    k->slow = swarm(w, 200);
    k->hang = swarm(w, 60);
    k->zombie = swarm(w, 300);
    k->fail_before = swarm(w, 300);
    k->fail_after = swarm(w, 300);
    k->refuse = swarm(w, 150);
    k->break_after = swarm(w, 100);
    k->twice = swarm(w, 100);
    k->circuit = draw(w, 0, 1) ? draw(w, 1, 5) : 0;
    k->drift_ppm = (int32_t)swarm(w, 400);
}

void knobs_draw(struct world *w)
{
    w->knobs.servers = 1;
    draw_people(w, &w->knobs);
    draw_net(w, &w->knobs);
    draw_server(w, &w->knobs);
    draw_agents(w, &w->knobs);
}

void knobs_say(struct world *w)
{
    const struct knobs *k = &w->knobs;
    world_say(w, "world", "%u agents of %u kinds, %u clients, %u tasks of %u workflows%s",
              k->agents, k->kinds, k->clients, k->tasks, k->workflows,
              k->operator_there ? ", an operator" : "");
    world_say(w, "world", "net: loss %u duplicate %u delay %lld ms tail %u silence %u", k->loss,
              k->duplicate, (long long)k->delay_ms, k->tail, k->silence);
    world_say(w, "world",
              "server: kill before %u after %u idle %u unknown %u busy %u full %u pause %u stop "
              "%u clock %u batch %u scan %lld role %lld down %lld",
              k->kill_before, k->kill_after, k->kill_idle, k->unknown, k->busy, k->full,
              k->server_pause, k->server_stop, k->clock_jump, k->batch_max, (long long)k->scan_ms,
              (long long)k->role_ms, (long long)k->down_ms);
    world_say(w, "world",
              "agents: crash %u pause %u work %lld ms slow %u hang %u zombie %u fail %u/%u refuse "
              "%u break %u twice %u circuit %u drift %d ppm",
              k->agent_crash, k->agent_pause, (long long)k->work_ms, k->slow, k->hang, k->zombie,
              k->fail_before, k->fail_after, k->refuse, k->break_after, k->twice, k->circuit,
              k->drift_ppm);
}

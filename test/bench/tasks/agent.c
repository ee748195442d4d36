/* The agent of the throughput figures: answers every request at once. */
#include "reeve.h"

#include <signal.h>
#include <stdio.h>

static struct rv_agent *agent;

static void handle(struct rv_request *request, void *user)
{
    (void)user;
    char output[160];
    snprintf(output, sizeof output, "{\"ok\":true,\"step\":\"%s\"}", rv_request_step(request));
    rv_request_done(request, output);
}

static void stop(int signal_number)
{
    (void)signal_number;
    rv_agent_stop(agent);
}

int main(int argc, char **argv)
{
    struct rv_agent_options options = {
        .name = "bench", .handler = handle, .threads = RV_THREADS_NONE, .max = 1000};
    agent = rv_agent_open(argc > 1 ? argv[1] : NULL, &options);
    if (agent == NULL)
        return 1;
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
    int result = rv_agent_run(agent);
    struct rv_agent_counts counts;
    rv_agent_count(agent, &counts);
    fprintf(stderr, "agent: %llu requests, %llu replied, %llu refused\n",
            (unsigned long long)counts.requests, (unsigned long long)counts.replied,
            (unsigned long long)counts.refused);
    rv_agent_close(agent);
    return result;
}

/* The threads that call the handler. A handler that hangs keeps its thread; the others go on. */
#include "client/transport/agent_priv.h"

#include <errno.h>
#include <time.h>

static void crew_call(struct crew *crew, struct rv_request *request)
{
    crew->agent->options.handler(request, crew->agent->options.user);
}

static void crew_run(void *self)
{
    struct crew *crew = self;
    pthread_mutex_lock(&crew->mutex);
    for (;;) {
        while (crew->first == NULL && !crew->quit)
            pthread_cond_wait(&crew->work, &crew->mutex);
        if (crew->first == NULL)
            break;
        struct rv_request *request = crew->first;
        crew->first = request->next;
        pthread_mutex_unlock(&crew->mutex);
        crew_call(crew, request);
        pthread_mutex_lock(&crew->mutex);
    }
    crew->alive--;
    pthread_cond_signal(&crew->ended);
    pthread_mutex_unlock(&crew->mutex);
}

enum rv_err rv_crew_start(struct crew *crew, struct rv_agent *agent, int count)
{
    crew->agent = agent;
    pthread_mutex_init(&crew->mutex, NULL);
    pthread_cond_init(&crew->work, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&crew->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_lock(&crew->mutex);
    enum rv_err err = RV_OK;
    while (crew->count < count && err == RV_OK) {
        err = rv_thread_start(&crew->threads[crew->count], "reeve-handler", crew_run, crew);
        if (err == RV_OK) {
            crew->count++;
            crew->alive++;
        }
    }
    pthread_mutex_unlock(&crew->mutex);
    return err;
}

void rv_crew_give(struct crew *crew, struct rv_request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&crew->mutex);
    if (crew->first == NULL)
        crew->first = request;
    else
        crew->last->next = request;
    crew->last = request;
    pthread_cond_signal(&crew->work);
    pthread_mutex_unlock(&crew->mutex);
}

bool rv_crew_stop(struct crew *crew, int64_t grace_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(grace_ms / 1000);
    pthread_mutex_lock(&crew->mutex);
    crew->quit = true;
    pthread_cond_broadcast(&crew->work);
    int waited = 0;
    while (crew->alive > 0 && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&crew->ended, &crew->mutex, &until);
    bool all = crew->alive == 0;
    pthread_mutex_unlock(&crew->mutex);
    if (!all)
        return false;
    for (int i = 0; i < crew->count; i++)
        rv_thread_join(&crew->threads[i]);
    pthread_cond_destroy(&crew->work);
    pthread_cond_destroy(&crew->ended);
    pthread_mutex_destroy(&crew->mutex);
    return true;
}

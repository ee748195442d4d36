/* The threads that call the handler. A handler that hangs keeps its thread; the others go on. */
#include "client/transport/agent_priv.h"

#include <errno.h>
#include <time.h>

static void pool_call(struct thread_pool *pool, struct rv_request *request)
{
    pool->agent->options.handler(request, pool->agent->options.user);
}

static void pool_run(void *self)
{
    struct thread_pool *pool = self;
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->first == NULL && !pool->quit)
            pthread_cond_wait(&pool->work, &pool->mutex);
        if (pool->first == NULL)
            break;
        struct rv_request *request = pool->first;
        pool->first = request->next;
        pthread_mutex_unlock(&pool->mutex);
        pool_call(pool, request);
        pthread_mutex_lock(&pool->mutex);
    }
    pool->alive--;
    pthread_cond_signal(&pool->ended);
    pthread_mutex_unlock(&pool->mutex);
}

enum rv_err rv_thread_pool_start(struct thread_pool *pool, struct rv_agent *agent, int count)
{
    pool->agent = agent;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_lock(&pool->mutex);
    enum rv_err err = RV_OK;
    while (pool->count < count && err == RV_OK) {
        err = rv_thread_start(&pool->threads[pool->count], "reeve-handler", pool_run, pool);
        if (err == RV_OK) {
            pool->count++;
            pool->alive++;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return err;
}

void rv_thread_pool_give(struct thread_pool *pool, struct rv_request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&pool->mutex);
    if (pool->first == NULL)
        pool->first = request;
    else
        pool->last->next = request;
    pool->last = request;
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

bool rv_thread_pool_stop(struct thread_pool *pool, int64_t grace_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(grace_ms / 1000);
    pthread_mutex_lock(&pool->mutex);
    pool->quit = true;
    pthread_cond_broadcast(&pool->work);
    int waited = 0;
    while (pool->alive > 0 && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&pool->ended, &pool->mutex, &until);
    bool all = pool->alive == 0;
    pthread_mutex_unlock(&pool->mutex);
    if (!all)
        return false;
    for (int i = 0; i < pool->count; i++)
        rv_thread_join(&pool->threads[i]);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->mutex);
    return true;
}

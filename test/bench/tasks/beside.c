/* What a submission costs beside a backup and a storm of lists.
 *
 *   tasks_beside URL SECONDS
 *
 * Submits one task after the other, so long alone, then so long beside readers: one that takes one
 * backup after the other, and two that list tasks page by page, all as fast as they can. Prints
 * lines "beside.<what> <number> <unit>", last the ratio of the two p99. Exits 1 when no backup came
 * to its end meanwhile. */
#include "reeve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LISTERS = 2, SAMPLES_MAX = 1000000 };

struct reader {
    const char *url;
    pthread_t thread;
    long done;
    long long bytes;
};

static atomic_bool over;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(struct rv_client *client, const char *what)
{
    fprintf(stderr, "tasks_beside: %s: %s\n", what, client ? rv_client_error(client) : "no client");
    exit(1);
}

static struct rv_client *client_open(const char *url)
{
    struct rv_client *client = rv_client_open(url, NULL);
    if (client == NULL)
        die(NULL, url);
    return client;
}

static int bytes_count(const char *bytes, size_t count, void *user)
{
    struct reader *reader = user;
    (void)bytes;
    reader->bytes += (long long)count;
    return 0;
}

static void *backups_take(void *self)
{
    struct reader *reader = self;
    struct rv_client *client = client_open(reader->url);
    while (!atomic_load(&over)) {
        struct rv_answer answer;
        struct rv_call call = {
            .path = "/v1/backup", .timeout_ms = -1, .on_bytes = bytes_count, .user = reader};
        if (rv_client_request(client, &call, &answer) != RV_RESULT_OK)
            die(client, "backup");
        rv_answer_free(&answer);
        reader->done++;
    }
    rv_client_close(client);
    return NULL;
}

static void *tasks_list(void *self)
{
    struct reader *reader = self;
    struct rv_client *client = client_open(reader->url);
    char path[80] = "/v1/tasks?limit=100";
    while (!atomic_load(&over)) {
        struct rv_answer answer;
        struct rv_call call = {.path = path};
        if (rv_client_request(client, &call, &answer) != RV_RESULT_OK)
            die(client, "list");
        const char *next = strstr(answer.body, "\"next\":\"");
        snprintf(path, sizeof path, "/v1/tasks?limit=100%s%.13s", next ? "&after=" : "",
                 next ? next + strlen("\"next\":\"") : "");
        rv_answer_free(&answer);
        reader->done++;
    }
    rv_client_close(client);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Milliseconds that 99 of 100 submissions took at most. */
static double submit_for(struct rv_client *client, double duration, const char *name)
{
    double *took = calloc(SAMPLES_MAX, sizeof *took);
    double end = seconds() + duration;
    int count = 0;
    if (took == NULL)
        exit(1);
    while (count < SAMPLES_MAX && seconds() < end) {
        struct rv_submission task = {.workflow = "bench/three", .input = "{\"orderId\":1}"};
        struct rv_receipt receipt;
        double begin = seconds();
        if (rv_client_submit(client, &task, &receipt) != RV_RESULT_OK)
            die(client, "submit");
        took[count++] = (seconds() - begin) * 1e3;
    }
    qsort(took, (size_t)count, sizeof *took, by_size);
    double p99 = took[count * 99 / 100];
    printf("beside.%s.p50 %.2f ms\n", name, took[count / 2]);
    printf("beside.%s.p99 %.2f ms of %d\n", name, p99, count);
    free(took);
    return p99;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    double duration = strtod(argv[2], NULL);
    struct reader readers[1 + LISTERS] = {{.url = NULL}};
    struct rv_client *client = client_open(argv[1]);
    double quiet = submit_for(client, duration, "quiet");
    for (int i = 0; i <= LISTERS; i++) {
        readers[i].url = argv[1];
        if (pthread_create(&readers[i].thread, NULL, i == 0 ? backups_take : tasks_list,
                           &readers[i]) != 0)
            return 1;
    }
    double busy = submit_for(client, duration, "busy");
    atomic_store(&over, true);
    long lists = 0;
    for (int i = 0; i <= LISTERS; i++) {
        pthread_join(readers[i].thread, NULL);
        lists += i > 0 ? readers[i].done : 0;
    }
    rv_client_close(client);
    printf("beside.lists %.0f /s\n", (double)lists / duration);
    printf("beside.backups %ld, %.0f MiB/s\n", readers[0].done,
           (double)readers[0].bytes / (1 << 20) / duration);
    printf("beside.p99_ratio %.2f\n", busy / quiet);
    return readers[0].done > 0 ? 0 : 1;
}

/* The submitter of the throughput figures, and their judge.
 *
 *   bench_submit URL publish
 *   bench_submit URL load TASKS      closed loop, a window of batches in flight; then every task
 * is read back
 *   bench_submit URL one TASKS       one task at a time, submit to known end
 *   bench_submit URL explain TIMES   why a task stands where it stands, over and over the tasks
 * whose ids are read from stdin, in no order
 *
 * Prints lines "tasks.<what> <number> <unit>". Exits 1 when a task has not ended as it should. */
#include "../../lib/workflow.h"
#include "reeve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_TASKS = 250, WINDOW_BATCHES = 8, STEPS = 3 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(struct rv_client *client, const char *what)
{
    fprintf(stderr, "bench_submit: %s: %s\n", what, rv_client_error(client));
    exit(1);
}

static void publish(struct rv_client *client)
{
    struct rv_answer answer;
    struct rv_call call = {.method = "PUT",
                           .path = "/v1/workflows",
                           .body = workflow_file("bench/three"),
                           .content_type = "application/yaml"};
    if (rv_client_request(client, &call, &answer) != RV_RESULT_OK)
        die(client, "publish");
    rv_answer_free(&answer);
}

static void batch_submit(struct rv_client *client, int first, int count,
                         struct rv_receipt *receipts)
{
    static char inputs[BATCH_TASKS][80];
    struct rv_submission items[BATCH_TASKS];
    memset(items, 0, sizeof items);
    for (int i = 0; i < count; i++) {
        snprintf(inputs[i], sizeof inputs[i], "{\"orderId\":%d,\"sku\":\"A-1\",\"quantity\":2}",
                 first + i);
        items[i].workflow = "bench/three";
        items[i].input = inputs[i];
        items[i].without_key = 1;
    }
    if (rv_client_submit_many(client, items, (size_t)count, receipts) != RV_RESULT_OK)
        die(client, "submit");
}

static void wait_for(struct rv_client *client, const char *task)
{
    char state[16];
    if (rv_client_wait(client, task, 60000, state, NULL) != RV_RESULT_OK)
        die(client, "wait");
    if (strcmp(state, "processed") != 0) {
        fprintf(stderr, "bench_submit: task %s is %s\n", task, state);
        exit(1);
    }
}

/* Every task of the run is processed and its output is that of its third step. */
static void verify(struct rv_client *client, const struct rv_receipt *receipts, int count)
{
    for (int i = 0; i < count; i++) {
        char path[80], expected[80];
        struct rv_answer answer;
        snprintf(path, sizeof path, "/v1/tasks/%s", receipts[i].task);
        struct rv_call call = {.path = path};
        if (rv_client_request(client, &call, &answer) != RV_RESULT_OK)
            die(client, "verify");
        snprintf(expected, sizeof expected, "{\"ok\":true,\"step\":\"%s-%d\"}", receipts[i].task,
                 STEPS);
        if (strstr(answer.body, "\"processed\"") == NULL || strstr(answer.body, expected) == NULL) {
            fprintf(stderr, "bench_submit: not as it should be: %s\n", answer.body);
            exit(1);
        }
        rv_answer_free(&answer);
    }
}

static void load(struct rv_client *client, int tasks)
{
    struct rv_receipt *receipts = calloc((size_t)tasks, sizeof *receipts);
    if (receipts == NULL)
        exit(1);
    double begin = seconds();
    int waited = 0;
    for (int sent = 0; sent < tasks;) {
        int count = tasks - sent < BATCH_TASKS ? tasks - sent : BATCH_TASKS;
        batch_submit(client, sent, count, receipts + sent);
        sent += count;
        /* The last of a batch is mostly the last to end; what is not waited for here is below. */
        if (sent - waited >= WINDOW_BATCHES * BATCH_TASKS) {
            waited += BATCH_TASKS;
            wait_for(client, receipts[waited - 1].task);
        }
    }
    for (int i = waited; i < tasks; i++)
        wait_for(client, receipts[i].task);
    double took = seconds() - begin;
    printf("tasks.rate %.0f tasks/s\n", tasks / took);
    printf("tasks.steps %.0f steps/s\n", STEPS * tasks / took);
    fflush(stdout);
    verify(client, receipts, tasks);
    printf("tasks.verified %d tasks\n", tasks);
    free(receipts);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void one(struct rv_client *client, int tasks)
{
    double *took = calloc((size_t)tasks, sizeof *took);
    if (took == NULL)
        exit(1);
    for (int i = 0; i < tasks; i++) {
        char body[160];
        struct rv_answer answer;
        struct rv_call call = {.path = "/v1/tasks?wait=PT20S", .body = body};
        snprintf(body, sizeof body,
                 "{\"workflow\":\"bench/three\",\"input\":{\"orderId\":%d,\"sku\":\"A-1\"}}", i);
        double begin = seconds();
        if (rv_client_request(client, &call, &answer) != RV_RESULT_OK)
            die(client, "submit one");
        took[i] = (seconds() - begin) * 1e3;
        if (strstr(answer.body, "\"processed\"") == NULL)
            die(client, answer.body);
        rv_answer_free(&answer);
    }
    qsort(took, (size_t)tasks, sizeof *took, by_size);
    printf("tasks.one.p50 %.2f ms\n", took[tasks / 2]);
    printf("tasks.one.p99 %.2f ms\n", took[tasks * 99 / 100]);
    free(took);
}

static void explain(struct rv_client *client, int times)
{
    enum { IDS_MAX = 100000, ID_BYTES = 16 };
    static char ids[IDS_MAX][ID_BYTES];
    size_t count = 0;
    double *took = calloc((size_t)times, sizeof *took);
    while (count < IDS_MAX && fgets(ids[count], ID_BYTES, stdin) != NULL) {
        ids[count][strcspn(ids[count], "\n")] = '\0';
        count++;
    }
    if (took == NULL || count == 0)
        exit(1);
    for (int i = 0; i < times; i++) {
        char path[80];
        struct rv_answer answer;
        snprintf(path, sizeof path, "/v1/tasks/%s/explain", ids[(size_t)i * 7919 % count]);
        struct rv_call call = {.path = path};
        double begin = seconds();
        if (rv_client_request(client, &call, &answer) != RV_RESULT_OK)
            die(client, "explain");
        took[i] = (seconds() - begin) * 1e3;
        if (strstr(answer.body, "\"waitsFor\"") == NULL || strstr(answer.body, "\"bench\"") == NULL)
            die(client, answer.body);
        rv_answer_free(&answer);
    }
    qsort(took, (size_t)times, sizeof *took, by_size);
    printf("tasks.explain.p50 %.2f ms\n", took[times / 2]);
    printf("tasks.explain.p99 %.2f ms\n", took[times * 99 / 100]);
    printf("tasks.explain.max %.2f ms\n", took[times - 1]);
    free(took);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    struct rv_client *client = rv_client_open(argv[1], NULL);
    if (client == NULL)
        return 1;
    if (strcmp(argv[2], "publish") == 0)
        publish(client);
    else if (strcmp(argv[2], "load") == 0 && argc > 3)
        load(client, (int)strtol(argv[3], NULL, 10));
    else if (strcmp(argv[2], "one") == 0 && argc > 3)
        one(client, (int)strtol(argv[3], NULL, 10));
    else if (strcmp(argv[2], "explain") == 0 && argc > 3)
        explain(client, (int)strtol(argv[3], NULL, 10));
    rv_client_close(client);
    return 0;
}

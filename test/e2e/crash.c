/* kill -9 of the server at random moments under load: nothing that was acknowledged may be lost.
 *
 *   crash REEVE_PROGRAM KILLS [SEED]
 *
 * A submitter and an agent, processes of their own, keep a ledger of what the server acknowledged:
 * tasks, and replies. The server is killed after a random number of acknowledgements and started
 * again on its store. In the end every acknowledged task must have ended, and every acknowledged
 * reply must be what its step recorded. */
#include "../lib/workflow.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/prng.h"
#include "json/json.h"
#include "reeve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ACKS_BETWEEN_MAX = 400, SUBMIT_TASKS = 5, START_MS_MAX = 20000, END_MS_MAX = 60000 };

struct crash {
    char dir[64];
    char url[64];
    char listen[32];
    char store[80];
    const char *program;
    pid_t server;
    int acks; /* read end: a byte for each acknowledgement */
};

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        die("port");
    close(fd);
    return ntohs(address.sin_port);
}

static void server_start(struct crash *c)
{
    c->server = fork();
    if (c->server < 0)
        die("fork");
    if (c->server == 0) {
        char log[80];
        snprintf(log, sizeof log, "%s/server.log", c->dir);
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        execl(c->program, "reeve", "serve", "--listen", c->listen, "--store", c->store,
              (char *)NULL);
        _exit(127);
    }
    struct rv_client *client = rv_client_open(
        c->url, &(struct rv_client_options){.patience_ms = START_MS_MAX});
    struct rv_answer answer;
    struct rv_call call = {.path = "/health/ready"};
    if (client == NULL || rv_client_request(client, &call, &answer) != RV_RESULT_OK)
        die("the server does not start");
    rv_answer_free(&answer);
    rv_client_close(client);
}

static void server_kill(struct crash *c)
{
    int status;
    kill(c->server, SIGKILL);
    waitpid(c->server, &status, 0);
    if (!WIFSIGNALED(status))
        die("the server had ended by itself");
}

static void tell(int acks)
{
    if (write(acks, "+", 1) != 1)
        _exit(0);
}

static struct rv_client *child_client(const struct crash *c)
{
    struct rv_client *client = rv_client_open(
        c->url, &(struct rv_client_options){.patience_ms = END_MS_MAX});
    if (client == NULL)
        _exit(1);
    return client;
}

static volatile sig_atomic_t stopped;

static void on_stop(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

/* Writes "task-id" lines for what was acknowledged. */
static void submitter(const struct crash *c, int acks)
{
    char path[80];
    snprintf(path, sizeof path, "%s/tasks", c->dir);
    FILE *ledger = fopen(path, "w");
    struct rv_client *client = child_client(c);
    if (ledger == NULL)
        _exit(1);
    for (int n = 0; !stopped; n += SUBMIT_TASKS) {
        struct rv_submission items[SUBMIT_TASKS] = {{.workflow = NULL}};
        struct rv_receipt receipts[SUBMIT_TASKS];
        char inputs[SUBMIT_TASKS][32], keys[SUBMIT_TASKS][32];
        for (int i = 0; i < SUBMIT_TASKS; i++) {
            snprintf(inputs[i], sizeof inputs[i], "{\"n\":%d}", n + i);
            snprintf(keys[i], sizeof keys[i], "key-%d", n + i);
            items[i].workflow = "crash/two";
            items[i].input = inputs[i];
            items[i].key = keys[i];
        }
        memset(receipts, 0, sizeof receipts);
        rv_client_submit_many(client, items, SUBMIT_TASKS, receipts);
        for (int i = 0; i < SUBMIT_TASKS; i++) {
            if (receipts[i].status != 200 && receipts[i].status != 201)
                continue;
            fprintf(ledger, "%s %d\n", receipts[i].task, n + i);
            tell(acks);
        }
        fflush(ledger);
    }
    fclose(ledger);
    rv_client_close(client);
    _exit(0);
}

/* One exchange, repeated until the server answers it; false when it is time to stop. */
static bool exchange(struct rv_client *client, const char *path, const struct rv_buf *body,
                     struct rv_answer *ret_answer)
{
    struct rv_call call = {
        .path = path, .body = body->at, .body_bytes = body->len, .repeatable = 1};
    while (!stopped) {
        if (rv_client_request(client, &call, ret_answer) == RV_RESULT_OK)
            return true;
        rv_answer_free(ret_answer);
    }
    return false;
}

/* Replies to all requests in `answer`: the output names the step and the attempt. */
static size_t replies_make(const struct rv_json *answer, struct rv_buf *body)
{
    const struct rv_json *requests = rv_json_get(answer, RV_STR("requests"));
    size_t count = requests ? requests->len : 0;
    rv_buf_reset(body);
    rv_buf_lit(body, "{\"replies\":[");
    for (size_t i = 0; i < count; i++) {
        const struct rv_json *request = &requests->u.items[i];
        struct rv_str step = rv_json_str(rv_json_get(request, RV_STR("step")));
        struct rv_str token = rv_json_str(rv_json_get(request, RV_STR("token")));
        rv_buf_printf(body,
                      "%s{\"step\":\"%.*s\",\"token\":\"%.*s\",\"output\":{\"n\":", i ? "," : "",
                      RV_STR_FMT(step), RV_STR_FMT(token));
        rv_json_write(body, rv_json_at(request, RV_STR("/input/n")));
        rv_buf_printf(body, ",\"by\":\"%.*s/%.*s\"}}", RV_STR_FMT(step), RV_STR_FMT(token));
    }
    rv_buf_lit(body, "]}");
    return count;
}

/* Writes "step token" lines for what was acknowledged with 200. */
static void replies_record(FILE *ledger, const struct rv_json *requests,
                           const struct rv_json *answer, int acks)
{
    const struct rv_json *results = rv_json_get(answer, RV_STR("results"));
    for (size_t i = 0; results != NULL && i < results->len; i++) {
        int64_t status = 0;
        const struct rv_json *request = &rv_json_get(requests, RV_STR("requests"))->u.items[i];
        if (!rv_json_int(rv_json_get(&results->u.items[i], RV_STR("status")), &status) ||
            status != 200)
            continue;
        fprintf(ledger, "%.*s %.*s\n",
                RV_STR_FMT(rv_json_str(rv_json_get(request, RV_STR("step")))),
                RV_STR_FMT(rv_json_str(rv_json_get(request, RV_STR("token")))));
        tell(acks);
    }
    fflush(ledger);
}

static void agent_run(const struct crash *c, int acks)
{
    char path[80], confirm[64] = "";
    snprintf(path, sizeof path, "%s/replies", c->dir);
    FILE *ledger = fopen(path, "w");
    struct rv_client *client = child_client(c);
    struct rv_buf body;
    struct rv_arena arena;
    rv_buf_init(&body, RV_BODY_BYTES_MAX);
    rv_arena_init(&arena, 0);
    for (int n = 0; !stopped; n++) {
        struct rv_answer polled, replied;
        struct rv_json requests, results;
        rv_arena_reset(&arena);
        rv_buf_reset(&body);
        rv_buf_printf(&body,
                      "{\"instance\":\"c1\",\"boot\":\"b%d\",\"max\":64,\"waitMs\":500,"
                      "\"poll\":\"p%d\",\"confirm\":[%s]}",
                      (int)getpid(), n, confirm);
        if (!exchange(client, "/v1/agents/crasher/requests", &body, &polled))
            break;
        snprintf(confirm, sizeof confirm, "\"p%d\"", n);
        struct rv_str text = {polled.body, polled.body_bytes};
        if (rv_json_parse(&arena, text, RV_JSON_DEPTH_MAX, &requests, NULL) != RV_OK)
            _exit(1);
        if (replies_make(&requests, &body) > 0) {
            if (!exchange(client, "/v1/replies", &body, &replied))
                break;
            text = (struct rv_str){replied.body, replied.body_bytes};
            if (rv_json_parse(&arena, text, RV_JSON_DEPTH_MAX, &results, NULL) != RV_OK)
                _exit(1);
            replies_record(ledger, &requests, &results, acks);
            rv_answer_free(&replied);
        }
        rv_answer_free(&polled);
    }
    fclose(ledger);
    _exit(0);
}

static pid_t child(struct crash *c, int acks, void (*run)(const struct crash *, int))
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        close(c->acks);
        sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_stop}, NULL);
        run(c, acks);
    }
    return pid;
}

/* Waits until `count` more acknowledgements have come. */
static bool acks_wait(const struct crash *c, uint64_t count, int64_t ms)
{
    int64_t end = mono_ms() + ms;
    char bytes[256];
    while (count > 0) {
        struct pollfd fd = {.fd = c->acks, .events = POLLIN};
        int64_t left = end - mono_ms();
        if (left <= 0 || poll(&fd, 1, (int)left) <= 0)
            return false;
        ssize_t n = read(c->acks, bytes, count < sizeof bytes ? count : sizeof bytes);
        if (n <= 0)
            return false;
        count -= (uint64_t)n;
    }
    return true;
}

static bool task_right(struct rv_client *client, const char *task, int n)
{
    char state[16], expected[64];
    struct rv_answer answer = {.body = NULL};
    snprintf(expected, sizeof expected, "\"n\":%d,", n);
    bool right = rv_client_wait(client, task, END_MS_MAX, state, &answer) == RV_RESULT_OK &&
                 strcmp(state, "processed") == 0 && strstr(answer.body, expected) != NULL;
    if (!right)
        printf("# task %s (n %d): %s\n", task, n, answer.body ? answer.body : "no answer");
    rv_answer_free(&answer);
    return right;
}

/* The step recorded the very reply that was acknowledged. */
static bool reply_right(struct rv_client *client, const char *step, const char *token)
{
    char path[80], expected[128];
    struct rv_answer answer = {.body = NULL};
    snprintf(path, sizeof path, "/v1/tasks/%.13s/steps", step);
    snprintf(expected, sizeof expected, "\"by\":\"%s/%s\"", step, token);
    struct rv_call call = {.path = path};
    bool right = rv_client_request(client, &call, &answer) == RV_RESULT_OK &&
                 strstr(answer.body, expected) != NULL;
    if (!right)
        printf("# reply %s %s: %s\n", step, token, answer.body ? answer.body : "no answer");
    rv_answer_free(&answer);
    return right;
}

/* How many lines of the ledger do not hold. */
static int verify(const struct crash *c, const char *name, bool replies, int *ret_lines)
{
    char path[80], line[96];
    int wrong = 0;
    snprintf(path, sizeof path, "%s/%s", c->dir, name);
    FILE *ledger = fopen(path, "r");
    struct rv_client *client = rv_client_open(c->url, NULL);
    if (ledger == NULL || client == NULL)
        die("ledger");
    *ret_lines = 0;
    while (fgets(line, sizeof line, ledger) != NULL) {
        char *second = strchr(line, ' ');
        if (second == NULL)
            die("ledger line");
        *second++ = '\0';
        second[strcspn(second, "\n")] = '\0';
        ++*ret_lines;
        wrong += replies ? !reply_right(client, line, second)
                         : !task_right(client, line, (int)strtol(second, NULL, 10));
    }
    fclose(ledger);
    rv_client_close(client);
    return wrong;
}

static void publish(const struct crash *c)
{
    struct rv_client *client = rv_client_open(c->url, NULL);
    struct rv_answer answer;
    struct rv_call call = {.method = "PUT",
                           .path = "/v1/workflows",
                           .body = workflow_file("crash/two"),
                           .content_type = "application/yaml"};
    if (rv_client_request(client, &call, &answer) != RV_RESULT_OK) {
        printf("# %s\n", rv_client_error(client));
        die("publish");
    }
    rv_answer_free(&answer);
    rv_client_close(client);
}

static bool integrity(const struct crash *c)
{
    char path[80], line[64] = "";
    snprintf(path, sizeof path, "%s/check", c->dir);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        execlp("sqlite3", "sqlite3", c->store, "PRAGMA integrity_check", (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, NULL, 0) != pid)
        die("sqlite3");
    FILE *out = fopen(path, "r");
    bool whole = out != NULL && fgets(line, sizeof line, out) != NULL &&
                 strncmp(line, "ok", 2) == 0;
    if (out != NULL)
        fclose(out);
    return whole;
}

static void remove_folder(const struct crash *c)
{
    const char *const files[] = {"tasks",    "replies",      "check",        "server.log",
                                 "store.db", "store.db-wal", "store.db-shm", "store.db.lock"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", c->dir, files[i]);
        unlink(path);
    }
    rmdir(c->dir);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "use: crash REEVE_PROGRAM KILLS [SEED]\n");
        return 2;
    }
    int kills = (int)strtol(argv[2], NULL, 10);
    uint64_t seed = argc > 3 ? (uint64_t)strtoull(argv[3], NULL, 10) : (uint64_t)getpid();
    struct crash c = {.dir = "/tmp/reeve-crash-XXXXXX", .program = argv[1]};
    int pipes[2];
    if (mkdtemp(c.dir) == NULL || pipe(pipes) != 0)
        die("set-up");
    c.acks = pipes[0];
    int port = free_port();
    snprintf(c.listen, sizeof c.listen, "127.0.0.1:%d", port);
    snprintf(c.url, sizeof c.url, "http://127.0.0.1:%d", port);
    snprintf(c.store, sizeof c.store, "%s/store.db", c.dir);
    struct rv_prng prng;
    rv_prng_init(&prng, seed);
    printf("1..4\n# seed %llu, %d kills, %s\n", (unsigned long long)seed, kills, c.dir);
    fflush(stdout);

    server_start(&c);
    publish(&c);
    pid_t submits = child(&c, pipes[1], submitter);
    pid_t works = child(&c, pipes[1], agent_run);
    close(pipes[1]);
    int done = 0;
    while (done < kills && acks_wait(&c, 1 + rv_prng_below(&prng, ACKS_BETWEEN_MAX), END_MS_MAX)) {
        server_kill(&c);
        server_start(&c);
        done++;
    }
    printf("%s 1 - %d of %d kills, and work went on after each\n", done == kills ? "ok" : "not ok",
           done, kills);
    kill(submits, SIGTERM);
    waitpid(submits, NULL, 0);
    int tasks, replies;
    bool tasks_right = verify(&c, "tasks", false, &tasks) == 0 && tasks > done;
    printf("%s 2 - all of %d acknowledged tasks ended as they should\n",
           tasks_right ? "ok" : "not ok", tasks);
    kill(works, SIGTERM);
    waitpid(works, NULL, 0);
    bool replies_right = verify(&c, "replies", true, &replies) == 0 && replies > done;
    printf("%s 3 - all of %d acknowledged replies were recorded\n", replies_right ? "ok" : "not ok",
           replies);
    kill(c.server, SIGTERM);
    waitpid(c.server, NULL, 0);
    bool whole = integrity(&c);
    printf("%s 4 - the store is whole\n", whole ? "ok" : "not ok");
    if (done != kills || !tasks_right || !replies_right || !whole)
        return 1; /* what is in its folder may tell why */
    remove_folder(&c);
    return 0;
}

/* Whole programs, run as libraries: the server's start and stop, and commands of the command line.
 * Either they do what they do with enough memory, or they end with a code and a reason. */
#include "api/access_log.h"
#include "base/limits.h"
#include "cli/cli.h"
#include "faults.h"
#include "json/json.h"
#include "outbound/egress.h"
#include "server/server.h"
#include "torture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATH_BYTES = 256, REQUEST_BYTES = 8192, SAID_BYTES = 16384 };

/* ---- what a program says ---- */

struct said {
    int out; /* files that stand in for stdout and stderr */
    int err;
    int kept_out; /* the true ones */
    int kept_err;
};

static int file_without_name(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder != NULL ? folder : "/tmp", O_TMPFILE | O_RDWR, 0600);
    EXPECT(fd >= 0, "no file: %s", strerror(errno));
    return fd;
}

static void said_begin(struct said *said)
{
    fflush(NULL);
    said->out = file_without_name();
    said->err = file_without_name();
    said->kept_out = dup(STDOUT_FILENO);
    said->kept_err = dup(STDERR_FILENO);
    dup2(said->out, STDOUT_FILENO);
    dup2(said->err, STDERR_FILENO);
}

static size_t file_read(int fd, char *text)
{
    ssize_t n = pread(fd, text, SAID_BYTES - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

static void said_end(struct said *said, char *out, char *err)
{
    fflush(NULL);
    dup2(said->kept_out, STDOUT_FILENO);
    dup2(said->kept_err, STDERR_FILENO);
    close(said->kept_out);
    close(said->kept_err);
    file_read(said->out, out);
    file_read(said->err, err);
}

/* ---- the server ---- */

/* The signal that ends it waits already when it begins. */
static int server_once(const struct rv_server_options *options)
{
    sigset_t term;
    int result;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    kill(getpid(), SIGTERM);
    IN_PRODUCT(result = rv_server_run(options));
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    while (sigtimedwait(&term, NULL, &(struct timespec){0}) > 0) {
    }
    return result;
}

static void store_remove(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", ".lock"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char name[PATH_BYTES + 8];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static void run_server(struct torture *t)
{
    char path[PATH_BYTES];
    static char out[SAID_BYTES], err[SAID_BYTES];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/torture-%ld.db", folder != NULL ? folder : "/tmp",
             (long)getpid());
    store_remove(path);
    struct rv_egress *egress = rv_egress_new();
    EXPECT(egress != NULL, "no list of places");
    const struct rv_str listen = RV_STR("127.0.0.1:0");
    struct rv_server_options options = {
        .listens = &listen, .listens_count = 1, .store = path, .egress = egress};
    for (int tries = 0;; tries++) {
        struct said said;
        said_begin(&said);
        int result = server_once(&options);
        said_end(&said, out, err);
        if (result == 0)
            break;
        EXPECT(err[0] != '\0', "the server ended with %d and without a reason", result);
        torture_again(t, RV_ERR_MEMORY, tries, err, __FILE__, __LINE__);
    }
    rv_egress_free(egress);
    EXPECT(strstr(out, "listening on") != NULL, "the server said: %s", out);
    torture_says(t, "listened, and stopped\n");
    store_remove(path);
}

/* ---- a server of a few lines, for the commands ---- */

struct page {
    const char *path; /* begins so */
    const char *body;
};

#define TASK "06DWX3T9H2K4Q"
static const struct page pages[] = {
    {"/v1/tasks/" TASK "/attempts",
     "{\"steps\":[{\"step\":\"" TASK "-1\",\"reference\":\"/do/0/reserve\",\"agent\":\"inventory\","
     "\"state\":\"processing\",\"attempts\":[{\"attempt\":1,\"state\":\"open\","
     "\"attemptAt\":\"2026-11-21T01:30:00.000Z\",\"instance\":\"i1\"}]}],\"attempts\":[]}"},
    {"/v1/tasks/" TASK "/steps",
     "{\"steps\":[{\"step\":\"" TASK "-1\",\"reference\":\"/do/0/reserve\",\"state\":"
     "\"processing\",\"agent\":\"inventory\",\"attempt\":1,\"input\":{\"sku\":\"a\"}}]}"},
    {"/v1/tasks/" TASK "/late-replies", "{\"lateReplies\":[]}"},
    {"/v1/tasks/" TASK "/history",
     "{\"history\":[{\"number\":1,\"command\":\"cancel\",\"options\":\"by-hand\",\"by\":\"ann\","
     "\"reason\":\"it is late\",\"at\":\"2026-11-21T01:30:00.000Z\"}]}"},
    {"/v1/tasks/" TASK "/settle", "{\"task\":\"" TASK "\",\"state\":\"processing\","
                                  "\"suspendedAt\":\"2026-11-21T01:30:00.000Z\"}"},
    {"/v1/tasks/" TASK "/cancel", "{\"task\":\"" TASK "\",\"state\":\"cancelled\"}"},
    {"/v1/tasks/" TASK,
     "{\"task\":\"" TASK "\",\"workflow\":\"shop/order:1.0.0\",\"state\":\"processing\","
     "\"revision\":3,\"direction\":\"forward\",\"priority\":5,\"createdAt\":"
     "\"2026-11-21T01:30:00.000Z\",\"input\":{\"sku\":\"a\"}}"},
    {"/v1/tasks?",
     "{\"tasks\":[{\"task\":\"" TASK
     "\",\"workflow\":\"shop/order:1.0.0\",\"state\":\"processing\","
     "\"createdAt\":\"2026-11-21T01:30:00.000Z\"},{\"task\":\"06DWX3T9H2K4R\",\"workflow\":"
     "\"shop/return:1.0.0\",\"state\":\"error\",\"createdAt\":\"2026-11-21T01:30:01.000Z\"}]}"},
    {"/v1/tasks", "{\"task\":\"" TASK "\",\"state\":\"pending\"}"},
    {"/v1/alerts",
     "{\"alerts\":[{\"alert\":\"06DWX3T9H2K4S\",\"task\":\"" TASK "\",\"kind\":\"no-compensation\","
     "\"raisedAt\":\"2026-11-21T01:30:00.000Z\",\"message\":\"nobody knows how\"}]}"},
    {"/v1/agents",
     "{\"agents\":[{\"agent\":\"inventory\",\"waiting\":3,\"instances\":[{\"instance\":\"i1\","
     "\"seenAt\":\"2026-11-21T01:30:00.000Z\",\"openAttempts\":2,\"polling\":true,"
     "\"connected\":true}]}]}"},
    {"/v1/workflows",
     "{\"workflows\":[{\"workflow\":\"shop/order:1.0.0\",\"hash\":\"abcdef0123456789\","
     "\"publishedAt\":\"2026-11-21T01:30:00.000Z\"}]}"},
    {"/", "{\"live\":true}"},
};

static const char *page_of(const char *path)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        if (strncmp(path, pages[i].path, strlen(pages[i].path)) == 0)
            return pages[i].body;
    return "{}";
}

/* One request, one answer, and the connection is closed. The body, if any, is small. */
static void connection_serve(int fd)
{
    static char request[REQUEST_BYTES];
    static char answer[REQUEST_BYTES];
    size_t have = 0;
    ssize_t n;
    char *end = NULL;
    while (end == NULL && have < sizeof request - 1 &&
           (n = recv(fd, request + have, sizeof request - 1 - have, 0)) > 0) {
        have += (size_t)n;
        request[have] = '\0';
        end = strstr(request, "\r\n\r\n");
    }
    const char *length = end != NULL ? strcasestr(request, "\r\nContent-Length:") : NULL;
    size_t body = length != NULL ? strtoul(length + 17, NULL, 10) : 0;
    while (end != NULL && have < (size_t)(end + 4 - request) + body &&
           (n = recv(fd, request + have, sizeof request - 1 - have, 0)) > 0)
        have += (size_t)n;
    const char *path = strchr(request, ' ');
    const char *text = page_of(path != NULL ? path + 1 : "/");
    int bytes = snprintf(answer, sizeof answer,
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         strlen(text), text);
    (void)send(fd, answer, (size_t)bytes, MSG_NOSIGNAL);
    close(fd);
}

static void *pages_serve(void *self)
{
    int listener = *(int *)self;
    int fd;
    while ((fd = accept(listener, NULL, NULL)) >= 0)
        connection_serve(fd);
    return NULL;
}

/* One for the life of the process. */
static const char *pages_url(void)
{
    static char url[64];
    static int listener;
    pthread_t thread;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof address;
    if (url[0] != '\0')
        return url;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = listener >= 0 && bind(listener, (struct sockaddr *)&address, bytes) == 0 &&
                listen(listener, 16) == 0 &&
                getsockname(listener, (struct sockaddr *)&address, &bytes) == 0 &&
                pthread_create(&thread, NULL, pages_serve, &listener) == 0;
    EXPECT(good, "no server for the commands: %s", strerror(errno));
    pthread_detach(thread);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return url;
}

/* ---- commands ---- */

struct command {
    const char *words[8];
};

static int serve_nothing(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

static enum rv_err nothing_at_rest(const char *store, const char *method, const char *target,
                                   const char *body, int *ret_status, struct rv_buf *ret_body)
{
    (void)method;
    (void)target;
    (void)body;
    (void)ret_status;
    rv_buf_add_str(ret_body, rv_str_of(store));
    return RV_ERR_IN_USE;
}

static int command_once(const struct command *command)
{
    static const struct rv_cli_server server = {.serve = serve_nothing, .at_rest = nothing_at_rest};
    char kept[9][128];
    char *argv[10];
    int argc = 0;
    snprintf(kept[0], sizeof kept[0], "reeve");
    argv[argc++] = kept[0];
    for (int i = 0; i < 8 && command->words[i] != NULL; i++) {
        snprintf(kept[argc], sizeof kept[0], "%s", command->words[i]);
        argv[argc] = kept[argc];
        argc++;
    }
    argv[argc] = NULL;
    int code;
    IN_PRODUCT(code = rv_cli_run(argc, argv, &server));
    return code;
}

/* How long ago something was changes by itself: each number becomes one sign. */
static void numbers_hide(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        bool digit = *from >= '0' && *from <= '9';
        if (!digit)
            *to++ = *from;
        else if (to == text || to[-1] != '#')
            *to++ = '#';
    }
    *to = '\0';
}

static void command_run(struct torture *t, const struct command *command, int wanted)
{
    static char out[SAID_BYTES], err[SAID_BYTES];
    setenv("REEVE_URL", pages_url(), 1);
    setenv("USER", "me", 1);
    unsetenv("REEVE_API_KEY");
    for (int tries = 0;; tries++) {
        struct said said;
        said_begin(&said);
        int code = command_once(command);
        said_end(&said, out, err);
        if (code == wanted && err[0] == '\0')
            break;
        EXPECT(err[0] != '\0', "%s ended with %d and without a reason", command->words[0], code);
        torture_again(t, RV_ERR_MEMORY, tries, err, __FILE__, __LINE__);
    }
    numbers_hide(out);
    for (const char *line = out; *line != '\0';) { /* one by one: a line has its bound */
        size_t len = strcspn(line, "\n");
        torture_says(t, "%.*s\n", (int)(len < 900 ? len : 900), line);
        line += len + (line[len] == '\n');
    }
}

static void run_commands_that_list(struct torture *t)
{
    static const struct command commands[] = {{{"tasks", "--limit", "5", NULL}},
                                              {{"alerts", NULL}},
                                              {{"agents", NULL}},
                                              {{"workflows", NULL}},
                                              {{"tasks", "--json", NULL}}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        command_run(t, &commands[i], 0);
}

static void run_commands_of_a_task(struct torture *t)
{
    static const struct command commands[] = {
        {{"submit", "shop/order", "--input", "{\"sku\":\"a\"}", "--key", "k", NULL}},
        {{"show", TASK, "--json", NULL}},
        {{"cancel", TASK, "--reason", "because", NULL}},
        {{"settle", TASK, "1", "--done", "--late-seen", "0", NULL}},
    };
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        command_run(t, &commands[i], 0);
}

enum { MOST = 120 };

/* ---- the access log ---- */

enum { LOG_LINES = 900, LOG_LINE_BYTES_MAX = 512 };

/* Lines of the file, each whole. */
static uint64_t lines_read(const char *path)
{
    char line[LOG_LINE_BYTES_MAX];
    uint64_t lines = 0;
    FILE *file = fopen(path, "r");
    EXPECT(file != NULL, "%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file) != NULL) {
        struct rv_arena arena;
        struct rv_json parsed;
        rv_arena_init(&arena, 0);
        enum rv_err err = rv_json_parse(&arena, rv_str_of(line), RV_JSON_DEPTH_MAX, &parsed, NULL);
        rv_arena_done(&arena);
        EXPECT(err == RV_OK && strchr(line, '\n') != NULL, "line %llu is not whole: %s",
               (unsigned long long)lines + 1, line);
        lines++;
    }
    fclose(file);
    unlink(path);
    return lines;
}

/* Lines of several lengths, so that each end of the memory falls into another part of a line. */
static void lines_add(struct rv_access_log *log, const struct access_script *script)
{
    static const char *const names[] = {"n", "name", "a longer name \xc3\xa9 \"with\" escapes"};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (int i = 0; i < LOG_LINES; i++) {
        IN_PRODUCT(script->add(log, &(struct rv_access_line){.client = RV_STR("127.0.0.1"),
                                                             .key = rv_str_of(names[i % NAMES]),
                                                             .method = RV_STR("GET"),
                                                             .pattern = RV_STR("/v1/tasks/{task}"),
                                                             .status = 200,
                                                             .us = i}));
        if (i == LOG_LINES / 3)
            IN_PRODUCT(rv_access_log_flush(log));
    }
    IN_PRODUCT(rv_access_log_flush(log));
}

/* Each line is written whole, or counted as dropped. */
void access_log_run(struct torture *t)
{
    char path[PATH_BYTES];
    static char out[SAID_BYTES], err[SAID_BYTES];
    const char *folder = getenv("TMPDIR");
    struct rv_access_log *log;
    struct said said;
    snprintf(path, sizeof path, "%s/torture-%ld.log", folder != NULL ? folder : "/tmp",
             (long)getpid());
    unlink(path);
    for (int tries = 0;; tries++) {
        IN_PRODUCT(log = rv_access_log_open(path));
        if (log != NULL)
            break;
        torture_again(t, RV_ERR_MEMORY, tries, "access log", __FILE__, __LINE__);
    }
    said_begin(&said);
    lines_add(log, t->scenario->script);
    uint64_t dropped = rv_access_log_dropped(log);
    IN_PRODUCT(rv_access_log_close(log));
    said_end(&said, out, err);
    uint64_t written = lines_read(path);
    EXPECT(written + dropped == LOG_LINES, "%llu lines are written and %llu dropped, of %d",
           (unsigned long long)written, (unsigned long long)dropped, LOG_LINES);
    EXPECT(dropped == 0 || faults.failed, "lines are dropped though there is memory");
    EXPECT((dropped > 0) == (strstr(err, "access-log") != NULL), "%llu lines are dropped: %s",
           (unsigned long long)dropped, err);
}

static const struct access_script access_log = {rv_access_log_add};

const struct scenario scenarios_programs[] = {
    {"access_log", access_log_run, &access_log, HARMS_OF_HEAP, 0, false},
    {"server_start", run_server, NULL, HARMS_OF_HEAP, MOST, false},
    {"cli_lists", run_commands_that_list, NULL, HARMS_OF_HEAP, MOST, false},
    {"cli_tasks", run_commands_of_a_task, NULL, HARMS_OF_HEAP, MOST, false},
    {.name = NULL},
};

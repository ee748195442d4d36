/* The agent around the commands. libreeve's threads each run one command at a time; the main thread
 * speaks with the server and gets the signals. What a command is to hear of, a cancel or the end of
 * the agent, comes through its slot's eventfd. */
#include "agent/exec/exec.h"

#include "agent/exec/command.h"
#include "agent/exec/environment.h"
#include "agent/exec/program.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "reeve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How soon a command hears of a cancel when all places are taken. */
enum { RENEW_MS = 1000 };

/* A command under way. */
struct slot {
    struct exec *exec;                /* borrowed */
    const struct rv_request *request; /* borrowed; NULL: none is under way */
    int wake_fd;                      /* owned */
};

struct exec {
    const struct rv_exec_options *options;
    const char *path; /* of the command */
    struct rv_arena arena;
    struct rv_agent *agent; /* owned */
    struct rv_reaper reaper;
    pthread_mutex_t mutex; /* of the slots' requests */
    struct slot slots[RV_EXEC_COMMANDS_MAX];
    int slots_count;
    atomic_uint signals;     /* got so far */
    atomic_bool reaper_gone; /* noticed by a command that could not be started */
};

/* For the signal handler: a process is one exec agent. */
static struct exec *serving;

/* ---- slots ---- */

static struct slot *slot_take(struct exec *exec, const struct rv_request *request)
{
    struct slot *slot = exec->slots;
    pthread_mutex_lock(&exec->mutex);
    while (slot < exec->slots + exec->slots_count && slot->request != NULL)
        slot++;
    rv_assert(slot < exec->slots + exec->slots_count); /* as many as there are threads */
    slot->request = request;
    pthread_mutex_unlock(&exec->mutex);
    return slot;
}

static void slot_give(struct slot *slot)
{
    pthread_mutex_lock(&slot->exec->mutex);
    slot->request = NULL;
    pthread_mutex_unlock(&slot->exec->mutex);
}

static void slot_wake(const struct slot *slot)
{
    uint64_t one = 1;
    ssize_t n = write(slot->wake_fd, &one, sizeof one);
    rv_assert(n == (ssize_t)sizeof one || errno == EAGAIN); /* EAGAIN: it is awake */
}

static void slot_settle(const struct slot *slot)
{
    uint64_t count;
    ssize_t n = read(slot->wake_fd, &count, sizeof count);
    rv_assert(n == (ssize_t)sizeof count || errno == EAGAIN); /* EAGAIN: nobody called */
}

static void on_cancel(struct rv_request *request, void *user)
{
    struct exec *exec = user;
    pthread_mutex_lock(&exec->mutex);
    for (int i = 0; i < exec->slots_count; i++)
        if (exec->slots[i].request == request)
            slot_wake(&exec->slots[i]);
    pthread_mutex_unlock(&exec->mutex);
}

static enum rv_exec_end slot_asked(void *user, int64_t *ret_left_ms)
{
    const struct slot *slot = user;
    slot_settle(slot);
    *ret_left_ms = rv_request_remaining_ms(slot->request);
    enum rv_stop stopped = rv_request_stopped(slot->request);
    if (stopped == RV_STOP_LATE)
        return RV_EXEC_LATE;
    if (stopped == RV_STOP_CANCELLED)
        return RV_EXEC_CANCELLED;
    return atomic_load(&slot->exec->signals) > 1 ? RV_EXEC_HURRIED : RV_EXEC_NOT_STARTED;
}

/* ---- one request ---- */

static char **environment_of(struct rv_arena *arena, const struct exec *exec,
                             const struct rv_request *request)
{
    struct rv_exec_facts facts = {.agent = exec->options->name,
                                  .task = rv_request_task(request),
                                  .step = rv_request_step(request),
                                  .reference = rv_request_reference(request),
                                  .key = rv_request_key(request),
                                  .complete_by = rv_request_complete_by(request),
                                  .traceparent = rv_request_traceparent(request),
                                  .tracestate = rv_request_tracestate(request),
                                  .attempt = rv_request_attempt(request),
                                  .fence = rv_request_fence(request),
                                  .remaining_ms = rv_request_complete_in_ms(request)};
    return rv_exec_environment(arena, environ, &facts);
}

/* The input is a line, so that line tools of the shell read it whole. */
static struct rv_str input_of(struct rv_arena *arena, const struct rv_request *request)
{
    size_t bytes;
    const char *input = rv_request_input(request, &bytes);
    char *line = rv_arena_bytes(arena, bytes + 1);
    if (line == NULL)
        return RV_STR_NONE;
    memcpy(line, input, bytes);
    line[bytes] = '\n';
    return (struct rv_str){line, bytes + 1};
}

/* Runs the command, unless there is no memory for that. */
static struct rv_exec_result request_run(struct exec *exec, struct rv_request *request,
                                         struct rv_arena *arena, struct rv_buf *output,
                                         struct rv_exec_tail *tail)
{
    struct slot *slot = slot_take(exec, request);
    struct rv_passing passing = {.agent = exec->options->name,
                                 .task = rv_request_task(request),
                                 .step = rv_request_step(request),
                                 .attempt = rv_request_attempt(request)};
    struct rv_exec_command command = {.path = exec->path,
                                      .arguments = exec->options->command,
                                      .environment = environment_of(arena, exec, request),
                                      .input = input_of(arena, request),
                                      .reaper = &exec->reaper,
                                      .asked = slot_asked,
                                      .user = slot,
                                      .wake_fd = slot->wake_fd,
                                      .passing = &passing};
    struct rv_exec_result result = {.end = RV_EXEC_NOT_STARTED, .number = ENOMEM};
    if (command.environment != NULL && command.input.at != NULL)
        result = rv_command_run(&command, output, tail);
    bool absent;
    if (result.end == RV_EXEC_NOT_STARTED && result.number != EPIPE && result.number != ENOMEM)
        result.why = rv_program_wrong(arena, exec->path, getenv("PATH"), &absent);
    rv_passing_report(&passing);
    slot_give(slot);
    return result;
}

static void handle(struct rv_request *request, void *user)
{
    struct exec *exec = user;
    struct rv_exec_outcome outcome;
    struct rv_exec_tail tail = {.len = 0};
    struct rv_arena arena;
    struct rv_buf output;
    rv_arena_init(&arena, 0);
    rv_buf_init(&output, RV_PAYLOAD_BYTES_MAX);
    struct rv_exec_result result = request_run(exec, request, &arena, &output, &tail);
    rv_exec_outcome(&arena, &result, &outcome);
    if (outcome.output.at != NULL)
        rv_request_done(request, outcome.output.at);
    else
        rv_request_fail(request, &outcome.failure);
    rv_buf_done(&output);
    rv_arena_done(&arena);
    if (result.end == RV_EXEC_NOT_STARTED && result.number == EPIPE) {
        atomic_store(&exec->reaper_gone, true);
        rv_agent_stop(exec->agent);
    }
}

/* ---- the agent ---- */

/* The first one lets what runs come to its end, the second does not. */
static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    struct exec *exec = serving;
    if (atomic_fetch_add(&exec->signals, 1) == 0)
        rv_agent_stop(exec->agent);
    else
        for (int i = 0; i < exec->slots_count; i++)
            slot_wake(&exec->slots[i]);
    errno = saved;
}

static void signals_take(void (*handler)(int number))
{
    static const int asked[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        sigaction(asked[i], &action, NULL);
}

/* A pipe must not get the number of a standard stream that whoever started us has closed. */
static bool standard_streams_open(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

static bool slots_open(struct exec *exec, int count)
{
    pthread_mutex_init(&exec->mutex, NULL);
    for (int i = 0; i < count; i++) {
        exec->slots[i] = (struct slot){.exec = exec,
                                       .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        if (exec->slots[i].wake_fd < 0)
            return false;
        exec->slots_count++;
    }
    return true;
}

static void exec_free(struct exec *exec)
{
    for (int i = 0; i < exec->slots_count; i++)
        close(exec->slots[i].wake_fd);
    pthread_mutex_destroy(&exec->mutex);
    rv_arena_done(&exec->arena);
    free(exec);
}

__attribute__((format(printf, 3, 4))) static enum rv_err
fail(struct rv_exec_fault *fault, enum rv_err err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(fault->message, sizeof fault->message, format, args);
    va_end(args);
    return err;
}

/* Finds all that can be wrong before the first request is taken. */
static enum rv_err exec_prepare(struct exec *exec, struct rv_exec_fault *fault)
{
    const struct rv_exec_options *options = exec->options;
    const char *why;
    if (options->max < 1 || options->max > RV_EXEC_COMMANDS_MAX)
        return fail(fault, RV_ERR_INVALID, "--max %d: must be 1 to %d", options->max,
                    RV_EXEC_COMMANDS_MAX);
    exec->path = rv_exec_find(&exec->arena, options->command[0], getenv("PATH"), &why);
    if (exec->path == NULL)
        return fail(fault, RV_ERR_INVALID, "the command cannot be run: %s", why);
    if (!standard_streams_open() || !slots_open(exec, options->max))
        return fail(fault, RV_ERR_IO, "cannot open file descriptors: %s", strerrordesc_np(errno));
    if (rv_reaper_start(&exec->reaper) != RV_OK)
        return fail(fault, RV_ERR_IO, "cannot start processes: %s", strerrordesc_np(errno));
    return RV_OK;
}

/* libreeve's messages. */
static void on_log(enum rv_agent_log level, const char *message, void *user)
{
    static const enum rv_log_level levels[] = {[RV_AGENT_LOG_INFO] = RV_LOG_INFO,
                                               [RV_AGENT_LOG_WARNING] = RV_LOG_WARNING,
                                               [RV_AGENT_LOG_ERROR] = RV_LOG_ERROR};
    const struct exec *exec = user;
    rv_log(levels[level], "agent", RV_LOG_STR("agent", rv_str_of(exec->options->name)),
           RV_LOG_STR("message", rv_str_of(message)));
}

static enum rv_err agent_run(struct exec *exec, struct rv_exec_fault *fault)
{
    const struct rv_exec_options *options = exec->options;
    struct rv_agent_options agent = {.name = options->name,
                                     .instance = options->instance,
                                     .handler = handle,
                                     .user = exec,
                                     .threads = options->max,
                                     .max = options->max,
                                     .tries_max = 1, /* once for each attempt */
                                     .on_cancel = on_cancel,
                                     .log = on_log,
                                     .renew_ms = RENEW_MS};
    exec->agent = rv_agent_open(options->url, &agent);
    if (exec->agent == NULL)
        return RV_ERR_INVALID; /* libreeve has logged why */
    serving = exec;
    signals_take(on_signal);
    rv_log(RV_LOG_INFO, "agent-works", RV_LOG_STR("agent", rv_str_of(options->name)),
           RV_LOG_STR("command", rv_str_of(exec->path)), RV_LOG_INT("max", options->max));
    int result = rv_agent_run(exec->agent);
    signals_take(SIG_IGN); /* nothing is left that could be ended sooner */
    rv_agent_close(exec->agent);
    rv_passing_close(options->name);
    if (atomic_load(&exec->reaper_gone))
        return fail(fault, RV_ERR_IO,
                    "the process reeve-reaper has exited, and without this process the agent "
                    "cannot start commands; restart the agent");
    if (result == RV_RESULT_MEMORY)
        return fail(fault, RV_ERR_IO,
                    "not enough memory or threads for --max %d; give a lower number", options->max);
    return RV_OK;
}

enum rv_err rv_exec_run(const struct rv_exec_options *options, struct rv_exec_fault *ret_fault)
{
    ret_fault->message[0] = '\0';
    struct exec *exec = calloc(1, sizeof *exec);
    if (exec == NULL)
        return fail(ret_fault, RV_ERR_MEMORY, "out of memory");
    exec->options = options;
    rv_arena_init(&exec->arena, 0);
    enum rv_err err = exec_prepare(exec, ret_fault);
    if (err == RV_OK) {
        err = agent_run(exec, ret_fault);
        rv_reaper_stop(&exec->reaper);
    }
    if (serving == NULL)
        exec_free(exec);
    return err;
}

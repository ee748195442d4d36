/* The agent's loop: one thread moves bytes between libcurl and the pure runtime, gives requests to
 * handlers and takes their results from the mailbox. Each lane of the session has one exchange, so
 * one connection; libcurl keeps them open. */
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "base/os/random.h"
#include "client/transport/agent_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    THREADS_DEFAULT = 8,
    MAX_WITHOUT_THREADS = 64,
    TRIES_DEFAULT = 5,
    RETRY_BASE_MS = 50,
    RETRY_CAP_MS = 2000,
    CIRCUIT_FAILURES = 5,
    CIRCUIT_OPEN_MS = 1000,
    GRACE_MS = 1000, /* at the end, for handlers past their deadline */
    SLEEP_MS_MAX = 60000,
    LINE_BYTES_MAX = 4096, /* of the log */
    RESULTS_MAX = 256      /* taken in one round */
};

/* ---- the log ---- */

static void log_stderr(enum rv_agent_log level, const char *message, void *user)
{
    static const char *const names[] = {"info", "warning", "error"};
    char line[LINE_BYTES_MAX];
    (void)user;
    int len = snprintf(line, sizeof line, "reeve agent: %s: %s\n", names[level], message);
    if (len >= (int)sizeof line)
        line[(len = (int)sizeof line - 1) - 1] = '\n';
    (void)rv_log_put(line, (size_t)len, 1);
}

static void options_log(const struct rv_agent_options *options, enum rv_agent_log level,
                        const char *message)
{
    if (options->log != NULL)
        options->log(level, message, options->user);
    else
        log_stderr(level, message, NULL);
}

static void session_said(void *user, enum rv_log_level level, const char *message)
{
    static const enum rv_agent_log levels[] = {[RV_LOG_INFO] = RV_AGENT_LOG_INFO,
                                               [RV_LOG_WARNING] = RV_AGENT_LOG_WARNING,
                                               [RV_LOG_ERROR] = RV_AGENT_LOG_ERROR};
    const struct rv_agent *agent = user;
    options_log(&agent->options, levels[level], message);
}

/* ---- opening and closing ---- */

/* Why these options make no agent; NULL if they do. */
static const char *options_wrong(const struct rv_agent_options *options)
{
    if (options->name == NULL || options->name[0] == '\0' ||
        strlen(options->name) > RV_NAME_BYTES_MAX)
        return "options.name must be the agent's name, 1 to 128 bytes";
    if (options->handler == NULL)
        return "options.handler must be the function that carries out requests";
    if (options->instance != NULL && strlen(options->instance) > RV_NAME_BYTES_MAX)
        return "options.instance must have at most 128 bytes";
    if (options->threads < RV_THREADS_NONE || options->threads > AGENT_THREADS_MAX)
        return "options.threads must be 0 to 256, or RV_THREADS_NONE";
    if (options->max < 0 || options->max > RV_CALL_ITEMS_MAX)
        return "options.max must be 0 to 1000";
    if (options->wait_ms < 0 || options->wait_ms > RV_WAIT_MS_MAX)
        return "options.wait_ms must be 0 to 50000";
    return NULL;
}

static const char *instance_make(struct rv_arena *names)
{
    char host[65] = "host";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    host[sizeof host - 1] = '\0';
    return rv_arena_printf(names, "%s-%d", host, (int)getpid()).at;
}

static void options_fill(struct rv_agent *agent, const struct rv_agent_options *given)
{
    struct rv_agent_options *options = &agent->options;
    *options = *given;
    options->api_key = NULL; /* kept in agent->api_key */
    options->name = rv_arena_str(&agent->names, rv_str_of(given->name)).at;
    options->instance = given->instance != NULL
                            ? rv_arena_str(&agent->names, rv_str_of(given->instance)).at
                            : instance_make(&agent->names);
    if (options->threads == 0)
        options->threads = THREADS_DEFAULT;
    if (options->max == 0)
        options->max = options->threads > 0 ? options->threads : MAX_WITHOUT_THREADS;
    if (options->wait_ms == 0)
        options->wait_ms = RV_WAIT_MS_DEFAULT;
    if (options->tries_max <= 0)
        options->tries_max = TRIES_DEFAULT;
    if (options->retry_base_ms <= 0)
        options->retry_base_ms = RETRY_BASE_MS;
    if (options->retry_cap_ms <= 0)
        options->retry_cap_ms = RETRY_CAP_MS;
    if (options->circuit_failures == 0)
        options->circuit_failures = CIRCUIT_FAILURES;
    if (options->circuit_open_ms <= 0)
        options->circuit_open_ms = CIRCUIT_OPEN_MS;
}

static struct rv_str target_of(void *user, rv_place place)
{
    struct rv_agent *agent = user;
    if (agent->options.target == NULL)
        return RV_STR_NONE;
    return rv_str_of(agent->options.target(rv_request_ready(agent, place), agent->options.user));
}

static bool runtime_make(struct rv_agent *agent)
{
    const struct rv_agent_options *o = &agent->options;
    struct rv_runtime_options options = {
        .session = {.agent = rv_str_of(o->name),
                    .instance = rv_str_of(o->instance),
                    .server = rv_str_of(agent->url),
                    .max = (uint32_t)o->max,
                    .wait_ms = o->wait_ms,
                    .renew_ms = o->renew_ms,
                    .log = session_said,
                    .log_user = agent},
        .tries_max = (uint32_t)o->tries_max,
        .retry_base_ms = o->retry_base_ms,
        .retry_cap_ms = o->retry_cap_ms,
        .circuit_failures = o->circuit_failures > 0 ? (uint32_t)o->circuit_failures : 0,
        .circuit_open_ms = o->circuit_open_ms,
        .target = target_of,
        .user = agent};
    rv_random_bytes(&options.session.seed, sizeof options.session.seed);
    agent->runtime = rv_runtime_new(&options);
    if (agent->runtime == NULL)
        return false;
    agent->session = rv_runtime_session(agent->runtime);
    uint32_t places = rv_session_places(agent->session);
    agent->requests = calloc(places, sizeof *agent->requests);
    for (uint32_t i = 0; agent->requests != NULL && i < places; i++)
        rv_arena_init(&agent->requests[i].arena, 0);
    return agent->requests != NULL;
}

static bool network_make(struct rv_agent *agent)
{
    for (int i = 0; i < RV_LANE_COUNT; i++)
        if (rv_exchange_init(&agent->exchanges[i]) != RV_OK)
            return false;
    agent->multi = curl_multi_init();
    if (agent->multi == NULL)
        return false;
    curl_multi_setopt(agent->multi, CURLMOPT_MAXCONNECTS, (long)RV_LANE_COUNT);
    return true;
}

struct rv_agent *rv_agent_open(const char *url, const struct rv_agent_options *options)
{
    const char *wrong = options_wrong(options);
    struct rv_agent *agent = wrong == NULL ? calloc(1, sizeof *agent) : NULL;
    if (agent == NULL) {
        options_log(options, RV_AGENT_LOG_ERROR, wrong ? wrong : "out of memory");
        return NULL;
    }
    rv_arena_init(&agent->names, 0);
    rv_mailbox_init(&agent->results, offsetof(struct rv_request, next));
    pthread_mutex_init(&agent->counts_mutex, NULL);
    options_fill(agent, options);
    agent->url = rv_exchange_url(url);
    if (agent->url == NULL)
        wrong = "the server's address is not valid: write http://HOST:PORT, or unix:PATH";
    else if (!rv_exchange_key(options->api_key, &agent->api_key))
        wrong = "out of memory";
    else if (agent->api_key != NULL && !rv_exchange_header_good(agent->api_key))
        wrong = "the API key (REEVE_API_KEY) contains a control character, such as a line break";
    else if (agent->options.name == NULL || agent->options.instance == NULL ||
             !network_make(agent) || !runtime_make(agent))
        wrong = "out of memory";
    if (wrong != NULL) {
        options_log(options, RV_AGENT_LOG_ERROR, wrong);
        rv_agent_close(agent);
        return NULL;
    }
    return agent;
}

void rv_agent_close(struct rv_agent *agent)
{
    if (agent == NULL || agent->hung)
        return; /* hung handlers still look at their requests */
    uint32_t places = agent->requests != NULL ? rv_session_places(agent->session) : 0;
    for (uint32_t i = 0; i < places; i++)
        rv_request_free(&agent->requests[i]);
    free(agent->requests);
    rv_runtime_free(agent->runtime);
    for (int i = 0; i < RV_LANE_COUNT; i++)
        if (agent->exchanges[i].easy != NULL)
            rv_exchange_done(&agent->exchanges[i]);
    curl_multi_cleanup(agent->multi);
    rv_mailbox_done(&agent->results);
    pthread_mutex_destroy(&agent->counts_mutex);
    rv_arena_done(&agent->names);
    free(agent->api_key);
    free(agent->url);
    free(agent);
}

/* ---- counts, stop, wake ---- */

static void counts_publish(struct rv_agent *agent)
{
    const struct rv_session_counts *session = rv_session_counts(agent->session);
    const struct rv_runtime_counts *runtime = rv_runtime_counts(agent->runtime);
    pthread_mutex_lock(&agent->counts_mutex);
    agent->counts = (struct rv_agent_counts){.requests = session->requests,
                                             .tries = runtime->tries,
                                             .replied = session->replied,
                                             .refused = session->refused,
                                             .late_dropped = session->late_dropped,
                                             .expired = session->expired,
                                             .duplicates = session->duplicates,
                                             .cancelled = session->cancelled,
                                             .circuit_open = runtime->circuit_open,
                                             .calls_failed = session->calls_failed};
    pthread_mutex_unlock(&agent->counts_mutex);
}

void rv_agent_count(struct rv_agent *agent, struct rv_agent_counts *ret_counts)
{
    pthread_mutex_lock(&agent->counts_mutex);
    *ret_counts = agent->counts;
    pthread_mutex_unlock(&agent->counts_mutex);
}

void rv_agent_wake(struct rv_agent *agent)
{
    if (atomic_exchange(&agent->asleep, false))
        curl_multi_wakeup(agent->multi);
}

void rv_agent_stop(struct rv_agent *agent)
{
    atomic_store(&agent->stop_asked, true);
    curl_multi_wakeup(agent->multi); /* always: the loop may be about to sleep */
}

/* ---- the loop ---- */

/* Gives back to the runtime what handlers have answered. True if there was something. */
static bool results_take(struct rv_agent *agent)
{
    void *items[RESULTS_MAX];
    size_t n = rv_mailbox_take(&agent->results, items, RESULTS_MAX, 0);
    int64_t now = rv_clock_boot_ms();
    for (size_t i = 0; i < n; i++) {
        struct rv_request *request = items[i];
        if (request->output.at == NULL) {
            rv_runtime_failed(agent->runtime, request->place, now, &request->failure);
            continue;
        }
        rv_runtime_done(agent->runtime, request->place, now, request->output);
        free((void *)(uintptr_t)request->output.at);
        request->output = RV_STR_NONE;
    }
    return n > 0;
}

static void event_start(struct rv_agent *agent, const struct rv_runtime_event *event)
{
    struct rv_request *request = rv_request_ready(agent, event->place);
    request->try_number = event->try_number;
    atomic_store(&request->answered, false);
    if (agent->options.threads > 0)
        rv_thread_pool_give(&agent->pool, request);
    else
        agent->options.handler(request, agent->options.user);
}

static void events_run(struct rv_agent *agent)
{
    struct rv_runtime_event event;
    while (rv_runtime_next_event(agent->runtime, rv_clock_boot_ms(), &event)) {
        struct rv_request *request = &agent->requests[event.place];
        switch (event.kind) {
        case RV_RUNTIME_START:
            event_start(agent, &event);
            break;
        case RV_RUNTIME_CANCEL:
            atomic_store(&request->stopped, RV_STOP_CANCELLED);
            if (agent->options.on_cancel != NULL)
                agent->options.on_cancel(request, agent->options.user);
            break;
        case RV_RUNTIME_EXPIRED:
            atomic_store(&request->stopped, RV_STOP_LATE);
            break;
        case RV_RUNTIME_RENEWED:
            atomic_store(&request->stop_at, rv_held_stop_at(request->attempt));
            atomic_store(&request->complete_at, request->attempt->complete_at);
            break;
        case RV_RUNTIME_OVER:
            rv_request_over(request);
            break;
        }
    }
}

static struct exchange_ask call_ask(const struct rv_agent *agent,
                                    const struct rv_session_call *call)
{
    return (struct exchange_ask){.url = agent->url,
                                 .path = call->path.at,
                                 .method = "POST",
                                 .body = call->body,
                                 .content_type = "application/json",
                                 .api_key = agent->api_key,
                                 .timeout_ms = call->timeout_ms};
}

static void call_start(struct rv_agent *agent, const struct rv_session_call *call)
{
    struct client_exchange *exchange = &agent->exchanges[call->lane];
    struct exchange_ask ask = call_ask(agent, call);
    enum rv_err err = rv_exchange_prepare(exchange, &ask);
    if (err == RV_OK && curl_multi_add_handle(agent->multi, exchange->easy) != CURLM_OK)
        err = RV_ERR_MEMORY;
    if (err != RV_OK) {
        rv_session_lost(agent->session, call->lane, rv_clock_boot_ms(), rv_err_text(err));
        return;
    }
    agent->under_way[call->lane] = true;
}

static void call_end(struct rv_agent *agent, enum rv_lane lane, CURLcode code)
{
    struct client_exchange *exchange = &agent->exchanges[lane];
    curl_multi_remove_handle(agent->multi, exchange->easy);
    agent->under_way[lane] = false;
    int64_t now = rv_clock_boot_ms();
    char why[3 * CURL_ERROR_SIZE];
    snprintf(why, sizeof why, "%s: %s; %s", agent->url, rv_exchange_why(exchange, code),
             rv_exchange_cure(agent->url, code));
    if (code != CURLE_OK)
        rv_session_lost(agent->session, lane, now, why);
    else
        rv_session_answered(agent->session, lane, now, rv_exchange_status(exchange),
                            rv_exchange_retry_after_ms(exchange), rv_buf_str(&exchange->answer));
}

/* True if a call has ended. */
static bool calls_end(struct rv_agent *agent)
{
    int left;
    bool ended = false;
    CURLMsg *message;
    while ((message = curl_multi_info_read(agent->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;
        int lane = 0;
        while (agent->exchanges[lane].easy != message->easy_handle)
            lane++;
        call_end(agent, (enum rv_lane)lane, rv_exchange_outcome(&agent->exchanges[lane], code));
        ended = true;
    }
    return ended;
}

static void stop_begin(struct rv_agent *agent)
{
    if (agent->stopping || !atomic_load(&agent->stop_asked))
        return;
    agent->stopping = true;
    if (rv_runtime_stop(agent->runtime, rv_clock_boot_ms())) {
        /* Taking the exchange out closes its connection: the server sees that nobody listens. */
        curl_multi_remove_handle(agent->multi, agent->exchanges[RV_LANE_POLL].easy);
        agent->under_way[RV_LANE_POLL] = false;
    }
}

static void loop_sleep(struct rv_agent *agent)
{
    int64_t left_ms = rv_runtime_wake_at(agent->runtime) - rv_clock_boot_ms();
    int64_t sleep_ms = left_ms < 0 ? 0 : left_ms > SLEEP_MS_MAX ? SLEEP_MS_MAX : left_ms;
    atomic_store(&agent->asleep, true);
    /* A result put in before the flag stood would not wake us: look once more. */
    if (!results_take(agent))
        curl_multi_poll(agent->multi, NULL, 0, (int)sleep_ms, NULL);
    atomic_store(&agent->asleep, false);
}

/* Everything that can be done now without waiting. */
static void loop_round(struct rv_agent *agent)
{
    stop_begin(agent);
    bool moved;
    do {
        int running;
        curl_multi_perform(agent->multi, &running);
        moved = calls_end(agent);
        results_take(agent);
        events_run(agent);
        if (results_take(agent)) /* of handlers that answered at once */
            events_run(agent);
        struct rv_session_call call;
        while (rv_session_next_call(agent->session, rv_clock_boot_ms(), &call)) {
            call_start(agent, &call);
            moved = true; /* its bytes leave with the next perform */
        }
    } while (moved);
    counts_publish(agent);
}

/* Handlers past their deadline get a moment to return; their answers go nowhere. */
static bool handlers_wait(struct rv_agent *agent)
{
    int64_t until = rv_clock_boot_ms() + GRACE_MS;
    while (rv_runtime_running(agent->runtime) > 0 && rv_clock_boot_ms() < until) {
        void *item;
        if (rv_mailbox_take(&agent->results, &item, 1, until - rv_clock_boot_ms()) > 0) {
            struct rv_request *request = item;
            free((void *)(uintptr_t)request->output.at);
            struct rv_runtime_failure late = {.type = RV_STR("late")};
            rv_runtime_failed(agent->runtime, request->place, rv_clock_boot_ms(), &late);
        }
        events_run(agent);
    }
    return rv_runtime_running(agent->runtime) == 0;
}

/* The server takes the instance from its list at once. */
static void leave(struct rv_agent *agent)
{
    struct rv_session_call call;
    if (!rv_session_leave(agent->session, rv_clock_boot_ms(), &call))
        return;
    struct client_exchange *exchange = &agent->exchanges[RV_LANE_POLL];
    struct exchange_ask ask = call_ask(agent, &call);
    if (rv_exchange_prepare(exchange, &ask) == RV_OK)
        (void)curl_easy_perform(exchange->easy);
}

int rv_agent_run(struct rv_agent *agent)
{
    if (agent->ran)
        return RV_RESULT_USAGE;
    agent->ran = true;
    if (agent->options.threads > 0 &&
        rv_thread_pool_start(&agent->pool, agent, agent->options.threads) != RV_OK) {
        agent->hung = !rv_thread_pool_stop(&agent->pool, GRACE_MS);
        return RV_RESULT_MEMORY;
    }
    struct pipe_guard guard;
    rv_pipe_guard_enter(&guard);
    for (;;) {
        loop_round(agent);
        if (rv_runtime_ended(agent->runtime))
            break;
        loop_sleep(agent);
    }
    bool returned = handlers_wait(agent);
    for (int i = 0; i < RV_LANE_COUNT; i++)
        if (agent->under_way[i])
            curl_multi_remove_handle(agent->multi, agent->exchanges[i].easy);
    if (returned)
        leave(agent);
    rv_pipe_guard_leave(&guard);
    if (agent->options.threads > 0)
        returned = rv_thread_pool_stop(&agent->pool, GRACE_MS) && returned;
    if (!returned)
        rv_mailbox_close(&agent->results);
    counts_publish(agent);
    agent->hung = !returned;
    return returned ? RV_RESULT_OK : RV_RESULT_HUNG;
}

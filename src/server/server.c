/* Five threads: the main one waits for signals, the scheduler's runs the cycle, the api's speaks
 * HTTP, the http agent carries out steps, and the outbound one speaks HTTP to others. Between
 * them: the mailbox (calls to the scheduler), and each call's way back. */
#include "server/server.h"

#include "agent/http/http.h"
#include "agent/http/secret.h"
#include "api/access_log.h"
#include "api/api.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/fiber.h"
#include "base/os/log.h"
#include "base/os/mailbox.h"
#include "base/os/random.h"
#include "base/os/thread.h"
#include "base/time.h"
#include "notify/webhook/webhook.h"
#include "observe/export/export.h"
#include "outbound/outbound.h"
#include "scheduler/scheduler.h"
#include "server/inside.h"
#include "server/keys.h"
#include "server/leave.h"
#include "server/lock.h"
#include "server/patience.h"
#include "server/process.h"
#include "server/sockets.h"
#include "server/systemd.h"
#include "server/tls.h"
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STOP_MS = 4000,        /* for what is under way when a stop is asked for */
    STOP_ANSWERS_MS = 500, /* for the last answers to be taken */
    REFUSED_PAUSE_MS = 50, /* before a store that refused is asked again */
    BOOT_BYTES = 16,
    REASON_BYTES_MAX = 16 * 1024,
    EXIT_DAMAGED = 1, /* as of "reeve check" */
    EXIT_USAGE = 2
};

struct server {
    struct rv_store *store;
    const char *store_path; /* borrowed */
    struct rv_scheduler *scheduler;
    struct rv_mailbox mailbox;
    struct rv_api *api;
    struct rv_outbound *outbound;
    struct rv_access access; /* until the api has it */
    struct rv_sockets sockets;
    struct rv_door_tls *tls;          /* until the api has it */
    const char *tls_cert, *tls_key;   /* borrowed: paths; NULL: no TLS */
    struct rv_access_log *access_log; /* owned; NULL: none */
    struct rv_secrets *secrets;
    struct rv_webhook webhook;
    struct rv_export *spans; /* NULL: nobody watches traces */
    struct rv_inside *inside;
    struct rv_http *http; /* NULL: the role of the http agent is not this server's */
    struct rv_thread scheduler_thread;
    struct rv_thread http_thread;
    atomic_bool stopping;
    struct rv_patience patience;
    atomic_int store_err;       /* enum rv_err of the newest batch */
    atomic_uintptr_t store_why; /* const char *, of the store: why it is DISPLACED */
    struct rv_leaving leaving;
    char boot[2 * BOOT_BYTES + 1];
};

/* ---- the scheduler's thread ---- */

static int64_t mono_now(void *self)
{
    (void)self;
    return rv_clock_mono_ms();
}

static int64_t mono_now_us(void *self)
{
    (void)self;
    return rv_clock_mono_us();
}

/* A damaged file needs a person, and a service manager must not start the server again and again;
 * after anything else a start decides from the file. */
static int store_exit(enum rv_err err)
{
    return err == RV_ERR_CORRUPT ? EXIT_DAMAGED : rv_err_exit(err);
}

static void damage_format(const struct server *server, char *text, size_t room)
{
    snprintf(
        text, room,
        "the file %s is damaged: locate the damage with \"reeve check --store %s\", and restore "
        "a backup",
        server->store_path, server->store_path);
}

/* The server's last line, and its exit code. */
static void store_stop(const struct server *server, enum rv_err err)
{
    rv_assert(err != RV_OK);
    rv_assert(err != RV_ERR_BUSY);
    char reason[PATH_MAX + 256];
    if (err == RV_ERR_CORRUPT)
        damage_format(server, reason, sizeof reason);
    else
        snprintf(
            reason, sizeof reason,
            "it is unknown whether the newest changes were written to %s: start the server again",
            server->store_path);
    rv_log(RV_LOG_ERROR, "exit", RV_LOG_STR("reason", rv_str_of(reason)));
    rv_log_flush();
    _exit(store_exit(err));
}

static int damage_refuse(const struct server *server)
{
    char reason[PATH_MAX + 256];
    damage_format(server, reason, sizeof reason);
    rv_log_refusal("reeve serve", "%s", reason);
    return EXIT_DAMAGED;
}

static const char *store_cure(const struct server *server, enum rv_err err)
{
    rv_assert(err != RV_OK);
    const char *why = (const char *)atomic_load(&server->store_why);
    if (err == RV_ERR_FULL)
        return "free some space on the disk of this file; the server then continues by itself";
    if (err == RV_ERR_BUSY)
        return "end the program that locks this file; the server then continues by itself";
    if (err == RV_ERR_MEMORY)
        return "free some memory on this machine; the server then continues by itself";
    if (err == RV_ERR_DISPLACED)
        return why != NULL ? why : rv_err_text(err);
    if (err == RV_ERR_CORRUPT)
        return "locate the damage with `reeve check`, and restore a backup";
    return "check the disk of this file; then start the server again";
}

/* Only a change is logged. What is not known, or not readable, the next start finds in the file. */
static void store_err_heed(struct server *server, enum rv_err err)
{
    bool news = !rv_scheduler_query_damaged(server->scheduler) &&
                err != (enum rv_err)atomic_exchange(&server->store_err, (int)err);
    struct rv_str result = rv_str_of(rv_err_text(err)), path = rv_str_of(server->store_path);
    if (news && err != RV_OK)
        rv_log(RV_LOG_ERROR, "store", RV_LOG_STR("result", result), RV_LOG_STR("path", path),
               RV_LOG_STR("cure", rv_str_of(store_cure(server, err))));
    else if (news)
        rv_log(RV_LOG_INFO, "store", RV_LOG_STR("result", result), RV_LOG_STR("path", path));
    if (err == RV_OK || err == RV_ERR_BUSY || err == RV_ERR_FULL || err == RV_ERR_MEMORY ||
        err == RV_ERR_DISPLACED)
        return;
    store_stop(server, err);
}

static enum rv_err batch_run(struct server *server, int64_t wait_ms, size_t *ret_count)
{
    void *items[RV_BATCH_COMMANDS_MAX];
    struct rv_call *calls[RV_BATCH_COMMANDS_MAX];
    *ret_count = rv_mailbox_take(&server->mailbox, items, RV_BATCH_COMMANDS_MAX, wait_ms);
    rv_assert(*ret_count <= RV_BATCH_COMMANDS_MAX);
    memcpy(calls, items, *ret_count * sizeof calls[0]);
    return rv_scheduler_run_batch(server->scheduler, calls, *ret_count,
                                  rv_mailbox_heard_until(&server->mailbox));
}

/* Everything that the api has taken in is decided and answered, or the time is over. */
static void scheduler_drain(struct server *server)
{
    rv_assert(atomic_load(&server->stopping));
    int64_t deadline = rv_clock_mono_ms() + STOP_MS;
    rv_scheduler_drain(server->scheduler);
    while (rv_api_outstanding(server->api) > 0 && rv_clock_mono_ms() < deadline) {
        size_t count;
        store_err_heed(server, batch_run(server, 1, &count));
    }
}

static void scheduler_run(void *self)
{
    struct server *server = self;
    int64_t watchdog_ms = rv_systemd_watchdog_ms();
    int64_t told_at = rv_clock_mono_ms();
    while (!atomic_load(&server->stopping)) {
        int64_t wait_ms = rv_scheduler_next_wake(server->scheduler, rv_clock_mono_ms());
        if (atomic_load(&server->store_err) != RV_OK && wait_ms < REFUSED_PAUSE_MS)
            wait_ms = REFUSED_PAUSE_MS;
        size_t count;
        if (watchdog_ms > 0 && wait_ms > watchdog_ms)
            wait_ms = watchdog_ms;
        store_err_heed(server, batch_run(server, wait_ms, &count));
        rv_leave_answer(&server->leaving, server->store);
        /* By the thread that does the work: one that hangs shall be seen to. */
        if (watchdog_ms > 0 && rv_clock_mono_ms() - told_at >= watchdog_ms / 2) {
            told_at = rv_clock_mono_ms();
            rv_systemd_tell("WATCHDOG=1");
        }
    }
    scheduler_drain(server);
}

/* ---- start ---- */

static int64_t wall_now(void *self)
{
    (void)self;
    return rv_clock_wall_ms();
}

/* What a suspended machine sleeps through is time too. */
static int64_t boot_now(void *self)
{
    (void)self;
    return rv_clock_boot_ms();
}

static enum rv_err store_health(void *self, const char **ret_why)
{
    struct server *server = self;
    enum rv_err err = (enum rv_err)atomic_load(&server->store_err);
    if (err != RV_OK)
        *ret_why = store_cure(server, err);
    return err;
}

/* On the scheduler's thread, like all that uses the store. */
static enum rv_err store_look(void *self, const char **ret_why)
{
    struct server *server = self;
    return rv_store_look(server->store, &server->store_why, ret_why);
}

/* The file and its log. */
static int64_t store_bytes(void *self)
{
    const struct server *server = self;
    char log[PATH_MAX];
    struct stat about;
    int64_t bytes = stat(server->store_path, &about) == 0 ? about.st_size : 0;
    int len = snprintf(log, sizeof log, "%s-wal", server->store_path);
    if (len > 0 && (size_t)len < sizeof log && stat(log, &about) == 0)
        bytes += about.st_size;
    return bytes;
}

static void boot_make(struct server *server)
{
    unsigned char bytes[BOOT_BYTES];
    rv_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(server->boot + 2 * i, 3, "%02x", bytes[i]);
}

static int store_open(struct server *server, const char *path)
{
    rv_assert(server->store == NULL);
    struct rv_store_sqlite_fault fault = {.pid = 0};
    struct rv_store_sqlite_options options = {.path = path,
                                              .clock = {.now = wall_now, .mono = boot_now}};
    enum rv_err err = rv_store_sqlite_open(&options, &server->store, &fault);
    if (err == RV_OK)
        return 0;
    rv_log_refusal("reeve serve", "%s", fault.message[0] ? fault.message : rv_err_text(err));
    return fault.foreign ? rv_err_exit(err) : store_exit(err);
}

static enum rv_err copy_open(void *self, struct rv_copy **ret_copy)
{
    struct server *server = self;
    return rv_store_sqlite_copy(server->store, ret_copy);
}

/* Before the scheduler, which tells it what has ended. */
static int spans_open(struct server *server, const char *url)
{
    rv_assert(server->spans == NULL);
    rv_assert(server->scheduler == NULL);
    char why[RV_EXPORT_WHY_BYTES] = "";
    if (url == NULL)
        return 0;
    enum rv_err err = rv_export_open(rv_str_of(url), rv_str_of(server->boot), &server->spans, why);
    if (err == RV_OK)
        return 0;
    rv_log_refusal("reeve serve", "--otlp %s: %s", url, why[0] ? why : rv_err_text(err));
    return err == RV_ERR_INVALID ? EXIT_USAGE : rv_err_exit(err);
}

/* On the api's thread. */
static bool spans_count(void *self, uint64_t *ret_sent, uint64_t *ret_dropped)
{
    struct server *server = self;
    if (server->spans == NULL)
        return false;
    struct rv_export_counts counts = rv_export_count(server->spans);
    *ret_sent = counts.sent;
    *ret_dropped = counts.dropped;
    return true;
}

static void calls_finished(void *self)
{
    struct server *server = self;
    if (server->api != NULL)
        rv_api_wake(server->api);
}

static enum rv_err keys_learn(void *self, const struct rv_record *rows, size_t count,
                              uint64_t changes)
{
    struct server *server = self;
    return rv_server_keys_renew(server->api, rows, count, changes);
}

static void event_log(void *self, enum rv_log_level level, const char *event,
                      const struct rv_log_field *fields, size_t count)
{
    (void)self;
    rv_log_write(level, event, fields, count);
}

static int scheduler_open(struct server *server, const struct rv_server_options *given)
{
    rv_assert(server->store != NULL);
    rv_assert(server->scheduler == NULL);
    struct rv_scheduler_options options = {
        .store = server->store,
        .boot = rv_str_of(server->boot),
        .pid = getpid(),
        .mono = {.now = mono_now, .now_us = mono_now_us},
        .log = {.write = event_log},
        .fibers = &rv_fibers,
        .keys = {.learn = keys_learn, .self = server},
        .copies = {.open = copy_open, .self = server},
        .size = {.bytes = store_bytes, .self = server},
        .files = {.look = store_look, .self = server},
        .finished = {.tell = calls_finished, .self = server},
        .waits = {.tell = rv_patience_tell, .self = &server->patience},
        .outlet = rv_webhook_outlet(&server->webhook),
        .spans = {.take = server->spans != NULL ? rv_export_take : NULL, .self = server->spans},
        .scan_interval_ms = given->scan_interval_ms,
        .alert_url = given->alert_webhook != NULL ? rv_str_of(given->alert_webhook) : RV_STR_NONE,
        .retain_ms = given->retain_ms,
        .postpone_ms_max = given->postpone_ms_max,
        .circuit_ms_max = given->circuit_ms_max,
    };
    rv_random_bytes(&options.seed, sizeof options.seed);
    rv_random_bytes(&options.hash_key, sizeof options.hash_key);
    enum rv_err err = rv_scheduler_open(&options, &server->scheduler);
    if (err == RV_OK)
        return 0;
    if (err == RV_ERR_CORRUPT)
        return damage_refuse(server);
    if (err == RV_ERR_FULL) /* as of the file's own opening */
        rv_log_refusal("reeve serve",
                       "%s cannot be opened because the disk is full; free up disk space and start "
                       "again",
                       server->store_path);
    else
        rv_log_refusal("reeve serve", "the scheduler cannot start: %s", rv_err_text(err));
    return rv_err_exit(err);
}

static void store_print(const struct server *server, const char *path)
{
    const struct rv_enlistment *enlistment = rv_scheduler_enlistment(server->scheduler);
    rv_assert(enlistment->open_tasks >= 0);
    char text[RV_INSTANT_TEXT_BYTES];
    bool copied = !enlistment->created && enlistment->copied;
    struct rv_str state = copied ? rv_instant_text(enlistment->last_alive_at, text) : RV_STR("");
    const char *from = copied ? ", a backup with the state of " : "";
    char *absolute = realpath(path, NULL);
    if (absolute != NULL)
        path = absolute;
    if (enlistment->created)
        rv_log_print("reeve: store %s, new\n", path);
    else
        rv_log_print("reeve: store %s, %lld open task%s%s%.*s\n", path,
                     (long long)enlistment->open_tasks, enlistment->open_tasks == 1 ? "" : "s",
                     from, RV_STR_FMT(state));
    free(absolute);
}

static int outbound_open(struct server *server, const struct rv_egress *egress)
{
    rv_assert(server->outbound == NULL);
    struct rv_outbound_options options = {.egress = egress};
    unsigned ignored;
    rv_process_connections(&ignored, &options.connections_max);
    enum rv_err err = rv_outbound_open(&options, &server->outbound);
    if (err == RV_OK)
        return 0;
    rv_log_refusal("reeve serve", "outbound calls cannot start: %s", rv_err_text(err));
    return rv_err_exit(err);
}

static int keys_load(struct server *server)
{
    enum rv_err err = rv_server_keys_load(server->store, &server->access.keys);
    if (err == RV_ERR_CORRUPT)
        return damage_refuse(server);
    if (err != RV_OK)
        rv_log_refusal("reeve serve", "the API keys cannot be read: %s", rv_err_text(err));
    return err == RV_OK ? 0 : rv_err_exit(err);
}

/* Where others come in, somebody must be able to tell them apart. */
static int access_open(struct server *server, const struct rv_server_options *options)
{
    int result = keys_load(server);
    if (result != 0 || !server->access.always_keys || rv_keys_have_admin(&server->access.keys))
        return result;
    bool public = server->sockets.public;
    rv_log_refusal("reeve serve",
                   "%s%s%s: %s, so an admin API key is required; create one: reeve keys add admin "
                   "--store %s",
                   public ? options->listens_from : "--behind-proxy", public ? " " : "",
                   server->sockets.public_name,
                   public ? "other machines can reach this address"
                          : "the proxy forwards requests from other machines",
                   options->store);
    return rv_err_exit(RV_ERR_REFUSED);
}

/* An operator who is never called would not notice; so it is said at once. */
static int alert_webhook_check(struct server *server, const char *url)
{
    char said[RV_EGRESS_WHY_BYTES + RV_URL_BYTES_MAX];
    struct rv_scheduler_outlet outlet = rv_webhook_outlet(&server->webhook);
    if (url == NULL)
        return 0;
    enum rv_err err = outlet.check(outlet.self, rv_str_of(url), said, sizeof said);
    if (err == RV_OK)
        return 0;
    rv_log_refusal("reeve serve", "--alert-webhook %s: %s", url, said);
    return rv_err_exit(err);
}

/* Webhooks are signed. Where calls may go somewhere and no file is named, the server has one of its
 * own beside the store: the same after each start, and in no backup of the store. */
static int webhook_open(struct server *server, const struct rv_server_options *options)
{
    rv_assert(server->outbound != NULL);
    rv_assert(server->secrets == NULL);
    char why[RV_SECRETS_WHY_BYTES] = "", path[PATH_MAX];
    const char *given = options->webhook_secrets;
    bool made = false;
    enum rv_err err = RV_OK;
    server->webhook = (struct rv_webhook){
        .outbound = server->outbound, .egress = options->egress, .mailbox = &server->mailbox};
    snprintf(path, sizeof path, "%s.webhook-secret", options->store);
    if (given != NULL || !rv_egress_empty(options->egress))
        err = rv_secrets_read(given ? given : path, given == NULL, &server->secrets, &made, why);
    if (err != RV_OK) {
        rv_log_refusal("reeve serve", "webhook secrets: %s", why[0] ? why : rv_err_text(err));
        return rv_err_exit(err);
    }
    if (made)
        rv_log(RV_LOG_INFO, "webhook-secret", RV_LOG_STR("made", rv_str_of(path)));
    server->webhook.secrets = server->secrets;
    return 0;
}

static void http_log(enum rv_log_level level, const char *message)
{
    rv_log(level, "http-agent", RV_LOG_STR("message", rv_str_of(message)));
}

/* A folder that is not there would be found out by the first task that needs a secret. */
static int secrets_check(const char *folder)
{
    struct stat about;
    errno = 0;
    if (folder == NULL || (stat(folder, &about) == 0 && S_ISDIR(about.st_mode)))
        return 0;
    rv_log_refusal("reeve serve", "--secrets %s: %s; give a folder with one file per secret",
                   folder, errno != 0 ? strerror(errno) : "not a folder");
    return rv_err_exit(RV_ERR_NOT_FOUND);
}

/* The agent of `call: http`, which is a client like any other but for the socket. */
static int http_open(struct server *server, const char *secrets, unsigned port)
{
    rv_assert(server->scheduler != NULL);
    rv_assert(server->inside == NULL);
    rv_assert(port <= UINT16_MAX);
    /* The same name at each start, so that this one ends what an earlier one left: a store that is
     * not shared has one server, others are told apart by where they are. */
    char instance[128] = "server";
    char host[65] = "host";
    if (rv_scheduler_enlistment(server->scheduler)->shared) {
        if (gethostname(host, sizeof host - 1) != 0)
            host[0] = '\0';
        snprintf(instance, sizeof instance, "server-%s-%u", host, port);
    }
    server->inside = rv_inside_new(&server->mailbox);
    struct rv_http_options options = {
        .outbound = server->outbound, .instance = instance, .secrets = secrets, .log = http_log};
    enum rv_err err = RV_ERR_MEMORY;
    if (server->inside != NULL) {
        options.door = rv_inside_door(server->inside);
        err = rv_http_open(&options, &server->http);
    }
    if (err == RV_OK)
        return 0;
    rv_log_refusal("reeve serve", "the http agent cannot start: %s", rv_err_text(err));
    return rv_err_exit(err);
}

static int api_open(struct server *server, const struct rv_server_options *told)
{
    rv_assert(server->api == NULL);
    rv_assert(server->scheduler != NULL);
    rv_assert(server->sockets.count <= RV_DOOR_SOCKETS_MAX);
    bool shared = rv_scheduler_enlistment(server->scheduler)->shared;
    unsigned connections_max;
    long ignored;
    int fds[RV_DOOR_SOCKETS_MAX];
    rv_process_connections(&connections_max, &ignored);
    for (size_t i = 0; i < server->sockets.count; i++) {
        rv_assert(server->sockets.all[i].fd >= 0);
        fds[i] = server->sockets.all[i].fd;
        server->sockets.all[i].fd = -1;
    }
    struct rv_api_options options = {
        .sockets = fds,
        .sockets_count = server->sockets.count,
        .mailbox = &server->mailbox,
        .access = server->access,
        .tls = server->tls,
        .connections_max = connections_max,
        .address_max = told->behind_proxy ? connections_max : 0, /* all come from the proxy */
        .wakes = true,
        .behind_proxy = told->behind_proxy,
        .access_log = server->access_log,
        .health = store_health,
        .away = {.is = shared ? rv_patience_over : NULL, .self = &server->patience},
        .store_bytes = store_bytes,
        .spans = spans_count,
        .self = server,
        .egress = {.refusal = rv_egress_refusal, .self = (void *)(uintptr_t)told->egress},
        .secrets = {.refusal = rv_http_secret_refusal, .self = (void *)(uintptr_t)told->secrets}};
    enum rv_err err = rv_api_open(&options, &server->api);
    server->tls = NULL;
    rv_keys_init(&server->access.keys);
    if (err == RV_OK)
        return 0;
    rv_log_refusal("reeve serve", "the API cannot start: %s", rv_err_text(err));
    return rv_err_exit(err);
}

/* Keys that travel in the open are soon others' keys. */
static bool address_check(struct server *server, const struct rv_server_options *options)
{
    const struct rv_sockets *sockets = &server->sockets;
    server->access.always_keys = sockets->public || options->behind_proxy;
    if (!sockets->public || options->tls_cert != NULL || options->behind_proxy)
        return true;
    rv_log_refusal(
        "reeve serve",
        "%s %s: other machines can reach this address, and API keys must not be sent unencrypted: "
        "give --tls-cert and --tls-key, or --behind-proxy if a reverse proxy terminates TLS",
        options->listens_from, sockets->public_name);
    return false;
}

static int tls_open(struct server *server, const struct rv_server_options *options)
{
    rv_assert(server->tls == NULL);
    struct rv_buf why;
    if (options->tls_cert == NULL && options->tls_key == NULL)
        return 0;
    server->tls_cert = options->tls_cert;
    server->tls_key = options->tls_key;
    rv_buf_init(&why, REASON_BYTES_MAX);
    enum rv_err err = rv_tls_read(options->tls_cert, options->tls_key, &server->tls, &why);
    if (err != RV_OK)
        rv_log_refusal("reeve serve", "%.*s", RV_STR_FMT(rv_buf_str(&why)));
    rv_buf_done(&why);
    return err == RV_OK ? 0 : rv_err_exit(err);
}

/* What is wrong with new files is told, and the old certificate stays. */
static void tls_renew(struct server *server)
{
    rv_assert(server->api != NULL);
    rv_assert(server->tls_key != NULL);
    struct rv_buf why;
    struct rv_door_tls *tls;
    rv_buf_init(&why, REASON_BYTES_MAX);
    if (rv_tls_read(server->tls_cert, server->tls_key, &tls, &why) == RV_OK) {
        rv_api_renew(server->api, tls);
        rv_log(RV_LOG_INFO, "certificate-renewed", RV_LOG_STR("file", rv_str_of(server->tls_cert)));
    } else {
        rv_log(RV_LOG_ERROR, "certificate-kept", RV_LOG_STR("reason", rv_buf_str(&why)));
    }
    rv_buf_done(&why);
}

static int access_log_open(struct server *server, const struct rv_server_options *options)
{
    rv_assert(server->access_log == NULL);
    if (options->access_log == NULL)
        return 0;
    server->access_log = rv_access_log_open(options->access_log);
    if (server->access_log != NULL)
        return 0;
    enum rv_err err = errno == ENOENT ? RV_ERR_NOT_FOUND : RV_ERR_IO;
    rv_log_refusal("reeve serve", "--access-log %s: %s", options->access_log, strerror(errno));
    return rv_err_exit(err);
}

static void files_renew(struct server *server)
{
    if (server->tls_cert != NULL)
        tls_renew(server);
    if (server->access_log != NULL)
        rv_access_log_renew(server->access_log);
}

/* ---- stop ---- */

static void calls_refuse(struct server *server)
{
    void *items[RV_BATCH_COMMANDS_MAX];
    size_t count;
    rv_mailbox_close(&server->mailbox);
    while ((count = rv_mailbox_take(&server->mailbox, items, RV_BATCH_COMMANDS_MAX, 0)) > 0) {
        for (size_t i = 0; i < count; i++) {
            struct rv_call *call = items[i];
            rv_assert(call->finish != NULL);
            call->err = RV_ERR_BUSY;
            call->message = RV_STR("the server is stopping; try again later");
            call->finish(call);
        }
    }
    calls_finished(server);
}

static void signal_await(struct server *server, const sigset_t *set)
{
    sigset_t ends = *set;
    int number = 0;
    sigdelset(&ends, SIGHUP);
    while (sigwait(set, &number) != 0 || number == SIGHUP ||
           !rv_leave_ask(&server->leaving, &server->mailbox))
        if (number == SIGHUP)
            files_renew(server);
    rv_assert(number == SIGTERM || number == SIGINT);
    rv_log(RV_LOG_INFO, "stopping", RV_LOG_STR("signal", rv_str_of(strsignal(number))));
    rv_systemd_tell("STOPPING=1");
    /* From here on a second signal ends the process in the ordinary way, and so does time. */
    pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
    alarm(RV_STOP_SECONDS_MAX);
}

static void assert_log(const char *condition, const char *file, int line)
{
    static atomic_flag failed = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&failed)) /* what writes the line asserts, too */
        abort();
    rv_log(RV_LOG_ERROR, "assertion", RV_LOG_STR("condition", rv_str_of(condition)),
           RV_LOG_STR("file", rv_str_of(file)), RV_LOG_INT("line", line));
    rv_log_flush();
    abort();
}

/* With all parts open: work until a signal, then end them in the order in which they need each
 * other: no new requests, decide what is there, answer it, close. */
static int server_work(struct server *server, const sigset_t *signals)
{
    rv_assert(server->api != NULL);
    rv_assert(!atomic_load(&server->stopping));
    if (rv_thread_start(&server->scheduler_thread, "scheduler", scheduler_run, server) != RV_OK) {
        rv_log_refusal("reeve serve", "the scheduler's thread cannot start: out of memory");
        calls_refuse(server);
        return rv_err_exit(RV_ERR_MEMORY);
    }
    int result = 0;
    bool agent = server->http != NULL;
    if (agent &&
        rv_thread_start(&server->http_thread, "http-agent", rv_http_run, server->http) != RV_OK) {
        rv_log_refusal("reeve serve", "the http agent's thread cannot start: out of memory");
        result = rv_err_exit(RV_ERR_MEMORY);
        agent = false;
    }
    if (result == 0)
        signal_await(server, signals);
    rv_api_drain(server->api);
    if (agent) {
        rv_http_stop(server->http);
        rv_thread_join(&server->http_thread);
    }
    atomic_store(&server->stopping, true);
    rv_mailbox_wake(&server->mailbox);
    rv_thread_join(&server->scheduler_thread);
    calls_refuse(server);
    return result;
}

/* Stops at the first part that cannot be opened; server_open closes those that were. */
static int parts_open(struct server *server, const struct rv_server_options *options)
{
    RV_TRY(access_open(server, options));
    store_print(server, options->store);
    RV_TRY(outbound_open(server, options->egress));
    RV_TRY(webhook_open(server, options));
    if (options->http_agent)
        RV_TRY(http_open(server, options->secrets, rv_sockets_port(&server->sockets)));
    return api_open(server, options);
}

/* With the store open and the sockets bound; what it opens it closes. */
static int server_open(struct server *server, const struct rv_server_options *options,
                       const sigset_t *signals)
{
    rv_assert(server->store != NULL);
    server->webhook.egress = options->egress;
    RV_TRY(alert_webhook_check(server, options->alert_webhook));
    RV_TRY(secrets_check(options->secrets));
    RV_TRY(scheduler_open(server, options));
    int result = parts_open(server, options);
    if (result == 0) {
        rv_sockets_print(&server->sockets, options->tls_cert != NULL);
        rv_systemd_tell("READY=1");
        result = server_work(server, signals);
    }
    rv_outbound_close(server->outbound);
    rv_secrets_free(server->secrets);
    rv_scheduler_close(server->scheduler);
    rv_http_close(server->http);
    rv_inside_free(server->inside);
    if (server->api != NULL)
        rv_api_close(server->api, STOP_ANSWERS_MS);
    return result;
}

/* What needs no store; rv_server_run closes it. */
static int outside_open(struct server *server, const struct rv_server_options *options)
{
    RV_TRY(rv_sockets_find(&server->sockets, options));
    if (!address_check(server, options))
        return EXIT_USAGE;
    RV_TRY(tls_open(server, options));
    RV_TRY(access_log_open(server, options));
    RV_TRY(rv_lock_check(options->store));
    return rv_sockets_open(&server->sockets, options);
}

/* With the mailbox ready. */
static int store_serve(struct server *server, const struct rv_server_options *options,
                       const sigset_t *signals)
{
    RV_TRY(spans_open(server, options->otlp));
    RV_TRY(store_open(server, options->store));
    int result = rv_leave(&server->leaving, server->store, options->store,
                          server_open(server, options, signals));
    server->store->ops->close(server->store);
    return result;
}

int rv_server_run(const struct rv_server_options *options)
{
    struct server server = {.store_path = options->store};
    sigset_t signals;
    rv_process_hide_memory();
    rv_leave_signals(&signals);
    rv_assert_set_handler(assert_log);
    int result = outside_open(&server, options);
    if (result == 0) {
        boot_make(&server);
        rv_patience_init(&server.patience);
        rv_mailbox_init(&server.mailbox, offsetof(struct rv_call, next));
        rv_mailbox_keep_arrivals(&server.mailbox, offsetof(struct rv_call, behind));
        result = store_serve(&server, options, &signals);
        rv_export_close(server.spans);
        rv_mailbox_done(&server.mailbox);
    }
    rv_sockets_close(&server.sockets);
    rv_access_log_close(server.access_log);
    rv_keys_done(&server.access.keys);
    rv_door_tls_free(server.tls);
    return result;
}

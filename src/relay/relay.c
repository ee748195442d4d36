/* The relay. The main thread reads rows and settles them, the sender's thread speaks with the
 * server; so the database is read and written while a call is under way. The order that makes it
 * one task for each row: the row with its key is durable before it is sent, and it is deleted only
 * after the server has said that the task is durable. Whatever dies in between, the row is sent
 * again under the same key, and the server knows it. */
#include "relay/relay.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/os/clock.h"
#include "base/os/log.h"
#include "relay/lock.h"
#include "relay/outbox.h"
#include "relay/sender.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BATCHES = 3, /* one is sent, one waits for that, one is read or settled */
    BATCH_BYTES = 4 * 1024 * 1024,
    PATIENCE_MS = 10000,   /* with `once` */
    LOOK_MS_MIN = 1,       /* between two looks at a database that changes */
    LOOK_MS_MAX = 10,      /* and at one that does not */
    MOVED_LOOKS = 100,     /* looks between two at its name */
    LOCK_MS = 200,         /* between two tries to take over */
    LOCKED_TOLD_MS = 5000, /* a database that is locked for so long is told */
    TAKE_MS = 5            /* for a batch that is under way */
};

struct relay {
    const struct rv_relay_options *options;
    const char *path; /* of the database */
    struct rv_relay_counts *counts;
    struct rv_relay_fault *fault;
    struct rv_relay_lock lock;
    struct rv_outbox *outbox; /* owned */
    struct rv_sender sender;
    struct rv_mailbox pause;    /* nothing is ever put in */
    struct rv_relay_batch *all; /* owned: BATCHES of them */
    struct rv_relay_batch *free[BATCHES];
    size_t free_count;
    int64_t read_from; /* the first id that is not under way; an application may give any */
    int64_t until;     /* the id up to which rows are of interest */
    bool locked;       /* the database, since locked_at */
    bool locked_told;
    int64_t locked_at;
    enum rv_err err; /* why it ends; OK as long as it does not */
};

static atomic_bool stop_asked;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&stop_asked, true);
}

/* A second signal ends the process at once, which does no harm. */
static void signals_take(void)
{
    static const int asked[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++)
        sigaction(asked[i], &action, NULL);
}

static void relay_pause(struct relay *relay, int64_t ms)
{
    void *nothing;
    (void)rv_mailbox_take(&relay->pause, &nothing, 1, ms);
}

static bool ending(const struct relay *relay)
{
    return relay->err != RV_OK || atomic_load(&stop_asked);
}

/* ---- a database that is locked ---- */

static void locked_tell(struct relay *relay)
{
    if (relay->locked_told || rv_clock_mono_ms() - relay->locked_at < LOCKED_TOLD_MS)
        return;
    relay->locked_told = true;
    rv_log(RV_LOG_WARNING, "relay-waits-for-database",
           RV_LOG_STR("why", rv_str_of(relay->fault->message)));
}

static void locked_end(struct relay *relay)
{
    if (relay->locked_told)
        rv_log(RV_LOG_INFO, "relay-has-database", RV_LOG_STR("database", rv_str_of(relay->path)));
    relay->locked = relay->locked_told = false;
}

/* What to do about how a call to the database ended: true, make it again. Others may keep it locked
 * for as long as they like; SQLite has waited for a while already. */
static bool try_again(struct relay *relay, enum rv_err err)
{
    if (err == RV_OK) {
        locked_end(relay);
        return false;
    }
    if (!relay->locked)
        relay->locked_at = rv_clock_mono_ms();
    relay->locked = true;
    bool passes = err == RV_ERR_BUSY || err == RV_ERR_FULL;
    bool patient = !relay->options->once || rv_clock_mono_ms() - relay->locked_at < PATIENCE_MS;
    if (!passes || !patient || atomic_load(&stop_asked)) {
        relay->err = err;
        return false;
    }
    locked_tell(relay);
    relay_pause(relay, LOOK_MS_MAX);
    return true;
}

/* ---- rows ---- */

/* The one place where rows are given up. For one that is too old an operator was called by then. */
static void row_report(const struct relay *relay, const struct rv_row *row)
{
    rv_log(RV_LOG_ERROR, row->verdict == RV_ROW_OLD ? "relay-row-too-old" : "relay-row-refused",
           RV_LOG_STR("database", rv_str_of(relay->path)), RV_LOG_INT("row", row->id),
           RV_LOG_STR("key", row->item.key), RV_LOG_STR("why", row->why));
}

static void batch_count(struct relay *relay, const struct rv_relay_batch *batch)
{
    struct rv_relay_counts *counts = relay->counts;
    for (size_t i = 0; i < batch->count; i++) {
        const struct rv_row *row = &batch->rows[i];
        counts->accepted += row->verdict == RV_ROW_ACCEPTED;
        counts->known += row->verdict == RV_ROW_KNOWN;
        counts->refused += row->verdict == RV_ROW_REFUSED;
        counts->old += row->verdict == RV_ROW_OLD;
        if (row->verdict == RV_ROW_REFUSED || row->verdict == RV_ROW_OLD)
            row_report(relay, row);
    }
}

/* Writes down what became of the rows. Those that were not decided stay as they are. */
static void batch_settle(struct relay *relay, struct rv_relay_batch *batch)
{
    enum rv_err err;
    do {
        err = rv_outbox_settle(relay->outbox, batch->rows, batch->count, relay->fault);
    } while (try_again(relay, err));
    if (err == RV_OK)
        batch_count(relay, batch);
    if (err == RV_OK && batch->err != RV_OK && relay->err == RV_OK && relay->options->once) {
        relay->err = batch->err;
        snprintf(relay->fault->message, sizeof relay->fault->message, "%s", batch->why);
    }
    rv_assert(relay->free_count < BATCHES);
    relay->free[relay->free_count++] = batch;
    if (relay->free_count == BATCHES)
        relay->read_from = INT64_MIN; /* lower rows may be free again that were marked */
}

/* Takes in what the sender is done with; waits up to `wait_ms` for the first. */
static void batches_take(struct relay *relay, int64_t wait_ms)
{
    struct rv_relay_batch *batch;
    while (relay->free_count < BATCHES &&
           (batch = rv_sender_take(&relay->sender, wait_ms)) != NULL) {
        batch_settle(relay, batch);
        wait_ms = 0;
    }
}

/* Reads the next rows and gives them to the sender. False: there are none, or no batch is free. */
static bool batch_read(struct relay *relay)
{
    if (relay->free_count == 0 || ending(relay))
        return false;
    rv_assert(relay->free_count <= BATCHES);
    struct rv_relay_batch *batch = relay->free[relay->free_count - 1];
    enum rv_err err;
    do {
        rv_arena_reset(&batch->arena);
        err = rv_outbox_read(relay->outbox, &batch->arena, relay->read_from, relay->until,
                             RV_BATCH_ROWS, BATCH_BYTES, batch->rows, &batch->count, relay->fault);
    } while (try_again(relay, err));
    if (err != RV_OK || batch->count == 0)
        return false;
    rv_assert(batch->count <= RV_BATCH_ROWS);
    int64_t last = batch->rows[batch->count - 1].id;
    relay->read_from = last < INT64_MAX ? last + 1 : last; /* twice under the same key is once */
    int64_t now = rv_clock_wall_ms();
    for (size_t i = 0; i < batch->count; i++)
        rv_row_check(&batch->arena, &batch->rows[i], now);
    relay->free_count--;
    rv_sender_give(&relay->sender, batch);
    return true;
}

/* ---- the loop ---- */

/* Sleeps until somebody has changed the database. */
static void change_wait(struct relay *relay)
{
    int64_t look_ms = LOOK_MS_MIN;
    for (unsigned looks = 1; !ending(relay); looks++) {
        bool changed = false;
        enum rv_err err = rv_outbox_changed(relay->outbox, &changed, relay->fault);
        if (try_again(relay, err))
            continue;
        if (err != RV_OK || changed)
            return;
        if (looks % MOVED_LOOKS == 0 && rv_outbox_moved(relay->outbox)) {
            relay->err = RV_ERR_IO;
            snprintf(relay->fault->message, sizeof relay->fault->message,
                     "%s was removed or replaced by another file; start the relay again",
                     relay->path);
            return;
        }
        relay_pause(relay, look_ms);
        look_ms = look_ms * 2 > LOOK_MS_MAX ? LOOK_MS_MAX : look_ms * 2;
    }
}

static void relay_work(struct relay *relay)
{
    bool done = false;
    while (!done && !ending(relay)) {
        batches_take(relay, 0);
        if (batch_read(relay))
            continue;
        if (relay->free_count < BATCHES)
            batches_take(relay, TAKE_MS);
        else if (relay->options->once)
            done = true;
        else
            change_wait(relay);
    }
    rv_sender_stop(&relay->sender);
    while (relay->free_count < BATCHES)
        batches_take(relay, -1);
    rv_assert(relay->free_count == BATCHES); /* the sender has none: it can end */
}

/* ---- start and end ---- */

static bool lock_take(struct relay *relay)
{
    int64_t pid = 0;
    bool told = false;
    for (;;) {
        enum rv_err err = rv_relay_lock_take(&relay->lock, relay->path, &pid, relay->fault);
        if (err == RV_OK || atomic_load(&stop_asked))
            return err == RV_OK;
        if (err == RV_ERR_IN_USE && !relay->options->once) {
            if (!told)
                rv_log(RV_LOG_INFO, "relay-stands-by",
                       RV_LOG_STR("database", rv_str_of(relay->path)), RV_LOG_INT("pid", pid));
            told = true;
            relay_pause(relay, LOCK_MS);
            continue;
        }
        if (err == RV_ERR_IN_USE)
            snprintf(relay->fault->message, sizeof relay->fault->message,
                     "another relay (pid %lld) already submits the rows of %s", (long long)pid,
                     relay->path);
        relay->err = err;
        return false;
    }
}

static bool database_open(struct relay *relay)
{
    enum rv_err err;
    do {
        err = rv_outbox_open(relay->path, &relay->outbox, relay->fault);
    } while (try_again(relay, err));
    relay->read_from = INT64_MIN;
    relay->until = INT64_MAX;
    while (err == RV_OK && relay->options->once) {
        err = rv_outbox_last(relay->outbox, &relay->until, relay->fault);
        if (!try_again(relay, err))
            break;
        err = RV_OK;
    }
    return err == RV_OK;
}

/* Rows that an earlier run has given up are no tasks either. */
static void marked_count(struct relay *relay)
{
    enum rv_err err = RV_OK;
    if (!relay->options->once || ending(relay))
        return;
    do {
        err = rv_outbox_marked(relay->outbox, &relay->counts->marked_old, &relay->counts->marked,
                               relay->fault);
    } while (try_again(relay, err));
}

static bool batches_make(struct relay *relay)
{
    rv_assert(relay->free_count == 0);
    relay->all = calloc(BATCHES, sizeof *relay->all);
    for (size_t i = 0; relay->all != NULL && i < BATCHES; i++) {
        rv_arena_init(&relay->all[i].arena, 0);
        relay->free[relay->free_count++] = &relay->all[i];
    }
    if (relay->all == NULL) {
        relay->err = RV_ERR_MEMORY;
        snprintf(relay->fault->message, sizeof relay->fault->message, "out of memory");
    }
    return relay->all != NULL;
}

static bool sender_make(struct relay *relay)
{
    enum rv_err err = rv_sender_start(&relay->sender, relay->options->url, rv_str_of(relay->path),
                                      relay->options->once ? PATIENCE_MS : 0);
    relay->err = err;
    if (err != RV_OK)
        snprintf(relay->fault->message, sizeof relay->fault->message, "%s",
                 err == RV_ERR_INVALID
                     ? "--url or REEVE_URL is not a valid address; write http://HOST:PORT, or "
                       "unix:PATH"
                     : "out of memory");
    return err == RV_OK;
}

/* The path in "sqlite:PATH"; NULL after the reason was told. */
static const char *path_of(const char *database, struct rv_relay_fault *fault)
{
    static const char scheme[] = "sqlite:";
    enum { SCHEME_BYTES = sizeof scheme - 1 };
    const char *path = strncmp(database, scheme, SCHEME_BYTES) == 0 ? database + SCHEME_BYTES
                                                                    : NULL;
    bool host = path != NULL && path[0] == '/' && path[1] == '/' && path[2] != '/';
    if (path != NULL && path[0] != '\0' && !host)
        return path;
    snprintf(fault->message, sizeof fault->message,
             "\"%s\" is not the address of a database; write sqlite:PATH, such as sqlite:shop.db",
             database);
    return NULL;
}

/* Each part is made after the one before, and the last is undone first. */
static void relay_run(struct relay *relay)
{
    if (!database_open(relay))
        return;
    if (lock_take(relay)) {
        if (batches_make(relay) && sender_make(relay)) {
            rv_log(RV_LOG_INFO, "relay-works", RV_LOG_STR("database", rv_str_of(relay->path)),
                   RV_LOG_STR("url", rv_str_of(rv_client_url(relay->sender.client))));
            relay_work(relay);
            marked_count(relay);
            rv_sender_end(&relay->sender);
        }
        for (size_t i = 0; relay->all != NULL && i < BATCHES; i++)
            rv_arena_done(&relay->all[i].arena);
        free(relay->all);
        rv_relay_lock_give(&relay->lock);
    }
    rv_outbox_close(relay->outbox);
}

enum rv_err rv_relay_run(const struct rv_relay_options *options, struct rv_relay_counts *ret_counts,
                         struct rv_relay_fault *ret_fault)
{
    *ret_counts = (struct rv_relay_counts){.accepted = 0};
    ret_fault->message[0] = '\0';
    struct relay relay = {.options = options, .counts = ret_counts, .fault = ret_fault};
    relay.path = path_of(options->database, ret_fault);
    if (relay.path == NULL)
        return RV_ERR_INVALID;
    signals_take();
    rv_mailbox_init(&relay.pause, 0);
    relay_run(&relay);
    rv_mailbox_done(&relay.pause);
    if (atomic_load(&stop_asked)) {
        ret_fault->message[0] = '\0';
        return RV_OK; /* what it could not finish, the next one will */
    }
    return relay.err;
}

enum rv_err rv_relay_init(const char *database, bool *ret_new_file,
                          struct rv_relay_fault *ret_fault)
{
    ret_fault->message[0] = '\0';
    const char *path = path_of(database, ret_fault);
    return path == NULL ? RV_ERR_INVALID : rv_outbox_make(path, ret_new_file, ret_fault);
}

const char *rv_relay_sql(void)
{
    return rv_outbox_sql();
}

/* reeve.h - the public interface of libreeve: submit tasks to a Reeve server, run agents for it.
 *
 * An agent carries out the steps of one name. This is a whole one:
 *
 *     #include <reeve.h>
 *     #include <stdio.h>
 *
 *     static void handle(struct rv_request *request, void *user)
 *     {
 *         int64_t quantity = 0;
 *         const char *sku = rv_request_string(request, "/sku");
 *         if (sku == NULL || !rv_request_integer(request, "/quantity", &quantity)) {
 *             rv_request_fail(request, &(struct rv_failure){.type = "bad-order"});
 *             return;
 *         }
 *         // ... reserve it; pass rv_request_key(request) along, so that a repeat is harmless ...
 *         rv_request_done(request, "{\"reserved\":true}");
 *     }
 *
 *     int main(void)
 *     {
 *         struct rv_agent_options options = {.name = "inventory", .handler = handle};
 *         struct rv_agent *agent = rv_agent_open(NULL, &options);
 *         if (agent == NULL)
 *             return 1;
 *         int result = rv_agent_run(agent);
 *         rv_agent_close(agent);
 *         return result;
 *     }
 *
 * Build it with `cc agent.c $(pkg-config --cflags --libs reeve)`.
 *
 * Everywhere: text is UTF-8 and ends with NUL; a zeroed options structure means the defaults, and
 * NULL options too; texts and structures that are passed in are copied; `*_ms` is milliseconds.
 * The header is C11 and C++. */
#ifndef REEVE_H
#define REEVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RV_PUBLIC __attribute__((visibility("default")))
#else
#define RV_PUBLIC
#endif

/* What a call gives. 0 is success. */
enum rv_result {
    RV_RESULT_OK = 0,
    RV_RESULT_REFUSED = 1,     /* the server answered, with a 4xx or 5xx status */
    RV_RESULT_UNREACHABLE = 2, /* no answer in time; the server may or may not have got the call */
    RV_RESULT_TIMEOUT = 3,     /* what was waited for has not happened yet */
    RV_RESULT_USAGE = 4,       /* an argument or option makes no sense */
    RV_RESULT_MEMORY = 5,
    RV_RESULT_HUNG = 6 /* rv_agent_run: stopped, but handlers have not returned in time */
};

/* "0.1.0" */
RV_PUBLIC const char *rv_version(void);

/* ---- The application's side: submit and ask ------------------------------------------------ */

/* One connection to a server. Calls block; one thread at a time. */
struct rv_client;

struct rv_client_options {
    const char *api_key; /* NULL: the variable REEVE_API_KEY, if set */
    int64_t timeout_ms;  /* for one exchange; default 30 s */
    int64_t patience_ms; /* how long a call that may be repeated is repeated; default 10 s,
                             negative: never repeat */
};

/* `url`: "http://HOST:PORT", "https://HOST:PORT", or "unix:PATH" of a socket of this machine. NULL:
 * the variable REEVE_URL, else http://127.0.0.1:7733. Does not connect yet.
 * For https the certificates of the system vouch for the server, or those in the file that the
 * variable REEVE_CA_FILE names.
 * NULL when the URL is none or memory is out. */
RV_PUBLIC struct rv_client *rv_client_open(const char *url,
                                           const struct rv_client_options *options);
RV_PUBLIC void rv_client_close(struct rv_client *client);
/* One sentence about the last call that did not give OK, naming the cure. Valid until the next. */
RV_PUBLIC const char *rv_client_error(const struct rv_client *client);
/* The server's address as it is used, without a slash at the end. */
RV_PUBLIC const char *rv_client_url(const struct rv_client *client);
/* The server's wall clock when it sent the newest answer: milliseconds since 1970, in whole
 * seconds. 0: unknown. */
RV_PUBLIC int64_t rv_client_server_time(const struct rv_client *client);

/* One HTTP exchange of any kind. */
struct rv_call {
    const char *method;       /* NULL: GET without a body, POST with one */
    const char *path;         /* "/v1/tasks?state=error", escaped already */
    const char *body;         /* may be NULL */
    size_t body_bytes;        /* 0 with a body: strlen(body) */
    const char *content_type; /* NULL: application/json */
    const char *accept;       /* NULL: any */
    /* Nonzero: repeat after a lost answer or a 503, within patience_ms. GET, HEAD, PUT and DELETE
     * are repeated anyway; a POST without this only if it certainly did not reach the server. */
    int repeatable;
    int64_t timeout_ms; /* 0: as the client; negative: none (streams) */
    /* For streams: gets the bytes as they come, not `body`. Nonzero ends the call, with OK. */
    int (*on_bytes)(const char *bytes, size_t count, void *user);
    void *user;
};

/* What came back. rv_answer_free() frees what is in it. */
struct rv_answer {
    int status; /* 200, 404, ...; 0 when there was no answer */
    char *body; /* never NULL after OK or REFUSED; NUL-terminated */
    size_t body_bytes;
    int64_t retry_after_ms; /* of Retry-After; -1 if absent */
    char content_type[64];
};

/* OK for 2xx, REFUSED for other answers (rv_client_error then has title and detail of the
 * problem+json), UNREACHABLE. `ret_answer` is filled in every case. */
RV_PUBLIC int rv_client_request(struct rv_client *client, const struct rv_call *call,
                                struct rv_answer *ret_answer);
RV_PUBLIC void rv_answer_free(struct rv_answer *answer);

/* A task to be. */
struct rv_submission {
    const char *workflow;       /* "shop/process-order" or "shop/process-order:1.0.0" */
    const char *input;          /* JSON; NULL: {} */
    const char *key;            /* the same key, the same task, however often it is submitted. NULL:
                                   a random one is made, which makes this one call safe to repeat */
    int priority;               /* 1 to 9; 0: the default, 5. For 0 say RV_PRIORITY_LOWEST */
    const char *correlation_id; /* may be NULL */
    const char *reply_to;       /* JSON object; may be NULL */
    const char *tags;           /* JSON object of strings; may be NULL */
    int without_key;            /* nonzero: send no key; a lost answer is then not repeated */
    /* The W3C trace context of whoever submits: the task's spans become children of that span. One
     * that is not valid is passed over by the server. NULL: the task begins a trace of its own. */
    const char *traceparent;
    const char *tracestate; /* nothing without traceparent */
};
#define RV_PRIORITY_LOWEST (-1)

/* What became of a submission. */
struct rv_receipt {
    int status;     /* 201 accepted, 200 already known by its key, 4xx or 5xx refused */
    char task[16];  /* its id; "" if refused */
    char state[16]; /* "pending", ... */
    char why[200];  /* if refused: the reason and the cure */
};

/* Acknowledged is durable: after OK the task is in the store. */
RV_PUBLIC int rv_client_submit(struct rv_client *client, const struct rv_submission *submission,
                               struct rv_receipt *ret_receipt);
/* Many in as few calls as the limits allow. OK if every one was accepted, REFUSED if at least one
 * was not (see its receipt); UNREACHABLE: those with status 0 have no answer. */
RV_PUBLIC int rv_client_submit_many(struct rv_client *client,
                                    const struct rv_submission *submissions, size_t count,
                                    struct rv_receipt *ret_receipts);

/* Waits until the task is processed, compensated, cancelled or in error. OK whatever its end is:
 * `ret_state` has it, and `ret_answer` (may be NULL) the task as JSON. TIMEOUT after `timeout_ms`
 * (negative: wait for ever). */
RV_PUBLIC int rv_client_wait(struct rv_client *client, const char *task, int64_t timeout_ms,
                             char ret_state[16], struct rv_answer *ret_answer);

/* ---- The agent's side ---------------------------------------------------------------------- */

struct rv_agent;
/* One try of one attempt of a step, from the handler's call until it is answered. */
struct rv_request;

/* Does the work of one request. It answers exactly once, by rv_request_done() or
 * rv_request_fail(): before it returns, or later and from any thread. A request that is never
 * answered occupies its place for ever. */
typedef void (*rv_handler)(struct rv_request *request, void *user);

/* What the runtime did, in numbers. */
struct rv_agent_counts {
    uint64_t requests;     /* attempts received */
    uint64_t tries;        /* calls of the handler */
    uint64_t replied;      /* replies that the server took (200) */
    uint64_t refused;      /* replies that it did not (409, 410, ...) */
    uint64_t late_dropped; /* answers of the handler after the deadline: never sent */
    uint64_t expired;      /* attempts whose deadline passed here */
    uint64_t duplicates;   /* attempts that came twice and were ignored */
    uint64_t cancelled;    /* attempts that the server asked to stop */
    uint64_t circuit_open; /* attempts answered by an open circuit */
    uint64_t calls_failed; /* calls to the server without a usable answer */
};

enum rv_agent_log { RV_AGENT_LOG_INFO = 0, RV_AGENT_LOG_WARNING = 1, RV_AGENT_LOG_ERROR = 2 };

struct rv_agent_options {
    const char *name;   /* required: the name that workflows call ("inventory") */
    rv_handler handler; /* required */
    void *user;         /* given to every callback */
    /* This process among those of the same name; NULL: host and process id. A name that stays the
     * same over restarts has the server take back at once what a killed process had in hand. */
    const char *instance;
    const char *api_key; /* NULL: the variable REEVE_API_KEY, if set */
    /* Threads that run the handler; default 8. RV_THREADS_NONE: it runs on the thread of
     * rv_agent_run() and must be quick: it answers at once, or hands the work to someone else. */
    int threads;
    int max;         /* requests in hand, up to 1000; default: threads, or 64 without */
    int64_t wait_ms; /* of a long poll; default 20 s, at most 50 s */
    /* Tries of one attempt when the handler fails as transient: default 5, 1 means no retry. The
     * pause before try n is random in [0, min(retry_cap_ms, retry_base_ms * 2^(n-2))] (full
     * jitter), and at least retry_after_ms. What does not fit before the deadline is not tried. */
    int tries_max;
    int64_t retry_base_ms; /* default 50 */
    int64_t retry_cap_ms;  /* default 2 s */
    /* Names the remote service that a request goes to; one circuit breaker each. Quick, on the
     * thread of rv_agent_run(); the text is copied (127 bytes). NULL: one target, `name`. */
    const char *(*target)(const struct rv_request *request, void *user);
    /* A circuit opens when, of the last 16 tries, at least this many and at least half failed as
     * transient or ran out of time. Default 5; negative: no circuit breaker. */
    int circuit_failures;
    int64_t circuit_open_ms; /* default 1 s; doubles with each failed probe, up to 30 s */
    /* The server asks to stop this request. Optional, quick, on the thread of rv_agent_run(): it
     * may look at the request and wake whoever works on it, but must not answer it. */
    void (*on_cancel)(struct rv_request *request, void *user);
    /* NULL: to stderr, without waiting for its reader. Called on the thread of rv_agent_run() and
     * of rv_agent_open(). */
    void (*log)(enum rv_agent_log level, const char *message, void *user);
    /* An agent with `max` requests in hand asks for no more, and so hears of a cancel only when it
     * renews a lease. Each is renewed at least so often; 0: only as its length needs it. */
    int64_t renew_ms;
};
#define RV_THREADS_NONE (-1)

/* `url` as in rv_client_open(). NULL when an option is wrong (the reason is logged). */
RV_PUBLIC struct rv_agent *rv_agent_open(const char *url, const struct rv_agent_options *options);
/* Works until rv_agent_stop(), once. OK, HUNG, USAGE (it ran already) or MEMORY. */
RV_PUBLIC int rv_agent_run(struct rv_agent *agent);
/* From any thread, from the handler, and from a signal handler. rv_agent_run() then takes nothing
 * new, lets open requests end within their deadlines, sends their replies, and returns. */
RV_PUBLIC void rv_agent_stop(struct rv_agent *agent);
/* Never while rv_agent_run() runs. After HUNG it leaves the memory to the hung handlers. */
RV_PUBLIC void rv_agent_close(struct rv_agent *agent);
/* From any thread. */
RV_PUBLIC void rv_agent_count(struct rv_agent *agent, struct rv_agent_counts *ret_counts);

/* What is asked. Texts live until the request is answered. One thread at a time per request, but
 * for rv_request_remaining_ms(), rv_request_complete_in_ms() and rv_request_stopped(), which any
 * thread may call. */
RV_PUBLIC const char *rv_request_input(const struct rv_request *request, size_t *ret_bytes);
/* A string of the input by JSON pointer (RFC 6901: "/order/lines/0/sku"); NULL if there is none. */
RV_PUBLIC const char *rv_request_string(struct rv_request *request, const char *pointer);
/* Nonzero and the number, if there is one that fits. */
RV_PUBLIC int rv_request_integer(struct rv_request *request, const char *pointer,
                                 int64_t *ret_number);
RV_PUBLIC int rv_request_real(struct rv_request *request, const char *pointer, double *ret_number);
/* The same for all attempts of a step: pass it to the remote service, which then does it once. */
RV_PUBLIC const char *rv_request_key(const struct rv_request *request);
/* Rises with every attempt of the task: a remote service may refuse an older writer. */
RV_PUBLIC int64_t rv_request_fence(const struct rv_request *request);
RV_PUBLIC const char *rv_request_task(const struct rv_request *request);
RV_PUBLIC const char *rv_request_step(const struct rv_request *request);
/* Where in the definition: "/do/0/reserveStock". */
RV_PUBLIC const char *rv_request_reference(const struct rv_request *request);
RV_PUBLIC int64_t rv_request_attempt(const struct rv_request *request);
/* Which call of the handler for this attempt, from 1. */
RV_PUBLIC int rv_request_try(const struct rv_request *request);
/* W3C trace context: the attempt is the parent of whatever is done for it. Pass both on with each
 * call. Or "", of a server that sends none; of a caller who has no tracestate. */
RV_PUBLIC const char *rv_request_traceparent(const struct rv_request *request);
RV_PUBLIC const char *rv_request_tracestate(const struct rv_request *request);
/* Until the deadline (the earlier of complete-by and lease), by a monotonic clock; never negative.
 * Give it to the remote call as its timeout. */
RV_PUBLIC int64_t rv_request_remaining_ms(const struct rv_request *request);
/* Until complete-by alone, for work that lasts longer than one lease: the runtime renews the lease
 * meanwhile, so the deadline moves on up to here. */
RV_PUBLIC int64_t rv_request_complete_in_ms(const struct rv_request *request);
/* Complete-by as the server writes it, on its own clock: "2026-11-21T01:30:00.000Z"; or "". */
RV_PUBLIC const char *rv_request_complete_by(const struct rv_request *request);

enum rv_stop { RV_STOP_NO = 0, RV_STOP_CANCELLED = 1, RV_STOP_LATE = 2 };
/* Whether to go on. CANCELLED: stop if that leaves a clear outcome, and answer with it. LATE: the
 * deadline has passed, nobody will hear the answer; it must be given nevertheless. */
RV_PUBLIC enum rv_stop rv_request_stopped(const struct rv_request *request);

/* What a failed try may have done outside. */
enum rv_effect {
    RV_EFFECT_DEFAULT = 0, /* UNKNOWN for a transient failure, NONE for a permanent one */
    RV_EFFECT_NONE = 1,    /* certainly nothing */
    RV_EFFECT_UNKNOWN = 2
};

struct rv_failure {
    const char *type;  /* required: what `catch` looks for; "declined", or a URI */
    const char *title; /* for people; may be NULL */
    int status;        /* of the remote service, if it has one; 0: none */
    int transient;     /* nonzero: the same request may succeed later */
    enum rv_effect effect;
    int64_t retry_after_ms; /* the remote service asks for this pause; 0: none */
    const char *detail;     /* more for people, up to 2048 bytes; may be NULL */
};

/* The request ends and is not the handler's any more; both copy what they are given.
 * done: `output` is JSON (NULL: null). Output that is no JSON, or over 1 MiB, becomes a failure. */
RV_PUBLIC void rv_request_done(struct rv_request *request, const char *output);
/* fail: transient failures are tried again inside the deadline before the server hears of one. */
RV_PUBLIC void rv_request_fail(struct rv_request *request, const struct rv_failure *failure);

#ifdef __cplusplus
}
#endif

#endif

/* agent - the shop's agent for one of its services: carries out steps by HTTP.
 *
 * usage: agent NAME SERVICE_URL INSTANCE
 *
 * All three services speak alike, so one program serves them all, started once for each. Deadline,
 * repeats and the connection to Reeve are libreeve's; what is left is this: ask the service within
 * the time that remains, and say truly how it ended. */
#include <reeve.h>

#include <curl/curl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { URL_BYTES = 1024, ANSWER_BYTES = 4096 };

struct answer {
    char body[ANSWER_BYTES];
    size_t bytes;
};

static struct rv_agent *running; /* for the signal handler */

static void on_signal(int number)
{
    (void)number;
    rv_agent_stop(running);
}

static size_t on_body(char *bytes, size_t each, size_t count, void *user)
{
    struct answer *answer = user;
    size_t n = each * count;
    if (n >= sizeof answer->body - answer->bytes)
        return 0;
    memcpy(answer->body + answer->bytes, bytes, n);
    answer->bytes += n;
    answer->body[answer->bytes] = '\0';
    return n;
}

/* SERVICE/OPERATION?order=..., each member of the step's input that the services know. False: the
 * input has no operation, or is absurdly long. */
static bool make_url(struct rv_request *request, const char *service, CURL *curl,
                     char url[static URL_BYTES])
{
    static const char *const texts[] = {"order", "item", "key", "via"};
    const char *operation = rv_request_string(request, "/operation");
    int64_t amount = 0;
    if (operation == NULL)
        return false;
    (void)rv_request_integer(request, "/amount", &amount);
    int len = snprintf(url, URL_BYTES, "%s/%s?amount=%" PRId64, service, operation, amount);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char pointer[16];
        snprintf(pointer, sizeof pointer, "/%s", texts[i]);
        const char *value = rv_request_string(request, pointer);
        char *escaped = value ? curl_easy_escape(curl, value, 0) : NULL;
        if (escaped != NULL && len < URL_BYTES)
            len += snprintf(url + len, (size_t)(URL_BYTES - len), "&%s=%s", texts[i], escaped);
        curl_free(escaped);
    }
    return len < URL_BYTES;
}

/* The service gave no answer: only a connection that never came to be leaves no doubt. */
static void fail_without_answer(struct rv_request *request, CURLcode code)
{
    bool never_sent = code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST;
    rv_request_fail(
        request, &(struct rv_failure){.type = "no-answer",
                                      .title = curl_easy_strerror(code),
                                      .transient = 1,
                                      .effect = never_sent ? RV_EFFECT_NONE : RV_EFFECT_UNKNOWN});
}

/* The service answered with an error: it then did nothing. Busy passes; a refusal stays. */
static void fail_with_status(struct rv_request *request, CURL *curl, long status)
{
    struct curl_header *type = NULL;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    bool named = curl_easy_header(curl, "Problem-Type", 0, CURLH_HEADER, -1, &type) == CURLHE_OK;
    rv_request_fail(request, &(struct rv_failure){.type = named ? type->value : "http-error",
                                                  .status = (int)status,
                                                  .transient = status == 503 || status == 429,
                                                  .effect = RV_EFFECT_NONE,
                                                  .retry_after_ms = (int64_t)retry_after_s * 1000});
}

static struct curl_slist *make_headers(const struct rv_request *request)
{
    char key[256];
    char fence[48];
    snprintf(key, sizeof key, "Idempotency-Key: %s", rv_request_key(request));
    snprintf(fence, sizeof fence, "Fence: %" PRId64, rv_request_fence(request));
    struct curl_slist *headers = curl_slist_append(NULL, key);
    return headers ? curl_slist_append(headers, fence) : NULL;
}

static void ask_service(struct rv_request *request, CURL *curl, const char *url)
{
    struct answer answer = {.bytes = 0};
    struct curl_slist *headers = make_headers(request);
    long status = 0;
    int64_t remaining_ms = rv_request_remaining_ms(request);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, remaining_ms > 0 ? (long)remaining_ms : 1L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        fail_without_answer(request, code);
    else if (status == 200)
        rv_request_done(request, answer.body);
    else
        fail_with_status(request, curl, status);
    curl_slist_free_all(headers);
}

static void handle(struct rv_request *request, void *user)
{
    char url[URL_BYTES];
    CURL *curl = curl_easy_init();
    if (curl != NULL && make_url(request, user, curl, url))
        ask_service(request, curl, url);
    else
        rv_request_fail(request, &(struct rv_failure){.type = "bad-request"});
    curl_easy_cleanup(curl);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: agent NAME SERVICE_URL INSTANCE\n");
        return 2;
    }
    /* No circuit breaker: here, single orders are in trouble and not whole services, and an open
     * circuit would make the healthy ones wait. */
    struct rv_agent_options options = {.name = argv[1],
                                       .handler = handle,
                                       .user = argv[2],
                                       .instance = argv[3],
                                       .threads = 16,
                                       .circuit_failures = -1};
    curl_global_init(CURL_GLOBAL_DEFAULT);
    running = rv_agent_open(NULL, &options);
    if (running == NULL)
        return 1;
    struct sigaction stop = {.sa_handler = on_signal};
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    int result = rv_agent_run(running);
    rv_agent_close(running);
    curl_global_cleanup();
    return result;
}

#include "service.h"

#include "fate.h"
#include "serve.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNTERS_MAX = 8192, BURST_EVERY = 48, BURST_LENGTH = 6 };

/* How often one order has asked for one verb; forgotten when the service dies. */
struct counter {
    char order[SHOP_TEXT_BYTES];
    bool undo;
    bool put_off; /* told to come again; it is then served, burst or not */
    uint32_t asked;
};

struct service {
    const struct shop_business *business; /* borrowed: static */
    pthread_mutex_t lock;                 /* holds everything below; one writer at a time */
    struct shop_ledger ledger;
    struct counter counters[COUNTERS_MAX];
    size_t counters_count;
    uint64_t seed;
    uint64_t requests;
    uint64_t at_work;   /* requests not yet answered, those that hang included */
    uint64_t die_after; /* 0: never */
    long hang_ms;
};

struct request {
    bool undo;
    const char *verb;
    const char *order;
    const char *key; /* of the forward step: its own, or for an undo the one it undoes */
    const char *item;
    const char *via; /* another way than the usual one, such as "bank-transfer"; NULL: none */
    char texts[5][SHOP_TEXT_BYTES];
    int64_t amount;
    int64_t fence;
    uint32_t nth;
};

/* What a request meets beyond its own fate. */
enum weather { WEATHER_FAIR, WEATHER_BURST, WEATHER_LAST };

static void answer_problem(struct shop_answer *answer, unsigned status, const char *problem)
{
    answer->status = status;
    answer->problem = problem;
    snprintf(answer->body, sizeof answer->body, "{\"type\":\"%s\",\"status\":%u}\n", problem,
             status);
}

/* The receipt is made from the ledger's line, so a repeated request gets the same one. */
static void answer_receipt(struct shop_answer *answer, const struct service *service,
                           const struct shop_entry *entry)
{
    answer->status = 200;
    answer->problem = NULL;
    snprintf(answer->body, sizeof answer->body,
             "{\"receipt\":\"%s-%zu\",\"order\":\"%s\",\"amount\":%" PRId64
             ",\"nothingToDo\":%s}\n",
             entry->verb, (size_t)(entry - service->ledger.entries) + 1, entry->order,
             entry->amount, !strcmp(entry->outcome, "void") ? "true" : "false");
}

static const struct shop_entry *write_line(struct service *service, const struct request *request,
                                           const char *outcome)
{
    struct shop_entry entry = {.fence = request->fence, .amount = request->amount};
    snprintf(entry.verb, sizeof entry.verb, "%s", request->verb);
    snprintf(entry.outcome, sizeof entry.outcome, "%s", outcome);
    snprintf(entry.order, sizeof entry.order, "%s", request->order);
    snprintf(entry.key, sizeof entry.key, "%s", request->key);
    snprintf(entry.item, sizeof entry.item, "%s", request->item);
    return shop_ledger_add(&service->ledger, entry);
}

/* A writer that lost its right: what it wanted is noted, and not done. */
static void turn_away(struct service *service, const struct request *request, const char *problem,
                      struct shop_answer *answer)
{
    write_line(service, request, "refused");
    answer_problem(answer, 409, problem);
}

static const struct shop_entry *find_undo(const struct service *service, const char *key)
{
    const char *verb = service->business->undo_verb;
    const struct shop_entry *done = shop_ledger_find(&service->ledger, verb, key, "done");
    return done ? done : shop_ledger_find(&service->ledger, verb, key, "void");
}

static void do_forward(struct service *service, const struct request *request,
                       struct shop_answer *answer)
{
    const struct shop_business *business = service->business;
    const struct shop_entry *before = shop_ledger_find(&service->ledger, business->verb,
                                                       request->key, "done");
    if (find_undo(service, request->key) != NULL) {
        turn_away(service, request, "undone-already", answer);
        return;
    }
    if (request->fence < shop_ledger_fence(&service->ledger, request->order)) {
        turn_away(service, request, "stale-fence", answer);
        return;
    }
    if (before != NULL) {
        answer_receipt(answer, service, before);
        return;
    }
    const char *objection = business->objection == NULL
                                ? NULL
                                : business->objection(&service->ledger, request->item,
                                                      request->amount);
    if (objection != NULL)
        answer_problem(answer, 422, objection);
    else
        answer_receipt(answer, service, write_line(service, request, "done"));
}

static void do_undo(struct service *service, const struct request *request,
                    struct shop_answer *answer)
{
    const struct shop_entry *before = find_undo(service, request->key);
    if (before != NULL) {
        answer_receipt(answer, service, before);
        return;
    }
    if (request->fence < shop_ledger_fence(&service->ledger, request->order)) {
        turn_away(service, request, "stale-fence", answer);
        return;
    }
    const struct shop_entry *forward = shop_ledger_find(&service->ledger, service->business->verb,
                                                        request->key, "done");
    struct request undo = *request;
    if (forward != NULL) {
        undo.amount = forward->amount;
        undo.item = forward->item;
    }
    answer_receipt(answer, service, write_line(service, &undo, forward ? "done" : "void"));
}

static void do_work(struct service *service, const struct request *request,
                    struct shop_answer *answer)
{
    pthread_mutex_lock(&service->lock);
    if (request->undo)
        do_undo(service, request, answer);
    else
        do_forward(service, request, answer);
    pthread_mutex_unlock(&service->lock);
}

/* Never NULL; when there are too many orders, the last one's counter serves the rest. */
static struct counter *counter_of(struct service *service, const struct request *request)
{
    for (size_t i = 0; i < service->counters_count; i++) {
        struct counter *counter = &service->counters[i];
        if (counter->undo == request->undo && !strcmp(counter->order, request->order))
            return counter;
    }
    if (service->counters_count == COUNTERS_MAX)
        return &service->counters[COUNTERS_MAX - 1];
    struct counter *counter = &service->counters[service->counters_count++];
    snprintf(counter->order, sizeof counter->order, "%s", request->order);
    counter->undo = request->undo;
    return counter;
}

static bool in_burst(const struct service *service, uint64_t n)
{
    uint64_t start = shop_draw(service->seed, (uint64_t)service->business->name[0]) % BURST_EVERY;
    return service->seed != 0 && (n + start) % BURST_EVERY < BURST_LENGTH;
}

/* Counts the request: how often its order asked for this verb, and what the service as a whole is
 * in the mood for. */
static enum weather count_request(struct service *service, struct request *request)
{
    enum weather weather = WEATHER_FAIR;
    pthread_mutex_lock(&service->lock);
    uint64_t n = ++service->requests;
    service->at_work++;
    struct counter *counter = counter_of(service, request);
    if (n == service->die_after)
        weather = WEATHER_LAST;
    else if (in_burst(service, n) && !counter->put_off)
        weather = WEATHER_BURST;
    counter->put_off = weather == WEATHER_BURST;
    if (weather != WEATHER_BURST)
        request->nth = ++counter->asked;
    pthread_mutex_unlock(&service->lock);
    return weather;
}

static void hang(const struct service *service, const struct request *request)
{
    long ms = shop_hang_ms(service->seed, request->order, request->nth, service->hang_ms);
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* False: no answer leaves, the connection is closed. */
static bool meet_fate(struct service *service, const struct request *request, enum weather weather,
                      struct shop_answer *answer)
{
    const struct shop_business *business = service->business;
    if (weather == WEATHER_BURST) {
        answer_problem(answer, 503, "busy");
        return true;
    }
    enum shop_fault fault = shop_fate(service->seed, request->order, request->verb, request->nth);
    if (fault == SHOP_FAULT_DECLINE && request->undo && request->via != NULL)
        fault = SHOP_FAULT_NONE; /* what is refused is the usual way */
    if (fault == SHOP_FAULT_HANG)
        hang(service, request);
    if (fault == SHOP_FAULT_DECLINE)
        answer_problem(answer, 422, request->undo ? business->undo_decline : business->decline);
    else
        do_work(service, request, answer);
    if (weather == WEATHER_LAST)
        _exit(3); /* the most vicious moment: the work is done, and nobody knows */
    if (fault == SHOP_FAULT_MUTE)
        hang(service, request);
    return fault != SHOP_FAULT_DROP;
}

static bool serve(struct service *service, struct request *request, struct shop_answer *answer)
{
    enum weather weather = count_request(service, request);
    bool answers = meet_fate(service, request, weather, answer);
    pthread_mutex_lock(&service->lock);
    service->at_work--;
    pthread_mutex_unlock(&service->lock);
    return answers;
}

typedef bool finder(const struct shop_request *request, const char *name, char *ret, size_t bytes);

/* The text in `room`, or NULL. */
static const char *text_find(const struct shop_request *from, finder *find, const char *name,
                             char room[SHOP_TEXT_BYTES])
{
    return find(from, name, room, SHOP_TEXT_BYTES) && shop_text_good(room) ? room : NULL;
}

static int64_t number_find(const struct shop_request *from, finder *find, const char *name)
{
    char text[SHOP_TEXT_BYTES];
    return find(from, name, text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

/* False: something that the service needs is missing. */
static bool read_request(const struct shop_business *business, const struct shop_request *from,
                         struct request *request)
{
    request->undo = !strcmp(shop_path(from) + 1, business->undo_verb);
    request->verb = request->undo ? business->undo_verb : business->verb;
    request->order = text_find(from, shop_argument, "order", request->texts[0]);
    request->item = text_find(from, shop_argument, "item", request->texts[1]);
    request->via = text_find(from, shop_argument, "via", request->texts[2]);
    request->amount = number_find(from, shop_argument, "amount");
    request->fence = number_find(from, shop_header, "Fence");
    const char *own_key = text_find(from, shop_header, "Idempotency-Key", request->texts[3]);
    request->key = request->undo ? text_find(from, shop_argument, "key", request->texts[4])
                                 : own_key;
    if (request->item == NULL)
        request->item = "-";
    return request->order != NULL && own_key != NULL && request->key != NULL && request->fence > 0;
}

/* How many requests are still at work: who wants a final ledger waits until there are none. */
static void tell_at_work(struct service *service, struct shop_answer *answer)
{
    answer->status = 200;
    pthread_mutex_lock(&service->lock);
    snprintf(answer->body, sizeof answer->body, "{\"atWork\":%" PRIu64 "}\n", service->at_work);
    pthread_mutex_unlock(&service->lock);
}

static bool on_request(void *self, const struct shop_request *from, struct shop_answer *answer)
{
    struct service *service = self;
    const char *path = shop_path(from);
    struct request request = {0};
    if (!strcmp(shop_method(from), "GET") && !strcmp(path, "/at-work")) {
        tell_at_work(service, answer);
        return true;
    }
    bool known = !strcmp(path + 1, service->business->verb) ||
                 !strcmp(path + 1, service->business->undo_verb);
    if (strcmp(shop_method(from), "POST") != 0 || !known)
        answer_problem(answer, 404, "no-such-operation");
    else if (!read_request(service->business, from, &request))
        answer_problem(answer, 400, "order-key-or-fence-missing");
    else
        return serve(service, &request, answer);
    return true;
}

/* Serves for ever: the services end as services do, by being killed. */
static int service_run(struct service *service, uint16_t port)
{
    int fd;
    uint16_t taken;
    if (!shop_listen(port, &fd, &taken)) {
        fprintf(stderr, "%s: cannot listen on port %u\n", service->business->name, port);
        return 1;
    }
    printf("%u\n", taken);
    fflush(stdout);
    shop_serve(fd, on_request, service);
}

static int usage(const struct shop_business *business)
{
    fprintf(stderr,
            "usage: %s --ledger FILE [--port N] [--seed N] [--hang-ms N] [--die-after N]\n"
            "       %s --story ORDER --seed N\n",
            business->name, business->name);
    return 2;
}

int shop_service_main(const struct shop_business *business, int argc, char **argv)
{
    static const struct option options[] = {{"ledger", required_argument, NULL, 'l'},
                                            {"port", required_argument, NULL, 'p'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"hang-ms", required_argument, NULL, 'h'},
                                            {"die-after", required_argument, NULL, 'd'},
                                            {"story", required_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    static struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER, .hang_ms = 2000};
    const char *ledger = NULL;
    const char *story = NULL;
    unsigned long port = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'l':
            ledger = optarg;
            break;
        case 'p':
            port = strtoul(optarg, NULL, 10);
            break;
        case 's':
            service.seed = strtoull(optarg, NULL, 10);
            break;
        case 'h':
            service.hang_ms = strtol(optarg, NULL, 10);
            break;
        case 'd':
            service.die_after = strtoull(optarg, NULL, 10);
            break;
        case 't':
            story = optarg;
            break;
        default:
            return usage(business);
        }
    }
    if (story != NULL) {
        printf("%s: %s\n", story, shop_story(service.seed, story));
        return 0;
    }
    if (ledger == NULL || port > UINT16_MAX || optind < argc)
        return usage(business);
    service.business = business;
    if (!shop_ledger_open(&service.ledger, ledger))
        return 1;
    return service_run(&service, (uint16_t)port);
}

/* proxy - a TCP proxy that does harm to its connections, drawn from a seed.
 *
 *   proxy --target PORT --seed N [--listen PORT] [--faults PERCENT] [--only FAULT]
 *
 * Stands on loopback between HTTP clients and a server, and prints its port when it listens. It
 * knows nothing of HTTP but that the two sides take turns: an exchange begins with the client's
 * first byte after the server's last. The seed, the number of the connection and the number of the
 * exchange on it draw whether a fault befalls that exchange, which, and how bad: the same numbers,
 * the same harm.
 *
 * Lines on stdin: "heal" ends all harm, lets go what is held up and does no more; "harm" begins
 * again; "hold" forwards nothing at all until the next heal or harm, as if a cable were pulled;
 * "counts" prints how often each fault took effect. The end of stdin ends the program.
 *
 * One thread around poll(). A link is a client's connection and the one made for it to the server;
 * each of its two ways has a buffer, and may be told to wait or to go slowly. */
#include "base/prng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    LINKS_MAX = 256,
    WAY_BYTES = 16384,
    DELAY_MS_MAX = 500,
    WAITING_MS_MAX = 400,
    DUPLICATE_MS_MAX = 300,
    STALL_MS_MIN = 1000, /* longer than a step of the shop may take */
    STALL_MS_MAX = 6000,
    SLOW_MS = 5, /* between two pieces */
    SLOW_BYTES_MAX = 48
};

static const int64_t NEVER = INT64_MAX;

enum fault {
    FAULT_NONE,
    FAULT_DELAY,       /* each chunk waits, both ways */
    FAULT_SLOW,        /* a few bytes at a time, both ways */
    FAULT_CUT_BEFORE,  /* the request is never forwarded */
    FAULT_CUT_WAITING, /* cut a while after the request came, whether answered or not */
    FAULT_CUT_AFTER,   /* the server answers, and nobody hears it */
    FAULT_CUT_MIDDLE,  /* the client hears the beginning of the answer */
    FAULT_HALF_OPEN,   /* one way stands still; later it goes on or is cut */
    FAULT_DUPLICATE,   /* the same request once more on a connection of its own */
    FAULT_COUNT
};

static const struct {
    const char *name;
    uint64_t weight;
} faults[FAULT_COUNT] = {
    [FAULT_NONE] = {"none", 0},
    [FAULT_DELAY] = {"delay", 5},
    [FAULT_SLOW] = {"slow", 2},
    [FAULT_CUT_BEFORE] = {"cut-before", 3},
    [FAULT_CUT_WAITING] = {"cut-waiting", 4},
    [FAULT_CUT_AFTER] = {"cut-after", 4},
    [FAULT_CUT_MIDDLE] = {"cut-middle", 3},
    [FAULT_HALF_OPEN] = {"half-open", 2},
    [FAULT_DUPLICATE] = {"duplicate", 5},
};

enum side { CLIENT, SERVER, SIDES };

/* From one side to the other. */
struct way {
    char bytes[WAY_BYTES];
    size_t begin;
    size_t end;
    size_t piece;       /* bytes at a time; 0: all */
    int64_t not_before; /* nothing leaves earlier */
    bool ended;         /* the source has no more */
    bool told;          /* and the other side knows */
};

struct link {
    int fds[SIDES]; /* of a duplicate: no client, -1 */
    int slots[SIDES];
    struct way ways[SIDES]; /* by the side that they come from */
    struct rv_prng prng;    /* of this exchange */
    uint64_t number;
    uint64_t exchange;
    enum fault fault;
    bool answered; /* the server has said something since the client did */
    bool closed;
    int64_t cut_at;
    size_t kept_bytes; /* of this exchange's request, for a duplicate */
    int64_t repeat_at;
    char kept[WAY_BYTES];
};

struct proxy {
    struct link *links[LINKS_MAX]; /* owned */
    size_t count;
    struct pollfd fds[2 + SIDES * LINKS_MAX];
    nfds_t fds_count;
    int listener;
    struct sockaddr_in target;
    uint64_t seed;
    uint64_t accepted;
    uint64_t percent;
    enum fault only; /* FAULT_NONE: any */
    bool healed;
    bool held;
    uint64_t done[FAULT_COUNT];
    char line[64];
    size_t line_bytes;
    int64_t now; /* ms, monotonic */
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t draw_ms(struct link *link, int64_t least, int64_t most)
{
    return least + (int64_t)rv_prng_below(&link->prng, (uint64_t)(most - least + 1));
}

static struct link *link_new(struct proxy *proxy, int client)
{
    struct link *link = calloc(1, sizeof *link);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link == NULL || server < 0)
        die("a new connection");
    link->fds[CLIENT] = client;
    link->fds[SERVER] = server;
    link->answered = true;
    link->cut_at = link->repeat_at = NEVER;
    proxy->links[proxy->count++] = link;
    /* Whether it worked is seen when it is read. */
    if (connect(server, (struct sockaddr *)&proxy->target, sizeof proxy->target) != 0 &&
        errno != EINPROGRESS)
        link->ways[SERVER].ended = true;
    return link;
}

/* A cut is a reset half of the time, which a client may see as another error than an end. */
static void link_cut(struct proxy *proxy, struct link *link)
{
    struct linger reset = {.l_onoff = 1};
    for (int side = CLIENT; side < SIDES; side++) {
        if (link->fds[side] >= 0 && rv_prng_below(&link->prng, 2) == 0)
            setsockopt(link->fds[side], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    }
    proxy->done[link->fault]++;
    link->closed = true;
}

static enum fault draw_fault(const struct proxy *proxy, struct link *link)
{
    uint64_t weights = 0;
    if (proxy->healed || rv_prng_below(&link->prng, 100) >= proxy->percent)
        return FAULT_NONE;
    if (proxy->only != FAULT_NONE)
        return proxy->only;
    for (int i = 0; i < FAULT_COUNT; i++)
        weights += faults[i].weight;
    uint64_t drawn = rv_prng_below(&link->prng, weights);
    int fault = FAULT_NONE;
    while (drawn >= faults[fault].weight)
        drawn -= faults[fault++].weight;
    return (enum fault)fault;
}

/* One way stands still. The other one goes on, so it is the server or the client that waits. */
static void link_stall(struct proxy *proxy, struct link *link)
{
    int64_t until = proxy->now + draw_ms(link, STALL_MS_MIN, STALL_MS_MAX);
    link->ways[rv_prng_below(&link->prng, SIDES)].not_before = until;
    if (rv_prng_below(&link->prng, 2) == 0)
        link->cut_at = until;
    else
        proxy->done[FAULT_HALF_OPEN]++;
}

static void exchange_begin(struct proxy *proxy, struct link *link)
{
    link->exchange++;
    rv_prng_init(&link->prng, proxy->seed + link->number * UINT64_C(0x9e3779b97f4a7c15) +
                                  link->exchange * UINT64_C(0xd1b54a32d192ed03));
    link->answered = false;
    link->kept_bytes = 0;
    link->fault = draw_fault(proxy, link);
    for (int side = CLIENT; side < SIDES; side++) {
        link->ways[side].not_before = 0;
        link->ways[side].piece = link->fault != FAULT_SLOW
                                     ? 0
                                     : 1 + (size_t)rv_prng_below(&link->prng, SLOW_BYTES_MAX);
    }
    if (link->fault == FAULT_CUT_BEFORE)
        link_cut(proxy, link);
    else if (link->fault == FAULT_CUT_WAITING)
        link->cut_at = proxy->now + draw_ms(link, 0, WAITING_MS_MAX);
    else if (link->fault == FAULT_HALF_OPEN)
        link_stall(proxy, link);
    else if (link->fault == FAULT_DELAY || link->fault == FAULT_SLOW)
        proxy->done[link->fault]++;
}

/* Keeps the request, whose end the proxy cannot know: each further chunk puts the repeat off. Of a
 * request that is too long the beginning is repeated, which is harm as well. */
static void exchange_keep(const struct proxy *proxy, struct link *link, const char *bytes, size_t n)
{
    if (link->fault != FAULT_DUPLICATE || n > sizeof link->kept - link->kept_bytes)
        return;
    memcpy(link->kept + link->kept_bytes, bytes, n);
    link->kept_bytes += n;
    link->repeat_at = proxy->now + draw_ms(link, 0, DUPLICATE_MS_MAX);
}

/* The server begins to answer. Gives how many of the n bytes the client may have. */
static size_t exchange_answered(struct proxy *proxy, struct link *link, size_t n)
{
    link->answered = true;
    if (link->fds[CLIENT] < 0) {
        link->closed = true; /* a duplicate's work is done */
        return 0;
    }
    if (link->fault == FAULT_CUT_AFTER) {
        link_cut(proxy, link);
        return 0;
    }
    if (link->fault == FAULT_CUT_MIDDLE && n > 1)
        return 1 + (size_t)rv_prng_below(&link->prng, n - 1);
    return n;
}

static void link_send(struct link *link, enum side from);

static void link_read(struct proxy *proxy, struct link *link, enum side from)
{
    struct way *way = &link->ways[from];
    if (way->begin == way->end)
        way->begin = way->end = 0;
    char *place = way->bytes + way->end;
    ssize_t got = read(link->fds[from], place, WAY_BYTES - way->end);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        way->ended = true;
        return;
    }
    size_t n = (size_t)got;
    if (from == CLIENT && link->answered)
        exchange_begin(proxy, link);
    if (from == CLIENT)
        exchange_keep(proxy, link, place, n);
    size_t allowed = n;
    if (from == SERVER && !link->answered)
        allowed = exchange_answered(proxy, link, n);
    way->end += allowed;
    if (link->fault == FAULT_DELAY)
        way->not_before = proxy->now + draw_ms(link, 0, DELAY_MS_MAX);
    if (allowed < n && !link->closed) {
        link_send(link, SERVER);
        link_cut(proxy, link);
    }
}

static void link_send(struct link *link, enum side from)
{
    struct way *way = &link->ways[from];
    size_t n = way->end - way->begin;
    if (way->piece > 0 && n > way->piece)
        n = way->piece;
    ssize_t sent = send(link->fds[!from], way->bytes + way->begin, n, MSG_NOSIGNAL);
    if (sent > 0)
        way->begin += (size_t)sent;
    else if (errno != EAGAIN && errno != EINTR)
        link->closed = true;
}

static bool way_open(const struct proxy *proxy, const struct way *way)
{
    return !proxy->held && proxy->now >= way->not_before;
}

/* What a way's end means to the other side, once all before it has left. */
static void link_tell_ends(const struct proxy *proxy, struct link *link)
{
    const struct way *answer = &link->ways[SERVER];
    struct way *request = &link->ways[CLIENT];
    if (answer->ended && answer->begin == answer->end && way_open(proxy, answer))
        link->closed = true;
    if (request->ended && !request->told && request->begin == request->end &&
        way_open(proxy, request)) {
        shutdown(link->fds[SERVER], SHUT_WR);
        request->told = true;
    }
}

/* The request once more, from a client that will not listen. */
static void link_repeat(struct proxy *proxy, struct link *link)
{
    link->repeat_at = NEVER;
    if (proxy->count == LINKS_MAX)
        return;
    struct link *copy = link_new(proxy, -1);
    copy->prng = link->prng;
    copy->answered = false;
    copy->fault = FAULT_DUPLICATE;
    memcpy(copy->ways[CLIENT].bytes, link->kept, link->kept_bytes);
    copy->ways[CLIENT].end = link->kept_bytes;
    copy->cut_at = proxy->now + draw_ms(link, STALL_MS_MIN, STALL_MS_MAX);
    proxy->done[FAULT_DUPLICATE]++;
}

static void link_due(struct proxy *proxy, struct link *link)
{
    if (proxy->now >= link->repeat_at)
        link_repeat(proxy, link);
    if (proxy->now >= link->cut_at && link->fds[CLIENT] < 0)
        link->closed = true;
    else if (proxy->now >= link->cut_at)
        link_cut(proxy, link);
}

static void link_heal(struct link *link)
{
    for (int side = CLIENT; side < SIDES; side++) {
        link->ways[side].not_before = 0;
        link->ways[side].piece = 0;
    }
    link->fault = FAULT_NONE;
    link->repeat_at = NEVER;
    link->cut_at = link->fds[CLIENT] < 0 ? 0 : NEVER;
}

static void print_counts(const struct proxy *proxy)
{
    printf("counts connections=%llu", (unsigned long long)proxy->accepted);
    for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++)
        printf(" %s=%llu", faults[i].name, (unsigned long long)proxy->done[i]);
    putchar('\n');
    fflush(stdout);
}

static void obey(struct proxy *proxy, const char *line)
{
    bool heal = strcmp(line, "heal") == 0;
    if (heal || strcmp(line, "harm") == 0) {
        proxy->healed = heal;
        proxy->held = false;
    } else if (strcmp(line, "hold") == 0) {
        proxy->held = true;
    } else if (strcmp(line, "counts") == 0) {
        print_counts(proxy);
    } else {
        fprintf(stderr, "proxy: unknown line \"%s\": heal, harm, hold or counts\n", line);
    }
    for (size_t i = 0; heal && i < proxy->count; i++)
        link_heal(proxy->links[i]);
}

static void read_control(struct proxy *proxy)
{
    char *line = proxy->line;
    ssize_t got = read(0, line + proxy->line_bytes, sizeof proxy->line - proxy->line_bytes);
    if (got <= 0)
        exit(0);
    proxy->line_bytes += (size_t)got;
    for (char *end; (end = memchr(line, '\n', proxy->line_bytes)) != NULL;) {
        size_t taken = (size_t)(end - line) + 1;
        *end = '\0';
        obey(proxy, line);
        proxy->line_bytes -= taken;
        memmove(line, line + taken, proxy->line_bytes);
    }
    if (proxy->line_bytes == sizeof proxy->line)
        proxy->line_bytes = 0; /* far too long to be one of ours */
}

static int watch(struct proxy *proxy, int fd, short events)
{
    /* Who waits for nothing is not asked about: poll() would tell of hang-ups again and again. */
    proxy->fds[proxy->fds_count] = (struct pollfd){.fd = events ? fd : -1, .events = events};
    return (int)proxy->fds_count++;
}

static int64_t soonest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Lists what the link waits for; gives when it is due without any of that. */
static int64_t link_watch(struct proxy *proxy, struct link *link)
{
    int64_t wake = soonest(link->cut_at, link->repeat_at);
    for (int side = CLIENT; side < SIDES; side++) {
        struct way *from_here = &link->ways[side];
        struct way *to_here = &link->ways[!side];
        short events = 0;
        if (!from_here->ended && from_here->end < WAY_BYTES)
            events |= POLLIN;
        if (to_here->begin < to_here->end && way_open(proxy, to_here))
            events |= POLLOUT;
        link->slots[side] = watch(proxy, link->fds[side], events);
        bool waits = from_here->begin < from_here->end || from_here->ended;
        if (waits && from_here->not_before > proxy->now)
            wake = soonest(wake, from_here->not_before);
    }
    return wake;
}

static void wait_for_events(struct proxy *proxy)
{
    int64_t wake = NEVER;
    proxy->fds_count = 0;
    watch(proxy, 0, POLLIN);
    watch(proxy, proxy->listener, proxy->count < LINKS_MAX ? POLLIN : 0);
    for (size_t i = 0; i < proxy->count; i++)
        wake = soonest(wake, link_watch(proxy, proxy->links[i]));
    int64_t left = wake > proxy->now ? wake - proxy->now : 0;
    int timeout = wake == NEVER ? -1 : (int)soonest(left, 60000);
    if (poll(proxy->fds, proxy->fds_count, timeout) < 0 && errno != EINTR)
        die("poll");
    proxy->now = mono_ms();
}

static void link_move(struct proxy *proxy, struct link *link)
{
    for (int side = CLIENT; side < SIDES && !link->closed; side++) {
        short events = proxy->fds[link->slots[side]].revents;
        struct way *to_here = &link->ways[!side];
        if (events & (POLLIN | POLLHUP | POLLERR) && !link->ways[side].ended &&
            link->ways[side].end < WAY_BYTES)
            link_read(proxy, link, (enum side)side);
        if (events & POLLOUT && !link->closed && to_here->begin < to_here->end) {
            link_send(link, (enum side) !side);
            if (to_here->piece > 0)
                to_here->not_before = proxy->now + SLOW_MS;
        }
    }
    if (!link->closed)
        link_due(proxy, link);
    if (!link->closed)
        link_tell_ends(proxy, link);
}

static void take_connection(struct proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0)
        link_new(proxy, client)->number = ++proxy->accepted;
}

static void drop_closed(struct proxy *proxy)
{
    size_t kept = 0;
    for (size_t i = 0; i < proxy->count; i++) {
        struct link *link = proxy->links[i];
        if (!link->closed) {
            proxy->links[kept++] = link;
            continue;
        }
        for (int side = CLIENT; side < SIDES; side++) {
            if (link->fds[side] >= 0)
                close(link->fds[side]);
        }
        free(link);
    }
    proxy->count = kept;
}

static _Noreturn void proxy_run(struct proxy *proxy)
{
    for (;;) {
        wait_for_events(proxy);
        size_t watched = proxy->count; /* those made from here on have no slots yet */
        for (size_t i = 0; i < watched; i++)
            link_move(proxy, proxy->links[i]);
        if (proxy->fds[1].revents && proxy->count < LINKS_MAX)
            take_connection(proxy);
        if (proxy->fds[0].revents)
            read_control(proxy);
        drop_closed(proxy);
    }
}

static void listen_at(struct proxy *proxy, unsigned long port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof address;
    int on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 ||
        setsockopt(proxy->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(proxy->listener, (struct sockaddr *)&address, length) != 0 ||
        listen(proxy->listener, LINKS_MAX) != 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&address, &length) != 0)
        die("listen");
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
}

static _Noreturn void usage(void)
{
    fprintf(stderr, "usage: proxy --target PORT --seed N [--listen PORT] [--faults PERCENT] "
                    "[--only FAULT]\nfaults:");
    for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++)
        fprintf(stderr, " %s", faults[i].name);
    fputc('\n', stderr);
    exit(2);
}

static unsigned long long number_of(const char *text, unsigned long long most)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number > most)
        usage();
    return number;
}

static enum fault fault_of(const char *name)
{
    for (int i = FAULT_NONE + 1; i < FAULT_COUNT; i++) {
        if (strcmp(faults[i].name, name) == 0)
            return (enum fault)i;
    }
    usage();
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"target", required_argument, NULL, 't'}, {"seed", required_argument, NULL, 's'},
        {"listen", required_argument, NULL, 'l'}, {"faults", required_argument, NULL, 'f'},
        {"only", required_argument, NULL, 'o'},   {NULL, 0, NULL, 0}};
    static struct proxy proxy = {.percent = 25};
    unsigned long port = 0;
    unsigned long target = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 't')
            target = number_of(optarg, UINT16_MAX);
        else if (option == 's')
            proxy.seed = number_of(optarg, UINT64_MAX);
        else if (option == 'l')
            port = number_of(optarg, UINT16_MAX);
        else if (option == 'f')
            proxy.percent = number_of(optarg, 100);
        else if (option == 'o')
            proxy.only = fault_of(optarg);
        else
            usage();
    }
    if (target == 0 || optind < argc)
        usage();
    proxy.target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)target)};
    proxy.target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy.now = mono_ms();
    listen_at(&proxy, port);
    proxy_run(&proxy);
}

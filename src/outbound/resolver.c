#include "outbound/resolver.h"

#include "base/assert.h"
#include "base/os/clock.h"
#include "base/os/thread.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the system's resolver tells has no lifetime with it. */
enum { FOUND_KEEP_MS = 30000, FAILED_KEEP_MS = 1000, HOST_BYTES = 256 };

enum name_state { NAME_FREE, NAME_QUEUED, NAME_ASKED, NAME_KNOWN };

struct name {
    enum name_state state;
    char host[HOST_BYTES];
    int code; /* of getaddrinfo() */
    int64_t until;
    int64_t used_at;
    struct rv_addresses addresses;
};

struct rv_resolver {
    struct rv_resolver_options options;
    pthread_mutex_t mutex;
    pthread_cond_t queued;
    struct name names[RV_RESOLVER_NAMES];
    struct rv_thread threads[RV_RESOLVER_THREADS];
    unsigned started;
    unsigned idle;
    unsigned holders; /* threads and the owner; the last frees it */
    bool closed;
};

static int system_ask(void *user, const char *host, struct rv_addresses *ret_addresses)
{
    (void)user;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int code = getaddrinfo(host, NULL, &hints, &list);
    if (code != 0)
        return code;
    ret_addresses->count = 0;
    for (struct addrinfo *i = list; i != NULL && ret_addresses->count < RV_ADDRESSES_MAX;
         i = i->ai_next)
        ret_addresses->count += rv_address_of(i->ai_addr, &ret_addresses->at[ret_addresses->count]);
    freeaddrinfo(list);
    return ret_addresses->count > 0 ? 0 : EAI_NONAME;
}

struct rv_resolver *rv_resolver_new(const struct rv_resolver_options *options)
{
    struct rv_resolver *resolver = calloc(1, sizeof *resolver);
    if (resolver == NULL)
        return NULL;
    resolver->options = *options;
    if (resolver->options.ask == NULL)
        resolver->options.ask = system_ask;
    resolver->holders = 1;
    pthread_mutex_init(&resolver->mutex, NULL);
    pthread_cond_init(&resolver->queued, NULL);
    return resolver;
}

/* With the mutex held, which is given up. */
static void resolver_leave(struct rv_resolver *resolver)
{
    rv_assert(resolver->holders > 0);
    bool last = --resolver->holders == 0;
    pthread_mutex_unlock(&resolver->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&resolver->queued);
    pthread_mutex_destroy(&resolver->mutex);
    free(resolver);
}

void rv_resolver_close(struct rv_resolver *resolver)
{
    if (resolver == NULL)
        return;
    pthread_mutex_lock(&resolver->mutex);
    resolver->closed = true;
    pthread_cond_broadcast(&resolver->queued);
    resolver_leave(resolver);
}

static struct name *queued_take(struct rv_resolver *resolver)
{
    for (size_t i = 0; i < RV_RESOLVER_NAMES; i++)
        if (resolver->names[i].state == NAME_QUEUED)
            return &resolver->names[i];
    return NULL;
}

static void name_ask(struct rv_resolver *resolver, struct name *name)
{
    rv_assert(name->state == NAME_QUEUED);
    char host[HOST_BYTES];
    memcpy(host, name->host, sizeof host);
    name->state = NAME_ASKED;
    pthread_mutex_unlock(&resolver->mutex);
    struct rv_addresses addresses = {.count = 0};
    int code = resolver->options.ask(resolver->options.user, host, &addresses);
    pthread_mutex_lock(&resolver->mutex);
    rv_assert(name->state == NAME_ASKED); /* nobody else takes its place meanwhile */
    rv_assert(addresses.count <= RV_ADDRESSES_MAX);
    name->addresses = addresses;
    name->code = code;
    name->state = NAME_KNOWN;
    name->until = rv_clock_mono_ms() + (code == 0 ? FOUND_KEEP_MS : FAILED_KEEP_MS);
    if (!resolver->closed)
        resolver->options.wake(resolver->options.waker);
}

static void thread_run(void *self)
{
    struct rv_resolver *resolver = self;
    pthread_mutex_lock(&resolver->mutex);
    while (!resolver->closed) {
        struct name *name = queued_take(resolver);
        if (name != NULL) {
            name_ask(resolver, name);
            continue;
        }
        resolver->idle++;
        pthread_cond_wait(&resolver->queued, &resolver->mutex);
        resolver->idle--;
    }
    resolver_leave(resolver);
}

/* The name's place, or one for it: free, or the known one that was used least lately. NULL: all
 * are being asked for. */
static struct name *name_find(struct rv_resolver *resolver, const char *host)
{
    struct name *place = NULL;
    for (size_t i = 0; i < RV_RESOLVER_NAMES; i++) {
        struct name *name = &resolver->names[i];
        if (name->state != NAME_FREE && strcmp(name->host, host) == 0)
            return name;
        bool free_now = name->state == NAME_FREE;
        bool better = place == NULL ||
                      (place->state == NAME_KNOWN && (free_now || name->used_at < place->used_at));
        if ((free_now || name->state == NAME_KNOWN) && better)
            place = name;
    }
    if (place != NULL) {
        *place = (struct name){.state = NAME_FREE};
        snprintf(place->host, sizeof place->host, "%s", host);
    }
    return place;
}

static unsigned names_queued(const struct rv_resolver *resolver)
{
    unsigned count = 0;
    for (size_t i = 0; i < sizeof resolver->names / sizeof resolver->names[0]; i++)
        count += resolver->names[i].state == NAME_QUEUED;
    return count;
}

/* One more thread, if there are more names than threads to ask for them and there may be more.
 * False: nobody will ask. */
static bool thread_begin(struct rv_resolver *resolver)
{
    rv_assert(resolver->idle <= resolver->started);
    rv_assert(resolver->started <= RV_RESOLVER_THREADS);
    if (resolver->idle > 0)
        pthread_cond_signal(&resolver->queued);
    if (names_queued(resolver) <= resolver->idle)
        return true;
    if (resolver->started == RV_RESOLVER_THREADS)
        return true;
    struct rv_thread *thread = &resolver->threads[resolver->started];
    if (rv_thread_start(thread, "resolver", thread_run, resolver) != RV_OK)
        return resolver->started > 0;
    pthread_detach(thread->handle);
    resolver->started++;
    resolver->holders++;
    return true;
}

static enum rv_lookup name_known(struct name *name, struct rv_addresses *ret_addresses, char *why)
{
    rv_assert(name->state == NAME_KNOWN);
    *ret_addresses = name->addresses;
    if (name->code == 0)
        return RV_LOOKUP_FOUND;
    snprintf(why, RV_RESOLVER_WHY_BYTES, "%s", gai_strerror(name->code));
    return RV_LOOKUP_FAILED;
}

enum rv_lookup rv_resolver_look(struct rv_resolver *resolver, const char *host, int64_t now,
                                struct rv_addresses *ret_addresses,
                                char ret_why[static RV_RESOLVER_WHY_BYTES])
{
    if (strlen(host) >= HOST_BYTES) {
        snprintf(ret_why, RV_RESOLVER_WHY_BYTES, "the name is longer than 255 bytes");
        return RV_LOOKUP_FAILED;
    }
    pthread_mutex_lock(&resolver->mutex);
    struct name *name = name_find(resolver, host);
    enum rv_lookup lookup = RV_LOOKUP_PENDING;
    if (name == NULL) {
        snprintf(ret_why, RV_RESOLVER_WHY_BYTES,
                 "too many host names are being resolved at the same time");
        lookup = RV_LOOKUP_FAILED;
    } else if (name->state == NAME_KNOWN && now < name->until) {
        name->used_at = now;
        lookup = name_known(name, ret_addresses, ret_why);
    } else if (name->state == NAME_FREE || name->state == NAME_KNOWN) {
        name->state = NAME_QUEUED;
        name->used_at = now;
        if (!thread_begin(resolver)) {
            name->state = NAME_FREE;
            name->host[0] = '\0';
            snprintf(ret_why, RV_RESOLVER_WHY_BYTES,
                     "the resolver's thread cannot start: out of memory");
            lookup = RV_LOOKUP_FAILED;
        }
    }
    pthread_mutex_unlock(&resolver->mutex);
    return lookup;
}

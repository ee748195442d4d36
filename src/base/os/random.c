#include "base/os/random.h"

#include "base/assert.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

void rv_random_bytes(void *at, size_t bytes)
{
    char *next = at;
    while (bytes > 0) {
        ssize_t got = getrandom(next, bytes, 0);
        rv_assert(got > 0 || errno == EINTR);
        if (got > 0) {
            next += got;
            bytes -= (size_t)got;
        }
    }
}

uint64_t rv_random_next(struct rv_random *random)
{
    if (random->left == 0) {
        rv_random_bytes(random->pool, sizeof random->pool);
        random->left = sizeof random->pool / sizeof random->pool[0];
    }
    rv_assert(random->left <= sizeof random->pool / sizeof random->pool[0]);
    uint64_t number = random->pool[--random->left];
    random->pool[random->left] = 0;
    return number;
}

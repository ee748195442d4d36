#include "base/suggest.h"

#include "base/assert.h"

#include <string.h>

enum { SUGGEST_BYTES_MAX = 64 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Optimal string alignment distance; both at most SUGGEST_BYTES_MAX long. */
static unsigned distance(struct rv_str a, struct rv_str b)
{
    unsigned rows[3][SUGGEST_BYTES_MAX + 1];
    rv_assert(a.len <= SUGGEST_BYTES_MAX);
    rv_assert(b.len <= SUGGEST_BYTES_MAX);
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a.len; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3];
        const unsigned *above2 = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.len; j++) {
            char x = lower(a.at[i - 1]);
            char y = lower(b.at[j - 1]);
            row[j] = least(above[j] + 1, row[j - 1] + 1);
            row[j] = least(row[j], above[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b.at[j - 2]) && lower(a.at[i - 2]) == y)
                row[j] = least(row[j], above2[j - 2] + 1);
        }
    }
    return rows[a.len % 3][b.len];
}

const char *rv_suggest(struct rv_str given, const char *const *names)
{
    if (given.len == 0 || given.len > SUGGEST_BYTES_MAX)
        return NULL;
    const char *best = NULL;
    unsigned best_distance = given.len < 4 ? 2 : given.len < 8 ? 3 : 4; /* is too far */
    for (; *names != NULL; names++) {
        struct rv_str name = rv_str_of(*names);
        if (name.len > SUGGEST_BYTES_MAX)
            continue;
        unsigned d = distance(given, name);
        if (d < best_distance) {
            best = *names;
            best_distance = d;
        }
    }
    return best;
}

static const struct {
    const char *given, *meant;
} elsewhere[] = {{"--port", "--listen"},  {"-p", "--listen"},        {"--bind", "--listen"},
                 {"--host", "--listen"},  {"--address", "--listen"}, {"--addr", "--listen"},
                 {"--db", "--store"},     {"--database", "--store"}, {"--file", "--store"},
                 {"--data", "--input"},   {"-d", "--input"},         {"--server", "--url"},
                 {"--follow", "--watch"}, {"-f", "--watch"},         {"--message", "--reason"},
                 {"-m", "--reason"},      {"-n", "--limit"}};

const char *rv_suggest_option(struct rv_str given, const char *const *names)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        if (!rv_str_is(given, elsewhere[i].given))
            continue;
        for (const char *const *name = names; *name != NULL; name++)
            if (strcmp(*name, elsewhere[i].meant) == 0)
                return *name;
    }
    return rv_suggest(given, names);
}

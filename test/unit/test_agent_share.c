/* The shares of a limit: whatever the reports say, what all servers may hold never exceeds it. */
#include "base/buf.h"
#include "base/prng.h"
#include "core/agent_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { NOW = 1000000, SERVERS = 4, ROUNDS = 100000, SEEDS = 10 };

static struct rv_arena arena;

static int setup(void **state)
{
    (void)state;
    rv_arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rv_arena_done(&arena);
    return 0;
}

static bool divide(struct rv_agent_shares *shares, const struct rv_agent_division *division)
{
    bool changed = false;
    assert_int_equal(rv_agent_shares_divide(&arena, division, shares, &changed), RV_OK);
    return changed;
}

/* A server that follows the newest shares. */
static struct rv_agent_use use_of(const struct rv_agent_shares *shares, uint8_t server,
                                  uint32_t open, uint32_t wanted)
{
    return (struct rv_agent_use){.server = server,
                                 .version = shares->version,
                                 .limit_at = shares->limit_at,
                                 .open = open,
                                 .wanted = wanted};
}

/* Of servers 1 and 2. */
static struct rv_agent_division division_of_two(const struct rv_agent_limit *limit,
                                                const struct rv_agent_use *uses, size_t count)
{
    static const uint8_t servers[] = {1, 2};
    return (struct rv_agent_division){.limit = limit,
                                      .uses = uses,
                                      .uses_count = count,
                                      .servers = servers,
                                      .servers_count = 2,
                                      .adopted = true,
                                      .now = NOW};
}

/* Their shares; `parts`: two, the caller's. */
static struct rv_agent_shares shares_of_two(struct rv_agent_part *parts, uint32_t concurrent)
{
    parts[0] = (struct rv_agent_part){.server = 1, .concurrent = concurrent};
    parts[1] = (struct rv_agent_part){.server = 2};
    return (struct rv_agent_shares){.version = 7,
                                    .limit_at = NOW,
                                    .concurrent = concurrent,
                                    .since = NOW,
                                    .parts = parts,
                                    .parts_count = 2};
}

static uint32_t part_of(const struct rv_agent_shares *shares, uint8_t server)
{
    const struct rv_agent_part *part = rv_agent_shares_part(shares, server);
    return part != NULL ? part->concurrent : 0;
}

static void nothing_is_given_before_all_have_reported(void **state)
{
    (void)state;
    struct rv_agent_limit limit = {.concurrent = 10, .at = NOW};
    struct rv_agent_shares shares = {.version = 0};
    struct rv_agent_use uses[2];
    struct rv_agent_division d = division_of_two(&limit, uses, 0);
    assert_true(divide(&shares, &d)); /* the limit is new */
    assert_int_equal(part_of(&shares, 1) + part_of(&shares, 2), 0);
    uses[0] = use_of(&shares, 1, 0, 5);
    d.uses_count = 1;
    assert_false(divide(&shares, &d)); /* of server 2 nothing is known */
    uses[1] = use_of(&shares, 2, 0, 0);
    d.uses_count = 2;
    assert_true(divide(&shares, &d)); /* from now on each counts what it hands out */
    assert_int_equal(shares.since, NOW);
    assert_int_equal(part_of(&shares, 1) + part_of(&shares, 2), 0);
    uses[0] = use_of(&shares, 1, 0, 5);
    uses[1] = use_of(&shares, 2, 0, 0);
    d.adopted = false;
    assert_true(divide(&shares, &d)); /* somebody dead may have handed out anything */
    uses[0] = use_of(&shares, 1, 0, 5);
    uses[1] = use_of(&shares, 2, 0, 0);
    assert_false(divide(&shares, &d));
    d.adopted = true;
    assert_true(divide(&shares, &d)); /* both may have reported before they owned its tasks */
    assert_int_equal(part_of(&shares, 1) + part_of(&shares, 2), 0);
    uses[0] = use_of(&shares, 1, 0, 5);
    uses[1] = use_of(&shares, 2, 0, 0);
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1) + part_of(&shares, 2), 10);
    assert_true(part_of(&shares, 1) >= 5);
    uses[0] = use_of(&shares, 1, 5, 0);
    uses[1] = use_of(&shares, 2, 0, 0);
    assert_false(divide(&shares, &d)); /* nobody waits for more */
}

static void what_is_taken_back_is_given_when_that_is_known(void **state)
{
    (void)state;
    struct rv_agent_limit limit = {.concurrent = 4, .at = NOW};
    struct rv_agent_part parts[2];
    struct rv_agent_shares shares = shares_of_two(parts, 4);
    struct rv_agent_use uses[2] = {use_of(&shares, 1, 3, 1), use_of(&shares, 2, 0, 4)};
    struct rv_agent_division d = division_of_two(&limit, uses, 2);
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1), 2);
    assert_int_equal(part_of(&shares, 2), 0);
    assert_false(divide(&shares, &d)); /* server 1 may not have read it yet */
    uses[0] = use_of(&shares, 1, 3, 1);
    uses[1] = use_of(&shares, 2, 0, 4);
    assert_true(divide(&shares, &d)); /* three of its attempts are open still */
    assert_int_equal(part_of(&shares, 2), 1);
    /* Server 1 is gone: what it had is nobody's before the owners know what is open of it. */
    d.servers++;
    d.servers_count = 1;
    d.now = NOW + 1;
    assert_true(divide(&shares, &d));
    assert_int_equal(shares.since, NOW + 1);
    assert_int_equal(part_of(&shares, 2), 1);
    uses[0] = use_of(&shares, 2, 1, 4);
    uses[0].older = 3;
    d.uses_count = 1;
    assert_false(divide(&shares, &d));
    uses[0].older = 1;
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 2), 3);
}

/* Server 1 may have begun as much as its share was, since it has reported. */
static void under_a_lower_limit_nothing_begins_before_it_is_kept(void **state)
{
    (void)state;
    struct rv_agent_limit limit = {.concurrent = 2, .at = NOW + 1};
    struct rv_agent_part parts[2];
    struct rv_agent_shares shares = shares_of_two(parts, 4);
    struct rv_agent_use uses[2] = {use_of(&shares, 1, 0, 0), use_of(&shares, 2, 0, 3)};
    struct rv_agent_division d = division_of_two(&limit, uses, 2);
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1) + part_of(&shares, 2), 0);
    uses[0] = use_of(&shares, 1, 2, 0);
    uses[1] = use_of(&shares, 2, 0, 3);
    assert_false(divide(&shares, &d)); /* as much is open as may be */
    uses[0].open = 1;
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 2), 1);
    /* Where all that may be open is within the lower limit nobody has to stop. */
    shares = shares_of_two(parts, 4);
    parts[0].concurrent = 2;
    uses[0] = use_of(&shares, 1, 1, 0);
    uses[1] = use_of(&shares, 2, 0, 0);
    limit.concurrent = 3;
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1), 2);
}

/* Server 1 has lost its caches, and does not know any more what it has handed out. */
static void a_server_that_counts_anew_gets_its_share_anew(void **state)
{
    (void)state;
    struct rv_agent_limit limit = {.concurrent = 4, .at = NOW};
    struct rv_agent_part parts[2];
    struct rv_agent_shares shares = shares_of_two(parts, 4);
    struct rv_agent_use uses[2] = {use_of(&shares, 1, 4, 0), use_of(&shares, 2, 0, 0)};
    struct rv_agent_division d = division_of_two(&limit, uses, 2);
    parts[0].counts_since = uses[0].counts_since = NOW - 9;
    assert_false(divide(&shares, &d));
    uses[0] = use_of(&shares, 1, 0, 2);
    uses[0].counts_since = NOW + 5; /* its clock is ahead */
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1), 0);
    assert_int_equal(shares.parts[0].counts_since, NOW + 5);
    assert_int_equal(shares.since, NOW + 5);
    uses[0] = use_of(&shares, 1, 0, 2);
    uses[0].counts_since = NOW + 5;
    uses[0].older = 3; /* it owns the tasks of three of the four */
    uses[1] = use_of(&shares, 2, 0, 0);
    uses[1].older = 1;
    assert_false(divide(&shares, &d));
    uses[0].older = 2;
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1), 1);
}

/* The steps wait at server 1, and the polls at server 2. */
static void a_share_goes_where_the_polls_are(void **state)
{
    (void)state;
    struct rv_agent_limit limit = {.concurrent = 1, .at = NOW};
    struct rv_agent_part parts[2];
    struct rv_agent_shares shares = shares_of_two(parts, 1);
    struct rv_agent_use uses[2];
    struct rv_agent_division d = division_of_two(&limit, uses, 2);
    uses[0] = use_of(&shares, 1, 0, 0);
    uses[1] = use_of(&shares, 2, 0, 0);
    uses[1].idle = 1;
    assert_false(divide(&shares, &d)); /* nothing waits anywhere */
    for (int round = 0; round < 2; round++) {
        uses[0] = use_of(&shares, 1, 0, 0);
        uses[0].waiting = 1;
        uses[1] = use_of(&shares, 2, 0, 0);
        uses[1].idle = 1;
        assert_true(divide(&shares, &d));
    }
    assert_int_equal(part_of(&shares, 1), 0);
    assert_int_equal(part_of(&shares, 2), 1);
}

/* Each has a backlog and polls, and there is less to give than there are servers. */
static void every_server_has_its_turn(void **state)
{
    (void)state;
    static const uint8_t servers[] = {1, 2, 3, 4};
    for (size_t count = 2; count <= 4; count++) {
        for (uint32_t most = 1; most < count; most++) {
            struct rv_agent_limit limit = {.concurrent = most, .at = NOW};
            struct rv_agent_shares shares = {.version = 0};
            struct rv_agent_part kept[4];
            struct rv_agent_use uses[4];
            uint32_t open[4] = {0}, begun[4] = {0};
            for (int round = 0; round < 400; round++) {
                for (size_t i = 0; i < count; i++) {
                    open[i] -= open[i] > 0;
                    for (; open[i] < part_of(&shares, servers[i]); open[i]++)
                        begun[i]++;
                    uses[i] = use_of(&shares, servers[i], open[i], 5);
                }
                struct rv_agent_division d = {.limit = &limit,
                                              .uses = uses,
                                              .uses_count = count,
                                              .servers = servers,
                                              .servers_count = count,
                                              .adopted = true,
                                              .now = NOW + round};
                (void)divide(&shares, &d);
                memcpy(kept, shares.parts, shares.parts_count * sizeof kept[0]);
                shares.parts = kept;
                rv_arena_reset(&arena);
            }
            for (size_t i = 0; i < count; i++)
                assert_in_range(begun[i], 40, 400);
        }
    }
}

/* Some want much, some little, some nothing: whoever wants something has its turn. */
static void who_wants_little_has_its_turn_among_those_that_want_much(void **state)
{
    (void)state;
    static const uint8_t servers[] = {1, 2, 3};
    static const uint32_t wants[][3] = {{1, 1, 0}, {40, 1, 0}, {0, 1, 1000}, {3, 1, 3}};
    for (size_t c = 0; c < sizeof wants / sizeof wants[0]; c++) {
        for (uint32_t most = 1; most <= 10; most++) {
            struct rv_agent_limit limit = {.concurrent = most, .at = NOW};
            struct rv_agent_shares shares = {.version = 0};
            struct rv_agent_part kept[3];
            struct rv_agent_use uses[3];
            uint32_t open[3] = {0}, begun[3] = {0};
            for (int round = 0; round < 1200; round++) {
                for (size_t i = 0; i < 3; i++) {
                    open[i] -= open[i] > 0;
                    for (uint32_t n = 0; n < wants[c][i] && open[i] < part_of(&shares, servers[i]);
                         n++, open[i]++)
                        begun[i]++;
                    uses[i] = use_of(&shares, servers[i], open[i], wants[c][i]);
                }
                struct rv_agent_division d = {.limit = &limit,
                                              .uses = uses,
                                              .uses_count = 3,
                                              .servers = servers,
                                              .servers_count = 3,
                                              .adopted = true,
                                              .now = NOW + round};
                (void)divide(&shares, &d);
                memcpy(kept, shares.parts, shares.parts_count * sizeof kept[0]);
                shares.parts = kept;
                rv_arena_reset(&arena);
            }
            for (size_t i = 0; i < 3; i++)
                assert_true(wants[c][i] == 0 || begun[i] >= 50);
        }
    }
}

/* A world of servers that hand out, report late, forget, die and start, and of attempts whose tasks
 * change their owners: what is open in all never exceeds the limit when something is begun. */
enum { ATTEMPTS = 64, NOBODY = SERVERS };

struct attempt {
    bool open;
    int64_t at;
    uint8_t given_by;      /* the server that counts it as its own; NOBODY: none does any more */
    uint8_t owner;         /* of its task; may be one that does not live */
    bool learned[SERVERS]; /* this server counts it for the owner, perhaps longer than it is that */
};

struct server {
    bool lives;
    int64_t counts_since;
    uint32_t part;
    int64_t since; /* of the shares that it has read */
    int64_t limit_at;
};

struct farm {
    struct rv_prng dice;
    struct server servers[SERVERS];
    struct attempt attempts[ATTEMPTS];
    struct rv_agent_limit limit;
    struct rv_agent_shares shares;
    struct rv_agent_part kept[SERVERS];
    struct rv_agent_use uses[SERVERS];
    size_t uses_count;
    size_t given, lowered, forgotten, adopted, moved;
};

static uint32_t open_in_all(const struct farm *f)
{
    uint32_t open = 0;
    for (size_t i = 0; i < ATTEMPTS; i++)
        open += f->attempts[i].open;
    return open;
}

static uint32_t open_of(const struct farm *f, uint8_t server)
{
    uint32_t open = 0;
    for (size_t i = 0; i < ATTEMPTS; i++)
        open += f->attempts[i].open && f->attempts[i].given_by == server;
    return open;
}

static uint32_t older_of(const struct farm *f, uint8_t server)
{
    uint32_t older = 0;
    for (size_t i = 0; i < ATTEMPTS; i++) {
        const struct attempt *a = &f->attempts[i];
        older += a->learned[server] && a->given_by != server && a->at <= f->servers[server].since;
    }
    return older;
}

static void begin_attempts(struct farm *f, uint8_t n, int64_t now)
{
    struct server *s = &f->servers[n];
    for (size_t i = 0; i < ATTEMPTS && s->lives && s->limit_at == f->limit.at; i++) {
        if (open_of(f, n) >= s->part)
            return;
        if (f->attempts[i].open)
            continue;
        f->attempts[i] = (struct attempt){.open = true, .at = now, .given_by = n, .owner = n};
        f->attempts[i].learned[n] = true;
        f->given++;
        assert_in_range(open_in_all(f), 1, f->limit.concurrent);
    }
}

static void end_attempt(struct farm *f)
{
    struct attempt *a = &f->attempts[rv_prng_below(&f->dice, ATTEMPTS)];
    if (a->open && f->servers[a->owner].lives)
        *a = (struct attempt){.open = false};
}

static void read_and_report(struct farm *f, uint8_t n)
{
    struct server *s = &f->servers[n];
    if (!s->lives)
        return;
    const struct rv_agent_part *part = rv_agent_shares_part(&f->shares, (uint8_t)(n + 1));
    bool valid = f->shares.concurrent != 0 && f->shares.concurrent <= f->limit.concurrent &&
                 part != NULL && part->counts_since == s->counts_since;
    s->part = valid ? part->concurrent : 0;
    s->since = f->shares.since;
    s->limit_at = f->limit.at;
    size_t at = 0;
    while (at < f->uses_count && f->uses[at].server != n + 1)
        at++;
    f->uses_count += at == f->uses_count;
    f->uses[at] = use_of(&f->shares, (uint8_t)(n + 1), open_of(f, n),
                         (uint32_t)rv_prng_below(&f->dice, 4));
    f->uses[at].limit_at = s->limit_at;
    f->uses[at].older = older_of(f, n);
    f->uses[at].counts_since = s->counts_since;
    /* Those that have lost a task to this one need not count it any longer. */
    for (size_t i = 0; i < ATTEMPTS; i++)
        for (uint8_t k = 0; k < SERVERS && f->attempts[i].owner == n; k++)
            f->attempts[i].learned[k] = f->attempts[i].learned[k] && k == n;
}

/* It begins anew, in the same process or in another one under its number. */
static void forget(struct farm *f, uint8_t n, int64_t now)
{
    for (size_t i = 0; i < ATTEMPTS; i++) {
        struct attempt *a = &f->attempts[i];
        a->given_by = a->given_by == n ? NOBODY : a->given_by;
        a->learned[n] = a->open && a->owner == n; /* its rows are walked before it hands out */
    }
    f->servers[n] = (struct server){.lives = true, .counts_since = now};
    f->forgotten++;
}

static void die_or_start(struct farm *f, uint8_t n, int64_t now)
{
    if (rv_prng_below(&f->dice, 10) != 0 || n == 0)
        return;
    if (!f->servers[n].lives) {
        forget(f, n, now);
        return;
    }
    f->servers[n].lives = false;
    for (size_t i = 0; i < ATTEMPTS; i++) {
        f->attempts[i].given_by = f->attempts[i].given_by == n ? NOBODY : f->attempts[i].given_by;
        f->attempts[i].learned[n] = false;
    }
}

/* One task of a server that does not live, or one whose reply has come to another server. */
static void own(struct farm *f, uint8_t n)
{
    size_t at = rv_prng_below(&f->dice, ATTEMPTS), tried = 0;
    while (tried < ATTEMPTS && (!f->attempts[at].open || f->attempts[at].owner == n)) {
        at = (at + 1) % ATTEMPTS;
        tried++;
    }
    struct attempt *a = &f->attempts[at];
    if (tried == ATTEMPTS || !f->servers[n].lives)
        return;
    f->adopted += !f->servers[a->owner].lives;
    f->moved += f->servers[a->owner].lives;
    a->owner = n;
    a->learned[n] = true;
}

static void limit_change(struct farm *f, int64_t now)
{
    if (rv_prng_below(&f->dice, 20) != 0)
        return;
    uint32_t before = f->limit.concurrent;
    f->limit.concurrent = 1 + (uint32_t)rv_prng_below(&f->dice, 8);
    f->limit.at = now;
    f->lowered += f->limit.concurrent < before;
}

static void divide_anew(struct farm *f, int64_t now)
{
    uint8_t live[SERVERS];
    struct rv_agent_division d = {.limit = &f->limit,
                                  .uses = f->uses,
                                  .uses_count = f->uses_count,
                                  .servers = live,
                                  .adopted = true,
                                  .now = now};
    for (uint8_t k = 0; k < SERVERS; k++)
        if (f->servers[k].lives)
            live[d.servers_count++] = (uint8_t)(k + 1);
    for (size_t i = 0; i < ATTEMPTS; i++)
        d.adopted = d.adopted && (!f->attempts[i].open || f->servers[f->attempts[i].owner].lives);
    (void)divide(&f->shares, &d);
    memcpy(f->kept, f->shares.parts, f->shares.parts_count * sizeof f->kept[0]);
    f->shares.parts = f->kept;
    rv_arena_reset(&arena);
}

static void live(uint64_t seed)
{
    struct farm f = {.servers = {{.lives = true, .counts_since = NOW - 1}},
                     .limit = {.concurrent = 6, .at = NOW}};
    rv_prng_init(&f.dice, seed);
    for (int64_t now = NOW; now < NOW + ROUNDS; now++) {
        uint8_t n = (uint8_t)rv_prng_below(&f.dice, SERVERS);
        switch (rv_prng_below(&f.dice, 16)) {
        case 0:
        case 1:
        case 2:
            begin_attempts(&f, n, now);
            break;
        case 3:
        case 4:
            for (int i = 0; i < 16; i++)
                end_attempt(&f);
            break;
        case 5:
            die_or_start(&f, n, now);
            break;
        case 6:
            own(&f, n);
            break;
        case 7:
            limit_change(&f, now);
            break;
        case 8:
            if (f.servers[n].lives && rv_prng_below(&f.dice, 20) == 0)
                forget(&f, n, now);
            break;
        case 9:
        case 10:
        case 11:
            divide_anew(&f, now);
            break;
        default:
            read_and_report(&f, n);
        }
    }
    assert_true(f.given > 2000); /* and it is used */
    assert_true(f.lowered > 100 && f.forgotten > 200 && f.adopted > 40 && f.moved > 500);
}

static void what_all_hold_never_exceeds_the_limit(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        live(seed);
}

static void records_come_back_as_they_were_written(void **state)
{
    (void)state;
    struct rv_agent_part parts[] = {{1, 4, 7, 0}, {250, 0, 1, NOW}};
    struct rv_agent_shares shares = {.version = 3,
                                     .limit_at = NOW,
                                     .concurrent = 4,
                                     .per_second = 8,
                                     .since = NOW + 1,
                                     .adopting = true,
                                     .turn = 9,
                                     .parts = parts,
                                     .parts_count = 2};
    struct rv_agent_use use = {.server = 12,
                               .version = 3,
                               .limit_at = NOW,
                               .open = 1,
                               .older = 2,
                               .counts_since = NOW - 1,
                               .wanted = 3,
                               .waiting = 4,
                               .idle = 5};
    struct rv_agent_shares read;
    struct rv_agent_use use_read;
    struct rv_str agent;
    struct rv_buf buf;
    rv_buf_init(&buf, 1000);
    rv_agent_shares_write(&buf, &shares);
    struct rv_record record = {.key = RV_STR("payment"), .value = rv_buf_str(&buf)};
    assert_int_equal(rv_agent_shares_read(&arena, &record, &read), RV_OK);
    assert_int_equal(read.version, 3);
    assert_int_equal(read.since, NOW + 1);
    assert_int_equal(read.turn, 9);
    assert_true(read.adopting);
    assert_int_equal(read.parts_count, 2);
    assert_int_equal(read.parts[1].server, 250);
    assert_int_equal(read.parts[0].concurrent, 4);
    assert_int_equal(read.parts[1].per_second, 1);
    assert_int_equal(read.parts[1].counts_since, NOW);
    rv_buf_done(&buf);
    rv_buf_init(&buf, 1000);
    rv_agent_use_write(&buf, &use);
    record = (struct rv_record){.key = RV_STR("12/a/b"), .value = rv_buf_str(&buf)};
    assert_int_equal(rv_agent_use_read(&arena, &record, &use_read, &agent), RV_OK);
    assert_true(rv_str_is(agent, "a/b"));
    assert_int_equal(use_read.server, 12);
    assert_int_equal(use_read.older, 2);
    assert_int_equal(use_read.counts_since, NOW - 1);
    assert_int_equal(use_read.waiting, 4);
    assert_int_equal(use_read.idle, 5);
    assert_true(rv_agent_use_is_of(&record, RV_STR("a/b")));
    assert_false(rv_agent_use_is_of(&record, RV_STR("b")));
    static const char *const keys[] = {"", "12", "12/", "x/a", "256/a", "/a"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        record.key = rv_str_of(keys[i]);
        assert_int_equal(rv_agent_use_read(&arena, &record, &use_read, &agent), RV_ERR_INVALID);
    }
    record = (struct rv_record){.key = RV_STR("payment"), .value = RV_STR("{\"version\":-1}")};
    assert_int_equal(rv_agent_shares_read(&arena, &record, &read), RV_ERR_INVALID);
    assert_int_equal(read.version, 0);
    rv_buf_done(&buf);
}

int main(void)
{
#define SHARE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        SHARE(nothing_is_given_before_all_have_reported),
        SHARE(what_is_taken_back_is_given_when_that_is_known),
        SHARE(under_a_lower_limit_nothing_begins_before_it_is_kept),
        SHARE(a_server_that_counts_anew_gets_its_share_anew),
        SHARE(a_share_goes_where_the_polls_are),
        SHARE(every_server_has_its_turn),
        SHARE(who_wants_little_has_its_turn_among_those_that_want_much),
        SHARE(what_all_hold_never_exceeds_the_limit),
        SHARE(records_come_back_as_they_were_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

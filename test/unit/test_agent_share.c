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

enum { NOW = 1000000, SERVERS = 4, ROUNDS = 4000 };

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

static uint32_t part_of(const struct rv_agent_shares *shares, uint8_t server)
{
    const struct rv_agent_part *part = rv_agent_shares_part(shares, server);
    return part != NULL ? part->concurrent : 0;
}

static void nothing_is_given_before_all_have_reported(void **state)
{
    (void)state;
    static const uint8_t servers[] = {1, 2};
    struct rv_agent_limit limit = {.concurrent = 10, .at = NOW};
    struct rv_agent_shares shares = {.version = 0};
    struct rv_agent_use uses[2];
    struct rv_agent_division d = {.limit = &limit,
                                  .uses = uses,
                                  .servers = servers,
                                  .servers_count = 2,
                                  .adopted = true,
                                  .now = NOW};
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
    assert_false(divide(&shares, &d)); /* somebody dead may have handed out anything */
    d.adopted = true;
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
    static const uint8_t servers[] = {1, 2};
    struct rv_agent_limit limit = {.concurrent = 4, .at = NOW};
    struct rv_agent_part parts[] = {{1, 4, 0}, {2, 0, 0}};
    struct rv_agent_shares shares = {.version = 7,
                                     .limit_at = NOW,
                                     .concurrent = 4,
                                     .since = NOW,
                                     .parts = parts,
                                     .parts_count = 2};
    struct rv_agent_use uses[2] = {use_of(&shares, 1, 3, 1), use_of(&shares, 2, 0, 4)};
    struct rv_agent_division d = {.limit = &limit,
                                  .uses = uses,
                                  .uses_count = 2,
                                  .servers = servers,
                                  .servers_count = 2,
                                  .adopted = true,
                                  .now = NOW};
    assert_true(divide(&shares, &d));
    assert_int_equal(part_of(&shares, 1), 2);
    assert_int_equal(part_of(&shares, 2), 0);
    assert_false(divide(&shares, &d)); /* server 1 may not have read it yet */
    uses[0] = use_of(&shares, 1, 3, 1);
    uses[1] = use_of(&shares, 2, 0, 4);
    assert_true(divide(&shares, &d)); /* three of its attempts are open still */
    assert_int_equal(part_of(&shares, 2), 1);
    /* Server 1 is gone: what it had is nobody's before the owners know what is open of it. */
    d.servers = servers + 1;
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

/* The steps wait at server 1, and the polls at server 2. */
static void a_share_goes_where_the_polls_are(void **state)
{
    (void)state;
    static const uint8_t servers[] = {1, 2};
    struct rv_agent_limit limit = {.concurrent = 1, .at = NOW};
    struct rv_agent_part parts[] = {{1, 1, 0}, {2, 0, 0}};
    struct rv_agent_shares shares = {.version = 7,
                                     .limit_at = NOW,
                                     .concurrent = 1,
                                     .since = NOW,
                                     .parts = parts,
                                     .parts_count = 2};
    struct rv_agent_use uses[2];
    struct rv_agent_division d = {.limit = &limit,
                                  .uses = uses,
                                  .uses_count = 2,
                                  .servers = servers,
                                  .servers_count = 2,
                                  .adopted = true,
                                  .now = NOW};
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

/* A world of servers that hand out, report late, die and start: what is open in all, of those that
 * live and of those that are gone, never exceeds the limit when something is begun. */
struct server {
    bool lives;
    uint32_t open;  /* that it has handed out */
    uint32_t older; /* of dead ones, whose tasks it owns */
    uint32_t part;
    int64_t limit_at;
};

static uint32_t open_in_all(const struct server *servers)
{
    uint32_t open = 0;
    for (size_t i = 0; i < SERVERS; i++)
        open += servers[i].open + servers[i].older;
    return open;
}

struct farm {
    struct rv_prng dice;
    struct server servers[SERVERS];
    struct rv_agent_limit limit;
    struct rv_agent_shares shares;
    struct rv_agent_part kept[SERVERS];
    struct rv_agent_use uses[SERVERS];
    size_t uses_count;
    size_t given;
};

static void begin_attempts(struct farm *f, struct server *s)
{
    while (s->lives && s->limit_at == f->limit.at && s->open < s->part) {
        s->open++;
        f->given++;
        assert_true(open_in_all(f->servers) <= f->limit.concurrent);
    }
}

static void read_and_report(struct farm *f, struct server *s, uint8_t number)
{
    if (!s->lives)
        return;
    const struct rv_agent_part *part = rv_agent_shares_part(&f->shares, number);
    bool valid = f->shares.concurrent != 0 && f->shares.concurrent <= f->limit.concurrent;
    s->part = part != NULL && valid ? part->concurrent : 0;
    s->limit_at = f->limit.at;
    size_t at = 0;
    while (at < f->uses_count && f->uses[at].server != number)
        at++;
    f->uses_count += at == f->uses_count;
    f->uses[at] = use_of(&f->shares, number, s->open, (uint32_t)rv_prng_below(&f->dice, 4));
    f->uses[at].limit_at = s->limit_at;
    f->uses[at].older = s->older;
}

/* The first one owns what the others leave. */
static void die_or_start(struct farm *f, struct server *s)
{
    if (rv_prng_below(&f->dice, 10) != 0 || s == &f->servers[0])
        return;
    if (s->lives)
        f->servers[0].older += s->open + s->older;
    *s = (struct server){.lives = !s->lives};
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
    (void)divide(&f->shares, &d);
    memcpy(f->kept, f->shares.parts, f->shares.parts_count * sizeof f->kept[0]);
    f->shares.parts = f->kept;
    rv_arena_reset(&arena);
}

static void what_all_hold_never_exceeds_the_limit(void **state)
{
    (void)state;
    struct farm f = {.servers = {{.lives = true}}, .limit = {.concurrent = 6, .at = NOW}};
    rv_prng_init(&f.dice, 20261128);
    for (int64_t now = NOW; now < NOW + ROUNDS; now++) {
        uint8_t i = (uint8_t)rv_prng_below(&f.dice, SERVERS);
        struct server *s = &f.servers[i];
        uint64_t what = rv_prng_below(&f.dice, 8);
        if (what < 2) {
            begin_attempts(&f, s);
        } else if (what == 2) {
            s->open -= s->open > 0;
            s->older -= s->older > 0;
        } else if (what < 5) {
            read_and_report(&f, s, (uint8_t)(i + 1));
        } else if (what == 5) {
            die_or_start(&f, s);
        } else {
            divide_anew(&f, now);
        }
    }
    assert_true(f.given > 200); /* and it is used */
}

static void records_come_back_as_they_were_written(void **state)
{
    (void)state;
    struct rv_agent_part parts[] = {{1, 4, 7}, {250, 0, 1}};
    struct rv_agent_shares shares = {.version = 3,
                                     .limit_at = NOW,
                                     .concurrent = 4,
                                     .per_second = 8,
                                     .since = NOW + 1,
                                     .turn = 9,
                                     .parts = parts,
                                     .parts_count = 2};
    struct rv_agent_use use = {.server = 12,
                               .version = 3,
                               .limit_at = NOW,
                               .open = 1,
                               .older = 2,
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
    assert_int_equal(read.parts_count, 2);
    assert_int_equal(read.parts[1].server, 250);
    assert_int_equal(read.parts[0].concurrent, 4);
    assert_int_equal(read.parts[1].per_second, 1);
    rv_buf_done(&buf);
    rv_buf_init(&buf, 1000);
    rv_agent_use_write(&buf, &use);
    record = (struct rv_record){.key = RV_STR("12/a/b"), .value = rv_buf_str(&buf)};
    assert_int_equal(rv_agent_use_read(&arena, &record, &use_read, &agent), RV_OK);
    assert_true(rv_str_is(agent, "a/b"));
    assert_int_equal(use_read.server, 12);
    assert_int_equal(use_read.older, 2);
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
        SHARE(a_share_goes_where_the_polls_are),
        SHARE(every_server_has_its_turn),
        SHARE(what_all_hold_never_exceeds_the_limit),
        SHARE(records_come_back_as_they_were_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

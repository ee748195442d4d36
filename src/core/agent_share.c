/* The shares of a limit. Every open attempt is counted by the server that has handed it out, as
 * long as that server lives, wherever its task is decided later. Attempts that nobody counts so
 * (they began before the limit did, or their server is gone) are counted by the owners of their
 * tasks: those that began by `since`. While anything of that is not known nothing is given to
 * anybody. */
#include "core/agent_share.h"

#include "base/assert.h"
#include "base/bucket.h"
#include "base/limits.h"
#include "json/json.h"

#include <stdio.h>
#include <string.h>

/* ---- the records ---- */

void rv_agent_shares_write(struct rv_buf *buf, const struct rv_agent_shares *shares)
{
    rv_buf_printf(buf,
                  "{\"version\":%lld,\"limitAt\":%lld,\"concurrent\":%u,\"perSecond\":%u,"
                  "\"since\":%lld,\"adopting\":%s,\"turn\":%u,\"parts\":[",
                  (long long)shares->version, (long long)shares->limit_at, shares->concurrent,
                  shares->per_second, (long long)shares->since, shares->adopting ? "true" : "false",
                  shares->turn);
    for (size_t i = 0; i < shares->parts_count; i++) {
        const struct rv_agent_part *part = &shares->parts[i];
        rv_buf_printf(buf,
                      "%s{\"server\":%u,\"concurrent\":%u,\"perSecond\":%u,\"countsSince\":%lld}",
                      i > 0 ? "," : "", part->server, part->concurrent, part->per_second,
                      (long long)part->counts_since);
    }
    rv_buf_lit(buf, "]}");
}

static bool number_read(const struct rv_json *object, const char *name, int64_t max,
                        int64_t *ret_number)
{
    return rv_json_int(rv_json_get(object, rv_str_of(name)), ret_number) && *ret_number >= 0 &&
           *ret_number <= max;
}

static bool small_read(const struct rv_json *object, const char *name, int64_t max,
                       uint32_t *ret_number)
{
    int64_t number;
    bool read = number_read(object, name, max, &number);
    *ret_number = read ? (uint32_t)number : 0;
    return read;
}

static bool part_read(const struct rv_json *json, struct rv_agent_part *part)
{
    uint32_t server;
    bool read = small_read(json, "server", RV_SERVERS_MAX, &server) &&
                small_read(json, "concurrent", RV_AGENT_CONCURRENT_MAX, &part->concurrent) &&
                small_read(json, "perSecond", RV_BUCKET_RATE_MAX, &part->per_second) &&
                number_read(json, "countsSince", INT64_MAX, &part->counts_since);
    part->server = (uint8_t)server;
    return read;
}

enum rv_err rv_agent_shares_read(struct rv_arena *arena, const struct rv_record *record,
                                 struct rv_agent_shares *ret_shares)
{
    struct rv_json value;
    struct rv_agent_shares read = {.version = 0};
    *ret_shares = read;
    RV_TRY(rv_json_parse(arena, record->value, RV_JSON_DEPTH_MAX, &value, NULL));
    const struct rv_json *parts = rv_json_get(&value, RV_STR("parts"));
    const struct rv_json *adopting = rv_json_get(&value, RV_STR("adopting"));
    if (adopting == NULL || adopting->type != RV_JSON_BOOL)
        return RV_ERR_INVALID;
    read.adopting = adopting->truth;
    if (!number_read(&value, "version", INT64_MAX, &read.version) ||
        !number_read(&value, "limitAt", INT64_MAX, &read.limit_at) ||
        !number_read(&value, "since", INT64_MAX, &read.since) ||
        !small_read(&value, "turn", UINT32_MAX, &read.turn) ||
        !small_read(&value, "concurrent", RV_AGENT_CONCURRENT_MAX, &read.concurrent) ||
        !small_read(&value, "perSecond", RV_BUCKET_RATE_MAX, &read.per_second) || parts == NULL ||
        parts->type != RV_JSON_ARRAY || parts->len > RV_SERVERS_MAX)
        return RV_ERR_INVALID;
    read.parts = RV_NEW_ARRAY(arena, struct rv_agent_part, parts->len + 1);
    if (read.parts == NULL)
        return RV_ERR_MEMORY;
    for (size_t i = 0; i < parts->len; i++)
        if (!part_read(&parts->u.items[i], &read.parts[read.parts_count++]))
            return RV_ERR_INVALID;
    *ret_shares = read;
    return RV_OK;
}

void rv_agent_use_write(struct rv_buf *buf, const struct rv_agent_use *use)
{
    rv_buf_printf(buf,
                  "{\"version\":%lld,\"limitAt\":%lld,\"open\":%u,\"older\":%u,"
                  "\"countsSince\":%lld,\"wanted\":%u,\"waiting\":%u,\"idle\":%u}",
                  (long long)use->version, (long long)use->limit_at, use->open, use->older,
                  (long long)use->counts_since, use->wanted, use->waiting, use->idle);
}

/* "3/payment" */
static bool use_key_read(struct rv_str key, uint8_t *ret_server, struct rv_str *ret_agent)
{
    unsigned server = 0;
    size_t at = 0;
    for (; at < key.len && key.at[at] >= '0' && key.at[at] <= '9' && server <= RV_SERVERS_MAX; at++)
        server = server * 10 + (unsigned)(key.at[at] - '0');
    if (at == 0 || server > RV_SERVERS_MAX || at + 1 >= key.len || key.at[at] != '/')
        return false;
    *ret_server = (uint8_t)server;
    *ret_agent = (struct rv_str){key.at + at + 1, key.len - at - 1};
    return true;
}

bool rv_agent_use_is_of(const struct rv_record *record, struct rv_str agent)
{
    uint8_t server;
    struct rv_str its;
    return use_key_read(record->key, &server, &its) && rv_str_eq(its, agent);
}

enum rv_err rv_agent_use_read(struct rv_arena *arena, const struct rv_record *record,
                              struct rv_agent_use *ret_use, struct rv_str *ret_agent)
{
    struct rv_json value;
    struct rv_agent_use read = {.server = 0};
    *ret_use = read;
    *ret_agent = RV_STR_NONE;
    if (!use_key_read(record->key, &read.server, ret_agent))
        return RV_ERR_INVALID;
    ret_use->server = read.server;
    RV_TRY(rv_json_parse(arena, record->value, RV_JSON_DEPTH_MAX, &value, NULL));
    if (!number_read(&value, "version", INT64_MAX, &read.version) ||
        !number_read(&value, "limitAt", INT64_MAX, &read.limit_at) ||
        !small_read(&value, "open", UINT32_MAX, &read.open) ||
        !small_read(&value, "older", UINT32_MAX, &read.older) ||
        !number_read(&value, "countsSince", INT64_MAX, &read.counts_since) ||
        !small_read(&value, "wanted", UINT32_MAX, &read.wanted) ||
        !small_read(&value, "waiting", UINT32_MAX, &read.waiting) ||
        !small_read(&value, "idle", UINT32_MAX, &read.idle))
        return RV_ERR_INVALID;
    *ret_use = read;
    return RV_OK;
}

/* ---- the division ---- */

/* A server as it is divided for. */
struct divided {
    struct rv_agent_part part;
    const struct rv_agent_use *use; /* NULL: it has reported nothing yet */
    uint64_t wants;                 /* steps that it could hand out, its own and those of others */
    uint64_t target;
};

static const struct rv_agent_use *use_of(const struct rv_agent_division *d, uint8_t server)
{
    for (size_t i = 0; i < d->uses_count; i++)
        if (d->uses[i].server == server)
            return &d->uses[i];
    return NULL;
}

const struct rv_agent_part *rv_agent_shares_part(const struct rv_agent_shares *shares,
                                                 uint8_t server)
{
    for (size_t i = 0; i < shares->parts_count; i++)
        if (shares->parts[i].server == server)
            return &shares->parts[i];
    return NULL;
}

static bool lives(const struct rv_agent_division *d, uint8_t server)
{
    for (size_t i = 0; i < d->servers_count; i++)
        if (d->servers[i] == server)
            return true;
    return false;
}

static bool any_left(const struct rv_agent_division *d, const struct rv_agent_shares *shares)
{
    for (size_t i = 0; i < shares->parts_count; i++)
        if (!lives(d, shares->parts[i].server))
            return true;
    return false;
}

/* All servers have reported what they make of these shares. */
static bool all_follow(const struct rv_agent_shares *shares, const struct divided *all,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].use == NULL || all[i].use->version != shares->version)
            return false;
    return true;
}

static bool all_know_limit(const struct rv_agent_shares *shares, const struct divided *all,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].use == NULL || all[i].use->limit_at != shares->limit_at)
            return false;
    return true;
}

/* So much for each, by what they ask for; the rest goes evenly to those that ask for more, or to
 * all if nobody does. Where it cannot be divided it goes round. */
static void targets_set(struct divided *all, size_t count, uint64_t whole, uint64_t turn,
                        uint64_t (*asks)(const struct divided *one))
{
    uint64_t asked = 0, given = 0;
    for (size_t i = 0; i < count; i++)
        asked += asks(&all[i]);
    uint64_t most = asked < whole ? asked : whole;
    for (size_t i = 0; i < count; i++) {
        all[i].target = asked > 0 ? most * asks(&all[i]) / asked : 0;
        given += all[i].target;
    }
    size_t lacking = 0, rank = 0;
    for (size_t i = 0; i < count; i++)
        lacking += asks(&all[i]) > all[i].target;
    size_t among = lacking > 0 ? lacking : count;
    uint64_t even = (whole - given) / among, rest = (whole - given) % among;
    for (size_t i = 0; i < count; i++)
        if (lacking == 0 || asks(&all[i]) > all[i].target)
            all[i].target += even + ((rank++ + turn) % among < rest);
}

/* Steps may wait at servers at which nobody polls: they are handed out where polls are idle, which
 * needs a share there. */
static void wants_set(struct divided *all, size_t count)
{
    uint64_t waiting = 0;
    for (size_t i = 0; i < count; i++)
        waiting += all[i].use != NULL ? all[i].use->waiting : 0;
    for (size_t i = 0; i < count; i++) {
        const struct rv_agent_use *use = all[i].use;
        if (use != NULL)
            all[i].wants = use->wanted + (use->idle < waiting ? use->idle : waiting);
    }
}

static uint64_t asks_open(const struct divided *one)
{
    return one->use != NULL ? one->use->open + one->wants : 0;
}

static uint64_t asks_begin(const struct divided *one)
{
    return one->wants;
}

static uint64_t held_of(const struct divided *one)
{
    uint64_t open = one->use != NULL ? one->use->open : 0;
    return open > one->part.concurrent ? open : one->part.concurrent;
}

/* Somebody waits for more, or the whole is not divided. */
static bool is_unfair(const struct divided *all, size_t count, bool open)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t has = open ? all[i].part.concurrent : all[i].part.per_second;
        if (all[i].wants > 0 && all[i].target > has)
            return true;
    }
    return false;
}

/* What somebody has beyond his target is taken back, where another one waits for it or there is not
 * so much any more. `open`: what he holds in any case, and what costs nothing to give while
 * anything may be given. `left`: what may be given to others now. */
static bool part_move(uint32_t *part, uint64_t target, bool takes, uint32_t open, uint64_t *left)
{
    uint64_t before = *part, now = before;
    if (before > target && takes)
        now = target;
    if (before<target && * left> 0) {
        uint64_t free = open > before ? open - before : 0;
        uint64_t lacks = target - before, more = lacks < free + *left ? lacks : free + *left;
        now = before + more;
        *left -= more > free ? more - free : 0;
    }
    *part = (uint32_t)now;
    return now != before;
}

/* How much the reports tell. */
struct told {
    bool complete; /* all attempts that are open, or may begin, are counted by the parts and them */
    bool known;    /* ... under the limit as it is: something may be given */
    bool lowered;  /* fewer attempts may be open than before */
};

static bool open_divide(const struct rv_agent_shares *shares, struct divided *all, size_t count,
                        const struct told *told, bool *ret_gives)
{
    uint64_t older = 0, held = 0, given = 0;
    bool changed = false;
    if (shares->concurrent == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        older += all[i].use != NULL ? all[i].use->older : 0;
        held += held_of(&all[i]);
        given += all[i].part.concurrent;
    }
    uint64_t whole = shares->concurrent > older ? shares->concurrent - older : 0;
    targets_set(all, count, whole, shares->turn, asks_open);
    uint64_t spare = told->known && held < whole ? whole - held : 0, left = spare;
    bool takes = given > whole || is_unfair(all, count, true);
    /* One server may have as much open as its share was, while another one has room. */
    bool stops = told->lowered && (!told->complete || held > whole);
    for (size_t i = 0; i < count; i++)
        changed |= part_move(&all[i].part.concurrent, stops ? 0 : all[i].target, takes || stops,
                             all[i].use != NULL ? all[i].use->open : 0, &left);
    *ret_gives = *ret_gives || left < spare;
    return changed;
}

static bool rate_divide(const struct rv_agent_shares *shares, struct divided *all, size_t count,
                        const struct told *told, bool *ret_gives)
{
    uint64_t given = 0;
    bool changed = false;
    if (shares->per_second == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        given += all[i].part.per_second;
    targets_set(all, count, shares->per_second, shares->turn, asks_begin);
    uint64_t spare = told->known && given < shares->per_second ? shares->per_second - given : 0;
    uint64_t left = spare;
    bool takes = given > shares->per_second || is_unfair(all, count, false);
    for (size_t i = 0; i < count; i++)
        changed |= part_move(&all[i].part.per_second, all[i].target, takes, 0, &left);
    *ret_gives = *ret_gives || left < spare;
    return changed;
}

/* The limit as it is now. *ret_lowered: fewer attempts may be open than before. */
static bool limit_take(const struct rv_agent_limit *limit, struct rv_agent_shares *shares,
                       struct divided *all, size_t count, bool *ret_lowered)
{
    *ret_lowered = false;
    if (shares->version != 0 && shares->limit_at == limit->at &&
        shares->concurrent == limit->concurrent && shares->per_second == limit->per_second)
        return false;
    bool begins = shares->version == 0 || shares->concurrent == 0;
    /* What was given before there was a limit of that kind is nothing. */
    for (size_t i = 0; i < count; i++) {
        if (begins)
            all[i].part.concurrent = 0;
        if (shares->per_second == 0)
            all[i].part.per_second = 0;
    }
    *ret_lowered = limit->concurrent < shares->concurrent;
    shares->limit_at = limit->at;
    shares->concurrent = limit->concurrent;
    shares->per_second = limit->per_second;
    if (begins)
        shares->since = 0;
    return true;
}

/* What a server had handed out that is gone, or does not count it any more, the owners of the tasks
 * count from now on. Its share may be used up by that. */
static bool since_move(const struct rv_agent_division *d, struct rv_agent_shares *shares,
                       struct divided *all, size_t count)
{
    bool anew = any_left(d, shares), changed = anew;
    int64_t now = d->now;
    for (size_t i = 0; i < count; i++) {
        struct rv_agent_part *part = &all[i].part;
        if (all[i].use == NULL || all[i].use->counts_since == part->counts_since)
            continue;
        changed = true;
        anew = anew || part->counts_since != 0; /* else it has handed out nothing yet */
        part->concurrent = 0;
        part->counts_since = all[i].use->counts_since;
        now = part->counts_since > now ? part->counts_since : now;
    }
    if (shares->since != 0 && anew)
        shares->since = now;
    return changed;
}

/* Reports from before the last open task had an owner that lives may lack what is open of it: all
 * report once more after that. */
static bool adoption_note(const struct rv_agent_division *d, struct rv_agent_shares *shares)
{
    bool changed = shares->adopting == d->adopted;
    shares->adopting = !d->adopted;
    return changed;
}

enum rv_err rv_agent_shares_divide(struct rv_arena *arena, const struct rv_agent_division *division,
                                   struct rv_agent_shares *shares, bool *ret_changed)
{
    size_t count = division->servers_count;
    struct divided *all = RV_NEW_ARRAY(arena, struct divided, count + 1);
    struct rv_agent_part *parts = RV_NEW_ARRAY(arena, struct rv_agent_part, count + 1);
    struct told told = {.known = false};
    bool changed = false;
    *ret_changed = false;
    if (all == NULL || parts == NULL)
        return RV_ERR_MEMORY;
    if (count == 0)
        return RV_OK;
    for (size_t i = 0; i < count; i++) {
        const struct rv_agent_part *part = rv_agent_shares_part(shares, division->servers[i]);
        all[i].part = part != NULL ? *part : (struct rv_agent_part){.server = division->servers[i]};
        all[i].use = use_of(division, division->servers[i]);
        changed = changed || part == NULL;
    }
    changed |= since_move(division, shares, all, count);
    changed |= adoption_note(division, shares);
    bool settled = !changed && all_follow(shares, all, count) && division->adopted;
    told.complete = settled && shares->since != 0;
    changed |= limit_take(division->limit, shares, all, count, &told.lowered);
    settled = settled && !changed && all_know_limit(shares, all, count);
    if (settled && shares->since == 0) { /* from now on each counts what it hands out */
        shares->since = division->now;
        changed = true;
    }
    told.known = settled && told.complete;
    bool gives = false;
    wants_set(all, count);
    changed |= open_divide(shares, all, count, &told, &gives);
    changed |= rate_divide(shares, all, count, &told, &gives);
    shares->turn += gives;
    for (size_t i = 0; i < count; i++)
        parts[i] = all[i].part;
    shares->parts = parts;
    shares->parts_count = count;
    shares->version += changed;
    *ret_changed = changed;
    return RV_OK;
}

/* API keys: records of the store, which the api holds in memory as well. Whoever makes the first
 * key shuts the door that stood open until then, so that one is an admin's; and as long as there
 * are keys, one of them is. */
#include "scheduler/calls/keys.h"

#include "base/assert.h"
#include "base/limits.h"
#include "scheduler/batch/answers.h"
#include "scheduler/batch/batch.h"
#include "scheduler/batch/call_ops.h"
#include "scheduler/batch/evaluations.h"
#include "scheduler/batch/log.h"
#include "scheduler/batch/parking.h"
#include "scheduler/batch/pending.h"
#include "scheduler/batch/pending_list.h"
#include "scheduler/batch/refuse.h"
#include "scheduler/batch/registered.h"
#include "scheduler/batch/state.h"
#include "scheduler/calls/reads.h"
#include "scheduler/queries/query.h"

#define KEYS_CHANGE RV_STR("another server is changing keys: send the request again")
#define REVOKED "the authorization of this request was revoked"

struct key_set {
    struct rv_record *rows; /* on the batch's arena */
    size_t count;
};

static enum rv_err keys_load(struct rv_scheduler *s, struct key_set *ret_set)
{
    struct rv_record *rows = RV_NEW_ARRAY(s->batch.arena, struct rv_record,
                                          RV_API_KEYS_MAX + RV_PAGE_ROWS_MAX);
    if (rows == NULL)
        return RV_ERR_MEMORY;
    size_t all = 0, count;
    do {
        struct rv_str after = all > 0 ? rows[all - 1].key : RV_STR_NONE;
        enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena,
                                                      RV_STR(RV_RECORD_API_KEY), RV_STR_NONE, after,
                                                      RV_PAGE_ROWS_MAX, rows + all, &count);
        if (err != RV_OK)
            return err;
        rv_assert(count <= RV_PAGE_ROWS_MAX);
        all += count;
    } while (count == RV_PAGE_ROWS_MAX && all < RV_API_KEYS_MAX);
    rv_assert(all < RV_API_KEYS_MAX + RV_PAGE_ROWS_MAX);
    *ret_set = (struct key_set){rows, all};
    return RV_OK;
}

/* How many admins' keys there are beside `without`. A record that cannot be read is none. */
static size_t admins_count(struct rv_scheduler *s, const struct key_set *set, struct rv_str without)
{
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct rv_api_key key;
        if (rv_api_key_read(s->batch.arena, &set->rows[i], &key) == RV_OK)
            count += key.role == RV_ROLE_ADMIN && !rv_str_eq(key.id, without);
    }
    return count;
}

static const struct rv_record *record_find(const struct key_set *set, struct rv_str id)
{
    for (size_t i = 0; i < set->count; i++)
        if (rv_str_eq(set->rows[i].key, id))
            return &set->rows[i];
    return NULL;
}

/* Another server may change keys meanwhile: then what was read of the others may not be true. */
static struct rv_record_change change_of(const struct rv_scheduler *s, struct rv_str id)
{
    return (struct rv_record_change){.row = {.kind = RV_STR(RV_RECORD_API_KEY), .key = id},
                                     .guarded = s->enlistment.shared,
                                     .registry_before = s->registered.seen[RV_REGISTRY_API_KEYS]};
}

static enum rv_err add_decide(struct rv_scheduler *s, struct pending *p, const struct key_set *set)
{
    struct rv_api_key *key = &p->call->u.key.row;
    if (record_find(set, key->id) != NULL)
        return call_refuse(
            p->call, RV_ERR_BUSY,
            RV_STR("the generated key id is already in use: send the request again"));
    if (set->count >= RV_API_KEYS_MAX)
        return call_refuse(p->call, RV_ERR_LIMIT,
                           RV_STR("the maximum number of keys is reached: revoke unused keys"));
    if (key->role != RV_ROLE_ADMIN && admins_count(s, set, RV_STR_NONE) == 0)
        return call_refuse(p->call, RV_ERR_REFUSED,
                           RV_STR("there is no admin key, and only an admin can create and revoke "
                                  "keys: create an admin key first (reeve keys add admin)"));
    p->call->u.key.first = set->count == 0;
    struct rv_buf value;
    rv_buf_init(&value, RV_PAYLOAD_BYTES_MAX);
    rv_api_key_write(&value, key);
    enum rv_err err = record_put(s, change_of(s, key->id), &value);
    rv_buf_done(&value);
    p->number = s->batch.records_count;
    key->created_at = s->batch.now;
    return err;
}

static enum rv_err revoke_decide(struct rv_scheduler *s, struct pending *p,
                                 const struct key_set *set)
{
    struct rv_arena *arena = &p->call->arena;
    struct rv_api_key *key = &p->call->u.key.row;
    const struct rv_record *record = record_find(set, key->id);
    if (record == NULL)
        return call_refuse(p->call, RV_ERR_NOT_FOUND,
                           call_printf(p->call,
                                       "there is no such key: %.*s; `reeve keys` lists the keys",
                                       RV_STR_FMT(key->id)));
    if (set->count > 0 && admins_count(s, set, key->id) == 0)
        return call_refuse(p->call, RV_ERR_REFUSED,
                           RV_STR("no admin key would be left: create another admin key first"));
    struct rv_api_key was = {.id = key->id};
    enum rv_err err = rv_api_key_read(s->batch.arena, record, &was);
    if (err == RV_ERR_MEMORY)
        return err;
    was.id = key->id;
    was.agent = rv_arena_str(arena, was.agent);
    was.name = rv_arena_str(arena, was.name);
    was.hash = RV_STR_NONE;
    *key = was;
    struct rv_record_change *change = batch_record(s);
    if (change == NULL)
        return RV_ERR_MEMORY;
    *change = change_of(s, record->key);
    change->gone = true;
    p->number = s->batch.records_count;
    return RV_OK;
}

/* What one says about the others is true of one batch only: each has a batch of its own. */
static enum rv_err set_load(struct rv_scheduler *s, struct pending *p, struct key_set *ret_set)
{
    p->waits_turn = s->batch.record_changes++ > 0;
    return p->waits_turn ? RV_OK : keys_load(s, ret_set);
}

static enum rv_err key_add_decide(struct rv_scheduler *s, struct pending *p)
{
    struct key_set set;
    enum rv_err err = set_load(s, p, &set);
    return err != RV_OK || p->waits_turn ? err : add_decide(s, p, &set);
}

static enum rv_err key_revoke_decide(struct rv_scheduler *s, struct pending *p)
{
    struct key_set set;
    enum rv_err err = set_load(s, p, &set);
    return err != RV_OK || p->waits_turn ? err : revoke_decide(s, p, &set);
}

/* The store has other keys than this server has seen: whoever keeps them is told before a call of
 * this batch is decided or answered. */
static enum rv_err keys_renew(struct rv_scheduler *s)
{
    const struct rv_scheduler_keys *keys = &s->options.keys;
    struct key_set set;
    if (!registered_changed(&s->registered, RV_REGISTRY_API_KEYS))
        return RV_OK;
    s->key_changes_others = ++s->key_changes;
    if (keys->learn != NULL) {
        RV_TRY(keys_load(s, &set));
        RV_TRY(keys->learn(keys->self, set.rows, set.count, s->key_changes));
    }
    registered_know(&s->registered, RV_REGISTRY_API_KEYS);
    return RV_OK;
}

/* What may still change something in this batch, or be parked. What a call that only reads is
 * answered is the api's to check, as far as the api made the change itself. */
static bool call_matters(const struct rv_scheduler *s, const struct pending *p)
{
    if (p->ops->waits || (!p->changes && p->call->keys_known < s->key_changes_others))
        return true;
    return p->changes && (p->ops->is_open == NULL || p->ops->is_open(p->call));
}

static enum rv_err access_check(struct rv_scheduler *s, const struct pending *p, bool *ret_ended)
{
    const struct rv_call *call = p->call;
    *ret_ended = false;
    if (call->keys_known == 0 || call->keys_known == s->key_changes || !call_matters(s, p))
        return RV_OK;
    struct rv_record row;
    size_t count = 0;
    enum rv_err err = s->store->ops->list_records(s->store, s->batch.arena,
                                                  RV_STR(RV_RECORD_API_KEY), call->key_id,
                                                  RV_STR_NONE, 1, &row, &count);
    if (err != RV_OK)
        return err;
    rv_assert(count <= 1);
    *ret_ended = call->key_id.at == NULL ? count > 0
                                         : count == 0 || !rv_str_eq(row.key, call->key_id);
    return RV_OK;
}

/* Moves the calls whose access has ended from one list to another. */
static enum rv_err ended_take(struct rv_scheduler *s, struct pending_list *from, bool aside,
                              struct pending_list *ended)
{
    struct pending *next;
    for (struct pending *p = from->first; p != NULL; p = next) {
        bool over;
        next = p->next;
        enum rv_err err = access_check(s, p, &over);
        if (err != RV_OK)
            return err;
        if (!over)
            continue;
        if (aside)
            evaluations_unhold(s, p);
        else
            pending_unlink(from, p);
        pending_append(ended, p);
    }
    return RV_OK;
}

static bool parked_stands(const struct key_set *set, const struct rv_call *call)
{
    if (call->keys_known == 0)
        return true;
    return call->key_id.at != NULL ? record_find(set, call->key_id) != NULL : set->count == 0;
}

/* Calls that wait end with their access. What a submission or replies have written is answered;
 * their api sends no more than the caller may still know. */
static enum rv_err parked_refuse(struct rv_scheduler *s)
{
    struct key_set set;
    if (s->parked_by_serial.count == 0)
        return RV_OK;
    struct pending **ended = rv_arena_take(s->batch.arena,
                                           s->parked_by_serial.count * sizeof(struct pending *));
    if (ended == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = keys_load(s, &set);
    size_t count = 0;
    for (size_t i = 0; err == RV_OK && i < s->parked_by_serial.room; i++) {
        const struct rv_map_slot *slot = &s->parked_by_serial.slots[i];
        struct pending *p = (struct pending *)(uintptr_t)slot->value;
        rv_assert(!slot->used || count < s->parked_by_serial.count);
        if (slot->used && !parked_stands(&set, p->call))
            ended[count++] = p;
    }
    for (size_t i = 0; i < count; i++) {
        struct rv_call *call = ended[i]->call;
        rv_assert(ended[i]->parked);
        bool wrote = ended[i]->changes;
        pending_finish(s, ended[i], wrote ? RV_OK : RV_ERR_REFUSED,
                       wrote ? RV_STR_NONE : RV_STR(REVOKED));
        call->access_ended = !wrote;
    }
    return err;
}

/* The calls of this batch; after a change of keys also those that wait elsewhere. Only calls that
 * were allowed before the newest change of keys read the store here. */
static enum rv_err all_ended_take(struct rv_scheduler *s, struct pending_list *ended)
{
    RV_TRY(ended_take(s, &s->batch.calls, false, ended));
    rv_assert(s->key_changes >= s->key_changes_checked);
    if (s->key_changes == s->key_changes_checked)
        return RV_OK;
    RV_TRY(ended_take(s, &s->evaluations.calls, true, ended));
    RV_TRY(parked_refuse(s));
    s->key_changes_checked = s->key_changes;
    return RV_OK;
}

/* The api checks access before it sends a call. By the time of its decision that may be past: the
 * call was in the mailbox with the revocation, its expressions were evaluated meanwhile, or another
 * server has revoked its key. */
enum rv_err keys_refuse(struct rv_scheduler *s)
{
    struct pending_list ended = {NULL, NULL};
    enum rv_err err = keys_renew(s);
    if (err == RV_OK)
        err = all_ended_take(s, &ended);
    while (ended.first != NULL) {
        struct pending *p = ended.first;
        struct rv_call *call = p->call;
        rv_assert(!p->parked);
        pending_unlink(&ended, p);
        pending_finish(s, p, RV_ERR_REFUSED, RV_STR(REVOKED));
        call->access_ended = call->err != RV_OK; /* items that were accepted are answered */
    }
    return err;
}

static void key_act(struct rv_scheduler *s, struct pending *p)
{
    if (!record_turn(s, p))
        return;
    bool written = p->call->err == RV_OK && s->batch.taskless == RV_OK;
    if (written && s->batch.records[p->number - 1].outcome == RV_ERR_CONFLICT) {
        pending_unlink(&s->batch.calls, p);
        if (!parking_carry_again(s, p))
            pending_finish(s, p, RV_ERR_BUSY, KEYS_CHANGE);
        return;
    }
    if (written) {
        p->call->u.key.changes = ++s->key_changes;
        rv_assert(s->key_changes > s->key_changes_checked);
        s->more_due = true; /* the calls that wait with it end */
    }
    answers_taskless_act(s, p);
}

static void key_log(struct rv_scheduler *s, const struct rv_call *call, const char *command)
{
    const struct rv_api_key *key = &call->u.key.row;
    struct log_fields line;
    log_command_begin(&line, command);
    log_text(&line, "key", key->id);
    if (key->role < RV_ROLE_COUNT)
        log_text(&line, "role", rv_str_of(rv_role_text(key->role)));
    log_text(&line, "agent", key->agent);
    log_text(&line, "name", key->name);
    log_command_end(s, &line, call->by, RV_STR_NONE);
}

static void key_add_log(struct rv_scheduler *s, const struct rv_call *call)
{
    key_log(s, call, "add-key");
}

static void key_revoke_log(struct rv_scheduler *s, const struct rv_call *call)
{
    key_log(s, call, "revoke-key");
}

const struct call_ops key_add_ops = {.decide = key_add_decide, .act = key_act, .log = key_add_log};
const struct call_ops key_revoke_ops = {
    .decide = key_revoke_decide, .act = key_act, .log = key_revoke_log};

static enum rv_err keys_read(const struct query *q, struct rv_call *call)
{
    struct rv_call_keys *keys = &call->u.keys;
    struct rv_arena *arena = &call->arena;
    if (keys->limit == 0 || keys->limit > RV_PAGE_ROWS_MAX)
        keys->limit = RV_PAGE_ROWS_MAX;
    struct rv_record *rows = RV_NEW_ARRAY(arena, struct rv_record, keys->limit);
    keys->rows = RV_NEW_ARRAY(arena, struct rv_api_key, keys->limit);
    if (rows == NULL || keys->rows == NULL)
        return RV_ERR_MEMORY;
    enum rv_err err = q->store->ops->list_records(q->store, arena, RV_STR(RV_RECORD_API_KEY),
                                                  RV_STR_NONE, keys->after, keys->limit, rows,
                                                  &keys->count);
    rv_assert(err != RV_OK || keys->count <= keys->limit);
    for (size_t i = 0; err == RV_OK && i < keys->count; i++) {
        /* One that cannot be read is shown by its id, so that it can be revoked. */
        err = rv_api_key_read(arena, &rows[i], &keys->rows[i]);
        if (err == RV_ERR_INVALID) {
            keys->rows[i] = (struct rv_api_key){
                .id = rows[i].key, .role = RV_ROLE_COUNT, .created_at = rows[i].at};
            err = RV_OK;
        }
    }
    return err;
}

const struct call_ops keys_ops = {
    .decide = read_decide, .act = answers_finish_act, .read = keys_read};

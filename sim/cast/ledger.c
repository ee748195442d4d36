#include "sim/cast/ledger.h"

#include "base/assert.h"
#include "base/hash.h"
#include "sim/check/check.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ledger_new(struct world *w)
{
    w->ledger = calloc(1, sizeof *w->ledger);
    rv_assert(w->ledger != NULL);
    rv_map_init(&w->ledger->by_hash);
}

void ledger_free(struct world *w)
{
    if (w->ledger == NULL)
        return;
    for (size_t i = 0; i < w->ledger->count; i++)
        free(w->ledger->all[i]);
    free(w->ledger->all);
    rv_map_done(&w->ledger->by_hash);
    free(w->ledger);
}

static uint64_t key_hash(struct rv_str key)
{
    return rv_hash((struct rv_hash_key){3, 4}, key);
}

struct effect *ledger_find(struct world *w, struct rv_str key)
{
    const uint64_t *found = rv_map_find(&w->ledger->by_hash, key_hash(key), 0);
    return found ? w->ledger->all[*found] : NULL;
}

struct effect *ledger_get(struct world *w, struct rv_str key)
{
    struct ledger *ledger = w->ledger;
    struct effect *effect = ledger_find(w, key);
    if (effect != NULL)
        return effect;
    if (ledger->count == ledger->room) {
        ledger->room = ledger->room ? ledger->room * 2 : 128;
        ledger->all = realloc(ledger->all, ledger->room * sizeof(struct effect *));
        rv_assert(ledger->all != NULL);
    }
    effect = calloc(1, sizeof *effect);
    rv_assert(effect != NULL && key.len < LEDGER_KEY_BYTES);
    memcpy(effect->key, key.at, key.len);
    enum rv_err err = rv_map_put(&ledger->by_hash, key_hash(key), 0, ledger->count);
    rv_assert(err == RV_OK);
    ledger->all[ledger->count++] = effect;
    return effect;
}

static void call_say(struct world *w, const char *agent, struct rv_str key, int64_t attempt,
                     const char *result, const char *more)
{
    char number[32] = "";
    if (attempt != 0)
        snprintf(number, sizeof number, " (attempt %lld)", (long long)attempt);
    world_say(w, agent, "calls its service%s: %.*s is %s%s", number, RV_STR_FMT(key), result, more);
}

void ledger_apply(struct world *w, struct rv_str key, int64_t attempt, bool zombie,
                  const char *agent)
{
    struct effect *effect = ledger_get(w, key);
    effect->asked++;
    call_say(w, agent, key, attempt,
             effect->undone    ? "refused, it was undone"
             : effect->applied ? "known by its idempotency key, no second effect"
                               : "carried out",
             zombie ? ", after the deadline" : "");
    if (effect->undone) {
        effect->refused++;
        check_effect_after_undo(w, effect, zombie);
        return;
    }
    if (!effect->applied)
        effect->applied_at = w->now;
    effect->applied = true;
}

void ledger_undo(struct world *w, struct rv_str key, int64_t attempt, const char *agent)
{
    struct effect *effect = ledger_get(w, key);
    effect->undo_asked++;
    call_say(w, agent, key, attempt, "undone",
             effect->applied ? "" : ", though it was never carried out");
    check_undo_beside_work(w, effect);
    if (!effect->undone)
        effect->undone_at = w->now;
    effect->undone = true;
}

void ledger_forget(struct world *w)
{
    for (size_t i = 0; i < w->ledger->count; i++)
        w->ledger->all[i]->applied = false;
}

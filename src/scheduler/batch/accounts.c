/* Debts and credit. A decision may use a little for nothing, as everybody's do. What it uses beyond
 * that, its workflow and its task owe; debts are paid off by time alone. Whoever owes waits until
 * everybody else is decided, and who owes least comes first.
 *
 * All evaluations together have one credit. It grows with the time: with all of it while nobody
 * else has work, with a twentieth while others use about a twentieth of the time or more. So a
 * server without other work gives everything to what is heavy, and one at work loses little to it.
 * The threshold is low on purpose: whoever is slowed down uses less, and would lose still more. */
#include "scheduler/batch/accounts.h"

#include "base/assert.h"
#include "scheduler/batch/state.h"

enum {
    FUEL_PER_MS = 100000,
    FREE_FUEL = 3000,            /* of each decision: less than its rows cost */
    ALLOWANCE_FUEL = 20000,      /* of a decision in its batch, while there is credit */
    DEBT_PAID_PER_MS = 1000,     /* a hundredth of the time */
    DEBT_MAX = 10 * 1000 * 1000, /* paid off in 10 s */
    DEBT_WAITS = 20000,          /* so much, and only what is free is decided in batches */
    SHARE_PER_MS = FUEL_PER_MS / 20,
    LIGHT_FUEL = 5000,            /* what a change of a task costs beside its expressions */
    LIGHT_WINDOW_MS = 512,        /* over which the work of others is looked at */
    LIGHT_WEIGHT = 20,            /* so many times it is taken from the evaluations' share */
    CREDIT_MIN = FUEL_PER_MS / 4, /* a slice that is worth a batch */
    US_PER_MS = 1000,
    CLOCK_WEIGHT = 10, /* a unit of fuel never counts for more than so many */
    DEBTS_SWEEP = 1024
};

/* A debt and its instant in 64 bits. */
enum { DEBT_BITS = 24 };
_Static_assert(DEBT_MAX < 1 << DEBT_BITS, "a debt fits");

void accounts_init(struct accounts *accounts)
{
    *accounts = (struct accounts){.sweep_at = DEBTS_SWEEP, .credit = FUEL_PER_MS};
    rv_map_init(&accounts->debts);
}

void accounts_done(struct accounts *accounts)
{
    rv_map_done(&accounts->debts);
}

static int64_t debt_now(const struct rv_scheduler *s, uint64_t packed)
{
    int64_t debt = (int64_t)(packed & ((UINT64_C(1) << DEBT_BITS) - 1));
    int64_t gone = s->batch.mono_now - (int64_t)(packed >> DEBT_BITS);
    if (gone <= 0)
        return debt;
    return gone < DEBT_MAX / DEBT_PAID_PER_MS && debt > gone * DEBT_PAID_PER_MS
               ? debt - gone * DEBT_PAID_PER_MS
               : 0;
}

int64_t account_debt(const struct rv_scheduler *s, enum account_kind kind, int64_t id)
{
    const uint64_t *found = rv_map_find(&s->accounts.debts, (uint64_t)id, (uint64_t)kind);
    return found != NULL ? debt_now(s, *found) : 0;
}

/* Removes what is paid off; what moves into its place is looked at next. */
static void debts_sweep(struct rv_scheduler *s)
{
    struct rv_map *debts = &s->accounts.debts;
    for (size_t i = 0; i < debts->room;) {
        const struct rv_map_slot *slot = &debts->slots[i];
        if (slot->used && debt_now(s, slot->value) == 0)
            rv_map_remove(debts, slot->a, slot->b);
        else
            i++;
    }
    s->accounts.sweep_at = 2 * debts->count + DEBTS_SWEEP;
}

/* Without memory for it the debt is not known: the next use of fuel brings it back. */
static void debt_add(struct rv_scheduler *s, enum account_kind kind, int64_t id, int64_t used)
{
    struct accounts *accounts = &s->accounts;
    int64_t debt = account_debt(s, kind, id) + used;
    debt = debt < DEBT_MAX ? debt : DEBT_MAX;
    rv_assert(debt >= 0);
    uint64_t mono = s->batch.mono_now > 0 ? (uint64_t)s->batch.mono_now : 0;
    enum rv_err err = rv_map_put(&accounts->debts, (uint64_t)id, (uint64_t)kind,
                                 mono << DEBT_BITS | (uint64_t)debt);
    if (err == RV_OK && accounts->debts.count >= accounts->sweep_at)
        debts_sweep(s);
}

static void charge(struct rv_scheduler *s, int64_t workflow, struct rv_task_id task, int64_t used)
{
    rv_assert(used >= 0);
    s->accounts.credit -= used;
    debt_add(s, ACCOUNT_WORKFLOW, workflow, used);
    debt_add(s, ACCOUNT_TASK, task.value, used);
}

void accounts_charge(struct rv_scheduler *s, int64_t workflow, struct rv_task_id task, int64_t used)
{
    s->counts.fuel_beside += (uint64_t)used;
    charge(s, workflow, task, used);
}

void accounts_decided(struct rv_scheduler *s, int64_t workflow, struct rv_task_id task,
                      int64_t used)
{
    s->counts.fuel_in_batches += (uint64_t)used;
    if (used > FREE_FUEL)
        charge(s, workflow, task, used - FREE_FUEL);
}

void accounts_took(struct rv_scheduler *s, int64_t used, int64_t us)
{
    s->counts.long_decisions_us += us > 0 ? (uint64_t)us : 0;
    rv_assert(used >= 0);
    int64_t took = us < INT64_MAX / FUEL_PER_MS ? us * (FUEL_PER_MS / US_PER_MS) : INT64_MAX;
    if (took > used)
        s->accounts.credit -= took < CLOCK_WEIGHT * used ? took - used : (CLOCK_WEIGHT - 1) * used;
}

bool account_in_debt(const struct rv_scheduler *s, int64_t workflow)
{
    return account_debt(s, ACCOUNT_WORKFLOW, workflow) >= DEBT_WAITS;
}

bool accounts_idle(const struct rv_scheduler *s)
{
    return s->accounts.light < LIGHT_FUEL / 2;
}

/* What the credit grows by in a millisecond. */
static int64_t share(const struct rv_scheduler *s)
{
    int64_t left = FUEL_PER_MS - s->accounts.light / LIGHT_WINDOW_MS * LIGHT_WEIGHT;
    return left > SHARE_PER_MS ? left : SHARE_PER_MS;
}

void accounts_turn(struct rv_scheduler *s, size_t light, int64_t us)
{
    struct accounts *accounts = &s->accounts;
    int64_t gone = s->batch.mono_now - accounts->mono;
    int64_t used = (int64_t)light * LIGHT_FUEL;
    int64_t took = us < US_PER_MS * LIGHT_WINDOW_MS ? us : US_PER_MS * LIGHT_WINDOW_MS;
    took *= FUEL_PER_MS / US_PER_MS;
    accounts->mono = s->batch.mono_now;
    rv_assert(accounts->light >= 0);
    gone = gone < 0 ? 0 : gone < LIGHT_WINDOW_MS ? gone : LIGHT_WINDOW_MS;
    accounts->credit += gone * share(s);
    accounts->light -= accounts->light * gone / LIGHT_WINDOW_MS;
    if (light > 0)
        accounts->light += used > took ? used : took;
    if (accounts->credit > FUEL_PER_MS || accounts_idle(s))
        accounts->credit = FUEL_PER_MS;
}

int64_t accounts_wait_ms(const struct rv_scheduler *s, int64_t mono_now)
{
    int64_t lacks = accounts_idle(s) ? 0 : CREDIT_MIN - s->accounts.credit;
    int64_t gone = mono_now - s->accounts.mono;
    int64_t wait = lacks > 0 ? (lacks + share(s) - 1) / share(s) - gone : 0;
    return wait > 0 ? wait : 0;
}

int64_t accounts_turn_fuel(const struct rv_scheduler *s)
{
    int64_t turn = s->options.turn_fuel != 0 ? s->options.turn_fuel : FUEL_PER_MS;
    if (s->accounts.credit < CREDIT_MIN)
        return 0;
    rv_assert(s->accounts.credit <= FUEL_PER_MS);
    return turn < s->accounts.credit ? turn : s->accounts.credit;
}

int64_t accounts_allowance(const struct rv_scheduler *s, int64_t workflow)
{
    int64_t credit = s->accounts.credit > 0 && !account_in_debt(s, workflow) ? s->accounts.credit
                                                                             : 0;
    int64_t fuel = FREE_FUEL + credit < ALLOWANCE_FUEL ? FREE_FUEL + credit : ALLOWANCE_FUEL;
    int64_t turn = s->options.turn_fuel;
    return turn != 0 && turn < fuel ? turn : fuel;
}

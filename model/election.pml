/* election.pml - the supervisor's role: a lease row with an epoch, and leaders that pause.
 *
 * Candidates on one store. A batch begins with the store's clock, campaigns when it is time, takes
 * what is due and commits; a candidate may pause between any two of these for as long as it likes,
 * crash, or have its batch rolled back. What is asked: no write of a deposed one commits, an epoch
 * belongs to one candidate, and in the end what was due is done.
 *
 * A commit looks at its guards and writes in one go (store.h, commit): a store with several writers
 * must lock the role's row for that. A claim holds that row until its transaction ends. */

#ifndef CANDIDATES
#define CANDIDATES 3
#endif
#ifndef FAULTS
#define FAULTS 2 /* batches rolled back, candidates crashed */
#endif
#ifndef CLOCK_MAX
#define CLOCK_MAX 7
#endif
#define LEASE 3
#define TASKS 2
#define NOBODY 255

byte clock;
byte faults = FAULTS;

/* The store: the role's row, who has it locked, and for each task whether its expiry was decided. */
byte role_holder = NOBODY;
byte role_epoch;
byte role_until;
byte role_lock = NOBODY;
bit decided[TASKS];

/* What each candidate remembers (struct rv_supervisor). */
byte epoch[CANDIDATES]; /* 0: another instance is the supervisor */
byte until[CANDIDATES];

/* Witnesses. */
byte newest_epoch;
byte owner[CLOCK_MAX + 2] = NOBODY;

byte i;

/* Renewed in the last part of its lease; another's is asked for when it ends. */
#define CAMPAIGN_AT(c) (clock + (epoch[c] != 0) >= until[c])
#ifdef WITHOUT_LEASE
#define FREE(c) 1
#else
#define FREE(c) (role_holder == NOBODY || role_holder == c || clock >= role_until)
#endif
#ifdef WITHOUT_ROLE_LOCK
#define UNLOCKED 1
#else
#define UNLOCKED (role_lock == NOBODY)
#endif
#ifdef WITHOUT_ROLE
#define IS_SUPERVISOR(c) 1
#else
#define IS_SUPERVISOR(c) (epoch[c] != 0)
#endif
#ifdef WITHOUT_NEXT_EPOCH
#define NEW_HOLDER(c) (role_holder == NOBODY)
#else
#define NEW_HOLDER(c) (role_holder != c)
#endif
#define DUE (!decided[0] || !decided[1])

/* rv_supervisor_campaign with the store's claim_role: inside the transaction. */
inline campaign(c)
{
    if
    :: FREE(c) ->
        role_lock = c;
        claims = 1;
        if
        :: NEW_HOLDER(c) -> epoch[c] = role_epoch + 1;
        :: else -> epoch[c] = role_epoch;
        fi;
        until[c] = clock + LEASE;
    :: else ->
        epoch[c] = 0;
        until[c] = role_until;
    fi
}

/* What rv_supervisor_due names is remembered with the epoch (scheduler.c, decide_due). */
inline due(c)
{
    if
    :: IS_SUPERVISOR(c) && !decided[0] -> finding = 1;
    :: IS_SUPERVISOR(c) && decided[0] && !decided[1] -> finding = 2;
    :: else -> skip;
    fi
}

inline role_write(c)
{
    /* an epoch begins once, and for one candidate; epochs grow */
    assert(owner[epoch[c]] == NOBODY || owner[epoch[c]] == c);
    assert(epoch[c] > newest_epoch || (epoch[c] == newest_epoch && owner[epoch[c]] == c));
    owner[epoch[c]] = c;
    newest_epoch = epoch[c];
    role_holder = c;
    role_epoch = epoch[c];
    role_until = until[c];
    /* nobody else believes that its lease still runs */
    for (i : 0 .. CANDIDATES - 1) {
        assert(i == c || epoch[i] == 0 || clock >= until[i]);
    }
    i = 0;
}

/* guard_epoch: 0 is a change that needs no role. */
#ifdef WITHOUT_EPOCH
#define EPOCH_FITS(c) 1
#else
#define EPOCH_FITS(c) (epoch[c] == 0 || epoch[c] == role_epoch)
#endif

inline commit(c)
{
    if
    :: claims -> role_write(c);
    :: else -> skip;
    fi;
    if
    :: finding != 0 && EPOCH_FITS(c) && !decided[finding - 1] ->
        /* no write of a deposed one, and none after the next epoch began */
        assert(role_holder == c);
        assert(epoch[c] == newest_epoch);
        decided[finding - 1] = 1;
    :: else -> skip; /* DEPOSED, or somebody else has moved the task */
    fi;
    batch_over(c);
}

inline batch_over(c)
{
    if
    :: role_lock == c -> role_lock = NOBODY;
    :: else -> skip;
    fi;
    running = 0;
    claims = 0;
    finding = 0;
}

/* A role whose claim was not committed is not held. */
inline rollback(c)
{
#ifndef WITHOUT_FORGETTING
    if
    :: claims ->
        epoch[c] = 0;
        until[c] = 0;
    :: else -> skip;
    fi;
#endif
    batch_over(c);
}

inline batch_begin(c)
{
    running = 1;
    campaign(c);
    if
    :: !claims -> knocked = clock;
    :: else -> knocked = NOBODY;
    fi
}

#define me _pid
/* One that was refused asks again when the clock has moved. */
#define MAY_CAMPAIGN (!running && CAMPAIGN_AT(me) && knocked != clock && UNLOCKED)

active [CANDIDATES] proctype candidate()
{
    bit running, claims;
    byte finding;
    byte knocked = NOBODY;
end:
    do
    :: d_step { MAY_CAMPAIGN -> batch_begin(me); due(me); }
    :: d_step { MAY_CAMPAIGN -> batch_begin(me); } /* its heap does not know of the tasks yet */
    :: d_step {
        !running && !CAMPAIGN_AT(me) && IS_SUPERVISOR(me) && DUE ->
        running = 1;
        due(me);
    }
    :: d_step { running -> commit(me); }
    :: d_step { running && faults != 0 -> faults--; rollback(me); }
    :: d_step { /* a crash, and a start without any memory */
        running && faults != 0 ->
        faults--;
        batch_over(me);
        epoch[me] = 0;
        until[me] = 0;
        knocked = NOBODY;
    }
    od
}

active proctype time()
{
end:
    do
    :: d_step { clock < CLOCK_MAX -> clock++; }
    od
}

/* When nothing moves any more there is a supervisor, and what was due is decided. */
active proctype owner_of_tasks()
{
    timeout;
    assert(role_holder != NOBODY);
    assert(!DUE);
}

/* step.pml - the step protocol: late replies, expiry, revocation and undo of one task.
 *
 * One task of two steps (0, 1) with a compensation each (2, 3), two agents, two instances of the
 * server on one store. Decisions carry the names that they have in src/core; `store` is what is
 * committed, `view` what the slow instance has loaded, `draft` a plan under construction.
 *
 * What is made small, and why nothing is lost by it:
 * - One instance loads, decides and commits in one go; the other pauses in between for as long as
 *   it likes. Commits meet each other only by the revision, so more slow instances add nothing.
 * - The revision is kept as `stale`: somebody has committed since the load.
 * - A token is the number of its attempt. Time is `passed`: the complete-by of all attempts up to
 *   that number lies behind; a later attempt of a step has a later complete-by.
 * - Faults have budgets, so every run ends: a run that goes round in a circle is an error too. */

#ifndef FAULTS
/* Of any kind: a message lost or copied, an agent crashed or paused, an answer taken for lost. */
#define FAULTS 1
#endif
#ifndef THRESHOLD
#define THRESHOLD(n) (1 + (n) % 2) /* failures until a step raises: 1 and 3 get a second attempt */
#endif

/* What a decision works with is not part of the state between decisions. A breadth-first search,
 * for the shortest counterexample, wants it there. */
#ifdef SHORTEST
#define SCRATCH
#else
#define SCRATCH hidden
#endif

#define FORWARD_STEPS 2
#define STEPS 4
#define AGENTS 2
#define FORWARD(s) ((s) < FORWARD_STEPS)
#define UNDO_OF(s) ((s) + FORWARD_STEPS)
#define RESOURCE(s) ((s) % FORWARD_STEPS) /* the remote resource that the step works on */

/* States of the task (tbl/task_state.def; PARKED is `error`), of its steps, of their newest
 * attempts; effects. */
#define TASK_PROCESSING 0
#define TASK_COMPENSATING 1
#define TASK_PARKED 2
#define TASK_PROCESSED 3
#define TASK_COMPENSATED 4

#define STEP_ABSENT 0
#define STEP_PENDING 1
#define STEP_PROCESSING 2
#define STEP_PROCESSED 3
#define STEP_ERROR 4
#define STEP_CANCELLED 5

#define ATTEMPT_NONE 0
#define ATTEMPT_OPEN 1
#define ATTEMPT_REVOKED 2
#define ATTEMPT_DONE 3
#define ATTEMPT_FAILED 4
#define ATTEMPT_EXPIRED 5
#define ATTEMPT_UNDELIVERED 6
#define LIVE(row) (row.attempt_state == ATTEMPT_OPEN || row.attempt_state == ATTEMPT_REVOKED)

#define EFFECT_NONE 0
#define EFFECT_UNKNOWN 1
#define EFFECT_DONE 2

#define NOTHING 0
#define ASSIGN 1
#define REPLY 2
#define WAKE 3
#define UNDO 4

#define REPLY_DONE 0
#define REPLY_TRANSIENT 1 /* effect none */
#define REPLY_UNKNOWN 2   /* transient, effect unknown */

typedef step_row {
    unsigned state : 3;
    unsigned attempt_state : 3;
    unsigned attempt : 2;
    unsigned effect : 2;
    unsigned failure_count : 2
};

typedef task_rows {
    unsigned state : 3;
    bit undoing;              /* direction */
    unsigned open : 3;        /* 1 + the step where control stands, or 0 */
    unsigned fence : 4;
    unsigned unheard : 2;     /* newest attempt of step 0 that ended so, for quiet_at */
    unsigned chain_count : 2; /* what must be undone, the newest last */
    byte chain[FORWARD_STEPS];
    step_row step[STEPS]
};

typedef command {
    unsigned kind : 3;
    unsigned step : 2;
    unsigned token : 3;
    unsigned reply : 2;
    unsigned agent : 1;
    bit in_time /* arrived before complete-by, stamped on receipt */
};

task_rows store;
SCRATCH task_rows draft;
#ifdef WITHOUT_REVISION
SCRATCH task_rows nothing;
task_rows view; /* else it is the store itself, as long as nobody has committed */
#endif
SCRATCH byte changed;
SCRATCH byte counted; /* 1 + the step whose result the decision records, or 0 */
command held;       /* in the slow instance's hands */
command asked; /* under decision */
bit stale;

byte passed[STEPS];
bit polled[AGENTS]; /* a poll of this agent waits in the server */
chan requests[AGENTS] = [1] of { byte, byte, byte }; /* step, token, fence */
chan replies[AGENTS] = [1] of { byte, byte, byte };  /* step, token, reply */

byte faults = FAULTS;
bit undos; /* the operator's */

/* What nobody in the system sees: the remote resources and the witnesses of the assertions. */
byte resource_fence[FORWARD_STEPS];
bit stands[FORWARD_STEPS]; /* the forward effect is there */
byte results[STEPS];
byte issued[STEPS]; /* newest token ever */
bit undo_handed_out;

SCRATCH byte i;

inline copy_rows(into, from)
{
    into.state = from.state;
    into.undoing = from.undoing;
    into.open = from.open;
    into.fence = from.fence;
    into.unheard = from.unheard;
    into.chain_count = from.chain_count;
    into.chain[0] = from.chain[0];
    into.chain[1] = from.chain[1];
    for (i : 0 .. STEPS - 1) {
        into.step[i].state = from.step[i].state;
        into.step[i].attempt_state = from.step[i].attempt_state;
        into.step[i].attempt = from.step[i].attempt;
        into.step[i].effect = from.step[i].effect;
        into.step[i].failure_count = from.step[i].failure_count;
    }
    i = 0;
}

inline copy_command(into, from)
{
    into.kind = from.kind;
    into.step = from.step;
    into.token = from.token;
    into.reply = from.reply;
    into.agent = from.agent;
    into.in_time = from.in_time;
}

inline command_is(what, n, number, said, whom)
{
    asked.kind = what;
    asked.step = n;
    asked.token = number;
    asked.reply = said;
    asked.agent = whom;
    asked.in_time = (what == REPLY && passed[n] < number);
}

/* ---- core: undo.c ---- */

inline undo_chain(n)
{
    draft.chain[draft.chain_count] = n;
    draft.chain_count++;
}

inline advance_call(n)
{
    draft.step[n].state = STEP_PENDING;
    draft.open = n + 1;
}

#ifdef WITHOUT_WAIT
#define SETTLED 1
#else
#define SETTLED (draft.open == 0)
#endif
#ifdef WITHOUT_QUIET
#define QUIET(rows) 1
#else
#define QUIET(rows) (passed[0] >= rows.unheard)
#endif

inline undo_next()
{
    if
    :: draft.state == TASK_COMPENSATING && SETTLED ->
        if
        :: draft.chain_count == 0 && draft.open == 0 ->
            draft.state = TASK_COMPENSATED;
        :: draft.chain_count != 0 && QUIET(draft) ->
            draft.chain_count--;
#ifdef WITHOUT_REVERSE_ORDER
            i = draft.chain[0];
            draft.chain[0] = draft.chain[1];
#else
            i = draft.chain[draft.chain_count];
#endif
            draft.chain[draft.chain_count] = 0;
            advance_call(UNDO_OF(i));
        :: else -> skip;
        fi
    :: else -> skip;
    fi
}

inline step_leave(n)
{
    draft.step[n].failure_count = 0;
    draft.step[n].state = STEP_CANCELLED;
    draft.open = 0;
    if
    :: FORWARD(n) && draft.step[n].effect != EFFECT_NONE -> undo_chain(n);
    :: else -> skip;
    fi
}

inline step_revoke(n)
{
    if
#ifdef WITHOUT_REVOCATION
    :: draft.step[n].attempt_state == ATTEMPT_OPEN ->
        draft.step[n].attempt_state = ATTEMPT_EXPIRED;
        draft.step[n].effect = EFFECT_UNKNOWN;
        step_leave(n);
#else
    :: draft.step[n].attempt_state == ATTEMPT_OPEN ->
        draft.step[n].attempt_state = ATTEMPT_REVOKED;
#endif
    :: else -> step_leave(n);
    fi
}

inline undo_begin()
{
    draft.undoing = 1;
    draft.state = TASK_COMPENSATING;
    if
    :: draft.open != 0 ->
        i = draft.open - 1;
        step_revoke(i);
    :: else -> skip;
    fi;
    undo_next();
}

inline undo_settle(n, least)
{
    if
    :: draft.step[n].effect < least -> draft.step[n].effect = least;
    :: else -> skip;
    fi;
    step_leave(n);
    undo_next();
}

/* ---- core: ladder.c, fail.c ---- */

inline fail_task(n)
{
    if
    :: !draft.undoing ->
        if
        :: draft.step[n].effect != EFFECT_NONE -> undo_chain(n);
        :: else -> skip;
        fi;
        undo_begin();
    :: else ->
        draft.open = n + 1;
        draft.state = TASK_PARKED;
    fi
}

inline ladder_raise(n)
{
    draft.step[n].failure_count = 0;
    draft.step[n].state = STEP_ERROR;
    draft.open = 0;
    fail_task(n);
}

inline ladder_fail(n)
{
    draft.step[n].failure_count++;
    if
    :: draft.step[n].failure_count < THRESHOLD(n) -> draft.step[n].state = STEP_PENDING;
    :: else -> ladder_raise(n);
    fi
}

/* ---- core: attempt.c ---- */

inline attempt_assign(n)
{
    draft.step[n].attempt++;
    draft.step[n].attempt_state = ATTEMPT_OPEN;
    draft.fence++;
    draft.step[n].state = STEP_PROCESSING;
    changed = 1;
}

inline reply_done(n)
{
    draft.step[n].attempt_state = ATTEMPT_DONE;
    draft.step[n].effect = EFFECT_DONE;
    draft.step[n].failure_count = 0;
    draft.step[n].state = STEP_PROCESSED;
    draft.open = 0;
    counted = n + 1;
    if
    :: FORWARD(n) -> undo_chain(n);
    :: else -> skip;
    fi;
    if
    :: n == 0 -> advance_call(1);
    :: n == 1 -> draft.state = TASK_PROCESSED;
    :: !FORWARD(n) -> undo_next();
    fi
}

inline reply_failed(n)
{
    draft.step[n].attempt_state = ATTEMPT_FAILED;
    if
    :: FORWARD(n) && asked.reply == REPLY_UNKNOWN && draft.step[n].effect == EFFECT_NONE ->
        draft.step[n].effect = EFFECT_UNKNOWN;
    :: else -> skip;
    fi;
    ladder_fail(n);
}

inline reply_revoked(n)
{
    if
    :: asked.reply == REPLY_DONE ->
        draft.step[n].attempt_state = ATTEMPT_DONE;
        undo_settle(n, EFFECT_DONE);
    :: asked.reply == REPLY_UNKNOWN ->
        draft.step[n].attempt_state = ATTEMPT_FAILED;
        undo_settle(n, EFFECT_UNKNOWN);
    :: else ->
        draft.step[n].attempt_state = ATTEMPT_FAILED;
        undo_settle(n, EFFECT_NONE);
    fi
}

/* A late `done` that the rows did not know of (late_effect): it supplies the output, and chains a
 * step that the undo has left without an effect. */
inline late_effect(n)
{
    if
    :: FORWARD(n) && asked.reply == REPLY_DONE && draft.step[n].state != STEP_PROCESSED &&
       draft.step[n].effect != EFFECT_DONE ->
        if
        :: draft.undoing && draft.open != n + 1 &&
           draft.step[n].effect == EFFECT_NONE && draft.state < TASK_PROCESSED &&
           (draft.step[n].state == STEP_ERROR || draft.step[n].state == STEP_CANCELLED) ->
            undo_chain(n);
        :: else -> skip;
        fi;
        draft.step[n].effect = EFFECT_DONE;
        changed = 1;
    :: else -> skip;
    fi
}

#ifdef WITHOUT_TOKEN
#define NEWEST(s) (draft.step[s].attempt != 0)
#else
#define NEWEST(s) (draft.step[s].attempt == asked.token)
#endif
#ifdef WITHOUT_COMPLETE_BY
#define IN_TIME 1
#else
#define IN_TIME asked.in_time
#endif
#ifdef WITHOUT_REVOKED
#define COUNTS(s) (LIVE(draft.step[s]))
#elif defined(WITHOUT_ONE_RESULT)
#define COUNTS(s) \
    (draft.step[s].attempt_state == ATTEMPT_OPEN || draft.step[s].attempt_state == ATTEMPT_DONE)
#else
#define COUNTS(s) (draft.step[s].attempt_state == ATTEMPT_OPEN)
#endif

#define RECORDED(n) \
    (asked.reply == REPLY_DONE && draft.step[n].state == STEP_PROCESSED || \
     asked.reply != REPLY_DONE && draft.step[n].attempt_state == ATTEMPT_FAILED)

inline attempt_reply(n)
{
    if
    :: NEWEST(n) && COUNTS(n) && IN_TIME ->
        changed = 1;
        if
        :: asked.reply == REPLY_DONE -> reply_done(n);
        :: else -> reply_failed(n);
        fi
    :: else ->
        if
        :: NEWEST(n) && draft.step[n].attempt_state == ATTEMPT_REVOKED && IN_TIME ->
            changed = 1;
            reply_revoked(n);
        :: NEWEST(n) && !LIVE(draft.step[n]) && RECORDED(n) ->
            skip; /* the same reply once more: it was recorded (reply_recorded) */
        :: else -> late_effect(n);
        fi
    fi
}

inline attempt_expire(n)
{
    changed = 1;
#ifndef WITHOUT_UNKNOWN
    if
    :: FORWARD(n) && draft.step[n].effect == EFFECT_NONE ->
        draft.step[n].effect = EFFECT_UNKNOWN;
    :: else -> skip;
    fi;
#endif
    if
    :: draft.step[n].attempt_state == ATTEMPT_REVOKED ->
        draft.step[n].attempt_state = ATTEMPT_EXPIRED;
        undo_settle(n, draft.step[n].effect);
    :: else ->
        draft.step[n].attempt_state = ATTEMPT_EXPIRED;
        ladder_fail(n);
    fi
}

/* ---- core: decide.c, operate.c ---- */

#define DUE(rows, s) (LIVE(rows.step[s]) && passed[s] >= rows.step[s].attempt)
/* The undo waited for what had ended unheard, and need not any more. */
#define UNDO_DUE(rows) \
    (rows.state == TASK_COMPENSATING && rows.open == 0 && rows.chain_count != 0 && QUIET(rows))

inline decide()
{
    changed = 0;
    counted = 0;
    if
    :: asked.kind == ASSIGN ->
        if
        :: draft.open == asked.step + 1 && draft.step[asked.step].state == STEP_PENDING &&
           draft.state < TASK_PARKED ->
            attempt_assign(asked.step);
        :: else -> skip; /* polls_match finds nothing */
        fi
    :: asked.kind == REPLY -> attempt_reply(asked.step);
    :: asked.kind == WAKE ->
        if
        :: draft.state < TASK_PARKED && draft.open == asked.step + 1 && DUE(draft, asked.step) ->
            attempt_expire(asked.step);
        :: UNDO_DUE(draft) ->
            changed = 1;
            undo_next();
        :: else -> skip;
        fi
    :: asked.kind == UNDO ->
        if
        :: !draft.undoing ->
            changed = 1;
            undo_begin();
        :: else -> skip;
        fi
    fi
}

/* ---- what must hold in each commit: `store` before, `draft` after ---- */

inline check_step(n)
{
    /* one result per step, never removed, by the newest open attempt, arrived in time */
    if
    :: counted == n + 1 ->
        assert(results[n] == 0);
        assert(asked.kind == REPLY && asked.step == n && asked.token == store.step[n].attempt);
        assert(store.step[n].attempt_state == ATTEMPT_OPEN);
        assert(asked.in_time);
        results[n]++;
    :: else -> skip;
    fi;
    assert(results[n] == 0 || draft.step[n].state == STEP_PROCESSED);
    /* a new attempt only when none is live, and no token twice */
    if
    :: draft.step[n].attempt != store.step[n].attempt ->
        assert(!LIVE(store.step[n]));
        assert(draft.step[n].attempt > issued[n]);
        issued[n] = draft.step[n].attempt;
    :: else -> skip;
    fi;
    if
    :: FORWARD(n) ->
        /* after the undo began no forward step opens and none is completed */
        assert(!store.undoing || draft.undoing);
        assert(!store.undoing || store.step[n].attempt_state == ATTEMPT_OPEN ||
               draft.step[n].attempt_state != ATTEMPT_OPEN);
        assert(!store.undoing || counted != n + 1);
    :: else ->
        if
        :: draft.step[n].attempt != store.step[n].attempt ->
            /* a compensation is handed out for what may have been, and beside no live attempt */
            assert(draft.step[n - FORWARD_STEPS].effect != EFFECT_NONE);
            assert(!LIVE(draft.step[0]) && !LIVE(draft.step[1]));
            /* in reverse order */
            assert(n == UNDO_OF(1) || draft.step[1].effect == EFFECT_NONE ||
                   draft.step[UNDO_OF(1)].state == STEP_PROCESSED);
            undo_handed_out = 1;
        :: else -> skip;
        fi
    fi
}

inline check_commit()
{
    check_step(0);
    check_step(1);
    check_step(2);
    check_step(3);
    /* an end is an end, but for the undo of what was processed */
    assert(store.state != TASK_COMPENSATED || draft.state == TASK_COMPENSATED);
    assert(store.state != TASK_PROCESSED || draft.state == TASK_PROCESSED || draft.undoing);
    /* compensated: nothing that may have had an effect is left */
    if
    :: draft.state == TASK_COMPENSATED && store.state != TASK_COMPENSATED ->
        assert(!stands[0] && !stands[1]);
        assert(draft.step[0].effect == EFFECT_NONE || results[UNDO_OF(0)] == 1);
        assert(draft.step[1].effect == EFFECT_NONE || results[UNDO_OF(1)] == 1);
    :: else -> skip;
    fi
}

/* ---- the scheduler: commit and act ---- */

inline request_send()
{
    requests[asked.agent]!asked.step, draft.step[asked.step].attempt, draft.fence;
}

inline act()
{
    if
    :: asked.kind == ASSIGN && changed -> request_send();
    :: asked.kind == ASSIGN && !changed -> polled[asked.agent] = 1;
    :: else -> skip;
    fi
}

/* When an attempt was answered, nobody is at work on it whose time could pass. */
inline time_forget()
{
    for (i : 0 .. STEPS - 1) {
        if
        :: (store.step[i].attempt_state == ATTEMPT_DONE ||
            store.step[i].attempt_state == ATTEMPT_FAILED) && (i != 0 || QUIET(store)) ->
            passed[i] = store.step[i].attempt;
        :: else -> skip;
        fi
    }
}

inline commit()
{
    if
    :: changed ->
        check_commit();
        copy_rows(store, draft);
        time_forget();
    :: else -> skip;
    fi
}

#define POLL_MEETS_STEP(a) \
    (polled[a] && store.open != 0 && store.state < TASK_PARKED && \
     store.step[store.open - 1].state == STEP_PENDING)
/* Two agents about whom there is nothing to tell are one. */
#define FRESH(a) (polled[a] && len(requests[a]) == 0 && len(replies[a]) == 0)
#define EXPIRY (store.open != 0 && store.state < TASK_PARKED && DUE(store, store.open - 1))

inline take_reply(whom)
{
    d_step {
        replies[whom]?asked.step, asked.token, asked.reply;
        command_is(REPLY, asked.step, asked.token, asked.reply, 0);
    }
}

inline take_copy(whom) /* the original comes later */
{
    d_step {
        faults--;
        replies[whom]?<asked.step, asked.token, asked.reply>;
        command_is(REPLY, asked.step, asked.token, asked.reply, 0);
    }
}

/* A command that waits: a poll and a pending step, a reply, an expiry, the operator's undo. */
inline take_command(free)
{
    if
    :: free && POLL_MEETS_STEP(0) ->
        d_step { polled[0] = 0; command_is(ASSIGN, store.open - 1, 0, 0, 0); }
    :: free && POLL_MEETS_STEP(1) && !(FRESH(0) && FRESH(1)) ->
        d_step { polled[1] = 0; command_is(ASSIGN, store.open - 1, 0, 0, 1); }
    :: free && nempty(replies[0]) -> take_reply(0);
    :: free && nempty(replies[0]) && faults != 0 -> take_copy(0);
    :: free && nempty(replies[1]) -> take_reply(1);
    :: free && nempty(replies[1]) && faults != 0 -> take_copy(1);
    :: free && EXPIRY -> d_step { command_is(WAKE, store.open - 1, 0, 0, 0); }
    :: free && UNDO_DUE(store) -> d_step { command_is(WAKE, 0, 0, 0, 0); }
    :: free && undos != 0 ->
        d_step { undos--; command_is(UNDO, 0, 0, 0, 0); }
    fi
}

#ifdef WITHOUT_REVISION
#define REVISION_FITS 1
inline view_load() { copy_rows(view, store); }
inline view_draft() { copy_rows(draft, view); }
inline view_drop() { copy_rows(view, nothing); }
#else
#define REVISION_FITS !stale
inline view_load() { skip; }
inline view_draft() { copy_rows(draft, store); }
inline view_drop() { skip; }
#endif

inline command_over()
{
    command_is(NOTHING, 0, 0, 0, 0);
    i = 0;
}

inline held_over()
{
    command_over();
    copy_command(held, asked);
    stale = 0;
    view_drop();
}

active proctype quick_instance()
{
end:
    do
    :: atomic {
        take_command(1);
        d_step {
            copy_rows(draft, store);
            decide();
            if
            :: changed && held.kind != NOTHING -> stale = 1;
            :: else -> skip;
            fi;
            commit();
            act();
            command_over();
        }
    }
    od
}

active proctype slow_instance()
{
end:
    do
    :: atomic {
        take_command(held.kind == NOTHING);
        d_step {
            copy_command(held, asked);
            view_load();
#ifdef WITHOUT_RECORD_FIRST
            copy_rows(draft, store);
            decide();
            act();
#endif
            command_over();
        }
    }
#ifndef WITHOUT_REVISION
    :: d_step {
            held.kind != NOTHING && stale -> /* guard_revision says CONFLICT: the command is carried */
            stale = 0;
        }
#endif
    :: d_step {
            held.kind != NOTHING && REVISION_FITS ->
            copy_command(asked, held);
            view_draft();
            decide();
            commit();
#ifndef WITHOUT_RECORD_FIRST
            act();
#endif
            held_over();
        }
    od
}

/* ---- the world ---- */

/* A remote resource takes nothing from older writers than it has seen. */
inline take_effect(n, writer)
{
    if
#ifndef WITHOUT_FENCE
    :: writer < resource_fence[RESOURCE(n)] -> skip;
#endif
    :: else ->
        resource_fence[RESOURCE(n)] = writer;
        stands[RESOURCE(n)] = FORWARD(n);
        /* what was undone stays undone */
        assert(!FORWARD(n) || store.step[UNDO_OF(RESOURCE(n))].state != STEP_PROCESSED);
    fi
}

#define me (_pid - 2)
#define LATE (passed[s] >= token)

/* What the agent does with the attempt in its hands; `sure` it is that nobody undoes beside it. */
inline work(sure)
{
    if
    :: d_step { assert(!sure || !FORWARD(s) || !undo_handed_out); take_effect(s, fence); }
        if
        :: replies[me]!s, token, REPLY_DONE;
        :: replies[me]!s, token, REPLY_UNKNOWN;
        fi
    :: replies[me]!s, token, REPLY_TRANSIENT;
    fi
}

inline poll()
{
    d_step {
        holds = 0;
        s = 0;
        token = 0;
        fence = 0;
        polled[me] = 1;
    }
}

active [AGENTS] proctype agent()
{
    byte s, token, fence;
    bit holds;
end:
    do
    :: atomic {
        !holds && nempty(requests[me]) ->
        requests[me]?s, token, fence;
        d_step {
            /* a request leaves when its attempt is recorded, not before */
            assert(store.step[s].attempt >= token);
            holds = 1;
        }
    }
    :: atomic { holds && !LATE && nfull(replies[me]) -> work(1); poll(); }
#ifdef WITHOUT_SILENCE
    :: atomic { holds && LATE && nfull(replies[me]) -> work(1); poll(); }
#else
    :: atomic { holds && LATE -> poll(); } /* silent after complete-by */
#endif
    :: atomic { holds && LATE && faults != 0 && nfull(replies[me]) -> faults--; work(0); poll(); }
    :: atomic {
        holds && !LATE && faults != 0 ->
        faults--;
        if
        :: d_step { assert(!FORWARD(s) || !undo_handed_out); take_effect(s, fence); }
        :: skip;
        fi;
        poll();
    }
    od
}

inline lose(from)
{
    faults != 0 && nempty(from) ->
    from?s, token, rest;
    faults--;
    s = 0;
    token = 0;
    rest = 0;
}

active proctype network()
{
    byte s, token, rest;
end:
    do
    :: atomic { lose(requests[0]); polled[0] = 1; }
    :: atomic { lose(requests[1]); polled[1] = 1; }
    :: atomic { lose(replies[0]); }
    :: atomic { lose(replies[1]); }
    od
}

/* Only for who may be at work: a live attempt has not been answered. */
#define PASSES(n) \
    (LIVE(store.step[n]) && passed[n] < store.step[n].attempt)

active proctype time()
{
end:
    do
    :: d_step { PASSES(0) || !QUIET(store) -> passed[0]++; }
    :: d_step { PASSES(1) -> passed[1]++; }
    :: d_step { PASSES(2) -> passed[2]++; }
    :: d_step { PASSES(3) -> passed[3]++; }
    od
}

/* The answer that brought the first step is taken for lost although it has come (decision 006):
 * attempt_end, `undelivered`. The step is handed out again beside work that goes on. */
#define JUDGED_LOST \
    (store.open == 1 && store.step[0].attempt_state == ATTEMPT_OPEN && \
     empty(requests[0]) && empty(requests[1]))

active proctype judgement()
{
end:
    do
    :: d_step {
            faults != 0 && JUDGED_LOST ->
            faults--;
            store.step[0].attempt_state = ATTEMPT_UNDELIVERED;
            store.unheard = store.step[0].attempt;
            store.step[0].effect = EFFECT_UNKNOWN;
            store.step[0].state = STEP_PENDING;
            stale = (held.kind != NOTHING);
        }
    od
}

/* When nothing moves any more the task has ended, or an operator has been called. */
active proctype owner()
{
    timeout;
    assert(store.state >= TASK_PARKED);
}

init
{
    d_step {
        store.step[0].state = STEP_PENDING;
        store.open = 1;
        polled[0] = 1;
        polled[1] = 1;
    }
    if
    :: undos = 1;
    :: skip;
    fi
}

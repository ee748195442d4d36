/* operator.pml - operator, supervisor and reply meet on one task.
 *
 * A task of one step (0) whose failure parks it (`then: error`) and one compensation (1). The
 * operator resubmits, undoes and cancels, all at once if it comes to that; two instances take what
 * waits, in any mixture, as batches: load, decide, commit at the revision they have loaded, act.
 * The outcome of a commit may be unknown; then the store is asked.
 *
 * What is asked: one outcome; a command that was acknowledged has its effect, one that was refused
 * has none; a reply that was sent is counted or kept in the ledger, and answered so. */

#ifndef FAULTS
#define FAULTS 1 /* commits with unknown outcome, answers lost, agents that reply late */
#endif
#define INSTANCES 2
#define NOBODY 255

/* States of the task (PARKED is `error`), of its steps, of their newest attempts. */
#define TASK_PROCESSING 0
#define TASK_COMPENSATING 1
#define TASK_PARKED 2
#define TASK_PROCESSED 3
#define TASK_COMPENSATED 4
#define TASK_CANCELLED 5

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
#define LIVE(row) (row.attempt_state == ATTEMPT_OPEN || row.attempt_state == ATTEMPT_REVOKED)

/* The operator's commands. */
#define RESUBMIT 0
#define UNDO 1
#define CANCEL 2
#define COMMANDS 3
/* How far a call has come. */
#define WAITING 0
#define TAKEN 1
#define OK 2
#define REFUSED 3

/* A reply: of step s, attempt n. How far it has come: */
#define REPLIES 4
#define REPLY_OF(s, n) ((s) * 2 + (n) - 1)
#define STEP_OF(r) ((r) / 2)
#define ATTEMPT_OF(r) ((r) % 2 + 1)
#define AT_WORK 1
#define SENT 2
#define IN_BATCH 3
#define SAID_200 4
#define SAID_410 5
#define OVER 6

typedef step_row {
    unsigned state : 3;
    unsigned attempt_state : 3;
    unsigned attempt : 2;
    bit effect
};

typedef task_rows {
    unsigned state : 3;
    bit undoing;
    bit cancelling;
    unsigned open : 2; /* 1 + the step where control stands, or 0 */
    bit chained;       /* step 0 must be undone */
    step_row step[2]
};

typedef batch_of {
    byte reply;    /* or NOBODY */
    byte command;  /* or NOBODY */
    bit wake;
    bit runs;
    bit stale /* somebody has committed since the load */
};

typedef reply_of {
    unsigned at : 3;
    bit done;
    bit in_time;
    bit counted; /* it is the step's result */
    bit kept;    /* it is in the late-reply ledger */
    bit again    /* sent once more, since its answer was lost */
};

typedef command_of {
    unsigned at : 3;
    unsigned applied : 2 /* commits in which it has changed the task */
};

task_rows store;
task_rows draft, nothing;
batch_of batch[INSTANCES];
#ifdef WITHOUT_REVISION
task_rows view[INSTANCES]; /* else it is the store itself, as long as the revision fits */
#endif
reply_of reply[REPLIES];
command_of command[COMMANDS];
bit passed[2]; /* complete-by of the newest attempt lies behind */
byte faults = FAULTS;

/* A decision's answers. */
bit changed, reply_changed, command_changed;
bit answer_200, answer_ok, counts, keeps;

byte i;

inline copy_rows(into, from)
{
    into.state = from.state;
    into.undoing = from.undoing;
    into.cancelling = from.cancelling;
    into.open = from.open;
    into.chained = from.chained;
    for (i : 0 .. 1) {
        into.step[i].state = from.step[i].state;
        into.step[i].attempt_state = from.step[i].attempt_state;
        into.step[i].attempt = from.step[i].attempt;
        into.step[i].effect = from.step[i].effect;
    }
    i = 0;
}

/* ---- core: undo.c, ladder.c ---- */

inline undo_next()
{
    if
    :: draft.state == TASK_COMPENSATING && draft.open == 0 ->
        if
        :: draft.chained ->
            draft.chained = 0;
            draft.cancelling = 0;
            draft.step[1].state = STEP_PENDING;
            draft.open = 2;
        :: else -> draft.state = (draft.cancelling -> TASK_CANCELLED : TASK_COMPENSATED);
        fi
    :: else -> skip;
    fi
}

inline step_leave()
{
    draft.step[0].state = STEP_CANCELLED;
    draft.open = 0;
    draft.chained = draft.step[0].effect;
}

inline undo_begin()
{
    draft.undoing = 1;
    draft.state = TASK_COMPENSATING;
    if
    :: draft.open == 1 && draft.step[0].attempt_state == ATTEMPT_OPEN ->
        draft.step[0].attempt_state = ATTEMPT_REVOKED;
    :: draft.open == 1 && draft.step[0].attempt_state != ATTEMPT_OPEN -> step_leave();
    :: else -> skip;
    fi;
    undo_next();
}

inline undo_settle()
{
    step_leave();
    undo_next();
}

inline ladder_raise(number)
{
    draft.step[number].state = STEP_ERROR;
    draft.state = TASK_PARKED;
}

/* ---- core: attempt.c ---- */

inline reply_counts(number, which)
{
    reply_changed = 1;
    answer_200 = 1;
    counts = 1;
    if
    :: reply[which].done ->
        draft.step[number].attempt_state = ATTEMPT_DONE;
        draft.step[number].effect = 1;
        draft.step[number].state = STEP_PROCESSED;
        draft.open = 0;
        if
        :: number == 0 ->
            draft.chained = 1;
            draft.state = TASK_PROCESSED;
        :: else -> undo_next();
        fi
    :: else ->
        draft.step[number].attempt_state = ATTEMPT_FAILED;
        ladder_raise(number);
    fi
}

inline reply_late(number, which)
{
#ifndef WITHOUT_LEDGER
    reply_changed = 1;
    keeps = 1;
#endif
    if
    :: reply[which].done && draft.step[number].state != STEP_PROCESSED -> draft.step[number].effect = 1;
    :: else -> skip;
    fi
}

#define NEWEST(n, r) (draft.step[n].attempt == ATTEMPT_OF(r))

/* reply_recorded: it is what counted. */
#define RECORDED(n, r) \
    (reply[r].done && draft.step[n].state == STEP_PROCESSED || \
     !reply[r].done && draft.step[n].attempt_state == ATTEMPT_FAILED)

inline attempt_reply(number, which)
{
    if
    :: NEWEST(number, which) && draft.step[number].attempt_state == ATTEMPT_OPEN && reply[which].in_time ->
        reply_counts(number, which);
    :: NEWEST(number, which) && draft.step[number].attempt_state == ATTEMPT_REVOKED && reply[which].in_time ->
        reply_late(number, which);
        draft.step[number].attempt_state = (reply[which].done -> ATTEMPT_DONE : ATTEMPT_FAILED);
        undo_settle();
    :: NEWEST(number, which) && !LIVE(draft.step[number]) && RECORDED(number, which) ->
        answer_200 = 1; /* the same reply once more */
    :: else -> reply_late(number, which);
    fi
}

inline attempt_expire(number)
{
    draft.step[number].effect = 1;
    if
    :: draft.step[number].attempt_state == ATTEMPT_REVOKED ->
        draft.step[number].attempt_state = ATTEMPT_EXPIRED;
        undo_settle();
    :: else ->
        draft.step[number].attempt_state = ATTEMPT_EXPIRED;
        ladder_raise(number);
    fi
}

/* ---- core: operate.c ---- */

#ifdef WITHOUT_RESUBMIT_STATE
#define MAY_RESUBMIT (draft.open != 0)
#else
#define MAY_RESUBMIT (draft.state == TASK_PARKED)
#endif
#ifdef WITHOUT_END
#define ENDED 0
#else
#define ENDED (draft.state >= TASK_PROCESSED)
#endif

inline resubmit_decide()
{
    if
    :: MAY_RESUBMIT ->
        command_changed = 1;
        answer_ok = 1;
#ifdef WITHOUT_DIRECTION
        draft.undoing = 0;
#endif
        draft.state = (draft.undoing -> TASK_COMPENSATING : TASK_PROCESSING);
        draft.step[draft.open - 1].state = STEP_PENDING;
    :: else -> skip;
    fi
}

inline operate_undo()
{
    if
    :: draft.state == TASK_COMPENSATING -> answer_ok = 1; /* the same command once more */
    :: !draft.undoing ->
        command_changed = 1;
        answer_ok = 1;
        undo_begin();
    :: else -> skip;
    fi
}

inline operate_cancel()
{
    if
    :: draft.state == TASK_CANCELLED || draft.state == TASK_COMPENSATING -> answer_ok = 1;
    :: draft.state != TASK_CANCELLED && draft.state != TASK_COMPENSATING && !ENDED &&
       (!draft.undoing || draft.state != TASK_PARKED) ->
        command_changed = 1;
        answer_ok = 1;
        draft.cancelling = 1;
        undo_begin();
    :: else -> skip;
    fi
}

/* ---- the scheduler: load, decide, commit, act ---- */

#define DUE(rows) \
    (rows.open != 0 && rows.state < TASK_PARKED && LIVE(rows.step[rows.open - 1]) && \
     passed[rows.open - 1])

inline decide_reply(my)
{
    if
    :: my.reply != NOBODY -> attempt_reply(STEP_OF(my.reply), my.reply);
    :: else -> skip;
    fi
}

inline decide_wake(my)
{
    if
    :: my.wake && DUE(draft) ->
        changed = 1;
        i = draft.open - 1;
        attempt_expire(i);
        i = 0;
    :: else -> skip;
    fi
}

inline decide(my)
{
#ifdef WITHOUT_REPLIES_FIRST
    decide_wake(my);
    decide_reply(my);
#else
    decide_reply(my);
#endif
    if
    :: my.command == RESUBMIT -> resubmit_decide();
    :: my.command == UNDO -> operate_undo();
    :: my.command == CANCEL -> operate_cancel();
    :: else -> skip;
    fi;
#ifndef WITHOUT_REPLIES_FIRST
    decide_wake(my);
#endif
    changed = (changed || reply_changed || command_changed);
}

/* What must hold in each commit: `store` before, `draft` after. */
inline check_commit(my)
{
    /* an end is an end, but for the undo of what was processed; an undo is never turned round */
    assert(store.state < TASK_COMPENSATED || draft.state == store.state);
    assert(store.state != TASK_PROCESSED || draft.state == TASK_PROCESSED || draft.undoing);
    assert(!store.undoing || draft.undoing);
    /* a result counts once, in time, for the newest open attempt, and not against an undo */
    if
    :: counts ->
        assert(store.step[STEP_OF(my.reply)].attempt == ATTEMPT_OF(my.reply));
        assert(store.step[STEP_OF(my.reply)].attempt_state == ATTEMPT_OPEN);
        assert(reply[my.reply].in_time && !reply[my.reply].counted);
        assert(!store.undoing || STEP_OF(my.reply) == 1);
    :: else -> skip;
    fi;
    /* no compensation beside a live forward attempt; what may have had an effect is undone */
    assert(draft.step[1].state == STEP_ABSENT || !LIVE(draft.step[0]));
    assert(draft.state != TASK_CANCELLED || !draft.step[0].effect);
    assert(draft.state != TASK_COMPENSATED || !draft.step[0].effect ||
           draft.step[1].state == STEP_PROCESSED);
}

/* The revision is kept as `stale`: only whether it is as loaded counts. */
inline revision_up()
{
    batch[0].stale = batch[0].runs;
    batch[1].stale = batch[1].runs;
}

inline write(my)
{
    check_commit(my);
    copy_rows(store, draft);
    revision_up();
    if
    :: my.reply != NOBODY ->
        reply[my.reply].counted = (reply[my.reply].counted || counts);
        reply[my.reply].kept = (reply[my.reply].kept || keeps);
    :: else -> skip;
    fi;
    if
    :: command_changed -> command[my.command].applied++;
    :: else -> skip;
    fi
}

inline decision_over()
{
    copy_rows(draft, nothing);
    changed = 0;
    reply_changed = 0;
    command_changed = 0;
    answer_200 = 0;
    answer_ok = 0;
    counts = 0;
    keeps = 0;
}

inline batch_over(my)
{
    my.reply = NOBODY;
    my.command = NOBODY;
    my.wake = 0;
    my.runs = 0;
    my.stale = 0;
}

/* A repeated reply may be told something else than the first time: docs/models.md, LIMIT_ANSWER. */
#ifdef LIMIT_ANSWER
#define TOLD_ELSE(my) 0
#else
#define TOLD_ELSE(my) reply[my.reply].again
#endif

/* It cannot be sent again. */
inline reply_forget(which)
{
    reply[which].at = OVER;
    reply[which].done = 0;
    reply[which].in_time = 0;
    reply[which].counted = 0;
    reply[which].kept = 0;
    reply[which].again = 0;
}

inline act(my)
{
    if
    :: my.reply != NOBODY && answer_200 ->
        assert(reply[my.reply].counted || TOLD_ELSE(my) && reply[my.reply].kept);
        reply[my.reply].at = SAID_200;
    :: my.reply != NOBODY && !answer_200 ->
        assert(!reply[my.reply].counted || TOLD_ELSE(my));
        assert(reply[my.reply].kept);
        reply[my.reply].at = SAID_410;
    :: else -> skip;
    fi;
    if
    :: my.command != NOBODY && answer_ok ->
        /* acknowledged: its effect is in the store, once */
        assert(command[my.command].applied <= 1);
        assert(my.command != RESUBMIT || command[my.command].applied == 1);
        assert(my.command == RESUBMIT || store.undoing);
        command[my.command].applied = 0;
        command[my.command].at = OK;
    :: my.command != NOBODY && !answer_ok ->
        assert(command[my.command].applied == 0);
        command[my.command].at = REFUSED;
    :: else -> skip;
    fi;
    if
    :: my.reply != NOBODY && faults == 0 -> reply_forget(my.reply);
    :: my.reply != NOBODY && faults != 0 -> reply[my.reply].in_time = 0;
    :: else -> skip;
    fi;
    batch_over(my);
}

inline reload(my)
{
    my.stale = 0;
    view_load(my);
}

#ifdef WITHOUT_REVISION
#define FITS(b) 1
inline view_load(my) { copy_rows(view[_pid], store); }
inline view_draft(my) { copy_rows(draft, view[_pid]); }
#else
#define FITS(b) (!b.stale)
inline view_load(my) { skip; }
inline view_draft(my) { copy_rows(draft, store); }
#endif

/* Who answered in time is not expired in the same batch. */
#define IS_OPEN_FOR(b) \
    (b.reply != NOBODY && reply[b.reply].in_time && \
     store.step[STEP_OF(b.reply)].attempt == ATTEMPT_OF(b.reply) && \
     store.step[STEP_OF(b.reply)].attempt_state == ATTEMPT_OPEN)

#define mine batch[_pid]
#define IDLE(my) (my.reply == NOBODY && my.command == NOBODY && !my.runs)
/* May gather. Two idle instances are one; and in which order a batch was gathered is all the same,
 * so replies come first. */
#define IS_NEXT (!mine.runs && (_pid == 0 || !IDLE(mine) || !IDLE(batch[0])))

inline take_reply(which)
{
    mine.reply == NOBODY && mine.command == NOBODY && IS_NEXT && reply[which].at == SENT ->
    mine.reply = which;
    reply[which].at = IN_BATCH;
    /* stamped on receipt; the first stamp stays while the call is carried */
    reply[which].in_time = (store.step[STEP_OF(which)].attempt == ATTEMPT_OF(which) && !passed[STEP_OF(which)]);
}

inline take_command(c)
{
    mine.command == NOBODY && IS_NEXT && command[c].at == WAITING ->
    mine.command = c;
    command[c].at = TAKEN;
}


active [INSTANCES] proctype instance()
{
end_early:
    store.open != 0; /* the task is there */
end:
    do
    :: d_step { take_reply(0); }
    :: d_step { take_reply(1); }
    :: d_step { take_reply(2); }
    :: d_step { take_reply(3); }
    :: d_step { take_command(RESUBMIT); }
    :: d_step { take_command(UNDO); }
    :: d_step { take_command(CANCEL); }
    :: d_step { /* load */
        IS_NEXT && (mine.reply != NOBODY || mine.command != NOBODY || DUE(store)) ->
        mine.runs = 1;
        mine.wake = DUE(store);
        reload(mine);
    }
    :: d_step { /* decide, commit, act */
        mine.runs && FITS(mine) ->
        view_draft(mine);
        decide(mine);
        assert(!IS_OPEN_FOR(mine) || !FITS(mine) || answer_200);
        if
        :: changed -> write(mine);
        :: else -> skip;
        fi;
        act(mine);
        decision_over();
    }
#ifdef WITHOUT_CARRY
    :: d_step { /* the change did not pass, and the callers are answered as decided */
        mine.runs && !FITS(mine) ->
        copy_rows(draft, store);
        decide(mine);
        act(mine);
        decision_over();
    }
#else
    :: d_step { mine.runs && !FITS(mine) -> reload(mine); } /* CONFLICT: carried */
#endif
    :: d_step { /* COMMIT_UNKNOWN, and the batch is not in the store: decide again */
        mine.runs && FITS(mine) && faults != 0 ->
        faults--;
#ifdef WITHOUT_ASKED_NO
        copy_rows(draft, store);
        decide(mine);
        act(mine);
        decision_over();
#else
        reload(mine);
#endif
    }
#ifdef WITHOUT_ASKED_YES
    :: d_step { /* COMMIT_UNKNOWN, the batch is in the store, and it is decided again */
        mine.runs && FITS(mine) && faults != 0 ->
        faults--;
        copy_rows(draft, store);
        decide(mine);
        if
        :: changed -> write(mine);
        :: else -> skip;
        fi;
        reload(mine);
        decision_over();
    }
#endif
    od
}

/* ---- the world ---- */

#define PENDING_STEP (store.open != 0 && store.state < TASK_PARKED && \
                      store.step[store.open - 1].state == STEP_PENDING)

/* An agent polls: attempt_assign. */
active proctype polls()
{
end:
    do
    :: d_step {
        PENDING_STEP ->
        i = store.open - 1;
        assert(!LIVE(store.step[i]));
        assert(!store.undoing || i == 1);
        store.step[i].attempt++;
        assert(reply[REPLY_OF(i, store.step[i].attempt)].at == 0);
        reply[REPLY_OF(i, store.step[i].attempt)].at = AT_WORK;
        store.step[i].attempt_state = ATTEMPT_OPEN;
        store.step[i].state = STEP_PROCESSING;
        passed[i] = 0;
        i = 0;
        revision_up();
    }
    od
}

#define LATE(r) (passed[STEP_OF(r)] || store.step[STEP_OF(r)].attempt != ATTEMPT_OF(r))

inline agent_replies(which, well)
{
    reply[which].at == AT_WORK && (!LATE(which) || faults != 0) ->
    if
    :: LATE(which) -> faults--; /* it was paused */
    :: else -> skip;
    fi;
    reply[which].at = SENT;
    reply[which].done = well;
}

inline agent_repeats(which)
{
    (reply[which].at == SAID_200 || reply[which].at == SAID_410) && faults != 0 ->
    faults--; /* the answer was lost */
    reply[which].again = 1;
    reply[which].at = SENT;
}

active proctype agents()
{
end:
    do
    :: d_step { agent_replies(0, 1); }
    :: d_step { agent_replies(0, 0); }
    :: d_step { agent_replies(1, 1); }
    :: d_step { agent_replies(1, 0); }
    :: d_step { agent_replies(2, 1); }
    :: d_step { agent_replies(2, 0); }
    :: d_step { agent_replies(3, 1); }
    :: d_step { agent_replies(3, 0); }
    :: d_step { agent_repeats(0); }
    :: d_step { agent_repeats(1); }
    :: d_step { agent_repeats(2); }
    :: d_step { agent_repeats(3); }
    :: d_step { reply[0].at == AT_WORK && LATE(0) -> reply[0].at = OVER; }
    :: d_step { reply[1].at == AT_WORK && LATE(1) -> reply[1].at = OVER; }
    :: d_step { reply[2].at == AT_WORK && LATE(2) -> reply[2].at = OVER; }
    :: d_step { reply[3].at == AT_WORK && LATE(3) -> reply[3].at = OVER; }
    od
}

active proctype time()
{
end:
    do
    :: d_step { LIVE(store.step[0]) && !passed[0] -> passed[0] = 1; }
    :: d_step { LIVE(store.step[1]) && !passed[1] -> passed[1] = 1; }
    od
}

#define ANSWERED(r) (reply[r].at == 0 || reply[r].at >= SAID_200)

/* When nothing moves any more, everybody has been answered and the task has its outcome. */
active proctype owner()
{
    timeout;
    assert(store.state >= TASK_PARKED);
    assert(command[0].at >= OK && command[1].at >= OK && command[2].at >= OK);
    assert(ANSWERED(0) && ANSWERED(1) && ANSWERED(2) && ANSWERED(3));
    assert(command[UNDO].at == REFUSED || store.undoing);
    assert(command[CANCEL].at == REFUSED || store.undoing);
}

init
{
    d_step {
        batch_over(batch[0]);
        batch_over(batch[1]);
        store.step[0].state = STEP_PENDING;
        store.open = 1;
    }
}

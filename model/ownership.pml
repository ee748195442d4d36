/* ownership.pml - who owns a task: stealing, deposition and takeover among equal servers.
 *
 * Servers on one shared store, and agents that call any of them. A task is handed out once or
 * twice; each attempt ends by a reply or by its timer, and the task with the last one. What is
 * asked: no attempt is handed out twice, only its owner decides what a task's timer is due for, a
 * deposed server commits nothing, tasks are taken only from a server whose lease was over, and in
 * the end no task is left.
 *
 * What is made small, and why nothing is lost by it:
 * - A transaction loads tasks one after another, with or without their locks; inserts the batch
 *   row, whose CHECK looks at the instance row; writes task by task; commits. In between it pauses
 *   for as long as it likes. It does one thing with each task.
 * - The revision is kept as `stale`: somebody has committed the task since the load.
 * - A lease is over or not. It is over for one that has crashed, or has paused, which is a fault.
 * - An answer that is lost is an agent that does not go on: its attempt ends by the timer.
 * - A timer in memory fires when that of the row is due: before, there is nothing to decide.
 * - Hints between servers are left out: a hungry server may look at any time.
 * - A boot id is the index of its server, which remembers nothing of its earlier boots.
 * - Two idle agents are one: the first of them polls first.
 * - Faults have budgets, so every run ends: a run that goes round in a circle is an error too. */

#ifdef WITHOUT_GUARDS
#define WITHOUT_REVISION
#define UNLOCKED
#endif
#ifdef LIMIT_LOCK
#define UNLOCKED
#endif
#ifndef SERVERS
#define SERVERS 2
#endif
#ifdef WITHOUT_BUSY /* needs two rows */
#define TASKS 2
#define FAULTS 1
#endif
#ifndef TASKS
#define TASKS 1
#endif
#ifndef FAULTS
/* A crash, for a time or for ever; a pause until the lease is over; a rollback; hints lost. */
#define FAULTS 2
#endif
#ifndef STAGES
#define STAGES 2 /* hand-outs of the first task; the second one has one */
#endif
#define AGENTS 2
#define NUMBERS (SERVERS + FAULTS)
#define GHOST SERVERS /* a transaction in the store whose server has crashed */

/* What a transaction does with a task. */
#define NOTHING 0
#define HAND_OUT 1
#define REPLY 2
#define WAKE 3
#define TAKE 4

/* How far it is. */
#define LOADED 1
#define WRITING 2    /* the batch row is inserted */
#define COMMITTING 3 /* COMMIT was sent by a server that has crashed */

#define IDLE 0
#define PARKED 1
#define WORKING 2
#define REPLYING 3

typedef task_row {
    unsigned owner : 3;   /* locked_by */
    unsigned attempt : 2; /* the newest */
    bit open;             /* it is */
    bit passed;           /* its timer is due */
    unsigned lock : 3     /* 1 + the server whose transaction has locked the row; 0: none */
};

typedef instance_row {
    unsigned boot : 3; /* 1 + the server; 0: deposed, or not in use */
    bit over;          /* its lease is */
    bit locked         /* by its own transaction */
};

typedef memory {
    unsigned number : 3; /* 0: not enlisted */
    bit dead;            /* for ever */
    unsigned hints : 2;  /* its tasks with a ready step */
    unsigned timers : 2; /* its tasks with a timer */
    unsigned phase : 2;
    unsigned stale : 2;  /* tasks that were committed since they were loaded */
    unsigned second : 2; /* the call is the second agent's */
    byte kind[TASKS];
#ifdef WITHOUT_REVISION
    byte attempt[TASKS]; /* as loaded */
    byte open[TASKS];
#endif
#if defined(WITHOUT_STILL_DEPOSED) || defined(WITHOUT_EVERY_SURVIVOR) || \
    defined(WITHOUT_LAST_LOOK)
    byte noted /* numbers: of deposed servers; that it has deposed; whose tasks are all taken */
#endif
};

typedef call {
    unsigned does : 2;
    unsigned at : 2; /* the server */
    unsigned task : 1;
    unsigned attempt : 2
};

task_row task[TASKS];
instance_row instance[NUMBERS + 1];
memory server[SERVERS + 1];
call agent[AGENTS];
byte faults = FAULTS;
bit begun;

/* A witness: the newest attempt that was handed out. */
byte handed[TASKS];

byte i, it;

#define BIT(n) (1 << (n))
#define STAGES_OF(t) ((t) == 0 -> STAGES : 1)
#define READY(t) (!task[t].open && task[t].attempt < STAGES_OF(t))
#define ENDED(t) (!task[t].open && task[t].attempt == STAGES_OF(t))
#define HAS_OPEN(n, t) (task[t].owner == n && !ENDED(t))
#if TASKS == 1
#define ALL_ENDED ENDED(0)
#define OWNS_SOME(n) HAS_OPEN(n, 0)
#define HAND_OUTS(s) (server[s].kind[0] == HAND_OUT)
#else
#define ALL_ENDED (ENDED(0) && ENDED(1))
#define OWNS_SOME(n) (HAS_OPEN(n, 0) || HAS_OPEN(n, 1))
#define HAND_OUTS(s) ((server[s].kind[0] == HAND_OUT) + (server[s].kind[1] == HAND_OUT))
#endif

#define VALID(s) (server[s].number != 0 && instance[server[s].number].boot == s + 1)
#define POLLS(a, s) (agent[a].does == PARKED && agent[a].at == s)
#define POLL_IS_FREE(s) (POLLS(0, s) + POLLS(1, s) > HAND_OUTS(s))
#define CALLER(s, t) ((server[s].second & BIT(t)) != 0)
#define COUNTS(a, t) (task[t].open && agent[a].task == t && agent[a].attempt == task[t].attempt)

/* ---- a server's memory ---- */

/* What a load or a commit tells about a task: nothing is remembered of another's. */
inline note(s, t)
{
#ifdef WITHOUT_DROPPING
    if
    :: task[t].owner == server[s].number ->
#endif
    server[s].hints = server[s].hints & (3 - BIT(t));
    server[s].timers = server[s].timers & (3 - BIT(t));
#ifdef WITHOUT_DROPPING
    :: else -> skip;
    fi;
#endif
    if
    :: task[t].owner == server[s].number && READY(t) ->
        server[s].hints = server[s].hints | BIT(t);
    :: task[t].owner == server[s].number && task[t].open ->
        server[s].timers = server[s].timers | BIT(t);
    :: else -> skip;
    fi
}

inline work_drop(s, t)
{
    server[s].kind[t] = NOTHING;
    server[s].stale = server[s].stale & (3 - BIT(t));
    server[s].second = server[s].second & (3 - BIT(t));
#ifdef WITHOUT_REVISION
    server[s].attempt[t] = 0;
    server[s].open[t] = 0;
#endif
}

inline work_hand_down(s, t)
{
    server[GHOST].kind[t] = server[s].kind[t];
#ifdef WITHOUT_REVISION
    server[GHOST].attempt[t] = server[s].attempt[t];
    server[GHOST].open[t] = server[s].open[t];
#endif
}

/* Commit or rollback: its locks end with it. */
inline batch_over(s)
{
    server[s].phase = 0;
    for (i : 0 .. TASKS - 1) {
        if
        :: task[i].lock == s + 1 -> task[i].lock = 0;
        :: else -> skip;
        fi;
        work_drop(s, i);
    }
    i = 0;
}

inline forget(s)
{
    server[s].number = 0;
    server[s].hints = 0;
    server[s].timers = 0;
#if defined(WITHOUT_STILL_DEPOSED) || defined(WITHOUT_EVERY_SURVIVOR) || \
    defined(WITHOUT_LAST_LOOK)
    server[s].noted = 0;
#endif
}

/* ---- a transaction: load ---- */

#define MAY_BEGIN(s) (server[s].phase == 0 && VALID(s)) /* begin looks at the instance row */
#define MAY_LOAD(s, t) \
    (MAY_BEGIN(s) || (server[s].phase == LOADED && server[s].kind[t] == NOTHING))

inline work_add(s, what, t)
{
    server[s].phase = LOADED;
    server[s].kind[t] = what;
#ifdef WITHOUT_REVISION
    server[s].attempt[t] = task[t].attempt;
    server[s].open[t] = task[t].open;
#endif
}

/* What is handed out or taken over is locked by its load; what is locked by another is skipped. */
#ifdef UNLOCKED
#define SKIPPED(t) 0
inline row_lock(s, t) { skip; }
#else
#define SKIPPED(t) (task[t].lock != 0)
inline row_lock(s, t) { task[t].lock = s + 1; }
#endif

#ifdef WITHOUT_DROPPING
#define HINT_HELPS(s, t) (task[t].owner == server[s].number) /* or it is loaded for nothing */
#else
#define HINT_HELPS(s, t) 1
#endif

/* A poll waits, and a task is remembered as ready. */
inline hand_out(s, t)
{
    MAY_LOAD(s, t) && POLL_IS_FREE(s) && (server[s].hints & BIT(t)) && !SKIPPED(t) &&
    HINT_HELPS(s, t) ->
    note(s, t);
    if
    :: server[s].hints & BIT(t) ->
        row_lock(s, t);
        work_add(s, HAND_OUT, t);
    :: else -> skip;
    fi
}

/* A poll waits, and no task is remembered as ready: the server is hungry. */
inline steal(s, t)
{
    MAY_LOAD(s, t) && POLL_IS_FREE(s) && server[s].hints == 0 && READY(t) && !SKIPPED(t) ->
    note(s, t);
    row_lock(s, t);
    work_add(s, HAND_OUT, t);
}

#ifdef WITHOUT_OWNER
#define IS_DUE(s, t) (task[t].open && task[t].passed)
#else
#define IS_DUE(s, t) (task[t].open && task[t].passed && task[t].owner == server[s].number)
#endif

inline wake(s, t)
{
    MAY_LOAD(s, t) && (server[s].timers & BIT(t)) && task[t].passed ->
    note(s, t);
    if
    :: IS_DUE(s, t) -> work_add(s, WAKE, t);
    :: else -> skip;
    fi
}

inline reply(s, a)
{
    agent[a].does == REPLYING && agent[a].at == s && MAY_LOAD(s, agent[a].task) ->
    it = agent[a].task;
    note(s, it);
    if
    :: COUNTS(a, it) ->
        work_add(s, REPLY, it);
        server[s].second = server[s].second | (a << it);
    :: else -> agent_idle(a); /* 410 */
    fi;
    it = 0;
}

#ifdef WITHOUT_STILL_DEPOSED
#define IS_DEPOSED(s, n) (server[s].noted & BIT(n))
#else
#define IS_DEPOSED(s, n) (instance[n].boot == 0)
#endif
#ifdef WITHOUT_EVERY_SURVIVOR
#define MAY_TAKE(s, n) (server[s].noted & BIT(n))
#elif defined(WITHOUT_LAST_LOOK)
#define MAY_TAKE(s, n) (!(server[s].noted & BIT(n)))
#else
#define MAY_TAKE(s, n) 1
#endif

inline take(s, t)
{
    MAY_LOAD(s, t) && !ENDED(t) && task[t].owner != server[s].number &&
    IS_DEPOSED(s, task[t].owner) && MAY_TAKE(s, task[t].owner) && !SKIPPED(t) ->
    note(s, t);
    row_lock(s, t);
    work_add(s, TAKE, t);
}

#ifdef WITHOUT_STILL_DEPOSED
#define NOTES(s, n) (MAY_BEGIN(s) && instance[n].boot == 0 && OWNS_SOME(n))
#elif defined(WITHOUT_LAST_LOOK)
/* An empty piece: all that the number has is locked. */
#define LEFT(n, t) (HAS_OPEN(n, t) && task[t].lock == 0)
#if TASKS == 1
#define NOTES(s, n) (MAY_BEGIN(s) && instance[n].boot == 0 && OWNS_SOME(n) && !LEFT(n, 0))
#else
#define NOTES(s, n) \
    (MAY_BEGIN(s) && instance[n].boot == 0 && OWNS_SOME(n) && !LEFT(n, 0) && !LEFT(n, 1))
#endif
#endif

/* ---- write ---- */

#ifdef WITHOUT_BOOT
#define BOOT_FITS(s) 1
#else
#define BOOT_FITS(s) VALID(s)
#endif
#ifdef WITHOUT_BOOT_LOCK
#define BOOT_LOCK 0
#else
#define BOOT_LOCK 1
#endif

inline batch_row(s)
{
    server[s].phase == LOADED && BOOT_FITS(s) && !instance[server[s].number].locked ->
    server[s].phase = WRITING;
    instance[server[s].number].locked = BOOT_LOCK;
}

#ifdef WITHOUT_REVISION
#define FITS(s, t) 1
#define SEEN_ATTEMPT(s, t) server[s].attempt[t]
#define SEEN_OPEN(s, t) server[s].open[t]
#else
#define FITS(s, t) (!(server[s].stale & BIT(t)))
#define SEEN_ATTEMPT(s, t) task[t].attempt
#define SEEN_OPEN(s, t) task[t].open
#endif
#if defined(LIMIT_LOCK) || !defined(UNLOCKED)
/* What is handed out or taken over is not decided in vain. */
#define CONFLICTS(kind) (kind == REPLY || kind == WAKE)
#else
#define CONFLICTS(kind) 1
#endif

#define WRITTEN(s, t) (server[s].kind[t] == NOTHING || task[t].lock == s + 1)
#if TASKS == 1
#define ALL_WRITTEN(s) WRITTEN(s, 0)
#define IS_TURN_OF(s, t) 1
#else
#define ALL_WRITTEN(s) (WRITTEN(s, 0) && WRITTEN(s, 1))
#define IS_TURN_OF(s, t) (t == 0 || WRITTEN(s, 0)) /* in the order of the tasks */
#endif

inline row_write(s, t)
{
    if
    :: FITS(s, t) -> task[t].lock = s + 1;
    :: else -> /* CONFLICT */
        assert(CONFLICTS(server[s].kind[t]));
        work_drop(s, t);
    fi
}

inline write(s, t)
{
    server[s].phase == WRITING && server[s].kind[t] != NOTHING && task[t].lock == 0 &&
    IS_TURN_OF(s, t) ->
    row_write(s, t);
}

inline rollback(s)
{
    if
    :: server[s].phase >= WRITING -> instance[server[s].number].locked = 0;
    :: else -> skip;
    fi;
    batch_over(s);
}

#if TASKS > 1 && !defined(WITHOUT_BUSY)
#define WAITS(s, t) \
    (server[s].phase == WRITING && server[s].kind[t] != NOTHING && IS_TURN_OF(s, t) && \
     task[t].lock != 0 && task[t].lock != s + 1)

/* Two transactions that wait for each other: the store ends one of them, which is BUSY, and the
 * other has its row before anybody asks for it again. */
inline busy(s, t)
{
    WAITS(s, t) && task[t].lock != GHOST + 1 && WAITS(task[t].lock - 1, 1 - t) &&
    task[1 - t].lock == s + 1 ->
    it = task[t].lock - 1;
    rollback(s);
    row_write(it, 1 - t);
    it = 0;
}
#endif

/* ---- commit and act ---- */

inline agent_idle(a)
{
    agent[a].does = IDLE;
    agent[a].at = 0;
    agent[a].task = 0;
    agent[a].attempt = 0;
}

inline agent_gets(a, t)
{
    agent[a].does = WORKING;
    agent[a].at = 0;
    agent[a].task = t;
    agent[a].attempt = task[t].attempt;
}

inline act(s, t)
{
    if
    :: server[s].kind[t] == HAND_OUT ->
        if
        :: POLLS(0, s) -> agent_gets(0, t);
        :: else -> agent_gets(1, t);
        fi
    :: server[s].kind[t] == REPLY -> agent_idle(CALLER(s, t));
    :: else -> skip;
    fi
}

inline change(s, t)
{
    if
    :: server[s].kind[t] == HAND_OUT ->
        /* none twice, and none beside a live one */
        assert(SEEN_ATTEMPT(s, t) + 1 > handed[t]);
        assert(READY(t));
        task[t].attempt = SEEN_ATTEMPT(s, t) + 1;
        task[t].open = 1;
        handed[t] = task[t].attempt;
    :: server[s].kind[t] == REPLY ->
        assert(task[t].open && (s == GHOST || COUNTS(CALLER(s, t), t)));
        task[t].open = 0;
        task[t].passed = 0;
    :: server[s].kind[t] == WAKE ->
        assert(task[t].open && task[t].passed);
        assert(task[t].owner == server[s].number);
        task[t].open = 0;
        task[t].passed = 0;
    :: server[s].kind[t] == TAKE ->
        assert(instance[task[t].owner].boot == 0);
        task[t].attempt = SEEN_ATTEMPT(s, t);
        task[t].open = SEEN_OPEN(s, t);
    fi;
    task[t].owner = server[s].number;
    for (i : 0 .. SERVERS - 1) {
        if
        :: i != s && server[i].kind[t] != NOTHING ->
            server[i].stale = server[i].stale | BIT(t);
        :: else -> skip;
        fi
    }
    i = 0;
}

inline commit(s)
{
    /* no deposed server commits */
    assert(VALID(s) || (s == GHOST && instance[server[s].number].boot != 0));
    for (it : 0 .. TASKS - 1) {
        if
        :: server[s].kind[it] != NOTHING ->
            change(s, it);
            if
            :: s != GHOST ->
                note(s, it);
                act(s, it);
            :: else -> skip;
            fi
        :: else -> skip;
        fi
    }
    it = 0;
    instance[server[s].number].over = 0;
    rollback(s);
}

/* ---- leases ---- */

inline renew(s)
{
    MAY_BEGIN(s) && instance[server[s].number].over -> instance[server[s].number].over = 0;
}

#ifdef WITHOUT_LEASE
#define LEASE_OVER(n) 1
#else
#define LEASE_OVER(n) instance[n].over
#endif

inline depose(s, n)
{
    MAY_BEGIN(s) && n != server[s].number && instance[n].boot != 0 && LEASE_OVER(n) &&
    !instance[n].locked && !ALL_ENDED ->
    assert(instance[n].over); /* only one whose lease is over */
    instance[n].boot = 0;
    instance[n].over = 0;
#ifdef WITHOUT_EVERY_SURVIVOR
    server[s].noted = server[s].noted | BIT(n);
#endif
}

#ifdef WITHOUT_NUMBER
#define FREE(n) (instance[n].boot == 0 && !instance[n].locked)
#else
#define FREE(n) (instance[n].boot == 0 && !instance[n].locked && !OWNS_SOME(n))
#endif

inline enlist(s)
{
    i = 1;
    do
    :: i <= NUMBERS && !FREE(i) -> i++;
    :: else -> break;
    od;
    assert(i <= NUMBERS);
    server[s].number = i;
    instance[i].boot = s + 1;
    instance[i].over = 0;
    i = 0;
}

/* It has found its row another's: it goes on as one without memory. Its polls stay. */
inline resign(s)
{
    server[s].number != 0 && !VALID(s) ->
    batch_over(s);
    forget(s);
    enlist(s);
}

/* ---- faults ---- */

#if SERVERS == 2
#define OTHERS_LIVE(s) (!server[1 - s].dead)
#else
#define OTHERS_LIVE(s) (!server[(s + 1) % 3].dead && !server[(s + 2) % 3].dead)
#endif
#define MAY_FAIL (faults != 0 && !ALL_ENDED)
#define MAY_CRASH(s) \
    (MAY_FAIL && server[s].number != 0 && (server[s].phase == 0 || server[GHOST].phase == 0))

/* What the store has of its transaction, if that has locked anything. */
inline leave(s)
{
    if
    :: server[s].phase == WRITING && ALL_WRITTEN(s) ->
        server[GHOST].phase = COMMITTING;
        server[GHOST].number = server[s].number;
    :: server[s].phase == WRITING && !ALL_WRITTEN(s) ->
        server[GHOST].phase = WRITING;
        server[GHOST].number = server[s].number;
    :: else -> skip;
    fi;
    for (i : 0 .. TASKS - 1) {
        if
        :: task[i].lock == s + 1 ->
            task[i].lock = GHOST + 1;
            if
            :: server[GHOST].phase == 0 -> server[GHOST].phase = LOADED;
            :: server[GHOST].phase == COMMITTING -> work_hand_down(s, i);
            :: else -> skip;
            fi
        :: else -> skip;
        fi
    }
    batch_over(s);
}

inline crash(s)
{
    leave(s);
    forget(s);
    for (i : 0 .. AGENTS - 1) { /* they call again, perhaps another */
        if
        :: agent[i].does == PARKED && agent[i].at == s -> agent_idle(i);
        :: agent[i].does == REPLYING && agent[i].at == s ->
            agent[i].does = WORKING;
            agent[i].at = 0;
        :: else -> skip;
        fi
    }
    i = 0;
}

#define me _pid

active [SERVERS] proctype a_server()
{
end:
    do
    :: d_step { hand_out(me, 0); }
    :: d_step { wake(me, 0); }
    :: d_step { write(me, 0); }
#ifndef WITHOUT_STEALING
    :: d_step { steal(me, 0); }
#endif
#ifndef WITHOUT_TAKEOVER
    :: d_step { take(me, 0); }
#endif
#if TASKS > 1
    :: d_step { hand_out(me, 1); }
    :: d_step { wake(me, 1); }
    :: d_step { write(me, 1); }
#ifndef WITHOUT_STEALING
    :: d_step { steal(me, 1); }
#endif
#ifndef WITHOUT_TAKEOVER
    :: d_step { take(me, 1); }
#endif
#endif
    :: d_step { reply(me, 0); }
    :: d_step { reply(me, 1); }
    :: d_step { batch_row(me); }
    :: d_step { server[me].phase == WRITING && ALL_WRITTEN(me) -> commit(me); }
#ifdef WITHOUT_ASKING
    :: d_step { /* COMMIT_UNKNOWN, and it goes on as if the batch was not in the store */
        server[me].phase == WRITING && ALL_WRITTEN(me) && MAY_CRASH(me) ->
        faults--;
        leave(me);
    }
#endif
#if TASKS > 1 && !defined(WITHOUT_BUSY)
    :: d_step { busy(me, 0); }
    :: d_step { busy(me, 1); }
#endif
    :: d_step { server[me].phase != 0 && MAY_FAIL -> faults--; rollback(me); }
    :: d_step { server[me].hints != 0 && MAY_FAIL -> faults--; server[me].hints = 0; }
#if defined(WITHOUT_STILL_DEPOSED) || defined(WITHOUT_LAST_LOOK)
    :: d_step { NOTES(me, 1) -> server[me].noted = server[me].noted | BIT(1); }
    :: d_step { NOTES(me, 2) -> server[me].noted = server[me].noted | BIT(2); }
#endif
    :: d_step { renew(me); }
    :: d_step { depose(me, 1); }
    :: d_step { depose(me, 2); }
#if NUMBERS > 2
    :: d_step { depose(me, 3); }
#endif
#if NUMBERS > 3
    :: d_step { depose(me, 4); }
#endif
#if NUMBERS > 4
    :: d_step { depose(me, 5); }
#endif
    :: d_step { resign(me); }
    :: d_step { begun && server[me].number == 0 && !server[me].dead -> enlist(me); }
    :: d_step { MAY_CRASH(me) -> faults--; crash(me); }
    :: d_step { MAY_CRASH(me) && OTHERS_LIVE(me) -> faults--; crash(me); server[me].dead = 1; }
    od
}

/* ---- the world ---- */

#define ME (_pid - SERVERS)
#define ANSWERS(s) (server[s].number != 0)
#define IS_FIRST (ME == 0 || agent[0].does != IDLE) /* two idle agents are one */
#define IN_TIME (COUNTS(ME, agent[ME].task) && !task[agent[ME].task].passed)

inline send_poll(s)
{
    agent[ME].does == IDLE && IS_FIRST && ANSWERS(s) ->
    agent[ME].does = PARKED;
    agent[ME].at = s;
}

inline send_reply(s)
{
    agent[ME].does == WORKING && IN_TIME && ANSWERS(s) ->
    agent[ME].does = REPLYING;
    agent[ME].at = s;
}

active [AGENTS] proctype an_agent()
{
end:
    do
    :: d_step { send_poll(0); }
    :: d_step { send_poll(1); }
    :: d_step { send_reply(0); }
    :: d_step { send_reply(1); }
#if SERVERS > 2
    :: d_step { send_poll(2); }
    :: d_step { send_reply(2); }
#endif
    :: d_step { agent[ME].does == WORKING && !IN_TIME -> agent_idle(ME); }
    od
}

#define RUNS(n) (server[instance[n].boot - 1].number == n)

inline lease_ends(n)
{
    instance[n].boot != 0 && !instance[n].over && !ALL_ENDED && (!RUNS(n) || faults != 0) ->
    if
    :: RUNS(n) -> faults--; /* it has paused */
    :: else -> skip;
    fi;
    instance[n].over = 1;
}

active proctype time()
{
end:
    do
    :: d_step { task[0].open && !task[0].passed -> task[0].passed = 1; }
#if TASKS > 1
    :: d_step { task[1].open && !task[1].passed -> task[1].passed = 1; }
#endif
    :: d_step { lease_ends(1); }
    :: d_step { lease_ends(2); }
#if NUMBERS > 2
    :: d_step { lease_ends(3); }
#endif
#if NUMBERS > 3
    :: d_step { lease_ends(4); }
#endif
#if NUMBERS > 4
    :: d_step { lease_ends(5); }
#endif
    :: d_step {
        server[GHOST].phase == COMMITTING ->
        commit(GHOST);
        server[GHOST].number = 0;
    }
#ifndef WITHOUT_SESSION_END
    :: d_step { server[GHOST].phase != 0 -> rollback(GHOST); server[GHOST].number = 0; }
#endif
    :: d_step { MAY_FAIL -> faults = 0; } /* there are no more */
    od
}

/* When nothing moves any more no task is left. */
active proctype end_of_all()
{
    timeout;
    assert(ALL_ENDED);
}

init
{
    d_step {
        for (i : 0 .. SERVERS - 1) {
            server[i].number = i + 1;
            instance[i + 1].boot = i + 1;
        }
        for (i : 0 .. TASKS - 1) {
            task[i].owner = 1;
            server[0].hints = server[0].hints | BIT(i);
        }
        i = 0;
        begun = 1;
    }
}

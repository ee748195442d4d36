#include "sim/run/run.h"

#include "base/assert.h"
#include "sim/world/history.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WITHIN_S = 120 };

#ifdef __SANITIZE_ADDRESS__
/* What is freed is kept from being used again while some worlds run, not some hundreds: no pointer
 * outlives its world, and memory that is touched again costs less than memory that is new. */
extern const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=32";
}
#endif

void run_here(const struct world_setup *setup, struct outcome *ret)
{
    struct world w;
    world_run(&w, setup);
    *ret = (struct outcome){
        .passed = w.violated == NULL,
        .tasks = (uint32_t)w.history->count,
        .events = w.events_done,
        .commits = w.commits,
        .trace = w.trace,
        .rows = w.rows,
    };
    if (w.violated != NULL) {
        snprintf(ret->invariant, sizeof ret->invariant, "%s", w.violated);
        memcpy(ret->detail, w.detail, sizeof ret->detail);
        if (w.concerned.value != 0)
            rv_task_text(w.concerned, ret->task);
    }
    world_free(&w);
}

/* ---- apart ---- */

/* Where the child says how it went; its own to the last. */
static struct outcome *shared;
static FILE *transcript, *record;

static void flush(void)
{
    if (transcript != NULL)
        fflush(transcript);
    if (record != NULL)
        fflush(record);
}

static void assert_failed(const char *condition, const char *file, int line)
{
    snprintf(shared->invariant, sizeof shared->invariant, "assertion");
    snprintf(shared->detail, sizeof shared->detail, "%s at %s:%d", condition, file, line);
    flush();
}

void run_bound(int seconds)
{
    struct itimerval bound = {.it_value = {.tv_sec = seconds}};
    int set = setitimer(ITIMER_PROF, &bound, NULL);
    rv_assert(set == 0);
}

static void child(const struct world_setup *setup)
{
    rv_assert_set_handler(assert_failed);
    run_bound(WITHIN_S);
    transcript = setup->transcript;
    record = setup->record;
    /* All of them is there when the end is sudden. */
    if (transcript != NULL)
        setvbuf(transcript, NULL, _IOLBF, BUFSIZ);
    if (record != NULL)
        setvbuf(record, NULL, _IOLBF, BUFSIZ);
    run_here(setup, shared);
    flush();
    _exit(0);
}

pid_t run_fork(void)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
    return pid;
}

void run_apart(const struct world_setup *setup, struct outcome *ret)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rv_assert(shared != MAP_FAILED);
    pid_t pid = run_fork();
    rv_assert(pid >= 0);
    if (pid == 0)
        child(setup);
    int status;
    pid_t ended = waitpid(pid, &status, 0);
    rv_assert(ended == pid);
    *ret = *shared;
    munmap(shared, sizeof *shared);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    ret->passed = false;
    if (ret->invariant[0] != '\0')
        return;
    snprintf(ret->invariant, sizeof ret->invariant, "crash");
    if (WIFSIGNALED(status))
        snprintf(ret->detail, sizeof ret->detail, "the program was ended by: %s",
                 strsignal(WTERMSIG(status)));
    else
        snprintf(ret->detail, sizeof ret->detail, "the program ended with exit code %d",
                 WEXITSTATUS(status));
}

bool outcome_same(const struct outcome *a, const struct outcome *b)
{
    return a->passed == b->passed && strcmp(a->invariant, b->invariant) == 0 &&
           a->events == b->events && a->commits == b->commits && a->trace == b->trace;
}

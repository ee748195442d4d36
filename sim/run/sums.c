#include "sim/run/sums.h"

#include "base/assert.h"
#include "sim/run/run.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the processes share. */
struct board {
    atomic_ullong next;
    struct outcome outcomes[];
};

static _Noreturn void hand_work(const struct options *o, struct board *board)
{
    uint64_t i;
    while ((i = atomic_fetch_add(&board->next, 1)) < o->seeds) {
        struct world_setup setup = {.seed = o->start + i, .with = &o->with};
        run_apart(&setup, &board->outcomes[i]);
    }
    _exit(0);
}

static void board_fill(const struct options *o, struct board *board)
{
    for (uint64_t i = 0; i < o->jobs; i++) {
        pid_t pid = run_fork();
        rv_assert(pid >= 0);
        if (pid == 0)
            hand_work(o, board);
    }
    for (uint64_t i = 0; i < o->jobs; i++) {
        int status;
        pid_t ended = wait(&status);
        rv_assert(ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

int sums_run(const struct options *o)
{
    size_t bytes = sizeof(struct board) + o->seeds * sizeof(struct outcome);
    struct board *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                               0);
    if (board == MAP_FAILED) {
        perror("reeve-sim: mmap");
        return 1;
    }
    atomic_init(&board->next, 0);
    board_fill(o, board);
    bool failed = false;
    for (uint64_t i = 0; i < o->seeds; i++) {
        const struct outcome *outcome = &board->outcomes[i];
        failed = failed || !outcome->passed;
        printf("%llu %016llx %016llx%s%s\n", (unsigned long long)(o->start + i),
               (unsigned long long)outcome->trace, (unsigned long long)outcome->rows,
               outcome->passed ? "" : " FAILED ", outcome->invariant);
    }
    munmap(board, bytes);
    return failed ? 1 : 0;
}

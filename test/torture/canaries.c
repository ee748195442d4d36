/* Planted faults: each of these scenarios must come out red, or the torture sees nothing. */
#include "api/access_log.h"
#include "faults.h"
#include "play.h"

#include <stdlib.h>

/* Takes two blocks; `leaks` forgets the first when there is no second. */
static enum rv_err pair_take(void **a, void **b, bool leaks)
{
    *a = malloc(100);
    if (*a == NULL)
        return RV_ERR_MEMORY;
    *b = malloc(100);
    if (*b != NULL)
        return RV_OK;
    if (!leaks)
        free(*a);
    return RV_ERR_MEMORY;
}

static void pair_run(struct torture *t, bool leaks)
{
    void *a, *b;
    TRY(t, pair_take(&a, &b, leaks));
    free(a);
    free(b);
    torture_says(t, "two\n");
}

static void careful(struct torture *t)
{
    pair_run(t, false);
}

static void leaks(struct torture *t)
{
    pair_run(t, true);
}

/* Moves the sum in two writes, and does not take the first back. */
static enum rv_err sum_move(int *from, int *to)
{
    *from -= 1;
    void *needed = malloc(1);
    if (needed == NULL)
        return RV_ERR_MEMORY;
    free(needed);
    *to += 1;
    return RV_OK;
}

static void half_written(struct torture *t)
{
    int from = 1, to = 0;
    TRY(t, sum_move(&from, &to));
    torture_says(t, "%d %d\n", from, to);
}

static enum rv_err answer(enum rv_err otherwise)
{
    void *needed = malloc(1);
    if (needed == NULL)
        return otherwise;
    free(needed);
    return RV_OK;
}

/* Tells the caller that it is his fault. */
static void wrong_error(struct torture *t)
{
    TRY(t, answer(RV_ERR_INVALID));
}

static void ends_the_process(struct torture *t)
{
    void *needed;
    (void)t;
    IN_PRODUCT(needed = malloc(1));
    if (needed == NULL)
        abort();
    free(needed);
}

/* A store that forgets a step of a change and says that nothing was written. */
static const struct script half_committed = {
    .workflows = {"order"},
    .tasks = {{"order", NULL, "processed"}},
    .tears = true,
};

/* An access log that leaves out a line without a word. */
static void line_forget(struct rv_access_log *log, const struct rv_access_line *line)
{
    if (answer(RV_ERR_MEMORY) == RV_OK)
        rv_access_log_add(log, line);
}

static const struct access_script forgetful = {line_forget};

const struct scenario scenarios_canaries[] = {
    {"careful", careful, NULL, HARMS_OF_HEAP, 0, false},
    {"leaks", leaks, NULL, HARMS_OF_HEAP, 0, true},
    {"half_written", half_written, NULL, HARMS_OF_HEAP, 0, true},
    {"wrong_error", wrong_error, NULL, HARMS_OF_HEAP, 0, true},
    {"ends_the_process", ends_the_process, NULL, HARMS_OF_HEAP, 0, true},
    {"half_committed/memory", play_run, &half_committed, 1u << HARM_BUSY, 0, true},
    {"line_forgotten", access_log_run, &forgetful, HARMS_OF_HEAP, 20, true},
    {.name = NULL},
};

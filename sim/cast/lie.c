#include "sim/cast/lie.h"

#include "base/assert.h"
#include "base/id.h"
#include "base/limits.h"
#include "json/json.h"
#include "sim/store/database.h"
#include "sim/world/fault.h"
#include "sim/world/history.h"
#include "sim/world/world.h"

#include <stdio.h>

enum { GARBAGE = 9, NESTING = 200, GUESSES = 200, COUNTER_BITS = 13, MADE_AT_BITS = 21 };

static const char *const garbage[GARBAGE] = {
    "",
    "{",
    "{\"replies\":[{\"step\":1,\"token\":\"a\",\"output\":{}}]}",
    "{\"replies\":[{\"step\":\"0000000000000-1\",\"output\":{}}]}",
    "{\"replies\":[{\"step\":\"0000000000000-1\",\"token\":\"a\",\"output\":1e400}]}x",
    "{\"replies\":{}}",
    "{\"replies\":[{\"step\":\"0000000000000-1\",\"token\":\"a\",\"output\":\"\\ud800\"}]}",
    "{\"replies\":[{\"step\":\"0000000000000-1\",\"token\":\"a\",\"output\":{},\"error\":{}}]}",
    "\xff\xfe{\"replies\":[]}",
};

static void write_nested(struct rv_buf *body, const char *step, const char *token)
{
    rv_buf_printf(body, "{\"replies\":[{\"step\":\"%s\",\"token\":\"%s\",\"output\":", step, token);
    for (int i = 0; i < NESTING; i++)
        rv_buf_lit(body, "[");
    for (int i = 0; i < NESTING; i++)
        rv_buf_lit(body, "]");
    rv_buf_lit(body, "}]}");
}

static void write_reply(struct rv_buf *body, const char *step, const char *token)
{
    rv_buf_printf(body,
                  "{\"replies\":[{\"step\":\"%s\",\"token\":\"%s\",\"output\":{\"lie\":true}}]}",
                  step, token);
}

/* For tasks that do not exist, some of which may begin in the batch that looks for them: the first
 * of each of the next milliseconds, at the server that made the step's task. */
static void write_guesses(struct world *w, struct rv_buf *body, const char *step)
{
    struct rv_step_id held;
    char text[RV_STEP_TEXT_BYTES];
    uint64_t token = fault_roll(w, UINT64_MAX); /* nobody's: there are older tasks among them */
    enum rv_err err = rv_step_parse(rv_str_of(step), &held);
    rv_assert(err == RV_OK);
    int64_t instance = held.task.value & ((INT64_C(1) << MADE_AT_BITS) - (1 << COUNTER_BITS));
    rv_buf_lit(body, "{\"replies\":[");
    for (int64_t i = 0; i < GUESSES; i++) {
        struct rv_step_id guess = {{rv_id_from(database_wall(w) + i).value | instance}, 1};
        rv_buf_printf(body, "%s{\"step\":\"%s\",\"token\":\"%016llx\",\"output\":{}}",
                      i > 0 ? "," : "", rv_step_text(guess, text).at, (unsigned long long)token);
    }
    rv_buf_lit(body, "]}");
}

void lie_write(struct world *w, struct rv_buf *body, const char *step, const char *token,
               const char *other_step)
{
    char made_up[32];
    switch (fault_roll(w, 6)) {
    case 0: /* for the step in hand, with a token that nobody gave out */
        snprintf(made_up, sizeof made_up, "%016llx", (unsigned long long)fault_roll(w, UINT64_MAX));
        write_reply(body, step, made_up);
        return;
    case 1: /* for another step in hand, or one that is nobody's */
        write_reply(body, other_step ? other_step : "0000000000001-1", token);
        return;
    case 2: /* for a step of the same task that is not its own */
        snprintf(made_up, sizeof made_up, "%s%u", step, 1 + (unsigned)fault_roll(w, 3));
        write_reply(body, made_up, token);
        return;
    case 3:
        write_guesses(w, body, step);
        return;
    case 4:
        write_nested(body, step, token);
        return;
    default:
        rv_buf_printf(body, "%s", garbage[fault_roll(w, GARBAGE)]);
        return;
    }
}

void check_lie(struct world *w, int status, struct rv_str answer)
{
    struct rv_json told;
    struct rv_arena *arena = &w->history->scratch;
    if (status == 503 || (status >= 400 && status < 500))
        return;
    rv_arena_reset(arena);
    const struct rv_json *results = NULL;
    if (rv_json_parse(arena, answer, RV_JSON_NESTING_MAX, &told, NULL) == RV_OK)
        results = rv_json_get(&told, RV_STR("results"));
    if (status != 200 || results == NULL)
        world_violate(w, "W-02", "an agent that lied got %d %.*s", status, RV_STR_FMT(answer));
    for (uint32_t i = 0; results != NULL && i < results->len; i++) {
        int64_t one = 0;
        (void)rv_json_int(rv_json_get(&results->u.items[i], RV_STR("status")), &one);
        if (one != 409 && one != 410 && one != 413 && one != 422)
            world_violate(w, "I-06", "an agent that lied got a result %lld: %.*s", (long long)one,
                          RV_STR_FMT(answer));
    }
}

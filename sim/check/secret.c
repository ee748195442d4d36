/* I-29: what is a secret between the server and one agent or application is told to nobody else.
 *
 * Covered here: the tokens of attempts, each of which lets its holder answer for a step. They occur
 * in no answer but those to agents (whose polls I-26 watches), in no refusal whoever gets it, in no
 * line of the log, in no alert and in no error that the server writes itself. And a canary in the
 * input of each task: payloads occur in the lists that show them, but in no refusal, no line of the
 * log and no alert.
 *
 * The simulator has no API keys and no metrics: those are the server's room, which the tests of
 * whole processes look after. */
#include "sim/check/check.h"

#include "sim/world/server.h"
#include "sim/cast/workload.h"
#include "sim/world/world.h"

#include <stdio.h>
#include <string.h>

enum { TOKEN_CHARS = 16, TASKS_LOOKED_AT = 3 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A word as long as a token is whole where it begins, or a character that is no digit ends it: what
 * begins before that one is no token. */
static bool has_token(const struct world *w, struct rv_str text)
{
    for (size_t from = 0; from + TOKEN_CHARS <= text.len;) {
        size_t end = from + TOKEN_CHARS;
        while (end > from && is_hex(text.at[end - 1]))
            end--;
        if (end > from) {
            from = end;
            continue;
        }
        for (end = from + TOKEN_CHARS; end < text.len && is_hex(text.at[end]);)
            end++;
        struct rv_str word = {text.at + from, end - from};
        if (word.len == TOKEN_CHARS &&
            rv_map_find(&w->history->tokens, check_token(word), 0) != NULL)
            return true;
        from = end + 1;
    }
    return false;
}

void check_no_token(struct world *w, struct rv_str text, const char *where)
{
    if (text.at != NULL && has_token(w, text))
        world_violate(w, "I-29", "the token of an attempt stands in %s: %.*s", where,
                      RV_STR_FMT(text));
}

void check_no_secret(struct world *w, struct rv_str text, const char *where)
{
    static const char canary[] = SIM_CANARY;
    check_no_token(w, text, where);
    if (text.at != NULL && memmem(text.at, text.len, canary, sizeof canary - 1) != NULL)
        world_violate(w, "I-29", "the input of a task stands in %s: %.*s", where, RV_STR_FMT(text));
}

void check_lists(struct world *w)
{
    static const char *const parts[] = {"", "/steps", "/attempts", "/late-replies"};
    struct server *s = &w->servers[0];
    size_t count = w->history->count;
    server_look(s, "/v1/tasks");
    server_look(s, "/v1/alerts");
    server_look(s, "/v1/agents");
    for (size_t i = 0; i < TASKS_LOOKED_AT && count > 0; i++) {
        struct rv_task_id task = w->history->all[i * (count - 1) / TASKS_LOOKED_AT]->row.id;
        char id[RV_ID_TEXT_BYTES], target[64];
        for (size_t part = 0; part < sizeof parts / sizeof parts[0]; part++) {
            snprintf(target, sizeof target, "/v1/tasks/%s%s", rv_task_text(task, id).at,
                     parts[part]);
            server_look(s, target);
        }
    }
}

void check_secrets(const struct transition *t)
{
    for (size_t i = 0; i < t->change->alerts_count; i++)
        check_no_secret(t->w, t->change->alerts[i].message, "an alert");
    for (size_t i = 0; i < t->change->steps_count; i++)
        check_no_token(t->w, t->change->steps[i]->error, "the error of a step");
    check_no_token(t->w, t->task->error, "the error of a task");
}

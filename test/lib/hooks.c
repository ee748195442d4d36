#include "hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* "https://a.example/x" goes to "https://a.example". */
static enum rv_err hook_check(void *self, struct rv_str url, char *ret_text, size_t text_bytes)
{
    const struct hooks *hooks = self;
    if (hooks->refuses != NULL && rv_str_is(url, hooks->refuses)) {
        snprintf(ret_text, text_bytes, "not there; add --egress");
        return RV_ERR_REFUSED;
    }
    const char *path = memchr(url.at + 8, '/', url.len - 8);
    snprintf(ret_text, text_bytes, "%.*s", (int)(path != NULL ? path - url.at : (int)url.len),
             url.at);
    return RV_OK;
}

static void hook_send(void *self, struct rv_notice *notice)
{
    struct hooks *hooks = self;
    assert_true(hooks->count < HOOKS_MAX);
    hooks->sent[hooks->count++] = notice;
    hooks->all++;
}

struct rv_scheduler_outlet hooks_outlet(struct hooks *hooks)
{
    return (struct rv_scheduler_outlet){hook_check, hook_send, hooks};
}

void hooks_drop(struct hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++)
        free(hooks->sent[i]);
    hooks->count = 0;
}

static bool goes_to(const struct rv_notice *notice, const char *destination)
{
    return destination == NULL || rv_str_is(notice->destination, destination);
}

size_t hooks_answer(struct hooks *hooks, struct world *w, const char *destination,
                    enum hook_answer answer)
{
    struct rv_call *call = world_call(w, RV_CALL_DELIVERED);
    struct rv_call_delivered *delivered = &call->u.delivered;
    size_t kept = 0;
    delivered->items = RV_NEW_ARRAY(&call->arena, struct rv_notice_result, hooks->count + 1);
    assert_non_null(delivered->items);
    for (size_t i = 0; i < hooks->count; i++) {
        struct rv_notice *notice = hooks->sent[i];
        if (!goes_to(notice, destination)) {
            hooks->sent[kept++] = notice;
            continue;
        }
        delivered->items[delivered->count++] = (struct rv_notice_result){
            .task = notice->task,
            .number = notice->number,
            .taken = answer == HOOK_TAKES,
            .gone = answer == HOOK_GONE,
            .alive = answer != HOOK_DEAD,
            .why = RV_STR("it says no"),
        };
        free(notice);
    }
    hooks->count = kept;
    size_t count = delivered->count;
    assert_true(world_run(w, call));
    return count;
}

size_t hooks_take_all(struct hooks *hooks, struct world *w, const char *destination)
{
    size_t all = 0, count;
    while ((count = hooks_answer(hooks, w, destination, HOOK_TAKES)) > 0)
        all += count;
    return all;
}

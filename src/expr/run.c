/* One evaluation from its budget to its result or fault; errors, fuel and memory. */
#include "expr/eval_priv.h"

#include "base/assert.h"
#include "base/limits.h"

#include <stdarg.h>

/* New memory costs about half a nanosecond a byte, most of it when it is first touched. */
enum { BYTES_PER_FUEL = 24, PIECE_BYTES = 256 * 1024 };

bool ev_limit(struct ev *ev, const char *which)
{
    ev->stop = EV_LIMIT;
    ev->limit = which;
    return false;
}

bool ev_next_slice(struct ev *ev)
{
    const struct rv_expr_budget *budget = ev->budget;
    int64_t left = ev->fuel + ev->reserve;
    rv_assert(ev->fuel < 0);
    rv_assert(ev->reserve >= 0);
    if (left < 0)
        return ev_limit(ev, "the expression ran out of time");
    rv_assert(budget->pause != NULL); /* without one all of the fuel is in the first slice */
    bool go = budget->pause(budget->context, budget->fuel - left);
    rv_assert(budget->slice > 0);
    ev->fuel = left < budget->slice ? left : budget->slice;
    ev->reserve = left - ev->fuel;
    if (!go) {
        ev_limit(ev, "the evaluation was cancelled");
        ev->stop = EV_GIVEN_UP;
    }
    return go;
}

bool ev_raise_value(struct ev *ev, const struct rv_json *value)
{
    ev->stop = EV_RAISED;
    ev->raised = *value;
    return false;
}

bool ev_raise(struct ev *ev, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct rv_str text = rv_arena_vprintf(ev->arena, format, args);
    va_end(args);
    if (text.at == NULL)
        return ev_limit(ev, "the expression ran out of memory");
    struct rv_json value = rv_json_of_str(text);
    return ev_spend(ev, 10) && ev_raise_value(ev, &value);
}

void *ev_take(struct ev *ev, size_t bytes)
{
    size_t first = bytes < PIECE_BYTES ? bytes : PIECE_BYTES;
    if (!ev_spend(ev, first / BYTES_PER_FUEL))
        return NULL;
    char *at = bytes <= UINT32_MAX ? rv_arena_take(ev->arena, bytes) : NULL;
    if (at == NULL)
        return ev_limit(ev, "the expression ran out of memory"), NULL;
    /* What is large is touched here, piece by piece, rather than at once by who fills it. */
    for (size_t done = first; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        if (!ev_spend(ev, piece / BYTES_PER_FUEL))
            return NULL;
        memset(at + done, 0, piece);
    }
    return at;
}

void *ev_append(struct ev *ev, const void *at, size_t bytes, const void *more, size_t more_bytes)
{
    struct growing *growing = ev->growing;
    for (unsigned i = 0; i < EV_GROWING; i++) {
        rv_assert(growing[i].used <= growing[i].room);
        if (growing[i].at != at || growing[i].used != bytes || growing[i].room - bytes < more_bytes)
            continue;
        if (!ev_spend(ev, more_bytes / BYTES_PER_FUEL))
            return NULL;
        /* Nobody looks at what lies behind the shorter value, so this changes none. */
        char *same = (char *)(uintptr_t)at;
        memcpy(same + bytes, more, more_bytes);
        growing[i].used += more_bytes;
        return same;
    }
    size_t used = bytes + more_bytes;
    size_t room = used + used / 2;
    char *made = ev_take(ev, room);
    if (made == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(made, at, bytes);
    if (more_bytes > 0)
        memcpy(made + bytes, more, more_bytes);
    growing[ev->growing_next++ % EV_GROWING] = (struct growing){made, used, room};
    return made;
}

struct rv_json ev_array(struct ev *ev, const struct rv_json *items, size_t len)
{
    ev->built = true;
    return (struct rv_json){.type = RV_JSON_ARRAY, .len = (uint32_t)len, .u.items = items};
}

struct rv_json ev_object(struct ev *ev, const struct rv_json_member *members, size_t len)
{
    ev->built = true;
    return (struct rv_json){.type = RV_JSON_OBJECT, .len = (uint32_t)len, .u.members = members};
}

struct rv_json ev_string(const char *bytes, size_t len)
{
    return rv_json_of_str((struct rv_str){bytes, len});
}

/* What was raised, as a message: a string as it is, anything else as JSON. */
static enum rv_err fault_raised(struct ev *ev, struct rv_expr_fault *fault)
{
    ev->stop = EV_RUNS;
    if (!value_check_depth(ev, &ev->raised, RV_JSON_DEPTH_MAX))
        return RV_ERR_LIMIT;
    fault->value = ev->raised;
    fault->message = value_str(&ev->raised);
    if (ev->raised.type != RV_JSON_STRING && !text_of_value(ev, &ev->raised, &fault->message))
        return RV_ERR_LIMIT;
    return RV_ERR_INVALID;
}

static enum rv_err eval_fault(struct ev *ev, struct rv_expr_fault *fault)
{
    *fault = (struct rv_expr_fault){.offset = ev->offset, .value = rv_json_null()};
    if (ev->stop == EV_RAISED && fault_raised(ev, fault) == RV_ERR_INVALID)
        return RV_ERR_INVALID;
    *fault = (struct rv_expr_fault){
        .offset = ev->offset, .value = rv_json_null(), .message = rv_str_of(ev->limit)};
    if (ev->stop == EV_GIVEN_UP)
        return RV_ERR_BUSY;
    return ev->arena->refused == RV_ERR_MEMORY ? RV_ERR_MEMORY : RV_ERR_LIMIT;
}

enum rv_err rv_expr_eval(const struct rv_expr *expr, const struct rv_json *input,
                         const struct rv_json *values, struct rv_expr_budget *budget,
                         struct rv_arena *arena, struct rv_json *ret_value,
                         struct rv_expr_fault *ret_fault)
{
    struct ev ev = {.fuel = budget->fuel, .budget = budget, .arena = arena, .globals = values};
    struct rv_expr_fault ignored;
    struct item in = {*input, NULL};
    struct item first = {rv_json_null(), NULL};
    bool any;
    if (budget->pause != NULL && budget->slice < ev.fuel) {
        rv_assert(budget->slice > 0);
        ev.fuel = budget->slice;
        ev.reserve = budget->fuel - budget->slice;
    }
    rv_assert(budget->fuel >= 0);
    bool done = expr->root->single ? eval_one(&ev, expr->root, NULL, input, &first.value)
                                   : eval_first(&ev, expr->root, NULL, &in, &first, &any);
    /* What was only looked up is as deep as what it was found in. */
    if (done && ev.built)
        done = value_check_depth(&ev, &first.value, RV_JSON_DEPTH_MAX);
    enum rv_err err = done ? RV_OK : eval_fault(&ev, ret_fault ? ret_fault : &ignored);
    rv_assert(ev.depth == 0);
    rv_assert(ev.stop != EV_BREAK); /* the parser lets a break stand in its label alone */
    int64_t left = ev.fuel + ev.reserve;
    budget->fuel = left > 0 ? left : 0;
    if (done)
        *ret_value = first.value;
    return err;
}

#include "scheduler/batch/refuse.h"

#include "base/arena.h"
#include "base/assert.h"
#include "scheduler/call.h"

#include <stdarg.h>

enum rv_err call_refuse(struct rv_call *call, enum rv_err err, struct rv_str message)
{
    rv_assert(err != RV_OK);
    call->err = err;
    call->message = message;
    return RV_OK;
}

struct rv_str call_printf(struct rv_call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct rv_str made = rv_arena_vprintf(&call->arena, format, args);
    va_end(args);
    return made.at ? made : RV_STR("out of memory");
}

struct rv_str refuse_no_alert(struct rv_call *call, int64_t alert)
{
    char id[RV_ID_TEXT_BYTES];
    return call_printf(call, "there is no such alert: %.*s; `reeve alerts --all` lists all alerts",
                       RV_STR_FMT(rv_task_text((struct rv_task_id){alert}, id)));
}

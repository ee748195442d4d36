#include "core/agent_limit.h"

#include "base/assert.h"
#include "base/bucket.h"
#include "base/limits.h"
#include "json/json.h"

bool rv_agent_limit_any(const struct rv_agent_limit *limit)
{
    return limit->concurrent != 0 || limit->per_second != 0 || limit->paused;
}

void rv_agent_limit_write(struct rv_buf *buf, const struct rv_agent_limit *limit)
{
    rv_buf_printf(buf, "{\"concurrent\":%u,\"perSecond\":%u,\"paused\":%s", limit->concurrent,
                  limit->per_second, limit->paused ? "true" : "false");
    if (limit->by.at != NULL) {
        rv_buf_lit(buf, ",\"by\":");
        rv_json_write_string(buf, limit->by);
    }
    rv_buf_add_char(buf, '}');
}

static bool number_read(const struct rv_json *object, const char *name, int64_t max,
                        uint32_t *ret_number)
{
    int64_t number;
    rv_assert(max <= UINT32_MAX);
    if (!rv_json_int(rv_json_get(object, rv_str_of(name)), &number) || number < 0 || number > max)
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

enum rv_err rv_agent_limit_read(struct rv_arena *arena, const struct rv_record *record,
                                struct rv_agent_limit *ret_limit)
{
    struct rv_json value;
    *ret_limit = (struct rv_agent_limit){.agent = record->key, .paused = true, .at = record->at};
    enum rv_err err = rv_json_parse(arena, record->value, RV_JSON_DEPTH_MAX, &value, NULL);
    if (err == RV_ERR_MEMORY)
        return err;
    const struct rv_json *paused = err == RV_OK ? rv_json_get(&value, RV_STR("paused")) : NULL;
    struct rv_agent_limit read = *ret_limit;
    if (paused == NULL || paused->type != RV_JSON_BOOL ||
        !number_read(&value, "concurrent", RV_AGENT_CONCURRENT_MAX, &read.concurrent) ||
        !number_read(&value, "perSecond", RV_BUCKET_RATE_MAX, &read.per_second))
        return RV_ERR_INVALID;
    read.paused = paused->truth;
    read.by = rv_json_str(rv_json_get(&value, RV_STR("by")));
    *ret_limit = read;
    return RV_OK;
}

#include "server/events.h"

#include "base/arena.h"
#include "base/limits.h"
#include "base/os/log.h"
#include "json/json.h"

void rv_server_event(void *self, enum rv_log_level level, const char *event, struct rv_str fields)
{
    enum { FIELDS_MAX = 12 };
    (void)self;
    struct rv_log_field out[FIELDS_MAX];
    size_t count = 0;
    struct rv_arena arena;
    struct rv_json object;
    rv_arena_init(&arena, 0);
    bool good = rv_json_parse(&arena, fields, RV_JSON_DEPTH_MAX, &object, NULL) == RV_OK &&
                object.type == RV_JSON_OBJECT;
    for (uint32_t i = 0; good && i < object.len && count < FIELDS_MAX; i++) {
        const struct rv_json_member *member = &object.u.members[i];
        struct rv_str name = rv_arena_str(&arena, rv_json_str(&member->key));
        struct rv_str text = rv_json_str(&member->value);
        int64_t number = 0;
        if (name.at == NULL || (text.at == NULL && !rv_json_int(&member->value, &number)))
            continue;
        out[count++] = (struct rv_log_field){name.at, text, number, false};
    }
    if (!good)
        out[count++] = RV_LOG_STR("fields", fields);
    rv_log_write(level, event, out, count);
    rv_arena_done(&arena);
}

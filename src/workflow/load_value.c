/* Readers of plain values and the faults they find, for all files of the loader. */
#include "base/suggest.h"
#include "base/time.h"
#include "workflow/load_priv.h"

#include <stdarg.h>

size_t rv_load_push(struct rv_load *load, struct rv_str token)
{
    size_t length = load->path.len;
    rv_json_pointer_add(&load->path, token);
    return length;
}

size_t rv_load_push_index(struct rv_load *load, uint32_t index)
{
    size_t length = load->path.len;
    rv_buf_add_char(&load->path, '/');
    rv_buf_add_int(&load->path, index);
    return length;
}

void rv_load_pop(struct rv_load *load, size_t length)
{
    rv_assert(length <= load->path.len || load->path.failed != RV_OK);
    load->path.len = length;
}

enum rv_err rv_load_full(const struct rv_load *load)
{
    return load->arena->refused == RV_ERR_LIMIT ? RV_ERR_LIMIT : RV_ERR_MEMORY;
}

__attribute__((format(printf, 4, 0))) static enum rv_err
load_fault(struct rv_load *load, bool at_key, bool unsupported, const char *format, va_list args)
{
    if (load->path.failed != RV_OK)
        return load->path.failed;
    struct rv_definition_fault fault = {.at_key = at_key, .unsupported = unsupported};
    fault.message = rv_arena_vprintf(load->arena, format, args);
    fault.pointer = rv_arena_str(load->arena, rv_buf_str(&load->path));
    if (fault.message.at == NULL || fault.pointer.at == NULL)
        return rv_load_full(load);
    *load->fault = fault;
    return unsupported ? RV_ERR_UNSUPPORTED : RV_ERR_INVALID;
}

enum rv_err rv_load_invalid(struct rv_load *load, const char *key, const char *format, ...)
{
    if (key != NULL)
        (void)rv_load_push(load, rv_str_of(key));
    va_list args;
    va_start(args, format);
    enum rv_err err = load_fault(load, false, false, format, args);
    va_end(args);
    return err;
}

enum rv_err rv_load_invalid_name(struct rv_load *load, struct rv_str key, const char *format, ...)
{
    (void)rv_load_push(load, key);
    va_list args;
    va_start(args, format);
    enum rv_err err = load_fault(load, true, false, format, args);
    va_end(args);
    return err;
}

enum rv_err rv_load_unsupported(struct rv_load *load, const char *key, const char *format, ...)
{
    if (key != NULL)
        (void)rv_load_push(load, rv_str_of(key));
    va_list args;
    va_start(args, format);
    enum rv_err err = load_fault(load, false, true, format, args);
    va_end(args);
    return err;
}

enum rv_err rv_load_unsupported_name(struct rv_load *load, const char *key, const char *format, ...)
{
    (void)rv_load_push(load, rv_str_of(key));
    va_list args;
    va_start(args, format);
    enum rv_err err = load_fault(load, true, true, format, args);
    va_end(args);
    return err;
}

static bool is_noted(const struct rv_definition_faults *faults,
                     const struct rv_definition_fault *fault)
{
    for (uint32_t i = 0; i < faults->count; i++) {
        if (rv_str_eq(faults->items[i].pointer, fault->pointer) &&
            rv_str_eq(faults->items[i].message, fault->message))
            return true;
    }
    return false;
}

enum rv_err rv_load_past(struct rv_load *load, enum rv_err err, size_t path)
{
    struct rv_definition_faults *faults = load->faults;
    rv_assert(faults == NULL || faults->count <= RV_DEFINITION_FAULTS_MAX);
    if (faults == NULL || (err != RV_ERR_INVALID && err != RV_ERR_UNSUPPORTED))
        return err;
    if (faults->count == RV_DEFINITION_FAULTS_MAX)
        return err;
    rv_assert(load->fault->message.at != NULL);
    /* A value under `use` is read again at each place that names it. */
    if (!is_noted(faults, load->fault))
        faults->items[faults->count++] = *load->fault;
    rv_load_pop(load, path);
    return RV_OK;
}

enum { PROPERTIES_MAX = 32 };

static enum rv_err unknown_property(struct rv_load *load, struct rv_str key,
                                    const struct rv_load_property *known, const char *under)
{
    const char *names[PROPERTIES_MAX + 1] = {NULL};
    char list[512];
    size_t len = 0;
    for (size_t i = 0; known[i].name != NULL && i < PROPERTIES_MAX; i++) {
        names[i] = known[i].name;
        size_t n = strlen(names[i]);
        if (known[i].unsupported || len + n + 3 > sizeof list)
            continue;
        memcpy(list + len, ", ", 2);
        memcpy(list + len + 2, names[i], n);
        len += n + 2;
        rv_assert(len < sizeof list);
    }
    const char *near = rv_suggest(key, names);
    const char *level = strncmp(under, "a step", 6) == 0 ? rv_load_level_of(key) : NULL;
    if (level != NULL)
        return rv_load_invalid_name(load, key,
                                    "\"%.*s\" is not a property of a step; write it under %s of "
                                    "the step",
                                    RV_STR_FMT(key), level);
    if (near != NULL)
        return rv_load_invalid_name(load, key,
                                    "unknown property \"%.*s\" under %s; "
                                    "did you mean \"%s\"?",
                                    RV_STR_FMT(key), under, near);
    return rv_load_invalid_name(load, key,
                                "unknown property \"%.*s\" under %s; known properties: %.*s",
                                RV_STR_FMT(key), under, (int)(len ? len - 2 : 0), list + 2);
}

static const struct rv_load_property *find_property(const struct rv_load_property *known,
                                                    struct rv_str key)
{
    while (known->name != NULL && !rv_str_is(key, known->name))
        known++;
    return known->name != NULL ? known : NULL;
}

enum rv_err rv_load_members(struct rv_load *load, const struct rv_json *object,
                            const struct rv_load_property *known, const char *under)
{
    const struct rv_load_property *unsupported = NULL;
    rv_assert(object->type == RV_JSON_OBJECT);
    size_t path = load->path.len;
    for (uint32_t i = 0; i < object->len; i++) {
        struct rv_str key = rv_json_str(&object->u.members[i].key);
        const struct rv_load_property *found = find_property(known, key);
        if (found == NULL) {
            RV_TRY(rv_load_past(load, unknown_property(load, key, known, under), path));
        } else if (found->unsupported && unsupported == NULL) {
            unsupported = found;
        }
    }
    if (unsupported == NULL)
        return RV_OK;
    enum rv_err err = rv_load_unsupported_name(
        load, unsupported->name, "%s of %s is not supported yet", unsupported->name, under);
    return rv_load_past(load, err, path);
}

static const char *type_name(enum rv_json_type type)
{
    switch (type) {
    case RV_JSON_NULL:
        return "null";
    case RV_JSON_BOOL:
        return "true or false";
    case RV_JSON_NUMBER:
        return "a number";
    case RV_JSON_STRING:
        return "a string";
    case RV_JSON_ARRAY:
        return "a list";
    case RV_JSON_OBJECT:
        return "an object";
    }
    return "unknown";
}

enum rv_err rv_load_member(struct rv_load *load, const struct rv_json *object, const char *key,
                           enum rv_json_type type, const struct rv_json **ret_value)
{
    *ret_value = rv_json_get(object, rv_str_of(key));
    if (*ret_value == NULL || (*ret_value)->type == type)
        return RV_OK;
    bool quote = type == RV_JSON_STRING && (*ret_value)->type != RV_JSON_OBJECT &&
                 (*ret_value)->type != RV_JSON_ARRAY;
    if ((*ret_value)->type == RV_JSON_NULL)
        return rv_load_invalid(load, key, "%s has no value; it must be %s", key, type_name(type));
    const char *cure = quote ? "; put it in quotes" : "";
    if (type == RV_JSON_OBJECT && strcmp(key, "output") == 0)
        cure = "; write output: { as: '${ . }' }";
    if (type == RV_JSON_OBJECT && strcmp(key, "input") == 0)
        cure = "; write input: { from: '${ . }' }";
    return rv_load_invalid(load, key, "%s must be %s, not %s%s", key, type_name(type),
                           type_name((*ret_value)->type), cure);
}

enum rv_err rv_load_string(struct rv_load *load, const struct rv_json *object, const char *key,
                           struct rv_str *ret_text)
{
    const struct rv_json *value;
    RV_TRY(rv_load_member(load, object, key, RV_JSON_STRING, &value));
    *ret_text = value != NULL ? rv_json_str(value) : RV_STR_NONE;
    return RV_OK;
}

enum rv_err rv_load_int(struct rv_load *load, const struct rv_json *object, const char *key,
                        int64_t min, int64_t max, int64_t *number)
{
    const struct rv_json *value;
    rv_assert(min <= max);
    RV_TRY(rv_load_member(load, object, key, RV_JSON_NUMBER, &value));
    if (value == NULL)
        return RV_OK;
    int64_t read;
    if (!rv_json_int(value, &read) || read < min || read > max)
        return rv_load_invalid(load, key, "%s must be an integer from %lld to %lld", key,
                               (long long)min, (long long)max);
    *number = read;
    return RV_OK;
}

static enum rv_err duration_parts(struct rv_load *load, const struct rv_json *object,
                                  int64_t *duration_ms)
{
    static const struct rv_load_property parts[] = {{"days", false},         {"hours", false},
                                                    {"minutes", false},      {"seconds", false},
                                                    {"milliseconds", false}, {NULL, false}};
    static const int64_t part_ms[] = {RV_DAY_MS, RV_HOUR_MS, RV_MINUTE_MS, RV_SECOND_MS, 1};
    if (object->len == 0)
        return rv_load_invalid(load, NULL,
                               "a duration needs at least one of days, hours, "
                               "minutes, seconds, milliseconds");
    RV_TRY(rv_load_members(load, object, parts, "a duration"));
    int64_t sum = 0;
    for (size_t i = 0; parts[i].name != NULL; i++) {
        int64_t n = 0;
        rv_assert(i < sizeof part_ms / sizeof *part_ms);
        RV_TRY(rv_load_int(load, object, parts[i].name, 0, RV_DURATION_MS_MAX / part_ms[i], &n));
        sum += n * part_ms[i];
    }
    if (sum > RV_DURATION_MS_MAX)
        return rv_load_invalid(load, NULL, "the maximum duration is " RV_DURATION_MAX_TEXT);
    *duration_ms = sum;
    return RV_OK;
}

enum rv_err rv_load_duration(struct rv_load *load, const struct rv_json *object, const char *key,
                             int64_t *duration_ms)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(key));
    if (value == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, rv_str_of(key));
    enum rv_err err = RV_OK;
    struct rv_str text = rv_json_str(value);
    if (value->type == RV_JSON_OBJECT)
        err = duration_parts(load, value, duration_ms);
    else if (text.at != NULL && rv_is_expression(text))
        err = rv_load_unsupported(load, NULL, "an expression as %s is not supported yet", key);
    else if (text.at == NULL || rv_duration_parse(text, duration_ms) != RV_OK)
        err = rv_load_invalid(
            load, NULL,
            "%s must be a duration, such as PT30S or {seconds: 30}, up to " RV_DURATION_MAX_TEXT,
            key);
    rv_load_pop(load, path);
    return err;
}

enum rv_err rv_load_computed_duration(struct rv_load *load, const struct rv_json *object,
                                      const char *key, uint32_t available,
                                      struct rv_duration *ret_duration)
{
    const struct rv_json *value = rv_json_get(object, rv_str_of(key));
    if (value == NULL || value->type != RV_JSON_STRING || !rv_is_expression(rv_json_str(value)))
        return rv_load_duration(load, object, key, &ret_duration->ms);
    size_t path = rv_load_push(load, rv_str_of(key));
    enum rv_err err = rv_load_template(load, value, available, &ret_duration->computed);
    rv_load_pop(load, path);
    return err;
}

/* The names under use.<kind>, for a suggestion. */
static const char *suggest_named(struct rv_load *load, const struct rv_json *named,
                                 struct rv_str name)
{
    uint32_t count = named != NULL && named->type == RV_JSON_OBJECT ? named->len : 0;
    const char **names = RV_NEW_ARRAY(load->arena, const char *, count + 1);
    for (uint32_t i = 0; names != NULL && i < count; i++) {
        names[i] = rv_arena_str(load->arena, rv_json_str(&named->u.members[i].key)).at;
        if (names[i] == NULL)
            return NULL;
    }
    return names != NULL ? rv_suggest(name, names) : NULL;
}

/* A name that is a duration, or an example of one. */
static struct rv_str duration_meant(struct rv_str name)
{
    int64_t ms;
    return rv_duration_parse(name, &ms) == RV_OK ? name : RV_STR("PT5S");
}

enum rv_err rv_load_enter_named(struct rv_load *load, const char *kind, struct rv_str name,
                                const struct rv_json **ret_value, struct rv_str *ret_saved)
{
    const struct rv_json *named = rv_json_get(load->use, rv_str_of(kind));
    *ret_value = rv_json_get(named, name);
    if (*ret_value == NULL) {
        const char *near = suggest_named(load, named, name);
        if (near == NULL && strcmp(kind, "timeouts") == 0)
            return rv_load_invalid(load, NULL,
                                   "there is no \"%.*s\" under use.timeouts; for a duration write "
                                   "{ after: %.*s }",
                                   RV_STR_FMT(name), RV_STR_FMT(duration_meant(name)));
        return near != NULL ? rv_load_invalid(load, NULL,
                                              "there is no \"%.*s\" under use.%s; "
                                              "did you mean \"%s\"?",
                                              RV_STR_FMT(name), kind, near)
                            : rv_load_invalid(load, NULL,
                                              "there is no \"%.*s\" under use.%s; "
                                              "define it there",
                                              RV_STR_FMT(name), kind);
    }
    *ret_saved = rv_arena_str(load->arena, rv_buf_str(&load->path));
    if (ret_saved->at == NULL)
        return rv_load_full(load);
    load->path.len = 0;
    (void)rv_load_push(load, RV_STR("use"));
    (void)rv_load_push(load, rv_str_of(kind));
    (void)rv_load_push(load, name);
    return RV_OK;
}

void rv_load_leave_named(struct rv_load *load, struct rv_str saved)
{
    rv_assert(saved.at != NULL);
    load->path.len = 0;
    rv_buf_add_str(&load->path, saved);
}

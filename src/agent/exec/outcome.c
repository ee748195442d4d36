#include "agent/exec/outcome.h"

#include "base/limits.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "json/json.h"

#include <string.h>

#define PAYLOAD_LIMIT_TEXT "1 MiB"

/* ---- the end of stderr ---- */

void rv_exec_tail_add(struct rv_exec_tail *tail, const char *bytes, size_t count)
{
    if (count > RV_EXEC_TAIL_BYTES) {
        bytes += count - RV_EXEC_TAIL_BYTES;
        count = RV_EXEC_TAIL_BYTES;
    }
    if (tail->len + count > RV_EXEC_TAIL_ROOM) {
        size_t kept = RV_EXEC_TAIL_BYTES - count;
        memmove(tail->bytes, tail->bytes + tail->len - kept, kept);
        tail->len = kept;
    }
    memcpy(tail->bytes + tail->len, bytes, count);
    tail->len += count;
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct rv_str trimmed(struct rv_str text)
{
    while (text.len > 0 && blank(text.at[text.len - 1]))
        text.len--;
    while (text.len > 0 && blank(text.at[0])) {
        text.at++;
        text.len--;
    }
    return text;
}

struct rv_str rv_exec_tail_text(const struct rv_exec_tail *tail)
{
    struct rv_str text = {tail->bytes, tail->len};
    if (text.len > RV_EXEC_TAIL_BYTES) {
        text.at += text.len - RV_EXEC_TAIL_BYTES;
        text.len = RV_EXEC_TAIL_BYTES;
    }
    /* Bytes 10xxxxxx are the rest of a character that was cut. */
    bool cut = text.len == RV_EXEC_TAIL_BYTES;
    while (cut && text.len > 0 && ((unsigned char)text.at[0] & 0xc0) == 0x80) {
        text.at++;
        text.len--;
    }
    return trimmed(text);
}

/* ---- the command's own word ---- */

static const char *const error_names[] = {"type",      "title",  "detail",       "status",
                                          "transient", "effect", "retryAfterMs", NULL};

/* NULL if every member has a known name. */
static const char *names_wrong(struct rv_arena *arena, const struct rv_json *error)
{
    for (uint32_t i = 0; i < error->len; i++) {
        struct rv_str key = rv_json_str(&error->u.members[i].key);
        size_t n = 0;
        while (error_names[n] != NULL && !rv_str_is(key, error_names[n]))
            n++;
        if (error_names[n] != NULL)
            continue;
        const char *near = rv_suggest(key, error_names);
        return rv_arena_printf(arena, "invalid error on stdout: unknown property \"%.*s\"%s%s%s",
                               RV_STR_FMT(key), near ? "; did you mean \"" : "", near ? near : "",
                               near ? "\"?" : "")
            .at;
    }
    return NULL;
}

/* Reads a text member, if it is there, as a terminated copy. */
static bool text_read(struct rv_arena *arena, const struct rv_json *error, const char *name,
                      const char **text)
{
    const struct rv_json *value = rv_json_get(error, rv_str_of(name));
    if (value == NULL)
        return true;
    if (value->type != RV_JSON_STRING || value->len == 0)
        return false;
    *text = rv_arena_str(arena, rv_json_str(value)).at;
    return *text != NULL;
}

/* NULL, or why the server would refuse this type. */
static const char *type_wrong(struct rv_arena *arena, const struct rv_json *error)
{
    const struct rv_json *value = rv_json_get(error, RV_STR("type"));
    if (value == NULL)
        return NULL;
    struct rv_str text = rv_json_str(value);
    if (text.len == 0)
        return "invalid error on stdout: type must be a non-empty string";
    uint32_t hidden = rv_utf8_hidden(text);
    if (hidden != UINT32_MAX)
        return rv_arena_printf(arena,
                               "invalid error on stdout: type contains the control or formatting "
                               "character U+%04X; remove it",
                               (unsigned)hidden)
            .at;
    if (text.len > RV_KEY_BYTES_MAX)
        return rv_arena_printf(arena, "invalid error on stdout: type is longer than %d bytes",
                               RV_KEY_BYTES_MAX)
            .at;
    return NULL;
}

static bool number_read(const struct rv_json *error, const char *name, int64_t max, int64_t *number)
{
    const struct rv_json *value = rv_json_get(error, rv_str_of(name));
    return value == NULL || (rv_json_int(value, number) && *number >= 0 && *number <= max);
}

static bool effect_read(const struct rv_json *error, enum rv_effect *effect)
{
    const struct rv_json *value = rv_json_get(error, RV_STR("effect"));
    if (value == NULL)
        return true;
    struct rv_str text = rv_json_str(value);
    *effect = rv_str_is(text, "none") ? RV_EFFECT_NONE : RV_EFFECT_UNKNOWN;
    return rv_str_is(text, "none") || rv_str_is(text, "unknown");
}

static bool transient_read(const struct rv_json *error, int *transient)
{
    const struct rv_json *value = rv_json_get(error, RV_STR("transient"));
    if (value == NULL)
        return true;
    *transient = value->truth;
    return value->type == RV_JSON_BOOL;
}

/* Takes over what the error says; NULL, or why it cannot be used: then nothing was taken. */
static const char *error_take(struct rv_arena *arena, const struct rv_json *error,
                              struct rv_failure *failure)
{
    struct rv_failure said = *failure;
    int64_t status = said.status;
    if (error->type != RV_JSON_OBJECT)
        return "invalid error on stdout: it must be an object";
    const char *wrong = names_wrong(arena, error);
    if (wrong == NULL)
        wrong = type_wrong(arena, error);
    if (wrong != NULL)
        return wrong;
    if (!text_read(arena, error, "type", &said.type))
        return "invalid error on stdout: out of memory";
    if (!text_read(arena, error, "title", &said.title) ||
        !text_read(arena, error, "detail", &said.detail))
        return "invalid error on stdout: title and detail must be non-empty strings";
    if (!number_read(error, "status", 999, &status))
        return "invalid error on stdout: status must be an integer from 0 to 999";
    if (!number_read(error, "retryAfterMs", INT64_C(1) << 53, &said.retry_after_ms))
        return "invalid error on stdout: retryAfterMs must be a non-negative integer, in "
               "milliseconds";
    if (!effect_read(error, &said.effect))
        return "invalid error on stdout: effect must be \"none\" or \"unknown\"";
    if (!transient_read(error, &said.transient))
        return "invalid error on stdout: transient must be true or false";
    said.status = (int)status;
    *failure = said;
    return NULL;
}

static struct rv_str last_line(struct rv_str text)
{
    text = trimmed(text);
    const char *newline = text.len > 0 ? memrchr(text.at, '\n', text.len) : NULL;
    if (newline == NULL)
        return text;
    size_t before = (size_t)(newline + 1 - text.at);
    return (struct rv_str){text.at + before, text.len - before};
}

/* {"error": {...}} alone on the last line of stdout is the command's word on its failure. Any other
 * line is just output. A word that cannot be used is told, and does not count: what it meant to say
 * of the effect is not guessed. */
static void error_read(struct rv_arena *arena, struct rv_str output, struct rv_failure *failure)
{
    struct rv_json value;
    struct rv_str line = last_line(output);
    if (rv_json_parse(arena, line, RV_JSON_DEPTH_MAX, &value, NULL) != RV_OK)
        return;
    const struct rv_json *error = rv_json_get(&value, RV_STR("error"));
    if (error == NULL || value.len != 1)
        return;
    const char *wrong = error_take(arena, error, failure);
    if (wrong != NULL)
        failure->title = rv_arena_printf(arena, "%s; %s", failure->title, wrong).at;
}

/* ---- outcomes ---- */

static void failed_exit(struct rv_arena *arena, const struct rv_exec_result *result,
                        struct rv_failure *failure)
{
    failure->transient = result->number == RV_EXEC_TEMPORARY;
    failure->type = rv_arena_printf(arena, "exit-%d", result->number).at;
    failure->title =
        rv_arena_printf(arena, "the command ended with exit code %d", result->number).at;
    error_read(arena, result->output, failure);
}

static void failed_signal(struct rv_arena *arena, const struct rv_exec_result *result,
                          struct rv_failure *failure)
{
    const char *name = sigabbrev_np(result->number);
    if (name == NULL)
        name = rv_arena_printf(arena, "%d", result->number).at;
    failure->type = rv_arena_printf(arena, "signal-%s", name).at;
    failure->title = rv_arena_printf(arena, "the command was ended by signal %s", name).at;
}

/* Exit code 0: the output, or what is wrong with it. */
static void succeeded(struct rv_arena *arena, const struct rv_exec_result *result,
                      struct rv_exec_outcome *outcome)
{
    struct rv_json value;
    struct rv_json_fault fault = {.message = "out of memory"};
    struct rv_str output = trimmed(result->output).len > 0 ? result->output : RV_STR("null");
    enum rv_err err = rv_json_parse(arena, output, RV_JSON_DEPTH_MAX, &value, &fault);
    if (err == RV_OK) {
        outcome->output = rv_arena_str(arena, output);
        return;
    }
    outcome->failure.type = "output-no-json";
    if (err == RV_ERR_LIMIT && fault.line != 0) {
        outcome->failure.title =
            rv_arena_printf(arena, "stdout:%u:%u: the output is nested deeper than %d levels",
                            fault.line, fault.column, RV_JSON_DEPTH_MAX)
                .at;
        return;
    }
    outcome->failure.title = rv_arena_printf(
                                 arena,
                                 "stdout:%u:%u: %s; the output must be one JSON value, such as "
                                 "{\"ok\": true}; write other text to stderr",
                                 fault.line, fault.column, fault.message)
                                 .at;
}

void rv_exec_outcome(struct rv_arena *arena, const struct rv_exec_result *result,
                     struct rv_exec_outcome *ret_outcome)
{
    *ret_outcome = (struct rv_exec_outcome){.output = RV_STR_NONE};
    struct rv_failure *failure = &ret_outcome->failure;
    failure->effect = RV_EFFECT_UNKNOWN;
    if (result->errors.len > 0)
        failure->detail = rv_arena_str(arena, result->errors).at;
    switch (result->end) {
    case RV_EXEC_NOT_STARTED:
        failure->type = "not-started";
        failure->title = rv_arena_printf(arena, "the command cannot be started: %s",
                                         result->why != NULL ? result->why
                                                             : strerrordesc_np(result->number))
                             .at;
        failure->transient = 1;
        failure->effect = RV_EFFECT_NONE;
        break;
    case RV_EXEC_EXITED:
        if (result->number == 0)
            succeeded(arena, result, ret_outcome);
        else
            failed_exit(arena, result, failure);
        break;
    case RV_EXEC_SIGNALLED:
        failed_signal(arena, result, failure);
        break;
    case RV_EXEC_FLOODED:
        failure->type = "output-too-large";
        failure->title = "the output is larger than " PAYLOAD_LIMIT_TEXT
                         "; store the output elsewhere and print a reference";
        break;
    case RV_EXEC_CANCELLED:
        failure->type = "cancelled";
        failure->title =
            "the command was killed because the server revoked the attempt of the step";
        failure->transient = 1;
        break;
    case RV_EXEC_HURRIED:
        failure->type = "agent-stopped";
        failure->title = "the command was killed because its agent stopped";
        failure->transient = 1;
        break;
    case RV_EXEC_LATE: /* sent only if a renewal has moved the deadline meanwhile */
        failure->type = "late";
        failure->title = "the command was killed because its deadline had passed";
        failure->transient = 1;
        break;
    }
}

/* log.h - the log of a program: one line per event on stderr, as text or as JSON. */
#ifndef RV_BASE_OS_LOG_H
#define RV_BASE_OS_LOG_H

#include "base/log_field.h"
#include "base/log_level.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rv_log_form {
    RV_LOG_AUTO, /* text if stderr is a terminal, else JSON */
    RV_LOG_TEXT, /* 14:03:12.345 warning alert task=06DWX3T9H2K4Q alert=failed */
    RV_LOG_JSON  /* {"time":"2026-11-21T14:03:12.345Z","level":"warning","event":"alert",...} */
};

enum { RV_LOG_LINE_BYTES = 8192 };

/* Once, before other threads log. */
void rv_log_set_form(enum rv_log_form form);
/* The same by name: "text", "json" or "auto". False: unknown name; nothing changes. */
bool rv_log_choose(const char *name);
/* Whether lines are JSON, by choice or since stderr is not a terminal. */
bool rv_log_is_json(void);
/* Why a program does not start or cannot continue: "PROGRAM: message" on stderr; after RV_LOG_JSON
 * was chosen a line of the log with the event "refused". */
__attribute__((format(printf, 2, 3))) void rv_log_refusal(const char *program, const char *format,
                                                          ...);
/* Writes the line and its newline to `ret_line` (RV_LOG_LINE_BYTES) and returns the length. `event`
 * is a short fixed name. A value that is too long is cut between two characters and ends with an
 * ellipsis (U+2026). Text lines quote values with blanks, quotes, "=" or escapes. */
size_t rv_log_line(enum rv_log_level level, const char *event, const struct rv_log_field *fields,
                   size_t count, char *ret_line);
/* From any thread; never waits for the reader of stderr (base/os/sink.h). Lines that find no room
 * are dropped, and counted by a line "log-lines-dropped" when there is room again. One write per
 * line, so lines do not mix. */
void rv_log_write(enum rv_log_level level, const char *event, const struct rv_log_field *fields,
                  size_t count);
/* Bytes in the same queue. False: dropped, and counted as `lines`. */
bool rv_log_put(const char *bytes, size_t len, uint64_t lines);
/* The same on stdout, for programs that run for long: what finds no room is dropped. */
__attribute__((format(printf, 1, 2))) void rv_log_print(const char *format, ...);
/* Lines of the log since the start. */
uint64_t rv_log_dropped(void);
/* Before the process ends by other means than exit(): waits a moment for the reader. */
void rv_log_flush(void);

/* rv_log(RV_LOG_INFO, "listening", RV_LOG_STR("url", url)); at least one field. */
#define rv_log(level, event, ...)                                                                  \
    rv_log_write((level), (event), (const struct rv_log_field[]){__VA_ARGS__},                     \
                 sizeof((const struct rv_log_field[]){__VA_ARGS__}) / sizeof(struct rv_log_field))

#endif

/* log.h - the server's log: one line per event on stderr, for people on a terminal, else JSON. */
#ifndef RV_BASE_OS_LOG_H
#define RV_BASE_OS_LOG_H

#include "base/log_level.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rv_log_form {
    RV_LOG_AUTO, /* text if stderr is a terminal, else JSON */
    RV_LOG_TEXT, /* 14:03:12.345 warning alert task=06DWX3T9H2K4Q kind=failed */
    RV_LOG_JSON  /* {"time":"2026-11-21T14:03:12.345Z","level":"warning","event":"alert",...} */
};

/* One named value of a line. */
struct rv_log_field {
    const char *name;
    struct rv_str text; /* absent: `number` holds the value */
    int64_t number;
    bool raw; /* `text` is JSON already */
};

#define RV_LOG_STR(name, value) ((struct rv_log_field){(name), (value), 0, false})
#define RV_LOG_INT(name, value) ((struct rv_log_field){(name), RV_STR_NONE, (value), false})
#define RV_LOG_RAW(name, value) ((struct rv_log_field){(name), (value), 0, true})

/* Once, before other threads log. */
void rv_log_set_form(enum rv_log_form form);
/* Why a program does not start: "PROGRAM: message" on stderr; after RV_LOG_JSON was chosen a line
 * of the log with the event "refused". */
__attribute__((format(printf, 2, 3))) void rv_log_refusal(const char *program, const char *format,
                                                          ...);
/* From any thread. One write per line, so lines do not mix. `event` is a short fixed name. Fields
 * that do not fit into 8 KiB are left out. */
void rv_log_write(enum rv_log_level level, const char *event, const struct rv_log_field *fields,
                  size_t count);

/* rv_log(RV_LOG_INFO, "listening", RV_LOG_STR("url", url)); at least one field. */
#define rv_log(level, event, ...)                                                                  \
    rv_log_write((level), (event), (const struct rv_log_field[]){__VA_ARGS__},                     \
                 sizeof((const struct rv_log_field[]){__VA_ARGS__}) / sizeof(struct rv_log_field))

#endif

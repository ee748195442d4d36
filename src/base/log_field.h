/* log_field.h - one named value of a line of the log. */
#ifndef RV_BASE_LOG_FIELD_H
#define RV_BASE_LOG_FIELD_H

#include "base/str.h"

#include <stdint.h>

struct rv_log_field {
    const char *name;
    struct rv_str text; /* absent: `number` holds the value */
    int64_t number;
};

#define RV_LOG_STR(name, value) ((struct rv_log_field){(name), (value), 0})
#define RV_LOG_INT(name, value) ((struct rv_log_field){(name), RV_STR_NONE, (value)})

#endif

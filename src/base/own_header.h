/* own_header.h - the headers that Reeve itself sends with each request of `call: http`. */
#ifndef RV_BASE_OWN_HEADER_H
#define RV_BASE_OWN_HEADER_H

#include "base/str.h"

#include <stdbool.h>
#include <string.h>

/* Why a header with this name cannot be set; such names are refused at publication and, of a
 * computed object, when the step is carried out. */
#define RV_OWN_HEADER_WHY "Reeve sets this header in every request, and it cannot be overridden"

/* In any case of the letters. */
static inline bool rv_is_own_header(struct rv_str name)
{
    static const char *const own[] = {"idempotency-key", "reeve-fence", "reeve-remaining-ms",
                                      "traceparent", "tracestate"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        bool same = name.len == strlen(own[i]);
        for (size_t at = 0; same && at < name.len; at++) {
            char c = name.at[at];
            same = (c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c) == own[i][at];
        }
        if (same)
            return true;
    }
    return false;
}

#endif

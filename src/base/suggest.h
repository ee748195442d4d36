/* suggest.h - "did you mean": the known name that is closest to a mistyped one. */
#ifndef RV_BASE_SUGGEST_H
#define RV_BASE_SUGGEST_H

#include "base/str.h"

/* Of `names` (ended by NULL) the one with the fewest insertions, deletions, replacements and swaps
 * of neighbours, letters compared without case; NULL when even that one is too far away. */
const char *rv_suggest(struct rv_str given, const char *const *names);

/* The same for an option: also the one of `names` that other programs call `given` (--port). */
const char *rv_suggest_option(struct rv_str given, const char *const *names);

#endif

/* openapi_words.h - the closed sets of words that /openapi.json gives as enumerations. */
#ifndef RV_API_OPENAPI_WORDS_H
#define RV_API_OPENAPI_WORDS_H

#include <stddef.h>

/* A row of tbl/words.def. */
struct rv_words {
    const char *name;
    const char *const *words; /* ended by NULL */
    const char *description;
};

/* All of them, ended by one without a name. */
const struct rv_words *rv_openapi_words(void);

#endif

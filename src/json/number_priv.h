/* number_priv.h - between the text of a number and its double. */
#ifndef RV_JSON_NUMBER_PRIV_H
#define RV_JSON_NUMBER_PRIV_H

#include "json/json.h"

#include <math.h>

enum { JSON_REAL_TEXT_BYTES = 40 };

/* The nearest double; infinite when the text is beyond all of them. */
double rv_json_real_of_text(struct rv_str text);
/* The fewest digits that read back as the same double. Not for NaN and infinities, nor for what is
 * written as an integer. */
struct rv_str rv_json_text_of_real(double real, char text[static JSON_REAL_TEXT_BYTES]);

/* All its digits are written: it is short enough for that. */
static inline bool json_is_written_as_int(double real)
{
    return fabs(real) <= 1e17 && real == trunc(real) && (real != 0 || !signbit(real));
}

#endif

/* number_priv.h - between the text of a number and its double. */
#ifndef RV_JSON_NUMBER_PRIV_H
#define RV_JSON_NUMBER_PRIV_H

#include "json/json.h"

#include <math.h>

enum { JSON_REAL_TEXT_BYTES = 40 };

/* The nearest double; infinite when the text is beyond all of them. */
double json_real_of_text(struct rv_str text);
/* As rv_json_write has it: the fewest digits that read back as the same double, of a large integer
 * all its digits. Not for NaN and infinities. */
struct rv_str json_text_of_real(double real, char text[static JSON_REAL_TEXT_BYTES]);

/* Its digits are all written: it is short enough for that. */
static inline bool json_is_written_as_int(double real)
{
    return fabs(real) <= 1e17 && real == trunc(real) && (real != 0 || !signbit(real));
}

#endif

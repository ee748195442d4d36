/* transcript.h - what a world has said, line by line: the part that matters, and whether two agree.
 */
#ifndef RV_SIM_TRANSCRIPT_H
#define RV_SIM_TRANSCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The lines at the beginning that say what world this is to be. */
enum { TRANSCRIPT_HEAD = 2 };

/* The last `lines` of those that tell of the task (its id as text) or of all tasks alike; with an
 * empty id the last lines of all. `before` stands before each. */
void transcript_tail(FILE *in, const char *task, size_t lines, const char *before, FILE *out);
/* True when both say the same after the first `skip` lines. Else `out` gets the first line in which
 * they differ. */
bool transcript_same(FILE *wanted, FILE *got, size_t skip, const char *before, FILE *out);

#endif

/* program.h - whether a file can be executed, and if not, what is to be changed. */
#ifndef RV_AGENT_EXEC_PROGRAM_H
#define RV_AGENT_EXEC_PROGRAM_H

#include "base/arena.h"

#include <stdbool.h>

/* NULL: nothing is seen that would hinder the file `path`, or the interpreter in its first line.
 * Else what is wrong and its cure, on the arena. `search` is a list as the variable PATH is one,
 * for "#!/usr/bin/env NAME"; NULL: none. *ret_absent: there is no such file. */
const char *rv_program_wrong(struct rv_arena *arena, const char *path, const char *search,
                             bool *ret_absent);

#endif

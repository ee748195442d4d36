/* enumerate.h - every boundary of every scenario is crashed at, in every way. */
#ifndef RV_SIM_ENUMERATE_H
#define RV_SIM_ENUMERATE_H

#include <stdbool.h>

extern const char enumerate_usage[];

/* Do the options ask for scenarios? */
bool enumerate_wants(char **argv);
/* The program then; its exit code. */
int enumerate_main(char **argv);

#endif

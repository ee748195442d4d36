/* mutant.h - planted mistakes: what the simulator must find. The product has no code of them. */
#ifndef RV_BASE_MUTANT_H
#define RV_BASE_MUTANT_H

/* Each row of mutant.def is a slip that a programmer could make in one place, which asks
 * RV_MUTANT_ON(NAME) there. Built with -DRV_MUTANT=0 (meson -Dmutant=0), the program makes the one
 * that rv_mutant names, or none; built as a product, the condition is the constant 0. A server with
 * mutants does not compile (server/server.h). `./dev sim --mutants` walks all of them. */
enum rv_mutant {
    RV_MUTANT_NONE,
#define RV_MUTANT_ROW(name, room, expected, what) RV_MUTANT_##name,
#include "base/tbl/mutant.def"
#undef RV_MUTANT_ROW
    RV_MUTANT_COUNT
};

#ifdef RV_MUTANT
/* Its initial value is RV_MUTANT. */
extern enum rv_mutant rv_mutant;
enum { RV_MUTANT_BUILD = 1 };
#define RV_MUTANT_ON(name) (rv_mutant == RV_MUTANT_##name)
#else
enum { RV_MUTANT_BUILD = 0 };
#define RV_MUTANT_ON(name) (RV_MUTANT_##name == RV_MUTANT_NONE) /* never: its row is another */
#endif

#endif

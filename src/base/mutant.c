#include "base/mutant.h"

enum rv_mutant rv_mutant = RV_MUTANT;

#include "expr/node_priv.h"

static const struct builtin builtins[] = {
#define NATIVE(function, name, arity) {name, BUILTIN_NATIVE, arity, 0, function, NULL},
#define NODE(op, name, arity) {name, BUILTIN_NODE, arity, OP_##op, NULL, NULL},
#define SOURCE(name, arity, source) {name, BUILTIN_SOURCE, arity, 0, NULL, source},
#define REFUSED(name, arity, why) {name, BUILTIN_REFUSED, arity, 0, NULL, why},
#define LATER(name, arity, why) {name, BUILTIN_LATER, arity, 0, NULL, why},
#include "expr/tbl/builtin.def"
#undef NATIVE
#undef NODE
#undef SOURCE
#undef REFUSED
#undef LATER
};

const struct builtin *builtin_at(size_t i)
{
    return i < sizeof builtins / sizeof builtins[0] ? &builtins[i] : NULL;
}

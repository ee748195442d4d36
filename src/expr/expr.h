/* expr.h - jq expressions: compiled once, evaluated with fuel and a memory cap, without any I/O. */
/* The language is jq 1.6 with what 1.7 made of its corners: `try` does not catch what is raised
 * behind it, `|= empty` deletes, `if` needs no `else`, limit(0; f) gives nothing. Numbers keep
 * their text until something computes with them. Refused for good, by name and with the reason:
 * whatever reads the environment, the clock, files or other inputs. Not supported yet: regular
 * expressions (test takes plain text), dates, ?// patterns, fromstream, @base32. */
#ifndef RV_EXPR_EXPR_H
#define RV_EXPR_EXPR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

#include <stddef.h>
#include <stdint.h>

/* Compiled, immutable, lives on the arena given to compile; may be evaluated by many at once. */
struct rv_expr;

struct rv_expr_fault {
    size_t offset;         /* into the expression's text; at evaluation of the failing operation */
    struct rv_str message; /* on the arena of the call: what and, where known, the cure */
    struct rv_json value;  /* evaluation: what `error(v)` raised, else null */
};

/* `variables` names the $variables that an evaluation supplies, without the dollar.
 * INVALID: does not parse, unknown variable or function. UNSUPPORTED: valid jq that is not done
 * yet. LIMIT/MEMORY: the arena is full. `*ret_fault` is filled on INVALID and UNSUPPORTED. */
RV_CHECK enum rv_err rv_expr_compile(struct rv_arena *arena, struct rv_str text,
                                     const struct rv_str *variables, size_t variables_count,
                                     struct rv_expr **ret_expr, struct rv_expr_fault *ret_fault);

/* What one evaluation may use. Fuel is a unit of about 10 ns of work and is counted down; the
 * evaluator stops within one unit of work after it reaches 0. */
struct rv_expr_budget {
    int64_t fuel;
};

/* The first output of the expression for `input`; null if there is none. `values[i]` belongs to
 * variables[i] of compile. The result and all temporary values live on `arena`, whose cap is the
 * memory cap.
 * INVALID: the expression raised an error (type error, error(...)), `*ret_fault` says which.
 * LIMIT: out of fuel, over the arena's cap, or nested too deep; `*ret_fault` says which.
 * MEMORY: the system has none. */
RV_CHECK enum rv_err rv_expr_eval(const struct rv_expr *expr, const struct rv_json *input,
                                  const struct rv_json *values, struct rv_expr_budget *budget,
                                  struct rv_arena *arena, struct rv_json *ret_value,
                                  struct rv_expr_fault *ret_fault);

#endif

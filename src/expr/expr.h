/* expr.h - jq expressions: compiled once, evaluated with fuel and a memory cap, without any I/O. */
/* The language is that of the jq 1.7 manual, whose examples are a test. Numbers keep their text
 * until something computes with them, and compare by it. Refused for good, by name and with the
 * reason: whatever reads the environment, the clock, files or other inputs. Not supported yet:
 * regular expressions (test takes plain text), dates, ?// patterns, fromstream, @base32. */
#ifndef RV_EXPR_EXPR_H
#define RV_EXPR_EXPR_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
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

/* Whether test() is given a literal that is a regular expression: evaluated, it raises. */
bool rv_expr_has_pattern(const struct rv_expr *expr, struct rv_arena *arena,
                         struct rv_expr_fault *ret_fault);

/* Whether the text says that there may be more than one output, as in `.[]` and `1, 2`; false where
 * that depends on a function defined with `def`. */
bool rv_expr_gives_several(const struct rv_expr *expr);

/* What one evaluation may use. A unit of fuel is about 10 ns of work; how many an evaluation uses
 * depends on the expression and its values alone, never on the clock or the machine.
 *
 * With a `pause`, it is called each time that another `slice` of units is used up, from the middle
 * of the evaluation, with the units used so far. It may take as long as it likes and may switch to
 * another stack: until it returns, the evaluation needs its stack, its arena, the expression, the
 * input and the values as they are. Wherever it pauses, the result and the fuel used are the same.
 * No operation does more than about 2 ms of work between two looks at the slice, but for tojson,
 * fromjson and @base64d of more than 1 MB of text. When it gives false the evaluation ends with
 * BUSY.
 *
 * An evaluation owns nothing outside its arena, so a stack that waits in `pause` may also be thrown
 * away as it is. */
struct rv_expr_budget {
    int64_t fuel;  /* counted down to what is left, 0 at the least */
    int64_t slice; /* with a `pause`: above 0; `pause` may change it for the next one */
    bool (*pause)(void *context, int64_t fuel_used); /* NULL: runs to its end */
    void *context;                                   /* borrowed */
};

/* The first output of the expression for `input`; null if there is none. `values[i]` belongs to
 * variables[i] of compile. The result and all temporary values live on `arena`, whose cap is the
 * memory cap.
 * INVALID: the expression raised an error (type error, error(...)), `*ret_fault` says which.
 * LIMIT: out of fuel, over the arena's cap, or nested too deep; `*ret_fault` says which.
 * MEMORY: the system has none. BUSY: given up in `pause`. */
RV_CHECK enum rv_err rv_expr_eval(const struct rv_expr *expr, const struct rv_json *input,
                                  const struct rv_json *values, struct rv_expr_budget *budget,
                                  struct rv_arena *arena, struct rv_json *ret_value,
                                  struct rv_expr_fault *ret_fault);

#endif

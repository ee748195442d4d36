/* eval_priv.h - the evaluator's state, and what the native functions may use of it. */
#ifndef RV_EXPR_EVAL_PRIV_H
#define RV_EXPR_EVAL_PRIV_H

#include "base/assert.h"
#include "expr/node_priv.h"

/* Levels of evaluation, each a few hundred bytes of stack; test_expr_limits measures that the
 * deepest expressions stay within 256 KiB (gcc 12 -O2 needs 180). */
enum { EVAL_DEPTH_MAX = 350 };

/* One entry of the environment: a variable, a parameter's expression or a label. Entries live on
 * the stack of whoever binds them, since nothing of an evaluation outlives its frame. */
struct link {
    const struct link *up;
    union {
        struct rv_json value;
        struct {
            const struct node *node;
            const struct link *env;
        } closure;
        uint64_t label;
    } u;
};

/* Where in the input a value stands: its key, and where that stands. Lives on the stack as well.
 * PATH_ROOT is the input itself; PATH_LOST a value that was computed and stands nowhere. */
struct path {
    const struct path *up;
    struct rv_json key;
};
extern const struct path path_root;
extern const struct path path_lost;
#define PATH_ROOT (&path_root)
#define PATH_LOST (&path_lost)

/* What flows through a pipe. `path` is NULL unless somebody asked for paths. */
struct item {
    struct rv_json value;
    const struct path *path;
};

enum ev_stop { EV_RUNS, EV_RAISED, EV_BREAK, EV_LIMIT, EV_GIVEN_UP };

/* The most recent values that grew at their end; see ev_append. */
enum { EV_GROWING = 4 };
struct growing {
    const void *at;
    size_t used;
    size_t room;
};

/* One evaluation. Every function below that gives a bool gives false when the evaluation has to
 * unwind, and `stop` says why. */
struct ev {
    int64_t fuel;    /* of this slice */
    int64_t reserve; /* of the slices after it */
    const struct rv_expr_budget *budget;
    struct rv_arena *arena;
    const struct rv_json *globals;
    uint32_t depth;
    enum ev_stop stop;
    uint32_t offset;       /* of the operation that runs, for its error */
    bool built;            /* some container was made: the result may be deeper than allowed */
    struct rv_json raised; /* EV_RAISED */
    uint64_t break_to;     /* EV_BREAK: the label */
    uint64_t labels;       /* given out so far */
    const char *limit;     /* EV_LIMIT, EV_GIVEN_UP: why */
    struct growing growing[EV_GROWING];
    unsigned growing_next;
};

/* Takes each output of a generator, in the generator's own stack frame. */
struct sink {
    bool (*take)(struct ev *ev, struct sink *sink, const struct item *item);
};

/* eval.c: a node that is `single`, and any node. */
bool eval_one(struct ev *ev, const struct node *node, const struct link *env,
              const struct rv_json *in, struct rv_json *ret);
bool eval_each(struct ev *ev, const struct node *node, const struct link *env,
               const struct item *in, struct sink *out);
/* Some output of any node, the last or the first; *ret_any says whether there was one. A path that
 * is kept moves to the arena. */
bool eval_last(struct ev *ev, const struct node *node, const struct link *env,
               const struct item *in, struct item *ret, bool *ret_any);
bool eval_first(struct ev *ev, const struct node *node, const struct link *env,
                const struct item *in, struct item *ret, bool *ret_any);
const struct link *eval_env_up(const struct link *env, uint32_t levels);

/* each.c: the nodes with more than one output. */
bool each_generator(struct ev *ev, const struct node *node, const struct link *env,
                    const struct item *in, struct sink *out);
/* fold.c */
bool fold_each(struct ev *ev, const struct node *node, const struct link *env,
               const struct item *in, struct sink *out);
bool fold_range(struct ev *ev, const struct node *node, const struct link *env,
                const struct item *in, struct sink *out);
bool fold_limit(struct ev *ev, const struct node *node, const struct link *env,
                const struct item *in, struct sink *out);
bool fold_recurse(struct ev *ev, const struct node *node, const struct link *env,
                  const struct item *in, struct sink *out);
/* combine.c: the nodes that combine every output of one with every output of another. */
bool combine_each_native(struct ev *ev, const struct node *node, const struct link *env,
                         const struct item *in, struct sink *out);
bool combine_each_object(struct ev *ev, const struct node *node, const struct link *env,
                         const struct item *in, struct sink *out);
bool combine_each_call(struct ev *ev, const struct node *node, const struct link *env,
                       const struct item *in, struct sink *out);
bool combine_one_object(struct ev *ev, const struct node *node, const struct link *env,
                        const struct rv_json *in, struct rv_json *ret);
bool combine_one_array(struct ev *ev, const struct node *node, const struct link *env,
                       const struct rv_json *in, struct rv_json *ret);

bool ev_limit(struct ev *ev, const char *which);
/* The slice is used up: pauses if more is left, else that is the limit. */
bool ev_next_slice(struct ev *ev);
/* Work that is about to be done: about 10 ns a unit. What takes long spends piece by piece: between
 * two calls nobody else gets a turn. */
static inline bool ev_spend(struct ev *ev, size_t units)
{
    ev->fuel -= (int64_t)units;
    return __builtin_expect(ev->fuel >= 0, 1) || ev_next_slice(ev);
}
/* In a loop over bytes, before byte `i`: pays for the next piece when `i` begins one. */
enum { EV_PIECE_BYTES = 3 * 32768 };
static inline bool ev_spend_piece(struct ev *ev, size_t i, size_t len, double units_per_byte)
{
    if (__builtin_expect(i % EV_PIECE_BYTES != 0, 1))
        return true;
    size_t piece = len - i < EV_PIECE_BYTES ? len - i : EV_PIECE_BYTES;
    return ev_spend(ev, (size_t)((double)piece * units_per_byte));
}
static inline bool ev_enter(struct ev *ev)
{
    return __builtin_expect(++ev->depth <= EVAL_DEPTH_MAX, 1) ||
           (ev->depth--, ev_limit(ev, "the expression is nested or recurses too deep"));
}

/* Unwinds to the generator that took this label; ev_broke_to, there, ends the unwinding. */
static inline bool ev_break(struct ev *ev, uint64_t label)
{
    rv_assert(label != 0);
    rv_assert(label <= ev->labels);
    ev->stop = EV_BREAK;
    ev->break_to = label;
    return false;
}
static inline bool ev_broke_to(struct ev *ev, uint64_t label)
{
    if (ev->stop != EV_BREAK || ev->break_to != label)
        return false;
    ev->stop = EV_RUNS;
    return true;
}

/* An error that `try` can catch, at the operation that runs. Texts as jq has them. */
bool ev_raise(struct ev *ev, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool ev_raise_value(struct ev *ev, const struct rv_json *value);
/* Ends an error that an optional access met; false when there is none to end. */
static inline bool ev_forgive(struct ev *ev, const struct node *node)
{
    if (!node->optional || ev->stop != EV_RAISED)
        return false;
    ev->stop = EV_RUNS;
    return true;
}
/* Room on the arena for `bytes` (charged), or NULL and a limit. */
void *ev_take(struct ev *ev, size_t bytes);
/* A run of bytes with more behind it, at the old place if nothing else stands there: a value that
 * is appended to again and again is copied only now and then. Values that hold the shorter run
 * still do, because they know their own length. Aligned to 16. */
void *ev_append(struct ev *ev, const void *at, size_t bytes, const void *more, size_t more_bytes);
struct rv_json ev_array(struct ev *ev, const struct rv_json *items, size_t len);
struct rv_json ev_object(struct ev *ev, const struct rv_json_member *members, size_t len);
struct rv_json ev_string(const char *bytes, size_t len);

/* value.c */
struct brief {
    char text[16];
};
/* The beginning of a value's JSON, for messages, as jq cuts it. */
struct brief value_brief(const struct rv_json *value);
const char *value_kind(const struct rv_json *value);
bool value_truth(const struct rv_json *value);
/* jq's order, with fuel; *ret_order is < 0, 0 or > 0. */
bool value_compare(struct ev *ev, const struct rv_json *a, const struct rv_json *b, int *ret_order);
/* Sorts pointers by key bytes, as `keys` has them. */
bool value_sort_members(struct ev *ev, const struct rv_json_member **members, size_t len);
/* Walks all of it: charges fuel, refuses what is nested deeper than `depth_max`, and gives an
 * upper bound of its JSON text. */
bool value_measure(struct ev *ev, const struct rv_json *value, unsigned depth_max,
                   size_t *ret_bytes);
/* The same of a result: it is written by whoever asked, within a limit of its own. Charged here is
 * what the digits of its numbers take. */
bool value_check_depth(struct ev *ev, const struct rv_json *value, unsigned depth_max);
/* NULL when there is no such member. */
const struct rv_json *value_get(struct ev *ev, const struct rv_json *object, struct rv_str key);
/* Where `wanted`, an array, begins in `array`. */
bool value_positions(struct ev *ev, const struct rv_json *array, const struct rv_json *wanted,
                     struct rv_json *ret);
/* Where item number `at` of `len` stands, from the end when it is negative; any number may come. */
double value_whole_index(double len, double at);
/* value[key] for any two values; value[from:to], either end may be null. */
bool value_index(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
                 struct rv_json *ret);
bool value_slice(struct ev *ev, const struct rv_json *value, const struct rv_json *from,
                 const struct rv_json *to, struct rv_json *ret);
/* The bounds of a slice of `len` things; false with an error when an end is no number. */
bool value_slice_bounds(struct ev *ev, size_t len, const struct rv_json *from,
                        const struct rv_json *to, size_t *ret_from, size_t *ret_to);
bool value_slice_key(struct ev *ev, const struct rv_json *from, const struct rv_json *to,
                     struct rv_json *ret);
static inline struct rv_str value_str(const struct rv_json *value)
{
    return (struct rv_str){value->u.text, value->len};
}
static inline double value_real(const struct rv_json *value)
{
    return value->computed ? value->u.real : rv_json_real(value);
}

/* arith.c: -number and its absolute value; digits that were written are kept. */
bool arith_negated(struct ev *ev, const struct rv_json *number, struct rv_json *ret);
bool arith_absolute(struct ev *ev, const struct rv_json *number, struct rv_json *ret);

/* What it takes to read a number: a text beyond what a double holds goes through strtod. */
static inline size_t number_units(const struct rv_json *number)
{
    if (number->computed)
        return 0;
    return number->len <= 15 ? 2 : 20 + number->len / 8;
}

/* An object under construction: keys in the order of their first appearance, the last value of
 * each. Finds keys by hash once it is large. */
struct object_builder {
    struct rv_json_member *members;
    size_t len;
    size_t room;
    uint32_t *slots; /* index of a member plus 1, or 0; NULL while small */
    size_t slots_len;
};
bool object_init(struct ev *ev, struct object_builder *builder, size_t room);
bool object_put(struct ev *ev, struct object_builder *builder, const struct rv_json *key,
                const struct rv_json *value);
/* The place of a member, or NULL. */
struct rv_json_member *object_find(struct ev *ev, struct object_builder *builder,
                                   struct rv_str key);
/* All members of an object. */
bool object_put_all(struct ev *ev, struct object_builder *builder, const struct rv_json *object);

/* text.c */
bool text_of_value(struct ev *ev, const struct rv_json *value, struct rv_str *ret_json);
/* Where `wanted` begins, from `from` on; beyond the end of `text` if nowhere. */
bool text_find(struct ev *ev, struct rv_str text, struct rv_str wanted, size_t from,
               size_t *ret_at);

bool text_repaired(struct ev *ev, struct rv_str bytes, struct rv_json *ret);

/* path.c: paths as chains on the stack, and as arrays of keys. */
bool path_array(struct ev *ev, const struct path *path, struct rv_json *ret);
bool path_keep(struct ev *ev, const struct path *path, const struct path **ret);
bool path_get(struct ev *ev, const struct rv_json *value, const struct rv_json *path,
              struct rv_json *ret);
bool path_set(struct ev *ev, const struct rv_json *value, const struct rv_json *keys, size_t count,
              const struct rv_json *new, struct rv_json *ret);
/* value with value[key] = new; value without value[key]. */
bool path_put(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
              const struct rv_json *new, struct rv_json *ret);
bool path_drop(struct ev *ev, const struct rv_json *value, const struct rv_json *key,
               struct rv_json *ret);
bool path_delete_all(struct ev *ev, const struct rv_json *value, const struct rv_json *paths,
                     struct rv_json *ret);
/* modify.c: a |= b */
bool modify_one(struct ev *ev, const struct node *node, const struct link *env,
                const struct rv_json *in, struct rv_json *ret);

#endif

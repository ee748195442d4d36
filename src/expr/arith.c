/* Operators and numbers. Computed numbers are doubles (jq manual, numbers). */
#include "expr/eval_priv.h"

#include <math.h>

static bool both(const struct rv_json *args, enum rv_json_type type)
{
    return args[0].type == type && args[1].type == type;
}

/* For both to be read, where they are texts. */
static bool pay_numbers(struct ev *ev, const struct rv_json *args)
{
    size_t units = number_units(&args[0]) + number_units(&args[1]);
    return units == 0 || ev_spend(ev, units);
}

static bool cannot(struct ev *ev, const struct rv_json *args, const char *done)
{
    struct brief a = value_brief(&args[0]);
    struct brief b = value_brief(&args[1]);
    return ev_raise(ev, "%s (%s) and %s (%s) cannot be %s", value_kind(&args[0]), a.text,
                    value_kind(&args[1]), b.text, done);
}

/* Of a text the same digits with the other sign, so that no digit is lost. */
bool arith_negated(struct ev *ev, const struct rv_json *number, struct rv_json *ret)
{
    if (number->computed)
        return *ret = rv_json_of_real(-number->u.real), true;
    bool negative = number->u.text[0] == '-';
    *ret = *number;
    ret->len = negative ? number->len - 1 : number->len + 1;
    if (negative)
        return ret->u.text++, true;
    char *text = ev_take(ev, ret->len);
    if (text == NULL)
        return false;
    text[0] = '-';
    memcpy(text + 1, number->u.text, number->len);
    ret->u.text = text;
    return true;
}

bool arith_absolute(struct ev *ev, const struct rv_json *number, struct rv_json *ret)
{
    bool negative = number->computed ? signbit(number->u.real) : number->u.text[0] == '-';
    return negative ? arith_negated(ev, number, ret) : (*ret = *number, true);
}

bool native_negate(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    (void)args;
    if (in->type != RV_JSON_NUMBER)
        return ev_raise(ev, "%s (%s) cannot be negated", value_kind(in), value_brief(in).text);
    return arith_negated(ev, in, ret);
}

static bool add_objects(struct ev *ev, const struct rv_json *args, struct rv_json *ret)
{
    struct object_builder builder;
    if (args[1].len == 1 && value_get(ev, &args[0], value_str(&args[1].u.members[0].key)) == NULL) {
        const struct rv_json_member *members = ev_append(ev, args[0].u.members,
                                                         args[0].len * sizeof *members,
                                                         args[1].u.members, sizeof *members);
        *ret = ev_object(ev, members, (size_t)args[0].len + 1);
        return members != NULL;
    }
    if (!object_init(ev, &builder, (size_t)args[0].len + args[1].len) ||
        !object_put_all(ev, &builder, &args[0]) || !object_put_all(ev, &builder, &args[1]))
        return false;
    *ret = ev_object(ev, builder.members, builder.len);
    return true;
}

bool native_add(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)in;
    if (both(args, RV_JSON_NUMBER)) {
        *ret = rv_json_of_real(value_real(&args[0]) + value_real(&args[1]));
        return pay_numbers(ev, args);
    }
    if (args[0].type == RV_JSON_NULL || args[1].type == RV_JSON_NULL) {
        *ret = args[0].type == RV_JSON_NULL ? args[1] : args[0];
        return true;
    }
    if (args[0].type != args[1].type || args[0].type == RV_JSON_BOOL)
        return cannot(ev, args, "added");
    if (args[0].len == 0 || args[1].len == 0) {
        *ret = args[0].len == 0 ? args[1] : args[0];
        return true;
    }
    if (args[0].type == RV_JSON_OBJECT)
        return add_objects(ev, args, ret);
    size_t len = (size_t)args[0].len + args[1].len;
    if (args[0].type == RV_JSON_STRING) {
        const char *bytes = ev_append(ev, args[0].u.text, args[0].len, args[1].u.text, args[1].len);
        if (bytes != NULL)
            *ret = ev_string(bytes, len);
        return bytes != NULL;
    }
    const struct rv_json *items = ev_append(ev, args[0].u.items, args[0].len * sizeof *items,
                                            args[1].u.items, args[1].len * sizeof *items);
    *ret = ev_array(ev, items, len);
    return items != NULL;
}

/* array - array: without all items that equal one of the second. */
static bool subtract_arrays(struct ev *ev, const struct rv_json *args, struct rv_json *ret)
{
    struct rv_json *items = ev_take(ev, ((size_t)args[0].len + 1) * sizeof *items);
    size_t len = 0;
    for (uint32_t i = 0; items != NULL && i < args[0].len; i++) {
        int order = 1;
        for (uint32_t j = 0; j < args[1].len && order != 0; j++)
            if (!value_compare(ev, &args[0].u.items[i], &args[1].u.items[j], &order))
                return false;
        if (order != 0)
            items[len++] = args[0].u.items[i];
    }
    if (items == NULL)
        return false;
    *ret = ev_array(ev, items, len);
    return true;
}

bool native_subtract(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    (void)in;
    if (both(args, RV_JSON_ARRAY))
        return subtract_arrays(ev, args, ret);
    if (!both(args, RV_JSON_NUMBER))
        return cannot(ev, args, "subtracted");
    *ret = rv_json_of_real(value_real(&args[0]) - value_real(&args[1]));
    return pay_numbers(ev, args);
}

/* "ab" * 3; a part of a time does not count, and null is what a count below 0 gives (jq 1.7). */
static bool repeat_string(struct ev *ev, const struct rv_json *text, double times,
                          struct rv_json *ret)
{
    if (!(times >= 0))
        return *ret = rv_json_null(), true;
    double count = floor(times);
    double bytes = count * text->len;
    if (bytes >= (double)UINT32_MAX)
        return ev_limit(ev, "the expression ran out of memory");
    size_t whole = (size_t)bytes;
    char *at = ev_take(ev, whole + 1);
    if (at == NULL)
        return false;
    size_t len = whole < text->len ? whole : text->len;
    memcpy(at, text->u.text, len);
    while (len < whole) { /* twice as much each time */
        size_t more = len < whole - len ? len : whole - len;
        memcpy(at + len, at, more);
        len += more;
    }
    rv_assert(len == whole);
    *ret = ev_string(at, whole);
    return true;
}

/* Objects merge deeply; both values of a key are merged if both are objects. */
static bool merge_objects(struct ev *ev, const struct rv_json *args, struct rv_json *ret)
{
    struct object_builder builder;
    if (!ev_enter(ev))
        return false;
    bool go = object_init(ev, &builder, args[0].len) && object_put_all(ev, &builder, &args[0]);
    for (uint32_t i = 0; go && i < args[1].len; i++) {
        const struct rv_json_member *member = &args[1].u.members[i];
        struct rv_json_member *old = object_find(ev, &builder, value_str(&member->key));
        struct rv_json pair[2] = {old ? old->value : member->value, member->value};
        if (old != NULL && both(pair, RV_JSON_OBJECT))
            go = merge_objects(ev, pair, &old->value);
        else
            go = object_put(ev, &builder, &member->key, &member->value);
    }
    ev->depth--;
    if (go)
        *ret = ev_object(ev, builder.members, builder.len);
    return go;
}

bool native_multiply(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    (void)in;
    if (both(args, RV_JSON_NUMBER)) {
        *ret = rv_json_of_real(value_real(&args[0]) * value_real(&args[1]));
        return pay_numbers(ev, args);
    }
    if (args[0].type == RV_JSON_STRING && args[1].type == RV_JSON_NUMBER)
        return repeat_string(ev, &args[0], value_real(&args[1]), ret);
    if (args[0].type == RV_JSON_NUMBER && args[1].type == RV_JSON_STRING)
        return repeat_string(ev, &args[1], value_real(&args[0]), ret);
    if (both(args, RV_JSON_OBJECT))
        return merge_objects(ev, args, ret);
    return cannot(ev, args, "multiplied");
}

bool native_divide(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    (void)in;
    if (both(args, RV_JSON_STRING))
        return native_split(ev, &args[0], &args[1], ret);
    if (!both(args, RV_JSON_NUMBER))
        return cannot(ev, args, "divided");
    if (value_real(&args[1]) == 0)
        return cannot(ev, args, "divided because the divisor is zero");
    *ret = rv_json_of_real(value_real(&args[0]) / value_real(&args[1]));
    return pay_numbers(ev, args);
}

/* Whole numbers, cut towards zero and held within 64 bits. */
static int64_t whole(double real)
{
    if (isnan(real))
        return 0;
    if (real >= 9223372036854775807.0)
        return INT64_MAX;
    return real <= -9223372036854775808.0 ? INT64_MIN : (int64_t)real;
}

bool native_modulo(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                   struct rv_json *ret)
{
    (void)in;
    if (!both(args, RV_JSON_NUMBER))
        return cannot(ev, args, "divided");
    double x = value_real(&args[0]);
    double y = value_real(&args[1]);
    if (isnan(x) || isnan(y))
        return *ret = rv_json_of_real((double)NAN), true;
    int64_t divisor = whole(y);
    if (divisor == 0)
        return cannot(ev, args, "divided because the divisor is zero");
    *ret = rv_json_of_real(divisor == -1 ? 0 : (double)(whole(x) % divisor));
    return pay_numbers(ev, args);
}

static bool compare_args(struct ev *ev, const struct rv_json *args, int *ret_order)
{
    return value_compare(ev, &args[0], &args[1], ret_order);
}

#define COMPARISON(name, relation)                                                                 \
    bool name(struct ev *ev, const struct rv_json *in, const struct rv_json *args,                 \
              struct rv_json *ret)                                                                 \
    {                                                                                              \
        int order;                                                                                 \
        (void)in;                                                                                  \
        if (!compare_args(ev, args, &order))                                                       \
            return false;                                                                          \
        *ret = rv_json_bool(order relation 0);                                                     \
        return true;                                                                               \
    }

COMPARISON(native_equal, ==)
COMPARISON(native_unequal, !=)
COMPARISON(native_less, <)
COMPARISON(native_less_equal, <=)
COMPARISON(native_more, >)
COMPARISON(native_more_equal, >=)

static bool number_needed(struct ev *ev, const struct rv_json *value)
{
    return value->type == RV_JSON_NUMBER ||
           ev_raise(ev, "%s (%s) number required", value_kind(value), value_brief(value).text);
}

#define MATH(name, function)                                                                       \
    bool name(struct ev *ev, const struct rv_json *in, const struct rv_json *args,                 \
              struct rv_json *ret)                                                                 \
    {                                                                                              \
        (void)args;                                                                                \
        if (!number_needed(ev, in))                                                                \
            return false;                                                                          \
        *ret = rv_json_of_real(function(value_real(in)));                                          \
        return ev_spend(ev, number_units(in));                                                     \
    }

MATH(native_floor, floor)
MATH(native_ceil, ceil)
MATH(native_round, round)
MATH(native_trunc, trunc)
MATH(native_sqrt, sqrt)
MATH(native_fabs, fabs)
MATH(native_log, log)
MATH(native_log2, log2)
MATH(native_log10, log10)
MATH(native_exp, exp)
MATH(native_exp2, exp2)

bool native_abs(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)args;
    if (in->type != RV_JSON_NUMBER)
        return ev_raise(ev, "%s (%s) has no absolute value", value_kind(in), value_brief(in).text);
    return arith_absolute(ev, in, ret);
}

bool native_pow(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)in;
    if (!number_needed(ev, &args[0]) || !number_needed(ev, &args[1]))
        return false;
    *ret = rv_json_of_real(pow(value_real(&args[0]), value_real(&args[1])));
    return true;
}

bool native_infinite(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                     struct rv_json *ret)
{
    (void)ev, (void)in, (void)args;
    *ret = rv_json_of_real((double)INFINITY);
    return true;
}

bool native_nan(struct ev *ev, const struct rv_json *in, const struct rv_json *args,
                struct rv_json *ret)
{
    (void)ev, (void)in, (void)args;
    *ret = rv_json_of_real((double)NAN);
    return true;
}

#define CLASSIFY(name, function)                                                                   \
    bool name(struct ev *ev, const struct rv_json *in, const struct rv_json *args,                 \
              struct rv_json *ret)                                                                 \
    {                                                                                              \
        (void)args;                                                                                \
        if (!number_needed(ev, in))                                                                \
            return false;                                                                          \
        *ret = rv_json_bool(function(value_real(in)));                                             \
        return true;                                                                               \
    }

CLASSIFY(native_isinfinite, isinf)
CLASSIFY(native_isnan, isnan)
CLASSIFY(native_isnormal, isnormal)

/* What combines all outputs of one node with all outputs of others: arguments of functions, members
 * of objects, parameters of calls; and the arrays that collect outputs. */
#include "expr/eval_priv.h"

struct combine_sink {
    struct sink sink;
    struct sink *out;
    const struct node *node;
    const struct link *env;
    const struct item *in;
    struct rv_json *values; /* one for each of the node's kids */
    uint32_t next;          /* how many of them are still open (native) or known (object) */
    const struct link *callee;
};

/* The last argument is the outermost loop, as in jq. */
static bool native_from(struct ev *ev, struct combine_sink *s)
{
    while (s->next > 0 && s->node->v.kids[s->next - 1]->single) {
        s->next--;
        if (!eval_one(ev, s->node->v.kids[s->next], s->env, &s->in->value, &s->values[s->next]))
            return false;
    }
    if (s->next > 0) {
        struct item plain = {s->in->value, NULL};
        return eval_each(ev, s->node->v.kids[s->next - 1], s->env, &plain, &s->sink);
    }
    struct item result = {.path = s->in->path ? PATH_LOST : NULL};
    ev->offset = s->node->offset;
    return s->node->u.native(ev, &s->in->value, s->values, &result.value) &&
           s->out->take(ev, s->out, &result);
}

static bool argument_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct combine_sink next = *(struct combine_sink *)sink;
    rv_assert(next.next > 0);
    next.values[--next.next] = item->value;
    return native_from(ev, &next);
}

bool combine_each_native(struct ev *ev, const struct node *node, const struct link *env,
                         const struct item *in, struct sink *out)
{
    struct rv_json values[NATIVE_ARGS_MAX];
    struct combine_sink s = {.sink = {argument_take},
                             .out = out,
                             .node = node,
                             .env = env,
                             .in = in,
                             .values = values,
                             .next = node->count};
    return native_from(ev, &s);
}

static bool object_of(struct ev *ev, const struct node *node, const struct rv_json *values,
                      struct rv_json *ret)
{
    struct object_builder builder;
    rv_assert(node->op == OP_OBJECT);
    rv_assert(node->count % 2 == 0);
    if (!object_init(ev, &builder, node->count / 2))
        return false;
    for (uint32_t i = 0; i < node->count; i += 2) {
        if (values[i].type != RV_JSON_STRING) {
            ev->offset = node->v.kids[i]->offset;
            return ev_raise(ev, "Cannot use %s (%s) as object key", value_kind(&values[i]),
                            value_brief(&values[i]).text);
        }
        if (!object_put(ev, &builder, &values[i], &values[i + 1]))
            return false;
    }
    *ret = ev_object(ev, builder.members, builder.len);
    return true;
}

/* Value number `i` of an object's keys and values. The one of {"a"} is looked up by its key. */
static bool member_one(struct ev *ev, const struct node *node, uint32_t i, const struct link *env,
                       const struct rv_json *in, struct rv_json *values)
{
    if (node->v.kids[i] != NULL)
        return eval_one(ev, node->v.kids[i], env, in, &values[i]);
    rv_assert(i % 2 == 1); /* only values are left out */
    ev->offset = node->v.kids[i - 1]->offset;
    return value_index(ev, in, &values[i - 1], &values[i]);
}

bool combine_one_object(struct ev *ev, const struct node *node, const struct link *env,
                        const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json *values = ev_take(ev, (node->count + 1) * sizeof *values);
    if (values == NULL)
        return false;
    for (uint32_t i = 0; i < node->count; i++)
        if (!member_one(ev, node, i, env, in, values))
            return false;
    return object_of(ev, node, values, ret);
}

/* The first member is the outermost loop. Later values overwrite what an earlier round left. */
static bool members_from(struct ev *ev, struct combine_sink *s)
{
    const struct node *node = s->node;
    for (; s->next < node->count && (!node->v.kids[s->next] || node->v.kids[s->next]->single);
         s->next++)
        if (!member_one(ev, node, s->next, s->env, &s->in->value, s->values))
            return false;
    if (s->next < s->node->count) {
        struct item plain = {s->in->value, NULL};
        return eval_each(ev, s->node->v.kids[s->next], s->env, &plain, &s->sink);
    }
    struct item result = {.path = s->in->path ? PATH_LOST : NULL};
    return object_of(ev, s->node, s->values, &result.value) && s->out->take(ev, s->out, &result);
}

static bool member_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct combine_sink next = *(struct combine_sink *)sink;
    next.values[next.next++] = item->value;
    return members_from(ev, &next);
}

bool combine_each_object(struct ev *ev, const struct node *node, const struct link *env,
                         const struct item *in, struct sink *out)
{
    struct combine_sink s = {.sink = {member_take}, .out = out, .node = node, .env = env, .in = in};
    s.values = ev_take(ev, (node->count + 1) * sizeof *s.values);
    return s.values != NULL && members_from(ev, &s);
}

static bool call_from(struct ev *ev, const struct combine_sink *s);

static bool call_bound(struct ev *ev, const struct combine_sink *s, const struct link *bound)
{
    struct combine_sink next = *s;
    next.callee = bound;
    next.next++;
    if (!ev_enter(ev))
        return false;
    bool go = call_from(ev, &next);
    ev->depth--;
    return go;
}

/* Binds the parameters from `next` on, the first outermost, each in a link of its own. */
static bool call_from(struct ev *ev, const struct combine_sink *s)
{
    const struct function *function = s->node->u.function;
    if (s->next == s->node->count)
        return eval_each(ev, function->body, s->callee, s->in, s->out);
    const struct node *kid = s->node->v.kids[s->next];
    struct link bound = {.up = s->callee, .u.closure = {kid, s->env}};
    if (kid->op == OP_CLOSURE) /* passes its own parameter on: no chain that grows with recursion */
        bound.u.closure = eval_env_up(s->env, kid->level)->u.closure;
    if (!function->by_value[s->next])
        return call_bound(ev, s, &bound);
    struct combine_sink all = *s;
    struct item plain = {s->in->value, NULL};
    all.callee = &bound;
    return eval_each(ev, kid, s->env, &plain, &all.sink);
}

static bool parameter_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    const struct combine_sink *s = (struct combine_sink *)sink;
    struct link bound = {.up = s->callee, .u.value = item->value};
    return call_bound(ev, s, &bound);
}

bool combine_each_call(struct ev *ev, const struct node *node, const struct link *env,
                       const struct item *in, struct sink *out)
{
    struct combine_sink s = {.sink = {parameter_take},
                             .out = out,
                             .node = node,
                             .env = env,
                             .in = in,
                             .callee = eval_env_up(env, node->level)};
    return call_from(ev, &s);
}

struct array_sink {
    struct sink sink;
    struct rv_json *items;
    size_t len;
    size_t room;
};

static bool array_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct array_sink *array = (struct array_sink *)sink;
    if (array->len == array->room) {
        size_t room = array->room ? array->room * 2 : 4;
        struct rv_json *items = ev_take(ev, room * sizeof *items);
        if (items == NULL)
            return false;
        if (array->len > 0)
            memcpy(items, array->items, array->len * sizeof *items);
        array->items = items;
        array->room = room;
    }
    rv_assert(array->len < array->room);
    array->items[array->len++] = item->value;
    return true;
}

bool combine_one_array(struct ev *ev, const struct node *node, const struct link *env,
                       const struct rv_json *in, struct rv_json *ret)
{
    struct array_sink array = {.sink = {array_take}};
    struct item item = {*in, NULL};
    if (node->a != NULL && !eval_each(ev, node->a, env, &item, &array.sink))
        return false;
    *ret = ev_array(ev, array.items, array.len);
    return true;
}

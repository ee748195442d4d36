/* Generators that count or carry a state: reduce, foreach, range, limit, recurse. */
#include "expr/eval_priv.h"

struct fold_sink {
    struct sink sink;
    struct sink *out;
    const struct node *node;
    const struct link *env;
    const struct item *in;
    struct item state;
    bool any; /* one item: the update gave an output */
};

/* An output of a foreach's update: the new state, and what is extracted from it goes on. */
static bool update_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct fold_sink *s = (struct fold_sink *)sink;
    const struct path *path = NULL;
    if (item->path != NULL && !path_keep(ev, item->path, &path))
        return false;
    s->state = (struct item){item->value, path};
    s->any = true;
    if (s->node->d == NULL)
        return s->out->take(ev, s->out, item);
    return eval_each(ev, s->node->d, s->env, item, s->out);
}

/* An update without output makes the state null, as in jq. */
static struct item state_none(const struct fold_sink *s)
{
    return (struct item){rv_json_null(), s->state.path ? PATH_LOST : NULL};
}

/* One item of the source. */
static bool fold_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct fold_sink *s = (struct fold_sink *)sink;
    struct link bound = {.up = s->env, .u.value = item->value};
    if (s->node->op == OP_FOREACH) {
        struct fold_sink update = *s;
        update.sink.take = update_take;
        update.env = &bound;
        update.any = false;
        if (!eval_each(ev, s->node->u.c, &bound, &s->state, &update.sink))
            return false;
        s->state = update.any ? update.state : state_none(s);
        return true;
    }
    if (s->node->u.c->single && s->state.path == NULL) {
        struct rv_json next;
        if (!eval_one(ev, s->node->u.c, &bound, &s->state.value, &next))
            return false;
        s->state.value = next;
        return true;
    }
    bool any;
    if (!eval_last(ev, s->node->u.c, &bound, &s->state, &s->state, &any))
        return false;
    if (!any)
        s->state = state_none(s);
    return true;
}

static bool start_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct fold_sink s = *(struct fold_sink *)sink;
    struct item plain = {s.in->value, NULL};
    s.sink.take = fold_take;
    s.state = *item;
    if (!eval_each(ev, s.node->a, s.env, &plain, &s.sink))
        return false;
    return s.node->op == OP_FOREACH || s.out->take(ev, s.out, &s.state);
}

bool fold_each(struct ev *ev, const struct node *node, const struct link *env,
               const struct item *in, struct sink *out)
{
    struct fold_sink s = {.sink = {start_take}, .out = out, .node = node, .env = env, .in = in};
    return eval_each(ev, node->b, env, in, &s.sink);
}

struct count_sink {
    struct sink sink;
    struct sink *out;
    const struct node *node;
    const struct link *env;
    const struct item *in;
    struct rv_json bounds[3]; /* range */
    unsigned bounds_count;
    double left; /* limit */
    uint64_t label;
};

static bool range_run(struct ev *ev, const struct count_sink *s)
{
    for (int i = 0; i < 3; i++)
        if (s->bounds[i].type != RV_JSON_NUMBER) {
            ev->offset = s->node->offset;
            return ev_raise(ev, "Range bounds must be numeric");
        }
    double at = value_real(&s->bounds[0]);
    double end = value_real(&s->bounds[1]);
    double step = value_real(&s->bounds[2]);
    struct item item = {.path = s->in->path ? PATH_LOST : NULL};
    for (; (step > 0 && at < end) || (step < 0 && at > end); at += step) {
        item.value = rv_json_of_real(at);
        if (!ev_spend(ev, 1) || !s->out->take(ev, s->out, &item))
            return false;
    }
    return true;
}

static bool bound_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct count_sink next = *(struct count_sink *)sink;
    struct item plain = {next.in->value, NULL};
    rv_assert(next.bounds_count < 3);
    next.bounds[next.bounds_count++] = item->value;
    if (next.bounds_count == 3)
        return range_run(ev, &next);
    const struct node *bound = next.bounds_count == 1 ? next.node->b : next.node->u.c;
    return eval_each(ev, bound, next.env, &plain, &next.sink);
}

bool fold_range(struct ev *ev, const struct node *node, const struct link *env,
                const struct item *in, struct sink *out)
{
    struct count_sink s = {.sink = {bound_take}, .out = out, .node = node, .env = env, .in = in};
    struct item plain = {in->value, NULL};
    return eval_each(ev, node->a, env, &plain, &s.sink);
}

static bool limited_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct count_sink *s = (struct count_sink *)sink;
    s->left--;
    if (!s->out->take(ev, s->out, item))
        return false;
    return s->left > 0 || ev_break(ev, s->label);
}

static bool limit_run(struct ev *ev, struct count_sink *s, const struct node *node)
{
    s->sink.take = limited_take;
    s->label = ++ev->labels;
    return eval_each(ev, node, s->env, s->in, &s->sink) || ev_broke_to(ev, s->label);
}

/* limit(n; f): none for 0, all for a negative n (jq 1.7 manual). */
static bool limit_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct count_sink s = *(struct count_sink *)sink;
    ev->offset = s.node->offset;
    if (item->value.type != RV_JSON_NUMBER)
        return ev_raise(ev, "%s (%s) is not a count for limit", value_kind(&item->value),
                        value_brief(&item->value).text);
    s.left = value_real(&item->value);
    if (s.left < 0)
        return eval_each(ev, s.node->b, s.env, s.in, s.out);
    return s.left == 0 || limit_run(ev, &s, s.node->b);
}

bool fold_limit(struct ev *ev, const struct node *node, const struct link *env,
                const struct item *in, struct sink *out)
{
    struct count_sink s = {.sink = {limit_take}, .out = out, .node = node, .env = env, .in = in};
    if (node->op == OP_LIMIT) {
        struct item plain = {in->value, NULL};
        return eval_each(ev, node->a, env, &plain, &s.sink);
    }
    if (node->op == OP_FIRST) {
        s.left = 1;
        return limit_run(ev, &s, node->a);
    }
    struct item last = {rv_json_null(), in->path ? PATH_LOST : NULL}; /* of none: null, as in jq */
    bool any;
    return eval_last(ev, node->a, env, in, &last, &any) && out->take(ev, out, &last);
}

static bool recurse_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct count_sink *s = (struct count_sink *)sink;
    return s->out->take(ev, s->out, item) && eval_each(ev, s->node->a, s->env, item, &s->sink);
}

bool fold_recurse(struct ev *ev, const struct node *node, const struct link *env,
                  const struct item *in, struct sink *out)
{
    rv_assert(node->a != NULL);
    struct count_sink s = {.sink = {recurse_take}, .out = out, .node = node, .env = env, .in = in};
    if (!node->a->single || in->path != NULL)
        return recurse_take(ev, &s.sink, in);
    struct item item = *in;
    while (out->take(ev, out, &item)) { /* one successor each: a loop, not a recursion */
        struct rv_json next;
        if (!eval_one(ev, node->a, env, &item.value, &next))
            return false;
        item.value = next;
    }
    return false;
}

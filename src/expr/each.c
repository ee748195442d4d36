/* Generators: paths, choices and errors. */
#include "expr/eval_priv.h"

/* All sinks of this file: where the outputs go, and what the node knows. */
struct node_sink {
    struct sink sink;
    struct sink *out;
    const struct node *node;
    const struct link *env;
    const struct item *in;
    struct rv_json from; /* INDEX, SLICE: the key or the first bound */
    struct rv_json to;
    bool any; /* ALT: an output was true; TRY: the failure came from behind */
};

static bool invalid_access(struct ev *ev, const struct rv_json *value, const struct rv_json *key)
{
    struct brief of = value_brief(value);
    struct brief what = value_brief(key);
    return ev_raise(ev, "Invalid path expression near attempt to access element %s of %s",
                    what.text, of.text);
}

/* value[key] goes on, with its path if one is asked for. */
static bool emit_index(struct ev *ev, const struct node *node, const struct item *item,
                       const struct rv_json *key, struct sink *out)
{
    struct path path = {item->path, *key};
    struct item found = {.path = item->path ? &path : NULL};
    if (item->path == PATH_LOST)
        return invalid_access(ev, &item->value, key);
    if (!value_index(ev, &item->value, key, &found.value))
        return ev_forgive(ev, node);
    return out->take(ev, out, &found);
}

static bool emit_fields(struct ev *ev, const struct node *node, uint32_t i, const struct item *item,
                        struct sink *out)
{
    struct path path = {item->path, node->v.keys[i]};
    struct item found = {.path = item->path ? &path : NULL};
    ev->offset = node->offset;
    if (item->path == PATH_LOST)
        return invalid_access(ev, &item->value, &path.key);
    if (!value_index(ev, &item->value, &path.key, &found.value))
        return ev_forgive(ev, node);
    rv_assert(i < node->count);
    if (i + 1 == node->count)
        return out->take(ev, out, &found);
    if (!ev_enter(ev))
        return false;
    bool go = emit_fields(ev, node, i + 1, &found, out);
    ev->depth--;
    return go;
}

static bool emit_items(struct ev *ev, const struct node *node, const struct item *item,
                       struct sink *out)
{
    const struct rv_json *value = &item->value;
    bool array = value->type == RV_JSON_ARRAY;
    if (item->path == PATH_LOST)
        return ev_raise(ev, "Invalid path expression near attempt to iterate through %s",
                        value_brief(value).text);
    if (!array && value->type != RV_JSON_OBJECT)
        return node->optional || ev_raise(ev, "Cannot iterate over %s (%s)", value_kind(value),
                                          value_brief(value).text);
    for (uint32_t i = 0; i < value->len; i++) {
        struct path path = {.up = item->path};
        struct item found = {.path = item->path ? &path : NULL};
        found.value = array ? value->u.items[i] : value->u.members[i].value;
        if (item->path != NULL)
            path.key = array ? rv_json_of_real(i) : value->u.members[i].key;
        if (!ev_spend(ev, 1) || !out->take(ev, out, &found))
            return false;
    }
    return true;
}

static bool emit_slice(struct ev *ev, const struct node_sink *s, const struct item *item)
{
    const struct rv_json *from = &s->from;
    const struct rv_json *to = &s->to;
    struct path path = {.up = item->path};
    struct item found = {.path = item->path ? &path : NULL};
    if (item->path != NULL && !value_slice_key(ev, from, to, &path.key))
        return false;
    if (item->path == PATH_LOST)
        return invalid_access(ev, &item->value, &path.key);
    if (!value_slice(ev, &item->value, from, to, &found.value))
        return ev_forgive(ev, s->node);
    return s->out->take(ev, s->out, &found);
}

static bool target_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    ev->offset = s->node->offset;
    if (s->node->op == OP_FIELDS)
        return emit_fields(ev, s->node, 0, item, s->out);
    if (s->node->op == OP_INDEX)
        return emit_index(ev, s->node, item, &s->from, s->out);
    if (s->node->op == OP_SLICE)
        return emit_slice(ev, s, item);
    return emit_items(ev, s->node, item, s->out);
}

/* The keys are known; now each value that they are looked up in. */
static bool each_target(struct ev *ev, struct node_sink *s)
{
    s->sink.take = target_take;
    if (s->node->a == NULL)
        return target_take(ev, &s->sink, s->in);
    return eval_each(ev, s->node->a, s->env, s->in, &s->sink);
}

static bool to_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink next = *(struct node_sink *)sink;
    next.to = item->value;
    return each_target(ev, &next);
}

static bool from_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink next = *(struct node_sink *)sink;
    next.from = item->value;
    next.sink.take = to_take;
    if (next.node->op == OP_INDEX || next.node->u.c == NULL)
        return each_target(ev, &next);
    struct item plain = {next.in->value, NULL};
    return eval_each(ev, next.node->u.c, next.env, &plain, &next.sink);
}

static bool each_lookup(struct ev *ev, struct node_sink *s)
{
    struct item plain = {s->in->value, NULL};
    struct item none = {rv_json_null(), NULL};
    s->sink.take = from_take;
    if (s->node->op == OP_FIELDS || s->node->op == OP_ITERATE)
        return each_target(ev, s);
    if (s->node->b == NULL)
        return from_take(ev, &s->sink, &none);
    return eval_each(ev, s->node->b, s->env, &plain, &s->sink);
}

/* What decides (a condition, a left side) never has a path of its own. */
static bool if_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    const struct node *branch = value_truth(&item->value) ? s->node->b : s->node->u.c;
    return eval_each(ev, branch, s->env, s->in, s->out);
}

static bool emit_bool(struct ev *ev, struct node_sink *s, bool truth)
{
    struct item item = {rv_json_bool(truth), s->in->path ? PATH_LOST : NULL};
    return s->out->take(ev, s->out, &item);
}

static bool right_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    return emit_bool(ev, (struct node_sink *)sink, value_truth(&item->value));
}

static bool left_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink right = *(struct node_sink *)sink;
    bool truth = value_truth(&item->value);
    if (truth != (right.node->op == OP_AND))
        return emit_bool(ev, &right, truth);
    right.sink.take = right_take;
    struct item plain = {right.in->value, NULL};
    return eval_each(ev, right.node->b, right.env, &plain, &right.sink);
}

static bool alt_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    if (!value_truth(&item->value))
        return true;
    s->any = true;
    return s->out->take(ev, s->out, item);
}

static bool each_alt(struct ev *ev, struct node_sink *s)
{
    s->sink.take = alt_take;
    if (!eval_each(ev, s->node->a, s->env, s->in, &s->sink))
        return false;
    return s->any || eval_each(ev, s->node->b, s->env, s->in, s->out);
}

static bool try_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    if (s->out->take(ev, s->out, item))
        return true;
    s->any = true;
    return false;
}

/* Catches what its body raises, not what is raised by those who take its outputs. */
static bool each_try(struct ev *ev, struct node_sink *s)
{
    s->sink.take = try_take;
    if (eval_each(ev, s->node->a, s->env, s->in, &s->sink))
        return true;
    if (ev->stop != EV_RAISED || s->any)
        return false;
    ev->stop = EV_RUNS;
    if (s->node->b == NULL)
        return true;
    struct item raised = {ev->raised, s->in->path ? PATH_LOST : NULL};
    return eval_each(ev, s->node->b, s->env, &raised, s->out);
}

static bool as_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    struct link bound = {.up = s->env, .u.value = item->value};
    return eval_each(ev, s->node->b, &bound, s->in, s->out);
}

static bool each_label(struct ev *ev, struct node_sink *s)
{
    struct link label = {.up = s->env, .u.label = ++ev->labels};
    return eval_each(ev, s->node->a, &label, s->in, s->out) || ev_broke_to(ev, label.u.label);
}

static bool path_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    struct item path = {.path = s->in->path ? PATH_LOST : NULL};
    ev->offset = s->node->offset;
    if (item->path == PATH_LOST)
        return ev_raise(ev, "Invalid path expression with result %s",
                        value_brief(&item->value).text);
    return path_array(ev, item->path, &path.value) && s->out->take(ev, s->out, &path);
}

/* getpath(p): the path of its output is the input's, with all of p behind it. */
static bool emit_getpath(struct ev *ev, const struct item *item, const struct rv_json *path,
                         uint32_t i, struct sink *out)
{
    rv_assert(i <= path->len);
    if (i == path->len)
        return out->take(ev, out, item);
    struct path longer = {item->path, path->u.items[i]};
    struct item found = {rv_json_null(), item->path ? &longer : NULL};
    if (item->value.type != RV_JSON_NULL &&
        !value_index(ev, &item->value, &path->u.items[i], &found.value))
        return false;
    if (!ev_enter(ev))
        return false;
    bool go = emit_getpath(ev, &found, path, i + 1, out);
    ev->depth--;
    return go;
}

static bool getpath_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct node_sink *s = (struct node_sink *)sink;
    ev->offset = s->node->offset;
    if (item->value.type != RV_JSON_ARRAY)
        return ev_raise(ev, "Path must be specified as an array");
    if (s->in->path == PATH_LOST)
        return invalid_access(ev, &s->in->value, &item->value);
    return emit_getpath(ev, s->in, &item->value, 0, s->out);
}

static bool each_with(struct ev *ev, struct node_sink *s,
                      bool (*take)(struct ev *ev, struct sink *sink, const struct item *item))
{
    struct item plain = {s->in->value, s->node->op == OP_PATH ? PATH_ROOT : NULL};
    s->sink.take = take;
    return eval_each(ev, s->node->a, s->env, &plain, &s->sink);
}

static bool each_node(struct ev *ev, const struct node *node, const struct link *env,
                      const struct item *in, struct sink *out)
{
    struct node_sink s = {.out = out, .node = node, .env = env, .in = in};
    if (node->op == OP_IF)
        return each_with(ev, &s, if_take);
    if (node->op == OP_AND || node->op == OP_OR)
        return each_with(ev, &s, left_take);
    if (node->op == OP_AS)
        return each_with(ev, &s, as_take);
    if (node->op == OP_PATH)
        return each_with(ev, &s, path_take);
    if (node->op == OP_GETPATH)
        return each_with(ev, &s, getpath_take);
    if (node->op == OP_ALT)
        return each_alt(ev, &s);
    if (node->op == OP_TRY)
        return each_try(ev, &s);
    if (node->op == OP_LABEL)
        return each_label(ev, &s);
    return each_lookup(ev, &s);
}

/* Hands on with nothing of its own on the stack. */
bool each_generator(struct ev *ev, const struct node *node, const struct link *env,
                    const struct item *in, struct sink *out)
{
    switch ((enum expr_op)node->op) {
    case OP_FIELDS:
    case OP_INDEX:
    case OP_SLICE:
    case OP_ITERATE:
    case OP_IF:
    case OP_AND:
    case OP_OR:
    case OP_AS:
    case OP_PATH:
    case OP_GETPATH:
    case OP_ALT:
    case OP_TRY:
    case OP_LABEL:
        return each_node(ev, node, env, in, out);
    case OP_BREAK:
        return ev_break(ev, eval_env_up(env, node->level)->u.label);
    case OP_EMPTY:
        return true;
    case OP_REDUCE:
    case OP_FOREACH:
        return fold_each(ev, node, env, in, out);
    case OP_RECURSE:
        return fold_recurse(ev, node, env, in, out);
    case OP_RANGE:
        return fold_range(ev, node, env, in, out);
    case OP_LIMIT:
    case OP_FIRST:
    case OP_LAST:
        return fold_limit(ev, node, env, in, out);
    case OP_OBJECT:
        return combine_each_object(ev, node, env, in, out);
    case OP_NATIVE:
        return combine_each_native(ev, node, env, in, out);
    case OP_CALL:
        return combine_each_call(ev, node, env, in, out);
    case OP_IDENTITY:
    case OP_CONST:
    case OP_VAR:
    case OP_GLOBAL:
    case OP_ARRAY:
    case OP_UPDATE:
    case OP_PIPE:
    case OP_COMMA:
    case OP_CLOSURE:
    case OP_UP:
    case OP_COUNT:
        break;
    }
    return ev_limit(ev, "an expression of unknown kind"); /* eval_each has done all of these */
}

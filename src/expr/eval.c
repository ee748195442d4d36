/* The evaluator. A node that gives exactly one output (the compiler knows) is computed directly, by
 * eval_one. Any other is a generator: eval_each calls a sink for every output, and the sink goes on
 * with the rest of the expression in the generator's own stack frame, so that backtracking is
 * simply returning. What a generator does last it does in its own loop, without a new frame: that
 * is why `until`, `while` and recursion in the last place run on a bounded stack. */
#include "expr/eval_priv.h"

const struct link *eval_env_up(const struct link *env, uint32_t levels)
{
    for (; levels > 0; levels--)
        env = env->up;
    return env;
}

/* value.k1.k2 */
static bool get_fields(struct ev *ev, const struct node *node, const struct rv_json *in,
                       struct rv_json *ret)
{
    const struct rv_json *at = in;
    for (uint32_t i = 0; i < node->count; i++) {
        if (at->type == RV_JSON_OBJECT) {
            at = value_get(ev, at, value_str(&node->v.keys[i]));
            if (at != NULL)
                continue;
        } else if (at->type != RV_JSON_NULL) {
            ev->offset = node->offset;
            return value_index(ev, at, &node->v.keys[i], ret);
        }
        *ret = rv_json_null();
        return true;
    }
    *ret = *at;
    return true;
}

static bool one_fields(struct ev *ev, const struct node *node, const struct link *env,
                       const struct rv_json *in, struct rv_json *ret)
{
    if (node->a == NULL)
        return get_fields(ev, node, in, ret);
    struct rv_json target;
    return eval_one(ev, node->a, env, in, &target) && get_fields(ev, node, &target, ret);
}

static bool one_index(struct ev *ev, const struct node *node, const struct link *env,
                      const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json key, target = *in;
    if (!eval_one(ev, node->b, env, in, &key))
        return false;
    if (node->a != NULL && !eval_one(ev, node->a, env, in, &target))
        return false;
    ev->offset = node->offset;
    return value_index(ev, &target, &key, ret);
}

static bool one_slice(struct ev *ev, const struct node *node, const struct link *env,
                      const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json from = rv_json_null(), to = rv_json_null(), target = *in;
    if (node->b != NULL && !eval_one(ev, node->b, env, in, &from))
        return false;
    if (node->u.c != NULL && !eval_one(ev, node->u.c, env, in, &to))
        return false;
    if (node->a != NULL && !eval_one(ev, node->a, env, in, &target))
        return false;
    ev->offset = node->offset;
    return value_slice(ev, &target, &from, &to, ret);
}

static bool one_native(struct ev *ev, const struct node *node, const struct link *env,
                       const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json args[NATIVE_ARGS_MAX];
    for (uint32_t i = node->count; i-- > 0;)
        if (!eval_one(ev, node->v.kids[i], env, in, &args[i]))
            return false;
    ev->offset = node->offset;
    return node->u.native(ev, in, args, ret);
}

static bool one_logic(struct ev *ev, const struct node *node, const struct link *env,
                      const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json value;
    if (!eval_one(ev, node->a, env, in, &value))
        return false;
    if (node->op == OP_ALT && value_truth(&value)) {
        *ret = value;
        return true;
    }
    if (node->op == OP_ALT)
        return eval_one(ev, node->b, env, in, ret);
    bool truth = value_truth(&value);
    if (truth == (node->op == OP_AND)) {
        if (!eval_one(ev, node->b, env, in, &value))
            return false;
        truth = value_truth(&value);
    }
    *ret = rv_json_bool(truth);
    return true;
}

static bool one_as(struct ev *ev, const struct node *node, const struct link *env,
                   const struct rv_json *in, struct rv_json *ret)
{
    struct link bound = {.up = env};
    return eval_one(ev, node->a, env, in, &bound.u.value) && eval_one(ev, node->b, &bound, in, ret);
}

static bool keep_last(struct ev *ev, struct sink *sink, const struct item *item);

/* Keeps the last output, or the first and then breaks out of the generator. */
struct keep_sink {
    struct sink sink;
    struct item kept;
    bool any;
    bool stop;
    uint64_t label;
};

/* By the general way, for nodes where it costs little. */
static bool one_of_each(struct ev *ev, const struct node *node, const struct link *env,
                        const struct rv_json *in, struct rv_json *ret)
{
    struct item item = {*in, NULL};
    struct keep_sink keep = {.sink = {keep_last}};
    if (!each_generator(ev, node, env, &item, &keep.sink))
        return false;
    rv_assert(keep.any); /* the node is `single` */
    *ret = keep.kept.value;
    return true;
}

/* The nodes that do not hand on to another one. */
static bool one_leaf(struct ev *ev, const struct node *node, const struct link *env,
                     const struct rv_json *in, struct rv_json *ret)
{
    switch ((enum expr_op)node->op) {
    case OP_IDENTITY:
        return *ret = *in, true;
    case OP_CONST:
        return *ret = node->v.value, true;
    case OP_VAR:
        return *ret = eval_env_up(env, node->level)->u.value, true;
    case OP_GLOBAL:
        return *ret = ev->globals[node->level], true;
    case OP_FIELDS:
        return one_fields(ev, node, env, in, ret);
    case OP_INDEX:
        return one_index(ev, node, env, in, ret);
    case OP_SLICE:
        return one_slice(ev, node, env, in, ret);
    case OP_NATIVE:
        return one_native(ev, node, env, in, ret);
    case OP_AND:
    case OP_OR:
    case OP_ALT:
        return one_logic(ev, node, env, in, ret);
    case OP_AS:
        return one_as(ev, node, env, in, ret);
    case OP_ARRAY:
        return combine_one_array(ev, node, env, in, ret);
    case OP_OBJECT:
        return combine_one_object(ev, node, env, in, ret);
    case OP_UPDATE:
        return modify_one(ev, node, env, in, ret);
    case OP_PIPE:
    case OP_IF:
    case OP_UP:
    case OP_TRY:
    case OP_REDUCE:
    case OP_FOREACH:
    case OP_ITERATE:
    case OP_COMMA:
    case OP_LABEL:
    case OP_BREAK:
    case OP_CALL:
    case OP_CLOSURE:
    case OP_EMPTY:
    case OP_PATH:
    case OP_GETPATH:
    case OP_RECURSE:
    case OP_RANGE:
    case OP_LIMIT:
    case OP_FIRST:
    case OP_LAST:
    case OP_COUNT:
        break;
    }
    return one_of_each(ev, node, env, in, ret);
}

bool eval_one(struct ev *ev, const struct node *node, const struct link *env,
              const struct rv_json *in, struct rv_json *ret)
{
    struct rv_json piped, next;
    bool go = ev_enter(ev);
    if (!go)
        return false;
    while ((go = ev_spend(ev, 1))) {
        if (node->op == OP_PIPE) {
            if (!(go = eval_one(ev, node->a, env, in, &next)))
                break;
            piped = next;
            in = &piped;
            node = node->b;
        } else if (node->op == OP_IF) {
            if (!(go = eval_one(ev, node->a, env, in, &next)))
                break;
            node = value_truth(&next) ? node->b : node->u.c;
        } else if (node->op == OP_UP) {
            env = eval_env_up(env, node->level);
            node = node->a;
        } else if (node->op == OP_CALL && node->count == 0) {
            env = eval_env_up(env, node->level);
            node = node->u.function->body;
        } else {
            go = one_leaf(ev, node, env, in, ret);
            break;
        }
    }
    ev->depth--;
    return go;
}

/* One of a pipe's two ways: what comes out of `a` goes into `b`. */
struct pipe_sink {
    struct sink sink;
    struct sink *out;
    const struct node *node;
    const struct link *env;
};

static bool pipe_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct pipe_sink *pipe = (struct pipe_sink *)sink;
    return eval_each(ev, pipe->node->b, pipe->env, item, pipe->out);
}

static bool each_pipe(struct ev *ev, const struct node *node, const struct link *env,
                      const struct item *in, struct sink *out)
{
    struct pipe_sink pipe = {{pipe_take}, out, node, env};
    return eval_each(ev, node->a, env, in, &pipe.sink);
}

static bool each_single(struct ev *ev, const struct node *node, const struct link *env,
                        const struct item *in, struct sink *out)
{
    struct item item = {.path = in->path != NULL ? PATH_LOST : NULL};
    return eval_one(ev, node, env, &in->value, &item.value) && out->take(ev, out, &item);
}

/* Whether the node's output can stand somewhere in the input. */
static bool has_path(const struct node *node)
{
    switch ((enum expr_op)node->op) {
    case OP_CONST:
    case OP_VAR:
    case OP_GLOBAL:
    case OP_AND:
    case OP_OR:
    case OP_ARRAY:
    case OP_OBJECT:
    case OP_NATIVE:
    case OP_UPDATE:
        return false;
    case OP_IDENTITY:
    case OP_FIELDS:
    case OP_INDEX:
    case OP_SLICE:
    case OP_ITERATE:
    case OP_PIPE:
    case OP_COMMA:
    case OP_ALT:
    case OP_IF:
    case OP_TRY:
    case OP_AS:
    case OP_REDUCE:
    case OP_FOREACH:
    case OP_LABEL:
    case OP_BREAK:
    case OP_CALL:
    case OP_CLOSURE:
    case OP_UP:
    case OP_EMPTY:
    case OP_PATH:
    case OP_GETPATH:
    case OP_RECURSE:
    case OP_RANGE:
    case OP_LIMIT:
    case OP_FIRST:
    case OP_LAST:
    case OP_COUNT:
        return true;
    }
    return false;
}

/* The node that this one hands its input on to as the last thing it does, with the environment and
 * input for it; NULL when there is none. */
static const struct node *hand_on(struct ev *ev, const struct node *node, const struct link **env,
                                  struct item *item, bool *ret_go)
{
    struct rv_json value;
    *ret_go = true;
    if (node->op == OP_PIPE && node->a->single && item->path == NULL) {
        *ret_go = eval_one(ev, node->a, *env, &item->value, &value);
        if (*ret_go)
            item->value = value;
        return node->b;
    }
    if (node->op == OP_IF && node->a->single) {
        *ret_go = eval_one(ev, node->a, *env, &item->value, &value);
        return *ret_go && value_truth(&value) ? node->b : node->u.c;
    }
    if (node->op == OP_CALL && node->count == 0) {
        *env = eval_env_up(*env, node->level);
        return node->u.function->body;
    }
    if (node->op == OP_CLOSURE) {
        const struct link *link = eval_env_up(*env, node->level);
        *env = link->u.closure.env;
        return link->u.closure.node;
    }
    if (node->op == OP_UP) {
        *env = eval_env_up(*env, node->level);
        return node->a;
    }
    return NULL;
}

static bool each_run(struct ev *ev, const struct node *node, const struct link *env,
                     const struct item *in, struct sink *out)
{
    struct item item = *in;
    for (;;) {
        bool go;
        if (!ev_spend(ev, 1))
            return false;
        if (node->single && item.path == NULL)
            return each_single(ev, node, env, &item, out);
        const struct node *next = hand_on(ev, node, &env, &item, &go);
        if (!go)
            return false;
        if (node->op == OP_COMMA) {
            rv_assert(node->count > 0);
            for (uint32_t i = 0; i + 1 < node->count; i++)
                if (!eval_each(ev, node->v.kids[i], env, &item, out))
                    return false;
            next = node->v.kids[node->count - 1];
        }
        if (next == NULL)
            break;
        node = next;
    }
    if (node->op == OP_IDENTITY)
        return out->take(ev, out, &item);
    if (node->op == OP_PIPE)
        return each_pipe(ev, node, env, &item, out);
    if (node->single && !has_path(node))
        return each_single(ev, node, env, &item, out);
    return each_generator(ev, node, env, &item, out);
}

bool eval_each(struct ev *ev, const struct node *node, const struct link *env,
               const struct item *in, struct sink *out)
{
    if (!ev_enter(ev))
        return false;
    bool go = each_run(ev, node, env, in, out);
    ev->depth--;
    return go;
}

static bool keep_last(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct keep_sink *keep = (struct keep_sink *)sink;
    const struct path *path = NULL;
    if (item->path != NULL && !path_keep(ev, item->path, &path))
        return false;
    keep->kept = (struct item){item->value, path};
    keep->any = true;
    return !keep->stop || ev_break(ev, keep->label);
}

bool eval_last(struct ev *ev, const struct node *node, const struct link *env,
               const struct item *in, struct item *ret, bool *ret_any)
{
    struct keep_sink keep = {.sink = {keep_last}};
    if (!eval_each(ev, node, env, in, &keep.sink))
        return false;
    *ret_any = keep.any;
    if (keep.any)
        *ret = keep.kept;
    return true;
}

bool eval_first(struct ev *ev, const struct node *node, const struct link *env,
                const struct item *in, struct item *ret, bool *ret_any)
{
    struct keep_sink keep = {.sink = {keep_last}, .stop = true, .label = ++ev->labels};
    if (!eval_each(ev, node, env, in, &keep.sink) && !ev_broke_to(ev, keep.label))
        return false;
    *ret_any = keep.any;
    if (keep.any)
        *ret = keep.kept;
    return true;
}

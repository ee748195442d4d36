/* a |= b. Where `a` is a plain way into the value (fields, indices, slices, .[], pipes of those,
 * conditions), the new value is built on the way back from it, each container once: .[] |= f
 * copies the array one time, not once for each item. For any other `a` its paths are collected
 * first, as jq does, and the value is changed path by path.
 * Where `b` gives nothing, what it was asked for is deleted (jq 1.7). */
#include "expr/eval_priv.h"

/* What became of a value: a new one, deleted, or nothing was asked of it. The last differs from an
 * equal new one in that no parent is made for it: (.a | empty) |= 1 leaves null as it is. */
enum fate { FATE_CHANGED, FATE_GONE, FATE_SAME };

/* What is done to the places found so far: the rest of the way, then the update. */
struct change {
    bool (*apply)(struct ev *ev, const struct change *change, const struct rv_json *value,
                  struct rv_json *ret, enum fate *ret_fate);
    const struct change *next;
    const struct node *node;
    const struct link *env;
    struct rv_json key;
    uint32_t field;
};

static bool is_way(const struct node *node, const struct link *env)
{
    switch ((enum expr_op)node->op) {
    case OP_IDENTITY:
    case OP_EMPTY:
        return true;
    case OP_FIELDS:
    case OP_ITERATE:
        return node->a == NULL || is_way(node->a, env);
    case OP_INDEX:
        return node->b->single && (node->a == NULL || is_way(node->a, env));
    case OP_SLICE:
        return (node->b == NULL || node->b->single) && (node->u.c == NULL || node->u.c->single) &&
               (node->a == NULL || is_way(node->a, env));
    case OP_PIPE:
        return is_way(node->a, env) && is_way(node->b, env);
    case OP_IF:
        return node->a->single && is_way(node->b, env) && is_way(node->u.c, env);
    case OP_UP:
        return is_way(node->a, eval_env_up(env, node->level));
    case OP_CONST:
    case OP_VAR:
    case OP_GLOBAL:
    case OP_COMMA:
    case OP_AND:
    case OP_OR:
    case OP_ALT:
    case OP_TRY:
    case OP_AS:
    case OP_REDUCE:
    case OP_FOREACH:
    case OP_LABEL:
    case OP_BREAK:
    case OP_ARRAY:
    case OP_OBJECT:
    case OP_NATIVE:
    case OP_CALL:
    case OP_CLOSURE:
    case OP_PATH:
    case OP_GETPATH:
    case OP_RECURSE:
    case OP_RANGE:
    case OP_LIMIT:
    case OP_FIRST:
    case OP_LAST:
    case OP_UPDATE:
    case OP_COUNT:
        break;
    }
    return false;
}

static bool way_modify(struct ev *ev, const struct node *node, const struct link *env,
                       const struct rv_json *value, const struct change *next, struct rv_json *ret,
                       enum fate *ret_fate);

static bool apply_update(struct ev *ev, const struct change *change, const struct rv_json *value,
                         struct rv_json *ret, enum fate *ret_fate)
{
    struct item in = {*value, NULL};
    struct item first = {rv_json_null(), NULL};
    bool any = true;
    if (change->node->single ? !eval_one(ev, change->node, change->env, value, &first.value)
                             : !eval_first(ev, change->node, change->env, &in, &first, &any))
        return false;
    *ret = first.value;
    *ret_fate = any ? FATE_CHANGED : FATE_GONE;
    return true;
}

/* value[key], changed or gone; nothing can be deleted from null. */
static bool modify_at(struct ev *ev, const struct change *change, const struct change *next,
                      const struct rv_json *key, const struct rv_json *value, struct rv_json *ret,
                      enum fate *ret_fate)
{
    struct rv_json child, changed;
    enum fate fate;
    ev->offset = change->node->offset;
    *ret = *value;
    *ret_fate = FATE_SAME;
    if (!value_index(ev, value, key, &child))
        return ev_forgive(ev, change->node);
    if (!next->apply(ev, next, &child, &changed, &fate))
        return false;
    ev->offset = change->node->offset;
    if (fate == FATE_SAME || (fate == FATE_GONE && value->type == RV_JSON_NULL))
        return true;
    *ret_fate = FATE_CHANGED;
    return fate == FATE_GONE ? path_drop(ev, value, key, ret)
                             : path_put(ev, value, key, &changed, ret);
}

static bool apply_fields(struct ev *ev, const struct change *change, const struct rv_json *value,
                         struct rv_json *ret, enum fate *ret_fate)
{
    rv_assert(change->field < change->node->count);
    struct change deeper = *change;
    bool last = ++deeper.field == change->node->count;
    if (!ev_enter(ev))
        return false;
    bool go = modify_at(ev, change, last ? change->next : &deeper,
                        &change->node->v.keys[change->field], value, ret, ret_fate);
    ev->depth--;
    return go;
}

static bool apply_key(struct ev *ev, const struct change *change, const struct rv_json *value,
                      struct rv_json *ret, enum fate *ret_fate)
{
    return modify_at(ev, change, change->next, &change->key, value, ret, ret_fate);
}

static bool apply_items(struct ev *ev, const struct change *change, const struct rv_json *value,
                        struct rv_json *ret, enum fate *ret_fate)
{
    bool array = value->type == RV_JSON_ARRAY;
    *ret_fate = FATE_SAME;
    if (!array && value->type != RV_JSON_OBJECT) {
        *ret = *value;
        ev->offset = change->node->offset;
        return change->node->optional || ev_raise(ev, "Cannot iterate over %s (%s)",
                                                  value_kind(value), value_brief(value).text);
    }
    struct rv_json *items = ev_take(ev, ((size_t)value->len + 1) * sizeof *items);
    struct rv_json_member *members = array
                                         ? NULL
                                         : ev_take(ev, ((size_t)value->len + 1) * sizeof *members);
    size_t len = 0;
    for (uint32_t i = 0; i < value->len; i++) {
        enum fate fate;
        if (items == NULL || (!array && members == NULL) || !ev_spend(ev, 1) ||
            !change->next->apply(ev, change->next,
                                 array ? &value->u.items[i] : &value->u.members[i].value,
                                 &items[len], &fate))
            return false;
        if (!array && fate != FATE_GONE)
            members[len] = (struct rv_json_member){value->u.members[i].key, items[len]};
        len += fate != FATE_GONE;
        *ret_fate = fate == FATE_SAME ? *ret_fate : FATE_CHANGED;
    }
    *ret = array ? ev_array(ev, items, len) : ev_object(ev, members, len);
    return true;
}

static bool apply_way(struct ev *ev, const struct change *change, const struct rv_json *value,
                      struct rv_json *ret, enum fate *ret_fate)
{
    return way_modify(ev, change->node, change->env, value, change->next, ret, ret_fate);
}

/* value[key...] where the keys may depend on the value that the whole way starts from. */
static bool modify_target(struct ev *ev, const struct link *env, const struct rv_json *value,
                          const struct change *change, struct rv_json *ret, enum fate *ret_fate)
{
    if (change->node->a == NULL)
        return change->apply(ev, change, value, ret, ret_fate);
    return way_modify(ev, change->node->a, env, value, change, ret, ret_fate);
}

static bool modify_keyed(struct ev *ev, const struct node *node, const struct link *env,
                         const struct rv_json *value, const struct change *next,
                         struct rv_json *ret, enum fate *ret_fate)
{
    struct change change = {.apply = apply_key, .next = next, .node = node, .env = env};
    if (node->op == OP_INDEX) {
        if (!eval_one(ev, node->b, env, value, &change.key))
            return false;
    } else {
        struct rv_json from = rv_json_null(), to = rv_json_null();
        if ((node->b != NULL && !eval_one(ev, node->b, env, value, &from)) ||
            (node->u.c != NULL && !eval_one(ev, node->u.c, env, value, &to)) ||
            !value_slice_key(ev, &from, &to, &change.key))
            return false;
    }
    return modify_target(ev, env, value, &change, ret, ret_fate);
}

static bool way_step(struct ev *ev, const struct node *node, const struct link *env,
                     const struct rv_json *value, const struct change *next, struct rv_json *ret,
                     enum fate *ret_fate)
{
    struct change change = {.next = next, .node = node, .env = env};
    struct rv_json condition;
    if (node->op == OP_EMPTY) {
        *ret_fate = FATE_SAME;
        return *ret = *value, true;
    }
    if (node->op == OP_IDENTITY)
        return next->apply(ev, next, value, ret, ret_fate);
    if (node->op == OP_UP)
        return way_modify(ev, node->a, eval_env_up(env, node->level), value, next, ret, ret_fate);
    if (node->op == OP_IF)
        return eval_one(ev, node->a, env, value, &condition) &&
               way_modify(ev, value_truth(&condition) ? node->b : node->u.c, env, value, next, ret,
                          ret_fate);
    if (node->op == OP_PIPE) {
        change.apply = apply_way;
        change.node = node->b;
        return way_modify(ev, node->a, env, value, &change, ret, ret_fate);
    }
    if (node->op == OP_INDEX || node->op == OP_SLICE)
        return modify_keyed(ev, node, env, value, next, ret, ret_fate);
    change.apply = node->op == OP_FIELDS ? apply_fields : apply_items;
    return modify_target(ev, env, value, &change, ret, ret_fate);
}

static bool way_modify(struct ev *ev, const struct node *node, const struct link *env,
                       const struct rv_json *value, const struct change *next, struct rv_json *ret,
                       enum fate *ret_fate)
{
    if (!ev_spend(ev, 1) || !ev_enter(ev))
        return false;
    bool go = way_step(ev, node, env, value, next, ret, ret_fate);
    ev->depth--;
    return go;
}

struct paths_sink {
    struct sink sink;
    const struct change *update;
    struct rv_json state;
    struct rv_json gone; /* the paths to delete at the end */
};

static bool paths_take(struct ev *ev, struct sink *sink, const struct item *item)
{
    struct paths_sink *s = (struct paths_sink *)sink;
    struct rv_json path, old, new, next;
    enum fate fate;
    if (item->path == PATH_LOST)
        return ev_raise(ev, "Invalid path expression with result %s",
                        value_brief(&item->value).text);
    if (!path_array(ev, item->path, &path) || !path_get(ev, &s->state, &path, &old) ||
        !s->update->apply(ev, s->update, &old, &new, &fate))
        return false;
    if (fate == FATE_GONE) {
        const struct rv_json *paths = ev_append(ev, s->gone.u.items, s->gone.len * sizeof path,
                                                &path, sizeof path);
        s->gone = ev_array(ev, paths, (size_t)s->gone.len + 1);
        return paths != NULL;
    }
    if (!path_set(ev, &s->state, path.u.items, path.len, &new, &next))
        return false;
    s->state = next;
    return true;
}

bool modify_one(struct ev *ev, const struct node *node, const struct link *env,
                const struct rv_json *in, struct rv_json *ret)
{
    struct change update = {.apply = apply_update, .node = node->b, .env = env};
    if (is_way(node->a, env)) {
        enum fate fate;
        if (!way_modify(ev, node->a, env, in, &update, ret, &fate))
            return false;
        if (fate == FATE_GONE)
            *ret = rv_json_null();
        return true;
    }
    struct item item = {*in, PATH_ROOT};
    struct paths_sink s = {
        .sink = {paths_take}, .update = &update, .state = *in, .gone = ev_array(ev, NULL, 0)};
    ev->offset = node->offset;
    return eval_each(ev, node->a, env, &item, &s.sink) &&
           path_delete_all(ev, &s.state, &s.gone, ret);
}

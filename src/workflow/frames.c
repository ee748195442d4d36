/* Frames: where control stands, in as few bytes as a later move needs. The open scopes are told by
 * the node alone, which stands inside of them; a record is written only if it holds something.
 *
 *   {"n": node, "m": how it stands there (absent: at a call), "p": the value in hand,
 *    "x": inline steps in a row, "v": [node, visits, ...], "s": [records, outermost first]}
 *   record: {"n": node, "r": raw input, "i": input, "e": error caught, "t": started at,
 *    "l": timeout that was computed, "d": deadline, "a": the attempt's deadline,
 *    "f": first error at, "c": retries, "u": [node, number, ...] of uncompleted steps}
 *
 * If you add a member: write it, read it, and ask in record_complete for what a move relies on. */
#include "workflow/flow_priv.h"

#include "base/time.h"

enum { FRAMES_DEPTH_MAX = RV_JSON_DEPTH_MAX + 4, CHAIN_MAX = RV_SCOPE_DEPTH_MAX + 2 };

static const char *const stand_texts[] = {
    [RV_STAND_CALL] = "c",  [RV_STAND_WAIT] = "w",   [RV_STAND_RETRY] = "r",
    [RV_STAND_ENTER] = "e", [RV_STAND_FAILED] = "f",
};

/* What of a record is looked at later, given the node next inside of it (0: none is open). */
static bool needs_input(const struct rv_flow *flow, const struct rv_record *record, uint32_t inner)
{
    const struct rv_node *node = rv_flow_node(flow, record->node);
    rv_assert(inner == 0 || rv_flow_node(flow, inner)->scope->owner == record->node);
    bool in_catch = inner != 0 && rv_flow_node(flow, inner)->scope->role == RV_ROLE_CATCH;
    if (node->kind == RV_NODE_TRY)
        return !in_catch || node->keeps_input;
    return node->kind == RV_NODE_DO && node->keeps_input;
}

static bool needs_error(const struct rv_flow *flow, const struct rv_record *record, uint32_t inner)
{
    const struct rv_node *node = rv_flow_node(flow, record->node);
    return node->kind == RV_NODE_TRY && node->caught->keeps_error && inner != 0 &&
           rv_flow_node(flow, inner)->scope->role == RV_ROLE_CATCH;
}

static void write_payload(struct rv_buf *buf, const char *key, const struct rv_payload *payload)
{
    rv_buf_printf(buf, ",\"%s\":", key);
    rv_payload_write(payload, buf);
}

static void write_int(struct rv_buf *buf, const char *key, int64_t number)
{
    rv_assert(key[1] == '\0');
    if (number == 0)
        return;
    rv_buf_add_char(buf, ',');
    rv_buf_add_char(buf, '"');
    rv_buf_add_char(buf, *key);
    rv_buf_lit(buf, "\":");
    rv_buf_add_int(buf, number);
}

static void write_pairs(struct rv_buf *buf, const char *key, const struct rv_pairs *pairs)
{
    rv_assert(pairs->count <= pairs->room);
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (i == 0)
            rv_buf_printf(buf, ",\"%s\":[", key);
        else
            rv_buf_add_char(buf, ',');
        rv_buf_add_int(buf, pairs->items[i].node);
        rv_buf_add_char(buf, ',');
        rv_buf_add_int(buf, pairs->items[i].number);
    }
    if (pairs->count > 0)
        rv_buf_add_char(buf, ']');
}

static void write_record(const struct rv_flow *flow, struct rv_buf *buf,
                         const struct rv_record *record, uint32_t inner)
{
    const struct rv_node *node = rv_flow_node(flow, record->node);
    size_t start = buf->len;
    bool retries = node->kind == RV_NODE_TRY;
    rv_assert(retries || record->attempt_deadline == 0);
    rv_assert(retries || record->retries == 0);
    rv_assert(retries || record->unfinished.count == 0);
    rv_assert(record->retries >= 0);
    rv_buf_lit(buf, "{\"n\":");
    rv_buf_add_int(buf, record->node);
    size_t empty = buf->len;
    if (node->keeps_raw || (node->keeps_from && rv_payload_given(&record->raw))) {
        write_payload(buf, "r", &record->raw);
        write_int(buf, "t", record->started_at);
    }
    if (needs_input(flow, record, inner))
        write_payload(buf, "i", &record->input);
    if (needs_error(flow, record, inner))
        write_payload(buf, "e", &record->error);
    if (node->timeout.computed != NULL)
        write_int(buf, "l", record->timeout_ms);
    write_int(buf, "d", record->deadline);
    write_int(buf, "a", record->attempt_deadline);
    write_int(buf, "f", record->first_at);
    write_int(buf, "c", record->retries);
    write_pairs(buf, "u", &record->unfinished);
    if (buf->len == empty)
        buf->len = start;
    else
        rv_buf_lit(buf, "},");
}

static void write_records(const struct rv_flow *flow, struct rv_buf *buf, enum rv_stand stand)
{
    const struct rv_record *chain[CHAIN_MAX];
    uint32_t inner[CHAIN_MAX];
    uint32_t count = 0;
    uint32_t within = stand == RV_STAND_ENTER ? flow->node : 0;
    for (const struct rv_record *record = flow->top; record != NULL; record = record->outer) {
        rv_assert(count < CHAIN_MAX);
        chain[count] = record;
        inner[count++] = within;
        within = record->node;
    }
    size_t start = buf->len;
    rv_buf_lit(buf, ",\"s\":[");
    size_t empty = buf->len;
    while (count-- > 0)
        write_record(flow, buf, chain[count], inner[count]);
    if (buf->len == empty)
        buf->len = start;
    if (buf->len == start || buf->failed != RV_OK)
        return;
    rv_assert(buf->at[buf->len - 1] == ',');
    buf->at[buf->len - 1] = ']';
}

enum rv_err rv_frames_write(struct rv_flow *flow, enum rv_stand stand,
                            const struct rv_payload *value, struct rv_str *ret_frames)
{
    struct rv_buf *buf = &flow->text;
    rv_assert(stand == RV_STAND_ENTER || flow->top->node == flow->node);
    rv_assert((stand != RV_STAND_CALL && stand != RV_STAND_FAILED) || value == NULL);
    rv_assert((stand != RV_STAND_WAIT && stand != RV_STAND_ENTER) || value != NULL);
    rv_buf_reset(buf);
    rv_buf_lit(buf, "{\"n\":");
    rv_buf_add_int(buf, flow->node);
    if (stand != RV_STAND_CALL)
        rv_buf_printf(buf, ",\"m\":\"%s\"", stand_texts[stand]);
    if (value != NULL)
        write_payload(buf, "p", value);
    if (stand == RV_STAND_ENTER)
        write_int(buf, "x", flow->in_a_row);
    write_pairs(buf, "v", &flow->visits);
    write_records(flow, buf, stand);
    rv_buf_add_char(buf, '}');
    return rv_flow_take_text(flow, ret_frames);
}

static bool read_int(const struct rv_json *value, int64_t max, int64_t *ret_number)
{
    return rv_json_int(value, ret_number) && *ret_number > 0 && *ret_number <= max;
}

/* A flat list of pairs of positive numbers, the first of each a call. */
static enum rv_err read_pairs(struct rv_flow *flow, const struct rv_json *list,
                              struct rv_pairs *ret_pairs)
{
    if (list->type != RV_JSON_ARRAY || list->len % 2 != 0)
        return RV_ERR_CORRUPT;
    uint32_t count = list->len / 2;
    struct rv_pair *pairs = RV_NEW_ARRAY(flow->arena, struct rv_pair, count);
    if (pairs == NULL)
        return rv_flow_full(flow);
    for (uint32_t i = 0; i < count; i++) {
        int64_t node;
        int64_t number;
        if (!read_int(&list->u.items[i * 2], flow->definition->count, &node) ||
            !read_int(&list->u.items[i * 2 + 1], UINT32_MAX, &number) ||
            rv_flow_node(flow, (uint32_t)node)->kind != RV_NODE_CALL)
            return RV_ERR_CORRUPT;
        pairs[i] = (struct rv_pair){(uint32_t)node, (uint32_t)number};
    }
    *ret_pairs = (struct rv_pairs){pairs, count, count};
    return RV_OK;
}

static enum rv_err read_record_member(struct rv_flow *flow, struct rv_record *record, char key,
                                      const struct rv_json *value)
{
    struct rv_payload payload = {.tree = *value, .has_tree = true};
    bool good = true;
    switch (key) {
    case 'n':
        break;
    case 'r':
        record->raw = payload;
        break;
    case 'i':
        record->input = payload;
        break;
    case 'e':
        record->error = payload;
        break;
    case 't':
        good = rv_json_int(value, &record->started_at);
        break;
    case 'l':
        good = read_int(value, RV_DURATION_MS_MAX, &record->timeout_ms);
        break;
    case 'd':
        good = read_int(value, RV_INSTANT_FAR, &record->deadline);
        break;
    case 'a':
        good = read_int(value, RV_INSTANT_FAR, &record->attempt_deadline);
        break;
    case 'f':
        good = rv_json_int(value, &record->first_at);
        break;
    case 'c':
        good = read_int(value, INT32_MAX, &record->retries);
        break;
    case 'u':
        return read_pairs(flow, value, &record->unfinished);
    default: /* any other byte */
        good = false;
    }
    return good ? RV_OK : RV_ERR_CORRUPT;
}

/* None ends later than its whole time from now: an operator may have set the clock back
 * (decision 019). */
static void bound_deadlines(const struct rv_flow *flow, struct rv_record *record)
{
    const struct rv_node *node = rv_flow_node(flow, record->node);
    rv_assert(record->attempt_deadline == 0 || node->kind == RV_NODE_TRY);
    const struct rv_retry *retry = node->caught != NULL ? node->caught->retry : NULL;
    int64_t now = flow->env->now;
    if (node->timeout.computed == NULL)
        record->timeout_ms = node->timeout.ms;
    if (record->deadline != 0 && record->timeout_ms != 0)
        record->deadline = rv_time_earlier(record->deadline, rv_time_add(now, record->timeout_ms));
    if (record->attempt_deadline != 0 && retry != NULL && retry->attempt_ms != 0)
        record->attempt_deadline = rv_time_earlier(record->attempt_deadline,
                                                   rv_time_add(now, retry->attempt_ms));
}

static enum rv_err read_record(struct rv_flow *flow, const struct rv_json *value)
{
    int64_t number;
    const struct rv_json *node = rv_json_get(value, RV_STR("n"));
    if (node == NULL || !rv_json_int(node, &number))
        return RV_ERR_CORRUPT;
    struct rv_record *record = flow->top;
    while (record != NULL && record->node != number)
        record = record->outer;
    if (record == NULL)
        return RV_ERR_CORRUPT;
    rv_assert(value->type == RV_JSON_OBJECT);
    for (uint32_t i = 0; i < value->len; i++) {
        struct rv_str key = rv_json_str(&value->u.members[i].key);
        if (key.len != 1)
            return RV_ERR_CORRUPT;
        RV_TRY(read_record_member(flow, record, key.at[0], &value->u.members[i].value));
    }
    bool try_only = record->attempt_deadline != 0 || record->retries != 0 ||
                    record->unfinished.count != 0;
    if (try_only && rv_flow_node(flow, record->node)->kind != RV_NODE_TRY)
        return RV_ERR_CORRUPT;
    bound_deadlines(flow, record);
    return RV_OK;
}

static bool record_complete(const struct rv_flow *flow, const struct rv_record *record,
                            uint32_t inner)
{
    return (!needs_input(flow, record, inner) || rv_payload_given(&record->input)) &&
           (!needs_error(flow, record, inner) || rv_payload_given(&record->error)) &&
           (!rv_flow_node(flow, record->node)->keeps_raw || rv_payload_given(&record->raw));
}

/* Opens a record for each owner around the node, and for the node itself unless it is yet to be
 * entered. */
static enum rv_err open_chain(struct rv_flow *flow, enum rv_stand stand)
{
    uint32_t chain[CHAIN_MAX];
    uint32_t count = 0;
    uint32_t node = flow->node;
    rv_assert(flow->top == NULL);
    rv_assert(node != 0 || stand == RV_STAND_FAILED);
    if (stand != RV_STAND_ENTER)
        chain[count++] = node;
    for (const struct rv_scope *scope = rv_flow_node(flow, node)->scope;
         scope != NULL && scope->role != RV_ROLE_UNDO;
         scope = rv_flow_node(flow, scope->owner)->scope) {
        rv_assert(count < CHAIN_MAX); /* the loader limits the depth of scopes */
        chain[count++] = scope->owner;
    }
    while (count-- > 0)
        RV_TRY(rv_flow_open(flow, chain[count]));
    return RV_OK;
}

static enum rv_err read_stand(struct rv_flow *flow, const struct rv_json *frames,
                              enum rv_stand *ret_stand)
{
    int64_t number = 0;
    const struct rv_json *node = rv_json_get(frames, RV_STR("n"));
    const struct rv_json *mode = rv_json_get(frames, RV_STR("m"));
    struct rv_str text = mode != NULL ? rv_json_str(mode) : RV_STR("c");
    bool failed = rv_str_is(text, "f"); /* perhaps the workflow itself, node 0 */
    if (node == NULL || !rv_json_int(node, &number) || number < (failed ? 0 : 1) ||
        number > flow->definition->count)
        return RV_ERR_CORRUPT;
    flow->node = (uint32_t)number;
    enum rv_node_kind kind = rv_flow_node(flow, flow->node)->kind;
    const struct rv_json *value = rv_json_get(frames, RV_STR("p"));
    if (value != NULL)
        flow->value = (struct rv_payload){.tree = *value, .has_tree = true};
    bool good = false;
    if (rv_str_is(text, "c")) {
        *ret_stand = RV_STAND_CALL;
        good = kind == RV_NODE_CALL && value == NULL;
    } else if (rv_str_is(text, "w")) {
        *ret_stand = RV_STAND_WAIT;
        good = kind == RV_NODE_WAIT && value != NULL;
    } else if (rv_str_is(text, "r")) {
        *ret_stand = RV_STAND_RETRY;
        good = kind == RV_NODE_TRY && rv_flow_node(flow, flow->node)->caught->retry != NULL;
    } else if (rv_str_is(text, "e")) {
        *ret_stand = RV_STAND_ENTER;
        good = value != NULL;
    } else if (failed) {
        *ret_stand = RV_STAND_FAILED;
        good = value == NULL;
    }
    return good ? RV_OK : RV_ERR_CORRUPT;
}

static enum rv_err read_visits(struct rv_flow *flow, const struct rv_json *frames)
{
    const struct rv_json *list = rv_json_get(frames, RV_STR("v"));
    const struct rv_json *in_a_row = rv_json_get(frames, RV_STR("x"));
    int64_t count;
    if (in_a_row != NULL) {
        if (!read_int(in_a_row, RV_INLINE_STEPS_MAX, &count))
            return RV_ERR_CORRUPT;
        flow->in_a_row = (uint32_t)count;
    }
    if (list == NULL)
        return RV_OK;
    return read_pairs(flow, list, &flow->visits);
}

static enum rv_err read_frames(struct rv_flow *flow, const struct rv_json *frames,
                               enum rv_stand *ret_stand)
{
    RV_TRY(read_stand(flow, frames, ret_stand));
    RV_TRY(open_chain(flow, *ret_stand));
    RV_TRY(read_visits(flow, frames));
    const struct rv_json *records = rv_json_get(frames, RV_STR("s"));
    if (records != NULL && records->type != RV_JSON_ARRAY)
        return RV_ERR_CORRUPT;
    for (uint32_t i = 0; records != NULL && i < records->len; i++)
        RV_TRY(read_record(flow, &records->u.items[i]));
    uint32_t inner = *ret_stand == RV_STAND_ENTER ? flow->node : 0;
    for (struct rv_record *record = flow->top; record != NULL;
         inner = record->node, record = record->outer) {
        if (!record_complete(flow, record, inner))
            return RV_ERR_CORRUPT;
    }
    return RV_OK;
}

static enum rv_err frames_parse(struct rv_arena *arena, struct rv_str frames,
                                struct rv_json *ret_tree)
{
    enum rv_err err = rv_json_parse(arena, frames, FRAMES_DEPTH_MAX, ret_tree, NULL);
    bool corrupt = err == RV_ERR_INVALID || (err == RV_ERR_LIMIT && arena->refused == RV_OK);
    return corrupt ? RV_ERR_CORRUPT : err;
}

enum rv_err rv_frames_read(struct rv_flow *flow, struct rv_str frames, enum rv_stand *ret_stand)
{
    struct rv_json tree;
    RV_TRY(frames_parse(flow->arena, frames, &tree));
    return read_frames(flow, &tree, ret_stand);
}

/* Whether the list of pairs has that number as the second of one. */
static bool pairs_have(const struct rv_json *list, uint32_t number)
{
    int64_t value;
    if (list == NULL || list->type != RV_JSON_ARRAY)
        return false;
    for (uint32_t i = 1; i < list->len; i += 2)
        if (rv_json_int(&list->u.items[i], &value) && value == (int64_t)number)
            return true;
    return false;
}

enum rv_err rv_flow_keeps(struct rv_arena *arena, struct rv_str frames, uint32_t number,
                          bool *ret_keeps)
{
    struct rv_json tree;
    RV_TRY(frames_parse(arena, frames, &tree));
    const struct rv_json *records = rv_json_get(&tree, RV_STR("s"));
    bool keeps = false;
    for (uint32_t i = 0; records != NULL && records->type == RV_JSON_ARRAY && i < records->len; i++)
        keeps = keeps || pairs_have(rv_json_get(&records->u.items[i], RV_STR("u")), number);
    *ret_keeps = keeps;
    return RV_OK;
}

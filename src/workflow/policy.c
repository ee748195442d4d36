/* metadata.reeve: how a call is tried and undone. */
#include "base/limits.h"
#include "base/time.h"
#include "workflow/load_priv.h"

static const struct rv_policy policy_default = {.complete_by_ms = 30 * RV_SECOND_MS,
                                                .threshold = 3,
                                                .delay_ms = RV_SECOND_MS,
                                                .cooldown_ms = 5 * RV_MINUTE_MS,
                                                .rounds = 2};

static enum rv_err load_then(struct rv_load *load, const struct rv_json *failures,
                             struct rv_policy *policy)
{
    struct rv_str then;
    enum rv_err err = rv_load_string(load, failures, "then", &then);
    if (err != RV_OK || then.at == NULL)
        return err;
    if (load->undo)
        return rv_load_invalid(
            load, "then",
            "`then` is not allowed in a compensation: a failed compensation waits for an operator");
    policy->then_error = rv_str_is(then, "error");
    if (!policy->then_error && !rv_str_is(then, "compensate"))
        return rv_load_invalid(load, "then", "then must be compensate or error");
    return RV_OK;
}

static enum rv_err load_failures(struct rv_load *load, const struct rv_json *reeve,
                                 struct rv_policy *policy)
{
    static const struct rv_load_property known[] = {{"threshold", false}, {"delay", false},
                                                    {"cooldown", false},  {"rounds", false},
                                                    {"then", false},      {NULL, false}};
    const struct rv_json *failures;
    int64_t threshold = policy->threshold;
    int64_t rounds = policy->rounds;
    RV_TRY(rv_load_member(load, reeve, "failures", RV_JSON_OBJECT, &failures));
    if (failures == NULL)
        return RV_OK;
    size_t path = rv_load_push(load, RV_STR("failures"));
    size_t at = load->path.len;
    RV_TRY(rv_load_members(load, failures, known, "failures"));
    enum rv_err err = rv_load_int(load, failures, "threshold", 1, 1000, &threshold);
    RV_TRY(rv_load_past(load, err, at));
    err = rv_load_duration(load, failures, "delay", &policy->delay_ms);
    RV_TRY(rv_load_past(load, err, at));
    err = rv_load_duration(load, failures, "cooldown", &policy->cooldown_ms);
    RV_TRY(rv_load_past(load, err, at));
    err = rv_load_int(load, failures, "rounds", 0, 1000, &rounds);
    RV_TRY(rv_load_past(load, err, at));
    RV_TRY(rv_load_past(load, load_then(load, failures, policy), at));
    rv_load_pop(load, path);
    rv_assert(rounds >= 0);
    policy->threshold = (uint32_t)threshold;
    policy->rounds = (uint32_t)rounds;
    return RV_OK;
}

static enum rv_err load_complete_by(struct rv_load *load, const struct rv_json *reeve,
                                    struct rv_policy *policy)
{
    RV_TRY(rv_load_duration(load, reeve, "completeBy", &policy->complete_by_ms));
    if (policy->complete_by_ms == 0)
        return rv_load_invalid(load, "completeBy", "completeBy must be longer than 0");
    return RV_OK;
}

static enum rv_err load_lease(struct rv_load *load, const struct rv_json *reeve,
                              struct rv_policy *policy)
{
    if (rv_json_get(reeve, RV_STR("lease")) == NULL)
        return RV_OK;
    int64_t lease_ms = 0;
    enum rv_err err = rv_load_duration(load, reeve, "lease", &lease_ms);
    policy->lease_ms = lease_ms;
    if (err != RV_OK)
        return err;
    if (lease_ms == 0)
        return rv_load_invalid(load, "lease",
                               "lease must be longer than 0; omit it for the default");
    if (lease_ms > policy->complete_by_ms)
        return rv_load_invalid(load, "lease", "lease is longer than completeBy and has no effect");
    return RV_OK;
}

/* What the document and a task have in common. */
static enum rv_err load_policy(struct rv_load *load, const struct rv_json *reeve,
                               struct rv_policy *policy)
{
    bool own_complete_by = rv_json_get(reeve, RV_STR("completeBy")) != NULL;
    size_t path = load->path.len;
    RV_TRY(rv_load_past(load, load_complete_by(load, reeve, policy), path));
    RV_TRY(rv_load_past(load, load_lease(load, reeve, policy), path));
    /* A lease that came from the document must not outlive a shorter completeBy of the task. */
    if (own_complete_by && policy->lease_ms > policy->complete_by_ms)
        policy->lease_ms = policy->complete_by_ms;
    return load_failures(load, reeve, policy);
}

/* metadata.reeve of an object, the path set to it; NULL when there is none. */
static enum rv_err enter_reeve(struct rv_load *load, const struct rv_json *object,
                               const struct rv_json **ret_reeve)
{
    const struct rv_json *metadata;
    *ret_reeve = NULL;
    RV_TRY(rv_load_member(load, object, "metadata", RV_JSON_OBJECT, &metadata));
    if (metadata == NULL)
        return RV_OK;
    (void)rv_load_push(load, RV_STR("metadata"));
    RV_TRY(rv_load_metadata(load, metadata));
    RV_TRY(rv_load_member(load, metadata, "reeve", RV_JSON_OBJECT, ret_reeve));
    (void)rv_load_push(load, RV_STR("reeve"));
    return RV_OK;
}

enum rv_err rv_load_document_policy(struct rv_load *load, const struct rv_json *document)
{
    static const struct rv_load_property known[] = {
        {"completeBy", false}, {"lease", false}, {"failures", false}, {NULL, false}};
    struct rv_policy *policy = &load->definition->nodes[0]->policy;
    const struct rv_json *reeve;
    size_t path = load->path.len;
    *policy = policy_default;
    RV_TRY(enter_reeve(load, document, &reeve));
    if (reeve != NULL) {
        RV_TRY(rv_load_members(load, reeve, known, "metadata.reeve"));
        RV_TRY(load_policy(load, reeve, policy));
    }
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_compensate(struct rv_load *load, const struct rv_json *reeve,
                                   struct rv_node *node)
{
    const struct rv_json *compensate = rv_json_get(reeve, RV_STR("compensate"));
    if (compensate == NULL)
        return RV_OK;
    if (load->undo)
        return rv_load_invalid_name(load, RV_STR("compensate"),
                                    "a compensation cannot have a compensation of its own; make "
                                    "the compensation idempotent");
    if (rv_str_is(rv_json_str(compensate), "none")) {
        node->undo_way = RV_UNDO_NOTHING;
        return RV_OK;
    }
    if (compensate->type != RV_JSON_ARRAY)
        return rv_load_invalid(load, "compensate", "compensate must be a list of steps, or none");
    size_t path = rv_load_push(load, RV_STR("compensate"));
    const struct rv_load_error *errors = load->errors;
    uint32_t number = load->definition->count; /* a call owns no nodes before these */
    load->undo = true;
    load->errors = NULL; /* it runs when no catch is open */
    rv_assert(load->definition->nodes[number] == node);
    rv_assert(node->undo_way == RV_UNDO_UNDECLARED || node->undo_way == RV_UNDO_NOTHING);
    enum rv_err err = rv_load_scope(load, compensate, number, RV_ROLE_UNDO, &node->undo);
    load->errors = errors;
    load->undo = false;
    node->undo_way = RV_UNDO_STEPS;
    if (err != RV_OK)
        return err;
    rv_load_pop(load, path);
    return RV_OK;
}

static enum rv_err load_pivot(struct rv_load *load, const struct rv_json *reeve,
                              struct rv_node *node)
{
    const struct rv_json *pivot;
    RV_TRY(rv_load_member(load, reeve, "pivot", RV_JSON_BOOL, &pivot));
    if (pivot == NULL || !pivot->truth)
        return RV_OK;
    if (load->undo)
        return rv_load_invalid_name(load, RV_STR("pivot"), "a compensation cannot be a pivot");
    if (rv_json_get(reeve, RV_STR("compensate")) != NULL)
        return rv_load_invalid_name(load, RV_STR("pivot"),
                                    "a pivot is never undone; remove pivot or compensate");
    node->undo_way = RV_UNDO_PIVOT;
    return RV_OK;
}

/* metadata.reeve of a call, the path set to it. */
static enum rv_err load_call_policy(struct rv_load *load, const struct rv_json *reeve,
                                    struct rv_node *node)
{
    static const struct rv_load_property known[] = {
        {"completeBy", false}, {"lease", false},    {"failures", false}, {"compensate", false},
        {"pivot", false},      {"noEffect", false}, {NULL, false}};
    size_t at = load->path.len;
    enum rv_err err = RV_OK;
    RV_TRY(rv_load_members(load, reeve, known, "metadata.reeve"));
    if (rv_json_get(reeve, RV_STR("noEffect")) != NULL && !rv_str_is(node->agent, "http"))
        err = rv_load_invalid_name(load, RV_STR("noEffect"),
                                   "noEffect is valid only with call: http; other agents "
                                   "report the effect of a failure themselves");
    RV_TRY(rv_load_past(load, err, at));
    RV_TRY(rv_load_past(load, load_policy(load, reeve, &node->policy), at));
    RV_TRY(rv_load_past(load, load_pivot(load, reeve, node), at));
    return load_compensate(load, reeve, node);
}

enum rv_err rv_load_task_policy(struct rv_load *load, const struct rv_json *task)
{
    struct rv_node *node = load->node;
    const struct rv_json *reeve;
    size_t path = load->path.len;
    bool call = node->kind == RV_NODE_CALL;
    rv_assert(load->definition->nodes[0] != node); /* that is the root's, with the document's */
    node->policy = load->definition->nodes[0]->policy;
    bool done = call && !node->safe && !load->undo; /* it may do something that is to be undone */
    node->undo_way = done ? RV_UNDO_UNDECLARED : RV_UNDO_NOTHING;
    RV_TRY(enter_reeve(load, task, &reeve));
    if (reeve != NULL && !call)
        return rv_load_invalid(load, NULL,
                               "metadata.reeve is allowed only on a call; write it on the calls "
                               "inside this step, or under document.metadata.reeve for all calls");
    if (reeve != NULL)
        RV_TRY(load_call_policy(load, reeve, node));
    rv_load_pop(load, path);
    return RV_OK;
}

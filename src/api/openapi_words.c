/* The words themselves come from the tables that the server uses, so that the description follows
 * them without a second list. */
#include "api/openapi_words.h"

#include "api/parse.h"
#include "base/err.h"
#include "core/selection.h"

#define TEXT_OF_TWO(name, text) text,
#define TEXT_OF(name, text, ...) text,

#define TYPE(name, family, text, http, exit_code) "urn:reeve:error:" #name,
static const char *const problem_types[] = {RV_ERR_TABLE(TYPE) "about:blank", NULL};
#undef TYPE

#define RV_TASK_STATE TEXT_OF
static const char *const task_states[] = {
#include "core/tbl/task_state.def"
    NULL};
static const char *const task_state_filters[] = {
#include "core/tbl/task_state.def"
    "suspended", NULL};
#undef RV_TASK_STATE

#define RV_STEP_STATE TEXT_OF
static const char *const step_states[] = {
#include "core/tbl/step_state.def"
    NULL};
#undef RV_STEP_STATE

#define RV_ATTEMPT_STATE TEXT_OF
static const char *const attempt_states[] = {
#include "core/tbl/attempt_state.def"
    NULL};
#undef RV_ATTEMPT_STATE

#define RV_EFFECT TEXT_OF_TWO
static const char *const effects[] = {
#include "core/tbl/effect.def"
    NULL};
#undef RV_EFFECT

#define RV_STEP_KIND TEXT_OF_TWO
static const char *const step_kinds[] = {
#include "core/tbl/step_kind.def"
    NULL};
#undef RV_STEP_KIND

#define RV_LATE_REASON TEXT_OF_TWO
static const char *const late_reasons[] = {
#include "core/tbl/late_reason.def"
    NULL};
#undef RV_LATE_REASON

#define RV_OPERATOR_VERB TEXT_OF_TWO
static const char *const operator_verbs[] = {
#include "core/tbl/operator_verb.def"
    NULL};
#undef RV_OPERATOR_VERB

#define RV_CURE TEXT_OF
static const char *const cures[] = {
#include "core/tbl/cure.def"
    NULL};
#undef RV_CURE

#define RV_WAIT_REASON TEXT_OF
static const char *const wait_reasons[] = {
#include "scheduler/tbl/wait_reason.def"
    NULL};
#undef RV_WAIT_REASON

#define RV_EXPLAINED_EVENT TEXT_OF_TWO
static const char *const task_events[] = {
#include "scheduler/tbl/explained_event.def"
    NULL};
#undef RV_EXPLAINED_EVENT

#define RV_EXPLAINED_EFFECT TEXT_OF
static const char *const effect_outcomes[] = {
#include "scheduler/tbl/explained_effect.def"
    NULL};
#undef RV_EXPLAINED_EFFECT

#define RV_STORE_PROBLEM(name, text, sentence, cure) text,
static const char *const store_problems[] = {
#include "scheduler/tbl/store_problem.def"
    NULL};
#undef RV_STORE_PROBLEM

#define RV_ALERT_KIND TEXT_OF
static const char *const alert_kinds[] = {
#include "core/tbl/alert_kind.def"
    NULL};
#undef RV_ALERT_KIND

#define RV_MESSAGE_KIND TEXT_OF_TWO
static const char *const message_kinds[] = {
#include "core/tbl/message_kind.def"
    NULL};
#undef RV_MESSAGE_KIND

#define RV_ROLE TEXT_OF
static const char *const roles[] = {
#include "core/tbl/role.def"
    NULL};
static const char *const action_roles[] = {
#include "core/tbl/role.def"
    "local", NULL};
#undef RV_ROLE

/* These have no table: a test compares them with the functions that write or read them. */
static const char *const failure_effects[] = {"none", "unknown", NULL};
static const char *const directions[] = {"forward", "undo", NULL};
static const char *const bulk_outcomes[] = {"done", "refused", "gone", NULL};
static const char *const selection_states[] = {"unreadable", "selected", "ended",
                                               "paused",     "running",  NULL};
static const char *const delivery_states[] = {"undeliverable", "waiting", "delivered", NULL};

static const struct rv_words words[] = {
#define RV_WORDS(name, words, description) {#name, words, description},
#include "api/tbl/words.def"
#undef RV_WORDS
    {NULL, NULL, NULL},
};

const struct rv_words *rv_openapi_words(void)
{
    return words;
}

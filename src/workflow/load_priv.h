/* load_priv.h - what the loader's files share: the place they are at, faults, readers of values. */
#ifndef RV_WORKFLOW_LOAD_PRIV_H
#define RV_WORKFLOW_LOAD_PRIV_H

#include "base/assert.h"
#include "base/buf.h"
#include "workflow/definition_priv.h"

/* A catch's variable, in force for what its catch holds. */
struct rv_load_error {
    const struct rv_load_error *outer;
    struct rv_str name;
    uint32_t node; /* the try */
};

struct rv_load {
    struct rv_arena *arena;
    struct rv_definition *definition;
    struct rv_definition_fault *fault;
    struct rv_definition_faults *faults; /* NULL: the first fault ends the load */
    struct rv_buf path;                  /* pointer of the value at hand */
    const struct rv_json *use;           /* NULL: none */
    const struct rv_load_error *errors;  /* innermost first */
    struct rv_node *node;                /* the task at hand; NULL: the workflow itself */
    unsigned depth;                      /* of scopes */
    bool undo;                           /* inside of a compensation */
    bool published;                      /* by a build that may have known fewer rules */
    bool shape_only; /* under `use`: expressions are compiled where they are used */
};

/* A member's name, and whether it is valid DSL that is not supported yet. Ends with a NULL name. */
struct rv_load_property {
    const char *name;
    bool unsupported;
};

/* The path. Every push is undone with the length that it returned; a fault leaves it as it is. */
size_t rv_load_push(struct rv_load *load, struct rv_str token);
size_t rv_load_push_index(struct rv_load *load, uint32_t index);
void rv_load_pop(struct rv_load *load, size_t length);
enum rv_err rv_load_full(const struct rv_load *load);

/* Faults: INVALID (or UNSUPPORTED) with the fault filled; LIMIT or MEMORY if there is no room for
 * it. The value of member `key` is meant, or for NULL the value at hand; with _name the key
 * itself. */
enum rv_err rv_load_invalid(struct rv_load *load, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum rv_err rv_load_invalid_name(struct rv_load *load, struct rv_str key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum rv_err rv_load_unsupported(struct rv_load *load, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum rv_err rv_load_unsupported_name(struct rv_load *load, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* After a value that nothing else depends on, read at the path of that length: when all faults are
 * wanted, notes the fault in `err` and gives OK, so that the load continues with the next value.
 * What was read of the faulty value may be incomplete. */
RV_CHECK enum rv_err rv_load_past(struct rv_load *load, enum rv_err err, size_t path);

/* Refuses members that `known` does not list, naming what they stand `under`. */
RV_CHECK enum rv_err rv_load_members(struct rv_load *load, const struct rv_json *object,
                                     const struct rv_load_property *known, const char *under);
/* The member `key`, or NULL in *ret_value; INVALID if it has another type. */
RV_CHECK enum rv_err rv_load_member(struct rv_load *load, const struct rv_json *object,
                                    const char *key, enum rv_json_type type,
                                    const struct rv_json **ret_value);
RV_CHECK enum rv_err rv_load_string(struct rv_load *load, const struct rv_json *object,
                                    const char *key, struct rv_str *ret_text);
/* Leaves *number as it is when the member is absent. */
RV_CHECK enum rv_err rv_load_int(struct rv_load *load, const struct rv_json *object,
                                 const char *key, int64_t min, int64_t max, int64_t *number);
RV_CHECK enum rv_err rv_load_duration(struct rv_load *load, const struct rv_json *object,
                                      const char *key, int64_t *duration_ms);
/* The same, or an expression that is computed at run time. */
RV_CHECK enum rv_err rv_load_computed_duration(struct rv_load *load, const struct rv_json *object,
                                               const char *key, uint32_t available,
                                               struct rv_duration *ret_duration);
/* use.<kind>.<name>: the value, and the path set to it (its former length in *ret_path, the former
 * text in *ret_saved, for rv_load_leave_named). INVALID with a suggestion if there is none. */
RV_CHECK enum rv_err rv_load_enter_named(struct rv_load *load, const char *kind, struct rv_str name,
                                         const struct rv_json **ret_value,
                                         struct rv_str *ret_saved);
void rv_load_leave_named(struct rv_load *load, struct rv_str saved);

/* value.c: expressions and templates. `available` are RV_VAR_BITs. */
#define RV_PLACE_BEFORE                                                                            \
    (RV_VAR_BIT(RV_VAR_CONTEXT) | RV_VAR_BIT(RV_VAR_TASK) | RV_VAR_BIT(RV_VAR_WORKFLOW) |          \
     RV_VAR_BIT(RV_VAR_RUNTIME))
#define RV_PLACE_TASK (RV_PLACE_BEFORE | RV_VAR_BIT(RV_VAR_INPUT))
#define RV_PLACE_EXPORT (RV_PLACE_TASK | RV_VAR_BIT(RV_VAR_OUTPUT))
#define RV_PLACE_WORKFLOW_INPUT (RV_VAR_BIT(RV_VAR_WORKFLOW) | RV_VAR_BIT(RV_VAR_RUNTIME))
#define RV_PLACE_WORKFLOW_OUTPUT (RV_PLACE_WORKFLOW_INPUT | RV_VAR_BIT(RV_VAR_CONTEXT))

/* An expression field: plain jq, or jq in `${ }`. Absent: NULL. */
RV_CHECK enum rv_err rv_load_expression(struct rv_load *load, const struct rv_json *object,
                                        const char *key, uint32_t available,
                                        struct rv_expression **ret_expression);
/* input.from, output.as, export.as: an expression field or an object. Absent: NULL. */
RV_CHECK enum rv_err rv_load_transform(struct rv_load *load, const struct rv_json *object,
                                       const char *key, uint32_t available,
                                       struct rv_template **ret_template);
/* Any value, at the path at hand. */
RV_CHECK enum rv_err rv_load_template(struct rv_load *load, const struct rv_json *value,
                                      uint32_t available, struct rv_template **ret_template);
bool rv_is_expression(struct rv_str text);
/* INVALID, with the cure or with `why` it does not belong there, when a `${` stands in the text. */
RV_CHECK enum rv_err rv_load_plain(struct rv_load *load, struct rv_str text, const char *why);
/* The variables that the expressions in it name; 0 for NULL. */
uint32_t rv_template_uses(const struct rv_template *template);

/* policy.c: metadata.reeve of the document (into the workflow's node) and of a task. */
RV_CHECK enum rv_err rv_load_document_policy(struct rv_load *load, const struct rv_json *document);
RV_CHECK enum rv_err rv_load_task_policy(struct rv_load *load, const struct rv_json *task);

/* misplaced.c: what is permitted but read by nothing where it is written. Definitions of a store
 * pass. */
/* Of `metadata`, the path set to it. */
RV_CHECK enum rv_err rv_load_metadata(struct rv_load *load, const struct rv_json *metadata);
/* Where in a task a property of Reeve's belongs; NULL for all others. */
const char *rv_load_level_of(struct rv_str key);
/* metadata.reeve under `with` of a call, the path set to the task. */
RV_CHECK enum rv_err rv_load_with_metadata(struct rv_load *load, const struct rv_json *with);
/* $undo.name with a name that is no member; `jq` begins at `offset` of the value at hand. */
RV_CHECK enum rv_err rv_load_undo_members(struct rv_load *load, struct rv_str jq, size_t offset);
/* A filter's type with the address of a standard error that does not exist. */
RV_CHECK enum rv_err rv_load_error_type(struct rv_load *load, struct rv_str type);

/* load.c. The tasks of one scope by their names: open addressing, a power of two of slots, 0 is
 * free. */
struct rv_load_names {
    uint32_t *nodes;
    uint32_t room;
};
/* The node of that name, 0 if there is none; *ret_slot is where it is or would be. */
uint32_t rv_load_find_name(const struct rv_load *load, const struct rv_load_names *names,
                           struct rv_str name, uint32_t *ret_slot);
RV_CHECK enum rv_err rv_load_scope(struct rv_load *load, const struct rv_json *list, uint32_t owner,
                                   enum rv_scope_role role, struct rv_scope **ret_scope);
/* `timeout`: inline or by name. */
RV_CHECK enum rv_err rv_load_timeout(struct rv_load *load, const struct rv_json *object,
                                     uint32_t available, struct rv_duration *ret_timeout);

/* load_task.c: what a task says. */
RV_CHECK enum rv_err rv_load_task(struct rv_load *load, const struct rv_json *task,
                                  struct rv_node *node);
/* Whether a step can have a property of this name. */
bool rv_load_is_property(struct rv_str key);
/* Tells that a step's properties stand where its name should. */
RV_CHECK enum rv_err rv_load_no_name(struct rv_load *load);
/* The `then`s of a scope's tasks, once all of its names are known. */
RV_CHECK enum rv_err rv_load_directives(struct rv_load *load, const struct rv_json *list,
                                        struct rv_scope *scope, const struct rv_load_names *names);

/* load_http.c: `call: http`; what it may name under `use`. */
RV_CHECK enum rv_err rv_load_http(struct rv_load *load, const struct rv_json *task,
                                  struct rv_node *node);
RV_CHECK enum rv_err rv_load_secrets(struct rv_load *load, const struct rv_json *use);
RV_CHECK enum rv_err rv_load_authentication(struct rv_load *load, const struct rv_json *policy,
                                            struct rv_template **ret_template);

/* load_try.c: `catch` of a try; the shape of `use`. */
RV_CHECK enum rv_err rv_load_catch(struct rv_load *load, const struct rv_json *task,
                                   struct rv_node *node);
RV_CHECK enum rv_err rv_load_error(struct rv_load *load, const struct rv_json *error,
                                   struct rv_raise_task **ret_raise);
RV_CHECK enum rv_err rv_load_retry(struct rv_load *load, const struct rv_json *policy,
                                   struct rv_retry **ret_retry);
RV_CHECK enum rv_err rv_load_use(struct rv_load *load, const struct rv_json *use);

#endif

/* definition.h - a workflow as published: validated, compiled, immutable. */
#ifndef RV_WORKFLOW_DEFINITION_H
#define RV_WORKFLOW_DEFINITION_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "json/json.h"

#include <stdbool.h>
#include <stdint.h>

/* Compiled from the document's JSON; lives, with all it points to, on the arena given to load. */
struct rv_definition;

/* What is wrong with a document, for the one who wrote it. */
struct rv_definition_fault {
    struct rv_str pointer; /* RFC 6901, of the value (or of the member whose key is at fault) */
    bool at_key;           /* the member's name is at fault, not its value */
    size_t offset;         /* bytes into the string value, for a fault inside an expression */
    struct rv_str message; /* what is wrong and the cure, without the place */
    bool unsupported;      /* valid DSL that is not supported yet */
};

/* The DSL's document as a JSON tree (the yaml room makes one from YAML). Checks it against the
 * Open Workflow DSL 1.0.3 and Reeve's extensions under metadata.reeve, and compiles every
 * expression. INVALID or UNSUPPORTED with *ret_fault; LIMIT or MEMORY when the arena is full.
 * Source of the rules: DSL reference; docs/RULES.md. */
RV_CHECK enum rv_err rv_definition_load(struct rv_arena *arena, const struct rv_json *document,
                                        const struct rv_definition **ret_definition,
                                        struct rv_definition_fault *ret_fault);

/* The faults of a document, in no particular order; at most so many are noted. */
enum { RV_DEFINITION_FAULTS_MAX = 100 };
struct rv_definition_faults {
    uint32_t count;
    struct rv_definition_fault items[RV_DEFINITION_FAULTS_MAX];
};

/* What a server lets the compiled form of one definition take. */
enum { RV_DEFINITION_COMPILED_BYTES_MAX = 64 * 1024 * 1024 };

/* As rv_definition_load, but continues after a fault and reports all of them. INVALID when there
 * is any. */
RV_CHECK enum rv_err rv_definition_check(struct rv_arena *arena, const struct rv_json *document,
                                         const struct rv_definition **ret_definition,
                                         struct rv_definition_faults *ret_faults);

/* The same of a definition out of the store. Rules that publication has learned since it was
 * published do not keep its tasks from going on. */
RV_CHECK enum rv_err rv_definition_load_published(struct rv_arena *arena,
                                                  const struct rv_json *document,
                                                  const struct rv_definition **ret_definition,
                                                  struct rv_definition_fault *ret_fault);

struct rv_str rv_definition_namespace(const struct rv_definition *definition);
struct rv_str rv_definition_name(const struct rv_definition *definition);
struct rv_str rv_definition_version(const struct rv_definition *definition);

/* How often and how long a step is tried, and what happens then (RULES 5): metadata.reeve of the
 * step, over document.metadata.reeve, over the defaults in parentheses. */
struct rv_policy {
    int64_t complete_by_ms; /* per attempt (PT30S) */
    int64_t lease_ms;       /* 0: complete_by_ms if that is at most 30 s, else 15 s */
    uint32_t threshold;     /* failures before a cool-down (3) */
    int64_t delay_ms;       /* before a repeated attempt (PT1S); doubles up to cooldown_ms */
    int64_t cooldown_ms;    /* (PT5M) */
    uint32_t rounds;        /* how often it starts over after a cool-down (2) */
    bool then_error;        /* `then: error`; else compensate */
};

/* How a step is undone (RULES 6). */
enum rv_undo_way {
    RV_UNDO_UNDECLARED, /* nobody knows how: an operator is needed */
    RV_UNDO_NOTHING,    /* compensate: none */
    RV_UNDO_STEPS,      /* a list of steps */
    RV_UNDO_PIVOT       /* pivot: true, never undone */
};

/* A node is a task of the DSL in the definition, numbered from 1 in document order; 0 is the
 * workflow itself. Numbers are stable for one content hash. */
uint32_t rv_definition_nodes(const struct rv_definition *definition);
/* `node` must be a node of this definition (or 0: the document's defaults). */
const struct rv_policy *rv_definition_policy(const struct rv_definition *definition, uint32_t node);
enum rv_undo_way rv_definition_undo_way(const struct rv_definition *definition, uint32_t node);
struct rv_str rv_definition_reference(const struct rv_definition *definition, uint32_t node);
/* What a `call: http` of this node calls, as written, with {name} for what is filled in; absent
 * when it is computed, and for all other nodes. */
struct rv_str rv_definition_endpoint(const struct rv_definition *definition, uint32_t node);
/* What is valid, but probably not meant; expressions: the first RV_DEFINITION_SEVERAL_MAX. */
enum { RV_DEFINITION_SEVERAL_MAX = 10, RV_DEFINITION_WARNINGS_MAX = 20 };
struct rv_definition_warning {
    struct rv_str pointer;
    struct rv_str message;
};
/* On the arena, as many as it has room for. */
uint32_t rv_definition_warnings(const struct rv_definition *definition, struct rv_arena *arena,
                                struct rv_definition_warning ret[RV_DEFINITION_WARNINGS_MAX]);
/* Whether a call can name an agent so: letters, digits, and behind the first one - _ and dots. */
bool rv_agent_name_good(struct rv_str name);
/* The agent that a call of this node names; absent for all other nodes. */
struct rv_str rv_definition_agent(const struct rv_definition *definition, uint32_t node);
/* The node whose reference this is; 0 when there is none. */
uint32_t rv_definition_find(const struct rv_definition *definition, struct rv_str reference);

#endif

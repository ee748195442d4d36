/* flow_kit.h - drives a flow from stop to stop in a test, with a fake agent and fresh memory each
 * time. */
#ifndef RV_TEST_FLOW_KIT_H
#define RV_TEST_FLOW_KIT_H

#include "workflow/definition.h"
#include "workflow/flow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KIT_STEPS_MAX = 4096, KIT_TEXT_BYTES = 1024 * 1024 };

/* What the fake agent does with a call. */
enum kit_answer { KIT_COMPLETE, KIT_RAISE, KIT_EXPIRE, KIT_LEAVE };

struct kit;
/* `*ret_text` is the output, or the error object. LEAVE: the run ends with the call open. */
typedef enum kit_answer kit_agent(struct kit *kit, const struct rv_flow_stop *stop,
                                  struct rv_str *ret_text);

struct kit_step {
    uint32_t node;
    uint32_t visit;
    char state; /* 'o' open, 'c' completed, 'a' abandoned */
};

struct kit {
    struct rv_arena memory; /* the definition's */
    const struct rv_definition *definition;
    struct rv_definition_fault fault;
    char *yaml;
    /* Inputs of a run. */
    kit_agent *agent;
    void *agent_context;
    int64_t now;
    int64_t fuel;          /* of each move; 0: plenty */
    uint32_t inline_steps; /* of each move; 0: plenty */
    size_t arena_bytes;    /* cap of each move; 0: none */
    size_t stops_max;      /* 0: 10000 */
    const char *undo;
    /* What came of it, valid until the next run. */
    enum rv_err err;
    struct rv_flow_stop stop; /* its texts live in `last` */
    struct rv_arena last;
    char *context; /* owned; NULL: none */
    char *input;   /* owned */
    char *trace;   /* owned: a line for each stop */
    size_t trace_len;
    size_t stops;
    size_t frames_bytes_max;
    struct kit_step steps[KIT_STEPS_MAX];
    uint32_t steps_count;
    uint32_t current; /* number of the step at which it stands; 0: none */
};

/* False when the text is refused: `fault` says why, or err is that of the YAML. */
bool kit_load(struct kit *kit, const char *yaml);
/* As load, for a definition that must be good. */
void kit_new(struct kit *kit, const char *yaml);
void kit_done(struct kit *kit);

/* Runs to DONE, RAISED, an error, a call that the agent leaves, or stops_max. Between two stops
 * everything is forgotten but frames, data and context, and what a flow promises about its stops is
 * checked. */
void kit_run(struct kit *kit, const char *input);
void kit_run_undo(struct kit *kit, const char *reference, const char *data);

/* The text as a terminated string on the kit's memory. */
const char *kit_text(struct kit *kit, struct rv_str text);
/* Compares the end with a JSON value. */
void kit_expect_output(struct kit *kit, const char *json);
/* Compares the members that `json` has. */
void kit_expect_error(struct kit *kit, const char *json);

/* An agent with a script: replies in order, as "name=json" (output), "name!json" (error), "name~"
 * (deadline). Its context is a `const char *const **`. */
enum kit_answer kit_scripted(struct kit *kit, const struct rv_flow_stop *stop,
                             struct rv_str *ret_text);
/* Runs it with that agent, to the end of the script. */
void kit_play(struct kit *kit, const char *yaml, const char *input, const char *const *script);

#define SCRIPT(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif

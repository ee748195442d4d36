/* What is refused at publication: where, and with which cure. */
#include "../lib/workflow.h"
#include "flow_kit.h"

#include "base/limits.h"
#include "yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bad {
    const char *place; /* line:column */
    const char *part;  /* of the message */
    const char *yaml;
};

/* Line 1 is the document; the YAML of each case begins at line 2. */
#define HEAD "document: {dsl: '1.0.3', namespace: test, name: flow, version: '1.0.0'}\n"
#define CALL(metadata) "do:\n- a:\n    call: x\n    metadata:\n      reeve: " metadata "\n"

static const struct bad bad_documents[] = {
    {"1:1", "needs `document`", "do: []\n"},
    {"1:1", "a workflow must be an object", "[]\n"},
    {"1:11", "document needs version, such as version: '1.0.0'",
     "document: {dsl: '1.0.3', namespace: a, name: b}\ndo: []\n"},
    {"1:11", "document needs dsl", "document: {namespace: a, name: b, version: '1.0.0'}\ndo: []\n"},
    {"1:17", "DSL 2.0.0 is not supported; use 1.0.3",
     "document: {dsl: '2.0.0', namespace: a, name: b, version: '1.0.0'}\n"},
    {"1:17", "DSL 1.1.0 is not supported; use 1.0.3",
     "document: {dsl: '1.1.0', namespace: a, name: b, version: '1.0.0'}\n"},
    {"1:17", "DSL 1.1.1-rc.1 is not supported",
     "document: {dsl: 1.1.1-rc.1, namespace: a, name: b, version: '1.0.0'}\n"},
    {"1:17", "DSL 10.0.0 is not supported",
     "document: {dsl: '10.0.0', namespace: a, name: b, version: '1.0.0'}\n"},
    {"1:74", "lease has no effect directly under metadata; write it under metadata.reeve",
     "document: {dsl: 1.0.3, namespace: a, name: b, version: 1.0.0, metadata: {lease: PT1S}}\n"},
    {"1:17", "dsl must be a string, not a number; put it in quotes",
     "document: {dsl: 1.0, namespace: a, name: b, version: '1.0.0'}\n"},
    {"1:37", "namespace must consist of letters",
     "document: {dsl: '1.0.3', namespace: a_b, name: b, version: '1.0.0'}\n"},
    {"1:46", "name must consist of letters",
     "document: {dsl: '1.0.3', namespace: a, name: -b, version: '1.0.0'}\n"},
    {"1:58", "version must be a semantic version",
     "document: {dsl: '1.0.3', namespace: a, name: b, version: '1.0'}\n"},
    {"1:58", "version must be a semantic version",
     "document: {dsl: '1.0.3', namespace: a, name: b, version: '1.0.0-'}\n"},
    {"1:58", "version must be a semantic version",
     "document: {dsl: '1.0.3', namespace: a, name: b, version: '01.0.0'}\n"},
    {"4:3", "unknown property \"titel\" under document; did you mean \"title\"?",
     "document:\n  dsl: '1.0.3'\n  namespace: a\n  titel: b\n"},
    {"2:1", "unknown property \"doo\" under the workflow; did you mean \"do\"?", HEAD "doo: []\n"},
    {"1:1", "needs `do`", HEAD},
    {"2:5", "this list must have at least one step", HEAD "do: []\n"},
    {"2:5", "do must be a list, not an object", HEAD "do: {a: {call: x}}\n"},
    {"2:1", "schedule of the workflow is not supported yet",
     HEAD "schedule: {cron: '* * * * *'}\ndo: []\n"},
    {"2:9", "schema of input is not supported yet", HEAD "input: {schema: {}}\ndo: []\n"},
    {"2:18", "loose mode is not supported yet", HEAD "evaluate: {mode: loose}\ndo: []\n"},
    {"2:22", "write expressions in jq", HEAD "evaluate: {language: js}\ndo: []\n"},
    {"2:7", "catalogs of use is not supported yet", HEAD "use: {catalogs: {}}\ndo: []\n"},
    {"3:16", "a retry policy must be an object", HEAD "use:\n  retries: {a: 1}\n"},
    {"3:3", "an item of a step list must be a name with a step", HEAD "do:\n- call\n"},
    {"5:3", "a list item has two steps; begin \"b\" with its own dash",
     HEAD "do:\n- a:\n    call: x\n  b:\n    call: y\n"},
    {"5:3", "another step of this list has the name \"a\"",
     HEAD "do:\n- a: {call: x}\n- b: {call: y}\n- a: {call: z}\n"},
    {"3:3", "\"end\" is a flow directive", HEAD "do:\n- end: {call: x}\n"},
    {"4:3", "indent \"call\" by two more columns: it is a property of the step \"a\"",
     HEAD "do:\n- a:\n  call: x\n"},
    {"5:3",
     "indent \"with\" like the other properties of its step: it is a property of the step \"a\"",
     HEAD "do:\n- a:\n    call: x\n  with: {b: 1}\n"},
    {"3:3", "this step has no name; write \"- NAME:\" and indent its properties below",
     HEAD "do:\n- call: x\n  with: {b: 1}\n"},
    {"3:9", "this step has no name", HEAD "do:\n- call: x\n"},
    {"3:8", "this step has no name", HEAD "do:\n- set: {b: 1}\n"},
    {"3:6",
     "a step must be an object, such as {call: inventory}; write the properties of \"a\" below it",
     HEAD "do:\n- a: x\n"},
    {"3:6", "this step has no action", HEAD "do:\n- a: {then: end}\n"},
    {"4:5", "unknown property \"cal\" under a step; did you mean \"call\"?",
     HEAD "do:\n- a:\n    cal: x\n"},
    {"5:5", "a step cannot have both call and set",
     HEAD "do:\n- a:\n    call: x\n    set: {a: 1}\n"},
    {"5:5", "unknown property \"wiht\" under a step (call); did you mean \"with\"?",
     HEAD "do:\n- a:\n    call: x\n    wiht: {}\n"},
    {"4:5", "for is not supported yet", HEAD "do:\n- a:\n    for: {in: '.x'}\n    do: []\n"},
    {"4:5", "fork is not supported yet", HEAD "do:\n- a:\n    fork: {branches: []}\n"},
    {"4:5", "emit is not supported yet", HEAD "do:\n- a:\n    emit: {event: {}}\n"},
    {"4:5", "listen is not supported yet", HEAD "do:\n- a:\n    listen: {to: {}}\n"},
    {"4:5", "run is not supported yet", HEAD "do:\n- a:\n    run: {workflow: {}}\n"},
    {"4:5", "this step has no action; add one of call, do, set", HEAD "do:\n- a:\n    lisen: {}\n"},
    {"4:5", "`run: shell` is not supported, because", HEAD "do:\n- a:\n    run: {shell: {}}\n"},
    {"4:11", "call: grpc is not supported yet; call an agent", HEAD "do:\n- a:\n    call: grpc\n"},
    {"4:11", "functions of a catalog", HEAD "do:\n- a:\n    call: log:0.5.2@global\n"},
    {"4:11", "an agent's name", HEAD "do:\n- a:\n    call: a b\n"},
    {"4:11", "call must be a string, not a number", HEAD "do:\n- a:\n    call: 5\n"},
    {"5:11", "with must be an object", HEAD "do:\n- a:\n    call: x\n    with: ${ . }\n"},
    {"3:12", "set needs an object", HEAD "do:\n- a: {set: '.x'}\n"},
    {"3:12", "set needs an object", HEAD "do:\n- a: {set: {}}\n"},
    {"3:13", "a duration needs at least one of", HEAD "do:\n- a: {wait: {}}\n"},
    {"3:14", "unknown property \"second\" under a duration; did you mean \"seconds\"?",
     HEAD "do:\n- a: {wait: {second: 5}}\n"},
    {"3:13", "wait must be a duration, such as PT30S", HEAD "do:\n- a: {wait: 30s}\n"},
    {"3:13", "{seconds: 30}, up to 100 years", HEAD "do:\n- a: {wait: P292Y}\n"},
    {"3:23", "seconds must be an integer from 0", HEAD "do:\n- a: {wait: {seconds: -1}}\n"},
    {"3:22", "the expression does not compile", HEAD "do:\n- a: {wait: '${ .t + }'}\n"},
    {"6:27", "an expression as completeBy is not supported", HEAD CALL("{completeBy: '${ .t }'}")},
    {"3:15", "switch needs at least one case", HEAD "do:\n- a: {switch: []}\n"},
    {"5:12", "a case needs `then`", HEAD "do:\n- a:\n    switch:\n    - one: {when: .x}\n"},
    {"6:12", "a second case has no `when`",
     HEAD "do:\n- a:\n    switch:\n    - one: {then: end}\n    - two: {then: end}\n"},
    {"3:26",
     "no step is named \"chrage\" here; did you mean \"charge\"? In this list are a, charge",
     HEAD "do:\n- a: {call: x,     then: chrage}\n- charge: {call: y}\n"},
    {"4:30", "no step is named \"zzz\" here; in this list are a (or continue, exit, end)",
     HEAD "do:\n- a:\n    switch: [ { one: { then: zzz  } } ]\n"},
    {"6:15", "no step is named \"b\" here",
     HEAD "do:\n- a:\n    do:\n    - c:\n        then: b\n        call: x\n- b: {call: y}\n"},
    {"3:6", "try needs `catch`", HEAD "do:\n- a: {try: [{b: {call: x}}]}\n"},
    {"5:13", "unknown property \"whne\" under catch; did you mean \"when\"?",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {whne: .x}\n"},
    {"5:32", "`with` needs at least one of type",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n"
          "    catch: {errors: {    with: {}}}\n"},
    {"5:17", "$input is reserved",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {as: input}\n"},
    {"5:20", "there is no \"fast\" under use.retries; define it there",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {retry: fast}\n"},
    {"6:20", "there is no \"fst\" under use.retries; did you mean \"fast\"?",
     HEAD "use: {retries: {fast: {}}}\ndo:\n- a:\n    try: [{b: {call: x}}]\n"
          "    catch: {retry: fst}\n"},
    {"5:30", "backoff needs one of constant",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {retry: {backoff: {}}}\n"},
    {"3:22", "an error needs `type` and `status`", HEAD "do:\n- a: {raise: {error: {type: x}}}\n"},
    {"3:23", "there is no \"e\" under use.errors", HEAD "do:\n- a: {raise: {error:  e}}\n"},
    {"3:25", "a timeout needs `after`", HEAD "do:\n- a: {call: x, timeout: {}}\n"},
    {"3:25", "the expression does not compile", HEAD "do:\n- a: {call: x, if: '.a ||'}\n"},
    {"4:16", "$output is not available here",
     HEAD "do:\n- a:\n    if: '.a == $output'\n    call: x\n"},
    {"4:9", "$input is not available here; write `.` for the input here",
     HEAD "do:\n- a:\n    if: $input.a\n    call: x\n"},
    {"4:18", "$secrets is not supported yet", HEAD "do:\n- a:\n    set: {b: '${ $secrets.c }'}\n"},
    {"4:18", "$undo is not available here; the variable is available only in compensate",
     HEAD "do:\n- a:\n    set: {b: '${ $undo.input }'}\n"},
    {"4:18", "$error is not available here; it is available only in catch.do",
     HEAD "do:\n- a:\n    set: {b: '${ $error.title }'}\n"},
    {"3:13", "call has no value; it must be a string", HEAD "do:\n- a: {call: }\n"},
    {"6:16", "unknown property \"complteBy\" under metadata.reeve; did you mean \"completeBy\"?",
     HEAD CALL("{ complteBy: PT1S }")},
    {"6:27", "completeBy must be longer than 0", HEAD CALL("{completeBy: PT0S}")},
    {"6:40", "lease is longer than completeBy", HEAD CALL("{completeBy: PT1S, lease: PT2S}")},
    {"6:26", "unknown property \"treshold\" under failures; did you mean \"threshold\"?",
     HEAD CALL("{failures: {treshold: 1}}")},
    {"6:32", "then must be compensate or error", HEAD CALL("{failures: {then: retry}}")},
    {"6:27", "compensate must be a list of steps, or none", HEAD CALL("{compensate: all}")},
    {"6:27", "this list must have at least one step", HEAD CALL("{compensate: []}")},
    {"6:33", "a pivot is never undone", HEAD CALL("{compensate: none, pivot: true}")},
    {"6:61", "a compensation cannot have a compensation",
     HEAD CALL("{compensate: [{b: {call: y, metadata: {reeve: {compensate: none}}}}]}")},
    {"6:61", "a compensation cannot be a pivot",
     HEAD CALL("{compensate: [{b: {call: y, metadata: {reeve: {pivot: true}}}}]}")},
    {"6:78", "`then` is not allowed in a compensation",
     HEAD CALL("{compensate: [{b: {call: y, metadata: {reeve: {failures: {then: error}}}}}]}")},
    {"3:37", "metadata.reeve is allowed only on a call",
     HEAD "do:\n- a: {wait: PT1S, metadata: {reeve: {}}}\n"},
    {"2:18", "mode must be strict or loose", HEAD "evaluate: {mode: lax}\ndo: []\n"},
    {"3:3", "a step's name has 1 to 128 bytes", HEAD "do:\n- '': {call: x}\n"},
    {"4:18", "a timeout must be an object with `after`, or a name defined under use.timeouts",
     HEAD "do:\n- a:\n    timeout:     5\n    call: x\n"},
    {"3:34", "a timeout must be longer than 0",
     HEAD "do:\n- a: {call: x, timeout: {after:  PT0S}}\n"},
    {"2:24", "a timeout must be an object with `after`",
     HEAD "use: {timeouts: {soon: PT1S}}\ndo: []\n"},
    {"5:7", "a case must be a name with `when` and `then`",
     HEAD "do:\n- a:\n    switch:\n    - one\n"},
    {"6:7", "a list item has two cases; begin each case with its own dash",
     HEAD "do:\n- a:\n    switch:\n    - one: {then: end}\n      two: {then: end}\n"},
    {"5:12", "a case must be an object with `when` and `then`",
     HEAD "do:\n- a:\n    switch:\n    - one: end\n"},
    {"3:14", "raise needs `error`", HEAD "do:\n- a: {raise: {}}\n"},
    {"3:15", "output must be an object, not a string; write output: { as: '${ . }' }",
     HEAD "do:\n- a: {output: x, call: y}\n"},
    {"3:14", "raise must be an object, not a string", HEAD "do:\n- a: {raise: x}\n"},
    {"3:22", "an error must be an object with type and status, or a name defined under use.errors",
     HEAD "do:\n- a: {raise: {error: 5}}\n"},
    {"3:15", "switch has no value; it must be a list", HEAD "do:\n- a: {switch: null}\n"},
    {"3:11", "do must be a list, not true or false", HEAD "do:\n- a: {do: true}\n"},
    {"5:17", "`as` must be the name of a variable without the $: letters, digits and _",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {as: $e}\n"},
    {"5:17", "`as` must be the name of a variable without the $: letters, digits and _",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {as: 1e}\n"},
    {"5:43", "parameters of linear are not supported yet",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n"
          "    catch: {retry: {backoff:     {linear: {by: 2}}}}\n"},
    {"5:29", "jitter needs both `from` and `to`",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n    catch: {retry: {jitter: {from: PT1S}}}\n"},
    {"5:29", "jitter.from is longer than jitter.to",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n"
          "    catch: {retry: {jitter: {from: PT2S, to: PT1S}}}\n"},
    {"3:13", "the maximum duration is 100 years",
     HEAD "do:\n- a: {wait: {days: 36500, hours: 100000}}\n"},
    {"6:22", "lease must be longer than 0; omit it for the default", HEAD CALL("{lease: PT0S}")},
    {"3:29", "as must be an expression or an object",
     HEAD "do:\n- a: {call: x, output: {as: [1]}}\n"},
    {"3:31", "the expression does not compile: unexpected \";\"",
     HEAD "do:\n- a: {set: {b: '${ $context | ; $input }'}}\n"},
    {"5:5", "\"compensate\" is not a property of a step; write it under metadata.reeve",
     HEAD "do:\n- a:\n    call: x\n    compensate: none\n"},
    {"5:5", "\"reeve\" is not a property of a step; write it under metadata of the step",
     HEAD "do:\n- a:\n    call: x\n    reeve: {compensate: none}\n"},
    {"5:16", "compensate has no effect directly under metadata; write it under metadata.reeve",
     HEAD "do:\n- a:\n    call: x\n    metadata: {compensate: none}\n"},
    {"5:16", "unknown property \"Reeve\" under metadata; did you mean \"reeve\"?",
     HEAD "do:\n- a:\n    call: x\n    metadata: {Reeve: {compensate: none}}\n"},
    {"5:12", "metadata.reeve has no effect under `with`",
     HEAD "do:\n- a:\n    call: x\n    with: {metadata: {reeve: {compensate: none}}}\n"},
    {"6:62", "$undo has no member \"key\"; did you mean $undo.idempotencyKey? It has outcome",
     HEAD CALL("{compensate: [{u: {call: x, with: {k: '${ $undo.key }'}}}]}")},
    {"6:65", "$undo has no member \"outpt\"; did you mean $undo.output?",
     HEAD CALL("{compensate: [{u: {call: x, with: {k: '${ \"\\($undo.outpt)\" }'}}}]}")},
    {"6:63", "$undo has no member \"zzzzzz\"; it has outcome, input, output, idempotencyKey",
     HEAD CALL("{compensate: [{u: {call: x, with: {k: '${ $undo[\"zzzzzz\"] }'}}}]}")},
    {"5:35", "no standard error has the type \"timeot\", so this filter matches nothing",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n"
          "    catch: {errors: {with: {type: 'https://serverlessworkflow.io/spec/1.0.0/errors/"
          "timeot'}}}\n"},
    {"5:48", "`detail` and `details` are the same member",
     HEAD "do:\n- a:\n    try: [{b: {call: x}}]\n"
          "    catch: {errors: {with: {detail: x,         details: y}}}\n"},
    {"3:20", "$__loc__ is not supported", HEAD "do:\n- a: {set: {b: '${ $__loc__ }'}}\n"},
    {"2:1", "not tabs", "do:\n\t- a\n"},
};

/* The faults that rv_definition_check reports, each as line:column, in the text's order. */
static void places_of(const char *yaml, char *places, size_t room, struct rv_arena *arena)
{
    struct rv_json document;
    struct rv_yaml_fault fault;
    const struct rv_definition *definition;
    static struct rv_definition_faults faults;
    uint32_t line[RV_DEFINITION_FAULTS_MAX];
    uint32_t column[RV_DEFINITION_FAULTS_MAX];
    struct rv_str text = rv_str_of(yaml);
    assert_int_equal(rv_yaml_parse(arena, text, text.len, &document, &fault), RV_OK);
    enum rv_err err = rv_definition_check(arena, &document, &definition, &faults);
    assert_int_equal(err, faults.count > 0 ? RV_ERR_INVALID : RV_OK);
    for (uint32_t i = 0; i < faults.count; i++)
        (void)rv_yaml_locate(text, faults.items[i].pointer, faults.items[i].at_key,
                             faults.items[i].offset, &line[i], &column[i]);
    places[0] = '\0';
    for (uint32_t n = 0; n < faults.count; n++) {
        uint32_t first = 0;
        for (uint32_t i = 1; i < faults.count; i++)
            if (line[i] < line[first] || (line[i] == line[first] && column[i] < column[first]))
                first = i;
        size_t len = strlen(places);
        (void)snprintf(places + len, room - len, "%s%u:%u", n > 0 ? " " : "", line[first],
                       column[first]);
        line[first] = UINT32_MAX;
    }
}

/* One fault does not hide another, wherever it is; nothing is reported twice. */
static void test_all_faults(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", HEAD "do:\n- a: {set: {b: 1}}\n"},
        {"1:11 1:35 1:40 1:58", "document: {dsl: 1.0.3, namespace: a_b, naem: x, version: 1}\n"
                                "do:\n- a: {set: {b: 1}}\n"},
        {"2:21 2:42", HEAD "use: {retries: {r: {dealy: PT1S, jitter: {}}}}\n"
                           "do:\n- a: {try: [{b: {set: {c: 1}}}], catch: {retry: r}}\n"
                           "- d: {try: [{b: {set: {c: 1}}}], catch: {retry: r}}\n"},
        {"3:3 4:7 5:3 5:26 6:3",
         HEAD "do:\n- 5\n- a: {clal: x}\n- a: {set: {b: 1}, then: nowhere}\n"
              "- a: {set: {b: 1}}\n"},
        {"4:24 4:34 4:48",
         HEAD "do:\n- a:\n    with: {x: '${ .a + }', y: 'a ${', z: [ '${ q }' ]}\n"
              "    call: x\n"},
        {"2:16 10:40",
         HEAD "use: {secrets: abcdefgh}\n"
              "do:\n- a:\n    call: http\n    with:\n      method: get\n      endpoint:\n"
              "        uri: http://a/\n        authentication: {bearer: {use: b}}\n"},
        {"2:29 2:46", HEAD "use: {authentications: {a: {oauth2: {}}, b: {foo: {}}}}\n"
                           "do:\n- a: {set: {b: 1}}\n"},
        {"9:9 10:9 11:9",
         HEAD "do:\n- a:\n    call: http\n    with:\n      method: get\n      endpoint:\n"
              "        uri: http://a/\n        b: {bearer: {token: x}}\n"
              "        c: {bearer: {token: x}}\n        d: {bearer: {token: x}}\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char places[1024];
        struct rv_arena arena;
        rv_arena_init(&arena, 0);
        places_of(rows[i][1], places, sizeof places, &arena);
        assert_string_equal(places, rows[i][0]);
        rv_arena_done(&arena);
    }
}

/* What the first fault is for a server is among those that a check reports. */
static bool check_has(struct rv_arena *arena, const struct bad *bad)
{
    char places[8192];
    places_of(bad->yaml, places, sizeof places, arena);
    char wanted[32];
    size_t len = strlen(places);
    (void)snprintf(places + len, sizeof places - len, " ");
    (void)snprintf(wanted, sizeof wanted, "%s ", bad->place);
    return strstr(places, wanted) != NULL;
}

static void test_bad_documents(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof bad_documents / sizeof *bad_documents; i++) {
        const struct bad *bad = &bad_documents[i];
        static struct kit kit;
        bool taken = kit_load(&kit, bad->yaml);
        const char *told = taken ? "taken" : kit_text(&kit, kit.fault.message);
        size_t place = strlen(bad->place);
        bool right = !taken && strncmp(told, bad->place, place) == 0 && told[place] == ':' &&
                     strstr(told, bad->part) != NULL;
        bool unsupported = strstr(told, "not supported") != NULL;
        if (!taken && kit.fault.unsupported != unsupported)
            right = false;
        if (!taken && kit.fault.pointer.at != NULL && !check_has(&kit.memory, bad))
            right = false;
        if (!right)
            print_error("%s\n  want %s: %s\n  got  %s\n", bad->yaml, bad->place, bad->part, told);
        wrong += !right;
        kit_done(&kit);
    }
    assert_int_equal(wrong, 0);
}

/* A bit of everything that takes memory, with a target that does not exist. */
static const char *const everything =
    "{\"document\":{\"dsl\":\"1.0.3\",\"namespace\":\"a\",\"name\":\"b\",\"version\":\"1.0.0\"},"
    "\"use\":{\"retries\":{\"fast\":{\"delay\":\"PT1S\"}},"
    "\"timeouts\":{\"soon\":{\"after\":\"PT9S\"}}},"
    "\"do\":[{\"a\":{\"set\":{\"b\":\"${ .x + 1 }\","
    "\"c\":[1,\"${ .y }\"]},\"output\":{\"as\":\".b|.c\"}}},"
    "{\"d\":{\"switch\":[{\"e\":{\"when\":\".x\",\"then\":\"a\"}},{\"f\":{\"then\":\"exit\"}}]}},"
    "{\"g\":{\"timeout\":\"soon\",\"try\":[{\"h\":{\"call\":\"x\"}}],\"catch\":{\"retry\":\"fast\","
    "\"when\":\"$task.name\","
    "\"do\":[{\"i\":{\"raise\":{\"error\":{\"type\":\"${ $error.type }\",\"status\":"
    "400}}}}]}}},{\"j\":{\"call\":\"y\",\"then\":\"zzz\"}}]}";

/* A document deeper, longer or more nested than may be is refused, whatever the memory. */
static void test_limits(void **state)
{
    (void)state;
    static struct kit kit;
    struct rv_buf text;
    rv_buf_init(&text, 1 << 20);
    rv_buf_lit(&text, HEAD "do:\n");
    for (int i = 0; i < 12000; i++)
        rv_buf_printf(&text, "- t%d: {call: x}\n", i);
    rv_buf_add_char(&text, '\0');
    kit_new(&kit, text.at);
    assert_int_equal(rv_definition_nodes(kit.definition), 12000);
    kit_done(&kit);
    size_t refused = 0;
    size_t told = 0; /* there was memory enough to see what is wrong */
    for (size_t cap = 100; cap < 40000; cap += cap / 64 + 16) {
        struct rv_arena arena;
        struct rv_arena parsed;
        rv_arena_init(&arena, cap);
        rv_arena_init(&parsed, 0);
        struct rv_json document;
        const struct rv_definition *definition;
        struct rv_definition_fault fault;
        assert_int_equal(rv_json_parse(&parsed, rv_str_of(everything), 64, &document, NULL), RV_OK);
        enum rv_err err = rv_definition_load(&arena, &document, &definition, &fault);
        assert_true(err == RV_ERR_LIMIT || err == RV_ERR_INVALID);
        static struct rv_definition_faults faults;
        rv_arena_done(&arena);
        rv_arena_init(&arena, cap);
        enum rv_err all = rv_definition_check(&arena, &document, &definition, &faults);
        assert_true(all == RV_ERR_LIMIT || (all == err && faults.count == 1));
        refused += err == RV_ERR_LIMIT;
        told += err == RV_ERR_INVALID;
        rv_arena_done(&arena);
        rv_arena_done(&parsed);
    }
    assert_true(refused > 20 && told > 20);
    rv_buf_done(&text);
}

/* `levels` tasks, each inside of the one before. */
static void nest(struct rv_buf *text, int levels)
{
    rv_buf_reset(text);
    rv_buf_lit(text, HEAD "do: ");
    for (int i = 0; i < levels - 1; i++)
        rv_buf_lit(text, "[{a: {do: ");
    rv_buf_lit(text, "[{b: {call: x}}]");
    for (int i = 0; i < levels - 1; i++)
        rv_buf_lit(text, "}}]");
    rv_buf_lit(text, "\n");
    rv_buf_add_char(text, '\0');
}

static void test_nesting(void **state)
{
    (void)state;
    static struct kit kit;
    struct rv_buf text;
    rv_buf_init(&text, 1 << 20);
    nest(&text, 16);
    kit_new(&kit, text.at);
    kit_done(&kit);
    nest(&text, RV_SCOPE_DEPTH_MAX + 1);
    assert_false(kit_load(&kit, text.at));
    assert_non_null(strstr(kit_text(&kit, kit.fault.message), "deep"));
    kit_done(&kit);
    rv_buf_done(&text);
}

/* Node numbers and undo do not depend on the order of members, which a content hash ignores. */
static void test_member_order(void **state)
{
    (void)state;
    static struct kit a;
    static struct kit b;
    kit_new(&a, HEAD "do:\n- t:\n    try: [ { one: { call: x } } ]\n"
                     "    catch: { do: [ { two: { call: y } } ] }\n");
    kit_new(&b, "do:\n- t:\n    catch: { do: [ { two: { call: y } } ] }\n"
                "    try: [ { one: { call: x } } ]\n" HEAD);
    assert_int_equal(rv_definition_nodes(a.definition), 3);
    for (uint32_t n = 0; n <= 3; n++)
        assert_true(rv_str_eq(rv_definition_reference(a.definition, n),
                              rv_definition_reference(b.definition, n)));
    kit_done(&a);
    kit_done(&b);
}

static void test_document_policy(void **state)
{
    (void)state;
    static struct kit kit;
    kit_new(&kit, workflow_file("definition/document-policy"));
    const struct rv_policy *policy = rv_definition_policy(kit.definition, 0);
    assert_int_equal(policy->complete_by_ms, 40000);
    assert_int_equal(policy->lease_ms, 20000);
    policy = rv_definition_policy(kit.definition, 1);
    assert_int_equal(policy->complete_by_ms, 5000);
    assert_int_equal(policy->lease_ms, 5000);
    assert_int_equal(policy->rounds, 0);
    policy = rv_definition_policy(kit.definition, 2);
    assert_int_equal(policy->complete_by_ms, 40000);
    assert_int_equal(policy->lease_ms, 2000);
    assert_int_equal(policy->delay_ms, 3000);
    assert_int_equal(rv_definition_undo_way(kit.definition, 2), RV_UNDO_UNDECLARED);
    kit_done(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_documents),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_nesting),         cmocka_unit_test(test_member_order),
        cmocka_unit_test(test_document_policy), cmocka_unit_test(test_all_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* flows.h - the workflows of the scenarios. */
#ifndef RV_SIM_FLOWS_H
#define RV_SIM_FLOWS_H

#define FLOW(name, policy)                                                                         \
    "document: {dsl: '1.0.3', namespace: sim, name: " name ", version: '1.0.0',\n"                 \
    "  metadata: {reeve: {" policy "}}}\n"                                                         \
    "do:\n"
#define PATIENT                                                                                    \
    "completeBy: PT2S, failures: {threshold: 3, delay: PT0.05S, cooldown: PT0.2S, rounds: 1}"

/* A step, and how it is undone: `reeve` is a member of metadata.reeve with a comma behind it. */
#define STEP(name, agent, reeve, undo)                                                             \
    "  - " name ":\n"                                                                              \
    "      call: " agent "\n"                                                                      \
    "      with: {number: '${ $workflow.input.number }'}\n"                                        \
    "      metadata: {reeve: {" reeve "compensate: [{" undo ": {call: " agent ",\n"                \
    "        with: {key: '${ $undo.idempotencyKey }', outcome: '${ $undo.outcome }',"              \
    " was: '${ $undo.output }'}}}]}}\n"
#define STEP_NONE(name, agent, reeve)                                                              \
    "  - " name ":\n"                                                                              \
    "      call: " agent "\n"                                                                      \
    "      metadata: {reeve: {" reeve "}}\n"

#define RESERVE STEP("reserve", "inventory", "", "release")
#define CHARGE(reeve) STEP("charge", "payment", reeve, "refund")
#define SHIP(reeve) STEP("ship", "shipping", reeve, "recall")

#define ORDER FLOW("order", PATIENT) RESERVE CHARGE("") SHIP("")

#endif

/* order.h - the workflows that the scenarios run. */
#ifndef RV_TEST_SCENARIO_ORDER_H
#define RV_TEST_SCENARIO_ORDER_H

#define DOCUMENT(name)                                                                             \
    "document: {dsl: '1.0.3', namespace: shop, name: " name ", version: '1.0.0'}\n"

/* Two steps that can be undone, ladder of one round and two failures. */
#define ORDER                                                                                      \
    DOCUMENT("order")                                                                              \
    "do:\n"                                                                                        \
    "  - reserve:\n"                                                                               \
    "      call: inventory\n"                                                                      \
    "      with: {sku: '${ .sku }'}\n"                                                             \
    "      metadata:\n"                                                                            \
    "        reeve:\n"                                                                             \
    "          completeBy: PT10S\n"                                                                \
    "          failures: {threshold: 2, delay: PT1S, cooldown: PT60S, rounds: 1}\n"                \
    "          compensate:\n"                                                                      \
    "            - release:\n"                                                                     \
    "                call: inventory\n"                                                            \
    "                with: {key: '${ $undo.idempotencyKey }', outcome: '${ $undo.outcome }',"      \
    " was: '${ $undo.output }'}\n"                                                                 \
    "                metadata: {reeve: {completeBy: PT10S,"                                        \
    " failures: {threshold: 1, rounds: 0}}}\n"                                                     \
    "  - charge:\n"                                                                                \
    "      call: payment\n"                                                                        \
    "      with: {amount: 12}\n"                                                                   \
    "      metadata:\n"                                                                            \
    "        reeve:\n"                                                                             \
    "          completeBy: PT10S\n"                                                                \
    "          failures: {threshold: 2, delay: PT1S, cooldown: PT60S, rounds: 1}\n"                \
    "          compensate:\n"                                                                      \
    "            - refund:\n"                                                                      \
    "                call: payment\n"                                                              \
    "                with: {refund: '${ $undo.idempotencyKey }', outcome: '${ $undo.outcome }'}\n" \
    "                metadata: {reeve: {completeBy: PT10S,"                                        \
    " failures: {threshold: 1, rounds: 0}}}\n"

#endif

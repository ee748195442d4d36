/* document.h - the head of a workflow that a test writes itself. */
#ifndef RV_TEST_SCENARIO_DOCUMENT_H
#define RV_TEST_SCENARIO_DOCUMENT_H

#define DOCUMENT(name)                                                                             \
    "document: {dsl: '1.0.3', namespace: shop, name: " name ", version: '1.0.0'}\n"

#endif

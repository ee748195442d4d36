/* workflow.h - the workflows of the tests: files in test/workflows. */
#ifndef RV_TEST_LIB_WORKFLOW_H
#define RV_TEST_LIB_WORKFLOW_H

/* The text of test/workflows/NAME.yaml; it lives as long as the program. A file that cannot be read
 * ends the program. */
const char *workflow_file(const char *name);

#endif

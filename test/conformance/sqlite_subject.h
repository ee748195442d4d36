/* sqlite_subject.h - what the tests of the SQLite store alone have in common. */
#ifndef RV_TEST_CONFORMANCE_SQLITE_SUBJECT_H
#define RV_TEST_CONFORMANCE_SQLITE_SUBJECT_H

#include "subject.h"

#define TASK_BASE INT64_C(1000000)

const struct factory *sqlite_factory(void);
/* A test's subject: a store in a file of its own. */
int sqlite_setup(void **state);
int sqlite_teardown(void **state);
void subject_close(struct subject *s);
int64_t no_clock(void *self);
/* Runs SQL on the closed store's file; the first column of the last row, as text. */
void sql(struct subject *s, const char *text, char result[static 64]);
void assert_sql(struct subject *s, const char *text, const char *wanted);
/* A view that needs no payload reads none: they are the last columns of their tables. */
void assert_payloads_last(struct subject *s);

#endif

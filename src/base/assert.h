/* assert.h - what a programmer broke stops the program, in release builds too. */
#ifndef RV_BASE_ASSERT_H
#define RV_BASE_ASSERT_H

/* For broken promises between our own functions only; what a user, an agent, the disk or the
 * network can cause is an enum rv_err. The installed handler must not return. */
typedef void (*rv_assert_handler)(const char *condition, const char *file, int line);

void rv_assert_set_handler(rv_assert_handler handler);
_Noreturn void rv_assert_failed(const char *condition, const char *file, int line);

#define rv_assert(condition)                                                                       \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            rv_assert_failed(#condition, __FILE__, __LINE__);                                      \
    } while (0)

#endif

/* format.h - vsnprintf() for texts that may contain zero bytes. */
#ifndef RV_BASE_FORMAT_H
#define RV_BASE_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/* As vsnprintf(), but "%.*s" writes as many bytes as its precision says, whatever they are: what
 * follows a zero byte in a text of an application must not be lost. The pointer must have that
 * many. Conversions: s d i u x X c p f e g and their lengths l, ll and z; with any other, and in
 * formats beyond 1 KiB, a text ends at its zero byte. */
__attribute__((format(printf, 3, 0))) int rv_format(char *to, size_t room, const char *format,
                                                    va_list args);

#endif

/* file.h - whole files, read at once. */
#ifndef RV_BASE_OS_FILE_H
#define RV_BASE_OS_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Appends the file's bytes to `buf`, whose cap bounds them; "-" is standard input. NOT_FOUND, IO
 * (errno tells more), LIMIT when the file is larger than the cap, MEMORY. */
RV_CHECK enum rv_err rv_file_read(const char *path, struct rv_buf *buf);

#endif

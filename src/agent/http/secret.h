/* secret.h - secrets as files of one folder, read when they are needed, never kept. */
#ifndef RV_AGENT_HTTP_SECRET_H
#define RV_AGENT_HTTP_SECRET_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* `folder` is a path, a `const char *`, or NULL: then there are none. NOT_FOUND, IO; INVALID for a
 * name that is no plain file name; LIMIT over 64 KiB; MEMORY. */
enum rv_err rv_http_secret_read(void *folder, struct rv_arena *arena, struct rv_str name,
                                struct rv_str *ret_value);
/* Why a call that needs the secret would fail now, with the cure, on the arena; absent: it would
 * not. A secret may be stored at any time: the file is looked for each time. */
struct rv_str rv_http_secret_refusal(void *folder, struct rv_arena *arena, struct rv_str name);

#endif

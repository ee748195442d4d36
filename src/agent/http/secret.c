#include "agent/http/secret.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/os/file.h"

#include <unistd.h>

enum { SECRET_BYTES_MAX = 64 * 1024 };

static bool name_is_plain(struct rv_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (i == 0 || (c != '-' && c != '_' && c != '.')))
            return false;
    }
    return name.len >= 1 && name.len <= RV_NAME_BYTES_MAX;
}

enum rv_err rv_http_secret_read(void *folder, struct rv_arena *arena, struct rv_str name,
                                struct rv_str *ret_value)
{
    struct rv_buf text;
    if (folder == NULL)
        return RV_ERR_NOT_FOUND;
    if (!name_is_plain(name))
        return RV_ERR_INVALID;
    struct rv_str path = rv_arena_printf(arena, "%s/%.*s", (const char *)folder, RV_STR_FMT(name));
    if (path.at == NULL)
        return RV_ERR_MEMORY;
    rv_buf_init(&text, SECRET_BYTES_MAX);
    enum rv_err err = rv_file_read(path.at, &text);
    if (err == RV_OK) {
        *ret_value = rv_arena_str(arena, rv_buf_str(&text));
        err = ret_value->at != NULL ? RV_OK : RV_ERR_MEMORY;
    }
    if (text.at != NULL)
        explicit_bzero(text.at, text.len);
    rv_buf_done(&text);
    return err;
}

struct rv_str rv_http_secret_refusal(void *folder, struct rv_arena *arena, struct rv_str name)
{
    if (folder == NULL)
        return rv_arena_printf(arena,
                               "this server has no secrets: store \"%.*s\" in a file with that "
                               "name, and start the server with --secrets FOLDER",
                               RV_STR_FMT(name));
    struct rv_str path = rv_arena_printf(arena, "%s/%.*s", (const char *)folder, RV_STR_FMT(name));
    if (path.at == NULL || access(path.at, F_OK) == 0)
        return RV_STR_NONE;
    return rv_arena_printf(arena, "the secret \"%.*s\" is missing: store it in the file %.*s",
                           RV_STR_FMT(name), RV_STR_FMT(path));
}

#include "server/tls.h"

#include "base/os/file.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1024 * 1024 };

static enum rv_err file_read(struct rv_buf *buf, const char *flag, const char *path,
                             struct rv_buf *ret_why)
{
    /* Room for all of it at once: a buffer that grows would leave copies of a key behind. */
    bool room = rv_buf_reserve(buf, FILE_BYTES_MAX) != NULL;
    enum rv_err err = room ? rv_file_read(path, buf) : RV_ERR_MEMORY;
    if (err != RV_OK)
        rv_buf_printf(ret_why, "%s %s: %s", flag, path,
                      err == RV_ERR_IO ? strerror(errno) : rv_err_text(err));
    return err == RV_ERR_IO && errno == ENOENT ? RV_ERR_NOT_FOUND : err;
}

static enum rv_err files_read(struct rv_buf *cert, struct rv_buf *key, const char *cert_path,
                              const char *key_path, struct rv_door_tls **ret_tls,
                              struct rv_buf *ret_why)
{
    const char *wrong;
    RV_TRY(file_read(cert, "--tls-cert", cert_path, ret_why));
    RV_TRY(file_read(key, "--tls-key", key_path, ret_why));
    struct rv_door_tls *tls = rv_door_tls_new(rv_buf_str(cert), rv_buf_str(key), &wrong);
    if (tls == NULL) {
        rv_buf_printf(ret_why, "--tls-cert %s --tls-key %s: %s", cert_path, key_path, wrong);
        return RV_ERR_INVALID;
    }
    *ret_tls = tls;
    return RV_OK;
}

enum rv_err rv_tls_read(const char *cert_path, const char *key_path, struct rv_door_tls **ret_tls,
                        struct rv_buf *ret_why)
{
    struct rv_buf cert, key;
    if (cert_path == NULL || key_path == NULL) {
        rv_buf_printf(ret_why, "%s needs %s: give both", cert_path ? "--tls-cert" : "--tls-key",
                      cert_path ? "--tls-key" : "--tls-cert");
        return RV_ERR_INVALID;
    }
    rv_buf_init(&cert, FILE_BYTES_MAX + 1);
    rv_buf_init(&key, FILE_BYTES_MAX + 1);
    enum rv_err err = files_read(&cert, &key, cert_path, key_path, ret_tls, ret_why);
    if (key.at != NULL)
        OPENSSL_cleanse(key.at, key.room);
    rv_buf_done(&key);
    rv_buf_done(&cert);
    return err;
}

#include "server/tls.h"

#include "base/os/file.h"
#include "base/os/log.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = 1024 * 1024 };

void rv_tls_init(struct rv_tls_files *files)
{
    rv_buf_init(&files->cert, FILE_BYTES_MAX + 1);
    rv_buf_init(&files->key, FILE_BYTES_MAX + 1);
}

void rv_tls_done(struct rv_tls_files *files)
{
    if (files->key.at != NULL)
        OPENSSL_cleanse(files->key.at, files->key.room);
    rv_buf_done(&files->key);
    rv_buf_done(&files->cert);
}

static bool file_read(struct rv_buf *buf, const char *flag, const char *path)
{
    /* Room for all of it at once: a buffer that grows would leave copies of a key behind. */
    bool room = rv_buf_reserve(buf, FILE_BYTES_MAX) != NULL;
    enum rv_err err = room ? rv_file_read(path, buf) : RV_ERR_MEMORY;
    if (err != RV_OK)
        rv_log_refusal("reeve serve", "%s %s: %s", flag, path,
                       err == RV_ERR_IO ? strerror(errno) : rv_err_text(err));
    rv_buf_add_char(buf, '\0');
    return err == RV_OK;
}

static bool fit_check(const struct rv_tls_files *files, const char *cert_path, const char *key_path)
{
    BIO *cert_text = BIO_new_mem_buf(files->cert.at, -1);
    BIO *key_text = BIO_new_mem_buf(files->key.at, -1);
    static char no_password[] = "";
    X509 *cert = cert_text ? PEM_read_bio_X509(cert_text, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = key_text ? PEM_read_bio_PrivateKey(key_text, NULL, NULL, no_password) : NULL;
    const char *wrong = NULL;
    if (cert == NULL)
        wrong = "--tls-cert is not a certificate in PEM form (-----BEGIN CERTIFICATE-----)";
    else if (key == NULL)
        wrong = "--tls-key is not a private key in PEM form without a password";
    else if (X509_check_private_key(cert, key) != 1)
        wrong = "the key does not match the certificate: the server's certificate must be the "
                "first in its file";
    else if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
        wrong = "the certificate has expired: get a new one";
    if (wrong != NULL)
        rv_log_refusal("reeve serve", "--tls-cert %s --tls-key %s: %s", cert_path, key_path, wrong);
    ERR_clear_error();
    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(key_text);
    BIO_free(cert_text);
    return wrong == NULL;
}

bool rv_tls_read(struct rv_tls_files *files, const char *cert_path, const char *key_path)
{
    if (cert_path == NULL || key_path == NULL) {
        rv_log_refusal("reeve serve", "%s needs %s: give both",
                       cert_path ? "--tls-cert" : "--tls-key",
                       cert_path ? "--tls-key" : "--tls-cert");
        return false;
    }
    return file_read(&files->cert, "--tls-cert", cert_path) &&
           file_read(&files->key, "--tls-key", key_path) && fit_check(files, cert_path, key_path);
}

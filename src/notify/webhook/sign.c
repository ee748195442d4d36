#include "notify/webhook/sign.h"

#include "base/assert.h"
#include "base/os/random.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    KEY_BYTES_MIN = 16,
    KEY_BYTES_MAX = 64,
    KEY_BYTES_MADE = 32,
    FILE_BYTES_MAX = 64 * 1024,
    DIGEST_BYTES = 32,
    DIGEST_TEXT_BYTES = 45 /* of its base64, with the NUL */
};

#define PREFIX "whsec_"

struct secret {
    char *destination; /* owned; NULL: all */
    unsigned char key[KEY_BYTES_MAX + 3];
    size_t bytes;
};

struct rv_secrets {
    struct secret secrets[RV_SECRETS_MAX];
    size_t count;
};

void rv_secrets_free(struct rv_secrets *secrets)
{
    if (secrets == NULL)
        return;
    for (size_t i = 0; i < secrets->count; i++)
        free(secrets->secrets[i].destination);
    OPENSSL_cleanse(secrets, sizeof *secrets);
    free(secrets);
}

/* ---- reading ---- */

static const char *key_read(struct rv_str text, struct secret *secret)
{
    size_t prefix = strlen(PREFIX);
    if (text.len < prefix || memcmp(text.at, PREFIX, prefix) != 0)
        return "a secret must begin with " PREFIX;
    struct rv_str code = {text.at + prefix, text.len - prefix};
    if (code.len == 0 || code.len % 4 != 0 || code.len / 4 * 3 > sizeof secret->key)
        return "after " PREFIX ", a secret must consist of 16 to 64 bytes in base64, as printed by "
               "`openssl rand -base64 32`";
    int bytes = EVP_DecodeBlock(secret->key, (const unsigned char *)code.at, (int)code.len);
    size_t padding = (size_t)(code.at[code.len - 1] == '=') +
                     (size_t)(code.at[code.len - 1] == '=' && code.at[code.len - 2] == '=');
    if (bytes < 0 || (size_t)bytes < KEY_BYTES_MIN + padding ||
        (size_t)bytes - padding > KEY_BYTES_MAX)
        return "after " PREFIX ", a secret must consist of 16 to 64 bytes in base64, as printed by "
               "`openssl rand -base64 32`";
    secret->bytes = (size_t)bytes - padding;
    rv_assert(secret->bytes <= KEY_BYTES_MAX);
    return NULL;
}

static struct rv_str trim(struct rv_str text)
{
    while (text.len > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = (struct rv_str){text.at + 1, text.len - 1};
    while (text.len > 0 && strchr(" \t\r", text.at[text.len - 1]) != NULL)
        text.len--;
    return text;
}

static const char *line_read(struct rv_secrets *secrets, struct rv_str line)
{
    line = trim(line);
    if (line.len == 0 || line.at[0] == '#')
        return NULL;
    if (secrets->count == RV_SECRETS_MAX)
        return "there are too many secrets; remove unused ones";
    struct secret *secret = &secrets->secrets[secrets->count];
    *secret = (struct secret){.destination = NULL};
    const char *blank = memchr(line.at, ' ', line.len);
    struct rv_str code = line;
    if (blank != NULL) {
        size_t len = (size_t)(blank - line.at);
        code = trim((struct rv_str){blank, line.len - len});
        secret->destination = strndup(line.at, len);
        if (secret->destination == NULL)
            return "out of memory";
    }
    secrets->count++;
    return key_read(code, secret);
}

enum rv_err rv_secrets_parse(struct rv_str text, struct rv_secrets **ret_secrets,
                             char ret_why[static RV_SECRETS_WHY_BYTES])
{
    struct rv_secrets *secrets = calloc(1, sizeof *secrets);
    const char *wrong = secrets == NULL ? "out of memory" : NULL;
    int number = 0;
    while (wrong == NULL && text.len > 0) {
        const char *end = memchr(text.at, '\n', text.len);
        size_t len = end != NULL ? (size_t)(end - text.at) : text.len;
        number++;
        wrong = line_read(secrets, (struct rv_str){text.at, len});
        size_t used = len + (end != NULL);
        text = (struct rv_str){text.at + used, text.len - used};
    }
    if (wrong == NULL && secrets->count == 0)
        wrong = "the file contains no secret";
    if (wrong == NULL) {
        *ret_secrets = secrets;
        return RV_OK;
    }
    snprintf(ret_why, RV_SECRETS_WHY_BYTES, "line %d: %s", number, wrong);
    rv_secrets_free(secrets);
    return RV_ERR_INVALID;
}

/* ---- files ---- */

static enum rv_err file_failed(const char *path, char why[static RV_SECRETS_WHY_BYTES])
{
    snprintf(why, RV_SECRETS_WHY_BYTES, "%s: %s", path, strerror(errno));
    return RV_ERR_IO;
}

static bool all_written(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t count = write(fd, text, len);
        if (count < 0 && errno != EINTR)
            return false;
        text += count > 0 ? count : 0;
        len -= count > 0 ? (size_t)count : 0;
    }
    return fsync(fd) == 0;
}

/* Under its name it is there whole or not at all, whenever the power goes. */
static enum rv_err file_make(const char *path, char why[static RV_SECRETS_WHY_BYTES])
{
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh) {
        errno = ENAMETOOLONG;
        return file_failed(path, why);
    }
    unsigned char key[KEY_BYTES_MADE];
    char code[KEY_BYTES_MADE * 2], text[256];
    rv_random_bytes(key, sizeof key);
    EVP_EncodeBlock((unsigned char *)code, key, sizeof key);
    int len = snprintf(text, sizeof text,
                       "# Signs the webhooks of the state store beside it; see "
                       "docs/guide/replies.md.\n" PREFIX "%s\n",
                       code);
    (void)unlink(fresh); /* of a start that was cut short */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && all_written(fd, text, (size_t)len) && link(fresh, path) == 0;
    enum rv_err err = good ? RV_OK : file_failed(path, why);
    if (fd >= 0)
        close(fd);
    if (fd >= 0)
        (void)unlink(fresh);
    OPENSSL_cleanse(key, sizeof key);
    OPENSSL_cleanse(code, sizeof code);
    OPENSSL_cleanse(text, sizeof text);
    return err;
}

static enum rv_err fd_parse(int fd, const char *path, struct rv_secrets **ret_secrets,
                            char why[static RV_SECRETS_WHY_BYTES])
{
    char *text = malloc(FILE_BYTES_MAX);
    if (text == NULL)
        return RV_ERR_MEMORY;
    size_t len = 0;
    ssize_t count = 1;
    while (count > 0 && len < FILE_BYTES_MAX) {
        count = read(fd, text + len, FILE_BYTES_MAX - len);
        len += count > 0 ? (size_t)count : 0;
    }
    char reason[RV_SECRETS_WHY_BYTES] = "";
    enum rv_err err = count < 0 ? file_failed(path, why)
                                : rv_secrets_parse((struct rv_str){text, len}, ret_secrets, reason);
    if (err == RV_ERR_INVALID)
        snprintf(why, RV_SECRETS_WHY_BYTES, "%.200s, %.300s", path, reason);
    OPENSSL_cleanse(text, FILE_BYTES_MAX);
    free(text);
    return err;
}

enum rv_err rv_secrets_read(const char *path, bool make, struct rv_secrets **ret_secrets,
                            bool *ret_made, char ret_why[static RV_SECRETS_WHY_BYTES])
{
    *ret_made = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && make) {
        enum rv_err err = file_make(path, ret_why);
        if (err != RV_OK)
            return err;
        *ret_made = true;
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return file_failed(path, ret_why);
    enum rv_err err = fd_parse(fd, path, ret_secrets, ret_why);
    close(fd);
    return err;
}

/* ---- signing ---- */

static void signature_put(const struct secret *secret, struct rv_str message, struct rv_buf *out)
{
    rv_assert(secret->bytes >= KEY_BYTES_MIN);
    rv_assert(secret->bytes <= KEY_BYTES_MAX);
    unsigned char digest[DIGEST_BYTES];
    unsigned char text[DIGEST_TEXT_BYTES];
    unsigned len = 0;
    const unsigned char *made = HMAC(EVP_sha256(), secret->key, (int)secret->bytes,
                                     (const unsigned char *)message.at, message.len, digest, &len);
    if (made == NULL) { /* it takes memory */
        out->failed = RV_ERR_MEMORY;
        return;
    }
    rv_assert(len == DIGEST_BYTES);
    int written = EVP_EncodeBlock(text, digest, DIGEST_BYTES);
    rv_assert(written == DIGEST_TEXT_BYTES - 1);
    rv_buf_lit(out, "v1,");
    rv_buf_add(out, text, (size_t)written);
}

bool rv_secrets_sign(const struct rv_secrets *secrets, struct rv_str destination, struct rv_str id,
                     int64_t timestamp_s, struct rv_str body, struct rv_buf *out)
{
    struct rv_buf message;
    size_t signatures = 0;
    rv_buf_init(&message, id.len + body.len + 64);
    rv_buf_printf(&message, "%.*s.%lld.", RV_STR_FMT(id), (long long)timestamp_s);
    rv_buf_add_str(&message, body);
    rv_assert(secrets->count > 0);
    rv_assert(secrets->count <= RV_SECRETS_MAX);
    bool own = false; /* one that is meant for it counts alone */
    for (size_t i = 0; i < secrets->count; i++)
        own = own || (secrets->secrets[i].destination != NULL &&
                      rv_str_is(destination, secrets->secrets[i].destination));
    for (size_t i = 0; i < secrets->count && signatures < RV_SECRETS_SIGN_MAX; i++) {
        const struct secret *secret = &secrets->secrets[i];
        bool meant = own ? secret->destination != NULL &&
                               rv_str_is(destination, secret->destination)
                         : secret->destination == NULL;
        if (!meant)
            continue;
        if (signatures++ > 0)
            rv_buf_add_char(out, ' ');
        signature_put(secret, rv_buf_str(&message), out);
    }
    if (message.failed != RV_OK)
        out->failed = message.failed;
    rv_buf_done(&message);
    return signatures > 0;
}

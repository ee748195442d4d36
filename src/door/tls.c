#include "door/tls.h"

#include "base/assert.h"
#include "door/door_priv.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    HELLO_MAX = 16 * 1024,
    RECORDS_IN_TURN = 8, /* that one connection sends without a byte for us, before others go on */
    SHAKE_BYTES_MAX = 40 * 1024, /* from the peer in a handshake: two hellos, and what is small */
    /* And later, without one for us: more than the largest record. */
    BARREN_MAX = 20 * 1024
};

struct rv_door_tls {
    SSL_CTX *context;
};

/* HTTP/1.1 is all that is spoken; a client that names only others is told so. */
static int protocol_choose(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *self)
{
    static const unsigned char http[] = "\x08http/1.1";
    unsigned char *chosen;
    (void)ssl;
    (void)self;
    if (SSL_select_next_proto(&chosen, out_len, http, sizeof http - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* No client shows a certificate. Whoever wants that has its place here: the authorities and
 * SSL_VERIFY_PEER, SSL_CTX_set_max_cert_list and SHAKE_BYTES_MAX for the bytes that come with it;
 * SSL_get0_peer_certificate() at the end of tls_shake then tells who the client is. */
static void clients_ask(SSL_CTX *context)
{
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
}

/* Nothing is resumed: a session costs no memory after its connection, and a key that was renewed
 * is of no use to whoever gets it later. */
static bool context_set(SSL_CTX *context)
{
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY); /* a read takes one record: tls_read */
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    clients_ask(context);
    SSL_CTX_set_alpn_select_cb(context, protocol_choose, NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_num_tickets(context, 0) == 1 && SSL_CTX_set_max_early_data(context, 0) == 1;
}

static const char *chain_add(SSL_CTX *context, BIO *text)
{
    X509 *next;
    while ((next = PEM_read_bio_X509(text, NULL, NULL, NULL)) != NULL) {
        if (SSL_CTX_add0_chain_cert(context, next) != 1) {
            X509_free(next);
            return "a certificate of the chain cannot be used";
        }
    }
    bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    return at_end ? NULL : "a certificate of the chain is damaged";
}

static const char *certificate_set(SSL_CTX *context, struct rv_str cert, struct rv_str key)
{
    static char no_password[] = "";
    BIO *cert_text = BIO_new_mem_buf(cert.at, (int)cert.len);
    BIO *key_text = BIO_new_mem_buf(key.at, (int)key.len);
    X509 *own = cert_text ? PEM_read_bio_X509(cert_text, NULL, NULL, NULL) : NULL;
    EVP_PKEY *secret = key_text ? PEM_read_bio_PrivateKey(key_text, NULL, NULL, no_password) : NULL;
    const char *why = NULL;
    if (own == NULL)
        why = "--tls-cert is not a certificate in PEM format (-----BEGIN CERTIFICATE-----)";
    else if (secret == NULL)
        why = "--tls-key is not a private key in PEM format without a password";
    else if (X509_check_private_key(own, secret) != 1)
        why = "the key does not match the first certificate in --tls-cert: the first certificate "
              "must be that of the server, and --tls-key must be its key";
    else if (X509_cmp_current_time(X509_get0_notAfter(own)) < 0)
        why = "the certificate has expired: install a new certificate";
    else if (SSL_CTX_use_certificate(context, own) != 1 ||
             SSL_CTX_use_PrivateKey(context, secret) != 1)
        why = "the certificate or its key is too weak, or of a type that TLS does not support";
    else
        why = chain_add(context, cert_text);
    EVP_PKEY_free(secret);
    X509_free(own);
    BIO_free(key_text);
    BIO_free(cert_text);
    return why;
}

struct rv_door_tls *rv_door_tls_new(struct rv_str cert, struct rv_str key, const char **ret_why)
{
    struct rv_door_tls *tls = calloc(1, sizeof *tls);
    SSL_CTX *context = tls ? SSL_CTX_new(TLS_server_method()) : NULL;
    const char *why = "out of memory";
    ERR_clear_error();
    if (context != NULL && context_set(context))
        why = certificate_set(context, cert, key);
    ERR_clear_error();
    if (why != NULL) {
        SSL_CTX_free(context);
        free(tls);
        *ret_why = why;
        return NULL;
    }
    tls->context = context;
    return tls;
}

void rv_door_tls_free(struct rv_door_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

/* ---- connections ---- */

/* A few bytes can announce a hello that OpenSSL would make 128 KiB of room for: the first, and the
 * one that follows when the server asks for another key share. False: this is one. */
static bool hellos_fit(struct door_hellos *seen, const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (seen->record_left == 0) {
            rv_assert(seen->record_len < sizeof seen->record);
            seen->record[seen->record_len++] = at[i];
            if (seen->record_len < sizeof seen->record)
                continue;
            seen->record_len = 0;
            seen->record_left = (unsigned)seen->record[3] << 8 | seen->record[4];
            continue;
        }
        seen->record_left--;
        if (seen->record[0] != SSL3_RT_HANDSHAKE) {
            continue;
        } else if (seen->message_left > 0) {
            seen->message_left--;
            continue;
        }
        rv_assert(seen->message_len < sizeof seen->message);
        seen->message[seen->message_len++] = at[i];
        if (seen->message_len < sizeof seen->message)
            continue;
        seen->message_len = 0;
        seen->message_left = (unsigned)seen->message[1] << 16 | (unsigned)seen->message[2] << 8 |
                             seen->message[3];
        if (seen->message[0] == SSL3_MT_CLIENT_HELLO && seen->message_left > HELLO_MAX)
            return false;
    }
    return true;
}

/* Sees what OpenSSL reads before it does, so that nothing is made of what is too much. */
static long bytes_watch(BIO *socket, int what, const char *at, size_t max, int unused,
                        long unused_too, int result, size_t *got)
{
    struct rv_door_conn *conn = (struct rv_door_conn *)(void *)BIO_get_callback_arg(socket);
    const SSL *ssl = conn->tls;
    (void)max;
    (void)unused;
    (void)unused_too;
    size_t most = SSL_is_init_finished(ssl) ? BARREN_MAX : SHAKE_BYTES_MAX;
    if (what == BIO_CB_READ && conn->barren > most) {
        BIO_clear_retry_flags(socket);
        return -1;
    }
    if (what != (BIO_CB_READ | BIO_CB_RETURN) || result <= 0)
        return result;
    conn->barren += *got;
    /* TLS 1.2 has one hello; later handshake records are encrypted, and not to be read as such. */
    bool hellos = !SSL_is_init_finished(ssl) && SSL_version(ssl) != TLS1_2_VERSION;
    return !hellos || hellos_fit(&conn->hellos, (const unsigned char *)at, *got) ? result : -1;
}

enum rv_err tls_begin(struct rv_door_conn *conn)
{
    rv_assert(conn->tls == NULL);
    rv_assert(conn->door->tls != NULL);
    rv_assert(conn->state == CONN_SHAKE);
    SSL *ssl = SSL_new(conn->door->tls->context);
    conn->tls = ssl;
    if (ssl == NULL || SSL_set_fd(ssl, conn->fd) != 1)
        return RV_ERR_MEMORY;
    BIO_set_callback_ex(SSL_get_rbio(ssl), bytes_watch);
    BIO_set_callback_arg(SSL_get_rbio(ssl), (char *)(void *)conn);
    SSL_set_accept_state(ssl);
    return RV_OK;
}

void tls_free(struct rv_door_conn *conn)
{
    SSL_free(conn->tls);
    conn->tls = NULL;
}

/* As errno of a socket would tell it. Never 0 for a failure. */
static int error_of(struct rv_door_conn *conn, int result)
{
    int error = SSL_get_error(conn->tls, result);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return EAGAIN;
    return EPIPE;
}

int tls_hello_there(const struct rv_door_conn *conn)
{
    rv_assert(conn->tls == NULL);
    unsigned char head[SSL3_RT_HEADER_LENGTH + 4]; /* of the record, and of the message in it */
    int there = 0;
    ssize_t got = recv(conn->fd, head, sizeof head, MSG_PEEK);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (got > 0 && head[0] != SSL3_RT_HANDSHAKE)
        return 1; /* it is refused with an alert */
    if (got < (ssize_t)sizeof head)
        return got == 0 || conn->left ? -1 : 0;
    int record = head[3] << 8 | head[4];
    int hello = head[6] << 16 | head[7] << 8 | head[8];
    if (record < 4 || record > SSL3_RT_MAX_PLAIN_LENGTH || hello > HELLO_MAX ||
        ioctl(conn->fd, FIONREAD, &there) != 0)
        return -1;
    if (there >= record + SSL3_RT_HEADER_LENGTH)
        return 1;
    return conn->left ? -1 : 0;
}

int tls_shake(struct rv_door_conn *conn)
{
    rv_assert(conn->state == CONN_SHAKE);
    ERR_clear_error();
    int result = SSL_do_handshake(conn->tls);
    if (result != 1)
        return error_of(conn, result) == EAGAIN ? 0 : -1;
    conn->barren = 0;
    return 1;
}

/* Key updates, requests to negotiate again and empty records cost much and bring nothing: only so
 * many are looked at in a turn, and a peer that sends nothing else is cut (bytes_watch). A call
 * that took bytes and got nothing may have left others in the socket, which make no event of their
 * own. */
ssize_t tls_read(struct rv_door_conn *conn, char *at, size_t max)
{
    BIO *socket = SSL_get_rbio(conn->tls);
    for (int record = 0; record < RECORDS_IN_TURN; record++) {
        uint64_t before = BIO_number_read(socket);
        size_t got;
        ERR_clear_error();
        int result = SSL_read_ex(conn->tls, at, max, &got);
        if (result == 1) {
            conn->barren = 0;
            return (ssize_t)got;
        }
        if (SSL_get_error(conn->tls, result) == SSL_ERROR_ZERO_RETURN)
            return 0;
        errno = error_of(conn, result);
        if (errno != EAGAIN || BIO_number_read(socket) == before)
            return -1;
    }
    errno = EINTR;
    return -1;
}

ssize_t tls_write(struct rv_door_conn *conn, const char *at, size_t len)
{
    rv_assert(len > 0);
    size_t sent;
    ERR_clear_error();
    int result = SSL_write_ex(conn->tls, at, len, &sent);
    if (result == 1)
        return (ssize_t)sent;
    errno = error_of(conn, result);
    return -1;
}

void tls_bye(struct rv_door_conn *conn)
{
    ERR_clear_error();
    if (SSL_is_init_finished(conn->tls))
        (void)SSL_shutdown(conn->tls);
    ERR_clear_error();
}

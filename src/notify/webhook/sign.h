/* sign.h - signatures of webhooks, and the secrets that they are made with. */
#ifndef RV_NOTIFY_WEBHOOK_SIGN_H
#define RV_NOTIFY_WEBHOOK_SIGN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* As the Standard Webhooks specification has it (standardwebhooks.com): HMAC-SHA256 over message
 * id, timestamp and body, with a dot between. A receiver checks it with any library for that.
 *
 * A file of secrets has one in each line, the newest first: `whsec_` and base64, alone for all
 * webhooks, or behind a destination (`https://shop.example whsec_...`) for that one. Empty lines
 * and such that begin with # count for nothing. Several secrets for one destination sign all of
 * them, so that a secret can be changed without a gap. */
struct rv_secrets;

enum { RV_SECRETS_WHY_BYTES = 512, RV_SECRETS_MAX = 64, RV_SECRETS_SIGN_MAX = 4 };

/* INVALID with the line, what is wrong with it and the cure; MEMORY. A secret is never in it. */
RV_CHECK enum rv_err rv_secrets_parse(struct rv_str text, struct rv_secrets **ret_secrets,
                                      char ret_why[static RV_SECRETS_WHY_BYTES]);
/* The file at `path`. `make`: where there is none, one is made with a new secret, for its owner's
 * eyes only; *ret_made says so. IO with the reason too. */
RV_CHECK enum rv_err rv_secrets_read(const char *path, bool make, struct rv_secrets **ret_secrets,
                                     bool *ret_made, char ret_why[static RV_SECRETS_WHY_BYTES]);
void rv_secrets_free(struct rv_secrets *secrets);

/* Appends "v1,<base64>", one for each secret of the destination, with blanks between. False: there
 * is no secret for it. */
bool rv_secrets_sign(const struct rv_secrets *secrets, struct rv_str destination, struct rv_str id,
                     int64_t timestamp_s, struct rv_str body, struct rv_buf *out);

#endif

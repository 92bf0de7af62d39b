/* sshcert: OpenSSH's formats, as far as short-lived access needs them: an Ed25519 authority, public
 * keys, user certificates (PROTOCOL.certkeys) and lists of revoked ones (PROTOCOL.krl).  No I/O.
 * Thread: any.  Errors: -1 with *e set. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#define SSH_KEY_BYTES 32

struct ssh_authority { /* secret: wipe it after use */
    unsigned char seed[SSH_KEY_BYTES], public_key[SSH_KEY_BYTES];
};

CHECKED int ssh_authority_make(struct ssh_authority *ret, struct err *e);
/* A key for something of the authority's, such as one sandbox: always the same for a label.  It
 * tells nothing of the authority's own key. */
CHECKED int ssh_authority_derive(const struct ssh_authority *a, struct str label,
                                 struct ssh_authority *ret, struct err *e);
/* A private key file as ssh-keygen writes it: Ed25519, without a passphrase. */
CHECKED int ssh_authority_read(struct str file, struct ssh_authority *ret, struct err *e);
void ssh_authority_write(const struct ssh_authority *a, struct buf *to);
void ssh_put_public(const struct ssh_authority *a, struct buf *to); /* "ssh-ed25519 AAAA…" */

/* Decodes a line of a public key file into its blob; refuses certificates, options before the key,
 * and kinds that OpenSSH no longer accepts. */
CHECKED int ssh_key_read(struct str line, struct buf *blob, struct err *e);
void ssh_put_fingerprint(struct str blob, struct buf *to); /* "SHA256:…" */

struct ssh_cert_spec {
    uint64_t serial;
    const char *key_id; /* sshd logs it */
    const struct str *principals;
    size_t principal_count;
    int64_t valid_after_s, valid_before_s;
    bool forwarding; /* of ports and sockets */
};
/* A line for a file NAME-cert.pub.  It grants a terminal and, if so asked, forwarding of ports: no
 * agents, no X11, no ~/.ssh/rc. */
CHECKED int ssh_cert_make(const struct ssh_authority *a, struct str key_blob,
                          const struct ssh_cert_spec *spec, struct buf *line, struct err *e);
/* For sshd's RevokedKeys: the certificates of this authority with these serials, in rising order.
 */
void ssh_krl_make(const struct ssh_authority *a, uint64_t version, int64_t now_s,
                  const uint64_t *serials, size_t count, struct buf *to);

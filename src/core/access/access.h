/* access: SSH certificates of minutes, signed by the installation's own SSH authority.  A host that
 * trusts the authority (TrustedUserCAKeys) and fetches the list of revoked ones (RevokedKeys) lets
 * the holder in until the certificate expires, is revoked, or its token or sandbox is gone.
 * The authority's private key is STATE/ssh-ca (0600), made at the first start, in OpenSSH's format:
 * an operator may put another there.
 * Ownership: the registry's; a certificate is borrowed until the loop turns.  Thread: the loop's.
 */
#pragma once

#include "core/identity/identity.h"
#include "core/sandbox/sandbox.h"

#define ACCESS_TTL_MIN_MS (60 * 1000)
#define ACCESS_TTL_MAX_MS (10 * 60 * 1000)
#define ACCESS_PRINCIPALS_MAX 16

struct access;
struct certificate;

enum certificate_state { CERTIFICATE_ACTIVE, CERTIFICATE_EXPIRED, CERTIFICATE_REVOKED };

struct certificate_spec { /* valid during the call */
    struct str public_key;
    const struct str *principals; /* for hosts; of a sandbox: none */
    size_t principal_count;
    const char *sandbox; /* the id of the sandbox it is for, or NULL */
    int64_t ttl_ms;
};

struct certificate_info {
    const char *id;
    int64_t serial, created_ms, expires_ms, revoked_ms; /* 0: not revoked */
    struct str owner, tenant, sandbox, principals, fingerprint, reason;
    enum certificate_state state;
};

struct access_config {
    struct store *store;
    struct identity *identity;
    struct sandboxes *sandboxes;
    const char *state; /* the state directory */
};
/* Reads rows and key.  Blocking: at start-up only. */
CHECKED int access_open(const struct access_config *c, struct access **ret, struct err *e);
struct access *access_free(struct access *a); /* after store_close; takes NULL; returns NULL */

/* c NULL: it failed.  line: the certificate's text, in this callback only, and only of an issue. */
typedef void (*access_cb)(void *arg, const struct certificate *c, struct str line,
                          const struct err *e);
/* Both: -1 with *e, and done is not called; or 0, and it is called later. */
CHECKED int access_issue(struct access *a, const struct certificate_spec *spec,
                         const struct principal *by, access_cb done, void *arg, struct err *e);
CHECKED int access_revoke(struct access *a, const struct certificate *c, struct str reason,
                          const struct principal *by, access_cb done, void *arg, struct err *e);
/* Those that the caller may see: people all of their tenant, agents their own. */
const struct certificate *access_find(struct access *a, const struct principal *by, struct str id,
                                      struct err *e);
const struct certificate *access_next(struct access *a, const struct principal *by,
                                      struct str after);
void certificate_info(const struct certificate *c, struct certificate_info *ret);
void access_put_public(const struct access *a, struct buf *to);
void access_put_krl(const struct access *a, struct buf *to);
void access_tick(struct access *a); /* now and then: forgets old rows */

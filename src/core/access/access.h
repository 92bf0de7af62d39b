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
struct revoked;
struct ssh_sessions; /* core/access/ssh_session.h */

enum certificate_state { CERTIFICATE_ACTIVE, CERTIFICATE_EXPIRED, CERTIFICATE_REVOKED };

struct certificate_spec { /* valid during the call */
    struct str public_key;
    const struct str *principals; /* for hosts; of a sandbox: none */
    size_t principal_count;
    const char *sandbox; /* the id of the sandbox it is for, or NULL */
    int64_t ttl_ms;
    bool forwarding; /* of ports */
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
    struct revoked *revoked; /* agents */
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
/* The host key of a sandbox: a private key file, and a line of known_hosts without its host. */
CHECKED int access_put_host_key(const struct access *a, const char *sandbox, struct buf *to,
                                struct err *e);
CHECKED int access_put_host_public(const struct access *a, const char *sandbox, struct buf *to,
                                   struct err *e);
struct ssh_sessions *access_sessions(struct access *a);

/* --- a session that a certificate has opened --- */

/* The valid certificate with this serial, if it is one for this sandbox; NULL: none. */
struct certificate *access_admit(struct access *a, int64_t serial, const char *sandbox);
void certificate_hold(struct certificate *c);    /* it is not forgotten … */
void certificate_release(struct certificate *c); /* … until then; takes NULL */
/* NULL: a session may go on, also after the certificate has expired; otherwise why not. */
const char *certificate_ended(const struct certificate *c);
struct str certificate_person(const struct certificate *c);

void access_tick(struct access *a); /* now and then: forgets old rows */

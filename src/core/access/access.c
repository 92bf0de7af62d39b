/* access: issues, revokes and lists SSH certificates. */
#include "core/access/access.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/access/ssh_session.h"
#include "core/identity/named.h"
#include "core/keyfile.h"
#include "core/team/revoked.h"
#include "core/texts.h"
#include "proto/json.h"
#include "proto/sshcert.h"

#include <stdio.h>

#define KEY_FILE_MAX 16384
#define CERTIFICATES_MAX 10000
#define KEPT_MS (24LL * 60 * 60 * 1000) /* after the end of their validity */
#define SKEW_S 60                       /* the clocks of hosts differ */
#define SERIALS_PER_MS 1000             /* so that serials never repeat, and fit into a double */

struct access {
    struct named_list list;
    struct access_config c;
    struct ssh_authority key;
    struct ssh_sessions *sessions;
    int64_t last_serial;
};

struct certificate {
    struct named named; /* first; it has no name */
    int64_t serial, expires_ms, revoked_ms;
    char token[ID_SIZE], sandbox[ID_SIZE];
    char *principals, *fingerprint, *reason;
    unsigned holds; /* live sessions: not forgotten meanwhile */
};

static struct certificate *certificate_of(struct named *n)
{
    return n ? CONTAINER_OF(n, struct certificate, named) : NULL;
}

static struct access *all_of(const struct certificate *c)
{
    return CONTAINER_OF(c->named.list, struct access, list);
}

struct access *access_free(struct access *a)
{
    if (!a)
        return NULL;
    named_list_done(&a->list);
    ssh_sessions_free(a->sessions);
    mem_wipe(&a->key, sizeof a->key);
    mem_free(a);
    return NULL;
}

static const struct token *token_of(const struct certificate *c)
{
    return c->token[0] ? identity_get(all_of(c)->c.identity, str_of(c->token)) : NULL;
}

/* A certificate dies with the token that asked for it and with the sandbox it is for; while an
 * agent is revoked its certificates are, too.  NULL: neither is the case. */
static const char *orphaned_by(const struct certificate *c)
{
    const struct access_config *with = &all_of(c)->c;
    const struct token *t = token_of(c);
    struct err e = {0};

    if (c->token[0] && !t)
        return "the token is revoked or expired";
    if (t && t->agent && with->revoked &&
        revoked_check(with->revoked, str_of(t->agent), PERM_SANDBOX_WRITE, &e) < 0)
        return "the agent is revoked";
    if (c->sandbox[0] && !sandbox_find(with->sandboxes, &principal_system, str_of(c->sandbox), &e))
        return "the sandbox is gone";
    return NULL;
}

static enum certificate_state state_of(const struct certificate *c)
{
    if (c->revoked_ms || (clock_wall_ms() < c->expires_ms && orphaned_by(c)))
        return CERTIFICATE_REVOKED;
    return clock_wall_ms() < c->expires_ms ? CERTIFICATE_ACTIVE : CERTIFICATE_EXPIRED;
}

void certificate_info(const struct certificate *c, struct certificate_info *ret)
{
    *ret = (struct certificate_info){
        .id = c->named.id,
        .serial = c->serial,
        .created_ms = c->named.created_ms,
        .expires_ms = c->expires_ms,
        .revoked_ms = c->revoked_ms,
        .owner = str_of(c->named.owner),
        .tenant = str_of(c->named.tenant),
        .sandbox = str_of(c->sandbox),
        .principals = str_of(c->principals),
        .fingerprint = str_of(c->fingerprint),
        .reason = str_of(c->reason),
        .state = state_of(c),
    };
}

const struct certificate *access_find(struct access *a, const struct principal *by, struct str id,
                                      struct err *e)
{
    struct named *n = named_get(&a->list, id);

    if (n && named_may(n, by, OWNER_SEE))
        return certificate_of(n);
    (void)named_not_found(a->list.kind, id, e);
    return NULL;
}

const struct certificate *access_next(struct access *a, const struct principal *by,
                                      struct str after)
{
    return certificate_of(named_next(&a->list, by, after));
}

/* --- rows and events --- */

#define HAS(member, kind, ...) COLUMN(struct certificate, member, kind, __VA_ARGS__)
static const struct column certificate_column_list[] = {
    COLUMN_AS("id", struct certificate, named.id, COLUMN_CHARS, .flags = COLUMN_KEY),
    NAMED_OWNER_COLUMNS(struct certificate),
    HAS(serial, COLUMN_INT),
    HAS(token, COLUMN_CHARS),
    HAS(sandbox, COLUMN_CHARS),
    HAS(principals, COLUMN_TEXT),
    HAS(fingerprint, COLUMN_TEXT),
    HAS(expires_ms, COLUMN_INT),
    HAS(revoked_ms, COLUMN_INT),
    HAS(reason, COLUMN_TEXT),
};
static struct columns certificate_columns = {.table = "certificates",
                                             .list = certificate_column_list,
                                             .count = ARRAY_LEN(certificate_column_list),
                                             .order = "ORDER BY id",
                                             .prefix = "ac"};

static void certificate_done(struct named *n)
{
    struct certificate *c = certificate_of(n);

    mem_free(c->principals);
    mem_free(c->fingerprint);
    mem_free(c->reason);
}

static void certificate_put(const struct named *n, struct jw *w)
{
    const struct certificate *c = CONTAINER_OF(n, struct certificate, named);

    jw_kint(w, "serial", c->serial);
    jw_kc(w, "sandbox", c->sandbox);
    jw_kc(w, "principals", c->principals);
    jw_kc(w, "fingerprint", c->fingerprint);
    jw_ktime(w, "expires_at", c->expires_ms);
    jw_ktime(w, "revoked_at", c->revoked_ms);
    jw_kc(w, "reason", c->reason);
}

static const struct named_kind certificate_kind = {
    .noun = "certificate",
    .hint = "holt access ls lists those there are",
    .size = sizeof(struct certificate),
    .columns = &certificate_columns,
    .durability = STORE_DURABLE,
    .done = certificate_done,
    .put = certificate_put,
};

struct access_job {
    char *line; /* the certificate's text, of an issue */
    access_cb done;
    void *arg;
};

static void certificate_written(void *arg, struct named *n, const struct err *e)
{
    struct access_job *j = arg;

    j->done(j->arg, e->code == ERR_NONE ? certificate_of(n) : NULL, str_of(j->line), e);
    mem_free(j->line);
    mem_free(j);
}

static struct named_call access_call(const struct principal *by, struct access_job j)
{
    return (struct named_call){.by = by, .done = certificate_written, .arg = xmemdup(&j, sizeof j)};
}

/* --- the key --- */

static int make_key(struct access *a, const char *path, struct err *e)
{
    AUTO(buf_wipe) struct buf file = {0};

    if (ssh_authority_make(&a->key, e) < 0)
        return -1;
    ssh_authority_write(&a->key, &file);
    return keyfile_write(path, buf_str(&file), e);
}

static int open_key(struct access *a, const char *state, struct err *e)
{
    AUTO(mem_free) char *path = xasprintf("%s/ssh-ca", state);
    AUTO(buf_wipe) struct buf file = {0};
    int r = keyfile_read(path, KEY_FILE_MAX, &file, e);

    if (r > 0)
        r = ssh_authority_read(buf_str(&file), &a->key, e);
    else if (r == 0)
        r = make_key(a, path, e);
    if (r == 0)
        return 0;
    err_wrap(e, "open the SSH authority '%s'", path);
    return err_hint(e, "an Ed25519 key without a passphrase, of holtd's user, with mode 0600: "
                       "ssh-keygen -t ed25519 -N ''");
}

int access_open(const struct access_config *c, struct access **ret, struct err *e)
{
    struct access *a = xzalloc(sizeof *a);

    a->c = *c;
    if (open_key(a, c->state, e) < 0 ||
        named_list_open(&a->list, &certificate_kind, c->store, e) < 0 ||
        ssh_sessions_open(c->store, &a->sessions, e) < 0) {
        access_free(a);
        return err_wrap(e, "open the SSH certificates");
    }
    for (size_t i = 0; i < a->list.count; i++)
        a->last_serial = i64_max(a->last_serial, certificate_of(a->list.sorted[i])->serial);
    *ret = a;
    return 0;
}

void access_put_public(const struct access *a, struct buf *to)
{
    ssh_put_public(&a->key, to);
}

/* Made of the authority's key, so that it is kept nowhere. */
static int host_key(const struct access *a, const char *sandbox, struct ssh_authority *ret,
                    struct err *e)
{
    AUTO(mem_free) char *label = xasprintf("ssh host key of %s", sandbox);

    return ssh_authority_derive(&a->key, str_of(label), ret, e);
}

int access_put_host_key(const struct access *a, const char *sandbox, struct buf *to, struct err *e)
{
    struct ssh_authority key;

    if (host_key(a, sandbox, &key, e) < 0)
        return -1;
    ssh_authority_write(&key, to);
    mem_wipe(&key, sizeof key);
    return 0;
}

int access_put_host_public(const struct access *a, const char *sandbox, struct buf *to,
                           struct err *e)
{
    struct ssh_authority key;

    if (host_key(a, sandbox, &key, e) < 0)
        return -1;
    ssh_put_public(&key, to);
    mem_wipe(&key, sizeof key);
    return 0;
}

struct ssh_sessions *access_sessions(struct access *a)
{
    return a->sessions;
}

static int compare_serials(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Expired ones are refused anyway and are left out. */
void access_put_krl(const struct access *a, struct buf *to)
{
    AUTO(mem_free) uint64_t *serials = xzalloc((a->list.count + 1) * sizeof *serials);
    int64_t now_ms = clock_wall_ms();
    size_t n = 0;

    for (size_t i = 0; i < a->list.count; i++) {
        const struct certificate *c = certificate_of(a->list.sorted[i]);

        if (now_ms < c->expires_ms && state_of(c) == CERTIFICATE_REVOKED)
            serials[n++] = (uint64_t)c->serial;
    }
    qsort(serials, n, sizeof *serials, compare_serials);
    ssh_krl_make(&a->key, (uint64_t)now_ms, now_ms / 1000, serials, n, to);
}

/* --- issue --- */

/* It stands in lists separated by commas, and in sshd's files one to a line.  A sandbox's id opens
 * that sandbox: the field 'sandbox' asks whether it may be opened. */
static bool is_principal(struct str s)
{
    if (id_is_valid("sb", s))
        return false;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == ',' || s.p[i] == 0x7f)
            return false;
    return s.n > 0 && s.n <= 128;
}

static int check_spec(const struct access *a, const struct certificate_spec *spec,
                      const struct principal *by, struct err *e)
{
    if (principal_is_inside(by) || (by->role == ROLE_AGENT && !spec->sandbox)) {
        err_set(e, ERR_FORBIDDEN, 0, "an agent gets certificates for its own sandboxes only");
        return err_hint(e, "name one in the field 'sandbox', with the agent's token");
    }
    if (!spec->sandbox && spec->principal_count == 0) {
        err_set(e, ERR_INVALID, 0, "a certificate needs 'sandbox' or 'principals'");
        return err_hint(e, "principals are the names that a host's sshd lets in");
    }
    if (spec->sandbox && spec->principal_count > 0)
        return err_set(e, ERR_INVALID, 0,
                       "field 'principals': a certificate for a sandbox has that sandbox's only");
    if (!spec->sandbox && by->tenant[0]) {
        err_set(e, ERR_FORBIDDEN, 0, "certificates for machines are not for tenants");
        return err_hint(e, "name a sandbox in the field 'sandbox'");
    }
    for (size_t i = 0; i < spec->principal_count; i++)
        if (!is_principal(spec->principals[i]))
            return err_set(e, ERR_INVALID, 0,
                           "field 'principals': 1 to 128 characters each, "
                           "without blanks and commas, and no sandbox's id");
    if (a->list.count < CERTIFICATES_MAX)
        return 0;
    err_set(e, ERR_LIMIT, 0, "%zu certificates are kept already", a->list.count);
    return err_limit_fixed(e, CERTIFICATES_MAX, "they are forgotten a day after they have expired");
}

static char *join_principals(const struct certificate_spec *spec)
{
    struct buf all = {0};

    for (size_t i = 0; i < spec->principal_count; i++) {
        buf_add_c(&all, i > 0 ? "," : "");
        buf_add_str(&all, spec->principals[i]);
    }
    if (spec->sandbox)
        buf_add_c(&all, spec->sandbox);
    return buf_steal(&all);
}

static struct certificate *certificate_new(struct access *a, const struct certificate_spec *spec,
                                           const struct principal *by, struct str blob)
{
    struct named *n = named_new(&a->list, by, str_of(by->tenant), STR(""));
    struct certificate *c = certificate_of(n);
    struct buf fingerprint = {0};

    c->expires_ms = n->created_ms + spec->ttl_ms;
    c->serial = i64_max(a->last_serial + 1, n->created_ms * SERIALS_PER_MS);
    a->last_serial = c->serial;
    (void)snprintf(c->token, sizeof c->token, "%s", by->token ? by->token->id : "");
    (void)snprintf(c->sandbox, sizeof c->sandbox, "%s", spec->sandbox ? spec->sandbox : "");
    c->principals = join_principals(spec);
    c->reason = xstrdup("");
    ssh_put_fingerprint(blob, &fingerprint);
    c->fingerprint = buf_steal(&fingerprint);
    return c;
}

static int sign_certificate(const struct access *a, const struct certificate *c,
                            const struct certificate_spec *spec, struct str blob, struct buf *line,
                            struct err *e)
{
    char key_id[ID_SIZE + 80];
    const struct str own = str_of(c->sandbox);

    (void)snprintf(key_id, sizeof key_id, "%s-%s", c->named.id, c->named.owner);
    return ssh_cert_make(&a->key, blob,
                         &(struct ssh_cert_spec){
                             .serial = (uint64_t)c->serial,
                             .key_id = key_id,
                             .principals = spec->sandbox ? &own : spec->principals,
                             .principal_count = spec->sandbox ? 1 : spec->principal_count,
                             .valid_after_s = c->named.created_ms / 1000 - SKEW_S,
                             .valid_before_s = c->expires_ms / 1000,
                             .forwarding = spec->forwarding,
                         },
                         line, e);
}

int access_issue(struct access *a, const struct certificate_spec *spec, const struct principal *by,
                 access_cb done, void *arg, struct err *e)
{
    AUTO(buf_done) struct buf blob = {0}, line = {0};
    struct named_call call;
    struct certificate *c;

    assert(spec->ttl_ms >= ACCESS_TTL_MIN_MS && spec->ttl_ms <= ACCESS_TTL_MAX_MS);
    if (check_spec(a, spec, by, e) < 0 || ssh_key_read(spec->public_key, &blob, e) < 0)
        return err_wrap(e, "issue a certificate");
    c = certificate_new(a, spec, by, buf_str(&blob));
    if (sign_certificate(a, c, spec, buf_str(&blob), &line, e) < 0) {
        named_forget(&c->named);
        return err_wrap(e, "issue a certificate");
    }
    call = access_call(by, (struct access_job){buf_steal(&line), done, arg});
    named_create(&c->named, "certificate.issued", &call);
    return 0;
}

/* --- revoke --- */

int access_revoke(struct access *a, const struct certificate *found, struct str reason,
                  const struct principal *by, access_cb done, void *arg, struct err *e)
{
    struct named *n = named_get(&a->list, str_of(found->named.id));
    struct certificate *c = certificate_of(n);
    struct named_call call;

    assert(c == found);
    if (c->revoked_ms) {
        err_set(e, ERR_CONFLICT, 0, "certificate '%s' is revoked already", n->id);
        return err_object(e, "certificate", n->id);
    }
    c->revoked_ms = clock_wall_ms(); /* at once, whatever the store does */
    text_set(&c->reason, reason);
    call = access_call(by, (struct access_job){NULL, done, arg});
    named_save(n, "certificate.revoked", &call);
    return 0;
}

/* --- sessions --- */

static bool has_principal(const struct certificate *c, const char *name)
{
    struct str rest = str_of(c->principals);

    while (rest.n > 0)
        if (str_eq_c(str_cut(rest, ',', &rest), name))
            return true;
    return false;
}

struct certificate *access_admit(struct access *a, int64_t serial, const char *sandbox)
{
    for (size_t i = 0; i < a->list.count; i++) {
        struct certificate *c = certificate_of(a->list.sorted[i]);

        if (c->serial == serial && has_principal(c, sandbox) && state_of(c) == CERTIFICATE_ACTIVE)
            return c;
    }
    return NULL;
}

void certificate_hold(struct certificate *c)
{
    c->holds++;
}

void certificate_release(struct certificate *c)
{
    if (!c)
        return;
    assert(c->holds > 0);
    c->holds--;
}

const char *certificate_ended(const struct certificate *c)
{
    return c->revoked_ms ? "the certificate is revoked" : orphaned_by(c);
}

struct str certificate_person(const struct certificate *c)
{
    const struct token *t = token_of(c);

    return str_of(t && t->person ? t->person : "");
}

/* --- the end --- */

static int forget_work(struct store_tx *tx, void *arg, struct err *e)
{
    const int64_t *before_ms = arg;

    return tx_run(tx, "DELETE FROM certificates WHERE expires_ms < :before",
                  PARAMS(P_INT("before", *before_ms)), e) < 0
               ? -1
               : 0;
}

static void forgotten(void *arg, const struct err *e)
{
    (void)e; /* the next tick tries again */
    mem_free(arg);
}

void access_tick(struct access *a)
{
    int64_t before_ms = clock_wall_ms() - KEPT_MS;
    size_t old = 0;

    ssh_sessions_tick(a->sessions);
    for (size_t i = a->list.count; i-- > 0;) {
        struct named *n = a->list.sorted[i];

        if (certificate_of(n)->expires_ms >= before_ms || n->writes > 0 ||
            certificate_of(n)->holds > 0)
            continue;
        named_forget(n);
        old++;
    }
    if (old > 0)
        store_write(a->c.store, STORE_RELAXED, forget_work, forgotten,
                    xmemdup(&before_ms, sizeof before_ms));
}

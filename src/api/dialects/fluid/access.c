/* access: SSH certificates for sandboxes, and the sessions that they open. */
#include "core/access/access.h"

#include "api/dialects/fluid/fluid.h"
#include "api/share/ssh_door.h"
#include "base/clock.h"
#include "base/enc.h"
#include "base/mem.h"
#include "core/access/ssh_session.h"
#include "proto/digest.h"

#define MINUTE_MS (60 * 1000)
#define TTL_PRESET 5
#define SSH_USER "root"
#define RECORDED_MAX 1000 /* sessions that clients have begun and not ended */

/* --- ids --- */

static char *certificate_id(const char *of, char to[FLUID_ID])
{
    unsigned char hash[SHA256_SIZE];

    sha256(str_of(of), hash);
    enc_hex(hash, 8, to);
    return to;
}

static char *session_id(const char *of, char to[FLUID_ID])
{
    fluid_id("SESS-", of, to);
    for (char *c = to; *c; c++)
        if (*c >= 'a' && *c <= 'f')
            *c = (char)(*c - 'a' + 'A');
    return to;
}

static const struct certificate *find_certificate(struct request *r, struct str id)
{
    struct access *all = r->api->c.access;
    struct certificate_info i;
    char made[FLUID_ID];

    for (const struct certificate *c = access_next(all, &r->who, STR("")); c;
         c = access_next(all, &r->who, str_of(i.id))) {
        certificate_info(c, &i);
        if (str_eq_c(id, i.id) || str_eq_c(id, certificate_id(i.id, made)))
            return c;
    }
    return NULL;
}

/* --- as JSON --- */

static struct sandbox *sandbox_of(struct request *r, struct str id)
{
    struct err none = {0};

    return sandbox_find(r->api->c.sandboxes, &r->who, id, &none);
}

/* The members sandbox_id and vm_id; those of a sandbox that is gone have its native id. */
static void write_sandbox_ids(struct request *r, struct jw *w, struct str id)
{
    const struct sandbox *s = sandbox_of(r, id);
    struct sandbox_info i;

    if (s)
        sandbox_info(s, &i);
    jw_kstr(w, "sandbox_id", s ? fluid_sandbox_id(&i) : id);
    jw_kstr(w, "vm_id", s ? fluid_sandbox_name(&i) : id);
}

static const char *certificate_status(const struct certificate_info *i)
{
    return i->state == CERTIFICATE_REVOKED   ? "REVOKED"
           : i->state == CERTIFICATE_EXPIRED ? "EXPIRED"
                                             : "ACTIVE";
}

static void write_certificate(struct request *r, struct jw *w, const struct certificate_info *i)
{
    int64_t left = i->expires_ms - clock_wall_ms();
    char id[FLUID_ID];

    certificate_id(i->id, id);
    jw_object(w);
    jw_kc(w, "id", id);
    write_sandbox_ids(r, w, i->sandbox);
    jw_kstr(w, "user_id", i->owner);
    jw_kc(w, "identity",
          arena_printf(xchg_arena(r->x), "user:" STR_FMT "-sbx:" STR_FMT "-cert:%s",
                       STR_ARG(i->owner), STR_ARG(i->sandbox), id));
    jw_kint(w, "serial_number", i->serial);
    jw_key(w, "principals");
    jw_array(w);
    jw_c(w, SSH_USER);
    jw_array_end(w);
    fluid_seconds(w, "valid_after", i->created_ms);
    fluid_seconds(w, "valid_before", i->expires_ms);
    jw_kc(w, "status", certificate_status(i));
    fluid_seconds(w, "issued_at", i->created_ms);
    jw_kbool(w, "is_expired", left <= 0);
    if (left > 0)
        jw_kint(w, "ttl_seconds", left / 1000);
    jw_object_end(w);
}

/* --- request --- */

struct access_in {
    struct str sandbox_id, user_id, public_key;
    int64_t ttl_minutes;
};
static const struct fluid_field access_fields[] = {
    {"sandbox_id", FLUID_STR, offsetof(struct access_in, sandbox_id), true},
    {"user_id", FLUID_STR, offsetof(struct access_in, user_id), true},
    {"public_key", FLUID_STR, offsetof(struct access_in, public_key), true},
    {"ttl_minutes", FLUID_INT, offsetof(struct access_in, ttl_minutes), false},
};
const struct fluid_form fluid_access_form = {FLUID_FORM(access_fields, struct access_in),
                                             .lenient = true};

struct access_job {
    struct waiter waiter;
    int port;
};

static void send_issued(struct request *r, const struct certificate_info *i, struct str line,
                        int port)
{
    struct arena *a = xchg_arena(r->x);
    struct jw w = request_json(r);
    char id[FLUID_ID];

    while (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    jw_object(&w);
    jw_kc(&w, "certificate_id", certificate_id(i->id, id));
    jw_kstr(&w, "certificate", line);
    jw_kc(&w, "vm_ip_address", FLUID_ADDRESS);
    jw_kint(&w, "ssh_port", port);
    jw_kc(&w, "username", SSH_USER);
    fluid_seconds(&w, "valid_until", i->expires_ms);
    jw_kint(&w, "ttl_seconds", (i->expires_ms - i->created_ms) / 1000);
    jw_kc(&w, "connect_command",
          arena_printf(
              a, "ssh -i KEY -o CertificateFile=KEY-cert.pub -p %d " SSH_USER "@" FLUID_ADDRESS,
              port));
    jw_kc(&w, "instructions",
          "Save the certificate beside the private key as KEY-cert.pub, then connect. "
          "POST /holt/v1/sandboxes/{id}/ssh has the line for known_hosts.");
    jw_object_end(&w);
    fluid_send(r, 200);
}

static void certificate_issued(void *arg, const struct certificate *c, struct str line,
                               const struct err *e)
{
    AUTO(mem_free) struct access_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct certificate_info i;

    if (r && !c)
        fluid_refuse(r, e);
    if (!r || !c)
        return;
    certificate_info(c, &i);
    send_issued(r, &i, line, j->port);
}

void fluid_access_request(struct request *r)
{
    const struct access_in *in = r->in;
    struct sandbox *s = fluid_find_named(r, in->sandbox_id);
    int64_t minutes = in->ttl_minutes > 0 ? in->ttl_minutes : TTL_PRESET;
    struct certificate_spec spec = {.public_key = in->public_key};
    struct access_job *j;
    struct sandbox_info i;
    struct err e = {0};

    if (!s)
        return;
    sandbox_info(s, &i);
    if (i.state != SANDBOX_RUNNING) {
        fluid_error(r, 409, "sandbox " STR_FMT " is not running", STR_ARG(fluid_sandbox_id(&i)));
        return;
    }
    spec.sandbox = i.id;
    spec.ttl_ms = i64_min(i64_max(minutes * MINUTE_MS, ACCESS_TTL_MIN_MS), ACCESS_TTL_MAX_MS);
    j = xzalloc(sizeof *j);
    j->port = principal_is_inside(&r->who)
                  ? err_set(&e, ERR_FORBIDDEN, 0, "code inside a sandbox does not open SSH into it")
                  : ssh_door_need(r->api->ssh, s, &e);
    if (j->port < 0 ||
        access_issue(r->api->c.access, &spec, &r->who, certificate_issued, j, &e) < 0) {
        mem_free(j);
        fluid_refuse(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

void fluid_access_authority(struct request *r)
{
    AUTO(buf_done) struct buf line = {0};
    struct jw w = request_json(r);

    access_put_public(r->api->c.access, &line);
    jw_object(&w);
    jw_kstr(&w, "public_key", buf_str(&line));
    jw_kc(&w, "usage", "Add this key to a file that TrustedUserCAKeys of sshd_config names.");
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* --- list, get, revoke --- */

static bool matches(struct request *r, const char *key, struct str value)
{
    struct str want = fluid_query(r, key);

    return want.n == 0 || str_eq(want, value);
}

static bool is_of_sandbox(struct request *r, struct str native)
{
    struct str want = fluid_query(r, "sandbox_id");
    const struct sandbox *s = want.n > 0 ? sandbox_of(r, want) : NULL;
    struct sandbox_info i;

    if (s)
        sandbox_info(s, &i);
    return want.n == 0 || str_eq(want, native) || (s && str_eq_c(native, i.id));
}

/* Numbers that are none are ignored here. */
static struct fluid_page lenient_page(struct request *r)
{
    struct fluid_page p = {0};
    int64_t n;

    if (str_parse_i64(fluid_query(r, "limit"), &n) == 0 && n > 0)
        p.limit = n;
    if (str_parse_i64(fluid_query(r, "offset"), &n) == 0 && n > 0)
        p.offset = n;
    return p;
}

void fluid_certificates(struct request *r)
{
    bool active = str_eq_c(fluid_query(r, "active_only"), "true");
    struct fluid_page page = lenient_page(r);
    struct access *all = r->api->c.access;
    struct certificate_info i;
    struct jw w = request_json(r);
    int64_t n = 0, shown = 0;

    jw_object(&w);
    jw_key(&w, "certificates");
    jw_array(&w);
    for (const struct certificate *c = access_next(all, &r->who, STR("")); c;
         c = access_next(all, &r->who, str_of(i.id))) {
        certificate_info(c, &i);
        if (!is_of_sandbox(r, i.sandbox) || !matches(r, "user_id", i.owner) ||
            !matches(r, "status", str_of(certificate_status(&i))) ||
            (active && i.state != CERTIFICATE_ACTIVE) || !fluid_on_page(&page, n++))
            continue;
        write_certificate(r, &w, &i);
        shown++;
    }
    jw_array_end(&w);
    jw_kint(&w, "total", shown);
    jw_object_end(&w);
    fluid_send(r, 200);
}

static const struct certificate *certificate_of_path(struct request *r)
{
    const struct certificate *c = find_certificate(r, r->params.v[0]);

    if (!c)
        fluid_error(r, 404, "certificate not found");
    return c;
}

void fluid_certificate(struct request *r)
{
    const struct certificate *c = certificate_of_path(r);
    struct certificate_info i;
    struct jw w;

    if (!c)
        return;
    certificate_info(c, &i);
    w = request_json(r);
    write_certificate(r, &w, &i);
    fluid_send(r, 200);
}

struct revoke_in {
    struct str reason;
};
static const struct fluid_field revoke_fields[] = {
    {"reason", FLUID_STR, offsetof(struct revoke_in, reason), false},
};
const struct fluid_form fluid_revoke_form = {FLUID_FORM(revoke_fields, struct revoke_in),
                                             .lenient = true, .optional = true};

static void certificate_revoked(void *arg, const struct certificate *c, struct str line,
                                const struct err *e)
{
    AUTO(mem_free) struct access_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct certificate_info i;
    char id[FLUID_ID];
    struct jw w;

    (void)line;
    if (r && !c)
        fluid_refuse(r, e);
    if (!r || !c)
        return;
    ssh_doors_check(r->api->ssh);
    certificate_info(c, &i);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "message", "certificate revoked");
    jw_kc(&w, "id", certificate_id(i.id, id));
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_certificate_revoke(struct request *r)
{
    const struct revoke_in *in = r->in;
    const struct certificate *c = certificate_of_path(r);
    struct certificate_info i;
    struct access_job *j;
    struct err e = {0};

    if (!c)
        return;
    certificate_info(c, &i);
    if (i.state == CERTIFICATE_REVOKED) {
        fluid_error(r, 400, "certificate is already revoked");
        return;
    }
    j = xzalloc(sizeof *j);
    if (access_revoke(r->api->c.access, c, in->reason, &r->who, certificate_revoked, j, &e) < 0) {
        mem_free(j);
        fluid_refuse(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- sessions that clients report --- */

struct recorded { /* one that has not ended */
    struct list link;
    struct ssh_session *s;
    char id[FLUID_ID];
};

static void recorded_end(struct fluid *f, struct recorded *d, const char *reason)
{
    list_unlink(&d->link);
    f->recorded_count--;
    ssh_session_end(d->s, reason);
    mem_free(d);
}

/* The records themselves are core's. */
void fluid_recorded_done(struct fluid *f)
{
    while (!list_is_empty(&f->recorded)) {
        struct recorded *d = LIST_ENTRY(f->recorded.next, struct recorded, link);

        list_unlink(&d->link);
        mem_free(d);
    }
}

struct session_start_in {
    struct str certificate_id, source_ip;
};
static const struct fluid_field session_start_fields[] = {
    {"certificate_id", FLUID_STR, offsetof(struct session_start_in, certificate_id), true},
    {"source_ip", FLUID_STR, offsetof(struct session_start_in, source_ip), false},
};
const struct fluid_form fluid_session_start_form = {
    FLUID_FORM(session_start_fields, struct session_start_in), .lenient = true};

static void record(struct request *r, const struct sandbox_info *box, const struct certificate *c,
                   const char *peer)
{
    struct fluid *f = fluid_of(r->api);
    struct recorded *d = xzalloc(sizeof *d);
    struct ssh_session_info i;
    struct certificate_info of;
    struct jw w;

    certificate_info(c, &of);
    d->s = ssh_session_begin(access_sessions(r->api->c.access), box, peer);
    ssh_session_accept(d->s, &of, certificate_person(c), STR(SSH_USER));
    ssh_session_info(d->s, &i);
    session_id(i.id, d->id);
    list_push(&f->recorded, &d->link);
    f->recorded_count++;
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "session_id", d->id);
    jw_object_end(&w);
    fluid_send(r, 200);
}

void fluid_session_start(struct request *r)
{
    const struct session_start_in *in = r->in;
    const struct certificate *c = find_certificate(r, in->certificate_id);
    struct certificate_info i = {0};
    struct sandbox_info box;
    struct sandbox *s;

    if (c)
        certificate_info(c, &i);
    s = c ? sandbox_of(r, i.sandbox) : NULL;
    if (!c || !s) {
        fluid_error(r, 404, "certificate not found, or its sandbox is gone");
        return;
    }
    if (i.state != CERTIFICATE_ACTIVE) {
        fluid_error(r, 500, "certificate is %s", certificate_status(&i));
        return;
    }
    if (fluid_of(r->api)->recorded_count >= RECORDED_MAX) {
        fluid_error(r, 429, "%d sessions have not been ended: end some", RECORDED_MAX);
        return;
    }
    sandbox_info(s, &box);
    record(r, &box, c,
           in->source_ip.n > 0 && in->source_ip.n < 64
               ? arena_printf(xchg_arena(r->x), STR_FMT, STR_ARG(in->source_ip))
               : xchg_peer(r->x)->address);
}

struct session_end_in {
    struct str session_id, reason;
};
static const struct fluid_field session_end_fields[] = {
    {"session_id", FLUID_STR, offsetof(struct session_end_in, session_id), true},
    {"reason", FLUID_STR, offsetof(struct session_end_in, reason), false},
};
const struct fluid_form fluid_session_end_form = {
    FLUID_FORM(session_end_fields, struct session_end_in), .lenient = true};

/* Those of real connections end with their connections. */
static struct recorded *recorded_of(struct request *r, struct str id)
{
    struct ssh_sessions *all = access_sessions(r->api->c.access);
    struct ssh_session_info i;
    char made[FLUID_ID];
    bool seen = false;

    for (const struct ssh_session *s = ssh_session_next(all, &r->who, STR("")); s && !seen;
         s = ssh_session_next(all, &r->who, str_of(i.id))) {
        ssh_session_info(s, &i);
        seen = str_eq_c(id, i.id) || str_eq_c(id, session_id(i.id, made));
    }
    if (!seen)
        return NULL;
    LIST_EACH (&fluid_of(r->api)->recorded, node) {
        struct recorded *d = LIST_ENTRY(node, struct recorded, link);

        if (str_eq_c(id, d->id))
            return d;
    }
    return NULL;
}

void fluid_session_end(struct request *r)
{
    const struct session_end_in *in = r->in;
    struct recorded *d = recorded_of(r, in->session_id);
    struct jw w;

    if (!d) {
        fluid_error(r, 404, "no session that a client began has the id " STR_FMT,
                    (int)size_min(in->session_id.n, 64), in->session_id.p);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "message", "session ended");
    jw_kc(&w, "session_id", d->id);
    jw_object_end(&w);
    recorded_end(fluid_of(r->api), d,
                 in->reason.n > 0 ? arena_printf(xchg_arena(r->x), STR_FMT, STR_ARG(in->reason))
                                  : "session ended normally");
    fluid_send(r, 200);
}

static const char *session_status(const struct ssh_session_info *i)
{
    return i->state == SSH_CONNECTING ? "PENDING"
           : i->state == SSH_ACTIVE   ? "ACTIVE"
           : i->state == SSH_REFUSED  ? "ERROR"
                                      : "ENDED";
}

static void write_session(struct request *r, struct jw *w, const struct ssh_session_info *i)
{
    int64_t end = i->ended_ms > 0 ? i->ended_ms : clock_wall_ms();
    char id[FLUID_ID], certificate[FLUID_ID] = "";

    if (i->certificate.n > 0)
        certificate_id(arena_printf(xchg_arena(r->x), STR_FMT, STR_ARG(i->certificate)),
                       certificate);
    jw_object(w);
    jw_kc(w, "id", session_id(i->id, id));
    jw_kc(w, "certificate_id", certificate);
    write_sandbox_ids(r, w, i->sandbox);
    jw_kstr(w, "user_id", i->holder.n > 0 ? i->holder : i->owner);
    jw_kc(w, "vm_ip_address", FLUID_ADDRESS);
    jw_kstr(w, "source_ip", i->peer);
    jw_kc(w, "status", session_status(i));
    fluid_seconds(w, "started_at", i->started_ms);
    if (i->ended_ms > 0)
        fluid_seconds(w, "ended_at", i->ended_ms);
    jw_kint(w, "duration_seconds", (end - i->started_ms) / 1000);
    jw_object_end(w);
}

static bool session_is_wanted(struct request *r, const struct ssh_session_info *i)
{
    struct str certificate = fluid_query(r, "certificate_id");
    char id[FLUID_ID];

    if (certificate.n > 0 && i->certificate.n == 0)
        return false;
    return is_of_sandbox(r, i->sandbox) &&
           matches(r, "user_id", i->holder.n > 0 ? i->holder : i->owner) &&
           (certificate.n == 0 || str_eq(certificate, i->certificate) ||
            str_eq_c(certificate,
                     certificate_id(
                         arena_printf(xchg_arena(r->x), STR_FMT, STR_ARG(i->certificate)), id))) &&
           (!str_eq_c(fluid_query(r, "active_only"), "true") || i->ended_ms == 0);
}

void fluid_access_sessions(struct request *r)
{
    struct ssh_sessions *all = access_sessions(r->api->c.access);
    struct fluid_page page = lenient_page(r);
    struct ssh_session_info i;
    struct jw w = request_json(r);
    int64_t n = 0, shown = 0;

    jw_object(&w);
    jw_key(&w, "sessions");
    jw_array(&w);
    for (const struct ssh_session *s = ssh_session_next(all, &r->who, STR("")); s;
         s = ssh_session_next(all, &r->who, str_of(i.id))) {
        ssh_session_info(s, &i);
        if (!session_is_wanted(r, &i) || !fluid_on_page(&page, n++))
            continue;
        write_session(r, &w, &i);
        shown++;
    }
    jw_array_end(&w);
    jw_kint(&w, "total", shown);
    jw_object_end(&w);
    fluid_send(r, 200);
}

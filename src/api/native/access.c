/* access: handlers of SSH certificates, the authority and its list of revoked ones. */
#include "core/access/access.h"
#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/named.h"
#include "api/share/sandbox.h"
#include "api/share/ssh_door.h"
#include "base/mem.h"
#include "core/access/ssh_session.h"
#include "ops/access.h"

struct access_wait {
    struct waiter waiter;
};

static void write_principals(struct jw *w, struct str all)
{
    jw_key(w, "principals");
    jw_array(w);
    while (all.n > 0) {
        struct str rest, one = str_cut(all, ',', &rest);

        jw_str(w, one);
        all = rest;
    }
    jw_array_end(w);
}

static void write_members(struct jw *w, const struct certificate_info *i)
{
    jw_kc(w, "id", i->id);
    jw_kint(w, "serial", i->serial);
    jw_kc(w, "state", op_certificate_states[i->state]);
    jw_kstr(w, "owner", i->owner);
    jw_ktext(w, "tenant", i->tenant);
    jw_ktext(w, "sandbox", i->sandbox);
    write_principals(w, i->principals);
    jw_kstr(w, "fingerprint", i->fingerprint);
    jw_ktime(w, "created_at", i->created_ms);
    jw_ktime(w, "expires_at", i->expires_ms);
    jw_ktime(w, "revoked_at", i->revoked_ms);
    jw_ktext(w, "reason", i->reason);
}

/* line: the certificate itself; p NULL: not shown again. */
static void send_certificate(struct request *r, const struct certificate *c, struct str line)
{
    struct certificate_info i;
    struct jw w = request_json(r);

    certificate_info(c, &i);
    jw_object(&w);
    write_members(&w, &i);
    if (line.p)
        jw_kstr(&w, "certificate", line);
    jw_object_end(&w);
    request_send_json(r, 0);
}

static void access_ended(void *arg, const struct certificate *c, struct str line,
                         const struct err *e)
{
    AUTO(mem_free) struct access_wait *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r)
        ssh_doors_check(r->api->ssh); /* those of a certificate that was revoked */
    if (r && c)
        send_certificate(r, c, line);
    else if (r)
        request_fail(r, e);
}

/* --- request --- */

void access_request_run(struct request *r)
{
    const struct access_request_in *in = r->in;
    struct certificate_spec spec = {.public_key = in->public_key,
                                    .principals = in->principals.v,
                                    .principal_count = in->principals.n,
                                    .ttl_ms = in->ttl_ms,
                                    .forwarding = in->forwarding};
    struct sandbox_info i = {0};
    struct sandbox *s;
    struct access_wait *j;
    struct err e = {0};

    if (in->sandbox.n > 0) {
        s = request_sandbox(r, in->sandbox);
        if (!s)
            return;
        sandbox_info(s, &i);
        spec.sandbox = i.id;
    }
    j = xzalloc(sizeof *j);
    if (access_issue(r->api->c.access, &spec, &r->who, access_ended, j, &e) < 0) {
        mem_free(j);
        named_refuse(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- list, get, revoke --- */

static bool is_listed(const struct access_list_in *in, const struct certificate_info *i)
{
    return (!in->sandbox.p || str_eq(in->sandbox, i->sandbox)) &&
           (in->state < 0 || in->state == (int)i->state);
}

void access_list_run(struct request *r)
{
    const struct access_list_in *in = r->in;
    struct access *a = r->api->c.access;
    struct jw w = request_json(r);
    struct certificate_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "certificates", STR(""), in->limit);
    for (const struct certificate *c = access_next(a, &r->who, in->cursor); c && !l.more;
         c = access_next(a, &r->who, str_of(i.id))) {
        certificate_info(c, &i);
        if (!is_listed(in, &i) || !reply_list_take(&l, str_of(i.id)))
            continue;
        jw_object(&w);
        write_members(&w, &i);
        jw_object_end(&w);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static const struct certificate *request_certificate(struct request *r, struct str id)
{
    struct err e = {0};
    const struct certificate *c = access_find(r->api->c.access, &r->who, id, &e);

    if (!c)
        request_fail(r, &e);
    return c;
}

void access_get_run(struct request *r)
{
    const struct access_id_in *in = r->in;
    const struct certificate *c = request_certificate(r, in->id);

    if (c)
        send_certificate(r, c, (struct str){0});
}

void access_revoke_run(struct request *r)
{
    const struct access_revoke_in *in = r->in;
    const struct certificate *c = request_certificate(r, in->id);
    struct access_wait *j;
    struct err e = {0};

    if (!c)
        return;
    j = xzalloc(sizeof *j);
    if (access_revoke(r->api->c.access, c, in->reason, &r->who, access_ended, j, &e) < 0) {
        mem_free(j);
        request_fail(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- the authority --- */

void access_ca_run(struct request *r)
{
    AUTO(buf_done) struct buf line = {0};
    struct jw w = request_json(r);

    access_put_public(r->api->c.access, &line);
    jw_object(&w);
    jw_kstr(&w, "public_key", buf_str(&line));
    jw_object_end(&w);
    request_send_json(r, 0);
}

void access_krl_run(struct request *r)
{
    AUTO(buf_done) struct buf krl = {0};

    access_put_krl(r->api->c.access, &krl);
    xchg_add_header(r->x, "cache-control", STR("no-store"));
    request_send(r, 0, "application/octet-stream", buf_str(&krl));
}

/* --- SSH into sandboxes --- */

/* The sandbox of the request; NULL: refused. */
static struct sandbox *sandbox_for_ssh(struct request *r)
{
    const struct access_sandbox_in *in = r->in;
    struct err e = {0};

    if (!principal_is_inside(&r->who))
        return request_sandbox(r, in->id);
    err_set(&e, ERR_FORBIDDEN, 0, "code inside a sandbox does not open SSH into it");
    request_refuse(r, &e);
    return NULL;
}

void access_open_run(struct request *r)
{
    AUTO(buf_done) struct buf key = {0}, line = {0};
    struct sandbox *s = sandbox_for_ssh(r);
    struct sandbox_info i;
    struct jw w;
    struct err e = {0};
    int port;

    if (!s)
        return;
    sandbox_info(s, &i);
    port = ssh_door_need(r->api->ssh, s, &e);
    if (port < 0 || access_put_host_public(r->api->c.access, i.id, &key, &e) < 0) {
        err_object(&e, "sandbox", i.id);
        named_refuse(r, &e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "sandbox", i.id);
    jw_kc(&w, "host", "127.0.0.1");
    jw_kint(&w, "port", port);
    jw_kstr(&w, "host_key", buf_str(&key));
    buf_printf(&line, "[127.0.0.1]:%d " STR_FMT, port, STR_ARG(buf_str(&key)));
    jw_kstr(&w, "known_hosts", buf_str(&line));
    jw_object_end(&w);
    request_send_json(r, 0);
}

void access_close_run(struct request *r)
{
    struct sandbox *s = sandbox_for_ssh(r);
    struct sandbox_info i;

    if (!s)
        return;
    sandbox_info(s, &i);
    (void)ssh_door_close(r->api->ssh, i.id);
    request_send_empty(r);
}

static void write_session(struct jw *w, const struct ssh_session_info *i)
{
    jw_object(w);
    jw_kc(w, "id", i->id);
    jw_kstr(w, "sandbox", i->sandbox);
    jw_kc(w, "state", op_ssh_states[i->state]);
    jw_ktext(w, "certificate", i->certificate);
    jw_kint(w, "serial", i->serial);
    jw_ktext(w, "holder", i->holder);
    jw_ktext(w, "person", i->person);
    jw_ktext(w, "user", i->username);
    jw_kstr(w, "peer", i->peer);
    jw_ktime(w, "started_at", i->started_ms);
    jw_ktime(w, "ended_at", i->ended_ms);
    jw_kint(w, "bytes_in", i->bytes_in);
    jw_kint(w, "bytes_out", i->bytes_out);
    jw_ktext(w, "reason", i->reason);
    jw_object_end(w);
}

static bool is_asked_for(const struct access_sessions_in *in, const struct ssh_session_info *i)
{
    return (!in->sandbox.p || str_eq(in->sandbox, i->sandbox)) &&
           (!in->certificate.p || str_eq(in->certificate, i->certificate)) &&
           (in->state < 0 || in->state == (int)i->state);
}

void access_sessions_run(struct request *r)
{
    const struct access_sessions_in *in = r->in;
    struct ssh_sessions *all = access_sessions(r->api->c.access);
    struct jw w = request_json(r);
    struct ssh_session_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "sessions", STR(""), in->limit);
    for (const struct ssh_session *s = ssh_session_next(all, &r->who, in->cursor); s && !l.more;
         s = ssh_session_next(all, &r->who, str_of(i.id))) {
        ssh_session_info(s, &i);
        if (is_asked_for(in, &i) && reply_list_take(&l, str_of(i.id)))
            write_session(&w, &i);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

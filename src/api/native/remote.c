/* remote: agents on other machines: list; their secrets: list, add, rotate, revoke. */
#include "api/share/remote.h"

#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/sandbox.h"
#include "core/remote/remote.h"
#include "ops/remote.h"

#include <stdio.h>
#include <stdlib.h>

/* --- agents --- */

static const char *status_of(const struct remote_info *i)
{
    static const char *const names[] = {"ready", "stale", "disconnected"};

    return i->state == REMOTE_READY && i->provisioning ? "provisioning" : names[i->state];
}

static void write_remote(struct jw *w, const struct remote_info *i)
{
    const struct remote_numbers *n = &i->numbers;
    char system[2 * REMOTE_TEXT_MAX + 2];

    (void)snprintf(system, sizeof system, "%.*s %.*s", (int)i->os.n, i->os.p, (int)i->kernel.n,
                   i->kernel.p);
    jw_object(w);
    jw_kc(w, "agent", i->id);
    jw_kc(w, "sandbox", i->sandbox);
    jw_kc(w, "status", status_of(i));
    jw_kstr(w, "hostname", i->hostname);
    jw_kstr(w, "address", i->address);
    jw_kstr(w, "system", str_trim(str_of(system)));
    jw_kint(w, "cpus", i->cpus);
    jw_kint(w, "cpu_percent", (int64_t)n->cpu_percent);
    jw_kint(w, "memory_used", n->memory_used);
    jw_kint(w, "memory_total", n->memory_total);
    jw_kint(w, "disk_used", n->disk_used);
    jw_kint(w, "disk_total", n->disk_total);
    jw_ktext(w, "setup", i->setup);
    jw_ktime(w, "connected_at", i->connected_ms);
    jw_ktime(w, "heartbeat_at", i->heartbeat_ms);
    jw_object_end(w);
}

static int by_id(const void *a, const void *b)
{
    struct remote_info x, y;

    remote_info(*(struct remote *const *)a, &x);
    remote_info(*(struct remote *const *)b, &y);
    return strcmp(x.id, y.id);
}

/* Those whose sandbox the caller may see, in order. */
static size_t visible(struct request *r, struct remote **to)
{
    struct remote *at;
    struct remote_info i;
    struct err e;
    size_t pos = 0, n = 0;

    while (remotes_next(r->api->c.remotes, &pos, &at)) {
        remote_info(at, &i);
        if (i.sandbox[0] && sandbox_find(r->api->c.sandboxes, &r->who, str_of(i.sandbox), &e))
            to[n++] = at;
    }
    qsort(to, n, sizeof(struct remote *), by_id);
    return n;
}

void remote_list_run(struct request *r)
{
    const struct remote_list_in *in = r->in;
    struct remote **all =
        arena_zalloc(xchg_arena(r->x), (remotes_count(r->api->c.remotes) + 1) * sizeof(void *));
    size_t n = visible(r, all);
    struct jw w = request_json(r);
    struct remote_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "remotes", STR(""), in->limit);
    for (size_t k = 0; k < n && !l.more; k++) {
        remote_info(all[k], &i);
        if ((in->cursor.n == 0 || str_cmp(str_of(i.id), in->cursor) > 0) &&
            reply_list_take(&l, str_of(i.id)))
            write_remote(&w, &i);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

/* --- secrets --- */

static void write_secret(struct jw *w, const struct remote_secret_info *i, const char *made)
{
    jw_object(w);
    jw_kc(w, "agent", i->id);
    jw_ktext(w, "owner", str_of(i->owner));
    jw_ktext(w, "tenant", str_of(i->tenant));
    jw_kbool(w, "rotating", i->rotating);
    jw_ktime(w, "grace_until", i->grace_until_ms);
    jw_ktime(w, "updated_at", i->updated_ms);
    jw_kc(w, "secret", made);
    jw_object_end(w);
}

void remote_secrets_run(struct request *r)
{
    const struct remote_list_in *in = r->in;
    struct jw w = request_json(r);
    struct remote_secret_info i;
    struct reply_list l;
    struct str after = in->cursor;

    reply_list_begin(&l, &w, "secrets", STR(""), in->limit);
    while (!l.more && remote_secret_next(r->api->c.remote_secrets, &r->who, after, &i)) {
        after = str_of(i.id);
        if (reply_list_take(&l, after))
            write_secret(&w, &i, NULL);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static void secret_told(struct request *r, struct str agent, const char *made)
{
    struct remote_secret_info i = {.id = "", .owner = "", .tenant = ""};
    struct jw w = request_json(r);

    if (!remote_secret_get(r->api->c.remote_secrets, &principal_system, agent, &i))
        i.id = agent.p; /* revoked meanwhile */
    write_secret(&w, &i, made);
    request_send_json(r, 0);
}

static void secret_gone(struct request *r, struct str agent, const char *made)
{
    (void)agent, (void)made;
    request_send_empty(r);
}

void remote_add_run(struct request *r)
{
    const struct remote_add_in *in = r->in;

    remote_secret_add(r, in->agent, in->secret, secret_told);
}

void remote_rotate_run(struct request *r)
{
    const struct remote_rotate_in *in = r->in;

    remote_secret_renew(r, in->agent, in->grace_ms, secret_told);
}

void remote_revoke_run(struct request *r)
{
    const struct remote_revoke_in *in = r->in;

    remote_secret_revoke(r, in->agent, secret_gone);
}

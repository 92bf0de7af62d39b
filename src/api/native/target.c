/* target: targets of playbooks: add, list, get, remove. */
#include "core/playbook/target.h"

#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/named.h"
#include "ops/playbook.h"

static void write_list(struct jw *w, struct str all)
{
    jw_array(w);
    while (all.n > 0) {
        struct str rest, one = str_cut(all, ',', &rest);

        jw_str(w, one);
        all = rest;
    }
    jw_array_end(w);
}

static void write_target(struct jw *w, struct named *n)
{
    struct target_info i;

    target_info(target_of(n), &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "owner", i.owner);
    jw_ktext(w, "address", i.address);
    jw_kint(w, "port", i.port);
    jw_ktext(w, "sandbox", i.sandbox);
    jw_kstr(w, "user", i.user);
    jw_ktext(w, "host_key", i.host_key);
    jw_key(w, "principals");
    write_list(w, i.principals);
    jw_kbool(w, "become", i.become);
    jw_kbool(w, "shared", i.shared);
    jw_kint(w, "people", i.people);
    jw_ktime(w, "created_at", i.created_ms);
    jw_object_end(w);
}

void target_create_run(struct request *r)
{
    const struct target_create_in *in = r->in;
    const struct named_call c = named_wait(r, write_target);
    struct err e = {0};

    named_reply_later(r, &c,
                      target_create(r->api->c.targets,
                                    &(struct target_spec){.name = in->name,
                                                          .address = in->address,
                                                          .sandbox = in->sandbox,
                                                          .user = in->user,
                                                          .host_key = in->host_key,
                                                          .principals = in->principals.v,
                                                          .principal_count = in->principals.n,
                                                          .port = in->port,
                                                          .people = in->people,
                                                          .become = in->become,
                                                          .shared = in->shared},
                                    &c, &e),
                      &e);
}

void target_list_run(struct request *r)
{
    const struct target_list_in *in = r->in;
    struct targets *all = r->api->c.targets;
    struct jw w = request_json(r);
    struct target_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "targets", STR(""), in->limit);
    for (struct target *t = target_next(all, &r->who, in->cursor); t && !l.more;
         t = target_next(all, &r->who, str_of(i.id))) {
        target_info(t, &i);
        if (reply_list_take(&l, str_of(i.id)))
            write_target(&w, (struct named *)t);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

static struct target *request_target(struct request *r, enum owner_use use)
{
    const struct target_id_in *in = r->in;
    struct err e = {0};
    struct target *t = target_find(r->api->c.targets, &r->who, use, in->id, &e);

    if (!t)
        named_refuse(r, &e);
    return t;
}

void target_get_run(struct request *r)
{
    struct target *t = request_target(r, OWNER_SEE);

    if (t)
        named_reply(r, (struct named *)t, write_target);
}

void target_remove_run(struct request *r)
{
    struct target *t = request_target(r, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!t)
        return;
    c = named_wait(r, NULL);
    named_reply_later(r, &c, target_remove(t, &c, &e), &e);
}

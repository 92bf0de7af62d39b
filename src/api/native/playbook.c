/* playbook: playbooks and their tasks: create, change, list, export, remove. */
#include "core/playbook/playbook.h"

#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/named.h"
#include "api/share/publish.h"
#include "base/mem.h"
#include "ops/playbook.h"

static void write_task(struct jw *w, const json_t *t)
{
    jw_object(w);
    jw_kc(w, "id", json_string_value(json_object_get(t, "id")));
    jw_key(w, "name");
    jw_json(w, json_object_get(t, "name"));
    jw_kc(w, "module", json_string_value(json_object_get(t, "module")));
    jw_key(w, "params");
    jw_json(w, json_object_get(t, "params"));
    jw_ktime(w, "created_at", json_integer_value(json_object_get(t, "created_ms")));
    jw_object_end(w);
}

static void write_tasks(struct jw *w, const json_t *tasks)
{
    jw_array(w);
    for (size_t i = 0; i < json_array_size(tasks); i++)
        write_task(w, json_array_get(tasks, i));
    jw_array_end(w);
}

static void write_with(struct jw *w, const struct playbook *p, bool full)
{
    struct playbook_info i;

    playbook_info(p, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "owner", i.owner);
    jw_kstr(w, "hosts", i.hosts);
    jw_kbool(w, "become", i.become);
    jw_key(w, "notes");
    if (i.notes.n > 0)
        jw_raw(w, i.notes);
    else
        jw_null(w);
    jw_key(w, "tasks");
    if (full)
        write_tasks(w, playbook_tasks(p));
    else
        jw_int(w, (int64_t)i.tasks);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "updated_at", i.updated_ms);
    jw_object_end(w);
}

void playbook_write(struct jw *w, struct named *n)
{
    write_with(w, playbook_of(n), true);
}

static struct playbook *request_playbook(struct request *r, struct str id, enum owner_use use)
{
    struct err e = {0};
    struct playbook *p = playbook_find(r->api->c.playbooks, &r->who, use, id, &e);

    if (!p)
        named_refuse(r, &e);
    return p;
}

/* --- create, list, get, export, remove --- */

void playbook_create_run(struct request *r)
{
    const struct playbook_create_in *in = r->in;
    const struct named_call c = named_wait(r, playbook_write);
    struct err e = {0};

    named_reply_later(r, &c,
                      playbook_create(r->api->c.playbooks,
                                      &(struct playbook_spec){.name = in->name,
                                                              .hosts = in->hosts,
                                                              .become = in->become,
                                                              .tasks = in->tasks},
                                      &c, &e),
                      &e);
}

void playbook_list_run(struct request *r)
{
    const struct playbook_list_in *in = r->in;
    struct playbooks *all = r->api->c.playbooks;
    struct jw w = request_json(r);
    struct playbook_info i;
    struct reply_list l;

    reply_list_begin(&l, &w, "playbooks", STR(""), in->limit);
    for (struct playbook *p = playbook_next(all, &r->who, in->cursor); p && !l.more;
         p = playbook_next(all, &r->who, str_of(i.id))) {
        playbook_info(p, &i);
        if (reply_list_take(&l, str_of(i.id)))
            write_with(&w, p, false);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

void playbook_get_run(struct request *r)
{
    const struct playbook_id_in *in = r->in;
    struct playbook *p = request_playbook(r, in->id, OWNER_SEE);
    struct jw w;

    if (!p)
        return;
    w = request_json(r);
    write_with(&w, p, true);
    request_send_json(r, 0);
}

/* As create takes it. */
static void put_json(const struct playbook_info *i, const json_t *tasks, struct buf *to)
{
    struct jw w = {.to = to};

    jw_object(&w);
    jw_kstr(&w, "name", i->name);
    jw_kstr(&w, "hosts", i->hosts);
    jw_kbool(&w, "become", i->become);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (size_t k = 0; k < json_array_size(tasks); k++) {
        const json_t *t = json_array_get(tasks, k);

        jw_object(&w);
        jw_key(&w, "name");
        jw_json(&w, json_object_get(t, "name"));
        jw_kc(&w, "module", json_string_value(json_object_get(t, "module")));
        jw_key(&w, "params");
        jw_json(&w, json_object_get(t, "params"));
        jw_object_end(&w);
    }
    jw_array_end(&w);
    jw_object_end(&w);
    buf_add_char(to, '\n');
}

void playbook_export_run(struct request *r)
{
    const struct playbook_export_in *in = r->in;
    struct playbook *p = request_playbook(r, in->id, OWNER_SEE);
    AUTO(buf_done) struct buf text = {0};
    struct playbook_info i;

    if (!p)
        return;
    playbook_info(p, &i);
    if (in->format == PLAYBOOK_AS_JSON)
        put_json(&i, playbook_tasks(p), &text);
    else
        playbook_yaml(i.name, i.hosts, i.become, playbook_tasks(p), &text);
    request_send(r, 200, r->op->media, buf_str(&text));
}

void playbook_remove_run(struct request *r)
{
    const struct playbook_id_in *in = r->in;
    struct playbook *p = request_playbook(r, in->id, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!p)
        return;
    c = named_wait(r, NULL);
    named_reply_later(r, &c, playbook_remove(p, &c, &e), &e);
}

/* --- tasks --- */

static struct playbook_task task_given(const struct playbook_task_in *in)
{
    return (struct playbook_task){.name = in->name, .module = in->module, .params = in->params};
}

void playbook_task_add_run(struct request *r)
{
    const struct playbook_task_in *in = r->in;
    const struct playbook_task t = task_given(in);
    struct playbook *p = request_playbook(r, in->id, OWNER_CHANGE);
    char id[ID_SIZE];
    struct named_call c;
    struct err e = {0};

    if (!p)
        return;
    c = named_wait(r, playbook_write);
    named_reply_later(r, &c, playbook_task_add(p, &t, &c, id, &e), &e);
}

void playbook_task_change_run(struct request *r)
{
    const struct playbook_task_in *in = r->in;
    const struct playbook_task t = task_given(in);
    struct playbook *p = request_playbook(r, in->id, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!p)
        return;
    c = named_wait(r, playbook_write);
    named_reply_later(r, &c, playbook_task_change(p, in->task, &t, &c, &e), &e);
}

void playbook_task_remove_run(struct request *r)
{
    const struct playbook_task_in *in = r->in;
    struct playbook *p = request_playbook(r, in->id, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!p)
        return;
    c = named_wait(r, NULL);
    named_reply_later(r, &c, playbook_task_remove(p, in->task, &c, &e), &e);
}

void playbook_reorder_run(struct request *r)
{
    const struct playbook_reorder_in *in = r->in;
    struct playbook *p = request_playbook(r, in->id, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!p)
        return;
    c = named_wait(r, playbook_write);
    named_reply_later(r, &c, playbook_reorder(p, in->tasks.v, in->tasks.n, &c, &e), &e);
}

/* --- publish --- */

static void playbook_published(struct request *r, const struct published *p, const struct err *e)
{
    struct jw w;

    if (e->code != ERR_NONE) {
        request_fail(r, e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kstr(&w, "remote", p->remote);
    jw_kstr(&w, "branch", p->branch);
    jw_kstr(&w, "path", p->path);
    jw_kstr(&w, "commit", p->result->commit);
    jw_kbool(&w, "changed", p->result->changed);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void playbook_publish_run(struct request *r)
{
    const struct playbook_publish_in *in = r->in;
    struct playbook *p = request_playbook(r, in->id, OWNER_SEE);
    struct err e = {0};
    int begun;

    if (!p)
        return;
    begun = publish_begin(r,
                          &(struct publish_request){.playbook = p,
                                                    .name = in->branch,
                                                    .message = in->message,
                                                    .reviewers = in->reviewers.v,
                                                    .reviewer_count = in->reviewers.n},
                          playbook_published, &e);
    if (begun == 0)
        return;
    if (begun > 0) {
        err_set(&e, ERR_UNSUPPORTED, 0, "this installation publishes nothing");
        err_hint(&e, "an operator sets 'publish_url' to a git remote");
    }
    request_fail(r, &e);
}

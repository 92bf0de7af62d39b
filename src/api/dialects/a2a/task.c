/* task: tasks as version 1.0 and agentic-sandbox write them. */
#include "api/dialects/a2a/a2a.h"

#include "api/share/sandbox.h"
#include "base/mem.h"

#define PAGE 25
#define PAGE_MAX 100

/* --- states --- */

enum word { SUBMITTED, WORKING, COMPLETED, FAILED, CANCELED, WORDS };
static const struct {
    const char *seed, *v1;
} words[WORDS] = {
    [SUBMITTED] = {"submitted", "TASK_STATE_SUBMITTED"},
    [WORKING] = {"working", "TASK_STATE_WORKING"},
    [COMPLETED] = {"completed", "TASK_STATE_COMPLETED"},
    [FAILED] = {"failed", "TASK_STATE_FAILED"},
    [CANCELED] = {"canceled", "TASK_STATE_CANCELED"},
};

static enum word word_of(enum task_state s)
{
    if (s == TASK_PENDING)
        return SUBMITTED;
    if (s == TASK_COMPLETED)
        return COMPLETED;
    if (s == TASK_CANCELLED)
        return CANCELED;
    return task_state_is_end(s) ? FAILED : WORKING;
}

const char *a2a_state(const struct a2a_call *c, enum task_state s)
{
    enum word word = word_of(s);

    return c->form == A2A_SEED ? words[word].seed : words[word].v1;
}

/* --- as JSON --- */

const char *a2a_label(const struct task_info *i, const char *key)
{
    for (size_t k = 0; k < i->label_count; k++)
        if (str_eq_c(i->labels[k].key, key))
            return i->labels[k].value.p;
    return "";
}

static void write_said(struct jw *w, const struct a2a_call *c, const struct task_info *i)
{
    jw_object(w);
    if (c->form == A2A_SEED)
        jw_kc(w, "kind", "message");
    jw_kc(w, "messageId", i->id);
    jw_kc(w, "role", c->form == A2A_SEED ? "agent" : "ROLE_AGENT");
    jw_key(w, "parts");
    jw_array(w);
    jw_object(w);
    if (c->form == A2A_SEED)
        jw_kc(w, "kind", "text");
    jw_kstr(w, "text", i->error);
    jw_object_end(w);
    jw_array_end(w);
    jw_object_end(w);
}

void a2a_write_status(struct jw *w, const struct a2a_call *c, const struct task_info *i)
{
    jw_object(w);
    jw_kc(w, "state", a2a_state(c, i->state));
    jw_ktime(w, "timestamp", i->changed_ms);
    if (i->error.n > 0) {
        jw_key(w, "message");
        write_said(w, c, i);
    }
    jw_object_end(w);
}

void a2a_write_task(struct jw *w, const struct a2a_call *c, const struct task *t,
                    const struct a2a_files *files)
{
    struct task_info i;

    task_info(t, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    if (c->form == A2A_SEED)
        jw_kc(w, "kind", "task");
    jw_kc(w, "contextId", a2a_label(&i, "a2a.context"));
    jw_key(w, "status");
    a2a_write_status(w, c, &i);
    if (files && c->form != A2A_SEED) {
        jw_key(w, "artifacts");
        a2a_write_artifacts(w, c, t, files);
    }
    jw_key(w, "metadata");
    jw_object(w);
    jw_kc(w, "messageId", a2a_label(&i, "a2a.message"));
    jw_kc(w, "instance_id", c->instance);
    if (i.exit_code >= 0)
        jw_kint(w, "exit_code", i.exit_code);
    jw_object_end(w);
    jw_object_end(w);
}

/* --- one --- */

struct task_reply {
    struct waiter waiter;
    struct a2a_call *c;
    struct task *t;
    struct task_watch watch; /* keeps it while its files are read */
    int status;
};

static void on_changed(struct task_watch *w)
{
    (void)w;
}

static void with_files(void *arg, const struct a2a_files *files, const struct err *e)
{
    AUTO(mem_free) struct task_reply *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    task_unwatch(&j->watch);
    if (r && e->code != ERR_NONE) {
        a2a_err(j->c, e);
    } else if (r) {
        w = a2a_open(j->c);
        if (j->c->method->run == a2a_message_send) {
            jw_object(&w);
            jw_key(&w, "task");
        }
        a2a_write_task(&w, j->c, j->t, files);
        if (j->c->method->run == a2a_message_send)
            jw_object_end(&w);
        a2a_send(j->c, &w, j->status);
    }
}

void a2a_task_reply(struct a2a_call *c, struct task *t, int status)
{
    struct task_reply *j;
    struct jw w;

    if (c->form == A2A_SEED) {
        w = a2a_open(c);
        a2a_write_task(&w, c, t, NULL);
        a2a_send(c, &w, status);
        return;
    }
    j = xzalloc(sizeof *j);
    *j = (struct task_reply){.c = c, .t = t, .status = status};
    j->watch.changed = on_changed;
    task_watch(t, &j->watch);
    request_wait(c->r, &j->waiter);
    a2a_files_read(t, with_files, j);
}

void a2a_task_get(struct a2a_call *c)
{
    struct task *t = a2a_task(c, false);

    if (t)
        a2a_task_reply(c, t, 200);
}

/* --- the list: in order of id, a cursor is the last one --- */

static bool is_listed(const struct a2a_call *c, const struct task_info *i, struct str state,
                      struct str context)
{
    return i->asked_for && str_eq_c(i->sandbox, c->instance) &&
           (state.n == 0 || str_eq_c(state, a2a_state(c, i->state))) &&
           (context.n == 0 || str_eq_c(context, a2a_label(i, "a2a.context")));
}

void a2a_task_list(struct a2a_call *c)
{
    bool seed = c->form == A2A_SEED;
    int64_t limit = a2a_number(c, seed ? "limit" : "pageSize", "pageSize", PAGE), total = 0, n = 0;
    struct str after = a2a_param(c, seed ? "cursor" : "pageToken", "pageToken");
    struct str state = a2a_param(c, seed ? "state" : "status", "status");
    struct str context = a2a_param(c, "contextId", "contextId"), last = {0};
    struct tasks *all = c->r->api->c.tasks;
    bool more = false;
    struct task_info i;
    struct jw w;

    if (!a2a_sandbox(c))
        return;
    limit = limit == 0 ? PAGE : i64_min(limit, PAGE_MAX);
    w = a2a_open(c);
    jw_object(&w);
    jw_key(&w, "tasks");
    jw_array(&w);
    for (struct task *t = task_next(all, &c->r->who, STR("")); t;
         t = task_next(all, &c->r->who, str_of(i.id))) {
        task_info(t, &i);
        if (!is_listed(c, &i, state, context))
            continue;
        total++;
        if (after.n > 0 && str_cmp(str_of(i.id), after) <= 0)
            continue;
        more = n == limit;
        if (more)
            continue;
        a2a_write_task(&w, c, t, NULL);
        last = str_of(i.id);
        n++;
    }
    jw_array_end(&w);
    if (seed && more)
        jw_kstr(&w, "next_cursor", last);
    if (!seed) {
        jw_kstr(&w, "nextPageToken", more ? last : STR(""));
        jw_kint(&w, "pageSize", limit);
        jw_kint(&w, "totalSize", total);
    }
    jw_object_end(&w);
    a2a_send(c, &w, 200);
}

/* --- cancel --- */

struct cancel_job {
    struct waiter waiter;
    struct principal by;
    struct a2a_call *c;
};

static void cancelled(void *arg, struct task *t, const struct err *e)
{
    AUTO(mem_free) struct cancel_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && t)
        a2a_task_reply(j->c, t, 200);
    else if (r)
        a2a_err(j->c, e);
}

void a2a_task_cancel(struct a2a_call *c)
{
    struct task *t = a2a_task(c, true);
    struct cancel_job *j;
    struct err e = {0};

    if (!t)
        return;
    j = xzalloc(sizeof *j);
    *j = (struct cancel_job){.by = request_who(c->r), .c = c};
    request_wait(c->r, &j->waiter);
    if (task_cancel(t, STR("cancelled over A2A"), &(struct task_call){&j->by, cancelled, j}, &e) ==
        0)
        return;
    (void)waiter_end(&j->waiter);
    mem_free(j);
    if (e.code == ERR_CONFLICT)
        a2a_fail(c, A2A_NOT_CANCELABLE, "%s", e.msg);
    else
        a2a_err(c, &e);
}

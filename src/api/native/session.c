/* session: sessions: create, list, get, members, send, resize, kill. */
#include "ops/session.h"
#include "api/idempotency.h"
#include "api/native/handlers.h"
#include "api/share/sandbox.h"
#include "api/share/tracer.h"
#include "base/mem.h"
#include "core/exec/console.h"
#include "core/exec/feed.h"
#include "core/session/keys.h"
#include "core/session/live.h"

/* The user's shell inside: $SHELL, else a shell that is likely installed. */
#define SHELL_LINE                                                                                 \
    "for s in \"$SHELL\" /bin/bash /bin/sh; do [ -x \"$s\" ] && exec \"$s\" -l; done; exec sh"

/* --- as JSON --- */

#define MEMBERS_SHOWN 100 /* in one message: each of them gets one when another comes */

struct member_list {
    struct jw *w;
    int left;
};

static void member_write(void *arg, const struct console_seat *s)
{
    struct member_list *l = arg;
    struct jw *w = l->w;

    if (l->left-- <= 0)
        return;
    jw_object(w);
    jw_kc(w, "name", s->name);
    jw_kc(w, "by", s->by);
    jw_kc(w, "role", op_attach_roles[s->role == CONSOLE_CONTROLLER]);
    jw_ktime(w, "since", s->since_ms);
    jw_object_end(w);
}

void members_write(struct jw *w, const struct api *a, const char *exec)
{
    struct member_list l = {w, MEMBERS_SHOWN};

    jw_key(w, "members");
    jw_array(w);
    console_each(a->consoles, exec, member_write, &l);
    jw_array_end(w);
}

struct member_sum {
    const char *controller;
    int64_t count;
};

static void member_count(void *arg, const struct console_seat *s)
{
    struct member_sum *sum = arg;

    sum->count++;
    if (s->role == CONSOLE_CONTROLLER)
        sum->controller = s->name;
}

static void session_write(struct jw *w, const struct api *a, const struct exec *x)
{
    struct member_sum sum = {0};
    struct exec_info i;

    exec_info(x, &i);
    console_each(a->consoles, i.id, member_count, &sum);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kstr(w, "name", i.name);
    jw_kc(w, "sandbox", i.sandbox);
    jw_kc(w, "state", exec_state_name(i.state));
    jw_key(w, "command");
    jw_array(w);
    for (size_t k = 0; k < i.argc; k++)
        jw_str(w, i.argv[k]);
    jw_array_end(w);
    jw_kint(w, "rows", i.rows);
    jw_kint(w, "cols", i.cols);
    jw_kc(w, "controller", sum.controller);
    jw_kint(w, "members", sum.count);
    jw_kint(w, "output_bytes", i.out_end);
    jw_key(w, "exit_code");
    if (i.exit_code >= 0)
        jw_int(w, i.exit_code);
    else
        jw_null(w);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "ended_at", i.ended_ms);
    jw_object_end(w);
}

static void session_send(struct request *r, int status, const struct exec *x)
{
    struct jw w = request_json(r);

    session_write(&w, r->api, x);
    request_send_json(r, status);
}

/* The session of the request, with a reference; NULL: the reply is sent. */
static struct exec *request_session(struct request *r, struct str sandbox, struct str session)
{
    struct exec *x = request_exec(r, sandbox, session);
    struct exec_info i;
    struct err e = {0};

    if (!x)
        return NULL;
    exec_info(x, &i);
    if (i.name.n > 0)
        return x;
    err_set(&e, ERR_NOT_FOUND, 0, "command '%s' is not a session", i.id);
    err_object(&e, "exec", i.id);
    err_hint(&e, "holt session ls lists them");
    request_fail(r, &e);
    return exec_unref(x);
}

/* --- create --- */

struct act_job { /* ends with the session as its reply */
    struct waiter waiter;
    int status;
};

static void action_done(void *arg, struct exec *x, const struct err *e)
{
    AUTO(mem_free) struct act_job *j = arg;
    struct request *r = waiter_end(&j->waiter);

    if (r && e->code != ERR_NONE)
        request_fail(r, e);
    else if (r)
        session_send(r, j->status, x);
}

static struct act_job *act(struct request *r, int status)
{
    struct act_job *j = xzalloc(sizeof *j);

    j->status = status;
    request_wait(r, &j->waiter);
    return j;
}

void session_create_run(struct request *r)
{
    const struct session_create_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct principal by = request_who(r);
    struct exec_fields fields = in->exec;
    struct exec_input input;
    struct exec_spec spec;
    struct err e = {0};

    if (!s)
        return;
    fields.on_full = OP_ON_FULL_DROP;
    if (spec_read_exec(&fields, xchg_arena(r->x), &spec, &input, &e) < 0) {
        request_fail(r, &e);
        return;
    }
    if (!fields.command) {
        spec.image_command = false;
        spec.shell = STR(SHELL_LINE);
    }
    spec.pty = true;
    spec.rows = (int)in->rows;
    spec.cols = (int)in->cols;
    spec.name = in->name;
    tracer_spec(r, &spec);
    idem_of_exec(r, &spec);
    exec_start(s, &spec, &by, action_done, act(r, 201));
}

/* --- list, get, members --- */

struct listing {
    struct request *r;
    struct jw w;
    bool all, more;
    int64_t left;
    struct str last;     /* the last one's id … */
    const char *sandbox; /* … and its sandbox's */
};

static void list_sandbox(struct listing *l, struct sandbox *s, struct str after)
{
    struct exec_info i;

    for (struct exec *x = exec_next(s, after); x && !l->more; x = exec_next(s, str_of(i.id))) {
        exec_info(x, &i);
        if (i.name.n == 0 || (!l->all && i.ended_ms > 0))
            continue;
        l->more = l->left-- == 0;
        if (l->more)
            return;
        session_write(&l->w, l->r->api, x);
        l->last = str_of(i.id);
        l->sandbox = i.sandbox;
    }
}

static void list_end(struct listing *l, struct str cursor)
{
    jw_array_end(&l->w);
    jw_key(&l->w, "cursor");
    if (l->more)
        jw_str(&l->w, cursor);
    else
        jw_null(&l->w);
    jw_object_end(&l->w);
    request_send_json(l->r, 0);
}

static struct listing list_begin(struct request *r, const struct session_list_in *in)
{
    struct listing l = {.r = r, .w = request_json(r), .all = in->all, .left = in->limit};

    jw_object(&l.w);
    jw_key(&l.w, "sessions");
    jw_array(&l.w);
    return l;
}

void session_list_run(struct request *r)
{
    const struct session_list_in *in = r->in;
    struct sandbox *s = request_sandbox(r, in->id);
    struct listing l;

    if (!s)
        return;
    l = list_begin(r, in);
    list_sandbox(&l, s, in->cursor);
    list_end(&l, l.last);
}

/* The cursor is "SANDBOX/EXEC": where the last page ended. */
void session_list_all_run(struct request *r)
{
    const struct session_list_in *in = r->in;
    struct sandboxes *all = r->api->c.sandboxes;
    ptrdiff_t slash = str_index(in->cursor, '/');
    struct str from = slash < 0 ? STR("") : str_make(in->cursor.p, (size_t)slash);
    struct listing l = list_begin(r, in);
    struct sandbox_info i = {0};
    struct err e = {0};
    struct sandbox *s = slash < 0 ? NULL : sandbox_find(all, &r->who, from, &e);

    if (s)
        list_sandbox(&l, s, str_skip(in->cursor, (size_t)slash + 1));
    for (s = sandbox_next(all, &r->who, from); s && !l.more;
         s = sandbox_next(all, &r->who, str_of(i.id))) {
        sandbox_info(s, &i);
        list_sandbox(&l, s, STR(""));
    }
    list_end(&l, str_of(arena_printf(xchg_arena(r->x), "%s/" STR_FMT, l.sandbox ? l.sandbox : "",
                                     STR_ARG(l.last))));
}

void session_get_run(struct request *r)
{
    const struct exec_id_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_session(r, in->id, in->exec);

    if (x)
        session_send(r, 0, x);
}

void session_members_run(struct request *r)
{
    const struct exec_id_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_session(r, in->id, in->exec);
    struct exec_info i;
    struct jw w;

    if (!x)
        return;
    exec_info(x, &i);
    w = request_json(r);
    jw_object(&w);
    members_write(&w, r->api, i.id);
    jw_key(&w, "cursor");
    jw_null(&w);
    jw_object_end(&w);
    request_send_json(r, 0);
}

/* --- resize, kill --- */

void session_resize_run(struct request *r)
{
    const struct exec_resize_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_session(r, in->id, in->exec);

    if (x)
        exec_resize(x, (int)in->rows, (int)in->cols, action_done, act(r, 0));
}

void session_kill_run(struct request *r)
{
    const struct exec_id_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_session(r, in->id, in->exec);

    if (x)
        exec_cancel(x, action_done, act(r, 0));
}

/* --- send --- */

struct send_job {
    struct waiter waiter;
    struct api *api;
    struct exec *x;
    struct live_watch watch; /* for keys: which bytes they send is part of the screen's state */
    struct buf bytes;
    struct op_list keys; /* in the exchange's arena */
    struct console_seat seat;
    char *name;
};

static void send_end(struct send_job *j)
{
    live_leave(&j->watch);
    console_leave(&j->seat);
    exec_unref(j->x);
    buf_done(&j->bytes);
    mem_free(j->name);
    mem_free(j);
}

static void sender_gone(struct waiter *w)
{
    send_end(CONTAINER_OF(w, struct send_job, waiter));
}

/* Its control ends with the request; input that the command does not take yet goes on by itself. */
static void send_now(struct send_job *j)
{
    console_leave(&j->seat);
    feed_start(j->api->consoles, j->x, buf_str(&j->bytes), false);
    request_send_empty(waiter_end(&j->waiter));
    send_end(j);
}

static int put_keys(struct send_job *j, bool application, struct err *e)
{
    for (size_t k = 0; k < j->keys.n; k++)
        if (keys_put(j->keys.v[k], application, &j->bytes, e) < 0)
            return -1;
    return 0;
}

static void keys_ready(struct live_watch *w)
{
    struct send_job *j = CONTAINER_OF(w, struct send_job, watch);
    struct err e = {0};

    if (put_keys(j, screen_look(live_screen(w)).application_keys, &e) < 0) {
        request_fail(waiter_end(&j->waiter), &e);
        send_end(j);
        return;
    }
    send_now(j);
}

static void keys_failed(struct live_watch *w, const struct err *e)
{
    struct send_job *j = CONTAINER_OF(w, struct send_job, watch);

    request_fail(waiter_end(&j->waiter), e);
    send_end(j);
}

static void control_lost(struct console_seat *s)
{
    (void)s; /* its input is in one piece: it is taken as a whole, or was not sent yet */
}

static int check_send(const struct session_send_in *in, const struct exec_info *i, struct err *e)
{
    if (in->text.n == 0 && in->keys.n == 0) {
        err_set(e, ERR_INVALID, 0, "there is nothing to send");
        return err_hint(e, "give 'text', 'keys' or both");
    }
    if (i->takes_input)
        return 0;
    err_set(e, ERR_CONFLICT, 0, "session '" STR_FMT "' has ended: it reads no more",
            STR_ARG(i->name));
    return err_object(e, "exec", i->id);
}

void session_send_run(struct request *r)
{
    const struct session_send_in *in = r->in;
    AUTO(exec_unref) struct exec *x = request_session(r, in->id, in->exec);
    struct send_job *j;
    struct exec_info i;
    struct err e = {0};

    if (!x)
        return;
    exec_info(x, &i);
    j = xzalloc(sizeof *j);
    j->api = r->api;
    j->name = xstrdup(r->who.token && *r->who.token->name ? r->who.token->name : r->who.actor);
    j->seat.name = j->name;
    j->seat.by = r->who.actor;
    j->seat.changed = control_lost;
    if (check_send(in, &i, &e) < 0 ||
        console_sit(r->api->consoles, i.id, CONSOLE_CONTROLLER, in->take, &j->seat, &e) < 0) {
        request_fail(r, &e);
        send_end(j);
        return;
    }
    j->x = TAKE(x);
    j->keys = in->keys;
    buf_add_str(&j->bytes, in->text);
    j->waiter.gone = sender_gone;
    request_wait(r, &j->waiter);
    if (in->keys.n == 0) {
        send_now(j);
        return;
    }
    j->watch.changed = keys_ready;
    j->watch.failed = keys_failed;
    live_watch(r->api->screens, j->x, INT64_MAX, &j->watch);
}

/* ansible: fluid's Ansible jobs, which are rollouts: create, get, and the live stream. */
#include "api/dialects/fluid/fluid.h"
#include "api/share/revocable_stream.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/playbook/playbook.h"
#include "core/playbook/rollout.h"
#include "net/ws.h"

#define PIECE (64 * 1024)

struct job_in {
    struct str vm_name, playbook;
    bool check;
};
static const struct fluid_field job_fields[] = {
    {"vm_name", FLUID_STR, offsetof(struct job_in, vm_name), true},
    {"playbook", FLUID_STR, offsetof(struct job_in, playbook), true},
    {"check", FLUID_BOOL, offsetof(struct job_in, check), false},
};
const struct fluid_form fluid_job_form = {FLUID_FORM(job_fields, struct job_in)};

/* --- create --- */

struct ansible_job {
    struct waiter waiter;
    struct principal by;
};

static void job_created(void *arg, struct named *n, const struct err *e)
{
    AUTO(mem_free) struct ansible_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct rollout_info i;
    char id[FLUID_ID];
    struct jw w;

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        fluid_refuse(r, e);
        return;
    }
    rollout_info(rollout_of(n), &i);
    fluid_uuid(i.id, id);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "job_id", id);
    jw_kc(&w, "ws_url", arena_printf(xchg_arena(r->x), "/v1/ansible/jobs/%s/stream", id));
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* A file's name there; here a playbook's. */
static struct str book_name(struct str file)
{
    if (str_ends(file, STR(".yml")))
        file.n -= 4;
    else if (str_ends(file, STR(".yaml")))
        file.n -= 5;
    return file;
}

void fluid_job_create(struct request *r)
{
    const struct job_in *in = r->in;
    struct err e = {0};
    struct playbook *p =
        playbook_find(r->api->c.playbooks, &r->who, OWNER_SEE, book_name(in->playbook), &e);
    struct ansible_job *j;

    if (!p) {
        fluid_error(r, 400, "playbook not allowed: " STR_FMT, (int)size_min(in->playbook.n, 64),
                    in->playbook.p);
        return;
    }
    j = xzalloc(sizeof *j);
    j->by = request_who(r);
    if (rollout_create(r->api->c.rollouts,
                       &(struct rollout_spec){.playbook = p,
                                              .to = in->vm_name,
                                              .person = str_of(r->who.person),
                                              .check = in->check},
                       &(struct named_call){.by = &j->by, .done = job_created, .arg = j}, &e) < 0) {
        mem_free(j);
        fluid_refuse(r, &e);
        return;
    }
    request_wait(r, &j->waiter);
}

/* --- get --- */

static struct rollout *find_job(struct request *r)
{
    struct rollouts *all = r->api->c.rollouts;
    struct str id = r->params.v[0];
    struct rollout_info i;
    char uuid[FLUID_ID];

    for (struct rollout *ro = rollout_next(all, &r->who, STR("")); ro;
         ro = rollout_next(all, &r->who, str_of(i.id))) {
        rollout_info(ro, &i);
        if (str_eq_c(id, i.id) || str_eq_c(id, fluid_uuid(i.id, uuid)))
            return ro;
    }
    fluid_error(r, 404, "job not found: " STR_FMT, (int)size_min(id.n, 64), id.p);
    return NULL;
}

/* There a job that ran is finished whatever its status, and failed if it could not run. */
static const char *job_status(const struct rollout_info *i)
{
    int exit_code = i->check ? i->check_exit : i->exit_code;

    if (i->state == ROLLOUT_APPLYING || (i->check && i->state == ROLLOUT_CHECKING))
        return "running";
    if (!rollout_state_is_end(i->state) && i->state != ROLLOUT_ROLLING_BACK)
        return "pending";
    return exit_code >= 0 ? "finished" : "failed";
}

void fluid_job(struct request *r)
{
    struct rollout *ro = find_job(r);
    struct rollout_info i;
    char id[FLUID_ID];
    struct jw w;

    if (!ro)
        return;
    rollout_info(ro, &i);
    w = request_json(r);
    jw_object(&w);
    jw_kc(&w, "id", fluid_uuid(i.id, id));
    jw_kstr(&w, "vm_name", i.target_name);
    jw_kstr(&w, "playbook", i.playbook_name);
    jw_kbool(&w, "check", i.check);
    jw_kc(&w, "status", job_status(&i));
    /* what only ours has */
    jw_kc(&w, "rollout", i.id);
    jw_kc(&w, "state", rollout_state_name(i.state));
    if (i.approval.n > 0)
        jw_kstr(&w, "approval", i.approval);
    if (i.error.n > 0)
        jw_kstr(&w, "error", i.error);
    jw_object_end(&w);
    fluid_send(r, 200);
}

/* --- the stream --- */

struct job_stream {
    struct ws *ws;
    struct rollout *ro; /* watched: it stays */
    struct rollout_watch watch;
    struct revocable_stream live;
    enum rollout_phase phase;
    struct buf part; /* from offset on */
    int64_t offset;
    bool waiting, closing, asked;
};

static void stream_close(struct job_stream *t, int code, const char *why)
{
    if (t->closing)
        return;
    t->closing = true;
    rollout_unwatch(&t->watch);
    ws_close(t->ws, code, why);
}

static void send_text(struct job_stream *t, struct str text)
{
    AUTO(buf_done) struct buf clean = {0};

    (void)utf8_replace(&clean, text, true);
    if (!t->closing && ws_send(t->ws, WS_TEXT, buf_str(&clean)) != 0)
        t->waiting = true;
}

static void send_command(struct job_stream *t)
{
    AUTO(buf_done) struct buf text = {0};

    buf_add_c(&text, "Running: ");
    rollout_command(t->ro, t->phase, &text);
    send_text(t, buf_str(&text));
}

static void send_question(struct job_stream *t)
{
    AUTO(buf_done) struct buf text = {0};
    struct rollout_info i;

    rollout_info(t->ro, &i);
    if (t->asked || t->phase == ROLLOUT_CHECK || i.state != ROLLOUT_WAITING)
        return;
    t->asked = true;
    buf_printf(&text, "Waiting for the approval " STR_FMT, STR_ARG(i.approval));
    send_text(t, buf_str(&text));
}

static void send_end(struct job_stream *t)
{
    AUTO(buf_done) struct buf text = {0};
    struct rollout_info i;
    int exit_code;

    rollout_info(t->ro, &i);
    exit_code = t->phase == ROLLOUT_CHECK ? i.check_exit : i.exit_code;
    if (exit_code >= 0)
        buf_printf(&text, "\nJob finished (rc=%d)", exit_code);
    else
        buf_printf(&text, "Error: " STR_FMT, STR_ARG(i.error));
    send_text(t, buf_str(&text));
    stream_close(t, WS_NORMAL, "");
}

/* A line without its end, or what there is of a last or long one. */
static bool send_line(struct job_stream *t, bool last)
{
    struct str have = buf_str(&t->part);
    ptrdiff_t at = str_index(have, '\n');
    size_t n = at < 0 ? have.n : (size_t)at + 1;

    if (have.n == 0 || (at < 0 && !last && have.n < PIECE))
        return false;
    send_text(t, str_make(have.p, at < 0 ? n : n - 1));
    buf_take(&t->part, n);
    t->offset += (int64_t)n;
    return true;
}

static void pump(struct job_stream *t)
{
    struct err e = {0};
    int64_t n = 1;

    send_question(t);
    while (!t->waiting && !t->closing && n > 0) {
        bool over;

        n = rollout_output(t->ro, t->phase, t->offset + (int64_t)buf_len(&t->part), PIECE, &t->part,
                           &e);
        over = rollout_output_is_over(t->ro, t->phase);
        while (!t->waiting && send_line(t, over && n <= 0))
            ;
        if (n < 0)
            stream_close(t, WS_INTERNAL, e.msg);
        else if (n == 0 && over && !t->waiting)
            send_end(t);
    }
}

static void on_changed(struct rollout_watch *w)
{
    pump(CONTAINER_OF(w, struct job_stream, watch));
}

static void on_message(struct ws *w, enum ws_kind kind, struct str data)
{
    (void)w, (void)kind, (void)data; /* it only tells */
}

static void on_drained(struct ws *w)
{
    struct job_stream *t = ws_arg(w);

    t->waiting = false;
    pump(t);
}

static void on_closed(struct ws *w, int code, struct str reason)
{
    struct job_stream *t = ws_arg(w);

    (void)code, (void)reason;
    rollout_unwatch(&t->watch);
    revocable_stream_end(&t->live);
    buf_done(&t->part);
    mem_free(t);
}

static void on_live_end(struct revocable_stream *l, int ws_code, const char *why)
{
    stream_close(CONTAINER_OF(l, struct job_stream, live), ws_code, why);
}

/* The job does not wait for it, and any number may look, also afterwards. */
void fluid_job_stream(struct request *r)
{
    static const struct ws_ops ops = {
        .message = on_message, .drained = on_drained, .closed = on_closed};
    struct rollout *ro;
    struct rollout_info i;
    struct job_stream *t;
    struct err e = {0};

    if (!ws_is_handshake(r->x)) {
        fluid_error(r, 400, "this is a WebSocket");
        return;
    }
    ro = find_job(r);
    if (!ro)
        return;
    rollout_info(ro, &i);
    if (rollout_may_read(ro, &r->who, i.check ? ROLLOUT_CHECK : ROLLOUT_RUN, &e) < 0) {
        fluid_refuse(r, &e);
        return;
    }
    t = xzalloc(sizeof *t);
    t->ws = ws_accept(r->x, NULL, &ops, t);
    if (!t->ws) {
        mem_free(t);
        return;
    }
    request_count(r, 101);
    request_audit(r, "request.read", arena_printf(xchg_arena(r->x), "rollout/%s", i.id), 200);
    t->ro = ro;
    t->phase = i.check ? ROLLOUT_CHECK : ROLLOUT_RUN;
    t->watch.changed = on_changed;
    rollout_watch(ro, &t->watch);
    revocable_stream_begin(&t->live, r, on_live_end);
    send_command(t);
    pump(t);
}

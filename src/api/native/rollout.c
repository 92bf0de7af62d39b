/* rollout: rollouts: apply, list, get, logs, cancel, roll back; the check of a target. */
#include "core/playbook/rollout.h"

#include "api/native/handlers.h"
#include "api/reply_list.h"
#include "api/share/line_log.h"
#include "api/share/named.h"
#include "api/share/sandbox.h"
#include "api/share/ssh_door.h"
#include "base/mem.h"
#include "core/playbook/playbook.h"
#include "core/playbook/target.h"
#include "ops/playbook.h"

static void write_with(struct jw *w, const struct rollout *ro, bool full)
{
    struct rollout_info i;

    rollout_info(ro, &i);
    jw_object(w);
    jw_kc(w, "id", i.id);
    jw_kc(w, "state", rollout_state_name(i.state));
    jw_kstr(w, "playbook", i.playbook);
    jw_kstr(w, "playbook_name", i.playbook_name);
    jw_ktext(w, "target", i.target);
    jw_kstr(w, "target_name", i.target_name);
    jw_ktext(w, "sandbox", i.sandbox);
    jw_kbool(w, "check_only", i.check);
    jw_ktext(w, "unchecked", i.unchecked);
    jw_kint_if(w, "check_exit", i.check_exit >= 0, i.check_exit);
    jw_kint_if(w, "exit_code", i.exit_code >= 0, i.exit_code);
    jw_ktext(w, "approval", i.approval);
    jw_kint(w, "people", i.people);
    jw_ktext(w, "decided_by", i.decided_by);
    jw_ktext(w, "error", i.error);
    jw_ktext(w, "note", i.note);
    jw_ktext(w, "snapshot", i.snapshot);
    jw_ktext(w, "content", full ? i.text : STR(""));
    jw_ktext(w, "tenant", i.tenant);
    jw_kstr(w, "owner", i.owner);
    jw_ktime(w, "created_at", i.created_ms);
    jw_ktime(w, "changed_at", i.changed_ms);
    jw_ktime(w, "ended_at", i.ended_ms);
    jw_object_end(w);
}

static void write_rollout(struct jw *w, struct named *n)
{
    write_with(w, rollout_of(n), true);
}

static struct rollout *request_rollout(struct request *r, struct str id, enum owner_use use)
{
    struct err e = {0};
    struct rollout *ro = rollout_find(r->api->c.rollouts, &r->who, use, id, &e);

    if (!ro)
        named_refuse(r, &e);
    return ro;
}

/* --- apply --- */

void playbook_apply_run(struct request *r)
{
    const struct playbook_apply_in *in = r->in;
    struct err e = {0};
    struct playbook *p = playbook_find(r->api->c.playbooks, &r->who, OWNER_SEE, in->id, &e);
    struct named_call c;

    if (!p) {
        named_refuse(r, &e);
        return;
    }
    c = named_wait(r, write_rollout);
    named_reply_later(r, &c,
                      rollout_create(r->api->c.rollouts,
                                     &(struct rollout_spec){.playbook = p,
                                                            .to = in->to,
                                                            .person = str_of(r->who.person),
                                                            .note = in->note,
                                                            .check = in->check},
                                     &c, &e),
                      &e);
}

/* --- list, get --- */

void rollout_list_run(struct request *r)
{
    const struct rollout_list_in *in = r->in;
    struct rollouts *all = r->api->c.rollouts;
    struct rollout_info i;
    enum rollout_state state = ROLLOUT_PENDING;
    struct reply_list l;
    struct err e = {0};
    struct jw w;

    if (in->state.n > 0 && !rollout_state_parse(in->state, &state)) {
        err_set(&e, ERR_INVALID, 0, "field 'state': a rollout has no such state");
        err_hint(&e, "waiting, applying, succeeded, failed and others: holt rollout ls");
        request_fail(r, &e);
        return;
    }
    w = request_json(r);
    reply_list_begin(&l, &w, "rollouts", STR(""), in->limit);
    for (struct rollout *ro = rollout_next(all, &r->who, in->cursor); ro && !l.more;
         ro = rollout_next(all, &r->who, str_of(i.id))) {
        rollout_info(ro, &i);
        if ((in->state.n == 0 || i.state == state) && reply_list_take(&l, str_of(i.id)))
            write_with(&w, ro, false);
    }
    reply_list_end(&l);
    request_send_json(r, 0);
}

void rollout_get_run(struct request *r)
{
    const struct rollout_id_in *in = r->in;
    struct rollout *ro = request_rollout(r, in->id, OWNER_SEE);
    struct jw w;

    if (!ro)
        return;
    w = request_json(r);
    write_with(&w, ro, true);
    request_send_json(r, 0);
}

/* --- logs --- */

struct rollout_lines { /* in the exchange's arena */
    struct rollout *ro;
    enum rollout_phase phase;
    struct rollout_watch watch;
    struct line_log *log;
};

static int64_t read_lines(void *object, int64_t offset, size_t max, struct buf *to, struct err *e)
{
    const struct rollout_lines *s = object;

    return rollout_output(s->ro, s->phase, offset, max, to, e);
}

static bool is_over(void *object, int *ret_code, struct str *ret_why)
{
    const struct rollout_lines *s = object;
    struct rollout_info i;

    rollout_info(s->ro, &i);
    *ret_code = s->phase == ROLLOUT_CHECK ? i.check_exit : i.exit_code;
    *ret_why = i.error.n > 0 ? i.error : str_of(rollout_state_name(i.state));
    return rollout_output_is_over(s->ro, s->phase);
}

static void stop(void *object)
{
    struct rollout_lines *s = object;

    rollout_unwatch(&s->watch);
}

static void on_changed(struct rollout_watch *w)
{
    line_log_poke(CONTAINER_OF(w, struct rollout_lines, watch)->log);
}

void rollout_logs_run(struct request *r)
{
    static const struct line_source source = {read_lines, is_over, stop};
    const struct rollout_logs_in *in = r->in;
    struct rollout *ro = request_rollout(r, in->id, OWNER_SEE);
    struct rollout_lines *s;
    struct err e = {0};

    if (!ro)
        return;
    if (rollout_may_read(ro, &r->who, (enum rollout_phase)in->phase, &e) < 0) {
        request_refuse(r, &e);
        return;
    }
    s = arena_zalloc(xchg_arena(r->x), sizeof *s);
    s->ro = ro;
    s->phase = (enum rollout_phase)in->phase;
    s->watch.changed = on_changed;
    s->log = line_log_new(r, &source, s);
    rollout_watch(ro, &s->watch);
    line_log_start(s->log, r, in->offset, in->follow);
}

/* --- cancel, roll back --- */

void rollout_cancel_run(struct request *r)
{
    const struct rollout_cancel_in *in = r->in;
    struct rollout *ro = request_rollout(r, in->id, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!ro)
        return;
    c = named_wait(r, write_rollout);
    named_reply_later(r, &c, rollout_cancel(ro, in->reason, &c, &e), &e);
}

void rollout_rollback_run(struct request *r)
{
    const struct rollout_id_in *in = r->in;
    struct rollout *ro = request_rollout(r, in->id, OWNER_CHANGE);
    struct named_call c;
    struct err e = {0};

    if (!ro)
        return;
    c = named_wait(r, write_rollout);
    named_reply_later(r, &c, rollout_rollback(ro, &c, &e), &e);
}

/* --- the check of a target --- */

static void target_checked(void *arg, const struct target_answer *a, const struct err *e)
{
    AUTO(mem_free) struct waiter *waiter = arg;
    struct request *r = waiter_end(waiter);
    struct jw w;

    if (!r)
        return;
    if (e->code != ERR_NONE) {
        request_fail(r, e);
        return;
    }
    w = request_json(r);
    jw_object(&w);
    jw_kbool(&w, "reached", a->reached);
    jw_kint(&w, "exit_code", a->exit_code);
    jw_kstr(&w, "output", a->output);
    jw_object_end(&w);
    request_send_json(r, 0);
}

void target_check_run(struct request *r)
{
    const struct target_id_in *in = r->in;
    struct err e = {0};
    struct target *t = target_find(r->api->c.targets, &r->who, OWNER_SEE, in->id, &e);
    struct waiter *waiter;

    if (!t) {
        named_refuse(r, &e);
        return;
    }
    waiter = xzalloc(sizeof *waiter);
    if (target_check(r->api->c.rollouts, t, target_checked, waiter, &e) < 0) {
        mem_free(waiter);
        request_fail(r, &e);
        return;
    }
    request_wait(r, waiter);
}

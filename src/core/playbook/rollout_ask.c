/* rollout_ask: the question to people about a rollout, and its answer. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/approval/approval.h"
#include "core/playbook/rollout_internal.h"
#include "core/texts.h"
#include "proto/json.h"

#include <stdio.h>

#define WAIT_MS (7LL * 24 * 3600 * 1000)
/* Attachments: what a person reads.  All of it is at `holt rollout show` and `logs`. */
#define PLAYBOOK_SHOWN (384 * 1024)
#define CHECK_SHOWN (512 * 1024)

static struct rollouts *all_of(const struct rollout *ro)
{
    return CONTAINER_OF(ro->named.list, struct rollouts, list);
}

/* --- work on the store's thread --- */

struct ask_job {
    struct rollout *ro;
    struct arena arena;
    struct team t;
    struct approval question;
    struct row *row;
    struct str data; /* of the event, without the id of the question */
    char id[ID_SIZE];
    bool found;
};

static struct ask_job *job_new(struct rollout *ro)
{
    struct ask_job *j = xzalloc(sizeof *j);

    j->ro = ro;
    memcpy(j->id, ro->named.id, sizeof j->id);
    j->t = (struct team){.arena = &j->arena,
                         .conf = {.questions_max = *all_of(ro)->c.questions_max},
                         .who = {.actor = "system"},
                         .now_ms = clock_wall_ms()};
    return j;
}

static void job_free(struct ask_job *j)
{
    row_free(j->row);
    arena_done(&j->arena);
    mem_free(j);
}

/* --- asking --- */

static void put_attachment(struct jw *w, const char *kind, const char *name, struct str text,
                           size_t max, bool for_people)
{
    AUTO(buf_done) struct buf cut = {0};
    size_t head = max / 2;

    if (text.n > max) {
        buf_add(&cut, text.p, head);
        buf_printf(&cut, "\n[... %zu bytes are left out here ...]\n", text.n - 2 * head);
        buf_add(&cut, text.p + text.n - head, head);
        text = buf_str(&cut);
    }
    jw_object(w);
    jw_kc(w, "kind", kind);
    jw_kc(w, "name", name);
    if (for_people)
        jw_kbool(w, APPROVAL_FOR_PEOPLE, true);
    jw_kstr(w, "content", text);
    jw_object_end(w);
}

static struct str attachments(struct ask_job *j)
{
    const struct rollout *ro = j->ro;
    AUTO(buf_done) struct buf json = {0}, check = {0};
    struct jw w = {.to = &json};
    struct err e = {0};

    jw_array(&w);
    put_attachment(&w, "playbook", arena_printf(&j->arena, "%s.yml", ro->playbook_name),
                   str_of(ro->text), PLAYBOOK_SHOWN, false);
    if (ro->unchecked[0])
        put_attachment(&w, "text", "check", str_of(ro->unchecked), CHECK_SHOWN, false);
    else if (rollout_output(ro, ROLLOUT_CHECK, 0, 16 << 20, &check, &e) > 0)
        put_attachment(&w, "diff", "check", buf_str(&check), CHECK_SHOWN, true);
    jw_array_end(&w);
    return arena_str(&j->arena, buf_str(&json));
}

static const char *note_of(struct ask_job *j)
{
    const struct rollout *ro = j->ro;
    const char *check =
        ro->unchecked[0]
            ? arena_printf(&j->arena, "No check was run: %s.", ro->unchecked)
            : arena_printf(&j->arena, "The check ended with status %d%s.", ro->check_exit,
                           ro->check_exit ? ", which is a failure" : "");
    const char *back = ro->at.sandbox[0] ? "A snapshot is taken before." : "There is no way back.";

    return arena_printf(&j->arena, "%s%s%s %s", ro->note, ro->note[0] ? "\n" : "", check, back);
}

static const char *where_of(struct ask_job *j)
{
    const struct machine *at = &j->ro->at;

    return at->sandbox[0] ? arena_printf(&j->arena, "sandbox %s", at->sandbox)
                          : arena_printf(&j->arena, "%s@%s port %lld%s", at->login, at->address,
                                         (long long)at->port, at->become ? ", as root" : "");
}

static void fill_question(struct ask_job *j)
{
    const struct rollout *ro = j->ro;
    struct team_asker *who = &j->t.who;

    (void)snprintf(who->actor, sizeof who->actor, "%s", ro->named.owner);
    who->owner = arena_str(&j->arena, str_of(ro->named.owner));
    who->person = arena_str(&j->arena, str_of(ro->person));
    who->tenant = arena_str(&j->arena, str_of(ro->named.tenant));
    if (ro->role == ROLE_AGENT)
        who->agent = arena_str(&j->arena, str_of(ro->agent));
    j->question = (struct approval){
        .kind = STR("sensitive"),
        .action = STR("playbook.apply"),
        .sandbox = arena_str(&j->arena, str_of(ro->at.sandbox)),
        .key = str_of(arena_printf(&j->arena, "rollout/%s", ro->named.id)),
        .question = str_of(arena_printf(&j->arena, "Apply playbook '%s' to '%s' (%s)?",
                                        ro->playbook_name, ro->target_name, where_of(j))),
        .attachments = attachments(j),
        .arguments = str_of(arena_printf(&j->arena, "{\"rollout\":\"%s\"}", ro->named.id)),
        .urgency = 1,
        .people = ro->people,
        .expires_ms = j->t.now_ms + WAIT_MS,
        .move = {.note = str_of(note_of(j))},
    };
}

/* The question and the move are one transaction: neither is there without the other. */
static int ask_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct ask_job *j = arg;
    struct str data;

    team_enter(&j->t, tx);
    if (question_make(&j->t, &j->question, e) < 0 || row_save(tx, j->row, e) < 0 ||
        tx_run(tx, "UPDATE rollouts SET approval = :approval WHERE id = :id",
               PARAMS(P_TEXT("approval", j->question.id), P_C("id", j->id)), e) < 0)
        return -1;
    data = str_of(arena_printf(&j->arena, STR_FMT ",\"question\":\"" STR_FMT "\"}",
                               (int)j->data.n - 1, j->data.p, STR_ARG(j->question.id)));
    rollout_put_event(tx, j->id, ROLLOUT_WAITING, "system", data);
    return 0;
}

static void question_asked(void *arg, const struct err *e)
{
    struct ask_job *j = arg;
    struct rollout *ro = j->ro;
    struct err why = *e;

    ro->busy = false;
    if (e->code == ERR_NONE)
        (void)snprintf(ro->approval, sizeof ro->approval, STR_FMT, STR_ARG(j->question.id));
    job_free(j);
    if (all_of(ro)->closed)
        return;
    ro->shown = ro->sm.state;
    if (e->code != ERR_NONE) {
        err_wrap(&why, "ask for the approval");
        rollout_fail(ro, &why);
        return;
    }
    rollout_tell(ro);
    if (!rollout_stops(ro))
        rollout_look(ro); /* the answer may have come before we knew the question */
}

void rollout_ask(struct rollout *ro)
{
    struct ask_job *j = job_new(ro);
    struct buf data = {0};

    ro->busy = true;
    rollout_state_set(ro, ROLLOUT_WAITING);
    fill_question(j);
    rollout_event_data(ro, &data);
    j->data = arena_str(&j->arena, buf_str(&data));
    buf_done(&data);
    j->row = row_take(rollout_kind.columns, ro);
    store_write(all_of(ro)->c.store, STORE_DURABLE, ask_work, question_asked, j);
}

/* --- the answer --- */

static int look_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct ask_job *j = arg;

    team_enter(&j->t, tx);
    if (approval_need(&j->t, NULL, j->question.id, &j->question, e) == 0)
        j->found = true;
    else if (e->code != ERR_NOT_FOUND)
        return -1;
    *e = (struct err){0};
    return 0;
}

static void answered(struct rollout *ro, const struct approval *a)
{
    if (a->state == APPROVAL_PENDING)
        return;
    text_set(&ro->decided_by, a->decided_by);
    if (a->state == APPROVAL_APPROVED) {
        rollout_go(ro, ROLLOUT_APPROVED);
    } else if (a->state == APPROVAL_CANCELLED) {
        text_set(&ro->error, a->reason.n > 0 ? a->reason : STR("its question was taken back"));
        rollout_go(ro, ROLLOUT_CANCELLED);
    } else { /* time never approves */
        text_set(&ro->error, a->reason.n > 0 ? a->reason : STR("rejected, without a reason"));
        rollout_go(ro, ROLLOUT_REJECTED);
    }
}

static void looked(void *arg, const struct err *e)
{
    struct ask_job *j = arg;
    struct rollout *ro = j->ro;

    ro->looking = false;
    if (!all_of(ro)->closed && ro->sm.state == ROLLOUT_WAITING && !ro->busy && !rollout_stops(ro)) {
        if (e->code != ERR_NONE)
            log_warn("the answer about a rollout cannot be read", LOG_C("id", j->id), LOG_E(e));
        else if (j->found)
            answered(ro, &j->question);
        else
            answered(ro, &(struct approval){.state = APPROVAL_CANCELLED,
                                            .reason = STR("its question is gone")});
    }
    job_free(j);
    if (ro->look_again && ro->sm.state == ROLLOUT_WAITING && !ro->busy && !all_of(ro)->closed)
        rollout_look(ro);
}

void rollout_look(struct rollout *ro)
{
    struct ask_job *j;

    if (ro->looking) { /* what it reads may be older than this */
        ro->look_again = true;
        return;
    }
    j = job_new(ro);
    j->question.id = arena_str(&j->arena, str_of(ro->approval));
    ro->looking = true;
    ro->look_again = false;
    store_read(all_of(ro)->c.store, look_work, looked, j);
}

static bool decides(const struct event *ev)
{
    return str_starts(ev->type, STR("approval.")) && !str_eq_c(ev->type, "approval.created") &&
           !str_eq_c(ev->type, "approval.voted");
}

int rollout_on_event(void *arg, const struct event *ev)
{
    struct rollouts *l = arg;
    struct str id;

    if (!decides(ev))
        return 0;
    (void)str_cut(ev->object, '/', &id);
    for (size_t i = 0; i < l->list.count; i++) {
        struct rollout *ro = rollout_of(l->list.sorted[i]);

        if (ro->sm.state == ROLLOUT_WAITING && !ro->busy && str_eq_c(id, ro->approval))
            rollout_look(ro);
    }
    return 0;
}

/* --- taking it back --- */

static int unask_work(struct store_tx *tx, void *arg, struct err *e)
{
    struct ask_job *j = arg;
    struct approval a;

    team_enter(&j->t, tx);
    if (question_cancel(&j->t, j->question.id, STR("the rollout was cancelled"), &a, e) == 0 ||
        e->code == ERR_CONFLICT || e->code == ERR_NOT_FOUND) { /* it was decided already */
        *e = (struct err){0};
        return 0;
    }
    return -1;
}

static void unask_free(void *arg)
{
    job_free(arg);
}

void rollout_unask(struct rollout *ro, struct rollout_also *ret)
{
    struct ask_job *j;

    if (!ro->approval[0] || ro->sm.state != ROLLOUT_WAITING)
        return;
    j = job_new(ro);
    j->question.id = arena_str(&j->arena, str_of(ro->approval));
    *ret = (struct rollout_also){unask_work, unask_free, j};
}

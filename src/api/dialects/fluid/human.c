/* human: questions to people: ask and wait, ask, list, answer, take back. */
#include "api/dialects/fluid/fluid.h"

#include "api/team/approval_wait.h"
#include "api/team/team_job.h"
#include "base/mem.h"
#include "core/approval/grant.h"

#define PROMPT_MAX 16384
#define CONTEXT_MAX 65536
#define ACTION_MAX 128
#define TIMEOUT_PRESET 300
#define TIMEOUT_MAX (24 * 3600)
#define LATE_MS 5000 /* a question past its deadline is closed within this time */

struct ask_in {
    struct str prompt, action_type, context, urgency;
    int64_t timeout_secs;
    struct fluid_strs alternatives;
};
static const struct fluid_field ask_fields[] = {
    {"prompt", FLUID_STR, offsetof(struct ask_in, prompt), true},
    {"action_type", FLUID_STR, offsetof(struct ask_in, action_type), true},
    {"context", FLUID_STR, offsetof(struct ask_in, context), false},
    {"urgency", FLUID_STR, offsetof(struct ask_in, urgency), false},
    {"timeout_secs", FLUID_INT, offsetof(struct ask_in, timeout_secs), false},
    {"alternatives", FLUID_STRS, offsetof(struct ask_in, alternatives), false},
};
const struct fluid_form fluid_ask_form = {FLUID_FORM(ask_fields, struct ask_in), .lenient = true};

struct respond_in {
    struct str id, approved_by, comment;
    bool approved;
};
static const struct fluid_field respond_fields[] = {
    {"request_id", FLUID_STR, offsetof(struct respond_in, id), true},
    {"approved_by", FLUID_STR, offsetof(struct respond_in, approved_by), true},
    {"comment", FLUID_STR, offsetof(struct respond_in, comment), false},
    {"approved", FLUID_BOOL, offsetof(struct respond_in, approved), false},
};
const struct fluid_form fluid_respond_form = {FLUID_FORM(respond_fields, struct respond_in),
                                              .lenient = true};

struct human_job {
    struct team_job job;
    struct team t;
    struct arena arena;
    struct approval ask;
    struct approval_decision decision;
    struct str id;
    struct buf reply;
    int64_t wait_ms; /* of an ask that waits; 0: it does not */
};

static void human_free(struct team_job *job)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);

    buf_done(&j->reply);
    arena_done(&j->arena);
    mem_free(j);
}

static void human_answer(struct request *r, struct team_job *job, const struct err *e)
{
    const struct human_job *j = CONTAINER_OF(job, struct human_job, job);

    if (e->code != ERR_NONE)
        fluid_refuse(r, e);
    else
        fluid_reply(r, 200, buf_str(&j->reply));
}

static struct human_job *human_new(struct request *r, int (*run)(struct team_job *, struct err *))
{
    struct human_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    j->job = (struct team_job){
        .t = &j->t, .reply = &j->reply, .run = run, .answer = human_answer, .free = human_free};
    if (team_of_anyone(r, &j->arena, &j->t, &e) == 0)
        return j;
    human_free(&j->job);
    fluid_refuse(r, &e);
    return NULL;
}

/* --- as JSON --- */

static const char *status_of(const struct approval *a)
{
    switch (a->state) {
    case APPROVAL_PENDING:
        return "pending";
    case APPROVAL_APPROVED:
        return "approved";
    case APPROVAL_EXPIRED:
        return "expired";
    case APPROVAL_REJECTED:
    case APPROVAL_CLOSED:
    case APPROVAL_CANCELLED:
    case APPROVAL_STATES:
        break;
    }
    return "rejected";
}

static struct str comment_of(const struct approval *a)
{
    return a->state == APPROVAL_EXPIRED     ? STR("request timed out")
           : a->state == APPROVAL_CANCELLED ? STR("request cancelled")
                                            : a->reason;
}

static void write_decision(struct jw *w, const struct team *t, const struct approval *a)
{
    (void)t;
    jw_object(w);
    jw_kstr(w, "request_id", a->id);
    jw_kbool(w, "approved", a->state == APPROVAL_APPROVED);
    jw_kc(w, "status", status_of(a));
    if (comment_of(a).n > 0)
        jw_kstr(w, "comment", comment_of(a));
    if (a->choice.n > 0)
        jw_kstr(w, "choice", a->choice);
    if (a->decided_by.n > 0)
        jw_kstr(w, "approved_by", a->decided_by);
    if (a->decided_ms > 0)
        jw_ktime(w, "approved_at", a->decided_ms);
    if (a->expires_ms > 0)
        jw_ktime(w, "expires_at", a->expires_ms);
    jw_object_end(w);
}

static void write_pending(struct jw *w, const struct approval *a)
{
    jw_object(w);
    jw_kstr(w, "request_id", a->id);
    jw_kstr(w, "prompt", a->question);
    if (a->move.note.n > 0)
        jw_kstr(w, "context", a->move.note);
    jw_kstr(w, "action_type", a->action.n > 0 ? a->action : a->kind);
    jw_kc(w, "urgency", approval_urgencies[a->urgency]);
    jw_kc(w, "status", status_of(a));
    jw_ktime(w, "created_at", a->created_ms);
    if (a->expires_ms > 0)
        jw_ktime(w, "expires_at", a->expires_ms);
    jw_object_end(w);
}

/* --- asking --- */

static int ask_work(struct team_job *job, struct err *e)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);
    struct jw w = {.to = &j->reply};
    struct approval a = j->ask;

    buf_clear(&j->reply);
    a.expires_ms = j->t.now_ms + a.expires_ms;
    if (question_make(&j->t, &a, e) < 0)
        return -1;
    j->id = arena_str(&j->arena, a.id);
    jw_object(&w);
    jw_kstr(&w, "request_id", a.id);
    jw_kc(&w, "status", status_of(&a));
    jw_object_end(&w);
    return 0;
}

static void send_decision(struct request *r, struct str json)
{
    fluid_reply(r, 200, json);
}

/* The question is stored: the reply waits for the answer, or for the question's deadline. */
static void asked(struct request *r, struct team_job *job, const struct err *e)
{
    static const struct approval_form form = {write_decision, send_decision};
    const struct human_job *j = CONTAINER_OF(job, struct human_job, job);

    if (e->code != ERR_NONE || j->wait_ms == 0)
        human_answer(r, job, e);
    else
        approval_wait_as(r, &j->t, j->id, j->wait_ms, &form);
}

static int urgency_of(struct str text)
{
    for (int i = 0; approval_urgencies[i]; i++)
        if (str_eq_c(text, approval_urgencies[i]))
            return i;
    return text.n == 0 ? 1 : -1;
}

/* The kinds for which settings may demand two people; any other is a plain ask. */
static const char *kind_of(struct str action)
{
    static const char *const kinds[] = {"destructive", "sensitive", "irreversible"};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (str_eq_c(action, kinds[i]))
            return kinds[i];
    return APPROVAL_ASK;
}

static struct str list_of(struct arena *a, const struct fluid_strs *l)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_array(&w);
    for (size_t i = 0; i < l->n; i++)
        jw_str(&w, l->v[i]);
    jw_array_end(&w);
    return arena_str(a, buf_str(&text));
}

static bool is_in_range(struct request *r, const struct ask_in *in)
{
    if (in->prompt.n > PROMPT_MAX || in->context.n > CONTEXT_MAX)
        fluid_error(r, 413, "prompt has at most %d bytes, context %d", PROMPT_MAX, CONTEXT_MAX);
    else if (in->action_type.n > ACTION_MAX)
        fluid_error(r, 400, "action_type has at most %d bytes", ACTION_MAX);
    else if (urgency_of(in->urgency) < 0)
        fluid_error(r, 400, "urgency must be low, medium or high");
    else if (in->timeout_secs < 0 || in->timeout_secs > TIMEOUT_MAX)
        fluid_error(r, 400, "timeout_secs must be from 0 to %d", TIMEOUT_MAX);
    else
        return true;
    return false;
}

static void ask(struct request *r, bool wait)
{
    const struct ask_in *in = r->in;
    int64_t ms = (in->timeout_secs > 0 ? in->timeout_secs : TIMEOUT_PRESET) * 1000;
    struct human_job *j;

    if (!is_in_range(r, in))
        return;
    j = human_new(r, ask_work);
    if (!j)
        return;
    j->job.answer = asked;
    j->wait_ms = wait ? ms + LATE_MS : 0;
    j->ask = (struct approval){.kind = str_of(kind_of(in->action_type)),
                               .question = arena_str(&j->arena, in->prompt),
                               .action = arena_str(&j->arena, in->action_type),
                               .move = {.note = arena_str(&j->arena, in->context)},
                               .urgency = urgency_of(in->urgency),
                               .alternatives = list_of(&j->arena, &in->alternatives),
                               .people = 1,
                               .expires_ms = ms};
    team_job_start(&j->job, r, TEAM_DURABLE);
}

void fluid_ask(struct request *r)
{
    ask(r, true);
}

void fluid_ask_async(struct request *r)
{
    ask(r, false);
}

/* --- reading --- */

static int list_work(struct team_job *job, struct err *e)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);
    struct jw w = {.to = &j->reply};
    struct approval_list all;

    buf_clear(&j->reply);
    if (approval_all(&j->t, &(struct approval_filter){.state = APPROVAL_PENDING}, &all, e) < 0)
        return -1;
    jw_object(&w);
    jw_key(&w, "pending");
    jw_array(&w);
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].asker.n > 0)
            write_pending(&w, &all.v[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    return 0;
}

void fluid_pending(struct request *r)
{
    struct human_job *j = human_new(r, list_work);

    if (j)
        team_job_start(&j->job, r, TEAM_READ);
}

static int need(struct human_job *j, struct approval *a, struct err *e)
{
    if (approval_need(&j->t, NULL, j->id, a, e) < 0)
        return -1;
    if (a->asker.n == 0)
        return err_set(e, ERR_NOT_FOUND, 0, "request not found: " STR_FMT, STR_ARG(j->id));
    return 0;
}

static int pending_work(struct team_job *job, struct err *e)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);
    struct jw w = {.to = &j->reply};
    struct approval a;

    buf_clear(&j->reply);
    if (need(j, &a, e) < 0)
        return -1;
    if (a.state != APPROVAL_PENDING) {
        err_set(e, ERR_NOT_FOUND, 0, "request " STR_FMT " is %s", STR_ARG(j->id), status_of(&a));
        return err_hint(e, "GET human/requests/{id} has the decision");
    }
    write_pending(&w, &a);
    return 0;
}

static int decision_work(struct team_job *job, struct err *e)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);
    struct jw w = {.to = &j->reply};
    struct approval a;

    buf_clear(&j->reply);
    if (need(j, &a, e) < 0)
        return -1;
    write_decision(&w, &j->t, &a);
    return 0;
}

static void of_path(struct request *r, int (*run)(struct team_job *, struct err *),
                    enum team_class class)
{
    struct human_job *j = human_new(r, run);

    if (!j)
        return;
    j->id = arena_str(&j->arena, r->params.v[0]);
    team_job_start(&j->job, r, class);
}

void fluid_pending_one(struct request *r)
{
    of_path(r, pending_work, TEAM_READ);
}

void fluid_question(struct request *r)
{
    of_path(r, decision_work, TEAM_READ);
}

/* --- deciding --- */

static int respond_work(struct team_job *job, struct err *e)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);
    struct jw w = {.to = &j->reply};
    struct approval a;
    struct grant g;

    buf_clear(&j->reply);
    if (need(j, &a, e) < 0)
        return -1;
    if (a.state != APPROVAL_PENDING)
        return err_set(e, ERR_NOT_FOUND, 0, "request " STR_FMT " is %s already", STR_ARG(j->id),
                       status_of(&a));
    if (approval_decide(&j->t, j->id, &j->decision, &a, &g, e) < 0)
        return -1;
    write_decision(&w, &j->t, &a);
    return 0;
}

/* Who decides is known by the token, and kept; approved_by says nothing more. */
void fluid_respond(struct request *r)
{
    const struct respond_in *in = r->in;
    struct human_job *j = human_new(r, respond_work);

    if (!j)
        return;
    j->id = arena_str(&j->arena, in->id);
    j->decision = (struct approval_decision){.yes = in->approved,
                                             .reason = arena_str(&j->arena, in->comment)};
    team_job_start(&j->job, r, TEAM_DURABLE);
}

static int cancel_work(struct team_job *job, struct err *e)
{
    struct human_job *j = CONTAINER_OF(job, struct human_job, job);
    struct jw w = {.to = &j->reply};
    struct approval a;

    buf_clear(&j->reply);
    if (need(j, &a, e) < 0 || question_cancel(&j->t, j->id, STR("request cancelled"), &a, e) < 0)
        return -1;
    jw_object(&w);
    jw_kstr(&w, "request_id", a.id);
    jw_kbool(&w, "cancelled", true);
    jw_object_end(&w);
    return 0;
}

void fluid_cancel(struct request *r)
{
    of_path(r, cancel_work, TEAM_DURABLE);
}

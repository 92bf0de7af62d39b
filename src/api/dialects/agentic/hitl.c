/* hitl: prompts of sessions as requests to a person. */
#include "api/dialects/agentic/agentic.h"

#include "api/team/team_job.h"
#include "base/mem.h"
#include "core/approval/approval.h"
#include "core/approval/grant.h"
#include "core/session/prompts.h"

struct hitl_job {
    struct team_job job;
    struct team t;
    struct arena arena;
    struct str id, text;
    struct buf reply;
};

static void hitl_free(struct team_job *job)
{
    struct hitl_job *j = CONTAINER_OF(job, struct hitl_job, job);

    buf_wipe(&j->reply);
    arena_done(&j->arena);
    mem_free(j);
}

static struct hitl_job *hitl_new(struct request *r, int (*run)(struct team_job *, struct err *),
                                 void (*answer)(struct request *, struct team_job *,
                                                const struct err *))
{
    struct hitl_job *j = xzalloc(sizeof *j);
    struct err e = {0};

    j->job = (struct team_job){
        .t = &j->t, .reply = &j->reply, .run = run, .answer = answer, .free = hitl_free};
    if (team_of_anyone(r, &j->arena, &j->t, &e) == 0)
        return j;
    hitl_free(&j->job);
    agentic_fail(r, err_table[e.code].http, &e);
    return NULL;
}

/* --- the list --- */

static void write_request(struct jw *w, const struct approval *a)
{
    jw_object(w);
    jw_kstr(w, "hitl_id", a->id);
    jw_kstr(w, "agent_id", a->sandbox);
    jw_kstr(w, "session_id", a->exec);
    jw_kstr(w, "prompt", a->question);
    jw_kstr(w, "context", a->move.note);
    jw_kint(w, "created_at_ms", a->created_ms);
    jw_kstr(w, "kind", a->way);
    jw_key(w, "options");
    jw_raw(w, a->alternatives);
    jw_object_end(w);
}

static int list_work(struct team_job *job, struct err *e)
{
    struct hitl_job *j = CONTAINER_OF(job, struct hitl_job, job);
    struct jw w = {.to = &j->reply};
    struct approval_list all;

    if (approval_all(&j->t,
                     &(struct approval_filter){.kind = APPROVAL_PROMPT, .state = APPROVAL_PENDING},
                     &all, e) < 0)
        return -1;
    jw_object(&w);
    jw_key(&w, "requests");
    jw_array(&w);
    for (size_t i = 0; i < all.n; i++)
        write_request(&w, &all.v[i]);
    jw_array_end(&w);
    jw_object_end(&w);
    return 0;
}

static void list_answer(struct request *r, struct team_job *job, const struct err *e)
{
    struct hitl_job *j = CONTAINER_OF(job, struct hitl_job, job);

    if (e->code != ERR_NONE)
        agentic_fail(r, err_table[e->code].http, e);
    else
        request_send(r, 200, "application/json", buf_str(&j->reply));
}

void agentic_hitl(struct request *r)
{
    struct hitl_job *j = hitl_new(r, list_work, list_answer);

    if (j)
        team_job_start(&j->job, r, TEAM_READ);
}

/* --- answers --- */

static int respond_work(struct team_job *job, struct err *e)
{
    struct hitl_job *j = CONTAINER_OF(job, struct hitl_job, job);
    struct approval a;
    struct grant g;

    return approval_decide(
        &j->t, j->id,
        &(struct approval_decision){
            .kind = APPROVAL_PROMPT, .yes = true, .choice = j->text, .answered = true},
        &a, &g, e);
}

/* Once stored, the answer is typed, even if holtd is killed now. */
static void respond_answer(struct request *r, struct team_job *job, const struct err *e)
{
    const struct hitl_job *j = CONTAINER_OF(job, struct hitl_job, job);

    if (e->code == ERR_NONE)
        request_send(r, 204, NULL, STR(""));
    else if (e->code == ERR_NOT_FOUND || e->code == ERR_CONFLICT)
        agentic_error(r, 404, "HITL request '" STR_FMT "' not found", STR_ARG(j->id));
    else
        agentic_fail(r, err_table[e->code].http, e);
}

static void respond_read(struct request *r, const json_t *body)
{
    bool has = json_is_string(json_object_get(body, "response"));
    struct hitl_job *j;

    if (!has && !json_is_string(json_object_get(body, "text"))) {
        agentic_error(r, 422, "'response' (or 'text') must be a text");
        return;
    }
    j = hitl_new(r, respond_work, respond_answer);
    if (!j)
        return;
    j->id = arena_str(&j->arena, r->params.v[0]);
    j->text = arena_str(&j->arena, agentic_member(body, has ? "response" : "text"));
    if (j->text.n > PROMPT_ANSWER) {
        agentic_error(r, 413, "an answer has at most %d bytes", PROMPT_ANSWER);
        hitl_free(&j->job);
        return;
    }
    team_job_start(&j->job, r, TEAM_DURABLE);
}

void agentic_hitl_respond(struct request *r)
{
    agentic_collect(r, respond_read);
}

/* --- requests by a caller --- */

struct ask_job {
    struct waiter waiter;
};

static void asked(void *arg, struct str id, const struct err *e)
{
    AUTO(mem_free) struct ask_job *j = arg;
    struct request *r = waiter_end(&j->waiter);
    struct jw w;

    if (r && e->code != ERR_NONE) {
        agentic_error(r, err_table[e->code].http, "%s", e->msg);
    } else if (r) {
        w = request_json(r);
        jw_object(&w);
        jw_kstr(&w, "hitl_id", id);
        jw_object_end(&w);
        request_send_json(r, 201);
    }
}

static void create_read(struct request *r, const json_t *body)
{
    struct str session = agentic_member(body, "session_id"),
               prompt = agentic_member(body, "prompt");
    struct sandbox *s = agentic_find(r, AGENTIC_ANY);
    struct err e = {0};
    struct ask_job *j;
    struct exec *x;

    if (!s)
        return;
    if (session.n == 0 || prompt.n == 0) {
        agentic_error(r, 422, "'session_id' and 'prompt' are needed");
        return;
    }
    x = exec_named(s, session);
    if (!x)
        x = exec_find(s, session, &e);
    if (!x || !r->api->prompts) {
        agentic_error(r, 404, "session '" STR_FMT "' not found", (int)size_min(session.n, 64),
                      session.p);
        return;
    }
    j = xzalloc(sizeof *j);
    request_wait(r, &j->waiter);
    prompts_ask(r->api->prompts, x, prompt, agentic_member(body, "context"), asked, j);
}

void agentic_hitl_create(struct request *r)
{
    agentic_collect(r, create_read);
}

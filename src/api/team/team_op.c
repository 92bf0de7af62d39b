/* team_op: runs the native operations on the team. */
#include "api/team/team_op.h"

#include "api/native/handlers.h"
#include "api/team/approval_wait.h"
#include "base/mem.h"

/* --- shared by the rows' functions --- */

struct str team_text(struct str s)
{
    return s.p ? s : STR("");
}

struct str team_name(const struct team_call *c, struct str name)
{
    return !team_is_person(&c->t) && str_eq_c(name, TEAM_PERSON) ? c->t.who.agent : name;
}

int team_list_tags(struct team_call *c, struct op_list l, struct str *ret, struct err *e)
{
    return team_tags(&c->arena, l.v, l.n, ret, e);
}

int team_object(struct team_call *c, const char *field, const json_t *v, struct str *ret,
                struct err *e)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    *ret = STR("{}");
    if (!v)
        return 0;
    if (!json_is_object(v))
        return err_set(e, ERR_INVALID, 0, "field '%s' must be an object", field);
    jw_json(&w, v);
    *ret = arena_str(&c->arena, buf_str(&text));
    return 0;
}

/* --- one request --- */

static void call_free(struct team_job *j)
{
    struct team_call *c = CONTAINER_OF(j, struct team_call, job);

    json_decref(c->body);
    buf_done(&c->reply);
    arena_done(&c->arena);
    mem_free(c);
}

static int op_run(struct team_job *j, struct err *e)
{
    struct team_call *c = CONTAINER_OF(j, struct team_call, job);

    c->w = (struct jw){.to = &c->reply};
    c->wait_for = STR("");
    return c->row->run(c, e);
}

static void op_reply(struct request *r, struct team_job *j, const struct err *e)
{
    struct team_call *c = CONTAINER_OF(j, struct team_call, job);

    if (e->code != ERR_NONE) {
        team_refused(r, &c->t, e);
        request_fail(r, e);
    } else if (c->wait_for.n > 0) {
        approval_wait(r, &c->t, c->wait_for, c->follow ? -1 : c->wait_ms);
    } else if (c->row->op->reply == OP_REPLY_EMPTY) {
        request_send_empty(r);
    } else {
        buf_add_char(&c->reply, '\n');
        request_send(r, 0, "application/json", buf_str(&c->reply));
    }
}

static const struct team_op *row_of(const struct op *op)
{
    static const struct {
        const struct team_op *v;
        const size_t *n;
    } tables[] = {{team_agent_ops, &team_agent_op_count},
                  {team_message_ops, &team_message_op_count},
                  {team_board_ops, &team_board_op_count},
                  {team_approval_ops, &team_approval_op_count},
                  {team_webhook_ops, &team_webhook_op_count}};

    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (size_t i = 0; i < *tables[t].n; i++)
            if (tables[t].v[i].op == op)
                return &tables[t].v[i];
    assert(!"an operation of the team has a row"); /* a test looks up each */
    return NULL;
}

static const void *call_field(const struct team_call *c, const char *name)
{
    return (const char *)c->in + op_input(c->row->op, str_of(name))->offset;
}

/* Decodes the input again, into memory that outlives the request. */
static int copy_input(struct team_call *c, const struct request *r, struct err *e)
{
    c->body = r->body ? json_incref(r->body) : NULL;
    return op_decode(r->op, &r->params, xchg_req(r->x)->query, c->body, &c->arena, &c->in, e);
}

void team_run(struct request *r)
{
    struct team_call *c = xzalloc(sizeof *c);
    enum team_class class;
    struct err e = {0};

    c->row = row_of(r->op);
    c->implied = r->how == AUTH_IMPLIED;
    c->job = (struct team_job){.t = &c->t,
                               .reply = &c->reply,
                               .status = c->row->op->status,
                               .run = op_run,
                               .answer = op_reply,
                               .free = call_free};
    c->key = arena_str(&c->arena, http_req_header(xchg_req(r->x), "idempotency-key"));
    if ((c->row->anyone ? team_of_anyone : team_of)(r, &c->arena, &c->t, &e) < 0 ||
        copy_input(c, r, &e) < 0 || (c->row->prepare && c->row->prepare(c, r, &e) < 0)) {
        team_refused(r, &c->t, &e);
        request_fail(r, &e);
        call_free(&c->job);
        return;
    }
    if (c->row->gives_token)
        c->job.give_token = *(const struct str *)call_field(c, "name");
    if (c->row->takes_tokens)
        c->job.take_tokens = *(const struct str *)call_field(c, "name");
    class = c->row->class;
    if (c->row->read_if && *(const bool *)call_field(c, c->row->read_if))
        class = TEAM_READ;
    team_job_start(&c->job, r, class);
}

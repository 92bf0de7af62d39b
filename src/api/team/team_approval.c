/* team_approval: the native operations on questions to people and on grants. */
#include "api/team/approval_wait.h"

#include "api/team/gates.h"
#include "api/team/team_op.h"
#include "base/wild.h"
#include "core/approval/gate.h"
#include "ops/approval.h"
#include "ops/token.h"

#define ATTACHMENTS_MAX 16
#define ATTACHMENT_BYTES (1024 * 1024) /* of all together */
#define ANSWERS_MAX 100

/* --- replies --- */

static void write_grant(struct jw *w, const struct grant *g, int64_t now_ms)
{
    jw_object(w);
    jw_ktext(w, "id", g->id);
    jw_kstr(w, "approval", g->approval);
    jw_kstr(w, "asker", g->asker);
    jw_kstr(w, "operation", g->operation);
    jw_ktext(w, "hash", g->hash);
    jw_ktext(w, "sandbox", g->sandbox);
    jw_ktext(w, "pattern", g->pattern);
    jw_key(w, "uses");
    if (g->uses < 0)
        jw_null(w);
    else
        jw_int(w, g->uses);
    jw_kint(w, "used", g->used);
    jw_kint(w, "left_ms", i64_max(g->expires_ms - now_ms, 0));
    jw_ktime(w, "expires_at", g->expires_ms);
    jw_kstr(w, "created_by", g->created_by);
    jw_ktime(w, "created_at", g->created_ms);
    jw_object_end(w);
}

static void write_prompt(struct jw *w, const struct approval *a)
{
    jw_ktext(w, "exec", a->exec);
    jw_ktext(w, "way", a->way);
    jw_key(w, "typed");
    if (a->exec.n > 0 && (a->state == APPROVAL_APPROVED || a->state == APPROVAL_REJECTED))
        jw_bool(w, !a->owed);
    else
        jw_null(w);
}

static void write_host(struct jw *w, const struct approval *a)
{
    jw_ktext(w, "sandbox", a->sandbox);
    jw_ktext(w, "host", a->host);
    jw_key(w, "port");
    if (a->port > 0)
        jw_int(w, a->port);
    else
        jw_null(w);
    jw_kc(w, "scope",
          a->decided_ms > 0 && (a->port > 0 || a->hash.n > 0) ? approval_scopes[a->scope] : NULL);
}

/* Lists leave the contents out.  What holtd has read for people alone, such as files of a target,
 * its asker does not see. */
static void write_attachments(struct jw *w, const struct team *t, struct str text, bool full)
{
    AUTO(json_decref) json_t *all = NULL;
    struct err e = {0};

    jw_key(w, "attachments");
    if ((full && team_is_person(t)) || json_read(text, &all, &e) < 0) {
        jw_raw(w, text);
        return;
    }
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *one = json_array_get(all, i);

        if (!full || json_is_true(json_object_get(one, APPROVAL_FOR_PEOPLE)))
            json_object_del(one, "content");
    }
    jw_json(w, all);
}

static void write_question(struct jw *w, const struct team *t, const struct approval *a, bool full)
{
    jw_kstr(w, "question", a->question);
    jw_kc(w, "urgency", approval_urgencies[a->urgency]);
    jw_ktext(w, "asker", a->asker);
    jw_ktext(w, "agent", a->agent);
    jw_kstr(w, "action", a->action);
    jw_key(w, "arguments");
    if (a->arguments.n > 0)
        jw_raw(w, a->arguments);
    else
        jw_null(w);
    jw_ktext(w, "hash", a->hash);
    jw_key(w, "alternatives");
    jw_raw(w, a->alternatives);
    jw_ktext(w, "choice", str_eq_c(a->way, APPROVAL_SECRET) ? STR("") : a->choice);
    write_attachments(w, t, a->attachments, full);
    jw_kint(w, "people", a->people);
    jw_kint(w, "votes", a->votes);
}

/* grant NULL: no such member. */
static void write_with(struct jw *w, const struct team *t, const struct approval *a, bool full,
                       const struct grant *grant)
{
    bool own = a->asker.n > 0 && str_eq(a->asker, t->who.owner);

    jw_object(w);
    jw_kstr(w, "id", a->id);
    jw_kstr(w, "kind", a->kind);
    jw_kc(w, "state", approval_state_name(a->state));
    write_question(w, t, a, full);
    write_prompt(w, a);
    write_host(w, a);
    jw_ktext(w, "project", a->project);
    jw_ktext(w, "task_id", a->card);
    jw_kc(w, "to", str_eq_c(a->action, "move") ? card_status_name(a->move.to) : NULL);
    jw_kstr(w, "note", team_text(a->move.note));
    jw_ktext(w, "key", own ? a->key : STR(""));
    jw_ktext(w, "decided_by", a->decided_by);
    jw_kstr(w, "reason", a->reason);
    jw_ktime(w, "created_at", a->created_ms);
    jw_ktime(w, "decided_at", a->decided_ms);
    jw_ktime(w, "expires_at", a->expires_ms);
    if (grant && grant->asker.n > 0) {
        jw_key(w, "grant");
        write_grant(w, grant, t->now_ms);
    } else if (grant) {
        jw_key(w, "grant");
        jw_null(w);
    }
    jw_object_end(w);
}

void approval_write(struct jw *w, const struct team *t, const struct approval *a)
{
    write_with(w, t, a, true, NULL);
}

/* --- asking --- */

static const char *const attachment_kinds[] = {"diff", "playbook", "screen", "command", "text"};

static bool is_attachment_kind(const json_t *v)
{
    for (size_t i = 0; i < ARRAY_LEN(attachment_kinds); i++)
        if (json_is_string(v) && strcmp(json_string_value(v), attachment_kinds[i]) == 0)
            return true;
    return false;
}

static int check_attachments(const json_t *all, struct err *e)
{
    size_t bytes = 0;

    if (all && (!json_is_array(all) || json_array_size(all) > ATTACHMENTS_MAX))
        return err_set(e, ERR_INVALID, 0, "field 'attachments' must be a list of at most %d",
                       ATTACHMENTS_MAX);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i), *name = json_object_get(one, "name"),
                     *content = json_object_get(one, "content");

        if (!is_attachment_kind(json_object_get(one, "kind")) || !json_is_string(content) ||
            (name && !json_is_string(name)) || json_object_size(one) != (name ? 3U : 2U))
            return err_set(e, ERR_INVALID, 0,
                           "field 'attachments': entry %zu is not {kind: diff, playbook, screen, "
                           "command or text, name, content}",
                           i);
        bytes += json_string_length(content) + json_string_length(name);
    }
    if (bytes > ATTACHMENT_BYTES)
        return err_set(e, ERR_TOO_LARGE, 0, "field 'attachments': over 1 MiB together");
    return 0;
}

static struct str dumped(struct team_call *c, const json_t *v)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_json(&w, v);
    return arena_str(&c->arena, buf_str(&text));
}

static struct str list_of(struct team_call *c, struct op_list l)
{
    AUTO(buf_done) struct buf text = {0};
    struct jw w = {.to = &text};

    jw_array(&w);
    for (size_t i = 0; i < l.n; i++)
        jw_str(&w, l.v[i]);
    jw_array_end(&w);
    return arena_str(&c->arena, buf_str(&text));
}

/* A refused request is kept by the loop's thread. */
static int prepare_ask(struct team_call *c, struct request *r, struct err *e)
{
    const struct approval_ask_in *in = c->in;
    struct refused_action f;

    if (in->refused.n == 0)
        return 0;
    if (in->action.n > 0 || in->arguments)
        return err_set(e, ERR_INVALID, 0, "field 'refused' stands for 'action' and 'arguments'");
    if (!gates_refused(r, in->refused, &f)) {
        err_set(e, ERR_NOT_FOUND, 0, "none of your requests was refused as '" STR_FMT "'",
                STR_ARG(in->refused));
        return err_hint(e, "repeat the request: its error names it");
    }
    c->action = arena_str(&c->arena, f.operation);
    c->arguments = arena_str(&c->arena, f.arguments);
    c->hash = arena_str(&c->arena, f.hash);
    c->sandbox = arena_str(&c->arena, f.sandbox);
    c->people = f.people;
    return 0;
}

static int read_action(struct team_call *c, const struct approval_ask_in *in, struct approval *a,
                       struct err *e)
{
    AUTO(json_decref) json_t *none = json_object();
    char hash[GRANT_HASH];

    if (c->hash.n > 0) {
        a->action = c->action;
        a->arguments = c->arguments;
        a->hash = c->hash;
        a->sandbox = c->sandbox;
        a->people = i64_max(a->people, c->people);
        return 0;
    }
    if (in->arguments && !json_is_object(in->arguments))
        return err_set(e, ERR_INVALID, 0, "field 'arguments' must be an object");
    a->action = team_text(in->action);
    if (a->action.n == 0 && in->arguments)
        return err_set(e, ERR_INVALID, 0, "field 'arguments': they need an 'action'");
    if (a->action.n == 0)
        return 0;
    grant_hash(a->action, in->arguments ? in->arguments : none, hash);
    a->hash = arena_str(&c->arena, str_of(hash));
    a->arguments = dumped(c, in->arguments ? in->arguments : none);
    return 0;
}

static int approval_ask_op(struct team_call *c, struct err *e)
{
    const struct approval_ask_in *in = c->in;
    struct approval a = {.kind = str_of(op_ask_kinds[in->kind]),
                         .question = in->question,
                         .sandbox = team_text(in->sandbox),
                         .move = {.note = team_text(in->note)},
                         .key = in->key.n > 0 ? in->key : c->key,
                         .urgency = in->urgency,
                         .alternatives = list_of(c, in->alternatives),
                         .people = in->people,
                         .expires_ms = c->t.now_ms + in->expires_ms};

    if (check_attachments(in->attachments, e) < 0 || read_action(c, in, &a, e) < 0)
        return -1;
    if (in->attachments)
        a.attachments = dumped(c, in->attachments);
    if (question_make(&c->t, &a, e) < 0)
        return -1;
    if (in->wait_ms > 0 && a.state == APPROVAL_PENDING) {
        c->wait_for = a.id;
        c->wait_ms = in->wait_ms;
    }
    approval_write(&c->w, &c->t, &a);
    return 0;
}

static int approval_cancel_op(struct team_call *c, struct err *e)
{
    const struct approval_cancel_in *in = c->in;
    struct approval a;

    if (question_cancel(&c->t, in->id, in->reason, &a, e) < 0)
        return -1;
    approval_write(&c->w, &c->t, &a);
    return 0;
}

/* --- reading --- */

static int approval_list_op(struct team_call *c, struct err *e)
{
    const struct approval_list_in *in = c->in;
    struct approval_list all;

    if (approval_all(
            &c->t,
            &(struct approval_filter){.kind = in->kind < 0 ? NULL : op_approval_kinds[in->kind],
                                      .agent = in->agent,
                                      .sandbox = in->sandbox,
                                      .key = in->key,
                                      .state = in->state,
                                      .after = in->cursor,
                                      .limit = in->limit + 1},
            &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "approvals", STR(""), in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_with(&c->w, &c->t, &all.v[i], false, NULL);
    reply_list_end(&c->page);
    return 0;
}

static int approval_get_op(struct team_call *c, struct err *e)
{
    const struct approval_get_in *in = c->in;
    struct approval a;

    if (approval_need(&c->t, NULL, in->id, &a, e) < 0)
        return -1;
    if (in->wait_ms > 0 && a.state == APPROVAL_PENDING) {
        c->wait_for = a.id;
        c->wait_ms = in->wait_ms;
    }
    approval_write(&c->w, &c->t, &a);
    return 0;
}

static int approval_watch_op(struct team_call *c, struct err *e)
{
    const struct approval_id_in *in = c->in;
    struct approval a;

    if (approval_need(&c->t, NULL, in->id, &a, e) < 0)
        return -1;
    c->wait_for = a.id;
    c->follow = true;
    return 0;
}

/* --- deciding --- */

static int decide(struct team_call *c, bool yes, struct err *e)
{
    const struct approval_decide_in *in = c->in;
    struct approval_decision d = {.yes = yes,
                                  .reason = team_text(in->reason),
                                  .choice = team_text(in->choice),
                                  .scope = (enum approval_scope)in->scope,
                                  .for_ms = in->for_ms == OP_ABSENT ? 0 : in->for_ms,
                                  .pattern = team_text(in->pattern),
                                  .preview = in->preview};
    struct approval a;
    struct grant g;

    if (approval_decide(&c->t, in->id, &d, &a, &g, e) < 0)
        return -1;
    write_with(&c->w, &c->t, &a, true, &g);
    return 0;
}

static int approval_approve_op(struct team_call *c, struct err *e)
{
    return decide(c, true, e);
}

static int approval_deny_op(struct team_call *c, struct err *e)
{
    return decide(c, false, e);
}

static int approval_answer_op(struct team_call *c, struct err *e)
{
    const struct approval_answer_in *in = c->in;
    struct approval a;
    struct grant g;

    if (approval_decide(&c->t, in->id,
                        &(struct approval_decision){.kind = APPROVAL_PROMPT,
                                                    .yes = true,
                                                    .choice = team_text(in->text),
                                                    .answered = true},
                        &a, &g, e) < 0)
        return -1;
    write_with(&c->w, &c->t, &a, true, &g);
    return 0;
}

static struct str member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    return str_make(json_is_string(v) ? json_string_value(v) : "", json_string_length(v));
}

static int answer_one(struct team_call *c, size_t i, const json_t *one, struct err *e)
{
    const json_t *yes = json_object_get(one, "approve");
    struct str id = member(one, "id");
    struct approval a;
    struct grant g;

    if (id.n == 0 || !json_is_boolean(yes))
        return err_set(e, ERR_INVALID, 0,
                       "field 'answers': entry %zu is not {id, approve, reason, choice}", i);
    if (approval_decide(&c->t, id,
                        &(struct approval_decision){.yes = json_is_true(yes),
                                                    .reason = member(one, "reason"),
                                                    .choice = member(one, "choice")},
                        &a, &g, e) < 0)
        return err_wrap(e, "nothing was answered: '" STR_FMT "'", (int)size_min(id.n, 64), id.p);
    write_with(&c->w, &c->t, &a, false, &g);
    return 0;
}

static int approval_answers_op(struct team_call *c, struct err *e)
{
    const struct approval_answers_in *in = c->in;

    if (!json_is_array(in->answers) || json_array_size(in->answers) > ANSWERS_MAX)
        return err_set(e, ERR_INVALID, 0, "field 'answers' must be a list of at most %d",
                       ANSWERS_MAX);
    reply_list_begin(&c->page, &c->w, "approvals", STR(""), ANSWERS_MAX);
    for (size_t i = 0; i < json_array_size(in->answers); i++)
        if (answer_one(c, i, json_array_get(in->answers, i), e) < 0)
            return -1;
    reply_list_end(&c->page);
    return 0;
}

/* --- grants --- */

static int grant_list_op(struct team_call *c, struct err *e)
{
    const struct grant_list_in *in = c->in;
    struct grant_list all;

    if (grant_all(&c->t, in->cursor, in->limit + 1, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "grants", STR(""), in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_grant(&c->w, &all.v[i], c->t.now_ms);
    reply_list_end(&c->page);
    return 0;
}

static int grant_revoke_op(struct team_call *c, struct err *e)
{
    const struct grant_id_in *in = c->in;

    return grant_revoke(&c->t, in->id, e);
}

/* --- gates --- */

static void write_gate(struct jw *w, const struct gate *g)
{
    jw_object(w);
    jw_kstr(w, "id", g->id);
    jw_kstr(w, "operation", g->operation);
    jw_ktext(w, "role", g->role);
    jw_ktext(w, "label", g->label);
    jw_ktext(w, "command", g->command);
    jw_ktext(w, "path", g->path);
    jw_kint(w, "people", g->people);
    jw_kstr(w, "reason", g->reason);
    jw_kstr(w, "created_by", g->created_by);
    jw_ktime(w, "created_at", g->created_ms);
    jw_object_end(w);
}

static bool names_operation(struct str pattern)
{
    for (size_t i = 0; i < op_count; i++)
        if (!gate_is_exempt(str_of(op_table[i]->name)) &&
            wild_fits(pattern, str_of(op_table[i]->name)))
            return true;
    return false;
}

static int gate_add_op(struct team_call *c, struct err *e)
{
    const struct gate_add_in *in = c->in;
    struct gate g = {.operation = in->operation,
                     .role = in->role < 0 ? STR("") : str_of(op_roles[in->role]),
                     .label = team_text(in->label),
                     .command = team_text(in->command),
                     .path = team_text(in->path),
                     .reason = team_text(in->reason),
                     .people = in->people};

    if (!names_operation(g.operation))
        return err_set(e, ERR_INVALID, 0,
                       "field 'operation': no operation that can need approval has this name");
    if (gate_add(&c->t, &g, e) < 0)
        return -1;
    (void)snprintf(c->job.object, sizeof c->job.object, "gate/" STR_FMT, STR_ARG(g.id));
    write_gate(&c->w, &g);
    return 0;
}

static int gate_list_op(struct team_call *c, struct err *e)
{
    const struct grant_list_in *in = c->in;
    struct gate_list all;

    if (gate_all(&c->t, &all, e) < 0)
        return -1;
    reply_list_begin(&c->page, &c->w, "gates", in->cursor, in->limit);
    for (size_t i = 0; i < all.n; i++)
        if (reply_list_take(&c->page, all.v[i].id))
            write_gate(&c->w, &all.v[i]);
    reply_list_end(&c->page);
    return 0;
}

static int gate_remove_op(struct team_call *c, struct err *e)
{
    const struct grant_id_in *in = c->in;

    return gate_remove(&c->t, in->id, e);
}

const struct team_op team_approval_ops[] = {
    {&op_approval_ask, TEAM_DURABLE, approval_ask_op, .anyone = true, .prepare = prepare_ask},
    {&op_approval_list, TEAM_READ, approval_list_op, .anyone = true},
    {&op_approval_answer, TEAM_DURABLE, approval_answer_op},
    {&op_approval_answers, TEAM_DURABLE, approval_answers_op},
    {&op_approval_get, TEAM_READ, approval_get_op, .anyone = true},
    {&op_approval_watch, TEAM_READ, approval_watch_op, .anyone = true},
    {&op_approval_approve, TEAM_DURABLE, approval_approve_op},
    {&op_approval_deny, TEAM_DURABLE, approval_deny_op},
    {&op_approval_cancel, TEAM_DURABLE, approval_cancel_op, .anyone = true},
    {&op_grant_list, TEAM_READ, grant_list_op, .anyone = true},
    {&op_grant_revoke, TEAM_DURABLE, grant_revoke_op},
    {&op_gate_add, TEAM_DURABLE, gate_add_op},
    {&op_gate_list, TEAM_READ, gate_list_op},
    {&op_gate_remove, TEAM_DURABLE, gate_remove_op},
};
const size_t team_approval_op_count = ARRAY_LEN(team_approval_ops);

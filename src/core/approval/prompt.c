/* prompt: sessions that wait at their terminals, as approvals. */
#include "core/approval/approval_internal.h"

static int pending_of(struct team *t, struct str exec, struct approval_list *ret, struct err *e)
{
    return approval_read(t, APPROVAL_SELECT "WHERE exec = :exec AND exec <> '' AND state = 0",
                         PARAMS(P_TEXT("exec", exec)), ret, e);
}

int prompt_ask(struct team *t, struct approval *a, struct err *e)
{
    struct approval_list same;

    if (pending_of(t, a->exec, &same, e) < 0)
        return -1;
    if (same.n > 0) {
        err_set(e, ERR_CONFLICT, 0, "a pending request for session '" STR_FMT "' already exists",
                STR_ARG(a->exec));
        err_hint(e, "answer it first: holt approval answer " STR_FMT, STR_ARG(same.v[0].id));
        return err_object(e, "approval", arena_cstr(t->arena, same.v[0].id));
    }
    if (approval_make_room(t, a, e) < 0)
        return -1;
    a->kind = STR(APPROVAL_PROMPT);
    a->action = STR("answer");
    return approval_new(t, a, e);
}

int prompt_close(struct team *t, struct str exec, const char *reason, struct err *e)
{
    struct approval_list l;

    if (pending_of(t, exec, &l, e) < 0 || approvals_close(t, &l, reason, e) < 0)
        return -1;
    return tx_run(t->tx,
                  "UPDATE approvals SET owed = 0, choice = CASE WHEN way = '" APPROVAL_SECRET
                  "' THEN '' ELSE choice END WHERE exec = :exec AND owed = 1",
                  PARAMS(P_TEXT("exec", exec)), e) < 0
               ? -1
               : 0;
}

int prompt_typed(struct team *t, struct str id, struct err *e)
{
    struct approval a;
    int64_t n;

    n = tx_run(t->tx,
               "UPDATE approvals SET owed = 0, choice = CASE WHEN way = '" APPROVAL_SECRET
               "' THEN '' ELSE choice END WHERE id = :id AND owed = 1",
               PARAMS(P_TEXT("id", id)), e);
    if (n <= 0)
        return n < 0 ? -1 : 0;
    if (approval_need(t, APPROVAL_PROMPT, id, &a, e) < 0)
        return -1;
    approval_event(t, "approval.typed", &a);
    return 0;
}

int prompt_open(struct team *t, struct approval_list *ret, struct err *e)
{
    return approval_read(t, APPROVAL_SELECT "WHERE exec <> '' AND (state = 0 OR owed = 1)",
                         NO_PARAMS, ret, e);
}

/* The answer that a plain yes or no stands for; p NULL: none. */
static struct str plain_answer(struct team *t, const struct approval *a)
{
    AUTO(json_decref) json_t *o = NULL;
    const json_t *v;
    struct err e = {0};

    if (json_read(a->arguments, &o, &e) < 0)
        return (struct str){0};
    v = json_object_get(o, a->state == APPROVAL_APPROVED ? "yes" : "no");
    if (!json_is_string(v))
        return (struct str){0};
    return arena_str(t->arena, str_make(json_string_value(v), json_string_length(v)));
}

int prompt_execute(struct team *t, struct approval *a, struct err *e)
{
    if (!a->choice.p)
        a->choice = plain_answer(t, a);
    if (!a->choice.p) {
        err_set(e, ERR_INVALID, 0, "the prompt wants a text, not a %s",
                a->state == APPROVAL_APPROVED ? "yes" : "no");
        return err_hint(e, "holt approval answer " STR_FMT " TEXT", STR_ARG(a->id));
    }
    a->owed = true;
    return tx_run(t->tx, "UPDATE approvals SET owed = 1, choice = :choice WHERE id = :id",
                  PARAMS(P_TEXT("choice", a->choice), P_TEXT("id", a->id)), e) < 0
               ? -1
               : 0;
}
